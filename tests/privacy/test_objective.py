# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The price of objective perturbation, against exact densities of the minimiser.

In one dimension the minimiser of J(w) + b w has density f(-J'(w)) J''(w), so that
delta(epsilon), the integral of (p - e^epsilon q)_+, and the largest log(p/q) are
computed without sampling. Rows have norm 1, and gradients in [-1, 1].
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from skdp.privacy import Influence, ObjectivePerturbation
from skdp.privacy.laws.objective import objective_delta

GRID = np.linspace(-60, 60, 60_001)


def influence(adjacency, ridge, *, tied=True, temperature=1.0):
    slope = 1 / temperature / ridge
    return Influence(
        rows=1 if adjacency == "zero-out" else 2,
        reach=1.0,
        corners=1,
        log_det=math.log1p(slope / 4),
        slope=slope if tied else math.inf,
        ridge=ridge,
        distance=1e-9,
        bound=1e3,
        theorem="test",
    )


def log_density(signs, ridge, law, scale, temperature=1.0):
    """Return log p on the grid; a row's sign is its label, 0 for a null row."""
    first, second = ridge * GRID, np.full_like(GRID, ridge)
    for sign in signs:
        a = expit(-sign * GRID / temperature) if sign else 0.0
        first = first - sign * a
        second = second + sign**2 * a * (1 - a) / temperature
    if law == "gaussian":
        noise = -((first / scale) ** 2) / 2 - math.log(scale * math.sqrt(2 * math.pi))
    else:
        noise = -np.abs(first) / scale - math.log(2 * scale)
    return noise + np.log(second)


def exact_delta(one, other, epsilon):
    return np.trapezoid(np.maximum(np.exp(one) - np.exp(epsilon + other), 0.0), GRID)


def data_pairs(adjacency):
    others = [(), (1,), (-1,), (1, 1, 1), (1, -1), (-1,) * 6]
    for rest in others:
        for change in ((1, 0), (-1, 0)) if adjacency == "zero-out" else ((1, -1), (1, 0)):
            for one, other in (change, change[::-1]):
                yield (*rest, one), (*rest, other)


def worst(adjacency, ridge, law, scale, measure):
    return max(
        measure(log_density(one, ridge, law, scale), log_density(other, ridge, law, scale))
        for one, other in data_pairs(adjacency)
    )


def largest_ratio(one, other):
    # beyond this the densities themselves are below what floats hold
    seen = np.minimum(one, other) > -600
    return np.max(np.abs(one - other)[seen])


BUDGETS = [(0.3, 1e-2), (1.0, 1e-3), (3.0, 1e-4), (8.0, 1e-3)]
every_adjacency = pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])


def test_densities_integrate_to_one():
    density = np.exp(log_density((1, -1, 1), 0.7, "gaussian", 2.0))
    assert np.trapezoid(density, GRID) == pytest.approx(1, abs=1e-6)


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("strength", [0.3, 1.0, 2.5, 20.0])
def test_gaussian_price_is_kept(epsilon, delta, strength, adjacency):
    ridge = strength * (1 if adjacency == "zero-out" else 2) / epsilon
    facts = influence(adjacency, ridge)
    try:
        noise = ObjectivePerturbation(epsilon, delta).calibrate(facts, 1).linear
    except ValueError:
        assert strength < 1
        return

    def measure(one, other):
        return exact_delta(one, other, noise.epsilon)

    true = worst(adjacency, ridge, "gaussian", noise.scale, measure)
    assert true <= noise.delta
    if adjacency == "zero-out" and strength == 2.5 and epsilon > 1:
        # it costs what releasing the gradient would: no more is paid than needed
        assert true >= 0.8 * noise.delta
    assert noise.epsilon < epsilon
    assert noise.delta < delta


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("strength", [0.3, 1.0, 5.0])
def test_pure_price_is_kept(epsilon, strength, adjacency):
    ridge = strength * (1 if adjacency == "zero-out" else 2) / epsilon
    facts = influence(adjacency, ridge)
    try:
        noise = ObjectivePerturbation(epsilon, 0.0).calibrate(facts, 1).linear
    except ValueError:
        assert strength < 1
        return
    true = worst(adjacency, ridge, "laplace", noise.scale, largest_ratio)
    assert true <= noise.epsilon * (1 + 1e-6)
    if adjacency == "zero-out" and strength == 5:
        assert true >= 0.99 * noise.epsilon


def test_a_determinant_that_is_not_paid_for_is_caught():
    # the ridge is too weak for a free determinant, and the mutant takes it as free
    epsilon, delta, ridge = 1.0, 1e-3, 0.02
    facts = replace(influence("zero-out", ridge), log_det=0.0, slope=0.0)
    gaussian = ObjectivePerturbation(epsilon, delta).calibrate(facts, 1).linear
    pure = ObjectivePerturbation(epsilon, 0.0).calibrate(facts, 1).linear

    def measure(one, other):
        return exact_delta(one, other, epsilon)

    assert worst("zero-out", ridge, "gaussian", gaussian.scale, measure) > 10 * delta
    assert worst("zero-out", ridge, "laplace", pure.scale, largest_ratio) > 1.5 * epsilon


def log_ratio_in_the_plane(first, second, others, w, ridge, scale):
    """Return log(p/q) at w, in two dimensions, for K-norm noise; rows are label times x."""
    terms = []
    for row in (first, second):
        gradient, hessian = ridge * w, ridge * np.eye(2)
        for v in [*others, row]:
            a = expit(-v @ w)
            gradient, hessian = gradient - a * v, hessian + a * (1 - a) * np.outer(v, v)
        terms.append(-np.linalg.norm(gradient) / scale + np.linalg.slogdet(hessian)[1])
    return terms[0] - terms[1]


def test_replace_one_needs_twice_the_reach():
    # nearly opposite rows whose gradients both have length 1 where w points away from both;
    # other rows turn the noise that leads there into the direction of the difference
    epsilon, ridge = 1.0, 5.0
    tilt, w = 0.1, np.array([0.0, -60.0])
    one, other = np.array([[1.0, tilt], [-1.0, tilt]]) / math.hypot(1, tilt)
    others = [np.array([1.0, 0.0])] * 20_000

    def ratio(adjacency):
        facts = influence(adjacency, ridge)
        scale = ObjectivePerturbation(epsilon, 0.0).calibrate(facts, 2).linear.scale
        return log_ratio_in_the_plane(other, one, others, w, ridge, scale)

    assert 0.95 * epsilon < ratio("replace-one") <= epsilon
    assert ratio("zero-out") > 1.9 * epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_the_pure_constants_in_print_are_not_private(epsilon):
    """Appendix E of Bassily, Smith and Thakurta (2014): ridge beta/(2 epsilon), noise 2 L."""
    ridge = 0.25 / (2 * epsilon)
    assert worst("replace-one", ridge, "laplace", 2 / epsilon, largest_ratio) > 1.25 * epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_gaussian_constants_in_print_are_not_private(epsilon):
    """The same; the noise has variance 8 L^2 log(1/delta) / epsilon^2."""
    delta, ridge = 1e-5, 0.25 / (2 * epsilon)
    scale = math.sqrt(8 * math.log(1 / delta)) / epsilon

    def measure(one, other):
        return exact_delta(one, other, epsilon)

    assert worst("replace-one", ridge, "gaussian", scale, measure) > 50 * delta


def test_the_tied_bound_needs_its_condition():
    weak = influence("zero-out", ridge=0.5)
    assert weak.slope > 1.0
    assert objective_delta(1.0, 2.0, weak) > objective_delta(1.0, 2.0, replace(weak, slope=1.0))


def test_several_outputs_pay_for_every_corner():
    facts = replace(influence("zero-out", 50.0, tied=False), corners=9)
    one = objective_delta(1.0, 5.0, replace(facts, corners=1))
    assert objective_delta(1.0, 5.0, facts) == pytest.approx(9 * one)


def test_a_weak_penalty_is_refused():
    facts = influence("zero-out", ridge=0.01, tied=False)
    for delta in (0.0, 1e-6):
        with pytest.raises(ValueError, match="too weak"):
            ObjectivePerturbation(1.0, delta).calibrate(facts, 3)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_cover_pays_for_twice_the_distance_and_the_rounded_term(delta):
    facts = influence("zero-out", 2.0)
    noise = ObjectivePerturbation(1.0, delta).calibrate(facts, 3)
    stated = 2 * (1e-9 + noise.linear.grid * math.sqrt(3) / 2 / 2.0)
    assert noise.error[1] == pytest.approx(stated)
    assert noise.cover.sensitivity >= stated
    assert noise.cover.law == ("gaussian" if delta else "k-norm")
    twice = ObjectivePerturbation(1.0, delta).calibrate(replace(facts, distance=1.0), 3)
    assert twice.error[1] == pytest.approx(2.0, rel=1e-3)


def test_noise_is_that_of_the_additive_mechanisms():
    facts = influence("zero-out", 50.0)
    noise = ObjectivePerturbation(1.0, 0.0).calibrate(facts, 4).linear
    assert noise.law == "k-norm"
    assert noise.scale == pytest.approx(1 / noise.epsilon, rel=1e-5)
    assert ObjectivePerturbation(1.0, 1e-6).calibrate(facts, 4).linear.law == "gaussian"
