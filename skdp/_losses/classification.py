# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Losses of classification: logistic, softmax and hinge.

A loss is a convex function of the predictions z of one row. It states what sensitivities and plans
need (bounds on residuals and curvature) and computes value, residual, curvature and duality gap of
many rows, each row's on its own. Logistic and softmax have a margin and a temperature, and so are
the smoothed hinges of two and of more classes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy


def shortfalls(z, target, margin):
    """Return z_k + margin [k != t] - z_t, a fresh array."""
    rows = np.arange(len(z))
    short = z - z[rows, target][:, None]
    short += margin
    short[rows, target] = 0.0
    return short


def _soft_plus(x, temperature):
    with np.errstate(over="ignore", under="ignore"):
        tail = np.log1p(np.exp(-np.abs(x) / temperature))
    return np.maximum(x, 0.0) + temperature * tail


def _row_reduced(operation, z):
    """Return ``operation.reduce(z, axis=1, keepdims=True)``, to the last bit."""
    # a reduction of a short row costs more before it begins than column after column does;
    # from eight columns on numpy adds them up in another order
    if not 0 < z.shape[1] < 8:
        return operation.reduce(z, axis=1, keepdims=True)
    reduced = z[:, 0].copy()
    for column in z.T[1:]:
        operation(reduced, column, out=reduced)
    return reduced[:, None]


@dataclass(frozen=True)
class LogisticLoss:
    """T log(1 + exp((margin - t z) / T)), targets t in {-1, +1}, one output.

    Parameters
    ----------
    margin, temperature : float, default=0.0 and 1.0
        The margin, and T.
    """

    margin: float = 0.0
    temperature: float = 1.0
    n_outputs: ClassVar[int] = 1
    #: bounds on the norm of a residual, and on its l1 norm
    lipschitz: ClassVar[float] = 1.0
    lipschitz_l1: ClassVar[float] = 1.0
    #: number of extreme points of the set of residuals of one row, zero not counted
    corners: ClassVar[int] = 1
    #: whether the residual determines the second derivative: a (1 - a) / T at |residual| = a
    tied: ClassVar[bool] = True

    @property
    def smoothness(self):
        """Bound on the largest eigenvalue of the Hessian in z."""
        return 0.25 / self.temperature

    @property
    def trace(self):
        """Bound on the trace of the Hessian in z."""
        return 0.25 / self.temperature

    @property
    def smoothness_l1(self):
        """Bound on s' Hessian s over vectors s of signs."""
        return 0.25 / self.temperature

    def encode(self, codes):
        """Return the targets of class codes 0 and 1."""
        return 2.0 * codes - 1.0

    def value(self, z, target):
        """Return the loss of every row."""
        short = self.margin - target * z
        return _soft_plus(short, self.temperature)

    def residual(self, z, target):
        """Return the derivative in z; overwrites z.

        Notes
        -----
        -t / (1 + exp(t z)) loses no digits where it is small, and is zero where exp overflows.
        """
        if self.margin:
            z -= self.margin * target
        z *= target
        with np.errstate(over="ignore", under="ignore"):
            if self.temperature != 1.0:
                z *= 1.0 / self.temperature
            np.exp(z, out=z)
            np.subtract(-1.0, z, out=z)
            return np.divide(target, z, out=z)

    def curvature(self, z, target):
        """Return the second derivative of every row."""
        with np.errstate(over="ignore", under="ignore"):
            tail = np.exp(-np.abs(z - self.margin * target) / self.temperature)
            return tail / (1.0 + tail) ** 2 / self.temperature

    def stepped(self, z, step, target):
        """Return the residual at z + step to first order in step, kept in its set.

        A step may be far below the rounding of z. Overwrites z.
        """
        curvature = self.curvature(z, target)
        size = self.residual(z, target) + curvature * step
        size *= -target
        return -target * np.clip(size, 0.0, 1.0)

    def conjugate_gap(self, z, residual, target):
        """Return loss + conjugate of the residual - <residual, z> of every row, >= 0."""
        size = np.clip(-target * residual, 0.0, 1.0)
        short = self.margin - target * z
        with np.errstate(under="ignore"):
            entropy = xlogy(size, size) + xlogy(1.0 - size, 1.0 - size)
            gap = _soft_plus(short, self.temperature) + self.temperature * entropy - size * short
        return np.maximum(gap, 0.0)


@dataclass(frozen=True)
class SoftmaxLoss:
    """T log sum_k exp((z_k + margin [k != t] - z_t) / T), targets t in {0, ..., K - 1}.

    The residual is s - e_t, s being a softmax, of norm at most sqrt(2); the Hessian in
    z, (diag(s) - s s') / T, has no eigenvalue above 1 / (2 T).

    Parameters
    ----------
    n_outputs : int
        Number of classes K.
    margin, temperature : float, default=0.0 and 1.0
        The margin, and T.
    """

    n_outputs: int
    margin: float = 0.0
    temperature: float = 1.0
    lipschitz: ClassVar[float] = math.sqrt(2.0)
    lipschitz_l1: ClassVar[float] = 2.0
    tied: ClassVar[bool] = False

    @property
    def corners(self):
        """Number of extreme points of the set of residuals of one row, zero not counted."""
        return self.n_outputs - 1

    @property
    def smoothness(self):
        """Bound on the largest eigenvalue of the Hessian in z."""
        return 0.5 / self.temperature

    @property
    def trace(self):
        """Bound on the trace of the Hessian in z."""
        return (1.0 - 1.0 / self.n_outputs) / self.temperature

    @property
    def smoothness_l1(self):
        """Bound on s' Hessian s over vectors s of signs: the variance of a sign is at most 1."""
        return 1.0 / self.temperature

    def encode(self, codes):
        """Return the targets of class codes 0, ..., n_outputs - 1."""
        return codes

    def value(self, z, target):
        """Return the loss of every row."""
        short = shortfalls(z, target, self.margin)
        largest = short.max(axis=1)
        short -= largest[:, None]
        with np.errstate(over="ignore", under="ignore"):
            total = np.exp(short / self.temperature).sum(axis=1)
        return largest + self.temperature * np.log(total)

    def residual(self, z, target):
        """Return the derivative in z; overwrites z."""
        z = self._weights(z, target)
        z[np.arange(len(z)), target] -= 1.0
        return z

    def curvature(self, z, target):
        """Return the weights s of every row; the Hessian is (diag(s) - s s') / T."""
        return self._weights(z.copy(), target)

    def stepped(self, z, step, target):
        """Return the residual at z + step to first order in step, kept in its set.

        A step may be far below the rounding of z. Overwrites z.
        """
        s = self._weights(z, target)
        mean = np.einsum("ij,ij->i", s, step)
        s *= np.maximum(1.0 + (step - mean[:, None]) / self.temperature, 0.0)
        s /= s.sum(axis=1, keepdims=True)
        s[np.arange(len(s)), target] -= 1.0
        return s

    def conjugate_gap(self, z, residual, target):
        """Return loss + conjugate of the residual - <residual, z> of every row, >= 0."""
        s = residual.copy()
        s[np.arange(len(s)), target] += 1.0
        np.clip(s, 0.0, 1.0, out=s)
        short = shortfalls(z, target, self.margin)
        with np.errstate(under="ignore"):
            gap = self.value(z, target) + (self.temperature * xlogy(s, s) - s * short).sum(axis=1)
        return np.maximum(gap, 0.0)

    def _weights(self, z, target):
        if self.margin:
            z[np.arange(len(z)), target] -= self.margin
        z -= _row_reduced(np.maximum, z)
        if self.temperature != 1.0:
            with np.errstate(over="ignore"):
                z /= self.temperature
        # whether an entry underflows depends on the data: nobody is to be told
        with np.errstate(under="ignore"):
            np.exp(z, out=z)
            z /= _row_reduced(np.add, z)
        return z


# The hinge loss, for one output and for several.


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
