# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The rotation of private medians, and what their counts are charged for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp.location._clipped_mean import RotatedSideSum, rotate, rotate_back, signs
from tests._neighbours import ADJACENCIES
from tests.test_sensitivity_mean import NORMS, admit, gap_ratio, rows_of, worst_pair

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


@every_adjacency
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_sides_attain_their_sensitivity(adjacency, norm, d):
    row = rotate_back(np.full(d, 0.9 / np.sqrt(d)))
    pair = worst_pair(adjacency, row, -row)
    ratio = gap_ratio(RotatedSideSum(np.zeros(d)), adjacency, *pair, norm)
    assert ratio == pytest.approx(1.0, rel=1e-12)


def test_one_side_only_would_be_charged_too_little():
    # a count of ones above thresholds moves by sqrt(d) when a row becomes null
    d = 16
    row = rotate_back(np.full(d, 0.2))
    pair = worst_pair("zero-out", row, None)
    query = RotatedSideSum(np.zeros(d))
    above = [(query.evaluate(admit(rows)) + (~rows.null).sum() / 2) for rows in pair]
    assert_array_equal(above[0] - above[1], np.ones(d))
    assert np.linalg.norm(above[0] - above[1]) == 2 * query.sensitivity("zero-out", 5).l2


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100, 1023])
def test_the_rotation_is_one_and_public(d):
    points = np.random.default_rng(0).normal(size=(20, d))
    turned = rotate(points)
    assert_allclose(turned @ turned.T, points @ points.T, rtol=1e-11, atol=1e-11)
    assert_allclose([rotate_back(row) for row in turned], points, atol=1e-12)
    assert set(signs(d)) <= {-1.0, 1.0}
    assert_array_equal(signs(d), signs(1023)[:d])
    if d >= 100:
        # a coordinate vector and a constant one are spread out: the signs are no pattern
        for vector in (np.eye(d)[7], np.full(d, d**-0.5), (-1.0) ** np.arange(d) * d**-0.5):
            assert np.abs(rotate(vector)).max() <= 2 * np.sqrt(np.log(2000 * d) / d)


def test_a_null_row_changes_no_other_row_s_sides():
    # thresholds at the coordinates themselves: the last bit of a transform decides
    X = np.random.default_rng(0).normal(size=(37, 11)) / 11
    turned = rotate(X)
    for i in range(37):
        query = RotatedSideSum(turned[i])
        for null in (0, 5, 36):
            flags = np.arange(37) == null
            change = query.evaluate(admit(rows_of(X))) - query.evaluate(admit(rows_of(X, flags)))
            assert_array_equal(np.abs(change), np.full(11, 0.5))
