# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private rows of a linear model, in the unit ball, without a copy of the data."""

import numpy as np
from scipy import sparse

from skdp._domains import row_norms, tame
from skdp._queries._sums import SPARSE_CHUNK_ROWS, dense_chunk_rows


class LinearChunk:
    """Consecutive rows (f_i x_i, intercept), f_i bringing x_i into the unit ball.

    Without an intercept the last coordinate is absent.
    """

    __slots__ = ("X", "factor", "intercept", "norm", "target")

    def __init__(self, X, factor, norm, target, intercept):
        self.X, self.factor, self.norm, self.target = X, factor, norm, target
        self.intercept = intercept

    def widened(self):
        """Return the chunk in float64, for several products; itself if it is."""
        # chunk by chunk, and never a sum in float32: that would break the sensitivity
        if self.X.dtype == np.float64:
            return self
        X = self.X.astype(np.float64)
        return LinearChunk(X, self.factor, self.norm, self.target, self.intercept)

    def predict(self, coef):
        """Return rows @ coef.T for coef of shape (size,) or (n_outputs, size)."""
        body = coef[..., :-1] if self.intercept else coef
        # X.dot, not the operator: it costs less before it computes, once a chunk
        z = self.X.dot(body.T)
        z *= self.factor if z.ndim == 1 else self.factor[:, None]
        if self.intercept:
            z += self.intercept * coef[..., -1]
        return z

    def combine(self, residual):
        """Return residual.T @ rows, flattened; overwrites the residual."""
        last = self.intercept * residual.sum(axis=0)
        residual *= self.factor if residual.ndim == 1 else self.factor[:, None]
        X = self.X
        body = X.T.dot(residual).T if sparse.issparse(X) else residual.T.dot(X)
        if not self.intercept:
            return body.ravel()
        combined = np.empty((*body.shape[:-1], body.shape[-1] + 1))
        combined[..., :-1], combined[..., -1] = body, last
        return combined.ravel()


class LinearRows:
    """Rows of a linear model, admitted into the unit ball.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Never changed and, unless it holds floats that break arithmetic, never copied.
    target : ndarray of shape (n_rows,)
        Coded as the loss says.
    null : ndarray of shape (n_rows,), dtype bool
        Rows that contribute nothing.
    ball : L2Ball
        Rows are clipped into it and divided by its radius.
    intercept : float
        Constant appended to every row; 0 appends nothing.
    n_threads : int, default=1
        Threads for the sums.
    """

    def __init__(self, X, target, null, ball, intercept, n_threads=1):
        n_rows, n_features = X.shape
        self.n_threads = n_threads
        if sparse.issparse(X):
            self.n_entries, step = X.nnz, SPARSE_CHUNK_ROWS
        else:
            self.n_entries, step = X.size, dense_chunk_rows(n_features)
        self.chunks = []
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            # chunk by chunk: what one row needs leaves the other chunks as they were
            part, broken = tame(_rows_view(X, rows))
            if sparse.issparse(part):
                part = part.astype(np.float64, copy=False)
            norm = row_norms(part)
            factor = ball.factors(norm)
            norm *= factor
            np.hypot(norm, intercept, out=norm)
            # a residual's limit is clip / norm: no limit on a row of zeros, whose
            # gradient is zero, and nothing left of a null row
            np.maximum(norm, 1e-100, out=norm)
            norm[null[rows] | broken] = np.inf
            self.chunks.append(LinearChunk(part, factor, norm, target[rows], intercept))


def _rows_view(X, rows):
    """Return rows of X that share its memory."""
    if not sparse.issparse(X):
        return X[rows]
    start, stop = X.indptr[rows.start], X.indptr[rows.stop]
    parts = (
        X.data[start:stop],
        X.indices[start:stop],
        X.indptr[rows.start : rows.stop + 1] - start,
    )
    return sparse.csr_array(parts, shape=(rows.stop - rows.start, X.shape[1]), copy=False)
