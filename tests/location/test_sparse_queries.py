# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Queries on sparse rows: means, histograms and frequent features, and their planted bugs."""

import math
import tracemalloc
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPFrequentFeatures, DPLogisticRegression, DPSparseMeanEstimator, privacy_spent
from skdp._rows import linear
from skdp._rows.base import L2Ball
from skdp._rows.linear import top_entries
from skdp._sklearn import validate_private_data
from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.location import _sparse_noisy
from skdp.location._sparse_noisy import SparseRowSum, TouchedColumnSum, sparse_rows
from skdp.preprocessing import _frequent_features
from skdp.preprocessing._frequent_features import PresenceCount
from skdp.privacy import StabilityHistogram, gdp_mu
from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.privacy.laws import histogram
from skdp.privacy.laws.histogram import ThresholdNoise
from tests import _audit
from tests._chunks import shorten_chunks
from tests._histograms import DELTA, EPSILON, alone, measured, release_of, rows_of, unit, worst
from tests._neighbours import (
    ADJACENCIES,
    BROKEN_ROWS,
    LAYOUTS,
    as_dense,
    as_layout,
    neighbours,
    on_examples,
)

# Sums of sparse rows keep the sensitivities they state, which are tight.


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
@on_examples(200)
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
@on_examples(30)
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


@pytest.mark.sample(6)
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


# The privacy claims of means of sparse rows: coupled traces of whole fits, planted bugs.


SPARSE_MUTANT_EPSILON, SPARSE_MUTANT_DELTA, D, S = 2.0, 1e-5, 40, 4
CLAIMED_MU = gdp_mu(SPARSE_MUTANT_EPSILON, SPARSE_MUTANT_DELTA)
NULL = np.full(D, np.nan)

GAUSSIAN = DPSparseMeanEstimator(
    SPARSE_MUTANT_EPSILON,
    SPARSE_MUTANT_DELTA,
    mechanism="soft-threshold",
    sparsity=S,
    random_state=0,
)
FREE = clone(GAUSSIAN).set_params(sparsity=None)
SIGNED = clone(GAUSSIAN).set_params(nonnegative=True)
PROJECTION = clone(GAUSSIAN).set_params(mechanism="projection", projection="l1l2")
LAPLACE = clone(PROJECTION).set_params(delta=0.0)
PURE_SIGNED = clone(SIGNED).set_params(delta=0.0)
every_model = pytest.mark.parametrize(
    "model", [GAUSSIAN, FREE, SIGNED, PROJECTION, LAPLACE, PURE_SIGNED], ids=str
)


def fitted(model, X):
    """Fit, with null rows in the data: validation would refuse them."""
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(X)


def sparse_mutant_measured(model, *pair):
    """Return the privacy parameter of a coupled pair of fits, relative to the claim."""
    fit = lambda X: fitted(model, X)  # noqa: E731
    if model.delta:
        return _audit.coupled_mu(fit, *pair) / CLAIMED_MU
    return _audit.coupled_epsilon(fit, *pair) / SPARSE_MUTANT_EPSILON


def pair(row, other, n_rows=9):
    """Return sparse rows, the second of which is replaced; the others are zero."""
    first = np.zeros((n_rows, D))
    second = first.copy()
    first[1], second[1] = row, other
    return sparse.csr_array(first), sparse.csr_array(second)


def first_columns(n_columns, value=1.0):
    """Return a row that has a value in its first columns."""
    return np.where(np.arange(D) < n_columns, value, 0.0)


def sparse_mutant_worst(model, adjacency):
    """Return the pair that moves the sum furthest: long rows, as many entries as count."""
    row = first_columns(D if model.sparsity is None else S, 9.0)
    other = np.roll(row, S) if model.nonnegative else -row
    return pair(row, NULL if adjacency == "zero-out" else other)


@pytest.mark.sample(6, 10)
@every_adjacency
@every_model
def test_claims_are_kept_and_tight(model, adjacency):
    model = clone(model).set_params(adjacency=adjacency)
    assert 0.999 <= sparse_mutant_measured(model, *sparse_mutant_worst(model, adjacency)) <= 1.0


@pytest.mark.covering
@every_adjacency
@every_model
@on_examples(20)
def test_claims_are_kept_on_any_neighbours(model, adjacency, data):
    one, two = data.draw(neighbours(adjacency, null_row=np.nan))
    layout = data.draw(st.sampled_from(LAYOUTS))
    model = clone(model).set_params(
        adjacency=adjacency, data_norm=data.draw(st.sampled_from([1, 9])), sparsity=2
    )
    rows = [as_layout(as_dense(side.X), layout) for side in (one, two)]
    assert sparse_mutant_measured(model, *rows) <= 1.0


@pytest.mark.covering
@pytest.mark.parametrize("other", ["opposite", "disjoint", "duplicate", "short", "zero", "dense"])
@every_model
def test_claims_are_kept_on_named_neighbours(model, other):
    row = first_columns(S, 9.0)
    others = {
        "opposite": -row, "disjoint": np.roll(row, S), "duplicate": row, "short": row / 100,
        "zero": 0 * row, "dense": np.linspace(-1, 1, D) * 1e3,
    }  # fmt: skip
    assert sparse_mutant_measured(model, *pair(row, others[other])) <= 1.0


@pytest.mark.parametrize("model", [GAUSSIAN, LAPLACE], ids=str)
def test_halved_noise_is_caught(model, monkeypatch):
    X = np.random.default_rng(0).normal(size=(9, 500))
    fit = lambda: fitted(model, X)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


def test_laplace_noise_for_the_l2_sensitivity_is_caught(monkeypatch):
    real = SparseRowSum.sensitivity

    def short(self, adjacency, n_rows):
        facts = real(self, adjacency, n_rows)
        return replace(facts, l1=facts.l2)

    monkeypatch.setattr(SparseRowSum, "sensitivity", short)
    found = sparse_mutant_measured(LAPLACE, *sparse_mutant_worst(LAPLACE, "replace-one"))
    assert found == pytest.approx(math.sqrt(S), rel=1e-3)


def test_gaussian_noise_for_rows_that_are_clipped_in_l1_only_is_caught(monkeypatch):
    """The l1 ball that has all sparse rows of the unit ball has rows of norm sqrt(s) too."""
    one_entry = pair(first_columns(1, 9.0), NULL)
    model = clone(GAUSSIAN).set_params(adjacency="zero-out")
    assert 0.999 <= sparse_mutant_measured(model, *one_entry) <= 1.0

    def clip_l1(X):
        norms = np.abs(X).sum(axis=1)
        return norms / math.sqrt(S)

    monkeypatch.setattr(linear, "row_norms", clip_l1)
    assert sparse_mutant_measured(model, *one_entry) == pytest.approx(math.sqrt(S), rel=1e-3)


@pytest.mark.parametrize("container", [sparse.csr_array, as_dense])
def test_a_sparsity_that_is_not_enforced_is_caught(container, monkeypatch):
    rows = [container(X) for X in pair(np.ones(D), -np.ones(D))]
    assert 0.999 <= sparse_mutant_measured(LAPLACE, *rows) <= 1.0
    monkeypatch.setattr(_sparse_noisy, "top_entries", lambda X, sparsity: X)
    assert sparse_mutant_measured(LAPLACE, *rows) == pytest.approx(math.sqrt(D / S), rel=1e-3)


def test_a_sparsity_that_counts_what_is_stored_apart_is_caught(monkeypatch):
    """Who keeps the entries of rank s by their stored parts may keep twice as many."""
    halves = [sparse.csr_array(np.hstack([X.toarray()] * 2)) for X in pair(np.ones(D), -np.ones(D))]
    rows = [sparse.csr_array((X.data, X.indices % D, X.indptr), shape=(9, D)) for X in halves]
    assert 0.999 <= sparse_mutant_measured(LAPLACE, *rows) <= 1.0

    def careless(X, start, stop, sparsity):
        kept = np.arange(X.nnz) % (2 * D) < 2 * sparsity
        ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr[start : stop + 1]]
        return sparse.csr_array((X.data[kept], X.indices[kept], ends), shape=X.shape)

    monkeypatch.setattr(linear, "_cut_sparse", careless)
    assert sparse_mutant_measured(LAPLACE, *rows) == pytest.approx(math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("model", [GAUSSIAN, FREE], ids=str)
def test_norms_of_rows_with_duplicates_that_are_not_added_up_are_caught(model, monkeypatch):
    data, columns = np.where(np.arange(10) // 2 == 1, 0.5, 0.0), np.zeros(10, int)
    first = sparse.csr_array((data, columns, np.arange(6) * 2), shape=(5, D))
    data = np.where(np.arange(10) == 3, np.nan, data)
    second = sparse.csr_array((data, columns, np.arange(6) * 2), shape=(5, D))
    model = clone(model).set_params(adjacency="zero-out", data_norm=math.sqrt(0.5))
    assert 0.999 <= sparse_mutant_measured(model, first, second) <= 1.0

    def careless(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        broken = np.bincount(rows, ~np.isfinite(X.data), X.shape[0]) > 0
        return type(X)((np.nan_to_num(X.data), X.indices, X.indptr), shape=X.shape), broken

    for module in (linear, linear):
        monkeypatch.setattr(module, "tame", careless)
    assert sparse_mutant_measured(model, first, second) == pytest.approx(math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("container", [sparse.csr_array, as_dense])
def test_a_right_angle_that_is_claimed_of_any_rows_is_caught(container, monkeypatch):
    row = first_columns(S, 9.0)
    rows = [container(X) for X in pair(row, -row)]
    # the negative row loses all its entries
    assert sparse_mutant_measured(SIGNED, *rows) == pytest.approx(math.sqrt(0.5), rel=1e-3)
    monkeypatch.setattr(_sparse_noisy, "_without_negatives", lambda X: X)
    assert sparse_mutant_measured(SIGNED, *rows) == pytest.approx(math.sqrt(2), rel=1e-3)


@every_model
def test_dropped_clipping_is_caught(model, monkeypatch):
    rows = sparse_mutant_worst(model, "replace-one")
    assert sparse_mutant_measured(model, *rows) <= 1.0
    monkeypatch.setattr(L2Ball, "factors", lambda ball, norms: 1 / ball.radius + 0 * norms)
    assert sparse_mutant_measured(model, *rows) > 4


def test_a_threshold_from_the_rows_is_caught(monkeypatch):
    """Nothing but what was released may decide how much is shrunk."""
    model = GAUSSIAN
    X, _ = sparse_mutant_worst(model, "replace-one")
    with _audit.recorded([np.zeros(D)]):
        first = fitted(model, X).threshold_
    with _audit.recorded([np.zeros(D)]):
        assert fitted(model, -X[[1] * 9]).threshold_ == first


# Histograms over open dictionaries keep their claim on any neighbours; what is touched.


every_sign = pytest.mark.parametrize("nonnegative", [False, True])


@pytest.mark.sample(1)
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


@pytest.mark.sample(6, 10)
@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr", "csr zeros", "csr duplicates"])
@pytest.mark.parametrize("small", [False, True])
def test_in_any_layout_a_histogram_is_the_sum_of_admitted_rows(layout, small, monkeypatch):
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


@pytest.mark.sample(2)
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


# Known bugs of histograms over open dictionaries, planted one by one.
#
# What a release gives away is computed exactly from the sums behind it. Every test first
# shows that this passes on the real code.


@pytest.mark.sample(1)
def test_noise_has_the_declared_scale_and_halved_noise_is_caught(monkeypatch):
    X = sparse.csr_array(np.eye(2000))
    assert not _audit.scale_is_wrong(_audit.noise_stream(release_of("zero-out"), X))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(release_of("zero-out"), X))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("adjacency", "nonnegative"), [("zero-out", True), ("replace-one", False)])
def test_a_threshold_that_is_too_low_is_caught(adjacency, nonnegative, monkeypatch):
    pair = alone(adjacency, nonnegative, 1)
    assert 0.9 <= measured(pair, adjacency, nonnegative) <= 1
    real = StabilityHistogram._threshold
    monkeypatch.setattr(StabilityHistogram, "_threshold", lambda *args: 0.97 * real(*args))
    # the ledger prices the threshold once more
    with pytest.raises(BudgetError, match="its noise is not the one that was paid for"):
        measured(pair, adjacency, nonnegative)
    # and without that the audit tells
    monkeypatch.setattr(ThresholdNoise, "actual", lambda noise, stated, size: noise.price)
    assert measured(pair, adjacency, nonnegative) > 1.5


@pytest.mark.sample(1)
@every_adjacency
def test_a_threshold_for_one_column_is_caught(adjacency, monkeypatch):
    pair = alone(adjacency, True, 40)
    assert measured(pair, adjacency, True, 40) <= 1
    real = histogram._stray
    monkeypatch.setattr(histogram, "_stray", lambda a, columns, *args: real(a, 1, *args))
    assert measured(pair, adjacency, True, 40) > 5


def test_a_threshold_for_entries_of_zero_is_caught(monkeypatch):
    pair = alone("zero-out", True, 1)
    assert measured(pair, "zero-out", True) <= 1
    real = histogram._stray
    monkeypatch.setattr(histogram, "_stray", lambda a, *args: real(0 * a, *args))
    assert measured(pair, "zero-out", True) > 1.5


def test_rows_with_more_entries_than_stated_are_caught(monkeypatch):
    row = unit(60, *range(1, 51))
    pair = rows_of(row, np.zeros(60))
    assert measured(pair, "zero-out", True) <= 1
    monkeypatch.setattr(_sparse_noisy, "top_entries", lambda X, sparsity: X)
    assert measured(pair, "zero-out", True) > 5


@pytest.mark.sample(1)
@every_adjacency
def test_rows_that_are_not_clipped_are_caught(adjacency, monkeypatch):
    pair = rows_of(4 * unit(60, 1), np.zeros(60))
    assert measured(pair, adjacency) <= 1
    monkeypatch.setattr("skdp._rows.base.L2Ball.factors", lambda ball, norms: 1 + 0 * norms)
    assert measured(pair, adjacency) > 1.5


def test_columns_in_which_rows_cancel_left_out_are_caught(monkeypatch):
    # the sum over column 1 is zero with the first row, and 2 with its replacement
    rows = sparse.vstack([sparse.csr_array([unit(60, 1)]), rows_of(unit(60, 0), unit(60, 0))[0]])
    pair = [sparse.vstack([sign * unit(60, 1)[None], rows], format="csr") for sign in (-1.0, 1.0)]
    assert measured(pair, "replace-one") <= 1
    real = TouchedColumnSum.evaluate

    def forgetful(self, rows):
        columns, sums = real(self, rows)
        return columns[sums != 0], sums[sums != 0]

    monkeypatch.setattr(TouchedColumnSum, "evaluate", forgetful)
    assert measured(pair, "replace-one") > 1.2


def test_negative_entries_that_are_not_dropped_are_caught(monkeypatch):
    pair = rows_of(unit(60, 0), unit(60, 0, sign=-1.0))
    assert measured(pair, "replace-one", True) <= 1
    monkeypatch.setattr(_sparse_noisy, "_without_negatives", lambda X: X)
    assert measured(pair, "replace-one", True) > 1.5


def test_replace_one_charged_as_zero_out_is_caught(monkeypatch):
    pair = alone("replace-one", False, 1, a=0.0)
    assert 0.9 <= measured(pair, "replace-one") <= 1
    real = TouchedColumnSum.sensitivity
    monkeypatch.setattr(TouchedColumnSum, "sensitivity", lambda q, _, n: real(q, "zero-out", n))
    assert measured(pair, "replace-one") > 1.5


# DPFrequentFeatures: what it keeps, formats, pipelines, and bad input.


NAN, INF = float("nan"), float("inf")
N, FEATURES_D = 3000, 40


def rows_with_frequencies(seed=0):
    """Return 0/1 rows; feature j occurs in fewer rows the larger j is."""
    rates = np.linspace(0.8, 0.0, FEATURES_D)
    return (np.random.default_rng(seed).uniform(size=(N, FEATURES_D)) < rates).astype(float)


X = rows_with_frequencies()
SPARSE = sparse.csr_array(X)
# half-way between the counts of two features
EDGE = X.sum(axis=0)[19:21].mean()


def selector(epsilon=5.0, **options):
    return DPFrequentFeatures(epsilon, random_state=0, **options)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_the_most_frequent_features_are_kept(delta, adjacency):
    model = selector(delta=delta, n_features_to_select=10, adjacency=adjacency).fit(SPARSE)
    assert model.get_support(indices=True).tolist() == list(range(10))
    scale = model.ledger_.releases[0].noise.scale
    np.testing.assert_allclose(model.counts_, X.sum(axis=0), atol=20 * scale)
    assert model.ledger_.releases[0].noise.law == ("gaussian" if delta else "laplace")
    assert model.privacy_spent_ == (pytest.approx(5.0), delta)


def test_rows_longer_than_the_sparsity_count_with_their_largest_entries():
    rows = np.tile(np.arange(1.0, FEATURES_D + 1), (N, 1))
    model = selector(sparsity=3, n_features_to_select=3).fit(rows)
    assert model.get_support(indices=True).tolist() == [
        FEATURES_D - 3,
        FEATURES_D - 2,
        FEATURES_D - 1,
    ]
    assert model.counts_[: FEATURES_D - 3].max() < 100


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, FEATURES_D // 2),
        ({"n_features_to_select": 7}, 7),
        ({"n_features_to_select": 1000}, FEATURES_D),
        ({"threshold": EDGE}, 20),
        ({"threshold": EDGE, "n_features_to_select": 5}, 5),
        ({"threshold": EDGE, "n_features_to_select": 39}, 20),
        ({"threshold": -1e9}, FEATURES_D),
    ],
)
def test_how_many_are_kept(options, kept):
    model = selector(epsilon=200.0, sparsity=FEATURES_D, **options).fit(X)
    np.testing.assert_array_equal(np.flatnonzero(model.support_), np.arange(kept))


def test_of_equal_counts_the_first_are_kept(monkeypatch):
    monkeypatch.setattr(
        "skdp.privacy.kernel.mechanisms.add_noise", lambda values, *_: np.ones(FEATURES_D)
    )
    model = selector(n_features_to_select=3).fit(X)
    assert model.get_support(indices=True).tolist() == [0, 1, 2]


def test_without_any_feature_scikit_learn_says_so():
    model = selector(threshold=1e9).fit(SPARSE)
    assert not model.support_.any()
    with pytest.warns(UserWarning, match="No features were selected"):
        assert model.transform(SPARSE).shape == (N, 0)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_are_cut_out_in_the_format_and_type_of_the_rows(container, dtype):
    given = container(X).astype(dtype)
    model = selector(n_features_to_select=8).fit(given)
    kept = model.get_support(indices=True)
    cut = model.transform(given)
    assert type(cut) is type(given)
    assert cut.dtype == dtype
    np.testing.assert_array_equal(cut @ np.eye(8), X[:, kept])
    back = model.inverse_transform(cut)
    expected = np.zeros_like(X)
    expected[:, kept] = X[:, kept]
    np.testing.assert_array_equal(back @ np.eye(FEATURES_D), expected)


def test_formats_agree_on_what_is_kept():
    one = selector().fit(X)
    for other in (sparse.csr_matrix(X), sparse.coo_array(X), X.astype(np.float32), X.astype(int)):
        np.testing.assert_array_equal(selector().fit(other).counts_, one.counts_)


def test_names_follow_the_columns():
    frame = pd.DataFrame(X, columns=[f"word{j}" for j in range(FEATURES_D)])
    model = selector(n_features_to_select=2).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["word0", "word1"]
    assert list(model.get_feature_names_out()) == ["word0", "word1"]
    assert list(model.feature_names_in_) == list(frame.columns)


def test_a_pipeline_pays_for_the_choice():
    y = np.arange(N) % 2
    model = make_pipeline(
        selector(epsilon=0.5, delta=1e-7, n_features_to_select=5),
        DPLogisticRegression(0.5, 1e-7, classes=[0, 1], random_state=0, data_norm=1.0),
    )
    with pytest.warns(SeededNoiseWarning):
        model.fit(SPARSE, y)
    spent = privacy_spent(model)
    assert spent.uncovered == ()
    assert 0.5 < spent.epsilon < 1.0
    # the choice, and the moments and gradients of the model
    assert [release.count for release in spent.ledger.releases] == [1, 1, model[-1].n_iter_[0]]
    assert model[-1].coef_.shape == (1, 5)


# -- bad input ----------------------------------------------------------------------------

BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-1e-9, 1, NAN, "0", None],
    "adjacency": ["remove-one", None],
    "sparsity": [0, -1, 1.5, True, "1", None, NAN],
    "n_features_to_select": [0, -1, 1.5, True, "1", NAN],
    "threshold": [NAN, INF, -INF, "1", True],
    "random_state": [-1, "a"],
}


@pytest.mark.sample(6, 44)
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, bad in BAD.items() for value in bad]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(parameter, value, validated):
    model = DPFrequentFeatures().set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(X[:50])
    assert not hasattr(model, "ledger_")


def test_a_budget_too_small_for_gaussian_noise_is_named():
    with pytest.raises(ValueError, match="too small to be spent"):
        DPFrequentFeatures(1e-12, 1e-300).fit(X)


def test_more_features_than_counts_fit_in_memory():
    with pytest.raises(ValueError, match="hash the features to at most 2147483648"):
        DPFrequentFeatures().fit(sparse.csr_array((5, 2**40)))


DATA = {
    "one row": X[:1], "two rows": X[:2], "one feature": X[:, :1], "constant": np.full((60, 3), 3.3),
    "zeros": np.zeros((60, 3)), "large": X * 1e300, "small": X * 1e-300, "negative": -X,
    "largest": np.full((60, 3), 1.7e308), "denormal": np.full((60, 3), 5e-324),
    "single": X.astype(np.float32), "scales": X[:, :3] * [1e300, 1, 1e-300],
    "columns": np.asfortranarray(X), "backwards": X[::-1, ::-1],
    "no entries": sparse.csr_array((9, 4)),
    "long indices": sparse.csr_array((SPARSE.data, SPARSE.indices.astype(np.int64),
                                      SPARSE.indptr.astype(np.int64)), shape=SPARSE.shape),
    "duplicates": sparse.csr_array(
        (np.full(240, 8e307), np.tile([2, 0, 2, 2], 60), np.arange(0, 241, 4)), shape=(60, 3)
    ),
}  # fmt: skip


@pytest.mark.sample(6, 15)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("rows", DATA.values(), ids=DATA)
def test_degenerate_rows(rows, delta):
    before = rows.copy()
    if not sparse.issparse(rows):
        rows.flags.writeable = False
    with np.errstate(all="raise"):
        model = clone(selector(delta=delta)).fit(rows)
        assert model.transform(rows).shape == (rows.shape[0], max(1, rows.shape[1] // 2))
    assert np.isfinite(model.counts_).all()
    assert model.privacy_spent_[0] <= 5.0
    for name in ("data", "indices", "indptr") if sparse.issparse(rows) else ("data",):
        np.testing.assert_array_equal(getattr(rows, name), getattr(before, name))


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-9), (1.0, 0.9), (1e9, 1e-9), (1e-9, 0.0)])
def test_legal_budgets_are_served_within_the_budget(epsilon, delta):
    model = selector(epsilon, delta=delta).fit(X)
    assert model.privacy_spent_[0] <= epsilon
    assert model.privacy_spent_[1] == delta


@pytest.mark.full
def test_wide_sparse_rows_take_memory_of_their_entries_and_a_few_vectors():
    n_rows, n_features, per_row = 2000, 10**6, 30
    rng = np.random.default_rng(0)
    columns = rng.integers(n_features, size=n_rows * per_row)
    columns[::per_row] = 17
    rows = sparse.csr_array(
        (np.ones(len(columns)), columns, np.arange(n_rows + 1) * per_row), (n_rows, n_features)
    )
    tracemalloc.start()
    model = selector(n_features_to_select=3, sparsity=per_row).fit(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.support_[17]
    assert peak < 12 * 8 * n_features
    assert model.transform(rows).shape == (n_rows, 3)


# The claim of private feature selection: coupled traces of whole fits, and planted bugs.


FEATURES_MUTANT_EPSILON, FEATURES_MUTANT_DELTA, FEATURES_MUTANT_D = 2.0, 1e-5, 12
every_delta = pytest.mark.parametrize("delta", [FEATURES_MUTANT_DELTA, 0.0])


def features_mutant_selector(adjacency="replace-one", delta=FEATURES_MUTANT_DELTA, **options):
    options = {"sparsity": 4, **options}
    return DPFrequentFeatures(
        FEATURES_MUTANT_EPSILON, delta, adjacency=adjacency, random_state=0, **options
    )


def features_mutant_measured(model, pair):
    """Return the coupled price of whole fits, relative to the claim."""

    def fit(rows):
        # null rows are not finite; no user can pass one
        with sklearn.config_context(assume_finite=True):
            clone(model).fit(rows)

    if model.delta:
        return _audit.coupled_mu(fit, *pair) / gdp_mu(
            FEATURES_MUTANT_EPSILON, FEATURES_MUTANT_DELTA
        )
    return _audit.coupled_epsilon(fit, *pair) / FEATURES_MUTANT_EPSILON


def worst_pair(adjacency, n_nonzeros=4, d=FEATURES_MUTANT_D):
    """Return rows of which one has other features than its replacement, or none."""
    first = np.zeros((20, d))
    first[1:, 0] = 1.0
    second = first.copy()
    first[0, :n_nonzeros] = 1e-3
    if adjacency == "replace-one":
        second[0, -n_nonzeros:] = -1e9
    return sparse.csr_array(first), sparse.csr_array(second)


@every_adjacency
@every_delta
def test_the_claim_of_counts_is_kept_and_tight(adjacency, delta):
    ratio = features_mutant_measured(
        features_mutant_selector(adjacency, delta), worst_pair(adjacency)
    )
    assert 0.999 <= ratio <= 1


@every_delta
@pytest.mark.parametrize("d", [4, 5, 7, 8, 9])
def test_two_rows_cannot_differ_in_more_features_than_there_are(d, delta):
    first, second = np.zeros((2, 3, d))
    first[0, :4], second[0, 4:8] = 1.0, 1.0
    # with d < 8 the second row has fewer features of its own
    ratio = features_mutant_measured(features_mutant_selector(delta=delta), (first, second))
    assert 0.999 <= ratio <= 1


@pytest.mark.covering
@every_adjacency
@every_delta
@on_examples(20)
def test_the_claim_of_counts_is_kept_on_any_neighbours(adjacency, delta, data):
    pair = data.draw(neighbours(adjacency))
    rows = []
    for each in pair:
        X = as_dense(each.X).copy()
        X[each.null] = np.nan
        rows.append(sparse.csr_array(X) if sparse.issparse(each.X) else X)
    model = features_mutant_selector(
        adjacency, delta, sparsity=data.draw(st.sampled_from([1, 2, 3, 50]))
    )
    assert features_mutant_measured(model, rows) <= 1


@every_adjacency
@on_examples(30)
def test_it_counts_the_largest_entries_of_every_row(adjacency, data):
    rows, _ = data.draw(neighbours(adjacency, finite=True))
    sparsity = data.draw(st.sampled_from([1, 2, 9]))
    n, d = rows.X.shape
    expected = np.zeros(d)
    for x in as_dense(rows.X):
        # entries below the smallest that arithmetic is made for are zero
        largest = np.abs(x).max()
        x = np.where(np.abs(x) * min(1.0, 1e140 / max(largest, 1.0)) < 1e-140, 0.0, np.abs(x))
        kept = np.argsort(-x, kind="stable")[:sparsity]
        expected[kept[x[kept] > 0]] += 1
    admitted = sparse_rows(rows.X, L2Ball(1.0), sparsity)
    query = PresenceCount(d, sparsity)
    counts = query.evaluate(admitted)
    np.testing.assert_array_equal(counts, expected)
    assert counts.max() <= query.sensitivity(adjacency, n).bound


@every_delta
def test_the_budget_is_spent_to_the_last_digit(delta):
    for adjacency in ADJACENCIES:
        ledger = features_mutant_selector(adjacency, delta).fit(np.eye(5)).ledger_
        assert ledger.fits(FEATURES_MUTANT_EPSILON, delta)
        assert ledger.epsilon(delta) == pytest.approx(FEATURES_MUTANT_EPSILON, rel=1e-6)


def test_without_the_noisy_counts_nothing_depends_on_the_data():
    hashes = set()
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(40, 30))
        with mock.patch.object(mechanisms, "add_noise", return_value=np.arange(30.0)):
            hashes.add(joblib.hash(vars(features_mutant_selector().fit(X))))
    assert len(hashes) == 1


@pytest.mark.sample(1)
@every_delta
def test_noise_of_counts_has_the_declared_scale_and_halved_noise_is_caught(delta, monkeypatch):
    X = np.eye(2000)
    assert not _audit.scale_is_wrong(
        _audit.noise_stream(features_mutant_selector(delta=delta).fit, X)
    )
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(features_mutant_selector(delta=delta).fit, X))


@every_adjacency
@every_delta
def test_rows_with_more_features_than_stated_are_caught(adjacency, delta, monkeypatch):
    pair = worst_pair(adjacency, n_nonzeros=6)
    assert features_mutant_measured(features_mutant_selector(adjacency, delta), pair) <= 1
    monkeypatch.setattr(_sparse_noisy, "top_entries", lambda X, sparsity: X)
    expected = math.sqrt(1.5) if delta else 1.5
    assert features_mutant_measured(
        features_mutant_selector(adjacency, delta), pair
    ) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("sparsity", [4, FEATURES_MUTANT_D])
def test_stored_zeros_that_are_counted_are_caught(sparsity, monkeypatch):
    # four features in parts, and a zero stored for every other one
    rows = np.zeros((3, FEATURES_MUTANT_D))
    rows[0, :4] = 1.0
    stored = sparse.csr_array(
        (
            np.concatenate([rows.ravel(), [0.5, -0.5, 1.0]]),
            np.concatenate([np.tile(np.arange(FEATURES_MUTANT_D), 3), [7, 7, 1]]),
            [0, FEATURES_MUTANT_D, 2 * FEATURES_MUTANT_D, 3 * FEATURES_MUTANT_D + 3],
        ),
        shape=(3, FEATURES_MUTANT_D),
    )
    query = PresenceCount(FEATURES_MUTANT_D, sparsity)
    admitted = sparse_rows(stored, L2Ball(1.0), sparsity)
    expected = [1.0, 2.0, 1.0, 1.0] + [0.0] * (FEATURES_MUTANT_D - 4)
    np.testing.assert_array_equal(query.evaluate(admitted), expected)

    def careless(chunk):
        return chunk.X.indices, chunk.X.data, None

    monkeypatch.setattr(_frequent_features, "entries", careless)
    counts = query.evaluate(sparse_rows(stored, L2Ball(1.0), FEATURES_MUTANT_D))
    assert counts.sum() > sum(expected)


def test_features_that_count_with_their_values_are_caught(monkeypatch):
    pair = worst_pair("replace-one")
    assert features_mutant_measured(features_mutant_selector(), pair) <= 1

    def weighted(self, chunk):
        columns, values, _ = _frequent_features.entries(chunk)
        values = values / chunk.factor.min()
        return np.bincount(columns, np.abs(values), minlength=self.size)

    monkeypatch.setattr(PresenceCount, "partial", weighted)
    assert features_mutant_measured(features_mutant_selector(), pair) > 2


@every_delta
def test_counts_under_replace_one_charged_as_zero_out_are_caught(delta, monkeypatch):
    real = PresenceCount.sensitivity
    monkeypatch.setattr(PresenceCount, "sensitivity", lambda q, _, n: real(q, "zero-out", n))
    expected = math.sqrt(2) if delta else 2.0
    ratio = features_mutant_measured(
        features_mutant_selector(delta=delta), worst_pair("replace-one")
    )
    assert ratio == pytest.approx(expected, rel=1e-3)
