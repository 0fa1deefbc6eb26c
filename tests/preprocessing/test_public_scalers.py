# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers with public constants: exact, stateless, and never out of range."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.utils import get_tags

from skdp import BoundedScaler, NormClipper

ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(arrays(np.float64, (3, 4), elements=ANY_FLOAT), st.sampled_from([1e-100, 0.3, 1.0, 1e100]))
def test_no_row_is_longer_than_the_norm(X, norm):
    clipped = NormClipper(norm=norm).fit_transform(X)
    unit = clipped / norm
    assert np.all(np.linalg.norm(unit, axis=1) <= 1 + 1e-12)


@given(arrays(np.float64, (3, 2), elements=ANY_FLOAT))
def test_no_value_leaves_the_feature_range(X):
    scaled = BoundedScaler(bounds=(-2.5, 7.0), feature_range=(-3, 11)).fit_transform(X)
    assert scaled.min() >= -3
    assert scaled.max() <= 11


def test_short_rows_are_left_alone_and_long_ones_keep_their_direction():
    X = np.array([[0.3, 0.4], [30.0, 40.0], [0.0, 0.0], [3e307, 4e307]])
    clipped = NormClipper().fit_transform(X)
    np.testing.assert_allclose(clipped, [[0.3, 0.4], [0.6, 0.8], [0, 0], [0.6, 0.8]])


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_rows_stay_sparse_and_agree_with_dense_ones(container):
    X = np.random.default_rng(0).normal(size=(30, 6)) * 3
    X[np.abs(X) < 2] = 0
    for scaler in (NormClipper(2.0), BoundedScaler((0, 4), (0, 0.5))):
        result = scaler.fit_transform(container(X))
        assert sparse.issparse(result)
        assert result.format == container(X).format
        np.testing.assert_allclose(result.toarray(), scaler.fit_transform(X))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_single_precision_rows_whose_squares_overflow_it(container):
    rows = container(np.array([[3e19, 4e19], [3e37, 4e37]], dtype=np.float32))
    clipped = NormClipper().fit_transform(rows)
    assert clipped.dtype == np.float32
    np.testing.assert_allclose(clipped @ np.eye(2), [[0.6, 0.8]] * 2, rtol=1e-6)


def test_duplicate_entries_of_a_sparse_row_are_added_before_its_norm_is_taken():
    duplicated = sparse.csr_array(([1.0, 1.0], [0, 0], [0, 2]), shape=(1, 2))
    assert NormClipper().fit_transform(duplicated).toarray().tolist() == [[1.0, 0.0]]


def test_sparse_input_that_zero_would_not_survive_is_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        BoundedScaler((0, 1), (-1, 1)).fit(sparse.csr_array([[1.0, 0.0]]))


@pytest.mark.parametrize("transformer", [NormClipper(), BoundedScaler()])
def test_they_learn_nothing(transformer):
    assert not get_tags(transformer).requires_fit
    X = np.random.default_rng(0).normal(size=(30, 6))
    alone = type(transformer)().transform(X)
    np.testing.assert_array_equal(transformer.fit(100 * X[:2]).transform(X), alone)


def test_names_and_frames_pass_through():
    frame = pd.DataFrame({"age": [30.0, 50.0], "height": [1.6, 1.8]})
    scaler = BoundedScaler(([0, 0], [100, 2])).set_output(transform="pandas")
    result = scaler.fit_transform(frame)
    assert list(result.columns) == ["age", "height"]
    assert list(scaler.get_feature_names_out()) == ["age", "height"]
