# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Lengths and directions of rows, for all floats."""

import numpy as np

# squares inside of this neither overflow nor lose digits
_SAFE = 1e-200, 1e200


def unit_rows(rows):
    """Return the directions of rows, and which of them have none.

    Parameters
    ----------
    rows : ndarray of shape (n, d)

    Returns
    -------
    directions : ndarray of shape (n, d)
        Fresh rows of length 1, or zero where there is no direction.
    lost : ndarray of bool, shape (n,)
        Rows that are zero or not finite.
    """
    with np.errstate(all="ignore"):
        square = np.einsum("ij,ij->i", rows, rows)
        directions = rows / np.sqrt(square)[:, None]
        odd = np.flatnonzero(~((square > _SAFE[0]) & (square < _SAFE[1])))
        lost = np.zeros(len(rows), dtype=bool)
        if odd.size:
            size = np.abs(rows[odd]).max(axis=1, initial=0.0)
            lost[odd] = ~((size > 0.0) & (size < np.inf))
            part = rows[odd] / size[:, None]
            part /= np.sqrt(np.einsum("ij,ij->i", part, part))[:, None]
            directions[odd] = part
            directions[lost] = 0.0
    return directions, lost


def row_lengths(rows):
    """Return the lengths of rows, an ndarray of shape (n,); 0 for rows that are not finite."""
    with np.errstate(all="ignore"):
        square = np.einsum("ij,ij->i", rows, rows)
        lengths = np.sqrt(square)
        odd = np.flatnonzero(~((square > _SAFE[0]) & (square < _SAFE[1])))
        if odd.size:
            size = np.abs(rows[odd]).max(axis=1, initial=0.0)
            part = rows[odd] / size[:, None]
            part = size * np.sqrt(np.einsum("ij,ij->i", part, part))
            lengths[odd] = np.where((size > 0.0) & (size < np.inf), part, 0.0)
    return lengths
