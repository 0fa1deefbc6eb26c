# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Repeated measurements, and the slope of an error in logarithms that comes out of them."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: how far a fitted slope may be from the expected one
TOLERANCE = 0.1


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Parameters
    ----------
    repeats : int
        Repeats of a slow point; quick ones get more.
    points : int or None
        Only the first so many values of a sweep.
    """

    repeats: int = 20
    points: int | None = None

    def sweep(self, start, octaves):
        """Return powers of two times `start`."""
        return [start * 2.0**i for i in range(octaves + 1)][: self.points]

    def repeat(self, function, *arguments, times=1):
        """Return the results of repeated calls."""
        return np.array([function(*arguments) for _ in range(times * self.repeats)])


def worst(candidates):
    """Return the errors with the largest mean."""
    return max(candidates, key=np.mean)


@dataclass(frozen=True, eq=False)
class Rate:
    """Errors measured at several values of one variable.

    Parameters
    ----------
    name, variable : str
        The experiment, and what varies.
    expected : float
        The slope that theory gives.
    x : list of float
        Values of the variable.
    samples : list of ndarray
        Errors of all repeats, for every value.
    drawn : tuple of (str, list of float), default=None
        Variable and values for the picture, where they are not those of the fit.
    panel : str, default=""
        Rates of one panel are drawn together; empty for a panel of its own.
    unit : str, default="excess loss"
        What the errors are.
    """

    name: str
    variable: str
    expected: float
    x: Any
    samples: Any
    drawn: Any = None
    panel: str = ""
    unit: str = "excess loss"
    _fit: Any = field(init=False, default=None)

    def __post_init__(self):
        object.__setattr__(self, "_fit", self._fitted())

    @property
    def mean(self):
        """Mean error at every value."""
        return np.array([np.mean(errors) for errors in self.samples])

    @property
    def mean_error(self):
        """Standard error of every mean."""
        return np.array(
            [np.std(errors, ddof=1) / math.sqrt(len(errors)) for errors in self.samples]
        )

    def _fitted(self):
        t = np.log(self.x)
        weight = (t - t.mean()) / ((t - t.mean()) ** 2).sum()
        log_mean = np.log(self.mean)
        slope = float(weight @ log_mean)
        rest = log_mean - log_mean.mean() - slope * (t - t.mean())
        from_noise = np.linalg.norm(weight * self.mean_error / self.mean)
        from_rest = np.linalg.norm(weight) * np.linalg.norm(rest) / math.sqrt(max(1, len(t) - 2))
        return slope, float(max(from_noise, from_rest)), log_mean.mean() - slope * t.mean()

    @property
    def slope(self):
        """Fitted slope: least squares, every value counting the same."""
        return self._fit[0]

    @property
    def slope_error(self):
        """Standard error of the slope, from the repeats or from the residuals if larger."""
        return self._fit[1]

    @property
    def within(self):
        """Whether the slope is within the tolerance."""
        return abs(self.slope - self.expected) <= TOLERANCE

    def line(self):
        """Return the expected power law through the middle of the measured points."""
        t = np.log(self.x)
        return np.exp(np.log(self.mean).mean() + self.expected * (t - t.mean()))

    def cells(self):
        """Return the row of the table."""
        low, high = (
            f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
            for value in (min(self.x), max(self.x))
        )
        return (
            self.name,
            f"{self.variable}, {low} to {high}",
            f"{self.expected:+.2f}",
            f"{self.slope:+.3f} ± {self.slope_error:.3f}",
            "yes" if self.within else "no",
        )
