# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random batches of rows have exactly the laws that the accountant assumes."""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.privacy import Sampling
from skdp.privacy.kernel import samplers
from skdp.privacy.kernel.batches import fixed_subset, poisson_subset, repeated_subset
from skdp.privacy.kernel.samplers import SeededBits, geometric
from tests.privacy.test_samplers import Words

mp = mpmath.mp.clone()
mp.dps = 60
SCALES = (0.05, 0.3, 1.0, 9.5, 1e3, 1e7, 2.0**40)


def exact_geometric(scale, words):
    """Return floor(-scale log u) of the real number u whose binary digits are the words."""
    u = sum((mp.mpf(int(w)) / mp.mpf(2) ** (64 * i) for i, w in enumerate(words, 1)), mp.mpf(0))
    return int(mp.floor(-mp.mpf(scale) * mp.log(u)))


def near_boundary(scale, k, shift):
    """Return three words whose u is `shift` units of the last place from exp(-k / scale)."""
    digits = int(mp.floor(mp.exp(-mp.mpf(k) / mp.mpf(scale)) * mp.mpf(2) ** 192)) + shift
    mask = 2**64 - 1
    return [digits >> 128, digits >> 64 & mask, digits & mask]


@pytest.mark.parametrize("scale", SCALES)
def test_geometric_draws_are_exact_on_crafted_words(scale):
    rest = 0x9E3779B97F4A7C15
    for k in {1, 2, 3, math.ceil(scale), math.ceil(5 * scale)}:
        if k > 20 * scale:
            continue
        for shift in (-2, -1, 1, 2):
            words = near_boundary(scale, k, shift)
            if not 0 < words[0] < 2**64:
                continue
            (drawn,) = geometric(scale, 1, Words(words, rest))
            assert drawn == exact_geometric(scale, [*words, rest])
            assert drawn == (k if shift < 0 else k - 1)


@pytest.mark.parametrize("scale", SCALES)
def test_geometric_draws_are_exact_on_any_words(scale):
    rng = np.random.default_rng(0)
    words = rng.integers(1, 2**64, 300, dtype=np.uint64)
    words[:40] >>= np.arange(5, 45, dtype=np.uint64)
    words[40:44] = [2**64 - 1, 2**64 - 2, 2**63, 2**63 - 1]
    drawn = geometric(scale, len(words), Words(words))
    # further words are read for undecided draws only, and decide nothing here
    exact = [exact_geometric(scale, [w, 0x9E3779B97F4A7C15]) for w in words]
    np.testing.assert_array_equal(drawn, exact)


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.5, 300.0])
def test_geometric_draws_have_their_law(scale):
    drawn = geometric(scale, 100_000, SeededBits(3))
    law = stats.geom(-math.expm1(-1 / scale), loc=-1)
    cuts = np.unique(law.ppf(np.linspace(0.1, 0.9, 9)))
    edges = np.concatenate([[-1], cuts, [np.inf]])
    expected = np.diff(np.append(law.cdf(edges[:-1]), 1.0)) * len(drawn)
    found = np.histogram(drawn, edges + 0.5)[0]
    assert stats.chisquare(found, expected).pvalue > 1e-4


def test_few_geometric_draws_need_exact_arithmetic(monkeypatch):
    calls, resolve = [], samplers._resolve
    monkeypatch.setattr(samplers, "_resolve", lambda *a, **k: calls.append(1) or resolve(*a, **k))
    geometric(100.0, 100_000, SeededBits(0))
    assert len(calls) < 5


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**41])
def test_geometric_refuses_a_bad_scale(scale):
    with pytest.raises(ValueError, match="scale must be"):
        geometric(scale, 1, SeededBits(0))


def batches(sampling, size, seed=0):
    bits = SeededBits(seed)
    return [sampling.draw(bits) for _ in range(size)]


@pytest.mark.parametrize(("n_rows", "batch_size"), [(40, 3.7), (40, 39.5), (3, 0.5), (500, 20)])
def test_poisson_batches_have_independent_rows(n_rows, batch_size):
    sampling, n_batches = Sampling("poisson", n_rows, batch_size), 4000
    member = np.zeros((n_batches, n_rows))
    for row, batch in zip(member, batches(sampling, n_batches), strict=True):
        assert (np.diff(batch) > 0).all()
        row[batch] = 1
    q = batch_size / n_rows
    counts = member.sum(axis=0)
    assert np.sum((counts - n_batches * q) ** 2) / (n_batches * q * (1 - q)) < stats.chi2.isf(
        1e-4, n_rows
    )
    # the size of a batch is binomial: rows are independent of each other
    spread = member.sum(axis=1).var() / (n_rows * q * (1 - q))
    assert abs(spread - 1) < 5 * math.sqrt(2 / n_batches) + 0.02
    # neighbouring rows, rows far apart, and one row in two releases
    for one, other in (
        (member[:, 0], member[:, 1]),
        (member[:, 0], member[:, -1]),
        (member[:-1, 0], member[1:, 0]),
        (member[:-1, :-1].ravel(), member[1:, 1:].ravel()),
    ):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / math.sqrt(len(one))


def test_the_size_of_a_poisson_batch_is_binomial():
    sizes = [len(b) for b in batches(Sampling("poisson", 30, 6), 5000)]
    law = stats.binom(30, 0.2)
    edges = np.array([0, 4, 5, 6, 7, 8, 9, 31])
    expected = np.diff(law.cdf(edges - 1)) * len(sizes)
    assert stats.chisquare(np.histogram(sizes, edges - 0.5)[0], expected).pvalue > 1e-4


def test_a_poisson_subset_ends_at_the_last_row_and_may_be_empty():
    bits = SeededBits(1)
    found = np.concatenate([poisson_subset(5, 1.0, bits) for _ in range(200)])
    assert set(found) == set(range(5))
    assert min(len(poisson_subset(5, 100.0, bits)) for _ in range(20)) == 0
    # a rate next to 1: blocks of gaps go on until the data end
    assert len(poisson_subset(10_000, 0.03, bits)) == 10_000


@pytest.mark.parametrize(("n_rows", "size"), [(5, 2), (5, 3), (6, 1), (4, 4), (7, 5), (1, 1)])
def test_fixed_subsets_are_uniform(n_rows, size):
    bits = SeededBits(2)
    drawn = Counter(tuple(fixed_subset(n_rows, size, bits)) for _ in range(4000))
    subsets = list(itertools.combinations(range(n_rows), size))
    assert set(drawn) <= set(subsets)
    if len(subsets) > 1:
        assert stats.chisquare([drawn[s] for s in subsets]).pvalue > 1e-4


@pytest.mark.parametrize(("n_rows", "size"), [(3, 2), (2, 2), (1, 1), (5, 1)])
def test_repeated_draws_are_uniform_and_independent(n_rows, size):
    bits = SeededBits(4)
    drawn = Counter(tuple(repeated_subset(n_rows, size, bits)) for _ in range(4000))
    law = Counter(tuple(sorted(p)) for p in itertools.product(range(n_rows), repeat=size))
    assert set(drawn) <= set(law)
    if len(law) > 1:
        expected = np.array([law[key] for key in law]) * 4000 / n_rows**size
        assert stats.chisquare([drawn[key] for key in law], expected).pvalue > 1e-4


def test_large_fixed_subsets_have_their_size():
    for kind, distinct in (("without-replacement", True), ("with-replacement", False)):
        for size in (1, 700, 1999):
            (batch,) = batches(Sampling(kind, 2000, size), 1)
            assert len(batch) == size
            assert (np.diff(batch) >= (1 if distinct else 0)).all()
            assert 0 <= batch[0] <= batch[-1] < 2000


def test_all_rows_are_no_batch():
    for kind in ("poisson", "without-replacement"):
        assert batches(Sampling(kind, 7, 7), 1) == [None]
    assert len(batches(Sampling("with-replacement", 7, 7), 1)[0]) == 7
