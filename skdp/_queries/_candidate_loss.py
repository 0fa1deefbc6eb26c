# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The choice of one of several released coefficients, by their loss."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._loss_values import loss_values
from skdp._sampling import choose_by_loss
from skdp.privacy import Sensitivity

# candidates of which all pairs are looked at
_MOST_PAIRED = 100


@dataclass(frozen=True, eq=False)
class CandidateChoice:
    """Index of a candidate, drawn with probability exp(-loss / temperature).

    Parameters
    ----------
    candidates : ndarray of shape (n_candidates, n_outputs * n_coefs)
        Public coefficients, such as released ones. At least two differ.
    loss : object
        Loss of `skdp._losses`.
    row_norm : float
        Bound on the norm of a row.
    """

    candidates: Any
    loss: Any
    row_norm: float

    idealised = True
    size = 1

    @property
    def name(self):
        """What the statistic is."""
        return f"choice among {len(self.candidates)} candidates by {type(self.loss).__name__}"

    @property
    def diameter(self):
        """Largest distance of two candidates; of many, twice the largest norm, which is more."""
        points = self.candidates
        if len(points) > _MOST_PAIRED:
            return 2 * math.sqrt(np.einsum("ij,ij->i", points, points).max())
        return max(float(np.linalg.norm(points - point, axis=1).max()) for point in points)

    def sensitivity(self, adjacency, n_rows):
        """State the spread: Lipschitz constant times the diameter of the candidates.

        Proof. The loss of one row differs between two candidates by at most
        L X |a - b|. Zero-out changes the score by one row's loss, replace-one by a
        difference of two. The candidates are public, and so is their diameter.
        """
        spread = self.loss.lipschitz * self.row_norm * self.diameter
        theorem = "L X times the diameter of the candidates"
        if adjacency != "zero-out":
            spread, theorem = 2 * spread, "2 " + theorem
        bound = float(max(1, len(self.candidates)))
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=spread)

    def draw(self, rows, noise, source):
        """Return the index at the temperature ``noise.scale``."""
        scores = loss_values(rows, self.candidates, self.loss)
        return np.array([float(choose_by_loss(scores, 1.0 / noise.scale, source))])
