# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated gradient descent with a number of steps known beforehand.

Theorem (Nesterov 2004, Theorem 2.2.3). For m-strongly convex J whose gradient has the Lipschitz
constant M, with or without a Hessian, the method below from x_0 has
``J(x_k) - J* <= (1 - sqrt(m/M))^k (J(x_0) - J* + m/2 |x_0 - w*|^2)``, which is at most
``2 exp(-k sqrt(m/M)) (J(x_0) - J*)``. By strong convexity the starting gap is at most
``|grad J(x_0)|^2 / (2 m)``, which is public at x_0 = center; by smoothness
``|grad J(x)|^2 <= 2 M (J(x) - J*)``.
"""

import math

import numpy as np


def n_steps(bounds, gradient_norm):
    """Return how many steps from `center` bring the gradient down to that norm."""
    strong, smooth = bounds.ridge, bounds.total_smoothness
    gap = bounds.start_gradient**2 / (2 * strong)
    ratio = 4 * smooth * gap / gradient_norm**2
    return max(1, math.ceil(math.sqrt(smooth / strong) * math.log(max(ratio, 2.0))))


def accelerated(objective, gradient_norm, met):
    """Minimise from the centre until ``met(w, gradient)``, or for all steps of the theorem.

    Parameters
    ----------
    objective : object
        With `gradient`, `center` and `bounds`.
    gradient_norm : float
        What the theorem is asked for.
    met : callable
        Tells whether a point is good enough; asked now and then.

    Returns
    -------
    w : ndarray of shape (size,)
        Point whose gradient has at most that norm, in exact arithmetic.
    """
    bounds = objective.bounds
    root = math.sqrt(bounds.total_smoothness / bounds.ridge)
    momentum = (root - 1) / (root + 1)
    every = math.ceil(root)
    w = y = np.array(objective.center, dtype=np.float64)
    for step in range(1, n_steps(bounds, gradient_norm) + 1):
        new = y - objective.gradient(y) / bounds.total_smoothness
        y = new + momentum * (new - w)
        w = new
        if step % every == 0 and met(w, objective.gradient(w)):
            break
    return w
