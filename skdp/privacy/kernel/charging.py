# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Charges: the budget, record and prepaid rights of a curator, without access to rows."""

import operator
import threading
from dataclasses import dataclass, replace
from typing import Any

from skdp.privacy.kernel.accounting import (
    BudgetError,
    check_choice,
    check_delta,
    check_epsilon,
    check_mu,
)
from skdp.privacy.kernel.ledger import ADJACENCIES, Record, Release
from skdp.privacy.kernel.mechanisms import GROUP_SLACK, Law, Line, Noise, Sensitivity, check_fields

Rows = tuple[int, int]


@dataclass(frozen=True)
class Terms:
    """Adjacency, unit and source of noise of a curator.

    Parameters
    ----------
    n_rows, adjacency, unit : int, str, str
        As for a `Curator`.
    seeded, origin, stream : bool, str, str or None
        Facts of the source of noise; identity of its stream, if seeded.
    """

    n_rows: int
    adjacency: str
    unit: str
    seeded: bool
    origin: str
    stream: str | None = None

    def __post_init__(self) -> None:
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("unit", self.unit, ("row", "group"))

    def part(self, rows: Rows | None) -> Rows:
        """Return the first row of a part and the one after the last; None is all rows."""
        start, stop = map(operator.index, (0, self.n_rows) if rows is None else rows)
        if not 0 <= start < stop <= self.n_rows:
            raise ValueError(f"rows must be a part of {self.n_rows} rows; got {rows!r}.")
        return start, stop

    def facts(self, query: Any, law: Law, rows: Rows | None) -> Any:
        """Return the statement of a query, under the adjacency of a law."""
        check_fields(query)
        start, stop = self.part(rows)
        adjacency, anywhere = self.adjacency, self.unit == "group"
        if adjacency == "add-remove":
            if law.sampling is not None or rows is not None:
                raise ValueError("rows have no place where their number is secret.")
            # a row more is a row in the place of a null row: Proposition 85
            adjacency, anywhere = "zero-out", True
        if law.sampling is not None:
            if law.sampling.n_rows != self.n_rows:
                raise ValueError("batches must be drawn from the rows that there are.")
            adjacency = law.sampling.adjacency(adjacency)
        stated = query.sensitivity(adjacency, stop - start)
        if anywhere and law.adds_rows and isinstance(stated, Sensitivity):
            # others have rows in any chunk then: Proposition 82 bounds the rounding of their sums
            wider, norms = 1 + GROUP_SLACK * (stop - start), ("l1", "l2", "spread")
            stated = replace(stated, **{name: getattr(stated, name) * wider for name in norms})
        return stated

    def release(self, line: Line, rows: Rows | None) -> Release:
        """Return the release that a law states in a line."""
        if self.adjacency == "local" and not line.local:
            raise ValueError("rows only report on their own here, nothing else is released.")
        return Release(
            query=line.query,
            size=line.size,
            adjacency="local" if line.local else self.adjacency,
            stated_sensitivity=line.stated,
            theorem=line.theorem,
            noise=line.noise,
            numerics=("idealised, " if line.idealised else "exact on the grid, ") + self.origin,
            seeded=self.seeded,
            count=line.times,
            rows=None if rows is None else self.part(rows),
            unit=self.unit,
            hidden=line.hidden,
            of_reports=line.of_reports,
            stream=self.stream,
        )


class Prepaid:
    """Right to a number of releases of one kind, all charged in advance.

    Only `Curator.prepay` makes valid ones.
    """


@dataclass(frozen=True)
class Charged:
    """One release, charged or about to be charged.

    Parameters
    ----------
    law, facts, noise, lines : Law, object, Noise, tuple of Line
        The law, what the query stated, the noise that is drawn, and what the ledger says.
    rows : tuple of (int, int) or None
        Rows that it reads; None for all.
    """

    law: Law
    facts: Any
    noise: Any
    lines: tuple[Line, ...]
    rows: Rows | None

    @property
    def n_reads(self) -> int:
        """Number of allowed readings of the rows."""
        return max(line.times for line in self.lines)


@dataclass
class Account:
    """Account of a `Prepaid`.

    Parameters
    ----------
    charged : Charged
        One release of the kind; its rows are all those that may be read in turn.
    left : int
        Releases that may still be made; for rows in turn, passes over the rows.
    part : tuple of (int, int)
        Rows that are read in turn.
    """

    charged: Charged
    left: int
    part: Rows

    def __post_init__(self) -> None:
        self._next = self.part[0]

    def take(self, rows: Rows | None) -> Rows | None:
        """Count one release, or raise; return the rows that it may read, None for all."""
        if self.left < 1:
            raise BudgetError("no release of this kind is left that was paid for.")
        if not self.charged.law.in_turn:
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


class Charging:
    """Record or refuse releases; parameters as for a `Curator`."""

    def __init__(
        self, terms: Terms, epsilon: Any, delta: Any, mu: Any, assumptions: tuple[str, ...]
    ) -> None:
        self._epsilon, self._delta = check_epsilon(epsilon), check_delta(delta)
        self._mu: float | None = None if mu is None else check_mu(mu)
        self.terms, self._record = terms, Record(assumptions=assumptions)
        self._accounts = dict[Prepaid, Account]()
        # what is charged must be on the record before another thread looks at it
        self.turn = threading.RLock()

    @property
    def record(self) -> Record:
        """Charges so far."""
        return self._record

    def share(self, budget: Any, label: str) -> None:
        """Charge all of it to a shared budget, or raise."""
        facts = {name: getattr(self.terms, name) for name in ("adjacency", "unit", "stream")}
        # all at once, before a row is admitted; what fails from here on has been paid for
        charge = budget.charge(self._epsilon, self._delta, mu=self._mu, label=label, **facts)
        self._record = self._record.charged_as(charge)

    def charge(self, query: Any, law: Law, rows: Rows | None) -> Charged:
        """Record a release, or raise before anything is read."""
        charged = self._stated(query, law, rows)
        self._append([self.terms.release(line, rows) for line in charged.lines])
        return charged

    def prepay(self, query: Any, law: Law, count: int, *, rows: Rows | None = None) -> Prepaid:
        """Charge for a number of releases at once: see `Curator.prepay`."""
        count = operator.index(count)
        if count < 1:
            raise ValueError(f"count must be at least 1; got {count!r}.")
        charged = self._stated(query, law, rows)
        if not law.prepayable:
            raise ValueError("only sums with noise and draws can be paid for beforehand.")
        if rows is not None and not law.in_turn:
            raise ValueError("only local reports are paid for part by part; rows must be None.")
        entries = [self.terms.release(line, rows) for line in charged.lines]
        self._append([replace(entry, count=count * entry.count) for entry in entries])
        prepaid = Prepaid()
        self._accounts[prepaid] = Account(charged, count, self.terms.part(rows))
        return prepaid

    def redeem(self, query: Any, prepaid: Prepaid, rows: Rows | None) -> Charged:
        """Count a prepaid release; return the charge, and the rows it may read."""
        if (account := self._accounts.get(prepaid)) is None:
            raise BudgetError("no release of this kind is left that was paid for.")
        paid = account.charged
        facts = self.terms.facts(query, paid.law, paid.rows)
        if (facts, paid.law.lines(query, facts, paid.noise)) != (paid.facts, paid.lines):
            raise BudgetError(f"{query.name!r} is not the release that was paid for.")
        return paid if (part := account.take(rows)) == paid.rows else replace(paid, rows=part)

    def _stated(self, query: Any, law: Law, rows: Rows | None) -> Charged:
        """Return a release as a query and a law state it."""
        if not isinstance(law, Law):
            raise BudgetError(f"{law!r} is neither a law nor paid for beforehand.")
        if law.sampling is not None and rows is not None:
            raise ValueError("a random batch is drawn from all rows; rows must be None.")
        facts = self.terms.facts(query, law, rows)
        noise = law.calibrate(facts, query.size)
        lines = tuple(law.lines(query, facts, noise))
        if not (lines and all(isinstance(line.noise, Noise) for line in lines)):
            raise BudgetError(f"the law of {query.name!r} does not say what it costs.")
        # batches are drawn as the law says, and priced as the noise does
        if any(line.noise.sampling != law.sampling for line in lines):
            raise BudgetError(f"the law of {query.name!r} prices other batches than it draws.")
        return Charged(law, facts, noise, lines, rows)

    def _append(self, entries: list[Release]) -> None:
        with self.turn:
            record = self._record
            for entry in entries:
                record = record.append(entry)
            if not record.fits(self._epsilon, self._delta, self._mu):
                raise BudgetError(
                    f"releasing {entries[0].query!r} would exceed the budget epsilon="
                    f"{self._epsilon:g}, delta={self._delta:g}; no row was read for it."
                )
            # Charged before a row is touched and never refunded: what fails midway has
            # been paid for.
            self._record = record
