# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The privacy loss of finished work: steps, folds, searches."""

import copy
import math
import pickle
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import (
    BoundedScaler,
    DPGridSearchCV,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPSparseMeanEstimator,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    Ledger,
    LocalDPMean,
    NormClipper,
    PrivacyBudget,
    PrivUnitPrivatizer,
    RandomFourierFeatures,
    privacy_card,
    privacy_spent,
)
from skdp.federated import Population
from skdp.privacy import NotCovered, gdp_epsilon, gdp_mu
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

# What fitted estimators and pipelines have spent together.


RNG = np.random.default_rng(0)
SPENT_X = RNG.uniform(-0.5, 0.5, size=(40, 3))
SPENT_Y = (SPENT_X[:, 0] > 0).astype(int)


def mean_of(epsilon=0.5, **parameters):
    given = {"mechanism": "gaussian", **parameters}
    return DPMean(epsilon=epsilon, data_norm=1.0, **given).fit(SPENT_X)


def classifier(epsilon=0.5):
    return DPLogisticRegression(epsilon=epsilon, max_iter=3, data_norm=1.0)


def test_one_estimator_has_spent_what_it_reports():
    mean = mean_of()
    spent = privacy_spent(mean)
    assert (spent.epsilon, spent.delta) == mean.privacy_spent_
    assert spent.ledger == mean.ledger_
    assert spent.not_covered == ()
    assert 0.5 * (1 - 1e-6) < spent.epsilon <= 0.5


def test_several_estimators_compose_tightly():
    epsilon, delta = privacy_spent(mean_of(0.3), mean_of(0.4))
    assert delta == 2e-6
    assert 0.4 < epsilon < 0.7
    mu = math.hypot(gdp_mu(0.3, 1e-6), gdp_mu(0.4, 1e-6))
    assert epsilon == pytest.approx(gdp_epsilon(mu, 2e-6), rel=1e-6)


def test_the_same_estimator_twice_counts_twice():
    mean = mean_of()
    assert privacy_spent(mean, mean).epsilon > mean.privacy_spent_[0]
    assert privacy_spent(mean, mean).ledger == mean.ledger_ + mean.ledger_


def test_pure_estimators_add_up_without_delta():
    spent = privacy_spent(mean_of(0.25, mechanism="laplace"), mean_of(0.5, mechanism="laplace"))
    assert tuple(spent) == (pytest.approx(0.75, rel=1e-12), 0.0)
    assert spent.epsilon >= 0.75


@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_the_total_is_read_at_the_delta_that_is_asked_for(delta):
    spent = privacy_spent(mean_of(), mean_of(), delta=delta)
    assert spent.delta == delta
    assert spent.epsilon == spent.ledger.epsilon(delta)


def test_gaussian_noise_at_delta_zero_is_infinite():
    assert privacy_spent(mean_of(), delta=0).epsilon == math.inf


@pytest.mark.parametrize("bad", [1, -1e-9, math.nan, "0", True])
def test_a_bad_delta_is_refused(bad):
    with pytest.raises(ValueError, match="delta must be a number"):
        privacy_spent(mean_of(), delta=bad)


@pytest.mark.parametrize("scaler", [NormClipper(), BoundedScaler(bounds=(-1, 1)), "passthrough"])
def test_steps_that_learn_nothing_are_free_and_not_listed(scaler):
    model = Pipeline([("scale", scaler), ("model", classifier())]).fit(SPENT_X, SPENT_Y)
    spent = privacy_spent(model)
    assert spent.not_covered == ()
    assert spent.ledger == model[-1].ledger_
    assert tuple(spent) == model[-1].privacy_spent_


def test_a_step_that_learned_without_a_ledger_is_named():
    model = Pipeline([("scale", StandardScaler()), ("model", classifier())]).fit(SPENT_X, SPENT_Y)
    spent = privacy_spent(model)
    text = "step 'scale', which was fitted on the data"
    assert spent.not_covered == (NotCovered("step", "scale", text),)
    assert str(spent).splitlines()[1] == f"not covered: {text}"
    assert str(spent).splitlines()[2].startswith("use public constants")


def test_nested_pipelines_are_counted_to_the_last_step():
    inner = make_pipeline(NormClipper(), StandardScaler(), "passthrough", None)
    model = make_pipeline(inner, make_pipeline(NormClipper(), classifier())).fit(SPENT_X, SPENT_Y)
    spent = privacy_spent(model, mean_of())
    assert [(item.kind, item.step) for item in spent.not_covered] == [("step", "standardscaler")]
    assert spent.ledger == model[-1][-1].ledger_ + mean_of().ledger_
    assert spent.delta == 2e-6


@pytest.mark.parametrize(
    "estimator",
    [
        DPMean(data_norm=1.0, mechanism="gaussian"),
        classifier(),
        LogisticRegression().fit(SPENT_X, SPENT_Y),
        StandardScaler().fit(SPENT_X),
        GridSearchCV(
            DPMean(random_state=0, data_norm=1.0, mechanism="gaussian"), {"epsilon": [0.5, 1.0]}
        ),
        object(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_an_estimator_without_a_ledger_is_refused(estimator):
    with pytest.raises(TypeError, match="has no ledger_: it is not fitted, or keeps none"):
        privacy_spent(mean_of(), estimator)


def test_an_unfitted_pipeline_is_refused():
    with pytest.raises(TypeError, match="not fitted"):
        privacy_spent(make_pipeline(NormClipper(), classifier()))


@pytest.mark.parametrize("shared", [True, False])
def test_a_second_fit_that_fails_midway_is_named(shared):
    budget = PrivacyBudget(epsilon=5.0, delta=1e-4) if shared else None
    scaler, last = DPStandardScaler(epsilon=0.2), classifier()
    inner = make_pipeline(NormClipper(), scaler.set_params(budget=budget))
    model = Pipeline([("rows", inner), ("model", last.set_params(budget=budget))])
    model.fit(SPENT_X, SPENT_Y)
    # a whole second fit replaces all that the first one left
    before, whole = scaler.ledger_, privacy_spent(model.fit(SPENT_X, SPENT_Y))
    assert whole.uncovered == ()
    with pytest.raises(ValueError, match="max_iter"):
        model.set_params(model__max_iter=-1).fit(SPENT_X, SPENT_Y)
    assert scaler.ledger_ is not before
    spent = privacy_spent(model)
    assert spent.covered == pytest.approx(whole.covered)
    assert [(item.kind, item.step) for item in spent.uncovered] == [("fits", "dpstandardscaler")]
    assert "step 'dpstandardscaler' that went before the one of step 'model'" in str(spent)
    model.set_params(model__max_iter=2).fit(SPENT_X, SPENT_Y)
    assert privacy_spent(model).uncovered == ()


def centered(rows):
    return rows - rows.mean(axis=0)


LEARNERS = [
    StandardScaler(), SimpleImputer(), SelectFromModel(DPLogisticRegression(classes=[0, 1])),
    DPStandardScaler(epsilon=0.2), make_pipeline(NormClipper(), DPStandardScaler(epsilon=0.2)),
    FeatureUnion([("one", DPStandardScaler(epsilon=0.2)), ("two", NormClipper())], n_jobs=2),
    FrozenEstimator(DPStandardScaler(epsilon=0.2).fit(SPENT_X)),
    FunctionTransformer(centered),
]  # fmt: skip


@pytest.mark.parametrize("step", LEARNERS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("last", [classifier(), OneVsRestClassifier(classifier())])
def test_what_was_fitted_behind_a_step_does_not_forget_it(step, last):
    model = Pipeline([("first", clone(step)), ("clip", NormClipper()), ("model", last)])
    model.fit(SPENT_X, SPENT_Y)
    whole = privacy_spent(model)
    for kept in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert privacy_spent(kept).uncovered == whole.uncovered
        # the parts together are the whole
        parts = privacy_spent(kept[:1], kept[1:])
        assert parts.covered == pytest.approx(whole.covered)
        assert {item.kind for item in parts.uncovered} == {item.kind for item in whole.uncovered}
        for part in (kept[1:], kept[2:], kept[-1], pickle.loads(pickle.dumps(kept[1:]))):
            (item,) = privacy_spent(part).uncovered
            assert item in whole.uncovered or "that went before the one of" in item.text
            assert privacy_card(part).to_dict()["claim"]["epsilon"] is None
    again = DPStandardScaler(epsilon=0.2).fit(SPENT_X)
    for other in ("passthrough", NormClipper().fit(SPENT_X), again):
        changed = copy.deepcopy(model).set_params(first=other)
        assert privacy_spent(changed).uncovered


def test_parameters_that_are_changed_after_a_fit_do_not_make_a_step_free():
    changes = [
        (SimpleImputer(keep_empty_features=True), {"strategy": "constant"}),
        (OrdinalEncoder(), {"categories": [[0, 1]] * 2}),
        (FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), {"func": None}),
    ]
    for step, change in changes:
        model = Pipeline([("step", step), ("model", classifier())]).fit(BITS, SPENT_Y)
        whole = privacy_spent(model)
        model.named_steps["step"].set_params(**change)
        assert len(whole.uncovered) == 1
        assert privacy_spent(model).uncovered == whole.uncovered


def halved(rows):
    """Divide all entries by two."""
    return rows / 2


def test_what_is_assumed_of_a_step_is_assumed_without_it():
    model = make_pipeline(FunctionTransformer(halved), DPStandardScaler(), classifier())
    whole = privacy_spent(model.fit(SPENT_X, SPENT_Y)).ledger.assumptions
    assert len(whole) == 2
    for part in (model[2:], model[-1], copy.deepcopy(model).set_params(functiontransformer=None)):
        assert set(privacy_spent(part).ledger.assumptions) == set(whole)


class CenteringPipeline(Pipeline):
    """A pipeline that centers rows by their mean."""

    def fit(self, X, y=None, **params):
        return super().fit(X - X.mean(axis=0), y, **params)


class NamedPipeline(Pipeline):
    """A pipeline with a name."""

    name = "mine"


class CenteringUnion(FeatureUnion):
    """A union that centers rows by their mean."""

    def fit_transform(self, X, y=None, **params):
        return super().fit_transform(X - X.mean(axis=0), y, **params)


class OtherSteps(BaseEstimator):
    """A pipeline of another library."""

    def __init__(self, steps):
        self.steps = steps

    def fit(self, X, y=None):
        self.steps[-1][1].fit(X - X.mean(axis=0), y)
        return self


def test_pipelines_of_other_classes_may_do_more_than_to_fit_their_steps():
    steps = [("clip", NormClipper()), ("model", classifier())]
    union = CenteringUnion([("clip", NormClipper())])
    assert privacy_spent(NamedPipeline(steps).fit(SPENT_X, SPENT_Y)).uncovered == ()
    for own in (
        CenteringPipeline(steps), OtherSteps(steps[1:]), make_pipeline(union, classifier()),
        VotingClassifier([("one", CenteringPipeline(steps))]),
        GridSearchCV(CenteringPipeline(steps), {"model__C": [1.0]}, cv=KFold(2)),
    ):  # fmt: skip
        spent = privacy_spent(own.fit(SPENT_X, SPENT_Y))
        assert any("its class has a fit of its own" in item.text for item in spent.uncovered)
    # and its steps were fitted within it
    part = CenteringPipeline(steps).fit(SPENT_X, SPENT_Y)[-1]
    assert "its class has a fit of its own" in str(privacy_spent(part))
    assert privacy_card(part).to_dict()["claim"]["epsilon"] is None


def test_a_fit_alone_is_not_behind_the_steps_of_an_earlier_one():
    model = make_pipeline(StandardScaler(), classifier()).fit(SPENT_X, SPENT_Y)
    last = model[-1]
    assert privacy_spent(last).uncovered
    assert privacy_spent(last.fit(SPENT_X, SPENT_Y)).uncovered == ()
    # a pipeline that fits another one is among the callers of its steps
    inner = make_pipeline(NormClipper(), classifier())
    outer = make_pipeline(StandardScaler(), inner).fit(SPENT_X, SPENT_Y)
    assert privacy_spent(inner).uncovered == privacy_spent(outer).uncovered


DECIDING = [
    (GridSearchCV(classifier(), {"C": [1.0, 2.0]}, cv=KFold(2)), "best_estimator_"),
    (HalvingGridSearchCV(classifier(), {"C": [1.0, 2.0]}, cv=KFold(2)), "best_estimator_"),
    (RFE(DPLogisticRegression(classes=[0, 1]), n_features_to_select=1), "estimator_"),
    (BaggingClassifier(classifier(), 2), "estimators_"),
    (StackingClassifier([("one", classifier())], classifier(), cv=2), "final_estimator_"),
    (ClassifierChain(classifier(), cv=2), "estimators_"),
    (TransformedTargetRegressor(DPLpRegressor(max_iter=2), transformer=StandardScaler()),
     "regressor_"),
]  # fmt: skip


@pytest.mark.parametrize(("holder", "name"), DECIDING, ids=lambda each: type(each).__name__)
def test_a_fit_alone_does_not_forget_what_decided_about_it(holder, name):
    kind = type(holder).__name__
    y = np.column_stack([SPENT_Y, SPENT_Y]) if kind == "ClassifierChain" else SPENT_Y
    holder = clone(holder).fit(SPENT_X, y)
    kept = getattr(holder, name)
    kept = kept[-1] if isinstance(kept, list) else kept
    told = f"fitted inside of {kind}, which fitted or chose more. Pass the {kind} itself"
    for part in (kept, pickle.loads(pickle.dumps(kept)), make_pipeline(NormClipper(), kept)):
        assert told in str(privacy_spent(part))
    assert privacy_card(kept).to_dict()["claim"]["epsilon"] is None
    # the whole knows
    for whole in (holder, make_pipeline(DPStandardScaler(), clone(holder)).fit(SPENT_X, y)):
        assert told not in str(privacy_spent(whole))
    assert privacy_spent(clone(kept).fit(SPENT_X, SPENT_Y)).uncovered == ()


def test_fits_of_meta_estimators_that_decide_nothing_stand_alone():
    several = np.column_stack([SPENT_Y, SPENT_Y])
    for holder, y in (
        (VotingClassifier([("one", classifier())]), SPENT_Y),
        (OneVsRestClassifier(classifier()), SPENT_Y),
        (MultiOutputClassifier(classifier()), several),
        (ClassifierChain(classifier()), several),
    ):
        assert privacy_spent(holder.fit(SPENT_X, y).estimators_[0]).uncovered == ()


def test_a_private_search_has_the_price_of_all_its_steps():
    model = make_pipeline(DPStandardScaler(), classifier())
    search = DPGridSearchCV(model, {"dplogisticregression__C": [1.0, 2.0]}, epsilon=2.0)
    best = search.fit(SPENT_X, SPENT_Y).best_estimator_
    assert privacy_spent(search).uncovered == privacy_spent(best).uncovered == ()
    assert tuple(privacy_spent(best[1:])) == tuple(privacy_spent(search))
    behind = make_pipeline(StandardScaler(), search).fit(SPENT_X, SPENT_Y)
    for part in (behind, behind[1:], behind[-1].best_estimator_, behind[-1].best_estimator_[1:]):
        assert [item.step for item in privacy_spent(part).uncovered] == ["standardscaler"]


class FitOfItsOwn(DPLogisticRegression):
    """A classifier that centers its rows."""

    def __init__(self, epsilon=0.2, classes=(0, 1), budget=None):
        super().__init__(epsilon=epsilon, classes=classes, budget=budget)

    def fit(self, X, y, *, groups=None):
        return super().fit(X - X.mean(axis=0), y, groups=groups)


class MixedRows(DPStandardScaler):
    """A scaler that centers rows by their mean."""

    def transform(self, X):
        return X - X.mean(axis=0)


class OtherDefaults(DPLogisticRegression):
    """A classifier with other defaults."""

    def __init__(self, epsilon=0.2, classes=(0, 1)):
        super().__init__(epsilon=epsilon, classes=classes)

    def predict(self, X):
        return super().predict(X)


def test_a_derived_class_with_a_fit_of_its_own_is_named():
    assert privacy_spent(OtherDefaults().fit(SPENT_X, SPENT_Y)).uncovered == ()
    for given in (
        FitOfItsOwn(), make_pipeline(MixedRows(), classifier()),
        VotingClassifier([("one", FitOfItsOwn())]), FrozenEstimator(FitOfItsOwn()),
    ):  # fmt: skip
        getattr(given, "estimator", given).fit(SPENT_X, SPENT_Y)
        (item,) = privacy_spent(given).uncovered
        assert "a fit or transform of its own" in item.text
        assert privacy_card(given).to_dict()["claim"]["epsilon"] is None
    assert "a fit or transform of its own" in str(privacy_spent(FitOfItsOwn(), cv=KFold(2)))
    search = GridSearchCV(FitOfItsOwn(), {"epsilon": [0.1, 0.2]}, cv=KFold(2))
    texts = str(privacy_spent(search.fit(SPENT_X, SPENT_Y)))
    assert "a fit or transform of its own" in texts
    search = DPGridSearchCV(FitOfItsOwn(), {"classes": [[0, 1], [1, 0]]}, epsilon=2.0)
    (item,) = privacy_spent(search.fit(SPENT_X, SPENT_Y)).uncovered
    assert "a fit or transform of its own" in item.text


def test_nothing_to_add_up_is_refused():
    with pytest.raises(ValueError, match="at least one fitted estimator"):
        privacy_spent()


def test_adjacencies_do_not_mix():
    with pytest.raises(ValueError, match="same adjacency"):
        privacy_spent(mean_of(), mean_of(adjacency="zero-out"))


def test_a_total_unpacks_as_epsilon_and_delta():
    epsilon, delta = spent = privacy_spent(mean_of())
    assert (epsilon, delta) == (spent.epsilon, spent.delta)
    assert isinstance(spent.ledger, Ledger)


def test_text_names_the_budget_the_adjacency_and_the_unit():
    for adjacency in ("replace-one", "zero-out"):
        spent = privacy_spent(mean_of(0.5, adjacency=adjacency))
        assert str(spent) == repr(spent)
        assert str(spent) == f"(epsilon=0.5, delta=1e-06), {adjacency} adjacency, per row"


def test_parts_that_learn_nothing_spend_nothing():
    spent = privacy_spent(NormClipper().fit(SPENT_X))
    assert tuple(spent) == (0.0, 0.0)
    assert str(spent) == "(epsilon=0, delta=0)"


@pytest.mark.sample(1)
@pytest.mark.parametrize("deltas", [(1e-6, 3e-7, 7e-9), (1e-7, 3.3e-6, 1.7e-8), (0.1, 0.2, 0.3)])
def test_unequal_deltas_add_up_to_a_finite_epsilon(deltas):
    # a sum of deltas that is rounded down would not cover what was spent
    fits = [
        DPSparseMeanEstimator(0.5, d, mechanism="histogram", sparsity=2).fit(SPENT_X)
        for d in deltas
    ]
    epsilon, delta = privacy_spent(*fits)
    assert sum(deltas) <= delta <= sum(deltas) * (1 + 1e-12)
    assert 0.5 < epsilon <= 1.5


# Which steps of a pipeline are counted, which are named, and which are free.


FREE = [
    FunctionTransformer(np.tanh),
    Normalizer(),
    PolynomialFeatures(),
    GaussianRandomProjection(2, random_state=0),
    SparseRandomProjection(2, random_state=0),
    PolynomialCountSketch(random_state=0),
    SkewedChi2Sampler(random_state=0),
    AdditiveChi2Sampler(),
    RBFSampler(gamma=0.5, random_state=0),
    OneHotEncoder(categories=[[0, 1]] * 3),
    OrdinalEncoder(categories=[np.array([0, 1])] * 3),
    SimpleImputer(strategy="constant", keep_empty_features=True),
    SplineTransformer(knots=np.array([[0.0] * 3, [0.5] * 3, [1.0] * 3]), degree=1),
    RandomFourierFeatures([0.1, 1.0], n_components=4),
    TfidfTransformer(use_idf=False),
]
LEARNING = [
    StandardScaler(),
    MinMaxScaler(),
    PCA(1),
    SelectKBest(k=1),
    KBinsDiscretizer(2, strategy="uniform"),
    QuantileTransformer(n_quantiles=5),
    KNNImputer(),
    SimpleImputer(),
    SimpleImputer(strategy="constant"),
    SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
    RBFSampler(gamma="scale", random_state=0),
    Nystroem(n_components=5, random_state=0),
    OneHotEncoder(),
    OneHotEncoder(categories=[[0, 1]] * 3, max_categories=1),
    OneHotEncoder(categories=[[0, 1]] * 3, min_frequency=5),
    OrdinalEncoder(),
    SplineTransformer(knots="quantile"),
    SplineTransformer(),
]
BITS = (SPENT_X > 0).astype(float)


class Unknown(TransformerMixin, BaseEstimator):
    """A transformer of which nothing is known."""

    def fit(self, X, y=None):
        self.seen_ = True
        return self

    def transform(self, X):
        return X


class PolynomialFeaturesOfAnotherLibrary(Unknown):
    """Has a name on the list, but stands elsewhere."""


PolynomialFeaturesOfAnotherLibrary.__name__ = "PolynomialFeatures"


def name_of(estimator):
    return str(estimator).replace("\n", "")


@pytest.mark.sample(6, 10)
@pytest.mark.parametrize("step", FREE, ids=name_of)
def test_a_step_that_looks_at_shapes_only_is_free(step):
    model = Pipeline([("step", step), ("model", classifier())]).fit(BITS, SPENT_Y)
    assert privacy_spent(model).not_covered == ()
    assert tuple(privacy_spent(model)) == model[-1].privacy_spent_


@pytest.mark.parametrize("kind", [GaussianRandomProjection, SparseRandomProjection])
def test_a_width_that_follows_from_the_number_of_rows_is_learned(kind):
    # one more row, or as many as a group has, and there may be one more column
    loose = kind(eps=0.5, random_state=0)
    widths = [loose.fit(np.zeros((n, 2000))).n_components_ for n in (400, 450)]
    assert widths[0] < widths[1]
    for step, kinds in ((kind(), ["step", "scores", "splits"]), (kind(2), ["scores", "splits"])):
        spent = privacy_spent(Pipeline([("step", step), ("model", classifier())]), cv=3)
        assert [item.kind for item in spent.not_covered] == kinds


@pytest.mark.sample(6, 10)
@pytest.mark.parametrize("step", [*LEARNING, Unknown(), PolynomialFeaturesOfAnotherLibrary()])
def test_a_step_that_learns_is_named(step):
    rows = BITS if hasattr(step, "categories") else SPENT_X
    model = Pipeline([("step", step), ("model", classifier())]).fit(rows, SPENT_Y)
    spent = privacy_spent(model)
    assert [(item.kind, item.step) for item in spent.not_covered] == [("step", "step")]
    assert "not covered: step 'step', which was fitted on the data" in str(spent)


@pytest.mark.parametrize(
    ("step", "free"),
    [
        (HashingVectorizer(n_features=4), True),
        (FeatureHasher(4, input_type="string"), True),
        (CountVectorizer(vocabulary=["yes", "no"]), True),
        (CountVectorizer(), False),
        (TfidfVectorizer(vocabulary=["yes", "no"]), False),
    ],
    ids=name_of,
)
def test_a_step_that_was_told_its_words_is_free(step, free):
    rows = [f"{'yes' if x[0] > 0 else 'no'} and no" for x in SPENT_X]
    if isinstance(step, FeatureHasher):
        rows = [row.split() for row in rows]
    model = Pipeline([("step", step), ("model", classifier())]).fit(rows, SPENT_Y)
    assert [item.step for item in privacy_spent(model).not_covered] == ["step"] * (not free)


def columns(*parts, **options):
    return ColumnTransformer([(name, step, [0, 1]) for name, step in parts], **options)


def test_steps_are_found_inside_of_column_transformers_and_unions():
    inner = make_pipeline(NormClipper(), PCA(1))
    union = FeatureUnion([("minmax", MinMaxScaler()), ("clip", NormClipper()), ("off", "drop")])
    front = columns(
        ("inner", inner), ("union", union), ("as is", "passthrough"), remainder=SimpleImputer()
    )
    model = make_pipeline(FeatureUnion([("front", front)]), classifier()).fit(SPENT_X, SPENT_Y)
    spent = privacy_spent(model)
    assert [item.kind for item in spent.not_covered] == ["step"] * 3
    assert [item.step for item in spent.not_covered] == ["pca", "minmax", "remainder"]
    assert spent.ledger == model[-1].ledger_


@pytest.mark.full
def test_a_column_transformer_that_counts_entries_is_named():
    def front(threshold, sparse_output):
        encoder = OneHotEncoder(
            categories=[[0, 1]], handle_unknown="ignore", sparse_output=sparse_output
        )
        return ColumnTransformer(
            [("code", encoder, [0]), ("scale", DPStandardScaler(), [1, 2])],
            sparse_threshold=threshold,
        )

    known, unknown = np.c_[np.ones(30), X[:30, :2]], np.c_[np.full(30, 7), X[:30, :2]]
    # one bit of the rows: 3 or 2 of 4 entries a row are stored
    assert not front(0.6, True).fit(known).sparse_output_
    assert front(0.6, True).fit(unknown).sparse_output_
    for rows in (known, unknown):
        for threshold, sparse_output, count in ((0.6, True, 1), (0, True, 0), (0.6, False, 0)):
            found = privacy_spent(make_pipeline(front(threshold, sparse_output)).fit(rows))
            assert len(found.uncovered) == count
            assert all("sparse or dense by how many entries" in str(i) for i in found.uncovered)
    # rows that were sparse before
    clip = ColumnTransformer([("clip", NormClipper(), [0, 1, 2])], sparse_threshold=1.0)
    (item,) = privacy_spent(make_pipeline(clip, model()).fit(csr_array(X * (X > 0)), Y)).uncovered
    assert item.step == "columntransformer"
    search = DPGridSearchCV(
        make_pipeline(front(0.3, True), model()), {"dplogisticregression__C": [1]}
    )
    with pytest.raises(ValueError, match="not covered: the form of what step 'columntransformer'"):
        search.fit(X, Y)


def test_columns_that_rows_choose_are_named():
    chosen = ColumnTransformer([("scale", DPStandardScaler(), lambda X: [X.var(axis=0).argmax()])])
    search = DPGridSearchCV(make_pipeline(chosen, model()), {"dplogisticregression__C": [1]})
    with pytest.raises(ValueError, match="chosen by a function that is handed the rows"):
        search.fit(X, Y)


def test_parts_without_columns_and_dropped_ones_are_nothing():
    front = ColumnTransformer(
        [
            ("none", StandardScaler(), []),
            ("mask", StandardScaler(), [False] * 3),
            ("text", StandardScaler(), make_column_selector(dtype_include=object)),
            ("gone", "drop", [0]),
        ],
        remainder="passthrough",
    )
    frame = pd.DataFrame(SPENT_X, columns=["a", "b", "c"])
    model = make_pipeline(front, classifier()).fit(frame, SPENT_Y)
    assert privacy_spent(model).not_covered == ()


def test_private_parts_count_with_their_ledgers():
    scaler = DPStandardScaler(epsilon=0.5, bounds=(-1, 1))
    front = columns(("dp", scaler), ("clip", NormClipper()))
    union = FeatureUnion([("a", front), ("b", DPStandardScaler(bounds=(-1, 1)))])
    model = make_pipeline(union, classifier()).fit(SPENT_X, SPENT_Y)
    spent = privacy_spent(model)
    assert spent.not_covered == ()
    ledgers = [
        model[0].transformer_list[0][1].transformers_[0][1].ledger_,
        model[0].transformer_list[1][1].ledger_,
        model[1].ledger_,
    ]
    assert spent.ledger == ledgers[0] + ledgers[1] + ledgers[2]
    assert spent.delta == pytest.approx(3e-6)
    # on its own, not in a pipeline
    assert privacy_spent(model[0]).ledger == ledgers[0] + ledgers[1]


@pytest.mark.parametrize(
    ("holder", "one_target"),
    [
        (OneVsRestClassifier(classifier()), True),
        (OneVsOneClassifier(classifier()), True),
        (OutputCodeClassifier(classifier(), random_state=0), True),
        (ClassifierChain(classifier()), False),
        (MultiOutputClassifier(classifier()), False),
        (VotingClassifier([("a", classifier()), ("b", classifier())]), True),
        (StackingClassifier([("a", classifier())], final_estimator=classifier(), cv=2), True),
        (BaggingClassifier(classifier(), n_estimators=2), True),
        (CalibratedClassifierCV(classifier(), cv=2), True),
        (TunedThresholdClassifierCV(classifier(), cv=2), True),
        (FixedThresholdClassifier(classifier()), True),
        (SelectFromModel(classifier()), True),
        (RFE(classifier(), n_features_to_select=1), True),
        (SequentialFeatureSelector(classifier(), n_features_to_select=1, cv=2), True),
        (TransformedTargetRegressor(DPLpRegressor()), True),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_what_holds_private_estimators_is_counted_or_named(holder, one_target):
    labels = SPENT_Y if one_target else np.column_stack([SPENT_Y, 1 - SPENT_Y])
    fitted = Pipeline([("step", holder)]).fit(SPENT_X, labels)
    spent = privacy_spent(fitted)
    # which of them are covered: test_spent_inside.py
    assert {item.step for item in spent.not_covered} <= {"step"}
    assert spent.uncovered or spent.epsilon > 0
    with pytest.raises(TypeError, match="have no private step"):
        privacy_spent(holder, cv=2)


@pytest.mark.parametrize(
    "step",
    [FrozenEstimator(StandardScaler().fit(SPENT_X)), GaussianProcessRegressor(optimizer=None)],
    ids=name_of,
)
def test_a_tag_does_not_excuse_what_has_learned(step):
    # scikit-learn has regressors with requires_fit=False, and frozen steps learned before
    try:
        named = privacy_spent(Pipeline([("step", step)]).fit(SPENT_X, SPENT_Y)).not_covered
    except TypeError as error:
        named = (str(error),)
    assert len(named) == 1
    assert "step 'step'" in str(named[0])


def test_a_frozen_private_step_counts():
    frozen = FrozenEstimator(mean_of())
    assert privacy_spent(make_pipeline(frozen)).ledger == mean_of().ledger_


def test_an_unfitted_part_is_refused():
    with pytest.raises(TypeError, match="step 'scale' has no ledger_: it is not fitted"):
        privacy_spent(columns(("scale", StandardScaler())))


def test_an_unfitted_remainder_is_refused():
    # it was passed over once, and the total was nothing
    model = ColumnTransformer([("keep", "passthrough", [0])], remainder=DPStandardScaler())
    with pytest.raises(TypeError, match="step 'remainder' has no ledger_: it is not fitted"):
        privacy_spent(model)
    assert privacy_spent(model.fit(SPENT_X)).n_fits == 1


def test_lost_fits_of_a_step_that_releases_nothing_are_free():
    idle = DPStandardScaler(epsilon=0.3, with_mean=False, with_std=False)
    alone, both = (
        privacy_spent(m, cv=3) for m in (classifier(), make_pipeline(idle, classifier()))
    )
    assert both.covered == alone.covered
    assert both.ledger == alone.ledger
    assert both.n_fits == 3
    nothing = privacy_spent(idle, cv=3)
    assert nothing.covered == (0.0, 0.0)
    assert nothing.n_fits == 0


# What cross-validations have spent, and what of splits and scores is not covered.


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


@pytest.mark.sample(1)
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
    # cross-validators pass groups on where they are asked to
    assert privacy_spent(federated, cv=3).ledger.unit == "row"
    with config_context(enable_metadata_routing=True):
        federated.set_fit_request(groups=True)
    assert privacy_spent(federated, cv=3).ledger.unit == "group"
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


@pytest.mark.sample(4)
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
    search = GridSearchCV(
        DPMean(data_norm=1.0, mechanism="gaussian"), {"epsilon": [0.5, 1.0]}, cv=4
    ).fit(X)
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


# What searches and cross-validations have spent: counted against what was charged.


HALVING = {"cv": FOLDS, "min_resources": 15, "random_state": 0}
SEARCHES = {
    "grid": lambda e, grid: GridSearchCV(e, grid, cv=FOLDS),
    "no refit": lambda e, grid: GridSearchCV(e, grid, cv=FOLDS, refit=False),
    "random": lambda e, grid: RandomizedSearchCV(e, grid, n_iter=3, cv=FOLDS, random_state=0),
    "halving": lambda e, grid: HalvingGridSearchCV(e, grid, **HALVING),
    "random halving": lambda e, grid: HalvingRandomSearchCV(e, grid, n_candidates=4, **HALVING),
}
GRID = {"epsilon": [0.5, 1.0], "C": [0.1, 1.0, 10.0]}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_has_spent_all_its_fits(kind, spy):
    search = SEARCHES[kind](model(spy), GRID).fit(X, Y)
    agrees(privacy_spent(search), spy.charges)


@pytest.mark.full
def test_rounds_of_a_halving_search_all_count(spy):
    search = SEARCHES["halving"](model(spy), GRID).fit(X, Y)
    assert search.n_iterations_ == 2
    assert privacy_spent(search).n_fits == (6 + 2) * 3 + 1 == len(spy.charges)


def test_a_halving_search_counts_labels_before_it_begins():
    public = DPLogisticRegression(classes=range(3), max_iter=2)
    options = {"cv": KFold(2), "min_resources": "smallest", "random_state": 0}
    y = SPENT_Y.copy()
    searches = []
    for y[0] in (0, 2):
        searches.append(HalvingGridSearchCV(public, {"C": [0.1, 1.0, 10.0]}, **options))
        searches[-1].fit(SPENT_X, y)
    # one label decides about all rounds
    assert [search.min_resources_ for search in searches] == [8, 12]
    told = "the set of class labels, which HalvingGridSearchCV read from y"
    assert told in privacy_spent(searches[0]).ledger.assumptions
    search = clone(searches[0]).set_params(min_resources=8).fit(SPENT_X, SPENT_Y)
    assert told not in privacy_spent(search).ledger.assumptions


def test_a_resource_may_be_a_parameter(spy):
    search = HalvingGridSearchCV(
        model(spy), {"C": [0.1, 1.0, 10.0]}, resource="epsilon", max_resources=3,
        min_resources=1, cv=FOLDS, random_state=0,
    ).fit(X, Y)  # fmt: skip
    agrees(privacy_spent(search), spy.charges)
    assert {epsilon for epsilon, _ in spy.charges} == {1.0, 3.0}


@pytest.mark.full
@pytest.mark.parametrize(
    ("fixed", "grid"),
    [
        ({}, {"epsilon": [0.1, 2.0]}),
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
    parameters = {"epsilon": 0.5, "max_iter": 2, "classes": [0, 1], "data_norm": 1.0, **fixed}
    search = GridSearchCV(Recorded(budget=budget, **parameters), grid, cv=FOLDS).fit(X, Y)
    spent, truth = privacy_spent(search), reduce(add, budget.ledgers)
    assert spent.n_fits == len(budget.ledgers) == len(budget.charges)
    assert spent.epsilon >= truth.epsilon(spent.delta)
    for delta in (spent.delta / 0.9, 1e-3):
        assert privacy_spent(search, delta=delta).epsilon >= truth.epsilon(delta)


@pytest.mark.full
def test_nested_names_and_replaced_steps(spy):
    estimator = pipeline(spy, ("scale", scaler(spy)))
    grid = [
        {"scale__epsilon": [0.25, 0.75], "model__epsilon": [0.5, 2.0]},
        {"scale": [scaler(spy, delta=1e-7)], "scale__epsilon": [0.125]},
        {"model": [DPHingeSVM(epsilon=3.0, max_iter=2, classes=[0, 1], budget=spy, data_norm=1.0)]},
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
