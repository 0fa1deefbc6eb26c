# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means of clipped rows, whose radius is released too, around a centre that may move."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._domains import ball_constraint
from skdp._queries import ClippedRowSum
from skdp._solvers.radius_search import RadiusSearch
from skdp.privacy import GaussianMechanism

# Shares of mu^2, relative to that of the last sum: the radius and the centre of a stage,
# and the last radius, whose margin should be no more rows than the target. Chosen on data.
_STAGE_RADIUS, _STAGE_CENTER = 1 / 8, 1 / 16
_LAST_RADIUS = (1 / 32, 1 / 2)
# A stage divides the distance of the centre from the rows by 1 / contraction; together
# they shall divide it by a million, and never are there more than four of them.
_RANGE, _MOST_STAGES = 1e6, 4


@dataclass(frozen=True)
class ClippedMean:
    """A radius that leaves out few rows, and the mean of the rows clipped to it.

    Before that come stages that move the centre: each releases a radius around the
    centre, and the mean of the rows clipped to it, which is the new centre.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price of everything.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    n_stages : int, default=0
        Stages before the last radius and sum.

    Notes
    -----
    The last radius leaves out about ``a sqrt(n_features) / mu`` rows, a the sensitivity in
    radii. There the noise, which grows with the radius at the rate of its expected norm,
    and the worst bias of clipping, which falls at the rate of the rows left out, balance.
    """

    n_rows: int
    n_features: int
    mu: float
    adjacency: str
    n_stages: int = 0

    @property
    def mechanism(self):
        """Mechanism that this is."""
        return "coinpress" if self.n_stages else "clipped"

    @property
    def shares(self):
        """Prices of a stage's radius and centre, and of the last radius and sum."""
        last = float(np.clip(16 / self.n_features, *_LAST_RADIUS))
        weights = np.array([_STAGE_RADIUS, _STAGE_CENTER, last, 1.0])
        total = self.n_stages * weights[:2].sum() + weights[2:].sum()
        return tuple((self.mu * np.sqrt(weights / total)).tolist())

    def _noise(self, mu):
        """Return the expected norm of a sum's noise, in clipping radii."""
        reach = 1.0 if self.adjacency == "zero-out" else 2.0
        return reach * math.sqrt(self.n_features) / mu

    @property
    def contraction(self):
        """Norm of the noise in a stage's centre, in radii."""
        return self._noise(self.shares[1]) / self.n_rows

    @property
    def searches(self):
        """How the radii of the stages and the last radius are found."""
        stage, _, last, total = self.shares
        tail = min(self._noise(total), self.n_rows / 2)
        return (
            RadiusSearch(self.n_rows, stage, self.adjacency),
            RadiusSearch(self.n_rows, last, self.adjacency, tail),
        )

    @property
    def n_releases(self):
        """Number of releases."""
        return (self.n_stages + 1) * (RadiusSearch.n_releases + 1)

    @property
    def is_sound(self):
        """Whether there are rows enough: noise would decide the radii or centres otherwise."""
        stage, last = self.searches
        moves = stage.margin <= self.n_rows / 2 and self.contraction <= 0.5
        return last.margin <= self.n_rows / 2 and (moves or not self.n_stages)

    def run(self, curator, center=None):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` of the unit ball without an intercept; sparse rows only if
            there is neither a centre nor a stage.
        center : ndarray of shape (n_features,), default=None
            Where to start, a released or public point of the unit ball; None is the origin.

        Returns
        -------
        center : ndarray of shape (n_features,)
            In the unit ball.
        """
        stage, last = self.searches
        for _ in range(self.n_stages):
            center = self._moved(curator, center, stage.run(curator, center), self.shares[1])
        return self._moved(curator, center, last.run(curator, center), self.shares[3])

    def _moved(self, curator, center, radius, mu):
        """Release the mean of the rows clipped to a radius around a centre."""
        query = ClippedRowSum(self.n_features, radius, center)
        shift = curator.release(query, GaussianMechanism(mu)) / self.n_rows
        return ball_constraint(shift if center is None else center + shift, 1.0)


def plan_coinpress(n_rows, n_features, mu, adjacency):
    """Return the plan of a clipped mean with as many stages as pay, at most four.

    Parameters
    ----------
    n_rows, n_features, mu, adjacency : int, int, float, str
        As in `ClippedMean`.

    Returns
    -------
    plan : ClippedMean
        With at least one stage.
    """
    most = ClippedMean(n_rows, n_features, mu, adjacency, _MOST_STAGES)
    gain = max(-math.log(most.contraction), 1e-3)
    n_stages = min(_MOST_STAGES, math.ceil(math.log(_RANGE) / gain))
    return ClippedMean(n_rows, n_features, mu, adjacency, n_stages)
