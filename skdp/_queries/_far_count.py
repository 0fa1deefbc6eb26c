# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How many rows lie beyond a radius: one step of a bisection of radii."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._sums import sum_over
from skdp._queries._unit_columns import distances_from
from skdp.privacy import Sensitivity


@dataclass(frozen=True, eq=False)
class FarCount:
    """Sum over rows of 1/2 beyond a radius, and -1/2 within it.

    Parameters
    ----------
    radius : float
        Radius, greater than 0; public.
    center : ndarray of shape (n_features,), default=None
        Public point of the unit ball; None is the origin, around which rows may be sparse.

    Notes
    -----
    Rows are `LinearRows` of the unit ball without an intercept. If none is null, half the
    number of rows more than this is the number of rows beyond the radius. Halves, not
    ones: that way a row that becomes null moves the sum half as far.
    """

    radius: float
    center: Any = None

    @property
    def name(self):
        """What the statistic is, the same for every radius."""
        around = "the origin" if self.center is None else "a released centre"
        return f"rows beyond a radius around {around}"

    @property
    def size(self):
        """Number of coordinates."""
        return 1

    def sensitivity(self, adjacency, n_rows):
        """State the sensitivity: 1/2 (zero-out) or 1 (replace-one).

        Proof. A row contributes 1/2 or -1/2, a null row 0. Zero-out removes one half;
        replace-one exchanges two, at most 1 apart. Both are attained.
        """
        if adjacency == "zero-out":
            reach, theorem = 0.5, "a row counts 1/2 or -1/2"
        else:
            reach, theorem = 1.0, "1/2 and -1/2 differ by 1"
        return Sensitivity(l1=reach, l2=reach, bound=n_rows / 2, theorem=theorem)

    def partial(self, chunk):
        """Return the sum of a chunk's halves; exact in floating point."""
        halves = np.where(distances_from(self.center, chunk) > self.radius, 0.5, -0.5)
        halves[np.isinf(chunk.norm)] = 0.0
        return np.array([math.fsum(halves)])

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (1,)."""
        return sum_over(rows, self.partial, self.size)
