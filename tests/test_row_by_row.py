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
from skdp._rows.columns import FeatureRows, PointRows, centred_rows, distances_from, gaps_from
from skdp._rows.domains import Box, L2Ball, row_norms
from skdp._rows.linear import LinearChunk, LinearRows, ball_rows, raw_norms
from skdp._rows.regression import regression_rows, unit_rows
from skdp._rows.sums import LazyChunks, dense_chunk_rows
from skdp.io import stream_chunks
from skdp.location._clipped_mean import BoxRows, RowSum
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
    monkeypatch.setattr("skdp._rows.sums.dense_chunk_rows", lambda n_features: STEP)


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


def admitted(X, target, rows=LinearRows):
    """Return rows of a ball that is longer than all but awkward ones."""
    return rows(X, target, np.zeros(len(X), bool), L2Ball(RADIUS), 0.0)


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
