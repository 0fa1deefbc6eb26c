# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of smooth objectives, certified by the norm of the gradient.

Certificate. J is ridge-strongly convex, so ``|w - w*| <= |grad J(w)| / ridge``. The
gradient is computed anew at the point that is returned, and what rounding may hide is
added to its norm.
"""

import warnings

import numpy as np

from skdp._minimize.accelerated import accelerated
from skdp._minimize.bounds import check_tolerance
from skdp._minimize.cvxpy_solver import solve_with_cvxpy
from skdp._minimize.lbfgs import lbfgs
from skdp._minimize.newton import cooled_newton, newton

#: solvers of smooth objectives, by name
SMOOTH_SOLVERS = {"newton": newton, "lbfgs": lbfgs, "cvxpy": solve_with_cvxpy}


def distance_bound(objective, w, gradient):
    """Return a proved bound on the distance of w from the minimiser; inf or NaN if none."""
    away = np.linalg.norm(w - objective.center)
    return (np.linalg.norm(gradient) + objective.bounds.gradient_error(away)) / (
        objective.bounds.ridge
    )


def attempt(solver, objective, start, met):
    """Return what a solver finds, or the start if it fails; in silence."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            w = np.asarray(solver(objective, start, met), dtype=np.float64)
    except Exception:
        return start
    return w if w.shape == start.shape and np.isfinite(w).all() else start


def minimize_smooth(objective, tolerance, solver="newton", start=None):
    """Return a point within `tolerance` of the minimiser.

    Parameters
    ----------
    objective : RowObjective
        Smooth and strongly convex. The gradient need not have a derivative everywhere.
    tolerance : float
        Public; not below ``reachable_tolerance(objective.bounds)``.
    solver : {"newton", "lbfgs", "cvxpy"}, default="newton"
        What is tried first.
    start : ndarray of shape (size,), default=None
        First point; None starts from the centre.

    Returns
    -------
    w : ndarray of shape (size,)
        Fresh array. What is returned is certified, by one solver or the next; the last
        one's theorem holds whatever the rows are.

    Raises
    ------
    ValueError
        If the tolerance is out of reach, which is public.
    """
    check_tolerance(tolerance, objective.bounds)

    def met(w, gradient):
        return distance_bound(objective, w, gradient) <= tolerance

    w = np.array(objective.center if start is None else start, dtype=np.float64)
    # a loss without a temperature cannot be cooled
    last = cooled_newton if getattr(objective.loss, "temperature", 0.0) else lbfgs
    for step in dict.fromkeys([SMOOTH_SOLVERS[solver], newton, last]):
        w = attempt(step, objective, w, met)
        # what a solver found may be as large as floats are
        with np.errstate(all="ignore"):
            if met(w, objective.gradient(w)):
                return w
    bounds = objective.bounds
    if tolerance >= bounds.reach:
        return np.array(objective.center, dtype=np.float64)
    # The error is affine in the distance, hence at most twice that at `reach`, which is a
    # quarter of ridge * tolerance: half of that is left.
    spare = bounds.ridge * tolerance - bounds.gradient_error(bounds.reach + tolerance)
    return accelerated(objective, spare, met)
