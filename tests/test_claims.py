# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What estimators claim, audited: coupled trace, noise stream, black box, taint."""

import functools
import itertools
import pickle
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from skdp import DPLogisticRegression, DPMean
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests._neighbours import (
    ADJACENCIES,
    as_layout,
    neighbours,
    on_examples,
    worst_mean_pairs,
    worst_pairs,
)
from tests._solvers import linear_model

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
@on_examples(40)
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
@on_examples(100)
def test_mean_claim_is_kept_on_any_neighbours(mechanism, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100]))
    first, second = data.draw(neighbours(adjacency, radius=radius, finite=True, null_row=0.0))
    model = DPMean(EPSILON, DELTA, mechanism=mechanism, adjacency=adjacency, data_norm=radius)
    measure, claimed = MEASURES[mechanism]
    assert measure(clone(model).fit, first.X, second.X) <= claimed


MODELS = [
    logistic(GRID[0]),
    logistic(GRID[2], solver="gd"),
    DPMean(EPSILON, DELTA),
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
@pytest.mark.parametrize("model", [logistic(GRID[2], max_iter=1), DPMean(EPSILON, DELTA)], ids=str)
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
        (DPMean(), ()),
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


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("epsilon", "runs"), [(8.0, 300), pytest.param(4.0, 2000, marks=pytest.mark.full)]
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
        with mock.patch.object(_mechanisms, "add_noise", lambda x, *_: np.full(x.shape, 0.25)):
            fitted = clone(model).fit(X, y)
        hashes.add(joblib.hash(vars(fitted)))
    assert len(hashes) == 1
