# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Localisation on disjoint batches: one noisy minimiser per batch, each near the last.

The corrected LNC-GM of Xu et al. (2025), Algorithm 3: every phase minimises the loss of its own
rows, with clipped gradients, plus a pull towards the previous release, and adds Gaussian noise. No
row is in two phases, so each phase has the whole budget (Proposition 52). `growth` restarts it in
shrinking balls (their Algorithms 4 and 5), `failure_probability` runs it several times on disjoint
rows and keeps a central point (Proposition 56).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from skdp._losses.clipped import ClippedLoss
from skdp._rows.base import ball_constraint, two_balls_constraint
from skdp._sklearn import SCALE_OR_NONE
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.solvers.base import LARGEST_COEF, Fit, Solver, minimizer_of
from skdp.solvers.disjoint import (
    RESTART_CONSTRAINTS,
    least_median_distance,
    public_order,
    restarts,
    splits,
)
from skdp.solvers.phased import held_minimizer


class Localized(Solver):
    """Noisy minimisers on disjoint rows, each near the one before.

    For the loss on new rows. All rows must be in memory.

    Parameters
    ----------
    clipping_norm : float, default=None
        For two classes: the loss is linear beyond this norm of a row's gradient, for rows in units
        of `data_norm`. None chooses it from public quantities. Not for regressors, which have
        their own `clipping_norm`.
    growth : {"halving", "doubling"} or None, default=None
        Restarts on further rows from the last result, each in a ball of half the radius, with
        equal numbers of rows ("halving") or twice as many each time ("doubling"). Faster if the
        loss on new rows grows like a power of the distance from its minimiser [1]_.
    growth_order : float, default=2.0
        With ``growth="doubling"``: a lower bound, greater than 1, on that power.
    failure_probability : float, default=None
        Several runs on disjoint parts of the rows; the result is the one with the least median
        distance to the others. Their number limits the probability of a bad result to this value.
        None makes one run.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    skdp.solvers.Phased : Phases that read all rows; more accurate in our benchmarks.

    Notes
    -----
    No row is in two phases, so each phase has the whole budget (Proposition 52). The number of
    phases depends on the number of rows.

    References
    ----------
    .. [1] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz
       constraints: differentially private stochastic optimization with Tsybakov noise
       condition", 2025, Algorithms 3 to 5, with corrections.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, papers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = papers.Localized(growth="halving")
    >>> model = DPLogisticRegression(solver=solver, classes=[False, True], random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    mechanism = "output"
    needs_delta = "which adds Gaussian noise in several phases"
    unused = {
        "max_iter": "the number of rows decides how many phases there are",
    }
    streams = False

    _parameter_constraints = {
        **Solver._parameter_constraints,
        **RESTART_CONSTRAINTS,
        "clipping_norm": SCALE_OR_NONE,
    }

    def __init__(
        self,
        *,
        clipping_norm: float | None = None,
        growth: Literal["halving", "doubling"] | None = None,
        growth_order: float = 2.0,
        failure_probability: float | None = None,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.clipping_norm = clipping_norm
        self.growth = growth
        self.growth_order = growth_order
        self.failure_probability = failure_probability
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the phases from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : LocalizedFit
            The plan.

        Raises
        ------
        ValueError
            If the loss cannot be clipped, or there are too few rows for the runs.
        """
        # a hair less, so that the price of a row is no more than the budget in floats
        mu, longest = problem.mu * (1 - 1e-12), chosen_clip(problem)
        clip, spread, bias = longest, longest, None
        if problem.moments is not None:
            order, bound = problem.moments
            clip_of, bias_of = moment_clip(order, bound, problem.size, mu / problem.moved_rows)
            unclipped = problem.pointwise.lipschitz * problem.row_norm
            spread = min(bound, longest)

            def bias(clip):
                # nothing is cut off gradients that are never longer
                return min(bias_of(clip), max(unclipped - clip, 0.0))

            def clip(n_rows):
                return min(clip_of(n_rows), longest)

        clipped(problem, longest)
        radius = problem.distance
        runs = []
        for first, last in splits(problem.n_rows, self.failure_probability):
            run = []
            for start, stop, factor in restarts(first, last, self.growth, self.growth_order):
                phases = plan_phases(
                    start, stop, size=problem.size, mu=mu, reach=problem.moved_rows,
                    radius=radius * factor, clip=clip, spread=spread, bias=bias,
                    convexity=problem.penalty / problem.n_rows,
                )  # fmt: skip
                run.append((None if self.growth is None else radius * factor, phases))
            runs.append(tuple(run))
        return LocalizedFit(problem, mu, tuple(runs), minimizer_of(problem))


# The schedule of localisation on disjoint batches: rows, pull and clip of every phase.
#
# Phase i minimises the mean loss of its own rows plus ``pull_i/2 |w - w_(i-1)|^2`` and
# releases the result with Gaussian noise. The rows halve and the pull grows sixfold from phase
# to phase, so that the noise, of length about ``clip sqrt(size) / (pull rows signal)``, shrinks
# threefold (Feldman, Koren and Talwar 2020; Xu et al. 2025, Algorithm 3, whose first pull is so
# weak that its noise drowns everything; what is done here is Proposition 52).


#: phases pull at least so much, next to the mean loss: noise must leave floats with digits
WEAKEST_PULL = 1e-50
#: what noise weighs in the first pull, next to chance and bias: the bound of Proposition 52 has
#: sqrt(18) for it and sqrt(6) for chance, which data see less of
NOISE_WEIGHT = 5.0


@dataclass(frozen=True)
class Phase:
    """Rows and parameters of one phase.

    Parameters
    ----------
    start, stop : int
        First row, and the one after the last.
    pull : float
        Strength of ``pull/2 |w - center|^2`` next to the MEAN loss of these rows.
    clip : float
        Bound on the norm of a row's gradient.
    """

    start: int
    stop: int
    pull: float
    clip: float

    @property
    def n_rows(self):
        """Number of rows."""
        return self.stop - self.start


def plan_phases(
    start, stop, *, size, mu, reach, radius, clip, spread, bias=None, convexity=0.0,
    growth=6.0, least=20,
):  # fmt: skip
    """Plan the phases of one run.

    Parameters
    ----------
    start, stop : int
        First row, and the one after the last; at least one row.
    size : int
        Number of coefficients.
    mu, reach : float, int
        Gaussian-DP parameter of every phase, and the number of row gradients in which
        neighbours differ: 1 (zero-out) or 2 (replace-one).
    radius : float
        Bound on the distance of the solution from the starting point.
    clip : float or callable
        Bound on the norm of a row's gradient, or a function from the number of rows of a phase to
        it.
    spread : float
        Square root of a bound on the expected square of that norm.
    bias : callable, default=None
        Function from a clip to a bound on the bias of the expected gradient. None for no bias.
    convexity : float, default=0.0
        Strength of a penalty ``convexity/2 |w|^2`` in the mean loss, which is part of the pull: it
        is subtracted from the pulls. If it is larger than the first pull, they grow from it.
    growth : float, default=6.0
        Factor between the pulls of two phases, greater than 4.
    least : int, default=20
        Least number of rows of a phase, unless it is the only one.

    Returns
    -------
    phases : tuple of Phase
        Phases that read every row once. Each has about half of the rows of the previous one; the
        remainder of the halving is in the first.
    """
    sizes = halved(stop - start, least)
    clips = [float(clip(rows) if callable(clip) else clip) for rows in sizes]
    first = first_pull(sizes[0], size, mu / reach, radius, clips[0], spread, bias)
    # a penalty that pulls harder at the start takes the place of the first pull
    first = max(first, convexity)
    pulls = [max(first * growth**i - convexity, WEAKEST_PULL) for i in range(len(sizes))]
    phases = []
    for rows, pull, bound in zip(sizes, pulls, clips, strict=True):
        phases.append(Phase(start, start + rows, pull, bound))
        start += rows
    return tuple(phases)


def halved(n_rows, least):
    """Return halving numbers of rows, with sum `n_rows` and each at least `least`."""
    n_phases = max(1, int(math.log2(max(1, n_rows // least))))
    sizes = [n_rows >> i for i in range(1, n_phases + 1)]
    sizes[0] += n_rows - sum(sizes)
    return sizes


def first_pull(n_rows, size, signal, radius, clip, spread, bias):
    """Return the pull of the first phase, which balances its bias and its gain.

    For a solution at distance D, a pull p adds p D^2 / 2 to the loss. Clipping, noise and sampling
    add multiples of the squares of the three numbers below, divided by p.
    """
    chance = spread / math.sqrt(n_rows)
    noise = clip * math.sqrt(size) / n_rows / signal
    return math.hypot(chance, NOISE_WEIGHT * noise, bias(clip) if bias else 0.0) / radius


def moment_clip(order, bound, size, signal):
    """Return the clip for a bound on a moment of the gradient, and its bias.

    Parameters
    ----------
    order, bound : float
        ``E |gradient|^order <= bound^order``; the order is greater than 1.
    size, signal : int, float
        Number of coefficients, and mu over the number of gradients that may differ.

    Returns
    -------
    clip, bias : callable
        Functions for `plan_phases`. The clip makes bias and noise equal up to a factor that
        depends only on the order.

    Notes
    -----
    With k = order, ``max(t - C, 0) <= t^k (k - 1)^(k - 1) / (k^k C^(k - 1))``, with equality at t
    = k C / (k - 1): this bounds the part of a gradient of length t that clipping removes.
    """
    share = math.exp((order - 1) * math.log(order - 1) - order * math.log(order))

    def clip(n_rows):
        return bound * (n_rows * signal / math.sqrt(size)) ** (1 / order)

    def bias(clip):
        return bound * share * (bound / clip) ** (order - 1)

    return clip, bias


# of the longest gradient, for smooth losses of two classes: less noise is worth the bias
_DEFAULT_CLIP = 0.5


@dataclass(frozen=True)
class LocalizedFit(Fit):
    """Noisy minimisers on disjoint rows.

    Parameters
    ----------
    problem : Problem
        Public facts.
    mu : float
        Price of a phase, which is also the price of all phases.
    runs : tuple
        Restarts of every run: pairs of the radius of a ball around the starting point (None for no
        ball) and the phases.
    minimizer : {"newton", "lbfgs"}
        Method for the minimisers.
    """

    mu: float
    runs: tuple
    minimizer: str = "newton"
    full_batches = True

    @property
    def n_iter(self):
        """Number of phases of all runs."""
        return sum(len(phases) for run in self.runs for _, phases in run)

    def order(self):
        """Return the order of reading rows: fixed, and far from sorted."""
        return public_order(self.problem.n_rows)

    def run(self, curator):
        """Release one minimiser per phase, and choose among the runs."""
        points = [self._one_run(curator, parts) for parts in self.runs]
        return least_median_distance(points).reshape(self.problem.shape)

    def _one_run(self, curator, parts):
        coef = np.zeros(self.problem.size)
        for radius, phases in parts:
            middle = coef
            for phase in phases:
                query, rows = self._query(phase, coef), (phase.start, phase.stop)
                coef = curator.release(query, GaussianMechanism(self.mu), rows=rows)
                # as for all phases: the square of a norm is finite
                coef = np.clip(coef, -LARGEST_COEF, LARGEST_COEF)
                if radius is None:
                    coef = ball_constraint(coef, self.problem.radius)
                else:
                    coef = two_balls_constraint(coef, self.problem.radius, middle, radius)
        return coef

    def _query(self, phase, coef):
        """Return the query of the minimiser of one phase, with a pull towards `coef`."""
        problem = replace(
            self.problem,
            n_rows=phase.n_rows,
            # next to the sum of the losses of these rows, not of all
            penalty=self.problem.penalty * (phase.n_rows / self.problem.n_rows),
            loss=clipped(self.problem, phase.clip),
        )
        return held_minimizer(problem, phase.pull * phase.n_rows, coef, self.minimizer)


def clipped(problem, clip):
    """Return the loss of a problem, with clipped gradients if they can be longer."""
    loss = problem.loss
    if clip >= loss.lipschitz * problem.row_norm:
        return loss
    return ClippedLoss(problem.pointwise, clip, problem.row_norm)


def chosen_clip(problem):
    """Return the given clip, or a default that beats no clipping on data."""
    smooth = math.isfinite(problem.loss.smoothness) and problem.loss.n_outputs == 1
    known = isinstance(problem.loss, ClippedLoss) or problem.clipping_norm is not None
    return problem.longest_gradient * (_DEFAULT_CLIP if smooth and not known else 1.0)
