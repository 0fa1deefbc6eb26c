# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Counts of sides and joint moments keep the sensitivity they state, and attain it."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp._rows.base import Box
from skdp._rows.columns import FeatureRows
from skdp.preprocessing._standard_scaler import OFFSET, WEIGHT, MomentSum, SideSum
from tests._chunks import shorten_chunks
from tests._neighbours import ADJACENCIES, LAYOUTS, as_layout, neighbours, on_examples
from tests.test_row_queries import assert_keeps_its_word, gap_ratio

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
THRESHOLDS = [0.0, -0.0, 0.3, -0.3, 1e-310, 1e308, -1e308, math.inf]
BOXES = [(-1.0, 1.0), (0.1, 0.3), (-1e-300, 1e-300), (-1e308, 1.7e308), (5.0, 1e9), (-3.0, -2.0)]


def null_flags(rows, choice):
    """Return rows whose null rows are flagged, or not a number."""
    if choice == "flag":
        return FeatureRows(rows.X, rows.null)
    X = rows.X.toarray() if sparse.issparse(rows.X) else np.array(rows.X)
    X[rows.null] = math.nan
    return FeatureRows(X)


@every_adjacency
@on_examples(300)
def test_counts_of_sides_keep_their_sensitivity(adjacency, data):
    pair = data.draw(neighbours(adjacency))
    n, d = pair[0].X.shape
    thresholds = np.array(data.draw(st.lists(st.sampled_from(THRESHOLDS), min_size=d, max_size=d)))
    center = data.draw(st.sampled_from([None, 0.0, 0.3, 1e308]))
    query = SideSum(thresholds, None if center is None else np.full(d, center))
    null = data.draw(st.sampled_from(["flag", "nan"]))
    assert_keeps_its_word(query, adjacency, *(null_flags(rows, null) for rows in pair), n)


@every_adjacency
@on_examples(300)
def test_joint_moments_keep_their_sensitivity(adjacency, data):
    pair = data.draw(neighbours(adjacency))
    n, d = pair[0].X.shape
    lower, upper = data.draw(st.sampled_from(BOXES))
    query = MomentSum(Box((lower,) * d, (upper,) * d))
    null = data.draw(st.sampled_from(["flag", "nan"]))
    assert_keeps_its_word(query, adjacency, *(null_flags(rows, null) for rows in pair), n)


@every_adjacency
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("center", [None, 5.0])
def test_counts_of_sides_attain_their_sensitivity(adjacency, d, norm, center):
    other = math.nan if adjacency == "zero-out" else 5.0
    pair = [FeatureRows(np.full((1, d), value)) for value in (9.0, other)]
    query = SideSum(np.full(d, 6.0 if center is None else 1.0), center and np.full(d, center))
    assert gap_ratio(query, adjacency, *pair, norm=norm) == 1


# the ends, the middle whose square is as far from the offset, and the second maximum
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize(
    ("adjacency", "first", "second"),
    [
        ("zero-out", 1.0, math.nan),
        ("zero-out", -1.0, math.nan),
        ("zero-out", 0.0, math.nan),
        ("replace-one", 1.0, -1.0),
        ("replace-one", 1.0, 2 - math.sqrt(5)),
        ("replace-one", math.sqrt(5) - 2, -1.0),
    ],
)
def test_joint_moments_attain_their_sensitivity(adjacency, first, second, d):
    box = Box((-3.0,) * d, (7.0,) * d)
    pair = [FeatureRows(np.full((1, d), 2 + 5 * value)) for value in (first, second)]
    assert gap_ratio(MomentSum(box), adjacency, *pair) == pytest.approx(1, rel=1e-12)


def test_constants_of_the_moments():
    golden = (1 + math.sqrt(5)) / 2
    assert pytest.approx(golden**2.5 / 2, rel=1e-15) == WEIGHT
    grid = np.linspace(-1, 1, 2001)
    moments = np.column_stack([grid, WEIGHT * (grid**2 - OFFSET)])
    norms = np.linalg.norm(moments, axis=1)
    stated = [MomentSum(Box((0.0,), (1.0,))).sensitivity(a, 1).l2 for a in ADJACENCIES]
    assert norms.max() == pytest.approx(stated[1], rel=1e-12)
    coarse = moments[::10]
    gaps = np.linalg.norm(coarse[:, None] - coarse[None], axis=2)
    assert gaps.max() == pytest.approx(stated[0], rel=1e-12)
    # a square that weighs any more is no longer free
    heavier = moments * [1, 1.001]
    gaps = np.linalg.norm(heavier[:, None] - heavier[[0, -1]][None], axis=2)
    assert gaps.max() > 2.0000001


def some_rows():
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(101, 5)) < 0.4, rng.normal(size=(101, 5)), 0.0)
    return X, rng.uniform(size=101) < 0.1


@pytest.fixture
def small_chunks(monkeypatch):
    shorten_chunks(monkeypatch, 3, threads=True)


QUERIES = [
    SideSum(np.full(5, 0.2)),
    SideSum(np.full(5, -0.2)),
    SideSum(np.full(5, 0.2), np.full(5, 0.1)),
    MomentSum(Box((-1.0,) * 5, (1.5,) * 5)),
    MomentSum(Box((0.5,) * 5, (1.5,) * 5)),
]


def naive(query, X):
    """Sum over rows as the definition says."""
    if isinstance(query, MomentSum):
        lower, upper = (np.array(side) for side in (query.box.lower, query.box.upper))
        unit = (2 * np.clip(X, lower, upper) - lower - upper) / (upper - lower)
        return np.concatenate([unit.sum(axis=0), (WEIGHT * (unit**2 - OFFSET)).sum(axis=0)])
    values = X if query.center is None else np.abs(X - query.center)
    return np.where(values > query.thresholds, 0.5, -0.5).sum(axis=0)


@pytest.mark.covering
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_any_layout_and_chunks_it_is_the_sum_over_rows(query, layout, request):
    X, null = some_rows()
    rows = as_layout(X, layout)
    expected = naive(query, (X.astype(np.float32) if layout == "float32" else X)[~null])
    assert_allclose(query.evaluate(FeatureRows(rows, null)), expected, rtol=1e-12, atol=1e-12)
    request.getfixturevalue("small_chunks")
    cut = [query.evaluate(FeatureRows(rows, null, n_threads=n)) for n in (1, 2)]
    assert len(FeatureRows(rows, null).chunks) == 34
    assert_allclose(cut[0], expected, rtol=1e-12, atol=1e-12)
    assert_array_equal(*cut)
    assert_array_equal(X, some_rows()[0])


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.parametrize("value", [1e308, math.nan, 1e-310, math.inf])
def test_a_row_shifts_the_rounding_of_its_own_chunk_only(layout, value):
    X, _ = some_rows()
    other = X.copy()
    other[30] = value
    query = QUERIES[3]
    partials = [
        [query.partial(chunk) for chunk in FeatureRows(as_layout(rows, layout)).chunks]
        for rows in (X, other)
    ]
    same = [np.array_equal(a, b) for a, b in zip(*partials, strict=True)]
    assert same == [i != 10 for i in range(34)]


def test_moments_are_recovered_and_the_floor_follows_from_the_noise():
    X, query = some_rows()[0], QUERIES[3]
    unit = np.clip((X - 0.25) / 1.25, -1, 1)
    mean, variance = query.moments(query.evaluate(FeatureRows(X)), len(X), 0.0)
    assert_allclose(mean, unit.mean(axis=0), rtol=1e-12)
    assert_allclose(variance, unit.var(axis=0), rtol=1e-12)
    _, floor = query.moments(np.full(10, -1e9), len(X), 2.0)
    assert_allclose(floor, 2 * 2.0 / (len(X) * WEIGHT))
    for total in (np.full(10, 1e300), np.full(10, -1e300)):
        with np.errstate(over="ignore"):
            mean, variance = query.moments(total, 1, 1e9)
        assert_array_equal(np.abs(mean), 1)
        assert_array_equal(variance, 1)
