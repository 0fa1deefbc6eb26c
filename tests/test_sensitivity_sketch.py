# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Clipped measurements keep the sensitivity they state, for every matrix, and attain it."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp._recovery.measurements import MEASUREMENTS, Measurement, measurement_matrix
from skdp.location import _compressed_sensing as _sketch_sum
from skdp.location._compressed_sensing import SketchSum
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests import _neighbours
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    Rows,
    as_dense,
    as_layout,
    neighbours,
    on_examples,
    rows_in_ball,
)

NORMS = {"l1": 1, "l2": 2}
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_kind = pytest.mark.parametrize("kind", MEASUREMENTS)


def admit(rows, radius=1.0, **options):
    null = np.asarray(rows.null)
    return rows_in_ball(rows.X, np.zeros(len(null)), null, radius, 0.0, **options)


def rows_of(X, null=None):
    X = np.asarray(X, dtype=np.float64)
    return Rows(X, np.zeros(len(X), int), np.zeros(len(X), bool) if null is None else null)


class Any(Measurement):
    """A matrix that nobody would choose."""

    def __init__(self, A):
        super().__init__(*A.shape)
        self.columns = A.T


def matrices(d):
    """Return measurement matrices of all kinds and of no kind, for d features."""
    made = [measurement_matrix(kind, m, d) for kind in MEASUREMENTS for m in {1, (d + 1) // 2, d}]
    rng = np.random.default_rng(d)
    return [*made, Any(1e6 * rng.normal(size=(2, d))), Any(1e-6 * np.eye(d)), Any(np.zeros((1, d)))]


@every_adjacency
@on_examples(200)
def test_the_sensitivity_holds_for_any_neighbours_and_any_matrix(adjacency, data):
    norm = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=norm))
    n, d = pair[0].X.shape
    admitted = [admit(rows, norm) for rows in pair]
    matrix = data.draw(st.sampled_from(matrices(d)))
    query = SketchSum(matrix, data.draw(st.sampled_from([1e-9, 0.5, 1.0, 1.3])))
    stated = query.sensitivity(adjacency, n)
    values = [query.evaluate(rows) for rows in admitted]
    for value in values:
        assert value.shape == (query.size,)
        assert np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK)
    for name, order in NORMS.items():
        gap = np.linalg.norm(values[0] - values[1], ord=order)
        assert gap <= getattr(stated, name) * (1 + FLOAT_SLACK)


def longest_row(matrix):
    """Return the row of norm 1 that has the longest measurements."""
    A = matrix.explicit()
    return np.linalg.svd(A.toarray() if sparse.issparse(A) else A)[2][0]


@every_adjacency
@every_kind
def test_the_sensitivity_is_attained(kind, adjacency):
    matrix = measurement_matrix(kind, 5, 60)
    row, X = longest_row(matrix), np.zeros((7, 60))
    X[3] = row
    first, second = rows_of(X), rows_of(-X)
    if adjacency == "zero-out":
        second = rows_of(X, np.arange(7) == 3)
    for radius in (0.5, 1.2):
        query = SketchSum(matrix, radius)
        gap = query.evaluate(admit(first)) - query.evaluate(admit(second))
        stated = query.sensitivity(adjacency, 7).l2
        assert np.linalg.norm(gap) == pytest.approx(stated, rel=1e-9)
    # it is not the isometry that bounds it: unclipped, the same row moves it further
    loose = SketchSum(matrix, 1e3)
    gap = loose.evaluate(admit(first)) - loose.evaluate(admit(second))
    assert np.linalg.norm(gap) > 2 * query.sensitivity("zero-out", 7).l2


@on_examples(150)
def test_in_any_layout_it_is_what_it_says(data):
    rows, _ = data.draw(neighbours("replace-one", radius=2.0))
    matrix = data.draw(st.sampled_from(matrices(rows.X.shape[1])))
    radius = data.draw(st.sampled_from([1e-3, 0.9, 1.3]))
    A, before = matrix.explicit(), as_dense(rows.X).copy()
    total = np.zeros(matrix.shape[0])
    for x, null in zip(before, rows.null, strict=True):
        if null or not np.isfinite(x).all():
            continue
        with np.errstate(under="ignore"):
            scale = max(np.abs(x).max(), 2.0)
            sketch = A @ (x / scale / max(np.linalg.norm(x / scale), 2.0 / scale))
            total += sketch * min(1.0, radius / max(np.linalg.norm(sketch), 1e-300))
    value = SketchSum(matrix, radius).evaluate(admit(rows, 2.0))
    assert_allclose(value, total, rtol=1e-9, atol=1e-12)
    assert_array_equal(as_dense(rows.X), before)


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr"])
def test_chunks_blocks_and_threads_change_nothing_but_rounding(kind, layout, monkeypatch):
    rows = _neighbours.mixed_rows(d=9)
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    query = SketchSum(measurement_matrix(kind, 4, 9), 0.7)
    expected = query.evaluate(admit(rows))
    shorten_chunks(monkeypatch, 7, threads=True)
    monkeypatch.setattr(_sketch_sum, "_AT_ONCE", 8)
    one, many = (query.evaluate(admit(rows, n_threads=n)) for n in (1, 3))
    assert_array_equal(one, many)
    assert_allclose(one, expected, rtol=1e-12, atol=1e-13)


@every_kind
def test_other_rows_cancel_to_the_last_digits(kind):
    """Neighbours that differ in a row of zeros and a denormal differ in nothing else."""
    X = np.random.default_rng(0).normal(size=(300, 40))
    other = X.copy()
    X[0], other[0] = 0.0, 1e-200
    query = SketchSum(measurement_matrix(kind, 10, 40), 1.1)
    values = [query.evaluate(admit(rows_of(np.asfortranarray(rows)))) for rows in (X, other)]
    assert np.linalg.norm(values[0] - values[1]) < 1e-12


def test_one_non_zero_is_never_clipped():
    for kind in MEASUREMENTS:
        matrix = measurement_matrix(kind, 20, 100)
        value = SketchSum(matrix, 1.0).evaluate(admit(rows_of(np.eye(100))))
        A = matrix.explicit()
        assert_allclose(value, np.asarray(A.sum(axis=1)).ravel(), atol=1e-12)


def test_the_size_of_a_row_does_not_matter():
    X = sparse.csr_array(np.eye(3, 8) * np.array([[1e300], [1e-300], [1.0]]))
    query = SketchSum(measurement_matrix("sparse-sign", 4, 8), 1.0)
    value = query.evaluate(admit(Rows(X, np.zeros(3), np.zeros(3, bool))))
    A = query.measurement.explicit().toarray()
    # the huge row is a row of norm 1, the tiny one is zero
    assert_allclose(value, A[:, 0] + A[:, 2])
    assert query.sensitivity("zero-out", 3).l2 == 1.0
    assert query.sensitivity("replace-one", 3).l1 == 2 * math.sqrt(4)
