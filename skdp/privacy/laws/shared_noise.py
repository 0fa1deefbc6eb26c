# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise in shares: independent integers from many parties, with a Gaussian sum.

With secure aggregation, nobody sees a sum without noise, so nobody can add the noise afterwards.
Everybody adds a share: a discrete Gaussian variable, an integer x with probability proportional to
``exp(-x^2 / (2 s^2))``, in whole steps of a public grid (P. Kairouz, Z. Liu and T. Steinke, "The
distributed discrete Gaussian mechanism for federated learning with secure aggregation", ICML
2021). The sum of m shares is nearly, not exactly, discrete Gaussian.

Its price is Proposition 98 of the guide. The sum of m shares or more, modulo anything, on a vector
of integers that neighbours move by at most D in l2, is (D mu)-GDP with

    mu^2 = 6 (1 - sqrt(1 - c / 3)),    c = 1 / (m s^2) + 9 m exp(-pi^2 s^2),

that is ``1 / (s sqrt(m))`` but for far digits, if c is at most 1/2. So discrete noise is priced
like continuous noise, without its own delta, and releases of both kinds compose.

`discrete_gaussian` is exact: C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for
differential privacy", NeurIPS 2020, Algorithm 3, with float arithmetic that decides where it surely
can, and 100 digits where it cannot.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.accounting import check_mu
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK, Noise, Price, Sensitivity, Source, Values
from skdp.privacy.kernel.samplers import _DIGITS, Bits, Integers, geometric
from skdp.privacy.laws.additive import Additive
from skdp.privacy.laws.calibration import ROUND_UP

#: standard deviation of a share in grid steps, at least: the sum is discrete Gaussian to 38 digits
SMALLEST_SHARE = 3.0
# words with fewer bits are too coarse for floats, and so is a comparison closer than that
_FEW_BITS, _CLOSE = 2**43, 1e-11


def discrete_gaussian(scale: float, size: int, bits: Bits) -> Integers:
    """Draw integers x with probability proportional to exp(-x^2 / (2 scale^2)), exactly.

    Parameters
    ----------
    scale, size, bits : float, int, Bits
        Scale in [1, 2^26], number of draws, source.

    Returns
    -------
    noise : ndarray of int64, shape (size,)
        Independent draws.
    """
    if not 1 <= scale <= 2**26:
        raise ValueError(f"scale must be in [1, 2**26] grid steps; got {scale!r}.")
    width, found = math.floor(scale) + 1, np.zeros(0, dtype=np.int64)
    while len(found) < size:
        n_tries = 2 * (size - len(found)) + 16
        # a discrete Laplace variable: 0 is not to be drawn with either sign
        magnitude = geometric(float(width), n_tries, bits)
        words = bits.words(2 * n_tries)
        negative = (words[:n_tries] & np.uint64(1)).astype(bool)
        kept = _survives(magnitude, scale, width, words[n_tries:], bits)
        kept &= ~(negative & (magnitude == 0))
        found = np.append(found, np.where(negative, -magnitude, magnitude)[kept])
    return found[:size]


def _survives(
    magnitude: Integers, scale: float, width: int, words: NDArray[np.uint64], bits: Bits
) -> NDArray[np.bool_]:
    """Return whether uniform variables are below exp(-(|x| - scale^2 / width)^2 / (2 scale^2))."""
    exponent = (magnitude - scale * scale / width) ** 2 / (2 * scale * scale)
    # u in (0, 1), of which the first 64 bits are known
    reached = -np.log((words.astype(np.float64) + 0.5) * 2.0**-64)
    kept: NDArray[np.bool_] = reached > exponent
    near = np.abs(reached - exponent) <= _CLOSE * (1 + exponent)
    for i in np.flatnonzero(near | (words < _FEW_BITS)):
        kept[i] = _resolved(int(magnitude[i]), scale, width, int(words[i]), bits)
    return kept


def _resolved(magnitude: int, scale: float, width: int, word: int, bits: Bits) -> bool:
    """Decide one comparison, with as many bits as needed."""
    with localcontext(Context(prec=_DIGITS, Emin=-(10**6), Emax=10**6)):
        square, length = Decimal(scale) ** 2, 64
        limit = (-((magnitude - square / width) ** 2) / (2 * square)).exp()
        error = limit * Decimal(10) ** (10 - _DIGITS)
        while True:
            unit = Decimal(2) ** -length
            if (word + 1) * unit <= limit - error:
                return True
            if word * unit >= limit + error:
                return False
            word, length = (word << 64) | int(bits.words(1)[0]), length + 64


def unit_mu(share: float, n_shares: int) -> float:
    """Return the Gaussian-DP parameter of a sum of shares for integers that move by 1.

    Parameters
    ----------
    share, n_shares : float, int
        Standard deviation of a share in steps, and number of shares.

    Returns
    -------
    mu : float
        Rounded up; infinite where Proposition 98 says nothing.
    """
    if not (n_shares >= 1 and SMALLEST_SHARE <= share < math.inf):
        return math.inf
    curved = 1 / (n_shares * share * share) + 9 * n_shares * math.exp(-((math.pi * share) ** 2))
    if curved > 0.5:
        return math.inf
    # 6 (1 - sqrt(1 - c / 3)) without cancellation
    return math.sqrt(2 * curved / (1 + math.sqrt(1 - curved / 3))) * ROUND_UP


@dataclass(frozen=True)
class SharedNoise(Noise):
    """Gaussian noise that is the sum of discrete shares.

    Parameters
    ----------
    n_shares : int, default=1
        Shares that are surely there; more are more noise. `scale` is that of so many.
    """

    n_shares: int = 1

    @property
    def share(self) -> float:
        """Standard deviation of one share, in grid steps."""
        return self.scale / self.grid / math.sqrt(self.n_shares)

    def actual(self, stated: float, size: int) -> Price:
        """Return the price: what integers move by, times the parameter of a move by 1."""
        if self.law != "gaussian" or self.threshold is not None or not self.is_usable:
            return Price(mu=math.inf)
        moved = stated * (1 + FLOAT_SLACK) / self.grid + math.sqrt(size)
        return Price(mu=moved * unit_mu(self.share, self.n_shares))

    def rounded(self, size: int, bits: Bits) -> Integers:
        """Draw as many shares as are surely there, and return their sum, in whole grid steps."""
        total = np.zeros(size, dtype=np.int64)
        # as many at a time as memory has room for
        step = max(1, (1 << 20) // size)
        for start in range(0, self.n_shares, step):
            n_shares = min(step, self.n_shares - start)
            drawn = discrete_gaussian(self.share, n_shares * size, bits)
            total += drawn.reshape(n_shares, size).sum(axis=0)
        return total


@dataclass(frozen=True)
class SharedGaussianMechanism(Additive):
    """Noise in shares such that the sum of `n_shares` of them costs `mu`.

    Rows that add their shares themselves have a method `noisy_sum`, which returns the sum in whole
    grid steps with the noise in it; for others so many shares are drawn here.

    Parameters
    ----------
    mu : float
        Price of one release, a Gaussian-DP parameter.
    grid : float
        Step of the public grid, a power of two.
    n_shares : int
        Shares that are there whoever fails to answer.

    Examples
    --------
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> noise = SharedGaussianMechanism(mu=0.5, grid=2.0**-12, n_shares=20).calibrate(unit, size=3)
    >>> round(noise.scale, 2), round(noise.share)
    (2.0, 1833)
    """

    mu: float
    grid: float
    n_shares: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_mu(self.mu))

    def calibrate(self, sensitivity: Sensitivity, size: int) -> SharedNoise:
        """Return the noise: the least shares whose sum costs mu, to nine digits."""
        grid, bound = self.grid, sensitivity.bound
        moved = sensitivity.l2 * (1 + FLOAT_SLACK) / grid + math.sqrt(size)
        wanted = (self.mu / moved) ** 2
        # the inverse of Proposition 98, a little more for what it leaves out
        share = math.sqrt((1 + 1e-9) / (wanted * (1 - wanted / 12)) / self.n_shares)
        if not (wanted < 0.4 and SMALLEST_SHARE <= share <= 2**26 and 0 < bound / grid < 2**51):
            raise ValueError(
                "the grid is too coarse, or too fine, for so many shares of so much noise; got "
                f"grid={grid!r} and {self.n_shares} shares."
            )
        scale = share * grid * math.sqrt(self.n_shares)
        paid, n_shares = moved * grid, self.n_shares
        made = SharedNoise("gaussian", scale, grid, paid, bound, self.mu, 0.0, n_shares=n_shares)
        if not made.actual(sensitivity.l2, size).mu <= self.mu:
            raise ValueError("too many shares for their size.")
        return made

    def release(self, query: Any, noise: Noise, source: Source) -> Values:
        """Evaluate the statistic and add the noise, unless the rows have added it."""
        rows = source.read()
        if hasattr(rows, "noisy_sum"):
            steps = mechanisms.shaped(query, rows.noisy_sum(query, noise))
            return np.asarray(steps * noise.grid)
        values = mechanisms.shaped(query, query.evaluate(rows))
        return mechanisms.add_noise(values, noise, source.bits)
