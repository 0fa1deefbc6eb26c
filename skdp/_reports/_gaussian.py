# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of unit vectors by PrivUnitG."""

import math

import numpy as np
from scipy.special import gammaincinv, log_ndtr, ndtri, ndtri_exp

from skdp._reports._around import around
from skdp._reports._coins import coins
from skdp._reports._words import uniforms

# no report is beyond the bound with a larger probability
_BEYOND = 1e-20


def report_gaussian(gaussian, vectors, bits, n_threads=1, *, out=None):
    """Return the unbiased report of the direction of every row.

    Parameters
    ----------
    gaussian : PrivUnitG
        Parameters.
    vectors : ndarray of shape (n, d)
        Rows of which the directions are reported. A row without one takes a direction that is
        uniform.
    bits, n_threads : Bits, int
        As for `in_chunks`.
    out : ndarray of shape (n, d), default=None
        Takes the reports.

    Returns
    -------
    reports : ndarray of shape (n, d)
        Clamped to the bound of `gaussian_bound`.

    Notes
    -----
    If the direction is uniform, so is that of the report, and its squared length is ``t^2``
    plus a chi-squared variable with d - 1 degrees of freedom. One is drawn for every row.
    """
    n_rows, n_dims = vectors.shape
    t = shares_along(gaussian, n_rows, bits)
    tails = uniforms(bits.words(n_rows))
    squares = 2.0 * gammaincinv(0.5 * (n_dims - 1), tails) if n_dims > 1 else 0.0
    out = np.empty((n_rows, n_dims)) if out is None else out
    around(out, vectors, t, None, np.sqrt(t * t + squares), bits, n_threads)
    out /= gaussian.scale
    bound = gaussian_bound(gaussian, n_dims)
    return np.clip(out, -bound, bound, out=out)


def shares_along(gaussian, size, bits):
    """Draw the components of reports along the directions they are of, before scaling.

    Parameters
    ----------
    gaussian : PrivUnitG
        Parameters.
    size, bits : int, Bits
        How many, and the source of random words.

    Returns
    -------
    t : ndarray of shape (size,)
        Normal, given that they are at least the threshold with probability p.

    Notes
    -----
    Beyond a threshold of at least 1 the excess is proposed from an exponential law of rate
    that threshold, and kept with probability ``exp(-excess^2 / 2)`` (Robert 1995).
    """
    inside = coins(gaussian.p, size, bits)
    t, low = np.empty(size), gaussian.threshold
    below = uniforms(bits.words(size - int(np.count_nonzero(inside))))
    t[~inside] = ndtri(below * -math.expm1(gaussian.log_q))
    missing = np.flatnonzero(inside)
    if low < 1.0:
        t[missing] = -ndtri(uniforms(bits.words(missing.size)) * math.exp(gaussian.log_q))
        # the quantile of the tail may be rounded to less
        t[missing] = np.maximum(t[missing], low)
        return t
    while missing.size:
        tries, kept = -np.log(uniforms(bits.words(2 * missing.size))).reshape(2, -1)
        excess = tries / low
        t[missing] = low + excess
        missing = missing[kept <= 0.5 * excess * excess]
    return t


def gaussian_bound(gaussian, n_dims):
    """Return a bound on the entries of reports that is passed with probability below 1e-20.

    Parameters
    ----------
    gaussian : PrivUnitG
        Parameters.
    n_dims : int
        Number of entries.

    Returns
    -------
    bound : float
        An entry is ``t u_j`` plus a normal variable of variance ``1 - u_j^2``. Both t and that
        variable over its deviation are at most their quantiles, up to that probability; and
        ``t x + z sqrt(1 - x^2)`` is at most ``sqrt(t^2 + z^2)``.
    """
    log_share = math.log(_BEYOND / 4.0)
    high = -float(ndtri_exp(log_share + float(log_ndtr(-gaussian.threshold))))
    low = -float(ndtri_exp(log_share - math.log(2.0)))
    across = -float(ndtri_exp(log_share - math.log(n_dims)))
    return math.hypot(max(high, low), across) / gaussian.scale
