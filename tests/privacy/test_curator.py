# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: rows, batches, draws, descent, histograms."""

import copy
import json
import math
import os
import pickle
import warnings
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pytest

from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.privacy import (
    Curator,
    ExponentialMechanism,
    GaussianMechanism,
    Influence,
    KNormMechanism,
    LaplaceMechanism,
    LateNoise,
    ObjectivePerturbation,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    gdp_mu,
    sampled_mu,
)
from skdp.privacy.kernel.charging import Prepaid
from skdp.privacy.laws.calibration import zcdp_rho
from skdp.privacy.laws.late_noise import LazySums

# The curator: charges first, reads later, never refunds.


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


@pytest.mark.sample(1)
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


@pytest.mark.parametrize("bad", ["remove-one", "", None, "REPLACE-ONE"])
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


# The curator: parts of the rows, and the budget of every law.


N = 10


class Parts:
    """Rows that can be read in parts; keeps a diary of what was read."""

    def __init__(self, values=None, diary=None):
        self.values = np.arange(N) / N if values is None else values
        self.diary = [] if diary is None else diary

    def part(self, start, stop):
        self.diary.append((start, stop))
        return Parts(self.values[start:stop], self.diary)

    def sum(self):
        return self.values.sum()


@dataclass(frozen=True)
class Draw:
    """A draw that ignores the rows: what is drawn is told."""

    drawn: tuple = (0.25,)
    name: str = "draw"
    idealised: bool = True
    sources: list = field(default_factory=list, compare=False)

    @property
    def size(self):
        return 1

    def sensitivity(self, adjacency, n_rows):
        return Sensitivity(math.inf, math.inf, 2.0, "by range", spread=3.0)

    def draw(self, rows, noise, source):
        self.sources.append((type(source).__name__, rows))
        return np.array(self.drawn)


@dataclass(frozen=True)
class Perturbed:
    """The minimiser of a quadratic and a linear term: as good as the linear term itself."""

    fails: bool = False
    size: int = 3
    name: str = "perturbed"
    terms: list = field(default_factory=list, compare=False)

    def sensitivity(self, adjacency, n_rows):
        return Influence(
            rows=1 if adjacency == "zero-out" else 2, reach=1.0, corners=1, log_det=0.01,
            slope=0.01, ridge=10.0, distance=1e-6, bound=100.0, theorem="by density",
        )  # fmt: skip

    def minimise(self, rows, linear):
        self.terms.append((rows.sum(), linear))
        if self.fails:
            raise FloatingPointError("midway")
        return -linear / 10


def part_curator(**changes):
    rows = Parts()
    return curator_of(lambda: rows, n_rows=N, **changes), rows


# -- parts of the rows -------------------------------------------------------------


def test_a_release_reads_its_part_and_no_other_row():
    curator, rows = part_curator(epsilon=1e9)
    released = curator.release(Total(), GaussianMechanism(1e3), rows=(2, 5))
    assert rows.diary == [(2, 5)]
    assert released[0] == pytest.approx(0.9, abs=0.1)
    (release,) = curator.ledger.releases
    assert release.rows == (2, 5)
    curator.release(Total(), GaussianMechanism(1e3))
    assert rows.diary == [(2, 5)]
    assert curator.ledger.releases[1].rows is None


def test_the_query_is_told_how_many_rows_its_part_has():
    curator, query = part_curator()[0], Total()
    curator.release(query, GaussianMechanism(MU), rows=(2, 5))
    assert query.diary == [("replace-one", 3), "evaluate"]


@pytest.mark.parametrize("rows", [(-1, 3), (0, 11), (3, 3), (5, 2), (10, 11)])
def test_what_is_no_part_of_the_rows_is_refused_before_anything_is_read(rows):
    curator, admitted = part_curator()
    with pytest.raises(ValueError, match="rows must be a part of 10 rows"):
        curator.release(Total(), GaussianMechanism(0.1), rows=rows)
    assert not admitted.diary
    assert not curator.ledger.releases


def test_disjoint_parts_cost_the_maximum_and_overlapping_ones_add():
    curator, rows = part_curator()
    for part in ((0, 4), (4, 9), (9, 10)):
        curator.release(Total(), GaussianMechanism(MU), rows=part)
    assert curator.ledger.epsilon(DELTA) == pytest.approx(EPSILON, rel=1e-6)
    for part in ((0, 1), (3, 4), (9, 10), None):
        with pytest.raises(BudgetError):
            curator.release(Total(), GaussianMechanism(0.01 * MU), rows=part)
    assert len(rows.diary) == 3


def test_a_gap_that_was_not_read_can_still_be_spent():
    curator, _ = part_curator()
    curator.release(Total(), GaussianMechanism(MU), rows=(0, 4))
    curator.release(Total(), GaussianMechanism(0.6 * MU), rows=(4, 8))
    with pytest.raises(BudgetError):
        curator.release(Total(), GaussianMechanism(0.9 * MU), rows=(7, 9))
    curator.release(Total(), GaussianMechanism(0.7 * MU), rows=(7, 9))
    # one row is in two parts
    assert curator.ledger.mu == pytest.approx(MU, rel=1e-9)


def test_pure_releases_of_parts_are_added_up_whatever_their_rows():
    curator, _ = part_curator(delta=0.0)
    curator.release(Total(), LaplaceMechanism(EPSILON / 2), rows=(0, 5))
    curator.release(Total(), LaplaceMechanism(EPSILON / 2), rows=(5, 10))
    assert curator.ledger.epsilon() == EPSILON


# -- every law is checked before data are read ------------------------------------------

LAWS = {
    "gaussian": (Total(), lambda share: GaussianMechanism(gdp_mu(share * EPSILON, DELTA))),
    "laplace": (Total(), lambda share: LaplaceMechanism(share * EPSILON)),
    "k-norm": (Total(3), lambda share: KNormMechanism(share * EPSILON)),
    "exponential": (Draw(), lambda share: ExponentialMechanism(share * EPSILON)),
    "objective": (Perturbed(), lambda share: ObjectivePerturbation(share * EPSILON, DELTA)),
    "pure objective": (Perturbed(), lambda share: ObjectivePerturbation(share * EPSILON, 0.0)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_every_law_is_refused_before_anything_is_read(law, adjacency):
    query, mechanism = LAWS[law]
    door = Door()
    curator = curator_of(door, adjacency=adjacency)
    with pytest.raises(BudgetError, match="no row was read"):
        curator.release(query, mechanism(1.01))
    assert door.opened == 0
    assert not curator.ledger.releases
    released = curator.release(query, mechanism(1.0))
    assert released.shape == (query.size,)
    assert door.opened == 1
    assert 0.97 * EPSILON < curator.ledger.epsilon(DELTA) <= EPSILON
    with pytest.raises(BudgetError):
        curator.release(query, mechanism(0.1))


def test_a_pure_objective_budget_can_be_spent_to_the_end():
    for epsilon in (0.3, 0.7, 1 / 3, 1.1, *np.random.default_rng(0).uniform(0.01, 9, 200)):
        curator = curator_of(Door(), epsilon=epsilon, delta=0.0)
        curator.release(Perturbed(), ObjectivePerturbation(epsilon, 0.0))
        assert curator.ledger.epsilon() <= epsilon


@pytest.mark.sample(2)
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 3.3e-5, 0.01])
def test_an_objective_budget_can_be_spent_to_the_end(delta):
    for epsilon in (0.3, 0.7, 1 / 3, 1.1, *np.random.default_rng(0).uniform(0.01, 9, 5)):
        curator = curator_of(Door(), epsilon=epsilon, delta=delta)
        curator.release(Perturbed(), ObjectivePerturbation(epsilon, delta))
        assert 0.97 * epsilon < curator.ledger.epsilon(delta) <= epsilon


# The curator: draws of the exponential mechanism, and perturbed minimisers.


@pytest.mark.parametrize("drawn", [0.1, 2.0, -2.0, 7.3, -1e300, math.inf, -math.inf, math.nan])
def test_a_draw_is_snapped_to_the_public_grid_and_clamped(drawn):
    class Drawn(Draw):
        def draw(self, rows, noise, source):
            return np.array([drawn])

    curator = curator_of(Door())
    released = curator.release(Drawn((0.0,)), ExponentialMechanism(0.5))
    (release,) = curator.ledger.releases
    assert release.noise.grid == 2.0 * 2.0**-32
    steps = released / release.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    expected = 0.0 if math.isnan(drawn) else np.clip(drawn, -2, 2)
    assert abs(released[0] - expected) <= release.noise.grid / 2


def test_what_lies_within_half_a_step_of_the_same_point_is_the_same_release():
    grid = 2.0 * 2.0**-32
    values = [
        curator_of(Door()).release(Draw((0.3 + shift * grid,)), ExponentialMechanism(0.5))[0]
        for shift in (-1e-3, 0.0, 1e-3)
    ]
    assert len(set(values)) == 1


def test_a_draw_is_told_its_temperature_and_listed_with_it():
    query = Draw()
    curator = curator_of(Door())
    curator.release(query, ExponentialMechanism(0.5))
    (release,) = curator.ledger.releases
    assert release.noise.law == "exponential"
    assert release.stated_sensitivity == 3.0
    assert release.noise.scale == pytest.approx(6.0, rel=1e-5)
    assert release.noise.scale >= 6.0
    assert (release.noise.epsilon, release.noise.mu, release.noise.delta) == (0.5, 0.0, 0.0)


def test_a_draw_at_an_infinite_temperature_is_free_and_one_without_a_temperature_is_not():
    sensitivity = Draw().sensitivity("replace-one", 10)
    noise = ExponentialMechanism(5e-324).calibrate(sensitivity, 1)
    assert noise.scale == math.inf
    assert noise.actual(sensitivity.spread, 1).epsilon == 0.0
    assert noise.price.covers(noise.actual(sensitivity.spread, 1))
    for broken in ({"scale": 0.0}, {"scale": math.nan}, {"scale": -math.inf}, {"grid": math.inf}):
        unknown = replace(noise, **broken).actual(sensitivity.spread, 1)
        assert unknown.epsilon == math.inf


def test_floats_are_handed_out_for_idealised_draws_only():
    for idealised, source, numerics in (
        (True, "Variates", "idealised, system entropy"),
        (False, "SystemBits", "exact on the grid, system entropy"),
    ):
        query, curator = Draw(idealised=idealised), curator_of(Door())
        curator.release(query, ExponentialMechanism(0.5))
        assert query.sources[0][0] == source
        assert curator.ledger.releases[0].numerics == numerics


@pytest.mark.parametrize("drawn", [(), (0.1, 0.2)])
def test_a_draw_of_another_size_than_stated_is_refused(drawn):
    with pytest.raises(ValueError, match="does not have the size that it states"):
        curator_of(Door()).release(Draw(drawn), ExponentialMechanism(0.5))


# -- perturbed minimisers ------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_both_parts_of_a_perturbed_minimiser_are_on_the_ledger(delta):
    query, curator = Perturbed(), curator_of(Door(), delta=delta)
    curator.release(query, ObjectivePerturbation(0.5, delta))
    linear, cover = curator.ledger.releases
    assert (linear.query, cover.query) == ("perturbed", "error of the perturbed")
    assert linear.stated_sensitivity == 2.0
    assert (linear.noise.mu, linear.noise.delta > 0) == (0.0, delta > 0)
    assert cover.stated_sensitivity >= 2e-6
    assert 0.495 < curator.ledger.epsilon(delta) <= 0.5


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_nothing_is_refunded_when_the_minimiser_fails(delta):
    curator = curator_of(Door(), delta=delta)
    with pytest.raises(FloatingPointError, match="midway"):
        curator.release(Perturbed(fails=True), ObjectivePerturbation(EPSILON, delta))
    assert len(curator.ledger.releases) == 2
    assert curator.ledger.epsilon(delta) > 0.97 * EPSILON
    with pytest.raises(BudgetError):
        curator.release(Perturbed(), ObjectivePerturbation(0.1, delta))


def test_the_secret_term_is_fresh_on_the_grid_and_covered():
    query, curator = Perturbed(), curator_of(Door(), epsilon=10.0, delta=1e-3)
    released = [curator.release(query, ObjectivePerturbation(1.0, DELTA)) for _ in range(2)]
    terms = [term for _, term in query.terms]
    assert not np.intersect1d(*np.abs(terms)).size
    linear, cover = (release.noise for release in curator.ledger.releases[:2])
    for term, value in zip(terms, released, strict=True):
        steps = term / linear.grid
        np.testing.assert_array_equal(steps, np.rint(steps))
        # what leaves is never the minimiser itself
        assert (value != -term / 10).all()
        np.testing.assert_allclose(value, -term / 10, atol=40 * cover.scale)


# The curator and draws that are paid for beforehand: composed at once, with every check.


STEPS = 40
PRICE = float(np.sqrt(8 * zcdp_rho(EPSILON, DELTA) / STEPS)) * (1 - 1e-12)


@dataclass(frozen=True)
class Other(Draw):
    """A draw that differs from the one paid for in one respect."""

    spread: float = 3.0
    bound: float = 2.0

    def sensitivity(self, adjacency, n_rows):
        return Sensitivity(np.inf, np.inf, self.bound, "by range", spread=self.spread)


def paid_curator(count=STEPS, price=PRICE, **changes):
    door = Door()
    curator = curator_of(door, **changes)
    return curator, curator.prepay(Draw(), ExponentialMechanism(price), count), door


def test_draws_that_are_paid_at_once_are_one_row_of_the_ledger():
    curator, paid, door = paid_curator()
    (release,) = curator.ledger.releases
    assert (release.count, release.noise.law, release.noise.epsilon) == (
        STEPS, "exponential", PRICE,
    )  # fmt: skip
    assert release.stated_sensitivity == 3.0
    assert door.opened == 0
    # far more than a plain sum would allow
    assert STEPS * PRICE > 2 * EPSILON
    assert 0.999 * EPSILON < curator.ledger.epsilon(DELTA) <= EPSILON
    for _ in range(STEPS):
        assert curator.release(Draw(), paid) == pytest.approx([0.25])
    assert curator.ledger.releases == (release,)
    assert door.opened == 1
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        curator.release(Draw(), paid)


def test_one_draw_after_another_fits_the_same_budget():
    curator = curator_of(Door())
    for _ in range(STEPS):
        curator.release(Draw(), ExponentialMechanism(PRICE))
    with pytest.raises(BudgetError, match="would exceed the budget"):
        curator.release(Draw(), ExponentialMechanism(PRICE))
    assert curator.ledger.releases == paid_curator()[0].ledger.releases


@pytest.mark.parametrize(
    ("count", "changes"), [(STEPS + 1, {}), (STEPS, {"delta": 0.0}), (STEPS, {"epsilon": 0.99})]
)
def test_nothing_is_charged_if_not_all_can_be_paid(count, changes):
    door = Door()
    curator = curator_of(door, **changes)
    with pytest.raises(BudgetError, match="would exceed the budget"):
        curator.prepay(Draw(), ExponentialMechanism(PRICE), count)
    assert curator.ledger.releases == ()
    assert door.opened == 0


@pytest.mark.parametrize(
    "query",
    [Other(spread=3.1), Other(spread=2.9), Other(bound=3.0), Draw(name="x"), Draw(idealised=False)],
)
def test_only_draws_of_the_kind_that_was_paid_for_are_made(query):
    curator, paid, door = paid_curator()
    with pytest.raises(BudgetError, match="is not the release that was paid for"):
        curator.release(query, paid)
    assert query.sources == []
    assert door.opened == 0


def test_a_paid_draw_is_of_all_rows_and_gets_the_source_of_its_kind():
    for idealised, source in ((True, "Variates"), (False, "SystemBits")):
        query, curator = Draw(idealised=idealised), curator_of(Door())
        paid = curator.prepay(query, ExponentialMechanism(0.1), 2)
        with pytest.raises(ValueError, match="reads all rows; rows must be None"):
            curator.release(query, paid, rows=(0, 1))
        curator.release(query, paid)
        assert [name for name, _ in query.sources] == [source]


def test_a_right_to_draws_is_worth_nothing_elsewhere():
    _, paid, _ = paid_curator()
    for token in (paid, Prepaid()):
        with pytest.raises(BudgetError):
            curator_of(Door()).release(Draw(), token)


def test_a_right_to_draws_buys_no_noise_and_the_reverse():
    class Both(Draw):
        """Has a sensitivity for either law."""

        def sensitivity(self, adjacency, n_rows):
            return Sensitivity(1.0, 1.0, 2.0, "by range", spread=3.0)

        def evaluate(self, rows):
            return np.array(self.drawn)

    curator = curator_of(Door())
    drawn = curator.prepay(Both(), ExponentialMechanism(0.1), 1)
    noisy = curator.prepay(Both(), LaplaceMechanism(0.1), 1)
    # the law is that of the price, and so is what is called
    assert curator.release(Both(), drawn) == pytest.approx([0.25])
    assert curator.release(Both(), noisy) != pytest.approx([0.25])


def test_minimisers_cannot_be_paid_beforehand():
    curator = curator_of(Door(), epsilon=10.0, delta=1e-3)
    with pytest.raises(ValueError, match="only sums with noise and draws"):
        curator.prepay(Perturbed(), ObjectivePerturbation(0.5, DELTA), 2)
    assert curator.ledger.releases == ()


# The curator and random batches: paid beforehand, drawn in secret, listed on the ledger.


BATCH_EPSILON, BATCH_DELTA, BATCH_N, BATCH_STEPS = 1.0, 1e-5, 40, 12
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
class BatchTotal:
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
        self.values = np.linspace(-1, 1, BATCH_N)
        self.sampling = Sampling(kind, BATCH_N, batch_size)
        usual = {
            "epsilon": BATCH_EPSILON,
            "delta": BATCH_DELTA,
            "random_state": None,
            "purpose": "test",
        }
        self.curator = Curator(
            self.admit, n_rows=BATCH_N, adjacency=adjacency, **{**usual, **options}
        )
        self.adjacency = adjacency

    def admit(self):
        self.opened += 1
        return Rows(self.values, self.diary)

    def mechanism(self, count=BATCH_STEPS, **others):
        mu = sampled_mu(
            BATCH_EPSILON,
            BATCH_DELTA,
            sampling=self.sampling,
            n_releases=count,
            adjacency=self.adjacency,
            **others,
        )
        return SampledGaussianMechanism(mu, self.sampling)

    def prepay(self, count=BATCH_STEPS):
        return self.curator.prepay(BatchTotal(), self.mechanism(count), count)


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_charged_before_anything_is_read(kind, adjacency):
    setting = Setting(adjacency, kind)
    paid = setting.prepay()
    assert setting.opened == 0
    (release,) = setting.curator.ledger.releases
    assert (release.count, release.adjacency) == (BATCH_STEPS, adjacency)
    assert release.stated_sensitivity == (1 if kind == "poisson" else 2)
    before = setting.curator.ledger
    assert 0.99 * BATCH_EPSILON < before.epsilon(BATCH_DELTA) <= BATCH_EPSILON
    for _ in range(BATCH_STEPS):
        setting.curator.release(BatchTotal(), paid)
    assert setting.curator.ledger is before
    assert setting.opened == 1
    assert len(setting.diary) == BATCH_STEPS


def test_no_more_is_released_than_was_paid_for():
    setting = Setting()
    paid = setting.prepay()
    for _ in range(BATCH_STEPS):
        setting.curator.release(BatchTotal(), paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        setting.curator.release(BatchTotal(), paid)
    with pytest.raises(BudgetError, match="no row was read"):
        setting.prepay()
    assert len(setting.diary) == BATCH_STEPS


def test_too_many_are_refused_before_anything_is_charged():
    setting = Setting()
    with pytest.raises(BudgetError, match="no row was read"):
        setting.curator.prepay(BatchTotal(), setting.mechanism(BATCH_STEPS), BATCH_STEPS + 1)
    assert setting.opened == 0
    assert setting.curator.ledger.releases == ()
    setting.prepay()


@pytest.mark.parametrize(
    "other",
    [
        BatchTotal(name="another"),
        BatchTotal(size=2),
        BatchTotal(factor=1.5),
        BatchTotal(factor=0.5),
    ],
)
def test_another_query_than_was_paid_for_is_refused(other):
    setting = Setting()
    paid = setting.prepay()
    with pytest.raises(BudgetError, match="is not the release that was paid for"):
        setting.curator.release(other, paid)
    assert setting.diary == []
    for _ in range(BATCH_STEPS):
        setting.curator.release(BatchTotal(), paid)


def test_a_token_is_worth_nothing_elsewhere():
    first, second = Setting(), Setting()
    paid = first.prepay()
    for token in (paid, Prepaid()):
        with pytest.raises(BudgetError, match="no release of this kind is left"):
            second.curator.release(BatchTotal(), token)
    assert second.opened == 0
    for plain in (object(), None, 1.0):
        with pytest.raises(BudgetError, match="neither a law nor paid for"):
            second.curator.release(BatchTotal(), plain)
    assert second.opened == 0
    assert second.curator.ledger.releases == ()


@pytest.mark.parametrize("count", [0, -1, -5])
def test_a_count_below_one_is_refused(count):
    setting = Setting()
    setting.curator.release(BatchTotal(), GaussianMechanism(0.1))
    with pytest.raises(ValueError, match="count must be at least 1"):
        setting.curator.prepay(BatchTotal(), GaussianMechanism(0.1), count)
    with pytest.raises(TypeError):
        setting.curator.prepay(BatchTotal(), GaussianMechanism(0.1), 1.5)
    assert [r.count for r in setting.curator.ledger.releases] == [1]


def test_full_releases_can_be_paid_beforehand_too():
    setting = Setting()
    paid = setting.curator.prepay(BatchTotal(), GaussianMechanism(0.05), 3)
    for _ in range(3):
        setting.curator.release(BatchTotal(), paid)
    assert setting.diary == []
    with pytest.raises(BudgetError):
        setting.curator.release(BatchTotal(), paid)


def test_a_batch_is_drawn_from_all_rows():
    setting = Setting()
    with pytest.raises(ValueError, match="a random batch is drawn from all rows"):
        setting.curator.release(BatchTotal(), setting.mechanism(), rows=(0, 5))
    paid = setting.prepay()
    with pytest.raises(ValueError, match="reads all rows; rows must be None"):
        setting.curator.release(BatchTotal(), paid, rows=(0, 5))
    assert setting.opened == 0


def test_batches_of_other_rows_are_refused():
    setting = Setting()
    for other in (BATCH_N - 1, BATCH_N + 1, 10 * BATCH_N):
        mechanism = SampledGaussianMechanism(0.01, Sampling("poisson", other, 2))
        with pytest.raises(ValueError, match="batches must be drawn from the rows that there are"):
            setting.curator.release(BatchTotal(), mechanism)
        with pytest.raises(ValueError, match="batches must be drawn from the rows that there are"):
            setting.curator.prepay(BatchTotal(), mechanism, 2)
    assert setting.opened == 0


def test_every_release_draws_its_own_batch_in_secret():
    setting = Setting()
    paid = setting.prepay()
    for _ in range(BATCH_STEPS):
        setting.curator.release(BatchTotal(), paid)
    assert len({tuple(batch) for batch in setting.diary}) > BATCH_STEPS // 2
    # nothing public knows a batch, or its size
    public = repr(setting.curator.ledger) + json.dumps(
        [asdict(r) for r in setting.curator.ledger.releases]
    )
    other = Setting()
    paid = other.prepay()
    for _ in range(BATCH_STEPS):
        other.curator.release(BatchTotal(), paid)
    assert public == repr(other.curator.ledger) + json.dumps(
        [asdict(r) for r in other.curator.ledger.releases]
    )
    assert not any(isinstance(v, np.ndarray) for v in vars(paid).values())


def test_a_batch_may_be_empty():
    setting = Setting(batch_size=1e-9)
    released = setting.curator.release(
        BatchTotal(), SampledGaussianMechanism(0.5, setting.sampling)
    )
    assert [len(batch) for batch in setting.diary] == [0]
    assert np.isfinite(released).all()


def test_a_batch_of_all_rows_is_no_batch():
    setting = Setting("zero-out", batch_size=BATCH_N)
    setting.curator.release(BatchTotal(), setting.mechanism(1))
    assert setting.diary == []
    assert setting.curator.ledger.releases[0].stated_sensitivity == 1.0


def test_rows_can_be_mapped_before_and_after_they_are_admitted():
    for early in (True, False):
        setting = Setting(epsilon=1e6)
        price = GaussianMechanism(1e2)
        if not early:
            setting.curator.release(BatchTotal(), price)
        setting.curator.map_rows(lambda rows: Rows(np.abs(rows.values), rows.diary))
        setting.curator.map_rows(lambda rows: Rows(rows.values / 2, rows.diary))
        ledger = setting.curator.ledger
        assert setting.opened == (0 if early else 1)
        found = setting.curator.release(BatchTotal(), price)[0]
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
        setting.curator.release(BatchTotal(), paid)
    assert heard == [(1,), (2,), (3,)]


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_curator_with_batches_refuses_to_be_duplicated(duplicate):
    setting = Setting()
    setting.prepay()
    with pytest.raises(TypeError, match="holds private data"):
        duplicate(setting.curator)


# Descents with late noise: all steps charged at once, one result, nothing in between.


class DescentRows:
    """Pairs (column, number) that remember which of them were asked for."""

    def __init__(self, columns, values, diary):
        self.columns, self.values, self.diary = columns, values, diary

    def batch(self, positions, rate):
        self.diary.append(positions)
        return DescentRows(self.columns[positions], self.values[positions], self.diary)


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


class DescentSetting:
    """A curator, its door, and the batches that it drew."""

    def __init__(self, batch_size=4, **options):
        self.diary, self.opened = [], 0
        self.sampling = Sampling("poisson", BATCH_N, batch_size)
        usual = {
            "epsilon": BATCH_EPSILON,
            "delta": BATCH_DELTA,
            "random_state": None,
            "purpose": "test",
        }
        usual["adjacency"] = "replace-one"
        self.curator = Curator(self.admit, n_rows=BATCH_N, **{**usual, **options})

    def admit(self):
        self.opened += 1
        return DescentRows(np.arange(BATCH_N) % 7, np.linspace(-2, 2, BATCH_N), self.diary)

    def law(self, n_skipped=0, n_steps=BATCH_STEPS, planned=BATCH_STEPS):
        """Return a descent of so many steps, each with the noise of `planned` ones."""
        mu = sampled_mu(
            BATCH_EPSILON,
            BATCH_DELTA,
            sampling=self.sampling,
            n_releases=planned,
            adjacency="replace-one",
        )
        return LateNoise(SampledGaussianMechanism(mu, self.sampling), n_steps, n_skipped)

    def descend(self, n_skipped=0, query=None):
        return self.curator.release(query or ColumnTotals(), self.law(n_skipped))


def test_everything_is_charged_before_anything_is_read_and_nothing_afterwards():
    setting = DescentSetting()
    paid = setting.curator.prepay(ColumnTotals(), setting.law(4), 1)
    before = setting.curator.ledger
    assert setting.opened == 0
    (release,) = before.releases
    assert (release.count, release.size) == (BATCH_STEPS, 10)
    assert release.numerics.startswith("idealised")
    assert 0.99 * BATCH_EPSILON < before.epsilon(BATCH_DELTA) <= BATCH_EPSILON
    released = setting.curator.release(ColumnTotals(), paid)
    assert released.shape == (10, 1)
    assert setting.curator.ledger is before
    assert (setting.opened, len(setting.diary)) == (1, BATCH_STEPS)
    # a public grid, and noise in the columns that no row has
    steps = released / release.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.all(np.abs(released[7:]) > 0)


def test_a_descent_that_is_charged_at_once_costs_the_same():
    paid, at_once = DescentSetting(), DescentSetting()
    paid.curator.prepay(ColumnTotals(), paid.law(), 1)
    at_once.descend()
    assert paid.curator.ledger == at_once.curator.ledger
    assert (at_once.opened, len(at_once.diary)) == (1, BATCH_STEPS)


def test_no_more_steps_are_taken_than_the_budget_allows():
    setting = DescentSetting()
    with pytest.raises(BudgetError, match="would exceed"):
        setting.curator.release(ColumnTotals(), setting.law(n_steps=2 * BATCH_STEPS))
    assert (setting.opened, setting.diary) == (0, [])
    assert not setting.curator.ledger.releases


def test_steps_can_be_spent_in_parts():
    setting = DescentSetting()
    paid = setting.curator.prepay(ColumnTotals(), setting.law(n_steps=BATCH_STEPS // 2), 2)
    (release,) = setting.curator.ledger.releases
    assert release.count == BATCH_STEPS
    for _ in range(2):
        setting.curator.release(ColumnTotals(), paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        setting.curator.release(ColumnTotals(), paid)
    assert len(setting.diary) == BATCH_STEPS


def test_a_law_that_reads_more_often_than_it_was_charged_for_is_stopped():
    class Greedy(LateNoise):
        def lines(self, query, sensitivity, noise):
            return tuple(
                line._replace(times=3) for line in super().lines(query, sensitivity, noise)
            )

    setting = DescentSetting()
    plain = setting.law()
    with pytest.raises(BudgetError, match="as often as was charged"):
        setting.curator.release(ColumnTotals(), Greedy(plain.additive, BATCH_STEPS, 0))
    assert len(setting.diary) == 3


@pytest.mark.parametrize(("n_steps", "n_skipped"), [(0, 0), (-1, 0), (3, 3), (3, -1), (3, 4)])
def test_an_average_of_no_steps_is_refused(n_steps, n_skipped):
    additive = DescentSetting().law().additive
    with pytest.raises(ValueError, match="n_skipped must be in"):
        LateNoise(additive, n_steps, n_skipped)
    with pytest.raises(TypeError):
        LateNoise(additive, 2.5, 0)


@pytest.mark.parametrize("other", [{"name": "another"}, {"factor": 2.0}, {"factor": 0.5}])
def test_another_query_of_a_descent_than_was_paid_for_is_refused(other):
    setting = DescentSetting()
    paid = setting.curator.prepay(ColumnTotals(), setting.law(), 1)
    with pytest.raises(BudgetError, match="is not the release that was paid for"):
        setting.curator.release(replace(ColumnTotals(), **other), paid)
    assert setting.opened == 0


def test_what_another_curator_was_paid_for_is_no_right():
    setting, other = DescentSetting(), DescentSetting()
    token = other.curator.prepay(ColumnTotals(), other.law(), 1)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        setting.curator.release(ColumnTotals(), token)
    assert setting.opened == 0


def test_noise_that_is_not_gaussian_is_refused():
    setting = DescentSetting()
    with pytest.raises(ValueError, match="Gaussian"):
        setting.curator.release(ColumnTotals(), LateNoise(LaplaceMechanism(0.1), 3, 0))
    assert setting.opened == 0
    assert not setting.curator.ledger.releases


def test_full_releases_can_be_descended_along_too():
    setting = DescentSetting()
    law = LateNoise(GaussianMechanism(0.05), 3, 0)
    assert setting.curator.release(ColumnTotals(), law).shape == (10, 1)
    assert (setting.opened, setting.diary) == (1, [])


def test_a_statistic_beyond_its_bound_is_clamped():
    # a query that breaks its word by infinity does not get far
    class Broken(ColumnTotals):
        def evaluate_at(self, part, values):
            return np.full(values.shape, np.inf)

    setting = DescentSetting()
    released = setting.descend(query=Broken())
    assert np.abs(released).max() <= (BATCH_N + 100) * BATCH_STEPS


def test_progress_hears_of_every_step_and_nothing_else():
    heard = []
    setting = DescentSetting(progress=lambda *args: heard.append(args))
    setting.descend(4)
    assert heard == [(step,) for step in range(1, BATCH_STEPS + 1)]


def test_every_step_draws_its_own_batch_and_its_own_noise():
    first, second = DescentSetting(), DescentSetting()
    one, other = (s.descend() for s in (first, second))
    assert len({tuple(batch) for batch in first.diary}) > BATCH_STEPS // 2
    assert [tuple(b) for b in first.diary] != [tuple(b) for b in second.diary]
    assert not np.any(one == other)


def test_seeds_repeat_a_descent():
    with pytest.warns(SeededNoiseWarning):
        settings = [DescentSetting(random_state=3), DescentSetting(random_state=3)]
    one, other = (s.descend() for s in settings)
    np.testing.assert_array_equal(one, other)


def test_noise_behind_a_threshold_does_not_come_late():
    # what comes late is released in full
    noise = GaussianMechanism(1.0).calibrate(ColumnTotals().sensitivity("zero-out", BATCH_N), 10)
    with pytest.raises(ValueError, match="noise comes late for Gaussian noise"):
        LazySums((10, 1), 0, 1.0, 5, 0, replace(noise, threshold=3.0), None)
