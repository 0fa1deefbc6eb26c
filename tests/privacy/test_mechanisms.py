# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms: the noise is what was paid for, on a public grid, whatever the statistic."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdp.privacy import GaussianMechanism, LaplaceMechanism, Sensitivity, gdp_mu
from skdp.privacy.kernel.mechanisms import add_noise, align
from skdp.privacy.kernel.samplers import SeededBits, SystemBits

mp = mpmath.mp.clone()
mp.dps = 50
MECHANISMS = {"gaussian": GaussianMechanism, "laplace": LaplaceMechanism}
both_laws = pytest.mark.parametrize("law", MECHANISMS)
prices = st.floats(1e-6, 1e3)
scales = st.floats(1e-30, 1e30)
sizes = st.integers(1, 10**6)


def calibrate(law, price, stated=1.0, bound=1.0, size=1):
    """Calibrate to the norm that the law needs; a trap stands in the other one."""
    l1, l2 = (math.inf, stated) if law == "gaussian" else (stated, math.inf)
    sensitivity = Sensitivity(l1=l1, l2=l2, bound=bound, theorem="test")
    return MECHANISMS[law](price).calibrate(sensitivity, size)


def price_of(noise):
    return noise.mu if noise.law == "gaussian" else noise.epsilon


def exactly_paid(noise, stated, size):
    rounding = mp.sqrt(size) if noise.law == "gaussian" else mp.mpf(size)
    return mp.mpf(stated) * (1 + mp.mpf("1e-6")) + noise.grid * rounding


@both_laws
@given(price=prices, stated=scales, bound=scales, size=sizes)
def test_the_noise_is_what_the_exact_formula_needs(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    needed = exactly_paid(noise, stated, size) / mp.mpf(price)
    assert needed <= noise.scale <= needed * (1 + mp.mpf("3e-14"))


@both_laws
@given(price=prices, stated=scales, bound=scales, size=sizes)
def test_scale_times_price_is_the_sensitivity_paid_for(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    assert noise.sensitivity == pytest.approx(float(exactly_paid(noise, stated, size)), rel=1e-15)
    # the recorded price is never below what scale and sensitivity say
    assert mp.mpf(price_of(noise)) >= mp.mpf(noise.sensitivity) / mp.mpf(noise.scale)
    assert price_of(noise) == pytest.approx(price, rel=1e-13)


@both_laws
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_a_price_of_any_float_type_is_computed_with_in_double_precision(law, kind):
    price = kind(0.3)
    noise = calibrate(law, price, 1e5, 1e5, 7)
    assert noise == calibrate(law, float(price), 1e5, 1e5, 7)
    assert all(isinstance(x, float) for x in (noise.scale, noise.mu, noise.epsilon))


@both_laws
@given(price=prices, stated=scales, bound=scales, size=sizes)
def test_the_grid_is_a_power_of_two_fine_enough_and_exact(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    assert math.frexp(noise.grid)[0] == 0.5
    assert bound / noise.grid < 2.0**52
    # finer than the noise by 2^23, unless exactness needs a coarser one
    smallest_exact = bound * 2.0**-51
    assert noise.grid <= max(noise.scale * 2.0**-23, 2 * smallest_exact)


@both_laws
def test_a_moderate_bound_leaves_the_grid_at_the_noise_scale(law):
    noise = calibrate(law, 0.5, 1.0, 1e6)
    assert noise.scale * 2.0**-25 < noise.grid <= noise.scale * 2.0**-23
    assert noise.scale == pytest.approx(2.0, rel=2e-6)


@both_laws
def test_a_huge_bound_coarsens_the_grid_and_is_paid_for(law):
    noise = calibrate(law, 1.0, 1.0, 1e20, size=9)
    assert noise.grid > 1e4
    assert noise.sensitivity > noise.grid * (3 if law == "gaussian" else 9)
    steps = align(np.array([1e300, -1e300, 1e20, 5e19]), noise)
    assert np.abs(steps).max() < 2.0**52
    released = add_noise(np.full(9, 1e20), noise, SeededBits(0))
    np.testing.assert_allclose(released, 1e20, atol=50 * noise.scale)


@both_laws
@given(price=st.floats(1e-3, 100), bound=scales, value=st.floats(allow_nan=True))
def test_outputs_are_finite_multiples_of_the_grid(law, price, bound, value):
    noise = calibrate(law, price, 1.0, bound, 3)
    released = add_noise(np.array([value, 0.0, -value]), noise, SeededBits(1))
    assert released.dtype == np.float64
    steps = released / noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.abs(released).max() <= bound * (1 + 1e-9) + 60 * noise.scale + noise.grid


@both_laws
def test_statistics_beyond_the_bound_are_clamped_and_nan_counts_as_zero(law):
    noise = calibrate(law, 1.0, 1.0, 2.0)
    broken = np.array([np.nan, np.inf, -np.inf, 1e308, -3.0, 2.0])
    mended = np.array([0.0, 2.0, -2.0, 2.0, -2.0, 2.0])
    np.testing.assert_array_equal(align(broken, noise) * noise.grid, mended)
    released = [add_noise(values, noise, SeededBits(2)) for values in (broken, mended)]
    np.testing.assert_array_equal(*released)


@both_laws
@given(st.floats(-3, 3), st.floats(-3, 3))
def test_alignment_moves_values_by_half_a_step_and_no_two_apart_by_more(law, x, y):
    noise = calibrate(law, 1.0, 1.0, 2.0)
    a, b = align(np.array([x, y]), noise) * noise.grid
    assert abs(a - b) <= abs(x - y) + noise.grid
    assert abs(a - np.clip(x, -2, 2)) <= noise.grid / 2


@both_laws
def test_the_statistic_is_not_changed_in_place(law):
    values = np.array([np.nan, 5.0])
    add_noise(values, calibrate(law, 1.0), SeededBits(3))
    np.testing.assert_array_equal(values, [np.nan, 5.0])


@both_laws
@pytest.mark.parametrize("bits", [SeededBits(4), SystemBits()], ids=type)
@pytest.mark.parametrize("bound", [1.0, 1e10])
def test_the_noise_has_the_declared_scale_and_law(law, bits, bound):
    n = 400_000
    noise = calibrate(law, 0.7, 1.0, bound)
    drawn = (add_noise(np.full(n, 0.25), noise, bits) - 0.25) / noise.scale
    if law == "gaussian":
        p_value = stats.chi2(n).cdf(np.sum(drawn**2))
    else:
        p_value = stats.gamma(n).cdf(np.sum(np.abs(drawn)))
    # the scale is known to 0.16 % (one standard error); false alarms once in 10^9
    assert 5e-10 < p_value < 1 - 5e-10
    assert abs(drawn.mean()) < 6 * drawn.std() / math.sqrt(n)


@both_laws
def test_coordinates_and_calls_get_fresh_noise(law):
    noise, bits = calibrate(law, 1.0, size=1000), SystemBits()
    first, second = (add_noise(np.zeros(1000), noise, bits) for _ in range(2))
    assert np.unique(first).size > 990
    assert np.count_nonzero(first == second) < 10
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / math.sqrt(1000)


@both_laws
@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_sensitivity_or_bound_that_is_not_positive_and_finite_is_refused(law, bad):
    for stated, bound in ((bad, 1.0), (1.0, bad)):
        with pytest.raises(ValueError, match="must state a positive finite sensitivity and bound"):
            calibrate(law, 1.0, stated, bound)


@both_laws
def test_a_statistic_without_coordinates_is_refused(law):
    with pytest.raises(ValueError, match="at least one coordinate"):
        calibrate(law, 1.0, size=0)


@both_laws
@pytest.mark.parametrize("bad", [0, 0.0, -1.0, math.inf, math.nan])
def test_a_price_that_is_not_positive_and_finite_is_refused(law, bad):
    with pytest.raises(ValueError, match=r"must be .*finite.* greater than 0"):
        MECHANISMS[law](bad)


EXTREMES = [
    (1e-200, 1e-200, 1.0), (1e200, 1e200, 1.0), (1e-200, 1e200, 1.0), (1e200, 1e-200, 1.0),
    (1e-200, 1.0, 1e200), (1e200, 1.0, 1e-200), (1e-200, 1e-200, 1e200), (1e300, 1e308, 1e-9),
    (5e-324, 5e-324, 1.0), (1.0, 5e-324, 1e300), (1e308, 1e308, 1e308), (1.7e308, 1.0, 1e-300),
]  # fmt: skip


def noise_or_refusal(*arguments):
    try:
        return calibrate(*arguments)
    except ValueError as refusal:
        return str(refusal)


@both_laws
@pytest.mark.parametrize(("stated", "bound", "price"), EXTREMES)
def test_extreme_scales_work_or_are_refused_clearly(law, stated, bound, price):
    noise = noise_or_refusal(law, price, stated, bound, 2)
    if isinstance(noise, str):
        assert "leaves the range of floating point" in noise
    else:
        assert exactly_paid(noise, stated, 2) / mp.mpf(price) <= noise.scale < math.inf
        assert np.isfinite(add_noise(np.full(2, bound), noise, SeededBits(5))).all()


@both_laws
@pytest.mark.parametrize("stated", [1e-200, 1e200])
def test_extreme_units_change_nothing_but_the_unit(law, stated):
    power = 2.0 ** round(math.log2(stated))
    extreme, usual = (calibrate(law, 0.5, s, s, 4) for s in (power, 1.0))
    assert extreme.scale / power == pytest.approx(usual.scale, rel=1e-12)
    draws = [add_noise(np.zeros(4), noise, SeededBits(6)) for noise in (extreme, usual)]
    np.testing.assert_array_equal(draws[0] / power, draws[1])


@both_laws
@pytest.mark.parametrize("size", [1, 10**4, 10**8])
@pytest.mark.parametrize("price", [1e-10, 1e-6, 1.0, 100.0])
def test_noise_that_is_calibrated_can_be_drawn(law, size, price):
    # a scale that the sampler refuses would fail after the release has been charged
    noise = noise_or_refusal(law, price, 1.0, 1.0, size)
    assert isinstance(noise, str) or 0 < noise.scale / noise.grid <= 2.0**40


@both_laws
def test_noise_is_frozen(law):
    with pytest.raises(dataclasses.FrozenInstanceError):
        calibrate(law, 1.0).scale = 0.0


def precise_and_small(y):
    """Tell which values lie in (-1/2, 1/2) off the multiples of 2^-53."""
    return (np.abs(y) < 0.5) & (y * 2.0**53 != np.rint(y * 2.0**53))


@both_laws
def test_no_output_betrays_its_input_by_its_last_digits(law):
    noise = calibrate(law, gdp_mu(1.0, 1e-5) if law == "gaussian" else 1.0)
    for f in (0.0, 1.0):
        assert not precise_and_small(add_noise(np.full(100_000, f), noise, SystemBits())).any()
    # the same event tells apart what float noise makes of the two inputs
    naive = 3.73 * np.random.default_rng(0).standard_normal(100_000)
    assert 0.06 < precise_and_small(naive).mean() < 0.08
    assert not precise_and_small(1.0 + naive).any()
