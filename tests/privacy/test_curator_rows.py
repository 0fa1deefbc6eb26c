# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: parts of the rows, and the budget of every law."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    Influence,
    KNormMechanism,
    LaplaceMechanism,
    ObjectivePerturbation,
    Sensitivity,
    gdp_mu,
)
from tests.privacy.test_curator import DELTA, EPSILON, MU, Door, Total, curator_of

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


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 3.3e-5, 0.01])
def test_an_objective_budget_can_be_spent_to_the_end(delta):
    for epsilon in (0.3, 0.7, 1 / 3, 1.1, *np.random.default_rng(0).uniform(0.01, 9, 5)):
        curator = curator_of(Door(), epsilon=epsilon, delta=delta)
        curator.release(Perturbed(), ObjectivePerturbation(epsilon, delta))
        assert 0.97 * epsilon < curator.ledger.epsilon(delta) <= epsilon
