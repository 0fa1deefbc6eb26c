# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rivals of private logistic regression on Adult, on one page: docs/benchmarks/rivals.rst.

AIM with what is learned from its model (see `_rivals_peer.py`), in an environment of its own, and
the Newton steps with double noise of Ganesh et al. (2023), written here, beside our default::

    pip install ".[bench]"
    python benchmarks/rivals.py             # about 30 minutes of one core, nearly all of it AIM
    python benchmarks/rivals.py --quick     # one epsilon, a tiny model of AIM: a minute, no page

Every result is stored as soon as it is there (``--results DIR``): an interrupted run goes on where
it was. ``--part`` runs one part and writes no page, ``--report`` writes the page of what is stored.
"""

import csv
import itertools
import math
import sys
import textwrap
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import _one_thread  # noqa: F401  before numpy
import _rivals_peer
import numpy as np
from _accuracy_store import Store, qualities, read
from _datasets import _ADULT_COLUMNS, _ADULT_LEVELS, _ADULT_RANGES, _adult_files, adult
from _environments import run_page, run_there
from _machine import machine, versions
from _mechanisms_report import standard_error, table
from _rivals_peer import CODINGS, Linear, design
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression
from skdp.privacy import gdp_mu

DELTA, EPSILONS, BINS = 1e-5, (0.05, 0.1, 0.5, 1.0, 2.0), 32
SEEDS = (100, 101, 102)
#: of AIM, which is slow; its largest model in MB, and iterations of inference in every round
AIM_SEEDS, AIM_SIZE, AIM_ITERATIONS = (100,), 2, 100
#: one split at one epsilon, and a tiny model of AIM
QUICK = {"seeds": SEEDS[:1], "epsilons": (1.0,)}
QUICK_AIM = {**QUICK, "size": 0.05, "iterations": 5}
USUAL = "numbers and one-hot"
OURS, NEWTON, PLAIN = "``DPLogisticRegression()``", "double noise, best of 4", "not private"
METRICS = {"auc": ("AUC", 3, max), "accuracy": ("Accuracy, %", 1, max)}
METRICS["log_loss"] = ("Log-loss", 3, min)

INTRODUCTION = """\
.. This file is written by benchmarks/rivals.py.

Logistic regression beside AIM, DD-SSP and Newton steps
=======================================================

Adult, 45,222 complete rows of 13 attributes, a fifth held out; mean ± standard error over splits
with fresh noise. δ = 1e-5. All rows make the promise of zero-out: AIM and the Newton steps count
the addition or removal of a row, and their noise is that of zero-out. Ours is untuned. Written
by ``python benchmarks/rivals.py``.

- AIM (McKenna et al. 2022, as in dpmm {version}) releases a model of all 2-way marginals of the
  discretised table; logistic regression (scikit-learn, C = 100) is fitted on as many rows drawn
  from it. DD-SSP (Ferrando and Sheldon 2025) takes second moments from the same model, and the
  minimum of a quadratic close to the logistic loss. Numbers are cut in {bins} bins of equal width
  between public ends, as its authors do. For time one split is run, the model is kept to {size} MB,
  against 80 by default and 200 in that paper, and inference makes {iterations} iterations a round,
  against 1000: **a larger model and more iterations may do better**. A cell is empty where even
  that was not finished.
- Double noise (Ganesh et al. 2023): fifteen Newton steps with noise on the gradient and on the
  step, with the shares of its authors; written here, composed tightly. The best of four by the true
  AUC: Hessian or quadratic bound, eigenvalues raised by addition or clipped.
- Rows: "bins as numbers" has one column for a number, with its bin, as in the paper on DD-SSP;
  "bins one-hot" has a column for every bin; "numbers and one-hot" are the rows of :doc:`accuracy`.
  Other columns are one-hot in all.

A column for every bin adds .010 to the AUC without privacy, and .010 to .018 to that of our default
from ε = 0.1 on.

Not measured: S-BDT, of which PyPI has no package ("s-bdt", "sbdt"); the sparse Frank-Wolfe method
of Raff et al. (2023), for want of time; the American Community Survey, which ``folktables``
downloads.

"""


def discretised():
    """Return codes of the attributes of Adult, numbers of levels, and which are numbers."""
    rows = []
    for file in _adult_files(None):
        with file.open(newline="") as lines:
            read_rows = csv.reader(lines, skipinitialspace=True)
            rows += [r for r in read_rows if len(r) == len(_ADULT_COLUMNS) + 1 and "?" not in r]
    codes, sizes, is_number = [], [], []
    for name, values in zip(
        _ADULT_COLUMNS, zip(*(row[:-1] for row in rows), strict=True), strict=True
    ):
        if name in _ADULT_RANGES:
            low, high = _ADULT_RANGES[name]
            sizes.append(min(BINS, int(high - low + 1)))
            share = (np.clip(np.array(values, dtype=np.float64), low, high) - low) / (high - low)
            codes.append(np.minimum(np.floor(share * sizes[-1]), sizes[-1] - 1).astype(int))
        elif name in _ADULT_LEVELS:
            levels = _ADULT_LEVELS[name].split(", ")
            sizes.append(len(levels))
            codes.append(np.array([levels.index(value) for value in values]))
        else:
            continue  # the sampling weight
        is_number.append(name in _ADULT_RANGES)
    return np.array(codes).T, np.array(sizes), np.array(is_number)


def split(n_rows, seed):
    """Return the indices that are held out, and the others."""
    return np.split(np.random.default_rng(seed).permutation(n_rows), [n_rows // 5])


def double_noise(X, y, epsilon, delta, *, bound, clip, rng, steps=15):
    """Return coefficients from Newton steps with two noises; zero-out, rows in the unit ball.

    Seven tenths of the squared Gaussian-DP budget go to gradients, a tenth of the rest to the
    trace of the curvature, by which the least eigenvalue is chosen, and what is left to noise
    on the steps.

    Parameters
    ----------
    X, y : ndarray of shape (n_rows, n_features) and (n_rows,)
        Private data; classes 0 and 1.
    epsilon, delta : float
        Budget.
    bound : bool
        Whether the curvature is that of the quadratic bound on the loss, or the Hessian.
    clip : bool
        Whether smaller eigenvalues are raised to the least, or it is added to all.
    rng : numpy.random.Generator
        Source of the noise (a simulation: not for real releases).
    steps : int, default=15
        Number of steps.

    Returns
    -------
    coef : ndarray of shape (n_features,)
        Coefficients.
    """
    n, size = X.shape
    mu2 = gdp_mu(epsilon, delta) ** 2 / steps
    mu_gradient, mu_trace, mu_step = (math.sqrt(mu2 * part) for part in (0.7, 0.03, 0.27))
    coef = np.zeros(size)
    for _ in range(steps):
        margin = X @ coef
        p = 1 / (1 + np.exp(-np.clip(margin, -500, 500)))
        gradient = X.T @ (p - y) / n + rng.normal(size=size) / (n * mu_gradient)
        if bound:  # tanh(t / 2) / 2t, a quarter at 0
            near = np.abs(margin) < 1e-6
            weight = np.where(near, 0.25, (p - 0.5) / np.where(near, 1.0, margin))
        else:
            weight = p * (1 - p)
        curvature = (X.T * weight) @ X / n
        # a row moves the curvature by a quarter of 1 / n
        trace = max(np.trace(curvature) + 0.25 / (n * mu_trace) * rng.normal(), 0.0)
        least = max((0.5 * trace / (n**2 * mu_step**2 / 2)) ** (1 / 3), 1 / n)
        if clip:
            values, axes = np.linalg.eigh(curvature)
            step = axes @ ((axes.T @ gradient) / np.maximum(values, least))
        else:
            step = np.linalg.solve(curvature + least * np.eye(size), gradient)
        sign = -1 if clip else 1
        moved = 0.25 * np.linalg.norm(gradient) / (n * least**2 + sign * 0.25 * least)
        coef -= step + moved / mu_step * rng.normal(size=size)
    return coef


def measure(folder, environments=None, seeds=SEEDS, epsilons=EPSILONS):
    """Fit ours, Newton steps, and scikit-learn, on rows of three kinds."""
    warnings.simplefilter("ignore")
    store = Store(folder / "skdp.jsonl")
    codes, sizes, is_number = discretised()
    usual, y = adult()
    rows = {USUAL: usual, **{c: design(codes, sizes, is_number, c) for c in CODINGS}}
    for (coding, X), seed in itertools.product(rows.items(), seeds):
        held, kept = split(len(y), seed)
        test = X[held], y[held]
        if store.get(PLAIN, coding, None, seed) is None:
            start = time.process_time()
            plain = LogisticRegression(max_iter=1000, C=100.0).fit(X[kept], y[kept])
            seconds = time.process_time() - start
            store.add(PLAIN, coding, None, seed, seconds=seconds, **qualities(plain, *test))
        for epsilon in epsilons:
            if store.get(OURS, coding, epsilon, seed) is None:
                start = time.process_time()
                model = DPLogisticRegression(
                    epsilon, DELTA, adjacency="zero-out", classes=[0, 1]
                ).fit(X[kept], y[kept])
                seconds = time.process_time() - start
                store.add(OURS, coding, epsilon, seed, seconds=seconds, **qualities(model, *test))
            if store.get(NEWTON, coding, epsilon, seed) is None:
                start, rng = time.process_time(), np.random.default_rng()
                found = [
                    double_noise(X[kept], y[kept], epsilon, DELTA, bound=bound, clip=clip, rng=rng)
                    for bound, clip in itertools.product((False, True), repeat=2)
                ]
                seconds = (time.process_time() - start) / len(found)
                best = max((qualities(Linear(w), *test) for w in found), key=lambda q: q["auc"])
                store.add(NEWTON, coding, epsilon, seed, seconds=seconds, **best)


def measure_peer(
    folder, environments=None, seeds=AIM_SEEDS, epsilons=EPSILONS, size=AIM_SIZE,
    iterations=AIM_ITERATIONS,
):  # fmt: skip
    """Run AIM on the same rows."""
    splits = Path(folder) / "splits"
    splits.mkdir(parents=True, exist_ok=True)
    codes, sizes, is_number = discretised()
    y = adult()[1]
    for seed in seeds:
        held, kept = split(len(y), seed)
        parts = {"codes": codes[kept], "codes_test": codes[held], "sizes": sizes}
        parts |= {"y": y[kept], "y_test": y[held], "is_number": is_number}
        np.savez(splits / f"adult-{seed}.npz", **parts)
    run_there(
        "dpmm", environments, _rivals_peer.__file__, Path(folder) / "dpmm.jsonl", splits,
        "--seeds", *seeds, "--epsilons", *epsilons, "--delta", DELTA, "--size", size,
        "--iterations", iterations,
    )  # fmt: skip


def _filled(text):
    return textwrap.fill(text, 95, break_long_words=False, break_on_hyphens=False)


def _text(values, digits):
    text = f"{np.mean(values):.{digits}f}"
    return text + (f" ± {standard_error(values):.{digits}f}" if len(values) > 1 else "")


def _tables(found):
    """Return tables of all metrics, and where the mean of a rival is ahead of ours."""
    lines, ahead = [], []
    labels = (OURS, NEWTON, "AIM + logistic regression", "DD-SSP", PLAIN)
    for metric, (title, digits, best) in METRICS.items():
        body = []
        for coding, label in itertools.product((USUAL, *CODINGS), labels):
            cells = found.get((coding, label), {})
            texts, splits, seconds = [], set(), []
            for epsilon in EPSILONS:
                cell = cells.get(None if label == PLAIN else epsilon, {})
                texts.append(_text([r[metric] for r in cell.values()], digits) if cell else "")
                splits |= set(cell)
                seconds += [r["seconds"] for r in cell.values()]
                mine = found.get((coding, OURS), {}).get(epsilon, {})
                common = [seed for seed in cell if seed in mine]
                if label in (OURS, PLAIN) or not common:
                    continue
                theirs, ours = (np.mean([p[s][metric] for s in common]) for p in (cell, mine))
                if theirs != ours and best(theirs, ours) == theirs:
                    ahead.append(
                        f"{title}, {coding}, ε = {epsilon:g}: {label} {theirs:.{digits}f}, ours on "
                        f"the same splits {ours:.{digits}f}"
                    )
            if cells:
                body.append((coding, label, *texts, str(len(splits)), f"{np.median(seconds):.2g}"))
        header = ("rows", "method", *(f"ε = {e:g}" for e in EPSILONS), "splits", "seconds")
        lines += table(title, header, body)
    return lines, ahead


def _summary(found):
    """Return a table of the best of every method over all rows, by AUC."""
    body = []
    for label in (OURS, NEWTON, "AIM + logistic regression", "DD-SSP"):
        texts = []
        for epsilon in EPSILONS:
            cells = {c: r.get(epsilon, {}) for (c, name), r in found.items() if name == label}
            means = {
                c: np.mean([r["auc"] for r in cell.values()]) for c, cell in cells.items() if cell
            }
            coding = max(means, key=means.get) if means else None
            texts.append(f"{means[coding]:.3f} ({coding})" if means else "")
        body.append((label, *texts))
    header = ("method", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    return table("AUC on the rows that are best for each method, by the true AUC", header, body)


def page(folder):
    """Return the text of the page, from what is stored in a folder."""
    found = {}
    for record in (*read(folder / "skdp.jsonl"), *read(folder / "dpmm.jsonl")):
        label, coding, epsilon, seed = record["key"]
        found.setdefault((coding, label), {}).setdefault(epsilon, {})[seed] = record
    tables, ahead = _tables(found)
    lines = [
        INTRODUCTION.format(bins=BINS, size=AIM_SIZE, iterations=AIM_ITERATIONS, version="0.1.9"),
        *_summary(found),
    ]
    lines += ["Where others lead", "-----------------", ""]
    lines += ["Cells in which the mean of a rival is better than ours on the same rows:", ""]
    lines += [_filled(f"* {text}.").replace("\n", "\n  ") for text in ahead] or ["None."]
    if not any(label == "DD-SSP" for _, label in found):
        text = "**AIM did not finish a fit in this run**: nothing is said of it or of DD-SSP."
        lines += ["", text]
    lines += ["", "Tables", "------", "", *tables, "What was run", "------------", ""]
    texts = [
        f"{machine()}, shared with other work; one thread. Seconds are the CPU time of one fit.",
        f"{versions('skdp', 'scikit-learn', 'numpy', 'scipy')}; dpmm 0.1.9.",
    ]
    lines += [_filled(f"* {text}").replace("\n", "\n  ") for text in texts]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"


if __name__ == "__main__":
    PARTS = {"skdp": (measure, QUICK), "dpmm": (measure_peer, QUICK_AIM)}
    run_page(__doc__, "rivals", PARTS, page)
