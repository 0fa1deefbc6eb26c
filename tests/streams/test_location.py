# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Locations of streams: fits and input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skdp import (
    DPHeavyTailedMean,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPSparseMeanEstimator,
    PrivacyBudget,
    _quantiles,
)
from skdp._rows import streams
from skdp._rows.streams import Table
from skdp.io import RowStream, stream_arrays, stream_chunks
from skdp.privacy import gdp_mu
from tests import _audit
from tests._chunks import shorten_chunks
from tests._neighbours import ADJACENCIES
from tests.streams._ways import OnDisk, assert_same_fit, chunked

# What tests of locations read chunk by chunk share: models and rows.


N, D, STEP = 130, 3, 7
PUBLIC = {"epsilon": 40.0, "random_state": 0}
CENTER = (1.0, 2.0, 3.0)

DENSE = {
    "box": DPMean(bounds=(-3, 5), mechanism="gaussian", **PUBLIC),
    "coinpress": DPMean(mechanism="coinpress", data_norm=1e4, **PUBLIC),
    "shifted-clipped": DPMean(mechanism="shifted-clipped", data_norm=1e4, **PUBLIC),
    "radius-centered": DPNormQuantile(center=CENTER, data_norm=100.0, **PUBLIC),
    "quantile": DPQuantile(quantile=0.8, bounds=(-5, 5), **PUBLIC),
    "rank": DPMedian(mechanism="rank", data_norm=5.0, **PUBLIC),
    "gradient": DPMedian(mechanism="gradient", data_norm=5.0, max_iter=9, **PUBLIC),
    "gradient-box": DPMedian(mechanism="gradient", bounds=(-3, 5), max_iter=9, **PUBLIC),
}
BOTH = {
    "laplace": DPMean(mechanism="laplace", data_norm=4.0, **PUBLIC),
    "gaussian": DPMean(data_norm=4.0, mechanism="gaussian", **PUBLIC),
    "clipped": DPMean(mechanism="clipped", data_norm=1e4, **PUBLIC),
    "heavy-drawn": DPHeavyTailedMean(**PUBLIC),
    "heavy-moment": DPHeavyTailedMean(moment_bound=4.0, delta=0.0, **PUBLIC),
    "radius": DPNormQuantile(data_norm=100.0, **PUBLIC),
    "sparse": DPSparseMeanEstimator(sparsity=2, **PUBLIC),
    "sparse-signs": DPSparseMeanEstimator(nonnegative=True, **PUBLIC),
    "sketch": DPSparseMeanEstimator(
        mechanism="compressed-sensing", sparsity=2, n_measurements=2, **PUBLIC
    ),
    "histogram": DPSparseMeanEstimator(mechanism="histogram", sparsity=2, **PUBLIC),
}
MODELS = {**DENSE, **BOTH}
every_model = pytest.mark.parametrize("name", MODELS)
sparse_model = pytest.mark.parametrize("name", BOTH)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Cut few rows into many chunks, several blocks of them."""
    shorten_chunks(monkeypatch, STEP)


def dense_rows(dtype=np.float64):
    rows = np.random.default_rng(0).normal(CENTER, 0.5, size=(N, D)).astype(dtype)
    rows[5] = 0.0
    rows[9] *= 1e3
    return rows


def sparse_rows(dtype=np.float64):
    rows = sparse.random_array((N, 12), density=0.25, format="csr", rng=0, dtype=dtype)
    return rows - 0.3 * (rows > 0.5)


def parts_of_entries(rows):
    """Return rows of which every entry is stored in two parts."""
    data = np.column_stack([rows.data * 3, rows.data * -2]).ravel()
    return sparse.csr_array((data, np.repeat(rows.indices, 2), rows.indptr * 2), rows.shape)


# Means, medians, quantiles and radii of rows that are read chunk by chunk: those in memory.


__all__ = ["short_chunks"]
pytestmark = pytest.mark.filterwarnings("ignore:.*random_state:UserWarning")


@pytest.mark.sample(1)
@every_model
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chunks_are_as_rows_in_memory(name, dtype):
    X = dense_rows(dtype)
    ways = [chunked(X), [stream_arrays(OnDisk(X))]]
    if dtype == np.float64:
        ways.append(chunked(X, cuts=[0, N]))
    assert_same_fit(MODELS[name], [X], *ways)


@pytest.mark.sample(1)
@sparse_model
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_chunks_are_as_sparse_rows_in_memory(name, dtype):
    X = sparse_rows(dtype)
    assert_same_fit(MODELS[name], [X], chunked(X))
    if dtype == np.float64:
        X = parts_of_entries(X)
        assert_same_fit(MODELS[name], [X], chunked(X), chunked(X, cuts=[0, N]))


@pytest.mark.sample(1)
@every_model
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_chunks_of_data_frames_are_as_the_frame(name, frame):
    X = frame(dict(zip("abc", dense_rows().T, strict=True)))
    model = assert_same_fit(MODELS[name], [X], chunked(X))
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])


@pytest.mark.sample(3)
@every_model
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_memory_maps_are_streamed_and_the_same(name, order, tmp_path, monkeypatch):
    X = dense_rows()
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(N, D), order=order)
    mapped[:] = X
    mapped.flush()
    mapped = np.memmap(tmp_path / "rows", np.float64, "r", shape=(N, D), order=order)
    monkeypatch.setattr(streams, "LARGE", 0)
    assert_same_fit(MODELS[name], [X], [mapped])


@pytest.mark.sample(5)
@every_model
def test_one_row(name):
    X = dense_rows()[:1]
    assert_same_fit(MODELS[name], [X], chunked(X, cuts=[0, 0, 1, 1]))


def test_the_plans_are_those_of_many_rows():
    X = dense_rows()
    for name in ("clipped", "coinpress", "shifted-clipped"):
        assert clone(MODELS[name]).fit(X).mechanism_ == name


# Locations of streams: bad ones, changing ones, what is read, and what is charged.


class Watched(Table):
    """Rows that are read as they are asked for; `lengths` has how many at a time."""

    def __init__(self, X):
        self.n_rows, self._X, self.lengths = len(X), X, []

    def _read(self, start, stop):
        self.lengths.append(stop - start)
        return self._X[start:stop], None


@pytest.mark.sample(1)
@every_model
def test_only_short_ranges_are_read_after_the_first_pass(name):
    table = Watched(dense_rows())
    clone(MODELS[name]).fit(RowStream(table))
    first, *later = table.lengths
    assert first == N
    assert later
    assert max(later) <= STEP


@pytest.mark.parametrize("name", ["quantile", "rank"])
@pytest.mark.parametrize(("kept", "passes"), [(1, 3), (8 * N, 2), (1 << 28, 1)])
def test_ranks_keep_as_many_columns_as_fit(name, kept, passes, monkeypatch):
    monkeypatch.setattr(_quantiles, "_KEPT", kept)
    X, started = dense_rows(), []

    def chunks():
        started.append(True)
        yield X

    stream = stream_chunks(chunks)
    del started[:]
    model = clone(MODELS[name]).fit(stream)
    # the first pass is the check
    assert len(started) == 1 + passes
    assert_array_equal(model.location_, clone(MODELS[name]).fit(X).location_)


def test_the_exponential_mechanism_needs_all_points(tmp_path, monkeypatch):
    X = dense_rows()
    budget = PrivacyBudget(100.0)
    model = DPMedian(mechanism="exponential", data_norm=5.0, budget=budget, **PUBLIC)
    with pytest.raises(TypeError, match="'exponential' needs all rows in memory"):
        model.fit(*chunked(X))
    assert budget.spent == (0.0, 0.0)
    monkeypatch.setattr(streams, "LARGE", 0)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(N, D))
    mapped[:] = X
    assert_same_fit(model.set_params(budget=None), [X], [mapped])


@pytest.mark.parametrize("name", DENSE)
def test_sparse_chunks_are_refused_as_sparse_rows_are(name):
    X, budget = sparse_rows()[:, :D], PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget)
    messages = []
    for rows in ([X], chunked(X)):
        with pytest.raises(TypeError) as caught:
            model.fit(*rows)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert budget.spent == (0.0, 0.0)


@pytest.mark.sample(6, 19)
@every_model
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_costs_nothing(name, value):
    X, budget = dense_rows(), PrivacyBudget(100.0, 1e-3)
    X[-1, -1] = value
    model = clone(MODELS[name]).set_params(budget=budget)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        model.fit(*chunked(X))
    assert budget.spent == (0.0, 0.0)
    assert not hasattr(model, "ledger_")


@every_model
def test_chunks_of_other_widths_cost_nothing(name):
    X, budget = dense_rows(), PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget)
    with pytest.raises(ValueError, match="the chunks must have the same features"):
        model.fit(stream_chunks([X[:50], X[50:, :2]]))
    assert budget.spent == (0.0, 0.0)


@pytest.mark.sample(4)
@every_model
def test_a_shared_budget_is_charged_once_a_fit(name):
    budget = PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget, random_state=None)
    model.fit(*chunked(dense_rows()))
    assert len(budget.charges) == 1
    model.fit(*chunked(dense_rows()))
    assert len(budget.charges) == 2
    with pytest.raises(ValueError, match="budget"):
        model.fit(*chunked(dense_rows()))


class Changing:
    """Chunks that are others from the second pass on."""

    def __init__(self, first, later):
        self.first, self.later, self.n_passes = first, later, -1

    def __call__(self):
        # one is opened to look at the type of the chunks
        self.n_passes += 1
        return iter([self.first if self.n_passes <= 1 else self.later])


@pytest.mark.sample(8)
@every_model
def test_rows_that_are_missing_later_are_an_error_after_the_charge(name):
    X, budget = dense_rows(), PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).set_params(budget=budget)
    with pytest.raises(ValueError, match="the chunks ended early"):
        model.fit(stream_chunks(Changing(X, X[:-9])))
    assert len(budget.charges) == 1


@pytest.mark.sample(3)
@every_model
def test_rows_that_break_later_count_as_null_rows_and_are_not_told(name):
    X, later = dense_rows(), dense_rows()
    later[3] = np.nan
    model = clone(MODELS[name]).fit(stream_chunks(Changing(X, later)))
    location = getattr(model, "location_", 0.0)
    assert np.isfinite(location).all()
    assert str(model.ledger_).count("\n") == str(clone(MODELS[name]).fit(X).ledger_).count("\n")


@pytest.mark.sample(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["box", "gaussian", "gradient", "gradient-box"])
def test_claims_are_kept_on_neighbouring_streams(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency, epsilon=2.0, delta=1e-5)
    first = np.full((N, D), 5.0)
    second = first.copy()
    # a row at the opposite end; a coordinate without a value has no weight in a box
    second[-1] = -3.0 if adjacency == "replace-one" else np.nan

    def fit(rows):
        # the check looks at the first data set: a null row is one that breaks later
        clone(model).fit(stream_chunks(Changing(first, rows)))

    measured = _audit.coupled_mu(fit, first, second)
    claimed = gdp_mu(2.0, 1e-5)
    assert measured <= claimed
    assert measured >= 0.999 * claimed or name.startswith("gradient")


@pytest.mark.sample(6)
@every_model
@pytest.mark.parametrize("method", ["predict", "score"])
def test_other_methods_say_what_to_do_with_a_stream(name, method):
    X = dense_rows()
    model = clone(MODELS[name]).fit(X)
    if hasattr(model, method):
        with pytest.raises(TypeError, match="needs all rows in memory here; got a stream"):
            getattr(model, method)(*chunked(X))
