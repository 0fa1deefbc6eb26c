# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores of rows: held-out rows, sensitivities, names, boosting."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, make_scorer

from skdp import DPGridSearchCV, DPLogisticRegression
from skdp.audit import trace_privacy
from skdp.metrics import dp_accuracy_score, make_dp_scorer
from skdp.model_selection import RowScorer
from skdp.model_selection._row_scorer import (
    BY_NAME,
    FLOOR,
    STEPS,
    HeldOutChoice,
    HeldOutRows,
    HeldOutScore,
    neg_log_loss,
    resolve_scoring,
)
from skdp.papers.boosting import CandidateChoice, boost, plan_boosting
from skdp.privacy import Curator, ExponentialMechanism, GaussianMechanism, KNormMechanism, gdp_mu
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import Variates
from skdp.solvers.exponential import loss_gradients, loss_values
from tests._neighbours import rows_in_ball
from tests._solvers import HINGE_LOSS, HINGES_LOSS, LOGISTIC_LOSS, SOFTMAX_LOSS

# Scores that are means over rows: bounds, silence, and what is refused.


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


def test_a_scorer_that_pays_for_every_score_is_sent_to_scikit_learn():
    search = DPGridSearchCV(
        DPLogisticRegression(classes=["no", "yes"]),
        {"C": [0.1, 1.0]},
        scoring=make_dp_scorer(dp_accuracy_score, epsilon=1.0),
    )
    with pytest.raises(ValueError, match="pays for every score is for GridSearchCV"):
        search.fit(X, Y)


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
        ("roc_auc", "it is not known"), (make_scorer(accuracy_score), "it is not known"),
        (lambda e, X, y: 1.0, "it is not known"), (["accuracy"], "one score"),
        ({"a": "accuracy"}, "one score"), (("accuracy", "f1"), "one score"),
    ],
)  # fmt: skip
def test_other_scores_are_refused_with_the_reason(scoring, reason):
    with pytest.raises(ValueError, match=reason):
        resolve_scoring(scoring, MODEL)


# Scores of held-out rows: sensitivities that are kept and reached, and exact draws.


ADJACENCIES = ("replace-one", "zero-out")
BOUNDS = [(0.0, 1.0), (-7.0, 0.0), (-1e308, 1e308), (0.0, 1e-300), (1.0, 1.0 + 2**-52)]


class WithNull(HeldOutRows):
    """Rows of which the first one is null: it contributes nothing."""

    def totals(self):
        return super().totals() - (self._steps[0] - STEPS / 2)


def pairs(bounds, adjacency, n_candidates=3, n_rows=7):
    """Yield held-out rows that differ in the first row."""
    rng, (low, high) = np.random.default_rng(0), bounds
    other = [
        np.full(n_candidates, low), np.full(n_candidates, high),
        np.where(np.arange(n_candidates) == 0, high, low),
        np.where(np.arange(n_candidates) == 0, low, high),
        np.full(n_candidates, np.nan), np.full(n_candidates, np.inf),
        np.full(n_candidates, -np.inf),
    ]  # fmt: skip
    common = low / 2 + (high / 2 - low / 2) * 2 * rng.uniform(size=(n_rows, n_candidates)) + low / 2
    for first in other:
        table = common.copy()
        table[0] = first
        if adjacency == "zero-out":
            yield HeldOutRows(table, low, high), WithNull(table, low, high)
        for second in other:
            changed = table.copy()
            changed[0] = second
            if adjacency == "replace-one":
                yield HeldOutRows(table, low, high), HeldOutRows(changed, low, high)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_the_mean_keeps_its_sensitivity_and_reaches_it(bounds, adjacency):
    query, n_rows = HeldOutScore(1), 7
    stated, largest = query.sensitivity(adjacency, n_rows), 0.0
    for first, second in pairs(bounds, adjacency):
        values = [query.evaluate(rows) for rows in (first, second)]
        assert all(value.shape == (1,) and abs(value[0]) <= stated.bound for value in values)
        largest = max(largest, abs(values[0] - values[1])[0])
    assert largest == pytest.approx(stated.l2, rel=1e-12)
    assert stated.l1 == stated.l2 == (1.0 if adjacency == "replace-one" else 0.5) / n_rows


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_the_choice_keeps_its_spread_and_reaches_it(bounds, adjacency):
    spread = HeldOutChoice(3).sensitivity(adjacency, 7).spread
    changes = [second.totals() - first.totals() for first, second in pairs(bounds, adjacency)]
    assert max(np.ptp(change) for change in changes) == spread


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_law_of_the_choice_is_private_and_nearly_as_little_as_is_paid(adjacency):
    epsilon = 0.7
    query = HeldOutChoice(3)
    noise = ExponentialMechanism(epsilon).calibrate(query.sensitivity(adjacency, 7), 1)
    worst = 0.0
    for pair in pairs((0.0, 1.0), adjacency):
        scores = [rows.totals() / noise.scale for rows in pair]
        logs = [score - np.logaddexp.reduce(score) for score in scores]
        worst = max(worst, np.abs(logs[0] - logs[1]).max())
    assert 0.6 * epsilon < worst <= epsilon


@pytest.mark.full
def test_candidates_are_drawn_with_these_probabilities():
    rows = HeldOutRows([[1.0, 0.5, 0.0]] * 4, 0.0, 1.0)
    query, bits = HeldOutChoice(3), SeededBits(0)
    noise = ExponentialMechanism(2.0).calibrate(query.sensitivity("replace-one", 4), 1)
    drawn = np.array([query.draw(rows, noise, bits)[0] for _ in range(4000)], dtype=int)
    expected = np.exp(rows.totals() / noise.scale)
    expected *= len(drawn) / expected.sum()
    assert ((np.bincount(drawn, minlength=3) - expected) ** 2 / expected).sum() < 16


def test_a_loss_of_no_candidate_decides_nothing():
    rows = HeldOutRows([[0.0] * 2], 0.0, 1.0)
    query, bits = HeldOutChoice(2), SeededBits(0)
    noise = ExponentialMechanism(50.0).calibrate(query.sensitivity("zero-out", 1), 1)
    assert len({query.draw(rows, noise, bits)[0] for _ in range(60)}) == 2


def test_sums_are_exact_for_many_rows_and_do_not_depend_on_their_order():
    table = np.random.default_rng(0).uniform(size=(20_001, 3))
    rows, turned = HeldOutRows(table, 0, 1), HeldOutRows(table[::-1], 0, 1)
    steps = np.rint(table * STEPS).astype(int) - STEPS // 2
    assert rows.totals().tolist() == turned.totals().tolist() == steps.sum(axis=0).tolist()
    assert len(rows.chunks) > 1


def test_what_is_no_number_counts_as_the_lower_bound():
    query = HeldOutScore()
    for value, share in ((math.nan, -0.5), (math.inf, 0.5), (-math.inf, -0.5), (1e308, 0.5)):
        assert query.evaluate(HeldOutRows([[value]], -2.0, 3.0)) == share


# Boosting: the price of all runs and of the choice, and the probability that it promises.


LOSSES = [LOGISTIC_LOSS, HINGE_LOSS.smoothed(0.3), SOFTMAX_LOSS, HINGE_LOSS, HINGES_LOSS]


def admitted(n_rows=40, d=3, n_classes=2, seed=0, loss=LOSSES[0]):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(n_rows, d)), rng.integers(0, n_classes, n_rows)
    null = rng.uniform(size=n_rows) < 0.2
    return rows_in_ball(X, loss.encode(codes), null, 1.0, 0.5), X, codes, null


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_loss_values_and_gradients_are_sums_over_rows(loss):
    rows, X, codes, null = admitted(n_classes=max(2, loss.n_outputs), loss=loss)
    rng = np.random.default_rng(1)
    points = rng.normal(size=(7, loss.n_outputs * 4))
    V = np.column_stack([X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None], 0.5 + 0 * codes])
    V, target = V[~null], loss.encode(codes)[~null]
    for point, value, gradient in zip(points, *loss_gradients(rows, points, loss), strict=True):
        z = V @ point.reshape(loss.n_outputs, -1).T
        z = z[:, 0] if loss.n_outputs == 1 else z
        assert value == pytest.approx(loss.value(z, target).sum())
        residual = loss.residual(z.copy(), target).reshape(len(V), -1)
        np.testing.assert_allclose(gradient, (residual.T @ V).ravel(), atol=1e-12)
    np.testing.assert_allclose(
        loss_values(rows, points, loss), loss_gradients(rows, points, loss)[0]
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_spread_of_the_choice_bounds_what_a_row_changes(loss, adjacency):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5, loss.n_outputs * 4)) * 3
    query = CandidateChoice(points, loss, math.hypot(1, 0.5))
    stated = query.sensitivity(adjacency, 40).spread
    largest = 0.0
    for seed in range(200):
        rows = admitted(1, n_classes=max(2, loss.n_outputs), seed=seed, loss=loss)[0]
        scores = loss_values(rows, points, loss)
        if adjacency == "replace-one":
            other = admitted(1, n_classes=max(2, loss.n_outputs), seed=seed + 1000, loss=loss)[0]
            scores = scores - loss_values(other, points, loss)
        largest = max(largest, np.ptp(scores))
    assert 0.2 * stated < largest <= stated


@pytest.mark.sample(1)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_runs_and_choice_stay_within_the_budget(delta):
    plan = plan_boosting(1.0, delta, failure=0.05)
    assert plan.n_runs == math.ceil(math.log2(40))

    class Shift:
        name, size = "shift", 4

        def sensitivity(self, adjacency, n_rows):
            from skdp.privacy import Sensitivity

            return Sensitivity(math.inf, 1.0, 10.0, "example")

        def evaluate(self, rows):
            return np.zeros(4)

    rows = admitted()[0]
    curator = Curator(
        lambda: rows, n_rows=40, epsilon=1.0, delta=delta, adjacency="replace-one",
        random_state=0, purpose="test",
    )  # fmt: skip
    mechanism = GaussianMechanism(plan.mu_run) if delta else KNormMechanism(plan.epsilon_run)
    chosen = boost(curator, lambda: curator.release(Shift(), mechanism), plan, LOGISTIC_LOSS, 1.2)
    assert chosen.shape == (4,)
    counts = [release.count for release in curator.ledger.releases]
    assert counts == [plan.n_runs, 1]
    assert 0.6 < curator.ledger.epsilon(delta) <= 1.0


def test_the_result_is_good_with_the_promised_probability():
    # one run in two is terrible: its expected excess is half of the terrible one's
    plan = plan_boosting(1.0, 0.0, failure=0.1)
    rows, *_ = admitted(400)
    loss, variates = LOGISTIC_LOSS, Variates(SeededBits(0))
    good, bad = np.zeros(4), np.array([0.0, 0.0, 0.0, 4.0])
    values = loss_values(rows, np.array([good, bad]), loss)
    excess = abs(values[1] - values[0])
    best, worst = (good, bad) if values[0] < values[1] else (bad, good)
    query = CandidateChoice(np.array([best, worst]), loss, math.hypot(1, 0.5))
    noise = ExponentialMechanism(plan.epsilon_choice).calibrate(
        query.sensitivity("zero-out", 400), 1
    )
    bound = plan.excess_bound(0.0, noise.sensitivity)
    rng, failures = np.random.default_rng(0), 0
    for _ in range(500):
        runs = [best if rng.uniform() < 0.5 else worst for _ in range(plan.n_runs)]
        query = CandidateChoice(np.array(runs), loss, math.hypot(1, 0.5))
        chosen = runs[int(query.draw(rows, noise, variates)[0])]
        failures += (excess if chosen is worst else 0.0) > bound
    assert excess > bound
    assert failures <= 0.1 * 500


@pytest.mark.parametrize("failure", [0.0, 1.0, -1, 2, math.nan])
def test_a_bad_probability_is_refused(failure):
    with pytest.raises(ValueError, match="failure must be in"):
        plan_boosting(1.0, 1e-6, failure)


def test_next_to_gaussian_runs_a_tenth_is_for_the_choice():
    plan = plan_boosting(1.0, 1e-6, failure=0.1)
    assert plan.epsilon_choice == pytest.approx(0.1)
    # composed with the choice, the runs have more than what a plain sum would leave
    assert plan.mu_run * math.sqrt(plan.n_runs) > gdp_mu(0.9, 1e-6)
    assert plan_boosting(1.0, 0.0, failure=0.1).epsilon_choice == pytest.approx(0.5)


@pytest.mark.parametrize("gamma", [0.05, 0.3])
def test_the_probability_that_a_random_number_of_runs_fails(gamma):
    # each run fails every other time, and is the last one with probability gamma
    k = np.arange(1, 200)
    failing = np.sum(0.5**k * gamma * (1 - gamma) ** (k - 1))
    assert failing == pytest.approx(gamma / (1 + gamma))
    # more than what is printed
    assert failing > gamma / (2 * (1 - gamma**2)) + 0.02


# -- null rows -------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
@pytest.mark.parametrize("strategy", ["all", "subset"])
def test_a_null_row_counts_as_nothing_in_a_score(scoring, strategy):
    # once it counted as a wrong answer: a row that was right cost twice its price
    model = DPLogisticRegression(
        8.0, classes=[0, 1], adjacency="zero-out", max_iter=1, data_norm=1.0
    )
    search = DPGridSearchCV(
        model, {"C": [1.0, 10.0]}, epsilon=20.0, scoring=scoring, strategy=strategy
    )
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(6, 2))
    y = np.arange(6) % 2
    distances = []
    for row in range(2):
        labels, rows = y.copy(), X.copy()
        labels[row], rows[row] = 9, np.nan
        for pair in ({"y_neighbour": labels}, {"X_neighbour": rows}):
            result = trace_privacy(search, X, y=y, **pair, n_draws=0)
            assert result.passed, result
            distances += [r.distance for r in result.releases if "held-out" in r.query]
    assert max(distances) > 0


def test_weights_draw_scores_to_the_middle():
    query, weight = HeldOutScore(), np.array([1.0, 0.5, 0.0])
    rows = HeldOutRows([[1.0], [1.0], [0.0]], 0.0, 1.0, weight=weight)
    assert_allclose(query.evaluate(rows), [(0.5 + 0.25) / 3], atol=1e-6)
    null = HeldOutRows([[1.0], [1.0], [0.0]], 0.0, 1.0, [[True], [False], [False]], weight=weight)
    assert_allclose(query.evaluate(null), [0.25 / 3], atol=1e-6)
    # a row of the largest weight moves a mean as a row without weights does
    other = HeldOutRows([[0.0], [1.0], [0.0]], 0.0, 1.0, weight=weight)
    moved = query.evaluate(rows) - query.evaluate(other)
    assert_allclose(moved, query.sensitivity("replace-one", 3).l1)
    assert_allclose(query.evaluate(rows) - query.evaluate(null), 1 / 6, atol=1e-6)
