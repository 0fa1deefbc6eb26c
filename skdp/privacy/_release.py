# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""One line of the ledger: a kind of release, and what it is for an accountant."""

import math
from dataclasses import dataclass
from typing import Any

from skdp.privacy._mechanisms import Noise
from skdp.privacy._repetitions import Repetitions

ADJACENCIES = ("replace-one", "zero-out", "local")


@dataclass(frozen=True)
class Winner:
    """What a release that is a whole search consists of.

    Parameters
    ----------
    repetitions : Repetitions or None
        The law of the number of runs; None if every candidate was run once.
    mu_run, mu_refit : float or None
        Gaussian-DP parameters of a run, and of the second fit of the winner; None for none.
    """

    repetitions: Repetitions | None
    mu_run: float | None
    mu_refit: float | None


@dataclass(frozen=True)
class Release:
    """One kind of release, and how many times in a row it was made.

    Parameters
    ----------
    query, size : str, int
        The statistic, and its number of coordinates.
    adjacency : {"replace-one", "zero-out", "local"}
        Which data sets count as neighbours. "local": a report that a row made on its own, under
        any two values of that row.
    stated_sensitivity, theorem : float, str
        Sensitivity that the query states (l1 for Laplace noise, the spread of the score
        for a draw, the price of a report, l2 otherwise), and why it holds.
    noise : Noise
        Law, scale, grid, sensitivity paid for (rounding included) and price.
    numerics, seeded : str, bool
        How the noise was made, and whether a `random_state` can reproduce it.
    count : int
        How many such releases, each with fresh noise, were made in a row.
    rows : tuple of (int, int) or None
        First row that was read and the one after the last; None for all. The positions
        are public, and a row pays only for the Gaussian releases that read it; others are
        added up as if they had read all rows.
    fit : int
        Positions of rows mean the same within one fit only; ledgers that are added up
        keep their fits apart.
    unit : {"row", "client"}
        What is protected: one row, or all rows of one client.
    hidden, of_reports : bool
        Whether these are local reports of which only a noisy sum was released, and whether
        this is such a sum.
    winner : Winner or None
        What a whole search consists of; None for anything else.
    """

    query: str
    size: int
    adjacency: str
    stated_sensitivity: float
    theorem: str
    noise: Noise
    numerics: str
    seeded: bool
    count: int = 1
    rows: tuple[int, int] | None = None
    fit: int = 0
    unit: str = "row"
    hidden: bool = False
    of_reports: bool = False
    winner: Winner | None = None

    @property
    def dp_event(self) -> Any:
        """The release as a ``dp_accounting.DpEvent``, relative to its own adjacency.

        The noise multiplier of a Gaussian event is the standard deviation over the
        actual sensitivity, so compose it as is (ADD_OR_REMOVE_ONE): an accountant that
        doubles the sensitivity for replace-one would do so twice. A pure release other
        than one Laplace draw stands as randomised response (REPLACE_ONE), its worst case
        (for many draws of the exponential mechanism the ledger itself has a better bound);
        an (epsilon, delta) release as an unsupported event, which accountants refuse. The
        winner of a secret number of Gaussian runs stands as ``RepeatAndSelectDpEvent``, which
        costs more there than its price on the ledger.
        Releases on random batches stand with the sensitivity of their own worst pair: the
        norm of one contribution for Poisson batches (compose under the ledger's adjacency),
        the distance of two for fixed sizes.
        """
        return self._event(1.0)

    def _event(self, reach: float) -> Any:
        """Return the event, full Gaussian releases in units of a part of their sensitivity."""
        import dp_accounting

        event: Any
        sampling = self.noise.sampling
        if self.noise.mu:
            event = dp_accounting.GaussianDpEvent(1 / self.noise.mu)
            if sampling is None or sampling.reads_all:
                event = dp_accounting.GaussianDpEvent(reach / self.noise.mu)
            elif sampling.kind == "poisson":
                event = dp_accounting.PoissonSampledDpEvent(sampling.rate, event)
            else:
                kind = {
                    "without-replacement": dp_accounting.SampledWithoutReplacementDpEvent,
                    "with-replacement": dp_accounting.SampledWithReplacementDpEvent,
                }[sampling.kind]
                event = kind(sampling.n_rows, int(sampling.batch_size), event)
        elif self.winner is not None and self.winner.repetitions and self.winner.mu_run:
            law, kind = self.winner.repetitions, dp_accounting.dp_event.RepeatAndSelectDpEvent
            event = dp_accounting.GaussianDpEvent(reach / self.winner.mu_run)
            event = kind(event, law.mean, law.eta)
            if self.winner.mu_refit:
                last = dp_accounting.GaussianDpEvent(reach / self.winner.mu_refit)
                event = dp_accounting.ComposedDpEvent([event, last])
        elif self.noise.delta:
            # dp_accounting has no event for (epsilon, delta): better none than a wrong one
            event = dp_accounting.UnsupportedDpEvent()
        elif self.noise.law == "laplace" and self.size == 1:
            event = dp_accounting.LaplaceDpEvent(1 / self.noise.epsilon)
        else:
            lie = 2 / (1 + math.exp(min(self.noise.epsilon, 700.0)))
            event = dp_accounting.RandomizedResponseDpEvent(lie, 2)
            # dp_accounting 0.6.0 forgets the count of a self-composed randomised response
            return dp_accounting.ComposedDpEvent([event] * self.count)
        return dp_accounting.SelfComposedDpEvent(event, self.count) if self.count > 1 else event
