# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a memory map, or of another array on disk that is read by slices."""

from typing import Any, ClassVar

import numpy as np

from skdp._streams._blocks import as_block
from skdp._streams._table import Table, joined, taken

#: bytes of a memory map from which on it is read range by range
LARGE = 1 << 28


class ArrayTable(Table):
    """Rows of arrays that need not be in memory.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Anything with a `shape` that slices of rows can be taken of: memory maps, HDF5 and Zarr
        arrays.
    y : array of shape (n_rows,), default=None
        Targets, likewise.
    """

    _blank: ClassVar[dict[str, Any]] = {"_last": None, "_kept": None}

    def __init__(self, X, y=None):
        self.n_rows = int(X.shape[0])
        if y is not None and y.shape[0] != self.n_rows:
            raise ValueError(
                f"X and y must have the same number of rows; got {self.n_rows} and {y.shape[0]}."
            )
        # memory maps as the arrays that they are: a slice of one costs much more
        self.X, self.y = (np.asarray(a) if isinstance(a, np.ndarray) else a for a in (X, y))
        self.n_features = int(X.shape[1]) if len(X.shape) == 2 else None
        self._kept = None

    def _read(self, start, stop):
        if self.is_mapped:
            return self._at(slice(start, stop))
        # what is stored in compressed chunks is unpacked once a pass, not once a range
        width, pieces = self.width, []
        for first in range(start // width * width, max(stop, start + 1), width):
            if self._kept is None or self._kept[0] != first:
                self._kept = None
                self._kept = first, self._at(slice(first, min(first + width, self.n_rows)))
            rows = slice(max(start - first, 0), max(stop - first, 0))
            pieces.append(taken(self._kept[1], rows))
        return joined(pieces)

    def _at(self, rows):
        X = np.asarray(self.X[rows])
        return as_block(X, None if self.y is None else np.asarray(self.y[rows]))

    def take(self, positions):
        """Return the rows at sorted positions; of arrays of numpy these alone are read."""
        return self._at(positions) if self.is_mapped else super().take(positions)

    @property
    def width(self):
        """Number of rows that are read at a time: whole chunks, if the rows are stored in some."""
        width, stored = super().width, getattr(self.X, "chunks", None)
        if not (isinstance(stored, tuple) and stored and isinstance(stored[0], int)):
            return width
        return max(width // stored[0], 1) * max(stored[0], 1)

    @property
    def is_mapped(self):
        """Whether the rows are an array of numpy, of which any part can be taken."""
        return all(isinstance(part, np.ndarray | None) for part in (self.X, self.y))


def is_large_memmap(X):
    """Whether X is a memory map that is large enough to be read range by range."""
    mapped = isinstance(X, np.memmap) and X.filename is not None
    return mapped and X.ndim == 2 and X.nbytes >= LARGE
