# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Adversarial pairs are neighbours, finite, and keep what is public."""

import numpy as np
import pytest

from skdp import DPLogisticRegression, DPLpRegressor, DPMean, DPQuantile
from skdp.audit import adversarial_pairs
from skdp.audit._pairs import check_neighbours


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "remove-one"])
@pytest.mark.parametrize("classes", [(0, 1), ("a", "bc"), (False, True), (2, 5, 7)])
def test_pairs_differ_in_one_row_and_keep_the_label_set(adjacency, classes):
    model = DPLogisticRegression(classes=classes, data_norm=2.0)
    pairs = adversarial_pairs(model, adjacency=adjacency)
    assert len({pair.name for pair in pairs}) == len(pairs) > 8
    for pair in pairs:
        check_neighbours(pair.first, pair.second, adjacency)
        assert all(np.isfinite(side[0]).all() for side in (pair.first, pair.second))
        if adjacency == "zero-out":
            changed = np.flatnonzero(pair.first[1] != pair.second[1])
            assert pair.second[1][changed[0]] not in classes
    if adjacency == "replace-one":
        for pair in adversarial_pairs(DPLogisticRegression()):
            assert all(set(side[1]) == {0, 1} for side in (pair.first, pair.second))


@pytest.mark.parametrize("scale", [1e300, 1.0, 1e-300])
def test_pairs_hide_among_given_rows_of_any_scale(scale):
    X, y = scale * np.random.default_rng(0).normal(size=(9, 4)), np.arange(9) % 3
    X.flags.writeable = False
    for model in (DPLogisticRegression(), DPLpRegressor(), DPMean(bounds=(-scale, scale))):
        for pair in adversarial_pairs(model, (X, y)):
            assert np.isfinite(pair.second[0]).all()
            changed = (pair.first[0] != pair.second[0]).any(axis=1)
            changed |= pair.first[1] != pair.second[1]
            assert changed.sum() == 1
    # bounds that do not fit the rows are left to the fit
    assert adversarial_pairs(DPMean(bounds=(np.zeros(7), np.ones(7))), X)
    for extreme in ((-1e308, 1e308), (0.0, 1e300)):
        for pair in adversarial_pairs(DPQuantile(bounds=extreme)):
            assert np.isfinite([pair.first[0], pair.second[0]]).all()
