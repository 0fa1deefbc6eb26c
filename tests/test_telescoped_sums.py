# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sums over a batch and its halves: what is in them, and what a row changes."""

import math

import numpy as np
import pytest

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._recovery.measurements import measurement_matrix
from skdp.papers import bias_reduced as query_module
from skdp.papers.bias_reduced import TelescopedGradient
from tests._chunks import shorten_chunks
from tests._neighbours import Rows, as_dense, as_layout, mixed_rows, naive_gradient, rows_in_ball

COEF = np.array([0.7, -1.1, 0.4, 0.2, -0.3, 0.5])


def admitted(rows, intercept=0.3, loss=None):
    loss = loss or LogisticLoss()
    return rows_in_ball(rows.X, loss.encode(rows.codes), rows.null, 1.0, intercept)


@pytest.fixture
def small_chunks(monkeypatch):
    """Let a few rows fill a chunk."""
    shorten_chunks(monkeypatch, 8)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csr duplicates"])
@pytest.mark.parametrize("rate", [0.1, 0.5, None])
@pytest.mark.usefixtures("small_chunks")
def test_sums_over_halves_are_those_of_the_definition(rate, layout):
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    positions = np.arange(101)
    private = admitted(rows)
    if rate is not None:
        positions = np.flatnonzero(np.random.default_rng(0).uniform(size=101) < rate)
        private = private.batch(positions, rate)
    query = TelescopedGradient(COEF, LogisticLoss(), 0.4, 5)
    whole, first, second = query.evaluate(private).reshape(3, -1)
    heads = query_module.public_coins(5, positions)
    for found, chosen in ((whole, slice(None)), (first, heads), (second, ~heads)):
        part = positions[chosen]
        naive = naive_gradient(
            Rows(as_dense(rows.X)[part], rows.codes[part], rows.null[part]), COEF, 0.4, 0.3, 1.0
        )
        np.testing.assert_allclose(found, naive, atol=1e-9)


@pytest.mark.usefixtures("small_chunks")
def test_a_row_more_changes_no_bit_of_the_half_that_it_is_not_in():
    private = admitted(mixed_rows())
    positions = np.arange(0, 101, 2)
    query = TelescopedGradient(COEF, LogisticLoss(), 0.4, 5)
    before = query.evaluate(private.batch(positions, 0.5)).reshape(3, -1)
    for row in (1, 50, 101 - 2):
        batch = np.setxor1d(positions, [row])
        after = query.evaluate(private.batch(batch, 0.5)).reshape(3, -1)
        other = 2 if query_module.public_coins(5, np.array([row]))[0] else 1
        np.testing.assert_array_equal(after[other], before[other])


def test_an_empty_batch_sums_to_nothing():
    private = admitted(mixed_rows())
    empty = private.batch(np.zeros(0, dtype=np.int64), 0.1)
    assert not TelescopedGradient(COEF, LogisticLoss(), 0.4, 5).evaluate(empty).any()


def test_coins_are_fair_independent_and_fixed():
    positions = np.arange(20_000)
    sides = np.array([query_module.public_coins(step, positions) for step in range(40)])
    assert abs(sides.mean() - 0.5) < 5 * 0.5 / math.sqrt(sides.size)
    # of a row over the steps, of a step over the rows, and of steps that follow one another
    assert np.abs(sides.mean(axis=0) - 0.5).max() < 0.5
    assert np.abs(sides.mean(axis=1) - 0.5).max() < 5 * 0.5 / math.sqrt(20_000)
    agree = np.mean(sides[1:] == sides[:-1], axis=1)
    assert np.abs(agree - 0.5).max() < 5 * 0.5 / math.sqrt(20_000)
    # a function of the position, whoever else is there
    some = np.sort(np.random.default_rng(0).choice(20_000, 500, replace=False))
    np.testing.assert_array_equal(query_module.public_coins(7, some), sides[7][some])
    assert query_module.public_coins(3, np.zeros(0, dtype=np.int64)).shape == (0,)


@pytest.mark.covering
@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3), HingeLoss()], ids=str)
@pytest.mark.parametrize("kind", ["gaussian", "sparse-sign"])
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_measured_sums_are_sums_of_clipped_measurements(layout, kind, loss, monkeypatch):
    monkeypatch.setattr(query_module, "_AT_ONCE", 40)
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    matrix = measurement_matrix(kind, 4, 6)
    coef = np.resize(COEF, (loss.n_outputs, 6)).squeeze()
    query = TelescopedGradient(coef, loss, 0.4, 5, matrix, 0.3)
    whole, first, second = query.evaluate(admitted(rows, loss=loss)).reshape(3, -1)
    heads = query_module.public_coins(5, np.arange(101))
    A = np.asarray(matrix.forward(np.eye(6)))
    (chunk,) = admitted(rows, loss=loss).chunks
    expected, longest = np.zeros((2, loss.n_outputs * 4)), 0.0
    V = np.asarray(as_dense(chunk.explicit()))
    for i in np.flatnonzero(~rows.null & np.isfinite(chunk.norm)):
        z = np.atleast_1d(coef @ V[i])
        target = chunk.target[i : i + 1]
        z = z if loss.n_outputs == 1 else z[None]
        residual = np.ravel(loss.residual(z.copy(), target))
        gradient = np.outer(residual, V[i])
        gradient *= min(1.0, 0.4 / max(np.linalg.norm(gradient), 1e-300))
        sketch = (gradient @ A.T).ravel()
        longest = max(longest, np.linalg.norm(sketch))
        sketch *= min(1.0, 0.3 / max(np.linalg.norm(sketch), 1e-300))
        expected[0 if heads[i] else 1] += sketch
    assert longest > 0.3
    np.testing.assert_allclose(first, expected[0], atol=1e-9)
    np.testing.assert_allclose(second, expected[1], atol=1e-9)
    np.testing.assert_allclose(whole, expected.sum(axis=0), atol=1e-9)
