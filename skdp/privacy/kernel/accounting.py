# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Privacy arithmetic: the exact Gaussian curve, pure and concentrated privacy; and refusals.

Everything is rounded outward: a reported epsilon or delta is never below the
true one. epsilon is in nats.

A Gaussian release of a quantity of l2 sensitivity S with noise of standard
deviation sigma is mu-GDP with mu = S / sigma, and exactly so: adaptive releases
compose to sqrt(mu_1^2 + mu_2^2 + ...), and mu-GDP is (epsilon, delta)-DP if and
only if delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)
(Balle and Wang 2018; Dong, Roth and Su 2022).
"""

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.special import erfcx, erfinv, log_ndtr, ndtri_exp

#: By so much, a tenth of `MARGIN`, the mu of a whole fit is above the sum of its parts, which
#: round.
HAIR = 1 + 1e-10
#: Gaussian-DP parameters below count as this: nobody could tell the difference.
SMALLEST_MU = 1e-10
#: Below, floats lose digits.
FLOOR = 1e-300


def as_float(value: Any) -> float:
    """Return a number as a float; NaN for other types than int and float, of Python or numpy."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_epsilon(epsilon: Any) -> float:
    """Return a usable epsilon or raise; NaN, infinity, booleans and text do not pass."""
    value = as_float(epsilon)
    if not 0 < value < math.inf:
        raise ValueError(f"epsilon must be a finite number greater than 0; got {epsilon!r}.")
    return value


def check_delta(delta: Any) -> float:
    """Return a usable delta or raise."""
    value = as_float(delta)
    if not 0 <= value < 1:
        raise ValueError(f"delta must be a number in [0, 1); got {delta!r}.")
    return value


def check_mu(mu: Any) -> float:
    """Return a usable Gaussian-DP parameter or raise."""
    value = as_float(mu)
    if not 0 < value < math.inf:
        raise ValueError(f"mu must be finite and greater than 0; got {mu!r}.")
    return value


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise unless a value is allowed."""
    if not (isinstance(value, str) and value in (allowed := tuple(allowed))):
        raise ValueError(f"{name} must be one of {allowed}; got {value!r}.")


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
    mu, epsilon = float(mu), float(epsilon)
    if mu == 0:
        return 0.0
    if not (0 < mu < math.inf and epsilon >= 0):
        raise ValueError("mu must be finite and non-negative, epsilon non-negative.")
    mu = max(mu, SMALLEST_MU)
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
    delta = check_delta(delta)
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    # usual ones are above 1/2, and doubling once in a while comes by there
    start = 1e-12 if gdp_delta(mu, 1e-12 * 2**39) <= delta else 1e-12 * 2**39
    return first(lambda e: gdp_delta(mu, e) <= delta, start)


def pure_mu(epsilon: float) -> float:
    """Return the Gaussian-DP parameter of any purely epsilon-DP release, rounded up.

    Parameters
    ----------
    epsilon : float
        In nats, finite and at least 0.

    Returns
    -------
    mu : float
        With ``Phi(-mu / 2) = 1 / (1 + e^epsilon)``.

    Notes
    -----
    Errors of any test of an epsilon-DP release lie above the two segments that meet in the
    point whose coordinates both are 1 / (1 + e^epsilon). The curve of errors of mu-GDP runs
    through it and through the far ends of the segments, and is convex: it lies below.

    Examples
    --------
    >>> round(pure_mu(1.0), 4)
    1.232
    """
    epsilon = float(epsilon)
    if epsilon < 2:
        # erfinv keeps all digits near 0
        mu = 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    else:
        mu = -2 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    # where floats give out it is more, but never nothing
    return max(mu * (1 + 1e-13), FLOOR) if epsilon else 0.0


def first(holds: Callable[[float], bool], start: float) -> float:
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


# Zero-concentrated privacy.


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon of a rho-zCDP mechanism at a given delta, rounded up.

    Parameters
    ----------
    rho, delta : float
        Parameter of zero-concentrated differential privacy, at least 0: Renyi divergences of
        order a are at most ``rho a``. And delta in [0, 1).

    Returns
    -------
    epsilon : float
        In nats; infinite at delta 0 unless rho is 0.

    Notes
    -----
    Every order a = 1 + x gives a bound (Canonne, Kamath and Steinke 2020, Proposition 12).
    Its derivative in x is ``rho - (log(1 / delta) - log(1 + x)) / x^2``, which changes its
    sign once: there the bound is smallest.
    """
    delta = check_delta(delta)
    if rho == 0:
        return 0.0
    if delta == 0 or not rho < math.inf:
        return math.inf
    log = -math.log(delta)
    x = first(lambda x: rho * x * x + math.log1p(x) >= log, 1e-20)
    terms = (rho, rho * x, -math.log1p(1 / x), log / x, -math.log1p(x) / x)
    # every term is a few ulps off
    return max(0.0, math.fsum(terms) + 4e-15 * math.fsum(map(abs, terms)))


# -- refusals and warnings; `skdp.exceptions` is their public place -----------------------------

PUBLIC = "skdp.exceptions"  # what users import and see in a traceback


class BudgetError(ValueError):
    """A release would exceed the privacy budget; no private data were read for it."""

    __module__ = PUBLIC


class PrivacyWarning(UserWarning):
    """Base class of the library's warnings."""

    __module__ = PUBLIC


class SeededNoiseWarning(PrivacyWarning):
    """A `random_state` was given: the noise can be reproduced, and so removed."""

    __module__ = PUBLIC


def level_of_caller() -> int:
    """Return the stack level of the first line outside of the library and of its callers."""
    level, frame = 1, sys._getframe(1)
    between = {"skdp", "sklearn", "contextlib", "joblib"}
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in between:
        level, frame = level + 1, frame.f_back
    return level
