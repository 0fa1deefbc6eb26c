# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subgradient of the geometric median's loss: a sum of unit vectors."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity

# Distances below this count as zero: their squares are not exact, and a quotient by
# such a distance might be longer than 1.
_TINY = 1e-140


@dataclass(frozen=True, eq=False)
class DirectionSum:
    """Sum over rows d of the unit vector from d to `center`; zero for a row that is there.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Point of the unit ball where the subgradient of the sum of distances is taken.
    """

    center: Any

    @property
    def name(self):
        """What the statistic is."""
        return "sum of the directions from the rows to a point"

    @property
    def size(self):
        """Number of coordinates."""
        return self.center.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: 1 (zero-out) or 2 (replace-one).

        Proof. A row contributes a unit vector or zero, a null row zero. Zero-out removes
        one such vector; replace-one exchanges two (triangle inequality). Both are
        attained, the second by rows on opposite sides of the centre.
        """
        if adjacency == "zero-out":
            reach, theorem = 1.0, "a direction has norm 1"
        else:
            reach, theorem = 2.0, "two directions differ by <= 2"
        return Sensitivity(l1=math.inf, l2=reach, bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the directions from a chunk's rows, summed."""
        gaps = chunk.points()
        # differences first: distances from products would lose the digits of near rows
        np.subtract(self.center, gaps, out=gaps)
        gaps[chunk.null] = 0.0
        distance = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
        return (1.0 / np.maximum(distance, _TINY)) @ gaps

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)
