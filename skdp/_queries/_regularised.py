# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What queries that minimise a regularised loss share."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._losses import ClippedLoss, HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._minimize import SMOOTH_SOLVERS, minimize_nonsmooth, minimize_smooth
from skdp._queries._objective import RowObjective
from skdp._queries._objective_bounds import objective_bounds

#: losses that cvxpy is told about
_MARGIN_LOSSES = (LogisticLoss, SoftmaxLoss, HingeLoss)


def title(loss):
    """Return what a loss is called."""
    return getattr(loss, "name", type(loss).__name__)


@dataclass(frozen=True, eq=False)
class Regularised:
    """Loss, penalty and tolerance of a minimiser; parameters are those of `Minimizer`."""

    loss: Any
    ridge: float
    n_coefs: int
    row_norm: float
    tolerance: float
    solver: str = "newton"
    center: Any = None
    row_l1: float = math.inf
    row_terms: int | None = None

    def __post_init__(self):
        if self.center is not None:
            center = np.array(self.center, dtype=np.float64).ravel()
            center.flags.writeable = False
            object.__setattr__(self, "center", center)
            if center.shape != (self.size,) or not np.isfinite(center).all():
                raise ValueError(f"center must be {self.size} finite numbers.")
        for name in ("ridge", "row_norm", "tolerance"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be finite and greater than 0.")
        if not math.isfinite(self.loss.lipschitz):
            raise ValueError(
                f"loss must have a Lipschitz constant; got {type(self.loss).__name__}, which has "
                "none: clip it, by ClippedLoss."
            )
        if isinstance(self.loss, ClippedLoss) and self.loss.row_norm != self.row_norm:
            raise ValueError(
                f"row_norm must be that of the clipped loss, {self.loss.row_norm!r}; "
                f"got {self.row_norm!r}."
            )
        if not self.row_l1 > 0:
            raise ValueError("row_l1 must be greater than 0.")
        if self.solver not in SMOOTH_SOLVERS:
            raise ValueError(f"solver must be one of {list(SMOOTH_SOLVERS)}; got {self.solver!r}.")
        if self.solver == "cvxpy" and not isinstance(self.loss, _MARGIN_LOSSES):
            raise ValueError(
                f"solver must be 'newton' or 'lbfgs' for {title(self.loss)}; got 'cvxpy'."
            )

    @property
    def size(self):
        """Number of coordinates."""
        return self.loss.n_outputs * self.n_coefs

    def bounds(self, n_rows, linear=None):
        """Return the public constants of the objective."""
        return objective_bounds(
            self.loss,
            n_rows=n_rows,
            n_coefs=self.n_coefs,
            row_norm=self.row_norm,
            ridge=self.ridge,
            row_terms=self.row_terms,
            center=self.center,
            linear=linear,
        )

    def minimise_rows(self, rows, linear=None):
        """Return the minimiser for private rows, within the tolerance."""
        objective = RowObjective(
            rows,
            self.loss,
            ridge=self.ridge,
            n_coefs=self.n_coefs,
            row_norm=self.row_norm,
            row_terms=self.row_terms,
            center=self.center,
            linear=linear,
        )
        smooth = math.isfinite(self.loss.smoothness)
        return (minimize_smooth if smooth else minimize_nonsmooth)(
            objective, self.tolerance, self.solver
        )
