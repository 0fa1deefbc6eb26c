# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression by one local report a row, many runs at once.

A report of a vector lies in the plane of its row and of a Gaussian vector, so that a step of
all methods is one product with two vectors; the Gaussian vector is shared between methods.
Cosines are drawn by the library.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, roots_jacobi
from sklearn.linear_model import LogisticRegression

from skdp import LocalDPLogisticRegression
from skdp.local import BallRandomiser
from skdp.local.randomisers.ball import Lift
from skdp.local.randomisers.privunit import cap_cosines
from skdp.privacy.kernel.samplers import SeededBits

PAPER, OPTIMAL, LIFT, PLAIN = "paper's split", "best split", "lift", "no privacy"
DECAY = 0.51
# steps of which the noise is drawn at a time
_BLOCK = 2000


@dataclass(frozen=True)
class Setting:
    """Rows uniform on the sphere, and a logistic model of a random vector of norm tau."""

    n_dims: int
    n_rows: int
    tau: float
    epsilons: tuple
    first_step: object

    def method(self, name, epsilon):
        """Return the randomiser of gradients, None for the gradients themselves."""
        if name == PLAIN:
            return None
        made = {
            PAPER: BallRandomiser("product", parameters="paper-simulation"),
            LIFT: BallRandomiser("lift"),
            OPTIMAL: BallRandomiser("product", expected_norm=0.5),
        }[name]
        return made.calibrate(epsilon, self.n_dims)

    def methods(self):
        """Return all pairs (name, epsilon), the one without privacy last."""
        pairs = [(name, e) for name in (PAPER, OPTIMAL, LIFT) for e in self.epsilons]
        return [*pairs, (PLAIN, math.inf)]


@dataclass(frozen=True)
class Runs:
    """What came out: iterates are compared at some steps, averages at the end."""

    steps: np.ndarray  # (n_points,)
    gaps: dict  # (name, epsilon) -> (n_repeats, n_points): excess loss of iterates
    averaged: dict  # (name, epsilon) -> (n_repeats,): excess loss of the average
    errors: dict  # (name, epsilon) -> (n_repeats,): distance of the average
    finals: dict  # (name, epsilon) -> (n_repeats, n_dims): average less the true vector
    mle: np.ndarray  # (n_repeats,): distance of the maximum likelihood estimate


class Population:
    """Expected loss for rows uniform on the sphere: two coordinates of a row decide it."""

    def __init__(self, n_dims, tau):
        nodes, weights = roots_jacobi(24, (n_dims - 4) / 2.0, 0.0)
        self._radius = np.sqrt((1.0 + nodes) / 2.0)[:, None]
        self._weight = (weights / weights.sum())[:, None] / 96
        angle = 2.0 * np.pi * (np.arange(96) + 0.5) / 96
        self._cos, self._sin, self._tau, self._dims = np.cos(angle), np.sin(angle), tau, n_dims

    def loss(self, coef, truth):
        """Return the expected loss of vectors, shape (..., n_dims)."""
        along = coef @ truth / np.linalg.norm(truth)
        across = np.sqrt(np.maximum((coef**2).sum(axis=-1) - along**2, 0.0))
        x, y = self._radius * self._cos, self._radius * self._sin
        z = np.multiply.outer(along, x) + np.multiply.outer(across, y)
        loss = np.logaddexp(0.0, z) - expit(self._tau * x) * z
        return (loss * self._weight).sum(axis=(-2, -1))

    def hessian(self):
        """Return the eigenvalues of the Hessian at the truth: along it, and across."""
        x = self._radius * self._cos
        curvature = expit(self._tau * x) * expit(-self._tau * x) * self._weight
        along = (curvature * x**2).sum()
        return along, ((curvature.sum() - along) / (self._dims - 1))

    def trace(self, randomiser):
        """Return the trace of the asymptotic covariance of a lift, or without privacy."""
        along, across = self.hessian()
        noise = randomiser.variances(0.0)[1] if randomiser is not None else 0.0
        # at the truth the second moment of gradients is the Hessian
        return (along + noise) / along**2 + (self._dims - 1) * (across + noise) / across**2


class _Noise:
    """The random numbers of the reports of several methods of a kind, for a block of steps."""

    def __init__(self, randomisers, bits, rng, shape):
        self._lifted = isinstance(randomisers[0], Lift)
        drawn = [cap_cosines(r.unit, math.prod(shape), bits) for r in randomisers]
        scales = np.array([r.unit.scale for r in randomisers])
        self.along = np.stack([c.reshape(shape) for c, _ in drawn], axis=-1) / scales
        self.across = np.stack([np.sqrt(q).reshape(shape) for _, q in drawn], axis=-1) / scales
        if self._lifted:
            return
        grids = [r.grid for r in randomisers]
        self._cells = np.array([grid.levels.size - 1 for grid in grids])
        self._outputs = np.zeros((len(grids), self._cells.max() + 1))
        for outputs, grid in zip(self._outputs, grids, strict=True):
            outputs[: grid.levels.size] = grid.outputs
        shape = *shape, len(grids)
        self._up, self._which = rng.random(shape), np.arange(len(grids))
        self._kept = rng.random(shape) < [grid.p for grid in grids]
        self._other = rng.integers(0, np.broadcast_to(self._cells, shape))

    def coefficients(self, k, length, dot, square, last):
        """Return factors (of u, of the Gaussian vector) of the reports of ``length * u``.

        dot, square : products of the Gaussian vector with u and with itself; last : its extra
        entry, for a lift.
        """
        if self._lifted:
            rest = np.sqrt((1.0 - length) * (1.0 + length))
            product = length * dot + rest * last
            across = self.across[k] / np.sqrt(square + last**2 - product**2)
            return (self.along[k] - across * product) * length, across
        made = self._reported(k, length)
        across = made * self.across[k] / np.sqrt(square - dot**2)
        return made * self.along[k] - across * dot, across

    def _reported(self, k, length):
        place = length * self._cells
        level = np.minimum(place.astype(int), self._cells - 1)
        level += self._up[k] < place - level
        other = self._other[k] + (self._other[k] >= level)
        return self._outputs[self._which, np.where(self._kept[k], level, other)]


def run(setting, n_repeats, seed=0, n_points=40):
    """Make all runs of a setting, `n_repeats` data sets with all methods on each."""
    rng, bits = np.random.default_rng(seed), SeededBits(seed, "local logistic")
    d, n, methods = setting.n_dims, setting.n_rows, setting.methods()
    truth = rng.standard_normal((n_repeats, d))
    truth *= setting.tau / np.linalg.norm(truth, axis=1, keepdims=True)
    population = Population(d, setting.tau)
    steps = np.unique(np.geomspace(10, n, n_points).astype(int))
    first = np.array([setting.first_step(epsilon) for _, epsilon in methods])
    lifts = [i for i, (name, _) in enumerate(methods) if name == LIFT]
    kinds = slice(0, lifts[0]), slice(lifts[0], lifts[-1] + 1)
    coef = np.zeros((n_repeats, len(methods), d))
    total, seen = np.zeros_like(coef), np.zeros((len(steps), *coef.shape))
    factors, moved = np.zeros((n_repeats, len(methods), 2)), np.empty_like(coef)
    rows, labels = [], []
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        x = rng.standard_normal((n_repeats, size, d))
        x /= np.linalg.norm(x, axis=2, keepdims=True)
        chance = expit(np.einsum("rkd,rd->rk", x, truth))
        y = np.where(rng.random((n_repeats, size)) < chance, 1.0, -1.0)
        rows.append(x.astype(np.float32))
        labels.append(y)
        shape = (size, n_repeats)
        noise = [
            _Noise([setting.method(*method) for method in methods[kind]], bits, rng, shape)
            for kind in kinds
        ]
        pair = np.stack([x, rng.standard_normal(x.shape)], axis=2)
        dots = np.einsum("rkd,rkd->kr", pair[:, :, 0], pair[:, :, 1])
        squares = np.einsum("rkd,rkd->kr", pair[:, :, 1], pair[:, :, 1])
        lasts = rng.standard_normal(shape)
        for k in range(size):
            z = np.matmul(coef, pair[:, k, 0, :, None])[:, :, 0]
            sign = -y[:, k]
            length = expit(sign[:, None] * z)
            scale = (start + k + 1.0) ** -DECAY
            step = (-scale * sign)[:, None] * first
            dot, square, last = (dots[k] * sign)[:, None], squares[k][:, None], lasts[k][:, None]
            factors[:, -1, 0] = step[:, -1] * length[:, -1]
            for kind, made in zip(kinds, noise, strict=True):
                a, b = made.coefficients(k, length[:, kind], dot, square, last)
                factors[:, kind, 0] = step[:, kind] * a
                factors[:, kind, 1] = -scale * first[kind] * b
            # two passes each: a matrix product of depth two is slower
            for side in (0, 1):
                np.multiply(factors[:, :, side, None], pair[:, k, side, None], out=moved)
                coef += moved
            total += coef
            place = np.searchsorted(steps, start + k + 1)
            if place < len(steps) and steps[place] == start + k + 1:
                seen[place] = coef
    final = total / n
    gaps, averaged, errors, finals = {}, {}, {}, {}
    best = [population.loss(t, t) for t in truth]
    for i, method in enumerate(methods):
        gaps[method] = np.array(
            [population.loss(seen[:, r, i], truth[r]) - best[r] for r in range(n_repeats)]
        )
        averaged[method] = np.array(
            [population.loss(final[r, i], truth[r]) - best[r] for r in range(n_repeats)]
        )
        finals[method] = final[:, i] - truth
        errors[method] = np.linalg.norm(finals[method], axis=1)
    mle = [
        _likeliest(*(np.concatenate([part[r] for part in parts]) for parts in (rows, labels)), t)
        for r, t in enumerate(truth)
    ]
    return Runs(steps, gaps, averaged, errors, finals, np.array(mle))


def _likeliest(X, y, truth):
    model = LogisticRegression(C=np.inf, fit_intercept=False, max_iter=1000, tol=1e-5)
    return float(np.linalg.norm(model.fit(X, y).coef_[0] - truth))


def run_estimator(setting, epsilon, seed=1):
    """Return the distance, and excess loss of the average, of one fit by the library."""
    rng, n, d = np.random.default_rng(seed), setting.n_rows, setting.n_dims
    truth = rng.standard_normal(d)
    truth *= setting.tau / np.linalg.norm(truth)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.random(n) < expit(X @ truth)
    model = LocalDPLogisticRegression(
        epsilon,
        classes=(False, True),
        fit_intercept=False,
        batch_size=1,
        step_size=setting.first_step(epsilon),
        decay=DECAY,
        random_state=seed,
    ).fit(X, y)
    population, coef = Population(d, setting.tau), model.coef_[0]
    gap = population.loss(coef, truth) - population.loss(truth, truth)
    return float(np.linalg.norm(coef - truth)), float(gap)
