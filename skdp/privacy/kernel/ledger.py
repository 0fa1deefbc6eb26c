# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The record of releases: statistics, prices, and reasons for the prices.

A record is plain immutable data. The meaning of a field never changes between versions; new kinds
of release get new fields. Every line is priced twice: as declared by its law, for the total, and
from its own sensitivity, noise and batches (`Noise.actual`). A line with a lower declared price is
refused. Composition, the epsilon of many lines together, comes first.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from scipy.special import bdtrc

from skdp.privacy.kernel.accounting import (
    BudgetError,
    check_delta,
    gdp_delta,
    gdp_epsilon,
    pure_mu,
    zcdp_epsilon,
)
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.mechanisms import Noise, Price

# Composition: the epsilon of many releases together, rounded up.
#
# Gaussian releases compose in closed form, pure ones by sums and by concentrated privacy.
# Everything else is composed numerically, as privacy loss distributions, by whatever stands in
# `numerical_epsilon`. It is not part of the kernel: without it, the bounds here are coarser, and
# infinite for random batches.


# so little noise that chance hides next to nothing, and losses fill long grids
_LOUD = 20.0


@dataclass(frozen=True)
class SampledCost:
    """Releases on random batches, for the accountant.

    Parameters
    ----------
    sampling, mu, adjacency : Sampling, float, {"replace-one", "zero-out"}
        Sampling of batches, sensitivity over noise, and adjacency.
    count : int
        Number of releases.
    """

    sampling: Sampling
    mu: float
    adjacency: str
    count: int


Priced = Sequence[tuple[float, float, int]]
Numerical = Callable[
    [float, tuple[tuple[float, float, int], ...], float, tuple[SampledCost, ...]], float
]

#: Composes (mu, priced, delta, sampled) if there is no closed form; ``skdp.privacy`` puts that of
#: ``laws/loss_distributions.py`` here. It must return an upper bound; nothing known is infinite.
numerical_epsilon: Numerical = lambda mu, priced, delta, sampled: math.inf  # noqa: E731


def compose_epsilon(
    mu: float,
    priced: Priced,
    delta: float,
    sampled: Sequence[SampledCost] = (),
    rho: float = math.inf,
) -> float:
    """Return the epsilon, at `delta`, of adaptively composed releases, rounded up.

    `mu` stands for all Gaussian releases (0 for none), `priced` for triples (epsilon,
    delta, count), `sampled` for releases on random batches, `rho` for the zCDP parameter
    of all of them together (infinite if none is known). Gaussian releases alone compose
    exactly; priced releases alone are summed. Everything else is composed by privacy loss
    distributions, each priced release standing for its worst case (randomised response,
    broken with probability delta); the best of that, of the plain sum and of what `rho`
    implies is returned.
    """
    if sampled:
        if delta == 0:
            return math.inf
        # close parameters share one computation; up means more privacy loss
        costs = tuple(replace(c, mu=round_up(c.mu)) for c in sampled)
        if max(c.mu for c in costs) > _LOUD and all(
            c.sampling.kind != "with-replacement" for c in costs
        ):
            return _loud_epsilon(mu, priced, delta, costs)
        return numerical_epsilon(mu, tuple(priced), delta, costs)
    total = sum_up((epsilon, count) for epsilon, _, count in priced)
    broken = sum_up((part, count) for _, part, count in priced)
    # an ulp less, in case the difference was rounded up
    left = delta - broken if broken == 0 else (delta - broken) * (1 - 1e-15)
    if left < 0:
        return math.inf
    plain = sum_up([(total, 1), (gdp_epsilon(mu, left), 1)])
    if not priced or delta == 0:
        return plain
    best = min(plain, zcdp_epsilon(rho, delta))
    alone = sum(count for _, _, count in priced) == 1
    # next to one priced release, a little Gaussian noise leaves nothing to be gained
    if mu == 0 or (alone and plain < 1.02 * total):
        return best
    return min(best, numerical_epsilon(mu, tuple(priced), delta, ()))


def most_participations(n_rounds: int, rate: float, delta: float) -> int:
    """Return the least k >= 1 such that a row reports more than k times with chance <= delta.

    Parameters
    ----------
    n_rounds, rate : int, float
        Rounds, and the probability of taking part in one, independently of the others.
    delta : float
        In [0, 1).
    """
    low, high = 0, n_rounds
    # a smaller probability could vanish, and it is not zero
    while delta > 1e-300 and high - low > 1:
        middle = (low + high) // 2
        if bdtrc(middle, n_rounds, rate) * (1 + 1e-9) <= delta:
            high = middle
        else:
            low = middle
    return high


def _loud_epsilon(
    mu: float,
    priced: Priced,
    delta: float,
    sampled: Sequence[SampledCost],
) -> float:
    """Return a bound for releases with so little noise that batches are no secret.

    Neighbours draw the same batches. If all of these were told, a row would pay for those it is
    in, for more of which than are counted it pays with delta.
    """
    mus, share = [(mu, 1)], delta / 2 / len(sampled)
    for cost in sampled:
        # the sensitivity is the norm of one contribution, and neighbours may have opposite ones
        far = 2.0 if (cost.sampling.kind, cost.adjacency) == ("poisson", "replace-one") else 1.0
        mus.append((far * cost.mu, most_participations(cost.count, cost.sampling.rate, share)))
    return compose_epsilon(total_mu(mus), priced, delta / 2 * (1 - 1e-12))


def total_rho(mu: float, pure: Iterable[tuple[float, int, bool]]) -> float:
    """Return the zCDP parameter of Gaussian and purely private releases, rounded up.

    `mu` stands for all Gaussian releases, `pure` for triples (epsilon, count, drawn). A
    release that was drawn by the exponential mechanism has a privacy loss within an interval
    of length epsilon, others within one of length 2 epsilon; one of length r costs r^2 / 8.
    """
    exact = Fraction(mu) ** 2 / 2
    for epsilon, count, drawn in pure:
        exact += count * (Fraction(epsilon) * (1 if drawn else 2)) ** 2 / 8
    if exact > 10**300:
        return math.inf
    rho = float(exact)
    return math.nextafter(rho, math.inf) if rho < exact else rho


def sum_up(terms: Iterable[tuple[float, int]]) -> float:
    """Return the sum of count * value for pairs (value, count), rounded up."""
    try:
        exact = sum((Fraction(value) * count for value, count in terms), Fraction(0))
        total = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(total, math.inf) if total < exact else total


def total_mu(mus: Sequence[tuple[float, int]]) -> float:
    """Return sqrt(sum of count * mu^2) for pairs (mu, count), rounded up."""
    if len(mus) == 1 and mus[0][1] == 1:
        return mus[0][0]
    return math.hypot(*(mu * math.sqrt(count) for mu, count in mus)) * (1 + 1e-15)


def round_up(mu: float) -> float:
    """Return a parameter rounded up to a mantissa of 30 bits."""
    mantissa, exponent = math.frexp(mu)
    return math.ldexp(math.ceil(mantissa * 2**30) / 2**30, exponent)


def report_epsilon(
    always: Sequence[tuple[float, float, int]],
    by_chance: Sequence[tuple[float, int, float]],
    delta: float,
) -> float:
    """Return the epsilon, at `delta`, of all reports of one row together, rounded up.

    `always` are triples (price, 0, count) of reports that every row makes, `by_chance` triples
    (price, count, probability) of rounds in which a row may take part.

    Who takes part does not depend on the data. Given that a row reports at most k times, its
    reports compose like k of them; that it does so more often has a probability, which counts
    as delta. All of delta may go there, or half of it and the rest into composition.
    """
    best = math.inf
    for share in (1.0, 0.5) if by_chance and delta else (0.0,):
        spare = delta * share / max(len(by_chance), 1) * (1 - 1e-12)
        priced = [*always]
        priced += [(e, 0.0, most_participations(n, rate, spare)) for e, n, rate in by_chance]
        best = min(best, compose_epsilon(0.0, priced, delta * (1 - share)))
    return best


# One line: a kind of release.


ADJACENCIES = ("replace-one", "zero-out", "add-remove", "local")


@dataclass(frozen=True)
class Release:
    """One kind of release, and how many times in a row it was made.

    Parameters
    ----------
    query, size : str, int
        The statistic, and its number of coordinates.
    adjacency : {"replace-one", "zero-out", "add-remove", "local"}
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
    unit : {"row", "group"}
        What is protected: one row, or all rows of one group.
    hidden, of_reports : bool
        Whether these are local reports of which only a noisy sum was released, and whether
        this is such a sum.
    winner : Winner or None
        What a whole search consists of, for other accountants; None for anything else.
    stream : str or None
        Identity of the seeded noise, a hash of seed and purpose; None for system entropy.
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
    winner: Any = None
    stream: str | None = None

    @property
    def price(self) -> Price:
        """Price of one such release."""
        return self.noise.price


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
    return total_mu([(0.0, 1), *((r.price.mu, r.count) for r in releases)])


def _total_price(releases: list[Release]) -> float:
    return sum_up((r.price.epsilon, r.count) for r in releases)


@dataclass(frozen=True)
class Record:
    """Immutable list of releases, with their total price; `Ledger` has it in words.

    Parameters
    ----------
    releases : tuple of Release
        In order.
    assumptions : tuple of str
        Facts taken from the data and assumed public.
    budget_heads : tuple of str
        Where the charges of all this stand in the chains of shared budgets; empty without one.
    """

    releases: tuple[Release, ...] = ()
    assumptions: tuple[str, ...] = ()
    budget_heads: tuple[str, ...] = ()

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
        """What is protected: "row", or "group" for all rows of one; None if empty."""
        return self.releases[0].unit if self.releases else None

    @property
    def seeded(self) -> bool:
        """Whether any noise can be reproduced from a `random_state`."""
        return any(release.seeded for release in self.releases)

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of all full Gaussian releases, for the row that pays most."""
        gaussian = [r for r in self._seen if r.price.mu and not r.price.by_chance]
        if not any(r.rows for r in gaussian):
            return total_mu([(r.price.mu, r.count) for r in gaussian])
        return total_mu([(most, 1) for most in _dearest(gaussian, _total_mu)])

    @property
    def rho(self) -> float:
        """Parameter of zCDP of all releases; infinite with random batches, or prices in delta."""
        if any(r.price.by_chance or r.price.delta for r in self._seen):
            return math.inf
        pure = [r for r in self._seen if not r.price.mu]
        costs = [(r.price.epsilon, r.count, r.price.bounded_range) for r in pure]
        return total_rho(self.mu, costs)

    @property
    def gdp(self) -> float:
        """Gaussian-DP parameter of all releases; infinite with random batches, or delta."""
        if any(r.price.by_chance or r.price.delta for r in self._seen):
            return math.inf
        pure = [(pure_mu(r.price.epsilon), r.count) for r in self._seen if not r.price.mu]
        return total_mu([(self.mu, 1), *pure])

    def _priced(self) -> list[tuple[float, float, int]]:
        return [(r.price.epsilon, r.price.delta, r.count) for r in self._seen if not r.price.mu]

    def _sampled(self) -> tuple[SampledCost, ...]:
        return tuple(
            SampledCost(r.price.sampling, r.price.mu, r.adjacency, r.count)
            for r in self._seen
            if r.price.mu and r.price.sampling and r.price.by_chance
        )

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the epsilon of all public releases, rounded up.

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
        """Return the epsilon of the reports towards their receivers, rounded up.

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

    def append(self, release: Release) -> Self:
        """Return a new record with one more release, if its price is at most the declared one."""
        actual = release.noise.actual(release.stated_sensitivity, release.size)
        if not release.price.covers(actual):
            raise BudgetError(
                f"{release.query!r} declares the price {release.price} and costs {actual}: its "
                "noise is not the one that was paid for."
            )
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

    def assume(self, *assumptions: str) -> Self:
        """Return a new record that lists further assumptions."""
        return replace(self, assumptions=tuple(dict.fromkeys(self.assumptions + assumptions)))

    def charged_as(self, charge: Any) -> Self:
        """Return a new record with the head of a charge, if any."""
        heads = (*self.budget_heads, getattr(charge, "head", None))
        return replace(self, budget_heads=tuple(filter(None, heads)))


def _epsilon_of_reports(reports: list[Release], delta: float) -> float:
    """Return the epsilon of local reports, for the row that pays most."""
    chance = [r for r in reports if r.price.by_chance]
    always = [r for r in reports if not r.price.by_chance]
    rates = [(r.price.epsilon, r.count, r.price.sampling.rate) for r in chance if r.price.sampling]
    if any(r.rows for r in always):
        prices = [(most, 0.0, 1) for most in _dearest(always, _total_price)]
    else:
        prices = [(r.price.epsilon, 0.0, r.count) for r in always]
    return report_epsilon(prices, rates, delta)
