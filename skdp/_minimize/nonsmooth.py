# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of objectives of losses with kinks, certified by a duality gap.

Certificate. Let P(w) = sum_i loss(z_i) + ridge/2 |w - center|^2 + <linear, w>, z_i being
the predictions of row v_i, and let r_i be any residuals in their set. With g = sum_i r_i
v_i + ridge (w - center) + linear, the gap between P(w) and the dual value of r is exactly
``sum_i (loss(z_i) + loss*(r_i) - <r_i, z_i>) + |g|^2 / (2 ridge)``. All terms are >= 0,
and strong convexity gives ``|w - w*| <= sqrt(2 gap / ridge)``.

Homotopy. The loss is smoothed at temperature T, T falling; the residuals of the smoothed
minimiser are feasible and every row's gap is at most c T: for classes c is log(K), K being
their number; for two slopes a < b see SmoothedKink. At T = ridge tolerance^2 / (8 n c) the
gap of the exact smoothed minimiser is a quarter of what is needed. In practice few rows are
near the kink, and a much higher temperature is enough.

Rounding. At a low temperature the residuals at w change a lot with the last digit of w.
Those predicted for w plus a last, tiny Newton step, to first order in the step, do not:
they are feasible too, and nearly make g vanish. A target y may be as large as floats are:
off the parabola a residual is exactly a or b, and so the row's gap exactly 0 on that side;
on it |y| is at most |z| + 2 T. The rounding of z - y itself is relative: it changes a gap by
one rounding of the gap.
"""

import math
import warnings
from collections import deque

import numpy as np

from skdp._minimize.smooth import (
    accelerated,
    attempt,
    check_tolerance,
    line_search,
    newton_step,
    solve_with_cvxpy,
)

_COOLING = 2.5
_NEWTON_STEPS = 60


def gap_bound(objective, smooth, w, step):
    """Return a proved bound on the duality gap at w, rounding errors included, in two parts.

    The part of the rows' gaps, and the part of what the residuals leave of g.
    """
    gap, gradient = objective.duality_gap(smooth, w, step)
    bounds, away = objective.bounds, np.linalg.norm(w - objective.center)
    length = np.linalg.norm(gradient) + bounds.sum_error(away)
    return gap * (1 + 1e-9) + bounds.gap_error(away), length**2 / (2 * bounds.ridge)


def last_temperature(objective, goal):
    """Return the temperature at which the smoothed minimiser's gap is goal / 4."""
    return goal / (4 * max(1, objective.bounds.n_rows) * objective.looseness)


def first_temperature(objective):
    """Return a temperature to begin with: the scale of the kinks, or of the predictions.

    Classes have kinks at +-1. Targets may have any scale, but predictions within reach
    differ by no more than the temperature, so that the smoothed loss is nearly quadratic.
    """
    bounds = objective.bounds
    return 1.0 if bounds.offset >= 1.0 else bounds.row_norm * bounds.reach


def cool(objective, start, goal, first):
    """Lower the temperature until the gap is at most `goal`.

    Returns
    -------
    w : ndarray of shape (size,)
        The last point.
    met : bool
        Whether its gap is small enough.
    """
    last = last_temperature(objective, goal)
    w, temperature, path = start, max(first, last), deque(maxlen=2)
    while True:
        smooth = objective.smoothed(temperature)
        w = _ahead(smooth, w, path)
        # closer where the Newton step is not small enough to predict residuals
        for enough in (0.3, 1e-3, 1e-9):
            w, step = _newton(smooth, w, enough * temperature * objective.bounds.lipschitz)
            gap, rest = gap_bound(objective, smooth, w, step)
            if gap + rest <= goal:
                return w, True
            if rest <= max(gap, goal) and temperature > last:
                break
        if temperature <= last:
            return w, False
        path.append((temperature, w + step))
        temperature = max(temperature / _COOLING, last)


def _ahead(smooth, w, path):
    """Return where the path of minimisers leads, unless the gradient is longer there.

    As long as the same rows are at their kinks, minimisers are a linear function of the
    temperature.
    """
    if len(path) < 2:
        return w
    (hot, first), (cold, second) = path
    ahead = second + (smooth.loss.temperature - cold) / (cold - hot) * (second - first)
    slopes = [np.linalg.norm(smooth.gradient(point)) for point in (w, ahead)]
    return ahead if slopes[1] < slopes[0] else w


def _newton(smooth, w, enough):
    """Return a point whose Newton step promises a decrease of at most `enough`, and the step."""
    value, gradient = smooth.value_and_gradient(w)
    for _ in range(_NEWTON_STEPS):
        step = newton_step(smooth, w, gradient)
        if -(gradient @ step) / 2 <= enough:
            break
        better = line_search(smooth, w, value, gradient, step)
        if better is None:
            break
        w, value, gradient = better
    return w, step


def minimize_nonsmooth(objective, tolerance, solver="newton", start=None):
    """Return a point within `tolerance` of the minimiser.

    Parameters
    ----------
    objective : RowObjective
        Strongly convex, with a hinge loss or another one with kinks.
    tolerance : float
        Public; not below ``reachable_tolerance(objective.bounds)``.
    solver : {"newton", "cvxpy"}, default="newton"
        What is tried first; "cvxpy" is followed by a few steps of the homotopy.
    start : ndarray of shape (size,), default=None
        First point; None starts from the center.

    Returns
    -------
    w : ndarray of shape (size,)
        Fresh array.

    Raises
    ------
    ValueError
        If the tolerance is out of reach, which is public.

    Notes
    -----
    Fall-back: accelerated gradient descent on the smoothed objective at the last
    temperature, for the number of steps after which, by the theorems in this module and
    in ``smooth.py``, the gap is at most what is needed.
    """
    check_tolerance(tolerance, objective.bounds)
    goal = objective.bounds.ridge * tolerance**2 / 2
    w = np.array(objective.center if start is None else start, dtype=np.float64)
    firsts = [first_temperature(objective)]
    if solver == "cvxpy":
        w = attempt(solve_with_cvxpy, objective, w, None)
        firsts = [1e-5, *firsts]
    for first in firsts:
        found = _attempt_cooling(objective, w, goal, first)
        if found is not None:
            return found
        w = np.array(objective.center, dtype=np.float64)
    smooth = objective.smoothed(last_temperature(objective, goal))

    def met(w, gradient):
        return sum(gap_bound(objective, smooth, w, np.zeros_like(w))) <= goal

    # what the gradient adds to the gap is again a quarter
    return accelerated(smooth, math.sqrt(objective.bounds.ridge * goal / 2), met)


def _attempt_cooling(objective, w, goal, first):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            w, met = cool(objective, w, goal, first)
    except Exception:
        return None
    return w if met else None
