# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The rows of `speed.py`, and how calls are timed: in every environment the same.

Only numpy and scipy are imported, so that environments of peers can.
"""

import statistics
import time

import numpy as np
from scipy import sparse

__all__ = ["SIZES", "alternately", "labels", "make", "name_of", "read_seconds"]

#: rows, columns and entries of a row; None for dense rows
SIZES = (
    (10**4, 20, None),
    (10**5, 100, None),
    (10**6, 100, None),
    (10**4, 10**3, 20),
    (10**5, 10**4, 30),
    (10**6, 10**5, 50),
)


def name_of(size):
    """Return how a size is called in tables."""
    n_rows, n_columns, per_row = size
    rows = f"{n_rows:,} x {n_columns:,}"
    return f"dense {rows}" if per_row is None else f"CSR {rows}, {per_row} a row"


def make(size, dtype=np.float64):
    """Return rows of norm about 1, and a linear score of each, standard normal.

    Entries are normal numbers, independent of each other: the easiest case for methods that
    learn curvature, so that no ratio to them is flattered.
    """
    n_rows, n_columns, per_row = size
    rng = np.random.default_rng(0)
    # the same numbers in both precisions
    if per_row is None:
        X = rng.standard_normal((n_rows, n_columns), dtype=np.float32).astype(dtype, copy=False)
        X /= np.sqrt(n_columns)
        per_row = n_columns
    else:
        indices = rng.integers(0, n_columns, n_rows * per_row, dtype=np.int32)
        indptr = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
        data = rng.standard_normal(n_rows * per_row, dtype=np.float32).astype(dtype, copy=False)
        data /= np.sqrt(per_row)
        X = sparse.csr_array((data, indices, indptr), shape=(n_rows, n_columns))
        X.sum_duplicates()
    score = X @ rng.standard_normal(n_columns).astype(dtype)
    return X, score.astype(np.float64)


def labels(score, n_classes=2):
    """Return noisy classes 0, 1, ... of about equal size, by the score of every row."""
    noisy = score + np.random.default_rng(1).logistic(size=len(score)) / 4
    cuts = np.quantile(noisy[:100_000], np.arange(1, n_classes) / n_classes)
    return np.searchsorted(cuts, noisy)


def alternately(*functions, seconds=4.0, most=5):
    """Return the median CPU seconds of functions that are called in turn, and their last results.

    Parameters
    ----------
    *functions : callable
        Called without arguments. The first round counts only if it takes longer than `seconds`.
    seconds : float, default=4.0
        No further round once this much was used.
    most : int, default=5
        Largest number of rounds that count.

    Returns
    -------
    medians, results : list of float, list
        One of each for every function.
    """
    rounds, used = [], 0.0
    while True:
        results, taken = [], []
        for function in functions:
            start = time.process_time()
            results.append(function())
            taken.append(time.process_time() - start)
        rounds.append(taken)
        used += sum(taken)
        if used > seconds or len(rounds) > most:
            break
    counted = rounds[1:] or rounds
    return [statistics.median(column) for column in zip(*counted, strict=True)], results


def read_seconds(X):
    """Return the CPU seconds of one plain pass over the stored numbers, the median of five."""
    values = X.data if sparse.issparse(X) else X
    return alternately(values.sum, seconds=60.0)[0][0]
