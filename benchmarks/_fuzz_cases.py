# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Cases for the fuzzer of certificates: nests of wrappers, seeds, budgets and neighbours at random.

A case is drawn from one seed. `Case.build` makes the same unfitted estimator again and again, so
that it can be fitted to both data sets of a pair.
"""

import copy
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import (  # noqa: F401
    enable_halving_search_cv,
    enable_iterative_imputer,
)
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPPCA,
    BoundedScaler,
    DPCovariance,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPGridSearchCV,
    DPHingeSVM,
    DPHistogram,
    DPKernelClassifier,
    DPKernelRegressor,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPQuantile,
    DPRandomizedSearchCV,
    DPRidge,
    DPStandardScaler,
    LocalDPFrequencies,
    LocalDPLinearRegression,
    LocalDPLogisticRegression,
    LocalDPMean,
    NormClipper,
    PrivacyBudget,
    PrivUnitPrivatizer,
    RandomFourierFeatures,
    papers,
)
from skdp.audit._pairs import kind_of, made_pairs
from skdp.privacy.books.parts import is_private
from tests.test_common import CLASSIFIERS, LOCATIONS, REGRESSORS, TRANSFORMERS

try:
    from imblearn.ensemble import BalancedBaggingClassifier
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import Pipeline as SamplingPipeline
    from imblearn.under_sampling import RandomUnderSampler
except ImportError:
    SamplingPipeline = None
try:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
except ImportError:
    ExponentiatedGradient = None
try:
    from skrub import TableVectorizer
except ImportError:
    TableVectorizer = None
try:
    from mapie.classification import SplitConformalClassifier
    from mapie.regression import CrossConformalRegressor
except ImportError:
    SplitConformalClassifier = None

# of the conformance grid, what takes long or prints
SLOW = ("compressed-sensing", "cvxpy", "BiasReduced", "FiniteNet", "kind='center-clip'")
#: wrappers whose totals can be whole, or infinite
WHOLE = {
    "Pipeline", "VotingClassifier", "VotingRegressor", "OneVsRestClassifier", "FrozenEstimator",
    "OutputCodeClassifier", "FixedThresholdClassifier", "TransformedTargetRegressor",
    "BaggingClassifier", "BaggingRegressor", "DPGridSearchCV",
}  # fmt: skip


def plain(rows):
    """Squash every entry."""
    return np.tanh(rows)


def scaled_rows(rows):
    """Divide every row by its longest entry."""
    rows = np.asarray(rows, dtype=float)
    return rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1.0)


def standardised(rows):
    """Subtract the mean of all rows, and divide by their standard deviation."""
    rows = np.asarray(rows, dtype=float)
    return (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9)


def halved(values):
    return np.asarray(values) / 2


def doubled(values):
    return np.asarray(values) * 2


class Hoarder(BaseEstimator):
    """A meta-estimator from elsewhere: fits two copies, and keeps one where nobody looks."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y=None):
        """Fit two copies, and keep the first."""
        args = (X,) if y is None else (X, y)
        self._held = {"first": [clone(self.estimator).fit(*args)]}
        clone(self.estimator).fit(*args)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        """Return what the first copy predicts."""
        return self._held["first"][0].predict(X)


class UnseededClassifier(DPLogisticRegression):
    """Without a `random_state`, so that no ensemble writes one."""

    def __init__(
        self, epsilon=1.0, delta=1e-6, *, mechanism="auto", solver="auto", classes=None,
        adjacency="replace-one", max_iter=None, budget=None,
    ):  # fmt: skip
        super().__init__(
            epsilon, delta, mechanism=mechanism, solver=solver, classes=classes,
            adjacency=adjacency, max_iter=max_iter, budget=budget,
        )  # fmt: skip


class UnseededRegressor(DPLpRegressor):
    """Without a `random_state`, so that no ensemble writes one."""

    def __init__(
        self, epsilon=1.0, delta=1e-6, *, p=2, solver="auto",
        adjacency="replace-one", max_iter=None, budget=None,
    ):  # fmt: skip
        super().__init__(
            epsilon, delta, p=p, solver=solver, adjacency=adjacency, max_iter=max_iter,
            budget=budget,
        )  # fmt: skip


@dataclass
class Case:
    """One case of the fuzzer.

    Parameters
    ----------
    seed : int
        What all of it was drawn from.
    estimators : list of estimator
        Unfitted; fitted one after the other. Usually one.
    names : tuple of str
        The wrappers, from the outermost in.
    pair : tuple of tuple
        Arguments of `fit` on two neighbouring data sets.
    options : dict
        What else is tried: budget, joblib, round trips, refits.
    null : bool
        Whether the row of the neighbour is a null row.
    """

    seed: int
    estimators: list
    names: tuple
    pair: tuple
    options: dict = field(default_factory=dict)
    null: bool = False

    def budget(self):
        """Return a fresh budget, or None."""
        kind = self.options["budget"]
        if kind is None:
            return None
        facts = {"epsilon": 1e6, "delta": 0.5, "adjacency": self.options["adjacency"]}
        if kind == "file":
            folder = tempfile.mkdtemp(prefix="skdp-fuzz-")
            facts["path"] = Path(folder) / "budget.db"
        return PrivacyBudget(**facts)

    def build(self, budget=None):
        """Return unfitted estimators with a budget; seeds that are generators start anew."""
        # one copy of all, so that what is shared stays shared
        made = copy.deepcopy(self.estimators)
        if budget is not None:
            for estimator in made:
                give_budget(estimator, budget)
        return made


def give_budget(estimator, budget):
    """Give a budget to every private estimator inside, and none to those in a private search."""
    todo = [estimator]
    while todo:
        one = todo.pop()
        # which passes on all attributes of what it holds
        if is_private(one) and not isinstance(one, FrozenEstimator):
            one.budget = budget
            if hasattr(one, "estimator"):
                continue
        if hasattr(one, "get_params"):
            held = one.get_params(deep=False).values()
            for value in held:
                todo += [v for v in _inside(value) if hasattr(v, "get_params")]


def _inside(value):
    if isinstance(value, list | tuple):
        for part in value:
            yield from _inside(part)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        yield value


class Draw:
    """Draws of one case."""

    def __init__(self, seed, only=None):
        self.rng = np.random.default_rng(np.random.SeedSequence([7, seed]))
        self.seed, self.only = seed, only
        self.names, self.depth = [], 0
        self.adjacency = "zero-out" if self.chance(0.1) else "replace-one"
        mode = self.pick(["none"] * 6 + ["ints", "ints", "one int", "generator", "mixed"])
        self.seeds = mode
        self.shared = np.random.RandomState(int(self.rng.integers(1000)))
        self.n_classes = self.pick([2, 2, 2, 3])
        self.public = self.chance(0.5)
        self.n_features = self.pick([2, 3, 4])
        self.quick = self.chance(0.7)

    def chance(self, p):
        """Return True with a probability."""
        return bool(self.rng.random() < p)

    def pick(self, values):
        """Return one of some values."""
        return values[int(self.rng.integers(len(values)))]

    def random_state(self):
        """Return a seed of the kind that this case has."""
        mode = self.seeds if self.seeds != "mixed" else self.pick(["none", "ints", "generator"])
        if mode == "none":
            return None
        if mode == "ints":
            return int(self.rng.integers(4))
        if mode == "one int":
            return 5
        return self.shared

    def outer_seed(self):
        """Return a seed for a wrapper."""
        return self.pick([None, None, 0, int(self.rng.integers(1000))])

    # leaves

    def leaf(self, kind):
        """Return a private estimator of a kind."""
        grid = {
            "classifier": CLASSIFIERS, "regressor": REGRESSORS,
            "location": LOCATIONS, "transformer": TRANSFORMERS,
        }[kind]  # fmt: skip
        if self.quick or (kind == "transformer" and self.chance(0.5)):
            made = getattr(self, f"_quick_{kind}")()
        else:
            fit = [e for e in grid if not any(word in str(e) for word in SLOW)]
            made = clone(self.pick(fit))
        params = made.get_params(deep=True)
        changed = {n: 0 for n, v in params.items() if n.split("__")[-1] == "verbose" and v}
        for name in params:
            last = name.split("__")[-1]
            if last == "random_state":
                changed[name] = self.random_state()
            elif last == "adjacency":
                changed[name] = self.adjacency
            elif last == "classes" and kind == "classifier" and self.public:
                changed[name] = None if self.binary else self.labels()
        made.set_params(**changed)
        return made

    binary, kind = False, None

    def labels(self):
        """Return the labels of this case."""
        return list(range(self.n_classes))

    def _epsilon(self):
        return self.pick([0.1, 0.5, 1.0, 2.0, 8.0])

    def _quick_classifier(self):
        words = [
            {}, {}, {"solver": "gd", "max_iter": 4}, {"solver": "gd", "max_iter": 3, "C": 10.0},
            {"delta": 0.0}, {"delta": 0.0, "mechanism": "output"}, {"mechanism": "objective"},
            {"mechanism": "output"}, {"fit_intercept": False, "max_iter": 5},
            {"solver": papers.FeaturePreprocessing(), "data_norm": 1.0, "max_iter": 5},
        ]  # fmt: skip
        own = dict(self.pick(words))
        if "delta" in own or "mechanism" in own:
            own["epsilon"] = self.pick([4.0, 8.0, 20.0])
        else:
            own["epsilon"] = self._epsilon()
        if self.chance(0.2) and "delta" not in own:
            own["delta"] = 1e-9
        kinds = [DPLogisticRegression, DPLogisticRegression, UnseededClassifier, DPHingeSVM]
        model = self.pick([*kinds, LocalDPLogisticRegression, DPKernelClassifier])
        if model is LocalDPLogisticRegression:
            return model(epsilon=own["epsilon"])
        if model is DPKernelClassifier:
            kernel = self.pick(["auto", "additive", "rbf", "linear"])
            return model(epsilon=self.pick([1.0, 8.0, 300.0]), kernel=kernel, n_components=4)
        if model is UnseededClassifier:
            return model(**{k: v for k, v in own.items() if k in model().get_params()})
        if model is DPHingeSVM and own.get("mechanism") == "objective":
            own["smoothing"] = 0.5
        return model(**own)

    def _quick_regressor(self):
        words = [{}, {"p": 1}, {"p": "huber"}, {"solver": "gd", "max_iter": 4}, {"l2": 1.0}]
        if self.chance(0.2):
            return LocalDPLinearRegression(epsilon=self.pick([1.0, 4.0, 8.0]))
        if self.chance(0.25):
            own = self.pick([{}, {"p": 1}, {"p": "huber"}, {"solver": "gd", "max_iter": 4}])
            return UnseededRegressor(self._epsilon(), **own)
        if self.chance(0.25):
            return DPRidge(epsilon=self._epsilon(), **self.pick([{}, {"l2": 1.0}]))
        if self.chance(0.2):
            kernel = self.pick(["auto", "additive", "rbf", "linear"])
            own = {"n_components": 4, "target_scale": self.pick([None, 1.0]), "max_iter": 4}
            return DPKernelRegressor(self.pick([1.0, 8.0, 300.0]), kernel=kernel, **own)
        return DPLpRegressor(epsilon=self._epsilon(), **self.pick(words))

    def _quick_location(self):
        epsilon = self._epsilon()
        return self.pick([
            DPMean(epsilon=epsilon), DPMean(epsilon=epsilon, mechanism="laplace", data_norm=1.0),
            DPMean(epsilon=epsilon, bounds=(-1.0, 1.0)), DPQuantile(epsilon=epsilon),
            DPMedian(epsilon=epsilon, bounds=(-1.0, 1.0), mechanism="rank"),
            LocalDPMean(epsilon=max(epsilon, 0.5)), DPCovariance(epsilon=epsilon),
            DPHistogram(epsilon=epsilon), DPHistogram(epsilon=epsilon, bounds=(-1.0, 1.0)),
            LocalDPFrequencies(epsilon=max(epsilon, 0.5), categories=[-1.0, 0.0, 1.0]),
        ])  # fmt: skip

    def _quick_transformer(self):
        epsilon = self._epsilon()
        return self.pick([
            DPStandardScaler(epsilon=epsilon, bounds=(-2.0, 2.0)), DPFeatureCenterer(
                epsilon=epsilon, threshold=None),
            DPStandardScaler(epsilon=epsilon, bounds=(-2.0, 2.0), with_mean=False, with_std=False),
            DPFrequentFeatures(epsilon=epsilon, sparsity=2, n_features_to_select=1),
            NormClipper(), BoundedScaler(bounds=(-2.0, 2.0)), DPPCA(1, epsilon=epsilon),
            RandomFourierFeatures(n_components=4),
            PrivUnitPrivatizer(epsilon=max(epsilon, 1.0), new_rows=self.pick(
                ["auto", "keep", "randomise"])),
        ])  # fmt: skip

    # steps

    def step(self, depth=0):
        """Return a transformer, private or not, that learns or not."""
        rows = [
            lambda: self.leaf("transformer"), lambda: self.leaf("transformer"),
            lambda: "passthrough", lambda: StandardScaler(), lambda: Normalizer(),
            lambda: FunctionTransformer(
                self.pick([plain, scaled_rows, standardised, None, np.tanh])),
            lambda: PolynomialFeatures(2), lambda: PCA(1),
            lambda: QuantileTransformer(n_quantiles=4),
            lambda: SelectKBest(k=1), lambda: KBinsDiscretizer(2, encode="ordinal"),
            lambda: GaussianRandomProjection(2, random_state=self.outer_seed()),
            lambda: RBFSampler(gamma=1.0, n_components=3, random_state=self.outer_seed()),
            lambda: SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
            lambda: SimpleImputer(),
            lambda: SelectFromModel(
                self.build("classifier", depth + 1), threshold=-np.inf, max_features=self.pick(
                    [1, None])),
            lambda: IterativeImputer(self.leaf("regressor"), max_iter=1),
            lambda: SequentialFeatureSelector(
                self.build("classifier", depth + 1), n_features_to_select=1, cv=2),
        ]  # fmt: skip
        if TableVectorizer is not None:
            rows.append(lambda: TableVectorizer())
        if depth < 2:
            rows += [lambda: self._columns(depth), lambda: self._union(depth)]
        weights = np.ones(len(rows))
        weights[:2] = 3.0
        chosen = int(self.rng.choice(len(rows), p=weights / weights.sum()))
        if self.kind == "location" and chosen in (9, 15, 17):
            chosen = 0  # the others want labels
        made = rows[chosen]()
        if not isinstance(made, str):
            self._note(type(made).__name__)
        return made

    def _columns(self, depth):
        parts = [("left", self.step(depth + 1), self.pick([[0], slice(0, 1), [0, 1], []]))]
        parts.append(("right", self.step(depth + 1), self.pick([[1], [-1], slice(1, None)])))
        return ColumnTransformer(parts, remainder=self.pick(["drop", "passthrough"]))

    def _union(self, depth):
        return FeatureUnion([("a", self.step(depth + 1)), ("b", self.step(depth + 1))])

    def _note(self, name):
        if name not in self.names:
            self.names.append(name)

    # wrappers

    def build(self, kind, depth=0, least=0):
        """Return an estimator of a kind, in a nest of wrappers."""
        if depth >= 3 or (depth >= least and self.chance(0.25 + 0.2 * depth)):
            return self.leaf(kind)
        makers = getattr(self, f"_{kind}s")()
        # most others are never whole
        weights = np.array([4.0 if name in WHOLE else 1.0 for name in makers])
        name = list(makers)[int(self.rng.choice(len(makers), p=weights / weights.sum()))]
        if self.only and depth == 0 and self.only in makers:
            name = self.only
        self._note(name)
        return makers[name](depth + 1)

    def _pipeline(self, kind):
        def make(depth):
            steps = [("step", self.step(depth))]
            if self.chance(0.3):
                steps.append(("second", self.step(depth)))
            return Pipeline([*steps, ("model", self.build(kind, depth))])

        return make

    def _grid(self, kind, depth):
        """Return an estimator for a search, and a grid of it."""
        inner = self.build(kind, depth) if self.chance(0.4) else self.leaf(kind)
        names = [n for n in ("C", "epsilon", "l2", "fit_intercept") if n in inner.get_params()]
        name = self.pick(names) if names else None
        values = {"C": [1.0, 10.0], "epsilon": [0.5, 1.0], "l2": [0.5, 1.0]}.get(
            name, [True, False]
        )
        return inner, {name: values} if name else {}

    def _folds(self):
        return self.pick([
            2, 3, KFold(2), KFold(3, shuffle=True, random_state=0), KFold(2),
            ShuffleSplit(2, random_state=0), self.pick([StratifiedKFold(2), GroupKFold(2)]),
        ])  # fmt: skip

    def _private_search(self, kind, depth):
        inner = self.leaf(kind)
        while hasattr(inner, "param_grid") or hasattr(inner, "param_distributions"):
            inner = self._quick_classifier() if kind == "classifier" else self._quick_regressor()
        if type(inner) in (LocalDPLogisticRegression, LocalDPLinearRegression):
            inner = DPLogisticRegression(data_norm=1.0) if kind == "classifier" else DPLpRegressor()
        facts = {"random_state": None, "classes": self.labels()}
        given = inner.get_params()
        inner.set_params(**{k: v for k, v in facts.items() if k in given and given[k] is None})
        given = inner.get_params()
        name = self.pick([n for n in ("C", "l2", "fit_intercept", "max_iter") if n in given])
        values = {"C": [1.0, 10.0], "l2": [0.5, 1.0], "max_iter": [2, 3]}.get(name, [True, False])
        facts = {"epsilon": self.pick([4.0, 8.0]), "random_state": self.random_state()}
        facts["strategy"] = self.pick(["auto", "all", "subset"])
        if self.chance(0.3):
            facts["refit_share"] = 0.3
        if kind == "regressor":
            facts["scoring"] = "neg_mean_absolute_error"
        if self.chance(0.7):
            facts.pop("scoring", None)
            return DPGridSearchCV(inner, {name: values}, **facts)
        return DPRandomizedSearchCV(inner, {name: values}, n_iter=2, **facts)

    def _classifiers(self):
        def build(depth):
            return self.build("classifier", depth)

        def several(depth):
            parts = [(f"m{i}", build(depth)) for i in range(self.pick([1, 2, 2, 3]))]
            if self.chance(0.1):
                parts.append(("none", "drop"))
            if self.chance(0.15):
                # one object in two places
                parts.append(("again", parts[0][1]))
            return parts

        def as_binary(depth):
            own, self.binary = self.binary, True
            made = build(depth)
            self.binary = own
            return made

        def searched(maker, **facts):
            def make(depth):
                inner, grid = self._grid("classifier", depth)
                more = {k: v() if callable(v) else v for k, v in facts.items()}
                return maker(inner, grid, cv=self._folds(), **more)

            return make

        made = {
            "Pipeline": self._pipeline("classifier"),
            "VotingClassifier": lambda d: VotingClassifier(
                several(d), voting=self.pick(["hard", "soft"])),
            "StackingClassifier": lambda d: StackingClassifier(
                several(d), final_estimator=build(d), cv=2, passthrough=self.chance(0.5)),
            "BaggingClassifier": lambda d: BaggingClassifier(
                build(d), n_estimators=self.pick([1, 2, 3]), bootstrap=self.chance(0.6),
                max_samples=self.pick([1.0, 1.0, 0.6]), max_features=self.pick([1.0, 1.0, 0.5]),
                bootstrap_features=self.chance(0.2), random_state=self.outer_seed(),
                oob_score=False),
            "OneVsRestClassifier": lambda d: OneVsRestClassifier(as_binary(d)),
            "OneVsOneClassifier": lambda d: OneVsOneClassifier(as_binary(d)),
            "OutputCodeClassifier": lambda d: OutputCodeClassifier(
                as_binary(d), code_size=1.5, random_state=self.outer_seed()),
            "CalibratedClassifierCV": lambda d: CalibratedClassifierCV(
                build(d), cv=2, ensemble=self.chance(0.5)),
            "RFE": lambda d: RFE(
                self.leaf("classifier"), n_features_to_select=self.pick([1, None])),
            "RFECV": lambda d: RFECV(self.leaf("classifier"), cv=2),
            "SelfTrainingClassifier": lambda d: SelfTrainingClassifier(build(d), max_iter=2),
            "TunedThresholdClassifierCV": lambda d: TunedThresholdClassifierCV(
                as_binary(d), cv=self.pick([2, 0.5]), refit=self.chance(0.7), thresholds=4),
            "FixedThresholdClassifier": lambda d: FixedThresholdClassifier(
                as_binary(d), threshold=0.3),
            "GridSearchCV": searched(GridSearchCV, refit=lambda: self.chance(0.7)),
            "RandomizedSearchCV": searched(
                RandomizedSearchCV, n_iter=2, random_state=self.outer_seed),
            "HalvingGridSearchCV": searched(
                HalvingGridSearchCV, min_resources=6, random_state=self.outer_seed),
            "DPGridSearchCV": lambda d: self._private_search("classifier", d),
            "FrozenEstimator": lambda d: FrozenEstimator(build(d)),
            "AdaBoostClassifier": lambda d: AdaBoostClassifier(
                build(d), n_estimators=2, random_state=self.outer_seed()),
            "Hoarder": lambda d: Hoarder(build(d)),
        }  # fmt: skip
        if SamplingPipeline is not None:
            made["imblearn.Pipeline"] = lambda d: SamplingPipeline([
                ("sampler", self.pick([RandomOverSampler, RandomUnderSampler])(
                    random_state=self.outer_seed())),
                ("model", build(d)),
            ])  # fmt: skip
            made["BalancedBaggingClassifier"] = lambda d: BalancedBaggingClassifier(
                build(d), n_estimators=2, random_state=self.outer_seed()
            )
        if ExponentiatedGradient is not None:
            made["ExponentiatedGradient"] = lambda d: ExponentiatedGradient(
                as_binary(d), DemographicParity(), max_iter=2
            )
        if SplitConformalClassifier is not None:
            made["SplitConformalClassifier"] = lambda d: SplitConformalClassifier(
                build(d), prefit=False
            )
        return made

    def _regressors(self):
        def build(depth):
            return self.build("regressor", depth)

        def several(depth):
            return [(f"m{i}", build(depth)) for i in range(self.pick([1, 2, 3]))]

        def target(depth):
            how = self.pick([
                {}, {"func": halved, "inverse_func": doubled}, {"transformer": StandardScaler()},
                {"func": standardised, "inverse_func": doubled, "check_inverse": False},
                {"transformer": DPStandardScaler(bounds=(-2.0, 2.0))},
            ])  # fmt: skip
            return TransformedTargetRegressor(build(depth), **how)

        def searched(depth):
            inner, grid = self._grid("regressor", depth)
            return GridSearchCV(inner, grid, cv=self._folds())

        made = {
            "Pipeline": self._pipeline("regressor"),
            "VotingRegressor": lambda d: VotingRegressor(several(d)),
            "StackingRegressor": lambda d: StackingRegressor(
                several(d), final_estimator=build(d), cv=2),
            "BaggingRegressor": lambda d: BaggingRegressor(
                build(d), n_estimators=self.pick([1, 2]), bootstrap=self.chance(0.6),
                max_samples=self.pick([1.0, 0.5]), random_state=self.outer_seed()),
            "TransformedTargetRegressor": target,
            "RFE": lambda d: RFE(self.leaf("regressor"), n_features_to_select=1),
            "GridSearchCV": searched,
            "FrozenEstimator": lambda d: FrozenEstimator(build(d)),
            "AdaBoostRegressor": lambda d: AdaBoostRegressor(
                build(d), n_estimators=2, random_state=self.outer_seed()),
            "RANSACRegressor": lambda d: RANSACRegressor(
                build(d), min_samples=0.5, max_trials=2, random_state=0),
            "Hoarder": lambda d: Hoarder(build(d)),
        }  # fmt: skip
        if SplitConformalClassifier is not None:
            made["CrossConformalRegressor"] = lambda d: CrossConformalRegressor(build(d), cv=2)
        return made

    def _locations(self):
        return {
            "Pipeline": self._pipeline("location"),
            "FrozenEstimator": lambda d: FrozenEstimator(self.build("location", d)),
            "Hoarder": lambda d: Hoarder(self.build("location", d)),
        }

    def _tables(self):
        """Return wrappers of models with several outputs, which stand outermost."""
        return {
            "MultiOutputClassifier": lambda d: MultiOutputClassifier(self.build("classifier", d)),
            "ClassifierChain": lambda d: ClassifierChain(
                self.build("classifier", d), cv=self.pick([None, 2]),
                order=self.pick([None, "random"]), random_state=self.outer_seed()),
            "OneVsRestClassifier, several labels": lambda d: OneVsRestClassifier(
                self.build("classifier", d)),
            "MultiOutputRegressor": lambda d: MultiOutputRegressor(self.build("regressor", d)),
            "RegressorChain": lambda d: RegressorChain(
                self.build("regressor", d), cv=self.pick([None, 2])),
        }  # fmt: skip

    # data

    def data(self, estimator, kind, outputs):
        """Return two neighbouring data sets for an estimator."""
        supervised = kind in ("classifier", "regressor")
        parts = [p for p in private_parts(estimator) if kind_of(p) == kind or not supervised]
        leaf = parts[0] if parts else None
        null = self.adjacency == "zero-out"
        usual = not null and outputs == 1 and self.n_classes == 2
        if usual and leaf is not None and self.chance(0.4) and kind != "transformer":
            n_rows = self.pick([8, 12, 24])
            if kind != "location":
                self.n_features = 2
            pairs = made_pairs(leaf, None, "replace-one", n_rows)
            pair = self.pick(pairs[:8])
            first, second = (tuple(np.asarray(part) for part in s) for s in (
                pair.first, pair.second))  # fmt: skip
            labels = [s[1] for s in (first, second)] if kind == "classifier" else []
            same = labels and all(np.unique(v, return_counts=True)[1].min() > 2 for v in labels)
            if kind != "classifier" or same:
                return first, second
        n_rows = self.pick([12, 24, 40])
        X = self.rng.normal(size=(n_rows, self.n_features)) / np.sqrt(self.n_features)
        y = None
        if kind == "classifier":
            shape = n_rows if outputs == 1 else (n_rows, outputs)
            y = (np.arange(int(np.prod(shape))) * 7 // 3 % self.n_classes).reshape(shape)
        elif kind == "regressor":
            y = self.rng.uniform(-1, 1, n_rows if outputs == 1 else (n_rows, outputs))
        row = int(self.rng.integers(n_rows))
        side = np.zeros(self.n_features)
        side[int(self.rng.integers(self.n_features))] = self.pick([1.0, 1.0, 30.0])
        if self.chance(0.5):
            side = np.full(self.n_features, self.pick([1.0, 10.0]) / np.sqrt(self.n_features))
        X[row] = side
        other = X.copy()
        other[row] = np.nan if null else -side
        first, second = [X], [other]
        if y is not None:
            again = y.copy()
            if not null and self.chance(0.5):
                if kind == "classifier":
                    again[row] = (again[row] + 1) % self.n_classes
                else:
                    again[row] = -5 * np.sign(again[row])
                if self.chance(0.5):
                    second = [X.copy()]
            first.append(y)
            second.append(again)
        if self.chance(0.1) and not null:
            first[0], second[0] = sparse.csr_array(first[0]), sparse.csr_array(second[0])
        if kind == "classifier" and self.chance(0.1) and "SelfTrainingClassifier" in self.names:
            for side in (first, second):
                side[1] = side[1].copy()
                side[1][(row + 1) % n_rows] = -1
        return tuple(first), tuple(second)


def private_parts(estimator):
    """Yield the private estimators among the parameters of an estimator, itself included."""
    todo, seen = [estimator], set()
    while todo:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if is_private(one):
            yield one
        if hasattr(one, "get_params"):
            for value in one.get_params(deep=False).values():
                todo += list(_inside(value))


def draw_case(seed, only=None):
    """Return the case of a seed; `only` is the name of the outermost wrapper."""
    draw = Draw(seed, only)
    kinds = ["classifier"] * 6 + ["regressor"] * 3 + ["location", "transformer", "table", "table"]
    kind, outputs = draw.pick(kinds), 1
    tables = draw._tables()
    if only:
        kind = "table" if only in tables else kind
        for possible in ("classifier", "regressor", "location"):
            if only not in tables and only in getattr(draw, f"_{possible}s")():
                kind = possible
                break
    draw.kind = kind
    if kind == "table":
        name = only or draw.pick(list(tables))
        draw._note(name)
        outputs, draw.n_classes = 2, 2
        estimator = tables[name](1)
        kind = "regressor" if "Regressor" in name else "classifier"
    elif kind == "transformer":
        makers = [draw.leaf, lambda _: draw._columns(0), lambda _: draw._union(0)]
        estimator = draw.pick(makers)("transformer")
    else:
        estimator = draw.build(kind, least=1 if draw.chance(0.85) else 0)
    estimators = [estimator]
    if kind in ("classifier", "regressor", "location") and outputs == 1 and draw.chance(0.1):
        draw._note("several models")
        estimators.append(draw.build(kind, depth=2))
    pair = draw.data(estimators[0], kind, outputs)
    nulls = {"Pipeline", "DPGridSearchCV", "no wrapper", "several models", "NormClipper"}
    if (
        draw.adjacency == "zero-out"
        and draw.public
        and set(draw.names) <= nulls
        and supervised(pair, kind)
    ):
        # what a user has of null rows: a label that is none of the public ones
        (X, y), (_, _) = pair
        row = int(np.flatnonzero(np.isnan(np.asarray(pair[1][0])).any(axis=1))[0])
        again = y.copy()
        again[row] = 9
        pair = (X, y), (X.copy(), again)
    options = {
        "adjacency": draw.adjacency,
        "budget": draw.pick([None, None, None, "memory", "file"])
        if draw.seeds in ("none", "generator") or draw.chance(0.1)
        else None,
        "round trip": draw.pick([None, None, "clone", "deepcopy", "pickle", "skops"]),
        "refit": draw.chance(0.15),
        "jobs": draw.pick([None] * 12 + ["threading", "loky"]),
        "n_draws": draw.pick([0, 128]),
        "transform": kind == "transformer" or draw.chance(0.05),
    }
    names = tuple(draw.names) or ("no wrapper",)
    return Case(seed, estimators, names, pair, options, draw.adjacency == "zero-out")


def supervised(pair, kind):
    """Return whether rows of a pair have one label each."""
    return kind == "classifier" and pair[0][1].ndim == 1


def fit_all(case, estimators, args):
    """Fit the estimators of a case, as a user does; return them."""
    frozen = {}
    for estimator in estimators:
        for part in frozen_inside(estimator):
            # what is frozen is fitted first, and once, wherever it stands
            if id(part) not in frozen:
                frozen[id(part)] = part
                part.estimator.fit(*args)
        if case.options["transform"] and hasattr(estimator, "fit_transform"):
            estimator.fit_transform(*args)
        else:
            # some want a second argument, whatever it is
            estimator.fit(*args, *[None][: 2 - len(args)])
    return estimators


def frozen_inside(estimator):
    """Yield the frozen estimators inside, the innermost first."""
    if hasattr(estimator, "get_params"):
        for value in estimator.get_params(deep=False).values():
            for part in _inside(value):
                yield from frozen_inside(part)
    if isinstance(estimator, FrozenEstimator):
        yield estimator
