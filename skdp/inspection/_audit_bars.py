# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How an `AuditDisplay` is drawn."""

import numpy as np

from skdp.inspection._drawing import (
    axes_for,
    budget_label,
    legend_above,
    options,
    plain_log_axis,
    width_in_inches,
    words_beside,
    wrapped,
)

#: from this ratio on, small rows could not be read on a linear axis
WIDE = 30.0
PLAIN = {"color": "0.82", "edgecolor": "0.35", "linewidth": 0.8}
BROKEN = {"color": "white", "edgecolor": "black", "linewidth": 1.2, "hatch": "////"}


def plot_audits(display, ax, *, log, wrap, bar_kw):
    """Draw a display.

    Parameters
    ----------
    display : AuditDisplay
        What to draw.
    ax, log, wrap, bar_kw
        See `AuditDisplay.plot`.

    Returns
    -------
    ax : matplotlib.axes.Axes
    bars, lines : list of matplotlib artists
    """
    ax = axes_for(ax, "AuditDisplay.plot", 4.8, 1.4 + 0.36 * len(display.names))
    labels = [wrapped(name, ax, wrap) for name in display.names]
    heights = np.array([1.7 + label.count("\n") for label in labels])
    at = np.cumsum(heights) - heights / 2
    narrow = width_in_inches(ax) < 3.2
    left, right = _ends(display, log)
    ax.set_xscale("log" if left else "linear")
    if left:
        plain_log_axis(ax.xaxis)
    ax.set_xlim(left, right)
    ax.set_ylim(heights.sum() + 0.2, -0.2)
    contradicted = np.array(display.contradicted)
    bars = []
    for y, lower, broken in zip(at, display.lower_bounds, contradicted, strict=True):
        look = options({"height": 1.0, **(BROKEN if broken else PLAIN)}, bar_kw)
        bars += ax.barh(y, max(lower - left, 0.0), left=left, **look)
    claims = np.array([np.nan if c is None else c for c in display.claims])
    lines = _markers(ax, at, claims, contradicted)
    for y, lower, claim, broken in zip(at, display.lower_bounds, claims, contradicted, strict=True):
        words = "no claim" if np.isnan(claim) else "" if lower > 0 else "nothing ruled out"
        style = {"fontstyle": "italic"}
        if broken:
            # hatches and crosses say it in a narrow column, where a long word has no room
            words, style = ("" if narrow else "CONTRADICTED"), {"fontweight": "bold"}
        if words:
            words_beside(ax, np.nanmax([lower, left, claim]), y, words, **style)
    ax.set_yticks(at, labels, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(budget_label(_common(display.deltas)))
    ax.grid(axis="x", color="0.92", linewidth=0.8)
    _legend(ax, display, bars, lines)
    return ax, bars, lines


def _common(values):
    """Return the value that all share, or None."""
    return values[0] if values and len(set(values)) == 1 else None


def _ends(display, log):
    """Return the ends of the axis; the left one is 0 for a linear axis."""
    claims = [claim for claim in display.claims if claim is not None]
    numbers = np.array([*display.lower_bounds[display.lower_bounds > 0], *claims])
    if not len(numbers):
        return 0.0, 1.0
    smallest, largest = numbers.min(), numbers.max()
    if log is None:
        log = largest > WIDE * min(claims, default=largest)
    # what is smaller by many orders of magnitude would leave no room for the rest
    smallest = max(smallest, largest * 1e-12)
    room = 1.45 if any(display.contradicted) or None in display.claims else 1.1
    if not log:
        return 0.0, largest * room
    return smallest / 3, largest * (largest / smallest * 3) ** (room - 1.0)


def _markers(ax, at, claims, contradicted):
    """Draw the claims, and return the artists."""
    lines = []
    for broken, marker, label in [
        (False, "D", "claimed"),
        (True, "X", "claimed, contradicted"),
    ]:
        chosen = (contradicted == broken) & ~np.isnan(claims)
        if chosen.any():
            lines += ax.plot(
                claims[chosen], at[chosen], marker, color="black", label=label, zorder=3,
                markersize=8 if broken else 5.5, markeredgecolor="white", linestyle="none",
            )  # fmt: skip
    return lines


def _legend(ax, display, bars, lines):
    """Say what bars and markers are, above the axes."""
    from matplotlib.patches import Patch

    confidence = _common(display.confidences)
    sure = "" if confidence is None else f" at {100 * confidence:g} % confidence"
    # the look of a bar that is not contradicted, if there is one
    bar = bars[display.contradicted.index(False) if not all(display.contradicted) else 0]
    patch = Patch(
        facecolor=bar.get_facecolor(), edgecolor=bar.get_edgecolor(), hatch=bar.get_hatch(),
        label=f"ruled out{sure}",
    )  # fmt: skip
    handles = [patch, *lines]
    legend_above(ax, handles)
