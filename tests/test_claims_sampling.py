# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What fits on random batches claim: membership, coupled traces, laws of batches, black box."""

import functools

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from tests import _audit
from tests import _audit_batches as batches
from tests._neighbours import ADJACENCIES, LAYOUTS, as_layout, neighbours, on_examples, worst_pairs
from tests._solvers import linear_model

EPSILON, DELTA, N = 2.0, 1e-5, 24
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
# steps too small to move, and gradients that are clipped in every step
STILL = {"clipping_norm": 1e-3, "step_size": 1e-6}


def sgd(adjacency="replace-one", n_classes=2, estimator=DPLogisticRegression, **options):
    """Return a model that makes a few steps on Poisson batches."""
    usual = {
        "epsilon": EPSILON, "delta": DELTA, "solver": "sgd", "batch_size": 6, "max_iter": 8,
        "random_state": 0, "classes": range(n_classes), "adjacency": adjacency,
    }  # fmt: skip
    return linear_model(estimator, **{**usual, **STILL, **options})


def fit(model, X, y):
    return clone(model).fit(X, y)


def arrays(rows, layout="C"):
    return as_layout(rows.X, layout), rows.labels()


MODELS = {
    "binary": sgd(),
    "three classes": sgd(n_classes=3),
    "no intercept": sgd(fit_intercept=False),
    "hinge": sgd(estimator=DPHingeSVM),
    "moving": sgd(clipping_norm=None, step_size=None),
    "data_norm": sgd(data_norm=7.0, intercept_scaling=1.0),
    "center": sgd(preprocess="center", preprocess_share=0.3),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.mark.covering
@every_adjacency
@every_model
def test_membership_of_a_row_changes_no_more_than_is_charged(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    ((rows, _), *_) = worst_pairs(N, 3, len(model.classes), adjacency, model.data_norm)
    for row in (0, 1, N - 1):
        changed = batches.membership(functools.partial(fit, model), row, *arrays(rows))
        (release,) = fit(model, *arrays(rows)).ledger_.releases[-1:]
        assert len(changed) == release.count == 8
        assert max(changed) <= release.noise.mu
        if row == 0 and name not in ("moving", "center"):
            assert max(changed) == pytest.approx(release.noise.mu, rel=1e-3)


@pytest.mark.parametrize("layout", ["csr", "csr duplicates", "F", "float32"])
def test_membership_in_every_layout(layout):
    ((rows, _), *_) = worst_pairs(N, 3, 2, "zero-out", 1.0)
    data = arrays(rows, layout)
    changed = batches.membership(functools.partial(fit, MODELS["binary"]), 0, *data)
    mu = fit(MODELS["binary"], *data).ledger_.releases[-1].noise.mu
    assert max(changed) == pytest.approx(mu, rel=1e-3)
    assert max(changed) <= mu


@pytest.mark.covering
@every_adjacency
@every_model
def test_neighbours_with_the_same_batches_differ_by_what_is_charged(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    reach = 1 if adjacency == "zero-out" else 2
    largest = []
    for pair in worst_pairs(N, 3, len(model.classes), adjacency, model.data_norm):
        first, second = batches.coupled(functools.partial(fit, model), *map(arrays, pair))
        for change, batch, step in zip(
            batches.changes(first, second), first.batches, first.steps, strict=True
        ):
            assert change <= reach * step.noise.mu
            if 0 not in batch:
                assert change == 0
            largest.append(change / reach / step.noise.mu)
        for change, step in zip(batches.changes(first, second, "full"), first.full, strict=True):
            assert change <= step.noise.mu
    if name in ("binary", "no intercept", "data_norm"):
        assert max(largest) == pytest.approx(1, rel=1e-3)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("kind", ["without-replacement", "with-replacement"])
def test_batches_of_fixed_size_move_by_the_distance_of_two_rows(kind, adjacency):
    options = {} if kind == "without-replacement" else {"coef_bound": 1.0}
    model = sgd(adjacency, sampling=kind, **options)
    run = functools.partial(fit, model)
    for pair in worst_pairs(N, 3, 2, adjacency, 1.0):
        first, second = batches.coupled(run, *map(arrays, pair))
        for change, batch, step in zip(
            batches.changes(first, second), first.batches, first.steps, strict=True
        ):
            assert len(batch) == 6
            assert change <= np.sum(batch == 0) * step.noise.mu * (1 + 1e-9)
    if kind == "without-replacement":
        changed = batches.membership(run, 0, *arrays(pair[0]), change=batches.swapped)
        assert max(changed) <= step.noise.mu


@every_adjacency
@pytest.mark.parametrize("name", ["binary", "center"])
def test_measured_changes_compose_to_the_claim(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    ((rows, other), *_) = worst_pairs(N, 3, 2, adjacency, 1.0)
    run = functools.partial(fit, model)
    changed = batches.membership(run, 0, *arrays(rows))
    first, second = batches.coupled(run, arrays(rows), arrays(other))
    full = np.linalg.norm(batches.changes(first, second, "full"))
    spent = batches.composed_epsilon(changed, 6 / N, adjacency, DELTA, full)
    assert spent <= EPSILON
    if name == "binary":
        assert spent > 0.99 * EPSILON
    assert fit(model, *arrays(rows)).privacy_spent_[0] <= EPSILON


def test_recorded_batches_are_independent_poisson_batches():
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    for batch_size in (12.5, 150, 290):
        model = sgd(batch_size=batch_size, max_iter=200)
        trace = batches.traced(functools.partial(fit, model), X, y)
        assert len(trace.batches) == 200
        assert batches.batches_are_wrong(trace.batches, 300, batch_size / 300) is None


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("preprocess", ["center-scale", "center-clip"])
def test_rows_in_units_of_a_drawn_radius_change_by_what_is_charged(preprocess, adjacency):
    # given the centre and the draw: row 0 is far out, or null, or on the other side
    rng = np.random.default_rng(1)
    X, y = 0.01 * rng.normal(size=(400, 3)) + [0.5, 0.5, 0.0], np.arange(400) % 2
    X[0] = [0.6, 0.6, 0.3]
    model = sgd(adjacency, preprocess=preprocess, epsilon=30.0, batch_size=40)
    if preprocess == "center-clip":
        model.set_params(solver__clipping_norm=None)
    run = functools.partial(fit, model)
    other = X.copy(), y.copy()
    if adjacency == "zero-out":
        other[1][0] = 99
    else:
        other[0][0] *= -1
    reach = 1 if adjacency == "zero-out" else 2
    for threshold in (300, 350, 400):
        trace, second = batches.coupled(run, (X, y), other, threshold=threshold)
        assert trace.full
        assert len(trace.steps) == 8
        for which, most in (("steps", reach), ("full", 1)):
            pairs = zip(batches.changes(trace, second, which), getattr(trace, which), strict=True)
            assert all(change <= most * step.noise.mu for change, step in pairs)
        changed = batches.membership(run, 0, X, y, threshold=threshold)
        assert max(changed) <= trace.steps[0].noise.mu
        if preprocess == "center-scale":
            assert max(changed) == pytest.approx(trace.steps[0].noise.mu, rel=1e-3)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("preprocess", [None, "center", "center-clip"])
@on_examples(25)
def test_any_neighbours_with_the_same_batches_differ_by_what_is_charged(
    preprocess, adjacency, data
):
    radius = data.draw(st.sampled_from([1.0, 1e-3, 1e3]))
    n_classes = data.draw(st.sampled_from([2, 3]))
    layouts = LAYOUTS if preprocess is None else ("C", "F", "strided", "float32")
    first, second = data.draw(
        neighbours(adjacency, n_classes=n_classes, radius=radius, finite=True, layouts=layouts)
    )
    options = {
        "data_norm": radius,
        "clipping_norm": data.draw(st.sampled_from([None, 0.1, 1e3])),
        "step_size": data.draw(st.sampled_from([None, 1.0])),
        "batch_size": 0.6 * first.X.shape[0],
        "max_iter": 4,
    }
    model = sgd(adjacency, n_classes, preprocess=preprocess, **options)
    run, reach = functools.partial(fit, model), 1 if adjacency == "zero-out" else 2
    pair = [(rows.X, rows.labels()) for rows in (first, second)]
    traces = batches.coupled(run, *pair)
    for which, most in (("steps", reach), ("full", 1)):
        found = zip(batches.changes(*traces, which), getattr(traces[0], which), strict=True)
        assert all(change <= most * step.noise.mu for change, step in found)
    for row in range(first.X.shape[0]):
        changed = batches.membership(run, row, *pair[0])
        assert max(changed) <= traces[0].steps[0].noise.mu


def world(model, X, y, seeds):
    fits = (clone(model).set_params(random_state=seed).fit(X, y) for seed in seeds)
    return np.array([fitted.coef_[0, 0] for fitted in fits])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("adjacency", "label"), [("replace-one", 0), ("zero-out", 99)])
def test_whole_fits_cannot_be_told_apart_better_than_claimed(adjacency, label):
    # one row of two is another one, or a null row; one step on half of the rows
    model = sgd(adjacency, epsilon=6.0, batch_size=1, max_iter=1, fit_intercept=False, delta=1e-3)
    X, runs = np.array([[0.0], [1.0]]), 400
    one = world(model, X, [0, 1], range(runs))
    other = world(model, X, [0, label], range(runs, 2 * runs))
    assert 0.5 < _audit.rate_epsilon(one, other, 1e-3) < 6.0


@pytest.mark.full
def test_the_black_box_finds_noise_for_a_rate_that_is_not_kept(monkeypatch):
    # the same worlds with a batch that is always everything: more is seen than was paid for
    model = sgd("zero-out", epsilon=1.0, batch_size=0.02, max_iter=1, fit_intercept=False)
    X, runs = np.array([[0.0], [1.0]]), 400
    for kept, caught in ((True, False), (False, True)):
        if not kept:
            monkeypatch.setattr("skdp.privacy.Sampling.draw", lambda *_: np.arange(2))
        one = world(model, X, [0, 1], range(runs))
        other = world(model, X, [0, 99], range(runs, 2 * runs))
        assert (_audit.rate_epsilon(one, other, DELTA) > 1.0) == caught
