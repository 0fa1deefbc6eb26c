# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The bias of cleaned sparse gradients, and from how many rows on it helps to take it out.

Ghazi, Guzman, Kamath, Kumar and Manurangsi (2024), Algorithms 3 and 4, with the constants of
composed privacy loss distributions in place of the printed ones. Three measurements::

    python benchmarks/sparse_bias_reduced.py            # half an hour of one core
    python benchmarks/sparse_bias_reduced.py --quick    # a smoke run

Bias: the length of (mean of many estimates of one gradient, minus the gradient).

Separable losses: f(x, z) = sum over the non-zeros j of z of |x_j - v_j| / sqrt(s), not a function
of one linear predictor, in the ball of radius 1; columns are drawn in proportion to 1 / k^1.1.
Excess of the mean loss, as a part of the excess at 0. Every method has the same budget and
number of steps, and the best of a few step sizes, which is not paid for:

* "plain": noisy gradients as they are, of batches or of all rows ("sgd" without momentum);
* "cleaned": the soft threshold of least estimated risk, and nothing done about its bias;
* "bias-reduced": the same oracle on batches of a sixteenth of the rows and upwards.

Logistic regression: the same by the estimator, with defaults; mean log-loss in the sample.
"""

import argparse
import itertools
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from _separable import ADJACENCY, DELTA, EPSILON, Estimates, descended, separable

from skdp import DPLogisticRegression, papers, solvers

LEVELS = 4
STEPS = (0.2, 0.5, 1.0, 2.0, 4.0)


def methods(n_levels):
    """Yield (words, method, levels)."""
    yield "plain, all rows", "plain", 0
    yield "plain, batches", "plain", n_levels
    yield "cleaned, all rows", "cleaned", 0
    yield "cleaned, batches", "cleaned", n_levels
    yield "bias-reduced", "bias-reduced", n_levels


def table(head, rows):
    """Print a table."""
    print(f"{head[0]:24s}" + "".join(f"{name:>16s}" for name in head[1:]))
    for name, *cells in rows:
        print(f"{name:24s}" + "".join(f"{cell:>16s}" for cell in cells), flush=True)
    print()


def bias(sizes, n_features, n_steps, repeats):
    """Print how far the mean of many estimates is from the gradient."""
    cells = {name: [] for name, *_ in methods(LEVELS)}
    for n in sizes:
        rng = np.random.default_rng(0)
        problem, truth = separable(n, n_features, rng)
        x = 0.3 * truth
        gradient = problem.summed(x) / n
        for name, method, n_levels in methods(LEVELS):
            estimates = Estimates(problem, method, n_steps, n_levels, rng)
            halves, runs = np.zeros((2, n_features)), 2 * max(1, repeats // 2)
            # all levels of a run are in one half
            for run, step in itertools.product(range(runs), range(n_steps)):
                halves[run % 2] += estimates(x, step) * (2 / runs / n_steps)
            # the product of two independent errors has no noise in the mean
            square = (halves[0] - gradient) @ (halves[1] - gradient)
            cells[name].append(f"{math.copysign(math.sqrt(abs(square)), square):.4f}")
    print(f"length of the bias; the gradient has length {np.linalg.norm(gradient):.3f}")
    table(["rows", *map(str, sizes)], [(name, *found) for name, found in cells.items()])


def excess(sizes, n_features, n_steps, repeats):
    """Print the excess loss of all methods."""
    cells = {name: [] for name, *_ in methods(LEVELS)}
    for n in sizes:
        found = {name: np.zeros((repeats, len(STEPS))) for name in cells}
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            problem, truth = separable(n, n_features, rng)
            least = problem.loss(truth)
            zero = problem.loss(np.zeros(n_features)) - least
            for name, method, n_levels in methods(LEVELS):
                for j, step in enumerate(STEPS):
                    estimates = Estimates(problem, method, n_steps, n_levels, rng)
                    x = descended(estimates, n_steps, 3 * step / math.sqrt(n_steps))
                    found[name][seed, j] = (problem.loss(x) - least) / zero
        for name, values in found.items():
            best = int(np.argmin(values.mean(axis=0)))
            error = values[:, best].std() / math.sqrt(max(1, repeats - 1))
            cells[name].append(f"{values[:, best].mean():.3f} ± {error:.3f}")
    print(f"excess loss over that of 0, {n_features} features, {n_steps} steps, best step size")
    table(["rows", *map(str, sizes)], [(name, *found) for name, found in cells.items()])


def logistic(sizes, n_features, n_steps, repeats):
    """Print the log-loss of the estimator, untuned."""
    variants = {
        "sgd, plain": {"solver": solvers.SGD(momentum=False)},
        "default": {},
        "bias-reduced": {"solver": papers.BiasReduced(), "max_iter": n_steps},
        "the same, 4 levels": {"max_iter": n_steps, "levels": LEVELS},
        "the same, boosted": {
            "solver": papers.BiasReduced(failure_probability=0.1), "max_iter": n_steps,
        },
    }  # fmt: skip
    cells = {name: [] for name in variants}
    for n in sizes:
        rng = np.random.default_rng(0)
        problem, _ = separable(n, n_features, rng)
        X = problem.X.copy()
        X.data = problem.weights.copy()
        odds = 8 * X @ (rng.normal(size=n_features) / np.arange(1, n_features + 1) ** 0.2)
        y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
        for name, given in variants.items():
            given, losses = dict(given), []
            if levels := given.pop("levels", 0):
                given["solver"] = papers.BiasReduced(batch_size=n / 2**levels)
            for seed in range(repeats):
                model = DPLogisticRegression(
                    EPSILON,
                    DELTA,
                    adjacency=ADJACENCY,
                    classes=(0, 1),
                    random_state=seed,
                    **{"data_norm": 1.0, **given},
                ).fit(X, y)
                sure = model.predict_log_proba(X)
                losses.append(-np.mean(sure[np.arange(n), y]))
            cells[name].append(f"{np.mean(losses):.4f}")
    print(f"logistic regression, {n_features} features: mean log-loss (zero: {math.log(2):.4f})")
    table(["rows", *map(str, sizes)], [(name, *found) for name, found in cells.items()])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--features", type=int, default=2**16)
    parser.add_argument("--rows", type=int, nargs="+", default=[3000, 10_000, 30_000, 100_000])
    parser.add_argument("--steps", type=int, default=127)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--only", choices=["bias", "excess", "logistic"])
    asked = parser.parse_args()
    if asked.quick:
        asked.features, asked.rows, asked.steps, asked.repeats = 500, [300, 1000], 15, 1
    # seeds are wanted here: the figures shall be the same next time
    warnings.simplefilter("ignore")
    for part in (bias, excess, logistic):
        if asked.only in (None, part.__name__):
            start = time.perf_counter()
            part(asked.rows, asked.features, asked.steps, asked.repeats)
            print(f"({time.perf_counter() - start:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
