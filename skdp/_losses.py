# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Pointwise losses of a linear predictor.

Shape convention, here and in every query and solver. A raw prediction is an array
`z` of shape (n_rows,) for one output and (n_rows, n_outputs) for several; a
residual, the derivative of the loss in `z`, has the shape of `z`. A target is
coded as the loss says.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class LogisticLoss:
    """log(1 + exp(-t z)), targets t in {-1, +1}, one output."""

    n_outputs: ClassVar[int] = 1
    #: bound on the norm of a residual
    lipschitz: ClassVar[float] = 1.0
    #: bound on the largest eigenvalue of the Hessian in z
    smoothness: ClassVar[float] = 0.25

    def encode(self, codes):
        """Return the targets of class codes 0 and 1."""
        return 2.0 * codes - 1.0

    def residual(self, z, target):
        """Return the derivative in z; overwrites z.

        Notes
        -----
        expit(z) - (t + 1)/2 = (tanh(z/2) - t)/2; tanh is vectorised and cannot overflow.
        """
        z *= 0.5
        np.tanh(z, out=z)
        z -= target
        z *= 0.5
        return z


@dataclass(frozen=True)
class SoftmaxLoss:
    """-log softmax(z)_t, targets t in {0, ..., n_outputs - 1}.

    The residual is softmax(z) - e_t, of norm at most sqrt(2); the Hessian in z,
    diag(s) - s s', has no eigenvalue above 1/2.

    Parameters
    ----------
    n_outputs : int
        Number of classes.
    """

    n_outputs: int
    lipschitz: ClassVar[float] = math.sqrt(2.0)
    smoothness: ClassVar[float] = 0.5

    def encode(self, codes):
        """Return the targets of class codes 0, ..., n_outputs - 1."""
        return codes

    def residual(self, z, target):
        """Return the derivative in z; overwrites z."""
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        z[np.arange(len(z)), target] -= 1.0
        return z
