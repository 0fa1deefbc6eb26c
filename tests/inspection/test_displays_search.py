# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores against epsilon, read off a search."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.model_selection import GridSearchCV

from skdp import DPLogisticRegression, PrivacyUtilityDisplay

plt.switch_backend("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def results(params, scores, metric="score"):
    scores = np.array(scores, dtype=float)
    splits = {f"split{i}_test_{metric}": column for i, column in enumerate(scores.T)}
    return {"params": params, f"mean_test_{metric}": scores.mean(axis=1), **splits}


ONE = results([{"m__epsilon": 2.0}, {"m__epsilon": 1.0}], [[0.7, 0.9], [0.5, 0.6]])
TWO = results(
    [{"epsilon": e, "C": c} for e in (1.0, 2.0) for c in (0.1, 10.0)],
    [[0.1, 0.3], [0.5, 0.5], [0.6, 0.8], [0.2, 0.2]],
)


def test_one_parameter():
    display = PrivacyUtilityDisplay.from_cv_results(ONE, chance=0.5, baseline_scores=0.95, name="a")
    np.testing.assert_array_equal(display.epsilons, [1.0, 2.0])
    np.testing.assert_array_equal(display.scores, [[0.5, 0.6], [0.7, 0.9]])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["a", "not private", "guessing"]


def test_other_parameters_are_fixed_or_the_best_is_named_as_such():
    with pytest.raises(ValueError, match=r"2 candidates.*differ in \['C'\].*optimistic"):
        PrivacyUtilityDisplay.from_cv_results(TWO)
    fixed = PrivacyUtilityDisplay.from_cv_results(TWO, others={"C": 10.0})
    np.testing.assert_array_equal(fixed.scores, [[0.5, 0.5], [0.2, 0.2]])
    best = PrivacyUtilityDisplay.from_cv_results(TWO, others="best")
    np.testing.assert_array_equal(best.scores, [[0.5, 0.5], [0.6, 0.8]])
    assert best.ax_.get_legend().get_texts()[0].get_text() == "search, best of 2"


def test_a_sum_of_several_budgets():
    both = results([{"a__epsilon": 1.0, "b__epsilon": e} for e in (1.0, 3.0)], [[0.5], [0.6]])
    with pytest.raises(ValueError, match="param must say which"):
        PrivacyUtilityDisplay.from_cv_results(both)
    display = PrivacyUtilityDisplay.from_cv_results(both, param=["a__epsilon", "b__epsilon"])
    np.testing.assert_array_equal(display.epsilons, [2.0, 4.0])
    assert display.ax_.get_ylabel() == "score"


def test_a_search_that_shows_means_only():
    only = {key: value for key, value in ONE.items() if not key.startswith("split")}
    display = PrivacyUtilityDisplay.from_cv_results(only)
    np.testing.assert_allclose(display.scores, [[0.55], [0.8]])


def test_other_metrics():
    named = results([{"epsilon": 1.0}], [[0.5, 0.7]], metric="f1_macro")
    display = PrivacyUtilityDisplay.from_cv_results(named, metric="f1_macro")
    assert display.ax_.get_ylabel() == "f1 macro, mean ± s.d."
    with pytest.raises(ValueError, match=r"metric='score'.*mean_test_f1_macro"):
        PrivacyUtilityDisplay.from_cv_results(named)


@pytest.mark.parametrize(
    ("cv_results", "given", "message"),
    [
        (None, {}, "must be the cv_results_"),
        ({}, {}, "must be the cv_results_"),
        (results([{"C": 1.0}], [[0.5]]), {}, r"one parameter named epsilon.*\['C'\]"),
        (results([{"C": 1.0}, {"epsilon": 1.0}], [[0.5], [0.5]]), {}, "one parameter named"),
        (TWO, {"param": "alpha"}, r"param must be of \['C', 'epsilon'\]; got 'alpha'"),
        (TWO, {"param": []}, "param must be of"),
        (TWO, {"others": {"alpha": 1.0}}, "no parameter 'alpha'"),
        (TWO, {"others": {"C": 3.0}}, "no candidate"),
        (results([{"epsilon": 1.0}], [[np.nan]]), {}, "scores must be finite"),
        (results([{"epsilon": 0.0}], [[0.5]]), {}, "epsilons must be positive"),
    ],
)
def test_results_that_cannot_be_drawn(cv_results, given, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay.from_cv_results(cv_results, **given)


def test_a_search_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = DPLogisticRegression(delta=1e-5, classes=(0, 1), random_state=0)
    search = GridSearchCV(model, {"epsilon": [1, 10, 100]}, cv=2).fit(X, y)
    display = PrivacyUtilityDisplay.from_cv_results(search.cv_results_, score_name="accuracy")
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [1, 10, 100])
    np.testing.assert_allclose(display.mean_scores, search.cv_results_["mean_test_score"])


@pytest.mark.slow
def test_jobs_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = DPLogisticRegression(delta=1e-5, classes=(0, 1))
    given = {"epsilons": [1.0, 10.0], "cv": 2, "random_state": 0}
    first, second = (
        PrivacyUtilityDisplay.from_estimator(model, X, y, n_jobs=n_jobs, **given).scores
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(first, second)
