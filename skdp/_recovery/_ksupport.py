# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The k-support norm, whose unit ball is the convex hull of sparse unit vectors.

Its dual norm is the l2 norm of the k largest magnitudes. With weights ``theta`` in [0, 1]
that add up to at most k, ``|w|^2 = min sum w_i^2 / theta_i`` (Argyriou, Foygel and Srebro
2012; McDonald, Pontil and Stamos 2016).
"""

import math

import numpy as np

from skdp._recovery._l1 import project_l1
from skdp._recovery._shrink import into_ball, soft_threshold

# halvings of an interval of floats, more than it takes to leave two neighbours
_HALVINGS = 200


class _Sorted:
    """Positive magnitudes, the largest first, and their partial sums.

    With a threshold t the excess of a magnitude is ``max(u - t, 0)``. The weights are
    ``min(excess / width, 1)``: the first `n_head` are 1, and the width is such that all
    of them add up to k.
    """

    def __init__(self, w, k):
        magnitude = np.sort(np.abs(w))[::-1]
        self.k = k
        self.u = magnitude[: np.count_nonzero(magnitude)]
        # from the smallest on, or few large ones would drown the others
        self.sums = np.concatenate([[0.0], np.cumsum(self.u[::-1])])[::-1]
        self.squares = np.concatenate([[0.0], np.cumsum(self.u * self.u)])
        self.ascending = self.u[::-1]

    def weights(self, threshold):
        """Return the number of weights 1, the sum of the excesses that get less, the width."""
        n_left = len(self.u) - int(np.searchsorted(self.ascending, threshold, side="right"))
        low, high = 0, self.k - 1
        # the first that is no more than the mean share of what follows is not in the head:
        # k - p times the p-th excess, less the sum of those from it on, falls with p
        while low < high:
            middle = (low + high) // 2
            if (self.k - middle) * (self.u[middle] - threshold) < self._excess(
                middle, n_left, threshold
            ):
                high = middle
            else:
                low = middle + 1
        excess = max(self._excess(low, n_left, threshold), 0.0)
        return low, excess, excess / (self.k - low)

    def _excess(self, first, last, threshold):
        return self.sums[first] - self.sums[last] - (last - first) * threshold

    def square(self, threshold):
        """Return the squared norm of what the weights leave over: see `shrunk`."""
        head, excess, width = self.weights(threshold)
        if width <= 0:
            return 0.0
        return self.squares[head] * (width / (width + threshold)) ** 2 + width * excess


def ksupport_norm(w, k):
    """Return the k-support norm.

    Parameters
    ----------
    w : ndarray of shape (d,)
        Finite.
    k : int
        At least 1. The l1 norm for k = 1, the l2 norm for k >= d.

    Returns
    -------
    norm : float
        Between the l2 norm, or the l1 norm over sqrt(k), and sqrt(2) times the larger one.
    """
    unit = np.abs(w).max(initial=0.0)
    if unit == 0:
        return 0.0
    with np.errstate(under="ignore", over="ignore"):
        scaled = np.asarray(w, dtype=np.float64) / unit
        if np.count_nonzero(scaled) <= k:
            return float(np.linalg.norm(scaled) * unit)
        return float(math.sqrt(_Sorted(scaled, k).square(0.0)) * unit)


def project_ksupport(y, k, radius):
    """Return the Euclidean projection on the ball of the k-support norm.

    Parameters
    ----------
    y : ndarray of shape (d,)
        Released numbers, finite.
    k : int
        At least 1.
    radius : float
        At least 0.

    Returns
    -------
    projected : ndarray of shape (d,)
        In the ball, in O(d log d).

    Notes
    -----
    The projection minimises ``|x - y|^2 + m (sum x_i^2 / theta_i)`` over x and theta, for some
    m. So x_i is ``y_i theta_i / (theta_i + m)``, and the weights are linear in ``|y_i|``
    between 0 and 1: ``theta_i = clip((|y_i| - t) / width, 0, 1)`` with ``t = m width``. Entries
    whose weight is 1 are scaled by ``width / (width + t)``, entries with a lower positive one
    lose t, and the others are zero. Given t, the width follows from the sum of the weights;
    the norm of x falls from that of `y` to zero as t goes from 0 to the k-th largest magnitude.
    """
    y = np.asarray(y, dtype=np.float64)
    unit = np.abs(y).max(initial=0.0)
    if k == 1 or unit == 0:
        return project_l1(y, radius)
    with np.errstate(under="ignore", over="ignore"):
        scaled, limit = y / unit, radius / unit
        if np.count_nonzero(scaled) <= k:
            return into_ball(y, radius)
        ordered = _Sorted(scaled, k)
        goal = limit * limit
        if ordered.square(0.0) <= goal:
            return y.copy()
        low, high = 0.0, float(ordered.u[k - 1])
        for _ in range(_HALVINGS):
            middle = low + (high - low) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if ordered.square(middle) > goal else (low, middle)
        projected = _shrunk(scaled, high, *ordered.weights(high))
        # rounding may leave it just outside
        norm = ksupport_norm(projected, k)
        return projected * (min(1.0, limit / norm) if norm else 1.0) * unit


def _shrunk(y, threshold, head, excess, width):
    """Return the point whose weights belong to a threshold."""
    if width <= 0:
        return np.zeros_like(y)
    middle = soft_threshold(y, threshold)
    scaled = y * (width / (width + threshold))
    return np.where(np.abs(y) >= threshold + width, scaled, middle)
