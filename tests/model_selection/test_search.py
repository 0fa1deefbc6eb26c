# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private searches: runs, data, secrets, errors, planted bugs."""

import math
import pickle
import time
import warnings
from dataclasses import replace
from importlib.util import find_spec

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.stats import uniform
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from skdp import (
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPRandomizedSearchCV,
    DPStandardScaler,
    DPTableVectorizer,
    FederatedDPLogisticRegression,
    LocalDPLogisticRegression,
    NormClipper,
    PrivacyBudget,
    privacy_spent,
)
from skdp.audit import audit_privacy
from skdp.exceptions import BudgetError, PrivacyWarning, SeededNoiseWarning
from skdp.model_selection import RowScorer, _runs, _search
from skdp.model_selection._runs import RunBudget, RunCharge, all_configured, plan_runs, unseeded
from skdp.model_selection._search import as_table, as_targets, public_form
from skdp.privacy import Curator, GaussianMechanism, Ledger, Search, SecretSubset, gdp_mu
from skdp.privacy.kernel.accounting import pure_mu
from skdp.privacy.laws.calibration import pure_epsilon
from tests.model_selection._spy import FITS, NOTED, Spy, data, faults, notes, positions

# What a search gives, for which data and estimators, and what it keeps to itself.


X, Y = data(200)
MODEL = DPLogisticRegression(classes=[0, 1], data_norm=1.0)
GRID = {"C": [0.1, 1.0, 10.0]}


def closeness(estimator, X, y):
    return -np.abs(y - estimator.predict(X))


def distance(estimator, X, y):
    return -np.abs(X - estimator.location_).sum(axis=1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("strategy", ["all", "subset"])
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


@pytest.mark.full
def test_auto_lets_few_runs_count_and_of_many_a_subset():
    few = DPGridSearchCV(MODEL, {"C": [1.0] * 6}, epsilon=4.0).fit(X, Y)
    many = DPGridSearchCV(MODEL, {"C": np.geomspace(1, 9, 7)}, epsilon=4.0)
    repeats = clone(many).set_params(n_repeats=2).fit(X, Y)
    once = clone(many).set_params(n_repeats=1, strategy="subset").fit(X, Y)
    plans = [search.plan_ for search in (few, many.fit(X, Y), repeats, once)]
    assert [plan.strategy for plan in plans] == ["all", "subset", "all", "subset"]
    assert [plan.n_candidates for plan in plans] == [6, 14, 14, 7]


def test_without_refit_there_is_no_model():
    search = DPGridSearchCV(MODEL, GRID, refit=False).fit(X, Y)
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "predict")
    assert search.best_params_ in search.cv_results_["params"]
    with pytest.raises(AttributeError, match="refit=True"):
        search.score(X, Y)


@pytest.mark.full
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("strategy", ["all", "subset"])
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


# Searches over pipelines, all kinds of rows and targets, and copies of searches.


PIPE = make_pipeline(
    NormClipper(),
    DPStandardScaler(epsilon=0.2),
    DPLogisticRegression(epsilon=0.8, classes=[0, 1], data_norm=1.0),
)
# the first one draws, the second has a clip that is drawn and Gaussian noise
MIXED = make_pipeline(
    DPFrequentFeatures(n_features_to_select=2, sparsity=3, delta=0.0),
    DPFeatureCenterer(threshold=1.0),
    DPLogisticRegression(epsilon=3.0, classes=[0, 1], data_norm=1.0),
)


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["all", "subset"])
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
        DPHingeSVM(epsilon=9.0, classes=[0, 1], data_norm=1.0),
        {"C": [0.001]},
        epsilon=30.0,
        delta=0.0,
    )
    pure.fit(X, Y)
    assert pure.privacy_spent_[1] == 0.0
    assert pure.best_estimator_.epsilon <= 30.0


@pytest.mark.full
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_prices_add_up_to_the_share(delta):
    pipe = make_pipeline(
        DPFrequentFeatures(epsilon=1.0, n_features_to_select=2, sparsity=3, delta=0.0),
        DPLogisticRegression(
            epsilon=3.0, classes=[0, 1], solver="sgd" if delta else "auto", data_norm=1.0
        ),
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


@pytest.mark.full
def test_candidates_may_be_other_estimators():
    pipe = make_pipeline(DPStandardScaler(), MODEL)
    svm = DPHingeSVM(classes=[0, 1], data_norm=1.0)
    grid = [{"dplogisticregression": [MODEL, svm]}, {"dpstandardscaler": ["passthrough"]}]
    search = DPGridSearchCV(pipe, grid, epsilon=4.0).fit(X, Y)
    assert search.plan_.n_candidates == 3
    assert search.predict(X).shape == (200,)
    assert MODEL.budget is None
    assert not hasattr(MODEL, "coef_")


@pytest.mark.sample(1)
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, list])
def test_layouts(layout):
    rows = X.tolist() if layout is list else layout(X)
    search = DPGridSearchCV(MODEL, GRID, epsilon=4.0).fit(rows, Y.tolist())
    assert search.predict(rows).shape == (200,)
    assert search.score(rows, Y.tolist()) > 0


@pytest.mark.full
def test_data_frames_with_text_and_a_column_transformer():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["town"] = np.where(X[:, 1] > 0, "x", "y")
    frame["kind"] = pd.Categorical(np.where(X[:, 1] > 0, "u", "v"))
    public = [["x", "y"], ["u", "v"]]
    encoder = OneHotEncoder(categories=public, handle_unknown="ignore", sparse_output=False)
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


@pytest.mark.full
def test_a_private_remainder_is_seen():
    columns = ColumnTransformer([("clip", NormClipper(), [0])], remainder=DPStandardScaler())
    pipe = make_pipeline(columns, MODEL)
    search = DPGridSearchCV(pipe, {"dplogisticregression__C": [1.0, 2.0]}, epsilon=4.0).fit(X, Y)
    fitted = search.best_estimator_[0].transformers_[-1][1]
    assert fitted.ledger_ is search.ledger_
    assert fitted.epsilon < 4.0
    pipe = make_pipeline(
        PolynomialFeatures(2),
        FunctionTransformer(np.tanh),
        DPLogisticRegression(classes=[0, 1], data_norm=1.0),
    )
    grid = {"polynomialfeatures__degree": [1, 2]}
    assert DPGridSearchCV(pipe, grid, epsilon=4.0).fit(X, Y).predict(X).shape == (200,)


def warn_of_rows(X):
    if np.any(np.asarray(X)):
        warnings.warn("a row is larger than 1", stacklevel=1)
    return X


@pytest.mark.sample(1)
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_what_steps_warn_of_is_held_back(strategy):
    pipe = make_pipeline(
        FunctionTransformer(warn_of_rows), DPLogisticRegression(random_state=3, data_norm=1.0)
    )
    grid = {"dplogisticregression__C": [1.0, 2.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        DPGridSearchCV(pipe, grid, epsilon=4.0, strategy=strategy).fit(X, Y)


def test_estimators_without_targets_and_regressors():
    scorer = RowScorer(distance, bounds=(-2.0, 0.0))
    grid = {"data_norm": [0.5, 1.0]}
    search = DPGridSearchCV(DPMean(data_norm=1.0), grid, epsilon=4.0, scoring=scorer).fit(X)
    assert search.best_score_ <= 0
    scorer = RowScorer(closeness, bounds=(-1.0, 0.0))
    search = DPGridSearchCV(DPLpRegressor(), {"p": [1, 2]}, epsilon=4.0, scoring=scorer)
    assert -1 <= search.fit(X, X[:, 1]).best_score_ <= 0
    assert search.predict(X).shape == (200,)


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_adjacencies_and_pure_privacy(adjacency, delta):
    model = DPMean(mechanism="gaussian" if delta else "laplace", adjacency=adjacency, data_norm=1.0)
    scorer = RowScorer(distance, bounds=(-2.0, 0.0))
    for strategy in ("all", "subset"):
        search = DPGridSearchCV(
            model, {"data_norm": [0.5, 1.0]}, epsilon=2.0, delta=delta, strategy=strategy,
            scoring=scorer,
        ).fit(X)  # fmt: skip
        assert search.ledger_.adjacency == adjacency
        assert search.privacy_spent_ <= (2.0, delta)
        # a third is what is left of a run, whatever their number
        if strategy == "subset" and not delta:
            assert 2.0 / 3 <= search.best_estimator_.epsilon < 2.0


def test_label_set_of_all_rows_is_that_of_every_run():
    rare = np.where(np.arange(200) == 7, "rare", np.where(Y, "a", "b"))
    search = DPGridSearchCV(DPLogisticRegression(data_norm=1.0), GRID, epsilon=4.0).fit(X, rare)
    assert search.classes_.tolist() == ["a", "b", "rare"]
    assert any("label" in text for text in search.ledger_.assumptions)
    given = DPGridSearchCV(
        DPLogisticRegression(classes=["a", "b"], data_norm=1.0), GRID, epsilon=4.0
    )
    assert given.fit(X, rare).ledger_.assumptions == ()
    assert given.classes_.tolist() == ["a", "b"]


@pytest.mark.full
def test_a_seeded_search_is_reproducible_whether_its_steps_are_seeded_or_not():
    for inner in (5, None):
        search = DPGridSearchCV(MODEL, GRID, epsilon=4.0, strategy="subset", random_state=1)
        search.set_params(estimator__random_state=inner)
        fits = []
        for _ in range(2):
            with pytest.warns(SeededNoiseWarning) as told:
                fits.append(clone(search).fit(X, Y).best_estimator_)
            assert len(told) == 1
            assert told[0].filename == __file__
        assert np.array_equal(fits[0].coef_, fits[1].coef_)
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


@pytest.mark.full
def test_cross_validation_costs_a_search_each():
    budget = PrivacyBudget(epsilon=6.5, delta=1e-5)
    search = DPGridSearchCV(MODEL, GRID, epsilon=2.0, budget=budget)
    assert cross_val_score(search, X, Y, cv=3).shape == (3,)
    assert len(budget.charges) == 3
    with pytest.raises(ValueError, match="budget"):
        search.fit(X, Y)
    assert not hasattr(search, "best_params_")


IN_PROCESSES = pytest.param("loky", marks=pytest.mark.full)


@pytest.mark.full
@pytest.mark.covering
@pytest.mark.parametrize("backend", ["threading", IN_PROCESSES])
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_jobs_change_nothing(backend, strategy):
    search = DPGridSearchCV(MODEL, GRID, epsilon=4.0, strategy=strategy, random_state=3)
    with joblib.parallel_config(backend=backend):
        alone, both = (clone(search).set_params(n_jobs=n_jobs).fit(X, Y) for n_jobs in (None, 2))
    assert alone.best_params_ == both.best_params_
    np.testing.assert_array_equal(alone.best_estimator_.coef_, both.best_estimator_.coef_)
    assert alone.ledger_ == both.ledger_
    assert both.best_estimator_.ledger_ is both.ledger_


def test_nothing_is_as_long_as_the_data_and_the_input_is_left_alone():
    before = X.copy()
    search = DPGridSearchCV(MODEL, GRID, epsilon=4.0).fit(X, Y)
    assert (before == X).all()
    for value in [*vars(search).values(), *vars(search.best_estimator_).values()]:
        assert {160, 40, 200}.isdisjoint(np.shape(value))
    frozen = X.astype(np.float32)
    frozen.flags.writeable = False
    assert clone(search).fit(frozen, Y).predict(frozen).shape == (200,)


# The budget of one private step in one run, and whose run wins.


PAIR = RunCharge(1.0, 1e-6, None, "replace-one", "row")
GAUSSIAN = replace(PAIR, mu=0.2)


def charge(limit, **changed):
    asked = vars(replace(limit, **changed))
    RunBudget(limit).charge(
        asked.pop("epsilon"), asked.pop("delta"), mu=asked.pop("mu"), label="a step", **asked
    )


@pytest.mark.parametrize("limit", [PAIR, GAUSSIAN], ids=["pair", "gaussian"])
def test_what_was_planned_is_taken(limit):
    charge(limit)
    charge(limit, epsilon=0.5)


@pytest.mark.parametrize(
    ("limit", "changed"),
    [
        (PAIR, {"epsilon": 1.01}),
        (PAIR, {"delta": 2e-6}),
        (PAIR, {"epsilon": np.nan}),
        (PAIR, {"adjacency": "zero-out"}),
        (PAIR, {"unit": "group"}),
        (GAUSSIAN, {"mu": 0.21}),
        (GAUSSIAN, {"mu": None}),
        (GAUSSIAN, {"mu": np.nan}),
        (GAUSSIAN, {"adjacency": "zero-out"}),
    ],
    ids=str,
)
def test_more_or_something_else_is_refused(limit, changed):
    with pytest.raises(BudgetError, match="more than its share"):
        charge(limit, **changed)


def test_one_fit_charges_once():
    budget = RunBudget(None)
    facts = {"mu": None, "adjacency": "replace-one", "unit": "row", "label": "a step"}
    budget.charge(1.0, 0.0, **facts)
    with pytest.raises(BudgetError, match="charges twice"):
        budget.charge(1.0, 0.0, **facts)


@pytest.mark.full
def test_the_run_with_the_best_score_wins():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    # far beyond the rows nothing is left of them but noise, if no norm is checked
    grid = {"data_norm": [1.0, 1e6]}
    model = DPLogisticRegression(classes=[0, 1], solver="gd", max_iter=8, data_norm=1.0)
    search = DPGridSearchCV(model, grid, epsilon=100.0, strategy="subset", n_repeats=15)
    best = [search.fit(X, y).best_params_ == {"data_norm": 1.0} for _ in range(12)]
    # in one search of eighteen no run of the better candidate counts: fewer fail once in 10^4
    assert sum(best) >= 7


# What could tell how many runs a search had: printed text, warnings, generators, ledgers.


SECRET_X, SECRET_Y = data(60)
SECRET_GRID = {"C": [0.1, 1.0]}


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


def test_threads_and_joblib_tell_nothing_of_the_runs(capfd):
    search = DPGridSearchCV(Loud(classes=[0, 1]), SECRET_GRID, strategy="subset", n_repeats=4)
    FITTED.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with joblib.parallel_config(backend="threading", n_jobs=2, verbose=50):
            search.fit(SECRET_X, SECRET_Y)
        assert warnings.filters == before
    assert len(FITTED) == 8
    # the winner, which is released, has one thing to say of so few rows
    (one,) = caught
    assert one.filename == __file__
    assert str(one.message).count("of the best run, ") == str(one.message).count("Loud: ") <= 2
    assert capfd.readouterr() == ("", "")


PROJECTED = make_pipeline(GaussianRandomProjection(2), MODEL)


def winners_place():
    """Return whether the winner has a projection that numpy's generator gave one of 30 fits."""
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    search = DPGridSearchCV(PROJECTED, grid, strategy="subset", refit_share=0.2)
    np.random.seed(0)  # noqa: NPY002, the state that goes on
    search.fit(SECRET_X, SECRET_Y)
    won = search.best_estimator_[0]
    assert won.random_state is None
    np.random.seed(0)  # noqa: NPY002, the state that goes on
    drawn = [GaussianRandomProjection(2).fit(SECRET_X).components_ for _ in range(60)]
    return any(np.array_equal(one, won.components_) for one in drawn)


@pytest.mark.full
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
            search.fit(SECRET_X, SECRET_Y)
        outcomes.append(search.best_estimator_[0].components_)
        assert len(set(fits[-2:])) == 2
    assert np.array_equal(*outcomes)
    columns = ColumnTransformer([("a", GaussianRandomProjection(1), [0, 1])])
    assert len(unseeded(make_pipeline(columns, MODEL))) == 1
    assert unseeded(make_pipeline(GaussianRandomProjection(2, random_state=0), MODEL)) == []


def test_a_search_that_won_in_a_search_has_the_ledger_of_the_outer_one():
    inner = DPGridSearchCV(MODEL, SECRET_GRID)
    search = DPGridSearchCV(inner, {"validation_fraction": [0.2, 0.3]}, epsilon=4.0).fit(
        SECRET_X, SECRET_Y
    )
    won = search.best_estimator_
    assert won.ledger_ is won.best_estimator_.ledger_ is search.ledger_
    assert privacy_spent(won.best_estimator_).epsilon == search.privacy_spent_[0]


@pytest.mark.full
def test_the_configuration_reaches_other_processes():
    import pandas as pd

    frame = pd.DataFrame(SECRET_X, columns=["a", "b", "c"])
    columns = ColumnTransformer([("scale", DPStandardScaler(), ["a", "b"])])
    named = ColumnTransformer([("keep", "passthrough", ["scale__a", "scale__b"])])
    pipe = make_pipeline(columns, named, MODEL)
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    with sklearn.config_context(transform_output="pandas"):
        search = DPGridSearchCV(pipe, grid, epsilon=4.0, n_jobs=2).fit(frame, SECRET_Y)
        assert search.predict(frame).shape == (60,)


@pytest.mark.sample(1)
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_a_search_keeps_nothing_of_runs_that_lost(strategy):
    scorer = RowScorer(lambda e, X, y: (e.predict(X) == y) * 1.0, bounds=(0, 1))
    search = DPGridSearchCV(Spy(classes=[0, 1]), SECRET_GRID, strategy=strategy, n_repeats=3)
    fits, _ = notes(search.set_params(scoring=scorer), SECRET_X, SECRET_Y)
    search.scoring = search.scorer_ = None
    kept = pickle.dumps(search)
    lost = [fit for fit in fits if fit["model"] is not search.best_estimator_]
    assert search.best_estimator_.coef_.tobytes() in kept
    assert not any(fit["coef"].tobytes() in kept for fit in lost)


@pytest.mark.full
def test_the_best_run_wins(monkeypatch):
    monkeypatch.setattr(SecretSubset, "choose", lambda law, bits: np.arange(law.n_runs))
    scorer = RowScorer(lambda e, X, y: np.full(len(X), float(e.C == 0.1)), bounds=(0, 1))
    grid = {"C": [0.1, 1.0, 10.0]}
    search = DPGridSearchCV(MODEL, grid, epsilon=1e4, strategy="subset", scoring=scorer)
    assert search.fit(SECRET_X, SECRET_Y).best_params_ == {"C": 0.1}
    assert search.best_score_ == pytest.approx(1.0, abs=0.05)


@pytest.mark.sample(1)
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_the_second_fit_has_its_own_share(strategy):
    search = DPGridSearchCV(Spy(classes=[0, 1]), SECRET_GRID, strategy=strategy, refit_share=0.7)
    fits, _ = notes(search, SECRET_X, SECRET_Y)
    spent = gdp_mu(fits[-1]["epsilon"], fits[-1]["delta"])
    assert spent == pytest.approx(search.plan_.mu_refit, rel=1e-3)


def test_a_step_charges_once():
    budget = RunBudget(None)
    price = {"mu": None, "adjacency": "replace-one", "unit": "row", "label": "x"}
    budget.charge(1.0, 0.0, **price)
    with pytest.raises(BudgetError, match="charges twice"):
        budget.charge(1.0, 0.0, **price)


# The public form of a data set: no value of it gets into null rows.


RNG = np.random.default_rng(0)


def frame(seed):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.normal(size=(6, 2)), columns=["a", "b"])
    made["n"] = pd.array(rng.integers(0, 9, 6), dtype="Int64")
    made["t"] = [f"text {value}" for value in rng.integers(0, 99, 6)]
    made["c"] = pd.Categorical(rng.choice(["u", "v"], 6), categories=["u", "v"])
    made["f"] = rng.uniform(size=6) > 0.5
    return made


MAKERS = {
    "array": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)),
    "float32": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)).astype("f"),
    "object": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)).astype(object),
    "list": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)).tolist(),
    "text": lambda seed: np.random.default_rng(seed).integers(0, 9, size=(6, 3)).astype(str),
    "csr": lambda seed: sparse.random_array((6, 3), density=0.2 + 0.5 * seed, format="csr"),
    "csc": lambda seed: sparse.random_array((6, 3), density=0.2 + 0.5 * seed, format="csc"),
    "frame": frame,
}


def plain(X):
    return X.toarray().tolist() if sparse.issparse(X) else np.asarray(X).tolist()


@pytest.mark.parametrize("kind", MAKERS)
def test_null_rows_follow_from_the_form_alone(kind):
    made = []
    for seed in (0, 1):
        X, y = as_table(MAKERS[kind](seed)), as_targets(RNG.integers(0, 2, 6))
        form = public_form(X, y)
        null = form.null_rows(4)
        assert null.shape == (4, X.shape[1])
        assert type(null) is type(X)
        made.append((plain(null), list(getattr(null, "columns", [])), form.shape))
        assert form.null_targets(4, np.array(["p", "q"])).tolist() == ["p", "q", "p", "q"]
        assert form.null_targets(4, None).tolist() == [0.0] * 4
    assert made[0] == made[1]
    if kind == "frame":
        assert null.dtypes.equals(X.dtypes)
        assert null.iloc[0].tolist() == [0.0, 0.0, 0, "", "u", False]


def test_targets():
    assert as_targets(None) is None
    with pytest.warns(DataConversionWarning):
        assert as_targets([[1], [2]]).shape == (2,)
    X = np.zeros((2, 1))
    assert public_form(X, None).null_targets(2, None) is None
    assert public_form(X, np.zeros((2, 3))).null_targets(5, None).shape == (5, 3)


# What a search refuses, before anything is charged, and what happens when a run fails.


ERROR_PIPE = make_pipeline(DPStandardScaler(), MODEL)


def refused(search, match, X=SECRET_X, y=SECRET_Y, error=ValueError, **params):
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
        (MODEL, [SECRET_GRID, {"budget": [None]}]),
        (ERROR_PIPE, {"dplogisticregression__epsilon": [1.0]}),
        (ERROR_PIPE, {"dpstandardscaler__budget": [None]}),
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
    refused(DPRandomizedSearchCV(MODEL, SECRET_GRID, n_iter=0), "n_iter")


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (LogisticRegression(), "LogisticRegression.*learns from the data without a ledger"),
        (make_pipeline(StandardScaler(), MODEL), "step 'standardscaler'.*without a ledger"),
        (make_pipeline(DPStandardScaler(), LogisticRegression()), "step 'logisticregression'"),
        (CalibratedClassifierCV(MODEL), "without a ledger"),
        (make_pipeline(NormClipper(), "passthrough"), "no private step"),
        (clone(ERROR_PIPE).set_params(memory="nowhere"), "a cache repeats noise"),
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
            DPGridSearchCV(wrong, SECRET_GRID).fit(SECRET_X, SECRET_Y)


def test_candidates_of_different_adjacencies():
    grid = {"adjacency": ["replace-one", "zero-out"]}
    refused(DPGridSearchCV(MODEL, grid), "all candidates need the same adjacency")


# scikit-learn has callbacks, which clones share, from 1.9 on.
if find_spec("sklearn.callback"):

    def test_steps_with_callbacks():
        model = clone(MODEL)
        model._skl_callbacks = [object()]
        refused(DPGridSearchCV(model, SECRET_GRID), "callbacks, which would watch the runs")
        # those of a pipeline, which hands them rows
        steps = make_pipeline(MODEL)
        steps._skl_callbacks = [object()]
        named = {f"{steps.steps[0][0]}__{name}": values for name, values in SECRET_GRID.items()}
        refused(DPGridSearchCV(steps, named), "callbacks, which would watch the runs")


def test_a_search_takes_no_callbacks():
    with pytest.raises(TypeError, match="no callbacks"):
        DPGridSearchCV(MODEL, SECRET_GRID).set_callbacks(object())
    search = DPGridSearchCV(MODEL, SECRET_GRID)
    assert search.set_callbacks() is search


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": np.nan}, {"epsilon": np.inf},
        {"epsilon": "1"}, {"delta": -1e-6}, {"delta": 1.0}, {"delta": np.nan}, {"delta": 0.0},
        {"epsilon": 1e-30}, {"epsilon": 1e-9, "delta": 1e-300}, {"strategy": "best"},
        {"strategy": "geometric"}, {"n_repeats": 0}, {"n_repeats": 0, "strategy": "subset"},
        {"n_repeats": 2.5}, {"validation_fraction": 0.0},
        {"validation_fraction": 1.0}, {"validation_fraction": np.nan}, {"scoring": "roc_auc"},
        {"refit": "accuracy"}, {"refit_share": 1.0}, {"refit_share": 0.5, "refit": False},
        {"random_state": -1}, {"n_jobs": 0.5},
    ],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range(options):
    model = clone(MODEL).set_params(mechanism="gradient")
    refused(DPGridSearchCV(model, SECRET_GRID, **options), next(iter(options)))


def test_other_fit_parameters():
    refused(DPGridSearchCV(MODEL, SECRET_GRID), "fits rows, targets, groups and weights", sub=1)


WEIGHTED = DPGridSearchCV(MODEL, SECRET_GRID, max_weight=2.0)


@pytest.mark.parametrize(
    ("search", "match", "error", "weights"),
    [
        (DPGridSearchCV(MODEL, SECRET_GRID), "only with max_weight", TypeError, np.ones(60)),
        (WEIGHTED, "finite", ValueError, np.full(60, np.nan)),
        (WEIGHTED, "not negative", ValueError, np.full(60, -1.0)),
        (WEIGHTED, "shape", ValueError, np.ones(59)),
        (
            DPGridSearchCV(
                make_pipeline(MODEL), {"dplogisticregression__solver": ["sgd"]}, max_weight=2.0
            ),
            "sample_weight must be None with solver",
            ValueError,
            np.ones(60),
        ),
    ],
)
def test_weights_that_cannot_be_paid_for(search, match, error, weights):
    refused(search, match, error=error, sample_weight=weights)


@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_weights_decide_what_is_learned_and_how_it_is_scored(strategy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    # every other row has the wrong label, and counts next to nothing
    wrong = np.arange(6000) % 2 == 1
    y = ((X[:, 0] > 0) ^ wrong).astype(int)
    weights = np.where(wrong, 0.01, 1e308)
    budget = PrivacyBudget(epsilon=20.0, delta=1e-5)
    pipe = make_pipeline(MODEL)
    search = DPGridSearchCV(
        pipe,
        {"dplogisticregression__C": [1.0, 10.0]},
        epsilon=20.0,
        strategy=strategy,
        max_weight=1.0,
        budget=budget,
    ).fit(X, y, sample_weight=weights)
    assert search.best_score_ > 0.9
    assert search.score(X, y, sample_weight=np.minimum(weights, 1.0)) > 0.9
    assert abs(search.score(X, y) - 0.5) < 0.05
    assert search.ledger_.releases[0].query == "total of the weights"
    assert len(search.ledger_.releases) == 2
    assert budget.spent == (20.0, 1e-6)
    assert search.privacy_spent_[0] <= 20.0
    assert privacy_spent(search.best_estimator_).epsilon <= 20.0
    assert pipe[-1].max_weight is None
    assert not hasattr(search.best_estimator_[-1], "_metadata_request")


def test_weights_beside_public_scores_and_groups():
    X, y = SECRET_X, SECRET_Y
    weights = np.ones(len(X))
    search = (
        clone(WEIGHTED).set_params(epsilon=4.0).fit(X, y, sample_weight=weights, X_val=X, y_val=y)
    )
    assert search.ledger_.releases[0].query != "total of the weights"
    assert search.epsilon == 4.0
    groups = np.arange(len(X)) // 2
    search.fit(X, y, sample_weight=weights, groups=groups)
    assert search.ledger_.unit == "group"
    assert 0.0 <= search.best_score_ <= 1.0


def test_models_that_cannot_be_scored_are_not_paid_for():
    svm = DPGridSearchCV(
        DPHingeSVM(classes=[0, 1], data_norm=1.0), SECRET_GRID, scoring="neg_log_loss"
    )
    refused(svm, "scoring must suit all candidates: .* needs predict_proba, .*'C': 0.1")
    refused(
        DPGridSearchCV(MODEL, SECRET_GRID), "1d array", y=np.stack([SECRET_Y, SECRET_Y], axis=1)
    )
    refused(DPGridSearchCV(MODEL, SECRET_GRID, n_jobs=0), "n_jobs must be None or")


def test_targets_that_are_missing():
    refused(DPGridSearchCV(MODEL, SECRET_GRID), "requires y to be passed", y=None)
    named = DPGridSearchCV(DPStandardScaler(), {"with_mean": [True, False]}, scoring="accuracy")
    refused(named, "scoring must suit all candidates: .* needs predict,", y=None)
    refused(
        DPGridSearchCV(DPLpRegressor(), {"p": [1, 2]}), "scoring must be given", y=SECRET_X[:, 1]
    )


def test_rows_that_are_too_few_or_do_not_fit():
    refused(
        DPGridSearchCV(MODEL, SECRET_GRID),
        "at least 2 rows.*n_samples=1",
        X=SECRET_X[:1],
        y=SECRET_Y[:1],
    )
    refused(DPGridSearchCV(MODEL, SECRET_GRID), "same number of rows", y=SECRET_Y[:-1])
    refused(DPGridSearchCV(MODEL, SECRET_GRID), "cannot be fitted", X=SECRET_X[:, 0])
    refused(DPGridSearchCV(MODEL, SECRET_GRID), "minimum of 1", X=SECRET_X[:, :0])
    # two rows are enough: one trains, one scores
    assert DPGridSearchCV(MODEL, SECRET_GRID).fit(SECRET_X[:2], SECRET_Y[:2]).predict(
        SECRET_X[:2]
    ).shape == (2,)


def test_public_rows_that_do_not_fit():
    search = DPGridSearchCV(MODEL, SECRET_GRID)
    refused(search, "features of X", X_val=SECRET_X[:, :2], y_val=SECRET_Y)
    refused(search, "features of X", X_val=SECRET_X[:0], y_val=SECRET_Y[:0])
    refused(search, "same number of rows", X_val=SECRET_X, y_val=SECRET_Y[:3])
    refused(search, "y_val must be given", X_val=SECRET_X)
    refused(search, "without X_val", y_val=SECRET_Y)


class Crashing(Spy):
    """Fails on rows that are not null, after it was charged."""

    def fit(self, X, y):
        super().fit(X, y)
        if np.any(np.asarray(X)):
            raise RuntimeError("the machine is out of memory")
        return self


def test_a_run_that_crashes_has_been_paid_for():
    budget = PrivacyBudget(epsilon=5.0, delta=1e-5)
    search = DPGridSearchCV(Crashing(classes=[0, 1]), SECRET_GRID, epsilon=2.0, budget=budget)
    with pytest.raises(RuntimeError, match="out of memory"):
        search.fit(SECRET_X, SECRET_Y)
    assert budget.spent[0] == pytest.approx(2.0, rel=1e-6)
    assert not any(name.endswith("_") for name in vars(search))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        # refused after a look at made-up rows, which need no model
        (lambda e, X, y: 1.0, "mixes rows"),
        (lambda e, X, y: e.coef_.ravel() * 0, "must return 12 real numbers for 12 rows"),
    ],
)
def test_a_scorer_that_does_not_score_rows(function, told):
    scorer = RowScorer(function, bounds=(0, 1))
    with pytest.raises(ValueError, match=told):
        DPGridSearchCV(MODEL, SECRET_GRID, scoring=scorer).fit(SECRET_X, SECRET_Y)


def test_a_scorer_is_given_held_out_rows_only():
    seen = []

    def watching(estimator, X, y):
        if hasattr(estimator, "coef_"):  # others are tried on rows that are made up
            seen.extend(positions(X))
        return y * 1.0

    search = DPGridSearchCV(
        Spy(classes=[0, 1]), SECRET_GRID, scoring=RowScorer(watching, bounds=(0, 1))
    )
    search.fit(SECRET_X, SECRET_Y)
    assert len(set(seen)) == 12


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, "text", 1j])
def test_bad_values(value):
    table = SECRET_X.astype(object)
    table[3, 1] = value
    search = DPGridSearchCV(MODEL, SECRET_GRID)
    with pytest.raises((ValueError, TypeError)):
        search.fit(table, SECRET_Y)
    assert not any(name.endswith("_") for name in vars(search))


@pytest.mark.sample(2)
@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
def test_features_of_any_scale(scale):
    search = DPGridSearchCV(MODEL, {"C": [1.0, 2.0]}, scoring="neg_log_loss")
    with np.errstate(all="raise"):
        search.fit(SECRET_X * scale, SECRET_Y)
    assert np.isfinite(search.best_score_)


def test_one_class():
    refused(DPGridSearchCV(DPHingeSVM(data_norm=1.0), SECRET_GRID), "1 class", y=np.zeros(60))
    assert (
        DPGridSearchCV(DPHingeSVM(classes=[0, 1], data_norm=1.0), SECRET_GRID)
        .fit(SECRET_X, np.zeros(60))
        .best_score_
        >= 0
    )


# Private steps that release nothing, with the parameters that they have, cost a search nothing.


FREE_GRID = {"dplogisticregression__C": [0.1, 1.0]}


class Idle(DPStandardScaler):
    """Does nothing, and counts its fits."""

    def __init__(self, epsilon=1.0, delta=1e-6, *, with_mean=False, with_std=False, budget=None):
        super().__init__(
            epsilon, delta, with_mean=with_mean, with_std=with_std, bounds=(-1, 1), budget=budget
        )


def search_with(step, grid=FREE_GRID, **options):
    model = DPLogisticRegression(classes=[0, 1], max_iter=3, random_state=0, data_norm=1.0)
    options = {"epsilon": 2.0, "random_state": 0, **options}
    return DPGridSearchCV(make_pipeline(step, model), grid, **options)


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_the_other_steps_get_all_of_the_budget(strategy):
    budget = PrivacyBudget(2.0, 1e-6)
    search = search_with(Idle(), strategy=strategy, budget=budget).fit(X, Y)
    without = search_with("passthrough", strategy=strategy).fit(X, Y)
    assert search.privacy_spent_ == without.privacy_spent_ == budget.spent
    assert search.best_params_ == without.best_params_
    ours, theirs = search.best_estimator_[-1], without.best_estimator_[-1]
    assert (ours.epsilon, ours.delta) == (theirs.epsilon, theirs.delta)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    idle = search.best_estimator_[0]
    assert (idle.epsilon, idle.ledger_, idle.budget) == (1.0, Ledger(), None)
    assert tuple(privacy_spent(search.best_estimator_)) == search.privacy_spent_


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_a_search_decides_whether_a_step_releases_anything():
    grid = {"idle__with_mean": [False, True]}
    search = search_with(Idle(), grid, strategy="subset", n_repeats=3).fit(X, Y)
    first, second = (search.plan_.mu_run, search.best_estimator_[0])
    assert first > 0
    assert (second.ledger_ == Ledger()) is not search.best_params_["idle__with_mean"]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_steps_that_all_release_nothing_are_no_search():
    search = DPGridSearchCV(
        make_pipeline(Idle(), "passthrough"), {}, n_repeats=2, scoring="accuracy"
    )
    with pytest.raises(ValueError, match="no private step that releases anything"):
        search.fit(X, Y)
    with pytest.raises(ValueError, match="budget of a step must be None"):
        search_with(Idle(budget=PrivacyBudget(1.0))).fit(X, Y)


class Liar(Idle):
    """Says that it releases nothing, and does."""

    def fit(self, X, y=None):
        """Release a mean that nobody pays for."""
        super().fit(X)
        curator = Curator(
            lambda: X, n_rows=len(X), epsilon=1.0, delta=1e-6, adjacency="replace-one",
            random_state=None, purpose="liar",
        )  # fmt: skip
        curator.prepay(Total(), GaussianMechanism(0.1), 1)
        self.ledger_ = curator.ledger
        return self


class WithoutALedger(Idle):
    """Says that it releases nothing, and shows nothing for it."""

    def fit(self, X, y=None):
        """Forget the ledger."""
        super().fit(X)
        del self.ledger_
        return self


class Total:
    """Any statistic."""

    name, size = "total", 1

    def sensitivity(self, adjacency, n_rows):
        from skdp.privacy import Sensitivity

        return Sensitivity(1.0, 1.0, 1.0, "example")


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("step", [Liar(), WithoutALedger()], ids=["liar", "without a ledger"])
def test_that_it_released_nothing_is_checked(step):
    with pytest.raises(BudgetError, match="is not among the steps that were paid for"):
        search_with(step).fit(X, Y)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_shares_of_pure_steps_are_as_large_as_their_parameter_allows():
    model = make_pipeline(
        DPStandardScaler(bounds=(-1, 1)),
        DPLogisticRegression(classes=[0, 1], mechanism="output", delta=0, data_norm=1.0),
    )
    search = DPGridSearchCV(model, {**FREE_GRID}, epsilon=2.0).fit(X, Y)
    assert search.plan_.mu_run is not None
    pure = search.best_estimator_[-1].epsilon
    assert pure_epsilon(pure_mu(pure)) == pytest.approx(pure, rel=1e-11)
    assert pure_mu(pure) < search.plan_.mu_run


# What must be true of every search, and known bugs, planted one by one.
#
# Every test first shows that the real code has no fault.


MUTANT_X, MUTANT_Y = data()
MUTANT_GRID = {"C": [0.5, 1.0, 2.0]}


def search(strategy="all", **options):
    model = Spy(classes=[0, 1], random_state=7)
    defaults = {"epsilon": 4.0, "random_state": 3, "scoring": NOTED, "strategy": strategy}
    return DPGridSearchCV(model, MUTANT_GRID, **{**defaults, **options})


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("strategy", ["all", "subset"])
@pytest.mark.parametrize("options", [{}, {"refit_share": 0.3}, {"random_state": None}], ids=str)
def test_a_search_has_no_fault(strategy, options):
    assert faults(search(strategy, **options), MUTANT_X, MUTANT_Y) == set()


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_the_ledger_of_the_winning_fit_is_caught(monkeypatch):
    monkeypatch.setattr(_search, "stamp", lambda *about: None)
    assert faults(search(), MUTANT_X, MUTANT_Y) == {"ledger"}


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_a_score_without_noise_is_caught(strategy, monkeypatch):
    def exact(gate, models, scorer, tested, n_held_out):
        scores = [scorer(model, tested.X, tested.y) - 0.5 for model in models]
        return int(np.argmax(scores)), max(scores)

    monkeypatch.setattr(_runs, "_choose", exact)
    assert faults(search(strategy), MUTANT_X, MUTANT_Y) == {"score"}


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_rows_that_train_and_score_are_caught(monkeypatch):
    real = Search.split
    monkeypatch.setattr(Search, "split", lambda gate: (np.arange(len(MUTANT_X)), real(gate)[1]))
    assert "rows" in faults(search(), MUTANT_X, MUTANT_Y)


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_a_share_that_is_not_divided_is_caught(strategy, monkeypatch):
    real = _runs.share_out

    def whole(candidate, form, n_rows, *, epsilon, delta, mu, whole):
        mu = gdp_mu(*whole)
        return real(candidate, form, n_rows, epsilon=epsilon, delta=delta, mu=mu, whole=whole)

    monkeypatch.setattr(_runs, "share_out", whole)
    assert "share" in faults(search(strategy), MUTANT_X, MUTANT_Y)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_one_seed_for_all_runs_is_caught(monkeypatch):
    assert faults(search(n_repeats=2), MUTANT_X, MUTANT_Y) == set()
    monkeypatch.setattr(Search, "seed", lambda gate, run: 7)
    # equal candidates have equal noise then
    assert faults(search(n_repeats=2), MUTANT_X, MUTANT_Y) == {"seed", "noise"}


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_the_seed_of_the_estimator_in_all_runs_is_caught(monkeypatch):
    monkeypatch.setattr(_runs, "_seeds", lambda gate, candidate, run: [7])
    assert faults(search(n_repeats=2), MUTANT_X, MUTANT_Y) == {"seed", "noise"}


class Greedy(Spy):
    """Charges for less than it spends on rows that are not null."""

    def fit(self, X, y):
        if np.any(np.asarray(X)):
            self.epsilon = 2 * self.epsilon
        return super().fit(X, y)


class Silent(Spy):
    """Charges for null rows only."""

    def fit(self, X, y):
        if np.any(np.asarray(X)):
            self.budget = None
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize(
    ("kind", "words"), [(Greedy, "more than its share"), (Silent, "did not charge")]
)
def test_steps_that_break_the_plan_are_stopped(kind, words):
    search = DPGridSearchCV(kind(classes=[0, 1]), MUTANT_GRID, epsilon=4.0)
    with pytest.raises(BudgetError, match=words):
        search.fit(MUTANT_X, MUTANT_Y)
    assert not hasattr(search, "best_params_")
    assert not hasattr(search, "ledger_")


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_without_the_limit_a_greedy_step_would_be_caught(monkeypatch):
    monkeypatch.setattr(_runs, "_within_limit", lambda asked, limit: True)
    model = Greedy(classes=[0, 1], random_state=7)
    assert "share" in faults(search().set_params(estimator=model), MUTANT_X, MUTANT_Y)


def told_apart(n_runs):
    """Return the lower bound on epsilon that an audit gives for a search at epsilon 2."""
    X = np.random.default_rng(0).uniform(-0.1, 0.1, size=(12, 2))
    one, other = X.copy(), X.copy()
    one[0], other[0] = [1.0, 0.0], [-1.0, 0.0]
    y = np.arange(12) % 2
    model = DPLogisticRegression(classes=[0, 1], max_iter=2, solver="gd", data_norm=1.0)
    options = {"epsilon": 2.0, "delta": 1e-3, "strategy": "subset", "n_repeats": 1}
    search = DPGridSearchCV(model, {"C": [1.0, 2.0]}, **options)
    result = audit_privacy(
        search, (one, y), neighbour=(other, y), n_runs=n_runs, random_state=0,
        adjacency="replace-one",
    )  # fmt: skip
    assert result.epsilon_claimed is None or result.epsilon_claimed <= 2.0
    return result.epsilon_lower


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.slow
def test_an_audit_finds_nothing():
    assert told_apart(60) < 2.0


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.slow
def test_an_audit_finds_shares_that_are_not_divided(monkeypatch):
    real = _runs.share_out

    def large(candidate, form, n_rows, *, mu, **about):
        return real(candidate, form, n_rows, mu=10 * mu, **about)

    monkeypatch.setattr(_runs, "share_out", large)
    assert told_apart(300) > 2.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_entries_of_a_list_do_not_decide_what_columns_are():
    rows, y = [[k % 50, k % 7] for k in range(200)], np.arange(200) % 2
    steps = DPTableVectorizer(8.0), DPLogisticRegression(8.0, classes=[0, 1], data_norm=1.0)
    search = DPGridSearchCV(
        make_pipeline(*steps), {"dplogisticregression__C": [1.0, 10.0]}, epsilon=50.0
    )
    found = [
        clone(search).fit([*rows, [one, 2]], np.append(y, 0)).best_estimator_[0].columns_
        for one in (3, 3.5)
    ]
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="a list has no types of columns"):
        search.fit([*rows, ["x", 2]], np.append(y, 0))
    # nor how precise all of them are, in what scalers make of them
    short = [[np.float32(k / 7)] for k in range(9)]
    assert as_table(short).dtype == as_table([*short, [1.0]]).dtype == np.float64
