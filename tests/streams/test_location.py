# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means, medians, quantiles and radii of rows that are read chunk by chunk: those in memory."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdp._rows import streams as _arrays
from skdp.io import stream_arrays
from tests.streams._location import (
    MODELS,
    D,
    N,
    dense_rows,
    every_model,
    parts_of_entries,
    short_chunks,
    sparse_model,
    sparse_rows,
)
from tests.streams._ways import OnDisk, assert_same_fit, chunked

__all__ = ["short_chunks"]
pytestmark = pytest.mark.filterwarnings("ignore:.*random_state:UserWarning")


@pytest.mark.sample(10)
@every_model
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chunks_are_as_rows_in_memory(name, dtype):
    X = dense_rows(dtype)
    ways = [chunked(X), [stream_arrays(OnDisk(X))]]
    if dtype == np.float64:
        ways.append(chunked(X, cuts=[0, N]))
    assert_same_fit(MODELS[name], [X], *ways)


@pytest.mark.sample(6)
@sparse_model
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_chunks_are_as_sparse_rows_in_memory(name, dtype):
    X = sparse_rows(dtype)
    assert_same_fit(MODELS[name], [X], chunked(X))
    if dtype == np.float64:
        X = parts_of_entries(X)
        assert_same_fit(MODELS[name], [X], chunked(X), chunked(X, cuts=[0, N]))


@pytest.mark.sample(8)
@every_model
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_chunks_of_data_frames_are_as_the_frame(name, frame):
    X = frame(dict(zip("abc", dense_rows().T, strict=True)))
    model = assert_same_fit(MODELS[name], [X], chunked(X))
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])


@pytest.mark.sample(8)
@every_model
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_memory_maps_are_streamed_and_the_same(name, order, tmp_path, monkeypatch):
    X = dense_rows()
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(N, D), order=order)
    mapped[:] = X
    mapped.flush()
    mapped = np.memmap(tmp_path / "rows", np.float64, "r", shape=(N, D), order=order)
    monkeypatch.setattr(_arrays, "LARGE", 0)
    assert_same_fit(MODELS[name], [X], [mapped])


@every_model
def test_one_row(name):
    X = dense_rows()[:1]
    assert_same_fit(MODELS[name], [X], chunked(X, cuts=[0, 0, 1, 1]))


def test_the_plans_are_those_of_many_rows():
    X = dense_rows()
    for name in ("clipped", "coinpress", "shifted-clipped"):
        assert clone(MODELS[name]).fit(X).mechanism_ == name
