# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random batches of rows, with exact laws.

A release on a secret random batch reveals less about a row than a release on all rows;
``laws/loss_distributions.py`` computes the gain. The rows of a batch are secret: amplification by
sampling depends on it. So batches are drawn from the same bits as the noise, inside the gate, and
nobody else sees them.
"""

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.kernel.accounting import as_float, check_choice
from skdp.privacy.kernel.samplers import Bits, geometric

Positions = NDArray[np.int64]


def poisson_subset(n_rows: int, gap_scale: float, bits: Bits) -> Positions:
    """Return sorted positions, each with probability ``1 - exp(-1 / gap_scale)``.

    The gaps between selected rows are independent and geometric: the work grows with the batch,
    not with the data.
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


KINDS = ("poisson", "without-replacement", "with-replacement")
#: the gaps between the rows of a Poisson batch must be counted exactly
SMALLEST_RATE = 1e-12


@dataclass(frozen=True)
class Sampling:
    """Sampling of the batch of one release, fresh for every release.

    Parameters
    ----------
    kind : {"poisson", "without-replacement", "with-replacement"}
        Every row is in the batch independently of the others; or the batch is a uniform
        subset of fixed size; or so many independent uniform draws.
    n_rows : int
        Number of rows; public.
    batch_size : float
        Expected number of rows of a batch ("poisson"), or the number. At most `n_rows`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    kind: str
    n_rows: int
    batch_size: float

    def __post_init__(self) -> None:
        check_choice("sampling", self.kind, KINDS)
        # floats of numpy would round the rate of a batch to their own few digits
        size = self.batch_size if type(self.batch_size) is int else as_float(self.batch_size)
        if not 0 < size <= operator.index(self.n_rows):
            raise ValueError(
                f"batch_size must be greater than 0 and at most the number of rows, "
                f"{self.n_rows}; got {self.batch_size!r}."
            )
        if self.kind != "poisson" and self.batch_size != int(self.batch_size):
            raise ValueError(f"batch_size must be a whole number; got {self.batch_size!r}.")
        if not self.batch_size >= SMALLEST_RATE * self.n_rows:
            raise ValueError(f"batch_size must be at least 1e-12 n_rows; got {self.batch_size!r}.")
        object.__setattr__(self, "batch_size", size)
        object.__setattr__(self, "n_rows", int(self.n_rows))

    @property
    def reads_all(self) -> bool:
        """Whether every batch is the whole data set."""
        return self.batch_size == self.n_rows and self.kind != "with-replacement"

    @property
    def gap_scale(self) -> float:
        """Scale of the gaps between the rows of a Poisson batch."""
        return -1 / math.log1p(-self.batch_size / self.n_rows)

    @property
    def rate(self) -> float:
        """Probability that a row is in a batch, rounded up."""
        if self.reads_all:
            return 1.0
        if self.kind == "poisson":
            exact = -math.expm1(-1 / self.gap_scale)
        elif self.kind == "without-replacement":
            exact = self.batch_size / self.n_rows
        else:
            exact = -math.expm1(self.batch_size * math.log1p(-1 / max(self.n_rows, 1.5)))
            exact = 1.0 if self.n_rows == 1 else exact
        return min(1.0, exact * (1 + 1e-15))

    def adjacency(self, asked: str) -> str:
        """Return the adjacency of the sensitivity in the price of a batch.

        Parameters
        ----------
        asked : {"replace-one", "zero-out"}
            What is promised.

        Returns
        -------
        adjacency : str
            "zero-out", the norm of one contribution, for Poisson batches; "replace-one", the
            distance of two, for fixed sizes; what is promised, if all rows are read.
        """
        if self.reads_all:
            return asked
        return "zero-out" if self.kind == "poisson" else "replace-one"

    def draw(self, bits: Bits) -> Positions | None:
        """Return the sorted positions of one batch; None for all rows."""
        if self.reads_all:
            return None
        if self.kind == "poisson":
            return poisson_subset(self.n_rows, self.gap_scale, bits)
        subset = fixed_subset if self.kind == "without-replacement" else repeated_subset
        return subset(self.n_rows, int(self.batch_size), bits)
