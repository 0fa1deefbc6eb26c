# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Vectors that rows of a linear model report: gradients, and roots of curvature."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class GradientVectors:
    """Gradient of every row's loss, in units of the longest one.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Where gradients are taken; the intercept, if there is one, comes last.
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    longest : float
        Bound on the norm of a gradient: that of the residual times that of a row.

    Notes
    -----
    The gradient of a row is the outer product of its residual and the row, intercept included;
    several outputs are one vector, reported once. The penalty is public and has no part in it.
    """

    coef: Any
    loss: Any
    longest: float

    @property
    def name(self):
        """What is reported."""
        return f"gradients of {type(self.loss).__name__}"

    def vectors(self, chunk):
        """Return the gradients of a chunk of `LinearRows`, zeros for null rows."""
        chunk = _row_by_row(chunk)
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        residual[np.isinf(chunk.norm)] = 0.0
        residual /= self.longest
        return _outer(residual, chunk)


@dataclass(frozen=True, eq=False)
class CurvatureVectors:
    """The row, times the root of its loss's second derivative, in units of the longest.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,)
        Where the derivative is taken.
    loss : LogisticLoss
        Pointwise loss with one output.
    longest : float
        Bound on the norm: the root of the largest second derivative times that of a row.

    Notes
    -----
    The second moment of these vectors is the Hessian of the mean loss, over ``longest**2``.
    """

    coef: Any
    loss: Any
    longest: float

    @property
    def name(self):
        """What is reported."""
        return f"roots of curvature of {type(self.loss).__name__}"

    def vectors(self, chunk):
        """Return the vectors of a chunk of `LinearRows`, zeros for null rows."""
        chunk = _row_by_row(chunk)
        root = np.sqrt(self.loss.curvature(chunk.predict(self.coef), chunk.target))
        root[np.isinf(chunk.norm)] = 0.0
        root /= self.longest
        return _outer(root, chunk)


def _row_by_row(chunk):
    """Return the chunk in float64 and in row order, itself if it is.

    How a product along a row is rounded depends on the layout, which one awkward row changes for
    its whole chunk.
    """
    chunk = chunk.widened()
    if sparse.issparse(chunk.X) or chunk.X.flags.c_contiguous:
        return chunk
    whole = chunk.taken(slice(None))
    whole.X = np.ascontiguousarray(chunk.X)
    return whole


def _outer(factors, chunk):
    """Return, for every row, its factor or factors times the row, as one vector."""
    rows = chunk.explicit()
    rows = rows.toarray() if sparse.issparse(rows) else rows
    # whether a product underflows depends on the data: nobody is to be told
    with np.errstate(under="ignore"):
        if factors.ndim == 1:
            rows *= factors[:, None]
            return rows
        return (factors[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
