# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sum of a few public measurements of every row."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._domains import row_norms
from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity

# measurements that are held at once, about
_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class SketchSum:
    """Sum of the measurements of rows, each row's scaled down to a radius.

    Parameters
    ----------
    measurement : Measurement
        Public matrix A of shape (n_measurements, n_features), whatever it is.
    radius : float
        Largest norm of what a row contributes, greater than 0; public.

    Notes
    -----
    Rows z are `LinearRows` of the unit ball without an intercept, sparse or dense. A row
    contributes ``A z min(1, radius / |A z|)``, and a null row nothing.
    """

    measurement: Any
    radius: float

    @property
    def name(self):
        """What the statistic is."""
        return "sum of clipped measurements of rows"

    @property
    def size(self):
        """Number of measurements."""
        return self.measurement.shape[0]

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: the radius, or twice that; in l1 sqrt(m) times.

        Proof. What a row contributes has l2 norm at most `radius`, whatever the matrix makes
        of it; a null row contributes zero. Zero-out removes one contribution, replace-one
        exchanges one for another, which differ by at most 2 `radius`: attained by opposite
        rows that are clipped. Of m numbers the l1 norm is at most sqrt(m) times the l2 norm
        (Cauchy-Schwarz).
        """
        if adjacency == "zero-out":
            reach, theorem = self.radius, "clipped measurements are no longer than the radius"
        else:
            reach, theorem = 2 * self.radius, "two clipped rows of measurements: <= 2 radii"
        l1 = math.sqrt(self.size) * reach
        return Sensitivity(l1=l1, l2=reach, bound=n_rows * self.radius, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped measurements of a chunk's rows, summed."""
        total, n_rows = np.zeros(self.size), len(chunk.norm)
        entries = chunk.X.nnz if sparse.issparse(chunk.X) else chunk.X.size
        width = min(self.size, self.measurement.spread * (1 + entries // n_rows))
        step = max(1, _AT_ONCE // width)
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            # dense rows too: products of sparse rows are made row by row, so that no row
            # changes the rounding of another
            X = sparse.csr_array(chunk.X[rows], dtype=np.float64)
            with np.errstate(under="ignore"):
                sketches = self.measurement.sketches(X)
                factor = chunk.factor[rows]
                length = row_norms(sketches) * factor
                weight = factor * (self.radius / np.maximum(length, self.radius))
                weight[np.isinf(chunk.norm[rows])] = 0.0
                total += sketches.T @ weight
        return total

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_measurements,)."""
        return sum_over(rows, self.partial, self.size)
