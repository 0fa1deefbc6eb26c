# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Losses of regression, functions of the error u = z - y of one prediction.

Targets may be as large as floats are. The square and the fourth power have no Lipschitz
constant: they are minimised privately in a clipped form (see ``ClippedLoss``).

Rounding. The difference z - y of two floats errs by a relative 2^-53. Where a derivative is
constant that changes nothing; where it is not, the error is no longer than the bend, hence
|y| <= |z| + the bend's length, and the derivative errs by few roundings of itself.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

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
