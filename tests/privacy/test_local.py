# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The gate and reports that rows make on their own: what is charged, refused and added up."""

import math
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import GaussianMechanism, Ledger, LocalMechanism, Sampling, Sensitivity
from skdp.privacy.kernel.ledger import Record
from tests.privacy.test_curator import Total, curator_of

ROWS = np.arange(1.0, 11.0)


class Admitted:
    """Ten rows that can be read in parts and in batches."""

    def __init__(self, rows=ROWS):
        self.rows = rows

    def part(self, start, stop):
        return Admitted(self.rows[start:stop])

    def batch(self, positions, rate):
        return Admitted(self.rows[positions])

    def sum(self):
        return self.rows.sum()


@dataclass(frozen=True)
class Said:
    """Every row says its own value, whatever that costs."""

    price: float = 0.5
    size: int = 2
    bound: float = 16.0
    missing: int = 0
    name: str = "said"
    idealised: bool = False

    def sensitivity(self, adjacency, n_rows):
        return Sensitivity(math.inf, math.inf, self.bound, "claimed", spread=self.price)

    def draw(self, rows, noise, source):
        return np.tile(rows.rows[self.missing :, None], (1, self.size))


def curator(**changes):
    return curator_of(Admitted, n_rows=10, adjacency="local", **{"epsilon": 9.0, **changes})


# -- one release -----------------------------------------------------------------------------


def test_reports_are_on_the_grid_and_the_ledger_has_their_price():
    gate = curator(delta=0.0)
    made = gate.release(Said(), LocalMechanism(0.75))
    assert made.shape == (10, 2)
    (release,) = gate.ledger.releases
    assert (release.adjacency, release.noise.law, release.noise.epsilon) == ("local", "local", 0.5)
    steps = made / release.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))
    np.testing.assert_allclose(made[:, 0], ROWS, atol=release.noise.grid)
    # a millionth of the size of an entry
    assert release.noise.grid < 2.0**-19 * 16 / math.sqrt(2)
    assert gate.ledger.epsilon() == gate.ledger.local_epsilon() == 0.5


@pytest.mark.parametrize(
    "query",
    [
        Said(price=0.8), Said(price=0.0), Said(price=-1.0), Said(price=math.nan),
        Said(price=math.inf), Said(bound=math.inf), Said(bound=0.0), Said(bound=math.nan),
    ],
)  # fmt: skip
def test_what_was_not_granted_or_has_no_bound_is_refused(query):
    gate = curator()
    with pytest.raises(ValueError, match=r"a finite bound and a price of at most 0\.75|not finite"):
        gate.release(query, LocalMechanism(0.75))
    assert not gate.ledger.releases


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1"])
def test_a_price_is_a_positive_number(epsilon):
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        LocalMechanism(epsilon)


def test_a_budget_is_kept():
    gate = curator(epsilon=1.2)
    for _ in range(2):
        gate.release(Said(), LocalMechanism(0.5))
    with pytest.raises(BudgetError, match="would exceed the budget"):
        gate.release(Said(), LocalMechanism(0.5))
    assert gate.ledger.releases[0].count == 2


def test_a_missing_report_is_noticed():
    with pytest.raises(ValueError, match="not one report for every row"):
        curator().release(Said(missing=1), LocalMechanism(1.0))


def test_where_rows_only_report_nothing_else_is_released():
    gate = curator(delta=1e-6)
    with pytest.raises(ValueError, match="only report on their own"):
        gate.release(Total(), GaussianMechanism(0.1))
    assert not gate.ledger.releases


def test_a_row_that_might_report_twice_in_a_round_is_refused():
    with pytest.raises(ValueError, match="report only once"):
        LocalMechanism(1.0, Sampling("with-replacement", 10, 5))


# -- parts, in turn --------------------------------------------------------------------------


def test_disjoint_parts_cost_what_the_dearest_costs():
    gate = curator()
    gate.release(Said(price=0.5), LocalMechanism(1.0), rows=(0, 4))
    gate.release(Said(price=0.75), LocalMechanism(1.0), rows=(4, 10))
    assert gate.ledger.local_epsilon() == gate.ledger.epsilon() == 0.75
    gate.release(Said(price=0.25), LocalMechanism(1.0), rows=(3, 5))
    assert gate.ledger.epsilon() == pytest.approx(1.0)
    gate.release(Said(price=0.25), LocalMechanism(1.0))
    assert gate.ledger.epsilon() == pytest.approx(1.25)


def test_parts_of_two_fits_are_not_parts_of_one():
    ledgers = []
    for rows in ((0, 5), (5, 10)):
        gate = curator()
        gate.release(Said(), LocalMechanism(1.0), rows=rows)
        ledgers.append(Ledger.of(gate.ledger))
    assert (ledgers[0] + ledgers[1]).epsilon() == pytest.approx(1.0)


def test_rows_report_in_turn_pass_after_pass():
    gate = curator()
    paid = gate.prepay(Said(), LocalMechanism(0.5), 2)
    assert gate.ledger.epsilon() == pytest.approx(1.0)
    for rows in [(0, 4), (4, 9), (9, 10), None]:
        made = gate.release(Said(), paid, rows=rows)
        np.testing.assert_allclose(made[:, 0], ROWS[slice(*(rows or (0, 10)))], atol=1e-4)
    (release,) = gate.ledger.releases
    assert release.count == 2
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        gate.release(Said(), paid, rows=(0, 4))


@pytest.mark.parametrize("rows", [(0, 4), (5, 8), (3, 8), (6, 10), None])
def test_no_row_is_passed_over_or_comes_twice(rows):
    gate = curator()
    paid = gate.prepay(Said(), LocalMechanism(0.5), 3)
    gate.release(Said(), paid, rows=(0, 4))
    with pytest.raises(ValueError, match="rows must begin at 4 and end at 10"):
        gate.release(Said(), paid, rows=rows)


def test_parts_of_a_part_are_paid_and_no_more():
    gate = curator()
    paid = gate.prepay(Said(), LocalMechanism(0.5), 1, rows=(2, 6))
    assert gate.release(Said(), paid, rows=(2, 5)).shape == (3, 2)
    with pytest.raises(ValueError, match="end at 6"):
        gate.release(Said(), paid, rows=(5, 7))
    assert gate.release(Said(), paid, rows=(5, 6)).shape == (1, 2)
    # of what was paid for a part, all is that part
    again = gate.prepay(Said(), LocalMechanism(0.5), 1, rows=(2, 6))
    np.testing.assert_allclose(gate.release(Said(), again)[:, 0], ROWS[2:6], atol=1e-4)


def test_another_query_is_not_what_was_paid_for():
    gate = curator()
    paid = gate.prepay(Said(), LocalMechanism(0.5), 2)
    for other in (Said(price=0.4), Said(size=3), Said(bound=3.0), Said(idealised=True)):
        with pytest.raises(BudgetError, match="is not the release that was paid for"):
            gate.release(other, paid)


def test_threads_do_not_share_one_budget(monkeypatch):
    fits, gate, made = Ledger.fits, curator(epsilon=0.5, delta=0.0), []

    def slowly(*facts):
        time.sleep(0.02)
        return fits(*facts)

    def report_once():
        with suppress(BudgetError):
            made.append(gate.release(Said(), LocalMechanism(0.5)))

    monkeypatch.setattr(Record, "fits", slowly)
    threads = [threading.Thread(target=report_once) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert gate.ledger.epsilon() == 0.5
