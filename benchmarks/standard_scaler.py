# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors of DPStandardScaler, and what a classifier gains from it.

Prints the two tables of docs/user_guide/preprocessing.rst, replace-one, delta = 1e-6::

    python benchmarks/standard_scaler.py            # two minutes of one core
    python benchmarks/standard_scaler.py --quick    # a smoke run

First the errors: of a mean in standard deviations, of a scale relative to it; medians over
features and fits with fresh noise. "Not found": more than half of the scales are off by a
factor of 10, or were left at 1 as nothing was found. Then test accuracies of logistic
regression on rows whose features have units of their own, epsilon = 1 for everything together.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, DPStandardScaler

EPSILONS, DELTA = (0.1, 0.5, 1.0), 1e-6
#: name, rows, features, offset, bounds
NORMAL = (
    ("normal", 500, 5, 0.0, None),
    ("normal", 500, 5, 0.0, (-5, 5)),
    ("normal", 5000, 5, 0.0, None),
    ("normal", 5000, 20, 0.0, None),
    ("normal", 5000, 20, 0.0, (-5, 5)),
    ("normal plus 1e6", 5000, 20, 1e6, None),
    ("normal", 50_000, 20, 0.0, None),
    ("normal", 50_000, 100, 0.0, None),
    ("normal", 50_000, 100, 0.0, (-5, 5)),
)
LOG_NORMAL = ((5000, 5, None), (50_000, 20, None), (50_000, 20, (0, 20)))


def data_sets():
    """Yield name, bounds to print, bounds and rows."""
    rng = np.random.default_rng(0)

    def shown(bounds):
        return "none" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g}"

    for name, n_rows, n_features, offset, bounds in NORMAL:
        X = offset + rng.normal(size=(n_rows, n_features))
        yield f"{name}, n={n_rows}, d={n_features}", shown(bounds), bounds, X
    for n_rows, n_features, bounds in LOG_NORMAL:
        X = rng.lognormal(size=(n_rows, n_features))
        yield f"log-normal, n={n_rows}, d={n_features}", shown(bounds), bounds, X
    X = load_breast_cancer().data
    above = 2.0 ** np.ceil(np.log2(X.max(axis=0)))
    yield "breast cancer, n=569, d=30", "none", None, X
    yield "breast cancer, n=569, d=30", "0 to 2^k", (np.zeros(30), above), X
    X = load_digits().data
    yield "digits, n=1797, d=64", "none", None, X
    yield "digits, n=1797, d=64", "0 to 16", (0, 16), X


def errors(X, bounds, epsilon, repeats):
    """Return median errors of means and scales, or that they were not found."""
    X = X[:, X.std(axis=0) > 0]
    if bounds is not None and np.ndim(bounds[0]):
        bounds = tuple(np.asarray(bound)[: X.shape[1]] for bound in bounds)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    of_mean, of_scale, lost = [], [], []
    for _ in range(repeats):
        model = DPStandardScaler(epsilon, DELTA, bounds=bounds).fit(X)
        ratio = model.scale_ / scale
        of_mean.append(abs(model.mean_ - mean) / scale)
        of_scale.append(abs(ratio - 1))
        lost.append((abs(np.log10(ratio)) > 1) | (model.var_ == 0))
    if np.mean(lost) > 0.5:
        return "not found"
    return f"{np.median(of_mean):.2g}, {np.median(of_scale):.2g}"


def accuracies(seed, repeats):
    """Return mean test accuracies, one for every way to scale."""
    X, y = make_classification(20_000, 10, n_informative=6, random_state=seed)
    X = X * 10 ** np.random.default_rng(seed).uniform(-3, 4, 10)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    middle = float(np.median(np.linalg.norm(X, axis=1)))

    def classifier(data_norm, epsilon=1.0, delta=DELTA):
        return DPLogisticRegression(epsilon, delta, data_norm=data_norm, classes=(0, 1))

    # budgets of two steps are added, as a bound
    half = (0.5, DELTA / 2)
    ways = {
        "unscaled rows, ``data_norm=1``": lambda: classifier(1.0),
        "unscaled rows, median norm of the rows": lambda: classifier(middle),
        "``DPStandardScaler``, ``data_norm=3``": lambda: make_pipeline(
            DPStandardScaler(*half), classifier(3.0, *half)
        ),
        "``StandardScaler``, which is not private": lambda: make_pipeline(
            StandardScaler(), classifier(3.0, *half)
        ),
    }
    return {
        name: np.mean([make().fit(X, y).score(X_test, y_test) for _ in range(repeats)])
        for name, make in ways.items()
    }


def table(head, rows):
    """Print a simple table in reStructuredText."""
    cells = [head, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    print(rule, lines[0], rule, *lines[1:], rule, "", sep="\n")


def main():
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one fit of each")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    repeats = 1 if arguments.quick else arguments.repeats
    rows = [
        (name, shown, *(errors(X, bounds, epsilon, repeats) for epsilon in EPSILONS))
        for name, shown, bounds, X in data_sets()
    ]
    table(("data", "bounds", *(f"epsilon={epsilon:g}" for epsilon in EPSILONS)), rows)
    seeds = range(1 if arguments.quick else 3)
    found = [accuracies(seed, 1 if arguments.quick else 3) for seed in seeds]
    rows = [(name, *(f"{one[name]:.3f}" for one in found)) for name in found[0]]
    table(("seed of the data", *map(str, seeds)), rows)


if __name__ == "__main__":
    main()
