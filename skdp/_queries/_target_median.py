# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The median of the targets, drawn by its rank on a public grid."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from skdp._queries._quantile_rank import candidates, rate
from skdp.privacy import Sensitivity
from skdp.privacy._choice import weighted_choice
from skdp.privacy._samplers import uniform_below

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class TargetMedian:
    """Position on an equally spaced grid, drawn by how far its rank is from the median's.

    Parameters
    ----------
    lower, step : float, float
        The grid: ``lower + step * k`` for k = 0, ..., cells. Targets outside count as being at
        its ends.
    cells : int
        Cells of the grid, at most 2**30.

    Notes
    -----
    With m rows that are not null, the score of a position t is the distance of ``m / 2`` to the
    interval from the number of targets below t to the number of targets not above t. A target
    counts at the nearest position, a function of that target alone. The draw is exact.
    """

    lower: float
    step: float
    cells: int

    #: nothing that is drawn from is a float
    idealised = False

    @property
    def name(self):
        """What the statistic is."""
        return "median of the targets, drawn by its rank"

    @property
    def size(self):
        """Number of coordinates."""
        return 1

    def point(self, position):
        """Return the point of the grid at a position."""
        return self.lower + self.step * position

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change: 1 (zero-out) or 2 (replace-one).

        Proof. The score is the largest of ``l = below - m/2``, ``u = m/2 - not_above`` and 0; it
        changes by no more than l and u do. If a row becomes null, m/2 falls by 1/2 and each
        of the two counts by 1 or not at all: l and u move by 1/2, up or down. If a target
        takes another value, m stays, and each count moves by at most 1. So the change lies
        in [-c, c] with c = 1/2 or c = 1.
        """
        if adjacency == "zero-out":
            spread, theorem = 1.0, "a null row moves rank less target by <= 1/2 either way"
        else:
            spread, theorem = 2.0, "another value moves a rank by <= 1 either way"
        return Sensitivity(math.inf, math.inf, float(self.cells), theorem, spread=spread)

    def positions(self, rows):
        """Return the sorted positions of the targets of rows that are not null."""
        # chunk by chunk: four bytes a row are all that is kept of rows that are streamed
        positions = np.concatenate([self._positions_of(chunk) for chunk in rows.chunks])
        positions.sort()
        return positions

    def _positions_of(self, chunk):
        values = chunk.target[np.isfinite(chunk.norm)].astype(np.float64)
        # before the difference: targets of 1e150 are finite, positions must be
        np.clip(values, self.lower, self.point(self.cells), out=values)
        values -= self.lower
        values /= self.step
        return np.clip(np.rint(values), 0, self.cells).astype(np.int32)

    def draw(self, rows, noise, source):
        """Return a position with probability proportional to exp(-score / noise.scale)."""
        starts, counts, steps = candidates(self.positions(rows), _HALF, self.cells)
        group = weighted_choice(counts, steps, rate(_HALF.denominator, noise.scale), source)
        offset = uniform_below(int(counts[group]), source)
        return np.array([starts[group] + offset], dtype=np.float64)
