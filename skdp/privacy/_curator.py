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
from skdp.privacy._mechanisms import Mechanism, Query, Values, add_noise


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

    def release(self, query: Query, mechanism: Mechanism) -> Values:
        """Release one statistic: charge, evaluate, randomise.

        Parameters
        ----------
        query, mechanism : Query, Mechanism
            The statistic, which states its sensitivity, and the price.

        Returns
        -------
        released : ndarray of shape (query.size,)
            The statistic with noise, on a public grid.

        Raises
        ------
        BudgetError
            If the release would exceed the budget. Nothing was read or charged.
        """
        sensitivity = query.sensitivity(self._adjacency, self._n_rows)
        noise = mechanism.calibrate(sensitivity, query.size)
        entry = Release(
            query=query.name,
            size=query.size,
            adjacency=self._adjacency,
            stated_sensitivity=sensitivity.l2 if noise.law == "gaussian" else sensitivity.l1,
            theorem=sensitivity.theorem,
            noise=noise,
            numerics="exact on the grid, " + self._bits.origin,
            seeded=self._bits.seeded,
        )
        charged = self._ledger.append(entry)
        if not charged.fits(self._epsilon, self._delta):
            raise BudgetError(
                f"releasing {query.name!r} would exceed the budget epsilon={self._epsilon:g}, "
                f"delta={self._delta:g}; no row was read for it."
            )
        # Charged before a row is touched and never refunded: what fails midway has
        # been paid for.
        self._ledger = charged
        if self.__admit is not None:
            self.__rows, self.__admit = self.__admit(), None
        values = np.asarray(query.evaluate(self.__rows), dtype=np.float64)
        if values.shape != (query.size,):
            raise ValueError(f"query {query.name!r} does not have the size that it states.")
        return add_noise(values, noise, self._bits)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a curator holds private data and cannot be pickled or copied.")
