# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the winner of a secret number of runs costs (Proposition 71), rounded up.

A run is a draw from one law, with a score in what it releases. If q(y) is the chance that a
run is no better than y, the winner has the density ``phi'(q(y))`` against a run, phi being
the generating function of the number K of runs. Between neighbours that factor changes by
e^c at most, and it is at most E[K]: so the winner is (epsilon, E[K] d(epsilon - c))-DP, where
d(x) is the smallest delta with which one run is (x, delta)-DP.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdp.privacy._accounting import first, gdp_delta, gdp_epsilon
from skdp.privacy._repetitions import Repetitions

# above the rounding errors of a few operations
_UP = 1 + 1e-14
# below, differences cancel in what dp_accounting computes
_SMALLEST = 1e-3


@dataclass(frozen=True)
class RunCost:
    """What one run costs: a Gaussian-DP parameter, or a pair.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter; 0 for a run with a pair.
    epsilon, delta : float
        The pair, if mu is 0.
    """

    mu: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def delta_at(self, epsilon: float) -> float:
        """Return the least delta at a given epsilon >= 0, for the worst such run, rounded up.

        The worst for a pair is randomised response that tells the truth with probability
        `delta` (Kairouz, Oh and Viswanath 2015).
        """
        if self.mu:
            return gdp_delta(self.mu, epsilon)
        gap = min(0.0, epsilon - self.epsilon)
        wider = (1 - self.delta) * -math.expm1(gap) / (1 + math.exp(-self.epsilon))
        return (self.delta + wider) * (_UP if gap else 1.0)

    def epsilon_at(self, delta: float) -> float:
        """Return an epsilon at a given delta, rounded up; infinite if there is none."""
        if self.mu:
            return gdp_epsilon(self.mu, delta)
        return self.epsilon if self.delta <= delta else math.inf


def loss_of_choice(repetitions: Repetitions, cost: RunCost) -> float:
    """Return c: what not knowing how many runs the winner won against adds, rounded up.

    Parameters
    ----------
    repetitions, cost : Repetitions, RunCost
        How many runs, and what one costs.

    Returns
    -------
    loss : float
        In nats. At most ``(1 + eta) epsilon`` for a run that is epsilon-DP.
    """
    if repetitions.law == "poisson":
        return repetitions.mean * cost.delta_at(0.0) * _UP
    if repetitions.gamma == 1:
        return 0.0
    odds = repetitions.gamma / (1 - repetitions.gamma) / _UP
    # every root from above is a bound, the least is the best
    loss = first(lambda x: cost.delta_at(x) <= odds * math.expm1(x) / _UP, 1e-14)
    return (1 + repetitions.eta) * loss * _UP


def steepness(repetitions: Repetitions) -> float:
    """Return how fast the logarithm of phi' grows at its end: what one unit of delta costs.

    `loss_of_choice` of runs that are (0, delta)-DP is this times delta at most.
    """
    if repetitions.law == "poisson":
        return repetitions.mean
    return (1 + repetitions.eta) * (1 - repetitions.gamma) / repetitions.gamma


def winner_epsilon(repetitions: Repetitions, cost: RunCost, delta: float) -> float:
    """Return the epsilon of the winner at `delta`, by Proposition 71, rounded up.

    Parameters
    ----------
    repetitions, cost : Repetitions, RunCost
        How many runs, and what one costs.
    delta : float
        In [0, 1).

    Returns
    -------
    epsilon : float
        In nats; infinite if no epsilon will do.

    Examples
    --------
    >>> runs = Repetitions("geometric", expected=20)
    >>> winner_epsilon(runs, RunCost(epsilon=0.1), delta=0.0) < 3 * 0.1
    True
    """
    epsilon = cost.epsilon_at(delta / (repetitions.mean * _UP))
    return (loss_of_choice(repetitions, cost) + epsilon) * _UP


@lru_cache(maxsize=1024)
def winner_epsilon_renyi(repetitions: Repetitions, mu: float, delta: float) -> float:
    """Return the epsilon of the winner by Renyi divergences (Papernot and Steinke 2022).

    Parameters
    ----------
    repetitions, mu, delta : Repetitions, float, float
        How many runs, their Gaussian-DP parameter, and delta in (0, 1).

    Returns
    -------
    epsilon : float
        In nats, as dp_accounting finds it; infinite for mu below 1e-3. Better than
        `winner_epsilon` for the Poisson law with a large mean.
    """
    if mu < _SMALLEST:
        return math.inf
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    run = dp_accounting.GaussianDpEvent(1 / mu)
    event = dp_accounting.dp_event.RepeatAndSelectDpEvent(run, repetitions.mean, repetitions.eta)
    # orders of which nothing is left over- and underflow on the way
    with np.errstate(all="ignore"):
        return float(RdpAccountant().compose(event).get_epsilon(delta)) * (1 + 1e-9)
