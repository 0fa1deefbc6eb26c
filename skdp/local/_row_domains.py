# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public domains of rows that report: how rows get there, and reports come back."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._rows.domains import RADIUS_RANGE, Box, L2Ball, row_norms, tame
from skdp._rows.linear import ball_rows, raw_norms
from skdp._sklearn import effective_n_threads
from skdp.local.randomisers.cube import PrivUnitCube
from skdp.local.randomisers.report import RowVectors, report_bound
from skdp.location._clipped_mean import BoxRows

# Vectors that rows report on: rows of a box, and rows together with their targets.


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
        """Return the rows of a chunk of `BoxRows`; what is not a number is the centre."""
        return chunk.box.to_unit(chunk.X.astype(np.float64, copy=False))

    def contents(self, chunk):
        """Return the rows before they are clipped: fewer of them are equal."""
        return chunk.X.astype(np.float64, copy=False)


@dataclass(frozen=True)
class JointVectors:
    """Row, constant and target in one vector of the unit ball.

    Parameters
    ----------
    radius : float
        Longest (x, y / scale), in the units of x; longer ones are scaled down to it.
    scale : float
        What targets are divided by.
    intercept : float
        Constant feature, in units of the radius; 0 for none.

    Notes
    -----
    The vector is ``f (x, intercept R, y / scale) / (R sqrt(1 + intercept^2))`` with
    ``f = min(1, R / |(x, y / scale)|)``. The constant is scaled down with the rest: so
    whatever is a linear function of the row without error stays the same function.
    """

    radius: float
    scale: float
    intercept: float

    name = "rows with their targets"

    def vectors(self, chunk):
        """Return the vectors of a chunk of `regression_rows`, zeros for null rows."""
        body = chunk.explicit()
        body = body.toarray() if sparse.issparse(body) else body
        made = np.empty((body.shape[0], body.shape[1] + 1 + bool(self.intercept)))
        # what is far too small is zero, whatever the units are
        with np.errstate(under="ignore", over="ignore"):
            length = raw_norms(chunk) / self.radius
            target = chunk.target / self.scale / self.radius
            factor = 1.0 / np.maximum(np.hypot(length, target), 1.0)
            factor /= np.hypot(1.0, self.intercept)
            factor[np.isinf(chunk.norm)] = 0.0
            np.multiply(body, (factor / self.radius)[:, None], out=made[:, : body.shape[1]])
            made[:, -1] = factor * target
        if self.intercept:
            made[:, -2] = factor * self.intercept
        return made


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
            reach = report_bound(randomiser) * self.box.half_width + np.abs(self.box.center)
            if not np.isfinite(reach).all():
                raise ValueError(
                    "bounds are so far apart that reports, which reach beyond them by a factor "
                    f"of {report_bound(randomiser):.3g}, would overflow; bring them together."
                )
            if isinstance(randomiser, PrivUnitCube):
                worst = float(randomiser.variance(0.0))
            else:
                worst = randomiser.grid.worst_variance
            # a root, for the squares of tiny sides
            return (math.sqrt(worst) * self.box.half_width) ** 2
