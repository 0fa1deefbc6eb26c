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
from skdp.local.randomisers.report import is_exact, message_bits, report, report_bound, report_size
from skdp.privacy.kernel.bits import SeededBits

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
    assert made.n_dims == report_size(made) == 3
    assert made.epsilon == made.unit.epsilon <= 3.0
    # projected reports of one call share a rotation
    calls, each = (400, 150) if kind == "projected" else (1, 60_000)
    rows, bits = np.tile(W, (each, 1)), SeededBits(5)
    reports = np.concatenate([report(made, rows, bits) for _ in range(calls)])
    along, across = made.variances(0.6)
    error = math.sqrt(max(along, across) / (calls if calls > 1 else each))
    assert np.abs(reports.mean(axis=0) - W).max() < 5 * error
    assert reports[:, 1].var() == pytest.approx(along, rel=0.1)
    assert reports[:, 0].var() == pytest.approx(across, rel=0.1)
    assert np.abs(reports).max() <= report_bound(made)
    assert not is_exact(made)


def test_bits_of_messages():
    assert message_bits(Lift(UNITS["gaussian"](4))) == 96
    assert message_bits(Flip(UNITS["projected"](3))) == 2 * 32 + 128


def test_entries_report_on_their_own():
    grid = scalar_grid(uniform_levels(4), 1.0)
    made = EntrywiseGrid(grid, 3)
    assert 3 * grid.epsilon <= made.epsilon <= 3 * grid.epsilon * (1 + 1e-15)
    reports = report(made, np.tile([0.1, 0.5, 2.0], (40_000, 1)), SeededBits(1))
    assert is_exact(made)
    assert report_bound(made) == np.abs(grid.outputs).max() == np.abs(reports).max()
    np.testing.assert_allclose(reports.mean(axis=0), [0.1, 0.5, 1.0], atol=0.05)
    assert np.abs(np.corrcoef(reports.T) - np.eye(3)).max() < 0.03
    assert message_bits(made) == 9
