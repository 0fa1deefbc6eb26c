# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows in single precision: the same results, the same sensitivity, half of the memory."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import skdp
from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.base import Box, L2Ball
from skdp._rows.columns import FeatureRows, PointRows
from skdp._rows.linear import LinearChunk, ball_rows
from skdp.location._clipped_mean import BoxRows, RowSum
from skdp.location._median import DirectionSum
from skdp.location._sparse_noisy import SparseRowSum, sparse_rows
from skdp.preprocessing._standard_scaler import MomentSum, SideSum
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.solvers.gradient import ClippedGradient
from tests._neighbours import rows_in_ball
from tests._solvers import linear_model

N, D = 60_000, 10
BOX = Box(-np.ones(D), np.ones(D))
CENTER = np.full(D, 0.1)


def long_data(sign, place=123, n_rows=N, n_features=D):
    """Return rows whose sum is as long as it can be, all outside the unit ball but one."""
    X = np.random.default_rng(0).uniform(0.5, 1.0, size=(n_rows, n_features)).astype(np.float32)
    X[place] = sign
    return X


def gradient(loss):
    """Return a query whose clipping binds, and what admits rows."""
    shape = D if loss.n_outputs == 1 else (loss.n_outputs, D)
    query = ClippedGradient(np.zeros(shape), loss, 0.1)
    codes = np.zeros(N, dtype=int)
    nobody = np.zeros(N, dtype=bool)
    return query, lambda X: rows_in_ball(X, loss.encode(codes), nobody, 1.0, 0.0)


QUERIES = {
    "gradient": gradient(LogisticLoss()),
    "softmax gradient": gradient(SoftmaxLoss(3)),
    "sum in a ball": (RowSum(L2Ball(1.0), D), lambda X: ball_rows(X, L2Ball(1.0))),
    "sum in a ball, CSR": (
        RowSum(L2Ball(1.0), D), lambda X: ball_rows(sparse.csr_array(X), L2Ball(1.0))),
    "sum in a box": (RowSum(BOX, D), lambda X: BoxRows(X, BOX)),
    "sparse sum": (
        SparseRowSum(D, D), lambda X: sparse_rows(sparse.csr_array(X), L2Ball(1.0), D)),
    "moments": (MomentSum(BOX), FeatureRows),
    "moments, CSR": (MomentSum(BOX), lambda X: FeatureRows(sparse.csr_array(X))),
    "sides": (SideSum(np.zeros(D)), FeatureRows),
    "directions": (DirectionSum(CENTER), lambda X: PointRows(X, L2Ball(1.0), 1.0)),
}  # fmt: skip


def gap(query, admit, place=123):
    """Return the change of a sum under a row that turns round, and the stated sensitivity."""
    values = [query.evaluate(admit(long_data(sign, place))) for sign in (1.0, -1.0)]
    return np.linalg.norm(values[0] - values[1]), query.sensitivity("replace-one", N).l2


@pytest.mark.parametrize("name", QUERIES)
def test_a_row_moves_a_long_sum_by_its_sensitivity_and_no_more(name):
    moved, stated = gap(*QUERIES[name])
    assert moved <= stated * (1 + FLOAT_SLACK)
    # and it is attained: nothing is hidden by slack of the statement
    assert moved >= 0.98 * stated


@pytest.mark.parametrize("name", QUERIES)
def test_sums_are_those_of_the_same_values_in_double_precision(name):
    query, admit = QUERIES[name]
    X = long_data(1.0)
    assert_array_equal(query.evaluate(admit(X)), query.evaluate(admit(X.astype(np.float64))))


@pytest.mark.parametrize("name", ["gradient", "softmax gradient", "sum in a ball"])
def test_partial_sums_in_single_precision_would_break_the_sensitivity(name, monkeypatch):
    combine = LinearChunk.combine

    def single(self, residual):
        return combine(self, residual.astype(np.float32))

    monkeypatch.setattr(LinearChunk, "_rows", lambda self: self.X)
    monkeypatch.setattr(LinearChunk, "combine", single)
    gaps = [gap(*QUERIES[name], place) for place in (0, 123, 20_001)]
    assert max(moved / stated for moved, stated in gaps) > 1 + 100 * FLOAT_SLACK


def test_a_dropped_row_would_move_a_sum_in_single_precision_by_many_times_its_sensitivity():
    n, d = 1 << 19, 16
    X = long_data(1.0, n_rows=n, n_features=d) / np.float32(4)
    longest = float(np.linalg.norm(X.astype(np.float64), axis=1).max())

    def careless(rows):
        # four rows at a time, as fast products of matrices do, added to a running total
        fours = rows[: len(rows) // 4 * 4].reshape(-1, 4, d).sum(axis=1)
        return fours.sum(axis=0) + rows[len(fours) * 4 :].sum(axis=0)

    assert careless(X).dtype == np.float32
    moved = np.linalg.norm((careless(X) - careless(X[1:])).astype(np.float64))
    assert moved > 3 * longest

    def ours(null):
        rows = rows_in_ball(X, np.zeros(n), null, 1.0, 0.0)
        return RowSum(L2Ball(1.0), d).evaluate(rows)

    kept = np.linalg.norm(ours(np.zeros(n, bool)) - ours(np.arange(n) == 0))
    assert kept <= longest * (1 + FLOAT_SLACK)


def rows_and_targets():
    """Return dense rows, CSR rows, classes and values."""
    rng = np.random.default_rng(1)
    X = (rng.standard_normal((600, 6)) / 2).astype(np.float32)
    S = sparse.random_array((600, 40), density=0.1, rng=rng, format="csr", dtype=np.float32)
    values = np.clip(X @ rng.standard_normal(6), -1, 1).astype(np.float64)
    return X, S, (X[:, 0] > 0).astype(int), values


TWO = {"classes": (0, 1), "random_state": 0}
GRADIENT = {**TWO, "mechanism": "gradient", "max_iter": 20}
SPARSE = {**GRADIENT, "sparsity": 10}
DENSE_MODELS = [
    linear_model(skdp.DPLogisticRegression, **GRADIENT),
    linear_model(skdp.DPLogisticRegression, **GRADIENT, solver="sgd"),
    linear_model(skdp.DPLogisticRegression, **GRADIENT, solver="accelerated"),
    linear_model(skdp.DPLogisticRegression, **GRADIENT, preprocess="center"),
    linear_model(skdp.DPLogisticRegression, **TWO, mechanism="objective"),
    linear_model(skdp.DPLogisticRegression, **TWO, mechanism="output"),
    linear_model(skdp.DPHingeSVM, **GRADIENT),
    skdp.DPLpRegressor(random_state=0),
    skdp.DPLpRegressor(p=4, random_state=0),
    skdp.DPMean(random_state=0),
    skdp.DPMean(bounds=(-1, 1), random_state=0),
    skdp.DPMedian(random_state=0, max_iter=20),
    skdp.DPQuantile(random_state=0),
    skdp.DPNormQuantile(random_state=0),
    skdp.DPHeavyTailedMean(random_state=0),
    skdp.DPStandardScaler(random_state=0),
    skdp.DPFeatureCenterer(random_state=0),
    skdp.LocalDPMean(random_state=0),
    skdp.LocalDPCovariance(random_state=0),
    skdp.LocalDPPCA(random_state=0),
    skdp.LocalDPLinearRegression(random_state=0),
    skdp.LocalDPLogisticRegression(**TWO),
]
SPARSE_MODELS = [
    linear_model(skdp.DPLogisticRegression, **GRADIENT),
    linear_model(skdp.DPLogisticRegression, **GRADIENT, solver="sgd"),
    linear_model(skdp.DPLogisticRegression, **SPARSE, solver="lazy-sgd"),
    linear_model(skdp.DPLogisticRegression, **SPARSE, solver="bias-reduced"),
    linear_model(skdp.DPLogisticRegression, **TWO, mechanism="objective"),
    skdp.DPLpRegressor(random_state=0),
    skdp.DPSparseMeanEstimator(sparsity=5, random_state=0),
    skdp.DPFrequentFeatures(sparsity=5, random_state=0),
]


def learned(model):
    """Return the arrays and numbers that a fit learned, but for those of the ledger."""
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, np.ndarray | float)
    }


@pytest.mark.sample(12)
@pytest.mark.parametrize("model", [(m, 0) for m in DENSE_MODELS] + [(m, 1) for m in SPARSE_MODELS],
                         ids=lambda model: str(model[0])[:60] + ["", " CSR"][model[1]])  # fmt: skip
def test_a_fit_is_the_same_to_the_last_bit(model):
    data = rows_and_targets()
    model, X = model[0], data[model[1]]
    y = data[3] if "Linear" in str(model) or "Lp" in str(model) else data[2]
    single, double = (learned(clone(model).fit(rows, y)) for rows in (X, X.astype(np.float64)))
    assert single
    assert single.keys() == double.keys()
    for name, value in single.items():
        assert np.asarray(value).dtype == np.asarray(double[name]).dtype, name
        assert_array_equal(value, double[name], err_msg=name)


def peak_of(model, X, y):
    """Return the most memory that a fit takes beyond its data, in bytes."""
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_dense_rows_are_never_copied_as_a_whole():
    X = np.random.default_rng(0).standard_normal((40_000, 100), dtype=np.float32)
    y = X[:, 0] > 0
    model = linear_model(
        skdp.DPLogisticRegression, **{**GRADIENT, "classes": (False, True), "max_iter": 2}
    )
    for fitted in (model, skdp.DPMean(random_state=0), skdp.DPStandardScaler(random_state=0)):
        assert peak_of(fitted, X, y) < X.nbytes


def test_rows_that_are_transformed_stay_in_single_precision():
    X = rows_and_targets()[0]
    for model in (skdp.DPStandardScaler(random_state=0), skdp.DPFeatureCenterer(random_state=0)):
        wide = model.fit(X).transform(X.astype(np.float64))
        made = model.transform(X)
        assert made.dtype == np.float32
        assert_allclose(made, wide, rtol=1e-5, atol=1e-5)
