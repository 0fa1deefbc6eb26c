# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian noise on a sum over a random batch, and how much of it a budget asks for."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from skdp.privacy.kernel.accounting import gdp_mu
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.composition import SampledCost, compose_epsilon, total_mu
from skdp.privacy.kernel.mechanisms import GaussianMechanism, Noise, Sensitivity

# how close to the budget a calibration ends, as a share of epsilon or of the noise
_CLOSE = 3e-4
_SMALLEST, _LARGEST = 1e-6, 60.0


@dataclass(frozen=True)
class SampledGaussianMechanism:
    """Gaussian noise on a sum over the rows of a batch that is drawn anew every time.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation, the sensitivity being the norm of one row's
        contribution for Poisson batches, and the distance of two contributions otherwise.
        Without sampling a release would be `mu`-GDP.
    sampling : Sampling
        How the batch is drawn.

    See Also
    --------
    sampled_mu : The largest `mu` for a number of releases.

    Examples
    --------
    >>> sampling = Sampling("poisson", n_rows=1000, batch_size=10)
    >>> mechanism = SampledGaussianMechanism(mu=0.5, sampling=sampling)
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> round(mechanism.calibrate(unit, size=3).scale, 4)
    2.0
    """

    mu: float
    sampling: Sampling

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: sigma = (S + g sqrt(k)) / mu."""
        plain = GaussianMechanism(self.mu).calibrate(sensitivity, size)
        return Noise(**{**vars(plain), "sampling": self.sampling})


def sampled_mu(
    epsilon: float,
    delta: float,
    *,
    sampling: Sampling,
    n_releases: int,
    adjacency: str,
    mu: float = 0.0,
    priced: tuple[tuple[float, float, int], ...] = (),
) -> float:
    """Return the largest `mu` of `SampledGaussianMechanism` that a budget allows.

    Parameters
    ----------
    epsilon, delta : float
        Budget of everything: in nats, and in (0, 1).
    sampling, n_releases, adjacency : Sampling, int, {"replace-one", "zero-out"}
        How batches are drawn, how often, and what is promised.
    mu, priced : float, tuple of (float, float, int)
        What else is released: total Gaussian-DP parameter, and (epsilon, delta, count).

    Returns
    -------
    mu : float
        Found on composed privacy loss distributions, to 3 parts in 10^4. The result is kept:
        the same question is answered at once the next time.

    Raises
    ------
    ValueError
        If the budget is too small for any noise that floats can hold.
    """
    parts = (SampledCost(sampling, 1.0, adjacency, n_releases),)
    return sampled_mus(epsilon, delta, parts, mu, tuple(priced))[0]


@lru_cache(maxsize=512)
def sampled_mus(
    epsilon: float,
    delta: float,
    parts: tuple[SampledCost, ...],
    mu: float = 0.0,
    priced: tuple[tuple[float, float, int], ...] = (),
) -> tuple[float, ...]:
    """Return the largest parameters, in given proportions, of several kinds of releases.

    Parameters
    ----------
    epsilon, delta : float
        Budget of everything: in nats, and in (0, 1).
    parts : tuple of SampledCost
        The releases, all under one adjacency; their `mu` are the proportions.
    mu, priced : float, tuple of (float, float, int)
        What else is released.

    Returns
    -------
    mus : tuple of float
        One for every part, as `sampled_mu` finds it for one.

    Raises
    ------
    ValueError
        If the budget is too small for any noise that floats can hold.
    """
    total = gdp_mu(epsilon, delta)  # raises for what is no budget
    if mu >= total:
        raise ValueError("nothing of the budget is left: the other releases need all of it.")

    def mus(value: float) -> tuple[float, ...]:
        return tuple(_coarse(value * part.mu) for part in parts)

    def excess(value: float) -> float:
        """Return log of epsilon over budget; 0 or infinite epsilons are as far off as can be."""
        costs = [replace(part, mu=one) for part, one in zip(parts, mus(value), strict=True)]
        # the ledger has what reads all rows in closed form next to what does not
        by_chance = tuple(c for c in costs if not c.sampling.reads_all) or tuple(costs)
        full = [(cost.mu, cost.count) for cost in costs if cost not in by_chance]
        spent = compose_epsilon(total_mu([(mu, 1), *full]), priced, delta, by_chance)
        return math.log(spent / epsilon) if 0 < spent < math.inf else math.copysign(9, spent - 1)

    # secant steps on logarithms, inside a bracket, from a guess
    low, high, before = 0.0, math.inf, None
    value = _limit_guess(total, parts)
    while high > low * (1 + _CLOSE):
        gap = excess(value)
        # the ledger adds up in another rounding
        low, high = (max(low, value), high) if gap <= -1e-10 else (low, min(high, value))
        if -_CLOSE < gap <= -1e-10 or low > _LARGEST:
            break
        if high < _SMALLEST:
            raise ValueError(
                f"the budget epsilon={epsilon!r}, delta={delta!r} is too small for "
                f"{max(part.count for part in parts)} releases: use fewer steps, larger "
                "batches, or a larger budget."
            )
        slope = 1.0 if before is None else (gap - before[1]) / math.log(value / before[0])
        before = (value, gap)
        step = -(gap + _CLOSE / 2) / min(max(slope, 0.5), 8.0)
        value *= math.exp(min(max(step, -1.5), 1.5))
        if not low * (1 + _CLOSE / 4) < value < high:
            value = math.sqrt(low * high) if low and high < math.inf else value
    return mus(low)


def _coarse(mu: float) -> float:
    """Return the parameter a little below a number of 30 bits, to which costs are rounded up."""
    mantissa, exponent = math.frexp(mu)
    return math.ldexp(math.floor(mantissa * 2**30) / 2**30, exponent) * (1 - 1e-12)


def _limit_guess(total: float, parts: tuple[SampledCost, ...]) -> float:
    """Return a first guess, from the central limit of the composition (Dong et al. 2022)."""
    kinds = {part.sampling.kind for part in parts if not part.sampling.reads_all}
    if parts[0].adjacency == "replace-one" and "poisson" in kinds:
        total /= 2
    squares = ((p.sampling.rate * p.mu) ** 2 * p.count for p in parts)
    ratio = total / max(math.sqrt(math.fsum(squares)), 1e-300)
    largest = max(part.mu for part in parts)
    guess = math.sqrt(math.log1p((ratio * largest) ** 2)) / largest
    return min(max(guess, 10 * _SMALLEST), _LARGEST / 2)
