# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private least squares of others, written here from their descriptions, for replace-one.

- AdaSSP: noisy sufficient statistics (Wang, "Revisiting differentially private linear regression",
  UAI 2018).
- Iterative Hessian Mixing: Newton steps in the geometry of Gaussian sketches (Lev, Shenfeld,
  Srinivasan, Ligett, Wilson, "Near-optimal private linear regression via iterative Hessian mixing",
  ICML 2026).
- TukeyEM: one of many least squares on disjoint rows, or what lies between them (Amin, Joseph,
  Ribero, Vassilvitskii, "Easy differentially private linear regression", ICLR 2023).

Where a description leaves something open, it is done in their favour: the first two compose
their releases tightly, and what bounds they need may be chosen by looking at the data. Rows and
targets are clipped to public bounds, which is what heavy tails are expensive for. Noise is
simulated, by floats: nothing here is for real releases.
"""

import math

import numpy as np
from scipy.optimize import brentq

from skdp.privacy import gdp_mu

__all__ = ["adassp", "hessian_mixing", "tukey"]


def _bounded(X, y, row_bound, target_bound, constant):
    """Return rows in the unit ball, a constant feature included, targets in [-1, 1], a factor."""
    lengths = np.linalg.norm(X, axis=1)
    factor = math.hypot(1.0, constant)
    X = X * (np.minimum(1.0, row_bound / np.maximum(lengths, 1e-300)) / row_bound)[:, None]
    X = np.hstack([X, np.full((len(X), 1), constant)]) / factor
    return X, np.clip(y / target_bound, -1.0, 1.0), factor


def adassp(X, y, epsilon, delta, *, row_bound, target_bound, constant=0.3, rng):
    """Return coefficients and intercept from noisy sufficient statistics.

    A third of the squared Gaussian-DP budget goes to each of three releases.

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
    X, y, factor = _bounded(X, y, row_bound, target_bound, constant)
    size, mu = X.shape[1], gdp_mu(epsilon, delta) / math.sqrt(3.0)
    # for rows in the unit ball |xx' - zz'|_F <= sqrt(2), |xy - zw| <= 2, an eigenvalue moves by 1
    gram, cross = X.T @ X, X.T @ y
    noise = rng.normal(size=(size, size)) * math.sqrt(2.0) / mu
    gram_noisy = gram + np.triu(noise) + np.triu(noise, 1).T
    cross_noisy = cross + rng.normal(size=size) * 2.0 / mu
    smallest = np.linalg.eigvalsh(gram)[0] + (rng.normal() - 2.0) / mu
    wanted = math.sqrt(2.0) / mu * math.sqrt(size * math.log(2 * size**2 / 0.05))
    ridge = max(0.0, wanted - max(smallest, 0.0))
    w = np.linalg.lstsq(gram_noisy + ridge * np.eye(size), cross_noisy, rcond=None)[0]
    scale = target_bound / factor
    return w[:-1] * scale / row_bound, w[-1] * scale * constant


def _mixing_epsilon(gamma, k, steps, delta):
    """Return epsilon of Hessian mixing at a smallest eigenvalue, by the Renyi divergence.

    Both matrices of a replacement are at least gamma times the identity, and the worst new row is
    orthogonal to the old one: variances gamma and gamma + 1 change places in two directions. As
    much as all sketches and the smallest eigenvalue spend in the limit is spent on gradients.
    """
    alpha = 1 + np.geomspace(1e-3, gamma / 2, 400)
    sketches = -np.log1p(-alpha * (alpha - 1) / (gamma * (gamma + 1))) / (2 * (alpha - 1))
    others = alpha * k / gamma**2 * (0.5 + (steps + 1) / 2)
    rest = np.log1p(-1 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1)
    return float(np.min(k * steps * sketches + others + rest))


def hessian_mixing(
    X, y, epsilon, delta, *, row_bound, target_bound, constant=0.3, steps=3, sketch=6, rng
):
    """Return coefficients and intercept from Newton steps with sketched second moments.

    Each of `steps` steps releases a Gaussian sketch of the rows, to which noise is added unless
    the rows' smallest eigenvalue hides a row already, and a noisy gradient of clipped residuals.
    A sketch is drawn from its law, which takes less time than the product that defines it.

    Parameters
    ----------
    X, y, epsilon, delta, row_bound, target_bound, constant, rng
        As for `adassp`.
    steps : int, default=3
        Number of steps, that of the authors.
    sketch : float, default=6
        Rows of a sketch, in numbers of features or of a logarithm, that of the authors.

    Returns
    -------
    coef, intercept : ndarray of shape (n_features,), float
        The estimate.
    """
    X, y, factor = _bounded(X, y, row_bound, target_bound, constant)
    size, failure = X.shape[1], delta / 20
    k = math.ceil(sketch * max(size, math.log(40 * steps / delta)))

    def excess(log_gamma):
        return _mixing_epsilon(math.exp(log_gamma), k, steps, delta - failure) - epsilon

    gamma = math.exp(brentq(excess, math.log(3.0), math.log(1e9)))
    gram, spread = X.T @ X, gamma / math.sqrt(k)
    seen = np.linalg.eigvalsh(gram)[0] + spread * rng.normal()
    # with probability 1 - failure at most the smallest eigenvalue
    sure = seen - spread * math.sqrt(2 * math.log(1 / failure))
    added = max(0.0, gamma - max(0.0, sure))
    root = np.linalg.cholesky(gram + (added + 1e-9 * np.trace(gram)) * np.eye(size))
    # a gradient moves by at most 2
    noise = 2 * math.sqrt(steps) / math.sqrt((steps + 1) * k) * gamma
    w = np.zeros(size)
    for _ in range(steps):
        sketched = rng.normal(size=(k, size)) @ root.T
        gradient = X.T @ np.clip(y - X @ w, -1.0, 1.0) + noise * rng.normal(size=size)
        w += np.linalg.solve(sketched.T @ sketched / k, gradient)
    scale = target_bound / factor
    return w[:-1] * scale / row_bound, w[-1] * scale * constant


def _one_exactly(depth, low, high, inner_low, inner_high, rng):
    """Draw from the cells of one depth: outside of an inner box in at least one coordinate."""
    outer, inner = np.log(high - low), np.log(inner_high - inner_low)
    rim = outer + np.log1p(-np.exp(np.minimum(inner - outer, -1e-300)))
    # the first coordinate that lies on the rim is drawn first
    before = np.concatenate([[0.0], np.cumsum(inner)[:-1]])
    after = np.concatenate([np.cumsum(outer[::-1])[::-1][1:], [0.0]])
    first = int(np.argmax(before + rim + after + rng.gumbel(size=len(low))))
    point = rng.uniform(low, high)
    point[:first] = rng.uniform(inner_low[:first], inner_high[:first])
    left, right = inner_low[first] - low[first], high[first] - inner_high[first]
    place = rng.uniform(0, left + right)
    point[first] = low[first] + place if place < left else inner_high[first] + place - left
    return point


def tukey(X, y, epsilon, delta, *, n_models, rng):
    """Return coefficients and intercept deep among least squares on disjoint rows, or None.

    Depth is that of a coordinate's rank, the smaller from either end. Half of epsilon tests whether
    volumes of depths are so close that an exponential mechanism among the deep half may be used;
    the other half is that mechanism's. A failed test has no answer. One row changes one model,
    whether it is replaced or removed.

    Parameters
    ----------
    X, y, epsilon, delta, rng
        As for `adassp`; no bound is needed.
    n_models : int
        Number of models, each on as many rows; there must be rows for as many coefficients.

    Returns
    -------
    estimate : tuple of (ndarray of shape (n_features,), float) or None
        Coefficients and intercept.
    """
    X = np.hstack([X, np.ones((len(X), 1))])
    rows, half = len(X) // n_models, epsilon / 2
    if rows < X.shape[1]:
        return None
    order = rng.permutation(len(X))[: rows * n_models].reshape(n_models, rows)
    models = np.array([np.linalg.lstsq(X[part], y[part], rcond=None)[0] for part in order])
    models = np.sort(models + 1e-10 * rng.random(models.shape), axis=0)  # breaks ties
    deepest, t = n_models // 2, n_models // 4
    low, high = models[:deepest], models[::-1][:deepest]  # row i: of depth i + 1 and more
    volumes = np.log(np.maximum(high - low, 1e-300)).sum(axis=1)
    # how many models would have to change before the mechanism could not be used
    distance, limit = -1, math.log(delta / 8) - half
    for k in range(t - 1):
        deeper = volumes[t + k + 1 : -1]
        if not len(deeper):
            break
        gains = half / 2 * np.arange(1, len(deeper) + 1)
        if np.min(volumes[t - k - 2] - deeper - gains) > limit:
            break
        distance = k
    if distance + rng.laplace(scale=1 / half) <= math.log(1 / (2 * delta)) / half:
        return None
    # depths from t on; their cells are between boxes
    shells = volumes[t - 1 :].copy()
    shells[:-1] += np.log1p(-np.exp(np.minimum(shells[1:] - shells[:-1], -1e-15)))
    shells += half * np.arange(len(shells)) + rng.gumbel(size=len(shells))
    depth = t - 1 + int(np.argmax(shells))
    if depth == deepest - 1:
        point = rng.uniform(low[depth], high[depth])
    else:
        point = _one_exactly(depth, low[depth], high[depth], low[depth + 1], high[depth + 1], rng)
    return point[:-1], float(point[-1])
