# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How well every point of a grid leaves a given number of rows beyond it."""

import numpy as np

from skdp._queries._sums import sum_over


def tail_scores(rows, grid, magnitudes, tail):
    """Return the score of every point of an increasing grid.

    Parameters
    ----------
    rows : LinearRows
        Private rows; null rows count as absent.
    grid : ndarray of shape (points,)
        Increasing. A row beyond the last point counts as being at it.
    magnitudes : callable
        Maps a chunk to one number per row, each a function of its own row alone, to the last
        bit: another row must not move it across a point of the grid.
    tail : int
        How many rows should lie beyond a point.

    Returns
    -------
    scores : ndarray of int64 of shape (points,)
        With N_k rows beyond the k-th point, the distance of `tail` to the interval from N_k
        to N_(k-1); there is no upper end for the first point.
    """
    points = len(grid)

    def shells(chunk):
        # how many points a row exceeds; the last one cannot be exceeded
        shell = np.minimum(np.searchsorted(grid, magnitudes(chunk)), points - 1)
        shell = shell[np.isfinite(chunk.norm)]
        return np.bincount(shell, minlength=points).astype(np.float64)

    counts = sum_over(rows, shells, points).astype(np.int64)
    beyond = counts.sum() - np.cumsum(counts)
    scores = np.maximum(beyond - tail, 0)
    np.maximum(scores[1:], tail - beyond[:-1], out=scores[1:])
    return scores
