# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The page that `heavy_tails_rates.py` writes for the documentation."""

import _heavy_prose as prose
import numpy as np
from _heavy_experiments import METHODS, ORDERS, PRIVATE, TAILS, hard_rate, private, statistical


def _table(header, rows):
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (header, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join([*lines, ""])


def _slope(rate):
    return f"{rate.slope:+.2f} ± {rate.slope_error:.2f}"


def rows_table(rates):
    """Return header and rows of the slopes in n."""
    rows = []
    for epsilon, order in dict.fromkeys(key for key, _ in rates):
        theory = f"{statistical(order):+.2f}", f"{private(order):+.2f}"
        slopes = (_slope(rates[(epsilon, order), name]) for name in METHODS)
        rows.append((f"{epsilon:g}", f"{order:g}", *theory, *slopes))
    return ("ε", "θ", "without privacy", "noise dominates", *METHODS), rows


def levels_table(rates):
    """Return header and rows of the errors at the largest n."""
    rows = []
    for epsilon, order in dict.fromkeys(key for key, _ in rates):
        levels = (f"{rates[(epsilon, order), name].mean[-1]:.2g}" for name in METHODS)
        rows.append((f"{epsilon:g}", f"{order:g}", *levels))
    return ("ε", "θ", *METHODS), rows


def noise_table(found):
    """Return header and rows of the slopes where noise dominates."""
    rows = []

    def base(k):
        return -(k - 1) / k

    def add(name, rates, key, *expected):
        slopes = (_slope(rates[key, method]) for method in PRIVATE)
        rows.append((name, *(f"{slope:+.2f}" for slope in expected), *slopes))

    for order in (2.0, 4.0):
        rates = found["against_features"]
        add(f"d, θ = {order:g}", rates, order, -private(order) / 2, -base(4.0) / 2)
    for order in (2.0, 4.0):
        rates = found["against_budget"]
        add(f"μ, θ = {order:g}", rates, order, private(order), base(4.0))
    for df, k in TAILS.items():
        name = f"n, t({df:g}), k = {k:g}"
        add(name, found["against_tails"], df, private(2.0, k), base(k))
    return ("variable", "theory", "localised, proved", *PRIVATE), rows


def longest_table(rates):
    """Return header and rows of the errors with long rows."""
    names = [name for _, name in rates]
    lengths = rates["outliers", names[0]].x
    rows = [
        (f"{length:,.0f}", *(f"{rates['outliers', name].mean[i]:.2g}" for name in names))
        for i, length in enumerate(lengths)
    ]
    means = [rates["outliers", name].mean for name in names]
    rows.append(("largest / smallest", *(f"{max(mean) / min(mean):,.3g}" for mean in means)))
    return ("longest row", *names), rows


def bound_table(rates):
    """Return header and rows of the errors on the lower bound's instance, in rates."""
    rows = []
    for order in ORDERS:
        zero = (1 - 1 / order) * 2 ** (-order / (order - 1))
        cells = []
        for name in METHODS:
            rate = rates[order, name]
            ratios = [
                mean / hard_rate(n, 64, 1.0, order)
                for mean, n in zip(rate.mean, rate.x, strict=True)
            ]
            cells.append(f"{np.min(ratios):.2g} ({rate.slope:+.2f})")
        rows.append((f"{order:g}", f"{private(order):+.2f}", *cells, f"{zero:.3g}"))
    return ("θ", "theory", *METHODS, "zero vector"), rows


def page(found, repeats):
    """Return the page: text, tables, picture.

    Parameters
    ----------
    found : dict of str to dict
        Rates by key and method, of every experiment by its name.
    repeats : int
        How often everything was run.

    Returns
    -------
    text : str
        In reStructuredText.
    """
    rows = found["against_rows"]
    parts = [
        prose.BEFORE.replace("REPEATS", str(repeats)),
        prose.PICTURE,
        prose.ROWS,
        _table(*rows_table(rows)),
        prose.LEVELS,
        _table(*levels_table(rows)),
        prose.told_convexity(rows),
        prose.NOISE,
        _table(*noise_table(found)),
        prose.LONGEST,
        _table(*longest_table(found["against_longest"])),
        prose.BOUND,
        _table(*bound_table(found["lower_bound"])),
        prose.WHAT_HOLDS,
    ]
    return "\n".join(parts)
