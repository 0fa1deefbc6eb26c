# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Searches over pipelines, all kinds of rows and targets, and copies of searches."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures

from skdp import (
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPStandardScaler,
    NormClipper,
    PrivacyBudget,
    privacy_spent,
)
from skdp.exceptions import SeededNoiseWarning
from skdp.model_selection import RowScorer
from skdp.model_selection._runs import all_configured, plan_runs
from skdp.model_selection._search import public_form
from tests.model_selection._spy import NOTED, Spy, data, notes

X, Y = data(200)
MODEL = DPLogisticRegression(classes=[0, 1])
GRID = {"C": [0.1, 1.0, 10.0]}


def closeness(estimator, X, y):
    return -np.abs(y - estimator.predict(X))


def distance(estimator, X, y):
    return -np.abs(X - estimator.location_).sum(axis=1)


PIPE = make_pipeline(
    NormClipper(), DPStandardScaler(epsilon=0.2), DPLogisticRegression(epsilon=0.8, classes=[0, 1])
)
# the first one draws, the second has a clip that is drawn and Gaussian noise
MIXED = make_pipeline(
    DPFrequentFeatures(n_features_to_select=2, sparsity=3, delta=0.0),
    DPFeatureCenterer(threshold=1.0),
    DPLogisticRegression(epsilon=3.0, classes=[0, 1]),
)


@pytest.mark.parametrize("strategy", ["all", "geometric"])
def test_steps_share_a_run_in_their_ratio(strategy):
    grid = {"dplogisticregression__C": [1.0, 10.0]}
    search = DPGridSearchCV(PIPE, grid, epsilon=2.0, strategy=strategy).fit(X, Y)
    _, scaler, model = search.best_estimator_
    whole, own = privacy_spent(search.best_estimator_), privacy_spent(search)
    assert whole.epsilon == own.epsilon <= 2.0
    assert scaler.ledger_ is model.ledger_ is search.ledger_
    assert 0.2 < scaler.epsilon / model.epsilon < 0.35
    assert model.epsilon < 2.0
    # the scaler has purely private steps of its own, or none: both charge what they were given
    pure = DPGridSearchCV(
        DPHingeSVM(epsilon=9.0, classes=[0, 1]), {"C": [0.001]}, epsilon=30.0, delta=0.0
    )
    pure.fit(X, Y)
    assert pure.privacy_spent_[1] == 0.0
    assert pure.best_estimator_.epsilon <= 30.0


@pytest.mark.parametrize("pipe", [PIPE, MIXED], ids=["gaussian", "mixed"])
def test_limits_add_up_to_the_share_and_hardly_to_less(pipe):
    search = DPGridSearchCV(pipe, {}, n_repeats=2, epsilon=4.0, refit_share=0.3)
    models, form = all_configured(pipe, [{}]), public_form(X, Y)
    plan, _, candidates, _ = plan_runs(search, models, [{}], None, form, False)
    assert plan.gaussian
    for share, mu in ((candidates[0].run, plan.mu_run), (candidates[0].refit, plan.mu_refit)):
        spent = [limit.mu for limit in share.limits]
        assert 0.99 * mu < math.hypot(*spent) <= mu
        # as if they had the whole budget
        own = [charge.mu for charge in candidates[0].charges]
        assert np.allclose(np.divide(spent, math.hypot(*spent)), np.divide(own, math.hypot(*own)))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_prices_add_up_to_the_share(delta):
    pipe = make_pipeline(
        DPFrequentFeatures(epsilon=1.0, n_features_to_select=2, sparsity=3, delta=0.0),
        DPLogisticRegression(epsilon=3.0, classes=[0, 1], solver="sgd" if delta else "auto"),
    )
    search = DPGridSearchCV(pipe, {}, n_repeats=2, epsilon=40.0, delta=delta)
    models, form = all_configured(pipe, [{}]), public_form(X, Y)
    plan, _, candidates, _ = plan_runs(search, models, [{}], None, form, False)
    limits = candidates[0].run.limits
    epsilon, rest = sum(limit.epsilon for limit in limits), sum(limit.delta for limit in limits)
    assert epsilon == pytest.approx(plan.epsilon_run, rel=1e-9)
    assert epsilon <= plan.epsilon_run
    assert rest <= plan.delta_run
    assert limits[1].epsilon == pytest.approx(3 * limits[0].epsilon)
    fitted = search.fit(X, Y).best_estimator_
    assert fitted[0].epsilon == limits[0].epsilon


def test_candidates_of_which_some_have_no_gaussian_parameter():
    grid = {"solver": ["gd", "sgd"]}
    search = DPGridSearchCV(MODEL, grid, epsilon=4.0).fit(X, Y)
    assert search.plan_.mu_run is None
    assert search.best_estimator_.epsilon <= search.plan_.epsilon_run
    assert search.best_estimator_.delta <= search.plan_.delta_run


def test_candidates_may_be_other_estimators():
    pipe = make_pipeline(DPStandardScaler(), MODEL)
    svm = DPHingeSVM(classes=[0, 1])
    grid = [{"dplogisticregression": [MODEL, svm]}, {"dpstandardscaler": ["passthrough"]}]
    search = DPGridSearchCV(pipe, grid, epsilon=4.0).fit(X, Y)
    assert search.plan_.n_candidates == 3
    assert search.predict(X).shape == (200,)
    assert MODEL.budget is None
    assert not hasattr(MODEL, "coef_")


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, list])
def test_layouts(layout):
    rows = X.tolist() if layout is list else layout(X)
    search = DPGridSearchCV(MODEL, GRID, epsilon=4.0).fit(rows, Y.tolist())
    assert search.predict(rows).shape == (200,)
    assert search.score(rows, Y.tolist()) > 0


def test_data_frames_with_text_and_a_column_transformer():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["town"] = np.where(X[:, 1] > 0, "x", "y")
    frame["kind"] = pd.Categorical(np.where(X[:, 1] > 0, "u", "v"))
    encoder = OneHotEncoder(categories=[["x", "y"], ["u", "v"]], handle_unknown="ignore")
    columns = ColumnTransformer(
        [("numbers", DPStandardScaler(), ["a", "b"]), ("text", encoder, ["town", "kind"])]
    )
    pipe = make_pipeline(columns, DPLogisticRegression(classes=["no", "yes"], data_norm=3.0))
    labels = pd.Series(np.where(Y, "yes", "no"))
    grid = {"dplogisticregression__C": [1.0, 10.0]}
    search = DPGridSearchCV(pipe, grid, epsilon=20.0).fit(frame, labels)
    assert set(search.predict(frame)) <= {"no", "yes"}
    assert search.feature_names_in_.tolist() == ["a", "b", "c", "town", "kind"]
    scaler = search.best_estimator_[0].named_transformers_["numbers"]
    assert scaler.ledger_ is search.ledger_
    assert scaler.budget is None
    assert privacy_spent(search.best_estimator_).epsilon <= 20.0
    assert search.best_estimator_[0].transformers[0][1].budget is None
    # a second process could not say what it was charged
    pipe.set_params(columntransformer__n_jobs=2)
    with pytest.raises(ValueError, match="n_jobs of a ColumnTransformer must be None"):
        DPGridSearchCV(pipe, grid, epsilon=20.0).fit(frame, labels)


def test_a_private_remainder_is_seen():
    columns = ColumnTransformer([("clip", NormClipper(), [0])], remainder=DPStandardScaler())
    pipe = make_pipeline(columns, MODEL)
    search = DPGridSearchCV(pipe, {"dplogisticregression__C": [1.0, 2.0]}, epsilon=4.0).fit(X, Y)
    fitted = search.best_estimator_[0].transformers_[-1][1]
    assert fitted.ledger_ is search.ledger_
    assert fitted.epsilon < 4.0
    pipe = make_pipeline(
        PolynomialFeatures(2), FunctionTransformer(np.tanh), DPLogisticRegression(classes=[0, 1])
    )
    grid = {"polynomialfeatures__degree": [1, 2]}
    assert DPGridSearchCV(pipe, grid, epsilon=4.0).fit(X, Y).predict(X).shape == (200,)


def warn_of_rows(X):
    if np.any(np.asarray(X)):
        warnings.warn("a row is larger than 1", stacklevel=1)
    return X


@pytest.mark.parametrize("strategy", ["all", "geometric"])
def test_what_steps_warn_of_is_held_back(strategy):
    pipe = make_pipeline(FunctionTransformer(warn_of_rows), DPLogisticRegression(random_state=3))
    grid = {"dplogisticregression__C": [1.0, 2.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPGridSearchCV(pipe, grid, epsilon=4.0, strategy=strategy).fit(X, Y)


def test_estimators_without_targets_and_regressors():
    scorer = RowScorer(distance, bounds=(-2.0, 0.0))
    grid = {"data_norm": [0.5, 1.0]}
    search = DPGridSearchCV(DPMean(), grid, epsilon=4.0, scoring=scorer).fit(X)
    assert search.best_score_ <= 0
    scorer = RowScorer(closeness, bounds=(-1.0, 0.0))
    search = DPGridSearchCV(DPLpRegressor(), {"p": [1, 2]}, epsilon=4.0, scoring=scorer)
    assert -1 <= search.fit(X, X[:, 1]).best_score_ <= 0
    assert search.predict(X).shape == (200,)


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_adjacencies_and_pure_privacy(adjacency, delta):
    model = DPMean(mechanism="gaussian" if delta else "laplace", adjacency=adjacency)
    scorer = RowScorer(distance, bounds=(-2.0, 0.0))
    for strategy in ("all", "logarithmic", "geometric"):
        search = DPGridSearchCV(
            model, {"data_norm": [0.5, 1.0]}, epsilon=2.0, delta=delta, strategy=strategy,
            scoring=scorer,
        ).fit(X)  # fmt: skip
        assert search.ledger_.adjacency == adjacency
        assert search.privacy_spent_ <= (2.0, delta)
        # a third is what Liu and Talwar leave a run, whatever the mean
        if strategy == "geometric" and not delta:
            assert 2.0 / 3 <= search.best_estimator_.epsilon < 2.0


def test_label_set_of_all_rows_is_that_of_every_run():
    rare = np.where(np.arange(200) == 7, "rare", np.where(Y, "a", "b"))
    search = DPGridSearchCV(DPLogisticRegression(), GRID, epsilon=4.0).fit(X, rare)
    assert search.classes_.tolist() == ["a", "b", "rare"]
    assert any("label" in text for text in search.ledger_.assumptions)
    given = DPGridSearchCV(DPLogisticRegression(classes=["a", "b"]), GRID, epsilon=4.0)
    assert given.fit(X, rare).ledger_.assumptions == ()
    assert given.classes_.tolist() == ["a", "b"]


def test_a_seeded_search_is_reproducible_where_its_steps_are_seeded_too():
    for inner, same in ((5, True), (None, False)):
        search = DPGridSearchCV(MODEL, GRID, epsilon=4.0, strategy="geometric", random_state=1)
        search.set_params(estimator__random_state=inner)
        fits = []
        for _ in range(2):
            with pytest.warns(SeededNoiseWarning) as told:
                fits.append(clone(search).fit(X, Y).best_estimator_)
            assert len(told) == 1
            assert told[0].filename == __file__
        assert np.array_equal(fits[0].coef_, fits[1].coef_) is same
        assert fits[0].random_state == inner


def test_an_unseeded_search_takes_noise_from_the_operating_system():
    search = DPGridSearchCV(Spy(classes=[0, 1], random_state=5), GRID, scoring=NOTED)
    fits, _ = notes(search, X, Y)
    assert {fit["seed"] for fit in fits} == {None}
    assert not search.ledger_.seeded
    assert search.best_estimator_.random_state == 5


def test_copies():
    search = DPGridSearchCV(PIPE, {"dplogisticregression__C": [1.0, 10.0]}, epsilon=2.0).fit(X, Y)
    copy = pickle.loads(pickle.dumps(search))
    assert np.array_equal(copy.predict(X), search.predict(X))
    assert privacy_spent(copy.best_estimator_).epsilon == privacy_spent(search).epsilon
    assert not hasattr(clone(search), "best_score_")
    assert len(pickle.dumps(search)) < 40_000


def test_cross_validation_costs_a_search_each():
    budget = PrivacyBudget(epsilon=6.5, delta=1e-5)
    search = DPGridSearchCV(MODEL, GRID, epsilon=2.0, budget=budget)
    assert cross_val_score(search, X, Y, cv=3).shape == (3,)
    assert len(budget.charges) == 3
    with pytest.raises(ValueError, match="budget"):
        search.fit(X, Y)
    assert not hasattr(search, "best_params_")


@pytest.mark.full
def test_processes():
    search = DPGridSearchCV(MODEL, GRID, epsilon=4.0, n_jobs=2, strategy="geometric").fit(X, Y)
    assert search.best_estimator_.ledger_ is search.ledger_


def test_nothing_is_as_long_as_the_data_and_the_input_is_left_alone():
    before = X.copy()
    search = DPGridSearchCV(MODEL, GRID, epsilon=4.0).fit(X, Y)
    assert (before == X).all()
    for value in [*vars(search).values(), *vars(search.best_estimator_).values()]:
        assert {160, 40, 200}.isdisjoint(np.shape(value))
    frozen = X.astype(np.float32)
    frozen.flags.writeable = False
    assert clone(search).fit(frozen, Y).predict(frozen).shape == (200,)
