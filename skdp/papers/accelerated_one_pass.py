# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated noisy gradients on disjoint rows, one part per step.

Algorithm 6 of Xu et al. (2025) without shuffling: on disjoint rows every step has the whole
budget, exactly and for any epsilon, while shuffling needs ten times the noise (Proposition 54).
`growth` restarts it in shrinking balls (their Algorithm 7), `failure_probability` runs it several
times on disjoint rows and keeps a central point (Proposition 56).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from skdp._rows.base import two_balls_constraint
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.solvers.base import LARGEST_L2, Fit, Solver
from skdp.solvers.disjoint import (
    RESTART_CONSTRAINTS,
    even_parts,
    least_median_distance,
    public_order,
    restarts,
    splits,
)
from skdp.solvers.gradient import (
    GRADIENT_CONSTRAINTS,
    NEVER_PURE,
    ClippedGradient,
    GradientPlan,
    StepSize,
)


class AcceleratedOnePass(Solver):
    """Accelerated noisy gradients on disjoint rows, one part per step.

    For the loss on new rows. All rows must be in memory.

    Parameters
    ----------
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
    clipping_norm : float, default=None
        Bound on the norm of one row's gradient, for rows in units of `data_norm`. None chooses it
        from public quantities. Not for regressors, which have their own `clipping_norm`.
    step_size : float, default=None
        Step along the gradient of the mean loss, for rows in units of `data_norm`. None chooses
        it, and shortens it if released gradients show curvature.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    skdp.solvers.Accelerated : All rows in every step; more accurate in our benchmarks.

    Notes
    -----
    On disjoint rows every step has the whole budget, exactly and for any epsilon; the published
    shuffling needs ten times the noise (Proposition 54).

    References
    ----------
    .. [1] D. Xu, M. Ding, Z. Xiang, J. Xu and D. Wang, "Beyond ordinary Lipschitz
       constraints: differentially private stochastic optimization with Tsybakov noise
       condition", 2025, Algorithms 6 and 7, with corrections.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, papers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = papers.AcceleratedOnePass()
    >>> model = DPLogisticRegression(solver=solver, classes=[False, True], random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    needs_delta = NEVER_PURE
    streams = False

    _parameter_constraints = {
        **GRADIENT_CONSTRAINTS,
        **RESTART_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        growth: Literal["halving", "doubling"] | None = None,
        growth_order: float = 2.0,
        failure_probability: float | None = None,
        clipping_norm: float | None = None,
        step_size: float | None = None,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.growth = growth
        self.growth_order = growth_order
        self.failure_probability = failure_probability
        self.clipping_norm = clipping_norm
        self.step_size = step_size
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : AcceleratedOnePassFit
            The plan.

        Raises
        ------
        ValueError
            If there are too few rows for the runs.
        """
        loss, distance = problem.loss, problem.radius or problem.expected_radius
        if problem.radius is None and problem.flat:
            distance = min(distance, _FLAT_DISTANCE)
        # most rows are in the unit ball, but for the constant feature
        smoothness = _CURVATURE * min(loss.smoothness, 1.0) * (1.0 + problem.intercept**2)
        # a loss that is clipped says at what norm
        clip = problem.clipping_norm if problem.pointwise is loss else problem.longest_gradient
        parts = splits(problem.n_rows, self.failure_probability)
        restarted = [restarts(start, stop, self.growth, self.growth_order) for start, stop in parts]
        most_steps = MOST_STEPS // sum(len(run) for run in restarted)

        def planned(start, stop, factor):
            steps = plan_approximation(
                n_rows=stop - start,
                n_coefs=problem.size,
                mu=problem.mu,
                reach=problem.moved_rows,
                longest=problem.longest_gradient,
                smoothness=smoothness,
                distance=distance * factor,
                clip=clip if problem.moments is None else problem.clipping_norm,
                moments=problem.moments,
                l2=problem.penalty / problem.n_rows,
                radius=problem.radius,
                intercept=problem.intercept,
                n_steps=problem.max_iter,
                step_size=self.step_size,
                most_steps=most_steps,
            )
            reach = None if self.growth is None else distance * factor
            return Restart(start, stop, reach, steps)

        runs = tuple(tuple(planned(*restart) for restart in run) for run in restarted)
        return AcceleratedOnePassFit(problem, runs)


# Accelerated stochastic approximation: averaged steps that grow, whatever the noise.
#
# AC-SA of Ghadimi and Lan (2012), with gradients that are noisy and clipped (Xu et al. 2025,
# Algorithm 6). Its steps are planned for the noise, as those of Nesterov's method are not: with
# T steps, noise of standard deviation S and a solution at distance D the error is of order
# ``beta D^2 / T^2 + D S / sqrt(T)``, beta being the curvature of the mean loss. Proposition 54
# of the user guide has the constants.


#: steps, at least and at most, unless another number is asked for; with few rows one for each
FEWEST_STEPS, MOST_STEPS = 5, 200
# part of the longest gradient that rows are clipped to; chosen on data
_CLIP_SHARE = 0.5


@dataclass(frozen=True)
class ApproximationPlan(GradientPlan):
    """Plan of accelerated stochastic approximation, fixed before any row is read.

    Parameters
    ----------
    error_bound : float
        Bound on the expected excess of the mean loss, under the plan's assumptions on the distance
        of the solution and on the curvature.

    Notes
    -----
    Every step reads its own rows and has the whole of `mu`. `step_size` is the inverse of eta in
    Proposition 54; `noise` is the standard deviation of a coordinate, batches included.
    """

    error_bound: float = math.inf

    @property
    def mu_step(self):
        """Price of one step; no two steps read the same row."""
        return self.mu


def plan_approximation(
    *,
    n_rows,
    n_coefs,
    mu,
    reach,
    longest,
    smoothness,
    distance,
    clip=None,
    moments=None,
    l2=0.0,
    radius=None,
    intercept=False,
    n_steps=None,
    step_size=None,
    most_steps=MOST_STEPS,
):
    """Choose steps, step size and clipping with the least proved error.

    Parameters
    ----------
    n_rows, n_coefs : int
        Number of rows for all steps, and number of coefficients.
    mu, reach : float, int
        Gaussian-DP price of every step, and the number of row gradients in which neighbours
        differ: 1 (zero-out) or 2 (replace-one).
    longest : float
        Bound on the norm of a row's gradient.
    smoothness, distance : float
        Assumed curvature of the mean loss, and assumed distance of the solution from the start.
    clip : float, default=None
        Given clipping norm; None is half of `longest`, or follows from moments.
    moments : tuple of (float, float), default=None
        Order k > 1 and bound r_k: the k-th moment of a gradient's norm is at most r_k^k.
    l2, radius, intercept : float, float or None, bool
        As in `GradientPlan`.
    n_steps, step_size : int, float
        Given by the user, or None to be chosen here. Every step has at least one row.
    most_steps : int, default=MOST_STEPS
        Largest number chosen here.

    Returns
    -------
    plan : ApproximationPlan
        The plan.
    """
    if n_steps is None:
        fewest = min(FEWEST_STEPS, n_rows)
        steps = np.arange(fewest, max(fewest, min(most_steps, n_rows)) + 1.0)
    else:
        steps = np.array([float(min(n_steps, n_rows))])
    # of the smallest part
    rows = np.floor(n_rows / steps)
    # the noise of T averaged gradients counts like that of one, times this
    share = np.sqrt((2 * steps + 1) / (3 * steps * (steps + 1)))
    noise = reach / (rows * mu)
    # whoever asks for absurd moments or distances gets few steps, and no warning
    with np.errstate(over="ignore", under="ignore"):
        price = 2 * share * math.sqrt(n_coefs) * noise
        clips, spread, bias = _clips(price, longest, clip, moments)
        noise = noise * clips
        spread = spread / np.sqrt(rows)
        both = np.hypot(math.sqrt(n_coefs) * noise, spread)
        errors = 4 * smoothness * np.square(distance) / (steps * (steps + 1))
        errors += 2 * distance * (share * both + bias)
    best = int(np.argmin(errors))
    T, adaptive = steps[best], step_size is None
    if adaptive:
        eta = both[best] * math.sqrt(T * (T + 1) * (2 * T + 1) / 12) / distance
        step_size = 1 / max(2 * smoothness, eta)
    return ApproximationPlan(
        n_steps=int(T),
        mu=mu,
        clip=float(clips[best]),
        step_size=float(step_size),
        adaptive=adaptive,
        noise=math.hypot(noise[best], spread[best]),
        l2=l2,
        radius=radius,
        intercept=bool(intercept),
        error_bound=float(errors[best]) if adaptive else math.inf,
    )


def _clips(price, longest, clip, moments):
    """Return the clipping norm and its effect on gradients, for every number of steps.

    Parameters
    ----------
    price : ndarray
        Loss by noise, per unit of the clipping norm and of the distance.
    longest, clip, moments
        As in `plan_approximation`.

    Returns
    -------
    clips, spread, bias : ndarray, ndarray, ndarray
        The clipping norm, a bound on the root mean square of a clipped gradient, and a bound on
        the bias of the expected gradient by clipping (0 without known moments).
    """
    if moments is None:
        norm = _CLIP_SHARE * longest if clip is None else min(clip, longest)
        clips = np.full(len(price), float(norm))
        return clips, clips, np.zeros(len(price))
    order, bound = moments
    part = (order - 1) / order
    if clip is None:
        # where the price and twice the bias are least
        clips = np.minimum(part * bound * (2 / price) ** (1 / order), longest)
    else:
        clips = np.full(len(price), float(min(clip, longest)))
    spread = np.minimum(clips, bound if order >= 2 else clips * (bound / clips) ** (order / 2))
    return clips, spread, bound / order * (part * bound / clips) ** (order - 1)


def stochastic_approximation(gradient, shape, plan, start=None, reach=None):
    """Descend along released gradients, with growing steps and averaging.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape to a released gradient of the mean loss; called once
        per step.
    shape : tuple of int
        Shape of the coefficients.
    plan : ApproximationPlan or GradientPlan
        Steps, step size, penalty, constraint.
    start : ndarray of shape `shape`, default=None
        Released point in the ball of the plan; None for the origin.
    reach : float, default=None
        The coefficients stay within this distance of the start; None for any.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the iterates, with weights proportional to their index.

    Notes
    -----
    Step t takes the gradient at ``(1 - a) average + a coef``, a = 2 / (t + 1), and moves `coef` by
    t/2 times the step size. The first weight a is 1, so the start has no weight; the theorem needs
    this, and the published 2 / (t + 2) does not satisfy it. If the released gradients show a
    larger curvature than planned, the steps are shortened.
    """
    start = np.zeros(shape) if start is None else start
    coef = average = start
    step_size, free = StepSize(plan), replace(plan, radius=None)
    for t in range(1, plan.n_steps + 1):
        weight = 2 / (t + 1)
        ahead = (1 - weight) * average + weight * coef
        released = gradient(ahead)
        length = t / 2 * step_size.at(ahead, released)
        if reach is None:
            coef = plan.step(coef, released, length)
        else:
            moved = free.step(coef, released, length).ravel()
            coef = two_balls_constraint(moved, plan.radius, start.ravel(), reach).reshape(shape)
        average = (1 - weight) * average + weight * coef
    return average


# curvature of the mean loss, as a part of the largest that a row may have: rows are spread
# over many directions. Chosen on data; where it is more, the steps are shortened in flight.
_CURVATURE = 1 / 16
# Where the loss has no curvature at its minimum, noise that has come in stays: fewer steps, as for
# a solution that is not further away than this, are better on data.
_FLAT_DISTANCE = 4.0


@dataclass(frozen=True)
class Restart:
    """One descent: its rows and steps.

    Parameters
    ----------
    start, stop : int
        First row, and the one after the last.
    reach : float or None
        Radius of a ball around the starting point for the iterates; None for no ball.
    steps : ApproximationPlan
        Steps.
    """

    start: int
    stop: int
    reach: float | None
    steps: ApproximationPlan

    @property
    def parts(self):
        """Rows of every step: disjoint, of nearly equal size, and together all rows."""
        return even_parts(self.start, self.stop, self.steps.n_steps)


@dataclass(frozen=True)
class AcceleratedOnePassFit(Fit):
    """Descents on disjoint rows.

    Parameters
    ----------
    problem : Problem
        Public facts.
    runs : tuple of tuple of Restart
        Descents of every run, each from the result of the previous one.
    """

    runs: tuple
    full_batches = True

    @property
    def n_iter(self):
        """Number of steps of all runs."""
        return sum(restart.steps.n_steps for run in self.runs for restart in run)

    def order(self):
        """Return the order of reading rows: fixed, and far from sorted."""
        return public_order(self.problem.n_rows)

    def rescaled(self, radius):
        """Return the plan for rows in units of a released radius, with the penalty adjusted."""

        def moved(restart):
            l2 = min(restart.steps.l2 / radius / radius, LARGEST_L2)
            return replace(restart, steps=replace(restart.steps, l2=l2))

        return replace(self, runs=tuple(tuple(moved(one) for one in run) for run in self.runs))

    def run(self, curator):
        """Release one gradient per step and descend along it; choose among the runs."""
        points = [self._one_run(curator, run).ravel() for run in self.runs]
        return least_median_distance(points).reshape(self.problem.shape)

    def _one_run(self, curator, run):
        coef = np.zeros(self.problem.shape)
        for restart in run:
            gradient = self._gradients(curator, restart)
            coef = stochastic_approximation(
                gradient, self.problem.shape, restart.steps, coef, restart.reach
            )
        return coef

    def _gradients(self, curator, restart):
        """Return a function that releases the mean gradient of the next rows."""
        parts, mechanism = iter(restart.parts), GaussianMechanism(restart.steps.mu_step)

        def gradient(coef):
            start, stop = next(parts)
            query = ClippedGradient(coef, self.problem.pointwise, restart.steps.clip)
            released = curator.release(query, mechanism, rows=(start, stop))
            return released.reshape(coef.shape) / (stop - start)

        return gradient
