# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public measurement matrices: what they are, and that rows are measured one by one."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import hadamard
from scipy.special import chdtri

from skdp._recovery import measurements as _measurements
from skdp._recovery.measurements import MEASUREMENTS, measurement_matrix, walsh_hadamard

every_kind = pytest.mark.parametrize("kind", MEASUREMENTS)
SHAPES = [(1, 1), (1, 5), (3, 7), (16, 16), (8, 100), (100, 129)]


def explicit(matrix):
    A = matrix.explicit()
    return A.toarray() if sparse.issparse(A) else A


@every_kind
@pytest.mark.parametrize("shape", SHAPES)
def test_all_products_are_with_one_matrix_with_columns_of_norm_one(kind, shape):
    matrix = measurement_matrix(kind, *shape)
    A = explicit(matrix)
    assert A.shape == matrix.shape == shape
    assert_allclose(np.linalg.norm(A, axis=0), 1.0, rtol=1e-12)
    rng = np.random.default_rng(0)
    z, r = rng.normal(size=shape[1]), rng.normal(size=shape[0])
    assert_allclose(matrix.forward(z), A @ z, atol=1e-12)
    assert_allclose(matrix.backward(r), A.T @ r, atol=1e-12)
    sketches = matrix.sketches(sparse.csr_array(np.vstack([z, np.zeros_like(z), z])))
    sketches = sketches.toarray() if sparse.issparse(sketches) else sketches
    assert_allclose(sketches, np.outer([1, 0, 1], A @ z), atol=1e-12)
    # the same for everybody, and another one for another shape
    assert_array_equal(explicit(measurement_matrix(kind, *shape)), A)


@every_kind
def test_matrices_of_different_shapes_share_nothing(kind):
    one = explicit(measurement_matrix(kind, 40, 64))
    other = explicit(measurement_matrix(kind, 41, 64))[:40]
    assert np.abs((one * other).sum(axis=0)).mean() < 0.3


@every_kind
@pytest.mark.parametrize("shape", [(5, 64), (40, 300), (64, 64), (200, 1000)])
def test_the_norm_is_right_or_slightly_more(kind, shape):
    matrix = measurement_matrix(kind, *shape)
    exact = np.linalg.norm(explicit(matrix), ord=2)
    assert exact * (1 - 1e-12) <= matrix.stretch
    assert exact <= matrix.norm * (1 + 1e-12)
    if kind != "hadamard" or shape[1] == 64:
        assert matrix.norm <= 1.051 * exact


@pytest.mark.parametrize("bits", range(15))
def test_the_fast_transform_is_the_hadamard_matrix(bits):
    x = np.random.default_rng(bits).normal(size=1 << bits)
    transformed = walsh_hadamard(x)
    if bits <= 10:
        assert_allclose(transformed, hadamard(1 << bits) @ x, atol=1e-10)
    assert_allclose(walsh_hadamard(transformed), x * 2.0**bits, atol=1e-9)


def test_without_padding_the_rows_of_the_hadamard_kind_are_orthogonal():
    A = explicit(measurement_matrix("hadamard", 20, 128))
    assert_allclose(A @ A.T, 128 / 20 * np.eye(20), atol=1e-12)
    square = measurement_matrix("hadamard", 128, 128)
    assert square.stretch == 1.0
    assert_allclose(np.abs(explicit(square)), 1 / math.sqrt(128))


@every_kind
def test_sparse_directions_keep_their_length(kind):
    """What the clipping radius of a sketch is made of: chi-square over m."""
    rng, m = np.random.default_rng(0), 120
    matrix = measurement_matrix(kind, m, 2000)
    columns = np.array([rng.choice(2000, 10, replace=False) for _ in range(4000)])
    rows = rng.normal(size=(4000, 10))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    X = sparse.csr_array((rows.ravel(), columns.ravel(), np.arange(4001) * 10), (4000, 2000))
    sketches = matrix.sketches(X)
    squares = np.asarray((sketches * sketches).sum(axis=1)).ravel()
    assert squares.mean() == pytest.approx(1.0, abs=0.02)
    # as columns have norm 1, only products of different entries vary
    mixed = 1 - (rows**4).sum(axis=1).mean()
    assert squares.std() == pytest.approx(math.sqrt(2 / m * mixed), rel=0.1)
    assert (squares > chdtri(m, 1e-3) / m).mean() < 5e-3


def test_gaussian_columns_look_gaussian():
    A = explicit(measurement_matrix("gaussian", 400, 500)) * 20
    for power, moment in [(1, 0), (2, 1), (3, 0), (4, 3)]:
        assert (A**power).mean() == pytest.approx(moment, abs=0.05)
    # columns do not know of each other
    assert np.abs((A.T @ A / 400)[np.triu_indices(500, 1)]).max() < 0.3


@pytest.mark.parametrize("m", [3, 8, 100])
def test_columns_of_signs_have_few_entries(m):
    matrix = measurement_matrix("sparse-sign", m, 1000)
    A, k = explicit(matrix), min(m, 8)
    assert_array_equal((A != 0).sum(axis=0), k)
    assert_allclose(np.abs(A[A != 0]), 1 / math.sqrt(k))
    counts = (A != 0).sum(axis=1)
    assert counts.min() > 0.3 * counts.mean()
    assert abs(np.sign(A).sum()) < 5 * math.sqrt(1000 * k)
    assert matrix.columns.nnz == 1000 * k


def test_a_dense_matrix_is_for_small_shapes(monkeypatch):
    monkeypatch.setattr(_measurements, "_DENSE_LIMIT", 1000)
    assert isinstance(measurement_matrix("auto", 10, 100), _measurements.GaussianMeasurement)
    assert isinstance(measurement_matrix("auto", 11, 100), _measurements.SparseSignMeasurement)


def mixed_rows():
    """Return rows of very different numbers of entries, an empty one among them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 150)) * (rng.random((40, 150)) < rng.random((40, 1)))
    X[3], X[5] = 0.0, rng.normal(size=150)
    return X


def dense(sketches):
    return sketches.toarray() if sparse.issparse(sketches) else sketches


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("at_once", [1 << 22, 4000, 1000, 1])
def test_the_floats_of_a_row_depend_on_nothing_but_the_row(kind, at_once, monkeypatch):
    monkeypatch.setattr(_measurements, "_AT_ONCE", at_once)
    matrix, X = measurement_matrix(kind, 30, 150), mixed_rows()
    whole = dense(matrix.sketches(sparse.csr_array(X)))
    for change in (np.zeros(150), np.full(150, 1e100), X[5] * 1e-100, np.eye(150)[7]):
        other = X.copy()
        other[5] = change
        found = dense(matrix.sketches(sparse.csr_array(other)))
        assert_array_equal(np.delete(found, 5, axis=0), np.delete(whole, 5, axis=0))
    alone = [dense(matrix.sketches(sparse.csr_array(X[i : i + 1])))[0] for i in range(len(X))]
    assert_array_equal(alone, whole)
    assert_allclose(whole, X @ explicit(matrix).T, atol=1e-12)


@every_kind
def test_blocks_change_nothing(kind, monkeypatch):
    expected = explicit(measurement_matrix(kind, 30, 150))
    monkeypatch.setattr(_measurements, "_BLOCK", 64)
    assert_array_equal(explicit(measurement_matrix(kind, 30, 150)), expected)


@pytest.mark.parametrize("kind", ["sparse-sign", "hadamard"])
def test_a_million_features_take_a_few_vectors(kind):
    matrix = measurement_matrix(kind, 1000, 10**6)
    X = sparse.csr_array(([1.0, 2.0], [7, 999_999], [0, 1, 2]), shape=(2, 10**6))
    sketches = dense(matrix.sketches(X))
    assert_allclose(np.linalg.norm(sketches, axis=1), [1, 2])
    z = np.zeros(10**6)
    z[7] = 1.0
    assert_allclose(matrix.forward(z), sketches[0], atol=1e-15)
    assert matrix.backward(sketches[0])[7] == pytest.approx(1.0)
