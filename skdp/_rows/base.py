# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows in their domain: one layout, finite floats, and public sets that rows are forced into.

The contract of ``skdp._rows``: *what a row contributes to a statistic depends on no bit of
another row.* A row that is not finite, too long, huge or denormal needs work, and its neighbour
does not; the other rows must not notice. A sum over rows then changes by what one row
contributes and by the rounding of the sum, whatever the loss: a residual that jumps where a
prediction moves by one rounding, as that of a hinge does, is the same number on both data sets.

What is done for it:

* Before anything is multiplied, a chunk of dense rows is float64, row after row, aligned
  (`row_major`). Rows that have this layout are used where they are; others are copied, chunk by
  chunk. A copy that is made because of a value (`tame`) lies at the same address, modulo 64
  bytes, as the rows that it stands for; every other copy lies at a multiple of 64. Sparse rows
  are CSR in float64; duplicates are added up in an order that depends on the row alone.
* Where chunks begin depends on the number of rows, of features, and of drawn positions, never
  on a value. A row that counts as null keeps its place and its shape.
* Norms, limits and residuals are computed row by row, or element by element. Where rows stay in
  their places, predictions are products of a whole chunk. In a batch that was drawn, a row may
  be missing, and others move up: there every prediction is a product of its own.

What is relied on, and tested on the machine at hand:

* A product of matrices, or of a matrix with a vector, treats a row by a sequence of operations
  that is a function of the shapes, the types, the strides, the addresses modulo 64 bytes and the
  row's place; what the numbers in other rows are, NaN, infinities and denormals included, has no
  part in it. BLAS does not promise that rows in different places, or in other layouts, are
  treated alike, and they are not.
* A function of arrays (``np.exp``, say) maps an element to the same float wherever it stands.
  Products with one vector at a time, ``np.vecdot`` and ``np.einsum``, and sums along contiguous
  rows are the same for a row wherever it stands.
* scipy's products with CSR rows go through the entries of each row in the order in which they
  are stored.

The sum itself may be rounded in another order if a value changes: Proposition 7 of the proofs
bounds that for any order.

Projections are total: whatever the floats of a row are, the result is a member of the set, and
no norm overflows. A row that is not finite becomes a null row, which contributes nothing.
"""

import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from skdp._rows.streams import RowStream, through

# Entries smaller than this are flushed to zero (denormals slow products 20-fold) and
# rows with larger ones are rescaled (their squares would overflow). A radius is held
# in the range below, so that neither matters to the statistics.
_TINY, _HUGE = 1e-140, 1e140
RADIUS_RANGE = (1e-100, 1e100)
# longest bounds that an error quotes, and features that it names
_QUOTED, _SHOWN = 200, 6


def check_radius(radius, name="data_norm"):
    """Return a usable radius as a float, or raise a ValueError that names it."""
    number = isinstance(radius, int | float | np.number) and not isinstance(radius, bool)
    if not number or not RADIUS_RANGE[0] <= radius <= RADIUS_RANGE[1]:
        raise ValueError(f"{name} must be a number in [1e-100, 1e100]; got {radius!r}.")
    return float(radius)


def check_bounds(bounds, n_features, name="bounds", feature_names=None):
    """Return public bounds as two arrays.

    Parameters
    ----------
    bounds : sequence, array-like of shape (n_features, 2), or dict
        A pair (lower, upper) of numbers, or of arrays with one number per feature; a pair for
        every feature; or a dict with the pair of every feature by its name or position.
    n_features : int
        Number of features.
    name : str
        Of the parameter.
    feature_names : sequence of str or None
        Of the rows.

    Returns
    -------
    lower, upper : ndarray of shape (n_features,)
        Finite, lower below upper.

    Raises
    ------
    ValueError
        If they are not bounds, or if those of two features have two readings.
    """
    readings, named = [], isinstance(bounds, dict)
    if named:
        bounds = _pairs_by_name(bounds, n_features, name, feature_names)
    try:
        if len(bounds) == 2 and not named:
            readings.append(tuple(np.asarray(side, dtype=np.float64) for side in bounds))
        pairs = np.asarray(bounds, dtype=np.float64)
        if pairs.shape == (n_features, 2):
            readings.append(tuple(pairs.T))
    except (TypeError, ValueError):
        pass
    sound = [_spread(sides, n_features) for sides in readings]
    sound = [sides for sides in sound if sides is not None]
    if not sound:
        raise ValueError(
            f"{name} must be a pair (lower, upper) of finite numbers, or of arrays with one finite "
            "number per feature; or such a pair for every feature, in an array of shape "
            f"(n_features, 2) or a dict by name; lower below upper. Got "
            f"{_given(bounds, readings, n_features)} for {n_features} feature(s)."
        )
    if len(sound) == 2 and not np.array_equal(*sound):
        one, other = ({i: tuple(map(float, pair)) for i, pair in enumerate(s.T)} for s in sound)
        raise ValueError(
            f"{name}={bounds!r} of 2 features may be two vectors, lower and upper, or two pairs. "
            f"Give a dict by position or name: {one} or {other}."
        )
    return sound[0]


def _given(bounds, readings, n_features):
    """Return what was given for bounds; of many features only which are wrong."""
    quoted = repr(bounds)
    if len(quoted) <= _QUOTED:
        return quoted
    for lower, upper in readings:
        if lower.shape == upper.shape == (n_features,):
            wrong = np.flatnonzero(~((lower < upper) & np.isfinite(upper) & np.isfinite(lower)))
            more = len(wrong) - _SHOWN
            named = wrong[:_SHOWN].tolist()
            return f"other bounds of features {named}" + (f" and {more} more" if more > 0 else "")
    return f"{type(bounds).__name__} of {len(bounds)} entries"


def bounds_of(estimator, n_features):
    """Return the public bounds of an estimator, whose rows may have names, as two arrays."""
    names = getattr(estimator, "feature_names_in_", None)
    return check_bounds(estimator.bounds, n_features, feature_names=names)


def _pairs_by_name(bounds, n_features, name, feature_names):
    """Return the pairs of a dict in the order of features."""
    by_place = feature_names is None or set(bounds) == set(range(n_features))
    places = list(range(n_features)) if by_place else list(feature_names)
    missing = [place for place in places if place not in bounds]
    unknown = [key for key in bounds if key not in places]
    if missing or unknown:
        keys = "position, for the rows have no names" if feature_names is None else "name"
        lists = {"missing are": missing, "unknown are": unknown}
        told = ", ".join(f"{which} {found}" for which, found in lists.items() if found)
        raise ValueError(
            f"{name} must have a pair (lower, upper) for every feature, by {keys}; {told}."
        )
    return [bounds[place] for place in places]


def _spread(sides, n_features):
    """Return an array of lower and upper ends, or None if they are none."""
    if any(side.ndim > 1 or (side.ndim and side.shape != (n_features,)) for side in sides):
        return None
    ends = np.array([np.broadcast_to(side, (n_features,)) for side in sides])
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(ends[1] - ends[0]).all()
    return ends if finite and (ends[0] < ends[1]).all() else None


# bytes: no kernel of a product looks at more of an address
_LINE = 64


def empty_rows(shape, place=0):
    """Return an uninitialised float64 array at an address that is `place` modulo 64."""
    size = math.prod(shape)
    memory = np.empty(size + _LINE // 8)
    skip = (place - _address(memory)) % _LINE // 8
    return memory[skip : skip + size].reshape(shape)


def _address(X):
    return X.__array_interface__["data"][0]


def _is_row_major(X):
    return X.dtype == np.float64 and X.flags.c_contiguous and X.flags.aligned


def row_major(X):
    """Return dense rows in the one layout that products are made in.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Never changed.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
        In float64, row after row in memory and aligned; X itself if it is.
    """
    if _is_row_major(X):
        return X
    rows = empty_rows(X.shape)
    rows[:] = X
    return rows


def row_norms(X):
    """Return the Euclidean norm of every row of tame data, in float64."""
    if sparse.issparse(X):
        return np.sqrt(squared_lengths(X))
    X = row_major(X)
    return np.sqrt(np.einsum("ij,ij->i", X, X))


# numbers that are worked on at a time: new memory for more of them takes longer than the work
_AT_ONCE = 1 << 17


def squared_lengths(X, squares=None):
    """Return the sum of the squares of every CSR row, times public numbers of columns, if any."""
    lengths, step = np.empty(X.shape[0]), max(1, X.shape[0] * _AT_ONCE // max(1, len(X.data)))
    factors = np.ones(1) if squares is None else squares  # never made as long as a row may be
    for start in range(0, len(lengths), step):
        ends = X.indptr[start : start + step + 1]
        values, place = (part[ends[0] : ends[-1]] for part in (X.data, X.indices))
        # squares of single precision overflow from 2e19 on
        with np.errstate(over="ignore"):
            values = values.astype(np.float64) ** 2
        parts = values, place * (squares is not None), ends - ends[0]
        rows = sparse.csr_array(parts, shape=(len(ends) - 1, len(factors)))
        lengths[start : start + step] = rows @ factors
    return lengths


def _is_awkward(values):
    if values.dtype == np.float32:
        # neither so small nor so large, unless it is not finite
        return not float(np.abs(values).max(initial=0.0)) <= _HUGE
    if len(values) > 512 and values.size > 1 << 17:
        # part by part: what is written is read again before it leaves the cache
        return any(map(_is_awkward, np.array_split(values, values.size >> 16)))
    magnitude = np.abs(values.astype(np.float64, copy=False))
    least, largest = magnitude.min(initial=1.0), magnitude.max(initial=0.0)
    return not largest <= _HUGE or (least < _TINY and np.any((magnitude > 0) & (magnitude < _TINY)))


def _tame_values(values, row_of, n_rows):
    """Return tame values and the flags of non-finite rows.

    `values` is a copy to be changed; `row_of` gives the row of every value. A row
    with a huge entry is scaled down as a whole, which keeps its direction.
    """
    finite = np.isfinite(values)
    broken = np.zeros(n_rows, dtype=bool)
    broken[row_of[~finite]] = True
    values[~finite] = 0.0
    largest = np.zeros(n_rows)
    np.maximum.at(largest, row_of, np.abs(values))
    # scaling in two steps: 1 / 1e308 would be denormal
    shrink = np.where(largest > _HUGE, _HUGE / np.maximum(largest, 1.0), 1.0)
    # whether an entry underflows depends on the data: nobody is to be told
    with np.errstate(under="ignore"):
        values *= shrink[row_of]
    values[np.abs(values) < _TINY] = 0.0
    return values, broken


def without_duplicates(X):
    """Return a CSR matrix whose rows store every column once, in order; X itself if so.

    What is stored in parts is added up in an order that depends on the row alone. scipy sorts
    all rows or none, by a sort that is not stable: parts of a sorted row would be added up in
    another order because some other row is not sorted, and floats that cancel would not.
    """
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.has_sorted_indices = False
    X.sum_duplicates()
    return X


def tame(X):
    """Return rows without floats that break arithmetic, and flags of the non-finite ones.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Never changed; returned as it is when there is nothing to do. Dense rows with anything to
        do are copied into the layout of `row_major`.

    Returns
    -------
    X : ndarray or CSR matrix
        Every entry is 0 or in [1e-140, 1e140] in magnitude. A row with a larger entry
        has been scaled down as a whole. CSR matrices have no duplicate entries.
    broken : ndarray of shape (n_rows,), dtype bool
        Rows that had a NaN or an infinity; they are not to be used.
    """
    n_rows = X.shape[0]
    if not sparse.issparse(X):
        if not _is_awkward(X):
            return X, np.zeros(n_rows, dtype=bool)
        row_of = np.repeat(np.arange(n_rows), X.shape[1])
        rows = empty_rows(X.shape, _address(X) if _is_row_major(X) else 0)
        rows[:] = X
        _, broken = _tame_values(rows.reshape(-1), row_of, n_rows)
        return rows, broken
    X = without_duplicates(X)
    if not _is_awkward(X.data):
        return X, np.zeros(n_rows, dtype=bool)
    row_of = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    data, broken = _tame_values(X.data.astype(np.float64), row_of, n_rows)
    return type(X)((data, X.indices, X.indptr), shape=X.shape), broken


@dataclass(frozen=True)
class L2Ball:
    """Rows of Euclidean norm at most `radius`; longer ones are scaled down.

    Parameters
    ----------
    radius : float
        Public bound, in [1e-100, 1e100].
    """

    radius: float

    def factors(self, norms):
        """Return what rows of the given norms are multiplied by to land in the UNIT ball."""
        return 1.0 / np.maximum(norms, self.radius)


@dataclass(frozen=True, eq=False)
class ColumnBall:
    """Rows whose columns, in public units around public origins, are of norm at most `radius`.

    Parameters
    ----------
    radius : float
        Public bound.
    columns : StandardColumns or None
        Origins and units of the columns; None for zeros and ones.
    """

    radius: float
    columns: Any

    def factors(self, X):
        """Return by what rows are shortened towards the origin, an array of shape (n_rows,).

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
            Finite, in the units of the data; CSR only where all origins are 0.
        """
        step = chunk_rows(X)[1]
        starts = range(0, X.shape[0], step)
        return np.concatenate([self._factors(X[i : i + step]) for i in starts])

    def _factors(self, X):
        if self.columns is not None:
            center, scale = self.columns.center, self.columns.scale
            with np.errstate(over="ignore", under="ignore"):
                if sparse.issparse(X):
                    values = np.clip(X.data / scale[X.indices], -_HUGE, _HUGE)
                    X = sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
                else:
                    X = np.clip((X - center) / scale, -_HUGE, _HUGE)
        # in a power of two, which changes no digit, squares of numbers of any size are finite
        magnitude = np.abs(X.data if sparse.issparse(X) else X)
        largest = max(float(magnitude.max(initial=0.0)), self.radius)
        unit = math.ldexp(1.0, min(math.frexp(largest)[1], 1023))
        with np.errstate(under="ignore"):
            return self.radius / np.maximum(unit * row_norms(X / unit), self.radius)


@dataclass(frozen=True)
class Box:
    """Rows with every coordinate in [lower, upper]; others are clipped.

    Parameters
    ----------
    lower, upper : tuple of float
        Public bounds, one per feature, lower below upper.
    """

    lower: tuple
    upper: tuple

    @property
    def center(self):
        """Midpoint, as an array of shape (n_features,)."""
        return np.asarray(self.lower) / 2 + np.asarray(self.upper) / 2

    @property
    def half_width(self):
        """Half of every side, as an array of shape (n_features,)."""
        return np.asarray(self.upper) / 2 - np.asarray(self.lower) / 2

    def to_unit(self, X):
        """Return rows clipped into the box and mapped to [-1, 1]; NaN goes to the center."""
        unit = (np.clip(X, self.lower, self.upper) - self.center) / self.half_width
        return np.nan_to_num(np.clip(unit, -1.0, 1.0), nan=0.0)


def ball_constraint(coef, radius):
    """Return finite `coef` scaled into the ball of `radius`; None means no bound."""
    if radius is None:
        return coef
    norm = np.linalg.norm(coef)
    return coef if norm <= radius else coef * (radius / norm)


def two_balls_constraint(coef, radius, center, reach):
    """Return `coef` projected on the ball of `radius` around 0 and of `reach` around `center`.

    Parameters
    ----------
    coef : ndarray of shape (size,)
        Any point.
    radius : float or None
        None for no ball around 0.
    center : ndarray of shape (size,)
        A point of the first ball.
    reach : float
        Radius of the ball around it.

    Returns
    -------
    nearest : ndarray of shape (size,)
        The nearest point that is in both, but for rounding.
    """
    first = ball_constraint(coef, radius)
    if np.linalg.norm(first - center) <= reach:
        return first
    second = center + ball_constraint(coef - center, reach)
    distance = np.linalg.norm(center)
    if radius is None or np.linalg.norm(second) <= radius or distance == 0:
        return second
    # neither ball alone decides: the point is on both spheres, in the plane of `coef`
    axis = center / distance
    along = (distance + (radius - reach) * ((radius + reach) / distance)) / 2
    along = min(max(along, -radius), radius)
    across = coef - (coef @ axis) * axis
    length = np.linalg.norm(across)
    if length == 0:
        return center
    return along * axis + across * (np.sqrt((radius - along) * (radius + along)) / length)


# Sums over private rows, accurate enough for their sensitivity to be true.
#
# Proposition. Let every row contribute a vector of norm at most C, and let D and D'
# differ in one row that keeps its position. The float64 sums computed here satisfy
# ``|sum(D) - sum(D')| <= S (1 + 1e-6)``, S >= C being the sensitivity in exact
# arithmetic, for up to 2^31 rows.
#
# Proof. u = 2^-53. By the contract of ``skdp/_rows/base.py`` every row but one contributes
# the same floats on D and on D', whatever the loss: a residual that jumps, as that of a hinge
# does, jumps on both or on neither. Chunk boundaries depend on the shape of the data alone, so
# D and D' share every chunk partial but one. (i) A partial of B rows is rounded, in any order,
# by at most B u * (sum of |contributions|) <= B^2 u C; for the two data sets together by
# 2 B^2 u C <= 2.4e-7 C, for B <= 32768. (ii) A block adds at most 8 partials one after another:
# 2 * 8 * u * (8 B C) <= 4.7e-10 C. (iii) Blocks are added with compensation: the
# error is u |sum| plus terms of order u^2, at most 2 u n C <= 4.8e-7 C. (iv) Clipping
# one contribution in floating point errs by (d + 10) u C, under 1e-9 C for d up to 10^6.
# The total stays under 1e-6 C; `FLOAT_SLACK` charges it.


# Chunks of private rows that are made when it is their turn.


class LazyChunks(Sequence):
    """A list of chunks of which every item is read from a table when it is asked for.

    Parameters
    ----------
    table : Table
        Where rows are read.
    pieces : list
        For every chunk a pair (start, stop), or an array of sorted positions.
    make : tuple of callables
        What turns a block of the table into a chunk, one function after another.

    Notes
    -----
    Copies for other processes have everything but the table: what is sent to a worker works
    on the blocks that are there, and rows do not travel along.
    """

    def __init__(self, table, pieces, make):
        self.table, self.pieces, self.make = table, pieces, make

    @classmethod
    def cut(cls, table, step, make):
        """Return chunks of `step` consecutive rows each, but for the last."""
        n_rows = table.n_rows
        bounds = [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
        return cls(table, bounds, make)

    def __len__(self):
        return len(self.pieces)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return LazyChunks(self.table, self.pieces[index], self.make)
        return self.chunk_of(self._block(self.pieces[index]))

    def __getstate__(self):
        return {**self.__dict__, "table": None}

    def _block(self, piece):
        return self.table.read(*piece) if isinstance(piece, tuple) else self.table.take(piece)

    def chunk_of(self, block):
        """Return the chunk that a block of the table becomes."""
        return through(self.make, block)

    def fetched(self):
        """Return an iterator that makes the chunks, of which all rows have been read now."""
        return map(self.chunk_of, [self._block(piece) for piece in self.pieces])

    def then(self, function):
        """Return the chunks with a function applied to each when it is made."""
        return LazyChunks(self.table, self.pieces, (*self.make, function))

    def between(self, start, stop):
        """Return the chunks of a range of positions: boundaries stay where they are."""
        cut = [(max(low, start), min(high, stop)) for low, high in self.pieces]
        return LazyChunks(self.table, [piece for piece in cut if piece[0] < piece[1]], self.make)

    def at(self, parts):
        """Return one chunk for every array of sorted positions."""
        return LazyChunks(self.table, list(parts), self.make)

    @property
    def n_rows(self):
        """Number of rows of all chunks."""
        sizes = (p[1] - p[0] if isinstance(p, tuple) else len(p) for p in self.pieces)
        return sum(sizes)

    def block_sums(self, partial, width, size):
        """Return sums over blocks of chunks, one after another, if the table makes them itself.

        Parameters
        ----------
        partial : callable
            Maps a chunk to a vector.
        width : int
            Chunks of a block; their vectors are added up in order.
        size : int
            Length of a vector.

        Returns
        -------
        sums : iterator of ndarray of shape (size,), or None
            None if the rows are to be read here.
        """
        made = getattr(self.table, "block_sums", None)
        return None if made is None else made(self, partial, width, size)


def added_up(partial, chunks):
    """Return the sum of ``partial(chunk)`` over one chunk or more, in their order."""
    chunks = iter(chunks)
    total = partial(next(chunks))
    for chunk in chunks:
        total += partial(chunk)
    return total


CHUNKS_PER_BLOCK = 8
#: rows of a chunk, at least, but for the last one
SMALLEST_CHUNK = 64
#: below this many entries a second thread costs more than it saves
ENTRIES_PER_THREAD = 1 << 21


def dense_chunk_rows(n_features):
    """Return the rows of a chunk that stays in cache between its two products.

    Three MiB: small enough for a shared cache, large enough that threads seldom wait for
    the interpreter's lock between two products.
    """
    return int(np.clip((3 << 20) // (8 * n_features), SMALLEST_CHUNK, 8192))


#: a sparse partial costs a dense vector, so sparse chunks are long
SPARSE_CHUNK_ROWS = 32768


def chunk_rows(X):
    """Return the number of entries of rows, and how many rows their chunks have.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Rows; of a stream that was gone through.

    Returns
    -------
    n_entries, step : int, int
        Entries that are stored; and a number that depends on the shape and the format alone.
    """
    leaves_out, is_stream = leaves_out_zeros(X), isinstance(X, RowStream)
    n_entries = X.facts.n_entries if is_stream else X.nnz if leaves_out else X.size
    return n_entries, SPARSE_CHUNK_ROWS if leaves_out else dense_chunk_rows(X.shape[1])


def leaves_out_zeros(X):
    """Return whether rows are stored without their zeros: a fact about the format alone."""
    return X.facts.is_sparse if isinstance(X, RowStream) else sparse.issparse(X)


class CompensatedSum:
    """Sum of vectors with the rounding errors carried along (Neumaier)."""

    def __init__(self, size):
        self._total, self._carry = np.zeros(size), np.zeros(size)

    def add(self, vector):
        """Add one vector of shape (size,)."""
        new = self._total + vector
        larger = np.abs(self._total) >= np.abs(vector)
        big = np.where(larger, self._total, vector)
        small = np.where(larger, vector, self._total)
        self._carry += (big - new) + small
        self._total = new

    @property
    def value(self):
        """The sum, an array of shape (size,)."""
        return self._total + self._carry


def sum_over(rows, partial, size):
    """Return the sum of ``partial(chunk)`` over the chunks of `rows`.

    Parameters
    ----------
    rows : object
        With attributes `chunks` (a list, or `LazyChunks`), `n_entries` and `n_threads`.
    partial : callable
        Maps a chunk to a fresh float64 vector of shape (size,).
    size : int
        Length of the sum.

    Returns
    -------
    total : ndarray of shape (size,)
        The same to the last bit for any number of threads, and wherever the rows are.
    """
    chunks = rows.chunks
    if not isinstance(chunks, list):
        # where rows are on other machines, blocks are added up there
        made = chunks.block_sums(partial, CHUNKS_PER_BLOCK, size)
        if made is not None:
            return _compensated(made, size)
    blocks = [chunks[i : i + CHUNKS_PER_BLOCK] for i in range(0, len(chunks), CHUNKS_PER_BLOCK)]
    if len(blocks) == 1:
        # nothing to be compensated for
        return added_up(partial, blocks[0])
    n_threads = min(rows.n_threads, len(blocks), rows.n_entries // ENTRIES_PER_THREAD)
    if n_threads > 1:
        return _compensated(_threaded(blocks, partial, n_threads), size)
    return _compensated((added_up(partial, block) for block in blocks), size)


def _compensated(parts, size):
    """Return the sum of vectors, one for each block; one alone is returned as it is."""
    parts = iter(parts)
    first, second = next(parts), next(parts, None)
    if second is None:
        return first
    total = CompensatedSum(size)
    for part in chain((first, second), parts):
        total.add(part)
    return total.value


def _threaded(blocks, partial, n_threads):
    """Yield the sums of blocks in order; the caller's thread alone reads rows."""
    with ThreadPoolExecutor(n_threads) as pool:
        waiting = deque()
        for block in blocks:
            # a file is read from its beginning to its end, a few blocks ahead
            chunks = block if isinstance(block, list) else block.fetched()
            waiting.append(pool.submit(added_up, partial, chunks))
            if len(waiting) > n_threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
