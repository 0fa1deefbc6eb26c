# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Claims of stochastic gradient descent: audits of sampled batches and planted bugs."""

import contextlib
import functools
import itertools
import math
import pickle
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from skdp import DPHingeSVM, DPLogisticRegression, DPMean
from skdp._quantiles import NormThreshold, ThresholdPlan
from skdp._rows.columns import centered_rows
from skdp._rows.linear import LinearRows
from skdp.exceptions import BudgetError
from skdp.location._clipped_mean import GaussianMean, RowSum
from skdp.papers import feature_preprocessing
from skdp.papers.feature_preprocessing import Centering
from skdp.privacy import GaussianMechanism, Record, Sampling, gdp_mu
from skdp.privacy.kernel import curator, ledger, mechanisms
from skdp.privacy.kernel.samplers import SeededBits
from skdp.solvers import gradient
from skdp.solvers import sgd as sgd_solver
from skdp.solvers.gradient import ClippedGradient
from tests import _audit
from tests import _audit_batches as batches
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    Rows,
    as_layout,
    neighbours,
    on_examples,
    with_duplicates,
    worst_mean_pairs,
    worst_pairs,
)
from tests._solvers import linear_model

# What estimators claim, audited: coupled trace, noise stream, black box, taint.


EPSILON, DELTA = 2.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
PLAN = {"epsilon": EPSILON, "delta": DELTA, "max_iter": 5}
# steps too small to move: the gradient is clipped in every step
STILL = {"clipping_norm": 1e-3, "step_size": 1e-6}
GRID = [
    {"solver": solver, "classes": classes, "fit_intercept": fit_intercept}
    for solver, classes, fit_intercept in itertools.product(
        ["accelerated", "gd"], [(0, 1), (0, 1, 2)], [True, False]
    )
]
EXTRAS = [{}, {"coef_bound": 0.5}, {"data_norm": 7.0}, {"intercept_scaling": 0.01}]
every_model = pytest.mark.parametrize("params", GRID, ids=lambda p: "-".join(map(str, p.values())))
# what the coupled trace measures, and what it must not exceed
MEASURES = {
    "gaussian": (_audit.coupled_mu, CLAIMED_MU),
    "laplace": (_audit.coupled_epsilon, EPSILON),
}
every_mechanism = pytest.mark.parametrize("mechanism", MEASURES)


def logistic(params, adjacency="replace-one", **extra):
    options = {"random_state": 0, **PLAN, **params, **extra}
    return linear_model(DPLogisticRegression, adjacency=adjacency, **options)


def fit_rows(model, rows):
    return clone(model).fit(rows.X, rows.labels())


@pytest.mark.covering
@every_adjacency
@every_model
@pytest.mark.parametrize("extra", EXTRAS, ids=str)
def test_logistic_claim_is_kept_and_tight(params, extra, adjacency):
    model = logistic(params, adjacency, **STILL, **extra)
    fit = functools.partial(fit_rows, model)
    n_classes = len(params["classes"])
    pairs = worst_pairs(30, 3, n_classes, adjacency, model.data_norm)
    measured = [_audit.coupled_mu(fit, *pair) for pair in pairs]
    # three equally probable classes and an intercept: no two gradients are opposite
    tight = 0.86 if n_classes == 3 and params["fit_intercept"] else 0.999
    assert tight * CLAIMED_MU <= max(measured) <= CLAIMED_MU


@pytest.mark.covering
@every_adjacency
@every_model
@on_examples(20)
def test_logistic_claim_is_kept_on_any_neighbours(params, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-3, 1e3]))
    extra = {
        "data_norm": radius,
        "clipping_norm": data.draw(st.sampled_from([None, 0.1, 1e3])),
        "step_size": data.draw(st.sampled_from([None, 1e-6, 1e9])),
        "coef_bound": data.draw(st.sampled_from([None, 1.0 / radius])),
        "intercept_scaling": data.draw(st.sampled_from([None, 0.1, 10.0])),
        "C": data.draw(st.sampled_from([1.0, 1e-3, np.inf])),
    }
    model = logistic(params, adjacency, **extra)
    n_classes = len(params["classes"])
    pair = data.draw(neighbours(adjacency, n_classes=n_classes, radius=radius, finite=True))
    assert _audit.coupled_mu(functools.partial(fit_rows, model), *pair) <= CLAIMED_MU


@pytest.mark.sample(3)
@every_model
def test_logistic_claim_is_kept_on_the_way_to_a_good_fit(params):
    # default clipping, and steps that move
    claimed = gdp_mu(8.0, DELTA)
    fit = functools.partial(fit_rows, logistic({**params, "max_iter": None}, epsilon=8.0))
    pairs = worst_pairs(300, 3, len(params["classes"]), "replace-one", 1.0)
    measured = [_audit.coupled_mu(fit, *pair) for pair in pairs]
    assert 0.3 * claimed <= max(measured) <= claimed


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("layout", ["csr", "csr zeros", "csr duplicates", "F", "float32"])
def test_logistic_claim_holds_in_every_layout(layout, adjacency):
    model = logistic(GRID[0], adjacency, **STILL, data_norm=2.0)
    fit = functools.partial(fit_rows, model)
    measured = []
    for pair in worst_pairs(30, 3, 2, adjacency, 2.0):
        pair = [replace(rows, X=as_layout(rows.X, layout)) for rows in pair]
        measured.append(_audit.coupled_mu(fit, *pair))
    assert 0.999 * CLAIMED_MU <= max(measured) <= CLAIMED_MU


@pytest.mark.covering
@every_adjacency
@every_mechanism
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize(
    "domain", [{"bounds": (2.0, 5.0)}, {"data_norm": 1.0}, {"data_norm": 40.0}]
)
def test_mean_claim_is_kept_and_tight(domain, d, mechanism, adjacency):
    model = DPMean(EPSILON, DELTA, mechanism=mechanism, adjacency=adjacency, **domain)
    radius = domain.get("data_norm")
    lower, upper = domain.get("bounds") or (-radius, radius)
    measure, claimed = MEASURES[mechanism]
    pairs = worst_mean_pairs(20, d, adjacency, lower, upper)
    measured = [measure(clone(model).fit, *pair) for pair in pairs]
    assert 0.999 * claimed <= max(measured) <= claimed


@pytest.mark.covering
@every_adjacency
@every_mechanism
@on_examples(50)
def test_mean_claim_is_kept_on_any_neighbours(mechanism, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100]))
    first, second = data.draw(neighbours(adjacency, radius=radius, finite=True, null_row=0.0))
    model = DPMean(EPSILON, DELTA, mechanism=mechanism, adjacency=adjacency, data_norm=radius)
    measure, claimed = MEASURES[mechanism]
    assert measure(clone(model).fit, first.X, second.X) <= claimed


MODELS = [
    logistic(GRID[0]),
    logistic(GRID[2], solver="gd"),
    DPMean(EPSILON, DELTA, data_norm=1.0, mechanism="gaussian"),
    DPMean(EPSILON, DELTA, mechanism="laplace", bounds=(-1.0, 1.0)),
]
every_kind = pytest.mark.parametrize("model", MODELS, ids=str)


def some_rows(n_rows, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_features)), rng.integers(0, 3, n_rows)


def draws(model, data):
    return [step.standard for step in _audit.noise_stream(clone(model).fit, *data)]


@every_kind
def test_noise_has_the_declared_scale(model):
    fit = clone(model).set_params(random_state=1).fit
    additions = _audit.noise_stream(fit, *some_rows(9, 5000))
    assert not _audit.scale_is_wrong(additions)
    for step in additions:
        assert not _audit.scale_is_wrong([step])


def test_no_noise_is_ever_used_twice():
    data, stateful = some_rows(20), np.random.RandomState(0)
    unseeded = [clone(model).set_params(random_state=None) for model in MODELS]
    # equal seeds on two kinds of estimators: what each of them draws is its own
    seeded = [MODELS[1], MODELS[3]]
    streams = [draws(model, data) for model in [*unseeded, *unseeded, *seeded]]
    for _ in range(2):
        # not cloned: a clone has a copy of the generator
        fit = logistic(GRID[0], random_state=stateful).fit
        streams.append([step.standard for step in _audit.noise_stream(fit, *data)])
    with _audit.recorded() as folds:
        cross_validate(unseeded[0], *data, cv=[(np.arange(10), np.arange(10, 20))] * 3)
    streams.append([step.standard for step in folds])
    steps = [step for stream in streams for step in stream]
    assert len(steps) == 2 * (5 + 5 + 1 + 1) + (5 + 1) + 2 * 5 + 3 * 5
    assert _audit.repeats(*steps) == 0


@pytest.mark.full
@pytest.mark.parametrize(
    "model",
    [logistic(GRID[2], max_iter=1), DPMean(EPSILON, DELTA, data_norm=1.0, mechanism="gaussian")],
    ids=str,
)
def test_workers_draw_their_own_noise(model):
    model = clone(model).set_params(random_state=None)
    cv = [(np.arange(10), np.arange(10, 20))] * 4
    result = cross_validate(model, *some_rows(20), cv=cv, n_jobs=2, return_estimator=True)
    fitted = result["estimator"]
    assert not any(each.ledger_.seeded for each in fitted)
    # the statistic is the same on the same fold: only noise makes a difference
    published = [getattr(each, "coef_", getattr(each, "location_", None)) for each in fitted]
    assert len(np.unique(published)) == np.size(published)


def test_labels_outside_the_public_set_cause_no_warning():
    # a warning that depends on the data is a release; here warnings are errors
    assert logistic(GRID[0]).fit(np.ones((60, 2)), np.arange(60)).n_iter_ == PLAN["max_iter"]


def outputs(model, X, y, seeds):
    """Return what many whole runs on the same data publish, one row each."""
    fitted = (clone(model).set_params(random_state=seed).fit(X, y) for seed in seeds)
    if y is None:
        return np.array([each.location_ for each in fitted])
    return np.array([np.append(each.coef_, each.intercept_) for each in fitted])


tiny_worlds = pytest.mark.parametrize(
    ("model", "labels"),
    [
        (logistic(GRID[4], max_iter=4, **STILL), (0, 1)),
        (logistic(GRID[1], "zero-out", max_iter=2, **STILL), (0, 99)),
        (DPMean(data_norm=1.0, mechanism="gaussian"), ()),
    ],
    ids=["gd", "accelerated", "mean"],
)


def audited_epsilon(model, labels, epsilon, runs):
    """Return a lower bound on epsilon from many whole fits on a worst pair."""
    # one row of two is another one: opposite, or with another label
    model = clone(model).set_params(epsilon=epsilon, delta=DELTA)
    second = [[0.1], [1.0 if labels else -1.0]]
    y = [np.array([0, label]) for label in labels] or (None, None)
    worlds = (
        outputs(model, np.array([[0.1], [1.0]]), y[0], range(runs)),
        outputs(model, np.array(second), y[1], range(runs, 2 * runs)),
    )
    return _audit.black_box_epsilon(*worlds, DELTA)


@pytest.mark.parametrize(
    ("epsilon", "runs"),
    [
        pytest.param(8.0, 300, marks=pytest.mark.slow),
        pytest.param(4.0, 2000, marks=pytest.mark.slow),
    ],
)
@tiny_worlds
def test_whole_fits_cannot_be_told_apart_better_than_claimed(model, labels, epsilon, runs):
    # few runs, looked at by default, see less of it
    seen = 3 if runs == 2000 else 6
    assert epsilon / seen < audited_epsilon(model, labels, epsilon, runs) < epsilon


@every_kind
def test_a_fit_keeps_nothing_as_long_as_the_data(model):
    sizes = set()
    for n_rows in (137, 5003):
        fitted = clone(model).fit(*some_rows(n_rows))
        sizes.add(len(pickle.dumps(fitted)))
        assert not any(n_rows in np.shape(value) for value in vars(fitted).values())
    assert len(sizes) == 1


@every_kind
def test_without_the_noisy_statistic_nothing_depends_on_the_data(model):
    hashes = set()
    for seed in range(3):
        X, y = some_rows(40, seed=seed)
        X[seed] *= 10.0 ** (100 * seed)
        with mock.patch.object(mechanisms, "add_noise", lambda x, *_: np.full(x.shape, 0.25)):
            fitted = clone(model).fit(X, y)
        # every fit has an identity of its own, by chance
        hashes.add(joblib.hash(vars(fitted) | {"_fit_note": fitted._fit_note.names}))
    assert len(hashes) == 1


# What fits on random batches claim: membership, coupled traces, laws of batches, black box.


SAMPLING_EPSILON, SAMPLING_DELTA, N = 2.0, 1e-5, 24


def sgd(adjacency="replace-one", n_classes=2, estimator=DPLogisticRegression, **options):
    """Return a model that makes a few steps on Poisson batches."""
    usual = {
        "epsilon": SAMPLING_EPSILON,
        "delta": SAMPLING_DELTA,
        "solver": "sgd",
        "batch_size": 6,
        "max_iter": 8,
        "random_state": 0,
        "classes": range(n_classes),
        "adjacency": adjacency,
    }
    return linear_model(estimator, **{**usual, **STILL, **options})


def fit(model, X, y):
    return clone(model).fit(X, y)


def arrays(rows, layout="C"):
    return as_layout(rows.X, layout), rows.labels()


SAMPLING_MODELS = {
    "binary": sgd(),
    "three classes": sgd(n_classes=3),
    "no intercept": sgd(fit_intercept=False),
    "hinge": sgd(estimator=DPHingeSVM),
    "moving": sgd(clipping_norm=None, step_size=None),
    "data_norm": sgd(data_norm=7.0, intercept_scaling=1.0),
    "center": sgd(preprocess="center", preprocess_share=0.3),
}
every_sampling_model = pytest.mark.parametrize("name", SAMPLING_MODELS)


@pytest.mark.sample(3)
@every_adjacency
@every_sampling_model
def test_membership_of_a_row_changes_no_more_than_is_charged(name, adjacency):
    model = clone(SAMPLING_MODELS[name]).set_params(adjacency=adjacency)
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
    changed = batches.membership(functools.partial(fit, SAMPLING_MODELS["binary"]), 0, *data)
    mu = fit(SAMPLING_MODELS["binary"], *data).ledger_.releases[-1].noise.mu
    assert max(changed) == pytest.approx(mu, rel=1e-3)
    assert max(changed) <= mu


@pytest.mark.sample(3)
@every_adjacency
@every_sampling_model
def test_neighbours_with_the_same_batches_differ_by_what_is_charged(name, adjacency):
    model = clone(SAMPLING_MODELS[name]).set_params(adjacency=adjacency)
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


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("name", ["binary", "center"])
def test_measured_changes_compose_to_the_claim(name, adjacency):
    model = clone(SAMPLING_MODELS[name]).set_params(adjacency=adjacency)
    ((rows, other), *_) = worst_pairs(N, 3, 2, adjacency, 1.0)
    run = functools.partial(fit, model)
    changed = batches.membership(run, 0, *arrays(rows))
    first, second = batches.coupled(run, arrays(rows), arrays(other))
    full = np.linalg.norm(batches.changes(first, second, "full"))
    spent = batches.composed_epsilon(changed, 6 / N, adjacency, SAMPLING_DELTA, full)
    assert spent <= SAMPLING_EPSILON
    if name == "binary":
        assert spent > 0.99 * SAMPLING_EPSILON
    assert fit(model, *arrays(rows)).privacy_spent_[0] <= SAMPLING_EPSILON


@pytest.mark.full
def test_recorded_batches_are_independent_poisson_batches():
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    for batch_size in (12.5, 150, 290):
        model = sgd(batch_size=batch_size, max_iter=200)
        trace = batches.traced(functools.partial(fit, model), X, y)
        assert len(trace.batches) == 200
        assert batches.batches_are_wrong(trace.batches, 300, batch_size / 300) is None


@pytest.mark.full
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("preprocess", ["center-scale", "center-clip"])
def test_rows_in_units_of_a_drawn_radius_change_by_what_is_charged(preprocess, adjacency):
    # given the center and the draw: row 0 is far out, or null, or on the other side
    rng = np.random.default_rng(1)
    X, y = 0.01 * rng.normal(size=(400, 3)) + [0.5, 0.5, 0.0], np.arange(400) % 2
    X[0] = [0.6, 0.6, 0.3]
    model = sgd(adjacency, preprocess=preprocess, epsilon=30.0, batch_size=40)
    if preprocess == "center-clip":
        model.set_params(solver__solver__clipping_norm=None)
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
@on_examples(20)
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


@pytest.mark.slow
@pytest.mark.parametrize(("adjacency", "label"), [("replace-one", 0), ("zero-out", 99)])
def test_whole_fits_on_batches_cannot_be_told_apart_better_than_claimed(adjacency, label):
    # one row of two is another one, or a null row; one step on half of the rows
    model = sgd(adjacency, epsilon=6.0, batch_size=1, max_iter=1, fit_intercept=False, delta=1e-3)
    X, runs = np.array([[0.0], [1.0]]), 400
    one = world(model, X, [0, 1], range(runs))
    other = world(model, X, [0, label], range(runs, 2 * runs))
    assert 0.5 < _audit.rate_epsilon(one, other, 1e-3) < 6.0


@pytest.mark.slow
def test_the_black_box_finds_noise_for_a_rate_that_is_not_kept(monkeypatch):
    # the same worlds with a batch that is always everything: more is seen than was paid for
    model = sgd("zero-out", epsilon=1.0, batch_size=0.02, max_iter=1, fit_intercept=False)
    X, runs = np.array([[0.0], [1.0]]), 400
    for kept, caught in ((True, False), (False, True)):
        if not kept:
            monkeypatch.setattr("skdp.privacy.Sampling.draw", lambda *_: np.arange(2))
        one = world(model, X, [0, 1], range(runs))
        other = world(model, X, [0, 99], range(runs, 2 * runs))
        assert (_audit.rate_epsilon(one, other, SAMPLING_DELTA) > 1.0) == caught


# Known privacy bugs, planted one by one: the audits must see every one of them.
#
# Every test first shows that the audit passes on the real code.


MUTANT_EPSILON, MUTANT_DELTA, STEPS = 2.0, 1e-5, 9
MUTANT_CLAIMED_MU = gdp_mu(MUTANT_EPSILON, MUTANT_DELTA)


def mutant_logistic(**options):
    defaults = {
        "max_iter": STEPS, "clipping_norm": 0.1, "step_size": 1e-6, "solver": "gd",
        "classes": (0, 1), "random_state": 0,
    }  # fmt: skip
    return linear_model(
        DPLogisticRegression, MUTANT_EPSILON, MUTANT_DELTA, **{**defaults, **options}
    )


def trace(model, adjacency="replace-one", pairs=None):
    """Return the largest coupled mu over worst pairs, relative to the claim."""
    pairs = pairs or worst_pairs(12, 3, len(model.classes), adjacency, model.data_norm)
    model = clone(model).set_params(adjacency=adjacency)

    def fit(rows):
        clone(model).fit(rows.X, rows.labels())

    return max(_audit.coupled_mu(fit, *pair) for pair in pairs) / MUTANT_CLAIMED_MU


def stream(model, n_rows=10, n_features=60):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, n_features)), rng.integers(0, 3, n_rows)
    return _audit.noise_stream(clone(model).fit, X, y)


def is_tight(ratio, expected=1.0):
    return ratio == pytest.approx(expected, rel=1e-3)


def passes(ratio):
    return 0.999 <= ratio <= 1.0


@pytest.mark.parametrize(
    "model",
    [
        mutant_logistic(),
        DPMean(MUTANT_EPSILON, MUTANT_DELTA, random_state=0, data_norm=1.0, mechanism="gaussian"),
    ],
    ids=str,
)
def test_halved_noise_is_caught(model, monkeypatch):
    assert not _audit.scale_is_wrong(stream(model, n_features=500))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(stream(model, n_features=500))


def test_halved_noise_is_caught_by_the_black_box_too():
    # a statistic that moves by 1 between two neighbours, with the noise that this needs
    first, second = np.random.default_rng(0).normal(size=(2, 4000, 1)) / MUTANT_CLAIMED_MU
    assert _audit.black_box_epsilon(first, 1 + second, MUTANT_DELTA) < MUTANT_EPSILON
    assert _audit.black_box_epsilon(first / 2, 1 + second / 2, MUTANT_DELTA) > MUTANT_EPSILON


def unclipped(self, chunk):
    return chunk.combine(self.loss.residual(chunk.predict(self.coef), chunk.target))


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_dropped_clipping_is_caught(classes, monkeypatch):
    model = mutant_logistic(classes=classes, intercept_scaling=0.01)
    assert passes(trace(model))
    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert trace(model) > 1.5


def test_rows_that_are_not_clipped_to_the_data_norm_are_caught(monkeypatch):
    model = mutant_logistic(clipping_norm=None, coef_bound=1e-3)
    assert trace(model) <= 1
    monkeypatch.setattr(
        "skdp._rows.base.L2Ball.factors", lambda ball, norms: 1 / ball.radius + 0 * norms
    )
    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert trace(model) > 1.5


@pytest.mark.sample(1)
@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_an_intercept_outside_the_norm_is_caught(scaling, monkeypatch):
    model = mutant_logistic(intercept_scaling=scaling)
    assert passes(trace(model))

    class Forgetful(LinearRows):
        def __init__(self, *args):
            super().__init__(*args)
            for chunk in self.chunks:
                finite = np.isfinite(chunk.norm)
                inner = np.sqrt(np.maximum(chunk.norm[finite] ** 2 - scaling**2, 1e-12))
                chunk.norm[finite] = inner

    monkeypatch.setattr("skdp.linear_model._classifiers.LinearRows", Forgetful)
    # residuals are at most 1/2 here, and rows are of norm 1: so is the limit, 0.1
    assert is_tight(trace(model), math.hypot(1, scaling))


def test_noise_reused_across_steps_is_caught(monkeypatch):
    model = mutant_logistic()
    assert _audit.repeats(*[step.standard for step in stream(model)]) == 0
    real, kept = mechanisms.add_noise, []

    def reused(values, noise, bits):
        out = real(values, noise, bits)
        statistic = noise.grid * np.rint(values / noise.grid)
        kept.append(out - statistic)
        return statistic + kept[0]

    monkeypatch.setattr(mechanisms, "add_noise", reused)
    assert _audit.repeats(*[step.standard for step in stream(model)]) > 0


def test_noise_reused_across_classes_is_caught(monkeypatch):
    model = mutant_logistic(classes=(0, 1, 2), max_iter=1)
    assert _audit.repeats(*[step.standard for step in stream(model)]) == 0
    real = mechanisms.add_noise

    def reused(values, noise, bits):
        statistic = noise.grid * np.rint(values / noise.grid)
        one = (real(values, noise, bits) - statistic).reshape(3, -1)[0]
        return statistic + np.tile(one, 3)

    monkeypatch.setattr(mechanisms, "add_noise", reused)
    assert _audit.repeats(*[step.standard for step in stream(model)]) > 0


def test_noise_reused_across_fits_is_caught(monkeypatch):
    model = mutant_logistic(random_state=None)
    twice = [step.standard for _ in range(2) for step in stream(model)]
    assert _audit.repeats(*twice) == 0
    monkeypatch.setattr(curator, "make_bits", lambda *_: SeededBits(0))
    twice = [step.standard for _ in range(2) for step in stream(model)]
    assert _audit.repeats(*twice) > 0


def test_replace_one_accounted_as_zero_out_is_caught(monkeypatch):
    mean = DPMean(MUTANT_EPSILON, MUTANT_DELTA, random_state=0, data_norm=1.0, mechanism="gaussian")
    pairs = worst_mean_pairs(5, 2, "replace-one", -1.0, 1.0)

    def ratios():
        measured = max(_audit.coupled_mu(clone(mean).fit, *pair) for pair in pairs)
        return trace(mutant_logistic()), measured / MUTANT_CLAIMED_MU

    assert all(map(passes, ratios()))
    for query in (ClippedGradient, RowSum):

        def one_row(self, adjacency, n_rows, real=query.sensitivity):
            return real(self, "zero-out", n_rows)

        monkeypatch.setattr(query, "sensitivity", one_row)
    assert ratios() == pytest.approx((2, 2), rel=1e-3)


@pytest.mark.sample(1)
def test_an_accountant_told_of_one_step_is_caught(monkeypatch):
    assert passes(trace(mutant_logistic()))

    # every step is sold at the price of all, and the ledger remembers one of them
    monkeypatch.setattr(
        gradient, "GaussianMechanism", lambda _: GaussianMechanism(MUTANT_CLAIMED_MU)
    )
    monkeypatch.setattr(
        Record,
        "append",
        lambda ledger, release: replace(ledger, releases=(replace(release, count=1),)),
    )
    assert is_tight(trace(mutant_logistic()), math.sqrt(STEPS))


def test_the_budget_catches_it_without_an_audit(monkeypatch):
    monkeypatch.setattr(gradient, "GaussianMechanism", lambda mu: GaussianMechanism(mu * 1.001))
    with pytest.raises(BudgetError):
        trace(mutant_logistic())


def test_duplicate_entries_not_summed_before_norms_are_caught(monkeypatch):
    # the norm over stored entries is 1/sqrt(2) of a row's norm when every entry is in halves
    model = mutant_logistic(fit_intercept=False, data_norm=1.0, clipping_norm=0.4)
    pairs = [
        [Rows(with_duplicates(rows.X), rows.codes, rows.null) for rows in pair]
        for pair in worst_pairs(12, 3, 2, "replace-one", 1.0)
    ]
    assert passes(trace(model, pairs=pairs))
    monkeypatch.setattr("skdp._rows.linear.tame", lambda X: (X, np.zeros(X.shape[0], bool)))
    assert is_tight(trace(model, pairs=pairs), math.sqrt(2))


# Known bugs of random batches, planted one by one: the audits see them all.
#
# Every test first shows that the audit passes on the real code.


RATE = 6 / N
Cost = ledger.SampledCost


def worst(adjacency="replace-one"):
    """Return two neighbours as pairs of arrays: row 0 is another one, or null."""
    return [arrays(rows) for rows in worst_pairs(N, 3, 2, adjacency, 1.0)[0]]


def membership(model, row=0):
    """Return the largest change by a row's membership, in units of what is charged."""
    first, _ = worst()
    trace = batches.traced(functools.partial(fit, model), *first)
    changed = batches.membership(functools.partial(fit, model), row, *first)
    return max(changed) / trace.steps[0].noise.mu


def spent(model, adjacency):
    """Return epsilon of a fit, from what changes between neighbours and with membership."""
    model = clone(model).set_params(adjacency=adjacency)
    run, (first, second) = functools.partial(fit, model), worst(adjacency)
    changed = batches.membership(run, 0, *first)
    full = np.linalg.norm(batches.changes(*batches.coupled(run, first, second), "full"))
    return batches.composed_epsilon(changed, RATE, adjacency, SAMPLING_DELTA, full)


def judged(model, n_rows=120, batch_size=30):
    X, y = np.random.default_rng(0).normal(size=(n_rows, 2)), np.arange(n_rows) % 2
    model = clone(model).set_params(solver__batch_size=batch_size, max_iter=100)
    trace = batches.traced(functools.partial(fit, model), X, y)
    return batches.batches_are_wrong(trace.batches, n_rows, batch_size / n_rows)


def test_a_batch_divided_by_its_realised_size_is_caught(monkeypatch):
    assert passes(membership(sgd()))
    real = ClippedGradient.evaluate

    def mean_of_what_came(query, rows):
        size = sum(len(chunk.norm) for chunk in rows.chunks)
        return real(query, rows) * 6 / max(size, 1)

    monkeypatch.setattr(ClippedGradient, "evaluate", mean_of_what_came)
    assert membership(sgd()) > 1.05


def test_dropped_clipping_of_batches_is_caught(monkeypatch):
    assert passes(membership(sgd()))

    def unclipped(query, chunk):
        return chunk.combine(query.loss.residual(chunk.predict(query.coef), chunk.target))

    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert membership(sgd()) > 1.5


def test_shuffled_epochs_passed_off_as_coins_are_caught(monkeypatch):
    assert judged(sgd()) is None
    rng, left = np.random.default_rng(0), []

    def next_of_epoch(sampling, bits):
        if len(left) < sampling.batch_size:
            left[:] = rng.permutation(sampling.n_rows)
        taken, left[:] = left[: int(sampling.batch_size)], left[int(sampling.batch_size) :]
        return np.sort(taken)

    monkeypatch.setattr(Sampling, "draw", next_of_epoch)
    assert judged(sgd()) is not None

    # even if their sizes look right: rows come once an epoch
    def of_random_size(sampling, bits):
        size = rng.binomial(sampling.n_rows, sampling.rate)
        while len(left) < size:
            left.extend(rng.permutation(sampling.n_rows))
        taken, left[:] = np.unique(left[:size]), left[size:]
        return taken

    monkeypatch.setattr(Sampling, "draw", of_random_size)
    assert judged(sgd()) == "counts"


def test_a_fixed_size_passed_off_as_coins_is_caught(monkeypatch):
    assert judged(sgd()) is None
    real = Sampling.draw

    def fixed(sampling, bits):
        return real(replace(sampling, kind="without-replacement"), bits)

    monkeypatch.setattr(Sampling, "draw", fixed)
    assert judged(sgd()) == "sizes"


def test_repeated_rows_passed_off_as_coins_are_caught(monkeypatch):
    assert judged(sgd()) is None
    real = Sampling.draw
    monkeypatch.setattr(
        Sampling, "draw", lambda s, bits: real(replace(s, kind="with-replacement"), bits)
    )
    assert judged(sgd()) == "repeated rows"


def test_a_larger_rate_than_charged_is_caught(monkeypatch):
    assert judged(sgd()) is None
    real = Sampling.draw
    monkeypatch.setattr(
        Sampling, "draw", lambda s, bits: real(replace(s, batch_size=1.2 * s.batch_size), bits)
    )
    assert judged(sgd()) == "rate"


@pytest.mark.parametrize("period", [1, 2, 5])
def test_a_batch_that_is_used_again_is_caught(period, monkeypatch):
    assert judged(sgd()) is None
    real, kept = Sampling.draw, []

    def again(sampling, bits):
        kept.append(kept[-period] if len(kept) >= period else real(sampling, bits))
        return kept[-1]

    monkeypatch.setattr(Sampling, "draw", again)
    assert judged(sgd()) is not None


def test_halved_noise_of_batches_is_caught(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(30, 300)), np.arange(30) % 2
    model = sgd(preprocess="center")
    assert not _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X, y))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X, y))


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_an_accountant_told_of_one_batch_is_caught(adjacency, monkeypatch):
    assert 0.99 * SAMPLING_EPSILON < spent(sgd(), adjacency) <= SAMPLING_EPSILON
    real = sgd_solver.sampled_mu

    def of_one_step(*args, **kwargs):
        return real(*args, **{**kwargs, "n_releases": 1})

    monkeypatch.setattr(sgd_solver, "sampled_mu", of_one_step)
    # the budget sees it, unless the ledger is told the same
    with pytest.raises(BudgetError):
        spent(sgd(), adjacency)
    monkeypatch.setattr(ledger, "SampledCost", lambda *args: Cost(*args[:3], 1))
    assert spent(sgd(), adjacency) > 1.5 * SAMPLING_EPSILON


def test_replace_one_charged_as_zero_out_is_caught(monkeypatch):
    assert 0.99 * SAMPLING_EPSILON < spent(sgd(), "replace-one") <= SAMPLING_EPSILON
    real = sgd_solver.sampled_mu

    def cheaper(*args, **kwargs):
        return real(*args, **{**kwargs, "adjacency": "zero-out"})

    monkeypatch.setattr(sgd_solver, "sampled_mu", cheaper)
    with pytest.raises(BudgetError):
        spent(sgd(), "replace-one")
    monkeypatch.setattr(
        ledger, "SampledCost", lambda s, mu, _, count: Cost(s, mu, "zero-out", count)
    )
    assert spent(sgd(), "replace-one") > 1.2 * SAMPLING_EPSILON


@pytest.mark.full
def test_a_sampling_that_is_charged_at_a_lower_rate_is_caught(monkeypatch):
    assert spent(sgd(), "zero-out") <= SAMPLING_EPSILON
    monkeypatch.setattr(Sampling, "rate", property(lambda s: 0.5 * s.batch_size / s.n_rows))
    # another budget: prices are remembered
    assert spent(sgd(epsilon=1.9), "zero-out") > 1.2 * 1.9


def test_full_gradients_charged_as_batches_are_caught(monkeypatch):
    # every step reads all rows, and pays for a batch
    assert judged(sgd()) is None
    monkeypatch.setattr(Sampling, "draw", lambda s, bits: np.arange(s.n_rows))
    assert judged(sgd()) == "rate"


# Known bugs of privately centered rows, planted one by one: the audits see them all.
#
# Every test first shows that the audit passes on the real code.


def without_released_numbers(model, threshold=300):
    """Return how many models come of three data sets if all that is released is fixed."""
    hashes = set()
    with contextlib.ExitStack() as stack:
        still = lambda x, *_: np.full(x.shape, 0.25)  # noqa: E731
        stack.enter_context(mock.patch.object(mechanisms, "add_noise", still))
        stack.enter_context(
            mock.patch.object(NormThreshold, "draw", return_value=np.array([float(threshold)]))
        )
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(400, 3)) * 10.0**-seed, rng.integers(0, 2, 400)
            fitted = clone(model).fit(X, y)
            hashes.add(joblib.hash(vars(fitted)))
    return len(hashes)


CENTERED = {
    "center": sgd(preprocess="center", preprocess_share=0.3),
    "center-clip": sgd(preprocess="center-clip", epsilon=30.0, clipping_norm=None),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CENTERED)
def test_a_center_taken_from_the_data_is_caught(name, monkeypatch):
    assert without_released_numbers(CENTERED[name]) == 1
    real = Centering.run

    def peeking(plan, curator):
        _, radius = real(plan, curator)
        true = []

        def moved(rows):
            body = rows.chunks[0].widened().X
            true.append(body.mean(axis=0))
            return rows

        curator.map_rows(moved)
        curator._admitted(None)
        return true[0], radius

    monkeypatch.setattr(Centering, "run", peeking)
    assert without_released_numbers(CENTERED[name]) == 3


@pytest.mark.full
def test_a_threshold_taken_from_the_data_is_caught(monkeypatch):
    model = CENTERED["center-clip"]
    assert without_released_numbers(model) == 1

    def longest(plan, curator, center):
        (chunk,) = curator._admitted(None).chunks
        rows = chunk.X * chunk.factor[:, None]
        return float(np.linalg.norm(rows - center, axis=1).max())

    monkeypatch.setattr(ThresholdPlan, "run", longest)
    assert without_released_numbers(model) == 3


def test_a_center_at_half_its_price_is_caught(monkeypatch):
    model = CENTERED["center"]
    assert spent(model, "zero-out") <= SAMPLING_EPSILON

    def better(plan, curator, real=GaussianMean.run):
        return real(replace(plan, mu=2 * plan.mu), curator)

    monkeypatch.setattr(GaussianMean, "run", better)
    # the budget sees it, unless the ledger forgets half of it
    with pytest.raises(BudgetError):
        spent(model, "zero-out")
    monkeypatch.setattr(Record, "mu", property(lambda s, real=Record.mu: real.fget(s) / 2))
    assert spent(model, "zero-out") > 1.05 * SAMPLING_EPSILON


@pytest.mark.full
def test_a_center_that_is_not_on_the_ledger_is_caught(monkeypatch):
    model = sgd(preprocess="center", preprocess_share=0.45)
    assert spent(model, "zero-out") <= SAMPLING_EPSILON
    real = feature_preprocessing.plan_row_centering
    monkeypatch.setattr(
        "skdp.papers.feature_preprocessing.plan_row_centering",
        lambda *args, **kwargs: replace(real(*args, **kwargs), mu=0.0),
    )
    with pytest.raises(BudgetError):
        spent(model, "zero-out")
    monkeypatch.setattr(Record, "mu", property(lambda s: 0.0))
    assert spent(model, "zero-out") > 1.05 * SAMPLING_EPSILON


def far_row_change():
    """Return what a row far outside the radius changes, in units of what is charged."""
    rng = np.random.default_rng(1)
    X, y = 0.01 * rng.normal(size=(400, 3)) + [0.5, 0.5, 0.0], np.arange(400) % 2
    X[0] = [-0.6, -0.6, 0.3]
    model = clone(CENTERED["center-clip"]).set_params(
        adjacency="zero-out", solver__solver__batch_size=40
    )
    run = functools.partial(fit, model)
    changed = batches.membership(run, 0, X, y, threshold=360)
    return max(changed) / batches.traced(run, X, y, threshold=360).steps[0].noise.mu


@pytest.mark.full
def test_rows_that_are_not_shortened_after_centering_are_caught(monkeypatch):
    assert far_row_change() <= 1

    def long_rows(rows, center, intercept, radius, shorten):
        moved = centered_rows(rows, center, intercept, radius)
        for chunk in moved.chunks:
            chunk.norm = np.minimum(chunk.norm, np.hypot(1.0, intercept))
        return moved

    monkeypatch.setattr(feature_preprocessing, "centered_rows", long_rows)
    assert far_row_change() > 1.5


def test_null_rows_that_come_back_with_the_center_are_caught(monkeypatch):
    # a null row stands at the origin, and would stand at minus the center
    model = CENTERED["center"]
    _, second = worst("zero-out")
    ledger = fit(clone(model).set_params(adjacency="zero-out"), *second).ledger_

    def change():
        run = functools.partial(fit, clone(model).set_params(adjacency="zero-out"))
        return max(batches.membership(run, 0, *second)) / ledger.releases[-1].noise.mu

    assert change() == 0

    def awake(*args):
        moved = centered_rows(*args)
        for chunk in moved.chunks:
            chunk.norm = np.where(np.isinf(chunk.norm), 1.0, chunk.norm)
        return moved

    monkeypatch.setattr(feature_preprocessing, "centered_rows", awake)
    assert change() > 0.5
