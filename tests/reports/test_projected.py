# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports by ProjUnit, back in all entries."""

import numpy as np
import pytest

from skdp.local.randomisers.privunit import optimal_privunit
from skdp.local.randomisers.projunit import (
    ProjUnit,
    hadamard,
    make_rotation,
    projection_factor,
    projunit,
    smallest_projunit,
)
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import rotated_to, vector_of, worst_bias

HAAR = [projunit(4.0, 1, 1), projunit(4.0, 6, 6), projunit(4.0, 6, 2), projunit(4.0, 12, 5)]


def reports_by_many_rotations(projected, vector, n_calls, n_rows=4):
    rows, bits = np.tile(vector, (n_rows, 1)), SeededBits(5)
    return np.concatenate([projected.report(rows, bits) for _ in range(n_calls)])


@pytest.mark.sample(2)
@pytest.mark.parametrize("projected", HAAR)
def test_moments(projected):
    u = vector_of(projected.n_dims)
    reports = reports_by_many_rotations(projected, u, 1500, 1)
    assert worst_bias(reports, u) < 4.0
    length = np.sqrt(projected.n_dims / projected.n_kept) / projected.scale
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), length)
    assert np.abs(reports).max() <= projected.bound
    squares = ((reports - u) @ rotated_to(u).T) ** 2
    expected = np.full(projected.n_dims, projected.noise_variance)
    expected[0] = projected.noise_variance_along
    assert worst_bias(squares, expected) < 4.0


@pytest.mark.parametrize("n_dims", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("kind", ["haar", "hadamard"])
def test_rotations_are_orthogonal(n_dims, kind):
    projected = projunit(4.0, n_dims, 1, kind)
    rotate = make_rotation(projected, SeededBits(1))
    eye = np.eye(projected.n_rotated)
    matrix = rotate(eye, False)
    np.testing.assert_allclose(matrix @ matrix.T, eye, atol=1e-12)
    np.testing.assert_allclose(rotate(matrix, True), eye, atol=1e-12)


def test_haar_rotations_are_uniform():
    bits, projected = SeededBits(2), projunit(4.0, 3, 1)
    entries = [make_rotation(projected, bits)(np.eye(3), False)[:2, :2] for _ in range(4000)]
    entries = np.array(entries).reshape(4000, 4)
    assert worst_bias(entries, np.zeros(4)) < 4.0
    # every entry of it is a coordinate of a uniform vector, in dimension 3 uniform itself
    assert worst_bias(entries**2, np.full(4, 1 / 3)) < 4.0
    # the sign of the diagonal is not that of an algorithm
    assert worst_bias(np.sign(entries), np.zeros(4)) < 4.0


def test_hadamard_is_that_of_sylvester():
    matrix = hadamard(np.eye(8)) * np.sqrt(8)
    signs = [[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)]
    np.testing.assert_allclose(matrix, signs)


@pytest.mark.parametrize("n_dims", [16, 21])
def test_the_fast_rotation(n_dims):
    projected = projunit(6.0, n_dims, 8, "hadamard")
    wide = projected.n_rotated
    assert wide == (16 if n_dims == 16 else 32)
    assert projected.scale == projected.unit.scale * projection_factor(wide, 8)
    # one entry is rotated to entries of one size: the mean is too long by 1/C
    u = np.eye(n_dims)[3]
    reports = reports_by_many_rotations(projected, u, 100, 300)
    assert worst_bias(reports, u / projection_factor(wide, 8)) < 4.0
    dense = np.ones(n_dims) / np.sqrt(n_dims)
    reports = reports_by_many_rotations(projected, dense, 100, 300)
    factor = reports.mean(axis=0) @ dense
    assert 0.97 < factor < 1.03 / projection_factor(wide, 8)
    errors = np.sum((reports - dense) ** 2, axis=1)
    assert errors.mean() == pytest.approx(projected.mean_squared_error, rel=0.03)


@pytest.mark.parametrize("kind", ["haar", "hadamard"])
def test_one_rotation_serves_many_rows(kind):
    # the entries that are kept differ, so that means of many reports come near the vector
    projected, u = projunit(50.0, 24, 8, kind), vector_of(24)
    made = projected.report(np.tile(u, (4000, 1)), SeededBits(6), 2)
    assert np.linalg.norm(made.mean(axis=0) - u) < 3 * 1.2 / 8
    shared = np.sqrt(projected.n_rotated / 8 - 1)
    assert shared > 3 * 3 * 1.2 / 8


def test_zero_rows_and_threads():
    projected, rows = projunit(4.0, 6, 2), np.random.default_rng(0).standard_normal((30, 6))
    rows[3] = 0.0
    made = projected.report(rows, SeededBits(1))
    assert np.isfinite(made).all()
    np.testing.assert_array_equal(projected.report(rows, SeededBits(1), 3), made)
    length = np.sqrt(3.0) / projected.scale
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), length)


def test_parameters():
    assert projunit(4.0, 6, 2).rotation == "haar"
    assert projunit(4.0, 1, 1, "hadamard").noise_variance > 0.0
    # where nothing is filled up, both ways to say the error are one
    same = projunit(4.0, 16, 5, "hadamard")
    total = same.noise_variance_along + 15 * same.noise_variance
    assert same.mean_squared_error == pytest.approx(total)
    assert same.mean_squared_error == projunit(4.0, 16, 5).mean_squared_error
    for kind in ("haar", "hadamard"):
        small = smallest_projunit(8.0, 1000, rotation=kind)
        assert small.rotation == kind
        assert small.message_bits() == 32 * small.n_kept + 128
        assert 270 < small.n_kept < 290
    with pytest.raises(ValueError, match='rotation must be "haar" or "hadamard"'):
        ProjUnit(6, optimal_privunit(4.0, 2), "dct")
    large = projunit(4.0, 5000, 2)
    with pytest.raises(ValueError, match="at most 4096 dimensions, got 5000"):
        large.report(np.ones((1, 5000)), SeededBits(1))
