# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Models that bend and those that do not, on one page: docs/benchmarks/kernels.rst.

Accuracy and log-loss of the kernels of `DPKernelClassifier`, R^2 of those of `DPKernelRegressor`,
and how far the choice by the rows is behind the best of them::

    pip install ".[bench]"
    python benchmarks/kernels.py             # an hour of one core
    python benchmarks/kernels.py --quick     # a smoke run, writes no page

Every result is stored as soon as it is there, as in `regression.py`. Noise is seeded, so that
equal models have equal figures.
"""

import itertools
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import _one_thread  # noqa: F401  before numpy
import numpy as np
from _accuracy_store import Store, qualities, read
from _datasets import adult
from _environments import run_page
from _machine import machine, versions
from _mechanisms_report import filled, standard_error, table
from _tables import KEPT_ASIDE, REGRESSION, kept_aside, regression
from sklearn.datasets import load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from skdp import DPKernelClassifier, DPKernelRegressor, DPRidge

EPSILONS = (0.1, 0.5, 1.0, 4.0)
KERNELS = ("linear", "additive", "rbf")
CLASSES = ("rings", "product", "straight", "digits", *KEPT_ASIDE, "Adult")
TARGETS = ("friedman", "product", "straight", "bumps", "diamonds", *REGRESSION)
#: splits of tables of classes and of targets, and of fits without privacy
N_CLASSES, N_TARGETS, N_PLAIN = 12, 8, 3
MADE_UP = ("rings", "product", "straight", "friedman", "bumps")
PLAIN = {
    "least squares": LinearRegression,
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
}
#: accuracy in points, log-loss, R^2: what a choice may cost
LITTLE = {"accuracy": 1.0, "log_loss": 0.02, "R2": 0.02}

INTRODUCTION = """\
.. This file is written by benchmarks/kernels.py.

Models that bend
================

``DPKernelClassifier`` and ``DPKernelRegressor`` with every kernel, and with "auto", which chooses
one by the rows and pays for the choice (:ref:`kernel-classifier`). Replace-one, δ = 1e-6, nothing
public but the classes. Three quarters of a table, 15,000 rows at most, and tests on 8,000 of the
rest at most; means over splits, {n_classes} of tables of classes and {n_targets} of tables of
targets. Written by ``python benchmarks/kernels.py``.

"auto - best" is the mean difference of pairs to the kernel that is best in the mean of that row,
± its standard error; where kernels are level, the best of three is ahead by luck, and the
difference says more than the choice costs. The last column is what was chosen, in how many splits.
Where signal is little, "additive" is the linear model, and figures are equal.

"rings", "product", "straight" and "bumps" are made up: a sphere, a sum of products, a plane, bumps
(12,000 rows of six columns); "friedman" is scikit-learn's. The others are people and things, with
words one-hot.

"""
CHOSEN = """\
Numbers of knots and of waves were chosen with rings, product, straight, union, credit, churn,
digits, vote and Adult in sight; what trials pay with the made-up ones, churn, union, credit and
flight phase; what straight lines leave over with other tables, and other splits of these.

"""


def made_up(name):
    """Return 12,000 normal rows of six columns, and classes by a rule."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((12_000, 6))
    if name == "rings":
        return X, (np.sum(X[:, :3] ** 2, axis=1) > 2.4).astype(int)
    if name == "product":
        noise = 0.3 * rng.standard_normal(len(X))
        return X, (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] / 2 + noise > 0).astype(int)
    return X, (X @ rng.standard_normal(6) + rng.logistic(size=len(X)) > 0).astype(int)


def made_up_targets(name):
    """Return 12,000 rows, and targets by a rule."""
    if name == "friedman":
        return make_friedman1(12_000, noise=1.0, random_state=0)
    rng = np.random.RandomState(0)
    X, noise = rng.standard_normal((12_000, 6)), rng.standard_normal(12_000)
    if name == "bumps":
        return X, np.exp(-np.sum(X[:, :3] ** 2, axis=1)) + np.sin(2 * X[:, 3]) + 0.3 * noise
    if name == "product":
        return X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] / 2 + 0.3 * noise
    return X, X @ rng.standard_normal(6) + noise


def rows_of(name, has_classes):
    """Return the rows and the targets of a table."""
    if name in MADE_UP:
        return (made_up if has_classes else made_up_targets)(name)
    if name == "Adult":
        return adult()[:2]
    if name == "digits":
        return load_digits(return_X_y=True)
    return (kept_aside if has_classes else regression)(name)


def split(rows, seed):
    """Return training and test rows and targets."""
    A, B, c, d = train_test_split(*rows, test_size=0.25, random_state=seed)
    return A[:15_000], B[:8000], c[:15_000], d[:8000]


def scores(model, X, y):
    """Return what is stored of a fit."""
    if isinstance(model, DPKernelClassifier):
        found = qualities(model, X, y)
        found = {key: found[key] for key in ("accuracy", "log_loss")}
    else:
        found = {"R2": float(model.score(X, y))}
    return found | {"kernel": getattr(model, "kernel_", None)}


def measure(folder, environments=None, names=CLASSES, targets=TARGETS, n_splits=None):
    """Fit all kernels, and store what they are worth, split by split."""
    warnings.simplefilter("ignore")
    store = Store(folder / "skdp.jsonl")
    kept = [("classes", name) for name in names] + [("targets", name) for name in targets]
    rows = {(part, name): rows_of(name, part == "classes") for part, name in kept}
    most = {"classes": n_splits or N_CLASSES, "targets": n_splits or N_TARGETS}
    for seed, (part, name) in itertools.product(range(max(most.values())), kept):
        if seed >= most[part]:
            continue
        A, B, c, d = split(rows[part, name], seed)

        def fitted(label, epsilon, make, place=(part, name), seed=seed, rows=(A, B, c, d)):
            if store.get(*place, label, epsilon, seed) is None:
                A, B, c, d = rows
                store.add(*place, label, epsilon, seed, **scores(make().fit(A, c), B, d))

        for epsilon in EPSILONS:
            for kernel in (*KERNELS, "auto"):
                given = {"kernel": kernel, "random_state": seed}
                if part == "classes":
                    given["classes"] = np.unique(rows[part, name][1])
                kind = DPKernelClassifier if part == "classes" else DPKernelRegressor
                fitted(kernel, epsilon, lambda k=kind, e=epsilon, g=given: k(e, **g))
            if part == "targets":
                fitted("ridge", epsilon, lambda e=epsilon, s=seed: DPRidge(e, random_state=s))
        if part == "targets" and seed < N_PLAIN:
            for label, make in PLAIN.items():
                fitted(label, None, make)


class Cell:
    """What was measured of a table at a budget, by one score.

    Parameters
    ----------
    found : dict
        Records by kernel.
    score : str
        Name of the score.
    """

    def __init__(self, found, score):
        sign = -1.0 if score == "log_loss" else 1.0
        # splits of which all are done
        done = min(map(len, found.values()))
        values = {kernel: np.array([r[score] for r in found[kernel][:done]]) for kernel in found}
        self.means = {kernel: part.mean() for kernel, part in values.items()}
        self.best = max(KERNELS, key=lambda kernel: sign * self.means[kernel])
        gap = sign * (values["auto"] - values[self.best])
        self.gap, self.error = gap.mean(), standard_error(gap)
        self.chosen = [r["kernel"] for r in found["auto"][:done]]

    def texts(self, digits):
        """Return the cells of a row."""
        chosen = ((kernel, self.chosen.count(kernel)) for kernel in KERNELS)
        says = ", ".join(f"{kernel} {count}" for kernel, count in chosen if count)
        means = (self.means[kernel] for kernel in (*KERNELS, "auto"))
        cells = ("below -1" if mean < -1 else f"{mean:.{digits}f}" for mean in means)
        if self.gap < -1 and self.means["auto"] < -1:
            return [*cells, "", says]
        return [*cells, f"{self.gap:+.{digits}f} ± {self.error:.{digits}f}", says]


def counted(cells, score, unit):
    """Return a sentence on how far "auto" is behind, in how many cells."""
    little = LITTLE[score]
    usable = {key: cell for key, cell in cells.items() if cell.means[cell.best] > -1}
    behind = {key: cell for key, cell in usable.items() if cell.gap < -little}
    sure = [key for key, cell in behind.items() if cell.gap + 2 * cell.error < -little]
    told = "; ".join(
        f"{name} at {epsilon:g}, {-cell.gap:.3g} ± {cell.error:.2g}"
        for (name, epsilon), cell in behind.items()
    )
    ahead = sum(cell.gap > 0 for cell in usable.values())
    text = (
        f'"auto" is behind the best of the three by more than {unit} in {len(behind)} of '
        f"{len(usable)} cells, and beyond two standard errors of that in {len(sure)}"
    )
    return f"{text}{': ' + told if told else ''}. In {ahead} it is ahead."


def page(folder):
    """Return the text of the page, from what is stored in a folder."""
    found = {}
    # pairs are those of one split, whatever was stored first
    for record in sorted(read(folder / "skdp.jsonl"), key=lambda record: record["key"][-1]):
        part, name, label, epsilon, _ = record["key"]
        found.setdefault((part, name, epsilon), {}).setdefault(label, []).append(record)

    def cells(part, names, score):
        return {
            (name, epsilon): Cell(
                {kernel: found[part, name, epsilon][kernel] for kernel in (*KERNELS, "auto")}, score
            )
            for name, epsilon in itertools.product(names, EPSILONS)
        }

    def rows(cells, digits, more=lambda *_: []):
        for (name, epsilon), cell in cells.items():
            first = name if epsilon == EPSILONS[0] else ""
            yield first, f"{epsilon:g}", *cell.texts(digits), *more(name, epsilon)

    def ridge(name, epsilon):
        mean = np.mean([r["R2"] for r in found["targets", name, epsilon]["ridge"]])
        return ["below -1" if mean < -1 else f"{mean:.3f}"]

    def shape(name, part):
        X, y = rows_of(name, part == "classes")
        A, _, c, _ = split((X, y), 0)
        if part == "classes":
            return f"{name} {len(A):,} x {A.shape[1]}, {len(np.unique(c))} classes"
        plain = (np.mean([r["R2"] for r in found[part, name, None][label]]) for label in PLAIN)
        return f"{name} {len(A):,} x {A.shape[1]}, {', '.join(f'{mean:.3f}' for mean in plain)}"

    header = ("table", "ε", *KERNELS, "auto", "auto - best", "chosen")
    right, surprise = (cells("classes", CLASSES, score) for score in ("accuracy", "log_loss"))
    near = cells("targets", TARGETS, "R2")
    fewest = {
        part: min(
            len(own["auto"])
            for (place, *_), own in found.items()
            if place == part and "auto" in own
        )
        for part in ("classes", "targets")
    }
    lines = [
        INTRODUCTION.format(n_classes=fewest["classes"], n_targets=fewest["targets"]),
        *("Classes", "-------", "", filled(counted(right, "accuracy", "a point")), ""),
        filled("Log-loss: " + counted(surprise, "log_loss", "0.02")), "", CHOSEN,
        *table("Accuracy in per cent", header, rows(right, 1)),
        *table("Log-loss", header, rows(surprise, 3)),
        filled("; ".join(shape(name, "classes") for name in CLASSES) + "."), "",
        *("Targets", "-------", "", filled(counted(near, "R2", "0.02")), ""),
        filled(
            "The part of the columns in a map, and the signal of straight lines, were chosen with "
            'one split of all of these in sight but "bumps". "ridge" is ``DPRidge``.'
        ), "",
        *table("R²", (*header, "ridge"), rows(near, 3, ridge)),
        filled(
            "Without privacy, least squares and boosting: "
            + "; ".join(shape(name, "targets") for name in TARGETS) + "."
        ), "",
        "What was run", "------------", "", f"* {machine()}; one thread.",
        f"* {versions('skdp', 'scikit-learn', 'numpy', 'scipy')}.",
    ]  # fmt: skip
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()).rstrip() + "\n"


if __name__ == "__main__":
    QUICK = {"names": ("rings",), "targets": ("friedman",), "n_splits": 1}
    run_page(__doc__, "kernels", {"skdp": (measure, QUICK)}, page)
