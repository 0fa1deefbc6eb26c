# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The samplers of noise against exact probabilities, another exact sampler, and a peer's draws."""

import json
import random
from collections import Counter
from math import isqrt
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.privacy.kernel.samplers import (
    SeededBits,
    geometric,
    rounded_gaussian,
    rounded_laplace,
)
from skdp.privacy.laws.k_norm import rounded_k_norm

#: chance that a correct sampler fails a test
FALSE_ALARM = 1e-7
DRAWS = 200_000
SCALES = (0.4, 3.3, 40.0)
PEER = json.loads(Path(__file__).with_name("opendp_counts.json").read_text(encoding="utf-8"))


# Laws of the samplers, exact at 50 digits.


def gaussian_law(k, scale):
    """Return the probability of rint(scale Z) = k, Z standard normal."""
    with mpmath.workdps(50):
        ends = [(mpmath.mpf(k) + s / mpmath.mpf(2)) / mpmath.mpf(scale) for s in (-1, 1)]
        return float(
            (mpmath.erf(ends[1] / mpmath.sqrt(2)) - mpmath.erf(ends[0] / mpmath.sqrt(2))) / 2
        )


def laplace_law(k, scale):
    """Return the probability of rint(scale Z) = k, Z Laplace of scale 1."""
    with mpmath.workdps(50):
        scale = mpmath.mpf(scale)
        if k == 0:
            return float(1 - mpmath.exp(-1 / (2 * scale)))
        low, high = (abs(k) - mpmath.mpf("0.5")) / scale, (abs(k) + mpmath.mpf("0.5")) / scale
        return float((mpmath.exp(-low) - mpmath.exp(-high)) / 2)


def geometric_law(k, scale):
    """Return the probability of floor(scale E) = k, E exponential."""
    with mpmath.workdps(50):
        scale = mpmath.mpf(scale)
        return 0.0 if k < 0 else float(mpmath.exp(-k / scale) - mpmath.exp(-(k + 1) / scale))


LAWS = {
    "gaussian": (rounded_gaussian, gaussian_law),
    "laplace": (rounded_laplace, laplace_law),
    "geometric": (geometric, geometric_law),
}


def level_of_law(draws, law, scale):
    """Return the level of a chi-square test of draws against a law."""
    reach = int(8 * scale) + 3
    values = np.arange(-reach, reach + 1)
    expected = len(draws) * np.array([law(int(k), scale) for k in values])
    counts = Counter(draws.tolist())
    observed = np.array([counts[int(k)] for k in values])
    often = expected >= 25
    # all that is rare is one cell
    observed = np.append(observed[often], len(draws) - observed[often].sum())
    expected = np.append(expected[often], len(draws) - expected[often].sum())
    kept = expected > 5
    assert kept.sum() > 3
    total = float(((observed - expected)[kept] ** 2 / expected[kept]).sum())
    return stats.chi2.sf(total, kept.sum() - 1)


def level_of_two(first, second):
    """Return the level of a chi-square test that two counters have one law."""
    sizes = np.array([sum(first.values()), sum(second.values())])
    cells = [[first[k], second[k]] for k in sorted({*first, *second})]
    merged, cell = [], np.zeros(2)
    for one in cells:
        cell = cell + one
        if (cell.sum() * sizes / sizes.sum()).min() >= 25:
            merged.append(cell)
            cell = np.zeros(2)
    merged[-1] = merged[-1] + cell
    table = np.array(merged)
    expected = table.sum(axis=1)[:, None] * sizes / sizes.sum()
    return stats.chi2.sf(((table - expected) ** 2 / expected).sum(), len(table) - 1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", LAWS)
def test_draws_have_the_exact_probabilities(name, scale):
    sampler, law = LAWS[name]
    draws = sampler(scale, DRAWS, SeededBits(11))
    assert level_of_law(draws, law, scale) > FALSE_ALARM


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", LAWS)
def test_a_scale_that_is_off_by_a_twentieth_is_seen(name):
    sampler, law = LAWS[name]
    draws = sampler(0.95 * 40.0, DRAWS, SeededBits(11))
    assert level_of_law(draws, law, 40.0) < FALSE_ALARM


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_lengths_of_k_norm_noise_have_the_gamma_law(size):
    scale = 2.0**20
    lengths = [
        np.linalg.norm(rounded_k_norm(scale, size, bits).astype(float)) / scale
        for bits in [SeededBits(5)]
        for _ in range(3000)
    ]
    assert stats.kstest(lengths, stats.gamma(size).cdf).pvalue > FALSE_ALARM


# Another sampler: Canonne, Kamath and Steinke (2020), Algorithms 1 to 3, with integers alone.


def bernoulli_exp(numerator, denominator, rng):
    """Return a coin of probability exp(-numerator / denominator)."""
    while numerator > denominator:
        if not bernoulli_exp(denominator, denominator, rng):
            return False
        numerator -= denominator
    k = 1
    while rng.randrange(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(scale, rng):
    """Return k with probability proportional to exp(-|k| / scale), for a whole scale."""
    while True:
        rest = rng.randrange(scale)
        if not bernoulli_exp(rest, scale, rng):
            continue
        times = 0
        while bernoulli_exp(1, 1, rng):
            times += 1
        value = rest + scale * times
        negative = rng.random() < 0.5
        if not (negative and value == 0):
            return -value if negative else value


def discrete_gaussian(scale, rng):
    """Return k with probability proportional to exp(-k^2 / (2 scale^2)), for a whole scale."""
    square = scale * scale
    step = isqrt(square) + 1
    while True:
        value = discrete_laplace(step, rng)
        gap = abs(value) * step - square
        if bernoulli_exp(gap * gap, 2 * square * step * step, rng):
            return value


OTHERS = {"gaussian": discrete_gaussian, "laplace": discrete_laplace}


def without_zero(counts):
    return Counter({value: count for value, count in counts.items() if value})


def ours(name, scale, n_draws):
    return Counter(LAWS[name][0](scale, n_draws, SeededBits(3)).tolist())


def comparable(name, *counters):
    """Return counts under laws that are the same: those of Laplace differ at 0."""
    return [without_zero(c) if name == "laplace" else c for c in counters]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", OTHERS)
def test_a_sampler_of_others_has_the_same_law(name):
    rng = random.Random(7)
    theirs = Counter(OTHERS[name](40, rng) for _ in range(4000))
    assert level_of_two(*comparable(name, ours(name, 40.0, DRAWS), theirs)) > FALSE_ALARM


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", OTHERS)
def test_draws_of_a_peer_have_the_same_law(name):
    theirs = Counter({int(value): count for value, count in PEER[name].items()})
    assert sum(theirs.values()) == 400_000
    own = ours(name, PEER["scale"], 2 * DRAWS)
    assert level_of_two(*comparable(name, own, theirs)) > FALSE_ALARM
    off = ours(name, 0.95 * PEER["scale"], 2 * DRAWS)
    assert level_of_two(*comparable(name, off, theirs)) < FALSE_ALARM


def test_the_two_gaussian_laws_hardly_differ_at_this_scale():
    values = np.arange(-400, 401)
    rounded = np.array([gaussian_law(int(k), 40.0) for k in values])
    discrete = np.exp(-(values**2) / (2 * 40.0**2))
    discrete /= discrete.sum()
    assert np.abs(rounded - discrete).sum() / 2 < 1e-4
