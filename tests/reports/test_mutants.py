# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of samplers of reports, planted one by one: the tests see them all.

Every test first shows that the real code passes.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdp.local.randomisers import ball as _ball
from skdp.local.randomisers import base as _around
from skdp.local.randomisers import cube as _cube
from skdp.local.randomisers import privunit as _unit
from skdp.local.randomisers.ball import flip, lift, product
from skdp.local.randomisers.cube import optimal_privunit_cube
from skdp.local.randomisers.grid import ScalarGrid
from skdp.local.randomisers.privunit import optimal_privunit, paper_privunit
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import reports_of, vector_of, worst_bias
from tests.reports.test_audit import measured_epsilon
from tests.reports.test_cube import corner_counts, corner_law


def noise_is_shared(randomiser, n_rows=4000):
    """Return whether the noises of two rows that follow each other have to do with each other."""
    u = vector_of(randomiser.n_dims)
    noise = reports_of(randomiser, u, n_rows) - u
    products = np.sum(noise[::2] * noise[1::2], axis=1)
    # a number that is the same in all rows does not vary
    constant = np.std(noise @ u) < 1e-9
    return constant or worst_bias(products, 0.0) > 5.0


def test_noise_of_one_row_for_all_is_caught(monkeypatch):
    unit = optimal_privunit(4.0, 6)
    assert not noise_is_shared(unit)
    real = _around.normals
    monkeypatch.setattr(_around, "normals", lambda words: np.tile(real(words)[:1], (len(words), 1)))
    assert noise_is_shared(unit)


def test_noise_of_pairs_is_caught(monkeypatch):
    unit = optimal_privunit(4.0, 6)
    real = _around.normals

    def paired(words):
        made = real(words)
        made[1::2] = made[: len(made) // 2 * 2 : 2]
        return made

    monkeypatch.setattr(_around, "normals", paired)
    assert noise_is_shared(unit)


def test_one_cosine_for_all_rows_is_caught(monkeypatch):
    real = _unit.cap_cosines

    def same(unit, size, bits):
        return tuple(np.full(size, part[0]) for part in real(unit, 1, bits))

    monkeypatch.setattr(_unit, "cap_cosines", same)
    assert noise_is_shared(optimal_privunit(4.0, 6))


def direction_is_fixed(randomiser):
    """Return whether reports of zero have a direction that they prefer."""
    reports = reports_of(randomiser, np.zeros(randomiser.n_dims), 4000)
    directions = reports / np.linalg.norm(reports, axis=1)[:, None]
    second = directions.T @ directions / len(directions)
    far = np.abs(np.linalg.eigvalsh(second) - 1.0 / randomiser.n_dims).max()
    return worst_bias(reports, 0.0) > 4.0 or far > 0.04


@pytest.mark.parametrize("ball", [flip(4.0, 3), product(8.0, 3, 3.0, 4)])
def test_a_fixed_direction_of_zero_is_caught(ball, monkeypatch):
    assert not direction_is_fixed(ball)
    real = _around.directions_of

    def fixed(rows):
        directions, lost = real(rows)
        directions[lost] = np.eye(rows.shape[1])[0]
        return directions, np.zeros_like(lost)

    monkeypatch.setattr(_around, "directions_of", fixed)
    assert direction_is_fixed(ball)


def length_is_not_clipped(randomiser):
    """Return whether a long row is reported differently from one of length 1."""
    u = vector_of(randomiser.n_dims)
    long, unit = (reports_of(randomiser, size * u, 2000) for size in (3.0, 1.0))
    return not np.allclose(long, unit, atol=1e-6) or np.abs(long).max() > randomiser.bound


def test_a_length_that_is_not_clipped_is_caught(monkeypatch):
    balls = [lift(4.0, 3), flip(4.0, 3), product(8.0, 3, 3.0, 4)]
    assert not any(length_is_not_clipped(ball) for ball in balls)

    def unclipped(grid, numbers, bits):
        return numbers * np.ones(len(bits.words(len(numbers))))

    monkeypatch.setattr(ScalarGrid, "report_numbers", unclipped)
    assert length_is_not_clipped(balls[2])
    monkeypatch.setattr(_ball, "lifted", lambda rows: np.pad(rows, ((0, 0), (0, 1))) + 0.1)
    assert length_is_not_clipped(balls[0])


def test_negative_lengths_that_are_cut_are_caught(monkeypatch):
    ball, w = product(4.0, 3, 1.0, 2), vector_of(3, 0.1)
    assert worst_bias(reports_of(ball, w, 40_000), w) < 4.0
    real = ScalarGrid.report_numbers
    monkeypatch.setattr(ScalarGrid, "report_numbers", lambda *a: np.maximum(real(*a), 0.0))
    assert worst_bias(reports_of(ball, w, 40_000), w) > 6.0


def test_a_wrong_scale_is_caught(monkeypatch):
    unit, u = optimal_privunit(4.0, 6), vector_of(6)
    assert worst_bias(reports_of(unit, u, 40_000), u) < 4.0
    monkeypatch.setattr(type(unit), "scale", property(lambda self: 0.95 * self.cosine))
    assert worst_bias(reports_of(unit, u, 40_000), u) > 5.0


def test_a_trusted_norm_is_caught(monkeypatch):
    unit, rows = optimal_privunit(4.0, 6), 3.0 * np.tile(vector_of(6), (50, 1))
    lengths = np.linalg.norm(unit.report(rows, SeededBits(0)), axis=1) * unit.scale
    np.testing.assert_allclose(lengths, 1.0)
    trusting = lambda rows: (rows.copy(), np.zeros(len(rows), bool))  # noqa: E731
    monkeypatch.setattr(_around, "directions_of", trusting)
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(unit.report(rows, SeededBits(0)), axis=1) * unit.scale
    assert np.ptp(lengths) > 0.1


@pytest.mark.parametrize("n_dims", [4, 6])
def test_a_threshold_that_is_off_by_one_is_caught(n_dims, monkeypatch):
    cube, row = optimal_privunit_cube(1.0, n_dims), np.ones(n_dims)
    law = 20_000 * corner_law(cube, row)
    assert stats.chisquare(corner_counts(cube, row, 20_000), law).pvalue > 1e-4
    real = _cube.matches
    monkeypatch.setattr(_cube, "matches", lambda t, *rest: real(t + 1, *rest))
    assert stats.chisquare(corner_counts(cube, row, 20_000), law).pvalue < 1e-9


def test_a_subset_that_is_a_prefix_is_caught(monkeypatch):
    cube, row = optimal_privunit_cube(1.0, 5), np.ones(5)
    law = 20_000 * corner_law(cube, row)

    def prefix(keys, sizes):
        return np.arange(keys.shape[1]) < sizes[:, None], np.zeros(len(keys), bool)

    monkeypatch.setattr(_cube, "uniform_subsets", prefix)
    assert stats.chisquare(corner_counts(cube, row, 20_000), law).pvalue < 1e-9


def price_is_wrong(unit, stated):
    measured, error = measured_epsilon(unit, unit.cosine, 60_000)
    return abs(measured - stated) > 4.0 * error


def test_a_loose_condition_that_is_stated_as_the_price_is_caught():
    unit = optimal_privunit(2.0, 10)
    assert not price_is_wrong(unit, unit.epsilon)
    assert price_is_wrong(paper_privunit(1.9, 0.1, 10, "16a"), 2.0)
    # the coin of another budget
    assert price_is_wrong(replace(unit, p=unit.p + 0.03), unit.epsilon)


def test_cosines_of_the_whole_sphere_beyond_the_cap_are_caught(monkeypatch):
    unit = optimal_privunit(2.0, 10)
    real = _unit.cosines_beyond

    def whole(unit, size, bits):
        return real(replace(unit, cosine=0.999, p=0.9), size, bits)

    monkeypatch.setattr(_unit, "cosines_beyond", whole)
    assert price_is_wrong(unit, unit.epsilon)
