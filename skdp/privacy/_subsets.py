# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random batches of rows, with exact laws.

Which rows are in a batch is secret: amplification by sampling rests on it. So batches are
drawn from the same bits as the noise, inside the gate, and nobody else sees them.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy._bits import Bits
from skdp.privacy._samplers import geometric

Positions = NDArray[np.int64]


def poisson_subset(n_rows: int, gap_scale: float, bits: Bits) -> Positions:
    """Return sorted positions; each is in with probability ``1 - exp(-1 / gap_scale)``.

    The numbers of rows left out between two that are in are independent and geometric:
    the work grows with the batch, not with the data.
    """
    expected = -n_rows * math.expm1(-1 / gap_scale)
    block = int(expected + 6 * math.sqrt(expected)) + 16
    found: list[Any] = []
    last = -1
    while last < n_rows:
        # a gap beyond the data ends the batch, however long it is
        gaps = np.minimum(geometric(gap_scale, block, bits), n_rows)
        positions = last + np.cumsum(gaps + 1)
        found.append(positions[positions < n_rows])
        last, block = int(positions[-1]), 64
    return np.concatenate(found)


def fixed_subset(n_rows: int, size: int, bits: Bits) -> Positions:
    """Return the sorted positions of a subset drawn uniformly among those of a size."""
    if 2 * size > n_rows:
        left_out = fixed_subset(n_rows, n_rows - size, bits)
        chosen = np.ones(n_rows, dtype=bool)
        chosen[left_out] = False
        return np.flatnonzero(chosen)
    # the first `size` distinct values of a sequence of uniform positions
    sequence = np.zeros(0, dtype=np.int64)
    while True:
        values, first = np.unique(sequence, return_index=True)
        if len(values) >= size:
            kept: Positions = np.sort(values[np.argsort(first)[:size]])
            return kept
        missing = 2 * (size - len(values)) + 16
        sequence = np.append(sequence, _uniform_positions(n_rows, missing, bits))


def repeated_subset(n_rows: int, size: int, bits: Bits) -> Positions:
    """Return sorted positions drawn uniformly and independently; some may repeat."""
    return np.sort(_uniform_positions(n_rows, size, bits))


def _uniform_positions(n_rows: int, size: int, bits: Bits) -> Positions:
    """Return independent uniform positions, in the order in which they were drawn."""
    # whole words below the next power of two, and those beyond the data dropped
    surplus = np.uint64(64 - max(1, (n_rows - 1).bit_length()))
    found = np.zeros(0, dtype=np.int64)
    while len(found) < size:
        values = (bits.words(2 * (size - len(found)) + 8) >> surplus).astype(np.int64)
        found = np.append(found, values[values < n_rows])
    return found[:size]
