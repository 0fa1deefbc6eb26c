# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated stochastic approximation: its error bound, its weights, its plan."""

import math
from itertools import pairwise

import numpy as np
import pytest

from skdp.papers.accelerated_one_pass import (
    ApproximationPlan,
    plan_approximation,
    stochastic_approximation,
)

# curvatures, and the minimiser of a quadratic
CURVATURES = np.array([1.0, 0.3, 0.05, 0.01, 1e-3, 1e-4])
BEST = np.array([1.0, -2.0, 1.0, 3.0, 0.5, -1.0])
DISTANCE = float(np.linalg.norm(BEST))


def planned(n_steps, step_size, **options):
    usual = {
        "mu": 1.0, "clip": 1.0, "adaptive": False, "noise": 0.0, "l2": 0.0, "radius": None,
        "intercept": False,
    }  # fmt: skip
    return ApproximationPlan(n_steps=n_steps, step_size=step_size, **{**usual, **options})


def smooth_plan(n_steps, spread, beta=1.0, distance=DISTANCE, **options):
    """Return the plan of Proposition 54 for a given noise, and its bound."""
    T = n_steps
    eta = max(2 * beta, spread / distance * math.sqrt(T * (T + 1) * (2 * T + 1) / 12))
    bound = 4 * beta * distance**2 / (T * (T + 1))
    bound += 2 * distance * spread * math.sqrt((2 * T + 1) / (3 * T * (T + 1)))
    return planned(T, 1 / eta, **options), bound


def quadratic(coef):
    return 0.5 * (coef - BEST) ** 2 @ CURVATURES


def excesses(plan, spread, n_repeats, bias=0.0):
    rng = np.random.default_rng(0)
    sigma = spread / math.sqrt(len(BEST))

    def gradient(coef):
        return CURVATURES * (coef - BEST) + bias + sigma * rng.normal(size=coef.shape)

    if plan.radius is None:
        # all runs at once, side by side
        return quadratic(stochastic_approximation(gradient, (n_repeats, 6), plan))
    runs = [stochastic_approximation(gradient, (6,), plan) for _ in range(n_repeats)]
    return quadratic(np.array(runs))


@pytest.mark.parametrize("n_steps", [1, 2, 5, 20, 80])
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 10.0])
def test_the_error_bound_holds(n_steps, spread):
    plan, bound = smooth_plan(n_steps, spread)
    found = excesses(plan, spread, 200 if spread else 1)
    assert found.mean() <= bound + 4 * found.std() / math.sqrt(len(found))


def test_the_error_bound_is_near_where_the_noise_is_what_matters():
    # one direction without curvature: nothing but noise moves the point
    plan, bound = smooth_plan(40, 5.0)
    assert 0.02 * bound < excesses(plan, 5.0, 300).mean() <= bound


def test_noise_is_averaged_as_the_theorem_says():
    slow = [excesses(smooth_plan(T, 3.0)[0], 3.0, 300).mean() for T in (10, 40, 160)]
    assert all(before > 1.5 * after for before, after in pairwise(slow))


@pytest.mark.parametrize("n_steps", [5, 50])
def test_a_bias_costs_itself_times_the_diameter(n_steps):
    bias = np.full(6, 0.2)
    plan, bound = smooth_plan(n_steps, 0.5, radius=DISTANCE)
    bound += np.linalg.norm(bias) * 2 * DISTANCE
    assert excesses(plan, 0.5, 40, bias=bias).mean() <= bound


@pytest.mark.parametrize("n_steps", [10, 100])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_kinks_cost_the_length_of_a_subgradient(n_steps, spread):
    # part (c): |w - best|, of Lipschitz constant 1, with eta for 2 L + S
    rng, T = np.random.default_rng(0), n_steps
    size = 2.0 + spread
    eta = size / DISTANCE * math.sqrt(T * (T + 1) * (2 * T + 1) / 24)

    def gradient(coef):
        gap = coef - BEST
        gap /= np.maximum(np.linalg.norm(gap, axis=1, keepdims=True), 1e-9)
        return gap + spread * rng.normal(size=gap.shape) / math.sqrt(6)

    runs = stochastic_approximation(gradient, (100, 6), planned(T, 1 / eta))
    found = np.linalg.norm(runs - BEST, axis=1).mean()
    assert found <= 2 * DISTANCE * size * math.sqrt((2 * T + 1) / (6 * T * (T + 1)))


def test_full_batches_reach_the_minimiser_faster_than_plain_steps():
    plan, bound = smooth_plan(400, 0.0)
    plain = np.zeros(6)
    for _ in range(400):
        plain = plain - CURVATURES * (plain - BEST)
    accelerated = excesses(plan, 0.0, 1)[0]
    assert accelerated <= bound
    assert accelerated < 0.3 * quadratic(plain)


def test_a_penalty_is_a_proximal_step():
    l2 = 0.5
    plan = planned(300, 0.5, l2=l2)
    coef = stochastic_approximation(lambda w: CURVATURES * (w - BEST), (6,), plan)
    np.testing.assert_allclose(coef, CURVATURES * BEST / (CURVATURES + l2), atol=1e-3)


# -- weights -----------------------------------------------------------------


def printed(best, start, n_steps):
    """Return the average for the printed weights 2 / (t + 2), where every step finds the best."""
    average = start
    for t in range(1, n_steps + 1):
        weight = 2 / (t + 2)
        average = (1 - weight) * average + weight * best
    return average


@pytest.mark.parametrize("n_steps", [1, 3, 10])
def test_nothing_is_left_of_the_start(n_steps):
    # curvature 1, and a first step of length 1: every step ends at the minimiser or near it
    start, visited = BEST + 1e6, []

    def gradient(coef):
        visited.append(coef)
        return coef - BEST

    plan = planned(n_steps, 2.0)
    found = stochastic_approximation(gradient, (6,), plan, start)
    np.testing.assert_array_equal(visited[0], start)
    np.testing.assert_allclose(found, BEST, atol=1e-6 * n_steps)
    # the printed ones keep the share 2 / ((T + 1) (T + 2)) of it
    left = 1e6 * 2 / ((n_steps + 1) * (n_steps + 2))
    np.testing.assert_allclose(printed(BEST, start, n_steps) - BEST, left)


def test_the_average_has_weights_proportional_to_the_number_of_the_step():
    # constant gradients: step t moves by t/2 times the step size
    plan, g = planned(7, 0.1), np.array([1.0, -2.0])
    steps = np.arange(1, 8)
    points = -np.cumsum(steps / 2 * 0.1)
    expected = (steps @ points) / steps.sum() * g
    np.testing.assert_allclose(stochastic_approximation(lambda w: g, (2,), plan), expected)


def test_the_point_stays_in_both_balls():
    rng = np.random.default_rng(0)
    start = np.array([[0.6, 0.0], [0.0, 0.7]])
    plan = planned(50, 5.0, radius=1.0)
    for _ in range(20):
        target = 10 * rng.normal(size=(2, 2))
        visited = []

        def gradient(coef, target=target, visited=visited):
            visited.append(coef)
            return coef - target

        visited.append(stochastic_approximation(gradient, (2, 2), plan, start, 0.3))
        for coef in visited:
            assert np.linalg.norm(coef) <= 1 + 1e-12
            assert np.linalg.norm(coef - start) <= 0.3 + 1e-12


# -- the plan ----------------------------------------------------------------

PROBLEM = {
    "n_rows": 10_000, "n_coefs": 50, "mu": 0.5, "reach": 2, "longest": 1.0, "smoothness": 0.25,
    "distance": 3.0,
}  # fmt: skip


def test_the_number_of_steps_has_the_least_bound():
    chosen = plan_approximation(**PROBLEM)
    others = [plan_approximation(**PROBLEM, n_steps=T) for T in (5, 8, 12, 20, 40, 100, 200)]
    assert all(chosen.error_bound <= other.error_bound for other in others)
    assert 5 < chosen.n_steps < 200
    assert chosen.mu_step == chosen.mu == 0.5


@pytest.mark.parametrize("order", [1.2, 2.0, 4.0])
def test_the_clip_for_a_moment_has_the_least_bound(order):
    problem = {**PROBLEM, "longest": math.inf, "n_steps": 12}
    chosen = plan_approximation(**problem, moments=(order, 2.0))
    for factor in (0.5, 0.8, 1.25, 2.0):
        other = plan_approximation(**problem, moments=(order, 2.0), clip=factor * chosen.clip)
        # the spread of a batch is bounded, not minimised over
        assert chosen.error_bound <= other.error_bound * (1.0 if order >= 2 else 1.05)
    assert chosen.clip > 2.0


def test_the_bound_of_the_plan_is_that_of_the_theorem():
    plan = plan_approximation(**PROBLEM, clip=1.0, n_steps=10)
    sigma = 2 * 1.0 / (1000 * 0.5)
    spread = math.hypot(math.sqrt(50) * sigma, 1 / math.sqrt(1000))
    same, bound = smooth_plan(10, spread, beta=0.25, distance=3.0)
    assert plan.error_bound == pytest.approx(bound, rel=1e-12)
    assert plan.step_size == pytest.approx(same.step_size, rel=1e-12)


@pytest.mark.parametrize("n_rows", [1, 2, 4, 5, 7])
def test_no_step_is_without_a_row(n_rows):
    for n_steps in (None, 1, 100):
        plan = plan_approximation(**{**PROBLEM, "n_rows": n_rows}, n_steps=n_steps)
        assert min(n_rows, n_steps or 5) <= plan.n_steps <= min(n_rows, n_steps or 200)


def test_absurd_numbers_give_a_plan():
    for distance in (1e-150, 1e200):
        for mu in (1e-12, 1e6):
            for moments in (None, (1.001, 1e-200), (50.0, 1e200)):
                given = {**PROBLEM, "distance": distance, "mu": mu, "moments": moments}
                plan = plan_approximation(**given)
                assert 1 <= plan.n_steps <= 200
                assert 0 < plan.step_size < math.inf
                assert 0 < plan.clip <= 1.0
    given = plan_approximation(**PROBLEM, step_size=0.7)
    assert (given.step_size, given.adaptive, given.error_bound) == (0.7, False, math.inf)
