# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Repeated measurements, the slope of an error in logarithms, and a picture of such slopes."""

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


# The picture: one small log-log plot for every sweep.

_COLUMNS = 4
_STYLES = (("o", "black"), ("s", "0.4"), ("^", "0.6"), ("D", "0.75"))


def save_picture(rates, path):
    """Draw rates, those of one panel together, and save the figure.

    Parameters
    ----------
    rates : list of Rate
        What was measured.
    path : Path
        Where to.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    panels = {}
    for rate in rates:
        panels.setdefault(rate.panel or (rate.name, rate.variable), []).append(rate)
    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    n_columns = min(_COLUMNS, len(panels))
    n_lines = math.ceil(len(panels) / n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(2.5 * n_columns, 2.3 * n_lines), layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for axis, members in zip(axes.flat, panels.values(), strict=False):
        _draw(axis, members)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    with Image.open(path) as picture:
        grey = picture.convert("L")
    grey.save(path, optimize=True)


def _draw(axis, members):
    """Draw the rates of one panel."""
    several = len(members) > 1
    for rate, (marker, color) in zip(members, _STYLES, strict=False):
        variable, x = rate.drawn or (rate.variable, rate.x)
        label = f"slope {rate.slope:+.2f}"
        if several:
            label = f"{rate.name.split(', ')[-1]}: {rate.slope:+.2f} in {rate.variable}"
        axis.errorbar(
            x, rate.mean, 2 * rate.mean_error, fmt=marker, color=color, markersize=4, label=label,
            linewidth=1,
        )  # fmt: skip
        expected = None if several else f"expected {rate.expected:+.2g}"
        axis.plot(x, rate.line(), linestyle="--", color=color, linewidth=1, label=expected)
    title = members[0].panel or members[0].name
    axis.set_xscale("log")
    axis.set_yscale("log")
    _ticks(axis, members)
    axis.set_xlabel(variable)
    axis.set_title(title, fontsize=8)
    axis.legend(
        fontsize=6.5 if several else 7, frameon=False, handlelength=1.4, borderpad=0.1,
        labelspacing=0.25, loc="lower left" if several else "upper center",
    )  # fmt: skip
    axis.set_ylabel(members[0].unit)


def _ticks(axis, members):
    """Give both axes few ticks with plain numbers, and the errors two decades at least."""
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        NullFormatter,
        NullLocator,
    )

    _, x = members[0].drawn or (None, members[0].x)
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
    axis.xaxis.set_major_locator(FixedLocator(list(x)[:: max(2, (len(x) - 1) // 2)]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(plain)
    low, high = axis.get_ylim()
    stretch = max(1.0, 60 / (high / low)) ** 0.5
    # room for the legend
    high_room = (high / low) ** (0.22 * (len(members) < 2))
    low_room = (high / low) ** (0.12 * len(members) * (len(members) > 1))
    axis.set_ylim(low / stretch / low_room, high * stretch * high_room)
    axis.yaxis.set_major_locator(LogLocator(10))
    axis.yaxis.set_major_formatter(plain)
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.margins(x=0.1)
