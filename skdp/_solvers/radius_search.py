# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A radius that leaves out few rows, found by noisy bisection."""

import math
from dataclasses import dataclass

from skdp._queries import FarCount
from skdp.privacy import GaussianMechanism

# 2^7 radii in steps of sqrt(2): seven counts, and sixty-three octaves
_STEPS = 7
_RATIO = math.sqrt(2.0)
# a margin of 3.5 standard deviations: one count in 4000 is too high by more
_MARGIN = 3.5


@dataclass(frozen=True)
class RadiusSearch:
    """Bisection on a geometric grid of radii, with noisy counts of the rows beyond.

    Parameters
    ----------
    n_rows : int
        Number of rows; public.
    mu : float
        Gaussian-DP price of all counts together.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    tail : float, default=0.0
        How many rows may lie beyond; at least the margin of the counts.
    """

    n_rows: int
    mu: float
    adjacency: str
    tail: float = 0.0

    #: number of releases
    n_releases = _STEPS

    @property
    def margin(self):
        """Three and a half standard deviations of a count."""
        reach = 0.5 if self.adjacency == "zero-out" else 1.0
        return _MARGIN * reach * math.sqrt(_STEPS) / self.mu

    def run(self, curator, center=None):
        """Release a radius.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` of the unit ball without an intercept.
        center : ndarray of shape (n_features,), default=None
            Point of the unit ball; None is the origin.

        Returns
        -------
        radius : float
            On the grid, at most 1 around the origin and 2 around a centre.

        Notes
        -----
        Let no row be null, and let no count be off by more than the margin m. Then at most
        ``max(tail, m) + m`` rows lie beyond the radius, and either it is the smallest of
        the grid or more than ``max(tail, m) - m`` rows lie beyond ``radius / sqrt(2)``:
        it is at most sqrt(2) times the largest distance.
        """
        largest = 1.0 if center is None else 2.0
        price = GaussianMechanism(self.mu / math.sqrt(_STEPS))
        most = max(self.tail, self.margin)
        # few enough rows beyond radius `reached`, too many beyond radius `missed`
        reached, missed = 0, 2**_STEPS
        for _ in range(_STEPS):
            middle = (reached + missed) // 2
            count = FarCount(largest / _RATIO**middle, center)
            beyond = self.n_rows / 2 + curator.release(count, price)[0]
            if beyond <= most:
                reached = middle
            else:
                missed = middle
        return largest / _RATIO**reached
