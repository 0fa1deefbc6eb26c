# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Laws by quadrature, losses in batches, and the checks that compare draws with them."""

import numpy as np
from scipy import stats

from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import Variates

#: chance that a check of a correct sampler fails, had the seed been random
FALSE_ALARM = 1e-6


def source(purpose, seed=0):
    """Return a reproducible source of variates."""
    return Variates(SeededBits(seed, purpose))


def quadrature_cdf(log_density, low, high, n_points=50_001):
    """Return the distribution function of a density given up to a factor (midpoint rule)."""
    edges = np.linspace(low, high, n_points)
    log_mass = log_density((edges[1:] + edges[:-1]) / 2)
    mass = np.exp(log_mass - log_mass.max())
    cdf = np.concatenate([[0.0], np.cumsum(mass)])
    return lambda x: np.interp(x, edges, cdf / cdf[-1])


def same_law(draws, cdf):
    """Tell whether a Kolmogorov-Smirnov test lets the draws pass."""
    return stats.kstest(draws, cdf).pvalue > FALSE_ALARM


def same_counts(counts, probabilities):
    """Tell whether a chi-square test lets the counts pass; rare cells are put together."""
    expected = counts.sum() * np.ravel(probabilities) / np.sum(probabilities)
    counts, rare = np.ravel(counts), expected < 8
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 1:  # what is left over is too rare to be tested
        assert counts[-1] < 12
        counts, expected = counts[:-1], expected[:-1] * counts[:-1].sum() / expected[:-1].sum()
    return len(counts) == 1 or stats.chisquare(counts, expected).pvalue > FALSE_ALARM


def _linear(A, link):
    def loss(points):
        value, slope = link(points @ A.T)
        return value.sum(axis=1), slope @ A

    return loss


def absolute(data):
    """Return the sum of |x - d| over scalar data."""

    def loss(points):
        gap = points - data
        return np.abs(gap).sum(axis=1), np.sign(gap).sum(axis=1, keepdims=True)

    return loss


def hinge(A):
    """Return the sum of hinge losses; rows of A are features times labels."""
    return _linear(A, lambda z: (np.maximum(1 - z, 0.0), -(z < 1).astype(float)))


def logistic(A):
    """Return the sum of logistic losses; rows of A are features times labels."""
    return _linear(A, lambda z: (np.logaddexp(0.0, -z), -1 / (1 + np.exp(z))))


def distance(data):
    """Return the sum of Euclidean distances to the rows of data."""

    def loss(points):
        gap = points[:, None, :] - data
        norm = np.linalg.norm(gap, axis=2)
        return norm.sum(axis=1), (gap / np.maximum(norm, 1e-300)[..., None]).sum(axis=1)

    return loss


def affine(v):
    """Return the linear function <v, x>."""
    return lambda points: (points @ v, np.tile(v, (len(points), 1)))


def unit_rows(n_rows, n_dims, seed=0):
    """Return rows of the unit ball, with a preferred direction."""
    rows = np.random.default_rng(seed).normal(size=(n_rows, n_dims)) + 0.3
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
