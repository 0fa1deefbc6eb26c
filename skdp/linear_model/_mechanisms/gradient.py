# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradient perturbation: noisy clipped gradients, step after step."""

from dataclasses import dataclass
from typing import Any

from skdp._queries import ClippedGradient
from skdp._solvers import GRADIENT_SOLVERS, GradientPlan, plan_gradient
from skdp.privacy import GaussianMechanism, gdp_mu


@dataclass(frozen=True)
class GradientFit:
    """Noisy gradient descent, plain or accelerated."""

    problem: Any
    solver: str
    steps: GradientPlan

    @property
    def delta(self):
        """The delta that may be spent."""
        return self.problem.delta

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Release one gradient a step and descend along it."""
        mechanism = GaussianMechanism(self.steps.mu_step)
        loss, clip, n_rows = self.problem.loss, self.steps.clip, self.problem.n_rows

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, clip), mechanism)
            return released.reshape(coef.shape) / n_rows

        return GRADIENT_SOLVERS[self.solver](gradient, self.problem.shape, self.steps)


def plan(problem, solver):
    """Plan gradient perturbation.

    Parameters
    ----------
    problem, solver : Problem, {"accelerated", "gd"}
        Public facts, and the method.

    Returns
    -------
    plan : GradientFit
        The plan.
    """
    steps = plan_gradient(
        n_rows=problem.n_rows,
        n_features=problem.n_features,
        loss=problem.loss,
        mu=gdp_mu(problem.epsilon, problem.delta),
        adjacency=problem.adjacency,
        intercept=problem.intercept,
        l2=problem.penalty / problem.n_rows,
        radius=problem.radius,
        n_steps=problem.max_iter,
        step_size=problem.step_size,
        clip=problem.clipping_norm,
    )
    return GradientFit(problem, solver, steps)
