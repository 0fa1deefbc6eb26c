# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Coefficients drawn by the exponential mechanism, with the loss as the score."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._loss_values import loss_gradients, loss_values
from skdp._sampling import ball_candidates, choose_by_loss, sample_tangent_box
from skdp.privacy import Sensitivity

#: net: candidates, and the multiplications that evaluating them may take
_CANDIDATES, _WORK = 4096, 2e10


@dataclass(frozen=True, eq=False)
class LossDraw:
    """Coefficients of density proportional to exp(-(loss + penalty) / temperature).

    Parameters
    ----------
    loss : object
        Loss of `skdp._losses`.
    n_coefs : int
        Coefficients of one output, the intercept included.
    row_norm : float
        Bound on the norm of a row.
    penalty : float
        Strength of ``penalty/2 |coef|^2`` in the score.
    radius : float
        The coefficients lie in the ball of this radius around 0.
    near : tuple of (ndarray, float) or None
        Centre and radius of a second ball that they lie in, both public.
    exact : bool
        Whether to draw from the density itself, or from a fixed net of candidates.

    Notes
    -----
    Rows in the unit ball, coefficients in the ball of radius R: a raw prediction of one
    output moves within [-a, a], a = R row_norm, and the losses here decrease in t z.
    The penalty is the same for all data and does not enter the spread.
    """

    loss: Any
    n_coefs: int
    row_norm: float
    penalty: float
    radius: float
    near: Any = None
    exact: bool = True

    idealised = True

    @property
    def name(self):
        """What the statistic is."""
        where = "near a released point" if self.near is not None else "in a ball"
        how = "a density" if self.exact else "a net"
        return f"coefficients {where}, drawn from {how} by {type(self.loss).__name__}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.loss.n_outputs * self.n_coefs

    def sensitivity(self, adjacency, n_rows):
        """State the spread: how unevenly a row's loss changes over the coefficients.

        Proof. Zero-out changes the score by -loss(row): its spread is the loss's range,
        at most its Lipschitz constant times the diameter of the set, and for one output
        the difference of its two extreme values. Replace-one changes it by a difference
        of two losses, whose spread is at most the sum of theirs.
        """
        radius = self.radius if self.near is None else self.near[1]
        reach = radius * self.row_norm
        spread = self.loss.lipschitz * 2 * reach
        if self.near is None and self.loss.n_outputs == 1:
            # predictions are within [-reach, reach] in the ball around 0 only
            worst, best = self.loss.value(np.array([-reach, reach]), np.ones(2))
            # a difference of nearly equal floats may be too small: that is added back
            spread = min(spread, float(worst - best + 1e-14 * worst))
        theorem = "range of a row's loss over the set"
        if adjacency != "zero-out":
            spread, theorem = 2 * spread, "ranges of two rows' losses over the set"
        return Sensitivity(math.inf, math.inf, self.radius, theorem, spread=spread)

    def draw(self, rows, noise, source):
        """Return one draw at the temperature ``noise.scale``."""
        inverse = 1.0 / noise.scale
        balls = [(np.zeros(self.size), self.radius)]
        if self.near is not None:
            balls.append(self.near)
        if self.exact:

            def score(points):
                values, gradients = loss_gradients(rows, points, self.loss)
                values += self.penalty / 2 * np.einsum("ij,ij->i", points, points)
                return values, gradients + self.penalty * points

            return sample_tangent_box(score, self.size, inverse, balls, source)
        # as many as public numbers allow: entries of sparse rows are no public number
        n_entries = self.size * rows.n_rows
        count = int(min(_CANDIDATES, max(64, _WORK / n_entries)))
        center, radius = balls[-1]
        points = center + ball_candidates(self.size, radius, count)
        scores = loss_values(rows, points, self.loss)
        scores += self.penalty / 2 * np.einsum("ij,ij->i", points, points)
        return points[choose_by_loss(scores, inverse, source)]
