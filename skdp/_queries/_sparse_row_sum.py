# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sum of rows of the unit ball that have few non-zeros, or no negative entry."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from skdp._domains import without_duplicates
from skdp._queries._linear_rows import ball_rows
from skdp._queries._sums import sum_over
from skdp._queries._top_entries import top_entries
from skdp._streams import over_rows
from skdp.privacy import Sensitivity


def sparse_rows(X, ball, sparsity=None, nonnegative=False, n_threads=1):
    """Return rows that are forced into the domain of `SparseRowSum`.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Private rows; never changed. Sparse ones never become dense.
    ball : L2Ball
        Rows are clipped into it and divided by its radius.
    sparsity : int or None, default=None
        Rows keep their largest entries, at most so many.
    nonnegative : bool, default=False
        Whether negative entries are dropped, before anything else.
    n_threads : int, default=1
        Threads for the sums.

    Returns
    -------
    rows : LinearRows
        Without an intercept. A row that is not finite is null.
    """
    if nonnegative:
        X = over_rows(_without_negatives, X)
    return ball_rows(top_entries(X, sparsity), ball, n_threads)


def _without_negatives(X):
    """Return rows in which negative entries are zero."""
    if not sparse.issparse(X):
        return _dropped(X)
    # a new array, which remembers nothing about the format of the old one
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    # what is stored in parts has the sign of their sum
    X = without_duplicates(X)
    return sparse.csr_array((_dropped(X.data), X.indices, X.indptr), shape=X.shape)


def _dropped(values):
    kept = np.maximum(values, 0)
    # not a number that could be dropped: its row is not finite
    kept[np.isneginf(values)] = np.nan
    return kept


@dataclass(frozen=True)
class SparseRowSum:
    """Sum of rows in the unit ball, of which public facts lower the sensitivity.

    Parameters
    ----------
    n_features : int
        Dimension d.
    sparsity : int or None, default=None
        No row has more non-zero entries; None for any number.
    nonnegative : bool, default=False
        Whether no row has a negative entry.
    """

    n_features: int
    sparsity: int | None = None
    nonnegative: bool = False

    @property
    def name(self):
        """What the statistic is."""
        signs = "non-negative " if self.nonnegative else ""
        limit = "" if self.sparsity is None else f" with at most {self.n_nonzeros} non-zeros"
        return f"sum of {signs}rows in the unit ball{limit}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    @property
    def n_nonzeros(self):
        """Most non-zero entries of a row."""
        return self.n_features if self.sparsity is None else min(self.sparsity, self.n_features)

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities.

        Proof. A row z has ``|z|_2 <= 1`` and at most s non-zeros, so ``|z|_1 <= sqrt(s)``
        (Cauchy-Schwarz). Zero-out removes one row. Under replace-one,
        ``|z - z'|_2^2 <= 2 - 2 <z, z'>``, which is at most 4, and at most 2 if no entry is
        negative, for then ``<z, z'> >= 0``. ``|z - z'|_1`` is at most ``2 sqrt(s)`` and,
        there being d coordinates, at most sqrt(d) times the l2 norm.
        """
        bound, root = float(n_rows), math.sqrt(self.n_nonzeros)
        if adjacency == "zero-out":
            return Sensitivity(l1=root, l2=1.0, bound=bound, theorem="norm of the longest row")
        l2 = math.sqrt(2.0) if self.nonnegative else 2.0
        l1 = min(2.0 * root, math.sqrt(self.n_features) * l2)
        theorem = "rows at a right angle" if self.nonnegative else "opposite rows"
        return Sensitivity(l1=l1, l2=l2, bound=bound, theorem=theorem)

    def partial(self, chunk):
        """Return the sum of a chunk's rows."""
        return chunk.combine(np.isfinite(chunk.norm).astype(np.float64))

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)
