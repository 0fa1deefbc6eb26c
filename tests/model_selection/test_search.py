# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a search gives, for which data and estimators, and what it keeps to itself."""

import io
import math
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomizedSearchCV,
    privacy_spent,
)
from skdp.privacy.laws.selection import Repetitions
from tests.model_selection._spy import FITS, NOTED, Spy, data, notes

X, Y = data(200)
MODEL = DPLogisticRegression(classes=[0, 1])
GRID = {"C": [0.1, 1.0, 10.0]}


def closeness(estimator, X, y):
    return -np.abs(y - estimator.predict(X))


def distance(estimator, X, y):
    return -np.abs(X - estimator.location_).sum(axis=1)


@pytest.mark.covering
@pytest.mark.parametrize("strategy", ["all", "logarithmic", "geometric"])
@pytest.mark.parametrize("kind", ["grid", "randomized"])
def test_attributes(strategy, kind):
    if kind == "grid":
        search = DPGridSearchCV(MODEL, GRID, epsilon=2.0, strategy=strategy)
    else:
        search = DPRandomizedSearchCV(MODEL, {"C": uniform(0.1, 5)}, 3, strategy=strategy)
    search.fit(X, Y)
    assert search.privacy_spent_[0] <= search.epsilon
    assert search.privacy_spent_[1] <= search.delta
    assert privacy_spent(search).epsilon <= search.epsilon
    assert len(search.ledger_.releases) == 1
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.best_params_["C"] == search.best_estimator_.C
    assert search.best_estimator_.privacy_spent_ == search.privacy_spent_
    assert search.best_estimator_.budget is None
    assert 0 <= search.best_score_ <= 1
    scores = search.cv_results_["mean_test_score"]
    assert np.isnan(scores).sum() == 2
    assert scores[search.best_index_] == search.best_score_
    assert sorted(search.cv_results_["rank_test_score"]) == [1, 2, 2]
    assert set(search.cv_results_) == {"param_C", "params", "mean_test_score", "rank_test_score"}
    assert search.n_splits_ == 1
    assert search.n_features_in_ == 3
    assert not hasattr(search, "refit_time_")
    assert search.predict(X).shape == (200,)
    assert search.predict_proba(X).shape == search.predict_log_proba(X).shape == (200, 2)
    assert search.decision_function(X).shape == (200,)
    assert not hasattr(search, "transform")
    assert search.score(X, Y) == (search.predict(X) == Y).mean()
    assert search.classes_.tolist() == [0, 1]


def test_auto_runs_few_candidates_all_and_many_at_random():
    few = DPGridSearchCV(MODEL, {"C": [1.0] * 6}, epsilon=4.0).fit(X, Y)
    many = DPGridSearchCV(MODEL, {"C": np.geomspace(1, 9, 7)}, epsilon=4.0).fit(X, Y)
    expected = DPGridSearchCV(MODEL, GRID, epsilon=4.0, expected_runs=20).fit(X, Y)
    assert (few.plan_.strategy, many.plan_.strategy) == ("all", "geometric")
    assert (many.plan_.expected_runs, expected.plan_.expected_runs) == (14, 20)


def test_without_refit_there_is_no_model():
    search = DPGridSearchCV(MODEL, GRID, refit=False).fit(X, Y)
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "predict")
    assert search.best_params_ in search.cv_results_["params"]
    with pytest.raises(AttributeError, match="refit=True"):
        search.score(X, Y)


def test_a_second_fit_reads_all_rows():
    search = DPGridSearchCV(Spy(classes=[0, 1]), GRID, refit_share=0.4, scoring=NOTED)
    fits, scored = notes(search, X, Y)
    assert [len(fit["rows"]) for fit in fits] == [160, 160, 160, 200]
    assert all(len(one["rows"]) == 40 for one in scored)
    assert search.best_estimator_ is fits[-1]["model"]
    assert fits[-1]["C"] == search.best_params_["C"]


def test_one_candidate_several_times_is_boosting():
    search = DPGridSearchCV(Spy(classes=[0, 1]), {}, n_repeats=4, epsilon=4.0, scoring=NOTED)
    fits, _ = notes(search, X, Y)
    assert len(fits) == search.plan_.n_candidates == 4
    assert search.best_params_ == {}
    assert search.best_index_ == 0


def test_the_number_of_runs_is_random_and_nothing_tells_it():
    search = DPGridSearchCV(
        Spy(classes=[0, 1], verbose=1), GRID, strategy="geometric", verbose=1, scoring=NOTED
    )
    numbers, told, forms = set(), set(), set()
    for _ in range(12):
        out = io.StringIO()
        with redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("error")
            fits, _ = notes(clone(search), X, Y)
            fitted = clone(search).fit(X, Y)
        numbers.add(len(fits))
        told.add(out.getvalue())
        forms.add((repr(fitted.ledger_), repr(fitted.plan_), tuple(sorted(vars(fitted)))))
    assert len(numbers) > 2
    assert len(told) == len(forms) == 1
    assert fitted.best_estimator_.verbose == 1


def test_no_run_by_chance_gives_a_model_of_nothing(monkeypatch):
    monkeypatch.setattr(Repetitions, "number", lambda law, bits: 0)
    search = DPGridSearchCV(Spy(classes=[0, 1]), GRID, strategy="poisson", refit_share=0.2)
    fits, scored = notes(search, X, Y)
    assert fits == scored == []
    assert math.isnan(search.best_score_)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == (200,)
    assert search.privacy_spent_[0] > 0.9


@pytest.mark.parametrize("strategy", ["all", "geometric"])
def test_public_rows_score_for_free_and_nothing_is_held_out(strategy):
    search = DPGridSearchCV(Spy(classes=[0, 1]), GRID, epsilon=4.0, strategy=strategy)
    held = clone(search).fit(X, Y)
    public = data(90)
    FITS.clear()
    search.fit(X, Y, X_val=public[0], y_val=public[1])
    fits = [fit for fit in FITS if not fit["null"]]
    assert all(len(fit["rows"]) == 200 for fit in fits)
    assert search.plan_.mu_run >= held.plan_.mu_run
    assert search.best_score_ == search.score(*public)
    scores = search.cv_results_["mean_test_score"]
    if strategy == "all":
        assert search.best_score_ == scores.max()
        assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    else:
        assert np.isnan(scores).sum() == 2


def test_public_rows_and_repeats_give_the_best_repeat():
    search = DPGridSearchCV(MODEL, GRID, n_repeats=3, epsilon=4.0)
    search.fit(X, Y, X_val=X[:50], y_val=Y[:50])
    assert search.cv_results_["mean_test_score"].shape == (3,)
    assert search.cv_results_["mean_test_score"][search.best_index_] == search.best_score_
