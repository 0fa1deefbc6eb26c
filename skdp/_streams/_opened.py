# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The streams of whatever `fit` was given."""

import numpy as np

from skdp._streams._arrays import ArrayTable, is_large_memmap
from skdp._streams._stream import RowStream, targets_of
from skdp._streams._table import Table


def is_streamed(X):
    """Whether rows are to be read range by range rather than held in memory."""
    return isinstance(X, RowStream) or is_large_memmap(X) or is_dask(X)


def is_dask(X):
    """Whether X is a collection of dask; nothing is imported to find out."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr", "distributed")


def opened(X, y=None):
    """Return the streams of rows and targets.

    Parameters
    ----------
    X : RowStream, memory map or dask collection
        Rows.
    y : array-like, RowStream or dask collection, default=None
        Targets.

    Returns
    -------
    X, y : RowStream, RowStream or None
        Both of one table.
    """
    if isinstance(X, RowStream) and (y is None or getattr(y, "table", None) is X.table):
        # views: what a fit finds out is not written on what the user has
        return X.view(), None if y is None else y.view()
    if is_dask(X):
        from skdp._streams._cluster import cluster_table

        table = cluster_table(X, y)
    elif isinstance(y, RowStream) and not isinstance(X, RowStream):
        raise TypeError("y is a stream of rows: X must be one, too.")
    elif isinstance(X, RowStream):
        table = PairTable(X, y if isinstance(y, RowStream) else np.asarray(y))
    else:
        table = ArrayTable(X, None if y is None else np.asanyarray(y))
    return RowStream(table), None if y is None else RowStream(table, (targets_of,), 1)


class PairTable(Table):
    """Rows of one stream with the targets of another, or of an array.

    Parameters
    ----------
    X : RowStream
        Rows.
    y : RowStream or ndarray of shape (n_rows,)
        Targets.
    """

    def __init__(self, X, y):
        self._X, self._y = X, y
        (self.n_rows, self.n_features), self.names = X.shape, X.table.names
        if y.shape[0] != self.n_rows:
            raise ValueError(
                f"X and y must have the same number of rows; got {self.n_rows} and {y.shape[0]}."
            )

    def _read(self, start, stop):
        y = self._y
        y = y.read(start, stop) if isinstance(y, RowStream) else y[start:stop]
        return self._X.read(start, stop), y

    def close(self):
        """Forget rows that were kept for the next call."""
        super().close()
        for part in (self._X, self._y):
            if isinstance(part, RowStream):
                part.table.close()
