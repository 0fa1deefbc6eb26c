# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What bias-reduced fits claim: membership, coupled traces, and what they compose to."""

import functools

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression, _gate
from skdp.papers import BiasReduced
from tests import _audit
from tests import _audit_batches as batches
from tests._neighbours import ADJACENCIES, LAYOUTS, as_layout, neighbours, worst_pairs
from tests._solvers import linear_model

EPSILON, DELTA, N = 2.0, 1e-5, 24
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
# steps too small to move, and gradients that are clipped in every step
STILL = {"clipping_norm": 1e-3, "step_size": 1e-6}


def reduced(adjacency="replace-one", n_classes=2, estimator=DPLogisticRegression, **options):
    """Return a model with two levels: batches of a quarter, a half, and all of the rows."""
    usual = {
        "epsilon": EPSILON, "delta": DELTA, "solver": "bias-reduced", "batch_size": 6,
        "max_iter": 9, "random_state": 0, "classes": range(n_classes), "adjacency": adjacency,
    }  # fmt: skip
    return linear_model(estimator, **{**usual, **STILL, **options})


def fit(model, X, y):
    return clone(model).fit(X, y)


def arrays(rows, layout="C"):
    return as_layout(rows.X, layout), rows.labels()


def toggled(batch, row):
    """Return the batch with the row's membership changed; all rows stay all rows."""
    return None if batch is None else batches.toggled(batch, row)


MODELS = {
    "binary": reduced(),
    "three classes": reduced(n_classes=3),
    "no intercept": reduced(fit_intercept=False),
    "hinge": reduced(estimator=DPHingeSVM),
    "moving": reduced(clipping_norm=None, step_size=None),
    "data_norm": reduced(data_norm=7.0, intercept_scaling=1.0),
    "projection": reduced(oracle="projection", sparsity=3),
    "sketch": reduced(oracle="sketch", sparsity=3, max_iter=4),
    "boosting": reduced(failure_probability=0.5, max_iter=4),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.mark.covering
@every_adjacency
@every_model
def test_membership_of_a_row_changes_no_more_than_is_charged(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    ((rows, _), *_) = worst_pairs(N, 3, len(model.classes), adjacency, model.data_norm)
    run, data = functools.partial(fit, model), arrays(rows)
    trace = batches.traced(run, *data)
    for row in (0, N - 1):
        changed = batches.membership(run, row, *data, change=toggled)
        assert len(changed) == len(trace.steps)
        for change, step in zip(changed, trace.steps, strict=True):
            if step.noise.by_chance:
                assert change <= step.noise.mu
                if row == 0 and name not in ("moving", "sketch"):
                    # in the batch and a half of it, or in the smallest batch
                    assert change == pytest.approx(step.noise.mu, rel=1e-3)
            else:
                assert change == 0


@pytest.mark.covering
@every_adjacency
@every_model
def test_neighbours_with_the_same_batches_differ_by_what_is_charged(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    largest = {True: [], False: []}
    for pair in worst_pairs(N, 3, len(model.classes), adjacency, model.data_norm):
        first, second = batches.coupled(functools.partial(fit, model), *map(arrays, pair))
        for change, batch, step in zip(
            batches.changes(first, second), first.batches, first.steps, strict=True
        ):
            # with random batches the price is stated for one contribution
            reach = 2 if step.noise.by_chance and adjacency == "replace-one" else 1
            assert change <= reach * step.noise.mu
            if batch is not None and 0 not in batch:
                assert change == 0
            largest[step.noise.by_chance].append(change / reach / step.noise.mu)
    if name in ("binary", "no intercept", "data_norm"):
        assert max(largest[True]) == pytest.approx(1, rel=1e-3)
        assert max(largest[False]) == pytest.approx(1, rel=1e-3)


def composed(model, adjacency):
    """Return epsilon from measured changes, level by level; the accountant is not asked."""
    model = clone(model).set_params(adjacency=adjacency)
    run, pairs = functools.partial(fit, model), worst_pairs(N, 3, 2, adjacency, 1.0)
    traces = [batches.coupled(run, *map(arrays, pair)) for pair in pairs]
    # the pair that is furthest apart where all rows are read
    trace, other = max(traces, key=lambda pair: np.linalg.norm(batches.changes(*pair)))
    changed = batches.membership(run, 0, *arrays(pairs[0][0]), change=toggled)
    full, total, interval = 0.0, None, 2.0**-11
    for change, distance, step in zip(
        changed, batches.changes(trace, other), trace.steps, strict=True
    ):
        if not step.noise.by_chance:
            full = np.hypot(full, distance)
            continue
        size = step.noise.sampling.batch_size
        one = loss_of(round(change, 12), size / N, adjacency, interval)
        total = one if total is None else total.compose(one)
    total = total.compose(loss_of(full, 1.0, "zero-out", interval))
    return float(total.get_epsilon_for_delta(DELTA))


@functools.lru_cache
def loss_of(change, rate, adjacency, interval):
    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / change, sampling_prob=rate, value_discretization_interval=interval,
        neighboring_relation=batches.RELATIONS[adjacency],
    )  # fmt: skip


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("name", ["binary", "projection"])
def test_measured_changes_compose_to_the_claim(name, adjacency):
    spent = composed(MODELS[name], adjacency)
    assert 0.99 * EPSILON < spent <= EPSILON
    ((rows, _), *_) = worst_pairs(N, 3, 2, adjacency, 1.0)
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    claimed, delta = fit(model, *arrays(rows)).privacy_spent_
    assert spent <= claimed * 1.001
    assert 0.99 * EPSILON < claimed <= EPSILON
    assert delta == DELTA


@every_adjacency
def test_all_sums_have_the_same_noise_and_every_level_its_row(adjacency):
    ((rows, _), *_) = worst_pairs(N, 3, 2, adjacency, 1.0)
    releases = fit(reduced(adjacency), *arrays(rows)).ledger_.releases
    assert [r.count for r in releases] == [9, 6, 3]
    assert [r.noise.sampling.batch_size for r in releases] == [6, 12, 24]
    assert [r.size for r in releases] == [4, 12, 12]
    scales = np.array([r.noise.scale for r in releases])
    np.testing.assert_allclose(scales, scales[0], rtol=1e-5)
    assert not releases[-1].noise.by_chance
    assert "of its halves" in releases[1].query


def test_recorded_batches_are_independent_poisson_batches():
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    model = reduced(batch_size=75, max_iter=150)
    trace = batches.traced(functools.partial(fit, model), X, y)
    by_size = {}
    for batch, step in zip(trace.batches, trace.steps, strict=True):
        if batch is not None:
            by_size.setdefault(step.noise.sampling.batch_size, []).append(batch)
    assert {size: len(found) for size, found in by_size.items()} == {75: 150, 150: 100}
    for size, found in by_size.items():
        assert batches.batches_are_wrong(found, 300, size / 300) is None


class Reached(Exception):
    """The curator was called."""


@pytest.mark.parametrize("failure", [None, 0.1])
def test_the_plan_is_complete_before_there_is_a_curator(failure, monkeypatch):
    plans, real = [], BiasReduced.plan

    def kept(solver, problem):
        plans.append(real(solver, problem))
        return plans[-1]

    def refused(*args, **kwargs):
        raise Reached

    monkeypatch.setattr(BiasReduced, "plan", kept)
    rng = np.random.default_rng(0)
    models = reduced(failure_probability=failure), reduced(failure_probability=failure)
    with monkeypatch.context() as patch:
        patch.setattr(_gate, "Curator", refused)
        for model in models:
            with pytest.raises(Reached):
                model.fit(rng.normal(size=(N, 3)), rng.integers(0, 2, N))
    # other rows, the same levels, noise and steps
    assert plans[0].steps == plans[1].steps
    (steps,) = {plan.steps for plan in plans}
    assert len(steps.levels) == steps.n_runs == (1 if failure is None else 5)
    assert {len(levels) for levels in steps.levels} == {9}
    # and the fit does what the plan says
    trace = batches.traced(
        functools.partial(fit, models[0]), rng.normal(size=(N, 3)), np.arange(N) % 2
    )
    sizes = [step.noise.sampling.batch_size for step in trace.steps]
    assert sizes[::2] == [6] * 9 * steps.n_runs
    expected = [12 * 2**level for levels in steps.levels for level in levels]
    assert sizes[1::2] == expected


@pytest.mark.sample(1)
@every_adjacency
@settings(max_examples=12)
@given(data=st.data())
def test_any_neighbours_with_the_same_batches_differ_by_what_is_charged(adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-3, 1e3]))
    n_classes = data.draw(st.sampled_from([2, 3]))
    first, second = data.draw(
        neighbours(adjacency, n_classes=n_classes, radius=radius, finite=True, layouts=LAYOUTS)
    )
    n_rows = first.X.shape[0]
    options = {
        "data_norm": radius,
        "clipping_norm": data.draw(st.sampled_from([None, 0.1, 1e3])),
        "step_size": data.draw(st.sampled_from([None, 1.0])),
        "batch_size": max(1.0, 0.5 * n_rows),
        "max_iter": 2,
        "oracle": data.draw(st.sampled_from(["soft-threshold", "projection", "sketch"])),
        "sparsity": data.draw(st.sampled_from([1, 3])),
    }
    model = reduced(adjacency, n_classes, **options)
    run = functools.partial(fit, model)
    pair = [(rows.X, rows.labels()) for rows in (first, second)]
    traces = batches.coupled(run, *pair)
    for change, step in zip(batches.changes(*traces), traces[0].steps, strict=True):
        reach = 2 if step.noise.by_chance and adjacency == "replace-one" else 1
        assert change <= reach * step.noise.mu
    for row in range(n_rows):
        changed = batches.membership(run, row, *pair[0], change=toggled)
        assert all(c <= s.noise.mu for c, s in zip(changed, traces[0].steps, strict=True))


def world(model, X, y, seeds):
    fits = (clone(model).set_params(random_state=seed).fit(X, y) for seed in seeds)
    return np.array([fitted.coef_[0, 0] for fitted in fits])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("adjacency", "label"), [("replace-one", 0), ("zero-out", 99)])
def test_whole_fits_cannot_be_told_apart_better_than_claimed(adjacency, label):
    model = reduced(
        adjacency, epsilon=4.0, batch_size=1, max_iter=1, fit_intercept=False, delta=1e-3,
        clipping_norm=1.0, step_size=1.0,
    )  # fmt: skip
    X, runs = np.array([[0.0], [1.0]]), 150
    one = world(model, X, [0, 1], range(runs))
    other = world(model, X, [0, label], range(runs, 2 * runs))
    assert _audit.rate_epsilon(one, other, 1e-3) < 4.0
