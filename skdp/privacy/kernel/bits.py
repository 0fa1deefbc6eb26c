# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random bits: the only module of the library that makes randomness.

Everything random in skdp is a function of the 64-bit words handed out here. Two
sources exist. `SystemBits` asks the operating system's cryptographic generator
and is what an unseeded fit uses. `SeededBits` is a reproducible counter-based
stream for tests and debugging; a fit that uses it is marked on its ledger,
because equal seeds on neighbouring data cancel the noise.

A source belongs to the process that made it: it refuses to be pickled or to run
in a forked child, so that no two workers can ever share a stream.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class Bits:
    """A source of independent uniform 64-bit words, tied to the process that made it."""

    seeded: bool
    origin: str

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
    """Return the source of bits that a `random_state` parameter asks for.

    None is the operating system; an int is a seed; a RandomState or a Generator is
    advanced by 16 bytes, which become the seed. Anything else raises ValueError.
    """
    if random_state is None:
        return SystemBits()
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        seed = int.from_bytes(random_state.bytes(16), "little")
    elif isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        kind = type(random_state).__name__
        raise ValueError(f"random_state must be None, an int or a generator; got a {kind}.")
    else:
        seed = int(random_state)
    if seed < 0:
        raise ValueError(f"random_state must not be negative; got {seed}.")
    return SeededBits(seed, purpose)
