# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of heads among fair coins, given that they are at least or below a threshold, exactly.

A draw is the inverse of the distribution function at a uniform number u, of which 64 bits are
drawn first. The boundaries are known to much less than ``2^-64``; where u is too near to one
of them, more bits of u and more digits of the boundary decide the same question.
"""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

import numpy as np

# bits of the fractions that the weights are, at first
_BITS = 192
# words this near to a boundary are left to further bits
_NEAR = 4


def _cumulative(threshold, n_dims, inside, n_bits):
    """Return cumulative weights of the numbers of heads on one side of a threshold.

    Returns
    -------
    first : int
        The number of heads that the first weight belongs to.
    sums : list of int
        Sums of weights, in units in which the largest weight is ``2^n_bits``. Numbers of heads
        whose weights vanish at that precision are left out.
    error : int
        Bound on the error of each sum.

    Notes
    -----
    Weights follow from the largest one by factors of at most 1, each rounded down. So the
    k-th is off by less than k units, and their sums by less than the square of the number of
    coins. Those that are left out come after one of 0 units, hence are below that number too.
    """
    mode = threshold if inside else min(threshold - 1, n_dims // 2)
    up, down = [1 << n_bits], []
    last = n_dims if inside else threshold - 1
    for heads in range(mode, last):
        weight = up[-1] * (n_dims - heads) // (heads + 1)
        if not weight:
            break
        up.append(weight)
    weight = up[0]
    for heads in range(mode, mode if inside else 0, -1):
        weight = weight * heads // (n_dims - heads + 1)
        if not weight:
            break
        down.append(weight)
    return mode - len(down), list(accumulate(down[::-1] + up)), (n_dims + 1) ** 2


@lru_cache(maxsize=256)
def _boundaries(threshold, n_dims, inside):
    """Return the first number of heads, and the words at which the following ones begin."""
    first, sums, _ = _cumulative(threshold, n_dims, inside, _BITS)
    # the last boundary is 2^64
    words = [(value << 64) // sums[-1] for value in sums[:-1]]
    return first, np.array(words, dtype=np.uint64)


def _decided(word, threshold, n_dims, inside, bits):
    """Return the number of heads at the number whose first 64 bits are `word`."""
    width, n_bits = 64, _BITS
    while True:
        for extra in bits.words(n_bits // 64).tolist():
            word, width = (word << 64) | extra, width + 64
        first, sums, error = _cumulative(threshold, n_dims, inside, n_bits)
        # u times the sum of all weights lies between these
        low = word * (sums[-1] - error) >> width
        high = ((word + 1) * (sums[-1] + error) >> width) + 1
        index = bisect_right(sums, low - error)
        # nothing is below the first weight, unless small ones were left out
        clear = index > 0 or inside or first == 0 or low >= error
        if clear and index < len(sums) and high + error <= sums[index]:
            return first + index
        n_bits *= 2


def matches(threshold, n_dims, inside, bits):
    """Draw numbers of heads among fair coins, on given sides of a threshold.

    Parameters
    ----------
    threshold, n_dims : int
        The threshold, more than half of the number of coins, and that number.
    inside : ndarray of bool, shape (n,)
        Whether a draw is at least the threshold, or below it.
    bits : Bits
        Source of random words.

    Returns
    -------
    heads : ndarray of int64, shape (n,)
        Binomial given their sides, exactly.
    """
    heads = np.empty(inside.size, dtype=np.int64)
    words = bits.words(inside.size)
    near = np.uint64(_NEAR)
    for side in (True, False):
        chosen = np.flatnonzero(inside == side)
        first, begins = _boundaries(threshold, n_dims, side)
        word = words[chosen]
        # how many of the boundaries are at most a bit below, and at most a bit above
        low = np.searchsorted(begins, np.maximum(word, near) - near, side="right")
        high = np.searchsorted(begins, word + np.minimum(near, ~word), side="right")
        heads[chosen] = first + low
        ends = (word < near) | (~word < near)
        for i in chosen[(low != high) | ends].tolist():
            heads[i] = _decided(int(words[i]), threshold, n_dims, side, bits)
    return heads
