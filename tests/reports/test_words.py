# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Floats made of words, and lengths and directions of rows."""

import math

import numpy as np
import pytest
from scipy import stats

from skdp.local.randomisers.base import directions_of as unit_rows
from skdp.local.randomisers.base import normals, row_lengths, uniforms
from skdp.privacy.kernel.samplers import SeededBits

ENDS = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)


def test_ends_of_the_words():
    u = uniforms(ENDS)
    assert (u > 0.0).all()
    assert (u < 1.0).all()
    z = normals(ENDS)
    # words near 0 from above and from below are the far tails, those in the middle are 0
    assert np.isfinite(z).all()
    assert z[0] == pytest.approx(-z[4])
    assert 9.0 < z[0] < 9.3
    assert abs(z[2]) < 1e-15


def test_normals_are_normal():
    z = normals(SeededBits(1).words(100_000).reshape(100, 1000))
    assert z.shape == (100, 1000)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    assert abs(z.mean()) < 4 / math.sqrt(z.size)


def test_words_are_not_changed():
    words = SeededBits(1).words(100)
    before = words.copy()
    normals(words)
    uniforms(words)
    np.testing.assert_array_equal(words, before)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-150, 1.0, 1e150, 1e300, 1e308])
def test_directions_of_all_sizes(size):
    rows = np.array([[3.0, -4.0, 0.0]]) * size if size < 1e308 else np.full((1, 4), size)
    directions, lost = unit_rows(rows)
    assert not lost.any()
    assert np.linalg.norm(directions) == pytest.approx(1.0)
    if size < 1e308:
        np.testing.assert_allclose(directions, [[0.6, -0.8, 0.0]])
        assert row_lengths(rows)[0] == pytest.approx(5 * size)
    else:
        # the length is no float, but longer than all
        assert row_lengths(rows)[0] == math.inf


def test_rows_without_direction():
    rows = np.array([[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [-np.inf, np.inf], [0.0, 2.0]])
    directions, lost = unit_rows(rows)
    np.testing.assert_array_equal(lost, [True] * 4 + [False])
    np.testing.assert_array_equal(directions, [[0.0, 0.0]] * 4 + [[0.0, 1.0]])
    np.testing.assert_array_equal(row_lengths(rows), [0.0, 0.0, 0.0, 0.0, 2.0])
