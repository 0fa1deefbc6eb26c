# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Local reports: charges, sums, amplification by shuffling."""

import inspect
import itertools
import math
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.exceptions import BudgetError
from skdp.local import shuffled_epsilon
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
from skdp.privacy.kernel.ledger import Record, most_participations, report_epsilon
from skdp.privacy.laws import local_reports
from skdp.privacy.laws.local_reports import _hidden_delta, shuffled_curve
from tests.privacy.test_curator import DELTA, Total, curator_of

# The gate and reports that rows make on their own: what is charged, refused and added up.


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


# Noisy sums of reports, rows that report by chance, and what ledgers make of reports.


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


@pytest.mark.sample(6, 35)
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
    rows, clients = curator(), curator(unit="group")
    for gate in (rows, clients):
        gate.release(Said(), LocalMechanism(0.5))
    assert clients.ledger.unit == "group"
    assert "per group" in repr(Ledger.of(clients.ledger))
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


# Amplification by shuffling, against enumeration, and never rounded inward.


mp = mpmath.mp.clone()
mp.dps = 40
FRACTIONS = [0.0, 0.1, 0.3, 0.6, 0.9, 0.999]


def add_up(laws):
    """Return the law of how often each value is reported, for independent laws of reports."""
    counts = {(0,) * len(laws[0]): 1.0}
    for law in laws:
        new = {}
        for state, weight in counts.items():
            for value, chance in enumerate(law):
                key = (*state[:value], state[value] + 1, *state[value + 1 :])
                new[key] = new.get(key, 0.0) + weight * chance
        counts = new
    return counts


def hockey_stick(P, Q, at):
    return sum(max(p - math.exp(at) * Q.get(key, 0.0), 0.0) for key, p in P.items())


def shuffled_delta(first, second, others, at):
    """Return the exact delta of shuffled reports, one of which has one of two laws."""
    P, Q = add_up([first, *others]), add_up([second, *others])
    return max(hockey_stick(P, Q, at), hockey_stick(Q, P, at))


def pair_delta(epsilon, n_reports, at, rate=None, victim=True):
    """Return the delta of the dominating pair by its definition, with 40 digits."""
    epsilon, at = mp.mpf(epsilon), mp.mpf(at)
    honest = 1 / (1 + mp.exp(-epsilon))
    rate = 2 / (mp.exp(epsilon) + 1) if rate is None else mp.mpf(rate)
    total = mp.mpf(0)
    for c in range(n_reports):
        chance = mp.binomial(n_reports - 1, c) * rate**c * (1 - rate) ** (n_reports - 1 - c)
        for k in range(c + 2):
            ones = honest * mp.binomial(c, k - 1) if k else mp.mpf(0)
            zeros = (1 - honest) * mp.binomial(c, k)
            mirrored = (1 - honest) * (mp.binomial(c, k - 1) if k else 0)
            mirrored += honest * mp.binomial(c, k)
            total += chance * max(ones + zeros - mp.exp(at) * mirrored, 0) / mp.mpf(2) ** c
    return total


@pytest.mark.sample(1)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 6.0, 30.0])
@pytest.mark.parametrize("n_reports", [1, 2, 3, 7, 25])
def test_the_curve_is_that_of_the_pair(epsilon, n_reports):
    curve = shuffled_curve(epsilon, n_reports, 1e-12)
    for fraction in FRACTIONS:
        exact = float(pair_delta(epsilon, n_reports, fraction * epsilon))
        assert exact <= curve(fraction * epsilon) <= exact * (1 + 1e-8) + 1e-14


def random_laws(rng, n_laws, n_values):
    """Return laws with all ratios in a range, and the epsilon that they have together."""
    laws = rng.dirichlet(np.ones(n_values)) * np.exp(
        rng.integers(0, 2, (n_laws, n_values)) * rng.uniform(0.1, 4)
    )
    laws /= laws.sum(axis=1, keepdims=True)
    return laws, float(np.log(laws.max(axis=0) / laws.min(axis=0)).max())


@pytest.mark.sample(6, 30)
@pytest.mark.parametrize("seed", range(40))
def test_no_randomiser_is_worse(seed):
    """Any laws of the others, all different, and any two of the row."""
    rng = np.random.default_rng(seed)
    laws, epsilon = random_laws(rng, int(rng.integers(2, 6)), int(rng.integers(2, 5)))
    curve = shuffled_curve(epsilon, len(laws) - 1, 1e-9)
    for fraction in FRACTIONS:
        at = fraction * epsilon
        exact = shuffled_delta(laws[0], laws[1], list(laws[2:]), at)
        assert exact <= curve(at) * (1 + 1e-12) + 1e-15


def with_blanks(epsilon, blank):
    """Return the laws of a randomiser that says nothing with a chance, and what the others do.

    Nobody else is blank more often than he must be, and else reports what the row hardly ever
    does: the blanks betray as much as they can.
    """
    e = math.exp(epsilon)
    # the row's chance of the other value, such that the budget is kept
    rest = (1 - blank - (1 - blank / e) / e) / (e + 1 - 2 / e)
    row = [e * rest, rest, blank]
    other = [rest, rest, blank / e]
    left = 1 - sum(other)
    return [*row, left / e], [row[1], row[0], blank, left / e], [*other, left]


@pytest.mark.sample(2)
@pytest.mark.parametrize("blank", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 5.0])
def test_blank_reports_do_not_help_the_adversary(blank, epsilon):
    first, second, other = with_blanks(epsilon, blank)
    assert sum(first) == pytest.approx(1.0)
    for n_reports in (2, 5, 12):
        curve = shuffled_curve(epsilon, n_reports, 1e-9)
        for fraction in FRACTIONS:
            at = fraction * epsilon
            exact = shuffled_delta(first, second, [other] * (n_reports - 1), at)
            assert exact <= curve(at) * (1 + 1e-12) + 1e-15
            if not blank and epsilon == 5.0 and fraction < 0.7:
                assert exact >= 0.9 * curve(at)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_binary_randomised_response_comes_close(epsilon):
    p = 1 / (1 + math.exp(-epsilon))
    first, second = [p, 1 - p], [1 - p, p]
    for n_reports in (2, 10, 60):
        others = [first, second] * n_reports
        exact = shuffled_delta(first, second, others[: n_reports - 1], 0.1)
        bound = shuffled_curve(epsilon, n_reports, 1e-9)(0.1)
        assert 0.6 * bound <= exact <= bound


def test_drawn_pair_attains_the_curve():
    rng = np.random.default_rng(0)
    epsilon, n_reports, at, draws = 2.0, 200, 0.3, 10**6
    hiding = rng.binomial(n_reports - 1, 2 / (math.exp(epsilon) + 1), draws)
    ones = rng.binomial(hiding, 0.5) + (rng.uniform(size=draws) < 1 / (1 + math.exp(-epsilon)))
    zeros = hiding + 1 - ones
    e = math.exp(epsilon)
    # the odds of the pair, given how many answers there are
    odds = (e * ones + zeros) / (ones + e * zeros)
    excess = np.maximum(1 - math.exp(at) / odds, 0)
    curve = shuffled_curve(epsilon, n_reports, 1e-9)(at)
    assert excess.mean() == pytest.approx(curve, abs=4 * excess.std() / math.sqrt(draws))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("epsilon", "n_reports", "expected"),
    [(4.0, 10**5, 0.1182), (2.0, 10**4, 0.1144), (8.0, 10**5, 1.1766), (8.0, 10**6, 0.3037),
     (6.0, 10**5, 0.3570), (1.0, 10**6, 0.0035)],
)  # fmt: skip
def test_anchors(epsilon, n_reports, expected):
    assert shuffled_epsilon(epsilon, n_reports, 1e-6) == pytest.approx(expected, abs=6e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("n_reports", [10**4, 10**5, 10**6, 10**8])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_closed_formulas_lie_above(epsilon, n_reports):
    e, delta = math.exp(epsilon), 1e-6
    newer = math.log1p(
        (e - 1) * (4 * math.sqrt(2 * math.log(4 / delta) / ((e + 1) * n_reports)) + 4 / n_reports)
    )
    x = 8 * math.sqrt(e * math.log(4 / delta) / n_reports) + 8 * e / n_reports
    older = math.log1p((1 - 1 / e) / (1 + 1 / (e * (1 + x))) * x)
    assert 2.0 * shuffled_epsilon(epsilon, n_reports, delta) < newer < older


def shuffling_exact_tail(heads, coins):
    """Return the probability of at least so many heads, more than half, by continued fraction."""
    a, b, x = mp.mpf(heads), mp.mpf(coins - heads + 1), mp.mpf(1) / 2
    c, d = mp.mpf(1), 1 / (1 - (a + b) * x / (a + 1))
    total, m = d, 1
    while True:
        before = total
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d), 1 + term / c
            total *= c * d
        if abs(total / before - 1) < mp.mpf(10) ** -33:
            break
        m += 1
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return mp.exp((a + b) * mp.log(x) - log_beta) * total / a


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("coins", "far"),
    [(10**2, 2.0), (10**2, 5.0)]
    + [(coins, far) for coins in (10**4, 10**6, 10**8, 10**9) for far in (2.0, 5.0, 12.0)],
)
def test_sums_of_tails_are_rounded_up_by_little(coins, far):
    """Where two tails cancel, against 40 digits."""
    epsilon = 1.0
    e = mp.exp(epsilon)
    heads = int(coins / 2 + far * math.sqrt(coins) / 2) + 1
    # the number at which the likelihood ratio is that of half a head less
    k = mp.mpf(heads) - mp.mpf(1) / 2
    at = mp.log((e * k + coins + 1 - k) / (k + e * (coins + 1 - k)))
    at = float(at)
    gain, loss = (e - mp.exp(at)) / (e + 1), (mp.exp(at) * e - 1) / (e + 1)
    exact = gain * shuffling_exact_tail(heads - 1, coins) - loss * shuffling_exact_tail(
        heads, coins
    )
    ratio = float(_hidden_delta(at, epsilon, np.array([float(coins)]))[0] / exact)
    assert 1.0 <= ratio < 1.0 + 1e-11 * coins / far


@pytest.mark.parametrize("far", [3.0, 8.0, 20.0])
@pytest.mark.parametrize("coins", [10**3, 10**5, 10**7, 2 * 10**8, 10**9])
def test_the_margin_of_a_tail_exceeds_its_error(coins, far):
    """Whichever scipy it is: before 1.17 the other incomplete beta function is not good enough."""
    heads = int(coins / 2 + far * math.sqrt(coins) / 2) + 1
    found = local_reports._coins(np.array([float(heads)]), np.array([float(coins)]))[0]
    error = abs(float(found / shuffling_exact_tail(heads, coins)) - 1.0)
    assert 400 * error < 1e-13 + 3e-14 * math.sqrt(coins)


@pytest.mark.full
@given(
    epsilon=st.floats(1e-3, 12.0), n_reports=st.integers(1, 10**7), exponent=st.integers(-12, -1)
)
@settings(max_examples=20, deadline=None)
def test_monotone_and_never_above_the_report(epsilon, n_reports, exponent):
    value = shuffled_epsilon(epsilon, n_reports, 10.0**exponent)
    assert 0.0 <= value <= epsilon
    slack = 1 + 1e-4
    assert shuffled_epsilon(epsilon, 2 * n_reports, 10.0**exponent) <= value * slack
    assert shuffled_epsilon(epsilon, n_reports, 10.0 ** (exponent - 1)) * slack >= value
    assert shuffled_epsilon(epsilon * 1.1, n_reports, 10.0**exponent) * slack >= value


@pytest.mark.full
def test_extreme_numbers():
    assert shuffled_epsilon(3.0, 10**6, 0.0) == 3.0
    # a report alone: the best conversion of pure privacy
    alone = shuffled_epsilon(3.0, 1, 0.01)
    exact = 3.0 + math.log1p(-0.01 * (1 + math.exp(-3.0)))
    assert exact <= alone <= exact * (1 + 1e-8)
    assert shuffled_epsilon(0.01, 10, 0.1) == 0.0
    assert shuffled_epsilon(50.0, 10**5, 1e-6) == pytest.approx(50.0, abs=1e-5)
    assert shuffled_epsilon(1e6, 10**9, 0.5) == pytest.approx(1e6, abs=1.0)
    assert shuffled_epsilon(1.0, 100, 1e-250) <= 1.0
    assert shuffled_epsilon(1.0, 100, 5e-324) == 1.0
    assert shuffled_epsilon(1e-12, 100, 1e-3) == 0.0
    assert shuffled_epsilon(1.0, 10**30, 1e-6) == shuffled_epsilon(1.0, 10**9, 1e-6)
    assert shuffled_epsilon(np.float32(1.0), np.int64(100), 1e-6) <= 1.0


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((0.0, 10, 1e-6), "epsilon"), ((-1.0, 10, 1e-6), "epsilon"), ((math.nan, 10, 0), "epsilon"),
        ((math.inf, 10, 1e-6), "epsilon"), (("1", 10, 1e-6), "epsilon"),
        ((1.0, 0, 1e-6), "n_reports"), ((1.0, 2.5, 1e-6), "n_reports"),
        ((1.0, True, 1e-6), "n_reports"), ((1.0, math.nan, 1e-6), "n_reports"),
        ((1.0, 10, 1.0), "delta"), ((1.0, 10, -1e-9), "delta"), ((1.0, 10, math.nan), "delta"),
    ],
)  # fmt: skip
def test_bad_input(given, name):
    with pytest.raises(ValueError, match=name):
        shuffled_epsilon(*given)


def mutant(old, new):
    source = inspect.getsource(local_reports)
    assert source.count(old) == 1
    space = {"__name__": "mutant"}
    exec(compile(source.replace(old, new), "mutant", "exec"), space)
    return space


def test_the_older_rate_is_seen_to_be_loose():
    older = mutant("rate = 2.0 *", "rate = (1.0 + math.exp(-epsilon)) *")
    assert older["shuffled_epsilon"](4.0, 10**5, 1e-6) == pytest.approx(0.1698, abs=6e-5)
    assert older["shuffled_epsilon"](2.0, 10**4, 1e-6) == pytest.approx(0.155, abs=6e-4)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the row counted among those who hide it; too many who hide; the report left out
        ("_MOST_REPORTS) - 1)", "_MOST_REPORTS))"),
        ("rate = 2.0 *", "rate = 2.2 *"),
        ("heads = hiding + 1.0", "heads = hiding + 2.0"),
        ("gain * _coins(heads - 1.0", "gain * _coins(heads"),
        ("np.maximum(np.ceil(", "np.maximum(np.ceil(-3.0 + "),
    ],
)
def test_mutants_fall_below_the_exact_curve(old, new):
    bad = mutant(old, new)["shuffled_curve"]
    grid = list(itertools.product([0.5, 2.0], [2, 3, 12], FRACTIONS))
    exact = {case: float(pair_delta(case[0], case[1], case[2] * case[0])) for case in grid}
    good = [shuffled_curve(e, n, 1e-12)(f * e) >= exact[e, n, f] for e, n, f in grid]
    assert all(good)
    assert any(bad(e, n, 1e-12)(f * e) < exact[e, n, f] * (1 - 1e-6) for e, n, f in grid)
