# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Separable losses on sparse rows, and private estimates of their gradients.

The loss of a row z is the sum over its s non-zeros j of |x_j - v_j| / sqrt(s): its gradient has s
non-zeros and norm 1, and it is not a function of one linear predictor.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from skdp.papers.bias_reduced import make_oracle, plan_telescope
from skdp.privacy import Sampling, gdp_mu, sampled_mu

EPSILON, DELTA, ADJACENCY = 1.0, 1e-6, "zero-out"
NONZEROS = 8


@dataclass
class Separable:
    """A separable loss on sparse rows: the targets v, and 1 / sqrt(s) entry by entry."""

    X: sparse.csr_array
    weights: np.ndarray

    @property
    def n_rows(self):
        """Number of rows."""
        return self.X.shape[0]

    def loss(self, x):
        """Return the mean loss."""
        return float(np.abs(x[self.X.indices] - self.X.data) @ self.weights) / self.n_rows

    def summed(self, x, rows=None):
        """Return the sum of gradients over some rows; None for all."""
        X, weights = self.X, self.weights
        if rows is not None:
            place = np.repeat(X.indptr[rows], counts := np.diff(X.indptr)[rows])
            place += np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
            X = type("Part", (), {"indices": X.indices[place], "data": X.data[place]})
            weights = weights[place]
        signs = np.sign(x[X.indices] - X.data) * weights
        return np.bincount(X.indices, weights=signs, minlength=len(x))


def separable(n_rows, n_features, rng):
    """Return a problem, and coefficients that are nearly its minimiser."""
    weights = np.arange(1, n_features + 1) ** -1.1
    columns = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(n_rows * NONZEROS))
    columns = np.minimum(columns, n_features - 1)
    rows = np.repeat(np.arange(n_rows), NONZEROS)
    parts = (np.ones(len(rows)), (rows, columns))
    X = sparse.csr_array(parts, shape=(n_rows, n_features))
    X.sum_duplicates()
    truth = rng.choice([-1.0, 1.0], n_features) / np.sqrt(np.arange(1, n_features + 1))
    truth *= 0.8 / np.linalg.norm(truth)
    X.data = truth[X.indices] + 0.2 / math.sqrt(n_features) * rng.normal(size=X.nnz)
    return Separable(X, 1 / np.sqrt(np.repeat(np.diff(X.indptr), np.diff(X.indptr)))), truth


class Estimates:
    """Private estimates of gradients, by one method, of a separable problem."""

    def __init__(self, problem, method, n_steps, n_levels, rng):
        self.problem, self.rng = problem, rng
        n, d = problem.X.shape
        self.oracle = make_oracle(
            "soft-threshold", radius=1.0, shape=(d,), intercept=False, sparsity=None, signal=1.0
        )
        self.plan = None
        if method == "bias-reduced":
            self.plan = plan_telescope(
                n_rows=n, size=d, adjacency=ADJACENCY, budget=(EPSILON, DELTA, 0.0, ()), clip=1.0,
                radius=1.0, l2=0.0, intercept=False, n_steps=n_steps, batch_size=n / 2**n_levels,
            )  # fmt: skip
            self.sigma = self.plan.sigma
            return
        self.cleaned, self.batch = method == "cleaned", n / 2**n_levels
        if n_levels:
            sampling = Sampling("poisson", n, self.batch)
            self.sigma = 1 / sampled_mu(
                EPSILON, DELTA, sampling=sampling, n_releases=n_steps, adjacency=ADJACENCY
            )
        else:
            self.sigma = math.sqrt(n_steps) / gdp_mu(EPSILON, DELTA)

    def _rows(self, batch_size):
        n = self.problem.n_rows
        if batch_size == n:
            return None
        return np.flatnonzero(self.rng.random(n) < batch_size / n)

    def _noise(self):
        return self.sigma * self.rng.standard_normal(self.problem.X.shape[1])

    def __call__(self, x, step):
        """Return one estimate."""
        if self.plan is None:
            mean = (self.problem.summed(x, self._rows(self.batch)) + self._noise()) / self.batch
            return self.oracle(mean, self.sigma / self.batch) if self.cleaned else mean
        telescope, level = self.plan.telescope, self.plan.levels[0][step]
        rows = self._rows(telescope.batch_size(level + 1))
        rows = np.arange(self.problem.n_rows) if rows is None else rows
        heads = self.rng.random(len(rows)) < 0.5
        halves = [self.problem.summed(x, rows[side]) for side in (heads, ~heads)]
        triple = [part + self._noise() for part in (halves[0] + halves[1], *halves)]
        smallest = self.problem.summed(x, self._rows(telescope.batch_size(0))) + self._noise()
        return telescope.estimate(
            level,
            smallest,
            triple,
            lambda mean, size: self.oracle(mean, self.sigma / telescope.batch_size(size)),
        )


def descended(estimates, n_steps, length):
    """Return the average of projected steps."""
    d = estimates.problem.X.shape[1]
    x, total = np.zeros(d), np.zeros(d)
    for step in range(n_steps):
        x = x - length * estimates(x, step)
        x /= max(1.0, np.linalg.norm(x))
        total += x
    return total / n_steps
