# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Laws of noise: samplers, random bits, scales of mechanisms."""

import copy
import dataclasses
import math
import os
import pickle
import subprocess
import sys
from decimal import Context, Decimal, localcontext

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    Sensitivity,
    gdp_mu,
)
from skdp.privacy.kernel import samplers
from skdp.privacy.kernel.mechanisms import add_noise, align
from skdp.privacy.kernel.samplers import SeededBits, SystemBits, make_bits, rounded_laplace
from skdp.privacy.laws import k_norm
from skdp.privacy.laws.k_norm import rounded_k_norm

# The samplers, against exact arithmetic: mpmath for every bit, chi-square for the laws.


mp = mpmath.mp.clone()
mp.dps = 60
SAMPLER_LAWS = {"gaussian": samplers.rounded_gaussian, "laplace": samplers.rounded_laplace}
QUANTILES = {"gaussian": lambda u: -ndtri(u), "laplace": lambda u: -np.log(u)}
WIDTH = {"gaussian": 64, "laplace": 63}  # bits before the point of u, sign excluded
FROZEN = {"gaussian": stats.norm(), "laplace": stats.laplace()}
both_laws = pytest.mark.parametrize("law", SAMPLER_LAWS)
both_sources = pytest.mark.parametrize("bits", [SeededBits(1), SystemBits()], ids=type)
# False alarm per check: the seeded ones never change, the system ones must never cry wolf.
P_VALUE = {True: 1e-4, False: 1e-9}


class Words:
    """Bits that hand out chosen words, then the same word forever."""

    seeded = True

    def __init__(self, words, rest=0x9E3779B97F4A7C15):
        self.queue, self.rest = [int(word) for word in words], rest

    def words(self, size):
        taken, self.queue = self.queue[:size], self.queue[size:]
        return np.array(taken + [self.rest] * (size - len(taken)), dtype=np.uint64)


def mp_tail(law, t):
    return mp.erfc(t / mp.sqrt(2)) / 2 if law == "gaussian" else mp.exp(-t)


def exact_draw(law, scale, first, rest):
    """Return the draw that the words `first`, `rest`... stand for, from 60 digits alone."""
    u = mp.mpf(first >> 1)
    for i, word in enumerate(rest, start=1):
        u += mp.mpf(word) / mp.mpf(2) ** (64 * i)
    u /= mp.mpf(2) ** WIDTH[law]
    s = mp.mpf(scale)
    r = int(np.rint(scale * QUANTILES[law](float(u))))
    while r > 0 and u > mp_tail(law, (r - mp.mpf("0.5")) / s):
        r -= 1
    while u < mp_tail(law, (r + mp.mpf("0.5")) / s):
        r += 1
    return -r if first & 1 else r


def boundary_words(law, scale, r, shift, offset=0.0):
    """Return words whose u lies `shift` units of the last place from the boundary r + 1/2."""
    u = mp_tail(law, (r + mp.mpf("0.5")) / mp.mpf(scale) + mp.mpf(offset))
    digits = int(mp.floor(u * mp.mpf(2) ** (WIDTH[law] + 128))) + shift
    mask = 2**64 - 1
    return [(digits >> 128) << 1, digits >> 64 & mask, digits & mask]


@pytest.fixture
def resolved(monkeypatch):
    """Count the draws that are decided in exact arithmetic."""
    calls, resolve = [], samplers._resolve
    monkeypatch.setattr(samplers, "_resolve", lambda *args: calls.append(args[0]) or resolve(*args))
    return calls


@pytest.mark.full
def test_float_quantiles_are_a_hundred_times_better_than_the_margin_allows():
    rng = np.random.default_rng(0)
    p = np.concatenate([2.0 ** -rng.uniform(1, 60, 1200), rng.uniform(2**-9, 0.5, 1000)])
    x, logarithm = ndtri(p), np.log(p)
    pairs = zip(x.tolist(), p.tolist(), strict=True)
    # errors of the tail, divided by its slope, are errors of the quantile
    exact = [float((mp.ncdf(a) - b) / mp.npdf(a)) for a, b in pairs]
    with localcontext(Context(prec=samplers._DIGITS)):
        tails = np.array([samplers._gaussian_tail(Decimal(a)) for a in (-x).tolist()])
        ours = (tails - np.array([Decimal(b) for b in p.tolist()])).astype(float)
        ours /= stats.norm.pdf(x)
    exact_log = logarithm - np.array([mp.log(b) for b in p.tolist()])
    for errors in (exact, ours, exact_log):
        assert np.abs(errors).max() < 4e-15 <= samplers._QUANTILE_ERROR / 100


@both_laws
@both_sources
@pytest.mark.parametrize("scale", [0.3, 1.7, 10.0])
def test_small_scales_have_the_exact_cell_probabilities(law, bits, scale):
    n = 40_000
    draws = SAMPLER_LAWS[law](scale, n, bits)
    edge = int(scale * FROZEN[law].isf(20 / n)) + 1
    cells = np.arange(-edge, edge + 1)
    upper = FROZEN[law].cdf((cells + 0.5) / scale)
    upper[-1] = 1.0
    counts = [np.count_nonzero(np.clip(draws, -edge, edge) == cell) for cell in cells]
    expected = n * np.diff(upper, prepend=0.0)
    assert stats.chisquare(counts, expected).pvalue > P_VALUE[bits.seeded]
    gap = np.abs(np.cumsum(counts) / n - upper).max()
    assert stats.kstwobign.sf(gap * np.sqrt(n)) > P_VALUE[bits.seeded]


@pytest.mark.sample(3)
@both_laws
@both_sources
@pytest.mark.parametrize("scale", [2.0**24, 1.3 * 2.0**23])
def test_grid_scales_follow_the_continuous_law(law, bits, scale):
    draws = SAMPLER_LAWS[law](scale, 100_000, bits)
    assert stats.kstest(draws / scale, FROZEN[law].cdf).pvalue > P_VALUE[bits.seeded]
    # the last bit is fair: nothing was rounded coarser than the grid
    odd = np.count_nonzero(draws & 1)
    assert stats.binomtest(odd, draws.size).pvalue > P_VALUE[bits.seeded]


@pytest.mark.sample(2)
@both_laws
@pytest.mark.parametrize("scale", [0.3, 10.0, 2.0**24, 1.7 * 2.0**33])
def test_typical_words_give_the_exact_integers_without_exact_arithmetic(law, scale, resolved):
    words = SeededBits(2).words(400)
    drawn = SAMPLER_LAWS[law](scale, 400, Words(words))
    rest = [Words([]).rest] * 3
    assert drawn.tolist() == [exact_draw(law, scale, int(word), rest) for word in words]
    assert len(resolved) <= (40 if scale > 2**30 else 0)


@pytest.mark.sample(6, 10)
@both_laws
@pytest.mark.parametrize("scale", [0.3, 10.0, 2.0**24])
@pytest.mark.parametrize("sign", [0, 1])
def test_words_with_few_significant_bits_are_decided_exactly(law, scale, sign, resolved):
    magnitudes = [0, 1, 2, 3, 1000, 2**20 - 1, 2**31, 2**42, samplers._FEW_BITS - 1]
    for magnitude in magnitudes:
        words = [2 * magnitude + sign, 3**40, 5**27, 7**22]
        drawn = SAMPLER_LAWS[law](scale, 1, Words(words))
        assert drawn.tolist() == [exact_draw(law, scale, words[0], words[1:])]
    assert len(resolved) == len(magnitudes)


@pytest.mark.sample(6)
@both_laws
@pytest.mark.parametrize(
    ("scale", "r"), [(0.3, 0), (10.0, 0), (10.0, 7), (10.0, 31), (2.0**24, 3), (2.0**24, 2**25 + 1)]
)
def test_words_on_a_rounding_boundary_are_decided_exactly(law, scale, r, resolved):
    answers = []
    for shift in (-(2**80), -2, -1, 1, 2, 2**80):
        words = boundary_words(law, scale, r, shift)
        for first in (words[0], words[0] + 1):
            drawn = SAMPLER_LAWS[law](scale, 1, Words([first, *words[1:]]))
            expected = exact_draw(law, scale, first, [*words[1:], Words([]).rest])
            assert drawn.tolist() == [expected]
            answers.append(abs(expected))
    # u below the boundary is the larger magnitude
    assert answers == [r + 1] * 6 + [r] * 6
    assert len(resolved) == 12


@both_laws
@pytest.mark.parametrize("offset", [-1e-12, 1e-12])
def test_words_outside_the_margin_of_a_boundary_stay_on_the_fast_path(law, offset, resolved):
    for r in (0, 7, 31):
        words = boundary_words(law, 10.0, r, 0, offset)
        drawn = SAMPLER_LAWS[law](10.0, 1, Words(words))
        assert drawn.tolist() == [r + (offset > 0)]
    assert not resolved


@pytest.mark.sample(1)
@both_laws
@pytest.mark.parametrize("scale", [0.3, 1.7, 10.0, 2.0**24])
def test_exact_arithmetic_alone_gives_the_same_integers(law, scale, resolved, monkeypatch):
    words = SeededBits(3).words(300)
    fast = SAMPLER_LAWS[law](scale, 300, Words(words))
    assert not resolved
    monkeypatch.setattr(samplers, "_FEW_BITS", 2**63)
    np.testing.assert_array_equal(SAMPLER_LAWS[law](scale, 300, Words(words)), fast)
    assert len(resolved) == 300


@both_laws
def test_the_last_bit_of_a_word_is_the_sign(law):
    words = SeededBits(4).words(1000) & ~np.uint64(1)
    positive = SAMPLER_LAWS[law](100.0, 1000, Words(words))
    negative = SAMPLER_LAWS[law](100.0, 1000, Words(words | np.uint64(1)))
    assert (positive >= 0).all()
    np.testing.assert_array_equal(positive, -negative)


@both_laws
def test_draws_are_int64_whatever_their_number(law):
    for size in (0, 1, samplers._BATCH, samplers._BATCH + 1):
        draws = SAMPLER_LAWS[law](2.0**24, size, SeededBits(5))
        assert (draws.shape, draws.dtype) == ((size,), np.int64)


@both_laws
@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, -np.inf, 2.0**40 * 1.001, 1e300])
def test_a_scale_out_of_range_is_refused(law, scale):
    with pytest.raises(ValueError, match="scale must be in"):
        SAMPLER_LAWS[law](scale, 3, SeededBits(0))


@both_laws
@pytest.mark.parametrize("scale", [1e-3, 1e-4, 1e-12])
def test_a_tiny_scale_draws_zero_even_from_few_significant_bits(law, scale):
    assert SAMPLER_LAWS[law](scale, 2, Words([2**30, 2**40 + 1])).tolist() == [0, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 64, 2**64, 2**64 + 1, 3 * 2**200])
def test_uniform_below_is_uniform(n):
    bits, cells = SeededBits(6), min(n, 64)
    draws = [samplers.uniform_below(n, bits) * cells // n for _ in range(4000)]
    counts = np.bincount(draws)
    assert len(counts) == cells
    assert n == 1 or stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("bad", [0, -3])
def test_uniform_below_refuses_what_is_no_size(bad):
    with pytest.raises(ValueError, match="must be"):
        samplers.uniform_below(bad, SeededBits(0))


# Random bits: reproducible when seeded, never shared, never reused.


SOURCES = {
    "system": SystemBits,
    "seeded": lambda: SeededBits(0, "test"),
    "made": lambda: make_bits(7, "test"),
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


def mean_hamming_distance(a, b):
    return np.bitwise_count(a ^ b).mean()


def test_equal_seed_and_purpose_give_equal_words():
    first, second = (SeededBits(42, "DPMean").words(1000) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**64, 2**127 + 5])
def test_seeds_of_any_length_are_reproducible(seed):
    np.testing.assert_array_equal(make_bits(seed, "p").words(9), make_bits(seed, "p").words(9))


def test_the_stream_does_not_depend_on_how_it_is_cut_into_calls():
    whole, parts = SeededBits(3), SeededBits(3)
    cut = [parts.words(size) for size in (1, 0, 7, 64, 128, 800)]
    np.testing.assert_array_equal(whole.words(1000), np.concatenate(cut))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, "a"), (0, "b")),
        ((0, "a"), (1, "a")),
        ((0, ""), (0, "a")),
        ((0, "a"), (0, "aa")),
        ((0, "ab"), (0, "ba")),
        ((0, "a"), (97, "")),
        ((1, ""), (2**32, "")),
        ((5, "DPMean"), (5, "DPLogisticRegression")),
    ],
)
def test_seeds_and_purposes_give_unrelated_streams(one, other):
    a, b = SeededBits(*one).words(20_000), SeededBits(*other).words(20_000)
    assert not np.intersect1d(a, b).size
    # 32 +- 6 standard errors: independent words differ in half of their bits
    assert abs(mean_hamming_distance(a, b) - 32) < 6 * 4 / np.sqrt(20_000)


@every_source
def test_no_word_is_handed_out_twice_over_many_calls(make):
    bits = make()
    words = np.concatenate([bits.words(size) for size in [1] * 500 + [17] * 300 + [4096] * 10])
    # the chance of an honest collision is below 1e-10
    assert np.unique(words).size == words.size


def test_two_system_sources_share_no_word():
    a, b = SystemBits().words(20_000), SystemBits().words(20_000)
    assert not np.intersect1d(a, b).size


@every_source
def test_words_are_uniform_in_every_bit(make):
    words = make().words(40_000)
    ones = np.array([np.count_nonzero(words >> np.uint64(i) & np.uint64(1)) for i in range(64)])
    assert np.abs(ones / 40_000 - 0.5).max() < 8 * 0.5 / np.sqrt(40_000)


@every_source
def test_words_have_the_stated_shape_and_type(make):
    for size in (0, 1, 33):
        words = make().words(size)
        assert words.shape == (size,)
        assert words.dtype == np.uint64


def test_system_bits_come_from_the_operating_system(monkeypatch):
    asked = []

    def recorded(n_bytes):
        asked.append(n_bytes)
        return bytes(range(n_bytes))

    monkeypatch.setattr(os, "urandom", recorded)
    words = SystemBits().words(2)
    assert asked == [16]
    assert [int(word) for word in words] == [0x0706050403020100, 0x0F0E0D0C0B0A0908]


def test_seeded_bits_never_ask_the_operating_system(monkeypatch):
    bits = SeededBits(0)
    monkeypatch.delattr(os, "urandom")
    assert bits.words(3).size == 3


@every_source
@pytest.mark.parametrize(
    "duplicate", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_a_source_refuses_to_be_duplicated(make, duplicate):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        duplicate(make())


@every_source
def test_a_source_refuses_to_run_under_another_process_id(make, monkeypatch):
    bits = make()
    assert bits.words(1).size == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="child process"):
        bits.words(1)


FORK = """
import os
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
inherited = [SeededBits(0), SystemBits()]
refused, answer = [], os.pipe()
child = os.fork()
if child == 0:
    for bits in inherited:
        try:
            bits.words(1)
        except RuntimeError:
            os.write(answer[1], b"refused ")
        else:
            os.write(answer[1], b"shared ")
    SystemBits().words(1)
    os.write(answer[1], b"fresh")
    os._exit(0)
os.waitpid(child, 0)
inherited[0].words(1)
print(os.read(answer[0], 100).decode())
"""


@pytest.mark.full
def test_a_forked_child_cannot_use_inherited_bits_but_may_make_its_own():
    # forked from a process of its own: pytest's may have threads
    run = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == "refused refused fresh"


def test_none_is_the_operating_system_and_not_seeded():
    bits = make_bits(None, "p")
    assert isinstance(bits, SystemBits)
    assert bits.seeded is False


@pytest.mark.parametrize(
    "random_state",
    [0, 123, np.int64(5), np.uint8(5), np.random.RandomState(0), np.random.default_rng(0)],
    ids=lambda state: type(state).__name__,
)
def test_everything_but_none_is_seeded(random_state):
    assert make_bits(random_state, "p").seeded is True


def test_numpy_integers_are_the_seed_they_stand_for():
    expected = make_bits(5, "p").words(10)
    for seed in (np.int8(5), np.int32(5), np.int64(5), np.uint64(5)):
        np.testing.assert_array_equal(make_bits(seed, "p").words(10), expected)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_is_advanced_so_that_two_fits_never_share_noise(make):
    generator, twin = make(9), make(9)
    first, second = make_bits(generator, "p").words(100), make_bits(generator, "p").words(100)
    assert not np.intersect1d(first, second).size
    np.testing.assert_array_equal(make_bits(twin, "p").words(100), first)
    np.testing.assert_array_equal(make_bits(twin, "p").words(100), second)


@pytest.mark.parametrize("seed", [-1, np.int64(-3)])
def test_a_negative_seed_is_refused(seed):
    with pytest.raises(ValueError, match="random_state must not be negative"):
        make_bits(seed)


@pytest.mark.parametrize(
    "random_state", [True, False, np.True_, "0", 1.0, np.float64(1), [0], np.random, b"0"], ids=str
)
def test_what_is_neither_a_seed_nor_a_generator_is_refused(random_state):
    with pytest.raises(ValueError, match="random_state must be None, an int or a generator"):
        make_bits(random_state)


def test_the_refusal_does_not_repeat_the_value():
    with pytest.raises(ValueError, match="got type str") as refusal:
        make_bits("my secret seed")
    assert "secret" not in str(refusal.value)


# K-norm noise, against exact arithmetic (mpmath, word by word) and against its law.


k_norm_mp = mpmath.mp.clone()
k_norm_mp.dps = 90
# False alarm per check; the seeded ones never change.
K_NORM_P_VALUE = {True: 1e-6, False: 1e-9}


class KNormWords:
    """Bits that hand out chosen words, then those of a seeded source."""

    seeded = True

    def __init__(self, words, seed=0):
        self.queue, self.rest = [int(word) for word in words], SeededBits(seed)

    def words(self, size):
        taken, self.queue = self.queue[:size], self.queue[size:]
        more = self.rest.words(size - len(taken))
        return np.concatenate([np.array(taken, dtype=np.uint64), more])


def exact_parts(words, size):
    """Return G / |G| and the exponential variables behind the words, from 90 digits alone.

    The first row of 2 * size words begins the uniform numbers, the other rows go on.
    """
    rows = [[int(word) for word in row] for row in np.reshape(words, (-1, 2 * size))]
    signs = [-1 if word & 1 else 1 for word in rows[0][:size]]
    rows[0][:size] = [word >> 1 for word in rows[0][:size]]
    u = [
        sum(k_norm_mp.ldexp(w, -64 * i) for i, w in enumerate(c, 1))
        for c in zip(*rows, strict=True)
    ]
    g = [
        s * k_norm_mp.sqrt(2) * k_norm_mp.erfinv(1 - 2 * a)
        for a, s in zip(u[:size], signs, strict=True)
    ]
    length = k_norm_mp.sqrt(sum(a * a for a in g))
    return [a / length for a in g], [-k_norm_mp.log(a) for a in u[size:]]


def k_norm_exact_draw(scale, words, size):
    direction, e = exact_parts(words, size)
    return [int(k_norm_mp.nint(k_norm_mp.mpf(scale) * sum(e) * a)) for a in direction]


def sample(scale, size, n, bits):
    return np.array([rounded_k_norm(scale, size, bits) for _ in range(n)])


@pytest.fixture
def slow(monkeypatch):
    """Count the vectors that are decided in exact arithmetic."""
    calls, exactly = [], k_norm._round_exactly
    monkeypatch.setattr(k_norm, "_round_exactly", lambda *a: calls.append(a) or exactly(*a))
    return calls


@pytest.mark.full
def test_float_variables_are_far_better_than_the_margin_allows():
    rng = np.random.default_rng(0)
    p = np.concatenate([2.0 ** -rng.uniform(1, 65, 600), rng.uniform(0, 0.5, 900)])
    x, e = -ndtri(p), -np.log(2 * p)
    pairs = zip(x.tolist(), p.tolist(), strict=True)
    # errors of the tail, divided by its slope, are errors of the quantile
    errors = np.array(
        [float((k_norm_mp.ncdf(-k_norm_mp.mpf(a)) - b) / k_norm_mp.npdf(a)) for a, b in pairs]
    )
    log_errors = e + np.array([k_norm_mp.log(2 * k_norm_mp.mpf(b)) for b in p.tolist()])
    for error, value in ((errors, x), (log_errors.astype(float), e)):
        assert (np.abs(error) / (1 + value)).max() < k_norm._FLOAT_ERROR / 16


@pytest.mark.sample(2)
@pytest.mark.parametrize("error", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize("scale", [0.05, 0.5, 4.0])
def test_what_is_rounded_surely_is_the_same_wherever_the_errors_lead(scale, error):
    rng = np.random.default_rng(1)
    for _ in range(300):
        g, r = rng.standard_normal(2), rng.exponential()
        result = k_norm._round_surely(scale, g, np.full(2, error), r, error)
        for signs in np.mgrid[-1:2:2, -1:2:2, -1:2:2].reshape(3, 8).T:
            moved = g + error * signs[:2]
            x = scale * (r + error * signs[2]) * moved / np.linalg.norm(moved)
            assert result is None or (np.rint(x) == result).all()


@pytest.mark.sample(3)
@pytest.mark.parametrize("scale", [0.3, 50.0, 2.0**24, 1.7 * 2.0**33])
@pytest.mark.parametrize("size", [2, 5])
def test_typical_words_give_the_exact_integers(scale, size, slow):
    for seed in range(8):
        words = SeededBits(seed).words(6 * size)
        assert rounded_k_norm(scale, size, KNormWords(words)).tolist() == k_norm_exact_draw(
            scale, words, size
        )
    assert len(slow) <= (8 if scale > 2**30 else 0)


@pytest.mark.covering
@pytest.mark.parametrize("word", [0, 1, 2, 3, 1000, 2**20, 2**33 + 1, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("which", [[0], [3], [1, 2], [0, 1, 3, 4], [0, 1, 2, 3, 4, 5]])
def test_words_at_the_ends_of_the_interval_are_decided_exactly(word, which):
    words = SeededBits(word % 1000).words(24)
    words[which] = word
    assert rounded_k_norm(1e5, 3, KNormWords(words)).tolist() == k_norm_exact_draw(1e5, words, 3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", [0.3, 100.0, 2.0**24])
@pytest.mark.parametrize("place", [1, 2, 4])
def test_words_next_to_a_rounding_boundary_are_decided_exactly(scale, place, slow):
    for seed in range(4):
        words = SeededBits(seed).words(6 * 5).reshape(5, 6)
        direction, e = exact_parts(words, 3)
        value = k_norm_mp.mpf(scale) * sum(e) * direction[1]
        r = int(k_norm_mp.floor(abs(value)))
        # the u of the last exponential that puts coordinate 1 on the boundary r + 1/2
        e_last = (r + 0.5) / abs(direction[1]) / k_norm_mp.mpf(scale) - e[0] - e[1]
        if e_last <= 0:
            continue
        u = int(k_norm_mp.floor(k_norm_mp.exp(-e_last) * k_norm_mp.mpf(2) ** (64 * place)))
        answers = []
        for shift in (-1, 1):
            for i in range(place):
                words[i, 5] = (u + shift) >> (64 * (place - 1 - i)) & (2**64 - 1)
            drawn = rounded_k_norm(scale, 3, KNormWords(words.ravel()))
            assert drawn.tolist() == k_norm_exact_draw(scale, words, 3)
            answers.append(abs(drawn[1]))
        # a smaller u is a longer vector
        assert answers == [r + 1, r]
    assert len(slow) >= 4


@pytest.mark.sample(1)
@pytest.mark.parametrize(("size", "n"), [(2, 100), (5, 50), (100, 3), (1000, 1)])
@pytest.mark.parametrize("relative", [2.0**-20, 1.0])
def test_exact_arithmetic_alone_gives_the_same_k_norm_integers(
    size, n, relative, slow, monkeypatch
):
    scale = relative * 2.0**24 / np.sqrt(size)
    words = [SeededBits(seed).words(2 * size) for seed in range(n)]
    fast = [rounded_k_norm(scale, size, KNormWords(w, seed=1)) for w in words]
    assert not slow
    monkeypatch.setattr(k_norm, "_FLOAT_ERROR", 1.0)
    exact = [rounded_k_norm(scale, size, KNormWords(w, seed=2)) for w in words]
    np.testing.assert_array_equal(exact, fast)
    assert len(slow) == n


def length_statistics(draws, scale):
    """Return the p-value of the length's law, and scores of its first two moments."""
    n, p = draws.shape
    # rounding moves the length by far less than the statistics can see
    radius = np.linalg.norm(draws, axis=1) / scale
    spread = p * (p + 1) * (p + 2) * (p + 3) - (p * (p + 1)) ** 2
    first = (radius.mean() - p) / np.sqrt(p / n)
    second = (np.mean(radius**2) - p * (p + 1)) / np.sqrt(spread / n)
    return stats.kstest(radius, stats.gamma(p).cdf).pvalue, np.abs([first, second])


@pytest.mark.full
@both_sources
@pytest.mark.parametrize("size", [2, 5, 60])
def test_the_length_has_the_gamma_law_and_its_moments(bits, size):
    scale = 2.0**24 / np.sqrt(size)
    bound = stats.norm.isf(K_NORM_P_VALUE[bits.seeded] / 2)
    p_value, scores = length_statistics(sample(scale, size, 4000, bits), scale)
    assert p_value > K_NORM_P_VALUE[bits.seeded]
    assert scores.max() < bound
    # the same statistics see a mutant with half the scale
    p_value, scores = length_statistics(sample(scale / 2, size, 1000, bits), scale)
    assert p_value < 1e-20
    assert scores.min() > 2 * bound


@pytest.mark.sample(1)
@both_sources
@pytest.mark.parametrize("size", [2, 3, 20])
def test_the_direction_is_uniform_and_independent_of_the_length(bits, size):
    draws = sample(2.0**22, size, 4000, bits).astype(float)
    length = np.linalg.norm(draws, axis=1)
    direction = draws / length[:, np.newaxis]
    # the signed square of a coordinate, and of a random projection, is a signed beta
    axis = np.random.default_rng(0).standard_normal(size)
    squares = stats.beta(0.5, (size - 1) / 2)
    for c in (direction[:, 0], direction[:, -1], direction @ axis / np.linalg.norm(axis)):
        assert stats.kstest(c * c, squares.cdf).pvalue > K_NORM_P_VALUE[bits.seeded]
        assert stats.binomtest(int(np.sum(c > 0)), len(c)).pvalue > K_NORM_P_VALUE[bits.seeded]
        assert stats.spearmanr(length, np.abs(c)).pvalue > K_NORM_P_VALUE[bits.seeded]
    if size == 2:
        angle = np.arctan2(draws[:, 1], draws[:, 0]) / (2 * np.pi) % 1
        assert stats.kstest(angle, stats.uniform.cdf).pvalue > K_NORM_P_VALUE[bits.seeded]
    # the last bits are fair: nothing was rounded coarser than the grid
    assert stats.binomtest(int(np.sum(draws % 2)), draws.size).pvalue > K_NORM_P_VALUE[bits.seeded]


def cell_probabilities(scale, edge):
    """Return the law of the rounded magnitudes in the plane on [0, edge]^2, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    x = np.arange(2 * edge + 1)[:, np.newaxis] / 2 + (nodes + 1) / 4
    density = np.exp(-np.hypot(x[:, :, np.newaxis, np.newaxis], x) / scale)
    mass = np.einsum("iajb,a,b->ij", density, weights, weights) / (2 * np.pi * scale**2) / 16
    # magnitude 0 is [0, 1/2), every other one is two halves of a unit
    starts = [0, *range(1, 2 * edge + 1, 2)]
    return 4 * np.add.reduceat(np.add.reduceat(mass, starts, axis=0), starts, axis=1)


@pytest.mark.full
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.3])
def test_small_scales_have_the_exact_cell_probabilities_in_the_plane(scale):
    n, edge = 12_000, int(scale * 6) + 1
    draws = np.abs(sample(scale, 2, n, SeededBits(3)))
    inside = draws[(draws <= edge).all(axis=1)]
    counts = np.bincount(inside[:, 0] * (edge + 1) + inside[:, 1], minlength=(edge + 1) ** 2)

    def p_value(assumed):
        expected = n * cell_probabilities(assumed, edge).ravel()
        often = expected > 8
        pooled = (np.append(a[often], n - a[often].sum()) for a in (counts, expected))
        return stats.chisquare(*pooled).pvalue

    assert p_value(scale) > 1e-6
    assert p_value(scale * 1.1) < 1e-6
    assert p_value(scale / 2) < 1e-20


def test_one_dimension_is_laplace():
    drawn = [f(2.0**24, 1, SeededBits(4)).tolist() for f in (rounded_k_norm, rounded_laplace)]
    assert drawn[0] == drawn[1]
    line = sample(2.0**24, 1, 4000, SeededBits(5))[:, 0] / 2.0**24
    assert stats.kstest(line, stats.laplace.cdf).pvalue > 1e-6
    assert stats.kstest(line / 2, stats.laplace.cdf).pvalue < 1e-20


@pytest.mark.parametrize("size", [0, 1, 2, 500])
def test_draws_are_int64_and_determined_by_the_seed(size):
    first, same, other = (rounded_k_norm(2.0**20, size, SeededBits(seed)) for seed in (7, 7, 8))
    assert (first.shape, first.dtype) == ((size,), np.int64)
    np.testing.assert_array_equal(first, same)
    assert size == 0 or (first != other).any()


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, -np.inf, 2.0**40 * 1.001, 1e300])
def test_a_k_norm_scale_out_of_range_is_refused(scale, size):
    with pytest.raises(ValueError, match="scale must be in"):
        rounded_k_norm(scale, size, SeededBits(0))


@pytest.mark.parametrize("scale", [2.0**40, 7, 1e-12, 5e-324, np.float32(1.5)])
def test_scales_at_the_limit_and_of_other_types_are_drawn_exactly(scale):
    words = SeededBits(9).words(12)
    words[1] = 2**40
    assert rounded_k_norm(scale, 3, KNormWords(words)).tolist() == k_norm_exact_draw(
        float(scale), words, 3
    )


# Mechanisms: the noise is what was paid for, on a public grid, whatever the statistic.


mechanism_mp = mpmath.mp.clone()
mechanism_mp.dps = 50
MECHANISMS = {"gaussian": GaussianMechanism, "laplace": LaplaceMechanism}
mechanism_both_laws = pytest.mark.parametrize("law", MECHANISMS)
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
    rounding = mechanism_mp.sqrt(size) if noise.law == "gaussian" else mechanism_mp.mpf(size)
    return mechanism_mp.mpf(stated) * (1 + mechanism_mp.mpf("1e-6")) + noise.grid * rounding


@pytest.mark.sample(1)
@mechanism_both_laws
@given(price=prices, stated=scales, bound=scales, size=sizes)
def test_the_noise_is_what_the_exact_formula_needs(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    needed = exactly_paid(noise, stated, size) / mechanism_mp.mpf(price)
    assert needed <= noise.scale <= needed * (1 + mechanism_mp.mpf("3e-14"))


@pytest.mark.sample(1)
@mechanism_both_laws
@given(price=prices, stated=scales, bound=scales, size=sizes)
def test_scale_times_price_is_the_sensitivity_paid_for(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    assert noise.sensitivity == pytest.approx(float(exactly_paid(noise, stated, size)), rel=1e-15)
    # the recorded price is never below what scale and sensitivity say
    assert mechanism_mp.mpf(price_of(noise)) >= mechanism_mp.mpf(
        noise.sensitivity
    ) / mechanism_mp.mpf(noise.scale)
    assert price_of(noise) == pytest.approx(price, rel=1e-13)


@mechanism_both_laws
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_a_price_of_any_float_type_is_computed_with_in_double_precision(law, kind):
    price = kind(0.3)
    noise = calibrate(law, price, 1e5, 1e5, 7)
    assert noise == calibrate(law, float(price), 1e5, 1e5, 7)
    assert all(isinstance(x, float) for x in (noise.scale, noise.mu, noise.epsilon))


@pytest.mark.sample(1)
@mechanism_both_laws
@given(price=prices, stated=scales, bound=scales, size=sizes)
def test_the_grid_is_a_power_of_two_fine_enough_and_exact(law, price, stated, bound, size):
    noise = calibrate(law, price, stated, bound, size)
    assert math.frexp(noise.grid)[0] == 0.5
    assert bound / noise.grid < 2.0**52
    # finer than the noise by 2^23, unless exactness needs a coarser one
    smallest_exact = bound * 2.0**-51
    assert noise.grid <= max(noise.scale * 2.0**-23, 2 * smallest_exact)


@mechanism_both_laws
def test_a_moderate_bound_leaves_the_grid_at_the_noise_scale(law):
    noise = calibrate(law, 0.5, 1.0, 1e6)
    assert noise.scale * 2.0**-25 < noise.grid <= noise.scale * 2.0**-23
    assert noise.scale == pytest.approx(2.0, rel=2e-6)


@mechanism_both_laws
def test_a_huge_bound_coarsens_the_grid_and_is_paid_for(law):
    noise = calibrate(law, 1.0, 1.0, 1e20, size=9)
    assert noise.grid > 1e4
    assert noise.sensitivity > noise.grid * (3 if law == "gaussian" else 9)
    steps = align(np.array([1e300, -1e300, 1e20, 5e19]), noise)
    assert np.abs(steps).max() < 2.0**52
    released = add_noise(np.full(9, 1e20), noise, SeededBits(0))
    np.testing.assert_allclose(released, 1e20, atol=50 * noise.scale)


@pytest.mark.sample(1)
@mechanism_both_laws
@given(price=st.floats(1e-3, 100), bound=scales, value=st.floats(allow_nan=True))
def test_outputs_are_finite_multiples_of_the_grid(law, price, bound, value):
    noise = calibrate(law, price, 1.0, bound, 3)
    released = add_noise(np.array([value, 0.0, -value]), noise, SeededBits(1))
    assert released.dtype == np.float64
    steps = released / noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.abs(released).max() <= bound * (1 + 1e-9) + 60 * noise.scale + noise.grid


@mechanism_both_laws
def test_statistics_beyond_the_bound_are_clamped_and_nan_counts_as_zero(law):
    noise = calibrate(law, 1.0, 1.0, 2.0)
    broken = np.array([np.nan, np.inf, -np.inf, 1e308, -3.0, 2.0])
    mended = np.array([0.0, 2.0, -2.0, 2.0, -2.0, 2.0])
    np.testing.assert_array_equal(align(broken, noise) * noise.grid, mended)
    released = [add_noise(values, noise, SeededBits(2)) for values in (broken, mended)]
    np.testing.assert_array_equal(*released)


@pytest.mark.sample(1)
@mechanism_both_laws
@given(st.floats(-3, 3), st.floats(-3, 3))
def test_alignment_moves_values_by_half_a_step_and_no_two_apart_by_more(law, x, y):
    noise = calibrate(law, 1.0, 1.0, 2.0)
    a, b = align(np.array([x, y]), noise) * noise.grid
    assert abs(a - b) <= abs(x - y) + noise.grid
    assert abs(a - np.clip(x, -2, 2)) <= noise.grid / 2


@mechanism_both_laws
def test_the_statistic_is_not_changed_in_place(law):
    values = np.array([np.nan, 5.0])
    add_noise(values, calibrate(law, 1.0), SeededBits(3))
    np.testing.assert_array_equal(values, [np.nan, 5.0])


@pytest.mark.sample(4)
@mechanism_both_laws
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


@mechanism_both_laws
def test_coordinates_and_calls_get_fresh_noise(law):
    noise, bits = calibrate(law, 1.0, size=1000), SystemBits()
    first, second = (add_noise(np.zeros(1000), noise, bits) for _ in range(2))
    assert np.unique(first).size > 990
    assert np.count_nonzero(first == second) < 10
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / math.sqrt(1000)


@mechanism_both_laws
@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_sensitivity_or_bound_that_is_not_positive_and_finite_is_refused(law, bad):
    for stated, bound in ((bad, 1.0), (1.0, bad)):
        with pytest.raises(ValueError, match="must state a positive finite sensitivity and bound"):
            calibrate(law, 1.0, stated, bound)


@mechanism_both_laws
def test_a_statistic_without_coordinates_is_refused(law):
    with pytest.raises(ValueError, match="at least one coordinate"):
        calibrate(law, 1.0, size=0)


@mechanism_both_laws
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


@mechanism_both_laws
@pytest.mark.parametrize(("stated", "bound", "price"), EXTREMES)
def test_extreme_scales_work_or_are_refused_clearly(law, stated, bound, price):
    noise = noise_or_refusal(law, price, stated, bound, 2)
    if isinstance(noise, str):
        assert "leaves the range of floating point" in noise
    else:
        assert exactly_paid(noise, stated, 2) / mechanism_mp.mpf(price) <= noise.scale < math.inf
        assert np.isfinite(add_noise(np.full(2, bound), noise, SeededBits(5))).all()


@mechanism_both_laws
@pytest.mark.parametrize("stated", [1e-200, 1e200])
def test_extreme_units_change_nothing_but_the_unit(law, stated):
    power = 2.0 ** round(math.log2(stated))
    extreme, usual = (calibrate(law, 0.5, s, s, 4) for s in (power, 1.0))
    assert extreme.scale / power == pytest.approx(usual.scale, rel=1e-12)
    draws = [add_noise(np.zeros(4), noise, SeededBits(6)) for noise in (extreme, usual)]
    np.testing.assert_array_equal(draws[0] / power, draws[1])


@mechanism_both_laws
@pytest.mark.parametrize("size", [1, 10**4, 10**8])
@pytest.mark.parametrize("price", [1e-10, 1e-6, 1.0, 100.0])
def test_noise_that_is_calibrated_can_be_drawn(law, size, price):
    # a scale that the sampler refuses would fail after the release has been charged
    noise = noise_or_refusal(law, price, 1.0, 1.0, size)
    assert isinstance(noise, str) or 0 < noise.scale / noise.grid <= 2.0**40


@mechanism_both_laws
def test_noise_is_frozen(law):
    with pytest.raises(dataclasses.FrozenInstanceError):
        calibrate(law, 1.0).scale = 0.0


def precise_and_small(y):
    """Tell which values lie in (-1/2, 1/2) off the multiples of 2^-53."""
    return (np.abs(y) < 0.5) & (y * 2.0**53 != np.rint(y * 2.0**53))


@mechanism_both_laws
def test_no_output_betrays_its_input_by_its_last_digits(law):
    noise = calibrate(law, gdp_mu(1.0, 1e-5) if law == "gaussian" else 1.0)
    for f in (0.0, 1.0):
        assert not precise_and_small(add_noise(np.full(100_000, f), noise, SystemBits())).any()
    # the same event tells apart what float noise makes of the two inputs
    naive = 3.73 * np.random.default_rng(0).standard_normal(100_000)
    assert 0.06 < precise_and_small(naive).mean() < 0.08
    assert not precise_and_small(1.0 + naive).any()


# K-norm noise and temperatures: what the exact formulas need, on a public grid.


pure_mp = mpmath.mp.clone()
pure_mp.dps = 50
PURE_MECHANISMS = {"k-norm": KNormMechanism, "exponential": ExponentialMechanism}
both = pytest.mark.parametrize("law", PURE_MECHANISMS)


def pure_calibrate(law, price, stated=1.0, bound=1.0, size=1):
    """Calibrate to the fact that the law needs; traps stand in the other ones."""
    facts = {"l1": math.inf, "l2": math.inf, "spread": math.inf}
    facts["l2" if law == "k-norm" else "spread"] = stated
    return PURE_MECHANISMS[law](price).calibrate(
        Sensitivity(bound=bound, theorem="test", **facts), size
    )


@pytest.mark.sample(1)
@both
@given(price=prices, stated=scales, bound=scales, size=st.integers(1, 10**6))
def test_the_scale_is_what_the_exact_formula_needs(law, price, stated, bound, size):
    noise = pure_calibrate(law, price, stated, bound, size)
    paid = pure_mp.mpf(stated) * (1 + pure_mp.mpf("1e-6"))
    if law == "k-norm":
        # rounding moves the vector by at most half a step in every coordinate, twice
        paid += noise.grid * pure_mp.sqrt(size)
    needed = paid / pure_mp.mpf(price)
    assert needed <= noise.scale <= needed * (1 + pure_mp.mpf("3e-14"))
    assert noise.sensitivity == pytest.approx(float(paid), rel=1e-15)
    assert (noise.law, noise.mu, noise.epsilon, noise.delta) == (law, 0.0, price, 0.0)


@pytest.mark.sample(1)
@both
@given(price=prices, stated=scales, bound=scales, size=st.integers(1, 10**6))
def test_the_grid_is_a_power_of_two_and_exact(law, price, stated, bound, size):
    noise = pure_calibrate(law, price, stated, bound, size)
    assert math.frexp(noise.grid)[0] == 0.5
    assert bound / noise.grid < 2.0**52
    if law == "exponential":
        # the last digits of a float draw are cut off, whatever the scores are
        assert 2.0**31 < bound / noise.grid <= 2.0**32
        assert noise.grid == pure_calibrate(law, 1.0, 1.0, bound, 1).grid


@both
@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_facts_that_are_not_positive_and_finite_are_refused(law, bad):
    for stated, bound in ((bad, 1.0), (1.0, bad)):
        with pytest.raises(ValueError, match=r"must state a .*finite"):
            pure_calibrate(law, 1.0, stated, bound)


@both
@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan, True, "1", None])
def test_a_pure_price_that_is_not_positive_and_finite_is_refused(law, bad):
    with pytest.raises(ValueError, match=r"epsilon must be .*finite.* greater than 0"):
        PURE_MECHANISMS[law](bad)


@both
def test_what_is_calibrated_is_frozen(law):
    with pytest.raises(dataclasses.FrozenInstanceError):
        pure_calibrate(law, 1.0).scale = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        PURE_MECHANISMS[law](1.0).epsilon = 2.0


@pytest.mark.sample(1)
@pytest.mark.parametrize("bits", [SeededBits(4), SystemBits()], ids=type)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_k_norm_noise_has_the_declared_scale_and_law(bits, size):
    noise = pure_calibrate("k-norm", 0.7, size=size)
    drawn = [(add_noise(np.full(size, 0.25), noise, bits) - 0.25) for _ in range(3000)]
    lengths = np.linalg.norm(drawn, axis=1) / noise.scale
    assert stats.kstest(lengths, stats.gamma(size).cdf).pvalue > 1e-6
    assert np.abs(np.mean(drawn, axis=0)).max() < 6 * np.std(drawn) / math.sqrt(3000)


def test_k_norm_draws_are_clamped_statistics_on_the_grid():
    noise = pure_calibrate("k-norm", 1.0, 1.0, 2.0, 6)
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
        noise = pure_calibrate("k-norm", price, 1.0, bound, size)
    except ValueError as error:
        refusal = str(error)
    else:
        assert 0 < noise.scale / noise.grid <= 2.0**40
        assert np.isfinite(add_noise(np.zeros(2), noise, SeededBits(0))).all()
        return
    assert "leaves the range of floating point" in refusal
