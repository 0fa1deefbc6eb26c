# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a search refuses, before anything is charged, and what happens when a run fails."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPRandomizedSearchCV,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    LocalDPLogisticRegression,
    NormClipper,
    PrivacyBudget,
)
from skdp.model_selection import RowScorer
from tests.model_selection._spy import Spy, data, positions

X, Y = data(60)
MODEL = DPLogisticRegression(classes=[0, 1])
GRID = {"C": [0.1, 1.0]}
PIPE = make_pipeline(DPStandardScaler(), MODEL)


def refused(search, match, X=X, y=Y, error=ValueError, **params):
    """Assert that a fit raises, charges nothing, and leaves nothing."""
    budget = PrivacyBudget(epsilon=1e6, delta=0.5)
    search = clone(search).set_params(budget=budget)
    with pytest.raises(error, match=match) as caught:
        search.fit(X, y, **params)
    assert budget.charges == ()
    assert not any(name.endswith("_") for name in vars(search))
    return str(caught.value)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (MODEL, {"epsilon": [1.0, 2.0]}),
        (MODEL, {"C": [1.0], "delta": [1e-6]}),
        (MODEL, [GRID, {"budget": [None]}]),
        (PIPE, {"dplogisticregression__epsilon": [1.0]}),
        (PIPE, {"dpstandardscaler__budget": [None]}),
    ],
    ids=str,
)
def test_grids_over_what_the_search_decides(estimator, grid):
    refused(DPGridSearchCV(estimator, grid), "cannot be searched.*divides its own epsilon")
    refused(DPRandomizedSearchCV(estimator, grid), "cannot be searched.*divides its own epsilon")


@pytest.mark.parametrize("grid", [[], {}])
def test_empty_grids(grid):
    refused(DPGridSearchCV(MODEL, grid), "param_grid is empty")
    refused(DPRandomizedSearchCV(MODEL, grid), "param_distributions is empty")


def test_grids_that_are_none():
    refused(DPGridSearchCV(MODEL, {"C": []}), "C")
    refused(
        DPGridSearchCV(MODEL, {"nonsense": [1]}), "candidate {'nonsense': 1} cannot be searched"
    )
    refused(DPGridSearchCV(MODEL, {"C": [1.0, -1.0]}), "candidate {'C': -1.0} cannot be fitted")
    refused(
        DPGridSearchCV(MODEL, {"solver": ["exact"], "mechanism": ["gradient"]}), "cannot be fit"
    )
    refused(DPRandomizedSearchCV(MODEL, GRID, n_iter=0), "n_iter")


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (LogisticRegression(), "LogisticRegression.*learns from the data without a ledger"),
        (make_pipeline(StandardScaler(), MODEL), "step 'standardscaler'.*without a ledger"),
        (make_pipeline(DPStandardScaler(), LogisticRegression()), "step 'logisticregression'"),
        (CalibratedClassifierCV(MODEL), "without a ledger"),
        (make_pipeline(NormClipper(), "passthrough"), "no private step"),
        (clone(PIPE).set_params(memory="nowhere"), "a cache repeats noise"),
        (clone(MODEL).set_params(budget=PrivacyBudget(epsilon=1.0)), "Give the budget to the"),
        (LocalDPLogisticRegression(classes=[0, 1]), "local reports"),
        (FederatedDPLogisticRegression(classes=[0, 1]), "clients"),
        (make_pipeline(DPStandardScaler(adjacency="zero-out"), MODEL), "same adjacency"),
    ],
    ids=str,
)
def test_estimators_that_nobody_could_pay_for(estimator, match):
    scorer = RowScorer(lambda e, X, y: y * 0.0, bounds=(0, 1))
    refused(DPGridSearchCV(estimator, {}, n_repeats=2, scoring=scorer), match)


def test_what_is_no_estimator():
    for wrong in (None, 3, "model", object()):
        with pytest.raises(ValueError, match="'estimator' parameter"):
            DPGridSearchCV(wrong, GRID).fit(X, Y)


def test_candidates_of_different_adjacencies():
    grid = {"adjacency": ["replace-one", "zero-out"]}
    refused(DPGridSearchCV(MODEL, grid), "all candidates need the same adjacency")


def test_steps_with_callbacks():
    class Callback:
        pass

    model = clone(MODEL)
    model._skl_callbacks = [Callback()]
    refused(DPGridSearchCV(model, GRID), "callbacks, which would count the runs")
    with pytest.raises(TypeError, match="no callbacks"):
        DPGridSearchCV(MODEL, GRID).set_callbacks(Callback())
    search = DPGridSearchCV(MODEL, GRID)
    assert search.set_callbacks() is search


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": np.nan}, {"epsilon": np.inf},
        {"epsilon": "1"}, {"delta": -1e-6}, {"delta": 1.0}, {"delta": np.nan}, {"delta": 0.0},
        {"epsilon": 1e-30}, {"epsilon": 1e-9, "delta": 1e-300}, {"strategy": "best"},
        {"expected_runs": 0.5}, {"expected_runs": 7, "strategy": "all"},
        {"expected_runs": np.nan, "strategy": "geometric"}, {"n_repeats": 0},
        {"n_repeats": 2, "strategy": "geometric"}, {"validation_fraction": 0.0},
        {"validation_fraction": 1.0}, {"validation_fraction": np.nan}, {"scoring": "roc_auc"},
        {"refit": "accuracy"}, {"refit_share": 1.0}, {"refit_share": 0.5, "refit": False},
        {"random_state": -1}, {"n_jobs": 0.5},
    ],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range(options):
    model = clone(MODEL).set_params(mechanism="gradient")
    refused(DPGridSearchCV(model, GRID, **options), next(iter(options)))


def test_other_fit_parameters():
    refused(DPGridSearchCV(MODEL, GRID), "groups", groups=Y)
    refused(DPGridSearchCV(MODEL, GRID), "sample_weight", sample_weight=np.ones(60))


def test_models_that_cannot_be_scored_are_not_paid_for():
    svm = DPGridSearchCV(DPHingeSVM(classes=[0, 1]), GRID, scoring="neg_log_loss")
    refused(svm, "scoring must be something else.*'C': 0.1.*no predict_proba")
    refused(DPGridSearchCV(MODEL, GRID), "1d array", y=np.stack([Y, Y], axis=1))
    refused(DPGridSearchCV(MODEL, GRID, n_jobs=0), "n_jobs must be None or")


def test_targets_that_are_missing():
    refused(DPGridSearchCV(MODEL, GRID), "requires y to be passed", y=None)
    named = DPGridSearchCV(DPStandardScaler(), {"with_mean": [True, False]}, scoring="accuracy")
    refused(named, "scoring must be something else.*no predict;", y=None)
    refused(DPGridSearchCV(DPLpRegressor(), {"p": [1, 2]}), "scoring must be given", y=X[:, 1])


def test_rows_that_are_too_few_or_do_not_fit():
    refused(DPGridSearchCV(MODEL, GRID), "at least 2 rows.*n_samples=1", X=X[:1], y=Y[:1])
    refused(DPGridSearchCV(MODEL, GRID), "same number of rows", y=Y[:-1])
    refused(DPGridSearchCV(MODEL, GRID), "cannot be fitted", X=X[:, 0])
    refused(DPGridSearchCV(MODEL, GRID), "minimum of 1", X=X[:, :0])
    # two rows are enough: one trains, one scores
    assert DPGridSearchCV(MODEL, GRID).fit(X[:2], Y[:2]).predict(X[:2]).shape == (2,)


def test_public_rows_that_do_not_fit():
    search = DPGridSearchCV(MODEL, GRID)
    refused(search, "features of X", X_val=X[:, :2], y_val=Y)
    refused(search, "features of X", X_val=X[:0], y_val=Y[:0])
    refused(search, "same number of rows", X_val=X, y_val=Y[:3])
    refused(search, "y_val must be given", X_val=X)
    refused(search, "without X_val", y_val=Y)


class Crashing(Spy):
    """Fails on rows that are not null, after it was charged."""

    def fit(self, X, y):
        super().fit(X, y)
        if np.any(np.asarray(X)):
            raise RuntimeError("the machine is out of memory")
        return self


def test_a_run_that_crashes_has_been_paid_for():
    budget = PrivacyBudget(epsilon=5.0, delta=1e-5)
    search = DPGridSearchCV(Crashing(classes=[0, 1]), GRID, epsilon=2.0, budget=budget)
    with pytest.raises(RuntimeError, match="out of memory"):
        search.fit(X, Y)
    assert budget.spent[0] == pytest.approx(2.0, rel=1e-6)
    assert not any(name.endswith("_") for name in vars(search))


@pytest.mark.parametrize("function", [lambda e, X, y: 1.0, lambda e, X, y: e.coef_.ravel() * 0])
def test_a_scorer_that_does_not_score_rows(function):
    scorer = RowScorer(function, bounds=(0, 1))
    with pytest.raises(ValueError, match="must return 12 real numbers for 12 rows"):
        DPGridSearchCV(MODEL, GRID, scoring=scorer).fit(X, Y)


def test_a_scorer_is_given_held_out_rows_only():
    seen = []

    def watching(estimator, X, y):
        seen.extend(positions(X))
        return y * 1.0

    search = DPGridSearchCV(Spy(classes=[0, 1]), GRID, scoring=RowScorer(watching, bounds=(0, 1)))
    search.fit(X, Y)
    assert len(set(seen)) == 12


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, "text", 1j])
def test_bad_values(value):
    table = X.astype(object)
    table[3, 1] = value
    search = DPGridSearchCV(MODEL, GRID)
    with pytest.raises((ValueError, TypeError)):
        search.fit(table, Y)
    assert not any(name.endswith("_") for name in vars(search))


@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
def test_features_of_any_scale(scale):
    search = DPGridSearchCV(MODEL, {"C": [1.0, 2.0]}, scoring="neg_log_loss")
    with np.errstate(all="raise"):
        search.fit(X * scale, Y)
    assert np.isfinite(search.best_score_)


def test_one_class():
    refused(DPGridSearchCV(DPHingeSVM(), GRID), "1 class", y=np.zeros(60))
    assert DPGridSearchCV(DPHingeSVM(classes=[0, 1]), GRID).fit(X, np.zeros(60)).best_score_ >= 0
