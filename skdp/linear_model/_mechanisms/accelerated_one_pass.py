# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated noisy gradients, each of rows that no other step reads.

Algorithm 6 of Xu et al. (2025) without shuffling: what reads disjoint rows has the whole
budget in every step, exactly and for any epsilon, where shuffling asks for ten times the noise
(Proposition 54). `growth` restarts it in shrinking balls (their Algorithm 7),
`failure_probability` runs it several times on disjoint rows and keeps a point in the middle
(Proposition 56).
"""

from dataclasses import dataclass, replace

import numpy as np

from skdp._queries import ClippedGradient
from skdp._solvers import (
    ApproximationPlan,
    even_parts,
    least_median_distance,
    plan_approximation,
    public_order,
    restarts,
    splits,
    stochastic_approximation,
)
from skdp._solvers.stochastic_approximation import MOST_STEPS
from skdp.linear_model._mechanisms.fit import LARGEST_L2, Fit
from skdp.privacy import GaussianMechanism

# curvature of the mean loss, as a part of the largest that a row may have: rows are spread
# over many directions. Chosen on data; where it is more, the steps are shortened in flight.
_CURVATURE = 1 / 16
# Where the loss has no curvature at its minimum, noise that has come in stays: fewer steps, as for
# a solution that is not further away than this, are better on data.
_FLAT_DISTANCE = 4.0


@dataclass(frozen=True)
class Restart:
    """One descent: its rows, and what is done with them.

    Parameters
    ----------
    start, stop : int
        First row, and the one after the last.
    reach : float or None
        Radius of the ball around the starting point that it stays in; None for no such ball.
    steps : ApproximationPlan
        Steps.
    """

    start: int
    stop: int
    reach: float | None
    steps: ApproximationPlan

    @property
    def parts(self):
        """Rows of every step: disjoint, of nearly equal size, and all there are."""
        return even_parts(self.start, self.stop, self.steps.n_steps)


@dataclass(frozen=True)
class AcceleratedOnePassFit(Fit):
    """Descents on disjoint rows.

    Parameters
    ----------
    problem : Problem
        Public facts.
    runs : tuple of tuple of Restart
        For every run the descents, each from the result of the one before.
    """

    runs: tuple
    full_batches = True
    streams = False

    @property
    def n_iter(self):
        """Number of steps of all runs."""
        return sum(restart.steps.n_steps for run in self.runs for restart in run)

    def order(self):
        """Return the order in which rows are read: fixed, and far from sorted."""
        return public_order(self.problem.n_rows)

    def rescaled(self, radius):
        """Return the plan for rows in units of a radius that was released: the penalty moves."""

        def moved(restart):
            l2 = min(restart.steps.l2 / radius / radius, LARGEST_L2)
            return replace(restart, steps=replace(restart.steps, l2=l2))

        return replace(self, runs=tuple(tuple(moved(one) for one in run) for run in self.runs))

    def run(self, curator):
        """Release one gradient a step and descend along it; choose among the runs."""
        points = [self._one_run(curator, run).ravel() for run in self.runs]
        return least_median_distance(points).reshape(self.problem.shape)

    def _one_run(self, curator, run):
        coef = np.zeros(self.problem.shape)
        for restart in run:
            gradient = self._gradients(curator, restart)
            coef = stochastic_approximation(
                gradient, self.problem.shape, restart.steps, coef, restart.reach
            )
        return coef

    def _gradients(self, curator, restart):
        """Return a function that releases the mean gradient of the rows whose turn it is."""
        parts, mechanism = iter(restart.parts), GaussianMechanism(restart.steps.mu_step)

        def gradient(coef):
            start, stop = next(parts)
            query = ClippedGradient(coef, self.problem.pointwise, restart.steps.clip)
            released = curator.release(query, mechanism, rows=(start, stop))
            return released.reshape(coef.shape) / (stop - start)

        return gradient


def plan(problem):
    """Plan the steps from public facts.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    plan : AcceleratedOnePassFit
        The plan.

    Raises
    ------
    ValueError
        If there are too few rows for the runs.
    """
    loss, distance = problem.loss, problem.radius or problem.expected_radius
    if problem.radius is None and problem.flat:
        distance = min(distance, _FLAT_DISTANCE)
    # most rows are in the unit ball, but for the constant feature
    smoothness = _CURVATURE * min(loss.smoothness, 1.0) * (1.0 + problem.intercept**2)
    # a loss that is clipped says at what norm
    clip = problem.clip if problem.pointwise is loss else problem.longest_gradient
    parts = splits(problem.n_rows, problem.failure_probability)
    runs = [restarts(*part, problem.growth, problem.growth_order) for part in parts]
    most_steps = MOST_STEPS // sum(len(run) for run in runs)

    def planned(start, stop, factor):
        steps = plan_approximation(
            n_rows=stop - start,
            n_coefs=problem.size,
            mu=problem.mu,
            reach=problem.moved_rows,
            longest=problem.longest_gradient,
            smoothness=smoothness,
            distance=distance * factor,
            clip=clip if problem.moments is None else problem.clipping_norm,
            moments=problem.moments,
            l2=problem.penalty / problem.n_rows,
            radius=problem.radius,
            intercept=problem.intercept,
            n_steps=problem.max_iter,
            step_size=problem.step_size,
            most_steps=most_steps,
        )
        reach = None if problem.growth is None else distance * factor
        return Restart(start, stop, reach, steps)

    runs = tuple(tuple(planned(*restart) for restart in run) for run in runs)
    return AcceleratedOnePassFit(problem, runs)
