# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What cross-validations have spent, and what of splits and scores is not covered."""

import copy
import math
from functools import reduce
from operator import add

import numpy as np
import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)

from skdp import (
    DPMean,
    FederatedDPLogisticRegression,
    PrivUnitPrivatizer,
    privacy_spent,
)
from skdp.federated import Population
from tests.privacy._spies import FOLDS, Spy, X, Y, agrees, model, pipeline, scaler


@pytest.fixture
def spy(tmp_path):
    return Spy(tmp_path / "charges")


@pytest.mark.parametrize(
    ("cv", "n_fits"),
    [
        (5, 5),
        (np.int64(2), 2),
        (KFold(4), 4),
        (RepeatedStratifiedKFold(n_splits=2, n_repeats=3), 6),
        (GroupKFold(3), 3),
        (ShuffleSplit(1), 1),
        (PredefinedSplit([0, 1, -1]), 2),
        (list(KFold(3).split(X)), 3),
        (tuple(KFold(2).split(X)), 2),
    ],
    ids=str,
)
def test_a_cross_validation_costs_its_fits(cv, n_fits):
    spent = privacy_spent(model(), cv=cv)
    assert spent.n_fits == n_fits
    assert spent.delta == pytest.approx(n_fits * 1e-6)
    assert 0.5 * n_fits * (1 - 1e-3) <= spent.epsilon <= 0.5 * n_fits
    assert "scores" in {item.kind for item in spent.not_covered}


@pytest.mark.parametrize("cv", [5, KFold(3)], ids=str)
def test_a_cross_validation_is_charged_as_often(cv, spy):
    estimator = pipeline(spy, ("scale", scaler(spy)))
    cross_val_score(estimator, X, Y, cv=cv)
    agrees(privacy_spent(estimator, cv=cv), spy.charges, steps=2)


def test_the_fit_that_was_kept_counts_besides(spy):
    estimator = model(spy).fit(X, Y)
    cross_val_score(estimator, X, Y, cv=FOLDS)
    spent = privacy_spent(estimator, cv=FOLDS)
    assert spent.n_fits == 4 == len(spy.charges)
    assert spent.epsilon > privacy_spent(model(), cv=FOLDS).epsilon


def test_estimators_that_were_kept_have_their_ledgers(spy):
    kept = cross_validate(model(spy), X, Y, cv=FOLDS, return_estimator=True)["estimator"]
    spent = privacy_spent(*kept)
    assert spent.n_fits == 3 == len(spy.charges)
    assert spent.ledger == reduce(add, (one.ledger_ for one in kept))
    # Gaussian fits compose better than what their budgets say
    assert spent.epsilon < privacy_spent(model(), cv=FOLDS).epsilon


def test_searches_that_were_cross_validated(spy):
    search = GridSearchCV(model(spy), {"C": [0.1, 1.0]}, cv=2)
    kept = cross_validate(search, X, Y, cv=FOLDS, return_estimator=True)["estimator"]
    assert privacy_spent(*kept).n_fits == 3 * (2 * 2 + 1) == len(spy.charges)
    with pytest.raises(TypeError, match="not fitted"):
        privacy_spent(search, cv=FOLDS)


@pytest.mark.parametrize("cv", [True, 5.0, "5", iter([1]), KFold(3).split(X), {0: 1}, object()])
def test_a_cv_of_another_type_is_refused(cv):
    with pytest.raises(TypeError, match="cv must be an int of at least 2"):
        privacy_spent(model(), cv=cv)


@pytest.mark.parametrize("cv", [0, 1, -3, [], [1, 2], LeaveOneOut(), np.arange(3), KFold])
def test_a_cv_without_splits_is_refused(cv):
    with pytest.raises(ValueError, match="cv must be an int of at least 2"):
        privacy_spent(model(), cv=cv)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "1", True])
def test_an_epsilon_that_no_fit_takes_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        privacy_spent(model(epsilon=epsilon), cv=3)


def test_clients_are_another_unit():
    federated = FederatedDPLogisticRegression(classes=[0, 1])
    assert privacy_spent(federated, cv=3).ledger.unit == "client"
    with pytest.raises(ValueError, match="protects one unit"):
        privacy_spent(model(), federated, cv=3)
    # clients here spend more than a deployment with more of them would
    for given, name in (
        ({"epsilon": None, "local_epsilon": 8.0}, "epsilon=None"),
        (
            {"epsilon": 1.0, "local_epsilon": None, "population": Population(1e6)},
            r"population=Population\(size=1000000.0\)",
        ),
    ):
        with pytest.raises(TypeError, match=f"{name}: its parameters do not tell what a fit"):
            privacy_spent(federated.set_params(**given), cv=3)


def test_reports_about_rows_that_are_predicted_on_are_named():
    for new_rows in ("auto", "randomise"):
        front = ("report", PrivUnitPrivatizer(new_rows=new_rows))
        named = privacy_spent(pipeline(None, front), cv=3).not_covered
        found = [item.step for item in named if item.kind == "reports"]
        assert found == (["report"] if new_rows == "randomise" else [])


@pytest.mark.parametrize(
    ("cv", "stratified", "stated"),
    [
        (3, True, False),
        (None, True, False),
        (StratifiedKFold(3), True, False),
        (RepeatedStratifiedKFold(n_splits=3, n_repeats=1), True, False),
        (KFold(3), False, False),
        (ShuffleSplit(3), False, False),
        (list(KFold(3).split(X)), False, True),
    ],
    ids=str,
)
def test_the_choice_and_stratified_splits_are_not_covered(cv, stratified, stated):
    spent = privacy_spent(GridSearchCV(model(), {"C": [1.0]}, cv=cv).fit(X, Y))
    assert [item.kind for item in spent.not_covered] == ["choice", *["splits"] * stratified]
    assert any("splits" in a for a in spent.ledger.assumptions) == stated
    assert "fits, an upper bound" in str(spent)
    assert "not covered: the choice of the winner" in str(spent)
    assert "use public constants" not in str(spent)


def test_means_have_no_labels_to_stratify_by():
    search = GridSearchCV(DPMean(), {"epsilon": [0.5, 1.0]}, cv=4).fit(X)
    spent = privacy_spent(search, cv=4)
    assert spent.n_fits == 9
    assert {item.kind for item in spent.not_covered} == {"choice"}
    assert str(spent).splitlines()[1] == "9 fits, an upper bound from their budgets"
    assert "fits of DPMean" in repr(spent.ledger)
    assert spent.ledger._repr_html_()


def test_another_number_of_folds_than_was_fitted_is_refused():
    search = GridSearchCV(model(), {"C": [0.1]}, cv=FOLDS).fit(X, Y)
    assert privacy_spent(search, cv=FOLDS) == privacy_spent(search)
    with pytest.raises(ValueError, match=r"cv must be None for GridSearchCV.* 3 splits"):
        privacy_spent(search, cv=5)


def test_steps_with_one_ledger_in_common_count_once():
    estimator = pipeline(None, ("scale", scaler())).fit(X, Y)
    total = model(epsilon=1.0).fit(X, Y)
    for step in ("scale", "model"):
        estimator.named_steps[step].ledger_ = total.ledger_
        estimator.named_steps[step].privacy_spent_ = total.privacy_spent_
    for same in (estimator, copy.deepcopy(estimator)):
        spent = privacy_spent(same)
        assert spent.ledger == total.ledger_
        assert tuple(spent) == total.privacy_spent_
    # an equal ledger is not the same one, and two estimators are two
    estimator.named_steps["model"].ledger_ = copy.deepcopy(total.ledger_)
    assert privacy_spent(estimator).delta == 2 * total.privacy_spent_[1]
    assert privacy_spent(total, total).delta == 2 * total.privacy_spent_[1]
