# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Coins and positions have exact probabilities."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp.local.randomisers.base import coins, positions_below
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import GivenBits


@pytest.mark.parametrize("p", [0.25, 0.3, 1e-3, 1 - 2.0**-53, 2.0**-53])
def test_words_around_the_boundary(p):
    exact = Fraction(p) * 2**64
    first = int(exact)
    words = [max(first - 1, 0), first, first + 1]
    heads = coins(p, 3, GivenBits(words))
    for word, head in zip(words, heads, strict=True):
        if word + 1 <= exact:
            assert head
        elif word >= exact:
            assert not head


def test_further_bits_decide():
    # p has bits beyond the 64th
    p = float(Fraction(2**52 + 1, 2**80))
    assert Fraction(p) == Fraction(2**52 + 1, 2**80)
    first = (2**52 + 1) >> 16
    # what is left of p is 1/2^16 of a word
    edge = 2**48
    assert coins(p, 1, GivenBits([first, edge - 1]))[0]
    assert not coins(p, 1, GivenBits([first, edge]))[0]
    assert not coins(p, 1, GivenBits([first + 1]))[0]
    assert coins(p, 1, GivenBits([first - 1]))[0]


def test_share_of_heads():
    heads = coins(0.3, 200_000, SeededBits(1))
    assert abs(heads.mean() - 0.3) < 4 * np.sqrt(0.21 / 200_000)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000])
def test_positions_are_uniform(n):
    positions = positions_below(n, 50_000, SeededBits(2))
    counts = np.bincount(positions, minlength=n)
    assert counts.size == n
    if n > 1:
        assert stats.chisquare(counts).pvalue > 1e-4


def test_positions_of_many():
    positions = positions_below(2**40 + 1, 1000, SeededBits(3))
    assert positions.min() >= 0
    assert positions.max() <= 2**40
    assert len(np.unique(positions)) == 1000
