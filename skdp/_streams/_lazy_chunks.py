# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of private rows that are made when it is their turn."""

from collections.abc import Sequence

from skdp._streams._table import through


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
