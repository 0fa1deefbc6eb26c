# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: holds the private rows, and is the only way out for a number."""

import operator
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.privacy.kernel.accounting import check_choice, check_delta, check_epsilon, check_mu
from skdp.privacy.kernel.bits import make_bits
from skdp.privacy.kernel.ledger import ADJACENCIES, Ledger, Release
from skdp.privacy.kernel.mechanisms import Mechanism, Noise, Values, add_noise, align
from skdp.privacy.laws.exponential import Variates
from skdp.privacy.laws.histogram import beyond, touched
from skdp.privacy.laws.late_noise import LazySums
from skdp.privacy.laws.objective import ObjectiveNoise

# What all releases of a curator have in common, and what one of them states and costs.


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


# Releases that were paid for beforehand.


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


# The side of a curator that never sees a row: its budget, its ledger, and what was prepaid.


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


# numbers of reports that are put on the grid at a time
_AT_ONCE = 1 << 18


def _level_of_caller() -> int:
    """Return the stack level of the first line outside of the library and what calls it."""
    level, frame = 1, sys._getframe(1)
    between = {"skdp", "sklearn", "contextlib"}
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in between:
        level, frame = level + 1, frame.f_back
    return level


class Curator(Charging):
    """Guard private rows and release statistics of them, within a budget.

    Parameters
    ----------
    admit : callable
        Called without arguments at the first release that the budget allows, and not
        before; returns the private rows, forced into their public domain.
    n_rows : int
        Number of rows; public.
    epsilon, delta : float
        The budget, in nats and as a probability. Checked here again whatever the
        caller checked.
    adjacency : {"replace-one", "zero-out", "local"}
        Neighbours differ in one row ("replace-one"), or one row is replaced by a null row
        that contributes nothing ("zero-out"). The number of rows is public in both. "local"
        if rows do nothing but report on their own.
    random_state, purpose : None, int, RandomState or Generator, and str
        None draws noise from the operating system; the purpose keeps the seeded streams
        of different estimators apart.
    assumptions : tuple of str, default=()
        What was read from the data beforehand and is assumed public.
    progress : callable, default=None
        Called after every release, with the number of releases so far and nothing else.
    unit : {"row", "client"}, default="row"
        What a row of what is admitted stands for: one row, or all rows of one client.
    mu : float, default=None
        What the Gaussian-DP parameter of all releases together stays below, besides; None
        for no such bound.
    budget : object, default=None
        What several curators share; its `charge` takes all of this budget, or raises.

    Raises
    ------
    ValueError
        If the budget, the adjacency or `random_state` is unusable.
    BudgetError
        If the shared budget has less left.
    """

    def __init__(
        self,
        admit: Callable[[], Any],
        *,
        n_rows: int,
        epsilon: float,
        delta: float,
        adjacency: str,
        random_state: Any,
        purpose: str,
        assumptions: tuple[str, ...] = (),
        progress: Callable[[int], Any] | None = None,
        unit: str = "row",
        mu: float | None = None,
        budget: Any = None,
    ) -> None:
        bits = make_bits(random_state, purpose)
        terms = Terms(operator.index(n_rows), adjacency, unit, bits.seeded, bits.origin)
        super().__init__(terms, epsilon, delta, mu, assumptions)
        self._bits, self._progress, self._n_releases = bits, progress, 0
        self.__admit: Callable[[], Any] | None = admit
        self.__rows: Any = None
        if budget is not None:
            self._pay(budget, purpose)
        if self._bits.seeded:
            warnings.warn(
                "random_state is set, so the noise can be reproduced by whoever knows it, and "
                "equal seeds on two data sets cancel. Use random_state=None for a real release.",
                SeededNoiseWarning,
                stacklevel=_level_of_caller(),
            )

    def map_rows(self, function: Callable[[Any], Any]) -> None:
        """Replace the private rows by a function of them; nothing is released.

        Parameters
        ----------
        function : callable
            Public, and it maps every row on its own: a null row to a null row, the others
            without a look at their neighbours. What was released so far may be in it.
        """
        with self._turn:
            admit, rows, self.__rows = self.__admit, self.__rows, None
            self.__admit = lambda: function(rows if admit is None else admit())

    def release(
        self,
        query: Any,
        mechanism: Mechanism | Prepaid,
        rows: tuple[int, int] | None = None,
        reports: Any = None,
    ) -> Any:
        """Release one statistic: charge, evaluate, randomise.

        Parameters
        ----------
        query, mechanism : Query, Mechanism or Prepaid
            The statistic, which states its sensitivity, and the price.
        rows : tuple of (int, int), default=None
            First row to be read and the one after the last, fixed without looking at the
            data; None for all. What is admitted must then have a method `part`.
        reports : Query, default=None
            The local reports that `query` sums, if that was paid for.

        Returns
        -------
        released : ndarray of shape (query.size,)
            The statistic with noise, the draw, or the minimiser of the perturbed
            objective, on a public grid. With a threshold, a pair: the columns with noisy
            sums beyond it, and these sums. Of local reports, a row for each that was read.

        Raises
        ------
        BudgetError
            If the release would exceed the budget. Nothing was read or charged.
        """
        with self._turn:
            released = self._release(query, mechanism, rows, reports)
        self._count()
        return released

    def descend(self, query: Any, prepaid: Prepaid, n_steps: int, n_skipped: int) -> Values:
        """Descend along sums with noise that nobody sees, and release the average point.

        All coordinates get noise in every step, as if every sum were released; where a
        batch has no entries it comes late, in one draw for many steps.

        Parameters
        ----------
        query : Query
            With `shape`, `n_free` and `decay` as in `LazySums`; ``touched(rows)``, the columns in
            which a batch has entries, each once, and what is left of the rows; and
            ``evaluate_at(part, values)``, the statistic in these columns, given the point there.
        prepaid : Prepaid
            Pays for every step.
        n_steps, n_skipped : int, int
            Number of steps, and of the first ones that the average leaves out.

        Returns
        -------
        released : ndarray of shape query.shape
            The average, on a public grid.

        Raises
        ------
        BudgetError
            If fewer steps have been paid for. Nothing was read.
        ValueError
            If no step is left for the average, or the noise is not Gaussian.
        """
        if not 0 <= n_skipped < operator.index(n_steps):
            raise ValueError(f"n_skipped must be in [0, {n_steps}); got {n_skipped!r}.")
        with self._turn:
            *_, (noise, *_) = (self._redeem(query, prepaid, None, None) for _ in range(n_steps))
        sums = LazySums(
            query.shape, query.n_free, query.decay, n_steps, n_skipped, noise, self._bits
        )
        for step in range(n_steps):
            columns, part = query.touched(self._batch(noise))
            statistic = query.evaluate_at(part, sums.at(columns, step))
            sums.add(columns, align(statistic, noise) * noise.grid)
            self._count()
        return sums.average()

    def _count(self) -> None:
        self._n_releases += 1
        if self._progress is not None:
            self._progress(self._n_releases)

    def _release(
        self, query: Any, mechanism: Any, rows: tuple[int, int] | None, reports: Any
    ) -> Any:
        start, stop = self._terms.part(rows)
        if isinstance(mechanism, Prepaid):
            noise, local, rows = self._redeem(query, mechanism, rows, reports)
            if local is None:
                return self._randomised(query, noise, rows)
            made = self._reported(reports, local, self._batch(noise))
            return self._noisy(query, query.total(made), noise)
        if reports is not None:
            raise ValueError("a sum of local reports must be paid for beforehand.")
        facts, noise = self._terms.calibrated(query, mechanism, stop - start)
        if isinstance(noise, ObjectiveNoise):
            # the secret term is charged too: it is the price of the exact minimiser
            stated = facts.rows * facts.reach
            exact = (query.name, noise.linear, stated, facts.theorem)
            self._charge(query, rows, exact, (f"error of the {query.name}", *noise.error))
            linear = add_noise(np.zeros(query.size), noise.linear, self._bits)
            values = query.minimise(self._admitted(rows), linear)
            return self._noisy(query, values, noise.cover)
        if noise.sampling is not None and rows is not None:
            raise ValueError("a random batch is drawn from all rows; rows must be None.")
        self._charge(query, rows, about(query, facts, noise))
        return self._randomised(query, noise, rows)

    def _randomised(self, query: Any, noise: Noise, rows: tuple[int, int] | None) -> Any:
        """Return a draw, or a statistic with noise; it has been charged."""
        if noise.law == "local":
            made = self._reported(query, noise, self._batch(noise, rows))
            if not noise.by_chance and len(made) != operator.sub(*self._terms.part(rows)[::-1]):
                raise ValueError(f"query {query.name!r} has not one report for every row.")
            return made
        if noise.law == "exponential":
            drawn = query.draw(self._admitted(rows), noise, self._source(query))
            snapped: Values = align(self._shaped(query, drawn), noise) * noise.grid
            return snapped
        if noise.threshold is not None:
            columns, sums = touched(query.evaluate(self._admitted(rows)), query.size)
            return beyond(columns, add_noise(sums, noise, self._bits), noise)
        return self._noisy(query, *self._drawn(query, noise, rows))

    def _source(self, query: Any) -> Any:
        return Variates(self._bits) if query.idealised else self._bits

    def _reported(self, query: Any, noise: Noise, rows: Any) -> Values:
        """Return a report of every row, on the grid."""
        # whether an entry underflows depends on the row: nobody is to be told
        with np.errstate(under="ignore"):
            drawn = query.draw(rows, noise, self._source(query))
            return self._on_grid(query, np.asarray(drawn, dtype=np.float64), noise)

    @staticmethod
    def _on_grid(query: Any, made: Values, noise: Noise) -> Values:
        if made.ndim != 2 or made.shape[1] != query.size:
            raise ValueError(f"query {query.name!r} does not have the size that it states.")
        # in parts: there may be as many numbers as memory holds
        step = max(1, _AT_ONCE // query.size)
        for start in range(0, len(made), step):
            part = made[start : start + step]
            np.multiply(align(part, noise), noise.grid, out=part)
        return made

    def _drawn(
        self, query: Any, noise: Noise, rows: tuple[int, int] | None = None
    ) -> tuple[Any, Noise]:
        """Return the exact statistic, of a random batch if there is to be one."""
        return query.evaluate(self._batch(noise, rows)), noise

    def _batch(self, noise: Noise, rows: tuple[int, int] | None = None) -> Any:
        """Return the rows that one release reads: a random batch if there is to be one."""
        admitted = self._admitted(rows)
        # the batch stays secret: amplification rests on that
        if noise.sampling is None or (batch := noise.sampling.draw(self._bits)) is None:
            return admitted
        return admitted.batch(batch, noise.sampling.rate)

    def _admitted(self, part: tuple[int, int] | None) -> Any:
        with self._turn:
            if self.__admit is not None:
                self.__rows, self.__admit = self.__admit(), None
            return self.__rows if part is None else self.__rows.part(*part)

    def _noisy(self, query: Any, values: Any, noise: Noise) -> Values:
        return add_noise(self._shaped(query, values), noise, self._bits)

    @staticmethod
    def _shaped(query: Any, values: Any) -> Values:
        shaped: Values = np.asarray(values, dtype=np.float64)
        if shaped.shape != (query.size,):
            raise ValueError(f"query {query.name!r} does not have the size that it states.")
        return shaped

    def __reduce__(self) -> NoReturn:
        raise TypeError("a curator holds private data and cannot be pickled or copied.")
