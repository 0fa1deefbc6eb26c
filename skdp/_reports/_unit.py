# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of unit vectors by PrivUnit."""

import numpy as np

from skdp._reports._around import around
from skdp._reports._cap_cosines import cap_cosines


def report_unit(unit, vectors, bits, n_threads=1, *, out=None, factors=None, prepare=None):
    """Return the unbiased report of the direction of every row.

    Parameters
    ----------
    unit : PrivUnit
        Parameters.
    vectors : ndarray of shape (n, d)
        Rows of which the directions are reported. A row without one takes a direction that is
        uniform.
    bits, n_threads : Bits, int
        As for `in_chunks`.
    out : ndarray of shape (n, size), default=None
        Takes the first entries of the reports, or all.
    factors : ndarray of shape (n,), default=None
        What the directions are multiplied by, and their reports with them.
    prepare : callable, default=None
        As for `around`.

    Returns
    -------
    reports : ndarray of shape (n, d)
        The array `out` if one is given.

    Notes
    -----
    The report is ``(t u + sqrt(1 - t^2) w) / m`` with w uniform among the unit vectors that
    are orthogonal to u, and t independent of u and w. If u is uniform, so is the report.
    """
    cosines, rests = cap_cosines(unit, len(vectors), bits)
    scale = (1.0 if factors is None else factors) / unit.scale
    out = np.empty((len(vectors), unit.n_dims)) if out is None else out
    # lengths must not be negative; the direction across is symmetric
    across, aimless = np.sqrt(rests) * np.abs(scale), np.full(len(vectors), 1.0) * np.abs(scale)
    around(out, vectors, cosines * scale, across, aimless, bits, n_threads, prepare)
    return out
