# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sums over private rows, accurate enough for their sensitivity to be true.

Proposition. Let every row contribute a vector of norm at most C, and let D and D'
differ in one row that keeps its position. The float64 sums computed here satisfy
``|sum(D) - sum(D')| <= S (1 + 1e-6)``, S >= C being the sensitivity in exact
arithmetic, for up to 2^31 rows.

Proof. u = 2^-53. By the contract of ``skdp/_rows/domains.py`` every row but one contributes
the same floats on D and on D', whatever the loss: a residual that jumps, as that of a hinge
does, jumps on both or on neither. Chunk boundaries depend on the shape of the data alone, so
D and D' share every chunk partial but one. (i) A partial of B rows is rounded, in any order,
by at most B u * (sum of |contributions|) <= B^2 u C; for the two data sets together by
2 B^2 u C <= 2.4e-7 C, for B <= 32768. (ii) A block adds at most 8 partials one after another:
2 * 8 * u * (8 B C) <= 4.7e-10 C. (iii) Blocks are added with compensation: the
error is u |sum| plus terms of order u^2, at most 2 u n C <= 4.8e-7 C. (iv) Clipping
one contribution in floating point errs by (d + 10) u C, under 1e-9 C for d up to 10^6.
The total stays under 1e-6 C; `FLOAT_SLACK` charges it.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
from scipy import sparse

from skdp._rows.streams import RowStream
from skdp._rows.tables import through

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
# below this many entries a second thread costs more than it saves
_ENTRIES_PER_THREAD = 1 << 21


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
    if isinstance(X, RowStream):
        n_entries, is_sparse = X.facts.n_entries, X.facts.is_sparse
    else:
        is_sparse = sparse.issparse(X)
        n_entries = X.nnz if is_sparse else X.size
    return n_entries, SPARSE_CHUNK_ROWS if is_sparse else dense_chunk_rows(X.shape[1])


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
    n_threads = min(rows.n_threads, len(blocks), rows.n_entries // _ENTRIES_PER_THREAD)
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
