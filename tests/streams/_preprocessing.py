# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What tests of transformers of rows read chunk by chunk share: models and rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skdp import (
    BoundedScaler,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPStandardScaler,
    NormClipper,
)
from skdp._rows.streams import RowStream
from tests._chunks import shorten_chunks

N, D, STEP = 130, 3, 7
PUBLIC = {"epsilon": 40.0, "random_state": 0}

DENSE = {
    "standard": DPStandardScaler(**PUBLIC),
    "standard-box": DPStandardScaler(bounds=(-3, 5), **PUBLIC),
    "centre": DPFeatureCenterer(data_norm=10.0, **PUBLIC),
    "centre-coinpress": DPFeatureCenterer(mechanism="coinpress", data_norm=1e4, **PUBLIC),
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
