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

import os
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class Bits(Protocol):
    """A source of independent uniform 64-bit words."""

    seeded: bool

    def words(self, size: int) -> Words:
        """Return `size` fresh words; no word is ever handed out twice."""


class _OwnProcess:
    """Tie a source of bits to the process that made it."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "noise is drawn in the process that made the source of random bits; "
                "this one was inherited by a child process and will not be used."
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of random bits cannot be pickled or copied.")


class SystemBits(_OwnProcess):
    """Words from the operating system's cryptographic generator."""

    seeded = False

    def words(self, size: int) -> Words:
        """Return `size` fresh words."""
        self._check_process()
        return np.frombuffer(os.urandom(8 * size), dtype="<u8").astype(np.uint64, copy=False)


class SeededBits(_OwnProcess):
    """A reproducible stream of words (Philox), for tests and debugging only.

    Parameters
    ----------
    seed : int
        Non-negative seed.
    purpose : str
        Domain separation: two purposes with one seed give unrelated streams.
    """

    seeded = True

    def __init__(self, seed: int, purpose: str = "") -> None:
        super().__init__()
        tag = list(purpose.encode())
        self._philox = np.random.Philox(np.random.SeedSequence(seed, spawn_key=tag))

    def words(self, size: int) -> Words:
        """Return the next `size` words of the stream."""
        self._check_process()
        return self._philox.random_raw(size)


def make_bits(random_state: Any, purpose: str = "") -> Bits:
    """Return the source of bits that a `random_state` parameter asks for.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        None draws from the operating system. Anything else is a seed; a
        generator object is advanced by one draw, which becomes the seed.
    purpose : str
        What the stream is for; different purposes never share words.

    Returns
    -------
    bits : Bits
        The source; its `seeded` flag goes to the ledger.

    Raises
    ------
    ValueError
        If `random_state` is none of the above, or a negative integer.
    """
    if random_state is None:
        return SystemBits()
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        seed = int.from_bytes(random_state.bytes(16), "little")
    elif isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        seed = int(random_state)
        if seed < 0:
            raise ValueError(f"random_state must be a non-negative integer; got {seed}.")
    else:
        raise ValueError(
            "random_state must be None, a non-negative integer, a numpy RandomState or a "
            f"numpy Generator; got an object of type {type(random_state).__name__}."
        )
    return SeededBits(seed, purpose)
