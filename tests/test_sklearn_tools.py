# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's tools of evaluation and search."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from skdp import (
    DPGridSearchCV,
    DPHeavyTailedMean,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPQuantile,
    DPSparseMeanEstimator,
    DPStandardScaler,
    LocalDPLinearRegression,
    LocalDPLogisticRegression,
    LocalDPMean,
    NormClipper,
    privacy_spent,
)
from skdp.exceptions import SeededNoiseWarning
from tests.privacy._spies import FOLDS, Spy, X, Y, branched, model

# scikit-learn's cross-validations, curves and ensembles over private estimators.


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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensembles_fit_many_and_what_they_keep_is_counted(name, spy):
    make, n_fits = ENSEMBLES[name]
    labels = np.arange(60) % 3 if name == "one-vs-rest" else Y
    ensemble = make(model(spy, classes=None))
    n_charges = charges_of(spy, lambda: ensemble.fit(X, labels))
    assert n_charges == n_fits + (name == "one-vs-rest")
    spent = privacy_spent(ensemble)
    assert bool(spent.uncovered) == (name in ("stacking", "calibrated"))
    assert spent.n_fits == (2 if name == "stacking" else n_charges)
    with pytest.raises(TypeError, match="no private step"):
        privacy_spent(GridSearchCV(ensemble, {}, cv=FOLDS).fit(X, labels))
    if name in ("one-vs-rest", "voting"):
        assert privacy_spent(*ensemble.estimators_).n_fits == n_charges


# scikit-learn's searches over private estimators: they run, and their fits are counted.


FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
FORMS = {
    "array": X,
    "frame": FRAME,
    "csr": sparse.csr_array(X),
    "csr matrix": sparse.csr_matrix(X),
    "float32": X.astype(np.float32),
}


NESTED = {"front__dp__epsilon": [0.25, 0.5], "model__C": [0.1, 1.0], "front__c": ["drop"]}
HALVING = {"cv": FOLDS, "min_resources": 15, "random_state": 0}
SEARCHES = {
    "grid": lambda e, grid, **o: GridSearchCV(e, grid, cv=FOLDS, **o),
    "random": lambda e, grid, **o: RandomizedSearchCV(e, grid, n_iter=3, cv=FOLDS, **o),
    "halving": lambda e, grid, **o: HalvingGridSearchCV(e, grid, **HALVING, **o),
    "random halving": lambda e, grid, **o: HalvingRandomSearchCV(e, grid, **HALVING, **o),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [None, 0], ids=["unseeded", "seeded"])
@pytest.mark.parametrize("form", FORMS)
def test_searches_take_any_rows(form, seed, spy):
    grid = {"C": [0.1, 1.0], "epsilon": [0.5, 1.0]}
    search = SEARCHES["grid"](model(spy, random_state=seed), grid)
    with pytest.warns(SeededNoiseWarning) if seed == 0 else contextlib.nullcontext():
        search.fit(FORMS[form], Y)
    assert search.predict(FORMS[form]).shape == Y.shape
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert privacy_spent(search).n_fits == len(spy.charges) == 13
    assert privacy_spent(search).ledger.seeded == (seed == 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", SEARCHES)
def test_searches_over_pipelines(kind, spy):
    search = SEARCHES[kind](branched(spy), NESTED).fit(FRAME, Y)
    assert list(search.feature_names_in_) == ["a", "b", "c"]
    assert 2 * privacy_spent(search).n_fits == len(spy.charges)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["grid", "halving"])
def test_searches_in_two_processes(kind, spy):
    search = SEARCHES[kind](branched(spy), NESTED, n_jobs=2).fit(X, Y)
    assert 2 * privacy_spent(search).n_fits == len(spy.charges)
    # noise is drawn in every process on its own
    scores = search.cv_results_
    assert np.isfinite(scores["mean_test_score"]).all()


@pytest.mark.full
def test_noise_of_two_processes_differs():
    kept = cross_validate(
        model(), X, Y, cv=[(np.arange(60), np.arange(60))] * 4, n_jobs=2, return_estimator=True
    )["estimator"]
    assert len({one.coef_.tobytes() for one in kept}) == 4


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "grid",
    [
        {"mechanism": ["auto", "gradient", "objective", "output"]},
        {"solver": ["auto", "gd", "sgd", "accelerated"]},
        {"data_norm": [0.5, 2.0], "C": [0.1, 10.0]},
        {"delta": [1e-6, 1e-3], "epsilon": [0.1, 10.0]},
        {"fit_intercept": [True, False], "smoothing": [None, 0.1]},
    ],
    ids=lambda grid: "-".join(grid),
)
def test_everything_can_be_searched(grid, spy):
    if "smoothing" in grid:
        estimator = DPHingeSVM(epsilon=2.0, classes=[0, 1], budget=spy, data_norm=1.0)
    else:
        estimator = model(spy, max_iter=None)
    search = GridSearchCV(estimator, grid, cv=FOLDS, error_score="raise").fit(X, Y)
    assert privacy_spent(search).n_fits == len(spy.charges)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "estimator",
    [
        DPMean(data_norm=1.0),
        DPMean(mechanism="laplace", data_norm=1.0),
        DPMedian(mechanism="gradient", data_norm=1.0),
        DPQuantile(bounds=(-1, 1)),
        DPSparseMeanEstimator(sparsity=2),
        DPHeavyTailedMean(moment_bound=1.0),
        DPLpRegressor(),
        LocalDPMean(),
        LocalDPLinearRegression(),
        LocalDPLogisticRegression(classes=[0, 1]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_estimator_with_a_score_can_be_searched(estimator, spy):
    estimator = clone(estimator).set_params(budget=spy)
    search = GridSearchCV(estimator, {"epsilon": [5.0, 10.0]}, cv=2, error_score="raise").fit(X, Y)
    spent = privacy_spent(search)
    assert spent.n_fits == len(spy.charges) == 5
    assert spent.epsilon >= 0.99 * sum(epsilon for epsilon, _ in spy.charges[:-1])
    assert all(
        any(charge[0] <= release.noise.epsilon for release in spent.ledger.releases)
        for charge in spy.charges[:-1]
    )


def test_what_a_cache_keeps_was_spent_once(spy, tmp_path):
    estimator = branched(spy, memory=str(tmp_path / "cache"))
    search = SEARCHES["grid"](estimator, {"model__C": [0.1, 1.0, 10.0]}).fit(X, Y)
    # the scaler of a fold is fitted once for all values of C; the total stays an upper bound
    assert len(spy.charges) == (3 * 3 + 1) + (3 + 1)
    spent = privacy_spent(search)
    assert spent.n_fits == 10
    assert spent.epsilon > 0.99 * sum(epsilon for epsilon, _ in spy.charges)


def test_frames_go_through_and_come_out(spy):
    front = DPStandardScaler(epsilon=0.25, bounds=(-1, 1), budget=spy).set_output(
        transform="pandas"
    )
    search = GridSearchCV(
        Pipeline([("scale", front), ("model", model(spy))]), {"scale__epsilon": [0.25]}, cv=FOLDS
    ).fit(FRAME, Y)
    assert list(search.best_estimator_[0].transform(FRAME).columns) == ["a", "b", "c"]
    with config_context(transform_output="pandas"):
        again = SEARCHES["grid"](branched(spy), NESTED).fit(FRAME, Y)
        assert "dp__a" in again.best_estimator_[0].transform(FRAME).columns
    assert 2 * (privacy_spent(search).n_fits + privacy_spent(again).n_fits) == len(spy.charges)


def test_fits_that_fail_after_the_charge_are_counted(spy):
    class Failing(DPLogisticRegression):
        def fit(self, X, y):
            super().fit(X, y)
            if self.C == 1.0:
                raise RuntimeError("no space left")
            return self

    estimator = Failing(0.5, max_iter=2, classes=[0, 1], budget=spy)
    search = GridSearchCV(estimator, {"C": [0.1, 1.0]}, cv=FOLDS, error_score=0.0)
    with pytest.warns(FitFailedWarning, match="3 fits failed"):
        search.fit(X, Y)
    assert privacy_spent(search).n_fits == len(spy.charges) == 7


def test_a_search_that_pays_is_one_fit(spy):
    search = DPGridSearchCV(branched(), {"model__C": [0.1, 1.0]}, epsilon=2.0, budget=spy)
    assert privacy_spent(search, cv=3).n_fits == 3
    search.fit(X, Y)
    for winner in (search, search.best_estimator_):
        spent = privacy_spent(winner)
        assert (tuple(spent), spent.n_fits) == (search.privacy_spent_, 1)
        assert spent.ledger == search.ledger_
    # its validation rows are split off without a look at labels, and its choice has a price
    assert spent.not_covered == ()
    assert len(spy.charges) == 1


def test_a_search_that_pays_inside_of_one_that_does_not(spy):
    inner = DPGridSearchCV(model(), {"C": [0.1, 1.0]}, budget=spy)
    search = GridSearchCV(inner, {"epsilon": [1.0, 2.0]}, cv=FOLDS).fit(X, Y)
    spent = privacy_spent(search)
    assert spent.n_fits == len(spy.charges) == 7
    assert spent.ledger.adjacency == "replace-one"
    assert spent.epsilon >= 0.99 * sum(epsilon for epsilon, _ in spy.charges)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "mean",
    [
        DPMean(data_norm=1.0),
        DPSparseMeanEstimator(),
        DPSparseMeanEstimator(mechanism="histogram", sparsity=3, sparse_output=True),
        DPHeavyTailedMean(),
        LocalDPMean(),
        DPMedian(data_norm=1.0),
        DPQuantile(bounds=(0.0, 1.0)),
    ],
    ids=lambda mean: type(mean).__name__,
)
def test_a_location_ends_pipelines_and_has_neither_predictions_nor_transforms(mean):
    rows = sparse.random_array((60, 5), density=0.3, format="csr", rng=0)
    if not mean.__sklearn_tags__().input_tags.sparse:
        rows = rows.toarray()
    pipe = Pipeline([("clip", NormClipper()), ("mean", mean)]).fit(rows)
    assert pipe[-1].location_.shape[-1] == 5
    assert -5 < pipe.score(rows) <= 0
    assert not hasattr(pipe, "predict")
    assert not hasattr(pipe, "transform")
    search = GridSearchCV(pipe, {"mean__epsilon": [1.0, 2.0]}, cv=2).fit(rows)
    assert search.score(rows) <= 0
