# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles, drawn by rank on public grids.

The exponential mechanism draws a point of a public grid by how far its rank is from the rank
that is wanted. Scores are integers and the draws exact, so that nothing here is a matter of
rounding. Two kinds of statistic:

- a quantile of a feature (`QuantileRank`, of `RankRows`) or of the targets (`TargetMedian`), on
  equally spaced points; or of a feature among floats of all magnitudes (`LadderRows`);
- a radius that few rows exceed, on a geometric grid: of distances in the unit ball
  (`NormThreshold`, planned by `plan_threshold`), or of any magnitude of a row in the units of
  the data (`MagnitudeThreshold`).

With Gaussian noise quantiles of magnitudes are searched by bisection instead: `MagnitudeSides`.

References: F. McSherry and K. Talwar, "Mechanism design via differential privacy", FOCS 2007;
A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011;
for radii Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
differentially private linear optimization", ICLR 2024 (Lemma 4).
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from skdp._groups import GOLDEN_BITS, PARTS
from skdp._rows.base import chunk_rows, sum_over
from skdp._rows.columns import distances_from
from skdp._rows.linear import counted_rows, counts_parts, raw_norms
from skdp._rows.streams import RowStream
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.kernel.samplers import uniform_below
from skdp.privacy.laws.exponential import ExponentialMechanism, weighted_choice

# Quantiles on equally spaced points.

#: cells of the public grid: positions 0, ..., GRID_CELLS, equally spaced between the bounds
GRID_CELLS = 2**30
# bytes of positions that are kept of a stream, to go through it once for several columns
_KEPT = 1 << 28
# stands for a NaN: no position is negative
_MISSING = -1
_HALF = Fraction(1, 2)


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
        Cells of the grid, at most 2**32.
    what : str, default="a feature"
        What has the quantile, in words.
    heavy : int, default=None
        A position that counts as often as there are positions. So a value that many rows share is
        drawn, though a great many positions beside it have scores that are not much larger.

    Notes
    -----
    With m rows that are not null, the score of a position t is the distance of ``tau m``
    to the interval from the number of rows below t to the number of rows not above t. The
    draw is exact: integers, and a choice with exact probabilities.
    """

    column: int
    tau: Fraction
    cells: int = GRID_CELLS
    what: str = "a feature"
    heavy: int | None = None

    #: nothing here is a float
    idealised = False

    @property
    def name(self):
        """What the statistic is, the same for every column."""
        return f"{float(self.tau):.6g}-quantile of {self.what}, drawn by its rank"

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

        Groups. l and u are sums over rows: a row adds -tau or 1 - tau, or 0 if it is null. A group,
        whose weights add up to at most 1, adds a mean of that: a number in [-tau, 1 - tau] to l,
        and in [tau - 1, tau] to u. Such numbers are no further apart than 1, nor from 0 than
        max(tau, 1 - tau).
        """
        if adjacency == "zero-out":
            spread = float(2 * max(self.tau, 1 - self.tau))
            theorem = "a null row moves rank and target by <= max(tau, 1 - tau) either way"
        else:
            spread, theorem = 2.0, "another value moves a rank by <= 1 either way"
        return Sensitivity(math.inf, math.inf, float(self.cells), theorem, spread=spread)

    def outcomes(self, *sides):
        """Return positions that stand for all, and how many each; see `ExponentialMechanism`."""
        ranked = [rows.ranked(self.column) for rows in sides]
        outcomes, counts = merged_runs(ranked, self.tau, self.cells)
        if self.heavy is not None:
            outcomes = np.append(outcomes, [[float(self.heavy)]], axis=0)
            counts = np.append(counts, self.cells + 1.0)
        return outcomes, counts

    def scores_of(self, rows, outcomes):
        """Return the scores of some positions; see `ExponentialMechanism`."""
        positions, parts = rows.ranked(self.column)
        return rank_scores(positions, self.tau, outcomes[:, 0], parts)

    def draw(self, rows, noise, source):
        """Return a position with probability proportional to exp(-score / noise.scale)."""
        positions, parts = rows.ranked(self.column)
        starts, counts, steps = candidates(positions, self.tau, self.cells, parts)
        whole = 1 if parts is None else PARTS
        inverse = rate(self.tau.denominator * whole, noise.scale)
        if self.heavy is not None:
            own = np.searchsorted(starts, self.heavy, "right") - 1
            counts, steps = np.append(counts, self.cells + 1), np.append(steps, steps[own])
        group = weighted_choice(counts, steps, inverse, source)
        if group == len(starts):
            return np.array([self.heavy], dtype=np.float64)
        offset = uniform_below(int(counts[group]), source)
        return np.array([starts[group] + offset], dtype=np.float64)


class RankRows:
    """Rows whose coordinates lie on a public grid between public bounds.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Never changed. A NaN is a null row, as far as its coordinate goes. A stream is gone
        through once for as many columns as 256 MiB hold the positions of, but for one at least.
    lower, upper : ndarray of shape (n_features,)
        Public bounds. Values outside are clipped.
    cells : int or ndarray of shape (n_features,), default=GRID_CELLS
        Cells of the grid, at most 2**30.
    weight : ndarray of shape (n_rows,), default=None
        What rows count, as `shares` returns it. None for 1 each.
    """

    #: type that holds positions
    integer: type[np.integer] = np.int32

    def __init__(self, X, lower, upper, cells=GRID_CELLS, weight=None):
        self.X, self._lower, self._upper = X, lower, upper
        self._cells = np.broadcast_to(cells, np.shape(lower))
        self.weight, self._parts = weight, None
        # first of the columns that are kept, and their positions
        self._first, self._kept = 0, ()
        # the column whose values were told apart last, and their places
        self._apart = None, np.zeros(0, dtype=np.int64)

    def positions(self, column):
        """Return the sorted positions of a column's values, without the NaN."""
        positions = self._placed(column)
        positions = positions[positions != _MISSING]
        positions.sort()
        return positions

    def ranked(self, column):
        """Return sorted positions, as `positions` does, and the parts of one that each counts.

        Rows without a part are left out. None instead of the parts for one each.
        """
        if self.weight is None:
            return self.positions(column), None
        positions = self._placed(column)
        if self._parts is None:
            self._parts = np.rint(self.weight * PARTS).astype(np.int64)
        parts = self._parts
        kept = (positions != _MISSING) & (parts > 0)
        if not kept.all():
            positions, parts = positions[kept], parts[kept]
        # an index in order of short integers, which numpy counts and does not compare
        order = positions.astype(np.uint16).argsort(kind="stable")
        for shift in range(16, int(self._cells.max()).bit_length(), 16):
            digits = (positions >> shift).astype(np.uint16)
            order = order.take(digits.take(order).argsort(kind="stable"))
        return positions.take(order), parts.take(order)

    def _placed(self, column):
        """Return the positions of a column's values, row after row."""
        if isinstance(self.X, RowStream):
            return self._read(column)
        return self._on_grid(self.X[:, column], column)

    def told_apart(self, column, bits):
        """Return the sorted places of a column's values, of which equal ones have several.

        Between two positions there are ``2**bits`` places. Which of them a value has depends on its
        row's number alone, by multiples of the golden ratio: any run of rows is spread evenly.
        Rows that count less than 1, or may move up, have no number to rest on.
        """
        if self.weight is not None:
            raise RuntimeError("rows are told apart by their numbers, and these have weights.")
        if self._apart[0] != (column, bits):
            if isinstance(self.X, RowStream):
                positions = self._read(column)
            else:
                positions = self._on_grid(self.X[:, column], column)
            there = np.flatnonzero(positions != _MISSING)
            spread = there.astype(np.uint64) * np.uint64(GOLDEN_BITS) >> np.uint64(64 - bits)
            places = (positions[there].astype(np.int64) << bits) + spread.astype(np.int64)
            places.sort()
            self._apart = (column, bits), places
        return self._apart[1]

    def _on_grid(self, values, columns):
        """Return the positions of values of one column, or of rows of several columns."""
        lower, upper = self._lower[columns], self._upper[columns]
        values = values.astype(np.float64)
        np.clip(values, lower, upper, out=values)
        values -= lower
        values /= upper - lower
        values *= self._cells[columns]
        values[np.isnan(values)] = _MISSING
        return np.rint(values, out=values).astype(self.integer)

    def _read(self, column):
        """Return the positions of a column of a stream."""
        if not 0 <= column - self._first < len(self._kept):
            # the old ones first: they are not to be held together
            self._kept = ()
            n_rows, n_features = self.X.shape
            size = np.dtype(self.integer).itemsize
            stop = min(column + max(1, _KEPT // (size * n_rows)), n_features)
            kept = np.empty((stop - column, n_rows), dtype=self.integer)
            start = 0
            for rows in self.X.blocks(chunk_rows(self.X)[1]):
                columns = slice(column, stop)
                kept[:, start : start + len(rows)] = self._on_grid(rows[:, columns], columns).T
                start += len(rows)
            self._first, self._kept = column, kept
        return self._kept[column - self._first]


# Quantiles among floats of all magnitudes: no bounds are needed.

#: end of the grid
LARGEST_SINGLE = float(np.finfo(np.float32).max)
# the bits of a float that is not negative, read as an integer, are in the order of the floats
_LARGEST_BITS = int(np.float32(LARGEST_SINGLE).view(np.int32))
# bits of the mantissa of a float of single precision
_MANTISSA = 23
#: fewest bits of a mantissa: eight floats to a power of two
COARSEST = 3


@dataclass(frozen=True)
class Ladder:
    """Public grid of floats: 2**bits of them between neighbouring powers of two.

    From 1e-38 to 3e38 no magnitude is out of reach. A grid with fewer bits has fewer positions
    where no row is, so a draw by rank needs fewer rows; values that many rows share have a larger
    part of it, too.

    Parameters
    ----------
    bits : int
        Of the mantissa, from 3 to 23: all floats of single precision.
    signed : bool
        Whether there are negative floats; position 0 is the largest of them, or zero.
    """

    bits: int
    signed: bool

    @property
    def _shift(self):
        return _MANTISSA - self.bits

    @property
    def _half(self):
        """Number of cells between zero and the largest float."""
        return (_LARGEST_BITS + (1 << self._shift >> 1)) >> self._shift

    @property
    def zero(self):
        """Position of zero."""
        return self.signed * self._half

    @property
    def cells(self):
        """Cells of the grid; there is one position more."""
        return self.zero + self._half

    def query(self, column, tau, what="a feature"):
        """Return the query of a quantile. Zero is heavy: many counts and amounts are zero."""
        return QuantileRank(column, tau, self.cells, what, heavy=self.zero)

    def needed(self, failure):
        """Return how many ranks to either end of the rows a draw needs, in its temperatures.

        Parameters
        ----------
        failure : float
            Bound on the expected number of positions beyond all rows that are as probable as
            one at the quantile: each is that times ``exp(-ranks)``.
        """
        return math.log(2 * (self.cells + 1) / failure)

    def positions(self, values):
        """Return the position of the nearest float for every value, a function of it alone."""
        values = np.clip(values, -LARGEST_SINGLE, LARGEST_SINGLE)
        with np.errstate(under="ignore", invalid="ignore"):
            singles = values.astype(np.float32)
        # not the bits of -0.0
        positions = np.abs(singles).view(np.int32).astype(np.int64)
        positions += 1 << self._shift >> 1
        positions >>= self._shift
        if self.signed:
            np.negative(positions, out=positions, where=singles < 0)
            positions += self.zero
        return positions

    def values(self, positions):
        """Return the decimals with the fewest digits that are rounded to given positions."""
        wanted = np.asarray(positions, dtype=np.int64)
        away = wanted - self.zero
        bits = np.minimum(np.abs(away) << self._shift, _LARGEST_BITS)
        singles = np.copysign(bits.astype(np.int32).view(np.float32), away)
        return np.array([self._shortest(*pair) for pair in zip(singles, wanted, strict=True)])

    def _shortest(self, single, position):
        """Return the decimal with the fewest digits at a position, which a float has."""
        for digits in range(8):
            near = float(f"{single:.{digits}e}")
            if abs(near) <= LARGEST_SINGLE and self.positions(np.array([near]))[0] == position:
                return near + 0.0
        return float(str(single)) + 0.0


def finest_ladder(away, failure):
    """Return the finest ladder of both signs on which a draw does not fail, or None.

    Parameters
    ----------
    away : float
        Ranks between the quantile that is drawn and either end of the rows, in temperatures of the
        draw.
    failure : float
        As for `Ladder.needed`, of the coarsest; finer ones must not fail at a tenth of it.
    """
    for bits in range(_MANTISSA, COARSEST - 1, -1):
        ladder = Ladder(bits, signed=True)
        if ladder.needed(failure if bits == COARSEST else failure / 10) <= away:
            return ladder
    return None


class LadderRows(RankRows):
    """Rows whose coordinates, or distances to a center, are rounded to a `Ladder`.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        As for `RankRows`, with 8 bytes for every value of a stream. Numbers beyond the largest
        float of single precision count as being that.
    ladder : Ladder
        The grid.
    center : ndarray of shape (n_features,), default=None
        If given, the distances ``|x_j - center_j|`` are on the grid.
    weight : ndarray of shape (n_rows,), default=None
        As for `RankRows`.
    """

    integer = np.int64

    def __init__(self, X, ladder, center=None, weight=None):
        super().__init__(X, None, None, ladder.cells, weight)
        self._ladder, self._center = ladder, center

    def _on_grid(self, values, columns):
        """Return the positions of values of one column, or of rows of several columns."""
        values = values.astype(np.float64)
        missing = np.isnan(values)
        if self._center is not None:
            with np.errstate(over="ignore"):
                values -= self._center[columns]
            np.abs(values, out=values)
        positions = self._ladder.positions(values)
        positions[missing] = _MISSING
        return positions


# Several quantiles of a feature: those of disjoint parts of the rows are drawn together.


@dataclass(frozen=True)
class PartRank:
    """Place on a public grid, drawn by its rank among the rows of a part.

    Parameters
    ----------
    column : int
        Coordinate.
    tau : Fraction
        Which quantile of the part, strictly between 0 and 1.
    after, upto : int
        The part: rows whose places lie beyond `after`, and not beyond `upto`. What is drawn lies
        between these, or on them; the least place is 0.
    bits : int
        There are ``2**bits`` places to a position of the grid.
    heavy : (int, int) or None
        A position that counts as often as a number of positions.
    """

    column: int
    tau: Fraction
    after: int
    upto: int
    bits: int
    heavy: tuple[int, int] | None = None

    @property
    def first(self):
        """The least place that may be drawn."""
        return max(self.after, 0)

    @property
    def swing(self):
        """Spread of the score's change if one row is added to the part: 2 max(tau, 1 - tau)."""
        return 2 * max(self.tau, 1 - self.tau)

    def places(self, rows):
        """Return the sorted places of the rows of the part, from its first on."""
        places = rows.told_apart(self.column, self.bits)
        ends = np.searchsorted(places, [self.after, self.upto], "right")
        return places[slice(*ends)] - self.first

    def _weights(self, starts, counts):
        """Return how often runs of places count, and where and how much their heavy part does."""
        counts = np.asarray(counts, dtype=np.int64)
        if self.heavy is None:
            return counts, starts, np.zeros_like(counts)
        position, times = self.heavy
        low = (position << self.bits) - self.first
        begin = np.maximum(starts, low)
        more = np.minimum(starts + counts, low + (1 << self.bits)) - begin
        return counts + times * np.maximum(more, 0), begin, np.maximum(more, 0)

    def outcomes(self, *sides):
        """Return places that stand for all, as pairs, and how many each."""
        ranked = [(self.places(rows), None) for rows in sides]
        starts, counts = merged_runs(ranked, self.tau, self.upto - self.first)
        starts = starts[:, 0].astype(np.int64)
        weights = self._weights(starts, counts)[0]
        return self._pairs(starts + self.first), weights.astype(np.float64)

    def _pairs(self, places):
        return np.column_stack([places >> self.bits, places & (1 << self.bits) - 1]).astype(float)

    def scores_of(self, rows, outcomes):
        """Return the scores of some pairs."""
        pairs = outcomes.astype(np.int64)
        places = (pairs[:, 0] << self.bits) + pairs[:, 1] - self.first
        return rank_scores(self.places(rows), self.tau, places)

    def pick(self, rows, noise, bits):
        """Return a position and a place in it, as floats."""
        cells = self.upto - self.first
        starts, counts, steps = candidates(self.places(rows), self.tau, cells)
        weights, begin, more = self._weights(starts, counts)
        run = weighted_choice(weights, steps, rate(self.tau.denominator, noise.scale), bits)
        offset = uniform_below(int(weights[run]), bits)
        if offset < counts[run]:
            place = int(starts[run]) + offset
        else:
            place = int(begin[run]) + (offset - int(counts[run])) % int(more[run])
        return self._pairs(np.array([place + self.first]))[0]


@dataclass(frozen=True)
class PartRanks:
    """Places on a public grid, each drawn by its rank among the rows of a part of its own.

    Parameters
    ----------
    parts : tuple of PartRank
        Of one column; no two have a row in common.
    cells : int
        Cells of the grid.
    what : str, default="a feature"
        What has the quantiles, in words.

    Notes
    -----
    The score of several places is the sum of their scores, so that one draw of all of them is a
    draw of each on its own, at the same temperature. Rows that are equal have different places, by
    their numbers: so a part has the rows that its quantiles speak of, however many are tied.
    """

    parts: tuple[PartRank, ...]
    cells: int
    what: str = "a feature"

    #: nothing here is a float
    idealised = False

    @property
    def name(self):
        """What the statistic is, the same for every column."""
        return f"quantiles of {len(self.parts)} part(s) of the rows, by {self.what}, drawn by rank"

    @property
    def size(self):
        """Number of coordinates: a position and a place in it for each part."""
        return 2 * len(self.parts)

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change, from those of the parts.

        Proof. A row is in one part at most. If it leaves that or enters it, the part's score
        changes within an interval of length ``2 max(tau, 1 - tau)``, as for `QuantileRank`, and
        the others stay: so much under zero-out. Under replace-one a row may leave one part and
        enter another one, and the two lengths add up; or it stays in its part, whose number of
        rows stays too: then ranks move by at most 1 either way. Where a row's place lies depends
        on its value and its number alone.
        """
        swings = sorted(float(part.swing) for part in self.parts)
        if adjacency == "zero-out":
            spread, theorem = swings[-1], "a row is in one part, and moves rank and target there"
        else:
            spread = max(2.0, sum(swings[-2:]))
            theorem = "a row leaves one part and enters another, or moves a rank by <= 1"
        bound = float(max(self.cells, 1 << self.parts[0].bits))
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=spread)

    def draw(self, rows, noise, source):
        """Return a draw of every part, with probability proportional to exp(-score / scale)."""
        return np.concatenate([part.pick(rows, noise, source) for part in self.parts])


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
    counts at the nearest position, a function of that target alone. The draw is exact. Of rows that
    count less than 1 each, m and the numbers are totals of what they count.
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
        in [-c, c] with c = 1/2 or c = 1. A row adds -1/2 or 1/2 to l and to u, or 0 if it is null;
        a group, whose weights add up to at most 1, a mean of that.
        """
        if adjacency == "zero-out":
            spread, theorem = 1.0, "a null row moves rank less target by <= 1/2 either way"
        else:
            spread, theorem = 2.0, "another value moves a rank by <= 1 either way"
        return Sensitivity(math.inf, math.inf, float(self.cells), theorem, spread=spread)

    def ranked(self, rows):
        """Return the sorted positions of the targets of rows that are not null, and their parts.

        Parts of one that each counts; None for one each.
        """
        # chunk by chunk: four bytes a row are all that is kept of rows that are streamed
        found = [(self._positions_of(chunk), self._parts_of(chunk)) for chunk in rows.chunks]
        positions, parts = (list(part) for part in zip(*found, strict=True))
        positions = np.concatenate(positions)
        if parts[0] is None:
            positions.sort()
            return positions, None
        parts = np.concatenate(parts)
        kept = np.flatnonzero(parts)
        order = kept[positions[kept].argsort(kind="stable")]
        return positions[order], parts[order]

    def _parts_of(self, chunk):
        if chunk.weight is None:
            return None
        return np.rint(chunk.weight[np.isfinite(chunk.norm)] * PARTS).astype(np.int64)

    def _positions_of(self, chunk):
        values = chunk.target[np.isfinite(chunk.norm)].astype(np.float64)
        # before the difference: targets of 1e150 are finite, positions must be
        np.clip(values, self.lower, self.point(self.cells), out=values)
        values -= self.lower
        values /= self.step
        return np.clip(np.rint(values), 0, self.cells).astype(np.int32)

    def outcomes(self, *sides):
        """Return positions that stand for all, and how many each; see `ExponentialMechanism`."""
        return merged_runs([self.ranked(rows) for rows in sides], _HALF, self.cells)

    def scores_of(self, rows, outcomes):
        """Return the scores of some positions; see `ExponentialMechanism`."""
        positions, parts = self.ranked(rows)
        return rank_scores(positions, _HALF, outcomes[:, 0], parts)

    def draw(self, rows, noise, source):
        """Return a position with probability proportional to exp(-score / noise.scale)."""
        positions, parts = self.ranked(rows)
        starts, counts, steps = candidates(positions, _HALF, self.cells, parts)
        inverse = rate(_HALF.denominator * (1 if parts is None else PARTS), noise.scale)
        group = weighted_choice(counts, steps, inverse, source)
        offset = uniform_below(int(counts[group]), source)
        return np.array([starts[group] + offset], dtype=np.float64)


def candidates(positions, tau, cells, parts=None):
    """Group the grid's positions into runs of equal score.

    Parameters
    ----------
    positions : ndarray of int32
        Sorted positions of the rows that are not null.
    tau : Fraction
        Which quantile.
    cells : int
        Cells of the grid.
    parts : ndarray of int64, default=None
        How many parts of one every row counts, at least 1; None for one row each.

    Returns
    -------
    starts, counts, steps : ndarray of int64
        First position of every run, how many there are, and the score times the
        denominator of tau, and times `PARTS` if there are parts. A run may be empty.

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
    below = np.append(first, len(positions))
    if parts is not None:
        below = np.concatenate([[0], np.cumsum(parts)])[below]
    excess = below * tau.denominator
    excess -= tau.numerator * below[-1]
    # excess[0] < 0 < excess[-1]
    low, high = np.searchsorted(excess, 0, "left"), np.searchsorted(excess, 0, "right")
    starts = np.concatenate([[0], values[:low], values[high - 1 :] + 1])
    steps = np.concatenate([-excess[:low], [0], excess[high:]])
    return starts, np.diff(starts, append=cells + 1), steps


def merged_runs(ranked, tau, cells):
    """Return positions on whose runs the scores of all of some rows are constant.

    Parameters
    ----------
    ranked : list of (ndarray, ndarray or None)
        Sorted positions of the rows of every data set, and the parts of one that each counts.
    tau, cells : Fraction, int
        As for `candidates`.

    Returns
    -------
    outcomes : ndarray of shape (n_runs, 1)
        First position of every run.
    counts : ndarray of shape (n_runs,)
        Its length.
    """
    found = [candidates(positions, tau, cells, parts)[0] for positions, parts in ranked]
    starts = np.unique(np.concatenate(found))
    starts = starts[starts <= cells]
    return starts[:, None].astype(np.float64), np.diff(starts, append=cells + 1).astype(float)


def rank_scores(positions, tau, places, parts=None):
    """Return how far the ranks of some places are from the quantile's, by their definition.

    Parameters
    ----------
    positions : ndarray
        Sorted positions of the rows that are not null.
    tau : Fraction
        Which quantile.
    places : ndarray
        Where.
    parts : ndarray of int64, default=None
        As for `candidates`.

    Returns
    -------
    scores : ndarray of float64
    """
    ranks = np.arange(len(positions) + 1.0)
    if parts is not None:
        ranks = np.concatenate([[0], np.cumsum(parts)]) / PARTS
    target = float(tau) * ranks[-1]
    below = ranks[np.searchsorted(positions, places, "left")] - target
    beyond = target - ranks[np.searchsorted(positions, places, "right")]
    return np.maximum(np.maximum(below, beyond), 0.0)


def rate(denominator, temperature):
    """Return 1 / (denominator temperature), rounded down."""
    if math.isinf(temperature):
        return 0.0
    # far below what overflows, far above what matters
    exact = min(1 / (denominator * Fraction(temperature)), Fraction(10**250))
    rounded = float(exact)
    return math.nextafter(rounded, 0.0) if rounded > exact else rounded


# A radius that few rows exceed: the plan, made of public numbers, and the draw.

# neighbouring radii differ by this factor: finer ones would cost more than they gain
RATIO = 1.05
# spread of the score (2), with the slack that the temperature is charged
_PAID_SPREAD = 2 * (1 + 1e-5)


def plan_threshold(
    epsilon, *, n_rows, centered, tail=None, resolution=1e-9, ratio=RATIO, failure=1e-3
):
    """Plan the draw of a radius that few rows exceed.

    Parameters
    ----------
    epsilon : float
        Price of the draw, purely epsilon-DP; at 0 none is made.
    n_rows : int
        Number of rows; public.
    centered : bool
        Whether distances are taken from a public point of the unit ball, not the origin.
    tail : int, default=None
        How many rows should lie beyond the radius; None takes the margin, one more than
        the error of the draw.
    resolution : float, default=1e-9
        The smallest radius is this one or less, in the unit ball; less than 1.
    ratio : float, default=1.05
        Factor between neighbouring radii, greater than 1.
    failure : float, default=1e-3
        Probability b in (0, 1) with which the statement below may fail.

    Returns
    -------
    plan : ThresholdPlan
        Made of public numbers only.

    Raises
    ------
    ValueError
        If `tail`, `resolution` or `failure` is out of range.

    Notes
    -----
    Some radius has score 0: the first with at most `tail` rows beyond it. So a score above
    ``L = (2 / epsilon) log(points / b)`` has probability at most b. With the margin
    ``tail = floor(L) + 1``, a radius that scores at most L has at most ``2 tail`` rows beyond
    it, and its predecessor has at least one: the radius is less than `ratio` times the
    largest distance, or the smallest of all. With n_rows <= tail the first radius would
    always score 0, and mean nothing: nothing is drawn then.
    """
    check_threshold(tail, resolution, failure)
    largest = 2.0 if centered else 1.0
    points = 1 + math.ceil(math.log(largest / resolution) / math.log(ratio))
    # a share of a tiny budget may have been rounded to nothing
    error = (_PAID_SPREAD / epsilon) * math.log(points / failure) if epsilon else math.inf
    slack = math.floor(error) if error < 2.0**62 else 2**62
    tail = slack + 1 if tail is None else int(tail)
    released = n_rows > tail
    return ThresholdPlan(float(epsilon), largest, ratio, points, tail, slack, released)


def check_threshold(tail, resolution, failure):
    """Raise a ValueError that names the parameter that is out of range."""
    whole = isinstance(tail, int | np.integer) and not isinstance(tail, bool)
    if not (tail is None or (whole and tail >= 1)):
        raise ValueError(f"tail must be None or a whole number, at least 1; got {tail!r}.")
    for name, value, least in (("resolution", resolution, 1e-100), ("failure", failure, 1e-300)):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (number and least <= value < 1):
            raise ValueError(f"{name} must be a number in [{least:g}, 1); got {value!r}.")


@dataclass(frozen=True)
class ThresholdPlan:
    """How a radius is drawn.

    Parameters
    ----------
    epsilon : float
        Price of the draw.
    largest : float
        Largest distance that there can be, and largest radius: 1 from the origin, 2 from
        another point of the unit ball.
    ratio, points : float, int
        The grid: its factor, and how many radii it has.
    tail : int
        How many rows should lie beyond the radius.
    slack : int
        With the probability that was asked for, the number of rows beyond the radius is at
        most ``tail + slack``, and at least `tail` minus `slack` lie beyond the radius before.
    released : bool
        Whether there are enough rows for a draw. If not, the radius is `largest`.
    """

    epsilon: float
    largest: float
    ratio: float
    points: int
    tail: int
    slack: int
    released: bool

    @property
    def smallest(self):
        """The smallest radius, in the unit ball."""
        return self.largest * self.ratio ** (1.0 - self.points)

    def run(self, curator, center=None):
        """Return the radius, in the unit ball; no release is made if there are too few rows.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.
        center : ndarray of shape (n_features,), default=None
            Public point of the unit ball; None is the origin.

        Returns
        -------
        threshold : float
            In ``(0, largest]``.
        """
        if not self.released:
            return self.largest
        query = NormThreshold(center, self.largest, self.ratio, self.points, self.tail)
        (index,) = curator.release(query, ExponentialMechanism(self.epsilon))
        return float(query.grid()[int(index)])


class ThresholdDraw:
    """Base of queries that draw a point of a geometric grid by how many rows lie beyond it.

    Subclasses have fields `points` and `tail`, the number of points and how many rows should
    lie beyond the one that is drawn, and methods ``grid()`` and ``magnitudes(chunk)``: one
    number per row, a function of its own row alone, to the last bit. Another row must not move
    it across a point of the grid.

    Notes
    -----
    With N_k rows beyond the k-th point, the score of k is the distance of `tail` to the
    interval from N_k to N_(k-1). A row beyond the last point counts as being at it, and nothing
    is below the first one. Scores are integers, those of rows that count less whole numbers of
    `PARTS`, and the draw is exact.
    """

    points: int
    tail: int

    #: nothing that is drawn from is a float
    idealised = False
    #: number of coordinates
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change: 2.

        Proof. Magnitudes are functions of one row each. So between neighbours all N change by
        0 or 1, or all by 0 or -1: one magnitude moves up, moves down, or vanishes. The score is
        the largest of ``N_k - tail``, ``tail - N_(k-1)`` (which the first point does not have)
        and 0, and changes by no more than these two do: its change lies in [-1, 1]. Both ends
        are attained by one pair: at a point with more than `tail` rows beyond it, and at one
        whose predecessor has fewer. A group, whose weights add up to at most 1, adds a number in
        [0, 1] to every N: none of them changes by more than 1.
        """
        theorem = "one row moves every count by <= 1, all of them in the same sense"
        return Sensitivity(math.inf, math.inf, float(max(self.points - 1, 1)), theorem, spread=2.0)

    def scores(self, rows):
        """Return the score of every point, whole parts of one in float64, of shape (points,)."""
        grid, points = self.grid(), self.points

        def shells(chunk):
            # how many points a row exceeds; the last one cannot be exceeded
            shell = np.minimum(np.searchsorted(grid, self.magnitudes(chunk)), points - 1)
            # null rows count as absent
            there = np.isfinite(chunk.norm)
            weight = None if chunk.weight is None else chunk.weight[there]
            return np.bincount(shell[there], weight, minlength=points).astype(np.float64)

        counts = sum_over(rows, shells, points)
        beyond = counts.sum() - np.cumsum(counts)
        scores = np.maximum(beyond - self.tail, 0.0)
        np.maximum(scores[1:], self.tail - beyond[:-1], out=scores[1:])
        return scores

    def outcomes(self, *sides):
        """Return all indices, each of which stands for itself; see `ExponentialMechanism`."""
        return np.arange(float(self.points))[:, None], np.ones(self.points)

    def scores_of(self, rows, outcomes):
        """Return the scores of some indices; see `ExponentialMechanism`."""
        return self.scores(rows)[outcomes[:, 0].astype(np.int64)]

    def draw(self, rows, noise, source):
        """Return an index with probability proportional to exp(-score / noise.scale)."""
        steps = np.rint(self.scores(rows) * PARTS).astype(np.int64)
        inverse = rate(PARTS, noise.scale)
        chosen = weighted_choice(np.ones(self.points), steps, inverse, source)
        return np.array([chosen], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class NormThreshold(ThresholdDraw):
    """Index of a radius of a geometric grid, drawn by how many rows lie beyond it.

    Parameters
    ----------
    center : ndarray of shape (n_features,) or None
        Public point of the unit ball; None is the origin.
    largest, ratio, points : float, float, int
        The grid: ``largest / ratio**(points - 1), ..., largest / ratio, largest``. No row of
        the unit ball is further from the center than `largest`, up to rounding.
    tail : int
        How many rows should lie beyond the radius; at least 0.
    """

    center: Any
    largest: float
    ratio: float
    points: int
    tail: int

    @property
    def name(self):
        """What the statistic is."""
        where = "norm" if self.center is None else "distance from a center"
        return f"{where} that about {self.tail} rows exceed, drawn by its rank"

    def grid(self):
        """Return the radii, an increasing array of shape (points,)."""
        return self.largest * self.ratio ** np.arange(1.0 - self.points, 1.0)

    def magnitudes(self, chunk):
        """Return the distance of every row."""
        return distances_from(self.center, chunk)


# Other magnitudes that few rows exceed.


@dataclass(frozen=True, eq=False)
class MagnitudeThreshold(ThresholdDraw):
    """Index of a point of a geometric grid, drawn by how many rows have a magnitude beyond it.

    Parameters
    ----------
    magnitude : RowNorm, TargetDistance or GradientNorm
        Maps a chunk to one number per row, each a function of its own row alone, to the last
        bit.
    smallest, ratio, points : float, float, int
        The grid: ``smallest, smallest * ratio, ..., smallest * ratio**(points - 1)``.
    tail : int
        How many rows should lie beyond the point; at least 0.
    """

    magnitude: Any
    smallest: float
    ratio: float
    points: int
    tail: int

    @property
    def name(self):
        """What the statistic is."""
        return f"{self.magnitude.name} that about {self.tail} rows exceed, drawn by its rank"

    def grid(self):
        """Return the grid, an increasing array of shape (points,)."""
        return self.smallest * self.ratio ** np.arange(float(self.points))

    def magnitudes(self, chunk):
        """Return the magnitude of every row."""
        return self.magnitude(chunk)


@dataclass(frozen=True)
class RowNorm:
    """Euclidean norm of a row's features, in the units of the data."""

    @property
    def name(self):
        """What it is."""
        return "norm of a row"

    def __call__(self, chunk):
        """Return the norm of every row."""
        return raw_norms(chunk)


@dataclass(frozen=True)
class TargetDistance:
    """Distance of a row's target from a public number.

    Parameters
    ----------
    center : float
        Public number.
    """

    center: float = 0.0

    @property
    def name(self):
        """What it is."""
        return "distance of a target"

    def __call__(self, chunk):
        """Return the distance of every target."""
        return np.abs(chunk.target - self.center)


@dataclass(frozen=True, eq=False)
class Columns:
    """Features of dense rows, or their distances from public numbers.

    Parameters
    ----------
    center : ndarray of shape (n_features,) or None
        If given, distances from it are taken.
    """

    center: Any = None

    @property
    def name(self):
        """What it is."""
        return "features" if self.center is None else "distances of features"

    def __call__(self, chunk):
        """Return an array of shape (n_rows, n_features)."""
        if self.center is None:
            return chunk.X
        gaps = chunk.X - self.center
        return np.abs(gaps, out=gaps)


@dataclass(frozen=True)
class SmallEntry:
    """Whether a dense row has a feature that is small, but not 0: 1 or 0.

    Parameters
    ----------
    least, of_norm : float, bool
        What is not small any more, and whether in units of the row's own norm.
    """

    least: float
    of_norm: bool = False

    @property
    def name(self):
        """What it is."""
        return f"a feature below {self.least:.3g}{' norms' * self.of_norm} that is not 0"

    def __call__(self, chunk):
        """Return one number for every row."""
        sizes = np.abs(chunk.X)
        small = sizes < (self.least * raw_norms(chunk)[:, None] if self.of_norm else self.least)
        small &= sizes > 0
        return small.any(axis=1).astype(np.float64)


@dataclass(frozen=True)
class TargetValue:
    """A row's target, in the units of the data."""

    @property
    def name(self):
        """What it is."""
        return "target"

    def __call__(self, chunk):
        """Return the target of every row."""
        return chunk.target


@dataclass(frozen=True)
class GradientNorm:
    """Norm of the gradient of a row's loss at zero coefficients.

    Parameters
    ----------
    loss : object
        Loss of one output, of `skdp._losses`, not clipped.
    """

    loss: Any

    @property
    def name(self):
        """What it is."""
        return f"norm of a gradient of {type(self.loss).__name__}"

    def __call__(self, chunk):
        """Return the norm of every row's gradient; the rows are those of `unit_rows`."""
        residual = self.loss.residual(np.zeros(len(chunk.norm)), chunk.target)
        # a null row has an infinite norm, and is not counted
        norm = np.where(np.isfinite(chunk.norm), chunk.norm, 0.0)
        with np.errstate(under="ignore", over="ignore"):
            return np.abs(residual) * norm


# Sums over rows of what follows from several numbers of a row.

# numbers that are made at a time
_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class _OfMagnitudes:
    """A statistic of k numbers of every row; a subclass adds `partial` and what it is.

    Parameters
    ----------
    magnitudes : tuple of RowNorm, SmallEntry, TargetDistance, TargetValue or Columns
        Each maps a chunk to one number per row, or to several, functions of the row alone, to the
        last bit.
    """

    magnitudes: tuple[Any, ...]

    @property
    def _kinds(self):
        """What the numbers are, in words."""
        return ", ".join(magnitude.name for magnitude in self.magnitudes)

    def _numbers(self, chunk):
        """Return the numbers of a chunk's rows, an array of shape (n_rows, k)."""
        parts = [magnitude(chunk) for magnitude in self.magnitudes]
        # rows themselves are not copied
        return parts[0] if parts[0].ndim > 1 and len(parts) == 1 else np.column_stack(parts)

    def _blocks(self, chunk):
        """Yield the numbers of a chunk's rows that are not null, and what these rows count or None.

        Those of many columns come a few rows at a time: memory that is new takes longer than the
        work on it.
        """
        n_rows, d = chunk.X.shape
        many = any(isinstance(one, Columns | SmallEntry) for one in self.magnitudes)
        step = max(_AT_ONCE // d, 1) if many else n_rows
        for start in range(0, n_rows, step):
            part = chunk if step >= n_rows else chunk.taken(slice(start, start + step))
            numbers, weight, kept = self._numbers(part), part.weight, np.isfinite(part.norm)
            if not kept.all():
                numbers, weight = numbers[kept], None if weight is None else weight[kept]
            yield numbers, weight

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)


# Counts on the sides of thresholds, for a search by noisy bisection.


@dataclass(frozen=True, eq=False)
class MagnitudeSides(_OfMagnitudes):
    """Sum over rows of 1/2 where a magnitude lies above a threshold, and -1/2 elsewhere.

    Parameters
    ----------
    magnitudes : tuple of RowNorm, SmallEntry, TargetDistance, TargetValue or Columns
        What gives the numbers of a row.
    thresholds : ndarray of shape (k,) or (m, k)
        What they are compared with, k being how many numbers there are for a row, and m with how
        many thresholds each.
    places : ndarray of shape (k,) or None
        Which number each of k columns of thresholds is for, some perhaps for the same one; None
        for each its own.

    Notes
    -----
    A comparison bounds what a number can do, however large it is. A null row contributes 0. The
    numbers of rows in memory are put in order as far as all thresholds need it: sums of whole parts
    are exact, and the same either way.
    """

    thresholds: Any
    places: Any = None

    @property
    def name(self):
        """What the statistic is, the same for all thresholds."""
        return f"rows above thresholds minus half of the rows: {self._kinds}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.thresholds.size

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: k/2 and sqrt(k)/2, or twice that, of k counts.

        Proof. A row contributes a vector of k entries 1/2 or -1/2, or 0 if it is null: of l1 norm
        at most k/2 and l2 norm at most sqrt(k)/2. Zero-out removes one. Under replace-one the
        difference of two is at most twice as long, attained if every magnitude changes sides of all
        its thresholds. Which number a threshold is for does not matter.
        Sums of halves are exact in floating point. A group, whose weights add up to at most 1,
        contributes a mean of such vectors, and of zero.
        """
        l1, l2 = self.size / 2, math.sqrt(self.size) / 2
        theorem = "a row adds 1/2 or -1/2 to each of k counts"
        if adjacency != "zero-out":
            l1, l2, theorem = 2 * l1, 2 * l2, "a row moves each of k counts by <= 1"
        return Sensitivity(l1=l1, l2=l2, bound=n_rows / 2, theorem=theorem)

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        if rows.is_streamed:
            return sum_over(rows, self.partial, self.size)
        k = self.thresholds.shape[-1]
        places = np.arange(k) if self.places is None else self.places
        if rows.sought[0] is not self.magnitudes or (rows.sought[1][places] < 0).any():
            # the old ones first: they are not to be held together
            rows.sought, asked, at = (None, None, None), np.unique(places), np.full(k, -1)
            at[asked] = np.arange(len(asked))
            rows.sought = self.magnitudes, at, DividedNumbers(*self._columns(rows, asked))
        return rows.sought[2].sides(np.atleast_2d(self.thresholds), rows.sought[1][places])

    def _columns(self, rows, asked):
        """Return those numbers of all rows that are not null, and what these rows count."""
        n_rows = sum(np.count_nonzero(np.isfinite(chunk.norm)) for chunk in rows.chunks)
        columns, weights, start = np.empty((len(asked), n_rows)), [], 0
        for chunk in rows.chunks:
            for numbers, weight in self._blocks(chunk):
                own = numbers.T if len(asked) == numbers.shape[1] else numbers.T[asked]
                columns[:, start : start + len(numbers)] = own
                weights.append(weight)
                start += len(numbers)
        parts = any(map(counts_parts, rows.chunks))
        return columns, np.concatenate(weights) if parts else None

    def partial(self, chunk):
        """Return the sums over a chunk's rows."""
        kept, numbers = np.isfinite(chunk.norm), self._numbers(chunk)
        numbers = numbers if self.places is None else numbers[:, self.places]
        # ones and zeros: exact in single precision, and a product is the fastest way to count them
        counted, kind = kept, np.float32
        if counts_parts(chunk):
            counted, kind = counted_rows(chunk), np.float64
        each = counted.astype(kind)
        sums = [each.dot((numbers > one).astype(kind)) for one in np.atleast_2d(self.thresholds)]
        return np.concatenate(sums).astype(np.float64) - counted.sum() / 2


# as few numbers are sorted faster than they are divided
_FEW = 1 << 12
# the last bits of a number, which hold what its row counts
_COUNT_BITS = 2 * PARTS - 1


class DividedNumbers:
    """Numbers of rows, in order as far as thresholds have asked for it.

    Parameters
    ----------
    numbers : ndarray of shape (k, n_rows)
        The k numbers of every row, of at most 1e300 in magnitude, as admitted ones are; taken over.
    weight : ndarray of shape (n_rows,) or None
        What rows count, in whole parts of one, of which sums are exact; None for 1 each. With it
        thresholds are those of a `FloatKey`, of which the last 22 bits are zeros.

    Notes
    -----
    A long piece in which a threshold falls is divided there, in its place, as by a quicksort.
    Thresholds of a search soon fall in one short piece: that takes a few passes, and a sort tens.

    What a row counts takes the last bits of each of its numbers, which are rounded up to the next
    number that may be a threshold: they are above the same thresholds as before.
    """

    def __init__(self, numbers, weight):
        self._numbers, self._counted = numbers, weight is not None
        self._whole, self._total = 1, numbers.shape[1]
        if self._counted:
            parts = np.rint(weight * PARTS).astype(np.int64)
            self._whole, self._total = PARTS, int(parts.sum())
            for bits in numbers.view(np.int64):
                # towards zero where they are negative
                bits += ~(bits >> 63) & _COUNT_BITS
                bits &= ~_COUNT_BITS
                bits |= parts
        # for every number: its thresholds; where the rows above each begin; the sum of those that
        # are not above; and, if the rows before it are in order, their cumulative counts
        ends = [-math.inf, math.inf], [0, numbers.shape[1]], [0, self._total], [None] * 3
        self._cuts = [[list(part) for part in ends] for _ in numbers]

    def sides(self, thresholds, places):
        """Return the sums over rows above thresholds minus half of all, one after another.

        Parameters
        ----------
        thresholds, places : ndarray of shape (m, n_places), ndarray of shape (n_places,)
            What is compared, and which number with each column of it.
        """
        if (thresholds[1:] < thresholds[:-1]).any():
            return np.concatenate([self.sides(one[None], places) for one in thresholds])
        if self._counted:
            # above all that rows with the same number may count
            bits = (thresholds + 0.0).view(np.int64)
            thresholds = (bits | ~(bits >> 63) & _COUNT_BITS).view(np.float64)
        below, found = [], {}
        for j, own in zip(places.tolist(), thresholds.T.copy(), strict=True):
            # several places may ask the same
            key = j, own.tobytes()
            if key not in found:
                found[key] = self._below(j, own)
            below.append(found[key])
        return (self._total / 2 - np.array(below).T).ravel() / self._whole

    def _below(self, j, asked):
        """Return what the rows count whose number is not above thresholds in order."""
        keys, places, counts, ordered = cuts = self._cuts[j]
        i = bisect_right(keys, asked[0])
        numbers = self._numbers[j, places[i - 1] : places[i]]
        if ordered[i] is not None and asked[-1] < keys[i]:
            found = numbers.searchsorted(asked, "right")
            if self._counted:
                found = ordered[i][found]
            return counts[i - 1] + found
        if len(asked) > 1:
            return np.concatenate([self._below(j, one) for one in asked[:, None]])
        if len(numbers) <= _FEW:
            numbers.sort()
            ordered[i] = _running(numbers) if self._counted else ()
            # two pieces in order are one
            for end in (i, i - 1):
                one, other = ordered[end : end + 2]
                if one is not None and other is not None:
                    if self._counted:
                        ordered[end + 1] = np.concatenate([one, one[-1] + other[1:]])
                    for part in cuts:
                        del part[end]
            return self._below(j, asked)
        above = numbers > asked
        n_below = len(above) - int(np.count_nonzero(above))
        # those on the wrong side change places
        high, low = np.flatnonzero(above[:n_below]), n_below + np.flatnonzero(~above[n_below:])
        numbers[high], numbers[low] = numbers[low], numbers[high]
        more = n_below
        if self._counted and 2 * n_below <= len(numbers):
            more = _counted_together(numbers[:n_below])
        elif self._counted:
            more = counts[i] - counts[i - 1] - _counted_together(numbers[n_below:])
        cut = asked[0], places[i - 1] + n_below, counts[i - 1] + more, None
        for part, own in zip(cuts, cut, strict=True):
            part.insert(i, own)
        return np.array([counts[i]])


def _counted_together(numbers):
    """Return what rows count together, by the last bits of one number of each."""
    return int((numbers.view(np.int64) & _COUNT_BITS).sum())


def _running(numbers):
    """Return what the first rows count together: none of them, one, and so on."""
    sums = np.zeros(len(numbers) + 1, dtype=np.int64)
    np.cumsum(numbers.view(np.int64) & _COUNT_BITS, out=sums[1:])
    return sums


# Counts of magnitudes in cells of a geometric grid, all in one release.

#: exponents of the lowest cell and of the one after the highest, and how many cells there are
LOWEST_CELL, _BEYOND_CELLS = -84, 84
N_CELLS = _BEYOND_CELLS - LOWEST_CELL
# magnitudes of columns lie in these around 1 as a rule, from 1e-7 to 1e7
_USUAL_CELLS = 12
# A scale may be only the distance to a value that many rows share. So it is if fewer rows than so
# many tails lie up to it, none in the next two cells, and a tail in two cells beyond these. Two
# cells have rows if their count is above so many deviations of the noise
_SHARED_TAILS, _SURE_PAIR = 2.5, 3.0
# what a row counts for an entry is a multiple of one over that
_SHARES = 1 << 10
# where half of the exponent of a float is stored, and what is added to it, for mantissas below one
_EXPONENT_PLACE, _EXPONENT_BIAS = 53, 511


@dataclass(frozen=True, eq=False)
class MagnitudeCells(_OfMagnitudes):
    """Counts of numbers whose magnitudes lie in [4^j / 2, 2 4^j), for whole j from -84 to 83.

    Parameters
    ----------
    magnitudes : tuple of RowNorm, TargetDistance or Columns
        As for `MagnitudeSides`.
    places : ndarray of shape (k,)
        Which number each of k blocks of cells is for, some perhaps for the same one.
    entries : int or None
        With `Columns` around 0 as the last of the magnitudes: each column has one place, and a row
        with m > `entries` entries that are not 0 counts as the root of ``entries / m`` for each of
        them. None for dense rows of which every number counts in full.

    Notes
    -----
    Numbers beyond the cells are counted in the last one or the first one, and zeros in none. A null
    row contributes 0. The cells of the first place come first.
    """

    places: Any
    entries: int | None = None

    @property
    def name(self):
        """What the statistic is."""
        return f"rows by magnitude: {self._kinds}"

    @property
    def size(self):
        """Number of coordinates."""
        return len(self.places) * N_CELLS

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: k and sqrt(k), or 2k and sqrt(2k).

        Proof. A row adds 1 to at most one cell of each of k blocks. Zero-out removes that; under
        replace-one a number leaves one cell and enters another. Attained if every number does.
        Which number a block is for does not matter. A group, whose weights add up to at most 1,
        contributes a mean of such vectors, and of zero.

        Of d columns with `entries`, m that are not 0 add at most ``min(1, sqrt(s / m))`` each,
        s being `entries`: squares that add up to at most s, and numbers to ``sqrt(m s)``. So d
        blocks count as min(d, s) for l2, and as the root of d times that for l1. Contributions are
        not negative: two of them are no further apart than the root of the sum of their squares.
        """
        others = np.count_nonzero(self.places < len(self.magnitudes) - 1)
        d = few = len(self.places) - others
        if self.entries is not None:
            few = min(d, self.entries)
        l1, square = others + math.sqrt(d * few), others + few
        theorem = "a row is in one cell of each"
        if adjacency != "zero-out":
            l1, square = 2 * l1, 2 * square
            theorem = "a row leaves one cell of each and enters another"
        return Sensitivity(l1=l1, l2=math.sqrt(square), bound=float(n_rows), theorem=theorem)

    def partial(self, chunk):
        """Return the counts of a chunk's rows."""
        if self.entries is not None:
            return self._of_stored(chunk)
        asked, places = np.unique(self.places, return_inverse=True)
        counts, blocks = np.zeros(N_CELLS * len(asked)), N_CELLS * np.arange(len(asked))
        weighted = counts_parts(chunk)
        for values, weight in self._blocks(chunk):
            if len(asked) < values.shape[1]:
                values = values[:, asked]
            cells = _magnitude_cells(np.ascontiguousarray(values, dtype=np.float64), blocks)
            each = np.repeat(weight, len(asked)) if weighted else None
            counts += np.bincount(cells.ravel(), each, minlength=len(counts))
            if counts[blocks].any():
                zeros = values == 0
                counts[blocks] -= zeros.sum(axis=0) if weight is None else weight @ zeros
        return counts.reshape(len(asked), -1)[places].ravel()

    def _of_stored(self, chunk):
        """Return the counts of a chunk's rows: what a CSR matrix does not store is in no cell."""
        X, counted = sparse.csr_array(chunk.X, dtype=np.float64), counted_rows(chunk)
        lengths, zero = np.diff(X.indptr), np.flatnonzero(X.data == 0)
        row = np.searchsorted(X.indptr, zero, "right") - 1
        # a row stores a column once: `tame` saw to that
        m = np.maximum(lengths - np.bincount(row, minlength=len(lengths)), self.entries)
        # rounded down to few digits: sums of them are exact
        share = counted * (np.floor(_SHARES * np.sqrt(self.entries / m)) / _SHARES)
        each, cells = np.repeat(share, lengths), np.empty(len(X.data), dtype=np.int64)
        each[zero] = 0.0
        for part in (slice(start, start + _AT_ONCE) for start in range(0, len(cells), _AT_ONCE)):
            first = np.multiply(X.indices[part], N_CELLS, dtype=np.int64)
            cells[part] = _magnitude_cells(X.data[part], first)
        others = [magnitude(chunk) for magnitude in self.magnitudes[:-1]]
        counts = [
            np.bincount(_magnitude_cells(one), counted * (one != 0), N_CELLS) for one in others
        ]
        counts.append(np.bincount(cells, each, N_CELLS * X.shape[1]))
        return np.concatenate(counts).reshape(-1, N_CELLS)[self.places].ravel()

    def by_number(self, released, noise):
        """Return what was counted for each number, and the noise of that.

        Parameters
        ----------
        released : ndarray of shape (size,)
            Counts with noise.
        noise : float
            Standard deviation of the noise.

        Returns
        -------
        counts, noise : ndarray of shape (n, N_CELLS), ndarray of shape (n,)
            Of the n numbers with a place, in their order: means over the places of each.
        """
        _, places, often = np.unique(self.places, return_inverse=True, return_counts=True)
        released, counts = released.reshape(-1, N_CELLS), np.zeros((len(often), N_CELLS))
        if len(often) == len(places):
            counts[places] = released
            return counts, np.full(len(often), noise)
        np.add.at(counts, places, released)
        return counts / often[:, None], noise / np.sqrt(often)


def _magnitude_cells(values, first=0):
    """Return the cells of magnitudes, and the first one for zeros, of blocks that begin there."""
    # the exponents that `frexp` has, a tenth of its time
    cells, lowest = np.abs(values).view(np.int64), _EXPONENT_BIAS + LOWEST_CELL
    cells >>= _EXPONENT_PLACE
    np.clip(cells, lowest, lowest + N_CELLS - 1, out=cells)
    cells += first - lowest
    return cells


def scales_in_cells(counts, noise, tail, n_around=0):
    """Return scales that about `tail` rows exceed, from noisy counts in cells.

    Parameters
    ----------
    counts, noise : ndarray of shape (k, N_CELLS), ndarray of shape (k,)
        Counts of k numbers as those of `MagnitudeCells`, and their standard deviations.
    tail : float
        Number of rows; half of those that are seen if these are less than twice as many.
    n_around : int, default=0
        How many of the numbers, the last ones, are distances from released medians. Of a column of
        which about half of the rows share a value the median is a little off, all these rows are
        so far from it, and only the others tell the spread.

    Returns
    -------
    scales, lowest, highest : ndarray of shape (k,)
        The scale, the lower end of the lowest cell that is seen to have rows, and the upper end of
        the highest; NaN where none is.
    """
    # noise alone exceeds that in a usual cell with a chance of .5 %, and in another one, where it
    # would make a column of nothing, with one of .1 %
    usual = np.abs(np.arange(N_CELLS) + LOWEST_CELL) <= _USUAL_CELLS
    sure = math.sqrt(2 * math.log(counts.size)) + np.where(usual, 0.3, 1.1)
    sure = counts > sure * noise[:, None]
    scales, lowest, highest = np.full((3, len(counts)), math.nan)
    kept = np.where(sure, counts, 0.0)
    if n_around:
        own = kept[-n_around:], counts[-n_around:], noise[-n_around:, None]
        kept[-n_around:] = _beside_shared_values(*own, tail, usual[1:] & usual[:-1])
    seen = np.flatnonzero(kept.any(axis=1))
    counts = kept[seen]
    beyond = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    wanted = np.minimum(tail, beyond[:, 0] / 2)
    cell, rows = (beyond >= wanted[:, None]).sum(axis=1) - 1, np.arange(len(seen))
    place = cell + LOWEST_CELL + (beyond[rows, cell] - wanted) / counts[rows, cell]
    first, last = (counts > 0).argmax(axis=1), (counts > 0)[:, ::-1].argmax(axis=1)
    # one after another: the same to the last bit on all machines
    scales[seen] = [0.5 * 4.0**one for one in place.tolist()]
    lowest[seen] = np.ldexp(0.5, 2 * (first + LOWEST_CELL))
    highest[seen] = np.ldexp(2.0, 2 * (N_CELLS - 1 - last + LOWEST_CELL))
    return scales, lowest, highest


def _beside_shared_values(kept, counts, noise, tail, usual):
    """Return the counts that tell spreads: `kept`, or those of rows beside a value that is shared.

    Two cells next to each other may surely have rows where neither of them has, and rows that are
    not seen may be what a tail lacks.
    """
    seen, first = kept.sum(axis=1, keepdims=True), np.arange(N_CELLS - 1)
    wanted = np.maximum(seen - tail, seen / 2)
    cell = (kept.cumsum(axis=1) <= wanted).sum(axis=1, keepdims=True)
    # of columns of which nothing is seen in one cell all pairs are looked at
    cell[seen == 0] = -N_CELLS
    pairs, surely = counts[:, 1:] + counts[:, :-1], _SURE_PAIR * math.sqrt(2) * noise
    low = np.where(first <= cell + 1, kept[:, :-1], 0.0).sum(axis=1, keepdims=True)
    next_to = np.where(first == cell + 1, pairs, 0.0).max(axis=1, keepdims=True)
    beyond = usual & (first > cell + 2) & (low < _SHARED_TAILS * tail) & (next_to < surely)
    beyond &= pairs > np.maximum(surely, tail)
    start = np.where(beyond, pairs, 0.0).argmax(axis=1)[:, None]
    two = np.abs(np.arange(N_CELLS) - start - 0.5) < 1
    found = np.where(two, np.maximum(counts, 0.0), 0.0)
    return np.where(beyond.any(axis=1, keepdims=True), found, kept)
