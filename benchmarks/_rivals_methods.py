# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rivals of private logistic regression of which there is no package, written from their articles.

Newton steps with double noise (Ganesh et al. 2023), and sparse Frank-Wolfe (Raff et al. 2023).
They are simulations: their noise is that of numpy, not for real releases.
"""

import math

import numpy as np
from scipy import sparse
from scipy.linalg.blas import ssyrk

from skdp.privacy import gdp_mu

__all__ = ["double_noise", "sparse_frank_wolfe"]


def double_noise(X, y, epsilon, delta, *, bound, clip, rng, steps=15):
    """Return coefficients from Newton steps with two noises; replace-one, rows in the unit ball.

    Seven tenths of the squared Gaussian-DP budget go to gradients, a tenth of the rest to the
    trace of the curvature, by which the least eigenvalue is chosen, and what is left to noise
    on the steps. With another row the gradient moves by at most 2 / n. The curvature moves by the
    difference of two matrices of rank one, of norm 0.25 / n each: by that in the spectral norm,
    which is what counts where the least eigenvalue is added, and by the root of two times that in
    Frobenius norm, in which raising eigenvalues and inverting is Lipschitz.

    Parameters
    ----------
    X, y : ndarray of shape (n_rows, n_features) and (n_rows,)
        Private data; classes 0 and 1.
    epsilon, delta : float
        Budget.
    bound : bool
        Whether the curvature is that of the quadratic bound on the loss, or the Hessian.
    clip : bool
        Whether smaller eigenvalues are raised to the least, or it is added to all.
    rng : numpy.random.Generator
        Source of the noise (a simulation: not for real releases).
    steps : int, default=15
        Number of steps.

    Returns
    -------
    coef : ndarray of shape (n_features,)
        Coefficients.
    """
    n, size = X.shape
    mu2 = gdp_mu(epsilon, delta) ** 2 / steps
    mu_gradient, mu_trace, mu_step = (math.sqrt(mu2 * part) for part in (0.7, 0.03, 0.27))
    coef, single = np.zeros(size), X.astype(np.float32)
    for _ in range(steps):
        margin = X @ coef
        p = 1 / (1 + np.exp(-np.clip(margin, -500, 500)))
        gradient = X.T @ (p - y) / n + 2 * rng.normal(size=size) / (n * mu_gradient)
        if bound:  # tanh(t / 2) / 2t, a quarter at 0
            near = np.abs(margin) < 1e-6
            weight = np.where(near, 0.25, (p - 0.5) / np.where(near, 1.0, margin))
        else:
            weight = p * (1 - p)
        # in single precision, and one triangle
        upper = ssyrk(1.0, (single * np.sqrt(weight, dtype=np.float32)[:, None]).T).astype(float)
        curvature = (upper + np.triu(upper, 1).T) / n
        # a row adds at most a quarter of 1 / n to it
        trace = max(np.trace(curvature) + 0.25 / (n * mu_trace) * rng.normal(), 0.0)
        least = max((0.5 * trace / (n**2 * mu_step**2 / 2)) ** (1 / 3), 1 / n)
        if clip:
            values, axes = np.linalg.eigh(curvature)
            step = axes @ ((axes.T @ gradient) / np.maximum(values, least))
        else:
            step = np.linalg.solve(curvature + least * np.eye(size), gradient)
        moved = 0.25 * np.linalg.norm(gradient) / (n * least**2) * (math.sqrt(2) if clip else 1)
        coef -= step + moved / mu_step * rng.normal(size=size)
    return coef


def sparse_frank_wolfe(X, y, epsilon, delta, *, bound, steps, rng):
    """Return coefficients from Frank-Wolfe steps to vertices that the exponential mechanism draws.

    Logistic loss in the l1 ball, step 2 / (t + 2) to a vertex that is likelier the steeper the mean
    loss falls towards it; every draw is at epsilon / sqrt(8 steps log(1 / delta)). Vertices are
    drawn with their signs. The heap and the sampler of Raff et al. change the time of a draw, not
    its law: here a draw takes a pass over all features.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features)
        Private rows, of entries in [-1, 1].
    y : ndarray of shape (n_rows,)
        Classes 0 and 1.
    epsilon, delta : float
        Budget; replace-one: a mean gradient moves by at most 2 / n in an entry.
    bound : float
        Radius of the ball.
    steps : int
        Number of draws.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    coef : ndarray of shape (n_features,)
        Coefficients.
    """
    n, size = X.shape
    columns = sparse.csc_array(X)
    transposed = sparse.csr_array(columns.T)
    each = epsilon / math.sqrt(8 * steps * math.log(1 / delta))
    coef, margin = np.zeros(size), np.zeros(n)
    for t in range(1, steps + 1):
        p = 1 / (1 + np.exp(-np.clip(margin, -500, 500)))
        # the radius is in the score and in its sensitivity, and cancels
        score = each * n / 4 * (transposed @ (p - y) / n)
        peak = np.abs(score).max()
        weights = np.cumsum(np.concatenate([np.exp(-score - peak), np.exp(score - peak)]))
        drawn = np.searchsorted(weights, rng.random() * weights[-1], side="right")
        j, sign = drawn % size, 1 if drawn < size else -1
        step = 2 / (t + 2)
        coef *= 1 - step
        margin *= 1 - step
        coef[j] += step * sign * bound
        here = slice(columns.indptr[j], columns.indptr[j + 1])
        margin[columns.indices[here]] += step * sign * bound * columns.data[here]
    return coef
