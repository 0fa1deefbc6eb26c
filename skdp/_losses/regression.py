# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Losses of regression, functions of the error u = z - y of one prediction.

Squares, fourth powers, Huber and pinball losses, the absolute error being the pinball of 1/2.

Targets may be as large as floats are. The square and the fourth power have no Lipschitz
constant: they are minimised privately in a clipped form (see ``ClippedLoss``).

Rounding. The difference z - y of two floats errs by a relative 2^-53. Where a derivative is
constant that changes nothing; where it is not, the error is no longer than the bend, hence
|y| <= |z| + the bend's length, and the derivative errs by few roundings of itself.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


def check_positive(name, value):
    """Raise a ValueError unless a parameter is finite and greater than 0."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be finite and greater than 0; got {value!r}.")


class _Regression:
    """What losses of regression with a derivative share; `profile` is the loss in u."""

    n_outputs: ClassVar[int] = 1
    corners: ClassVar[int] = 2
    #: the residual does not determine the second derivative
    tied: ClassVar[bool] = False
    #: size of the constants that a prediction is added to, but for its target
    offset: ClassVar[float] = 1e-200
    #: bound on the loss at the prediction 0: none
    start_loss: ClassVar[float] = math.inf

    def encode(self, target):
        """Return the targets as they are."""
        return target

    def error(self, z, target):
        """Return z - target, fresh."""
        with np.errstate(over="ignore"):
            return z - target

    def value(self, z, target):
        """Return the loss of every row; infinite where it overflows."""
        return self.profile(self.error(z, target))

    def rise_below(self, limit, z, target):
        """Return the loss of every row, less its value at the prediction 0.

        Where the derivative exceeds a limit in size the loss is continued linearly.

        Notes
        -----
        A difference of values would lose a short row's prediction beside its target. The part
        with a bend is the secant's slope times its length; predictions on one side have a
        distance of z, on a tail or off it.
        """
        limit = np.minimum(limit, self.lipschitz)
        turning = self.turning(limit)
        end, start = self.error(z, target), -target
        near, first = np.clip(end, -turning, turning), np.clip(start, -turning, turning)
        bent = (near == end) & (first == start)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            tail = np.where(bent, 0.0, np.abs(end - near) - np.abs(start - first))
            tail = np.where((end > near) & (start > first), z, tail)
            tail = np.where((end < near) & (start < first), -z, tail)
            length = np.where(bent, z, near - first)
            rise = self.secant(first, near) * length + limit * tail
        # infinite less infinite, or times zero
        rise[np.isnan(rise)] = np.inf
        return rise

    def residual(self, z, target):
        """Return the derivative in z; overwrites z."""
        with np.errstate(over="ignore", under="ignore"):
            z -= target
            return self._slope(z)

    def curvature(self, z, target):
        """Return the second derivative of every row."""
        with np.errstate(over="ignore", under="ignore"):
            return self._bend(self.error(z, target))


@dataclass(frozen=True)
class SquaredLoss(_Regression):
    """(z - y)^2 / 2."""

    lipschitz: ClassVar[float] = math.inf
    lipschitz_l1: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = 1.0
    trace: ClassVar[float] = 1.0
    smoothness_l1: ClassVar[float] = 1.0

    def profile(self, u):
        """Return the loss of errors u."""
        with np.errstate(over="ignore", under="ignore"):
            return u * (u / 2)

    def secant(self, a, b):
        """Return the slope between two errors."""
        return (a + b) / 2

    def turning(self, limit):
        """Return the error at which the derivative reaches a limit."""
        return limit

    def largest_curvature(self, limit):
        """Return the largest second derivative where the first is below a limit."""
        return 1.0

    def _slope(self, u):
        return u

    def _bend(self, u):
        return np.ones_like(u)


@dataclass(frozen=True)
class QuarticLoss(_Regression):
    """(z - y)^4 / 4."""

    lipschitz: ClassVar[float] = math.inf
    lipschitz_l1: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = math.inf
    trace: ClassVar[float] = math.inf
    smoothness_l1: ClassVar[float] = math.inf

    def profile(self, u):
        """Return the loss of errors u."""
        with np.errstate(over="ignore", under="ignore"):
            return (u * u) * (u * u) / 4

    def secant(self, a, b):
        """Return the slope between two errors."""
        return (a + b) * (a * a + b * b) / 4

    def turning(self, limit):
        """Return the error at which the derivative reaches a limit."""
        return np.cbrt(limit)

    def largest_curvature(self, limit):
        """Return the largest second derivative where the first is below a limit."""
        return 3 * float(np.cbrt(limit)) ** 2

    def _slope(self, u):
        square = u * u
        u *= square
        return u

    def _bend(self, u):
        return 3 * u * u


@dataclass(frozen=True)
class PowerLoss(_Regression):
    """|z - y|^p / p for p > 1; for p < 2 a parabola up to an error of a hundredth.

    The parabola has the slope of the power where it ends. Without it, powers below 2 would have no
    bound on their second derivative.

    Parameters
    ----------
    power : float
        p, finite and greater than 1; of errors in units of the target.
    """

    power: float
    lipschitz: ClassVar[float] = math.inf
    lipschitz_l1: ClassVar[float] = math.inf

    def __post_init__(self):
        if not 1 < self.power < math.inf:
            raise ValueError(f"power must be finite and greater than 1; got {self.power!r}.")

    @property
    def smoothness(self):
        """Bound on the second derivative."""
        return math.inf if self.power > 2 else self._steepest

    @property
    def trace(self):
        """Bound on the second derivative."""
        return self.smoothness

    @property
    def smoothness_l1(self):
        """Bound on the second derivative."""
        return self.smoothness

    @property
    def _near(self):
        """Error up to which there is a parabola."""
        return _PARABOLA if self.power < 2 else 0.0

    @property
    def _steepest(self):
        """Second derivative of the parabola."""
        return _PARABOLA ** (self.power - 2)

    def profile(self, u):
        """Return the loss of errors u."""
        p, near, size = self.power, self._near, np.abs(u)
        with np.errstate(over="ignore", under="ignore"):
            inner = self._steepest / 2 * np.minimum(size, near) ** 2
            return inner + (np.maximum(size, near) ** p - near**p) / p

    def secant(self, a, b):
        """Return the slope between two errors, to few roundings of itself."""
        first, last = np.abs(a), np.abs(b)
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            slope = self._risen(first, last) / (b - a)
        return np.where(a == b, self._slope(np.array(a, dtype=np.float64)), slope)

    def turning(self, limit):
        """Return the error at which the derivative reaches a limit."""
        with np.errstate(over="ignore", under="ignore"):
            turning = np.power(limit, 1 / (self.power - 1))
            return np.where(turning < self._near, limit / self._steepest, turning)

    def largest_curvature(self, limit):
        """Return the largest second derivative where the first is below a limit."""
        if self.power < 2:
            return self._steepest
        p = self.power
        return (p - 1) * float(limit) ** ((p - 2) / (p - 1))

    def _risen(self, first, last):
        """Return the rise of the loss from one size of an error to another.

        Notes
        -----
        A difference of values would cancel where sizes are close. With m the larger size and r m
        their distance, the powers differ by m^p (1 - (1 - r)^p).
        """
        p, near = self.power, self._near
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            inner, outer = np.minimum(first, near), np.minimum(last, near)
            rise = self._steepest / 2 * ((outer - inner) * (outer + inner)) if near else 0.0
            inner, outer = np.maximum(first, near), np.maximum(last, near)
            larger = np.maximum(inner, outer)
            share = np.where(larger > 0, np.abs(outer - inner) / larger, 0.0)
            part = -np.expm1(p * np.log1p(-share)) / p
            # a power may overflow, and nothing is no part of it
            return rise + np.sign(outer - inner) * np.where(part > 0, larger**p * part, 0.0)

    def _slope(self, u):
        size = np.abs(u)
        steep = size ** (self.power - 1)
        if self.power < 2:
            steep = np.where(size < self._near, self._steepest * size, steep)
        return np.copysign(steep, u, out=u)

    def _bend(self, u):
        size = np.abs(u)
        with np.errstate(divide="ignore"):
            bend = (self.power - 1) * size ** (self.power - 2)
        return np.where(size < self._near, self._steepest, bend)


# error up to which powers below 2 are a parabola, in units of the target
_PARABOLA = 0.01


@dataclass(frozen=True)
class HuberLoss(_Regression):
    """(z - y)^2 / 2 up to an error of `threshold`, continued linearly.

    Parameters
    ----------
    threshold : float, default=1.0
        In units of the target.
    """

    threshold: float = 1.0
    smoothness: ClassVar[float] = 1.0
    trace: ClassVar[float] = 1.0
    smoothness_l1: ClassVar[float] = 1.0

    def __post_init__(self):
        check_positive("threshold", self.threshold)

    @property
    def lipschitz(self):
        """Bound on the size of a residual."""
        return float(self.threshold)

    @property
    def lipschitz_l1(self):
        """Bound on the size of a residual."""
        return float(self.threshold)

    def profile(self, u):
        """Return the loss of errors u."""
        near = np.clip(u, -self.threshold, self.threshold)
        with np.errstate(over="ignore", under="ignore"):
            return near * (u - near / 2)

    def rise(self, z, target):
        """Return the loss of every row, less its value at the prediction 0."""
        return self.rise_below(self.threshold, z, target)

    def secant(self, a, b):
        """Return the slope between two errors below the threshold."""
        return (a + b) / 2

    def turning(self, limit):
        """Return the error at which the derivative reaches a limit, the threshold at most."""
        return np.minimum(limit, self.threshold)

    def largest_curvature(self, limit):
        """Return the largest second derivative where the first is below a limit."""
        return 1.0

    def _slope(self, u):
        return np.clip(u, -self.threshold, self.threshold, out=u)

    def _bend(self, u):
        return np.where(np.abs(u) <= self.threshold, 1.0, 0.0)


# Losses with two slopes a < b that meet at a kink, and what smooths them.
#
# In the distance u from the kink such a loss is max(a u, b u). Its residuals are the
# numbers in [a, b]. Slopes and kinks may differ from row to row.


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


# The loss of quantiles.


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
