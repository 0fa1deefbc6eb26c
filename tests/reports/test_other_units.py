# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Lifted and turned vectors that other randomisers than PrivUnit report, and rows of grids."""

import math

import numpy as np
import pytest

from skdp.local.randomisers.ball import Flip, Lift
from skdp.local.randomisers.grid import EntrywiseGrid, scalar_grid, uniform_levels
from skdp.local.randomisers.privunit_gaussian import optimal_privunit_gaussian
from skdp.local.randomisers.projunit import projunit
from skdp.privacy.kernel.samplers import SeededBits

W = np.array([0.0, 0.6, 0.0])
UNITS = {
    "gaussian": lambda n_dims: optimal_privunit_gaussian(3.0, n_dims),
    "projected": lambda n_dims: projunit(3.0, n_dims, n_dims - 1),
}


@pytest.mark.covering
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


def test_entries_report_on_their_own():
    grid = scalar_grid(uniform_levels(4), 1.0)
    made = EntrywiseGrid(grid, 3)
    assert 3 * grid.epsilon <= made.epsilon <= 3 * grid.epsilon * (1 + 1e-15)
    reports = made.report(np.tile([0.1, 0.5, 2.0], (40_000, 1)), SeededBits(1))
    assert made.exact
    assert made.bound == np.abs(grid.outputs).max() == np.abs(reports).max()
    np.testing.assert_allclose(reports.mean(axis=0), [0.1, 0.5, 1.0], atol=0.05)
    assert np.abs(np.corrcoef(reports.T) - np.eye(3)).max() < 0.03
    assert made.message_bits() == 9
