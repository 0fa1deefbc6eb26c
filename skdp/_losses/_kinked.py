# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Losses with two slopes a < b that meet at a kink, and what smooths them.

In the distance u from the kink such a loss is max(a u, b u). Its residuals are the
numbers in [a, b]. Slopes and kinks may differ from row to row.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


def change(value, at_zero, same_tail, slope, z):
    """Return how far a loss is above its value at the prediction 0.

    Targets may be so large that values overflow, or swallow the prediction. Where both
    predictions are on the same straight tail the change is slope * z; elsewhere the target
    is not larger than the prediction and the width of the bend.
    """
    # what overflows is not taken, or is infinite
    with np.errstate(over="ignore", invalid="ignore"):
        rise = np.where(same_tail, slope * z, value - at_zero)
    rise[np.isnan(rise)] = np.inf
    return rise


class Kinked:
    """What losses with two slopes share.

    A loss has a method ``slopes(z, target)`` that returns the distances u from the kinks,
    fresh, and the slopes a and b.
    """

    n_outputs: ClassVar[int] = 1
    #: there is no second derivative to be determined
    tied: ClassVar[bool] = False

    @property
    def looseness(self):
        """Bound on what smoothing adds to a loss, and to a row's duality gap, a unit of T."""
        return self.widest / 2

    def smoothed(self, temperature):
        """Return a smooth loss above this one, by at most looseness * temperature."""
        return SmoothedKink(self, temperature)

    def value(self, z, target):
        """Return the loss of every row."""
        u, a, b = self.slopes(z, target)
        with np.errstate(over="ignore"):
            return np.where(u < 0.0, a, b) * u

    def rise(self, z, target):
        """Return the loss of every row, less its value at the prediction 0."""
        u, a, b = self.slopes(z, target)
        start, _, _ = self.slopes(np.zeros_like(z), target)
        slope, first = np.where(u < 0.0, a, b), np.where(start < 0.0, a, b)
        with np.errstate(over="ignore"):
            value, at_zero = slope * u, first * start
        return change(value, at_zero, slope == first, slope, z)

    def residual(self, z, target):
        """Return a subgradient in z, zero at the kink; overwrites z."""
        u, a, b = self.slopes(z, target)
        np.copyto(z, np.where(u < 0.0, a, b))
        z[u == 0.0] = 0.0
        return z

    def curvature(self, z, target):
        """Return the second derivatives where there are any: zeros."""
        return np.zeros(z.shape)

    def conjugate_gap(self, z, residual, target):
        """Return loss + conjugate of the residual - <residual, z> of every row, >= 0.

        Notes
        -----
        With r in [a, b] it is (b - r) u beyond the kink and (r - a) |u| before it: a product
        of two factors >= 0, each rounded once. At r = a or b it is exactly 0, even if u is as
        large as floats are.
        """
        u, a, b = self.slopes(z, target)
        r = np.clip(residual, a, b)
        with np.errstate(over="ignore", under="ignore"):
            return np.where(u < 0.0, (a - r) * u, (b - r) * u)


@dataclass(frozen=True)
class SmoothedKink:
    """A loss with two slopes, its kink replaced by a parabola of width 4 T.

    Its derivative in the distance u from the kink is the line (a + b)/2 + (b - a) u / (4 T),
    kept in [a, b]: a row off the kink has a residual of exactly a or b. It is above the loss
    by at most (b - a) T / 2; the duality gap of a row with such a residual is largest at
    u = T, where it is (b - a) T / 4.

    Parameters
    ----------
    loss : Kinked
        The loss.
    temperature : float
        T, greater than 0.
    """

    loss: Any
    temperature: float
    n_outputs: ClassVar[int] = 1
    tied: ClassVar[bool] = False

    @property
    def smoothness(self):
        """Bound on the second derivative, times the square of a row's norm over X^2."""
        return self.loss.diameter / (4 * self.temperature)

    def targets(self, target, norm):
        """Return what the loss needs to know of every row."""
        return self.loss.targets(target, norm)

    def value(self, z, target):
        """Return the loss of every row."""
        u, a, b = self.loss.slopes(z, target)
        return self._above(u, a, b)

    def rise(self, z, target):
        """Return the loss of every row, less its value at the prediction 0."""
        u, a, b = self.loss.slopes(z, target)
        start, _, _ = self.loss.slopes(np.zeros_like(z), target)
        edge = 2 * self.temperature
        same = ((u > edge) & (start > edge)) | ((u < -edge) & (start < -edge))
        slope = np.where(u < 0.0, a, b)
        return change(self._above(u, a, b), self._above(start, a, b), same, slope, z)

    def residual(self, z, target):
        """Return the derivative in z; overwrites z."""
        u, a, b = self.loss.slopes(z, target)
        return np.clip(self._line(u, a, b), a, b, out=z)

    def curvature(self, z, target):
        """Return the second derivative of every row."""
        u, a, b = self.loss.slopes(z, target)
        return np.where(np.abs(u) < 2 * self.temperature, (b - a) / (4 * self.temperature), 0.0)

    def stepped(self, z, step, target):
        """Return the residual at z + step, a step far below the rounding of z included.

        It is in its set. Overwrites z.
        """
        u, a, b = self.loss.slopes(z, target)
        line = self._line(u, a, b)
        with np.errstate(over="ignore", under="ignore"):
            line += (b - a) / (4 * self.temperature) * step
        return np.clip(line, a, b, out=z)

    def _line(self, u, a, b):
        with np.errstate(over="ignore", under="ignore"):
            return (a + b) / 2 + (b - a) / (4 * self.temperature) * u

    def _above(self, u, a, b):
        T = self.temperature
        near = np.clip(u, -2 * T, 2 * T)
        with np.errstate(over="ignore", under="ignore"):
            bend = (a + b) / 2 * near + (b - a) * (near * (near / T) / 8 + T / 2)
            return np.where(near == u, bend, np.where(u < 0.0, a, b) * u)
