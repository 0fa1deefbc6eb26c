# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Localisation on disjoint batches: one noisy minimiser a batch, each held near the last.

The repaired LNC-GM of Xu et al. (2025), Algorithm 3: every phase minimises the loss of its
own rows, gradients clipped, plus a pull towards the point released before, and adds Gaussian
noise. No row is in two phases, so that each phase has the whole budget (Proposition 52).
`growth` restarts it in shrinking balls (their Algorithms 4 and 5), `failure_probability`
runs it several times on disjoint rows and keeps a point in the middle (Proposition 56).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._domains import ball_constraint, two_balls_constraint
from skdp._losses import ClippedLoss
from skdp._queries import Minimizer
from skdp._solvers import (
    least_median_distance,
    moment_clip,
    plan_phases,
    public_order,
    restarts,
    splits,
)
from skdp.linear_model._mechanisms.fit import LARGEST_COEF, NEWTON_LIMIT, Fit
from skdp.privacy import GaussianMechanism

# of the longest gradient, for smooth losses of two classes: less noise is worth the bias
_DEFAULT_CLIP = 0.5


@dataclass(frozen=True)
class LocalizedFit(Fit):
    """Noisy minimisers of disjoint rows.

    Parameters
    ----------
    problem : Problem
        Public facts.
    mu : float
        Price of a phase, and of all.
    runs : tuple
        For every run its restarts: pairs of the radius of the ball around the starting point
        that the run stays in, None for no such ball, and the phases.
    solver : {"newton", "lbfgs"}
        Method for the minimisers.
    """

    mu: float
    runs: tuple
    solver: str = "newton"
    full_batches = True
    streams = False

    @property
    def n_iter(self):
        """Number of phases of all runs."""
        return sum(len(phases) for run in self.runs for _, phases in run)

    def order(self):
        """Return the order in which rows are read: fixed, and far from sorted."""
        return public_order(self.problem.n_rows)

    def run(self, curator):
        """Release one minimiser a phase, and choose among the runs."""
        points = [self._one_run(curator, parts) for parts in self.runs]
        return least_median_distance(points).reshape(self.problem.shape)

    def _one_run(self, curator, parts):
        coef = np.zeros(self.problem.size)
        for radius, phases in parts:
            middle = coef
            for phase in phases:
                query, rows = self._query(phase, coef), (phase.start, phase.stop)
                coef = curator.release(query, GaussianMechanism(self.mu), rows=rows)
                # as for all phases: the square of a norm is finite
                coef = np.clip(coef, -LARGEST_COEF, LARGEST_COEF)
                if radius is None:
                    coef = ball_constraint(coef, self.problem.radius)
                else:
                    coef = two_balls_constraint(coef, self.problem.radius, middle, radius)
        return coef

    def _query(self, phase, coef):
        """Return the minimiser of one phase, held near `coef`."""
        problem = replace(self.problem, n_rows=phase.n_rows)
        # next to the sum of the losses of these rows, not of all
        penalty = problem.penalty * (phase.n_rows / self.problem.n_rows)
        pull = phase.pull * phase.n_rows
        ridge = pull + penalty
        center = coef * (pull / ridge)
        problem = replace(problem, loss=clipped(problem, phase.clip))
        return Minimizer(
            problem.loss, ridge, problem.n_coefs, problem.row_norm,
            problem.tolerance(ridge, center), self.solver, center, row_terms=problem.row_terms,
        )  # fmt: skip


def clipped(problem, clip):
    """Return the loss of a problem with gradients of rows clipped, if they can be longer."""
    loss = problem.loss
    if clip >= loss.lipschitz * problem.row_norm:
        return loss
    return ClippedLoss(problem.pointwise, clip, problem.row_norm)


def chosen_clip(problem):
    """Return the clip that was asked for, or one that is better than none on data."""
    smooth = math.isfinite(problem.loss.smoothness) and problem.loss.n_outputs == 1
    known = isinstance(problem.loss, ClippedLoss) or problem.clipping_norm is not None
    return problem.longest_gradient * (_DEFAULT_CLIP if smooth and not known else 1.0)


def plan(problem):
    """Plan the phases from public facts.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    plan : LocalizedFit
        The plan.

    Raises
    ------
    ValueError
        If the loss cannot be clipped, or there are too few rows for the runs.
    """
    # a hair less, so that the price of a row is no more than the budget in floats
    mu, longest = problem.mu * (1 - 1e-12), chosen_clip(problem)
    clip, spread, bias = longest, longest, None
    if problem.moments is not None:
        order, bound = problem.moments
        clip_of, bias_of = moment_clip(order, bound, problem.size, mu / problem.moved_rows)
        unclipped = problem.pointwise.lipschitz * problem.row_norm
        spread = min(bound, longest)

        def bias(clip):
            # nothing is cut off gradients that are never longer
            return min(bias_of(clip), max(unclipped - clip, 0.0))

        def clip(n_rows):
            return min(clip_of(n_rows), longest)

    clipped(problem, longest)
    radius = problem.distance
    runs = []
    for part in splits(problem.n_rows, problem.failure_probability):
        run = []
        for start, stop, factor in restarts(*part, problem.growth, problem.growth_order):
            phases = plan_phases(
                start, stop, size=problem.size, mu=mu, reach=problem.moved_rows,
                radius=radius * factor, clip=clip, spread=spread, bias=bias,
                convexity=problem.penalty / problem.n_rows,
            )  # fmt: skip
            run.append((None if problem.growth is None else radius * factor, phases))
        runs.append(tuple(run))
    return LocalizedFit(
        problem, mu, tuple(runs), "newton" if problem.size <= NEWTON_LIMIT else "lbfgs"
    )
