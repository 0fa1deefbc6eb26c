# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The loss of quantiles, the absolute error among them."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp._losses._kinked import Kinked


@dataclass(frozen=True)
class PinballLoss(Kinked):
    """2 (1 - q) (z - y) above the target and 2 q (y - z) below: |z - y| for the median.

    Parameters
    ----------
    quantile : float, default=0.5
        q, in (0, 1): the quantile of the target that a constant prediction estimates.
    """

    quantile: float = 0.5
    corners: ClassVar[int] = 2
    smoothness: ClassVar[float] = math.inf
    smoothness_l1: ClassVar[float] = math.inf
    trace: ClassVar[float] = math.inf
    #: size of the constants that a prediction is added to, but for its target
    offset: ClassVar[float] = 1e-200
    start_loss: ClassVar[float] = math.inf
    #: bounds on the length of the set of residuals: of a row of the largest norm, of any
    diameter: ClassVar[float] = 2.0
    widest: ClassVar[float] = 2.0

    def __post_init__(self):
        if not 0 < self.quantile < 1:
            raise ValueError(f"quantile must be in (0, 1); got {self.quantile!r}.")

    @property
    def lipschitz(self):
        """Bound on the size of a residual."""
        return 2.0 * max(self.quantile, 1.0 - self.quantile)

    @property
    def lipschitz_l1(self):
        """Bound on the size of a residual."""
        return self.lipschitz

    def encode(self, target):
        """Return the targets as they are."""
        return target

    def slopes(self, z, target):
        """Return the distances from the kinks, fresh, and the slopes before and beyond."""
        with np.errstate(over="ignore"):
            u = z - target
        return u, -2.0 * self.quantile, 2.0 * (1.0 - self.quantile)

    def targets(self, target, norm):
        """Return what the loss needs to know of every row."""
        return target
