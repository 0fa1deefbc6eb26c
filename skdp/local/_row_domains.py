# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public domains of rows that report, and the units of their reports."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._rows.base import RADIUS_RANGE, Box, L2Ball, row_norms, tame
from skdp._rows.linear import ball_rows
from skdp._sklearn import effective_n_threads
from skdp.local.randomisers.report import RowVectors
from skdp.location._clipped_mean import BoxRows


@dataclass(frozen=True)
class BoxVectors:
    """The rows themselves, in the box [-1, 1]^d.

    Parameters
    ----------
    name : str, default="rows in a box"
        What they are.
    """

    name: str = "rows in a box"

    def vectors(self, chunk):
        """Return the rows of a chunk of `BoxRows`; what is not a number is the center."""
        return chunk.box.to_unit(chunk.X.astype(np.float64, copy=False))

    def contents(self, chunk):
        """Return the rows before they are clipped: fewer of them are equal."""
        return chunk.X.astype(np.float64, copy=False)


@dataclass(frozen=True)
class BallDomain:
    """Rows of at most a public norm, or of exactly that.

    Parameters
    ----------
    radius : float
        The public norm.
    norm : float or None
        A public guess of norms of rows relative to it, at which variances are stated; None
        if rows are scaled to the radius, zero rows staying zero.
    """

    radius: float
    norm: float | None

    vectors = RowVectors()
    #: what a report of zero stands for, in the units of the data
    center = 0.0

    @property
    def unit(self):
        """What the number 1 in a report stands for, in the units of the data."""
        return self.radius

    def admit(self, X):
        """Return private rows in the unit ball."""
        # in a tiny ball nearly all rows are long, and have length 1 then
        ball = L2Ball(RADIUS_RANGE[0] if self.norm is None else self.radius)
        return ball_rows(X, ball, effective_n_threads())

    def original(self, reports):
        """Return reports in the units of rows."""
        reports *= self.radius
        return reports

    def kept(self, X):
        """Return rows in the domain, without noise."""
        rows, _ = tame(X)
        lengths = row_norms(rows)
        if self.norm is None:
            factor = np.divide(self.radius, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        else:
            # exactly 1 for rows that are in the ball
            factor = self.radius / np.maximum(lengths, self.radius)
        if sparse.issparse(rows):
            data = rows.data * np.repeat(factor, np.diff(rows.indptr))
            return type(rows)((data, rows.indices, rows.indptr), shape=X.shape, copy=True)
        return rows * factor[:, None]

    def variance(self, randomiser):
        """Return the variance of a report across the row it is of, a float."""
        if self.norm is None:
            across = randomiser.noise_variance
        else:
            across = randomiser.variances(self.norm)[1]
        return float(across) * self.radius * self.radius

    def entry_variances(self, randomiser):
        """Return the variance of every entry of a report, averaged over entries."""
        error, n_dims = randomiser.mean_squared_error(self.norm), randomiser.n_dims
        return np.full(n_dims, error * self.radius**2 / n_dims)


@dataclass(frozen=True)
class BoxDomain:
    """Rows with every entry between public bounds.

    Parameters
    ----------
    box : Box
        The bounds.
    """

    box: Any

    vectors = BoxVectors()

    @property
    def center(self):
        """What a report of zero stands for, in the units of the data."""
        return self.box.center

    @property
    def unit(self):
        """What the number 1 in a report stands for, in the units of the data."""
        return self.box.half_width

    @classmethod
    def between(cls, lower, upper):
        """Return the domain of bounds, arrays of shape (n_features,)."""
        return cls(Box(tuple(lower.tolist()), tuple(upper.tolist())))

    def admit(self, X):
        """Return private rows in the box."""
        return BoxRows(X, self.box, effective_n_threads())

    def original(self, reports):
        """Return reports in the units of rows."""
        reports *= self.box.half_width
        reports += self.box.center
        return reports

    def kept(self, X):
        """Return rows in the domain, without noise."""
        return np.clip(X.astype(np.float64, copy=False), self.box.lower, self.box.upper)

    def variance(self, randomiser):
        """Return the largest variance of every entry of a report, shape (n_features,)."""
        with np.errstate(over="ignore", under="ignore"):
            reach = randomiser.bound * self.box.half_width + np.abs(self.box.center)
            if not np.isfinite(reach).all():
                raise ValueError(
                    "bounds are so far apart that reports, which reach beyond them by a factor "
                    f"of {randomiser.bound:.3g}, would overflow; bring them together."
                )
            # a root, for the squares of tiny sides
            return (math.sqrt(randomiser.worst_variance) * self.box.half_width) ** 2

    def entry_variances(self, randomiser):
        """Return the variance of every entry of a report, the largest one."""
        return self.variance(randomiser)
