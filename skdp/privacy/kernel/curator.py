# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: holder of the private rows, and the only way out for a number."""

import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from skdp.privacy.kernel.accounting import BudgetError, SeededNoiseWarning, level_of_caller
from skdp.privacy.kernel.charging import Charged, Charging, Prepaid, Rows, Terms
from skdp.privacy.kernel.ledger import Record
from skdp.privacy.kernel.mechanisms import Law
from skdp.privacy.kernel.samplers import make_bits


class Curator:
    """Guard private rows and release statistics of them, within a budget.

    Parameters
    ----------
    admit : callable
        Called without arguments at the first release that the budget allows, and not
        before; returns the private rows, forced into their public domain.
    n_rows : int
        Number of rows; public.
    epsilon, delta : float
        Privacy budget, in nats and as a probability; always checked here.
    adjacency : {"replace-one", "zero-out", "add-remove", "local"}
        Neighbours differ in one row ("replace-one"), or one row is replaced by a null row that
        contributes nothing ("zero-out"): the number of rows is public. Or it is there or not
        ("add-remove"): `n_rows` bounds their number. "local" if rows only report on their own.
    random_state, purpose : None, int, RandomState or Generator, and str
        None draws noise from the operating system; the purpose keeps the seeded streams
        of different estimators apart.
    assumptions : tuple of str, default=()
        Facts read from the data in advance and assumed public.
    progress : callable, default=None
        Called after every release, with the number of releases so far and nothing else.
    unit : {"row", "group"}, default="row"
        Unit of an admitted row: one row, or all rows of one group.
    mu : float, default=None
        Additional bound on the Gaussian-DP parameter of all releases together; None for no bound.
    budget : object, default=None
        Budget shared by several curators; its `charge` takes all of this budget, or raises.

    Raises
    ------
    ValueError
        If the budget, the adjacency or `random_state` is unusable.
    BudgetError
        If less is left in the shared budget.
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
        bits, n_rows = make_bits(random_state, purpose), operator.index(n_rows)
        terms = Terms(n_rows, adjacency, unit, bits.seeded, bits.origin, bits.identity)
        self._charging = Charging(terms, epsilon, delta, mu, assumptions)
        self._turn = self._charging.turn
        self._bits, self._progress, self._n_releases = bits, progress, 0
        self.__admit: Callable[[], Any] | None = admit
        self.__rows: Any = None
        if budget is not None:
            self._charging.share(budget, purpose)
        if self._bits.seeded:
            warnings.warn(
                "random_state is set: anybody who knows it can reproduce the noise, and noise of "
                "equal seeds cancels in a difference. Use random_state=None for a real release.",
                SeededNoiseWarning,
                stacklevel=level_of_caller(),
            )

    @property
    def ledger(self) -> Record:
        """Record of the releases so far; ``skdp.privacy.Ledger.of`` makes it readable."""
        return self._charging.record

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

    def prepay(self, query: Any, law: Law, count: int, *, rows: Rows | None = None) -> Prepaid:
        """Charge for a number of releases at once, before any of them.

        Parameters
        ----------
        query : Query
            Any query of the kind: name, size and sensitivity are those of all to come.
        law : Law
            How they are randomised, and the price of one release.
        count : int
            How many. Of local reports: how many every row makes, in turn.
        rows : tuple of (int, int), default=None
            Rows that report in turn; None for all. Only for local reports.

        Returns
        -------
        prepaid : Prepaid
            Stands for the law in `release`, `count` times.

        Raises
        ------
        BudgetError
            If all of them together would exceed the budget. Nothing was charged.
        ValueError
            If `count` is less than 1, a field of the query is not finite, or the law is one
            that cannot be paid for beforehand.
        """
        return self._charging.prepay(query, law, count, rows=rows)

    def release(self, query: Any, law: Law | Prepaid, rows: Rows | None = None) -> Any:
        """Release one statistic: charge, then let the law read, evaluate and randomise.

        Parameters
        ----------
        query, law : Query, Law or Prepaid
            The statistic, which states its sensitivity, and the way it is randomised.
        rows : tuple of (int, int), default=None
            First row to be read and the one after the last, fixed without looking at the
            data; None for all. What is admitted must then have a method `part`.

        Returns
        -------
        released : object
            What the law makes of it: an array of shape (query.size,) for noise and draws.

        Raises
        ------
        BudgetError
            If the release would exceed the budget, or its law declares a lower price than its
            noise has. Nothing was read or charged.
        ValueError
            If a field of the query is not finite. Nothing was read or charged.
        """
        with self._turn:
            if isinstance(law, Prepaid):
                charged = self._charging.redeem(query, law, rows)
            else:
                charged = self._charging.charge(query, law, rows)
            start, stop = self._charging.terms.part(charged.rows)
            source = ChargedSource(self, charged, stop - start)
            released = charged.law.release(query, charged.noise, source)
        self._count()
        return released

    def _count(self) -> None:
        self._n_releases += 1
        if self._progress is not None:
            self._progress(self._n_releases)

    def _batch(self, charged: Charged) -> Any:
        """Return the rows that one step reads: a random batch if there is to be one."""
        admitted, sampling = self._admitted(charged.rows), charged.law.sampling
        # the batch stays secret: amplification rests on that
        if sampling is None or (batch := sampling.draw(self._bits)) is None:
            return admitted
        return admitted.batch(batch, sampling.rate)

    def _admitted(self, part: Rows | None) -> Any:
        with self._turn:
            if self.__admit is not None:
                self.__rows, self.__admit = self.__admit(), None
            return self.__rows if part is None else self.__rows.part(*part)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a curator holds private data and cannot be pickled or copied.")


class ChargedSource:
    """Rows and random bits for one charged release, as seen by a law.

    Parameters
    ----------
    curator, charged, n_rows : Curator, Charged, int
        Who holds the rows, what may be read, and of how many rows that is a part.
    """

    def __init__(self, curator: Curator, charged: Charged, n_rows: int) -> None:
        self._curator, self._charged, self._left = curator, charged, charged.n_reads
        self.bits, self.n_rows = curator._bits, n_rows

    def read(self) -> Any:
        """Return the rows, a fresh batch every time, or raise after the last allowed reading."""
        if self._left < 1:
            raise BudgetError("rows are read as often as was charged, and not more often.")
        if self._left < self._charged.n_reads:
            # whoever reads again is done with the step before
            self._curator._count()
        self._left -= 1
        return self._curator._batch(self._charged)
