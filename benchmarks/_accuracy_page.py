# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The accuracy page of the documentation, written from stored results."""

import numpy as np
from _accuracy_data import DATA, FIRST_SEED, describe
from _accuracy_methods import DEFAULT, UNBOUNDED, WITH_DELTA
from _accuracy_statistics_page import statistics_page
from _accuracy_store import read
from _accuracy_tables import (
    accuracy_tables,
    belief,
    best_of_peers,
    collect,
    comparison,
    duration,
    is_complete,
    probability_tables,
    texts_of,
    time_table,
)
from _datasets import EPSILONS
from _machine import machine, versions
from _mechanisms_report import LEVEL, difference, filled, standard_error, table
from _tables import KEPT_ASIDE

__all__ = ["PICTURE", "page", "save_picture"]

INTRODUCTION = """\
.. This file is written by benchmarks/accuracy.py.

Accuracy beside other libraries
===============================

Test accuracy in per cent of every classifier of the library and of those of other libraries, on the
same rows and splits: mean ± standard error over splits with fresh noise; log-loss, AUC (of more
classes: the mean of each against the others) and Brier score; CPU seconds. Ours are untuned: every
row is a constructor with its defaults and what the row says. Seven of the thirteen tables were kept
aside while geometry and steps were chosen, and have fewer rows. "tuned unpaid" is the best of a
grid on splits of its own (seeds 0 and 1; of Adult, text and MNIST 0), which a real user would have
to pay for. Rows are brought into the unit ball by public constants. One command makes the
environments of the peers, measures, and writes this page: ``python benchmarks/accuracy.py``.

**Read down a table, never across tables.** All rows of a table make the same promise: the same
delta, and the same pairs of neighbouring data sets. Opacus counts the addition or removal of a
row; its noise is that of zero-out, where a row is replaced by nothing, at the same clipping
norm. Replace-one is the stronger promise, with twice the noise. Bold is the highest mean of its
column.

† Nominal. Neither diffprivlib nor DP-EBM states its adjacency; a perturbed objective in the form
of diffprivlib's is analysed for the replacement of a row, so both stand with replace-one.
In an audit diffprivlib's logistic regression breaks the epsilon that it states, at other values
of ``data_norm``: :doc:`../user_guide/audits`. DP-EBM is given the one-hot columns and public
bounds. No peer takes sparse rows: they are given the text dense.

"""
SUMMARY = """\
In short: the default of ours with nothing tuned, and in every cell the best of all rows of Opacus
and of diffprivlib, which are tuned without paying for it.

"""
READING = """\
Where the untuned default stands
--------------------------------

Each cell of a peer beside the default of ours that makes the same promise, and is told the same
bound: ``DPLogisticRegression(data_norm=1)``, with ``delta=0`` beside diffprivlib. "Beyond noise"
is a paired t-test on common splits at 0.05, two-sided, which two or three splits seldom pass, and
which is not corrected for the number of cells.

"""


#: what the section on the default shows, and tables of the picture of calibration
ACCELERATED = 'solver="accelerated"'
SHOWN = (DEFAULT, UNBOUNDED, ACCELERATED, "DPHingeSVM()")
PICTURED, PICTURED_EPSILONS = ("Adult", "credit", "digits"), (0.5, 1.0, 4.0)
PICTURE = "calibration.png"
THE_DEFAULT = """\
``DPLogisticRegression()`` finds origins and units of columns and a norm of the rows, releases
second moments, and makes steps in their geometry (:ref:`preconditioned`): 40, of two classes 24,
16 where moments say that these :ref:`are enough <fewer-steps>`, and 12 on "text". That is up to
59 passes over dense rows; of two classes 43 or 35. With ``data_norm=1``, the bound that holds on
all of these rows, nothing has to be found: 41, 25 or 17. ``solver="accelerated"`` makes 16 to 500
steps; it and the hinge are given the bound too. {kept} were prepared with public ranges and first
looked at when geometry and steps had been chosen. Steps of two and of more classes were chosen
anew since, on others, with "flight phase" in sight. For the row without ``data_norm`` **they were
not kept aside**: the search of units was chosen and checked later on raw tables, these among
them. CPU times are medians.
"""
WHY = """\
Without ``data_norm`` breast_cancer loses most, where ε = 0.1 is too little for anything to be
found, and the estimator warns; then digits, whose rows were brought into the ball one by one:
blank pixels vary by some per cent, and noise may hide that they should be no longer than others.
"""
BELIEFS = """\
"Calibration error" is the mean distance, over held-out rows, between the probability of the class
that is predicted and how often that is right, in fifteen bins of equal width. The base rate is
the share of every class in the training rows, for all rows.

"""
CAPTION = """\
.. image:: /_static/{picture}
   :alt: Shares of right predictions over their probabilities, on three tables.

How often the predicted class is right, by its probability, for replace-one; points have 20
held-out rows or more over all splits. On the diagonal probabilities are to be believed; below it
they are too high. The dashed line is the fit without privacy.

"""


def _reading(collected):
    found = comparison(collected)
    header = ("peer", "ours ahead beyond noise", "ahead or equal", "behind within noise")
    header += ("behind beyond noise",)
    rows = [(peer, *(str(len(texts)) for texts in kinds.values())) for peer, kinds in found.items()]
    lines = [READING, *table("Cells (data, ε) of each peer", header, rows)]
    behind = {
        peer: kinds["clearly behind"] + kinds["behind"]
        for peer, kinds in found.items()
        if kinds["behind"] or kinds["clearly behind"]
    }
    if not behind:
        return [*lines, "The default is at or above every peer in every cell.", ""]
    text = (
        "Where the mean of the default is below that of a peer: ours, theirs; and the best row of "
        "ours with the same promise, which was picked by looking."
    )
    lines += [filled(text), ""]
    for peer, texts in behind.items():
        text = filled(f"{peer}: {'; '.join(texts)}.")
        lines += [f"* {text}".replace("\n", "\n  ")]
    return [*lines, ""]


def _gaps(rows, first, second, index=0):
    """Yield section, epsilon, mean of the difference of two rows, and whether it is clear."""
    for section in WITH_DELTA:
        for epsilon in EPSILONS:
            cells = [rows.get((section, label), {}).get(epsilon, {}) for label in (first, second)]
            seeds = sorted(set(cells[0]) & set(cells[1]))
            if seeds:
                pair = ([cell[seed][index] for seed in seeds] for cell in cells)
                mean, _, p, _ = difference(*pair)
                yield section, epsilon, float(mean), bool(p < LEVEL and len(seeds) > 1)


def _beside(collected, first, second):
    """Return a sentence on two rows: how often the first one has the higher mean."""
    gaps, where, losses = [], [], []
    for name, (rows, _) in collected.items():
        losses += [gap for _, _, gap, _ in _gaps(rows, first, second, index=3)]
        for section, epsilon, gap, clear in _gaps(rows, first, second):
            gaps.append((gap, clear))
            if clear and gap < 0:
                where.append(f"{name}, {section}, ε = {epsilon:g} ({-gap:.1f})")
    if not gaps:
        return ""
    ahead = sum(gap >= 0 for gap, _ in gaps)
    clear = sum(gap > 0 and sure for gap, sure in gaps)
    text = (
        f"Of {len(gaps)} cells (data, adjacency, ε) ``{first}`` is at or above ``{second}`` in "
        f"{ahead}, beyond noise in {clear}, and below it beyond noise in {len(where)}; by "
        f"{np.mean([gap for gap, _ in gaps]):+.2f} points in the mean. Its log-loss is lower in "
        f"{sum(loss < 0 for loss in losses)}; the mean difference is {np.mean(losses):+.3f}."
    )
    return f"{text} Below beyond noise, in points: {'; '.join(where)}." if where else text


def _base_rates(folder):
    """Return {name: {seed: log-loss of the base rate}}."""
    found = {}
    for record in read(folder / "skdp.jsonl"):
        if record["key"][1] == "non-private" and "base_rate" in record:
            found.setdefault(record["key"][0], {})[record["key"][2]] = record["base_rate"]
    return found


def _above_base_rate(collected, rates):
    """Return a sentence on cells whose log-loss is above that of the base rate."""
    texts = []
    for label in (DEFAULT, UNBOUNDED):
        number, where = 0, []
        for name, (rows, _) in collected.items():
            base = {seed: (rate,) * 4 for seed, rate in rates.get(name, {}).items()}
            both = {(s, label): rows.get((s, label), {}) for s in WITH_DELTA}
            both |= {(s, "base"): dict.fromkeys(EPSILONS, base) for s in WITH_DELTA}
            for section, epsilon, gap, clear in _gaps(both, label, "base", index=3):
                number += 1
                if gap > 0 and clear:
                    where.append(f"{name}, {section}, ε = {epsilon:g} ({gap:+.3f})")
        text = f"in {len(where)} of {number} for ``{label}``"
        texts.append(text + (f": {'; '.join(where)}" if where else ""))
    return (
        "Cells in which log-loss is above the base rate's beyond noise: " + "; ".join(texts) + "."
    )


def _default(folder, collected):
    """Return the lines of the section on the default."""
    kept = [name for name in collected if name in KEPT_ASIDE]
    accuracies, beliefs, times = [], [], []
    rates = _base_rates(folder)
    for name, (rows, public) in collected.items():
        blank, values = [""] * len(EPSILONS), np.array(list(public.values()))
        rate = np.mean(list(rates.get(name, {}).values()) or [np.nan])
        accuracies.append((name, f"non-private: {values[:, 0].mean():.1f}", "", *blank))
        text = f"non-private: {belief(values[:, 2:].mean(axis=0))}; base rate: {belief([rate])}"
        beliefs.append((name, text, "", *blank))
        times.append((name, f"non-private: {duration(np.median(values[:, 1]))}", "", *blank))
        for section in WITH_DELTA:
            for label in SHOWN:
                row, title = rows.get((section, label), {}), f"``{label}``"
                if not row:
                    continue
                cells = [np.array(list(row.get(e, {}).values()), dtype=float) for e in EPSILONS]
                accuracies.append(("", title, section, *texts_of(row)))
                shown = (belief(c[:, 3:].mean(axis=0)) if c.size else "" for c in cells)
                if not np.isnan(np.concatenate([c for c in cells if c.size])[:, 3]).any():
                    beliefs.append(("", title, section, *shown))
                ratios = (
                    f"{duration(np.median(c[:, 1]))} ({np.median(c[:, 1] / c[:, 2]):.2g}×)"
                    if c.size
                    else ""
                    for c in cells
                )
                times.append(("", title, section, *ratios))
    head = ("data", "model", "guarantee", *(f"ε = {e:g}" for e in EPSILONS))
    many = "The tables " + ", ".join(f'"{name}"' for name in kept) if kept else "No tables"
    lines = ["The default", "-----------", "", filled(THE_DEFAULT.format(kept=many)), ""]
    for pair in ((DEFAULT, ACCELERATED), (UNBOUNDED, DEFAULT)):
        lines += [filled(_beside(collected, *pair)), ""]
    lines += [filled(WHY), "", *table("Accuracy in per cent", head, accuracies)]
    lines += [BELIEFS, filled(_above_base_rate(collected, rates)), ""]
    lines += [CAPTION.format(picture=PICTURE)]
    lines += table("Log-loss / AUC / Brier score / calibration error", head, beliefs)
    return lines + table("CPU time of a fit, and its ratio to a fit without privacy", head, times)


def save_picture(folder, path):
    """Draw how often predictions are right over their probabilities, and save the figure.

    Parameters
    ----------
    folder, path : pathlib.Path
        Of the results, and where to.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    records = [record for record in read(folder / "skdp.jsonl") if "bins" in record]
    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.0), layout="constrained", sharey=True)
    styles = [("o", "0.7"), ("s", "0.4"), ("^", "black")]
    for axis, name in zip(axes, PICTURED, strict=True):
        axis.plot([0, 1], [0, 1], color="0.8", lw=0.8)
        wanted = [([name, "non-private"], "no privacy", (None, "black"), "--")]
        wanted += [
            ([name, "replace-one", DEFAULT, e], f"$\\epsilon$ = {e:g}", style, "-")
            for e, style in zip(PICTURED_EPSILONS, styles, strict=True)
        ]
        for key, label, (marker, colour), line in wanted:
            parts = np.array([r["bins"] for r in records if r["key"][: len(key)] == key])
            if not parts.size:
                continue
            number = parts[:, 0].sum(axis=0)
            means = (parts[:, :1] * parts[:, 1:]).sum(axis=0) / np.maximum(number, 1)
            x, y = means[:, number >= 20]
            axis.plot(x, y, line, marker=marker, color=colour, label=label, ms=4, lw=1.2)
        axis.set(title=name, xlabel="probability of the predicted class")
    axes[0].set_ylabel("share that is right")
    axes[0].legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _data(name, collected):
    rows, public = collected[name]
    lines = [name, "-" * len(name), ""]
    accuracies = [values[0] for values in public.values()]
    text = f"{describe(name)}. Without privacy: {np.mean(accuracies):.1f}"
    if len(accuracies) > 1:
        text += f" ± {standard_error(accuracies):.1f}"
    lines += [filled(f"{text} (scikit-learn, C = {DATA[name][1]:g})."), ""]
    if name == "MNIST":
        lines += [filled("A random part of the training images, all test images."), ""]
    if name in KEPT_ASIDE:
        lines += [filled(
            f"Kept aside: {KEPT_ASIDE[name][1]} of the R package {KEPT_ASIDE[name][0]}, to tell "
            f"{KEPT_ASIDE[name][2]}. Geometry and steps were not chosen on it."
        ), ""]  # fmt: skip
    if name == "text":
        lines += [filled(
            "Film reviews, words hashed. At 2^18 columns, where no peer can follow, see "
            ":doc:`sparse`."
        ), ""]  # fmt: skip
    lines += accuracy_tables(rows, public) + probability_tables(rows, public)
    return [*lines, *time_table(rows, public)]


def _settings(folder, missing):
    lines = ["What was run", "------------", ""]
    texts = [
        machine() + ", shared with other work; one thread a process, times are CPU time.",
        "Ours: " + versions("skdp", "scikit-learn", "numpy", "scipy") + ".",
    ]
    for library in ("diffprivlib", "opacus", "interpret"):
        for record in read(folder / f"{library}.jsonl")[:1]:
            found = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
            texts.append(f"Environment of {library}: {found}.")
    texts += [
        f"Splits: seeds from {FIRST_SEED}; a fifth of the rows is held out. Noise comes from the "
        "operating system. Their number stands beside every row: fewer where fits are slow.",
        "Opacus: DP-SGD of a linear model from zero, clipping norm 1, Poisson batches of about "
        "5.5 √n rows, noise from its PRV accountant, whose search is not in the times. Untuned is "
        "the middle of the grid of lr (0.5, 2, 8) and epochs (5, 20, and 60 with lr 8), of which "
        "text and MNIST have four. On tables that were kept aside peers have untuned rows only.",
        "diffprivlib: data_norm = 1; the grid is six C from 0.001 to 100, of MNIST three.",
        "Times are medians over splits; the ratio is to a fit of scikit-learn's LogisticRegression "
        "in the same process.",
    ]
    if missing:
        texts.append(f"Not finished in this run, and left out: {', '.join(missing)}.")
    for text in texts:
        lines.append(f"* {filled(text)}".replace("\n", "\n  "))
    lines += ["", filled(
        "The federated estimator with one row a client makes the promise of zero-out, and is not "
        "shown again: :doc:`federated_mnist`. More mechanisms and settings of ours, and published "
        "figures: :ref:`linear_model`. Searches that are paid for: :doc:`tuning`."
    ), ""]  # fmt: skip
    return lines


def _summary(collected):
    """Return the table of the defaults and the best of peers, which the first page draws."""
    rows = []
    for name, (found, public) in collected.items():
        accuracies = [values[0] for values in public.values()]
        rows.append((name, f"non-private: {np.mean(accuracies):.1f}", *[""] * len(EPSILONS)))
        peers = best_of_peers(found)
        if all(peers):
            rows.append(("", "best tuned peer", *peers))
        for section in WITH_DELTA:
            rows.append(("", f"untuned, {section}", *texts_of(found.get((section, DEFAULT), {}))))
    header = ("data", "method", *(f"ε = {e:g}" for e in EPSILONS))
    return table("", header, rows)


def page(folder):
    """Return the text of the page.

    Parameters
    ----------
    folder : pathlib.Path
        Of the results.

    Returns
    -------
    text : str
        In reStructuredText. Data sets on which a row of ours was not run at all are left out.
    """
    collected = {name: collect(folder, name) for name in DATA}
    collected = {name: parts for name, parts in collected.items() if is_complete(parts[0])}
    lines = [INTRODUCTION, SUMMARY, *_summary(collected), *_default(folder, collected)]
    lines += _reading(collected)
    for name in collected:
        lines += _data(name, collected)
    missing = [name for name in DATA if name not in collected]
    lines += [*statistics_page(folder), *_settings(folder, missing)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"
