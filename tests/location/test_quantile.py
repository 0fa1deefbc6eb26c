# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPQuantile releases."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.metrics import mean_pinball_loss

from skdp.exceptions import SeededNoiseWarning
from skdp.location import DPQuantile

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3))
every_quantile = pytest.mark.parametrize("quantile", [0.01, 0.25, 0.5, 0.9])
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


def rank_error(X, location, quantile):
    """Return how far each rank is from the quantile's, as a fraction of the rows."""
    below, above = np.mean(X - location < 0, axis=0), np.mean(X - location > 0, axis=0)
    return np.maximum(np.maximum(below - quantile, quantile - (1 - above)), 0.0)


@every_quantile
def test_with_a_huge_budget_it_is_the_quantile(quantile):
    released = DPQuantile(1e6, quantile=quantile, bounds=(-6, 6)).fit(X).location_
    assert rank_error(X, released, quantile).max() == 0
    expected = [np.quantile(X, quantile, axis=0, method=m) for m in ("lower", "higher")]
    np.testing.assert_array_less(expected[0] - 1e-7, released)
    np.testing.assert_array_less(released, expected[1] + 1e-7)


@pytest.mark.covering
@every_adjacency
@every_quantile
def test_the_error_bound_holds(quantile, adjacency):
    model = DPQuantile(1.0, quantile=quantile, adjacency=adjacency, bounds=(-1e3, 1e3))
    fitted = [model.fit(X).location_ for _ in range(100)]
    errors = np.array([rank_error(X, location, quantile) for location in fitted])
    # three features share the budget: 1 % of the runs may fail, 7 of 100 with chance 1e-5
    assert np.sum(errors.max(axis=1) > model.error_bound_) < 7
    spread = 2.0 if adjacency == "replace-one" else 2 * max(quantile, 1 - quantile)
    expected = np.log(300 * (2**30 + 1)) * 3 * spread / 500
    assert model.error_bound_ == pytest.approx(min(expected, max(quantile, 1 - quantile)), rel=1e-5)


def test_wide_bounds_cost_little():
    column = rng.lognormal(3, 1, size=(1000, 1))
    median = np.median(column)
    errors = [
        np.median(
            [abs(DPQuantile(bounds=(0, b)).fit(column).location_[0] - median) for _ in range(50)]
        )
        for b in (1e3, 1e5)
    ]
    assert max(errors) < 0.5


def test_ties_are_found():
    ties = np.where(rng.random((1000, 1)) < 0.8, 3, rng.integers(0, 10, size=(1000, 1)))
    model = DPQuantile(1.0, bounds=(0, 10))
    assert np.mean([model.fit(ties).location_[0] == 3 for _ in range(100)]) > 0.98


@pytest.mark.parametrize("tie", [0.0, 0.1, -1 / 3, 17.25, 99999.99, -1e5])
def test_a_tie_is_hit_to_its_last_digit(tie):
    rows = np.full((500, 1), tie)
    released = DPQuantile(5.0, bounds=(-1e5, 1e5)).fit(rows).location_[0]
    assert released == tie or (tie == -1 / 3 and abs(released - tie) < 2e-4)
    assert repr(released).removeprefix("np.float64(") != "-0.0)"


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.3, 1.0])
def test_equal_rows(value):
    rows = np.full((1000, 2), value)
    fitted = DPQuantile(2.0).fit(rows)
    np.testing.assert_array_equal(fitted.location_, value)
    assert np.all(np.abs(fitted.location_) <= 1)


def test_values_outside_the_bounds_are_clipped():
    rows = np.linspace(0, 100, 1001)[:, None]
    assert DPQuantile(1e6, bounds=(70, 90)).fit(rows).location_[0] == 70
    assert DPQuantile(1e6, bounds=(10, 20)).fit(rows).location_[0] == 20


def test_every_feature_has_its_own_bounds():
    rows = X * [1.0, 1e6, 1e-6] + [0.0, 1e7, 0.0]
    bounds = ([-5, 0, -5e-6], [5, 2e7, 5e-6])
    released = DPQuantile(1e6, bounds=bounds).fit(rows).location_
    assert rank_error(rows, released, 0.5).max() == 0


@every_adjacency
def test_the_ledger_shows_one_release_for_every_feature(adjacency):
    model = DPQuantile(0.7, quantile=0.25, adjacency=adjacency).fit(X)
    (release,) = model.ledger_.releases
    assert (release.count, release.size, release.adjacency) == (3, 1, adjacency)
    assert (release.noise.law, release.noise.delta) == ("exponential", 0.0)
    assert release.noise.epsilon == pytest.approx(0.7 / 3, rel=1e-15)
    assert release.stated_sensitivity == (2.0 if adjacency == "replace-one" else 1.5)
    assert release.numerics == "exact on the grid, system entropy"
    assert "0.25-quantile" in release.query
    assert model.privacy_spent_ == (model.ledger_.epsilon(), 0.0)
    assert 0.7 * (1 - 1e-15) <= model.privacy_spent_[0] <= 0.7


@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 49, 1000])
def test_no_number_of_features_exceeds_the_budget(n_features):
    assert DPQuantile(0.1).fit(np.zeros((2, n_features))).ledger_.epsilon() <= 0.1


def test_seeds():
    with pytest.warns(SeededNoiseWarning) as caught:
        first = DPQuantile(random_state=0).fit(X).location_
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(first, DPQuantile(random_state=0).fit(X).location_)
    assert np.all(first != DPQuantile(random_state=1).fit(X).location_)
    assert np.all(DPQuantile().fit(X).location_ != DPQuantile().fit(X).location_)


def test_layouts_and_types():
    expected = DPQuantile(random_state=0).fit(X.astype(np.float32)).location_
    for rows in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist()):
        np.testing.assert_allclose(
            DPQuantile(random_state=0).fit(rows).location_, expected, rtol=1e-5
        )
    frozen = X.copy()
    frozen.flags.writeable = False
    DPQuantile().fit(frozen)
    np.testing.assert_array_equal(frozen, X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns(frame):
    model = DPQuantile().fit(frame({"a": [0.1, 0.2], "b": [0.3, 0.4]}))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert (model.n_features_in_, model.location_.shape) == (2, (2,))


def test_predict_repeats_and_score_is_minus_the_pinball_loss():
    model = DPQuantile(quantile=0.2, bounds=(-3, 3)).fit(X)
    np.testing.assert_array_equal(model.predict(X[:5]), np.tile(model.location_, (5, 1)))
    losses = mean_pinball_loss(X, model.predict(X), alpha=0.2, multioutput="raw_values")
    assert model.score(X) == pytest.approx(-losses.sum())
    assert np.isfinite(model.score(np.full((2, 3), 1e308)))


@pytest.mark.parametrize(
    ("rows", "bounds"),
    [
        (np.full((9, 2), 1e308), (-8e307, 8e307)),
        (np.full((9, 2), -1e308), (0, 1e-300)),
        (np.full((9, 2), 5e-324), (-1, 1)),
        (np.full((9, 2), 3e38, dtype=np.float32), (0, 5e-324)),
        (np.array([[1e300, -1e-300]] * 9), (1e300, 1.1e300)),
        (np.full((9, 2), 2**62), (2**62 - 1024.0, 2**62 + 1024.0)),
    ],
)
def test_extreme_rows_and_bounds(rows, bounds):
    location = DPQuantile(bounds=bounds).fit(rows).location_
    assert np.all((bounds[0] <= location) & (location <= bounds[1]))


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 50.0, 1e5, 1e300])
def test_tiny_and_huge_budgets(epsilon):
    model = DPQuantile(epsilon).fit(X)
    assert np.all(np.abs(model.location_) <= 1)
    assert model.privacy_spent_[0] <= epsilon
    assert 0 < model.error_bound_ <= 0.5


def test_one_row():
    assert DPQuantile(100.0, bounds=(0, 4)).fit([[1.0, 3.0]]).location_.shape == (2,)


def test_rows_that_are_not_numbers_are_not_counted():
    rows = np.concatenate([X, np.full((5000, 3), NAN)])
    with sklearn.config_context(assume_finite=True):
        released = DPQuantile(1e6, bounds=(-6, 6)).fit(rows).location_
        nobody = DPQuantile().fit(np.full((4, 1), NAN)).location_
    assert rank_error(X, released, 0.5).max() == 0
    assert abs(nobody[0]) <= 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, NAN, INF, "1", None, True)]
    + [("quantile", v) for v in (0, 1, -0.1, NAN, "median", None, [0.5])]
    + [("adjacency", "add-remove"), ("random_state", -1), ("random_state", "a")]
    + [("bounds", v) for v in ((1, 0), (0, 0), (0, NAN), (-INF, 1), (0,), ([0, 0], 1), "ab", None)],
)
def test_bad_parameters_are_named(name, value):
    model = DPQuantile(**{name: value})
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(X)
    assert not hasattr(model, "ledger_")
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises((ValueError, TypeError)),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.zeros(60), "1D array"),
        (np.full((6, 3), NAN), "NaN"),
        (np.full((6, 3), INF), "infinity"),
        ([["60", "kilos"]] * 6, "numeric"),
        (sparse.csr_array(np.eye(3)), "[Ss]parse"),
    ],
)
def test_bad_data(data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPQuantile().fit(data)
