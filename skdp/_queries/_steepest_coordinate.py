# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A signed coordinate, drawn by how steeply a linear model's loss falls along it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from skdp._queries._quantile_rank import rate
from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity
from skdp.privacy._choice import weighted_choice

# scores are multiples of the largest entry over 2^10: a thousandth of the noise, and so
# coarse that features with few rows share their scores
_GRID_BITS = 10


@dataclass(frozen=True, eq=False)
class SteepestCoordinate:
    """Index of a signed coordinate, drawn by the sum of clipped gradients along it.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Where the gradient is taken; the intercept, if there is one, comes last.
    loss : object
        Loss of `skdp._losses`.
    clip : float
        Bound on the largest entry of one row's gradient, intercept included.

    Notes
    -----
    With g the sum of the rows' gradients, flattened, the score of index j is ``g_j``, that of
    ``coef.size + j`` is ``-g_j``. The gradient of a row is the outer product of its residual
    and the row itself: scaling the residual so that its largest entry is at most ``clip``
    over the row's largest entry clips the gradient, and keeps its direction. Scores lie on a
    grid, and the draw from them is exact.
    """

    coef: Any
    loss: Any
    clip: float

    #: what is drawn from is not a float
    idealised = False

    @property
    def name(self):
        """What the statistic is."""
        loss = type(self.loss).__name__
        return f"steepest coordinate of {loss}, gradient entries clipped to {self.clip:.6g}"

    @property
    def size(self):
        """Number of coordinates of what is drawn: an index."""
        return 1

    @property
    def grid(self):
        """Step of the scores, a power of two."""
        return math.ldexp(1.0, math.ceil(math.log2(self.clip)) - _GRID_BITS)

    def sensitivity(self, adjacency, n_rows):
        """State the spread: twice the clip (zero-out) or four times it, plus two grid steps.

        Proof. A row's gradient has entries in [-clip, clip]. Zero-out removes one such
        vector; replace-one exchanges two. So every entry of g moves by at most r = clip or
        2 clip, and once it is rounded to a multiple of the grid by at most r + grid. The
        scores of j and of its opposite change by opposite amounts: all changes lie in
        [-r - grid, r + grid].
        """
        if adjacency == "zero-out":
            reach, theorem = self.clip, "a clipped gradient has entries <= clip, either way"
        else:
            reach, theorem = 2 * self.clip, "two clipped gradients differ by <= 2 clip, either way"
        spread = 2 * (reach + self.grid)
        bound = float(2 * self.coef.size)
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=spread)

    def partial(self, chunk):
        """Return the clipped gradients of a chunk, summed."""
        limit = self.clip / chunk.largest_entries()
        chunk = chunk.widened()
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        if residual.ndim == 1:
            np.clip(residual, -limit, limit, out=residual)
        else:
            longest = np.abs(residual).max(axis=1)
            residual *= (limit / np.maximum(longest, limit + 1e-300))[:, None]
        return chunk.combine(residual)

    def scores(self, rows):
        """Return the scores of the coordinates along +1, in grid steps, int64."""
        total = sum_over(rows, self.partial, self.coef.size)
        total /= self.grid
        return np.rint(total, out=total).astype(np.int64)

    def draw(self, rows, noise, source):
        """Return an index with probability proportional to exp(-score / noise.scale)."""
        along = self.scores(rows)
        largest = np.abs(along).max()
        steps = np.concatenate([largest + along, largest - along])
        inverse = rate(1 / Fraction(self.grid), noise.scale)
        once = np.broadcast_to(1.0, steps.shape)
        chosen = weighted_choice(once, steps, inverse, source)
        return np.array([chosen], dtype=np.float64)
