# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores of private rows that are paid for: values, intervals, prices, bad input."""

import ast
import inspect
import math
import pickle
import textwrap
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn import metrics as exact
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibrationDisplay
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import (
    DPHingeSVM,
    DPLogisticRegression,
    DPRidge,
    NormClipper,
    PrivacyBudget,
    privacy_card,
    privacy_spent,
)
from skdp.audit import trace_privacy
from skdp.exceptions import (
    BudgetError,
    NoisyEstimateWarning,
    PrivacyWarning,
    SeededNoiseWarning,
)
from skdp.metrics import (
    DPClassificationScores,
    DPConfusionMatrix,
    DPRegressionScores,
    DPScore,
    dp_accuracy_score,
    dp_balanced_accuracy_score,
    dp_brier_score_loss,
    dp_d2_absolute_error_score,
    dp_log_loss,
    dp_mean_absolute_error,
    dp_mean_squared_error,
    dp_r2_score,
    dp_roc_auc_score,
    make_dp_scorer,
)
from tests._audit import Taint

BOTH = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


def drawn(n_rows, seed=0, middle=-1.2, slope=2.0):
    """Return labels and calibrated probabilities."""
    rng = np.random.default_rng(seed)
    proba = 1 / (1 + np.exp(-rng.normal(middle, slope, n_rows)))
    return (rng.random(n_rows) < proba).astype(int), proba


def drawn_of_three(n_rows, seed=0):
    """Return labels and calibrated probabilities of three classes, the last the most frequent."""
    rng = np.random.default_rng(seed)
    odds = np.exp(1.5 * rng.normal(size=(n_rows, 3)) + [0.0, 0.5, 1.0])
    proba = odds / odds.sum(axis=1, keepdims=True)
    return (rng.random((n_rows, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(0, 2), proba


def exact_of_three(y, proba):
    """Return what scikit-learn computes, by names of scores."""
    labels = proba.argmax(axis=1)
    return {
        "accuracy": exact.accuracy_score(y, labels),
        "balanced_accuracy": exact.balanced_accuracy_score(y, labels),
        "roc_auc": exact.roc_auc_score(y, proba, multi_class="ovr", average="macro"),
        "log_loss": exact.log_loss(y, proba),
        "brier_score_loss": ((proba - np.eye(3)[y]) ** 2).sum(axis=1).mean(),
    }


def loud(function, *data, **terms):
    """Return a release at an epsilon that promises nothing, to see what it is without noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return function(*data, epsilon=1e5, **terms)


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_one_release_gives_what_scikit_learn_computes(delta):
    y, proba = drawn(20_000)
    paid = loud(DPClassificationScores.from_predictions, y, proba, classes=[0, 1], delta=delta)
    labels = (proba > 0.5).astype(int)
    assert_allclose(paid.matrix, exact.confusion_matrix(y, labels), atol=1)
    for name, given in (
        ("accuracy", labels), ("balanced_accuracy", labels), ("roc_auc", proba),
        ("log_loss", proba), ("brier_score_loss", proba),
    ):  # fmt: skip
        function = getattr(exact, name if name.endswith("loss") else f"{name}_score")
        assert_allclose(getattr(paid, name), function(y, given), atol=2e-3, err_msg=name)
    fpr, tpr, thresholds = paid.roc_curve()
    for low, false, true in zip(thresholds, fpr, tpr, strict=True):
        assert_allclose([false, true], [(proba[y == k] > low).mean() for k in (0, 1)], atol=2e-3)
    precision, recall, thresholds = paid.precision_recall_curve()
    assert (recall[0], precision[-1], recall[-1]) == (1.0, 1.0, 0.0)
    for low, right, found in zip(thresholds[1:], precision[1:], recall[1:], strict=False):
        above = proba > low
        assert_allclose([right, found], [y[above].mean(), above[y == 1].mean()], atol=5e-3)
    prob_true, prob_pred, intervals = paid.calibration_curve()
    assert_allclose(prob_true, prob_pred, atol=0.05)
    assert ((intervals[:, 0] <= prob_true) & (prob_true <= intervals[:, 1])).all()


def test_functions_give_what_scikit_learn_computes():
    y, proba = drawn(5000)
    labels, classes = (proba > 0.3).astype(int), {"classes": [0, 1]}
    target, found = 4 * proba, 4 * np.clip(proba + 0.1 * np.sin(9 * proba), 0, 1)
    for one, other in (
        (loud(dp_accuracy_score, y, labels), exact.accuracy_score(y, labels)),
        (loud(dp_balanced_accuracy_score, y, labels, **classes),
         exact.balanced_accuracy_score(y, labels)),
        (loud(dp_log_loss, y, proba, **classes, floor=1e-9), exact.log_loss(y, proba)),
        (loud(dp_brier_score_loss, y, proba, **classes), exact.brier_score_loss(y, proba)),
        (loud(dp_roc_auc_score, y, proba, **classes), exact.roc_auc_score(y, proba)),
        (loud(dp_mean_absolute_error, target, found, residual_bound=3.0),
         exact.mean_absolute_error(target, found)),
        (loud(dp_mean_squared_error, target, found, residual_bound=1.0),
         exact.mean_squared_error(target, found)),
        (loud(dp_r2_score, target, found, bounds=(0, 4), residual_bound=1.0),
         exact.r2_score(target, found)),
        (loud(dp_d2_absolute_error_score, target, found, bounds=(0, 4), residual_bound=1.0),
         exact.d2_absolute_error_score(target, found)),
    ):  # fmt: skip
        assert isinstance(one, DPScore)
        assert_allclose(one, other, atol=1e-3)
        assert one.interval[0] <= other <= one.interval[1]
        assert one.privacy_spent_[0] == pytest.approx(1e5, rel=1e-6)
        again = pickle.loads(pickle.dumps(one))
        assert (again, again.interval) == (one, one.interval)
    rows = np.eye(3)[np.arange(300) % 3] * 0.7 + 0.1
    names = np.array(["a", "b", "c"])[np.arange(300) % 3]
    many = {"classes": ["a", "b", "c"]}
    assert_allclose(loud(dp_log_loss, names, rows, **many), -math.log(0.8), atol=1e-3)
    assert_allclose(loud(dp_brier_score_loss, names, rows, **many), 0.06, atol=1e-3)


def test_weights_are_those_of_scikit_learn():
    y, proba = drawn(5000)
    labels, weight = (proba > 0.3).astype(int), 1 + 2 * y + proba
    own = {"sample_weight": weight}
    terms = {**own, "max_weight": 5.0}
    paid = loud(DPClassificationScores.from_predictions, y, proba, **PAIR, **terms)
    assert_allclose(paid.n_rows, weight.sum() / 5, atol=1)
    matrix = exact.confusion_matrix(y, proba > 0.5, **own)
    assert_allclose(5 * paid.matrix, matrix, atol=1)
    for one, other in (
        (paid.accuracy, exact.accuracy_score(y, proba > 0.5, **own)),
        (paid.roc_auc, exact.roc_auc_score(y, proba, **own)),
        (paid.brier_score_loss, exact.brier_score_loss(y, proba, **own)),
        (loud(dp_accuracy_score, y, labels, **terms), exact.accuracy_score(y, labels, **own)),
        (loud(dp_balanced_accuracy_score, y, labels, **PAIR, **terms),
         exact.balanced_accuracy_score(y, labels, **own)),
        (loud(dp_log_loss, y, proba, **PAIR, **terms, floor=1e-9), exact.log_loss(y, proba, **own)),
        (loud(dp_mean_absolute_error, proba, labels, residual_bound=1.0, **terms),
         exact.mean_absolute_error(proba, labels, **own)),
        (loud(dp_r2_score, proba, 0.9 * proba, bounds=(0, 1), **terms),
         exact.r2_score(proba, 0.9 * proba, **own)),
        (loud(dp_d2_absolute_error_score, proba, 0.9 * proba, bounds=(0, 1), **terms),
         exact.d2_absolute_error_score(proba, 0.9 * proba, **own)),
    ):  # fmt: skip
        assert_allclose(one, other, atol=2e-3)
        assert one.interval[0] <= other <= one.interval[1]
    # with groups a person counts the mean of these, and the number of rows may be a secret
    whose = np.arange(5000) // 5
    person = loud(dp_accuracy_score, y, labels, groups=whose, adjacency="add-remove", **terms)
    assert (person.ledger_.unit, person.ledger_.adjacency) == ("group", "add-remove")
    assert_allclose(person, exact.accuracy_score(y, labels, **own), atol=2e-3)
    few = loud(dp_accuracy_score, y, labels, adjacency="add-remove")
    assert_allclose(few, exact.accuracy_score(y, labels), atol=2e-3)
    assert few.ledger_.releases[0].query == "number of rows"


def test_decision_functions_have_curves_and_no_losses():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    score = 1e3 * (y + rng.normal(size=y.size))
    paid = loud(
        DPClassificationScores.from_predictions, y, score, classes=[0, 1], probabilities=False
    )
    assert_allclose(paid.roc_auc, exact.roc_auc_score(y, score), atol=5e-3)
    assert_allclose(paid.accuracy, ((score > 0) == y).mean(), atol=1e-3)
    for name in ("log_loss", "brier_score_loss"):
        with pytest.raises(ValueError, match=f"{name} needs probabilities"):
            getattr(paid, name)
    with pytest.raises(ValueError, match="calibration_curve needs probabilities"):
        paid.calibration_curve()


def test_several_classes_have_one_release_and_curves_of_each_against_the_rest():
    y, proba = drawn_of_three(10_000)
    names = np.array(["a", "b", "c"])
    paid = loud(SCORES, names[y], proba, classes=names)
    for name, value in exact_of_three(y, proba).items():
        score = getattr(paid, name)
        assert_allclose(score, value, atol=3e-3, err_msg=name)
        assert score.interval[0] <= value <= score.interval[1]
    assert_allclose(paid.matrix, exact.confusion_matrix(y, proba.argmax(axis=1)), atol=1)
    assert len(paid.ledger_.releases) == 2
    for k, name in enumerate(names):
        one = paid.one_vs_rest(name)
        assert one.ledger_ is paid.ledger_
        assert_array_equal(one.edges_, paid.edges_[k])
        assert_allclose(one.roc_auc, exact.roc_auc_score(y == k, proba[:, k]), atol=3e-3)
        fpr, tpr, thresholds = one.roc_curve()
        above = proba[:, k] > thresholds[len(fpr) // 2]
        rates = above[y != k].mean(), above[y == k].mean()
        assert_allclose((fpr[len(fpr) // 2], tpr[len(fpr) // 2]), rates, atol=2e-3)
        prob_true, prob_pred, _ = one.calibration_curve()
        assert_allclose(prob_true, prob_pred, atol=0.05)
    for curve in ("roc_curve", "precision_recall_curve", "calibration_curve"):
        with pytest.raises(ValueError, match=f"{curve} is about two classes, and there are 3: use"):
            getattr(paid, curve)()
    with pytest.raises(ValueError, match=r"label must be one of .*'d', and the classes are \['a'"):
        paid.one_vs_rest("d")
    with pytest.raises(ValueError, match="label must be one of more than two classes"):
        loud(SCORES, *drawn(2000), **PAIR).one_vs_rest(1)
    logits = np.log(proba)
    margins = loud(SCORES, y, logits, classes=range(3), probabilities=False)
    assert_allclose(margins.roc_auc, paid.roc_auc, atol=0.01)
    assert_allclose(margins.accuracy, paid.accuracy, atol=1e-3)
    with pytest.raises(ValueError, match="log_loss needs probabilities"):
        _ = margins.log_loss
    area = loud(dp_roc_auc_score, y, proba, classes=range(3))
    assert_allclose(area, paid.roc_auc, atol=3e-3)


def test_public_thresholds_cost_nothing():
    y, proba = drawn(4000)
    paid = DPClassificationScores.from_predictions(
        y, proba, epsilon=1.0, classes=[0, 1], thresholds=[0.2, 0.4, 0.8]
    )
    assert_array_equal(paid.edges_, [0.2, 0.4, 0.5, 0.8])
    (release,) = paid.ledger_.releases
    assert release.noise.epsilon == 1.0
    assert release.size == 10


def test_models_that_hardly_tell_rows_apart_have_a_curve():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    # probabilities between .49 and .51
    proba = 0.5 + 0.003 * (y - 0.5 + rng.normal(size=y.size))
    paid = DPClassificationScores.from_predictions(y, proba, epsilon=1.0, classes=[0, 1])
    assert_allclose(paid.roc_auc, exact.roc_auc_score(y, proba), atol=0.02)


@pytest.mark.full
def test_displays_of_scikit_learn_take_what_is_returned():
    y, proba = drawn(4000)
    paid = DPClassificationScores.from_predictions(y, proba, epsilon=1.0, classes=[0, 1])
    fpr, tpr, _ = paid.roc_curve()
    exact.RocCurveDisplay(fpr=fpr, tpr=tpr, roc_auc=paid.roc_auc).plot()
    exact.ConfusionMatrixDisplay(paid.matrix, display_labels=paid.classes_).plot()
    precision, recall, _ = paid.precision_recall_curve()
    exact.PrecisionRecallDisplay(precision, recall).plot()
    prob_true, prob_pred, _ = paid.calibration_curve()
    CalibrationDisplay(prob_true, prob_pred, None).plot()


# -- prices --------------------------------------------------------------------------------------


class Scored(ClassifierMixin, BaseEstimator):
    """Stands for a score in a trace: one column of X is what was predicted, y what is true."""

    def __init__(self, kind, epsilon=1.0, delta=0.0, adjacency="replace-one", max_weight=None):
        self.kind, self.epsilon, self.delta, self.adjacency = kind, epsilon, delta, adjacency
        self.budget = self.random_state = None
        self.max_weight = max_weight

    def fit(self, X, y, groups=None, sample_weight=None):
        function, given = KINDS[self.kind]
        terms = {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        terms |= {"groups": groups, "sample_weight": sample_weight, "max_weight": self.max_weight}
        paid = function(y, X[:, 0], **terms, **given)
        self.ledger_, self.privacy_spent_ = paid.ledger_, paid.privacy_spent_
        return self


PAIR = {"classes": [0.0, 1.0]}
KINDS = {
    "accuracy": (dp_accuracy_score, {}),
    "matrix": (DPConfusionMatrix.from_predictions, PAIR),
    "scores": (DPClassificationScores.from_predictions, PAIR),
    "several": (
        lambda y, s, **terms: SCORES(
            y, np.column_stack([s, (1 - s) / 2, (1 - s) / 2]), classes=[0.0, 1.0, 2.0], **terms
        ),
        {},
    ),
    "bins": (DPClassificationScores.from_predictions, {**PAIR, "thresholds": [0.3, 0.6]}),
    "loss": (dp_log_loss, PAIR),
    "squares": (dp_brier_score_loss, PAIR),
    "errors": (DPRegressionScores.from_predictions, {"bounds": (0, 1)}),
    "distance": (dp_mean_absolute_error, {"residual_bound": 1.0}),
    "knots": (dp_d2_absolute_error_score, {"bounds": (0, 1)}),
}


@BOTH
@pytest.mark.covering
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_moves_what_is_released_as_stated_and_no_more(kind, delta, adjacency):
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 1)), rng.integers(0, 2, 400).astype(float)
    if kind in ("accuracy", "matrix"):
        X = (X > 0.5).astype(float)
    # the row that moves most: a right and certain prediction becomes wrong, or nobody's
    other_X, other_y = X.copy(), y.copy()
    X[0], y[0], other_X[0], other_y[0] = 1.0, 1.0, 0.0, 1.0
    if adjacency == "zero-out":
        other_y[0] = np.nan
    if kind in ("errors", "distance", "knots") and adjacency == "zero-out":
        return
    if kind == "knots":
        # a target goes from one end to the other, and a right prediction stays
        other_X[0], other_y[0] = 1.0, 0.0
    model = Scored(kind, 4.0, delta, adjacency)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyEstimateWarning)
        found = trace_privacy(model, X, other_X, y=y, y_neighbour=other_y)
    assert found.passed
    assert found.complete
    # of the bins of scores and of counts; a square moves less than what it is a square of
    assert max(release.ratio for release in found.releases) > 0.99
    if kind in ("matrix", "scores", "several", "bins", "accuracy", "knots"):
        assert found.share > 0.99


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("kind", ["accuracy", "matrix", "bins", "errors"])
def test_a_row_of_any_weight_moves_no_more_than_is_paid_for(kind, adjacency):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (300, 1)).astype(float), rng.integers(0, 2, 300).astype(float)
    weight = rng.uniform(0, 3, 300)
    X[0], y[0], weight[0] = 1.0, 1.0, 1e308
    other, targets, weights = X.copy(), y.copy(), weight.copy()
    if adjacency == "add-remove":
        other, targets, weights = X[1:], y[1:], weight[1:]
    else:
        other[0], weights[0] = 0.0, 0.0 if adjacency == "zero-out" else 2.0
    others = {"y_neighbour": targets, "sample_weight_neighbour": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyEstimateWarning)
        model = Scored(kind, 4.0, 0.0, adjacency, max_weight=2.0)
        found = trace_privacy(model, X, other, y=y, sample_weight=weight, **others, n_draws=0)
    assert found.passed
    assert found.releases[0].query == "total of the weights"
    assert max(release.ratio for release in found.releases[1:]) > 0.9


def test_a_price_is_charged_composed_and_on_the_card():
    y, proba = drawn(3000)
    X = np.column_stack([proba, 1 - proba])
    budget = PrivacyBudget(epsilon=2.0, delta=1e-6)
    model = DPLogisticRegression(1.0, classes=[0, 1], data_norm=1.0, budget=budget)
    model.fit(X[:2000], y[:2000])
    rows = X[2000:].copy(), y[2000:]
    paid = DPClassificationScores.from_estimator(model, *rows, epsilon=0.5, budget=budget)
    assert budget.spent == (1.5, 1e-6)
    assert [charge.label for charge in budget.charges] == [
        "DPLogisticRegression", "DPClassificationScores",
    ]  # fmt: skip
    epsilon, delta = privacy_spent(model, paid)
    assert 1.0 < epsilon <= 1.5
    assert delta == 1e-6
    assert paid.privacy_spent_ == (pytest.approx(0.5, rel=1e-6), 0.0)
    assert paid.privacy_spent_[0] <= 0.5
    assert "rows of each label and bin of scores" in privacy_card(paid).to_markdown()
    card = privacy_card(model, paid, delta=1e-6).to_dict()
    assert card["claim"]["epsilon"] == epsilon
    assert [step["name"] for step in card["public"]["steps"]] == [
        "DPLogisticRegression", "DPClassificationScores",
    ]  # fmt: skip
    assert len(card["ledger"]) == len(model.ledger_.releases) + len(paid.ledger_.releases)
    with pytest.raises(BudgetError):
        dp_accuracy_score(y, y, epsilon=0.6, budget=budget)

    class Rows:
        """Raises when looked at."""

        shape = (10, 2)

        def __array__(self, *_, **__):
            raise AssertionError("rows were read")

    with pytest.raises(BudgetError):
        DPClassificationScores.from_estimator(model, Rows(), Rows(), epsilon=0.6, budget=budget)
    assert budget.spent == (1.5, 1e-6)
    dp_accuracy_score(y, y, epsilon=0.5, budget=budget)
    assert budget.spent == (2.0, 1e-6)


def test_gaussian_noise_costs_a_gaussian_budget_its_mu():
    y, proba = drawn(2000)
    spent = []
    for delta, n_releases in ((1e-7, 6), (0.0, 1)):
        budget = PrivacyBudget(epsilon=3.0, delta=1e-5, composition="gaussian")
        terms = {"epsilon": 0.2, "delta": delta, "budget": budget}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoisyEstimateWarning)
            for i in range(n_releases):
                if i % 2:
                    dp_accuracy_score(y, y, **terms)
                else:
                    DPClassificationScores.from_predictions(y, proba, **terms, **PAIR)
        spent.append(budget.spent[0])
        assert all((charge.mu is not None) == (delta > 0) for charge in budget.charges)
    # six with Gaussian noise for less than one without
    assert spent[0] < spent[1]


def test_a_seed_repeats_a_release_and_is_told():
    y, proba = drawn(1000)
    with pytest.warns(SeededNoiseWarning):
        one, other = (
            DPClassificationScores.from_predictions(y, proba, epsilon=2.0, random_state=3, **PAIR)
            for _ in range(2)
        )
    assert_array_equal(one.matrix, other.matrix)
    assert math.isinf(privacy_spent(one, other).epsilon)
    lines = repr(one).splitlines()
    assert lines[0] == "DPClassificationScores(epsilon=2, delta=0)"
    assert [line.split()[0] for line in lines[1:]] == [
        "accuracy", "balanced_accuracy", "roc_auc", "log_loss", "brier_score_loss",
    ]  # fmt: skip


def test_noise_has_the_stated_scale_and_is_drawn_anew():
    y = np.zeros(1000)
    found = []
    for _ in range(60):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoisyEstimateWarning)
            paid = DPConfusionMatrix.from_predictions(y, y, epsilon=2.0, classes=range(4))
        found.append(paid._counts - 1000 * (np.arange(16).reshape(4, 4) == 0))
    found = np.ravel(found)
    assert len(np.unique(found)) == found.size
    assert_allclose(np.abs(found).mean(), 1.0, atol=0.16)  # 5 standard deviations
    assert paid.noise == pytest.approx(math.sqrt(2), rel=1e-5)
    assert paid.ledger_.releases[0].stated_sensitivity == 2.0


def test_groups_count_once_and_are_what_is_protected():
    y, proba = drawn(3000)
    whose = np.repeat(np.arange(1000), 3)
    terms = {"classes": [0, 1], "groups": whose}
    paid = loud(DPClassificationScores.from_predictions, y, proba, **terms)
    assert (paid.n_rows, paid.ledger_.unit) == (1000, "group")
    assert_allclose(paid.matrix.sum(), 1000, atol=1)
    assert_allclose(paid.roc_auc, exact.roc_auc_score(y, proba), atol=0.01)
    assert loud(dp_accuracy_score, y, y, groups=whose).ledger_.unit == "group"
    # a group of half the rows counts as any other
    whose[500:2000] = -1
    alike = np.where(whose == -1, 1, 0)
    share = loud(dp_accuracy_score, alike, np.ones(3000, int), groups=whose)
    assert_allclose(share, 1 / len(np.unique(whose)), atol=1e-3)
    budget = PrivacyBudget(epsilon=1.0, unit="group")
    for function, given in ((dp_accuracy_score, {}), (DPConfusionMatrix.from_predictions, PAIR)):
        with pytest.raises(BudgetError, match="groups"):
            function(y, y, epsilon=0.5, budget=budget, **given)
    assert budget.spent == (0.0, 0.0)


@BOTH
def test_a_group_moves_what_a_row_may(adjacency):
    rng = np.random.default_rng(0)
    X, y, whose = rng.random((300, 1)), rng.integers(0, 2, 300).astype(float), np.arange(300) // 3
    other = y.copy()
    X[:3], y[:3] = 0.99, 1.0
    other[:3] = 0.0 if adjacency == "replace-one" else np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyEstimateWarning)
        found = trace_privacy(
            Scored("bins", 4.0, 0.0, adjacency), X, X, y=y, y_neighbour=other, groups=whose
        )
    assert found.passed
    assert found.unit == "group"
    assert found.share > 0.99


def test_nothing_but_released_numbers_is_kept():
    for kind, private in (
        (DPConfusionMatrix, {"y_true", "y_pred"}), (DPClassificationScores, {"y_true", "y_score"}),
    ):  # fmt: skip
        source = textwrap.dedent(inspect.getsource(kind.from_predictions)).partition("\n")[2]
        (function,) = ast.parse(source).body
        assert Taint(function, private).found == []
        leaky = source.replace("return asked", "asked.y = y_true\n    return asked")
        assert Taint(ast.parse(leaky).body[0], private).found


# -- intervals -----------------------------------------------------------------------------------


def test_predictions_that_are_no_labels_are_warned_of():
    y = np.arange(2000) % 2 == 1
    with pytest.warns(NoisyEstimateWarning, match="y_pred must hold labels as in y_true"):
        assert dp_accuracy_score(y, np.linspace(0.1, 0.9, 2000), epsilon=1.0) < 0.01
    # a bad model is none of that, and few rows tell nothing
    dp_accuracy_score(y, np.arange(2000) % 50 != 1, epsilon=1.0)
    dp_accuracy_score(y[:50], ~y[:50], epsilon=1.0)


def test_intervals_are_wider_for_less_and_never_leave_the_range():
    y, proba = drawn(4000)
    widths = []
    for epsilon in (0.3, 1.0, 10.0):
        paid = DPClassificationScores.from_predictions(y, proba, epsilon=epsilon, classes=[0, 1])
        ends = np.array([paid.roc_auc.interval, paid.accuracy.interval, paid.log_loss.interval])
        assert (ends[:2] >= 0).all()
        assert (ends[:2] <= 1).all()
        widths.append(ends[:, 1] - ends[:, 0])
    assert (np.diff(widths, axis=0) < 0).all()
    wide = dp_accuracy_score(y, y, epsilon=1.0, confidence_level=0.999)
    assert wide.interval[1] == 1.0
    assert wide.interval[0] < dp_accuracy_score(y, y, epsilon=1.0).interval[0]
    assert repr(wide).startswith("1 (100% interval") or "interval" in repr(wide)


def test_a_score_without_an_error_still_has_an_interval():
    y = np.arange(60) % 2
    paid = loud(DPConfusionMatrix.from_predictions, y, y, classes=[0, 1])
    # three over n is the usual bound
    assert 0.8 < paid.accuracy.interval[0] < 1 - 2.5 / 60
    assert 0.8 < paid.balanced_accuracy.interval[0] < 1 - 2.5 / 60


def crowded(kind, n_rows, rng):
    """Return labels and probabilities that are too close together for any bins."""
    y = (rng.random(n_rows) < 0.4).astype(int)
    if kind == "two values":
        return y, np.where(rng.random(n_rows) < 0.1, 1 - y, y) * 0.8 + 0.1
    z = rng.normal(size=n_rows) + (-1.5 if kind == "the wrong way round" else 1.5) * y
    if kind in ("around one half", "around one quarter"):
        return y, (0.5 if kind == "around one half" else 0.246) + 1e-4 * np.tanh(z - 0.7)
    return y, 1 / (1 + np.exp(0.7 - z))


@pytest.mark.parametrize(
    "kind", ["two values", "around one half", "around one quarter", "the wrong way round"]
)
def test_intervals_cover_whatever_the_order_of_rows_of_one_bin(kind):
    # of scores around one half none covered, nor did the losses of two values
    rng = np.random.default_rng(5)
    y, proba = crowded(kind, 500_000, rng)
    truth = {"roc_auc": exact.roc_auc_score(y, proba)}
    if kind == "two values":
        truth |= {name: getattr(exact, name)(y, proba) for name in ("log_loss", "brier_score_loss")}
    covered = dict.fromkeys(truth, 0)
    for n_rows, epsilon in [(1000, 0.5), (20_000, 2.0)] * 15:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            paid = DPClassificationScores.from_predictions(
                *crowded(kind, n_rows, rng), epsilon=epsilon, classes=[0, 1]
            )
        if n_rows > 1000:
            doubts = ["too close together to be ordered" in str(one.message) for one in said]
            assert doubts == [True] * (kind != "the wrong way round")
        for name, value in truth.items():
            low, high = getattr(paid, name).interval
            covered[name] += low <= value <= high
    assert min(covered.values()) >= 26, covered


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("n_rows", "epsilon"), [(500, 1.0), (2000, 0.3), (2000, 2.0), (8000, 0.5)])
def test_intervals_cover(n_rows, epsilon, delta):
    # 95 % intervals; 300 draws, of which fewer than 91 % come once in a thousand times
    y, proba = drawn(1_000_000, seed=99)
    labels = proba > 0.5
    truth = {
        "accuracy": exact.accuracy_score(y, labels), "roc_auc": exact.roc_auc_score(y, proba),
        "balanced_accuracy": exact.balanced_accuracy_score(y, labels),
        "log_loss": exact.log_loss(y, proba), "brier_score_loss": exact.brier_score_loss(y, proba),
    }  # fmt: skip
    epsilon = epsilon * (5 if delta else 1)
    covered = dict.fromkeys(truth, 0)
    for seed in range(300):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoisyEstimateWarning)
            paid = DPClassificationScores.from_predictions(
                *drawn(n_rows, seed), epsilon=epsilon, delta=delta, classes=[0, 1]
            )
        for name, value in truth.items():
            low, high = getattr(paid, name).interval
            covered[name] += low <= value <= high
    assert min(covered.values()) >= 0.91 * 300, covered


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("n_rows", "epsilon"), [(2000, 1.0), (8000, 0.5), (8000, 4.0)])
def test_intervals_of_several_classes_cover(n_rows, epsilon, delta):
    truth = exact_of_three(*drawn_of_three(1_000_000, seed=99))
    epsilon = epsilon * (5 if delta else 1)
    covered = dict.fromkeys(truth, 0)
    for seed in range(300):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoisyEstimateWarning)
            paid = SCORES(
                *drawn_of_three(n_rows, seed), epsilon=epsilon, delta=delta, classes=range(3)
            )
        for name, value in truth.items():
            low, high = getattr(paid, name).interval
            covered[name] += low <= value <= high
    assert min(covered.values()) >= 0.91 * 300, covered


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_intervals_of_means_cover(epsilon):
    def rows(n_rows, seed):
        rng = np.random.default_rng(seed)
        target = np.clip(rng.normal(5, 2, n_rows), 0, 10)
        return target, np.clip(target + rng.normal(0, 1, n_rows), 0, 10)

    target, found = rows(1_000_000, 99)
    y, proba = drawn(1_000_000, 99)
    far = np.minimum(np.abs(target - found), 4.0)
    truth = {
        "mae": far.mean(), "mse": (far**2).mean(), "r2": 1 - (far**2).mean() / target.var(),
        "d2": 1 - far.mean() / np.abs(target - np.median(target)).mean(),
        "loss": exact.log_loss(y, np.clip(proba, 1e-3, 1 - 1e-3)),
        "brier": exact.brier_score_loss(y, proba), "hits": 0.9,
    }  # fmt: skip
    covered = dict.fromkeys(truth, 0)
    for seed in range(300):
        terms = {"epsilon": epsilon, "bounds": (0, 10), "residual_bound": 4.0}
        paid = DPRegressionScores.from_predictions(*rows(2000, seed), **terms)
        given = {"epsilon": epsilon, "classes": [0, 1]}
        right = np.random.default_rng(seed).random(2000) < 0.9
        for name, score in (
            ("mae", paid.mean_absolute_error), ("mse", paid.mean_squared_error), ("r2", paid.r2),
            ("d2", dp_d2_absolute_error_score(*rows(2000, seed), **terms)),
            ("loss", dp_log_loss(*drawn(2000, seed), **given)),
            ("brier", dp_brier_score_loss(*drawn(2000, seed), **given)),
            ("hits", dp_accuracy_score(np.ones(2000), right * 1.0, epsilon=epsilon)),
        ):  # fmt: skip
            covered[name] += score.interval[0] <= truth[name] <= score.interval[1]
    assert min(covered.values()) >= 0.91 * 300, covered


# -- models, scorers, rows that were seen --------------------------------------------------------


def test_scorers_pay_on_every_fold():
    y, proba = drawn(1500)
    X = np.column_stack([proba, 1 - proba])
    budget = PrivacyBudget(epsilon=9.0, delta=1e-5)
    model = DPLogisticRegression(1.0, classes=[0, 1], data_norm=1.0, budget=budget)
    scorer = make_dp_scorer(dp_log_loss, epsilon=1.0, budget=budget)
    scores = cross_val_score(model, X, y, scoring=scorer, cv=3)
    assert scores.shape == (3,)
    assert (scores < 0).all()
    assert budget.spent[0] == 6.0
    assert repr(scorer) == "make_dp_scorer(dp_log_loss, epsilon=1.0)"
    model = DPHingeSVM(1.0, classes=[0, 1], data_norm=1.0).fit(X, y)
    rows = X.copy(), y
    area = make_dp_scorer(dp_roc_auc_score, epsilon=1.0)(model, *rows)
    assert 0.7 < area.interval[0] < area < 1
    low, high = (-area).interval
    assert (low, high) == (-area.interval[1], -area.interval[0])
    assert (-area).ledger_ is area.ledger_
    kinds = (dp_accuracy_score, dp_balanced_accuracy_score, dp_roc_auc_score)
    assert all(make_dp_scorer(kind, epsilon=1.0)(model, *rows) > 0.7 for kind in kinds)
    y, proba = drawn_of_three(3000)
    for kind in (DPHingeSVM, DPLogisticRegression):
        model = kind(4.0, classes=range(3), data_norm=1.0).fit(proba, y)
        assert make_dp_scorer(dp_roc_auc_score, epsilon=4.0)(model, proba.copy(), y) > 0.7


QUICK = {"solver": "gd", "max_iter": 2}


def test_a_search_by_scores_that_pay_has_a_total():
    y, proba = drawn(1500)
    X = np.column_stack([proba, 1 - proba])
    budget = PrivacyBudget(epsilon=30.0, delta=1e-4)
    model = DPLogisticRegression(1.0, classes=[0, 1], data_norm=1.0, budget=budget, **QUICK)
    scorer = make_dp_scorer(dp_accuracy_score, epsilon=0.5, budget=budget)
    folds = [(np.arange(1000), np.arange(1000, 1500)), (np.arange(500, 1500), np.arange(500))]
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, scoring=scorer, cv=folds).fit(X, y)
    spent = privacy_spent(search)
    # four fits, four scores, and the last fit
    assert spent.uncovered == ()
    assert 4 * 0.5 < spent.covered[0] <= budget.spent[0] == 4 * 1.0 + 4 * 0.5 + 1.0
    assert [(r.query, r.count) for r in spent.ledger.releases if "scores" in r.query] == [
        ("scores of fits, dp_accuracy_score", 4)
    ]
    # another scorer knows exact scores; training rows are scored as well; a row is scored twice
    twice = [(train, np.append(test, test[0])) for train, test in folds]
    mixed = search.set_params(scoring={"a": scorer, "b": "accuracy"}, refit="a", cv=twice)
    with pytest.warns(PrivacyWarning, match="the model was fitted to these rows"):
        spent = privacy_spent(mixed.set_params(return_train_score=True).fit(X, y))
    assert [item.kind for item in spent.uncovered] == ["choice"]
    assert max(r.count for r in spent.ledger.releases if "scores" in r.query) == 8
    assert spent.most_copies == 2
    other = make_dp_scorer(dp_accuracy_score, epsilon=0.5, adjacency="zero-out")
    with pytest.raises(ValueError, match="a ledger has one adjacency"):
        privacy_spent(search.set_params(scoring=other, refit=False, cv=folds).fit(X, y))


def test_scorers_take_groups_and_weights_of_the_rows_they_are_called_with():
    y, proba = drawn(1500)
    scorer = make_dp_scorer(dp_balanced_accuracy_score, epsilon=2.0, max_weight=1.0)
    model = DPHingeSVM(4.0, classes=[0, 1], data_norm=1.0, solver="gd", max_iter=2)
    model.fit(proba[:, None], y)
    own = {"groups": np.arange(1500) // 3, "sample_weight": 0.2 + 0.8 * proba}
    found = scorer(model, proba[:, None].copy(), y, **own)
    assert found.ledger_.releases[0].query == "total of the weights"
    assert found.ledger_.unit == "group"
    with pytest.raises(TypeError, match="requests must be among"):
        scorer.set_score_request(weight=True)


@pytest.mark.full
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_scorers_are_passed_groups_and_weights_where_metadata_are_routed(adjacency):
    y, proba = drawn(1500)
    X, whose, weight = np.column_stack([proba, 1 - proba]), np.arange(1500) // 3, 0.2 + 0.8 * proba
    # folds of as many groups each, however many rows these have
    cv = GroupKFold(2, shuffle=True, random_state=0)
    own = {"params": {"groups": whose, "sample_weight": weight}, "cv": cv}
    terms = {"max_weight": 1.0, "adjacency": adjacency}
    model = DPLogisticRegression(8.0, classes=[0, 1], data_norm=1.0, **terms, **QUICK)
    scorer = make_dp_scorer(dp_accuracy_score, epsilon=2.0, **terms)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
        with pytest.raises(UnsetMetadataPassedError):
            cross_val_score(model, X, y, scoring=scorer, **own)
        scorer.set_score_request(groups=True, sample_weight=True)
        assert cross_val_score(model, X, y, scoring=scorer, **own).min() > 0.6
        search = GridSearchCV(model, {"C": [1.0]}, scoring=scorer, cv=cv)
        search.fit(X, y, **own["params"])
    spent = privacy_spent(search)
    assert (spent.ledger.unit, spent.ledger.adjacency) == ("group", adjacency)
    # folds are cut by the number of rows
    secret = adjacency == "add-remove"
    assert [item.kind for item in spent.uncovered] == ["splits"] * secret


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"score_func": exact.accuracy_score}, "score_func must be one of dp_accuracy_score"),
        ({"random_state": 0}, "random_state must be None for a scorer"),
        ({"groups": [1, 2]}, "groups must be None for a scorer"),
        ({"sample_weight": [1, 2], "max_weight": 1.0}, "sample_weight must be None for a scorer"),
    ],
)
def test_scorers_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        make_dp_scorer(**{"score_func": dp_accuracy_score, "epsilon": 1.0, **given})


@pytest.mark.parametrize(
    ("score_func", "given", "message"),
    [
        (dp_r2_score, {}, "bounds must be given: dp_r2_score has no default for it"),
        (dp_mean_absolute_error, {}, "residual_bound must be given"),
        (dp_r2_score, {"bounds": (0, 1), "bound": 1}, "bound is no parameter of dp_r2_score"),
        (dp_accuracy_score, {"epsilon": -1.0}, r"epsilon must be a finite .* got -1\.0"),
        (dp_accuracy_score, {"confidence_level": 95}, "confidence_level must be a number in"),
    ],
)
def test_scorers_are_refused_before_a_fold_is_paid_for(score_func, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_dp_scorer(score_func, **{"epsilon": 1.0, **given})


def test_rows_that_trained_the_model_are_warned_of():
    y, proba = drawn(2000)
    X = np.column_stack([proba, 1 - proba])
    model = make_pipeline(NormClipper(), DPLogisticRegression(classes=[0, 1], data_norm=1.0))
    model.fit(X[:1000], y[:1000])
    for part in (X[:1000], X[500:]):
        with pytest.warns(PrivacyWarning, match="the model was fitted to these rows"):
            DPClassificationScores.from_estimator(model, part, y[: len(part)], epsilon=1.0)
    with pytest.warns(PrivacyWarning, match="the model was fitted to these rows"):
        DPConfusionMatrix.from_estimator(model, X[:1000], y[:1000], epsilon=1.0)
    with pytest.warns(
        PrivacyWarning, match=r"make_dp_scorer\(dp_accuracy_score, epsilon=1.0\): the"
    ):
        make_dp_scorer(dp_accuracy_score, epsilon=1.0)(model, X[:1000], y[:1000])
    line = DPRidge(data_norm=1.0, target_scale=1.0).fit(X[:1000], y[:1000])
    with pytest.warns(PrivacyWarning, match="the model was fitted to these rows"):
        DPRegressionScores.from_estimator(line, X[:1000], y[:1000], epsilon=1.0, bounds=(0, 1))
    # rows beside them, and copies, of which nobody can tell; warnings are errors
    for part in (X[1000:], X[:1000].copy(), pd.DataFrame(X[1000:].copy())):
        DPClassificationScores.from_estimator(model, part, y[: len(part)], epsilon=1.0)
    table = pd.DataFrame(X, columns=["a", "b"])
    model.fit(table, y)
    with pytest.warns(PrivacyWarning, match="the model was fitted to these rows"):
        DPClassificationScores.from_estimator(model, table, y, epsilon=1.0)
    DPClassificationScores.from_estimator(model, table[:1000], y[:1000], epsilon=1.0)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [0, 1])
def test_held_out_rows_of_one_class_are_told_by_released_numbers(one):
    _, proba = drawn(2000)
    y = np.full(2000, one)
    with pytest.warns(NoisyEstimateWarning, match=rf"class\(es\) {1 - one} have too few rows"):
        paid = DPClassificationScores.from_predictions(y, proba, epsilon=1.0, classes=[0, 1])
    assert paid.roc_auc.interval == (0.0, 1.0)
    assert paid.roc_auc == 0.5
    assert paid.balanced_accuracy.interval == (0.0, 1.0)
    low, high = paid.accuracy.interval
    assert low < ((proba > 0.5) == one).mean() < high
    for curve in (paid.roc_curve, paid.precision_recall_curve, paid.calibration_curve):
        assert all(not np.isnan(part).any() for part in curve())
    with pytest.warns(NoisyEstimateWarning, match="class"):
        dp_balanced_accuracy_score(y, y, epsilon=1.0, classes=[0, 1, 2])
    many = np.column_stack([proba, (1 - proba) / 2, (1 - proba) / 2])
    with pytest.warns(NoisyEstimateWarning, match=rf"class\(es\) {1 - one}, 2 have too few rows"):
        paid = SCORES(y, many, epsilon=4.0, classes=[0, 1, 2])
    assert paid.roc_auc.interval == (0.0, 1.0)
    assert np.isfinite(paid.log_loss.interval).all()


def test_models_that_cannot_be_scored_are_refused():
    y, proba = drawn(50)
    budget = PrivacyBudget(epsilon=1.0)
    terms = {"epsilon": 1.0, "budget": budget}
    for model, message in (
        (DPLogisticRegression(classes=[0, 1]), "not fitted"),
        (DPRidge(data_norm=1.0, target_scale=1.0).fit(proba[:, None], y), "be a classifier"),
    ):
        for kind in (DPClassificationScores, DPConfusionMatrix):
            with pytest.raises((NotFittedError, ValueError), match=message):
                kind.from_estimator(model, proba[:, None], y, **terms)
    assert budget.spent == (0.0, 0.0)


def test_labels_of_any_type_and_table():
    y, proba = drawn(2000)
    words = np.where(y, "yes", "no")
    for labels, score in (
        (words, proba), (list(words), list(proba)), (words.astype(object), proba[:, None]),
        (pd.Series(words), pd.Series(proba)), (pd.Series(words, dtype="category"), proba),
        (pl.Series(words), pl.Series(proba)), (pd.Series(words, dtype="string"), proba),
    ):  # fmt: skip
        paid = loud(DPClassificationScores.from_predictions, labels, score, classes=["no", "yes"])
        assert_allclose(paid.accuracy, ((proba > 0.5) == y).mean(), atol=1e-3)
        assert loud(dp_accuracy_score, labels, words) == pytest.approx(1.0, abs=1e-4)
        table = loud(DPConfusionMatrix.from_predictions, labels, words, classes=["no", "yes"])
        assert_allclose(table.matrix, np.diag(np.bincount(y)), atol=0.1)


def test_labels_outside_of_the_label_set_count_nowhere():
    y, proba = drawn(2000)
    strange = np.where(np.arange(2000) < 500, 7, y)
    paid = loud(DPClassificationScores.from_predictions, strange, proba, classes=[0, 1])
    assert_allclose(paid.matrix.sum(), 1500, atol=1)
    assert_allclose(paid.accuracy, ((proba > 0.5) == y)[500:].mean(), atol=1e-3)
    # and predictions that are none are no prediction of the first class
    for labels, found in ((strange, y), (y, strange)):
        table = loud(DPConfusionMatrix.from_predictions, labels, found, classes=[0, 1])
        assert_allclose(table.matrix, np.diag(np.bincount(y[500:])), atol=1)
    missing = strange.astype(object)
    missing[:500] = [None, pd.NA, np.nan, 7.5] * 125
    assert loud(dp_accuracy_score, missing, strange) == pytest.approx(0.75, abs=1e-3)
    paid = loud(SCORES, missing, proba, classes=[0, 1])
    assert_allclose(paid.matrix.sum(), 1500, atol=1)


def test_many_rows_that_count_nowhere_are_told_by_released_numbers():
    y, proba = drawn(2000)
    strange = np.where(np.arange(2000) < 500, 7, y)
    told = r"about 2\d% of the rows are not counted, .* with classes, \[0, 1\]"
    of_labels = DPConfusionMatrix.from_predictions
    for function, *data in ((SCORES, strange, proba), (of_labels, y, strange)):
        with pytest.warns(NoisyEstimateWarning, match=told):
            function(*data, epsilon=2.0, classes=[0, 1])
    # a few are not, nor are rows that noise drowns
    few = np.where(np.arange(2000) < 20, 7, y)
    for adjacency in ("replace-one", "add-remove"):
        for size in (60, 2000):
            rows = few[:size], y[:size]
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                of_labels(*rows, epsilon=0.5, classes=[0, 1], adjacency=adjacency)
            assert not any("nowhere" in str(one.message) for one in seen)


Y, PROBA = drawn(50)
SCORES = DPClassificationScores.from_predictions
BOUND = {"max_weight": 1.0}


@pytest.mark.parametrize(
    ("function", "data", "terms", "message"),
    [
        (SCORES, (Y, np.where(PROBA > 0.5, np.nan, PROBA)), PAIR, "y_score must be finite"),
        (SCORES, (Y, np.full(50, np.inf)), PAIR, "y_score must be finite"),
        (SCORES, (Y, 4 * PROBA - 2), PAIR, "between 0 and 1; .* give probabilities=False"),
        (dp_roc_auc_score, (Y, -PROBA), PAIR, "y_score must be probabilities"),
        (dp_log_loss, (Y, 4 * PROBA - 2), PAIR, "y_proba must be probabilities"),
        (dp_brier_score_loss, (Y, 2 * PROBA), PAIR, "y_proba must be probabilities"),
        (SCORES, (Y, PROBA[:-1]), PAIR, "y_score must have one entry for each of 50 rows; got 49"),
        (
            SCORES, (Y, np.column_stack([PROBA, PROBA])), {**PAIR, "probabilities": False},
            r"array of shape \(50, 2\)",
        ),
        (SCORES, (Y, ["a"] * 50), PAIR, "y_score must be one real number"),
        (SCORES, (Y, np.full((50, 3), np.nan)), {"classes": [0, 1, 2]}, "y_score must be finite"),
        (SCORES, (Y, [[1], [2, 3]]), {"classes": [0, 1, 2]}, "got shape of no array"),
        (SCORES, ([], []), PAIR, "at least one row"),
        (SCORES, (Y, PROBA), {"classes": None}, "classes must be the public label set"),
        (SCORES, (Y, PROBA), {"classes": [0, 1, 2]}, r"3 classes; got shape \(50,\)"),
        (SCORES, (Y, PROBA), {"classes": ["a", "b"]}, "labels of one type"),
        (SCORES, (Y, PROBA), {**PAIR, "thresholds": [0.0, 0.5]}, "lie between 0 and 1"),
        (SCORES, (Y, PROBA), {**PAIR, "thresholds": []}, "thresholds must be None, or at least"),
        (SCORES, (Y, PROBA), {**PAIR, "probabilities": 1}, "True or False"),
        (SCORES, (Y, PROBA), {**PAIR, "groups": [1, 2]}, "one identifier"),
        (SCORES, (Y, PROBA), {**PAIR, "epsilon": 0.0}, "epsilon must be"),
        (SCORES, (Y, PROBA), {**PAIR, "epsilon": math.nan}, "epsilon must be"),
        (SCORES, (Y, PROBA), {**PAIR, "delta": 1.0}, "delta must be"),
        (SCORES, (Y, PROBA), {**PAIR, "adjacency": "local"}, "adjacency must be"),
        (SCORES, (Y, PROBA), {**PAIR, "budget": 1.0}, "budget must be a PrivacyBudget"),
        (SCORES, (Y, PROBA), {**PAIR, "confidence_level": 1.0}, "confidence_level must be"),
        (SCORES, (Y, PROBA), {**PAIR, "max_weight": 0.0}, "max_weight must be"),
        (SCORES, (Y, PROBA), {**PAIR, "sample_weight": Y}, "max_weight must be a public number"),
        (SCORES, (Y, PROBA), {**PAIR, **BOUND, "sample_weight": -Y - 1.0}, "not negative"),
        (dp_accuracy_score, (Y, Y), {**BOUND, "sample_weight": np.full(50, np.nan)}, "finite"),
        (dp_accuracy_score, (Y, Y), {**BOUND, "sample_weight": Y[:-1]}, r"shape \(50,\)"),
        (dp_accuracy_score, (Y, Y[:-1]), {}, "one entry for each row"),
        (dp_accuracy_score, ([], []), {}, "at least one"),
        (dp_accuracy_score, (Y, Y.astype(str)), {}, "labels of one type"),
        (dp_log_loss, (Y, PROBA), {**PAIR, "floor": 0.0}, "floor must be"),
        (dp_log_loss, (Y, PROBA[:, None]), PAIR, "y_proba must have a row for each label"),
        (dp_log_loss, (Y, np.full(50, np.nan)), PAIR, "y_proba must be finite"),
        (dp_r2_score, (Y, PROBA), {"bounds": (1, 0)}, "bounds must be a pair"),
        (dp_r2_score, (Y, PROBA), {"bounds": (0, math.inf)}, "bounds must be a pair"),
        (dp_r2_score, (Y, PROBA), {"bounds": 3}, "bounds must be a pair"),
        (dp_d2_absolute_error_score, (Y, PROBA), {"bounds": (1, 0)}, "bounds must be a pair"),
        (dp_r2_score, (Y, PROBA), {"bounds": (0, 1), "residual_bound": 2}, "residual_bound"),
        (dp_r2_score, (Y, np.full(50, np.nan)), {"bounds": (0, 1)}, "y_pred must be finite"),
        (dp_mean_absolute_error, (Y, PROBA), {"residual_bound": 0}, "residual_bound must be"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_it_is_charged(function, data, terms, message):
    budget = PrivacyBudget(epsilon=10.0)
    with pytest.raises(ValueError, match=message):
        function(*data, **{"epsilon": 1.0, "budget": budget, **terms})
    assert budget.spent == (0.0, 0.0)


def test_functions_are_called_by_their_names():
    budget = PrivacyBudget(epsilon=10.0)
    with pytest.raises(TypeError, match="level is no keyword of a score: give some of adjacency"):
        dp_accuracy_score(Y, Y, epsilon=1.0, level=0.9, budget=budget)
    assert budget.spent == (0.0, 0.0)
    with pytest.warns(
        NoisyEstimateWarning, match="^dp_mean_squared_error: with 9 rows at epsilon=1,"
    ):
        dp_mean_squared_error(Y[:9], Y[:9], epsilon=1.0, residual_bound=1.0, budget=budget)
    for function in (dp_roc_auc_score, dp_balanced_accuracy_score):
        with pytest.warns(NoisyEstimateWarning, match=f"^{function.__name__}: the class"):
            function(Y[:9], Y[:9], epsilon=1.0, classes=[0, 1], budget=budget)
    names = ["dp_mean_squared_error", "dp_roc_auc_score", "dp_balanced_accuracy_score"]
    assert list(budget.to_frame()["label"]) == names


def test_probabilities_of_two_classes_may_have_two_columns():
    y, proba = drawn(2000)
    both = np.column_stack([1 - proba, proba])
    one, two = (loud(SCORES, y, score, classes=[0, 1]) for score in (proba, both))
    assert_allclose(one.roc_auc, two.roc_auc, atol=1e-3)
    assert_allclose(loud(dp_roc_auc_score, y, both, classes=[0, 1]), one.roc_auc, atol=1e-3)


@pytest.mark.parametrize("bounds", [(0, 1), (1e6, 2e6)])
@pytest.mark.parametrize("score", [dp_r2_score, dp_d2_absolute_error_score])
def test_targets_out_of_their_bounds_are_told(score, bounds):
    rng = np.random.default_rng(0)
    target = rng.normal(3e5, 5e4, 20_000)
    found = target + rng.normal(0, 1.5e4, 20_000)
    terms = {"epsilon": 1.0, "random_state": 0}
    with pytest.warns(NoisyEstimateWarning, match="targets lie at an end of bounds.* that hold"):
        score(target, found, bounds=bounds, **terms)
    # half of the targets beyond an end, or skewed ones within
    for inside, ends in ((target, (0, 3e5)), (rng.exponential(size=20_000), (0, 20))):
        score(inside, inside, bounds=ends, residual_bound=ends[1] / 2, **terms)


def test_an_interval_without_an_end_is_told():
    target = np.random.default_rng(0).normal(size=2000)
    with pytest.warns(NoisyEstimateWarning, match="r2 has no lower end. Give tighter bounds"):
        score = dp_r2_score(target, target, epsilon=0.5, bounds=(-1e3, 1e3))
    assert score.interval[0] == -math.inf
    with pytest.warns(NoisyEstimateWarning, match="^dp_d2_absolute_error_score: .* of d2 has no"):
        dp_d2_absolute_error_score(target, target, epsilon=0.5, bounds=(-1e3, 1e3))
    # noise that is next to none: what is left is the sampling of 2,000 rows, and its bounds
    found = target + np.random.default_rng(1).normal(0, 0.5, 2000)
    score = loud(dp_r2_score, target, found, bounds=(-4, 4), residual_bound=2.0)
    low, high = score.interval
    assert low < 0.75 < high
    assert high - low < 0.18


def test_targets_of_any_size_are_clipped():
    target = np.array([1e300, -1e300, 0.5] * 300)
    paid = loud(DPRegressionScores.from_predictions, target, -target, bounds=(0, 1))
    assert_allclose(paid.mean_absolute_error, (1 + 1 + 0.5) / 3, atol=1e-3)
    error = loud(dp_mean_absolute_error, target, -target, residual_bound=2.0)
    assert_allclose(error, (2 + 2 + 1) / 3, atol=1e-3)
    square = loud(dp_mean_squared_error, target, -target, residual_bound=2.0)
    assert_allclose(square, (4 + 4 + 1) / 3, atol=1e-3)
    part = loud(dp_d2_absolute_error_score, [0.5] * 900, [0.5] * 900, bounds=(0, 1))
    assert part.interval[0] == -math.inf
    assert part.interval[1] <= 1
    constant = loud(DPRegressionScores.from_predictions, [0.5] * 900, [0.5] * 900, bounds=(0, 1))
    low, high = constant.r2.interval
    assert low == -math.inf
    assert high <= 1


def test_losses_that_are_the_worst_are_doubted():
    labels, chance = ["no", "yes"] * 500, np.array([[0.9, 0.1], [0.1, 0.9]] * 500)
    for score in (dp_log_loss, dp_brier_score_loss):
        with pytest.warns(
            NoisyEstimateWarning, match="the worst prediction, by the released score"
        ):
            score(labels, chance, epsilon=2.0, classes=["No", "Yes"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            score(labels, chance, epsilon=2.0, classes=["no", "yes"])
        with pytest.raises(ValueError, match="y_proba must be probabilities") as told:
            score(labels, labels, epsilon=2.0, classes=["no", "yes"])
        assert "'yes'" not in str(told.value)
    for score in (dp_mean_absolute_error, dp_mean_squared_error):
        with pytest.warns(NoisyEstimateWarning, match="residual is beyond residual_bound"):
            score([5000.0] * 1000, [5.0] * 1000, epsilon=2.0, residual_bound=10.0)
