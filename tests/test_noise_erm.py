# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The noise of every mechanism of the linear classifiers, and what a fit leaves behind."""

import itertools
import pickle
from unittest import mock

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests.test_claims_erm import ADDITIVE, DELTA, ESTIMATORS, every_estimator, every_new, make


def some_rows(n_rows, n_features=4, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_features)), rng.integers(0, n_classes, n_rows)


# noise that comes late is looked at in tests/linear_model/test_lazy_sgd_law.py
STREAMED = [pair for pair in ADDITIVE if pair[1] not in ("cvxpy", "lazy-sgd")]


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize(("mechanism", "solver"), STREAMED)
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_every_addition_has_its_declared_scale(name, mechanism, solver, delta):
    if delta == 0 and (mechanism == "gradient" or solver in ("phased", "localized", "one-pass")):
        return
    n_features = 30 if solver == "newton" else 300
    model = make(name, mechanism, solver, delta=delta, random_state=1)
    additions = _audit.noise_stream(model.fit, *some_rows(9, n_features))
    assert not _audit.scale_is_wrong(additions)
    for step in additions:
        assert not _audit.scale_is_wrong([step])
        assert step.noise.law == ("gaussian" if delta else "k-norm")
    if mechanism == "objective":
        # the secret linear term is added to zeros, the cover to the minimiser
        assert len(additions) == 2
        assert not additions[0].statistic.any()
        assert additions[0].noise.scale > 100 * additions[1].noise.scale


@pytest.mark.covering
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_many_additions_follow_their_declared_law(mechanism, delta):
    model = make("logistic", mechanism, "newton", delta=delta, random_state=None)
    data = some_rows(6, 5)
    additions = [step for _ in range(150) for step in _audit.noise_stream(model.fit, *data)]
    assert not _audit.law_is_wrong(additions)
    assert not _audit.scale_is_wrong(additions)


def test_no_noise_is_ever_used_twice():
    data, streams = some_rows(20), []
    pairs = [("objective", "newton"), ("output", "phased"), ("output", "one-pass")]
    pairs += [("gradient", "accelerated-one-pass"), ("output", "localized")]
    for (mechanism, solver), n_classes in itertools.product(pairs, (2, 3)):
        model = make("logistic", mechanism, solver, n_classes, random_state=None)
        for _ in range(2):
            streams += _audit.noise_stream(model.fit, *data)
    for name in ESTIMATORS:
        # equal seeds on two kinds of estimators: what each of them draws is its own
        streams += _audit.noise_stream(make(name, "objective", "newton", delta=0.0).fit, *data)
    stateful = make("hinge", "objective", "newton", random_state=np.random.RandomState(0))
    for _ in range(2):
        streams += _audit.noise_stream(stateful.fit, *data)
    with _audit.recorded() as folds:
        unseeded = make("logistic", "objective", "newton", random_state=None)
        cross_validate(unseeded, *data, cv=[(np.arange(10), np.arange(10, 20))] * 3)
    assert len(folds) == 6
    streams += folds
    assert _audit.repeats(*[step.standard for step in streams]) == 0


SOME = [
    ("objective", "newton"),
    ("output", "phased"),
    ("output", "localized"),
    ("exponential", "exact"),
]


def published(model):
    return np.append(model.coef_, model.intercept_)


@pytest.mark.parametrize(("mechanism", "solver"), SOME)
def test_workers_draw_their_own_noise(mechanism, solver):
    model = make("hinge", mechanism, solver, random_state=None)
    cv = [(np.arange(10), np.arange(10, 20))] * 4
    result = cross_validate(model, *some_rows(20), cv=cv, n_jobs=2, return_estimator=True)
    fitted = result["estimator"]
    assert not any(each.ledger_.seeded for each in fitted)
    # the statistic is the same on the same fold: only noise makes a difference
    values = [published(each) for each in fitted]
    assert len(np.unique(values)) == np.size(values)


@pytest.mark.covering
@every_estimator
@every_new
def test_seeds_repeat_a_fit_and_nothing_else_does(name, mechanism, solver):
    model = make(name, mechanism, solver)
    data = some_rows(30, 2, n_classes=2)
    seeded = [published(clone(model).set_params(random_state=s).fit(*data)) for s in (0, 0, 1)]
    np.testing.assert_array_equal(seeded[0], seeded[1])
    model.set_params(random_state=None)
    # the same object twice, and its clone
    repeats = 10 if solver == "net" else 1
    free = [published(each.fit(*data)) for each in (model, model, clone(model)) * repeats]
    values = [seeded[0], seeded[2], *free]
    # two draws from a finite set may agree; thirty do not
    assert len(np.unique(values, axis=0)) >= (4 if solver == "net" else len(values))


@every_new
def test_a_fit_keeps_nothing_as_long_as_the_data(mechanism, solver):
    for n_rows in (137, 1003):
        fitted = make("hinge", mechanism, solver).fit(*some_rows(n_rows, 2))
        assert not any(n_rows in np.shape(value) for value in vars(fitted).values())
        assert len(pickle.dumps(fitted)) < 12_000


@pytest.mark.covering
@every_estimator
@every_new
def test_without_the_noisy_statistic_nothing_depends_on_the_data(name, mechanism, solver):
    hashes = set()
    for seed in range(3):
        X, y = some_rows(40, 2, seed=seed)
        X[seed] *= 10.0 ** (100 * seed)
        constant = lambda x, *_: np.full(x.shape, 0.25)  # noqa: E731
        with (
            mock.patch.object(_mechanisms, "add_noise", constant),
            mock.patch.object(_mechanisms, "align", constant),
        ):
            fitted = make(name, mechanism, solver).fit(X, y)
        hashes.add(joblib.hash(vars(fitted)))
    assert len(hashes) == 1
