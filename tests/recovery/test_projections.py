# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Euclidean projections on the l1 ball, with an l2 ball, and on the k-support ball."""

import time

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp._recovery.shrinkage import ksupport_norm, project_ksupport, project_l1, project_l1l2
from tests.recovery._vectors import RADII, SCALES, SHAPES, length, vector

every_shape = pytest.mark.parametrize("shape", SHAPES)
every_scale = pytest.mark.parametrize("scale", SCALES)
GOLDEN = np.array([3.0, -2.0, 1.0, 0.5, 0.0])


def gauge(x, k):
    """Return the k-support norm by trying every size of the head, as its dual norm says."""
    u = np.sort(np.abs(x))[::-1]
    k = min(k, len(u))
    # the largest inner product with a vector whose k largest magnitudes have norm 1
    best = 0.0
    for head in range(k):
        tail = u[head:].sum() / np.sqrt(k - head)
        best = max(best, _inner(u, head, tail, k))
    return best


def _inner(u, head, tail, k):
    # the head proportional to u, the rest constant: only admissible if not increasing
    dual = np.append(u[:head], np.full(len(u) - head, tail / np.sqrt(k - head)))
    size = np.linalg.norm(np.sort(dual)[::-1][:k])
    return float(dual @ u / size) if size else 0.0


@pytest.mark.parametrize("k", range(1, 10))
@every_shape
def test_the_k_support_norm_is_dual_to_the_norm_of_the_largest(shape, k):
    x = vector(shape)
    norm = ksupport_norm(x, k)
    assert norm == pytest.approx(gauge(x, k), rel=1e-12, abs=1e-300)
    low = max(length(x), length(x, 1) / np.sqrt(k))
    assert low * (1 - 1e-12) <= norm <= np.sqrt(2) * low * (1 + 1e-12)


def test_golden_values():
    assert ksupport_norm(GOLDEN, 2) == pytest.approx(4.596194, abs=1e-6)
    assert ksupport_norm(GOLDEN, 1) == pytest.approx(6.5)
    assert ksupport_norm(GOLDEN, 5) == ksupport_norm(GOLDEN, 4) == np.linalg.norm(GOLDEN)
    assert_allclose(
        project_ksupport(GOLDEN, 2, 2.0), [1.646814, -1.067451, 0.067451, 0, 0], atol=1e-6
    )
    assert_allclose(
        project_ksupport(GOLDEN, 3, 2.0), [1.600916, -1.067278, 0.522940, 0.022940, 0], atol=1e-6
    )


@pytest.mark.covering
@every_scale
@every_shape
@pytest.mark.parametrize("k", [1, 2, 4, 9, 50])
def test_k_support_projections_satisfy_the_optimality_conditions(shape, scale, k):
    y = vector(shape) * scale
    for ratio in RADII:
        norm = ksupport_norm(y, k)
        radius = ratio * norm if norm else ratio
        before = y.copy()
        x = project_ksupport(y, k, radius)
        assert_array_equal(y, before)
        assert_is_projection(x, y, radius, ksupport_norm(x, k), _dual(y - x, k))


def _dual(x, k):
    return length(np.sort(np.abs(x))[::-1][:k])


def assert_is_projection(x, y, radius, norm, dual):
    """Check that y - x is normal to the ball at x: <y - x, x> = radius dual(y - x)."""
    largest = np.abs(y).max(initial=0.0)
    assert np.isfinite(x).all()
    assert norm <= radius * (1 + 1e-12)
    if largest == 0:
        assert not x.any()
        return
    x, y, radius, dual = x / largest, y / largest, radius / largest, dual / largest
    with np.errstate(under="ignore"):
        gap = radius * dual - (y - x) @ x
    assert abs(gap) <= 1e-12 * len(y)


@every_scale
@every_shape
def test_l1_projections_satisfy_the_optimality_conditions(shape, scale):
    y = vector(shape) * scale
    for ratio in RADII:
        radius = ratio * length(y, 1) if y.any() else ratio
        x = project_l1(y, radius)
        assert_is_projection(x, y, radius, length(x, 1), np.abs(y - x).max())


@pytest.mark.covering
@every_scale
@every_shape
@pytest.mark.parametrize("second", [0.5, 0.9, 0.999, 1.0, 1.3, 2.0, 1e9])
def test_l1_l2_projections_are_the_nearest_points(shape, scale, second):
    y = vector(shape) * scale
    for ratio in RADII:
        l1_radius = ratio * length(y, 1) if y.any() else ratio
        l2_radius = second * length(project_l1(y, l1_radius))
        x = project_l1l2(y, l1_radius, l2_radius)
        assert np.isfinite(x).all()
        assert length(x, 1) <= l1_radius * (1 + 1e-12)
        assert length(x) <= l2_radius * (1 + 1e-12)
        if not x.any():
            assert not y.any() or min(l1_radius, l2_radius) <= 1e-8 * np.abs(y).max()
            continue
        # y - x = a sign(x) + b x where x is not zero, at most a elsewhere, a, b >= 0
        unit = np.abs(y).max()
        left, inside = (y - x) * np.sign(y) / unit, x != 0
        if inside.sum() > 1 and np.ptp(np.abs(x[inside])) > 1e-6 * np.abs(x).max():
            slope, level = np.polyfit(np.abs(x[inside]) / np.abs(x).max(), left[inside], 1)
        else:
            # equal entries: how the force is shared between the two is open
            slope, level = 0.0, left[inside].mean()
            assert left[~inside].max(initial=0.0) <= level + 1e-9
        assert_allclose(
            left[inside], level + slope * np.abs(x[inside]) / np.abs(x).max(), atol=1e-9
        )
        assert min(level, slope) >= -1e-9


def cone(y, k, radius):
    """Return the projection on the k-support ball by a solver."""
    x, theta = cp.Variable(y.size), cp.Variable(y.size)
    # sum x_i^2 / theta_i over theta in [0, 1] of sum at most k
    gauges = [cp.quad_over_lin(x[i], theta[i]) for i in range(y.size)]
    limits = [cp.sum(gauges) <= radius**2, theta >= 0, theta <= 1, cp.sum(theta) <= k]
    cp.Problem(cp.Minimize(cp.sum_squares(x - y)), limits).solve(solver=cp.CLARABEL)
    return x.value


@pytest.mark.parametrize("seed", range(12))
def test_projections_agree_with_a_solver(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, 20)), int(rng.integers(1, 6))
    y = rng.normal(size=d) * 10.0 ** rng.uniform(-1, 1)
    radius = float(rng.uniform(0.1, 1.1) * ksupport_norm(y, k))
    assert_allclose(project_ksupport(y, k, radius), cone(y, k, radius), atol=2e-4 * radius)
    l1, l2 = rng.uniform(0.1, 1.1, size=2) * (length(y, 1), length(y))
    x = cp.Variable(d)
    limits = [cp.norm1(x) <= l1, cp.norm2(x) <= l2]
    for project, chosen in [
        (lambda: project_l1(y, l1), limits[:1]),
        (lambda: project_l1l2(y, l1, l2), limits),
    ]:
        cp.Problem(cp.Minimize(cp.sum_squares(x - y)), chosen).solve(solver=cp.CLARABEL)
        assert_allclose(project(), x.value, atol=2e-4 * l2)


@pytest.mark.parametrize("seed", range(5))
def test_sets_are_nested_and_projections_agree_at_the_ends(seed):
    y = np.random.default_rng(seed).normal(size=30)
    assert_allclose(project_ksupport(y, 1, 2.0), project_l1(y, 2.0), atol=1e-15)
    assert_allclose(project_ksupport(y, 30, 2.0), 2.0 * y / length(y), atol=1e-15)
    for k in (1, 3, 10):
        inner, outer = project_ksupport(y, k, 1.0), project_l1l2(y, np.sqrt(k), 1.0)
        assert length(inner, 1) <= np.sqrt(k) * (1 + 1e-12)
        assert length(inner) <= 1 + 1e-12
        # the larger set comes nearer, and a projection moves no two points apart
        assert length(y - outer) <= length(y - inner) + 1e-12
        other = y + 0.1 * np.random.default_rng(seed + 9).normal(size=30)
        assert length(project_ksupport(other, k, 1.0) - inner) <= length(other - y) * (1 + 1e-9)


def test_equal_entries_and_a_ratio_of_radii_that_is_a_whole_root():
    # k = (l1 / l2)^2 entries: any threshold on that stretch will do
    for k in (1, 4, 9):
        y = np.concatenate([np.full(k, 5.0), np.full(3, 1.0)])
        x = project_l1l2(y, np.sqrt(k), 1.0)
        assert_allclose(x, np.concatenate([np.full(k, k**-0.5), np.zeros(3)]), atol=1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("ratio", [0.3, 0.5, 1.0, 2.0**-0.5, 1.2])
@every_shape
def test_no_point_of_the_set_is_at_an_acute_angle(shape, ratio):
    """A point x of a convex set is nearest to y if <y - x, z - x> <= 0 for all z in it."""
    rng = np.random.default_rng(0)
    y = vector(shape)
    largest = max(np.abs(y).max(), 1e-300)
    for size in (1e-4, 0.01, 0.3, 1.0, 2.0):
        radius = size * largest
        for project in (
            lambda v: project_l1l2(v, radius, ratio * radius),  # noqa: B023
            lambda v: project_ksupport(v, 3, radius),  # noqa: B023
        ):
            x = project(y)
            for other in (y + 0.1 * radius * rng.normal(size=y.size), rng.normal(size=y.size)):
                z = project(other)
                assert (y - x) @ (z - x) <= 1e-10 * largest * radius


@pytest.mark.covering
@pytest.mark.parametrize(
    "project",
    [lambda y: project_l1(y, 4.0), lambda y: project_l1l2(y, 4.0, 1.0),
     lambda y: project_ksupport(y, 16, 1.0)],
    ids=["l1", "l1l2", "ksupport"],
)  # fmt: skip
@pytest.mark.parametrize("noise", [0.0, 1e-3, 1.0])
def test_a_million_numbers(project, noise):
    rng = np.random.default_rng(0)
    y = noise * rng.normal(size=10**6)
    y[:16] += 0.3
    start = time.perf_counter()
    x = project(y)
    assert time.perf_counter() - start < 3.0
    assert length(x, 1) <= 4 * (1 + 1e-9)
    assert_allclose(project(x), x, atol=1e-9)
