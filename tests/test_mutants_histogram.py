# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of histograms over open dictionaries, planted one by one.

What a release gives away is computed exactly from the sums behind it. Every test first
shows that this passes on the real code.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from skdp.exceptions import BudgetError
from skdp.location import _sparse_noisy as _sparse_row_sum
from skdp.location._sparse_noisy import TouchedColumnSum
from skdp.privacy import StabilityHistogram
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.laws import histogram as _stability
from skdp.privacy.laws.histogram import ThresholdNoise
from tests import _audit
from tests._histograms import alone, measured, release_of, rows_of, unit
from tests._neighbours import ADJACENCIES

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def test_noise_has_the_declared_scale_and_halved_noise_is_caught(monkeypatch):
    X = sparse.csr_array(np.eye(2000))
    assert not _audit.scale_is_wrong(_audit.noise_stream(release_of("zero-out"), X))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(release_of("zero-out"), X))


@pytest.mark.parametrize(("adjacency", "nonnegative"), [("zero-out", True), ("replace-one", False)])
def test_a_threshold_that_is_too_low_is_caught(adjacency, nonnegative, monkeypatch):
    pair = alone(adjacency, nonnegative, 1)
    assert 0.9 <= measured(pair, adjacency, nonnegative) <= 1
    real = StabilityHistogram._threshold
    monkeypatch.setattr(StabilityHistogram, "_threshold", lambda *args: 0.97 * real(*args))
    # the ledger prices the threshold once more
    with pytest.raises(BudgetError, match="its noise is not the one that was paid for"):
        measured(pair, adjacency, nonnegative)
    # and without that the audit tells
    monkeypatch.setattr(ThresholdNoise, "actual", lambda noise, stated, size: noise.price)
    assert measured(pair, adjacency, nonnegative) > 1.5


@every_adjacency
def test_a_threshold_for_one_column_is_caught(adjacency, monkeypatch):
    pair = alone(adjacency, True, 40)
    assert measured(pair, adjacency, True, 40) <= 1
    real = _stability._stray
    monkeypatch.setattr(_stability, "_stray", lambda a, columns, *args: real(a, 1, *args))
    assert measured(pair, adjacency, True, 40) > 5


def test_a_threshold_for_entries_of_zero_is_caught(monkeypatch):
    pair = alone("zero-out", True, 1)
    assert measured(pair, "zero-out", True) <= 1
    real = _stability._stray
    monkeypatch.setattr(_stability, "_stray", lambda a, *args: real(0 * a, *args))
    assert measured(pair, "zero-out", True) > 1.5


def test_rows_with_more_entries_than_stated_are_caught(monkeypatch):
    row = unit(60, *range(1, 51))
    pair = rows_of(row, np.zeros(60))
    assert measured(pair, "zero-out", True) <= 1
    monkeypatch.setattr(_sparse_row_sum, "top_entries", lambda X, sparsity: X)
    assert measured(pair, "zero-out", True) > 5


@every_adjacency
def test_rows_that_are_not_clipped_are_caught(adjacency, monkeypatch):
    pair = rows_of(4 * unit(60, 1), np.zeros(60))
    assert measured(pair, adjacency) <= 1
    monkeypatch.setattr("skdp._rows.base.L2Ball.factors", lambda ball, norms: 1 + 0 * norms)
    assert measured(pair, adjacency) > 1.5


def test_columns_in_which_rows_cancel_left_out_are_caught(monkeypatch):
    # the sum over column 1 is zero with the first row, and 2 with its replacement
    rows = sparse.vstack([sparse.csr_array([unit(60, 1)]), rows_of(unit(60, 0), unit(60, 0))[0]])
    pair = [sparse.vstack([sign * unit(60, 1)[None], rows], format="csr") for sign in (-1.0, 1.0)]
    assert measured(pair, "replace-one") <= 1
    real = TouchedColumnSum.evaluate

    def forgetful(self, rows):
        columns, sums = real(self, rows)
        return columns[sums != 0], sums[sums != 0]

    monkeypatch.setattr(TouchedColumnSum, "evaluate", forgetful)
    assert measured(pair, "replace-one") > 1.2


def test_negative_entries_that_are_not_dropped_are_caught(monkeypatch):
    pair = rows_of(unit(60, 0), unit(60, 0, sign=-1.0))
    assert measured(pair, "replace-one", True) <= 1
    monkeypatch.setattr(_sparse_row_sum, "_without_negatives", lambda X: X)
    assert measured(pair, "replace-one", True) > 1.5


def test_replace_one_charged_as_zero_out_is_caught(monkeypatch):
    pair = alone("replace-one", False, 1, a=0.0)
    assert 0.9 <= measured(pair, "replace-one") <= 1
    real = TouchedColumnSum.sensitivity
    monkeypatch.setattr(TouchedColumnSum, "sensitivity", lambda q, _, n: real(q, "zero-out", n))
    assert measured(pair, "replace-one") > 1.5
