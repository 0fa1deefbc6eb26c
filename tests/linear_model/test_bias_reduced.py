# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bias-reduced fits: inputs, refusals, plans, and what is left with few rows."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from skdp.papers import bias_reduced
from tests._neighbours import as_layout
from tests._solvers import linear_model

ESTIMATORS = (DPLogisticRegression, DPHingeSVM)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def rows(n_rows=200, n_features=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1))
    return X / 4, y


def reduced(estimator=DPLogisticRegression, **options):
    usual = {
        "epsilon": 4.0, "delta": 1e-5, "solver": "bias-reduced", "batch_size": 50, "max_iter": 7,
        "random_state": 0,
    }  # fmt: skip
    return linear_model(estimator, **{**usual, **options})


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "csr", "csr zeros"])
def test_the_layout_makes_no_difference(layout, n_classes, estimator):
    X, y = rows(n_classes=n_classes)
    X[np.abs(X) < 0.05] = 0.0
    model = reduced(estimator)
    dense, other = clone(model).fit(X, y), clone(model).fit(as_layout(X, layout), y)
    np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-5 * np.abs(dense.coef_).max())
    assert other.ledger_ == dense.ledger_


def test_unsorted_sparse_rows_and_single_precision():
    X, y = rows()
    model = reduced()
    one = clone(model).fit(X.astype(np.float32), y)
    two = clone(model).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    unsorted = as_layout(X, "csr duplicates")
    kept = unsorted.copy()
    np.testing.assert_allclose(clone(model).fit(unsorted, y).coef_, clone(model).fit(X, y).coef_)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(unsorted, name), getattr(kept, name))


@every_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 201}, "batch_size, the rows of the smallest batches, must be at least 1"),
        ({"batch_size": 0.5}, "must be at least 1"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": math.nan}, "batch_size"),
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"epsilon": 1e-9, "delta": 1e-300}, "too small"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"oracle": "projection"}, "sparsity must be a number for oracle='projection'"),
        ({"oracle": "sketch"}, "sparsity must be a number for oracle='sketch'"),
        ({"oracle": "lasso"}, "oracle"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"preprocess": "center"}, "preprocess must be None with papers.BiasReduced\\(\\)"),
        ({"mechanism": "output"}, "does not belong to mechanism='output'"),
        ({"sparsity": 0}, "sparsity"),
    ],
)
def test_misuse_is_refused(options, message, estimator):
    with pytest.raises(ValueError, match=message):
        reduced(estimator, **options).fit(*rows())


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("options", [
    {}, {"batch_size": 1, "max_iter": 300}, {"batch_size": 200}, {"batch_size": 100.5},
    {"oracle": "projection", "sparsity": 2}, {"failure_probability": 0.2, "max_iter": 3},
    {"epsilon": 0.3}, {"epsilon": 30.0},
])  # fmt: skip
def test_the_whole_budget_is_spent_and_no_more(options, adjacency):
    model = reduced(adjacency=adjacency, **options)
    fitted = model.fit(*rows())
    spent, delta = fitted.privacy_spent_
    assert 0.99 * model.epsilon < spent <= model.epsilon
    assert delta == 1e-5
    runs = 1 if model.solver.failure_probability is None else 4
    assert fitted.n_iter_ == runs * model.max_iter
    assert fitted.ledger_.releases[0].count == fitted.n_iter_


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 15, 30])
def test_few_rows_are_read_all_at_once(n_rows, estimator):
    X, y = rows(n_rows)
    fitted = reduced(estimator, classes=(0, 1), batch_size=None, max_iter=None).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    (release,) = fitted.ledger_.releases
    assert not release.noise.by_chance
    assert fitted.privacy_spent_[0] <= 4.0
    # with small batches of a few rows all the same
    fitted = reduced(estimator, classes=(0, 1), batch_size=1).fit(X, y)
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.covering
@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
@pytest.mark.parametrize("oracle", ["soft-threshold", "projection", "sketch"])
def test_extreme_rows(oracle, scale):
    X, y = rows(60)
    model = reduced(oracle=oracle, sparsity=2, batch_size=20, max_iter=4)
    fitted = model.fit(X * scale, y)
    assert np.isfinite(fitted.coef_).all()
    X[:, 1] = scale
    assert np.isfinite(clone(model).fit(X, y).coef_).all()
    assert np.isfinite(clone(model).fit(X[:1].repeat(60, axis=0), y).coef_).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_refused(bad):
    X, y = rows()
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        reduced().fit(X, y)


def test_the_coefficients_stay_in_the_ball():
    X, y = rows()
    for options in ({"coef_bound": 0.5}, {"coef_bound": 0.5, "failure_probability": 0.3}):
        fitted = reduced(fit_intercept=False, step_size=100.0, **options).fit(X, y)
        assert np.linalg.norm(fitted.coef_) <= 0.5 * (1 + 1e-12)
    # without a bound it is the radius that solutions are expected within
    fitted = reduced(fit_intercept=False, step_size=1e6).fit(X, y)
    assert np.linalg.norm(fitted.coef_) <= 30 * (1 + 1e-12)


def test_the_penalty_pulls_to_zero():
    X, y = rows()
    norms = [np.linalg.norm(reduced(C=C).fit(X, y).coef_) for C in (np.inf, 1.0, 1e-4)]
    assert norms[0] > norms[1] > norms[2]


@pytest.mark.full
@every_estimator
def test_accuracy_without_noise_to_speak_of(estimator):
    X, y = rows(2000)
    y = (X[:, 0] > 0).astype(int)
    for options in ({}, {"oracle": "projection", "sparsity": 4}, {"failure_probability": 0.5}):
        model = reduced(estimator, epsilon=200.0, batch_size=1000, max_iter=40, **options)
        assert model.fit(X, y).score(X, y) > 0.95


@pytest.mark.full
def test_the_oracle_that_recovers_from_measurements_learns_too():
    X, y = rows(1000)
    y = (X[:, 0] > 0).astype(int)
    model = reduced(epsilon=200.0, batch_size=500, max_iter=30, oracle="sketch", sparsity=4)
    assert model.fit(X, y).score(X, y) > 0.9


def test_a_failure_probability_pays_for_a_choice():
    fitted = reduced(failure_probability=0.1, max_iter=3).fit(*rows())
    *runs, choice = fitted.ledger_.releases
    assert "choice among 5 candidates" in choice.query
    assert runs[0].count == 15
    assert choice.noise.law == "exponential"


def test_wide_sparse_rows_are_never_made_dense(monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.random(300, 40_000, density=1e-4, format="csr", random_state=0)
    monkeypatch.setattr(sparse.csr_matrix, "toarray", None)
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    model = reduced(batch_size=150, max_iter=2, oracle="projection", sparsity=10)
    fitted = model.fit(X, rng.integers(0, 2, 300))
    assert fitted.coef_.shape == (1, 40_000)
    assert fitted.ledger_.releases[1].size == 3 * 40_001


def test_the_predicted_length_bounds_the_estimates(monkeypatch):
    # the step size rests on it: see how long the estimates of a fit are
    X, y = rows(4000, 30)
    lengths, real = [], bias_reduced.telescoped_descent

    def watched(gradient, shape, plan):
        def kept(coef, step):
            found = gradient(coef, step)
            lengths.append(np.linalg.norm(found) ** 2)
            return found

        watched.predicted = plan.radius / (plan.clip * plan.step_size * math.sqrt(plan.n_steps))
        return real(kept, shape, plan)

    monkeypatch.setattr(bias_reduced, "telescoped_descent", watched)
    reduced(epsilon=1.0, batch_size=250, max_iter=127).fit(X, y)
    assert math.sqrt(np.mean(lengths)) < 1.5 * watched.predicted
