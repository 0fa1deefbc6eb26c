# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How far clients move a model with their own rows."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity


@dataclass(frozen=True, eq=False)
class ClientUpdates:
    """Sum over clients of what their own rows move a linear model by, clipped client by client.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Where all clients start; the intercept, if there is one, comes last.
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    clip : float
        Bound on the Euclidean norm of the update of one client.
    n_steps, step_size : int, float
        Gradient steps of a client along the mean loss of its rows, and their length.
    pull : float, default=0.0
        Strength of the penalty ``pull/2 |w - coef|^2`` of a client's objective; at most
        ``1 / step_size``.

    Notes
    -----
    The update of a client that gets to ``w`` is ``(w - coef) / (m step_size)``, m being the sum
    of ``(1 - pull step_size)^k`` over ``k < n_steps``: a weighted mean of the directions of
    descent along its path, no longer than the longest of them. It is ``-X' A`` for the client's
    rows X and sums A of residuals, so that steps are taken in A and one update is formed at the
    end.
    """

    coef: Any
    loss: Any
    clip: float
    n_steps: int = 1
    step_size: float = 1.0
    pull: float = 0.0

    @property
    def name(self):
        """What the statistic is."""
        kind = f"{self.n_steps} steps" if self.n_steps > 1 else "1 step"
        pulled = f", pull {self.pull:.6g}" if self.pull else ""
        return (
            f"updates of clients by {kind} on {type(self.loss).__name__}{pulled}, clipped to "
            f"{self.clip:.6g}"
        )

    @property
    def size(self):
        """Number of coordinates."""
        return self.coef.size

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: clip (zero-out) or 2 clip (replace-one).

        Proof. Proposition 69 (i). A client's update is a function of its own rows and has norm
        at most clip, however many rows there are. Zero-out takes one away; replace-one takes
        one away and adds another. `n_rows` is the number of clients.
        """
        if adjacency == "zero-out":
            reach, theorem = self.clip, "the clipped update of a client has norm <= clip"
        else:
            reach, theorem = 2 * self.clip, "clipped updates of two clients differ by <= 2 clip"
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * self.clip, theorem=theorem)

    def partial(self, chunk):
        """Return the clipped updates of a chunk of clients, summed."""
        coef = np.atleast_2d(self.coef)
        total = np.zeros(coef.shape)
        for stack in chunk.stacks():
            weights = self._residuals(stack, coef)
            if stack.rows.shape[1] == 1:
                # the norm of an outer product: no update is formed
                norm = _norms(weights) * _norms(stack.rows)
                weights[:, 0] *= self._factors(norm)[:, None]
                summed = weights[:, 0].T @ stack.rows[:, 0]
            else:
                made = np.matmul(weights.transpose(0, 2, 1), stack.rows)
                summed = np.einsum("g,gkp->kp", self._factors(_norms(made)), made)
            total[:, _all(stack.columns)] -= summed
        return total.ravel()

    def evaluate(self, rows):
        """Return the sum over all clients, an array of shape (size,)."""
        return sum_over(rows, self.partial, self.size)

    def vectors(self, chunk):
        """Return a row for every client that is there: its clipped update, divided by clip."""
        coef = np.atleast_2d(self.coef)
        vectors = np.zeros((chunk.n_clients, *coef.shape))
        for stack in chunk.stacks():
            weights = self._residuals(stack, coef)
            made = np.matmul(weights.transpose(0, 2, 1), stack.rows)
            made *= (self._factors(_norms(made)) / -self.clip)[:, None, None]
            if stack.columns is None:
                vectors[stack.place] = made
            else:
                vectors[np.ix_(stack.place, np.arange(len(coef)), stack.columns)] = made
        return vectors.reshape(chunk.n_clients, self.size)

    def _residuals(self, stack, coef):
        """Return A of every client, of shape (n_clients, n_rows, n_outputs), over the steps."""
        rows, shape = stack.rows, (*stack.target.shape, len(coef))
        start = np.matmul(rows, coef[:, _all(stack.columns)].T)
        target = stack.target.ravel()
        gram = None
        if self.n_steps > 1 and rows.shape[1] <= rows.shape[2]:
            gram = stack.products()
        total, kept = np.zeros(shape), 1.0 - self.pull * self.step_size
        for step in range(self.n_steps):
            score = start.copy()
            if step and gram is not None:
                score -= self.step_size * np.matmul(gram, total)
            elif step:
                moved = np.matmul(rows.transpose(0, 2, 1), total)
                score -= self.step_size * np.matmul(rows, moved)
            flat = score.reshape(-1) if self.loss.n_outputs == 1 else score.reshape(-1, shape[2])
            residual = self.loss.residual(flat, target).reshape(shape)
            residual *= stack.weight[:, :, None]
            total *= kept
            total += residual
        total /= math.fsum(kept**k for k in range(self.n_steps))
        return total

    def _factors(self, norm):
        return self.clip / np.maximum(norm, self.clip)


def _all(columns):
    return slice(None) if columns is None else columns


def _norms(stack):
    """Return the Euclidean norm of every part of a stack, tiny ones included."""
    flat = np.ascontiguousarray(stack).reshape(len(stack), -1)
    return np.sqrt(np.einsum("ij,ij->i", flat, flat))
