# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""In how many rows a feature is not zero."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._queries._sums import sum_over
from skdp._queries._touched_columns import entries
from skdp.privacy import Sensitivity


@dataclass(frozen=True)
class PresenceCount:
    """For every feature, the number of rows in which it is not zero.

    Parameters
    ----------
    n_features : int
        Dimension d.
    sparsity : int
        No row has more non-zero entries.
    """

    n_features: int
    sparsity: int

    #: what the statistic is
    name = "number of rows in which a feature is not zero"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities.

        Proof. A row contributes an indicator of at most s features: l1 norm s, l2 norm
        sqrt(s). Zero-out removes one. Under replace-one the difference of two has entries -1,
        0 and 1, and at most 2 s of them, or d, are not 0.
        """
        features = min(self.sparsity, self.n_features)
        theorem = "a row has few features"
        if adjacency == "replace-one":
            features = min(2 * features, self.n_features)
            theorem = "two rows have few features that are not shared"
        return Sensitivity(float(features), math.sqrt(features), float(n_rows), theorem)

    def partial(self, chunk):
        """Return the counts over a chunk's rows."""
        return np.bincount(entries(chunk)[0], minlength=self.size).astype(np.float64)

    def evaluate(self, rows):
        """Return the counts over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)
