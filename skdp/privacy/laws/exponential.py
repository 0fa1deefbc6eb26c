# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exponential mechanism: draws with probability proportional to exp(-score / temperature).

If the change of the score between neighbours, as a function of the output, stays within an
interval of length `spread`, temperature ``spread / epsilon`` makes one draw epsilon-DP, with a
privacy loss within an interval of length epsilon: the density changes by the factor
exp(-change / temperature), its integral by a mean of that factor (McSherry and Talwar 2007).

On a list, the drawn index is the inverse of the cumulative weights at ``u * total``, with a
uniform real number u; its bits are drawn as needed. The first 64 bits and floating point decide,
unless a boundary is nearer than a bound on all errors. Then decimal arithmetic makes the same
decision, with more bits and digits until no boundary is too near.
"""

import math
from bisect import bisect_right
from decimal import Context, Decimal, localcontext
from functools import cache, cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.mechanisms import (
    FLOAT_SLACK,
    Noise,
    Price,
    Sensitivity,
    Source,
    Values,
    shaped,
)
from skdp.privacy.kernel.samplers import Bits
from skdp.privacy.laws.additive import PureMechanism
from skdp.privacy.laws.calibration import ROUND_UP

# a drawn output lies on the grid bound / 2^32
_DRAWN_BITS = 32
# Relative error of a float weight, in units of 2^-52: rate * step <= 745 (else exp
# underflows) is rounded twice, exp and the product are a few units off. A weight that
# underflows is below 2^52 * 2^-1074, nothing against a total of at least 1.
_PER_WEIGHT = 1024
_UNIT = 2.0**-52


def _choose_exactly(
    counts: NDArray[Any], steps: NDArray[Any], rate: float, word: int, bits: Bits
) -> int:
    """Return the index where u falls; `word` is its first 64 bits, the least step is 0."""
    width, digits, slope = 64, 60, Decimal(float(rate))
    while True:
        for extra in bits.words(digits // 15).tolist():
            word, width = (word << 64) | extra, width + 64
        with localcontext(Context(prec=digits, Emin=-(10**8), Emax=10**8)):
            decays, decay, last = {}, Decimal(1), 0
            factor = cache(lambda gap: (-slope * gap).exp())
            for step in np.unique(steps).tolist():
                # steps beyond have a decay below 10^(-4 digits), and count as nothing
                if slope * step > 10 * digits:
                    break
                decay *= factor(step - last)
                decays[step], last = decay, step
            pairs = zip(counts.tolist(), steps.tolist(), strict=True)
            ends = list(accumulate(Decimal(c) * decays.get(s, 0) for c, s in pairs))
            # far above all roundings: 4 per index, and 10 * digits in the exponents
            error = ends[-1] * Decimal(10) ** (20 - digits)
            low, high = (ends[-1] * (word + i) * Decimal(2) ** -width for i in (0, 1))
            index = bisect_right(ends, low - error)
            if index < len(ends) and high + error < ends[index]:
                return index
        digits *= 2


def weighted_choice(counts: NDArray[Any], steps: NDArray[Any], rate: float, bits: Bits) -> int:
    """Draw an index j with probability exactly proportional to counts[j] exp(-rate steps[j]).

    Parameters
    ----------
    counts, steps : ndarray of shape (n,)
        Integers: floats or integers in [0, 2^52], and non-negative int64.
    rate, bits : float, Bits
        Non-negative, an exact real number; source of random bits. ValueError is raised if an
        argument is out of range, or every count is 0.
    """
    if not (len(counts) == len(steps) > 0 and counts.min() >= 0 and 0 < counts.max() <= 2**52):
        raise ValueError("counts must be numbers in [0, 2**52], one at least positive.")
    if not (0 <= rate < math.inf and steps.min() >= 0):
        raise ValueError(f"rate and steps must be non-negative and finite; got rate={rate!r}.")
    # in place from here on: there may be millions
    steps = steps - steps[counts > 0].min()
    np.maximum(steps, 0, out=steps)
    # sums of sums, whose rounding errors grow with the square root of n only
    columns = math.isqrt(len(steps) - 1) + 1
    table = np.zeros((-(-len(steps) // columns), columns))
    with np.errstate(over="ignore", under="ignore"):
        weights = np.multiply(steps, -rate)
        np.multiply(np.exp(weights, out=weights), counts, out=weights)
    table.reshape(-1)[: len(steps)] = weights
    rows = np.append(0.0, np.cumsum(table.sum(axis=1)))
    word = int(bits.words(1)[0])
    target = (word + 0.5) * 2.0**-64 * rows[-1]
    row = min(int(np.searchsorted(rows, target, "right")), len(table)) - 1
    ends = np.cumsum(np.append(rows[row], table[row]))
    column = int(np.searchsorted(ends, target, "right")) - 1
    # for the errors of a boundary and of the total, which is in the target
    margin = 2 * (_PER_WEIGHT + len(table) + columns) * _UNIT * rows[-1]
    if 0 <= column < columns and ends[column] + margin < target < ends[column + 1] - margin:
        return row * columns + column
    return _choose_exactly(counts, steps, rate, word, bits)


# Floating-point random variates for samplers that have no exact discrete form.
#
# Releases that rest on these say "idealised" on the ledger: their privacy proof is
# about real numbers, and floats only come close. Additive noise never uses them.


Floats = NDArray[np.float64]


class Variates:
    """Independent floats of standard laws, each made from one 64-bit word.

    Parameters
    ----------
    bits : Bits
        Source of random words.
    """

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    @property
    def bits(self) -> Bits:
        """The source of random words."""
        return self._bits

    def uniform(self, size: int) -> Floats:
        """Return floats in the open interval (0, 1), uniform to 2^-64."""
        words = self._bits.words(size)
        # the largest words round to 1.0, which is outside
        u = (words.astype(np.float64) + 0.5) * 2.0**-64
        return np.minimum(u, 1 - 2.0**-53)

    def exponential(self, size: int) -> Floats:
        """Return standard exponential floats, all positive."""
        return np.maximum(-np.log(self.uniform(size)), 2.0**-64)

    def gumbel(self, size: int) -> Floats:
        """Return standard Gumbel floats; the largest of w_i + g_i has index i w.p. ~ exp(w_i)."""
        return -np.log(self.exponential(size))


def drawing_source(query: Any, bits: Bits) -> Any:
    """Return the source of randomness for a query: floats or bits."""
    return Variates(bits) if query.idealised else bits


class DrawnNoise(Noise):
    """The temperature of a draw, as the scale of the noise."""

    @cached_property
    def price(self) -> Price:
        """The declared price; its privacy loss has a bounded range."""
        return Price(epsilon=self.epsilon, bounded_range=True)

    def actual(self, stated: float, size: int) -> Price:
        """Return the price: spread over temperature; draws at an infinite one are uniform."""
        if self.scale == math.inf and 0 < self.grid < math.inf:
            return Price(bounded_range=True)
        return Price(epsilon=self.loudness(stated, 0.0), bounded_range=True)


class ExponentialMechanism(PureMechanism):
    """A draw with probability proportional to ``exp(-score / temperature)``.

    A query has ``draw(rows, noise, source)``, a draw at the temperature ``noise.scale``, and
    `idealised`, whether it takes `Variates` (floats) or `Bits` for it. Audits call
    ``outcomes(*sides)``, which returns outcomes of shape (m, size) that represent all outcomes on
    the rows of several data sets, and the number that each represents, or None for a continuum;
    and ``scores_of(rows, outcomes)``, their scores up to a constant.

    Parameters
    ----------
    epsilon : float
        Price of one draw, a pure epsilon in nats.

    Examples
    --------
    >>> facts = Sensitivity(float("inf"), float("inf"), 1.0, "example", spread=2.0)
    >>> round(ExponentialMechanism(epsilon=0.5).calibrate(facts, size=1).scale, 4)
    4.0
    """

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the temperature, as the scale of the noise."""
        spread, bound = sensitivity.spread, sensitivity.bound
        if not (0 < spread < math.inf and 0 < bound < math.inf):
            raise ValueError("a query that is drawn must state a finite spread and bound.")
        paid = spread * (1 + FLOAT_SLACK)
        # coarse enough to hide the last digits of a sampler that works in floats
        grid = math.ldexp(1.0, math.ceil(math.log2(bound)) - _DRAWN_BITS)
        scale = paid / self.epsilon * ROUND_UP
        return DrawnNoise("exponential", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)

    def stated(self, sensitivity: Sensitivity) -> float:
        """Return the spread of the score."""
        return sensitivity.spread

    def release(self, query: Any, noise: Noise, source: Source) -> Values:
        """Draw an output, and put it on the grid."""
        drawn = query.draw(source.read(), noise, drawing_source(query, source.bits))
        snapped: Values = mechanisms.align(shaped(query, drawn), noise) * noise.grid
        return snapped
