# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Second moments that are released once, and clipped gradients in their geometry."""

import functools
import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, solvers
from skdp._rows.linear import regression_rows, unit_rows
from skdp.audit import trace_privacy
from skdp.io import stream_chunks
from skdp.privacy import gdp_mu
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.solvers import link, preconditioned
from skdp.solvers.gradient import ClippedGradient
from skdp.solvers.preconditioned import (
    GeometryPlan,
    PreconditionedFit,
    SecondMoments,
    estimated_spread,
    mapped_rows,
    within_ellipsoid,
)
from tests import _audit
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
    worst_pairs,
)
from tests._solvers import SQUARED_LOSS
from tests.streams._ways import assert_same_fit, chunked

EPSILON, DELTA = 2.0, 1e-5
LOGISTIC, SOFTMAX = (DPLogisticRegression(data_norm=1.0)._loss(n_classes) for n_classes in (2, 3))
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_kind = pytest.mark.parametrize("full", [True, False], ids=["products", "squares"])


def admitted(rows, intercept=0.0, radius=1.0):
    return rows_in_ball(rows.X, 2.0 * rows.codes - 1, rows.null, radius, intercept)


def unit_rows_of(rows, radius=1.0):
    """Return the rows in the unit ball that count, as an array."""
    X = as_dense(rows.X)
    X = X[np.isfinite(X).all(axis=1) & ~rows.null]
    largest = np.maximum(np.abs(X).max(axis=1, keepdims=True), radius)
    norms = np.linalg.norm(X / largest, axis=1, keepdims=True)
    return X / largest / np.maximum(norms, radius / largest)


# The second moments keep the sensitivity that they state, and attain it.


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_moments_are_those_of_the_definition(full, layout, intercept, monkeypatch):
    shorten_chunks(monkeypatch, 9)
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    query, unit = SecondMoments(5, full, counted=0.25), unit_rows_of(rows)
    found = query.evaluate(admitted(rows, intercept))
    assert found.shape == (query.size,)
    assert found[-1] == 0.25 * len(unit)
    np.testing.assert_array_equal(
        SecondMoments(5, full).evaluate(admitted(rows, intercept)), found[:-1]
    )
    total, products = query.matrices(found)
    atol = 1e-4 if layout == "float32" else 1e-10
    np.testing.assert_allclose(total, unit.sum(axis=0), atol=atol)
    expected = unit.T @ unit if full else (unit**2).sum(axis=0)
    np.testing.assert_allclose(products, expected, atol=atol)


@pytest.mark.covering
@every_adjacency
@every_kind
@on_examples(150)
def test_moments_keep_their_sensitivity(full, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=radius, layouts=LAYOUTS))
    n_rows, d = pair[0].X.shape
    query = SecondMoments(d, full, counted=data.draw(st.sampled_from([0.0, 0.125, 1.5, 4.0])))
    stated = query.sensitivity(adjacency, n_rows)
    values = [query.evaluate(admitted(rows, 0.3, radius)) for rows in pair]
    assert all(np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK) for value in values)
    assert np.linalg.norm(values[0] - values[1]) <= stated.l2 * (1 + FLOAT_SLACK)


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("layout", LAYOUTS)
def test_moments_shorten_rows_to_their_radius(full, layout, monkeypatch):
    shorten_chunks(monkeypatch, 9)
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    query, unit = SecondMoments(5, full, 0.25), unit_rows_of(rows)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 0.25)
    total, products = query.matrices(query.evaluate(admitted(rows, 0.7)))
    atol = 1e-4 if layout == "float32" else 1e-10
    np.testing.assert_allclose(total, unit.sum(axis=0), atol=atol)
    np.testing.assert_allclose(
        products, unit.T @ unit if full else (unit**2).sum(axis=0), atol=atol
    )


@pytest.mark.covering
@every_adjacency
@every_kind
@on_examples(60)
def test_moments_of_longer_rows_keep_their_sensitivity(full, adjacency, data):
    pair = data.draw(neighbours(adjacency, layouts=LAYOUTS))
    n_rows, d = pair[0].X.shape
    query = SecondMoments(d, full, data.draw(st.sampled_from([0.3, 1e-3])))
    one, other = (query.evaluate(admitted(rows, 0.3)) for rows in pair)
    assert np.linalg.norm(one - other) <= query.sensitivity(adjacency, n_rows).l2 * (
        1 + FLOAT_SLACK
    )


@pytest.mark.parametrize("n_features", [2, 3, 5])
@every_kind
def test_no_pair_of_rows_exceeds_the_sensitivity(full, n_features):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(400, n_features))
    X *= rng.uniform(0.5, 1.0, size=(400, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    products = (X[:, :, None] * X[:, None]).reshape(400, -1) if full else X**2
    phi = np.hstack([X, products])
    gaps = np.linalg.norm(phi[:, None] - phi, axis=2)
    query = SecondMoments(n_features, full)
    assert 0.93 * query.sensitivity("replace-one", 1).l2 <= gaps.max()
    assert gaps.max() <= query.sensitivity("replace-one", 1).l2
    assert np.linalg.norm(phi, axis=1).max() <= query.sensitivity("zero-out", 1).l2


@every_adjacency
@every_kind
@pytest.mark.parametrize("n_features", [2, 6])
def test_moments_attain_their_sensitivity(full, adjacency, n_features):
    # unit rows at 120 degrees, on both sides of the diagonal of two coordinates
    angles = np.deg2rad([105.0, -15.0])
    X = np.zeros((2, n_features))
    X[:, :2] = np.column_stack([np.cos(angles), np.sin(angles)])
    if adjacency == "zero-out" and not full:
        X[0] = np.eye(n_features)[0]
    null = np.array([False, adjacency == "zero-out"])
    query = SecondMoments(n_features, full)
    one, other = (
        query.evaluate(admitted(Rows(7 * X[[i]], np.zeros(1, int), null[[i]]))) for i in (0, 1)
    )
    reached = np.linalg.norm(one - other)
    assert reached == pytest.approx(query.sensitivity(adjacency, 1).l2, rel=1e-9)
    assert reached == pytest.approx(math.sqrt(2 if adjacency == "zero-out" else 4.5))


@every_adjacency
@every_kind
@pytest.mark.parametrize("counted", [0.125, 1.5, 4.0])
def test_a_row_beside_a_null_row_keeps_the_sensitivity(full, adjacency, counted):
    query = SecondMoments(2, full, counted=counted)
    X = 7 * np.eye(2)[[0]]
    one, other = (
        query.evaluate(admitted(Rows(X, np.zeros(1, int), np.array([null]))))
        for null in (False, True)
    )
    assert not other.any()
    reached, stated = np.linalg.norm(one), query.sensitivity(adjacency, 1).l2
    assert reached == pytest.approx(math.sqrt(2 + counted**2))
    # what a replaced row may move anyhow is free
    assert stated == pytest.approx(
        reached if adjacency == "zero-out" or counted > 2 else math.sqrt(4.5)
    )


# Mapped rows: what a gradient of them is, and that it is clipped where they are.


every_root = pytest.mark.parametrize("diagonal", [True, False], ids=["diagonal", "matrix"])


def geometry(diagonal, d=5, seed=0):
    """Return a center and a root: a diagonal or a matrix."""
    rng = np.random.default_rng(seed)
    if diagonal:
        return rng.normal(size=d) / 5, rng.uniform(0.1, 8.0, size=d)
    root = rng.normal(size=(d, d))
    return rng.normal(size=d) / 5, root @ root.T


@pytest.mark.covering
@pytest.mark.parametrize("layout", LAYOUTS)
@every_root
@pytest.mark.parametrize("loss", [LOGISTIC, SOFTMAX], ids=["one output", "three"])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("clip", [0.3, 1e9])
def test_gradients_of_mapped_rows_are_those_of_the_definition(
    layout, diagonal, loss, intercept, clip, monkeypatch
):
    shorten_chunks(monkeypatch, 9)
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    center, root = geometry(diagonal)
    if not intercept:
        center = 0 * center
    kept = np.isfinite(as_dense(rows.X)).all(axis=1) & ~rows.null
    moved = (unit_rows_of(rows) - center) @ (root if root.ndim == 2 else np.diag(root))
    if intercept:
        moved = np.column_stack([moved, np.full(len(moved), intercept)])
    rng = np.random.default_rng(1)
    shape = (moved.shape[1],) if loss.n_outputs == 1 else (3, moved.shape[1])
    coef = rng.normal(size=shape)
    target = loss.encode(rows.codes)
    residual = loss.residual(moved @ coef.T, target[kept]).reshape(len(moved), -1)
    gradients = (residual[:, :, None] * moved[:, None]).reshape(len(moved), -1)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    expected = (gradients * np.minimum(1, clip / np.maximum(norms, 1e-290))).sum(axis=0)
    private = rows_in_ball(rows.X, target, rows.null, intercept=0.1)
    atol = 1e-3 if layout == "float32" else 1e-6
    for within in (False, True):
        mapped = mapped_rows(private, center, root, intercept, within)
        found = ClippedGradient(coef, loss, clip).evaluate(mapped)
        np.testing.assert_allclose(found, expected, atol=atol)
    if layout in ("C", "read-only", "csr"):
        # no copy of the rows is made
        pairs = zip(mapped.chunks, private.chunks, strict=True)
        parts = [[getattr(chunk.X, "data", chunk.X) for chunk in pair] for pair in pairs]
        assert all(np.may_share_memory(one, other) for one, other in parts)


@pytest.mark.covering
@every_adjacency
@every_root
@pytest.mark.parametrize("sparse_rows", [True, False])
@on_examples(150)
def test_gradients_of_mapped_rows_keep_their_sensitivity(sparse_rows, diagonal, adjacency, data):
    layouts = LAYOUTS[5:] if sparse_rows else LAYOUTS[:5]
    pair = data.draw(neighbours(adjacency, layouts=layouts))
    n_rows, d = pair[0].X.shape
    center, root = geometry(diagonal, d, data.draw(st.integers(0, 9)))
    root = root * data.draw(st.sampled_from([1.0, 1e-6, 1e6]))
    intercept, clip = data.draw(st.sampled_from([0.3, 1.0])), data.draw(st.sampled_from([0.2, 5.0]))
    coef = np.random.default_rng(0).normal(size=d + 1) * data.draw(st.sampled_from([0.0, 1.0, 1e3]))
    columns = sparse_rows and diagonal
    slack = 2e-6 * np.linalg.norm(root * center) / intercept if columns else 0.0
    if within := not columns and (sparse_rows or data.draw(st.booleans())):
        whole = np.diag(root) if diagonal else root
        across = np.linalg.norm(whole, 2) * np.linalg.norm(center)
        slack = 2e-6 * (np.linalg.cond(whole) + 2 * across / intercept)
    query = ClippedGradient(coef, LOGISTIC, clip, slack)
    one, other = (
        query.evaluate(mapped_rows(admitted(rows, 0.1), center, root, intercept, within))
        for rows in pair
    )
    stated = query.sensitivity(adjacency, n_rows)
    assert np.linalg.norm(one - other) <= stated.l2 * (1 + FLOAT_SLACK)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_at_the_center_are_not_taken_for_shorter_than_they_are(container):
    # a norm from rounded differences may be 0 where the row is not: residuals know no bound then
    rng = np.random.default_rng(3)
    center, root = geometry(False)
    units = rng.choice([0.0, 2.0**-52, -(2.0**-52)], size=(200, 5))
    X = center * (1 + units)
    private = rows_in_ball(container(X), np.ones(200), np.zeros(200, bool), intercept=0.0)
    (chunk,) = mapped_rows(private, center, 1e6 * root, 0.0, within=True).chunks
    moved = (X.astype(np.longdouble) - center) @ (1e6 * root).astype(np.longdouble)
    exact = np.sqrt((moved * moved).sum(axis=1))
    assert (chunk.norm >= exact).all()
    assert (chunk.norm <= exact + 1e-4).all()


def test_large_fits_map_rows_within_products(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 4)) @ np.diag([1.0, 0.5, 0.3, 0.1]) + 0.2
    y = (X[:, 0] + X[:, 3] > 0).astype(int)
    public = {"data_norm": 2.0, "classes": [0, 1], "solver": "preconditioned"}
    model = DPLogisticRegression(epsilon=8.0, max_iter=5, random_state=0, **public)
    small = clone(model).fit(X, y)
    shorten_chunks(monkeypatch, 50)
    monkeypatch.setattr(preconditioned, "LARGE", 8 * X.size)
    large = clone(model).fit(X, y)
    np.testing.assert_allclose(large.coef_, small.coef_, atol=1e-4)
    gradient, other = (fitted.ledger_.releases[-1] for fitted in (large, small))
    # what rounding may add is paid for
    assert 1e-6 < gradient.stated_sensitivity / other.stated_sensitivity - 1 < 1e-3
    assert gradient.price.mu == pytest.approx(other.price.mu, rel=1e-12)
    assert_same_fit(model, (X, y), chunked(X, y))
    # 4 kB less, and they are not
    monkeypatch.setattr(preconditioned, "LARGE", 8 * X.size + 1)
    np.testing.assert_array_equal(clone(model).fit(X, y).coef_, small.coef_)


@every_adjacency
def test_products_of_sparse_rows_are_those_of_dense_ones(adjacency, monkeypatch):
    X, y = table(600)
    # a direction that is none of a column
    X = 0.7 * X + 0.5 * X[:, [1]]
    X[np.abs(X) < 0.02] = 0.0
    X[7], X[8] = 1e120, 0.0
    stored_X = sparse.csr_array(X)
    model = DPLogisticRegression(8.0, adjacency=adjacency, classes=[0, 1], data_norm=1.0)
    model.set_params(solver="preconditioned", max_iter=5, random_state=0)
    spreads, real = [], preconditioned.estimated_spread

    def seen(*args, **options):
        spreads.append(real(*args, **options))
        return spreads[-1]

    monkeypatch.setattr(preconditioned, "estimated_spread", seen)
    dense, stored = (clone(model).fit(rows, y) for rows in (X, stored_X))
    np.testing.assert_allclose(stored.coef_, dense.coef_, atol=1e-3)
    assert all(spread.turned for spread in spreads)
    (moments, gradient), (_, other) = stored.ledger_.releases, dense.ledger_.releases
    assert moments.query == "sum of rows and of their products, number of rows"
    # what rounding may add is paid for
    assert 1e-6 < gradient.stated_sensitivity / other.stated_sensitivity - 1 < 1e-3
    assert gradient.price.mu == pytest.approx(other.price.mu, rel=1e-12)
    # of many columns there are squares alone
    wide = sparse.csr_array(np.pad(X, [(0, 0), (0, 123)]))
    assert clone(model).fit(wide, y).ledger_.releases[0].query.endswith("squares, number of rows")
    assert_same_fit(model, (stored_X, y), chunked(stored_X, y))


def lifted(X, y):
    """Return rows of a regression in units, those longer than 1 scaled down with their targets."""
    return unit_rows(regression_rows(X, y), 0.5, 1.0, 0.1, 0.2, 0.7)


@pytest.mark.covering
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "float32"])
@every_root
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_rows_that_were_scaled_down_are_mapped_with_their_scale(
    layout, diagonal, intercept, monkeypatch
):
    shorten_chunks(monkeypatch, 9)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
    X[3] *= 1e5
    y[4] = np.nan
    center, root = geometry(diagonal)
    center = center if intercept else 0 * center
    s = np.minimum(1, 0.5 / np.linalg.norm(X, axis=1))[:, None]
    moved = s * ((X / 0.5 - center) @ (root if root.ndim == 2 else np.diag(root)))
    if intercept:
        moved = np.hstack([moved, s * intercept])
    coef = rng.normal(size=moved.shape[1])
    residual = moved @ coef - s[:, 0] * (y - 0.2) / 0.7
    gradients = np.delete(residual[:, None] * moved, 4, axis=0)
    for clip in (0.3, 1e9):
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        expected = (gradients * np.minimum(1, clip / norms)).sum(axis=0)
        mapped = mapped_rows(lifted(as_layout(X, layout), y), center, root, intercept, clip > 1)
        found = ClippedGradient(coef, SQUARED_LOSS, clip).evaluate(mapped)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.covering
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("solver", ["preconditioned", "accelerated"])
def test_regression_finds_what_least_squares_do(solver, container):
    X, _ = correlated(4000)
    target = 5.0 + X @ np.arange(12.0) + 0.3 * np.random.default_rng(0).normal(size=4000)
    target[0] = 1e9
    model = DPLpRegressor(20.0, 1e-5, data_norm=1.0, solver=solver, random_state=0)
    model.fit(container(X), target)
    errors = model.predict(X)[1:] - target[1:]
    score = 1 - errors.var() / target[1:].var()
    # steps that are blind to the shape of rows stop early
    assert score > 0.95 if solver == "preconditioned" else score > 0.5


def test_the_default_of_regression_is_in_a_geometry_where_there_is_signal():
    X, _ = correlated()
    found = {}
    for name, options in {
        "usual": {}, "fourth powers": {"p": 4}, "a norm": {"clipping_norm": 1.0},
        "little": {"epsilon": 0.001}, "pure": {"delta": 0.0},
    }.items():  # fmt: skip
        model = DPLpRegressor(data_norm=1.0, target_scale=1.0, random_state=0).set_params(**options)
        found[name] = {r.query[:11] for r in model.fit(X, X[:, 0]).ledger_.releases}
    assert [name for name, queries in found.items() if "sum of rows" in queries] == ["usual"]


def test_norms_of_sparse_mapped_rows_are_bounds():
    # rows that the shift nearly cancels
    rng = np.random.default_rng(0)
    center, scale = rng.uniform(0.1, 0.4, size=5), rng.uniform(1.0, 1e4, size=5)
    X = center * (1 + 1e-9 * rng.normal(size=(30, 1)))
    rows = Rows(sparse.csr_array(X), np.zeros(30, int), np.zeros(30, bool))
    (chunk,) = mapped_rows(admitted(rows), center, scale, 1e-3).chunks
    exact = np.hypot(np.linalg.norm((X - center) * scale, axis=1), 1e-3)
    assert (chunk.norm >= exact).all()


@pytest.mark.parametrize("layout", ["C", "csr"])
def test_streams_and_arrays_fit_the_same(layout):
    X, y = table(300)
    X = as_layout(X, layout)
    model = logistic(max_iter=4)
    stream = stream_chunks(lambda: ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)))
    for one, other in zip(fitted(model, X, y), fitted(model, *stream), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


# What is estimated from noisy moments.


@every_kind
def test_moments_without_noise_are_believed(full):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4)) @ rng.normal(size=(4, 4)) / 20 + [0.3, 0.0, 0.1, -0.2]
    rows = Rows(X, np.zeros(5000, int), np.zeros(5000, bool))
    query = SecondMoments(4, full)
    found = estimated_spread(query, query.evaluate(admitted(rows)), 5000, 1e-9, centered=True)
    unit = unit_rows_of(rows)
    covariance = np.cov(unit.T, bias=True)
    np.testing.assert_allclose(found.center, unit.mean(axis=0), atol=1e-9)
    expected = covariance if full else covariance.diagonal()
    np.testing.assert_allclose(found.matrix(found.variance), expected, rtol=0.02, atol=2e-4)


@every_kind
def test_moments_that_are_noise_leave_the_rows_as_they_are(full):
    query = SecondMoments(30, full)
    released = 1e3 * np.random.default_rng(0).normal(size=query.size)
    found = estimated_spread(query, released, 100, 1e3, centered=True)
    scale = np.ones(1) / np.sqrt(found.sure)
    assert np.linalg.norm(found.center) <= 0.5
    assert scale.max() <= 1.01 * scale.min()
    # rows are scaled by a diagonal then, and not multiplied by a matrix that has the same numbers
    root = found.matrix(scale)
    assert root.shape == (30,)
    np.testing.assert_array_equal(np.sort(root), np.sort(scale))


# Whole fits: the claim is kept, and the budget is spent on what is said.


def table(n_rows=2000, scale=0.02, seed=0):
    """Return rows whose label is a column of small variance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6)) * [0.3, 0.2, 0.1, 0.05, scale, 0.02] + [0.4, 0, 0, 0, 0, 0.1]
    return X, (X[:, 4] + 0.5 * scale * rng.normal(size=n_rows) > 0).astype(int)


def logistic(epsilon=EPSILON, estimator=DPLogisticRegression, **params):
    given = {"solver": "preconditioned", "classes": (0, 1), "random_state": 0, **params}
    return estimator(epsilon, DELTA, **{"data_norm": 1.0, **given})


def fitted(model, X, y):
    model = clone(model).fit(X, y)
    return model.coef_, model.intercept_


def fit_rows(model, rows):
    return clone(model).fit(rows.X, rows.labels())


MODELS = {
    "two classes": {},
    "three classes": {"classes": (0, 1, 2)},
    "hinge": {"estimator": DPHingeSVM},
    "no intercept": {"fit_intercept": False},
    "bounds": {"coef_bound": 0.5, "C": 0.1, "data_norm": 7.0},
    "large share": {"solver": solvers.Preconditioned(moments_share=0.4, intercept_scaling=2.0)},
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.mark.covering
@every_adjacency
@every_model
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_the_claim_is_kept_by_the_worst_pairs(name, adjacency, layout):
    model = logistic(adjacency=adjacency, max_iter=5, **MODELS[name])
    fit = functools.partial(fit_rows, model)
    pairs = worst_pairs(30, 3, len(model.classes), adjacency, model.data_norm)
    pairs = [[Rows(as_layout(r.X, layout), r.codes, r.null) for r in pair] for pair in pairs]
    measured = max(_audit.coupled_mu(fit, *pair) for pair in pairs)
    # a row that is replaced by its opposite has the same products
    assert 0.75 * gdp_mu(EPSILON, DELTA) <= measured <= gdp_mu(EPSILON, DELTA)


@pytest.mark.covering
@every_adjacency
@every_model
@on_examples(20)
def test_the_claim_is_kept_on_any_neighbours(name, adjacency, data):
    model = logistic(adjacency=adjacency, max_iter=4, **MODELS[name])
    radius, n_classes = model.data_norm, len(model.classes)
    pair = data.draw(neighbours(adjacency, n_classes=n_classes, radius=radius, finite=True))
    assert _audit.coupled_mu(functools.partial(fit_rows, model), *pair) <= gdp_mu(EPSILON, DELTA)


@every_adjacency
def test_a_public_trace_finds_nothing(adjacency):
    X, y = table(60)
    X[7] = [3, 0, 0, 0, 0, 0]
    other = X.copy()
    other[7] = np.nan if adjacency == "zero-out" else -X[7]
    model = logistic(adjacency=adjacency, max_iter=5, random_state=None)
    assert trace_privacy(model, X=X, X_neighbour=other, y=y).passed


def test_the_ledger_has_the_moments_and_the_steps():
    model = logistic(max_iter=7).fit(*table(200))
    moments, steps = model.ledger_.releases
    assert (moments.count, moments.size, steps.count, steps.size) == (1, 28, 7, 7)
    total = gdp_mu(EPSILON, DELTA)
    assert moments.noise.mu**2 == pytest.approx(0.15 * total**2, rel=1e-6)
    assert moments.noise.mu**2 + 7 * steps.noise.mu**2 == pytest.approx(total**2, rel=1e-6)
    assert model.n_iter_ == 7
    assert model.privacy_spent_[0] <= EPSILON


# Fewer steps, where released moments say that these are enough.


def round_rows(n_rows, n_features, spread=None):
    """Return rows of a public norm of 1 that are as long along all directions, and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)) * (1.0 if spread is None else spread)
    y = X.sum(axis=1) + rng.logistic(size=n_rows) > 0
    return X / np.sqrt(2 * (X**2).sum(axis=1).mean()), y.astype(int)


def faint_rows():
    X = sparse.random_array((4000, 500), density=0.02, format="csr", rng=0)
    return X / 3, (X.sum(axis=1) > 5).astype(int)


FEWER = {
    # rows and labels, parameters, steps
    "round": (lambda: round_rows(20_000, 5), {}, 16),
    "faint columns": (faint_rows, {"epsilon": 0.2}, 12),
    "narrow directions": (lambda: round_rows(20_000, 5, [1, 0.3, 0.1, 0.1, 0.03]), {}, 24),
    "zeros that are not stored": (
        lambda: (sparse.csr_array((made := round_rows(20_000, 5))[0]), made[1]), {}, 16,
    ),
    "many columns": (
        lambda: (sparse.csr_array((made := round_rows(9000, 130))[0]), made[1]),
        {"epsilon": 9.0}, 40,
    ),
    "round, and little signal": (lambda: round_rows(20_000, 5), {"epsilon": 0.03}, 16),
    "three classes": (lambda: round_rows(20_000, 5), {"classes": (0, 1, 2)}, 40),
    "a wish": (lambda: round_rows(20_000, 5), {"max_iter": 23}, 23),
}  # fmt: skip


@pytest.mark.parametrize("name", FEWER)
def test_the_number_of_steps_follows_from_the_moments(name):
    load, options, expected = FEWER[name]
    X, y = load()
    model = logistic(**{"epsilon": 1.0, "solver": "preconditioned", **options}).fit(X, y)
    moments, steps = model.ledger_.releases
    assert np.array_equal(np.ravel(model.n_iter_), [expected])
    assert steps.count == expected
    # whatever their number, all of them have one price
    total = gdp_mu(model.epsilon, DELTA) ** 2
    assert moments.noise.mu**2 + expected * steps.noise.mu**2 == pytest.approx(total, rel=1e-6)
    assert model.privacy_spent_[0] <= model.epsilon


def test_the_hinge_has_one_number_of_steps():
    X, y = round_rows(20_000, 5)
    assert logistic(1.0, DPHingeSVM).fit(X, y).n_iter_ == 40


@pytest.mark.parametrize("spread", [np.ones(10), [1, 0.3, 0.1, 0.1, 0.03]])
def test_fewer_steps_are_as_good(spread):
    X, y = round_rows(30_000, len(spread), spread)
    train, rest = slice(20_000), slice(20_000, None)
    found = {}
    for n_steps in (None, 40):
        found[n_steps] = []
        for seed in range(3):
            model = logistic(1.0, max_iter=n_steps, random_state=seed).fit(X[train], y[train])
            loss = log_loss(y[rest], model.predict_proba(X[rest]))
            found[n_steps].append((model.score(X[rest], y[rest]), -loss))
    np.testing.assert_allclose(found[None], found[40], atol=0.006)


@pytest.mark.parametrize(("epsilon", "is_loud"), [(0.2, True), (5.0, False)])
def test_steps_are_as_long_as_curvature_and_noise_allow(epsilon, is_loud, monkeypatch):
    X, y = round_rows(2000, 5, [1, 0.3, 0.1, 0.1, 0.03])
    plans, real = [], preconditioned.plan_geometry
    monkeypatch.setattr(
        preconditioned, "plan_geometry", lambda *a, **k: plans.append(real(*a, **k)) or plans[-1]
    )
    for n_steps in (None, 24):
        logistic(epsilon, max_iter=n_steps, C=10.0).fit(X, y)
    own, equal = plans
    np.testing.assert_array_equal(own.root, equal.root)
    np.testing.assert_allclose(own.scale, own.speed * equal.scale)
    np.testing.assert_allclose(own.held, own.speed**2 * equal.held)
    lengths = own.step_size * own.speed**2
    # the logistic loss bends by at most a quarter
    assert np.all(lengths * own.variance < 4 * (1 + 1e-9))
    if is_loud:
        # noise allows no longer ones where rows are short
        assert np.max(lengths) == pytest.approx(1.1 * equal.step_size)
    else:
        assert np.max(lengths * own.variance) == pytest.approx(4, rel=0.1)
        assert np.max(lengths) > 1.5 * np.min(lengths)


def rows_of_classes(n_rows, shares, far=1.0):
    """Return rows of classes with these shares, of which the last lies some times as far out."""
    rng = np.random.default_rng(0)
    y = rng.choice(len(shares), size=n_rows, p=shares)
    centers = rng.normal(size=(len(shares), 8))
    centers[-1] *= far
    X = centers[y] + rng.normal(size=(n_rows, 8))
    return X / np.linalg.norm(X, axis=1).max(), y


SHARES = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"coef_bound": 50.0}], ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 100.0])
def test_steps_of_classes_are_as_long_as_their_shares_and_noise_allow(
    epsilon, options, monkeypatch
):
    found, real = [], preconditioned.GeometryPlan.lengths

    def lengths(plan, gradient, loss):
        found.append((plan, real(plan, gradient, loss)))
        return found[-1][1]

    monkeypatch.setattr(preconditioned.GeometryPlan, "lengths", lengths)
    X, y = rows_of_classes(20_000, SHARES)
    logistic(epsilon, classes=range(len(SHARES)), **options).fit(X, y)
    ((plan, times),) = found
    if options or epsilon < 1:
        assert np.all(times == 1.0)
        return
    assert np.all((times >= 1) & (times <= plan.longest))
    assert plan.adaptive
    if epsilon < 10:
        assert np.max(times) == plan.longest
    else:
        np.testing.assert_allclose(times[:, 0], 0.5 / np.maximum(SHARES, 1 / 6), rtol=0.1)


@pytest.mark.full
def test_many_classes_get_as_far_as_with_four_times_the_steps(monkeypatch):
    X, y = rows_of_classes(20_000, np.full(16, 1 / 16))
    losses = {}
    for n_steps in (40, 160):
        model = logistic(20.0, classes=range(16), max_iter=n_steps).fit(X, y)
        losses[n_steps] = log_loss(y, model.predict_proba(X))
    assert losses[40] < losses[160] + 0.005
    monkeypatch.setattr(preconditioned.GeometryPlan, "lengths", lambda *_: 1.0)
    model = logistic(20.0, classes=range(16)).fit(X, y)
    assert losses[40] < log_loss(y, model.predict_proba(X)) - 0.02


@every_adjacency
def test_a_trace_of_fewer_steps_finds_nothing(adjacency):
    X, y = round_rows(60, 2)
    X[7] = [3, 0]
    other = X.copy()
    other[7] = np.nan if adjacency == "zero-out" else -X[7]
    options = {"epsilon": 400.0, "solver": "preconditioned", "adjacency": adjacency}
    model = logistic(**options, random_state=None)
    trace = trace_privacy(model, X=X, X_neighbour=other, y=y)
    assert trace.passed
    assert logistic(**options).fit(X, y).n_iter_ == 16


# What it is for.


def test_directions_of_small_variance_are_found():
    X, y = table(20_000, 0.002)
    scores = {
        word: logistic(1.0, solver=word).fit(X, y).score(X, y)
        for word in ("accelerated", "preconditioned")
    }
    assert scores["preconditioned"] > scores["accelerated"] + 0.1
    assert scores["preconditioned"] > 0.84


@pytest.mark.covering
@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_much_budget_it_is_the_fit_without_noise(layout, n_classes):
    X, y = table(4000)
    if n_classes == 3:
        y = y + (X[:, 0] > 0.4)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    model = logistic(1e4, classes=range(n_classes), max_iter=300)
    model.fit(as_layout(X, layout), y)
    reference = LogisticRegression(C=1e6, max_iter=5000).fit(X, y)
    assert np.mean(model.predict(X) == reference.predict(X)) > 0.97
    assert model.score(X, y) > reference.score(X, y) - 0.01


@pytest.mark.covering
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("bound", [10.0, 50.0])
def test_with_much_budget_it_is_the_minimum_within_a_bound(bound, fit_intercept, estimator):
    X, y = table(1000)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    signs = 2 * y - 1

    def value(w):
        short = -signs * (X @ w[:6] + w[6:].sum())
        loss = np.logaddexp(0, short) if estimator is DPLogisticRegression else 1 + short
        return np.maximum(loss, 0).mean()

    def room(w):
        # the constant feature is a tenth
        return bound**2 - w[:6] @ w[:6] - 100 * w[6:] @ w[6:]

    start = 0.1 * np.random.default_rng(0).normal(size=6 + fit_intercept)
    least = minimize(value, start, constraints=[{"type": "ineq", "fun": room}], method="SLSQP")
    model = logistic(1e5, estimator, coef_bound=bound, fit_intercept=fit_intercept).fit(X, y)
    found = np.append(model.coef_[0], model.intercept_ if fit_intercept else [])
    assert room(found) > -1e-6 * bound**2
    # a point that is merely shortened is off by up to 0.0128
    assert value(found) < least.fun + 2e-4


@pytest.mark.parametrize("seed", range(6))
def test_a_bound_moves_coefficients_to_the_nearest_point(seed):
    # the edge is reached, at right angles: nothing else within an ellipsoid is nearest
    rng = np.random.default_rng(seed)
    shape = (7,) if seed % 2 else (3, 7)
    square, pull = 10.0 ** rng.uniform(-4, 3, 7), 10.0 ** rng.uniform(-2, 2) * rng.normal(size=7)
    square[seed], far = 0.0, 1e3 * rng.normal(size=shape)
    nearest = within_ellipsoid(far, square, pull, 0.5)
    image = nearest * square + np.multiply.outer(nearest @ pull, pull)
    assert np.vdot(nearest, image) == pytest.approx(0.25, rel=1e-12)
    weight = np.vdot(image, far - nearest) / np.vdot(image, image)
    assert weight > 0
    np.testing.assert_allclose(far - nearest, weight * image, atol=1e-9 * np.linalg.norm(far))
    np.testing.assert_array_equal(within_ellipsoid(nearest / 2, square, pull, 0.5), nearest / 2)


# The rate of the hinge: no row is at its kink, and nearly all of them cancel.


def cancelling(n_rows, length, n_directions, n_features=8):
    """Return rows of length 1 whose sum has a given length."""
    pairs = (n_rows - 200) // 2
    directions = np.zeros((pairs, n_features))
    shape = (pairs, n_directions)
    directions[:, :n_directions] = np.random.default_rng(0).normal(size=shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rest = np.zeros((200, n_features))
    rest[:, 0] = length / 200
    return np.vstack([rest, directions, -directions])


def excess_of_hinge(n_rows, strength, seeds, n_directions=8, n_features=8):
    """Return the mean excess of the sum of losses, in units of sqrt(p) / mu."""
    length = strength * math.sqrt(n_features) / gdp_mu(1.0, DELTA)
    X = cancelling(n_rows, length, n_directions)
    model = logistic(1.0, DPHingeSVM, solver="auto", coef_bound=1.0, fit_intercept=False)
    fits = (clone(model).set_params(random_state=s).fit(X, np.ones(n_rows, int)) for s in seeds)
    return np.mean([strength * (1 - fit.coef_[0, 0]) for fit in fits])


def test_the_error_of_the_hinge_does_not_grow_with_the_rows():
    # 9 without a fit; steps for a curvature of 4 leave 8.4
    assert excess_of_hinge(32_000, 9.0, range(2), n_directions=1) < 4.0


@pytest.mark.full
@pytest.mark.parametrize(("n_directions", "bound"), [(8, 1.5), (1, 3.0)])
def test_the_error_of_the_hinge_keeps_its_rate(n_directions, bound):
    # the worst of three strengths; steps for a curvature of 4 leave 5.5 and 8.6 at 64,000 rows
    worst = [
        max(excess_of_hinge(n_rows, strength, range(4), n_directions) for strength in (1, 3, 9))
        for n_rows in (16_000, 64_000)
    ]
    assert max(worst) < bound
    assert worst[1] < 1.5 * worst[0]


def test_scales_and_offsets_of_the_rows_are_undone():
    # a table in other units, and moved within the ball
    X, y = table(20_000)
    model = logistic(1.0)
    plain = clone(model).fit(X, y).score(X, y)
    moved = X + [0.0, 0.5, 0.0, 0.0, 0.0, 0.0]
    assert clone(model).fit(moved, y).score(moved, y) > plain - 0.02
    units = model.set_params(data_norm=1e6).fit(1e6 * X, y).score(1e6 * X, y)
    assert units == pytest.approx(plain, abs=1e-6)


# Probabilities: most of what clipping does to the link is undone.


def without_link(model):
    bare = clone(model)
    bare.__dict__.update(model.__dict__)
    bare._link = None
    return bare


@pytest.mark.parametrize("layout", ["C", "csr", "float32"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_most_probable_class_is_the_predicted_one(layout, n_classes):
    X, y = table(600)
    y = y + (X[:, 0] > 0.4) * (n_classes - 2)
    model = logistic(1.0, classes=range(n_classes)).fit(as_layout(X, layout), y)
    rows = as_layout(np.vstack([X, 3 * X, np.full((1, 6), 1e30)]), layout)
    proba = model.predict_proba(rows)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(rows))
    assert (proba.max(axis=1) <= without_link(model).predict_proba(rows).max(axis=1) + 1e-12).all()


def test_rows_of_any_length_have_probabilities():
    X, y = table(200)
    model = logistic().fit(X, y)
    for rows in (np.full((2, 6), 1e300), np.zeros((2, 6)), np.full((2, 6), 1e-310)):
        assert np.isfinite(model.predict_proba(rows)).all()
        assert np.isfinite(model.predict_log_proba(sparse.csr_array(rows))).all()


def test_gradients_that_nothing_clips_leave_the_link_alone():
    X, y = table(2000)
    model = logistic(1e4).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), without_link(model).predict_proba(X))


def test_rows_are_ordered_by_probability_as_by_score():
    X, y = table(500)
    model = logistic(0.5).fit(X, y)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(model.predict_proba(X)[order, 1]) >= 0).all()
    # and clipping was felt
    assert np.abs(model.predict_proba(X) - without_link(model).predict_proba(X)).max() > 0.01


def test_another_solver_forgets_the_link():
    X, y = table(200)
    model = logistic(1.0).fit(X, y)
    assert model._link is not None
    model.set_params(solver="accelerated", epsilon=8.0).fit(X, y)
    expected = 1 / (1 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected)


@pytest.mark.parametrize("solver", ["accelerated", "gd"])
def test_gradients_that_noise_drowns_have_the_link_of_their_clipping(solver):
    X, y = table(300)
    drowned = logistic(0.1, solver=solver, max_iter=16).fit(X, y)
    plain = without_link(drowned).predict_proba(X)
    assert np.abs(drowned.predict_proba(X) - plain).max() > 0.01
    # nothing is clipped by a norm that no gradient reaches
    kind = solvers.GD if solver == "gd" else solvers.Accelerated
    free = logistic(0.1, solver=kind(clipping_norm=2.0)).fit(X, y)
    np.testing.assert_allclose(free.predict_proba(X), without_link(free).predict_proba(X))
    assert logistic(4.0, solver=solver).fit(X, y)._link is None
    assert logistic(0.1, solver=solver, classes=(0, 1, 2)).fit(X, y)._link is None


@pytest.mark.parametrize("solver", ["accelerated", "gd"])
@pytest.mark.parametrize(
    ("n_classes", "epsilon", "most"),
    # with signal a part of the ratio
    [(2, 0.15, 2.0), (2, 0.5, 7.11 / 3), (3, 0.1, 0.5), (3, 0.3, 2.57 / 2)],
)
def test_odds_that_noise_drowns_are_no_longer_than_that(n_classes, epsilon, most, solver):
    # gradients of null rows are those of the intercept alone
    X, y = np.zeros((400, 16)), np.arange(400) % 2
    given = {"solver": solver, "fit_intercept": False, "classes": range(n_classes)}
    coef = [logistic(epsilon, random_state=seed, **given).fit(X, y).coef_ for seed in range(20)]
    if n_classes > 2:
        # classes are centered
        coef = np.array(coef) * math.sqrt(n_classes / (n_classes - 1))
    assert 0.85 * most < np.std(coef) < 1.05 * most
    # a bound that is closer is the smaller one
    near = logistic(0.15, solver=solver, coef_bound=0.1).fit(X, y)
    assert np.linalg.norm(near.coef_) <= 0.1


# Log-odds of which the noise is known.


@pytest.mark.parametrize(("n_steps", "n_skipped", "momentum"), [(40, 20, 0.8), (16, 10, 0.7)])
def test_the_noise_of_the_average_is_that_of_steps_along_noise(n_steps, n_skipped, momentum):
    d, rng = 30_000, np.random.default_rng(0)
    plan = plan_of(
        np.ones(d), held=np.repeat([0.0, 0.02, 0.3], d // 3), n_steps=n_steps, n_skipped=n_skipped,
        momentum=momentum, step_size=1.7, noise=0.4,
    )  # fmt: skip
    average = descended(plan, lambda _: plan.noise * rng.normal(size=d), (d,))
    found = average.reshape(3, -1).std(axis=1)
    np.testing.assert_allclose(found, plan.deviation[:: d // 3], rtol=0.03)
    # of directions that have a length of step each
    held, speed = np.array([0.0, 0.02, 0.3]), np.array([0.5, 1.0, 3.0])
    plan = replace(
        plan, scale=speed, held=speed**2 * held, speed=speed, directions=rotation(3, rng)
    )
    shape = (d // 3, 3)
    average = descended(plan, lambda _: plan.noise * rng.normal(size=shape), shape)
    found = (average @ plan.directions).std(axis=0)
    np.testing.assert_allclose(found, plan.deviation, rtol=0.03)


def descended(plan, gradient, shape, intercept=0.0, radius=None):
    """Return the average of the steps of a plan along a function of the coefficients."""
    problem = SimpleNamespace(
        shape=shape, n_rows=10, pointwise=LOGISTIC, intercept=intercept, radius=radius
    )
    curator = SimpleNamespace(
        prepay=lambda *_: None, release=lambda query, _: 10 * gradient(query.coef)
    )
    fit = SimpleNamespace(problem=problem, mu=1.0)
    return PreconditionedFit._descend(fit, curator, plan)[0]


def rotation(d, rng):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


@pytest.mark.parametrize(
    ("intercept", "radius", "strength"), [(0, None, 0.02), (0, 0.7, 0), (0.5, 0.7, 0)]
)
def test_own_lengths_of_step_end_in_the_same_minimum(intercept, radius, strength):
    # a quadratic whose curvatures differ by a factor of 1,000: 24 equal steps do not reach it
    rng = np.random.default_rng(0)
    curvature, scale = np.array([1.0, 0.1, 0.01, 0.001]), np.array([0.2, 2.0, 0.5, 1.0])
    basis, speed = rotation(4, rng), curvature**-0.5
    plan = plan_of(
        speed * scale, held=strength * speed**2, n_steps=24, n_skipped=15, momentum=0.3,
        step_size=1.0, noise=0.0, speed=speed,
    )  # fmt: skip
    plan = replace(
        plan, directions=basis, root=(basis * scale) @ basis.T, center=rng.normal(size=4),
        intercept=0.8,
    )  # fmt: skip
    n_coefs = 4 + bool(intercept)
    bent = np.eye(n_coefs)
    bent[:4, :4] = (basis * curvature) @ basis.T
    away, ridge = rng.normal(size=n_coefs), np.diag(np.repeat([strength, 0], [4, n_coefs - 4]))

    def value(w):
        return (w - away) @ bent @ (w - away) / 2 + w @ ridge @ w / 2

    def length(w):
        return np.linalg.norm(plan.original(w, intercept))

    found = descended(plan, lambda w: bent @ (w - away), (n_coefs,), intercept, radius)
    room = [{"type": "ineq", "fun": lambda w: radius - length(w)}] if radius else []
    least = minimize(value, found / 2, constraints=room, method="SLSQP", tol=1e-12)
    assert radius is None or length(found) <= radius * (1 + 1e-9) < length(away)
    assert value(found) < least.fun + 1e-5
    equal = replace(plan, speed=np.ones(4), scale=scale, held=plan.held / speed**2)
    found = descended(equal, lambda w: bent @ (w - away), (n_coefs,), intercept, radius)
    assert value(found) > least.fun + 1e-4


def plan_of(scale, **options):
    """Return the plan of plain rows."""
    usual = {
        "center": np.zeros(len(scale)), "root": scale, "directions": None, "intercept": 0.0,
        "length": 1.0, "adaptive": False, "slack": 0.0, "within": False,
    }  # fmt: skip
    return GeometryPlan(scale=scale, **usual, **options)


def bags(n_rows, n_columns, n_classes=2, seed=0):
    """Return rows of words of falling frequency, of length 1, and noisy labels."""
    rng = np.random.default_rng(seed)
    often = np.arange(1, n_columns + 1) ** -1.1
    number = 5 + rng.poisson(25, size=n_rows)
    columns = rng.choice(n_columns, size=number.sum(), p=often / often.sum())
    rows = np.repeat(np.arange(n_rows), number)
    X = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_rows, n_columns))
    X.data[:] = 1.0
    X = sparse.csr_array(sparse.diags_array(1 / np.sqrt(X.sum(axis=1))) @ X)
    scores = 2 * (X @ rng.normal(size=(n_columns, n_classes)))
    scores += rng.gumbel(size=scores.shape) - scores.mean(axis=0)
    return X, scores.argmax(axis=1)


def test_odds_of_sparse_rows_are_shortened_and_no_decision_changes(monkeypatch):
    X, y = bags(2000, 500)
    short = logistic(0.3).fit(X, y)
    real = preconditioned.plan_geometry
    monkeypatch.setattr(
        preconditioned, "plan_geometry", lambda *a, **k: replace(real(*a, **k), kept=1.0)
    )
    long = logistic(0.3).fit(X, y)
    ratio = short.coef_[0, 0] / long.coef_[0, 0]
    assert 0.2 < ratio < 0.9
    np.testing.assert_allclose(short.coef_, ratio * long.coef_)
    np.testing.assert_allclose(short.intercept_, ratio * long.intercept_)
    # dense rows have their directions, and no such number
    dense = logistic(0.3).fit(X.toarray(), y)
    monkeypatch.undo()
    np.testing.assert_array_equal(logistic(0.3).fit(X.toarray(), y).coef_, dense.coef_)


@pytest.mark.parametrize("center", [-1.5, 0.3])
@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_gradients_say_how_far_odds_are_from_those_of_labels(kept, center):
    # rows with one entry along coefficients that are too long, and off the center of the labels
    n, length, rng = 200_000, 3.0, np.random.default_rng(0)
    u, w, constant, moved = rng.normal(size=n), 1.5, 0.8, 0.4
    odds = center + kept * w * u
    clipped = [np.log(np.maximum(length * expit(side), 1)) for side in (-odds, odds)]
    y = rng.random(n) < expit(odds + 0.7 * (clipped[0] - clipped[1]))
    proba = expit(moved + w * u)
    residual = np.clip(proba - y, -1 / length, 1 / length)
    gradient = np.array([np.mean(residual * u), constant * np.mean(residual)])
    coef = np.array([w, moved / constant])
    plan = replace(
        plan_of(np.ones(1), held=np.zeros(1), n_steps=8, n_skipped=0, momentum=0.0, step_size=1e3,
                noise=1e-3, variance=np.ones(1)),
        length=length, intercept=constant, directions=np.eye(1),
    )  # fmt: skip
    assert plan.deviation > w
    believed = preconditioned.believed(plan, coef, [(coef, gradient)] * 8, n)
    assert believed[0] / w == pytest.approx(kept, abs=0.25)
    # of odds that vary with the row the center is less sure
    assert kept == 1 or believed[1] * constant == pytest.approx(center, abs=0.4)
    # more than noise can have made is kept whatever gradients say
    short = replace(plan, step_size=1.0)
    assert preconditioned.believed(short, coef, [(coef, gradient)], n)[0] == w
    # where noise can have made half of the variance of odds, a part of them is kept
    made = (1 + np.sqrt(2)) * plan.deviation[0] ** 2 / w**2
    half = replace(plan, step_size=plan.step_size * np.sqrt(0.5 / made))
    part = preconditioned.believed(half, coef, [(coef, gradient)] * 8, n)[0] / w
    assert part == pytest.approx(max(0.65, believed[0] / w), rel=1e-6)
    # where noise hides everything it is left that rows may say nothing, and the center stays
    hidden = preconditioned.believed(replace(plan, noise=1e3), coef, [(coef, gradient)] * 8, n)
    assert hidden[0] / w == pytest.approx(0.733, abs=0.01)
    assert hidden[1] * constant == pytest.approx(moved, abs=0.1)


@pytest.mark.parametrize("speed", [None, np.linspace(0.7, 1.3, 12)])
def test_coefficients_that_fit_noise_of_labels_take_as_much_off_gradients(speed):
    n, rng, variance = 400, np.random.default_rng(0), np.geomspace(1, 0.03, 12)
    plan = replace(
        plan_of(np.ones(12), held=np.full(12, 0.02), n_steps=24, n_skipped=0, momentum=0.7,
                step_size=2.0, noise=0.0, variance=variance),
        directions=np.eye(12), speed=speed,
    )  # fmt: skip
    taken = []
    for _ in range(200):
        rows, y = rng.normal(size=(n, 12)) * np.sqrt(variance), rng.random(n) < 0.5
        sampling = (0.5 - y) @ rows / n
        before = coef = np.zeros(12)
        for _ in range(plan.n_steps):
            ahead = coef + plan.momentum * (coef - before)
            w = plan.sped(ahead)
            taken.append(-sampling @ w)
            gradient = (expit(rows @ w) - y) @ rows / n
            step = ahead - plan.step_size * plan.sped(gradient)
            before, coef = coef, step / (1 + plan.step_size * plan.held)
    fitted = link._fit_to_noise(plan, 0.25, n)
    assert fitted == pytest.approx(link._FITTED * np.mean(taken), rel=0.1)
    # a hundred times the rows
    assert link._fit_to_noise(plan, 0.25, 100 * n) == pytest.approx(fitted / 100)
    # a mean that is no curvature says nothing
    assert link._fit_to_noise(plan, -1.0, n) == 0


@pytest.mark.parametrize("classes", [2, 3])
def test_fewer_rows_have_their_odds_believed_less(classes):
    # the gradient is that of odds that are right
    coef = np.ones((classes, 2)) * np.arange(classes)[:, None]
    plan = replace(
        plan_of(np.ones(2), held=np.zeros(2), n_steps=8, n_skipped=0, momentum=0.0, step_size=1e3,
                noise=1e-3, variance=np.ones(2)),
        directions=np.eye(2),
    )  # fmt: skip
    believed = preconditioned.believed_classes
    if classes == 2:
        coef, believed = coef[1], preconditioned.believed
    seen = [(coef, np.zeros(coef.shape))] * 8
    parts = [np.max(believed(plan, coef, seen, n)) / np.max(coef) for n in (10**9, 100, 10)]
    assert parts[0] > 0.95
    assert parts[0] > parts[1] > parts[2]


@pytest.mark.parametrize("length", [0.3, 3.0])
@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_gradients_say_how_far_scores_of_classes_are_from_those_of_labels(kept, length):
    # three classes, two columns, coefficients that are too long, and a center that is off
    n, rng, constant = 200_000, np.random.default_rng(0), 0.8
    w = np.array([[1.5, 0.2], [-1.0, 0.7], [-0.5, -0.9]])
    wanted, moved = np.log([0.6, 0.3, 0.1]) + 1, np.array([0.3, -0.3, 0.0])
    rows = rng.normal(size=(n, 2))
    u = rows @ w.T
    labels = link.unclipped_log_proba(log_softmax(moved + kept * u, axis=1), length)
    if kept == 0:
        labels = np.tile(wanted, (n, 1))
    y = np.argmax(labels + rng.gumbel(size=u.shape), axis=1)
    residual = softmax(moved + u, axis=1) - np.eye(3)[y]
    residual /= np.maximum(np.linalg.norm(residual, axis=1) * length, 1)[:, None]
    gradient = np.column_stack([residual.T @ rows / n, constant * residual.mean(axis=0)])
    coef = np.column_stack([w, moved / constant])
    plan = replace(
        plan_of(np.ones(2), held=np.zeros(2), n_steps=8, n_skipped=0, momentum=0.0, step_size=1.0,
                noise=1e-3, variance=np.ones(2)),
        length=length, intercept=constant, directions=np.eye(2),
    )  # fmt: skip
    seen = [(coef + 5.0, gradient)] * 8
    found = preconditioned.believed_classes(plan, coef, seen, n)
    np.testing.assert_allclose(found[:, :2], found[0, 0] / w[0, 0] * w)
    assert found[0, 0] / w[0, 0] == pytest.approx(kept, abs=0.25)
    center = found[:, 2] * constant
    if kept == 0:
        shares = np.exp(link.unclipped_log_proba(log_softmax(center)[None], length))
        np.testing.assert_allclose(shares[0], [0.6, 0.3, 0.1], atol=0.04)
    elif kept == 1:
        np.testing.assert_allclose(center, moved, atol=0.12)
    # the size of what is held at once changes nothing
    with mock.patch.object(link, "_AT_ONCE", 20):
        again = preconditioned.believed_classes(plan, coef, seen, n)
    np.testing.assert_allclose(again, found, rtol=1e-9)
    # where noise hides everything it is left that rows may say nothing
    hidden = preconditioned.believed_classes(replace(plan, noise=1e3), coef, seen, n)
    assert hidden[0, 0] / w[0, 0] == pytest.approx(0.733, abs=0.01)
    bare = replace(plan, intercept=0.0)
    seen = [(coef[:, :2], gradient[:, :2])] * 8
    alone = preconditioned.believed_classes(bare, coef[:, :2], seen, n)
    np.testing.assert_allclose(alone, alone[0, 0] / w[0, 0] * w)
    # a single step says nothing
    seen = [(np.zeros((3, 3)), gradient)]
    np.testing.assert_array_equal(preconditioned.believed_classes(plan, coef, seen, n), coef)


def test_scores_of_classes_are_no_worse_than_their_shares_where_rows_say_nothing():
    X, y = silent(), np.arange(1200) % 5
    losses = []
    for seed in range(3):
        model = logistic(2.0, classes=range(5), random_state=seed).fit(X, y)
        losses.append(log_loss(y, model.predict_proba(X)) - np.log(5))
    assert max(losses) < 0.03
    bound = logistic(2.0, classes=range(5), coef_bound=1e3)
    with mock.patch.object(preconditioned, "believed_classes") as asked:
        bound.fit(X, y)
    assert not asked.called


def test_odds_follow_gradients_unless_coefficients_are_bound():
    X, y = table(300)
    for options, follow in (({}, True), ({"coef_bound": 1e3}, False), ({"max_iter": 1}, False)):
        model = logistic(0.5, **options)
        with mock.patch.object(preconditioned, "believed", side_effect=lambda *a: a[1]) as asked:
            plain = clone(model).fit(X, y)
        model.fit(X, y)
        assert asked.called == ("coef_bound" not in options)
        assert (model.coef_ == plain.coef_).all() == (not follow)
        ratio = model.coef_ / plain.coef_
        np.testing.assert_allclose(ratio, ratio[0, 0])
    bare = logistic(0.5, fit_intercept=False).fit(X, y)
    assert bare.intercept_ == 0


def test_sparse_rows_of_two_classes_have_their_squares_released_at_any_signal():
    X, y = bags(300, 4096)
    for classes, first in (([0, 1], "sum of rows"), ([0, 1, 2], "rows of each class")):
        model = logistic(0.1, solver="auto", classes=classes).fit(X, y)
        assert model.ledger_.releases[0].query.startswith(first)


def silent():
    X = np.random.default_rng(0).normal(size=(1200, 8))
    return X / np.linalg.norm(X, axis=1).max()


def centered(load):
    X, y = load(return_X_y=True)
    # the largest values stand for public ranges
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-9) - 0.5
    return X / np.linalg.norm(X, axis=1).max(), y


#: rows and labels, and budgets
BELIEVED = {
    "words": (lambda: bags(3000, 2048), (0.1, 0.5, 4.0)),
    # at .5 it is .02 above, .004 of which is what 720 rows say of the share of a class
    "columns that say nothing": (lambda: (silent(), np.arange(1200) % 4 == 0), (1.0, 4.0)),
    "words that say nothing": (lambda: (bags(2000, 2048)[0], np.arange(2000) % 2), (0.1, 0.5)),
    "breast cancer": (lambda: centered(load_breast_cancer), (0.1, 0.5, 4.0)),
    "many words": (lambda: bags(4000, 1 << 15), (0.1, 1.0)),
    "four classes": (lambda: bags(5000, 1000, 4), (0.5, 2.0)),
}
_MORE = {"many words", "four classes"}


@every_adjacency
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * (name in _MORE)) for name in BELIEVED]
)
def test_log_loss_is_not_above_that_of_the_base_rate(name, adjacency):
    load, budgets = BELIEVED[name]
    X, y = load()
    for epsilon in budgets:
        gaps = []
        for seed in range(4):
            train, rest, labels, held = train_test_split(X, y, test_size=0.4, random_state=seed)
            model = DPLogisticRegression(
                epsilon, DELTA, adjacency=adjacency, data_norm=1.0, classes=np.unique(y),
                random_state=seed,
            ).fit(train, labels)  # fmt: skip
            rate = np.bincount(labels) / len(labels)
            base = log_loss(held, np.tile(rate, (len(held), 1)))
            gaps.append(log_loss(held, model.predict_proba(rest)) - base)
        assert np.mean(gaps) <= 0.01 + 2 * np.std(gaps, ddof=1) / 2, (epsilon, gaps)


# Rows that are hard to estimate anything from.

HARD = {
    "one row": (np.ones((1, 3)), np.ones(1, int)),
    "more columns than rows": (np.eye(4, 40), np.arange(4) % 2),
    "constant columns": (np.tile([0.5, 0.1, 0.0], (50, 1)), np.arange(50) % 2),
    "null rows only": (np.ones((20, 3)), np.full(20, 5)),
    "huge rows": (np.full((20, 3), 1e150), np.arange(20) % 2),
    "denormal rows": (np.full((20, 3), 1e-310), np.arange(20) % 2),
    "one column": (np.linspace(-1, 1, 50)[:, None], np.arange(50) > 25),
    "duplicated columns": (np.tile(np.linspace(-1, 1, 50)[:, None], 4), np.arange(50) > 25),
}


@pytest.mark.covering
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("layout", ["C", "csr", "float32"])
@pytest.mark.parametrize("epsilon", [1e-4, 1e4])
def test_hard_rows_give_finite_coefficients(name, layout, epsilon):
    X, y = HARD[name]
    model = logistic(epsilon, max_iter=6)
    if layout == "float32" and name == "huge rows":
        X = np.minimum(X, 1e38)
    coef, intercept = fitted(model, as_layout(X, layout), y)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()
    assert coef.shape == (1, X.shape[1])


def test_bounds_on_coefficients_hold():
    X, y = table(500)
    for bound in (1e-6, 0.5):
        model = logistic(100.0, coef_bound=bound).fit(X, y)
        # the intercept counts in units of the constant feature
        length = np.hypot(np.linalg.norm(model.coef_), model.intercept_ / 0.1)
        assert length <= bound * (1 + 1e-9)


def test_a_penalty_leaves_the_intercept_alone():
    X, _ = table(2000)
    model = logistic(100.0, C=1e-9).fit(X, np.where(np.arange(2000) % 4 == 0, 0, 1))
    assert np.abs(model.coef_).max() < 1e-3
    assert model.intercept_ == pytest.approx(math.log(3), abs=0.1)


def test_what_it_cannot_do_is_refused():
    X, y = table(50)
    with pytest.raises(ValueError, match="delta must be greater than 0"):
        DPLogisticRegression(solver="preconditioned", delta=0.0, data_norm=1.0).fit(X, y)
    with pytest.raises(ValueError, match="clipping_norm must be None"):
        DPLpRegressor(solver=solvers.Preconditioned(), clipping_norm=1.0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="not for regression"):
        DPLpRegressor(solver=solvers.Preconditioned(sparsity=2)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="moments_share"):
        logistic(solver=solvers.Preconditioned(moments_share=0.5)).fit(X, y)


# No cliffs: what leaves the problem as it is changes the accuracy of a default fit by noise alone.


def correlated(n_rows=3000, n_features=12, seed=1):
    """Return rows of the unit ball, correlated and off the origin, with noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) / np.arange(1, n_features + 1)
    labels = (X[:, 0] + 4 * X[:, 3] + 0.5 * rng.normal(size=n_rows) > 0).astype(int)
    X = X @ np.linalg.qr(rng.normal(size=(n_features, n_features)))[0] + 0.3
    return X / (1.3 * np.sqrt((X**2).sum(axis=1).mean())), labels


def accuracies(X, y, epsilon=1.0, n_seeds=6, **params):
    """Return accuracies of default fits, one for each seed."""
    models = (logistic(epsilon, solver="auto", random_state=s, **params) for s in range(n_seeds))
    return np.array([model.fit(X, y).score(X, y) for model in models])


def assert_level(changed, plain, gain=0.0, loss=0.0):
    """Assert that accuracies differ by no more than four standard errors, and what is allowed."""
    change = changed.mean() - plain.mean()
    error = np.sqrt((changed.var(ddof=1) + plain.var(ddof=1)) / len(plain))
    assert -loss - 4 * error - 0.005 <= change <= gain + 4 * error + 0.005


def rotated(X):
    rng = np.random.default_rng(2)
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]


#: what is done to rows, and how much accuracy may go with it: noise of more columns is noise
CHANGES = {
    "permuted columns": (lambda X: X[:, ::-1], 0.0),
    "a rotation": (rotated, 0.0),
    "columns of zeros": (lambda X: np.hstack([X, np.zeros((len(X), 12))]), 0.02),
    "many columns of zeros": (lambda X: np.hstack([X, np.zeros((len(X), 150))]), 0.1),
    "duplicated columns": (lambda X: np.hstack([X, X]) / math.sqrt(2), 0.02),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_says_nothing_gains_nothing(name):
    X, y = correlated()
    change, loss = CHANGES[name]
    assert_level(accuracies(change(X), y), accuracies(X, y), loss=loss)


@pytest.mark.full
def test_permuted_rows_change_nothing():
    X, y = correlated()
    order = np.random.default_rng(3).permutation(len(y))
    assert_level(accuracies(X[order], y[order]), accuracies(X, y))


@pytest.mark.full
def test_one_column_in_other_units_costs_nothing_where_its_scale_is_seen():
    # in a thousandth of its units a column is lost under one bound; a fifth is not
    X, y = correlated(20_000)
    scaled = X * np.where(np.arange(12) == 5, 0.2, 1.0)
    assert_level(accuracies(scaled, y, n_seeds=3), accuracies(X, y, n_seeds=3), loss=0.02)


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_more_budget_never_hurts(estimator):
    X, y = correlated()
    found = [
        accuracies(X, y, epsilon, n_seeds=4, estimator=estimator) for epsilon in (0.1, 1.0, 10.0)
    ]
    for less, more in itertools.pairwise(found):
        assert_level(more, less, gain=1.0)


@pytest.mark.full
def test_more_budget_never_hurts_regression():
    # rows of rare levels, and long ones, of which moments see little, bend the loss the most
    rng, found = np.random.default_rng(0), []
    size = np.exp(0.6 * rng.normal(size=20_000))
    numbers = [k * (size + 0.05 * rng.normal(size=20_000)) for k in (1, 1, 2)]
    shares = np.cumsum([0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.015])
    level = np.searchsorted(shares, rng.random(20_000))
    X = np.column_stack([*numbers, level[:, None] == np.arange(8)])
    y = size * (2 + level / 4) + 0.3 * rng.normal(size=20_000)
    for epsilon in (1.0, 4.0):
        models = [DPLpRegressor(epsilon, random_state=seed) for seed in range(3)]
        found.append([m.fit(X[:16_000], y[:16_000]).score(X[16_000:], y[16_000:]) for m in models])
    found = np.mean(found, axis=1)
    assert np.diff(found).min() > -0.002


#: tables on which more budget is to be no harm
MORE = {
    "breast cancer": lambda: centered(load_breast_cancer),
    "digits": lambda: centered(load_digits),
    "wine": lambda: centered(load_wine),
    "words": lambda: bags(3000, 1024),
    "words, three classes": lambda: bags(3000, 1024, 3),
}


@pytest.mark.full
@pytest.mark.parametrize("name", MORE)
def test_more_budget_never_hurts_on_tables(name):
    # ranks and probabilities as well as decisions: noise along flat directions shows there first
    (X, y), found = MORE[name](), []
    for epsilon in (0.25, 1.0, 4.0, 16.0, 64.0):
        found.append([])
        for seed in range(6):
            parts = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
            given = {"classes": np.unique(y), "delta": 1e-5, "random_state": seed}
            model = DPLogisticRegression(epsilon, **{"data_norm": 1.0, **given}).fit(
                parts[0], parts[2]
            )
            proba = model.predict_proba(parts[1])
            hot = parts[3][:, None] == model.classes_
            found[-1].append((
                model.score(parts[1], parts[3]), roc_auc_score(hot, proba), -log_loss(hot, proba),
            ))  # fmt: skip
    for less, more in itertools.pairwise(np.array(found)):
        for one, other in zip(less.T, more.T, strict=True):
            assert_level(other, one, gain=np.inf)


@pytest.mark.full
def test_pixels_that_hardly_vary_are_not_as_long_as_the_others():
    # a third of the pixels is blank, and varies by some per cent with the length of the image
    X, y = load_digits(return_X_y=True)
    X = X / 16 - 0.5
    X /= np.linalg.norm(X, axis=1)[:, None]
    found = []
    for epsilon in (0.5, 2.0):
        found.append([])
        for seed in range(4):
            parts = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
            model = DPLogisticRegression(
                epsilon, adjacency="zero-out", classes=np.unique(y), random_state=seed
            ).fit(parts[0], parts[2])
            found[-1].append(model.score(parts[1], parts[3]))
    # with a unit of its own for each pixel more budget took .85 to .81
    assert np.mean(found[1]) > np.mean(found[0]) + 0.02


@pytest.mark.full
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_more_columns_of_zeros_are_no_way_to_more_accuracy(container):
    # across all shapes, from few columns to more than rows
    X, y = correlated(400)
    found = [
        accuracies(container(np.hstack([X, np.zeros((400, more))])), y, 2.0)
        for more in (0, 60, 200, 380, 400, 1200)
    ]
    for narrow, wide in itertools.combinations(found, 2):
        assert_level(wide, narrow, loss=1.0)
