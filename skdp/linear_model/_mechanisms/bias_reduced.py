# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gradient perturbation with an oracle for sparse gradients, and without its bias."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries import TelescopedGradient
from skdp._solvers import (
    BoostingPlan,
    TelescopePlan,
    boost,
    make_oracle,
    plan_boosting,
    plan_telescope,
    telescoped_descent,
)
from skdp.linear_model._mechanisms.fit import Fit
from skdp.privacy import SampledGaussianMechanism


@dataclass(frozen=True)
class BiasReducedFit(Fit):
    """Steps along gradients that an oracle cleans; several runs if failures are to be rare.

    Parameters
    ----------
    problem : Problem
        Public facts.
    steps : TelescopePlan
        Levels, prices and steps of all runs.
    oracle : object
        What is made of a noisy mean gradient.
    boosting : BoostingPlan or None
        Price of the choice between runs; None for one run.
    """

    steps: TelescopePlan
    oracle: Any
    boosting: BoostingPlan | None = None

    @property
    def n_iter(self):
        """Number of steps of all runs."""
        return self.steps.n_steps * self.steps.n_runs

    def run(self, curator):
        """Pay for all steps, take them, and choose one of several runs."""
        steps, problem, oracle = self.steps, self.problem, self.oracle
        longest = steps.clip if oracle.measurement is None else oracle.longest

        def query(coef, step):
            return TelescopedGradient(
                coef, problem.loss, steps.clip, step, oracle.measurement, longest
            )

        paid = {
            level: curator.prepay(
                query(np.zeros(problem.shape), None if level is None else 0),
                SampledGaussianMechanism(cost.mu, cost.sampling),
                cost.count,
            )
            for level, cost in steps.costs
        }
        telescope, noise = steps.telescope, steps.sigma * longest

        def cleaned(mean, size):
            return oracle(mean, noise / telescope.batch_size(size))

        def one_run(run):
            def gradient(coef, step):
                level, triple = steps.levels[run][step], None
                smallest = curator.release(query(coef, None), paid[None])
                if telescope.n_levels:
                    number = run * steps.n_steps + step
                    triple = curator.release(query(coef, number), paid[level]).reshape(3, -1)
                found = telescope.estimate(level, smallest, triple, cleaned)
                return found.reshape(problem.shape)

            return telescoped_descent(gradient, problem.shape, steps)

        if self.boosting is None:
            return one_run(0)
        runs = iter(range(steps.n_runs))
        chosen = boost(
            curator, lambda: one_run(next(runs)).ravel(), self.boosting, problem.loss,
            problem.row_norm,
        )  # fmt: skip
        return chosen.reshape(problem.shape)


def plan(problem):
    """Plan bias-reduced descent.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    plan : BiasReducedFit
        The plan.

    Raises
    ------
    ValueError
        If the oracle rests on a sparsity that was not given, if rows are to be centred, or
        batches are not Poisson's, or the budget is too small for the steps.
    """
    _check(problem)
    clip, budget = problem.longest_gradient, (problem.epsilon, problem.delta, 0.0, ())
    boosting, n_runs = None, 1
    if problem.failure_probability is not None:
        boosting = plan_boosting(problem.epsilon, problem.delta, problem.failure_probability)
        n_runs = boosting.n_runs
        budget = (*budget[:3], ((boosting.epsilon_choice, 0.0, 1),))
    n_nonzeros = None
    if problem.sparsity is not None:
        one = min(problem.sparsity, problem.n_features) + bool(problem.intercept)
        n_nonzeros = problem.loss.n_outputs * one
    steps = plan_telescope(
        n_rows=problem.n_rows,
        size=problem.size,
        adjacency=problem.adjacency,
        budget=budget,
        clip=clip,
        radius=problem.radius or problem.expected_radius,
        l2=problem.penalty / problem.n_rows,
        intercept=bool(problem.intercept),
        n_nonzeros=n_nonzeros,
        n_steps=problem.max_iter,
        step_size=problem.step_size,
        batch_size=problem.batch_size,
        n_runs=n_runs,
    )
    oracle = make_oracle(
        problem.oracle,
        radius=clip,
        shape=problem.shape,
        intercept=bool(problem.intercept),
        sparsity=problem.sparsity,
        signal=problem.n_rows / steps.sigma,
    )
    return BiasReducedFit(problem, steps, oracle, boosting)


def _check(problem):
    """Raise a ValueError if something is asked for that the method does not have."""
    if problem.centring is not None:
        raise ValueError(
            "preprocess must be None with solver='bias-reduced', which is for rows with few "
            "entries: a centred row is not sparse. Use solver='sgd'."
        )
    if problem.sampling != "poisson" or not problem.momentum:
        raise ValueError(
            "sampling and momentum are parameters of solver='sgd'; got sampling="
            f"{problem.sampling!r}, momentum={problem.momentum!r} with solver='bias-reduced'."
        )
    if problem.oracle != "soft-threshold" and problem.sparsity is None:
        raise ValueError(
            f"sparsity must be a number for oracle={problem.oracle!r}, which looks for averages "
            "of sparse gradients; got None. oracle='soft-threshold' needs none."
        )
