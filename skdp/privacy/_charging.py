# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The side of a curator that never sees a row: its budget, its ledger, and what was prepaid."""

import operator
import threading
from dataclasses import replace
from typing import Any

from skdp.exceptions import BudgetError
from skdp.privacy._accounting import check_delta, check_epsilon, check_mu
from skdp.privacy._ledger import Ledger
from skdp.privacy._mechanisms import Mechanism, Noise
from skdp.privacy._prepaid import Account, Prepaid
from skdp.privacy._release import Release
from skdp.privacy._terms import Terms, about


class Charging:
    """Put releases on a ledger, or refuse them; parameters are those of a `Curator`."""

    def __init__(
        self, terms: Terms, epsilon: Any, delta: Any, mu: Any, assumptions: tuple[str, ...]
    ) -> None:
        self._epsilon, self._delta = check_epsilon(epsilon), check_delta(delta)
        self._mu: float | None = None if mu is None else check_mu(mu)
        self._terms, self._ledger = terms, Ledger(assumptions=assumptions)
        self._accounts = dict[Prepaid, Account]()
        # what is charged must be on the ledger before another thread looks at it
        self._turn = threading.RLock()

    @property
    def ledger(self) -> Ledger:
        """What has been released so far."""
        return self._ledger

    def _pay(self, budget: Any, label: str) -> None:
        """Take all of it from what several curators share, or raise."""
        adjacency, unit = self._terms.adjacency, self._terms.unit
        # all at once, before a row is admitted; what fails from here on has been paid for
        budget.charge(
            self._epsilon, self._delta, mu=self._mu, adjacency=adjacency, unit=unit, label=label
        )

    def prepay(
        self,
        query: Any,
        mechanism: Mechanism,
        count: int,
        *,
        rows: tuple[int, int] | None = None,
        behind: tuple[Any, Any] | None = None,
    ) -> Prepaid:
        """Charge for a number of releases at once, before any of them.

        Parameters
        ----------
        query : Query
            Any query of the kind: name, size and sensitivity are those of all to come.
        mechanism : Mechanism
            The price of one release.
        count : int
            How many. Of local reports: how many every row makes, in turn.
        rows : tuple of (int, int), default=None
            Rows that report in turn; None for all. Only for local reports.
        behind : tuple of (Query, LocalMechanism), default=None
            Rows report on their own first, and `query` sums the reports.

        Returns
        -------
        prepaid : Prepaid
            Stands for the mechanism in `release`, `count` times.

        Raises
        ------
        BudgetError
            If all of them together would exceed the budget. Nothing was charged.
        ValueError
            If `count` is less than 1, or the mechanism is objective perturbation.
        """
        count = operator.index(count)
        if count < 1:
            raise ValueError(f"count must be at least 1; got {count!r}.")
        part = self._terms.part(rows)
        facts, noise = self._terms.calibrated(query, mechanism, part[1] - part[0])
        if not isinstance(noise, Noise):
            raise ValueError("only sums with noise and draws can be paid for beforehand.")
        if rows is not None and (noise.law != "local" or noise.by_chance):
            raise ValueError("only local reports are paid for part by part; rows must be None.")
        entry = self._terms.entry(query, rows, about(query, facts, noise))
        entries, hidden = [entry], None
        if behind is not None:
            stated, local = self._terms.calibrated(*behind, self._terms.n_rows)
            if local.law != "local" or local.sampling != noise.sampling:
                raise ValueError("what is summed must be local reports of the rows of the batch.")
            line = self._terms.entry(behind[0], None, about(behind[0], stated, local))
            hidden = (stated, replace(line, hidden=True))
            entry = replace(entry, of_reports=True)
            entries = [hidden[1], entry]
        self._append([replace(one, count=count) for one in entries])
        prepaid = Prepaid()
        self._accounts[prepaid] = Account(facts, entry, count, hidden, part)
        return prepaid

    def _redeem(
        self, query: Any, prepaid: Prepaid, rows: tuple[int, int] | None, reports: Any
    ) -> tuple[Noise, Noise | None, tuple[int, int] | None]:
        """Count a release that was paid for; return its noise, that of reports, and rows."""
        paid = self._accounts.get(prepaid)
        if paid is None:
            raise BudgetError("no release of this kind is left that was paid for.")
        self._terms.same(query, paid.facts, paid.entry, paid.part)
        if (reports is None) != (paid.behind is None):
            raise BudgetError("whether rows report first is part of what was paid for.")
        if paid.behind is not None:
            self._terms.same(reports, *paid.behind, paid.part)
        rows = paid.take(rows)
        return paid.entry.noise, paid.behind[1].noise if paid.behind else None, rows

    def _charge(
        self, query: Any, rows: tuple[int, int] | None, *parts: tuple[str, Noise, float, str]
    ) -> None:
        """Put releases on the ledger, or raise before anything is read."""
        self._append([self._terms.entry(query, rows, part) for part in parts])

    def _append(self, entries: list[Release]) -> None:
        with self._turn:
            ledger = self._ledger
            for entry in entries:
                ledger = ledger.append(entry)
            if not ledger.fits(self._epsilon, self._delta, self._mu):
                raise BudgetError(
                    f"releasing {entries[0].query!r} would exceed the budget epsilon="
                    f"{self._epsilon:g}, delta={self._delta:g}; no row was read for it."
                )
            # Charged before a row is touched and never refunded: what fails midway has
            # been paid for.
            self._ledger = ledger
