# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The constants that losses state, and their derivatives."""

import numpy as np
import pytest
from scipy.special import log_softmax

from skdp._losses import LogisticLoss, SoftmaxLoss

RNG = np.random.default_rng(0)
N = 4000


def logistic_case():
    z = RNG.normal(scale=3, size=N) * RNG.choice([0.01, 1, 100], N)
    target = RNG.choice([-1.0, 1.0], N)
    return LogisticLoss(), z, target, lambda z: np.logaddexp(0, -target * z)


def softmax_case(n_outputs=3):
    z = RNG.normal(scale=3, size=(N, n_outputs)) * RNG.choice([0.01, 1, 100], (N, 1))
    z[: N // 2, 2:] -= 50.0  # two classes share all the mass: the most curved case
    target = RNG.integers(0, n_outputs, N)
    value = lambda z: -log_softmax(z, axis=1)[np.arange(N), target]  # noqa: E731
    return SoftmaxLoss(n_outputs), z, target, value


CASES = pytest.mark.parametrize("case", [logistic_case, softmax_case], ids=["logistic", "softmax"])


@CASES
def test_the_residual_is_the_derivative_of_the_loss(case):
    loss, z, target, value = case()
    direction, step = RNG.normal(size=z.shape), 1e-6
    along = (value(z + step * direction) - value(z - step * direction)) / (2 * step)
    found = loss.residual(z.copy(), target) * direction
    np.testing.assert_allclose(found.reshape(N, -1).sum(axis=1), along, atol=1e-6)


@CASES
def test_stated_constants_hold_and_are_nearly_attained(case):
    loss, z, target, _ = case()
    residual = loss.residual(z.copy(), target).reshape(N, -1)
    length = np.linalg.norm(residual, axis=1).max()
    assert 0.99 * loss.lipschitz <= length <= loss.lipschitz * (1 + 1e-12)
    z[: N // 4] *= 1e-4  # near the point of largest curvature
    if z.ndim == 2:
        z[: N // 4, 2:] = -50.0
    move = 1e-4 * RNG.normal(size=z.shape)
    if z.ndim == 2:
        move[: N // 4] = 1e-4 * np.array([1.0, -1.0, 0.0])
    change = loss.residual(z + move, target) - loss.residual(z.copy(), target)
    norm = np.linalg.norm(change.reshape(N, -1), axis=1)
    ratio = (norm / np.linalg.norm(move.reshape(N, -1), axis=1)).max()
    assert 0.99 * loss.smoothness <= ratio <= loss.smoothness * (1 + 1e-6)
