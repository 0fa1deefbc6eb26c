# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of rows in the unit ball: one plan for each mechanism."""

from dataclasses import dataclass

from skdp._domains import L2Ball, ball_constraint
from skdp._queries import RowSum
from skdp._solvers.mean_clipped import ClippedMean, plan_coinpress
from skdp._solvers.mean_shifted import ShiftedClippedMean
from skdp.privacy import GaussianMechanism

#: with too few rows for one, the one before it is taken
MEANS = ("gaussian", "clipped", "coinpress", "shifted-clipped")


@dataclass(frozen=True)
class GaussianMean:
    """One release of the sum of the rows.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price.
    """

    n_rows: int
    n_features: int
    mu: float

    #: mechanism that this is
    mechanism = "gaussian"
    #: number of releases
    n_releases = 1

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.

        Returns
        -------
        center : ndarray of shape (n_features,)
            In the unit ball.
        """
        query = RowSum(L2Ball(1.0), self.n_features)
        total = curator.release(query, GaussianMechanism(self.mu))
        return ball_constraint(total / self.n_rows, 1.0)


def plan_mean(mechanism, *, n_rows, n_features, mu, adjacency):
    """Plan a private mean of rows in the unit ball, from public numbers.

    Parameters
    ----------
    mechanism : {"gaussian", "clipped", "coinpress", "shifted-clipped"}
        One noisy sum; the mean of rows clipped around the origin to a released radius; the
        same around centres that are released one after another; the same around private
        medians of rotated coordinates.
    n_rows, n_features : int
        Shape of the data; public.
    mu : float
        Gaussian-DP price of everything the plan releases.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.

    Returns
    -------
    plan : GaussianMean, ClippedMean or ShiftedClippedMean
        A frozen plan with `run(curator)`, which returns the centre as an array of shape
        (n_features,) in the unit ball, `n_releases`, and `mechanism`, which is another one
        than was asked for where that needs more rows: "shifted-clipped" falls back to
        "coinpress", that to "clipped", and that to "gaussian". Rows may be sparse for
        "gaussian" and "clipped".

    Raises
    ------
    ValueError
        If there is no such mechanism.
    """
    if mechanism not in MEANS:
        raise ValueError(f"mechanism must be one of {MEANS}; got {mechanism!r}.")
    given = (n_rows, n_features, mu, adjacency)
    plans = [ClippedMean(*given), plan_coinpress(*given), ShiftedClippedMean(*given)]
    for plan in reversed(plans[: MEANS.index(mechanism)]):
        if plan.is_sound:
            return plan
    return GaussianMean(n_rows, n_features, mu)
