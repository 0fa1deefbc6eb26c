# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A magnitude that a given number of rows exceed, drawn on a public grid of a huge range."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._domains import row_norms
from skdp._queries._quantile_rank import rate
from skdp._queries._tail_scores import tail_scores
from skdp.privacy import Sensitivity
from skdp.privacy._choice import weighted_choice


def raw_norms(chunk):
    """Return the norm of every row of a chunk whose factors are 1, to the last bit its own.

    Parameters
    ----------
    chunk : LinearChunk
        Rows in the units of the data, without an intercept.

    Returns
    -------
    norms : ndarray of shape (n_rows,)
        In float64. Those of null rows mean nothing.

    Notes
    -----
    How a sum along a row is rounded depends on the memory layout, which one awkward row may
    change for its whole chunk. Here every operation is elementwise, one row in each column.
    """
    if sparse.issparse(chunk.X):
        # summed in the stored order of each row; not `chunk.norm`, which is held above a floor
        return row_norms(chunk.X)
    columns = np.array(chunk.X.T, dtype=np.float64, order="C")
    with np.errstate(under="ignore"):
        columns *= columns
        return np.sqrt(columns.sum(axis=0))


@dataclass(frozen=True)
class RowNorm:
    """Euclidean norm of a row's features, in the units of the data."""

    @property
    def name(self):
        """What it is."""
        return "norm of a row"

    def __call__(self, chunk):
        """Return the norm of every row."""
        return raw_norms(chunk)


@dataclass(frozen=True)
class TargetDistance:
    """Distance of a row's target from a public number.

    Parameters
    ----------
    center : float
        Public number.
    """

    center: float = 0.0

    @property
    def name(self):
        """What it is."""
        return "magnitude of a target" if self.center == 0 else "distance of a target"

    def __call__(self, chunk):
        """Return the distance of every target."""
        return np.abs(chunk.target - self.center)


@dataclass(frozen=True)
class GradientNorm:
    """Norm of the gradient of a row's loss at zero coefficients.

    Parameters
    ----------
    loss : object
        Loss of one output, of `skdp._losses`, not clipped.
    """

    loss: Any

    @property
    def name(self):
        """What it is."""
        return f"norm of a gradient of {type(self.loss).__name__}"

    def __call__(self, chunk):
        """Return the norm of every row's gradient; the rows are those of `unit_rows`."""
        residual = self.loss.residual(np.zeros(len(chunk.norm)), chunk.target)
        # a null row has an infinite norm, and is not counted
        norm = np.where(np.isfinite(chunk.norm), chunk.norm, 0.0)
        with np.errstate(under="ignore", over="ignore"):
            return np.abs(residual) * norm


@dataclass(frozen=True, eq=False)
class MagnitudeThreshold:
    """Index of a point of a geometric grid, drawn by how many rows have a magnitude beyond it.

    Parameters
    ----------
    magnitude : RowNorm, TargetDistance or GradientNorm
        Maps a chunk to one number per row, each a function of its own row alone, to the last
        bit.
    smallest, ratio, points : float, float, int
        The grid: ``smallest, smallest * ratio, ..., smallest * ratio**(points - 1)``.
    tail : int
        How many rows should lie beyond the point; at least 0.

    Notes
    -----
    With N_k rows beyond the k-th point, the score of k is the distance of `tail` to the
    interval from N_k to N_(k-1). A row beyond the last point counts as being at it, and nothing
    is below the first one. Scores are integers, and the draw is exact.
    """

    magnitude: Any
    smallest: float
    ratio: float
    points: int
    tail: int

    #: nothing that is drawn from is a float
    idealised = False

    @property
    def name(self):
        """What the statistic is."""
        return f"{self.magnitude.name} that about {self.tail} rows exceed, drawn by its rank"

    @property
    def size(self):
        """Number of coordinates."""
        return 1

    def grid(self):
        """Return the grid, an increasing array of shape (points,)."""
        return self.smallest * self.ratio ** np.arange(float(self.points))

    def sensitivity(self, adjacency, n_rows):
        """State the spread of the score's change: 2.

        Proof. Magnitudes are functions of one row each. So between neighbours all N change by
        0 or 1, or all by 0 or -1: one magnitude moves up, moves down, or vanishes. The score is
        the largest of ``N_k - tail``, ``tail - N_(k-1)`` and 0, and changes by no more than these
        two do: its change lies in [-1, 1]. Both ends are attained by one pair: at a point with
        more than `tail` rows beyond it, and at one whose predecessor has fewer.
        """
        theorem = "one row moves every count by <= 1, all of them in the same sense"
        return Sensitivity(math.inf, math.inf, float(max(self.points - 1, 1)), theorem, spread=2.0)

    def scores(self, rows):
        """Return the score of every point, int64 of shape (points,)."""
        return tail_scores(rows, self.grid(), self.magnitude, self.tail)

    def draw(self, rows, noise, source):
        """Return an index with probability proportional to exp(-score / noise.scale)."""
        inverse = rate(1, noise.scale)
        chosen = weighted_choice(np.ones(self.points), self.scores(rows), inverse, source)
        return np.array([chosen], dtype=np.float64)
