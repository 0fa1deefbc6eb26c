# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx extension: draw the picture of the first page from a table of accuracies.

The table is landing_chart.csv beside this file, with figures that benchmarks/accuracy.py measured.
The picture is drawn twice, for light and for dark pages, on a transparent ground.
"""

import csv
from pathlib import Path

#: what was measured
TABLE = Path(__file__).with_suffix(".csv")

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
#: data sets, their titles, and the vertical axis in per cent
PANELS = {
    "digits": ("Handwritten digits, 1,437 rows", (20, 104)),
    "Adult": ("Adult, 36,177 rows", (81.5, 85.15)),
}
#: method in the table, name in the picture, colour on light and on dark ground, style
METHODS = (
    ("untuned zero-out", "skdp, untuned", ("#0b5fa5", "#6cb6ff"), {"marker": "o", "lw": 2.2}),
    (
        "untuned replace-one",
        "the same, replace-one",
        ("#0b5fa5", "#6cb6ff"),
        {"marker": "o", "ls": ":", "lw": 1.8, "mfc": "none"},
    ),
    (
        "best tuned peer",
        "best of two others, tuned",
        ("#c2410c", "#ffa657"),
        {"marker": "s", "ls": "--", "lw": 1.8},
    ),
)
INKS = {"light": "#24292f", "dark": "#e6edf3"}


def table(path=TABLE):
    """Return {data set: {method: list of numbers}} of the committed figures.

    Parameters
    ----------
    path : Path
        A CSV file with a line of comment.

    Returns
    -------
    figures : dict of dict of list of float
        The means, in per cent, for every one of `EPSILONS`.
    """
    with path.open(encoding="utf-8", newline="") as file:
        _, (_, _, *epsilons), *rows = csv.reader(file)
    if tuple(map(float, epsilons)) != EPSILONS:
        raise ValueError(f"{path.name} is for other values of epsilon.")
    figures = {}
    for name, method, *values in rows:
        figures.setdefault(name, {})[method] = list(map(float, values))
    return figures


def draw(figures, ground):
    """Return the picture as a matplotlib figure.

    Parameters
    ----------
    figures : dict
        As `table` returns them.
    ground : {"light", "dark"}
        What it will stand on.

    Returns
    -------
    fig : Figure
        With a transparent ground.
    """
    # without pyplot, which would hand open figures to the gallery
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    ink = INKS[ground]
    style = {
        "font.size": 11, "text.color": ink, "axes.labelcolor": ink, "axes.edgecolor": ink,
        "xtick.color": ink, "ytick.color": ink, "axes.spines.top": False,
        "axes.spines.right": False,
    }  # fmt: skip
    with rc_context(style):
        fig = Figure(figsize=(10.4, 4.1), layout="constrained")
        axes = fig.subplots(1, 2)
        for ax, (name, (title, limits)) in zip(axes, PANELS.items(), strict=True):
            found = figures[name]
            plain = found["non-private"][0]
            ax.axhline(plain, color=ink, lw=1.2)
            ax.text(EPSILONS[0], plain, "not private", va="bottom")
            for method, label, colours, look in METHODS:
                colour = colours[ground == "dark"]
                ax.plot(EPSILONS, found[method], color=colour, markersize=6, label=label, **look)
            ax.set_xscale("log")
            ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            ax.minorticks_off()
            ax.set_ylim(limits)
            ax.set_yticks([tick for tick in ax.get_yticks() if tick <= min(100, limits[1])])
            ax.grid(axis="y", color=ink, alpha=0.15)
            ax.set_xlabel("epsilon: stronger privacy to the left")
            ax.set_title(title, fontsize=12, loc="left")
        axes[0].set_ylabel("test accuracy, per cent")
        axes[0].legend(frameon=False, loc="lower right", labelspacing=0.7)
    return fig


def write(app):
    """Write both pictures into the folder of generated files."""
    from matplotlib import rc_context

    folder = Path(app.srcdir, "generated")
    folder.mkdir(exist_ok=True)
    figures = table()
    for ground in INKS:
        with rc_context({"svg.hashsalt": ground}):  # the same file in every build
            draw(figures, ground).savefig(
                folder / f"accuracy-{ground}.svg", transparent=True, metadata={"Date": None}
            )


def setup(app):
    """Connect to Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
