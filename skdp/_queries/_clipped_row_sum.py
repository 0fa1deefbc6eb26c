# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sum of rows, clipped to a public radius around a public centre."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._sums import sum_over
from skdp._queries._unit_columns import gaps_from
from skdp.privacy import Sensitivity


@dataclass(frozen=True, eq=False)
class ClippedRowSum:
    """Sum of the rows minus a centre, each of them scaled down to a radius.

    Parameters
    ----------
    n_features : int
        Dimension.
    radius : float
        Largest norm of what a row contributes, greater than 0; public.
    center : ndarray of shape (n_features,), default=None
        Public point of the unit ball; None is the origin, around which rows may be sparse.

    Notes
    -----
    Rows are `LinearRows` of the unit ball without an intercept. A null row contributes
    nothing: it counts as a row at the centre.
    """

    n_features: int
    radius: float
    center: Any = None

    @property
    def name(self):
        """What the statistic is."""
        around = "the origin" if self.center is None else "a released centre"
        return f"sum of rows clipped around {around}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: the radius, or twice that; in l1 sqrt(d) times.

        Proof. What a row contributes has l2 norm at most `radius` and, by Cauchy-Schwarz, l1
        norm at most sqrt(d) times that; a null row contributes zero. Zero-out removes one
        contribution. Under replace-one two differ by at most 2 `radius`, attained by rows
        that are far away on opposite sides of the centre.
        """
        if adjacency == "zero-out":
            reach, theorem = self.radius, "a clipped row is no longer than the radius"
        else:
            reach, theorem = 2 * self.radius, "two clipped rows differ by <= 2 radii"
        l1 = math.sqrt(self.n_features) * reach
        return Sensitivity(l1=l1, l2=reach, bound=n_rows * self.radius, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped rows of a chunk, summed."""
        if self.center is None:
            # nothing is left of a null row, whose norm is infinite
            return chunk.combine(self.radius / np.maximum(chunk.norm, self.radius))
        gaps, distance = gaps_from(self.center, chunk)
        weight = self.radius / np.maximum(distance, self.radius)
        weight[np.isinf(chunk.norm)] = 0.0
        with np.errstate(under="ignore"):
            return gaps @ weight

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)
