# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sum of distances to the rows, as the score of the exponential mechanism."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._sampling import sample_piecewise_exponential, sample_tangent_box
from skdp.privacy import Sensitivity

# points times rows that are looked at together: the arrays stay in cache
_PAIRS = 1 << 15


def distances_and_subgradients(points, columns):
    """Return the sum of distances from points to rows, and a subgradient of it at each point.

    Parameters
    ----------
    points : ndarray of shape (m, n_features)
        Where.
    columns : ndarray of shape (n_features, n_rows)
        Rows, transposed.

    Returns
    -------
    value : ndarray of shape (m,)
        Sums of Euclidean distances.
    slope : ndarray of shape (m, n_features)
        Subgradients; a row at the point itself contributes zero.
    """
    value, slope = np.zeros(len(points)), np.zeros(points.shape)
    step = max(1, _PAIRS // len(points))
    for start in range(0, columns.shape[1], step):
        gaps = points.T[:, :, None] - columns[:, None, start : start + step]
        distance = np.sqrt(np.einsum("kij,kij->ij", gaps, gaps))
        value += distance.sum(axis=1)
        # smaller distances are not exact: the bound makes their directions short, not long
        weight = 1.0 / np.maximum(distance, 1e-140)
        slope += np.einsum("ij,kij->ik", weight, gaps)
    return value, slope


@dataclass(frozen=True, eq=False)
class DistanceSum:
    """Point of the unit ball, drawn by its sum of distances to the rows.

    Parameters
    ----------
    n_features : int
        Dimension.
    cover : tuple of (ndarray, ndarray), default=None
        Public box, lower and upper ends, that the point is also restricted to.
    """

    n_features: int
    cover: Any = None

    #: the law is exact for real numbers, and floats only come close
    idealised = True

    @property
    def name(self):
        """What the statistic is."""
        return "point drawn by its sum of distances to the rows"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change: 2 (zero-out) or 4 (replace-one).

        Proof. The score at t is the sum of ``|t - d|``. Zero-out removes one term, which
        lies in [0, 2] for t and d in the unit ball. Replace-one changes the score by
        ``|t - d'| - |t - d|``, within ``|d - d'| <= 2`` of zero: an interval of length 4.
        Both are attained by rows on the sphere: at t = d and t = -d, and d' = -d.
        """
        if adjacency == "zero-out":
            spread, theorem = 2.0, "a distance in the unit ball is in [0, 2]"
        else:
            spread, theorem = 4.0, "two distances from a point differ by <= 2 either way"
        return Sensitivity(math.inf, math.inf, bound=1.0, theorem=theorem, spread=spread)

    def draw(self, rows, noise, source):
        """Return a point with density proportional to exp(-score / noise.scale)."""
        columns = rows.columns()
        if self.n_features == 1:
            return np.array([self._draw_number(columns[0], noise, source)])
        return sample_tangent_box(
            lambda points: distances_and_subgradients(points, columns),
            self.n_features,
            1.0 / noise.scale,
            [(np.zeros(self.n_features), 1.0)],
            source,
            cover=self.cover,
        )

    def _draw_number(self, values, noise, source):
        """Return a draw in one dimension, where the score is piecewise linear."""
        low, high = (-1.0, 1.0) if self.cover is None else (float(end[0]) for end in self.cover)
        knots = np.concatenate([[low], np.sort(np.clip(values, low, high)), [high]])
        # k rows below pull one way, the others the other way
        slopes = 2.0 * np.arange(len(values) + 1) - len(values)
        return sample_piecewise_exponential(knots, slopes, 1.0 / noise.scale, source)
