# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits with one fit: the bound fails as seldom as stated, and finds what leaks."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPLogisticRegression, DPMean
from skdp.audit import audit_one_run
from skdp.audit._one_run import one_run_epsilon, one_run_p_value
from tests.audit import _broken as broken


def test_one_run():
    X = np.eye(400)
    sound = audit_one_run(DPMean(epsilon=20.0), X, -X, random_state=0)
    assert sound.passed
    assert sound.epsilon_lower > 1
    assert "200 guesses right, 400 canaries" in repr(sound)
    assert sound.to_frame()["passed"][0]
    y = np.arange(400) % 2
    loud = audit_one_run(broken.NoiselessIntercept(3.0), X, -X, score=lambda f: X @ np.ones(400))
    assert loud.passed
    # estimators that remember everything
    for model, target in ((LogisticRegression(C=1e3), y), (LinearRegression(), 2.0 * y)):
        found = audit_one_run(
            model, (X, target), data=(X[:2], target[:2]), adjacency="remove-one", random_state=0
        )
        assert found.epsilon_lower > 2.5
        assert found.passed is None
    svm = audit_one_run(
        DPLogisticRegression(epsilon=8.0), (X, y), (-X, y), random_state=1, n_guesses=100
    )
    assert svm.passed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"canaries": np.eye(9)}, "the number of canaries must be an integer of 10"),
        ({"blanks": None}, "blanks must be given"),
        ({"adjacency": "remove-one"}, "blanks must be None"),
        ({"blanks": np.eye(19)}, "blanks must have the shapes"),
        ({"n_guesses": 21}, "20 at most"),
        ({"n_guesses": 0}, "n_guesses must be"),
        ({"data": np.eye(3)}, "data must have as many arrays and features"),
        ({"score": lambda fitted: [1.0]}, "score must give 20 numbers"),
        ({"estimator": broken.Constant()}, "there is no default for this estimator"),
        ({"confidence": 2}, "confidence"),
        ({"delta": 1}, "delta"),
    ],
)
def test_bad_input_of_one_run(given, message):
    call = {"estimator": DPMean(), "canaries": np.eye(20), "blanks": -np.eye(20)} | given
    with pytest.raises(ValueError, match=message):
        audit_one_run(call.pop("estimator"), call.pop("canaries"), call.pop("blanks"), **call)


@pytest.mark.parametrize(
    ("n_canaries", "n_guesses", "epsilon", "delta"),
    [(1000, 1000, 1.0, 0.0), (1000, 400, 2.0, 1e-6), (300, 300, 3.0, 1e-3), (20, 20, 0.0, 0.0)],
)
def test_the_bound_of_one_run_fails_no_more_often_than_stated(
    n_canaries, n_guesses, epsilon, delta
):
    rng = np.random.default_rng(4)
    # the best guesses: randomised response, and coins that delta reveals
    share = 1 / (1 + np.exp(-epsilon))
    right = rng.binomial(n_guesses, share, 400) + rng.binomial(n_canaries, delta, 400)
    counts = np.minimum(right, n_guesses)
    counts, places = np.unique(counts, return_inverse=True)
    found = [one_run_epsilon(int(c), n_guesses, n_canaries, delta, 0.9) for c in counts]
    found = np.array(found)[places]
    # 40 failures in the mean; 62 are too many with probability 3e-4
    assert np.sum(found > epsilon) <= 62
    if n_canaries == 1000:
        assert np.mean(found) > 0.8 * epsilon


def test_the_bound_of_one_run_is_the_binomial_tail():
    assert one_run_p_value(70, 100, 1000, 0.4, 0.0) == pytest.approx(
        stats.binom.sf(69, 100, 1 / (1 + np.exp(-0.4))), rel=1e-9
    )
    assert one_run_p_value(0, 100, 1000, 0.4, 0.0) == 1.0
    tails = [one_run_p_value(99, 100, 100, e, 1e-4) for e in np.linspace(0, 12, 50)]
    assert np.all(np.diff(tails) >= 0)
    # with delta: the least of tails with so many coins to spare
    share = 1 / (1 + np.exp(-1.0))
    least = min(stats.binom.sf(89 - t, 100, share) + 0.1 / (t + 1) for t in range(91))
    assert one_run_p_value(90, 100, 100, 1.0, 1e-3) == pytest.approx(least, rel=1e-9)
    assert one_run_epsilon(100, 100, 100, 0.0, 0.95) > 3
    assert one_run_epsilon(50, 100, 100, 0.0, 0.95) == 0.0
