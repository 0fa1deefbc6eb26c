# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A radius that leaves a given number of rows outside, drawn on a public grid."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._quantile_rank import rate
from skdp._queries._tail_scores import tail_scores
from skdp._queries._unit_columns import distances_from
from skdp.privacy import Sensitivity
from skdp.privacy._choice import weighted_choice


@dataclass(frozen=True, eq=False)
class NormThreshold:
    """Index of a radius of a geometric grid, drawn by how many rows lie beyond it.

    Parameters
    ----------
    center : ndarray of shape (n_features,) or None
        Public point of the unit ball; None is the origin.
    largest, ratio, points : float, float, int
        The grid: ``largest / ratio**(points - 1), ..., largest / ratio, largest``. No row of
        the unit ball is further from the centre than `largest`, up to rounding.
    tail : int
        How many rows should lie beyond the radius; at least 0.

    Notes
    -----
    With N_k rows further away than the k-th radius, the score of k is the distance of `tail`
    to the interval from N_k to N_(k-1); nothing is below the first radius, so that it is
    never too large. Scores are integers, and the draw is exact. A distance is a function of
    its own row alone, to the last bit: another row must not move it across a radius.
    """

    center: Any
    largest: float
    ratio: float
    points: int
    tail: int

    #: nothing that is drawn from is a float
    idealised = False

    @property
    def name(self):
        """What the statistic is."""
        where = "norm" if self.center is None else "distance from a centre"
        return f"{where} that about {self.tail} rows exceed, drawn by its rank"

    @property
    def size(self):
        """Number of coordinates."""
        return 1

    def radii(self):
        """Return the grid, an increasing array of shape (points,)."""
        return self.largest * self.ratio ** np.arange(1.0 - self.points, 1.0)

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change: 2.

        Proof. The score is the largest of ``a = N_k - tail``, ``b = tail - N_(k-1)`` and 0
        (the first one has no b); it changes by no more than a and b do. If a row becomes
        null, every N falls by 1 or not at all: a changes by -1 or 0, b by 0 or 1. If a row
        takes another value, it moves either outwards or inwards, so that all N change by 0
        or 1, or all by 0 or -1; a and b change in opposite senses. Either way the change
        lies in [-1, 1], and both ends are attained by one pair: at a radius with more than
        `tail` rows beyond it, and at one whose predecessor has fewer.
        """
        theorem = "one row moves every count by <= 1, all of them in the same sense"
        return Sensitivity(math.inf, math.inf, float(max(self.points - 1, 1)), theorem, spread=2.0)

    def scores(self, rows):
        """Return the score of every radius, int64 of shape (points,)."""
        return tail_scores(
            rows, self.radii(), lambda chunk: distances_from(self.center, chunk), self.tail
        )

    def draw(self, rows, noise, source):
        """Return an index with probability proportional to exp(-score / noise.scale)."""
        steps = self.scores(rows)
        chosen = weighted_choice(np.ones(self.points), steps, rate(1, noise.scale), source)
        return np.array([chosen], dtype=np.float64)
