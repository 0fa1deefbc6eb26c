# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whole fits on a worst pair cannot be told apart better than claimed, and nearly as well."""

import numpy as np
import pytest
from sklearn.base import clone

from tests import _audit
from tests.test_claims_erm import make

# one row against a null row. The smoothed hinge is far below its margin wherever the
# fit lands: the gradient of the row has full length and its curvature is nil
_KINKED = {"adjacency": "zero-out", "fit_intercept": False, "smoothing": 0.01}
WORLDS = {
    "objective": make("hinge", "objective", "newton", delta=1e-5, **_KINKED),
    "pure objective": make("hinge", "objective", "newton", delta=0.0, **_KINKED),
    "pure output": make("hinge", "output", "newton", delta=0.0, C=0.1, **_KINKED),
    "exponential": make("hinge", "exponential", "exact", delta=0.0, **_KINKED),
}
every_world = pytest.mark.parametrize("name", WORLDS)


def audited_epsilon(name, epsilon, runs):
    """Return a lower bound on epsilon from many whole fits on two neighbours."""
    model, worlds = clone(WORLDS[name]).set_params(epsilon=epsilon), []
    for world, label in enumerate((1, 99)):
        seeds = range(world * runs, (world + 1) * runs)
        fits = (clone(model).set_params(random_state=seed).fit([[1.0]], [label]) for seed in seeds)
        worlds.append(np.array([fitted.coef_[0] for fitted in fits]))
    if model.delta:
        # on this pair what is released is Gaussian noise and a shift
        return _audit.black_box_epsilon(*worlds, model.delta)
    return _audit.rate_epsilon(worlds[0][:, 0], worlds[1][:, 0])


@every_world
def test_whole_fits_cannot_be_told_apart_better_than_claimed(name):
    # so few runs see little of a draw: most of its change is where the draw seldom is
    epsilon = {"objective": 7.0, "exponential": 4.0}.get(name, 2.0)
    assert 0.2 * epsilon < audited_epsilon(name, epsilon, 300) < epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_audit_itself_finds_what_laplace_noise_spends(epsilon):
    rng = np.random.default_rng(0)
    first, second = rng.laplace(size=(2, 20_000)) / epsilon
    assert 0.8 * epsilon < _audit.rate_epsilon(first, 1 + second) < epsilon
    assert _audit.rate_epsilon(first / 1.5, 1 + second / 1.5) > epsilon
    # nor does it find anything where there is nothing
    assert _audit.rate_epsilon(first, second) < 0.1
