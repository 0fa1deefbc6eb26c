# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What all releases of a curator have in common, and what one of them states and costs."""

import operator
from dataclasses import dataclass
from typing import Any

from skdp.exceptions import BudgetError
from skdp.privacy._accounting import check_choice
from skdp.privacy._mechanisms import Noise
from skdp.privacy._release import ADJACENCIES, Release


@dataclass(frozen=True)
class Terms:
    """What is promised, to whom, and with which source of noise.

    Parameters
    ----------
    n_rows, adjacency, unit : int, str, str
        As for a `Curator`.
    seeded, origin : bool, str
        Of the source of noise.
    """

    n_rows: int
    adjacency: str
    unit: str
    seeded: bool
    origin: str

    def __post_init__(self) -> None:
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("unit", self.unit, ("row", "client"))

    def part(self, rows: tuple[int, int] | None) -> tuple[int, int]:
        """Return the first of some rows and the one after the last; None is all of them."""
        start, stop = map(operator.index, (0, self.n_rows) if rows is None else rows)
        if not 0 <= start < stop <= self.n_rows:
            raise ValueError(f"rows must be a part of {self.n_rows} rows; got {rows!r}.")
        return start, stop

    def calibrated(self, query: Any, mechanism: Any, n_rows: int) -> tuple[Any, Any]:
        """Return what the query states, and the noise that the price buys for it."""
        sampling = getattr(mechanism, "sampling", None)
        adjacency = self.adjacency
        if sampling is not None:
            if sampling.n_rows != self.n_rows:
                raise ValueError("batches must be drawn from the rows that there are.")
            adjacency = sampling.adjacency(adjacency)
        facts = query.sensitivity(adjacency, n_rows)
        noise = mechanism.calibrate(facts, query.size)
        if self.adjacency == "local" and getattr(noise, "law", None) != "local":
            raise ValueError("rows only report on their own here, nothing else is released.")
        return facts, noise

    def same(self, query: Any, facts: Any, entry: Release, part: tuple[int, int]) -> None:
        """Raise if a query is not of the kind that was paid for."""
        sampling = entry.noise.sampling
        relation = sampling.adjacency(self.adjacency) if sampling else self.adjacency
        now = query.sensitivity(relation, part[1] - part[0])
        kind = (query.name, query.size, self.numerics(query), now)
        if kind != (entry.query, entry.size, entry.numerics, facts):
            raise BudgetError(f"{query.name!r} is not the release that was paid for.")

    def entry(
        self, query: Any, rows: tuple[int, int] | None, part: tuple[str, Noise, float, str]
    ) -> Release:
        """Return the line of the ledger for (name, noise, stated sensitivity, theorem)."""
        name, noise, stated, theorem = part
        return Release(
            query=name,
            size=query.size,
            adjacency="local" if noise.law == "local" else self.adjacency,
            stated_sensitivity=stated,
            theorem=theorem,
            noise=noise,
            numerics=self.numerics(query),
            seeded=self.seeded,
            rows=None if rows is None else self.part(rows),
            unit=self.unit,
        )

    def numerics(self, query: Any) -> str:
        """Say how the noise of a query is made."""
        idealised = getattr(query, "idealised", False)
        return ("idealised, " if idealised else "exact on the grid, ") + self.origin


def about(query: Any, facts: Any, noise: Noise) -> tuple[str, Noise, float, str]:
    """Return name, noise, sensitivity in the norm of the law, and theorem of a release."""
    stated: float = facts.l2
    if noise.law in ("laplace", "exponential", "local"):
        stated = facts.l1 if noise.law == "laplace" else facts.spread
    return query.name, noise, stated, facts.theorem
