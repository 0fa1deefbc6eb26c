# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy arithmetic: the exact Gaussian curve, composition, calibration.

Everything is rounded outward: a reported epsilon or delta is never below the
true one, a calibrated parameter never above what was granted. epsilon is in nats.

A Gaussian release of a quantity of l2 sensitivity S with noise of standard
deviation sigma is mu-GDP with mu = S / sigma, and exactly so: adaptive releases
compose to sqrt(mu_1^2 + mu_2^2 + ...), and mu-GDP is (epsilon, delta)-DP if and
only if delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)
(Balle and Wang 2018; Dong, Roth and Su 2022).
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

# Relative margin kept between a calibrated parameter and the budget's edge.
_MARGIN = 1e-9
# No budget that asks for noise beyond this multiple of the sensitivity is served.
_SMALLEST_MU = 1e-10


def _as_float(value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_epsilon(epsilon: Any) -> float:
    """Return a usable epsilon or raise; NaN, infinity, booleans and text do not pass."""
    value = _as_float(epsilon)
    if not 0 < value < math.inf:
        raise ValueError(f"epsilon must be a finite number greater than 0; got {epsilon!r}.")
    return value


def check_delta(delta: Any) -> float:
    """Return a usable delta or raise."""
    value = _as_float(delta)
    if not 0 <= value < 1:
        raise ValueError(f"delta must be a number in [0, 1); got {delta!r}.")
    return value


def _log_delta(mu: float, epsilon: float) -> float:
    """Return log of the delta at which a mu-GDP mechanism is (epsilon, delta)-DP."""
    upper = float(log_ndtr(mu / 2 - epsilon / mu))
    # log of e^epsilon Phi(-v) / Phi(-u), u = epsilon/mu - mu/2, v = epsilon/mu + mu/2;
    # erfcx cancels the common factor exp(-u^2/2), which would drown the difference
    u, v = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if u > -5:
        ratio = float(erfcx(v / math.sqrt(2)) / erfcx(u / math.sqrt(2)))
    else:
        ratio = math.exp(min(0.0, epsilon + float(log_ndtr(-v)) - upper))
    return upper + (math.log1p(-ratio) if ratio < 1 else math.log(4e-16))


def gdp_delta(mu: float, epsilon: float) -> float:
    """Return the delta of a mu-GDP mechanism at a given epsilon, rounded up.

    Parameters
    ----------
    mu, epsilon : float
        Gaussian-DP parameter, and epsilon in nats; both at least 0.

    Returns
    -------
    delta : float
        Smallest delta such that the mechanism is (epsilon, delta)-DP.

    Examples
    --------
    >>> round(gdp_delta(1 / 3.730632, 1.0), 9)
    1e-05
    """
    if mu == 0:
        return 0.0
    if not (0 < mu < math.inf and epsilon >= 0):
        raise ValueError("mu must be finite and non-negative, epsilon non-negative.")
    mu = max(mu, _SMALLEST_MU)
    # rounding error of the formula: cancellation in 1 - ratio, conditioning of the tail
    # (checked against 60 digits in tests/privacy/test_accounting.py)
    slack = 1e-12 + 4e-15 * (1 + epsilon / mu) * (1 / min(mu, 1.0) + epsilon / mu)
    return min(1.0, max(math.exp(_log_delta(mu, epsilon)) * (1 + slack), sys.float_info.min))


def gdp_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of a mu-GDP mechanism at a given delta, rounded up.

    Parameters
    ----------
    mu, delta : float
        Gaussian-DP parameter, at least 0, and delta in [0, 1).

    Returns
    -------
    epsilon : float
        Smallest epsilon (in nats) such that the mechanism is (epsilon, delta)-DP;
        infinite at delta 0 unless mu is 0.

    Examples
    --------
    >>> round(gdp_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    if gdp_delta(mu, 0.0) <= check_delta(delta):
        return 0.0
    return _first(lambda e: gdp_delta(mu, e) <= delta, 1e-12)


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
    if gdp_delta(_SMALLEST_MU, epsilon) > delta:
        raise ValueError(
            f"the budget epsilon={epsilon!r}, delta={delta!r} is too small to be spent: the "
            "noise would exceed 1e10 times the influence of a row. Raise epsilon or delta."
        )
    too_large = _first(lambda m: gdp_delta(m, epsilon) > delta, _SMALLEST_MU)
    return too_large * (1 - _MARGIN)


def _first(holds: Callable[[float], bool], start: float) -> float:
    """Return the first x >= start from which a monotone predicate holds, rounded up."""
    high = start
    while not holds(high):
        if high > 1e300:
            return math.inf
        high *= 2
    low = high / 2
    while high - low > 1e-13 * high:
        middle = low + (high - low) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


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
) -> float:
    """Return the epsilon, at `delta`, of adaptively composed releases, rounded up.

    `mu` stands for all Gaussian releases (0 for none), `priced` for triples (epsilon,
    delta, count), `sampled` for releases on random batches. Gaussian releases alone compose
    exactly; priced releases alone are summed. Everything else is composed by
    dp_accounting's privacy loss distributions, each priced release standing for its worst
    case (randomised response, broken with probability delta); the better of that and of
    the plain sum is returned.
    """
    if sampled:
        if delta == 0:
            return math.inf
        # close parameters share one computation; up means more privacy loss
        costs = tuple(replace(c, mu=_round_up(c.mu)) for c in sampled)
        return _sampled_epsilon(mu, tuple(priced), delta, costs)
    total = _sum_up((epsilon, count) for epsilon, _, count in priced)
    broken = _sum_up((part, count) for _, part, count in priced)
    # an ulp less, in case the difference was rounded up
    left = delta - broken if broken == 0 else (delta - broken) * (1 - 1e-15)
    if left < 0:
        return math.inf
    plain = total + gdp_epsilon(mu, left)
    alone = sum(count for _, _, count in priced) == 1
    # next to one priced release, a little Gaussian noise leaves nothing to be gained
    if mu == 0 or not priced or delta == 0 or (alone and plain < 1.02 * total):
        return plain
    return min(plain, _pld_epsilon(mu, tuple(priced), delta))


def _sum_up(terms: Iterable[tuple[float, int]]) -> float:
    exact = sum((Fraction(value) * count for value, count in terms), Fraction(0))
    total = float(exact)
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
