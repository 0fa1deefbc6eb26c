# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Time and memory of a private gradient step and of a whole fit.

Run with ``python benchmarks/gradient_speed.py``. Everything is compared with plain
products, plain reading and plain scikit-learn in the same process; only the ratios
mean anything elsewhere. Functions are timed in turn, a few calls each and the first of
them discarded (threads of BLAS spin for a while after a product), and the medians are
compared.
"""

import argparse
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression
from skdp._losses.classification import LogisticLoss
from skdp._rows.base import L2Ball
from skdp._rows.linear import LinearRows
from skdp._sklearn import blas_on_one_thread, effective_n_threads
from skdp.privacy.kernel.samplers import SystemBits, rounded_gaussian, rounded_laplace
from skdp.solvers.gradient import ClippedGradient

sys.path.insert(0, str(Path(__file__).parent))
from _datasets import synthetic


def medians(*functions, repeats):
    """Return the median seconds of functions that are timed in turn, five calls each."""
    seconds = [[] for _ in functions]
    for _ in range(max(1, repeats // 4)):
        for function, record in zip(functions, seconds, strict=True):
            for call in range(5):
                start = time.perf_counter()
                function()
                if call:
                    record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in seconds]


def dense(n_rows, n_features, rng):
    """Return dense rows of norm about 1."""
    X = rng.standard_normal((n_rows, n_features))
    X /= np.sqrt(n_features)
    return X


def csr(n_rows, n_features, per_row, rng):
    """Return CSR rows with about `per_row` entries each."""
    indices = rng.integers(0, n_features, n_rows * per_row, dtype=np.int32)
    indptr = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    data = rng.standard_normal(n_rows * per_row) / np.sqrt(per_row)
    X = sparse.csr_array((data, indices, indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X


def step(name, X, rng, repeats):
    """Compare one clipped gradient with the two bare products."""
    n_rows, n_features = X.shape
    target = rng.choice([-1.0, 1.0], n_rows)
    nobody = np.zeros(n_rows, dtype=bool)
    rows = LinearRows(X, target, nobody, L2Ball(1.0), 0.1, effective_n_threads())
    coef, residual = rng.standard_normal(n_features + 1), rng.standard_normal(n_rows)
    query = ClippedGradient(coef, LogisticLoss(), 0.5)
    values = X.data if sparse.issparse(X) else X

    def products():
        return X @ coef[:-1], X.T @ residual

    def gradient():
        with blas_on_one_thread():
            query.evaluate(rows)

    ours, plain, read = medians(gradient, products, values.sum, repeats=repeats)
    print(
        f"{name:<34} step {1e3 * ours:7.1f} ms   two products {1e3 * plain:7.1f} ms   "
        f"ratio {ours / plain:5.2f}   share of read rate {read / ours:5.2f}"
    )


def fit(name, X, y):
    """Compare a whole private fit with scikit-learn's, and measure its memory."""
    private = DPLogisticRegression(classes=[0, 1], data_norm=1.0)
    public = LogisticRegression()
    ours, theirs = medians(lambda: private.fit(X, y), lambda: public.fit(X, y), repeats=1)
    tracemalloc.start()
    private.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"fit {name} {X.shape[0]} x {X.shape[1]}, {private.n_iter_[0]} steps: {ours:.2f} s, "
        f"lbfgs, {public.n_iter_[0]} iterations: {theirs:.2f} s, "
        f"ratio {ours / theirs:.2f}; accuracy "
        f"{private.score(X, y):.4f} and {public.score(X, y):.4f}; peak memory beyond X "
        f"{peak / X.nbytes:.1%} of X"
    )


def draws(repeats):
    """Measure noise draws per second."""
    for sampler in (rounded_gaussian, rounded_laplace):
        (seconds,) = medians(lambda s=sampler: s(2.0**24, 10**6, SystemBits()), repeats=repeats)
        print(f"{sampler.__name__}: {1 / seconds:.0f} million draws a second, system entropy")


def main():
    """Run all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the full size")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    n_rows = int(arguments.scale * 10**6)
    print(f"threads: {effective_n_threads()}")
    draws(arguments.repeats)
    for n_features in (20, 100, 500):
        rows = n_rows if n_features < 500 else n_rows // 5
        step(f"dense {rows} x {n_features}", dense(rows, n_features, rng), rng, arguments.repeats)
    X = csr(n_rows, 10**5, 50, rng)
    step(f"CSR {n_rows} x 100000, 50 a row", X, rng, max(3, arguments.repeats // 3))
    del X
    X = dense(n_rows, 100, rng)
    truth = rng.standard_normal(100)
    fit("normal rows", X, (X @ truth + rng.logistic(size=len(X)) / 2 > 0).astype(int))
    del X
    fit("make_classification", *synthetic(n_rows, 100, class_sep=0.72))


if __name__ == "__main__":
    main()
