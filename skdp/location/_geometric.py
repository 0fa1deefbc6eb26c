# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Two ways to the geometric median, and the public set that it is sought in."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._domains import Box, L2Ball, check_bounds, check_radius
from skdp._queries._direction_sum import DirectionSum
from skdp._queries._distance import DistanceSum
from skdp._queries._points import PointRows
from skdp._queries._quantile_rank import RankRows
from skdp._sklearn import blas_on_one_thread, effective_n_threads
from skdp._solvers.subgradient import plan_subgradient, subgradient_descent
from skdp._streams import RowStream
from skdp.privacy import GaussianMechanism


@dataclass(frozen=True)
class Place:
    """The public set that rows are forced into, and the ball around it.

    Parameters
    ----------
    domain : L2Ball or Box
        The set.
    lower, upper : ndarray of shape (n_features,)
        The box around the set.
    center, unit : ndarray of shape (n_features,), float
        The ball around the set.
    """

    domain: Any
    lower: Any
    upper: Any
    center: Any
    unit: float

    @classmethod
    def described(cls, bounds, data_norm, n_features):
        """Return the place that an estimator's parameters describe, or raise ValueError."""
        if bounds is None:
            unit, center = check_radius(data_norm), np.zeros(n_features)
            return cls(L2Ball(unit), center - unit, center + unit, center, unit)
        lower, upper = check_bounds(bounds, n_features)
        box = Box(tuple(lower), tuple(upper))
        longest = float(box.half_width.max())
        # scaled first: the squares may overflow
        unit = longest * float(np.linalg.norm(box.half_width / longest))
        return cls(box, lower, upper, box.center, unit)

    def admit(self, X, mechanism):
        """Return the rows of X for a mechanism."""
        if mechanism == "rank":
            return RankRows(X, self.lower, self.upper)
        return PointRows(X, self.domain, self.unit, effective_n_threads())

    def locate(self, point):
        """Return a point of the unit ball in the data's units.

        Moving it into the box brings it closer to every row, and costs nothing.
        """
        return np.clip(self.center + self.unit * point, self.lower, self.upper)


def held(X):
    """Return rows that are all in memory, or mapped into it, or raise a TypeError.

    Parameters
    ----------
    X : ndarray or RowStream of shape (n_rows, n_features)
        Rows; of a stream those of a memory map alone can be used.
    """
    if not isinstance(X, RowStream):
        return X
    if X.is_mapped:
        return X.whole()
    raise TypeError(
        "mechanism='exponential' looks at all rows at once, so they must be in memory; got rows "
        "that are read chunk by chunk. mechanism='rank', and mechanism='gradient' with "
        "delta > 0, can do with these."
    )


def draw_median(curator, mechanism, place, n_rows):
    """Release a point by the exponential mechanism.

    Parameters
    ----------
    curator : Curator
        Holds `PointRows`.
    mechanism : ExponentialMechanism
        The price.
    place : Place
        Where the rows are.
    n_rows : int
        Number of rows.

    Returns
    -------
    location : ndarray of shape (n_features,)
        The geometric median.
    error_bound : float
        On the expected excess of the mean distance.

    Notes
    -----
    Bound. For a convex score on a convex set of dimension p the expected excess of the
    draw is at most p times the temperature: with Z(c) the integral of exp(-c excess),
    ``c^p Z(c)`` does not decrease in c, because shrinking the set towards the minimum
    keeps a convex excess below its chord; the logarithmic derivative of Z is minus the
    expected excess.
    """
    n_features = len(place.center)
    cover = None
    if isinstance(place.domain, Box):
        corner = place.domain.half_width / place.unit
        cover = -corner, corner
    point = curator.release(DistanceSum(n_features, cover), mechanism)
    temperature = curator.ledger.releases[-1].noise.scale
    excess = min(n_features * temperature / n_rows, 2.0)
    return place.locate(point), place.unit * excess


def descend_to_median(curator, mu, place, n_rows, adjacency, n_steps):
    """Release a point by subgradient steps with Gaussian noise.

    Parameters
    ----------
    curator : Curator
        Holds `PointRows`.
    mu : float
        Gaussian-DP price of all steps.
    place : Place
        Where the rows are.
    n_rows : int
        Number of rows.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    n_steps : int or None
        Number of steps; None to choose it.

    Returns
    -------
    location : ndarray of shape (n_features,)
        The geometric median.
    error_bound : float
        On the expected excess of the mean distance.
    n_steps : int
        Steps made.
    """
    n_features = len(place.center)
    plan = plan_subgradient(
        n_rows=n_rows, n_coefs=n_features, row_gradient_bound=1.0, radius=1.0,
        mu=mu, adjacency=adjacency, n_steps=n_steps,
    )  # fmt: skip
    step = GaussianMechanism(plan.mu_step)
    with blas_on_one_thread():
        point = subgradient_descent(
            lambda center: curator.release(DirectionSum(center), step), (n_features,), plan
        )
    return place.locate(point), place.unit * plan.error_bound / n_rows, plan.n_steps
