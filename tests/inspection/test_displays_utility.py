# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores against epsilon: what is drawn is what was computed."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyUtilityDisplay
from skdp.inspection._utility_display import private_steps, scaled_epsilons, sum_of_deltas

plt.switch_backend("agg")
rng = np.random.default_rng(0)
X = rng.uniform(size=(60, 3))
y = (X[:, 0] > 0.5).astype(int)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


class Echo(ClassifierMixin, BaseEstimator):
    """Scores as its epsilon says, and as its seed says if there is one."""

    def __init__(self, epsilon=1.0, delta=1e-5, C=0.0, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.random_state = random_state

    def fit(self, X, y, groups=None):
        self.classes_ = np.unique(y)
        self.n_groups_ = None if groups is None else len(groups)
        return self

    def score(self, X, y):
        more = 0.0 if self.random_state is None else self.random_state / 2**31
        more += 100 if self.n_groups_ else 0
        return self.epsilon + self.C + more


def test_the_curve_the_band_and_the_lines_across():
    scores = np.array([[0.1, 0.3], [0.4, 0.6], [0.7, 0.7]])
    display = PrivacyUtilityDisplay(
        [0.5, 1, 2], scores, baseline_scores=[0.8, 1.0], chance=0.05, score_name="accuracy",
        name="ours", baseline_name="theirs", delta=1e-6,
    ).plot()  # fmt: skip
    curve, baseline, chance = display.lines_
    np.testing.assert_array_equal(curve.get_xdata(), [0.5, 1, 2])
    np.testing.assert_allclose(curve.get_ydata(), [0.2, 0.5, 0.7])
    np.testing.assert_allclose(baseline.get_ydata(), 0.9)
    np.testing.assert_allclose(chance.get_ydata(), 0.05)
    lower, upper = display.band()
    np.testing.assert_allclose(upper - lower, 2 * scores.std(axis=1, ddof=1))
    np.testing.assert_array_equal(display.band("min-max"), [scores.min(1), scores.max(1)])
    drawn = display.fill_between_.get_paths()[0].vertices
    assert {*np.round(lower, 9)} <= {*np.round(drawn[:, 1], 9)}
    ax = display.ax_
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "epsilon (nats) at delta = 1e-6"
    assert ax.get_ylabel() == "accuracy, mean ± s.d."
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["ours", "theirs, not private", "guessing"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "1", "2"]


def test_several_curves_differ_without_colour():
    ax, styles = None, set()
    for i, delta in enumerate([1e-5, 1e-5, 1e-6]):
        display = PrivacyUtilityDisplay(
            [1, 10 * (i + 1)], [0.1, 0.2], name=f"curve {i}", delta=delta, baseline_scores=0.9
        ).plot(ax=ax)
        ax = display.ax_
        styles.add((display.lines_[0].get_linestyle(), display.lines_[0].get_marker()))
        expected = "epsilon (nats)" + (" at delta = 1e-5" if i < 2 else "")
        assert ax.get_xlabel() == expected
        assert display.fill_between_ is None
    assert len(styles) == 3
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["curve 0", "curve 1", "curve 2"] + ["not private"] * 3
    low, high = ax.get_xlim()
    assert low < 1
    assert high > 30
    assert ax.get_ylabel() == "score"


@pytest.mark.covering
@pytest.mark.parametrize("epsilons", [[1.0], [1e-3, 1e3], np.geomspace(1e-3, 1e3, 40), [1, 1.01]])
@pytest.mark.parametrize("band", ["std", "min-max", None])
def test_one_point_and_huge_ranges(epsilons, band):
    scores = np.tile([0.4, 0.6], (len(epsilons), 1))
    display = PrivacyUtilityDisplay(epsilons, scores).plot(band=band)
    low, high = display.ax_.get_xlim()
    assert low < min(epsilons) <= max(epsilons) < high
    assert (display.fill_between_ is None) == (band is None)
    display.figure_.canvas.draw()
    # as many as the version of matplotlib likes, but never one for every point
    assert sum(bool(t.get_text()) for t in display.ax_.get_xticklabels()) <= 11


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilons": []}, "epsilons must be a non-empty list"),
        ({"epsilons": [2, 1]}, "epsilons must be increasing"),
        ({"epsilons": [1, 1]}, "epsilons must be increasing"),
        ({"epsilons": [0, 1]}, "epsilons must be positive"),
        ({"epsilons": [1, np.nan]}, "epsilons must be finite"),
        ({"epsilons": [1, np.inf]}, "epsilons must be finite"),
        ({"epsilons": ["a", "b"]}, "epsilons must be numbers"),
        ({"epsilons": 3.0}, "epsilons must be a non-empty list"),
        ({"scores": [0.1, 0.2, 0.3]}, "a row for each of 2 epsilons; got the shape"),
        ({"scores": [[], []]}, "a row for each of 2 epsilons"),
        ({"scores": [[[1.0]], [[1.0]]]}, "a row for each of 2 epsilons"),
        ({"scores": [[1.0], [1.0, 2.0]]}, "scores must be numbers"),
        ({"scores": [0.1, np.nan]}, "scores must be finite"),
        ({"scores": [0.1, -np.inf]}, "scores must be finite"),
        ({"baseline_scores": []}, "baseline_scores must be a non-empty list"),
        ({"baseline_scores": [np.nan]}, "baseline_scores must be finite"),
        ({"chance": np.inf}, "chance must be finite"),
    ],
)
def test_what_cannot_be_drawn(given, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay(**{"epsilons": [1, 2], "scores": [0.1, 0.2], **given})


def test_bands_are_checked():
    with pytest.raises(ValueError, match="band must be 'std' or 'min-max'; got 'iqr'"):
        PrivacyUtilityDisplay([1], [0.5]).plot(band="iqr")


def test_cross_validation_at_every_epsilon():
    display = PrivacyUtilityDisplay.from_estimator(
        Echo(), X, y, epsilons=[0.5, 2.0], cv=3, n_repeats=2, baseline=LogisticRegression()
    )
    np.testing.assert_array_equal(display.scores, [[0.5] * 6, [2.0] * 6])
    assert display.baseline_scores.shape == (6,)
    assert (display.name, display.baseline_name) == ("Echo", "LogisticRegression")
    assert display.delta == 1e-5
    assert display.score_name == "accuracy"
    with_groups = PrivacyUtilityDisplay.from_estimator(
        Echo(), X, y, epsilons=[1.0], cv=3, params={"groups": np.arange(60)}, name="ours"
    )
    np.testing.assert_array_equal(with_groups.scores, [[101.0] * 3])
    assert with_groups.name == "ours"


def test_seeds_differ_between_fits_and_can_be_repeated():
    def scores(random_state):
        return PrivacyUtilityDisplay.from_estimator(
            Echo(), X, y, epsilons=[1, 2], cv=ShuffleSplit(2, random_state=0), n_repeats=2,
            random_state=random_state,
        ).scores  # fmt: skip

    first = scores(0)
    assert len(np.unique(first - np.array([[1], [2]]))) == 8
    np.testing.assert_array_equal(first, scores(0))
    assert not np.any(first == scores(1))


def test_private_estimators_and_a_pipeline():
    model = make_pipeline(
        DPStandardScaler(epsilon=1.0, delta=1e-6, bounds=(0, 1)),
        DPLogisticRegression(epsilon=3.0, delta=1e-6, classes=(0, 1)),
    )
    steps = private_steps(model)
    assert steps == {"dpstandardscaler__epsilon": 1.0, "dplogisticregression__epsilon": 3.0}
    assert scaled_epsilons(steps, 2.0) == {
        "dpstandardscaler__epsilon": 0.5, "dplogisticregression__epsilon": 1.5,
    }  # fmt: skip
    assert sum_of_deltas(model, steps) == 2e-6
    display = PrivacyUtilityDisplay.from_estimator(
        model, X, y, epsilons=[1.0, 1e3], cv=2, random_state=0, scoring="neg_log_loss"
    )
    assert display.name == "DPLogisticRegression"
    assert display.score_name == "negative log loss"
    assert model[0].epsilon == 1.0


def test_budgets_inside_of_a_column_transformer_are_found():
    columns = ColumnTransformer([("scale", DPStandardScaler(epsilon=2.0, bounds=(0, 1)), [0])])
    steps = private_steps(make_pipeline(columns, Echo(), SVR()))
    assert steps == {"columntransformer__scale__epsilon": 2.0, "echo__epsilon": 1.0}


def test_a_meta_estimator_with_a_budget_of_its_own_decides_alone():
    class Whole(Echo):
        def __init__(self, estimator=None, epsilon=1.0, delta=1e-5, C=0.0, random_state=None):
            super().__init__(epsilon, delta, C, random_state)
            self.estimator = estimator

    assert private_steps(make_pipeline(Whole(Echo(7.0), 3.0))) == {"whole__epsilon": 3.0}
    assert sum_of_deltas(Whole(Echo()), {"epsilon": 1.0}) == 1e-5
    assert sum_of_deltas(Whole(Echo(), delta=None), {"epsilon": 1.0}) is None


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVR(), "SVR has no epsilon"),
        (LogisticRegression(), "LogisticRegression has no epsilon"),
        (OneVsRestClassifier(Echo()), "belongs to a part of OneVsRestClassifier"),
        (GridSearchCV(Echo(), {"C": [1.0]}), "belongs to a part of GridSearchCV"),
        (Echo, "must be an estimator with parameters"),
        (None, "must be an estimator with parameters"),
        (make_pipeline(Echo(epsilon=np.inf), Echo()), "must be positive and finite to be scaled"),
        (make_pipeline(Echo(epsilon=None), Echo()), "must be positive and finite to be scaled"),
    ],
)
def test_estimators_without_one_clear_budget(estimator, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_estimator(estimator, X, y, epsilons=[1.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_repeats": 0}, "n_repeats must be an integer, at least 1; got 0"),
        ({"n_repeats": None}, "n_repeats must be an integer"),
        ({"n_repeats": True}, "n_repeats must be an integer"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"random_state": np.random.RandomState(0)}, "random_state must be an integer"),
        ({"scoring": ["accuracy"]}, "scoring must be one score"),
        ({"epsilons": [1.0, -1.0]}, "epsilons must be positive"),
        ({"epsilons": [2.0, 1.0]}, "epsilons must be increasing"),
    ],
)
def test_parameters_are_checked_before_any_fit(given, message):
    class Never(Echo):
        def fit(self, X, y):
            raise AssertionError

    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_estimator(Never(), X, y, **{"epsilons": [1.0], **given})
