# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact privacy loss of a histogram with a threshold between two data sets.

Columns are independent of each other. One that only the first data set touches is seen in
the output or not, and if it is, the second data set is ruled out. Columns that both touch
are Gaussians a certain distance apart, of which outputs below the threshold are merged.
"""

import math
from dataclasses import dataclass
from unittest import mock

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from skdp._rows.base import L2Ball
from skdp.location._sparse_noisy import SparseMeanProblem, plan_histogram, sparse_rows
from skdp.privacy import Curator, gdp_delta
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.laws import histogram as _histogram

EPSILON, DELTA = 1.0, 1e-6
# far beyond any threshold of these tests
HIGH = 300


@dataclass(frozen=True)
class Histogram:
    """Columns that were touched, the sums over them, and the noise that is declared."""

    columns: np.ndarray
    sums: np.ndarray
    noise: object


def released(fit, rows):
    """Return the `Histogram` behind the one release of a fit."""
    seen, touched, add_noise = [], _histogram.touched, _mechanisms.add_noise

    def watched(sums, noise, bits):
        seen.append(noise)
        return add_noise(sums, noise, bits)

    def recorded(*args):
        seen.extend(touched(*args))
        return seen[0], seen[1]

    with (
        mock.patch.object(_histogram, "touched", recorded),
        mock.patch.object(_mechanisms, "add_noise", watched),
    ):
        fit(rows)
    columns, sums, noise = seen
    return Histogram(columns, sums, noise)


def seen(sums, noise):
    """Return the probability that some of the columns with these sums is released."""
    sums, tau, sigma = np.abs(sums), noise.threshold, noise.scale
    each = ndtr((sums - tau) / sigma) + noise.two_sided * ndtr(-(sums + tau) / sigma)
    return -np.expm1(np.log1p(-each).sum())


def divergence(first, second, epsilon):
    """Return the hockey-stick divergence of two histograms, from the first to the second.

    Common columns are taken to be far above the threshold, where nothing is merged: this
    is what it comes to once other rows have put them there.
    """
    noise = first.noise
    assert noise == second.noise
    _, one, two = np.intersect1d(first.columns, second.columns, return_indices=True)
    distance = np.linalg.norm(first.sums[one] - second.sums[two]) / noise.scale
    mine = seen(np.delete(first.sums, one), noise)
    other = seen(np.delete(second.sums, two), noise)
    # (1 - mine) P - e^epsilon (1 - other) Q
    inner = epsilon + np.log1p(-other) - np.log1p(-mine)
    assert inner >= 0
    return mine + (1 - mine) * gdp_delta(distance, inner)


def worst(fit, first, second, epsilon):
    """Return the larger divergence of the two directions."""
    pair = released(fit, first), released(fit, second)
    return max(divergence(*pair, epsilon), divergence(*pair[::-1], epsilon))


def exact(means, strays, noise, epsilon):
    """Return the divergence with one common column near the threshold, by quadrature.

    `means` are the two sums over the common column, `strays` those over the columns that
    only the first, and only the second, data set touches. Outputs are merged into cells,
    which can only lower the divergence.
    """
    sigma, tau = noise.scale, noise.threshold
    edges = np.linspace(tau, max(*means, tau) + 40 * sigma, 20_001)
    if noise.two_sided:
        edges = np.concatenate([-edges[::-1], edges])
    # what lies between the thresholds is one cell
    first, second = (
        np.diff(ndtr((edges - mean) / sigma), prepend=0.0, append=1.0) for mean in means
    )
    mine, other = (seen(sums, noise) for sums in strays)
    gap = (1 - mine) * first - np.exp(epsilon) * (1 - other) * second
    return mine + np.maximum(gap, 0).sum()


def release_of(adjacency, nonnegative=False, sparsity=1, radius=1.0):
    """Return a fit: it releases the mean of rows over an open dictionary."""

    def fit(X):
        n, d = X.shape
        public = n, d, EPSILON, DELTA, adjacency, min(sparsity, d), nonnegative
        problem = SparseMeanProblem(*public)
        curator = Curator(
            lambda: sparse_rows(X, L2Ball(radius), problem.sparsity, nonnegative),
            n_rows=n,
            epsilon=EPSILON,
            delta=DELTA,
            adjacency=adjacency,
            random_state=None,
            purpose="test",
        )
        return plan_histogram(problem).run(curator)

    return fit


def measured(pair, adjacency, nonnegative=False, sparsity=1):
    """Return what two data sets give away beyond epsilon, relative to delta."""
    return worst(release_of(adjacency, nonnegative, sparsity), *pair, EPSILON) / DELTA


def rows_of(first, second, d=60, others=HIGH):
    """Return neighbours that differ in row 0, columns 0 and d - 1 far above the threshold."""
    body = sparse.csr_array(np.tile(np.eye(d)[[0, -1]], (others, 1)))
    return [sparse.vstack([sparse.csr_array([row]), body], format="csr") for row in (first, second)]


def unit(d, *columns, sign=1.0):
    """Return a row of length 1 with equal entries in some columns."""
    row = np.zeros(d)
    row[list(columns)] = sign / math.sqrt(len(columns))
    return row


def alone(adjacency, nonnegative, sparsity, a=1.0, d=60):
    """Return neighbours of which one has a part of length `a` in columns of its own."""
    other = np.zeros(d)
    if adjacency == "replace-one":
        other = unit(d, d - 1) if nonnegative else unit(d, 0, sign=-1.0)
    own = sparsity if a == 1 else sparsity - 1
    row = unit(d, 0) * math.sqrt(1 - a * a)
    if own:
        row += a * unit(d, *range(1, 1 + own))
    return rows_of(row, other)
