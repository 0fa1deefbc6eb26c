# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The entry for all randomisers: shapes, sources, seeds, public facts."""

import math
import tracemalloc

import numpy as np
import pytest

from skdp.local.randomisers import base as _base
from skdp.local.randomisers.ball import flip, lift, product
from skdp.local.randomisers.cube import optimal_privunit_cube
from skdp.local.randomisers.grid import scalar_grid, uniform_levels
from skdp.local.randomisers.privunit import optimal_privunit
from skdp.local.randomisers.privunit_gaussian import optimal_privunit_gaussian
from skdp.local.randomisers.projunit import projunit
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
from skdp.privacy.laws.exponential import Variates

ALL = {
    "unit": optimal_privunit(3.0, 5), "gaussian": optimal_privunit_gaussian(3.0, 5),
    "cube": optimal_privunit_cube(3.0, 5), "lift": lift(3.0, 5), "flip": flip(3.0, 5),
    "product": product(5.0, 5, 2.0, 3), "haar": projunit(3.0, 5, 2),
    "hadamard": projunit(3.0, 5, 2, "hadamard"), "grid": scalar_grid(uniform_levels(4), 3.0),
}  # fmt: skip
every = pytest.mark.parametrize("name", ALL)


def rows_for(name, n_rows=30):
    rows = np.random.default_rng(0).uniform(0.0, 1.0, (n_rows, 1 if name == "grid" else 5))
    return rows / np.sqrt(rows.shape[1])


@every
def test_shapes_bounds_and_sources(name):
    randomiser, rows = ALL[name], rows_for(name)
    made = randomiser.report(rows, Variates(SeededBits(1)))
    assert made.shape == rows.shape
    assert made.dtype == np.float64
    assert np.abs(made).max() <= randomiser.bound < math.inf
    assert randomiser.size == rows.shape[1]
    np.testing.assert_array_equal(randomiser.report(rows, SeededBits(1)), made)
    assert randomiser.report(rows[:0], SeededBits(1)).shape == rows[:0].shape
    assert np.isfinite(randomiser.report(rows[:1], SystemBits())).all()


@every
def test_rows_are_not_changed(name):
    rows = rows_for(name)
    before = rows.copy()
    rows.setflags(write=False)
    ALL[name].report(rows, SeededBits(1), 2)
    ALL[name].report(np.asfortranarray(rows), SeededBits(1), 2)
    np.testing.assert_array_equal(rows, before)


@every
def test_seeds_and_threads(name):
    rows = rows_for(name)
    first = ALL[name].report(rows, SeededBits(1))
    np.testing.assert_array_equal(ALL[name].report(rows, SeededBits(1), 3), first)
    assert (ALL[name].report(rows, SeededBits(2)) != first).any()
    source = SeededBits(1)
    ALL[name].report(rows, source)
    # a source goes on: the same rows get other reports
    assert (ALL[name].report(rows, source) != first).any()


@every
def test_blocks_of_rows(name, monkeypatch):
    rows = rows_for(name)
    monkeypatch.setattr(_base, "BLOCK", 7)
    made = ALL[name].report(rows, SeededBits(1))
    assert made.shape == rows.shape
    assert np.abs(made).max() <= ALL[name].bound
    assert len(np.unique(made, axis=0)) > 1


# but for "haar", whose rotation is a matrix
@pytest.mark.sample(2)
@pytest.mark.parametrize("name", [name for name in ALL if name != "haar"])
def test_little_memory_is_needed(name):
    large = {
        "unit": optimal_privunit(3.0, 500), "gaussian": optimal_privunit_gaussian(3.0, 500),
        "cube": optimal_privunit_cube(3.0, 500), "lift": lift(3.0, 500), "flip": flip(3.0, 500),
        "product": product(5.0, 500, 2.0, 3), "hadamard": projunit(3.0, 500, 50, "hadamard"),
    }  # fmt: skip
    rows = np.ones((12_000, 1 if name == "grid" else 500))
    tracemalloc.start()
    try:
        made = large.get(name, ALL[name]).report(rows, SeededBits(1), 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - made.nbytes < 64 * 2**20


@every
def test_wrong_shapes(name):
    for rows in (np.zeros(5), np.zeros((2, 6))):
        with pytest.raises(ValueError, match="vectors must have shape"):
            ALL[name].report(rows, SeededBits(1))


@every
def test_public_facts(name):
    randomiser = ALL[name]
    assert randomiser.exact == (name in ("cube", "grid"))
    expected = {"cube": 5, "grid": 3, "haar": 2 * 32 + 128, "hadamard": 2 * 32 + 128}
    assert randomiser.message_bits() == expected.get(name, 160)


def test_one_gaussian_kind_reports_in_all_dimensions():
    anywhere, rows = optimal_privunit_gaussian(3.0), rows_for("gaussian")
    made = anywhere.report(rows, SeededBits(1))
    np.testing.assert_array_equal(made, ALL["gaussian"].report(rows, SeededBits(1)))
    assert anywhere.report(np.ones((2, 7)), SeededBits(1)).shape == (2, 7)
    with pytest.raises(ValueError, match="vectors must have shape"):
        anywhere.report(np.zeros(5), SeededBits(1))
    for fact in ("size", "bound"):
        with pytest.raises(ValueError, match="n_dims must be given"):
            getattr(anywhere, fact)


@pytest.mark.parametrize("name", ["unit", "haar", "lift", "gaussian"])
def test_bounds_are_not_far_off(name):
    largest = np.abs(ALL[name].report(np.tile(rows_for(name)[:1], (20_000, 1)), SeededBits(1)))
    assert largest.max() > 0.3 * ALL[name].bound


@every
@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e-160, 1e300, np.inf])
def test_nobody_is_told_of_odd_rows_and_others_do_not_meet_them(name, value):
    rows = rows_for(name)
    expected = ALL[name].report(rows, SeededBits(1))
    rows[3, :-1] = rows[4] = value
    with np.errstate(all="raise"):
        made = ALL[name].report(rows, SeededBits(1))
    others = np.delete(np.arange(len(rows)), [3, 4])
    np.testing.assert_array_equal(made[others], expected[others])
