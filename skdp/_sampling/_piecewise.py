# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exponential densities on an interval, and chains of them.

The exponential mechanism on the line: the absolute, quantile and hinge losses of a
scalar parameter are piecewise linear, so that exp(-c f) is a truncated exponential
density on each interval between two knots. Choosing the interval by its mass and
then inverting one distribution function is exact, in time linear in the knots.
"""

import numpy as np

# Below this slope * width the density is flat to more digits than a float has.
_FLAT = 1e-30


def truncated_exponential(slope, low, high, variates):
    """Draw x in [low, high] with density proportional to exp(-slope x).

    Parameters
    ----------
    slope : ndarray
        Slopes of any sign, zeros and infinities included.
    low, high : ndarray
        Ends of the intervals, of the shape of `slope` (or broadcast to it); low <= high.
    variates : Variates
        Source of randomness.

    Returns
    -------
    x : ndarray
        Independent draws, of the shape of `slope`.
    """
    slope = np.asarray(slope, dtype=np.float64)
    width = np.subtract(high, low)
    u = variates.uniform(slope.size).reshape(slope.shape)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        rate = np.abs(slope)
        z = np.where(width > 0, np.maximum(rate * width, _FLAT), _FLAT)
        # The distance from the heavy end. The second form resolves far tails by the small u.
        gentle = width * (-np.log1p(u * np.expm1(-z)) / z)
        steep = -np.log(np.exp(-z) - u * np.expm1(-z)) / rate
        distance = np.where(z > 1, steep, gentle)
    return np.clip(np.where(slope >= 0, low + distance, high - distance), low, high)


def sample_piecewise_exponential(knots, slopes, c, variates):
    """Draw x in [knots[0], knots[-1]] with density proportional to exp(-c f(x)).

    f is continuous, has slope ``slopes[k]`` on ``[knots[k], knots[k + 1]]``, and is
    convex. Values are summed up from the minimum outwards, so that rounding errors are
    relative to the excess over the minimum, whatever the size of f.

    Parameters
    ----------
    knots : array of shape (m + 1,)
        Ascending; equal knots are allowed, and the slope between them is ignored.
    slopes : array of shape (m,)
        Finite and ascending, apart from those between equal knots.
    c : float
        Inverse temperature, not negative.
    variates : Variates
        Source of randomness.

    Returns
    -------
    x : float
        An exact draw, in ideal arithmetic.

    Examples
    --------
    The exponential mechanism for the median of three numbers in [-1, 1]; the loss is
    the sum of their distances:

    >>> import numpy as np
    >>> from skdp._sampling import sample_piecewise_exponential
    >>> from skdp.privacy._bits import SeededBits
    >>> from skdp.privacy._variates import Variates
    >>> knots = np.array([-1.0, -0.2, 0.1, 0.4, 1.0])
    >>> slopes = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> x = sample_piecewise_exponential(knots, slopes, 50.0, Variates(SeededBits(0)))
    >>> -0.2 < x < 0.4
    True
    """
    knots, slopes = (np.asarray(a, dtype=np.float64) for a in (knots, slopes))
    widths = np.diff(knots)
    if not (widths > 0).any():
        return float(knots[0])
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        # slopes * c first would overflow for narrow intervals and flush small slopes
        rise = np.where(widths > 0, slopes * widths * c, 0.0)
        lowest = int(np.max(np.flatnonzero(rise < 0), initial=-1)) + 1
        right = np.cumsum(rise[lowest:])
        left = np.cumsum(-rise[:lowest][::-1])[::-1]
        excess = np.concatenate([left, [0.0], right])
        z = np.abs(rise)
        # mass = exp(-lower end) * width * (1 - exp(-z))/z
        shape = np.log(-np.expm1(-z)) - np.log(z)
        # z overflowed: the logarithm of the product is a sum
        steep = -np.log(np.abs(slopes)) - np.log(widths) - np.log(c)
        shape = np.where(z < _FLAT, 0.0, np.where(np.isinf(z), steep, shape))
        mass = np.log(widths) + shape - np.minimum(excess[:-1], excess[1:])
        k = int(np.argmax(mass + variates.gumbel(len(mass))))
        slope = slopes[k] * c
    return float(truncated_exponential(slope, knots[k], knots[k + 1], variates))
