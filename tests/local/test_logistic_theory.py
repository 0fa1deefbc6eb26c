# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression from local reports: accuracies, and the asymptotic covariance."""

import numpy as np
import pytest
from scipy.special import expit

from skdp._losses.classification import LogisticLoss
from skdp.local import BallRandomiser
from skdp.local._logistic import plan_logistic_reports
from tests.local.test_logistic import fitted


def on_the_sphere(n_rows, truth, seed, intercept=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, len(truth)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (rng.random(n_rows) < expit(X @ truth + intercept)).astype(int)


def plan(n_rows, **given):
    wanted = {
        "epsilon": 8.0, "intercept": 0.4, "randomiser": BallRandomiser(), "covariance_share": 0.0,
        "batch_size": None, "step_size": None, "decay": None, "penalty": 0.0, "average": True,
    }  # fmt: skip
    return plan_logistic_reports(n_rows, 5, 2, **{**wanted, **given})


def test_the_plan_is_made_of_public_numbers():
    made = plan(10_000)
    assert isinstance(made.loss, LogisticLoss)
    assert made.sgd.batches[0][0] == 0
    assert made.sgd.batches[-1][1] == 10_000
    assert all(a[1] == b[0] for a, b in zip(made.sgd.batches, made.sgd.batches[1:], strict=False))
    # theory: the sum of steps is D sqrt(n) / (r sqrt(1 + e)), however many there are
    error = made.randomiser.mean_squared_error(0.5)
    travelled = 10.0 * 100.0 / (np.hypot(1, 0.4) * np.sqrt(1 + error))
    for given in ({}, {"batch_size": 50}, {"batch_size": 13}):
        assert sum(plan(10_000, **given).sgd.lengths()) == pytest.approx(travelled)
    # steps are no longer than the smoothness allows, even in few batches
    assert plan(10_000, batch_size=10_000).sgd.step_size == pytest.approx(4 / (0.25 * 1.16))
    assert plan(1).sgd.n_steps == 1


def test_steps_decay_as_asked():
    lengths = list(plan(1000, batch_size=10, step_size=2.0, decay=0.6).sgd.lengths())
    np.testing.assert_allclose(lengths, 2.0 * np.arange(1, 101) ** -0.6)
    # an average that is to be normal forgets its start
    assert plan(1000, covariance_share=0.2).sgd.decay == 0.55
    assert plan(1000).sgd.decay is None


@pytest.mark.parametrize(
    ("epsilon", "least"), [(0.5, 0.64), (1.0, 0.69), (2.0, 0.70), (4.0, 0.71), (8.0, 0.713)]
)
@pytest.mark.slow
def test_accuracies_at_two_hundred_thousand_rows(epsilon, least):
    truth = np.zeros(20)
    truth[0] = 6.0
    X, y = on_the_sphere(200_000, truth, 0)
    new, labels = on_the_sphere(100_000, truth, 1)
    best = np.mean((new @ truth > 0) == labels)
    assert best == pytest.approx(0.72, abs=0.01)
    models = [fitted(X, y, seed, epsilon=epsilon, fit_intercept=False) for seed in range(5)]
    assert np.mean([model.score(new, labels) for model in models]) > least + best - 0.722


@pytest.mark.slow
def test_the_covariance_is_that_of_fits_and_that_of_theory():
    n_rows, epsilon, runs = 20_000, 8.0, 100
    truth, intercept = np.full(3, 2.0), 0.5
    coefs, covariances, covered = [], [], []
    for seed in range(runs):
        X, y = on_the_sphere(n_rows, truth, seed, intercept)
        model = fitted(X, y, seed, epsilon=epsilon, classes=[0, 1], covariance_share=0.25)
        coefs.append(np.append(model.coef_, model.intercept_))
        covariances.append(model.coef_covariance_)
        lower, upper = model.confidence_interval(0.9)
        covered.append((lower <= [*truth, intercept]) & ([*truth, intercept] <= upper))
    measured, estimated = np.cov(np.array(coefs).T), np.mean(covariances, axis=0)
    # 400 numbers have a variance that is known to seven per cent, and the steps at the start
    # still count: at 60,000 rows the ratio is 1.1, at 20,000 it is 1.15
    assert np.trace(measured) == pytest.approx(np.trace(estimated), rel=0.2)
    assert 0.8 < np.mean(covered) < 0.97
    # theory: H^-1 (H + s I) H^-1 / n in units of the augmented rows; the gradient's second
    # moment is the Hessian at the truth
    X, y = on_the_sphere(400_000, truth, -1 % 1000, intercept)
    rows = np.column_stack([X, np.full(len(X), 0.4)])
    z = X @ truth + intercept
    hessian = (rows * (expit(z) * expit(-z))[:, None]).T @ rows / len(X)
    noise = 1.16 * model.randomiser_.unit.noise_variance
    inverse = np.linalg.inv(hessian)
    units = np.array([1.0, 1.0, 1.0, 0.4])
    theory = inverse @ (hessian + noise * np.eye(4)) @ inverse * np.outer(units, units)
    assert np.trace(estimated) == pytest.approx(np.trace(theory) / (0.75 * n_rows), rel=0.1)
