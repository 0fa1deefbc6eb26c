# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Regression with heavy-tailed targets: DPLpRegressor, its thresholds, claims and planted bugs."""

import contextlib
import functools
import itertools
import math
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from skdp import DPLpRegressor, DPRidge, papers, solvers
from skdp._bisection import (
    N_CELLS,
    Columns,
    GradientNorm,
    MagnitudeCells,
    MagnitudeSides,
    RowNorm,
    SmallEntry,
    TargetDistance,
    TargetValue,
    scales_in_cells,
)
from skdp._losses.clipped import ClippedLoss
from skdp._quantiles import MagnitudeThreshold, TargetMedian, candidates, rate
from skdp._rows.linear import StandardColumns, regression_rows, unit_rows
from skdp.audit import trace_privacy
from skdp.exceptions import BudgetError, NoisyEstimateWarning, PrivacyWarning
from skdp.linear_model import _lp_regressor
from skdp.linear_model._scales import ScalesPlan, plan_clip, plan_scales
from skdp.privacy import gdp_mu
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import ExponentialMechanism
from skdp.solvers.base import Problem
from skdp.solvers.gradient import ClippedGradient, GradientPlan, regression_steps
from tests import _audit
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    as_dense,
    as_layout,
    make_row,
    neighbours,
    on_examples,
)
from tests._solvers import SQUARED_LOSS, linear_model, solver_of

# What private regression computes: near the truth, in any units, at the stated price.


W = np.array([1.0, -2.0, 0.5])


def heavy(n_rows=10_000, seed=0, df=2.1, x_scale=1.0, offset=3.0):
    """Return rows and noise of Student's law, and new rows with targets free of noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(df, size=(n_rows + 1000, 3)) * x_scale
    clean = X @ (W / x_scale) + offset
    y = clean[:n_rows] + rng.standard_t(df, size=n_rows)
    return X[:n_rows], y, X[n_rows:], clean[n_rows:]


def error(model, X, y, X_new, clean):
    """Return the median error of predictions over the median size of targets."""
    predicted = model.fit(X, y).predict(X_new)
    return np.median(np.abs(predicted - clean)) / np.median(np.abs(clean - np.median(clean)))


WAYS = [
    ({}, 0.05), ({"p": 1}, 0.05), ({"p": "huber"}, 0.05), ({"p": 4}, 0.25), ({"solver": "gd"}, 0.1),
    ({"solver": "sgd"}, 0.1), ({"solver": "newton"}, 0.15), ({"solver": "newton", "p": 1}, 0.15),
    ({"solver": "phased"}, 0.15), ({"solver": "localized"}, 0.25), ({"delta": 0.0}, 0.3),
    ({"solver": "accelerated-one-pass"}, 0.25), ({"adjacency": "zero-out"}, 0.05),
    ({"clipping_norm": "private"}, 0.3), ({"clipping_norm": 1.0}, 0.1), ({"p": 1.5}, 0.05),
    ({"p": 3}, 0.15), ({"p": 1.5, "solver": "newton"}, 0.2),
]  # fmt: skip


def test_powers_between_those_of_old_fit_between_them():
    # skewed noise: the constant that a power is least at moves upwards with the power
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(2000, 2)), 4 * rng.beta(1, 4, size=2000)
    found, expected = [], []
    for p in (1, 1.25, 1.5, 2, 3, 4):
        model = DPLpRegressor(
            epsilon=1e7, p=p, solver="output", l2=1.0, clipping_norm=300.0, data_norm=1.5,
            target_scale=1.0, random_state=0,
        )  # fmt: skip
        found.append(model.fit(X, X @ [1.0, -1.0] + noise).intercept_)
        least = minimize_scalar(lambda c, p=p: (np.abs(noise - c) ** p).sum(), bounds=(0, 4))
        expected.append(least.x)
    assert np.all(np.diff(expected) > 0.04)
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.mark.full
@pytest.mark.parametrize(("options", "within"), WAYS, ids=str)
def test_heavy_tails_at_epsilon_one_are_near_the_truth(options, within):
    model = linear_model(DPLpRegressor, epsilon=1.0, random_state=1, **options)
    assert error(model, *heavy()) < within
    assert model.privacy_spent_[0] <= 1


@pytest.mark.sample(1)
@pytest.mark.parametrize(("x_scale", "y_scale"), [(1e-9, 1e12), (300.0, 0.01), (1e20, 1e-20)])
def test_no_scale_of_the_data_is_assumed(x_scale, y_scale):
    X, y, X_new, clean = heavy(x_scale=x_scale, offset=1e3)
    data = X, y * y_scale, X_new, clean * y_scale
    assert error(DPLpRegressor(random_state=1), *data) < 0.05


@pytest.mark.covering
@pytest.mark.parametrize("solver", ["accelerated", "newton", "localized", "accelerated-one-pass"])
@pytest.mark.parametrize("p", [1, 2, 4, "huber", 1.5, 3])
def test_units_given_in_proportion_change_nothing_but_the_unit(solver, p):
    X, y, X_new, _ = heavy(500)
    options = {"p": p, "solver": solver_of(solver), "random_state": 0}
    model = linear_model(
        DPLpRegressor, data_norm=2.0, target_scale=3.0, coef_bound=5.0, l2=0.25, **options
    )
    expected = model.fit(X, y).predict(X_new)
    a, b = 4.0, 0.5
    power = 2 if p == "huber" else p
    # the loss grows as b^power, a penalty as (b / a)^2
    model = DPLpRegressor(
        data_norm=2.0 * a, target_scale=3.0 * b, coef_bound=5.0 * b / a,
        l2=0.25 * b ** (power - 2) * a**2, **options,
    )  # fmt: skip
    found = model.fit(X * a, y * b).predict(X_new * a)
    np.testing.assert_allclose(found, expected * b, rtol=1e-9, atol=1e-12)


@pytest.mark.full
def test_drawn_units_move_with_the_data_up_to_their_grid():
    X, y, X_new, clean = heavy()
    first = DPLpRegressor(epsilon=4.0, random_state=0).fit(X, y)
    second = DPLpRegressor(epsilon=4.0, random_state=0).fit(X * 1e3, y * 50.0 + 700.0)
    ratio = second.feature_scale_ * second.data_norm_ / first.feature_scale_ / first.data_norm_
    np.testing.assert_allclose(ratio, 1e3, rtol=0.4)
    assert second.target_scale_ / first.target_scale_ == pytest.approx(50, rel=0.3)
    gap = second.predict(X_new * 1e3) - (50.0 * first.predict(X_new) + 700.0)
    assert np.median(np.abs(gap)) < 0.1 * 50 * np.median(np.abs(clean))


def test_a_few_rows_of_any_size_do_not_move_the_fit():
    X, y, X_new, clean = heavy()
    X[:50], y[:50] = 1e200, -1e300
    assert error(DPLpRegressor(random_state=1), X, y, X_new, clean) < 0.2


@pytest.mark.full
@pytest.mark.parametrize("quantile", [0.1, 0.9])
def test_quantiles_of_the_target_are_fitted(quantile):
    X, y, _, _ = heavy()
    model = DPLpRegressor(epsilon=4.0, p=("quantile", quantile), solver="accelerated")
    below = np.mean(y < model.set_params(random_state=0).fit(X, y).predict(X))
    assert abs(below - quantile) < 0.05


@pytest.mark.full
def test_a_longer_clip_is_nearer_to_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    noise = rng.exponential(2.0, size=20_000)
    y = X @ W[:2] + noise
    means = [
        linear_model(DPLpRegressor, epsilon=8.0, random_state=0, **options).fit(X, y).intercept_
        for options in ({"clipping_norm": 0.05}, {"clipping_norm": 20.0})
    ]
    assert means[0] < 1.7
    assert means[1] == pytest.approx(2.0, abs=0.15)


@pytest.mark.full
def test_sparse_rows_are_the_same_rows():
    X, y, _, _ = heavy(4000)
    X[np.abs(X) < 0.7] = 0.0
    # with a penalty columns keep their scales
    for solver in ("accelerated", "newton", "sgd", "localized"):
        dense, csr = (
            linear_model(DPLpRegressor, random_state=0, l2=1e-6, solver=solver).fit(rows, y)
            for rows in (X, sparse.csr_array(X))
        )
        assert dense.data_norm_ == csr.data_norm_
        np.testing.assert_allclose(dense.coef_, csr.coef_, rtol=1e-6, atol=1e-8)


# -- what is released, and when --------------------------------------------------------


def raw_table(n_rows, seed=0, offset=4000.0):
    """Return rows in units of their own, and targets far from zero."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, 3))
    y = offset + 3000.0 * (Z @ W / 2.3 + 0.3 * rng.normal(size=n_rows))
    return Z, y


@pytest.mark.full
@pytest.mark.parametrize("n_rows", [400, 1000])
def test_scales_are_found_from_few_rows(n_rows):
    scores = []
    for seed in range(3):
        Z, y = raw_table(n_rows, seed)
        scores.append(DPLpRegressor(1.0, random_state=seed).fit(100 * Z, y).score(100 * Z, y))
    # guesses that rows and targets are standardised have scores below zero
    assert np.median(scores) > 0.5


def test_the_unit_of_targets_is_worth_more_where_rows_are_few():
    shares = {}
    for epsilon in (0.06, 0.08, 0.09, 0.13, 0.16, 0.25, 0.35, 0.5):
        given = {"n_rows": 1000, "adjacency": "replace-one", "n_columns": 5}
        plan = plan_scales(epsilon, 1e-6, **ALL_SCALES, **given)
        shares[epsilon] = plan.mu**2 / gdp_mu(epsilon, 1e-6) ** 2
        assert plan.n_columns == (5 if epsilon > 0.3 else 0)
    assert shares[0.06] == 0
    assert shares[0.08] == pytest.approx(0.85, rel=1e-6) == shares[0.09]
    assert 0.85 > shares[0.13] > shares[0.16] > shares[0.25]
    # units of columns as well
    assert 0.3 > shares[0.35] > shares[0.5]
    assert shares[0.25] == pytest.approx(0.2, rel=1e-6) == shares[0.5]
    scores = []
    for seed in range(10):
        Z, y = raw_table(1000, seed, offset=1e5)
        with pytest.warns(NoisyEstimateWarning, match="took most of the budget. Give public"):
            scores.append(DPLpRegressor(0.11, random_state=seed).fit(Z, y).score(Z, y))
    # about -1000 where targets are taken to be standardised
    assert np.median(scores) > -0.3


def test_a_spread_is_near_cells_that_have_rows():
    found = []
    for seed in range(60):
        Z, y = raw_table(300, seed, offset=1e4)
        model = DPLpRegressor(1.0, random_state=seed).fit(Z, y)
        found.append(model.target_scale_ / np.quantile(np.abs(y - model.target_center_), 0.75))
    # 8 to 14 in three fits if spreads are searched anywhere
    assert max(found) < 4


def test_beside_many_columns_what_is_searched_of_targets_is_paid_for_more_often():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 64))
    y = 50 * X[:, :8].sum(axis=1) + rng.normal(size=1000) + 3000
    given = {"n_rows": 1000, "adjacency": "replace-one", "n_columns": 64}
    plan = plan_scales(1.0, 1e-6, **ALL_SCALES, **given)
    assert plan.n_columns == 64
    model = DPLpRegressor(1.0, random_state=0).fit(X, y)
    prices = [math.sqrt(one.count) * one.noise.mu for one in model.ledger_.releases[:5]]
    assert prices == pytest.approx(
        [plan.unit * math.sqrt(k) for k in (2 * 4, 4 + 64, 64 / 4, 64 / 4, 4 * 2)], rel=1e-6
    )
    assert math.hypot(*prices) < plan.mu
    # about 120
    assert 60 < model.target_scale_ < 240


def test_columns_on_their_own_scales_and_offsets_cost_nothing():
    Z, y = raw_table(5000)
    X = Z * [1e-4, 1.0, 1e5] + [1.0, 0.0, -3e6]
    model = DPLpRegressor(1.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    np.testing.assert_allclose(model.feature_scale_, [1e-4, 1.0, 1e5], rtol=0.6)
    np.testing.assert_allclose(model.feature_center_, [1.0, 0.0, -3e6], rtol=0.05, atol=0.2)
    # coefficients are those of the columns as they are
    expected = model.predict(X)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, expected, rtol=1e-9)


def test_indicators_are_on_a_scale_of_their_own():
    rng = np.random.default_rng(0)
    group = rng.choice(5, 6000, p=[0.5, 0.3, 0.12, 0.05, 0.03])
    X = np.hstack([np.eye(5)[group], rng.normal(50, 10, size=(6000, 1))])
    y = X @ [0.0, 30.0, 60.0, -40.0, 90.0, 1.0] + 5 * rng.normal(size=6000)
    model = DPLpRegressor(2.0, random_state=0).fit(X, y)
    assert (model.feature_scale_[:5] > 0.4).all()
    assert (model.feature_scale_[:5] < 2.5).all()
    assert model.score(X, y) > 0.9


def test_penalties_and_bounds_are_for_columns_as_they_are():
    X, y = raw_table(3000)
    for options in ({"l2": 1.0}, {"coef_bound": 1.0}, {"data_norm": 3.0, "l2": 1e-9}):
        model = DPLpRegressor(random_state=0, **options).fit(X, y)
        np.testing.assert_array_equal(model.feature_scale_, 1.0)
        np.testing.assert_array_equal(model.feature_center_, 0.0)


def test_a_norm_changes_nothing_where_units_are_found():
    Z, y = raw_table(5000)
    # all that matters is in a direction that hardly varies
    X = np.column_stack([Z[:, 1:], np.zeros(5000), 0.01 * Z[:, 0]])
    y = 300.0 * Z[:, 0] + 100.0 * np.random.default_rng(1).normal(size=5000)
    for public in ({}, {"target_scale": 300.0}):
        # columns and R, R alone, and nothing
        for few, found in ((5000, True), (400, True), (100, False)):
            fits = [
                DPLpRegressor(0.5, random_state=0, data_norm=norm, **public).fit(X[:few], y[:few])
                for norm in (None, 5.0, 5e9)
            ]
            if found:
                assert len({fit.data_norm_ for fit in fits}) == 1
                for fit in fits[1:]:
                    np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
            else:
                assert [fit.data_norm_ for fit in fits] == [2.0, 5.0, 5e9]
            if few == 5000:
                assert 0.003 < fits[1].feature_scale_[3] < 0.03
                assert fits[1].score(X, y) > 0.8
            else:
                assert (fits[1].feature_scale_ == 1).all()


MOMENTS = ("moments", 2, 9.0)
FOR_ROWS = [{"l2": 1.0}, {"coef_bound": 9.0}, {"clipping_norm": MOMENTS}, {"delta": 0.0}, "csr"]


@pytest.mark.parametrize("given", FOR_ROWS)
def test_a_norm_is_that_of_the_rows_where_units_of_columns_cannot_be_had(given):
    Z, y = raw_table(5000)
    X, given = (sparse.csr_array(Z), {}) if given == "csr" else (Z, given)
    model = DPLpRegressor(random_state=0, data_norm=5.0, **given).fit(X, y)
    assert model.data_norm_ == 5.0
    assert (model.feature_scale_ == 1).all()


def test_too_few_rows_are_warned_of_from_public_numbers():
    X, y = raw_table(60)
    for data in ((X, y), (1e9 * X, -y)):
        model = DPLpRegressor()
        with pytest.warns(NoisyEstimateWarning, match="data_norm and target_scale") as caught:
            model.fit(*data)
        assert caught[0].filename == __file__
        assert (model.data_norm_, model.target_scale_) == (math.sqrt(3), 1.0)
        assert model.target_center_ == 0
    with pytest.warns(NoisyEstimateWarning, match="a public number for target_scale, or"):
        DPLpRegressor(data_norm=3.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPLpRegressor(data_norm=3.0, target_scale=3000.0).fit(X, y)
        DPLpRegressor().fit(*raw_table(600))
    with pytest.warns(NoisyEstimateWarning, match="mostly noise"):
        DPLpRegressor(l2=1.0).fit(np.zeros((1000, 3)), np.arange(1000.0))


@pytest.mark.parametrize("times", [1e-3, 100.0, 1e4])
def test_a_unit_of_targets_that_is_far_off_is_brought_near(times):
    X, y, _, _ = heavy(4000)
    usual = np.quantile(np.abs(y), 0.75)
    given = times * usual
    with pytest.warns(
        NoisyEstimateWarning, match=r"target_scale=.* is far from what was found, an"
    ):
        model = linear_model(DPLpRegressor, target_scale=given, random_state=0).fit(X, y)
    assert 0.15 * usual < model.target_scale_ < 3 * usual
    near = linear_model(DPLpRegressor, target_scale=usual, random_state=0).fit(X, y)
    assert near.target_scale_ == usual
    assert near.score(X, y) - 0.1 < model.score(X, y)
    # one of a threshold, a penalty or a bound means what it says; and with few rows nothing is seen
    for options in ({"p": "huber"}, {"l2": 1.0}, {"coef_bound": 1.0}, {"solver": "gd"}):
        kept = linear_model(DPLpRegressor, target_scale=given, max_iter=1, **options).fit(X, y)
        assert kept.target_scale_ == given
    few = linear_model(DPLpRegressor, target_scale=given).fit(X[:100], y[:100])
    assert few.target_scale_ == given


def test_scales_are_on_the_ledger_if_there_are_enough_rows():
    X, y, _, _ = heavy(4000)
    few = DPLpRegressor().fit(X[:60], y[:60])
    assert len(few.ledger_.releases) == 1
    # medians of targets, cells, medians and cells of columns that are away from 0, spreads; beside
    # a unit of targets that is given a look at their size; after the steps a glance far out
    for options, searches in [
        ({}, 5), ({"data_norm": 1.0}, 5), ({"target_scale": 2.0}, 5),
        ({"data_norm": 1.0, "target_scale": 2.0}, 5), ({"fit_intercept": False}, 2),
        ({"data_norm": 1.0, "target_scale": 2.0, "l2": 1.0}, 0), ({"l2": 1.0}, 3),
        ({"clipping_norm": "private"}, 6),
    ]:  # fmt: skip
        model = linear_model(DPLpRegressor, max_iter=5, **options).fit(X, y)
        private = options.get("clipping_norm") == "private"
        glances = "l2" not in options
        assert len(model.ledger_.releases) == searches + (1 if private else 2) + glances
        searched = model.ledger_.releases[: searches - private]
        price = sum(r.count * r.noise.mu**2 for r in searched)
        assert price <= 0.2 * gdp_mu(1.0, 1e-6) ** 2
        assert (price > 0) == bool(searches)
        assert 0.99 < model.privacy_spent_[0] <= model.epsilon
    assert model.target_center_ == pytest.approx(3.0, abs=0.5)
    pure = DPLpRegressor(delta=0.0).fit(X, y)
    assert len(pure.ledger_.releases) == 5
    assert pure.privacy_spent_ == (pytest.approx(1.0), 0.0)


ALL_SCALES = {"with_radius": True, "with_scale": True, "with_center": True}


def test_prices_of_draws_fall_with_the_rows():
    totals = []
    for n_rows in (100, 800, 3_000, 4_000, 10_000, 100_000):
        plan = plan_scales(1.0, 0.0, n_rows=n_rows, adjacency="replace-one", **ALL_SCALES)
        totals.append(sum(plan.prices))
        assert plan.mu == 0
        assert (plan.ranks.tail == 0.25) == (n_rows >= 4_000 or not plan.prices)
    assert totals[0] == 0.0
    assert 0.2 < totals[1] <= 0.3
    assert totals[3] == pytest.approx(0.2)
    assert totals[3] > totals[4] > 9 * totals[5] > 0
    one = plan_scales(1e-9, 0.0, n_rows=10**6, adjacency="zero-out", **ALL_SCALES)
    assert one.prices == ()


def test_searches_cost_little_where_there_are_rows():
    total, found = gdp_mu(1.0, 1e-6), {}
    for n_rows in (60, 300, 600, 1_000, 10_000, 100_000):
        plan = plan_scales(
            1.0, 1e-6, n_rows=n_rows, adjacency="replace-one", n_columns=10, **ALL_SCALES
        )
        assert plan.prices == ()
        assert plan.mu**2 <= (0.2 if plan.n_columns else 0.85) * total**2 * (1 + 1e-8)
        found[n_rows] = plan
    assert found[60].n_releases == 0
    assert [found[n].n_columns for n in (300, 600, 1_000, 10_000)] == [0, 10, 10, 10]
    assert found[300].n_releases < found[600].n_releases == found[100_000].n_releases
    # squares of what a search costs fall with the square of the rows, from some of these on
    plans = {
        n: plan_scales(1.0, 1e-6, n_rows=n, adjacency="replace-one", n_columns=10, **ALL_SCALES)
        for n in (4_000, 100_000, 1_000_000)
    }
    assert plans[100_000].mu == pytest.approx(10 * plans[1_000_000].mu)
    assert plans[1_000_000].mu ** 2 < 1e-4 * total**2
    # 100 ranks for a fifth of the budget, and more, for rare values, for a tenth
    assert 90 < plans[4_000].unit * 4_000 < 100.0001
    assert 0.05 < found[10_000].mu ** 2 / total**2 <= 0.1 * (1 + 1e-6)
    assert plans[100_000].unit * 100_000 == pytest.approx(300)
    # a row that vanishes moves half as much
    zero_out = plan_scales(1.0, 1e-6, n_rows=10_000, adjacency="zero-out", **ALL_SCALES)
    other = plan_scales(1.0, 1e-6, n_rows=20_000, adjacency="replace-one", **ALL_SCALES)
    assert zero_out.unit == other.unit


def test_a_threshold_needs_rows_and_a_budget():
    assert plan_clip(0.0, n_rows=10**6, tail=1.0).prices == ()
    assert plan_clip(1.0, n_rows=300, tail=1.0).prices == ()
    assert plan_clip(1.0, n_rows=10**4, tail=1.0).prices == (0.1,)
    assert plan_clip(1.0, n_rows=10**4, tail=900.0).tail == 900


def test_moments_make_the_clip_that_theory_asks_for():
    X, y, _, _ = heavy(1000)
    model = DPLpRegressor(
        data_norm=2.0,
        target_scale=3.0,
        clipping_norm=("moments", 4.0, 12.0),
        solver=solvers.Output(minimizer="newton"),
    )
    model.n_features_in_ = 3
    first = model._prepared(1000, 3, None)
    problem = first.problem
    plan = model._planned(problem, model.solver, model._units(None, first.scales), None)
    # a gradient of squares is a row times a residual
    clip = 12.0 / 2.0 / 3.0 * problem.signal**0.25
    assert plan.problem.loss.clip == pytest.approx(clip)
    assert plan.problem.moments == pytest.approx((4.0, 2.0))
    assert model.fit(X, y).privacy_spent_[0] <= 1


def test_the_loss_of_a_plan_is_clipped():
    # what sensitivities are stated from is the loss that is minimised
    model = DPLpRegressor(solver=solvers.Output(minimizer="newton"), clipping_norm=0.3)
    model.n_features_in_ = 3
    first = model._prepared(50, 3, None)
    plan = model._planned(first.problem, model.solver, model._units(None, first.scales), None)
    assert isinstance(plan.problem.loss, ClippedLoss)
    assert plan.problem.gradient_sensitivity == pytest.approx(2 * 0.3)


def test_public_numbers_are_printed(capsys):
    X, y, _, _ = heavy(200)
    DPLpRegressor(verbose=1).fit(X, y)
    assert " releases from " in capsys.readouterr().out


def test_units_map_there_and_back():
    given = {"radius": 2.0, "longest": 6.0, "center": 5.0, "scale": 3.0}
    units = _lp_regressor.Units(**given, intercept=0.1, power=2.0)
    coef, intercept = units.original(np.array([1.0, -1.0, 10.0]))
    np.testing.assert_allclose(coef, [1.5, -1.5])
    assert intercept == pytest.approx(5.0 + 3.0)
    assert units.penalty(0.0) == 0.0
    assert units.penalty(8.0) == pytest.approx(2.0)
    assert units.coef_bound(None) is None
    assert units.gradient(6.0) == pytest.approx(1.0)


def test_what_a_problem_has_left_for_one_release():
    problem = Problem(
        n_rows=10, n_features=2, loss=None, intercept=0.0, epsilon=1.0, delta=0.0,
        adjacency="zero-out", scale_prices=(0.05, 0.2), longest_row=6.0,
    )  # fmt: skip
    assert problem.pure_epsilon + 0.25 <= 1.0
    assert problem.pure_epsilon == pytest.approx(0.75)
    assert problem.row_norm == 6.0


def test_noise_of_all_steps_is_bounded_in_a_prediction():
    plan = GradientPlan(16, 0.2, 0.2, 26.0, True, 0.1, 0.0, None, True)
    for along in (1.0, 24.0, 1e4):
        steps = regression_steps(plan, along=along)
        assert steps.mu == plan.mu
        assert steps.n_steps == 32
        assert steps.step_size <= 32
        assert steps.noise * steps.step_size * steps.n_steps < 1.3
    assert regression_steps(plan, along=24.0, n_steps=5).n_steps == 5
    flat = regression_steps(plan, along=24.0, flat=True)
    assert flat.noise * flat.step_size * flat.n_steps**1.5 == pytest.approx(4.0)


def test_few_short_steps_move_an_intercept():
    # so little signal that nothing else is learned, and targets a unit away from their origin
    predicted = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(1000, 5)), 1 + 0.3 * rng.normal(size=1000)
        model = DPLpRegressor(0.1, data_norm=5**0.5, target_scale=1.0, random_state=seed)
        predicted.append(model.fit(X, y).predict(X).mean())
    assert np.mean(predicted) > 0.17


def test_targets_too_close_together_for_their_size_are_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    y = X.sum(axis=1) + rng.normal(size=5000)
    # R2 is -1e12: nothing between numbers ten billion times as large is told apart
    with pytest.warns(NoisyEstimateWarning, match="public numbers for data_norm and target_scale"):
        DPLpRegressor(4.0, random_state=0).fit(X, 12_345_678_901.0 + y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoisyEstimateWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        model = DPLpRegressor(4.0, random_state=0).fit(X, 12_345_678.0 + y)
    assert model.score(X, 12_345_678.0 + y) > 0.6


@pytest.mark.full
def test_where_most_targets_are_equal_there_is_a_unit():
    X, _, _, _ = heavy()
    mostly = np.arange(len(X)) % 6 == 0
    # the unit is that of the others
    for center in (0.0, 1000.0):
        model = DPLpRegressor().fit(X, center + mostly)
        assert model.target_center_ == pytest.approx(center, abs=1e-2)
        assert 0.5 <= model.target_scale_ <= 2.0
    model = DPLpRegressor().fit(X, np.full(len(X), 1000.0))
    assert model.target_center_ == 1000.0
    assert model.target_scale_ == 1000.0
    model = DPLpRegressor(delta=0.0).fit(X, 1000.0 + mostly)
    assert model.target_center_ == pytest.approx(1000.0, abs=1.0)
    assert 500 < model.target_scale_ < 2000
    model = DPLpRegressor(delta=0.0).fit(np.zeros_like(X), mostly.astype(float))
    assert model.data_norm_ == math.sqrt(3)


# Bad input to private regression: a clear error or a sound fit.


NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
y = X @ [1.0, -1.0] + 0.1 * rng.normal(size=80)

BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-0.1, 1, 1.5, NAN, INF, "x", None, True],
    "p": [
        0.5,
        0.999,
        -2,
        INF,
        NAN,
        "2",
        None,
        True,
        (),
        (1,),
        (2, 0.5),
        (2, None),
        ("huber",),
        "quantile",
    ]
    + [("quantile", bad) for bad in (0, 1, NAN, None, "0.5", True)]
    + [("huber", bad) for bad in (0, -1, INF, NAN, None)]
    + [("quantile", 0.5, 0.5), ("median", 0.5), (["huber"], 1.0)],
    "solver": ["adam", None, 0],
    "adjacency": ["remove-one", None],
    "data_norm": [0, -1, NAN, INF, 1e-200, 1e200, "a", True],
    "target_scale": [0, -1, NAN, INF, 1e-200, 1e200, "a"],
    "l2": [-1, NAN, INF, "1", None],
    "intercept_scaling": [0, -1, NAN, INF],
    "coef_bound": [0, -1, NAN, INF, 1e-60, "1"],
    "clipping_norm": [0, -1, NAN, INF, "public", (), ("moments",), ("moments", 2.0)]
    + [("moments", bad, 3.0) for bad in (1, 0.5, -2, NAN, None, "2")]
    + [("moments", 2.0, bad) for bad in (0, -1, NAN, INF, None, True)]
    + [("moment", 2.0, 3.0), ("moments", 2.0, 3.0, 4.0)],
    "step_size": [0, -1, NAN, INF],
    "max_iter": [0, -1, 1.5],
    "batch_size": [0, -1, NAN],
}


@pytest.mark.sample(6, 41)
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(name, value):
    model = linear_model(DPLpRegressor, **{name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(X, y)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize("name", ["epsilon", "delta", "adjacency", "p", "solver"])
def test_the_gate_does_not_rely_on_scikit_learn_s_validation(name):
    for value in BAD[name]:
        model = linear_model(DPLpRegressor, **{name: value})
        with (
            sklearn.config_context(skip_parameter_validation=True),
            pytest.raises((ValueError, TypeError), match=name),
        ):
            model.fit(X, y)
        assert not hasattr(model, "ledger_")


NOT_FOR_REGRESSION = [
    "objective", "one-pass", "lazy-sgd", "bias-reduced", "exact", "net", "frank-wolfe",
]  # fmt: skip
REFUSED = [
    ({"solver": solvers.SGD(clipping_norm=1.0)}, r"clipping_norm of solvers.SGD\(\) must be None"),
    ({"solver": solvers.Output(sparsity=3)}, r"sparsity=3 of solvers.Output\(\) is not for regr"),
    (
        {"solver": solvers.Output(linf_projection=True), "coef_bound": 1.0},
        r"linf_projection=True of solvers.Output\(\) is not for regression",
    ),
    ({"solver": solvers.Output(minimizer="cvxpy")}, "minimizer must be .* for regression"),
    *[({"solver": word}, "is not for regression") for word in NOT_FOR_REGRESSION],
    ({"solver": papers.FeaturePreprocessing()}, "is not for regression"),
    ({"solver": papers.Localized(growth="tripling")}, "growth"),
    ({"solver": papers.Localized(growth_order=1.0)}, "growth_order"),
    ({"solver": papers.AcceleratedOnePass(failure_probability=1.0)}, "failure_probability"),
    ({"delta": 0.0, "solver": "gd"}, "delta must be greater than 0"),
    ({"delta": 0.0, "solver": "localized"}, "delta must be greater than 0"),
    ({"batch_size": 81}, "batch_size"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_does_not_go_together_is_refused_before_a_release(options, message):
    model = linear_model(DPLpRegressor, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (np.where(X > 2, NAN, X), y, "NaN"),
        (X, np.where(y > 1, NAN, y), "NaN"),
        (X, np.where(y > 1, INF, y), "infinity"),
        (X, np.array(["a"] * 80), "y must be real numbers"),
        (X, np.array(["1.5"] * 80), "y must be real numbers"),
        (X, np.array(["a"] * 80, dtype=object), "y must be real numbers"),
        (X, y + 1j, "Complex|real"),
        (X, np.column_stack([y, y]), "1d|2d|y should"),
        (X, y[:-1], "inconsistent"),
        (X[:, 0], y, "2D|Reshape"),
        (X, None, "y"),
        (X + 1j, y, "Complex"),
    ],
)
def test_bad_data_are_an_error(rows, targets, message):
    model = DPLpRegressor()
    with pytest.raises(ValueError, match=message):
        model.fit(rows, targets)
    assert not hasattr(model, "ledger_")


EXTREME = {
    "targets of 1e300": (X, 1e300 * np.sign(y)),
    "one target of 1e308": (X, np.where(np.arange(80) == 3, 1e308, y)),
    "targets of 1e-300": (X, 1e-300 * y),
    "integers": (X, rng.integers(-9, 9, size=80)),
    "constant y": (X, np.full(80, 7.0)),
    "zero y": (X, np.zeros(80)),
    "constant X": (np.ones((80, 2)), y),
    "zero X": (np.zeros((80, 2)), y),
    "X of 1e300": (1e300 * X, y),
    "X of 1e-300": (1e-300 * X, y),
    "infinite variance": (rng.standard_cauchy(size=(80, 2)), rng.standard_cauchy(size=80)),
    "one row": (X[:1], y[:1]),
    "two rows": (X[:2], y[:2]),
    "many features": (rng.normal(size=(5, 300)), y[:5]),
    "sparse": (sparse.csr_array(np.where(X > 0, X, 0.0)), y),
    "float32": (X.astype(np.float32), y.astype(np.float32)),
}
# drawn scales need rows, or a large budget
BUDGETS = [{}, {"epsilon": 100.0}]
INPUT_WAYS = [
    {"p": 2}, {"p": 1}, {"p": 4}, {"p": "huber"}, {"solver": "newton"},
    {"solver": "newton", "p": 1},
    {"solver": "lbfgs", "p": 4}, {"delta": 0.0, "l2": 1.0}, {"solver": "localized"},
    {"solver": "phased"}, {"solver": "accelerated-one-pass"}, {"solver": "sgd"},
    {"clipping_norm": "private", "coef_bound": 1.0}, {"clipping_norm": ("moments", 3.0, 1e9)},
    {"data_norm": 1e-50, "target_scale": 1e50}, {"l2": 1e300}, {"l2": 1e-300, "solver": "newton"},
    {"fit_intercept": False}, {"p": 1.2}, {"p": 9.0}, {"p": 1.2, "solver": "newton"},
]  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("options", INPUT_WAYS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_extreme_data_give_a_finite_fit_within_the_budget(options, budget):
    for name, (rows, targets) in EXTREME.items():
        model = linear_model(DPLpRegressor, **{**budget, **options})
        with np.errstate(all="raise", under="ignore", over="ignore", invalid="ignore"):
            model.fit(rows, targets)
        assert np.isfinite(model.coef_).all(), name
        assert np.isfinite(model.intercept_), name
        assert model.privacy_spent_[0] <= model.epsilon, name
        assert model.predict(rows).shape == (rows.shape[0],)


@pytest.mark.full
@pytest.mark.parametrize("options", [{}, {"solver": "newton"}], ids=str)
def test_enough_rows_of_any_scale_give_scales(options):
    local = np.random.default_rng(1)
    rows = local.normal(size=(4000, 3))
    for data, delta in itertools.product([
        (rows * 1e300, rows[:, 0]), (rows, np.full(4000, -5.0)), (rows * 0.0, rows[:, 0]),
        (rows * 1e-300, rows[:, 1] * 1e-300), (local.standard_cauchy(size=(4000, 3)), rows[:, 0]),
        (rows, 1e300 * np.sign(rows[:, 0])), (rows, (rows[:, 0] > 2.0) * 1.0),
    ], (0.0, 1e-6) if options else (1e-6,)):  # fmt: skip
        model = linear_model(DPLpRegressor, delta=delta, **options).fit(*data)
        assert len(model.ledger_.releases) > 4
        assert np.isfinite([*model.coef_, model.intercept_, model.data_norm_]).all()


def test_nothing_is_changed_and_no_layout_matters():
    frame = pd.DataFrame(X, columns=["a", "b"])
    kept = X.copy()
    kept.flags.writeable = False
    fits = []
    for rows, targets in [(kept, y), (frame, pd.Series(y)), (np.asfortranarray(X), list(y))]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            fits.append(DPLpRegressor(random_state=0).fit(rows, targets).coef_)
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_allclose(fits[0], fits[2], rtol=1e-6)
    np.testing.assert_array_equal(kept, X)


# Scores of drawn scales and medians keep the spread they state, and units move rows alone.


MAGNITUDE_NAN = float("nan")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
#: what a row counts is a multiple of one over that
PARTS = 2**20
MAGNITUDES = [RowNorm(), TargetDistance(), TargetDistance(0.3), GradientNorm(SQUARED_LOSS)]
every_magnitude = pytest.mark.parametrize("magnitude", MAGNITUDES, ids=lambda m: type(m).__name__)
TARGETS = [0.0, 1.0, -1.0, 0.3, 1e300, -1e300, 1e-310, 7.0]


# Counts of sides and of cells keep the sensitivity that they state.


def counts(name, d=3):
    """Return a query of counts for rows of d features."""
    return {
        "sides of targets": MagnitudeSides((TargetValue(),), np.array([0.5])),
        "sides of spreads": MagnitudeSides((TargetDistance(0.3), RowNorm()), np.array([0.5, 1.0])),
        "sides of small entries": MagnitudeSides((SmallEntry(0.5),), np.array([0.5])),
        "sides of uneven rows": MagnitudeSides((SmallEntry(0.6, of_norm=True),), np.array([0.5])),
        # two thresholds for each number
        "sides of columns": MagnitudeSides(
            (Columns(),), np.linspace(-0.2, 0.1, 2 * d).reshape(2, d)
        ),
        "sides of distances": MagnitudeSides((Columns(np.ones(d)),), np.linspace(0.1, 2.0, d)),
        # all places for one number
        "sides of a column": MagnitudeSides(
            (Columns(),), np.linspace(-0.2, 0.1, d), np.full(d, d - 1)
        ),
        "cells of spreads": MagnitudeCells((TargetDistance(), RowNorm()), np.arange(2)),
        "cells of columns": MagnitudeCells(
            (TargetDistance(1.0), Columns(np.zeros(d))), np.arange(d + 1)
        ),
        # all blocks for one number
        "cells of a column": MagnitudeCells((Columns(np.zeros(d)),), np.full(d, d - 1)),
    }[name]


KINDS = ["targets", "spreads", "small entries", "uneven rows", "columns", "distances", "a column"]
MANY = [f"sides of {kind}" for kind in KINDS]
MANY += [f"cells of {kind}" for kind in ("spreads", "columns", "a column")]
every_count = pytest.mark.parametrize("name", MANY)


def stated(query, adjacency):
    return query.sensitivity(adjacency, 9)


@pytest.mark.covering
@every_adjacency
@every_count
@on_examples(40)
def test_counts_keep_their_sensitivity_on_any_neighbours(name, adjacency, data):
    pair = data.draw(neighbours(adjacency, finite=True, layouts=LAYOUTS[:5]))
    n, d = pair[0].X.shape
    query = counts(name, d)
    targets = data.draw(st.lists(st.sampled_from(TARGETS), min_size=n, max_size=n))
    differs = (pair[0].X != pair[1].X).any(axis=1) | (pair[0].null != pair[1].null)
    other = np.where(differs, data.draw(st.sampled_from(TARGETS)), targets)
    one, two = (
        query.evaluate(admit(rows.X, np.where(rows.null, MAGNITUDE_NAN, values)))
        for rows, values in zip(pair, (targets, other), strict=True)
    )
    claim = stated(query, adjacency)
    assert np.abs(one - two).sum() <= claim.l1
    assert np.linalg.norm(one - two) <= claim.l2 * (1 + FLOAT_SLACK)
    assert max(np.abs(one).max(), np.abs(two).max()) <= query.sensitivity(adjacency, n).bound


@every_adjacency
@every_count
def test_counts_attain_their_sensitivity(name, adjacency):
    query = counts(name)
    X, y = np.full((4, 3), 50.0), np.full(4, 60.0)
    near, far = X.copy(), y.copy()
    near[1], far[1] = (0.0, 0.3) if "sides of dist" not in name else (1.0, 0.3)
    near[1] = -9.0 if "column" in name and "sides" in name else near[1]
    # zeros are in no cell, and not small
    zeros = "cells" in name or "small" in name
    near[1], far[1] = (0.01, 0.9) if zeros else (near[1], far[1])
    if adjacency == "zero-out":
        near, far = X, np.where(np.arange(4) == 1, MAGNITUDE_NAN, y)
    change = query.evaluate(admit(X, y)) - query.evaluate(admit(near, far))
    claim = stated(query, adjacency)
    assert np.abs(change).sum() == claim.l1
    assert np.linalg.norm(change) == pytest.approx(claim.l2)


@pytest.mark.parametrize("layout", LAYOUTS[:5])
def test_counts_are_what_the_definition_says(layout):
    rng = np.random.default_rng(0)
    X = as_layout(rng.standard_t(1, size=(300, 3)).astype(np.float32).astype(float), layout)
    y = rng.normal(size=300)
    y[:5] = MAGNITUDE_NAN
    rows, plain = admit(X, y), np.array(X)[5:]
    query = counts("sides of distances")
    expected = (np.abs(plain - 1.0) > query.thresholds).sum(axis=0) - 295 / 2
    np.testing.assert_array_equal(query.evaluate(rows), expected)
    plain[::3, 1] = plain[9] = 0.0
    sizes = np.where(plain == 0, math.inf, np.abs(plain)).min(axis=1)
    query = counts("sides of small entries")
    assert query.evaluate(admit(as_layout(plain, layout), y[5:])) == (sizes < 0.5).sum() - 295 / 2
    query = counts("sides of uneven rows")
    small = (sizes < 0.6 * np.linalg.norm(plain, axis=1)).sum()
    assert query.evaluate(admit(as_layout(plain, layout), y[5:])) == small - 295 / 2
    plain = np.asarray(X)[5:]
    query = counts("cells of columns")
    found = query.evaluate(rows).reshape(4, N_CELLS)
    numbers = np.column_stack([np.abs(y[5:] - 1.0), np.abs(plain)])
    for j, i in itertools.product(range(-84, 84), range(4)):
        inside = (numbers[:, i] >= 0.5 * 4.0**j) & (numbers[:, i] < 2 * 4.0**j)
        assert found[i, j + 84] == inside.sum()
    query = counts("cells of a column")
    found = query.evaluate(rows).reshape(3, N_CELLS)
    assert (found == found[0]).all()
    assert found[0].sum() == np.count_nonzero(plain[:, 2])


# A row of many entries counts less for each of them, where columns of CSR rows are counted.


def stored(d, entries):
    return MagnitudeCells((TargetDistance(1.0), Columns()), np.arange(d + 1), entries)


@pytest.mark.parametrize("layout", LAYOUTS[5:])
def test_cells_of_stored_entries_are_those_of_dense_rows(layout, monkeypatch):
    shorten_chunks(monkeypatch, 40)
    rng = np.random.default_rng(0)
    X = rng.standard_t(1, size=(300, 3)) * (rng.random((300, 3)) < 0.6)
    y = np.where(rng.random(300) < 0.2, MAGNITUDE_NAN, rng.integers(0, 3, 300))
    csr, weight = as_layout(X, layout), np.floor(rng.random(300) * PARTS) / PARTS
    for each in (None, weight):
        dense, same, less = (
            query.evaluate(regression_rows(rows, y, 1, each)).reshape(4, N_CELLS)
            for query, rows in (
                (counts("cells of columns"), X), (stored(3, 3), csr), (stored(3, 1), csr),
            )
        )  # fmt: skip
        np.testing.assert_array_equal(same, dense)
        # the target counts in full
        np.testing.assert_array_equal(less[0], dense[0])
        counted = np.isfinite(y) if each is None else np.where(np.isfinite(y), each, 0.0)
        entries = np.maximum((X != 0).sum(axis=1), 1)
        share = np.floor(1024 / np.sqrt(entries)) / 1024
        np.testing.assert_allclose(less[1:].sum(axis=1), counted * share @ (X != 0), rtol=1e-12)


@every_adjacency
@pytest.mark.parametrize("entries", [1, 2])
@on_examples(40)
def test_cells_of_stored_entries_keep_their_sensitivity(entries, adjacency, data):
    pair = data.draw(neighbours(adjacency, finite=True, layouts=LAYOUTS[5:]))
    query = stored(pair[0].X.shape[1], entries)
    one, two = (
        query.evaluate(admit(rows.X, np.where(rows.null, MAGNITUDE_NAN, 1.5))) for rows in pair
    )
    claim = query.sensitivity(adjacency, len(pair[0].null))
    assert np.abs(one - two).sum() <= claim.l1 * (1 + FLOAT_SLACK)
    assert np.linalg.norm(one - two) <= claim.l2 * (1 + FLOAT_SLACK)
    assert max(np.abs(one).max(), np.abs(two).max()) <= claim.bound


@every_adjacency
def test_cells_of_stored_entries_attain_their_sensitivity(adjacency):
    query, X, y = stored(4, 1), np.full((3, 4), 50.0), np.full(3, 60.0)
    other, targets = X.copy(), y.copy()
    other[1], targets[1] = 0.01, 0.9
    if adjacency == "zero-out":
        other, targets = X, np.where(np.arange(3) == 1, MAGNITUDE_NAN, y)
    one, two = (
        query.evaluate(admit(sparse.csr_array(rows), values))
        for rows, values in ((X, y), (other, targets))
    )
    claim = query.sensitivity(adjacency, 3)
    assert np.abs(one - two).sum() == claim.l1
    assert np.linalg.norm(one - two) == pytest.approx(claim.l2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thresholds_are_looked_up_as_they_are_compared(dtype, monkeypatch):
    shorten_chunks(monkeypatch, 40, threads=True)
    # long pieces are divided, short ones sorted, and neighbours among these joined
    monkeypatch.setattr("skdp._bisection._FEW", 40)
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, size=(300, 3)).astype(dtype) * dtype(0.1)
    X[::5] = rng.integers(-4, 5, size=(60, 3)).astype(dtype) * dtype(0.125)
    X[::9] *= dtype(-0.0)
    y = np.where(rng.random(300) < 0.2, MAGNITUDE_NAN, X[:, 0])
    weight = np.floor(rng.random(300) * PARTS) / PARTS
    rows, weighted = admit(X, y), regression_rows(X, np.asarray(y, float), 2, weight)
    rows.n_threads = 2
    for magnitudes in [
        (Columns(),), (Columns(np.full(3, 0.1)),), (TargetDistance(0.1), RowNorm()),
        (TargetValue(), RowNorm()), (SmallEntry(0.2), RowNorm()),
    ]:  # fmt: skip
        k = 3 if len(magnitudes) == 1 else 2
        # values that are there, and what lies just beside them in double precision
        chosen = np.abs(X[rng.integers(0, 300, size=(2, k)), 0].astype(np.float64))
        ends = np.full(k, -1e300), np.full(k, 1e300), np.zeros(k), np.full(k, -0.0)
        several = np.stack([-chosen[0], chosen[1], ends[0]])
        searched = np.sort(rng.uniform(0.0, 0.4, size=(9, 5, k)), axis=1)
        for thresholds in [*chosen, *np.nextafter(chosen, 0), several, *searched, *ends]:
            for places in (np.zeros(k, dtype=int), rng.integers(0, k, k), None):
                for each in (rows, weighted):
                    asked = thresholds
                    if each is weighted:
                        # those of a search have few digits
                        asked = (thresholds.view(np.int64) >> 22 << 22).view(np.float64)
                    query = MagnitudeSides(magnitudes, asked, places)
                    # counts are exact, in whatever order they are added
                    compared = sum(query.partial(chunk) for chunk in each.chunks)
                    np.testing.assert_array_equal(query.evaluate(each), compared)
    # what is kept is dropped with the rows that it is of
    assert rows.sought[0] == magnitudes
    StandardColumns(np.zeros(3), np.ones(3), np.ones(3, bool)).rows(rows)
    assert rows.sought == (None, None, None)


def test_scales_are_read_off_noisy_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4)) * [1.0, 1e-9, 1e12, 0.0]
    X[:, 3] = rng.random(4000) < 0.1
    query = MagnitudeCells((Columns(np.zeros(4)),), np.arange(4))
    exact = query.evaluate(admit(X, np.zeros(4000)))
    for noise in (1e-3, 30.0):
        released = exact + noise * rng.normal(size=query.size)
        scales, lowest, highest = scales_in_cells(*query.by_number(released, noise), 1000)
        # a quarter is beyond 1.15 deviations; indicators are 1 where they are seen
        np.testing.assert_allclose(scales[:3], [1.15, 1.15e-9, 1.15e12], rtol=0.4)
        assert 0.5 <= scales[3] <= 2.0
        assert (lowest <= scales).all()
        assert (scales <= highest).all()
    released = 1e6 * rng.normal(size=query.size)
    assert np.isnan(scales_in_cells(*query.by_number(released, 1e6), 1000)).all()


def test_the_distance_to_a_value_that_many_rows_share_is_no_spread():
    rng = np.random.default_rng(0)
    n = 2000
    X = 2 * np.abs(rng.normal(size=(n, 6)))
    X[: n // 2, 0], X[: n // 2, 1] = 1e-5, 0.0
    # less than a tail elsewhere; no gap between; a part far away; nothing
    X[: 17 * n // 20, 2] = 1e-5
    X[: n // 2, 3] = 4.0 ** rng.uniform(-4.0, 1.0, n // 2)
    X[: n // 10, 4] = 1e5
    X[:, 5] = 0.0
    query = MagnitudeCells((Columns(np.zeros(6)),), np.arange(6))
    exact, taken = query.evaluate(admit(X, np.zeros(n))), []
    for noise in (1e-3, *[80.0] * 20):
        released = query.by_number(exact + noise * rng.normal(size=query.size), noise)
        plain, (scales, *ends) = (scales_in_cells(*released, n / 4, k) for k in (0, 6))
        # the median of the others
        assert (np.abs(np.log(scales[:2] / 1.35)) < math.log(5.0)).all()
        assert (ends[0][:2] <= scales[:2]).all()
        assert (scales[:2] <= ends[1][:2]).all()
        np.testing.assert_array_equal(scales[2:], plain[0][2:])
        # the last numbers alone are distances
        apart = scales_in_cells(*released, n / 4, 5)[0]
        np.testing.assert_array_equal(apart, [plain[0][0], *scales[1:]])
        taken.append(plain[0][0])
    # the fault: where fewer than a tail are seen of the others
    assert min(taken) < 1e-4


def test_columns_of_which_half_of_the_rows_share_a_value_have_units():
    rng = np.random.default_rng(1)
    X, units = rng.normal(size=(5000, 40)), np.exp(rng.normal(size=40))
    X[rng.random(X.shape) < 0.5] = 0.0
    y = X.sum(axis=1)
    # medians of all columns first, and of those alone that are away from 0
    first = DPRidge(1.0, random_state=0).fit(units * np.abs(X[:3000]), y[:3000])
    away = DPLpRegressor(1.0, random_state=0).fit(units * (X + 5.0), y)
    for model in (first, away):
        ratio = model.feature_scale_ / units
        # .01 and .001 where the distance to the value is taken for a spread
        assert ratio.min() > 0.1, (type(model).__name__, np.sort(ratio))


def test_places_of_a_number_are_averaged():
    query = MagnitudeCells((Columns(),), np.array([2, 0, 2, 2]))
    released = np.repeat([1.0, 5.0, 2.0, 6.0], N_CELLS)
    found, noise = query.by_number(released, 3.0)
    assert found[:, 0].tolist() == [5.0, 3.0]
    np.testing.assert_allclose(noise, [3.0, 3.0 / np.sqrt(3)])


def test_origins_are_those_of_columns_that_are_away_from_zero():
    rng = np.random.default_rng(0)
    n, far = 20_000, np.array([0.0, 2000.0, -40.0, 0.0, 0.0])
    spreads = np.array([1.0, 8.0, 6.0, 300.0, 1e-3])
    X, y = far + spreads * rng.normal(size=(n, 5)), rng.normal(size=n)
    model = linear_model(DPLpRegressor, target_scale=1.0).fit(X, y)
    np.testing.assert_allclose(model.feature_center_, far, rtol=0.02)
    np.testing.assert_allclose(model.feature_scale_, 1.15 * spreads, rtol=0.4)
    # what is released, and paid for, is the same where no column is away
    other = linear_model(DPLpRegressor, target_scale=1.0).fit(X - far, y)
    assert (other.feature_center_ == 0).all()
    names = [[release.query for release in m.ledger_.releases] for m in (model, other)]
    assert names[0] == names[1]
    assert other.privacy_spent_ == model.privacy_spent_


@pytest.mark.parametrize(("away", "wanted"), [(0.0, 0), (3.0, 10)])
def test_noise_does_not_decide_whether_origins_are_searched(monkeypatch, away, wanted):
    # .855 of a standard normal column is in two cells, and .994 of one that is so far away
    plan = plan_scales(1.0, 1e-6, n_rows=8000, adjacency="replace-one", **ALL_SCALES)
    search, searched = type(plan)._origins, []

    def counted(plan, curator, columns, *args):
        searched.append(columns.all())
        return search(plan, curator, columns, *args)

    monkeypatch.setattr(type(plan), "_origins", counted)
    rng = np.random.default_rng(0)
    X = away + rng.normal(size=(8000, 40))
    for seed in range(10):
        DPLpRegressor(target_scale=1.0, max_iter=2, random_state=seed).fit(X, X[:, 0] - away)
    assert sum(searched) == len(searched) == wanted


@pytest.mark.parametrize("tiny", [1e-60, 1e-100])
def test_units_are_no_smaller_than_units_may_be(tiny):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) * [1.0, tiny, 1.0]
    model = DPLpRegressor(random_state=0).fit(X, X[:, 0])
    assert model.feature_scale_[1] == 1e-50
    assert np.isfinite(model.coef_).all()
    assert model.score(X, X[:, 0]) > 0.9


@pytest.mark.parametrize("n_rows", [1500, 6000])
def test_a_common_value_is_no_origin_with_a_spread(n_rows):
    # columns of two values, standardised: the error of a median was taken for a spread
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((n_rows, 30)) < 0.05, rng.normal(size=n_rows)]).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for seed in range(3):
        model = DPLpRegressor(target_scale=1.0, random_state=seed).fit(X, X[:, -1])
        assert (model.feature_scale_ > 0.05).sum() >= 28
        # rows are of about the length that units give them
        assert model.data_norm_ < 3 * np.sqrt(31)


def test_rare_columns_have_the_unit_of_what_they_have_together():
    rng = np.random.default_rng(0)
    X = 0.02 * (rng.random((3000, 60)) < 0.05)
    X[:, 0] = rng.normal(size=3000)
    model = linear_model(DPLpRegressor, target_scale=1.0).fit(X, X[:, 0])
    assert model.feature_scale_[0] > 0.5
    np.testing.assert_allclose(model.feature_scale_[1:], 0.02, rtol=0.7)


def with_missing(n_rows=5000, share=0.02, number=999_999.0, seed=0):
    """Return rows of three columns, one with a number that stands for "missing", and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)) * [1.0, 10.0, 1.0] + [0.0, 40.0, 0.0]
    y = X @ [1.0, 0.2, -1.0] + 0.3 * rng.normal(size=n_rows)
    X[rng.random(n_rows) < share, 1] = number
    return X, y


@pytest.mark.parametrize("number", [999_999.0, -999.0])
def test_what_stands_for_missing_is_not_extrapolated_to(number):
    X, y = with_missing(number=number)
    model = DPLpRegressor(epsilon=8.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    # as if it were the origin of its column, and no other entry is
    far, origin = np.array([[1.0, number, 2.0]]), np.array([[1.0, model.feature_center_[1], 2.0]])
    np.testing.assert_allclose(model.predict(far), model.predict(origin))
    usual = X[:, 1] != number
    np.testing.assert_allclose(model.predict(X[usual]), X[usual] @ model.coef_ + model.intercept_)
    both = np.vstack([X[:50], far, far * [1.0, -1.0, 1.0], 60.0 * X[:50]])
    np.testing.assert_allclose(model.to_sklearn().predict(both), model.predict(both))


def test_a_heavy_tail_that_targets_follow_is_extrapolated_to():
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(5000, 3))
    y = X @ W + rng.normal(size=5000)
    model = DPLpRegressor(epsilon=8.0, random_state=0).fit(X, y)
    row = np.array([[60.0, 0.0, 0.0]])
    np.testing.assert_allclose(model.predict(row), row @ model.coef_ + model.intercept_)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_look_compares_the_predictions_of_the_model(intercept):
    X, y = with_missing(share=0.03)
    y = y - (0 if intercept else np.median(y))
    found, evaluate = [], _lp_regressor.NearerRows.evaluate

    def spy(query, rows):
        found.append(evaluate(query, rows))
        return found[-1]

    with mock.patch.object(_lp_regressor.NearerRows, "evaluate", spy):
        model = DPLpRegressor(epsilon=8.0, fit_intercept=intercept, random_state=0).fit(X, y)
    dropped, columns = model.predict(X), model._found
    near = X.clip(columns.center - 100 * columns.scale, columns.center + 100 * columns.scale)
    squares = [
        ((y - z) / model.target_scale_) ** 2
        for z in (near @ model.coef_ + model.intercept_, dropped)
    ]
    wanted = np.clip(squares[0] - squares[1], -1, 1).sum()
    ((gain,),) = found
    assert gain == pytest.approx(wanted, rel=1e-6)
    assert gain > 0.01 * len(X)
    (look,) = [one for one in model.ledger_.releases if "squared residuals" in one.query]
    # the noise is a small part of the rows, for a small part of the budget
    assert look.noise.scale < 0.0041 * len(X)
    assert look.noise.mu**2 < 0.031 * gdp_mu(8.0, 1e-6) ** 2


@pytest.mark.parametrize("gain", [-1.0, 1.0])
def test_few_rows_have_a_glance_at_entries_far_out(gain):
    X, y = with_missing(n_rows=900)
    far = np.array([[1.0, 999_999.0, 2.0], [1.0, -1e9, 2.0]])

    def told(query, rows):
        return np.array([gain * len(X)])

    with mock.patch.object(_lp_regressor.NearerRows, "evaluate", told):
        model = DPLpRegressor(epsilon=2.0, random_state=0).fit(X, y)
    (look,) = [one for one in model.ledger_.releases if "squared residuals" in one.query]
    assert look.noise.mu**2 == pytest.approx(0.02 * gdp_mu(2.0, 1e-6) ** 2, rel=1e-6)
    # cut short if that is nearer to the targets, and never dropped
    reach = 10.0 if gain > 0 else 100.0
    end = np.array([[1.0, sign * reach, 2.0] for sign in (1.0, -1.0)])
    end[:, 1] = model.feature_center_[1] + end[:, 1] * model.feature_scale_[1]
    np.testing.assert_allclose(model.predict(far), model.predict(end))
    np.testing.assert_allclose(model.to_sklearn().predict(far), model.predict(far))


def test_a_glance_finds_few_entries_that_would_decide_about_all():
    X, y = with_missing(n_rows=3000)
    assert DPLpRegressor(epsilon=2.0, random_state=0).fit(X, y).score(X, y) > -3.0
    with mock.patch.object(_lp_regressor, "plan_tail", return_value=_lp_regressor.TailPlan()):
        assert DPLpRegressor(epsilon=2.0, random_state=0).fit(X, y).score(X, y) < -100.0


@pytest.mark.filterwarnings("ignore:.*gives almost no privacy")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_trace_with_a_look_attains_no_more_than_the_claim(adjacency):
    X, y = with_missing(n_rows=600)
    other = X.copy()
    X[7], other[7] = [1.0, 999_999.0, 1.0], [-1.0, 40.0, 5.0]
    model = DPLpRegressor(epsilon=60.0, max_iter=4, adjacency=adjacency)
    if adjacency != "replace-one":
        other[7] = np.nan
    found = trace_privacy(model, X=X, X_neighbour=other, y=y)
    assert found.passed
    assert any("squared residuals" in one.query for one in found.releases)


def test_standard_columns_are_what_the_definition_says():
    X = np.array([[1.0, 1e140, 1e-130], [-3.0, 5.0, 0.0]])
    columns = StandardColumns(
        np.ones(3), np.array([2.0, 1e-50, 1.0]), np.array([True, True, False])
    )
    (chunk,) = columns.rows(admit(X, [1.0, MAGNITUDE_NAN])).chunks
    np.testing.assert_array_equal(chunk.X, [[0.0, 100.0, -1.0], [-2.0, 100.0, -1.0]])
    assert np.isinf(chunk.norm).tolist() == [False, True]
    np.testing.assert_array_equal(chunk.target, [1.0, 0.0])


def admit(X, y, magnitude=None):
    rows = regression_rows(X, np.asarray(y, dtype=np.float64))
    units = isinstance(magnitude, GradientNorm)
    return unit_rows(rows, 0.5, 3.0, 0.1, 0.2, 0.7) if units else rows


def query_of(magnitude, tail, points=90):
    return MagnitudeThreshold(magnitude, 1e-6, 1.4, points, tail)


def naive_scores(magnitudes, query):
    """Return the scores as the definition says, point by point."""
    beyond = [np.sum(magnitudes > t) for t in query.grid()[:-1]] + [0]
    return [
        max(count - query.tail, query.tail - beyond[k - 1] if k else 0, 0)
        for k, count in enumerate(beyond)
    ]


def law(steps, counts, scale, denominator=1):
    """Return the log-probability of every single output of a group."""
    logits = -rate(denominator, scale) * steps
    total = np.log(np.sum(counts * np.exp(logits - logits.max()))) + logits.max()
    return logits - total


@pytest.mark.covering
@every_adjacency
@every_magnitude
@on_examples(30)
def test_any_neighbours_keep_the_spread_of_a_magnitude(magnitude, adjacency, data):
    pair = data.draw(neighbours(adjacency, finite=True))
    n = pair[0].X.shape[0]
    targets = data.draw(st.lists(st.sampled_from(TARGETS), min_size=n, max_size=n))
    other = list(targets)
    i = data.draw(st.integers(0, n - 1))
    # the row that differs, if any, takes another target too
    differs = np.flatnonzero((as_dense(pair[0].X) != as_dense(pair[1].X)).any(axis=1))
    i = int(differs[0]) if len(differs) else i
    other[i] = MAGNITUDE_NAN if adjacency == "zero-out" else data.draw(st.sampled_from(TARGETS))
    query = query_of(magnitude, data.draw(st.integers(0, n + 1)))
    scores = [
        query.scores(admit(rows.X, y, magnitude))
        for rows, y in zip(pair, (targets, other), strict=True)
    ]
    change = scores[1] - scores[0]
    assert np.ptp(change) <= query.sensitivity(adjacency, n).spread == 2
    assert np.abs(change).max() <= 1


@every_adjacency
def test_the_spread_of_a_magnitude_is_attained_by_one_pair(adjacency):
    # three targets far out and one just beyond the first point: one of the far ones goes
    query = query_of(TargetDistance(), 3)
    first = np.array([1e3, 1e3, 1e3, 1.1e-6])
    second = first.copy()
    second[0] = MAGNITUDE_NAN if adjacency == "zero-out" else 0.0
    change = query.scores(admit(np.ones((4, 1)), second)) - query.scores(
        admit(np.ones((4, 1)), first)
    )
    assert np.ptp(change) == query.sensitivity(adjacency, 4).spread


@every_magnitude
def test_scores_are_what_the_definition_says(magnitude):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.standard_t(1.5, size=200)
    y[:3] = MAGNITUDE_NAN
    norms = np.linalg.norm(X, axis=1)
    s = np.minimum(1, 3.0 * 0.5 / norms)
    expected = {
        "RowNorm": norms,
        "TargetDistance": np.abs(y - getattr(magnitude, "center", 0.0)),
        "GradientNorm": s**2 * np.abs((y - 0.2) / 0.7) * np.hypot(norms / 0.5, 0.1),
    }[type(magnitude).__name__]
    expected = expected[3:]
    query = query_of(magnitude, 50)
    np.testing.assert_array_equal(
        query.scores(admit(X, y, magnitude)), naive_scores(expected, query)
    )


@every_magnitude
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_moves_no_magnitude_but_its_own(magnitude, layout):
    # an awkward row makes its chunk be copied: the others must not notice, to the last bit
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 7))
    y = rng.normal(size=600)
    found = []
    for kind in ("denormal", "huge", "random"):
        X[0] = make_row(kind, 7, 1.0, rng)
        rows = admit(
            np.asarray(as_layout(X, "C")) if "csr" not in layout else sparse.csr_array(X),
            y,
            magnitude,
        )
        found.append(np.concatenate([magnitude(chunk) for chunk in rows.chunks])[1:])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.sample(1)
@every_adjacency
@pytest.mark.parametrize("n_rows", [1, 2, 3, 4])
def test_medians_of_all_small_neighbours_keep_the_spread(n_rows, adjacency):
    query = TargetMedian(-2.0, 1.0, 4)
    noise = ExponentialMechanism(2.0).calibrate(query.sensitivity(adjacency, n_rows), 1)
    values = [-2.0, 0.0, 1.0, 9.0]
    worlds = [*itertools.product([*values, MAGNITUDE_NAN], repeat=n_rows)]

    def full(world):
        """Return the score and the log-probability of every position, in halves of a rank."""
        rows = admit(np.ones((n_rows, 1)), world)
        starts, counts, steps = candidates(query.ranked(rows)[0], _half(), query.cells)
        logs = law(steps, counts, noise.scale, 2)
        score, log = np.empty(5), np.empty(5)
        for start, count, step, value in zip(starts, counts, steps, logs, strict=True):
            score[start : start + count], log[start : start + count] = step / 2, value
        return score, log

    known = {repr(world): full(world) for world in worlds}
    worst, spread = 0.0, 0.0
    for world in worlds:
        score, log = known[repr(world)]
        kept = np.array([v for v in world if not math.isnan(v)])
        kept = np.clip(kept, -2, 2) + 2
        naive = [
            max((kept < t).sum() - len(kept) / 2, len(kept) / 2 - (kept <= t).sum(), 0)
            for t in range(5)
        ]
        np.testing.assert_array_equal(score, naive)
        others = [*values, MAGNITUDE_NAN] if adjacency == "replace-one" else [MAGNITUDE_NAN]
        for i, other in itertools.product(range(n_rows), others):
            changed = (*world[:i], other, *world[i + 1 :])
            spread = max(spread, np.ptp(known[repr(changed)][0] - score))
            worst = max(worst, np.abs(known[repr(changed)][1] - log).max())
    assert worst <= 2.0
    # attained by one row: a median moves, and both ends lose what the other gains
    assert spread == query.sensitivity(adjacency, n_rows).spread or n_rows < 2


@every_adjacency
def test_medians_of_groups_count_what_their_rows_count(adjacency):
    query = TargetMedian(-2.0, 1.0, 4)
    stated = query.sensitivity(adjacency, 3)
    rng, places, spread = np.random.default_rng(0), np.arange(5.0)[:, None], 0.0
    for _ in range(200):
        others = rng.choice([-2.0, 0.0, 1.0, 9.0, MAGNITUDE_NAN], 3)
        scores, sizes = [], (rng.integers(1, 4), rng.integers(1, 4))
        for side, size in enumerate(sizes):
            gone = side == 1 and adjacency == "zero-out"
            value = MAGNITUDE_NAN if gone else rng.choice([-2.0, 9.0])
            y = np.append(np.full(size, value), others)
            counts = np.append(np.full(size, [0, 1.0, 0.5, 0.25][size]), [0.5, 0.5, 0.0])
            rows = regression_rows(np.ones((len(y), 1)), y, 1, counts)
            scores.append(query.scores_of(rows, places))
            kept = ~np.isnan(y)
            position, count = np.clip(y[kept], -2, 2) + 2, counts[kept]
            naive = [
                max(
                    count[position < t].sum() - count.sum() / 2,
                    count.sum() / 2 - count[position <= t].sum(),
                    0,
                )
                for t in range(5)
            ]
            np.testing.assert_array_equal(scores[-1], naive)
            positions, parts = query.ranked(rows)
            starts, lengths, steps = candidates(positions, _half(), 4, parts)
            known = np.empty(5)
            for start, length, step in zip(starts, lengths, steps, strict=True):
                known[start : start + length] = step / 2 / PARTS
            np.testing.assert_array_equal(known, naive)
        spread = max(spread, np.ptp(scores[1] - scores[0]))
    assert spread == stated.spread


def test_a_median_of_rows_that_count_less_is_drawn_by_its_law():
    query = TargetMedian(-2.0, 1.0, 4)
    y, counts = [-2.0, 0.0, 0.0, 1.0, 9.0], np.array([0.5, 0.25, 0.25, 1.0, 0.5])
    rows = regression_rows(np.ones((5, 1)), np.array(y), 1, counts)
    noise = ExponentialMechanism(4.0).calibrate(query.sensitivity("replace-one", 5), 1)
    expected = np.exp(-query.scores_of(rows, np.arange(5.0)[:, None]) / noise.scale)
    expected, bits, n_draws = expected / expected.sum(), SeededBits(0), 1000
    drawn = np.bincount(
        [int(query.draw(rows, noise, bits)[0]) for _ in range(n_draws)], minlength=5
    )
    assert np.sum((drawn - n_draws * expected) ** 2 / (n_draws * expected)) < 25


def _half():
    from fractions import Fraction

    return Fraction(1, 2)


@pytest.mark.full
def test_draws_of_a_median_follow_the_law():
    query = TargetMedian(-2.0, 1.0, 4)
    rows = admit(np.ones((5, 1)), [-2.0, 0.0, 0.0, 1.0, 9.0])
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("replace-one", 5), 1)
    starts, counts, steps = candidates(query.ranked(rows)[0], _half(), 4)
    expected = np.repeat(np.exp(law(steps, counts, noise.scale, 2)), counts)[
        np.argsort(
            np.concatenate([np.arange(s, s + c) for s, c in zip(starts, counts, strict=True)])
        )
    ]
    bits, n_draws = SeededBits(0), 4000
    drawn = np.bincount(
        [int(query.draw(rows, noise, bits)[0]) for _ in range(n_draws)], minlength=5
    )
    assert np.sum((drawn - n_draws * expected) ** 2 / (n_draws * expected)) < 25


@pytest.mark.full
def test_draws_of_a_magnitude_follow_the_law():
    query = MagnitudeThreshold(TargetDistance(), 0.5, 2.0, 4, 2)
    rows = admit(np.ones((6, 1)), [0.1, 0.7, 1.5, 2.5, 9.0, -9.0])
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("replace-one", 6), 1)
    expected = np.exp(law(query.scores(rows), np.ones(4), noise.scale))
    bits, n_draws = SeededBits(0), 4000
    drawn = np.bincount(
        [int(query.draw(rows, noise, bits)[0]) for _ in range(n_draws)], minlength=4
    )
    assert np.sum((drawn - n_draws * expected) ** 2 / (n_draws * expected)) < 22


# -- units -----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [0.0, 0.1, 3.0])
def test_units_are_what_the_definition_says(layout, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)).astype(np.float32).astype(np.float64)
    X[0], X[1] = 0.0, 1e6
    y = rng.normal(size=50)
    rows = unit_rows(regression_rows(as_layout(X, layout), y), 0.5, 3.0, intercept, 0.2, 0.7)
    (chunk,) = rows.chunks
    s = np.minimum(1, 3.0 / np.maximum(np.linalg.norm(X, axis=1) / 0.5, 1e-9))
    body = s[:, None] * X / 0.5
    whole = np.column_stack([body, s * intercept]) if intercept else body
    explicit = chunk.explicit()
    explicit = explicit.toarray() if sparse.issparse(explicit) else explicit
    np.testing.assert_allclose(explicit, whole, rtol=1e-6)
    np.testing.assert_allclose(chunk.target, s * (y - 0.2) / 0.7, rtol=1e-6, atol=1e-12)
    length = np.linalg.norm(whole, axis=1)
    np.testing.assert_allclose(chunk.norm, np.maximum(length, 1e-100), rtol=1e-6)
    assert chunk.norm.max() <= math.hypot(3.0, intercept) * (1 + 1e-12)


def test_a_long_row_is_scaled_with_its_target():
    # what a correct model predicts for it is still its target
    X, w = np.array([[1e9, -2e9], [0.1, 0.2]]), np.array([2.0, -1.0])
    y = X @ w + 5.0
    rows = unit_rows(regression_rows(X, y), 1.0, 4.0, 0.1, 0.0, 10.0)
    (chunk,) = rows.chunks
    predicted = chunk.predict(np.append(w / 10.0, 5.0 / 10.0 / 0.1))
    np.testing.assert_allclose(predicted, chunk.target, rtol=1e-12)
    assert chunk.lift[0] < 1e-8


# Claims of private regression, and known bugs, planted one by one: the audits see them all.
#
# Every test of a bug first shows that the audit passes on the real code.


EPSILON, DELTA, STEPS = 2.0, 1e-5, 4
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
SOLVERS = [
    "gd", "accelerated", "preconditioned", "newton", "phased", "localized", "accelerated-one-pass",
]  # fmt: skip


def regressor(**options):
    usual = {
        "data_norm": 1.0, "target_scale": 1.0, "clipping_norm": 0.1, "random_state": 0,
    }  # fmt: skip
    if options.get("solver") in ("gd", "accelerated", "sgd"):
        usual.update(max_iter=STEPS, step_size=1e-6)
    if options.get("solver") == "preconditioned":
        usual.update(max_iter=STEPS, clipping_norm=None)
        options.pop("clipping_norm", None)
    return linear_model(DPLpRegressor, EPSILON, DELTA, **{**usual, **options})


def fit(model, rows):
    # a null row is one that is not a number
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(*rows)


def worst_pairs(adjacency, n_rows=40, length=5.0):
    """Return neighbours: a long row whose huge target changes its sign, or that vanishes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    X /= 3 * np.linalg.norm(X, axis=1)[:, None]
    X[0] = length * np.eye(3)[0]
    y = rng.normal(size=n_rows)
    pairs = []
    for big in (1e300, 50.0):
        first, second = y.copy(), y.copy()
        first[0], second[0] = big, MAGNITUDE_NAN if adjacency == "zero-out" else -big
        pairs.append(((X, first), (X, second)))
    return pairs


def ratio(model, adjacency="replace-one", pairs=None, measure=_audit.coupled_mu):
    """Return the largest coupled parameter over worst pairs, relative to the claim."""
    model = clone(model).set_params(adjacency=adjacency)
    found = [
        measure(functools.partial(fit, model), *pair) for pair in pairs or worst_pairs(adjacency)
    ]
    return max(found) / CLAIMED_MU


@contextlib.contextmanager
def fixed_draws(index):
    """Let every draw of a scale or a threshold have one outcome."""

    def draw(self, rows, noise, source):
        return np.array([float(index if isinstance(self, MagnitudeThreshold) else self.cells // 2)])

    patches = [mock.patch.object(kind, "draw", draw) for kind in (MagnitudeThreshold, TargetMedian)]
    with patches[0], patches[1]:
        yield


@pytest.mark.sample(4)
@every_adjacency
@pytest.mark.parametrize("p", [1, 2, 4, "huber", 1.5, 3])
def test_gradients_keep_their_claim_tightly(p, adjacency):
    assert 0.99 <= ratio(regressor(solver="gd", p=p), adjacency) <= 1


@every_adjacency
@pytest.mark.parametrize("p", [1, 2, "huber", 1.5])
def test_gradients_in_a_geometry_keep_their_claim_tightly(p, adjacency):
    # a row that changes its sign has the same products: little is left of what moments cost
    measured = ratio(regressor(solver="preconditioned", p=p, max_iter=9), adjacency)
    assert 0.9 <= measured <= 1


@pytest.mark.sample(3)
@every_adjacency
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"solver": "output"}], ids=str)
def test_searched_scales_keep_the_claim(options, adjacency):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)) * [1.0, 1e6], rng.normal(size=600)
    model = DPLpRegressor(
        EPSILON, DELTA, adjacency=adjacency, random_state=0, **options
    ).set_params(**({} if options.get("solver") else {"max_iter": 3}))
    pairs = []
    for big in (1e9, -1e300):
        first, second, other = y.copy(), y.copy(), X.copy()
        other[0] = -1e12
        first[0], second[0] = big, MAGNITUDE_NAN if adjacency == "zero-out" else -big
        pairs.append(((X, first), (other, second)))
    assert fit(model, pairs[0][0]).feature_scale_[1] > 1e5
    measured = [_audit.coupled_mu(functools.partial(fit, model), *pair) for pair in pairs]
    assert max(measured) <= CLAIMED_MU


def test_a_public_trace_of_searched_scales_finds_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.normal(size=500)
    other = X.copy()
    other[3] = [1e6, -1e6]
    model = DPLpRegressor(EPSILON, DELTA, max_iter=3)
    assert trace_privacy(model, X=X, X_neighbour=other, y=y).passed


@pytest.mark.sample(1)
@every_adjacency
@pytest.mark.parametrize("p", [1, 2, 4, "huber", 1.5, 3])
@pytest.mark.parametrize("solver", ["newton", "phased", "localized", "accelerated-one-pass"])
def test_other_solvers_keep_their_claim(solver, p, adjacency):
    assert ratio(regressor(solver=solver, p=p, l2=1.0), adjacency) <= 1


@every_adjacency
def test_the_minimiser_attains_its_sensitivity(adjacency):
    X = np.zeros((5, 2))
    X[0, 0] = 9.0
    y = np.zeros(5)
    pairs = [((X, y + 1e300 * np.eye(5)[0]), (X, y - 1e300 * np.eye(5)[0]))]
    if adjacency == "zero-out":
        pairs = [(pairs[0][0], (X, np.array([MAGNITUDE_NAN, 0, 0, 0, 0])))]
    model = regressor(solver="newton", l2=1.0, fit_intercept=False)
    assert 0.99 <= ratio(model, adjacency, pairs) <= 1


@every_adjacency
def test_pure_noise_keeps_its_claim(adjacency):
    model = regressor(solver="newton", l2=1.0).set_params(delta=0.0)
    measured = ratio(model, adjacency, measure=_audit.coupled_epsilon)
    assert measured * CLAIMED_MU <= EPSILON


@pytest.mark.sample(1)
@every_adjacency
@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=6)
@given(data=st.data())
def test_claims_are_kept_on_any_neighbours(solver, adjacency, data):
    first, second = data.draw(neighbours(adjacency, finite=True))
    n = first.X.shape[0]
    sizes = st.sampled_from([0.0, 1.0, -0.4, 1e3, 1e300, -1e300, 1e-300])
    y = np.array(data.draw(st.lists(sizes, min_size=n, max_size=n)))
    options = {
        "p": data.draw(st.sampled_from([1, 2, 4, "huber", 1.2, 3, 7.5])),
        "data_norm": data.draw(st.sampled_from([1.0, 1e-3, 1e3, None])),
        "target_scale": data.draw(st.sampled_from([1.0, 1e-20, 1e20, None])),
        "fit_intercept": data.draw(st.booleans()),
        "clipping_norm": data.draw(st.sampled_from([None, 1e-3, 50.0])),
        "intercept_scaling": data.draw(st.sampled_from([None, 3.0])),
    }
    # the row that differs has another target too; a null row is not a number
    differs = (as_dense(first.X) != as_dense(second.X)).any(axis=1)
    other = np.where(second.null, MAGNITUDE_NAN, np.where(differs, data.draw(sizes), y))
    y = np.where(first.null, MAGNITUDE_NAN, y)
    model = regressor(solver=solver, adjacency=adjacency, **options)
    measured = _audit.coupled_mu(functools.partial(fit, model), (first.X, y), (second.X, other))
    assert measured <= CLAIMED_MU


@pytest.mark.full
@every_adjacency
@pytest.mark.parametrize("index", [0, 300, 10**9])
@pytest.mark.parametrize("solver", ["gd", "newton"])
def test_given_scales_the_rest_keeps_its_share(solver, index, adjacency):
    # enough rows for all draws, which have the same outcome in both worlds
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 2)), rng.normal(size=4000)
    model = regressor(
        solver=solver, data_norm=None, target_scale=None, clipping_norm="private",
        adjacency=adjacency,
    )  # fmt: skip
    first, second = y.copy(), y.copy()
    first[0], second[0] = 1e300, MAGNITUDE_NAN if adjacency == "zero-out" else -1e300
    with fixed_draws(min(index, 400)):
        measured = _audit.coupled_mu(functools.partial(fit, model), (X, first), (X, second))
        ledger = fit(model, (X, y)).ledger_
    drawn = [r for r in ledger.releases if not r.noise.mu]
    # of the threshold alone: the scales are searched with Gaussian noise
    assert len(drawn) == 1
    assert measured <= ledger.mu < CLAIMED_MU
    assert ledger.epsilon(DELTA) <= EPSILON


# -- planted bugs --------------------------------------------------------------------


def test_clipping_dropped_is_caught(monkeypatch):
    model = regressor(solver="gd")
    assert ratio(model) <= 1
    real = ClippedGradient.partial
    monkeypatch.setattr(
        ClippedGradient,
        "partial",
        lambda self, chunk: real(ClippedGradient(self.coef, self.loss, 1e100), chunk),
    )
    assert ratio(model) > 10


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["newton", "phased", "localized"])
def test_a_loss_that_is_not_clipped_is_caught(solver, monkeypatch):
    model = regressor(solver=solver, l2=1.0)
    assert ratio(model) <= 1
    monkeypatch.setattr(
        ClippedLoss, "targets", lambda self, target, norm: (target, np.full(len(target), 1e150))
    )
    assert ratio(model, pairs=worst_pairs("replace-one")[1:]) > 1.5


def test_a_limit_that_is_not_divided_by_the_row_norm_is_caught(monkeypatch):
    pairs = worst_pairs("replace-one", length=50.0)
    model = DPLpRegressor(
        EPSILON, DELTA, solver="output", target_scale=1.0, clipping_norm=0.1, l2=300.0,
        fit_intercept=False, random_state=0,
    )  # fmt: skip
    assert 0.5 < ratio(model, pairs=pairs) <= 1
    monkeypatch.setattr(
        ClippedLoss, "targets", lambda self, target, norm: (target, np.full(len(target), self.clip))
    )
    assert ratio(model, pairs=pairs) > 2


def test_an_intercept_outside_the_clip_is_caught(monkeypatch):
    model = regressor(solver="gd", intercept_scaling=1.0)
    assert 0.99 <= ratio(model) <= 1
    real = _lp_regressor.unit_rows

    def forgetful(rows, *args):
        moved = real(rows, *args)
        for chunk in moved.chunks:
            chunk.norm[:] = np.sqrt(np.maximum(chunk.norm**2 - chunk.lift**2, 1e-100))
        return moved

    monkeypatch.setattr(_lp_regressor, "unit_rows", forgetful)
    # the long row is scaled down with its constant feature, to a fifth
    assert ratio(model) == pytest.approx(math.hypot(1, 0.2), rel=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("solver", ["gd", "sgd", *SOLVERS[2:]])
@pytest.mark.parametrize("delta", [DELTA, 0.0])
def test_a_scale_that_is_drawn_but_not_paid_for_is_caught(solver, delta, monkeypatch):
    if delta == 0 and solver != "newton":
        return
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 2)), rng.normal(size=4000)
    model = regressor(solver=solver, data_norm=None, target_scale=None).set_params(delta=delta)
    spent, _ = fit(model, (X, y)).privacy_spent_
    assert 0.9 * EPSILON < spent <= EPSILON
    monkeypatch.setattr(ScalesPlan, "prices", ())

    def forgetful(**facts):
        return Problem(**{**facts, "scale_mu": 0.0})

    monkeypatch.setattr(_lp_regressor, "Problem", forgetful)
    with pytest.raises(BudgetError):
        fit(model, (X, y))


def test_targets_scaled_by_their_own_maximum_are_caught(monkeypatch):
    model = regressor(solver="gd")
    assert ratio(model) <= 1
    real = _lp_regressor.regression_rows

    def by_maximum(X, y, *others):
        return real(X, y / np.nanmax(np.abs(y)), *others)

    monkeypatch.setattr(_lp_regressor, "regression_rows", by_maximum)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    other = y.copy()
    other[0] = 1e6
    assert ratio(model, pairs=[((X, y), (X, other))]) > 1.5


# Claims of private regression where floats end: tiny rows, absurd units, odd targets.


@pytest.mark.parametrize("layout", ["C", "csr", "csr duplicates"])
def test_rows_far_below_the_floor_of_norms_keep_their_length(layout):
    # in units of 1e-50 they are as far above it: a norm that is too small is a limit too wide
    X = np.outer([1e-99, 1e-101, 1e-130, 1e-139, 0.0], [1.0, -1.0])
    rows = unit_rows(regression_rows(as_layout(X, layout), np.ones(5)), 1e-50, 1.0, 0.0, 0.0, 1.0)
    (chunk,) = rows.chunks
    length = np.sqrt(2) * np.array([1e-49, 1e-51, 1e-80, 1e-89, 0.0])
    np.testing.assert_allclose(chunk.norm, np.maximum(length, 1e-100), rtol=1e-12)


@pytest.mark.sample(3)
@every_adjacency
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_as_short_as_floats_allow_keep_the_claim(solver, layout, adjacency):
    # shorter than the floor of norms, in the units of the data
    X = np.full((40, 2), 1e-51)
    X[0] = 1e-101, 0.0
    first, second = np.zeros(40), np.zeros(40)
    first[0], second[0] = 1e150, MAGNITUDE_NAN if adjacency == "zero-out" else -1e150
    pairs = [((layout(X), first), (layout(X), second))]
    model = regressor(solver=solver, data_norm=1e-50, fit_intercept=False)
    assert ratio(model, adjacency, pairs) <= 1


@pytest.mark.parametrize("solver", ["phased", "localized"])
@pytest.mark.parametrize(("name", "value"), [("intercept_scaling", 1e50), ("clipping_norm", 1e-50)])
def test_noise_of_absurd_units_overflows_nothing(name, value, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    with np.errstate(over="raise", invalid="raise"):
        model = regressor(solver=solver, **{name: value}).fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("odd", [None, float("inf"), float("nan")], ids=str)
def test_objects_that_are_no_numbers_are_refused(odd):
    # scikit-learn turns targets into floats after it has looked for what is not finite
    y = np.arange(30.0).astype(object)
    y[3] = odd
    model = DPLpRegressor()
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.fit(np.ones((30, 1)), y)
    assert not hasattr(model, "ledger_")


def test_wide_floats_that_overflow_are_targets_far_out():
    y = np.arange(30.0).astype(np.longdouble)
    y[3] = np.longdouble(10) ** 400
    assert np.isfinite(DPLpRegressor(random_state=0).fit(np.ones((30, 1)), y).intercept_)
