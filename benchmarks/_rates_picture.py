# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `private_erm_rates.py`: one small log-log plot for every sweep."""

import math

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
