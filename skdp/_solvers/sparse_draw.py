# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A draw from a net of sparse coefficients: takes exponential time, and serves as a yardstick.

Algorithm 7 of Ghazi, Guzman, Kamath, Kumar and Manurangsi (2024), with what is upside down in
print turned round: probabilities are proportional to ``exp(-epsilon n F / (2 B))``, where B is
the range of a row's loss over the ball, and the step of the net grows with B.
"""

import math
from dataclasses import dataclass
from typing import Any

from skdp._queries import CandidateChoice
from skdp._sampling import sparse_net, sparse_net_step
from skdp.privacy import ExponentialMechanism


@dataclass(frozen=True)
class SparseDraw:
    """A plan to draw coefficients of a linear model from a net; purely private.

    Parameters
    ----------
    loss, row_norm, n_nonzeros : object, float, int
        Loss of `skdp._losses` with one output, and bounds on the norm of a row and on the
        number of its non-zeros, constant feature included.
    n_rows, n_coefs, radius : int, int, float
        Number of rows, and of coefficients, which are in the ball of this radius.
    epsilon, adjacency, failure : float, str, float
        Price, what is promised, and the probability that `excess_bound` may fail.
    most_points : float, default=20_000
        About as many points the net may have.
    """

    loss: Any
    row_norm: float
    n_nonzeros: int
    n_rows: int
    n_coefs: int
    radius: float
    epsilon: float
    adjacency: str
    failure: float
    most_points: float = 20_000

    @property
    def _reach(self):
        return self.loss.lipschitz * self.row_norm

    @property
    def tau(self):
        """Step of the net: the balanced one, or a coarser one that leaves fewer points."""
        tau = sparse_net_step(
            epsilon=self.epsilon, n_rows=self.n_rows, n_dims=self.n_coefs, radius=self.radius,
            lipschitz=self._reach, n_nonzeros=self.n_nonzeros,
            spread=2 * self._reach * self.radius, failure=self.failure,
        )  # fmt: skip
        while _most_points(self.n_coefs, self.radius / tau) > self.most_points:
            tau *= 1.05
        return tau

    @property
    def net(self):
        """The candidates."""
        return sparse_net(self.n_coefs, self.radius, self.tau)

    @property
    def excess_bound(self):
        """What the excess of the mean loss over the ball stays below, but for failures."""
        net = self.net
        spread = self.query(net).sensitivity(self.adjacency, self.n_rows).spread
        temperature = spread / self.epsilon / self.n_rows
        rounding = self._reach * math.sqrt(self.n_nonzeros) * self.tau
        return rounding + temperature * math.log(len(net) / self.failure)

    def query(self, net):
        """Return the choice among the points of the net."""
        return CandidateChoice(net, self.loss, self.row_norm)

    def run(self, curator):
        """Release coefficients of shape (n_coefs,).

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows`.
        """
        net = self.net
        chosen = curator.release(self.query(net), ExponentialMechanism(self.epsilon))
        return net[int(chosen[0])]


def _most_points(n_dims, ratio):
    """Return a bound on the number of lattice points in a ball: their cubes lie in a larger one."""
    if ratio < 1:
        return 1.0
    log_volume = n_dims / 2 * math.log(math.pi) - math.lgamma(n_dims / 2 + 1)
    return math.exp(min(log_volume + n_dims * math.log(ratio + math.sqrt(n_dims) / 2), 700.0))
