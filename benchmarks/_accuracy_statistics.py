# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of regression, means, quantiles and scalers on the accuracy page."""

import functools
import time
import warnings
from pathlib import Path

import _accuracy_statistics_peer
import numpy as np
from _accuracy_statistics_data import BOUNDS, QUANTILES, columns, errors_of
from _accuracy_store import Store
from _datasets import DELTA, EPSILONS
from _environments import run_there
from _tables import diamonds
from heavy_tails_regression import best_bounds, error_of, standardised
from sklearn.linear_model import LinearRegression

from skdp import DPLpRegressor, DPMean, DPQuantile, DPStandardScaler

__all__ = ["REGRESSION_SEEDS", "SHAPES", "measure", "measure_peer"]

#: rows and features of the columns
SHAPES = ((1_000, 10), (50_000, 10))
N_SEEDS = 20
REGRESSION_SEEDS = (100, 101, 102)
_ADJACENCIES = ("replace-one", "zero-out")


@functools.cache
def _diamonds(seed):
    """Return standardised rows to learn from and to test with."""
    X, y = diamonds()
    held, kept = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) // 5])
    rows, test = standardised(X[kept], (X[held], y[held]))
    return rows, test[0], y[kept], test[1]


def _export(seed, folder):
    file = Path(folder) / f"diamonds-{seed}.npz"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **dict(zip(("X", "X_test", "y", "y_test"), _diamonds(seed), strict=True)))


def _regressions(seed):
    """Yield label and function of epsilon, which returns R2 on held out rows."""
    X, X_test, y, y_test = _diamonds(seed)
    off = error_of(None, (X_test, y_test))

    def score(**parameters):
        def run(epsilon):
            model = DPLpRegressor(epsilon, DELTA, **parameters).fit(X, y)
            return 1 - off(model.coef_, model.intercept_)

        return run

    for adjacency in _ADJACENCIES:
        yield f"DPLpRegressor(), {adjacency}", score(adjacency=adjacency)
    yield 'DPLpRegressor(p="huber"), replace-one', score(p="huber")
    yield (
        "AdaSSP, replace-one, best bounds, unpaid",
        lambda epsilon: 1 - best_bounds(X, y, epsilon, DELTA, off, seed),
    )


def _statistics(X):
    """Yield table, label, function of epsilon, exact answer and unit of the error."""
    mean, scale, last = X.mean(axis=0), X.std(axis=0), X[:, -1:]
    for adjacency in _ADJACENCIES:
        given = {"adjacency": adjacency, "bounds": BOUNDS}

        def pure_mean(epsilon, given=given):
            return DPMean(epsilon, 0.0, mechanism="laplace", **given).fit(X).location_

        def noisy_mean(epsilon, given=given):
            return DPMean(epsilon, DELTA, **given).fit(X).location_

        def scaler(epsilon, given=given):
            return DPStandardScaler(epsilon, DELTA, **given).fit(X).scale_

        yield "mean", f"DPMean, δ = 0, {adjacency}", pure_mean, mean, scale
        yield "mean", f"DPMean, δ = 1e-5, {adjacency}", noisy_mean, mean, scale
        yield "scale", f"DPStandardScaler, δ = 1e-5, {adjacency}", scaler, scale, scale
        for q in QUANTILES:

            def quantile(epsilon, q=q, given=given):
                return DPQuantile(epsilon, quantile=q, **given).fit(last).location_

            exact = np.quantile(last, q)
            yield f"quantile {q:g}", f"DPQuantile, {adjacency}", quantile, exact, scale[-1]


def measure(store, epsilons=EPSILONS, n_seeds=N_SEEDS, regression_seeds=REGRESSION_SEEDS):
    """Fit ours; store R2 or errors, and CPU seconds.

    Parameters
    ----------
    store : Store
        What it holds is not measured again.
    epsilons : iterable of float, default=EPSILONS
        Budgets.
    n_seeds : int, default=N_SEEDS
        Repeats of the tables of statistics.
    regression_seeds : iterable of int, default=REGRESSION_SEEDS
        Splits of the regression.
    """
    warnings.simplefilter("ignore")

    def add(key, function, epsilon, error):
        if store.get(*key) is None:
            start = time.process_time()
            value = function(epsilon)
            seconds = time.process_time() - start
            store.add(*key, error=error(value), seconds=seconds)

    for seed in regression_seeds:
        X, X_test, y, y_test = _diamonds(seed)
        for label, run in _regressions(seed):
            for epsilon in epsilons:
                add(("regression", label, epsilon, seed), run, epsilon, float)
        key = "regression", "least squares, not private", None, seed
        add(key, lambda _, r=(X, X_test, y, y_test): _least_squares(*r), None, float)
    for n_rows, n_features in SHAPES:
        for seed in range(n_seeds):
            X = columns(seed, n_rows, n_features)
            for table, label, run, exact, unit in _statistics(X):
                for epsilon in epsilons:
                    key = table, n_rows, label, epsilon, seed
                    add(key, run, epsilon, lambda v, e=exact, u=unit: errors_of(v, e, u))


def _least_squares(X, X_test, y, y_test):
    return LinearRegression().fit(X, y).score(X_test, y_test)


def measure_peer(
    folder, environments=None, epsilons=EPSILONS, n_seeds=N_SEEDS, regression_seeds=REGRESSION_SEEDS
):
    """Run diffprivlib on the same rows; return the store of what it found."""
    splits, out = Path(folder) / "splits", Path(folder) / "diffprivlib_statistics.jsonl"
    for seed in regression_seeds:
        _export(seed, splits)
    run_there(
        "diffprivlib", environments, _accuracy_statistics_peer.__file__, out, splits,
        "--epsilons", *epsilons, "--seeds", n_seeds, "--regression-seeds", *regression_seeds,
        "--shapes", *(f"{n}x{d}" for n, d in SHAPES),
    )  # fmt: skip
    return Store(out)
