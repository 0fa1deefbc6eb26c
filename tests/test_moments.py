# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Covariance and principal components from products of rows that are released once."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA

from skdp import DPPCA, DPCovariance, privacy_spent
from skdp.audit import trace_privacy
from skdp.exceptions import NoisyEstimateWarning, PrivacyWarning
from skdp.io import stream_chunks
from skdp.moments._covariance import RowProducts
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    Rows,
    as_dense,
    as_layout,
    mixed_rows,
    neighbours,
    on_examples,
    rows_in_ball,
)

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
#: next to no noise
PLENTY = {"epsilon": 1e7, "delta": 1e-5}


def admitted(rows, radius=1.0, **options):
    return rows_in_ball(rows.X, np.zeros(len(rows.codes)), rows.null, radius, **options)


def quiet(model, *args, **kwargs):
    """Return a fitted model, whose doubts are no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return model.fit(*args, **kwargs)


def vectors_of(rows, query):
    """Return what the definition of a query multiplies: unit rows, shortened, and a constant."""
    X = as_dense(rows.X)
    X = X[np.isfinite(X).all(axis=1) & ~rows.null]
    largest = np.maximum(np.abs(X).max(axis=1, keepdims=True), 1.0)
    X = X / largest / np.maximum(np.linalg.norm(X / largest, axis=1, keepdims=True), 1 / largest)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), query.radius)
    if not query.constant:
        return X
    return np.column_stack([X, np.full(len(X), query.constant)])


# The query: its definition, its sensitivity, and that it attains it.


@pytest.mark.covering
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("radius", [1.0, 0.25])
def test_products_are_those_of_the_definition(layout, constant, radius, monkeypatch):
    shorten_chunks(monkeypatch, 9)
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    query = RowProducts(5, radius, constant)
    found = query.evaluate(admitted(rows))
    assert found.shape == (query.size,)
    v = vectors_of(rows, query)
    atol = 1e-4 if layout == "float32" else 1e-10
    np.testing.assert_allclose(query.matrix(found), v.T @ v, atol=atol)
    # the Euclidean norm of what is released is that of the matrix
    assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(v.T @ v), rel=1e-4)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("constant", [0.0, 0.5, 1.0])
@on_examples(60)
def test_products_keep_their_sensitivity(constant, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=radius))
    n_rows, d = pair[0].X.shape
    query = RowProducts(d, data.draw(st.sampled_from([1.0, 0.3, 1e-3])), constant)
    stated = query.sensitivity(adjacency, n_rows)
    values = [query.evaluate(admitted(rows, radius)) for rows in pair]
    assert all(np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK) for value in values)
    assert np.linalg.norm(values[0] - values[1]) <= stated.l2 * (1 + FLOAT_SLACK)


@every_adjacency
@pytest.mark.parametrize("constant", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_products_attain_their_sensitivity(adjacency, constant, is_sparse):
    # unit rows with the inner product -constant^2
    cosine = -(constant**2)
    X = np.array([[1.0, 0.0, 0.0], [cosine, math.sqrt(1 - cosine**2), 0.0]])
    null = np.array([False, adjacency == "zero-out"])
    query = RowProducts(3, 1.0, constant)
    made = sparse.csr_array if is_sparse else np.asarray
    one, other = (
        query.evaluate(admitted(Rows(made(7 * X[[i]]), np.zeros(1, int), null[[i]])))
        for i in (0, 1)
    )
    expected = (1 + constant**2) * (1.0 if adjacency == "zero-out" else math.sqrt(2.0))
    assert np.linalg.norm(one - other) == pytest.approx(expected, rel=1e-9)
    assert query.sensitivity(adjacency, 1).l2 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_group_counts_as_one_row(is_sparse):
    X = np.random.default_rng(0).normal(size=(40, 3))
    weight = np.repeat([0.25, 1.0], [20, 20])
    query = RowProducts(3, 1.0, 0.5)
    rows = Rows(sparse.csr_array(X) if is_sparse else X, np.zeros(40, int), np.zeros(40, bool))
    found = query.matrix(query.evaluate(admitted(rows, 9.0, weight=weight)))
    v = np.column_stack([X / 9.0, np.full(40, 0.5)])
    np.testing.assert_allclose(found, (v * weight[:, None]).T @ v, atol=1e-12)


# Whole fits: the claim is kept, and the noise is what the ledger says.


@every_adjacency
@pytest.mark.parametrize(
    "model",
    [
        DPCovariance(data_norm=2.0),
        DPPCA(bounds=(-1, 1)),
        DPPCA(),
        DPCovariance(data_norm=2.0, assume_centered=True),
    ],
    ids=str,
)
def test_fits_keep_their_claim(model, adjacency):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    X[0] = [1e6, 0, 0]
    other = X.copy()
    other[0] = [0, 1e6, 0] if adjacency == "replace-one" else np.nan
    model = clone(model).set_params(adjacency=adjacency)
    result = trace_privacy(model, X=X, X_neighbour=other, n_draws=0)
    assert result.passed


def test_noise_has_the_stated_deviation():
    X = np.array([[0.6, -0.2], [0.1, 0.6], [-0.4, 0.4], [-0.3, -0.6]] * 50)
    truth = EmpiricalCovariance().fit(X).covariance_
    errors = []
    for _ in range(150):
        # far from any projection
        model = quiet(DPCovariance(epsilon=20.0, data_norm=1.0), X)
        errors.append((model.covariance_ - truth) / model.noise_std_)
    deviations = np.std(errors, axis=0)
    # a standard deviation errs by one in 17
    assert (np.abs(deviations - 1) < 0.25).all()
    assert (np.abs(np.mean(errors, axis=0)) < 0.4).all()


def test_the_budget_is_spent_and_the_units_cost_little():
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    model = DPCovariance().fit(X)
    assert 0.999 < model.privacy_spent_[0] <= 1.0
    assert privacy_spent(model)[0] <= 1.0
    *search, products = model.ledger_.releases
    assert sum(release.noise.mu**2 * release.count for release in search) < products.noise.mu**2 / 9
    plan = model.plan(20_000, 4)
    assert [r.query for r in plan.ledger.releases] == [r.query for r in model.ledger_.releases]


# Without noise these are the moments of scikit-learn.

ROWS = np.random.default_rng(1).normal(size=(3000, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5]) + [
    9,
    0,
    0,
    1,
]
FITS = {
    "ball": {"data_norm": 40.0},
    "box": {"bounds": ([-30] * 4, [40, 30, 30, 30])},
    "nothing": {},
}


@pytest.mark.parametrize("given", FITS.values(), ids=FITS)
def test_with_next_to_no_noise_moments_are_those_of_the_rows(given):
    model = quiet(DPCovariance(**PLENTY, **given), ROWS)
    truth = EmpiricalCovariance().fit(ROWS)
    np.testing.assert_allclose(model.covariance_, truth.covariance_, atol=0.02)
    np.testing.assert_allclose(model.location_, truth.location_, atol=0.02)
    np.testing.assert_allclose(model.get_precision(), truth.precision_, atol=0.05)
    np.testing.assert_allclose(model.mahalanobis(ROWS), truth.mahalanobis(ROWS), rtol=0.1)
    assert model.score(ROWS) == pytest.approx(truth.score(ROWS), abs=0.01)
    assert model.error_norm(truth.covariance_) < 1e-3
    twin = model.to_sklearn()
    np.testing.assert_allclose(twin.mahalanobis(ROWS), model.mahalanobis(ROWS))
    pca, plain = quiet(DPPCA(2, **PLENTY, **given), ROWS), PCA(2).fit(ROWS)
    signs = np.sign((pca.components_ * plain.components_).sum(axis=1))
    np.testing.assert_allclose(pca.components_, plain.components_ * signs[:, None], atol=0.01)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_",
                 "noise_variance_", "mean_"):  # fmt: skip
        np.testing.assert_allclose(getattr(pca, name), getattr(plain, name), rtol=0.02, atol=0.02)
    made = pca.transform(ROWS)
    np.testing.assert_allclose(pca.to_sklearn().transform(ROWS), made)
    np.testing.assert_allclose(made @ pca.components_ + pca.mean_, pca.inverse_transform(made))
    assert list(pca.get_feature_names_out()) == ["dppca0", "dppca1"]


def test_without_a_mean_moments_are_those_around_the_origin():
    model = quiet(DPCovariance(**PLENTY, data_norm=40.0, assume_centered=True), ROWS)
    np.testing.assert_allclose(model.covariance_, ROWS.T @ ROWS / len(ROWS), atol=0.02)
    assert not model.location_.any()


def test_components_may_be_a_share_of_the_variance():
    for share, expected in ((0.5, 1), (0.9, 2), (0.97, 3), (0.999999, 4)):
        pca = quiet(DPPCA(share, **PLENTY, data_norm=40.0), ROWS)
        plain = PCA(share, svd_solver="full").fit(ROWS)
        assert pca.n_components_ == plain.n_components_ == expected
        assert pca.explained_variance_ratio_.sum() > share


@pytest.mark.parametrize("given", [{"data_norm": 20.0}, {}], ids=["ball", "nothing"])
def test_sparse_rows_and_streams_give_what_dense_ones_do(given, monkeypatch):
    X = ROWS * (np.random.default_rng(0).random(ROWS.shape) < 0.4)
    csr = quiet(DPPCA(random_state=0, **given), sparse.csr_array(X))
    if given:
        dense = quiet(DPPCA(random_state=0, **given), X)
        np.testing.assert_allclose(csr.components_, dense.components_, atol=1e-7)
        shorten_chunks(monkeypatch, 100)
        read = stream_chunks(lambda: iter(X[i : i + 700] for i in range(0, 3000, 700)))
        streamed = quiet(DPPCA(random_state=0, **given), read)
        np.testing.assert_allclose(streamed.components_, dense.components_, atol=1e-7)
    assert csr.transform(sparse.csr_array(X)).shape == (3000, 4)


def test_groups_count_their_means_of_products():
    X = np.repeat(ROWS[:500], np.arange(500) % 4 + 1, axis=0)
    groups = np.repeat(np.arange(500), np.arange(500) % 4 + 1)
    model = quiet(DPCovariance(**PLENTY, data_norm=40.0), X, groups=groups)
    truth = EmpiricalCovariance().fit(ROWS[:500]).covariance_
    np.testing.assert_allclose(model.covariance_, truth, atol=0.02)
    assert model.ledger_.unit == "group"


# Bad input, and what is doubtful.


def test_covariances_are_positive_however_large_the_noise():
    for rows in (ROWS[:20], np.ones((50, 3)), np.zeros((50, 3)), 1e300 * ROWS[:50], ROWS[:3, :1]):
        for given in ({}, {"data_norm": 1.0}, {"bounds": (-1, 1)}):
            model = quiet(DPCovariance(**given), rows)
            values = np.linalg.eigvalsh(model.covariance_)
            assert np.isfinite(values).all()
            assert values.min() >= -1e-9 * values.max()
            pca = quiet(DPPCA(**given), rows)
            d = rows.shape[1]
            np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(d), atol=1e-9)


def test_constant_and_dependent_columns_have_little_variance():
    X = np.column_stack([ROWS, np.full(3000, 7.0), ROWS[:, 0]])
    model = quiet(DPCovariance(epsilon=1e4), X)
    # of a constant column nothing is seen: its unit is 1
    assert model.covariance_[4, 4] < 0.05
    assert model.location_[4] == pytest.approx(7, abs=0.1)
    assert model.covariance_[0, 5] == pytest.approx(model.covariance_[0, 0], rel=0.02)


def test_units_of_columns_may_be_far_apart():
    X = ROWS * [1e6, 1.0, 1e-6, 1.0]
    model = DPCovariance(epsilon=4.0).fit(np.tile(X, (5, 1)))
    truth = EmpiricalCovariance().fit(X).covariance_
    np.testing.assert_allclose(model.covariance_.diagonal(), truth.diagonal(), rtol=0.2)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (DPPCA(n_components=5), "n_components must be at most the number of features, 4; got 5"),
        (DPCovariance(bounds=(1, -1)), "bounds"),
        (DPCovariance(bounds=(0, 1), assume_centered=True), "symmetric around 0"),
        (DPCovariance(delta=0.0), "delta must be greater than 0"),
        (DPCovariance(data_norm=-1.0), "data_norm"),
        (DPPCA(n_components=1.5), "n_components"),
        (DPPCA(n_components=0), "n_components"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_anything_is_released(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(ROWS)
    assert not hasattr(model, "ledger_")


def test_sparse_rows_have_no_bounds():
    with pytest.raises(TypeError, match="bounds"):
        DPPCA(bounds=(0, 1)).fit(sparse.csr_array(ROWS))


def test_one_warning_says_what_is_doubtful():
    with pytest.warns(NoisyEstimateWarning, match="columns are less than the noise") as said:
        DPCovariance(epsilon=0.1, data_norm=1e3).fit(ROWS)
    assert len(said) == 1
    with pytest.warns(NoisyEstimateWarning, match="of the first 2 components") as said:
        DPPCA(2, epsilon=0.1, data_norm=1e3).fit(ROWS)
    assert len(said) == 1
    with pytest.warns(NoisyEstimateWarning, match="Give a public number for data_norm"):
        DPPCA(epsilon=0.5).fit(ROWS[:40])


def test_noise_level_is_about_the_largest_eigenvalue_of_noise():
    X = np.zeros((1000, 40))
    found = [quiet(DPPCA(data_norm=1.0), X) for _ in range(5)]
    for model in found:
        assert 0.7 < model.explained_variance_[0] / model.noise_level_ < 1.3
