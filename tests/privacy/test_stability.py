# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The histogram with a threshold: its price against exact laws, and the gate."""

import itertools
import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.special import ndtri

from skdp.privacy import gdp_delta, gdp_mu
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.privacy.laws.histogram import SparseSensitivity, StabilityHistogram, _distance, _stray
from tests import _histograms

BUDGETS = [(0.1, 1e-6), (1.0, 1e-9), (8.0, 1e-5), (0.5, 0.05)]
NORMS = {(1, True): 1.0, (1, False): 1.0, (2, True): math.sqrt(2.0), (2, False): 2.0}
every_budget = pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
every_kind = pytest.mark.parametrize(("rows", "nonnegative"), NORMS)


def facts_of(rows, nonnegative, columns, bound=1000.0):
    l2 = NORMS[rows, nonnegative]
    return SparseSensitivity(
        math.inf, l2, bound, "test", rows=rows, columns=columns, nonnegative=nonnegative
    )


@lru_cache
def calibrated(epsilon, delta, *kind):
    return StabilityHistogram(epsilon, delta).calibrate(facts_of(*kind), 2**40)


def rows_with(columns, rng, parts):
    """Yield (values on columns of its own, length on others) for rows that could be worst."""
    for a in parts:
        # one column is left for the others unless a = 1
        own = columns if a == 1 else columns - 1
        if own == 0:
            if a == 0:
                yield np.zeros(0), 1.0
            continue
        left = math.sqrt(1 - a * a)
        yield np.full(own, a / math.sqrt(own)), left
        yield np.append(np.full(own - 1, 1e-300), a), left
        mixed = np.abs(rng.normal(size=own))
        yield a * mixed / np.linalg.norm(mixed), left


def divergences(noise, epsilon, rows, nonnegative, columns):
    """Yield the divergences of neighbours whose common columns are far above the threshold."""
    rng = np.random.default_rng(0)
    nothing = [(np.zeros(0), 0.0)]
    others = list(rows_with(columns, rng, (0, 0.5, 1))) if rows == 2 else nothing
    for own, length in rows_with(columns, rng, np.linspace(0, 1, 41)):
        for own_too, length_too in others:
            # at a right angle, or opposite
            gap = math.hypot(length, length_too) if nonnegative else length + length_too
            p, q = _histograms.seen(own, noise), _histograms.seen(own_too, noise)
            for first, second in ((p, q), (q, p)):
                inner = epsilon + math.log1p(-second) - math.log1p(-first)
                yield first + (1 - first) * gdp_delta(gap / noise.scale, inner)


@pytest.mark.covering
@every_budget
@every_kind
@pytest.mark.parametrize("columns", [1, 3, 300])
def test_the_price_is_kept_on_worst_pairs_and_not_overpaid(
    epsilon, delta, rows, nonnegative, columns
):
    noise = calibrated(epsilon, delta, rows, nonnegative, columns)
    largest = max(divergences(noise, epsilon, rows, nonnegative, columns))
    assert 0.8 * delta < largest <= delta


@pytest.mark.covering
@every_budget
@every_kind
def test_a_common_column_near_the_threshold_gives_away_less(epsilon, delta, rows, nonnegative):
    noise = calibrated(epsilon, delta, rows, nonnegative, 3)
    nothing = np.zeros(0)
    for a, base in itertools.product((0.0, 0.3, 0.8, 1.0), (0.0, 0.5, 0.97, 1.5, 4.0)):
        center, gap = base * noise.threshold, NORMS[rows, nonnegative] - 1 + math.sqrt(1 - a * a)
        if rows == 2 and nonnegative:
            gap = math.sqrt(2 - a * a)
        strays = np.full(2, a / math.sqrt(2))
        means = (center + gap / 2, center - gap / 2)
        for given in ((means, (strays, nothing)), (means[::-1], (nothing, strays))):
            assert _histograms.exact(*given, noise, epsilon) <= delta * (1 + 1e-6)


@every_budget
def test_one_column_under_zero_out_has_a_closed_form(epsilon, delta):
    noise = calibrated(epsilon, delta, 1, True, 1)
    # a row is either alone with its column or not: nothing is split
    sigma = 1 / gdp_mu(epsilon + math.log1p(-min(delta, -math.expm1(-epsilon / 2))), delta)
    assert noise.scale == pytest.approx(sigma, rel=1e-3)
    tail = noise.threshold - 1
    assert tail >= -noise.scale * ndtri(min(delta, 0.5 * epsilon))
    assert tail == pytest.approx(max(2 * sigma, -sigma * ndtri(delta)), rel=2e-3)


@pytest.mark.covering
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 17])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 10.0])
def test_the_bound_on_strays_holds_for_any_row(nonnegative, columns, sigma):
    rng = np.random.default_rng(0)
    noise = replace(calibrated(1.0, 1e-6, 1, nonnegative, 1), scale=sigma)
    for tau in (1 + 2 * sigma, 1 + 3 * sigma, 1.2 + 5 * sigma):
        noise = replace(noise, threshold=tau)
        for a in (1e-9, 0.01, 0.5, 0.99, 1.0):
            x = rng.normal(size=(50, columns)) * rng.choice([1e-3, 1.0], size=(50, columns))
            x = np.vstack([x, np.ones(columns), np.eye(columns)])
            x *= a / np.linalg.norm(x, axis=1, keepdims=True)
            most = max(_histograms.seen(row, noise) for row in x)
            bound = _stray(np.array([a]), columns, sigma, tau, nonnegative)[0]
            assert most <= bound
            assert bound <= 2.1 * most


def test_what_depends_on_the_part_of_a_row_is_monotone():
    a = np.linspace(0, 1, 200)
    for kind in NORMS:
        assert (np.diff(_distance(a, facts_of(*kind, 3))) <= 0).all()
        for columns in (1, 2, 50):
            assert (np.diff(_stray(a, columns, 2.0, 6.0, kind[1])) >= 0).all()
    np.testing.assert_array_equal(_stray(a, 0, 1.0, 5.0, True), 0.0)


@pytest.mark.parametrize("columns", [1, 10, 1000])
def test_rounding_to_the_grid_is_paid_for(columns):
    # a bound that large makes the grid coarse
    fine, coarse = (
        StabilityHistogram(1.0, 1e-6).calibrate(facts_of(2, False, columns, bound), 1)
        for bound in (10.0, 2.0**47)
    )
    assert coarse.grid == 2.0**-4 > fine.grid
    step = coarse.grid * math.sqrt(2 * columns)
    assert coarse.sensitivity == pytest.approx(2 * (1 + FLOAT_SLACK) + step)
    assert coarse.threshold - coarse.grid > fine.threshold
    # a value that ends up beyond the threshold was less than a step below it
    noise = replace(coarse, threshold=coarse.threshold - coarse.grid)
    assert _histograms.seen(np.ones(1), noise) <= 1e-6


def test_more_columns_or_less_budget_raise_the_threshold():
    taus = [calibrated(1.0, 1e-6, 2, False, s).threshold for s in (1, 2, 8, 64, 10**6)]
    taus += [calibrated(e, 1e-6, 2, False, 10**6).threshold for e in (0.5, 0.1)]
    assert sorted(taus) == taus
    kinds = [calibrated(1.0, 1e-6, *kind, 4).threshold for kind in NORMS]
    assert kinds[0] < kinds[1] < kinds[3]
    assert kinds[0] < kinds[2] < kinds[3]


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (1.0, 0.0, "delta must be greater than 0"),
        (1.0, 1.0, r"delta must be a number in \[0, 1\)"),
        (1.0, math.nan, "delta"),
        (0.0, 1e-6, "epsilon"),
        (math.inf, 1e-6, "epsilon"),
        (1e-12, 1e-300, "too small"),
        (5e-324, 5e-324, "too small"),
    ],
)
def test_budgets_that_make_no_sense(epsilon, delta, message):
    with pytest.raises(ValueError, match=message):
        StabilityHistogram(epsilon, delta)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *itertools.product([1e-6, 1e-2, 50.0, 1e12, 1e300], [1e-20, 0.3, 0.9, 1 - 1e-9]),
        *itertools.product([1e-2, 50.0], [1e-300]),
    ],
)
def test_extreme_budgets_are_served(epsilon, delta):
    with np.errstate(all="raise"):
        noise = calibrated(epsilon, delta, 2, False, 7)
    assert 1 + 2 * noise.scale < noise.threshold < 1e12
    assert (noise.epsilon, noise.delta, noise.mu) == (epsilon, delta, 0.0)
