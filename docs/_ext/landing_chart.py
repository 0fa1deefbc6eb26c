# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx extension: draw the picture of the first page from a table of accuracies.

The table is landing_chart.csv beside this file, with figures that benchmarks/careless.py measured.
The picture is drawn twice, for light and for dark pages, on a transparent ground. As a script this
file draws that of the README, docs/_static/tables.svg.
"""

import csv
from pathlib import Path

#: what was measured
TABLE = Path(__file__).with_suffix(".csv")

#: tables with columns of several kinds, and how they are called in the picture
NAMES = {
    "Adult": "Adult: income",
    "vote": "survey: vote",
    "abortion": "survey: abortion",
    "credit": "credit: default",
    "churn": "telephone: churn",
    "customers": "internet: churn",
    "union": "panel: union",
    "mortgages": "mortgages: denial",
}
#: method in the table, name in the picture, colour on light and on dark ground, shift, marker
METHODS = (
    ("skdp", "skdp, the table as it is", ("#0b5fa5", "#6cb6ff"), -0.17, "o"),
    ("diffprivlib", "diffprivlib, prepared by hand and tuned", ("#c2410c", "#ffa657"), 0.17, "s"),
)
PLAIN = "not private"
INKS = {"light": "#24292f", "dark": "#e6edf3"}


def table(path=TABLE):
    """Return {data set: {method: accuracy}} of the committed figures.

    Parameters
    ----------
    path : Path
        A CSV file with a line of comment.

    Returns
    -------
    figures : dict of dict of float
        The means, in per cent.
    """
    with path.open(encoding="utf-8", newline="") as file:
        _, (_, *methods), *rows = csv.reader(file)
    return {name: dict(zip(methods, map(float, row), strict=True)) for name, *row in rows}


def lost(figures):
    """Return {data set: {method: points of accuracy below the model without privacy}}."""
    return {
        name: {method: figures[name][PLAIN] - figures[name][method] for method, *_ in METHODS}
        for name in NAMES
    }


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
        With a transparent ground, and letters that can be read at the width of a telephone.
    """
    # without pyplot, which would hand open figures to the gallery
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    ink = INKS[ground]
    style = {
        "font.size": 12, "text.color": ink, "axes.labelcolor": ink, "axes.edgecolor": ink,
        "xtick.color": ink, "ytick.color": ink, "axes.spines.top": False,
        "axes.spines.right": False, "axes.spines.left": False, "ytick.major.size": 0,
    }  # fmt: skip
    found = lost(figures)
    order = sorted(found, key=lambda name: found[name]["diffprivlib"])
    with rc_context(style):
        fig = Figure(figsize=(5.4, 4.6), layout="constrained")
        ax = fig.subplots()
        ax.axvline(0, color=ink, lw=1.2)
        ax.text(0.06, len(order) - 0.45, "not private", va="center")
        for method, label, colours, shift, marker in METHODS:
            colour = colours[ground == "dark"]
            values = [found[name][method] for name in order]
            places = [place - shift for place in range(len(order))]
            ax.hlines(places, 0, values, color=colour, lw=2.4)
            ax.plot(values, places, marker, color=colour, markersize=7, label=label)
        ax.set_yticks(range(len(order)), [NAMES[name] for name in order])
        ax.set_ylim(-0.6, len(order) - 0.2)
        ax.grid(axis="x", color=ink, alpha=0.15)
        ax.set_axisbelow(True)
        ax.set_xlabel("points of accuracy lost at epsilon 1")
        fig.legend(frameon=False, loc="outside upper left", ncols=1, borderaxespad=0.2)
    return fig


def save(path, ground, **options):
    """Write the picture, the same file in every build."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": ground}):
        draw(table(), ground).savefig(path, metadata={"Date": None}, **options)


def write(app):
    """Write both pictures into the folder of generated files."""
    folder = Path(app.srcdir, "generated")
    folder.mkdir(exist_ok=True)
    for ground in INKS:
        save(folder / f"tables-{ground}.svg", ground, transparent=True)


def setup(app):
    """Connect to Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    save(TABLE.parent.parent / "_static" / "tables.svg", "light", facecolor="white")
