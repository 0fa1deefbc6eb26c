# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Cosines of reports have the law of a coordinate of a uniform vector, on either side."""

import math

import numpy as np
import pytest
from scipy import stats

from skdp.local.randomisers.caps import log_tail
from skdp.local.randomisers.privunit import (
    PrivUnit,
    cap_cosines,
    cosines_beyond,
    cosines_in_cap,
    optimal_privunit,
)
from skdp.privacy.kernel.samplers import SeededBits

BUDGETS = [1e-3, 0.5, 4.0, 16.0, 500.0, 1e4]
DIMS = [2, 3, 5, 10, 1000, 10**6]
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


@pytest.mark.covering
@pytest.mark.parametrize("n_dims", DIMS)
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_the_law_on_both_sides(n_dims, epsilon):
    unit, bits = optimal_privunit(epsilon, n_dims), SeededBits(3, f"{n_dims} {epsilon}")
    assert uniform_p_value(levels_in_cap(unit, *cosines_in_cap(unit, N, bits))) > 1e-4
    assert uniform_p_value(levels_beyond(unit, *cosines_beyond(unit, N, bits))) > 1e-4


@pytest.mark.covering
@pytest.mark.parametrize("n_dims", [2, 3, 50, 10**9])
@pytest.mark.parametrize("far", [0.0, 0.3, 0.99, 1.01, 3.0])
def test_both_ways_agree_where_they_meet(n_dims, far):
    cosine = min(far / math.sqrt(n_dims), 0.9)
    unit, bits = PrivUnit(n_dims, cosine, 0.9), SeededBits(4, f"{n_dims} {far}")
    assert uniform_p_value(levels_in_cap(unit, *cosines_in_cap(unit, N, bits))) > 1e-4
    assert uniform_p_value(levels_beyond(unit, *cosines_beyond(unit, N, bits))) > 1e-4


@pytest.mark.parametrize("n_dims", [1, *DIMS])
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
