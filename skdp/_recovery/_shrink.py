# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Soft-thresholding of released numbers, and the largest-coordinate projection it makes."""

import numpy as np


def soft_threshold(y, threshold):
    """Return `y` with every entry moved towards zero by a threshold, and not beyond it.

    Parameters
    ----------
    y : ndarray of shape (d,)
        Released numbers.
    threshold : float
        At least 0.

    Returns
    -------
    shrunk : ndarray of shape (d,)
        ``sign(y) max(|y| - threshold, 0)``.
    """
    shrunk = np.abs(y)
    shrunk -= threshold
    np.maximum(shrunk, 0.0, out=shrunk)
    np.copysign(shrunk, y, out=shrunk)
    # no negative zeros
    shrunk += 0.0
    return shrunk


class SoftNorms:
    """Norms of ``soft_threshold(y, t)`` at the thresholds where an entry joins.

    Parameters
    ----------
    y : ndarray of shape (d,)
        Finite, not all zero.

    Notes
    -----
    With magnitudes ``u[0] >= ... >= u[d-1]`` and ``u[d] = 0``, a step from ``t = u[k-1]`` to
    ``t = u[k]`` adds ``gap[k]`` to k entries. So the l1 norm grows by ``k gap[k]``, the squared
    l2 norm by ``2 gap[k] l1[k-1] + k gap[k]**2``: sums of terms that are not negative, which
    lose no digits, where differences of prefix sums of `y` would lose all.
    """

    def __init__(self, y):
        magnitude = np.abs(y)
        #: all is in units of the largest magnitude, whose squares neither over- nor underflow
        self.unit = magnitude.max()
        steps = np.empty(len(magnitude) + 1)
        with np.errstate(under="ignore"):
            np.divide(magnitude, self.unit, out=steps[1:])
            steps[1:].sort()
            steps[0] = 0.0
            #: magnitudes, the largest first, and a zero
            self.steps = steps[::-1]
            active = np.arange(len(magnitude) + 1)
            gap = np.zeros(len(magnitude) + 1)
            gap[1:] = self.steps[:-1] - self.steps[1:]
            self.gap = gap
            #: l1 norm, and square of the l2 norm, at every step
            self.l1 = np.cumsum(active * gap)
            grown = active * gap
            grown[1:] += 2.0 * self.l1[:-1]
            self.square = np.cumsum(grown * gap)

    def level(self, norm, radius):
        """Return the smallest threshold at which a norm is at most the radius.

        Parameters
        ----------
        norm : {"l1", "l2"}
            Which norm.
        radius : float
            At least 0.

        Returns
        -------
        threshold : float
            0 if nothing has to be shrunk.
        """
        with np.errstate(over="ignore", under="ignore"):
            goal = radius / self.unit
            goal, reached = (goal, self.l1) if norm == "l1" else (goal * goal, self.square)
            if reached[-1] <= goal:
                return 0.0
            # k entries are left between this step and the one before, where the norm fits
            k = int(np.searchsorted(reached, goal, side="right"))
            missing = goal - reached[k - 1]
            if norm == "l1":
                down = missing / k
            else:
                held = self.l1[k - 1]
                root = np.sqrt(held * held + k * missing)
                # 0 / 0 if nothing is held and nothing is missing
                down = missing / (held + root) if root else 0.0
            return float((self.steps[k - 1] - min(down, self.gap[k])) * self.unit)


def project_linf(x, radius, norm="l2"):
    """Return a point of a ball that is nearest to `x` in the largest coordinate.

    Parameters
    ----------
    x : ndarray of shape (d,)
        Released numbers, finite.
    radius : float
        Radius of the ball, at least 0; infinity leaves `x` as it is.
    norm : {"l2", "l1"}, default="l2"
        Norm of the ball.

    Returns
    -------
    projected : ndarray of shape (d,)
        ``soft_threshold(x, t)`` with the smallest t for which it lies in the ball.

    Notes
    -----
    Of the points within t of `x` in every coordinate, ``soft_threshold(x, t)`` is the one
    whose every magnitude is smallest, so it lies in the ball if any of them does. In the l1
    ball it is the nearest point in the Euclidean distance too.
    """
    x = np.asarray(x, dtype=np.float64)
    if not x.any():
        return x.copy()
    threshold = SoftNorms(x).level(norm, radius)
    # rounding may leave it just outside
    return into_ball(soft_threshold(x, threshold), radius, norm)


def into_ball(x, radius, norm="l2"):
    """Return `x` scaled into the ball of a norm, the l2 or the l1 one; nothing overflows."""
    unit = np.abs(x).max(initial=0.0)
    if unit == 0:
        return x.copy()
    with np.errstate(over="ignore", under="ignore"):
        scaled = x / unit
        size = np.linalg.norm(scaled, ord=int(norm[1]))
        limit = radius / unit
        return x.copy() if size <= limit else scaled * (limit / size) * unit
