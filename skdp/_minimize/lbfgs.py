# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Quasi-Newton steps, for many coefficients.

Nocedal's limited-memory BFGS, the inverse Hessian being built up from the inverse of the
Hessian's diagonal at the first point: columns of sparse rows differ by orders of magnitude
in how often they are used, and rare ones hardly interact. A step costs one look at the rows
and a few products of vectors; solvers for bounded problems spend most of their time beside
the rows when there are a million coefficients.
"""

from collections import deque

from scipy.linalg.blas import daxpy, ddot

from skdp._minimize.newton import line_search

# pairs of steps that are remembered: more save looks at the rows, but take memory and time
_MOST_PAIRS, _FEWEST_PAIRS = 40, 8
_REMEMBERED = 1 << 22
_MAX_STEPS = 2000


def lbfgs(objective, start, met):
    """Minimise by preconditioned L-BFGS steps until ``met(w, gradient)``.

    Parameters
    ----------
    objective : object
        With `value_and_gradient` and `hessian_diagonal`.
    start : ndarray of shape (size,)
        First point.
    met : callable
        Tells whether a point is good enough.

    Returns
    -------
    w : ndarray of shape (size,)
        A point that is good enough, or the last one before no step was better.

    Notes
    -----
    The objective is convex, so every pair of steps has positive curvature but for rounding.
    Memory of curvature that rounding has spoilt is thrown away once before giving up.
    """
    inverse = 1.0 / objective.hessian_diagonal(start)
    pairs = min(max(_REMEMBERED // len(start), _FEWEST_PAIRS), _MOST_PAIRS)
    w, memory = start, deque(maxlen=pairs)
    value, gradient = objective.value_and_gradient(w)
    for _ in range(_MAX_STEPS):
        if met(w, gradient):
            break
        step = _direction(gradient, memory, inverse)
        better = line_search(objective, w, value, gradient, step)
        if better is None:
            if not memory:
                break
            memory.clear()
            continue
        moved, turned = better[0] - w, better[2] - gradient
        w, value, gradient = better
        curvature = ddot(moved, turned)
        if curvature > 0:
            memory.append((moved, turned, curvature))
    return w


def _direction(gradient, memory, inverse):
    """Return minus the inverse Hessian, as far as it is known, times the gradient."""
    step, weights = -gradient, []
    for moved, turned, curvature in reversed(memory):
        weight = ddot(moved, step) / curvature
        weights.append(weight)
        daxpy(turned, step, a=-weight)
    if memory:
        _, turned, curvature = memory[-1]
        preconditioned = inverse * turned
        step *= curvature / ddot(turned, preconditioned)
    step *= inverse
    for (moved, turned, curvature), weight in zip(memory, reversed(weights), strict=True):
        daxpy(moved, step, a=weight - ddot(turned, step) / curvature)
    return step
