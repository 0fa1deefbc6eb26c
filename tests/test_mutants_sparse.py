# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The privacy claims of means of sparse rows: coupled traces of whole fits, planted bugs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from skdp import DPSparseMeanEstimator
from skdp._rows import linear
from skdp._rows.base import L2Ball
from skdp.location import _sparse_noisy as _sparse_row_sum
from skdp.location._sparse_noisy import SparseRowSum
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests._neighbours import ADJACENCIES, LAYOUTS, as_dense, as_layout, neighbours, on_examples

EPSILON, DELTA, D, S = 2.0, 1e-5, 40, 4
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
NULL = np.full(D, np.nan)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)

GAUSSIAN = DPSparseMeanEstimator(
    EPSILON, DELTA, mechanism="soft-threshold", sparsity=S, random_state=0
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


def measured(model, *pair):
    """Return the privacy parameter of a coupled pair of fits, relative to the claim."""
    fit = lambda X: fitted(model, X)  # noqa: E731
    if model.delta:
        return _audit.coupled_mu(fit, *pair) / CLAIMED_MU
    return _audit.coupled_epsilon(fit, *pair) / EPSILON


def pair(row, other, n_rows=9):
    """Return sparse rows, the second of which is replaced; the others are zero."""
    first = np.zeros((n_rows, D))
    second = first.copy()
    first[1], second[1] = row, other
    return sparse.csr_array(first), sparse.csr_array(second)


def first_columns(n_columns, value=1.0):
    """Return a row that has a value in its first columns."""
    return np.where(np.arange(D) < n_columns, value, 0.0)


def worst(model, adjacency):
    """Return the pair that moves the sum furthest: long rows, as many entries as count."""
    row = first_columns(D if model.sparsity is None else S, 9.0)
    other = np.roll(row, S) if model.nonnegative else -row
    return pair(row, NULL if adjacency == "zero-out" else other)


@every_adjacency
@every_model
def test_claims_are_kept_and_tight(model, adjacency):
    model = clone(model).set_params(adjacency=adjacency)
    assert 0.999 <= measured(model, *worst(model, adjacency)) <= 1.0


@pytest.mark.covering
@every_adjacency
@every_model
@on_examples(25)
def test_claims_are_kept_on_any_neighbours(model, adjacency, data):
    one, two = data.draw(neighbours(adjacency, null_row=np.nan))
    layout = data.draw(st.sampled_from(LAYOUTS))
    model = clone(model).set_params(
        adjacency=adjacency, data_norm=data.draw(st.sampled_from([1, 9])), sparsity=2
    )
    rows = [as_layout(as_dense(side.X), layout) for side in (one, two)]
    assert measured(model, *rows) <= 1.0


@pytest.mark.covering
@pytest.mark.parametrize("other", ["opposite", "disjoint", "duplicate", "short", "zero", "dense"])
@every_model
def test_claims_are_kept_on_named_neighbours(model, other):
    row = first_columns(S, 9.0)
    others = {
        "opposite": -row, "disjoint": np.roll(row, S), "duplicate": row, "short": row / 100,
        "zero": 0 * row, "dense": np.linspace(-1, 1, D) * 1e3,
    }  # fmt: skip
    assert measured(model, *pair(row, others[other])) <= 1.0


@pytest.mark.parametrize("model", [GAUSSIAN, LAPLACE], ids=str)
def test_halved_noise_is_caught(model, monkeypatch):
    X = np.random.default_rng(0).normal(size=(9, 500))
    fit = lambda: fitted(model, X)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


def test_laplace_noise_for_the_l2_sensitivity_is_caught(monkeypatch):
    real = SparseRowSum.sensitivity

    def short(self, adjacency, n_rows):
        facts = real(self, adjacency, n_rows)
        return replace(facts, l1=facts.l2)

    monkeypatch.setattr(SparseRowSum, "sensitivity", short)
    found = measured(LAPLACE, *worst(LAPLACE, "replace-one"))
    assert found == pytest.approx(math.sqrt(S), rel=1e-3)


def test_gaussian_noise_for_rows_that_are_clipped_in_l1_only_is_caught(monkeypatch):
    """The l1 ball that has all sparse rows of the unit ball has rows of norm sqrt(s) too."""
    one_entry = pair(first_columns(1, 9.0), NULL)
    model = clone(GAUSSIAN).set_params(adjacency="zero-out")
    assert 0.999 <= measured(model, *one_entry) <= 1.0

    def clip_l1(X):
        norms = np.abs(X).sum(axis=1)
        return norms / math.sqrt(S)

    monkeypatch.setattr(linear, "row_norms", clip_l1)
    assert measured(model, *one_entry) == pytest.approx(math.sqrt(S), rel=1e-3)


@pytest.mark.parametrize("container", [sparse.csr_array, as_dense])
def test_a_sparsity_that_is_not_enforced_is_caught(container, monkeypatch):
    rows = [container(X) for X in pair(np.ones(D), -np.ones(D))]
    assert 0.999 <= measured(LAPLACE, *rows) <= 1.0
    monkeypatch.setattr(_sparse_row_sum, "top_entries", lambda X, sparsity: X)
    assert measured(LAPLACE, *rows) == pytest.approx(math.sqrt(D / S), rel=1e-3)


def test_a_sparsity_that_counts_what_is_stored_apart_is_caught(monkeypatch):
    """Who keeps the entries of rank s by their stored parts may keep twice as many."""
    halves = [sparse.csr_array(np.hstack([X.toarray()] * 2)) for X in pair(np.ones(D), -np.ones(D))]
    rows = [sparse.csr_array((X.data, X.indices % D, X.indptr), shape=(9, D)) for X in halves]
    assert 0.999 <= measured(LAPLACE, *rows) <= 1.0

    def careless(X, start, stop, sparsity):
        kept = np.arange(X.nnz) % (2 * D) < 2 * sparsity
        ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr[start : stop + 1]]
        return sparse.csr_array((X.data[kept], X.indices[kept], ends), shape=X.shape)

    monkeypatch.setattr(linear, "_cut_sparse", careless)
    assert measured(LAPLACE, *rows) == pytest.approx(math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("model", [GAUSSIAN, FREE], ids=str)
def test_norms_of_rows_with_duplicates_that_are_not_added_up_are_caught(model, monkeypatch):
    data, columns = np.where(np.arange(10) // 2 == 1, 0.5, 0.0), np.zeros(10, int)
    first = sparse.csr_array((data, columns, np.arange(6) * 2), shape=(5, D))
    data = np.where(np.arange(10) == 3, np.nan, data)
    second = sparse.csr_array((data, columns, np.arange(6) * 2), shape=(5, D))
    model = clone(model).set_params(adjacency="zero-out", data_norm=math.sqrt(0.5))
    assert 0.999 <= measured(model, first, second) <= 1.0

    def careless(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        broken = np.bincount(rows, ~np.isfinite(X.data), X.shape[0]) > 0
        return type(X)((np.nan_to_num(X.data), X.indices, X.indptr), shape=X.shape), broken

    for module in (linear, linear):
        monkeypatch.setattr(module, "tame", careless)
    assert measured(model, first, second) == pytest.approx(math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("container", [sparse.csr_array, as_dense])
def test_a_right_angle_that_is_claimed_of_any_rows_is_caught(container, monkeypatch):
    row = first_columns(S, 9.0)
    rows = [container(X) for X in pair(row, -row)]
    # the negative row loses all its entries
    assert measured(SIGNED, *rows) == pytest.approx(math.sqrt(0.5), rel=1e-3)
    monkeypatch.setattr(_sparse_row_sum, "_without_negatives", lambda X: X)
    assert measured(SIGNED, *rows) == pytest.approx(math.sqrt(2), rel=1e-3)


@every_model
def test_dropped_clipping_is_caught(model, monkeypatch):
    rows = worst(model, "replace-one")
    assert measured(model, *rows) <= 1.0
    monkeypatch.setattr(L2Ball, "factors", lambda ball, norms: 1 / ball.radius + 0 * norms)
    assert measured(model, *rows) > 4


def test_a_threshold_from_the_rows_is_caught(monkeypatch):
    """Nothing but what was released may decide how much is shrunk."""
    model = GAUSSIAN
    X, _ = worst(model, "replace-one")
    with _audit.recorded([np.zeros(D)]):
        first = fitted(model, X).threshold_
    with _audit.recorded([np.zeros(D)]):
        assert fitted(model, -X[[1] * 9]).threshold_ == first
