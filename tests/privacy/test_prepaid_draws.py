# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator and draws that are paid for beforehand: composed at once, with every check."""

from dataclasses import dataclass

import numpy as np
import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import (
    ExponentialMechanism,
    LaplaceMechanism,
    ObjectivePerturbation,
    Sensitivity,
)
from skdp.privacy.kernel.charging import Prepaid
from skdp.privacy.laws.calibration import zcdp_rho
from tests.privacy.test_curator import DELTA, EPSILON, Door, curator_of
from tests.privacy.test_curator_rows import Draw, Perturbed

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
