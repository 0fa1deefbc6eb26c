# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exponential mechanism over finitely many candidates.

The set of possible outputs is fixed before the data are seen, so that no output can
carry digits of the data: what floats do to the probabilities is all they can do.
"""

import math

import numpy as np
from scipy.special import ndtri

#: largest number of lattice points that are looked at for a grid
MAX_GRID = 10_000_000


def choose_by_loss(losses, c, variates):
    """Draw an index with probability proportional to exp(-c losses[i]).

    Parameters
    ----------
    losses : array of shape (n_candidates,)
        Finite losses.
    c : float
        Inverse temperature, not negative.
    variates : Variates
        Source of randomness.

    Returns
    -------
    index : int
        An exact draw, in ideal arithmetic (the Gumbel-max trick).
    """
    losses = np.asarray(losses, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        score = c * (losses.min() - losses)
    return int(np.argmax(score + variates.gumbel(len(score))))


def ball_grid(n_dims, radius, spacing):
    """Return the points of a lattice that lie in a ball around 0.

    Parameters
    ----------
    n_dims : int
        Number of dimensions.
    radius : float
        Radius of the ball.
    spacing : float
        Distance between neighbouring points.

    Returns
    -------
    points : ndarray of shape (n_points, n_dims)
        All points of the ball whose coordinates are multiples of `spacing`, in
        lexicographic order; 0 is one of them.

    Raises
    ------
    ValueError
        If an argument is out of range, or the grid would be too large.

    Notes
    -----
    Rounding every coordinate towards 0 stays in the ball. So every point of the ball is
    less than ``spacing * sqrt(n_dims)`` from the grid, and a sum of n L-Lipschitz losses
    is at most n L times that above its minimum at the best candidate.
    """
    if n_dims < 1:
        raise ValueError(f"n_dims must be at least 1; got {n_dims!r}.")
    for name, number in {"radius": radius, "spacing": spacing}.items():
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be a finite positive number; got {number!r}.")
    steps = radius / spacing
    if n_dims * math.log(2 * steps + 1) > math.log(MAX_GRID):
        raise ValueError(
            f"spacing must leave at most {MAX_GRID} points in the cube around the ball; got "
            f"{spacing!r} for radius {radius!r} and n_dims {n_dims!r}."
        )
    # integers first: which points are inside does not depend on rounding of products
    axis = np.arange(-math.floor(steps), math.floor(steps) + 1)
    cube = np.meshgrid(*[axis.astype(np.float64)] * n_dims, indexing="ij")
    points = np.stack(cube, axis=-1).reshape(-1, n_dims)
    return spacing * points[(points * points).sum(axis=1) <= steps * steps]


def ball_candidates(n_dims, radius, count):
    """Return about `count` points spread over a ball around 0: the same whatever the data.

    Parameters
    ----------
    n_dims, radius, count : int, float, int
        Number of dimensions, radius, and number of points wanted.

    Returns
    -------
    points : ndarray of shape (n_points, n_dims)
        In up to 3 dimensions a lattice; in more, where lattices are too coarse, 0 and a
        sequence of evenly spread directions and lengths, about which nothing is proved.
    """
    if n_dims <= 3:
        volume = (2.0, math.pi, 4 * math.pi / 3)[n_dims - 1]
        return ball_grid(n_dims, radius, radius * (volume / count) ** (1 / n_dims))
    steps = np.arange(1, count)[:, None]
    # multiples of irrational numbers fill the unit cube evenly (Kronecker)
    cube = (steps * np.sqrt(_primes(n_dims))) % 1.0
    gaussian = ndtri(np.clip(cube, 1e-9, 1 - 1e-9))
    length = np.sqrt(np.einsum("ij,ij->i", gaussian, gaussian))
    # a cube root, since square roots of primes are taken
    wanted = radius * ((steps[:, 0] * 2 ** (1 / 3)) % 1.0)
    points = gaussian * (wanted / np.maximum(length, 1e-300))[:, None]
    return np.vstack([np.zeros((1, n_dims)), points])


def _primes(count):
    """Return the first prime numbers."""
    limit = 16 + int(2 * count * math.log(count + 2))
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for i in range(2, math.isqrt(limit) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return np.flatnonzero(sieve)[:count]
