# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The hinge loss, for one output and for several."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp._losses._smooth import LogisticLoss, SoftmaxLoss, shortfalls


@dataclass(frozen=True)
class HingeLoss:
    """(1 - t z)_+ for one output, max(0, 1 + max_{k != t} z_k - z_t) for several.

    The latter is Crammer and Singer's. A residual is a subgradient: 0 at the kink, and
    the first index of a tie.

    Parameters
    ----------
    n_outputs : int, default=1
        1 (two classes) or the number of classes.
    """

    n_outputs: int = 1
    margin: ClassVar[float] = 1.0
    temperature: ClassVar[float] = 0.0
    smoothness: ClassVar[float] = math.inf
    smoothness_l1: ClassVar[float] = math.inf
    trace: ClassVar[float] = math.inf
    #: there is no second derivative to be determined
    tied: ClassVar[bool] = False

    @property
    def lipschitz(self):
        """Bound on the norm of a residual."""
        return 1.0 if self.n_outputs == 1 else math.sqrt(2.0)

    @property
    def lipschitz_l1(self):
        """Bound on the l1 norm of a residual."""
        return 1.0 if self.n_outputs == 1 else 2.0

    @property
    def corners(self):
        """Number of extreme points of the set of residuals of one row, zero not counted."""
        return max(1, self.n_outputs - 1)

    def encode(self, codes):
        """Return the targets of class codes: -1 and +1, or 0, ..., n_outputs - 1."""
        return 2.0 * codes - 1.0 if self.n_outputs == 1 else codes

    def smoothed(self, temperature):
        """Return the smooth loss above this one, by at most temperature log(n_classes)."""
        if self.n_outputs == 1:
            return LogisticLoss(1.0, temperature)
        return SoftmaxLoss(self.n_outputs, 1.0, temperature)

    def value(self, z, target):
        """Return the loss of every row."""
        if self.n_outputs == 1:
            return np.maximum(1.0 - target * z, 0.0)
        return shortfalls(z, target, 1.0).max(axis=1)

    def residual(self, z, target):
        """Return a subgradient in z; overwrites z."""
        if self.n_outputs == 1:
            np.multiply(-target, target * z < 1.0, out=z)
            return z
        short = shortfalls(z, target, 1.0)
        rows, worst = np.arange(len(z)), short.argmax(axis=1)
        active = short[rows, worst] > 0.0
        z[:] = 0.0
        z[rows, worst] = active
        z[rows, target] -= active
        return z

    def curvature(self, z, target):
        """Return the second derivatives where there are any: zeros."""
        return np.zeros(z.shape)

    def conjugate_gap(self, z, residual, target):
        """Return loss + conjugate of the residual - <residual, z> of every row, >= 0.

        Notes
        -----
        Written as a sum of terms >= 0, which cancel nothing.
        """
        if self.n_outputs == 1:
            size = np.clip(-target * residual, 0.0, 1.0)
            short = 1.0 - target * z
            return np.where(short > 0.0, 1.0 - size, -size) * short
        s = residual.copy()
        s[np.arange(len(s)), target] += 1.0
        short = shortfalls(z, target, 1.0)
        return np.einsum("ij,ij->i", s, short.max(axis=1, keepdims=True) - short)
