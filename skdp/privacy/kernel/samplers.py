# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random bits, and integer noise whose distribution is exact.

`rounded_gaussian` and `rounded_laplace` return ``rint(scale * Z)`` where Z is a
standard normal or a standard (unit-scale) Laplace variable, as integers.

How. Each draw owns a stream of uniform bits, read as one real number u in
(0, 1/2) or (0, 1). The draw is a function of that real number. The first 63
bits confine u to an interval; unless the interval, widened by a bound on the
floating-point error of the inverse distribution function, contains a rounding
boundary, the float computation already decides the integer. The other draws
(about one in 10^5 on the default grid) are decided in 100-digit decimal
arithmetic against the tail probability at the boundary, with as many further
bits as it takes. The work done for a draw does not depend on its size, except
on events of probability below 2^-19.

`ndtri` is accurate to 4e-15 (tested against the decimal tail, not proved); the margin
allows 50 times that.
"""

import copy
import hashlib
import math
import os
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

# Random bits: the only module of the library that makes randomness.
#
# Everything random in skdp is a function of the 64-bit words handed out here. Two
# sources exist. `SystemBits` asks the operating system's cryptographic generator
# and is what an unseeded fit uses. `SeededBits` is a reproducible counter-based
# stream for tests and debugging; a fit that uses it is marked on its ledger,
# because equal seeds on neighbouring data cancel the noise.
#
# A source belongs to the process that made it: it refuses to be pickled or to run
# in a forked child, so that no two workers can ever share a stream.


Words = NDArray[np.uint64]


class Bits:
    """A source of independent uniform 64-bit words, tied to the process that made it."""

    seeded: bool
    origin: str
    identity: str | None = None

    def __init__(self) -> None:
        self._pid = os.getpid()

    def words(self, size: int) -> Words:
        """Return `size` fresh words; no word is ever handed out twice."""
        if os.getpid() != self._pid:
            raise RuntimeError("a source of random bits is not used in a child process.")
        return self._draw(size)

    def _draw(self, size: int) -> Words:
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of random bits cannot be pickled or copied.")


class SystemBits(Bits):
    """Words from the operating system's cryptographic generator."""

    seeded, origin = False, "system entropy"

    def _draw(self, size: int) -> Words:
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


class SeededBits(Bits):
    """A reproducible stream of words (Philox); purposes separate streams of one seed."""

    seeded, origin = True, "seeded Philox"

    def __init__(self, seed: int, purpose: str = "") -> None:
        super().__init__()
        # the seed's length goes first: no seed can run on into a purpose
        entropy = [seed.bit_length(), seed, *purpose.encode()]
        self._philox = np.random.Philox(np.random.SeedSequence(entropy))
        self._entropy, self._met = entropy, dict[bytes, int]()
        self.identity = noise_identity(seed, purpose)

    def of_rows(self, rows: NDArray[np.float64]) -> Iterator["SeededBits"]:
        """Yield a stream for every row that depends on the seed and on the row alone.

        Equal rows differ in how often they were met before.
        """
        for row in rows:
            content = hashlib.blake2b((row + 0.0).tobytes(), digest_size=16).digest()
            count = self._met[content] = self._met.get(content, -1) + 1
            own: SeededBits = object.__new__(SeededBits)
            Bits.__init__(own)
            own._entropy, own._met = [*self._entropy, *content, 256 + count], {}
            own._philox = np.random.Philox(np.random.SeedSequence(own._entropy))
            yield own

    def _draw(self, size: int) -> Words:
        return self._philox.random_raw(size)


def make_bits(random_state: Any, purpose: str = "") -> Bits:
    """Return the source of bits for a `random_state` parameter.

    None is the operating system; an int is a seed; a RandomState or a Generator is
    advanced by 16 bytes, which become the seed. Anything else raises ValueError.
    """
    seed = _seed_of(random_state)
    return SystemBits() if seed is None else SeededBits(seed, purpose)


def noise_identity(random_state: Any, purpose: str) -> str | None:
    """Return a public hash of seed and purpose: two fits with the same one share noise.

    None for the operating system. A generator is not advanced: the hash is that of the next fit.
    """
    seed = _seed_of(copy.deepcopy(random_state))
    # the estimator's name: what it adds leads its own streams apart, and not those of two fits
    content = f"{seed} {purpose.partition(',')[0]}".encode()
    return None if seed is None else hashlib.blake2b(content, digest_size=16).hexdigest()


def _seed_of(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        return int.from_bytes(random_state.bytes(16), "little")
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        kind = type(random_state).__name__
        raise ValueError(f"random_state must be None, an int or a generator; got type {kind}.")
    if random_state < 0:
        raise ValueError(f"random_state must not be negative; got {random_state}.")
    return int(random_state)


Integers = NDArray[np.int64]
Quantile = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Tail = Callable[[Decimal], Decimal]

# Words with fewer significant bits than this leave the fast path: their value u
# is too coarse for the float error bound below.
_FEW_BITS = 2**43
# Bound on |float quantile - quantile of any u in the interval|, in units of the scale:
# the interval's own width at u = _FEW_BITS * 2^-63 (at most 1.2e-13), and 50 times
# and more the measured error of the float functions.
_QUANTILE_ERROR = 4e-13
_DIGITS = 100
_BATCH = 1 << 16
# 2 pi to 118 digits
_TWO_PI = Decimal(
    "6.2831853071795864769252867665590057683943387987502116419498"
    "89184615632812572417997256069650684234135964296173026564613"
)


def check_scale(scale: float) -> None:
    """Raise a ValueError for a scale out of range for floats and int64."""
    if not 0 < scale <= 2**40:
        raise ValueError(f"scale must be in (0, 2**40] grid steps; got {scale!r}.")


def _gaussian_tail(t: Decimal) -> Decimal:
    """Return P[N(0, 1) > t] for t >= 0, by the all-positive series of the integral."""
    if t > 22:  # below 10^-_DIGITS
        return Decimal(0)
    term = total = t
    k = 1
    while term > total * Decimal(10) ** -_DIGITS:
        k += 2
        term = term * t * t / k
        total += term
    return Decimal("0.5") - total * (-t * t / 2).exp() / _TWO_PI.sqrt()


def _laplace_tail(t: Decimal) -> Decimal:
    """Return P[|Laplace(1)| > t] for t >= 0."""
    return (-t).exp()


def _resolve(
    word: int, width: int, scale: float, guess: int, tail: Tail, bits: Bits, end: str = "0.5"
) -> int:
    """Return the r with tail((r + end)/scale) < u < tail((r - 1 + end)/scale), exactly.

    u is the real number whose first `width` bits are `word`; further bits are drawn
    until no boundary is left in its interval. `end` is 0.5 to round and 1 to truncate.
    """
    with localcontext(Context(prec=_DIGITS, Emin=-(10**6), Emax=10**6)):
        s = Decimal(scale)

        def boundary(r: int) -> Decimal:
            return tail((Decimal(r) + Decimal(end)) / s)

        r = guess
        while True:
            unit = Decimal(2) ** -width
            low, high = word * unit, (word + 1) * unit
            while r > 0 and low >= boundary(r - 1):
                r -= 1
            while high <= boundary(r):
                r += 1
            # u lies in [low, high]; r is decided once no boundary is inside
            if boundary(r) <= low and (r == 0 or high <= boundary(r - 1)):
                return r
            word = (word << 64) | int(bits.words(1)[0])
            width += 64


def _refine(
    size: int, scale: float, quantile: Quantile, tail: Tail, width: int, bits: Bits
) -> Integers:
    """Draw `size` signed integers by interval refinement."""
    check_scale(scale)
    out = np.empty(size, dtype=np.int64)
    margin = 0.5 - min(0.5, scale * _QUANTILE_ERROR)
    for start in range(0, size, _BATCH):
        words = bits.words(min(_BATCH, size - start))
        magnitude = words >> np.uint64(1)
        u = magnitude.astype(np.float64)
        u += 0.5
        u *= 2.0**-width
        x = quantile(u)
        x *= scale
        r = np.rint(x)
        x -= r
        np.abs(x, out=x)
        undecided = np.flatnonzero((x >= margin) | (magnitude < _FEW_BITS))
        part = r.astype(np.int64)
        for i in undecided:
            # one more word first, so that a start from very few bits is a good one
            word = (int(magnitude[i]) << 64) | int(bits.words(1)[0])
            near = np.array([(word + 0.5) * 2.0 ** -(width + 64)])
            guess = int(np.rint(scale * quantile(near)[0]))
            part[i] = _resolve(word, width + 64, scale, guess, tail, bits)
        out[start : start + len(part)] = np.where(words & np.uint64(1), -part, part)
    return out


def rounded_gaussian(scale: float, size: int, bits: Bits) -> Integers:
    """Draw rint(scale * N(0, 1)) exactly, `size` times; scale in (0, 2**40] grid steps."""
    return _refine(size, scale, lambda u: -ndtri(u), _gaussian_tail, 64, bits)


def rounded_laplace(scale: float, size: int, bits: Bits) -> Integers:
    """Draw rint(scale * Laplace(1)) exactly, `size` times; scale in (0, 2**40] grid steps."""
    return _refine(size, scale, lambda u: -np.log(u), _laplace_tail, 63, bits)


def geometric(scale: float, size: int, bits: Bits) -> Integers:
    """Draw floor(scale * E) exactly, E of unit exponential law, `size` times.

    A draw is at least k with probability exp(-k / scale); scale in (0, 2**40].
    """
    check_scale(scale)
    words = bits.words(size)
    u = words.astype(np.float64)
    u += 0.5
    u *= 2.0**-64
    x = -np.log(u)
    x *= scale
    out = np.floor(x)
    x -= out
    near = min(0.5, scale * _QUANTILE_ERROR)
    undecided = np.flatnonzero((x <= near) | (x >= 1 - near) | (words < _FEW_BITS))
    drawn = out.astype(np.int64)
    for i in undecided:
        # one more word first, so that a start from very few bits is a good one
        word = (int(words[i]) << 64) | int(bits.words(1)[0])
        guess = int(-scale * math.log((word + 0.5) * 2.0**-128))
        drawn[i] = _resolve(word, 128, scale, guess, _laplace_tail, bits, end="1")
    return drawn


def uniform_below(n: int, bits: Bits) -> int:
    """Draw an integer uniformly from {0, ..., n - 1}, by rejection."""
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}.")
    length = (n - 1).bit_length()
    n_words = max(1, -(-length // 64))
    while True:
        value = int.from_bytes(bits.words(n_words).tobytes(), "little")
        value >>= 64 * n_words - length
        if value < n:
            return value
