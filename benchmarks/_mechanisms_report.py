# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the raw results of mechanisms.py, and what counts as noise."""

import json
import textwrap

import numpy as np
from _datasets import DELTA, EPSILONS
from scipy import stats

AUTO = "auto"
ADJACENCIES = ("zero-out", "replace-one")
LEVEL = 0.05  # of the paired t-test that calls a difference more than noise
SHORT = {"DPLogisticRegression": "logistic", "DPHingeSVM": "hinge"}


def cells_of(found, adjacency):
    """Return {(delta, estimator, label): {epsilon: accuracies and milliseconds}}."""
    rows = {}
    for key, cell in found["cells"].items():
        where, estimator, delta, label, epsilon = json.loads(key)
        if where == adjacency:
            row = rows.setdefault((delta, estimator, label), {})
            row[epsilon] = np.array(cell).T
    return dict(sorted(rows.items(), key=lambda item: item[0][0] == 0))  # stable


def standard_error(values):
    """Return the standard error of a mean."""
    return np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def difference(better, worse):
    """Return mean, standard error, p-value and number of pairs of a difference."""
    n = min(len(better), len(worse))  # the splits that both have
    gap = np.asarray(better[:n]) - np.asarray(worse[:n])
    mean, error = gap.mean(), standard_error(gap)
    if not error > 0:
        return mean, 0.0, float(mean == 0), n
    return mean, error, 2 * stats.t.sf(abs(mean / error), n - 1), n


def beats(better, worse):
    """Return whether one row is better than another beyond noise."""
    mean, _, p, _ = difference(better, worse)
    return mean > 0 and p < LEVEL


def filled(text):
    """Return a paragraph in lines."""
    return textwrap.fill(text, 95, break_long_words=False, break_on_hyphens=False)


def text_of(values):
    """Format mean and standard error."""
    return f"{np.mean(values):.1f} ± {standard_error(values):.1f}"


def best_in(rows, delta, epsilon, splits):
    """Return the rows that the one of the highest mean does not beat, for one delta."""
    at = {key: row[epsilon][0] for key, row in rows.items() if key[0] == delta}
    at = {key: values for key, values in at.items() if len(values) == splits}
    winner = max(at.values(), key=np.mean)
    return {key for key, values in at.items() if not beats(winner, values)}


def table(caption, header, rows):
    """Return the lines of a table."""
    lines = [f".. list-table:: {caption}", "   :header-rows: 1", ""]
    for row in (header, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {text}".rstrip() for i, text in enumerate(row)]
    return [*lines, ""]


def accuracy_table(name, adjacency, found):
    """Return one table of methods and epsilons."""
    rows = cells_of(found, adjacency)
    splits = len(found["non-private"])
    deltas = {key[0] for key in rows}
    best = {(d, e): best_in(rows, d, e, splits) for d in deltas for e in EPSILONS}
    lines = []
    for key, row in rows.items():
        delta, estimator, label = key
        n = len(row[EPSILONS[0]][0])
        label = f"{SHORT[estimator]}, {label}" + (f", {n} splits" if n < splits else "")
        texts = [text_of(row[e][0]) for e in EPSILONS]
        texts = [
            f"**{text}**" if key in best[delta, e] else text
            for text, e in zip(texts, EPSILONS, strict=True)
        ]
        lines.append((delta_text(delta), label, *texts, milliseconds(row)))
    for label, row in found.get("peer", {}).items() if adjacency == "replace-one" else ():
        row = {float(epsilon): np.array(cell).T for epsilon, cell in row.items()}
        lines.append(("0 †", label, *(text_of(row[e][0]) for e in EPSILONS), milliseconds(row)))
    caption = f"{name}, {adjacency}, {splits} splits; non-private {text_of(found['non-private'])}"
    return table(caption, ("δ", "method", *(f"ε = {e:g}" for e in EPSILONS), "ms"), lines)


def delta_text(delta):
    """Format delta."""
    return "1e-5" if delta == DELTA else f"{delta:g}"


def milliseconds(row):
    """Format the median time of a fit over splits and epsilons."""
    median = np.median(np.concatenate([cell[1] for cell in row.values()]))
    return f"{float(f'{median:.2g}'):g}"  # two digits, no exponent
