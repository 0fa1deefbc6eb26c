# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bias-reduced sparse gradients: noisy gradients cleaned by an oracle, its bias removed.

Ghazi, Guzman, Kamath, Kumar and Manurangsi (2024), Algorithms 3 to 5, with levels drawn in
advance. An oracle denoises the mean gradient of a batch. It is not linear, and smaller batches
have a larger bias. Level k compares a batch with its two halves; its mean is the difference
between two sizes of batches. Every step draws one level, and divides its result by the probability
of the level: in expectation all levels add up to the oracle on all rows (Blanchet and Glynn 2015).
Proofs are in docs/user_guide/proofs_sparse_erm.rst.
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from scipy.special import chdtri

from skdp._recovery.measurements import measurement_matrix, recover
from skdp._recovery.shrinkage import (
    predicted_error,
    project_ksupport,
    soft_threshold,
    sure_threshold,
)
from skdp._rows.base import ball_constraint, row_norms, sum_over
from skdp._sklearn import Interval, StrOptions
from skdp.papers.boosting import BoostingPlan, boost, plan_boosting
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.ledger import SampledCost
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.additive import SampledGaussianMechanism
from skdp.privacy.laws.calibration import mu_beside, sampled_mus
from skdp.solvers.base import Fit, Solver
from skdp.solvers.gradient import (
    GRADIENT_CONSTRAINTS,
    NEVER_PURE,
    ClippedGradient,
    GradientPlan,
    SuffixAverage,
)
from skdp.solvers.sgd import BATCH_SIZE


class BiasReduced(Solver):
    """Noisy sparse gradients cleaned by an oracle, without the bias of small batches.

    Parameters
    ----------
    sparsity : int, default=None
        Public bound on the number of non-zero features of a row; rows with more keep their largest
        entries. None (no bound) is for the oracle "soft-threshold" only.
    oracle : {"soft-threshold", "projection", "sketch"}, default="soft-threshold"
        Method to denoise sparse gradients: the threshold of least estimated risk; projection on
        the averages of sparse gradients; or release of few measurements, and recovery.
    batch_size : float, default=None
        Number of rows of the smallest batches, at most the number of rows. None chooses it from
        public quantities.
    failure_probability : float, default=None
        Several runs with a private choice, so that the bound of [1]_ fails with at most this
        probability. None makes one run.
    clipping_norm : float, default=None
        Bound on the norm of one row's gradient, for rows in units of `data_norm`. None is the
        bound without clipping.
    step_size : float, default=None
        Step along the gradient of the mean loss, for rows in units of `data_norm`. None
        chooses it from public quantities.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    skdp.solvers.LazySGD : More accurate for sparse rows in all our benchmarks.

    Notes
    -----
    Levels are drawn once, in advance. The noise of all releases is the same. Batches are Poisson
    samples, and their halves are included in the accounting.

    References
    ----------
    .. [1] B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially
       private optimization with sparse gradients", NeurIPS 2024, Algorithms 3 to 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, papers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = papers.BiasReduced(sparsity=2, oracle="projection")
    >>> model = DPLogisticRegression(
    ...     epsilon=4.0, solver=solver, data_norm=1.0, max_iter=32, classes=[False, True],
    ...     random_state=0,
    ... )
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    tasks = ("classification",)
    needs_delta = NEVER_PURE

    _parameter_constraints = {
        **GRADIENT_CONSTRAINTS,
        "oracle": [StrOptions({"soft-threshold", "projection", "sketch"})],
        "batch_size": BATCH_SIZE,
        "failure_probability": [Interval(Real, 0, 1, closed="neither"), None],
    }

    def __init__(
        self,
        *,
        sparsity: int | None = None,
        oracle: Literal["soft-threshold", "projection", "sketch"] = "soft-threshold",
        batch_size: float | None = None,
        failure_probability: float | None = None,
        clipping_norm: float | None = None,
        step_size: float | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.sparsity = sparsity
        self.oracle = oracle
        self.batch_size = batch_size
        self.failure_probability = failure_probability
        self.clipping_norm = clipping_norm
        self.step_size = step_size
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the levels and the steps from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : BiasReducedFit
            The plan.

        Raises
        ------
        ValueError
            If the oracle needs a sparsity and none is given, or the budget is too small for the
            steps.
        """
        if self.oracle != "soft-threshold" and problem.sparsity is None:
            raise ValueError(
                f"sparsity must be a number for oracle={self.oracle!r}, which looks for averages "
                "of sparse gradients; got None. oracle='soft-threshold' needs none."
            )
        clip, boosting, n_runs = problem.longest_gradient, None, 1
        priced: tuple[tuple[float, float, int], ...] = ()
        if self.failure_probability is not None:
            boosting = plan_boosting(problem.epsilon, problem.delta, self.failure_probability)
            n_runs = boosting.n_runs
            priced = ((boosting.epsilon_choice, 0.0, 1),)
        n_nonzeros = None
        if problem.sparsity is not None:
            one = min(problem.sparsity, problem.n_features) + bool(problem.intercept)
            n_nonzeros = problem.loss.n_outputs * one
        steps = plan_telescope(
            n_rows=problem.n_rows,
            size=problem.size,
            adjacency=problem.adjacency,
            budget=(problem.epsilon, problem.delta, 0.0, priced),
            clip=clip,
            radius=problem.radius or problem.expected_radius,
            l2=problem.penalty / problem.n_rows,
            intercept=bool(problem.intercept),
            n_nonzeros=n_nonzeros,
            n_steps=problem.max_iter,
            step_size=self.step_size,
            batch_size=self.batch_size,
            n_runs=n_runs,
        )
        oracle = make_oracle(
            self.oracle,
            radius=clip,
            shape=problem.shape,
            intercept=bool(problem.intercept),
            sparsity=problem.sparsity,
            signal=problem.n_rows / steps.sigma,
        )
        return BiasReducedFit(problem, steps, oracle, boosting)


# Gradients without the bias of small batches: a sum over levels that telescopes.

# neighbours in the order of levels are spread over the steps
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Telescope:
    """Sizes of batches, doubling from small ones to all rows.

    Parameters
    ----------
    n_rows, n_levels : int
        Number of rows, and of doublings; with 0 all batches have all rows.
    """

    n_rows: int
    n_levels: int

    def rate(self, size):
        """Return the fraction of rows in batches of a size: 1 for size `n_levels`."""
        return math.ldexp(1.0, size - self.n_levels)

    def batch_size(self, size):
        """Return the expected number of rows of a batch of a size."""
        return self.n_rows * self.rate(size)

    @property
    def probabilities(self):
        """Probability of every level, halving from level to level."""
        weights = np.ldexp(1.0, -np.arange(self.n_levels))
        return weights / weights.sum() if self.n_levels else weights

    def estimate(self, level, smallest, triple, oracle):
        """Return one step's estimate of the gradient of the mean loss.

        Parameters
        ----------
        level : int
            A level, in [0, n_levels); ignored without levels.
        smallest : ndarray
            Released sum over a batch of size 0.
        triple : sequence of three ndarray or None
            Released sums over a batch of size ``level + 1``, and over its two halves.
        oracle : callable
            Maps a noisy mean, and the size of the batch, to a clean one.

        Returns
        -------
        estimate : ndarray
            Estimate; its mean over batches, coins and levels is the oracle on all rows.

        Notes
        -----
        Sums are divided by the expected numbers of rows, because the actual numbers are private.
        """
        total = oracle(smallest / self.batch_size(0), 0)
        if not self.n_levels:
            return total
        whole, *halves = triple
        gain = oracle(whole / self.batch_size(level + 1), level + 1)
        for half in halves:
            gain = gain - 0.5 * oracle(half / self.batch_size(level), level)
        return total + gain / self.probabilities[level]

    def levels(self, n_steps, run=0):
        """Draw the levels of all steps of a run, independently of the rows.

        Parameters
        ----------
        n_steps, run : int
            Number of steps, and index of the run.

        Returns
        -------
        levels : tuple of int
            Each has the distribution `probabilities`, over the public start of the sequence, which
            is drawn once. Each level occurs as often as expected, rounded up or down (systematic
            sampling).

        Notes
        -----
        Levels depend only on the arguments: given the levels, a fit is an ordinary sequence of
        releases. They are never redrawn, which would cause a bias.
        """
        if not self.n_levels:
            return (0,) * n_steps
        word = int(SeededBits(run, "levels of a telescope").words(1)[0])
        start = (word + 0.5) * 2.0**-64
        stride = max(1, round(n_steps * _GOLDEN))
        while math.gcd(stride, n_steps) > 1:
            stride += 1
        places = (start + np.arange(n_steps) * stride % n_steps / n_steps) % 1.0
        found = np.searchsorted(np.cumsum(self.probabilities), places, side="right")
        return tuple(int(level) for level in np.minimum(found, self.n_levels - 1))


def telescoped_descent(gradient, shape, plan):
    """Descend along bias-reduced gradients, in the ball.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape and the number of a step to an estimate of the
        gradient of the mean loss.
    shape : tuple of int
        Shape of the coefficients.
    plan : TelescopePlan
        Steps, step size, penalty, constraint.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the iterates but the first.
    """
    coef = np.zeros(shape)
    average = SuffixAverage(shape, plan.n_steps)
    for step in range(plan.n_steps):
        coef = plan.step(coef, gradient(coef, step), plan.step_size)
        average.add(coef)
    return average.value


# The plan of bias-reduced gradients, made from public quantities before any data.


# doublings that are tried, and expected rows of the smallest batches that they may lead to
_MOST_LEVELS, _SMALLEST_BATCH = 8, 16
# steps that are tried: more bring nothing that could be measured, or take too long
_FEWEST_STEPS, _MOST_STEPS = 8, 256
# On data a gradient has about this part of its largest norm.
_TYPICAL = 0.3
# numbers that all steps together may draw
_MOST_NUMBERS = 5e8


@dataclass(frozen=True)
class TelescopePlan(GradientPlan):
    """Plan of bias-reduced descent, fixed before any row is read.

    Parameters
    ----------
    telescope : Telescope
        Sizes of batches.
    levels : tuple of tuple of int
        The level of every step, for every run.
    costs : tuple of (int or None, SampledCost)
        Releases on the smallest batches (None), then of every drawn level: sampling of the
        batches, sensitivity over noise, and number of releases in all runs.
    sigma : float
        Noise of every coordinate of every released sum, in units of the longest
        contribution of a row: the same for all sizes of batches.
    """

    telescope: Telescope
    levels: tuple = field(repr=False)
    costs: tuple
    sigma: float

    @property
    def n_runs(self):
        """Number of runs, of `n_steps` steps each."""
        return len(self.levels)


@dataclass(frozen=True)
class _Guess:
    """Expected performance for a number of levels and of steps."""

    telescope: Telescope
    n_steps: int
    #: by how much an estimate differs from the gradient, root mean square, and error of the
    #: oracle on all rows, in units of the longest gradient
    spread: float
    bias: float

    @property
    def bound(self):
        """Bound on the excess loss, in units of radius and longest gradient."""
        return math.hypot(1.0, self.spread) / math.sqrt(self.n_steps) + self.bias

    @property
    def misses_levels(self):
        """Whether there are fewer steps than the inverse of the smallest level probability."""
        return self.n_steps < 2**self.telescope.n_levels - 1


def _guess(telescope, n_steps, facts):
    """Return a guess, from the variances of releases at small rates (Theorem 5.7)."""
    J, p = telescope.n_levels, telescope.probabilities
    rates = np.ldexp(1.0, np.arange(J + 1) - J)
    cost = rates[0] ** 2 + 2 * np.sum(p * rates[1:] ** 2)
    sigma = facts["moved"] * math.sqrt(facts["n_runs"] * n_steps * cost) / facts["mu"]
    errors = np.array(
        [
            predicted_error(
                "gaussian", sigma / facts["n_rows"] / rate, facts["size"], facts["n_nonzeros"]
            )
            for rate in rates
        ]
    )
    gain = np.sum((errors[:-1] ** 2 + errors[1:] ** 2) / p) if J else 0.0
    spread = math.sqrt(errors[0] ** 2 + gain)
    return _Guess(telescope, n_steps, spread, float(errors[-1]))


def plan_telescope(
    *,
    n_rows,
    size,
    adjacency,
    budget,
    clip,
    radius,
    l2,
    intercept,
    n_nonzeros=None,
    n_steps=None,
    step_size=None,
    batch_size=None,
    n_runs=1,
):
    """Choose levels, steps and noise from public quantities.

    Parameters
    ----------
    n_rows, size, adjacency : int, int, {"replace-one", "zero-out"}
        Number of rows, number of coefficients, and adjacency.
    budget : tuple (epsilon, delta, mu, priced)
        Total budget, and prices of the other releases: a Gaussian-DP parameter, and a tuple of
        (epsilon, delta, count) with at most one part.
    clip, radius, l2, intercept : float, float, float, bool
        Bound on a row's gradient; the others as in `GradientPlan`.
    n_nonzeros : int, default=None
        Bound on the number of non-zeros of a row's gradient. None for any number.
    n_steps, step_size, batch_size : int, float, float, default=None
        Given by the user, or None to be chosen here. The smallest batches have about `batch_size`
        rows.
    n_runs : int, default=1
        Number of runs that share the budget.

    Returns
    -------
    plan : TelescopePlan
        A plan without levels if the bound is better for all rows in every step, or if there are
        too few rows.

    Raises
    ------
    ValueError
        If a batch is larger than the data, or the budget too small for the steps.
    """
    epsilon, delta, mu, priced = budget
    spent = sum(part for part, _, _ in priced)
    facts = {
        "n_rows": n_rows, "size": size, "n_nonzeros": min(n_nonzeros or size, size),
        "moved": 2 if adjacency == "replace-one" else 1, "n_runs": n_runs,
        "mu": mu_beside(epsilon, delta, spent, mu),
    }  # fmt: skip
    guesses = (
        _guess(Telescope(n_rows, n_levels), steps, facts)
        for n_levels, steps in itertools.product(
            _levels_to_try(n_rows, batch_size), _steps_to_try(n_steps, size)
        )
    )
    # every level shall be drawn at least once, if possible
    best = min(guesses, key=lambda guess: (guess.misses_levels, guess.bound))
    levels = tuple(best.telescope.levels(best.n_steps, run) for run in range(n_runs))
    costs = _priced_levels(best, levels, facts, adjacency, budget)
    # all kinds of releases have the same noise
    sigma = (1 if best.telescope.n_levels else facts["moved"]) / costs[0][1].mu
    if step_size is None:
        length = math.hypot(_TYPICAL, best.spread)
        step_size = radius / (clip * length * math.sqrt(best.n_steps))
    return TelescopePlan(
        n_steps=best.n_steps,
        mu=facts["mu"],
        clip=clip,
        step_size=step_size,
        adaptive=False,
        noise=sigma * clip / n_rows,
        l2=l2,
        radius=radius,
        intercept=intercept,
        telescope=best.telescope,
        levels=levels,
        costs=costs,
        sigma=sigma,
    )


def _priced_levels(guess, levels, facts, adjacency, budget):
    """Return the price of every kind of release, with the same noise for all."""
    epsilon, delta, mu, priced = budget
    telescope, n_rows = guess.telescope, facts["n_rows"]
    n_levels, n_steps = telescope.n_levels, guess.n_steps * len(levels)
    if not n_levels:
        full = Sampling("poisson", n_rows, n_rows)
        mu_step = facts["mu"] / math.sqrt(n_steps) * (1 - 1e-12)
        return ((None, SampledCost(full, mu_step, adjacency, n_steps)),)
    drawn = np.bincount(np.concatenate(levels), minlength=n_levels)
    # a row of a level's batch is in one of its halves too
    parts = [(None, 0, 1.0, n_steps)]
    parts += [(k, k + 1, math.sqrt(2.0), int(drawn[k])) for k in range(n_levels) if drawn[k]]
    costs = []
    for _, size, reach, count in parts:
        sampling = Sampling("poisson", n_rows, telescope.batch_size(size))
        # where chance has no part, neighbours are as far apart as the adjacency says
        moved = facts["moved"] if sampling.reads_all else 1
        costs.append(SampledCost(sampling, moved * reach, adjacency, count))
    mus = sampled_mus(epsilon, delta, tuple(costs), mu, tuple(priced))
    return tuple(
        (part[0], replace(cost, mu=one)) for part, cost, one in zip(parts, costs, mus, strict=True)
    )


def _levels_to_try(n_rows, batch_size):
    """Return candidate numbers of doublings from the smallest batches to all rows."""
    if batch_size is not None:
        if not 1 <= batch_size <= n_rows:
            raise ValueError(
                "batch_size, the rows of the smallest batches, must be at least 1 and at most the "
                f"number of rows, {n_rows}; got {batch_size!r}."
            )
        return [math.floor(math.log2(n_rows / batch_size))]
    return [
        levels
        for levels in range(_MOST_LEVELS + 1)
        if levels == 0 or n_rows >= _SMALLEST_BATCH * 2**levels
    ]


def _steps_to_try(n_steps, size):
    """Return candidate numbers of steps: powers of 2, and midpoints between them."""
    if n_steps is not None:
        return [n_steps]
    # a step draws noise for four sums
    most = min(_MOST_STEPS, max(_FEWEST_STEPS, _MOST_NUMBERS / 4 / size))
    powers = [2.0**i for i in range(3, 9)]
    tried = sorted({round(p * factor) for p in powers for factor in (1.0, math.sqrt(2))})
    return [steps for steps in tried if steps <= most]


# The clipped gradient of a batch, and of two halves that public coins make of it.


# numbers of the measurements that are held at once
_AT_ONCE = 1 << 21


def public_coins(step, positions):
    """Return a fixed public fair coin for every row.

    Parameters
    ----------
    step : int
        Number of the release; coins of different releases are independent.
    positions : ndarray of shape (n_rows,)
        Positions of rows in the data, sorted.

    Returns
    -------
    heads : ndarray of shape (n_rows,), dtype bool
        Coins, functions of the step and of the row's own position.
    """
    if not len(positions):
        return np.zeros(0, dtype=bool)
    words = SeededBits(step, "halves of a batch").words(1 + int(positions[-1]) // 64)
    places = positions.astype(np.uint64)
    return (words[positions // 64] >> (places % np.uint64(64))) & np.uint64(1) == 1


class SplitRows:
    """Rows in pairs of chunks: rows with heads, and the others."""

    def __init__(self, rows, step):
        self.n_entries, self.n_threads = rows.n_entries, rows.n_threads
        n_rows = rows.n_rows
        heads = public_coins(step, np.arange(n_rows) if rows.positions is None else rows.positions)
        self.chunks, first = [], 0
        for chunk in rows.chunks:
            side = heads[first : first + len(chunk.norm)]
            # looked at one after another: copies of a chunk are made when it is its turn
            self.chunks.append((chunk, side))
            first += len(chunk.norm)


@dataclass(frozen=True, eq=False)
class TelescopedGradient:
    """Sums of clipped gradients over a batch and over its two halves, side by side.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Point of the gradient; an intercept comes last.
    loss : object
        Pointwise loss.
    clip : float
        Bound on the Euclidean (for several outputs, Frobenius) norm of one row's gradient,
        intercept included.
    step : int or None
        Number of the coins that assign rows to the halves; None for the batch without halves.
    measurement : Measurement or None, default=None
        Public matrix of shape (n_measurements, n_coefs); it measures the gradient of every output,
        and the sums are over measurements. None for the gradient itself.
    radius : float, default=inf
        Bound on the norm of the measurements of one row's gradient.

    Notes
    -----
    Rows are `LinearRows`, all of them or a batch. The gradient is as in `ClippedGradient`.
    """

    # nothing is measured
    may_be_infinite: ClassVar[tuple[str, ...]] = ("radius",)

    coef: Any
    loss: Any
    clip: float
    step: int | None
    measurement: Any = None
    radius: float = math.inf

    @property
    def name(self):
        """Name of the statistic, the same for all points and all coins."""
        what = f"gradient of {type(self.loss).__name__}, clipped to {self.clip:.6g}"
        if self.measurement is not None:
            what = f"{self.measurement.shape[0]} measurements of the {what}"
        return what if self.step is None else what + ", of a batch and of its halves"

    @property
    def width(self):
        """Length of one sum."""
        if self.measurement is None:
            return self.coef.size
        return self.loss.n_outputs * self.measurement.shape[0]

    @property
    def size(self):
        """Number of coordinates."""
        return self.width if self.step is None else 3 * self.width

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: sqrt(2) times the longest contribution, or twice that.

        Proof. Let g be the clipped gradient of a row, or its measurements: its norm is at most
        C, the clipping norm or the radius. The coin of a row is public, and a function of its
        position: a row of the batch contributes (g, g, 0) or (g, 0, g), of norm at most
        sqrt(2) C, and nothing otherwise. Zero-out removes one contribution; replace-one
        exchanges one for another (triangle inequality). Without halves it contributes g.
        """
        longest = self.clip if self.measurement is None else self.radius
        reach, theorem = longest, "a row's contribution is clipped"
        if self.step is not None:
            reach = math.sqrt(2.0) * longest
            theorem = "a row's contribution is clipped, and counts in the batch and in one half"
        if adjacency != "zero-out":
            reach, theorem = 2 * reach, theorem.replace("a row's", "each of two rows'", 1)
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * longest, theorem=theorem)

    def summed(self, chunk):
        """Return the sum of one chunk's contributions, a fresh array of shape (width,)."""
        if self.measurement is None:
            return ClippedGradient(self.coef, self.loss, self.clip).partial(chunk)
        chunk = chunk.widened()
        total = np.zeros((self.loss.n_outputs, self.measurement.shape[0]))
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        residual = residual[:, None] if residual.ndim == 1 else residual
        length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
        step = max(1, _AT_ONCE // total.shape[1])
        for start in range(0, len(residual), step):
            rows = slice(start, start + step)
            with np.errstate(under="ignore"):
                # products of sparse rows are made row by row: no row rounds another
                sketches = self.measurement.sketches(sparse.csr_array(chunk.taken(rows).explicit()))
                limit = np.minimum(
                    self.clip / chunk.norm[rows],
                    self.radius / np.maximum(row_norms(sketches), 1e-100),
                )
                weight = limit / np.maximum(length[rows], limit + 1e-300)
                weight[np.isinf(chunk.norm[rows])] = 0.0
                total += (sketches.T @ (weight[:, None] * residual[rows])).T
        return total.ravel()

    def partial(self, split):
        """Return the sums of a chunk and of its halves, one after another.

        The sum over the chunk is the sum over its halves: a row changes no bit of the other half.
        """
        chunk, heads = split
        halves = [self.summed(chunk.taken(np.flatnonzero(side))) for side in (heads, ~heads)]
        return np.concatenate([halves[0] + halves[1], *halves])

    def evaluate(self, rows):
        """Return the sums over the batch and its halves, an array of shape (size,)."""
        if self.step is None:
            return sum_over(rows, self.summed, self.size)
        return sum_over(SplitRows(rows, self.step), self.partial, self.size)


# What is made of the noisy mean of sparse gradients: shrunken, projected, or recovered.
#
# Every oracle is a function of released numbers, never sees a row, and returns a vector of
# bounded norm: a level that is seldom drawn is multiplied by a large number.


# share of the gradients that are clipped although their measurements are typical
_CLIPPED = 1e-3
# fewer measurements than this recover nothing
_FEWEST = 16


@dataclass(frozen=True)
class SoftThresholdOracle:
    """The soft threshold of least estimated risk, then the ball.

    Parameters
    ----------
    radius : float
        Bound on the norm of a gradient.
    shape : tuple of int
        Shape of the coefficients.
    intercept : bool
        Whether the last coefficient of every output is an intercept; its gradient is not sparse,
        and stays unchanged.
    """

    radius: float
    shape: tuple
    intercept: bool
    #: sums of gradients themselves are released
    measurement = None

    def __call__(self, mean, scale):
        """Return a clean gradient, flattened, from a noisy one and the noise of an entry."""
        clean = np.array(mean).reshape(self.shape)
        body = clean[..., :-1] if self.intercept else clean
        if body.size:
            flat = body.ravel()
            threshold, _ = sure_threshold(flat, scale)
            body[...] = soft_threshold(flat, threshold).reshape(body.shape)
        return ball_constraint(clean.ravel(), self.radius)


@dataclass(frozen=True)
class ProjectionOracle:
    """The nearest point among averages of sparse and short gradients.

    Parameters
    ----------
    radius, n_nonzeros : float, int
        Bounds on the norm of a row's gradient, and on the number of its non-zeros.
    """

    radius: float
    n_nonzeros: int
    #: sums of gradients themselves are released
    measurement = None

    def __call__(self, mean, scale):
        """Return a clean gradient, flattened, from a noisy one."""
        return ball_constraint(project_ksupport(mean, self.n_nonzeros, self.radius), self.radius)


@dataclass(frozen=True)
class SketchOracle:
    """Recovery from measurements: least squares over the l1 ball, one output at a time.

    Parameters
    ----------
    radius, n_nonzeros : float, int
        Bounds on the norm of a row's gradient, and on the number of its non-zeros in one
        output.
    measurement : Measurement
        Public matrix of shape (n_measurements, n_coefs).
    """

    radius: float
    n_nonzeros: int
    measurement: Any

    @property
    def longest(self):
        """Clipping norm of the measurements of a row's gradient."""
        typical = math.sqrt(chdtri(self.measurement.shape[0], _CLIPPED) / self.measurement.shape[0])
        stretch = min(math.sqrt(self.n_nonzeros), typical, self.measurement.stretch)
        return self.radius * float(stretch)

    def __call__(self, mean, scale):
        """Return a gradient, flattened, from noisy measurements of every output."""
        found = [
            recover(
                self.measurement,
                part,
                "constrained",
                radius=self.radius * math.sqrt(self.n_nonzeros),
                solver="first-order",
            )
            for part in mean.reshape(-1, self.measurement.shape[0])
        ]
        return ball_constraint(np.concatenate(found), self.radius)


def make_oracle(name, *, radius, shape, intercept, sparsity, signal):
    """Return an oracle.

    Parameters
    ----------
    name : {"soft-threshold", "projection", "sketch"}
        Which.
    radius, shape, intercept : float, tuple of int, bool
        Bound on a row's gradient, shape of the coefficients, and whether the last one is an
        intercept.
    sparsity : int or None
        Number of features of a row that are not zero.
    signal : float
        Norm of a row's gradient times the number of rows, over the noise of an entry of the sum;
        it determines the number of measurements.

    Returns
    -------
    oracle : callable
        Maps a noisy mean and its noise to a clean gradient.

    Raises
    ------
    ValueError
        If the oracle needs a sparsity and none is given.
    """
    if name == "soft-threshold":
        return SoftThresholdOracle(radius, shape, intercept)
    if sparsity is None:
        raise ValueError(
            f"sparsity must be a number for oracle={name!r}, which looks for averages of sparse "
            "gradients; got None. oracle='soft-threshold' needs none."
        )
    n_nonzeros = min(sparsity + intercept, shape[-1])
    n_outputs = math.prod(shape[:-1])
    if name == "projection":
        return ProjectionOracle(radius, n_outputs * n_nonzeros)
    wanted = signal * math.sqrt(2 * n_nonzeros * max(1.0, math.log(shape[-1] / n_nonzeros)))
    m = int(min(shape[-1], max(_FEWEST, wanted)))
    return SketchOracle(radius, n_nonzeros, measurement_matrix("auto", m, shape[-1]))


@dataclass(frozen=True)
class BiasReducedFit(Fit):
    """Steps along gradients cleaned by an oracle; several runs with `failure_probability`.

    Parameters
    ----------
    problem : Problem
        Public facts.
    steps : TelescopePlan
        Levels, prices and steps of all runs.
    oracle : object
        Function from a noisy mean gradient to a clean one.
    boosting : BoostingPlan or None
        Price of the choice between runs; None for one run.
    """

    steps: TelescopePlan
    oracle: Any
    boosting: BoostingPlan | None = None

    @property
    def n_iter(self):
        """Number of steps of all runs."""
        return self.steps.n_steps * self.steps.n_runs

    @property
    def n_releases(self):
        """Number of releases: one per step for every level, and the choice between runs."""
        return sum(cost.count for _, cost in self.steps.costs) + (self.boosting is not None)

    def run(self, curator):
        """Charge for all steps, make them, and choose one of several runs."""
        steps, problem, oracle = self.steps, self.problem, self.oracle
        longest = steps.clip if oracle.measurement is None else oracle.longest

        def query(coef, step):
            return TelescopedGradient(
                coef, problem.loss, steps.clip, step, oracle.measurement, longest
            )

        paid = {
            level: curator.prepay(
                query(np.zeros(problem.shape), None if level is None else 0),
                SampledGaussianMechanism(cost.mu, cost.sampling),
                cost.count,
            )
            for level, cost in steps.costs
        }
        telescope, noise = steps.telescope, steps.sigma * longest

        def cleaned(mean, size):
            return oracle(mean, noise / telescope.batch_size(size))

        def one_run(run):
            def gradient(coef, step):
                level, triple = steps.levels[run][step], None
                smallest = curator.release(query(coef, None), paid[None])
                if telescope.n_levels:
                    number = run * steps.n_steps + step
                    triple = curator.release(query(coef, number), paid[level]).reshape(3, -1)
                found = telescope.estimate(level, smallest, triple, cleaned)
                return found.reshape(problem.shape)

            return telescoped_descent(gradient, problem.shape, steps)

        if self.boosting is None:
            return one_run(0)
        runs = iter(range(steps.n_runs))
        chosen = boost(
            curator, lambda: one_run(next(runs)).ravel(), self.boosting, problem.loss,
            problem.row_norm,
        )  # fmt: skip
        return chosen.reshape(problem.shape)
