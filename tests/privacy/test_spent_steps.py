# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which steps of a pipeline are counted, which are named, and which are free."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
)
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
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
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
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import DPLpRegressor, DPStandardScaler, NormClipper, privacy_spent
from tests.privacy.test_spent import X, Y, classifier, mean_of

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
]
LEARNING = [
    StandardScaler(),
    MinMaxScaler(),
    PCA(1),
    SelectKBest(k=1),
    KBinsDiscretizer(2, quantile_method="averaged_inverted_cdf"),
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
]
BITS = (X > 0).astype(float)


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


@pytest.mark.parametrize("step", FREE, ids=name_of)
def test_a_step_that_looks_at_shapes_only_is_free(step):
    model = Pipeline([("step", step), ("model", classifier())]).fit(BITS, Y)
    assert privacy_spent(model).not_covered == ()
    assert tuple(privacy_spent(model)) == model[-1].privacy_spent_


@pytest.mark.parametrize("step", [*LEARNING, Unknown(), PolynomialFeaturesOfAnotherLibrary()])
def test_a_step_that_learns_is_named(step):
    rows = BITS if hasattr(step, "categories") else X
    model = Pipeline([("step", step), ("model", classifier())]).fit(rows, Y)
    spent = privacy_spent(model)
    assert [(item.kind, item.step) for item in spent.not_covered] == [("step", "step")]
    assert "not covered: step 'step', which was fitted on the data" in str(spent)


def columns(*parts, **options):
    return ColumnTransformer([(name, step, [0, 1]) for name, step in parts], **options)


def test_steps_are_found_inside_of_column_transformers_and_unions():
    inner = make_pipeline(NormClipper(), PCA(1))
    union = FeatureUnion([("minmax", MinMaxScaler()), ("clip", NormClipper()), ("off", "drop")])
    front = columns(
        ("inner", inner), ("union", union), ("as is", "passthrough"), remainder=SimpleImputer()
    )
    model = make_pipeline(FeatureUnion([("front", front)]), classifier()).fit(X, Y)
    spent = privacy_spent(model)
    assert [item.kind for item in spent.not_covered] == ["step"] * 3
    assert [item.step for item in spent.not_covered] == ["pca", "minmax", "remainder"]
    assert spent.ledger == model[-1].ledger_


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
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(front, classifier()).fit(frame, Y)
    assert privacy_spent(model).not_covered == ()


def test_private_parts_count_with_their_ledgers():
    scaler = DPStandardScaler(epsilon=0.5, bounds=(-1, 1), random_state=0)
    front = columns(("dp", scaler), ("clip", NormClipper()))
    union = FeatureUnion([("a", front), ("b", DPStandardScaler(bounds=(-1, 1), random_state=1))])
    model = make_pipeline(union, classifier()).fit(X, Y)
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
        (TransformedTargetRegressor(DPLpRegressor(random_state=0)), True),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_what_holds_private_estimators_and_keeps_no_ledger_is_never_fine(holder, one_target):
    labels = Y if one_target else np.column_stack([Y, 1 - Y])
    fitted = Pipeline([("step", holder)]).fit(X, labels)
    assert [item.step for item in privacy_spent(fitted).not_covered] == ["step"]
    with pytest.raises(TypeError, match=r"keeps none\. Private estimators inside"):
        privacy_spent(holder)
    with pytest.raises(TypeError, match="have no private step"):
        privacy_spent(holder, cv=2)


@pytest.mark.parametrize(
    "step",
    [FrozenEstimator(StandardScaler().fit(X)), GaussianProcessRegressor(optimizer=None)],
    ids=name_of,
)
def test_a_tag_does_not_excuse_what_has_learned(step):
    # scikit-learn has regressors with requires_fit=False, and frozen steps learned before
    try:
        named = privacy_spent(Pipeline([("step", step)]).fit(X, Y)).not_covered
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
    assert privacy_spent(model.fit(X)).n_fits == 1


def test_lost_fits_of_a_step_that_releases_nothing_are_free():
    idle = DPStandardScaler(epsilon=0.3, with_mean=False, with_std=False)
    alone, both = (
        privacy_spent(m, cv=3) for m in (classifier(), make_pipeline(idle, classifier()))
    )
    assert tuple(both) == tuple(alone)
    assert both.ledger == alone.ledger
    assert both.n_fits == 3
    nothing = privacy_spent(idle, cv=3)
    assert tuple(nothing) == (0.0, 0.0)
    assert nothing.n_fits == 0
