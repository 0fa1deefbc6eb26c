# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of rows of bounded entries by PrivUnit on the cube, with an exact law."""

import numpy as np

from skdp._reports._chunks import in_chunks
from skdp._reports._coins import coins
from skdp._reports._matches import matches


def report_cube(cube, vectors, bits, n_threads=1, *, out=None):
    """Return the unbiased report of every row.

    Parameters
    ----------
    cube : PrivUnitCube
        Parameters.
    vectors : ndarray of shape (n, d)
        Entries from -1 to 1. Others count as the nearer end, and NaN as -1.
    bits, n_threads : Bits, int
        As for `in_chunks`.
    out : ndarray of shape (n, d), default=None
        Takes the reports.

    Returns
    -------
    reports : ndarray of shape (n, d)
        All entries are ``1/m`` or ``-1/m``.

    Notes
    -----
    Given the corner to which a row is rounded, the law of its report is exactly that of the
    parameters: the coin, the number of matches and the subset of the entries that match are
    made from integers. Rounding itself is exact to ``2^-53`` and has no part in the proof.
    """
    n_rows, n_dims = vectors.shape
    wanted = matches(cube.threshold, n_dims, coins(cube.p, n_rows, bits), bits)
    out = np.empty((n_rows, n_dims)) if out is None else out
    high = 1.0 / cube.scale

    def work(rows, words):
        # 53 bits are floats from -1 on, all below 1
        below = (words[:, :n_dims].view(np.int64) >> 11) * 2.0**-52
        with np.errstate(invalid="ignore"):
            positive = below < vectors[rows]
        match, tied = uniform_subsets(words[:, n_dims:], wanted[rows])
        out[rows] = np.where(positive == match, high, -high)
        return np.flatnonzero(tied)

    in_chunks(work, n_rows, 2 * n_dims, bits, n_threads)
    return out


def uniform_subsets(keys, sizes):
    """Choose a subset of every row, uniformly among those of a size.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n, d)
        Independent uniform words.
    sizes : ndarray of int64, shape (n,)
        From 0 to d.

    Returns
    -------
    chosen : ndarray of bool, shape (n, d)
        The entries of the smallest keys.
    tied : ndarray of bool, shape (n,)
        Rows in which two equal keys leave it open; they need other keys. That does not make
        one subset more probable than another, for all play the same part.
    """
    n_dims = keys.shape[1]
    ordered = np.sort(keys, axis=1)
    last = np.take_along_axis(ordered, np.maximum(sizes - 1, 0)[:, None], axis=1)
    following = np.take_along_axis(ordered, np.minimum(sizes, n_dims - 1)[:, None], axis=1)
    chosen = (keys <= last) & (sizes > 0)[:, None]
    tied = (last == following)[:, 0] & (sizes > 0) & (sizes < n_dims)
    return chosen, tied
