# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fits whose noise comes late: plans, inputs, refusals, and memory."""

import math
import tracemalloc
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from skdp._losses.classification import LogisticLoss
from skdp.privacy import Sampling
from skdp.solvers import sgd as sgd_solver
from skdp.solvers.lazy_sgd import plan_lazy_sgd
from tests._neighbours import as_layout
from tests._solvers import linear_model

ESTIMATORS = (DPLogisticRegression, DPHingeSVM)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def rows(n_rows=200, n_features=12, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) / 2
    X *= rng.uniform(size=X.shape) < 0.4 / np.sqrt(1 + np.arange(n_features))
    y = np.digitize(X[:, 0] + 0.2 * rng.normal(size=n_rows), np.linspace(-0.2, 0.2, n_classes - 1))
    return X, y


def lazy(estimator=DPLogisticRegression, **options):
    usual = {"epsilon": 4.0, "delta": 1e-5, "solver": "lazy-sgd", "batch_size": 20}
    return linear_model(estimator, **{**usual, "max_iter": 30, "random_state": 0, **options})


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "csr", "csr zeros"])
def test_the_layout_makes_no_difference(layout, n_classes, estimator):
    X, y = rows(n_classes=n_classes)
    model = lazy(estimator)
    one, other = clone(model).fit(X, y), clone(model).fit(as_layout(X, layout), y)
    # the same columns are touched, so that equal seeds are equal noise
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-9 * np.abs(one.coef_).max())
    assert other.ledger_ == one.ledger_


def test_unsorted_sparse_rows_and_single_precision():
    X, y = rows()
    one = lazy().fit(X.astype(np.float32), y)
    two = lazy().fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    unsorted = as_layout(X, "csr duplicates")
    kept = unsorted.copy()
    np.testing.assert_allclose(lazy().fit(unsorted, y).coef_, lazy().fit(X, y).coef_)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(unsorted, name), getattr(kept, name))


@every_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 201}, "batch_size must be greater than 0 and at most the number of rows"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": math.nan}, "batch_size"),
        ({"batch_size": 1e-300}, "batch_size must be at least 1e-12"),
        ({"coef_bound": 1.0}, "coef_bound must be None with solvers.LazySGD\\(\\)"),
        ({"preprocess": "center"}, "preprocess must be None with solvers.LazySGD\\(\\)"),
        ({"mechanism": "output"}, "does not belong to mechanism='output'"),
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1e-9, "delta": 1e-300}, "too small"),
        ({"C": 0.0}, "C"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": math.inf}, "step_size"),
        ({"clipping_norm": -1.0}, "clipping_norm"),
        ({"max_iter": 0}, "max_iter"),
        ({"data_norm": 0.0}, "data_norm"),
    ],
)
def test_misuse_is_refused(options, message, estimator):
    with pytest.raises(ValueError, match=message):
        lazy(estimator, **options).fit(*rows())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_rows_that_are_not_finite_are_refused(layout, value):
    X, y = rows()
    X[3, 0] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        lazy().fit(as_layout(X, layout), y)


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("batch_size", [1, 0.25, 199, 200, None])
def test_extreme_batches_are_paid_for(batch_size, adjacency):
    model = lazy(batch_size=batch_size, adjacency=adjacency, max_iter=4)
    fitted = model.fit(*rows())
    (release,) = fitted.ledger_.releases
    assert release.count == fitted.n_iter_ == 4
    spent, delta = fitted.privacy_spent_
    assert 0.98 * 4.0 < spent <= 4.0
    assert delta == 1e-5
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_few_rows(n_rows):
    X, y = rows(n_rows)
    for options in ({"batch_size": 1}, {"batch_size": 0.5}, {"batch_size": None, "max_iter": None}):
        fitted = lazy(classes=(0, 1), **options).fit(X, y)
        assert np.isfinite(fitted.coef_).all()


@every_estimator
@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
def test_extreme_features(scale, estimator):
    X, y = rows()
    X[:, 1] = scale * np.sign(X[:, 1])
    for data in (X, sparse.csr_array(X), 0 * X + scale):
        fitted = lazy(estimator, max_iter=10).fit(data, y)
        assert np.isfinite(fitted.coef_).all()


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize(
    "options",
    [
        {"step_size": 1e50}, {"step_size": 1e-50}, {"clipping_norm": 1e-50}, {"data_norm": 1e100},
        {"data_norm": 1e-100, "C": np.inf}, {"C": 1e-100}, {"C": 1e-100, "step_size": 1e50},
        {"C": 1e100}, {"intercept_scaling": 1e-50}, {"intercept_scaling": 1e50},
        {"step_size": 1e50, "clipping_norm": 1e50, "intercept_scaling": 1e50},
    ],
    ids=str,
)  # fmt: skip
def test_extreme_parameters(options, estimator):
    for n_classes in (2, 3):
        X, y = rows(n_classes=n_classes)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            fitted = lazy(estimator, max_iter=10, **options).fit(sparse.csr_array(X), y)
        assert np.isfinite(fitted.coef_).all()
        assert np.isfinite(fitted.intercept_).all()


def test_the_plan_depends_on_public_numbers_only():
    fits = [lazy(batch_size=None, max_iter=None).fit(*rows(seed=seed)) for seed in range(3)]
    assert len({fitted.n_iter_ for fitted in fits}) == 1
    assert fits[0].ledger_ == fits[1].ledger_ == fits[2].ledger_


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("n_features", [10, 10**7])
@pytest.mark.parametrize("n_rows", [10, 10**4, 10**7])
def test_plans_are_within_their_limits(n_rows, n_features, adjacency):
    for mu in (1e-3, 0.3, 2.0):
        problem = {
            "n_rows": n_rows, "n_features": n_features, "loss": LogisticLoss(), "mu": mu,
            "adjacency": adjacency, "intercept": 0.1, "l2": 1e-3, "radius": None,
            "n_steps": None, "step_size": None, "clip": None,
        }  # fmt: skip
        with mock.patch.object(sgd_solver, "sampled_mu", return_value=0.5):
            plan = plan_lazy_sgd(problem, budget=(1.0, 1e-6, 0.0, ()))
            given = plan_lazy_sgd(
                {**problem, "n_steps": 7, "step_size": 3.0, "clip": 0.5},
                budget=(1.0, 1e-6, 0.0, ()), batch_size=5,
            )  # fmt: skip
        assert 400 <= plan.n_steps <= 4000
        assert min(n_rows, 256) <= plan.sampling.batch_size <= n_rows
        assert plan.sampling.batch_size * plan.n_steps <= max(30.1, 256 * 400 / n_rows) * n_rows
        assert 0 < plan.step_size * plan.clip <= 100
        assert not plan.adaptive
        assert (given.n_steps, given.step_size, given.clip) == (7, 3.0, 0.5)
        assert given.sampling == Sampling("poisson", n_rows, 5)
        assert given.decay == pytest.approx(1 / (1 + 3.0 * 1e-3))
        assert given.n_skipped == 3


def test_progress_is_told_of_every_step(capsys):
    lazy(verbose=1, max_iter=20).fit(*rows())
    shown = capsys.readouterr().out
    assert "100 % of 20 releases" in shown
    assert "LazyPlan" in shown


@pytest.mark.full
def test_accuracy_without_noise_to_speak_of():
    X, y = rows(3000)
    for estimator in ESTIMATORS:
        model = lazy(estimator, epsilon=50.0, batch_size=300, max_iter=300)
        plain = estimator(50.0, 1e-5, solver="gd", random_state=0)
        assert model.fit(X, y).score(X, y) > plain.fit(X, y).score(X, y) - 0.02


@pytest.mark.full
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_needs_memory_for_few_vectors_and_the_entries(n_classes):
    n_features, n_rows, per_row = 10**6, 300, 20
    rng = np.random.default_rng(0)
    X = sparse.csr_array(
        (np.ones(n_rows * per_row), rng.integers(0, n_features, n_rows * per_row),
         np.arange(0, n_rows * per_row + 1, per_row)), shape=(n_rows, n_features),
    )  # fmt: skip
    y = np.arange(n_rows) % n_classes
    model = lazy(max_iter=20, batch_size=10)
    clone(model).fit(*rows())
    tracemalloc.start()
    fitted = model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fitted.coef_.shape == (n_classes if n_classes > 2 else 1, n_features)
    # values, sums, when each was touched, what is returned and what it is scaled to
    vector = 8 * n_features * len(fitted.coef_)
    assert peak < 6 * vector
