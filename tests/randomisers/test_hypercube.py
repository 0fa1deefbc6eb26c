# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnit on the cube: everything by enumeration, and the condition that is false in print."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.local.randomisers.caps import CAP_ACCURACY
from skdp.local.randomisers.cube import (
    PrivUnitCube,
    heads_tail,
    log_heads,
    log_heads_tail,
    log_scale,
    optimal_privunit_cube,
)
from skdp.local.randomisers.privunit import optimal_privunit
from tests.randomisers import _reference
from tests.randomisers._reference import error

DIMS = [1, 2, 3, 4, 10, 101, 1000, 10**5]
BUDGETS = [1e-3, 0.1, 1.0, 4.0, 20.0, 100.0, 1e4, 1e5]


@pytest.mark.parametrize("d", [1, 2, 3, 20, 64, 65, 100, 333])
def test_tails_are_sums_of_integers(d):
    for k in range(d // 2 + 1, d + 2):
        if k == d + 1:
            assert log_heads_tail(k, d) == -math.inf
            continue
        assert_allclose(log_heads(k, d), math.log(math.comb(d, k)) - d * math.log(2), atol=1e-12)
        exact = heads_tail(k, d)
        assert exact * 2**d == sum(math.comb(d, j) for j in range(k, d + 1))
        wanted = math.log(exact.numerator) - math.log(exact.denominator)
        assert_allclose(log_heads_tail(k, d), wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("d", [10, 65, 1000, 10**5, 10**6])
def test_tails_are_accurate(d):
    for width in (0.0, 0.3, 1.0, 3.0, 10.0, 100.0):
        k = d // 2 + 1 + int(width * math.sqrt(d) / 2)
        if k <= d:
            assert error(log_heads_tail(k, d), _reference.log_heads_tail(k, d)) < CAP_ACCURACY


@pytest.mark.parametrize(
    ("d", "epsilon", "threshold", "p", "q", "m"),
    [
        (5, 1, 3, 0.7310585786, 0.5, 0.173293934),
        (10, 4, 8, 0.7595327623, 0.0546875, 0.4793280651),
        (100, 8, 64, 0.9084703952, 0.003318560258, 0.2731790392),
        (1000, 4, 524, 0.8008082025, 0.06858400264, 0.04791167394),
        (10, 0.1, 6, 0.4007116170, 0.376953125, 0.01244747866),
    ],
)
def test_anchors(d, epsilon, threshold, p, q, m):
    found = optimal_privunit_cube(epsilon, d)
    assert found.threshold == threshold
    assert_allclose([found.p, math.exp(found.log_q), found.scale], [p, q, m], rtol=1e-9)
    assert_allclose(float(heads_tail(found.threshold, d)), q, rtol=1e-9)


@pytest.mark.parametrize("d", DIMS)
def test_the_budget_is_never_more_than_asked_for(d):
    for epsilon in BUDGETS:
        found = optimal_privunit_cube(epsilon, d)
        spent = _reference.budget(found.p, _reference.log_heads_tail(found.threshold, d))
        assert spent <= found.epsilon <= epsilon
        assert found.epsilon - spent <= 1e-13 * (1 + epsilon)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 9, 10, 50, 101])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 10.0, 50.0])
def test_no_other_threshold_is_better(d, epsilon):
    best = max(log_scale(T, epsilon, d) for T in range(d // 2 + 1, d + 1))
    found = log_scale(optimal_privunit_cube(epsilon, d).threshold, epsilon, d)
    assert_allclose(found, best, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_everything_by_enumeration(d, epsilon):
    found = optimal_privunit_cube(epsilon, d)
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    cap = corners @ corners.T >= 2 * found.threshold - d
    q = float(heads_tail(found.threshold, d))
    assert_allclose(cap.mean(axis=1), q)
    channel = np.where(cap, found.p / q, (1 - found.p) / (1 - q)) / len(corners)
    # rows of two corners, and of points inside
    rows = np.vstack([corners, np.random.default_rng(0).uniform(-1, 1, size=(20, d))])
    rounding = np.prod((1 + rows[:, None, :] * corners) / 2, axis=2)
    chances = rounding @ channel
    ratios = np.log(chances[:, None, :]) - np.log(chances[None, :, :])
    assert_allclose(ratios.max(), found.epsilon, rtol=1e-12)
    reports = corners / found.scale
    assert_allclose(chances @ reports, rows, atol=1e-12)
    for row, chance in zip(rows, chances, strict=True):
        covariance = np.einsum("v,vi,vj->ij", chance, reports, reports) - np.outer(row, row)
        wanted = found.covariance(row[:, None], row[None, :])
        np.fill_diagonal(wanted, found.variance(row))
        assert_allclose(covariance, wanted, atol=1e-9 / found.scale**2)


def exact_budget(d, kappa):
    cap = heads_tail((d + kappa) // 2 + 1, d)
    return math.log((1 - cap) / cap)


def printed_budget(d, kappa, term):
    x = math.sqrt(2 / (3 * d + 2))
    return math.log1p((kappa + term) * x) - math.log1p(-(kappa + term) * x)


@pytest.mark.parametrize(
    ("d", "kappa", "claimed", "spent"),
    [
        (2, 0, 0, 1.0986), (4, 0, 0, 0.7885), (4, 2, 1.973, 2.708), (10, 2, 1.099, 1.572),
        (100, 0, 0, 0.1595), (100, 4, 0.676, 0.806), (10**4, 2, 0.0327, 0.0479),
    ],
)  # fmt: skip
def test_printed_condition_20_is_false(d, kappa, claimed, spent):
    # Bhowmick et al. (2018), Corollary 4.1: one more than kappa has to stand there
    assert_allclose(printed_budget(d, kappa, 0), claimed, atol=6e-4)
    assert_allclose(exact_budget(d, kappa), spent, atol=6e-4)
    assert exact_budget(d, kappa) > printed_budget(d, kappa, 0) + 0.01
    x = math.sqrt(2 / (3 * d + 2))
    if (kappa + 1) * x < 1:
        assert exact_budget(d, kappa) <= printed_budget(d, kappa, 1) + 1e-15
    fair = PrivUnitCube(d, (d + kappa) // 2 + 1, 0.5)
    assert_allclose(fair.epsilon, exact_budget(d, kappa), rtol=1e-10)


def test_condition_21_holds():
    for d, kappa, claimed in [(100, 30, 7.806), (100, 80, 41.15)]:
        x = (kappa + 2) / d
        entropy = (1 + x) * math.log1p(x) + (1 - x) * math.log1p(-x)
        value = 0.5 * math.log(2) + 0.5 * math.log(d * (1 - x * x)) + d / 2 * entropy
        assert_allclose(value, claimed, rtol=1e-3)
        assert exact_budget(d, kappa) <= value


def test_corners_fare_as_on_the_sphere():
    for d, epsilon, wanted in [
        (10**4, 1, 1.0001), (10**4, 4, 1.0), (10**4, 16, 0.9994), (10**4, 256, 0.983),
        (100, 1, 1.009), (100, 4, 0.992), (100, 16, 0.920), (100, 64, 0.276), (2, 0.1, 1.54),
        (10, 0.1, 1.08), (10, 4, 0.91),
    ]:  # fmt: skip
        cube = optimal_privunit_cube(epsilon, d).variance(1.0)
        ratio = cube / optimal_privunit(epsilon, d).mean_squared_error
        assert_allclose(ratio, wanted, atol=6e-3 if wanted in (1.54, 1.08, 0.91) else 6e-4)
        if d >= 100 and epsilon >= 4:
            found = optimal_privunit_cube(epsilon, d)
            assert_allclose(found.cosine / found.scale, 1.0, atol=0.03)


def test_lengths_scale_as_the_theorem_says():
    # Bhowmick et al. (2018), Proposition 5
    d = 10**6
    found = optimal_privunit_cube(1000.0, d)
    assert_allclose(math.sqrt(1000.0 / d) / found.scale, 1 / math.sqrt(2), rtol=0.02)
    found = optimal_privunit_cube(1e-2, d)
    assert_allclose(1e-2 / math.sqrt(d) / found.scale, math.sqrt(2 * math.pi), rtol=0.01)


def test_bad_input():
    for threshold in (2, 6, 3.5, math.nan):
        with pytest.raises(ValueError, match="threshold must be an integer from 3 to 5"):
            PrivUnitCube(5, threshold, 0.9)
    for p in (0.5, 1.0, math.nan):
        with pytest.raises(ValueError, match="p must be below 1 and above the share"):
            PrivUnitCube(5, 3, p)
    with pytest.raises(ValueError, match="n_dims must be an integer"):
        optimal_privunit_cube(1.0, 0)
    with pytest.raises(ValueError, match="epsilon must be"):
        optimal_privunit_cube(-1.0, 3)
