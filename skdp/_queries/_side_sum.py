# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""On which side of a threshold the rows lie, for all features at once."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity


@dataclass(frozen=True)
class SideSum:
    """Sum over rows of 1/2 where a value lies above its threshold, and -1/2 elsewhere.

    Parameters
    ----------
    thresholds : ndarray of shape (n_features,)
        What values are compared with.
    center : ndarray of shape (n_features,), default=None
        If given, distances ``|x_j - center_j|`` are compared instead of values.

    Notes
    -----
    The rows are `FeatureRows`, in no ball or box: a comparison bounds what a value can do.
    A NaN contributes 0. With m values that are numbers, the sum is the number of values
    above the threshold minus m/2.
    """

    thresholds: Any
    center: Any = None

    @property
    def name(self):
        """What the statistic is, the same for all thresholds."""
        what = "features" if self.center is None else "distances of features to a centre"
        return f"{what} above thresholds minus half of the rows"

    @property
    def size(self):
        """Number of coordinates."""
        return len(self.thresholds)

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities: d/2 and sqrt(d)/2, or twice that.

        Proof. A row contributes a vector with entries 1/2, -1/2 or 0, of l1 norm at most d/2
        and l2 norm at most sqrt(d)/2. Zero-out removes one. Under replace-one the difference
        of two is at most twice as long, attained if every value changes sides. Sums of
        halves are exact in floating point.
        """
        l1, l2 = self.size / 2, math.sqrt(self.size) / 2
        theorem = "a row adds 1/2 or -1/2 to each of d features"
        if adjacency != "zero-out":
            l1, l2, theorem = 2 * l1, 2 * l2, "a row moves each of d features by <= 1"
        return Sensitivity(l1=l1, l2=l2, bound=n_rows / 2, theorem=theorem)

    def partial(self, chunk):
        """Return the sum over a chunk's rows."""
        # a count of whole and half numbers: exact in whatever order
        return chunk.sums(self._counted) - chunk.X.shape[0] / 2

    def _counted(self, values, columns):
        """Return 1 for a value above its threshold, 1/2 for a NaN and 0 otherwise."""
        if self.center is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                values = values - self.center[columns]
                np.abs(values, out=values)
        above, missing = values > self.thresholds[columns], np.isnan(values)
        # one comparison and not two: this is asked for dozens of thresholds
        return [above + 0.5 * missing if missing.any() else above]

    def evaluate(self, rows):
        """Return the sum over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)
