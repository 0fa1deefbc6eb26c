# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Solver "accelerated-one-pass": rows of every step, prices, restarts, runs, clipping."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from skdp._losses.classification import LogisticLoss
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import SquaredLoss
from skdp.papers import AcceleratedOnePass
from skdp.privacy import gdp_mu
from skdp.solvers.base import Problem
from tests import _audit
from tests._neighbours import ADJACENCIES, Rows, changed, neighbours
from tests._solvers import linear_model
from tests.linear_model.test_mechanisms import blobs

EPSILON, DELTA = 2.0, 1e-5
WAYS = [
    {}, {"growth": "halving"}, {"growth": "doubling"}, {"growth": "doubling", "growth_order": 1.1},
    {"failure_probability": 0.2}, {"growth": "halving", "failure_probability": 0.2},
]  # fmt: skip


def make(estimator=DPLogisticRegression, **options):
    usual = {
        "epsilon": EPSILON, "delta": DELTA, "solver": "accelerated-one-pass", "classes": (0, 1),
        "random_state": 0,
    }  # fmt: skip
    return linear_model(estimator, **{**usual, **options})


def problem(**options):
    usual = {
        "n_rows": 1000, "n_features": 3, "loss": LogisticLoss(), "intercept": 0.1,
        "epsilon": EPSILON, "delta": DELTA, "adjacency": "replace-one",
    }  # fmt: skip
    return Problem(**{**usual, **options})


def planned(given=None, **options):
    names = ("growth", "growth_order", "failure_probability", "step_size")
    own = {name: options.pop(name) for name in names if name in options}
    return AcceleratedOnePass(**own).plan(given or problem(**options))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("n_rows", [100, 1000, 10_007])
def test_every_row_is_read_in_exactly_one_step(way, n_rows):
    plan = planned(n_rows=n_rows, **way)
    parts = [part for run in plan.runs for restart in run for part in restart.parts]
    assert parts[0][0] == 0
    assert parts[-1][1] == n_rows
    assert all(one[1] == other[0] for one, other in itertools.pairwise(parts))
    assert all(start < stop for start, stop in parts)
    assert len(parts) == plan.n_iter
    np.testing.assert_array_equal(np.sort(plan.order()), np.arange(n_rows))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_step_has_the_whole_budget_and_the_ledger_takes_the_largest(way, adjacency):
    X, y = blobs(500)
    model = make(adjacency=adjacency, clipping_norm=0.2, **way).fit(X, y)
    releases = model.ledger_.releases
    mu = gdp_mu(EPSILON, DELTA)
    assert sum(release.count for release in releases) == model.n_iter_ == len(releases)
    for release in releases:
        assert release.noise.mu == pytest.approx(mu)
        assert release.stated_sensitivity == pytest.approx(0.2 * (1 + (adjacency != "zero-out")))
        assert release.noise.scale == pytest.approx(release.stated_sensitivity / mu, rel=1e-3)
    assert model.ledger_.mu == pytest.approx(mu)
    assert EPSILON * 0.999 < model.privacy_spent_[0] <= EPSILON


def row_trace(model, rows, i, adjacency, code):
    """Return the coupled mu of a change of row i, relative to the claim."""
    fit = lambda data: clone(model).fit(data.X, data.labels())  # noqa: E731
    other = changed(rows, i, adjacency, rows.X[i], code)
    return _audit.coupled_mu(fit, rows, other) / gdp_mu(EPSILON, DELTA)


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("way", [{}, {"failure_probability": 0.2}], ids=str)
def test_a_row_of_any_part_costs_the_budget_and_not_more(way, n_classes, adjacency):
    # long rows, whose gradients are longer than the clip whatever the coefficients: two
    # labels' gradients are opposite
    n_rows = 101
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    X *= 10 / np.linalg.norm(X, axis=1, keepdims=True)
    rows = Rows(X, np.arange(n_rows) % n_classes, np.zeros(n_rows, bool))
    model = make(
        adjacency=adjacency, classes=range(n_classes), clipping_norm=1e-6, coef_bound=1e-3, **way
    )
    found = [
        row_trace(model, rows, i, adjacency, (rows.codes[i] + 1) % n_classes)
        for i in range(0, n_rows, 20)
    ]
    assert max(found) <= 1
    # three classes: the residuals of two labels are at 120 degrees
    least = 0.999 if n_classes == 2 or adjacency == "zero-out" else 0.85
    assert min(found) > least


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
@settings(max_examples=10)
@given(data=st.data())
def test_no_neighbours_cost_more_than_the_budget(estimator, adjacency, data):
    n_classes, radius = data.draw(st.sampled_from([(2, 1.0), (3, 1e-3), (2, 1e3)]))
    model = make(
        estimator, adjacency=adjacency, classes=range(n_classes), data_norm=radius,
        C=data.draw(st.sampled_from([0.01, np.inf])) / radius**2,
        coef_bound=data.draw(st.sampled_from([None, 0.5])),
        clipping_norm=data.draw(st.sampled_from([None, 0.1])),
        fit_intercept=data.draw(st.booleans()),
    )  # fmt: skip
    pair = data.draw(neighbours(adjacency, n_classes=n_classes, radius=radius, finite=True))
    fit = lambda data: clone(model).fit(data.X, data.labels())  # noqa: E731
    assert _audit.coupled_mu(fit, *pair) <= gdp_mu(EPSILON, DELTA)


@pytest.mark.parametrize("growth", ["halving", "doubling"])
def test_a_row_of_any_restart_costs_no_more(growth):
    n_rows = 1001
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    rows = Rows(X, np.arange(n_rows) % 2, np.zeros(n_rows, bool))
    model = make(growth=growth)
    assert len({r.rows for r in clone(model).fit(X, rows.labels()).ledger_.releases}) > 10
    found = [row_trace(model, rows, i, "replace-one", 1 - rows.codes[i]) for i in (0, 3, 500, 990)]
    assert 0.1 < min(found) <= max(found) <= 1


@pytest.mark.covering
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_it_learns_from_sorted_rows(estimator, way):
    X, y = blobs(1000)
    order = np.argsort(y, kind="stable")
    model = make(estimator, epsilon=8.0, coef_bound=20.0, **way).fit(X[order], y[order])
    assert model.score(X, y) > 0.9
    beyond = np.append(model.coef_, model.intercept_ / 0.1)
    assert np.linalg.norm(beyond) <= 20.0 * (1 + 1e-9)
    dense = model.coef_
    other = clone(model).fit(sparse.csr_array(X[order]), y[order])
    np.testing.assert_allclose(other.coef_, dense, rtol=1e-6)


def test_restarts_stay_near_the_last_result():
    plan = planned(n_rows=10_000, growth="halving", radius=8.0)
    reaches = [restart.reach for restart in plan.runs[0]]
    assert reaches == [8.0 / 2**i for i in range(len(reaches))]
    assert len(reaches) == 4
    free = planned(n_rows=10_000, radius=8.0)
    assert [restart.reach for restart in free.runs[0]] == [None]


class Recorder:
    """A curator that answers with the number of rows, and remembers what was asked."""

    def __init__(self):
        self.asked = []

    def release(self, query, mechanism, rows):
        self.asked.append((query, rows))
        return np.full(query.size, float(rows[1] - rows[0]))


def test_steps_start_at_the_last_result_and_follow_means_of_the_pointwise_loss():
    given = problem(radius=8.0)
    inner = SquaredLoss()
    given = replace(given, loss=ClippedLoss(inner, 0.7, given.row_norm))
    plan, curator = planned(given, growth="halving", step_size=1e-3), Recorder()
    found = plan.run(curator)
    assert all(query.loss is inner for query, _ in curator.asked)
    assert [rows for _, rows in curator.asked] == [p for one in plan.runs[0] for p in one.parts]
    # every mean gradient is (1, 1, 1, 1), so that the point after t steps is known
    coef, first = 0.0, 0
    for restart in plan.runs[0]:
        np.testing.assert_allclose(curator.asked[first][0].coef, np.full(4, coef))
        t = np.arange(1, restart.steps.n_steps + 1)
        coef -= t @ np.cumsum(t / 2 * 1e-3) / t.sum()
        first += len(t)
    assert len(plan.runs[0]) == 2
    np.testing.assert_allclose(found, np.full(4, coef))


def test_restarts_plan_for_the_radius_that_is_left():
    one, other = planned(n_rows=10_000, growth="halving").runs[0][:2]
    assert other.reach == one.reach / 2
    assert other.steps.error_bound < one.steps.error_bound / 1.9
    assert other.steps.n_steps < one.steps.n_steps


def test_what_was_asked_for_is_done():
    plan = planned(max_iter=9, step_size=0.5, clipping_norm=0.3)
    steps = plan.runs[0][0].steps
    assert (steps.n_steps, steps.step_size, steps.clip, steps.adaptive) == (9, 0.5, 0.3, False)
    few = planned(n_rows=4, max_iter=9)
    assert few.runs[0][0].parts == ((0, 1), (1, 2), (2, 3), (3, 4))


def test_a_loss_that_is_clipped_gives_its_clip_and_is_clipped_once():
    given = problem()
    inner = SquaredLoss()
    clipped = replace(given, loss=ClippedLoss(inner, 0.7, given.row_norm))
    plan = planned(clipped)
    assert plan.problem.pointwise is inner
    assert plan.runs[0][0].steps.clip == pytest.approx(0.7)


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
def test_moments_choose_the_clip(order):
    # like r (n mu / (a sqrt d))^(1/k), but for the steps that share the rows
    clips = []
    for n_rows in (10_000, 160_000):
        given = problem(n_rows=n_rows, moments=(order, 1e-4), max_iter=10)
        clips.append(planned(given).runs[0][0].steps.clip)
    assert clips[1] / clips[0] == pytest.approx(16 ** (1 / order), rel=0.01)
    capped = planned(moments=(order, 1e9))
    assert capped.runs[0][0].steps.clip == problem().row_norm


@pytest.mark.parametrize("preprocess", ["center", "center-scale", "center-clip"])
def test_centred_rows_are_paid_for_beside_the_steps(preprocess):
    X, y = blobs(600)
    model = make(epsilon=4.0, preprocess=preprocess, C=10.0).fit(X + 0.3, y)
    assert model.score(X + 0.3, y) > 0.9
    assert model.privacy_spent_[0] <= 4.0


REFUSED = [
    ({"delta": 0.0}, "delta must be greater than 0"),
    ({"failure_probability": 1e-9}, "failure_probability=1e-09 asks for"),
    ({"growth": "tripling"}, "growth"),
    ({"growth": "doubling", "growth_order": 1.0}, "growth_order"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=str)
def test_what_does_not_go_together_is_refused(options, message):
    X, y = blobs(60)
    with pytest.raises(ValueError, match=message):
        make(**options).fit(X, y)
