# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private rows as they are, for statistics that treat every feature on its own."""

import numpy as np
from scipy import sparse

from skdp._domains import without_duplicates
from skdp._queries._row_chunks import chunks_of
from skdp._queries._sums import chunk_rows

#: all columns, in their order
EVERY = slice(None)


class DenseChunk:
    """Consecutive rows that are not null."""

    __slots__ = ("X",)

    def __init__(self, X):
        self.X = X

    def sums(self, contributions):
        """Return the sums over rows of every contribution, one after another.

        Parameters
        ----------
        contributions : callable
            Maps values, and the columns they stand in, to a list of arrays of their shape.
            Columns are what an array with an entry per feature is to be indexed with.

        Returns
        -------
        sums : ndarray of shape (n_contributions * n_features,), float64
        """
        parts = contributions(self.X.astype(np.float64, copy=False), EVERY)
        return np.concatenate([part.sum(axis=0) for part in parts]).astype(np.float64)


class SparseChunk:
    """Consecutive rows that are not null, CSR: an entry that is not stored is 0."""

    __slots__ = ("X", "missing")

    def __init__(self, X):
        self.X = X
        # how many zeros every column has that are not stored
        self.missing = X.shape[0] - np.bincount(X.indices, minlength=X.shape[1])

    def sums(self, contributions):
        """Return what `DenseChunk.sums` does, without the zeros ever being written down."""
        columns, n_features = self.X.indices, self.X.shape[1]
        stored = contributions(self.X.data.astype(np.float64, copy=False), columns)
        others = contributions(np.zeros(n_features), EVERY)
        return np.concatenate(
            [
                np.bincount(columns, part, n_features) + self.missing * other
                for part, other in zip(stored, others, strict=True)
            ]
        )


def feature_chunk(block):
    """Return the chunk of a block (rows,), or (rows, null flags)."""
    X, *null = block
    is_sparse = sparse.issparse(X)
    # of these rows alone: what a matrix remembers of itself may be out of date, and a value
    # that is stored twice would count twice
    if is_sparse:
        X = without_duplicates(X)
    # cut before null rows are dropped: the chunks of neighbours have the same rows
    if null and null[0].any():
        X = X[~null[0]]
    return SparseChunk(X) if is_sparse else DenseChunk(X)


class FeatureRows:
    """Rows as they are, in chunks.

    What becomes of a value, NaN included, is for the query to say; it may depend on
    nothing but that value and public constants.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStream of shape (n_rows, n_features)
        Never changed, and not copied but for chunks with null rows and those of CSR matrices
        with duplicate entries, which are added up. A stream is read chunk by chunk whenever
        a chunk is needed.
    null : ndarray or RowStream of shape (n_rows,), dtype bool, default=None
        Rows that contribute nothing; None for no row.
    n_threads : int, default=1
        Threads for the sums.
    """

    def __init__(self, X, null=None, n_threads=1):
        self.n_threads = n_threads
        self.n_entries, _ = chunk_rows(X)
        self.chunks = chunks_of(feature_chunk, *((X,) if null is None else (X, null)))
