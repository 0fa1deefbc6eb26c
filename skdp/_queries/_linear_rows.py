# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private rows of a linear model, in the unit ball, without a copy of the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._domains import row_norms, tame
from skdp._queries._linear_chunk import LinearChunk
from skdp._queries._sums import chunk_rows
from skdp._streams import LazyChunks, RowStream, no_flags, over_rows, together


@dataclass(frozen=True)
class LinearAdmission:
    """How rows become a chunk of `LinearRows`.

    Parameters
    ----------
    ball, intercept : L2Ball, float
        As those of `LinearRows`.
    wide : bool, default=False
        Whether chunks are in float64 at once: those that are made for one use only.
    """

    ball: Any
    intercept: float
    wide: bool = False

    def __call__(self, block):
        """Return the chunk of a block (rows, targets, null flags)."""
        # chunk by chunk: what one row needs leaves the other chunks as they were
        X, target, null = block
        part, broken = tame(X)
        if self.wide or sparse.issparse(part):
            part = part.astype(np.float64, copy=False)
        if not sparse.issparse(part) and part.flags.f_contiguous:
            # few rows of a data frame: products round as they do with other layouts
            part = np.ascontiguousarray(part)
        norm = row_norms(part)
        factor = self.ball.factors(norm)
        norm *= factor
        np.hypot(norm, self.intercept, out=norm)
        norm = usable_norms(norm, null | broken)
        return LinearChunk(part, factor, norm, target, self.intercept)


class LinearRows:
    """Rows of a linear model, admitted into the unit ball.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Never changed and, unless it holds floats that break arithmetic, never copied. A
        stream is read chunk by chunk whenever a chunk is needed, and admitted anew.
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
    """

    #: sorted positions of the rows of a batch; None for all rows
    positions = None

    def __init__(self, X, target, null, ball, intercept, n_threads=1):
        self.n_threads = n_threads
        self._X, self._whole = X, None
        admission = LinearAdmission(ball, intercept, isinstance(X, RowStream))
        self.n_entries, step = chunk_rows(X)
        if isinstance(X, RowStream):
            self.chunks = LazyChunks.cut(X.table, step, (together(X, target, null), admission))
            return
        self.chunks = []
        for start in range(0, X.shape[0], step):
            rows = slice(start, min(start + step, X.shape[0]))
            self.chunks.append(admission((rows_view(X, rows), target[rows], null[rows])))

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
        made._X, made._whole, made.chunks = X, None, chunks
        return made

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
            chosen = self.with_chunks(self.chunks.at(parts), self._X)
        else:
            if self._whole is None:
                self._whole = whole_chunk(self._X, self.chunks)
            n_rows, n_features = self._whole.X.shape
            parts = batch_parts(positions, rate, n_rows, chunk_rows(self._whole.X)[1])
            chosen = self.with_chunks([self._whole.taken(part) for part in parts])
        chosen.n_entries, chosen.positions = len(positions) * n_features, positions
        return chosen

    def batches(self, size):
        """Yield chunks of at most `size` consecutive rows, in float64."""
        for chunk in self.chunks:
            for start in range(0, len(chunk.norm), size):
                yield chunk.taken(slice(start, start + size)).widened()


def ball_rows(X, ball, n_threads=1):
    """Return the rows of X as `LinearRows` without targets and intercept, none of them null."""
    nobody = over_rows(no_flags, X)
    return LinearRows(X, nobody, nobody, ball, 0.0, n_threads)


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


def rows_view(X, rows):
    """Return rows of X that share its memory."""
    if not sparse.issparse(X):
        return X[rows]
    start, stop = X.indptr[rows.start], X.indptr[rows.stop]
    parts = (
        X.data[start:stop],
        X.indices[start:stop],
        X.indptr[rows.start : rows.stop + 1] - start,
    )
    return sparse.csr_array(parts, shape=(rows.stop - rows.start, X.shape[1]), copy=False)
