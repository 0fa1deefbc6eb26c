# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whole fits with minimisers and recoveries of ours, and with those of cvxpy, for `speed.py`."""

import math
import warnings

import numpy as np
from _speed_rows import alternately, labels, make
from scipy import sparse

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, DPSparseMeanEstimator, solvers

__all__ = ["cvxpy_beside"]

#: rows and features of minimisers
SHAPES = ((50, 2), (200, 5), (500, 20), (200, 50), (1000, 10), (1000, 50), (5000, 4), (5000, 50))
#: measurements and features of recoveries
SKETCHES = (
    (16, 32),
    (32, 64),
    (32, 128),
    (64, 128),
    (64, 256),
    (128, 256),
    (128, 512),
    (200, 1000),
)


def minimisers(shapes):
    """Yield what is fitted, the rows times coefficients, and a fit by each minimizer."""
    for n_rows, n_features in shapes:
        X, score = make((n_rows, n_features, None))
        heavy = score + np.random.default_rng(2).standard_t(2, size=n_rows)
        for name, kind, K, target, known in (
            ("hinge, 2 classes", DPHingeSVM, 2, labels(score), {}),
            ("hinge, 4 classes", DPHingeSVM, 4, labels(score, 4), {}),
            ("absolute error", DPLpRegressor, 2, heavy, {"p": 1}),
            ("logistic", DPLogisticRegression, 2, labels(score), {}),
        ):
            if kind is not DPLpRegressor:
                known = {"classes": range(K)}

            def fit(minimizer, X=X, y=target, kind=kind, known=known):
                solver = solvers.Output(minimizer=minimizer)
                model = kind(4.0, solver=solver, data_norm=2.0, random_state=0, **known)
                return model.fit(X, y).coef_

            n_coefs = (n_features + 1) * (K if K > 2 else 1)
            yield (
                f"minimiser, {name}", f"{n_rows:,} x {n_features}", n_rows * n_coefs,
                lambda fit=fit: fit("newton"), lambda fit=fit: fit("cvxpy"),
            )  # fmt: skip


def sparse_rows(n_rows, n_features, sparsity=4, n_blocks=4):
    """Return rows that have one of a few disjoint supports each, so that nothing cancels."""
    order = np.random.default_rng(0).permutation(n_features)
    blocks = order[: sparsity * n_blocks].reshape(n_blocks, sparsity)
    columns = blocks[np.arange(n_rows) % n_blocks].ravel()
    values = np.full(columns.size, 1 / math.sqrt(sparsity))
    ends = np.arange(n_rows + 1) * sparsity
    return sparse.csr_array((values, columns, ends), shape=(n_rows, n_features))


def recoveries(shapes):
    """Yield what is recovered, the measurements times features, and a fit by each solver."""
    for m, d in shapes:
        X = sparse_rows(1000, d)
        for form, known in (("auto", {"sparsity": 4}), ("denoising", {}), ("equality", {})):

            def fit(solver, X=X, m=m, form=form, known=known):
                return DPSparseMeanEstimator(
                    4.0, mechanism="compressed-sensing", n_measurements=m, recovery=form,
                    solver=solver, random_state=0, **known,
                ).fit(X).location_  # fmt: skip

            name = "both others" if form == "auto" else form
            yield (
                f"recovery, {name}", f"{m} of {d}", m * d,
                lambda fit=fit: fit("first-order"), lambda fit=fit: fit("cvxpy"),
            )  # fmt: skip


def cvxpy_beside(quick):
    """Yield one cell for every problem: CPU seconds of a fit, compilation by cvxpy included."""
    last = 2 if quick else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [*minimisers(SHAPES[:last]), *recoveries(SKETCHES[:last])]
        for what, shape, numbers, ours, theirs in sorted(cases, key=lambda case: case[0]):
            (own, other), (found, same) = alternately(ours, theirs, seconds=1.0, most=3)
            difference = np.linalg.norm(found - same) / np.linalg.norm(found)
            yield {
                "what": what, "shape": shape, "numbers": numbers, "ours": own, "cvxpy": other,
                "difference": float(difference),
            }  # fmt: skip
