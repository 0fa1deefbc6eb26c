# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that are computed range by range from the rows of a table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp._streams._arrays import ArrayTable
from skdp._streams._table import READ_ROWS, through


def rows_of(block):
    """Return the rows of a block, one after another in memory.

    Sums round differently column by column, and whether columns are still in one piece depends
    on where the user's chunks end.
    """
    X = block[0]
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def targets_of(block):
    """Return the targets of a block."""
    return block[1]


def no_flags(X):
    """Return a flag that is not set for every row of X."""
    return np.zeros(X.shape[0], dtype=bool)


class RowStream:
    """Rows, or one number for each, that are read range by range.

    Made by the functions of `skdp.io`, and passed to `fit` in place of an array. It holds
    no rows but those of the range that was read last, until the next `fit` is over.

    Parameters
    ----------
    table : Table
        Where rows are read.
    steps : tuple of callables
        What turns a block of the table into a range of this array, one function after another.
        Each maps every row on its own.
    ndim : int, default=2
        2 for rows, 1 for one number each.
    """

    def __init__(
        self, table: Any, steps: tuple[Callable[[Any], Any], ...] = (rows_of,), ndim: int = 2
    ) -> None:
        self.table, self.steps, self.ndim = table, steps, ndim
        #: what a pass over the rows has found
        self.facts = None
        self._n_features: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and, for rows, of features; rows are counted if need be."""
        if self.ndim == 1:
            return (self.table.count(),)
        if self._n_features is None and len(self.steps) == 1:
            self._n_features = self.table.n_features
        if self._n_features is None:
            first = next(iter(self.table.blocks()), None)
            # without a row nobody knows
            self._n_features = 0 if first is None else self.of(first).shape[1]
        return self.table.count(), self._n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self):
        return f"<RowStream of {'rows' if self.ndim == 2 else 'targets'}>"

    def __array__(self, dtype=None, copy=None):
        """Refuse: rows are not to be brought into memory unasked."""
        raise TypeError(
            "a stream of rows is not an array, and this method needs one. Go through it with "
            "`for block in stream.blocks():`, or load the data if they fit into memory."
        )

    def inspected(self, facts: Any) -> None:
        """Note what a pass over the rows has found; nobody needs to read a row for it again."""
        self.facts, self._n_features = facts, facts.n_features

    def view(self) -> "RowStream":
        """Return another stream of the same array, of which nothing is known yet."""
        return RowStream(self.table, self.steps, self.ndim)

    def map(self, function: Callable[[Any], Any], ndim: int | None = None) -> "RowStream":
        """Return the stream of a function of this one's ranges.

        Parameters
        ----------
        function : callable
            Maps an array of rows to one of as many, every row on its own.
        ndim : int, default=None
            Dimensions of what it returns; None for those of this stream.

        Returns
        -------
        stream : RowStream
            Nothing is computed before it is read.
        """
        made = RowStream(self.table, (*self.steps, function), self.ndim if ndim is None else ndim)
        made.facts = self.facts
        return made

    def of(self, block: Any) -> Any:
        """Return the range of this array that belongs to a block of the table."""
        return through(self.steps, block)

    def read(self, start: int, stop: int) -> Any:
        """Return a range of this array."""
        return self.of(self.table.read(start, stop))

    @property
    def is_mapped(self) -> bool:
        """Whether the whole is an array of numpy already: a memory map, unchanged."""
        return isinstance(self.table, ArrayTable) and self.table.is_mapped

    def whole(self) -> NDArray[Any]:
        """Return the whole array at once; only of memory maps."""
        if not self.is_mapped:
            raise TypeError("only a memory map can be used as a whole.")
        return self.read(0, self.table.count())

    def blocks(self, n_rows: int = READ_ROWS) -> Iterator[Any]:
        """Yield the array in pieces of at most `n_rows` rows, in order.

        Parameters
        ----------
        n_rows : int, default=65536
            Rows of a piece.

        Yields
        ------
        part : ndarray or CSR array
            The rows of one piece, or one number for each.
        """
        total = self.table.count()
        for start in range(0, total, n_rows):
            yield self.read(start, min(start + n_rows, total))


@contextmanager
def kept_meanwhile(*given):
    """Forget the rows that streams have kept for the next call, and close files, at the end."""
    try:
        yield
    finally:
        for part in given:
            if isinstance(part, RowStream):
                part.table.close()


def over_rows(function, X):
    """Return a function of rows, computed now for an array and range by range for a stream."""
    return X.map(function) if isinstance(X, RowStream) else function(X)


@dataclass(frozen=True)
class Together:
    """Ranges of several streams of one table; parameters are their steps."""

    streams: tuple

    def __call__(self, block):
        """Return the ranges that belong to a block of the table."""
        # what streams share is computed once: labels are looked up for codes and for flags
        made, known = [], {}
        for steps in self.streams:
            part, path = block, ()
            for step in steps:
                path += (id(step),)
                if path not in known:
                    known[path] = step(part)
                part = known[path]
            made.append(part)
        return tuple(made)


def together(*streams):
    """Return what maps a block of the table of streams to the ranges of all of them."""
    if any(stream.table is not streams[0].table for stream in streams):
        raise ValueError("streams of different tables cannot be read together.")
    return Together(tuple(stream.steps for stream in streams))
