# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Pointwise losses of a linear predictor.

Shape convention, here and in every query and solver. A raw prediction is an array
`z` of shape (n_rows,) for one output and (n_rows, n_outputs) for several; a
residual, the derivative of the loss in `z`, has the shape of `z`. A target is
coded as the loss says.

The set of residuals of a row is public. For classes it is minus t times a number in [0, 1]
for one output, s - e_t with s in the simplex for several; these losses share it, so that
the residuals of one are feasible in the dual problem of another. For a loss with two slopes
it is the interval between them.

A smooth loss at temperature T differs from its limit T -> 0 by at most T log(K), K
being the number of classes. With margin 1 that limit is the hinge.
"""

from skdp._losses._clipped_forms import ClippedLoss
from skdp._losses._hinge import HingeLoss
from skdp._losses._pinball import PinballLoss
from skdp._losses._regression import HuberLoss, QuarticLoss, SquaredLoss
from skdp._losses._smooth import LogisticLoss, SoftmaxLoss

__all__ = [
    "ClippedLoss",
    "HingeLoss",
    "HuberLoss",
    "LogisticLoss",
    "PinballLoss",
    "QuarticLoss",
    "SoftmaxLoss",
    "SquaredLoss",
]
