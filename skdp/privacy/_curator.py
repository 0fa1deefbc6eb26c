# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: holds the private rows, and is the only way out for a number."""

import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from skdp.exceptions import SeededNoiseWarning
from skdp.privacy._bits import make_bits
from skdp.privacy._charging import Charging
from skdp.privacy._lazy_noise import LazySums
from skdp.privacy._mechanisms import Mechanism, Noise, Values, add_noise, align
from skdp.privacy._objective import ObjectiveNoise
from skdp.privacy._prepaid import Prepaid
from skdp.privacy._stability import beyond, touched
from skdp.privacy._terms import Terms, about
from skdp.privacy._variates import Variates

# numbers of reports that are put on the grid at a time
_AT_ONCE = 1 << 18


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
                stacklevel=5,  # the line that called fit
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
