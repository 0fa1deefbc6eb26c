# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy bisection: exact without noise, on all scales, and no worse than its noise."""

import numpy as np
import pytest

from skdp._rows.columns import FeatureRows
from skdp.preprocessing._standard_scaler import (
    FloatKey,
    SideSum,
    bisect_quantile,
    shortest,
)

SCALES = np.array([1.0, 1e300, 1e-300, 1e6, 1e-6, -1e100])


def search(X, tau, key, *, noise=0.0, steps=60, center=None, seed=0):
    rng = np.random.default_rng(seed)
    rows, (n, d) = FeatureRows(X), X.shape

    def sides(thresholds):
        assert thresholds.shape == (d,)
        assert np.isfinite(thresholds).all()
        return SideSum(thresholds, center).evaluate(rows) + noise * rng.normal(size=d)

    return bisect_quantile(
        sides, key, tau, n_rows=n, n_features=d, steps=steps, scale=noise or 1e-9
    )


def parts(belief):
    low, high = belief.interval()
    return low, belief.middle, high


def rank(X, values):
    """Return the share of rows that are not above the values."""
    return (values >= X).mean(axis=0)


@pytest.mark.parametrize("tau", [0.5, 0.1, 0.97])
def test_without_noise_it_is_the_quantile_on_any_scale(tau):
    X = np.random.default_rng(0).normal(3, 1, size=(1001, 6)) * SCALES
    low, middle, high = parts(search(X, tau, FloatKey()))
    expected = np.quantile(X, tau, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(middle, expected, rtol=1e-8)
    assert (low < expected).all()
    assert (expected <= high).all()


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, -7.0, 1e6, 123456789.0, 1e-300, 1.7e308, 0.001])
def test_a_value_that_all_rows_share_is_hit_exactly(value):
    X = np.full((50, 1), value)
    found = shortest(search(X, 0.5, FloatKey()))
    assert found[0] == value
    assert not np.signbit(found[0]) or value < 0
    low, high = search(X, 0.9, FloatKey(3, signed=False), center=found, steps=20).interval()
    assert low == 0
    assert high < 1e-300


def test_the_key_runs_through_all_floats_in_order():
    key = FloatKey(mantissa_bits=1)
    positions = np.arange(key.end + 1)
    values = key.value(positions)
    assert (np.diff(values) >= 0).all()
    assert np.isfinite(values).all()
    assert values[0] < -1e308
    assert values[-1] > 1e308
    assert 0.0 in values
    for signed in (True, False):
        starts, weights = FloatKey(signed=signed).prior()
        assert (np.diff(starts) > 0).all()
        assert starts[0] == 0
        assert starts[-1] < FloatKey(signed=signed).end
        assert weights.sum() == pytest.approx(1)
        assert weights.min() > 0


@pytest.mark.parametrize("tau", [0.5, 0.8])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_rank_is_off_by_little_more_than_the_noise_of_a_count(offset, tau):
    X = offset + np.random.default_rng(0).normal(size=(1000, 200))
    noise = 30.0
    middle = search(X, tau, FloatKey(), noise=noise, steps=42).middle
    off = np.abs(rank(X, middle) - tau) * len(X)
    assert np.median(off) < noise
    assert off.max() < 5 * noise


def test_wrong_turns_are_taken_back():
    # a wrong turn of ordinary bisection is final; here the noise takes one in four features
    X = np.random.default_rng(0).normal(size=(1000, 300))
    middle = search(X, 0.5, FloatKey(), noise=200.0, steps=42).middle
    assert (np.abs(middle) < 3).mean() > 0.95


def test_if_nothing_can_be_learned_the_prior_remains():
    X = np.random.default_rng(0).normal(1e200, 1, size=(10, 100))
    low, middle, high = parts(search(X, 0.5, FloatKey(), noise=1e12, steps=42))
    assert np.median(np.abs(middle)) < 1e3
    assert (low < -1e3).all()
    assert (high > 1e3).all()


@pytest.mark.parametrize("released", [np.inf, -np.inf, 1e308, -1e308, 0.0])
def test_whatever_is_released_the_answer_is_finite(released):
    for key in (FloatKey(), FloatKey(3, signed=False)):
        belief = bisect_quantile(
            lambda thresholds: np.full(2, released),
            key, 0.5, n_rows=10, n_features=2, steps=90, scale=1.0,
        )  # fmt: skip
        found = parts(belief)
        assert np.isfinite(found).all()
        assert (found[0] <= found[1]).all()
        assert (found[1] <= found[2]).all()
