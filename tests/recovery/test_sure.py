# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The threshold of least estimated risk, and what thresholds are proved to do."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp._recovery.shrinkage import soft_threshold, sure_threshold, universal_threshold
from tests.recovery._vectors import SCALES, SHAPES, vector

LAWS = ("gaussian", "laplace")
every_sign = pytest.mark.parametrize("nonnegative", [False, True])
every_law = pytest.mark.parametrize("law", LAWS)


def estimate(y, threshold, nonnegative):
    return np.maximum(y - threshold, 0) if nonnegative else soft_threshold(y, threshold)


def add_noise_to(z, law, rng):
    return z + (rng.normal(size=z.size) if law == "gaussian" else rng.laplace(size=z.size))


def risk_at(y, scale, threshold, nonnegative, law):
    """Return the estimate of the risk by its definition, entry by entry."""
    x, t = y / scale, threshold / scale
    below = (x <= t) if nonnegative else (np.abs(x) <= t)
    moved = np.where(below, x, t) ** 2
    if law == "gaussian":
        return scale**2 * np.sum(moved - 1 + 2 * ~below)
    gap = x - t if nonnegative else np.abs(x) - t
    chance = np.where(below, np.exp(np.minimum(gap, 0)) / 2, 1 - np.exp(-np.maximum(gap, 0)) / 2)
    if not nonnegative:
        chance += np.exp(-np.abs(x) - t) / 2
    return scale**2 * np.sum(moved - 2 + 4 * chance)


@pytest.mark.covering
@every_law
@every_sign
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 100.0])
def test_no_threshold_that_is_a_magnitude_has_a_smaller_estimate(shape, scale, nonnegative, law):
    y = vector(shape)
    threshold, risk = sure_threshold(y, scale, nonnegative, law)
    limit = universal_threshold(scale, y.size, law)
    assert 0 <= threshold <= limit * (1 + 1e-15)
    assert threshold == 0 or np.isclose(threshold, np.abs(y), rtol=1e-12).any()
    candidates = y[y > 0] if nonnegative else np.abs(y)
    tried = [0.0, *candidates[candidates <= limit]]
    if law == "gaussian":
        tried += list(np.linspace(0, limit, 301))
    with np.errstate(under="ignore"):
        best = min(risk_at(y, scale, t * (1 + 1e-14), nonnegative, law) for t in tried)
    assert risk == pytest.approx(best, rel=1e-6, abs=1e-9 * scale**2 * y.size)


@every_law
@every_sign
@pytest.mark.parametrize("scale", SCALES)
def test_units_do_not_matter(scale, nonnegative, law):
    y = vector("heavy", d=50)
    threshold, risk = sure_threshold(y, 0.5, nonnegative, law)
    scaled = sure_threshold(y * scale, 0.5 * scale, nonnegative, law)
    assert scaled[0] == pytest.approx(threshold * scale, rel=1e-12)
    if 1e-140 < scale < 1e140:
        assert scaled[1] == pytest.approx(risk * scale**2, rel=1e-9)


def test_extremes():
    assert universal_threshold(2.0, 1) == 0.0
    assert universal_threshold(2.0, 10, "laplace") == pytest.approx(2 * math.log(10))
    assert sure_threshold(np.array([5.0]), 1.0) == (0.0, 1.0)
    assert sure_threshold(np.zeros(4), 1.0) == (0.0, -4.0)
    # far beyond the noise nothing is gained by shrinking
    threshold, risk = sure_threshold(np.full(9, 1e290), 1.0)
    assert (threshold, risk) == (0.0, 9.0)
    assert sure_threshold(np.full(9, 1e-290), 1.0)[1] == -9.0
    assert sure_threshold(np.full(9, 1e290), 1.0, law="laplace") == (0.0, 18.0)
    assert sure_threshold(np.full(9, -1e290), 1.0, True, "laplace")[0] == 0.0


@pytest.mark.covering
@every_law
@every_sign
@pytest.mark.parametrize("threshold", [0.0, 0.7, 2.0])
def test_the_estimate_is_unbiased_at_a_fixed_threshold(threshold, nonnegative, law):
    rng = np.random.default_rng(0)
    z = np.concatenate([np.zeros(60), np.full(20, 0.8), np.full(20, 6.0)])
    gaps = []
    for _ in range(4000):
        y = add_noise_to(z, law, rng)
        loss = np.sum((estimate(y, threshold, nonnegative) - z) ** 2)
        gaps.append(risk_at(y, 1.0, threshold, nonnegative, law) - loss)
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / math.sqrt(len(gaps))


def test_the_gaussian_estimate_would_be_wrong_for_laplace_noise():
    rng, z, gaps = np.random.default_rng(0), np.zeros(100), []
    for _ in range(1000):
        y = add_noise_to(z, "laplace", rng)
        loss = np.sum(soft_threshold(y, 2.0) ** 2)
        gaps.append(risk_at(y, math.sqrt(2), 2.0, False, "gaussian") - loss)
    assert abs(np.mean(gaps)) > 10 * np.std(gaps) / math.sqrt(len(gaps))


@every_law
@every_sign
@pytest.mark.parametrize(("n_large", "size"), [(0, 0.0), (5, 30.0), (40, 4.0), (4096, 0.3)])
def test_it_comes_near_the_best_threshold(n_large, size, nonnegative, law):
    rng = np.random.default_rng(1)
    z = np.where(np.arange(4096) < n_large, size, 0.0)
    limit = universal_threshold(1.0, 4096, law)
    losses, best = [], []
    for _ in range(10):
        y = add_noise_to(z, law, rng)
        threshold, _ = sure_threshold(y, 1.0, nonnegative, law)
        losses.append(np.sum((estimate(y, threshold, nonnegative) - z) ** 2))
        grid = np.linspace(0, limit, 30)
        best.append(min(np.sum((estimate(y, t, nonnegative) - z) ** 2) for t in grid))
    # what one entry costs at the universal threshold
    assert np.mean(losses) <= 1.1 * np.mean(best) + limit**2


@every_law
def test_signs_halve_what_is_left_of_the_noise(law):
    rng = np.random.default_rng(2)
    z = np.where(np.arange(4096) < 100, 4.0, 0.0)
    errors = {False: [], True: []}
    for _ in range(10):
        y = add_noise_to(z, law, rng)
        for nonnegative in errors:
            t, _ = sure_threshold(y, 1.0, nonnegative, law)
            errors[nonnegative].append(np.sum((estimate(y, t, nonnegative) - z) ** 2))
    assert np.mean(errors[True]) < 0.95 * np.mean(errors[False])


@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_above_the_noise_errs_by_no_more_than_entry_or_twice_the_threshold(seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_cauchy(size=300) * rng.choice([0.01, 1.0])
    noise = rng.normal(size=300)
    threshold = np.abs(noise).max()
    error = np.abs(soft_threshold(z + noise, threshold) - z)
    assert (error <= np.minimum(np.abs(z), 2 * threshold) * (1 + 1e-12) + 1e-12).all()
    square, l1, n_nonzeros = np.sum(error**2), np.abs(z).sum(), np.count_nonzero(z)
    assert square <= min(2 * threshold * l1, 4 * threshold**2 * n_nonzeros) * (1 + 1e-9)


def test_the_noise_seldom_exceeds_the_universal_threshold():
    rng = np.random.default_rng(3)
    largest = np.abs(rng.normal(size=(500, 1000))).max(axis=1)
    assert np.mean(largest > universal_threshold(1.0, 1000)) < 0.25
    largest = np.abs(rng.laplace(size=(500, 1000))).max(axis=1)
    assert np.mean(largest > universal_threshold(1.0, 1000, "laplace")) < 0.75
    assert_allclose(universal_threshold(1.0, 1000), 3.7169, atol=1e-4)
