# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What searches and cross-validations have spent: counted against what was charged."""

import math
from functools import reduce
from operator import add

import pytest
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import DPGridSearchCV, DPHingeSVM, LocalDPMean, NormClipper, privacy_spent
from tests.privacy._spies import (
    FOLDS,
    Collector,
    Recorded,
    Spy,
    X,
    Y,
    agrees,
    model,
    pipeline,
    scaler,
)


@pytest.fixture
def spy(tmp_path):
    return Spy(tmp_path / "charges")


HALVING = {"cv": FOLDS, "min_resources": 15, "random_state": 0}
SEARCHES = {
    "grid": lambda e, grid: GridSearchCV(e, grid, cv=FOLDS),
    "no refit": lambda e, grid: GridSearchCV(e, grid, cv=FOLDS, refit=False),
    "random": lambda e, grid: RandomizedSearchCV(e, grid, n_iter=3, cv=FOLDS, random_state=0),
    "halving": lambda e, grid: HalvingGridSearchCV(e, grid, **HALVING),
    "random halving": lambda e, grid: HalvingRandomSearchCV(e, grid, n_candidates=4, **HALVING),
}
GRID = {"epsilon": [0.5, 1.0], "C": [0.1, 1.0, 10.0]}


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_has_spent_all_its_fits(kind, spy):
    search = SEARCHES[kind](model(spy), GRID).fit(X, Y)
    agrees(privacy_spent(search), spy.charges)


def test_rounds_of_a_halving_search_all_count(spy):
    search = SEARCHES["halving"](model(spy), GRID).fit(X, Y)
    assert search.n_iterations_ == 2
    assert privacy_spent(search).n_fits == (6 + 2) * 3 + 1 == len(spy.charges)


def test_a_resource_may_be_a_parameter(spy):
    search = HalvingGridSearchCV(
        model(spy), {"C": [0.1, 1.0, 10.0]}, resource="epsilon", max_resources=3,
        min_resources=1, cv=FOLDS, random_state=0,
    ).fit(X, Y)  # fmt: skip
    agrees(privacy_spent(search), spy.charges)
    assert {epsilon for epsilon, _ in spy.charges} == {1.0, 3.0}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("fixed", "grid"),
    [
        ({"random_state": 0}, {"epsilon": [0.1, 2.0]}),
        ({"epsilon": 5.0, "coef_bound": 5.0}, [{"max_iter": [2]}, {"max_iter": [None]}]),
        ({"max_iter": None}, {"mechanism": ["gradient", "objective", "output"]}),
        ({"max_iter": None}, {"solver": ["gd", "sgd"], "delta": [1e-6, 1e-5]}),
        ({}, {"data_norm": [0.5, 1.0], "fit_intercept": [True, False]}),
        ({"max_iter": None, "mechanism": "objective"}, {"delta": [0.0, 1e-6]}),
    ],
    ids=str,
)
def test_no_total_is_below_what_the_true_ledgers_compose_to(fixed, grid, tmp_path):
    budget = Collector(tmp_path / "charges")
    parameters = {"epsilon": 0.5, "max_iter": 2, "classes": [0, 1], **fixed}
    search = GridSearchCV(Recorded(budget=budget, **parameters), grid, cv=FOLDS).fit(X, Y)
    spent, truth = privacy_spent(search), reduce(add, budget.ledgers)
    assert spent.n_fits == len(budget.ledgers) == len(budget.charges)
    assert spent.epsilon >= truth.epsilon(spent.delta)
    for delta in (spent.delta / 0.9, 1e-3):
        assert privacy_spent(search, delta=delta).epsilon >= truth.epsilon(delta)


def test_nested_names_and_replaced_steps(spy):
    estimator = pipeline(spy, ("scale", scaler(spy)))
    grid = [
        {"scale__epsilon": [0.25, 0.75], "model__epsilon": [0.5, 2.0]},
        {"scale": [scaler(spy, delta=1e-7)], "scale__epsilon": [0.125]},
        {"model": [DPHingeSVM(epsilon=3.0, max_iter=2, classes=[0, 1], budget=spy)]},
    ]
    spent = privacy_spent(GridSearchCV(estimator, grid, cv=FOLDS).fit(X, Y))
    agrees(spent, spy.charges, steps=2)
    assert spent.n_fits == 6 * 3 + 1


def test_passthrough_costs_nothing(spy):
    estimator = pipeline(spy, ("scale", "passthrough"))
    grid = {"scale": ["passthrough", None, NormClipper(), scaler(spy)]}
    spent = privacy_spent(GridSearchCV(estimator, grid, cv=FOLDS, refit=False).fit(X, Y))
    assert len(spy.charges) == 4 * 3 + 3
    assert spent.n_fits == 4 * 3
    assert sum(r.count for r in spent.ledger.releases) == 15
    assert "step" not in {item.kind for item in spent.not_covered}


def test_unions_and_column_transformers_are_looked_into(spy):
    union = FeatureUnion([("a", scaler(spy)), ("off", "drop"), ("b", NormClipper())])
    front = ColumnTransformer(
        [("union", union, [0, 1]), ("none", scaler(spy), [])], remainder=scaler(spy)
    )
    estimator = pipeline(spy, ("front", front))
    grid = {"front__union__a__epsilon": [0.125, 0.25], "front__remainder__delta": [1e-7]}
    spent = privacy_spent(GridSearchCV(estimator, grid, cv=FOLDS).fit(X, Y))
    agrees(spent, spy.charges, steps=3)


def test_whole_lists_of_steps_may_be_replaced(spy):
    estimator = pipeline(spy)
    grid = {"steps": [[("scale", scaler(spy)), ("model", model(spy, epsilon=2.0))]]}
    spent = privacy_spent(GridSearchCV(estimator, grid, cv=FOLDS).fit(X, Y))
    agrees(spent, spy.charges, steps=2)


def test_reading_the_candidates_changes_nothing(spy):
    search = GridSearchCV(pipeline(spy), {"model__epsilon": [0.5, 1.0]}, cv=FOLDS).fit(X, Y)
    before = repr(search), search.estimator.get_params()
    privacy_spent(search)
    assert (repr(search), search.estimator.get_params()) == before


def test_a_search_inside_of_a_pipeline_counts(spy):
    search = GridSearchCV(model(spy), {"C": [0.1, 1.0]}, cv=3)
    estimator = Pipeline([("scale", scaler(spy)), ("search", search)]).fit(X, Y)
    spent = privacy_spent(estimator)
    assert spent.n_fits == 2 * 3 + 1 + 1 == len(spy.charges)
    found = {item.kind: item for item in spent.not_covered}
    assert {kind: item.step for kind, item in found.items()} == {
        "choice": "search",
        "splits": "search",
    }
    assert all("step 'search'" in item.text for item in found.values())


def test_what_learns_without_a_ledger_is_named_whoever_wins(spy):
    estimator = pipeline(spy, ("encode", "passthrough"))
    encoder = OneHotEncoder(categories=[[0, 1]] * 3, handle_unknown="ignore")
    grid = [
        {"encode": [encoder], "encode__categories": ["auto", [[0, 1]] * 3]},
        {"model": [LogisticRegression(), OneVsRestClassifier(model(spy))]},
        {},
    ]
    spent = privacy_spent(GridSearchCV(estimator, grid, cv=FOLDS).fit(X.round(), Y))
    assert {item.step for item in spent.not_covered if item.kind == "step"} == {"encode", "model"}
    grid = {"encode": [encoder], "encode__categories": [[[0, 1]] * 3]}
    spent = privacy_spent(GridSearchCV(estimator, grid, cv=FOLDS).fit(X.round(), Y))
    assert "step" not in {item.kind for item in spent.not_covered}


def test_a_delta_of_ones_own():
    search = GridSearchCV(model(), {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, Y)
    assert privacy_spent(search, delta=1e-3).epsilon < privacy_spent(search).epsilon
    assert privacy_spent(search, delta=1e-9).epsilon == math.inf
    for bad in (-1e-9, 1.0, math.nan, "0"):
        with pytest.raises(ValueError, match="delta must be a number"):
            privacy_spent(search, delta=bad)


def test_local_fits_stay_local(spy):
    search = GridSearchCV(LocalDPMean(budget=spy), {"epsilon": [0.5, 1.0]}, cv=FOLDS).fit(X)
    spent = privacy_spent(search)
    assert spent.ledger.adjacency == "local"
    # the winner is counted with its own ledger, a hair below what it was granted
    assert spent.epsilon >= 0.5 * 3 + 1.0 * 3 + min(epsilon for epsilon, _ in spy.charges) - 1e-9
    agrees(spent, spy.charges)


def test_adjacencies_of_candidates_do_not_mix():
    grid = {"adjacency": ["replace-one", "zero-out"]}
    with pytest.raises(ValueError, match="same adjacency"):
        privacy_spent(GridSearchCV(model(), grid, cv=FOLDS).fit(X, Y))


class SearchWithALedger(GridSearchCV):
    """Stands for a search that pays for itself, with a budget and a ledger of its own."""

    def __init__(self, estimator, param_grid, *, epsilon=1.0, delta=1e-6, budget=None):
        super().__init__(estimator, param_grid, cv=2)
        self.epsilon, self.delta, self.budget = epsilon, delta, budget

    def fit(self, X, y):
        super().fit(X, y)
        self.ledger_ = model(epsilon=1.0).fit(X, y).ledger_
        self.privacy_spent_ = (1.0, 1e-6)
        return self


def test_a_search_with_a_ledger_is_not_taken_apart():
    search = SearchWithALedger(scaler_and_model := pipeline(None), {}).fit(X, Y)
    spent = privacy_spent(search)
    assert spent.ledger == search.ledger_
    assert (spent.n_fits, spent.delta, spent.not_covered) == (1, 1e-6, ())
    fits = privacy_spent(SearchWithALedger(scaler_and_model, {}, epsilon=2.0), cv=5)
    assert fits.n_fits == 5
    assert fits.ledger.adjacency == "replace-one"
    assert fits.epsilon == pytest.approx(10.0)


@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=FOLDS),
        GridSearchCV(StandardScaler(), {"with_mean": [True]}, scoring=lambda *a: 0.0, cv=FOLDS),
        GridSearchCV(OneVsRestClassifier(model()), {"estimator__C": [0.1]}, cv=FOLDS),
    ],
    ids=["public", "transformer", "one-vs-rest"],
)
def test_a_search_without_private_steps_is_refused(search):
    with pytest.raises(TypeError, match="have no private step"):
        privacy_spent(search.fit(X, Y))


def test_what_was_not_fitted_is_refused():
    search = GridSearchCV(model(), {"C": [0.1]})
    with pytest.raises(TypeError, match="GridSearchCV has no ledger_: it is not fitted"):
        privacy_spent(search)
    with pytest.raises(TypeError, match="no private step"):
        privacy_spent(LogisticRegression(), cv=3)
    with pytest.raises(TypeError, match="no private step"):
        privacy_spent(object(), cv=3)


def test_parameters_below_a_step_count_too():
    # the adjacency of the model inside was once that of the model before it was tuned
    options = {"cv": 2, "refit": False, "scoring": lambda *anything: 0.0}
    for inside, name in ((model(), ""), (Pipeline([("last", model())]), "last__")):
        inner = DPGridSearchCV(inside, {f"{name}C": [1.0, 10.0]}, epsilon=50.0)
        grid = {f"estimator__{name}adjacency": ["zero-out"]}
        spent = privacy_spent(GridSearchCV(inner, grid, **options).fit(X, Y))
        assert (spent.n_fits, spent.ledger.adjacency) == (2, "zero-out")
        assert inner.get_params()[f"estimator__{name}adjacency"] == "replace-one"
