# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private estimators inside of pipelines, searches and ensembles of others.

One table: every line is run here, and stands on the page docs/user_guide/wrappers.rst, which
``python -m tests.privacy.test_wrappers`` writes anew.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pickle import PicklingError

import joblib
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.preprocessing import CorrelationRemover
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from fairlearn.reductions import GridSearch as FairGridSearch
from imblearn.combine import SMOTEENN
from imblearn.ensemble import BalancedBaggingClassifier, EasyEnsembleClassifier, RUSBoostClassifier
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline as make_resampling_pipeline
from imblearn.under_sampling import NearMiss, RandomUnderSampler
from mapie.classification import SplitConformalClassifier
from mapie.regression import CrossConformalRegressor, JackknifeAfterBootstrapRegressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPLpRegressor,
    DPRandomizedSearchCV,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    NormClipper,
    PrivacyBudget,
    privacy_card,
    privacy_spent,
)
from skdp.exceptions import BudgetError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "wrappers.rst"

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(60, 3))
Y = (X[:, 0] > -0.1).astype(int)
THREE = np.arange(60) % 3
BOTH = np.column_stack([Y, 1 - Y])
TARGET = X[:, 0]
CLIENTS = np.arange(60) // 6
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
FOLDS = KFold(2)
HALVING = {"cv": FOLDS, "min_resources": 20}
#: of a code without a constant column
SEED = 3


class Make:
    """Private estimators with one shared budget."""

    def __init__(self, budget):
        self.budget = budget

    def classifier(self, **given):
        return DPLogisticRegression(
            epsilon=0.5, max_iter=2, budget=self.budget, **{"data_norm": 1.0, **given}
        )

    def binary(self):
        return self.classifier(classes=[0, 1])

    def regressor(self):
        return DPLpRegressor(epsilon=0.5, max_iter=2, budget=self.budget)

    def scaler(self):
        return DPStandardScaler(epsilon=0.5, bounds=(-1, 1), budget=self.budget)

    def unseeded(self):
        return NoSeed(budget=self.budget)

    def clients(self):
        return FederatedDPLogisticRegression(classes=[0, 1], max_iter=1, budget=self.budget)

    def pair(self, make):
        return [("a", make()), ("b", make())]


class NoSeed(DPLogisticRegression):
    """Its constructor has no `random_state`, into which an ensemble could write a seed."""

    def __init__(self, epsilon=0.5, budget=None):
        super().__init__(epsilon, classes=[0, 1], max_iter=2, budget=budget)


class NoSeedRegressor(DPLpRegressor):
    """The same, of a regressor."""

    def __init__(self, epsilon=0.5, budget=None):
        super().__init__(epsilon=epsilon, max_iter=2, budget=budget)


@dataclass(frozen=True)
class Line:
    """A line of the page, and how to run it.

    `run` gets a `Make` and returns a fitted object, or several in a tuple, or the keywords of
    `privacy_spent`; of what is refused it may be a tuple of such functions. `told` is a part of
    what is said to be missing, or of the error.
    """

    name: str
    verdict: str
    why: str
    run: Callable
    told: str = ""
    slow: bool = False


def priced(name, why, run, **more):
    return Line(name, "priced", why, run, **more)


def refused(name, why, run, told, **more):
    return Line(name, "refused", why, run, told, **more)


def uncovered(name, why, run, told, **more):
    return Line(name, "uncovered", why, run, told, **more)


def two_workers(backend, **options):
    """Return a fit of two members in two workers."""

    def run(make):
        with joblib.parallel_config(backend=backend, **options):
            return VotingClassifier(make.pair(make.binary), n_jobs=2).fit(X, Y)

    return run


def on_dask(make):
    client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None)
    with client:
        return two_workers("dask")(make)


def vectorised(make):
    """Return models behind what skrub makes of a frame."""
    import skrub  # a second, which no other line needs

    return (
        make_pipeline(skrub.TableVectorizer(), make.binary()).fit(FRAME, Y),
        skrub.tabular_pipeline(make.binary()).fit(FRAME, Y),
    )


def selected(make):
    """Return models behind a choice of columns by skrub."""
    import skrub

    return (
        make_pipeline(skrub.SelectCols(["a", "b"]), make.binary()).fit(FRAME, Y),
        make_pipeline(skrub.DropCols(["c"]), make.binary()).fit(FRAME, Y),
    )


def cross_validated(run, repeats=1):
    """Return what says to `privacy_spent` what a cross-validation has done."""

    def counted(make):
        model = make.binary()
        run(model)
        return {"estimators": [model] * repeats, "cv": FOLDS}

    return counted


PLAIN = [
    priced(
        "``Pipeline``, ``FeatureUnion``, ``ColumnTransformer``",
        "Private steps add up, and steps that learn nothing are free.",
        lambda m: make_pipeline(
            ColumnTransformer(
                [
                    ("a", m.scaler(), make_column_selector(pattern="a|b")),
                    ("b", NormClipper(), ["c"]),
                ]
            ),
            FeatureUnion([("c", m.scaler()), ("d", NormClipper())]),
            m.binary(),
        ).fit(FRAME, Y),
    ),
    uncovered(
        "``Pipeline`` with ``StandardScaler``",
        "The step learns from rows, and has no ledger.",
        lambda m: make_pipeline(StandardScaler(), m.binary()).fit(X, Y),
        "step 'standardscaler', which was fitted on the data",
    ),
    uncovered(
        "``ColumnTransformer`` with sparse parts, and ``sparse_threshold`` not 0",
        "Whether it returns sparse or dense rows depends on how many entries are stored.",
        lambda m: make_pipeline(
            ColumnTransformer(
                [
                    ("a", OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore"), [0]),
                    ("b", m.scaler(), [1, 2]),
                ]
            ),
            m.binary(),
        ).fit(X, Y),
        "the form of what step 'columntransformer' returns, sparse or dense",
    ),
    uncovered(
        "``ColumnTransformer`` with a function for ``columns``",
        "It is handed all rows. ``make_column_selector`` looks at names and types alone: priced.",
        lambda m: make_pipeline(
            ColumnTransformer([("a", m.scaler(), lambda X: [int(X.var(axis=0).argmax())])]),
            m.binary(),
        ).fit(X, Y),
        "the columns of step 'columntransformer', chosen by a function that is handed the rows",
    ),
    priced(
        "``VotingClassifier``, ``VotingRegressor``",
        "Each member is a fit to all rows.",
        lambda m: (
            VotingClassifier(m.pair(m.binary)).fit(X, Y),
            VotingRegressor(m.pair(m.regressor)).fit(X, TARGET),
        ),
    ),
    priced(
        "``OneVsRestClassifier``, ``OutputCodeClassifier``",
        "One fit for each class, or each column of a code. Labels that occur are assumed public.",
        lambda m: (
            OneVsRestClassifier(m.classifier()).fit(X, THREE),
            OutputCodeClassifier(m.classifier(), code_size=1, random_state=SEED).fit(X, THREE),
        ),
    ),
    uncovered(
        "``OneVsRestClassifier`` with several labels for a row",
        "A label that no row has is not fitted, so one row may decide how many fits there are.",
        lambda m: OneVsRestClassifier(m.classifier()).fit(X, np.column_stack([Y, 1 - Y])),
        "which labels some rows have and others have not",
    ),
    uncovered(
        "``OneVsOneClassifier``",
        "Each fit is to the rows of two classes: how many there are depends on labels.",
        lambda m: OneVsOneClassifier(m.classifier()).fit(X, THREE),
        "the number of rows of every pair of classes",
    ),
    priced(
        "``MultiOutputClassifier``, ``MultiOutputRegressor``",
        "One fit for each target.",
        lambda m: (
            MultiOutputClassifier(m.classifier()).fit(X, BOTH),
            MultiOutputRegressor(m.regressor()).fit(X, X[:, :2]),
        ),
    ),
    priced(
        "``ClassifierChain``, ``RegressorChain``",
        "One fit for each target, to rows and earlier targets.",
        lambda m: (
            ClassifierChain(m.classifier()).fit(X, BOTH),
            RegressorChain(m.regressor()).fit(X, X[:, :2]),
        ),
    ),
    uncovered(
        "``ClassifierChain``, ``RegressorChain`` with ``cv``",
        "The fits on folds are not kept, so nobody knows what they spent.",
        lambda m: (
            ClassifierChain(m.classifier(), cv=2).fit(X, BOTH),
            RegressorChain(m.regressor(), cv=2).fit(X, X[:, :2]),
        ),
        "the fits on folds",
    ),
    uncovered(
        "``StackingClassifier``, ``StackingRegressor``",
        "The final estimator is fitted to predictions of fits on folds, which are not kept.",
        lambda m: (
            StackingClassifier(m.pair(m.binary), m.binary(), cv=2).fit(X, Y),
            StackingRegressor(m.pair(m.regressor), m.regressor(), cv=2).fit(X, TARGET),
        ),
        "the fits on folds that later ones were trained by",
    ),
    priced(
        '``StackingClassifier``, ``StackingRegressor`` with ``cv="prefit"``',
        "Members were fitted before, and the private final estimator is one more fit.",
        lambda m: (
            StackingClassifier([("a", m.binary().fit(X, Y))], m.binary(), cv="prefit").fit(X, Y),
            StackingRegressor(
                [("a", m.regressor().fit(X, TARGET))], m.regressor(), cv="prefit"
            ).fit(X, TARGET),
        ),
    ),
    uncovered(
        "``CalibratedClassifierCV``",
        "The calibration is learned from exact scores of held-out rows.",
        lambda m: (
            CalibratedClassifierCV(m.binary(), cv=2).fit(X, Y),
            CalibratedClassifierCV(m.binary(), cv=2, ensemble=False).fit(X, Y),
            CalibratedClassifierCV(FrozenEstimator(m.binary().fit(X, Y))).fit(X, Y),
        ),
        "what calibrates it, learned from exact scores of rows",
    ),
    uncovered(
        "``TunedThresholdClassifierCV``",
        "The threshold is chosen by exact scores.",
        lambda m: TunedThresholdClassifierCV(m.binary(), cv=2).fit(X, Y),
        "the threshold, chosen by exact scores",
    ),
    priced(
        "``FixedThresholdClassifier``, ``FrozenEstimator``",
        "The fit that they hold. A threshold that is given is public.",
        lambda m: (
            FixedThresholdClassifier(m.binary()).fit(X, Y),
            FrozenEstimator(m.binary().fit(X, Y)).fit(X, Y),
        ),
    ),
    priced(
        "``TransformedTargetRegressor`` with ``func``",
        "The fit that it holds; a function of your own is an assumption.",
        lambda m: TransformedTargetRegressor(
            m.regressor(), func=lambda y: y / 2, inverse_func=lambda y: 2 * y
        ).fit(X, TARGET),
    ),
    priced(
        "``SelectFromModel``",
        "The fit that it holds; what it selects follows from the coefficients.",
        lambda m: SelectFromModel(m.binary()).fit(X, Y),
    ),
    uncovered(
        "``RFE``, ``RFECV``",
        "The fits of earlier rounds are not kept. ``RFECV`` chooses by exact scores as well.",
        lambda m: (
            RFE(m.binary(), n_features_to_select=1).fit(X, Y),
            RFECV(m.binary(), cv=2).fit(X, Y),
        ),
        "did not keep",
    ),
    refused(
        "``SequentialFeatureSelector``",
        "It keeps no fit, and chooses by exact scores: there is nothing to count.",
        lambda m: privacy_spent(
            SequentialFeatureSelector(m.binary(), n_features_to_select=1, cv=2).fit(X, Y)
        ),
        "no private estimator that it keeps is fitted",
    ),
    uncovered(
        "``Pipeline`` with ``SequentialFeatureSelector``",
        "The fits of the selector are not kept.",
        lambda m: make_pipeline(
            SequentialFeatureSelector(m.binary(), n_features_to_select=1, cv=2), m.binary()
        ).fit(X, Y),
        "step 'sequentialfeatureselector', which was fitted on the data",
    ),
    uncovered(
        "``SelfTrainingClassifier``",
        "The fits of earlier rounds are not kept, and their number depends on the rows.",
        lambda m: SelfTrainingClassifier(m.classifier()).fit(X, np.where(Y == 0, -1, THREE)),
        "the fits of its earlier rounds",
    ),
    uncovered(
        "``BaggingClassifier``, ``BaggingRegressor``",
        "They write a seed into the ``random_state`` of each member, and keep it: whoever has the "
        "fitted object can remove the noise.",
        lambda m: (
            BaggingClassifier(m.binary(), 2).fit(X, Y),
            BaggingRegressor(m.regressor(), 2, bootstrap=False).fit(X, TARGET),
        ),
        "wrote a seed into each random_state and keeps it",
    ),
    priced(
        "``BaggingClassifier``, ``BaggingRegressor`` whose members have no ``random_state``",
        "A row that was drawn k times for a member pays as a group of k rows; without replacement "
        "it counts once, and gains nothing by being left out.",
        lambda m: (
            BaggingClassifier(m.unseeded(), 2).fit(X, Y),
            BaggingClassifier(m.unseeded(), 2, bootstrap=False, max_samples=0.5).fit(X, Y),
            BaggingRegressor(NoSeedRegressor(budget=m.budget), 2).fit(X, TARGET),
        ),
    ),
    refused(
        "``AdaBoostClassifier``",
        "It needs ``sample_weight``, which takes a ``max_weight``.",
        lambda m: AdaBoostClassifier(m.binary()).fit(X, Y),
        "doesn't support sample_weight",
    ),
    uncovered(
        "``AdaBoostClassifier`` of members with a ``max_weight``",
        "Its weights follow from exact errors of members. Every fit is charged.",
        lambda m: AdaBoostClassifier(
            m.binary().set_params(max_weight=0.1, epsilon=20.0), n_estimators=2
        ).fit(X, Y),
        "what it learned from the errors of its members",
    ),
    uncovered(
        "``AdaBoostRegressor``",
        "It draws rows by the errors of earlier members: nobody knows how often one counts.",
        lambda m: AdaBoostRegressor(m.regressor(), n_estimators=2).fit(X, TARGET),
        "how often rows are drawn",
    ),
    uncovered(
        "``GradientBoostingClassifier`` with a private ``init``",
        "All later trees learn without a ledger.",
        lambda m: GradientBoostingClassifier(init=m.binary(), n_estimators=1).fit(X, Y),
        "DecisionTreeRegressor inside of GradientBoostingClassifier",
    ),
]

SEARCHES = [
    uncovered(
        "``GridSearchCV``, ``RandomizedSearchCV``",
        "All fits are counted, by their parameters; the choice by exact scores has no price.",
        lambda m: (
            GridSearchCV(m.binary(), {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, Y),
            RandomizedSearchCV(m.binary(), {"C": [0.1, 1.0]}, n_iter=2, cv=FOLDS).fit(X, Y),
        ),
        "the choice of the winner, by exact scores",
    ),
    uncovered(
        "``HalvingGridSearchCV``, ``HalvingRandomSearchCV``",
        "The same, over all rounds.",
        lambda m: (
            HalvingGridSearchCV(m.binary(), {"C": [0.1, 1.0]}, **HALVING).fit(X, Y),
            HalvingRandomSearchCV(m.binary(), {"C": [0.1, 1.0]}, n_candidates=2, **HALVING).fit(
                X, Y
            ),
        ),
        "the choice of the winner, by exact scores",
    ),
    priced(
        ":class:`~skdp.DPGridSearchCV`, :class:`~skdp.DPRandomizedSearchCV`",
        "They pay for runs, choice and score.",
        lambda m: tuple(
            search(
                make_pipeline(
                    NormClipper(), DPLogisticRegression(classes=[0, 1], max_iter=2, data_norm=1.0)
                ),
                {"dplogisticregression__C": [0.1, 1.0]},
                budget=m.budget,
                **more,
            ).fit(X, Y)
            for search, more in ((DPGridSearchCV, {}), (DPRandomizedSearchCV, {"n_iter": 2}))
        ),
    ),
    refused(
        "The same with a step that learns without a ledger, or resamples",
        "Its price is unknown. Nothing is charged.",
        tuple(
            lambda m, step=step, search=search, more=more: search(
                make_resampling_pipeline(step, DPLogisticRegression(classes=[0, 1], data_norm=1.0)),
                {"dplogisticregression__C": [0.1, 1.0]},
                budget=m.budget,
                **more,
            ).fit(X, Y)
            for step, search, more in (
                (RandomOverSampler(), DPGridSearchCV, {}),
                (StandardScaler(), DPRandomizedSearchCV, {"n_iter": 2}),
            )
        ),
        "learns from the data without a ledger",
    ),
    uncovered(
        "``cross_val_score``, ``cross_validate``, ``cross_val_predict``",
        "``privacy_spent(model, cv=...)`` counts the fits; the scores are exact.",
        cross_validated(
            lambda model: (
                cross_val_score(model, X, Y, cv=FOLDS),
                cross_validate(model, X, Y, cv=FOLDS),
                cross_val_predict(model, X, Y, cv=FOLDS),
            ),
            repeats=3,
        ),
        "the scores, which are exact numbers",
    ),
    uncovered(
        "``learning_curve``, ``validation_curve``, ``permutation_test_score``",
        "The same, once for each size, value or permutation.",
        cross_validated(
            lambda model: (
                learning_curve(model, X, Y, cv=FOLDS, train_sizes=[0.5, 1.0]),
                validation_curve(model, X, Y, param_name="C", param_range=[0.1, 1.0], cv=FOLDS),
                permutation_test_score(model, X, Y, cv=FOLDS, n_permutations=1),
            ),
            repeats=6,
        ),
        "the scores, which are exact numbers",
    ),
    uncovered(
        "A search with ``groups`` over an estimator that takes some, without metadata routing",
        "The splitter keeps the groups, and every row counts on its own: the unit is a row.",
        lambda m: GridSearchCV(m.clients(), {"C": [0.1]}, cv=GroupKFold(2), scoring="accuracy").fit(
            X, Y, groups=CLIENTS
        ),
        "GroupKFold was given groups, and the fits were not",
    ),
    refused(
        "The same, with a budget for groups",
        "No fit is for groups. No row is read.",
        lambda m: GridSearchCV(
            m.clients().set_params(budget=PrivacyBudget(5.0, 1e-4, unit="group")),
            {"C": [0.1]},
            cv=GroupKFold(2),
            error_score="raise",
            scoring="accuracy",
        ).fit(X, Y, groups=CLIENTS),
        "fit got no groups: every row would be a group of its own",
    ),
]

WORKERS = [
    priced(
        'joblib, ``backend="threading"``',
        "Threads share the budget, and every fit draws noise of its own.",
        two_workers("threading"),
    ),
    refused(
        'joblib, ``backend="loky"``, with a budget in memory',
        "A budget that cannot see other processes does not go there.",
        two_workers("loky"),
        "a budget in memory cannot be pickled",
        slow=True,
    ),
    priced(
        'joblib, ``backend="loky"``, with a budget in a file',
        "Every fit is charged to the file before it reads a row; noise is drawn where the fit is.",
        two_workers("loky"),
        slow=True,
    ),
    priced(
        'joblib, ``backend="dask"``, with a budget in a file',
        "The same, on the workers of a cluster, which must reach the file.",
        on_dask,
        slow=True,
    ),
]

IMBALANCED = [
    uncovered(
        "``RandomOverSampler``, ``SMOTE``, ``SMOTEENN``",
        "A row may be repeated, or take part in made-up rows, any number of times.",
        lambda m: tuple(
            make_resampling_pipeline(sampler, m.binary()).fit(X, Y)
            for sampler in (RandomOverSampler(), SMOTE(), SMOTEENN())
        ),
        "which resampled the rows: one row may count any number of times",
    ),
    uncovered(
        "``RandomUnderSampler``, ``NearMiss``",
        "Labels, or distances, decide which rows are kept: exchanging one row exchanges others.",
        lambda m: tuple(
            make_resampling_pipeline(sampler, m.binary()).fit(X, Y)
            for sampler in (RandomUnderSampler(), NearMiss())
        ),
        "which ones are drawn may depend on all rows",
    ),
    priced(
        "``imblearn.pipeline.Pipeline`` without a sampler",
        "As scikit-learn's.",
        lambda m: make_resampling_pipeline(m.scaler(), m.binary()).fit(X, Y),
    ),
    uncovered(
        "``BalancedBaggingClassifier``, ``EasyEnsembleClassifier``",
        "A sampler in each member, and seeds that are kept.",
        lambda m: (
            BalancedBaggingClassifier(m.binary(), n_estimators=2).fit(X, Y),
            EasyEnsembleClassifier(n_estimators=2, estimator=m.binary()).fit(X, Y),
        ),
        "RandomUnderSampler inside of .* resampled the rows",
    ),
    refused(
        "``RUSBoostClassifier``",
        "It needs ``sample_weight``.",
        lambda m: RUSBoostClassifier(m.binary()).fit(X, Y),
        "doesn't support sample_weight",
    ),
]

FAIR = [
    refused(
        "``ExponentiatedGradient``, ``GridSearch`` (reductions)",
        "They fit by ``sample_weight``, which takes a ``max_weight``. Nothing is charged.",
        tuple(
            lambda m, kind=kind: kind(m.binary(), DemographicParity()).fit(
                X, Y, sensitive_features=THREE
            )
            for kind in (ExponentiatedGradient, FairGridSearch)
        ),
        "takes sample_weight only with max_weight",
    ),
    uncovered(
        "The same with a ``max_weight``",
        "Weights follow from exact rates, and not all fits are kept. Every fit is charged.",
        lambda m: ExponentiatedGradient(
            m.binary().set_params(max_weight=2.0), DemographicParity(), max_iter=1
        ).fit(X, Y, sensitive_features=THREE),
        "ExponentiatedGradient: what it learned itself, and fits that it did not keep",
    ),
    uncovered(
        "``ThresholdOptimizer``",
        "The thresholds are learned from exact scores of rows.",
        lambda m: ThresholdOptimizer(estimator=m.binary(), predict_method="predict_proba").fit(
            X, Y, sensitive_features=THREE % 2
        ),
        "ThresholdOptimizer: what it learned itself",
    ),
    uncovered(
        "``CorrelationRemover``",
        "It learns coefficients from rows.",
        lambda m: make_pipeline(CorrelationRemover(sensitive_feature_ids=[1]), m.binary()).fit(
            X, Y
        ),
        "step 'correlationremover', which was fitted on the data",
    ),
]

TABLES = [
    uncovered(
        "``TableVectorizer``, ``tabular_pipeline``",
        "They read types and categories off the rows, and scales.",
        vectorised,
        "step 'tablevectorizer', which was fitted on the data",
    ),
    uncovered(
        "``SelectCols``, ``DropCols``",
        "They keep names alone; but what other libraries say of their own steps is not believed. "
        "``ColumnTransformer`` does the same, and is priced.",
        selected,
        "step '(select|drop)cols', which was fitted on the data",
    ),
]

CONFORMAL = [
    uncovered(
        "``SplitConformalClassifier`` and the like",
        "The quantile of the scores of held-out rows is exact.",
        lambda m: (
            SplitConformalClassifier(m.binary(), prefit=False)
            .fit(X[:30], Y[:30])
            .conformalize(X[30:], Y[30:])
        ),
        "SplitConformalClassifier: what it learned itself",
    ),
    uncovered(
        "``CrossConformalRegressor``, ``JackknifeAfterBootstrapRegressor``",
        "The same; the second one draws rows several times as well.",
        lambda m: (
            CrossConformalRegressor(m.regressor(), cv=2).fit_conformalize(X, TARGET),
            JackknifeAfterBootstrapRegressor(m.regressor(), resampling=2).fit_conformalize(
                X, TARGET
            ),
        ),
        "what it learned itself, and fits that it did not keep",
    ),
]

TABLE = {
    "scikit-learn: ensembles and other holders": PLAIN,
    "scikit-learn: searches and cross-validation": SEARCHES,
    "Workers: joblib and dask": WORKERS,
    "imbalanced-learn": IMBALANCED,
    "fairlearn": FAIR,
    "skrub": TABLES,
    "MAPIE": CONFORMAL,
}
LINES = [line for lines in TABLE.values() for line in lines]


@pytest.mark.sample(6, 1000)
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*:FutureWarning")
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:WARNING. at least one point:UserWarning")
@pytest.mark.parametrize(
    "line",
    [pytest.param(one, marks=[pytest.mark.full] if one.slow else []) for one in LINES],
    ids=[re.sub(r"[`:~]|skdp\.", "", one.name) for one in LINES],
)
def test_every_line_of_the_page_is_so(line, tmp_path):
    budget = PrivacyBudget(100.0, 0.01, path=tmp_path / "budget" if "file" in line.name else None)
    make = Make(budget)
    if line.verdict == "refused":
        for run in line.run if isinstance(line.run, tuple) else (line.run,):
            with pytest.raises((ValueError, TypeError, BudgetError, PicklingError)) as error:
                run(make)
            # joblib says that something cannot be sent, and why not in the cause
            said = f"{error.value} {error.value.__cause__}"
            assert re.search(line.told, said), said
        assert not (budget.charges and "Nothing is charged" in line.why)
        return
    found = line.run(make)
    totals = []
    if isinstance(found, dict):
        totals = [privacy_spent(*found.pop("estimators"), **found)]
    else:
        models = found if isinstance(found, tuple) else (found,)
        totals = [privacy_spent(model) for model in models]
        for model in models:
            expected = "holds" if line.verdict == "priced" else "none"
            assert privacy_card(model).to_dict()["claim"]["status"] == expected
    if line.verdict == "priced":
        # every charge is in a total, and a row that counts several times pays more
        assert [spent.uncovered for spent in totals] == [()] * len(totals)
        assert all(tuple(spent) == spent.covered for spent in totals)
        assert all(spent.ledger.releases for spent in totals)
        charged = sum(charge.delta for charge in budget.charges)
        assert sum(spent.delta for spent in totals) == pytest.approx(charged)
        assert 0 < sum(spent.n_fits for spent in totals) <= len(budget.charges)
        return
    for spent in totals:
        with pytest.raises(ValueError, match=line.told):
            tuple(spent)
    if isinstance(found, dict):
        assert totals[0].n_fits == len(budget.charges)


def tables():
    """Return the tables of the page, with their headings."""
    parts = []
    for name, lines in TABLE.items():
        parts += [name, "-" * len(name), "", ".. list-table::", "   :header-rows: 1"]
        parts += ["   :widths: 30 12 58", "", "   * - What holds the estimator", "     - Verdict"]
        parts += ["     - Why"]
        for line in lines:
            parts += [f"   * - {line.name}", f"     - {line.verdict}", f"     - {line.why}"]
        parts.append("")
    return "\n".join(parts)


START = ".. what follows is written by tests/privacy/test_wrappers.py\n\n"
END = ".. end of the tables\n"


def test_the_page_has_the_lines_that_are_run():
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(START)[2].partition(END)[0] == tables() + "\n"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + tables() + "\n" + END + rest.partition(END)[2], "utf-8")
