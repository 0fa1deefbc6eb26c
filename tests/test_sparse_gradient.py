# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The gradient in the columns that a batch touches: it is the gradient, and nothing is left out."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.solvers.gradient import ClippedGradient
from skdp.solvers.lazy_sgd import SparseGradient
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    Rows,
    as_layout,
    mixed_rows,
    neighbours,
    on_examples,
    rows_in_ball,
)

LOSSES = {
    "binary": LogisticLoss(), "softmax": SoftmaxLoss(3), "hinge": HingeLoss(),
    "hinge of three": HingeLoss(3),
}  # fmt: skip
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def admitted(rows, loss, intercept=0.3, radius=1.0):
    return rows_in_ball(rows.X, loss.encode(rows.codes), rows.null, radius, intercept)


def query_for(rows, loss, clip=0.4, intercept=0.3):
    n_coefs = rows.X.shape[1] + bool(intercept)
    return SparseGradient(n_coefs, loss, clip, bool(intercept), step=0.7, decay=0.9)


def evaluated(query, rows, values):
    """Return the touched columns, and the gradient in all columns, zero in the others."""
    columns, part = query.touched(rows)
    gradient = np.zeros(query.shape)
    gradient[columns] = query.evaluate_at(part, values[columns])
    return columns, gradient


def printed(query, rows, values):
    """Return the gradient of `ClippedGradient` at the same point, as columns."""
    coef = -query.step * values.T
    coef = coef[0] if query.loss.n_outputs == 1 else coef
    found = ClippedGradient(coef, query.loss, query.clip).evaluate(rows)
    return found.reshape(query.shape[::-1]).T


@pytest.fixture
def small_chunks(monkeypatch):
    """Let a few rows fill a chunk."""
    shorten_chunks(monkeypatch, 8)


@pytest.mark.covering
@every_loss
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [0.0, 0.3])
@pytest.mark.usefixtures("small_chunks")
def test_it_is_the_clipped_gradient_at_the_same_point(intercept, layout, loss):
    rows = mixed_rows()
    rows.X[:, 3] = 0.0
    rows.X[::2, 1] = 0.0
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    private, query = admitted(rows, loss, intercept), query_for(rows, loss, intercept=intercept)
    rng = np.random.default_rng(0)
    values = rng.normal(size=query.shape)
    for positions in ([], [0], np.flatnonzero(rng.uniform(size=101) < 0.3), range(101)):
        batch = private.batch(np.array(positions, dtype=np.int64), 0.3)
        columns, found = evaluated(query, batch, values)
        np.testing.assert_allclose(found, printed(query, batch, values), rtol=1e-12, atol=1e-14)
        # each once, those without entries left out, an intercept always in
        np.testing.assert_array_equal(columns, np.unique(columns))
        assert 3 not in columns
        assert (query.n_coefs - 1 in columns) or not intercept
        assert len(positions) or len(columns) == bool(intercept)
    # a batch of all rows is no batch
    _, found = evaluated(query, private, values)
    np.testing.assert_allclose(found, printed(query, private, values), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_makes_no_difference_to_the_columns(layout):
    rows = mixed_rows()
    rows.X[np.abs(rows.X) < 0.1] = 0.0
    loss, found = LogisticLoss(), []
    for X in (rows.X, as_layout(rows.X, layout)):
        private = admitted(Rows(X, rows.codes, rows.null), loss)
        batch = private.batch(np.arange(0, 101, 7), 0.1)
        found.append(query_for(rows, loss).touched(batch)[0])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_data_are_not_changed(layout):
    rows = mixed_rows()
    rows.X[::3, 2] = 0.0
    X = as_layout(rows.X, layout)
    before = (X.data.copy(), X.indices.copy()) if sparse.issparse(X) else (X.copy(),)
    private = admitted(Rows(X, rows.codes, rows.null), LogisticLoss())
    query = query_for(rows, LogisticLoss())
    for batch in (private, private.batch(np.arange(0, 101, 2), 0.5)):
        evaluated(query, batch, np.ones(query.shape))
    after = (X.data, X.indices) if sparse.issparse(X) else (X,)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.covering
@every_adjacency
@every_loss
@on_examples(60)
def test_it_keeps_the_sensitivity_that_it_states(loss, adjacency, data):
    first, second = data.draw(neighbours(adjacency, n_classes=3 if loss.n_outputs > 1 else 2))
    intercept = data.draw(st.sampled_from([0.0, 0.1, 10.0]))
    clip = data.draw(st.sampled_from([1e-3, 0.5, 1e3]))
    size = data.draw(st.sampled_from([0.0, 1.0, 1e3]))
    query = query_for(first, loss, clip, intercept)
    values = size * np.random.default_rng(0).normal(size=query.shape)
    stated = query.sensitivity(adjacency, len(first.codes))
    one, other = (
        evaluated(query, admitted(r, loss, intercept), values)[1] for r in (first, second)
    )
    assert np.linalg.norm(one - other) <= stated.l2 * (1 + FLOAT_SLACK)
    for gradient in (one, other):
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max(initial=0.0) <= stated.bound * (1 + FLOAT_SLACK)


@every_adjacency
@every_loss
def test_it_states_what_the_clipped_gradient_states(loss, adjacency):
    query = query_for(mixed_rows(), loss)
    plain = ClippedGradient(np.zeros(query.size), loss, query.clip)
    assert query.sensitivity(adjacency, 17) == plain.sensitivity(adjacency, 17)
    assert query.size == 6 * loss.n_outputs
    assert query.idealised


def test_rows_without_features_at_all():
    X = sparse.csr_array((4, 7))
    rows = Rows(X, np.array([0, 1, 0, 1]), np.zeros(4, bool))
    for intercept in (0.0, 0.5):
        query = query_for(rows, LogisticLoss(), intercept=intercept)
        private = admitted(rows, LogisticLoss(), intercept)
        columns, gradient = evaluated(query, private, np.zeros(query.shape))
        assert len(columns) == bool(intercept)
        assert not gradient[:-1].any()


@pytest.mark.parametrize("long_indices", [False, True])
def test_a_step_needs_memory_for_its_entries_only(long_indices):
    n_features = 10**7
    rng = np.random.default_rng(0)
    kind = np.int64 if long_indices else np.int32
    X = sparse.csr_array(
        (np.ones(4000), rng.integers(0, n_features, 4000).astype(kind),
         np.arange(0, 4001, 20).astype(kind)), shape=(200, n_features),
    )  # fmt: skip
    X.sum_duplicates()
    rows = Rows(X, np.arange(200) % 2, np.zeros(200, bool))
    query, private = query_for(rows, LogisticLoss()), admitted(rows, LogisticLoss())
    private.batch(np.arange(3), 0.1)
    tracemalloc.start()
    columns, part = query.touched(private.batch(np.arange(0, 200, 4), 0.25))
    gradient = query.evaluate_at(part, np.zeros((len(columns), 1)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(columns) == len(gradient) <= 50 * 20 + 1
    assert peak < 2e6
