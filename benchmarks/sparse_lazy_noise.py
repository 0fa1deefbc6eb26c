# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Late noise against noise in every step: time, memory and accuracy of one and the same plan.

Solver "lazy-sgd" next to solver "sgd" with ``momentum=False``, with equal batches, steps, step
sizes and clipping norms, so that the coefficients of both have the same law. Rows are made-up
bags of words: a few words are in many rows, most are in hardly any. Each fit runs in a process of
its own, and one after the other::

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/sparse_lazy_noise.py
    python benchmarks/sparse_lazy_noise.py --features 10000000 --solvers lazy-sgd

Seconds are CPU seconds of the fit, without the search for the noise level, which both share
("calibration"). Memory is the most that a fit of 20 steps allocates at a time. "Noise" is the
standard deviation of the coefficients of the rarest tenth of the words.
"""

import argparse
import itertools
import multiprocessing
import time
import tracemalloc

import numpy as np
from scipy import sparse
from sklearn.base import clone

from skdp import DPLogisticRegression, solvers
from skdp.privacy import Sampling, sampled_mu

DELTA = 1e-6


def bags(n_rows, n_features, per_row, seed=0):
    """Return bags of words as CSR rows of norm 1, and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    # word j has a probability in proportion to 1 / (j + 20)
    u = rng.uniform(size=n_rows * per_row)
    words = 20 * (np.exp(u * np.log1p(n_features / 20)) - 1)
    words = np.minimum(words.astype(np.int32), n_features - 1)
    ends = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    X = sparse.csr_array((np.ones(len(words)), words, ends), shape=(n_rows, n_features))
    X.sum_duplicates()
    X.data[:] = 1.0 / np.sqrt(np.repeat(np.diff(X.indptr), np.diff(X.indptr)))
    # words of medium frequency say most
    weights = rng.normal(size=n_features) * (np.arange(n_features) + 20.0) ** -0.3
    score = X @ weights
    return X, (score / score.std() * 4 + rng.logistic(size=n_rows) > 0).astype(int)


def measure(solver, batch_size, args, answers):
    """Fit once, and put what it took into the queue."""
    X, y = bags(args.rows + args.rows // 4, args.features, args.entries)
    train, test = slice(args.rows), slice(args.rows, None)
    X_train, y_train = X[train], y[train]
    started = time.process_time()
    sampled_mu(
        args.epsilon, DELTA, sampling=Sampling("poisson", args.rows, batch_size),
        n_releases=args.steps, adjacency="replace-one",
    )  # fmt: skip
    calibration = time.process_time() - started
    given = {"batch_size": batch_size, "step_size": args.step, "clipping_norm": args.clip}
    lazy = solver == "lazy-sgd"
    chosen = solvers.LazySGD(**given) if lazy else solvers.SGD(momentum=False, **given)
    model = DPLogisticRegression(
        args.epsilon, DELTA, solver=chosen, max_iter=args.steps, classes=(0, 1), data_norm=1.0
    )
    started = time.process_time()
    model.fit(X_train, y_train)
    seconds = time.process_time() - started
    # does not grow with the steps, and being watched takes time
    watched = clone(model).set_params(max_iter=20)
    tracemalloc.start()
    watched.fit(X_train, y_train)
    memory = tracemalloc.get_traced_memory()[1] / 2**20
    noise = float(np.std(model.coef_[0, -args.features // 10 :]))
    answers.put((calibration, seconds, memory, model.score(X[test], y[test]), noise))


def main():
    """Run the comparison that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=10**6)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=50, help="words of a row")
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 2048])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--step", type=float, default=64.0, help="step size")
    parser.add_argument("--clip", type=float, default=0.25, help="clipping norm")
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--solvers", nargs="+", default=["lazy-sgd", "sgd"])
    args = parser.parse_args()
    print(f"n={args.rows:,}, d={args.features:,}, {args.entries} words a row, {args.steps} steps,")
    print(f"epsilon={args.epsilon:g}, delta={DELTA:g}, step {args.step:g}, clip {args.clip:g}")
    heads = ("solver", "batch", "seconds", "ms a step", "MB", "accuracy", "noise", "calibration")
    print("  ".join(f"{head:>11}" for head in heads))
    context = multiprocessing.get_context("spawn")
    for batch_size, solver in itertools.product(args.batches, args.solvers):
        answers = context.Queue()
        worker = context.Process(target=measure, args=(solver, batch_size, args, answers))
        worker.start()
        calibration, seconds, memory, accuracy, noise = answers.get()
        worker.join()
        cells = (
            solver, batch_size, f"{seconds:.1f}", f"{1e3 * seconds / args.steps:.1f}",
            f"{memory:.0f}", f"{accuracy:.4f}", f"{noise:.4f}", f"{calibration:.1f} s",
        )  # fmt: skip
        print("  ".join(f"{cell:>11}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
