# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration: the noise for a budget, also beside other releases.

Everything here is rounded down: a calibrated parameter is never above the granted one. No privacy
claim depends on that, because the ledger prices every release again.
"""

import math
import sys
from dataclasses import replace
from functools import lru_cache

from scipy.special import erf, log_ndtr

from skdp.privacy.kernel.accounting import (
    FLOOR,
    HAIR,
    SMALLEST_MU,
    check_delta,
    check_epsilon,
    first,
    gdp_delta,
    gdp_epsilon,
    pure_mu,
    zcdp_epsilon,
)
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.ledger import SampledCost, compose_epsilon, total_mu
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK

#: Relative margin kept between a calibrated parameter and the budget's edge.
MARGIN = 1e-9
#: float formulas for a scale are a few ulps off; this rounds the noise up
ROUND_UP = 1 + 1e-14
# grid step = noise scale / 2^24, or coarser when the statistic is huge
_GRID_BITS = 24
# |x/g| + |noise/g| must stay exact in int64 and float64
_EXACT_BITS = 51
# how close to the budget a calibration of batches ends, as a share of epsilon or of the noise
_CLOSE = 3e-4
_SMALLEST_BATCH_MU, _LARGEST_BATCH_MU = 1e-6, 60.0
# relative width of the last bracket of what is left beside other releases
_WIDTH = 1e-3
# kept below what was found to fit: the ledger composes mu in another rounding
_KEPT = 1e-6
# beyond this many nats the composition is slow, and gains nothing over the plain sum; beyond
# this delta it takes seconds, and whoever asks for so little will not mind
_SLOW, _LOOSE = 2.0, 0.01

# From a budget to the parameter of one kind of release.


def gdp_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu such that mu-GDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon, delta : float
        Budget: epsilon in nats, finite and positive; delta in (0, 1).

    Returns
    -------
    mu : float
        Gaussian-DP parameter. One Gaussian release of a quantity with l2
        sensitivity S needs standard deviation S / mu; T releases S sqrt(T) / mu.

    Raises
    ------
    ValueError
        If epsilon or delta is out of range; delta = 0 in particular, because
        Gaussian noise never gives pure differential privacy. If the budget is so
        small that mu would be under 1e-10.

    Examples
    --------
    >>> round(1 / gdp_mu(1.0, 1e-6), 6)
    4.224679
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if delta == 0:
        raise ValueError(
            "delta must be greater than 0 for Gaussian noise, which is never purely epsilon-DP; "
            "got 0. Choose a delta well below 1/n_samples, or a mechanism with pure DP."
        )
    return _gdp_mu(epsilon, delta)


@lru_cache(maxsize=1024)
def _gdp_mu(epsilon: float, delta: float) -> float:
    """Return the result of `gdp_mu`, cached: a fit uses the same budget several times."""
    # floats give out beyond, and nobody could tell the difference
    epsilon = min(epsilon, 1e9)
    if gdp_delta(SMALLEST_MU, epsilon) > delta:
        raise ValueError(
            f"the budget epsilon={epsilon!r}, delta={delta!r} is too small to be spent: the "
            "noise would exceed 1e10 times the influence of a row. Raise epsilon or delta."
        )
    too_large = first(lambda m: gdp_delta(m, epsilon) > delta, SMALLEST_MU)
    mu = too_large * (1 - MARGIN)
    # where the margins of the formula itself are wider
    while gdp_delta(mu, epsilon) > delta:
        mu *= 1 - MARGIN
    return mu


def pure_epsilon(mu: float) -> float:
    """Return the largest epsilon whose `pure_mu` is no more than `mu`, rounded down.

    Parameters
    ----------
    mu : float
        At least 0.

    Returns
    -------
    epsilon : float
        Epsilon in nats, finite: less than ``log(Phi(mu / 2) / Phi(-mu / 2))``, mostly by a part in
        10^12.
    """
    epsilon = float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))
    if mu < 2:
        # erf keeps all digits near 0
        epsilon = 2 * math.atanh(erf(mu / math.sqrt(8))) if mu >= FLOOR else 0.0
    epsilon = min(epsilon, sys.float_info.max) * (1 - 1e-12)
    # where scipy's inverse has wider margins
    while pure_mu(epsilon) > mu:
        epsilon *= 1 - 1e-12
    return epsilon


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho such that rho-zCDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon, delta : float
        Budget: epsilon in nats, finite and positive; delta in [0, 1).

    Returns
    -------
    rho : float
        The parameter; 0 at delta 0, or if the budget is too small for floats.
    """
    # floats give out beyond, and nobody could tell the difference
    epsilon, delta = min(check_epsilon(epsilon), 1e9), check_delta(delta)
    if delta == 0:
        return 0.0
    log = -math.log(delta)
    # the classical conversion epsilon = rho + 2 sqrt(rho log(1 / delta))
    start = (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2
    if start < sys.float_info.min:
        return 0.0
    rho = first(lambda r: zcdp_epsilon(r, delta) > epsilon, start) * (1 - MARGIN)
    while zcdp_epsilon(rho, delta) > epsilon:
        rho *= 1 - MARGIN
    return rho


# From a sensitivity and a parameter to scale and grid.


def additive_scale(
    stated: float, bound: float, price: float, rounding: float, spread: float = 1.0
) -> tuple[float, ...]:
    """Return scale, grid and charged sensitivity.

    `rounding` is its part per grid step, `spread` the size of a draw in scales.
    """
    if not (0 < stated < math.inf and 0 < bound < math.inf and rounding >= 1):
        raise ValueError(
            "a query must state a positive finite sensitivity and bound, and have at least "
            f"one coordinate; got sensitivity={stated!r}, bound={bound!r}."
        )
    paid = stated * (1 + FLOAT_SLACK)
    fine = math.ceil(math.log2(paid * spread) - math.log2(price)) - _GRID_BITS
    exponent = max(fine, math.ceil(math.log2(bound)) - _EXACT_BITS)
    grid = math.ldexp(1.0, min(max(exponent, -1000), 900))
    paid += grid * rounding
    scale = paid / price * ROUND_UP
    if not (-1000 <= exponent <= 900 and 0 < scale / grid <= 2.0**40):
        raise ValueError("the noise leaves the range of floating point; rescale the data.")
    return scale, grid, paid


# From a budget to the noise of releases on random batches.


def sampled_mu(
    epsilon: float,
    delta: float,
    *,
    sampling: Sampling,
    n_releases: int,
    adjacency: str,
    mu: float = 0.0,
    priced: tuple[tuple[float, float, int], ...] = (),
) -> float:
    """Return the largest `mu` of `SampledGaussianMechanism` that a budget allows.

    Parameters
    ----------
    epsilon, delta : float
        Budget of everything: in nats, and in (0, 1).
    sampling, n_releases, adjacency : Sampling, int, {"replace-one", "zero-out"}
        Sampling of batches, number of releases, and adjacency.
    mu, priced : float, tuple of (float, float, int)
        Prices of the other releases: total Gaussian-DP parameter, and (epsilon, delta, count).

    Returns
    -------
    mu : float
        The parameter from composed privacy loss distributions, to 3 parts in 10^4. The result is
        cached.

    Raises
    ------
    ValueError
        If the budget is too small for any noise that floats can hold.
    """
    parts = (SampledCost(sampling, 1.0, adjacency, n_releases),)
    return sampled_mus(epsilon, delta, parts, mu, tuple(priced))[0]


@lru_cache(maxsize=512)
def sampled_mus(
    epsilon: float,
    delta: float,
    parts: tuple[SampledCost, ...],
    mu: float = 0.0,
    priced: tuple[tuple[float, float, int], ...] = (),
) -> tuple[float, ...]:
    """Return the largest parameters, in given proportions, of several kinds of releases.

    Parameters
    ----------
    epsilon, delta : float
        Budget of everything: in nats, and in (0, 1).
    parts : tuple of SampledCost
        The releases, all under one adjacency; their `mu` are the proportions.
    mu, priced : float, tuple of (float, float, int)
        What else is released.

    Returns
    -------
    mus : tuple of float
        One parameter per part, as from `sampled_mu`.

    Raises
    ------
    ValueError
        If the budget is too small for any noise that floats can hold.
    """
    total = gdp_mu(epsilon, delta)  # raises for what is no budget
    if mu >= total:
        raise ValueError("nothing of the budget is left: the other releases need all of it.")

    def mus(value: float) -> tuple[float, ...]:
        return tuple(_coarse(value * part.mu) for part in parts)

    def excess(value: float) -> float:
        """Return the log of epsilon over budget, infinite for an epsilon of 0 or infinity."""
        costs = [replace(part, mu=one) for part, one in zip(parts, mus(value), strict=True)]
        # the ledger has what reads all rows in closed form next to what does not
        by_chance = tuple(c for c in costs if not c.sampling.reads_all) or tuple(costs)
        full = [(cost.mu, cost.count) for cost in costs if cost not in by_chance]
        spent = compose_epsilon(total_mu([(mu, 1), *full]), priced, delta, by_chance)
        return math.log(spent / epsilon) if 0 < spent < math.inf else math.copysign(9, spent - 1)

    # secant steps on logarithms, inside a bracket, from a guess
    low, high, before = 0.0, math.inf, None
    value = _limit_guess(total, parts)
    while high > low * (1 + _CLOSE):
        gap = excess(value)
        # the ledger adds up in another rounding
        low, high = (max(low, value), high) if gap <= -1e-10 else (low, min(high, value))
        if -_CLOSE < gap <= -1e-10 or low > _LARGEST_BATCH_MU:
            break
        if high < _SMALLEST_BATCH_MU:
            raise ValueError(
                f"the budget epsilon={epsilon!r}, delta={delta!r} is too small for "
                f"{max(part.count for part in parts)} releases: use fewer steps, larger "
                "batches, or a larger budget."
            )
        slope = 1.0 if before is None else (gap - before[1]) / math.log(value / before[0])
        before = (value, gap)
        step = -(gap + _CLOSE / 2) / min(max(slope, 0.5), 8.0)
        value *= math.exp(min(max(step, -1.5), 1.5))
        if not low * (1 + _CLOSE / 4) < value < high:
            value = math.sqrt(low * high) if low and high < math.inf else value
    return mus(low)


def _coarse(mu: float) -> float:
    """Return the parameter a little below a number of 18 bits.

    Costs are rounded up to 30 bits. Processors differ in the last bits of a composition, and the
    search ends a hundred-millionth apart: so few bits give one seed the same noise on all of them.
    """
    mantissa, exponent = math.frexp(mu)
    return math.ldexp(math.floor(mantissa * 2**18) / 2**18, exponent) * (1 - 1e-12)


def _limit_guess(total: float, parts: tuple[SampledCost, ...]) -> float:
    """Return a first guess, from the central limit of the composition (Dong et al. 2022)."""
    kinds = {part.sampling.kind for part in parts if not part.sampling.reads_all}
    if parts[0].adjacency == "replace-one" and "poisson" in kinds:
        total /= 2
    squares = ((p.sampling.rate * p.mu) ** 2 * p.count for p in parts)
    ratio = total / max(math.sqrt(math.fsum(squares)), 1e-300)
    largest = max(part.mu for part in parts)
    guess = math.sqrt(math.log1p((ratio * largest) ** 2)) / largest
    return min(max(guess, 10 * _SMALLEST_BATCH_MU), _LARGEST_BATCH_MU / 2)


# What is left beside other releases.


@lru_cache(maxsize=1024)
def mu_beside(
    epsilon: float, delta: float, priced: float | tuple[float, ...] = 0.0, mu: float = 0.0
) -> float:
    """Return the Gaussian-DP parameter that fits a budget next to other releases.

    Parameters
    ----------
    epsilon, delta : float
        Budget of everything together.
    priced : float or tuple of float, default=0.0
        Epsilon of a purely private release, or of several, in all less than `epsilon`; 0, or
        an empty tuple, for none.
    mu : float, default=0.0
        Total parameter of other Gaussian releases; 0 for none.

    Returns
    -------
    mu : float
        Remaining parameter: at least as large as under a plain sum of epsilons, and such that the
        composition on the ledger fits the budget. A function of public numbers only.

    Raises
    ------
    ValueError
        If delta is 0, or the budget is too small to be spent.
    """
    if mu:
        total = mu_beside(epsilon, delta, priced)
        left = (total - mu) * (total + mu)
        if left <= 0:
            raise ValueError("nothing of the budget is left: the other releases need all of it.")
        return math.sqrt(left) * (1 - 1e-12)
    prices = priced if isinstance(priced, tuple) else (priced,) if priced else ()
    if not prices:
        return gdp_mu(epsilon, delta)
    total = math.fsum(prices)
    low, high = gdp_mu(epsilon - total, delta), gdp_mu(epsilon, delta)
    # epsilon - total may have been rounded up, and the ledger sums mu in another rounding
    while total + gdp_epsilon(low * (1 + _KEPT / 2), delta) > epsilon:
        low *= 1 - _KEPT
    if epsilon > _SLOW or delta > _LOOSE:
        return low

    def fits(value: float) -> bool:
        charges = [(price, 0.0, 1) for price in prices]
        return compose_epsilon(value * (1 + _KEPT), charges, delta) <= epsilon

    while high - low > _WIDTH * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def mu_of_all(epsilon: float, delta: float, priced: tuple[float, ...] = ()) -> float:
    """Return the Gaussian-DP parameter of a whole fit that spends a budget on full batches.

    Parameters
    ----------
    epsilon, delta : float
        The budget; delta greater than 0.
    priced : tuple of float, default=()
        Epsilons of the purely private releases beside the Gaussian ones.

    Returns
    -------
    mu : float
        Parameter, slightly larger than `mu_beside` and the pure releases together. It still
        implies the budget if all releases are Gaussian, because `gdp_mu` has a wider margin.
    """
    mu = mu_beside(epsilon, delta, priced)
    return math.hypot(mu, *map(pure_mu, priced)) * HAIR


def signal_to_noise(
    n_rows: int, epsilon: float, delta: float, adjacency: str, n_coefs: int
) -> float:
    """Return the signal of rows per coefficient in units of the noise, a rough forecast.

    That is n mu / (a sqrt(p)), with a = 1 under zero-out and 2 under replace-one: the length of a
    sum of n unit rows over the length of the noise that hides one of them.
    """
    moved = 1.0 if adjacency == "zero-out" else 2.0
    return n_rows * gdp_mu(epsilon, delta) / (moved * math.sqrt(n_coefs))
