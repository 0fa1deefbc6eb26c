# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Truncated exponentials and chains of them have their exact law, at every scale."""

import numpy as np
import pytest

from skdp._log_concave import sample_piecewise_exponential, truncated_exponential
from tests.sampling._laws import quadrature_cdf, same_counts, same_law, source

N = 2_500


def absolute_loss(data):
    """Return knots and slopes of the sum of |x - d| on [-1, 1]."""
    knots = np.concatenate([[-1.0], np.sort(data), [1.0]])
    return knots, 2.0 * np.arange(len(data) + 1) - len(data)


def pinball_loss(data, level=0.8):
    knots, slopes = absolute_loss(data)
    return knots, slopes / 2 + len(data) * (0.5 - level)


def hinge_loss(data):
    """Return the sum of max(0, 1 - d x), for d > 1, on [-1, 1]."""
    order = np.sort(data)
    knots = np.concatenate([[-1.0], 1 / order[::-1], [1.0]])
    return knots, np.append(-np.cumsum(order)[::-1], 0.0)


LOSSES = {
    "absolute": absolute_loss(np.array([-0.8, -0.1, 0.05, 0.3, 0.31, 0.9])),
    "one record": absolute_loss(np.array([0.4])),
    "ties": absolute_loss(np.array([-1.0, -0.5, -0.5, -0.5, 0.2, 1.0, 1.0])),
    "pinball": pinball_loss(np.linspace(-0.9, 0.7, 40)),
    "hinge": hinge_loss(np.array([1.2, 1.5, 2.0, 4.0, 9.0])),
    "flat": (np.array([-1.0, 1.0]), np.array([0.0])),
    "steep": (np.array([-1.0, 0.999, 1.0]), np.array([-50.0, 70.0])),
}


def draws(knots, slopes, c, purpose, n=N):
    variates = source(purpose)
    return np.array([sample_piecewise_exponential(knots, slopes, c, variates) for _ in range(n)])


def law(knots, slopes, c):
    values = np.concatenate([[0.0], np.cumsum(slopes * np.diff(knots))])
    return quadrature_cdf(lambda x: -c * np.interp(x, knots, values), knots[0], knots[-1])


@pytest.mark.parametrize("slope", [0.0, 1e-12, 0.3, 5.0, 700.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_truncated_exponential_has_its_law(slope, sign):
    slope, n = sign * slope, 50_000
    x = truncated_exponential(np.full(n, slope), -0.5, 1.5, source(f"law {slope}"))
    assert same_law(x, quadrature_cdf(lambda t: -slope * t, -0.5, 1.5))
    if slope:
        assert same_law(x, quadrature_cdf(lambda t: -slope / 2 * t, -0.5, 1.5)) == (
            abs(slope) < 0.1
        )


def test_truncated_exponential_at_every_scale():
    variates, powers = source("scales"), 10.0 ** np.arange(-300, 301)
    with np.errstate(all="raise"):
        for slope in (powers, -powers):
            for width in (1.0, 1e-300, 1e300, 0.0):
                x = truncated_exponential(slope, 0.0, width, variates)
                assert ((x >= 0) & (x <= width)).all()
        steep = truncated_exponential(np.array([np.inf, -np.inf]), -1.0, 2.0, variates)
    assert steep.tolist() == [-1.0, 2.0]


def test_truncated_exponential_resolves_the_tail():
    x = truncated_exponential(np.full(10**6, 1e3), 0.0, 1.0, source("tail"))
    assert same_law(np.exp(-1e3 * x), "uniform")
    assert x.max() < 0.04


@pytest.mark.covering
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("c", [0.7, 6.0])
def test_piecewise_law(name, c):
    knots, slopes = LOSSES[name]
    x = draws(knots, slopes, c, name)
    assert same_law(x, law(knots, slopes, c))
    cells = np.linspace(-1, 1, 41)
    counts = np.histogram(x, cells)[0]
    assert same_counts(counts, np.diff(law(knots, slopes, c)(cells)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["absolute", "pinball", "hinge", "steep"])
def test_half_and_double_the_temperature_are_noticed(name):
    knots, slopes = LOSSES[name]
    for c in (0.7 / 2, 0.7 * 2):
        assert not same_law(draws(knots, slopes, c, name), law(knots, slopes, 0.7))


def test_intervals_without_width_are_never_chosen():
    knots = np.array([0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    for between in (0.0, 1e300, -1e300):
        slopes = np.array([between, between, -3.0, between, 3.0, between])
        with np.errstate(all="raise", under="ignore"):
            x = draws(knots, slopes, 1.0, "ties", n=1000)
        assert same_law(x, quadrature_cdf(lambda t: -3 * np.abs(t - 0.5), 0, 1))
    for c in (0.0, 1.0, 1e300):
        assert (
            draws(np.full(4, 0.3), np.array([-1.0, 0.0, 1.0]), c, "point", n=3).tolist()
            == [0.3] * 3
        )


def test_every_scale_is_handled_without_a_warning():
    data = np.array([-0.5, -0.5, 0.0, 1e-300, 0.25, 1.0])
    knots, slopes = absolute_loss(data)
    variates = source("scales")
    with np.errstate(all="raise", under="ignore"):
        for power in range(-300, 301, 10):
            for width in (1.0, 1e-150, 1e150):
                c = 10.0**power
                x = sample_piecewise_exponential(knots * width, slopes, c, variates)
                assert -width <= x <= width
                if c * width > 1e4:  # the minimum is on the interval between 0 and its neighbour
                    assert abs(x) <= 1e-300 * width + 100 / c
                x = sample_piecewise_exponential(knots, slopes * width, c, variates)
                assert -1 <= x <= 1


def test_the_mass_near_the_minimum_of_a_large_loss_is_resolved():
    # the loss varies by 1e4, the mass sits close to the minimum
    data = np.random.default_rng(0).uniform(-1, 1, size=10**4)
    data[data > 0] **= 2
    knots, slopes = absolute_loss(data)
    near = np.abs(knots - np.median(data)) < 0.2
    k = np.flatnonzero(near)
    inner = (knots[k], slopes[k[:-1]])
    x = draws(knots, slopes, 5.0, "many", n=200)
    assert same_law(x, law(*inner, 5.0))
    assert not same_law(x, law(*inner, 0.5))
