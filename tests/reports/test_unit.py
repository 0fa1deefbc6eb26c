# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports by PrivUnit and PrivUnitG: their means, variances and lengths."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from skdp.local.randomisers import base as _chunks
from skdp.local.randomisers.base import around
from skdp.local.randomisers.privunit import PrivUnit, optimal_privunit
from skdp.local.randomisers.privunit_gaussian import (
    PrivUnitG,
    optimal_privunit_gaussian,
    shares_along,
)
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import (
    GivenBits,
    reports_of,
    rotated_to,
    variances_of,
    vector_of,
    worst_bias,
)

N = 60_000
CASES = [
    optimal_privunit(2.0, 1), optimal_privunit(2.0, 2), optimal_privunit(1.0, 3),
    optimal_privunit(4.0, 10), PrivUnit(10, 0.4, 0.6), PrivUnit(10, 0.05, 0.9),
    optimal_privunit(30.0, 10),
]  # fmt: skip


@pytest.mark.parametrize("unit", CASES)
def test_mean_variances_and_length(unit):
    u = vector_of(unit.n_dims)
    reports = reports_of(unit, u, N)
    assert worst_bias(reports, u) < 4.0
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 1.0 / unit.scale, rtol=1e-9)
    assert np.abs(reports).max() <= unit.bound
    if unit.p < 0.999:
        error = np.mean(np.sum((reports - u) ** 2, axis=1))
        assert error == pytest.approx(unit.mean_squared_error, rel=0.02)
    squares = ((reports - u) @ rotated_to(u).T) ** 2
    expected = np.full(unit.n_dims, unit.noise_variance)
    expected[0] += unit.cosine / unit.scale - 1.0
    assert worst_bias(squares, expected) < 4.0


@pytest.mark.parametrize("length", [1e-300, 1e-3, 1.0, 7.0, 1e200])
def test_only_the_direction_counts(length):
    unit, u = optimal_privunit(3.0, 6), vector_of(6)
    near = unit.report(np.tile(u, (50, 1)), SeededBits(1))
    np.testing.assert_allclose(unit.report(np.tile(length * u, (50, 1)), SeededBits(1)), near)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
@pytest.mark.parametrize("n_dims", [1, 4])
def test_rows_without_direction_take_uniform_ones(value, n_dims):
    unit = optimal_privunit(3.0, n_dims)
    reports = reports_of(unit, np.full(n_dims, value), 20_000)
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 1.0 / unit.scale)
    assert worst_bias(reports, np.zeros(n_dims)) < 4.0
    second = reports.T @ reports / len(reports) * unit.scale**2
    np.testing.assert_allclose(second, np.eye(n_dims) / n_dims, atol=0.01)


def test_a_remainder_of_zero_is_drawn_again():
    # the second word makes a zero, so that nothing is left across the direction
    bits, out = GivenBits([5, 2**63]), np.empty((1, 2))
    sizes = [np.array([size]) for size in (0.3, 0.4, 1.0)]
    around(out, np.array([[2.0, 0.0]]), *sizes, bits)
    np.testing.assert_allclose(np.abs(out), [[0.3, 0.4]])


def test_the_largest_sizes():
    unit = optimal_privunit(1e4, 10**6)
    made = unit.report(np.ones((1, 10**6)), SeededBits(2))
    assert np.isfinite(made).all()
    assert np.linalg.norm(made) == pytest.approx(1.0 / unit.scale)
    assert made.mean() * 1000.0 * unit.scale == pytest.approx(unit.cosine, rel=1e-3)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("chunk", [1, 100, 10**6])
def test_threads_and_chunks_change_nothing(n_threads, chunk, monkeypatch):
    unit, rows = optimal_privunit(3.0, 20), np.random.default_rng(0).standard_normal((40, 20))
    rows[7] = 0.0
    expected = unit.report(rows, SeededBits(1))
    monkeypatch.setattr(_chunks, "CHUNK", chunk)
    np.testing.assert_array_equal(unit.report(rows, SeededBits(1), n_threads), expected)


@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-12, 1e-9])
@pytest.mark.parametrize("n_dims", [2, 3])
def test_normals_along_the_row_do_not_show_how_it_is_rounded(n_dims, angle):
    rng = np.random.default_rng(0)
    for _ in range(20):
        u, aside = np.linalg.qr(rng.standard_normal((n_dims, 2)))[0].T
        normals = u + angle * aside
        words = [int(max(ndtr(-abs(z)) * 2.0**64, 1.0)) for z in normals]
        words = [w if z > 0 else 2**64 - 1 - w for w, z in zip(words, normals, strict=True)]
        made = np.empty((1, n_dims))
        parts = np.array([0.6]), np.array([0.8]), np.array([1.0])
        around(made, u[None], *parts, GivenBits(words))
        assert np.linalg.norm(made) == pytest.approx(1.0, abs=1e-10)
        assert made[0] @ u == pytest.approx(0.6, abs=1e-10)


# -- PrivUnitG ------------------------------------------------------------------------

GAUSSIANS = [
    optimal_privunit_gaussian(0.5), optimal_privunit_gaussian(4.0), PrivUnitG(1.5, 0.5),
    PrivUnitG(0.0, 0.8), optimal_privunit_gaussian(400.0),
]  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("gaussian", GAUSSIANS)
@pytest.mark.parametrize("n_dims", [1, 2, 12])
def test_moments_of_the_gaussian_kind(gaussian, n_dims):
    u = vector_of(n_dims)
    reports = reports_of(gaussian, u, N)
    assert worst_bias(reports, u) < 4.0
    errors = np.sum((reports - u) ** 2, axis=1)
    assert worst_bias(errors, gaussian.mean_squared_error(n_dims)) < 4.0
    assert np.abs(reports).max() <= replace(gaussian, n_dims=n_dims).bound
    if n_dims > 1:
        assert variances_of(reports, u)[1] == pytest.approx(gaussian.noise_variance, rel=0.03)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.99, 1.0, 3.0, 40.0, 1e5])
def test_shares_along_have_their_law(threshold):
    t = shares_along(PrivUnitG(threshold, 0.6), 4000, SeededBits(1))
    inside = t >= threshold
    assert abs(inside.mean() - 0.6) < 4 * math.sqrt(0.24 / 4000)
    below = np.exp(log_ndtr(t[~inside]) - log_ndtr(threshold))
    assert stats.kstest(below, "uniform").pvalue > 1e-4
    excess = t[inside] - threshold
    if threshold < 1e3:
        above = np.exp(log_ndtr(-t[inside]) - log_ndtr(-threshold))
        assert stats.kstest(above, "uniform").pvalue > 1e-4
    else:
        # far out the excess is exponential
        assert stats.kstest(excess * threshold, "expon").pvalue > 1e-4


@pytest.mark.parametrize("n_dims", [1, 3])
def test_gaussian_rows_without_direction(n_dims):
    gaussian = optimal_privunit_gaussian(6.0)
    reports = reports_of(gaussian, np.zeros(n_dims), N)
    assert worst_bias(reports, np.zeros(n_dims)) < 4.0
    lengths = np.linalg.norm(reports, axis=1)
    given = np.linalg.norm(reports_of(gaussian, vector_of(n_dims), N, seed=1), axis=1)
    assert stats.ks_2samp(lengths, given).pvalue > 1e-4
