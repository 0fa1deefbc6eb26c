# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator and random batches: paid beforehand, drawn in secret, listed on the ledger."""

import copy
import json
import pickle
from dataclasses import asdict, dataclass

import numpy as np
import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import (
    Curator,
    GaussianMechanism,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    sampled_mu,
)
from skdp.privacy.kernel.charging import Prepaid

EPSILON, DELTA, N, STEPS = 1.0, 1e-5, 40, 12
ADJACENCIES = ("replace-one", "zero-out")
KINDS = ("poisson", "without-replacement", "with-replacement")


class Rows:
    """Numbers that remember which of them were asked for."""

    def __init__(self, values, diary):
        self.values, self.diary = values, diary

    def batch(self, positions, rate):
        self.diary.append(positions)
        return Rows(self.values[positions], self.diary)


@dataclass(frozen=True)
class Total:
    """The sum of the rows, each in [-1, 1]."""

    name: str = "total"
    size: int = 1
    factor: float = 1.0

    def sensitivity(self, adjacency, n_rows):
        moved = (2 if adjacency == "replace-one" else 1) * self.factor
        return Sensitivity(moved, moved, float(n_rows), "by clipping")

    def evaluate(self, rows):
        return np.full(self.size, self.factor * np.clip(rows.values, -1, 1).sum())


class Setting:
    """A curator, its door, and the batches that it drew."""

    def __init__(self, adjacency="replace-one", kind="poisson", batch_size=4, **options):
        self.diary, self.opened = [], 0
        self.values = np.linspace(-1, 1, N)
        self.sampling = Sampling(kind, N, batch_size)
        usual = {"epsilon": EPSILON, "delta": DELTA, "random_state": None, "purpose": "test"}
        self.curator = Curator(self.admit, n_rows=N, adjacency=adjacency, **{**usual, **options})
        self.adjacency = adjacency

    def admit(self):
        self.opened += 1
        return Rows(self.values, self.diary)

    def mechanism(self, count=STEPS, **others):
        mu = sampled_mu(
            EPSILON, DELTA, sampling=self.sampling, n_releases=count, adjacency=self.adjacency,
            **others,
        )  # fmt: skip
        return SampledGaussianMechanism(mu, self.sampling)

    def prepay(self, count=STEPS):
        return self.curator.prepay(Total(), self.mechanism(count), count)


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_charged_before_anything_is_read(kind, adjacency):
    setting = Setting(adjacency, kind)
    paid = setting.prepay()
    assert setting.opened == 0
    (release,) = setting.curator.ledger.releases
    assert (release.count, release.adjacency) == (STEPS, adjacency)
    assert release.stated_sensitivity == (1 if kind == "poisson" else 2)
    before = setting.curator.ledger
    assert 0.99 * EPSILON < before.epsilon(DELTA) <= EPSILON
    for _ in range(STEPS):
        setting.curator.release(Total(), paid)
    assert setting.curator.ledger is before
    assert setting.opened == 1
    assert len(setting.diary) == STEPS


def test_no_more_is_released_than_was_paid_for():
    setting = Setting()
    paid = setting.prepay()
    for _ in range(STEPS):
        setting.curator.release(Total(), paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        setting.curator.release(Total(), paid)
    with pytest.raises(BudgetError, match="no row was read"):
        setting.prepay()
    assert len(setting.diary) == STEPS


def test_too_many_are_refused_before_anything_is_charged():
    setting = Setting()
    with pytest.raises(BudgetError, match="no row was read"):
        setting.curator.prepay(Total(), setting.mechanism(STEPS), STEPS + 1)
    assert setting.opened == 0
    assert setting.curator.ledger.releases == ()
    setting.prepay()


@pytest.mark.parametrize(
    "other", [Total(name="another"), Total(size=2), Total(factor=1.5), Total(factor=0.5)]
)
def test_another_query_than_was_paid_for_is_refused(other):
    setting = Setting()
    paid = setting.prepay()
    with pytest.raises(BudgetError, match="is not the release that was paid for"):
        setting.curator.release(other, paid)
    assert setting.diary == []
    for _ in range(STEPS):
        setting.curator.release(Total(), paid)


def test_a_token_is_worth_nothing_elsewhere():
    first, second = Setting(), Setting()
    paid = first.prepay()
    for token in (paid, Prepaid()):
        with pytest.raises(BudgetError, match="no release of this kind is left"):
            second.curator.release(Total(), token)
    assert second.opened == 0
    for plain in (object(), None, 1.0):
        with pytest.raises(BudgetError, match="neither a law nor paid for"):
            second.curator.release(Total(), plain)
    assert second.opened == 0
    assert second.curator.ledger.releases == ()


@pytest.mark.parametrize("count", [0, -1, -5])
def test_a_count_below_one_is_refused(count):
    setting = Setting()
    setting.curator.release(Total(), GaussianMechanism(0.1))
    with pytest.raises(ValueError, match="count must be at least 1"):
        setting.curator.prepay(Total(), GaussianMechanism(0.1), count)
    with pytest.raises(TypeError):
        setting.curator.prepay(Total(), GaussianMechanism(0.1), 1.5)
    assert [r.count for r in setting.curator.ledger.releases] == [1]


def test_full_releases_can_be_paid_beforehand_too():
    setting = Setting()
    paid = setting.curator.prepay(Total(), GaussianMechanism(0.05), 3)
    for _ in range(3):
        setting.curator.release(Total(), paid)
    assert setting.diary == []
    with pytest.raises(BudgetError):
        setting.curator.release(Total(), paid)


def test_a_batch_is_drawn_from_all_rows():
    setting = Setting()
    with pytest.raises(ValueError, match="a random batch is drawn from all rows"):
        setting.curator.release(Total(), setting.mechanism(), rows=(0, 5))
    paid = setting.prepay()
    with pytest.raises(ValueError, match="reads all rows; rows must be None"):
        setting.curator.release(Total(), paid, rows=(0, 5))
    assert setting.opened == 0


def test_batches_of_other_rows_are_refused():
    setting = Setting()
    for other in (N - 1, N + 1, 10 * N):
        mechanism = SampledGaussianMechanism(0.01, Sampling("poisson", other, 2))
        with pytest.raises(ValueError, match="batches must be drawn from the rows that there are"):
            setting.curator.release(Total(), mechanism)
        with pytest.raises(ValueError, match="batches must be drawn from the rows that there are"):
            setting.curator.prepay(Total(), mechanism, 2)
    assert setting.opened == 0


def test_every_release_draws_its_own_batch_in_secret():
    setting = Setting()
    paid = setting.prepay()
    for _ in range(STEPS):
        setting.curator.release(Total(), paid)
    assert len({tuple(batch) for batch in setting.diary}) > STEPS // 2
    # nothing public knows a batch, or its size
    public = repr(setting.curator.ledger) + json.dumps(
        [asdict(r) for r in setting.curator.ledger.releases]
    )
    other = Setting()
    paid = other.prepay()
    for _ in range(STEPS):
        other.curator.release(Total(), paid)
    assert public == repr(other.curator.ledger) + json.dumps(
        [asdict(r) for r in other.curator.ledger.releases]
    )
    assert not any(isinstance(v, np.ndarray) for v in vars(paid).values())


def test_a_batch_may_be_empty():
    setting = Setting(batch_size=1e-9)
    released = setting.curator.release(Total(), SampledGaussianMechanism(0.5, setting.sampling))
    assert [len(batch) for batch in setting.diary] == [0]
    assert np.isfinite(released).all()


def test_a_batch_of_all_rows_is_no_batch():
    setting = Setting("zero-out", batch_size=N)
    setting.curator.release(Total(), setting.mechanism(1))
    assert setting.diary == []
    assert setting.curator.ledger.releases[0].stated_sensitivity == 1.0


def test_rows_can_be_mapped_before_and_after_they_are_admitted():
    for early in (True, False):
        setting = Setting(epsilon=1e6)
        price = GaussianMechanism(1e2)
        if not early:
            setting.curator.release(Total(), price)
        setting.curator.map_rows(lambda rows: Rows(np.abs(rows.values), rows.diary))
        setting.curator.map_rows(lambda rows: Rows(rows.values / 2, rows.diary))
        ledger = setting.curator.ledger
        assert setting.opened == (0 if early else 1)
        found = setting.curator.release(Total(), price)[0]
        assert found == pytest.approx(np.abs(setting.values).sum() / 2, abs=1)
        assert setting.opened == 1
        assert sum(r.count for r in setting.curator.ledger.releases) == 1 + sum(
            r.count for r in ledger.releases
        )


def test_progress_hears_a_number_and_nothing_else():
    heard = []
    setting = Setting(progress=lambda *args: heard.append(args))
    paid = setting.prepay()
    assert heard == []
    for _ in range(3):
        setting.curator.release(Total(), paid)
    assert heard == [(1,), (2,), (3,)]


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_curator_with_batches_refuses_to_be_duplicated(duplicate):
    setting = Setting()
    setting.prepay()
    with pytest.raises(TypeError, match="holds private data"):
        duplicate(setting.curator)
