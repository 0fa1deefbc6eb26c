# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The claim of private feature selection: coupled traces of whole fits, and planted bugs."""

import math
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from skdp import DPFrequentFeatures
from skdp._rows.base import L2Ball
from skdp.location import _sparse_noisy as _sparse_row_sum
from skdp.location._sparse_noisy import sparse_rows
from skdp.preprocessing import _frequent_features as _presence_count
from skdp.preprocessing._frequent_features import PresenceCount
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests._neighbours import ADJACENCIES, as_dense, neighbours, on_examples

EPSILON, DELTA, D = 2.0, 1e-5, 12
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_delta = pytest.mark.parametrize("delta", [DELTA, 0.0])


def selector(adjacency="replace-one", delta=DELTA, **options):
    options = {"sparsity": 4, **options}
    return DPFrequentFeatures(EPSILON, delta, adjacency=adjacency, random_state=0, **options)


def measured(model, pair):
    """Return the coupled price of whole fits, relative to the claim."""

    def fit(rows):
        # null rows are not finite; no user can pass one
        with sklearn.config_context(assume_finite=True):
            clone(model).fit(rows)

    if model.delta:
        return _audit.coupled_mu(fit, *pair) / gdp_mu(EPSILON, DELTA)
    return _audit.coupled_epsilon(fit, *pair) / EPSILON


def worst_pair(adjacency, n_nonzeros=4, d=D):
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
def test_the_claim_is_kept_and_tight(adjacency, delta):
    ratio = measured(selector(adjacency, delta), worst_pair(adjacency))
    assert 0.999 <= ratio <= 1


@every_delta
@pytest.mark.parametrize("d", [4, 5, 7, 8, 9])
def test_two_rows_cannot_differ_in_more_features_than_there_are(d, delta):
    first, second = np.zeros((2, 3, d))
    first[0, :4], second[0, 4:8] = 1.0, 1.0
    # with d < 8 the second row has fewer features of its own
    ratio = measured(selector(delta=delta), (first, second))
    assert 0.999 <= ratio <= 1


@pytest.mark.covering
@every_adjacency
@every_delta
@on_examples(40)
def test_the_claim_is_kept_on_any_neighbours(adjacency, delta, data):
    pair = data.draw(neighbours(adjacency))
    rows = []
    for each in pair:
        X = as_dense(each.X).copy()
        X[each.null] = np.nan
        rows.append(sparse.csr_array(X) if sparse.issparse(each.X) else X)
    model = selector(adjacency, delta, sparsity=data.draw(st.sampled_from([1, 2, 3, 50])))
    assert measured(model, rows) <= 1


@every_adjacency
@on_examples(60)
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
        ledger = selector(adjacency, delta).fit(np.eye(5)).ledger_
        assert ledger.fits(EPSILON, delta)
        assert ledger.epsilon(delta) == pytest.approx(EPSILON, rel=1e-6)


def test_without_the_noisy_counts_nothing_depends_on_the_data():
    hashes = set()
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(40, 30))
        with mock.patch.object(_mechanisms, "add_noise", return_value=np.arange(30.0)):
            hashes.add(joblib.hash(vars(selector().fit(X))))
    assert len(hashes) == 1


@every_delta
def test_noise_has_the_declared_scale_and_halved_noise_is_caught(delta, monkeypatch):
    X = np.eye(2000)
    assert not _audit.scale_is_wrong(_audit.noise_stream(selector(delta=delta).fit, X))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(selector(delta=delta).fit, X))


@every_adjacency
@every_delta
def test_rows_with_more_features_than_stated_are_caught(adjacency, delta, monkeypatch):
    pair = worst_pair(adjacency, n_nonzeros=6)
    assert measured(selector(adjacency, delta), pair) <= 1
    monkeypatch.setattr(_sparse_row_sum, "top_entries", lambda X, sparsity: X)
    expected = math.sqrt(1.5) if delta else 1.5
    assert measured(selector(adjacency, delta), pair) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("sparsity", [4, D])
def test_stored_zeros_that_are_counted_are_caught(sparsity, monkeypatch):
    # four features in parts, and a zero stored for every other one
    rows = np.zeros((3, D))
    rows[0, :4] = 1.0
    stored = sparse.csr_array(
        (
            np.concatenate([rows.ravel(), [0.5, -0.5, 1.0]]),
            np.concatenate([np.tile(np.arange(D), 3), [7, 7, 1]]),
            [0, D, 2 * D, 3 * D + 3],
        ),
        shape=(3, D),
    )
    query = PresenceCount(D, sparsity)
    admitted = sparse_rows(stored, L2Ball(1.0), sparsity)
    expected = [1.0, 2.0, 1.0, 1.0] + [0.0] * (D - 4)
    np.testing.assert_array_equal(query.evaluate(admitted), expected)

    def careless(chunk):
        return chunk.X.indices, chunk.X.data

    monkeypatch.setattr(_presence_count, "entries", careless)
    counts = query.evaluate(sparse_rows(stored, L2Ball(1.0), D))
    assert counts.sum() > sum(expected)


def test_features_that_count_with_their_values_are_caught(monkeypatch):
    pair = worst_pair("replace-one")
    assert measured(selector(), pair) <= 1

    def weighted(self, chunk):
        columns, values = _presence_count.entries(chunk)
        values = values / chunk.factor.min()
        return np.bincount(columns, np.abs(values), minlength=self.size)

    monkeypatch.setattr(PresenceCount, "partial", weighted)
    assert measured(selector(), pair) > 2


@every_delta
def test_replace_one_charged_as_zero_out_is_caught(delta, monkeypatch):
    real = PresenceCount.sensitivity
    monkeypatch.setattr(PresenceCount, "sensitivity", lambda q, _, n: real(q, "zero-out", n))
    expected = math.sqrt(2) if delta else 2.0
    ratio = measured(selector(delta=delta), worst_pair("replace-one"))
    assert ratio == pytest.approx(expected, rel=1e-3)
