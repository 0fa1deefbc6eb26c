# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the plans of all mechanisms have in common."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skdp._solvers import mu_of_all

#: coefficients are zero to the last digit under it
LARGEST_L2 = 1e150
#: longer noise, of units that fit no data, is cut: squares of norms are finite
LARGEST_COEF = 1e100

# a Hessian of this many coefficients is cheaper than the steps that it saves
NEWTON_LIMIT = 300


@dataclass(frozen=True)
class Fit:
    """A plan: public numbers only; a subclass adds ``n_iter`` and ``run(curator)``.

    Parameters
    ----------
    problem : Problem
        Public facts.
    """

    problem: Any
    #: whether all releases of the plan have Gaussian noise, and read rows that are fixed
    full_batches: ClassVar[bool] = False
    #: whether rows may be read chunk by chunk, in the order in which they come
    streams: ClassVar[bool] = True

    @property
    def delta(self):
        """The delta that may be spent."""
        return self.problem.delta

    @property
    def total_mu(self):
        """The Gaussian-DP parameter of the whole fit; None if it has none."""
        if not (self.full_batches and self.delta):
            return None
        priced = tuple(epsilon for epsilon, _, _ in self.problem.priced)
        return mu_of_all(self.problem.epsilon, self.problem.delta, priced)

    def rescaled(self, radius):
        """Return the plan for rows in units of a radius that was released: the penalty moves.

        Only plans with `steps` are asked for one.
        """
        if radius == 1 or self.steps.l2 == 0:
            return self
        l2 = min(self.steps.l2 / radius / radius, LARGEST_L2)
        return replace(self, steps=replace(self.steps, l2=l2))

# a Hessian of this many coefficients is cheaper than the steps that it saves
NEWTON_LIMIT = 300


@dataclass(frozen=True)
class RidgeFit(Fit):
    """A plan to release one minimiser of a penalised loss.

    Parameters
    ----------
    problem : Problem
        Public facts.
    solver : str
        Method for the minimiser.
    ridge : float
        Strength of the penalty next to the sum of losses.
    """

    solver: str
    ridge: float
    n_iter: int = 1
