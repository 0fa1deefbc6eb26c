# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows in batches and rows around a centre: what is read, and what it adds up to."""

import numpy as np
import pytest

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.base import SPARSE_CHUNK_ROWS, dense_chunk_rows
from skdp._rows.columns import centered_rows
from skdp.solvers.gradient import ClippedGradient
from tests._chunks import shorten_chunks
from tests._neighbours import (
    LAYOUTS,
    Rows,
    as_dense,
    as_layout,
    mixed_rows,
    naive_gradient,
    rows_in_ball,
)

DENSE = [layout for layout in LAYOUTS if not layout.startswith("csr")]
BROKEN = Rows(np.array([[np.nan, 1.0], [1e308, -1e308], [0.5, 0.1], [1e-320, 0.2]]), None, None)


def admitted(rows, intercept=0.3, radius=1.0):
    loss = LogisticLoss()
    return rows_in_ball(rows.X, loss.encode(rows.codes), rows.null, radius, intercept)


def gradient_at(coef, clip, loss=None):
    return ClippedGradient(np.asarray(coef, dtype=float), loss or LogisticLoss(), clip)


def part_of(rows, positions):
    return Rows(as_dense(rows.X)[positions], rows.codes[positions], rows.null[positions])


@pytest.fixture
def small_chunks(monkeypatch):
    """Let a few rows fill a chunk."""
    shorten_chunks(monkeypatch, 8)


@pytest.mark.covering
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [0.0, 0.3])
@pytest.mark.usefixtures("small_chunks")
def test_the_gradient_of_a_batch_is_that_of_its_rows(layout, intercept):
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    rng = np.random.default_rng(0)
    coef = rng.normal(size=5 + bool(intercept))
    private = admitted(rows, intercept)
    for rate in (0.05, 0.3, 0.9):
        positions = np.flatnonzero(rng.uniform(size=101) < rate)
        found = gradient_at(coef, 0.4).evaluate(private.batch(positions, rate))
        expected = naive_gradient(part_of(rows, positions), coef, 0.4, intercept, 1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-6 if layout == "float32" else 1e-9,
                                   atol=1e-6 if layout == "float32" else 1e-12)  # fmt: skip


@pytest.mark.usefixtures("small_chunks")
def test_repeated_positions_count_as_often_as_they_occur():
    rows, coef = mixed_rows(), np.ones(6)
    positions = np.sort(np.random.default_rng(0).integers(0, 101, 40))
    found = gradient_at(coef, 0.4).evaluate(admitted(rows).batch(positions, 0.3))
    expected = naive_gradient(part_of(rows, positions), coef, 0.4, 0.3, 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_empty_batch_sums_to_nothing(layout):
    rows = mixed_rows()
    private = admitted(Rows(as_layout(rows.X, layout), rows.codes, rows.null))
    empty = private.batch(np.zeros(0, dtype=np.int64), 0.1)
    assert not gradient_at(np.ones(6), 1.0).evaluate(empty).any()
    loss = SoftmaxLoss(3)
    rows3 = rows_in_ball(private._X, loss.encode(rows.codes), rows.null, 1.0, 0.3)
    found = gradient_at(np.ones((3, 6)), 1.0, loss).evaluate(rows3.batch(np.arange(0), 0.1))
    assert found.shape == (18,)
    assert not found.any()


@pytest.mark.parametrize("layout", ["C", "F", "strided", "csr"])
@pytest.mark.usefixtures("small_chunks")
def test_a_row_more_changes_one_chunk_and_no_boundary(layout):
    rows = mixed_rows()
    private = admitted(Rows(as_layout(rows.X, layout), rows.codes, rows.null))
    rng = np.random.default_rng(1)
    positions = np.flatnonzero(rng.uniform(size=101) < 0.4)
    first = private.batch(positions, 0.4).chunks
    for row in (0, 50, 100):
        second = private.batch(np.setxor1d(positions, [row]), 0.4).chunks
        assert len(first) == len(second) == 1 + (101 - 1) // int(8 / 2 / 0.4)
        changed = [len(a.norm) != len(b.norm) for a, b in zip(first, second, strict=True)]
        assert sum(changed) == 1
        for a, b, differs in zip(first, second, changed, strict=True):
            if not differs:
                np.testing.assert_array_equal(as_dense(a.X), as_dense(b.X))
            if layout != "csr":
                # one layout, whatever that of the data: sums run in one order
                assert a.X.flags.c_contiguous
                assert b.X.flags.c_contiguous


@pytest.mark.parametrize("sparse", [False, True])
def test_chunks_of_a_batch_are_short_enough_for_the_proof(sparse):
    for n_features in (1, 10, 1000, 10**6):
        full = SPARSE_CHUNK_ROWS if sparse else dense_chunk_rows(n_features)
        assert full <= (32768 if sparse else 8192)
        for rate in (1e-6, 0.01, 0.632, 1.0):
            # expected rows of a chunk; draws with replacement have 1 / 0.632 times as many
            assert max(1, int(full / 2 / rate)) * rate <= max(full / 2, rate) <= 16384


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_batch_leaves_the_data_alone_and_is_no_view(layout):
    rows = mixed_rows()
    X = as_layout(rows.X, layout)
    before = as_dense(X).copy()
    private = admitted(Rows(X, rows.codes, rows.null))
    private.batch(np.arange(0, 101, 2), 0.5)
    np.testing.assert_array_equal(as_dense(X), before)


@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.filterwarnings("ignore:overflow")
def test_broken_rows_are_null_in_batches_too(layout):
    rows = Rows(as_layout(BROKEN.X, layout), np.array([0, 1, 1, 0]), np.zeros(4, bool))
    private = admitted(rows)
    coef = np.array([1.0, -2.0, 0.5])
    for positions in ([0], [1], [2, 3], [0, 1, 2, 3]):
        found = gradient_at(coef, 10.0).evaluate(private.batch(np.array(positions), 0.5))
        expected = naive_gradient(part_of(rows, positions), coef, 10.0, 0.3, 1.0)
        np.testing.assert_allclose(found, expected, atol=1e-12)


# -- rows around a centre ----------------------------------------------------------


def explicit(rows, center, intercept, radius=1.0, shorten=False):
    """Return moved rows as a dense array, row by row from the definition."""
    moved = []
    for x in np.nan_to_num(as_dense(rows.X), posinf=0.0, neginf=0.0):
        scale = max(np.abs(x).max(), 1.0)
        unit = x / scale / max(np.linalg.norm(x / scale), 1.0 / scale)
        row = np.append((unit - center) / radius, intercept)
        longest = np.hypot(1.0, intercept)
        moved.append(row * min(1.0, longest / np.linalg.norm(row)) if shorten else row)
    return np.array(moved)


CENTRES = [(1.0, False), (0.3, False), (0.3, True), (2.0, True), (1e-9, True)]


@pytest.mark.covering
@pytest.mark.parametrize("layout", DENSE)
@pytest.mark.parametrize(("radius", "shorten"), CENTRES)
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.usefixtures("small_chunks")
def test_gradients_of_centred_rows_are_those_of_the_definition(batch, radius, shorten, layout):
    rows = mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    rng = np.random.default_rng(2)
    center, coef = rng.normal(size=5) / 4, rng.normal(size=6)
    private = centered_rows(admitted(rows, 0.0), center, 0.7, radius, shorten)
    moved = explicit(rows, center, 0.7, radius, shorten)
    signs = 2 * rows.codes - 1
    kept = ~rows.null & np.isfinite(as_dense(rows.X)).all(axis=1)
    if batch:
        positions = np.flatnonzero(rng.uniform(size=101) < 0.4)
        private, kept = private.batch(positions, 0.4), kept & np.isin(np.arange(101), positions)
    with np.errstate(over="ignore"):
        residual = -signs / (1 + np.exp(signs * (moved @ coef)))
    gradients = residual[:, None] * moved
    gradients *= np.minimum(1, 0.4 / np.linalg.norm(gradients, axis=1).clip(1e-300))[:, None]
    found = gradient_at(coef, 0.4).evaluate(private)
    expected = gradients[kept].sum(axis=0)
    atol = 1e-5 if layout == "float32" else 1e-10
    np.testing.assert_allclose(found, expected, atol=atol * max(1, 1e-9 / radius * 1e6))


@pytest.mark.parametrize("intercept", [0.1, 1.0])
def test_shortened_rows_have_their_norm(intercept):
    rows = mixed_rows()
    center = np.full(5, 0.3)
    private = centered_rows(admitted(rows, 0.0), center, intercept, 0.2, True)
    (chunk,) = private.chunks
    true = np.hypot(np.linalg.norm(chunk.widened().X, axis=1), intercept * chunk.lift)
    assert (true <= np.hypot(1, intercept) * (1 + 1e-14)).all()
    finite = ~rows.null
    np.testing.assert_allclose(chunk.norm[finite], true[finite], rtol=1e-13)
    assert np.isinf(chunk.norm[rows.null]).all()
    coef = np.array([0.3, -0.2, 0.5, 0.7, -0.1, 0.4])
    np.testing.assert_allclose(chunk.explicit() @ coef, chunk.predict(coef), rtol=1e-12)


def test_moving_rows_loses_nothing_and_keeps_the_rank():
    # Lemma 5 and, in place of the rank bound in print, equality
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6)) / 20
    rows = Rows(X, np.arange(40) % 2, np.zeros(40, bool))
    center, radius = rng.normal(size=6) / 5, 0.37
    moved = explicit(rows, center, 1.0, radius)
    unit = explicit(rows, np.zeros(6), 1.0)
    assert np.linalg.matrix_rank(moved) == np.linalg.matrix_rank(unit) == 3
    w, b = rng.normal(size=6), 0.4
    same = np.append(w * radius, b + w @ center)
    np.testing.assert_allclose(moved @ same, unit @ np.append(w, b), atol=1e-12)


def test_a_null_row_stays_null_wherever_the_origin_goes():
    X = np.array([[0.9, 0.1], [0.0, 0.0]])
    rows = Rows(X, np.array([0, 1]), np.array([False, True]))
    alone = Rows(X[:1], np.array([0]), np.array([False]))
    for shorten in (True, False):
        found = [
            gradient_at(np.ones(3), 0.5).evaluate(
                centered_rows(admitted(r, 0.0), np.array([0.5, -0.5]), 1.0, 0.5, shorten)
            )
            for r in (rows, alone)
        ]
        np.testing.assert_array_equal(found[0], found[1])
