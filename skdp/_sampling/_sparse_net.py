# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A finite set of sparse vectors, near every vector of a ball that sparse gradients can tell.

Round the coordinates of a vector of the ball towards 0 to multiples of tau. The result is in
the ball, no coordinate has moved by tau, and since those left are tau or more, there are at
most ``(radius / tau)^2`` of them. A loss whose gradients have at most s non-zeros and norm L
has gradients of l1 norm ``L sqrt(s)``, and has grown by less than ``L sqrt(s) tau`` (Ghazi,
Guzman, Kamath, Kumar and Manurangsi 2024, Lemma 7.3, in one step in place of two).
"""

import math

import numpy as np
from scipy.optimize import brentq

from skdp._sampling._net import MAX_GRID

#: more dimensions have nets too large to be listed
MOST_DIMS = 12


def sparse_net(n_dims, radius, tau):
    """Return the vectors of a ball whose coordinates are multiples of a step.

    Parameters
    ----------
    n_dims : int
        Number of dimensions, at most 12.
    radius, tau : float
        Radius of the ball, and the step.

    Returns
    -------
    points : ndarray of shape (n_points, n_dims)
        Sorted, 0 among them; the same whatever the data. With ``k = (radius / tau)^2`` rounded
        down, and at most `n_dims`, every point has at most k non-zeros, and there are at most
        ``binom(n_dims, k) (3 radius / tau)^k`` of them.

    Raises
    ------
    ValueError
        If an argument is out of range, or there would be too many points.
    """
    if not 1 <= n_dims <= MOST_DIMS:
        raise ValueError(f"n_dims must be in [1, {MOST_DIMS}]; got {n_dims!r}.")
    for name, number in {"radius": radius, "tau": tau}.items():
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be a finite positive number; got {number!r}.")
    limit = (radius / tau) ** 2
    axis = np.arange(-math.floor(radius / tau), math.floor(radius / tau) + 1)
    # one dimension after another; what has left the ball is not followed
    points, squares = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for _ in range(n_dims):
        if len(points) * len(axis) > MAX_GRID:
            raise ValueError(
                f"tau must leave at most {MAX_GRID} points; got {tau!r} for radius {radius!r} "
                f"and n_dims {n_dims!r}."
            )
        grown = squares[:, None] + axis.astype(np.float64) ** 2
        first, last = np.nonzero(grown <= limit)
        points = np.column_stack([points[first], axis[last]])
        squares = grown[first, last]
    return tau * points


def sparse_net_step(*, epsilon, n_rows, n_dims, radius, lipschitz, n_nonzeros, spread, failure):
    """Return the step that balances the two errors of a draw from the net.

    Parameters
    ----------
    epsilon, n_rows, n_dims, radius : float, int, int, float
        Price of the draw, number of rows, number of dimensions, radius of the ball.
    lipschitz, n_nonzeros : float, int
        Bounds on the norm of a row's gradient, and on the number of its non-zeros.
    spread : float
        By how much one row's loss differs between two points of the ball, at most.
    failure : float
        Probability that the bound may fail.

    Returns
    -------
    tau : float
        With ``tau^3 / log(d R / (tau failure)) = B R^2 / (L sqrt(s) epsilon n)``, for the
        spread B and the radius R; at most R.
    """
    goal = spread * radius**2 / (lipschitz * math.sqrt(n_nonzeros) * epsilon * n_rows)

    def excess(tau):
        return tau**3 - goal * math.log(n_dims * radius / (tau * failure))

    if excess(radius) <= 0:
        return radius
    return float(brentq(excess, 1e-12 * radius, radius, xtol=1e-15 * radius))
