# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Zero-concentrated privacy: from rho to (epsilon, delta) and back, rounded outward."""

import math
import sys

from skdp.privacy._accounting import MARGIN, check_delta, check_epsilon, first


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


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho such that rho-zCDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon, delta : float
        Budget: epsilon in nats, finite and positive; delta in [0, 1).

    Returns
    -------
    rho : float
        0 at delta 0, or if the budget is so small that floats give out.
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
