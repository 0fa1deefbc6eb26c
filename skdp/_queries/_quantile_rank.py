# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A quantile, drawn by its rank on a public grid."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from skdp._queries._sums import chunk_rows
from skdp._streams import RowStream
from skdp.privacy import Sensitivity
from skdp.privacy._choice import weighted_choice
from skdp.privacy._samplers import uniform_below

#: cells of the public grid: positions 0, ..., GRID_CELLS, equally spaced between the bounds
GRID_CELLS = 2**30
# bytes of positions that are kept of a stream, to go through it once for several columns
_KEPT = 1 << 28
# stands for a NaN: no position is negative
_MISSING = -1


class RankRows:
    """Rows whose coordinates lie on a public grid between public bounds.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Never changed. A NaN is a null row, as far as its coordinate goes. A stream is gone
        through once for as many columns as 256 MiB hold the positions of, but for one at least.
    lower, upper : ndarray of shape (n_features,)
        Public bounds. Values outside are clipped.
    cells : int, default=GRID_CELLS
        Cells of the grid, at most 2**30.
    """

    def __init__(self, X, lower, upper, cells=GRID_CELLS):
        self._X, self._lower, self._upper, self._cells = X, lower, upper, cells
        # first of the columns that are kept, and their positions
        self._first, self._kept = 0, ()

    def positions(self, column):
        """Return the sorted positions of a column's values, without the NaN."""
        if isinstance(self._X, RowStream):
            positions = self._read(column)
        else:
            positions = self._on_grid(self._X[:, column], column)
        positions = positions[positions != _MISSING]
        positions.sort()
        return positions

    def _on_grid(self, values, columns):
        """Return the positions of values of one column, or of rows of several columns."""
        lower, upper = self._lower[columns], self._upper[columns]
        values = values.astype(np.float64)
        np.clip(values, lower, upper, out=values)
        values -= lower
        values /= upper - lower
        values *= self._cells
        values[np.isnan(values)] = _MISSING
        return np.rint(values, out=values).astype(np.int32)

    def _read(self, column):
        """Return the positions of a column of a stream."""
        if not 0 <= column - self._first < len(self._kept):
            # the old ones first: they are not to be held together
            self._kept = ()
            n_rows, n_features = self._X.shape
            stop = min(column + max(1, _KEPT // (4 * n_rows)), n_features)
            kept = np.empty((stop - column, n_rows), dtype=np.int32)
            start = 0
            for rows in self._X.blocks(chunk_rows(self._X)[1]):
                columns = slice(column, stop)
                kept[:, start : start + len(rows)] = self._on_grid(rows[:, columns], columns).T
                start += len(rows)
            self._first, self._kept = column, kept
        return self._kept[column - self._first]


def candidates(positions, tau, cells):
    """Group the grid's positions into runs of equal score.

    Parameters
    ----------
    positions : ndarray of int32
        Sorted positions of the rows that are not null.
    tau : Fraction
        Which quantile.
    cells : int
        Cells of the grid.

    Returns
    -------
    starts, counts, steps : ndarray of int64
        First position of every run, how many there are, and the score times the
        denominator of tau. A run may be empty.

    Notes
    -----
    Between two neighbouring values the score depends on the rows below. A value that
    ranks below the quantile has the score of the positions up to the next value, one
    that ranks above it that of the positions down to the value before.
    """
    if not len(positions):
        return np.zeros(1, np.int64), np.full(1, cells + 1), np.zeros(1, np.int64)
    new = np.empty(len(positions), dtype=bool)
    new[0] = True
    np.not_equal(positions[1:], positions[:-1], out=new[1:])
    first = np.flatnonzero(new)
    values = positions[first].astype(np.int64)
    # rank minus target, at the positions before the first value, ..., after the last
    excess = np.append(first, len(positions)) * tau.denominator
    excess -= tau.numerator * len(positions)
    # excess[0] < 0 < excess[-1]
    low, high = np.searchsorted(excess, 0, "left"), np.searchsorted(excess, 0, "right")
    starts = np.concatenate([[0], values[:low], values[high - 1 :] + 1])
    steps = np.concatenate([-excess[:low], [0], excess[high:]])
    return starts, np.diff(starts, append=cells + 1), steps


@dataclass(frozen=True)
class QuantileRank:
    """Position on a public grid, drawn by how far its rank is from a quantile's.

    Parameters
    ----------
    column : int
        Coordinate.
    tau : Fraction
        Which quantile, strictly between 0 and 1.
    cells : int, default=GRID_CELLS
        Cells of the grid, at most 2**30.

    Notes
    -----
    With m rows that are not null, the score of a position t is the distance of ``tau m``
    to the interval from the number of rows below t to the number of rows not above t. The
    draw is exact: integers, and a choice with exact probabilities.
    """

    column: int
    tau: Fraction
    cells: int = GRID_CELLS

    #: nothing here is a float
    idealised = False

    @property
    def name(self):
        """What the statistic is, the same for every column."""
        return f"{float(self.tau):.6g}-quantile of a feature, drawn by its rank"

    @property
    def size(self):
        """Number of coordinates."""
        return 1

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change: 2 max(tau, 1 - tau), or 2.

        Proof. The score is the largest of ``l = below - tau m``, ``u = tau m - not_above``
        and 0; it changes by no more than these change. If a row becomes null, tau m falls
        by tau, and each of the two counts by 1 or not at all: l and u move by tau or
        1 - tau, up or down. If a row takes another value, tau m stays, and each count
        moves by at most 1. So the change lies in [-c, c] with c = max(tau, 1 - tau) for a
        row that becomes null, c = 1 otherwise.
        """
        if adjacency == "zero-out":
            spread = float(2 * max(self.tau, 1 - self.tau))
            theorem = "a null row moves rank and target by <= max(tau, 1 - tau) either way"
        else:
            spread, theorem = 2.0, "another value moves a rank by <= 1 either way"
        return Sensitivity(math.inf, math.inf, float(self.cells), theorem, spread=spread)

    def draw(self, rows, noise, source):
        """Return a position with probability proportional to exp(-score / noise.scale)."""
        positions = rows.positions(self.column)
        starts, counts, steps = candidates(positions, self.tau, self.cells)
        inverse = rate(self.tau.denominator, noise.scale)
        group = weighted_choice(counts, steps, inverse, source)
        offset = uniform_below(int(counts[group]), source)
        return np.array([starts[group] + offset], dtype=np.float64)


def rate(denominator, temperature):
    """Return 1 / (denominator temperature), rounded down."""
    if math.isinf(temperature):
        return 0.0
    # far below what overflows, far above what matters
    exact = min(1 / (denominator * Fraction(temperature)), Fraction(10**250))
    rounded = float(exact)
    return math.nextafter(rounded, 0.0) if rounded > exact else rounded
