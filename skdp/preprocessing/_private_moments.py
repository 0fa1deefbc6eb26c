# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means and standard deviations of all features, released within a budget."""

import math

import numpy as np
from scipy.special import ndtri

from skdp._domains import Box
from skdp._queries._moments import WEIGHT, MomentSum
from skdp._queries._side_sum import SideSum
from skdp._solvers.bisection import MANTISSA_BITS, FloatKey, bisect_quantile, shortest
from skdp.privacy import GaussianMechanism

# parts of mu^2 for the medians, the spreads and the moments, and steps of the first two
_SHARES, _STEPS = (0.25, 0.25, 0.5), (42, 20)
#: a spread is needed to a few per cent
_SPREAD_KEY = FloatKey(mantissa_bits=3, signed=False)
# a spread that may be wrong by more than this factor is not used
_UNKNOWN = 2.0**10
# so large a second moment in the box means that it leaves out many rows
_OUTSIDE = 0.4
# floats that may still be added, halved and multiplied
_LARGEST, _SMALLEST = 1.7e308, 1e-300


def bounded_moments(curator, box, mu, n_rows):
    """Release means and standard deviations of features within public bounds.

    Parameters
    ----------
    curator : Curator
        Holds `FeatureRows`.
    box : Box
        The bounds.
    mu : float
        Price.
    n_rows : int
        Number of rows.

    Returns
    -------
    mean, scale : ndarray of shape (n_features,)
        In the units of the data.
    """
    mean, variance, _ = _moments_in(curator, box, mu, n_rows)
    with np.errstate(under="ignore"):
        return box.center + box.half_width * mean, box.half_width * np.sqrt(variance)


def _moments_in(curator, box, mu, n_rows):
    """Release means and variances in the units of the box; also return the variances' noise."""
    query = MomentSum(box)
    total = curator.release(query, GaussianMechanism(mu))
    noise = curator.ledger.releases[-1].noise.scale
    return *query.moments(total, n_rows, noise), noise / (WEIGHT * n_rows)


def unbounded_moments(curator, mu, adjacency, shape):
    """Release means and standard deviations of features without bounds.

    Medians, then a quantile of the distances to them, both by noisy bisection; they make
    a box, and the rest is as with bounds.

    Parameters
    ----------
    curator : Curator
        Holds `FeatureRows`.
    mu : float
        Price of everything together.
    adjacency : str
        As the curator has it.
    shape : tuple of int
        Numbers of rows and features.

    Returns
    -------
    mean, scale : ndarray of shape (n_features,)
        In the units of the data. The scale is 0 where a feature is constant, or its spread
        cannot be told; its mean is the median then.
    """
    n_rows, n_features = shape
    searches = [
        GaussianMechanism(mu * math.sqrt(share / steps))
        for share, steps in zip(_SHARES, _STEPS, strict=False)
    ]
    some = SideSum(np.zeros(n_features)).sensitivity(adjacency, n_rows)
    noises = [mechanism.calibrate(some, n_features).scale for mechanism in searches]
    public = {"n_rows": n_rows, "n_features": n_features}

    def sides_of_values(thresholds):
        return curator.release(SideSum(thresholds), searches[0])

    def sides_of_distances(thresholds):
        return curator.release(SideSum(thresholds, center), searches[1])

    steps, scale = _STEPS[0], noises[0]
    center = shortest(
        bisect_quantile(sides_of_values, FloatKey(), 0.5, steps=steps, scale=scale, **public)
    )
    tau, reach = _level(noises[1], n_rows), _reach(mu, adjacency, shape)
    steps, scale = _STEPS[1], noises[1]
    belief = bisect_quantile(
        sides_of_distances, _SPREAD_KEY, tau, steps=steps, scale=scale, **public
    )
    spread, (low, high) = belief.middle, belief.interval()
    with np.errstate(over="ignore", under="ignore"):
        # this bisection did not end, or that of medians does not see further
        flat = (high > _UNKNOWN * low) | (spread <= np.ldexp(np.abs(center), 2 - MANTISSA_BITS))
        half = np.where(flat, np.maximum(np.abs(center), 1.0), spread * reach / _gaussian(tau))
        half = np.clip(half, _SMALLEST, _LARGEST / 4)
        box = Box(
            tuple(np.clip(center - half, -_LARGEST, _LARGEST)),
            tuple(np.clip(center + half, -_LARGEST, _LARGEST)),
        )
    mean, variance, noise = _moments_in(curator, box, mu * math.sqrt(_SHARES[2]), n_rows)
    # many rows at the ends of the box: the spread fell into a gap between the values
    flat |= mean * mean + variance > _OUTSIDE + 3 * noise
    mean, scale = box.center + box.half_width * mean, box.half_width * np.sqrt(variance)
    return np.where(flat, center, mean), np.where(flat, 0.0, scale)


def _level(noise, n_rows):
    """Return which quantile of the distances to search: as high as noise lets it be seen."""
    return min(max(0.5, 1 - 3 * noise / n_rows), 0.99)


def _gaussian(tau):
    """Return that quantile of the distances, in standard deviations of a Gaussian."""
    return float(ndtri((1 + tau) / 2))


def _reach(mu, adjacency, shape):
    """Return the half width of the box in standard deviations of a Gaussian.

    The noise of a variance, relative to it, grows with the square of the reach; this keeps
    it near 2 per cent of a standard deviation, as long as the box is not too narrow for
    the rows.
    """
    n_rows, n_features = shape
    unit = MomentSum(Box((-1.0,) * n_features, (1.0,) * n_features))
    moved = unit.sensitivity(adjacency, n_rows).l2
    noise = moved / (mu * math.sqrt(_SHARES[2]) * n_rows)
    return min(max(math.sqrt(0.07 / noise), 3.5), 20.0)
