# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports on the cube: all corners are counted, and moments are right."""

import math

import numpy as np
import pytest
from scipy import stats

from skdp.local.randomisers import base as _chunks
from skdp.local.randomisers.cube import PrivUnitCube, optimal_privunit_cube, uniform_subsets
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import GivenBits, reports_of, worst_bias


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


@pytest.mark.covering
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
    monkeypatch.setattr(_chunks, "CHUNK", chunk)
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
