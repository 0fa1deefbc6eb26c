# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Distributions with heavy tails, what is known about them, and the excess loss."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

DELTA = 1e-5


@dataclass(frozen=True, eq=False)
class Task:
    """A distribution of rows, a loss, a budget, and what a method is told.

    The loss of a row x is ``-<w, x> + |w|^order / order``.

    Parameters
    ----------
    order : float
        Power of the norm, theta.
    epsilon : float
        In nats; delta is 1e-5, the adjacency replace-one.
    moment, moment_bound : float
        Order k, and a number r such that ``E |x|^k <= r^k``.
    spread : float
        Root of ``E |x|^2``, or more.
    start : ndarray of shape (d,)
        Where methods begin.
    radius : float
        No solution is further from there. The domain is a ball around the origin, as large.
    mean : ndarray of shape (d,)
        Expected row.
    """

    order: float
    epsilon: float
    moment: float
    moment_bound: float
    spread: float
    start: Any
    radius: float
    mean: Any

    @property
    def size(self):
        """Number of features."""
        return len(self.start)

    def at(self, **changes):
        """Return another task."""
        return replace(self, **changes)

    def minimum(self):
        """Return the least expected loss."""
        length = np.linalg.norm(self.mean)
        return -(1 - 1 / self.order) * length ** (self.order / (self.order - 1))

    def excess(self, point):
        """Return the expected loss of a point, less the minimum."""
        loss = -(self.mean @ point) + np.linalg.norm(point) ** self.order / self.order
        return float(loss - self.minimum())


def student_moment(df, k):
    """Return the root of order k of the k-th absolute moment of Student's law, 0 < k < df."""
    log = gammaln((k + 1) / 2) + gammaln((df - k) / 2) - gammaln(df / 2)
    return math.exp((log + k / 2 * math.log(df) - math.log(math.pi) / 2) / k)


def student_task(size=10, order=2.0, epsilon=1.0, df=4.5, k=4.0):
    """Return the task of rows with independent Student coordinates over sqrt(d).

    By Jensen's inequality a row's moments of order 2 and more are no larger than those of
    one coordinate, which is what methods are told. The minimum is at the origin, and
    methods begin at distance 1 from it.
    """
    start = np.eye(1, size)[0]
    return Task(
        order, epsilon, k, student_moment(df, k), student_moment(df, 2.0), start, 1.0,
        np.zeros(size),
    )  # fmt: skip


def student_rows(rng, n_rows, size, df=4.5):
    """Return the rows of a `student_task`."""
    return rng.standard_t(df, (n_rows, size)) / math.sqrt(size)


def outlier_rows(rng, n_rows, size, longest, k=4.0):
    """Return normal rows of length about 1, few of them replaced by rows as long as `longest`.

    An outlier has probability ``longest^-k``: its share of the k-th moment is 1 whatever its
    length is. One row is an outlier in any case, lest the longest ones are never seen.
    """
    X = rng.standard_normal((n_rows, size)) / math.sqrt(size)
    outliers = np.flatnonzero(rng.random(n_rows) < longest**-k)
    for i in {0, *outliers}:
        X[i] = rng.standard_normal(size)
        X[i] *= longest / np.linalg.norm(X[i])
    return X


def packing_rows(rng, n_rows, size, share, k=4.0):
    """Return rows of the lower bound's distribution, and their expectation.

    A row is 0 but with probability `share`, when it is ``share^(-1/k) / (2 sqrt(d))`` times
    a vector of signs, the same for all rows: the k-th moment is 2^-k. Signs are drawn anew in
    every repeat.
    """
    row = rng.choice([-1.0, 1.0], size) * share ** (-1 / k) / (2 * math.sqrt(size))
    return np.where(rng.random((n_rows, 1)) < share, row, 0.0), share * row
