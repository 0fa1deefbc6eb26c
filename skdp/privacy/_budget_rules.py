# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How the prices of fits add up in a shared budget (Proposition 74)."""

import math
from fractions import Fraction
from typing import Any, NamedTuple

from skdp.privacy._accounting import (
    HAIR,
    check_choice,
    check_delta,
    check_epsilon,
    gdp_epsilon,
    gdp_mu,
    pure_epsilon,
    pure_mu,
)

#: epsilon or mu^2, and delta; exact
Pair = tuple[Fraction, Fraction]


class Terms(NamedTuple):
    """What a budget allows, and the rule by which prices add up."""

    epsilon: float
    delta: float
    composition: str
    adjacency: str
    unit: str

    @classmethod
    def checked(
        cls, epsilon: Any, delta: Any, composition: Any, adjacency: Any, unit: Any
    ) -> "Terms":
        """Return the terms, or raise a ValueError that names what is out of range."""
        check_choice("composition", composition, ("sum", "gaussian"))
        check_choice("adjacency", adjacency, ("replace-one", "zero-out"))
        check_choice("unit", unit, ("row", "client"))
        terms = cls(check_epsilon(epsilon), check_delta(delta), composition, adjacency, unit)
        if composition == "gaussian" and terms.delta == 0:
            raise ValueError(
                "delta must be greater than 0 for composition='gaussian'; got 0. Use 'sum'."
            )
        return terms

    @property
    def limits(self) -> Pair:
        """What costs may add up to."""
        if self.composition == "sum":
            return _decimal(self.epsilon), _decimal(self.delta)
        # fixed beforehand: a split that depends on what fits release is not covered; with the
        # hair, one Gaussian fit of (epsilon, delta / 2) fits
        mu = gdp_mu(self.epsilon, self.delta / 2) * HAIR
        return Fraction(mu) ** 2, _decimal(self.delta) / 2

    def cost(self, epsilon: float, delta: float, mu: float | None = None) -> Pair:
        """Return what a fit counts."""
        if self.composition == "sum":
            return _decimal(epsilon), _decimal(delta)
        if mu is not None:
            return Fraction(mu) ** 2, Fraction(0)
        return Fraction(pure_mu(epsilon)) ** 2, _decimal(delta)

    def spent(self, costs: Pair) -> tuple[float, float]:
        """Return the (epsilon, delta) of costs, rounded up."""
        if self.composition == "sum" or not costs[0]:
            return _up(costs[0]), _up(costs[1])
        mu = math.sqrt(costs[0]) * (1 + 1e-12)
        # within the limits it is no more than the total, however the curve rounds
        epsilon = min(gdp_epsilon(mu, self.delta / 2), self.epsilon)
        return epsilon, _up(costs[1] + _decimal(self.delta) / 2)

    def left(self, costs: Pair) -> tuple[float, float]:
        """Return the largest (epsilon, delta) without a mu that still fits, rounded down."""
        left, left_delta = (limit - cost for limit, cost in zip(self.limits, costs, strict=True))
        if self.composition == "sum":
            return _down(left), _down(left_delta)
        return pure_epsilon(math.sqrt(left) * (1 - 1e-12)), _down(left_delta)


def _decimal(value: float) -> Fraction:
    """Return the number that Python prints: ten times 0.1 is 1, and not a hair more.

    A float is less than 2^-53 of itself away, and whatever makes noise for an epsilon or a mu
    keeps a larger margin: Proposition 74.
    """
    return Fraction(repr(value))


def _up(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, math.inf) if _decimal(number) < value else number


def _down(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, -math.inf) if _decimal(number) > value else number
