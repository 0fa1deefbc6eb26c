# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnit: its budget to sixty digits, its moments, and that its parameters are the best."""

import math

import mpmath as mp
import pytest
from numpy.testing import assert_allclose

from skdp.local.randomisers.caps import log_cap
from skdp.local.randomisers.privunit import PrivUnit, optimal_privunit, with_cosine
from tests.randomisers import _reference

DIMS = [1, 2, 3, 4, 10, 101, 1000, 10**5, 10**7]
BUDGETS = [1e-3, 0.01, 0.1, 1.0, 3.0, 8.0, 30.0, 40.0, 100.0, 700.0, 1e4, 1e5]
every_dim = pytest.mark.parametrize("d", DIMS)

# dimension, budget: cosine, p, log q, log-odds of p, mean squared error; by mpmath
ANCHORS = [
    (2, 1, 0.308287129905, 0.644638128252, -0.915680296941, 0.5955524906, 9.52177985406),
    (3, 1, 0.244918662404, 0.622459331202, -0.97407698418, 0.5, 15.6707923561),
    (4, 1, 0.208922854132, 0.612791825932, -0.999754964451, 0.4590628136, 21.9101588086),
    (10, 1, 0.128318400247, 0.597756879657, -1.03999001283, 0.3961274327, 59.7326353612),
    (10, 8, 0.736842394973, 0.935521829585, -5.33007770554, 2.674777757, 0.841835286355),
    (100, 0.1, 0.00399924244772, 0.509163115671, -0.725320362168, 0.03665656676, 62522.6802356),
    (100, 1, 0.0398299393321, 0.590115505731, -1.06058974374, 0.3644428915, 629.34848038),
    (100, 4, 0.151068213966, 0.79357070113, -2.72145739703, 1.346584661, 42.8181270831),
    (100, 16, 0.434328518933, 0.961887253033, -12.7716543892, 3.228348451, 4.30106715518),
    (1000, 8, 0.0865981591275, 0.90139663014, -5.79022205264, 2.212839934, 132.346825111),
    (10**4, 4, 0.0151558850458, 0.790971962623, -2.73621687315, 1.330794129, 4352.48843235),
    (10**6, 8, 0.0027429403170696936, 0.901023592573, -5.79439927370, 2.208649929,
     132911.945936047),
    (3274634, 500, 0.0172760657296738, 0.998980259112, -493.112813545, 6.887186455,
     3349.50526365992),
]  # fmt: skip
# mean squared errors
ERRORS = {
    100: {0.5: 2504.9, 1: 629.35, 2: 160.36, 4: 42.818, 8: 12.733, 16: 4.3011, 32: 1.5215,
          64: 0.48172, 128: 0.10173},
    500: {1: 3161.4, 4: 216.94, 8: 65.891, 16: 23.512, 32: 9.4398, 64: 3.9805, 128: 1.6409,
          256: 0.5971},
    10**4: {1: 63297, 8: 1328.6, 64: 88.817},
    10**6: {8: 132912, 64: 8931.6},
}  # fmt: skip


@pytest.mark.parametrize("anchor", ANCHORS, ids=lambda anchor: f"{anchor[0]}-{anchor[1]}")
def test_anchors(anchor):
    d, epsilon, cosine, p, log_q, odds, mse = anchor
    found = optimal_privunit(epsilon, d)
    assert_allclose(found.cosine, cosine, rtol=1e-11)
    assert_allclose(found.p, p, rtol=1e-11)
    assert_allclose(found.log_q, log_q, rtol=1e-11)
    assert_allclose(math.log(found.p) - math.log1p(-found.p), odds, rtol=1e-9)
    assert_allclose(found.mean_squared_error, mse, rtol=1e-11)


@pytest.mark.parametrize("d", ERRORS)
def test_table_of_errors(d):
    for epsilon, mse in ERRORS[d].items():
        assert_allclose(optimal_privunit(epsilon, d).mean_squared_error, mse, rtol=1e-4)


@every_dim
def test_the_budget_is_what_was_asked_for_and_never_more(d):
    for epsilon in [1e-6, *BUDGETS, 1e6]:
        found = optimal_privunit(epsilon, d)
        spent = _reference.budget(found.p, _reference.log_cap(found.cosine, d))
        assert spent <= found.epsilon <= epsilon
        # what is declared is what is spent, but for the rounding
        assert found.epsilon - spent <= 1e-13 * (1 + epsilon)
        if found.cosine < 1 - 1e-9 and found.p < 1 - 1e-6:
            assert epsilon - spent <= 1e-9 + 1e-13 * epsilon


@every_dim
def test_the_cosine_is_the_scale(d):
    for epsilon in BUDGETS:
        found = optimal_privunit(epsilon, d)
        assert_allclose(found.cosine, found.scale, rtol=1e-9)
        mse = found.mean_squared_error
        assert mse > 0.0
        assert_allclose(found.noise_variance * d, mse, rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("d", [2, 3, 10, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 64.0])
def test_no_other_cosine_is_better(d, epsilon):
    found = optimal_privunit(epsilon, d)
    for factor in (0.1, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        cosine = found.cosine * factor
        if cosine < 1 and log_cap(cosine, d) > -1e3 and (1 - cosine > 1e-6):
            assert with_cosine(cosine, epsilon, d).scale <= found.scale * (1 + 1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("d", [2, 3, 5, 20])
@pytest.mark.parametrize(("cosine", "p"), [(0.0, 0.7), (0.3, 0.7), (0.6, 0.9), (0.2, 0.45)])
def test_moments_are_integrals_of_the_density(d, cosine, p):
    unit = PrivUnit(d, cosine, p)
    a, q = mp.mpf(d - 1) / 2, mp.exp(_reference.log_cap(cosine, d))

    def moment(order):
        def part(*points):
            # the sine as variable: no end is singular
            return mp.quad(
                lambda y: mp.sin(y) ** order * mp.cos(y) ** (2 * a - 1), points
            ) / mp.beta(a, 0.5)

        edge, right = mp.asin(cosine), mp.pi / 2
        return p / q * part(edge, right) + (1 - p) / (1 - q) * part(-right, 0, edge)

    assert_allclose(float(moment(0)), 1.0, rtol=1e-12)
    m, second = float(moment(1)), float(moment(2))
    assert_allclose(unit.scale, m, rtol=1e-12)
    assert_allclose(unit.mean_squared_error, 1 / m**2 - 1, rtol=1e-11)
    assert_allclose(unit.noise_variance, (1 - second) / (d - 1) / m**2, rtol=1e-11)
    along = unit.noise_variance + cosine / unit.scale - 1.0
    assert_allclose(along, second / m**2 - 1, rtol=1e-10)


def test_spot_checks_of_the_printed_scale():
    assert_allclose(PrivUnit(10, 0.3, 0.7).scale, 0.288937055806095, rtol=1e-11)
    assert_allclose(PrivUnit(5, 0.6, 0.9).scale, 0.656043956044, rtol=1e-11)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_closed_forms(epsilon):
    # randomised response; tanh(epsilon / 4); tan x - x = pi / (exp(epsilon) - 1)
    assert_allclose(optimal_privunit(epsilon, 1).scale, math.tanh(epsilon / 2), rtol=1e-12)
    found = optimal_privunit(epsilon, 3)
    assert_allclose(found.cosine, math.tanh(epsilon / 4), rtol=1e-12)
    assert_allclose(found.log_q, -math.log1p(math.exp(epsilon / 2)), rtol=1e-12)
    angle = math.acos(optimal_privunit(epsilon, 2).cosine)
    assert_allclose(math.tan(angle) - angle, math.pi / math.expm1(epsilon), rtol=1e-6)


def test_scaling():
    # Bhowmick et al. (2018), Propositions 3 and 4: the constants are those of the limits
    for d in (10, 100, 10**4, 10**6):
        for epsilon in (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4):
            found = optimal_privunit(epsilon, d)
            if epsilon <= d / 100:
                ratio = found.scale * math.sqrt(d) / min(epsilon, math.sqrt(epsilon))
                assert 0.39 <= ratio <= 1.42
            if epsilon <= d / 1000:
                assert 0.5 <= found.mean_squared_error * min(epsilon, epsilon**2) / d <= 6.34
    assert_allclose(optimal_privunit(1e-3, 10**6).scale * 1e3 / 1e-3, 0.39894, rtol=1e-4)
    close = optimal_privunit(1000.0, 1000)
    assert_allclose(close.cosine, 0.928, atol=5e-4)


def test_bad_budgets_and_parameters():
    for epsilon in (0.0, -1.0, math.nan, math.inf, "1", True):
        with pytest.raises(ValueError, match="epsilon must be a finite number greater than 0"):
            optimal_privunit(epsilon, 3)
    for epsilon in (1e-7, 1e7):
        with pytest.raises(ValueError, match="epsilon must be from 1e-6 to 1e6"):
            optimal_privunit(epsilon, 3)
    for cosine in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"cosine must be in \[0, 1\)"):
            PrivUnit(3, cosine, 0.9)
    for p in (0.25, 0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match="p must be below 1 and above the share of the cap"):
            PrivUnit(3, 0.5, p)
    for d in (0, 1.5, True):
        with pytest.raises(ValueError, match="n_dims must be an integer"):
            optimal_privunit(1.0, d)
