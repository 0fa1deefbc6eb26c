# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shrinkage of noisy vectors: soft thresholds, and projections on l1, l2 and k-support balls.

What comes in was released: thresholds that follow from it, and every projection, cost nothing.
"""

import math

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


# Thresholds for vectors with noise: the universal one, and the one of least estimated risk.


def universal_threshold(scale, d, law="gaussian"):
    """Return what the noise of d entries exceeds with small chance only.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise, or scale of Laplace noise, on every entry.
    d : int
        Number of entries.
    law : {"gaussian", "laplace"}, default="gaussian"
        Law of the noise.

    Returns
    -------
    threshold : float
        ``scale sqrt(2 log d)`` or ``scale log d``.
    """
    log = math.log(d)
    return scale * (log if law == "laplace" else math.sqrt(2.0 * log))


def sure_threshold(y, scale, nonnegative=False, law="gaussian"):
    """Return the soft threshold of least estimated risk, and that risk.

    Parameters
    ----------
    y : ndarray of shape (d,)
        A vector with independent noise on every entry.
    scale : float
        Standard deviation of Gaussian noise, or scale of Laplace noise; greater than 0.
    nonnegative : bool, default=False
        Whether the vector without noise has no negative entry, and what is estimated is
        ``max(y - threshold, 0)`` instead of the soft-threshold.
    law : {"gaussian", "laplace"}, default="gaussian"
        Law of the noise.

    Returns
    -------
    threshold : float
        0 or the magnitude of an entry, at most the universal threshold.
    risk : float
        Estimate of the expected squared Euclidean error, without bias for any threshold
        that is fixed beforehand. It can be negative.

    Notes
    -----
    Let one entry be ``x = z + N`` and its estimate g(x), so that ``(g - x)^2`` is ``x^2`` up
    to the threshold t and ``t^2`` beyond. What is missing to the error is
    ``2 E[(x - z) g(x)] - E[N^2]``. Gaussian noise of variance 1: ``E[(x - z) g] = E[g']``
    (Stein 1981; Donoho and Johnstone 1995). Laplace noise of scale 1: any function f has
    ``f(z) = E[f(x) - f''(x)]``. With ``G(z) = E[g(z + N)]``, for which ``G - G'' = g``, and
    ``f(z) = z G(z)`` that gives ``z E[g(x)] = E[x g(x) - 2 G'(x)]``, hence
    ``E[(x - z) g] = 2 E[G'(x)]``. For a threshold ``G'(x)`` is the chance that fresh noise
    takes x beyond it.
    """
    limit = universal_threshold(1.0, len(y), law)
    with np.errstate(under="ignore", over="ignore"):
        u = np.sort((y if nonnegative else np.abs(y)) / scale)
        # no threshold leaves fewer entries at zero than 0 does
        first = int(np.searchsorted(u, 0.0, side="right"))
        last = max(first, int(np.searchsorted(u, limit, side="right")))
        t = np.concatenate([[0.0], u[first:last]])
        squares = np.cumsum(u[:last] ** 2)
        below = np.concatenate([squares[first - 1 : first] if first else [0.0], squares[first:]])
        n_above = len(u) - np.arange(first, last + 1)
        if law == "laplace":
            twice, variance = 4.0 * _chance_beyond(u, t, first, last, not nonnegative), 2.0
        else:
            twice, variance = 2.0 * n_above, 1.0
        risk = below + t * t * n_above + twice - variance * len(u)
        best = int(np.argmin(risk))
        return float(t[best] * scale), float(risk[best] * scale * scale)


def _chance_beyond(u, t, first, last, two_sided):
    """Return, for each threshold, over how many entries Laplace noise would take one more time.

    `u` are sorted entries, of which the first ``first``, ``first + 1`` ... ``last`` are at
    most the thresholds `t`.
    """
    # exponentials of what is not above the universal threshold, log d, are at most d
    up = np.cumsum(np.exp(u[:last]))
    up = np.concatenate([up[first - 1 : first] if first else [0.0], up[first:]])
    down = np.exp(-np.abs(u))
    beyond = np.cumsum(down[::-1])[::-1]
    beyond = np.concatenate([beyond, [0.0]])[first : last + 1]
    n_above = len(u) - np.arange(first, last + 1)
    chance = n_above - np.exp(t) * beyond / 2 + np.exp(-t) * up / 2
    # by a leap to the other side
    return chance + np.exp(-t) * down.sum() / 2 if two_sided else chance


# Projections on l1 balls, and on their intersections with l2 balls.


def predicted_error(law, scale, n_features, n_nonzeros):
    """Return the Euclidean error to expect of a noisy mean after a projection.

    Parameters
    ----------
    law, scale : {"gaussian", "laplace"}, float
        Noise of an entry.
    n_features, n_nonzeros : int
        Number of entries, and the number of them that a row may have.

    Returns
    -------
    error : float
        Root mean square, for the worst rows of the unit ball, and at most that of the zero
        vector, 1.

    Notes
    -----
    Rows have l1 norm ``R = sqrt(n_nonzeros)`` at most. A projection of a vector of l1 norm R
    with noise of standard deviation s on d entries errs by about ``s sqrt(d)``, or, if that is
    less, by ``sqrt(R s sqrt(2 log(e + d s / R)))`` (Donoho and Johnstone 1994); Laplace
    noise has a logarithm without the root.
    """
    radius = math.sqrt(n_nonzeros)
    spread = scale * (math.sqrt(2.0) if law == "laplace" else 1.0)
    log = math.log(math.e + n_features * scale / radius)
    level = spread * (log if law == "laplace" else math.sqrt(2.0 * log))
    return min(1.0, spread * math.sqrt(n_features), math.sqrt(radius * level))


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


def project_l1(y, radius):
    """Return the Euclidean projection on the l1 ball.

    Parameters
    ----------
    y : ndarray of shape (d,)
        Released numbers, finite.
    radius : float
        Radius, at least 0.

    Returns
    -------
    projected : ndarray of shape (d,)
        A soft-threshold of `y`, in O(d log d).
    """
    return project_linf(y, radius, "l1")


def project_l1l2(y, l1_radius, l2_radius):
    """Return the Euclidean projection on the intersection of an l1 ball and an l2 ball.

    Parameters
    ----------
    y : ndarray of shape (d,)
        Released numbers, finite.
    l1_radius, l2_radius : float
        Radii, at least 0.

    Returns
    -------
    projected : ndarray of shape (d,)
        In both balls, in O(d log d).

    Notes
    -----
    The optimality conditions say that the projection is a soft-threshold of `y`, scaled down.
    If it is enough to scale, or to shrink, that is it. If not, both norms are attained: the
    threshold is where their ratio is that of the radii. The ratio of l1 to l2 norm grows
    with the number of entries that are left, and never exceeds its square root.
    """
    y = np.asarray(y, dtype=np.float64)
    if not y.any():
        return y.copy()
    norms = SoftNorms(y)
    with np.errstate(over="ignore", under="ignore"):
        radii = l1_radius / norms.unit, l2_radius / norms.unit
        if norms.l1[-1] * min(1.0, radii[1] / math.sqrt(norms.square[-1])) <= radii[0]:
            threshold = 0.0
        else:
            threshold = norms.level("l1", l1_radius)
            if np.linalg.norm(soft_threshold(y, threshold) / norms.unit) > radii[1]:
                threshold = _ratio_level(norms, l1_radius / l2_radius)
    # rounding, and radii that both are tiny, may leave it just outside
    return into_ball(into_ball(soft_threshold(y, threshold), l2_radius), l1_radius, "l1")


def _ratio_level(norms, ratio):
    """Return the threshold at which l1 norm / l2 norm has a value, which is attained."""
    square = ratio * ratio
    # the first step at which the ratio is too large; there is one, up to rounding
    too_large = norms.l1 * norms.l1 > square * norms.square
    if not too_large.any():
        return 0.0
    k = int(np.argmax(too_large))
    held = norms.l1[k - 1]
    lacking = square * norms.square[k - 1] - held * held
    # equal entries, whose ratio is the same all along their stretch
    down = norms.gap[k]
    if held > 0:
        # k down^2 + 2 held down = lacking / (k - square)
        need = max(lacking, 0.0) / max(k - square, 1e-30)
        down = min(down, need / (held + np.sqrt(held * held + k * need)))
    return float((norms.steps[k - 1] - down) * norms.unit)


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


# The k-support norm, whose unit ball is the convex hull of sparse unit vectors.
#
# Its dual norm is the l2 norm of the k largest magnitudes. With weights ``theta`` in [0, 1]
# that add up to at most k, ``|w|^2 = min sum w_i^2 / theta_i`` (Argyriou, Foygel and Srebro
# 2012; McDonald, Pontil and Stamos 2016).

# halvings of an interval of floats, more than it takes to leave two neighbours
_HALVINGS = 200


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


def _shrunk(y, threshold, head, excess, width):
    """Return the point whose weights belong to a threshold."""
    if width <= 0:
        return np.zeros_like(y)
    middle = soft_threshold(y, threshold)
    scaled = y * (width / (width + threshold))
    return np.where(np.abs(y) >= threshold + width, scaled, middle)
