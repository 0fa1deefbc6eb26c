# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Caps of the sphere and tails of fair coins to sixty digits, by other ways than the library's."""

import mpmath as mp

DIGITS = 60


def log_cap(cosine, d):
    """Return the logarithm of the probability of a cap, for a cosine that is not negative."""
    with mp.workdps(DIGITS):
        if d == 1:
            return -mp.log(2)
        c, a, half = mp.mpf(cosine), mp.mpf(d - 1) / 2, mp.mpf(1) / 2
        rest = (1 - c) * (1 + c)
        log_beta = mp.loggamma(a) + mp.loggamma(half) - mp.loggamma(a + half)
        if c * c * d < 40 and c * c < 0.9:
            # the series of the slab, whose terms are positive
            slab = c * mp.exp(a * mp.log(rest) - log_beta) * _series(a + half, 3 * half, c * c)
            return mp.log(half - slab)
        factor = _series(a + half, a + 1, rest) if rest < 0.5 else _fraction(a, rest)
        return a * mp.log(rest) + mp.log(c) + mp.log(factor) - mp.log(2 * a) - log_beta


def _series(above, below, x):
    term = total = mp.mpf(1)
    n = 0
    while term > total * mp.mpf(10) ** -(DIGITS + 2):
        term *= (above + n) / (below + n) * x
        total += term
        n += 1
    return total


def _fraction(a, x):
    # the whole fraction of Gauss, where the library takes its even part
    b, value, c, d = mp.mpf(1) / 2, mp.mpf(1), mp.mpf(1), mp.mpf(0)
    for step in range(1, 50000):
        m = step // 2
        if step % 2:
            top = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            top = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + top * d)
        c = 1 + top / c
        value *= c * d
        if abs(c * d - 1) < mp.mpf(10) ** -(DIGITS - 2):
            return 1 / value
    raise AssertionError("no convergence")


def budget(p, log_q):
    """Return ``logit p - logit q`` of a floating point number p."""
    with mp.workdps(DIGITS):
        p = mp.mpf(p)
        return mp.log(p) - mp.log1p(-p) - log_q + mp.log1p(-mp.exp(log_q))


def log_heads_tail(k, n):
    """Return the logarithm of the probability of at least k heads; n may be large."""
    with mp.workdps(DIGITS):
        gammas = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
        term = total = mp.mpf(1)
        while k < n and term > total * mp.mpf(10) ** -30:
            term *= mp.mpf(n - k) / (k + 1)
            k += 1
            total += term
        return gammas - n * mp.log(2) + mp.log(total)


def error(found, wanted):
    """Return the error of a logarithm, relative if it is below -1 and else absolute."""
    return float(abs(found - wanted) / max(1, abs(wanted)))
