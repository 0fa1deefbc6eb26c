# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Histograms over open dictionaries keep their claim on any neighbours; what is touched."""

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp import DPSparseMeanEstimator
from skdp._rows.base import L2Ball
from skdp._sklearn import validate_private_data
from skdp.location._sparse_noisy import SparseRowSum, TouchedColumnSum, sparse_rows
from tests._chunks import shorten_chunks
from tests._histograms import DELTA, EPSILON, alone, measured, release_of, unit, worst
from tests._neighbours import ADJACENCIES, BROKEN_ROWS, as_dense, as_layout, neighbours, on_examples

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_sign = pytest.mark.parametrize("nonnegative", [False, True])


@pytest.mark.covering
@every_adjacency
@every_sign
@pytest.mark.parametrize("sparsity", [1, 3, 40])
def test_the_claim_is_kept_and_tight(adjacency, nonnegative, sparsity):
    pairs = [alone(adjacency, nonnegative, sparsity, a) for a in (1e-9, 0.3, 0.6, 0.9, 1)]
    ratios = [measured(pair, adjacency, nonnegative, sparsity) for pair in pairs]
    assert 0.8 <= max(ratios) <= 1


@every_adjacency
@on_examples(20)
def test_the_claim_is_kept_on_any_neighbours(adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=radius))
    nonnegative, sparsity = data.draw(st.booleans()), data.draw(st.sampled_from([1, 2, 50]))
    # null rows are those that are not finite
    rows = [nulled(each) for each in pair]
    fit = release_of(adjacency, nonnegative, sparsity, radius)
    assert worst(fit, *rows, EPSILON) <= DELTA


def nulled(rows):
    X = as_dense(rows.X).copy()
    X[rows.null] = np.nan
    return sparse.csr_array(X) if sparse.issparse(rows.X) else X


# -- what counts as touched ---------------------------------------------------------------


def evaluated(X, sparsity=None, nonnegative=False):
    rows = sparse_rows(X, L2Ball(1.0), sparsity, nonnegative)
    return TouchedColumnSum(X.shape[1], sparsity, nonnegative).evaluate(rows)


def test_a_column_in_which_rows_cancel_is_touched():
    X = np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.2]])
    for given_rows in (X, sparse.csr_array(X)):
        columns, sums = evaluated(given_rows)
        assert columns.tolist() == [0, 2]
        assert_allclose(sums, [0, 0.2])


@pytest.mark.parametrize("sparsity", [None, 1, 3])
def test_what_a_format_stores_does_not_matter(sparsity):
    # a zero, and two halves that cancel
    X = sparse.csr_array(([0.0, 0.3, -0.3, 0.2, 0.1], [4, 1, 1, 2, 2], [0, 5, 5, 5]), shape=(3, 6))
    columns, sums = evaluated(X, sparsity)
    assert columns.tolist() == [2]
    assert_allclose(sums, [0.3])


@pytest.mark.parametrize("kind", BROKEN_ROWS)
def test_a_row_that_is_not_finite_touches_nothing(kind):
    X = np.array([[float(kind), 1.0, 0.0], [0.0, 0.0, 0.5]])
    for given_rows in (X, sparse.csr_array(X)):
        for sparsity in (None, 1):
            assert evaluated(given_rows, sparsity)[0].tolist() == [2]


def test_entries_too_small_for_arithmetic_do_not_touch_whatever_the_other_rows_hold():
    for other in (1.0, 1e-200, 1e200, np.inf):
        X = np.array([[0.0, 1e-200, 1e-130], [other, 0.0, 0.0]])
        for given_rows in (X, sparse.csr_array(X)):
            assert {1, 2} & set(evaluated(given_rows)[0]) == {2}


def test_no_column_is_touched_by_empty_rows():
    for X in (sparse.csr_array((4, 2**40)), np.zeros((2, 3))):
        columns, sums = evaluated(X, 2)
        assert len(columns) == len(sums) == 0
        columns, values = release_of("zero-out")(X).values
        assert len(columns) == len(values) == 0


@pytest.mark.parametrize("layout", ["C", "csr", "csr zeros"])
@pytest.mark.parametrize("row", [0, 1, 5, 8])
def test_chunks_without_entries_are_no_exception(layout, row, monkeypatch):
    # with an entry in the first chunk or without: neighbours must not differ by an error
    shorten_chunks(monkeypatch, 2)
    X = np.zeros((9, 4))
    X[row, 2] = 0.25
    columns, sums = evaluated(as_layout(X, layout), 2)
    assert columns.tolist() == [2]
    assert (sums.dtype, sums.tolist()) == (np.float64, [0.25])


@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr", "csr zeros", "csr duplicates"])
@pytest.mark.parametrize("small", [False, True])
def test_in_any_layout_it_is_the_sum_of_admitted_rows(layout, small, monkeypatch):
    if small:
        shorten_chunks(monkeypatch, 3)
    rng = np.random.default_rng(0)
    X = as_layout(rng.normal(size=(40, 9)) * (rng.uniform(size=(40, 9)) < 0.4), layout)
    for sparsity, nonnegative in ((None, False), (2, False), (3, True)):
        rows = sparse_rows(X, L2Ball(1.0), sparsity, nonnegative)
        dense = SparseRowSum(9, sparsity, nonnegative).evaluate(rows)
        columns, sums = TouchedColumnSum(9, sparsity, nonnegative).evaluate(rows)
        assert_allclose(sums, dense[columns], rtol=1e-12)
        assert_array_equal(np.delete(dense, columns), 0)


@pytest.mark.parametrize("layout", ["C", "csr"])
def test_other_columns_stay_equal_to_the_last_bit(layout, monkeypatch):
    shorten_chunks(monkeypatch, 7)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30)) * (rng.uniform(size=(60, 30)) < 0.3)
    for row in (np.zeros(30), unit(30, 3, 17), 1e308 * unit(30, 5), np.full(30, np.nan)):
        other = X.copy()
        other[31] = row
        changed = (X[31] != 0) | (row != 0)
        sums = []
        for rows in (X, other):
            total = np.zeros(30)
            columns, values = evaluated(as_layout(rows, layout))
            total[columns] = values
            sums.append(total)
        assert_array_equal(sums[0][~changed], sums[1][~changed])


def test_facts_are_those_of_the_rows():
    for sparsity, d, columns in ((3, 10, 3), (20, 10, 10)):
        for nonnegative in (False, True):
            query = TouchedColumnSum(d, sparsity, nonnegative)
            for adjacency, rows in (("zero-out", 1), ("replace-one", 2)):
                facts = query.sensitivity(adjacency, 100)
                plain = SparseRowSum(d, sparsity, nonnegative).sensitivity(adjacency, 100)
                assert (facts.l1, facts.l2, facts.bound) == (plain.l1, plain.l2, 100.0)
                assert (facts.rows, facts.columns) == (rows, columns)
                assert facts.nonnegative == nonnegative


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_what_is_stored_in_parts_is_added_up_whatever_the_order_of_other_rows(kind, nonnegative):
    # parts of a sorted row that cancel or not, by the order in which they are added
    rng = np.random.default_rng(0)
    parts = np.repeat([1e16, -1e16, 1.0], [10, 10, 20])
    for _ in range(20):
        parts, seen = rng.permutation(parts), []
        for last in ([5, 6], [6, 5]):
            data, columns = np.append(parts, [0.5, 0.5]), np.append(np.zeros(40, int), last)
            X = sparse.csr_array((data, columns, [0, 40, 42]), shape=(2, 8))
            if kind is sparse.coo_array:
                X = kind((data, (np.repeat([0, 1], [40, 2]), columns)), shape=(2, 8))
            X = validate_private_data(DPSparseMeanEstimator(), X, accept_sparse="csr")
            seen.append(evaluated(X, 3, nonnegative))
        assert_array_equal(*(columns for columns, _ in seen))
        assert_array_equal(*(sums for _, sums in seen))
