# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The samplers, against exact arithmetic: mpmath for every bit, chi-square for the laws."""

from decimal import Context, Decimal, localcontext

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from skdp.privacy.kernel import samplers
from skdp.privacy.kernel.samplers import SeededBits, SystemBits

mp = mpmath.mp.clone()
mp.dps = 60
LAWS = {"gaussian": samplers.rounded_gaussian, "laplace": samplers.rounded_laplace}
QUANTILES = {"gaussian": lambda u: -ndtri(u), "laplace": lambda u: -np.log(u)}
WIDTH = {"gaussian": 64, "laplace": 63}  # bits before the point of u, sign excluded
FROZEN = {"gaussian": stats.norm(), "laplace": stats.laplace()}
both_laws = pytest.mark.parametrize("law", LAWS)
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
    draws = LAWS[law](scale, n, bits)
    edge = int(scale * FROZEN[law].isf(20 / n)) + 1
    cells = np.arange(-edge, edge + 1)
    upper = FROZEN[law].cdf((cells + 0.5) / scale)
    upper[-1] = 1.0
    counts = [np.count_nonzero(np.clip(draws, -edge, edge) == cell) for cell in cells]
    expected = n * np.diff(upper, prepend=0.0)
    assert stats.chisquare(counts, expected).pvalue > P_VALUE[bits.seeded]
    gap = np.abs(np.cumsum(counts) / n - upper).max()
    assert stats.kstwobign.sf(gap * np.sqrt(n)) > P_VALUE[bits.seeded]


@both_laws
@both_sources
@pytest.mark.parametrize("scale", [2.0**24, 1.3 * 2.0**23])
def test_grid_scales_follow_the_continuous_law(law, bits, scale):
    draws = LAWS[law](scale, 100_000, bits)
    assert stats.kstest(draws / scale, FROZEN[law].cdf).pvalue > P_VALUE[bits.seeded]
    # the last bit is fair: nothing was rounded coarser than the grid
    odd = np.count_nonzero(draws & 1)
    assert stats.binomtest(odd, draws.size).pvalue > P_VALUE[bits.seeded]


@both_laws
@pytest.mark.parametrize("scale", [0.3, 10.0, 2.0**24, 1.7 * 2.0**33])
def test_typical_words_give_the_exact_integers_without_exact_arithmetic(law, scale, resolved):
    words = SeededBits(2).words(400)
    drawn = LAWS[law](scale, 400, Words(words))
    rest = [Words([]).rest] * 3
    assert drawn.tolist() == [exact_draw(law, scale, int(word), rest) for word in words]
    assert len(resolved) <= (40 if scale > 2**30 else 0)


@both_laws
@pytest.mark.parametrize("scale", [0.3, 10.0, 2.0**24])
@pytest.mark.parametrize("sign", [0, 1])
def test_words_with_few_significant_bits_are_decided_exactly(law, scale, sign, resolved):
    magnitudes = [0, 1, 2, 3, 1000, 2**20 - 1, 2**31, 2**42, samplers._FEW_BITS - 1]
    for magnitude in magnitudes:
        words = [2 * magnitude + sign, 3**40, 5**27, 7**22]
        drawn = LAWS[law](scale, 1, Words(words))
        assert drawn.tolist() == [exact_draw(law, scale, words[0], words[1:])]
    assert len(resolved) == len(magnitudes)


@both_laws
@pytest.mark.parametrize(
    ("scale", "r"), [(0.3, 0), (10.0, 0), (10.0, 7), (10.0, 31), (2.0**24, 3), (2.0**24, 2**25 + 1)]
)
def test_words_on_a_rounding_boundary_are_decided_exactly(law, scale, r, resolved):
    answers = []
    for shift in (-(2**80), -2, -1, 1, 2, 2**80):
        words = boundary_words(law, scale, r, shift)
        for first in (words[0], words[0] + 1):
            drawn = LAWS[law](scale, 1, Words([first, *words[1:]]))
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
        drawn = LAWS[law](10.0, 1, Words(words))
        assert drawn.tolist() == [r + (offset > 0)]
    assert not resolved


@pytest.mark.covering
@both_laws
@pytest.mark.parametrize("scale", [0.3, 1.7, 10.0, 2.0**24])
def test_exact_arithmetic_alone_gives_the_same_integers(law, scale, resolved, monkeypatch):
    words = SeededBits(3).words(300)
    fast = LAWS[law](scale, 300, Words(words))
    assert not resolved
    monkeypatch.setattr(samplers, "_FEW_BITS", 2**63)
    np.testing.assert_array_equal(LAWS[law](scale, 300, Words(words)), fast)
    assert len(resolved) == 300


@both_laws
def test_the_last_bit_of_a_word_is_the_sign(law):
    words = SeededBits(4).words(1000) & ~np.uint64(1)
    positive = LAWS[law](100.0, 1000, Words(words))
    negative = LAWS[law](100.0, 1000, Words(words | np.uint64(1)))
    assert (positive >= 0).all()
    np.testing.assert_array_equal(positive, -negative)


@both_laws
def test_draws_are_int64_whatever_their_number(law):
    for size in (0, 1, samplers._BATCH, samplers._BATCH + 1):
        draws = LAWS[law](2.0**24, size, SeededBits(5))
        assert (draws.shape, draws.dtype) == ((size,), np.int64)


@both_laws
@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, -np.inf, 2.0**40 * 1.001, 1e300])
def test_a_scale_out_of_range_is_refused(law, scale):
    with pytest.raises(ValueError, match="scale must be in"):
        LAWS[law](scale, 3, SeededBits(0))


@both_laws
@pytest.mark.parametrize("scale", [1e-3, 1e-4, 1e-12])
def test_a_tiny_scale_draws_zero_even_from_few_significant_bits(law, scale):
    assert LAWS[law](scale, 2, Words([2**30, 2**40 + 1])).tolist() == [0, 0]


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
