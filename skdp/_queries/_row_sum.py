# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sum of rows that were forced into a ball or a box."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._domains import L2Ball
from skdp._queries._row_chunks import chunks_of
from skdp._queries._sums import chunk_rows, sum_over
from skdp.privacy import Sensitivity


class BoxChunk:
    """Consecutive rows of a box."""

    __slots__ = ("X", "box")

    def __init__(self, X, box):
        self.X, self.box = X, box

    def total(self):
        """Return the sum of the rows, mapped to [-1, 1] per coordinate."""
        return self.box.to_unit(self.X.astype(np.float64, copy=False)).sum(axis=0)


@dataclass(frozen=True)
class BoxAdmission:
    """How rows become a chunk of `BoxRows`; `box` is the public box."""

    box: Any

    def __call__(self, block):
        """Return the chunk of a block (rows,)."""
        return BoxChunk(block[0], self.box)


class BoxRows:
    """Rows admitted into a box; a coordinate that is not a number counts as its centre.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Never changed. A stream is read chunk by chunk whenever a chunk is needed.
    box : Box
        Public bounds.
    n_threads : int, default=1
        Threads for the sums.
    """

    def __init__(self, X, box, n_threads=1):
        self.n_threads, self.n_rows = n_threads, X.shape[0]
        self.n_entries, _ = chunk_rows(X)
        self.chunks = chunks_of(BoxAdmission(box), X)
        self._X, self._box = X, box

    def part(self, start, stop):
        """Return the rows of a range of positions, as rows that share memory with these."""
        return BoxRows(self._X[start:stop], self._box, self.n_threads)


@dataclass(frozen=True)
class RowSum:
    """Sum of rows in the unit ball, or in the box [-1, 1]^d.

    Parameters
    ----------
    domain : L2Ball or Box
        What the rows were admitted into (and scaled to unit size).
    n_features : int
        Dimension d.
    """

    domain: Any
    n_features: int

    @property
    def name(self):
        """What the statistic is."""
        shape = "unit ball" if isinstance(self.domain, L2Ball) else "box [-1, 1]^d"
        return f"sum of rows in the {shape}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: a row's largest norm, or its diameter.

        Proof. A row of the unit ball has l2 norm at most 1 and, by Cauchy-Schwarz, l1
        norm at most sqrt(d); a row of the box sqrt(d) and d. Zero-out removes one row.
        Under replace-one the difference of two rows is at most twice as long, attained
        by opposite rows.
        """
        root = math.sqrt(self.n_features)
        l1, l2 = (root, 1.0) if isinstance(self.domain, L2Ball) else (root * root, root)
        if adjacency == "zero-out":
            theorem = "norm of the longest row of the domain"
        else:
            l1, l2, theorem = 2 * l1, 2 * l2, "diameter of the domain"
        return Sensitivity(l1=l1, l2=l2, bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the sum of a chunk's rows."""
        if isinstance(chunk, BoxChunk):
            return chunk.total()
        return chunk.combine(np.isfinite(chunk.norm).astype(np.float64))

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)
