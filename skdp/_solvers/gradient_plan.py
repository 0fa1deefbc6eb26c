# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a noisy gradient method, made from public quantities before any data.

Two numbers say how hard a problem is. With n rows, p coefficients, a budget of mu and
a sensitivity of a clipping norms (1 for zero-out, 2 for replace-one),

* ``M = n mu / a`` is the signal-to-noise ratio along one direction, and
* ``N = M / sqrt(p)`` is that ratio against the whole noise vector.

The constants below were chosen on data (benchmarks/accuracy.py measures the outcome,
the user guide shows the table); nothing in them is a theorem, and nothing in them
bears on privacy.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._domains import ball_constraint

# Coefficients beyond this say nothing that smaller ones do not, and keep every product
# with a row finite.
_LARGEST_COEF = 1e100

#: more steps bring no accuracy that could be measured
MOST_STEPS = 500

# With more features than rows: steps, clipping norm (share of the longest gradient), and
# noise of a prediction.
_WIDE_STEPS, _WIDE_SHARE, _WIDE_NOISE = 64.0, 0.15, 0.4

#: constant feature for the intercept, in units of the longest row
DEFAULT_INTERCEPT = 0.1


@dataclass(frozen=True)
class GradientPlan:
    """What a gradient solver will do: fixed before the data are touched.

    Parameters
    ----------
    n_steps : int
        Number of releases.
    mu : float
        Gaussian-DP price of all of them.
    clip : float
        Clipping norm of a row's gradient.
    step_size : float
        Step along the released gradient of the mean loss.
    adaptive : bool
        Whether released gradients may shorten the step.
    noise : float
        Standard deviation of every coordinate of a released gradient of the mean loss.
    l2 : float
        Strength of the penalty ``l2/2 |coef|^2`` added to the mean loss; the
        intercept is not penalised.
    radius : float or None
        The coefficients, intercept included, stay in the ball of this radius.
    intercept : bool
        Whether the last coefficient is an intercept.
    """

    n_steps: int
    mu: float
    clip: float
    step_size: float
    adaptive: bool
    noise: float
    l2: float
    radius: float | None
    intercept: bool

    @property
    def mu_step(self):
        """The price of one step: n_steps equal prices compose to mu."""
        return self.mu / math.sqrt(self.n_steps)

    def step(self, coef, gradient, length):
        """Return the proximal, projected gradient step of a given length from `coef`."""
        coef = np.clip(coef - length * gradient, -_LARGEST_COEF, _LARGEST_COEF)
        body = coef[..., :-1] if self.intercept else coef
        # the penalty's proximal map: stable for any strength, and it needs no data
        body /= 1.0 + length * self.l2
        return ball_constraint(coef, self.radius)


def plan_gradient(
    *,
    n_rows,
    n_features,
    loss,
    mu,
    adjacency,
    intercept,
    l2,
    radius,
    n_steps,
    step_size,
    clip,
    most_steps=None,
):
    """Choose steps, step size and clipping from public quantities.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data.
    loss : LogisticLoss or SoftmaxLoss
        States its Lipschitz constant.
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
    most_steps : int, default=None
        The number chosen here is at most this; None limits the time that full batches take.

    Returns
    -------
    plan : GradientPlan
        The plan.
    """
    row_norm = math.hypot(1.0, intercept)
    n_coefs = loss.n_outputs * (n_features + bool(intercept))
    along = n_rows * mu / (2 if adjacency == "replace-one" else 1)
    ratio = along / math.sqrt(n_coefs)
    # more steps pay as long as signal is left; past 2e9 multiplications they cost more
    # time than they bring accuracy
    wanted = max(16.0, 4.5 * math.sqrt(ratio), ratio / 3)
    wide = n_features > n_rows
    if wide:
        wanted = max(wanted, _WIDE_STEPS)
    if n_steps is None:
        if most_steps is None:
            most_steps = np.clip(2e9 / (n_rows * n_coefs), 100, MOST_STEPS)
        n_steps = math.ceil(min(wanted, most_steps))
    if clip is None:
        # clipping harder lowers the noise in proportion and biases the direction a
        # little: worth it while noise dominates
        share = min(1.0, max(_WIDE_SHARE if wide else 0.25, 0.025 * math.sqrt(ratio)))
        clip = share * loss.lipschitz * row_norm
    adaptive = step_size is None
    if adaptive:
        # bold while little signal is there to be had; where the number of steps is
        # capped, longer ones make up for it
        capped = min(4.0, max(1.0, (wanted / n_steps) ** 2))
        step_size = min(32.0 * capped, 4 * ratio * min(1.0, (along / 10) ** 2))
        if wide:
            # what noise does to the prediction of one row does not depend on the number of
            # coefficients: after all steps it shall be some tenths
            step_size = _WIDE_NOISE * along / (n_steps * clip)
    return GradientPlan(
        n_steps=n_steps,
        mu=mu,
        clip=clip,
        step_size=step_size,
        adaptive=adaptive,
        noise=clip * math.sqrt(n_steps) / along,
        l2=l2,
        radius=radius,
        intercept=bool(intercept),
    )
