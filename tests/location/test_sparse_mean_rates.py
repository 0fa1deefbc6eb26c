# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How errors of means of sparse rows grow with rows, non-zeros and features."""

import math

import numpy as np
import pytest

from skdp import DPSparseMeanEstimator
from tests.location._bags import blocks

pytestmark = pytest.mark.slow


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


@pytest.mark.parametrize("mechanism", ["projection", "soft-threshold"])
def test_rates(mechanism):
    """Slopes of the error in rows, non-zeros and features where noise is many-dimensional."""

    def error(n_rows, sparsity=8, n_features=2**16):
        noise = 2 * 4.224679 / n_rows
        level = noise * math.sqrt(2 * math.log(n_features))
        n_blocks = int(np.clip(round(1 / (level * math.sqrt(sparsity))), 1, n_features / sparsity))
        X = blocks(n_rows, n_features, sparsity, min(n_blocks, n_rows))
        mean = DPSparseMeanEstimator(mechanism=mechanism, sparsity=sparsity)
        expected = np.asarray(X.mean(axis=0)).ravel()
        runs = [mean.set_params(random_state=seed).fit(X).location_ for seed in range(4)]
        return np.mean([np.linalg.norm(run - expected) for run in runs])

    rows, entries, features = [2000, 8000, 32_000], [2, 8, 32], [2**14, 2**16, 2**18]
    assert -0.7 <= slope(rows, [error(n) for n in rows]) <= -0.45
    assert 0.15 <= slope(entries, [error(16_000, s) for s in entries]) <= 0.3
    assert abs(slope(features, [error(8000, 8, d) for d in features])) <= 0.15
    low = [2**16, 2**18, 2**20]
    assert -1.1 <= slope(low, [error(n, 4, 64) for n in low]) <= -0.9
