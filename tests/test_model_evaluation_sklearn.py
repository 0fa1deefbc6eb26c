# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's cross-validations, curves and ensembles over private estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier

from skdp import privacy_spent
from tests.privacy._spies import FOLDS, Spy, X, Y, branched, model


@pytest.fixture
def spy(tmp_path):
    return Spy(tmp_path / "charges")


def charges_of(spy, run):
    before = len(spy.charges)
    run()
    return len(spy.charges) - before


CURVE = [0.4, 0.7, 1.0]
RUNS = {
    "cross_val_score": (lambda e: cross_val_score(e, X, Y, cv=FOLDS), 1),
    "cross_validate": (lambda e: cross_validate(e, X, Y, cv=FOLDS, return_train_score=True), 1),
    "cross_val_predict": (lambda e: cross_val_predict(e, X, Y, cv=FOLDS), 1),
    "learning_curve": (lambda e: learning_curve(e, X, Y, cv=FOLDS, train_sizes=CURVE), 3),
    "permutation_test_score": (
        lambda e: permutation_test_score(e, X, Y, cv=FOLDS, n_permutations=2),
        3,
    ),
}


@pytest.mark.covering
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("make", [model, branched])
def test_what_fits_once_a_fold_costs_that(name, make, spy):
    run, repeats = RUNS[name]
    estimator = make(spy)
    steps = 1 if make is model else 2
    n_charges = charges_of(spy, lambda: run(estimator))
    # one estimator for every time that all folds were gone through
    spent = privacy_spent(*[estimator] * repeats, cv=FOLDS)
    assert steps * spent.n_fits == n_charges
    assert spent.epsilon >= 0.99 * sum(epsilon for epsilon, _ in spy.charges)


def test_a_validation_curve_costs_a_cross_validation_per_value(spy):
    values = [0.25, 0.5, 1.0]
    options = {"param_name": "epsilon", "param_range": values, "cv": FOLDS}
    n_charges = charges_of(spy, lambda: validation_curve(model(spy), X, Y, **options))
    spent = privacy_spent(*[model(epsilon=value) for value in values], cv=FOLDS)
    assert spent.n_fits == n_charges
    assert spent.epsilon == pytest.approx(3 * sum(values), rel=1e-3)
    assert 3 * sum(values) == pytest.approx(sum(epsilon for epsilon, _ in spy.charges))


def test_permutation_importance_fits_nothing_and_looks_at_rows(spy):
    estimator = model(spy).fit(X, Y)
    run = lambda: permutation_importance(estimator, X, Y, n_repeats=2, random_state=0)  # noqa: E731
    assert charges_of(spy, run) == 0
    assert privacy_spent(estimator).ledger == estimator.ledger_


ENSEMBLES = {
    "one-vs-rest": (lambda e: OneVsRestClassifier(e), 2),
    "voting": (lambda e: VotingClassifier([("a", e), ("b", clone(e))]), 2),
    "stacking": (lambda e: StackingClassifier([("a", e)], final_estimator=clone(e), cv=2), 4),
    "calibrated": (lambda e: CalibratedClassifierCV(e, cv=2, ensemble=True), 2),
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensembles_fit_many_and_are_not_put_a_price_on(name, spy):
    make, n_fits = ENSEMBLES[name]
    labels = np.arange(60) % 3 if name == "one-vs-rest" else Y
    ensemble = make(model(spy, classes=None))
    n_charges = charges_of(spy, lambda: ensemble.fit(X, labels))
    assert n_charges == n_fits + (name == "one-vs-rest")
    with pytest.raises(TypeError, match="keeps none"):
        privacy_spent(ensemble)
    with pytest.raises(TypeError, match="no private step"):
        privacy_spent(GridSearchCV(ensemble, {}, cv=FOLDS).fit(X, labels))
    if name in ("one-vs-rest", "voting"):
        assert privacy_spent(*ensemble.estimators_).n_fits == n_charges
