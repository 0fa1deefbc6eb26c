# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Collections of dask are fitted to the last bit as the same rows in memory are."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor
from skdp._rows import dask as _cluster
from tests._chunks import shorten_chunks
from tests._solvers import linear_model

N_ROWS, N_FEATURES = 3000, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, N_FEATURES))
Y = (X[:, 0] + 0.3 * RNG.normal(size=N_ROWS) > 0).astype(int)
THREE = Y + (X[:, 1] > 0)
HEAVY = X[:, 0] + RNG.standard_t(3, size=N_ROWS)
#: partitions of very different lengths, one of a single row and an empty one
CUTS = ((1, 0, 777, 1222, 300, 700),)


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch):
    """Cut few rows into many blocks and partitions, and compute without threads."""
    shorten_chunks(monkeypatch, 64)
    monkeypatch.setattr(_cluster, "PARTITION_BYTES", 8 * N_FEATURES * 1100)
    with dask.config.set(scheduler="synchronous"):
        yield


def same(model, expected):
    assert np.array_equal(model.coef_, expected.coef_)
    assert np.array_equal(model.intercept_, expected.intercept_)
    assert repr(model.ledger_) == repr(expected.ledger_)
    assert model.n_features_in_ == expected.n_features_in_


def logistic(**params):
    return linear_model(DPLogisticRegression, data_norm=3.0, random_state=0, **params)


STEPS = {"max_iter": 4}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "params",
    [
        STEPS,
        {"solver": "gd", **STEPS},
        {"solver": "sgd", "batch_size": 700, **STEPS},
        {"solver": "sgd", "batch_size": 3, **STEPS},
        {"solver": "sgd", "batch_size": 50, "sampling": "with-replacement", **STEPS},
        {"solver": "lazy-sgd", "batch_size": 100, **STEPS},
        {"solver": "bias-reduced", "batch_size": 100, "sparsity": 3, **STEPS},
        {"solver": "frank-wolfe", "l1_bound": 5.0, **STEPS},
        {"preprocess": "center-clip", **STEPS},
        {"sparsity": 2, **STEPS},
        {"mechanism": "objective"},
        {"mechanism": "output", "solver": "lbfgs"},
        {"mechanism": "output", "solver": "phased"},
        {"mechanism": "exponential", "solver": "net", "coef_bound": 2.0},
    ],
    ids=str,
)
def test_every_solver_of_logistic_regression(params):
    given = da.from_array(X, chunks=(CUTS[0], (3, 2))), da.from_array(Y, chunks=650)
    same(logistic(**params).fit(*given), logistic(**params).fit(X, Y))


@pytest.mark.parametrize("params", [STEPS, {"mechanism": "output"}], ids=str)
def test_three_classes(params):
    given = da.from_array(X, chunks=(CUTS[0], 5)), da.from_array(THREE, chunks=650)
    same(logistic(**params).fit(*given), logistic(**params).fit(X, THREE))


@pytest.mark.parametrize("solver", ["localized", "one-pass", "accelerated-one-pass"])
def test_solvers_that_cannot_stream_say_so_before_anything_is_charged(solver):
    model = logistic(solver=solver)
    with pytest.raises(TypeError, match="must be in memory"):
        model.fit(da.from_array(X, chunks=500), Y)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    "model",
    [
        DPHingeSVM(data_norm=3.0, max_iter=4, random_state=0),
        DPLpRegressor(max_iter=4, random_state=0),
        DPLpRegressor(p=1, max_iter=4, random_state=0),
        DPLpRegressor(clipping_norm="private", max_iter=4, random_state=0),
    ],
    ids=str,
)
def test_other_models(model):
    y = Y if isinstance(model, DPHingeSVM) else HEAVY
    expected = type(model)(**model.get_params()).fit(X, y)
    same(model.fit(da.from_array(X, chunks=CUTS + (5,)), da.from_array(y, chunks=CUTS)), expected)


TARGETS = {
    "array": lambda: Y,
    "list": lambda: list(Y),
    "column": lambda: Y[:, None],
    "series": lambda: pd.Series(Y, index=np.arange(N_ROWS) + 7),
    "dask array": lambda: da.from_array(Y, chunks=400),
    "dask column": lambda: da.from_array(Y[:, None], chunks=(400, 1)),
    "dask series": lambda: dd.from_pandas(pd.Series(Y), npartitions=3),
    "dask frame": lambda: dd.from_pandas(pd.DataFrame({"y": Y}), npartitions=3),
    "unknown lengths": lambda: da.from_array(Y, chunks=400)[da.from_array(Y, chunks=400) >= 0],
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_of_every_kind(kind):
    expected = logistic(**STEPS).fit(X, Y)
    same(logistic(**STEPS).fit(da.from_array(X, chunks=900), TARGETS[kind]()), expected)


def test_labels_that_are_text():
    names = np.array(["no", "yes", "perhaps"])[THREE]
    expected = logistic(**STEPS).fit(X, names)
    for y in (da.from_array(names, chunks=700), dd.from_pandas(pd.Series(names), npartitions=2)):
        model = logistic(**STEPS).fit(da.from_array(X, chunks=900), y)
        same(model, expected)
        assert list(model.classes_) == ["no", "perhaps", "yes"]


def test_data_frames_of_mixed_columns():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        a=lambda f: (10 * f.a).astype(int), b=lambda f: f.b > 0, c=lambda f: f.c.astype(np.float32)
    )
    expected = logistic(**STEPS).fit(frame, Y)
    given = dd.from_pandas(frame, npartitions=4)
    model = logistic(**STEPS).fit(given, Y)
    same(model, expected)
    assert list(model.feature_names_in_) == list("abcde")
    # rows that were filtered: nobody knows how many there are
    kept = frame[frame.a > -5]
    expected = logistic(**STEPS).fit(kept, Y[kept.index])
    y = dd.from_pandas(pd.Series(Y), npartitions=4)
    same(logistic(**STEPS).fit(given[given.a > -5], y[given.a > -5]), expected)


def test_batches_of_a_data_frame():
    frame = pd.DataFrame(X, columns=list("abcde"))
    params = {"solver": "sgd", "batch_size": 400, **STEPS}
    model = logistic(**params).fit(dd.from_pandas(frame, npartitions=4), Y)
    same(model, logistic(**params).fit(frame, Y))


@pytest.mark.parametrize("params", [STEPS, {"solver": "sgd", "batch_size": 400, **STEPS}], ids=str)
def test_sparse_blocks(params):
    dense = np.where(RNG.random(X.shape) < 0.4, X, 0.0)
    given = da.from_array(dense, chunks=(CUTS[0], 5)).map_blocks(sparse.csr_array)
    expected = logistic(**params).fit(sparse.csr_array(dense), Y)
    same(logistic(**params).fit(given, da.from_array(Y, chunks=650)), expected)


def test_single_precision():
    single = X.astype(np.float32)
    same(
        logistic(**STEPS).fit(da.from_array(single, chunks=800), Y),
        logistic(**STEPS).fit(single, Y),
    )


@pytest.mark.parametrize("chunks", [N_ROWS, 1000, (2999, 1)], ids=str)
def test_one_partition_and_two(chunks):
    given = da.from_array(X, chunks=(chunks, 5))
    same(logistic(**STEPS).fit(given, Y), logistic(**STEPS).fit(X, Y))


def test_rows_are_computed_anew_at_every_pass_and_not_kept():
    reads = []

    def part(block):
        reads.append(len(block))
        return block

    given = da.from_array(X, chunks=(1500, 5)).map_blocks(part, meta=np.empty((0, 0)))
    logistic(**STEPS).fit(given, Y)
    # one pass to look at the rows, one a step, and their shape
    assert sum(reads) >= (STEPS["max_iter"] + 1) * N_ROWS


def test_prediction_block_by_block():
    given = da.from_array(X, chunks=(900, 5))
    model = logistic(**STEPS).fit(given, Y)
    lazily = given.map_blocks(model.predict, drop_axis=1, dtype=model.classes_.dtype)
    assert np.array_equal(lazily.compute(), model.predict(X))
    assert np.array_equal(model.predict(given), model.predict(X))
