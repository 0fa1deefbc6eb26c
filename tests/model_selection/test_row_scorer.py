# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores that are means over rows: bounds, silence, and what is refused."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, make_scorer

from skdp.model_selection import RowScorer
from skdp.model_selection._row_scorer import BY_NAME, FLOOR, neg_log_loss, resolve_scoring

X = np.random.default_rng(0).normal(size=(50, 2))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")
MODEL = LogisticRegression().fit(X, Y)


def test_accuracy_is_that_of_scikit_learn():
    assert BY_NAME["accuracy"](MODEL, X, Y) == accuracy_score(Y, MODEL.predict(X))


def test_log_loss_is_that_of_scikit_learn_down_to_the_floor():
    expected = np.clip(MODEL.predict_proba(X), FLOOR, None)
    picked = expected[np.arange(50), (Y == "yes").astype(int)]
    assert BY_NAME["neg_log_loss"](MODEL, X, Y) == pytest.approx(np.log(picked).mean())
    assert neg_log_loss(MODEL, X, Y).mean() == pytest.approx(
        -log_loss(Y, MODEL.predict_proba(X)), rel=1e-12
    )
    unknown = np.array(["maybe"] * 50)
    assert BY_NAME["neg_log_loss"](MODEL, X, unknown) == pytest.approx(math.log(FLOOR))


@pytest.mark.parametrize(
    "bounds", [(1, 0), (0, 0), (0, math.inf), (math.nan, 1), 3, (0, 1, 2), "ab"]
)
def test_bounds_that_are_none(bounds):
    with pytest.raises(ValueError, match="bounds must be a pair"):
        RowScorer(len, bounds=bounds)


def test_a_function_that_is_none():
    with pytest.raises(TypeError, match="function must be callable"):
        RowScorer("accuracy", bounds=(0, 1))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda e, X, y: 0.5,
        lambda e, X, y: np.zeros(len(X) + 1),
        lambda e, X, y: np.zeros((len(X), 1)),
        lambda e, X, y: ["secret"] * len(X),
        lambda e, X, y: np.zeros(len(X), dtype=complex),
        lambda e, X, y: np.array([{"secret": 1}] * len(X)),
    ],
)
def test_a_function_that_does_not_score_rows(wrong):
    with pytest.raises(ValueError, match="must return 50 real numbers for 50 rows") as caught:
        RowScorer(wrong, bounds=(0, 1))(MODEL, X, Y)
    assert "secret" not in str(caught.value)
    # nor how many rows the function left over, or how long a text is
    assert "51" not in str(caught.value)
    assert "U6" not in str(caught.value)
    assert "192" not in str(caught.value)


def test_nothing_that_depends_on_rows_is_told():
    def loud(estimator, X, y):
        warnings.warn("overflow in row 7", stacklevel=1)
        return np.exp(1000 * X[:, 0]) * np.array(1e300) ** 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RowScorer(loud, bounds=(0, 1))(MODEL, X, Y) == pytest.approx(
            (X[:, 0] > 0).mean(), abs=0.5
        )


def test_scores_are_clipped_before_they_are_averaged():
    scorer = RowScorer(lambda e, X, y: np.array([math.nan, -9.0, 0.5, math.inf]), bounds=(0, 1))
    assert scorer(MODEL, X[:4], Y[:4]) == 1.5 / 4


def test_copies_are_equal_and_repr_says_what_it_is():
    scorer = RowScorer(neg_log_loss, bounds=(-7, 0))
    assert copy.deepcopy(scorer) == scorer == pickle.loads(pickle.dumps(scorer))
    assert hash(scorer) == hash(copy.deepcopy(scorer))
    assert scorer != RowScorer(neg_log_loss, bounds=(-8, 0))
    assert scorer != "accuracy"
    assert repr(scorer) == "RowScorer(neg_log_loss, bounds=(-7.0, 0.0))"


def test_which_scores_there_are():
    assert resolve_scoring(None, MODEL) is BY_NAME["accuracy"]
    assert resolve_scoring("neg_log_loss", LinearRegression()) is BY_NAME["neg_log_loss"]
    with pytest.raises(ValueError, match="scoring must be given for LinearRegression"):
        resolve_scoring(None, LinearRegression())


@pytest.mark.parametrize(
    ("scoring", "reason"),
    [
        ("roc_auc", "nobody knows"), (make_scorer(accuracy_score), "nobody knows"),
        (lambda e, X, y: 1.0, "nobody knows"), (["accuracy"], "one score"),
        ({"a": "accuracy"}, "one score"), (("accuracy", "f1"), "one score"),
    ],
)  # fmt: skip
def test_other_scores_are_refused_with_the_reason(scoring, reason):
    with pytest.raises(ValueError, match=reason):
        resolve_scoring(scoring, MODEL)
