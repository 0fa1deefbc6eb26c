# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Composition: the epsilon of many releases together, rounded up.

Gaussian releases compose in closed form. Everything else is composed by privacy loss
distributions of dp_accounting, on a grid of losses that only ever rounds up, or by Renyi
divergences, whose bounds add up.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from scipy.special import bdtrc

from skdp.privacy.kernel.accounting import gdp_epsilon, zcdp_epsilon

# so little noise that chance hides next to nothing, and losses fill long grids
_LOUD = 20.0


@dataclass(frozen=True)
class SampledCost:
    """Releases on random batches, as the accountant sees them.

    Parameters
    ----------
    sampling, mu, adjacency : Sampling, float, {"replace-one", "zero-out"}
        How batches are drawn, sensitivity over noise, and what is promised.
    count : int
        Number of releases.
    """

    sampling: Any
    mu: float
    adjacency: str
    count: int


def compose_epsilon(
    mu: float,
    priced: Sequence[tuple[float, float, int]],
    delta: float,
    sampled: Sequence[SampledCost] = (),
    rho: float = math.inf,
) -> float:
    """Return the epsilon, at `delta`, of adaptively composed releases, rounded up.

    `mu` stands for all Gaussian releases (0 for none), `priced` for triples (epsilon,
    delta, count), `sampled` for releases on random batches, `rho` for the zCDP parameter
    of all of them together (infinite if none is known). Gaussian releases alone compose
    exactly; priced releases alone are summed. Everything else is composed by
    dp_accounting's privacy loss distributions, each priced release standing for its worst
    case (randomised response, broken with probability delta); the best of that, of the
    plain sum and of what `rho` implies is returned.
    """
    if sampled:
        if delta == 0:
            return math.inf
        # close parameters share one computation; up means more privacy loss
        costs = tuple(replace(c, mu=_round_up(c.mu)) for c in sampled)
        if max(c.mu for c in costs) > _LOUD and all(
            c.sampling.kind != "with-replacement" for c in costs
        ):
            return _loud_epsilon(mu, priced, delta, costs)
        return _sampled_epsilon(mu, tuple(priced), delta, costs)
    total = _sum_up((epsilon, count) for epsilon, _, count in priced)
    broken = _sum_up((part, count) for _, part, count in priced)
    # an ulp less, in case the difference was rounded up
    left = delta - broken if broken == 0 else (delta - broken) * (1 - 1e-15)
    if left < 0:
        return math.inf
    plain = _sum_up([(total, 1), (gdp_epsilon(mu, left), 1)])
    if not priced or delta == 0:
        return plain
    best = min(plain, zcdp_epsilon(rho, delta))
    alone = sum(count for _, _, count in priced) == 1
    # next to one priced release, a little Gaussian noise leaves nothing to be gained
    if mu == 0 or (alone and plain < 1.02 * total):
        return best
    return min(best, _pld_epsilon(mu, tuple(priced), delta))


def most_participations(n_rounds: int, rate: float, delta: float) -> int:
    """Return the least k, at least 1, of more than which a row reports with chance <= delta.

    Parameters
    ----------
    n_rounds, rate : int, float
        Rounds, and the probability of taking part in one, independently of the others.
    delta : float
        In [0, 1).
    """
    low, high = 0, n_rounds
    # a smaller probability could vanish, and it is not zero
    while delta > 1e-300 and high - low > 1:
        middle = (low + high) // 2
        if bdtrc(middle, n_rounds, rate) * (1 + 1e-9) <= delta:
            high = middle
        else:
            low = middle
    return high


def _loud_epsilon(
    mu: float,
    priced: Sequence[tuple[float, float, int]],
    delta: float,
    sampled: Sequence[SampledCost],
) -> float:
    """Return a bound for releases with so little noise that batches are no secret.

    Neighbours draw the same batches. If all of these were told, a row would pay for those it is
    in, for more of which than are counted it pays with delta.
    """
    mus, share = [(mu, 1)], delta / 2 / len(sampled)
    for cost in sampled:
        # the sensitivity is the norm of one contribution, and neighbours may have opposite ones
        far = 2.0 if (cost.sampling.kind, cost.adjacency) == ("poisson", "replace-one") else 1.0
        mus.append((far * cost.mu, most_participations(cost.count, cost.sampling.rate, share)))
    return compose_epsilon(total_mu(mus), priced, delta / 2 * (1 - 1e-12))


def total_rho(mu: float, pure: Iterable[tuple[float, int, bool]]) -> float:
    """Return the zCDP parameter of Gaussian and purely private releases, rounded up.

    `mu` stands for all Gaussian releases, `pure` for triples (epsilon, count, drawn). A
    release that was drawn by the exponential mechanism has a privacy loss within an interval
    of length epsilon, others within one of length 2 epsilon; one of length r costs r^2 / 8.
    """
    exact = Fraction(mu) ** 2 / 2
    for epsilon, count, drawn in pure:
        exact += count * (Fraction(epsilon) * (1 if drawn else 2)) ** 2 / 8
    if exact > 10**300:
        return math.inf
    rho = float(exact)
    return math.nextafter(rho, math.inf) if rho < exact else rho


def _sum_up(terms: Iterable[tuple[float, int]]) -> float:
    try:
        exact = sum((Fraction(value) * count for value, count in terms), Fraction(0))
        total = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(total, math.inf) if total < exact else total


def total_mu(mus: Sequence[tuple[float, int]]) -> float:
    """Return sqrt(sum of count * mu^2) for pairs (mu, count), rounded up."""
    if len(mus) == 1 and mus[0][1] == 1:
        return mus[0][0]
    return math.hypot(*(mu * math.sqrt(count) for mu, count in mus)) * (1 + 1e-15)


def _round_up(mu: float) -> float:
    mantissa, exponent = math.frexp(mu)
    return math.ldexp(math.ceil(mantissa * 2**30) / 2**30, exponent)


@lru_cache(maxsize=4096)
def _sampled_epsilon(
    mu: float,
    priced: tuple[tuple[float, float, int], ...],
    delta: float,
    sampled: tuple[SampledCost, ...],
) -> float:
    steps = sum(cost.count for cost in sampled)
    # every loss is rounded up to the grid: by half a step each, for the sum by
    # interval * sqrt(steps) at the scale of its spread. A tenth of epsilon is fine enough
    # (tested by halving), and any grid gives a bound
    likely = [c.sampling.rate * math.sqrt(c.count * math.expm1(min(c.mu**2, 30))) for c in sampled]
    spread = gdp_epsilon(min(math.hypot(mu, *likely), 30.0), delta)
    spread = max(spread, *(epsilon for epsilon, _, _ in priced), 1e-4)
    finest = min([0.03 * spread / math.sqrt(steps), *(e / 64 for e, _, _ in priced)])
    # where a row is hardly ever drawn, the rare losses are what counts, and they are far away
    finest = max(finest, *(_farthest(cost) * 2.0**-15 for cost in sampled))
    interval = 2.0 ** math.floor(math.log2(finest))
    interval = min(max(interval, 2.0**-24), 2.0**-8)
    # tails over- and underflow on the way
    with np.errstate(all="ignore"):
        total = _common_loss(mu, priced, interval)
        for cost in sampled:
            one = cost.sampling.loss(cost.mu, cost.adjacency, interval)
            one = one.self_compose(cost.count) if cost.count > 1 else one
            total = one if total is None else total.compose(one)
        return float(total.get_epsilon_for_delta(delta)) * (1 + 1e-12)


def _farthest(cost: SampledCost) -> float:
    """Return about the largest loss that counts, of one release."""
    far = 10 * cost.mu + cost.mu**2 / 2
    return far + math.log(cost.sampling.rate + math.exp(-far))


@lru_cache(maxsize=1024)
def _pld_epsilon(mu: float, priced: tuple[tuple[float, float, int], ...], delta: float) -> float:
    # the grid of losses is rounded up, so it must be fine against the smallest loss
    # composed, and the whole range must stay small enough for memory
    finest = min([mu, *(epsilon for epsilon, _, _ in priced)]) / 100
    largest = math.fsum(epsilon * count for epsilon, _, count in priced) + gdp_epsilon(mu, 1e-12)
    if largest > 500:
        return math.inf
    interval = max(min(1e-4, finest), largest / 5e5)
    return float(_common_loss(mu, priced, interval).get_epsilon_for_delta(delta))


def _common_loss(mu: float, priced: Sequence[tuple[float, float, int]], interval: float) -> Any:
    """Return the privacy loss distribution of what reads all rows; None for nothing."""
    from dp_accounting.pld import common, privacy_loss_distribution

    parts = []
    if mu:
        parts = [
            privacy_loss_distribution.from_gaussian_mechanism(
                1 / mu, value_discretization_interval=interval
            )
        ]
    for epsilon, broken, count in priced:
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, broken),
            value_discretization_interval=interval,
        )
        parts.append(one.self_compose(count) if count > 1 else one)
    return reduce(lambda a, b: a.compose(b), parts) if parts else None
