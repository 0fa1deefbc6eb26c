# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse recovery from few noisy measurements, by products with the matrix alone.

What comes in was released, so when to stop is nobody's secret: both methods stop when a step
is short, and after a fixed number of steps at the latest.
"""

import numpy as np

from skdp._recovery._shrink import soft_threshold

# steps relative to the point at which a method stops, and the most of them
_TOLERANCE = 1e-5
_MOST_STEPS = 3000
# how often the slower method looks whether it is done
_EVERY = 10


def recover_constrained(matrix, b, radius, nonnegative=False):
    """Return a minimiser of ``|A z - b|_2`` over the l1 ball, by accelerated projected descent.

    Parameters
    ----------
    matrix : Measurement
        A.
    b : ndarray of shape (n_measurements,)
        Released measurements, of norm 1.
    radius : float
        Radius of the ball, at least 0.
    nonnegative : bool, default=False
        Whether no entry of z is negative.

    Returns
    -------
    z : ndarray of shape (n_features,)
        In the ball.

    Notes
    -----
    Nesterov's momentum, begun anew whenever it points uphill (O'Donoghue and Candes, 2015).
    """
    z = np.zeros(matrix.shape[1])
    with np.errstate(under="ignore"):
        step, ahead, t, level = 1.0 / matrix.norm**2, z, 1.0, 0.0
        for _ in range(_MOST_STEPS):
            new = ahead - step * matrix.backward(matrix.forward(ahead) - b)
            if nonnegative:
                np.maximum(new, 0.0, out=new)
            level = _l1_level(np.abs(new), radius, level)
            new = soft_threshold(new, level)
            move = new - z
            if (ahead - new) @ move > 0:
                t, ahead = 1.0, new
            else:
                grown = (1 + np.sqrt(1 + 4 * t * t)) / 2
                t, ahead = grown, new + ((t - 1) / grown) * move
            close, z = _close(new, z), new
            if close:
                break
    return z


def _close(new, old):
    """Return whether a step from old to new is short."""
    return np.linalg.norm(new - old) <= _TOLERANCE * np.linalg.norm(new)


def _l1_level(magnitudes, radius, level):
    """Return the threshold that brings a vector into the l1 ball, by Newton's method.

    From the threshold of the step before, this takes few looks at the magnitudes, and no
    sort. The l1 norm is convex in the threshold: after one step, whatever the start, all
    steps go up to the solution, and each leaves fewer entries.
    """
    if magnitudes.sum() <= radius:
        return 0.0
    for _ in range(len(magnitudes) + 2):
        above = magnitudes[magnitudes > level]
        new = max((above.sum() - radius) / above.size, 0.0) if above.size else 0.0
        if 0 <= new - level <= 1e-12 * new:
            break
        level = new
    return new


def recover_shortest(matrix, b, slack, nonnegative=False):
    """Return a z of least l1 norm with ``|A z - b|_2 <= slack``, by a primal-dual method.

    Parameters
    ----------
    matrix : Measurement
        A.
    b : ndarray of shape (n_measurements,)
        Released measurements, of norm 1.
    slack : float
        In [0, 1); with 0 the measurements are met exactly.
    nonnegative : bool, default=False
        Whether no entry of z is negative; then measurements may be out of reach, and what
        comes out is as near as the steps got.

    Returns
    -------
    z : ndarray of shape (n_features,)
        Up to the tolerance.

    Notes
    -----
    The method of Chambolle and Pock (2011). Its two step sizes are in the ratio of what is
    expected of the solutions: a primal one of about the length of b, and a dual one with
    about sqrt(m) entries of order 1.
    """
    z = np.zeros(matrix.shape[1])
    with np.errstate(under="ignore"):
        ratio = 1.0 / np.sqrt(len(b))
        step, dual_step = ratio / matrix.norm, 1.0 / (ratio * matrix.norm)
        u, reached = np.zeros(len(b)), np.zeros(len(b))
        for i in range(_MOST_STEPS):
            new = z - step * matrix.backward(u)
            new = np.maximum(new - step, 0.0) if nonnegative else soft_threshold(new, step)
            fitted = matrix.forward(new)
            v = u + dual_step * (2 * fitted - reached - b)
            size = np.linalg.norm(v)
            # what is left of the dual step beyond the ball of feasible residuals
            u_new = v * max(0.0, 1.0 - dual_step * slack / size) if size else v
            if i % _EVERY == 0:
                missed = np.linalg.norm(fitted - b) - slack
                if missed <= _TOLERANCE and _close(new, z) and _close(u_new, u):
                    z = new
                    break
            z, u, reached = new, u_new, fitted
    return z
