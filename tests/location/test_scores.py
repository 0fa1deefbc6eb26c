# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The scores that medians and quantiles are drawn by: definitions and brute force."""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp import _quantiles as _quantile_rank
from skdp._quantiles import QuantileRank, RankRows, candidates
from skdp._rows.base import L2Ball
from skdp._rows.columns import PointRows
from skdp.location._median import DirectionSum, DistanceSum, distances_and_subgradients
from skdp.privacy import ExponentialMechanism
from skdp.privacy.kernel.samplers import SeededBits
from tests._neighbours import ADJACENCIES

NAN = float("nan")
HALF = Fraction(1, 2)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_tau = pytest.mark.parametrize("tau", [HALF, Fraction(1, 4), Fraction(9, 10)], ids=str)


def scores(values, tau, cells):
    """Return the score of every position, by definition; None is a null row."""
    values = [v for v in values if v is not None]
    target, found = tau * len(values), []
    for t in range(cells + 1):
        below, not_above = sum(v < t for v in values), sum(v <= t for v in values)
        found.append(max(below - target, target - not_above, Fraction(0)))
    return found


def computed_scores(values, tau, cells):
    """Return the scores of all positions from the runs that the query forms."""
    positions = np.array(sorted(v for v in values if v is not None), dtype=np.int32)
    starts, counts, steps = candidates(positions, tau, cells)
    assert counts.sum() == cells + 1
    np.testing.assert_array_equal(starts, np.cumsum(counts) - counts)
    return [Fraction(int(s), tau.denominator) for s in np.repeat(steps, counts)]


def data_sets(n_rows, cells):
    return itertools.combinations_with_replacement(range(cells + 1), n_rows)


@pytest.mark.covering
@every_tau
@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 4, 5])
def test_runs_of_equal_score_are_what_the_definition_says(n_rows, tau):
    for values in data_sets(n_rows, 5):
        assert computed_scores(values, tau, 5) == scores(values, tau, 5)


@pytest.mark.covering
@every_adjacency
@every_tau
def test_no_neighbours_change_the_rank_score_by_more_than_stated(tau, adjacency):
    cells, widest = 6, Fraction(0)
    stated = Fraction(QuantileRank(0, tau).sensitivity(adjacency, 5).spread)
    found = functools.cache(lambda values: scores(values, tau, cells))
    for n_rows, null in [(1, 0), (2, 0), (3, 0), (4, 0), (3, 1)]:
        for values in data_sets(n_rows, cells):
            nulls = (None,) * null
            changes = (None,) if adjacency == "zero-out" else (None, *range(cells + 1))
            for change, i in itertools.product(changes, range(n_rows)):
                other = (*values[:i], change, *values[i + 1 :], *nulls)
                pairs = zip(found(values + nulls), found(other), strict=True)
                moved = [b - a for a, b in pairs]
                widest = max(widest, max(moved) - min(moved))
    assert widest <= stated + Fraction(1, 10**12)
    assert tau != HALF or widest == stated


@pytest.mark.sample(1)
@every_tau
def test_draws_have_the_law_of_the_definition(tau):
    values, cells = [0, 2, 2, 2, 5, 9, 9, 11], 12
    X = np.array([*values, NAN], dtype=float)[:, None]
    rows = RankRows(X, np.array([0.0]), np.array([12.0]), cells)
    query = QuantileRank(0, tau, cells)
    facts = query.sensitivity("replace-one", 9)
    noise = ExponentialMechanism(1.5).calibrate(facts, 1)
    bits = SeededBits(0)
    drawn = np.concatenate([query.draw(rows, noise, bits) for _ in range(3000)])
    law = np.exp([-float(s) / noise.scale for s in scores(values, tau, cells)])
    observed = np.bincount(drawn.astype(int), minlength=cells + 1)
    assert stats.chisquare(observed, 3000 * law / law.sum()).pvalue > 1e-6


def test_the_rate_is_rounded_down():
    for denominator, temperature in itertools.product([1, 2, 1000], [0.1, 3.0, 1e-300, 1e300]):
        rate = _quantile_rank.rate(denominator, temperature)
        assert 0 <= Fraction(rate) * denominator * Fraction(temperature) <= 1
    assert _quantile_rank.rate(2, float("inf")) == 0


def random_points(rng, n_features):
    points = rng.normal(size=(50, n_features))
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1)
    points[:4, 0], points[:4, 1:] = [1, -1, 1, -1], 0
    return points


@every_adjacency
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_no_neighbours_change_the_distance_score_by_more_than_stated(n_features, adjacency):
    rng = np.random.default_rng(0)
    points, widest = random_points(rng, n_features), 0.0
    for first, second in itertools.product(random_points(rng, n_features)[:12], repeat=2):
        moved, _ = distances_and_subgradients(points, first[:, None])
        if adjacency == "replace-one":
            moved = moved - distances_and_subgradients(points, second[:, None])[0]
        widest = max(widest, np.ptp(moved))
    stated = DistanceSum(n_features).sensitivity(adjacency, 9).spread
    assert 0.999 * stated < widest <= stated * (1 + 1e-12)


def test_distances_and_directions_by_definition():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) * np.exp(rng.normal(size=(3000, 1)))
    X[7] = X[8] = [0.1, 0.2, 0.3]
    X[9] = NAN
    rows = PointRows(X, L2Ball(2.0), 2.0)
    unit = np.delete(X, 9, axis=0) / 2
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1)
    points = np.concatenate([rng.normal(size=(9, 3)) / 3, [[0.05, 0.1, 0.15]]])
    value, slope = distances_and_subgradients(points, rows.columns())
    for point, v, s in zip(points, value, slope, strict=True):
        gaps = point - unit
        norms = np.linalg.norm(gaps, axis=1)
        assert v == pytest.approx(norms.sum(), rel=1e-12)
        expected = (gaps / np.where(norms > 1e-15, norms, np.inf)[:, None]).sum(axis=0)
        if norms.min() > 1e-15:
            np.testing.assert_allclose(s, expected, rtol=1e-9)
            np.testing.assert_allclose(DirectionSum(point).evaluate(rows), expected, rtol=1e-9)
    # the row itself contributes nothing
    one = PointRows(X[:1], L2Ball(2.0), 2.0)
    assert not DirectionSum(one.columns()[:, 0]).evaluate(one).any()


@pytest.mark.parametrize("gap", [0.0, 5e-324, 3e-162, 1e-141, 1e-139, 1e-3, 1.0])
def test_no_direction_is_longer_than_one(gap):
    rows = PointRows(np.zeros((1, 3)), L2Ball(1.0), 1.0)
    direction = DirectionSum(np.full(3, gap) / np.sqrt(3)).evaluate(rows)
    assert np.linalg.norm(direction) <= 1 + 1e-12
    assert gap < 1e-139 or np.linalg.norm(direction) > 1 - 1e-12
