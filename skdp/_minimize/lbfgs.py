# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Quasi-Newton steps, for many coefficients."""

from scipy.optimize import minimize

_ROUNDS = 5


def lbfgs(objective, start, met):
    """Minimise by scipy's L-BFGS-B until ``met(w, gradient)``.

    Parameters
    ----------
    objective : object
        With `value_and_gradient` and `gradient`.
    start : ndarray of shape (size,)
        First point.
    met : callable
        Tells whether a point is good enough.

    Returns
    -------
    w : ndarray of shape (size,)
        A point that is good enough, or the last one.

    Notes
    -----
    The solver's own tests of convergence are turned off, all but stagnation. Memory of
    curvature that rounding has spoilt is thrown away between rounds.
    """

    def stop(intermediate_result):
        # the gradient at the new point was computed last
        if met(*last):
            raise StopIteration

    def function(w):
        value, gradient = objective.value_and_gradient(w)
        last[:] = w.copy(), gradient.copy()
        return value, gradient

    w, last = start, [start, None]
    options = {"maxcor": 20, "maxiter": 2000, "maxfun": 10**5, "ftol": 0.0, "gtol": 0.0}
    for _ in range(_ROUNDS):
        found = minimize(function, w, jac=True, method="L-BFGS-B", options=options, callback=stop)
        if met(*last):
            return last[0]
        w = found.x
    return w
