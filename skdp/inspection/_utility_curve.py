# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a `PrivacyUtilityDisplay` is drawn."""

import numpy as np

from skdp.inspection._drawing import axes_for, budget_label, options, plain_log_axis

#: one after the other, so that curves differ without colour
STYLES = [
    {"color": "tab:blue", "linestyle": "-", "marker": "o"},
    {"color": "tab:red", "linestyle": "--", "marker": "s"},
    {"color": "tab:green", "linestyle": "-.", "marker": "^"},
    {"color": "tab:purple", "linestyle": (0, (1, 1)), "marker": "D"},
    {"color": "tab:brown", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
]
#: marks the curves of this library, for the next one on the same axes
CURVE = "skdp-curve"
TOLD = {"std": ", mean ± s.d.", "min-max": ", mean and range", None: ", mean"}


def plot_curve(display, ax, band, line_kw, fill_between_kw, baseline_kw):
    """Draw a display.

    Parameters
    ----------
    display : PrivacyUtilityDisplay
        What to draw.
    ax, band, line_kw, fill_between_kw, baseline_kw
        See `PrivacyUtilityDisplay.plot`.

    Returns
    -------
    ax : matplotlib.axes.Axes
    lines : list of matplotlib.lines.Line2D
        The curve, and the lines across.
    filled : matplotlib artist or None
        The band.
    """
    ax = axes_for(ax, "PrivacyUtilityDisplay.plot", 4.8, 3.3)
    before = sum(line.get_gid() == CURVE for line in ax.lines)
    several = display.scores.shape[1] > 1
    band = band if several else None
    style = {**STYLES[before % len(STYLES)], "markersize": 4.5, "linewidth": 1.5}
    style = options({**style, "label": display.name or display.score_name}, line_kw)
    lines = ax.plot(display.epsilons, display.mean_scores, gid=CURVE, **style)
    filled = None if band is None else _fill(display, ax, band, lines[0], fill_between_kw)
    lines += _lines_across(display, ax, baseline_kw)
    _epsilon_axis(ax)
    # curves at several deltas: then no delta is right for the axis
    same = not before or ax.get_xlabel() == budget_label(display.delta)
    ax.set_xlabel(budget_label(display.delta if same else None))
    ax.set_ylabel(display.score_name + (TOLD[band] if several else ""))
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    handles = ax.get_legend_handles_labels()[0]
    # curves first, and a legend through which a line shows but does not disturb
    handles.sort(key=lambda line: getattr(line, "get_gid", str)() != CURVE)
    ax.legend(handles=handles, fontsize="small", edgecolor="none", framealpha=0.85)
    return ax, lines, filled


def _fill(display, ax, band, line, given):
    """Draw the band, and return it."""
    lower, upper = display.band(band)
    if len(lower) == 1:
        # a band needs a width
        look = options({"color": line.get_color(), "linewidth": 1.2}, given)
        return ax.vlines(display.epsilons, lower, upper, **look)
    look = {"color": line.get_color(), "alpha": 0.18, "linewidth": 0}
    return ax.fill_between(display.epsilons, lower, upper, **options(look, given))


def _lines_across(display, ax, baseline_kw):
    """Draw the lines that do not depend on epsilon, and return them."""
    lines = []
    if display.baseline_scores is not None:
        name = display.baseline_name
        label = f"{name}, not private" if name else "not private"
        look = {"color": "black", "linestyle": (0, (6, 3)), "linewidth": 1.1, "label": label}
        height = display.baseline_scores.mean()
        lines.append(ax.axhline(height, **options(look, baseline_kw)))
    if display.chance is not None:
        look = {"color": "0.45", "linestyle": ":", "linewidth": 1.3, "label": "guessing"}
        lines.append(ax.axhline(display.chance, **look))
    return lines


def _epsilon_axis(ax):
    """Make the axis of epsilon logarithmic, with ticks at the budgets if they have room."""
    from matplotlib.ticker import FixedLocator

    curves = [line for line in ax.lines if line.get_gid() == CURVE]
    shown = np.unique(np.concatenate([line.get_xdata() for line in curves]))
    logs = np.log(shown)
    ax.set_xscale("log")
    margin = 0.05 * (logs[-1] - logs[0]) or np.log(2)
    ax.set_xlim(np.exp(logs[0] - margin), np.exp(logs[-1] + margin))
    # a label of four characters needs about a tenth of a column
    roomy = len(shown) <= 9 and np.all(np.diff(logs) >= 0.09 * (logs[-1] - logs[0]))
    plain_log_axis(ax.xaxis, FixedLocator(shown) if roomy else None)
