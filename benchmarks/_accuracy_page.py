# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The accuracy page of the documentation, written from stored results."""

import textwrap

import numpy as np
from _accuracy_data import DATA, FIRST_SEED, describe
from _accuracy_methods import DEFAULT, WITH_DELTA
from _accuracy_statistics_page import statistics_page
from _accuracy_store import read
from _accuracy_tables import (
    accuracy_tables,
    best_of_peers,
    collect,
    comparison,
    is_complete,
    probability_tables,
    texts_of,
    time_table,
)
from _datasets import EPSILONS
from _machine import machine, versions
from _mechanisms_report import standard_error, table
from _tables import KEPT_ASIDE

__all__ = ["page"]

INTRODUCTION = """\
.. This file is written by benchmarks/accuracy.py.

Accuracy beside other libraries
===============================

Test accuracy in per cent of every classifier of the library and of those of other libraries, on the
same rows and splits: mean ± standard error over splits with fresh noise; log-loss, AUC (of more
classes: the mean of each against the others) and Brier score; CPU seconds. Ours are untuned: every
row is a constructor with its defaults and what the row says. Seven of the thirteen tables were kept
aside while defaults were chosen, and have fewer rows. "tuned unpaid" is the best of a
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

Each cell of a peer beside the default of ours that makes the same promise:
``DPLogisticRegression()``, with ``delta=0`` beside diffprivlib. "Beyond noise" is a paired t-test
on common splits at 0.05, two-sided, which two or three splits seldom pass, and which is not
corrected for the number of cells.

"""


def filled(text):
    """Return a paragraph in lines."""
    return textwrap.fill(text, 95, break_long_words=False, break_on_hyphens=False)


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
            f"{KEPT_ASIDE[name][2]}. Nothing of ours was chosen on it."
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
    lines = [INTRODUCTION, SUMMARY, *_summary(collected), *_reading(collected)]
    for name in collected:
        lines += _data(name, collected)
    missing = [name for name in DATA if name not in collected]
    lines += [*statistics_page(folder), *_settings(folder, missing)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"
