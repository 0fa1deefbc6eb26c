# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every query keeps the sensitivity and the bound it states, and the statement is tight."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows import base as _sums
from skdp._rows.base import Box, L2Ball
from skdp._rows.linear import LinearRows
from skdp.location._clipped_mean import BoxRows, RowSum
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.solvers.gradient import ClippedGradient
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
)

LOSSES = {"binary": LogisticLoss(), "softmax": SoftmaxLoss(3)}
DENSE = LAYOUTS[:5]
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def admit(rows, loss, intercept=0.0, radius=1.0, **options):
    return LinearRows(
        rows.X, loss.encode(rows.codes), rows.null, L2Ball(radius), intercept, **options
    )


def make_coef(loss, n_coefs, size, seed=0):
    shape = (n_coefs,) if loss.n_outputs == 1 else (loss.n_outputs, n_coefs)
    return np.random.default_rng(seed).normal(size=shape) * size


def assert_keeps_its_word(query, adjacency, first, second, n_rows):
    stated = query.sensitivity(adjacency, n_rows)
    values = [query.evaluate(rows) for rows in (first, second)]
    for value in values:
        assert value.shape == (query.size,)
        assert np.isfinite(value).all()
        assert np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK)
    gap = values[0] - values[1]
    assert np.linalg.norm(gap) <= stated.l2 * (1 + FLOAT_SLACK)
    assert np.abs(gap).sum() <= stated.l1 * (1 + FLOAT_SLACK)


@pytest.mark.covering
@every_adjacency
@every_loss
@on_examples(300)
def test_clipped_gradient_keeps_its_sensitivity(loss, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    n_classes = max(2, loss.n_outputs)
    pair = data.draw(neighbours(adjacency, n_classes=n_classes, radius=radius))
    intercept = data.draw(st.sampled_from([0.0, 1e-50, 0.1, 1.0, 1e50]))
    coef = make_coef(
        loss,
        pair[0].X.shape[1] + bool(intercept),
        data.draw(st.sampled_from([0.0, 1.0, 1e3, 1e150])),
        seed=data.draw(st.integers(0, 99)),
    )
    clip = data.draw(st.sampled_from([1e-50, 0.01, 0.3, 1.0, 5.0, 1e50]))
    admitted = [admit(rows, loss, intercept, radius) for rows in pair]
    assert_keeps_its_word(
        ClippedGradient(coef, loss, clip), adjacency, *admitted, pair[0].X.shape[0]
    )


@every_adjacency
@on_examples(300)
def test_sum_in_the_ball_keeps_its_sensitivity(adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=radius))
    n, d = pair[0].X.shape
    admitted = [admit(rows, LogisticLoss(), radius=radius) for rows in pair]
    assert_keeps_its_word(RowSum(L2Ball(radius), d), adjacency, *admitted, n)


@every_adjacency
@on_examples(300)
def test_sum_in_the_box_keeps_its_sensitivity(adjacency, data):
    pair = data.draw(neighbours(adjacency, layouts=DENSE))
    lower, upper = data.draw(
        st.sampled_from([(-1.0, 1.0), (0.1, 0.3), (-1e-300, 1e-300), (-1e300, 3e300), (5.0, 1e9)])
    )
    d = pair[0].X.shape[1]
    box = Box((lower,) * d, (upper,) * d)
    arrays = [rows.X.astype(np.float64) for rows in pair]
    # a box has no null flags: its null row is its centre, or not a number
    null = data.draw(st.sampled_from([math.nan, box.center[0]]))
    for array, rows in zip(arrays, pair, strict=True):
        array[rows.null] = null
    admitted = [BoxRows(X, box) for X in arrays]
    assert_keeps_its_word(RowSum(box, d), adjacency, *admitted, len(arrays[0]))


def gap_ratio(query, adjacency, first, second, norm="l2"):
    gap = query.evaluate(first) - query.evaluate(second)
    return np.linalg.norm(gap, ord=int(norm[1])) / getattr(query.sensitivity(adjacency, 2), norm)


@every_adjacency
@every_loss
@pytest.mark.parametrize("intercept", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("clip", [1e-3, None])
def test_clipped_gradient_attains_its_sensitivity(loss, intercept, clip, adjacency):
    # two nearly equal rows on either side of steep coefficients, both labelled wrongly,
    # have nearly opposite gradients of the largest norm there is
    angle = 1e-2
    X = np.array([[math.cos(angle), math.sin(angle)], [math.cos(angle), -math.sin(angle)]])
    codes = np.array([1, 0])
    coef = make_coef(loss, 2 + bool(intercept), 0.0)
    if loss.n_outputs == 1:
        coef[1] = -1e5
    else:
        coef[0, 1], coef[1, 1] = 1e5, -1e5
    clip = clip or loss.lipschitz * math.hypot(1, intercept)
    null = np.array([False, adjacency == "zero-out"])
    pair = [admit(Rows(X[[i]], codes[[i]], null[[i]]), loss, intercept) for i in (0, 1)]
    assert gap_ratio(ClippedGradient(coef, loss, clip), adjacency, *pair) >= 0.999


@every_adjacency
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sums_attain_their_sensitivity(adjacency, d, norm):
    row, nothing = np.full((1, d), 7.0), np.zeros((1, d))
    other = nothing if adjacency == "zero-out" else -row
    for domain in (L2Ball(2.0), Box((-2.0,) * d, (2.0,) * d)):
        pair = [BoxRows(X, domain) for X in (row, other)]
        if isinstance(domain, L2Ball):
            code, null = np.zeros(1), np.zeros(1, dtype=bool)
            pair = [LinearRows(X, code, null, domain, 0.0) for X in (row, other)]
        assert gap_ratio(RowSum(domain, d), adjacency, *pair, norm=norm) >= 0.999


@pytest.mark.covering
@every_loss
@pytest.mark.parametrize("intercept", [0.0, 0.7])
@on_examples(150)
def test_in_any_layout_it_is_the_sum_of_clipped_gradients(loss, intercept, data):
    rows, _ = data.draw(neighbours("replace-one", n_classes=max(2, loss.n_outputs), radius=2.0))
    coef = make_coef(loss, rows.X.shape[1] + bool(intercept), 3.0)
    clip = data.draw(st.sampled_from([0.05, 0.5, 10.0]))
    before = as_dense(rows.X).copy()
    value = ClippedGradient(coef, loss, clip).evaluate(admit(rows, loss, intercept, 2.0))
    expected = _neighbours.naive_gradient(rows, coef, clip, intercept, 2.0)
    assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(as_dense(rows.X), before)


@pytest.fixture
def small_chunks(monkeypatch):
    shorten_chunks(monkeypatch, 3, threads=True)


@every_loss
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_chunks_change_nothing_but_rounding(loss, layout, request):
    rows = _neighbours.mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    query = ClippedGradient(make_coef(loss, 6, 1.0), loss, 0.4)
    whole = admit(rows, loss, 1.0)
    expected = query.evaluate(whole)
    request.getfixturevalue("small_chunks")
    cut = admit(rows, loss, 1.0)
    assert (len(whole.chunks), len(cut.chunks)) == (1, 34)
    assert_allclose(query.evaluate(cut), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_threads_do_not_change_a_bit(layout):
    rows, loss = _neighbours.mixed_rows(), LogisticLoss()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    for query, intercept in (
        (ClippedGradient(make_coef(loss, 6, 1.0), loss, 0.4), 1.0),
        (RowSum(L2Ball(1.0), 5), 0.0),
    ):
        admitted = (admit(rows, loss, intercept, n_threads=n) for n in (1, 2, 3, 16))
        one, *more = map(query.evaluate, admitted)
        for value in more:
            assert_array_equal(value, one)
    box, dense = Box((-1.0,) * 5, (1.0,) * 5), as_dense(rows.X)
    one, two = (RowSum(box, 5).evaluate(BoxRows(dense, box, n_threads=n)) for n in (1, 2))
    assert_array_equal(one, two)


@pytest.mark.covering
@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("row", ["denormal", "huge", "nan"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_shifts_the_rounding_of_its_own_chunk_only(layout, row):
    # the proof in skdp/_rows/base.py counts one partial that differs
    X = np.random.default_rng(0).normal(size=(60, 7))
    other = X.copy()
    other[30] = _neighbours.make_row(row, 7, 1.0, np.random.default_rng(1))
    query = ClippedGradient(make_coef(LogisticLoss(), 8, 1.0), LogisticLoss(), 0.4)
    partials = []
    for rows in (X, other):
        rows = Rows(as_layout(rows, layout), np.arange(60) % 2, np.zeros(60, dtype=bool))
        partials.append([query.partial(chunk) for chunk in admit(rows, query.loss, 1.0).chunks])
    same = [np.array_equal(a, b) for a, b in zip(*partials, strict=True)]
    assert same == [i != 10 for i in range(20)]


def errors_of_a_long_sum():
    """Return the errors of a sum, and of its change when a row is nulled."""
    X = np.random.default_rng(0).uniform(size=(200_000, 20)).astype(np.float32)
    wide, null, i = X.astype(np.longdouble), np.zeros(len(X), dtype=bool), 12_345
    wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1)
    values = []
    for null[i] in (False, True):
        rows = LinearRows(X, np.zeros(len(X)), null, L2Ball(1.0), 0.0)
        values.append(RowSum(L2Ball(1.0), 20).evaluate(rows))
    assert len(rows.chunks) > _sums.CHUNKS_PER_BLOCK
    errors = values[0] - wide.sum(axis=0), values[0] - values[1] - wide[i]
    return [float(np.linalg.norm(error)) for error in errors]


def test_long_sums_are_as_accurate_as_their_proof_says():
    assert max(errors_of_a_long_sum()) <= FLOAT_SLACK / 100


def test_accumulation_in_single_precision_would_break_the_sensitivity(monkeypatch):
    class Single:
        def __init__(self, size):
            self.value = np.zeros(size, np.float32)

        def add(self, vector):
            self.value += vector.astype(np.float32)

    monkeypatch.setattr(_sums, "CompensatedSum", Single)
    assert min(errors_of_a_long_sum()) > 100 * FLOAT_SLACK
