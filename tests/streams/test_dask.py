# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Dask collections: fits, statistics, places, input, secrets, a cluster."""

import logging
import os
import signal
from itertools import pairwise

import cloudpickle
import dask
import numpy as np
import pandas as pd
import pytest
from dask import array as da
from dask import bag as db
from dask import dataframe as dd
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skdp import (
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPHeavyTailedMean,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPRidge,
    DPSparseMeanEstimator,
    DPStandardScaler,
    PrivacyBudget,
    papers,
    solvers,
)
from skdp._minimize import queries as _objective
from skdp._rows import dask as _cluster
from skdp._rows.dask import cuts_for, jobs_for, layout_of, located
from skdp.audit import trace_privacy
from skdp.io import stream_chunks
from skdp.privacy import Curator
from tests._chunks import shorten_chunks
from tests._neighbours import rows_in_ball
from tests._solvers import HINGE_LOSS, LOGISTIC_LOSS, linear_model
from tests.streams._ways import assert_same_fit

# Collections of dask are fitted to the last bit as the same rows in memory are.


N_ROWS, N_FEATURES = 3000, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, N_FEATURES))
Y = (X[:, 0] + 0.3 * RNG.normal(size=N_ROWS) > 0).astype(int)
THREE = Y + (X[:, 1] > 0)
HEAVY = X[:, 0] + RNG.standard_t(3, size=N_ROWS)
#: partitions of very different lengths, one of a single row and an empty one
CUTS = ((1, 0, 777, 1222, 300, 700),)


@pytest.fixture
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


@pytest.mark.sample(1)
@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize(
    "params",
    [
        STEPS,
        {"solver": "gd", **STEPS},
        {"solver": "preconditioned", **STEPS},
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


WHOSE = RNG.integers(0, 500, N_ROWS)
NAMED = np.array([f"person {i}" for i in WHOSE], dtype=object)


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("solver", ["preconditioned", "gd"])
def test_groups_of_rows(solver):
    model = logistic(solver=solver, **STEPS)
    rows, labels = da.from_array(X, chunks=(CUTS[0], (3, 2))), da.from_array(Y, chunks=650)
    columns = dd.from_pandas(pd.Series(NAMED), npartitions=3), da.from_array(WHOSE, chunks=CUTS[0])
    given = [{"X": rows, "y": labels, "groups": groups} for groups in (*columns, WHOSE)]
    inside = assert_same_fit(model, {"X": X, "y": Y, "groups": WHOSE}, *given)
    assert inside.ledger_.unit == "group"
    mean = DPMean(data_norm=3.0, random_state=0)
    assert_same_fit(mean, {"X": X, "groups": NAMED}, {"X": rows, "groups": columns[0]})


def test_groups_that_do_not_fit_are_refused():
    rows = da.from_array(X, chunks=700)
    mixed = da.from_array(np.array([None, "a"] * 1500, dtype=object), chunks=999)
    for groups, told in (
        (da.from_array(WHOSE[1:], chunks=500), r"shape \(3000,\); got shape \(2999,\)"),
        (mixed, "missing identifiers"),
        (da.from_array(np.ma.masked_equal(WHOSE, WHOSE[7]), chunks=500), "missing identifiers"),
        (dd.from_pandas(pd.DataFrame({"a": WHOSE, "b": WHOSE}), npartitions=2), "one column"),
    ):
        with pytest.raises(ValueError, match=f"groups must .*{told}"):
            DPMean(data_norm=1.0).fit(rows, groups=groups)


@pytest.mark.usefixtures("small_partitions")
def test_a_trace_with_another_group_in_partitions_keeps_to_the_claim():
    class Placed(DPLogisticRegression):
        def fit(self, X, y, *, groups=None):
            X, y = da.from_array(X, chunks=(500, 3)), da.from_array(y, chunks=500)
            return super().fit(X, y, groups=da.from_array(np.asarray(groups), chunks=777))

    model = Placed(classes=[0, 1], data_norm=1.0, solver="gd", max_iter=3)
    own = np.tile([[9.0, 0.0, 0.0]], (300, 1))
    few, many = (np.concatenate([rows, X[:, :3]]) for rows in (-own[:1], own))
    found = trace_privacy(
        model,
        few,
        many,
        y=np.concatenate([[0], Y]),
        y_neighbour=np.concatenate([np.ones(300, dtype=int), Y]),
        groups=np.concatenate([["-"], NAMED]),
        groups_neighbour=np.concatenate([["-"] * 300, NAMED]),
    )
    assert found.passed, found
    assert 0 < found.share <= 1


@pytest.mark.sample(1)
@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("params", [STEPS, {"mechanism": "output"}], ids=str)
def test_three_classes(params):
    given = da.from_array(X, chunks=(CUTS[0], 5)), da.from_array(THREE, chunks=650)
    same(logistic(**params).fit(*given), logistic(**params).fit(X, THREE))


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("solver", ["localized", "one-pass", "accelerated-one-pass"])
def test_solvers_that_cannot_stream_say_so_before_anything_is_charged(solver):
    model = logistic(solver=solver)
    with pytest.raises(TypeError, match="needs all rows in memory"):
        model.fit(da.from_array(X, chunks=500), Y)
    assert not hasattr(model, "ledger_")


@pytest.mark.sample(1)
@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize(
    "model",
    [
        DPHingeSVM(data_norm=3.0, max_iter=4, random_state=0),
        DPHingeSVM(mechanism="output", data_norm=3.0, random_state=0),
        DPLpRegressor(max_iter=4, random_state=0),
        DPLpRegressor(p=1, max_iter=4, random_state=0),
        DPLpRegressor(clipping_norm="private", max_iter=4, random_state=0),
        DPRidge(epsilon=4.0, random_state=0),
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


@pytest.mark.sample(1)
@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("kind", TARGETS)
def test_targets_of_every_kind(kind):
    expected = logistic(**STEPS).fit(X, Y)
    same(logistic(**STEPS).fit(da.from_array(X, chunks=900), TARGETS[kind]()), expected)


@pytest.mark.usefixtures("small_partitions")
def test_labels_that_are_text():
    names = np.array(["no", "yes", "perhaps"])[THREE]
    expected = logistic(**STEPS).fit(X, names)
    for y in (da.from_array(names, chunks=700), dd.from_pandas(pd.Series(names), npartitions=2)):
        model = logistic(**STEPS).fit(da.from_array(X, chunks=900), y)
        same(model, expected)
        assert list(model.classes_) == ["no", "perhaps", "yes"]


@pytest.mark.full
@pytest.mark.usefixtures("small_partitions")
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


@pytest.mark.usefixtures("small_partitions")
def test_batches_of_a_data_frame():
    frame = pd.DataFrame(X, columns=list("abcde"))
    params = {"solver": "sgd", "batch_size": 400, **STEPS}
    model = logistic(**params).fit(dd.from_pandas(frame, npartitions=4), Y)
    same(model, logistic(**params).fit(frame, Y))


@pytest.mark.sample(1)
@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("params", [STEPS, {"solver": "sgd", "batch_size": 400, **STEPS}], ids=str)
def test_sparse_blocks(params):
    dense = np.where(RNG.random(X.shape) < 0.4, X, 0.0)
    given = da.from_array(dense, chunks=(CUTS[0], 5)).map_blocks(sparse.csr_array)
    expected = logistic(**params).fit(sparse.csr_array(dense), Y)
    same(logistic(**params).fit(given, da.from_array(Y, chunks=650)), expected)


@pytest.mark.usefixtures("small_partitions")
def test_single_precision():
    single = X.astype(np.float32)
    same(
        logistic(**STEPS).fit(da.from_array(single, chunks=800), Y),
        logistic(**STEPS).fit(single, Y),
    )


@pytest.mark.sample(1)
@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("chunks", [N_ROWS, 1000, (2999, 1)], ids=str)
def test_one_partition_and_two(chunks):
    given = da.from_array(X, chunks=(chunks, 5))
    same(logistic(**STEPS).fit(given, Y), logistic(**STEPS).fit(X, Y))


@pytest.mark.usefixtures("small_partitions")
def test_rows_are_computed_anew_at_every_pass_and_not_kept():
    reads = []

    def part(block):
        reads.append(len(block))
        return block

    given = da.from_array(X, chunks=(1500, 5)).map_blocks(part, meta=np.empty((0, 0)))
    logistic(**STEPS).fit(given, Y)
    # one pass to look at the rows, one a step, and their shape
    assert sum(reads) >= (STEPS["max_iter"] + 1) * N_ROWS


@pytest.mark.usefixtures("small_partitions")
def test_prediction_block_by_block():
    given = da.from_array(X, chunks=(900, 5))
    model = logistic(**STEPS).fit(given, Y)
    lazily = given.map_blocks(model.predict, drop_axis=1, dtype=model.classes_.dtype)
    assert np.array_equal(lazily.compute(), model.predict(X))
    assert np.array_equal(model.predict(given), model.predict(X))


# Statistics of collections of dask are those of the rows in memory; where rows are read.


STATISTICS_N_ROWS = 2000
STATISTICS_X = np.clip(np.random.default_rng(0).normal(size=(STATISTICS_N_ROWS, 4)), -2, 2)
STATISTICS_Y = (STATISTICS_X[:, 0] > 0).astype(int)

#: these add up chunks where the rows are
ADDED_UP = [
    DPMean(bounds=(-2, 2), random_state=0),
    DPMean(data_norm=4.0, random_state=0),
    DPHeavyTailedMean(random_state=0),
    DPMedian(data_norm=4.0, max_iter=5, random_state=0),
    DPNormQuantile(data_norm=4.0, random_state=0),
    DPSparseMeanEstimator(data_norm=4.0, sparsity=2, random_state=0),
    DPStandardScaler(random_state=0),
    DPFeatureCenterer(random_state=0),
    DPFrequentFeatures(random_state=0),
]
#: these look at rows one by one, on the driver
READ = [
    DPQuantile(bounds=(-2, 2), random_state=0),
    DPLogisticRegression(
        solver=solvers.LazySGD(batch_size=200), max_iter=2, random_state=0, data_norm=1.0
    ),
    DPLogisticRegression(
        solver=papers.BiasReduced(batch_size=200, sparsity=3),
        max_iter=2,
        random_state=0,
        data_norm=1.0,
    ),
]


@pytest.fixture
def brought(monkeypatch):
    """Cut few rows into many partitions, and count the rows that come to the driver."""
    shorten_chunks(monkeypatch, 64)
    monkeypatch.setattr(_cluster, "PARTITION_BYTES", 8 * 4 * 600)
    count = []
    for name in ("_read", "_brought"):
        counted(monkeypatch, name, count)
    with dask.config.set(scheduler="synchronous"):
        yield count


def counted(monkeypatch, name, count):
    method = getattr(_cluster.ClusterTable, name)

    def counting(table, *args):
        rows = method(table, *args)
        count.append(rows[0].shape[0])
        return rows

    monkeypatch.setattr(_cluster.ClusterTable, name, counting)


def statistics_given(model):
    rows, collection = [STATISTICS_X], [da.from_array(STATISTICS_X, chunks=(700, 4))]
    if hasattr(model, "predict"):
        return [*rows, STATISTICS_Y], [*collection, da.from_array(STATISTICS_Y, chunks=300)]
    return rows, collection


@pytest.mark.sample(2)
@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize("model", ADDED_UP, ids=lambda model: type(model).__name__)
def test_sums_are_made_where_the_rows_are(model, brought):
    assert_same_fit(model, *statistics_given(model))
    # a single row tells the shape
    assert sum(brought) <= 1


@pytest.mark.sample(1)
@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize("model", READ, ids=str)
def test_some_read_rows_on_the_driver(model, brought):
    assert_same_fit(model, *statistics_given(model))
    assert sum(brought) > 1


# Every row of a chunk is found, once and in order, whatever the partitions are.


lengths = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def bounds_of(sizes):
    return np.cumsum([0, *sizes])


def rows_at(places, bounds):
    rows = np.arange(bounds[-1])
    parts = [rows[bounds[i] : bounds[i + 1]][where] for i, where in places]
    return np.concatenate(parts)


@pytest.mark.full
@given(lengths, st.data())
def test_ranges_and_positions(sizes, data):
    bounds = bounds_of(sizes)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, int(bounds[-1]))] * 2)))
    rows = np.arange(start, stop)
    assert np.array_equal(rows_at(located((start, stop), bounds), bounds), rows)
    chosen = rows[data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))]
    assert np.array_equal(rows_at(located(chosen, bounds), bounds), chosen)


@given(lengths, st.integers(1, 7), st.integers(1, 3), st.integers(1, 3))
def test_blocks_are_added_up_in_order(sizes, step, width, longest):
    bounds = bounds_of(sizes)
    n_rows = int(bounds[-1])
    pieces = [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    found = []
    for job in jobs_for(pieces, bounds, width, longest):
        assert len(job.blocks) <= longest
        for block in job.blocks:
            if job.partition is not None:
                chunks = [[(job.partition, where)] for where in block]
            else:
                wanted, layout = layout_of(block)
                parts = [[(i, where) for where in places] for i, places in wanted.items()]
                chunks = [[parts[i][j] for i, j in chunk] for chunk in layout]
                assert len(parts) > 1
            assert len(chunks) <= width
            found += [rows_at(chunk, bounds) for chunk in chunks]
    assert [list(chunk) for chunk in found] == [list(range(*piece)) for piece in pieces]


@given(lengths, st.integers(1, 7), st.integers(1, 30))
def test_partitions_begin_where_blocks_do(sizes, unit, size):
    bounds = bounds_of(sizes)
    new, places = cuts_for(int(bounds[-1]), bounds, unit, size)
    assert (new[0], new[-1]) == (0, bounds[-1])
    assert np.all(np.diff(new) > 0)
    assert not np.any(new[1:-1] % unit)
    if places is None:
        assert new is bounds
    else:
        rows = [list(rows_at(part, bounds)) for part in places]
        assert rows == [list(range(*pair)) for pair in pairwise(new)]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [([64, 64, 50], True), ([61, 63], False), ([8] * 100, False), ([8000, 8], False)],
)
def test_partitions_stay_if_they_are_of_a_useful_size(sizes, kept):
    bounds = bounds_of(sizes)
    assert (cuts_for(int(bounds[-1]), bounds, 8, 64)[1] is None) == kept


# What is wrong with a collection of dask is said before anything is charged.


INPUT_X = np.random.default_rng(0).normal(size=(300, 3))
INPUT_Y = (INPUT_X[:, 0] > 0).astype(int)
SECRET = 987.654321


@pytest.fixture
def one_thread():
    """Compute without threads."""
    with dask.config.set(scheduler="synchronous"):
        yield


def refused(X, y, error, match):
    budget = PrivacyBudget(1.0, 1e-6)
    model = DPLogisticRegression(
        epsilon=1.0, budget=budget, max_iter=2, random_state=0, data_norm=1.0
    )
    with pytest.raises(error, match=match) as caught:
        model.fit(X, y)
    assert budget.spent == (0.0, 0.0)
    assert not hasattr(model, "coef_")
    assert str(SECRET) not in str(caught.value)


def rows(values=INPUT_X, chunks=(100, 3)):
    return da.from_array(values, chunks=chunks)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("value", [np.nan, np.inf], ids=str)
def test_a_value_that_is_not_finite_in_one_partition(value):
    broken = INPUT_X.copy()
    broken[250, 1], broken[251, 0] = value, SECRET
    refused(rows(broken), INPUT_Y, ValueError, "Input X contains")
    refused(rows(), np.where(np.arange(300) == 250, value, INPUT_Y), ValueError, "Input y contains")
    refused(
        dd.from_pandas(pd.DataFrame(broken), npartitions=3), INPUT_Y, ValueError, "Input X contains"
    )


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "y",
    [INPUT_Y[:-1], rows()[:299, 0], dd.from_pandas(pd.Series(INPUT_Y[:-1]), npartitions=2)],
    ids=type,
)
def test_other_lengths(y):
    refused(rows(), y, ValueError, "same number of rows; got 300 and 299")


@pytest.mark.usefixtures("one_thread")
def test_targets_of_several_columns():
    refused(rows(), rows(), TypeError, "y must be a dask array, Series or DataFrame with one")
    refused(rows(), INPUT_X, ValueError, "y must have one column")
    frame = dd.from_pandas(pd.DataFrame(INPUT_X), npartitions=2)
    refused(rows(), frame, ValueError, "y must have one column")
    refused(rows(), 3, ValueError, "y must have one column|same number of rows")


@pytest.mark.usefixtures("one_thread")
def test_no_targets():
    refused(rows(), None, ValueError, "requires y to be passed")


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "given",
    [
        dask.delayed(lambda: INPUT_X)(),
        db.from_sequence([1, 2, 3]),
        dd.from_pandas(pd.Series(INPUT_Y), npartitions=2),
        da.from_array(INPUT_Y, chunks=100),
        da.zeros((4, 2, 2), chunks=2),
    ],
    ids=lambda given: type(given).__name__,
)
def test_other_collections(given):
    refused(
        given, INPUT_Y, TypeError, "X must be a dask array with two dimensions, or a dask DataFrame"
    )
    if not isinstance(given, da.Array | dd.Series) or given.ndim == 3:
        refused(rows(), given, TypeError, "y must be a dask array, Series or DataFrame")


@pytest.mark.usefixtures("one_thread")
def test_a_stream_of_targets():
    _, y = stream_chunks([(INPUT_X, INPUT_Y)])
    refused(rows(), y, TypeError, "not an array|y is a stream")


@pytest.mark.usefixtures("one_thread")
def test_columns_that_are_no_numbers():
    frame = pd.DataFrame({"a": INPUT_X[:, 0], "b": pd.Categorical(INPUT_Y)})
    refused(dd.from_pandas(frame, npartitions=2), INPUT_Y, TypeError, "must be numeric")
    frame["b"] = pd.to_datetime(INPUT_Y)
    refused(dd.from_pandas(frame, npartitions=2), INPUT_Y, TypeError, "must be numeric")
    frame["b"] = [f"{SECRET}?"] * 300
    refused(dd.from_pandas(frame, npartitions=2), INPUT_Y, ValueError, "must be numeric")


@pytest.mark.usefixtures("one_thread")
def test_columns_that_nobody_has_counted():
    refused(rows()[:, rows()[0] > -99], INPUT_Y, ValueError, "number of columns of X must be known")


@pytest.mark.usefixtures("one_thread")
def test_partitions_of_another_width():
    wrong = rows().map_blocks(lambda block: block[:, :2], meta=np.empty((0, 0)), chunks=(100, 3))
    refused(wrong, INPUT_Y, ValueError, "a partition of X has 2 features; X has 3")


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("n_rows", [0, 1])
def test_too_few_rows(n_rows):
    some = rows()[:n_rows]
    refused(some, INPUT_Y[:n_rows], ValueError, "0 sample|only 1 class")


@pytest.mark.usefixtures("one_thread")
def test_an_error_of_the_graph_itself_is_passed_on():
    def broken(block):
        raise OSError("no such disk")

    refused(rows().map_blocks(broken, meta=np.empty((0, 0))), INPUT_Y, OSError, "no such disk")


# What workers are sent has no noise in it, and no rows.


SECRET_VALUE = np.array([0.123456789, -2.718281828, 3.141592653])
ROWS = np.random.default_rng(0).normal(size=(50, 3))


def parts_of(objective, monkeypatch):
    """Return the pickles of all that an objective would send."""
    sent = []

    def kept(rows, partial, size):
        sent.append(cloudpickle.dumps(partial))
        return np.zeros(size)

    monkeypatch.setattr(_objective, "sum_over", kept)
    w = np.ones(3)
    objective.value_and_gradient(w)
    objective.gradient(w)
    if np.isfinite(objective.loss.smoothness):
        objective.hessian(w)
        objective.hessian_diagonal(w)
        objective.hessian_product(w, w)
    else:
        objective.duality_gap(objective.smoothed(0.1), w, w)
    return sent


@pytest.mark.parametrize("loss", [LOGISTIC_LOSS, HINGE_LOSS], ids=["smooth", "kinked"])
def test_the_secret_term_of_objective_perturbation_is_not_sent(monkeypatch, loss):
    target = np.where(ROWS[:, 0] > 0, 1.0, -1.0)
    rows = rows_in_ball(ROWS, target, np.zeros(50, dtype=bool), 10.0, 0.0)
    objective = _objective.RowObjective(
        rows, loss, ridge=1.0, n_coefs=3, row_norm=1.0, center=np.full(3, 7.5), linear=SECRET_VALUE
    )
    sent = parts_of(objective, monkeypatch)
    assert len(sent) >= 3
    for content in sent:
        assert SECRET_VALUE.tobytes() not in content
        assert np.float64(np.linalg.norm(SECRET_VALUE)).tobytes() not in content
        assert ROWS[0].tobytes() not in content
        # what was sent works by itself
        vector = cloudpickle.loads(content)(rows.chunks[0])
        assert np.isfinite(vector).all()


# Fits on a cluster of two processes, one of which is killed in the middle, and on none.


CLUSTER_X = np.random.default_rng(0).normal(size=(N_ROWS, N_FEATURES))
CLUSTER_Y = (CLUSTER_X[:, 0] + CLUSTER_X[:, 1] > 0).astype(int)
LOCAL = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}


def model(**params):
    return linear_model(
        DPLogisticRegression, data_norm=3.0, random_state=0, **{"max_iter": 5} | params
    )


@pytest.fixture
def cluster_small_partitions(monkeypatch):
    """Cut few rows into many blocks and partitions."""
    shorten_chunks(monkeypatch, 64)
    monkeypatch.setattr(_cluster, "PARTITION_BYTES", 8 * N_FEATURES * 1100)


@pytest.fixture(scope="module")
def quiet():
    """Leave out what dask logs about workers that are lost."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.scheduler")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def scheduler():
    """Have the scheduler of before afterwards: a client closed within a fit leaves its own."""
    before = dask.config.get("scheduler", None)
    yield
    dask.config.set(scheduler=before)


@pytest.fixture(scope="module")
def cluster():
    """Start two processes that stay for the module."""
    options = {"n_workers": 2, "threads_per_worker": 1, "silence_logs": logging.CRITICAL}
    with LocalCluster(processes=True, **LOCAL, **options) as started:
        yield started


@pytest.fixture
def client(cluster):
    """Make the cluster current."""
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def cluster_given():
    return da.from_array(CLUSTER_X, chunks=(700, 3)), da.from_array(CLUSTER_Y, chunks=700)


def at_release(monkeypatch, number, act):
    """Call something before one of the releases."""
    release, count = Curator.release, []

    def counted(self, *args, **kwargs):
        count.append(None)
        if len(count) == number:
            act()
        return release(self, *args, **kwargs)

    monkeypatch.setattr(Curator, "release", counted)
    return count


def cluster_same(fitted, expected):
    assert np.array_equal(fitted.coef_, expected.coef_)
    assert repr(fitted.ledger_) == repr(expected.ledger_)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado")
@pytest.mark.usefixtures("cluster_small_partitions", "quiet")
@pytest.mark.parametrize(
    "params",
    [{}, {"solver": "sgd", "batch_size": 700}, {"mechanism": "objective", "max_iter": None}],
    ids=str,
)
def test_no_row_comes_to_the_driver(client, monkeypatch, params):
    expected = model(**params).fit(CLUSTER_X, CLUSTER_Y)
    brought, bring = [], _cluster.ClusterTable._brought

    def counted(table, places):
        rows = bring(table, places)
        brought.append(rows[0].shape[0])
        return rows

    monkeypatch.setattr(_cluster.ClusterTable, "_brought", counted)
    monkeypatch.setattr(_cluster.ClusterTable, "_read", None)
    monkeypatch.setattr(_cluster.ClusterTable, "take", None)
    cluster_same(model(**params).fit(*cluster_given()), expected)
    # but for a single one, which tells the shape
    assert set(brought) <= {1}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado")
@pytest.mark.usefixtures("cluster_small_partitions", "quiet")
def test_long_coefficients_are_sent_once(client, monkeypatch):
    monkeypatch.setattr(_cluster, "SENT_ONCE", 1)
    cluster_same(model().fit(*cluster_given()), model().fit(CLUSTER_X, CLUSTER_Y))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado")
@pytest.mark.usefixtures("cluster_small_partitions", "quiet")
def test_waves_of_sums(client, monkeypatch):
    monkeypatch.setattr(_cluster, "WAVE_BYTES", 8 * N_FEATURES)
    cluster_same(model().fit(*cluster_given()), model().fit(CLUSTER_X, CLUSTER_Y))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado")
@pytest.mark.usefixtures("cluster_small_partitions", "quiet")
def test_frames_and_fallbacks(client):
    frame = pd.DataFrame(CLUSTER_X[:, :4], columns=list("abcd"))
    params = {"solver": "lazy-sgd", "batch_size": 100, "data_norm": 2.0, "max_iter": 5}
    expected = linear_model(DPLogisticRegression, random_state=0, **params).fit(frame, CLUSTER_Y)
    fitted = linear_model(DPLogisticRegression, random_state=0, **params)
    cluster_same(fitted.fit(dd.from_pandas(frame, npartitions=3), CLUSTER_Y), expected)
    assert list(fitted.feature_names_in_) == list("abcd")


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado")
@pytest.mark.usefixtures("cluster_small_partitions", "quiet")
def test_bad_rows_are_reported_once(client):
    broken = CLUSTER_X.copy()
    broken[2000, 4] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model().fit(da.from_array(broken, chunks=(600, -1)), CLUSTER_Y)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado")
@pytest.mark.usefixtures("cluster_small_partitions", "quiet")
def test_a_worker_is_killed_in_the_middle(client, monkeypatch):
    expected = model().fit(CLUSTER_X, CLUSTER_Y)
    budget = PrivacyBudget(2.0, 1e-5)

    def kill():
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    count = at_release(monkeypatch, 3, kill)
    cluster_same(model(budget=budget).fit(*cluster_given()), expected)
    assert len(count) == sum(release.count for release in expected.ledger_.releases)
    assert budget.spent == (1.0, 1e-6)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado")
@pytest.mark.usefixtures("cluster_small_partitions", "quiet")
def test_the_cluster_goes_away(monkeypatch):
    budget = PrivacyBudget(2.0, 1e-5)
    with LocalCluster(n_workers=1, processes=False, **LOCAL) as started, Client(started) as client:
        count = at_release(monkeypatch, 3, client.close)
        fitted = model(budget=budget)
        with pytest.raises(ConnectionError, match="the cluster is gone"):
            fitted.fit(*cluster_given())
    assert len(count) == 3
    assert budget.spent == (1.0, 1e-6)
    assert not hasattr(fitted, "coef_")
