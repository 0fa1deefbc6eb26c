# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The number of runs of a search has exactly the law that the accountant assumes."""

import itertools
import math
import pickle
from collections import Counter

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.privacy import Repetitions
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
from skdp.privacy.laws.selection import LAWS
from tests.privacy._laws import derivative
from tests.privacy.test_samplers import Words

MEANS = (1.0, 1.0001, 2.0, 20.0, 100.0)
every_law = pytest.mark.parametrize("law", LAWS)
every_mean = pytest.mark.parametrize("mean", MEANS)


@pytest.mark.covering
@every_mean
@every_law
def test_probabilities_add_up(law, mean):
    runs = Repetitions(law, mean)
    ks = range(40_000)
    probabilities = np.array([runs.probability(k) for k in ks])
    assert math.fsum(probabilities) == pytest.approx(1.0, rel=1e-12)
    assert probabilities @ np.array(ks) == pytest.approx(mean, rel=1e-9)
    assert runs.mean == pytest.approx(mean, rel=1e-12)
    assert runs.probability(-1) == 0
    assert (runs.probability(0) == 0) is (law != "poisson")
    for s in (0.0, 0.3, 0.99, 1.0):
        powers = [p * s**k for k, p in enumerate(probabilities)]
        assert runs.generating(s) == pytest.approx(math.fsum(powers), rel=1e-9, abs=1e-13)
        slopes = [k * p * s ** max(k - 1, 0) for k, p in enumerate(probabilities)]
        assert derivative(runs, s) == pytest.approx(math.fsum(slopes), rel=1e-9)


def test_the_laws_are_those_of_the_literature():
    known = stats.geom(1 / 20), stats.logser(1 - Repetitions("logarithmic", 20).gamma)
    for law, theirs in zip(("geometric", "logarithmic"), known, strict=True):
        ours = [Repetitions(law, 20).probability(k) for k in range(1, 500)]
        assert ours == pytest.approx(theirs.pmf(np.arange(1, 500)), rel=1e-9)
    ours = [Repetitions("poisson", 20).probability(k) for k in range(80)]
    assert ours == pytest.approx(stats.poisson(20).pmf(np.arange(80)), rel=1e-9)


@every_law
def test_the_winner_is_one_of_the_derivative(law):
    # phi' is proportional to (1 - (1 - gamma) s)^(-1 - eta), the form that proofs use
    runs = Repetitions(law, 7.0)
    quotient = derivative(runs, 0.9) / derivative(runs, 0.2)
    if law == "poisson":
        assert quotient == pytest.approx(math.exp(7.0 * 0.7))
    else:
        rest = 1 - (1 - runs.gamma) * np.array([0.2, 0.9])
        assert quotient == pytest.approx((rest[0] / rest[1]) ** (1 + runs.eta))


@pytest.mark.covering
@every_mean
@every_law
def test_numbers_have_the_law(law, mean):
    runs, bits, n = Repetitions(law, mean), SeededBits(3), 2000
    counts = Counter(runs.number(bits) for _ in range(n))
    # bins of equal weight, roughly
    edges, expected, low, weight = [], [], 0, 0.0
    for k in itertools.count():
        weight += runs.probability(k)
        if weight * n >= 100:
            edges.append((low, k))
            expected.append(weight)
            low, weight = k + 1, 0.0
        if (1 - math.fsum(expected)) * n < 150:
            break
    observed = [sum(counts[k] for k in range(a, b + 1)) for a, b in edges]
    expected.append(1 - math.fsum(expected))
    observed.append(n - sum(observed))
    if len(observed) == 2 and expected[1] * n < 5:
        assert observed[1] < 5
    else:
        assert stats.chisquare(observed, n * np.array(expected)).pvalue > 1e-4


@pytest.mark.parametrize("law", ["geometric", "logarithmic", "poisson"])
@pytest.mark.parametrize("mean", [2.0, 60.0])
def test_numbers_are_exact_next_to_a_boundary(law, mean):
    # 60 digits cannot tell the two sides apart, more digits must
    mp = mpmath.mp.clone()
    mp.dps = 200
    runs = Repetitions(law, mean)
    gamma, m = mp.mpf(runs.gamma), mp.mpf(mean)

    def probability(k):
        if law == "poisson":
            return mp.exp(-m) * m**k / mp.factorial(k)
        if law == "geometric":
            return gamma * (1 - gamma) ** (k - 1)
        return (1 - gamma) ** k / (-k * mp.log(gamma))

    first = int(law != "poisson")
    for k in (1, 2, 5):
        boundary = mp.fsum(probability(j) for j in range(first, k + 1))
        for side in (-1, 1):
            u = boundary + side * mp.mpf(10) ** -58
            digits = int(mp.floor(u * mp.mpf(2) ** 768))
            words = [digits >> (768 - 64 * i) & (2**64 - 1) for i in range(1, 13)]
            assert runs.number(Words(words)) == k + (side > 0)


def test_numbers_come_from_the_system():
    assert Repetitions("geometric", 5).number(SystemBits()) >= 1
    assert {Repetitions(law, 1).number(SystemBits()) for law in ("logarithmic", "geometric")} == {1}


@pytest.mark.parametrize("mean", [0.99, 0, -3, math.nan, math.inf, 2e6, "3", None, True])
@every_law
def test_means_out_of_range(law, mean):
    with pytest.raises(ValueError, match=r"expected number of runs must be .* in \[1, 1e\+06\]"):
        Repetitions(law, mean)


@pytest.mark.parametrize("law", ["binomial", "all", None, 3])
def test_unknown_laws(law):
    with pytest.raises(ValueError, match="law must be one of"):
        Repetitions(law, 3.0)


def test_equal_ones_are_equal():
    runs = Repetitions("logarithmic", 20)
    assert runs.gamma < 1
    copy = pickle.loads(pickle.dumps(runs))
    assert copy == runs == Repetitions("logarithmic", 20.0)
    assert hash(copy) == hash(runs)
    assert copy != Repetitions("geometric", 20)
    assert copy == Repetitions("logarithmic", np.int64(20)) == Repetitions("logarithmic", 2e1)


# -- mutants -----------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [20, 1])
def test_a_constant_number_of_runs_is_noticed(monkeypatch, constant):
    monkeypatch.setattr(Repetitions, "number", lambda self, bits: constant)
    with pytest.raises(AssertionError):
        test_numbers_have_the_law("geometric", 20.0)
