# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Composition: the epsilon of many releases together, rounded up.

Gaussian releases compose in closed form, pure ones by sums and by concentrated privacy.
Everything else is composed numerically, as privacy loss distributions, by whatever stands in
`numerical_epsilon`. It is not part of the kernel: without it, the bounds here are coarser, and
infinite for random batches.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from scipy.special import bdtrc

from skdp.privacy.kernel.accounting import gdp_epsilon, zcdp_epsilon
from skdp.privacy.kernel.batches import Sampling

# so little noise that chance hides next to nothing, and losses fill long grids
_LOUD = 20.0


@dataclass(frozen=True)
class SampledCost:
    """Releases on random batches, as the accountant sees them.

    Parameters
    ----------
    sampling, mu, adjacency : Sampling, float, {"replace-one", "zero-out"}
        How batches are drawn, sensitivity over noise, and what is promised.
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
    """Return the least k, at least 1, of more than which a row reports with chance <= delta.

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
