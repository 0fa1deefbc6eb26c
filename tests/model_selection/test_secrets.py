# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What could tell how many runs a search had: printed text, warnings, generators, ledgers."""

import pickle
import time
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection

from skdp import DPGridSearchCV, DPLogisticRegression, DPStandardScaler, privacy_spent
from skdp.exceptions import BudgetError
from skdp.model_selection import RowScorer, _runs
from skdp.model_selection._runs import RunBudget, unseeded
from skdp.privacy import Repetitions, gdp_mu
from tests.model_selection._spy import Spy, data, notes

X, Y = data(60)
MODEL = DPLogisticRegression(classes=[0, 1])
GRID = {"C": [0.1, 1.0]}


class Loud(DPLogisticRegression):
    """Warns in every fit to rows that are not null."""

    def fit(self, X, y):
        super().fit(X, y)
        if np.any(np.asarray(X)):
            time.sleep(0.01 * len(FITTED))
            FITTED.append(1)
            warnings.warn("a run", stacklevel=1)
        return self


FITTED = []


def test_threads_and_joblib_tell_nothing_of_the_runs(capfd, monkeypatch):
    monkeypatch.setattr(Repetitions, "number", lambda law, bits: 8)
    search = DPGridSearchCV(Loud(classes=[0, 1]), GRID, strategy="geometric")
    FITTED.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with joblib.parallel_config(backend="threading", n_jobs=2, verbose=50):
            search.fit(X, Y)
        assert warnings.filters == before
    assert len(FITTED) == 8
    assert caught == []
    assert capfd.readouterr() == ("", "")


PROJECTED = make_pipeline(GaussianRandomProjection(2), MODEL)


def winners_place():
    """Return whether the winner has a projection that numpy's generator gave one of 30 fits."""
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    search = DPGridSearchCV(PROJECTED, grid, strategy="geometric", refit_share=0.2)
    np.random.seed(0)  # noqa: NPY002, the state that goes on
    search.fit(X, Y)
    won = search.best_estimator_[0]
    assert won.random_state is None
    np.random.seed(0)  # noqa: NPY002, the state that goes on
    drawn = [GaussianRandomProjection(2).fit(X).components_ for _ in range(60)]
    return any(np.array_equal(one, won.components_) for one in drawn)


def test_projections_do_not_tell_which_run_won(monkeypatch):
    assert not winners_place()
    monkeypatch.setattr(_runs, "unseeded", lambda model: [])
    assert winners_place()


def test_projections_differ_between_runs_and_follow_the_seed():
    fits = []

    class Noting(GaussianRandomProjection):
        def fit(self, X, y=None):
            super().fit(X, y)
            fits.append(self.components_.tobytes())
            return self

    # a class of another module is known by its bases only, and would have to say more
    Noting.__name__, Noting.__module__ = "GaussianRandomProjection", "sklearn.random_projection"
    pipe, outcomes = make_pipeline(Noting(2), clone(MODEL).set_params(random_state=1)), []
    for _ in range(2):
        fits.clear()
        search = DPGridSearchCV(pipe, {"dplogisticregression__C": [1.0, 2.0]}, random_state=5)
        with pytest.warns(match="random_state"):
            search.fit(X, Y)
        outcomes.append(search.best_estimator_[0].components_)
        assert len(set(fits[-2:])) == 2
    assert np.array_equal(*outcomes)
    columns = ColumnTransformer([("a", GaussianRandomProjection(1), [0, 1])])
    assert len(unseeded(make_pipeline(columns, MODEL))) == 1
    assert unseeded(make_pipeline(GaussianRandomProjection(2, random_state=0), MODEL)) == []


def test_a_search_that_won_in_a_search_has_the_ledger_of_the_outer_one():
    inner = DPGridSearchCV(MODEL, GRID)
    search = DPGridSearchCV(inner, {"validation_fraction": [0.2, 0.3]}, epsilon=4.0).fit(X, Y)
    won = search.best_estimator_
    assert won.ledger_ is won.best_estimator_.ledger_ is search.ledger_
    assert privacy_spent(won.best_estimator_).epsilon == search.privacy_spent_[0]


def test_the_configuration_reaches_other_processes():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    columns = ColumnTransformer([("scale", DPStandardScaler(), ["a", "b"])])
    named = ColumnTransformer([("keep", "passthrough", ["scale__a", "scale__b"])])
    pipe = make_pipeline(columns, named, MODEL)
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    with sklearn.config_context(transform_output="pandas"):
        search = DPGridSearchCV(pipe, grid, epsilon=4.0, n_jobs=2).fit(frame, Y)
        assert search.predict(frame).shape == (60,)


@pytest.mark.parametrize("strategy", ["all", "geometric"])
def test_a_search_keeps_nothing_of_runs_that_lost(strategy):
    scorer = RowScorer(lambda e, X, y: (e.predict(X) == y) * 1.0, bounds=(0, 1))
    search = DPGridSearchCV(
        Spy(classes=[0, 1]), GRID, strategy=strategy, n_repeats=3 if strategy == "all" else 1
    )
    fits, _ = notes(search.set_params(scoring=scorer), X, Y)
    search.scoring = search.scorer_ = None
    kept = pickle.dumps(search)
    lost = [fit for fit in fits if fit["model"] is not search.best_estimator_]
    assert search.best_estimator_.coef_.tobytes() in kept
    assert not any(fit["coef"].tobytes() in kept for fit in lost)


@pytest.mark.full
def test_the_best_run_wins(monkeypatch):
    monkeypatch.setattr(Repetitions, "number", lambda law, bits: 40)
    scorer = RowScorer(lambda e, X, y: np.full(len(X), float(e.C == 0.1)), bounds=(0, 1))
    grid = {"C": [0.1, 1.0, 10.0]}
    search = DPGridSearchCV(MODEL, grid, epsilon=1e4, strategy="geometric", scoring=scorer)
    assert search.fit(X, Y).best_params_ == {"C": 0.1}
    assert search.best_score_ == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("strategy", ["all", "geometric"])
def test_the_second_fit_has_its_own_share(strategy):
    search = DPGridSearchCV(Spy(classes=[0, 1]), GRID, strategy=strategy, refit_share=0.7)
    fits, _ = notes(search, X, Y)
    spent = gdp_mu(fits[-1]["epsilon"], fits[-1]["delta"])
    assert spent == pytest.approx(search.plan_.mu_refit, rel=1e-3)


def test_a_step_charges_once():
    budget = RunBudget(None)
    price = {"mu": None, "adjacency": "replace-one", "unit": "row", "label": "x"}
    budget.charge(1.0, 0.0, **price)
    with pytest.raises(BudgetError, match="charges twice"):
        budget.charge(1.0, 0.0, **price)
