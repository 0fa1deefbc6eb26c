# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnitG, the limit of PrivUnit in high dimensions."""

import math

import mpmath as mp
import pytest
from numpy.testing import assert_allclose

from skdp.local.randomisers.caps import CAP_ACCURACY
from skdp.local.randomisers.privunit import optimal_privunit
from skdp.local.randomisers.privunit_gaussian import PrivUnitG, optimal_privunit_gaussian
from tests.randomisers import _reference
from tests.randomisers._reference import error

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


def log_tail(t):
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
        log_q = log_tail(found.threshold)
        assert error(found.log_q, log_q) < CAP_ACCURACY
        spent = _reference.budget(found.p, log_q)
        assert spent <= found.epsilon <= epsilon
        assert found.epsilon - spent <= 1e-13 * (1 + epsilon)
        assert_allclose(found.threshold, found.scale, rtol=1e-7)


def test_tails_are_accurate():
    for t in (0.0, 1e-9, 0.1, 1.0, 5.0, 40.0, 1000.0):
        assert error(PrivUnitG(t, 0.9).log_q, log_tail(t)) < CAP_ACCURACY


@pytest.mark.parametrize(("t", "p"), [(0.0, 0.7), (1.0, 0.6), (2.0, 0.9)])
def test_moments_are_integrals(t, p):
    found, q = PrivUnitG(t, p), mp.exp(log_tail(t))

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
