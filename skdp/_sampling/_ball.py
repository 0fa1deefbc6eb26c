# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact draws from the uniform, exponential and Gaussian laws on a ball.

The first p coordinates of a uniform point of the unit sphere of R^(p + 2) are uniform
on the unit ball of R^p. Tilting both by exp(<v, theta>) keeps this: the first p
coordinates of a von Mises-Fisher vector have density exp(<v, theta>) on the ball.

.. [1] A. T. A. Wood, "Simulation of the von Mises Fisher distribution", Communications
   in Statistics - Simulation and Computation 23(1), 1994.
"""

import math

import numpy as np

from skdp._sampling._tangent_box import sample_tangent_box

# Proposals that may fail before the sampler that always works takes over. The law of
# the draw does not depend on this number: what was rejected is forgotten.
_TRIES = 40


def _length(v):
    """Return the Euclidean norm, without overflow."""
    largest = float(np.abs(v).max(initial=0.0))
    return largest * float(np.linalg.norm(v / largest)) if largest > 0 else 0.0


def _into_ball(theta, radius):
    """Undo the rounding errors that left the ball."""
    norm = _length(theta)
    return theta * (radius / norm) if norm > radius else theta


def uniform_on_ball(n_dims, radius, variates):
    """Draw a uniform point of a ball around 0.

    Parameters
    ----------
    n_dims : int
        Number of dimensions.
    radius : float
        Radius of the ball.
    variates : Variates
        Source of randomness.

    Returns
    -------
    theta : ndarray of shape (n_dims,)
        An exact draw, in ideal arithmetic.
    """
    g = variates.normal(n_dims + 2)
    return _into_ball(radius * (g[:n_dims] / _length(g)), radius)


def _cosine_gap(kappa, n_dims, variates):
    """Draw 1 - <x, mu> for x von Mises-Fisher on the sphere of R^(n_dims + 2) [1]_.

    Written in the gap 1 - w, not in the cosine w: no digit is lost for large kappa.
    """
    m = n_dims + 1
    b = m / (2 * kappa + math.hypot(2 * kappa, m))
    gap0 = 2 * b / (1 + b)
    while True:
        g = variates.normal(m + 1)
        t = g[0] / _length(g)  # z = (1 - t)/2 is Beta(m/2, m/2)
        gap = b * (1 - t) / ((1 + t) / 2 + b * (1 - t) / 2)
        ratio = (gap0 + (1 - gap0) * gap) / (gap0 * (2 - gap0))
        if kappa * (gap0 - gap) + m * math.log(ratio) >= -variates.exponential(1)[0]:
            return gap


def sample_linear_on_ball(v, radius, variates):
    """Draw from the ball around 0 with density proportional to exp(<v, theta>).

    Parameters
    ----------
    v : array of shape (n_dims,)
        Any finite vector; 0 gives the uniform law.
    radius : float
        Radius of the ball.
    variates : Variates
        Source of randomness.

    Returns
    -------
    theta : ndarray of shape (n_dims,)
        An exact draw, in ideal arithmetic. Time and memory are O(n_dims).

    Notes
    -----
    Wood's rejection accepts at least about two proposals in three.
    """
    v = np.asarray(v, dtype=np.float64)
    norm = _length(v)
    if norm == 0:
        return uniform_on_ball(len(v), radius, variates)
    direction = v / np.abs(v).max()
    direction /= np.linalg.norm(direction)
    gap = _cosine_gap(norm * radius, len(v), variates)
    # a uniform direction orthogonal to (direction, 0, 0)
    g = variates.normal(len(v) + 2)
    body = g[:-2]
    body -= (body @ direction) * direction
    body /= _length(g)
    return _into_ball(
        radius * (direction - gap * direction + math.sqrt(gap * (2 - gap)) * body), radius
    )


def _log_odds_of_gaussian(distance, precision, radius, n_dims):
    """Return log(acceptance of the Gaussian proposal / acceptance of the linear one).

    The ratio is radius^nu distance^-nu I_nu(precision radius distance)
    exp(-precision distance^2/2), nu = n_dims/2, here by Debye's expansion of the Bessel
    function. It picks a proposal, and an error in it costs time only.
    """
    nu = n_dims / 2
    s = math.hypot(1.0, precision * radius * distance / nu)
    bessel = nu * (s + math.log(precision * radius * radius / nu) - math.log1p(s))
    return bessel - 0.5 * math.log(2 * math.pi * nu * s) - precision * distance * distance / 2


def _quadratic_by_boxes(direction, distance, precision, radius, variates):
    """Draw the two coordinates that matter, along the mean and away from it, by boxes.

    Their density exp(-precision ((t - distance)^2 + r^2)/2) r^(n_dims - 2) is log-concave
    on a half disc; the direction away from the mean is uniform.
    """
    n_dims = len(direction)
    if n_dims == 1:
        low, high, power = [-radius], [radius], 0.0
    else:
        low, high = [-radius, 0.0], [radius, radius]
        power = (n_dims - 2) / precision

    def value_and_subgradient(x):
        gradient = x.copy()
        gradient[:, 0] -= distance
        value = (gradient * gradient).sum(axis=1) / 2
        if power:
            value -= power * np.log(x[:, 1])
            gradient[:, 1] -= power / x[:, 1]
        return value, gradient

    ball = (np.zeros(len(low)), radius)
    x = sample_tangent_box(
        value_and_subgradient, len(low), precision, [ball], variates, cover=(low, high)
    )
    if n_dims == 1:
        return x * direction
    g = variates.normal(n_dims)
    g -= (g @ direction) * direction
    return x[0] * direction + x[1] * (g / _length(g))


def sample_quadratic_on_ball(mean, precision, radius, variates):
    """Draw from the ball around 0, density proportional to exp(-precision/2 |theta - mean|^2).

    Parameters
    ----------
    mean : array of shape (n_dims,)
        Centre of the Gaussian, in the ball or not.
    precision : float
        Inverse variance, not negative.
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
    Two proposals are exact: the Gaussian, accepted in the ball, and the density
    exp(precision <mean, theta>) on the ball, accepted with probability
    exp(-precision |theta|^2/2). The better one is tried first. Where both fail (many
    dimensions, or a mean outside), the tangent-box sampler draws the two coordinates
    that matter, which is quick in every case.
    """
    mean = np.asarray(mean, dtype=np.float64)
    n_dims, distance = len(mean), _length(mean)
    if precision == 0:
        return uniform_on_ball(n_dims, radius, variates)
    gaussian = _log_odds_of_gaussian(distance, precision, radius, n_dims) > 0
    for _ in range(_TRIES):
        if gaussian:
            theta = mean + variates.normal(n_dims) / math.sqrt(precision)
            if _length(theta) <= radius:
                return theta
        else:
            theta = sample_linear_on_ball(precision * mean, radius, variates)
            if variates.exponential(1)[0] >= precision * _length(theta) ** 2 / 2:
                return theta
    direction = mean / distance if distance > 0 else np.eye(n_dims)[0]
    theta = _quadratic_by_boxes(direction, distance, precision, radius, variates)
    return _into_ball(theta, radius)
