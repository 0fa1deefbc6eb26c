# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows divided among runs that share none, and the choice of one of their results."""

import math
import re

import numpy as np
import pytest
from scipy import optimize, stats

from skdp._rows.base import two_balls_constraint
from skdp.solvers.disjoint import (
    LEAST_RESTART,
    LEAST_SPLIT,
    least_median_distance,
    public_order,
    restarts,
    splits,
)

SIZES = [1, 2, 7, 19, 40, 99, 199, 200, 256, 1000, 10_000, 32_561, 10**6]


def cover(parts, start, stop):
    """Return whether parts follow one another from start to stop, none of them empty."""
    ends = [start, *[part[1] for part in parts]]
    return (
        [part[0] for part in parts] == ends[:-1] and ends[-1] == stop and ends == sorted(set(ends))
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("n_rows", SIZES)
def test_the_order_is_one_of_all_rows_and_far_from_sorted(n_rows):
    order = public_order(n_rows)
    assert sorted(order) == list(range(n_rows))
    if n_rows >= 1000:
        # any tenth of the rows is spread over all of them
        for part in np.array_split(order, 10):
            counts = np.bincount(part * 10 // n_rows, minlength=10)
            assert counts.min() > 0.9 * counts.mean() - 2


GROWTHS = [
    (None, 2.0),
    ("halving", 2.0),
    *[("doubling", o) for o in (1 + 1e-15, 1.5, 2, 4, np.inf)],
]


@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize(("growth", "order"), GROWTHS)
def test_restarts_are_disjoint_and_leave_no_row_out(n_rows, growth, order):
    parts = restarts(5, 5 + n_rows, growth, order)
    assert cover(parts, 5, 5 + n_rows)
    assert [factor for *_, factor in parts] == [0.5**i for i in range(len(parts))]
    sizes = np.array([stop - start for start, stop, _ in parts])
    assert len(parts) == 1 or sizes.min() >= LEAST_RESTART
    if growth == "halving":
        assert np.ptp(sizes) <= 1
    if growth == "doubling":
        np.testing.assert_allclose(sizes[1:] / sizes[:-1], 2.0, atol=2 / LEAST_RESTART * 1.5)


def test_the_numbers_of_restarts_are_the_printed_ones():
    # Xu et al. (2025): four at 10^4 rows; three for a quadratic; six for order 1.5
    assert len(restarts(0, 10_000, "halving")) == 4
    assert len(restarts(0, 10_000, "doubling", 2.0)) == 3
    assert len(restarts(0, 10_000, "doubling", 1.5)) == 6
    assert len(restarts(0, 10_000, "doubling", 4.0)) == 1
    # fewer than 256 rows are one part
    assert [len(restarts(0, n, "halving")) for n in (255, 256)] == [1, 2]


def test_unknown_growth_is_refused():
    with pytest.raises(ValueError, match="growth must be 'halving', 'doubling' or None"):
        restarts(0, 1000, "tripling")


@pytest.mark.parametrize("failure", [0.9, 0.25, 0.2499, 0.1, 0.05, 0.01, 1e-3, 1e-6, 1e-12])
def test_as_few_runs_as_the_binomial_law_allows(failure):
    parts = splits(100_000, failure)
    assert cover(parts, 0, 100_000)
    assert np.ptp([stop - start for start, stop in parts]) <= 1
    k = len(parts)
    assert k % 2 == 1
    assert stats.binom.cdf(k // 2, k, 0.75) <= failure
    assert k == 1 or stats.binom.cdf((k - 2) // 2, k - 2, 0.75) > failure


def test_the_smallest_probability_and_fewest_rows_need_no_care():
    with np.errstate(all="raise"):
        assert len(splits(10**6, 5e-324)) == 5141
    assert splits(1) == splits(1, 0.25) == ((0, 1),)
    assert splits(7 * LEAST_SPLIT, 0.1)[-1] == (6 * LEAST_SPLIT, 7 * LEAST_SPLIT)


@pytest.mark.parametrize("n_rows", [1, 7, 139, 1000])
def test_too_few_rows_are_refused_with_what_is_allowed(n_rows):
    with pytest.raises(
        ValueError, match=f"failure_probability=1e-20 .* there are {n_rows} rows"
    ) as error:
        splits(n_rows, 1e-20)
    allowed = float(re.search(r"at least (\S+), or None", str(error.value))[1])
    assert cover(splits(n_rows, allowed), 0, n_rows)
    with pytest.raises(ValueError, match="failure_probability"):
        splits(n_rows, 0.9 * allowed)


@pytest.mark.parametrize("failure", [0.0, 1.0, -1.0, np.nan, 2.0])
def test_a_failure_that_is_no_probability_is_refused(failure):
    with pytest.raises(ValueError, match="failure_probability must be in"):
        splits(1000, failure)


# -- the point in the middle -----------------------------------------------------------


@pytest.mark.parametrize("n_points", [1, 2, 3, 7, 8, 31])
@pytest.mark.parametrize("far", [10.0, 1e100])
def test_a_majority_of_good_points_is_enough(n_points, far):
    rng = np.random.default_rng(n_points)
    good = n_points // 2 + 1
    for _ in range(50):
        points = rng.normal(size=(n_points, 3)) * far
        near = rng.normal(size=(good, 3))
        where = rng.normal(size=3)
        points[rng.permutation(n_points)[:good]] = where + near / np.linalg.norm(
            near, axis=1, keepdims=True
        )
        chosen = least_median_distance(points)
        assert any((chosen == point).all() for point in points)
        assert np.linalg.norm(chosen - where) <= 3


def test_ties_go_to_the_first_and_three_is_the_best_factor():
    assert least_median_distance([[1.0], [2.0]])[0] == 1
    # 0 and 2 are within 1 of 1; a third point as far from 2 as 0 is ties with them
    assert least_median_distance([[4.0], [2.0], [0.0]])[0] == 4
    assert least_median_distance([[2.0], [4.0], [0.0]])[0] == 2


def test_boosting_makes_rare_failures_rarer():
    # a run that fails with probability 1/4 by far, and otherwise is near 0
    rng = np.random.default_rng(0)
    runs = len(splits(1000, 0.05))
    assert runs == 9
    kept = []
    for _ in range(2000):
        bad = rng.uniform(size=(runs, 1)) < 0.25
        points = np.where(bad, rng.choice([50.0, -60.0, 70.0], size=(runs, 1)), 1.0) * rng.uniform(
            0.9, 1, size=(runs, 1)
        )
        kept.append(abs(least_median_distance(points)[0]) > 3)
    assert np.mean(kept) <= 0.05


# -- two balls ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e100, 1e-100])
def test_the_nearest_point_of_two_balls(scale):
    rng = np.random.default_rng(0)
    for _ in range(60):
        center = rng.normal(size=3)
        center *= rng.uniform() / np.linalg.norm(center)
        reach, point = rng.uniform(0.05, 2.5), 4 * rng.normal(size=3)
        found = two_balls_constraint(point * scale, scale, center * scale, reach * scale) / scale
        assert np.linalg.norm(found) <= 1 + 1e-12
        assert np.linalg.norm(found - center) <= reach + 1e-12
        best = optimize.minimize(
            lambda w, p=point: np.sum((w - p) ** 2), center, method="SLSQP",
            constraints=[
                {"type": "ineq", "fun": lambda w: 1 - w @ w},
                {"type": "ineq", "fun": lambda w, c=center, r=reach: r * r - (w - c) @ (w - c)},
            ],
        )  # fmt: skip
        assert math.dist(found, point) <= math.sqrt(best.fun) * (1 + 1e-6)


def test_degenerate_balls():
    zero, axis = np.zeros(2), np.array([1.0, 0.0])
    np.testing.assert_array_equal(two_balls_constraint(5 * axis, None, zero, 2.0), 2 * axis)
    np.testing.assert_array_equal(two_balls_constraint(5 * axis, 1.0, zero, 2.0), axis)
    np.testing.assert_array_equal(two_balls_constraint(5 * axis, 1.0, axis, 0.5), axis)
    np.testing.assert_array_equal(two_balls_constraint(-5 * axis, 1.0, axis, 0.5), axis / 2)
    np.testing.assert_array_equal(two_balls_constraint(zero, 1.0, axis, 0.5), axis / 2)
    np.testing.assert_array_equal(two_balls_constraint(0.7 * axis, 1.0, axis, 0.5), 0.7 * axis)
