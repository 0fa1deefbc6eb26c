# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""One pass of gradient descent over rows, each of which is used once."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._domains import ball_constraint
from skdp._queries._sums import SMALLEST_CHUNK
from skdp.privacy import Sensitivity


@dataclass(frozen=True, eq=False)
class OnePassDescent:
    """Average iterate of one pass of projected gradient steps, batch after batch.

    Parameters
    ----------
    start : ndarray of shape (size,)
        Public starting point.
    loss : object
        Smooth loss of `skdp._losses`.
    row_norm : float
        Bound on the norm of a row.
    step : float
        Step along the mean gradient of a batch; ``step * (loss.smoothness * row_norm^2 +
        penalty)`` is at most 2.
    batch : int
        Rows of a batch.
    penalty : float
        Strength of ``penalty/2 |w|^2`` next to the MEAN loss.
    radius : float or None
        The iterates stay in this ball.
    """

    start: Any
    loss: Any
    row_norm: float
    step: float
    batch: int
    penalty: float = 0.0
    radius: float | None = None

    def __post_init__(self):
        smoothness = self.loss.smoothness * self.row_norm**2 + self.penalty
        if not self.step * smoothness <= 2:
            raise ValueError("step is too long: the descent would not be non-expansive.")

    @property
    def name(self):
        """What the statistic is."""
        return f"one pass over {type(self.loss).__name__}, batches of {self.batch}"

    @property
    def size(self):
        """Number of coordinates."""
        return self.start.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: step L X / batch (zero-out), twice that (replace-one).

        Proof. A gradient step on a convex function of smoothness at most 2 / step is
        non-expansive, and so is a projection. Up to the batch of the row in which
        neighbours differ the iterates agree; its step moves them apart by at most step /
        batch times the difference of the row's gradients, of norm at most L X each; no
        later step moves them further apart. The same then holds for their average.
        In floats every step rounds anew, relative to the iterate, which may be far longer
        than a late phase's step is: a bound on all of it is added.
        """
        longest_step = self.step * self.loss.lipschitz * self.row_norm
        reach = longest_step / self.batch
        theorem = "one step of one batch, then non-expansive steps"
        if adjacency != "zero-out":
            reach *= 2
        # a batch may end where a chunk of rows does
        n_steps = math.ceil(n_rows / self.batch) + math.ceil(n_rows / SMALLEST_CHUNK)
        farthest = float(np.linalg.norm(self.start)) + n_steps * longest_step
        rounding = 8 * farthest + (self.batch + self.size + 32) * longest_step
        reach += 2 * (n_steps + 1) * 2.0**-53 * rounding
        return Sensitivity(math.inf, reach, farthest, theorem)

    def evaluate(self, rows):
        """Return the average of the iterates, an array of shape (size,)."""
        shape = (-1,) if self.loss.n_outputs == 1 else (self.loss.n_outputs, -1)
        coef = self.start.reshape(shape)
        total, n_steps = np.zeros(coef.shape), 0
        for batch in rows.batches(self.batch):
            residual = self.loss.residual(batch.predict(coef), batch.target)
            active = np.isfinite(batch.norm)
            residual *= active if residual.ndim == 1 else active[:, None]
            # divided by the public size, whatever the number of null rows
            gradient = batch.combine(residual).reshape(coef.shape) / self.batch
            coef = coef - self.step * (gradient + self.penalty * coef)
            coef = ball_constraint(coef, self.radius)
            total += coef
            n_steps += 1
        return (total / n_steps).ravel()
