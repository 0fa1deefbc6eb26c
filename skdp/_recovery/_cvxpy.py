# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse recovery handed to cvxpy."""

import numpy as np


def recover_with_cvxpy(matrix, b, *, radius=None, slack=0.0, nonnegative=False):
    """Return what cvxpy and Clarabel recover.

    Parameters
    ----------
    matrix : Measurement
        A; it is made explicit.
    b : ndarray of shape (n_measurements,)
        Released measurements, of norm 1: solvers stop at absolute tolerances.
    radius : float, default=None
        Given, ``|A z - b|_2`` is least over the l1 ball of this radius; None is the shortest
        z in the l1 norm with ``|A z - b|_2 <= slack``.
    slack : float, default=0.0
        In [0, 1); with 0 the measurements are met exactly.
    nonnegative : bool, default=False
        Whether no entry of z is negative.

    Returns
    -------
    z : ndarray of shape (n_features,), or None
        None if the solver did not report an optimum.
    """
    import cvxpy

    z = cvxpy.Variable(matrix.shape[1], nonneg=nonnegative)
    residual = matrix.explicit() @ z - b
    length = cvxpy.sum(z) if nonnegative else cvxpy.norm1(z)
    if radius is not None:
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm2(residual)), [length <= radius])
    else:
        met = residual == 0 if slack == 0 else cvxpy.norm2(residual) <= slack
        problem = cvxpy.Problem(cvxpy.Minimize(length), [met])
    problem.solve(solver="CLARABEL")
    return np.asarray(z.value, dtype=np.float64) if problem.status == "optimal" else None
