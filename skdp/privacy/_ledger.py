# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The ledger: what was released, at what price, and why that price is right.

A ledger is plain immutable data. The meaning of a field never changes between
versions; new kinds of release get new fields.
"""

import html
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from skdp.privacy._accounting import check_delta, gdp_delta
from skdp.privacy._composition import SampledCost, compose_epsilon, total_mu, total_rho
from skdp.privacy._mechanisms import Noise

ADJACENCIES = ("replace-one", "zero-out")


@dataclass(frozen=True)
class Release:
    """One kind of release, and how many times in a row it was made.

    Parameters
    ----------
    query, size : str, int
        The statistic, and its number of coordinates.
    adjacency : {"replace-one", "zero-out"}
        Which data sets count as neighbours; the unit of privacy is one row.
    stated_sensitivity, theorem : float, str
        Sensitivity that the query states (l1 for Laplace noise, the spread of the score
        for a draw, l2 otherwise), and why it holds.
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

    @property
    def dp_event(self) -> Any:
        """The release as a ``dp_accounting.DpEvent``, relative to its own adjacency.

        The noise multiplier of a Gaussian event is the standard deviation over the
        actual sensitivity, so compose it as is (ADD_OR_REMOVE_ONE): an accountant that
        doubles the sensitivity for replace-one would do so twice. A pure release other
        than one Laplace draw stands as randomised response (REPLACE_ONE), its worst case
        (for many draws of the exponential mechanism the ledger itself has a better bound);
        an (epsilon, delta) release as an unsupported event, which accountants refuse.
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


def _mu_of_one_fit(releases: list[Release]) -> float:
    """Return the price of the row that pays most."""
    by_all = [(0.0, 1), *((r.noise.mu, r.count) for r in releases if r.rows is None)]
    most, reading = total_mu(by_all), list[Release]()
    # what a row pays grows only where a release begins
    for release in sorted((r for r in releases if r.rows), key=lambda r: r.rows or (0, 0)):
        start = release.rows[0] if release.rows else 0
        reading = [r for r in reading if r.rows and r.rows[1] > start] + [release]
        most = max(most, total_mu(by_all + [(r.noise.mu, r.count) for r in reading]))
    return most


def rows_read(release: Release) -> str:
    """Say which rows a release read."""
    sampling = release.noise.sampling
    if sampling is not None and release.noise.by_chance:
        return f"a batch of {sampling.batch_size:.6g}, {sampling.kind}, rate {sampling.rate:.4g}"
    return "all" if release.rows is None else "{} to {}".format(*release.rows)


def what_is_kept(noise: Noise) -> str:
    """Say which noisy values were released, if not all; begins with a comma."""
    side = "beyond" if noise.two_sided else "above"
    return "" if noise.threshold is None else f", only {side} {noise.threshold:.6g}"


def _cells(release: Release) -> dict[str, Any]:
    noise = release.noise
    price = f"mu={noise.mu:.4g}" if noise.mu else f"epsilon={noise.epsilon:.4g}"
    price += f", delta={noise.delta:.4g}" if noise.delta else ""
    price += " if all rows were read," if noise.by_chance else ""
    return {
        "query": release.query,
        "count": release.count,
        "size": release.size,
        "sensitivity": f"{noise.sensitivity:.6g}",
        "noise": f"{noise.law}, scale {noise.scale:.6g}, grid 2^{int(math.log2(noise.grid))}"
        + what_is_kept(noise),
        "price": price + " each",
        "rows": rows_read(release),
        "adjacency": release.adjacency,
        "theorem": release.theorem,
        "numerics": release.numerics,
    }


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
    def adjacency(self) -> str | None:
        """The adjacency all releases share; None for an empty ledger."""
        return self.releases[0].adjacency if self.releases else None

    @property
    def seeded(self) -> bool:
        """Whether any noise can be reproduced from a `random_state`."""
        return any(release.seeded for release in self.releases)

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of all full Gaussian releases, for the row that pays most."""
        gaussian = [r for r in self.releases if r.noise.mu and not r.noise.by_chance]
        if not any(r.rows for r in gaussian):
            return total_mu([(r.noise.mu, r.count) for r in gaussian])
        fits = {r.fit for r in gaussian}
        return total_mu([(_mu_of_one_fit([r for r in gaussian if r.fit == f]), 1) for f in fits])

    @property
    def rho(self) -> float:
        """Parameter of zCDP of all releases; infinite with random batches, or prices in delta."""
        if any(r.noise.by_chance or r.noise.delta for r in self.releases):
            return math.inf
        pure = [r for r in self.releases if not r.noise.mu]
        costs = [(r.noise.epsilon, r.count, r.noise.law == "exponential") for r in pure]
        return total_rho(self.mu, costs)

    def _priced(self) -> list[tuple[float, float, int]]:
        return [(r.noise.epsilon, r.noise.delta, r.count) for r in self.releases if not r.noise.mu]

    def _sampled(self) -> tuple[SampledCost, ...]:
        return tuple(
            SampledCost(r.noise.sampling, r.noise.mu, r.adjacency, r.count)
            for r in self.releases
            if r.noise.by_chance
        )

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the epsilon of all releases together, rounded up.

        Parameters
        ----------
        delta : float, default=0.0
            In [0, 1).

        Returns
        -------
        epsilon : float
            In nats; infinite for Gaussian noise at delta 0.
        """
        delta = check_delta(delta)
        return compose_epsilon(self.mu, self._priced(), delta, self._sampled(), self.rho)

    def fits(self, epsilon: float, delta: float) -> bool:
        """Return whether all releases together are (epsilon, delta)-DP."""
        if not self._priced() and not self._sampled():
            # the closed form, with no root to find: called before every release
            return gdp_delta(self.mu, epsilon) <= delta
        return self.epsilon(delta) <= epsilon

    def append(self, release: Release) -> "Ledger":
        """Return a new ledger with one more release; a repeat raises the last count."""
        if self.adjacency not in (None, release.adjacency):
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

        batches = [r.noise.sampling for r in self.releases if r.noise.by_chance]
        coins = any(batch is not None and batch.kind == "poisson" for batch in batches)
        reach = 2.0 if coins and self.adjacency == "replace-one" else 1.0
        return dp_accounting.ComposedDpEvent([release._event(reach) for release in self.releases])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per kind of release (needs pandas)."""
        import pandas as pd

        return pd.json_normalize([asdict(release) for release in self.releases], sep="_")

    def _notes(self) -> list[str]:
        seeded = "seeded noise: whoever knows random_state can remove it"
        return [seeded] * self.seeded + [f"assumed public: {a}" for a in self.assumptions]

    def __repr__(self) -> str:
        lines = [f"Ledger, releases: {sum(release.count for release in self.releases)}"]
        for release in self.releases:
            lines += [f"  {name:<12}{value}" for name, value in _cells(release).items()] + [""]
        return "\n".join(lines + [f"  {note}" for note in self._notes()]).rstrip()

    def _repr_html_(self) -> str:
        def tags(name: str, texts: Any) -> str:
            return "".join(f"<{name}>{html.escape(str(text))}</{name}>" for text in texts)

        rows = [_cells(release) for release in self.releases]
        body = "".join(f"<tr>{tags('td', row.values())}</tr>" for row in rows)
        head = f"<tr>{tags('th', rows[0])}</tr>" if rows else ""
        return f"<table>{head}{body}</table><ul>{tags('li', self._notes())}</ul>"
