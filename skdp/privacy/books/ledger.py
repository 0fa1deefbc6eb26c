# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Ledgers: the record of releases as text, as tables, and as events of other accountants."""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from skdp.privacy.books.texts import ledger_html, ledger_text
from skdp.privacy.kernel.ledger import Record, Release
from skdp.privacy.kernel.mechanisms import Noise
from skdp.privacy.laws.search import DeclaredTotal

#: why the epsilon of a total is infinite
SHARED_NOISE = (
    "infinite epsilon: fits share their noise, for they had the same random_state (noise {}). Use "
    "random_state=None, or another seed for every fit"
)
_NOISE = tuple(field.name for field in fields(Noise))


def release_event(release: Release) -> Any:
    """Return a release as a ``dp_accounting.DpEvent``, relative to its own adjacency.

    The noise multiplier of a Gaussian event is the standard deviation over the actual sensitivity,
    so compose it unchanged (ADD_OR_REMOVE_ONE): an accountant that doubles the sensitivity for
    replace-one would do so twice. A pure release other than one Laplace draw is represented by
    randomised response (REPLACE_ONE), its worst case (for many draws of the exponential mechanism
    the ledger itself has a better bound). An (epsilon, delta) release is an unsupported event,
    which accountants refuse. Releases on random batches have the sensitivity of their own worst
    pair: the norm of one contribution for Poisson batches (compose under the ledger's adjacency),
    the distance of two contributions for fixed sizes.
    """
    return _dp_event(release, 1.0)


def _dp_event(release: Release, reach: float) -> Any:
    """Return the event, full Gaussian releases in units of a part of their sensitivity."""
    import dp_accounting

    event: Any
    sampling = release.noise.sampling
    if release.noise.mu:
        event = dp_accounting.GaussianDpEvent(1 / release.noise.mu)
        if sampling is None or sampling.reads_all:
            event = dp_accounting.GaussianDpEvent(reach / release.noise.mu)
        elif sampling.kind == "poisson":
            event = dp_accounting.PoissonSampledDpEvent(sampling.rate, event)
        else:
            kind = {
                "without-replacement": dp_accounting.SampledWithoutReplacementDpEvent,
                "with-replacement": dp_accounting.SampledWithReplacementDpEvent,
            }[sampling.kind]
            event = kind(sampling.n_rows, int(sampling.batch_size), event)
    elif release.noise.delta:
        # dp_accounting has no event for (epsilon, delta): better none than a wrong one
        event = dp_accounting.UnsupportedDpEvent()
    elif release.noise.law == "laplace" and release.size == 1:
        event = dp_accounting.LaplaceDpEvent(1 / release.noise.epsilon)
    else:
        lie = 2 / (1 + math.exp(min(release.noise.epsilon, 700.0)))
        event = dp_accounting.RandomizedResponseDpEvent(lie, 2)
        # dp_accounting 0.6.0 forgets the count of a self-composed randomised response
        return dp_accounting.ComposedDpEvent([event] * release.count)
    return dp_accounting.SelfComposedDpEvent(event, release.count) if release.count > 1 else event


@dataclass(frozen=True)
class Ledger(Record):
    """Immutable list of releases; ledgers about the same people add up with ``+``.

    Parameters
    ----------
    releases : tuple of Release
        In order.
    assumptions : tuple of str
        Facts taken from the data and assumed public.
    budget_heads : tuple of str
        Positions of the charges in the chains of shared budgets, for `PrivacyBudget.contains`;
        empty without a shared budget.
    shared_noise : tuple of str
        Identities of seeded noise in more than one of the added ledgers. If there are any, every
        epsilon is infinite: differences of such releases have no noise.

    Raises
    ------
    ValueError
        If ledgers of different adjacencies or units are added up.

    See Also
    --------
    privacy_spent : Add up the ledgers of fitted estimators.

    Notes
    -----
    A ledger is an odometer: at any time it has the releases so far. Its total is a guarantee if
    prices were fixed in advance or kept within a budget, the filter; see
    :ref:`odometers-and-filters`.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from skdp import DPMean
    >>> mean = DPMean(epsilon=0.5, mechanism="gaussian", data_norm=1.0)
    >>> mean, again = (clone(mean).fit([[0.1], [0.2]]) for _ in range(2))
    >>> (mean.ledger_ + again.ledger_).epsilon(delta=1e-6) < 1.0
    True
    """

    shared_noise: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return the ledger of the record of a curator."""
        shared = getattr(record, "shared_noise", ())
        return cls(record.releases, record.assumptions, record.budget_heads, shared)

    @property
    def streams(self) -> tuple[str, ...]:
        """Identities of the seeded noise of the releases, each once; none for system entropy."""
        return tuple(dict.fromkeys(r.stream for r in self.releases if r.stream is not None))

    def with_shared_noise(self, *streams: str) -> "Ledger":
        """Return a new ledger with a note of noise shared by several fits."""
        return replace(self, shared_noise=tuple(dict.fromkeys(self.shared_noise + streams)))

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the epsilon of all public releases, rounded up.

        Parameters
        ----------
        delta : float, default=0.0
            In [0, 1).

        Returns
        -------
        epsilon : float
            Epsilon in nats; infinite for Gaussian noise at delta 0, and with `shared_noise`. With
            local reports only, a row pays for its own reports; beside other releases they count as
            if every row made all of them.
        """
        return self._unless_shared(self._alone.epsilon(delta))

    def local_epsilon(self, delta: float = 0.0) -> float:
        """Return the epsilon of the reports towards their receivers, rounded up.

        Parameters
        ----------
        delta : float, default=0.0
            In [0, 1). For random reporting, the probability of more reports than accounted for; at
            0 a row is assumed to report in every round.

        Returns
        -------
        epsilon : float
            Epsilon in nats; infinite with `shared_noise`, and if anything except reports was
            computed from the rows, because its computer saw them.
        """
        return self._unless_shared(self._alone.local_epsilon(delta))

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of all full Gaussian releases, for the row that pays most."""
        return self._unless_shared(self._alone.mu)

    @property
    def rho(self) -> float:
        """Parameter of zCDP of all releases; infinite with random batches, or prices in delta."""
        return self._unless_shared(self._alone.rho)

    @property
    def gdp(self) -> float:
        """Gaussian-DP parameter of all releases; infinite with random batches, or delta."""
        return self._unless_shared(self._alone.gdp)

    @property
    def _alone(self) -> Record:
        # what it would cost if all noise were fresh
        return Record(self.releases)

    def _unless_shared(self, price: float) -> float:
        return math.inf if self.shared_noise else price

    def __add__(self, other: Record) -> "Ledger":
        if not isinstance(other, Record):
            return NotImplemented
        theirs = Ledger.of(other)
        shared = (*theirs.shared_noise, *(s for s in theirs.streams if s in self.streams))
        heads = tuple(dict.fromkeys(self.budget_heads + other.budget_heads))
        total = self.with_shared_noise(*shared).assume(*other.assumptions)
        total = replace(total, budget_heads=heads)
        first = 1 + max((r.fit for r in self.releases if r.rows), default=-1)
        for release in other.releases:
            total = total.append(replace(release, fit=first + release.fit if release.rows else 0))
        return total

    @property
    def dp_event(self) -> Any:
        """All releases as one ``dp_accounting.ComposedDpEvent``; see `release_event`.

        With Poisson batches under replace-one, compose all of it as REPLACE_ONE: the full Gaussian
        releases are then in units of one contribution too. With `shared_noise` it is an event
        without any privacy.
        """
        import dp_accounting

        if self.shared_noise:
            return dp_accounting.NonPrivateDpEvent()
        batches = [r.noise.sampling for r in self._seen if r.noise.mu and r.noise.by_chance]
        coins = any(batch is not None and batch.kind == "poisson" for batch in batches)
        reach = 2.0 if coins and self.adjacency == "replace-one" else 1.0
        return dp_accounting.ComposedDpEvent([_dp_event(release, reach) for release in self._seen])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per kind of release (needs pandas)."""
        import pandas as pd

        rows = [asdict(release) for release in self.releases]
        for row in rows:
            # what a law keeps with its noise, to price it, is no column
            row["noise"] = {key: row["noise"][key] for key in _NOISE}
        return pd.json_normalize(rows, sep="_")

    def _notes(self) -> list[str]:
        seeded = "seeded noise: whoever knows random_state can remove it"
        notes = [SHARED_NOISE.format(", ".join(self.shared_noise))] * bool(self.shared_noise)
        notes += [seeded] * self.seeded
        return notes + [f"assumed public: {a}" for a in self.assumptions]

    def __repr__(self) -> str:
        return ledger_text(self.releases, self._notes())

    def _repr_html_(self) -> str:
        return ledger_html(self.releases, self._notes())


# Rows that stand several times among those that a fit reads.


# a little more, for the products below round
_UP = 1 + 1e-14


def for_copies(ledger: Ledger, copies: int, delta: float) -> tuple[Ledger, float] | None:
    """Return the price of the same releases for a row that the fit reads several times.

    A row with k copies among the rows read is a group of k rows (Proposition 78). Gaussian
    parameters and epsilons are k times as large, deltas grow with epsilon, and reports are made k
    times. A fit with releases on random batches is priced by its single pair at `delta`.

    Parameters
    ----------
    ledger : Ledger
        Ledger of one fit, for rows that are read once.
    copies : int
        Bound on the readings of a row, for every value of it.
    delta : float
        Claimed delta of the fit.

    Returns
    -------
    ledger, delta : Ledger, float
        Ledger and delta for such a row; None if no finite price is known.
    """
    if copies == 1:
        return ledger, delta
    reports = [release for release in ledger.releases if release.adjacency == "local"]
    others = [release for release in ledger.releases if release.adjacency != "local"]
    releases = [replace(release, count=release.count * copies) for release in reports]
    if any(release.price.by_chance for release in others):
        others = [_as_one_pair(ledger, others, delta)]
        delta += delta
    for release in others:
        if (dearer := _times(release, copies)) is None:
            return None
        delta += (dearer.noise.delta - release.noise.delta) * release.count * _UP
        releases.append(dearer)
    return (replace(ledger, releases=tuple(releases)), delta) if delta < 1 else None


def _as_one_pair(ledger: Ledger, releases: list[Release], delta: float) -> Release:
    """Return all releases of a ledger as one joint (epsilon, delta)."""
    epsilon = Record(ledger.releases).epsilon(delta)
    return replace(
        releases[0],
        query=", ".join(dict.fromkeys(release.query for release in releases)),
        size=1,
        stated_sensitivity=math.inf,
        theorem=f"{sum(release.count for release in releases)} releases, added up",
        noise=DeclaredTotal("copies", 0.0, 1.0, math.inf, math.inf, 0.0, epsilon, delta),
        count=1,
        rows=None,
        of_reports=all(release.of_reports for release in releases),
        stream=next(iter(ledger.streams), None),
    )


def _times(release: Release, copies: int) -> Release | None:
    """Return the price of a release for a group of rows; None if it has no finite price."""
    noise, epsilon = release.noise, release.noise.epsilon * copies * _UP
    if not epsilon < 700:
        return None
    grown = math.fsum(math.exp(i * noise.epsilon) for i in range(copies)) * noise.delta * _UP
    dearer = replace(
        noise,
        sensitivity=noise.sensitivity * copies,
        mu=noise.mu * copies * _UP,
        epsilon=epsilon,
        delta=grown,
    )
    stated = release.stated_sensitivity * copies
    if not dearer.price.covers(dearer.actual(stated, release.size)):
        # a law that looks at more than the sensitivity
        dearer = DeclaredTotal(
            "copies", 0.0, 1.0, math.inf, math.inf, dearer.mu, epsilon, grown, noise.sampling
        )
        stated = math.inf
    told = f"times {copies}, for so often the same row is read at most (Proposition 78)"
    return replace(
        release,
        stated_sensitivity=stated,
        theorem=f"{release.theorem}; {told}",
        noise=dearer,
        winner=None,
    )
