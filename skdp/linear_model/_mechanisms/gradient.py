# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradient perturbation: noisy clipped gradients, step after step."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._losses import ClippedLoss
from skdp._queries import ClippedGradient
from skdp._solvers import (
    GRADIENT_SOLVERS,
    GradientPlan,
    SubgradientPlan,
    plan_gradient,
    plan_subgradient,
    regression_steps,
    subgradient_descent,
)
from skdp.linear_model._mechanisms.fit import Fit
from skdp.privacy import GaussianMechanism


@dataclass(frozen=True)
class GradientFit(Fit):
    """Noisy gradient descent, plain or accelerated."""

    solver: str
    steps: GradientPlan
    full_batches = True

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Release one gradient a step and descend along it."""
        loss, clip, n_rows = self.problem.pointwise, self.steps.clip, self.problem.n_rows
        paid = prepaid_gradients(curator, self.problem, clip, self.steps)

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, clip), paid)
            return released.reshape(coef.shape) / n_rows

        return GRADIENT_SOLVERS[self.solver](gradient, self.problem.shape, self.steps)


@dataclass(frozen=True)
class SubgradientFit(Fit):
    """Noisy projected subgradient descent, for losses with kinks."""

    steps: SubgradientPlan
    full_batches = True

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Release one subgradient a step and descend along it."""
        loss, clip = self.problem.pointwise, self.problem.longest_gradient
        paid = prepaid_gradients(curator, self.problem, clip, self.steps)

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, clip), paid)
            return released.reshape(coef.shape)

        return subgradient_descent(gradient, self.problem.shape, self.steps)


def prepaid_gradients(curator, problem, clip, steps):
    """Charge for the gradients of all steps, before the first one is taken."""
    first = ClippedGradient(np.zeros(problem.shape), problem.pointwise, clip)
    return curator.prepay(first, GaussianMechanism(steps.mu_step), steps.n_steps)


def plan(problem, solver):
    """Plan gradient perturbation.

    Parameters
    ----------
    problem, solver : Problem, {"accelerated", "gd"}
        Public facts, and the method.

    Returns
    -------
    plan : Fit
        The plan. The step rule of "gd" for a loss with kinks comes with a proved bound.
    """
    if solver == "gd" and math.isinf(problem.loss.smoothness) and problem.step_size is None:
        steps = plan_subgradient(
            n_rows=problem.n_rows,
            n_coefs=problem.size,
            row_gradient_bound=problem.longest_gradient,
            radius=problem.radius or problem.expected_radius,
            mu=problem.mu,
            adjacency=problem.adjacency,
            l2=problem.penalty,
            n_steps=problem.max_iter,
            # on data the accuracy of four times as many steps is no better
            most_steps=1000,
        )
        return SubgradientFit(problem, steps)
    steps = plan_gradient(
        n_rows=problem.n_rows,
        n_features=problem.n_features,
        loss=problem.loss,
        mu=problem.mu,
        adjacency=problem.adjacency,
        intercept=problem.intercept,
        l2=problem.penalty / problem.n_rows,
        radius=problem.radius,
        n_steps=problem.max_iter,
        step_size=problem.step_size,
        clip=problem.clip,
    )
    if steps.adaptive and isinstance(problem.loss, ClippedLoss):
        along = problem.n_rows * problem.mu / problem.moved_rows
        steps = regression_steps(steps, along=along, n_steps=problem.max_iter, flat=problem.flat)
    return GradientFit(problem, solver, steps)
