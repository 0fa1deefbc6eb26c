# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The randomiser of one number: exact laws, the best grid, and Lemma B.1, which is false."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.local.randomisers.grid import (
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
from tests.randomisers import _reference

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
def test_anchors(epsilon, k, number, value):
    assert_allclose(scalar_grid(uniform_levels(k), epsilon).variance(number), value, rtol=1e-9)
    assert_allclose(uniform_variance(number, k, epsilon), value, rtol=1e-9)


def test_reports_lie_a_little_outside():
    outputs = scalar_grid(uniform_levels(29), 10).outputs
    assert_allclose(outputs[[0, -1]], [-0.000681, 1.000681], atol=5e-7)


def test_the_budget_is_never_more_than_asked_for():
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


def test_bad_input():
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
