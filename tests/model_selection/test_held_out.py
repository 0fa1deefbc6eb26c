# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores of held-out rows: sensitivities that are kept and reached, and exact draws."""

import math

import numpy as np
import pytest

from skdp.model_selection._row_scorer import STEPS, HeldOutChoice, HeldOutRows, HeldOutScore
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import ExponentialMechanism

ADJACENCIES = ("replace-one", "zero-out")
BOUNDS = [(0.0, 1.0), (-7.0, 0.0), (-1e308, 1e308), (0.0, 1e-300), (1.0, 1.0 + 2**-52)]


class WithNull(HeldOutRows):
    """Rows of which the first one is null: it contributes nothing."""

    def totals(self):
        return super().totals() - (self._steps[0] - STEPS / 2)


def pairs(bounds, adjacency, n_candidates=3, n_rows=7):
    """Yield held-out rows that differ in the first row."""
    rng, (low, high) = np.random.default_rng(0), bounds
    other = [
        np.full(n_candidates, low), np.full(n_candidates, high),
        np.where(np.arange(n_candidates) == 0, high, low),
        np.where(np.arange(n_candidates) == 0, low, high),
        np.full(n_candidates, np.nan), np.full(n_candidates, np.inf),
        np.full(n_candidates, -np.inf),
    ]  # fmt: skip
    common = low / 2 + (high / 2 - low / 2) * 2 * rng.uniform(size=(n_rows, n_candidates)) + low / 2
    for first in other:
        table = common.copy()
        table[0] = first
        if adjacency == "zero-out":
            yield HeldOutRows(table, low, high), WithNull(table, low, high)
        for second in other:
            changed = table.copy()
            changed[0] = second
            if adjacency == "replace-one":
                yield HeldOutRows(table, low, high), HeldOutRows(changed, low, high)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_the_mean_keeps_its_sensitivity_and_reaches_it(bounds, adjacency):
    query, n_rows = HeldOutScore(1), 7
    stated, largest = query.sensitivity(adjacency, n_rows), 0.0
    for first, second in pairs(bounds, adjacency):
        values = [query.evaluate(rows) for rows in (first, second)]
        assert all(value.shape == (1,) and abs(value[0]) <= stated.bound for value in values)
        largest = max(largest, abs(values[0] - values[1])[0])
    assert largest == pytest.approx(stated.l2, rel=1e-12)
    assert stated.l1 == stated.l2 == (1.0 if adjacency == "replace-one" else 0.5) / n_rows


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_the_choice_keeps_its_spread_and_reaches_it(bounds, adjacency):
    spread = HeldOutChoice(3).sensitivity(adjacency, 7).spread
    changes = [second.totals() - first.totals() for first, second in pairs(bounds, adjacency)]
    assert max(np.ptp(change) for change in changes) == spread


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_law_of_the_choice_is_private_and_nearly_as_little_as_is_paid(adjacency):
    epsilon = 0.7
    query = HeldOutChoice(3)
    noise = ExponentialMechanism(epsilon).calibrate(query.sensitivity(adjacency, 7), 1)
    worst = 0.0
    for pair in pairs((0.0, 1.0), adjacency):
        scores = [rows.totals() / noise.scale for rows in pair]
        logs = [score - np.logaddexp.reduce(score) for score in scores]
        worst = max(worst, np.abs(logs[0] - logs[1]).max())
    assert 0.6 * epsilon < worst <= epsilon


def test_candidates_are_drawn_with_these_probabilities():
    rows = HeldOutRows([[1.0, 0.5, 0.0]] * 4, 0.0, 1.0)
    query, bits = HeldOutChoice(3), SeededBits(0)
    noise = ExponentialMechanism(2.0).calibrate(query.sensitivity("replace-one", 4), 1)
    drawn = np.array([query.draw(rows, noise, bits)[0] for _ in range(4000)], dtype=int)
    expected = np.exp(rows.totals() / noise.scale)
    expected *= len(drawn) / expected.sum()
    assert ((np.bincount(drawn, minlength=3) - expected) ** 2 / expected).sum() < 16


def test_a_loss_of_no_candidate_decides_nothing():
    rows = HeldOutRows([[0.0] * 2], 0.0, 1.0)
    query, bits = HeldOutChoice(2), SeededBits(0)
    noise = ExponentialMechanism(50.0).calibrate(query.sensitivity("zero-out", 1), 1)
    assert len({query.draw(rows, noise, bits)[0] for _ in range(60)}) == 2


def test_sums_are_exact_for_many_rows_and_do_not_depend_on_their_order():
    table = np.random.default_rng(0).uniform(size=(20_001, 3))
    rows, turned = HeldOutRows(table, 0, 1), HeldOutRows(table[::-1], 0, 1)
    steps = np.rint(table * STEPS).astype(int) - STEPS // 2
    assert rows.totals().tolist() == turned.totals().tolist() == steps.sum(axis=0).tolist()
    assert len(rows.chunks) > 1


def test_what_is_no_number_counts_as_the_lower_bound():
    query = HeldOutScore()
    for value, share in ((math.nan, -0.5), (math.inf, 0.5), (-math.inf, -0.5), (1e308, 0.5)):
        assert query.evaluate(HeldOutRows([[value]], -2.0, 3.0)) == share
