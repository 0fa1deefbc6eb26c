# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a linear model, admitted into the unit ball in chunks.

`LinearRows` cuts rows into chunks, and `LinearAdmission` makes a `LinearChunk` of each: rows
``f x`` with a constant for the intercept, f a number for every row that brings it into the ball, so
that the data need not be copied. A chunk predicts, and adds up residuals times rows: what a
statistic of a linear model is made of. `top_entries` cuts rows down to few entries beforehand;
`regression_rows` admits rows and targets of any length, which `unit_rows` brings to public units.

The layout that products are made in is that of the contract in ``skdp/_rows/base.py``.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from skdp._rows.base import (
    LazyChunks,
    chunk_rows,
    empty_rows,
    row_major,
    row_norms,
    tame,
    without_duplicates,
)
from skdp._rows.streams import LARGE, RowStream, no_flags, numbers_of, over_rows, together

# A chunk: consecutive rows, and products with them.

# rows of fewer entries are multiplied faster by numpy itself than by a call of BLAS for each
_SHORT = 50


class LinearChunk:
    """Rows (f_i x_i, intercept), f_i bringing x_i into the unit ball.

    Without an intercept the last coordinate is absent; with a `lift`, one number per row,
    it is ``lift_i intercept``. With a `weight`, one number in [0, 1] per row, statistics count a
    row so often: those that can do with weights, and no others may see such a chunk.
    """

    __slots__ = (
        "X", "drawn", "factor", "intercept", "length", "lift", "norm", "peak", "rotated", "target",
        "weight",
    )  # fmt: skip

    def __init__(self, X, factor, norm, target, intercept, lift=None, drawn=False, weight=None):
        self.X, self.factor, self.norm, self.target = X, factor, norm, target
        self.intercept, self.lift, self.drawn, self.weight = intercept, lift, drawn, weight
        # kept by queries that ask for them again and again
        self.rotated = self.peak = self.length = None

    def widened(self):
        """Return the chunk in the layout of products, for several of them; itself if it is."""
        # chunk by chunk, and never a sum in float32: that would break the sensitivity
        X = self._rows()
        return self if X is self.X else self._with(X)

    def _rows(self):
        if sparse.issparse(self.X):
            return self.X.astype(np.float64, copy=False)
        return row_major(self.X)

    def _with(self, X):
        kept = self.factor, self.norm, self.target, self.intercept, self.lift
        return LinearChunk(X, *kept, self.drawn, self.weight)

    def as_drawn(self):
        """Return the chunk as one of a batch, which may lack a row and have others move up."""
        made = self._with(self.X)
        made.drawn = True
        return made

    def largest_entries(self):
        """Return the largest magnitude in every row, at least 1e-100; infinite for null rows."""
        if self.peak is None:
            X = self.X
            if sparse.issparse(X):
                peak, filled = np.zeros(X.shape[0]), np.diff(X.indptr) > 0
                peak[filled] = np.maximum.reduceat(np.abs(X.data), X.indptr[:-1][filled])
            else:
                peak = np.maximum(X.max(axis=1), -X.min(axis=1)).astype(np.float64)
            lift = 1.0 if self.lift is None else np.abs(self.lift)
            peak = np.maximum(peak * self.factor, abs(self.intercept) * lift)
            self.peak = np.where(np.isinf(self.norm), np.inf, np.maximum(peak, 1e-100))
        return self.peak

    def predict(self, coef):
        """Return rows @ coef.T for coef of shape (size,) or (n_outputs, size)."""
        body, X = coef[..., :-1] if self.intercept else coef, self._rows()
        if self.drawn and not sparse.issparse(X):
            # row by row: the product of a matrix may round by the place of a row
            if body.ndim == 1 and len(body) < _SHORT:
                z = np.einsum("ij,j->i", X, body)
            else:
                z = np.vecdot(X if body.ndim == 1 else X[:, None], body)
        else:
            # X.dot, not the operator: it costs less before it computes, once a chunk
            z = X.dot(body.T)
        z *= self.factor if z.ndim == 1 else self.factor[:, None]
        if self.intercept and self.lift is None:
            z += self.intercept * coef[..., -1]
        elif self.intercept:
            z += np.multiply.outer(self.intercept * self.lift, coef[..., -1])
        return z

    def combine(self, residual):
        """Return residual.T @ rows, flattened; overwrites the residual."""
        last = residual.sum(axis=0) if self.lift is None else self.lift @ residual
        last = self.intercept * last
        residual *= self.factor if residual.ndim == 1 else self.factor[:, None]
        X = self._rows()
        body = X.T.dot(residual).T if sparse.issparse(X) else residual.T.dot(X)
        if not self.intercept:
            return body.ravel()
        combined = np.empty((*body.shape[:-1], body.shape[-1] + 1))
        combined[..., :-1], combined[..., -1] = body, last
        return combined.ravel()

    def explicit(self):
        """Return the rows themselves, a fresh (n_rows, size) ndarray or CSR array, float64."""
        if sparse.issparse(self.X):
            body = sparse.csr_array(self.X).multiply(self.factor[:, None]).tocsr()
            if not self.intercept:
                return body
            column = np.full((body.shape[0], 1), float(self.intercept))
            column *= 1.0 if self.lift is None else self.lift[:, None]
            return sparse.hstack([body, sparse.csr_array(column)], format="csr")
        rows = np.empty((self.X.shape[0], self.X.shape[1] + bool(self.intercept)))
        np.multiply(self.X, self.factor[:, None], out=rows[:, : self.X.shape[1]])
        if self.intercept:
            rows[:, -1] = self.intercept if self.lift is None else self.intercept * self.lift
        return rows

    def taken(self, index):
        """Return the chunk of the rows of an integer index, or of a slice."""
        rows = (part[index] for part in (self.X, self.factor, self.norm, self.target))
        lift, weight = (None if one is None else one[index] for one in (self.lift, self.weight))
        return LinearChunk(*rows, self.intercept, lift, self.drawn, weight)

    def weighted_gram(self, weights):
        """Return the sum of weights_i v_i v_i' over the rows v_i, of shape (size, size).

        Parameters
        ----------
        weights : ndarray of shape (n_rows,)
            Not negative. Rows of weight zero cost nothing.

        Returns
        -------
        gram : ndarray of shape (size, size)
            In float64, symmetric.
        """
        used = np.flatnonzero(weights)
        if 2 * len(used) < len(weights):
            return self.taken(used).weighted_gram(weights[used])
        # the root on both sides: half the work, and symmetric to the last bit
        root = np.sqrt(weights)
        rows = self.explicit()
        if sparse.issparse(rows):
            rows.data *= np.repeat(root, np.diff(rows.indptr))
            return (rows.T @ rows).toarray()
        rows *= root[:, None]
        return rows.T @ rows


# The rows: their admission, parts and batches.


@dataclass(frozen=True)
class LinearAdmission:
    """How rows become a chunk of `LinearRows`.

    Parameters
    ----------
    ball, intercept : L2Ball, float
        As those of `LinearRows`.
    """

    ball: Any
    intercept: float

    def __call__(self, block):
        """Return the chunk of a block (rows, targets, null flags)."""
        # chunk by chunk: what one row needs leaves the other chunks as they were
        X, target, null, *weight = block
        part, broken = tame(X)
        if sparse.issparse(part):
            part = part.astype(np.float64, copy=False)
        norm = row_norms(part)
        factor = self.ball.factors(norm)
        norm = usable_norms(np.hypot(norm * factor, self.intercept), null | broken)
        # rows of other groups move up where one has fewer: each is multiplied on its own
        rest = (None, bool(weight), *weight)
        return LinearChunk(part, factor, norm, target, self.intercept, *rest)


class LinearRows:
    """Rows of a linear model, admitted into the unit ball.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Never changed. Chunks with floats that break arithmetic are copied, and so are rows in
        another layout than products need: up to 256 MiB of them once, chunk by chunk at every
        pass otherwise. Chunks of a stream are read and admitted, and kept while there is room.
    target : ndarray or RowStream of shape (n_rows,)
        Coded as the loss says.
    null : ndarray or RowStream of shape (n_rows,), dtype bool
        Rows that contribute nothing.
    ball : L2Ball
        Rows are clipped into it and divided by its radius.
    intercept : float
        Constant appended to every row; 0 appends nothing.
    n_threads : int, default=1
        Threads for the sums.
    weight : ndarray of shape (n_rows,) or None
        What rows count, in [0, 1]: those of a group at most 1 together. None for 1 each.
    """

    #: sorted positions of a batch or None; rows that were set aside; what a search reads
    positions, _aside, sought = None, None, (None, None, None)

    def __init__(self, X, target, null, ball, intercept, n_threads=1, weight=None):
        self.n_threads = n_threads
        if isinstance(X, np.ndarray) and not X.flags.c_contiguous and X.nbytes < LARGE:
            # a question of time alone: what products see is the same
            X = np.ascontiguousarray(X)
        self._X, self._whole = X, None
        admission = LinearAdmission(ball, intercept)
        self.n_entries, _ = chunk_rows(X)
        self.chunks = chunks_of(admission, X, target, null, weight=weight, kept=True)

    @property
    def is_streamed(self):
        """Whether chunks are read when they are needed."""
        return isinstance(self.chunks, LazyChunks)

    @property
    def n_rows(self):
        """Number of rows."""
        if self.is_streamed:
            return self.chunks.n_rows
        return sum(len(chunk.norm) for chunk in self.chunks)

    def with_chunks(self, chunks, X=None):
        """Return rows made of other chunks; X is the array that all of them are parts of."""
        made = object.__new__(LinearRows)
        made.n_threads, made.n_entries = self.n_threads, self.n_entries
        made._X, made._whole, made.chunks, made._aside = X, None, chunks, self._aside
        return made

    def set_aside(self):
        """Return the same rows, to which all that is made of them can be restored."""
        made = self.with_chunks(self.chunks, self._X)
        made._aside = self
        return made

    def restored(self):
        """Return the rows that were set aside, of which these were made."""
        return self._aside

    def mapped(self, function):
        """Return rows of which every chunk is a function of one of these chunks."""
        if self.is_streamed:
            return self.with_chunks(self.chunks.then(function), self._X)
        return self.with_chunks([function(chunk) for chunk in self.chunks], self._X)

    def part(self, start, stop):
        """Return the rows of a range of positions, as rows that share memory with these."""
        if self.is_streamed:
            return self.with_chunks(self.chunks.between(start, stop), self._X)
        chunks, first = [], 0
        for chunk in self.chunks:
            n_rows = len(chunk.norm)
            low, high = max(start - first, 0), min(stop - first, n_rows)
            if low < high:
                chunks.append(chunk.taken(slice(low, high)))
            first += n_rows
        return self.with_chunks(chunks)

    def batch(self, positions, rate):
        """Return the rows at sorted positions, drawn with a public probability each.

        Where chunks begin depends on the positions and the rate alone, so that a row more
        in the batch leaves the other chunks as they are.
        """
        if self.is_streamed:
            n_rows, n_features = self.n_rows, self._X.shape[1]
            parts = batch_parts(positions, rate, n_rows, chunk_rows(self._X)[1])
            chosen = self.with_chunks(self.chunks.at(parts).then(LinearChunk.as_drawn), self._X)
        else:
            if self._whole is None:
                self._whole = whole_chunk(self._X, self.chunks)
            n_rows, n_features = self._whole.X.shape
            parts = batch_parts(positions, rate, n_rows, chunk_rows(self._whole.X)[1])
            chosen = self.with_chunks([self._whole.taken(part).as_drawn() for part in parts])
        chosen.n_entries, chosen.positions = len(positions) * n_features, positions
        return chosen

    def batches(self, size):
        """Yield chunks of at most `size` consecutive rows, in float64."""
        for chunk in self.chunks:
            for start in range(0, len(chunk.norm), size):
                yield chunk.taken(slice(start, start + size)).widened()


def map_chunk(chunk, features, intercept=0.0):
    """Return one chunk of mapped rows, with a constant feature."""
    body = empty_rows((len(chunk.X), features.size))
    body[:] = features(row_major(chunk.X))
    rest = intercept, None, chunk.drawn, chunk.weight
    return LinearChunk(body, chunk.factor, chunk.norm, chunk.target, *rest)


def ball_rows(X, ball, n_threads=1, weight=None):
    """Return the rows of X as `LinearRows` without targets and intercept, none of them null."""
    nobody = over_rows(no_flags, X)
    return LinearRows(X, nobody, nobody, ball, 0.0, n_threads, weight)


def counted_rows(chunk):
    """Return what the rows of a `LinearChunk` count: 0 if null, and 1 or their weight."""
    there = np.isfinite(chunk.norm)
    return there.astype(np.float64) if chunk.weight is None else there * chunk.weight


def counts_parts(chunk):
    """Return whether a row counts less than 1; for ways that end in the same bits alone."""
    return chunk.weight is not None and bool((chunk.weight != 1.0).any())


def usable_norms(norm, null):
    """Return norms that a residual's limit, clip / norm, can be made of; overwrites them.

    No limit on a row of zeros, whose gradient is zero, and nothing left of a null row.
    """
    np.maximum(norm, 1e-100, out=norm)
    norm[null] = np.inf
    return norm


def whole_chunk(X, chunks):
    """Return one chunk of all rows: X itself, unless some chunk had to be tamed."""
    parts = [chunk.X for chunk in chunks]
    if sparse.issparse(X):
        shared = all(np.may_share_memory(part.data, X.data) or not part.nnz for part in parts)
        # the layout that cuts out rows quickly
        X = sparse.csr_array(X) if shared else sparse.vstack(parts, format="csr")
    elif not all(np.may_share_memory(part, X) or not part.size for part in parts):
        X = np.concatenate(parts)
    joined = [
        np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in ("factor", "norm", "target")
    ]
    lift = None if chunks[0].lift is None else np.concatenate([chunk.lift for chunk in chunks])
    return LinearChunk(X, *joined, chunks[0].intercept, lift)


def batch_parts(positions, rate, n_rows, step):
    """Return sorted positions of a batch, cut where its chunks begin.

    Parameters
    ----------
    positions : ndarray of int64
        Sorted positions of the rows.
    rate : float
        The public probability of a row to be drawn.
    n_rows, step : int, int
        Number of all rows, and of those of a full chunk.

    Returns
    -------
    parts : list of ndarray
        The positions of every chunk.
    """
    # half of a full chunk: a batch has more than expected at times
    width = max(1, int(step / 2 / rate))
    return np.split(positions, np.searchsorted(positions, np.arange(width, n_rows, width)))


# Chunks of consecutive rows: all at once for arrays, one at a time for streams.


def chunks_of(admit, X, *others, weight=None, kept=False):
    """Return the chunks that consecutive rows become.

    Parameters
    ----------
    admit : callable
        Maps a block, a tuple of arrays of consecutive rows, to their chunk. For streams it
        may be sent to other processes, and holds public constants only.
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Rows; never changed. A stream was gone through.
    *others : ndarray or RowStream of shape (n_rows,), or None
        Further parts of a block. None is left out.
    weight : ndarray of shape (n_rows,), default=None
        What rows count, in memory: the last part of a block. None leaves it out.
    kept : bool, default=False
        Whether a stream's chunks are kept for the next pass, as far as there is room.

    Returns
    -------
    chunks : list or LazyChunks
        Boundaries depend on the shape and the format of X alone. The rows of arrays are
        views; those of a stream are read and admitted when a chunk is asked for.
    """
    _, step = chunk_rows(X)
    others = [other for other in others if other is not None]
    if isinstance(X, RowStream):
        table = X.table
        if weight is not None:
            others.append(RowStream(table, (numbers_of,), 1))
            table = table.counted(weight, X.facts.known)
        chunks = LazyChunks.cut(table, step, (together(X, *others), admit))
        return table.keeper.chunks(chunks) if kept and table.keeper else chunks
    chunks, others = [], others if weight is None else [*others, weight]
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        chunks.append(admit((rows_view(X, rows), *(other[rows] for other in others))))
    return chunks


class _Part:
    """Base of a part of an array: constructors of sparse arrays copy what has a longer one."""

    def __init__(self, part):
        self.part, self.size, self.__array_interface__ = part, part.size, part.__array_interface__


def rows_view(X, rows):
    """Return rows of X that share its memory."""
    if not sparse.issparse(X):
        return X[rows]
    start, stop = X.indptr[rows.start], X.indptr[rows.stop]
    parts = (np.asarray(_Part(part[start:stop])) for part in (X.data, X.indices))
    parts = *parts, X.indptr[rows.start : rows.stop + 1] - start
    return sparse.csr_array(parts, shape=(rows.stop - rows.start, X.shape[1]), copy=False)


# Rows cut down to a public number of non-zeros.


def top_entries(X, sparsity):
    """Return rows that keep their largest entries, at most `sparsity` of them each.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Never changed. Duplicates are added up, explicit zeros do not count.
    sparsity : int or None
        Public number of entries that a row may have; None for any.

    Returns
    -------
    X : ndarray or CSR array of shape (n_rows, n_features)
        Each row by itself: the entries of largest magnitude, of equal ones those of the
        lowest columns. X itself, if `sparsity` is None or at least n_features, or no sparse
        row has to lose anything. A row that is not finite stays so, for whoever admits it.
    """
    n_rows, n_features = X.shape
    if sparsity is None or sparsity >= n_features:
        return X
    if isinstance(X, RowStream):
        return X.map(partial(top_entries, sparsity=sparsity))
    is_sparse = sparse.issparse(X)
    step = chunk_rows(X)[1]
    starts = range(0, n_rows, step)
    cut = _cut_sparse if is_sparse else _cut_dense
    parts = [cut(X, i, min(i + step, n_rows), sparsity) for i in starts]
    if not is_sparse:
        return np.concatenate(parts)
    if all(np.may_share_memory(part.data, X.data) or not part.nnz for part in parts):
        return X
    return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]


def _cut_dense(X, start, stop, sparsity):
    part, broken = tame(X[start:stop])
    # stable: of equal entries the first ones come first
    order = np.argsort(-np.abs(part), axis=1, kind="stable")[:, :sparsity]
    kept = np.zeros_like(part)
    np.put_along_axis(kept, order, np.take_along_axis(part, order, axis=1), axis=1)
    kept[broken, 0] = np.nan
    return kept


def _cut_sparse(X, start, stop, sparsity):
    low, high = X.indptr[start], X.indptr[stop]
    pieces = (X.data[low:high], X.indices[low:high], X.indptr[start : stop + 1] - low)
    part, broken = tame(sparse.csr_array(pieces, shape=(stop - start, X.shape[1])))
    lengths = np.diff(part.indptr)
    if not broken.any() and (lengths <= sparsity).all():
        return part
    row = np.repeat(np.arange(stop - start), lengths)
    # a row that is not finite holds nothing but zeros by now, and keeps one to show it
    kept = np.flatnonzero(_is_kept(part, row, sparsity) & ((part.data != 0) | broken[row]))
    data, columns, of = part.data[kept], part.indices[kept], row[kept]
    data = np.where(broken[of], np.nan, data)
    ends = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=stop - start))])
    return sparse.csr_array((data, columns, ends), shape=part.shape)


def _is_kept(X, row, sparsity):
    """Return which entries of canonical rows are among the largest of their row."""
    magnitude = np.abs(X.data)
    level = _row_levels(magnitude, X.indptr, sparsity)[row]
    kept = magnitude > level
    # what is left of the number goes to entries on the level, in the order of the columns
    tied = np.flatnonzero(magnitude == level)
    of = row[tied]
    n_above = np.bincount(row[kept], minlength=X.shape[0])
    n_tied = np.bincount(of, minlength=X.shape[0])
    rank = np.arange(len(tied)) - np.repeat(np.cumsum(n_tied) - n_tied, n_tied)
    kept[tied] = rank < (sparsity - n_above)[of]
    return kept


def _row_levels(magnitude, starts, sparsity):
    """Return of every row the magnitude of rank `sparsity`; -1 if it has no more entries.

    Nothing is sorted: rows of about the same length are padded to one, and the level of each
    is selected. It depends on nothing but the row.
    """
    lengths = np.diff(starts)
    levels = np.full(len(lengths), -1.0)
    longer = np.flatnonzero(lengths > sparsity)
    doubled = np.ceil(np.log2(lengths[longer]))
    for power in np.unique(doubled):
        chosen, width = longer[doubled == power], 1 << int(power)
        offset = np.arange(width)
        found = magnitude[np.minimum(starts[chosen, None] + offset, len(magnitude) - 1)]
        found[offset >= lengths[chosen, None]] = -1.0
        levels[chosen] = np.partition(found, width - sparsity, axis=1)[:, width - sparsity]
    return levels


def raw_norms(chunk):
    """Return the norm of every row of a chunk whose factors are 1, to the last bit its own.

    Parameters
    ----------
    chunk : LinearChunk
        Rows in the units of the data, without an intercept.

    Returns
    -------
    norms : ndarray of shape (n_rows,)
        In float64. Those of null rows mean nothing.

    Notes
    -----
    Every operation is elementwise, with one row in each column: nothing is left to how a library
    sums along a row. The chunk keeps them.
    """
    if chunk.length is None:
        if sparse.issparse(chunk.X):
            # summed in the stored order of each row; not `chunk.norm`, which is held above a floor
            chunk.length = row_norms(chunk.X)
        else:
            n_rows = chunk.X.shape[0]
            parts = [chunk.X[i : i + _TURNED] for i in range(0, n_rows, _TURNED)]
            chunk.length = np.concatenate([_lengths_of(part) for part in parts])
    return chunk.length


# rows that are laid down as columns together: as many as a small cache holds
_TURNED = 512


def _lengths_of(rows):
    columns = np.array(rows.T, dtype=np.float64, order="C")
    if len(rows) == 1:
        # one column alone would be added up in another order than among others
        columns = np.repeat(columns, 2, axis=1)
    # whether a row in small units is longer than floats can be is nobody's business
    with np.errstate(under="ignore", over="ignore"):
        columns *= columns
        return np.sqrt(columns.sum(axis=0))[: len(rows)]


# Rows and targets of a regression, of any length at first, then in public units.

#: targets are brought to at most that, in the units of the data, so that floats hold
LARGEST_TARGET = 1e150
# and to this in public units: their cubes are finite
_LARGEST_UNIT = 1e100


@dataclass(frozen=True)
class EveryRow:
    """The domain of rows of any length: none is scaled."""

    def factors(self, norms):
        """Return what rows of the given norms are multiplied by: 1."""
        return np.ones(len(norms))


def regression_rows(X, y, n_threads=1, weight=None):
    """Admit rows and targets in the units of the data, whatever their length.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Finite; entries beyond 1e140 in magnitude scale their row down.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Targets; NaN for null rows.
    n_threads : int, default=1
        Threads for the sums.
    weight : ndarray of shape (n_rows,) or None
        As for `LinearRows`.

    Returns
    -------
    rows : LinearRows
        Without an intercept, with factors of 1.
    """
    target, null = over_rows(_bounded, y), over_rows(_without_target, y)
    return LinearRows(X, target, null, EveryRow(), 0.0, n_threads, weight)


def _without_target(y):
    """Return which rows have no target, or lack one of several."""
    return np.isnan(y) if y.ndim == 1 else np.isnan(y).any(axis=1)


def _bounded(y):
    """Return targets that floats can work with; 0 for those of null rows."""
    # whether a wider float overflows depends on the data: nobody is to be told
    with np.errstate(over="ignore", under="ignore"):
        target = np.clip(y.astype(np.float64), -LARGEST_TARGET, LARGEST_TARGET)
    target[np.isnan(target)] = 0.0
    return target


# numbers that are standardised at a time
_AT_ONCE = 1 << 16
# entries of standardised columns beyond so many units count as that far: a column may have been
# misjudged; fewer where nothing was seen of a column
_FARTHEST, FARTHEST_UNSEEN = 100.0, 10.0
# a tail has that many units at least
_SHORTEST_TAIL = 8.0


@dataclass(frozen=True, eq=False)
class StandardColumns:
    """Public origins and units of columns.

    Parameters
    ----------
    center, scale : ndarray of shape (n_features,)
        Origins, and units of at least 1e-50.
    seen : ndarray of shape (n_features,), dtype bool
        Of which columns a unit was found; the others have one that is assumed.
    is_sparse : bool
        Whether rows are CSR, and remain so: all origins are 0.
    farthest : float
        How many units from its origin entries of a column may be whose unit was found.
    tail : float or ndarray of shape (n_features,)
        How many units from its origin a column has entries that are no exceptions.
    drops : bool
        Whether entries beyond the tail, in rows to predict for, count as the origin.
    """

    center: Any
    scale: Any
    seen: Any
    is_sparse: bool = False
    farthest: float = _FARTHEST
    tail: Any = _FARTHEST
    drops: bool = False

    @property
    def reach(self):
        """How many units from its origin entries of a column may be."""
        return np.where(self.seen, self.farthest, min(FARTHEST_UNSEEN, self.farthest))

    @property
    def dropped(self):
        """How many units from its origin an entry counts as it; infinite for none."""
        least = np.clip(self.tail, _SHORTEST_TAIL, self.farthest)
        return np.where(self.seen & self.drops, least, np.inf)

    def rows(self, rows):
        """Return rows ``(x - center) / scale`` in float64, a copy; entries beyond the reach as it.

        Parameters
        ----------
        rows : LinearRows
            Rows that `regression_rows` admitted; CSR if `is_sparse`.

        Returns
        -------
        moved : LinearRows
            Every new number is a function of one old number.
        """
        move = partial(_standardized, columns=self)
        if rows.is_streamed or self.is_sparse:
            return rows.mapped(move)
        return moved_rows(rows, move, len(self.center))

    def near(self, X):
        """Return rows to predict for, with entries as `rows` saw those of the fit.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
            Finite.

        Returns
        -------
        near : ndarray or CSR array of shape (n_rows, n_features)
            In the units of the data; CSR where X and the rows of the fit are.
        """
        reach = self.reach * self.scale
        if sparse.issparse(X) and self.is_sparse:
            X = without_duplicates(X)
            far = reach[X.indices]
            near = np.clip(X.data, -far, far), X.indices, X.indptr
            return sparse.csr_array(near, shape=X.shape)
        X = X.toarray() if sparse.issparse(X) else X
        near = np.clip(X, self.center - reach, self.center + reach)
        if not self.drops:
            return near
        with np.errstate(over="ignore"):
            return np.where(np.abs(X - self.center) < self.dropped * self.scale, near, self.center)


def _standardized(chunk, columns, body=None):
    """Return one chunk of standardised rows; `body` is where dense ones are to be stored."""
    rest = chunk.factor, chunk.norm, chunk.target, 0.0, None, chunk.drawn, chunk.weight
    if sparse.issparse(chunk.X):
        X, where, reach = chunk.X, chunk.X.indices, columns.reach
        own = np.empty(len(X.data))
        for part in (slice(start, start + _AT_ONCE) for start in range(0, len(own), _AT_ONCE)):
            _bring(own[part], X.data[part], 0.0, columns.scale[where[part]], reach[where[part]])
        return LinearChunk(sparse.csr_array((own, where, X.indptr), shape=X.shape), *rest)
    body, X = empty_rows(chunk.X.shape) if body is None else body, row_major(chunk.X)
    # one number is compared in half the time
    reach = columns.reach[0] if columns.seen.all() else columns.reach
    # a few rows at a time: they stay in the cache
    step = max(_AT_ONCE // X.shape[1], 1)
    for part in (slice(start, start + step) for start in range(0, len(X), step)):
        _bring(body[part], X[part], columns.center, columns.scale, reach)
    return LinearChunk(body, *rest)


def _bring(numbers, raw, center, scale, reach):
    """Write raw numbers in units about origins, cut to their reach, very small ones as 0."""
    with np.errstate(under="ignore", over="ignore"):
        np.subtract(raw, center, out=numbers)
        numbers /= scale
    np.maximum(numbers, -reach, out=numbers)
    np.minimum(numbers, reach, out=numbers)
    small = np.abs(numbers) < 1 / _LARGEST_UNIT
    if small.any():
        numbers[small] = 0.0


def moved_rows(rows, function, n_features):
    """Return dense rows of which every chunk is written into one array.

    Parameters
    ----------
    rows : LinearRows
        In memory; what was kept for a search is dropped.
    function : callable
        Maps a chunk, and the memory of the rows to be, named `body`, to the new chunk.
    n_features : int
        Number of features of the new rows.
    """
    rows.sought = None, None, None
    # all memory at once: a system that hands it out page by page takes longer than the work
    X, chunks, start = empty_rows((rows.n_rows, n_features)), [], 0
    for chunk in rows.chunks:
        chunks.append(function(chunk, body=X[start : start + len(chunk.norm)]))
        start += len(chunk.norm)
    return rows.with_chunks(chunks, X)


def readmitted(rows, ball, intercept):
    """Return rows that were admitted at any length, clipped into a ball, with a constant feature.

    Parameters
    ----------
    rows : LinearRows
        Rows with factors of 1 and without an intercept.
    ball, intercept : L2Ball, float
        As those of `LinearRows`. Memory of the features is shared.
    """
    return rows.mapped(partial(_readmitted, ball=ball, intercept=intercept))


def _readmitted(chunk, ball, intercept):
    """Return one chunk clipped into a ball."""
    norm = raw_norms(chunk)
    factor = ball.factors(norm)
    norm = np.hypot(norm * factor, intercept)
    norm = usable_norms(norm, np.isinf(chunk.norm))
    rest = intercept, None, chunk.drawn, chunk.weight
    return LinearChunk(chunk.X, factor, norm, chunk.target, *rest)


def unit_rows(rows, radius, longest, intercept, center, scale):
    """Return rows and targets in public units, long rows scaled down with their targets.

    Parameters
    ----------
    rows : LinearRows
        What `regression_rows` admitted.
    radius, longest : float, float
        Unit of length of the features, and the length, in this unit, to which rows are scaled
        down.
    intercept : float
        Constant feature.
    center, scale : float, float
        Origin and unit of the targets.

    Returns
    -------
    moved : LinearRows
        Rows ``s (x / radius, intercept)`` with targets ``s (y - center) / scale``, where s is
        ``min(1, longest radius / |x|)``. Memory of the features is shared.

    Notes
    -----
    A row that is scaled down together with its target has the same residual of zero as before
    at the coefficients that fit it: it counts less, and pulls in no wrong direction. Every new
    number is a function of one old row, to the last bit.
    """
    return rows.mapped(
        partial(
            _in_units,
            radius=radius,
            longest=longest,
            intercept=intercept,
            center=center,
            scale=scale,
        )
    )


def _in_units(chunk, radius, longest, intercept, center, scale):
    """Return one chunk in public units."""
    with np.errstate(under="ignore", over="ignore"):
        length = raw_norms(chunk) / radius
        lift = longest / np.maximum(length, longest)
        factor = lift / radius
        norm = np.hypot(np.minimum(length, longest), intercept * lift)
        target = lift * ((chunk.target - center) / scale)
    norm = usable_norms(norm, np.isinf(chunk.norm))
    target = np.clip(target, -_LARGEST_UNIT, _LARGEST_UNIT)
    rest = intercept, lift, chunk.drawn, chunk.weight
    return LinearChunk(chunk.X, factor, norm, target, *rest)
