# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a `LedgerDisplay` is drawn."""

from skdp.inspection._drawing import (
    axes_for,
    budget_label,
    legend_above,
    options,
    words_beside,
    wrapped,
)

#: heights of rows, in lines of text
HEADER, GAP = 1.5, 0.6


def plot_bars(display, ax, *, wrap, bar_kw):
    """Draw a display.

    Parameters
    ----------
    display : LedgerDisplay
        What to draw.
    ax, wrap, bar_kw
        See `LedgerDisplay.plot`.

    Returns
    -------
    ax : matplotlib.axes.Axes
    bars, lines : list of matplotlib artists
    """
    lines_of_text = 1.8 * (len(display.parts) + 1) + 2.8 * len(display.not_covered)
    ax = axes_for(ax, "LedgerDisplay.plot", 4.8, 1.3 + 0.2 * lines_of_text)
    rows, headers, height = _rows(display, ax, wrap)
    look = {"height": 1.1, "color": "0.75", "edgecolor": "0.25", "linewidth": 0.8}
    bars = []
    for at, label, part in rows:
        if part is None:
            words_beside(ax, 0, at, label, style="italic")
        elif part.hidden:
            words = f"seen by those who add up: {part.epsilon:.3g}"
            words_beside(ax, 0, at, words, style="italic")
        else:
            (bar,) = ax.barh(at, part.epsilon, **options(look, bar_kw))
            bars.append(bar)
            words_beside(ax, part.epsilon, at, f"{part.epsilon:.3g}")
    for at, step in headers:
        words_beside(ax, 0, at, step, fontweight="bold")
    what = "all with a ledger" if display.not_covered else "all together"
    label = f"{what}: {display.total:.4g}"
    lines = [ax.axvline(display.total, color="black", linewidth=1.5, label=label)]
    if len(bars) > 1:
        label = f"plain sum of the bars: {display.plain_sum:.4g}"
        look = {"color": "0.35", "linestyle": ":", "linewidth": 1.3, "label": label}
        lines.append(ax.axvline(display.plain_sum, **look))
    _dress(ax, display, rows, height)
    return ax, bars, lines


def _rows(display, ax, wrap):
    """Return rows (position, label, part or None), headers (position, step), and the height."""
    steps = list(dict.fromkeys(part.step for part in display.parts))
    grouped = len(steps) > 1 or bool(display.not_covered)
    rows, headers, at = [], [], 0.0
    for step in steps:
        if grouped and step:
            headers.append((at + HEADER / 2, step))
            at += HEADER
        for part in display.parts:
            if part.step != step:
                continue
            times = f" ({part.count}\N{NO-BREAK SPACE}times)" if part.count > 1 else ""
            label = wrapped(part.name + times, ax, wrap)
            space = 1.7 + label.count("\n")
            rows.append((at + space / 2, label, part))
            at += space
        at += GAP if step != steps[-1] or display.not_covered else 0.0
    for text in display.not_covered:
        # beside the axis, where there is about as much room as for the labels
        words = wrapped(text, ax)
        space = 1.4 + words.count("\n")
        rows.append((at + space / 2, words, None))
        at += space
    return rows, headers, at


def _dress(ax, display, rows, height):
    """Label the axes."""
    labels = ["not covered" if part is None else label for _, label, part in rows]
    ax.set_yticks([at for at, _, _ in rows], labels, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(height + 0.4, -0.3)
    widest = max(
        display.total, display.plain_sum, *(p.epsilon for p in display.parts if not p.hidden), 0.0
    )
    # room for the number beside the longest bar; nothing spent is a picture too
    ax.set_xlim(0, 1.12 * widest or 1.0)
    ax.set_xlabel(budget_label(display.delta, display.facts))
    ax.grid(axis="x", color="0.92", linewidth=0.8)
    legend_above(ax)
