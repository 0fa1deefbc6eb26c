# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frank-Wolfe: coefficients with few non-zeros, found one private choice at a time."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._queries import SteepestCoordinate
from skdp._solvers import FrankWolfePlan, frank_wolfe, plan_frank_wolfe
from skdp._solvers.frank_wolfe import default_clip
from skdp.linear_model._mechanisms.fit import Fit
from skdp.privacy import ExponentialMechanism


@dataclass(frozen=True)
class FrankWolfeFit(Fit):
    """Steps towards vertices of the l1 ball, all of them charged before the first."""

    steps: FrankWolfePlan

    @property
    def n_iter(self):
        """Number of steps."""
        return self.steps.n_steps

    @property
    def delta(self):
        """The delta that may be spent: none, if the prices of the steps add up to epsilon."""
        return self.steps.delta

    def run(self, curator):
        """Draw one vertex a step, and go some of the way to it."""
        steps, loss, shape = self.steps, self.problem.loss, self.problem.shape
        first = SteepestCoordinate(np.zeros(shape), loss, steps.clip)
        paid = curator.prepay(first, ExponentialMechanism(steps.epsilon_step), steps.n_steps)

        def choose(coef):
            return int(curator.release(SteepestCoordinate(coef, loss, steps.clip), paid)[0])

        return frank_wolfe(choose, shape, steps)


def plan(problem):
    """Plan Frank-Wolfe steps.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    plan : FrankWolfeFit
        The plan.

    Raises
    ------
    ValueError
        If the loss has kinks, or a parameter makes no sense for the l1 ball.
    """
    if math.isinf(problem.loss.smoothness):
        raise ValueError(
            "solver='frank-wolfe' needs a smooth loss: a step towards a vertex of the l1 ball "
            "may make no progress at a kink, however small it is. Set smoothing to a positive "
            "number for the smoothed hinge."
        )
    if problem.penalty:
        raise ValueError(
            "C must be inf for solver='frank-wolfe', which keeps coefficients small by the bound "
            "on their l1 norm instead: set l1_bound. Got C="
            f"{problem.largest_C(problem.penalty):.6g}."
        )
    if problem.localize:
        raise ValueError(
            "localize=True is for solver='exact' and solver='net'; got it with "
            "solver='frank-wolfe', which makes many draws as it is."
        )
    clip = problem.clipping_norm
    if clip is None:
        clip = default_clip(problem.n_coefs, problem.sparsity, problem.intercept)
    steps = plan_frank_wolfe(
        n_rows=problem.n_rows,
        n_coefs=problem.n_coefs,
        n_outputs=problem.loss.n_outputs,
        # the Hessian of a softmax has no entry beyond that
        smoothness=0.25 / problem.loss.temperature,
        moved_rows=problem.moved_rows,
        epsilon=problem.epsilon,
        delta=problem.delta,
        # entries of residuals are at most 1, those of a row in the unit ball too
        largest_entry=max(1.0, problem.intercept),
        clip=clip,
        radius=problem.l1_bound,
        # the l1 ball of that radius lies within the Euclidean one
        largest_radius=problem.radius,
        n_steps=problem.max_iter,
    )
    return FrankWolfeFit(problem, steps)
