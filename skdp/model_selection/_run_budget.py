# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a private step of one run is given as `budget`: a limit, and a witness."""

import math
from dataclasses import dataclass

from skdp.exceptions import BudgetError
from skdp.privacy._accounting import pure_mu


@dataclass(frozen=True)
class Charge:
    """What one private step charges, as it says itself; or a limit on it.

    Parameters
    ----------
    epsilon, delta : float
        The price of the fit.
    mu : float or None
        Its Gaussian-DP parameter; that of a purely private fit follows from epsilon.
    adjacency, unit : str
        What is protected.
    """

    epsilon: float
    delta: float
    mu: float | None
    adjacency: str
    unit: str


class Enough(Exception):
    """Ends a fit to null rows: all private steps have said what they charge."""


class RunBudget:
    """The budget of one private step in one fit; its copies are itself.

    Parameters
    ----------
    limit : Charge or None
        What the step may charge, once; None lets it charge anything, to learn what it is.
    together : list of RunBudget, default=None
        Budgets of all private steps of a fit that is to end by `Enough` as soon as every one
        of them was charged; None for a fit that goes on.
    """

    def __init__(self, limit, together=None):
        self._limit, self._together, self.charged = limit, together, None

    def check(self, epsilon):
        """Accept a fit that is to begin; `charge` looks at all of it."""

    def charge(self, epsilon, delta, *, mu, adjacency, unit, label):
        """Take note of a charge, or raise if the plan has no room for it.

        Parameters
        ----------
        epsilon, delta : float
            The price of the fit.
        mu : float or None
            Its Gaussian-DP parameter, if it has one.
        adjacency, unit, label : str
            What is protected, and who asks.

        Raises
        ------
        BudgetError
            If it is more than the limit, or the second charge.
        """
        if mu is None and delta == 0:
            mu = pure_mu(epsilon)
        asked = Charge(float(epsilon), float(delta), mu, adjacency, unit)
        if self.charged is not None:
            raise BudgetError(f"{label} charges twice in one fit; a run has room for one charge.")
        if self._limit is not None and not _within(asked, self._limit):
            raise BudgetError(f"{label} charges more than its share of the run; no row was read.")
        self.charged = asked
        if self._together and all(budget.charged for budget in self._together):
            raise Enough

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            "the budget of a run stays in one process: set n_jobs=None in the steps, and let the "
            "search have the processes."
        )


def _within(asked, limit):
    """Return whether a charge keeps to a limit; NaN never does."""
    if (asked.adjacency, asked.unit) != (limit.adjacency, limit.unit):
        return False
    if limit.mu is not None:
        return asked.mu is not None and asked.mu <= limit.mu
    return asked.epsilon <= limit.epsilon and asked.delta <= limit.delta


def total_of(charges):
    """Return (epsilon, delta, mu) of charges on the same rows; mu is None if one has none."""
    epsilon = math.fsum(charge.epsilon for charge in charges)
    delta = math.fsum(charge.delta for charge in charges)
    if any(charge.mu is None for charge in charges):
        return epsilon, delta, None
    return epsilon, delta, math.hypot(*(charge.mu for charge in charges))
