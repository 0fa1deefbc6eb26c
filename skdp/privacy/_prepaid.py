# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Releases that were paid for beforehand."""

from dataclasses import dataclass
from typing import Any

from skdp.exceptions import BudgetError
from skdp.privacy._release import Release


class Prepaid:
    """The right to a number of releases of one kind, all of them charged beforehand.

    Only `Curator.prepay` makes one that its curator honours.
    """


@dataclass
class Account:
    """What a curator remembers of a `Prepaid`.

    Parameters
    ----------
    facts, entry : object, Release
        What the query stated when it was paid for, and one release of the kind.
    left : int
        Releases that may still be made; for reports in turn, passes over the rows.
    behind : tuple of (object, Release) or None
        The same of the reports that are summed.
    part : tuple of (int, int)
        Rows that report in turn.
    """

    facts: Any
    entry: Release
    left: int
    behind: tuple[Any, Release] | None
    part: tuple[int, int]

    def __post_init__(self) -> None:
        self._next = self.part[0]

    def take(self, rows: tuple[int, int] | None) -> tuple[int, int] | None:
        """Count one release, or raise; return the rows that it may read, None for all."""
        if self.left < 1:
            raise BudgetError("no release of this kind is left that was paid for.")
        noise = self.entry.noise
        if noise.law != "local" or noise.by_chance:
            if rows is not None:
                raise ValueError("what was paid for beforehand reads all rows; rows must be None.")
            self.left -= 1
            return None
        start, stop = self.part if rows is None else rows
        # no row is passed over or comes twice: that is what makes all of them pay once
        if not self._next == start < stop <= self.part[1]:
            raise ValueError(
                f"rows report in turn: rows must begin at {self._next} and end at "
                f"{self.part[1]} at most; got {rows!r}."
            )
        self._next = stop
        if stop == self.part[1]:
            self._next, self.left = self.part[0], self.left - 1
        return start, stop
