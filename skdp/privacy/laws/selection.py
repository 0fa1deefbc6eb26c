# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private selection: the price of a search among candidates, and what every run of it may cost."""

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from skdp.privacy.kernel.accounting import (
    as_float,
    check_choice,
    check_delta,
    check_epsilon,
    first,
    gdp_delta,
    gdp_epsilon,
)
from skdp.privacy.kernel.ledger import compose_epsilon, sum_up, total_mu, total_rho
from skdp.privacy.kernel.mechanisms import Law
from skdp.privacy.kernel.samplers import Bits
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, zcdp_rho
from skdp.privacy.laws.exponential import ExponentialMechanism

# How many times a search runs: three laws of a secret number of runs.
#
# A search with a fixed number of runs pays for every run. With a random number that nobody is
# told it pays for a few, whatever the mean: who sees only the winner cannot tell how many runs
# it won against (Liu and Talwar 2019; Papernot and Steinke 2022).


#: the laws, and the shape of the truncated negative binomial law that each one is
LAWS = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
# beyond, nobody waits for the runs
_MOST = 1e6


@dataclass(frozen=True)
class Repetitions:
    """The law of a secret number K of runs.

    Parameters
    ----------
    law : {"logarithmic", "geometric", "poisson"}
        K is at least 1, but for "poisson": there it may be 0.
    expected : float
        The mean of K, in [1, 1e6].

    Raises
    ------
    ValueError
        If the law is unknown or the mean is out of range.

    Examples
    --------
    >>> runs = Repetitions("geometric", expected=20)
    >>> runs.gamma, round(runs.probability(1), 3)
    (0.05, 0.05)
    """

    law: str
    expected: float

    def __post_init__(self) -> None:
        check_choice("law", self.law, LAWS)
        expected = as_float(self.expected)
        if not 1 <= expected <= _MOST:
            raise ValueError(
                f"the expected number of runs must be a number in [1, {_MOST:g}]; "
                f"got {self.expected!r}."
            )
        object.__setattr__(self, "expected", expected)

    @property
    def eta(self) -> float:
        """Shape of the truncated negative binomial law; infinite for "poisson"."""
        return LAWS[self.law]

    @cached_property
    def gamma(self) -> float:
        """Parameter in (0, 1] of the truncated negative binomial law; nan for "poisson"."""
        if self.law == "poisson":
            return math.nan
        if self.expected == 1:
            return 1.0
        if self.law == "geometric":
            return 1 / self.expected
        # with x = log(1 / gamma) the mean is (e^x - 1) / x
        return math.exp(-first(lambda x: math.expm1(x) >= self.expected * x, 1e-15))

    @cached_property
    def mean(self) -> float:
        """Mean of K at `gamma`, rounded up: `expected`, but for rounding."""
        gamma = self.gamma
        if self.law == "poisson" or gamma == 1:
            return self.expected
        exact = 1 / gamma if self.law == "geometric" else (1 - gamma) / (-math.log(gamma) * gamma)
        return exact * (1 + 1e-15)

    def probability(self, k: int) -> float:
        """Return P[K = k]."""
        gamma, poisson = self.gamma, self.law == "poisson"
        if k < 0 or (k == 0 and not poisson):
            return 0.0
        if poisson:
            log = k * math.log(self.expected) - self.expected - math.lgamma(k + 1)
            return math.exp(log)
        if gamma == 1:
            return float(k == 1)
        if self.law == "geometric":
            return gamma * math.exp((k - 1) * math.log1p(-gamma))
        return math.exp(k * math.log1p(-gamma)) / (-k * math.log(gamma))

    def generating(self, s: float) -> float:
        """Return E[s^K], for s in [0, 1]."""
        gamma = self.gamma
        if self.law == "poisson":
            return math.exp(self.expected * (s - 1))
        if gamma == 1:
            return s
        if self.law == "geometric":
            return gamma * s / (1 - (1 - gamma) * s)
        return math.log1p((gamma - 1) * s) / math.log(gamma)

    def number(self, bits: Bits) -> int:
        """Return K, drawn exactly: from as many random bits as it takes.

        Parameters
        ----------
        bits : Bits
            Source of random bits.

        Returns
        -------
        k : int
            The first number at which the distribution function exceeds a uniform real number:
            bits and digits are added until no boundary is too near.
        """
        if self.gamma == 1:
            return 1
        word, width, digits = 0, 0, 60
        while True:
            for extra in bits.words(digits // 15).tolist():
                word, width = (word << 64) | extra, width + 64
            with localcontext(Context(prec=digits, Emin=-(10**8), Emax=10**8)):
                low, high = (Decimal(word + i) * Decimal(2) ** -width for i in (0, 1))
                # far above all roundings: a few units in the last digit for each of K terms
                error = Decimal(10) ** (20 - digits)
                total, nothing = Decimal(0), Decimal(10) ** -digits
                for k, term in self._terms():
                    total += term
                    if low - error < total:
                        if high + error < total:
                            return k
                        break
                    if term < nothing and k > self.expected:
                        break
            digits *= 2

    def _terms(self) -> Iterator[tuple[int, Decimal]]:
        """Yield (k, P[K = k]) in the digits of the decimal context."""
        if self.law == "poisson":
            k, mean = 0, Decimal(self.expected)
            term = (-mean).exp()
            while True:
                yield k, term
                k += 1
                term = term * mean / k
        gamma = Decimal(self.gamma)
        k, ratio, geometric = 1, 1 - gamma, self.law == "geometric"
        power = gamma if geometric else -ratio / gamma.ln()
        while True:
            yield k, power if geometric else power / k
            k += 1
            power *= ratio


# What the winner of a secret number of runs costs (Proposition 71), rounded up.
#
# A run is a draw from one law, with a score in what it releases. If q(y) is the chance that a
# run is no better than y, the winner has the density ``phi'(q(y))`` against a run, phi being
# the generating function of the number K of runs. Between neighbours that factor changes by
# e^c at most, and it is at most E[K]: so the winner is (epsilon, E[K] d(epsilon - c))-DP, where
# d(x) is the smallest delta with which one run is (x, delta)-DP.


# above the rounding errors of a few operations
_UP = 1 + 1e-14
# below, differences cancel in what dp_accounting computes
_SMALLEST = 1e-3


@dataclass(frozen=True)
class RunCost:
    """What one run costs: a Gaussian-DP parameter, or a pair.

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


def loss_of_choice(repetitions: Repetitions, cost: RunCost) -> float:
    """Return c: what not knowing how many runs the winner won against adds, rounded up.

    Parameters
    ----------
    repetitions, cost : Repetitions, RunCost
        How many runs, and what one costs.

    Returns
    -------
    loss : float
        In nats. At most ``(1 + eta) epsilon`` for a run that is epsilon-DP.
    """
    if repetitions.law == "poisson":
        return repetitions.mean * cost.delta_at(0.0) * _UP
    if repetitions.gamma == 1:
        return 0.0
    odds = repetitions.gamma / (1 - repetitions.gamma) / _UP
    # every root from above is a bound, the least is the best
    loss = first(lambda x: cost.delta_at(x) <= odds * math.expm1(x) / _UP, 1e-14)
    return (1 + repetitions.eta) * loss * _UP


def steepness(repetitions: Repetitions) -> float:
    """Return how fast the logarithm of phi' grows at its end: what one unit of delta costs.

    `loss_of_choice` of runs that are (0, delta)-DP is this times delta at most.
    """
    if repetitions.law == "poisson":
        return repetitions.mean
    return (1 + repetitions.eta) * (1 - repetitions.gamma) / repetitions.gamma


def winner_epsilon(repetitions: Repetitions, cost: RunCost, delta: float) -> float:
    """Return the epsilon of the winner at `delta`, by Proposition 71, rounded up.

    Parameters
    ----------
    repetitions, cost : Repetitions, RunCost
        How many runs, and what one costs.
    delta : float
        In [0, 1).

    Returns
    -------
    epsilon : float
        In nats; infinite if no epsilon will do.

    Examples
    --------
    >>> runs = Repetitions("geometric", expected=20)
    >>> winner_epsilon(runs, RunCost(epsilon=0.1), delta=0.0) < 3 * 0.1
    True
    """
    epsilon = cost.epsilon_at(delta / (repetitions.mean * _UP))
    return (loss_of_choice(repetitions, cost) + epsilon) * _UP


@lru_cache(maxsize=1024)
def winner_epsilon_renyi(repetitions: Repetitions, mu: float, delta: float) -> float:
    """Return the epsilon of the winner by Renyi divergences (Papernot and Steinke 2022).

    Parameters
    ----------
    repetitions, mu, delta : Repetitions, float, float
        How many runs, their Gaussian-DP parameter, and delta in (0, 1).

    Returns
    -------
    epsilon : float
        In nats, as dp_accounting finds it; infinite for mu below 1e-3. Better than
        `winner_epsilon` for the Poisson law with a large mean.
    """
    if mu < _SMALLEST:
        return math.inf
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    run = dp_accounting.GaussianDpEvent(1 / mu)
    event = dp_accounting.dp_event.RepeatAndSelectDpEvent(run, repetitions.mean, repetitions.eta)
    # orders of which nothing is left over- and underflow on the way
    with np.errstate(all="ignore"):
        return float(RdpAccountant().compose(event).get_epsilon(delta)) * (1 + 1e-9)


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
def shares_of_repeats(
    epsilon: float, delta: float, repetitions: Repetitions, gaussian: bool, refit_share: float
) -> dict[str, Any]:
    """Return the shares for a secret number of runs, each of which pays for fit and score.

    Parameters are those of `plan_selection`; the shares are fields of a `SelectionPlan`.
    """
    left, last = (epsilon * _DOWN, delta), 0.0
    shares: dict[str, Any] = {}
    if refit_share:
        left = _part(epsilon, delta, 1 - refit_share)
        shares, last = _last_fit(*_part(epsilon, delta, refit_share), gaussian)
    if gaussian:
        mu, searched = _largest_run(*left, repetitions)
        shares["mu_run"] = mu
    else:
        most = _QUARTER * left[0] / max(steepness(repetitions), 1e-100)
        part = min(left[1] / repetitions.mean, most) * _DOWN
        run = _largest(
            lambda e: winner_epsilon(repetitions, RunCost(0.0, e, part), left[1]) <= left[0],
            epsilon,
        )
        searched = winner_epsilon(repetitions, RunCost(0.0, run, part), left[1])
        shares.update(epsilon_run=run, delta_run=part)
    return {**shares, "spent": (sum_up([(searched, 1), (last, 1)]), delta)}


def _last_fit(epsilon: float, delta: float, gaussian: bool) -> tuple[dict[str, Any], float]:
    """Return the shares of a fit with a budget of its own, and the epsilon that it costs."""
    if not gaussian:
        return {"epsilon_refit": epsilon, "delta_refit": delta}, epsilon
    mu = gdp_mu(epsilon, delta)
    return {"mu_refit": mu}, gdp_epsilon(mu, delta)


def _largest_run(epsilon: float, delta: float, repetitions: Repetitions) -> tuple[float, float]:
    """Return the largest mu of a run that fits a budget, and the epsilon it then has."""

    def by_profile(mu: float) -> float:
        return winner_epsilon(repetitions, RunCost(mu), delta)

    def by_renyi(mu: float) -> float:
        return winner_epsilon_renyi(repetitions, mu, delta)

    most = gdp_mu(epsilon, delta)
    mu = _largest(lambda m: by_profile(m) <= epsilon, most)
    # the better bound, if it is better by more than nothing
    if repetitions.gamma != 1 and by_renyi(mu * 1.001) <= epsilon:
        mu = _largest(lambda m: by_renyi(m) <= epsilon, most, 1e-8)
        return mu, by_renyi(mu)
    return mu, by_profile(mu)


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
    """Divide what is purely private between the choice, if there is one, and the score."""
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


STRATEGIES = ("all", *LAWS)


@dataclass(frozen=True)
class SelectionPlan:
    """How a search spends its budget; all of it is public, and fixed before data are read.

    Parameters
    ----------
    strategy : {"all", "logarithmic", "geometric", "poisson"}
        Every candidate once, or a secret number of runs of candidates drawn at random.
    n_candidates : int
        Number of candidates.
    epsilon, delta : float
        What was granted.
    gaussian, public_scores : bool
        Whether shares of runs are Gaussian-DP parameters; whether scores are computed on
        public rows and cost nothing.
    refit_share : float
        Part that is kept for fitting the winner again, on all rows.
    repetitions : Repetitions or None
        The law of the number of runs; None for "all".
    spent : tuple of (float, float)
        (epsilon, delta) as certified; never above what was granted.
    mu_run, epsilon_run, delta_run : float or None
        What one fit may cost: a Gaussian-DP parameter if `gaussian`, a pair otherwise; the
        others are None.
    mu_refit, epsilon_refit, delta_refit : float or None
        The same of the second fit of the winner; all None if there is none.
    epsilon_choice, epsilon_score : float or None
        For "all": of the choice by private scores (None for one candidate), and of the score of
        the winner. None for random numbers of runs, where every run pays for its score, and for
        public scores.
    """

    strategy: str
    n_candidates: int
    epsilon: float
    delta: float
    gaussian: bool
    public_scores: bool
    refit_share: float
    repetitions: Repetitions | None
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
    def expected_runs(self) -> float:
        """Mean of the number of runs; exactly the number of candidates for "all"."""
        return self.repetitions.expected if self.repetitions else float(self.n_candidates)

    @property
    def score_mechanism(self) -> Law | None:
        """What releases a score: of every run, or of the winner for "all"; None if free."""
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
        """What draws the winner for "all" with private scores; None otherwise."""
        return None if self.epsilon_choice is None else ExponentialMechanism(self.epsilon_choice)

    def describe(self) -> str:
        """Return the plan in words."""
        runs = f"{self.expected_runs:g} runs"
        if self.repetitions is not None:
            law = f"{self.strategy}, {self.expected_runs:g} expected"
            runs = f"a secret number of runs ({law})"
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
    expected_runs: float | None = None,
    gaussian: bool,
    refit_share: float = 0.0,
    public_scores: bool = False,
) -> SelectionPlan:
    """Return the plan with the largest share for every run that a budget allows.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the whole search. At delta 0 everything in it is purely private.
    strategy : {"all", "logarithmic", "geometric", "poisson"}
        Every candidate once, or a secret number of runs of candidates drawn at random.
    n_candidates : int
        At least 1.
    expected_runs : float, default=None
        Mean of the number of runs, at least 1; None for twice the number of candidates. For
        "all" the number of candidates, or None.
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
    >>> plan = plan_selection(1.0, 1e-5, strategy="geometric", n_candidates=10, gaussian=True)
    >>> print(plan.describe())
    search over 10 candidates: a secret number of runs (geometric, 20 expected); held-out rows...
      total       epsilon=1, delta=1e-05
      one run     mu=0.1525
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_choice("strategy", strategy, STRATEGIES)
    if isinstance(n_candidates, bool) or (n_candidates := operator.index(n_candidates)) < 1:
        raise ValueError(f"there must be at least 1 candidate; got {n_candidates!r}.")
    if not 0 <= (share := as_float(refit_share)) < 1:
        raise ValueError(f"refit_share must be a number in [0, 1); got {refit_share!r}.")
    if gaussian and delta == 0:
        raise ValueError(
            "delta must be greater than 0 for fits with Gaussian noise, which are never purely "
            "epsilon-DP; got 0."
        )
    repetitions, shares = None, dict[str, Any]()
    if strategy == "all":
        if expected_runs not in (None, n_candidates):
            raise ValueError(
                'expected_runs must be None for strategy "all", which runs each of the '
                f"{n_candidates} candidates once; got {expected_runs!r}."
            )
        shares = shares_of_all(epsilon, delta, n_candidates, gaussian, share, public_scores)
    else:
        mean = 2 * n_candidates if expected_runs is None else expected_runs
        repetitions = Repetitions(strategy, mean)
        shares = shares_of_repeats(epsilon, delta, repetitions, gaussian, share)
    return SelectionPlan(
        strategy=strategy,
        n_candidates=n_candidates,
        epsilon=epsilon,
        delta=delta,
        gaussian=bool(gaussian),
        public_scores=bool(public_scores),
        refit_share=share,
        repetitions=repetitions,
        **shares,
    )
