# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The beta function and the incomplete one, in log space."""

import math


def log_beta_half(a):
    """Return the logarithm of the beta function at `a` and one half.

    Parameters
    ----------
    a : float
        Greater than 0.

    Returns
    -------
    value : float
        ``log(Gamma(a) Gamma(1/2) / Gamma(a + 1/2))``, to a few units of the last place. The
        difference of two logarithms of the gamma function loses ``a log(a)`` of them; from
        20 on the asymptotic series of their difference is used, whose next term is below
        ``2e-17``, and up to there the functional equation leads.
    """
    shift = 1.0
    while a < 20.0:
        shift *= (a + 0.5) / a
        a += 1.0
    u = 1.0 / (a * a)
    series = (1 / 8 - u * (1 / 192 - u * (1 / 640 - u * (17 / 14336 - u * 31 / 18432)))) / a
    return 0.5 * math.log(math.pi / a) + series + math.log(shift)


def beta_fraction(alpha, beta, x, rest):
    """Return the hypergeometric function 2F1(alpha + beta, 1; alpha + 1; x).

    Parameters
    ----------
    alpha, beta : float
        `alpha` greater than 0; `beta` may be negative.
    x, rest : float
        A number in [0, 1) and what it lacks to 1. Near 1 the value depends on `rest`, which
        would not be accurate as a difference.

    Returns
    -------
    value : float
        The incomplete beta function is ``x^alpha rest^beta / alpha`` times that.

    Notes
    -----
    The even part of the continued fraction of Gauss (DiDonato and Morris 1992, equation 9),
    summed by the method of Lentz.
    """
    value = c = alpha * (alpha * rest - beta * x + 1.0) / (alpha + 1.0)
    d = 0.0
    for m in range(1, 100_000):
        odd = alpha + 2 * m
        top = (alpha + m - 1) * (alpha + beta + m - 1) * m * (beta - m) * (x / (odd - 1)) ** 2
        base = m + m * (beta - m) * x / (odd - 1)
        base += (alpha + m) * (alpha * rest - beta * x + 1.0 + m * (1.0 + rest)) / (odd + 1)
        d = 1.0 / (base + top * d)
        c = base + top / c
        value *= c * d
        if abs(c * d - 1.0) < 5e-16:
            break
    return alpha / value
