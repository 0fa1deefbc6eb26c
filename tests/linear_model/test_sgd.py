# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fits on random batches: inputs, refusals, and Algorithm 1 of Bassily, Smith and Thakurta."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from skdp.privacy.laws import calibration as _calibration
from skdp.privacy.laws import loss_distributions as _loss_distributions
from tests import _audit
from tests._neighbours import as_layout
from tests._solvers import linear_model

ESTIMATORS = (DPLogisticRegression, DPHingeSVM)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def rows(n_rows=200, n_features=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1))
    return X / 4, y


def sgd(estimator=DPLogisticRegression, **options):
    usual = {"epsilon": 4.0, "delta": 1e-5, "solver": "sgd", "batch_size": 20, "random_state": 0}
    return linear_model(estimator, **{**usual, **options})


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "csr", "csr zeros"])
def test_the_layout_makes_no_difference(layout, n_classes, estimator):
    X, y = rows(n_classes=n_classes)
    X[np.abs(X) < 0.05] = 0.0
    model = sgd(estimator, max_iter=15)
    dense, other = clone(model).fit(X, y), clone(model).fit(as_layout(X, layout), y)
    # a sum in another order, on the same grid, with the same noise
    np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-5 * np.abs(dense.coef_).max())
    assert other.ledger_ == dense.ledger_


def test_unsorted_sparse_rows_and_single_precision():
    X, y = rows()
    model = sgd(max_iter=15)
    one = clone(model).fit(X.astype(np.float32), y)
    two = clone(model).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    unsorted = as_layout(X, "csr duplicates")
    kept = unsorted.copy()
    np.testing.assert_allclose(clone(model).fit(unsorted, y).coef_, clone(model).fit(X, y).coef_)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(unsorted, name), getattr(kept, name))


@every_estimator
def test_the_data_are_not_changed(estimator):
    X, y = rows()
    before = X.copy(), y.copy()
    sgd(estimator, max_iter=5).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@every_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 201}, "batch_size must be greater than 0 and at most the number of rows"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": math.nan}, "batch_size"),
        ({"batch_size": -3}, "batch_size"),
        ({"batch_size": "10"}, "batch_size"),
        ({"batch_size": 1e-300}, "batch_size must be at least 1e-12"),
        ({"batch_size": 2.5, "sampling": "without-replacement"}, "must be a whole number"),
        ({"sampling": "shuffled"}, "sampling"),
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"mechanism": "output"}, "does not belong to mechanism='output'"),
        ({"epsilon": 1e-9, "delta": 1e-300}, "too small"),
    ],
)
def test_misuse_is_refused(options, message, estimator):
    with pytest.raises(ValueError, match=message):
        sgd(estimator, **options).fit(*rows())


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("sampling", ["poisson", "without-replacement", "with-replacement"])
@pytest.mark.parametrize("batch_size", [1, 199, 200, None])
def test_extreme_batches_are_paid_for(batch_size, sampling, adjacency):
    X, y = rows()
    model = sgd(batch_size=batch_size, sampling=sampling, adjacency=adjacency, max_iter=4)
    fitted = model.fit(X, y)
    (release,) = fitted.ledger_.releases
    assert release.count == fitted.n_iter_ == 4
    spent, delta = fitted.privacy_spent_
    assert 0.98 * 4.0 < spent <= 4.0
    assert delta == 1e-5
    assert np.isfinite(fitted.coef_).all()


def test_few_rows():
    for n_rows in (1, 2):
        X, y = rows(n_rows)
        fitted = sgd(classes=(0, 1), batch_size=1, max_iter=3).fit(X, y)
        assert np.isfinite(fitted.coef_).all()
        fitted = sgd(classes=(0, 1), batch_size=0.5, max_iter=3).fit(X, y)
        assert np.isfinite(fitted.coef_).all()


def test_expected_sizes_need_not_be_whole():
    fitted = sgd(batch_size=7.25, max_iter=5).fit(*rows())
    assert fitted.ledger_.releases[0].noise.sampling.rate == pytest.approx(7.25 / 200, rel=1e-12)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
def test_extreme_features(scale):
    X, y = rows()
    X[:, 1] = scale * np.sign(X[:, 1])
    fitted = sgd(max_iter=10).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(sgd(max_iter=10).fit(0 * X + scale, y).coef_).all()


def test_a_repeated_fit_makes_no_second_calibration(monkeypatch):
    model = sgd(epsilon=3.21, max_iter=17)
    first = clone(model).fit(*rows())
    misses = _loss_distributions._sampled_epsilon.cache_info().misses

    def refused(*args):
        raise AssertionError("calibrated again")

    monkeypatch.setattr(_calibration, "compose_epsilon", refused)
    again = clone(model).fit(*rows(seed=1))
    assert again.ledger_ == first.ledger_
    assert _loss_distributions._sampled_epsilon.cache_info().misses == misses


@pytest.mark.covering
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("penalty", [np.inf, 0.5])
def test_the_printed_algorithm_is_followed(fit_intercept, adjacency, penalty):
    n_rows, n_features, bound = 12, 3, 2.0
    X, y = rows(n_rows, n_features)
    model = sgd(
        batch_size=1, max_iter=n_rows**2, sampling="with-replacement", coef_bound=bound,
        fit_intercept=fit_intercept, adjacency=adjacency, classes=(0, 1), C=penalty, data_norm=1.0,
    )  # fmt: skip
    with _audit.recorded() as additions:
        fitted = clone(model).fit(X, y)
    assert len(additions) == n_rows**2
    assert all(step.noise.sampling.kind == "with-replacement" for step in additions)
    # Algorithm 1: gradients of the sum of losses, bounded by nL, noise sigma on all p of them
    noise = additions[0].noise
    lipschitz = math.hypot(1.0, 0.1) if fit_intercept else 1.0
    size = n_features + fit_intercept
    sigma = n_rows * 2 * lipschitz / noise.mu
    assert sigma == pytest.approx(n_rows * noise.scale, rel=2e-6)
    theta, diameter = np.zeros(size), 2 * bound
    held = np.append(np.ones(n_features), np.zeros(int(fit_intercept)))
    for t, step in enumerate(additions, start=1):
        gradient = n_rows * step.output + held * theta / penalty
        length = diameter / math.sqrt(t * ((n_rows * lipschitz) ** 2 + size * sigma**2))
        theta = theta - length * gradient
        theta *= min(1.0, bound / np.linalg.norm(theta))
    np.testing.assert_allclose(fitted.coef_[0], theta[:n_features], rtol=0, atol=1e-12)
    intercept = 0.1 * theta[-1] if fit_intercept else 0.0
    np.testing.assert_allclose(fitted.intercept_, intercept, rtol=0, atol=1e-12)


def test_a_released_sum_is_divided_by_the_expected_size(monkeypatch):
    # the same noise for all, and steps of given length: the first one says what was divided
    X, y = rows()
    model = sgd(batch_size=20, max_iter=1, step_size=0.01, clipping_norm=1.0)
    with _audit.recorded() as additions:
        fitted = clone(model).fit(X, y)
    expected = -0.01 * additions[0].output / 20
    np.testing.assert_allclose(fitted.coef_[0], expected[:-1], rtol=1e-12)


def test_accuracy_without_noise_to_speak_of():
    X, y = rows(2000)
    for sampling in ("poisson", "without-replacement"):
        model = sgd(epsilon=30.0, batch_size=200, max_iter=200, sampling=sampling)
        assert model.fit(X, y).score(X, y) > 0.95
