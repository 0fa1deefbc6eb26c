# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers learn from streams, and map streams to streams: to the last bit as in memory."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import (
    BoundedScaler,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPLogisticRegression,
    DPStandardScaler,
    NormClipper,
    privacy_spent,
)
from skdp._rows import streams as _arrays
from tests.streams._preprocessing import (
    BOTH,
    MODELS,
    PRIVATE,
    PUBLIC,
    D,
    N,
    assert_same_rows,
    dense_rows,
    every_model,
    every_type,
    labels,
    private_model,
    short_chunks,
    sparse_model,
    sparse_rows,
)
from tests.streams._ways import assert_same_fit, chunked

__all__ = ["short_chunks"]
pytestmark = pytest.mark.filterwarnings("ignore:.*random_state:UserWarning")


@pytest.mark.sample(5)
@private_model
@every_type
def test_what_is_learned_from_chunks_is_learned_in_memory(name, dtype):
    X = dense_rows(dtype)
    assert_same_fit(PRIVATE[name], [X], chunked(X), chunked(X, cuts=[0, N]))


@pytest.mark.covering
@pytest.mark.parametrize("name", BOTH)
@every_type
def test_what_is_learned_from_sparse_chunks_is_learned_in_memory(name, dtype):
    X = sparse_rows(dtype)
    assert_same_fit(PRIVATE[name], [X], chunked(X))


@pytest.mark.sample(4)
@private_model
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_what_is_learned_from_frames_is_learned_in_memory(name, frame):
    X = frame(dict(zip("abc", dense_rows().T, strict=True)))
    assert_same_fit(PRIVATE[name], [X], chunked(X))


@private_model
def test_large_memory_maps_are_streamed_and_transformed_in_memory(name, tmp_path, monkeypatch):
    X = dense_rows()
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(N, D))
    mapped[:] = X
    monkeypatch.setattr(_arrays, "LARGE", 0)
    model = assert_same_fit(PRIVATE[name], [X], [mapped])
    assert_array_equal(model.transform(mapped), model.transform(X))


@pytest.mark.covering
@every_model
@every_type
def test_a_stream_is_mapped_to_the_rows_that_an_array_is_mapped_to(name, dtype):
    X = dense_rows(dtype)
    model = clone(MODELS[name]).fit(X)
    (stream,) = chunked(X)
    transformed = model.transform(X)
    assert_same_rows(model.transform(stream), transformed)
    if hasattr(model, "inverse_transform"):
        again = model.inverse_transform(model.transform(stream))
        assert_same_rows(again, model.inverse_transform(transformed))
    assert_same_rows(clone(model).fit_transform(chunked(X)[0]), transformed)


@pytest.mark.covering
@sparse_model
@every_type
def test_a_sparse_stream_is_mapped_to_what_sparse_rows_are_mapped_to(name, dtype):
    X = sparse_rows(dtype)
    model = clone(MODELS[name]).fit(X)
    transformed = model.transform(X)
    stream = model.transform(chunked(X)[0])
    assert_same_rows(stream, transformed)
    if hasattr(model, "inverse_transform"):
        assert_same_rows(
            model.inverse_transform(stream), model.inverse_transform(transformed).tocsr()
        )


PIPELINES = {
    "standard": [DPStandardScaler(**PUBLIC)],
    "public": [BoundedScaler(bounds=(-3, 5)), NormClipper(norm=0.7)],
    "all": [
        BoundedScaler(bounds=(-3, 5)),
        DPStandardScaler(bounds=(-1, 1), **PUBLIC),
        DPFeatureCenterer(data_norm=3.0, **PUBLIC),
        DPFrequentFeatures(n_features_to_select=2, **PUBLIC),
    ],
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PIPELINES)
@every_type
def test_pipelines_fit_streams_as_they_fit_arrays(name, dtype):
    X, y = dense_rows(dtype), labels()
    final = DPLogisticRegression(data_norm=3.0, max_iter=5, classes=[0, 1], **PUBLIC)
    pipeline = make_pipeline(*PIPELINES[name], final)
    inside, outside = clone(pipeline).fit(X, y), clone(pipeline).fit(*chunked(X, y))
    assert_array_equal(outside[-1].coef_, inside[-1].coef_)
    assert_array_equal(outside[-1].intercept_, inside[-1].intercept_)
    assert str(privacy_spent(outside)) == str(privacy_spent(inside))
    assert_array_equal(outside.predict(X), inside.predict(X))


def test_a_pipeline_of_sparse_streams():
    X, y = sparse_rows(), labels()
    final = DPLogisticRegression(max_iter=5, classes=[0, 1], **PUBLIC)
    selector = DPFrequentFeatures(n_features_to_select=4, sparsity=3, **PUBLIC)
    pipeline = make_pipeline(selector, DPStandardScaler(with_mean=False, **PUBLIC), final)
    inside, outside = clone(pipeline).fit(X, y), clone(pipeline).fit(*chunked(X, y))
    assert_array_equal(outside[-1].coef_, inside[-1].coef_)
    assert str(outside[-1].ledger_) == str(inside[-1].ledger_)
