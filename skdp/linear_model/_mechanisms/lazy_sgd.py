# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradient perturbation on random batches of sparse rows, noise added where it is read."""

from dataclasses import dataclass

from skdp._queries import SparseGradient
from skdp._solvers import LazyPlan, plan_lazy_sgd
from skdp.linear_model._mechanisms.fit import Fit
from skdp.privacy import SampledGaussianMechanism


@dataclass(frozen=True)
class LazySgdFit(Fit):
    """Noisy gradients of random batches that nobody sees but through the average iterate."""

    steps: LazyPlan

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    def run(self, curator):
        """Charge for all steps, take them behind the gate, and scale what comes out."""
        steps, problem = self.steps, self.problem
        # the expected size, never the realised one, which says how many rows there are
        scale = steps.step_size / steps.sampling.batch_size
        query = SparseGradient(
            problem.n_coefs, problem.loss, steps.clip, steps.intercept, scale, steps.decay
        )
        mechanism = SampledGaussianMechanism(steps.mu_batch, steps.sampling)
        paid = curator.prepay(query, mechanism, steps.n_steps)
        sums = curator.descend(query, paid, steps.n_steps, steps.n_skipped)
        return (-scale * sums.T).reshape(problem.shape)


def plan(problem):
    """Plan lazy stochastic gradient descent.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    plan : LazySgdFit
        The plan.

    Raises
    ------
    ValueError
        If something is asked for that would read all coefficients in every step.
    """
    if problem.radius is not None:
        raise ValueError(
            "coef_bound must be None with solver='lazy-sgd': a projection reads all coefficients "
            "in every step, and most of them have no value until the end. Use solver='sgd' or "
            "C for shorter coefficients."
        )
    if problem.centring is not None:
        raise ValueError(
            "preprocess must be None with solver='lazy-sgd', which is for rows with few entries: "
            "a centred row is not sparse. Use solver='sgd'."
        )
    if problem.sampling != "poisson":
        raise ValueError(
            "sampling must be 'poisson' with solver='lazy-sgd'; got "
            f"{problem.sampling!r}. Use solver='sgd' for batches of a fixed size."
        )
    steps = plan_lazy_sgd(
        {
            "n_rows": problem.n_rows,
            "n_features": problem.n_features,
            "loss": problem.loss,
            "mu": problem.mu,
            "adjacency": problem.adjacency,
            "intercept": problem.intercept,
            "l2": problem.penalty / problem.n_rows,
            "radius": None,
            "n_steps": problem.max_iter,
            "step_size": problem.step_size,
            "clip": problem.clip,
        },
        budget=(problem.epsilon, problem.delta, problem.mu_spent, problem.priced),
        batch_size=problem.batch_size,
    )
    return LazySgdFit(problem, steps)
