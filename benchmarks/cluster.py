# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Time of one pass over the rows: in memory, and where dask has them.

Run with ``python benchmarks/cluster.py``. A pass is one clipped gradient of logistic regression,
without noise: the shortest of many. The cluster is two processes on this machine, each with one
thread: it has the cores that two threads have, so that what remains is what the engine costs.
"""

import argparse
import tempfile
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from _machine import machine, versions
from distributed import Client, LocalCluster

from skdp._losses.classification import LogisticLoss
from skdp._rows.base import L2Ball
from skdp._rows.dask import opened
from skdp._rows.linear import LinearRows
from skdp._rows.streams import facts_of, no_flags, over_rows
from skdp._sklearn import blas_on_one_thread
from skdp.solvers.gradient import ClippedGradient

SIZES = ((8_000, 20), (1_000_000, 20), (1_000_000, 100))


def stored(folder, n_rows, n_features):
    """Write rows to a file that is read by slices; return them and labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    X /= np.sqrt(n_features)
    path = Path(folder, f"{n_rows}x{n_features}.npy")
    np.save(path, X)
    return path, X, (X[:, 0] > 0).astype(int)


def collection(path, y, n_features):
    """Return the rows of a file, and labels, as arrays of dask."""
    n_chunks = max(1, len(y) // 100_000)
    bounds = np.linspace(0, len(y), n_chunks + 1).astype(int)

    def part(low, high):
        # a copy: a task has read its rows when it ends
        return np.array(np.load(path, mmap_mode="r")[low:high])

    blocks = [
        da.from_delayed(dask.delayed(part)(low, high), (high - low, n_features), float)
        for low, high in pairwise(bounds)
    ]
    return da.concatenate(blocks), da.from_array(y, chunks=-1)


def rows_for(X, y, n_threads):
    """Return private rows of a linear model, as a fit makes them."""
    if not isinstance(X, np.ndarray):
        X, y = opened(X, y)
        X.facts = facts_of(X, y, lambda X, y: (X, y), with_labels=False)
    null = over_rows(no_flags, X)
    return LinearRows(X, over_rows(np.asarray, y), null, L2Ball(1.0), 0.1, n_threads)


def seconds_of_a_pass(rows, n_features, seconds):
    """Return the shortest time of a pass, and the gradient."""
    query = ClippedGradient(np.full(n_features + 1, 0.1), LogisticLoss(), 1.0)
    gradient, taken = query.evaluate(rows), []
    while not taken or (sum(taken) < seconds and len(taken) < 200):
        start = time.perf_counter()
        again = query.evaluate(rows)
        taken.append(time.perf_counter() - start)
        assert np.array_equal(again, gradient)
    return min(taken), gradient


@contextmanager
def processes():
    """Start a cluster of two processes and make it current."""
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster):
        yield


def measured(path, X, y, seconds):
    """Return the milliseconds of a pass, by where the rows are."""
    n_features = X.shape[1]
    given = collection(path, y, n_features)
    found, gradients = {}, []

    def measure(name, X, y, n_threads=1):
        rows = rows_for(X, y, n_threads)
        with blas_on_one_thread():
            shortest, gradient = seconds_of_a_pass(rows, n_features, seconds)
        found[name] = 1e3 * shortest
        gradients.append(gradient)

    measure("memory, one thread", X, y)
    measure("memory, two threads", X, y, 2)
    with dask.config.set(scheduler="threads", num_workers=2):
        measure("dask, threads, from a file", *given)
    with processes():
        measure("dask, two processes", *given)
    assert all(np.array_equal(gradients[0], other) for other in gradients), "gradients differ"
    return found


def main():
    """Print a table in reStructuredText."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    print(f".. {machine()}; {versions('numpy', 'dask', 'distributed')}\n")
    print(".. list-table:: Milliseconds of a pass\n   :header-rows: 1\n")
    with tempfile.TemporaryDirectory() as folder:
        for n_rows, n_features in SIZES:
            found = measured(*stored(folder, n_rows, n_features), seconds)
            if (n_rows, n_features) == SIZES[0]:
                print("   * - rows x features")
                print("\n".join(f"     - {name}" for name in found))
            print(f"   * - {n_rows:,} x {n_features}".replace(",", " "))
            print("\n".join(f"     - {value:.1f}" for value in found.values()), flush=True)


if __name__ == "__main__":
    main()
