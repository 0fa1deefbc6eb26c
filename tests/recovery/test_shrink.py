# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Soft-thresholding, and the projection in the largest coordinate."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp._recovery.shrinkage import into_ball, project_linf, soft_threshold
from tests.recovery._vectors import RADII, SCALES, SHAPES, length, vector

ORDERS = {"l1": 1, "l2": 2}
every_norm = pytest.mark.parametrize("norm", ORDERS)
every_shape = pytest.mark.parametrize("shape", SHAPES)


def test_soft_threshold():
    y = np.array([3.0, -1.0, 0.5, 0.0, -4.0])
    assert_array_equal(soft_threshold(y, 1.0), [2.0, 0.0, 0.0, 0.0, -3.0])
    assert_array_equal(y, [3.0, -1.0, 0.5, 0.0, -4.0])
    assert not np.signbit(soft_threshold(y, 10.0)).any()
    assert_array_equal(soft_threshold(y, 0.0), y)


@pytest.mark.covering
@every_norm
@every_shape
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("ratio", RADII)
def test_linf_projection_is_the_least_shrinkage_into_the_ball(norm, shape, scale, ratio):
    y = vector(shape) * scale
    order = ORDERS[norm]
    radius = ratio * length(y, order) if y.any() else ratio
    before = y.copy()
    x = project_linf(y, radius, norm)
    assert_array_equal(y, before)
    assert x.shape == y.shape
    assert np.isfinite(x).all()
    assert length(x, order) <= radius * (1 + 1e-14)
    assert (x * np.sign(y) >= 0).all()
    largest = np.abs(y).max()
    if ratio >= 1:
        assert_allclose(x, y, rtol=0, atol=1e-14 * largest)
        return
    # it is a soft-threshold of y, and less of it would not do
    t = np.abs(y - x).max()
    assert_allclose(x, soft_threshold(y, t), rtol=0, atol=1e-15 * largest)
    if t > 1e-6 * largest:
        assert length(soft_threshold(y, t * (1 - 1e-9)), order) >= radius


@every_norm
@pytest.mark.parametrize("seed", range(8))
def test_linf_projection_agrees_with_a_solver(norm, seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=rng.integers(1, 30)) * rng.choice([0.3, 3.0])
    radius = rng.uniform(0.1, 1.2) * np.linalg.norm(y, ord=ORDERS[norm])
    x = cp.Variable(y.size)
    problem = cp.Problem(cp.Minimize(cp.norm(x - y, "inf")), [cp.norm(x, ORDERS[norm]) <= radius])
    best = problem.solve(solver=cp.CLARABEL)
    assert_allclose(np.abs(project_linf(y, radius, norm) - y).max(), best, atol=1e-6)


@every_norm
def test_linf_projection_of_many_numbers(norm):
    y = np.random.default_rng(0).normal(size=10**6)
    for ratio in (1e-6, 0.1, 0.99):
        radius = ratio * np.linalg.norm(y, ord=ORDERS[norm])
        x = project_linf(y, radius, norm)
        assert_allclose(np.linalg.norm(x, ord=ORDERS[norm]), radius, rtol=1e-9)


@every_norm
def test_infinite_radius_and_integers(norm):
    y = np.array([1, -2, 3])
    assert_array_equal(project_linf(y, np.inf, norm), y)
    assert project_linf(y, 1.0, norm).dtype == np.float64


def test_into_ball():
    y = np.array([3e300, -4e300])
    assert_array_equal(into_ball(y, 6e300), y)
    assert_allclose(into_ball(y, 1.0), [0.6, -0.8])
    assert_allclose(into_ball(y, 1.0, "l1"), [3 / 7, -4 / 7])
    assert_array_equal(into_ball(np.zeros(3), 0.0), np.zeros(3))
