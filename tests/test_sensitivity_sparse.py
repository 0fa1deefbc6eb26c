# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sums of sparse rows keep the sensitivities they state, which are tight."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from skdp._rows.base import L2Ball
from skdp._rows.linear import top_entries
from skdp.location._sparse_noisy import SparseRowSum, sparse_rows
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests._chunks import shorten_chunks
from tests._neighbours import ADJACENCIES, LAYOUTS, as_dense, as_layout, neighbours, on_examples

NORMS = {"l1": 1, "l2": 2}
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def total(X, query, radius=1.0):
    return query.evaluate(sparse_rows(X, L2Ball(radius), query.sparsity, query.nonnegative))


def with_null_rows(rows):
    """Return the rows, null ones not a number."""
    X = as_dense(rows.X).copy()
    X[rows.null] = np.nan
    return X


def assert_keeps_its_word(query, adjacency, first, second, radius=1.0):
    stated = query.sensitivity(adjacency, first.shape[0])
    values = [total(X, query, radius) for X in (first, second)]
    for value in values:
        assert np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK)
        assert not query.nonnegative or value.min() >= 0
    for norm, order in NORMS.items():
        gap = np.linalg.norm(values[0] - values[1], ord=order)
        assert gap <= getattr(stated, norm) * (1 + FLOAT_SLACK)


@every_adjacency
@on_examples(400)
def test_the_sum_keeps_its_sensitivities(adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=radius))
    layout = data.draw(st.sampled_from(LAYOUTS))
    query = SparseRowSum(
        pair[0].X.shape[1],
        data.draw(st.sampled_from([None, 1, 2, 3, 99])),
        data.draw(st.booleans()),
    )
    first, second = (as_layout(with_null_rows(rows), layout) for rows in pair)
    assert_keeps_its_word(query, adjacency, first, second, radius)


def replaced(X, row):
    """Return rows of which the second is another one; None is a null row."""
    X = np.array(X)
    X[1] = np.nan if row is None else row
    return X


@every_adjacency
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sparsity", [1, 3, 8])
@pytest.mark.parametrize("norm", NORMS)
def test_it_attains_its_sensitivity(norm, sparsity, container, adjacency):
    # the worst row has its largest entries, all equal, far beyond the ball
    row = np.where(np.arange(16) < sparsity, 70.0, 0.1)
    rows = np.tile(row, (4, 1))
    other = None if adjacency == "zero-out" else -row
    query = SparseRowSum(16, sparsity)
    gap = total(container(rows), query) - total(container(replaced(rows, other)), query)
    stated = getattr(query.sensitivity(adjacency, 4), norm)
    assert np.linalg.norm(gap, ord=NORMS[norm]) == pytest.approx(stated, rel=1e-9)


@every_adjacency
@pytest.mark.parametrize("norm", NORMS)
def test_rows_without_negatives_attain_theirs_on_disjoint_supports(norm, adjacency):
    row = np.where(np.arange(16) < 4, 5.0, -7.0)
    other = None if adjacency == "zero-out" else np.roll(row, 4)
    query = SparseRowSum(16, 4, nonnegative=True)
    rows = np.tile(row, (4, 1))
    gap = total(rows, query) - total(replaced(rows, other), query)
    stated = getattr(query.sensitivity(adjacency, 4), norm)
    assert np.linalg.norm(gap, ord=NORMS[norm]) == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize(
    ("query", "adjacency", "l1", "l2"),
    [
        (SparseRowSum(100, 9), "zero-out", 3.0, 1.0),
        (SparseRowSum(100, 9), "replace-one", 6.0, 2.0),
        (SparseRowSum(100, 9, True), "zero-out", 3.0, 1.0),
        (SparseRowSum(100, 9, True), "replace-one", 6.0, math.sqrt(2)),
        # there is no room for disjoint supports
        (SparseRowSum(9, 9, True), "replace-one", 3 * math.sqrt(2), math.sqrt(2)),
        (SparseRowSum(16, None), "replace-one", 8.0, 2.0),
        (SparseRowSum(16, 10**9), "zero-out", 4.0, 1.0),
    ],
)
def test_what_is_stated(query, adjacency, l1, l2):
    stated = query.sensitivity(adjacency, 7)
    assert (stated.l1, stated.l2, stated.bound) == (pytest.approx(l1), pytest.approx(l2), 7.0)


def naive(X, sparsity, nonnegative, radius):
    """Return the sum row by row, as the definition says."""
    value = np.zeros(X.shape[1])
    for row in X:
        if not np.isfinite(row).all():
            continue
        row = np.maximum(row, 0) if nonnegative else row
        order = sorted(range(len(row)), key=lambda j: (-abs(row[j]), j))
        kept = np.zeros_like(row)
        kept[order[:sparsity]] = row[order[:sparsity]]
        scale = max(np.abs(kept).max(), radius)
        value += kept / scale / max(np.linalg.norm(kept / scale), radius / scale)
    return value


@pytest.mark.covering
@every_layout
@pytest.mark.parametrize("nonnegative", [False, True])
@on_examples(60)
def test_in_any_layout_it_is_the_sum_of_admitted_rows(layout, nonnegative, data):
    rows, _ = data.draw(neighbours("replace-one", radius=2.0, layouts=("C",)))
    X = as_layout(as_dense(rows.X), layout)
    before = as_dense(X).copy()
    sparsity = data.draw(st.sampled_from([None, 1, 2, 3]))
    value = total(X, SparseRowSum(X.shape[1], sparsity, nonnegative), 2.0)
    with np.errstate(under="ignore"):
        expected = naive(before, sparsity, nonnegative, 2.0)
    np.testing.assert_allclose(
        value, expected, rtol=1e-6 if layout == "float32" else 1e-9, atol=1e-9
    )
    assert_array_equal(as_dense(X), before)


@pytest.fixture
def small_chunks(monkeypatch):
    shorten_chunks(monkeypatch, 3)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sparsity", [1, 2, 5, 11])
def test_largest_entries_are_kept_and_ties_go_to_the_first_columns(container, sparsity):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(50, 12)) * rng.choice([1.0, 1e200], size=(50, 1))
    X[7, 3] = np.nan
    cut = as_dense(top_entries(container(X), sparsity))
    for row, kept in zip(X, cut, strict=True):
        if np.isnan(row).any():
            assert np.isnan(kept).any()
            continue
        order = sorted(range(12), key=lambda j, row=row: (-abs(row[j]), j))[:sparsity]
        expected = np.where(np.isin(np.arange(12), order), row, 0)
        # huge rows are scaled down as a whole
        size = np.abs(kept).max()
        np.testing.assert_allclose(kept, expected * (size / np.abs(row).max() if size else 1.0))


def test_rows_that_have_nothing_to_lose_are_not_copied():
    X = sparse.random_array((100, 50), density=0.1, format="csr", rng=0)
    longest = int(np.diff(X.indptr).max())
    assert top_entries(X, longest) is X
    assert top_entries(X, None) is X
    cut = top_entries(X, longest - 1)
    assert cut.nnz < X.nnz
    assert np.diff(cut.indptr).max() == longest - 1


@every_layout
def test_what_a_row_keeps_depends_on_nothing_but_the_row(layout):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(60, 9)).astype(float)
    for kind in (1e-320, 1e308, np.nan, 0.5):
        other = X.copy()
        other[30] = kind
        one, two = (as_dense(top_entries(as_layout(rows, layout), 4)) for rows in (X, other))
        keep = np.arange(60) != 30
        assert_array_equal(one[keep], two[keep])


def test_stored_parts_and_explicit_zeros_count_as_what_they_add_up_to():
    # column 1 adds up to 5, column 4 to -1; column 2 stores a zero
    data = np.array([2.0, -4.0, 3.0, 3.0, -3.0, 0.0, 1.0])
    columns = np.array([1, 4, 4, 1, 6, 2, 0])
    X = sparse.csr_array((data.copy(), columns, [0, 7]), shape=(1, 8))
    assert_array_equal(total(X, SparseRowSum(8, 1), 10.0), np.eye(8)[1] * 0.5)
    value = total(X, SparseRowSum(8, 8, nonnegative=True), 10.0)
    assert_array_equal(value, 0.5 * np.eye(8)[1] + 0.1 * np.eye(8)[0])
    assert_array_equal(X.data, data)
