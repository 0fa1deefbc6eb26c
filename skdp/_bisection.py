# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Search for quantiles with Gaussian noise: noisy bisection of all floats, no range is asked for.

Each step releases counts of rows on the sides of thresholds, at one threshold for each feature
(`SideSum`) or at several for each number of a row (`MagnitudeSides`), and `bisect_quantile` asks
where the released counts have left most doubt. A count in cells of a geometric grid
(`MagnitudeCells`) tells the magnitude of many numbers at once, before or instead of a search. How
many steps there are and what they cost is public; all the rest is arithmetic on released numbers.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_ndtr

from skdp._counted import PARTS
from skdp._rows.base import sum_over
from skdp._rows.linear import counted_rows, counts_parts, raw_norms
from skdp.privacy.kernel.mechanisms import Sensitivity

# Numbers of a row, each a function of that row alone.


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


# Counts of the rows on either side of a threshold, for all features at once.


@dataclass(frozen=True)
class SideSum:
    """Sum over rows of 1/2 where a value lies above its threshold, and -1/2 elsewhere.

    Parameters
    ----------
    thresholds : ndarray of shape (n_features,)
        What values are compared with.
    center : ndarray of shape (n_features,), default=None
        If given, distances ``|x_j - center_j|`` are compared instead of values.

    Notes
    -----
    The rows are `FeatureRows`, in no ball or box: a comparison bounds what a value can do.
    A NaN contributes 0. With m values that are numbers, the sum is the number of values
    above the threshold minus m/2.
    """

    thresholds: Any
    center: Any = None

    @property
    def name(self):
        """What the statistic is, the same for all thresholds."""
        what = "features" if self.center is None else "distances of features to a center"
        return f"{what} above thresholds minus half of the rows"

    @property
    def size(self):
        """Number of coordinates."""
        return len(self.thresholds)

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: d/2 and sqrt(d)/2, or twice that.

        Proof. A row contributes a vector with entries 1/2, -1/2 or 0, of l1 norm at most d/2
        and l2 norm at most sqrt(d)/2. Zero-out removes one. Under replace-one the difference
        of two is at most twice as long, attained if every value changes sides. Sums of
        halves are exact in floating point. A group, whose weights add up to at most 1,
        contributes a mean of such vectors, and of zero.
        """
        l1, l2 = self.size / 2, math.sqrt(self.size) / 2
        theorem = "a row adds 1/2 or -1/2 to each of d features"
        if adjacency != "zero-out":
            l1, l2, theorem = 2 * l1, 2 * l2, "a row moves each of d features by <= 1"
        return Sensitivity(l1=l1, l2=l2, bound=n_rows / 2, theorem=theorem)

    def partial(self, chunk):
        """Return the sum over a chunk's rows."""
        # a count of whole and half numbers: exact in whatever order
        return chunk.sums(self._counted) - chunk.count / 2

    def _counted(self, values, columns):
        """Return 1 for a value above its threshold, 1/2 for a NaN and 0 otherwise."""
        if self.center is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                values = values - self.center[columns]
                np.abs(values, out=values)
        above, missing = values > self.thresholds[columns], np.isnan(values)
        # one comparison and not two: this is asked for dozens of thresholds
        return [above + 0.5 * missing if missing.any() else above]

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)


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


# Thresholds: all finite floats of few digits, in order.

_LARGEST = np.finfo(np.float64).max
# bits of a float64 behind the sign
_EXPONENT, _MANTISSA, _BIAS = 11, 52, 1023
#: bits of the mantissa that are told apart: an offset may be a billion times the spread
MANTISSA_BITS = 30
# half of the prior is on magnitudes between 2^-8 and 2^8
_TYPICAL = 8.0
# prior of exactly zero
_ZERO = 0.2


@dataclass(frozen=True)
class FloatKey:
    """All finite floats of few digits, in order: no bounds are needed.

    The bits of a float that is not negative, read as an integer, are in the order of the
    floats; so equal distances of positions are equal relative distances of floats, all the
    way from 1e-308 to 1e308.

    Parameters
    ----------
    mantissa_bits : int, default=MANTISSA_BITS
        Neighbouring thresholds differ by at most 2^-mantissa_bits relatively.
    signed : bool, default=True
        Whether negative floats are among them.
    """

    mantissa_bits: int = MANTISSA_BITS
    signed: bool = True

    @property
    def _half(self):
        return 2 ** (_EXPONENT + self.mantissa_bits)

    @property
    def end(self):
        """Last position."""
        return 2 * self._half if self.signed else self._half

    def prior(self):
        """Return where intervals start, and their weights: zero, or Cauchy in the exponent.

        No scale is out of reach, and usual ones are reached sooner.
        """
        doubling = 2.0 ** np.arange(2, 10)
        exponents = np.concatenate([[-_BIAS], -doubling[::-1], [0], doubling, [_BIAS + 2]])
        starts = (exponents + _BIAS) * 2.0**self.mantissa_bits
        weights = np.diff(np.arctan(exponents / _TYPICAL))
        weights /= weights.sum()
        weights *= 1 - _ZERO
        if self.signed:
            mirrored = np.concatenate([-starts[:0:-1], [-1.0], starts[:-1]]) + self._half
            return mirrored, np.concatenate([weights[::-1] / 2, [_ZERO], weights / 2])
        return np.insert(starts[:-1], 1, 1.0), np.insert(weights, 0, _ZERO)

    def position(self, values):
        """Return the positions of thresholds next to floats."""
        whole = np.abs(values).view(np.int64) >> _MANTISSA - self.mantissa_bits
        return np.where(values < 0, -whole, whole) + float(self.signed * self._half)

    def value(self, positions):
        """Return the thresholds at whole positions; beyond the largest float, that."""
        away = np.asarray(positions, dtype=np.int64) - self.signed * self._half
        shift = _MANTISSA - self.mantissa_bits
        # the last position is 2^63 and would overflow
        magnitude = np.minimum(np.abs(away), np.array(_LARGEST).view(np.int64) >> shift) << shift
        return np.copysign(magnitude.view(np.float64), away) + 0.0


# Noisy bisection: a quantile of every feature at once, from noisy counts of sides.
#
# It keeps weights of intervals, asks at their median, and multiplies the weights above a
# threshold by the likelihood ratio of the released count (probabilistic bisection, Horstein
# 1963). With little noise that is ordinary bisection; with much noise a wrong turn is taken
# back, and if nothing can be learned what remains is the prior.

# no count changes a log-weight by more, and none counts as further off in noise
_SURE, _FAR = 60.0, 8.0
# a feature of which one position has all but this part of the weights on each side is settled
_SETTLED = 0.005


def bisect_quantile(
    sides,
    key,
    tau,
    *,
    n_rows,
    n_features,
    steps,
    scale,
    asked=1,
    wanted=None,
    prior=None,
    near=None,
):
    """Search a quantile of every feature.

    Parameters
    ----------
    sides : callable
        Releases the `SideSum` of given thresholds; called `steps` times. With several for each
        feature they are an array of shape (asked, n_features), and so is what it returns.
    key : FloatKey
        Public thresholds.
    tau : float
        Which quantile, strictly between 0 and 1.
    n_rows, n_features, steps : int
        Public.
    scale : float
        Standard deviation of the noise of a released sum; public.
    asked : int, default=1
        Thresholds of a feature in one release: they cut what is believed into equal parts.
    wanted : ndarray of shape (n_features,), dtype bool, default=None
        Which features are searched. The places of others, and of those that are settled, are for
        them. Then `sides` has a second argument, an array of shape (n_features,): for which feature
        a place asks. The counts of a feature with several places are averaged, so that noise
        follows the number of features that are still open, while every release has the same size
        and price. What is believed is returned for these features alone. None keeps every feature
        at its own place.
    prior : tuple of two ndarrays of shape (n_features, n_intervals), default=None
        Positions of `key` where intervals start, and their weights; None for those of `key`.
    near : ndarray of shape (n_features,), default=None
        The search ends when all quantiles are believed to be no farther from 0: they are not asked
        for more digits.

    Returns
    -------
    belief : Belief
        Where the quantiles are.
    """
    # (1 - tau) n rows above, less half of the rows
    target = (0.5 - tau) * n_rows
    own = np.arange(n_features) if wanted is None else np.flatnonzero(wanted)
    prior = prior or [np.tile(part, (n_features, 1)) for part in key.prior()]
    starts, weights = (part[own] for part in prior)
    logs = np.log(weights / np.diff(starts, append=np.full((len(own), 1), key.end)))
    every, levels = np.arange(len(own))[:, None], np.arange(1, asked + 1) / (asked + 1)
    if wanted is not None:
        levels = np.append(levels, [_SETTLED, 1 - _SETTLED])
    for _ in range(steps):
        inside, at = _quantiles(starts, logs, key.end, levels)
        asks = at[:, :asked].T if asked > 1 else at[:, 0]
        if wanted is not None:
            places = _open_places(*_outer_ends(starts, key.end, inside[:, asked:]), n_features)
            often = np.bincount(places, minlength=len(own))
            found = sides(key.value(asks[..., places]), own[places])
            means = np.zeros(asks.shape)
            np.add.at(means, (..., places), np.reshape(found, (*asks.shape[:-1], n_features)))
            excess = means / np.maximum(often, 1) - target
            noise = scale / np.sqrt(np.maximum(often, 1))
        else:
            excess, noise = np.reshape(sides(key.value(asks)), asks.shape) - target, scale
        odds = _log_odds_of_sides(excess, (tau - 1) * n_rows, tau * n_rows, noise)
        if wanted is not None:
            # nothing was asked
            odds = np.where(often > 0, odds, 0.0)
        # a piece that begins at a threshold is as dense as what it is cut from; before what begins
        # there already it has no length. All that follows is more likely by its odds
        more = np.concatenate([odds.reshape(asked, -1).T, np.zeros(starts.shape)], axis=1)
        logs = np.concatenate([logs[every, inside[:, :asked]], logs], axis=1)
        starts = np.concatenate([at[:, :asked], starts], axis=1)
        order = starts.argsort(axis=1, kind="stable")
        starts = starts[every, order]
        logs = logs[every, order] + more[every, order].cumsum(axis=1)
        belief = Belief(key, starts, logs)
        if near is not None and (np.abs(belief.interval()).max(axis=0) <= near[own]).all():
            break
    return belief


def _open_places(low, high, n_places):
    """Return for which feature each place asks: in turn for those that are not settled, if any."""
    still = np.flatnonzero(high - low > 1)
    return np.resize(still if len(still) else np.arange(len(low)), n_places)


@dataclass(frozen=True)
class Belief:
    """What is believed about a quantile of every feature.

    Parameters
    ----------
    key : FloatKey
        Thresholds.
    starts, logs : ndarray of shape (n_features, n_intervals)
        Positions where intervals start, some of them without a length, and logarithms of their
        weights for each position.
    """

    key: Any
    starts: Any
    logs: Any

    @property
    def middle(self):
        """Thresholds that halve the weights."""
        _, at = _quantiles(self.starts, self.logs, self.key.end, np.array([0.5]))
        return self.key.value(at[:, 0])

    def interval(self):
        """Return thresholds (low, high] of whole intervals that leave out .05 on each side."""
        levels = np.array([0.05, 0.95])
        inside, _ = _quantiles(self.starts, self.logs, self.key.end, levels)
        low, high = _outer_ends(self.starts, self.key.end, inside)
        return self.key.value(low), self.key.value(high)


def _outer_ends(starts, end, inside):
    """Return where the first of two intervals of every feature starts, and where the other ends."""
    starts = np.append(starts, np.full((len(starts), 1), float(end)), axis=1)
    every = np.arange(len(starts))
    return starts[every, inside[:, 0]], starts[every, inside[:, 1] + 1]


def _quantiles(starts, logs, end, levels):
    """Return the intervals with some quantiles of the weights, and the positions of these.

    Parameters
    ----------
    starts, logs, end : ndarray of shape (n_features, n_intervals), and float
        As those of a `Belief`; last position.
    levels : ndarray of shape (n_levels,)
        Which quantiles.

    Returns
    -------
    inside, at : ndarray of shape (n_features, n_levels)
        Indices of intervals that have a length, and whole positions from their start to their end.
    """
    every = np.arange(len(starts))[:, None]
    high = np.full(starts.shape, float(end))
    high[:, :-1] = starts[:, 1:]
    with np.errstate(under="ignore", divide="ignore"):
        weights = logs + np.log(high - starts)
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
    below = weights.cumsum(axis=1)
    wanted = below[:, -1:] * levels
    inside = (below[:, None] >= wanted[:, :, None]).argmax(axis=2)
    low, high = starts[every, inside], high[every, inside]
    share = 1 - (below[every, inside] - wanted) / weights[every, inside]
    at = np.rint(low + share * (high - low))
    return inside, np.minimum(np.maximum(at, low), high)


def _log_odds_of_sides(excess, lowest, highest, scale):
    """Return the log-odds that a count is above its target, given its noisy excess.

    Without noise the excess is uniform in (0, highest) or in (lowest, 0): that much of a
    prior makes counts that are drowned by noise say nothing.
    """
    excess = np.minimum(np.maximum(excess, lowest - _FAR * scale), highest + _FAR * scale)
    bounds = np.array([lowest - excess, -excess, highest - excess]) / scale
    below, above = _log_mass(bounds[:-1], bounds[1:])
    odds = above - math.log(highest) - (below - math.log(-lowest))
    return np.minimum(np.maximum(odds, -_SURE), _SURE)


def _log_mass(low, high):
    """Return the log of the standard Gaussian's mass between two points."""
    # in the lower tail, where logarithms are accurate
    upper = low > 0
    low, high = np.where(upper, -high, low), np.where(upper, -low, high)
    top, bottom = log_ndtr(np.array([high, low]))
    return top + np.log(-np.expm1(np.minimum(bottom - top, -1e-300)))


def shortest(belief):
    """Return the decimals with the fewest digits that are as credible as the middle.

    Data are short decimals more often than sums of powers of two: so the common value of
    rows that are all equal is hit exactly.
    """
    (low, high), middle = belief.interval(), belief.middle
    found = np.where(high == 0, 0.0, middle)
    for i in np.flatnonzero(high):
        for digits in range(1, 18):
            decimal = float(f"{middle[i]:.{digits}g}")
            if low[i] < decimal <= high[i]:
                found[i] = decimal
                break
    return found
