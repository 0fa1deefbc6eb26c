# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Caps of the sphere: their probability, its inverse, and their mean, in log space."""

import math
from numbers import Integral

from scipy.optimize import brentq
from scipy.special import betainc, betaincc

# The beta function and the incomplete one, in log space.


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


#: relative accuracy of logarithms of probabilities, and absolute accuracy where they are above -1
CAP_ACCURACY = 4e-15

# beyond this square of the cosine times the dimension the continued fraction is quick
_TAIL = 6.0
_MOST_DIMS = 10**9


def check_dims(n_dims, least=1):
    """Return a dimension as an int.

    Parameters
    ----------
    n_dims : int
        Dimension of the space in which the sphere lies.
    least : int, default=1
        The smallest that is allowed.

    Returns
    -------
    n_dims : int

    Raises
    ------
    ValueError
        If it is no integer from `least` to 10^9.
    """
    whole = isinstance(n_dims, Integral) and not isinstance(n_dims, bool)
    if not whole or not least <= n_dims <= _MOST_DIMS:
        raise ValueError(f"n_dims must be an integer from {least} to 10^9, got {n_dims!r}.")
    return int(n_dims)


def log_one_minus_square(cosine):
    """Return ``log(1 - cosine^2)``, minus infinity at 1 and -1."""
    size = abs(cosine)
    if size < 0.7:
        return math.log1p(-size * size)
    return math.log1p(-size) + math.log1p(size) if size < 1.0 else -math.inf


def log_tail(square, log_rest, n_dims):
    """Return the logarithm of the probability of a cap of at most half of the sphere.

    Parameters
    ----------
    square : float
        Square of the cosine, in [0, 1].
    log_rest : float
        Logarithm of one minus that square; it is given because it cannot be had from it.
    n_dims : int
        At least 2.

    Returns
    -------
    value : float
    """
    a = 0.5 * (n_dims - 1)
    if square * n_dims < _TAIL and square < 0.5:
        # the slab between two caps is had to relative accuracy, the cap only if it is small
        slab = float(betainc(0.5, a, square))
        rest = 1.0 - slab if slab < 0.5 else float(betaincc(0.5, a, square))
        return math.log(0.5 * rest)
    if log_rest == -math.inf:
        return -math.inf
    fraction = beta_fraction(a, 0.5, math.exp(log_rest), square)
    whole = a * log_rest + 0.5 * math.log(square) + math.log(fraction)
    return whole - math.log(2.0 * a) - log_beta_half(a)


def log_cap(cosine, n_dims):
    """Return the logarithm of the probability of a cap of the sphere.

    Parameters
    ----------
    cosine : float
        In [-1, 1].
    n_dims : int
        Dimension of the space in which the sphere lies, at least 1.

    Returns
    -------
    value : float
        ``log P(U_1 >= cosine)`` for the first coordinate of a point drawn uniformly from the
        unit sphere. Its accuracy is `CAP_ACCURACY`.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    ``U_1^2`` has a beta law with parameters 1/2 and ``a = (n_dims - 1) / 2``, so that the
    probability is half of the regularised incomplete beta function of ``a`` and 1/2 at
    ``1 - cosine^2``. Where it may underflow, the continued fraction is taken, whose factor
    ``(1 - cosine^2)^a`` stays a logarithm.
    """
    n_dims, cosine = check_dims(n_dims), float(cosine)
    if not -1.0 <= cosine <= 1.0:
        raise ValueError(f"cosine must be in [-1, 1], got {cosine!r}.")
    if n_dims == 1:
        return 0.0 if cosine == -1.0 else -math.log(2.0)
    square, log_rest = cosine * cosine, log_one_minus_square(cosine)
    if cosine >= 0.0:
        return log_tail(square, log_rest, n_dims)
    if square * n_dims < _TAIL and square < 0.5:
        # the inside of the slab between two caps, which is accurate when they are near
        return math.log(0.5 + 0.5 * float(betainc(0.5, 0.5 * (n_dims - 1), square)))
    return math.log1p(-math.exp(log_tail(square, log_rest, n_dims)))


def cap_cosine(log_probability, n_dims):
    """Return the cosine of the cap that has a probability.

    Parameters
    ----------
    log_probability : float
        At most 0; minus infinity is allowed.
    n_dims : int
        Dimension of the space in which the sphere lies, at least 1.

    Returns
    -------
    cosine : float
        The largest cosine whose cap has at least this probability, as near as a floating
        point number can be. For the two points of dimension 1 it is 1 or -1.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    n_dims, log_p = check_dims(n_dims), float(log_probability)
    if not log_p <= 0.0:
        raise ValueError(f"log_probability must be at most 0, got {log_p!r}.")
    if n_dims == 1:
        return 1.0 if log_p <= -math.log(2.0) else -1.0
    if log_p in (0.0, -math.inf):
        return -1.0 if log_p == 0.0 else 1.0
    if log_p > -math.log(2.0):
        return -cap_cosine(math.log(-math.expm1(log_p)), n_dims)

    def excess(y):
        return log_tail(math.tanh(y) ** 2, -2.0 * log_cosh(y), n_dims) - log_p

    high = 1.0
    while excess(high) > 0.0:
        high *= 2.0
    if excess(0.0) <= 0.0:
        return 0.0
    return math.tanh(brentq(excess, 0.0, high, xtol=1e-18, rtol=1e-15, maxiter=500))


def log_cosh(y):
    """Return the logarithm of the hyperbolic cosine; `y` is not negative."""
    if y < 0.5:
        # 2 sinh(y/2)^2 is the hyperbolic cosine minus 1
        return math.log1p(2.0 * math.sinh(0.5 * y) ** 2)
    return y + math.log1p(math.exp(-2.0 * y)) - math.log(2.0)


def log_cap_mean(cosine, n_dims):
    """Return the logarithm of the mean of the first coordinate inside of a cap, times its mass.

    Parameters
    ----------
    cosine : float
        In [-1, 1].
    n_dims : int
        Dimension of the space in which the sphere lies, at least 1.

    Returns
    -------
    value : float
        ``log E[U_1 1(U_1 >= cosine)]``, minus infinity for the whole sphere or one point.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    The density of ``U_1`` is ``(1 - t^2)^(a - 1) / B(a, 1/2)``, and ``t (1 - t^2)^(a - 1)``
    integrates to ``(1 - cosine^2)^a / (2 a)``.
    """
    n_dims, cosine = check_dims(n_dims), float(cosine)
    if not -1.0 <= cosine <= 1.0:
        raise ValueError(f"cosine must be in [-1, 1], got {cosine!r}.")
    if n_dims == 1:
        return -math.inf if cosine == -1.0 else -math.log(2.0)
    log_rest = log_one_minus_square(cosine)
    return log_mean_at(log_rest, n_dims)


def log_mean_at(log_rest, n_dims):
    """Return what `log_cap_mean` does, from the logarithm of one minus the square."""
    a = 0.5 * (n_dims - 1)
    return a * log_rest - math.log(2.0 * a) - log_beta_half(a)
