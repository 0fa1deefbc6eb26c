# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of the loss ``-<w, x> + |w|^theta / theta``, for rows without a bound.

They go through the library's gate and mechanisms, and state the sensitivity that is proved
for them. The loss is linear in the rows, so that its regularised minimiser is known but for
one root of a function of one number.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skdp._rows.base import L2Ball
from skdp._rows.linear import LinearRows
from skdp.location._clipped_mean import ClippedRowSum
from skdp.privacy import Sensitivity

#: rows are held in this unit, which none of them exceeds; the thresholds are what clips
UNIT = 2.0**40


def heavy_rows(X):
    """Return rows for the curator, forced into a ball that is public and huge."""
    nothing = np.zeros(len(X))
    return LinearRows(X, nothing, nothing.astype(bool), L2Ball(UNIT), 0.0)


def clipped_mean(rows, n_rows, size, clip):
    """Return the mean of `n_rows` rows, those longer than `clip` scaled down to it."""
    return ClippedRowSum(size, clip / UNIT).evaluate(rows) * (UNIT / n_rows)


def power_minimiser(mean, order, pull, center):
    """Return the minimiser of ``-<w, mean> + |w|^order/order + pull/2 |w - center|^2``.

    Parameters
    ----------
    mean, center : ndarray of shape (size,)
        What the loss is linear with, and where the point is held.
    order, pull : float
        At least 2 and at least 0, not both `pull` and the slope being 0.

    Returns
    -------
    point : ndarray of shape (size,)
        A multiple ``t / s`` of ``v = mean + pull center``, s its length, where
        ``t^(order - 1) + pull t = s``.
    """
    v = mean + pull * center
    length = float(np.linalg.norm(v))
    if length == 0:
        return np.zeros_like(v)
    if order == 2:
        return v / (1 + pull)
    most = length ** (1 / (order - 1))
    if pull > 0:
        most = min(most, length / pull)
    # both terms at most the sum: no more than `most`, where one of them is all of it
    precision = 1e-14 * most + 1e-300
    t = brentq(lambda t: t ** (order - 1) + pull * t - length, 0.0, 2 * most, xtol=precision)
    return v * (t / length)


@dataclass(frozen=True, eq=False)
class PowerMinimiser:
    """Minimiser of the mean of clipped losses plus ``pull/2 |w - center|^2``.

    Parameters
    ----------
    order : float
        Power theta >= 2 of the part of the loss that no row is in.
    pull, clip : float
        Strength of the penalty, and what longer rows are scaled down to; greater than 0.
    n_rows : int
        Number of rows that are read; public.
    center : ndarray of shape (size,)
        Public.
    convexity : float, default=0.0
        Only for ``order == 2``, whose power is itself strongly convex: 1 to count that.
    """

    order: float
    pull: float
    clip: float
    n_rows: int
    center: Any
    convexity: float = 0.0
    name = "minimiser of a linear loss and a power of the norm"

    @property
    def size(self):
        """Number of coordinates."""
        return len(self.center)

    @property
    def modulus(self):
        """Strong convexity of what is minimised, or less."""
        return self.pull + self.convexity

    @property
    def length(self):
        """Bound on the norm of the minimiser."""
        return (self.clip + self.pull * float(np.linalg.norm(self.center))) / self.modulus

    @property
    def tolerance(self):
        """Bound on the distance of what is computed from the minimiser."""
        return 1e-11 * self.length

    def __post_init__(self):
        if self.convexity and (self.order, self.convexity) != (2, 1):
            raise ValueError("only order 2 is strongly convex, with constant 1.")

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: reach / (n modulus) + 2 tolerance.

        Proof. A row's gradient is minus itself, no longer than `clip`: the gradients of two
        means differ by at most reach / n, reach being `clip` (zero-out) or twice that. What
        they are added to is the gradient of a function without rows that is strongly convex
        with constant `modulus`: its inverse is Lipschitz with constant 1 / modulus. No vector
        ``v`` of `power_minimiser` is longer than ``clip + pull |center|``, and rounding
        errors, a few units in the last place of it and of the root, grow no more than
        that either: the tolerance is four digits more.
        """
        if n_rows != self.n_rows:
            raise ValueError(f"the query is for {self.n_rows} rows; got {n_rows}.")
        reach = self.clip if adjacency == "zero-out" else 2 * self.clip
        moved = reach / (n_rows * self.modulus) + 2 * self.tolerance
        bound = self.length + self.tolerance
        return Sensitivity(math.inf, moved, bound, "reach / (n modulus) by strong convexity")

    def evaluate(self, rows):
        """Return the minimiser."""
        mean = clipped_mean(rows, self.n_rows, self.size, self.clip)
        return power_minimiser(mean, self.order, self.pull, self.center)
