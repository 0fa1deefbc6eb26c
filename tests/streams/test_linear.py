# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear models of streams: fits, ranges of rows, privacy."""

import copy
import json
import os
import pickle
import subprocess
import sys
import textwrap
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import (
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    DPStandardScaler,
    PrivacyBudget,
    solvers,
)
from skdp._quantiles import RankRows
from skdp._rows import base, kept, linear, streams
from skdp._rows.base import CHUNKS_PER_BLOCK, LazyChunks
from skdp._rows.dask import opened
from skdp._rows.streams import facts_of, rows_of
from skdp.io import RowStream, stream_arrays, stream_chunks
from skdp.privacy import gdp_mu
from tests import _audit
from tests._neighbours import worst_pairs
from tests._solvers import PAIRS, linear_model
from tests.streams._ways import OnDisk, assert_same_fit, chunked

# Linear models fitted to rows outside memory are those fitted in memory, to the last bit.


RNG = np.random.default_rng(1)
#: more than one block of chunks; chunks of 8192 rows
N_ROWS, N_FEATURES = 70_000, 4
X = RNG.normal(size=(N_ROWS, N_FEATURES))
BINARY = (X[:, 0] + 0.3 * RNG.normal(size=N_ROWS) > 0).astype(np.int64)
THREE = BINARY + (X[:, 1] > 0)
#: some rows only, where a solver is slow
FEW = 9000

STREAMING = {
    "accelerated": {"max_iter": 4},
    "gd": {"max_iter": 4},
    "preconditioned": {"max_iter": 4},
    "sgd": {"batch_size": 300, "max_iter": 5},
    "lazy-sgd": {"batch_size": 300, "max_iter": 5},
    "bias-reduced": {"batch_size": 300, "max_iter": 4, "sparsity": 3},
    "newton": {},
    "lbfgs": {},
    "phased": {},
    "exact": {"delta": 0.0, "coef_bound": 2.0},
    "net": {"delta": 0.0, "coef_bound": 2.0},
    "frank-wolfe": {"l1_bound": 5.0, "max_iter": 3},
}
IN_MEMORY = {"localized", "one-pass", "accelerated-one-pass", "cvxpy"}


def logistic(**options):
    return linear_model(DPLogisticRegression, **{"data_norm": 4.0, "random_state": 0, **options})


def test_every_solver_is_in_one_of_the_two_lists():
    assert set(STREAMING) | IN_MEMORY == {solver for _, solver in PAIRS}


@pytest.mark.sample(2)
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair[1] in STREAMING], ids="-".join)
@pytest.mark.parametrize("y", [BINARY, THREE], ids=["binary", "three"])
def test_logistic_regression(pair, y):
    mechanism, solver = pair
    # so few features that draws are exact
    rows, y = X[:FEW, :1] if mechanism == "exponential" else X[:FEW], y[:FEW]
    if solver == "net":
        rows, y = rows[:500], y[:500]
    model = logistic(mechanism=mechanism, solver=solver, **STREAMING[solver])
    if solver == "exact" and y.max() > 1:
        model.set_params(fit_intercept=False)
    assert_same_fit(model, (rows, y), chunked(rows, y))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delta": 0.0},
        {"mechanism": "output", "delta": 0.0},
        {"preprocess": "center"},
        {"preprocess": "center-scale"},
        {"preprocess": "center-clip"},
        {"sparsity": 3},
        {"fit_intercept": False},
        {"adjacency": "zero-out"},
        {"classes": [0, 1]},
        {"classes": [1, 2, 5]},
        {"solver": "sgd", "batch_size": 3000, "max_iter": 3},
        {"solver": "sgd", "batch_size": 9, "max_iter": 3},
        {"solver": "sgd", "sampling": "without-replacement", "batch_size": 300, "max_iter": 3},
    ],
    ids=str,
)
def test_options_of_logistic_regression(options):
    model = logistic(**{"max_iter": None if "delta" in options else 3, **options})
    assert_same_fit(model, (X[:FEW], BINARY[:FEW]), chunked(X[:FEW], BINARY[:FEW]))


@pytest.mark.full
@pytest.mark.parametrize(
    "options", [{}, {"delta": 0.0}, {"mechanism": "output", "solver": "phased"}], ids=str
)
def test_hinge(options):
    model = linear_model(DPHingeSVM, data_norm=4.0, random_state=0, **options)
    assert_same_fit(model, (X[:FEW], BINARY[:FEW]), chunked(X[:FEW], BINARY[:FEW]))


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["accelerated", "gd", "sgd"])
def test_many_blocks(solver):
    model = logistic(solver=solver, **STREAMING[solver])
    assert_same_fit(model, (X, THREE), chunked(X, THREE))


@pytest.mark.full
@pytest.mark.parametrize(
    "options",
    [{}, {"p": 1}, {"p": 4}, {"p": "huber"}, {"clipping_norm": "private"}, {"solver": "newton"}],
    ids=str,
)
def test_regression(options):
    rows, y = X[:FEW], X[:FEW, 0] + RNG.standard_t(3, size=FEW)
    model = linear_model(DPLpRegressor, random_state=0, **options)
    assert_same_fit(model, (rows, y), chunked(rows, y), stream_arrays(OnDisk(rows), OnDisk(y)))


def labels(kind):
    """Return labels of a kind, and the public set of some of them."""
    named = {
        "text": (np.array(["no", "yes", "maybe"])[THREE], ["no", "yes"]),
        "objects": (np.array(["no", "yes", "maybe"], dtype=object)[THREE], ["no", "yes"]),
        "bool": (BINARY.astype(bool), [False, True]),
        "int8": (THREE.astype(np.int8) - 1, [-1, 1, 300]),
        "uint64": (THREE.astype(np.uint64), [0, 2]),
        "float": (THREE / 1, [0.0, 1.0, 7.0]),
        "float32": (THREE.astype(np.float32), [0.0, 0.5, 1.0]),
        "many": (np.arange(N_ROWS) % 6, [0, 1, 2, 3, 4, 8]),
    }
    return named[kind]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "kind", ["text", "objects", "bool", "int8", "uint64", "float", "float32", "many"]
)
@pytest.mark.parametrize("given", [False, True], ids=["inferred", "given"])
def test_labels(kind, given):
    y, classes = labels(kind)
    y = y[:FEW]
    model = logistic(max_iter=2, solver="gd", classes=classes if given else None)
    inside = assert_same_fit(model, (X[:FEW], y), chunked(X[:FEW], y))
    assert len(inside.classes_) == (len(classes) if given else len(np.unique(y)))


def memory_map(folder, array, mode="r", order="C"):
    """Return a memory map of an array in a file."""
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    made = np.lib.format.open_memmap(
        path, "w+", array.dtype, array.shape, fortran_order=order == "F"
    )
    made[:] = array
    made.flush()
    return np.lib.format.open_memmap(path, mode)


@pytest.mark.full
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8, ">f8"], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_maps_are_streamed_unasked(tmp_path, monkeypatch, kind, order, mode):
    rows = np.asarray(10 * X[:FEW], dtype=kind)
    mapped = memory_map(tmp_path, rows, mode, order)
    mapped_y = memory_map(tmp_path, BINARY[:FEW], mode)
    memory = np.asarray(rows, order=order), BINARY[:FEW]
    model = logistic(data_norm=40.0, max_iter=3, solver="gd")
    opened = stream_arrays(mapped, mapped_y)
    assert_same_fit(model, memory, (mapped, mapped_y), opened)
    monkeypatch.setattr(streams, "LARGE", 0)
    read = []
    real = streams.ArrayTable._read
    monkeypatch.setattr(
        streams.ArrayTable,
        "_read",
        lambda self, *range_: (read.append(range_), real(self, *range_))[1],
    )
    assert_same_fit(model, memory, (mapped, mapped_y), (mapped, BINARY[:FEW]))
    assert read
    assert max(stop - start for start, stop in read) <= FEW
    # these have the rows in one piece, whatever it is
    for solver in ("localized", "one-pass"):
        other = logistic(data_norm=40.0, mechanism="output", solver=solver)
        assert_same_fit(other, memory, (mapped, mapped_y))


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["gd", "sgd", "frank-wolfe", "newton"])
def test_sparse_chunks(solver):
    rows = sparse.random_array((FEW, 300), density=0.02, format="csr", rng=RNG)
    options = {k: v for k, v in STREAMING[solver].items() if k != "l1_bound"}
    mechanism = {"newton": "objective", "frank-wolfe": "exponential"}.get(solver, "gradient")
    model = logistic(mechanism=mechanism, solver=solver, **options)
    if solver == "frank-wolfe":
        model.set_params(solver__l1_bound=5.0)
    y = BINARY[:FEW]
    assert_same_fit(model, (rows, y), chunked(rows, y))


def test_data_frames_and_their_names():
    frame = pd.DataFrame(X[:FEW], columns=list("abcd"))
    y = pd.Series(BINARY[:FEW])
    cuts = [0, 1, 5000, FEW]
    pieces = [(frame[a:b], y[a:b]) for a, b in pairwise(cuts)]
    model = logistic(max_iter=3, solver="gd")
    inside = assert_same_fit(model, (frame, y), stream_chunks(pieces))
    assert list(inside.feature_names_in_) == list("abcd")


def test_rows_of_a_stream_with_targets_in_memory_or_of_another_stream():
    (rows,), (other, y) = chunked(X), chunked(X, BINARY, cuts=[0, 50, N_ROWS])
    assert other.shape == X.shape
    ways = (rows, BINARY), (rows, y), (rows, BINARY.tolist())
    assert_same_fit(logistic(max_iter=3, solver="gd"), (X, BINARY), *ways)
    with pytest.raises(ValueError, match="the same number of rows"):
        logistic().fit(rows, BINARY[1:])
    with pytest.raises(TypeError, match="X must be one, too"):
        logistic().fit(X, y)


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["gd", "sgd"])
@pytest.mark.parametrize("stored", [None, (100, 2), (20_000, 4)], ids=str)
def test_arrays_on_disk(solver, stored):
    opened = stream_arrays(OnDisk(X, stored), OnDisk(BINARY, stored and stored[:1]))
    model = logistic(solver=solver, **STREAMING[solver])
    assert_same_fit(model, (X, BINARY), opened)


@pytest.mark.parametrize("solver", sorted(IN_MEMORY))
def test_solvers_that_need_all_rows_say_so_before_anything_is_charged(solver):
    mechanism = next(m for m, s in PAIRS if s == solver)
    budget = PrivacyBudget(9.0, 1e-3)
    model = logistic(mechanism=mechanism, solver=solver, budget=budget)
    with pytest.raises(TypeError, match=r"solver=\w+ needs all rows in memory"):
        model.fit(*chunked(X[:FEW], BINARY[:FEW]))
    assert budget.spent == (0.0, 0.0)


def test_a_budget_is_charged_once_for_all_passes():
    budget = PrivacyBudget(9.0, 1e-3)
    logistic(budget=budget, max_iter=5, solver="gd").fit(*chunked(X, BINARY))
    assert budget.spent == (1.0, 1e-6)


@pytest.mark.full
def test_the_number_of_threads_does_not_matter(monkeypatch):
    wide = RNG.normal(size=(140_000, 70))
    y = (wide[:, 0] > 0).astype(int)
    model, fits = logistic(max_iter=2, solver="gd", data_norm=9.0), []
    for n_threads in (1, 3):
        monkeypatch.setattr(
            "skdp.linear_model._classifiers.effective_n_threads", lambda n=n_threads: n
        )
        fits += [clone(model).fit(wide, y), clone(model).fit(*chunked(wide, y))]
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fitted.coef_, fits[0].coef_)


# What a row outside memory can do to a fit is what it can do in memory; memory stays small.


EPSILON, DELTA = 2.0, 1e-5
MODEL = DPLogisticRegression(
    EPSILON, DELTA, solver=solvers.GD(clipping_norm=0.1, step_size=1e-06), classes=(0, 1),
    max_iter=5, random_state=0, data_norm=1.0,
)  # fmt: skip


def loss(adjacency, streamed):
    """Return the largest coupled mu over worst pairs, relative to the claim."""
    model = MODEL.set_params(adjacency=adjacency)

    def fit(rows):
        model.fit(*(chunked(rows.X, rows.labels(), [0, 3, 12]) if streamed
                    else (rows.X, rows.labels())))  # fmt: skip

    pairs = worst_pairs(12, 3, 2, adjacency, model.data_norm)
    return max(_audit.coupled_mu(fit, *pair) for pair in pairs) / gdp_mu(EPSILON, DELTA)


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_neighbouring_streams_are_as_far_apart_as_neighbouring_arrays(adjacency):
    outside = loss(adjacency, streamed=True)
    assert outside == loss(adjacency, streamed=False)
    assert 0.999 <= outside <= 1.0


def test_rows_of_a_stream_that_are_not_clipped_are_caught(monkeypatch):
    real = kept.KeptChunks._finished

    def unclipped(self, begun):
        made = real(self, begun)
        made.factor[:], made.norm[:] = 1.0, 1e-100
        return made

    monkeypatch.setattr(kept.KeptChunks, "_finished", unclipped)
    assert 0.999 <= loss("replace-one", streamed=False) <= 1.0
    assert loss("replace-one", streamed=True) > 1.5


def test_labels_outside_the_public_set_that_count_are_caught(monkeypatch):
    real = linear.LinearAdmission.__call__

    def counted(self, block):
        X, target, null = block
        return real(replace(self), (X, target, np.zeros_like(null)))

    monkeypatch.setattr(linear.LinearAdmission, "__call__", counted)
    assert loss("zero-out", streamed=True) > 1.01


def sums(cuts):
    """Return a statistic, before its noise, of rows of which sums round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    with _audit.recorded() as additions:
        DPLogisticRegression(
            solver="gd", max_iter=1, classes=[0, 1], random_state=0, data_norm=1.0
        ).fit(*chunked(X, (X[:, 0] > 0).astype(int), cuts))
    return additions[0].statistic


def total(cuts):
    """Return the sum of rows, made of a partial sum for each range that is read."""
    rows, _ = chunked(np.random.default_rng(0).normal(size=(20_000, 3)), np.zeros(20_000), cuts)
    assert rows.shape == (20_000, 3)
    ranges = LazyChunks.cut(rows.table, 8192, (lambda block: block[0].sum(axis=0),))
    return sum(ranges, start=np.zeros(3))


CUTS = ([0, 20_000], [0, 1, 20_000], [0, 5000, 13_333, 20_000])


def test_sums_do_not_depend_on_where_chunks_end():
    for cuts in CUTS[1:]:
        np.testing.assert_array_equal(total(cuts), total(CUTS[0]))
        np.testing.assert_array_equal(sums(cuts), sums(CUTS[0]))


def test_ranges_that_follow_the_chunks_are_caught(monkeypatch):
    """Then where a row of text ends moves what the others are rounded with."""

    def as_they_come(cls, table, step, make):
        ends = np.cumsum([X.shape[0] for X, _ in table.blocks()]).tolist()
        return cls(table, list(zip([0, *ends], ends, strict=False)), make)

    monkeypatch.setattr(LazyChunks, "cut", classmethod(as_they_come))
    assert any((total(cuts) != total(CUTS[0])).any() for cuts in CUTS[1:])


def test_nothing_of_the_rows_travels_with_chunks_to_other_processes():
    rows, _ = chunked(np.full((3000, 3), 918273.0), np.arange(3000))
    assert rows.read(0, 10).shape == (10, 3)
    assert rows.table.count() == 3000
    made = pickle.dumps(LazyChunks.cut(rows.table, 1000, (rows_of,)))
    assert len(made) < 1000
    assert np.float64(918273.0).tobytes() not in made
    rows.table.close()
    assert rows.table._last is rows.table._rest is rows.table._source is None


GENERATED = """
import json, resource, sys
import numpy as np
from skdp import DPLogisticRegression
from skdp.io import stream_chunks

def chunks(n_rows):
    for start in range(0, n_rows, 50_000):
        position = np.arange(start, start + 50_000, dtype=np.uint32)[:, None]
        X = (position * (np.arange(20, dtype=np.uint32) + 7) * np.uint32(0x9E3779B1)).view(np.int32)
        X = X.astype(np.float64) / 2**31
        yield X, X[:, 0] > 0

def peak(n_rows):
    model = DPLogisticRegression(max_iter=2, solver="gd", classes=[False, True], data_norm=4.0)
    model.fit(*stream_chunks(lambda: chunks(n_rows)))
    scale = 1 if sys.platform == "darwin" else 1024
    return scale * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(json.dumps([peak(n_rows) for n_rows in (200_000, int(sys.argv[1]))]))
"""


@pytest.mark.parametrize(
    "n_rows",
    [
        pytest.param(1_000_000, marks=pytest.mark.full),
        pytest.param(5_000_000, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_memory_does_not_grow_with_the_rows(n_rows):
    """What 200,000 rows need is enough for any number: a tenth of what they would take up."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(GENERATED), str(n_rows)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    few, many = json.loads(done.stdout)
    assert many - few < n_rows * 20 * 8 / 10
    assert few > CHUNKS_PER_BLOCK * 8192 * 20 * 8


# A range of rows is the same to the last bit wherever the chunks end; copies hold no rows.


RANGE_N_ROWS = 9000  # of which a chunk of sums has 8192
RANGE_X = np.random.default_rng(0).normal(size=(RANGE_N_ROWS, 5))
Y = (RANGE_X[:, 0] > 0).astype(int)
RANGE_CUTS = (
    [0, RANGE_N_ROWS],
    [0, 1, RANGE_N_ROWS],
    [0, 8191, 8193, RANGE_N_ROWS],
    [0, 3000, 3001, 7000, RANGE_N_ROWS],
)
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "frames": lambda rows: pd.DataFrame(np.asfortranarray(rows)),
    "by turns": lambda rows: np.array(rows, order="CF"[len(rows) % 2]),
}
RANGE_MODEL = DPLogisticRegression(solver="gd", max_iter=2, data_norm=3.0, random_state=0)


def partials(monkeypatch, model, *data):
    """Return the sums of a fit before anything is rounded to a grid."""
    found, real = [], base.added_up

    def recorded(partial, block):
        found.append(real(partial, block))
        return found[-1].copy()

    with monkeypatch.context() as patch:
        patch.setattr(base, "added_up", recorded)
        model.fit(*data)
    return np.concatenate(found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_rows", [RANGE_N_ROWS, 3001])
def test_partial_sums_are_those_in_memory_in_any_layout(monkeypatch, layout, n_rows):
    for model, data in (
        (RANGE_MODEL, (RANGE_X, Y)),
        (DPStandardScaler(random_state=0), (RANGE_X,)),
    ):
        memory = [part[:n_rows] for part in data]
        expected = partials(monkeypatch, model, *memory)
        frame = partials(monkeypatch, model, np.asfortranarray(memory[0]), *memory[1:])
        np.testing.assert_array_equal(frame, expected)
        for cuts in RANGE_CUTS:
            ranges = [slice(a, b) for a, b in pairwise(cuts)]
            chunks = [(LAYOUTS[layout](memory[0][rows]), *(y[rows] for y in memory[1:]))
                      for rows in ranges if rows.start < n_rows]  # fmt: skip
            given = stream_chunks([chunk if len(chunk) > 1 else chunk[0] for chunk in chunks])
            given = given if isinstance(given, tuple) else (given,)
            found = partials(monkeypatch, model, *given)
            np.testing.assert_array_equal(found, expected, err_msg=str(cuts))


def generated():
    for start in range(0, RANGE_N_ROWS, 1000):
        yield RANGE_X[start : start + 1000], Y[start : start + 1000]


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["arrays", "float32", "sparse", "groups"])
@pytest.mark.parametrize("room", [0, 1 << 18, 1 << 28])
def test_nothing_depends_on_how_many_rows_are_kept(monkeypatch, tmp_path, kind, room):
    monkeypatch.setattr(kept, "ROOM", room)
    rows, given, model = RANGE_X, {}, RANGE_MODEL
    if kind == "sparse":
        rows = sparse.csr_array(np.where(rows > 0.5, rows, 0.0))
    elif kind == "groups":
        given = {"groups": np.arange(RANGE_N_ROWS) // 7}
    else:
        rows = rows.astype("f4" if kind == "float32" else "f8")
        # rows are mapped, and mapped rows kept in place of these
        model = clone(model).set_params(solver="preconditioned", max_iter=2)
    parts = [rows[:5000], rows[5000:]], [Y[:5000], Y[5000:]]
    chunks = list(zip(*parts, strict=True))
    memory = model.fit(rows, Y, **given).coef_
    for cache in (False, tmp_path):
        found = clone(model).fit(*stream_chunks(chunks, cache=cache), **given)
        np.testing.assert_array_equal(found.coef_, memory)


def test_a_chunk_that_the_user_fills_again_is_not_kept_as_it_is_later(monkeypatch):
    def refilled():
        # where products want rows: nobody copies it for that
        memory = np.empty(4096 * 5 + 16)
        skip = -memory.ctypes.data % 64 // 8
        buffer = memory[skip : skip + 4096 * 5].reshape(4096, 5)
        for start in range(0, RANGE_N_ROWS, 4096):
            part = slice(start, start + 4096)
            rows = buffer[: len(Y[part])]
            rows[:] = RANGE_X[part]
            yield rows, Y[part]

    # ranges end where these chunks do
    monkeypatch.setattr(base, "dense_chunk_rows", lambda n_features: 4096)
    expected = RANGE_MODEL.fit(RANGE_X, Y).coef_
    np.testing.assert_array_equal(RANGE_MODEL.fit(*stream_chunks(refilled)).coef_, expected)


@pytest.mark.parametrize("kind", ["dense", "sparse", "groups"])
def test_a_row_counts_once_where_a_chunk_is_filled_again_within_a_range(kind):
    sparse_rows = sparse.csr_array(np.where(RANGE_X > 0.5, RANGE_X, 0.0))
    rows = sparse_rows if kind == "sparse" else RANGE_X
    owners = np.arange(RANGE_N_ROWS) // 7

    def refilled(size=1000):
        # in the place of the first chunk a range begins with, as many rows as it has parts
        dense, y, whose = np.empty((size, 5)), np.empty(size, Y.dtype), np.empty(size, int)
        data = np.empty(5 * size)
        for start in range(0, RANGE_N_ROWS, size):
            part = rows[start : start + size]
            k = part.shape[0]
            y[:k], whose[:k] = Y[start : start + k], owners[start : start + k]
            if kind == "sparse":
                data[: part.nnz] = part.data
                part = sparse.csr_array((data[: part.nnz], part.indices, part.indptr), part.shape)
            else:
                dense[:k] = part
                part = dense[:k]
            yield (part, y[:k], whose[:k])[: 2 + (kind == "groups")]

    given = {"groups": owners} if kind == "groups" else {}
    expected = RANGE_MODEL.fit(rows, Y, **given).coef_
    found, y, *groups = stream_chunks(refilled)
    given = {"groups": groups[0]} if groups else {}
    np.testing.assert_array_equal(RANGE_MODEL.fit(found, y, **given).coef_, expected)


def test_rows_are_read_twice_and_held_up_to_a_bound(monkeypatch):
    begun, most, real = [], [0], kept.Keeper.keep

    def chunks():
        begun.append(0)
        for chunk in generated():
            begun[-1] += len(chunk[1])
            yield chunk

    def watched(self, *args):
        real(self, *args)
        most.append(self._bytes)

    monkeypatch.setattr(kept.Keeper, "keep", watched)
    monkeypatch.setattr(base, "dense_chunk_rows", lambda n_features: 500)
    model = clone(RANGE_MODEL).set_params(solver="preconditioned", max_iter=5)
    streams = stream_chunks(chunks)
    begun.clear()
    model.fit(*streams)
    # to check them, and for the first sum
    assert len(begun) == 2
    assert max(most) >= RANGE_X.nbytes
    assert not streams[0].table.keeper._chunks
    bound = RANGE_X.nbytes // 3
    monkeypatch.setattr(kept, "ROOM", bound)
    most.clear()
    begun.clear()
    model.fit(*streams)
    assert len(begun) > 5
    assert 0 < max(most) <= bound
    # a pass ends where those that are kept begin
    assert set(begun[:2]) == {RANGE_N_ROWS}
    assert max(begun[3:]) < 0.9 * RANGE_N_ROWS


def test_the_file_of_a_cache_is_nobodys_and_is_gone_after_a_fit_or_an_error(monkeypatch, tmp_path):
    made, real = [], kept.tempfile.TemporaryFile

    def watched(**options):
        made.append(real(**options))
        return made[-1]

    monkeypatch.setattr(kept.tempfile, "TemporaryFile", watched)
    fails, seen = [], []

    def chunks():
        if made and not made[-1].closed:
            seen.append((os.fstat(made[-1].fileno()).st_mode & 0o777, list(tmp_path.iterdir())))
            if fails:
                raise OSError(fails.pop())
        return generated()

    model = clone(RANGE_MODEL).set_params(max_iter=3)
    streams = stream_chunks(chunks, cache=tmp_path)
    mean = RANGE_X.mean(axis=0)

    def look(rows):
        chunks()
        return rows - mean

    expected = clone(model).fit(RANGE_X - mean, Y).coef_
    for error in (None, "no connection"):
        fails += [error] if error else []
        mapped = streams[0].map(look)
        if error:
            with pytest.raises(OSError, match=error):
                model.fit(mapped, streams[1])
        else:
            np.testing.assert_array_equal(model.fit(mapped, streams[1]).coef_, expected)
        assert made.pop().closed
        assert not list(tmp_path.iterdir())
    assert seen
    assert all(found == (0o600, []) for found in seen)
    for wrong, kind in ((tmp_path / "none", ValueError), (3, TypeError)):
        with pytest.raises(kind, match="cache must be"):
            stream_chunks(generated, cache=wrong)


def test_a_full_disk_makes_a_fit_slower_and_nothing_else(monkeypatch):
    real, written = kept._File.written, []

    def full(self, array):
        written.append(array)
        if len(written) > 5:
            raise OSError(28, "No space left on device")
        return real(self, array)

    monkeypatch.setattr(kept._File, "written", full)
    expected = clone(RANGE_MODEL).fit(RANGE_X, Y).coef_
    found = clone(RANGE_MODEL).fit(*stream_chunks(generated, cache=True)).coef_
    np.testing.assert_array_equal(found, expected)
    assert len(written) == 6


def test_copies_and_pickles_begin_anew_and_hold_no_rows():
    rows, _ = stream_chunks(generated)
    assert rows.shape == RANGE_X.shape
    expected = rows.read(100, 4200)
    for made in (copy.deepcopy(rows), pickle.loads(pickle.dumps(rows))):
        np.testing.assert_array_equal(made.read(100, 4200), expected)
    assert RANGE_X[4000].tobytes() not in pickle.dumps(rows)


def test_a_fit_leaves_no_rows_and_no_open_iterator_in_the_streams():
    alive, ended = [], []

    def chunks():
        for start in range(0, RANGE_N_ROWS, 1000):
            alive.append(weakref.ref(part := RANGE_X[start : start + 1000].copy()))
            yield part, Y[start : start + 1000]
            del part
        ended.append(None)

    streams = stream_chunks(chunks)
    RANGE_MODEL.fit(*streams)
    assert ended
    assert not any(part() is not None for part in alive)
    table = streams[0].table
    assert table._last is table._rest is table._source is None
    disk = stream_arrays(OnDisk(RANGE_X, (1000, 5)), OnDisk(Y))
    RANGE_MODEL.fit(*disk)
    assert disk[0].table._last is disk[0].table._kept is None


def test_a_source_that_fails_once_can_be_read_again():
    fails = []

    def chunks():
        if fails:
            raise OSError(fails.pop())
        yield from generated()

    streams = stream_chunks(chunks)
    assert streams[0].shape == RANGE_X.shape
    fails.append("no connection")
    with pytest.raises(OSError, match="no connection"):
        streams[0].read(0, 10)
    np.testing.assert_array_equal(streams[0].read(0, 10), RANGE_X[:10])


def test_wide_rows_with_targets_in_memory_are_read_a_few_at_a_time():
    wide = stream_arrays(OnDisk(np.zeros((100, 1 << 20), dtype=np.int8)))
    rows, _ = opened(wide, np.zeros(100))
    assert rows.table.width == 8


def test_streams_without_rows_have_a_shape():
    rows, labels = chunked(RANGE_X[:0], Y[:0], [0, 0])
    assert rows.shape == (0, 0)
    assert labels.shape == (0,)
    assert isinstance(rows, RowStream)


def test_ranks_and_parts_of_many_ranges_are_those_in_memory():
    rows, labels = chunked(RANGE_X, Y, RANGE_CUTS[-1])
    stream, _ = opened(rows, labels)
    stream.facts = facts_of(stream, None, lambda A, y: (A, y), with_labels=False)
    bounds = np.full(5, -2.0), np.full(5, 2.0)
    found = RankRows(stream, *bounds).positions(3)
    np.testing.assert_array_equal(found, RankRows(RANGE_X, *bounds).positions(3))
    chunks = LazyChunks.cut(stream.table, 1000, (rows_of,)).between(1500, 4700)
    np.testing.assert_array_equal(np.concatenate(list(chunks)), RANGE_X[1500:4700])


def test_threads_that_share_a_stream_get_the_rows_that_they_asked_for():
    def slowly():
        for block in generated():
            # others have their turn
            time.sleep(1e-4)
            yield block

    rows, _ = stream_chunks(slowly)
    starts = range(0, 8000, 37)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rows.read, starts, [start + 700 for start in starts]))
    for start, part in zip(starts, found, strict=True):
        np.testing.assert_array_equal(part, RANGE_X[start : start + 700])
