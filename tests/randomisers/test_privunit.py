# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnit and its kin: parameters, caps, projections, draws."""

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import log_ndtr, ndtr

from skdp.local.randomisers import base
from skdp.local.randomisers.ball import Flip, Lift, flip, lift, lifted, product
from skdp.local.randomisers.base import around
from skdp.local.randomisers.caps import (
    CAP_ACCURACY,
    cap_cosine,
    log_beta_half,
    log_cap,
    log_cap_mean,
    log_tail,
)
from skdp.local.randomisers.privunit import (
    PrivUnit,
    PrivUnitG,
    cap_cosines,
    cosines_beyond,
    cosines_in_cap,
    optimal_privunit,
    optimal_privunit_gaussian,
    paper_privunit,
    shares_along,
    with_cosine,
)
from skdp.local.randomisers.projunit import (
    ProjUnit,
    hadamard,
    make_rotation,
    projection_factor,
    projunit,
    smallest_projunit,
)
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers import _reference
from tests.randomisers._reference import error
from tests.randomisers._samples import (
    GivenBits,
    reports_of,
    rotated_to,
    variances_of,
    vector_of,
    worst_bias,
)

# Caps of the sphere: accuracy, inverse, mean, and the claims about them in print.


DIMS = [2, 3, 4, 5, 10, 39, 40, 43, 100, 1000, 10**4, 10**5, 10**6, 10**7]
COSINES = [1e-300, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.69, 0.71, 0.9, 1 - 1e-6, 1 - 2**-53]
#: cosines times the root of the dimension
WIDTHS = [0.1, 1.0, 2.0, 2.4, 2.5, 3.0, 5.0, 10.0, 100.0, 1000.0]


@pytest.mark.sample(2)
@pytest.mark.parametrize("d", DIMS)
def test_probabilities_are_accurate(d):
    cosines = COSINES + [w / math.sqrt(d) for w in WIDTHS if w * w < d]
    for cosine in cosines:
        found = log_cap(cosine, d)
        if found > -2e6:
            assert error(found, _reference.log_cap(cosine, d)) < CAP_ACCURACY, cosine


def test_the_reference_is_the_integral_of_the_density():
    for cosine, d in [(0.5, 100), (0.1, 7), (0.95, 12)]:
        a = mp.mpf(d - 1) / 2
        points = mp.linspace(mp.mpf(cosine), 1, 6)
        whole = mp.quad(lambda t, a=a: (1 - t * t) ** (a - 1), points) / mp.beta(a, 0.5)
        assert error(mp.log(whole), _reference.log_cap(cosine, d)) < 1e-13


@pytest.mark.parametrize(
    ("cosine", "d", "value"),
    [
        (0.5, 4, -1.632189224), (0.5, 10, -2.836109709), (0.5, 100, -16.79394158),
        (0.9, 784, -654.3220297), (0.1, 10**6, -5030.687109),
    ],
)  # fmt: skip
def test_anchors(cosine, d, value):
    assert_allclose(log_cap(cosine, d), value, rtol=1e-9)


@pytest.mark.parametrize("d", [2, 3, 10, 1000, 10**7])
def test_negative_cosines_make_the_rest_of_the_sphere(d):
    for cosine in [1e-12, 0.5 / math.sqrt(d), min(0.8, 2.0 / math.sqrt(d)), 0.99]:
        whole = math.exp(log_cap(cosine, d)) + math.exp(log_cap(-cosine, d))
        assert_allclose(whole, 1.0, rtol=1e-14)
    assert log_cap(-1.0, d) == 0.0
    assert log_cap(1.0, d) == -math.inf
    assert_allclose(log_cap(0.0, d), -math.log(2.0), rtol=1e-15)


def test_two_points_are_the_sphere_of_dimension_one():
    assert [log_cap(c, 1) for c in (-1.0, -0.5, 1.0)] == [0.0, -math.log(2), -math.log(2)]
    assert [cap_cosine(v, 1) for v in (0.0, -0.1, -0.7, -math.inf)] == [-1.0, -1.0, 1.0, 1.0]
    assert log_cap_mean(0.3, 1) == -math.log(2)
    assert log_cap_mean(-1.0, 1) == -math.inf


@pytest.mark.sample(6, 94)
@pytest.mark.parametrize("d", DIMS)
@pytest.mark.parametrize("value", [-1e-9, -0.1, -0.69, -0.7, -1.0, -20.0, -700.0, -1e4, -1e6])
def test_the_inverse(d, value):
    cosine = cap_cosine(value, d)
    assert -1.0 <= cosine <= 1.0
    if abs(cosine) < 1 - 1e-9:
        # the cosine can be told from its neighbours only so well
        slack = 4e-16 * d * cosine**2 / (1 - cosine**2)
        assert_allclose(log_cap(cosine, d), value, rtol=1e-13 + slack, atol=1e-15)


def test_the_ends_of_the_inverse():
    assert cap_cosine(0.0, 7) == -1.0
    assert cap_cosine(-math.inf, 7) == 1.0
    assert abs(cap_cosine(-math.log(2.0), 7)) < 1e-15


@pytest.mark.sample(1)
@pytest.mark.parametrize("d", [2, 3, 10, 101])
@pytest.mark.parametrize("cosine", [-0.4, 0.0, 0.2, 0.9])
def test_the_mean_is_an_integral(d, cosine):
    with mp.workdps(60):
        a = mp.mpf(d - 1) / 2
        # the sine as variable: no end is singular
        points = mp.linspace(mp.asin(cosine), mp.pi / 2, 12)
        mean = mp.quad(lambda y: mp.sin(y) * mp.cos(y) ** (2 * a - 1), points) / mp.beta(a, 0.5)
        assert_allclose(log_cap_mean(cosine, d), float(mp.log(mean)), rtol=1e-14)


def test_the_beta_function():
    for a in [0.5, 1.0, 5.5, 19.5, 20.0, 20.5, 1e3, 1e5, 3e6, 1e9]:
        with mp.workdps(60):
            wanted = mp.loggamma(a) + mp.loggamma(0.5) - mp.loggamma(mp.mpf(a) + 0.5)
            assert error(log_beta_half(a), wanted) < CAP_ACCURACY


def test_printed_bounds_on_caps():
    # Bhowmick et al. (2018), Lemma D.3: it holds from dimension 3 on, and not before
    def holds(d):
        x = np.linspace(1e-3, 1.0, 200, endpoint=False)
        return all(
            math.exp(log_cap(c, d)) >= 0.5 - c * math.sqrt((d - 1) / (2 * math.pi)) - 1e-15
            for c in x
        )

    assert all(holds(d) for d in (3, 4, 5, 10, 100))
    assert not holds(2)


@pytest.mark.parametrize("cosine", [math.nan, -1.1, 1.1, math.inf])
def test_bad_cosines(cosine):
    for function in (log_cap, log_cap_mean):
        with pytest.raises(ValueError, match=r"cosine must be in \[-1, 1\]"):
            function(cosine, 3)


@pytest.mark.parametrize("d", [0, -1, 2.5, math.nan, math.inf, True, "3", 10**9 + 1])
def test_bad_dimensions(d):
    for function in (log_cap, log_cap_mean, cap_cosine):
        with pytest.raises(ValueError, match="n_dims must be an integer from 1 to 10"):
            function(-0.5, d)


def test_bad_probabilities():
    for value in (0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="log_probability must be at most 0"):
            cap_cosine(value, 3)


# PrivUnit: its budget to sixty digits, its moments, and that its parameters are the best.


PRIVUNIT_DIMS = [1, 2, 3, 4, 10, 101, 1000, 10**5, 10**7]
BUDGETS = [1e-3, 0.01, 0.1, 1.0, 3.0, 8.0, 30.0, 40.0, 100.0, 700.0, 1e4, 1e5]
every_dim = pytest.mark.parametrize("d", PRIVUNIT_DIMS)

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


@pytest.mark.sample(8)
@pytest.mark.parametrize("anchor", ANCHORS, ids=lambda anchor: f"{anchor[0]}-{anchor[1]}")
def test_anchors_of_privunit(anchor):
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


@pytest.mark.sample(3)
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


@pytest.mark.sample(3)
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


# PrivUnitG, the limit of PrivUnit in high dimensions.


# budget: threshold, its inverse square, q, log-odds of p, p
LIMITS = {
    0.1: (0.039893, 628.366, 0.4841, 0.036, 0.5091),
    0.5: (0.199284, 25.180, 0.4210, 0.181, 0.5452),
    1: (0.397463, 6.33004, 0.3455, 0.361, 0.5893),
    2: (0.786480, 1.61668, 0.2158, 0.710, 0.6703),
    4: (1.515638, 0.435321, 0.0648, 1.331, 0.7909),
    8: (2.742945, 0.132913, 3.045e-3, 2.209, 0.9010),
    10: (3.260060, 0.094091, 5.57e-4, 2.508, 0.9247),
    16: (4.561326, 0.048064, 2.54e-6, 3.117, 0.9576),
    32: (7.091996, 0.019882, 6.6e-13, 3.955, 0.9812),
    64: (10.58092, 0.0089321, 1.83e-26, 4.735, 0.9913),
    100: (13.50961, 0.0054792, 6.9e-42, 5.218, 0.9946),
    500: (31.26501, 0.0010230, 7e-215, 6.887, 0.9990),
    1000: (44.44540, 0.00050623, None, 7.590, 0.9995),
}


def gaussian_log_tail(t):
    with mp.workdps(60):
        return mp.log(mp.erfc(mp.mpf(t) / mp.sqrt(2)) / 2)


@pytest.mark.parametrize("epsilon", LIMITS)
def test_table_of_limits(epsilon):
    t, inverse, q, odds, p = LIMITS[epsilon]
    found = optimal_privunit_gaussian(epsilon)
    assert_allclose(found.threshold, t, atol=5.1e-6, rtol=2e-6)
    assert_allclose(found.threshold**-2, inverse, rtol=1e-4)
    assert_allclose(found.p, p, atol=6e-5)
    assert_allclose(math.log(found.p / (1 - found.p)), odds, atol=6e-4)
    if q is None:
        assert_allclose(found.log_q, -992.4, atol=0.05)
    else:
        assert_allclose(math.exp(found.log_q), q, rtol=1e-2)
    # the limit of the sphere
    assert_allclose(found.threshold, optimal_privunit(epsilon, 10**7).cosine * 10**3.5, rtol=1e-4)


def test_the_budget_is_never_more_than_asked_for():
    for epsilon in (1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6):
        found = optimal_privunit_gaussian(epsilon)
        log_q = gaussian_log_tail(found.threshold)
        assert error(found.log_q, log_q) < CAP_ACCURACY
        spent = _reference.budget(found.p, log_q)
        assert spent <= found.epsilon <= epsilon
        assert found.epsilon - spent <= 1e-13 * (1 + epsilon)
        assert_allclose(found.threshold, found.scale, rtol=1e-7)


def test_tails_are_accurate():
    for t in (0.0, 1e-9, 0.1, 1.0, 5.0, 40.0, 1000.0):
        assert error(PrivUnitG(t, 0.9).log_q, gaussian_log_tail(t)) < CAP_ACCURACY


@pytest.mark.sample(2)
@pytest.mark.parametrize(("t", "p"), [(0.0, 0.7), (1.0, 0.6), (2.0, 0.9)])
def test_moments_are_integrals(t, p):
    found, q = PrivUnitG(t, p), mp.exp(gaussian_log_tail(t))

    def moment(order):
        def part(*ends):
            return mp.quad(lambda x: x**order * mp.npdf(x), ends)

        return p / q * part(t, 10, mp.inf) + (1 - p) / (1 - q) * part(-mp.inf, -10, 0, t)

    m, second = float(moment(1)), float(moment(2))
    assert_allclose(found.scale, m, rtol=1e-12)
    assert_allclose(found.noise_variance, 1 / m**2, rtol=1e-12)
    for d in (1, 7, 100):
        wanted = (d - 1) / m**2 + second / m**2 - 1
        assert_allclose(found.mean_squared_error(d), wanted, rtol=1e-10)


def test_what_it_costs_in_finite_dimensions():
    for d, epsilon, wanted in [
        (10**6, 32, 1.0000), (10**4, 16, 1.001), (10**4, 64, 1.0057), (500, 8, 1.009),
        (500, 64, 1.12), (100, 16, 1.117), (100, 64, 1.85),
    ]:  # fmt: skip
        ratio = optimal_privunit_gaussian(epsilon).mean_squared_error(d)
        ratio /= optimal_privunit(epsilon, d).mean_squared_error
        assert_allclose(ratio, wanted, atol=6e-4 if wanted < 1.1 else 6e-3)


def test_bad_input():
    for t in (-0.1, math.nan, 1e6):
        with pytest.raises(ValueError, match="threshold must be from 0 to 1e5"):
            PrivUnitG(t, 0.9)
    for p in (0.4, 1.0, math.nan):
        with pytest.raises(ValueError, match="p must be below 1 and above the tail"):
            PrivUnitG(0.0, p)
    with pytest.raises(ValueError, match="epsilon must be"):
        optimal_privunit_gaussian(0.0)


# What the paper chooses for PrivUnit, what it costs, and where its conditions are wrong.


PAPER_BUDGETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# mean squared errors over the least one, in dimension 10^4
RATIOS = {
    "paper": (1.178, 1.731, 2.000, 2.373, 2.669, 2.606, 2.184, 1.591, 1.151, 1.009),
    "exact": (1.048, 1.175, 1.533, 2.105, 2.517, 2.532, 2.153, 1.579, 1.147, 1.007),
    "fair coin": (1.050, 1.186, 1.576, 2.251, 2.904, 3.365, 3.663, 3.863, 4.034, 4.250),
}


def made(rule, epsilon, d):
    if rule == "paper":
        return paper_privunit(0.99 * epsilon, 0.01 * epsilon, d)
    if rule == "exact":
        return paper_privunit(0.99 * epsilon, 0.01 * epsilon, d, "exact")
    return PrivUnit(d, cap_cosine(-epsilon - math.log1p(math.exp(-epsilon)), d), 0.5)


def ratio(found, epsilon, d):
    return found.mean_squared_error / optimal_privunit(epsilon, d).mean_squared_error


@pytest.mark.parametrize("rule", RATIOS)
def test_what_other_parameters_cost(rule):
    for epsilon, wanted in zip(PAPER_BUDGETS, RATIOS[rule], strict=True):
        assert_allclose(ratio(made(rule, epsilon, 10**4), epsilon, 10**4), wanted, atol=5.1e-4)


def test_what_the_split_of_the_simulations_costs():
    # 13/16 for the cap and 1/16 for the coin, against all 14/16 spent well
    wanted = (1.106, 1.421, 1.763, 1.716, 1.520, 1.185, 1.022, 1.026, 1.049, 1.063)
    for epsilon, value in zip(PAPER_BUDGETS, wanted, strict=True):
        found = paper_privunit(13 * epsilon / 16, epsilon / 16, 10**4)
        assert_allclose(ratio(found, 14 * epsilon / 16, 10**4), value, atol=5.1e-4)


def test_small_dimensions_suffer_more():
    for d, epsilon, wanted in [(5, 4, 3.26), (5, 8, 11.3), (5, 16, 157), (100, 128, 7.7)]:
        assert_allclose(ratio(made("paper", epsilon, d), epsilon, d), wanted, rtol=6e-3)


# dimension, budget: cosine, p as printed, length of reports, of the best ones, ratio of errors
TABLE = [
    (3274634, 500, 0.01729, 0.993, 58.15, 57.88, 1.009),  # printed: p = 1.0
    (3274634, 250, 0.01217, 0.924, 88.71, 82.63, 1.153),
    (3274634, 100, 0.00760, 0.731, 179.04, 133.95, 1.786),
    (3274634, 50, 0.00527, 0.622, 301.66, 196.54, 2.356),  # printed: cosine 0.00526
    (1068298, 5000, 0.09598, 1.0, 10.42, 10.38, 1.008),
    (1068298, 1000, 0.04291, 1.0, 23.29, 23.27, 1.002),
    (1068298, 500, 0.03027, 0.993, 33.22, 33.07, 1.009),
    (1068298, 100, 0.01331, 0.731, 102.26, 76.51, 1.787),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_table_one(row):
    # Bhowmick et al. (2018), Table 1, with its two misprints mended
    d, epsilon, cosine, p, length, best, wanted = row
    found = paper_privunit(0.99 * epsilon, 0.01 * epsilon, d)
    assert round(found.cosine, 5) == cosine
    assert round(found.p, 3) == p
    assert_allclose(1 / found.scale, length, atol=6e-3)
    assert_allclose(1 / optimal_privunit(epsilon, d).cosine, best, atol=6e-3)
    assert_allclose(ratio(found, epsilon, d), wanted, atol=6e-4)
    # all are 16b at their budgets, and spend less than they claim
    assert found.cosine == paper_privunit(0.99 * epsilon, 0.01 * epsilon, d, "16b").cosine
    assert found.epsilon < epsilon


def test_equivalent_best_budgets():
    for d, epsilon, wanted in [(3274634, 50, 24.4), (3274634, 100, 59.0), (1068298, 100, 59.0)]:
        mse = paper_privunit(0.99 * epsilon, 0.01 * epsilon, d).mean_squared_error
        below = optimal_privunit(wanted - 0.06, d).mean_squared_error
        above = optimal_privunit(wanted + 0.06, d).mean_squared_error
        assert above < mse < below


def test_condition_16a_is_false_in_dimension_two():
    claimed = 1.976
    found = paper_privunit(claimed, 1e-9, 2, "16a")
    assert_allclose(found.cosine, 0.948, atol=5e-4)
    spent = float(_reference.budget(found.p, _reference.log_cap(found.cosine, 2)))
    assert_allclose(spent, 2.164, atol=2e-3)
    assert found.epsilon >= spent > claimed
    with pytest.raises(ValueError, match="gives no cosine below 1"):
        paper_privunit(5.0, 1.0, 2, "16a")


@pytest.mark.parametrize("d", [3, 4, 5, 10, 29, 100, 10**5])
@pytest.mark.parametrize("condition", ["16a", "16b", "16", "exact"])
def test_the_conditions_hold_from_dimension_three_on(d, condition):
    for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0):
        try:
            found = paper_privunit(epsilon, 0.5, d, condition)
        except ValueError:
            # small budgets leave nothing by 16b, large ones no sphere by 16a
            assert condition == "16b" or (condition == "16a" and d == 3)
            continue
        assert found.epsilon <= epsilon + 0.5 + 1e-10


def test_bad_input_of_the_paper_s_privunit():
    with pytest.raises(ValueError, match="condition must be one of"):
        paper_privunit(1.0, 1.0, 3, "17")
    with pytest.raises(ValueError, match="n_dims must be an integer from 2"):
        paper_privunit(1.0, 1.0, 1)
    with pytest.raises(ValueError, match="epsilon must be"):
        paper_privunit(1.0, math.nan, 3)


# ProjUnit: its factor, its error, and how short its reports can be.


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


@pytest.mark.sample(1)
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


@pytest.mark.full
def test_errors_fall_with_what_is_kept():
    for epsilon in (0.1, 3.0, 50.0):
        errors = [projunit(epsilon, 300, k).mean_squared_error for k in range(1, 301)]
        assert (np.diff(errors) <= 1e-9 * np.array(errors[1:])).all()


def test_bad_input_of_projections():
    for k in (0, 11, 2.5):
        with pytest.raises(ValueError, match="n_kept must be an integer from 1 to 10"):
            projunit(1.0, 10, k)
    for loss in (-0.1, math.nan):
        with pytest.raises(ValueError, match="loss must be at least 0"):
            smallest_projunit(1.0, 10, loss)
    with pytest.raises(ValueError, match="n_dims must be an integer"):
        projection_factor(0, 1)


# Cosines of reports have the law of a coordinate of a uniform vector, on either side.


COSINE_BUDGETS = [1e-3, 0.5, 4.0, 16.0, 500.0, 1e4]
COSINE_DIMS = [2, 3, 5, 10, 1000, 10**6]
N = 1500


def log_tails(cosines, rests, n_dims):
    """Return logarithms of the probabilities of the caps beyond cosines of at least 0."""
    pairs = zip(cosines.tolist(), rests.tolist(), strict=True)
    return np.array([log_tail(t * t, math.log(x), n_dims) for t, x in pairs])


def levels_in_cap(unit, cosines, rests):
    return np.exp(log_tails(cosines, rests, unit.n_dims) - unit.log_q)


def levels_beyond(unit, cosines, rests):
    tails, rest = np.exp(log_tails(np.abs(cosines), rests, unit.n_dims)), -math.expm1(unit.log_q)
    return np.where(cosines < 0.0, tails, 1.0 - tails) / rest


def uniform_p_value(levels):
    assert levels.min() >= 0.0
    assert levels.max() <= 1.0 + 1e-9
    return stats.kstest(levels, "uniform").pvalue


@pytest.mark.sample(3)
@pytest.mark.parametrize("n_dims", COSINE_DIMS)
@pytest.mark.parametrize("epsilon", COSINE_BUDGETS)
def test_the_law_on_both_sides(n_dims, epsilon):
    unit, bits = optimal_privunit(epsilon, n_dims), SeededBits(3, f"{n_dims} {epsilon}")
    assert uniform_p_value(levels_in_cap(unit, *cosines_in_cap(unit, N, bits))) > 1e-4
    assert uniform_p_value(levels_beyond(unit, *cosines_beyond(unit, N, bits))) > 1e-4


@pytest.mark.sample(3)
@pytest.mark.parametrize("n_dims", [2, 3, 50, 10**9])
@pytest.mark.parametrize("far", [0.0, 0.3, 0.99, 1.01, 3.0])
def test_both_ways_agree_where_they_meet(n_dims, far):
    cosine = min(far / math.sqrt(n_dims), 0.9)
    unit, bits = PrivUnit(n_dims, cosine, 0.9), SeededBits(4, f"{n_dims} {far}")
    assert uniform_p_value(levels_in_cap(unit, *cosines_in_cap(unit, N, bits))) > 1e-4
    assert uniform_p_value(levels_beyond(unit, *cosines_beyond(unit, N, bits))) > 1e-4


@pytest.mark.parametrize("n_dims", [1, *COSINE_DIMS])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
def test_sides_and_rests(n_dims, epsilon):
    unit = optimal_privunit(epsilon, n_dims)
    cosines, rests = cap_cosines(unit, 4000, SeededBits(5))
    inside = cosines >= unit.cosine * (1 - 1e-12)
    expected = 4000 * unit.p
    assert abs(inside.sum() - expected) <= 4 * math.sqrt(expected * (1 - unit.p)) + 1e-9
    # one is not the other's difference, but close to it
    np.testing.assert_allclose(cosines**2 + rests, 1.0, rtol=1e-12)
    assert (rests >= 0.0).all()
    assert n_dims == 1 or (rests > 0.0).all()


def test_small_rests_are_accurate():
    unit = optimal_privunit(1e4, 3)
    # 1 - t^2 is uniform below 1 - c^2 in dimension 3, where all cosines are 1 as floats
    rests = cosines_in_cap(unit, N, SeededBits(6))[1]
    limit = (1.0 - unit.cosine) * (1.0 + unit.cosine)
    assert stats.kstest(rests / limit, "beta", (1.0, 1.0)).pvalue > 1e-4
    assert len(np.unique(rests)) == N


def test_the_numbers_asked_for():
    unit = optimal_privunit(2.0, 7)
    for size in (0, 1, 5):
        assert [part.shape for part in cap_cosines(unit, size, SeededBits(0))] == [(size,)] * 2


# Reports by PrivUnit and PrivUnitG: their means, variances and lengths.


UNIT_N = 60_000
CASES = [
    optimal_privunit(2.0, 1), optimal_privunit(2.0, 2), optimal_privunit(1.0, 3),
    optimal_privunit(4.0, 10), PrivUnit(10, 0.4, 0.6), PrivUnit(10, 0.05, 0.9),
    optimal_privunit(30.0, 10),
]  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("unit", CASES)
def test_mean_variances_and_length(unit):
    u = vector_of(unit.n_dims)
    reports = reports_of(unit, u, UNIT_N)
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
    monkeypatch.setattr(base, "CHUNK", chunk)
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


@pytest.mark.sample(2)
@pytest.mark.parametrize("gaussian", GAUSSIANS)
@pytest.mark.parametrize("n_dims", [1, 2, 12])
def test_moments_of_the_gaussian_kind(gaussian, n_dims):
    u = vector_of(n_dims)
    reports = reports_of(gaussian, u, UNIT_N)
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("n_dims", [1, 3])
def test_gaussian_rows_without_direction(n_dims):
    gaussian = optimal_privunit_gaussian(6.0)
    reports = reports_of(gaussian, np.zeros(n_dims), UNIT_N)
    assert worst_bias(reports, np.zeros(n_dims)) < 4.0
    lengths = np.linalg.norm(reports, axis=1)
    given = np.linalg.norm(reports_of(gaussian, vector_of(n_dims), UNIT_N, seed=1), axis=1)
    assert stats.ks_2samp(lengths, given).pvalue > 1e-4


# Reports by ProjUnit, back in all entries.


HAAR = [projunit(4.0, 1, 1), projunit(4.0, 6, 6), projunit(4.0, 6, 2), projunit(4.0, 12, 5)]


def reports_by_many_rotations(projected, vector, n_calls, n_rows=4):
    rows, bits = np.tile(vector, (n_rows, 1)), SeededBits(5)
    return np.concatenate([projected.report(rows, bits) for _ in range(n_calls)])


@pytest.mark.full
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
    rotation = make_rotation(projected, SeededBits(1))
    eye = np.eye(projected.n_rotated)
    matrix = rotation.there(eye)
    np.testing.assert_allclose(matrix @ matrix.T, eye, atol=1e-12)
    np.testing.assert_allclose(rotation.back(matrix), eye, atol=1e-12)


@pytest.mark.full
def test_haar_rotations_are_uniform():
    bits, projected = SeededBits(2), projunit(4.0, 3, 1)
    entries = [make_rotation(projected, bits).there(np.eye(3))[:2, :2] for _ in range(4000)]
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


@pytest.mark.full
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


# Reports of vectors in the ball have the right means and variances, whatever their norm.


BALLS = [
    lift(3.0, 1), lift(3.0, 6), Lift(PrivUnit(7, 0.3, 0.8)),
    flip(3.0, 1), flip(3.0, 6), Flip(PrivUnit(6, 0.3, 0.8)),
    product(6.0, 1, 2.0, 3), product(6.0, 6, 2.0, 3),
    Lift(optimal_privunit_gaussian(3.0, 7)), Flip(optimal_privunit_gaussian(3.0, 6)),
]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("norm", [0.0, 1 / 3, 1.0])
def test_moments_in_the_ball(ball, norm):
    w = vector_of(ball.n_dims, norm) if norm else np.zeros(ball.n_dims)
    reports = reports_of(ball, w, UNIT_N)
    assert reports.shape == (UNIT_N, ball.size)
    assert worst_bias(reports, w) < 4.0
    along, across = ball.variances(norm)
    direction = w if norm else vector_of(ball.n_dims)
    squares = ((reports - w) @ rotated_to(direction).T) ** 2
    expected = np.full(ball.n_dims, across)
    expected[0] = along
    if norm == 0.0:
        # the direction is a fresh one, so the noise is the same in all
        expected[:] = ball.mean_squared_error(0.0) / ball.n_dims
    # constant squares have no standard error
    assert worst_bias(squares, expected) < 4.0 or np.allclose(squares.mean(axis=0), expected)
    errors = np.sum((reports - w) ** 2, axis=1)
    assert errors.mean() == pytest.approx(ball.mean_squared_error(norm), rel=0.02)
    assert np.abs(reports).max() <= ball.bound


@pytest.mark.parametrize("ball", BALLS)
def test_longer_rows_are_scaled_down(ball):
    w = vector_of(ball.n_dims)
    made = [
        ball.report(np.tile(length * w, (30, 1)), SeededBits(2)) for length in (1.0, 3.0, 1e200)
    ]
    np.testing.assert_allclose(made[1], made[0], atol=1e-6)
    np.testing.assert_allclose(made[2], made[0], atol=1e-6)


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_count_as_zero(ball, value):
    zero = np.zeros((30, ball.n_dims))
    odd = zero.copy()
    odd[:, 0] = value
    made = ball.report(odd, SeededBits(2)), ball.report(zero, SeededBits(2))
    np.testing.assert_array_equal(*made)


def test_lifted_rows_have_length_one():
    rows = np.array([[0.0, 0.0], [0.3, -0.4], [3.0, 4.0], [1e-300, 0.0], [1.7e308, 1.7e308]])
    made = lifted(rows)
    np.testing.assert_allclose(np.linalg.norm(made[:4], axis=1), 1.0)
    np.testing.assert_allclose(made[1], [0.3, -0.4, np.sqrt(0.75)])
    np.testing.assert_allclose(made[2], [0.6, 0.8, 0.0])
    np.testing.assert_allclose(made[4], [np.sqrt(0.5), np.sqrt(0.5), 0.0])


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("size", [1e-300, 1e300, 1e308])
def test_all_sizes_give_finite_reports(ball, size):
    made = ball.report(np.full((20, ball.n_dims), size), SeededBits(3), 2)
    assert np.isfinite(made).all()
    assert np.abs(made).max() <= ball.bound
