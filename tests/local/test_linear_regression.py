# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Least squares from reports: consistency, errors, warnings, input."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, Ridge

from skdp import LocalDPLinearRegression, PrivUnitPrivatizer
from skdp._rows.linear import regression_rows
from skdp.exceptions import NoisyEstimateWarning
from skdp.local import _linear_regression, _moments
from skdp.local._linear_regression import JointVectors

COEF = np.array([1.0, -0.5, 0.25, 0.0, 0.8])


def some_rows(n_rows, seed=0, noise=0.1, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 5))
    return X, X @ COEF + shift + noise * rng.normal(size=n_rows)


def reference(epsilon, **params):
    """Return the estimator with bounds that all of these rows keep."""
    return LocalDPLinearRegression(
        epsilon, data_norm=6**0.5, target_scale=3.0, fit_intercept=False, **params
    )


@pytest.mark.parametrize("params", [{}, {"fit_intercept": False}, {"l2": 5.0}, {"epsilon": 1e4}])
@pytest.mark.parametrize("layout", [np.array, sparse.csr_array, np.float32])
def test_large_budget_leaves_least_squares(params, layout):
    X, y = some_rows(200, shift=0.3)
    model = LocalDPLinearRegression(**{"epsilon": 1e5, "data_norm": 10.0, **params})
    model.fit(layout(X), y)
    plain = Ridge(alpha=params.get("l2", 0.0), fit_intercept=params.get("fit_intercept", True))
    plain.fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-3)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=2e-3)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-2)


def test_errors_are_those_of_the_sandwich_at_a_large_budget():
    X, y = some_rows(4000, shift=0.3)
    model = LocalDPLinearRegression(1e5, data_norm=10.0, random_state=0).fit(X, y)
    usual = 0.1 * np.sqrt(np.diag(np.linalg.inv(X.T @ X)))
    # from 100 groups: each is uncertain by 7 %
    np.testing.assert_allclose(model.coef_standard_error_, usual, rtol=0.3)
    assert model.intercept_standard_error_ == pytest.approx(0.1 / np.sqrt(4000), rel=0.3)
    np.testing.assert_allclose(
        np.diag(model.coef_covariance_), model.coef_standard_error_**2, rtol=1e-9
    )


def test_rows_that_are_too_long_leave_a_true_model_true():
    X, y = some_rows(300_000, noise=0.0, shift=0.7)
    # nearly all rows are longer
    model = LocalDPLinearRegression(data_norm=1.0, random_state=0).fit(X, y)
    error = np.append(model.coef_ - COEF, model.intercept_ - 0.7)
    errors = np.append(model.coef_standard_error_, model.intercept_standard_error_)
    assert errors.max() < 0.1
    assert (np.abs(error) < 4 * errors).all()


def coverage(n_runs, n_rows):
    """Return how often intervals of 95 % hold."""
    held = []
    for seed in range(n_runs):
        model = reference(8.0).fit(*some_rows(n_rows, seed))
        held.append(np.abs(model.coef_ - COEF) < 1.98 * model.coef_standard_error_)
    return np.mean(held)


@pytest.mark.full
def test_standard_errors_are_those_of_many_fits():
    assert 0.92 < coverage(200, 5000) < 0.985


@pytest.mark.slow
def test_standard_errors_are_those_of_very_many_fits():
    assert 0.935 < coverage(600, 50_000) < 0.965


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "low", "high"), [(2.0, 0.1, 0.8), (4.0, 0.05, 0.15), (8.0, 0.015, 0.04),
                                 (16.0, 0.003, 0.01)],
)  # fmt: skip
def test_reference_errors(epsilon, low, high):
    errors = [
        np.linalg.norm(reference(epsilon).fit(*some_rows(200_000, seed)).coef_ - COEF)
        for seed in range(5)
    ]
    assert low < np.mean(errors) < high


@pytest.mark.parametrize(("epsilon", "expected"), [(2.0, 1.36), (4.0, 1.20), (8.0, 0.77)])
def test_least_squares_without_the_correction_are_far_off(epsilon, expected):
    X, y = some_rows(50_000)
    joint = np.column_stack([X, y / 3.0])
    reports = PrivUnitPrivatizer(epsilon, data_norm=6**0.5).fit_transform(joint)
    naive = LinearRegression(fit_intercept=False).fit(reports[:, :-1], 3.0 * reports[:, -1])
    error = np.linalg.norm(naive.coef_ - COEF)
    assert error == pytest.approx(expected, abs=0.15)
    if epsilon > 2:
        assert np.linalg.norm(reference(epsilon).fit(X, y).coef_ - COEF) < error / 2


def test_warns_of_noise_alone():
    X, y = some_rows(200)
    with pytest.warns(NoisyEstimateWarning, match="use more rows"):
        model = reference(4.0).fit(X, y)
    assert model.noise_level_ > model.smallest_eigenvalue_ / 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoisyEstimateWarning)
        model = reference(8.0, random_state=0).fit(*some_rows(50_000))
    assert model.noise_level_ < model.smallest_eigenvalue_ / 3
    # known beforehand
    other = reference(8.0, random_state=1).fit(np.zeros((50_000, 5)), np.zeros(50_000))
    assert other.noise_level_ == model.noise_level_


def test_every_row_reports_once():
    X, y = some_rows(1003)
    model = reference(8.0).fit(X, y)
    (release,) = model.ledger_.releases
    assert (release.count, release.adjacency, release.size) == (1, "local", 6)
    assert model.privacy_spent_[0] == model.ledger_.local_epsilon() <= 8.0


# Known bugs, planted one by one -----------------------------------------------------------


def test_noise_that_is_not_subtracted_is_caught(monkeypatch):
    monkeypatch.setattr(
        _moments.MomentSums, "second_moment", lambda sums, unit: sums.gram / sums.n_reports
    )
    model = reference(8.0, random_state=0).fit(*some_rows(50_000))
    assert (np.abs(model.coef_ - COEF) > 6 * model.coef_standard_error_).any()


def test_constant_that_is_not_scaled_down_is_caught(monkeypatch):
    def unscaled(radius, scale, constant):
        made = JointVectors(radius, scale, constant)

        class Unscaled:
            name = made.name

            def vectors(self, chunk):
                found = made.vectors(chunk)
                found[:, -2] = constant / np.hypot(1, constant)
                return found

        return Unscaled()

    X, y = some_rows(100_000, noise=0.0, shift=2.0)
    monkeypatch.setattr(_linear_regression, "JointVectors", unscaled)
    model = LocalDPLinearRegression(16.0, random_state=0).fit(X, y)
    assert abs(model.intercept_ - 2.0) > 6 * model.intercept_standard_error_


def test_vectors_are_in_the_unit_ball():

    X, y = some_rows(100, shift=3.0)
    X[0], X[1], y[2], y[3] = 1e300, 1e-300, 1e300, np.nan
    for what in (JointVectors(1.0, 1.0, 0.5), JointVectors(1e-50, 1e50, 0.0)):
        for rows in (X, sparse.csr_array(X)):
            (chunk,) = regression_rows(rows, y).chunks
            made = what.vectors(chunk)
            assert made.shape == (100, 6 + bool(what.intercept))
            assert np.linalg.norm(made, axis=1).max() <= 1 + 1e-12
            assert not made[3].any()
    assert replace(what, intercept=1.0).name == what.name


# Bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"data_norm": 1e-60}, "data_norm"),
        ({"target_scale": -1.0}, "target_scale"),
        ({"l2": -1.0}, "l2"),
        ({"intercept_scaling": 0.0}, "intercept_scaling"),
    ],
    ids=str,
)
def test_unusable_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        LocalDPLinearRegression(**params).fit(np.eye(3), [0, 1, 2])


def test_unusable_rows_are_refused():
    for X, y in (([[np.nan]], [1.0]), ([[1.0]], [np.inf]), (np.eye(3), ["a", "b", "c"])):
        with pytest.raises(ValueError):  # noqa: PT011
            LocalDPLinearRegression().fit(X, y)


@pytest.mark.parametrize(
    "params",
    [{}, {"fit_intercept": False}, {"data_norm": 1e50, "target_scale": 1e-50}, {"l2": 1e300},
     {"data_norm": 1e-50, "target_scale": 1e50, "l2": 1e300}, {"epsilon": 1e-3}, {"epsilon": 1e5}],
    ids=str,
)  # fmt: skip
def test_awkward_rows_give_numbers(params):
    rows = [np.ones((1, 1)), np.zeros((5, 2)), np.full((9, 2), 1e300), np.full((9, 2), 1e-300)]
    for X in [*rows, np.eye(3, dtype=np.float32), np.ones((2, 50))]:
        for size in (1.0, 1e300):
            X.setflags(write=False)
            model = LocalDPLinearRegression(**params).fit(X, np.full(len(X), size))
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.intercept_)
            assert np.isnan(model.coef_standard_error_).all() == (len(X) < 8)
