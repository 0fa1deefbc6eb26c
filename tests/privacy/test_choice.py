# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The weighted choice, against exact cumulative weights (mpmath) and chi-square."""

from bisect import bisect_right
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.privacy.kernel.samplers import SeededBits, SystemBits
from skdp.privacy.laws import exponential as _choice
from skdp.privacy.laws.exponential import weighted_choice

mp = mpmath.mp.clone()
mp.dps = 150
# False alarm per check: the seeded ones never change, the system ones must never cry wolf.
P_VALUE = {True: 1e-6, False: 1e-9}
both_sources = pytest.mark.parametrize("bits", [SeededBits(1), SystemBits()], ids=type)

RNG = np.random.default_rng(0)
# counts, steps, rate: ties, gaps, zeros at either end, weights far apart, huge steps
CASES = {
    "one": ([3], [10**9], 50.0),
    "two": ([1, 1], [0, 1], 1.0),
    "ties": ([5, 0, 1, 2, 0], [4, 0, 4, 4, 9], 0.3),
    "no rate": ([2**52, 1, 2**51, 0], [0, 10**9, 3, 5], 0.0),
    "counts outweigh steps": ([1, 2**52, 2**40], [7, 43, 35], 1.0),
    "slow decay": (RNG.integers(0, 2**52, 40), RNG.integers(0, 4 * 10**6, 40), 1e-6),
    "ranks": (RNG.integers(0, 2**40, 300), np.abs(np.arange(300) - 120), 0.05),
    "huge steps": (RNG.integers(0, 9, 50), 10**9 - RNG.integers(0, 60, 50), 0.1),
    "far apart": ([0, 1, 7, 2, 0], [0, 10**9, 10**9 + 1, 10**9, 3], 2.5),
    "all but one vanish": ([1, 2**52, 1], [10**9, 1, 10**9], 50.0),
}
every_case = pytest.mark.parametrize("case", CASES)


class Words:
    """Bits that hand out chosen words, then those of a seeded source."""

    seeded = True

    def __init__(self, words, seed=0):
        self.queue, self.rest = [int(word) for word in words], SeededBits(seed)

    def words(self, size):
        taken, self.queue = self.queue[:size], self.queue[size:]
        more = self.rest.words(size - len(taken))
        return np.concatenate([np.array(taken, dtype=np.uint64), more])


def arrays(case, kind=np.float64):
    counts, steps, rate = CASES[case]
    return np.array(counts, dtype=kind), np.array(steps, dtype=np.int64), rate


def exact_ends(counts, steps, rate):
    """Return the cumulative probabilities to 150 digits."""
    low = min(s for c, s in zip(counts.tolist(), steps.tolist(), strict=True) if c)
    weights = [
        mp.mpf(c) * mp.exp(-mp.mpf(rate) * (s - low)) if c else mp.mpf(0)
        for c, s in zip(counts.tolist(), steps.tolist(), strict=True)
    ]
    ends = list(accumulate(weights))
    return [end / ends[-1] for end in ends]


def as_words(u, n=6):
    digits = int(mp.floor(u * mp.mpf(2) ** (64 * n)))
    return [digits >> 64 * (n - 1 - i) & (2**64 - 1) for i in range(n)]


def p_value(draws, ends):
    """Compare draws with exact probabilities by chi-square; rare indices are one cell."""
    probabilities = np.diff([0.0, *map(float, ends)])
    expected = len(draws) * probabilities
    seen = np.bincount(draws, minlength=len(ends))
    often = expected >= 8
    cells, wanted = list(seen[often]), list(expected[often])
    if expected[~often].sum() > 1:
        cells.append(seen[~often].sum())
        wanted.append(expected[~often].sum())
    elif seen[~often].sum() > 20:
        return 0.0
    if len(cells) == 1:
        return 1.0
    wanted = np.array(wanted) * sum(cells) / sum(wanted)
    return stats.chisquare(cells, wanted).pvalue


@pytest.fixture
def slow(monkeypatch):
    """Count the draws that are decided in exact arithmetic."""
    calls, exactly = [], _choice._choose_exactly
    monkeypatch.setattr(_choice, "_choose_exactly", lambda *a: calls.append(a) or exactly(*a))
    return calls


@pytest.mark.covering
@every_case
@both_sources
def test_the_choice_has_the_exact_probabilities(case, bits, slow):
    counts, steps, rate = arrays(case)
    draws = [weighted_choice(counts, steps, rate, bits) for _ in range(3000)]
    assert p_value(draws, exact_ends(counts, steps, rate)) > P_VALUE[bits.seeded]
    assert counts[draws].min() > 0
    assert not slow


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", ["two", "counts outweigh steps", "slow decay", "ranks"])
def test_half_the_rate_would_be_noticed(case):
    counts, steps, rate = arrays(case)
    bits, ends = SeededBits(2), exact_ends(counts, steps, rate)
    draws = [weighted_choice(counts, steps, rate / 2, bits) for _ in range(3000)]
    assert p_value(draws, ends) < 1e-9
    # and so would a choice that ignores the counts, or the steps
    for other in ((np.sign(counts), steps), (counts, 0 * steps)):
        if case != "two":
            draws = [weighted_choice(*other, rate, bits) for _ in range(3000)]
            assert p_value(draws, ends) < 1e-9


@pytest.mark.covering
@every_case
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_words_give_the_exact_index_on_both_paths(case, kind, slow, monkeypatch):
    counts, steps, rate = arrays(case, kind)
    ends = exact_ends(counts, steps, rate)
    words = SeededBits(3).words(60)
    expected = [bisect_right(ends, mp.mpf(int(word)) / mp.mpf(2) ** 64) for word in words]
    fast = [weighted_choice(counts, steps, rate, Words([w])) for w in words]
    assert fast == expected
    assert not slow
    monkeypatch.setattr(_choice, "_UNIT", 1.0)
    exact = [weighted_choice(counts, steps, rate, Words([w], seed=1)) for w in words]
    assert exact == expected
    assert len(slow) == 60


@pytest.mark.covering
@every_case
@pytest.mark.parametrize("distance", ["1e-11", "1e-14", "1e-17", "1e-25", "1e-50", "1e-100"])
def test_words_next_to_a_boundary_give_the_exact_index(case, distance, slow):
    counts, steps, rate = arrays(case)
    ends = exact_ends(counts, steps, rate)
    gap = mp.mpf(distance)
    inner = [a for a in dict.fromkeys(ends) if gap < a < 1 - gap][:20]
    for a in inner:
        for u in (a - gap, a + gap):
            drawn = weighted_choice(counts, steps, rate, Words(as_words(u)))
            assert drawn == bisect_right(ends, u)
            assert counts[drawn] > 0
    # an error bound of 5e-12 would be too cautious, one of 2e-14 not cautious enough
    if gap > 5e-12:
        assert not slow
    elif gap < 2e-14:
        assert len(slow) == 2 * len(inner)


@every_case
@pytest.mark.parametrize("word", [0, 1, 2**64 - 2, 2**64 - 1])
def test_the_ends_of_the_interval_give_indices_with_positive_counts(case, word):
    counts, steps, rate = arrays(case)
    drawn = weighted_choice(counts, steps, rate, Words([word] * 3))
    u = sum(mp.mpf(word) / mp.mpf(2) ** i for i in (64, 128, 192)) + mp.mpf(2) ** -193
    assert counts[drawn] > 0
    assert drawn == bisect_right(exact_ends(counts, steps, rate), u)


@pytest.mark.parametrize("step", [50, 200, 700, 2000])
def test_weights_that_only_many_digits_tell_apart_are_decided(step):
    # e^-2000 is about 1e-869
    with mp.workdps(1000):
        for u, expected in ((mp.exp(-step - 1), 0), (mp.exp(-step + 1), 1)):
            words = as_words(u, 60)
            assert weighted_choice(np.ones(2), np.array([step, 0]), 1.0, Words(words)) == expected
            # from the other end
            words = [word ^ (2**64 - 1) for word in words]
            steps = np.array([0, step])
            assert weighted_choice(np.ones(2), steps, 1.0, Words(words)) == 1 - expected


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.7, 50.0, 5e-324, 1e300])
def test_enormous_ranges_of_steps_raise_nothing_and_are_exact(rate, slow, monkeypatch):
    steps = np.array([0, 1, 700, 10**6, 10**9, 2**62, 2**63 - 1])
    counts = np.array([1.0, 2.0**52, 2.0**52, 1.0, 2.0**52, 5.0, 9.0])
    ends = exact_ends(counts, steps, rate)
    words = SeededBits(4).words(200)
    expected = [bisect_right(ends, mp.mpf(int(word)) / mp.mpf(2) ** 64) for word in words]
    with np.errstate(all="raise"):
        assert [weighted_choice(counts, steps, rate, Words([w])) for w in words] == expected
    assert not slow
    monkeypatch.setattr(_choice, "_UNIT", 1.0)
    exact = [weighted_choice(counts, steps, rate, Words([w])) for w in words[:50]]
    assert exact == expected[:50]


@pytest.mark.parametrize("n", [1000, 10**6])
def test_long_lists_stay_on_the_fast_path_and_are_uniform_within_equal_weights(n, slow):
    counts, steps = np.full(n, 3.0), np.abs(np.arange(n) - n // 2)
    bits = SeededBits(5)
    draws = [weighted_choice(counts, steps, 30 / n, bits) for _ in range(2000 if n < 10**6 else 25)]
    # the distance from the middle is exponential, at a scale of n / 30
    distance = np.abs(np.array(draws) - n // 2) + bits.words(len(draws)) * 2.0**-64
    assert stats.kstest(distance * 30 / n, stats.expon.cdf).pvalue > 1e-6
    assert not slow


@pytest.mark.full
def test_float_cumulative_weights_are_within_the_margin_on_long_lists(slow):
    n = 20_000
    counts, steps = RNG.integers(0, 2**52, n), RNG.integers(0, 400, n)
    ends = exact_ends(counts, steps, 0.03)
    chosen = range(50, n, 1999)
    for index in chosen:
        for gap in (-1e-17, 1e-17):
            u = ends[index] + gap
            drawn = weighted_choice(counts, steps, 0.03, Words(as_words(u)))
            assert drawn == bisect_right(ends, u)
    assert len(slow) == 2 * len(chosen)


def test_equal_seeds_give_equal_choices():
    sources = [SeededBits(seed) for seed in (6, 6, 7)]
    runs = [[weighted_choice(*arrays("ranks"), bits) for _ in range(20)] for bits in sources]
    assert runs[0] == runs[1] != runs[2]
    assert all(type(index) is int for index in runs[0])


def test_the_arguments_are_not_changed_in_place():
    counts, steps, rate = arrays("far apart")
    before = counts.copy(), steps.copy()
    weighted_choice(counts, steps, np.float32(rate), SeededBits(8))
    np.testing.assert_array_equal(before, (counts, steps))


@pytest.mark.parametrize(
    "counts", [[], [0, 0], [-1, 3], [1, np.nan], [1, np.inf], [1, 2**53], [1, 2, 3]]
)
def test_counts_out_of_range_are_refused(counts):
    steps = np.arange(min(len(counts), 2))
    with pytest.raises(ValueError, match="counts must be"):
        weighted_choice(np.array(counts, dtype=float), steps, 1.0, SeededBits(0))


@pytest.mark.parametrize(
    ("steps", "rate"), [([0, -1], 1.0), ([0, 1], -1.0), ([0, 1], np.nan), ([0, 1], np.inf)]
)
def test_steps_and_rates_out_of_range_are_refused(steps, rate):
    with pytest.raises(ValueError, match="rate and steps must be"):
        weighted_choice(np.ones(2), np.array(steps), rate, SeededBits(0))
