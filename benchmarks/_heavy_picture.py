# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `heavy_tails_rates.py`: twelve log-log plots, readable in grey."""

import numpy as np
from _heavy_experiments import ORDERS, TAILS, private, statistical

# marker, line, colour
_STYLES = {
    "non-private": ("x", ":", "0.5"),
    "private mean": ("o", "-", "black"),
    "localised": ("s", "-", "0.35"),
    "halving": ("^", "--", "0.45"),
    "doubling": ("D", "-.", "0.6"),
    "noisy descent": ("v", "-", "0.7"),
}
_TAIL_STYLES = (("o", "-", "black"), ("s", "--", "0.35"), ("^", "-.", "0.5"), ("D", ":", "0.65"))
_ROWS, _EXCESS = "number of rows n", "excess expected loss"


def save_picture(found, path):
    """Draw all sweeps and save the figure.

    Parameters
    ----------
    found : dict of str to dict
        Rates by key and method, of every experiment by its name.
    path : Path
        Where to.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(3, 4, figsize=(11.0, 8.0), layout="constrained")
    for line, epsilon in zip(axes, (1.0, 8.0), strict=False):
        for axis, order in zip(line, ORDERS, strict=False):
            slopes = statistical(order), private(order)
            title = f"$\\epsilon$ = {epsilon:g}, $\\theta$ = {order:g}"
            _panel(axis, found["against_rows"], (epsilon, order), slopes, title, _ROWS)
    _panel(
        axes[0, 3], found["against_features"], 2.0, (None, -private(2.0) / 2),
        "features, $\\epsilon$ = 1/16, $\\theta$ = 2", "number of features d",
    )  # fmt: skip
    _panel(
        axes[1, 3], found["against_budget"], 2.0, (None, private(2.0)),
        "budget, $\\theta$ = 2", "Gaussian-DP parameter $\\mu$",
    )  # fmt: skip
    _tails(axes[2, 0], found["against_tails"])
    _panel(
        axes[2, 1], found["against_longest"], "outliers", (None, None),
        "outliers, moments fixed, $\\theta$ = 2", "longest row, in typical lengths",
    )  # fmt: skip
    for axis, order in zip(axes[2, 2:], (2.0, 4.0), strict=True):
        title = f"lower bound, $\\theta$ = {order:g}"
        _panel(axis, found["lower_bound"], order, (None, private(order)), title, _ROWS)
    handles = {}
    for axis in (axes[0, 0], axes[2, 1]):
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles),
        frameon=False, handlelength=2.6,
    )  # fmt: skip
    figure.savefig(path, dpi=110)
    plt.close(figure)
    _in_grey(path)


def _in_grey(path):
    from PIL import Image

    with Image.open(path) as picture:
        grey = picture.convert("L")
    grey.save(path, optimize=True)


def _curve(axis, rate, style, label):
    marker, line, color = style
    axis.errorbar(
        rate.x, rate.mean, 2 * rate.mean_error, marker=marker, linestyle=line, color=color,
        markersize=4, linewidth=1, label=label,
    )  # fmt: skip


def _theory(axis, rate, slope, line, label):
    """Draw a power law from the first point of a rate on, a little below it."""
    x = np.array([min(rate.x), max(rate.x)])
    axis.plot(
        x, 0.5 * rate.mean[0] * (x / rate.x[0]) ** slope, linestyle=line, color="black",
        linewidth=0.8, label=label,
    )  # fmt: skip


def _panel(axis, rates, key, slopes, title, variable):
    """Draw all methods at one key, and lines of slopes that theory gives."""
    _frame(axis, title, variable)
    for name, style in _STYLES.items():
        if (key, name) in rates:
            _curve(axis, rates[key, name], style, name)
    plain, noisy = slopes
    if plain is not None:
        label = "theory, without privacy"
        _theory(axis, rates[key, "non-private"], plain, (0, (1, 3)), label)
    if noisy is not None:
        label = "theory, noise dominates"
        _theory(axis, rates[key, "private mean"], noisy, (0, (6, 3)), label)
    _ticks(axis, rates[key, "private mean"].x)


def _frame(axis, title, variable):
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(variable)
    axis.set_ylabel(_EXCESS)
    axis.set_xscale("log")
    axis.set_yscale("log")


def _ticks(axis, x):
    """Give the horizontal axis ticks with plain numbers, where there are points."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.xaxis.set_major_locator(FixedLocator(list(x)[:: 2 if len(x) > 4 else 1]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.0f}" if value < 1e6 else f"{value / 1e6:g}e6")
        if max(x) > 2
        else FuncFormatter(lambda value, _: f"{value:.2g}")
    )


def _tails(axis, rates):
    """Draw the private mean for tails that differ."""
    _frame(axis, "private mean, tails, $\\epsilon$ = 1/16, $\\theta$ = 2", _ROWS)
    for (df, k), style in zip(TAILS.items(), _TAIL_STYLES, strict=True):
        rate = rates[df, "private mean"]
        _curve(axis, rate, style, f"t({df:g}), k = {k:g}")
        _theory(axis, rate, private(2.0, k), (0, (6, 3)), None)
    _ticks(axis, rate.x)
    # room for the legend
    low, high = axis.get_ylim()
    axis.set_ylim(low / 30, high)
    axis.legend(fontsize=7, frameon=False, loc="lower left", labelspacing=0.2)
