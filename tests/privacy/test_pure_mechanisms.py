# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""K-norm noise and temperatures: what the exact formulas need, on a public grid."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdp.privacy import ExponentialMechanism, KNormMechanism, Sensitivity
from skdp.privacy.kernel.mechanisms import add_noise, align
from skdp.privacy.kernel.samplers import SeededBits, SystemBits

mp = mpmath.mp.clone()
mp.dps = 50
prices = st.floats(1e-6, 1e3)
scales = st.floats(1e-30, 1e30)
MECHANISMS = {"k-norm": KNormMechanism, "exponential": ExponentialMechanism}
both = pytest.mark.parametrize("law", MECHANISMS)


def calibrate(law, price, stated=1.0, bound=1.0, size=1):
    """Calibrate to the fact that the law needs; traps stand in the other ones."""
    facts = {"l1": math.inf, "l2": math.inf, "spread": math.inf}
    facts["l2" if law == "k-norm" else "spread"] = stated
    return MECHANISMS[law](price).calibrate(Sensitivity(bound=bound, theorem="test", **facts), size)


@both
@given(price=prices, stated=scales, bound=scales, size=st.integers(1, 10**6))
def test_the_scale_is_what_the_exact_formula_needs(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    paid = mp.mpf(stated) * (1 + mp.mpf("1e-6"))
    if law == "k-norm":
        # rounding moves the vector by at most half a step in every coordinate, twice
        paid += noise.grid * mp.sqrt(size)
    needed = paid / mp.mpf(price)
    assert needed <= noise.scale <= needed * (1 + mp.mpf("3e-14"))
    assert noise.sensitivity == pytest.approx(float(paid), rel=1e-15)
    assert (noise.law, noise.mu, noise.epsilon, noise.delta) == (law, 0.0, price, 0.0)


@both
@given(price=prices, stated=scales, bound=scales, size=st.integers(1, 10**6))
def test_the_grid_is_a_power_of_two_and_exact(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    assert math.frexp(noise.grid)[0] == 0.5
    assert bound / noise.grid < 2.0**52
    if law == "exponential":
        # the last digits of a float draw are cut off, whatever the scores are
        assert 2.0**31 < bound / noise.grid <= 2.0**32
        assert noise.grid == calibrate(law, 1.0, 1.0, bound, 1).grid


@both
@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_facts_that_are_not_positive_and_finite_are_refused(law, bad):
    for stated, bound in ((bad, 1.0), (1.0, bad)):
        with pytest.raises(ValueError, match=r"must state a .*finite"):
            calibrate(law, 1.0, stated, bound)


@both
@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan, True, "1", None])
def test_a_price_that_is_not_positive_and_finite_is_refused(law, bad):
    with pytest.raises(ValueError, match=r"epsilon must be .*finite.* greater than 0"):
        MECHANISMS[law](bad)


@both
def test_what_is_calibrated_is_frozen(law):
    with pytest.raises(dataclasses.FrozenInstanceError):
        calibrate(law, 1.0).scale = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        MECHANISMS[law](1.0).epsilon = 2.0


@pytest.mark.covering
@pytest.mark.parametrize("bits", [SeededBits(4), SystemBits()], ids=type)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_k_norm_noise_has_the_declared_scale_and_law(bits, size):
    noise = calibrate("k-norm", 0.7, size=size)
    drawn = [(add_noise(np.full(size, 0.25), noise, bits) - 0.25) for _ in range(3000)]
    lengths = np.linalg.norm(drawn, axis=1) / noise.scale
    assert stats.kstest(lengths, stats.gamma(size).cdf).pvalue > 1e-6
    assert np.abs(np.mean(drawn, axis=0)).max() < 6 * np.std(drawn) / math.sqrt(3000)


def test_k_norm_draws_are_clamped_statistics_on_the_grid():
    noise = calibrate("k-norm", 1.0, 1.0, 2.0, 6)
    broken = np.array([np.nan, np.inf, -np.inf, 1e308, -3.0, 2.0])
    mended = np.array([0.0, 2.0, -2.0, 2.0, -2.0, 2.0])
    np.testing.assert_array_equal(align(broken, noise) * noise.grid, mended)
    released = [add_noise(values, noise, SeededBits(2)) for values in (broken, mended)]
    np.testing.assert_array_equal(*released)
    steps = released[0] / noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("size", [1, 10**4, 10**8])
@pytest.mark.parametrize("price", [1e-10, 1e-6, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("bound", [1.0, 1e12])
def test_k_norm_noise_that_is_calibrated_can_be_drawn(size, price, bound):
    # a scale that the sampler refuses would fail after the release has been charged
    try:
        noise = calibrate("k-norm", price, 1.0, bound, size)
    except ValueError as error:
        refusal = str(error)
    else:
        assert 0 < noise.scale / noise.grid <= 2.0**40
        assert np.isfinite(add_noise(np.zeros(2), noise, SeededBits(0))).all()
        return
    assert "leaves the range of floating point" in refusal
