# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated stochastic approximation: averaged steps that grow, whatever the noise.

AC-SA of Ghadimi and Lan (2012), with gradients that are noisy and clipped (Xu et al. 2025,
Algorithm 6). Its steps are planned for the noise, as those of Nesterov's method are not: with
T steps, noise of standard deviation S and a solution at distance D the error is of order
``beta D^2 / T^2 + D S / sqrt(T)``, beta being the curvature of the mean loss. Proposition 54
of the user guide has the constants.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._domains import two_balls_constraint
from skdp._solvers.gradient_plan import GradientPlan
from skdp._solvers.step_size import StepSize

#: steps, at least and at most, unless another number is asked for; with few rows one for each
FEWEST_STEPS, MOST_STEPS = 5, 200
# part of the longest gradient that rows are clipped to; chosen on data
_CLIP_SHARE = 0.5


@dataclass(frozen=True)
class ApproximationPlan(GradientPlan):
    """What accelerated stochastic approximation will do: fixed before the data are touched.

    Parameters
    ----------
    error_bound : float
        Bound on the expected excess of the mean loss, if the solution is as near and the
        curvature as small as the plan takes them to be.

    Notes
    -----
    Every step reads rows of its own and has the whole of `mu`. `step_size` is the inverse of
    eta in Proposition 54, `noise` the standard deviation of a coordinate, batches included.
    """

    error_bound: float = math.inf

    @property
    def mu_step(self):
        """The price of one step: no two of them read the same row."""
        return self.mu


def plan_approximation(
    *,
    n_rows,
    n_coefs,
    mu,
    reach,
    longest,
    smoothness,
    distance,
    clip=None,
    moments=None,
    l2=0.0,
    radius=None,
    intercept=False,
    n_steps=None,
    step_size=None,
    most_steps=MOST_STEPS,
):
    """Choose steps, step size and clipping: those with the least proved error.

    Parameters
    ----------
    n_rows, n_coefs : int
        Rows that are divided among the steps, and number of coefficients.
    mu, reach : float, int
        Gaussian-DP price of every step, and the number of row gradients in which neighbours
        differ: 1 (zero-out) or 2 (replace-one).
    longest : float
        Bound on the norm of a row's gradient.
    smoothness, distance : float
        What the curvature of the mean loss, and the distance of the solution from the start,
        are taken to be.
    clip : float, default=None
        Clipping norm that is asked for; None is half of `longest`, or comes from moments.
    moments : tuple of (float, float), default=None
        Order k > 1 and bound r_k: the k-th moment of a gradient's norm is at most r_k^k.
    l2, radius, intercept : float, float or None, bool
        As in `GradientPlan`.
    n_steps, step_size : int, float
        Given by the user, or None to be chosen here. No step has less than one row.
    most_steps : int, default=MOST_STEPS
        The number chosen here is at most this.

    Returns
    -------
    plan : ApproximationPlan
        The plan.
    """
    if n_steps is None:
        fewest = min(FEWEST_STEPS, n_rows)
        steps = np.arange(fewest, max(fewest, min(most_steps, n_rows)) + 1.0)
    else:
        steps = np.array([float(min(n_steps, n_rows))])
    # of the smallest part
    rows = np.floor(n_rows / steps)
    # the noise of T averaged gradients counts like that of one, times this
    share = np.sqrt((2 * steps + 1) / (3 * steps * (steps + 1)))
    noise = reach / (rows * mu)
    # whoever asks for absurd moments or distances gets few steps, and no warning
    with np.errstate(over="ignore", under="ignore"):
        price = 2 * share * math.sqrt(n_coefs) * noise
        clips, spread, bias = _clips(price, longest, clip, moments)
        noise = noise * clips
        spread = spread / np.sqrt(rows)
        both = np.hypot(math.sqrt(n_coefs) * noise, spread)
        errors = 4 * smoothness * np.square(distance) / (steps * (steps + 1))
        errors += 2 * distance * (share * both + bias)
    best = int(np.argmin(errors))
    T, adaptive = steps[best], step_size is None
    if adaptive:
        eta = both[best] * math.sqrt(T * (T + 1) * (2 * T + 1) / 12) / distance
        step_size = 1 / max(2 * smoothness, eta)
    return ApproximationPlan(
        n_steps=int(T),
        mu=mu,
        clip=float(clips[best]),
        step_size=float(step_size),
        adaptive=adaptive,
        noise=math.hypot(noise[best], spread[best]),
        l2=l2,
        radius=radius,
        intercept=bool(intercept),
        error_bound=float(errors[best]) if adaptive else math.inf,
    )


def _clips(price, longest, clip, moments):
    """Return the clipping norm, and what it does to gradients, for every number of steps.

    Parameters
    ----------
    price : ndarray
        What the noise costs, per unit of the clipping norm and of the distance.
    longest, clip, moments
        As in `plan_approximation`.

    Returns
    -------
    clips, spread, bias : ndarray, ndarray, ndarray
        The clipping norm, a bound on the root mean square of a clipped gradient, and one on
        what clipping takes off the expected gradient (0 where no moment is known).
    """
    if moments is None:
        norm = _CLIP_SHARE * longest if clip is None else min(clip, longest)
        clips = np.full(len(price), float(norm))
        return clips, clips, np.zeros(len(price))
    order, bound = moments
    part = (order - 1) / order
    if clip is None:
        # where the price and twice the bias are least
        clips = np.minimum(part * bound * (2 / price) ** (1 / order), longest)
    else:
        clips = np.full(len(price), float(min(clip, longest)))
    spread = np.minimum(clips, bound if order >= 2 else clips * (bound / clips) ** (order / 2))
    return clips, spread, bound / order * (part * bound / clips) ** (order - 1)


def stochastic_approximation(gradient, shape, plan, start=None, reach=None):
    """Descend along released gradients, in steps that grow and are averaged.

    Parameters
    ----------
    gradient : callable
        Maps coefficients of the given shape to a released gradient of the mean loss; called
        once a step.
    shape : tuple of int
        Shape of the coefficients.
    plan : ApproximationPlan or GradientPlan
        Steps, step size, penalty, constraint.
    start : ndarray of shape `shape`, default=None
        Released point in the ball of the plan; None for the origin.
    reach : float, default=None
        The coefficients stay within this distance of the start; None for any.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the points that were reached, with weights proportional to their number.

    Notes
    -----
    Step t takes the gradient at ``(1 - a) average + a coef``, a = 2 / (t + 1), and moves
    `coef` by t/2 times the step size. The first weight a is 1, as the theorem needs it and
    the print, which has 2 / (t + 2), does not: so nothing is left of the start. Where the
    released gradients show a curvature beyond the planned one, the steps are shortened.
    """
    start = np.zeros(shape) if start is None else start
    coef = average = start
    step_size, free = StepSize(plan), replace(plan, radius=None)
    for t in range(1, plan.n_steps + 1):
        weight = 2 / (t + 1)
        ahead = (1 - weight) * average + weight * coef
        released = gradient(ahead)
        length = t / 2 * step_size.at(ahead, released)
        if reach is None:
            coef = plan.step(coef, released, length)
        else:
            moved = free.step(coef, released, length).ravel()
            coef = two_balls_constraint(moved, plan.radius, start.ravel(), reach).reshape(shape)
        average = (1 - weight) * average + weight * coef
    return average
