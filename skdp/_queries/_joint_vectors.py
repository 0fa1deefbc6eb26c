# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Vectors that rows report on: rows of a box, and rows together with their targets."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from skdp._queries._magnitude_threshold import raw_norms


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
