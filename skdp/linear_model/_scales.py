# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private scales of rows and targets that nobody has bounds for.

The unit of length of the rows, origins and units of their columns and of the targets, and a norm
that few gradients exceed. No range is asked for. With Gaussian noise scales are searched by
bisection among all floats; for pure privacy they are drawn by ranks from public grids of a huge
range. Which are released, and at what price, follows from public numbers alone.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skdp._bisection import (
    LOWEST_CELL,
    MANTISSA_BITS,
    N_CELLS,
    Columns,
    FloatKey,
    GradientNorm,
    MagnitudeCells,
    MagnitudeSides,
    RowNorm,
    SmallEntry,
    TargetDistance,
    TargetValue,
    bisect_quantile,
    scales_in_cells,
    shortest,
)
from skdp._quantiles import MagnitudeThreshold, TargetMedian
from skdp._rows.linear import StandardColumns
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.privacy.laws.calibration import gdp_mu, signal_to_noise
from skdp.privacy.laws.exponential import ExponentialMechanism

#: scales lie in this range
SMALLEST, LARGEST = 1e-50, 1e50
# part of the rows that lies beyond a scale
_TAIL = 0.25

# Bisection. A search that spends mu finds a rank up to an error of a few 1 / mu rows. So its
# precision is n mu, the "ranks": the plan aims at the first number, and accepts `_FEWEST_RANKS`. A
# look around 0 at the second number, for at most that share of the price, also sees columns that
# are seldom not 0. A norm of rows may be less exact than a unit of targets.
_AIMED_RANKS, _RARE_RANKS, _RARE_SHARE = 100.0, 300.0, 0.5
# Medians of all columns must be more exact than those of a few.
_FEWEST_RANKS = {"rows": 8.0, "targets": 12.0, "columns": 10.0, "medians": 18.0}
# Ranks to aim at, and to accept, for targets without columns: slopes are worth little there, and
# without an origin and a unit of the targets R2 is far below 0
_TARGETS_ALONE = (10.0, 8.0)
# A column is away from 0 if magnitudes of that part of the rows are within a factor of 16, and its
# median is not that many times smaller than its scale: its range then says little of its spread. Of
# normal rows around 0 at most .865 are, of those 2.5 deviations away at least .932. A search for an
# origin, and a second look at it, cost that part of the first look at all columns. Medians of all
# columns first would be worse: where a value is common, their error looks like a spread
_AWAY, _ON_BOTH_SIDES, _SECOND = 0.93, 3.0, 0.25
# Nothing is learned without origin and unit of the targets: they count once for every so many
# columns. The origin counts twice: slopes make up for a wrong unit, and nothing for its error
_COLUMNS_A_TARGET, _CENTER = 16, 2
# A look at all columns of CSR rows costs as much as one at so many: a row with more entries counts
# less for each
_ENTRIES = 4
# Where all columns cannot be paid for, one count tells whether those of dense rows are alike; if
# not, two cells are looked for that likely hold a column, for that part of the squared budget. Then
# ranks of that count, its part of what is searched otherwise at most, ranks of a column at least
_UNLIKE_SHARE, _UNLIKE_RANKS, _UNLIKE_PART, _FEWEST_UNLIKE = 0.3, 8.0, 0.25, 5.0
# part of the squared budget of that count at most, where a map of rows makes up for units
_UNLIKE_MOST = 0.03
# where columns keep their units: ranks of the check, and the part of the rows beyond half of them
_TOLD_RANKS, _TOLD = 20.0, 0.2
# with more columns CSR rows have no units: there are 168 counts for each
_MOST_STORED = 1 << 12
# Releases, each of which reads the rows, for the median of the targets, of a column, and for a
# spread; and thresholds of a number in each. They cut the posterior into equal parts: a third of
# the releases that one threshold takes, for counts with a third more noise.
# The origin of a column that was seen to be away from 0 has 20 bits, for values that differ little,
# such as seconds since 1970 within hours. Eleven releases are too few for 22 bits; without a look
# before, 20 are too many.
_STEPS, _ASKED = (17, 11, 3), 5
_SPREAD_KEY, _COLUMN_KEY, _SEEN_KEY = FloatKey(3, signed=False), FloatKey(16), FloatKey(20)
# columns share a unit if that part of the spans that were seen, at least so many, is within that
# factor of their median; of many columns half of them, if almost none is larger
_SHARED, _FEWEST_SPANS, _ALIKE = 0.85, 3, 4.0
_MANY_SPANS, _SHARED_OF_MANY, _LARGER, _SMALLER = 32, 0.5, 0.05, 100.0
# how much further than what is seen tails may reach: that many times where the deviation of a count
# is at most that part of the rows
_FURTHER, _CLEAR = 4.0, 0.005
# a count of so many deviations of its noise is not noise; a column with that part of the rows in
# one cell has its unit from many rows, around a median if that is not nearly all of them
_SURE, _OFTEN, _COMMON = 8.0, 0.25, 0.7
# part of the squared Gaussian-DP budget that all searches together get; and at most, where they are
# for the unit of targets and could not be trusted with less, with units of columns and without
_MU_SHARE, _MOST_WITH_TARGETS = 0.2, (0.3, 0.85)
# ends of what is believed further apart than this factor mean that noise hides a scale
_VAGUE = 32.0
# so far beyond all cells that are seen only half of the null rows takes a quantile
_BEYOND = 16.0
# a column that does not vary is named if it is farther from 0 than this
_FAR_FROM_0 = 1e3
# labels are doubted if less than that part of the rows is in any column, and nearly the same part
# in half of the columns, but for those with next to all values in one cell, such as flags
_THERE, _ALL_ALIKE, _ONE_CELL = 0.7, 0.03, 0.85

# A norm is loose, or columns are on different scales, if most rows have a feature that is not 0 but
# smaller than that part of what d columns that are all alike would leave for the smallest, about
# one over d of a usual feature. Few rows in a box, or cut to a norm, have one: the share tells both
# cases apart on 22 tables
_TOO_SMALL = 0.25
# ranks that the count of these is for, at least and at most, and its part of the squared budget
_NORM_RANKS, _NORM_MU_SHARE = (5.0, 12.0), 0.01

# the threshold costs at most this part of epsilon
_THRESHOLD_SHARE = 0.1
# chance that a draw of it is too far off
_WORST = 3e-4
# the grid of thresholds, in public units
_GRADIENTS, _GRADIENT_RATIO = (1e-9, 1e9), 1.1


@dataclass(frozen=True)
class FoundScales:
    """Scales by now public.

    Parameters
    ----------
    radius, center, scale : float, float, float
        Unit of length, and origin and unit of the targets.
    columns : StandardColumns or None, default=None
        Origins and units of the columns that the rows have by now.
    vague, absent : bool, default=False
        Whether the released counts leave a scale open, and whether many rows seem to be null.
    mu : float, default=0.0
        Gaussian-DP parameter of all that was released for them.
    unlike : bool, default=False
        Whether a released count shows that columns are in unlike units, which they keep.
    """

    radius: float
    center: float
    scale: float
    columns: Any = None
    vague: bool = False
    absent: bool = False
    mu: float = 0.0
    unlike: bool = False


@dataclass(frozen=True)
class SearchedScales:
    """How scales are searched with Gaussian noise; public numbers only.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    with_radius, with_scale, with_center : bool
        Which are searched: unit of length, unit of the targets, origins of targets and columns.
    n_columns : int
        Number of columns whose units are searched, 0 for none.
    medians_first : bool
        Whether origins of all columns are searched first. Otherwise columns are looked at around 0,
        and origins are searched of those alone that are away from there.
    unit : float
        Gaussian-DP parameter of a search for one number; 0 if nothing is searched.
    is_sparse : bool
        Whether columns keep 0 as their origin, so that zeros of CSR rows stay zeros, and a row with
        more entries counts less.
    with_tails : bool
        Whether what is released tells how far columns reach, too.
    is_rough : bool
        Whether columns have the units that are likely where noise hides the surer ones.
    """

    n_rows: int
    with_radius: bool = False
    with_scale: bool = False
    with_center: bool = False
    n_columns: int = 0
    medians_first: bool = False
    unit: float = 0.0
    is_sparse: bool = False
    with_tails: bool = False
    is_rough: bool = False

    #: nothing is purely private, and all is released
    prices: ClassVar[tuple[float, ...]] = ()
    at_most: ClassVar[bool] = False

    @property
    def mu(self):
        """Gaussian-DP parameter of all searches: a hair more than the ledger will hold."""
        # k counts move by the root of k
        second = 2 * _SECOND if self._looks_first else 1.0
        targets = _CENTER * self._often * self.with_scale
        medians = self.with_center * targets + self._has_origins * second * self.n_columns
        numbers = medians + self._often * len(self._spreads) + self._n_counted
        return self.unit * math.sqrt(numbers) * (1 + 1e-9)

    @property
    def n_releases(self):
        """Number of releases, at most."""
        if not (self.unit and len(self._places)):
            return 0
        for_center, for_column, for_spread = _STEPS
        medians = for_center * (self.with_scale and self.with_center)
        medians += (for_column + self._looks_first) * self._has_origins
        return medians + 1 + for_spread * bool(self._spreads)

    @property
    def _has_origins(self):
        """Whether origins of columns are searched."""
        return self.n_columns > 0 and self.with_center and not self.is_sparse

    @property
    def _looks_first(self):
        """Whether columns are looked at around 0 before origins are searched."""
        return self._has_origins and not self.medians_first

    @property
    def _often(self):
        """How often a search beside that of columns is paid for."""
        return _often(self.n_columns) if self.with_scale and not self.is_sparse else 1

    @property
    def _places(self):
        """Which numbers of a row are counted in cells at once, that of a target perhaps often."""
        first = np.zeros(self.with_scale * self._often, dtype=np.int64)
        return np.append(first, self.with_scale + np.arange(self.n_columns or self.with_radius))

    @property
    def _n_counted(self):
        """How many numbers the cells are paid for as."""
        return len(self._places) - self.is_sparse * max(self.n_columns - _ENTRIES, 0)

    @property
    def _spreads(self):
        """What spreads are searched for."""
        return ("radius",) * self.with_radius + ("scale",) * self.with_scale

    def run(self, curator, radius, center, scale):
        """Search the scales.

        Parameters
        ----------
        curator : Curator
            Holds what `regression_rows` admitted.
        radius, center, scale : float, float, float
            What they are where no search is made, or where more than three quarters of the rows
            are zero. If so many targets are equal, their unit is their magnitude.

        Returns
        -------
        found : FoundScales
        """
        if not self.unit:
            return FoundScales(radius, center, scale)
        d, columns, absent, doubted = self.n_columns, None, False, False
        origin, least = np.zeros(d), np.full(d, SMALLEST)
        for_center, for_column, _ = _STEPS
        if self._has_origins and self.medians_first:
            paid = self._paid_search(curator, (Columns(),), d, for_column)
            origin, least = self._origins(curator, np.full(d, True), paid)
        if self.with_scale and self.with_center:
            value, often = (TargetValue(),), _CENTER * self._often
            paid = self._paid_search(curator, value, 1, for_center, often)
            belief = self._belief(curator, value, np.array([True]), FloatKey(), paid)
            # the common decimal of targets that are all equal
            center = float(np.clip(shortest(belief)[0], -LARGEST, LARGEST))
        targets = (TargetDistance(center),) * self.with_scale
        first = (RowNorm(),) * self.with_radius
        if d:
            first = (Columns(None if self._looks_first or self.is_sparse else origin),)
        entries = _ENTRIES if self.is_sparse and d else None
        query = MagnitudeCells((*targets, *first), self._places, entries)
        paid, noise = self._prepaid(curator, query, self._n_counted)
        counts, noise = query.by_number(curator.release(query, paid), noise)
        if self._looks_first and not self.with_scale:
            doubted = _many_are_absent(counts[-d:] / self.n_rows, noise[-d:] / self.n_rows)
        around = d * (self._has_origins and self.medians_first)
        found, lowest, highest = scales_in_cells(counts, noise, _TAIL * self.n_rows, around)
        if self.is_rough:
            likely = _likely(counts[-d:], noise[-d:], self.n_rows)
            found[-d:] = np.where(np.isnan(likely), found[-d:], likely)
        if d:
            seen = found[-d:], highest[-d:], counts[-d:], noise[-d:]
            columns = self._columns_of(curator, origin, least, *seen)
            curator.map_rows(columns.rows)
            # rows are of about the length sqrt(d) now, and CSR rows with few entries shorter
            shortest_row = 0.0 if self.is_sparse else 0.25 * math.sqrt(d)
            own = math.sqrt(d), shortest_row, 4.0 * math.sqrt(d)
            found, lowest, highest = (
                np.append(old[:-d], length)
                for old, length in zip((found, lowest, highest), own, strict=True)
            )
        if self._spreads:
            seen = found, lowest, highest, counts, noise
            found, lowest, absent = self._spreads_of(curator, targets, *seen)
        vague = bool(np.isnan(lowest).any())
        if self.with_radius:
            radius = float(found[-1]) if found[-1] > SMALLEST else radius
        if self.with_scale:
            equal = abs(center) if abs(center) > SMALLEST else scale
            # targets that are nearly equal, and not quite
            vague |= bool(SMALLEST < found[0] <= _least_spread(center))
            scale = float(found[0]) if found[0] > _least_spread(center) else equal
        return FoundScales(radius, center, scale, columns, vague, absent or doubted, self.mu)

    def _columns_of(self, curator, origin, least, spans, highest, counts, noise):
        """Return origins and units of columns, by what was seen of them in cells.

        Parameters
        ----------
        curator, origin, least : Curator, ndarray of shape (d,), ndarray of shape (d,)
            Origins that were searched first, and what a spread beside them is above.
        spans, highest, counts, noise : ndarray, of shape (d,) but for (d, N_CELLS)
            Scales in cells, and the longest they may be; the counts, and their deviations.
        """
        d, around, unseen = self.n_columns, (counts, noise), np.ones(self.n_columns)
        if not self.medians_first:
            rare, unseen = np.isnan(spans), np.maximum(spans, SMALLEST)
            unseen[rare] = _in_common(counts[rare], noise[rare], self.n_rows)
        if self._looks_first:
            origin, least, spans, around = self._second_look(curator, spans, *around)
        seen = spans > least
        # around medians a common value is about 0, and not 0: then its cell tells nothing
        most = counts.max(axis=1)
        own = origin == 0
        if self.medians_first:
            own = (most < _COMMON * self.n_rows) & (highest < _BEYOND * spans)
        often = (most > _OFTEN * self.n_rows) & own
        few = d < _MANY_SPANS and not self.medians_first
        small = (most > _SURE * noise) & (often | few)
        units = _units(spans, seen, unseen, small)
        # beside an origin that is not exact a unit is not smaller than its error
        units = np.where(seen, units, np.fmax(units, spans))
        columns = StandardColumns(origin, units, seen, self.is_sparse)
        if not self.with_tails:
            return columns
        return replace(columns, tail=_tails(*around, self.n_rows, spans) / units)

    def _spreads_of(self, curator, targets, found, lowest, highest, counts, noise):
        """Search spreads, from what was seen in cells.

        Parameters
        ----------
        curator, targets : Curator, tuple of TargetDistance
            Whose spread is searched beside that of the rows.
        found, lowest, highest, counts, noise : ndarray
            Scales in cells of these, and then of columns or of the rows, and the shortest and
            longest they may be; the counts, and their deviations.

        Returns
        -------
        found, lowest : ndarray of shape (k,), ndarray of shape (k,)
            Spreads, and the shortest that cells say.
        absent : bool
            Whether many rows seem to be null.
        """
        # in the order of the cells: targets first
        magnitudes, d = (*targets, *(RowNorm(),) * self.with_radius), self.n_columns
        k = len(magnitudes)
        paid = self._paid_search(curator, magnitudes, k, _STEPS[2], self._often)
        seen = counts[:k]
        if d and self.with_radius:
            # CSR rows have from one to d entries
            usual = _cells_between(1.0 if self.is_sparse else math.sqrt(d), math.sqrt(d))
            seen = np.vstack([counts[:-d], self.n_rows * usual])
        prior = _prior_of_spreads(seen, noise[:k], self.n_rows)
        belief = self._belief(curator, magnitudes, np.full(k, True), _SPREAD_KEY, paid, prior)
        # between zero and other values all numbers are equally likely, and a null row counts as
        # half a row beyond any: cells know better
        searched = np.minimum(belief.middle, LARGEST)
        found, lowest, highest = found[:k], lowest[:k], highest[:k]
        beyond = searched > _BEYOND * highest
        low, high = belief.interval()
        above = (searched > highest) & (high > _VAGUE * low) & (not self.with_scale)
        known = ((searched < lowest) | beyond | above) & ~np.isnan(found)
        return np.where(known, found, searched), lowest, bool(beyond.any())

    def _prepaid(self, curator, query, numbers, times=1):
        """Pay for releases of a query at the price of so many numbers; with their noise."""
        law = GaussianMechanism(self.unit * math.sqrt(numbers / times))
        return curator.prepay(query, law, times), curator.ledger.releases[-1].noise.scale

    def _paid_search(self, curator, magnitudes, k, steps, part=1.0):
        """Pay for a search for k numbers, at a part of its usual price, or more often."""
        query = MagnitudeSides(magnitudes, np.zeros((_ASKED, k)))
        return *self._prepaid(curator, query, part * k, steps), steps

    def _second_look(self, curator, spans, counts, noise):
        """Return origins of columns, what a spread is above, and spreads, by what a first look saw.

        Columns around 0 stay as they were seen. Both releases are paid for whatever was seen. With
        them come counts around the origins, and their noise.
        """
        d = self.n_columns
        medians = self._paid_search(curator, (Columns(),), d, _STEPS[1], _SECOND)
        query = MagnitudeCells((Columns(np.zeros(d)),), np.arange(d))
        paid, scale = self._prepaid(curator, query, _SECOND * d)
        # in two cells next to each other, but for the outer ones, which have no far end
        together = counts[:, 2:-1] + counts[:, 1:-2]
        away = together.max(axis=1) > _AWAY * self.n_rows
        if not away.any():
            return np.zeros(d), np.full(d, SMALLEST), spans, (counts, noise)
        # the median of a column that is on both sides of 0 is small beside its scale
        near = spans / _ON_BOTH_SIDES
        origin, least = self._origins(curator, away, medians, _prior(together), near)
        away &= np.abs(origin) > near
        origin[~away], least[~away] = 0.0, SMALLEST
        if not away.any():
            return origin, least, spans, (counts, noise)
        query = MagnitudeCells((Columns(origin),), np.resize(np.flatnonzero(away), d))
        spans, counts, noise = spans.copy(), counts.copy(), noise.copy()
        counts[away], noise[away] = own = query.by_number(curator.release(query, paid), scale)
        spans[away], *_ = scales_in_cells(*own, _TAIL * self.n_rows, len(own[0]))
        return origin, least, spans, (counts, noise)

    def _origins(self, curator, wanted, paid, prior=None, near=None):
        """Return medians of the columns that are wanted, 0 of others, and how far off they are."""
        key = _COLUMN_KEY if prior is None else _SEEN_KEY
        belief = self._belief(curator, (Columns(),), wanted, key, paid, prior, near)
        origin, width = np.zeros((2, len(wanted)))
        origin[wanted] = np.clip(shortest(belief), -LARGEST, LARGEST)
        if prior is not None:
            low, high = belief.interval()
            width[wanted] = high - low
        return origin, np.maximum(_least_spread(origin, key.mantissa_bits), width)

    def _belief(self, curator, magnitudes, wanted, key, paid, prior=None, near=None):
        """Return what is believed of quantiles of numbers, from noisy counts of sides."""
        paid, scale, steps = paid

        def sides(thresholds, places):
            return curator.release(MagnitudeSides(magnitudes, thresholds, places), paid)

        return bisect_quantile(
            sides,
            key,
            0.5 if key.signed else 1 - _TAIL,
            n_rows=self.n_rows,
            n_features=len(wanted),
            steps=steps,
            scale=scale,
            asked=_ASKED,
            wanted=wanted,
            prior=prior,
            near=near,
        )


def _often(n_columns):
    """Return how often what is searched of targets is paid for beside that many columns."""
    return max(1, n_columns // _COLUMNS_A_TARGET)


def _least_spread(center, bits=MANTISSA_BITS):
    """Return what a spread is above; less could not be told from the rounding of the center."""
    with np.errstate(under="ignore"):
        return np.maximum(np.ldexp(np.abs(center), 2 - bits), SMALLEST)


# prior of a median beyond the cells: with 1/200, noise alone made one in one of a thousand fits
_BEYOND_CELLS = 1e-12


def _prior(together):
    """Return where medians are, nearly surely, by counts in two cells next to each other."""
    low = 0.5 * 4.0 ** (together.argmax(axis=1) + 1 + LOWEST_CELL)
    ends = _SEEN_KEY.position(np.array([-16 * low, -low, low, 16 * low]))
    starts = np.column_stack([np.zeros(len(low)), *ends])
    return starts, np.tile([_BEYOND_CELLS, 0.495, 0.01, 0.495, _BEYOND_CELLS], (len(low), 1))


# where cells begin and the last one ends; the prior of a spread in each, of none, and of one
# outside; and the part of the prior that remains whatever a look has seen
_ENDS = 0.5 * 4.0 ** (np.arange(N_CELLS + 1) + LOWEST_CELL)
_USUAL = 1 / (1 + ((np.arange(N_CELLS) + LOWEST_CELL) / 8.0) ** 2)
_ZERO, _OUTSIDE, _ANYWHERE = 0.05, 0.001, 0.02


def _cells_between(shortest, longest):
    """Return 1 for the cells with lengths from the one to the other, and 0 for others."""
    return (_ENDS[1:] > shortest) & (_ENDS[:-1] <= longest)


def _prior_of_spreads(counts, noise, n_rows):
    """Return where spreads are before they are searched, by noisy counts in cells.

    Either all rows are in three cells next to each other, by the likelihood of what these count
    together, or the spread is anywhere, as it was before the look.

    Parameters
    ----------
    counts, noise, n_rows : ndarray of shape (k, N_CELLS), ndarray of shape (k,), int
        Counts of k numbers, and their standard deviations; number of rows.

    Returns
    -------
    starts, weights : ndarray of shape (k, N_CELLS + 3)
        The prior of `bisect_quantile`.
    """
    together = counts[:, :-2] + counts[:, 1:-1] + counts[:, 2:]
    odds = n_rows * (together - n_rows / 2) / (3 * noise[:, None] ** 2)
    odds = np.append(odds - math.log(odds.shape[1]), np.zeros((len(odds), 1)), axis=1)
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    anywhere = np.maximum(odds[:, -1:], _ANYWHERE)
    cells = anywhere * _USUAL / _USUAL.sum()
    for first in range(3):
        cells[:, first : first + odds.shape[1] - 1] += odds[:, :-1] / 3
    starts = np.concatenate([[0.0, 1.0], _SPREAD_KEY.position(_ENDS)])
    outside = np.broadcast_to([_ZERO, _OUTSIDE, _OUTSIDE], (len(cells), 3)) * anywhere
    weights = np.column_stack([outside[:, :2], cells, outside[:, 2]])
    return np.tile(starts, (len(cells), 1)), weights


def _likely(counts, noise, n_rows):
    """Return the middle of the two cells that likely hold a column's rows, NaN if none do.

    Either most rows are in two cells next to each other, or in none: then entries are mostly 0.
    Noise hides what is seen in one cell alone.
    """
    rows = _AWAY * n_rows * math.sqrt(min(_ENTRIES / len(counts), 1.0))
    together, usual = counts[:, 1:] + counts[:, :-1], np.maximum(_USUAL[1:], _USUAL[:-1])
    odds = rows * (together - rows / 2) / (2 * noise[:, None] ** 2) + np.log(usual / usual.sum())
    return np.where(odds.max(axis=1) > 0, 2 * _ENDS[1:-1][odds.argmax(axis=1)], math.nan)


def _in_common(counts, noise, n_rows):
    """Return a unit for columns of which nothing was seen in one, from what all have together."""
    if not len(noise):
        return 1.0
    tail, together = _TAIL * n_rows * len(noise), np.sqrt(np.sum(noise**2, keepdims=True))
    ((found,), *_) = scales_in_cells(counts.sum(axis=0, keepdims=True), together, tail)
    return max(found, SMALLEST) if found == found else 1.0


def _many_are_absent(counts, noise):
    """Return whether a large part of the rows is in no cell of any column, as null rows are.

    Zeros are in no cell either, but columns that vary have different parts of them.

    Parameters
    ----------
    counts, noise : ndarray of shape (d, N_CELLS), ndarray of shape (d,)
        Counts in cells of columns around 0, in parts of the rows, and their standard deviations.
    """
    kept = np.where(counts > _SURE / 2 * noise[:, None], counts, 0.0)
    there, error = kept.sum(axis=1), noise * np.sqrt((kept > 0).sum(axis=1))
    alike = there + 3 * (error + error.max()) + _ALL_ALIKE >= there.max()
    alike &= kept.max(axis=1) <= _ONE_CELL * there
    n_alike = np.count_nonzero(alike)
    if n_alike < max(2, len(noise) / 2):
        return False
    # with two deviations of it, and tails that are not seen
    return bool(np.median(there[alike]) + (3 / math.sqrt(n_alike) + 2) * error.max() < _THERE)


def _units(spans, seen, unseen, small):
    """Return units of columns from released spans, of which some were seen, and one of the others.

    If nearly all of these are alike, columns share a unit, as pixels of an image do, or answers on
    a scale of seven, and noise has as much to do with what differs as the columns. So units move
    halfway to the common one, which is that of columns of which nothing was seen. It is also that
    of columns with much smaller spans, but for those that may be `small`: where columns are few and
    noise surely has not made the span. If it had, the column would be longer than all others.

    Of many columns half of them are enough, if next to none is larger: the others hardly vary, as
    pixels at the edge of an image, and have the common unit too, but for those that are so much
    smaller that they are measured in another one, or that are around 0 and often of one length.
    """
    own, n_seen = np.where(seen, spans, unseen), np.count_nonzero(seen)
    if n_seen < _FEWEST_SPANS:
        return own
    logs = np.log(spans[seen])
    common, least = math.exp(np.median(logs)), 0.0
    near = _alike(spans, seen, common)
    if np.count_nonzero(near) < _SHARED * n_seen:
        largest = math.exp(np.quantile(logs, 0.75))
        near = _alike(spans, seen, largest)
        n_larger = np.count_nonzero(seen & (spans > largest * _ALIKE))
        half = np.count_nonzero(near) >= _SHARED_OF_MANY * n_seen and n_larger <= _LARGER * n_seen
        if n_seen < _MANY_SPANS or not half:
            return own
        common = math.exp(np.median(np.log(spans[near])))
        least = common / _SMALLER
    between = np.sqrt(common) * np.sqrt(np.where(near, spans, common))
    kept = seen & ~near & ((spans > common) | (spans < least) | small)
    return np.where(kept, spans, between)


def _tails(counts, noise, n_rows, spans):
    """Return how far from their origins columns have entries, by noisy counts in cells, and some.

    A tail fills one cell after another, and gets thinner. So what comes behind two cells that hold
    next to nothing is none. Noise hides where it ends: it may reach a few times further than what
    is seen, and the further the more noise there is.
    """
    sure = counts > (math.sqrt(2 * math.log(counts.size)) + 1.1) * noise[:, None]
    own = np.searchsorted(_ENDS, spans, "right") - 1
    sure |= np.arange(N_CELLS) <= own[:, None]
    empty = ~sure[:, :-1] & ~sure[:, 1:]
    end = np.where(empty.any(axis=1), empty.argmax(axis=1), N_CELLS)
    behind = sure & (np.arange(N_CELLS) > end[:, None])
    other = np.where(behind.any(axis=1), behind.argmax(axis=1), N_CELLS)
    further = _FURTHER * np.maximum(1.0, noise / (_CLEAR * n_rows))
    return np.minimum(further * _ENDS[end], _ENDS[other])


def _alike(spans, seen, common):
    """Return which spans were seen and are like a common one."""
    return seen & (spans >= common / _ALIKE) & (spans <= common * _ALIKE)


@dataclass(frozen=True)
class NormCheck:
    """A check whether columns are alike, and rows about as long as a public norm if there is one.

    Parameters
    ----------
    least, of_norm : float, bool
        Features that are smaller, but not 0, speak against it; whether in norms of their row.
    mu : float
        Gaussian-DP parameter: a hair more than the ledger will hold.
    beyond : float, default=0.0
        How many more than half of the rows are to have such a feature.
    """

    least: float
    of_norm: bool
    mu: float
    beyond: float = 0.0

    def run(self, curator):
        """Return whether they are, by a released count."""
        query = MagnitudeSides((SmallEntry(self.least, self.of_norm),), np.array([0.5]))
        (most,) = curator.release(query, GaussianMechanism(self.mu / (1 + 1e-9)))
        return float(most) < self.beyond


def _check_of_units(n_columns, mu):
    """Return a check of columns that have no norm beside them, with its Gaussian-DP parameter."""
    return NormCheck(_TOO_SMALL / n_columns**1.5, True, mu)


def _ranks_told(n_rows, adjacency):
    """Return the ranks that a count with a Gaussian-DP parameter of 1 tells."""
    # under zero-out a row moves half as much
    return n_rows * (2.0 if adjacency == "zero-out" else 1.0)


@dataclass(frozen=True)
class CheckedScales:
    """Scales that follow a check whether columns are alike.

    Parameters
    ----------
    check : NormCheck
        The check.
    alike, unlike : SearchedScales
        What is searched if they are, nothing beside a norm; and if they are not. The same if the
        check is for a warning alone.
    is_made_up : bool
        Whether rows are made up, for a plan with the most releases.
    """

    check: NormCheck
    alike: SearchedScales
    unlike: SearchedScales
    is_made_up: bool

    prices: ClassVar[tuple[float, ...]] = ()
    at_most: ClassVar[bool] = True
    medians_first: ClassVar[bool] = False

    @property
    def mu(self):
        """Gaussian-DP parameter of what is released if columns are alike."""
        return math.hypot(self.check.mu, self.alike.mu)

    @property
    def n_releases(self):
        """Number of releases, at most."""
        return 1 + self.unlike.n_releases

    def run(self, curator, radius, center, scale):
        """Check, and search; parameters and result are those of `SearchedScales.run`."""
        is_alike, paid = self.check.run(curator) and not self.is_made_up, self.check.mu
        plan = self.alike if is_alike else self.unlike
        found = plan.run(curator, radius, center, scale)
        mu = math.hypot(paid, found.mu) * (1 + 1e-9) if found.mu else paid
        unlike = not is_alike and not self.is_made_up and self.unlike is self.alike
        return replace(found, mu=mu, unlike=unlike)


def plan_norm_check(scales, norm, epsilon, delta, adjacency, is_made_up):
    """Plan whether scales are searched beside a public norm.

    Parameters
    ----------
    scales : SearchedScales or ScalesPlan
        How they are where it is not taken as it is.
    norm : float
        Public bound on the norm of a row.
    epsilon, delta, adjacency : float, float, {"replace-one", "zero-out"}
        What is promised for the whole fit.
    is_made_up : bool
        Whether rows are made up for a plan.

    Returns
    -------
    scales : CheckedScales or SearchedScales
        With no release, if units of columns cannot be found, or no check be trusted.

    Notes
    -----
    A norm says little of all columns but the longest, and a loose one of none. A search where it is
    short and columns are alike costs up to 2 points of accuracy where rows are few; the check next
    to nothing.
    """
    n_rows, columns = scales.n_rows, scales.mu and scales.n_columns
    ranks = _ranks_told(n_rows, adjacency)
    fewest, most = _NORM_RANKS
    found = math.sqrt(_NORM_MU_SHARE) * ranks * gdp_mu(epsilon, delta) if columns else 0.0
    nothing = SearchedScales(n_rows)
    if found < fewest:
        return nothing
    least = _TOO_SMALL * float(norm) / columns**1.5
    check = NormCheck(least, False, min(found, most) / ranks)
    return CheckedScales(check, nothing, scales, is_made_up)


def plan_unit_check(scales, n_columns, epsilon, delta, adjacency, is_made_up, stay=False):
    """Plan whether units of columns are searched where not all of them can be paid for.

    Parameters
    ----------
    scales : SearchedScales or ScalesPlan
        How scales of dense rows without a norm are searched otherwise.
    n_columns : int
        Number of columns whose units are asked for.
    epsilon, delta, adjacency : float, float, {"replace-one", "zero-out"}
        What is promised for the whole fit.
    is_made_up : bool
        Whether rows are made up for a plan.
    stay : bool, default=False
        Whether columns keep their units, and the check is for a warning alone.

    Returns
    -------
    scales : CheckedScales, SearchedScales or ScalesPlan
        As they were without a check, if columns have units in `scales`, or none could be found.

    Notes
    -----
    One unit is worth nothing where columns are in unlike units, and units of columns that are alike
    cost accuracy. What a check takes, the search for one unit has less.
    """
    if not delta or not scales.mu or scales.n_columns:
        return scales
    ranks = _ranks_told(scales.n_rows, adjacency)
    flags = {"with_radius": True, "is_sparse": True, "is_rough": True}
    plan = SearchedScales(scales.n_rows, n_columns=n_columns, unit=1.0, **flags)
    found = math.sqrt(_UNLIKE_SHARE) * ranks * gdp_mu(epsilon, delta) / plan.mu
    mu = (_TOLD_RANKS if stay else _UNLIKE_RANKS) / ranks
    seen = found * math.sqrt(min(_ENTRIES / n_columns, 1.0))
    if not stay and seen < _FEWEST_UNLIKE:
        return scales
    if mu > _UNLIKE_PART * scales.mu or (stay and n_columns == 1):
        return scales
    alike = replace(scales, unit=scales.unit * math.sqrt(1 - (mu / scales.mu) ** 2))
    unlike = alike if stay else replace(plan, unit=found / ranks)
    check = _check_of_units(n_columns, mu)
    if stay:
        check = replace(check, beyond=_TOLD * scales.n_rows)
    return CheckedScales(check, alike, unlike, is_made_up)


def plan_alike_check(scales, n_columns, epsilon, delta, adjacency):
    """Plan whether a map of rows is to make up for units of columns that are not searched.

    Parameters
    ----------
    scales, n_columns : SearchedScales or ScalesPlan, int
        How scales are searched; number of columns.
    epsilon, delta, adjacency : float, float, {"replace-one", "zero-out"}
        What is promised for the whole fit.

    Returns
    -------
    check : NormCheck or None
        Whether columns are alike; None if they have units, or the check is not worth its price.
    """
    ranks = _ranks_told(scales.n_rows, adjacency)
    mu = _UNLIKE_RANKS / ranks
    worth = scales.mu and mu**2 <= _UNLIKE_MOST * gdp_mu(epsilon, delta) ** 2
    if n_columns == 1 or scales.n_columns or not worth:
        return None
    return _check_of_units(n_columns, mu)


def center_and_scale(columns, n_features):
    """Return origins and units of columns, zeros and ones if none were found."""
    if columns is None:
        return np.zeros(n_features), np.ones(n_features)
    return columns.center, columns.scale


@dataclass(frozen=True)
class Ranks:
    """How exactly purely private scales are drawn; public numbers only.

    Parameters
    ----------
    tail, away : float, float
        Part of the rows that lies beyond a scale, give or take that part of the rows.
    median_away : float
        Part of the rows that may lie between the median and what is drawn.
    ratio, cells : float, int
        Factor between neighbouring scales, and cells of the grid for the median.
    aim, worst, share : float, float, float
        Chance that a draw is further off: what is aimed at, and what is put up with where all draws
        would cost more than that share of epsilon.
    """

    tail: float
    away: float
    median_away: float
    ratio: float
    cells: int
    aim: float
    worst: float
    share: float


# for many rows, and for fewer
_RANKS = (
    Ranks(_TAIL, 3 / 16, 0.25, 1.2, 2**24, 1e-6, 3e-4, 0.2),
    Ranks(0.5, 0.4, 0.4, 1.5, 2**12, 0.02, 0.02, 0.3),
)
# the grid for the median spans a few times the magnitude of the targets
_SPAN = 1.5


def _points(smallest, largest, ratio):
    return 1 + math.ceil(math.log(largest / smallest) / math.log(ratio))


def _price_of_scales(spread, n_rows, away, points, failure):
    """Return the epsilon at which a draw is further off than wanted with that chance.

    A score above ``away * n_rows`` has probability at most ``points exp(-away n_rows / T)`` at
    the temperature T = spread / epsilon (McSherry and Talwar 2007).
    """
    return spread / (away * n_rows) * math.log(points / failure)


def _drawn(curator, magnitude, bounds, ratio, tail, price):
    """Release a magnitude, on a geometric grid between bounds, that `tail` rows exceed."""
    query = MagnitudeThreshold(magnitude, bounds[0], ratio, _points(*bounds, ratio), tail)
    (index,) = curator.release(query, ExponentialMechanism(price))
    return float(query.grid()[int(index)])


@dataclass(frozen=True)
class ScalesPlan:
    """How the scales are drawn by ranks; public numbers only.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    ranks : Ranks
        How exactly.
    norm_price, size_price, median_price, distance_price : float
        Epsilon of the draws: of the radius; of the magnitude of the targets; of their median;
        of their distance from it. 0 for none.
    """

    n_rows: int
    ranks: Ranks = _RANKS[0]
    norm_price: float = 0.0
    size_price: float = 0.0
    median_price: float = 0.0
    distance_price: float = 0.0

    #: nothing has Gaussian noise, and a radius is drawn only where no norm is given
    mu: ClassVar[float] = 0.0
    at_most: ClassVar[bool] = False
    with_radius: ClassVar[bool] = False

    @property
    def prices(self):
        """Prices of all draws that are made."""
        prices = (self.norm_price, self.size_price, self.median_price, self.distance_price)
        return tuple(price for price in prices if price)

    @property
    def n_releases(self):
        """Number of releases."""
        return len(self.prices)

    def run(self, curator, radius, center, scale):
        """Draw the scales; parameters and result are those of `SearchedScales.run`."""
        if self.norm_price:
            radius = self._draw(curator, RowNorm(), SMALLEST, LARGEST, self.norm_price) or radius
        if self.size_price:
            magnitude = TargetDistance()
            scale = self._draw(curator, magnitude, SMALLEST, LARGEST, self.size_price) or scale
        if self.median_price:
            top, cells = _SPAN * scale, self.ranks.cells
            query = TargetMedian(-top, 2 * top / cells, cells)
            (position,) = curator.release(query, ExponentialMechanism(self.median_price))
            center = query.point(float(position))
            # targets that are all equal are as far from it as half a cell
            bounds = max(query.step / 2, SMALLEST), max(4 * top, 2 * SMALLEST)
            distance = TargetDistance(center)
            scale = self._draw(curator, distance, *bounds, self.distance_price) or scale
        return FoundScales(radius, center, scale)

    def _draw(self, curator, magnitude, smallest, largest, price):
        """Return what a part of the rows exceeds, or None if that is nothing."""
        tail = int(self.ranks.tail * self.n_rows)
        drawn = _drawn(curator, magnitude, (smallest, largest), self.ranks.ratio, tail, price)
        # the first point: most rows are zero, or most targets equal, and tell no scale
        return drawn if drawn > smallest else None


def plan_scales(
    epsilon,
    delta,
    *,
    n_rows,
    adjacency,
    with_radius,
    with_scale,
    with_center,
    n_columns=0,
    medians_first=False,
    is_sparse=False,
):
    """Plan how the scales are released.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the whole fit.
    n_rows : int
        Number of rows.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    with_radius, with_scale, with_center : bool
        Which are asked for: the unit of length; the unit of the targets; their center, for
        which the unit is needed.
    n_columns : int, default=0
        Number of columns whose scales are asked for, if they can be had.
    medians_first : bool, default=False
        Whether origins of all columns are worth more than a look at columns around 0, where they
        can be had: for products of columns, and for functions of single ones.
    is_sparse : bool, default=False
        Whether rows are CSR, whose columns have no origin but 0.

    Returns
    -------
    plan : SearchedScales or ScalesPlan
        With no release, if none could be trusted at a fifth of the squared Gaussian-DP budget, .3
        with units of columns and targets, .85 for targets alone, or at delta 0 at .3 of epsilon.

    Notes
    -----
    Searches cost what makes their ranks exact enough, in squares of the Gaussian-DP parameter: that
    falls with the square of the number of rows. The price of a draw by ranks is what makes it fail
    with a small probability, and falls as one over the number of rows.
    """
    if not delta:
        return _plan_draws(epsilon, n_rows, adjacency, with_radius, with_scale, with_center)
    ranks = _ranks_told(n_rows, adjacency)
    tried = [(0, False, (_FEWEST_RANKS["rows"],) * 2, _MU_SHARE)]
    if with_scale:
        tried = [(0, False, _TARGETS_ALONE, _MOST_WITH_TARGETS[1])]
    if with_radius and not (is_sparse and n_columns > _MOST_STORED):
        fewest, most = _FEWEST_RANKS["columns"], _MU_SHARE
        if with_scale:
            # a unit of targets is for nothing if it cannot be trusted
            often = 1 if is_sparse else _often(n_columns)
            fewest = max(fewest, _FEWEST_RANKS["targets"] / math.sqrt(often))
            most = _MOST_WITH_TARGETS[0]
        tried.insert(0, (n_columns, False, (fewest,) * 2, most))
    if medians_first:
        tried.insert(0, (n_columns, True, (_FEWEST_RANKS["medians"],) * 2, _MU_SHARE))
    for columns, first, (wanted, fewest), largest in tried:
        asked = with_radius, with_scale, with_center, columns, first
        plan = SearchedScales(n_rows, *asked, 1.0, is_sparse)
        if not plan.n_releases:
            continue
        usual, most = (
            ranks * math.sqrt(part) * gdp_mu(epsilon, delta) / plan.mu
            for part in (_MU_SHARE, largest)
        )
        if most >= fewest:
            found = min(max(usual, min(wanted, most)), _AIMED_RANKS)
            if columns and not first:
                found = max(found, min(math.sqrt(_RARE_SHARE) * usual, _RARE_RANKS))
            return replace(plan, unit=found / ranks)
    return SearchedScales(n_rows)


def _plan_draws(epsilon, n_rows, adjacency, with_radius, with_scale, with_center):
    """Plan draws by ranks, as exact as a part of epsilon allows."""
    center = with_scale and with_center
    half = 1.0 if adjacency == "zero-out" else 2.0
    for ranks in _RANKS:
        wide, narrow = (
            _points(SMALLEST, LARGEST, ranks.ratio),
            _points(1.0, 8.0 * ranks.cells, ranks.ratio),
        )
        draws = {
            "norm_price": (with_radius, 2.0, ranks.away, wide),
            "size_price": (with_scale, 2.0, ranks.away, wide),
            "median_price": (center, half, ranks.median_away, ranks.cells),
            "distance_price": (center, 2.0, ranks.away, narrow),
        }
        worst, aimed = (
            {
                name: _price_of_scales(spread, n_rows, away, points, failure)
                for name, (wanted, spread, away, points) in draws.items()
                if wanted
            }
            for failure in (ranks.worst, ranks.aim)
        )
        most = ranks.share * epsilon
        if sum(worst.values()) <= most:
            cut = min(1.0, most / sum(aimed.values())) if aimed else 1.0
            prices = {name: price * cut for name, price in aimed.items()}
            return ScalesPlan(n_rows, ranks, **prices)
    return ScalesPlan(n_rows)


def say_of_scales(doubts, wanted, n_rows, epsilon, *, missing, vague, most=False):
    """Take note, by public and released numbers alone, if scales that were wanted are guesses.

    Parameters
    ----------
    doubts : Doubts
        Takes the note.
    wanted : list of str
        Parameters that could have given them.
    n_rows, epsilon : int, float
        Public facts.
    missing, vague, most : bool
        Whether nothing was searched, whether the released counts leave a scale open, and whether
        the search took most of the budget.
    """
    if not wanted or not (missing or vague or most):
        return
    found = "took most of the budget" if most else "are mostly noise"
    if missing:
        found = "were not searched, and the data were taken to be standardised"
    number = "a public number" if len(wanted) == 1 else "public numbers"
    doubts.noise(
        f"the scales of {n_rows} rows at epsilon={epsilon:.4g} {found}. Give {number} "
        f"for {' and '.join(wanted)}, or use more rows or a larger epsilon."
    )


def say_of_unit(doubts, name, given, taken):
    """Take note if a unit that was given is not the one that was taken, a sequence of numbers."""
    if given is not None and not np.allclose(np.divide(taken, given), 1.0):
        doubts.noise(
            f"{name}={given!r} is far from what was found, and "
            f"{', '.join(f'{one:.3g}' for one in taken[:3])} was taken. Give a number near that, "
            "in the unit of the data, or None."
        )


# scales from here on may be those of larger numbers: the last cell of a search begins there
_END = LARGEST / 3


def say_of_far(doubts, found, scale, columns, absent=False):
    """Take note of scales at the end of their range, by released numbers alone.

    Parameters
    ----------
    doubts : Doubts
        Takes the note.
    found : float
        Unit of length of the rows; 1 if it was given.
    scale : float or None
        That of the targets; 1 if it was given. None for labels.
    columns : StandardColumns or None
        Origins and units of columns; None if they stayed as they are.
    absent : bool or None, default=False
        Whether many rows seem to be null. None: they are counted, and told of there.
    """
    what = ["y"] if scale is not None and scale >= _END else []
    longest = _END if columns is None else float(np.linalg.norm(columns.reach))
    far = np.zeros(0, dtype=int)
    if columns is not None:
        far = np.flatnonzero(columns.seen & (columns.scale >= _END))
        if len(far):
            what.insert(0, f"column{'s' * (len(far) > 1)} {doubts.named(far)} of X")
    elif found >= _END:
        what.insert(0, "X")
    if what:
        doubts.noise(
            f"the scale of {' and of '.join(what)} is at the end of the search range, "
            f"{LARGEST:.0e}: larger numbers are not distinguished, and may hide other columns. "
            "Divide by a public number, or drop the column."
        )
    if scale is None and not len(far) and absent is not None and (absent or found > longest):
        # no row is so long, but a null row counts as half a row beyond any norm, and in no column
        doubts.noise(
            "many rows seem to have a label outside classes, and contribute nothing. Compare "
            "classes with the labels in y."
        )


def say_of_unlike(doubts, found, C, coef_bound):
    """Take note of columns in unlike units that stay as they are, by a released count.

    Parameters
    ----------
    doubts, found : Doubts, FoundScales
        Takes the note; what was found.
    C, coef_bound : float, float or None
        Which keep them.
    """
    if found.unlike:
        name, usual = ("C", "inf") if coef_bound is None else ("coef_bound", "None")
        given = C if coef_bound is None else coef_bound
        doubts.noise(
            f"columns of X have unlike units, and keep them with {name}={given:.4g}: the largest "
            "hide the others. Scale them first (BoundedScaler, DPStandardScaler), or leave "
            f"{name}={usual}."
        )


def say_of_flat(doubts, plan, columns):
    """Take note of columns far from 0 whose spread was not seen, by released numbers alone.

    Parameters
    ----------
    doubts, plan, columns : Doubts, SearchedScales or ScalesPlan, StandardColumns or None
        Takes the note; how the columns were searched; their origins and units.
    """
    # after medians the units of other columns serve
    if columns is None or plan.medians_first:
        return
    # what is nearer to 0 may be a flag that most rows have
    flat = np.flatnonzero(~columns.seen & (np.abs(columns.center) > _FAR_FROM_0))
    if len(flat):
        doubts.noise(
            f"next to all values of column{'s' * (len(flat) > 1)} {doubts.named(flat)} of X are "
            "equal, or differ too little beside their size to be told apart. If they vary, "
            "subtract a public number from them."
        )


# signal to noise below which coefficients are noise: with Gaussian noise, and without a delta; and
# below which a regression learns next to nothing, if it searches units with Gaussian noise
_HOPELESS, _HOPELESS_SEARCH = {True: 2.0, False: 1.0}, 10.0


def say_of_signal(doubts, n_rows, epsilon, delta, adjacency, n_coefs, unit="row", searched=()):
    """Take note of coefficients that are too many for the rows; public numbers alone decide.

    Parameters
    ----------
    doubts : Doubts
        Takes the note.
    n_rows, n_coefs : int
        Number of rows (or clients), and of coefficients.
    epsilon, delta, adjacency : float, float, str
        What is promised.
    unit : {"row", "group"}, default="row"
        What is protected.
    searched : sequence of str, default=()
        Parameters of a regression whose values are searched.

    Notes
    -----
    Signal to noise is that of `signal_to_noise`; without a delta ``n epsilon / (a p)``. Below the
    limit a linear classifier loses 46 points of accuracy in the median. A regression that searches
    units has less than a fifth of the R2 of least squares on four of five tables.
    """
    if delta:
        signal = signal_to_noise(n_rows, epsilon, delta, adjacency, n_coefs)
    else:
        signal = n_rows * epsilon / ((1 if adjacency == "zero-out" else 2) * n_coefs)
    least = _HOPELESS_SEARCH if searched and delta else _HOPELESS[delta > 0]
    if signal < least:
        public = f"public numbers for {' and '.join(searched)}, " if searched else ""
        doubts.noise(
            f"too few {unit}s for {n_coefs} coefficients: {n_rows} {unit}s at "
            f"epsilon={epsilon:.4g} have a signal to noise of {signal:.2g}, below "
            f"{least:g}. Use {public}at least {math.ceil(n_rows * least / signal)} {unit}s, fewer "
            "features, or a larger epsilon."
        )


@dataclass(frozen=True)
class ClipPlan:
    """How a clipping threshold is drawn; public numbers only.

    Parameters
    ----------
    price, tail : float, int
        Epsilon of the draw, 0 for none; and how many gradients should be longer.
    """

    price: float
    tail: int = 0

    @property
    def prices(self):
        """Prices of all draws that are made."""
        return (self.price,) if self.price else ()

    def run(self, curator, loss, default):
        """Return a norm, in public units, that few gradients at zero coefficients exceed.

        Parameters
        ----------
        curator, loss, default : Curator, object, float
            Holds what `unit_rows` made; the loss; and the norm where no draw is made.
        """
        if not self.price:
            return default
        magnitude = GradientNorm(loss)
        return _drawn(curator, magnitude, _GRADIENTS, _GRADIENT_RATIO, self.tail, self.price)


def plan_clip(epsilon, *, n_rows, tail):
    """Plan the draw of a clipping threshold.

    Parameters
    ----------
    epsilon : float
        Budget of the whole fit.
    n_rows : int
        Number of rows.
    tail : float
        Length of the noise in the sum of gradients, in units of the threshold.

    Returns
    -------
    plan : ClipPlan
        With no draw, if there are too few rows for one.

    Notes
    -----
    At a threshold that m gradients exceed, clipping takes up to m times what is beyond it off
    their sum: m is about the number of thresholds that the noise is long, and no less than the
    error of the draw.
    """
    price = _THRESHOLD_SHARE * epsilon
    points = _points(*_GRADIENTS, _GRADIENT_RATIO)
    error = 2.0 / price * math.log(points / _WORST) if price else math.inf
    tail = max(error + 1, tail)
    if not 2 * tail <= n_rows:
        return ClipPlan(0.0)
    return ClipPlan(price, math.ceil(tail))
