# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""One entry for the reports of all local randomisers, and what is public about them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp.local.randomisers.ball import (
    Flip,
    Lift,
    Product,
    report_flip,
    report_lift,
    report_product,
)
from skdp.local.randomisers.base import bits_of
from skdp.local.randomisers.cube import PrivUnitCube, report_cube
from skdp.local.randomisers.grid import EntrywiseGrid, ScalarGrid, report_scalar
from skdp.local.randomisers.privunit import PrivUnit, report_unit
from skdp.local.randomisers.privunit_gaussian import PrivUnitG, gaussian_bound, report_gaussian
from skdp.local.randomisers.projunit import ProjUnit, make_rotation, report_projected
from skdp.privacy.kernel.mechanisms import Sensitivity

#: rows, and their entries, for which what all of them need is drawn first
BLOCK, ENTRIES = 1 << 16, 1 << 22

_SAMPLERS = {
    PrivUnit: report_unit,
    PrivUnitG: report_gaussian,
    PrivUnitCube: report_cube,
    Lift: report_lift,
    Flip: report_flip,
    Product: report_product,
}


# whether an entry underflows depends on the row: nobody is to be told
@np.errstate(under="ignore")
def report(randomiser, vectors, source, n_threads=1):
    """Return the unbiased report of every row.

    Parameters
    ----------
    randomiser : object
        Parameters of `skdp._randomisers`, which say what is drawn.
    vectors : ndarray of float64, shape (n_rows, d)
        Rows in the randomiser's domain: unit vectors, vectors of the unit ball, entries from
        -1 to 1, or one number between the first and the last level of the grid. Rows outside
        are moved into it; those without a direction take one that is uniform.
    source : Variates or Bits
        Source of random words.
    n_threads : int, default=1
        Threads of arithmetic. Results do not depend on it.

    Returns
    -------
    reports : ndarray of float64, shape (n_rows, d)
        Independent of each other, but for the rotation that all reports by `ProjUnit` share.

    Raises
    ------
    ValueError
        If the shape is not that of the randomiser.
    """
    bits, vectors = bits_of(source), np.asarray(vectors, dtype=np.float64)
    n_dims = report_size(randomiser, vectors.shape[-1])
    if vectors.ndim != 2 or vectors.shape[1] != n_dims:
        raise ValueError(f"vectors must have shape (n_rows, {n_dims}), got {vectors.shape}.")
    out = np.empty(vectors.shape)
    rotation = make_rotation(randomiser, bits) if isinstance(randomiser, ProjUnit) else None
    step = max(1, min(BLOCK, ENTRIES // max(1, n_dims)))
    if isinstance(randomiser, EntrywiseGrid):
        # every entry needs what a row does
        step = max(1, BLOCK // max(1, n_dims))
    for start in range(0, len(vectors), step):
        rows, made = vectors[start : start + step], out[start : start + step]
        if rotation is not None:
            report_projected(randomiser, rows, bits, n_threads, rotation, out=made)
        elif isinstance(randomiser, ScalarGrid):
            made[:, 0] = report_scalar(randomiser, rows[:, 0], bits)
        elif isinstance(randomiser, EntrywiseGrid):
            made[:] = report_scalar(randomiser.grid, rows.ravel(), bits).reshape(rows.shape)
        else:
            _SAMPLERS[type(randomiser)](randomiser, rows, bits, n_threads, out=made)
    return out


def report_size(randomiser, n_dims=None):
    """Return the number of entries of a report.

    Parameters
    ----------
    randomiser : object
        As for `report`.
    n_dims : int, default=None
        Number of entries of the rows. Only `PrivUnitG` needs it, which serves all dimensions.

    Returns
    -------
    size : int
    """
    if isinstance(randomiser, ScalarGrid):
        return 1
    if isinstance(randomiser, PrivUnitG) and randomiser.n_dims is None:
        if n_dims is None:
            raise ValueError("n_dims must be given for PrivUnitG.")
        return int(n_dims)
    return randomiser.n_dims


def report_bound(randomiser, n_dims=None):
    """Return a bound on the magnitude of all entries of reports.

    Parameters
    ----------
    randomiser, n_dims : object, int
        As for `report_size`.

    Returns
    -------
    bound : float
        No entry is larger. For `PrivUnitG` that is because reports are clamped to it, which
        happens with a probability below 1e-20.
    """
    if isinstance(randomiser, PrivUnitG):
        return gaussian_bound(randomiser, report_size(randomiser, n_dims))
    if isinstance(randomiser, EntrywiseGrid):
        randomiser = randomiser.grid
    if isinstance(randomiser, ScalarGrid):
        return float(np.abs(randomiser.outputs).max())
    if isinstance(randomiser, PrivUnitCube):
        return 1.0 / randomiser.scale
    if isinstance(randomiser, ProjUnit):
        bound = math.sqrt(randomiser.n_rotated / randomiser.n_kept) / randomiser.scale
    elif isinstance(randomiser, PrivUnit):
        bound = 1.0 / randomiser.scale
    else:
        bound = report_bound(randomiser.unit)
        if isinstance(randomiser, Product):
            bound *= float(np.abs(randomiser.grid.outputs).max())
    # lengths are rounded
    return bound * (1.0 + 2.0**-30)


def is_exact(randomiser):
    """Return whether the law of reports is exact, not only up to the rounding of floats."""
    return isinstance(randomiser, PrivUnitCube | ScalarGrid | EntrywiseGrid)


def message_bits(randomiser, n_dims=None, number_bits=32):
    """Return how many bits a report takes when it is sent.

    Parameters
    ----------
    randomiser, n_dims : object, int
        As for `report_size`.
    number_bits : int, default=32
        Bits of a number that is sent.

    Returns
    -------
    bits : int
        One bit for an entry of `PrivUnitCube`, the number of a level for `ScalarGrid`, the kept
        entries and a seed for `ProjUnit`; otherwise all entries.
    """
    if isinstance(randomiser, ScalarGrid):
        return (randomiser.levels.size - 1).bit_length()
    if isinstance(randomiser, EntrywiseGrid):
        return randomiser.n_dims * message_bits(randomiser.grid)
    if isinstance(randomiser, PrivUnitCube):
        return randomiser.n_dims
    if isinstance(randomiser, ProjUnit):
        return randomiser.message_bits(number_bits)
    if isinstance(randomiser, Lift | Flip) and isinstance(randomiser.unit, ProjUnit):
        return randomiser.unit.message_bits(number_bits)
    return report_size(randomiser, n_dims) * number_bits


# Reports that every row makes on its own.


# entries of vectors that report together
_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class LocalReports:
    """One report of every row: an unbiased, randomised version of a vector made of the row.

    Parameters
    ----------
    what : object
        Which vector: it has a `name`, and ``vectors(chunk)`` returns an ndarray of a row for
        every row of a chunk, computed from that row and public numbers alone. A null row has
        the vector of zeros.
    randomiser : object
        Parameters of `skdp._randomisers`. Vectors outside of its domain are brought into it.
    by_content : bool, default=False
        Whether seeded noise is a function of the seed and the row, whatever rows come before.
        Without a seed this changes nothing.

    Notes
    -----
    A row meets only its own draws, so that neighbours that differ in one row have the same law
    of all other reports.
    """

    what: Any
    randomiser: Any
    by_content: bool = False

    @property
    def name(self):
        """What the statistic is."""
        return f"reports of {self.what.name} by {type(self.randomiser).__name__}"

    @property
    def size(self):
        """Number of entries of one report."""
        return report_size(self.randomiser)

    @property
    def idealised(self):
        """Whether the draws are floats that only come close to real numbers."""
        return not is_exact(self.randomiser)

    def sensitivity(self, adjacency, n_rows):
        """State the price of a report: the largest log-ratio of two of its laws.

        Proof. The randomiser states it for any two vectors of its domain (Proposition 62 for
        two densities, Proposition 63 for the cube and for grids), and every vector is brought
        into that domain. It does not depend on the adjacency: any two values of a row differ by
        that at most, a null row being one of them.
        """
        bound, price = report_bound(self.randomiser), float(self.randomiser.epsilon)
        theorem = "ratio of two laws of one row's report"
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=price)

    def draw(self, rows, noise, source):
        """Return the reports of all rows, in order."""
        bits = source.bits if self.idealised else source
        if self.by_content and bits.seeded:
            return self._by_content(rows, bits)
        made, first = np.empty((rows.n_rows, self.size)), 0
        for vectors in self._blocks(rows):
            reports = report(self.randomiser, vectors, source, rows.n_threads)
            made[first : first + len(reports)] = reports
            first += len(reports)
        # a query that loses rows must not pass for one that keeps them
        return made[:first]

    def _blocks(self, rows):
        """Yield the vectors of several chunks at a time, so that threads have enough to do."""
        # one by one: what the vectors of a chunk are does not depend on the others
        waiting, n_entries = [], 0
        for chunk in rows.chunks:
            waiting.append(self.what.vectors(chunk))
            n_entries += waiting[-1].size
            if n_entries >= _AT_ONCE:
                yield np.concatenate(waiting)
                waiting, n_entries = [], 0
        if waiting:
            yield np.concatenate(waiting)

    def _by_content(self, rows, bits):
        made = [np.empty((0, self.size))]
        for chunk in rows.chunks:
            vectors = self.what.vectors(chunk)
            # rows that are equal in the domain may differ before they get there
            contents = getattr(self.what, "contents", self.what.vectors)(chunk)
            for own, row in zip(bits.of_rows(contents), vectors, strict=True):
                made.append(report(self.randomiser, row[None], own))
        return np.concatenate(made)


@dataclass(frozen=True)
class RowVectors:
    """The rows themselves, in the unit ball.

    Parameters
    ----------
    name : str, default="rows"
        What they are.
    """

    name: str = "rows"

    def vectors(self, chunk):
        """Return the rows of a chunk of `LinearRows`, zeros for null rows."""
        explicit = chunk.explicit()
        vectors = explicit.toarray() if sparse.issparse(explicit) else explicit
        vectors[np.isinf(chunk.norm)] = 0.0
        return vectors

    def contents(self, chunk):
        """Return the rows before they are scaled down: fewer of them are equal."""
        return chunk.X.toarray() if sparse.issparse(chunk.X) else chunk.X.astype(np.float64)
