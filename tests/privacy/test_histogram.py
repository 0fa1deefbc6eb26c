# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Histograms of the curator and their stability."""

import itertools
import json
import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from skdp.exceptions import BudgetError
from skdp.privacy import GaussianMechanism, Ledger, StabilityHistogram, gdp_delta, gdp_mu
from skdp.privacy.books.ledger import release_event
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from skdp.privacy.laws import histogram
from skdp.privacy.laws.histogram import SparseSensitivity, _distance, _stray
from tests import _histograms
from tests.privacy.test_curator import Door, Total, curator_of

# The histogram with a threshold: its price against exact laws, and the gate.


BUDGETS = [(0.1, 1e-6), (1.0, 1e-9), (8.0, 1e-5), (0.5, 0.05)]
NORMS = {(1, True): 1.0, (1, False): 1.0, (2, True): math.sqrt(2.0), (2, False): 2.0}
every_budget = pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
every_kind = pytest.mark.parametrize(("rows", "nonnegative"), NORMS)


def facts_of(rows, nonnegative, columns, bound=1000.0):
    l2 = NORMS[rows, nonnegative]
    return SparseSensitivity(
        math.inf, l2, bound, "test", rows=rows, columns=columns, nonnegative=nonnegative
    )


@lru_cache
def calibrated(epsilon, delta, *kind):
    return StabilityHistogram(epsilon, delta).calibrate(facts_of(*kind), 2**40)


def rows_with(columns, rng, parts):
    """Yield (values on columns of its own, length on others) for rows that could be worst."""
    for a in parts:
        # one column is left for the others unless a = 1
        own = columns if a == 1 else columns - 1
        if own == 0:
            if a == 0:
                yield np.zeros(0), 1.0
            continue
        left = math.sqrt(1 - a * a)
        yield np.full(own, a / math.sqrt(own)), left
        yield np.append(np.full(own - 1, 1e-300), a), left
        mixed = np.abs(rng.normal(size=own))
        yield a * mixed / np.linalg.norm(mixed), left


def divergences(noise, epsilon, rows, nonnegative, columns):
    """Yield the divergences of neighbours whose common columns are far above the threshold."""
    rng = np.random.default_rng(0)
    nothing = [(np.zeros(0), 0.0)]
    others = list(rows_with(columns, rng, (0, 0.5, 1))) if rows == 2 else nothing
    for own, length in rows_with(columns, rng, np.linspace(0, 1, 41)):
        for own_too, length_too in others:
            # at a right angle, or opposite
            gap = math.hypot(length, length_too) if nonnegative else length + length_too
            p, q = _histograms.seen(own, noise), _histograms.seen(own_too, noise)
            for first, second in ((p, q), (q, p)):
                inner = epsilon + math.log1p(-second) - math.log1p(-first)
                yield first + (1 - first) * gdp_delta(gap / noise.scale, inner)


@pytest.mark.sample(2)
@every_budget
@every_kind
@pytest.mark.parametrize("columns", [1, 3, 300])
def test_the_price_is_kept_on_worst_pairs_and_not_overpaid(
    epsilon, delta, rows, nonnegative, columns
):
    noise = calibrated(epsilon, delta, rows, nonnegative, columns)
    largest = max(divergences(noise, epsilon, rows, nonnegative, columns))
    assert 0.8 * delta < largest <= delta


@pytest.mark.sample(1)
@every_budget
@every_kind
def test_a_common_column_near_the_threshold_gives_away_less(epsilon, delta, rows, nonnegative):
    noise = calibrated(epsilon, delta, rows, nonnegative, 3)
    nothing = np.zeros(0)
    for a, base in itertools.product((0.0, 0.3, 0.8, 1.0), (0.0, 0.5, 0.97, 1.5, 4.0)):
        center, gap = base * noise.threshold, NORMS[rows, nonnegative] - 1 + math.sqrt(1 - a * a)
        if rows == 2 and nonnegative:
            gap = math.sqrt(2 - a * a)
        strays = np.full(2, a / math.sqrt(2))
        means = (center + gap / 2, center - gap / 2)
        for given in ((means, (strays, nothing)), (means[::-1], (nothing, strays))):
            assert _histograms.exact(*given, noise, epsilon) <= delta * (1 + 1e-6)


@every_budget
def test_one_column_under_zero_out_has_a_closed_form(epsilon, delta):
    noise = calibrated(epsilon, delta, 1, True, 1)
    # a row is either alone with its column or not: nothing is split
    sigma = 1 / gdp_mu(epsilon + math.log1p(-min(delta, -math.expm1(-epsilon / 2))), delta)
    assert noise.scale == pytest.approx(sigma, rel=1e-3)
    tail = noise.threshold - 1
    assert tail >= -noise.scale * ndtri(min(delta, 0.5 * epsilon))
    assert tail == pytest.approx(max(2 * sigma, -sigma * ndtri(delta)), rel=2e-3)


@pytest.mark.covering
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 17])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 10.0])
def test_the_bound_on_strays_holds_for_any_row(nonnegative, columns, sigma):
    rng = np.random.default_rng(0)
    noise = replace(calibrated(1.0, 1e-6, 1, nonnegative, 1), scale=sigma)
    for tau in (1 + 2 * sigma, 1 + 3 * sigma, 1.2 + 5 * sigma):
        noise = replace(noise, threshold=tau)
        for a in (1e-9, 0.01, 0.5, 0.99, 1.0):
            x = rng.normal(size=(50, columns)) * rng.choice([1e-3, 1.0], size=(50, columns))
            x = np.vstack([x, np.ones(columns), np.eye(columns)])
            x *= a / np.linalg.norm(x, axis=1, keepdims=True)
            most = max(_histograms.seen(row, noise) for row in x)
            bound = _stray(np.array([a]), columns, sigma, tau, nonnegative)[0]
            assert most <= bound
            assert bound <= 2.1 * most


def test_what_depends_on_the_part_of_a_row_is_monotone():
    a = np.linspace(0, 1, 200)
    for kind in NORMS:
        assert (np.diff(_distance(a, facts_of(*kind, 3))) <= 0).all()
        for columns in (1, 2, 50):
            assert (np.diff(_stray(a, columns, 2.0, 6.0, kind[1])) >= 0).all()
    np.testing.assert_array_equal(_stray(a, 0, 1.0, 5.0, True), 0.0)


@pytest.mark.parametrize("columns", [1, 10, 1000])
def test_rounding_to_the_grid_is_paid_for(columns):
    # a bound that large makes the grid coarse
    fine, coarse = (
        StabilityHistogram(1.0, 1e-6).calibrate(facts_of(2, False, columns, bound), 1)
        for bound in (10.0, 2.0**47)
    )
    assert coarse.grid == 2.0**-4 > fine.grid
    step = coarse.grid * math.sqrt(2 * columns)
    assert coarse.sensitivity == pytest.approx(2 * (1 + FLOAT_SLACK) + step)
    assert coarse.threshold - coarse.grid > fine.threshold
    # a value that ends up beyond the threshold was less than a step below it
    noise = replace(coarse, threshold=coarse.threshold - coarse.grid)
    assert _histograms.seen(np.ones(1), noise) <= 1e-6


def test_more_columns_or_less_budget_raise_the_threshold():
    taus = [calibrated(1.0, 1e-6, 2, False, s).threshold for s in (1, 2, 8, 64, 10**6)]
    taus += [calibrated(e, 1e-6, 2, False, 10**6).threshold for e in (0.5, 0.1)]
    assert sorted(taus) == taus
    kinds = [calibrated(1.0, 1e-6, *kind, 4).threshold for kind in NORMS]
    assert kinds[0] < kinds[1] < kinds[3]
    assert kinds[0] < kinds[2] < kinds[3]


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (1.0, 0.0, "delta must be greater than 0"),
        (1.0, 1.0, r"delta must be a number in \[0, 1\)"),
        (1.0, math.nan, "delta"),
        (0.0, 1e-6, "epsilon"),
        (math.inf, 1e-6, "epsilon"),
        (1e-12, 1e-300, "too small"),
        (5e-324, 5e-324, "too small"),
    ],
)
def test_budgets_that_make_no_sense(epsilon, delta, message):
    with pytest.raises(ValueError, match=message):
        StabilityHistogram(epsilon, delta)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *itertools.product([1e-6, 1e-2, 50.0, 1e12, 1e300], [1e-20, 0.3, 0.9, 1 - 1e-9]),
        *itertools.product([1e-2, 50.0], [1e-300]),
    ],
)
def test_extreme_budgets_are_served(epsilon, delta):
    with np.errstate(all="raise"):
        noise = calibrated(epsilon, delta, 2, False, 7)
    assert 1 + 2 * noise.scale < noise.threshold < 1e12
    assert (noise.epsilon, noise.delta, noise.mu) == (epsilon, delta, 0.0)


# The curator: sums over columns that rows touch, released beyond a threshold.


@dataclass(frozen=True)
class Touched:
    """Sums over told columns."""

    pair: tuple = ((3, 2**39), (500.0, -500.0))
    nonnegative: bool = False
    name: str = "touched"
    size: int = 2**40

    def sensitivity(self, adjacency, n_rows):
        return facts_of(1 if adjacency == "zero-out" else 2, self.nonnegative, 4)

    def evaluate(self, rows):
        return self.pair


PRICE = StabilityHistogram(1.0, 1e-6)


def release(query):
    curator = curator_of(Door())
    return curator, curator.release(query, PRICE)


def test_what_is_beyond_the_threshold_is_released_with_its_columns():
    curator, (columns, values) = release(Touched())
    np.testing.assert_array_equal(columns, [3, 2**39])
    (entry,) = curator.ledger.releases
    np.testing.assert_allclose(values, [500, -500], atol=8 * entry.noise.scale)
    steps = values / entry.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_only_positive_sums_are_released_if_no_entry_is_negative():
    columns, values = release(Touched(nonnegative=True))[1]
    assert columns.tolist() == [3]
    assert values.shape == (1,)


@pytest.mark.parametrize("pair", [((), ()), ((5, 6), (0.0, 0.5))])
def test_nothing_is_released_of_columns_near_zero(pair):
    columns, values = release(Touched(pair))[1]
    assert columns.dtype == np.int64
    assert len(columns) == len(values) == 0


@pytest.mark.parametrize(
    "pair",
    [
        ((3,), (1.0, 2.0)),
        ((3, 3), (1.0, 2.0)),
        ((4, 3), (1.0, 2.0)),
        ((-1, 3), (1.0, 2.0)),
        ((3, 2**40), (1.0, 2.0)),
        ((3, 4), 1.0),
    ],
)
def test_a_query_that_breaks_its_form_is_refused(pair):
    with pytest.raises(ValueError, match="sorted columns, and one sum"):
        release(Touched(pair))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_sums_that_are_not_finite_are_clamped(value):
    columns, values = release(Touched(((7,), (value,))))[1]
    assert np.isfinite(values).all()
    assert len(columns) == (not math.isnan(value))


def test_the_ledger_has_the_price_and_the_threshold():
    curator, _ = release(Touched())
    (entry,) = curator.ledger.releases
    noise = entry.noise
    assert (entry.query, entry.size, entry.stated_sensitivity) == ("touched", 2**40, 2.0)
    assert (noise.law, noise.mu, noise.epsilon, noise.delta) == ("gaussian", 0.0, 1.0, 1e-6)
    assert curator.ledger.epsilon(1e-6) == 1.0
    assert curator.ledger.epsilon(0.99e-6) == math.inf
    assert f"only beyond {noise.threshold:.6g}" in repr(Ledger.of(curator.ledger))
    one_sided = release(Touched(nonnegative=True))[0].ledger
    assert f"only above {one_sided.releases[0].noise.threshold:.6g}" in repr(Ledger.of(one_sided))
    assert "beyond" in Ledger.of(curator.ledger)._repr_html_()
    stored = json.loads(json.dumps(asdict(curator.ledger)))
    assert stored["releases"][0]["noise"]["threshold"] == noise.threshold
    assert "UnsupportedDpEvent" in type(release_event(entry)).__name__


def test_overspending_is_refused_and_two_releases_add_up():
    door = Door()
    curator = curator_of(door)
    with pytest.raises(BudgetError):
        curator.release(Touched(), StabilityHistogram(1.001, 1e-6))
    with pytest.raises(BudgetError):
        curator.release(Touched(), StabilityHistogram(1.0, 1.001e-6))
    assert door.opened == 0
    for _ in range(2):
        curator.release(Touched(), StabilityHistogram(0.5, 5e-7))
    with pytest.raises(BudgetError):
        curator.release(Total(), GaussianMechanism(1e-3))
    assert curator.ledger.releases[0].count == 2
    assert 0.9 < curator.ledger.epsilon(1e-6) <= 1.0


def test_a_column_of_one_row_is_released_as_seldom_as_promised():
    curator = curator_of(Door(), epsilon=1e9, delta=0.99, adjacency="zero-out")
    query = Touched(((9,), (1.0,)), nonnegative=True)
    object.__setattr__(query, "sensitivity", lambda *_: facts_of(1, True, 1))
    right = curator.prepay(query, StabilityHistogram(1.0, 0.02), 40)
    hits = sum(len(curator.release(query, right)[0]) for _ in range(40))
    assert hits < 15
    # 10,000 columns at once are the same as so many releases, but for their price
    many = Touched((range(20_000), np.ones(20_000)), nonnegative=True)
    object.__setattr__(many, "sensitivity", lambda *_: facts_of(1, True, 1))
    columns, _ = curator.release(many, StabilityHistogram(1.0, 0.02))
    assert 300 < len(columns) < 500
    noise = curator.ledger.releases[-1].noise
    assert ndtr((1 - noise.threshold) / noise.scale) == pytest.approx(0.02, rel=1e-3)


def test_other_releases_have_no_threshold():
    curator = curator_of(Door())
    curator.release(Total(), GaussianMechanism(0.1))
    noise = curator.ledger.releases[0].noise
    assert noise.threshold is None
    assert "only" not in repr(Ledger.of(curator.ledger))
    # without one nothing would be released
    assert histogram.beyond(np.arange(3), np.full(3, 1e9), noise)[0].size == 0
