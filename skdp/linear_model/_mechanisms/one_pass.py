# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear-time phases: every row is read once, in one of about log2(n) passes.

Phase i takes the next half of the remaining rows for one pass of gradient descent from
the point released last, and releases its average iterate with noise. The steps, and
with them the noise, shrink fourfold a phase (Feldman, Koren and Talwar 2020). No row
is in two phases, so that each pays for one release. This is a method for the expected
loss on new rows; for the loss on the rows themselves several passes do better.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._domains import ball_constraint
from skdp._queries import OnePassDescent
from skdp._solvers import public_order
from skdp.linear_model._mechanisms.fit import Fit
from skdp.privacy import GaussianMechanism, gdp_mu


@dataclass(frozen=True)
class OnePassFit(Fit):
    """Phases over disjoint rows.

    Parameters
    ----------
    problem : Problem
        Public facts.
    mu : float
        Price of a phase, and of all.
    parts : tuple of (int, int)
        Rows of every phase, in the order of `order`.
    steps : tuple of (float, int)
        Step and batch of every phase.
    """

    mu: float
    parts: tuple
    steps: tuple
    full_batches = True
    streams = False

    @property
    def n_iter(self):
        """Number of phases."""
        return len(self.parts)

    def order(self):
        """Return the order in which rows are read: fixed, and far from sorted."""
        return public_order(self.problem.n_rows)

    def run(self, curator):
        """Release one point a phase."""
        problem, coef = self.problem, np.zeros(self.problem.size)
        for part, (step, batch) in zip(self.parts, self.steps, strict=True):
            query = OnePassDescent(
                coef, problem.loss, problem.row_norm, step, batch,
                problem.penalty / problem.n_rows, problem.radius,
            )  # fmt: skip
            released = curator.release(query, GaussianMechanism(self.mu), rows=part)
            coef = ball_constraint(released, problem.radius)
        return coef.reshape(problem.shape)


def plan(problem):
    """Plan the phases from public facts.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    plan : OnePassFit
        The plan.
    """
    mu = gdp_mu(problem.epsilon, problem.delta)
    radius = problem.radius or problem.expected_radius
    reach = problem.loss.lipschitz * problem.row_norm
    smoothness = problem.loss.smoothness * problem.row_norm**2 + problem.penalty / problem.n_rows
    signal = mu / problem.moved_rows / math.sqrt(problem.size)
    step = radius / reach * min(1 / math.sqrt(problem.n_rows), signal)
    parts, steps, start, left = [], [], 0, problem.n_rows
    while left and len(parts) < 40:
        size = (left + 1) // 2
        step = min(step, 2 / smoothness * (1 - 1e-12))
        # a batch with a longer step does the work of as many steps of single rows
        batch = max(1, min(int(1 / smoothness / step), size // 16))
        parts.append((start, start + size))
        steps.append((step * batch, batch))
        start, left, step = start + size, left - size, step / 4
    return OnePassFit(problem, mu, tuple(parts), tuple(steps))
