# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Localisation on disjoint batches: what is read, what is charged, what comes out."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from skdp._losses.classification import LogisticLoss
from skdp._losses.clipped import ClippedLoss
from skdp._rows.base import two_balls_constraint
from skdp.papers import Localized
from skdp.privacy import gdp_mu
from skdp.solvers.base import EXPECTED_RADIUS, Problem
from skdp.solvers.disjoint import public_order
from tests import _audit
from tests._neighbours import ADJACENCIES
from tests._solvers import linear_model, plan_of
from tests.linear_model.test_mechanisms import blobs

RUNS = [
    {}, {"growth": "halving"}, {"growth": "doubling"},
    {"growth": "doubling", "growth_order": 1.2}, {"failure_probability": 0.1},
    {"failure_probability": 0.05, "growth": "halving"}, {"clipping_norm": 0.3},
]  # fmt: skip
every_run = pytest.mark.parametrize("options", RUNS, ids=str)


def make(epsilon=8.0, estimator=DPLogisticRegression, **options):
    usual = {"solver": "localized", "classes": (0, 1), "random_state": 0}
    return linear_model(estimator, epsilon, **{**usual, **options})


@pytest.mark.covering
@every_run
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_every_row_is_read_once_at_the_whole_price(options, adjacency):
    X, y = blobs(n_rows=2500)
    model = make(adjacency=adjacency, **options).fit(X, y)
    releases = model.ledger_.releases
    assert sum(release.count for release in releases) == model.n_iter_ == len(releases)
    parts = [release.rows for release in releases]
    assert [start for start, _ in parts] == [0, *[stop for _, stop in parts[:-1]]]
    assert parts[-1][1] == 2500
    mu = gdp_mu(8.0, 1e-6)
    assert all(mu * (1 - 1e-9) < release.noise.mu <= mu for release in releases)
    assert model.ledger_.mu <= mu
    assert 7.99 < model.privacy_spent_[0] <= 8.0
    assert model.score(X, y) > 0.9


@every_run
def test_the_hinge_needs_no_derivative(options):
    X, y = blobs(n_rows=1000)
    assert make(estimator=DPHingeSVM, **options).fit(X, y).score(X, y) > 0.9


def test_several_classes_learn_unless_gradients_are_to_be_clipped():
    X, y = blobs(n_rows=3000, n_classes=3)
    model = make(20.0, classes=range(3), growth="halving", fit_intercept=False)
    assert model.fit(X, y).score(X, y) > 0.8
    # a bound that no gradient exceeds clips nothing
    loose = clone(model).set_params(solver__clipping_norm=10.0).fit(X, y)
    np.testing.assert_array_equal(loose.coef_, model.coef_)
    with pytest.raises(ValueError, match="several classes leave clipping_norm=None"):
        clone(model).set_params(solver__clipping_norm=0.3).fit(X, y)


REFUSED = [
    ({"delta": 0.0}, "delta must be greater than 0"),
    ({"growth": "tripling"}, "growth"),
    ({"growth": "doubling", "growth_order": 1.0}, "growth_order"),
    ({"growth": "doubling", "growth_order": np.nan}, "growth_order"),
    ({"failure_probability": 1e-6}, "failure_probability=1e-06 asks for 79 runs"),
    ({"failure_probability": 0.0}, "failure_probability"),
    ({"clipping_norm": 0.0}, "clipping_norm"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=str)
def test_what_does_not_go_together_is_refused_before_the_rows_are_read(options, message):
    X, y = blobs(n_rows=900)
    model = make(**options)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(X, y)
    assert not hasattr(model, "ledger_")


@pytest.mark.covering
@pytest.mark.parametrize("n_rows", [1, 2, 7, 39, 60, 401])
@every_run
def test_few_rows_are_one_phase_or_refused(n_rows, options):
    X, y = blobs(n_rows=n_rows)
    model = make(1.0, **options)
    if "failure_probability" in options and n_rows < 200:
        with pytest.raises(ValueError, match=f"there are {n_rows} rows, for which it must be"):
            model.fit(X, y)
        return
    model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.n_iter_ >= 1


EXTREME = [
    {"epsilon": 1e-9}, {"epsilon": 1e6}, {"delta": 1e-300}, {"delta": 0.999},
    {"data_norm": 1e100}, {"data_norm": 1e-100}, {"C": 1e-6}, {"C": 1e6},
    {"coef_bound": 1e-30}, {"coef_bound": 1e30}, {"clipping_norm": 1e-30, "epsilon": 0.1},
    {"clipping_norm": 1e30}, {"classes": (0, 1, 2), "growth": None},
]  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
@pytest.mark.parametrize("options", EXTREME, ids=str)
def test_extreme_parameters_give_finite_results(options, estimator):
    X, y = blobs(n_rows=310)
    with np.errstate(under="ignore"):
        X = X * options.get("data_norm", 1.0)
    model = make(estimator=estimator, **{"growth": "doubling", **options})
    for data in (sparse.csr_array(X), np.zeros_like(X)):
        fitted = clone(model).fit(data, y)
        assert np.isfinite(fitted.coef_).all()
        assert fitted.privacy_spent_[0] <= fitted.epsilon
        if "coef_bound" in options:
            assert np.linalg.norm(fitted.coef_) <= options["coef_bound"] * (1 + 1e-12)


# -- what comes out ----------------------------------------------------------------------


def test_the_result_is_the_projected_walk_over_what_was_released():
    X, y = blobs(n_rows=900)
    model = make(0.5, growth="doubling", coef_bound=4.0, fit_intercept=False)
    plan = plan_of(model, 900, 2, 2)
    far = 3 * np.random.default_rng(0).normal(size=(plan.n_iter, 2))
    with _audit.recorded(far):
        model.fit(X, y)
    (run,), outputs = plan.runs, iter(far)
    assert [radius for radius, _ in run] == [4.0, 2.0, 1.0]
    coef, cut = np.zeros(2), 0
    for radius, phases in run:
        middle = coef
        for _ in phases:
            released = next(outputs)
            coef = two_balls_constraint(released, 4.0, middle, radius)
            cut += np.linalg.norm(coef - released) > 1e-9
            assert np.linalg.norm(coef - middle) <= radius * (1 + 1e-12)
    assert next(outputs, None) is None
    assert cut > 2
    np.testing.assert_allclose(model.coef_[0], coef, rtol=1e-12)


def test_of_several_runs_the_one_in_the_middle_is_kept():
    X, y = blobs(n_rows=1400)
    model = make(2.0, failure_probability=0.1, fit_intercept=False)
    with _audit.recorded() as additions:
        model.fit(X, y)
    plan = plan_of(model, 1400, 2, 2)
    last, ends = [], np.cumsum([sum(len(p) for _, p in run) for run in plan.runs])
    last = np.array([additions[end - 1].output for end in ends])
    assert len(last) == 7
    distances = np.linalg.norm(last[:, None] - last, axis=2)
    best = np.argmin(np.sort(distances, axis=1)[:, 3])
    np.testing.assert_array_equal(model.coef_[0], last[best])


def test_the_penalty_is_beside_the_sum_over_all_rows():
    X, y = blobs(n_rows=900)
    C, n_rows = 0.05, 900
    model = make(1e6, C=C, fit_intercept=False).fit(X, y)
    # hardly any noise: near the minimiser of the penalised loss of all rows
    reference = make(1e6, mechanism="output", solver="newton", C=C, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=0.01, atol=0.05)
    phase = plan_of(model, n_rows, 2, 2).runs[0][0][1][-1]
    query = plan_of(model, n_rows, 2, 2)._query(phase, np.ones(2))
    share = phase.n_rows / n_rows / C
    assert query.ridge == pytest.approx(phase.pull * phase.n_rows + share)
    np.testing.assert_allclose(query.center, phase.pull * phase.n_rows / query.ridge)


def test_units_do_not_matter():
    X, y = blobs(n_rows=500)
    one = make(1.0, clipping_norm=0.2, growth="halving").fit(X, y)
    other = make(1.0, clipping_norm=0.2, growth="halving", data_norm=1024.0).fit(1024 * X, y)
    np.testing.assert_allclose(other.coef_ * 1024, one.coef_, rtol=1e-9)


def test_sorted_rows_are_spread_over_the_phases():
    X, y = blobs(n_rows=2000)
    first = np.argsort(y, kind="stable")
    assert make().fit(X[first], y[first]).score(X, y) > 0.9


def test_phases_with_moments_have_clips_of_their_own():
    problem = Problem(
        4000, 9, ClippedLoss(LogisticLoss(), 0.9, 1.0), 0.0, 1.0, 1e-6, "zero-out",
        moments=(2.0, 0.05),
    )  # fmt: skip
    (((radius, phases),),) = Localized().plan(problem).runs
    assert radius is None
    for phase in phases:
        wanted = 0.05 * np.sqrt(phase.n_rows * gdp_mu(1.0, 1e-6) / 3)
        assert phase.clip == pytest.approx(min(wanted, 0.9))
        query = Localized().plan(problem)._query(phase, np.zeros(9))
        facts = query.sensitivity("zero-out", phase.n_rows)
        assert facts.l2 == pytest.approx(phase.clip / query.ridge, rel=1e-6)


def test_without_a_bound_the_solution_is_expected_in_a_large_ball():
    plan = plan_of(make(growth="halving"), 1000, 2, 2)
    assert [radius for radius, _ in plan.runs[0]] == [
        EXPECTED_RADIUS, EXPECTED_RADIUS / 2,
    ]  # fmt: skip


def test_the_order_is_public_and_covers_the_rows():
    plan = plan_of(make(), 1000, 2, 2)
    np.testing.assert_array_equal(plan.order(), public_order(1000))


def test_a_short_clip_is_the_default_of_smooth_losses_of_two_classes():
    for model, share in (
        (make(), 0.5),
        (make(clipping_norm=10.0), 1.0),
        (make(classes=(0, 1, 2)), 1.0),
    ):
        n_classes = len(model.classes)
        plan = plan_of(model, 1000, 2, n_classes)
        problem = plan.problem
        clips = {phase.clip for _, phases in plan.runs[0] for phase in phases}
        assert clips == {share * problem.loss.lipschitz * problem.row_norm}
    plan = plan_of(make(estimator=DPHingeSVM), 1000, 2, 2)
    assert plan.runs[0][0][1][0].clip == plan.problem.row_norm


def test_a_ball_beyond_reach_and_a_moment_beyond_the_longest_gradient_change_nothing():
    near, far = (plan_of(make(coef_bound=bound), 1000, 2, 2).runs for bound in (1e6, 1e40))
    assert near == far
    loss = ClippedLoss(LogisticLoss(), 1.0, 1.0)
    plans = [
        Localized().plan(Problem(4000, 9, loss, 0.0, 1.0, 1e-6, "zero-out", moments=(4.0, bound)))
        for bound in (1e3, 1e40)
    ]
    assert plans[0].runs == plans[1].runs
