# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Objectives handed to cvxpy."""

import numpy as np


def solve_with_cvxpy(objective, start, met):
    """Minimise by cvxpy and Clarabel.

    Parameters
    ----------
    objective : RowObjective
        With `explicit`, `loss`, `ridge`, `center` and `linear`.
    start : ndarray of shape (size,)
        Gives the shape; an interior-point method has no use for it.
    met : callable
        Not asked: the solver has its own tolerances, and what it finds is certified and
        polished by the caller.

    Returns
    -------
    w : ndarray of shape (size,)
        Minimiser as cvxpy finds it.

    Notes
    -----
    The variable is the distance from the centre in units of what the objective can reach,
    and the objective is divided by the number of rows: solvers stop at absolute tolerances.
    """
    import cvxpy

    V, target = objective.explicit()
    loss, K = objective.loss, objective.loss.n_outputs
    reach = objective.bounds.reach
    u = cvxpy.Variable(len(start))
    w = objective.center + reach * u
    penalty = objective.ridge / 2 * reach**2 * cvxpy.sum_squares(u)
    penalty += reach * (objective.linear @ u)
    if K == 1:
        short = loss.margin - cvxpy.multiply(target, V @ w)
    else:
        z = V @ cvxpy.reshape(w, (K, V.shape[1]), order="C").T
        one = np.eye(K)[target]
        own = cvxpy.sum(cvxpy.multiply(one, z), axis=1)
        short = z + loss.margin * (1 - one)
    total = _total(cvxpy, short, loss.temperature, K)
    if K > 1:
        total -= cvxpy.sum(own)
    problem = cvxpy.Problem(cvxpy.Minimize((total + penalty) / max(1, len(target))))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return objective.center + reach * np.asarray(u.value)


def _total(cvxpy, short, temperature, n_outputs):
    if n_outputs == 1:
        if temperature == 0.0:
            return cvxpy.sum(cvxpy.pos(short))
        return temperature * cvxpy.sum(cvxpy.logistic(short / temperature))
    if temperature == 0.0:
        return cvxpy.sum(cvxpy.max(short, axis=1))
    return temperature * cvxpy.sum(cvxpy.log_sum_exp(short / temperature, axis=1))
