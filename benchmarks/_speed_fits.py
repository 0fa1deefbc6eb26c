# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whole fits of DPLogisticRegression for `speed.py`, and what one more pass takes."""

import warnings

import numpy as np
from _speed_peers import BATCH, BUDGET
from _speed_rows import alternately, labels, make, name_of, read_seconds
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, solvers

__all__ = ["epochs", "fits", "pass_seconds"]


def pass_seconds(fit, passes, seconds=4.0):
    """Return the CPU seconds of one more pass of ``fit(passes)``, and of what is no pass.

    Parameters
    ----------
    fit : callable
        Makes a fit with a number of passes over all rows.
    passes : int
        Number of passes of the shorter fit; the longer one makes three times as many.
    seconds : float, default=4.0
        As for `alternately`.

    Returns
    -------
    one_pass, rest : float
    """
    (short, long), _ = alternately(lambda: fit(passes), lambda: fit(3 * passes), seconds=seconds)
    one = (long - short) / (2 * passes)
    return one, short - passes * one


def fits(sizes):
    """Yield a cell for each size: default fits next to scikit-learn's, a pass, plain reading."""
    for size in sizes:
        X, score = make(size)
        y = labels(score)
        with warnings.catch_warnings():
            # scikit-learn says when its 100 iterations were too few
            warnings.simplefilter("ignore")
            (ours, free, public), (private, searched, plain) = alternately(
                lambda X=X, y=y: DPLogisticRegression(classes=(0, 1), data_norm=1.0).fit(X, y),
                lambda X=X, y=y: DPLogisticRegression(classes=(0, 1)).fit(X, y),
                lambda X=X, y=y: LogisticRegression().fit(X, y),
            )
        steps = max(4, min(20, 2 * 10**7 // X.size))
        one, rest = pass_seconds(
            lambda n, X=X, y=y: DPLogisticRegression(
                classes=(0, 1), mechanism="gradient", solver="gd", max_iter=n, data_norm=1.0
            ).fit(X, y),
            steps,
        )
        single = make(size, np.float32)[0]
        narrow, _ = pass_seconds(
            lambda n, X=single, y=y: DPLogisticRegression(
                classes=(0, 1), mechanism="gradient", solver="gd", max_iter=n, data_norm=1.0
            ).fit(X, y),
            steps,
        )
        del single
        yield {
            "rows": name_of(size), "fit": ours, "passes": _passes(private), "pass": one,
            "free": free, "free_passes": _passes(searched),
            "pass_float32": narrow, "rest": rest, "public": public,
            "iterations": int(plain.n_iter_[0]), "read": read_seconds(X),
            "accuracy": private.score(X, y), "public_accuracy": plain.score(X, y),
        }  # fmt: skip


def _passes(model):
    """Return how often a fit has gone through the rows: once for every release."""
    return sum(release.count for release in model.ledger_.releases)


def epochs(sizes):
    """Yield a cell for each size: one epoch of private stochastic gradients."""
    for size in sizes:
        X, score = make(size, np.float32)
        y = labels(score)
        steps = max(1, round(size[0] / BATCH))

        def fit(n_epochs, X=X, y=y, steps=steps):
            return DPLogisticRegression(
                BUDGET["epsilon"], BUDGET["delta"],
                solver=solvers.SGD(
                    batch_size=BATCH, clipping_norm=BUDGET["clip"], step_size=BUDGET["lr"]
                ),
                adjacency="zero-out", max_iter=n_epochs * steps,
                classes=(0, 1), data_norm=1.0,
            ).fit(X, y)  # fmt: skip

        fit(1), fit(3)  # the noise levels are remembered now: what is left is work on rows
        one, _ = pass_seconds(fit, 1)
        yield {"rows": name_of(size), "epoch": one, "steps": steps, "read": read_seconds(X)}
