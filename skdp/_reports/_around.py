# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Vectors with given parts along and across a direction, uniform otherwise."""

import numpy as np

from skdp._reports._chunks import in_chunks
from skdp._reports._rows import unit_rows
from skdp._reports._words import normals

# less of a vector than that across the direction is mostly rounding of what is along it
_SHORT = 2.0**-20


def around(out, vectors, along, across, aimless, bits, n_threads=1, prepare=None):
    """Fill rows with random vectors around the directions of others.

    Parameters
    ----------
    out : ndarray of shape (n, size)
        Takes the results; only their first entries if they have more.
    vectors : ndarray of shape (n, d)
        Rows of which the directions count. Their lengths do not, they are made 1 here.
    along : ndarray of shape (n,)
        Component of the result along the direction.
    across : ndarray of shape (n,) or None
        Length of the part that is orthogonal to it. With None that part is standard normal
        in all directions across.
    aimless : ndarray of shape (n,)
        Lengths of the results of rows that are zero or not finite: they are uniform on the
        sphere of that radius, as if the row had a fresh direction that is uniform.
    bits, n_threads : Bits, int
        As for `in_chunks`.
    prepare : callable, default=None
        Maps some of the rows to those of which the directions count.

    Notes
    -----
    The orthogonal part of a vector of normals has a uniform direction across u, and a length
    that is independent of that, and of the part along u. So normals of which nearly nothing is
    across may be drawn again: what is left of them would show the rounding of u. It happens to
    less than one row in a million. Otherwise every row takes as many words, whatever it is.
    """
    n_dims = vectors.shape[1] + (prepare is not None)

    def work(rows, words):
        part = vectors[rows]
        directions, lost = unit_rows(part if prepare is None else prepare(part))
        made = normals(words)
        common = np.einsum("ij,ij->i", made, directions)
        made -= directions * common[:, None]
        length = np.sqrt(np.einsum("ij,ij->i", made, made))
        wanted = np.where(lost, aimless[rows], length if across is None else across[rows])
        factor = np.divide(wanted, length, out=np.zeros_like(length), where=length > 0.0)
        made *= factor[:, None]
        directions *= along[rows][:, None]
        made += directions
        out[rows] = made[:, : out.shape[1]]
        if across is None:
            # the length is as drawn, and so is its rounding
            return np.flatnonzero((length == 0.0) & (wanted > 0.0))
        return np.flatnonzero((length <= _SHORT * np.abs(common)) & (wanted > 0.0))

    in_chunks(work, len(vectors), n_dims, bits, n_threads)
