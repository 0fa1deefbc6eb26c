# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Coins and positions with exact probabilities, many at a time."""

import numpy as np


def coins(p, size, bits):
    """Return independent coins that are true with probability exactly `p`.

    Parameters
    ----------
    p : float
        In (0, 1), meant as the real number it is.
    size : int
        How many.
    bits : Bits
        Source of random words.

    Returns
    -------
    heads : ndarray of bool, shape (size,)

    Notes
    -----
    A uniform number u has independent fair bits, and the coin is ``u < p``. The first 64 bits
    decide unless they are those of p; then further ones do, until p has no more.
    """
    numerator, denominator = float(p).as_integer_ratio()
    first, left = divmod(numerator << 64, denominator)
    words = bits.words(size)
    heads = words < np.uint64(first)
    if left:
        for i in np.flatnonzero(words == np.uint64(first)):
            heads[i] = _continued(left, denominator, bits)
    return heads


def _continued(left, denominator, bits):
    """Return whether the bits to come are below ``left / denominator``."""
    while left:
        digit, left = divmod(left << 64, denominator)
        word = int(bits.words(1)[0])
        if word != digit:
            return word < digit
    return False


def positions_below(n, size, bits):
    """Return independent positions, each exactly uniform among ``0, ..., n - 1``.

    Parameters
    ----------
    n, size : int
        From 1 to 2^62, and how many.
    bits : Bits
        Source of random words.

    Returns
    -------
    positions : ndarray of int64, shape (size,)
        In the order in which they were drawn.

    Notes
    -----
    The leading bits of words, as many as n needs; those that are too large are dropped.
    """
    surplus = np.uint64(64 - max(1, (n - 1).bit_length()))
    found = np.zeros(0, dtype=np.int64)
    while found.size < size:
        values = (bits.words(size - found.size) >> surplus).astype(np.int64)
        found = np.concatenate([found, values[values < n]])
    return found
