# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Boosting: the price of all runs and of the choice, and the probability that it promises."""

import math

import numpy as np
import pytest

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp.papers.boosting import CandidateChoice, boost, plan_boosting
from skdp.privacy import (
    Curator,
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    gdp_mu,
)
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import Variates
from skdp.solvers.exponential import loss_gradients, loss_values
from tests._neighbours import rows_in_ball

LOSSES = [LogisticLoss(), LogisticLoss(1.0, 0.3), SoftmaxLoss(3), HingeLoss(), HingeLoss(3)]


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


@pytest.mark.covering
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
    chosen = boost(curator, lambda: curator.release(Shift(), mechanism), plan, LogisticLoss(), 1.2)
    assert chosen.shape == (4,)
    counts = [release.count for release in curator.ledger.releases]
    assert counts == [plan.n_runs, 1]
    assert 0.6 < curator.ledger.epsilon(delta) <= 1.0


def test_the_result_is_good_with_the_promised_probability():
    # one run in two is terrible: its expected excess is half of the terrible one's
    plan = plan_boosting(1.0, 0.0, failure=0.1)
    rows, *_ = admitted(400)
    loss, variates = LogisticLoss(), Variates(SeededBits(0))
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
