# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The clipped gradient of a linear model's loss."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity


@dataclass(frozen=True, eq=False)
class ClippedGradient:
    """Sum over rows of the loss gradient, each row's clipped to norm `clip`.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Where the gradient is taken; the intercept, if there is one, comes last.
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    clip : float
        Bound on the Euclidean (for several outputs, Frobenius) norm of one row's
        gradient, intercept included.

    Notes
    -----
    The gradient of a row is the outer product of its residual r and the augmented row
    v, of norm ``|r| |v|``: clipping the residual to norm ``clip / |v|`` clips the
    gradient, and no gradient of a single row is ever formed. Several outputs are
    clipped jointly: one row moves all of them, and one budget pays for all.
    """

    coef: Any
    loss: Any
    clip: float

    @property
    def name(self):
        """What the statistic is."""
        return f"gradient of {type(self.loss).__name__}, clipped to {self.clip:.6g}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.coef.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: clip (zero-out) or 2 clip (replace-one).

        Proof. Every row contributes a vector of norm at most clip. Zero-out removes
        one; replace-one removes one and adds another (triangle inequality). Both are
        attained, by a row at the clipping norm and by two opposite ones.
        """
        if adjacency == "zero-out":
            reach, theorem = self.clip, "a row's clipped gradient has norm <= clip"
        else:
            reach, theorem = 2 * self.clip, "two clipped gradients differ by <= 2 clip"
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * self.clip, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped gradients of a chunk, summed."""
        chunk = chunk.widened()
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        limit = self.clip / chunk.norm
        if residual.ndim == 1:
            np.minimum(residual, limit, out=residual)
            np.maximum(residual, np.negative(limit, out=limit), out=residual)
        else:
            length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
            residual *= (limit / np.maximum(length, limit + 1e-300))[:, None]
        return chunk.combine(residual)

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)
