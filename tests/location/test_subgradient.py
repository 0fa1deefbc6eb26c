# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Subgradient descent keeps the bound that its plan states."""

import numpy as np
import pytest

from skdp.solvers.subgradient import plan_subgradient, subgradient_descent


def plan(**changes):
    public = {"n_rows": 1000, "n_coefs": 4, "row_gradient_bound": 1.0, "radius": 2.0, "mu": 0.5}
    return plan_subgradient(**{**public, "adjacency": "zero-out", **changes})


def test_the_number_of_steps_follows_the_rule():
    assert plan(mu=0.1).n_steps == (1000 * 0.1 / 2) ** 2 / 4
    assert plan(mu=0.1, adjacency="replace-one").n_steps == 157
    assert plan(mu=1e-3).n_steps == 100
    assert plan(mu=100.0).n_steps == 4000
    assert plan(mu=100.0, n_rows=10**6).n_steps == 500
    assert plan(n_steps=7).n_steps == 7
    assert plan(mu=0.5, n_steps=25).mu_step == 0.1


@pytest.mark.covering
@pytest.mark.parametrize("l2", [0.0, 1e-3, 1e3])
@pytest.mark.parametrize("n_steps", [2, 51, 400])
@pytest.mark.parametrize("mu", [0.01, 10.0])
def test_the_solver_keeps_its_bound(l2, n_steps, mu):
    noise = np.random.default_rng(0)
    target = np.array([1.0, 0.5, 0.0, -1.0])
    public = plan(l2=l2, n_steps=n_steps, mu=mu)
    sigma = np.sqrt(n_steps) / mu

    def gradient(coef):
        gap = coef - target
        direction = 1000 * gap / max(np.linalg.norm(gap), 1e-12)
        return direction + sigma * noise.normal(size=4)

    def objective(coef):
        return 1000 * np.linalg.norm(coef - target) + l2 / 2 * coef @ coef

    def runs():
        return [objective(subgradient_descent(gradient, (4,), public)) for _ in range(5)]

    # on the segment from the target to zero; the loss wins while 1000 >= l2 |target|
    shrunk = min(1.0, 1000 / (max(l2, 1e-300) * np.linalg.norm(target)))
    excess = np.mean(runs()) - objective(shrunk * target)
    assert -1e-6 < excess < public.error_bound
    assert public.error_bound <= 2 * 2.0 * (1000 + l2 * 2.0)


def test_a_penalty_chooses_a_radius_and_a_faster_schedule():
    free = plan(radius=None, l2=100.0)
    assert free.radius == 10.0
    with pytest.raises(ValueError, match="l2 must"):
        plan(radius=None)
    weights = [weight for _, weight in plan(l2=1e5, n_steps=4).schedule()]
    assert weights == [1, 2, 3, 4]
    assert [weight for _, weight in plan(n_steps=5).schedule()] == [0, 0, 1, 1, 1]
