# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""diffprivlib's side of the small tables of the accuracy page: runs in its environment."""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from _accuracy_statistics_data import BOUNDS, QUANTILES, columns, errors_of
from _accuracy_store import Store


def released_mean(X, epsilon):
    """Return means of columns."""
    from diffprivlib import tools

    return tools.mean(X, epsilon=epsilon, bounds=BOUNDS, axis=0)


def released_quantile(x, quantile, epsilon):
    """Return a quantile of one column."""
    from diffprivlib import tools

    return tools.quantile(x, quantile, epsilon=epsilon, bounds=BOUNDS)


def released_scale(X, epsilon):
    """Return standard deviations of columns, from the scaler."""
    from diffprivlib.models import StandardScaler

    model = StandardScaler(epsilon=epsilon, bounds=BOUNDS).fit(X)
    return np.sqrt(np.maximum(model.var_, 0.0))


def least_squares(folder, seed, epsilon):
    """Return R2 on held out rows, with the bounds of the data, which nobody pays for."""
    from diffprivlib.models import LinearRegression

    with np.load(Path(folder) / f"diamonds-{seed}.npz") as arrays:
        X, X_test, y, y_test = (arrays[part] for part in ("X", "X_test", "y", "y_test"))
    model = LinearRegression(
        epsilon=epsilon, bounds_X=(X.min(axis=0), X.max(axis=0)), bounds_y=(y.min(), y.max())
    )
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    with np.errstate(over="ignore"):
        return float(model.score(X_test, y_test)), seconds


def timed(function, *arguments):
    """Return the value of a call and the CPU seconds that it takes."""
    start = time.process_time()
    return function(*arguments), time.process_time() - start


def measure(store, folder, epsilons, seeds, shapes, regression_seeds):
    """Store errors and CPU seconds of all tables."""
    label = "diffprivlib †"
    for epsilon in epsilons:
        for seed in regression_seeds:
            if store.get("regression", label, epsilon, seed) is None:
                score, seconds = least_squares(folder, seed, epsilon)
                store.add("regression", label, epsilon, seed, error=score, seconds=seconds)
        for (n_rows, n_features), seed in ((shape, seed) for shape in shapes for seed in seeds):
            if store.get("mean", n_rows, label, epsilon, seed) is not None:
                continue
            X = columns(seed, n_rows, n_features)
            scale = X.std(axis=0)
            found, seconds = timed(released_mean, X, epsilon)
            error = errors_of(found, X.mean(axis=0), scale)
            store.add("mean", n_rows, label, epsilon, seed, error=error, seconds=seconds)
            found, seconds = timed(released_scale, X, epsilon)
            error = errors_of(found, scale, scale)
            store.add("scale", n_rows, label, epsilon, seed, error=error, seconds=seconds)
            for quantile in QUANTILES:
                x = X[:, -1]
                found, seconds = timed(released_quantile, x, quantile, epsilon)
                error = errors_of(found, np.quantile(x, quantile), scale[-1])
                key = f"quantile {quantile:g}", n_rows, label, epsilon, seed
                store.add(*key, error=error, seconds=seconds)


def main():
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("splits", type=Path)
    parser.add_argument("--epsilons", type=float, nargs="+")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--regression-seeds", type=int, nargs="+")
    parser.add_argument("--shapes", nargs="+", help="rows x features")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    shapes = [tuple(map(int, shape.split("x"))) for shape in arguments.shapes]
    seeds, splits = range(arguments.seeds), arguments.splits
    out = Store(arguments.out)
    measure(out, splits, arguments.epsilons, seeds, shapes, arguments.regression_seeds)


if __name__ == "__main__":
    main()
