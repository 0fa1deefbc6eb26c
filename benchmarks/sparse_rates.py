# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors on sparse rows against rows, non-zeros, features and budget.

Ghazi, Guzmán, Kamath, Kumar and Manurangsi (2024), Table 1: the error of a private mean of
rows with s non-zeros has three regimes (few rows, many features, few features), purely
private or not; and the error of output perturbation. ::

    python benchmarks/sparse_rates.py            # ten minutes of one core
    python benchmarks/sparse_rates.py --quick    # a smoke run
    python benchmarks/sparse_rates.py --figure rates.png --cut-over cut.png

The data of the means are the hard ones of the lower bound: disjoint supports of s features,
as many as noise can hide, rows split evenly between them, entries of magnitude 1 / sqrt(s),
so that the l1 norm of the mean is sqrt(s), the largest that there is. Errors are Euclidean
distances to the mean of the rows, by replace-one adjacency, delta = 1e-6 or 0.
"""

import argparse
import itertools
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).parent))
from _rates_fit import Effort, Rate, save_picture

from skdp import DPLogisticRegression, DPMean, DPSparseMeanEstimator, solvers
from skdp.privacy import gdp_mu

DELTA = 1e-6
_seeds = itertools.count(1)


def noise_level(n_rows, sparsity, n_features, epsilon, pure):
    """Return what the largest of d noises on a mean amounts to."""
    if pure:
        return 2 * math.sqrt(sparsity) / (n_rows * epsilon) * math.log(n_features)
    return 2 / (n_rows * gdp_mu(epsilon, DELTA)) * math.sqrt(2 * math.log(n_features))


def hard_rows(n_rows, sparsity, n_features, epsilon, pure):
    """Return rows whose mean is as long as can be, and hidden in noise; CSR."""
    level = noise_level(n_rows, sparsity, n_features, epsilon, pure)
    blocks = round(1 / (level * math.sqrt(sparsity)))
    blocks = max(1, min(blocks, n_features // sparsity, n_rows))
    rng = np.random.default_rng(next(_seeds))
    supports = rng.permutation(n_features)[: blocks * sparsity].reshape(blocks, sparsity)
    signs = rng.choice([-1.0, 1.0], size=supports.shape) / math.sqrt(sparsity)
    of = np.arange(n_rows) % blocks
    parts = (signs[of].ravel(), supports[of].ravel(), np.arange(n_rows + 1) * sparsity)
    return sparse.csr_array(parts, shape=(n_rows, n_features))


def error(estimator, X):
    """Return the distance of a released mean to the mean of the rows."""
    mean = np.asarray(X.sum(axis=0)).ravel() / X.shape[0]
    location = estimator.set_params(random_state=next(_seeds)).fit(X).location_
    if sparse.issparse(location):
        location = location.toarray().ravel()
    return float(np.linalg.norm(location - mean))


def thresholded(epsilon, sparsity):
    """Return the default: a noisy mean, soft-thresholded; told the sparsity."""
    return DPSparseMeanEstimator(epsilon, DELTA, mechanism="soft-threshold", sparsity=sparsity)


def projected(epsilon, sparsity):
    """Return Algorithm 1 with Gaussian noise."""
    return DPSparseMeanEstimator(epsilon, DELTA, mechanism="projection", sparsity=sparsity)


def pure(epsilon, sparsity):
    """Return Algorithm 1 with Laplace noise."""
    return DPSparseMeanEstimator(epsilon, 0.0, mechanism="projection", sparsity=sparsity)


MEANS = {"soft-threshold": thresholded, "projection": projected, "pure projection": pure}
#: regime: where it is, and what varies there
REGIMES = {
    "few rows": ({"n_rows": 16, "sparsity": 64, "n_features": 2**16, "epsilon": 0.25},
                 {"n_rows": (4, 2)}),
    "many features": ({"n_rows": 2048, "sparsity": 16, "n_features": 2**18, "epsilon": 1.0},
                      {"n_rows": (512, 4), "sparsity": (4, 4), "n_features": (2**15, 4),
                       "epsilon": (0.25, 4)}),
    "few features": ({"n_rows": 16384, "sparsity": 8, "n_features": 256, "epsilon": 1.0},
                     {"n_rows": (8192, 3), "sparsity": (2, 4), "n_features": (64, 3),
                      "epsilon": (0.5, 3)}),
}  # fmt: skip
#: expected slopes: Gaussian noise, Laplace noise; logarithms are not counted
SLOPES = {
    ("few rows", "n_rows"): (0.0, 0.0),
    ("many features", "n_rows"): (-0.5, -0.5),
    ("many features", "sparsity"): (0.25, 0.5),
    ("many features", "n_features"): (0.0, 0.0),
    ("many features", "epsilon"): (-0.5, -0.5),
    ("few features", "n_rows"): (-1.0, -1.0),
    ("few features", "sparsity"): (0.0, 0.5),
    ("few features", "n_features"): (0.5, 0.5),
    ("few features", "epsilon"): (-1.0, -1.0),
}
_SYMBOLS = {"n_rows": "n", "sparsity": "s", "n_features": "d", "epsilon": "ε"}


def mean_error(make, is_pure, n_rows, sparsity, n_features, epsilon):
    """Return the error of one fit on fresh rows."""
    shape = int(n_rows), int(sparsity), int(n_features)
    X = hard_rows(*shape, epsilon, is_pure)
    return error(make(epsilon, shape[1]), X)


def measured(variable, values, is_pure):
    """Return the name and values of a variable: of epsilon, its Gaussian-DP parameter."""
    if variable == "epsilon" and not is_pure:
        return "μ", [gdp_mu(v, DELTA) for v in values]
    return _SYMBOLS[variable], values


def mean_rates(effort):
    """Yield the slopes of all regimes."""
    for regime, (place, sweeps) in REGIMES.items():
        for variable, (start, octaves) in sweeps.items():
            values = effort.sweep(start, octaves)
            for name, make in MEANS.items():
                is_pure = name == "pure projection"
                samples = [
                    effort.repeat(mean_error, make, is_pure, *{**place, variable: v}.values())
                    for v in values
                ]
                symbol, x = measured(variable, values, is_pure)
                yield Rate(
                    f"mean, {regime}, {name}", symbol, SLOPES[regime, variable][is_pure], x,
                    samples, panel=f"{regime}, error against {_SYMBOLS[variable]}", unit="error",
                )  # fmt: skip


def labelled_rows(n_rows, n_features, sparsity=16, informative=64):
    """Return rows of frequent and rare features, and labels that depend on the frequent."""
    rng = np.random.default_rng(next(_seeds))
    columns = np.concatenate(
        [
            rng.integers(0, informative, (n_rows, sparsity // 2)),
            rng.integers(informative, n_features, (n_rows, sparsity // 2)),
        ],
        axis=1,
    )
    ends = np.arange(n_rows + 1) * sparsity
    parts = (np.full(columns.size, 1 / math.sqrt(sparsity)), columns.ravel(), ends)
    X = sparse.csr_array(parts, shape=(n_rows, n_features))
    X.sum_duplicates()
    margin = 4 * math.sqrt(sparsity) * (X[:, :informative] @ np.resize([1.0, -1.0], informative))
    return X, (rng.random(n_rows) < expit(margin)).astype(int)


def excess(n_rows, n_features, epsilon=1.0, ridge=None):
    """Return what the noise of output perturbation adds to the mean logistic loss."""
    X, y = labelled_rows(int(n_rows), int(n_features))
    C = np.inf if ridge is None else 1 / (ridge * n_rows)
    model = DPLogisticRegression(
        epsilon, DELTA, solver=solvers.Output(minimizer="lbfgs"), C=C, classes=(0, 1),
        fit_intercept=False, random_state=next(_seeds), data_norm=1.0,
    ).fit(X, y)  # fmt: skip
    # nearly without noise: the same penalised minimiser
    exact = DPLogisticRegression(
        1e6, DELTA, solver=solvers.Output(minimizer="lbfgs"), C=C, classes=(0, 1),
        fit_intercept=False, random_state=0, data_norm=1.0,
    ).fit(X, y)  # fmt: skip

    def loss(coef):
        return np.logaddexp(0, -(2 * y - 1) * (X @ coef.ravel())).mean()

    # noise and its negative are as likely: their mean has no first-order term
    noise = model.coef_ - exact.coef_
    both = loss(exact.coef_ + noise) + loss(exact.coef_ - noise)
    return both / 2 - loss(exact.coef_)


def output_rates(effort):
    """Yield the slopes of output perturbation at a fixed penalty on the MEAN loss."""
    panel = "output perturbation"
    sweeps = {
        "d": (effort.sweep(2**12, 4), 0.0, lambda d: excess(4096, d, ridge=0.05)),
        "n": (effort.sweep(2048, 3), -2.0, lambda n: excess(n, 2**14, ridge=0.05)),
        "ε": (effort.sweep(0.5, 3), -2.0, lambda e: excess(4096, 2**14, e, ridge=0.05)),
    }
    for variable, (values, slope, measure) in sweeps.items():
        samples = [effort.repeat(measure, v) for v in values]
        symbol, x = measured("epsilon", values, False) if variable == "ε" else (variable, values)
        name = f"logistic loss, fixed penalty, {variable}"
        yield Rate(name, symbol, slope, x, samples, panel=f"{panel} against {symbol}")


CUT_OVER = {
    "raw Gaussian noise": lambda eps, s: DPMean(eps, DELTA, data_norm=1.0),
    "projection": projected,
    "soft-threshold": thresholded,
    "pure projection": pure,
    "compressed sensing": lambda eps, s: DPSparseMeanEstimator(
        eps, DELTA, mechanism="compressed-sensing", sparsity=s
    ),
    "zero vector": None,
}


def cut_over(effort, n_features=2**14, sparsity=16):
    """Print, and return, errors against the number of rows, all mechanisms on the same rows."""
    numbers = [int(n) for n in effort.sweep(64, 10)]
    print(f"\nError of the mean, d = {n_features}, s = {sparsity}, ε = 1, δ = {DELTA:g}\n")
    print("| mechanism |", " | ".join(f"n = {n}" for n in numbers), "|")
    print("| --- |" + " --- |" * len(numbers))
    curves = {name: [] for name in CUT_OVER}
    for n_rows in numbers:
        X = hard_rows(n_rows, sparsity, n_features, 1.0, pure=False)
        for name, make in CUT_OVER.items():
            if make is None:
                mean = np.asarray(X.sum(axis=0)).ravel() / n_rows
                curves[name].append(float(np.linalg.norm(mean)))
                continue
            repeats = 1 if name == "compressed sensing" else max(2, effort.repeats // 4)
            found = [error(make(1.0, sparsity), X) for _ in range(repeats)]
            curves[name].append(float(np.mean(found)))
    for name, errors in curves.items():
        print(f"| {name} | {' | '.join(f'{e:.3g}' for e in errors)} |", flush=True)
    return numbers, curves


def draw_cut_over(numbers, curves, path):
    """Draw the errors of all mechanisms against the number of rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, axis = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    markers = itertools.cycle("os^Dv")
    for name, errors in curves.items():
        style = {"linestyle": ":", "color": "0.5"} if name == "zero vector" else {}
        marker = "" if name == "zero vector" else next(markers)
        axis.loglog(numbers, errors, marker=marker, markersize=4, label=name, **style)
    axis.set_xlabel("number of rows n")
    axis.set_ylabel("Euclidean error of the mean")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats, short sweeps")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--figure", type=Path, help="where to draw the rates, a .png file")
    parser.add_argument("--cut-over", type=Path, help="where to draw the cut-over, a .png file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    effort = Effort(2, 2) if arguments.quick else Effort(arguments.repeats)
    start, found = time.process_time(), []
    print("| experiment | variable | expected slope | fitted slope | errors |")
    print("| --- | --- | --- | --- | --- |")
    for rate in itertools.chain(mean_rates(effort), output_rates(effort)):
        found.append(rate)
        errors = ", ".join(f"{value:.3g}" for value in rate.mean)
        print(f"| {' | '.join(rate.cells()[:4])} | {errors} |", flush=True)
    numbers, curves = cut_over(effort)
    print(f"\n{time.process_time() - start:.0f} s CPU")
    if arguments.figure:
        save_picture(found, arguments.figure)
    if arguments.cut_over:
        draw_cut_over(numbers, curves, arguments.cut_over)
    if arguments.quick:
        print("A smoke run: these are too few repeats to judge a slope by.")


if __name__ == "__main__":
    main()
