# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frank-Wolfe steps over the l1 ball, each towards a vertex that was drawn privately.

Talwar, Thakurta and Zhang (2015), with four changes. The score of a draw is a gradient that
was clipped in its largest entry. The draws are composed by their bounded range, not as any
purely private releases. Steps start as if some had been made before, because the first
vertex is far away and one step may not overshoot it. And the constants below were chosen on
data: nothing in them is a theorem, and nothing in them bears on privacy.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.privacy._zcdp import zcdp_rho

#: more steps are not made unless they are asked for
MOST_STEPS = 1000
# Default radius of the ball, in units of 1 / clip: so far a vertex moves the margin of a row
# that is not clipped.
_REACH = 8.0
# The curvature that is met, relative to its worst case: a feature is zero in most rows.
_CURVATURE = 0.008
# Entries of a row, if nobody says how many.
_ENTRIES = 25
# Kinks that are sharper than this make no difference to noisy steps.
_SHARPEST = 1.0


@dataclass(frozen=True)
class FrankWolfePlan:
    """What the solver will do: fixed before the data are touched.

    Parameters
    ----------
    n_steps : int
        Number of draws.
    radius : float
        The coefficients, intercept included, have at most this sum of magnitudes.
    clip : float
        Bound on the entries of a row's gradient.
    offset : float
        Step t, counted from 0, goes ``2 / (t + offset)`` of the way to its vertex; at
        least 2.
    epsilon_step, delta : float
        Price of a draw, and the delta at which all of them fit the budget; 0 if their sum
        does.
    """

    n_steps: int
    radius: float
    clip: float
    offset: float
    epsilon_step: float
    delta: float


def prices(epsilon, delta, n_steps):
    """Return what one of several draws may cost: as a part of a sum, and of a range in zCDP.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all of them.
    n_steps : int or ndarray
        How many.

    Returns
    -------
    summed, concentrated : float or ndarray
        Each is a price at which all fit the budget. The second is 0 at delta 0.
    """
    # a hair less, so that the ledger's sums do not exceed the budget
    summed = epsilon / n_steps * (1 - 1e-15)
    return summed, np.sqrt(8 * zcdp_rho(epsilon, delta) / n_steps) * (1 - 1e-15)


def default_clip(n_coefs, sparsity, intercept):
    """Return a bound on the entries of a row's gradient, from public numbers.

    Parameters
    ----------
    n_coefs, sparsity, intercept : int, int or None, float
        Coefficients of an output, largest number of entries of a row, and the constant
        feature.

    Returns
    -------
    clip : float
        Half of the entries of a unit row that has them all equal, for residuals are about
        a half where the steps begin. Without a sparsity, that of rows with 25 entries. The
        constant feature is never what rows are cut down by at the beginning.
    """
    typical = 0.5 / math.sqrt(min(sparsity or _ENTRIES, n_coefs))
    return max(typical, min(intercept, 1.0) / 2)


def plan_frank_wolfe(
    *,
    n_rows,
    n_coefs,
    n_outputs,
    smoothness,
    moved_rows,
    epsilon,
    delta,
    largest_entry,
    clip,
    radius,
    largest_radius,
    n_steps,
):
    """Choose steps, radius and prices from public quantities.

    Parameters
    ----------
    n_rows, n_coefs, n_outputs : int
        Rows, coefficients of an output, and outputs.
    smoothness : float
        Bound on the second derivative of the loss in one output.
    moved_rows : int
        Row gradients in which neighbours differ.
    epsilon, delta : float
        Budget of everything.
    largest_entry : float
        No entry of a row's gradient is larger.
    clip : float
        Bound on the entries of a row's gradient.
    radius, n_steps : float, int or None
        Given by the user, or None to be chosen here.
    largest_radius : float or None
        Bound on the radius; None for none.

    Returns
    -------
    plan : FrankWolfePlan
        The plan.

    Raises
    ------
    ValueError
        If nothing of epsilon is left for a step.

    Notes
    -----
    Let C = H (2 R c)^2 bound the curvature, H being the smoothness, R the radius and c the
    largest entry of a row. If every vertex is within e of the best, steps 2 / (t + s) keep
    the excess mean loss below ``2 C / (t + s) + e`` once it is so at t = 0; a draw among 2 p
    vertices has ``e <= R temperature log(2 p) / n`` on average. With the curvature that is
    met instead of C, that is minimised over the number of steps.
    """
    clip = min(clip, largest_entry)
    if radius is None:
        radius = _REACH / clip
    radius = min(radius, largest_radius or math.inf)
    reach = radius * clip
    bend = 4 * min(smoothness, _SHARPEST)
    if n_steps is None:
        tried = np.arange(1.0, MOST_STEPS + 1)
        # a budget that rounds to nothing leaves one step
        with np.errstate(all="ignore"):
            price = np.maximum(*prices(epsilon, delta, tried))
            noise = 2 * moved_rows * math.log(2 * n_coefs * n_outputs) / n_rows / price
            # both terms over the reach
            n_steps = 1 + int(np.argmin(2 * bend * _CURVATURE * reach / tried + noise))
    summed, concentrated = prices(epsilon, delta, n_steps)
    if not max(summed, concentrated) > 0:
        raise ValueError(
            f"epsilon is too small to be shared by {n_steps} steps; got {epsilon!r}. Raise epsilon "
            "or lower max_iter."
        )
    return FrankWolfePlan(
        n_steps=n_steps,
        radius=radius,
        clip=clip,
        # the first step moves no margin of an unclipped row by more than 1 / (4 bend)
        offset=max(2.0, 8 * bend * reach),
        epsilon_step=float(max(summed, concentrated)),
        delta=0.0 if summed >= concentrated else delta,
    )


def frank_wolfe(choose, shape, plan):
    """Take the steps of a plan, starting at zero.

    Parameters
    ----------
    choose : callable
        Maps coefficients to the index of a vertex that was drawn there: j for coordinate j
        of the flattened coefficients, their number plus j for its opposite.
    shape : tuple of int
        Shape of the coefficients.
    plan : FrankWolfePlan
        The plan.

    Returns
    -------
    coef : ndarray of shape `shape`
        At most `n_steps` coefficients are not zero.
    """
    coef = np.zeros(shape)
    for t in range(plan.n_steps):
        side, j = divmod(choose(coef), coef.size)
        step = 2 / (t + plan.offset)
        # a new array: the old one is the field of a query
        coef = coef * (1 - step)
        coef.flat[j] += (plan.radius if side == 0 else -plan.radius) * step
    return coef
