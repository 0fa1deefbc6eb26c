# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Cosines between a vector and the report that PrivUnit makes of it; they read no data."""

import math

import numpy as np
from scipy.special import betainc, betainccinv, betaincinv

from skdp._randomisers._cap import log_one_minus_square
from skdp._reports._coins import coins
from skdp._reports._words import uniforms


def cap_cosines(unit, size, bits):
    """Draw the cosines of reports to the vectors that they are of.

    Parameters
    ----------
    unit : PrivUnit
        Parameters.
    size : int
        How many, independent of each other.
    bits : Bits
        Source of random words.

    Returns
    -------
    cosines : ndarray of shape (size,)
        At least ``unit.cosine`` with probability p, and else less. Given the side they have
        the law of the first coordinate of a uniform unit vector on that side.
    rests : ndarray of shape (size,)
        One minus their squares, which would not be accurate as differences.
    """
    inside = coins(unit.p, size, bits)
    if unit.n_dims == 1:
        return np.where(inside, 1.0, -1.0), np.zeros(size)
    cosines, rests = np.empty(size), np.empty(size)
    count = int(np.count_nonzero(inside))
    if count:
        cosines[inside], rests[inside] = cosines_in_cap(unit, count, bits)
    if count < size:
        cosines[~inside], rests[~inside] = cosines_beyond(unit, size - count, bits)
    return cosines, rests


def cosines_in_cap(unit, size, bits):
    """Draw cosines of at least that of the cap, and one minus their squares.

    Parameters
    ----------
    unit : PrivUnit
        Parameters, in dimension 2 or more.
    size, bits : int, Bits
        As for `cap_cosines`.

    Returns
    -------
    cosines, rests : ndarray of shape (size,)

    Notes
    -----
    ``x = 1 - t^2`` has a density proportional to ``x^(a-1) (1-x)^(-1/2)`` up to ``1 - c^2``,
    with ``a = (d-1)/2``. It is proposed by the first factor, as ``(1 - c^2) U^(1/a)``, and kept
    with probability c/t, for the second one is at most 1/c. That is done with logarithms, so
    the cap may be as small as it likes. Where it is nearly a half of the sphere too few would
    be kept: there the upper tail of ``t^2``, a beta variable, is inverted.
    """
    a, c = 0.5 * (unit.n_dims - 1), unit.cosine
    if c * c * unit.n_dims < 1.0:
        square, rest = _folded(2.0 * math.exp(unit.log_q) * uniforms(bits.words(size)), a)
        return np.sqrt(square), rest
    log_rests, missing = np.empty(size), np.arange(size)
    while missing.size:
        tries, kept = uniforms(bits.words(2 * missing.size)).reshape(2, -1)
        log_x = log_one_minus_square(c) + np.log(tries) / a
        log_rests[missing] = log_x
        # -expm1(log x) is the square of t
        missing = missing[kept * kept * -np.expm1(log_x) >= c * c]
    return np.sqrt(-np.expm1(log_rests)), np.exp(log_rests)


def cosines_beyond(unit, size, bits):
    """Draw cosines below that of the cap, and one minus their squares.

    Parameters
    ----------
    unit, size, bits : PrivUnit, int, Bits
        As for `cosines_in_cap`.

    Returns
    -------
    cosines, rests : ndarray of shape (size,)

    Notes
    -----
    The half of negative cosines has weight 1, and the slab from 0 to c has the probability
    that ``|U_1|`` is below c.
    """
    a = 0.5 * (unit.n_dims - 1)
    slab = float(betainc(0.5, a, unit.cosine**2))
    side, tail = uniforms(bits.words(2 * size)).reshape(2, -1)
    negative = side * (1.0 + slab) < 1.0
    square, rest = _folded(np.where(negative, tail, 1.0 - slab * tail), a)
    return np.where(negative, -1.0, 1.0) * np.sqrt(square), rest


def _folded(tail, a):
    """Return ``U_1^2`` and one minus it, where ``|U_1|`` has the upper tail probability."""
    square, rest = np.empty_like(tail), np.empty_like(tail)
    low = tail >= 0.5
    square[low] = betaincinv(0.5, a, 1.0 - tail[low])
    rest[low] = 1.0 - square[low]
    high = ~low
    rest[high] = betaincinv(a, 0.5, tail[high])
    square[high] = 1.0 - rest[high]
    # the smaller of both is the one to be inverted for
    high &= rest > 0.5
    square[high] = betainccinv(0.5, a, tail[high])
    return square, rest
