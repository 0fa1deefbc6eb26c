# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What rows outside memory are: something that reads a range of them."""

import threading
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

#: rows that are read at a time where nothing else says how many
READ_ROWS = 1 << 16
#: entries that are read at a time, at most: 64 MiB of numbers
_READ_ENTRIES = 1 << 23


class Table:
    """Rows and, in the same order, targets, that can be read any number of times.

    Subclasses implement ``_read(start, stop)`` and `blocks`.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None as long as nobody has counted them.
    names : tuple of str or None
        Names of the features; known once a row was read.
    """

    n_rows = None
    names = None
    #: number of features; None as long as no row was read
    n_features = None
    #: range that was read last, and its rows: several streams are read from one table
    _last = None
    #: what there is of rows that were kept, if there are none: in copies, and once it is closed
    _blank: ClassVar[dict[str, Any]] = {"_last": None}

    def __new__(cls, *args, **options):
        """Return a table that one thread at a time reads."""
        made = super().__new__(cls)
        made._turn = threading.RLock()
        return made

    def __getstate__(self):
        state = {**vars(self), **self._blank}
        del state["_turn"]
        return state

    @property
    def width(self):
        """Number of rows that are read at a time where nothing else says how many."""
        if not self.n_features:
            return READ_ROWS
        return min(max(_READ_ENTRIES // self.n_features, 1), READ_ROWS)

    def blocks(self):
        """Yield all rows, in order, in pairs (X, y) of any length; y may be None."""
        for start in range(0, self.n_rows, self.width):
            yield self.read(start, min(start + self.width, self.n_rows))

    def _read(self, start, stop):
        raise NotImplementedError

    def read(self, start, stop):
        """Return the rows of a range, a pair (X, y).

        Returns
        -------
        X : ndarray or CSR array of shape (stop - start, n_features)
            In float64 or float32.
        y : ndarray of shape (stop - start,) or None
            Targets as they are stored.
        """
        # two fits in threads may share what is read: rows must not get mixed up
        with self._turn:
            if self._last is None or self._last[0] != (start, stop):
                self._last = None
                self._last = (start, stop), self._read(start, stop)
            return self._last[1]

    def take(self, positions):
        """Return the rows at sorted positions, a pair as of `read`; the whole is never held."""
        if not len(positions):
            return self.read(0, 0)
        n_rows, width = self.count(), self.width
        pieces, first = [], int(positions[0]) // width * width
        for start in range(first, int(positions[-1]) + 1, width):
            low, high = np.searchsorted(positions, [start, start + width])
            if low < high:
                block = self.read(start, min(start + width, n_rows))
                pieces.append(taken(block, positions[low:high] - start))
        return joined(pieces)

    def count(self):
        """Return the number of rows; they are gone through if nobody has counted them."""
        if self.n_rows is None:
            self.n_rows = sum(X.shape[0] for X, _ in self.blocks())
        return self.n_rows

    def close(self):
        """Forget rows that were kept for the next call."""
        with self._turn:
            vars(self).update(self._blank)


def through(steps, block):
    """Return what functions make of a block, one after another."""
    for step in steps:
        block = step(block)
    return block


def taken(block, where):
    """Return some rows of a block, at an index or in a slice, as a pair (X, y)."""
    X, y = block
    return X[where], None if y is None else y[where]


def joined(pieces):
    """Return blocks of rows one after another, as one pair (X, y).

    Parameters
    ----------
    pieces : list of pairs (X, y)
        At least one.

    Returns
    -------
    X, y : ndarray or CSR array, ndarray or None
        Views of the only piece that has rows, if there is one.
    """
    filled = [piece for piece in pieces if piece[0].shape[0]] or pieces[:1]
    if len(filled) == 1:
        return filled[0]
    rows = [X for X, _ in filled]
    X = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)
    return X, None if filled[0][1] is None else np.concatenate([y for _, y in filled])
