# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Covariances and principal components of reports: expectation, error, input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from skdp import LocalDPCovariance, LocalDPPCA
from skdp.local import _moments as _report_sums
from skdp.local._moments import MomentSums, noise_level
from skdp.local.randomisers.ball import lift
from skdp.local.randomisers.privunit import PrivUnit
from skdp.privacy.kernel.samplers import make_bits
from skdp.privacy.laws.exponential import Variates

# a randomiser whose noise is not the same along a row
CROOKED = PrivUnit(4, 0.6, 0.7)


def some_rows(n_rows, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * np.geomspace(0.5, 0.1, n_features) + 0.1
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]


def estimates(unit, rows, n_runs, method):
    """Return an estimate of a moment from each of many runs of reports."""
    from skdp.local.randomisers.ball import Lift

    source = Variates(make_bits(0, "moments"))
    reports = Lift(unit).report(np.tile(rows, (n_runs, 1)), source).reshape(n_runs, *rows.shape)
    found = []
    for run in reports:
        sums = MomentSums(rows.shape[1])
        sums.add(run[:2])
        sums.add(run[2:])
        found.append(getattr(sums, method)(unit))
    return np.array(found)


def far_from(found, truth):
    """Return the largest deviation of a mean, in standard errors."""
    error = found.std(axis=0) / np.sqrt(len(found))
    return np.abs((found.mean(axis=0) - truth) / error).max()


@pytest.mark.full
@pytest.mark.parametrize("unit", [lift(2.0, 3).unit, CROOKED], ids=["best", "crooked"])
def test_moments_have_no_bias(unit):
    # few rows: that the mean of reports has noise too matters
    rows = some_rows(5)
    found = estimates(unit, rows, 20_000, "second_moment")
    assert far_from(found, rows.T @ rows / 5) < 4.5
    found = estimates(unit, rows, 20_000, "covariance")
    assert far_from(found, np.cov(rows.T, bias=True)) < 4.5


def test_error_of_the_second_moment_is_bounded():
    rows, unit = some_rows(50, 6), lift(4.0, 6).unit
    found = estimates(unit, rows, 2000, "second_moment")
    squares = ((found - rows.T @ rows / 50) ** 2).sum(axis=(1, 2))
    bound = (1 + 7 * unit.noise_variance) / np.sqrt(50)
    assert 0.7 * bound < np.sqrt(squares.mean()) < bound


def test_noise_level_is_what_noise_makes():
    randomiser = lift(4.0, 30)
    source = Variates(make_bits(0, "level"))
    for n_rows in (100, 3000):
        sums = MomentSums(30)
        sums.add(randomiser.report(np.zeros((n_rows, 30)), source))
        largest = np.abs(np.linalg.eigvalsh(sums.second_moment(randomiser.unit))).max()
        assert largest == pytest.approx(noise_level(randomiser.unit, 30, n_rows), rel=0.15)


@pytest.mark.parametrize("centered", [False, True])
def test_estimate_comes_close_to_the_covariance(centered):
    rows = some_rows(100_000)
    model = LocalDPCovariance(data_norm=2.0, assume_centered=centered).fit(2 * rows)
    truth = EmpiricalCovariance(assume_centered=centered).fit(2 * rows)
    assert np.abs(model.covariance_ - truth.covariance_).max() < 0.03
    assert np.abs(model.location_ - truth.location_).max() < 0.03
    assert 0 < model.noise_level_ < 0.03
    assert model.privacy_spent_[0] <= 8.0
    for norm in ("frobenius", "spectral"):
        for scaling in (True, False):
            for squared in (True, False):
                ours = model.error_norm(truth.covariance_, norm, scaling, squared)
                theirs = truth.error_norm(model.covariance_, norm, scaling, squared)
                assert ours == pytest.approx(theirs)


def test_large_budget_leaves_the_covariance():
    rows = some_rows(60, 4)
    for X in (rows, sparse.csr_array(rows), rows.astype(np.float32)):
        model = LocalDPCovariance(epsilon=1e5, random_state=0).fit(X)
        np.testing.assert_allclose(model.covariance_, np.cov(rows.T, bias=True), atol=1e-4)
        pca, plain = LocalDPPCA(2, 1e5, random_state=0).fit(X), PCA(2).fit(rows)
        np.testing.assert_allclose(np.abs(pca.components_), np.abs(plain.components_), atol=1e-2)
        np.testing.assert_allclose(
            pca.explained_variance_ratio_, plain.explained_variance_ratio_, atol=1e-3
        )


def test_projected_estimate_is_positive_and_not_further_away():
    rows = some_rows(50, 8)
    model = LocalDPCovariance(epsilon=1.0, random_state=0).fit(rows)
    raw, projected = model.unprojected_covariance_, model.covariance_
    assert np.linalg.eigvalsh(raw).min() < 0 <= np.linalg.eigvalsh(projected).min() + 1e-9
    truth = np.cov(rows.T, bias=True)
    assert np.linalg.norm(projected - truth) <= np.linalg.norm(raw - truth)
    unprojected = LocalDPCovariance(epsilon=1.0, positive=False, random_state=0).fit(rows)
    np.testing.assert_array_equal(unprojected.covariance_, raw)


def test_components_point_where_rows_do():
    direction = np.array([0.6, 0.0, -0.8])
    rows = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 1)) * direction + 0.01
    pca = LocalDPPCA(random_state=0).fit(rows)
    assert abs(pca.components_[0] @ direction) > 0.999
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(3), atol=1e-9)
    assert (np.diff(pca.explained_variance_) <= 0).all()
    assert pca.explained_variance_[1] < 5 * pca.noise_level_
    largest = np.abs(pca.components_).argmax(axis=1)
    assert (pca.components_[range(3), largest] > 0).all()
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(rows)), rows, atol=1e-9)
    assert list(pca.get_feature_names_out()) == ["localdppca0", "localdppca1", "localdppca2"]
    np.testing.assert_allclose(pca.transform(sparse.csr_array(rows)), pca.transform(rows))


def test_moment_that_keeps_the_noise_is_caught(monkeypatch):
    rows, unit = some_rows(5), lift(2.0, 3).unit
    monkeypatch.setattr(
        _report_sums.MomentSums, "second_moment", lambda sums, unit: sums.gram / sums.n_reports
    )
    assert far_from(estimates(unit, rows, 2000, "second_moment"), rows.T @ rows / 5) > 20


@pytest.mark.parametrize("estimator", [LocalDPCovariance, LocalDPPCA])
def test_awkward_rows_give_numbers(estimator):
    rows = [np.ones((1, 1)), np.zeros((5, 2)), np.full((9, 2), 1e300), np.full((9, 2), 1e-300)]
    for X in [*rows, np.eye(3, dtype=np.float32), np.ones((2, 300))]:
        X.setflags(write=False)
        for extra in ({}, {"data_norm": 1e100}, {"data_norm": 1e-100}):
            fitted = estimator(**extra).fit(X)
            matrix = getattr(fitted, "covariance_", getattr(fitted, "components_", None))
            assert np.isfinite(matrix).all()


@pytest.mark.parametrize("estimator", [LocalDPCovariance, LocalDPPCA])
@pytest.mark.parametrize(
    ("params", "message"),
    [({"epsilon": -1.0}, "epsilon"), ({"epsilon": np.nan}, "epsilon"), ({"data_norm": 0}, "data_")],
    ids=str,
)
def test_unusable_parameters_are_named(estimator, params, message):
    with pytest.raises(ValueError, match=message):
        estimator(**params).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        estimator().fit([[np.nan, 1.0]])


def test_other_misuse_is_named():
    with pytest.raises(ValueError, match="n_components must be at most"):
        LocalDPPCA(4).fit(np.eye(3))
    with pytest.raises(ValueError, match="n_components"):
        LocalDPPCA(0).fit(np.eye(3))
    with pytest.raises(NotFittedError):
        LocalDPPCA().transform(np.eye(3))
    with pytest.raises(ValueError, match="norm must be"):
        LocalDPCovariance().fit(np.eye(3)).error_norm(np.eye(3), "nuclear")
