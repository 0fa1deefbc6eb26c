# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Randomisers on the hypercube and the grid of scalars: parameters, draws, coins, words."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skdp.local import optimal_privunit, optimal_privunit_gaussian, projunit
from skdp.local.randomisers import base, cube
from skdp.local.randomisers.ball import Flip, Lift
from skdp.local.randomisers.base import (
    coins,
    directions_of,
    normals,
    positions_below,
    row_lengths,
    uniforms,
)
from skdp.local.randomisers.caps import CAP_ACCURACY
from skdp.local.randomisers.cube import (
    PrivUnitCube,
    heads_tail,
    log_heads,
    log_heads_tail,
    log_scale,
    optimal_privunit_cube,
    uniform_subsets,
)
from skdp.local.randomisers.grid import (
    EntrywiseGrid,
    ScalarGrid,
    best_relative_cells,
    best_uniform_cells,
    cells_to_try,
    relative_levels,
    scalar_grid,
    uniform_levels,
    uniform_variance,
    worst_uniform_variance,
)
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers import _reference
from tests.randomisers._reference import error
from tests.randomisers._samples import GivenBits, reports_of, worst_bias

# PrivUnit on the cube: everything by enumeration, and the condition that is false in print.


DIMS = [1, 2, 3, 4, 10, 101, 1000, 10**5]
BUDGETS = [1e-3, 0.1, 1.0, 4.0, 20.0, 100.0, 1e4, 1e5]


@pytest.mark.parametrize("d", [1, 2, 3, 20, 64, 65, 100, 333])
def test_tails_are_sums_of_integers(d):
    for k in range(d // 2 + 1, d + 2):
        if k == d + 1:
            assert log_heads_tail(k, d) == -math.inf
            continue
        assert_allclose(log_heads(k, d), math.log(math.comb(d, k)) - d * math.log(2), atol=1e-12)
        exact = heads_tail(k, d)
        assert exact * 2**d == sum(math.comb(d, j) for j in range(k, d + 1))
        wanted = math.log(exact.numerator) - math.log(exact.denominator)
        assert_allclose(log_heads_tail(k, d), wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.sample(1)
@pytest.mark.parametrize("d", [10, 65, 1000, 10**5, 10**6])
def test_tails_are_accurate(d):
    for width in (0.0, 0.3, 1.0, 3.0, 10.0, 100.0):
        k = d // 2 + 1 + int(width * math.sqrt(d) / 2)
        if k <= d:
            assert error(log_heads_tail(k, d), _reference.log_heads_tail(k, d)) < CAP_ACCURACY


@pytest.mark.parametrize(
    ("d", "epsilon", "threshold", "p", "q", "m"),
    [
        (5, 1, 3, 0.7310585786, 0.5, 0.173293934),
        (10, 4, 8, 0.7595327623, 0.0546875, 0.4793280651),
        (100, 8, 64, 0.9084703952, 0.003318560258, 0.2731790392),
        (1000, 4, 524, 0.8008082025, 0.06858400264, 0.04791167394),
        (10, 0.1, 6, 0.4007116170, 0.376953125, 0.01244747866),
    ],
)
def test_anchors(d, epsilon, threshold, p, q, m):
    found = optimal_privunit_cube(epsilon, d)
    assert found.threshold == threshold
    assert_allclose([found.p, math.exp(found.log_q), found.scale], [p, q, m], rtol=1e-9)
    assert_allclose(float(heads_tail(found.threshold, d)), q, rtol=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("d", DIMS)
def test_the_budget_is_never_more_than_asked_for(d):
    for epsilon in BUDGETS:
        found = optimal_privunit_cube(epsilon, d)
        spent = _reference.budget(found.p, _reference.log_heads_tail(found.threshold, d))
        assert spent <= found.epsilon <= epsilon
        assert found.epsilon - spent <= 1e-13 * (1 + epsilon)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 9, 10, 50, 101])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 10.0, 50.0])
def test_no_other_threshold_is_better(d, epsilon):
    best = max(log_scale(T, epsilon, d) for T in range(d // 2 + 1, d + 1))
    found = log_scale(optimal_privunit_cube(epsilon, d).threshold, epsilon, d)
    assert_allclose(found, best, atol=1e-12)


@pytest.mark.sample(6, 11)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_everything_by_enumeration(d, epsilon):
    found = optimal_privunit_cube(epsilon, d)
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    cap = corners @ corners.T >= 2 * found.threshold - d
    q = float(heads_tail(found.threshold, d))
    assert_allclose(cap.mean(axis=1), q)
    channel = np.where(cap, found.p / q, (1 - found.p) / (1 - q)) / len(corners)
    # rows of two corners, and of points inside
    rows = np.vstack([corners, np.random.default_rng(0).uniform(-1, 1, size=(20, d))])
    rounding = np.prod((1 + rows[:, None, :] * corners) / 2, axis=2)
    chances = rounding @ channel
    ratios = np.log(chances[:, None, :]) - np.log(chances[None, :, :])
    assert_allclose(ratios.max(), found.epsilon, rtol=1e-12)
    reports = corners / found.scale
    assert_allclose(chances @ reports, rows, atol=1e-12)
    for row, chance in zip(rows, chances, strict=True):
        covariance = np.einsum("v,vi,vj->ij", chance, reports, reports) - np.outer(row, row)
        wanted = found.covariance(row[:, None], row[None, :])
        np.fill_diagonal(wanted, found.variance(row))
        assert_allclose(covariance, wanted, atol=1e-9 / found.scale**2)


def exact_budget(d, kappa):
    cap = heads_tail((d + kappa) // 2 + 1, d)
    return math.log((1 - cap) / cap)


def printed_budget(d, kappa, term):
    x = math.sqrt(2 / (3 * d + 2))
    return math.log1p((kappa + term) * x) - math.log1p(-(kappa + term) * x)


@pytest.mark.parametrize(
    ("d", "kappa", "claimed", "spent"),
    [
        (2, 0, 0, 1.0986), (4, 0, 0, 0.7885), (4, 2, 1.973, 2.708), (10, 2, 1.099, 1.572),
        (100, 0, 0, 0.1595), (100, 4, 0.676, 0.806), (10**4, 2, 0.0327, 0.0479),
    ],
)  # fmt: skip
def test_printed_condition_20_is_false(d, kappa, claimed, spent):
    # Bhowmick et al. (2018), Corollary 4.1: one more than kappa has to stand there
    assert_allclose(printed_budget(d, kappa, 0), claimed, atol=6e-4)
    assert_allclose(exact_budget(d, kappa), spent, atol=6e-4)
    assert exact_budget(d, kappa) > printed_budget(d, kappa, 0) + 0.01
    x = math.sqrt(2 / (3 * d + 2))
    if (kappa + 1) * x < 1:
        assert exact_budget(d, kappa) <= printed_budget(d, kappa, 1) + 1e-15
    fair = PrivUnitCube(d, (d + kappa) // 2 + 1, 0.5)
    assert_allclose(fair.epsilon, exact_budget(d, kappa), rtol=1e-10)


def test_condition_21_holds():
    for d, kappa, claimed in [(100, 30, 7.806), (100, 80, 41.15)]:
        x = (kappa + 2) / d
        entropy = (1 + x) * math.log1p(x) + (1 - x) * math.log1p(-x)
        value = 0.5 * math.log(2) + 0.5 * math.log(d * (1 - x * x)) + d / 2 * entropy
        assert_allclose(value, claimed, rtol=1e-3)
        assert exact_budget(d, kappa) <= value


def test_corners_fare_as_on_the_sphere():
    for d, epsilon, wanted in [
        (10**4, 1, 1.0001), (10**4, 4, 1.0), (10**4, 16, 0.9994), (10**4, 256, 0.983),
        (100, 1, 1.009), (100, 4, 0.992), (100, 16, 0.920), (100, 64, 0.276), (2, 0.1, 1.54),
        (10, 0.1, 1.08), (10, 4, 0.91),
    ]:  # fmt: skip
        cube = optimal_privunit_cube(epsilon, d).variance(1.0)
        ratio = cube / optimal_privunit(epsilon, d).mean_squared_error
        assert_allclose(ratio, wanted, atol=6e-3 if wanted in (1.54, 1.08, 0.91) else 6e-4)
        if d >= 100 and epsilon >= 4:
            found = optimal_privunit_cube(epsilon, d)
            assert_allclose(found.cosine / found.scale, 1.0, atol=0.03)


def test_lengths_scale_as_the_theorem_says():
    # Bhowmick et al. (2018), Proposition 5
    d = 10**6
    found = optimal_privunit_cube(1000.0, d)
    assert_allclose(math.sqrt(1000.0 / d) / found.scale, 1 / math.sqrt(2), rtol=0.02)
    found = optimal_privunit_cube(1e-2, d)
    assert_allclose(1e-2 / math.sqrt(d) / found.scale, math.sqrt(2 * math.pi), rtol=0.01)


def test_bad_input():
    for threshold in (2, 6, 3.5, math.nan):
        with pytest.raises(ValueError, match="threshold must be an integer from 3 to 5"):
            PrivUnitCube(5, threshold, 0.9)
    for p in (0.5, 1.0, math.nan):
        with pytest.raises(ValueError, match="p must be below 1 and above the share"):
            PrivUnitCube(5, 3, p)
    with pytest.raises(ValueError, match="n_dims must be an integer"):
        optimal_privunit_cube(1.0, 0)
    with pytest.raises(ValueError, match="epsilon must be"):
        optimal_privunit_cube(-1.0, 3)


# The randomiser of one number: exact laws, the best grid, and Lemma B.1, which is false.


GRIDS = {
    "one bit": uniform_levels(1),
    "uniform": uniform_levels(7, 3.0),
    "relative": relative_levels(0.1, 3),
    "off zero": np.array([-2.0, 1.0, 1.5]),
}


@pytest.mark.parametrize("levels", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0, 30.0])
def test_laws_by_enumeration(levels, epsilon):
    grid = scalar_grid(levels, epsilon)
    k = levels.size - 1
    channel = np.full((k + 1, k + 1), (1 - grid.p) / k)
    np.fill_diagonal(channel, grid.p)
    numbers = np.linspace(levels[0], levels[-1], 301)
    rounding = np.array([np.interp(numbers, levels, row) for row in np.eye(k + 1)]).T
    chances = rounding @ channel
    assert_allclose(np.log(chances.max(0) / chances.min(0)).max(), grid.epsilon, rtol=1e-12)
    assert grid.epsilon <= epsilon
    assert_allclose(chances @ grid.outputs, numbers, atol=1e-10 / grid.scale)
    distance = (grid.outputs - numbers[:, None]) ** 2
    assert_allclose(np.sum(chances * distance, axis=1), grid.variance(numbers), rtol=1e-6)
    fine = grid.variance(np.linspace(levels[0], levels[-1], 20001))
    assert_allclose(grid.worst_variance, fine.max(), rtol=1e-4)
    assert grid.worst_variance >= fine.max() * (1 - 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "k", "number", "value"),
    [
        (1, 2, 0, 1.235516215), (1, 2, 0.25, 1.07977495), (4, 4, 0.3, 0.02741299374),
        (10, 29, 0, 4.620131022e-4), (10, 29, 0.5, 4.191682231e-4),
    ],
)  # fmt: skip
def test_anchors_of_the_grid(epsilon, k, number, value):
    assert_allclose(scalar_grid(uniform_levels(k), epsilon).variance(number), value, rtol=1e-9)
    assert_allclose(uniform_variance(number, k, epsilon), value, rtol=1e-9)


def test_reports_lie_a_little_outside():
    outputs = scalar_grid(uniform_levels(29), 10).outputs
    assert_allclose(outputs[[0, -1]], [-0.000681, 1.000681], atol=5e-7)


def test_the_budget_of_the_grid_is_never_more_than_asked_for():
    for epsilon in (1e-6, 1e-3, 0.1, 1.0, 10.0, 30.0, 100.0, 1e4, 1e5):
        for k in (1, 2, 29, 1000):
            grid = scalar_grid(uniform_levels(k), epsilon)
            spent = _reference.budget(grid.p, -_reference.mp.log(k + 1))
            assert spent <= grid.epsilon <= epsilon
            assert grid.epsilon - spent <= 2e-13 * (1 + epsilon)
            assert np.isfinite(grid.outputs).all()
            assert 0 < grid.worst_variance < math.inf


def test_the_best_number_of_cells():
    wanted = {0.5: 1, 1: 1, 1.5: 2, 2.5: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 16, 10: 32, 12: 62}
    assert {epsilon: best_uniform_cells(epsilon) for epsilon in wanted} == wanted
    assert best_uniform_cells(1e4) == 1 << 20
    for epsilon in (1.0, 4.0, 10.0, 20.0):
        k = best_uniform_cells(epsilon)
        best = worst_uniform_variance(k, epsilon)
        assert_allclose(scalar_grid(uniform_levels(k), epsilon).worst_variance, best, rtol=1e-6)
        tried = worst_uniform_variance(cells_to_try(epsilon), epsilon)
        assert best <= tried.min() <= 1.001 * best
        assert best <= worst_uniform_variance(np.arange(1, 20 * k), epsilon).min() * (1 + 1e-12)


def test_the_rate_of_the_worst_variance():
    # Bhowmick et al. (2018), Lemma 4.4; only from 1 on
    for epsilon in (5.0, 8.0, 10.0, 20.0):
        k = math.ceil(math.exp(epsilon / 3))
        assert 0.57 <= worst_uniform_variance(k, epsilon) * math.exp(2 * epsilon / 3) <= 0.61
    for epsilon, sd in [(1, 1.08), (2, 0.50), (4, 0.21), (6, 0.104), (8, 0.053)]:
        best = worst_uniform_variance(best_uniform_cells(epsilon), epsilon)
        assert_allclose(math.sqrt(best), sd, rtol=0.02)
    assert_allclose(math.sqrt(worst_uniform_variance(29, 10.0)), 0.027, rtol=0.02)


def test_the_printed_bound_holds():
    # Lemma 4.3
    r = np.linspace(0, 1, 101)
    for epsilon in (0.5, 1.0, 4.0, 10.0):
        for k in (1, 2, 5, 29):
            e = math.exp(epsilon)
            bound = r**2 + 1 / (4 * k**2) + (2 * k + 1) * (e + k) / (6 * k * (e - 1))
            bound = (k + 1) / (e - 1) * bound + 1 / (4 * k**2)
            assert (scalar_grid(uniform_levels(k), epsilon).variance(r) <= bound).all()


@pytest.mark.parametrize(
    ("epsilon", "nu", "number", "actual"), [(20, 1.1, 0.55, 0.303), (8, 1.5, 0.75, 0.589)]
)
def test_lemma_b1_is_false(epsilon, nu, number, actual):
    # no level lies between 0 and nu alpha; alpha is 1 here
    k = {1.1: 40, 1.5: 3}[nu]
    e = math.exp(epsilon)
    claimed = (k + 1) * nu**2 / (e - 1) + (nu - 1) ** 2
    claimed += nu ** (2 * k) * (e + k) / (e - 1) ** 2 * (1 - nu ** (-2 * k)) / (1 - nu**-2)
    printed = scalar_grid(np.concatenate([[0.0], nu ** np.arange(1, k + 1)]), epsilon)
    assert printed.variance(number) > claimed + 0.25
    assert_allclose(printed.variance(number), actual, rtol=0.05)
    # with levels in between rounding is as fine as claimed
    high = float(nu**k)
    mended = scalar_grid(relative_levels(1.0, math.ceil(1 / (nu - 1)), high), epsilon + 5.0)
    assert mended.worst_relative_error(1.0) < (nu - 1) ** 2 / 4 + claimed - (nu - 1) ** 2 + 1e-3


@pytest.mark.sample(6)
@pytest.mark.parametrize("epsilon", [2.0, 6.0, 12.0])
@pytest.mark.parametrize("floor", [1e-3, 0.1, 0.9])
def test_relative_errors(epsilon, floor):
    for levels in (relative_levels(floor, 4), uniform_levels(7)):
        grid = scalar_grid(levels, epsilon)
        r = np.linspace(0, 1, 100001)
        fine = np.max(grid.variance(r) / np.maximum(r, floor) ** 2)
        assert_allclose(grid.worst_relative_error(floor), fine, rtol=1e-3)
        assert grid.worst_relative_error(floor) >= fine * (1 - 1e-9)
    best = best_relative_cells(epsilon, floor)
    error = {
        n: scalar_grid(relative_levels(floor, n), epsilon).worst_relative_error(floor)
        for n in (1, 2, 4, 8, best, 64, 200)
    }
    assert error[best] == min(error.values())


def test_levels_are_as_fine_as_promised():
    for floor, n_inner in [(1e-6, 3), (0.1, 1), (0.5, 10), (0.999, 2)]:
        levels = relative_levels(floor, n_inner)
        assert levels[0] == 0.0
        assert levels[-1] == 1.0
        assert floor in levels
        finest = np.maximum(levels[:-1], floor) / n_inner
        assert (np.diff(levels) <= finest * (1 + 1e-9)).all()


def test_bad_input_of_the_grid():
    for levels in ([0.0], [0.0, 0.0], [1.0, 0.0], [0.0, math.nan], [0.0, math.inf], [0.0, 1e300]):
        with pytest.raises(ValueError, match="levels must be at least two numbers"):
            ScalarGrid(np.array(levels), 0.9)
    for p in (0.5, 1.0, math.nan):
        with pytest.raises(ValueError, match="p must be below 1 and above one share"):
            ScalarGrid(uniform_levels(1), p)
    for number in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="number must be between"):
            scalar_grid(uniform_levels(3), 1.0).variance(number)
    for floor in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="floor must be greater than 0"):
            relative_levels(floor, 3)
    with pytest.raises(ValueError, match="read-only"):
        scalar_grid(uniform_levels(3), 1.0).levels[0] = 1.0


# Reports on the cube: all corners are counted, and moments are right.


def corner_law(cube, row):
    """Return the exact probabilities of all corners, for a row that may be no corner."""
    d, law = cube.n_dims, np.zeros(1 << cube.n_dims)
    inside = sum(math.comb(d, k) for k in range(cube.threshold, d + 1))
    outside = 2**d - inside
    for rounded in range(1 << d):
        signs = np.array([1 if rounded >> j & 1 else -1 for j in range(d)])
        weight = np.prod((1 + signs * row) / 2)
        for corner in range(1 << d):
            shared = d - (rounded ^ corner).bit_count()
            far = cube.p / inside if shared >= cube.threshold else (1 - cube.p) / outside
            law[corner] += weight * far
    return law


def corner_counts(cube, row, n_rows, seed=0):
    signs = reports_of(cube, row, n_rows, seed) > 0.0
    return np.bincount(signs @ (1 << np.arange(cube.n_dims)), minlength=1 << cube.n_dims)


CUBES = [optimal_privunit_cube(eps, d) for d in (1, 2, 3, 4, 5, 6) for eps in (0.5, 2.0, 6.0)]


@pytest.mark.sample(6, 13)
@pytest.mark.parametrize("cube", CUBES)
@pytest.mark.parametrize("kind", ["corner", "inside"])
def test_all_corners_have_their_probabilities(cube, kind):
    row = np.resize([1.0, -1.0, 1.0] if kind == "corner" else [0.5, -0.2, 0.0], cube.n_dims)
    law = corner_law(cube, row)
    assert law.sum() == pytest.approx(1.0)
    counts = corner_counts(cube, row, 20_000)
    assert stats.chisquare(counts, 20_000 * law).pvalue > 1e-4


@pytest.mark.parametrize("cube", CUBES)
def test_the_largest_ratio_is_the_budget(cube):
    laws = [corner_law(cube, np.resize(row, cube.n_dims)) for row in ([1.0], [-1.0], [1.0, -1.0])]
    ratio = max(np.log(a / b).max() for a in laws for b in laws)
    assert ratio <= cube.epsilon
    assert ratio == pytest.approx(cube.epsilon, rel=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "cube",
    [optimal_privunit_cube(4.0, 10), PrivUnitCube(9, 6, 0.5), optimal_privunit_cube(0.1, 10)],
)
def test_moments(cube):
    row = np.linspace(-1.0, 1.0, cube.n_dims)
    reports = reports_of(cube, row, 60_000)
    assert worst_bias(reports, row) < 4.0
    np.testing.assert_allclose(np.abs(reports), cube.bound)
    np.testing.assert_allclose(np.var(reports, axis=0), cube.variance(row), rtol=0.03)
    products = (reports[:, 0] - row[0]) * (reports[:, -1] - row[-1])
    assert worst_bias(products, cube.covariance(row[0], row[-1])) < 4.0


@pytest.mark.parametrize(("n_dims", "epsilon"), [(10**4, 4.0), (10**4, 1e4), (10**4, 1e-3)])
def test_many_entries(n_dims, epsilon):
    cube = optimal_privunit_cube(epsilon, n_dims)
    row = np.where(np.arange(n_dims) % 3 == 0, 1.0, -1.0)
    shared = np.count_nonzero(reports_of(cube, row, 40) * row > 0.0, axis=1)
    expected = 40 * cube.p
    spread = 4 * math.sqrt(expected * (1 - cube.p)) + 1e-9
    assert abs(np.count_nonzero(shared >= cube.threshold) - expected) <= spread


def test_entries_outside_and_no_numbers():
    cube = optimal_privunit_cube(3.0, 4)
    odd = np.array([[7.0, np.inf, -np.inf, np.nan]])
    plain = np.array([[1.0, 1.0, -1.0, -1.0]])
    np.testing.assert_array_equal(
        cube.report(np.tile(odd, (99, 1)), SeededBits(1)),
        cube.report(np.tile(plain, (99, 1)), SeededBits(1)),
    )


def test_rounding_never_leaves_a_corner():
    cube = PrivUnitCube(1, 1, 1.0 - 2.0**-53)
    # the first two words are the coin and the matches; then come rounding and keys
    for word in (0, 2**63 - 1, 2**63, 2**64 - 1):
        for end in (1.0, -1.0):
            made = cube.report(np.array([[end]]), GivenBits([0, 2**63, word]))
            assert made[0, 0] * end > 0.0


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("chunk", [1, 90])
def test_threads_and_chunks_change_nothing(n_threads, chunk, monkeypatch):
    cube, rows = optimal_privunit_cube(3.0, 9), np.random.default_rng(0).uniform(-1, 1, (30, 9))
    expected = cube.report(rows, SeededBits(1))
    monkeypatch.setattr(base, "CHUNK", chunk)
    np.testing.assert_array_equal(cube.report(rows, SeededBits(1), n_threads), expected)


def test_subsets_are_uniform():
    keys = SeededBits(1).words(5 * 60_000).reshape(-1, 5)
    chosen, tied = uniform_subsets(keys, np.full(60_000, 2))
    assert not tied.any()
    counts = np.bincount(chosen @ (1 << np.arange(5)), minlength=32)
    counts = counts[[i for i in range(32) if i.bit_count() == 2]]
    assert counts.sum() == 60_000
    assert stats.chisquare(counts).pvalue > 1e-4


def test_ties_that_matter_are_noted():
    keys = np.array([[3, 3, 5], [3, 3, 5], [9, 3, 3], [1, 1, 1]], dtype=np.uint64)
    chosen, tied = uniform_subsets(keys, np.array([1, 2, 3, 0]))
    np.testing.assert_array_equal(tied, [True, False, False, False])
    np.testing.assert_array_equal(chosen.sum(axis=1)[1:], [2, 3, 0])


def test_ties_are_drawn_again():
    cube = PrivUnitCube(3, 2, 0.6)
    # coin, matches, three words of rounding, three equal keys; then fresh ones
    words = [2**64 - 1, 2**63, 0, 0, 0, 7, 7, 7]
    made = cube.report(np.zeros((1, 3)), GivenBits(words))
    np.testing.assert_allclose(np.abs(made), 1.0 / cube.scale)


# Reports of numbers by a grid: all levels are counted, and moments are right.


SCALAR_GRIDS = [
    scalar_grid(uniform_levels(1), 1.0), scalar_grid(uniform_levels(4), 3.0),
    scalar_grid(relative_levels(0.1, 3), 5.0), scalar_grid([-2.0, 0.5, 7.0], 0.7),
    ScalarGrid(uniform_levels(6), 0.2),
]  # fmt: skip


def level_law(grid, number):
    """Return the exact probabilities of the levels that are reported."""
    place = max(int(np.searchsorted(grid.levels, number)), 1)
    low, high = grid.levels[place - 1 : place + 1]
    share = (number - low) / (high - low)
    other = (1 - grid.p) / (grid.levels.size - 1)
    law = np.full(grid.levels.size, other)
    law[place - 1] += (1 - share) * (grid.p - other)
    law[place] += share * (grid.p - other)
    return law


@pytest.mark.parametrize("grid", SCALAR_GRIDS)
@pytest.mark.parametrize("part", [0.0, 0.37, 1.0])
def test_all_levels_have_their_probabilities(grid, part):
    number = grid.levels[0] + part * (grid.levels[-1] - grid.levels[0])
    reports = reports_of(grid, np.array([number]), 20_000)[:, 0]
    places = np.searchsorted(grid.outputs, reports)
    np.testing.assert_array_equal(grid.outputs[places], reports)
    counts = np.bincount(places, minlength=grid.levels.size)
    law = level_law(grid, number)
    assert stats.chisquare(counts, 20_000 * law / law.sum()).pvalue > 1e-4
    assert worst_bias(reports[:, None], number) < 4.0
    # the fourth moment of reports by few levels is tame
    squares = (reports[:, None] - number) ** 2
    assert worst_bias(squares, float(grid.variance(number))) < 4.0


@pytest.mark.parametrize("grid", SCALAR_GRIDS)
def test_the_largest_ratio_of_scalars_is_the_budget(grid):
    tries = np.linspace(grid.levels[0], grid.levels[-1], 7)
    laws = [level_law(grid, number) for number in tries]
    ratio = max(np.log(a / b).max() for a in laws for b in laws)
    assert ratio == pytest.approx(grid.epsilon, rel=1e-9)
    assert ratio <= grid.epsilon


def test_entries_report_on_their_own():
    entries = EntrywiseGrid(SCALAR_GRIDS[1], 3)
    row = np.array([0.1, 0.5, 0.9])
    reports = reports_of(entries, row, 40_000)
    assert worst_bias(reports, row) < 4.0
    products = (reports[:, 0] - row[0]) * (reports[:, 1] - row[1])
    assert worst_bias(products, 0.0) < 4.0
    assert entries.size == 3
    assert entries.exact
    assert np.abs(reports).max() <= entries.bound


def test_odd_numbers_count_as_ends():
    grid = SCALAR_GRIDS[1]
    odd = np.array([[-1.0], [9.0], [np.inf], [-np.inf], [np.nan]])
    plain = np.array([[0.0], [1.0], [1.0], [0.0], [0.0]])
    tiled = [grid.report(np.tile(rows, (99, 1)), SeededBits(1)) for rows in (odd, plain)]
    np.testing.assert_array_equal(*tiled)


def test_public_facts():
    grid = SCALAR_GRIDS[1]
    assert grid.exact
    assert grid.size == 1
    assert grid.message_bits() == 3
    assert SCALAR_GRIDS[0].message_bits() == 1
    assert grid.bound == max(abs(grid.outputs))
    assert math.isfinite(SCALAR_GRIDS[2].bound)


# Coins and positions have exact probabilities.


@pytest.mark.parametrize("p", [0.25, 0.3, 1e-3, 1 - 2.0**-53, 2.0**-53])
def test_words_around_the_boundary(p):
    exact = Fraction(p) * 2**64
    first = int(exact)
    words = [max(first - 1, 0), first, first + 1]
    heads = coins(p, 3, GivenBits(words))
    for word, head in zip(words, heads, strict=True):
        if word + 1 <= exact:
            assert head
        elif word >= exact:
            assert not head


def test_further_bits_decide():
    # p has bits beyond the 64th
    p = float(Fraction(2**52 + 1, 2**80))
    assert Fraction(p) == Fraction(2**52 + 1, 2**80)
    first = (2**52 + 1) >> 16
    # what is left of p is 1/2^16 of a word
    edge = 2**48
    assert coins(p, 1, GivenBits([first, edge - 1]))[0]
    assert not coins(p, 1, GivenBits([first, edge]))[0]
    assert not coins(p, 1, GivenBits([first + 1]))[0]
    assert coins(p, 1, GivenBits([first - 1]))[0]


def test_share_of_heads():
    heads = coins(0.3, 200_000, SeededBits(1))
    assert abs(heads.mean() - 0.3) < 4 * np.sqrt(0.21 / 200_000)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000])
def test_positions_are_uniform(n):
    positions = positions_below(n, 50_000, SeededBits(2))
    counts = np.bincount(positions, minlength=n)
    assert counts.size == n
    if n > 1:
        assert stats.chisquare(counts).pvalue > 1e-4


def test_positions_of_many():
    positions = positions_below(2**40 + 1, 1000, SeededBits(3))
    assert positions.min() >= 0
    assert positions.max() <= 2**40
    assert len(np.unique(positions)) == 1000


# Floats made of words, and lengths and directions of rows.


ENDS = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)


def test_ends_of_the_words():
    u = uniforms(ENDS)
    assert (u > 0.0).all()
    assert (u < 1.0).all()
    z = normals(ENDS)
    # words near 0 from above and from below are the far tails, those in the middle are 0
    assert np.isfinite(z).all()
    assert z[0] == pytest.approx(-z[4])
    assert 9.0 < z[0] < 9.3
    assert abs(z[2]) < 1e-15


def test_normals_are_normal():
    z = normals(SeededBits(1).words(100_000).reshape(100, 1000))
    assert z.shape == (100, 1000)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    assert abs(z.mean()) < 4 / math.sqrt(z.size)


def test_words_are_not_changed():
    words = SeededBits(1).words(100)
    before = words.copy()
    normals(words)
    uniforms(words)
    np.testing.assert_array_equal(words, before)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-150, 1.0, 1e150, 1e300, 1e308])
def test_directions_of_all_sizes(size):
    rows = np.array([[3.0, -4.0, 0.0]]) * size if size < 1e308 else np.full((1, 4), size)
    directions, lost = directions_of(rows)
    assert not lost.any()
    assert np.linalg.norm(directions) == pytest.approx(1.0)
    if size < 1e308:
        np.testing.assert_allclose(directions, [[0.6, -0.8, 0.0]])
        assert row_lengths(rows)[0] == pytest.approx(5 * size)
    else:
        # the length is no float, but longer than all
        assert row_lengths(rows)[0] == math.inf


def test_rows_without_direction():
    rows = np.array([[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [-np.inf, np.inf], [0.0, 2.0]])
    directions, lost = directions_of(rows)
    np.testing.assert_array_equal(lost, [True] * 4 + [False])
    np.testing.assert_array_equal(directions, [[0.0, 0.0]] * 4 + [[0.0, 1.0]])
    np.testing.assert_array_equal(row_lengths(rows), [0.0, 0.0, 0.0, 0.0, 2.0])


# Lifted and turned vectors that other randomisers than PrivUnit report, and rows of grids.


W = np.array([0.0, 0.6, 0.0])
UNITS = {
    "gaussian": lambda n_dims: optimal_privunit_gaussian(3.0, n_dims),
    "projected": lambda n_dims: projunit(3.0, n_dims, n_dims - 1),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("wrap", [Lift, Flip])
def test_means_and_variances_are_those_of_the_arithmetic(kind, wrap):
    made = wrap(UNITS[kind](4 if wrap is Lift else 3))
    assert made.n_dims == made.size == 3
    assert made.epsilon == made.unit.epsilon <= 3.0
    # projected reports of one call share a rotation
    calls, each = (400, 150) if kind == "projected" else (1, 60_000)
    rows, bits = np.tile(W, (each, 1)), SeededBits(5)
    reports = np.concatenate([made.report(rows, bits) for _ in range(calls)])
    along, across = made.variances(0.6)
    error = math.sqrt(max(along, across) / (calls if calls > 1 else each))
    assert np.abs(reports.mean(axis=0) - W).max() < 5 * error
    assert reports[:, 1].var() == pytest.approx(along, rel=0.1)
    assert reports[:, 0].var() == pytest.approx(across, rel=0.1)
    assert np.abs(reports).max() <= made.bound
    assert not made.exact


def test_bits_of_messages():
    assert Lift(UNITS["gaussian"](4)).message_bits() == 96
    assert Flip(UNITS["projected"](3)).message_bits() == 2 * 32 + 128


def test_entries_of_other_units_report_on_their_own():
    grid = scalar_grid(uniform_levels(4), 1.0)
    made = EntrywiseGrid(grid, 3)
    assert 3 * grid.epsilon <= made.epsilon <= 3 * grid.epsilon * (1 + 1e-15)
    reports = made.report(np.tile([0.1, 0.5, 2.0], (40_000, 1)), SeededBits(1))
    assert made.exact
    assert made.bound == np.abs(grid.outputs).max() == np.abs(reports).max()
    np.testing.assert_allclose(reports.mean(axis=0), [0.1, 0.5, 1.0], atol=0.05)
    assert np.abs(np.corrcoef(reports.T) - np.eye(3)).max() < 0.03
    assert made.message_bits() == 9


# Numbers of matches have the binomial law given their side, on the fast way and the slow one.


SIDES = [(1, 1), (2, 2), (3, 5), (6, 10), (8, 10), (10, 10), (520, 1000), (900, 1000)]


def exact_law(threshold, n_dims, inside):
    """Return the numbers of heads of a side, and their probabilities as fractions."""
    heads = range(threshold, n_dims + 1) if inside else range(threshold)
    weights = [math.comb(n_dims, k) for k in heads]
    return list(heads), [Fraction(weight, sum(weights)) for weight in weights]


def drawn(threshold, n_dims, inside, size, bits):
    return cube.matches(threshold, n_dims, np.full(size, inside), bits)


@pytest.mark.sample(7)
@pytest.mark.parametrize(("threshold", "n_dims"), SIDES)
@pytest.mark.parametrize("inside", [True, False])
def test_boundaries_are_exact(threshold, n_dims, inside):
    heads, law = exact_law(threshold, n_dims, inside)
    first, begins = cube._boundaries(threshold, n_dims, inside)
    total = sum(law[: first - heads[0] + 1], Fraction(0))
    assert total - law[first - heads[0]] < Fraction(n_dims**2, 2**192)
    for word, share in zip(begins.tolist(), law[first - heads[0] + 1 :], strict=False):
        # below the next number of heads is all that was summed so far
        assert abs(word - total * 2**64) <= 2
        total += share


@pytest.mark.covering
@pytest.mark.parametrize("near", [4, 2**60, 2**63])
@pytest.mark.parametrize(("threshold", "n_dims"), SIDES)
@pytest.mark.parametrize("inside", [True, False])
def test_the_law(threshold, n_dims, inside, near, monkeypatch):
    monkeypatch.setattr(cube, "_NEAR", near)
    size = 20_000 if near == 4 else 300
    heads = drawn(threshold, n_dims, inside, size, SeededBits(1))
    values, law = exact_law(threshold, n_dims, inside)
    assert heads.min() >= values[0]
    assert heads.max() <= values[-1]
    expected = np.array([float(share) for share in law]) * size
    counts = np.bincount(heads - values[0], minlength=len(values))
    # numbers that are expected less than five times are taken together
    large = expected >= 5.0
    counts = np.append(counts[large], counts[~large].sum())
    expected = np.append(expected[large], expected[~large].sum())
    if expected[-1] < 5.0 and expected.size > 1:
        expected, counts = expected[:-1], counts[:-1]
        expected *= counts.sum() / expected.sum()
    if expected.size > 1:
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


@pytest.mark.parametrize(("threshold", "n_dims"), SIDES)
def test_both_ways_agree(threshold, n_dims, monkeypatch):
    for inside in (True, False):
        fast = drawn(threshold, n_dims, inside, 40, SeededBits(2))
        monkeypatch.setattr(cube, "_NEAR", 2**63)
        # words are drawn before the further bits are, so the numbers begin the same
        slow = drawn(threshold, n_dims, inside, 40, SeededBits(2))
        monkeypatch.setattr(cube, "_NEAR", 4)
        np.testing.assert_array_equal(slow, fast)


@pytest.mark.parametrize("inside", [True, False])
def test_words_at_the_boundaries(inside):
    # of 4 coins: 3 or 4 heads with shares 4/5 and 1/5; 0, 1, 2 with 1/11, 4/11, 6/11
    law = [Fraction(4, 5)] if inside else [Fraction(1, 11), Fraction(5, 11)]
    first = 3 if inside else 0
    for place, share in enumerate(law):
        edge = int(share * 2**64)
        left = int((share * 2**64 - edge) * 2**64)
        low = GivenBits([edge, left - 1])
        high = GivenBits([edge, left + 1])
        assert drawn(3, 4, inside, 1, low)[0] == first + place
        assert drawn(3, 4, inside, 1, high)[0] == first + place + 1
    for word, value in ((0, first), (2**64 - 1, 4 if inside else 2)):
        assert drawn(3, 4, inside, 1, GivenBits([word]))[0] == value


def test_rare_numbers_are_reached():
    # no head among 100 coins has a share below 2^-99, which further bits find
    words = [0] * 12
    assert drawn(60, 100, False, 1, GivenBits(words))[0] == 0
    assert drawn(60, 100, True, 1, GivenBits([2**64 - 1] * 12))[0] == 100


@pytest.mark.parametrize("n_dims", [10**4, 10**6])
def test_many_coins(n_dims):
    threshold = n_dims // 2 + math.isqrt(n_dims)
    inside = np.arange(4000) % 2 == 0
    heads = cube.matches(threshold, n_dims, inside, SeededBits(3))
    assert heads[inside].min() == pytest.approx(threshold, abs=10)
    assert ((heads >= threshold) == inside).all()
    law = stats.binom(n_dims, 0.5)
    # between the values of the distribution function before and at the number
    tails = (law.sf(heads[inside] - 1) - 0.5 * law.pmf(heads[inside])) / law.sf(threshold - 1)
    assert stats.kstest(tails, "uniform").pvalue > 1e-4
    below = (law.cdf(heads[~inside]) - 0.5 * law.pmf(heads[~inside])) / law.cdf(threshold - 1)
    assert stats.kstest(below, "uniform").pvalue > 1e-4
