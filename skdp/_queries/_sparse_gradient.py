# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The clipped gradient of a linear model's loss, in the columns that a batch touches."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skdp._queries._gradient import ClippedGradient
from skdp._queries._linear_chunk import LinearChunk
from skdp._queries._sums import sum_over


class TouchedRows:
    """Rows cut down to the columns in which they have entries."""

    def __init__(self, chunks, n_threads):
        self.chunks, self.n_threads = chunks, n_threads
        self.n_entries = sum(chunk.X.nnz for chunk in chunks)


@dataclass(frozen=True, eq=False)
class SparseGradient:
    """Sum over rows of the clipped loss gradient, for rows with few entries.

    Parameters
    ----------
    n_coefs : int
        Number of coefficients of one output, an intercept included.
    loss : object
        Pointwise loss.
    clip : float
        Bound on the Euclidean (for several outputs, Frobenius) norm of one row's
        gradient, intercept included.
    intercept : bool
        Whether the last coefficient is an intercept: every batch touches it, even an empty
        one, and it does not decay.
    step, decay : float, float
        A point is ``-step`` times the sums ``u_t = decay (u_{t-1} + gradient)``.

    Notes
    -----
    The gradient is `ClippedGradient`: there is one clipping in the library. What is
    different is who sees it. Which columns a batch touches says what is in its rows: it is for
    the curator's `descend` alone, which adds noise to all the other columns as well.
    """

    n_coefs: int
    loss: Any
    clip: float
    intercept: bool
    step: float
    decay: float
    #: noise of several steps is drawn at once, which has no exact discrete form
    idealised: ClassVar[bool] = True

    @property
    def name(self):
        """What the statistic is."""
        return f"unpublished gradient of {type(self.loss).__name__}, clipped to {self.clip:.6g}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_coefs * self.loss.n_outputs

    @property
    def shape(self):
        """Numbers of columns and of outputs."""
        return self.n_coefs, self.loss.n_outputs

    @property
    def n_free(self):
        """Number of columns at the end that do not decay."""
        return int(self.intercept)

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: clip (zero-out) or 2 clip (replace-one).

        Proof. It is that of `ClippedGradient` at the same point: in all columns but those
        touched the gradient is zero.
        """
        return self._gradient(np.zeros(0)).sensitivity(adjacency, n_rows)

    def _gradient(self, coef):
        return ClippedGradient(coef, self.loss, self.clip)

    def touched(self, rows):
        """Return the sorted columns in which rows have entries, and rows of these columns.

        Parameters
        ----------
        rows : LinearRows
            A batch, sparse or dense.

        Returns
        -------
        columns : ndarray of shape (n_touched,)
            An intercept is the last.
        touched : TouchedRows
            The same rows, the other columns left out.
        """
        parts = [_entries(chunk.widened().X) for chunk in rows.chunks]
        columns, place = np.unique(
            np.concatenate([part.indices for part in parts]), return_inverse=True
        )
        ends = np.cumsum([part.nnz for part in parts])[:-1]
        chunks = []
        for chunk, part, local in zip(rows.chunks, parts, np.split(place, ends), strict=True):
            X = sparse.csr_array(
                (part.data, local, part.indptr), shape=(part.shape[0], len(columns))
            )
            chunks.append(LinearChunk(X, chunk.factor, chunk.norm, chunk.target, chunk.intercept))
        if self.intercept:
            columns = np.append(columns, self.n_coefs - 1)
        return columns, TouchedRows(chunks, rows.n_threads)

    def evaluate_at(self, part, values):
        """Return the gradient in the columns of `touched`.

        Parameters
        ----------
        part : TouchedRows
            What `touched` returned.
        values : ndarray of shape (n_touched, n_outputs)
            The sums in these columns.

        Returns
        -------
        gradient : ndarray of shape (n_touched, n_outputs)
            The sum over rows.
        """
        coef = -self.step * values.T
        if self.loss.n_outputs == 1:
            coef = coef[0]
        total = sum_over(part, self._gradient(coef).partial, values.size)
        return total.reshape(values.shape[::-1]).T


def _entries(X):
    """Return rows as a CSR array without stored zeros; never changes them."""
    if sparse.issparse(X) and not np.all(X.data):
        X = X.copy()
        X.eliminate_zeros()
    return sparse.csr_array(X)
