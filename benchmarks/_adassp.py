# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Least squares from noisy sufficient statistics, the usual private regression: a baseline.

After AdaSSP (Wang, "Revisiting differentially private linear regression", UAI 2018), with two
things done in its favour: noise is that of Gaussian differential privacy, a third of mu^2 for each
of three releases, and what bounds it needs may be chosen by looking at the data. Rows and targets
are clipped to public bounds, which is what heavy tails are expensive for.
"""

import math

import numpy as np

from skdp.privacy import gdp_mu

__all__ = ["adassp"]


def adassp(X, y, epsilon, delta, *, row_bound, target_bound, constant=0.3, rng):
    """Return coefficients and intercept under replace-one adjacency.

    Parameters
    ----------
    X, y : ndarray of shape (n_rows, n_features) and (n_rows,)
        Private data.
    epsilon, delta : float
        Budget.
    row_bound, target_bound : float
        Rows and targets are clipped to these.
    constant : float, default=0.3
        Constant feature of the intercept, in row bounds.
    rng : numpy.random.Generator
        Source of the noise (a simulation: not for real releases).

    Returns
    -------
    coef, intercept : ndarray of shape (n_features,), float
        The estimate.
    """
    lengths = np.linalg.norm(X, axis=1)
    X = X / row_bound * np.minimum(1.0, row_bound / np.maximum(lengths, 1e-300))[:, None]
    X = np.hstack([X, np.full((len(X), 1), constant)])
    y = np.clip(y / target_bound, -1.0, 1.0)
    square, size = 1.0 + constant**2, X.shape[1]
    mu = gdp_mu(epsilon, delta) / math.sqrt(3.0)
    # |xx' - zz'|_F <= sqrt(2) |x|^2, |x y - z w| <= 2 |x|, an eigenvalue moves by |x|^2
    gram, cross = X.T @ X, X.T @ y
    noise = rng.normal(size=(size, size)) * math.sqrt(2.0) * square / mu
    gram_noisy = gram + np.triu(noise) + np.triu(noise, 1).T
    cross_noisy = cross + rng.normal(size=size) * 2.0 * math.sqrt(square) / mu
    smallest = np.linalg.eigvalsh(gram)[0] + square / mu * rng.normal() - 2.0 * square / mu
    wanted = math.sqrt(2.0) * square / mu * math.sqrt(size * math.log(2 * size**2 / 0.05))
    ridge = max(0.0, wanted - max(smallest, 0.0))
    w = np.linalg.lstsq(gram_noisy + ridge * np.eye(size), cross_noisy, rcond=None)[0]
    scale = target_bound / row_bound
    return w[:-1] * scale, w[-1] * constant * target_bound
