# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""K-norm noise, against exact arithmetic (mpmath, word by word) and against its law."""

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from skdp.privacy.kernel.samplers import SeededBits, SystemBits, rounded_laplace
from skdp.privacy.laws import k_norm as _k_norm
from skdp.privacy.laws.k_norm import rounded_k_norm

mp = mpmath.mp.clone()
mp.dps = 90
# False alarm per check; the seeded ones never change.
P_VALUE = {True: 1e-6, False: 1e-9}
both_sources = pytest.mark.parametrize("bits", [SeededBits(1), SystemBits()], ids=type)


class Words:
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
    u = [sum(mp.ldexp(w, -64 * i) for i, w in enumerate(c, 1)) for c in zip(*rows, strict=True)]
    g = [s * mp.sqrt(2) * mp.erfinv(1 - 2 * a) for a, s in zip(u[:size], signs, strict=True)]
    length = mp.sqrt(sum(a * a for a in g))
    return [a / length for a in g], [-mp.log(a) for a in u[size:]]


def exact_draw(scale, words, size):
    direction, e = exact_parts(words, size)
    return [int(mp.nint(mp.mpf(scale) * sum(e) * a)) for a in direction]


def sample(scale, size, n, bits):
    return np.array([rounded_k_norm(scale, size, bits) for _ in range(n)])


@pytest.fixture
def slow(monkeypatch):
    """Count the vectors that are decided in exact arithmetic."""
    calls, exactly = [], _k_norm._round_exactly
    monkeypatch.setattr(_k_norm, "_round_exactly", lambda *a: calls.append(a) or exactly(*a))
    return calls


def test_float_variables_are_far_better_than_the_margin_allows():
    rng = np.random.default_rng(0)
    p = np.concatenate([2.0 ** -rng.uniform(1, 65, 600), rng.uniform(0, 0.5, 900)])
    x, e = -ndtri(p), -np.log(2 * p)
    pairs = zip(x.tolist(), p.tolist(), strict=True)
    # errors of the tail, divided by its slope, are errors of the quantile
    errors = np.array([float((mp.ncdf(-mp.mpf(a)) - b) / mp.npdf(a)) for a, b in pairs])
    log_errors = e + np.array([mp.log(2 * mp.mpf(b)) for b in p.tolist()])
    for error, value in ((errors, x), (log_errors.astype(float), e)):
        assert (np.abs(error) / (1 + value)).max() < _k_norm._FLOAT_ERROR / 16


@pytest.mark.covering
@pytest.mark.parametrize("error", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize("scale", [0.05, 0.5, 4.0])
def test_what_is_rounded_surely_is_the_same_wherever_the_errors_lead(scale, error):
    rng = np.random.default_rng(1)
    for _ in range(300):
        g, r = rng.standard_normal(2), rng.exponential()
        result = _k_norm._round_surely(scale, g, np.full(2, error), r, error)
        for signs in np.mgrid[-1:2:2, -1:2:2, -1:2:2].reshape(3, 8).T:
            moved = g + error * signs[:2]
            x = scale * (r + error * signs[2]) * moved / np.linalg.norm(moved)
            assert result is None or (np.rint(x) == result).all()


@pytest.mark.parametrize("scale", [0.3, 50.0, 2.0**24, 1.7 * 2.0**33])
@pytest.mark.parametrize("size", [2, 5])
def test_typical_words_give_the_exact_integers(scale, size, slow):
    for seed in range(8):
        words = SeededBits(seed).words(6 * size)
        assert rounded_k_norm(scale, size, Words(words)).tolist() == exact_draw(scale, words, size)
    assert len(slow) <= (8 if scale > 2**30 else 0)


@pytest.mark.covering
@pytest.mark.parametrize("word", [0, 1, 2, 3, 1000, 2**20, 2**33 + 1, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("which", [[0], [3], [1, 2], [0, 1, 3, 4], [0, 1, 2, 3, 4, 5]])
def test_words_at_the_ends_of_the_interval_are_decided_exactly(word, which):
    words = SeededBits(word % 1000).words(24)
    words[which] = word
    assert rounded_k_norm(1e5, 3, Words(words)).tolist() == exact_draw(1e5, words, 3)


@pytest.mark.covering
@pytest.mark.parametrize("scale", [0.3, 100.0, 2.0**24])
@pytest.mark.parametrize("place", [1, 2, 4])
def test_words_next_to_a_rounding_boundary_are_decided_exactly(scale, place, slow):
    for seed in range(4):
        words = SeededBits(seed).words(6 * 5).reshape(5, 6)
        direction, e = exact_parts(words, 3)
        value = mp.mpf(scale) * sum(e) * direction[1]
        r = int(mp.floor(abs(value)))
        # the u of the last exponential that puts coordinate 1 on the boundary r + 1/2
        e_last = (r + 0.5) / abs(direction[1]) / mp.mpf(scale) - e[0] - e[1]
        if e_last <= 0:
            continue
        u = int(mp.floor(mp.exp(-e_last) * mp.mpf(2) ** (64 * place)))
        answers = []
        for shift in (-1, 1):
            for i in range(place):
                words[i, 5] = (u + shift) >> (64 * (place - 1 - i)) & (2**64 - 1)
            drawn = rounded_k_norm(scale, 3, Words(words.ravel()))
            assert drawn.tolist() == exact_draw(scale, words, 3)
            answers.append(abs(drawn[1]))
        # a smaller u is a longer vector
        assert answers == [r + 1, r]
    assert len(slow) >= 4


@pytest.mark.covering
@pytest.mark.parametrize(("size", "n"), [(2, 100), (5, 50), (100, 3), (1000, 1)])
@pytest.mark.parametrize("relative", [2.0**-20, 1.0])
def test_exact_arithmetic_alone_gives_the_same_integers(size, n, relative, slow, monkeypatch):
    scale = relative * 2.0**24 / np.sqrt(size)
    words = [SeededBits(seed).words(2 * size) for seed in range(n)]
    fast = [rounded_k_norm(scale, size, Words(w, seed=1)) for w in words]
    assert not slow
    monkeypatch.setattr(_k_norm, "_FLOAT_ERROR", 1.0)
    exact = [rounded_k_norm(scale, size, Words(w, seed=2)) for w in words]
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


@pytest.mark.covering
@both_sources
@pytest.mark.parametrize("size", [2, 5, 60])
def test_the_length_has_the_gamma_law_and_its_moments(bits, size):
    scale = 2.0**24 / np.sqrt(size)
    bound = stats.norm.isf(P_VALUE[bits.seeded] / 2)
    p_value, scores = length_statistics(sample(scale, size, 4000, bits), scale)
    assert p_value > P_VALUE[bits.seeded]
    assert scores.max() < bound
    # the same statistics see a mutant with half the scale
    p_value, scores = length_statistics(sample(scale / 2, size, 1000, bits), scale)
    assert p_value < 1e-20
    assert scores.min() > 2 * bound


@pytest.mark.covering
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
        assert stats.kstest(c * c, squares.cdf).pvalue > P_VALUE[bits.seeded]
        assert stats.binomtest(int(np.sum(c > 0)), len(c)).pvalue > P_VALUE[bits.seeded]
        assert stats.spearmanr(length, np.abs(c)).pvalue > P_VALUE[bits.seeded]
    if size == 2:
        angle = np.arctan2(draws[:, 1], draws[:, 0]) / (2 * np.pi) % 1
        assert stats.kstest(angle, stats.uniform.cdf).pvalue > P_VALUE[bits.seeded]
    # the last bits are fair: nothing was rounded coarser than the grid
    assert stats.binomtest(int(np.sum(draws % 2)), draws.size).pvalue > P_VALUE[bits.seeded]


def cell_probabilities(scale, edge):
    """Return the law of the rounded magnitudes in the plane on [0, edge]^2, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    x = np.arange(2 * edge + 1)[:, np.newaxis] / 2 + (nodes + 1) / 4
    density = np.exp(-np.hypot(x[:, :, np.newaxis, np.newaxis], x) / scale)
    mass = np.einsum("iajb,a,b->ij", density, weights, weights) / (2 * np.pi * scale**2) / 16
    # magnitude 0 is [0, 1/2), every other one is two halves of a unit
    starts = [0, *range(1, 2 * edge + 1, 2)]
    return 4 * np.add.reduceat(np.add.reduceat(mass, starts, axis=0), starts, axis=1)


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
def test_a_scale_out_of_range_is_refused(scale, size):
    with pytest.raises(ValueError, match="scale must be in"):
        rounded_k_norm(scale, size, SeededBits(0))


@pytest.mark.parametrize("scale", [2.0**40, 7, 1e-12, 5e-324, np.float32(1.5)])
def test_scales_at_the_limit_and_of_other_types_are_drawn_exactly(scale):
    words = SeededBits(9).words(12)
    words[1] = 2**40
    assert rounded_k_norm(scale, 3, Words(words)).tolist() == exact_draw(float(scale), words, 3)
