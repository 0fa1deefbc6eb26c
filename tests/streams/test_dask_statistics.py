# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of collections of dask are those of the rows in memory; where rows are read."""

import dask
import dask.array as da
import numpy as np
import pytest

from skdp import (
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPHeavyTailedMean,
    DPLogisticRegression,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPSparseMeanEstimator,
    DPStandardScaler,
    papers,
    solvers,
)
from skdp._rows import dask as _cluster
from tests._chunks import shorten_chunks
from tests.streams._ways import assert_same_fit

N_ROWS = 2000
X = np.clip(np.random.default_rng(0).normal(size=(N_ROWS, 4)), -2, 2)
Y = (X[:, 0] > 0).astype(int)

#: these add up chunks where the rows are
ADDED_UP = [
    DPMean(bounds=(-2, 2), random_state=0),
    DPMean(data_norm=4.0, random_state=0),
    DPHeavyTailedMean(random_state=0),
    DPMedian(data_norm=4.0, max_iter=5, random_state=0),
    DPNormQuantile(data_norm=4.0, random_state=0),
    DPSparseMeanEstimator(data_norm=4.0, sparsity=2, random_state=0),
    DPStandardScaler(random_state=0),
    DPFeatureCenterer(random_state=0),
    DPFrequentFeatures(random_state=0),
]
#: these look at rows one by one, on the driver
READ = [
    DPQuantile(bounds=(-2, 2), random_state=0),
    DPLogisticRegression(solver=solvers.LazySGD(batch_size=200), max_iter=2, random_state=0),
    DPLogisticRegression(
        solver=papers.BiasReduced(batch_size=200, sparsity=3), max_iter=2, random_state=0
    ),
]


@pytest.fixture(autouse=True)
def brought(monkeypatch):
    """Cut few rows into many partitions, and count the rows that come to the driver."""
    shorten_chunks(monkeypatch, 64)
    monkeypatch.setattr(_cluster, "PARTITION_BYTES", 8 * 4 * 600)
    count = []
    for name in ("_read", "_brought"):
        counted(monkeypatch, name, count)
    with dask.config.set(scheduler="synchronous"):
        yield count


def counted(monkeypatch, name, count):
    method = getattr(_cluster.ClusterTable, name)

    def counting(table, *args):
        rows = method(table, *args)
        count.append(rows[0].shape[0])
        return rows

    monkeypatch.setattr(_cluster.ClusterTable, name, counting)


def given(model):
    rows, collection = [X], [da.from_array(X, chunks=(700, 4))]
    if hasattr(model, "predict"):
        return [*rows, Y], [*collection, da.from_array(Y, chunks=300)]
    return rows, collection


@pytest.mark.sample(4)
@pytest.mark.parametrize("model", ADDED_UP, ids=lambda model: type(model).__name__)
def test_sums_are_made_where_the_rows_are(model, brought):
    assert_same_fit(model, *given(model))
    # a single row tells the shape
    assert sum(brought) <= 1


@pytest.mark.parametrize("model", READ, ids=str)
def test_some_read_rows_on_the_driver(model, brought):
    assert_same_fit(model, *given(model))
    assert sum(brought) > 1
