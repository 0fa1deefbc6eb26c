# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What private regression computes: near the truth, in any units, at the stated price."""

import math

import numpy as np
import pytest
from scipy import sparse

from skdp import DPLpRegressor, solvers
from skdp._losses.clipped import ClippedLoss
from skdp.linear_model._lp_regressor import Units, plan_clip, plan_scales
from skdp.solvers.base import Problem
from skdp.solvers.gradient import GradientPlan, regression_steps
from tests._solvers import linear_model, solver_of

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
    ({"clipping_norm": "private"}, 0.3), ({"clipping_norm": 1.0}, 0.1),
]  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize(("options", "within"), WAYS, ids=str)
def test_heavy_tails_at_epsilon_one_are_near_the_truth(options, within):
    model = linear_model(DPLpRegressor, epsilon=1.0, random_state=1, **options)
    assert error(model, *heavy()) < within
    assert model.privacy_spent_[0] <= 1


@pytest.mark.parametrize(("x_scale", "y_scale"), [(1e-9, 1e12), (300.0, 0.01), (1e20, 1e-20)])
def test_no_scale_of_the_data_is_assumed(x_scale, y_scale):
    X, y, X_new, clean = heavy(x_scale=x_scale, offset=1e3)
    data = X, y * y_scale, X_new, clean * y_scale
    assert error(DPLpRegressor(random_state=1), *data) < 0.05


@pytest.mark.covering
@pytest.mark.parametrize("solver", ["accelerated", "newton", "localized", "accelerated-one-pass"])
@pytest.mark.parametrize("p", [1, 2, 4, "huber"])
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


def test_drawn_units_move_with_the_data_up_to_their_grid():
    X, y, X_new, clean = heavy()
    first = DPLpRegressor(epsilon=4.0, random_state=0).fit(X, y)
    second = DPLpRegressor(epsilon=4.0, random_state=0).fit(X * 1e3, y * 50.0 + 700.0)
    assert second.data_norm_ / first.data_norm_ == pytest.approx(1e3, rel=0.3)
    assert second.target_scale_ / first.target_scale_ == pytest.approx(50, rel=0.3)
    gap = second.predict(X_new * 1e3) - (50.0 * first.predict(X_new) + 700.0)
    assert np.median(np.abs(gap)) < 0.1 * 50 * np.median(np.abs(clean))


def test_a_few_rows_of_any_size_do_not_move_the_fit():
    X, y, X_new, clean = heavy()
    X[:50], y[:50] = 1e200, -1e300
    assert error(DPLpRegressor(random_state=1), X, y, X_new, clean) < 0.2


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


def test_sparse_rows_are_the_same_rows():
    X, y, _, _ = heavy(4000)
    X[np.abs(X) < 0.7] = 0.0
    for options in ({}, {"solver": "newton"}, {"solver": "sgd"}, {"solver": "localized"}):
        dense, csr = (
            linear_model(DPLpRegressor, random_state=0, **options).fit(rows, y)
            for rows in (X, sparse.csr_array(X))
        )
        assert dense.data_norm_ == csr.data_norm_
        np.testing.assert_allclose(dense.coef_, csr.coef_, rtol=1e-6, atol=1e-8)


# -- what is released, and when --------------------------------------------------------


def test_scales_are_on_the_ledger_if_there_are_enough_rows():
    X, y, _, _ = heavy()
    few = DPLpRegressor().fit(X[:500], y[:500])
    assert (few.data_norm_, few.target_scale_, few.target_center_) == (math.sqrt(3), 1.0, 0.0)
    assert all(release.noise.mu for release in few.ledger_.releases)
    for options, draws in [
        ({}, 4), ({"data_norm": 1.0}, 3), ({"target_scale": 2.0}, 1),
        ({"data_norm": 1.0, "target_scale": 2.0}, 0), ({"fit_intercept": False}, 2),
        ({"clipping_norm": "private"}, 5),
    ]:  # fmt: skip
        model = linear_model(DPLpRegressor, **options).fit(X, y)
        drawn = [r for r in model.ledger_.releases if not r.noise.mu]
        assert len(drawn) == draws
        assert sum(r.noise.epsilon for r in drawn) <= 0.3 * model.epsilon
        assert model.privacy_spent_[0] <= model.epsilon
    assert model.target_center_ == pytest.approx(3.0, abs=0.5)


def test_prices_of_scales_fall_with_the_rows():
    options = {"with_radius": True, "with_scale": True, "with_center": True}
    totals = []
    for n_rows in (100, 3_000, 4_000, 10_000, 100_000):
        plan = plan_scales(1.0, n_rows=n_rows, adjacency="replace-one", **options)
        totals.append(sum(plan.prices))
    assert totals[0] == 0.0
    assert totals[2] == pytest.approx(0.2)
    assert totals[2] > totals[3] > 9 * totals[4] > 0
    one = plan_scales(1e-9, n_rows=10**6, adjacency="zero-out", **options)
    assert one.prices == ()


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
    _, _, problem = model._prepared(1000, 3, None)
    plan = model._planned(problem, model.solver, model._units(None), None)
    # a gradient of squares is a row times a residual
    clip = 12.0 / 2.0 / 3.0 * problem.signal**0.25
    assert plan.problem.loss.clip == pytest.approx(clip)
    assert plan.problem.moments == pytest.approx((4.0, 2.0))
    assert model.fit(X, y).privacy_spent_[0] <= 1


def test_the_loss_of_a_plan_is_clipped():
    # what sensitivities are stated from is the loss that is minimised
    model = DPLpRegressor(solver=solvers.Output(minimizer="newton"), clipping_norm=0.3)
    model.n_features_in_ = 3
    _, _, problem = model._prepared(50, 3, None)
    plan = model._planned(problem, model.solver, model._units(None), None)
    assert isinstance(plan.problem.loss, ClippedLoss)
    assert plan.problem.gradient_sensitivity == pytest.approx(2 * 0.3)


def test_public_numbers_are_printed(capsys):
    X, y, _, _ = heavy(200)
    DPLpRegressor(verbose=1).fit(X, y)
    assert "ScalesPlan" in capsys.readouterr().out


def test_units_map_there_and_back():
    units = Units(radius=2.0, longest=6.0, center=5.0, scale=3.0, intercept=0.1, power=2.0)
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


def test_where_most_targets_are_equal_their_unit_is_public_or_their_magnitude():
    X, _, _, _ = heavy()
    mostly = np.arange(len(X)) % 10 == 0
    model = DPLpRegressor().fit(X, mostly.astype(float))
    assert (model.target_center_, model.target_scale_) == (pytest.approx(0.0, abs=1e-5), 1.0)
    model = DPLpRegressor().fit(X, 1000.0 + mostly)
    assert model.target_center_ == pytest.approx(1000.0, abs=1.0)
    assert 500 < model.target_scale_ < 2000
    assert DPLpRegressor().fit(np.zeros_like(X), mostly.astype(float)).data_norm_ == math.sqrt(3)
