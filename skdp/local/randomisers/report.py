# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Query for one report of every row, and vectors of the rows themselves."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp.privacy.kernel.mechanisms import Sensitivity

# entries of vectors that report together
_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class LocalReports:
    """One report of every row: an unbiased, randomised version of a vector of the row.

    Parameters
    ----------
    what : object
        Kind of vector, with a `name`. Its ``vectors(chunk)`` returns an ndarray with one row for
        every row of a chunk, computed from that row and public numbers only. A null row has the
        vector of zeros.
    randomiser : Randomiser
        Randomiser of reports. Vectors outside of its domain are moved into it.
    by_content : bool, default=False
        Whether seeded noise is a function of the seed and the row, independent of earlier rows. No
        effect without a seed.

    Notes
    -----
    A row uses only its own draws, so neighbours that differ in one row have the same law of all
    other reports.
    """

    what: Any
    randomiser: Any
    by_content: bool = False

    @property
    def name(self):
        """Name of the statistic."""
        return f"reports of {self.what.name} by {type(self.randomiser).__name__}"

    @property
    def size(self):
        """Number of entries of one report."""
        return self.randomiser.size

    @property
    def idealised(self):
        """Whether the draws are floats that approximate real numbers."""
        return not self.randomiser.exact

    def sensitivity(self, adjacency, n_rows):
        """State the price of a report: the largest log-ratio of two of its laws.

        Proof. The randomiser states it for any two vectors of its domain (Proposition 62 for
        two densities, Proposition 63 for the cube and for grids), and every vector is brought
        into that domain. It does not depend on the adjacency: any two values of a row differ by
        that at most, a null row being one of them.
        """
        bound, price = self.randomiser.bound, float(self.randomiser.epsilon)
        theorem = "ratio of two laws of one row's report"
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=price)

    def draw(self, rows, noise, source):
        """Return the reports of all rows, in order."""
        bits = source.bits if self.idealised else source
        if self.by_content and bits.seeded:
            return self._by_content(rows, bits)
        made, first = np.empty((rows.n_rows, self.size)), 0
        for vectors in self._blocks(rows):
            reports = self.randomiser.report(vectors, source, rows.n_threads)
            made[first : first + len(reports)] = reports
            first += len(reports)
        # a query that loses rows must not pass for one that keeps them
        return made[:first]

    def _blocks(self, rows):
        """Yield the vectors of several chunks at a time, as work for all threads."""
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
                made.append(self.randomiser.report(row[None], own))
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
