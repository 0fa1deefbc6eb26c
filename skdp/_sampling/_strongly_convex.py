# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact draws from exp(-c f), f strongly convex, on a ball in any dimension.

A strongly convex f lies above a parabola through any of its points. The Gaussian that
belongs to the parabola is the envelope of a rejection sampler.
"""

import numpy as np

from skdp._sampling._ball import sample_quadratic_on_ball

# Proposals per evaluation; it changes the time, not the law.
_PROPOSALS = 8


def sample_strongly_convex(value_and_subgradient, anchor, c, strong_convexity, radius, variates):
    """Draw from the ball around 0 with density proportional to exp(-c f).

    Parameters
    ----------
    value_and_subgradient : callable
        Maps points of shape (m, n_dims) to the values of f, of shape (m,), and to
        subgradients, of shape (m, n_dims).
    anchor : array of shape (n_dims,)
        Where the parabola touches f. Any point is exact; the minimiser is quickest.
    c : float
        Inverse temperature, positive.
    strong_convexity : float
        Modulus of f, positive: f minus strong_convexity/2 times the squared norm is convex.
    radius : float
        Radius of the ball.
    variates : Variates
        Source of randomness.

    Returns
    -------
    theta : ndarray of shape (n_dims,)
        An exact draw, in ideal arithmetic.

    Notes
    -----
    With s the modulus, x the anchor and g the subgradient there,
    f(theta) >= f(x) + <g, theta - x> + s/2 |theta - x|^2. Completing the square makes the
    right-hand side a parabola around x - g/s. No certificate of optimality is needed.

    About the product over the dimensions of sqrt(s/h), with h the curvatures of f, is
    accepted: use it where the penalty dominates the data. There is no limit on the
    number of proposals, and the time depends on the data.
    """
    anchor = np.asarray(anchor, dtype=np.float64)
    value, slope = (part[0] for part in value_and_subgradient(anchor[None]))
    mean = anchor - slope / strong_convexity
    while True:
        points = np.array(
            [
                sample_quadratic_on_ball(mean, c * strong_convexity, radius, variates)
                for _ in range(_PROPOSALS)
            ]
        )
        step = points - anchor
        parabola = value + step @ slope + strong_convexity / 2 * (step * step).sum(axis=1)
        log_acceptance = -c * (value_and_subgradient(points)[0] - parabola)
        accepted = -variates.exponential(_PROPOSALS) <= log_acceptance
        if accepted.any():
            return points[np.argmax(accepted)]
