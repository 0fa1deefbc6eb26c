# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear models fitted to rows outside memory are those fitted in memory, to the last bit."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, PrivacyBudget
from skdp._rows import streams
from skdp.io import stream_arrays, stream_chunks
from tests._solvers import PAIRS, linear_model
from tests.streams._ways import OnDisk, assert_same_fit, chunked

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


@pytest.mark.covering
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


@pytest.mark.sample(5)
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(2)
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


@pytest.mark.covering
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


@pytest.mark.covering
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


@pytest.mark.covering
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
    with pytest.raises(TypeError, match=r"solver=\w+ .* must be in memory"):
        model.fit(*chunked(X[:FEW], BINARY[:FEW]))
    assert budget.spent == (0.0, 0.0)


def test_a_budget_is_charged_once_for_all_passes():
    budget = PrivacyBudget(9.0, 1e-3)
    logistic(budget=budget, max_iter=5, solver="gd").fit(*chunked(X, BINARY))
    assert budget.spent == (1.0, 1e-6)


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
