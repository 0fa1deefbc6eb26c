# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Regression, means, quantiles and scalers on the accuracy page."""

import numpy as np
from _accuracy_statistics import SHAPES
from _accuracy_statistics_data import BOUNDS, QUANTILES
from _accuracy_store import read
from _datasets import EPSILONS
from _mechanisms_report import table

__all__ = ["statistics_page"]

REGRESSION = """\
Regression: diamonds
--------------------

R² on a fifth of 53,940 diamonds, whose prices have a long right tail; features are brought to one
scale by constants that nobody pays for, the same for all methods. δ = 1e-5, but for diffprivlib †,
which states δ = 0 and no adjacency. ``DPLpRegressor`` is given no bounds; AdaSSP (noisy sufficient
statistics) gets the best of 75 settings by its true error, and diffprivlib the exact range of
the data. More tables and heavier tails: :doc:`heavy_tails`.

"""
STATISTICS = """\
Means, quantiles, scales
------------------------

Ten columns, half of them normal and half exponential, bounds {low:g} to {high:g}. Root mean square
error over the columns in their standard deviations, the median of {repeats} repeats on fresh rows;
quantiles are those of one exponential column; a scale's error is relative. diffprivlib † states
δ = 0 and no adjacency; its noise is that of replace-one, beside which stand rows of δ = 0 and
replace-one. More on medians: :ref:`location`.

"""
_TABLES = {
    "mean": "Means",
    **{f"quantile {q:g}": f"Quantile {q:g}, δ = 0" for q in QUANTILES},
    "scale": "Standard deviations, from the scalers",
}


def _collected(folder):
    rows = {}
    for library in ("skdp", "diffprivlib"):
        for record in read(folder / f"{library}_statistics.jsonl"):
            *where, epsilon, _ = record["key"]
            cells = rows.setdefault(tuple(where), {}).setdefault(epsilon, [])
            cells.append((record["error"], record["seconds"]))
    return rows


def _score(value):
    return "below 0" if value < 0 else f"{value:.3f}"


def _time(row):
    seconds = np.median([seconds for cells in row.values() for _, seconds in cells])
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"


def statistics_page(folder):
    """Return the lines of all these tables.

    Parameters
    ----------
    folder : pathlib.Path
        Of the results.

    Returns
    -------
    lines : list of str
        In reStructuredText.
    """
    rows = _collected(folder)
    if not rows:
        return []
    header = [f"ε = {e:g}" for e in EPSILONS]
    body = []
    for (where, *rest), row in rows.items():
        if where == "regression":
            cells = [_score(np.mean([s for s, _ in row[e]])) if e in row else "" for e in EPSILONS]
            if None in row:
                cells = [_score(np.mean([score for score, _ in row[None]]))] * len(EPSILONS)
            splits = len(next(iter(row.values())))
            body.append((f"{rest[-1]}", *cells, str(splits), _time(row)))
    lines = [REGRESSION, *table("R²", ("method", *header, "splits", "fit"), body)]
    repeats = max(len(cells) for row in rows.values() for cells in row.values())
    lines.append(STATISTICS.format(low=BOUNDS[0], high=BOUNDS[1], repeats=repeats))
    for kind, title in _TABLES.items():
        body = []
        for n_rows, _ in SHAPES:
            for (where, *rest), row in rows.items():
                if where == kind and rest[0] == n_rows:
                    cells = [
                        f"{np.median([x for x, _ in row[e]]):.2g}" if e in row else ""
                        for e in EPSILONS
                    ]
                    body.append((f"{n_rows:,}", rest[-1], *cells, _time(row)))
        if body:
            lines += table(title, ("rows", "method", *header, "fit"), body)
    return lines
