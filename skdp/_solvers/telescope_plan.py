# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The plan of bias-reduced gradients, made from public quantities before any data."""

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._solvers.budget import mu_beside
from skdp._solvers.gradient_plan import GradientPlan
from skdp._solvers.sparse_mean_noisy import predicted_error
from skdp._solvers.telescope import Telescope
from skdp.privacy import Sampling
from skdp.privacy._composition import SampledCost
from skdp.privacy._sampled_gaussian import sampled_mus

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
    """What bias-reduced descent will do: fixed before the data are touched.

    Parameters
    ----------
    telescope : Telescope
        Sizes of batches.
    levels : tuple of tuple of int
        The level of every step, for every run.
    costs : tuple of (int or None, SampledCost)
        Releases on the smallest batches (None), then those of every level that is drawn: how
        the batches are drawn, sensitivity over noise, and how many there are in all runs.
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
    """What may be expected of a number of levels and of steps."""

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
        """Whether there are fewer steps than one over the smallest probability of a level."""
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
        Number of rows, number of coefficients, and what is promised.
    budget : tuple (epsilon, delta, mu, priced)
        Of everything, and what else is released: a Gaussian-DP parameter, and a tuple of
        (epsilon, delta, count), with one part at most.
    clip, radius, l2, intercept : float, float, float, bool
        Bound on a row's gradient; the rest as in `GradientPlan`.
    n_nonzeros : int, default=None
        Bound on the number of non-zeros of a row's gradient. None for any number.
    n_steps, step_size, batch_size : int, float, float, default=None
        Given by the user, or None to be chosen here. Batches of about `batch_size` rows are
        the smallest.
    n_runs : int, default=1
        Number of runs that share the budget.

    Returns
    -------
    plan : TelescopePlan
        With no level at all where the bound says that all rows in every step are better, or
        where there are too few rows.

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
    costs = _priced(best, levels, facts, adjacency, budget)
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


def _priced(guess, levels, facts, adjacency, budget):
    """Return the price of every kind of release, all of them with the same noise."""
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
    """Return numbers of doublings from the smallest batches to all rows."""
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
    """Return numbers of steps: powers of 2, and others halfway between two of them."""
    if n_steps is not None:
        return [n_steps]
    # a step draws noise for four sums
    most = min(_MOST_STEPS, max(_FEWEST_STEPS, _MOST_NUMBERS / 4 / size))
    powers = [2.0**i for i in range(3, 9)]
    tried = sorted({round(p * factor) for p in powers for factor in (1.0, math.sqrt(2))})
    return [steps for steps in tried if steps <= most]
