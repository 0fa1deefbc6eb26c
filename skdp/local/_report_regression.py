# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Least squares from the moments of reports, and what its errors are."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from skdp._solvers import even_parts
from skdp.local._report_sums import MomentSums, noise_level

# groups whose moments tell the errors; numbers that they may take; fewer than that tell nothing
_GROUPS, _MOST_NUMBERS, _FEWEST = 100, 1 << 24, 8
# beyond this a penalty leaves nothing of any coefficient
_LARGEST_PENALTY = 1e60
# square of the grid of reports: no smaller eigenvalue can be told from 0
_LEAST_EIGENVALUE = 2.0**-40


@dataclass(frozen=True)
class Solution:
    """Coefficients in units of the reports.

    Parameters
    ----------
    coef, covariance : ndarray of shape (size,) and (size, size)
        Coefficients, and the estimate of their covariance; NaN where there are too few reports.
    smallest, level : float, float
        Smallest eigenvalue of the moment of the features, and the level of the noise.
    """

    coef: np.ndarray
    covariance: np.ndarray
    smallest: float
    level: float


def groups_of(n_rows, size):
    """Return consecutive parts of the rows, each with an empty `MomentSums`."""
    n_groups = max(1, min(_GROUPS, n_rows, _MOST_NUMBERS // size**2))
    return [(part, MomentSums(size)) for part in even_parts(0, n_rows, n_groups)]


def least_squares(groups, unit, penalty):
    """Return the corrected least squares of the last entry on the others.

    Parameters
    ----------
    groups : list of MomentSums
        Of equally many independent reports, but for one more.
    unit : PrivUnit
        Parameters of the lift that made the reports.
    penalty : ndarray of shape (size,)
        Added to the diagonal of the moment of the features.

    Returns
    -------
    solution : Solution
        Eigenvalues below the level of the noise are raised to it.
    """
    counts = np.array([group.n_reports for group in groups], dtype=np.float64)
    n_reports, size = int(counts.sum()), len(penalty)
    moments = np.array([group.second_moment(unit) for group in groups])
    moment = np.tensordot(counts / n_reports, moments, axes=1)
    level = noise_level(unit, size + 1, n_reports)
    values, vectors = eigh(moment[:-1, :-1])
    kept = np.maximum(values, max(level, _LEAST_EIGENVALUE))
    bread = (vectors * kept) @ vectors.T + np.diag(np.minimum(penalty, _LARGEST_PENALTY))
    # a penalty may be many times as large as any moment
    scale = 1.0 / np.sqrt(np.diag(bread))
    factor = cho_factor(bread * np.outer(scale, scale))
    inverse = scale[:, None] * cho_solve(factor, np.diag(scale))
    coef = inverse @ moment[:-1, -1]
    covariance = np.full((size, size), math.nan)
    if len(groups) >= _FEWEST:
        scores = moments[:, :-1, -1] - moments[:, :-1, :-1] @ coef
        scores -= counts @ scores / n_reports
        # n times the covariance of the mean score
        meat = (scores.T * counts) @ scores / (len(groups) - 1)
        covariance = inverse @ meat @ inverse / n_reports
        covariance = (covariance + covariance.T) / 2
    return Solution(coef, covariance, float(values[0]), level)


def joint_penalty(l2, n_rows, radius, n_features, fit_intercept):
    """Return what ``l2 |coef|^2`` next to a sum of squares adds to the moment of features.

    Parameters
    ----------
    l2 : float
        Strength, not negative.
    n_rows : int
        Number of rows.
    radius : float
        The length that a report's unit stands for.
    n_features : int
        Number of features; the intercept, if there is one, comes last and is left out.
    fit_intercept : bool
        Whether there is one.
    """
    strength = 0.0
    if l2 > 0:
        # by logarithms: powers of scales may overflow
        log = math.log(l2) - math.log(n_rows) - 2 * math.log(radius)
        strength = math.exp(min(max(log, -690.0), math.log(_LARGEST_PENALTY)))
    return np.append(np.full(n_features, strength), np.zeros(int(fit_intercept)))
