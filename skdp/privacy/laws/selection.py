# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private selection: the price of a search among candidates, and of every run."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from skdp.privacy.kernel.accounting import (
    as_float,
    check_choice,
    check_delta,
    check_epsilon,
    first,
    gdp_delta,
    gdp_epsilon,
)
from skdp.privacy.kernel.batches import Positions, fixed_subset
from skdp.privacy.kernel.ledger import compose_epsilon, sum_up, total_mu, total_rho
from skdp.privacy.kernel.mechanisms import Law
from skdp.privacy.kernel.samplers import Bits
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, zcdp_rho
from skdp.privacy.laws.exponential import ExponentialMechanism

# Which runs of a search count: a secret subset.
#
# A search that tells the best of all its runs pays for every run. If a secret subset of them takes
# part in the choice, it pays for a few, whatever their number: who sees only the winner cannot tell
# how many runs it won against (Liu and Talwar 2019; Papernot and Steinke 2022). All runs are made
# all the same, in a public order: the time that a search takes tells nothing of the subset.


@dataclass(frozen=True)
class SecretSubset:
    """Law of the secret subset of counted runs of a search.

    Its size K has the probability ``(n_runs + 1 - k) / (n_runs (n_runs + 1) / 2)`` of being k, for
    k from 1 to `n_runs`; given the size all subsets are equally likely.

    Parameters
    ----------
    n_runs : int
        Public number of runs, at least 1.

    Raises
    ------
    ValueError
        If the number is out of range.

    Examples
    --------
    >>> subset = SecretSubset(3)
    >>> [subset.probability(k) for k in (0, 1, 2, 3)]
    [0.0, 0.5, 0.3333333333333333, 0.16666666666666666]
    """

    n_runs: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_runs", _checked_number(self.n_runs, "run"))

    @property
    def mean(self) -> float:
        """Mean of K, rounded up."""
        return (self.n_runs + 2) / 3 * _UP

    def probability(self, k: int) -> float:
        """Return P[K = k]."""
        n = self.n_runs
        return (n + 1 - k) / (n * (n + 1) // 2) if 1 <= k <= n else 0.0

    def choose(self, bits: Bits) -> Positions:
        """Return the sorted positions of the counted runs, drawn exactly.

        Parameters
        ----------
        bits : Bits
            Source of random bits.

        Returns
        -------
        counted : ndarray of int
            At least one of the positions below `n_runs`.
        """
        # the smaller one of two different numbers from 1 to n_runs + 1
        size = 1 + int(fixed_subset(self.n_runs + 1, 2, bits)[0])
        return fixed_subset(self.n_runs, size, bits)


def _checked_number(value: Any, what: str) -> int:
    if isinstance(value, bool) or (number := operator.index(value)) < 1:
        raise ValueError(f"there must be at least 1 {what}; got {value!r}.")
    return number


# What the winner of a secret subset of runs costs (Proposition 71), rounded up.
#
# Every run is kept with the same secret probability p, of density 2 (1 - p). If t(l) is the chance
# that run l is better than an outcome y of another run, y wins with the density
# ``E[p prod(1 - p t(l))]`` against its own law. Between neighbours that factor changes by e^c at
# most, and over all runs it adds up to E[K] at most: so the winner is (epsilon, E[K] d(epsilon -
# c))-DP, where d(x) is the smallest delta with which one run is (x, delta)-DP.


# above the rounding errors of a few operations
_UP = 1 + 1e-14


@dataclass(frozen=True)
class RunCost:
    """Price of one run: a Gaussian-DP parameter, or a pair.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter; 0 for a run with a pair.
    epsilon, delta : float
        The pair, if mu is 0.
    """

    mu: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def delta_at(self, epsilon: float) -> float:
        """Return the least delta at a given epsilon >= 0, for the worst such run, rounded up.

        The worst for a pair is randomised response that tells the truth with probability
        `delta` (Kairouz, Oh and Viswanath 2015).
        """
        if self.mu:
            return gdp_delta(self.mu, epsilon)
        gap = min(0.0, epsilon - self.epsilon)
        wider = (1 - self.delta) * -math.expm1(gap) / (1 + math.exp(-self.epsilon))
        return (self.delta + wider) * (_UP if gap else 1.0)

    def epsilon_at(self, delta: float) -> float:
        """Return an epsilon at a given delta, rounded up; infinite if there is none."""
        if self.mu:
            return gdp_epsilon(self.mu, delta)
        return self.epsilon if self.delta <= delta else math.inf


def loss_of_choice(subset: SecretSubset, cost: RunCost) -> float:
    """Return c, the additional loss from the secret competitors of the winner, rounded up.

    Parameters
    ----------
    subset, cost : SecretSubset, RunCost
        Law of the counted runs, and price of a run.

    Returns
    -------
    loss : float
        In nats. At most ``2 epsilon`` for a run that is epsilon-DP.
    """
    others = subset.n_runs - 1
    if not others:
        return 0.0
    # every root from above is a bound, the least is the best
    odds = 1 / others / _UP
    loss = first(lambda x: cost.delta_at(x) <= odds * math.expm1(x) / _UP, 1e-14)
    return 2 * loss * _UP


def winner_epsilon(subset: SecretSubset, cost: RunCost, delta: float) -> float:
    """Return the epsilon of the winner at `delta`, by Proposition 71, rounded up.

    Parameters
    ----------
    subset, cost : SecretSubset, RunCost
        Law of the counted runs, and price of a run.
    delta : float
        In [0, 1).

    Returns
    -------
    epsilon : float
        In nats; infinite if no epsilon will do.

    Examples
    --------
    >>> winner_epsilon(SecretSubset(20), RunCost(epsilon=0.1), delta=0.0) < 3 * 0.1
    True
    """
    epsilon = cost.epsilon_at(delta / (subset.mean * _UP))
    return (loss_of_choice(subset, cost) + epsilon) * _UP


# How the budget of a search is divided among runs, choice, score and a last fit.
#
# Every share is found from below: what is returned has been seen to fit the budget.


# what choosing the winner gets of the budget of the held-out rows; its score gets the rest
_CHOICE = 0.8
# what the deltas of runs may add to the epsilon of the winner; it binds where delta is large
_QUARTER = 0.25
# shares are rounded down by so much: sums of them must not be rounded up past the budget
_DOWN = 1 - 1e-12
# beyond so many nats, at such a delta, for a smaller part of epsilon: composition is slow
_SLOW, _LOOSE, _LEAST = 2.0, 0.01, 0.01


def _largest(fits: Callable[[float], bool], high: float, width: float = 1e-11) -> float:
    """Return the largest share up to `high` that fits, rounded down by `width`, relatively."""
    low = high
    while not fits(low):
        high, low = low, low / 2
        if low < 1e-12:
            raise ValueError(
                "the budget of the search is too small to be divided. Raise epsilon or delta, or "
                "search among fewer candidates."
            )
    while high - low > width * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _part(epsilon: float, delta: float, share: float) -> tuple[float, float]:
    return epsilon * share * _DOWN, delta * share * _DOWN


@lru_cache(maxsize=1024)
def shares_of_subset(
    epsilon: float, delta: float, subset: SecretSubset, gaussian: bool, refit_share: float
) -> dict[str, Any]:
    """Return the shares with a secret subset: every run pays for its fit and its score.

    Parameters are those of `plan_selection`; the shares are fields of a `SelectionPlan`.
    """
    left, last = (epsilon * _DOWN, delta), 0.0
    shares: dict[str, Any] = {}
    if refit_share:
        left = _part(epsilon, delta, 1 - refit_share)
        shares, last = _last_fit(*_part(epsilon, delta, refit_share), gaussian)
    if gaussian:
        mu = _largest(
            lambda m: winner_epsilon(subset, RunCost(m), left[1]) <= left[0], gdp_mu(*left)
        )
        searched = winner_epsilon(subset, RunCost(mu), left[1])
        shares["mu_run"] = mu
    else:
        # of runs that are (0, delta)-DP, c is about 2 (n_runs - 1) delta
        most = _QUARTER * left[0] / max(2.0 * (subset.n_runs - 1), 1e-100)
        part = min(left[1] / subset.mean, most) * _DOWN
        run = _largest(
            lambda e: winner_epsilon(subset, RunCost(0.0, e, part), left[1]) <= left[0],
            epsilon,
        )
        searched = winner_epsilon(subset, RunCost(0.0, run, part), left[1])
        shares.update(epsilon_run=run, delta_run=part)
    return {**shares, "spent": (sum_up([(searched, 1), (last, 1)]), delta)}


def _last_fit(epsilon: float, delta: float, gaussian: bool) -> tuple[dict[str, Any], float]:
    """Return the shares of a fit with a budget of its own, and the epsilon that it costs."""
    if not gaussian:
        return {"epsilon_refit": epsilon, "delta_refit": delta}, epsilon
    mu = gdp_mu(epsilon, delta)
    return {"mu_refit": mu}, gdp_epsilon(mu, delta)


@lru_cache(maxsize=1024)
def shares_of_all(
    epsilon: float, delta: float, n: int, gaussian: bool, refit_share: float, public_scores: bool
) -> dict[str, Any]:
    """Return the shares if every candidate is fitted once (Proposition 72).

    A row trains or scores: it pays for all fits, or for the choice and the winner's score, and
    in either case for the last fit. Parameters and shares are as above.
    """
    last, beside = 0.0, list[tuple[float, float, int]]()
    shares: dict[str, Any] = {}
    if gaussian:
        total = gdp_mu(epsilon, delta) * _DOWN
        run, last = total * math.sqrt((1 - refit_share) / n), total * math.sqrt(refit_share)
        shares.update(mu_run=run, mu_refit=last or None)
        training = gdp_epsilon(total_mu([(run, n), (last, 1)]), delta)
        scoring = _largest_beside(epsilon, delta, last, n) if last else epsilon
    else:
        ours = _part(epsilon, delta, 1 - refit_share)
        pair, scoring = _one_of(n, *ours), ours[0]
        shares.update(epsilon_run=pair[0], delta_run=pair[1])
        if refit_share:
            kept = _part(epsilon, delta, refit_share)
            shares.update(epsilon_refit=kept[0], delta_refit=kept[1])
            beside = [(*kept, 1)]
        # the runs within their own part, the last fit on top
        searched = _all_of(n, pair, ours[1])
        training = sum_up([(searched, 1), *((part[0], 1) for part in beside)])
    held_out = 0.0
    if not public_scores:
        choice, score = _on_held_out(scoring, n)
        shares.update(epsilon_choice=choice or None, epsilon_score=score)
        held_out = compose_epsilon(last, [*_priced((choice, score)), *beside], delta)
    return {**shares, "spent": (max(training, held_out), delta)}


def _one_of(n: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return a pair of which `n` together fit a budget: by plain sums, or concentrated privacy."""
    plain = (epsilon / n * _DOWN, delta / n * _DOWN)
    many = math.sqrt(2 * zcdp_rho(epsilon, delta / 2) / n) * _DOWN
    # half of delta is given up for it, so it must be worth it
    return (many, plain[1] / 2) if many > 1.05 * plain[0] else plain


def _all_of(n: int, pair: tuple[float, float], delta: float) -> float:
    """Return the epsilon of `n` runs that each are randomised response, sometimes broken."""
    epsilon, broken = pair
    left = max(0.0, delta - sum_up([(broken, n)])) * (1 - 1e-15)
    rho = total_rho(0.0, [(epsilon, n, False)])
    by_rho = compose_epsilon(0.0, [(epsilon, 0.0, n)], left, rho=rho)
    return min(compose_epsilon(0.0, [(*pair, n)], delta), by_rho)


def _on_held_out(scoring: float, n: int) -> tuple[float, float]:
    """Divide a purely private budget between the choice, if any, and the score."""
    if n == 1:
        return 0.0, scoring * _DOWN
    return _CHOICE * scoring * _DOWN, (1 - _CHOICE) * scoring * _DOWN


def _largest_beside(epsilon: float, delta: float, mu: float, n: int) -> float:
    """Return what fits a budget beside a Gaussian release, all of it purely private."""
    # a few ulps less: the part may be tiny, and then its own margin is nothing in the sum
    plain = (epsilon - 4 * math.ulp(epsilon) - gdp_epsilon(mu, delta)) * _DOWN
    if epsilon > _SLOW or delta > _LOOSE:
        return plain

    def fits(share: float) -> bool:
        # the very numbers that are used: on a grid of losses an ulp can cost a step
        return compose_epsilon(mu, _priced(_on_held_out(share, n)), delta) <= epsilon

    start = epsilon
    while not fits(start):
        start /= 2
        # less is not worth the finer and finer grids
        if start < _LEAST * epsilon:
            return plain
    return max(plain, _largest(fits, min(2 * start, epsilon), 1e-3))


def _priced(parts: tuple[float, ...]) -> list[tuple[float, float, int]]:
    # a part of 0 would ask for an endless grid
    return [(part, 0.0, 1) for part in parts if part]


STRATEGIES = ("all", "subset")


@dataclass(frozen=True)
class SelectionPlan:
    """Division of the budget of a search, public and fixed before any row is read.

    Parameters
    ----------
    strategy : {"all", "subset"}
        Whether all runs count, or a secret subset of them.
    n_candidates : int
        Number of candidates, and of runs: a repeat is a candidate of its own.
    epsilon, delta : float
        Granted budget.
    gaussian, public_scores : bool
        Whether shares of runs are Gaussian-DP parameters; whether scores are computed on
        public rows and cost nothing.
    refit_share : float
        Part that is kept for fitting the winner again, on all rows.
    subset : SecretSubset or None
        The law of the runs that count; None for "all".
    spent : tuple of (float, float)
        (epsilon, delta) as certified; never above what was granted.
    mu_run, epsilon_run, delta_run : float or None
        Price of one fit: a Gaussian-DP parameter if `gaussian`, otherwise a pair; the others are
        None.
    mu_refit, epsilon_refit, delta_refit : float or None
        The same of the second fit of the winner; all None if there is none.
    epsilon_choice, epsilon_score : float or None
        For "all": of the choice by private scores (None for one candidate), and of the score of
        the winner. None for "subset", where every run pays for its score, and for public scores.
    """

    strategy: str
    n_candidates: int
    epsilon: float
    delta: float
    gaussian: bool
    public_scores: bool
    refit_share: float
    subset: SecretSubset | None
    spent: tuple[float, float]
    mu_run: float | None = None
    epsilon_run: float | None = None
    delta_run: float | None = None
    mu_refit: float | None = None
    epsilon_refit: float | None = None
    delta_refit: float | None = None
    epsilon_choice: float | None = None
    epsilon_score: float | None = None

    @property
    def score_mechanism(self) -> Law | None:
        """Mechanism of a score: of every run, or of the winner for "all"; None if free."""
        if self.public_scores:
            return None
        if self.epsilon_score is not None:
            return LaplaceMechanism(self.epsilon_score)
        if self.mu_run is not None:
            # room for the rounding of a price, which goes upwards
            return GaussianMechanism(self.mu_run * (1 - 1e-12))
        return LaplaceMechanism(self.epsilon_run)  # type: ignore[arg-type]

    @property
    def choice_mechanism(self) -> Law | None:
        """Mechanism of the winner for "all" with private scores; otherwise None."""
        return None if self.epsilon_choice is None else ExponentialMechanism(self.epsilon_choice)

    def describe(self) -> str:
        """Return the plan in words."""
        runs = f"{self.n_candidates} runs"
        if self.subset is not None:
            runs += f", a secret subset counts ({self.subset.mean:.3g} expected)"
        scores = "public rows score them" if self.public_scores else "held-out rows score them"
        lines = [
            f"search over {self.n_candidates} candidates: {runs}; {scores}",
            f"  total       epsilon={self.spent[0]:.6g}, delta={self.spent[1]:.3g}",
            f"  one run     {_price(self.mu_run, self.epsilon_run, self.delta_run)}",
        ]
        if self.epsilon_choice is not None:
            lines += [f"  the choice  epsilon={self.epsilon_choice:.4g}, on the held-out rows"]
        if self.epsilon_score is not None:
            lines += [f"  the score   epsilon={self.epsilon_score:.4g}, on the held-out rows"]
        if self.refit_share:
            refit = _price(self.mu_refit, self.epsilon_refit, self.delta_refit)
            lines += [f"  the winner  {refit}, fitted again on all rows"]
        return "\n".join(lines)


def _price(mu: float | None, epsilon: float | None, delta: float | None) -> str:
    if mu is not None:
        return f"mu={mu:.4g}"
    return f"epsilon={epsilon:.4g}" + (f", delta={delta:.3g}" if delta else "")


def plan_selection(
    epsilon: float,
    delta: float,
    *,
    strategy: str,
    n_candidates: int,
    gaussian: bool,
    refit_share: float = 0.0,
    public_scores: bool = False,
) -> SelectionPlan:
    """Return the plan with the largest share for every run that a budget allows.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the whole search. At delta 0 everything in it is purely private.
    strategy : {"all", "subset"}
        Whether all runs count, or a secret subset of them.
    n_candidates : int
        At least 1; every one is run once, and a repeat is a candidate of its own.
    gaussian : bool
        Whether every fit has a Gaussian-DP parameter; shares are in units of that then.
    refit_share : float, default=0.0
        Part of the budget for fitting the winner again on all rows, in [0, 1).
    public_scores : bool, default=False
        Whether scores are computed on public rows. They cost nothing then.

    Returns
    -------
    plan : SelectionPlan
        A function of these arguments only.

    Raises
    ------
    ValueError
        If an argument is out of range, delta is 0 and `gaussian` is set, or the budget is
        too small to be divided.

    Examples
    --------
    >>> plan = plan_selection(1.0, 1e-5, strategy="subset", n_candidates=20, gaussian=True)
    >>> print(plan.describe())
    search over 20 candidates: 20 runs, a secret subset counts (7.33 expected); held-out rows...
      total       epsilon=1, delta=1e-05
      one run     mu=0.1576
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_choice("strategy", strategy, STRATEGIES)
    n_candidates = _checked_number(n_candidates, "candidate")
    if not 0 <= (share := as_float(refit_share)) < 1:
        raise ValueError(f"refit_share must be a number in [0, 1); got {refit_share!r}.")
    if gaussian and delta == 0:
        raise ValueError(
            "delta must be greater than 0 for fits with Gaussian noise, which are never purely "
            "epsilon-DP; got 0."
        )
    subset = None if strategy == "all" else SecretSubset(n_candidates)
    if subset is None:
        shares = shares_of_all(epsilon, delta, n_candidates, gaussian, share, public_scores)
    else:
        shares = shares_of_subset(epsilon, delta, subset, gaussian, share)
    return SelectionPlan(
        strategy=strategy,
        n_candidates=n_candidates,
        epsilon=epsilon,
        delta=delta,
        gaussian=bool(gaussian),
        public_scores=bool(public_scores),
        refit_share=share,
        subset=subset,
        **shares,
    )
