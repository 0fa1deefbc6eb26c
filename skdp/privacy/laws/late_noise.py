# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Late noise: sums of noisy vectors with postponed noise in most coordinates.

A step of a noisy descent adds noise to all coordinates, while the rows of a batch have entries in
few of them. The set of these is private, so the noise of the others cannot be left out; but it can
be postponed until the coordinate is read. A coordinate without entries for k steps gets the noise
of all of them at once, in two draws: one for its present value, and one for the sum of its past
values, for the average.

Let a be the decay, and ``v_0 = 0, v_i = a (v_{i-1} + N_i)`` with independent standard normal
N_i. With ``A_m = a^0 + ... + a^m``, ``(v_k, v_1 + ... + v_k)`` is normal with mean zero and

    variances  a^2 sum a^(2m)  and  a^2 sum A_m^2,  covariance  a^2 sum a^m A_m,  0 <= m < k.

Without decay these are k, k (k + 1) (2k + 1) / 6 and k (k + 1) / 2. The proof that all coordinates
have the same law as with noise in every step is in docs/user_guide/proofs_sparse_erm.rst. It is
about real numbers: the noise of one step is exact on the grid; the noise of several steps is a
float computed from exact draws ("idealised").
"""

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.mechanisms import Law, Line, Noise, Source
from skdp.privacy.kernel.samplers import Bits, rounded_gaussian

Floats = NDArray[np.float64]
Columns = NDArray[np.intp]

# columns that are brought up to date in one go, when all are
_BLOCK = 1 << 15
# the average's grid over that of one step: still far below the deviation of any average
_COARSER_BITS = 10


class LazySums:
    """Columns of ``u_t = a (u_{t-1} + x_t + N_t)``, u_0 = 0, and their average over steps.

    This is private intermediate state: it stays inside the curator until `average`.

    Parameters
    ----------
    shape : tuple of (int, int)
        Numbers of columns and of coordinates of a column.
    n_free, decay : int, float
        The last `n_free` columns do not decay; the others do, by a in (0, 1].
    n_steps, n_skipped : int, int
        Number of steps, and number of first steps left out of the average; fewer.
    noise : Noise
        Of one step: Gaussian, scale and grid.
    bits : Bits
        Source of random words.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        n_free: int,
        decay: float,
        n_steps: int,
        n_skipped: int,
        noise: Noise,
        bits: Bits,
    ) -> None:
        if not (0 < decay <= 1 and noise.law == "gaussian" and noise.threshold is None):
            raise ValueError("noise comes late for Gaussian noise and decays in (0, 1] only.")
        self._steps, self._skipped, self._noise, self._bits = n_steps, n_skipped, noise, bits
        self._n_decaying = shape[0] - n_free
        # one table for each kind of column, side by side
        self._tables = np.hstack([_moments(a, n_steps) for a in (decay, 1.0)])
        # a power of two below every deviation, and coarse against the lattice of a column that
        # is touched in every step: how often one is touched must not show in the last digits
        self._grid = noise.grid * 2.0 ** (math.floor(math.log2(decay)) + _COARSER_BITS)
        self._values, self._since = np.zeros(shape), np.zeros(shape[0], dtype=np.int32)
        self._total: Any = None

    def at(self, columns: Columns, step: int) -> Floats:
        """Return the columns as they are after a number of steps; each column once."""
        if step == self._skipped and self._total is None:
            self._catch_up(step)
            self._total = np.zeros(self._values.shape)
        self._advance(columns, step)
        return self._values[columns]

    def add(self, columns: Columns, statistic: Floats) -> None:
        """Add the exact statistic of the next step; its noise comes later."""
        self._values[columns] += statistic

    def average(self) -> Floats:
        """Return the average over the steps, on a public grid, all columns up to date."""
        self._catch_up(self._steps)
        mean = self._total
        mean /= self._steps - self._skipped
        # the last digits of floats say nothing on the grid
        mean /= self._grid
        # halves go up, not to even numbers: only lattices have halves
        mean += 0.5
        np.floor(mean, out=mean)
        mean *= self._grid
        return np.asarray(mean)

    def _catch_up(self, step: int) -> None:
        for start in range(0, len(self._since), _BLOCK):
            stop = min(start + _BLOCK, len(self._since))
            self._advance(np.arange(start, stop), step)

    def _advance(self, columns: Columns, step: int) -> None:
        behind = step - self._since.take(columns)
        late = behind > 0
        columns, behind = columns[late], behind[late]
        kind = behind + (self._steps + 1) * (columns >= self._n_decaying)
        power, reach, spread, slope, rest = (row.take(kind)[:, None] for row in self._tables)
        with np.errstate(under="ignore"):
            before = self._values.take(columns, axis=0)
            noise = spread * self._draws(len(columns))
            self._values[columns] = power * before + noise
            if self._total is not None:
                visited = reach * before + slope * noise
                # after one step there is nothing left to draw
                more = np.flatnonzero(behind > 1)
                visited[more] += rest[more] * self._draws(len(more))
                self._total[columns] += visited
        self._since[columns] = step

    def _draws(self, n_columns: int) -> Floats:
        """Return Gaussian noise of one step, on the grid of one step."""
        scale, shape = self._noise.scale / self._noise.grid, (n_columns, self._values.shape[1])
        drawn = rounded_gaussian(scale, n_columns * shape[1], self._bits)
        return np.multiply(drawn, self._noise.grid, dtype=np.float64).reshape(shape)


def _moments(decay: float, n_steps: int) -> Floats:
    """Return what k steps do, for k = 0, ..., n_steps: an array of shape (5, n_steps + 1).

    The rows, with the above law in units of the noise of one step: what is left of the
    value; what it adds to the sum of values; the deviation of the value; the slope of the
    sum's conditional mean in the value's noise, and its conditional deviation.
    """
    with np.errstate(under="ignore"):
        powers = decay ** np.arange(n_steps, dtype=np.float64)
        sums = np.cumsum(powers)
        variance, covariance = np.cumsum(powers * powers), np.cumsum(powers * sums)
        slope = covariance / variance
        rest = np.cumsum(sums * sums) - slope * covariance
        # nothing is left of one step, and rounding must not make it negative
        rest = np.sqrt(np.maximum(rest, 0.0))
        rest[0] = 0.0
        table = [decay * powers, decay * sums, decay * np.sqrt(variance), slope, decay * rest]
    return np.pad(np.array(table), ((0, 0), (1, 0)))


@dataclass(frozen=True)
class LateNoise(Law):
    """A descent along secret noisy sums, with the average point as the only release.

    All coordinates get noise in every step, as if every sum were released, and every step is
    charged; where a batch has no entries the noise comes late, in one draw for many steps.
    A query has `shape`, `n_free` and `decay` as in `LazySums`; ``touched(rows)``, the columns
    in which a batch has entries, each once, and what is left of the rows; and
    ``evaluate_at(part, values)``, the statistic in these columns, given the point there. The
    average is an array of shape ``query.shape``, on a public grid.

    Parameters
    ----------
    additive : Law
        The noise of every step, Gaussian.
    n_steps, n_skipped : int, int
        Number of steps, and number of first steps left out of the average.

    Raises
    ------
    ValueError
        If no step is left for the average.
    """

    additive: Law
    n_steps: int
    n_skipped: int

    def __post_init__(self) -> None:
        if not 0 <= self.n_skipped < operator.index(self.n_steps):
            raise ValueError(f"n_skipped must be in [0, {self.n_steps}); got {self.n_skipped!r}.")

    @property
    def sampling(self) -> Sampling | None:  # type: ignore[override]
        """Sampling of the batch of every step."""
        return self.additive.sampling

    def calibrate(self, sensitivity: Any, size: int) -> Noise:
        """Return the noise of one step."""
        noise: Noise = self.additive.calibrate(sensitivity, size)
        if noise.law != "gaussian" or noise.threshold is not None:
            raise ValueError("noise comes late for Gaussian noise only.")
        return noise

    def lines(self, query: Any, sensitivity: Any, noise: Any) -> tuple[Line, ...]:
        """Return the line of one step, once per step."""
        (line,) = self.additive.lines(query, sensitivity, noise)
        return (line._replace(times=self.n_steps),)

    def release(self, query: Any, noise: Noise, source: Source) -> Floats:
        """Take all steps, and return their average."""
        sums = LazySums(
            query.shape, query.n_free, query.decay, self.n_steps, self.n_skipped, noise, source.bits
        )
        for step in range(self.n_steps):
            columns, part = query.touched(source.read())
            statistic = query.evaluate_at(part, sums.at(columns, step))
            sums.add(columns, mechanisms.align(statistic, noise) * noise.grid)
        return sums.average()
