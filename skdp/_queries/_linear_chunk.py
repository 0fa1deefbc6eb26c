# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Consecutive rows of a linear model, and products with them."""

import numpy as np
from scipy import sparse


class LinearChunk:
    """Rows (f_i x_i, intercept), f_i bringing x_i into the unit ball.

    Without an intercept the last coordinate is absent; with a `lift`, one number per row,
    it is ``lift_i intercept``.
    """

    __slots__ = ("X", "factor", "intercept", "lift", "norm", "peak", "rotated", "target")

    def __init__(self, X, factor, norm, target, intercept, lift=None):
        self.X, self.factor, self.norm, self.target = X, factor, norm, target
        self.intercept, self.lift = intercept, lift
        # kept by queries that ask for them again and again
        self.rotated = self.peak = None

    def widened(self):
        """Return the chunk in float64, for several products; itself if it is."""
        # chunk by chunk, and never a sum in float32: that would break the sensitivity
        if self.X.dtype == np.float64:
            return self
        X = self.X.astype(np.float64)
        return LinearChunk(X, self.factor, self.norm, self.target, self.intercept, self.lift)

    def largest_entries(self):
        """Return the largest magnitude in every row, at least 1e-100; infinite for null rows."""
        if self.peak is None:
            X = self.X
            if sparse.issparse(X):
                peak, filled = np.zeros(X.shape[0]), np.diff(X.indptr) > 0
                peak[filled] = np.maximum.reduceat(np.abs(X.data), X.indptr[:-1][filled])
            else:
                peak = np.maximum(X.max(axis=1), -X.min(axis=1)).astype(np.float64)
            lift = 1.0 if self.lift is None else np.abs(self.lift)
            peak = np.maximum(peak * self.factor, abs(self.intercept) * lift)
            self.peak = np.where(np.isinf(self.norm), np.inf, np.maximum(peak, 1e-100))
        return self.peak

    def predict(self, coef):
        """Return rows @ coef.T for coef of shape (size,) or (n_outputs, size)."""
        body = coef[..., :-1] if self.intercept else coef
        # X.dot, not the operator: it costs less before it computes, once a chunk
        z = self.X.dot(body.T)
        z *= self.factor if z.ndim == 1 else self.factor[:, None]
        if self.intercept and self.lift is None:
            z += self.intercept * coef[..., -1]
        elif self.intercept:
            z += np.multiply.outer(self.intercept * self.lift, coef[..., -1])
        return z

    def combine(self, residual):
        """Return residual.T @ rows, flattened; overwrites the residual."""
        last = residual.sum(axis=0) if self.lift is None else self.lift @ residual
        last = self.intercept * last
        residual *= self.factor if residual.ndim == 1 else self.factor[:, None]
        X = self.X
        body = X.T.dot(residual).T if sparse.issparse(X) else residual.T.dot(X)
        if not self.intercept:
            return body.ravel()
        combined = np.empty((*body.shape[:-1], body.shape[-1] + 1))
        combined[..., :-1], combined[..., -1] = body, last
        return combined.ravel()

    def explicit(self):
        """Return the rows themselves, a fresh (n_rows, size) ndarray or CSR array, float64."""
        if sparse.issparse(self.X):
            body = sparse.csr_array(self.X).multiply(self.factor[:, None]).tocsr()
            if not self.intercept:
                return body
            column = np.full((body.shape[0], 1), float(self.intercept))
            column *= 1.0 if self.lift is None else self.lift[:, None]
            return sparse.hstack([body, sparse.csr_array(column)], format="csr")
        rows = np.empty((self.X.shape[0], self.X.shape[1] + bool(self.intercept)))
        np.multiply(self.X, self.factor[:, None], out=rows[:, : self.X.shape[1]])
        if self.intercept:
            rows[:, -1] = self.intercept if self.lift is None else self.intercept * self.lift
        return rows

    def taken(self, index):
        """Return the chunk of the rows of an integer index, or of a slice."""
        return LinearChunk(
            self.X[index],
            self.factor[index],
            self.norm[index],
            self.target[index],
            self.intercept,
            None if self.lift is None else self.lift[index],
        )

    def weighted_gram(self, weights):
        """Return the sum of weights_i v_i v_i' over the rows v_i, of shape (size, size).

        Parameters
        ----------
        weights : ndarray of shape (n_rows,)
            Not negative. Rows of weight zero cost nothing.

        Returns
        -------
        gram : ndarray of shape (size, size)
            In float64, symmetric.
        """
        used = np.flatnonzero(weights)
        if 2 * len(used) < len(weights):
            return self.taken(used).weighted_gram(weights[used])
        # the root on both sides: half the work, and symmetric to the last bit
        root = np.sqrt(weights)
        rows = self.explicit()
        if sparse.issparse(rows):
            rows.data *= np.repeat(root, np.diff(rows.indptr))
            return (rows.T @ rows).toarray()
        rows *= root[:, None]
        return rows.T @ rows
