# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities of the number of heads among fair coins, in log space."""

import math
from fractions import Fraction

from skdp._randomisers._beta import beta_fraction

# up to here integers are summed
_EXACT = 64


def _stirling_error(n):
    """Return what Stirling's formula lacks to the logarithm of a factorial; n is above 0."""
    if n < 16:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    u = 1.0 / (float(n) * n)
    return (1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u / 1188)))) / n


def log_heads(k, n):
    """Return the logarithm of the probability of `k` heads among `n` fair coins.

    Parameters
    ----------
    k, n : int
        From 0 to `n`, and at least 0.

    Returns
    -------
    value : float
        ``log(C(n, k) / 2^n)``, of relative accuracy ``2e-15``, or of that absolute accuracy if
        it is above -1. Differences of logarithms of the gamma function would lose ``n log n``
        units of the last place; with Stirling's formula the large terms make one, the
        relative entropy of ``k/n`` and 1/2, times n (Loader 2000).
    """
    if n <= _EXACT:
        return math.log(math.comb(n, k) / (1 << n))
    if k in (0, n):
        return -n * math.log(2.0)
    tilt = (2 * k - n) / n
    # for small tilts the two terms are minus one and two times the square
    entropy = 0.5 * n * (math.log1p(-tilt * tilt) + 2.0 * tilt * math.atanh(tilt))
    error = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    return error - entropy + 0.5 * math.log(n / (2.0 * math.pi * k * (n - k)))


def log_heads_tail(k, n):
    """Return the logarithm of the probability of at least `k` heads among `n` fair coins.

    Parameters
    ----------
    k, n : int
        More than half of `n`, up to ``n + 1``, and at least 0.

    Returns
    -------
    value : float
        Minus infinity for ``n + 1``. The tail is the incomplete beta function of k and
        ``n - k + 1`` at 1/2; its continued fraction is multiplied by the probability of k.
    """
    if k > n:
        return -math.inf
    if n <= _EXACT:
        return math.log(heads_tail(k, n))
    if 2 * k == n + 1:
        return -math.log(2.0)
    fraction = beta_fraction(float(k), n - k + 1.0, 0.5, 0.5)
    return log_heads(k, n) + math.log(0.5 * fraction)


def heads_tail(k, n):
    """Return the probability of at least `k` heads among `n` fair coins as a fraction."""
    term = total = 1 if k <= n else 0
    for j in range(n, k, -1):
        # from the number of ways to have j heads to that of j - 1
        term = term * j // (n - j + 1)
        total += term
    return Fraction(total, 1 << n)
