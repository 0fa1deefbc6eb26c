# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The two forms of a clipped loss: of one with a derivative, and of one with two slopes."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skdp._losses._clipped import ClippedLoss
from skdp._losses._hinge import HingeLoss
from skdp._losses._kinked import Kinked
from skdp._losses._pinball import PinballLoss
from skdp._losses._regression import HuberLoss, QuarticLoss, SquaredLoss
from skdp._losses._smooth import LogisticLoss, _soft_plus


@dataclass(frozen=True)
class ClippedCurve(ClippedLoss, of=(SquaredLoss, QuarticLoss, HuberLoss, LogisticLoss)):
    """A loss with a derivative, clipped."""

    @property
    def smoothness(self):
        """Bound on a row's second derivative, times the square of its norm over X^2.

        The largest one, at limit C / |v|, times |v|^2 grows with |v|: it is constant for
        squares, proportional to |v|^(-2/3) for fourth powers, and a (1 - a) / T, divided by
        a^2, falls with a for the logistic loss.
        """
        limit = self.clip / self.row_norm
        if isinstance(self.loss, LogisticLoss):
            a = min(limit, 0.5)
            return a * (1.0 - a) / self.loss.temperature
        return self.loss.largest_curvature(limit)

    @property
    def trace(self):
        """Bound on the second derivative: the same."""
        return self.smoothness

    @property
    def temperature(self):
        """Temperature of the loss; 0 for one that has none."""
        return getattr(self.loss, "temperature", 0.0)

    def at_temperature(self, temperature):
        """Return the clipped form of the loss at another temperature."""
        return replace(self, loss=replace(self.loss, temperature=temperature))

    def value(self, z, target):
        """Return the loss of every row."""
        target, limit = target
        s, turning = self._turning(z, target, limit)
        if isinstance(self.loss, LogisticLoss):
            near = np.minimum(s, turning)
            own = _soft_plus(near, self.loss.temperature)
        else:
            near = np.clip(s, -turning, turning)
            own = self.loss.profile(near)
        beyond = np.zeros_like(s)
        np.subtract(s, near, out=beyond, where=s != near)
        with np.errstate(over="ignore", under="ignore"):
            return own + np.minimum(limit, self.loss.lipschitz) * np.abs(beyond)

    def rise(self, z, target):
        """Return the loss of every row, less its value at the prediction 0."""
        if not isinstance(self.loss, LogisticLoss):
            return self.loss.rise_below(target[1], z, target[0])
        return self.value(z, target) - self.value(np.zeros_like(z), target)

    def residual(self, z, target):
        """Return the derivative in z; overwrites z."""
        target, limit = target
        return _cut(self._slope(z, target), limit)

    def curvature(self, z, target):
        """Return the second derivative of every row: none where the residual is clipped."""
        target, limit = target
        clipped = np.abs(self._slope(z.copy(), target)) > limit
        curvature = self.loss.curvature(z, target)
        curvature[clipped] = 0.0
        return curvature

    def _slope(self, z, target):
        """Return the derivative of the loss within, to few roundings of itself; overwrites z.

        Limits may be far below the rounding of 1, which `LogisticLoss.residual` errs by.
        """
        if not isinstance(self.loss, LogisticLoss):
            return self.loss.residual(z, target)
        with np.errstate(over="ignore", under="ignore"):
            s = (self.loss.margin - target * z) / self.loss.temperature
            tail = np.exp(-np.abs(s))
            share = np.where(s < 0.0, tail, 1.0) / (1.0 + tail)
        return np.multiply(-target, share, out=z)

    def _turning(self, z, target, limit):
        """Return what the loss is a function of, and where its derivative meets the limit."""
        if not isinstance(self.loss, LogisticLoss):
            return self.loss.error(z, target), self.loss.turning(limit)
        with np.errstate(over="ignore"):
            s = self.loss.margin - target * z
        binding = limit < 1.0
        a = np.where(binding, limit, 0.5)
        return s, np.where(binding, self.loss.temperature * np.log(a / (1.0 - a)), np.inf)


@dataclass(frozen=True)
class ClippedKink(ClippedLoss, Kinked, of=(PinballLoss, HingeLoss)):
    """A loss with two slopes, both cut."""

    smoothness: ClassVar[float] = math.inf
    trace: ClassVar[float] = math.inf

    @property
    def widest(self):
        """Bound on the length of a row's set of residuals."""
        return sum(self._sides)

    @property
    def diameter(self):
        """The same, times the row's norm over X."""
        return sum(min(side, self.clip / self.row_norm) for side in self._sides)

    @property
    def _sides(self):
        """Sizes of the two slopes."""
        if isinstance(self.loss, HingeLoss):
            return 1.0, 0.0
        return 2.0 * self.loss.quantile, 2.0 * (1.0 - self.loss.quantile)

    def slopes(self, z, target):
        """Return the distances from the kinks, fresh, and the slopes before and beyond."""
        target, limit = target
        if isinstance(self.loss, PinballLoss):
            u, a, b = self.loss.slopes(z, target)
        else:
            u, a, b = z - target, np.where(target > 0, -1.0, 0.0), np.where(target > 0, 0.0, 1.0)
        return u, np.maximum(a, -limit), np.minimum(b, limit)


def _cut(residual, limit):
    """Return residuals clipped to a limit in size, in place."""
    np.minimum(residual, limit, out=residual)
    return np.maximum(residual, -limit, out=residual)
