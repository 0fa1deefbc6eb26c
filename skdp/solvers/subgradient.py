# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy projected subgradient descent, for convex losses that need not be smooth.

The plan uses public quantities only, and has a proved error bound.

Notation. n rows; each loss is convex with subgradients of norm at most L; the objective is their
sum, plus ``l2/2 |coef|^2`` if l2 > 0, on the ball of radius R. The sum of subgradients is released
T times with Gaussian noise of standard deviation ``sigma = S sqrt(T) / mu``, S = L (zero-out) or 2
L (replace-one), in each of p coordinates, plus a small amount for the grid of the releases, which
is included. A step direction then has ``E |g|^2 <= G^2 = (n L + l2 R)^2 + p sigma^2``.

Theorem (suffix). With the step size ``2 R / (G sqrt(T))``, the average of the last
K = ceil(T/2) iterates has an expected excess objective of at most ``3 R G / sqrt(T)``.

Proof. A projected step s from w towards g obeys ``|w' - w*|^2 <= |w - w*|^2
- 2 s <g, w - w*> + s^2 |g|^2``. Sum over the K iterates, take expectations, and use
convexity: the mean excess is at most ``(2R)^2 / (2 s K) + s G^2 / 2``, since two points of the
ball are at most 2R apart. With s as above and K >= T/2 that is at most ``2 R G / sqrt(T) + R G /
sqrt(T)``. Convexity again for the average.

Theorem (strong convexity). If l2 > 0, step sizes ``2 / (l2 (t + 1))``, t = 1, ..., T, and the
average with weights proportional to t have an expected excess of at most ``2 G^2 / (l2 (T + 1))``
(Lacoste-Julien, Schmidt and Bach 2012).

The plan has the schedule with the smaller bound.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._rows.base import ball_constraint
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism


@dataclass(frozen=True)
class SubgradientPlan:
    """Plan of the steps, fixed before any row is read.

    Parameters
    ----------
    n_steps : int
        Number of releases.
    mu : float
        Gaussian-DP price of all of them.
    radius : float
        The coefficients stay in the ball of this radius.
    gradient_norm : float
        Bound G on the root mean square norm of a step direction.
    lipschitz : float
        Bound on the norm of a subgradient of the objective on the ball.
    l2 : float
        Strength of the penalty ``l2/2 |coef|^2`` added to the sum of losses.
    """

    n_steps: int
    mu: float
    radius: float
    gradient_norm: float
    lipschitz: float
    l2: float

    @property
    def mu_step(self):
        """Price of one step: n_steps equal prices compose to mu."""
        return self.mu / math.sqrt(self.n_steps)

    @property
    def _suffix_bound(self):
        return 3 * self.radius * self.gradient_norm / math.sqrt(self.n_steps)

    @property
    def _weighted_bound(self):
        if self.l2 == 0:
            return math.inf
        return 2 * self.gradient_norm**2 / (self.l2 * (self.n_steps + 1))

    @property
    def error_bound(self):
        """Proved bound on the expected excess of the objective, a sum over rows."""
        worst = 2 * self.radius * self.lipschitz
        return min(self._suffix_bound, self._weighted_bound, worst)

    def schedule(self):
        """Yield the step size and the weight in the average, for every iterate."""
        if self._weighted_bound <= self._suffix_bound:
            for t in range(1, self.n_steps + 1):
                yield 2 / (self.l2 * (t + 1)), float(t)
        else:
            length = 2 * self.radius / (self.gradient_norm * math.sqrt(self.n_steps))
            for t in range(self.n_steps):
                yield length, float(t >= self.n_steps // 2)


def plan_subgradient(
    *,
    n_rows,
    n_coefs,
    row_gradient_bound,
    radius,
    mu,
    adjacency,
    l2=0.0,
    n_steps=None,
    most_steps=4000,
):
    """Choose the number of steps from public quantities.

    Parameters
    ----------
    n_rows, n_coefs : int
        Shape of the problem.
    row_gradient_bound : float
        Bound on the norm of the subgradient of one row's loss.
    radius : float or None
        Radius of the constraint. None, with l2 > 0 only, is the ball that contains the minimiser
        for all data.
    mu : float
        Gaussian-DP budget.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    l2 : float, default=0.0
        Strength of the penalty ``l2/2 |coef|^2`` added to the sum of losses.
    n_steps : int, default=None
        Given by the user, or None to be chosen here.
    most_steps : int, default=4000
        Largest number chosen here.

    Returns
    -------
    plan : SubgradientPlan
        The plan.

    Raises
    ------
    ValueError
        If there is neither a radius nor a penalty.
    """
    steepest = n_rows * row_gradient_bound
    if radius is None:
        if not l2 > 0:
            raise ValueError("without a radius, l2 must be greater than 0.")
        # at the minimum the penalty's gradient balances the losses'
        radius = steepest / l2
    reach = 2 if adjacency == "replace-one" else 1
    if n_steps is None:
        # at four times as many steps the two parts of G would be equal; more steps than
        # that bring little, and past 2e9 multiplications they cost more than they bring
        wanted = (n_rows * mu / (2 * reach)) ** 2 / n_coefs
        most = np.clip(2e9 / (n_rows * n_coefs), 100, most_steps)
        n_steps = math.ceil(min(max(wanted, 100), most))
    lipschitz = steepest + l2 * radius
    facts = Sensitivity(math.inf, reach * row_gradient_bound, steepest, "as the query states")
    noise = GaussianMechanism(mu / math.sqrt(n_steps)).calibrate(facts, n_coefs)
    sigma = noise.scale + noise.grid
    return SubgradientPlan(
        n_steps=n_steps,
        mu=mu,
        radius=radius,
        gradient_norm=math.hypot(lipschitz, sigma * math.sqrt(n_coefs)),
        lipschitz=lipschitz,
        l2=l2,
    )


def subgradient_descent(gradient, shape, plan):
    """Descend along released subgradients and average the iterates.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape to a released subgradient of the SUM of
        losses, without the penalty.
    shape : tuple of int
        Shape of the coefficients.
    plan : SubgradientPlan
        Steps, constraint, penalty.

    Returns
    -------
    coef : ndarray of shape `shape`
        Weighted average of the iterates where subgradients were released.
    """
    coef, total, weights = np.zeros(shape), np.zeros(shape), 0.0
    for length, weight in plan.schedule():
        total += weight * coef
        weights += weight
        direction = gradient(coef) + plan.l2 * coef
        coef = ball_constraint(coef - length * direction, plan.radius)
    return total / weights
