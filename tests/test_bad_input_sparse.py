# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse rows in awkward formats: every stored value counts once, and none becomes dense."""

import numpy as np
import pytest
from scipy import sparse

from skdp import (
    BoundedScaler,
    DPFeatureCenterer,
    DPLogisticRegression,
    DPMean,
    DPNormQuantile,
    DPStandardScaler,
)
from skdp._rows.base import Box
from skdp._rows.columns import FeatureRows
from skdp.preprocessing._standard_scaler import MomentSum, SideSum
from tests._neighbours import rows_in_ball
from tests.test_bad_input_preprocessing import MODELS, fit
from tests.test_bad_input_preprocessing import X as PREPROCESSING_X


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (DPFeatureCenterer(), "with_mean"),
        (DPStandardScaler(), "with_mean"),
        (DPNormQuantile(center=[0, 0, 0]), "center"),
        (DPLogisticRegression(preprocess="center-clip", classes=[0, 1]), "preprocess"),
        (DPMean(mechanism="coinpress"), "mechanism"),
    ],
)
def test_sparse_rows_that_would_become_dense_are_refused_by_name(model, parameter):
    with pytest.raises(TypeError, match=parameter):
        fit(model, sparse.csr_array(PREPROCESSING_X))


def stale():
    """Return rows that remember to be canonical and no longer are: each has one column."""
    rows = sparse.csr_matrix(np.eye(4, 6) + 1.0)
    assert rows.has_canonical_format
    rows.indices[:] = 0
    return rows


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_stored_value_counts_once_whatever_the_matrix_remembers(adjacency):
    rows, null = stale(), np.zeros(4, dtype=bool)
    dense = rows.toarray()
    for query in (SideSum(np.full(6, 0.5)), SideSum(np.full(6, 0.5), np.ones(6))):
        total = query.evaluate(FeatureRows(rows))
        assert np.abs(total).max() <= query.sensitivity(adjacency, 4).bound
        np.testing.assert_array_equal(total, query.evaluate(FeatureRows(dense)))
    box = Box((-1.0,) * 6, (1.0,) * 6)
    np.testing.assert_allclose(
        MomentSum(box).evaluate(FeatureRows(rows)), MomentSum(box).evaluate(FeatureRows(dense))
    )
    admitted = rows_in_ball(rows, null, null, 1.0, 0.0)
    np.testing.assert_array_equal(admitted.chunks[0].X.toarray(), dense)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_matrix])
def test_bounds_hold_for_values_that_are_stored_in_parts(container):
    rows = container(([60.0, 60.0], [0, 0], [0, 2]), shape=(1, 1))
    scaler = BoundedScaler(bounds=(0, 100), feature_range=(0, 1))
    assert scaler.fit_transform(rows).toarray().tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["scale only", "tiny bounds", "quantile"])
def test_sparse_rows_of_every_kind(name):
    rows = sparse.csr_array(np.where(PREPROCESSING_X > 0, PREPROCESSING_X, 0))
    long_indices = sparse.csr_matrix(rows)
    long_indices.indices = long_indices.indices.astype(np.int64)
    long_indices.indptr = long_indices.indptr.astype(np.int64)
    duplicated = sparse.csr_array(
        (np.full(240, 8e307), np.tile([2, 0, 2, 2], 60), np.arange(0, 241, 4)), shape=(60, 3)
    )
    for given in (rows, long_indices, duplicated, sparse.csr_array((60, 3)), rows.tocsc()):
        assert fit(MODELS[name], given).privacy_spent_[0] <= MODELS[name].epsilon
