# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Descents with late noise: all steps charged at once, one result, nothing in between."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.privacy import (
    Curator,
    GaussianMechanism,
    LaplaceMechanism,
    LateNoise,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    sampled_mu,
)
from skdp.privacy.laws.late_noise import LazySums

EPSILON, DELTA, N, STEPS = 1.0, 1e-5, 40, 12


class Rows:
    """Pairs (column, number) that remember which of them were asked for."""

    def __init__(self, columns, values, diary):
        self.columns, self.values, self.diary = columns, values, diary

    def batch(self, positions, rate):
        self.diary.append(positions)
        return Rows(self.columns[positions], self.values[positions], self.diary)


@dataclass(frozen=True)
class ColumnTotals:
    """For every column the sum of its numbers, each in [-1, 1]."""

    name: str = "column totals"
    factor: float = 1.0
    decay: float = 1.0
    n_free: int = 0
    shape = (10, 1)
    size = 10
    idealised = True

    def sensitivity(self, adjacency, n_rows):
        moved = (2 if adjacency == "replace-one" else 1) * self.factor
        return Sensitivity(moved, moved, float(n_rows), "by clipping")

    def touched(self, rows):
        return np.unique(rows.columns), rows

    def evaluate_at(self, part, values):
        columns = np.unique(part.columns)
        assert values.shape == (len(columns), 1)
        member = part.columns == columns[:, None]
        return self.factor * (member @ np.clip(part.values, -1, 1))[:, None]


class Setting:
    """A curator, its door, and the batches that it drew."""

    def __init__(self, batch_size=4, **options):
        self.diary, self.opened = [], 0
        self.sampling = Sampling("poisson", N, batch_size)
        usual = {"epsilon": EPSILON, "delta": DELTA, "random_state": None, "purpose": "test"}
        usual["adjacency"] = "replace-one"
        self.curator = Curator(self.admit, n_rows=N, **{**usual, **options})

    def admit(self):
        self.opened += 1
        return Rows(np.arange(N) % 7, np.linspace(-2, 2, N), self.diary)

    def law(self, n_skipped=0, n_steps=STEPS, planned=STEPS):
        """Return a descent of so many steps, each with the noise of `planned` ones."""
        mu = sampled_mu(
            EPSILON, DELTA, sampling=self.sampling, n_releases=planned, adjacency="replace-one"
        )
        return LateNoise(SampledGaussianMechanism(mu, self.sampling), n_steps, n_skipped)

    def descend(self, n_skipped=0, query=None):
        return self.curator.release(query or ColumnTotals(), self.law(n_skipped))


def test_everything_is_charged_before_anything_is_read_and_nothing_afterwards():
    setting = Setting()
    paid = setting.curator.prepay(ColumnTotals(), setting.law(4), 1)
    before = setting.curator.ledger
    assert setting.opened == 0
    (release,) = before.releases
    assert (release.count, release.size) == (STEPS, 10)
    assert release.numerics.startswith("idealised")
    assert 0.99 * EPSILON < before.epsilon(DELTA) <= EPSILON
    released = setting.curator.release(ColumnTotals(), paid)
    assert released.shape == (10, 1)
    assert setting.curator.ledger is before
    assert (setting.opened, len(setting.diary)) == (1, STEPS)
    # a public grid, and noise in the columns that no row has
    steps = released / release.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.all(np.abs(released[7:]) > 0)


def test_a_descent_that_is_charged_at_once_costs_the_same():
    paid, at_once = Setting(), Setting()
    paid.curator.prepay(ColumnTotals(), paid.law(), 1)
    at_once.descend()
    assert paid.curator.ledger == at_once.curator.ledger
    assert (at_once.opened, len(at_once.diary)) == (1, STEPS)


def test_no_more_steps_are_taken_than_the_budget_allows():
    setting = Setting()
    with pytest.raises(BudgetError, match="would exceed"):
        setting.curator.release(ColumnTotals(), setting.law(n_steps=2 * STEPS))
    assert (setting.opened, setting.diary) == (0, [])
    assert not setting.curator.ledger.releases


def test_steps_can_be_spent_in_parts():
    setting = Setting()
    paid = setting.curator.prepay(ColumnTotals(), setting.law(n_steps=STEPS // 2), 2)
    (release,) = setting.curator.ledger.releases
    assert release.count == STEPS
    for _ in range(2):
        setting.curator.release(ColumnTotals(), paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        setting.curator.release(ColumnTotals(), paid)
    assert len(setting.diary) == STEPS


def test_a_law_that_reads_more_often_than_it_was_charged_for_is_stopped():
    class Greedy(LateNoise):
        def lines(self, query, sensitivity, noise):
            return tuple(
                line._replace(times=3) for line in super().lines(query, sensitivity, noise)
            )

    setting = Setting()
    plain = setting.law()
    with pytest.raises(BudgetError, match="as often as was charged"):
        setting.curator.release(ColumnTotals(), Greedy(plain.additive, STEPS, 0))
    assert len(setting.diary) == 3


@pytest.mark.parametrize(("n_steps", "n_skipped"), [(0, 0), (-1, 0), (3, 3), (3, -1), (3, 4)])
def test_an_average_of_no_steps_is_refused(n_steps, n_skipped):
    additive = Setting().law().additive
    with pytest.raises(ValueError, match="n_skipped must be in"):
        LateNoise(additive, n_steps, n_skipped)
    with pytest.raises(TypeError):
        LateNoise(additive, 2.5, 0)


@pytest.mark.parametrize("other", [{"name": "another"}, {"factor": 2.0}, {"factor": 0.5}])
def test_another_query_than_was_paid_for_is_refused(other):
    setting = Setting()
    paid = setting.curator.prepay(ColumnTotals(), setting.law(), 1)
    with pytest.raises(BudgetError, match="is not the release that was paid for"):
        setting.curator.release(replace(ColumnTotals(), **other), paid)
    assert setting.opened == 0


def test_what_another_curator_was_paid_for_is_no_right():
    setting, other = Setting(), Setting()
    token = other.curator.prepay(ColumnTotals(), other.law(), 1)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        setting.curator.release(ColumnTotals(), token)
    assert setting.opened == 0


def test_noise_that_is_not_gaussian_is_refused():
    setting = Setting()
    with pytest.raises(ValueError, match="Gaussian"):
        setting.curator.release(ColumnTotals(), LateNoise(LaplaceMechanism(0.1), 3, 0))
    assert setting.opened == 0
    assert not setting.curator.ledger.releases


def test_full_releases_can_be_descended_along_too():
    setting = Setting()
    law = LateNoise(GaussianMechanism(0.05), 3, 0)
    assert setting.curator.release(ColumnTotals(), law).shape == (10, 1)
    assert (setting.opened, setting.diary) == (1, [])


def test_a_statistic_beyond_its_bound_is_clamped():
    # a query that breaks its word by infinity does not get far
    class Broken(ColumnTotals):
        def evaluate_at(self, part, values):
            return np.full(values.shape, np.inf)

    setting = Setting()
    released = setting.descend(query=Broken())
    assert np.abs(released).max() <= (N + 100) * STEPS


def test_progress_hears_of_every_step_and_nothing_else():
    heard = []
    setting = Setting(progress=lambda *args: heard.append(args))
    setting.descend(4)
    assert heard == [(step,) for step in range(1, STEPS + 1)]


def test_every_step_draws_its_own_batch_and_its_own_noise():
    first, second = Setting(), Setting()
    one, other = (s.descend() for s in (first, second))
    assert len({tuple(batch) for batch in first.diary}) > STEPS // 2
    assert [tuple(b) for b in first.diary] != [tuple(b) for b in second.diary]
    assert not np.any(one == other)


def test_seeds_repeat_a_descent():
    with pytest.warns(SeededNoiseWarning):
        settings = [Setting(random_state=3), Setting(random_state=3)]
    one, other = (s.descend() for s in settings)
    np.testing.assert_array_equal(one, other)


def test_noise_behind_a_threshold_does_not_come_late():
    # what comes late is released in full
    noise = GaussianMechanism(1.0).calibrate(ColumnTotals().sensitivity("zero-out", N), 10)
    with pytest.raises(ValueError, match="noise comes late for Gaussian noise"):
        LazySums((10, 1), 0, 1.0, 5, 0, replace(noise, threshold=3.0), None)
