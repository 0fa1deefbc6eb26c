# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The step counts of the grid walk, against an independent evaluation, and its errors."""

import math

import mpmath
import pytest

from skdp.papers.grid_walk import grid_walk_steps

COUNTS = {(100, 1): (4.8e11, 3.4e13), (1000, 2): (4.5e15, 3e18), (10**4, 10): (1.2e21, 8e24)}


def by_hand(n, p, diameter, epsilon):
    """Return steps per call and calls in 50 digits, Lemma 6.1 and Algorithms 5 to 7."""
    mp = mpmath.mp.clone()
    mp.dps = 50
    D, e = mp.mpf(diameter), mp.mpf(epsilon) / 3
    eta = n * mp.mpf(epsilon) / (6 * D)
    calls = mp.ceil(4 * eta * D + p * mp.log(D, 2) + mp.log(1 / (1 - mp.exp(-e / 4)), 2))
    e /= 4
    eta += 3 * mp.exp(2 * e) * (eta * D + p)
    e /= 2
    cells = mp.ceil(D * 2 * eta * mp.sqrt(p) / e)
    phi = e / (8 * eta * D * mp.mpf(p) ** 1.5 * mp.exp(e / 2))
    rarest = mp.exp(-eta * D * mp.sqrt(p)) / cells**p
    return mp.ceil(1 + 4 / phi**2 * mp.log(2 / (e * rarest))), calls


@pytest.mark.parametrize("shape", COUNTS)
def test_known_counts(shape):
    steps = grid_walk_steps(*shape)
    assert steps.steps_per_call == pytest.approx(COUNTS[shape][0], rel=0.02)
    assert steps.total_steps == pytest.approx(COUNTS[shape][1], rel=0.02)


@pytest.mark.parametrize("n", [1, 50, 10**6])
@pytest.mark.parametrize("p", [1, 7])
@pytest.mark.parametrize("diameter", [2.0, 5])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
def test_counts_by_hand(n, p, diameter, epsilon):
    steps = grid_walk_steps(n, p, diameter=diameter, epsilon=epsilon)
    per_call, calls = by_hand(n, p, diameter, epsilon)
    assert steps.calls == calls
    assert steps.steps_per_call == pytest.approx(float(per_call), rel=1e-9)
    assert steps.total_steps == steps.steps_per_call * steps.calls


def test_the_lipschitz_constant_cancels():
    assert grid_walk_steps(10, 2, lipschitz=1e-3) == grid_walk_steps(10, 2, lipschitz=7)


def test_counts_too_large_for_a_float_are_infinite():
    for epsilon in (1e-300, 1e6, 1e300):
        steps = grid_walk_steps(10**15, 10**9, epsilon=epsilon)
        assert steps.steps_per_call == steps.total_steps == math.inf


@pytest.mark.parametrize(
    ("name", "bad", "allowed"),
    [
        ("n_samples", 0, "an integer from 1"),
        ("n_samples", 1.5, "an integer from 1"),
        ("n_samples", True, "an integer from 1"),
        ("n_features", -2, "an integer from 1"),
        ("n_features", 10**10, "an integer from 1"),
        ("n_features", "3", "an integer from 1"),
        ("lipschitz", 0.0, "a number above 0"),
        ("lipschitz", math.inf, "a number above 0"),
        ("epsilon", -1.0, "a number above 0"),
        ("epsilon", math.nan, "a number above 0"),
        ("epsilon", None, "a number above 0"),
        ("diameter", 1.0, "a number from 2 on"),
        ("diameter", math.inf, "a number from 2 on"),
    ],
)
def test_bad_arguments_are_named(name, bad, allowed):
    with pytest.raises(ValueError, match=f"{name} must be {allowed}.*; got {bad!r}"):
        grid_walk_steps(**{"n_samples": 10, "n_features": 2, name: bad})
