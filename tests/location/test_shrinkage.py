# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shrinkage and projections of noisy vectors."""

import math
import time

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp._recovery.shrinkage import (
    into_ball,
    ksupport_norm,
    project_ksupport,
    project_l1,
    project_l1l2,
    project_linf,
    soft_threshold,
    sure_threshold,
    universal_threshold,
)

# Vectors, ordinary and extreme, for the tests of projections.


#: magnitudes, from which a vector is made with random signs
SHAPES = {
    "one": lambda d, rng: np.ones(1),
    "one zero": lambda d, rng: np.zeros(1),
    "zeros": lambda d, rng: np.zeros(d),
    "normal": lambda d, rng: rng.normal(size=d),
    "heavy": lambda d, rng: rng.standard_cauchy(size=d),
    "equal": lambda d, rng: np.full(d, 0.7),
    "ties": lambda d, rng: rng.integers(0, 3, size=d).astype(float),
    "nearly equal": lambda d, rng: 1 + 1e-13 * rng.normal(size=d),
    "one large": lambda d, rng: np.where(np.arange(d) == 1, 1e9, rng.uniform(size=d)),
    "few": lambda d, rng: np.where(np.arange(d) < 2, rng.uniform(size=d), 0.0),
    "wide": lambda d, rng: 10.0 ** rng.uniform(-12, 0, size=d),
}
#: by what all of it is multiplied
SCALES = (1.0, 1e-150, 1e150, 1e-290, 1e290)
#: radii, in norms of the vector
RADII = (0.0, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-12, 1.0, 1.1, 1e9)


def vector(shape, d=9, seed=0):
    """Return a vector of a named shape; its sign is that of the entry's index, or random."""
    rng = np.random.default_rng(seed)
    y = np.asarray(SHAPES[shape](d, rng), dtype=np.float64)
    return y * rng.choice([-1.0, 1.0], size=len(y))


def length(x, order=2):
    """Return a norm without overflow."""
    unit = np.abs(x).max(initial=0.0)
    with np.errstate(under="ignore"):
        return float(np.linalg.norm(x / unit, ord=order) * unit) if unit else 0.0


# Soft-thresholding, and the projection in the largest coordinate.


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


@pytest.mark.sample(8)
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


@pytest.mark.full
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


# Euclidean projections on the l1 ball, with an l2 ball, and on the k-support ball.


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


@pytest.mark.sample(6, 52)
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


@pytest.mark.sample(6, 34)
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


@pytest.mark.sample(1)
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


@pytest.mark.full
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


# The threshold of least estimated risk, and what thresholds are proved to do.


LAWS = ("gaussian", "laplace")
every_sign = pytest.mark.parametrize("nonnegative", [False, True])
every_law = pytest.mark.parametrize("law", LAWS)


def estimate(y, threshold, nonnegative):
    return np.maximum(y - threshold, 0) if nonnegative else soft_threshold(y, threshold)


def add_noise_to(z, law, rng):
    return z + (rng.normal(size=z.size) if law == "gaussian" else rng.laplace(size=z.size))


def risk_at(y, scale, threshold, nonnegative, law):
    """Return the estimate of the risk by its definition, entry by entry."""
    x, t = y / scale, threshold / scale
    below = (x <= t) if nonnegative else (np.abs(x) <= t)
    moved = np.where(below, x, t) ** 2
    if law == "gaussian":
        return scale**2 * np.sum(moved - 1 + 2 * ~below)
    gap = x - t if nonnegative else np.abs(x) - t
    chance = np.where(below, np.exp(np.minimum(gap, 0)) / 2, 1 - np.exp(-np.maximum(gap, 0)) / 2)
    if not nonnegative:
        chance += np.exp(-np.abs(x) - t) / 2
    return scale**2 * np.sum(moved - 2 + 4 * chance)


@pytest.mark.covering
@every_law
@every_sign
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 100.0])
def test_no_threshold_that_is_a_magnitude_has_a_smaller_estimate(shape, scale, nonnegative, law):
    y = vector(shape)
    threshold, risk = sure_threshold(y, scale, nonnegative, law)
    limit = universal_threshold(scale, y.size, law)
    assert 0 <= threshold <= limit * (1 + 1e-15)
    assert threshold == 0 or np.isclose(threshold, np.abs(y), rtol=1e-12).any()
    candidates = y[y > 0] if nonnegative else np.abs(y)
    tried = [0.0, *candidates[candidates <= limit]]
    if law == "gaussian":
        tried += list(np.linspace(0, limit, 301))
    with np.errstate(under="ignore"):
        best = min(risk_at(y, scale, t * (1 + 1e-14), nonnegative, law) for t in tried)
    assert risk == pytest.approx(best, rel=1e-6, abs=1e-9 * scale**2 * y.size)


@every_law
@every_sign
@pytest.mark.parametrize("scale", SCALES)
def test_units_do_not_matter(scale, nonnegative, law):
    y = vector("heavy", d=50)
    threshold, risk = sure_threshold(y, 0.5, nonnegative, law)
    scaled = sure_threshold(y * scale, 0.5 * scale, nonnegative, law)
    assert scaled[0] == pytest.approx(threshold * scale, rel=1e-12)
    if 1e-140 < scale < 1e140:
        assert scaled[1] == pytest.approx(risk * scale**2, rel=1e-9)


def test_extremes():
    assert universal_threshold(2.0, 1) == 0.0
    assert universal_threshold(2.0, 10, "laplace") == pytest.approx(2 * math.log(10))
    assert sure_threshold(np.array([5.0]), 1.0) == (0.0, 1.0)
    assert sure_threshold(np.zeros(4), 1.0) == (0.0, -4.0)
    # far beyond the noise nothing is gained by shrinking
    threshold, risk = sure_threshold(np.full(9, 1e290), 1.0)
    assert (threshold, risk) == (0.0, 9.0)
    assert sure_threshold(np.full(9, 1e-290), 1.0)[1] == -9.0
    assert sure_threshold(np.full(9, 1e290), 1.0, law="laplace") == (0.0, 18.0)
    assert sure_threshold(np.full(9, -1e290), 1.0, True, "laplace")[0] == 0.0


@pytest.mark.sample(1)
@every_law
@every_sign
@pytest.mark.parametrize("threshold", [0.0, 0.7, 2.0])
def test_the_estimate_is_unbiased_at_a_fixed_threshold(threshold, nonnegative, law):
    rng = np.random.default_rng(0)
    z = np.concatenate([np.zeros(60), np.full(20, 0.8), np.full(20, 6.0)])
    gaps = []
    for _ in range(4000):
        y = add_noise_to(z, law, rng)
        loss = np.sum((estimate(y, threshold, nonnegative) - z) ** 2)
        gaps.append(risk_at(y, 1.0, threshold, nonnegative, law) - loss)
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / math.sqrt(len(gaps))


def test_the_gaussian_estimate_would_be_wrong_for_laplace_noise():
    rng, z, gaps = np.random.default_rng(0), np.zeros(100), []
    for _ in range(1000):
        y = add_noise_to(z, "laplace", rng)
        loss = np.sum(soft_threshold(y, 2.0) ** 2)
        gaps.append(risk_at(y, math.sqrt(2), 2.0, False, "gaussian") - loss)
    assert abs(np.mean(gaps)) > 10 * np.std(gaps) / math.sqrt(len(gaps))


@pytest.mark.sample(8)
@every_law
@every_sign
@pytest.mark.parametrize(("n_large", "size"), [(0, 0.0), (5, 30.0), (40, 4.0), (4096, 0.3)])
def test_it_comes_near_the_best_threshold(n_large, size, nonnegative, law):
    rng = np.random.default_rng(1)
    z = np.where(np.arange(4096) < n_large, size, 0.0)
    limit = universal_threshold(1.0, 4096, law)
    losses, best = [], []
    for _ in range(10):
        y = add_noise_to(z, law, rng)
        threshold, _ = sure_threshold(y, 1.0, nonnegative, law)
        losses.append(np.sum((estimate(y, threshold, nonnegative) - z) ** 2))
        grid = np.linspace(0, limit, 30)
        best.append(min(np.sum((estimate(y, t, nonnegative) - z) ** 2) for t in grid))
    # what one entry costs at the universal threshold
    assert np.mean(losses) <= 1.1 * np.mean(best) + limit**2


@every_law
def test_signs_halve_what_is_left_of_the_noise(law):
    rng = np.random.default_rng(2)
    z = np.where(np.arange(4096) < 100, 4.0, 0.0)
    errors = {False: [], True: []}
    for _ in range(10):
        y = add_noise_to(z, law, rng)
        for nonnegative in errors:
            t, _ = sure_threshold(y, 1.0, nonnegative, law)
            errors[nonnegative].append(np.sum((estimate(y, t, nonnegative) - z) ** 2))
    assert np.mean(errors[True]) < 0.95 * np.mean(errors[False])


@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_above_the_noise_errs_by_no_more_than_entry_or_twice_the_threshold(seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_cauchy(size=300) * rng.choice([0.01, 1.0])
    noise = rng.normal(size=300)
    threshold = np.abs(noise).max()
    error = np.abs(soft_threshold(z + noise, threshold) - z)
    assert (error <= np.minimum(np.abs(z), 2 * threshold) * (1 + 1e-12) + 1e-12).all()
    square, l1, n_nonzeros = np.sum(error**2), np.abs(z).sum(), np.count_nonzero(z)
    assert square <= min(2 * threshold * l1, 4 * threshold**2 * n_nonzeros) * (1 + 1e-9)


def test_the_noise_seldom_exceeds_the_universal_threshold():
    rng = np.random.default_rng(3)
    largest = np.abs(rng.normal(size=(500, 1000))).max(axis=1)
    assert np.mean(largest > universal_threshold(1.0, 1000)) < 0.25
    largest = np.abs(rng.laplace(size=(500, 1000))).max(axis=1)
    assert np.mean(largest > universal_threshold(1.0, 1000, "laplace")) < 0.75
    assert_allclose(universal_threshold(1.0, 1000), 3.7169, atol=1e-4)
