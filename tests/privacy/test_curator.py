# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: charges first, reads later, never refunds."""

import copy
import math
import os
import pickle
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest

from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.privacy import Curator, GaussianMechanism, LaplaceMechanism, Sensitivity, gdp_mu

EPSILON, DELTA = 1.0, 1e-6
MU = gdp_mu(EPSILON, DELTA)


@dataclass(frozen=True)
class Total:
    """The clipped sum of the rows; keeps a diary of what it was asked."""

    size: int = 1
    name: str = "total"
    coordinates: int | None = None
    fails: bool = False
    diary: list = field(default_factory=list, compare=False)

    def sensitivity(self, adjacency, n_rows):
        self.diary.append((adjacency, n_rows))
        change = 2.0 if adjacency == "replace-one" else 1.0
        root = math.sqrt(self.size)
        return Sensitivity(change * self.size, change * root, float(n_rows), "by clipping")

    def evaluate(self, rows):
        self.diary.append("evaluate")
        if self.fails:
            raise FloatingPointError("midway")
        return np.full(self.size if self.coordinates is None else self.coordinates, rows.sum())


class Door:
    """Admit rows and count how often that was asked for."""

    def __init__(self, rows=(0.25, 0.5)):
        self.rows, self.opened = np.array(rows), 0

    def __call__(self):
        self.opened += 1
        return self.rows


def curator_of(door, **changes):
    usual = {
        "n_rows": 2,
        "epsilon": EPSILON,
        "delta": DELTA,
        "adjacency": "replace-one",
        "random_state": None,
        "purpose": "test",
    }
    return Curator(door, **(usual | changes))


def test_a_release_is_the_statistic_plus_noise_on_the_recorded_grid():
    curator = curator_of(Door(), epsilon=1e9)
    released = curator.release(Total(3), GaussianMechanism(1e3))
    (release,) = curator.ledger.releases
    np.testing.assert_allclose(released, 0.75, atol=10 * release.noise.scale)
    steps = released / release.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_the_ledger_records_what_the_query_states_and_the_noise_pays_for():
    for adjacency, stated in (("replace-one", 2.0), ("zero-out", 1.0)):
        curator, query = curator_of(Door(), adjacency=adjacency), Total()
        curator.release(query, GaussianMechanism(MU))
        (release,) = curator.ledger.releases
        assert query.diary == [(adjacency, 2), "evaluate"]
        assert (release.query, release.size, release.theorem) == ("total", 1, "by clipping")
        assert (release.adjacency, release.stated_sensitivity) == (adjacency, stated)
        assert release.noise.scale == pytest.approx(stated / MU, rel=1e-5)


@pytest.mark.parametrize(("law", "stated"), [(GaussianMechanism, 4.0), (LaplaceMechanism, 8.0)])
def test_the_norm_recorded_is_the_one_the_noise_needs(law, stated):
    curator = curator_of(Door())
    curator.release(Total(4), law(0.1))
    assert curator.ledger.releases[0].stated_sensitivity == stated


@pytest.mark.parametrize("mechanism", [GaussianMechanism(1.001 * MU), LaplaceMechanism(1.001)])
def test_overspending_is_refused_before_anything_is_read(mechanism):
    door, query = Door(), Total()
    curator = curator_of(door)
    with pytest.raises(BudgetError, match="no row was read"):
        curator.release(query, mechanism)
    assert door.opened == 0
    assert "evaluate" not in query.diary
    assert len(curator.ledger.releases) == 0


def test_a_refusal_later_on_leaves_the_ledger_as_it_was():
    door, query = Door(), Total()
    curator = curator_of(door)
    curator.release(Total(), GaussianMechanism(0.9 * MU))
    before = curator.ledger
    with pytest.raises(BudgetError):
        curator.release(query, GaussianMechanism(0.5 * MU))
    assert curator.ledger is before
    assert "evaluate" not in query.diary
    # what is left can still be spent
    curator.release(query, GaussianMechanism(0.4 * MU))
    assert door.opened == 1


def test_gaussian_noise_is_refused_by_a_pure_budget():
    for mu in (1.0, 0.01, 1e-4):
        door = Door()
        with pytest.raises(BudgetError):
            curator_of(door, delta=0.0).release(Total(), GaussianMechanism(mu))
        assert door.opened == 0


def test_what_fails_midway_has_been_paid_for():
    curator = curator_of(Door())
    with pytest.raises(FloatingPointError, match="midway"):
        curator.release(Total(fails=True), GaussianMechanism(MU))
    assert len(curator.ledger.releases) == 1
    with pytest.raises(BudgetError):
        curator.release(Total(), GaussianMechanism(MU))


def test_rows_are_admitted_once_and_not_before_the_first_release():
    door = Door()
    curator = curator_of(door)
    assert door.opened == 0
    for _ in range(3):
        curator.release(Total(), GaussianMechanism(MU / 2))
    assert door.opened == 1
    assert [release.count for release in curator.ledger.releases] == [3]


@pytest.mark.parametrize("n_releases", [1, 2, 7, 100, 1234])
def test_a_gaussian_budget_is_spent_to_the_last_release_and_no_further(n_releases):
    curator = curator_of(Door())
    mechanism = GaussianMechanism(MU / math.sqrt(n_releases))
    for _ in range(n_releases):
        curator.release(Total(), mechanism)
    assert EPSILON * (1 - 1e-6) < curator.ledger.epsilon(DELTA) <= EPSILON
    with pytest.raises(BudgetError):
        curator.release(Total(), mechanism)


@pytest.mark.parametrize("n_releases", [1, 2, 8])
def test_a_pure_budget_is_spent_to_the_last_release_and_no_further(n_releases):
    curator = curator_of(Door(), delta=0.0)
    for _ in range(n_releases):
        curator.release(Total(), LaplaceMechanism(EPSILON / n_releases))
    assert curator.ledger.epsilon() == EPSILON
    with pytest.raises(BudgetError):
        curator.release(Total(), LaplaceMechanism(1e-9))


@pytest.mark.parametrize("bad", [math.nan, 0, 0.0, math.inf, -1.0, True, "1", None])
def test_a_bad_epsilon_is_refused_whatever_the_caller_checked(bad):
    door = Door()
    with pytest.raises(ValueError, match="epsilon must be"):
        curator_of(door, epsilon=bad)
    assert door.opened == 0


@pytest.mark.parametrize("bad", [math.nan, 1, -1e-9, math.inf, False, "0", None])
def test_a_bad_delta_is_refused_whatever_the_caller_checked(bad):
    with pytest.raises(ValueError, match="delta must be"):
        curator_of(Door(), delta=bad)


@pytest.mark.parametrize("bad", ["add-remove", "", None, "REPLACE-ONE"])
def test_a_bad_adjacency_is_refused(bad):
    with pytest.raises(ValueError, match="adjacency must be one of"):
        curator_of(Door(), adjacency=bad)


def test_a_bad_random_state_is_refused():
    with pytest.raises(ValueError, match="random_state"):
        curator_of(Door(), random_state="seed")


@pytest.mark.parametrize("coordinates", [0, 1, 3])
def test_a_query_of_another_size_than_stated_is_refused(coordinates):
    with pytest.raises(ValueError, match="does not have the size that it states"):
        curator_of(Door()).release(Total(2, coordinates=coordinates), GaussianMechanism(MU))


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_curator_refuses_to_be_duplicated(duplicate):
    with pytest.raises(TypeError, match="holds private data"):
        duplicate(curator_of(Door()))


def test_its_text_shows_no_row():
    curator = curator_of(Door((123456.789, 1.0)))
    curator.release(Total(), GaussianMechanism(MU))
    assert "123456" not in repr(curator) + str(curator) + repr(curator.ledger)


def test_assumptions_reach_the_ledger():
    assert curator_of(Door(), assumptions=("the labels",)).ledger.assumptions == ("the labels",)


@pytest.mark.parametrize("random_state", [0, np.random.RandomState(0), np.random.default_rng(0)])
def test_a_seeded_curator_warns_once_and_marks_every_release(random_state):
    with pytest.warns(SeededNoiseWarning, match="Use random_state=None for a real release") as seen:
        curator = curator_of(Door(), random_state=random_state)
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curator.release(Total(), GaussianMechanism(MU))
    assert curator.ledger.seeded
    assert curator.ledger.releases[0].numerics == "exact on the grid, seeded Philox"


def test_an_unseeded_curator_does_not_warn_and_asks_the_operating_system(monkeypatch):
    asked, urandom = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or urandom(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curator = curator_of(Door())
        curator.release(Total(5), GaussianMechanism(MU))
    assert sum(asked) >= 5 * 8
    assert not curator.ledger.seeded
    assert curator.ledger.releases[0].numerics == "exact on the grid, system entropy"


def test_seeds_repeat_a_release_but_no_release_repeats_within_a_curator():
    def two_releases(seed, purpose="test"):
        curator = curator_of(Door(), random_state=seed, purpose=purpose)
        return [curator.release(Total(4), GaussianMechanism(MU / 2)) for _ in range(2)]

    first, second = two_releases(1)
    np.testing.assert_array_equal(first, two_releases(1)[0])
    for other in (second, two_releases(2)[0], two_releases(1, "other")[0], two_releases(None)[0]):
        assert not np.intersect1d(first, other).size
