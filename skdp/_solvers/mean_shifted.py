# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shifted clipped mean: private medians of rotated coordinates, then a clipped mean."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._domains import ball_constraint
from skdp._queries import RotatedSideSum
from skdp._queries._rotated_sides import rotate_back
from skdp._solvers.mean_clipped import ClippedMean
from skdp.privacy import GaussianMechanism

# part of mu^2 that the medians get
_SHARE = 0.25
# chance that a rotated coordinate of a row leaves its range, over random signs
_LEAVES = 1e-3


@dataclass(frozen=True)
class ShiftedClippedMean:
    """Coordinate-wise medians after a rotation, and the mean of rows clipped around them.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price of everything.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.

    Notes
    -----
    Huang, Liang and Yi (2021), with one fixed rotation, noisy bisection of all coordinates
    at once, and a radius on a geometric grid.
    """

    n_rows: int
    n_features: int
    mu: float
    adjacency: str

    #: mechanism that this is
    mechanism = "shifted-clipped"

    @property
    def n_halvings(self):
        """Counts for the medians: the cells shrink to their range over 65536 n."""
        return 16 + math.ceil(math.log2(self.n_rows))

    @property
    def clipped(self):
        """The plan of the clipped mean around the medians."""
        mu = self.mu * math.sqrt(1 - _SHARE)
        return ClippedMean(self.n_rows, self.n_features, mu, self.adjacency)

    @property
    def n_releases(self):
        """Number of releases."""
        return self.n_halvings + self.clipped.n_releases

    @property
    def rank_noise(self):
        """Standard deviation of the noise of a count, the same for every coordinate."""
        reach = 0.5 if self.adjacency == "zero-out" else 1.0
        return reach * math.sqrt(self.n_features * self.n_halvings / _SHARE) / self.mu

    @property
    def range(self):
        """Largest magnitude of a rotated coordinate that is reckoned with.

        Over random signs a rotated coordinate of a row of the unit ball is a weighted sum
        of signs whose squared weights sum to 2/d or less; Hoeffding's inequality for all
        coordinates of all rows.
        """
        d, coordinates = self.n_features, 2 * self.n_rows * self.n_features
        return min(1.0, 2 * math.sqrt(math.log(coordinates / _LEAVES) / d))

    @property
    def is_sound(self):
        """Whether there are rows enough for medians, and for a radius."""
        return self.rank_noise <= self.n_rows / 8 and self.clipped.is_sound

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds dense `LinearRows` of the unit ball without an intercept.

        Returns
        -------
        center : ndarray of shape (n_features,)
            In the unit ball.
        """
        price = GaussianMechanism(self.mu * math.sqrt(_SHARE / self.n_halvings))
        medians, width = np.zeros(self.n_features), self.range
        for _ in range(self.n_halvings):
            width /= 2
            above = curator.release(RotatedSideSum(medians), price)
            medians = medians + np.where(above > 0, width, -width)
        return self.clipped.run(curator, ball_constraint(rotate_back(medians), 1.0))
