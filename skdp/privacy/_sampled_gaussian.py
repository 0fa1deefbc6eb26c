# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian noise on a sum over a random batch, and how much of it a budget asks for."""

import math
from dataclasses import dataclass
from functools import lru_cache

from skdp.privacy._accounting import SampledCost, compose_epsilon, gdp_mu
from skdp.privacy._mechanisms import GaussianMechanism, Noise, Sensitivity
from skdp.privacy._sampling import Sampling

# how close to the budget a calibration ends, as a share of the noise
_CLOSE = 2e-4
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


@lru_cache(maxsize=512)
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
        Found by bisection on composed privacy loss distributions, to 2 parts in 10^4. The
        result is kept: the same question is answered at once the next time.

    Raises
    ------
    ValueError
        If the budget is too small for any noise that floats can hold.
    """
    gdp_mu(epsilon, delta)  # raises for what is no budget

    def fits(value: float) -> bool:
        cost = SampledCost(sampling, value, adjacency, n_releases)
        return compose_epsilon(mu, priced, delta, (cost,)) <= epsilon

    # what sampling can gain at most bounds the search from above, full batches from below
    guess = _limit_guess(epsilon, delta, sampling, n_releases, adjacency)
    low, high = guess, guess
    while not fits(low):
        low, high = low * 0.8, low
        if low < _SMALLEST:
            raise ValueError(
                f"the budget epsilon={epsilon!r}, delta={delta!r} is too small for "
                f"{n_releases} releases: use fewer steps, larger batches, or a larger budget."
            )
    while high == low or fits(high):
        low, high = high, high * 1.15
        if high > _LARGEST:
            return _coarse(low)
    while high / low > 1 + _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _coarse(low)


def _coarse(mu: float) -> float:
    """Return the parameter a little below a number of 30 bits, to which costs are rounded up."""
    mantissa, exponent = math.frexp(mu)
    return math.ldexp(math.floor(mantissa * 2**30) / 2**30, exponent) * (1 - 1e-12)


def _limit_guess(
    epsilon: float, delta: float, sampling: Sampling, n_releases: int, adjacency: str
) -> float:
    """Return a first guess, from the central limit of the composition (Dong et al. 2022)."""
    total = gdp_mu(epsilon, delta)
    if adjacency == "replace-one" and sampling.kind == "poisson":
        total /= 2
    ratio = total / max(sampling.rate, 1e-300) / math.sqrt(n_releases)
    return min(max(math.sqrt(math.log1p(ratio * ratio)), 10 * _SMALLEST), _LARGEST / 2)
