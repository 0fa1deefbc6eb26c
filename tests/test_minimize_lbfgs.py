# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Quasi-Newton steps: their preconditioner, their certificate, and rounding on sparse rows."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._minimize import smooth as certified
from skdp._minimize.objective import objective_bounds
from skdp._minimize.smooth import lbfgs, minimize_smooth, reachable_tolerance
from tests._neighbours import as_layout
from tests.test_minimize import data, objective

LOSSES = {
    "logistic": LogisticLoss(),
    "sharp": LogisticLoss(1.0, 1e-2),
    "softmax": SoftmaxLoss(3),
    "sharp softmax": SoftmaxLoss(3, 1.0, 1e-2),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@every_loss
@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr", "csr duplicates"])
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_the_preconditioner_is_the_diagonal_of_the_hessian(loss, layout, intercept):
    X, codes = data("random", n=50)
    J = objective(as_layout(X, layout), codes, loss, ridge=0.3, intercept=intercept)
    w = 0.1 * np.random.default_rng(0).normal(size=J.size)
    assert_allclose(J.hessian_diagonal(w), J.hessian(w).diagonal(), rtol=1e-6)


def unscaled(n_rows=400, n_features=60, seed=0):
    """Return columns whose scales differ by orders of magnitude, and codes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** -rng.uniform(0, 4, n_features)
    return X, (X @ rng.normal(size=n_features) > 0).astype(int)


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticLoss(1.0, 0.1), SoftmaxLoss(3)])
def test_the_certificate_is_reached_without_help(loss, monkeypatch):
    X, codes = unscaled()
    J = objective(X, codes, loss, ridge=0.1)
    helped = []
    for name in ("newton", "cooled_newton", "accelerated"):
        monkeypatch.setattr(certified, name, lambda J, w, *_, name=name: helped.append(name) or w)
    w = minimize_smooth(J, reachable_tolerance(J.bounds), "lbfgs")
    assert certified.distance_bound(J, w, J.gradient(w)) <= reachable_tolerance(J.bounds)
    assert helped == []


@pytest.mark.full
def test_memory_that_rounding_has_spoilt_is_thrown_away():
    X, codes = unscaled()
    J = objective(X, codes, LogisticLoss(), ridge=1e-3)
    # a tolerance that cannot be had: the last point is as good as floats are
    w = lbfgs(J, np.zeros(J.size), lambda *_: False)
    assert np.linalg.norm(J.gradient(w)) < 1e-10


def test_rounding_of_a_sparse_row_is_that_of_its_non_zeros():
    rng = np.random.default_rng(0)
    loss, d, s = LogisticLoss(), 10_000, 8
    known = {"n_rows": 5, "n_coefs": d, "row_norm": 1.0, "ridge": 1.0}
    bounds = objective_bounds(loss, row_terms=s, **known)
    assert bounds.n_coefs == s
    dense = objective_bounds(loss, **known)
    assert bounds.prediction_error(1.0) < dense.prediction_error(1.0) / 200
    assert reachable_tolerance(bounds) < reachable_tolerance(dense)
    assert objective_bounds(loss, row_terms=2 * d, **known).n_coefs == d
    for layout in ("C", "csr"):
        X = np.zeros((5, d))
        for i in range(5):
            X[i, rng.choice(d, s, replace=False)] = rng.normal(size=s) / 4 / math.sqrt(s)
        J = objective(
            as_layout(X, layout), np.ones(5, int), loss, intercept=0.0, null=np.zeros(5, bool)
        )
        w = 1e3 * rng.normal(size=d)
        (chunk,) = J.rows.chunks
        exact = [
            float(sum(Fraction(X[i, j]) * Fraction(w[j]) for j in np.flatnonzero(X[i])))
            for i in range(5)
        ]
        error = np.abs(chunk.predict(w) - exact).max()
        assert error <= bounds.prediction_error(np.linalg.norm(w))
