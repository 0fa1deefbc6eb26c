# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPSparseMeanEstimator, mechanism="compressed-sensing": formats, extremes, bad parameters."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from tests.location._bags import blocks
from tests.location.test_sparse_mean_sketch import estimator, every_kind

NAN, INF = float("nan"), float("inf")


@every_kind
def test_formats_agree(kind):
    X = blocks(60, 50, 3, 4)
    frozen = X.toarray()
    frozen.flags.writeable = False
    unsorted = sparse.csr_matrix(X)
    unsorted.indices = unsorted.indices.astype(np.int64).reshape(-1, 3)[:, ::-1].ravel()
    unsorted.data = unsorted.data.reshape(-1, 3)[:, ::-1].ravel()
    unsorted.indptr = unsorted.indptr.astype(np.int64)
    unsorted.has_sorted_indices = False
    halves = sparse.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    model = estimator(measurement=kind, n_measurements=20, sparsity=3)
    expected = model.fit(X).location_
    for given in (frozen, np.asfortranarray(frozen), unsorted, halves, X.tocsc(), X.tocoo()):
        before = given.copy()
        np.testing.assert_allclose(model.fit(given).location_, expected, atol=1e-6)
        assert abs(given - before).max() == 0


@pytest.mark.covering
@pytest.mark.parametrize("epsilon", [1e-9, 1e6])
@pytest.mark.parametrize(("adjacency", "norm"), [("replace-one", 1e-100), ("zero-out", 1e100)])
@every_kind
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 4)), np.ones((1, 3)), np.ones((3, 1)), np.full((50, 2), 1e300),
        np.full((50, 2), -1e-300), np.tile([1e-100, 1e100], (60, 1)), sparse.csr_array((7, 9)),
        np.eye(4, 6, dtype=np.float32), np.where(np.eye(5) > 0, 1e308, 5e-324),
    ],
)  # fmt: skip
def test_extreme_rows_and_budgets(epsilon, adjacency, norm, kind, X, monkeypatch):
    monkeypatch.setattr("skdp._recovery.measurements._MOST_STEPS", 30)
    for recovery in ("auto", "equality"):
        model = estimator(
            epsilon, adjacency=adjacency, data_norm=norm, measurement=kind, recovery=recovery,
            sparsity=2, solver="first-order",
        ).fit(X)  # fmt: skip
        assert np.isfinite(model.location_).all()
        assert np.linalg.norm(model.location_ / norm) <= 1 + 1e-9
        assert 0 <= model.error_estimate_ <= 1.5 * norm
        assert model.privacy_spent_[0] <= epsilon


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"n_measurements": 51}, "n_measurements must be at least 1, and at most .* 50; got 51"),
        ({"recovery": "constrained"}, "sparsity must be given .*; got None"),
        ({"n_measurements": 0}, "n_measurements"),
        ({"n_measurements": 2.5}, "n_measurements"),
        ({"measurement": "fourier"}, "measurement"),
        ({"recovery": "lasso"}, "recovery"),
        ({"solver": "scs"}, "solver"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": NAN}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"sparsity": 0}, "sparsity"),
        ({"data_norm": 0.0}, "data_norm"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X = blocks(60, 50, 3, 4)
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(X)


def test_parameters_of_this_mechanism_are_refused_by_others():
    X = blocks(60, 50, 3, 4)
    for given in ({"n_measurements": 5}, {"measurement": "gaussian"}, {"recovery": "denoising"}):
        with pytest.raises(ValueError, match=next(iter(given))):
            estimator(mechanism="soft-threshold", **given).fit(X)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_rows_that_are_not_finite_are_refused(bad):
    X = blocks(60, 50, 3, 4)
    X.data[7] = bad
    with pytest.raises(ValueError, match="contains"):
        estimator().fit(X)


@pytest.mark.parametrize("kind", ["auto", "hadamard"])
def test_many_features_need_few_vectors(kind, monkeypatch):
    monkeypatch.setattr("skdp._recovery.measurements._MOST_STEPS", 2)
    d = 2**20
    X = blocks(2000, d, 20, 10)
    model = estimator(measurement=kind, n_measurements=1000, sparsity=20)
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # twelve vectors are the matrix of signs
    assert peak < 40 * 8 * d
    assert model.location_.shape == (d,)
