# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Charges under attack: threads, queries that ask for more, and what is left to be reached."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import (
    GaussianMechanism,
    LaplaceMechanism,
    LateNoise,
    LocalMechanism,
    PrivacyBudget,
    Record,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
)
from skdp.privacy.kernel.accounting import pure_mu
from skdp.privacy.kernel.charging import Charging, Terms
from tests.privacy.test_curator import DELTA, EPSILON, MU, Door, Total, curator_of
from tests.privacy.test_curator_descent import ColumnTotals, Setting
from tests.privacy.test_local import Said
from tests.privacy.test_local import curator as local_curator


def ask(workers, each):
    """Return how often `each`, called by many threads at once, was not refused."""
    start = threading.Barrier(workers)

    def one(place):
        start.wait()
        try:
            each(place)
        except (BudgetError, ValueError):
            return False
        return True

    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(one, range(workers)))


class Slow(Total):
    """States its sensitivity only after other threads had their turn."""

    def sensitivity(self, adjacency, n_rows):
        threading.Event().wait(0.002)
        return super().sensitivity(adjacency, n_rows)


@pytest.mark.parametrize("count", [1, 3])
def test_threads_cannot_redeem_a_right_more_often_than_it_was_paid_for(count):
    curator = curator_of(Door())
    paid = curator.prepay(Total(), GaussianMechanism(0.1), count)
    before = curator.ledger
    assert ask(8, lambda _: curator.release(Slow(), paid)) == count
    assert curator.ledger is before


def test_threads_cannot_redeem_a_right_while_another_one_does(monkeypatch):
    rights = []
    for gate, query, law in (
        (local_curator(), Said(), LocalMechanism(0.5)),
        (curator_of(Door()), Total(), GaussianMechanism(0.1)),
        (Setting(epsilon=1.0).curator, ColumnTotals(), LateNoise(GaussianMechanism(0.1), 1, 0)),
    ):
        rights.append((gate, query, gate.prepay(query, law, 1)))
        # looked at after the rights that are left, and before they are fewer
        slowly = property(lambda _, turns=law.in_turn: threading.Event().wait(0.01) or turns)
        monkeypatch.setattr(type(law), "in_turn", slowly, raising=False)
    for gate, query, paid in rights:
        assert ask(4, lambda _, each=(gate, query, paid): each[0].release(*each[1:])) == 1


def test_threads_cannot_charge_while_another_one_does(monkeypatch):
    fits, gate = Record.fits, curator_of(Door())
    monkeypatch.setattr(Record, "fits", lambda *facts: threading.Event().wait(0.01) or fits(*facts))
    assert ask(4, lambda _: gate.prepay(Total(), LaplaceMechanism(0.6), 1)) == 1
    assert gate.ledger.releases[0].count == 1


def test_a_shared_budget_that_is_used_up_opens_no_door():
    budget, door = PrivacyBudget(1.0, 1e-6), Door()
    curator_of(door, budget=budget)
    with pytest.raises(BudgetError, match="shared budget"):
        curator_of(door, budget=budget)
    assert door.opened == 0
    assert len(budget.charges) == 1


def test_threads_cannot_prepay_more_than_there_is():
    curator = curator_of(Door())
    assert ask(8, lambda _: curator.prepay(Slow(), LaplaceMechanism(0.4), 1)) == 2
    assert curator.ledger.releases[0].count == 2
    assert curator.ledger.fits(EPSILON, DELTA)


@dataclass(frozen=True)
class Greedy(Total):
    """Asks for another release while it is evaluated."""

    curator: list = field(default_factory=list, compare=False)
    inner: object = LaplaceMechanism(0.6)

    def evaluate(self, rows):
        self.curator[0].release(Total(), self.inner)
        return super().evaluate(rows)


def test_a_query_that_asks_for_more_is_charged_for_all_of_it():
    curator = curator_of(Door())
    query = Greedy(curator=[curator])
    with pytest.raises(BudgetError, match="would exceed"):
        curator.release(query, LaplaceMechanism(0.6))
    assert [r.count for r in curator.ledger.releases] == [1]
    # what was charged stays charged, though nothing came of it
    with pytest.raises(BudgetError, match="would exceed"):
        curator.release(Total(), LaplaceMechanism(0.6))
    frugal = Greedy(curator=[curator], inner=LaplaceMechanism(0.1))
    curator.release(frugal, LaplaceMechanism(0.2))
    assert sum(r.noise.epsilon * r.count for r in curator.ledger.releases) == pytest.approx(0.9)


def test_a_right_cannot_be_redeemed_again_while_it_is_redeemed():
    curator = curator_of(Door())
    paid = curator.prepay(Total(), GaussianMechanism(0.1), 1)
    query = Greedy(curator=[curator], inner=paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        curator.release(query, paid)


def test_what_fails_after_it_was_redeemed_is_gone():
    curator = curator_of(Door())
    paid = curator.prepay(Total(fails=True), GaussianMechanism(0.1), 1)
    with pytest.raises(FloatingPointError, match="midway"):
        curator.release(Total(fails=True), paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        curator.release(Total(), paid)


def test_rows_that_cannot_be_admitted_were_paid_for():
    def shut():
        raise OSError("no rows")

    curator = curator_of(shut)
    with pytest.raises(OSError, match="no rows"):
        curator.release(Total(), LaplaceMechanism(0.6))
    with pytest.raises(BudgetError, match="would exceed"):
        curator.release(Total(), LaplaceMechanism(0.6))


def test_rows_that_are_mapped_are_never_seen_as_they_were():
    seen = []

    class Watching(Total):
        def evaluate(self, rows):
            seen.append(rows.copy())
            return super().evaluate(rows)

    curator = curator_of(Door((0.25, 0.5)), epsilon=1e6)
    curator.release(Watching(), LaplaceMechanism(1.0))
    for _ in range(3):
        curator.map_rows(lambda rows: 2 * rows)
    ask(4, lambda _: curator.release(Watching(), LaplaceMechanism(1.0)))
    np.testing.assert_array_equal(seen[0], [0.25, 0.5])
    assert len(seen) == 5
    for rows in seen[1:]:
        np.testing.assert_array_equal(rows, [2.0, 4.0])


def test_a_map_is_not_lost_while_rows_are_admitted():
    # a descent reads its batches one by one, and others may have their turn in between
    begun, mapped = threading.Event(), threading.Event()

    def slowly():
        begun.set()
        mapped.wait(0.05)
        return np.array([0.25, 0.5])

    curator = curator_of(slowly)
    reading = threading.Thread(target=curator._admitted, args=(None,))
    reading.start()
    begun.wait()
    curator.map_rows(lambda rows: 2 * rows)
    mapped.set()
    reading.join()
    np.testing.assert_array_equal(curator._admitted(None), [0.5, 1.0])


@pytest.mark.parametrize("mechanism", [GaussianMechanism(0.5), LaplaceMechanism(0.3)])
def test_a_bound_on_mu_holds_for_every_kind_of_release(mechanism):
    price = pure_mu(0.3) if isinstance(mechanism, LaplaceMechanism) else 0.5
    for bound, fits in ((price * 0.999, False), (price * 1.001, True)):
        curator = curator_of(Door(), epsilon=100.0, mu=bound)
        assert ask(1, lambda _, gate=curator: gate.release(Total(), mechanism)) == fits
        assert len(curator.ledger.releases) == fits


def test_equal_releases_have_fresh_noise_paid_one_by_one_or_at_once():
    curator = curator_of(Door(), epsilon=1e3)
    paid = curator.prepay(Total(40), GaussianMechanism(0.5), 2)
    made = [curator.release(Total(40), paid) for _ in range(2)]
    made += [curator.release(Total(40), GaussianMechanism(0.5)) for _ in range(2)]
    for k, one in enumerate(made):
        assert not any((one == other).any() for other in made[:k])


def test_the_side_that_charges_can_do_no_more():
    terms = Terms(4, "replace-one", "row", False, "system entropy")
    side = Charging(terms, 1.0, 0.0, None, ())
    side.prepay(Total(), LaplaceMechanism(0.6), 1)
    assert not hasattr(side, "release")
    with pytest.raises(BudgetError, match="would exceed"):
        side.prepay(Total(), LaplaceMechanism(0.6), 1)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_short_floats_round_no_curve(kind):
    # the comparison with a short delta was one in short floats, and too small an epsilon came out
    for mu, delta in ((0.7, 1e-3), (0.3, 0.01), (2.0, 0.002)):
        short, exact = (kind(mu), kind(delta)), (float(kind(mu)), float(kind(delta)))
        assert gdp_epsilon(*short) == gdp_epsilon(*exact)
        assert gdp_delta(kind(mu), kind(1.0)) == gdp_delta(exact[0], 1.0)
        assert gdp_mu(kind(1.0), kind(delta)) == gdp_mu(1.0, exact[1])
        assert pure_mu(kind(mu)) == pure_mu(exact[0])
    assert type(gdp_epsilon(kind(0.7), kind(1e-3))) is float


def test_a_budget_of_a_whole_gaussian_fit_is_filled_by_one_release():
    curator = curator_of(Door(), mu=MU)
    curator.release(Total(), GaussianMechanism(MU))
    for least in (GaussianMechanism(1e-4 * MU), LaplaceMechanism(1e-3)):
        with pytest.raises(BudgetError, match="would exceed"):
            curator.release(Total(), least)
