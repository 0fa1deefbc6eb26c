# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a linear model around a public centre, within a public radius."""

import numpy as np

from skdp._queries._linear_rows import LinearChunk, batch_of, whole_chunk


class CentredChunk:
    """Dense rows ``s_i (f_i x_i - center, intercept)``, made when they are needed.

    f_i brings x_i into the unit ball; s_i scales, and shortens what is too long.
    """

    __slots__ = ("X", "center", "factor", "intercept", "norm", "shrink", "target")

    def __init__(self, X, factor, norm, target, center, shrink, intercept):
        self.X, self.factor, self.norm, self.target = X, factor, norm, target
        self.center, self.shrink, self.intercept = center, shrink, intercept

    def widened(self):
        """Return the chunk with its rows computed, in float64."""
        rows = np.multiply(self.X, self.factor[:, None], dtype=np.float64)
        rows -= self.center
        rows *= self.shrink[:, None]
        ones = np.ones(len(rows))
        return LinearChunk(rows, ones, self.norm, self.target, self.intercept, self.shrink)

    def taken(self, index):
        """Return the chunk of the rows of an integer index, or of a slice."""
        return CentredChunk(
            self.X[index],
            self.factor[index],
            self.norm[index],
            self.target[index],
            self.center,
            self.shrink[index],
            self.intercept,
        )


class CentredRows:
    """Rows of a linear model, moved so that a public point is their origin.

    Parameters
    ----------
    rows : LinearRows
        Dense rows in the unit ball, without an intercept.
    center : ndarray of shape (n_features,)
        Public point, in units of the ball.
    intercept : float
        Constant feature, in units of `radius`; 0 for none.
    radius : float, default=None
        Public radius tau: rows are ``(f x - center, tau intercept) / tau``, and the whole of a
        row is shortened to norm ``sqrt(1 + intercept^2)`` where it is longer. None leaves
        the lengths, up to 2 in units of the ball, as they are.
    """

    def __init__(self, rows, center, intercept, radius=None):
        self.n_threads, self.n_entries = rows.n_threads, rows.n_entries
        self._X, self._whole = rows._X, None
        self.center, self.intercept = np.asarray(center, dtype=np.float64), float(intercept)
        self.chunks = [self._moved(chunk, radius) for chunk in rows.chunks]

    def _moved(self, chunk, radius):
        unit = 1.0 if radius is None else radius
        n_rows = len(chunk.norm)
        moved = CentredChunk(
            chunk.X, chunk.factor, chunk.norm, chunk.target, self.center,
            np.full(n_rows, 1 / unit), self.intercept * unit,
        )  # fmt: skip
        body = moved.widened().X
        norm = np.hypot(np.sqrt(np.einsum("ij,ij->i", body, body)), self.intercept)
        if radius is not None:
            longest = np.hypot(1.0, self.intercept)
            moved.shrink /= np.maximum(norm / longest, 1.0)
            np.minimum(norm, longest, out=norm)
        # as for all rows: no limit on a row of zeros, and nothing left of a null row
        norm = np.maximum(norm, 1e-100)
        norm[np.isinf(chunk.norm)] = np.inf
        moved.norm = norm
        return moved

    def batch(self, positions, rate):
        """Return the rows at sorted positions, drawn with a public probability each."""
        if self._whole is None:
            base = whole_chunk(self._X, self.chunks)
            shrink = np.concatenate([chunk.shrink for chunk in self.chunks])
            self._whole = CentredChunk(
                base.X, base.factor, base.norm, base.target, self.center, shrink, base.intercept
            )
        return batch_of(self, self._whole, positions, rate)
