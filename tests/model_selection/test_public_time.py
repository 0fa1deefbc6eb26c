# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A search whose time is public: the same work whatever counts. What is unreadable is free."""

import io
import re
import warnings
from contextlib import redirect_stderr, redirect_stdout

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPMean,
    DPRandomizedSearchCV,
    DPStandardScaler,
    PrivacyBudget,
)
from skdp.model_selection import RowScorer
from skdp.privacy import SecretSubset
from tests.model_selection._spy import NOTED, Spy, data, notes

X, Y = data(60)
MANY = {"C": np.geomspace(0.1, 10, 7).tolist()}
MODEL = DPLogisticRegression(classes=[0, 1], data_norm=1.0)
SPY = Spy(classes=[0, 1], solver="gd", max_iter=2)


def work(search, X=X, Y=Y):
    """Return what a clock could see of a search: its fits and scores, in order, and their sizes."""
    fits, scored = notes(clone(search), X, Y)
    last = fits.pop() if search.refit_share else None
    done = [(fit["C"], len(fit["rows"]), fit["epsilon"], fit["delta"]) for fit in fits]
    again = None if last is None else len(last["rows"])
    return done, [(one["C"], len(one["rows"])) for one in scored], again


# -- the same work for all seeds -----------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("options", [{}, {"n_repeats": 1, "strategy": "subset"}], ids=str)
def test_the_number_of_fits_is_the_same_for_all_seeds(options):
    search = DPGridSearchCV(SPY, MANY, scoring=NOTED, **options)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in (None, None, 1):
            seen.append(work(search.set_params(random_state=seed)))
    assert all(one == seen[0] for one in seen)
    fits, scored, _ = seen[0]
    repeats = options.get("n_repeats", 2)
    candidates = [C for C in MANY["C"] for _ in range(repeats)]
    assert [fit[0] for fit in fits] == [one[0] for one in scored] == candidates
    assert {fit[1] for fit in fits} == {48}


@pytest.mark.full
def test_what_counts_changes_nothing_but_the_winner(monkeypatch):
    search = DPGridSearchCV(SPY, MANY, scoring=NOTED, refit_share=0.2)
    seen, won = [], []
    for counted in ([0], [13], [3, 4, 9], range(14)):
        monkeypatch.setattr(
            SecretSubset, "choose", lambda subset, bits, counted=counted: np.array(counted)
        )
        seen.append(work(search))
        won.append({clone(search).fit(X, Y).best_index_ for _ in range(2)})
    assert all(one == seen[0] for one in seen)
    assert len(seen[0][0]) == len(seen[0][1]) == 14
    assert seen[0][2] == 60
    # what does not count is thrown away
    assert won[0] == {0}
    assert won[1] == {6}
    assert won[2] <= {1, 2, 4}


@pytest.mark.full
def test_public_scores_are_computed_of_all_runs(monkeypatch):
    scored = []

    def closely(estimator, X, y):
        scored.append(estimator.C)
        return (estimator.predict(X) == y) * 1.0

    search = DPGridSearchCV(MODEL, MANY, scoring=RowScorer(closely, bounds=(0.0, 1.0)))
    for counted in ([5], range(14)):
        monkeypatch.setattr(
            SecretSubset, "choose", lambda subset, bits, counted=counted: np.array(counted)
        )
        scored.clear()
        search.fit(X, Y, X_val=X[:20], y_val=Y[:20])
        assert len(scored) == 14
    assert np.isnan(search.cv_results_["mean_test_score"]).sum() == 6


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", ["sequential", "threading"])
def test_what_is_printed_is_the_same_whatever_counts(monkeypatch, backend):
    told = set()
    search = DPGridSearchCV(clone(SPY).set_params(verbose=1), MANY, verbose=2)
    for counted in ([0], range(14)):
        monkeypatch.setattr(
            SecretSubset, "choose", lambda subset, bits, counted=counted: np.array(counted)
        )
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out), warnings.catch_warnings():
            warnings.simplefilter("error")
            # of the winner alone, which is released
            warnings.filterwarnings("ignore", "DPGridSearchCV: .*of the best run")
            with joblib.parallel_config(backend=backend, verbose=50):
                search.fit(X, Y)
        told.add((out.getvalue(), repr(search.ledger_), repr(search.plan_), tuple(vars(search))))
    ((text, *_),) = told
    assert "14 runs, a secret subset counts" in text
    assert "fit" not in re.sub(r"fitted again.*", "", text)


@pytest.mark.full
def test_no_default_has_a_secret_number_of_fits():
    scorer = RowScorer(lambda e, X, y: np.zeros(len(X)), bounds=(0.0, 1.0))
    for n in (1, 6, 7, 12):
        for search in (
            DPGridSearchCV(SPY, {"C": np.linspace(1, 2, n).tolist()}, scoring=scorer),
            DPRandomizedSearchCV(SPY, {"C": np.linspace(1, 2, 50).tolist()}, n, scoring=scorer),
        ):
            fits, _ = notes(search, X, Y)
            assert len(fits) == (n if n <= 6 else 2 * n) == search.plan_.n_candidates


# -- what cannot be read is not charged -----------------------------------------------------------


def with_value(value, row=7):
    changed = X.astype(object if isinstance(value, str) else float)
    changed[row, 1] = value
    return changed


def frame(column):
    return pd.DataFrame({"a": X[:, 0], "b": column, "c": X[:, 2]})


UNUSABLE = {
    "NaN": with_value(np.nan),
    "infinity": with_value(np.inf),
    "text among objects": with_value("high"),
    "numbers as text": X.astype(str).astype(object),
    "words": np.full((60, 3), "word"),
    "dates": np.full((60, 3), np.datetime64("2026-01-01")),
    "complex": X.astype(complex) * 1j,
    "NaN in a frame": frame(with_value(np.nan)[:, 1]),
    "text in a frame": frame(["x"] * 60),
    "dates in a frame": frame(pd.to_datetime(["2026-01-01"] * 60)),
    "NaN in a sparse matrix": sparse.csr_matrix(with_value(np.nan)),
}


def error_of(estimator, X):
    try:
        estimator.fit(X, Y)
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.sample(3)
@pytest.mark.parametrize("rows", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("n", [2, 7])
def test_rows_that_cannot_be_read_are_refused_with_the_same_error_and_cost_nothing(rows, n):
    budget = PrivacyBudget(5.0, 1e-3)
    alone = error_of(clone(MODEL), rows)
    search = DPGridSearchCV(MODEL, {"C": list(range(1, n + 1))}, budget=budget)
    assert error_of(search, rows) == alone
    # numbers that are written as text are numbers to scikit-learn
    assert len(budget.charges) == (alone is None)


@pytest.mark.sample(3)
@pytest.mark.parametrize("rows", UNUSABLE.values(), ids=UNUSABLE)
def test_public_rows_that_cannot_be_read_are_refused_before_the_charge(rows):
    budget = PrivacyBudget(5.0, 1e-3)
    search = DPGridSearchCV(MODEL, {"C": [1, 2]}, budget=budget)
    if error_of(clone(MODEL), rows) is None:
        search.fit(X, Y, X_val=rows, y_val=Y)
        assert len(budget.charges) == 1
        return
    # the last rows are unreadable, and there are fewer of them than private ones
    with pytest.raises(ValueError, match="X_val cannot be read; nothing was charged"):
        search.fit(X, Y, X_val=rows[5:9], y_val=Y[5:9])
    assert budget.charges == ()


def test_public_rows_have_the_columns_of_the_private_ones():
    budget = PrivacyBudget(5.0, 1e-3)
    search = DPGridSearchCV(MODEL, {"C": [1, 2]}, budget=budget)
    named = frame(X[:, 1])
    with pytest.raises(ValueError, match="X_val must have the columns of X"):
        search.fit(named, Y, X_val=named[["b", "a", "c"]], y_val=Y)
    assert budget.charges == ()
    search.fit(named, Y, X_val=named[:1], y_val=Y[:1])
    assert len(budget.charges) == 1


def test_one_bad_row_is_found_wherever_it_is():
    for row in range(0, 60, 7):
        budget = PrivacyBudget(5.0, 1e-3)
        search = DPGridSearchCV(MODEL, {"C": [1.0, 2.0]}, budget=budget)
        with pytest.raises(ValueError, match="contains NaN"):
            search.fit(with_value(np.nan, row), Y)
        assert budget.charges == ()


def test_targets_and_other_estimators():
    budget = PrivacyBudget(5.0, 1e-3)
    scorer = RowScorer(lambda e, X, y: np.zeros(len(X)), bounds=(0.0, 1.0))
    search = DPGridSearchCV(
        DPMean(data_norm=1.0), {"data_norm": [1.0, 2.0]}, budget=budget, scoring=scorer
    )
    with pytest.raises(ValueError, match="contains NaN"):
        search.fit(with_value(np.nan))
    # with public labels NaN would be a null row
    model = clone(MODEL).set_params(classes=None)
    search = DPGridSearchCV(model, {"C": [1.0, 2.0]}, budget=budget)
    with pytest.raises(ValueError, match="NaN"):
        search.fit(X, np.where(Y, np.nan, 0.0))
    assert budget.charges == ()


@pytest.mark.full
def test_a_pipeline_says_what_its_steps_say():
    budget = PrivacyBudget(50.0, 1e-3)
    grid = {"dplogisticregression__C": [1.0, 2.0]}
    pipe = make_pipeline(DPStandardScaler(), MODEL)
    with pytest.raises(ValueError, match="contains NaN"):
        DPGridSearchCV(pipe, grid, budget=budget).fit(with_value(np.nan), Y)
    assert budget.charges == ()
    # steps that can do with them may stand before
    filled = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True), MODEL
    )
    DPGridSearchCV(filled, grid, budget=budget, epsilon=4.0).fit(with_value(np.nan), Y)
    words = np.array([["a"], ["b"]] * 30)
    encoder = OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore")
    DPGridSearchCV(make_pipeline(encoder, MODEL), grid, budget=budget).fit(words, Y)
    assert len(budget.charges) == 2


def test_a_look_at_the_rows_releases_nothing_and_costs_nothing():
    opened = []

    class Watched(DPLogisticRegression):
        def fit(self, X, y):
            before = getattr(self.budget, "charged", None)
            try:
                return super().fit(X, y)
            finally:
                opened.append((np.any(np.asarray(X)), before, hasattr(self, "ledger_")))

    DPGridSearchCV(Watched(classes=[0, 1]), {"C": [1.0, 2.0]}).fit(X, Y)
    looks = [one for one in opened if one[0] and not one[2]]
    assert len(looks) == 2
    assert [one for one in opened if one[2]] == [(True, None, True)] * 2
