# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of matches have the binomial law given their side, on the fast way and the slow one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp.local.randomisers import cube as _matches
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import GivenBits

SIDES = [(1, 1), (2, 2), (3, 5), (6, 10), (8, 10), (10, 10), (520, 1000), (900, 1000)]


def exact_law(threshold, n_dims, inside):
    """Return the numbers of heads of a side, and their probabilities as fractions."""
    heads = range(threshold, n_dims + 1) if inside else range(threshold)
    weights = [math.comb(n_dims, k) for k in heads]
    return list(heads), [Fraction(weight, sum(weights)) for weight in weights]


def drawn(threshold, n_dims, inside, size, bits):
    return _matches.matches(threshold, n_dims, np.full(size, inside), bits)


@pytest.mark.parametrize(("threshold", "n_dims"), SIDES)
@pytest.mark.parametrize("inside", [True, False])
def test_boundaries_are_exact(threshold, n_dims, inside):
    heads, law = exact_law(threshold, n_dims, inside)
    first, begins = _matches._boundaries(threshold, n_dims, inside)
    total = sum(law[: first - heads[0] + 1], Fraction(0))
    assert total - law[first - heads[0]] < Fraction(n_dims**2, 2**192)
    for word, share in zip(begins.tolist(), law[first - heads[0] + 1 :], strict=False):
        # below the next number of heads is all that was summed so far
        assert abs(word - total * 2**64) <= 2
        total += share


@pytest.mark.covering
@pytest.mark.parametrize("near", [4, 2**60, 2**63])
@pytest.mark.parametrize(("threshold", "n_dims"), SIDES)
@pytest.mark.parametrize("inside", [True, False])
def test_the_law(threshold, n_dims, inside, near, monkeypatch):
    monkeypatch.setattr(_matches, "_NEAR", near)
    size = 20_000 if near == 4 else 300
    heads = drawn(threshold, n_dims, inside, size, SeededBits(1))
    values, law = exact_law(threshold, n_dims, inside)
    assert heads.min() >= values[0]
    assert heads.max() <= values[-1]
    expected = np.array([float(share) for share in law]) * size
    counts = np.bincount(heads - values[0], minlength=len(values))
    # numbers that are expected less than five times are taken together
    large = expected >= 5.0
    counts = np.append(counts[large], counts[~large].sum())
    expected = np.append(expected[large], expected[~large].sum())
    if expected[-1] < 5.0 and expected.size > 1:
        expected, counts = expected[:-1], counts[:-1]
        expected *= counts.sum() / expected.sum()
    if expected.size > 1:
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


@pytest.mark.parametrize(("threshold", "n_dims"), SIDES)
def test_both_ways_agree(threshold, n_dims, monkeypatch):
    for inside in (True, False):
        fast = drawn(threshold, n_dims, inside, 40, SeededBits(2))
        monkeypatch.setattr(_matches, "_NEAR", 2**63)
        # words are drawn before the further bits are, so the numbers begin the same
        slow = drawn(threshold, n_dims, inside, 40, SeededBits(2))
        monkeypatch.setattr(_matches, "_NEAR", 4)
        np.testing.assert_array_equal(slow, fast)


@pytest.mark.parametrize("inside", [True, False])
def test_words_at_the_boundaries(inside):
    # of 4 coins: 3 or 4 heads with shares 4/5 and 1/5; 0, 1, 2 with 1/11, 4/11, 6/11
    law = [Fraction(4, 5)] if inside else [Fraction(1, 11), Fraction(5, 11)]
    first = 3 if inside else 0
    for place, share in enumerate(law):
        edge = int(share * 2**64)
        left = int((share * 2**64 - edge) * 2**64)
        low = GivenBits([edge, left - 1])
        high = GivenBits([edge, left + 1])
        assert drawn(3, 4, inside, 1, low)[0] == first + place
        assert drawn(3, 4, inside, 1, high)[0] == first + place + 1
    for word, value in ((0, first), (2**64 - 1, 4 if inside else 2)):
        assert drawn(3, 4, inside, 1, GivenBits([word]))[0] == value


def test_rare_numbers_are_reached():
    # no head among 100 coins has a share below 2^-99, which further bits find
    words = [0] * 12
    assert drawn(60, 100, False, 1, GivenBits(words))[0] == 0
    assert drawn(60, 100, True, 1, GivenBits([2**64 - 1] * 12))[0] == 100


@pytest.mark.parametrize("n_dims", [10**4, 10**6])
def test_many_coins(n_dims):
    threshold = n_dims // 2 + math.isqrt(n_dims)
    inside = np.arange(4000) % 2 == 0
    heads = _matches.matches(threshold, n_dims, inside, SeededBits(3))
    assert heads[inside].min() == pytest.approx(threshold, abs=10)
    assert ((heads >= threshold) == inside).all()
    law = stats.binom(n_dims, 0.5)
    # between the values of the distribution function before and at the number
    tails = (law.sf(heads[inside] - 1) - 0.5 * law.pmf(heads[inside])) / law.sf(threshold - 1)
    assert stats.kstest(tails, "uniform").pvalue > 1e-4
    below = (law.cdf(heads[~inside]) - 0.5 * law.pmf(heads[~inside])) / law.cdf(threshold - 1)
    assert stats.kstest(below, "uniform").pvalue > 1e-4
