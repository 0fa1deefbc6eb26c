# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""From a pure epsilon to a Gaussian-DP parameter and back: rounded outward at any size."""

import math
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp import PrivacyBudget
from skdp.privacy.kernel.accounting import pure_mu
from skdp.privacy.laws.calibration import pure_epsilon

mp = mpmath.mp.clone()
mp.dps = 60
# around the change of formulas, where scipy's inverse is worst, and the ends of floats
MUS = [5e-324, 1e-310, 1e-300, 1e-12, 1e-3, 1.9999999, 2.0, 37.5, 1583.3, 1e8, 1e150, 1.8e308]


def exact_epsilon(mu):
    """Return the epsilon whose Gaussian-DP parameter is mu."""
    mu = mp.mpf(mu)
    if mu < 1:
        return 2 * mp.atanh(mp.erf(mu / mp.sqrt(8)))
    return mp.log(mp.erfc(-mu / mp.sqrt(8)) / mp.erfc(mu / mp.sqrt(8)))


@given(st.floats(0, sys.float_info.max) | st.floats(0, 100) | st.sampled_from(MUS))
def test_the_inverse_never_exceeds(mu):
    epsilon = pure_epsilon(mu)
    assert 0 <= epsilon <= sys.float_info.max
    assert pure_mu(epsilon) <= mu


@pytest.mark.parametrize("mu", [mu for mu in MUS if 1e-299 < mu < 1e6] + [0.3, 5.0, 254.0])
def test_both_ways_lose_little(mu):
    lost = mp.mpf(pure_epsilon(mu)) / exact_epsilon(mu) - 1
    assert -3e-12 <= lost <= -5e-13
    assert 1 <= pure_mu(float(exact_epsilon(mu))) / mu <= 1 + 1e-12


def test_a_price_that_is_not_nothing_has_a_parameter_that_is_not():
    assert pure_mu(0.0) == pure_epsilon(0.0) == 0.0
    assert pure_mu(5e-324) > 0
    assert pure_epsilon(math.inf) < math.inf


@pytest.mark.parametrize("spent", [0.0, 1e-9, 0.3, 0.49])
def test_what_a_gaussian_budget_has_left_can_be_charged(spent):
    budget = PrivacyBudget(0.5, 1e-6, composition="gaussian")
    if spent:
        budget.charge(spent / 10, adjacency="replace-one")
    left = budget.remaining[0]
    assert pure_mu(left) < np.sqrt(float(budget._limits[0]))
    budget.charge(left, adjacency="replace-one")
    assert budget.remaining[0] < 1e-4 * left
