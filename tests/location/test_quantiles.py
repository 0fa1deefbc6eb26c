# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Several quantiles at once: parts of the rows, their prices, order, ties, and planted bugs."""

import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from skdp import DPQuantile
from skdp._quantiles import PartRank, PartRanks, RankRows
from skdp.audit import trace_privacy
from skdp.exceptions import NoisyEstimateWarning
from skdp.io import stream_chunks
from skdp.location import _quantile
from skdp.location._quantile import QuantilesInTurn, QuantilesPlan, plan_quantiles
from skdp.privacy import ExponentialMechanism
from skdp.privacy.kernel.samplers import make_bits

DECILES = np.arange(1, 10) / 10
QUARTILES = [0.25, 0.5, 0.75]
rng = np.random.default_rng(0)
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


def fractions(quantiles):
    return tuple(Fraction(float(one)).limit_denominator(100) for one in quantiles)


def off(column, quantile, released):
    """Return by how many ranks a released value misses its quantile."""
    below, upto = np.sum(column < released), np.sum(column <= released)
    return max(below - quantile * len(column), quantile * len(column) - upto, 0.0)


@pytest.mark.parametrize("bounds", [(-10.0, 10.0), None], ids=["bounds", "floats"])
def test_with_a_huge_budget_they_are_the_quantiles(bounds):
    X = rng.normal(size=(400, 2))
    order = [0.75, 0.1, 0.5, 0.1, 0.9]
    released = DPQuantile(1e6, quantile=order, bounds=bounds).fit(X).location_
    assert released.shape == (5, 2)
    for row, quantile in zip(released, order, strict=True):
        for column, value in zip(X.T, row, strict=True):
            assert off(column, quantile, value) <= 1
    np.testing.assert_array_equal(released[1], released[3])


def test_they_are_never_out_of_order():
    columns = {
        "tied": rng.integers(0, 3, size=(200, 1)).astype(float),
        "equal": np.full((200, 1), 7.0),
        "few": rng.normal(size=(4, 1)),
    }
    for X in columns.values():
        for bounds in ((-1.0, 8.0), None):
            model = DPQuantile(0.5, quantile=DECILES, bounds=bounds)
            with pytest.warns(NoisyEstimateWarning):
                released = model.fit(X).location_
            assert (np.diff(released, axis=0) >= 0).all()


@pytest.mark.parametrize(
    ("values", "bounds", "n_rows", "said"),
    [
        # the first of quartiles is 15 rows from the end for every 4 temperatures
        (float, None, 150, "is mostly noise.* or give the tightest bounds"),
        (float, (0, 1), 80, "is mostly noise.* and the tightest bounds"),
        (float, (0, 1), 200, "is noise if bounds are more than some 700 times as wide"),
        (float, (0, 1), 260, None),
        (int, (0, 4), 80, "is mostly noise"),
        # five whole numbers have bounds no wider than five of them
        (int, (0, 4), 130, None),
        (int, (0, 10**6), 130, "is noise if bounds are more than some 8 times as wide"),
    ],
)
def test_too_few_rows_are_told_by_how_wide_bounds_may_be(values, bounds, n_rows, said):
    X = rng.uniform(0, 5, size=(n_rows, 1)).astype(values)
    model = DPQuantile(1.0, quantile=QUARTILES, bounds=bounds)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X)
    few = [str(one.message) for one in seen if "are too few for" in str(one.message)]
    assert bool(few) == bool(said)
    if said:
        assert re.search(said, few[0])


def test_ties_are_split_between_parts():
    # two thirds of the rows are zero: parts without ties would put the quartile among the others
    X = np.where(np.arange(3000)[:, None] % 3 < 2, 0.0, rng.lognormal(3, 1, size=(3000, 1)))
    for bounds in ((0.0, 1e6), None):
        released = DPQuantile(4.0, quantile=[0.1, 0.3, 0.5, 0.6, 0.9], bounds=bounds).fit(X)
        np.testing.assert_array_equal(released.location_[:4, 0], 0.0)
        assert off(X[:, 0], 0.9, released.location_[4, 0]) < 60


@pytest.mark.full
def whole_table(kind, X):
    if kind == "pandas":
        pd = pytest.importorskip("pandas")
        return pd.DataFrame({"a": pd.array(X[:, 0], dtype="Int64"), "b": X[:, 1] / 2})
    if kind == "polars":
        pl = pytest.importorskip("polars")
        return pl.DataFrame({"a": X[:, 0], "b": X[:, 1] / 2})
    if kind == "arrow":
        pa = pytest.importorskip("pyarrow")
        return pa.table({"a": X[:, 0], "b": X[:, 1] / 2})
    return X.astype(kind)


@pytest.mark.parametrize("kind", ["int8", "uint64", "pandas", "polars", "arrow"])
def test_of_whole_numbers_whole_numbers_are_drawn(kind):
    X = np.random.default_rng(0).poisson(3, size=(1000, 2)).clip(0, 9)
    model = DPQuantile(1.0, quantile=DECILES, bounds=(-0.5, 50.7)).fit(whole_table(kind, X))
    found = model.location_[:, 0]
    np.testing.assert_array_equal(found, np.rint(found))
    # a value that many rows share has the ranks of all of them
    assert np.mean([off(X[:, 0], *pair) for pair in zip(DECILES, found, strict=True)]) < 40
    if kind in ("pandas", "polars", "arrow"):
        assert (model.location_[:, 1] % 0.5 != 0).any()
    # without bounds the nearest whole number
    found = DPQuantile(4.0, quantile=0.5).fit(whole_table(kind, X)).location_
    assert found[0] in (2, 3, 4)


def test_a_list_does_not_say_that_it_has_whole_numbers():
    # one entry would decide about the grid
    X = np.random.default_rng(0).integers(0, 2, size=(40, 1)).tolist()
    model = DPQuantile(0.1, quantile=[0.4, 0.6], bounds=(0, 1))
    assert any((model.fit(X).location_ % 1 != 0).any() for _ in range(20))
    # bounds between which there is no whole number, or one, have the fine grid
    for bounds in ((0.2, 0.8), (0.5, 1.5)):
        fitted = DPQuantile(bounds=bounds).fit(np.array(X)).location_
        assert bounds[0] <= fitted[0] <= bounds[1]


def test_the_trace_of_whole_numbers_is_within_the_price():
    X = np.arange(40)[:, None] % 7
    other = X.copy()
    other[3] = 6
    for quantile in (0.5, [0.25, 0.5, 0.75]):
        model = DPQuantile(quantile=quantile, bounds=(0, 6))
        result = trace_privacy(model, X, X_neighbour=other)
        assert result.passed
        assert result.share > 0.1


def test_they_are_nearer_than_one_after_another(monkeypatch):
    X = rng.lognormal(8, 1, size=(1000, 1))

    def errors():
        fits = [DPQuantile(1.0, quantile=DECILES).fit(X).location_[:, 0] for _ in range(12)]
        return np.mean(
            [off(X[:, 0], q, v) for fit in fits for q, v in zip(DECILES, fit, strict=True)]
        )

    together = errors()
    monkeypatch.setattr(
        _quantile, "plan_quantiles", lambda taus, adjacency, _: QuantilesInTurn(taus, adjacency)
    )
    assert together < 0.8 * errors()


@every_adjacency
def test_the_plan_halves(adjacency):
    plan = QuantilesPlan.made(fractions(DECILES), adjacency)
    assert [len(level) for level in plan.levels] == [1, 2, 4, 2]
    found = [tau for level in plan.levels for _, tau, _ in level]
    assert sorted(found) == list(fractions(DECILES))
    in_turn = QuantilesInTurn(fractions(DECILES), adjacency)
    assert plan.total < 0.55 * in_turn.total
    assert plan_quantiles(fractions(DECILES), adjacency, True) == plan
    # what a group has may lie in several parts; and nothing is gained with two
    assert plan_quantiles(fractions(DECILES), adjacency, False) == in_turn
    two = fractions([0.1, 0.9])
    assert plan_quantiles(two, "replace-one", True) == QuantilesInTurn(two, "replace-one")


@pytest.mark.parametrize(
    ("quantiles", "epsilon"), [(QUARTILES, 1.0), (DECILES, 0.7), ([0.01, 0.02, 0.99], 3.0)]
)
@every_adjacency
def test_all_of_it_is_spent_and_no_more(quantiles, epsilon, adjacency):
    model = DPQuantile(epsilon, quantile=quantiles, adjacency=adjacency, bounds=(-9, 9))
    spent = model.fit(rng.normal(size=(50, 3))).privacy_spent_
    assert 0.999 * epsilon <= spent[0] <= epsilon
    assert spent[1] == 0


@pytest.mark.parametrize("quantiles", [QUARTILES, [0.1, 0.2, 0.4, 0.5, 0.9]], ids=str)
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), None], ids=["bounds", "floats"])
@every_adjacency
def test_the_trace_is_within_the_price(quantiles, bounds, adjacency):
    for n_rows in (5, 40):
        for seed in range(3):
            own = np.random.default_rng(seed)
            X = own.choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0], size=(n_rows, 1))
            other = X.copy()
            other[seed] = np.nan if adjacency == "zero-out" else -np.sign(X[seed]) or 1.0
            model = DPQuantile(2.0, quantile=quantiles, adjacency=adjacency, bounds=bounds)
            assert trace_privacy(model, X, X_neighbour=other, n_draws=0).passed


def test_the_price_is_tight():
    X = np.linspace(-0.9, 0.9, 41)[:, None]
    other = X.copy()
    other[0] = 0.95
    model = DPQuantile(2.0, quantile=QUARTILES, bounds=(-1.0, 1.0), random_state=0)
    for release in trace_privacy(model, X, X_neighbour=other).releases:
        assert 0.999 * release.sensitivity <= release.distance <= release.sensitivity * (1 + 1e-9)


@every_adjacency
def test_the_stated_spread_is_the_largest_of_all_moves(adjacency):
    cells, bits, n_rows = 12, 4, 9
    generator = np.random.default_rng(3)
    first = PartRank(0, Fraction(2, 5), -1, 90, bits, (6, 12))
    second = PartRank(0, Fraction(1, 3), 90, (cells + 1 << bits) - 1, bits, (6, 12))
    query = PartRanks((first, second), cells)
    stated, largest = query.sensitivity(adjacency, n_rows).spread, 0.0
    for _ in range(60):
        X = generator.integers(0, cells + 1, size=(n_rows, 1)).astype(float)
        other = X.copy()
        other[4] = np.nan if adjacency == "zero-out" else generator.integers(0, cells + 1)
        sides = [
            RankRows(each, np.zeros(1), np.full(1, float(cells)), cells) for each in (X, other)
        ]
        spread = 0.0
        for part in query.parts:
            every = np.arange(part.first, part.upto + 1)
            pairs = np.column_stack([every >> bits, every & 15]).astype(float)
            change = part.scores_of(sides[1], pairs) - part.scores_of(sides[0], pairs)
            spread += np.ptp(change)
        largest = max(largest, spread)
    assert 0.7 * stated <= largest <= stated + 1e-9


@pytest.mark.full
def test_draws_of_a_part_have_the_law():
    cells, bits = 6, 2
    X = np.array([[0.0], [1.0], [1.0], [3.0], [5.0], [6.0], [2.0]])
    rows = RankRows(X, np.zeros(1), np.full(1, float(cells)), cells)
    part = PartRank(0, Fraction(1, 3), 5, 25, bits, (3, 6))
    query = PartRanks((part,), cells)
    noise = ExponentialMechanism(2.0).calibrate(query.sensitivity("replace-one", 7), size=2)
    every = np.arange(5, 26)
    pairs = np.column_stack([every >> bits, every & 3]).astype(float)
    weights = np.exp(-part.scores_of(rows, pairs) / noise.scale)
    weights *= np.where(pairs[:, 0] == 3, 7, 1)
    bits_source = make_bits(None, "")
    drawn = np.array([query.draw(rows, noise, bits_source) for _ in range(1200)])
    places = (drawn[:, 0] * 4 + drawn[:, 1]).astype(int)
    found = np.bincount(places, minlength=26)[5:]
    assert found.sum() == 1200
    assert chisquare(found, 1200 * weights / weights.sum()).pvalue > 1e-6
    # outcomes stand for all of them
    outcomes, counts = part.outcomes(rows)
    mass = counts * np.exp(-part.scores_of(rows, outcomes) / noise.scale)
    assert mass.sum() == pytest.approx(weights.sum())


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
def test_streams_and_scores():
    X = rng.normal(size=(300, 2))
    stream = stream_chunks(lambda: iter([X[:100], X[100:]]), n_rows=300)
    model = DPQuantile(quantile=QUARTILES, bounds=(-5, 5), random_state=0)
    np.testing.assert_array_equal(model.fit(stream).location_, model.fit(X).location_)
    single = [DPQuantile(quantile=q, bounds=(-5, 5)) for q in QUARTILES]
    for one, location in zip(single, model.location_, strict=True):
        one.fit(X).location_ = location
    assert model.score(X) == pytest.approx(sum(one.score(X) for one in single))


def test_groups_are_protected_one_quantile_after_another():
    X, groups = rng.normal(size=(120, 1)), np.arange(120) // 3
    model = DPQuantile(4.0, quantile=QUARTILES, bounds=(-5, 5)).fit(X, groups=groups)
    assert sum(release.count for release in model.ledger_.releases) == 3
    assert (np.diff(model.location_, axis=0) >= 0).all()


@pytest.mark.parametrize("quantile", [[], [0.5, 1.0], [[0.5]], [0.5, np.nan]], ids=str)
def test_quantiles_that_make_no_sense_are_refused(quantile):
    with pytest.raises(ValueError, match="quantile must be"):
        DPQuantile(quantile=quantile).fit(np.zeros((5, 1)))


@pytest.mark.full
def test_the_error_bound_holds():
    X = rng.normal(size=(2000, 1))
    model, failures = DPQuantile(2.0, quantile=DECILES, bounds=(-1e3, 1e3)), 0
    for _ in range(50):
        released = model.fit(X).location_[:, 0]
        worst = max(off(X[:, 0], q, v) for q, v in zip(DECILES, released, strict=True))
        failures += worst > model.error_bound_ * len(X)
    assert failures <= 3
