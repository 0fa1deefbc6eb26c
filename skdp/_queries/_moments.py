# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""First and second moments of all features, in one release."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._domains import Box
from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity

#: weight of the squares: the largest at which they are free under replace-one
WEIGHT = math.sqrt((11 + 5 * math.sqrt(5)) / 8)
#: what is subtracted from a square, so that a square of 0 is as long as one of 1
OFFSET = (1 + 1 / WEIGHT**2) / 2


@dataclass(frozen=True)
class MomentSum:
    """Sums over rows of ``u_j`` and of ``w (u_j^2 - b)``, for every feature j.

    u is the row, clipped into a public box and mapped to [-1, 1] per feature; w is `WEIGHT`,
    b is `OFFSET`.

    Parameters
    ----------
    box : Box
        Public bounds.

    Notes
    -----
    The rows are `FeatureRows`. A NaN contributes 0 to both sums.
    """

    box: Box

    name = "sums of features in the box [-1, 1]^d and of their squares"

    @property
    def size(self):
        """Number of coordinates: d sums, then d sums of squares."""
        return 2 * len(self.box.lower)

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: w b sqrt(d), about 1.133 sqrt(d), or 2 sqrt(d).

        Proof, for one feature; d of them are sqrt(d) times as long.

        Zero-out removes (u, w (u^2 - b)). With s = u^2 its squared length is
        ``s + w^2 (s - b)^2``, convex in s, so largest at s = 0 or s = 1; b makes both
        ``(w b)^2``, and w b = (w + 1/w) / 2.

        Replace-one changes (u, w u^2) to (v, w v^2). With p = |u - v| and
        q = |u + v| <= 2 - p the squared distance is at most ``p^2 (1 + w^2 (2 - p)^2)``.
        This is at most 4 for ``w^2 <= (2 + p) / (p^2 (2 - p))``, whose minimum, at
        p = sqrt(5) - 1, is (11 + 5 sqrt(5)) / 8: that is w^2. It is 4 at p = 2. A row
        that becomes null counts as removed, and w b < 2.
        """
        root = math.sqrt(self.size // 2)
        reach = WEIGHT * OFFSET
        if adjacency == "zero-out":
            l2, theorem = reach * root, "a feature and its square: at most w b"
        else:
            l2, theorem = 2 * root, "a feature and its square: diameter 2, as the feature alone"
        return Sensitivity(l1=math.inf, l2=l2, bound=reach * n_rows, theorem=theorem)

    def partial(self, chunk):
        """Return the sums over a chunk's rows."""
        return chunk.sums(self._moments)

    def _moments(self, values, columns):
        lower, upper = np.asarray(self.box.lower), np.asarray(self.box.upper)
        unit = np.clip(values, lower[columns], upper[columns])
        unit -= self.box.center[columns]
        # a box of the smallest floats: the quotient is clipped
        with np.errstate(over="ignore", under="ignore"):
            unit /= self.box.half_width[columns]
            np.clip(unit, -1.0, 1.0, out=unit)
            square = WEIGHT * (unit * unit - OFFSET)
        missing = np.isnan(unit)
        unit[missing] = square[missing] = 0.0
        return [unit, square]

    def evaluate(self, rows):
        """Return both sums over all rows, an array of shape (2 n_features,)."""
        return sum_over(rows, self.partial, self.size)

    def moments(self, total, n_rows, scale):
        """Return means and variances in the units of the box, from released sums.

        Parameters
        ----------
        total : ndarray of shape (2 * n_features,)
            What was released.
        n_rows : int
            Number of rows.
        scale : float
            Standard deviation of the noise of a sum.

        Returns
        -------
        mean, variance : ndarray of shape (n_features,)
            For u in [-1, 1]. The variance is held above twice the standard deviation of its
            noise (and below 1): of smaller ones nothing is known.
        """
        first, second = np.split(total / n_rows, 2)
        noise = scale / n_rows
        # the square of a noisy mean is too large by the noise's variance
        variance = second / WEIGHT + OFFSET - first * first + noise * noise
        floor = min(2 * noise / WEIGHT, 1.0)
        return np.clip(first, -1.0, 1.0), np.clip(variance, floor, 1.0)
