# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is left of a budget for Gaussian releases beside others."""

import functools
import math

from skdp.privacy.kernel.accounting import HAIR, gdp_epsilon, gdp_mu, pure_mu
from skdp.privacy.kernel.composition import compose_epsilon

# Relative width of the last bracket of mu.
_WIDTH = 1e-3
# Kept below what was found to fit: the ledger composes mu in another rounding.
_MARGIN = 1e-6
# Beyond this many nats the composition is slow, and gains nothing over the plain sum; beyond
# this delta it takes seconds, and whoever asks for so little will not mind.
_SLOW, _LOOSE = 2.0, 0.01


@functools.lru_cache(maxsize=1024)
def mu_beside(epsilon, delta, priced=0.0, mu=0.0):
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
        What is left: at least what a plain sum of epsilons allows, and so that the
        ledger's composition fits the budget. A function of public numbers only.

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
    while total + gdp_epsilon(low * (1 + _MARGIN / 2), delta) > epsilon:
        low *= 1 - _MARGIN
    if epsilon > _SLOW or delta > _LOOSE:
        return low

    def fits(value):
        charges = [(price, 0.0, 1) for price in prices]
        return compose_epsilon(value * (1 + _MARGIN), charges, delta) <= epsilon

    while high - low > _WIDTH * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def mu_of_all(epsilon, delta, priced=()):
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
        A hair more than what `mu_beside` leaves and the pure releases have together. It still
        implies the budget where all releases are Gaussian, for `gdp_mu` keeps a wider margin.
    """
    mu = mu_beside(epsilon, delta, priced)
    return math.hypot(mu, *map(pure_mu, priced)) * HAIR
