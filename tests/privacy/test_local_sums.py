# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy sums of reports, rows that report by chance, and what ledgers make of reports."""

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import (
    GaussianMechanism,
    Ledger,
    LocalMechanism,
    ReportedSum,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    SumOfReports,
)
from skdp.privacy.kernel.ledger import most_participations, report_epsilon
from tests.privacy.test_curator import DELTA, Total, curator_of
from tests.privacy.test_local import Admitted, Said, curator


@dataclass(frozen=True)
class SumOf:
    """The sum of reports."""

    size: int = 2
    name: str = "sum of reports"

    def sensitivity(self, adjacency, n_rows):
        return Sensitivity(math.inf, 16.0, 16.0 * n_rows, "by range")

    def total(self, reports):
        return reports.sum(axis=0)


def sums(price=0.5):
    return SumOfReports(SumOf(), Said(price=price))


# -- sums of reports -------------------------------------------------------------------------


def behind(count=20, rate=0.2, mu=0.5, price=0.5, **changes):
    sampling = Sampling("poisson", 10, 10 * rate)
    gate = curator_of(
        Admitted, n_rows=10, adjacency="zero-out", **{"epsilon": 50.0, "delta": DELTA, **changes}
    )
    local, central = LocalMechanism(price, sampling), SampledGaussianMechanism(mu, sampling)
    return gate, gate.prepay(sums(price=price), ReportedSum(central, local), count)


def test_a_sum_of_reports_has_two_prices():
    gate, paid = behind()
    local, central = gate.ledger.releases
    assert local.hidden
    assert not local.of_reports
    assert local.adjacency == "local"
    assert central.of_reports
    assert not central.hidden
    assert central.adjacency == "zero-out"
    assert local.count == central.count == 20
    # whoever sees sums only never sees what one row says
    assert gate.ledger.epsilon(DELTA) < 20 * 0.5 * 0.9
    assert gate.ledger.epsilon(0.0) == math.inf
    # whoever receives the reports may get one in every round, if no chance is allowed for
    assert gate.ledger.local_epsilon() == pytest.approx(10.0)
    assert gate.ledger.local_epsilon(1e-6) < 8.0
    for _ in range(20):
        assert gate.release(sums(), paid).shape == (2,)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        gate.release(sums(), paid)


def test_what_reports_first_is_part_of_what_was_paid_for():
    gate, paid = behind()
    with pytest.raises(BudgetError, match="is not the release that was paid for"):
        gate.release(sums(price=0.4), paid)
    # reports cannot be left out, neither from what is released nor from what is stated
    for other in (SumOf(), Said()):
        with pytest.raises((BudgetError, AttributeError, TypeError)):
            gate.release(other, paid)
    plain = curator().prepay(Said(), LocalMechanism(0.5), 1)
    with pytest.raises(BudgetError):
        gate.release(sums(), plain)
    assert gate.release(sums(), paid).shape == (2,)


def test_a_sum_of_reports_can_be_charged_at_once():
    sampling = Sampling("poisson", 10, 2.0)
    gate = curator_of(Admitted, n_rows=10, adjacency="zero-out", epsilon=50.0)
    law = ReportedSum(SampledGaussianMechanism(0.5, sampling), LocalMechanism(0.5, sampling))
    assert gate.release(sums(), law).shape == (2,)
    assert [(line.hidden, line.of_reports) for line in gate.ledger.releases] == [
        (True, False), (False, True),
    ]  # fmt: skip


def test_reports_of_other_batches_are_refused():
    sampling, other = Sampling("poisson", 10, 2.0), Sampling("poisson", 10, 3.0)
    gate = curator_of(Admitted, n_rows=10, adjacency="zero-out", epsilon=50.0)
    central = SampledGaussianMechanism(0.5, sampling)
    for local in (LocalMechanism(0.5), LocalMechanism(0.5, other), GaussianMechanism(0.5)):
        with pytest.raises(ValueError, match=r"local reports of the rows of the batch|bound"):
            gate.prepay(sums(), ReportedSum(central, local), 3)
    assert not gate.ledger.releases


# -- chance ----------------------------------------------------------------------------------


def exact_tail(k, n, rate):
    """Return the probability of more than k heads, as a fraction."""
    p = Fraction(rate)
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1, n + 1))


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.3, 0.99])
def test_participations_are_those_of_exact_binomials(n, rate, delta):
    k = most_participations(n, rate, delta)
    assert exact_tail(k, n, rate) <= delta
    assert k == 1 or exact_tail(k - 1, n, rate) > delta * (1 - 1e-6)


@pytest.mark.parametrize(("n", "rate"), [(1000, 1e-3), (10**6, 1e-6), (50, 1.0), (1, 0.1)])
def test_without_a_chance_everybody_takes_part_in_all_rounds(n, rate):
    # the probabilities vanish in floats, but not in truth
    assert most_participations(n, rate, 0.0) == n
    assert report_epsilon([], [(0.5, n, rate)], 0.0) >= 0.5 * n


def test_chance_is_paid_with_delta_and_composes():
    alone = report_epsilon([], [(0.5, 1000, 0.01)], 1e-6)
    times = most_participations(1000, 0.01, 1e-6)
    assert times < 30
    assert alone <= 0.5 * times * (1 + 1e-9)
    both = report_epsilon([(1.0, 0.0, 2)], [(0.5, 1000, 0.01), (0.25, 10, 0.5)], 1e-6)
    assert alone + 2.0 < both < 0.5 * 40 + 2.0 + 2.5
    assert report_epsilon([(1.0, 0.0, 2)], [], 0.0) == pytest.approx(2.0)


# -- the ledger ------------------------------------------------------------------------------


def test_reports_stand_beside_releases_of_either_adjacency():
    reported = curator()
    reported.release(Said(), LocalMechanism(0.5))
    for adjacency in ("replace-one", "zero-out"):
        central = curator_of(Admitted, n_rows=10, adjacency=adjacency)
        central.release(Total(), GaussianMechanism(0.1))
        of_rows, of_all = Ledger.of(reported.ledger), Ledger.of(central.ledger)
        for both in (of_rows + of_all, of_all + of_rows):
            assert both.adjacency == adjacency
            assert both.local_epsilon(0.5) == math.inf
            assert central.ledger.epsilon(DELTA) < both.epsilon(DELTA)
            assert both.epsilon(DELTA) <= central.ledger.epsilon(DELTA) + 0.5 + 1e-9
    zero = curator_of(Admitted, n_rows=10, adjacency="zero-out")
    zero.release(Total(), GaussianMechanism(0.1))
    one = curator_of(Admitted, n_rows=10, adjacency="replace-one")
    one.release(Total(), GaussianMechanism(0.1))
    with pytest.raises(ValueError, match="one adjacency"):
        Ledger.of(reported.ledger) + zero.ledger + one.ledger
    assert Ledger().local_epsilon() == Ledger().epsilon() == 0.0


def test_rows_and_clients_do_not_add_up():
    rows, clients = curator(), curator(unit="client")
    for gate in (rows, clients):
        gate.release(Said(), LocalMechanism(0.5))
    assert clients.ledger.unit == "client"
    assert "per client" in repr(Ledger.of(clients.ledger))
    with pytest.raises(ValueError, match="protects one unit"):
        Ledger.of(rows.ledger) + clients.ledger


def test_events_of_reports_are_randomised_responses():
    accounting = pytest.importorskip("dp_accounting")
    gate = curator(delta=1e-9)
    paid = gate.prepay(Said(), LocalMechanism(0.5), 3)
    event = Ledger.of(gate.ledger).dp_event
    accountant = accounting.pld.PLDAccountant(accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(event)
    assert accountant.get_epsilon(1e-12) == pytest.approx(1.5, rel=1e-3)
    assert paid is not None
    # what nobody sees is no event
    hidden, _ = behind()
    text = repr(Ledger.of(hidden.ledger).dp_event)
    assert "PoissonSampled" in text
    assert "RandomizedResponse" not in text


def test_the_ledger_says_who_reports():
    gate, _ = behind()
    ledger = Ledger.of(gate.ledger)
    for text in (repr(ledger), ledger._repr_html_()):
        assert "drawn by every row on its own" in text
        assert "local" in text
    frame = ledger.to_frame()
    assert list(frame["hidden"]) == [True, False]
