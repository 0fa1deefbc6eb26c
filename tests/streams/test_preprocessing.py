# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers of streams: fits and input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import (
    BoundedScaler,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPLogisticRegression,
    DPMean,
    DPStandardScaler,
    NormClipper,
    PrivacyBudget,
    RandomFourierFeatures,
    privacy_spent,
)
from skdp._rows import streams
from skdp.io import RowStream, stream_chunks
from skdp.privacy import gdp_mu
from tests import _audit
from tests._chunks import shorten_chunks
from tests.streams._ways import assert_same_fit, chunked

# What tests of transformers of rows read chunk by chunk share: models and rows.


N, D, STEP = 130, 3, 7
PUBLIC = {"epsilon": 40.0, "random_state": 0}

DENSE = {
    "standard": DPStandardScaler(**PUBLIC),
    "standard-box": DPStandardScaler(bounds=(-3, 5), **PUBLIC),
    "center": DPFeatureCenterer(data_norm=10.0, **PUBLIC),
    "center-coinpress": DPFeatureCenterer(mechanism="coinpress", data_norm=1e4, **PUBLIC),
}
BOTH = {
    "scale-only": DPStandardScaler(with_mean=False, **PUBLIC),
    "scale-only-box": DPStandardScaler(with_mean=False, bounds=(-3, 5), **PUBLIC),
    "radius": DPFeatureCenterer(with_mean=False, data_norm=10.0, **PUBLIC),
    "frequent": DPFrequentFeatures(sparsity=2, **PUBLIC),
}
PRIVATE = {**DENSE, **BOTH}
STATELESS = {
    "bounded": BoundedScaler(bounds=(0.0, 2.0), feature_range=(0.0, 1.0)),
    "norm": NormClipper(norm=0.7),
}
MODELS = {**PRIVATE, **STATELESS}
every_model = pytest.mark.parametrize("name", MODELS)
private_model = pytest.mark.parametrize("name", PRIVATE)
sparse_model = pytest.mark.parametrize("name", {**BOTH, **STATELESS})
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Cut few rows into many chunks, several blocks of them."""
    shorten_chunks(monkeypatch, STEP)


def dense_rows(dtype=np.float64):
    rows = np.random.default_rng(0).normal((1, 2, 3), 0.5, size=(N, D)).astype(dtype)
    # one that breaks arithmetic, in a chunk of its own kind
    rows[5] = 0.0
    rows[9, 1] = 1e-41
    return rows


def sparse_rows(dtype=np.float64):
    return sparse.random_array((N, 12), density=0.25, format="csr", rng=0, dtype=dtype)


def labels():
    return np.random.default_rng(1).integers(0, 2, N)


def in_memory(stream, n_rows=11):
    """Return all rows of a stream, read in ranges of another length than they come in."""
    blocks = list(stream.blocks(n_rows))
    if sparse.issparse(blocks[0]):
        return sparse.vstack(blocks, format="csr")
    return np.concatenate(blocks)


def assert_same_rows(stream, rows):
    assert isinstance(stream, RowStream)
    found = in_memory(stream)
    assert sparse.issparse(found) == sparse.issparse(rows)
    assert found.dtype == rows.dtype
    if sparse.issparse(rows):
        found, rows = found.toarray(), rows.toarray()
    assert_array_equal(found, rows)


# Transformers learn from streams, and map streams to streams: to the last bit as in memory.


__all__ = ["short_chunks"]
pytestmark = pytest.mark.filterwarnings("ignore:.*random_state:UserWarning")


@pytest.mark.sample(1)
@private_model
@every_type
def test_what_is_learned_from_chunks_is_learned_in_memory(name, dtype):
    X = dense_rows(dtype)
    assert_same_fit(PRIVATE[name], [X], chunked(X), chunked(X, cuts=[0, N]))


@pytest.mark.full
@pytest.mark.parametrize("name", BOTH)
@every_type
def test_what_is_learned_from_sparse_chunks_is_learned_in_memory(name, dtype):
    X = sparse_rows(dtype)
    assert_same_fit(PRIVATE[name], [X], chunked(X))


@pytest.mark.full
@private_model
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_what_is_learned_from_frames_is_learned_in_memory(name, frame):
    X = frame(dict(zip("abc", dense_rows().T, strict=True)))
    assert_same_fit(PRIVATE[name], [X], chunked(X))


@pytest.mark.full
@private_model
def test_large_memory_maps_are_streamed_and_transformed_in_memory(name, tmp_path, monkeypatch):
    X = dense_rows()
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(N, D))
    mapped[:] = X
    monkeypatch.setattr(streams, "LARGE", 0)
    model = assert_same_fit(PRIVATE[name], [X], [mapped])
    assert_array_equal(model.transform(mapped), model.transform(X))


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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
    "public": [BoundedScaler(bounds=(-3, 5)), NormClipper(norm=0.7), RandomFourierFeatures()],
    "all": [
        BoundedScaler(bounds=(-3, 5)),
        DPStandardScaler(bounds=(-1, 1), **PUBLIC),
        DPFeatureCenterer(data_norm=3.0, **PUBLIC),
        DPFrequentFeatures(n_features_to_select=2, **PUBLIC),
    ],
}


@pytest.mark.full
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


@pytest.mark.full
def test_a_pipeline_of_sparse_streams():
    X, y = sparse_rows(), labels()
    final = DPLogisticRegression(max_iter=5, classes=[0, 1], **{"data_norm": 1.0, **PUBLIC})
    selector = DPFrequentFeatures(n_features_to_select=4, sparsity=3, **PUBLIC)
    pipeline = make_pipeline(selector, DPStandardScaler(with_mean=False, **PUBLIC), final)
    inside, outside = clone(pipeline).fit(X, y), clone(pipeline).fit(*chunked(X, y))
    assert_array_equal(outside[-1].coef_, inside[-1].coef_)
    assert str(outside[-1].ledger_) == str(inside[-1].ledger_)


# Transformers of streams: bad ones, changing ones, what is read, and what is charged.


@pytest.mark.parametrize("name", STATELESS)
def test_public_transformers_read_the_first_chunk_alone(name):
    X, read = dense_rows(), []

    def chunks():
        for start in range(0, N, 10):
            read.append(start)
            yield X[start : start + 10]

    stream = stream_chunks(chunks)
    del read[:]
    model = clone(STATELESS[name]).fit(stream)
    mapped = model.transform(stream)
    assert set(read) == {0}
    assert model.n_features_in_ == D
    assert_same_rows(mapped, model.transform(X))


def test_a_stream_is_mapped_by_the_parameters_of_that_time():
    X = dense_rows()
    model = NormClipper(norm=1.0)
    stream, expected = model.transform(*chunked(X)), model.transform(X)
    model.set_params(norm=0.1)
    assert_same_rows(stream, expected)


@pytest.mark.full
@every_model
def test_features_are_checked_as_in_memory(name):
    X = pd.DataFrame(dense_rows(), columns=list("abc"))
    model = clone(MODELS[name]).fit(*chunked(X))
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    assert_same_rows(model.transform(*chunked(X)), model.transform(X))
    with pytest.raises(ValueError, match=r"feature names should match.*feature 2 was 'c'"):
        model.transform(*chunked(X.rename(columns={"c": "d"})))
    with pytest.raises(ValueError, match=r"feature names should match.*there were 3"):
        model.transform(*chunked(X[["a", "b"]]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.transform(*chunked(X.to_numpy()))
    model.fit(*chunked(X.to_numpy()))
    assert not hasattr(model, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names"):
        model.transform(*chunked(X))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        model.transform(*chunked(X.to_numpy()[:, :2]))


@pytest.mark.sample(3)
@every_model
def test_streams_cannot_become_data_frames(name):
    X = dense_rows()
    model = clone(MODELS[name]).fit(X)
    (stream,) = chunked(X)
    refused = pytest.raises(TypeError, match="not to a data frame")
    with sklearn.config_context(transform_output="pandas"), refused:
        model.transform(stream)
    model.set_output(transform="polars")
    with pytest.raises(TypeError, match="not to a data frame"):
        model.transform(*chunked(X))


@pytest.mark.sample(1)
@every_model
def test_what_is_not_finite_is_found_before_anything_is_spent(name):
    X, budget = dense_rows(), PrivacyBudget(100.0, 1e-3)
    model = clone(MODELS[name]).fit(X)
    X[-1, 0] = np.inf
    final = DPMean(budget=budget, **PUBLIC)
    with pytest.raises(ValueError, match="infinity"):
        final.fit(model.transform(*chunked(X)))
    if name in PRIVATE:
        with pytest.raises(ValueError, match="infinity"):
            clone(model).set_params(budget=budget).fit(*chunked(X))
    assert budget.spent == (0.0, 0.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", DENSE)
def test_sparse_streams_are_refused_as_sparse_rows_are(name):
    X, budget = sparse_rows()[:, :D], PrivacyBudget(100.0, 1e-3)
    model, fitted = clone(DENSE[name]).set_params(budget=budget), clone(DENSE[name])
    fitted.fit(dense_rows())
    for method in (model.fit, fitted.transform, fitted.inverse_transform):
        with pytest.raises(TypeError, match="sparse rows cannot be shifted") as memory:
            method(X)
        with pytest.raises(TypeError, match="sparse rows cannot be shifted") as stream:
            method(*chunked(X))
        assert str(memory.value) == str(stream.value)
    assert budget.spent == (0.0, 0.0)


@pytest.mark.sample(2)
@every_model
def test_nothing_is_made_of_no_rows(name):
    empty = stream_chunks([np.empty((0, D))])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        clone(MODELS[name]).fit(empty)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        clone(MODELS[name]).fit(dense_rows()).transform(empty)


@pytest.mark.sample(3)
@private_model
def test_a_shared_budget_is_charged_once_a_fit(name):
    budget = PrivacyBudget(100.0, 1e-3)
    model = clone(PRIVATE[name]).set_params(budget=budget, random_state=None)
    for n_fits in (1, 2):
        model.fit_transform(*chunked(dense_rows()))
        assert len(budget.charges) == n_fits


@pytest.mark.sample(2)
@every_model
def test_what_maps_rows_holds_none(name):
    marked = dense_rows() + 12345.678
    model = clone(MODELS[name]).fit(dense_rows())
    steps = pickle.dumps(model.transform(*chunked(marked)).steps)
    assert len(steps) < 5000
    assert marked[0].tobytes() not in steps


def test_without_any_feature_a_stream_is_empty_and_it_is_said():
    X = sparse_rows()
    model = DPFrequentFeatures(threshold=1e6, **PUBLIC).fit(X)
    with pytest.warns(UserWarning, match="No features were selected"):
        mapped = model.transform(*chunked(X))
    assert mapped.read(0, 5).shape == (5, 0)


def test_only_selected_features_can_be_put_back():
    X = sparse_rows()
    model = DPFrequentFeatures(n_features_to_select=4, **PUBLIC).fit(X)
    with pytest.raises(ValueError, match="different shape"):
        model.inverse_transform(*chunked(X))


def test_the_claim_of_moments_is_kept_on_neighbouring_streams():
    model = DPStandardScaler(2.0, 1e-5, bounds=(-1, 1), random_state=0)
    first, second = np.full((N, D), 1.0), np.full((N, D), 1.0)
    second[-1] = -1.0
    measured = _audit.coupled_mu(lambda rows: clone(model).fit(*chunked(rows)), first, second)
    assert 0.999 * gdp_mu(2.0, 1e-5) <= measured <= gdp_mu(2.0, 1e-5)
