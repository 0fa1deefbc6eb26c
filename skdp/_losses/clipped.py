# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Losses whose gradients are clipped, row by row, and that stay convex.

`ClippedLoss` wraps a loss of one prediction; it has one form for losses with a derivative, and one
for those with two slopes.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skdp._losses.classification import HingeLoss, LogisticLoss, _soft_plus
from skdp._losses.regression import (
    HuberLoss,
    Kinked,
    PinballLoss,
    PowerLoss,
    QuarticLoss,
    SquaredLoss,
    check_positive,
)

# larger ones are cut down to it: their squares are finite
_LARGEST_LIMIT = 1e150


@dataclass(frozen=True)
class ClippedLoss:
    """A loss of one prediction, clipped so that no row's gradient is longer than `clip`.

    A row v has the gradient r v, r being the derivative of the loss in the prediction z. With
    r cut down to ``clip / |v|`` in size, it is the derivative of another convex loss: the same
    one where it was not cut, continued linearly. So the clipped loss has the Lipschitz constant
    `clip` in the coefficients, and nowhere a larger second derivative.

    Parameters
    ----------
    loss : SquaredLoss, QuarticLoss, PowerLoss, HuberLoss, PinballLoss, LogisticLoss or HingeLoss
        Loss of one prediction.
    clip : float
        Bound on the norm of one row's gradient.
    row_norm : float
        Public bound X on the norm of a row.

    Raises
    ------
    ValueError
        If the loss has several outputs: a vector of residuals that is clipped by its norm is
        not the gradient of a convex function in general.

    Notes
    -----
    A target, here, is what `targets` makes of it: a pair of the target and the limit on the
    residual. `lipschitz` and `smoothness` are bounds on a row's residual and its second
    derivative, times |v| / X and (|v| / X)^2: multiplied with X and X^2, they bound the
    gradient and the Hessian in the coefficients. Limits above 1e150 count as 1e150.

    The value is the infimal convolution of the loss with limit * |.|: hence never above the
    loss, never negative if the loss is not, and as near to the clipped form of another loss as
    the losses are to each other.
    """

    loss: Any
    clip: float
    row_norm: float
    n_outputs: ClassVar[int] = 1
    #: the residual does not determine the second derivative everywhere
    tied: ClassVar[bool] = False
    _forms: ClassVar[dict[type, type]] = {}

    def __init_subclass__(cls, *, of):
        ClippedLoss._forms.update(dict.fromkeys(of, cls))

    def __new__(cls, loss, clip, row_norm):
        """Return the form for losses with, or without, a derivative."""
        if loss.n_outputs > 1:
            raise ValueError(
                f"clipping needs a loss of one output; got {loss.n_outputs} outputs. A vector of "
                "residuals that is clipped by its norm is not the gradient of a convex function, "
                "and how far a row moves its minimiser is not known. For several classes leave "
                "clipping_norm=None: rows are bounded, and so are their gradients."
            )
        form = cls._forms.get(type(loss))
        if form is None:
            names = [known.__name__ for known in cls._forms]
            raise ValueError(f"loss must be one of {names}; got {type(loss).__name__}.")
        check_positive("clip", clip)
        check_positive("row_norm", row_norm)
        return object.__new__(form)

    def __getnewargs__(self):
        return self.loss, self.clip, self.row_norm

    @property
    def name(self):
        """What the loss is called."""
        return f"{type(self.loss).__name__} clipped to {self.clip:.6g}"

    @property
    def corners(self):
        """Number of extreme points of the set of residuals of one row, zero not counted."""
        return self.loss.corners

    @property
    def lipschitz(self):
        """Bound on the size of a row's residual, times the row's norm over X."""
        return min(self.loss.lipschitz, self.clip / self.row_norm)

    @property
    def lipschitz_l1(self):
        """Bound on the size of a residual, of a row of any norm."""
        return self.loss.lipschitz_l1

    @property
    def smoothness_l1(self):
        """Bound on the second derivative, of a row of any norm."""
        return self.loss.smoothness_l1

    @property
    def offset(self):
        """Size of the constants that a prediction is added to, but for its target."""
        return getattr(self.loss, "offset", max(1.0, abs(getattr(self.loss, "margin", 0.0))))

    @property
    def start_loss(self):
        """Bound on the loss at the prediction 0."""
        if hasattr(self.loss, "start_loss"):
            return self.loss.start_loss
        return float(self.loss.value(np.zeros(1), np.ones(1))[0])

    def encode(self, target):
        """Return the targets of the loss."""
        return self.loss.encode(target)

    def targets(self, target, norm):
        """Return what the loss needs to know of every row: its target, and its limit.

        Parameters
        ----------
        target, norm : ndarray of shape (n_rows,)
            Norms of null rows may be infinite: what they have for a limit does not count.
        """
        with np.errstate(over="ignore", divide="ignore"):
            limit = self.clip / np.where(np.isfinite(norm), norm, self.row_norm)
        return target, np.minimum(limit, _LARGEST_LIMIT)


# The two forms of a clipped loss: of one with a derivative, and of one with two slopes.


@dataclass(frozen=True)
class ClippedCurve(ClippedLoss, of=(SquaredLoss, QuarticLoss, PowerLoss, HuberLoss, LogisticLoss)):
    """A loss with a derivative, clipped."""

    @property
    def smoothness(self):
        """Bound on a row's second derivative, times the square of its norm over X^2.

        The largest one, at limit C / |v|, times |v|^2 grows with |v|: it is constant for
        squares, proportional to |v|^(-2/3) for fourth powers, to |v|^(-(p - 2) / (p - 1)) for
        others above 2, and a (1 - a) / T, divided by
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
