# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The statistics of clipped means keep the sensitivities they state, which are tight."""

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skdp.location._clipped_mean import ClippedRowSum, FarCount, RotatedSideSum
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests import _neighbours
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    Rows,
    as_dense,
    as_layout,
    neighbours,
    on_examples,
    rows_in_ball,
)

NORMS = {"l1": 1, "l2": 2}
RADII = (1e-19, 1e-6, 0.1, 0.7, 1.0, 2.0)
DENSE = LAYOUTS[:5]
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def admit(rows, radius=1.0, **options):
    null = np.asarray(rows.null)
    return rows_in_ball(rows.X, np.zeros(len(null)), null, radius, 0.0, **options)


def rows_of(X, null=None):
    X = np.asarray(X, dtype=np.float64)
    return Rows(X, np.zeros(len(X), int), np.zeros(len(X), bool) if null is None else null)


def assert_keeps_its_word(query, adjacency, first, second, n_rows):
    stated = query.sensitivity(adjacency, n_rows)
    values = [query.evaluate(rows) for rows in (first, second)]
    for value in values:
        assert value.shape == (query.size,)
        assert np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK)
    for norm, order in NORMS.items():
        gap = np.linalg.norm(values[0] - values[1], ord=order)
        assert gap <= getattr(stated, norm) * (1 + FLOAT_SLACK)


def point(data, d):
    """Draw a centre of the unit ball, often a row's place or the edge."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    center = rng.normal(size=d)
    return center / np.linalg.norm(center) * data.draw(st.sampled_from([0.0, 0.3, 1.0, 1e-9]))


@every_adjacency
@on_examples(300)
def test_around_a_centre_they_keep_their_sensitivities(adjacency, data):
    norm = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=norm, layouts=DENSE))
    n, d = pair[0].X.shape
    admitted = [admit(rows, norm) for rows in pair]
    center, radius = point(data, d), data.draw(st.sampled_from(RADII))
    thresholds = np.where(np.arange(d) % 2, radius, data.draw(st.sampled_from([0.0, 0.1, -0.5])))
    queries = (
        ClippedRowSum(d, radius, center),
        FarCount(radius, center),
        RotatedSideSum(thresholds),
    )
    for query in queries:
        assert_keeps_its_word(query, adjacency, *admitted, n)


@every_adjacency
@on_examples(300)
def test_around_the_origin_they_keep_their_sensitivities(adjacency, data):
    norm = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=norm))
    n, d = pair[0].X.shape
    admitted = [admit(rows, norm) for rows in pair]
    radius = data.draw(st.sampled_from(RADII))
    for query in (ClippedRowSum(d, radius), FarCount(radius)):
        assert_keeps_its_word(query, adjacency, *admitted, n)


def gap_ratio(query, adjacency, first, second, norm="l2"):
    gap = query.evaluate(admit(first)) - query.evaluate(admit(second))
    stated = getattr(query.sensitivity(adjacency, len(first.X)), norm)
    return np.linalg.norm(gap, ord=NORMS[norm]) / stated


def worst_pair(adjacency, row, other, n_rows=5):
    """Return rows of which one is `row`, and becomes `other` or a null row."""
    X = np.tile(row, (n_rows, 1))
    if adjacency == "zero-out":
        return rows_of(X), rows_of(X, np.arange(n_rows) == 1)
    return rows_of(X), rows_of(np.where(np.arange(n_rows)[:, None] == 1, other, X))


@every_adjacency
@pytest.mark.parametrize("d", [1, 4, 33])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("centred", [True, False])
def test_the_clipped_sum_attains_its_sensitivity(adjacency, d, norm, centred):
    center = np.full(d, 0.2 / d) if centred else None
    shift = 0.0 if center is None else center
    # all coordinates are equal: the l1 norm is the largest there is
    step = np.full(d, 0.5 / np.sqrt(d))
    pair = worst_pair(adjacency, shift + step, shift - step)
    assert gap_ratio(ClippedRowSum(d, 0.1, center), adjacency, *pair, norm) >= 0.999
    # without clipping it moves by as much as rows differ
    assert gap_ratio(ClippedRowSum(d, 2.0, center), adjacency, *pair, norm) < 0.5


@every_adjacency
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("center", [None, np.array([0.3, 0.0])], ids=str)
def test_counts_attain_their_sensitivity(adjacency, norm, center):
    near, far = np.array([0.35, 0.0]), np.array([-0.9, 0.1])
    for one, other in [(near, far), (far, near)]:
        pair = worst_pair(adjacency, one, other)
        assert gap_ratio(FarCount(0.5, center), adjacency, *pair, norm) == 1.0


def naive(rows, center, radius, norm):
    """Return the clipped sum and the number of rows beyond, row by row."""
    total, beyond, counted = np.zeros(len(center)), 0, 0
    for x, null in zip(as_dense(rows.X), rows.null, strict=True):
        if null or not np.isfinite(x).all():
            continue
        scale = max(np.abs(x).max(), norm)
        gap = x / scale / max(np.linalg.norm(x / scale), norm / scale) - center
        length = np.linalg.norm(gap)
        total += gap * min(1.0, radius / length if length else 1.0)
        beyond, counted = beyond + (length > radius), counted + 1
    return total, beyond, counted


@on_examples(200)
def test_in_any_layout_they_are_what_they_say(data):
    rows, _ = data.draw(neighbours("replace-one", radius=2.0))
    d = rows.X.shape[1]
    radius = data.draw(st.sampled_from([1e-6, 0.37, 0.73, 2.0]))
    sparse = not isinstance(rows.X, np.ndarray)
    centers = [None] if sparse else [None, point(data, d)]
    before = as_dense(rows.X).copy()
    for center in centers:
        with np.errstate(under="ignore"):
            origin = np.zeros(d) if center is None else center
            total, beyond, counted = naive(rows, origin, radius, 2.0)
        admitted = admit(rows, 2.0)
        value = ClippedRowSum(d, radius, center).evaluate(admitted)
        assert_allclose(value, total, rtol=1e-9, atol=1e-12)
        count = FarCount(radius, center).evaluate(admitted)[0]
        assert count + counted / 2 == beyond
    assert_array_equal(as_dense(rows.X), before)


@pytest.mark.parametrize("layout", ["C", "F", "float32"])
def test_chunks_and_threads_change_nothing_but_rounding(layout, monkeypatch):
    rows = _neighbours.mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    center = np.full(5, 0.1)
    queries = (
        ClippedRowSum(5, 0.3, center),
        ClippedRowSum(5, 0.3),
        FarCount(0.31, center),
        FarCount(0.31),
        RotatedSideSum(np.full(5, 0.01)),
    )
    expected = [query.evaluate(admit(rows)) for query in queries]
    shorten_chunks(monkeypatch, 3, threads=True)
    for query, whole in zip(queries, expected, strict=True):
        one, many = (query.evaluate(admit(rows, n_threads=n)) for n in (1, 3))
        assert_array_equal(one, many)
        assert_allclose(one, whole, rtol=1e-12, atol=1e-13)
        if not isinstance(query, ClippedRowSum):
            assert_array_equal(one, whole)


def kept(X):
    return Rows(X, np.zeros(len(X), int), np.zeros(len(X), bool))


@pytest.mark.parametrize("norm", [1.0, 0.5, 0.25])
def test_the_last_place_of_other_rows_does_not_depend_on_a_row(norm):
    """A denormal changes the layout of a chunk; no other row may cross a threshold."""
    X = np.random.default_rng(0).normal(size=(300, 17))
    X = np.asfortranarray(X * 0.5 / np.linalg.norm(X, axis=1, keepdims=True))
    other = X.copy(order="F")
    other[0, 0] = 1e-150
    pair = [admit(kept(rows), norm) for rows in (X, other)]
    length = 0.5 / max(norm, 0.5)
    center = X[7] / max(norm, 0.5)
    queries = [FarCount(length * (1 + ulp * 2**-52)) for ulp in range(-4, 5)]
    queries += [FarCount(r, center) for r in np.sqrt(((X - X[7]) ** 2).sum(axis=1))[1:40]]
    queries += [ClippedRowSum(17, 1e-19, center)]
    for query in queries:
        gap = query.evaluate(pair[0]) - query.evaluate(pair[1])
        reach = query.sensitivity("replace-one", 300).l2
        assert np.linalg.norm(gap) <= reach * (1 + FLOAT_SLACK)
