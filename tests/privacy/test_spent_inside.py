# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private fits inside of meta-estimators: counted, each once, and what is missing is named."""

import copy
import math
import pickle
import re
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.image import PatchExtractor
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPStandardScaler,
    LedgerDisplay,
    NormClipper,
    PrivacyBudget,
    privacy_card,
    privacy_spent,
)
from skdp.privacy import gdp_epsilon, gdp_mu

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
THREE = np.arange(60) % 3
BOTH = np.column_stack([Y, 1 - Y])
EPSILON, DELTA = 0.5, 1e-6


def classifier(**parameters):
    return DPLogisticRegression(
        **{"data_norm": 1.0, "epsilon": EPSILON, "max_iter": 2, **parameters}
    )


def regressor():
    return DPLpRegressor(epsilon=EPSILON, max_iter=2)


def twice(make):
    return [("a", make()), ("b", make())]


def total_of(n_fits, copies=None):
    """Return what so many Gaussian fits come to, each to rows of which some count several times."""
    squares = n_fits if copies is None else sum(k**2 for k in copies)
    return gdp_epsilon(gdp_mu(EPSILON, DELTA) * math.sqrt(squares), n_fits * DELTA)


def copies_in(holder):
    """Return how often the same row was drawn for each member; None unless rows were drawn so."""
    if getattr(holder, "bootstrap", False):
        return [np.bincount(rows).max() for rows in holder.estimators_samples_]
    return None


# estimator, targets, number of fits that were kept, and what is missing if anything is
HOLDERS = [
    (VotingClassifier(twice(classifier)), Y, 2, None),
    (VotingRegressor(twice(regressor)), X[:, 0], 2, None),
    (OneVsRestClassifier(classifier()), THREE, 3, None),
    (MultiOutputClassifier(classifier()), BOTH, 2, None),
    (MultiOutputRegressor(regressor()), X[:, :2], 2, None),
    (ClassifierChain(classifier()), BOTH, 2, None),
    (ClassifierChain(classifier(), cv=2), BOTH, 2, "fits on folds"),
    (RegressorChain(regressor()), X[:, :2], 2, None),
    (FixedThresholdClassifier(classifier()), Y, 1, None),
    (SelectFromModel(classifier()), Y, 1, None),
    (TransformedTargetRegressor(regressor()), X[:, 0], 1, None),
    (FrozenEstimator(classifier().fit(X, Y)), Y, 1, None),
    (BaggingClassifier(FrozenEstimator(classifier().fit(X, Y)), 2, bootstrap=False), Y, 1, None),
    (OneVsOneClassifier(classifier()), THREE, 3, "the number of rows of every pair of classes"),
    (BaggingClassifier(classifier(), 2, bootstrap=False), Y, 2, "wrote a seed"),
    (BaggingClassifier(classifier(), 2), Y, 2, "wrote a seed"),
    (BaggingRegressor(regressor(), 2), X[:, 0], 2, "wrote a seed"),
    (StackingClassifier(twice(classifier), classifier(), cv=2), Y, 3, "fits on folds"),
    (CalibratedClassifierCV(classifier(), cv=2), Y, 2, "_SigmoidCalibration inside of Calib"),
    (CalibratedClassifierCV(classifier(), cv=2, ensemble=False), Y, 1, "what calibrates it"),
    (TunedThresholdClassifierCV(classifier(), cv=2), Y, 1, "the threshold, chosen by exact"),
    (RFE(classifier(), n_features_to_select=1), Y, 1, "the fits of its earlier rounds"),
    (RFECV(classifier(), cv=2), Y, 1, "the choice among them by exact scores"),
    (SelfTrainingClassifier(classifier()), np.where(Y == 0, -1, THREE), 1, "its earlier rounds"),
]


@pytest.mark.sample(6, 1000)
@pytest.mark.parametrize(
    ("holder", "targets", "n_fits", "missing"),
    HOLDERS,
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_what_a_meta_estimator_keeps_is_counted_and_the_rest_is_named(
    holder, targets, n_fits, missing
):
    holder = holder.fit(X, targets)
    for model in (holder, pickle.loads(pickle.dumps(holder))):
        spent = privacy_spent(model)
        assert spent.n_fits == n_fits
        assert spent.delta == pytest.approx(n_fits * DELTA)
        assert spent.epsilon == pytest.approx(total_of(n_fits, copies_in(model)), rel=1e-3)
        assert spent.covered == (spent.epsilon, spent.delta)
        status = privacy_card(model).to_dict()["claim"]["status"]
        if missing is None:
            assert spent.uncovered == ()
            assert tuple(spent) == spent.covered
            assert status == "holds"
        else:
            assert missing in "; ".join(map(str, spent.uncovered))
            assert status == "none"


def test_behind_a_scaler_the_total_is_not_that_of_the_scaler():
    # it was once: 0.1
    scaler = DPStandardScaler(epsilon=0.1, bounds=(-1, 1))
    good = Pipeline([("scale", scaler), ("vote", VotingClassifier(twice(classifier)))]).fit(X, Y)
    epsilon, _ = privacy_spent(good)
    # at three times the delta of one
    assert 2 * EPSILON + 0.1 > epsilon > 0.65
    assert privacy_spent(good).n_fits == 3
    bad = make_pipeline(clone(scaler), RFE(classifier(), n_features_to_select=1)).fit(X, Y)
    with pytest.raises(ValueError, match=r"step 'rfe': the fits of its earlier rounds.*covered"):
        tuple(privacy_spent(bad))
    public = make_pipeline(clone(scaler), LogisticRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="step 'logisticregression', which was fitted"):
        tuple(privacy_spent(public))
    assert privacy_spent(public).covered[0] == pytest.approx(0.1, rel=1e-6)


def test_public_parts_of_a_meta_estimator_are_named():
    vote = VotingClassifier([("a", classifier()), ("b", LogisticRegression())]).fit(X, Y)
    spent = privacy_spent(Pipeline([("vote", vote)]))
    told = "LogisticRegression inside of VotingClassifier, which was fitted on the data"
    assert [(i.kind, i.step, i.text) for i in spent.uncovered] == [("step", "vote", told)]
    inner = make_pipeline(StandardScaler(), classifier())
    spent = privacy_spent(OneVsRestClassifier(inner).fit(X, THREE))
    assert [i.text for i in spent.uncovered] == [
        "StandardScaler inside of OneVsRestClassifier, which was fitted on the data"
    ]
    with pytest.raises(TypeError, match="no private estimator that it keeps is fitted"):
        privacy_spent(VotingClassifier([("b", LogisticRegression())]).fit(X, Y))


def test_label_sets_that_are_read_are_assumed_public():
    each = OneVsRestClassifier(classifier(classes=[0, 1])).fit(X, THREE)
    told = "the set of class labels, which OneVsRestClassifier read from y"
    assert privacy_spent(each).ledger.assumptions == (told,)
    assert told in privacy_card(each).to_dict()["assumptions"]


def test_meta_estimators_hold_meta_estimators():
    inner = OneVsRestClassifier(make_pipeline(NormClipper(), classifier()))
    search = GridSearchCV(classifier(), {"C": [0.1, 1.0]}, cv=KFold(2))
    outer = VotingClassifier([("each", inner), ("search", search)]).fit(X, THREE)
    spent = privacy_spent(outer)
    # 3 labels; 2 candidates on 2 folds, and the best
    assert spent.n_fits == 3 + 2 * 2 + 1
    assert [item.kind for item in spent.uncovered] == ["choice"]
    public = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=KFold(2))
    outer = VotingClassifier([("a", classifier()), ("search", public)]).fit(X, Y)
    assert [item.kind for item in privacy_spent(outer).uncovered] == ["fits"]
    private = DPGridSearchCV(classifier(classes=[0, 1, 2]), {"C": [0.1, 1.0]}, epsilon=3.0)
    outer = VotingClassifier([("search", private)]).fit(X, THREE)
    assert privacy_spent(outer).epsilon <= 3.0
    assert privacy_spent(outer).n_fits == 1


class Pair(ClassifierMixin, BaseEstimator):
    """A meta-estimator of another library, which keeps its fits where it likes."""

    def __init__(self, model=None, other=None):
        self.model, self.other = model, other

    def fit(self, X, y):
        """Fit copies, and keep one of them in three places."""
        first, second = clone(self.model).fit(X, y), clone(self.model).fit(X, y)
        self.members_ = {"first": [(first,), np.array([second, first], dtype=object)]}
        self.best_ = first
        self.itself_ = self
        self.classes_ = np.unique(y)
        return self


class InPlace(ClassifierMixin, BaseEstimator):
    """Fits what it was given, and no clone."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        """Fit."""
        self.model.fit(X, y)
        self.classes_ = np.unique(y)
        return self


def test_each_fit_counts_once_and_a_stranger_may_have_made_more():
    pair = Pair(classifier(), other=classifier().fit(X, Y)).fit(X, Y)
    for model, n_fits in (
        (pair, 2),
        (copy.deepcopy(pair), 2),
        (InPlace(classifier()).fit(X, Y), 1),
    ):
        spent = privacy_spent(model)
        assert spent.n_fits == n_fits
        assert spent.epsilon == pytest.approx(total_of(n_fits), rel=1e-3)
        (item,) = spent.uncovered
        assert item.kind == "rest"
        assert item.text.endswith("what it learned itself, and fits that it did not keep")


class Quiet(ClassifierMixin, BaseEstimator):
    """Learns, and has no attribute that says so."""

    def fit(self, X, y):
        """Keep a row."""
        self.classes, self.row = np.unique(y), X[0]
        return self

    def predict(self, X):
        """Predict the first label."""
        return np.full(len(X), self.classes[0])


def test_a_part_that_hides_what_it_learned_is_named():
    vote = VotingClassifier([("a", classifier()), ("b", Quiet())]).fit(X, Y)
    assert [str(item).partition(",")[0] for item in privacy_spent(vote).uncovered] == [
        "Quiet inside of VotingClassifier"
    ]


def test_a_step_that_stands_in_two_places_was_fitted_twice():
    scaler = DPStandardScaler(epsilon=0.5, bounds=(-1, 1))
    budget = PrivacyBudget(9.0, 1e-3)
    model = make_pipeline(scaler, scaler, classifier(budget=budget))
    scaler.set_params(budget=budget)
    spent = privacy_spent(model.fit(X, Y))
    assert len(budget.charges) == 3
    assert spent.delta == pytest.approx(budget.spent[1])


class Doubled(BaseEstimator):
    """A sampler with the interface of imbalanced-learn."""

    def fit(self, X, y):
        """Do nothing."""
        self.n_ = len(X)
        return self

    def fit_resample(self, X, y):
        """Repeat every row."""
        return np.repeat(X, 2, axis=0), np.repeat(y, 2)


def test_steps_that_resample_rows_are_named():
    model = Pipeline([("double", Doubled().fit(X, Y)), ("model", classifier().fit(X, Y))])
    (item,) = privacy_spent(model).uncovered
    assert item.step == "double"
    assert "which resampled the rows: one row may count any number of times" in item.text


def test_patches_of_an_image_are_more_rows_than_there_are_people():
    images = RNG.uniform(size=(20, 4, 4))
    steps = PatchExtractor(patch_size=(3, 3)), FunctionTransformer(_flat)
    (item,) = privacy_spent(make_pipeline(*steps, DPMean(data_norm=1.0)).fit(images)).uncovered
    assert item.step == "patchextractor"
    assert "one row may count any number of times" in item.text


def _flat(patches):
    return patches.reshape(len(patches), -1)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_which_labels_are_fitted_at_all_is_named(n_rows):
    # a label that no row has is not fitted, and one row more that has it is a fit more
    rare = np.column_stack([Y, 1 - Y, np.arange(60) < n_rows]).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = OneVsRestClassifier(classifier()).fit(X, rare)
    found = privacy_spent(model).uncovered
    (item,) = [item for item in found if item.kind == "rest"]
    assert "which labels some rows have and others have not" in item.text
    assert len(found) == 2 - n_rows
    columns = MultiOutputClassifier(classifier(classes=(0, 1)))
    assert not privacy_spent(columns.fit(X, rare)).uncovered


def test_the_templates_of_a_meta_estimator_are_no_fits_of_its_own():
    fitted = classifier().fit(X, Y)
    vote = VotingClassifier([("a", fitted)]).fit(X, Y)
    assert privacy_spent(vote).n_fits == 1
    assert privacy_spent(vote, fitted).n_fits == 2


def test_budgets_and_totals_agree():
    budget = PrivacyBudget(10.0, 1e-4)
    made = OneVsRestClassifier(make_pipeline(NormClipper(), classifier(budget=budget)))
    spent = privacy_spent(made.fit(X, THREE))
    assert spent.n_fits == len(budget.charges) == 3
    assert spent.delta == pytest.approx(budget.spent[1])
    assert spent.epsilon <= budget.spent[0]
    kinds = [note["kind"] for note in privacy_card(made).to_dict()["notes"]]
    assert kinds == ["shared budget"]
    (step,) = privacy_card(made).to_dict()["public"]["steps"]
    assert step["role"] == "holds private fits, which are on the ledger"
    assert LedgerDisplay.from_estimator(made).total == spent.epsilon


# -- a pair that may not be whole --------------------------------------------------------------


def test_a_whole_total_is_a_pair():
    spent = privacy_spent(DPMean(epsilon=0.456, mechanism="laplace", data_norm=1.0).fit(X))
    assert (spent[0], spent[1], spent[-1], spent[:1]) == (spent.epsilon, 0.0, 0.0, (spent.epsilon,))
    assert len(spent) == 2
    assert np.round(spent, 1).tolist() == [0.5, 0.0]
    assert np.asarray(spent, dtype=np.float32).dtype == np.float32
    assert list(reversed(spent)) == [0.0, spent.epsilon]
    with pytest.raises(IndexError):
        spent[2]
    assert spent._repr_html_() == f"<code>{spent}</code>"


@pytest.mark.parametrize(
    "use", [tuple, list, lambda s: s[0], lambda s: s[:], np.round, np.asarray, max, lambda s: [*s]]
)
def test_a_total_that_is_not_whole_is_no_pair(use):
    spent = privacy_spent(make_pipeline(StandardScaler(), classifier()).fit(X, Y))
    with pytest.raises(ValueError, match=r"step 'standardscaler', which was fitted on the data"):
        use(spent)
    # its text and its length are there
    assert len(spent) == 2
    assert bool(spent)
    html = spent._repr_html_()
    assert "\n" not in html
    assert "not covered: step &#x27;standardscaler&#x27;" in html
    assert re.match(r"\(epsilon=0\.5, delta=1e-06\)", str(spent))


def test_exact_scores_are_missing_from_a_total_too():
    for spent in (
        privacy_spent(classifier(), cv=3),
        privacy_spent(GridSearchCV(classifier(), {"C": [1.0]}, cv=KFold(2)).fit(X, Y)),
    ):
        with pytest.raises(ValueError, match="exact"):
            tuple(spent)
        assert spent.covered[0] > EPSILON


class Centred(FunctionTransformer):
    """Has the tags of what it derives from, and learns."""

    def fit(self, X, y=None):
        """Learn a mean."""
        self.mean_ = np.mean(X, axis=0)
        return self

    def transform(self, X):
        """Subtract it."""
        return X - self.mean_


class CentredInNorm(NormClipper):
    """The same of ours."""

    fit, transform = Centred.fit, Centred.transform


class CentredUnits(Normalizer):
    """The same, in units."""

    fit, transform = Centred.fit, Centred.transform


class Squares(FunctionTransformer):
    """Has a function of its own, and no method."""

    def __init__(self):
        super().__init__(np.square)


class Shifted(TransformerMixin, BaseEstimator):
    """Says itself that it learns nothing."""

    def fit(self, X, y=None):
        """Learn nothing."""
        return self

    def transform(self, X):
        """Add one."""
        return np.asarray(X) + 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@pytest.mark.parametrize("step", [Centred(), CentredInNorm(), CentredUnits()])
def test_a_tag_says_nothing_of_a_class_that_fits_anew(step):
    model = make_pipeline(step, classifier())
    (item,) = privacy_spent(model.fit(X, Y)).uncovered
    assert "which was fitted on the data" in item.text
    with pytest.raises(ValueError, match=r"learns from the data|not covered"):
        DPGridSearchCV(model, {"dplogisticregression__C": [1.0, 2.0]}).fit(X, Y)


@pytest.mark.parametrize("step", [Squares(), Shifted()])
def test_a_tag_counts_where_it_was_written(step):
    assert privacy_spent(make_pipeline(step, classifier()).fit(X, Y)).uncovered == ()


@pytest.mark.parametrize("refit", [True, False])
def test_parameters_that_were_changed_after_a_search_tell_no_price(refit):
    member = classifier()
    search = GridSearchCV(member, {"C": [1.0, 2.0]}, cv=KFold(2), refit=refit).fit(X, Y)
    before = privacy_spent(search)
    assert [item.kind for item in before.uncovered] == ["choice"]
    assumed = "the parameters of what GridSearchCV fitted, as they are now"
    assert (assumed in before.ledger.assumptions) is not refit
    member.set_params(epsilon=1e-3)
    after = privacy_spent(search)
    if refit:
        assert "changed after them, so their price is unknown" in str(after)
    else:
        # nobody kept them
        assert assumed in after.ledger.assumptions


def test_columns_that_rows_choose_are_named_where_no_fit_is_kept():
    steps = make_column_transformer(("passthrough", lambda rows: [int(rows[0, 0] > 0)]))
    model = make_pipeline(steps, classifier(classes=[0, 1]))
    search = GridSearchCV(model, {"dplogisticregression__C": [1.0]}, cv=KFold(2), refit=False)
    for spent in (privacy_spent(search.fit(X, Y)), privacy_spent(model, cv=KFold(2))):
        told = "; ".join(map(str, spent.uncovered))
        assert "chosen by a function that is handed the rows" in told


# scikit-learn has callbacks from 1.9 on.
if find_spec("sklearn.callback"):
    from sklearn.callback import ProgressBar

    class Watcher:
        """Keeps how many rows it was handed."""

        def __init__(self):
            self.seen = []

        def setup(self, estimator, context):
            """Begin."""

        def teardown(self, estimator, context):
            """End."""

        def on_fit_task_begin(self, estimator, context, *, X=None, **more):
            """Look at the rows."""
            self.seen += [] if X is None else [X.shape]

        def on_fit_task_end(self, estimator, context, **more):
            """Look away."""

    @pytest.mark.parametrize("kind", ["pipeline", "search", "a search of it", "its folds"])
    @pytest.mark.filterwarnings("ignore:.*does not support callbacks")
    def test_callbacks_of_what_holds_steps_see_rows(kind):
        watcher = Watcher()
        pipeline = make_pipeline(NormClipper(), classifier())
        if kind != "search":
            pipeline.set_callbacks(watcher)
        model = pipeline
        if "search" in kind:
            model = GridSearchCV(pipeline, {"dplogisticregression__C": [1.0]}, cv=KFold(2))
            model.set_params(refit=kind == "search")
        if kind == "search":
            model.set_callbacks(watcher)
        model.fit(X, Y)
        assert watcher.seen
        spent = privacy_spent(model, cv=KFold(2) if kind == "its folds" else None)
        assert sum("its callbacks, which were handed the rows" in str(i) for i in spent.uncovered)
        # ours hand them none, and a bar looks at none
        pipeline = make_pipeline(NormClipper(), classifier().set_callbacks(Watcher()))
        assert privacy_spent(pipeline.set_callbacks(ProgressBar()).fit(X, Y)).uncovered == ()
