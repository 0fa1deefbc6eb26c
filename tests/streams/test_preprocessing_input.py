# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers of streams: bad ones, changing ones, what is read, and what is charged."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdp import (
    DPFrequentFeatures,
    DPMean,
    DPStandardScaler,
    NormClipper,
    PrivacyBudget,
)
from skdp.io import stream_chunks
from skdp.privacy import gdp_mu
from tests import _audit
from tests.streams._preprocessing import (
    DENSE,
    MODELS,
    PRIVATE,
    PUBLIC,
    STATELESS,
    D,
    N,
    assert_same_rows,
    dense_rows,
    every_model,
    private_model,
    short_chunks,
    sparse_rows,
)
from tests.streams._ways import chunked

__all__ = ["short_chunks"]
pytestmark = pytest.mark.filterwarnings("ignore:.*random_state:UserWarning")


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


@pytest.mark.sample(4)
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


@every_model
def test_nothing_is_made_of_no_rows(name):
    empty = stream_chunks([np.empty((0, D))])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        clone(MODELS[name]).fit(empty)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        clone(MODELS[name]).fit(dense_rows()).transform(empty)


@private_model
def test_a_shared_budget_is_charged_once_a_fit(name):
    budget = PrivacyBudget(100.0, 1e-3)
    model = clone(PRIVATE[name]).set_params(budget=budget)
    for n_fits in (1, 2):
        model.fit_transform(*chunked(dense_rows()))
        assert len(budget.charges) == n_fits


@pytest.mark.sample(4)
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
