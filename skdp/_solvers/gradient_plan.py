# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a noisy gradient method, made from public quantities before any data."""

import math
from dataclasses import dataclass

from skdp._domains import ball_constraint


@dataclass(frozen=True)
class GradientPlan:
    """What a gradient solver will do: fixed before the data are touched.

    Parameters
    ----------
    n_steps : int
        Number of releases.
    mu_step : float
        Gaussian-DP price of each.
    clip : float
        Clipping norm of a row's gradient.
    step_size : float
        Step along the released gradient of the mean loss.
    l2 : float
        Strength of the penalty ``l2/2 |coef|^2`` added to the mean loss; the
        intercept is not penalised.
    radius : float or None
        The coefficients, intercept included, stay in the ball of this radius.
    intercept : bool
        Whether the last coefficient is an intercept.
    """

    n_steps: int
    mu_step: float
    clip: float
    step_size: float
    l2: float
    radius: float | None
    intercept: bool

    def step(self, coef, gradient):
        """Return the proximal, projected gradient step from `coef`."""
        coef = coef - self.step_size * gradient
        body = coef[..., :-1] if self.intercept else coef
        # the penalty's proximal map: stable for any strength, and it needs no data
        body /= 1.0 + self.step_size * self.l2
        return ball_constraint(coef, self.radius)


def plan_gradient(
    *, n_rows, n_features, loss, mu, adjacency, intercept, l2, radius, n_steps, step_size, clip
):
    """Choose steps, step size and clipping from public quantities.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data.
    loss : LogisticLoss or SoftmaxLoss
        States its Lipschitz and smoothness constants.
    mu : float
        Gaussian-DP budget.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    intercept : float
        Constant feature, 0 for none.
    l2, radius : float, float or None
        As in `GradientPlan`.
    n_steps, step_size, clip : int, float, float or None
        Given by the user, or None to be chosen here.

    Returns
    -------
    plan : GradientPlan
        The plan.
    """
    row_norm = math.hypot(1.0, intercept)
    n_coefs = max(1, loss.n_outputs - 1) * (n_features + bool(intercept))
    if n_steps is None:
        signal = n_rows * mu / math.sqrt(n_coefs) / (2 if adjacency == "replace-one" else 1)
        n_steps = int(min(max(10, 0.5 * signal), 1000))
    if clip is None:
        clip = loss.lipschitz * row_norm
    if step_size is None:
        step_size = 4 / (loss.smoothness * row_norm**2)
    return GradientPlan(
        n_steps=n_steps,
        mu_step=mu / math.sqrt(n_steps),
        clip=clip,
        step_size=step_size,
        l2=l2,
        radius=radius,
        intercept=bool(intercept),
    )
