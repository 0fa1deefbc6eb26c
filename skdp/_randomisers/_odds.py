# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Randomisers of two densities: the chance of the upper one, and what it costs.

Such a randomiser draws its report from a set of probability q under a reference law, with
probability p, and otherwise from the rest; the set depends on the data, q does not. Its budget
is ``logit p - logit q``.
"""

import math
from functools import cached_property

from scipy.special import expit, logit

from skdp._randomisers._cap import CAP_ACCURACY
from skdp.privacy._accounting import check_epsilon

#: the budgets for which parameters are sought
LEAST_EPSILON, MOST_EPSILON = 1e-6, 1e6

#: the largest number below 1
BELOW_ONE = 1.0 - 2.0**-53


class TwoDensities:
    """Base of parameters with a probability `p`, and `log_q`: the logarithm of the set's share."""

    def check_p(self, share):
        """Raise if `p` is not between the set's share, named in words, and 1."""
        if not math.exp(self.log_q) < self.p < 1.0:
            raise ValueError(
                f"p must be below 1 and above the {share}, {math.exp(self.log_q)!r}, "
                f"got {self.p!r}."
            )

    @cached_property
    def epsilon(self):
        """The budget of one report, rounded up by the accuracy of the arithmetic."""
        return budget_of(self.p, self.log_q)


def check_local_epsilon(epsilon):
    """Return a budget as a float.

    Parameters
    ----------
    epsilon : float
        Budget of one report, in nats.

    Returns
    -------
    epsilon : float

    Raises
    ------
    ValueError
        If it is not from 10^-6 to 10^6. Below, a report says nothing; above, everything.
    """
    epsilon = check_epsilon(epsilon)
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise ValueError(f"epsilon must be from 1e-6 to 1e6 for a local report, got {epsilon!r}.")
    return epsilon


def log_growth(epsilon):
    """Return ``log(exp(epsilon) - 1)`` without overflow."""
    return math.log(math.expm1(epsilon)) if epsilon < 40.0 else epsilon


def log_odds(log_q):
    """Return ``logit q`` for a probability of at most one half, given its logarithm."""
    return log_q - math.log1p(-math.exp(log_q))


def budget_of(p, log_q):
    """Return ``logit p - logit q``, rounded up by the accuracy of the arithmetic.

    Parameters
    ----------
    p : float
        Probability of the set that depends on the data.
    log_q : float
        Logarithm of its probability under the reference law, of relative accuracy
        `CAP_ACCURACY`, or of that absolute accuracy if it is above -1.

    Returns
    -------
    epsilon : float

    Notes
    -----
    As q is at most one half, its log-odds have at most twice the error of its logarithm.
    """
    odds_p, odds_q = float(logit(p)), log_odds(log_q)
    return odds_p - odds_q + 2.0 * CAP_ACCURACY * (1.0 + abs(odds_p) + abs(odds_q))


def largest_chance(epsilon, log_q):
    """Return the largest probability p that a budget allows, or one that is hardly smaller.

    Parameters
    ----------
    epsilon : float
        The budget.
    log_q : float
        As for `budget_of`.

    Returns
    -------
    p : float
        Below 1, and with ``budget_of(p, log_q) <= epsilon``.
    """
    spare = 4.0 * CAP_ACCURACY * (1.0 + abs(log_q))
    p = min(float(expit(epsilon - spare + log_odds(log_q))), BELOW_ONE)
    while budget_of(p, log_q) > epsilon:
        p = math.nextafter(p, 0.0)
    return p
