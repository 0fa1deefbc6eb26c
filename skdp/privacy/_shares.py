# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How the budget of a search is divided among runs, choice, score and a last fit.

Every share is found from below: what is returned has been seen to fit the budget.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from skdp.privacy._accounting import gdp_epsilon, gdp_mu
from skdp.privacy._composition import _sum_up, compose_epsilon, total_mu, total_rho
from skdp.privacy._repetitions import Repetitions
from skdp.privacy._winner import RunCost, steepness, winner_epsilon, winner_epsilon_renyi
from skdp.privacy._zcdp import zcdp_rho

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
    return {**shares, "spent": (_sum_up([(searched, 1), (last, 1)]), delta)}


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
        training = _sum_up([(searched, 1), *((part[0], 1) for part in beside)])
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
    left = max(0.0, delta - _sum_up([(broken, n)])) * (1 - 1e-15)
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
