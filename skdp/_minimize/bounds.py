# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is known about an objective before a row is read: its size, and its rounding errors.

The objective is J(w) = sum of n losses + ridge/2 |w - center|^2 + <linear, w>, a loss
being a convex function >= 0 of the predictions of one row of norm at most X.
"""

import math
from dataclasses import dataclass

# unit roundoff
_U = 2.0**-53
# A partial sum has at most that many rows, and costs one rounding each: see
# skdp/_queries/_sums.py. The rest counts what happens to one row before it is summed.
_SUM_ROUNDINGS = 32768 + 100


@dataclass(frozen=True)
class Bounds:
    """Public constants of an objective.

    Parameters
    ----------
    n_rows, n_coefs, n_outputs : int
        Numbers of rows, of coefficients per output that a row may touch, and of outputs.
    row_norm : float
        Bound X on the norm of a row.
    lipschitz, smoothness, start_loss : float
        Of one row's loss in the predictions: bounds on its gradient, on its second
        derivatives, and on its value at `center`.
    ridge : float
        Strong convexity.
    center_norm, linear_norm : float, default=0.0
        Norms of `center` and `linear`.
    diameter : float, default=None
        Bound on the length of a row's set of residuals, times its norm over X; None for
        `lipschitz`.
    offset : float, default=1.0
        Size of the constants that a prediction is added to.
    """

    n_rows: int
    n_coefs: int
    n_outputs: int
    row_norm: float
    lipschitz: float
    smoothness: float
    start_loss: float
    ridge: float
    center_norm: float = 0.0
    linear_norm: float = 0.0
    diameter: float | None = None
    offset: float = 1.0

    @property
    def total_smoothness(self):
        """Bound on the largest eigenvalue of the Hessian."""
        return self.n_rows * self.smoothness * self.row_norm * self.row_norm + self.ridge

    @property
    def start_gradient(self):
        """Bound on the gradient at `center`."""
        return self.n_rows * self.lipschitz * self.row_norm + self.linear_norm

    @property
    def reach(self):
        """Bound on the distance of the minimiser from `center`.

        Notes
        -----
        (i) Its gradient vanishes: ridge |w - center| <= n L X + |linear|. (ii) No loss is
        negative: ridge/2 |w - center|^2 - |linear| |w - center| <= n * start_loss.
        """
        b = self.linear_norm
        cost = self.n_rows * self.start_loss
        return min(
            self.start_gradient / self.ridge,
            (b + math.sqrt(b * b + 2 * self.ridge * cost)) / self.ridge,
        )

    def prediction_error(self, norm):
        """Bound the rounding error of one row's predictions at coefficients of that norm.

        A product of p terms errs by p roundings, relative to the product of the norms; the
        row itself and what a loss does to a prediction take the other ones.
        """
        return (self.n_coefs + self.n_outputs + 30) * _U * (self.row_norm * norm + self.offset)

    def sum_error(self, distance):
        """Bound the rounding error of a sum of residuals times rows, penalty included.

        The penalty is counted at that distance from `center`.
        """
        rows = self.n_rows * self.lipschitz * self.row_norm
        rounded = (_SUM_ROUNDINGS + self.n_outputs) * _U * rows
        return rounded + 10 * _U * (self.ridge * (distance + self.center_norm) + self.linear_norm)

    def gradient_error(self, distance):
        """Bound the rounding error of the gradient at that distance from `center`."""
        shift = self.prediction_error(self.center_norm + distance)
        rows = self.n_rows * self.smoothness * self.row_norm
        return rows * shift + self.sum_error(distance)

    def gap_error(self, distance):
        """Bound the rounding error of a duality gap at that distance from `center`.

        The gap of a row has a slope in its predictions that is the difference of two
        residuals, hence at most the diameter of their set: L for classes, b - a for a loss
        with slopes a < b.
        """
        shift = self.prediction_error(self.center_norm + distance)
        slope = self.lipschitz if self.diameter is None else self.diameter
        return self.n_rows * slope * shift


def reachable_tolerance(bounds):
    """Return a distance that a certificate can reach, whatever the rows are.

    Parameters
    ----------
    bounds : Bounds
        Public constants of the objective.

    Returns
    -------
    tolerance : float
        Several times what rounding errors alone may amount to in the certificate:
        4 (error of the gradient) / ridge for a smooth loss; for another one the root of
        8 (error of the duality gap) / ridge, a prediction being counted as having at
        least 300 roundings, which is what the homotopy was seen to need.
    """
    if math.isfinite(bounds.smoothness):
        return 4 * bounds.gradient_error(bounds.reach) / bounds.ridge
    few = 300 / (bounds.n_coefs + bounds.n_outputs + 30)
    gap = bounds.gap_error(bounds.reach) * max(few, 1.0)
    gap += bounds.sum_error(bounds.reach) ** 2 / bounds.ridge
    return math.sqrt(8 * gap / bounds.ridge)


def check_tolerance(tolerance, bounds):
    """Raise a ValueError for a tolerance that rounding errors do not allow."""
    least = reachable_tolerance(bounds)
    if not tolerance >= least:
        raise ValueError(
            f"tolerance must be at least {least:.3g}, what rounding errors allow; "
            f"got {tolerance!r}."
        )
