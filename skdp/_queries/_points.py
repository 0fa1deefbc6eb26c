# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private rows as points of the unit ball, for statistics of distances."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._domains import L2Ball, row_norms, tame
from skdp._queries._row_chunks import chunks_of
from skdp._queries._sums import chunk_rows


class BallChunk:
    """Consecutive rows f_i x_i, f_i bringing x_i into the unit ball; `null` lists null rows."""

    __slots__ = ("X", "factor", "null")

    def __init__(self, X, ball):
        # a row that is not finite has become zeros, and its index is all that is left of it
        self.X, broken = tame(X)
        self.factor = ball.factors(row_norms(self.X))[:, None]
        self.null = np.flatnonzero(broken)

    def points(self):
        """Return the points as a fresh float64 array; a null row has zeros."""
        return np.multiply(self.X, self.factor, dtype=np.float64)


class BoxedChunk:
    """Consecutive rows of a box, mapped into the unit ball; `null` lists null rows."""

    __slots__ = ("X", "box", "null", "radius")

    def __init__(self, X, box, radius):
        self.X, self.box, self.radius = X, box, radius
        self.null = np.flatnonzero(np.isnan(X).any(axis=1))

    def points(self):
        """Return the points as a fresh float64 array; a null row has zeros."""
        X = self.X.astype(np.float64, copy=False)
        points = np.clip(X, self.box.lower, self.box.upper)
        points -= self.box.center
        points /= self.radius
        points[self.null] = 0.0
        return points


@dataclass(frozen=True)
class PointAdmission:
    """How rows become a chunk of `PointRows`; parameters are those of `PointRows`."""

    domain: Any
    radius: float

    def __call__(self, block):
        """Return the chunk of a block (rows,)."""
        (X,) = block
        if isinstance(self.domain, L2Ball):
            return BallChunk(X, self.domain)
        return BoxedChunk(X, self.domain, self.radius)


class PointRows:
    """Rows admitted into a ball or a box, as points of the unit ball.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Never changed and, unless it holds floats that break arithmetic, never copied. A
        stream is read chunk by chunk whenever a chunk is needed.
    domain : L2Ball or Box
        Longer rows are scaled into the ball, rows outside clipped into the box. A row
        with a NaN, in a ball also with an infinity, is a null row: it contributes nothing.
    radius : float
        Radius of the ball, or of a ball around the box: the unit of the points.
    n_threads : int, default=1
        Threads for the sums.
    """

    def __init__(self, X, domain, radius, n_threads=1):
        self.n_threads = n_threads
        self.n_entries, _ = chunk_rows(X)
        self.chunks = chunks_of(PointAdmission(domain, radius), X)

    def columns(self):
        """Return the points that are not null, one row for each coordinate, all in memory."""
        parts = [np.delete(chunk.points(), chunk.null, axis=0).T for chunk in self.chunks]
        return np.concatenate(parts, axis=1)
