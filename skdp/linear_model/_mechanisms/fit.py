# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the plans of all mechanisms have in common."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fit:
    """A plan: public numbers only; a subclass adds ``n_iter`` and ``run(curator)``.

    Parameters
    ----------
    problem : Problem
        Public facts.
    """

    problem: Any

    @property
    def delta(self):
        """The delta that may be spent."""
        return self.problem.delta


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
