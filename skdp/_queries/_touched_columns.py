# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sums over the columns that rows touch, of dictionaries that are not known beforehand."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from skdp._queries._sparse_row_sum import SparseRowSum
from skdp._queries._sums import sum_over
from skdp.privacy import SparseSensitivity

# columns of chunks that are held before they are put together
_WAITING = 1 << 20


def entries(chunk):
    """Return the columns and values of a chunk's non-zero entries, row by row.

    Parameters
    ----------
    chunk : LinearChunk
        Rows without an intercept. Null rows have no entries.

    Returns
    -------
    columns, values : ndarray of int64, ndarray of float64
        Whether an entry is one depends on its row alone: not on sums, in which entries may
        cancel, and not on what a format stores.
    """
    X = chunk.X
    if sparse.issparse(X):
        row, columns, values = (
            np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)),
            X.indices,
            X.data,
        )
    else:
        row, columns = np.nonzero(X)
        values = X[row, columns]
    values = values.astype(np.float64, copy=False) * chunk.factor[row]
    kept = (values != 0) & np.isfinite(chunk.norm)[row]
    return columns[kept].astype(np.int64, copy=False), values[kept]


def _distinct(columns):
    """Return the distinct columns, sorted; by a sort, which beats a hash of so many."""
    columns = np.sort(columns)
    return columns[np.diff(columns, prepend=-1) > 0]


def _touched(chunks):
    """Return the distinct columns of the entries of all chunks, sorted."""
    columns, waiting, n_waiting = np.empty(0, dtype=np.int64), [], 0
    for chunk in chunks:
        waiting.append(_distinct(entries(chunk)[0]))
        n_waiting += len(waiting[-1])
        # often enough for memory, seldom enough for time
        if n_waiting > max(len(columns), _WAITING):
            columns, waiting, n_waiting = _distinct(np.concatenate([columns, *waiting])), [], 0
    return _distinct(np.concatenate([columns, *waiting]))


@dataclass(frozen=True)
class TouchedColumnSum(SparseRowSum):
    """Sum of rows in the unit ball, over the columns in which some row is not zero.

    Parameters
    ----------
    n_features : int
        Dimension d; may be far more than memory holds.
    sparsity : int
        No row has more non-zero entries.
    nonnegative : bool, default=False
        Whether no row has a negative entry.
    """

    @property
    def name(self):
        """What the statistic is."""
        return super().name + ", over the columns that are touched"

    def sensitivity(self, adjacency, n_rows):
        """State what a row can do to the sums, and how many columns it can touch.

        Proof. Norms are those of `SparseRowSum`. A row touches a column if it has a non-zero
        there, so at most `n_nonzeros` columns. A sum over a column that neither of two
        neighbours' rows touches is a sum of the same floats in the same order: equal to
        the last bit, so that rounding to the grid cannot part them.
        """
        facts = super().sensitivity(adjacency, n_rows)
        return SparseSensitivity(
            **{**vars(facts), "theorem": f"{facts.theorem}; a row touches few columns"},
            rows=1 if adjacency == "zero-out" else 2,
            columns=self.n_nonzeros,
            nonnegative=self.nonnegative,
        )

    def evaluate(self, rows):
        """Return the touched columns, sorted, and the sums over them."""
        columns = _touched(rows.chunks)

        def partial(chunk):
            where, values = entries(chunk)
            place = np.searchsorted(columns, where)
            # of no entries numpy returns integers, to which no later chunk could be added
            return np.bincount(place, values, len(columns)).astype(np.float64, copy=False)

        return columns, sum_over(rows, partial, len(columns))
