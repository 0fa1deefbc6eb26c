# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Euclidean projections on the l1 ball, and on its intersection with the l2 ball."""

import math

import numpy as np

from skdp._recovery._shrink import SoftNorms, into_ball, project_linf, soft_threshold


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
