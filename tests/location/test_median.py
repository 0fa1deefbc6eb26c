# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Medians and quantiles: scores, subgradients, laws, claims, input."""

import contextlib
import functools
import itertools
import pickle
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss

from skdp import _quantiles
from skdp._quantiles import QuantileRank, RankRows, candidates
from skdp._rows.base import L2Ball
from skdp._rows.columns import PointRows
from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.location import DPMedian, DPQuantile, _median, _quantile
from skdp.location._median import DirectionSum, DistanceSum, distances_and_subgradients
from skdp.privacy import ExponentialMechanism, GaussianMechanism, Record, gdp_mu
from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.samplers import SeededBits
from skdp.solvers.subgradient import plan_subgradient, subgradient_descent
from tests import _audit
from tests._neighbours import ADJACENCIES, neighbours, on_examples

# Exact privacy losses of draws, and neighbours on which they are largest.
#
# `recorded_draws` stands in front of a query's `draw`; from what it is given, rows and
# noise, the law of the output follows without a draw.


NAN = float("nan")


@contextlib.contextmanager
def recorded_draws(query):
    """Record (query, rows, noise) of every draw, and draw zeros."""
    draws = []

    def draw(self, rows, noise, source):
        draws.append((self, rows, noise))
        return np.zeros(self.size)

    with mock.patch.object(query, "draw", draw):
        yield draws


def draws_of(query, model, X):
    with recorded_draws(query) as draws, sklearn.config_context(assume_finite=True):
        clone(model).fit(X)
    return draws


def log_law(draw):
    """Return the runs of a rank draw and the log-probability of a position in each."""
    query, rows, noise = draw
    # looked up there: a test may have planted a bug
    formed = _quantiles.candidates(rows.positions(query.column), query.tau, query.cells)
    starts, counts, steps = (part[formed[1] > 0] for part in formed)
    rate = _quantiles.rate(query.tau.denominator, noise.scale)
    logits = -rate * steps
    return starts, logits - np.log(np.sum(counts * np.exp(logits - logits.max()))) - logits.max()


def rank_epsilon(model, first, second):
    """Return the largest log-ratio of output probabilities on two data sets, exactly."""
    total = 0.0
    worlds = [draws_of(QuantileRank, model, X) for X in (first, second)]
    for pair in zip(*worlds, strict=True):
        (one, p), (other, q) = map(log_law, pair)
        edges = np.union1d(one, other)
        at = [np.searchsorted(s, edges, "right") - 1 for s in (one, other)]
        total += np.abs(p[at[0]] - q[at[1]]).max()
    return total


def line_epsilon(model, first, second):
    """Return the largest log-ratio of densities of a draw on the line, by quadrature."""
    grid, laws = np.linspace(-1, 1, 20001)[:, None], []
    for X in (first, second):
        ((_, rows, noise),) = draws_of(DistanceSum, model, X)
        logits = -distances_and_subgradients(grid, rows.columns())[0] / noise.scale
        mass = np.trapezoid(np.exp(logits - logits.max()), grid[:, 0])
        laws.append(logits - logits.max() - np.log(mass))
    return np.abs(laws[0] - laws[1]).max()


def worst_rank_pair(adjacency, n_features=1):
    """Return rows between 0 and 2^30: nearly all mass is above, and one row jumps over it."""
    first = np.array([0.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else 2.0**30
    return [np.tile(column[:, None], n_features) for column in (first, second)]


def worst_line_pair(adjacency):
    """Return rows at 1 and one at -1, which becomes 1 as well, or null."""
    first = np.ones((100, 1))
    second = first.copy()
    first[0], second[0] = -1, NAN if adjacency == "zero-out" else 1
    return first, second


# What DPMedian releases.


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


@pytest.mark.full
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


@pytest.mark.sample(1)
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


def placed(spread, outliers, n_rows=300, n_features=10):
    """Return rows spread around a point far from the origin, some of them on the other side."""
    rows = spread / n_features**0.5 * np.random.default_rng(0).normal(size=(n_rows, n_features))
    rows[:, 0] += 0.9 - spread
    rows[: int(outliers * n_rows), 0] -= 1.5
    return clipped(rows)


@pytest.mark.covering
@pytest.mark.parametrize("spread", [0.2, 0.03, 1e-3])
@pytest.mark.parametrize("outliers", [0.0, 0.2])
def test_few_steps_reach_the_median_at_any_distance_and_on_any_scale(spread, outliers):
    rows = placed(spread, outliers)
    best = mean_distance(rows, geometric_median(rows))
    model = DPMedian(1e6, data_norm=1.0).fit(rows)
    assert model.n_iter_ == 60
    assert mean_distance(rows, model.location_) - best < 0.01 * spread


@pytest.mark.full
def test_the_excess_of_the_gradient_is_that_of_its_noise():
    n_rows, n_features = 1000, 20
    rows = np.random.default_rng(0).normal(size=(n_rows, n_features)) * 0.1
    rows, model = clipped(rows), DPMedian(4.0, data_norm=1.0)
    median = geometric_median(rows)
    gaps = rows - median
    distance = np.linalg.norm(gaps, axis=1)
    best, directions = distance.mean(), gaps / distance[:, None]
    curvature = np.mean(1 / distance) * np.eye(n_features)
    curvature -= (directions / distance[:, None]).T @ directions / n_rows
    excess = np.mean([mean_distance(rows, model.fit(rows).location_) - best for _ in range(20)])
    # averages of 40 steps of 60; the noise of one release of all the budget is 2 / (n mu)
    expected = 60 / 40 * (2 / n_rows / gdp_mu(4.0, 1e-6)) ** 2 * np.trace(np.linalg.inv(curvature))
    assert 0.5 * expected / 2 < excess < 2 * expected / 2
    assert excess < model.error_bound_ < 0.03


def test_the_error_bound_of_gradients_counts_what_is_left_to_win():
    rows = placed(1e-3, 0.0)
    best = mean_distance(rows, geometric_median(rows))
    model = DPMedian(1e4, max_iter=2, data_norm=1.0).fit(rows)
    assert 0.1 < mean_distance(rows, model.location_) - best < model.error_bound_ < 2


def test_the_error_bound_of_gradients_counts_chance():
    # a loss that is linear: the known part of the bound alone fails in half of the fits
    rows = np.ones((60, 1))
    model = DPMedian(1.0, mechanism="gradient", max_iter=9, data_norm=1.0)
    fits = (model.fit(rows) for _ in range(40))
    # each fails with a probability of at most 1 %
    assert sum(1 - fit.location_[0] > fit.error_bound_ for fit in fits) < 6


def test_auto_takes_what_the_data_and_the_budget_allow():
    def chosen(n_features, delta):
        return DPMedian(delta=delta, data_norm=1.0).fit(np.zeros((20, n_features)) + 0.1).mechanism_

    assert chosen(1, 1e-6) == chosen(1, 0.0) == "rank"
    assert chosen(2, 1e-6) == chosen(30, 1e-6) == "gradient"
    assert chosen(2, 0.0) == chosen(5, 0.0) == "exponential"
    with pytest.raises(ValueError, match=r"delta must .*gradient.*rank"):
        chosen(6, 0.0)


def test_a_mechanism_that_cannot_serve_says_which_can():
    wide = np.zeros((20, 6))
    with pytest.raises(ValueError, match=r"at most 5 features.*X has 6.*rank.*gradient"):
        DPMedian(mechanism="exponential", data_norm=1.0).fit(wide)
    model = DPMedian(mechanism="gradient", delta=0.0, data_norm=1.0)
    with pytest.raises(ValueError, match="delta must be greater than 0"):
        model.fit(wide)
    assert not hasattr(model, "ledger_")
    assert DPMedian(mechanism="rank", delta=0.0, data_norm=1.0).fit(wide).mechanism_ == "rank"


@every_mechanism
def test_delta_is_spent_by_the_gradient_only(mechanism):
    model = DPMedian(0.8, 1e-5, mechanism=mechanism, max_iter=7, data_norm=1.0).fit(X)
    epsilon, delta = model.privacy_spent_
    assert delta == (1e-5 if mechanism == "gradient" else 0.0)
    assert 0.8 * (1 - 1e-4) < epsilon <= 0.8
    assert model.ledger_.epsilon(delta) == epsilon


@every_adjacency
def test_the_ledger(adjacency):
    double = 2 if adjacency == "replace-one" else 1
    (rank,) = DPMedian(mechanism="rank", adjacency=adjacency, data_norm=1.0).fit(X).ledger_.releases
    assert (rank.count, rank.stated_sensitivity, rank.noise.epsilon) == (2, double, 0.5)
    model = DPMedian(mechanism="gradient", adjacency=adjacency, max_iter=7, data_norm=1.0).fit(X)
    (step,) = model.ledger_.releases
    assert (step.count, step.stated_sensitivity, step.size) == (7, double, 2)
    assert (step.noise.law, model.n_iter_) == ("gaussian", 7)
    (draw,) = (
        DPMedian(mechanism="exponential", adjacency=adjacency, data_norm=1.0)
        .fit(X)
        .ledger_.releases
    )
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


@pytest.mark.full
def test_ties_are_found():
    ties = np.where(rng.random((1000, 1)) < 0.8, 7, rng.integers(0, 100, size=(1000, 1)))
    model = DPMedian(1.0, bounds=(0, 100))
    assert np.mean([model.fit(ties).location_[0] == 7 for _ in range(100)]) > 0.98


@pytest.mark.sample(1)
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
    model = DPMedian(mechanism=mechanism, max_iter=5, random_state=0, data_norm=1.0)
    with pytest.warns(SeededNoiseWarning) as caught:
        first = model.fit(X).location_
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(first, model.fit(X).location_)
    model.set_params(random_state=None)
    assert np.all(model.fit(X).location_ != model.fit(X).location_)


@pytest.mark.sample(2)
@every_mechanism
def test_layouts_types_and_names(mechanism):
    model = DPMedian(mechanism=mechanism, max_iter=5, random_state=0, data_norm=1.0)
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
        model = DPMedian(epsilon, mechanism=mechanism, max_iter=20, data_norm=1.0).fit(X[:50])
        assert np.all(np.abs(model.location_) <= 1)
        assert model.privacy_spent_[0] <= epsilon
        assert 0 < model.error_bound_ <= 2


@every_mechanism
def test_one_row(mechanism):
    assert DPMedian(mechanism=mechanism, max_iter=5, data_norm=1.0).fit(X[:1]).location_.shape == (
        2,
    )


@pytest.mark.sample(1)
@every_mechanism
def test_rows_that_are_not_numbers_contribute_nothing(mechanism):
    rows = np.concatenate([np.full((900, 2), 0.25), np.full((1900, 2), NAN)])
    nobody = np.full((5, 2), NAN)
    for place in ({"data_norm": 1.0}, {"bounds": (-1, 1)}):
        model = DPMedian(100.0, mechanism=mechanism, max_iter=900, **place)
        with sklearn.config_context(assume_finite=True):
            np.testing.assert_allclose(model.fit(rows).location_, 0.25, atol=0.05)
            assert np.all(np.abs(model.set_params(max_iter=5).fit(nobody).location_) <= 1)


def test_score_is_minus_the_mean_distance():
    model = DPMedian(max_iter=5, data_norm=1.0).fit(X)
    assert model.score(X) == pytest.approx(-mean_distance(X, model.location_))
    assert model.score(np.full((2, 2), 1e307)) == pytest.approx(-np.sqrt(2) * 1e307)
    assert np.isfinite(model.score(np.zeros((2, 2))))


# What DPQuantile releases.


QUANTILE_NAN, INF = float("nan"), float("inf")
quantile_rng = np.random.default_rng(0)
QUANTILE_X = quantile_rng.normal(size=(500, 3))
every_quantile = pytest.mark.parametrize("quantile", [0.01, 0.25, 0.5, 0.9])


def rank_error(X, location, quantile):
    """Return how far each rank is from the quantile's, as a fraction of the rows."""
    below, above = np.mean(X - location < 0, axis=0), np.mean(X - location > 0, axis=0)
    return np.maximum(np.maximum(below - quantile, quantile - (1 - above)), 0.0)


@every_quantile
def test_with_a_huge_budget_it_is_the_quantile(quantile):
    released = DPQuantile(1e6, quantile=quantile, bounds=(-6, 6)).fit(QUANTILE_X).location_
    assert rank_error(QUANTILE_X, released, quantile).max() == 0
    expected = [np.quantile(QUANTILE_X, quantile, axis=0, method=m) for m in ("lower", "higher")]
    np.testing.assert_array_less(expected[0] - 1e-7, released)
    np.testing.assert_array_less(released, expected[1] + 1e-7)


@pytest.mark.full
@every_adjacency
@every_quantile
def test_the_error_bound_of_quantiles_holds(quantile, adjacency):
    model = DPQuantile(1.0, quantile=quantile, adjacency=adjacency, bounds=(-1e3, 1e3))
    fitted = [model.fit(QUANTILE_X).location_ for _ in range(100)]
    errors = np.array([rank_error(QUANTILE_X, location, quantile) for location in fitted])
    # three features share the budget: 1 % of the runs may fail, 7 of 100 with chance 1e-5
    assert np.sum(errors.max(axis=1) > model.error_bound_) < 7
    spread = 2.0 if adjacency == "replace-one" else 2 * max(quantile, 1 - quantile)
    expected = np.log(300 * (2**30 + 1)) * 3 * spread / 500
    assert model.error_bound_ == pytest.approx(min(expected, max(quantile, 1 - quantile)), rel=1e-5)


@pytest.mark.full
def test_wide_bounds_cost_little():
    column = quantile_rng.lognormal(3, 1, size=(1000, 1))
    median = np.median(column)
    errors = [
        np.median(
            [abs(DPQuantile(bounds=(0, b)).fit(column).location_[0] - median) for _ in range(50)]
        )
        for b in (1e3, 1e5)
    ]
    assert max(errors) < 0.5


def test_tied_quantiles_are_found():
    ties = np.where(
        quantile_rng.random((1000, 1)) < 0.8, 3, quantile_rng.integers(0, 10, size=(1000, 1))
    )
    model = DPQuantile(1.0, bounds=(0, 10))
    assert np.mean([model.fit(ties).location_[0] == 3 for _ in range(100)]) > 0.98


@pytest.mark.parametrize("tie", [0.0, 0.1, -1 / 3, 17.25, 99999.99, -1e5])
def test_a_tie_is_hit_to_its_last_digit(tie):
    rows = np.full((500, 1), tie)
    released = DPQuantile(5.0, bounds=(-1e5, 1e5)).fit(rows).location_[0]
    assert released == tie or (tie == -1 / 3 and abs(released - tie) < 2e-4)
    assert repr(released).removeprefix("np.float64(") != "-0.0)"


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.3, 1.0])
def test_quantiles_of_equal_rows(value):
    rows = np.full((1000, 2), value)
    fitted = DPQuantile(2.0, bounds=(-1.0, 1.0)).fit(rows)
    np.testing.assert_array_equal(fitted.location_, value)
    assert np.all(np.abs(fitted.location_) <= 1)


def test_values_outside_the_bounds_are_clipped():
    rows = np.linspace(0, 100, 1001)[:, None]
    assert DPQuantile(1e6, bounds=(70, 90)).fit(rows).location_[0] == 70
    assert DPQuantile(1e6, bounds=(10, 20)).fit(rows).location_[0] == 20


def test_every_feature_has_its_own_bounds():
    rows = QUANTILE_X * [1.0, 1e6, 1e-6] + [0.0, 1e7, 0.0]
    bounds = ([-5, 0, -5e-6], [5, 2e7, 5e-6])
    released = DPQuantile(1e6, bounds=bounds).fit(rows).location_
    assert rank_error(rows, released, 0.5).max() == 0


@every_adjacency
def test_the_ledger_shows_one_release_for_every_feature(adjacency):
    model = DPQuantile(0.7, quantile=0.25, adjacency=adjacency, bounds=(-1.0, 1.0)).fit(QUANTILE_X)
    (release,) = model.ledger_.releases
    assert (release.count, release.size, release.adjacency) == (3, 1, adjacency)
    assert (release.noise.law, release.noise.delta) == ("exponential", 0.0)
    assert release.noise.epsilon == pytest.approx(0.7 / 3, rel=1e-15)
    assert release.stated_sensitivity == (2.0 if adjacency == "replace-one" else 1.5)
    assert release.numerics == "exact on the grid, system entropy"
    assert "0.25-quantile" in release.query
    assert model.privacy_spent_ == (model.ledger_.epsilon(), 0.0)
    assert 0.7 * (1 - 1e-15) <= model.privacy_spent_[0] <= 0.7


@pytest.mark.sample(1)
@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 49, 1000])
def test_no_number_of_features_exceeds_the_budget(n_features):
    assert (
        DPQuantile(0.1, bounds=(-1.0, 1.0)).fit(np.zeros((2, n_features))).ledger_.epsilon() <= 0.1
    )


def test_seeds_of_quantiles():
    with pytest.warns(SeededNoiseWarning) as caught:
        first = DPQuantile(random_state=0, bounds=(-1.0, 1.0)).fit(QUANTILE_X).location_
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(
        first, DPQuantile(random_state=0, bounds=(-1.0, 1.0)).fit(QUANTILE_X).location_
    )
    assert np.all(first != DPQuantile(random_state=1, bounds=(-1.0, 1.0)).fit(QUANTILE_X).location_)
    assert np.all(
        DPQuantile(bounds=(-1.0, 1.0)).fit(QUANTILE_X).location_
        != DPQuantile(bounds=(-1.0, 1.0)).fit(QUANTILE_X).location_
    )


def test_layouts_and_types():
    expected = (
        DPQuantile(random_state=0, bounds=(-1.0, 1.0)).fit(QUANTILE_X.astype(np.float32)).location_
    )
    for rows in (
        np.asfortranarray(QUANTILE_X),
        np.repeat(QUANTILE_X, 2, axis=1)[:, ::2],
        QUANTILE_X.tolist(),
    ):
        np.testing.assert_allclose(
            DPQuantile(random_state=0, bounds=(-1.0, 1.0)).fit(rows).location_, expected, rtol=1e-5
        )
    frozen = QUANTILE_X.copy()
    frozen.flags.writeable = False
    DPQuantile(bounds=(-1.0, 1.0)).fit(frozen)
    np.testing.assert_array_equal(frozen, QUANTILE_X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns(frame):
    model = DPQuantile(bounds=(-1.0, 1.0)).fit(frame({"a": [0.1, 0.2], "b": [0.3, 0.4]}))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert (model.n_features_in_, model.location_.shape) == (2, (2,))


def test_score_is_minus_the_pinball_loss():
    model = DPQuantile(quantile=0.2, bounds=(-3, 3)).fit(QUANTILE_X)
    everywhere = np.tile(model.location_, (len(QUANTILE_X), 1))
    losses = mean_pinball_loss(QUANTILE_X, everywhere, alpha=0.2, multioutput="raw_values")
    assert model.score(QUANTILE_X) == pytest.approx(-losses.sum())
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
def test_quantiles_at_tiny_and_huge_budgets(epsilon):
    model = DPQuantile(epsilon, bounds=(-1.0, 1.0)).fit(QUANTILE_X)
    assert np.all(np.abs(model.location_) <= 1)
    assert model.privacy_spent_[0] <= epsilon
    assert 0 < model.error_bound_ <= 0.5


def test_quantile_of_one_row():
    assert DPQuantile(100.0, bounds=(0, 4)).fit([[1.0, 3.0]]).location_.shape == (2,)


def test_rows_that_are_not_numbers_are_not_counted():
    rows = np.concatenate([QUANTILE_X, np.full((5000, 3), QUANTILE_NAN)])
    with sklearn.config_context(assume_finite=True):
        released = DPQuantile(1e6, bounds=(-6, 6)).fit(rows).location_
        nobody = DPQuantile(bounds=(-1.0, 1.0)).fit(np.full((4, 1), QUANTILE_NAN)).location_
    assert rank_error(QUANTILE_X, released, 0.5).max() == 0
    assert abs(nobody[0]) <= 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, QUANTILE_NAN, INF, "1", None, True)]
    + [("quantile", v) for v in (0, 1, -0.1, QUANTILE_NAN, "median", None, [])]
    + [("adjacency", "remove-one"), ("random_state", -1), ("random_state", "a")]
    + [
        ("bounds", v)
        for v in ((1, 0), (0, 0), (0, QUANTILE_NAN), (-INF, 1), (0,), ([0, 0], 1), "ab", 3)
    ],
)
def test_bad_parameters_are_named(name, value):
    model = DPQuantile(**{name: value})
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(QUANTILE_X)
    assert not hasattr(model, "ledger_")
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises((ValueError, TypeError)),
    ):
        model.fit(QUANTILE_X)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.zeros(60), "1D array"),
        (np.full((6, 3), QUANTILE_NAN), "NaN"),
        (np.full((6, 3), INF), "infinity"),
        ([["60", "kilos"]] * 6, "numeric"),
        (sparse.csr_array(np.eye(3)), "[Ss]parse"),
    ],
)
def test_bad_data(data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPQuantile(bounds=(-1.0, 1.0)).fit(data)


# The scores that medians and quantiles are drawn by: definitions and brute force.


HALF = Fraction(1, 2)
every_score_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_tau = pytest.mark.parametrize("tau", [HALF, Fraction(1, 4), Fraction(9, 10)], ids=str)


def scores(values, tau, cells):
    """Return the score of every position, by definition; None is a null row."""
    values = [v for v in values if v is not None]
    target, found = tau * len(values), []
    for t in range(cells + 1):
        below, not_above = sum(v < t for v in values), sum(v <= t for v in values)
        found.append(max(below - target, target - not_above, Fraction(0)))
    return found


def computed_scores(values, tau, cells):
    """Return the scores of all positions from the runs that the query forms."""
    positions = np.array(sorted(v for v in values if v is not None), dtype=np.int32)
    starts, counts, steps = candidates(positions, tau, cells)
    assert counts.sum() == cells + 1
    np.testing.assert_array_equal(starts, np.cumsum(counts) - counts)
    return [Fraction(int(s), tau.denominator) for s in np.repeat(steps, counts)]


def data_sets(n_rows, cells):
    return itertools.combinations_with_replacement(range(cells + 1), n_rows)


@pytest.mark.covering
@every_tau
@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 4, 5])
def test_runs_of_equal_score_are_what_the_definition_says(n_rows, tau):
    for values in data_sets(n_rows, 5):
        assert computed_scores(values, tau, 5) == scores(values, tau, 5)


@pytest.mark.full
@every_score_adjacency
@every_tau
def test_no_neighbours_change_the_rank_score_by_more_than_stated(tau, adjacency):
    cells, widest = 6, Fraction(0)
    stated = Fraction(QuantileRank(0, tau).sensitivity(adjacency, 5).spread)
    found = functools.cache(lambda values: scores(values, tau, cells))
    for n_rows, null in [(1, 0), (2, 0), (3, 0), (4, 0), (3, 1)]:
        for values in data_sets(n_rows, cells):
            nulls = (None,) * null
            changes = (None,) if adjacency == "zero-out" else (None, *range(cells + 1))
            for change, i in itertools.product(changes, range(n_rows)):
                other = (*values[:i], change, *values[i + 1 :], *nulls)
                pairs = zip(found(values + nulls), found(other), strict=True)
                moved = [b - a for a, b in pairs]
                widest = max(widest, max(moved) - min(moved))
    assert widest <= stated + Fraction(1, 10**12)
    assert tau != HALF or widest == stated


@pytest.mark.full
@every_tau
def test_draws_have_the_law_of_the_definition(tau):
    values, cells = [0, 2, 2, 2, 5, 9, 9, 11], 12
    X = np.array([*values, NAN], dtype=float)[:, None]
    rows = RankRows(X, np.array([0.0]), np.array([12.0]), cells)
    query = QuantileRank(0, tau, cells)
    facts = query.sensitivity("replace-one", 9)
    noise = ExponentialMechanism(1.5).calibrate(facts, 1)
    bits = SeededBits(0)
    drawn = np.concatenate([query.draw(rows, noise, bits) for _ in range(3000)])
    law = np.exp([-float(s) / noise.scale for s in scores(values, tau, cells)])
    observed = np.bincount(drawn.astype(int), minlength=cells + 1)
    assert stats.chisquare(observed, 3000 * law / law.sum()).pvalue > 1e-6


def test_the_rate_is_rounded_down():
    for denominator, temperature in itertools.product([1, 2, 1000], [0.1, 3.0, 1e-300, 1e300]):
        rate = _quantiles.rate(denominator, temperature)
        assert 0 <= Fraction(rate) * denominator * Fraction(temperature) <= 1
    assert _quantiles.rate(2, float("inf")) == 0


def random_points(rng, n_features):
    points = rng.normal(size=(50, n_features))
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1)
    points[:4, 0], points[:4, 1:] = [1, -1, 1, -1], 0
    return points


@every_score_adjacency
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_no_neighbours_change_the_distance_score_by_more_than_stated(n_features, adjacency):
    rng = np.random.default_rng(0)
    points, widest = random_points(rng, n_features), 0.0
    for first, second in itertools.product(random_points(rng, n_features)[:12], repeat=2):
        moved, _ = distances_and_subgradients(points, first[:, None])
        if adjacency == "replace-one":
            moved = moved - distances_and_subgradients(points, second[:, None])[0]
        widest = max(widest, np.ptp(moved))
    stated = DistanceSum(n_features).sensitivity(adjacency, 9).spread
    assert 0.999 * stated < widest <= stated * (1 + 1e-12)


def test_distances_and_directions_by_definition():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) * np.exp(rng.normal(size=(3000, 1)))
    X[7] = X[8] = [0.1, 0.2, 0.3]
    X[9] = NAN
    rows = PointRows(X, L2Ball(2.0), 2.0)
    unit = np.delete(X, 9, axis=0) / 2
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1)
    points = np.concatenate([rng.normal(size=(9, 3)) / 3, [[0.05, 0.1, 0.15]]])
    value, slope = distances_and_subgradients(points, rows.columns())
    for point, v, s in zip(points, value, slope, strict=True):
        gaps = point - unit
        norms = np.linalg.norm(gaps, axis=1)
        assert v == pytest.approx(norms.sum(), rel=1e-12)
        expected = (gaps / np.where(norms > 1e-15, norms, np.inf)[:, None]).sum(axis=0)
        if norms.min() > 1e-15:
            np.testing.assert_allclose(s, expected, rtol=1e-9)
            np.testing.assert_allclose(DirectionSum(point).evaluate(rows), expected, rtol=1e-9)
    # the row itself contributes nothing
    one = PointRows(X[:1], L2Ball(2.0), 2.0)
    assert not DirectionSum(one.columns()[:, 0]).evaluate(one).any()


@pytest.mark.parametrize("gap", [0.0, 5e-324, 3e-162, 1e-141, 1e-139, 1e-3, 1.0])
def test_no_direction_is_longer_than_one(gap):
    rows = PointRows(np.zeros((1, 3)), L2Ball(1.0), 1.0)
    direction = DirectionSum(np.full(3, gap) / np.sqrt(3)).evaluate(rows)
    assert np.linalg.norm(direction) <= 1 + 1e-12
    assert gap < 1e-139 or np.linalg.norm(direction) > 1 - 1e-12


# Subgradient descent keeps the bound that its plan states.


def plan(**changes):
    public = {"n_rows": 1000, "n_coefs": 4, "row_gradient_bound": 1.0, "radius": 2.0, "mu": 0.5}
    return plan_subgradient(**{**public, "adjacency": "zero-out", **changes})


def test_the_number_of_steps_follows_the_rule():
    assert plan(mu=0.1).n_steps == (1000 * 0.1 / 2) ** 2 / 4
    assert plan(mu=0.1, adjacency="replace-one").n_steps == 157
    assert plan(mu=1e-3).n_steps == 100
    assert plan(mu=100.0).n_steps == 4000
    assert plan(mu=100.0, n_rows=10**6).n_steps == 500
    assert plan(n_steps=7).n_steps == 7
    assert plan(mu=0.5, n_steps=25).mu_step == 0.1


@pytest.mark.covering
@pytest.mark.parametrize("l2", [0.0, 1e-3, 1e3])
@pytest.mark.parametrize("n_steps", [2, 51, 400])
@pytest.mark.parametrize("mu", [0.01, 10.0])
def test_the_solver_keeps_its_bound(l2, n_steps, mu):
    noise = np.random.default_rng(0)
    target = np.array([1.0, 0.5, 0.0, -1.0])
    public = plan(l2=l2, n_steps=n_steps, mu=mu)
    sigma = np.sqrt(n_steps) / mu

    def gradient(coef):
        gap = coef - target
        direction = 1000 * gap / max(np.linalg.norm(gap), 1e-12)
        return direction + sigma * noise.normal(size=4)

    def objective(coef):
        return 1000 * np.linalg.norm(coef - target) + l2 / 2 * coef @ coef

    def runs():
        return [objective(subgradient_descent(gradient, (4,), public)) for _ in range(5)]

    # on the segment from the target to zero; the loss wins while 1000 >= l2 |target|
    shrunk = min(1.0, 1000 / (max(l2, 1e-300) * np.linalg.norm(target)))
    excess = np.mean(runs()) - objective(shrunk * target)
    assert -1e-6 < excess < public.error_bound
    assert public.error_bound <= 2 * 2.0 * (1000 + l2 * 2.0)


def test_a_penalty_chooses_a_radius_and_a_faster_schedule():
    free = plan(radius=None, l2=100.0)
    assert free.radius == 10.0
    with pytest.raises(ValueError, match="l2 must"):
        plan(radius=None)
    weights = [weight for _, weight in plan(l2=1e5, n_steps=4).schedule()]
    assert weights == [1, 2, 3, 4]
    assert [weight for _, weight in plan(n_steps=5).schedule()] == [0, 0, 1, 1, 1]


# Bad input to DPMedian: a clear error, and nothing fitted.


INPUT_X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", v) for v in (0, -1, QUANTILE_NAN, INF, "1", None, True)]
    + [("delta", v) for v in (-0.1, 1, QUANTILE_NAN, "x", None)]
    + [("mechanism", v) for v in ("laplace", None)]
    + [("data_norm", v) for v in (0, -1, QUANTILE_NAN, INF, 1e-200, True)]
    + [
        ("bounds", v)
        for v in ((1, 0), (0, QUANTILE_NAN), (-INF, 1), (0,), ([0] * 3, 1), "ab", (-1e200, 1))
    ]
    + [("max_iter", v) for v in (0, 1, 2.5, "many")]
    + [("adjacency", "remove-one"), ("random_state", -1)],
)
def test_bad_parameters_of_medians_are_named(name, value):
    model = DPMedian(**{name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(INPUT_X)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("epsilon", QUANTILE_NAN),
        ("delta", 1.0),
        ("delta", -0.1),
        ("delta", QUANTILE_NAN),
    ]
    + [("data_norm", INF), ("bounds", (1, 0)), ("adjacency", "x")],
)
@pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS])
def test_the_gate_does_not_rely_on_scikit_learn_s_validation(mechanism, name, value):
    model = DPMedian(**{"mechanism": mechanism, name: value})
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises(ValueError, match="must"),
    ):
        model.fit(INPUT_X)
    assert not hasattr(model, "ledger_")


@every_mechanism
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.zeros(60), "1D array"),
        (np.full((6, 3), QUANTILE_NAN), "NaN"),
        ([["60", "kilos"]] * 6, "numeric"),
        (sparse.csr_array(np.eye(3)), "[Ss]parse"),
    ],
)
def test_bad_data_for_medians(mechanism, data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DPMedian(mechanism=mechanism, data_norm=1.0).fit(data)


# The privacy claims of medians and quantiles: exact laws, coupled traces, planted bugs.


EPSILON, DELTA = 2.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
LAYOUTS = ("C", "F", "strided", "read-only", "float32")


def rank(adjacency, quantile=0.5, epsilon=EPSILON):
    bounds = (0, 2**30)
    return DPQuantile(epsilon, quantile=quantile, adjacency=adjacency, bounds=bounds)


@every_score_adjacency
@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("quantile", [0.5, 0.25])
def test_rank_claim_is_kept_and_tight(quantile, n_features, adjacency):
    pair = worst_rank_pair(adjacency, n_features)
    measured = rank_epsilon(rank(adjacency, quantile), *pair)
    assert 0.99 * EPSILON <= measured <= EPSILON
    if quantile == 0.5:
        median = DPMedian(EPSILON, mechanism="rank", adjacency=adjacency, bounds=(0, 2**30))
        assert rank_epsilon(median, *pair) == measured


@every_score_adjacency
@on_examples(30)
def test_rank_claim_is_kept_on_any_neighbours(adjacency, data):
    pair = data.draw(neighbours(adjacency, null_row=NAN, layouts=LAYOUTS))
    quantile = data.draw(st.sampled_from([0.5, 0.25, 0.9, 1 / 3, 0.001]))
    bounds = data.draw(st.sampled_from([(-1.0, 1.0), (0.0, 1e-300), (-8e307, 8e307)]))
    model = DPQuantile(EPSILON, quantile=quantile, adjacency=adjacency, bounds=bounds)
    assert rank_epsilon(model, pair[0].X, pair[1].X) <= EPSILON


@pytest.mark.sample(3)
@every_score_adjacency
@pytest.mark.parametrize("place", [{"data_norm": 1.0}, {"bounds": (-1.0, 1.0)}])
def test_exponential_claim_is_kept_and_tight(place, adjacency):
    model = DPMedian(EPSILON, mechanism="exponential", adjacency=adjacency, **place)
    measured = line_epsilon(model, *worst_line_pair(adjacency))
    # the mass is not quite all at the end
    assert 0.95 * EPSILON <= measured <= EPSILON


@pytest.mark.sample(1)
@every_score_adjacency
def test_exponential_claim_is_kept_on_many_neighbours(adjacency):
    rng = np.random.default_rng(0)
    model = DPMedian(EPSILON, mechanism="exponential", adjacency=adjacency, data_norm=1.0)
    for n_rows in (1, 2, 5, 20):
        for _ in range(5):
            first = rng.uniform(-1, 1, size=(n_rows, 1))
            second = first.copy()
            second[0] = NAN if adjacency == "zero-out" else rng.choice([-1, 1, first[-1, 0]])
            assert line_epsilon(model, first, second) <= EPSILON * (1 + 1e-6)


def gradient(adjacency, **options):
    return DPMedian(
        EPSILON,
        DELTA,
        mechanism="gradient",
        adjacency=adjacency,
        random_state=0,
        **{"data_norm": 1.0, **options},
    )


def gradient_mu(model, first, second):
    def fit(X):
        with sklearn.config_context(assume_finite=True):
            clone(model).fit(X)

    return _audit.coupled_mu(fit, first, second)


def worst_gradient_pair(adjacency, n_features):
    """Return many rows at 0, which hold the iterates, and a far one that changes sides."""
    first = np.zeros((200, n_features))
    first[0] = 10
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else -10
    return first, second


@pytest.mark.sample(1)
@every_score_adjacency
@pytest.mark.parametrize("domain", [{"data_norm": 3.0}, {"bounds": (-2.0, 2.0)}], ids=str)
@pytest.mark.parametrize(("n_features", "max_iter"), [(1, 6), (3, 700)])
def test_gradient_claim_is_kept_and_tight(n_features, max_iter, domain, adjacency):
    model = gradient(adjacency, max_iter=max_iter, **domain)
    measured = gradient_mu(model, *worst_gradient_pair(adjacency, n_features))
    assert 0.99 * CLAIMED_MU <= measured <= CLAIMED_MU


@every_score_adjacency
@on_examples(30)
def test_gradient_claim_is_kept_on_any_neighbours(adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-99, 1e99]))
    pair = data.draw(neighbours(adjacency, radius=radius, null_row=NAN, layouts=LAYOUTS))
    bounds = data.draw(st.sampled_from([None, (-radius, radius)]))
    model = gradient(adjacency, data_norm=radius, bounds=bounds, max_iter=5)
    assert gradient_mu(model, pair[0].X, pair[1].X) <= CLAIMED_MU


MODELS = [
    DPQuantile(EPSILON, random_state=0, bounds=(-1.0, 1.0)),
    DPMedian(EPSILON, mechanism="rank", random_state=0, data_norm=1.0),
    gradient("replace-one", max_iter=5),
    DPMedian(EPSILON, mechanism="exponential", random_state=0, data_norm=1.0),
]
every_kind = pytest.mark.parametrize("model", MODELS, ids=str)


def some_rows(n_rows, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, 4))


@pytest.mark.sample(3)
@every_kind
def test_a_fit_keeps_nothing_as_long_as_the_data(model):
    sizes = set()
    for n_rows in (137, 503):
        fitted = clone(model).fit(some_rows(n_rows))
        sizes.add(len(pickle.dumps(fitted)))
        assert not any(n_rows in np.shape(value) for value in vars(fitted).values())
    assert len(sizes) == 1


@every_kind
def test_without_the_noisy_statistic_nothing_depends_on_the_data(model):
    hashes = set()
    for seed in range(3):
        X = some_rows(40, seed)
        X[seed] *= 10.0 ** (100 * seed)
        with (
            mock.patch.object(mechanisms, "add_noise", lambda x, *_: np.full(x.shape, 0.25)),
            recorded_draws(QuantileRank),
            recorded_draws(DistanceSum),
        ):
            hashes.add(joblib.hash(vars(clone(model).fit(X))))
    assert len(hashes) == 1


# Known bugs, planted one by one -----------------------------------------------------------


def stated_as(monkeypatch, query, change):
    real = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda *args: change(real, *args))


def halved(real, query, adjacency, n_rows):
    facts = real(query, adjacency, n_rows)
    return replace(facts, spread=facts.spread / 2, l2=facts.l2 / 2)


def as_zero_out(real, query, adjacency, n_rows):
    return real(query, "zero-out", n_rows)


@pytest.mark.sample(1)
@pytest.mark.parametrize("bug", [halved, as_zero_out])
def test_half_the_sensitivity_is_caught(bug, monkeypatch):
    for query in (QuantileRank, DistanceSum, DirectionSum):
        stated_as(monkeypatch, query, bug)
    pair = worst_rank_pair("replace-one")
    assert rank_epsilon(rank("replace-one"), *pair) > 1.9 * EPSILON
    model = DPMedian(EPSILON, mechanism="exponential", data_norm=1.0)
    assert line_epsilon(model, *worst_line_pair("replace-one")) > 1.8 * EPSILON
    model = gradient("replace-one", max_iter=6)
    assert gradient_mu(model, *worst_gradient_pair("replace-one", 1)) > 1.9 * CLAIMED_MU


def test_the_full_budget_for_every_feature_is_caught(monkeypatch):
    monkeypatch.setattr(_quantile, "_share", lambda epsilon, n_parts: epsilon)
    pair = worst_rank_pair("replace-one", 3)
    with pytest.raises(BudgetError):
        rank_epsilon(rank("replace-one"), *pair)
    # and by the law, with a ledger that forgets
    monkeypatch.setattr(Record, "append", lambda ledger, new: replace(ledger, releases=(new,)))
    assert rank_epsilon(rank("replace-one"), *pair) > 2.9 * EPSILON


def test_a_target_that_counts_null_rows_is_caught(monkeypatch):
    first, second = worst_rank_pair("zero-out")
    assert rank_epsilon(rank("zero-out"), first, second) <= EPSILON

    def counting(positions, tau, cells):
        ranks = np.repeat(np.arange(len(positions) + 1), 2)[:-1]
        after = np.repeat(positions.astype(np.int64), 2) + np.tile([0, 1], len(positions))
        starts = np.append(0, after)
        # the target is n tau, whatever rows are null
        steps = np.abs(tau.denominator * ranks - tau.numerator * len(first))
        return starts, np.diff(starts, append=cells + 1), steps

    monkeypatch.setattr(_quantiles, "candidates", counting)
    assert rank_epsilon(rank("zero-out"), first, second) > 1.9 * EPSILON


def test_halved_noise_is_caught(monkeypatch):
    X = np.random.default_rng(0).normal(size=(10, 500))
    model = gradient("replace-one", max_iter=5)
    assert not _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X))
    real = mechanisms.add_noise

    def quieter(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", quieter)
    assert _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X))


def test_steps_sold_at_half_the_price_exceed_the_budget(monkeypatch):
    monkeypatch.setattr(_median, "GaussianMechanism", lambda mu: GaussianMechanism(2 * mu))
    with pytest.raises(BudgetError):
        gradient("replace-one", max_iter=5).fit(np.zeros((9, 2)))
