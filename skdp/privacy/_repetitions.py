# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How many times a search runs: three laws of a secret number of runs.

A search with a fixed number of runs pays for every run. With a random number that nobody is
told it pays for a few, whatever the mean: who sees only the winner cannot tell how many runs
it won against (Liu and Talwar 2019; Papernot and Steinke 2022).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property

from skdp.privacy._accounting import as_float, check_choice, first
from skdp.privacy._bits import Bits

#: the laws, and the shape of the truncated negative binomial law that each one is
LAWS = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
# beyond, nobody waits for the runs
_MOST = 1e6


@dataclass(frozen=True)
class Repetitions:
    """The law of a secret number K of runs.

    Parameters
    ----------
    law : {"logarithmic", "geometric", "poisson"}
        K is at least 1, but for "poisson": there it may be 0.
    expected : float
        The mean of K, in [1, 1e6].

    Raises
    ------
    ValueError
        If the law is unknown or the mean is out of range.

    Examples
    --------
    >>> runs = Repetitions("geometric", expected=20)
    >>> runs.gamma, round(runs.probability(1), 3)
    (0.05, 0.05)
    """

    law: str
    expected: float

    def __post_init__(self) -> None:
        check_choice("law", self.law, LAWS)
        expected = as_float(self.expected)
        if not 1 <= expected <= _MOST:
            raise ValueError(
                f"the expected number of runs must be a number in [1, {_MOST:g}]; "
                f"got {self.expected!r}."
            )
        object.__setattr__(self, "expected", expected)

    @property
    def eta(self) -> float:
        """Shape of the truncated negative binomial law; infinite for "poisson"."""
        return LAWS[self.law]

    @cached_property
    def gamma(self) -> float:
        """Parameter in (0, 1] of the truncated negative binomial law; nan for "poisson"."""
        if self.law == "poisson":
            return math.nan
        if self.expected == 1:
            return 1.0
        if self.law == "geometric":
            return 1 / self.expected
        # with x = log(1 / gamma) the mean is (e^x - 1) / x
        return math.exp(-first(lambda x: math.expm1(x) >= self.expected * x, 1e-15))

    @cached_property
    def mean(self) -> float:
        """Mean of K at `gamma`, rounded up: `expected`, but for rounding."""
        gamma = self.gamma
        if self.law == "poisson" or gamma == 1:
            return self.expected
        exact = 1 / gamma if self.law == "geometric" else (1 - gamma) / (-math.log(gamma) * gamma)
        return exact * (1 + 1e-15)

    def probability(self, k: int) -> float:
        """Return P[K = k]."""
        gamma, poisson = self.gamma, self.law == "poisson"
        if k < 0 or (k == 0 and not poisson):
            return 0.0
        if poisson:
            log = k * math.log(self.expected) - self.expected - math.lgamma(k + 1)
            return math.exp(log)
        if gamma == 1:
            return float(k == 1)
        if self.law == "geometric":
            return gamma * math.exp((k - 1) * math.log1p(-gamma))
        return math.exp(k * math.log1p(-gamma)) / (-k * math.log(gamma))

    def generating(self, s: float) -> float:
        """Return E[s^K], for s in [0, 1]."""
        gamma = self.gamma
        if self.law == "poisson":
            return math.exp(self.expected * (s - 1))
        if gamma == 1:
            return s
        if self.law == "geometric":
            return gamma * s / (1 - (1 - gamma) * s)
        return math.log1p((gamma - 1) * s) / math.log(gamma)

    def number(self, bits: Bits) -> int:
        """Return K, drawn exactly: from as many random bits as it takes.

        Parameters
        ----------
        bits : Bits
            Source of random bits.

        Returns
        -------
        k : int
            The first number at which the distribution function exceeds a uniform real number:
            bits and digits are added until no boundary is too near.
        """
        if self.gamma == 1:
            return 1
        word, width, digits = 0, 0, 60
        while True:
            for extra in bits.words(digits // 15).tolist():
                word, width = (word << 64) | extra, width + 64
            with localcontext(Context(prec=digits, Emin=-(10**8), Emax=10**8)):
                low, high = (Decimal(word + i) * Decimal(2) ** -width for i in (0, 1))
                # far above all roundings: a few units in the last digit for each of K terms
                error = Decimal(10) ** (20 - digits)
                total, nothing = Decimal(0), Decimal(10) ** -digits
                for k, term in self._terms():
                    total += term
                    if low - error < total:
                        if high + error < total:
                            return k
                        break
                    if term < nothing and k > self.expected:
                        break
            digits *= 2

    def _terms(self) -> Iterator[tuple[int, Decimal]]:
        """Yield (k, P[K = k]) in the digits of the decimal context."""
        if self.law == "poisson":
            k, mean = 0, Decimal(self.expected)
            term = (-mean).exp()
            while True:
                yield k, term
                k += 1
                term = term * mean / k
        gamma = Decimal(self.gamma)
        k, ratio, geometric = 1, 1 - gamma, self.law == "geometric"
        power = gamma if geometric else -ratio / gamma.ln()
        while True:
            yield k, power if geometric else power / k
            k += 1
            power *= ratio
