# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: holds the private rows, and is the only way out for a number."""

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.privacy._accounting import check_delta, check_epsilon
from skdp.privacy._bits import make_bits
from skdp.privacy._ledger import ADJACENCIES, Ledger, Release
from skdp.privacy._mechanisms import Mechanism, Noise, Values, add_noise, align
from skdp.privacy._objective import ObjectiveNoise
from skdp.privacy._variates import Variates


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
        The budget, in nats and as a probability. Checked here again whatever the
        caller checked.
    adjacency : {"replace-one", "zero-out"}
        Neighbours differ in one row ("replace-one"), or one row is replaced by a null row
        that contributes nothing ("zero-out"). The number of rows is public in both.
    random_state, purpose : None, int, RandomState or Generator, and str
        None draws noise from the operating system; the purpose keeps the seeded streams
        of different estimators apart.
    assumptions : tuple of str, default=()
        What was read from the data beforehand and is assumed public.

    Raises
    ------
    ValueError
        If the budget, the adjacency or `random_state` is unusable.
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
    ) -> None:
        self._epsilon, self._delta = check_epsilon(epsilon), check_delta(delta)
        if adjacency not in ADJACENCIES:
            raise ValueError(f"adjacency must be one of {ADJACENCIES}; got {adjacency!r}.")
        self._adjacency, self._n_rows = adjacency, int(n_rows)
        self._bits = make_bits(random_state, purpose)
        self.__admit: Callable[[], Any] | None = admit
        self.__rows: Any = None
        self._ledger = Ledger(assumptions=assumptions)
        if self._bits.seeded:
            warnings.warn(
                "random_state is set, so the noise can be reproduced by whoever knows it, and "
                "equal seeds on two data sets cancel. Use random_state=None for a real release.",
                SeededNoiseWarning,
                stacklevel=4,  # the line that called fit
            )

    @property
    def ledger(self) -> Ledger:
        """What has been released so far."""
        return self._ledger

    def release(
        self, query: Any, mechanism: Mechanism, rows: tuple[int, int] | None = None
    ) -> Values:
        """Release one statistic: charge, evaluate, randomise.

        Parameters
        ----------
        query, mechanism : Query, Mechanism
            The statistic, which states its sensitivity, and the price.
        rows : tuple of (int, int), default=None
            First row to be read and the one after the last, fixed without looking at the
            data; None for all. What is admitted must then have a method `part`.

        Returns
        -------
        released : ndarray of shape (query.size,)
            The statistic with noise, the draw, or the minimiser of the perturbed
            objective, on a public grid.

        Raises
        ------
        BudgetError
            If the release would exceed the budget. Nothing was read or charged.
        """
        start, stop = rows or (0, self._n_rows)
        if not 0 <= start < stop <= self._n_rows:
            raise ValueError(f"rows must be a part of {self._n_rows} rows; got {rows!r}.")
        facts = query.sensitivity(self._adjacency, stop - start)
        noise = mechanism.calibrate(facts, query.size)
        if isinstance(noise, ObjectiveNoise):
            # the secret term is charged too: it is the price of the exact minimiser
            stated = facts.rows * facts.reach
            exact = (query.name, noise.linear, stated, facts.theorem)
            self._charge(query, rows, exact, (f"error of the {query.name}", *noise.error))
            linear = add_noise(np.zeros(query.size), noise.linear, self._bits)
            values = query.minimise(self._admitted(rows), linear)
            return self._noisy(query, values, noise.cover)
        stated = {"laplace": facts.l1, "exponential": facts.spread}.get(noise.law, facts.l2)
        self._charge(query, rows, (query.name, noise, stated, facts.theorem))
        if noise.law == "exponential":
            source = Variates(self._bits) if query.idealised else self._bits
            drawn = query.draw(self._admitted(rows), noise, source)
            snapped: Values = align(self._shaped(query, drawn), noise) * noise.grid
            return snapped
        return self._noisy(query, query.evaluate(self._admitted(rows)), noise)

    def _charge(
        self, query: Any, rows: tuple[int, int] | None, *parts: tuple[str, Noise, float, str]
    ) -> None:
        """Put releases on the ledger, or raise before anything is read."""
        ledger = self._ledger
        idealised = getattr(query, "idealised", False)
        for name, noise, stated, theorem in parts:
            entry = Release(
                query=name,
                size=query.size,
                adjacency=self._adjacency,
                stated_sensitivity=stated,
                theorem=theorem,
                noise=noise,
                numerics=("idealised, " if idealised else "exact on the grid, ")
                + self._bits.origin,
                seeded=self._bits.seeded,
                rows=rows,
            )
            ledger = ledger.append(entry)
        if not ledger.fits(self._epsilon, self._delta):
            raise BudgetError(
                f"releasing {query.name!r} would exceed the budget epsilon={self._epsilon:g}, "
                f"delta={self._delta:g}; no row was read for it."
            )
        # Charged before a row is touched and never refunded: what fails midway has
        # been paid for.
        self._ledger = ledger

    def _admitted(self, part: tuple[int, int] | None) -> Any:
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
