# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public units of a regression, and what penalties, bounds and clips are in them."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._losses import HuberLoss, PinballLoss, QuarticLoss, SquaredLoss
from skdp._queries import unit_rows

#: rows longer than that many units of length, where the unit is drawn, are scaled down
LONGEST = 6.0
# no number in units leaves this range: beyond it nothing can be told from zero or infinity
_RANGE = (1e-40, 1e40)
_LARGEST_COEF = 1e200


def regression_loss(p, quantile, huber_threshold):
    """Return the loss that the parameters name, or raise a ValueError."""
    if p == 1:
        return PinballLoss(quantile)
    if quantile != 0.5:
        raise ValueError(
            f"quantile is a parameter of p=1, whose loss has two slopes; got quantile={quantile!r} "
            f"with p={p!r}."
        )
    if p == "huber":
        return HuberLoss(huber_threshold)
    if huber_threshold != 1.0:
        raise ValueError(
            f"huber_threshold is a parameter of p='huber'; got {huber_threshold!r} with p={p!r}."
        )
    if p not in (2, 4):
        raise ValueError(f"p must be 1, 2, 4 or 'huber'; got {p!r}.")
    return SquaredLoss() if p == 2 else QuarticLoss()


def check_scale(name, value):
    """Raise a ValueError unless a scale is None or a number that floats can work with."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (number and 1e-50 <= value <= 1e50):
        raise ValueError(f"{name} must be None or a number in [1e-50, 1e50]; got {value!r}.")


def kept(value):
    """Return a positive number brought into the range of usable ones."""
    return float(min(max(value, _RANGE[0]), _RANGE[1]))


def kept_exp(logarithm):
    """Return the number with that logarithm, brought into the range of usable ones."""
    return kept(math.exp(min(max(logarithm, -200.0), 200.0)))


@dataclass(frozen=True)
class Units:
    """Units of a regression; public by the time that they exist.

    Parameters
    ----------
    radius, longest : float, float
        Unit of length of the rows, and the length, in this unit, to which longer ones are
        scaled down.
    center, scale : float, float
        Origin and unit of the targets.
    intercept : float
        Constant feature, in units of length; 0 for none.
    power : float
        The loss of targets and predictions in units is ``scale**-power`` times the loss.
    """

    radius: float
    longest: float
    center: float
    scale: float
    intercept: float
    power: float

    @property
    def given(self):
        """Unit of length, and origin and unit of the targets."""
        return self.radius, self.center, self.scale

    def rows(self, rows):
        """Return admitted rows in these units."""
        return unit_rows(rows, self.radius, self.longest, self.intercept, self.center, self.scale)

    def penalty(self, l2):
        """Return the strength of ``l2/2 |coef|^2`` for coefficients in units; 0 for none."""
        if l2 == 0:
            return 0.0
        # by logarithms: powers of scales may overflow
        log = math.log(l2) + (2 - self.power) * math.log(self.scale) - 2 * math.log(self.radius)
        return kept_exp(log)

    def coef_bound(self, bound):
        """Return the radius of a ball in units; None for none."""
        return None if bound is None else kept(bound * self.radius / self.scale)

    def gradient(self, norm):
        """Return the norm of a row's gradient in units."""
        log = math.log(norm) - math.log(self.radius) - (self.power - 1) * math.log(self.scale)
        return kept_exp(log)

    def original(self, coef):
        """Return coefficients and intercept in the units of the data."""
        body = coef[:-1] if self.intercept else coef
        with np.errstate(over="ignore", under="ignore"):
            body = np.clip(body * (self.scale / self.radius), -_LARGEST_COEF, _LARGEST_COEF)
            shift = self.scale * self.intercept * coef[-1] if self.intercept else 0.0
        return body, float(np.clip(self.center + shift, -_LARGEST_COEF, _LARGEST_COEF))
