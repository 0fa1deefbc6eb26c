# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradient perturbation on random batches."""

from dataclasses import dataclass

import numpy as np

from skdp._losses import ClippedLoss
from skdp._queries import ClippedGradient
from skdp._solvers import SgdPlan, calm_steps, plan_sgd, stochastic_gradient
from skdp.linear_model._mechanisms.fit import Fit
from skdp.privacy import SampledGaussianMechanism


@dataclass(frozen=True)
class SgdFit(Fit):
    """Noisy gradients of random batches, all of them charged before the first."""

    steps: SgdPlan

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Release one gradient a step and descend along it."""
        steps, loss, shape = self.steps, self.problem.pointwise, self.problem.shape
        mechanism = SampledGaussianMechanism(steps.mu_batch, steps.sampling)
        first = ClippedGradient(np.zeros(shape), loss, steps.clip)
        paid = curator.prepay(first, mechanism, steps.n_steps)
        # the expected size, never the realised one, which says how many rows there are
        size = steps.sampling.batch_size

        def gradient(coef):
            released = curator.release(ClippedGradient(coef, loss, steps.clip), paid)
            return released.reshape(coef.shape) / size

        return stochastic_gradient(gradient, shape, steps)


def plan(problem):
    """Plan stochastic gradient descent.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    plan : SgdFit
        The plan.
    """
    printed = problem.sampling == "with-replacement"
    radius = problem.radius
    if printed and radius is None:
        radius = problem.expected_radius
    steps = plan_sgd(
        {
            "n_rows": problem.n_rows,
            "n_features": problem.n_features,
            "loss": problem.loss,
            "mu": problem.mu,
            "adjacency": problem.adjacency,
            "intercept": problem.intercept,
            "l2": problem.penalty / problem.n_rows,
            "radius": radius,
            "n_steps": problem.max_iter,
            "step_size": problem.step_size,
            "clip": problem.clip,
        },
        budget=(problem.epsilon, problem.delta, problem.mu_spent, problem.priced),
        sampling=problem.sampling,
        batch_size=problem.batch_size,
        momentum=problem.momentum,
        radius=radius,
        longest_gradient=problem.longest_gradient,
    )
    if steps.adaptive and isinstance(problem.loss, ClippedLoss):
        steps = calm_steps(steps, flat=problem.flat)
    return SgdFit(problem, steps)
