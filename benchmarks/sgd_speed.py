# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""CPU seconds of one epoch of private stochastic gradients, next to Opacus.

The same logistic model, rows, batch size and budget, on 10^6 x 100 dense rows and on a
10^6 x 10^5 CSR matrix with 50 entries a row; one process, one thread. Opacus has an
environment of its own, which the script makes (see `_environments.py`) and runs itself in::

    python benchmarks/sgd_speed.py     # ten minutes of one core

``--library`` runs one of them, in the environment where it is called.

An epoch is n / batch steps of Poisson batches. "Share of the read rate" is the time of one
plain pass over the bytes of the rows (``X.sum()``, same process) divided by that of
the epoch: an epoch reads about one row in the mean for every row there is, so 1 would be
the limit that memory sets. The search for the noise level is timed apart. Opacus is
run with its own Poisson loader and with a vectorised loop that replaces it, each with
its two ways to clip ("hooks" stores every row's gradient, "ghost" only their norms). It
has no sparse linear layer: CSR batches are made dense, a few steps are timed and the epoch
is that time in proportion.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

# before numpy is loaded: times are those of one thread
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
import numpy as np
from scipy import sparse

from skdp import solvers

sys.path.insert(0, str(Path(__file__).parent))
from _environments import add_argument, run_there

EPSILON, DELTA, CLIP, STEP = 1.0, 1e-6, 1.0, 4.0


def dense(n_rows, n_features, dtype):
    """Return dense rows of norm about 1, labels 0 and 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32).astype(dtype)
    X /= np.sqrt(n_features)
    return X, labels(X, rng)


def csr(n_rows, n_features, per_row, dtype):
    """Return CSR rows with about `per_row` entries each, labels 0 and 1."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, n_features, n_rows * per_row, dtype=np.int32)
    indptr = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    data = rng.standard_normal(n_rows * per_row, dtype=np.float32).astype(dtype)
    data /= np.sqrt(per_row)
    X = sparse.csr_array((data, indices, indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, labels(X, rng)


def labels(X, rng):
    """Return labels of a logistic model."""
    score = X @ rng.standard_normal(X.shape[1]).astype(X.dtype)
    return (score + rng.logistic(size=len(score)) / 4 > 0).astype(np.int64)


def seconds(function):
    """Return the CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def read_seconds(X):
    """Return the seconds of one plain pass over the stored numbers (median of five)."""
    values = X.data if sparse.issparse(X) else X
    return statistics.median(seconds(values.sum) for _ in range(5))


def rows_of(data, n_rows, dtype):
    """Return the rows of a data set by name."""
    return dense(n_rows, 100, dtype) if data == "dense" else csr(n_rows, 10**5, 50, dtype)


def measure_skdp(arguments):
    """Return the cells of skdp: whole fits, and what one more epoch takes."""
    from skdp import DPLogisticRegression

    cells = []
    for data in arguments.data:
        for dtype in (np.float32, np.float64):
            X, y = rows_of(data, arguments.rows, dtype)
            steps = round(arguments.rows / arguments.batch)

            def fit(epochs, X=X, y=y, steps=steps):
                return DPLogisticRegression(
                    EPSILON, DELTA, adjacency="zero-out",
                    solver=solvers.SGD(
                        batch_size=arguments.batch, clipping_norm=CLIP, step_size=STEP
                    ),
                    max_iter=epochs * steps,
                    classes=(0, 1), data_norm=1.0,
                ).fit(X, y)  # fmt: skip

            first = [seconds(lambda fit=fit, e=e: fit(e)) for e in (1, 3)]
            # the noise levels are remembered now: what is left is data work
            runs = [[seconds(lambda fit=fit, e=e: fit(e)) for e in (1, 3)] for _ in range(3)]
            one, three = np.median(runs, axis=0)
            cells.append({
                "method": "skdp", "data": data, "dtype": np.dtype(dtype).name, "steps": steps,
                "epoch": (three - one) / 2, "fit": one, "accounting": max(0.0, first[0] - one),
                "read": read_seconds(X), "accuracy": fit(1).score(X, y),
            })  # fmt: skip
            print(cells[-1], flush=True)
    return cells


def measure_opacus(arguments):
    """Return the cells of Opacus."""
    from _sgd_speed_opacus import cells

    claim = {"epsilon": EPSILON, "delta": DELTA, "clip": CLIP, "lr": STEP}
    found = []
    for data in arguments.data:
        X, y = rows_of(data, arguments.rows, np.float32)
        read = read_seconds(X)
        for cell in cells(X, y, arguments.batch, arguments.csr_steps, **claim):
            found.append({**cell, "data": data, "dtype": "float32", "read": read})
            print(found[-1], flush=True)
    return found


def report(files):
    """Print one table of all results."""
    results = [json.loads(file.read_text()) for file in files]
    settings = [result["settings"] for result in results]
    if any(setting != settings[0] for setting in settings):
        sys.exit("The results are not of the same rows, batches and seeds.")
    cells = [cell for result in results for cell in result["cells"]]
    head = ("data", "method", "numbers", "epoch", "times skdp", "share of read rate", "accuracy")
    table = [head, ["---"] * len(head)]
    for data in dict.fromkeys(cell["data"] for cell in cells):
        group = [cell for cell in cells if cell["data"] == data]
        ours = [c["epoch"] for c in group if c["method"] == "skdp" and c["dtype"] == "float32"]
        for cell in group:
            table.append((
                data, cell["method"], cell["dtype"],
                f"{cell['epoch']:.3g} s" + (" *" if cell.get("extrapolated") else ""),
                f"{cell['epoch'] / ours[0]:.3g}" if ours else "",
                f"{cell['read'] / cell['epoch']:.2g}",
                f"{cell['accuracy']:.4f}" if cell.get("accuracy") is not None else "",
            ))  # fmt: skip
    print(*(f"| {' | '.join(row)} |" for row in table), sep="\n")
    print(f"\n{settings[0]}; * extrapolated from a few steps, in proportion")
    for result in results:
        print(result["versions"])


def run(arguments):
    """Measure one library and store its results."""
    cells = {"skdp": measure_skdp, "opacus": measure_opacus}[arguments.library](arguments)
    versions = f"{arguments.library}, Python {platform.python_version()}, numpy {np.__version__}"
    settings = {"rows": arguments.rows, "batch": arguments.batch}
    content = {"settings": settings, "versions": versions, "cells": cells}
    arguments.out.write_text(json.dumps(content, indent=1))


def main():
    """Run both libraries and print the table, or run one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=("skdp", "opacus"), help="run one, to --out")
    parser.add_argument("--out", type=Path, default=Path("sgd_speed.json"))
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--csr-steps", type=int, default=8, help="timed steps of Opacus")
    parser.add_argument("--data", nargs="*", default=["dense", "csr"], choices=["dense", "csr"])
    add_argument(parser)
    arguments = parser.parse_args()
    if arguments.library:
        run(arguments)
        return
    given = ("--rows", arguments.rows, "--batch", arguments.batch, "--data", *arguments.data)
    given += ("--csr-steps", arguments.csr_steps)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = (Path(folder, f"{name}.json") for name in ("skdp", "opacus"))
        arguments.library, arguments.out = "skdp", ours
        run(arguments)
        command = (__file__, "--library", "opacus", "--out", theirs, *given)
        run_there("opacus", arguments.environments, *command)
        report((ours, theirs))


if __name__ == "__main__":
    main()
