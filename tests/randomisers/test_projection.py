# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""ProjUnit: its factor, its error, and how short its reports can be."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.local.randomisers.privunit import optimal_privunit
from skdp.local.randomisers.projunit import projection_factor, projunit, smallest_projunit


def test_the_factor():
    for d, k, wanted in [
        (64, 16, 0.9883594975), (1000, 100, 0.9977525709), (10**6, 256, 0.9990241664),
    ]:  # fmt: skip
        assert_allclose(projection_factor(d, k), wanted, rtol=1e-9)
    # in the plane the part is the absolute value of a cosine
    assert_allclose(projection_factor(2, 1), math.sqrt(2) * 2 / math.pi, rtol=1e-14)
    for d in (1, 2, 17, 10**7):
        assert projection_factor(d, d) == pytest.approx(1.0, abs=1e-14)
    # what is missing to 1
    assert_allclose(1 - projection_factor(10**7, 1000), 1 / 4000, rtol=1e-3)


def test_errors_against_those_without_projection():
    for epsilon, k, wanted in [
        (1, 64, 1.0012), (1, 256, 1.0003), (4, 64, 1.018), (4, 256, 1.0045), (4, 1024, 1.001),
        (8, 64, 1.06), (8, 256, 1.015), (8, 1024, 1.0037), (16, 64, 1.17), (16, 256, 1.041),
        (16, 1024, 1.010),
    ]:  # fmt: skip
        best = optimal_privunit(epsilon, 10**6).mean_squared_error
        ratio = projunit(epsilon, 10**6, k).mean_squared_error / best
        assert_allclose(ratio, wanted, atol=5e-3 if wanted > 1.05 else 6e-4)


def test_all_kept_is_privunit():
    unit = optimal_privunit(3.0, 20)
    found = projunit(3.0, 20, 20)
    assert_allclose(found.mean_squared_error, unit.mean_squared_error, rtol=1e-12)
    assert_allclose(found.noise_variance, unit.noise_variance, rtol=1e-10)
    assert found.epsilon == unit.epsilon


@pytest.mark.parametrize(("d", "k"), [(2, 1), (6, 2), (50, 7), (10**6, 500)])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 30.0])
def test_variances_add_up(d, k, epsilon):
    found = projunit(epsilon, d, k)
    whole = found.noise_variance_along + (d - 1) * found.noise_variance
    assert_allclose(whole, found.mean_squared_error, rtol=1e-10)


def test_moments_by_simulation():
    d, k, n = 6, 2, 20_000
    found, rng = projunit(3.0, d, k), np.random.default_rng(0)
    rows = np.linalg.qr(rng.normal(size=(n, d, k)))[0] * math.sqrt(d / k)
    part = rows[:, 0, :] / np.linalg.norm(rows[:, 0, :], axis=1, keepdims=True)
    # in the plane a report is an angle off: within the cap's, or beyond
    edge = math.acos(found.unit.cosine)
    inside = rng.uniform(size=n) < found.unit.p
    angle = np.where(inside, rng.uniform(-edge, edge, n), rng.uniform(edge, 2 * np.pi - edge, n))
    cos, sin = np.cos(angle), np.sin(angle)
    turned = np.stack(
        [cos * part[:, 0] - sin * part[:, 1], sin * part[:, 0] + cos * part[:, 1]], axis=1
    )
    reports = np.einsum("ndk,nk->nd", rows, turned) / found.scale
    error = math.sqrt(found.mean_squared_error / n)
    assert np.linalg.norm(reports.mean(axis=0) - np.eye(d)[0]) < 2.5 * error
    assert_allclose((reports**2).sum(axis=1), found.mean_squared_error + 1, rtol=1e-9)
    assert_allclose(reports[:, 0].var(), found.noise_variance_along, rtol=0.05)
    assert_allclose(reports[:, 1:].var(), found.noise_variance, rtol=0.03)


def test_the_shortest_reports():
    for epsilon, kept in [(1, 9), (4, 116), (8, 379), (16, 1044)]:
        found = smallest_projunit(epsilon, 10**6)
        assert found.n_kept == kept
        best = optimal_privunit(epsilon, 10**6).mean_squared_error
        shorter = projunit(epsilon, 10**6, kept - 1).mean_squared_error
        assert found.mean_squared_error <= 1.01 * best < shorter
        assert found.message_bits() == 32 * kept + 128
        assert found.message_bits(64, seed_bits=0) == 64 * kept
    assert smallest_projunit(4.0, 10, loss=0.0).n_kept == 10
    assert smallest_projunit(4.0, 1).n_kept == 1


def test_errors_fall_with_what_is_kept():
    for epsilon in (0.1, 3.0, 50.0):
        errors = [projunit(epsilon, 300, k).mean_squared_error for k in range(1, 301)]
        assert (np.diff(errors) <= 1e-9 * np.array(errors[1:])).all()


def test_bad_input():
    for k in (0, 11, 2.5):
        with pytest.raises(ValueError, match="n_kept must be an integer from 1 to 10"):
            projunit(1.0, 10, k)
    for loss in (-0.1, math.nan):
        with pytest.raises(ValueError, match="loss must be at least 0"):
            smallest_projunit(1.0, 10, loss)
    with pytest.raises(ValueError, match="n_dims must be an integer"):
        projection_factor(0, 1)
