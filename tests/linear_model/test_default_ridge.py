# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The penalty of output perturbation: noise of a margin, free of the number of features."""

import math

import numpy as np
import pytest

from skdp import DPHingeSVM, DPLogisticRegression
from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import gdp_mu
from skdp.solvers import objective
from skdp.solvers.base import MARGIN_NOISE, default_ridge, margin_noise, rivals
from tests._solvers import linear_model, problem_of


def problem(n_rows=10_000, n_features=2**18, epsilon=1.0, delta=1e-5, n_classes=2, **options):
    """Return the public facts of a logistic regression."""
    model = linear_model(DPLogisticRegression, epsilon, delta, mechanism="output", **options)
    return problem_of(model, n_rows, n_features, n_classes)


def noise_law(public, ridge):
    """Return the law of the noise, and the deviation of a margin."""
    return margin_noise(public)(ridge)


def test_the_penalty_does_not_depend_on_the_number_of_features():
    ridges = [default_ridge(problem(n_features=d)) for d in (100, 2**14, 2**20)]
    assert ridges[0] == ridges[1] == ridges[2]
    expected = 2 * math.hypot(1, 0.1) / gdp_mu(1.0, 1e-5) / MARGIN_NOISE
    assert ridges[0] == pytest.approx(expected)
    # nor does that of objective perturbation, from a few thousand on
    ridges = [objective.default_objective_ridge(problem(n_features=d)) for d in (2**14, 2**20)]
    assert ridges[0] == pytest.approx(ridges[1], rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("sparsity", [None, 30])
def test_noise_moves_margins_by_the_same_amount(delta, n_classes, sparsity):
    public = problem(n_features=5000, delta=delta, n_classes=n_classes, sparsity=sparsity)
    deviation = noise_law(public, default_ridge(public))[1]
    assert deviation == pytest.approx(MARGIN_NOISE / rivals(public.loss), rel=1e-9)


def test_few_coefficients_bear_more_noise_and_many_rows_less():
    few = problem(n_features=3)
    assert noise_law(few, default_ridge(few))[1] == pytest.approx(1.25 / 2)
    # from the bound for a solution of norm 30
    ridges = [default_ridge(problem(n_rows=n)) for n in (10**9, 8 * 10**9)]
    assert ridges[1] / ridges[0] == pytest.approx(2.0, rel=0.06)
    unit = noise_law(problem(), 1.0)[1] * math.hypot(1, 0.1)
    assert ridges[0] == pytest.approx((2 * 10**9 * unit**2 / 4 / 900) ** (1 / 3), rel=0.06)
    kinked = DPHingeSVM(1.0, 1e-5)
    ridges = [default_ridge(problem_of(kinked, n, 100, 2)) for n in (10**9, 4 * 10**9)]
    assert ridges[1] / ridges[0] == pytest.approx(2.0, rel=0.06)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("sparsity", [None, 1, 7])
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_the_penalty_is_found_for_any_budget(estimator, sparsity, epsilon):
    public = problem_of(
        linear_model(estimator, epsilon, 0.0, mechanism="output", sparsity=sparsity), 50, 400, 3
    )
    ridge = default_ridge(public)
    limit = MARGIN_NOISE / rivals(public.loss)
    assert noise_law(public, ridge)[1] <= limit * (1 + 1e-9)
    assert 0 < ridge < 1e9


@pytest.mark.parametrize(
    ("loss", "sigma", "short"),
    [
        (LogisticLoss(), 0.3, 0.0),
        (LogisticLoss(1.0, 0.1), 0.05, 0.0),
        (LogisticLoss(1.0, 0.1), 3.0, 0.0),
        (HingeLoss(), 0.3, 0.0),
        (SoftmaxLoss(3), 0.3, 0.0),
        (HingeLoss(), 0.3, 1.0),
        (LogisticLoss(), 0.3, 2.0),
    ],
    ids=str,
)
def test_what_noise_costs_is_free_of_the_dimension(loss, sigma, short):
    # Proposition 46: margins where the loss bends most attain the bound
    rng = np.random.default_rng(0)
    K, X = loss.n_outputs, 0.8
    z = np.zeros((1, K) if K > 1 else 1)
    z[..., 0] = loss.margin - short
    target = np.zeros(1, dtype=int) if K > 1 else np.ones(1)
    for n_features in (1, 50):
        # the noise of a margin, by way of the coefficients
        row = np.full(n_features, X / math.sqrt(n_features))
        noise = sigma * rng.normal(size=(100_000, K, n_features)) @ row
        moved = z + noise if K > 1 else z + noise[:, 0]
        excess = np.mean(loss.value(moved, np.repeat(target, 100_000)) - loss.value(z, target))
        kinked = sigma * X / math.sqrt(2 * math.pi)
        smooth = loss.trace * (sigma * X) ** 2 / 2
        bound = smooth if K > 1 else min(kinked, smooth)
        assert excess <= bound * 1.02 + 1e-12
        if short == 0:
            assert excess >= 0.8 * bound


def test_several_kinked_classes_cost_what_the_largest_noise_does():
    loss, rng = HingeLoss(6), np.random.default_rng(0)
    # all classes tie at the margin
    z = np.zeros((1, 6))
    z[0, 0] = 1.0
    moved = z + 0.3 * rng.normal(size=(100_000, 6))
    excess = loss.value(moved, np.zeros(100_000, dtype=int)).mean()
    assert 0.6 < excess / (0.3 * rivals(loss)) <= 1
