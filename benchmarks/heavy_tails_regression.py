# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""`DPLpRegressor` against noisy sufficient statistics, on heavy tails and on real tables.

Replace-one adjacency, delta = n^-1.1. The regressor is the default one: no bound is given to it.
AdaSSP (see `_regression_rivals.py`) gets its bounds in two ways, both by looking at the data, which
is unpaid for and flatters it: the largest row and target, so that nothing is clipped (non-robust);
and the best of a grid of quantiles of both, by its true error. Real tables in their units, with
more methods, are in `regression.py`. ::

    pip install --no-deps plotnine==0.15.9 statsmodels==0.15.0
    python benchmarks/heavy_tails_regression.py            # ten minutes of one core
    python benchmarks/heavy_tails_regression.py --quick    # a smoke run

Synthetic rows: error of the coefficients and the intercept over their norm. Tables: 1 - R^2 on a
fifth of the rows that was held out.
"""

import argparse
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import HuberRegressor, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parent))
from _regression_rivals import adassp
from _tables import diamonds, doctor_visits

from skdp import DPLpRegressor

EPSILONS = (0.3, 1.0, 3.0, 8.0)
QUANTILES = (0.5, 0.75, 0.9, 0.97, 1.0)
N_ROWS, N_FEATURES = 10_000, 10


def student(df, noise_df):
    """Return a maker of rows and targets with Student t features and noise."""

    def make(seed):
        rng = np.random.default_rng(seed)

        def draw(degrees, shape):
            return rng.standard_t(degrees, shape) if degrees else rng.normal(size=shape)

        X = draw(df, (N_ROWS, N_FEATURES))
        coef = rng.normal(size=N_FEATURES)
        coef *= 2 / np.linalg.norm(coef)
        return X, X @ coef + 1 + draw(noise_df, N_ROWS), coef

    return make


def lognormal(seed):
    """Return rows with lognormal features and skewed noise of mean zero."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1, (N_ROWS, N_FEATURES))
    coef = rng.normal(size=N_FEATURES)
    coef *= 2 / np.linalg.norm(coef)
    return X, X @ coef + 1 + rng.lognormal(0, 1, N_ROWS) - np.exp(0.5), coef


SYNTHETIC = {
    "Gaussian rows and noise": student(None, None),
    "Gaussian rows, t(2.1) noise": student(None, 2.1),
    "t(3) rows and noise": student(3, 3),
    "t(2.1) rows and noise": student(2.1, 2.1),
    "t(1.2) rows and noise": student(1.2, 1.2),
    "lognormal rows and noise": lognormal,
}
TABLES = {"diamonds": diamonds, "doctor visits": doctor_visits}


def error_of(truth, test):
    """Return a function of coefficients and intercept: the error that is reported."""

    def error(coef, intercept):
        if truth is not None:
            return float(np.hypot(np.linalg.norm(coef - truth), intercept - 1)) / np.hypot(2, 1)
        X, y = test
        with np.errstate(over="ignore"):
            return float(np.mean((y - X @ coef - intercept) ** 2) / np.var(y))

    return error


def standardised(X, test):
    """Return rows whose features have one scale, by constants that nobody pays for.

    The same for all methods, which all expect features of comparable size.
    """
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), (scaler.transform(test[0]), test[1])


def tasks(quick):
    """Yield (name, makers of (X, y, error))."""
    repeats = 2 if quick else 5
    for name, make in SYNTHETIC.items():

        def runs(make=make):
            for seed in range(repeats):
                X, y, coef = make(seed)
                yield seed, X, y, error_of(coef, None)

        yield name, runs
    for name, load in TABLES.items():

        def runs(load=load):
            X, y = load()
            for seed in range(repeats):
                order = np.random.default_rng(seed).permutation(len(y))
                held, kept = np.split(order, [len(y) // 5])
                rows, test = standardised(X[kept], (X[held], y[held]))
                yield seed, rows, y[kept], error_of(None, test)

        yield name, runs


def best_bounds(X, y, epsilon, delta, error, seed):
    """Return the smallest error of AdaSSP over a grid of bounds, by looking at the truth."""
    lengths, sizes = np.linalg.norm(X, axis=1), np.abs(y)
    found = []
    for row, target, constant in itertools.product(QUANTILES, QUANTILES, (0.1, 0.3, 1.0)):
        bounds = {
            "row_bound": np.quantile(lengths, row),
            "target_bound": np.quantile(sizes, target),
        }
        rng = np.random.default_rng(seed)
        found.append(error(*adassp(X, y, epsilon, delta, **bounds, constant=constant, rng=rng)))
    return min(found)


def errors(runs, epsilon):
    """Return the mean errors of all methods at one epsilon."""
    total = {}
    for seed, X, y, error in runs():
        delta = len(y) ** -1.1
        model = DPLpRegressor(epsilon, delta, random_state=seed).fit(X, y)
        huber = DPLpRegressor(epsilon, delta, p="huber", random_state=seed).fit(X, y)
        widest = {
            "row_bound": np.linalg.norm(X, axis=1).max(),
            "target_bound": np.abs(y).max(),
        }
        rng = np.random.default_rng(seed)
        plain = LinearRegression().fit(X, y)
        robust = make_pipeline(StandardScaler(), HuberRegressor(max_iter=500)).fit(X, y)
        steps, scale = robust[-1], robust[0].scale_
        found = {
            "DPLpRegressor()": error(model.coef_, model.intercept_),
            'DPLpRegressor(p="huber")': error(huber.coef_, huber.intercept_),
            "AdaSSP, nothing clipped": error(*adassp(X, y, epsilon, delta, **widest, rng=rng)),
            "AdaSSP, best bounds": best_bounds(X, y, epsilon, delta, error, seed),
            "least squares": error(plain.coef_, plain.intercept_),
            "Huber, not private": error(
                steps.coef_ / scale,
                steps.intercept_ - robust[0].mean_ @ (steps.coef_ / scale),
            ),
        }
        for name, value in found.items():
            total.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in total.items()}


def main():
    """Print one table per task."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    for name, runs in tasks(quick):
        columns = {
            epsilon: errors(runs, epsilon) for epsilon in (EPSILONS[1:3] if quick else EPSILONS)
        }
        print(f"\n{name}\n{'epsilon':28}" + "".join(f"{epsilon:>9g}" for epsilon in columns))
        for method in next(iter(columns.values())):
            cells = "".join(f"{column[method]:9.3f}" for column in columns.values())
            print(f"{method:28}{cells}", flush=True)


if __name__ == "__main__":
    main()
