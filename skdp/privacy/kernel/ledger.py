# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The ledger: what was released, at what price, and why that price is right.

A ledger is plain immutable data. The meaning of a field never changes between
versions; new kinds of release get new fields.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from skdp.privacy.books.texts import ledger_html, ledger_text
from skdp.privacy.kernel.accounting import check_delta, gdp_delta, pure_mu
from skdp.privacy.kernel.composition import (
    SampledCost,
    _sum_up,
    compose_epsilon,
    total_mu,
    total_rho,
)
from skdp.privacy.kernel.mechanisms import Noise
from skdp.privacy.laws.local_reports import report_epsilon
from skdp.privacy.laws.selection import Repetitions

# One line of the ledger: a kind of release, and what it is for an accountant.


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


def _dearest(releases: list[Release], total: Callable[[list[Release]], float]) -> list[float]:
    """Return, for every fit, the price of the row that pays most."""
    prices = []
    for fit in {release.fit for release in releases}:
        ours = [release for release in releases if release.fit == fit]
        by_all, reading = [r for r in ours if r.rows is None], list[Release]()
        most = total(by_all)
        # what a row pays grows only where a release begins
        for release in sorted((r for r in ours if r.rows), key=lambda r: r.rows or (0, 0)):
            start = release.rows[0] if release.rows else 0
            reading = [r for r in reading if r.rows and r.rows[1] > start] + [release]
            most = max(most, total(by_all + reading))
        prices.append(most)
    return prices


def _total_mu(releases: list[Release]) -> float:
    return total_mu([(0.0, 1), *((r.noise.mu, r.count) for r in releases)])


def _total_price(releases: list[Release]) -> float:
    return _sum_up((r.noise.epsilon, r.count) for r in releases)


@dataclass(frozen=True)
class Ledger:
    """Immutable list of releases; ledgers about the same people add up with ``+``.

    Parameters
    ----------
    releases : tuple of Release
        In order.
    assumptions : tuple of str
        What was taken from the data and is assumed public.

    See Also
    --------
    privacy_spent : Add up the ledgers of fitted estimators.

    Examples
    --------
    >>> from skdp import DPMean
    >>> mean = DPMean(epsilon=0.5, random_state=0).fit([[0.1], [0.2], [0.3]])
    >>> (mean.ledger_ + mean.ledger_).epsilon(delta=1e-6) < 1.0
    True
    """

    releases: tuple[Release, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def _seen(self) -> list[Release]:
        """What everybody may see: all but reports of which only a noisy sum was released."""
        return [release for release in self.releases if not release.hidden]

    @property
    def adjacency(self) -> str | None:
        """The adjacency all releases share; None for an empty ledger.

        Reports that rows make on their own ("local") say less about a row than any
        adjacency allows, and stand beside releases of either.
        """
        found = [r.adjacency for r in self.releases]
        return next((a for a in found if a != "local"), found[0] if found else None)

    @property
    def unit(self) -> str | None:
        """What is protected: "row", or "client" for all rows of one; None if empty."""
        return self.releases[0].unit if self.releases else None

    @property
    def seeded(self) -> bool:
        """Whether any noise can be reproduced from a `random_state`."""
        return any(release.seeded for release in self.releases)

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of all full Gaussian releases, for the row that pays most."""
        gaussian = [r for r in self._seen if r.noise.mu and not r.noise.by_chance]
        if not any(r.rows for r in gaussian):
            return total_mu([(r.noise.mu, r.count) for r in gaussian])
        return total_mu([(most, 1) for most in _dearest(gaussian, _total_mu)])

    @property
    def rho(self) -> float:
        """Parameter of zCDP of all releases; infinite with random batches, or prices in delta."""
        if any(r.noise.by_chance or r.noise.delta for r in self._seen):
            return math.inf
        pure = [r for r in self._seen if not r.noise.mu]
        costs = [(r.noise.epsilon, r.count, r.noise.law == "exponential") for r in pure]
        return total_rho(self.mu, costs)

    @property
    def gdp(self) -> float:
        """Gaussian-DP parameter of all releases; infinite with random batches, or delta."""
        if any(r.noise.by_chance or r.noise.delta for r in self._seen):
            return math.inf
        pure = [(pure_mu(r.noise.epsilon), r.count) for r in self._seen if not r.noise.mu]
        return total_mu([(self.mu, 1), *pure])

    def _priced(self) -> list[tuple[float, float, int]]:
        return [(r.noise.epsilon, r.noise.delta, r.count) for r in self._seen if not r.noise.mu]

    def _sampled(self) -> tuple[SampledCost, ...]:
        return tuple(
            SampledCost(r.noise.sampling, r.noise.mu, r.adjacency, r.count)
            for r in self._seen
            if r.noise.mu and r.noise.by_chance
        )

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the epsilon of all that everybody may see, rounded up.

        Parameters
        ----------
        delta : float, default=0.0
            In [0, 1).

        Returns
        -------
        epsilon : float
            In nats; infinite for Gaussian noise at delta 0. Of local reports alone a row
            pays for its own; next to other releases they count as if every row made all.
        """
        delta = check_delta(delta)
        if self._seen and all(release.adjacency == "local" for release in self._seen):
            return _epsilon_of_reports(self._seen, delta)
        return compose_epsilon(self.mu, self._priced(), delta, self._sampled(), self.rho)

    def local_epsilon(self, delta: float = 0.0) -> float:
        """Return the epsilon of the reports, towards whoever receives them, rounded up.

        Parameters
        ----------
        delta : float, default=0.0
            In [0, 1). Where it is up to chance who reports, the chance of reporting more often
            than is accounted for; at 0 a row is taken to report in every round.

        Returns
        -------
        epsilon : float
            In nats; infinite if anything but reports was computed from the rows, for then who
            computed it saw them.
        """
        delta = check_delta(delta)
        if any(r.adjacency != "local" and not r.of_reports for r in self.releases):
            return math.inf
        return _epsilon_of_reports([r for r in self.releases if r.adjacency == "local"], delta)

    def fits(self, epsilon: float, delta: float, mu: float | None = None) -> bool:
        """Return whether all releases together are (epsilon, delta)-DP, and mu-GDP if asked."""
        if mu is not None and self.gdp > mu:
            return False
        if not self._priced() and not self._sampled():
            # the closed form, with no root to find: called before every release
            return gdp_delta(self.mu, epsilon) <= delta
        return self.epsilon(delta) <= epsilon

    def append(self, release: Release) -> "Ledger":
        """Return a new ledger with one more release; a repeat raises the last count."""
        if self.unit not in (None, release.unit):
            raise ValueError(
                f"a ledger protects one unit; got a release per {release.unit} for a ledger per "
                f"{self.unit}."
            )
        fitting = (None, "local", release.adjacency)
        if release.adjacency != "local" and self.adjacency not in fitting:
            raise ValueError(
                f"a ledger has one adjacency; got a {release.adjacency!r} release for a "
                f"{self.adjacency!r} ledger. Fit all estimators with the same adjacency."
            )
        before = self.releases
        if before and replace(before[-1], count=release.count) == release:
            release = replace(release, count=before[-1].count + release.count)
            before = before[:-1]
        return replace(self, releases=(*before, release))

    def assume(self, *assumptions: str) -> "Ledger":
        """Return a new ledger that lists further assumptions."""
        return replace(self, assumptions=tuple(dict.fromkeys(self.assumptions + assumptions)))

    def __add__(self, other: "Ledger") -> "Ledger":
        if not isinstance(other, Ledger):
            return NotImplemented
        total = self.assume(*other.assumptions)
        first = 1 + max((r.fit for r in self.releases if r.rows), default=-1)
        for release in other.releases:
            total = total.append(replace(release, fit=first + release.fit if release.rows else 0))
        return total

    @property
    def dp_event(self) -> Any:
        """All releases as one ``dp_accounting.ComposedDpEvent``; see `Release.dp_event`.

        With Poisson batches under replace-one all of it is to be composed as REPLACE_ONE: the
        full Gaussian releases then stand in units of one contribution as well.
        """
        import dp_accounting

        batches = [r.noise.sampling for r in self._seen if r.noise.mu and r.noise.by_chance]
        coins = any(batch is not None and batch.kind == "poisson" for batch in batches)
        reach = 2.0 if coins and self.adjacency == "replace-one" else 1.0
        return dp_accounting.ComposedDpEvent([release._event(reach) for release in self._seen])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per kind of release (needs pandas)."""
        import pandas as pd

        return pd.json_normalize([asdict(release) for release in self.releases], sep="_")

    def _notes(self) -> list[str]:
        seeded = "seeded noise: whoever knows random_state can remove it"
        return [seeded] * self.seeded + [f"assumed public: {a}" for a in self.assumptions]

    def __repr__(self) -> str:
        return ledger_text(self.releases, self._notes())

    def _repr_html_(self) -> str:
        return ledger_html(self.releases, self._notes())


def _epsilon_of_reports(reports: list[Release], delta: float) -> float:
    """Return the epsilon of local reports, for the row that pays most."""
    chance = [r for r in reports if r.noise.by_chance]
    always = [r for r in reports if not r.noise.by_chance]
    rates = [(r.noise.epsilon, r.count, r.noise.sampling.rate) for r in chance if r.noise.sampling]
    if any(r.rows for r in always):
        prices = [(most, 0.0, 1) for most in _dearest(always, _total_price)]
    else:
        prices = [(r.noise.epsilon, 0.0, r.count) for r in always]
    return report_epsilon(prices, rates, delta)
