# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Losses whose gradients are clipped, row by row, and that stay convex."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdp._losses._regression import check_positive

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
    loss : SquaredLoss, QuarticLoss, HuberLoss, PinballLoss, LogisticLoss or HingeLoss
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
