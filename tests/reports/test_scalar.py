# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of numbers by a grid: all levels are counted, and moments are right."""

import math

import numpy as np
import pytest
from scipy import stats

from skdp.local.randomisers.grid import (
    EntrywiseGrid,
    ScalarGrid,
    relative_levels,
    scalar_grid,
    uniform_levels,
)
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import reports_of, worst_bias

GRIDS = [
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


@pytest.mark.parametrize("grid", GRIDS)
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


@pytest.mark.parametrize("grid", GRIDS)
def test_the_largest_ratio_is_the_budget(grid):
    tries = np.linspace(grid.levels[0], grid.levels[-1], 7)
    laws = [level_law(grid, number) for number in tries]
    ratio = max(np.log(a / b).max() for a in laws for b in laws)
    assert ratio == pytest.approx(grid.epsilon, rel=1e-9)
    assert ratio <= grid.epsilon


def test_entries_report_on_their_own():
    entries = EntrywiseGrid(GRIDS[1], 3)
    row = np.array([0.1, 0.5, 0.9])
    reports = reports_of(entries, row, 40_000)
    assert worst_bias(reports, row) < 4.0
    products = (reports[:, 0] - row[0]) * (reports[:, 1] - row[1])
    assert worst_bias(products, 0.0) < 4.0
    assert entries.size == 3
    assert entries.exact
    assert np.abs(reports).max() <= entries.bound


def test_odd_numbers_count_as_ends():
    grid = GRIDS[1]
    odd = np.array([[-1.0], [9.0], [np.inf], [-np.inf], [np.nan]])
    plain = np.array([[0.0], [1.0], [1.0], [0.0], [0.0]])
    tiled = [grid.report(np.tile(rows, (99, 1)), SeededBits(1)) for rows in (odd, plain)]
    np.testing.assert_array_equal(*tiled)


def test_public_facts():
    grid = GRIDS[1]
    assert grid.exact
    assert grid.size == 1
    assert grid.message_bits() == 3
    assert GRIDS[0].message_bits() == 1
    assert grid.bound == max(abs(grid.outputs))
    assert math.isfinite(GRIDS[2].bound)
