# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Caps of the sphere: accuracy, inverse, mean, and the claims about them in print."""

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.local.randomisers.caps import (
    CAP_ACCURACY,
    cap_cosine,
    log_beta_half,
    log_cap,
    log_cap_mean,
)
from tests.randomisers import _reference
from tests.randomisers._reference import error

DIMS = [2, 3, 4, 5, 10, 39, 40, 43, 100, 1000, 10**4, 10**5, 10**6, 10**7]
COSINES = [1e-300, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.69, 0.71, 0.9, 1 - 1e-6, 1 - 2**-53]
#: cosines times the root of the dimension
WIDTHS = [0.1, 1.0, 2.0, 2.4, 2.5, 3.0, 5.0, 10.0, 100.0, 1000.0]


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


@pytest.mark.covering
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
