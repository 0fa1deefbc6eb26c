# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The clipped gradient of a batch, and of two halves that public coins make of it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._domains import row_norms
from skdp._queries._gradient import ClippedGradient
from skdp._queries._sums import sum_over
from skdp.privacy import Sensitivity
from skdp.privacy._bits import SeededBits

# numbers of the measurements that are held at once
_AT_ONCE = 1 << 21


def coins(step, positions):
    """Return a public fair coin for every row, the same for everybody.

    Parameters
    ----------
    step : int
        Number of the release; coins of different releases are independent.
    positions : ndarray of shape (n_rows,)
        Positions of rows in the data, sorted.

    Returns
    -------
    heads : ndarray of shape (n_rows,), dtype bool
        A function of the step and of the row's own position.
    """
    if not len(positions):
        return np.zeros(0, dtype=bool)
    words = SeededBits(step, "halves of a batch").words(1 + int(positions[-1]) // 64)
    places = positions.astype(np.uint64)
    return (words[positions // 64] >> (places % np.uint64(64))) & np.uint64(1) == 1


class SplitRows:
    """Rows in pairs of chunks: those whose coin shows heads, and the others."""

    def __init__(self, rows, step):
        self.n_entries, self.n_threads = rows.n_entries, rows.n_threads
        n_rows = rows.n_rows
        heads = coins(step, np.arange(n_rows) if rows.positions is None else rows.positions)
        self.chunks, first = [], 0
        for chunk in rows.chunks:
            side = heads[first : first + len(chunk.norm)]
            # looked at one after another: copies of a chunk are made when it is its turn
            self.chunks.append((chunk, side))
            first += len(chunk.norm)


@dataclass(frozen=True, eq=False)
class TelescopedGradient:
    """Sums of clipped gradients over a batch and over its two halves, side by side.

    Parameters
    ----------
    coef : ndarray of shape (n_coefs,) or (n_outputs, n_coefs)
        Where the gradient is taken; the intercept, if there is one, comes last.
    loss : object
        Pointwise loss.
    clip : float
        Bound on the Euclidean (for several outputs, Frobenius) norm of one row's
        gradient, intercept included.
    step : int or None
        Number of the coins that send a row to one half or the other; None for the batch
        alone.
    measurement : Measurement or None, default=None
        Public matrix of shape (n_measurements, n_coefs); the gradient of every output is
        measured by it, and the sums are those of measurements. None for the gradient itself.
    radius : float, default=inf
        Bound on the norm of the measurements of one row's gradient.

    Notes
    -----
    Rows are `LinearRows`, all of them or a batch. The gradient is that of `ClippedGradient`.
    """

    coef: Any
    loss: Any
    clip: float
    step: int | None
    measurement: Any = None
    radius: float = math.inf

    @property
    def name(self):
        """What the statistic is, the same for all points and all coins."""
        what = f"gradient of {type(self.loss).__name__}, clipped to {self.clip:.6g}"
        if self.measurement is not None:
            what = f"{self.measurement.shape[0]} measurements of the {what}"
        return what if self.step is None else what + ", of a batch and of its halves"

    @property
    def width(self):
        """Length of one sum."""
        if self.measurement is None:
            return self.coef.size
        return self.loss.n_outputs * self.measurement.shape[0]

    @property
    def size(self):
        """Number of coordinates."""
        return self.width if self.step is None else 3 * self.width

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: sqrt(2) times the longest contribution, or twice that.

        Proof. Let g be the clipped gradient of a row, or its measurements: its norm is at most
        C, the clipping norm or the radius. The coin of a row is public, and a function of its
        position: a row of the batch contributes (g, g, 0) or (g, 0, g), of norm at most
        sqrt(2) C, and nothing otherwise. Zero-out removes one contribution; replace-one
        exchanges one for another (triangle inequality). Without halves it contributes g.
        """
        longest = self.clip if self.measurement is None else self.radius
        reach, theorem = longest, "a row's contribution is clipped"
        if self.step is not None:
            reach = math.sqrt(2.0) * longest
            theorem = "a row's contribution is clipped, and counts in the batch and in one half"
        if adjacency != "zero-out":
            reach, theorem = 2 * reach, theorem.replace("a row's", "each of two rows'", 1)
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * longest, theorem=theorem)

    def summed(self, chunk):
        """Return the sum of one chunk's contributions, a fresh array of shape (width,)."""
        if self.measurement is None:
            return ClippedGradient(self.coef, self.loss, self.clip).partial(chunk)
        chunk = chunk.widened()
        total = np.zeros((self.loss.n_outputs, self.measurement.shape[0]))
        residual = self.loss.residual(chunk.predict(self.coef), chunk.target)
        residual = residual[:, None] if residual.ndim == 1 else residual
        length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
        step = max(1, _AT_ONCE // total.shape[1])
        for start in range(0, len(residual), step):
            rows = slice(start, start + step)
            with np.errstate(under="ignore"):
                # products of sparse rows are made row by row: no row rounds another
                sketches = self.measurement.sketches(sparse.csr_array(chunk.taken(rows).explicit()))
                limit = np.minimum(
                    self.clip / chunk.norm[rows],
                    self.radius / np.maximum(row_norms(sketches), 1e-100),
                )
                weight = limit / np.maximum(length[rows], limit + 1e-300)
                weight[np.isinf(chunk.norm[rows])] = 0.0
                total += (sketches.T @ (weight[:, None] * residual[rows])).T
        return total.ravel()

    def partial(self, split):
        """Return the sums of a chunk and of its halves, one after another.

        The sum over the chunk is the sum of those over its halves: a row changes no bit of
        the half that it is not in.
        """
        chunk, heads = split
        halves = [self.summed(chunk.taken(np.flatnonzero(side))) for side in (heads, ~heads)]
        return np.concatenate([halves[0] + halves[1], *halves])

    def evaluate(self, rows):
        """Return the sums over the batch and its halves, an array of shape (size,)."""
        if self.step is None:
            return sum_over(rows, self.summed, self.size)
        return sum_over(SplitRows(rows, self.step), self.partial, self.size)
