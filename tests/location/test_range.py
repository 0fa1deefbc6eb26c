# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means, medians and quantiles of data that nobody gave bounds for."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes

from skdp import DPHistogram, DPMean, DPMedian, DPQuantile
from skdp._quantiles import COARSEST, Ladder, LadderRows, finest_ladder
from skdp.audit import trace_privacy
from skdp.exceptions import NoisyEstimateWarning
from skdp.io import stream_chunks
from skdp.location._range import plan_range
from skdp.privacy import ExponentialMechanism
from skdp.privacy.kernel.samplers import SeededBits

RNG = np.random.default_rng(0)
PRICES = np.round(RNG.lognormal(7.8, 1.0, size=(5000, 1)))
COLUMNS = {
    "prices": PRICES,
    "disease progression": load_diabetes().target[:, None],
    "cholesterol": load_diabetes(scaled=False).data[:, 4:5],
    "standardised by its length": load_diabetes().data[:, 2:3],
    "area of cells": load_breast_cancer().data[:, 3:4],
    "concavity": load_breast_cancer().data[:, 6:7],
    "years": RNG.integers(1950, 2010, size=(2000, 1)).astype(float),
    "ratings": RNG.integers(1, 6, size=(1000, 1)).astype(float),
    "losses": -1e9 * RNG.exponential(size=(1000, 1)),
}
ADJACENCIES = ("replace-one", "zero-out")
#: with 60 rows of one feature there are enough
GEOMETRIC = [
    DPMean(epsilon=20.0, mechanism="laplace"),
    DPMean(epsilon=20.0, mechanism="gaussian"),
    DPMean(epsilon=20.0, delta=0.0),
    DPMedian(epsilon=20.0, mechanism="gradient", max_iter=3),
    DPMedian(epsilon=20.0, delta=0.0, mechanism="exponential"),
]
EVERY = [*GEOMETRIC, DPMedian(epsilon=20.0), DPQuantile(epsilon=20.0, quantile=0.25)]


def fitted(model, X):
    """Return a fitted clone of a model and the text of its warning of noise."""
    model = clone(model)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model.fit(X)
    noisy = [str(one.message) for one in raised if one.category is NoisyEstimateWarning]
    assert len(noisy) <= 1
    return model, "".join(noisy)


# -- what used to be 1.0 ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", COLUMNS)
def test_nothing_needs_to_be_known_of_a_column(name):
    X = COLUMNS[name]
    spread = X.std() * max(1.0, 500 / len(X))
    mean, said = fitted(DPMean(epsilon=1.0), X)
    assert said == ""
    assert abs(mean.location_[0] - X.mean()) < 0.25 * spread
    for quantile, model in ((0.5, DPMedian(epsilon=1.0)), (0.9, DPQuantile(quantile=0.9))):
        drawn, said = fitted(model, X)
        assert said == ""
        low, high = np.quantile(X, [quantile - 0.07, quantile + 0.07])
        assert low <= drawn.location_[0] <= high


@pytest.mark.parametrize("exponent", [-30, -12, 12, 30])
@pytest.mark.parametrize("model", [*GEOMETRIC[:4], DPQuantile()], ids=str)
def test_no_magnitude_is_out_of_reach(model, exponent):
    scale = 10.0**exponent
    found = clone(model).set_params(epsilon=4.0).fit(scale * PRICES[:400]).location_[0] / scale
    # means, and medians
    assert 1000 < found < 6000


def test_rows_far_from_zero_and_close_to_each_other():
    far = 1e5 + RNG.normal(size=(3000, 2))
    for model in (DPMean(epsilon=4.0), DPMedian(epsilon=4.0), DPMedian(epsilon=4.0, delta=0.0)):
        found, said = fitted(model, far)
        assert np.abs(found.location_ - 1e5).max() < 0.3
        assert said == ""


def test_geometric_medians_of_features_in_different_units():
    X = RNG.normal([1e6, 1e-3], [1e4, 1e-4], size=(3000, 2))
    model = DPMedian(epsilon=4.0, mechanism="gradient").fit(X)
    assert abs(model.location_[0] - 1e6) < 3e3
    lower, upper = model.bounds_
    assert np.all((lower < X.mean(axis=0)) & (X.mean(axis=0) < upper))
    assert 1e-4 < upper[1] - lower[1] < 1e-2


def test_every_feature_has_a_range_of_its_own():
    X = np.hstack([PRICES, 1e-6 * PRICES, PRICES - 1e5])
    model = DPMean(epsilon=4.0).fit(X)
    assert np.all(np.abs(model.location_ - X.mean(axis=0)) < 0.2 * X.std(axis=0))
    assert sum(release.count for release in model.ledger_.releases) == 7


def test_whole_numbers_by_their_type_are_one_apart():
    # at n epsilon 1,000 half of the distances are seen: of flags half are zero, so that a draw is
    # of any size below 1; means were off by a half in one fit of twenty
    flags = np.arange(2000)[:, None] % 2 == 0
    frame = pd.DataFrame({"flag": flags[:, 0]})
    for X in (flags, flags.astype(np.int8), frame):
        for seed in range(8):
            model = DPMean(0.5, random_state=seed).fit(X)
            assert model.bounds_[1][0] - model.bounds_[0][0] >= 4.0
            assert abs(model.location_[0] - 0.5) < 0.2
    histogram = DPHistogram(0.5, random_state=0).fit(flags)
    assert histogram.bin_edges_[0][-1] - histogram.bin_edges_[0][0] >= 5.0
    # and so are medians
    ratings = np.random.default_rng(0).integers(1, 6, (2000, 1))
    for bounds in (None, (0, 10)):
        for seed in range(4):
            median = DPMedian(0.1, bounds=bounds, random_state=seed).fit(ratings).location_[0]
            assert median in (2, 3, 4)


def test_columns_of_zeros_are_zeros_or_a_warning():
    counts = RNG.poisson(0.4, size=(4000, 1)).astype(float)
    model, said = fitted(DPMean(epsilon=4.0), counts)
    assert abs(model.location_[0] - counts.mean()) < 0.1
    assert said == ""
    # nine in ten are zero, and the others are too few to be seen
    amounts = np.where(np.arange(500) % 10, 0.0, 1000.0)[:, None]
    model, said = fitted(DPMean(epsilon=1.0), amounts)
    assert model.location_[0] == pytest.approx(0, abs=5.0)
    assert "feature(s) 0 are equal" in said
    assert "Give public bounds" in said
    assert fitted(DPMedian(epsilon=1.0), amounts)[0].location_[0] == 0
    # but counts are seen, although four in five are zero: 1 is their unit
    counts = np.where(np.arange(2000) % 5, 0.0, 1.0 + np.arange(2000) % 3)[:, None]
    found = [fitted(DPMean(0.3, delta), counts)[0].location_[0] for delta in [0.0, 1e-6] * 5]
    assert np.mean(found) == pytest.approx(counts.mean(), abs=0.2)  # 0.4


@pytest.mark.covering
@pytest.mark.parametrize("value", [5.3, 0.0, -1e-20, 2.5e30])
@pytest.mark.parametrize("model", EVERY, ids=str)
def test_a_constant_column(model, value):
    found, said = fitted(model, np.full((60, 1), value))
    # 5.3 is no float of a coarse grid: it has a small range, and nobody knows that it is constant
    # 0 may be a count, of which 1 is the unit
    least = 1e-37 if value else 1.0
    assert found.location_[0] == pytest.approx(value, rel=0.03, abs=least)
    if value != 5.3:
        assert ("are equal" in said) == hasattr(found, "bounds_")


@pytest.mark.parametrize("model", EVERY, ids=str)
@pytest.mark.parametrize(("scale", "end"), [(1e150, 3.4e38), (1e-300, 0.0), (-1e300, -3.4e38)])
def test_numbers_that_single_precision_does_not_have(model, scale, end):
    found, said = fitted(model, scale * RNG.uniform(1, 2, size=(60, 1)))
    assert np.isfinite(found.location_[0])
    if end:
        assert np.sign(found.location_[0]) == np.sign(end)
        assert "have values beyond 3e+38" in said
    else:
        # no float of single precision is nearer to them than 0, which may be a count
        assert abs(found.location_[0]) < 1.0


def test_single_precision_and_streams_are_nothing_special():
    X = PRICES[:600] @ [[1.0, -2.0]]
    stream = stream_chunks(lambda: (X[i : i + 100] for i in range(0, 600, 100)), n_rows=600)
    for model in (DPMean(8.0, random_state=0), DPMedian(8.0, random_state=0), DPQuantile(8.0)):
        model.set_params(random_state=0)
        expected = model.fit(X).location_
        np.testing.assert_array_equal(model.fit(X.astype(np.float32)).location_, expected)
        np.testing.assert_array_equal(model.fit(stream).location_, expected)


def test_missing_values_and_sparse_rows_are_refused_by_name():
    sparse = pytest.importorskip("scipy.sparse").csr_array(PRICES)
    for model in (DPMean(), DPMedian(), DPQuantile()):
        with pytest.raises(ValueError, match="NaN"):
            model.fit([[1.0], [np.nan]])
        with pytest.raises(TypeError, match=r"toarray\(\)|dense"):
            model.fit(sparse)


# -- too few rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*GEOMETRIC[:1], DPMedian(mechanism="gradient")], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (60, 1), (40, 50)])
def test_too_few_rows_for_a_range_are_said_and_not_searched(model, shape):
    rows = RNG.normal(1000, 1, size=shape)
    model = clone(model).set_params(epsilon=1.0)
    found, said = fitted(model, rows)
    assert f"{shape[0]} rows at epsilon=1 are too few" in said
    assert "Give public bounds" in said
    # the whole budget is for the location, in a range that depends on no row
    np.testing.assert_array_equal(found.bounds_, np.full((2, shape[1]), [[-5.0], [5.0]]))
    assert not [r for r in found.ledger_.releases if "drawn by its rank" in r.query]
    assert fitted(model, rows - 5000)[1] == said


def test_the_number_of_rows_that_is_named_is_enough():
    said = fitted(DPMean(epsilon=1.0), PRICES[:100])[1]
    enough = int(said.split("or use ")[1].split()[0])
    assert 200 < enough < 230
    assert fitted(DPMean(epsilon=1.0), PRICES[: enough - 1])[1] != ""
    assert fitted(DPMean(epsilon=1.0), PRICES[:enough])[1] == ""
    assert fitted(DPMean(epsilon=1.0, adjacency="zero-out"), PRICES[: 3 * enough // 4])[1] == ""


def test_too_few_rows_for_a_quantile():
    assert fitted(DPQuantile(epsilon=1.0), PRICES[:62])[1] == ""
    for model in (DPQuantile(epsilon=1.0), DPMedian(), DPQuantile(quantile=0.99)):
        assert "Use about" in fitted(model, PRICES[:50])[1]
    found, said = fitted(DPQuantile(epsilon=1.0, quantile=0.99), PRICES[:50])
    needed = int(said.split("Use about ")[1].split()[0])
    assert fitted(found, PRICES[:needed])[1] == ""


def test_hardly_any_range_is_far_too_wide():
    # the draws that fail are those that end where no row is
    rows = 1000 + RNG.standard_t(3, size=(220, 1))
    for X, most in ((rows, 1e4), (PRICES[:220], 1e5)):
        ends = [np.ptp(DPMean(epsilon=1.0).fit(X).bounds_) for _ in range(30)]
        assert np.mean(np.array(ends) > most) <= 0.02


@pytest.mark.parametrize("mu", [None, 0.25])
@pytest.mark.parametrize("n_features", [1, 10, 200])
def test_ranges_of_many_features_fail_no_more_often_than_that_of_one(n_features, mu):
    # one in 2,000 ended where no row is: of 200 features one in every few fits, without a warning
    shape = {"n_features": n_features, "adjacency": "replace-one"}
    enough = plan_range(1.0, mu, n_rows=2, **shape).enough
    for n_rows in (enough, 2 * enough, 10 * enough):
        plan = plan_range(1.0, mu, n_rows=n_rows, **shape)
        away = plan.median_price * n_rows / 4
        assert plan.medians.needed(0.002 / n_features) <= away
        beyond = float(1 - plan.level) * n_rows * plan.distance_price / 2
        assert beyond >= 14.0 + math.log(n_features) - 0.1


# -- public decisions, and the promise -------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mu", [None, 0.25, 3.0])
@pytest.mark.parametrize("n_features", [1, 7])
def test_plans_of_ranges_keep_to_their_share(adjacency, mu, n_features):
    for n_rows in (10, 300, 10_000, 10**7):
        plan = plan_range(1.0, mu, n_rows=n_rows, n_features=n_features, adjacency=adjacency)
        priced, total = plan.beside
        spent = plan.epsilon if plan.adds_up else (total / mu) ** 2
        assert sum(priced) == pytest.approx(plan.adds_up * plan.epsilon)
        assert plan.is_sound == (n_rows >= plan.enough)
        if plan.is_sound:
            assert 0.149 < spent <= 0.55 * (1 + 1e-9)
            assert Fraction(1, 2) <= plan.level <= Fraction(99, 100)
        else:
            assert spent == 0


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("model", EVERY, ids=str)
def test_the_budget_is_kept_and_nearly_all_of_it_spent(model, adjacency):
    found = clone(model).set_params(adjacency=adjacency).fit(PRICES[:60])
    epsilon, delta = found.privacy_spent_
    # Gaussian-DP parameters of pure draws say more than they cost
    assert (0.75 if delta else 0.99) * 20 < epsilon <= 20
    assert found.ledger_.epsilon(delta) == epsilon
    drawn = [r.query for r in found.ledger_.releases if "drawn by its rank" in r.query]
    if hasattr(found, "bounds_"):
        assert drawn[0] == "0.5-quantile of a feature, drawn by its rank"
        assert "-quantile of distances to a center, drawn by its rank" in drawn[1]
    assert len(drawn) == 1 + hasattr(found, "bounds_")


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("model", EVERY, ids=str)
def test_neighbours_lose_no_more_than_the_claim(model, adjacency):
    # one row goes from one end of all floats to the other, or away
    rows = RNG.normal(1000, 5, size=(60, 1))
    rows[0] = -1e30
    other = rows.copy()
    other[0] = 1e30 if adjacency == "replace-one" else np.nan
    model = clone(model).set_params(adjacency=adjacency)
    result = trace_privacy(model, X=rows, X_neighbour=other)
    assert result.passed, result
    assert 0.1 < result.share <= 1 + 1e-9
    assert result.epsilon <= 20 * (1 + 1e-9)


# -- the grid --------------------------------------------------------------------------------------


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [COARSEST, 11, 23])
def test_positions_of_a_ladder(bits, signed):
    ladder = Ladder(bits, signed)
    values = np.concatenate([[0.0, 1e-50, 3.4e38, 1e300], 10.0 ** RNG.uniform(-37, 38, 200)])
    values = np.concatenate([-values, values]) if signed else values
    positions = ladder.positions(values)
    assert positions.min() >= 0
    assert positions.max() == ladder.cells
    # in the order of the values
    assert np.all(np.diff(positions[np.argsort(values)]) >= 0)
    # to the nearest float, and back
    back = ladder.values(positions)
    np.testing.assert_array_equal(ladder.positions(back), positions)
    inside = (np.abs(values) > 1e-37) & (np.abs(values) < 1e38)
    assert np.max(np.abs(back[inside] / values[inside] - 1)) <= 2.0**-bits
    assert ladder.positions(np.array([0.0, -0.0])).tolist() == [ladder.zero] * 2
    assert ladder.values([ladder.zero, ladder.cells])[0] == 0
    assert ladder.values([ladder.cells])[0] >= 3.4e38


def test_a_ladder_gives_the_shortest_decimal():
    years = np.array([1987.0, 0.1, -3.25, 120.0])
    for bits in (16, 23):
        ladder = Ladder(bits, signed=True)
        np.testing.assert_array_equal(ladder.values(ladder.positions(years)), years)


def test_ladders_are_as_fine_as_the_rows_allow():
    assert finest_ladder(5.0, 0.01) is None
    bits = [finest_ladder(away, 0.01).bits for away in (14, 18, 22, 26, 1e3)]
    assert bits == sorted(bits)
    assert bits[0] == COARSEST
    assert bits[-1] == 23


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_law_of_a_draw_where_zero_is_heavy(adjacency):
    ladder = Ladder(COARSEST, signed=True)
    rows = LadderRows(np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [3.0]]), ladder)
    query = ladder.query(0, Fraction(1, 2))
    noise = ExponentialMechanism(0.5).calibrate(query.sensitivity(adjacency, 6), 1)
    outcomes, counts = query.outcomes(rows)
    assert counts.sum() == 2 * (ladder.cells + 1)
    weights = counts * np.exp(-query.scores_of(rows, outcomes) / noise.scale)
    assert outcomes[-1, 0] == ladder.zero
    expected = weights[-1] / weights.sum()
    assert 0.2 < expected < 0.95
    bits = SeededBits(0)
    drawn = np.array([query.draw(rows, noise, bits)[0] for _ in range(800)])
    seen = np.mean(drawn == ladder.zero)
    assert abs(seen - expected) < 4.5 * math.sqrt(expected * (1 - expected) / 800)
