# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The contract of rows: what one contributes to a statistic depends on no bit of another.

A neighbour differs in one row, which may hold floats that need work: other rows are to be
treated as if it did not. Kinked losses, at the kink, show one rounding as a whole residual.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._losses.regression import HuberLoss, PinballLoss, SquaredLoss
from skdp._rows.base import Box, L2Ball, row_major, row_norms, tame
from skdp._rows.columns import FeatureRows, PointRows, centered_rows, distances_from, gaps_from
from skdp._rows.linear import (
    LinearChunk,
    LinearRows,
    ball_rows,
    raw_norms,
    regression_rows,
    unit_rows,
)
from skdp.io import stream_chunks
from skdp.location._clipped_mean import ClippedRowSum, RowSum
from skdp.location._median import DirectionSum
from skdp.preprocessing._standard_scaler import MomentSum
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.solvers.gradient import ClippedGradient

D = 32
#: more than one chunk: columns of a whole array are in one piece, those of a part are not
STEP, N = 384, 400
PLACE, RADIUS = 123, 64.0
OTHERS = np.arange(N) != PLACE


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr("skdp._rows.base.dense_chunk_rows", lambda n_features: STEP)


def rows_at_the_kink(n_rows=N):
    """Return rows with entries in another order each, so that only rounding tells them apart."""
    entries = np.repeat([-1.0, 0.0, 1.0, 2.0], [9, 7, 13, 3])
    X = np.random.default_rng(0).permuted(np.tile(entries, (n_rows, 1)), axis=1)
    # fractions of 2^-20 that add up to nothing: floats of 24 bits hold them
    shift = np.random.default_rng(1).integers(-(2**19), 2**19, size=(n_rows, D // 2)) / 2.0**20
    X[:, ::2] += shift
    X[:, 1::2] -= shift
    return X


#: the prediction of every row is 1, and its float one of some that lie around
W = np.full(D, 0.1 * RADIUS)


def laid_out(X, layout):
    """Return the values of X in a memory layout."""
    if layout == "columns":
        return np.asfortranarray(X)
    if layout == "every other column":
        made = np.full((len(X), 2 * D), np.nan, X.dtype)
        made[:, ::2] = X
        return made[:, ::2]
    if layout == "first columns":
        made = np.full((len(X), D + 3), np.nan, X.dtype)
        made[:, :D] = X
        return made[:, :D]
    if layout == "backwards":
        return X[::-1].copy()[::-1]
    if layout == "misaligned":
        made = np.zeros(X.nbytes + 1, np.uint8)[1:].view(X.dtype).reshape(X.shape)
        made[:] = X
        assert not made.flags.aligned
        return made
    made = X.copy()
    made.flags.writeable = layout != "read-only"
    return made


LAYOUTS = ["rows", "columns", "every other column", "first columns", "backwards", "misaligned",
           "read-only"]  # fmt: skip
AWKWARD = {
    "NaN": np.nan,
    "infinite": np.inf,
    "long": 50.0,
    "huge": {np.float64: 1e308, np.float32: 3e38},
    "denormal": {np.float64: 5e-324, np.float32: 1e-45},
    "zeros": 0.0,
}
ONES, FIRST = np.ones(N), np.zeros(N, int)
LOSSES = {
    "logistic": (LogisticLoss(), ONES),
    "softmax": (SoftmaxLoss(3), FIRST),
    "hinge": (HingeLoss(), ONES),
    "multi-class hinge": (HingeLoss(3), FIRST),
    "pinball": (PinballLoss(0.3), ONES),
    "squared": (SquaredLoss(), ONES),
    "Huber": (HuberLoss(0.5), ONES),
}


def admitted(X, target):
    """Return rows of a ball that is longer than all but awkward ones."""
    return LinearRows(X, target, np.zeros(X.shape[0], bool), L2Ball(RADIUS), 0.0)


def query_of(name):
    """Return a query at the kink of its loss, and the targets of all rows."""
    loss, target = LOSSES[name]
    # of several classes, the first one is ahead by the margin
    coef = W if loss.n_outputs == 1 else np.outer([1.0, 0.0, 0.0], W)
    return ClippedGradient(coef, loss, 0.7), target


def contributions(query, rows, monkeypatch):
    """Return the sum of a query, and what every row contributes to it: number times row."""
    seen, combine = [], LinearChunk.combine

    def spied(chunk, residual):
        parts = chunk.widened()
        body = parts.X.toarray() if sparse.issparse(parts.X) else parts.X
        seen.append((residual.copy(), parts.factor.copy(), body))
        return combine(chunk, residual)

    with monkeypatch.context() as patch:
        patch.setattr(LinearChunk, "combine", spied)
        total = query.evaluate(rows)
    return total, [np.concatenate(parts) for parts in zip(*seen, strict=True)]


def neighbours(dtype, layout):
    """Yield rows, and rows with an awkward one among them."""
    X = rows_at_the_kink().astype(dtype)
    yield "none", laid_out(X, layout)
    for name, value in AWKWARD.items():
        X[PLACE] = value[dtype] if isinstance(value, dict) else value
        yield name, laid_out(X, layout)


def assert_equal_apart_from_one(first, second):
    for one, other in zip(first, second, strict=True):
        assert_array_equal(one[OTHERS], other[OTHERS])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_other_rows_contribute_the_same_to_the_last_bit(dtype, layout, monkeypatch):
    plain = rows_at_the_kink().astype(dtype)
    for name in LOSSES:
        query, target = query_of(name)
        reference = contributions(query, admitted(plain, target), monkeypatch)
        for awkward, X in neighbours(dtype, layout):
            rows = admitted(X, target)
            total, parts = contributions(query, rows, monkeypatch)
            assert_equal_apart_from_one(parts, reference[1])
            stated = query.sensitivity("replace-one", N).l2 * (1 + FLOAT_SLACK)
            assert np.linalg.norm(total - reference[0]) <= stated, (name, awkward)


def test_the_rows_of_this_file_lie_at_kinks():
    for name in ("hinge", "pinball", "multi-class hinge"):
        query, target = query_of(name)
        chunk = admitted(rows_at_the_kink(), target).chunks[0]
        residual = query.loss.residual(chunk.predict(query.coef), chunk.target)
        # the same row but for the order of its entries, and both sides of the kink
        share = np.mean(np.reshape(residual, (len(residual), -1))[:, 0] != residual.flat[0])
        assert 0.02 < share < 0.98, name


def test_a_hinge_at_the_kink_keeps_its_sensitivity_in_columns_of_single_precision(monkeypatch):
    # once the sums were 6,279 apart: one chunk of these was copied, and that of a neighbour not
    monkeypatch.undo()
    n = 16_384
    X = np.asfortranarray(rows_at_the_kink(n).astype(np.float32))
    neighbour = X.copy(order="F")
    neighbour[PLACE] = np.nan
    query = ClippedGradient(W, HingeLoss(), 1.0)
    sums = [query.evaluate(admitted(rows, np.ones(n))) for rows in (X, neighbour)]
    assert np.linalg.norm(sums[0] - sums[1]) <= query.sensitivity("zero-out", n).l2 * (
        1 + FLOAT_SLACK
    )
    # in units of a row: the kink is there
    assert 10 < np.linalg.norm(sums[0]) < n / RADIUS * 8


def parts_of(kind, X):
    """Return what the chunks of rows of one kind hand to statistics, an entry for every row."""
    ball, nobody = L2Ball(RADIUS), np.zeros(len(X), bool)
    center = np.linspace(-0.1, 0.2, D)
    if kind == "linear":
        rows = LinearRows(X, ONES, nobody, ball, 0.5)
        return [(c.predict(np.append(W, 1.0)), c.norm, c.factor, c.explicit()) for c in rows.chunks]
    if kind == "centered":
        rows = centered_rows(ball_rows(X, ball), center, 0.5, radius=1e-5, shorten=True)
        return [(c.predict(np.append(W, 1.0)), c.norm, c.factor, c.explicit()) for c in rows.chunks]
    if kind == "unit":
        chunks = ball_rows(X, ball).chunks
        return [
            (distances_from(None, c), distances_from(center, c), gaps_from(center, c)[0].T)
            for c in chunks
        ]
    if kind == "regression":
        rows = regression_rows(X, ONES)
        moved = unit_rows(rows, 7.0, 1.0, 0.5, 0.1, 3.0)
        return [
            (c.predict(np.append(W, 1.0)), c.norm, c.lift, c.target, raw_norms(r))
            for c, r in zip(moved.chunks, rows.chunks, strict=True)
        ]
    if kind == "points of a ball":
        return [(c.points(), row_norms(c.points())) for c in PointRows(X, ball, RADIUS).chunks]
    if kind == "points of a box":
        box = Box(-np.ones(D), np.ones(D))
        return [(c.points(), row_norms(c.points())) for c in PointRows(X, box, 6.0).chunks]
    seen = []

    def kept(values, columns):
        seen.append((values.copy(),))
        return [values]

    for chunk in FeatureRows(X).chunks:
        chunk.sums(kept)
    return seen


KINDS = ["linear", "centered", "unit", "regression", "points of a ball", "points of a box",
         "features"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_rows_lets_one_bear_on_another(kind):
    plain = None
    for dtype in (np.float64, np.float32):
        for layout in LAYOUTS:
            for _, X in neighbours(dtype, layout):
                with np.errstate(all="ignore"):
                    parts = [np.concatenate(p) for p in zip(*parts_of(kind, X), strict=True)]
                # nor does the layout, or the width of floats that hold the same numbers
                plain = plain or parts
                assert_equal_apart_from_one(parts, plain)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_row_of_a_sparse_matrix_bears_on_another(dtype, monkeypatch):
    X = rows_at_the_kink().astype(dtype)
    X[:, 5:9] = 0
    for name in LOSSES:
        query, target = query_of(name)
        reference = None
        for awkward in ("none", "explicit zeros", "duplicates", "unsorted", *AWKWARD):
            S = sparse.csr_array(X)
            where = slice(S.indptr[PLACE], S.indptr[PLACE + 1])
            if awkward == "explicit zeros":
                S.data[where] = 0
            elif awkward == "duplicates":
                S.indices[where] = 3
            elif awkward == "unsorted":
                S.indices[where] = S.indices[where][::-1].copy()
            elif awkward != "none":
                value = AWKWARD[awkward]
                S.data[where] = value[dtype] if isinstance(value, dict) else value
            # what is stored in parts is added up, and a matrix may not know that
            S = sparse.csr_array((S.data, S.indices, S.indptr), shape=S.shape)
            total, parts = contributions(query, admitted(S, target), monkeypatch)
            reference = reference or (total, parts)
            assert_equal_apart_from_one(parts, reference[1])
            stated = query.sensitivity("replace-one", N).l2 * (1 + FLOAT_SLACK)
            assert np.linalg.norm(total - reference[0]) <= stated, (name, awkward)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["rows", "columns", "misaligned"])
def test_streams_contribute_what_arrays_do(dtype, layout, monkeypatch):
    for name in ("hinge", "multi-class hinge"):
        query, target = query_of(name)
        plain = admitted(rows_at_the_kink().astype(dtype), target)
        reference = contributions(query, plain, monkeypatch)
        for _, X in neighbours(dtype, layout):
            cuts = [(X[a:b], target[a:b]) for a, b in [(0, 57), (57, 300), (300, N)]]
            rows, codes = stream_chunks(lambda cuts=cuts: iter(cuts), n_rows=N)
            nobody = rows.map(lambda part: np.zeros(len(part), bool), ndim=1)
            rows.facts = type("Facts", (), {"n_entries": X.size, "is_sparse": False})
            streamed = LinearRows(rows, codes, nobody, L2Ball(RADIUS), 0.0)
            parts = contributions(query, streamed, monkeypatch)[1]
            assert_equal_apart_from_one(parts, reference[1])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_that_is_not_drawn_bears_on_no_other_of_the_batch(dtype, name, monkeypatch):
    query, target = query_of(name)
    drawn = np.flatnonzero(np.random.default_rng(2).random(N) < 0.4)
    absent = drawn != drawn[40]
    for layout in LAYOUTS:
        rows = admitted(laid_out(rows_at_the_kink().astype(dtype), layout), target)
        # a row less, and all that come after it in another place
        with_it, without = (
            contributions(query, rows.batch(batch, 0.4), monkeypatch)
            for batch in (drawn, drawn[absent])
        )
        for one, other in zip(with_it[1], without[1], strict=True):
            assert_array_equal(one[absent], other)
        moved = np.linalg.norm(with_it[0] - without[0])
        assert moved <= query.sensitivity("zero-out", N).l2 * (1 + FLOAT_SLACK)


@pytest.mark.parametrize(
    ("query", "admit"),
    [
        (RowSum(L2Ball(1.0), D), lambda X: ball_rows(X, L2Ball(1.0))),
        (ClippedRowSum(D, 1e-9, np.full(D, 0.01)), lambda X: ball_rows(X, L2Ball(RADIUS))),
        (DirectionSum(np.full(D, 0.1)), lambda X: PointRows(X, L2Ball(RADIUS), 1.0)),
        (MomentSum(Box(-np.ones(D), np.ones(D))), FeatureRows),
    ],
    ids=["sum in a ball", "sum in a tiny ball", "directions", "moments"],
)
def test_sums_of_other_kinds_stay_within_their_sensitivity(query, admit):
    stated = query.sensitivity("replace-one", N).l2 * (1 + FLOAT_SLACK)
    for dtype in (np.float64, np.float32):
        for layout in LAYOUTS:
            sums = [query.evaluate(admit(X)) for _, X in neighbours(dtype, layout)]
            for total in sums[1:]:
                assert np.linalg.norm(total - sums[0]) <= stated


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", range(0, 64, 8))
def test_a_copy_made_for_a_value_lies_where_the_rows_would(offset, dtype):
    memory = np.zeros(N * D * 8 + 128, np.uint8)
    start = (offset - address(memory)) % 64
    X = memory[start : start + N * D * dtype().itemsize].view(dtype).reshape(N, D)
    X[:] = rows_at_the_kink()
    usual = row_major(X)
    X[PLACE] = np.nan
    copied, broken = tame(X)
    assert broken[PLACE]
    assert not np.may_share_memory(copied, X)
    assert copied.flags.c_contiguous
    assert copied.flags.aligned
    assert address(copied) % 64 == address(usual) % 64


def address(X):
    """Return where an array begins."""
    return X.__array_interface__["data"][0]


def test_rows_in_the_layout_of_products_are_not_copied():
    X = rows_at_the_kink()
    assert row_major(X) is X
    assert tame(X)[0] is X
    assert all(np.shares_memory(chunk.widened().X, X) for chunk in admitted(X, ONES).chunks)


def test_columns_too_long_to_be_copied_at_once_give_the_same_sums(monkeypatch):
    X = np.asfortranarray(rows_at_the_kink().astype(np.float32))
    query, target = query_of("hinge")
    once = query.evaluate(admitted(X, target))
    monkeypatch.setattr("skdp._rows.linear.LARGE", 0)
    rows = admitted(X, target)
    assert all(np.shares_memory(chunk.X, X) for chunk in rows.chunks)
    assert_array_equal(query.evaluate(rows), once)
