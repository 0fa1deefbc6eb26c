# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that come in chunks of any length, from the first to the last."""

from typing import Any, ClassVar

from skdp._streams._blocks import as_block, names_of
from skdp._streams._table import Table, joined, taken


class ChunkTable(Table):
    """Rows that are iterated over, as often as they are needed.

    Parameters
    ----------
    make : callable
        Returns a fresh iterator over the chunks, pairs (X, y), where y may be None; the same
        rows every time.
    n_rows : int, default=None
        Number of rows, if it is known; otherwise they are counted when they are inspected.

    Notes
    -----
    Where chunks end is of no consequence: rows are put together anew, into ranges that depend
    on their number alone. Otherwise a row could shift the boundaries of sums, and rounding
    would depend on it.
    """

    _blank: ClassVar[dict[str, Any]] = {"_last": None, "_source": None, "_rest": None, "_passed": 0}

    def __init__(self, make, n_rows=None):
        self._make, self.n_rows = make, n_rows
        self._columns = None
        vars(self).update(self._blank)

    def blocks(self):
        """Yield chunks as they come; those without rows are left out."""
        chunks = self._make()
        try:
            for X, y in chunks:
                block = self._checked(X, y)
                if block[0].shape[0]:
                    yield block
        finally:
            # files that an iterator has opened are not left to the garbage collector
            if hasattr(chunks, "close"):
                chunks.close()

    def _checked(self, X, y):
        names = names_of(X)
        X, y = as_block(X, y)
        columns = names, X.shape[1]
        if X.shape[0] and self._columns is None:
            self._columns, self.names, self.n_features = columns, names, X.shape[1]
        if X.shape[0] and columns != self._columns:
            raise ValueError(
                "the chunks must have the same features: one has "
                f"{_described(*self._columns)}, another {_described(*columns)}."
            )
        return X, y

    def _read(self, start, stop):
        try:
            return self._next_range(start, stop)
        except BaseException:
            # an iterator that has raised has ended: the next one begins anew
            self._stop()
            raise

    def _next_range(self, start, stop):
        if self._source is None or start < self._passed:
            self.close()
            self._source = self.blocks()
        pieces = []
        while not pieces or self._passed < stop:
            block = self._rest or self._next()
            n_rows = block[0].shape[0]
            low, high = (min(max(at - self._passed, 0), n_rows) for at in (start, stop))
            pieces.append(taken(block, slice(low, high)))
            self._passed += high
            self._rest = taken(block, slice(high, None)) if high < n_rows else None
        if stop == self.n_rows:
            self._end()
        return joined(pieces)

    def _next(self):
        block = next(self._source, None)
        if block is None:
            raise ValueError(
                "the chunks ended early: they must give the same rows every time that they are "
                "iterated over."
            )
        return block

    def _end(self):
        """Raise if there are more rows than there should be, and close the iterator."""
        more = self._rest is not None or next(self._source, None) is not None
        self._stop()
        if more:
            raise ValueError(
                "there are more rows in the chunks than before: they must give the same rows "
                "every time that they are iterated over."
            )

    def _stop(self):
        if self._source is not None:
            self._source.close()
        self._source, self._rest, self._passed = None, None, 0

    def close(self):
        """Forget the iterator and the rows that were kept."""
        # another fit may be reading
        with self._turn:
            self._stop()
            super().close()


def _described(names, n_features):
    return f"{n_features} features" + ("" if names is None else f" named {list(names)}")
