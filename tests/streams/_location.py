# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What tests of locations read chunk by chunk share: models and rows."""

import numpy as np
import pytest
from scipy import sparse

from skdp import (
    DPHeavyTailedMean,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPSparseMeanEstimator,
)
from tests._chunks import shorten_chunks

N, D, STEP = 130, 3, 7
PUBLIC = {"epsilon": 40.0, "random_state": 0}
CENTER = (1.0, 2.0, 3.0)

DENSE = {
    "box": DPMean(bounds=(-3, 5), **PUBLIC),
    "coinpress": DPMean(mechanism="coinpress", data_norm=1e4, **PUBLIC),
    "shifted-clipped": DPMean(mechanism="shifted-clipped", data_norm=1e4, **PUBLIC),
    "radius-centred": DPNormQuantile(center=CENTER, data_norm=100.0, **PUBLIC),
    "quantile": DPQuantile(quantile=0.8, bounds=(-5, 5), **PUBLIC),
    "rank": DPMedian(mechanism="rank", data_norm=5.0, **PUBLIC),
    "gradient": DPMedian(mechanism="gradient", data_norm=5.0, max_iter=9, **PUBLIC),
    "gradient-box": DPMedian(mechanism="gradient", bounds=(-3, 5), max_iter=9, **PUBLIC),
}
BOTH = {
    "laplace": DPMean(mechanism="laplace", data_norm=4.0, **PUBLIC),
    "gaussian": DPMean(data_norm=4.0, **PUBLIC),
    "clipped": DPMean(mechanism="clipped", data_norm=1e4, **PUBLIC),
    "heavy-drawn": DPHeavyTailedMean(**PUBLIC),
    "heavy-moment": DPHeavyTailedMean(moment_bound=4.0, delta=0.0, **PUBLIC),
    "radius": DPNormQuantile(data_norm=100.0, **PUBLIC),
    "sparse": DPSparseMeanEstimator(sparsity=2, **PUBLIC),
    "sparse-signs": DPSparseMeanEstimator(nonnegative=True, **PUBLIC),
    "sketch": DPSparseMeanEstimator(
        mechanism="compressed-sensing", sparsity=2, n_measurements=2, **PUBLIC
    ),
    "histogram": DPSparseMeanEstimator(mechanism="histogram", sparsity=2, **PUBLIC),
}
MODELS = {**DENSE, **BOTH}
every_model = pytest.mark.parametrize("name", MODELS)
sparse_model = pytest.mark.parametrize("name", BOTH)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Cut few rows into many chunks, several blocks of them."""
    shorten_chunks(monkeypatch, STEP)


def dense_rows(dtype=np.float64):
    rows = np.random.default_rng(0).normal(CENTER, 0.5, size=(N, D)).astype(dtype)
    rows[5] = 0.0
    rows[9] *= 1e3
    return rows


def sparse_rows(dtype=np.float64):
    rows = sparse.random_array((N, 12), density=0.25, format="csr", rng=0, dtype=dtype)
    return rows - 0.3 * (rows > 0.5)


def parts_of_entries(rows):
    """Return rows of which every entry is stored in two parts."""
    data = np.column_stack([rows.data * 3, rows.data * -2]).ravel()
    return sparse.csr_array((data, np.repeat(rows.indices, 2), rows.indptr * 2), rows.shape)
