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

With Gaussian noise quantiles are searched by bisection instead: `skdp._bisection`.

References: F. McSherry and K. Talwar, "Mechanism design via differential privacy", FOCS 2007;
A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011;
for radii Z. Sun, A. T. Suresh and A. K. Menon, "The importance of feature preprocessing for
differentially private linear optimization", ICLR 2024 (Lemma 4).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from skdp._counted import GOLDEN_BITS, PARTS
from skdp._rows.base import chunk_rows, sum_over
from skdp._rows.columns import distances_from
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
# bits of the parts of one that a row counts
_PART_BITS = PARTS.bit_length()


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
        return in_order(positions, parts)

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
        return in_order(positions[kept], parts[kept])

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


def in_order(positions, parts):
    """Return sorted positions, of at most 33 bits, and the parts of one that each counts."""
    # both in one number: numpy sorts numbers far faster than it finds an index in order
    both = positions.astype(np.int64)
    both <<= _PART_BITS
    both |= parts
    both.sort()
    return (both >> _PART_BITS).astype(positions.dtype), both & ((1 << _PART_BITS) - 1)


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
