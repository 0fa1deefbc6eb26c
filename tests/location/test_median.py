# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPMedian releases."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn

from skdp.exceptions import SeededNoiseWarning
from skdp.location import DPMedian, DPQuantile

NAN = float("nan")
rng = np.random.default_rng(0)
X = np.concatenate([rng.normal([0.3, -0.2], 0.1, size=(250, 2)), rng.normal(size=(50, 2))])
MECHANISMS = ("rank", "gradient", "exponential")
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


def mean_distance(X, point):
    return np.linalg.norm(X - point, axis=1).mean()


def geometric_median(X):
    """Return the geometric median by Weiszfeld's iteration."""
    point = X.mean(axis=0)
    for _ in range(3000):
        weight = 1 / np.maximum(np.linalg.norm(X - point, axis=1), 1e-12)
        point = weight @ X / weight.sum()
    return point


def clipped(X, radius=1.0):
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True) / radius, 1)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("mechanism", ["gradient", "exponential"])
def test_with_a_huge_budget_it_is_the_geometric_median(mechanism, adjacency):
    model = DPMedian(1e6, mechanism=mechanism, adjacency=adjacency, data_norm=2.0, max_iter=1000)
    rows = clipped(X, 2.0)
    np.testing.assert_allclose(model.fit(X).location_, geometric_median(rows), atol=0.01)
    bounds = ([-0.5, -1.0], [1.0, 3.0])
    model.set_params(bounds=bounds)
    rows = np.clip(X, *bounds)
    np.testing.assert_allclose(model.fit(X).location_, geometric_median(rows), atol=0.01)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("mechanism", ["gradient", "exponential"])
@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_error_bound_holds(mechanism, adjacency, n_features, spread):
    rows = clipped(rng.normal(0.4, spread + 1e-9, size=(200, n_features)), 3.0)
    best = mean_distance(rows, geometric_median(rows))
    model = DPMedian(2.0, mechanism=mechanism, adjacency=adjacency, data_norm=3.0, max_iter=50)
    excess = [mean_distance(rows, model.fit(rows).location_) - best for _ in range(10)]
    # an expectation, estimated from ten runs
    deviation = np.std(excess) / np.sqrt(10)
    assert -1e-9 < np.mean(excess) < model.error_bound_ + 4 * deviation
    if mechanism == "exponential":
        spread = 4 if adjacency == "replace-one" else 2
        expected = 3.0 * n_features * spread / 2.0 / 200
        assert model.error_bound_ == pytest.approx(expected, rel=1e-5)


def test_auto_takes_what_the_data_and_the_budget_allow():
    def chosen(n_features, delta):
        return DPMedian(delta=delta).fit(np.zeros((20, n_features)) + 0.1).mechanism_

    assert chosen(1, 1e-6) == chosen(1, 0.0) == "rank"
    assert chosen(2, 1e-6) == chosen(30, 1e-6) == "gradient"
    assert chosen(2, 0.0) == chosen(5, 0.0) == "exponential"
    with pytest.raises(ValueError, match=r"delta must .*gradient.*rank"):
        chosen(6, 0.0)


def test_a_mechanism_that_cannot_serve_says_which_can():
    wide = np.zeros((20, 6))
    with pytest.raises(ValueError, match=r"at most 5 features.*X has 6.*rank.*gradient"):
        DPMedian(mechanism="exponential").fit(wide)
    model = DPMedian(mechanism="gradient", delta=0.0)
    with pytest.raises(ValueError, match="delta must be greater than 0"):
        model.fit(wide)
    assert not hasattr(model, "ledger_")
    assert DPMedian(mechanism="rank", delta=0.0).fit(wide).mechanism_ == "rank"


@every_mechanism
def test_delta_is_spent_by_the_gradient_only(mechanism):
    model = DPMedian(0.8, 1e-5, mechanism=mechanism, max_iter=7).fit(X)
    epsilon, delta = model.privacy_spent_
    assert delta == (1e-5 if mechanism == "gradient" else 0.0)
    assert 0.8 * (1 - 1e-4) < epsilon <= 0.8
    assert model.ledger_.epsilon(delta) == epsilon


@every_adjacency
def test_the_ledger(adjacency):
    double = 2 if adjacency == "replace-one" else 1
    (rank,) = DPMedian(mechanism="rank", adjacency=adjacency).fit(X).ledger_.releases
    assert (rank.count, rank.stated_sensitivity, rank.noise.epsilon) == (2, double, 0.5)
    model = DPMedian(mechanism="gradient", adjacency=adjacency, max_iter=7).fit(X)
    (step,) = model.ledger_.releases
    assert (step.count, step.stated_sensitivity, step.size) == (7, double, 2)
    assert (step.noise.law, model.n_iter_) == ("gaussian", 7)
    (draw,) = DPMedian(mechanism="exponential", adjacency=adjacency).fit(X).ledger_.releases
    assert (draw.count, draw.stated_sensitivity, draw.noise.epsilon) == (1, 2 * double, 1.0)
    assert draw.noise.scale == pytest.approx(2 * double, rel=1e-5)
    assert draw.numerics == "idealised, system entropy"


def test_rank_is_the_quantile_one_half():
    bounds = (-3, 3)
    median = DPMedian(1e6, mechanism="rank", bounds=bounds).fit(X)
    half = DPQuantile(1e6, bounds=bounds).fit(X)
    np.testing.assert_allclose(median.location_, half.location_, atol=1e-2)
    assert median.error_bound_ == half.error_bound_
    assert median.n_iter_ == 2
    # without bounds, every feature is clipped to the radius
    assert DPMedian(1e6, mechanism="rank", data_norm=0.1).fit(X).location_.tolist() == [0.1, -0.1]


def test_ties_are_found():
    ties = np.where(rng.random((1000, 1)) < 0.8, 7, rng.integers(0, 100, size=(1000, 1)))
    model = DPMedian(1.0, bounds=(0, 100))
    assert np.mean([model.fit(ties).location_[0] == 7 for _ in range(100)]) > 0.98


@pytest.mark.covering
@every_mechanism
@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_equal_rows(mechanism, value):
    rows = np.full((900, 2), value)
    model = DPMedian(10.0, mechanism=mechanism, bounds=(-1, 1), max_iter=900)
    released = model.fit(rows).location_
    np.testing.assert_allclose(released, value, atol=0.05)
    assert np.all(np.abs(released) <= 1)


@every_mechanism
def test_seeds(mechanism):
    model = DPMedian(mechanism=mechanism, max_iter=5, random_state=0)
    with pytest.warns(SeededNoiseWarning) as caught:
        first = model.fit(X).location_
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(first, model.fit(X).location_)
    model.set_params(random_state=None)
    assert np.all(model.fit(X).location_ != model.fit(X).location_)


@every_mechanism
def test_layouts_types_and_names(mechanism):
    model = DPMedian(mechanism=mechanism, max_iter=5, random_state=0)
    expected = model.fit(X).location_
    frozen = X.copy()
    frozen.flags.writeable = False
    for rows in (frozen, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist()):
        np.testing.assert_allclose(model.fit(rows).location_, expected, rtol=1e-6)
    single = model.fit(X.astype(np.float32))
    assert single.location_.dtype == np.float64
    np.testing.assert_allclose(single.location_, expected, atol=1e-3)
    for frame in (pd.DataFrame, pl.DataFrame):
        named = model.fit(frame({"a": X[:, 0], "b": X[:, 1]}))
        assert named.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.covering
@every_mechanism
@pytest.mark.parametrize("data_norm", [1e-100, 1.0, 1e99])
@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((30, 3)),
        np.full((30, 3), -1e308),
        np.full((30, 3), 5e-324),
        np.where(rng.random((30, 3)) < 0.5, 1e300, 1e-300),
        np.full((30, 3), 3e38, dtype=np.float32),
        rng.integers(-(2**62), 2**62, size=(30, 3)),
    ],
)
def test_extreme_rows_stay_finite(mechanism, rows, data_norm):
    model = DPMedian(mechanism=mechanism, data_norm=data_norm, max_iter=5)
    assert np.all(np.abs(model.fit(rows).location_) <= data_norm * (1 + 1e-9))
    bounds = (-data_norm, data_norm)
    assert np.all(np.abs(model.set_params(bounds=bounds).fit(rows).location_) <= data_norm)


@every_mechanism
def test_tiny_and_huge_budgets(mechanism):
    for epsilon in (1e-6, 50.0, 1e5):
        model = DPMedian(epsilon, mechanism=mechanism, max_iter=20).fit(X[:50])
        assert np.all(np.abs(model.location_) <= 1)
        assert model.privacy_spent_[0] <= epsilon
        assert 0 < model.error_bound_ <= 2


@every_mechanism
def test_one_row(mechanism):
    assert DPMedian(mechanism=mechanism, max_iter=5).fit(X[:1]).location_.shape == (2,)


@every_mechanism
def test_rows_that_are_not_numbers_contribute_nothing(mechanism):
    rows = np.concatenate([np.full((900, 2), 0.25), np.full((1900, 2), NAN)])
    nobody = np.full((5, 2), NAN)
    for bounds in (None, (-1, 1)):
        model = DPMedian(100.0, mechanism=mechanism, bounds=bounds, max_iter=900)
        with sklearn.config_context(assume_finite=True):
            np.testing.assert_allclose(model.fit(rows).location_, 0.25, atol=0.05)
            assert np.all(np.abs(model.set_params(max_iter=5).fit(nobody).location_) <= 1)


def test_predict_repeats_and_score_is_minus_the_mean_distance():
    model = DPMedian(max_iter=5).fit(X)
    np.testing.assert_array_equal(model.predict(X[:5]), np.tile(model.location_, (5, 1)))
    assert model.score(X) == pytest.approx(-mean_distance(X, model.location_))
    assert model.score(np.full((2, 2), 1e307)) == pytest.approx(-np.sqrt(2) * 1e307)
    assert np.isfinite(model.score(np.zeros((2, 2))))
