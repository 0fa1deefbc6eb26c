# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Groups of rows in statistics and searches: what one may move, and groups that may not be lost."""

import warnings
from fractions import Fraction
from inspect import isclass, signature

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline

import skdp
from skdp import (
    DPPCA,
    DPCovariance,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPGridSearchCV,
    DPHeavyTailedMean,
    DPLogisticRegression,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPSparseMeanEstimator,
    DPStandardScaler,
    DPTableVectorizer,
    dp_tabular_pipeline,
    privacy_spent,
)
from skdp._bisection import SideSum
from skdp._counted import PARTS, resolve_groups, shares
from skdp._quantiles import Ladder, LadderRows, NormThreshold, QuantileRank, RankRows
from skdp._recovery.measurements import measurement_matrix
from skdp._rows.base import Box, L2Ball
from skdp._rows.columns import FeatureRows, PointRows, distances_from
from skdp._rows.linear import ball_rows
from skdp.audit import trace_privacy
from skdp.exceptions import BudgetError
from skdp.io import stream_arrays, stream_chunks, stream_parquet
from skdp.location._clipped_mean import BoxRows, ClippedRowSum, FarCount, RowSum
from skdp.location._compressed_sensing import SketchSum
from skdp.location._median import DirectionSum, DistanceSum
from skdp.location._sparse_noisy import SparseRowSum, sparse_rows
from skdp.model_selection import RowScorer
from skdp.model_selection._row_scorer import HeldOutRows, HeldOutScore
from skdp.preprocessing._frequent_features import PresenceCount
from skdp.preprocessing._standard_scaler import MomentSum
from skdp.privacy import ExponentialMechanism, PrivacyBudget
from skdp.privacy.kernel.samplers import make_bits
from tests._chunks import shorten_chunks
from tests.streams._ways import assert_same_fit, chunked, read_from_chunks

D, TAU = 3, Fraction(9, 10)
BOX = Box((-1.0,) * D, (1.0,) * D)
GRID = np.full(D, -1.0), np.full(D, 1.0)
CENTER = np.array([0.1, -0.2, 0.05])
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")


# -- what rows count -----------------------------------------------------------------------------


def weights_of(groups):
    (_, unit), codes = resolve_groups(groups, np.zeros((len(groups), 1)))
    return shares(unit, codes)


def test_rows_of_a_group_count_one_together_in_parts_that_add_up_exactly():
    sizes = np.array([1, 2, 3, 7, 300, 1000])
    groups = np.random.default_rng(0).permutation(np.repeat([f"p{k}" for k in sizes], sizes))
    weight = weights_of(groups)
    for size in sizes:
        own = weight[groups == f"p{size}"]
        assert own.sum() == 1.0
        assert np.abs(own - 1 / size).max() <= 1 / PARTS
    assert_array_equal(weight * PARTS, np.rint(weight * PARTS))
    assert shares("row", None) is None


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64, np.float64, str, object])
def test_groups_are_coded_in_the_order_of_their_identifiers(dtype):
    names = np.array([3, 9, 3, 7, 9, 3]).astype(dtype)
    (n_groups, unit), codes = resolve_groups(names, np.zeros((6, 1)), ordered=True)
    assert (n_groups, unit, codes.tolist()) == (3, "group", [0, 2, 0, 1, 2, 0])
    far = resolve_groups([-(2**63), 2**63 - 1, 0], np.zeros((3, 1)), ordered=True)
    assert (far[0][0], far[1].tolist()) == (3, [0, 2, 1])
    apart = resolve_groups(np.repeat(np.array([-100, 100], dtype=np.int8), 50), np.zeros((100, 1)))
    assert (apart[0][0], np.bincount(apart[1]).tolist()) == (2, [50, 50])


@pytest.mark.parametrize("dtype", [np.int64, np.float64, str, object, bytes])
def test_numbers_of_groups_do_not_depend_on_the_order_of_rows(dtype):
    # a search draws groups by these numbers: a row of one may not renumber the others
    names = np.arange(50).astype(str).astype(dtype)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(50), 3))
    (_, codes), (_, moved) = (
        resolve_groups(names[at], names[at, None], ordered=True) for at in (order, order[::-1])
    )
    assert_array_equal(codes, moved[::-1])
    _, again = resolve_groups(names[np.append(order, 7)], np.zeros((151, 1)), ordered=True)
    assert_array_equal(again[:-1], codes)


#: text of 0 to 90 bytes, alike at both ends
LONG = np.array(["é" * (i % 29) + f"{i:x}"[:: i % 2 * 2 - 1] + "a" * (i % 31) for i in range(700)])
LONG[7] = ""


NUMBERS = ["close", "far", "tenths", "zeros", "high_bits", "short"]


@pytest.mark.sample(11)
@pytest.mark.parametrize("kind", [*NUMBERS, "text", "long", "wide", "bytes", "nul"])
def test_marks_are_told_apart_whatever_they_are(kind):
    rng = np.random.default_rng(0)
    owners = rng.permutation(np.repeat(np.arange(700), rng.integers(1, 9, 700)))
    names = {
        "close": owners - 300,
        "far": owners * -(10**15),
        "tenths": owners / 10,
        "zeros": np.where(
            owners == 5, np.where(rng.uniform(size=len(owners)) > 0.5, 0.0, -0.0), owners + 1.0
        ),
        "high_bits": owners.astype(np.uint64) << np.uint64(54),
        "text": np.array([f"{one:x}" for one in owners], dtype=object),
        "short": owners.astype(np.float16),
        "long": LONG.astype(object)[owners],
        "wide": LONG.astype(">U99")[owners],
        "bytes": np.char.encode(LONG, "utf-8")[owners],
        "nul": np.array([f"{one}\0{LONG[one]}" for one in owners], dtype=object),
    }[kind]
    (n_groups, _), codes = resolve_groups(names, np.zeros((len(owners), 1)))
    assert n_groups == len(np.unique(owners)) == len(set(zip(owners, codes, strict=True)))
    assert sorted(set(codes)) == list(range(n_groups))


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", [object, str, bytes])
def test_text_that_shares_a_mark_is_told_apart(kind, monkeypatch):
    # joined by chance, two people would count as one, and either would move what the other counts
    monkeypatch.setattr("skdp._counted._scattered", np.zeros_like)
    names = np.array(["", "a", "person 1", "person 12", "person 1", "x" * 64, "x" * 65], dtype=kind)
    (n_groups, _), codes = resolve_groups(names, np.zeros((7, 1)))
    assert n_groups == 6
    assert codes[2] == codes[4]
    assert len(set(codes)) == 6


def test_identifiers_may_stand_in_any_column_and_groups_without_rows_are_none():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    names = [f"person {i}" for i in np.random.default_rng(0).integers(0, 30, 200)]
    known, (_, codes) = sorted(set(names)), resolve_groups(names, np.zeros((200, 1)), ordered=True)
    # somebody without a row is in nobody's data, whatever a column has heard of
    kinds = pd.CategoricalDtype(["nobody", *known, "nobody else"])
    columns = (
        pd.Series(names), pd.Series(names, dtype="string"), pd.Series(names, dtype=kinds),
        pl.Series(names), pl.Series(names, dtype=pl.Categorical), pa.array(names),
        pa.chunked_array([names[:90], names[90:]]), pa.array(names, pa.large_string()),
        pa.array(names).dictionary_encode(), np.array(names, dtype=object), tuple(names),
        np.array(names), np.array(names).astype(bytes).astype(str),
    )  # fmt: skip
    for column in columns:
        public, found = resolve_groups(column, np.zeros((200, 1)), ordered=True)
        assert public == (len(known), "group")
        assert_array_equal(found, codes)
    for nobody in ([], np.array([], dtype=str), np.array([], dtype=object), pa.array([], "string")):
        with pytest.raises(ValueError, match=r"shape \(200,\); got shape \(0,\)"):
            resolve_groups(nobody, np.zeros((200, 1)))
    with pytest.raises(ValueError, match="missing identifiers"):
        resolve_groups(pa.chunked_array([names, [None]]), np.zeros((201, 1)))


def test_ranks_of_very_many_groups_stay_within_integers(monkeypatch):
    # as if there were 2^35 times as many
    monkeypatch.setattr("skdp.location._quantile.PARTS", PARTS << 35)
    X, groups = np.linspace(0, 1, 40)[:, None], np.arange(40) // 4
    model = DPQuantile(quantile=0.123457, bounds=(0, 1), epsilon=50.0)
    assert "0.125" in model.fit(X, groups=groups).ledger_.releases[0].query
    assert "0.123457" in model.fit(X).ledger_.releases[0].query


def test_what_a_row_counts_follows_from_the_rows_of_its_own_group():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(["a", "b", "c"], [3, 7, 11]))
    more = np.insert(groups, rng.integers(0, 21, 300), "0")
    assert_array_equal(weights_of(more)[more != "0"], weights_of(groups))


# -- what a group moves: the proofs of sensitivities, for groups of any size ---------------------

SUMS = {
    "ball": (RowSum(L2Ball(1.0), D), lambda X, w: ball_rows(X, L2Ball(1.0), 1, w)),
    "box": (RowSum(BOX, D), lambda X, w: BoxRows(X, BOX, 1, w)),
    "clipped": (ClippedRowSum(D, 0.3), lambda X, w: ball_rows(X, L2Ball(1.0), 1, w)),
    "centered": (ClippedRowSum(D, 0.3, CENTER), lambda X, w: ball_rows(X, L2Ball(1.0), 1, w)),
    "far": (FarCount(0.5), lambda X, w: ball_rows(X, L2Ball(1.0), 1, w)),
    "far, centered": (FarCount(0.5, CENTER), lambda X, w: ball_rows(X, L2Ball(1.0), 1, w)),
    "moments": (MomentSum(BOX), lambda X, w: FeatureRows(X, None, 1, w)),
    "sides": (SideSum(np.zeros(D)), lambda X, w: FeatureRows(X, None, 1, w)),
    "distances": (SideSum(np.full(D, 0.5), CENTER), lambda X, w: FeatureRows(X, None, 1, w)),
    "moments, null rows": (
        MomentSum(BOX),
        lambda X, w: FeatureRows(np.nan_to_num(X), np.isnan(X).any(axis=1), 1, w),
    ),
    "sparse moments": (
        MomentSum(BOX),
        lambda X, w: FeatureRows(sparse.csr_array(X), np.zeros(len(X), bool), 1, w),
    ),
    "sparse sides": (
        SideSum(np.zeros(D)),
        lambda X, w: FeatureRows(sparse.csr_array(X), np.zeros(len(X), bool), 1, w),
    ),
    "directions": (DirectionSum(CENTER), lambda X, w: PointRows(X, L2Ball(1.0), 1.0, 1, w)),
    "in a box": (DirectionSum(CENTER), lambda X, w: PointRows(X, BOX, 2.0, 1, w)),
    "presence": (PresenceCount(D, 2), lambda X, w: sparse_rows(X, L2Ball(1.0), 2, weight=w)),
    "non-zeros": (
        SparseRowSum(D, 2, True),
        lambda X, w: sparse_rows(sparse.csr_array(X), L2Ball(1.0), 2, True, weight=w),
    ),
    "sketch": (
        SketchSum(measurement_matrix("gaussian", 4, D), 0.2),
        lambda X, w: ball_rows(X, L2Ball(1.0), 1, w),
    ),
    "scores": (
        HeldOutScore(),
        lambda X, w: HeldOutRows(X[:, :1], -1.0, 1.0, np.isnan(X[:, :1]), w),
    ),
}
DRAWS = {
    "quantile": (QuantileRank(0, TAU, 64), lambda X, w: RankRows(X, *GRID, 64, w)),
    "ladder": (
        Ladder(3, True).query(0, TAU),
        lambda X, w: LadderRows(X, Ladder(3, True), weight=w),
    ),
    "radius": (
        NormThreshold(None, 1.0, 1.5, 12, 3),
        lambda X, w: ball_rows(X, L2Ball(1.0), 1, w),
    ),
    "point": (DistanceSum(D), lambda X, w: PointRows(X, L2Ball(1.0), 1.0, 1, w)),
}
POINTS = np.random.default_rng(1).uniform(-0.5, 0.5, (50, D))


def worlds(size, other, adjacency, kind, seed):
    """Return two data sets with their groups, which differ in the rows of one group.

    Rows of other groups keep their order and change their places.
    """
    rng = np.random.default_rng(seed)
    X, groups = rng.uniform(-1, 1, (40, D)), np.arange(40) // 2
    low, high = np.full((1, D), -1.0), np.full((1, D), 1.0)
    if kind == "axes":
        low, high = np.array([[-1.0, 0, 0]]), np.array([[0, 1.0, 0]])
    made = np.repeat(high, size, axis=0), np.repeat(low, other, axis=0)
    if kind == "random":
        made = rng.uniform(-3, 3, (size, D)), rng.uniform(-3, 3, (other, D))
    if adjacency == "zero-out":
        made = made[0], np.full((other, D), np.nan)
    for own in made:
        at = np.sort(rng.integers(0, 41, len(own)))
        yield np.insert(X, at, own, axis=0), np.insert(groups, at, 99)


def evaluated(name, X, groups):
    query, admit = SUMS[name]
    if name == "scores":
        return query.evaluate(admit(X, resolve_groups(groups, X)[1]))
    if "sparse" in name:
        X = np.nan_to_num(X)
    return query.evaluate(admit(X, weights_of(groups)))


every_size = pytest.mark.parametrize(("size", "other"), [(1, 300), (300, 1), (7, 7)])
either = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])


@pytest.mark.sample(6, 16)
@pytest.mark.parametrize("name", SUMS)
@either
@every_size
def test_a_group_moves_a_sum_by_no_more_than_a_row(name, adjacency, size, other):
    if "sparse" in name and adjacency == "zero-out":
        # zeros stand for what is missing there: rows of a group that are dropped
        adjacency = "replace-one"
    stated = SUMS[name][0].sensitivity(adjacency, 21)
    moved = []
    for kind in ("opposite", "axes", "random"):
        for seed in range(3):
            first, second = worlds(size, other, adjacency, kind, seed)
            change = evaluated(name, *first) - evaluated(name, *second)
            moved.append((np.abs(change).sum(), np.linalg.norm(change)))
    l1, l2 = np.max(moved, axis=0)
    assert l2 <= stated.l2 * (1 + 1e-9)
    assert l1 <= stated.l1 * (1 + 1e-9)


#: by what part of the sensitivity opposite groups are apart, at least
TIGHT = dict.fromkeys(SUMS, 0.99) | {
    "far": 0.0, "far, centered": 0.0, "distances": 0.0, "centered": 0.9, "directions": 0.9,
    "in a box": 0.9, "presence": 0.0, "non-zeros": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SUMS if TIGHT[name]])
def test_a_group_moves_a_sum_as_far_as_a_row(name):
    first, second = worlds(300, 20, "replace-one", "opposite", 0)
    change = np.linalg.norm(evaluated(name, *first) - evaluated(name, *second))
    assert change >= TIGHT[name] * SUMS[name][0].sensitivity("replace-one", 21).l2


@pytest.mark.parametrize("name", DRAWS)
@either
@every_size
def test_a_group_moves_a_score_by_no_more_than_a_row(name, adjacency, size, other):
    query, admit = DRAWS[name]
    spread = query.sensitivity(adjacency, 21).spread
    for kind in ("opposite", "random"):
        first, second = worlds(size, other, adjacency, kind, 0)
        sides = [admit(X, weights_of(groups)) for X, groups in (first, second)]
        found = query.outcomes(*sides)
        outcomes = POINTS if found is None else found[0]
        change = np.subtract(*(query.scores_of(side, outcomes) for side in sides))
        assert change.max() - change.min() <= spread * (1 + 1e-12)
        if kind == "opposite" and name in ("quantile", "ladder") and adjacency != "zero-out":
            # of one sense only
            assert change.max() - change.min() >= 0.99


@pytest.mark.parametrize("name", SUMS)
def test_rows_that_are_all_alike_count_as_one_of_them(name):
    X = np.random.default_rng(0).uniform(-2, 2, (30, D))
    groups = np.arange(30)
    once = evaluated(name, X, groups)
    more = np.repeat(groups, 1 + groups % 3 * 17)
    assert_allclose(evaluated(name, X[more], more), once, rtol=1e-9, atol=1e-9)
    query, admit = SUMS[name]
    bare = admit(np.nan_to_num(X), None)
    assert_allclose(query.evaluate(bare), once, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", DRAWS)
def test_scores_of_rows_that_are_all_alike_are_those_of_one_of_them(name):
    query, admit = DRAWS[name]
    X, groups = np.random.default_rng(0).uniform(-2, 2, (30, D)), np.arange(30)
    more = np.repeat(groups, 1 + groups % 3 * 17)
    sides = admit(X, None), admit(X, weights_of(groups)), admit(X[more], weights_of(more))
    found = query.outcomes(*sides)
    outcomes = POINTS if found is None else found[0]
    scores = [query.scores_of(side, outcomes) for side in sides]
    assert_allclose(scores[1], scores[0], rtol=1e-9, atol=1e-9)
    assert_allclose(scores[2], scores[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["quantile", "ladder", "radius"])
def test_draws_of_groups_of_one_row_are_those_of_rows(name):
    query, admit = DRAWS[name]
    X = np.random.default_rng(0).uniform(-1, 1, (30, D))
    sides = admit(X, None), admit(X, np.ones(30))
    law = ExponentialMechanism(0.3)
    noise = law.calibrate(query.sensitivity("replace-one", 30), query.size)
    drawn = [
        [query.draw(side, noise, make_bits(seed, "a draw"))[0] for seed in range(100)]
        for side in sides
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 5


def test_rows_that_count_in_parts_are_not_told_apart_by_their_numbers():
    # draws of several quantiles at once count rows one each, in their places
    rows = RankRows(np.zeros((4, 1)), np.zeros(1), np.ones(1), 8, np.ones(4))
    with pytest.raises(RuntimeError, match="by their numbers"):
        rows.told_apart(0, 4)


def test_a_distance_is_the_same_wherever_its_row_stands():
    for d in (3, 9, 64):
        X = np.random.default_rng(d).normal(size=(40, d))
        (chunk,) = ball_rows(X, L2Ball(1.0)).chunks
        for center in (None, np.full(d, 0.1)):
            together = distances_from(center, chunk)
            alone = [distances_from(center, chunk.taken(slice(i, i + 1)))[0] for i in range(40)]
            assert_array_equal(alone, together)


# -- estimators ----------------------------------------------------------------------------------

ESTIMATORS = {
    "mean without bounds": DPMean(),
    "mean in a ball": DPMean(data_norm=2.0),
    "mean in a box": DPMean(bounds=(-3, 3)),
    "mean, Laplace noise": DPMean(bounds=(-3, 3), mechanism="laplace"),
    "covariance": DPCovariance(data_norm=2.0),
    "components": DPPCA(bounds=(-3, 3)),
    "components without bounds": DPPCA(),
    "clipped mean": DPMean(data_norm=9.0, mechanism="clipped"),
    "coinpress": DPMean(data_norm=9.0, mechanism="coinpress"),
    "heavy-tailed mean": DPHeavyTailedMean(data_norm=9.0),
    "sparse mean": DPSparseMeanEstimator(data_norm=3.0),
    "compressed sensing": DPSparseMeanEstimator(
        data_norm=3.0, mechanism="compressed-sensing", sparsity=2, n_measurements=2
    ),
    "quantile": DPQuantile(quantile=0.9, bounds=(-3, 3)),
    "quantile without bounds": DPQuantile(quantile=0.9),
    "medians": DPMedian(mechanism="rank"),
    "geometric median": DPMedian(data_norm=4.0),
    "geometric median without bounds": DPMedian(),
    "drawn median": DPMedian(mechanism="exponential", bounds=(-3, 3)),
    "radius": DPNormQuantile(data_norm=5.0, tail=30),
    "scaler": DPStandardScaler(),
    "scaler with bounds": DPStandardScaler(bounds=(-3, 3)),
    "centerer": DPFeatureCenterer(data_norm=4.0),
    "counts": DPFrequentFeatures(),
    "table": DPTableVectorizer(),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
SIZES = np.random.default_rng(3).choice([1, 2, 5, 40], 300)
WHOSE = np.repeat(np.arange(300), SIZES)
PEOPLE = np.random.default_rng(4).normal(size=(300, 2)) - (SIZES > 5)[:, None]


def released(model):
    names = "location_", "mean_", "scale_", "center_", "threshold_", "counts_"
    found = [getattr(model, name, None) for name in names]
    found = [list(one.values()) if isinstance(one, dict) else one for one in found]
    return np.concatenate([np.ravel(one) for one in found if one is not None])


def seeded(name, epsilon=50.0):
    return sklearn.base.clone(ESTIMATORS[name]).set_params(epsilon=epsilon, random_state=0)


@pytest.mark.sample(4)
@every_estimator
def test_people_count_once_however_many_rows_they_have(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once = seeded(name).fit(PEOPLE, groups=np.arange(300))
        often = seeded(name).fit(PEOPLE[WHOSE], groups=[f"person {i:03}" for i in WHOSE])
        rows = seeded(name).fit(PEOPLE[WHOSE])
        bare = seeded(name).fit(PEOPLE)
    # sums are rounded in another order, and a rank is one of the same values
    assert_allclose(released(often), released(once), rtol=1e-4, atol=1e-4)
    assert_allclose(released(once), released(bare), rtol=1e-4, atol=1e-4)
    assert np.abs(released(rows) - released(once)).max() > 0.05
    assert {release.unit for release in often.ledger_.releases} == {"group"}
    assert {release.unit for release in rows.ledger_.releases} == {"row"}
    spent = privacy_spent(often)
    assert spent.ledger.unit == "group"
    assert spent.epsilon <= 50.0


@pytest.mark.sample(6, 10)
@every_estimator
def test_a_trace_with_another_group_of_other_size_keeps_to_the_claim(name):
    # the group has a row, or three hundred, before those of others
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    high, low = np.array([[50.0, 50.0]]), np.array([[-50.0, -50.0]])
    if name == "counts":
        high, low = np.array([[0.0, 50.0]]), np.array([[50.0, 0.0]])
    if name in ("radius", "components without bounds"):
        # a row and its opposite have the same products
        low = np.zeros((1, 2))
    few, many = np.concatenate([high, X]), np.concatenate([np.repeat(low, 300, axis=0), X])
    own = {
        "groups": np.concatenate([[-1], np.arange(40)]),
        "groups_neighbour": np.concatenate([np.full(300, -1), np.arange(40)]),
    }
    found = trace_privacy(ESTIMATORS[name], few, many, **own, n_draws=0)
    assert found.passed, found
    assert found.epsilon > 0
    assert found.unit == "group"


def test_a_drawn_median_of_one_feature_is_that_of_people():
    X, whose = np.where(np.arange(400) < 300, 1.0, -1.0)[:, None], np.zeros(400, dtype=int)
    whose[300:] = np.arange(1, 101)
    model = DPMedian(epsilon=20.0, mechanism="exponential", bounds=(-1, 1), random_state=0)
    assert model.fit(X, groups=whose).location_[0] < -0.9
    assert model.fit(X).location_[0] > 0.9


def test_a_mean_is_that_of_people_not_of_rows():
    # one in ten has a hundred rows
    sizes = np.where(np.arange(2000) % 10, 1, 100)
    whose, ages = np.repeat(np.arange(2000), sizes), np.where(sizes > 1, 20.0, 60.0)
    X = ages[whose, None]
    people, rows = (
        DPMean(epsilon=1.0, bounds=(0, 100), random_state=0).fit(X, groups=g).location_[0]
        for g in (whose, None)
    )
    assert abs(people - 56) < 1
    assert rows < 30


def test_words_of_one_person_are_not_frequent_however_often_they_stand_there():
    pd = pytest.importorskip("pandas")
    words = ["common"] * 400 + ["rare"] * 2000
    whose = np.minimum(np.arange(2400), 400)
    model = DPTableVectorizer(epsilon=8.0, random_state=0)
    kept = model.fit(pd.DataFrame({"word": words}), groups=whose).frequent_["word"]
    assert len(kept[0]) == 1
    assert 0.9 < kept[1][0] <= 1
    assert len(model.fit(pd.DataFrame({"word": words})).frequent_["word"][0]) == 2


# -- rows that are read range by range -----------------------------------------------------------

FEW = np.random.default_rng(5).choice(300, 200)


@pytest.mark.sample(1)
@every_estimator
def test_groups_of_streams_are_those_in_memory(name, monkeypatch):
    if name in ("table", "drawn median"):
        with pytest.raises(TypeError, match="in memory"):
            ESTIMATORS[name].fit(**chunked(PEOPLE[FEW], groups=FEW))
        return
    shorten_chunks(monkeypatch, 7)
    X, text = PEOPLE[FEW], np.array([f"person {i}" for i in FEW])
    inside = assert_same_fit(
        seeded(name),
        {"X": X, "groups": FEW},
        {"X": stream_arrays(X), "groups": list(text)},
        chunked(X, groups=text.astype(object)),
    )
    assert inside.ledger_.unit == "group"


@pytest.mark.sample(2)
@every_estimator
def test_a_trace_through_a_stream_with_another_group_keeps_to_the_claim(name):
    if name in ("table", "drawn median", "counts", "radius"):
        return
    X, groups = np.random.default_rng(0).uniform(-1, 1, (40, 2)), np.arange(40)
    # a row and its opposite would have the same products
    high, low = np.full((1, 2), 50.0), np.tile([-50.0, 50.0], (300, 1))
    own = {"groups": np.insert(groups, 7, 99), "groups_neighbour": np.insert(groups, [7] * 300, 99)}
    found = trace_privacy(
        read_from_chunks(ESTIMATORS[name]),
        np.insert(X, [7], high, axis=0),
        np.insert(X, [7] * 300, low, axis=0),
        **own,
        n_draws=0,
    )
    assert found.passed, found
    assert found.epsilon > 0


def test_groups_that_change_while_rows_are_read_are_refused():
    passes = []

    def chunks():
        passes.append(None)
        # a look at the first chunk, the first pass, and one that counts the rows of groups
        whose = FEW if len(passes) <= 3 else FEW[::-1]
        yield PEOPLE[FEW], None, [f"person {i}" for i in whose]

    for model in (DPMean(data_norm=1.0), DPQuantile(bounds=(-1, 1))):
        passes.clear()
        X, groups = stream_chunks(chunks)
        with pytest.raises(ValueError, match="groups have changed since"):
            model.fit(X, groups=groups)
        assert len(passes) == 4


@pytest.mark.parametrize(
    ("groups", "error", "told"),
    [
        (np.arange(199), ValueError, r"shape \(200,\); got shape \(199,\)"),
        (stream_chunks([(PEOPLE[:9], FEW[:9])])[1], ValueError, r"got shape \(9,\)"),
        (stream_arrays(PEOPLE[FEW]), TypeError, "got rows"),
        ("person", TypeError, "got 'person'. Pass the column"),
    ],
)
def test_groups_that_do_not_fit_to_a_stream_are_refused(groups, error, told):
    budget = PrivacyBudget(10.0, 1e-4, unit="group")
    with pytest.raises(error, match=told):
        DPMean(data_norm=1.0, budget=budget).fit(stream_arrays(PEOPLE[FEW]), groups=groups)
    assert budget.charges == ()


def test_one_identifier_of_a_list_joins_no_others():
    # as floats the first two are one number
    near = [2**60, 2**60 + 1]
    for kind, another in ((int, 5), (int, 0.5), (np.int64, 0.5), (np.uint64, np.int64(5))):
        groups = [*map(kind, near), another]
        for listed in (groups, np.array(groups, dtype=object)):
            (n_groups, _), codes = resolve_groups(listed, np.zeros((3, 1)))
            assert n_groups == len(set(codes.tolist())) == 3
    # of objects of numpy, one that is a float was equal to both
    mixed = np.array([*map(np.int64, near), np.float64(2**60)], dtype=object)
    (n_groups, _), codes = resolve_groups(mixed, np.zeros((3, 1)))
    assert n_groups == 2
    assert codes[0] == codes[2] != codes[1]


@pytest.mark.parametrize("kind", [np.float64, np.uint64, np.float32])
def test_the_type_of_one_chunk_joins_no_identifiers_of_another(kind):
    near, others = np.array([2**60, 2**60 + 1]), np.array([7, 2**60], dtype=kind)
    _, groups = stream_chunks([(PEOPLE[:2], None, whose) for whose in (near, others)])
    (n_groups, _), codes = resolve_groups(groups, np.zeros((4, 1)))
    assert n_groups == len(set(codes.tolist())) == 3
    assert codes[0] == codes[3]
    dask = pytest.importorskip("dask")
    frame = pytest.importorskip("dask.dataframe").from_delayed(
        [dask.delayed(pandas_of)(whose) for whose in (near, others)],
        meta=pandas_of(near[:0]),
        verify_meta=False,
    )
    (n_groups, _), codes = resolve_groups(frame["whose"], np.zeros((4, 1)))
    assert n_groups == len(set(codes.tolist())) == 3
    assert codes[0] == codes[3]


def test_large_decimals_are_identifiers_of_their_own(tmp_path):
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    whose = pa.array([2**60, 2**60 + 1, 7, 2**60]).cast(pa.decimal128(38, 0))
    path = tmp_path / "rows.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"x": [0.5] * 4, "g": whose}), path)
    halves = [whose[:2], whose[2:]]
    _, read = stream_parquet(path, groups="g")
    _, in_chunks = stream_chunks([(PEOPLE[:2], None, half) for half in halves])
    _, mixed = stream_chunks([(PEOPLE[:2], None, half) for half in (halves[0], [7, 2**60])])
    series = pd.Series(whose.to_pandas(), dtype=pd.ArrowDtype(whose.type))
    for groups in (
        whose,
        pa.chunked_array(halves),
        pl.from_arrow(whose),
        series,
        read,
        in_chunks,
        mixed,
    ):
        (n_groups, _), codes = resolve_groups(groups, np.zeros((4, 1)))
        assert n_groups == len(set(codes.tolist())) == 3
        assert codes[0] == codes[3]
    with pytest.raises(ValueError, match="missing identifiers"):
        resolve_groups(pa.array([1, None]).cast(pa.decimal128(38, 0)), np.zeros((2, 1)))


def pandas_of(whose):
    return pytest.importorskip("pandas").DataFrame({"whose": whose})


def test_identifiers_of_chunks_are_of_one_type():
    X = PEOPLE[:2]
    for other, told in ((["1", "2"], "of one type in all chunks"), ([None, "b"], "missing")):
        rows, groups = stream_chunks([(X, None, [1, 2]), (X, None, other)])
        with pytest.raises(ValueError, match=told):
            DPMean(data_norm=1.0).fit(rows, groups=groups)
    # a number is the same person in whatever type it is stored
    chunks = [(X, None, np.array([1, 2], dtype=kind)) for kind in (np.int8, np.uint64, np.float64)]
    rows, groups = stream_chunks(chunks)
    model = DPMean(data_norm=1.0, random_state=0)
    found = model.fit(rows, groups=groups).location_
    assert_array_equal(found, model.fit(np.tile(X, (3, 1)), groups=[1, 2] * 3).location_)


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (np.array(["b", b"a", "a"] * 100, dtype=object), "of one type"),
        (np.array([b"b", "a", b"a"] * 100, dtype=object), "of one type"),
        (["a", None, "b"] * 100, "missing identifiers"),
        (["a", np.nan, "b"] * 100, "missing identifiers"),
        (np.ma.masked_equal([1, 2, 3] * 100, 2), "missing identifiers"),
        ([1.0, np.nan, 2.0] * 100, "missing identifiers"),
        (np.arange(299), r"shape \(300,\); got shape \(299,\)"),
        (np.zeros((300, 1)), "one identifier for each row"),
        # as text, which numpy makes of both, 1 and 1.0 would be two people by the word of a third
        ([1, "a", 1.0] * 100, "of one type"),
    ],
)
def test_identifiers_that_are_none_are_refused(groups, told):
    model = DPMean(data_norm=1.0, random_state=0)
    with pytest.raises(ValueError, match=told):
        model.fit(PEOPLE, groups=groups)


def test_chunks_do_not_forget_the_mask_of_identifiers():
    whose = np.ma.masked_equal(np.arange(300) % 3, 2)
    rows, groups = stream_chunks(lambda: [(PEOPLE, None, whose)])
    with pytest.raises(ValueError, match="missing identifiers"):
        DPMean(data_norm=1.0).fit(rows, groups=groups)


@pytest.mark.parametrize(
    "model",
    [
        DPMean(data_norm=9.0, mechanism="shifted-clipped"),
        DPFeatureCenterer(mechanism="shifted-clipped"),
        DPSparseMeanEstimator(mechanism="histogram", sparsity=2),
    ],
)
def test_mechanisms_that_cannot_protect_groups_say_so(model):
    budget = PrivacyBudget(10.0, 1e-4, unit="group")
    with pytest.raises(ValueError, match="groups must be None with mechanism="):
        model.set_params(budget=budget).fit(PEOPLE, groups=np.arange(300))
    assert budget.charges == ()


@pytest.mark.sample(3)
@every_estimator
def test_a_budget_for_groups_refuses_rows_and_one_for_rows_refuses_groups(name):
    model, groups = sklearn.base.clone(ESTIMATORS[name]), np.arange(300) // 2
    model.set_params(budget=PrivacyBudget(10.0, 1e-4, unit="group"))
    with pytest.raises(BudgetError, match="fit got no groups"):
        model.fit(PEOPLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(PEOPLE, groups=groups)
    assert [charge.unit for charge in model.budget.charges] == ["group"]
    model.set_params(budget=PrivacyBudget(10.0, 1e-4))
    with pytest.raises(BudgetError, match=r"unit='row'.*'group'"):
        model.fit(PEOPLE, groups=groups)


# -- pipelines, cross-validation and searches ----------------------------------------------------


def table(n_people=400):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    whose = np.repeat(np.arange(n_people), rng.choice([1, 2, 9], n_people))
    frame = pd.DataFrame(
        {"age": rng.normal(40, 10, len(whose)), "plan": rng.choice(list("abc"), len(whose))}
    )
    y = np.where(frame["age"] + 5 * (frame["plan"] == "a") > 41, "yes", "no")
    return frame, y, pd.Series([f"p{i}" for i in whose])


def pipeline(**options):
    return dp_tabular_pipeline("classifier", epsilon=8.0, classes=["no", "yes"], **options)


def test_a_pipeline_protects_people_in_all_steps_or_has_no_total():
    X, y, whose = table()
    model = pipeline().fit(X, y, table__groups=whose, model__groups=whose)
    spent = privacy_spent(model)
    assert (spent.ledger.unit, spent.uncovered) == ("group", ())
    assert spent.epsilon <= 8.0
    assert model.score(X, y) > 0.8
    for given in ({"model__groups": whose}, {"table__groups": whose}):
        model.fit(X, y, **given)
        with pytest.raises(ValueError, match=r"a ledger protects one unit.*step 'model'.*__groups"):
            privacy_spent(model)
    budget = PrivacyBudget(50.0, 1e-4, unit="group")
    with pytest.raises(BudgetError, match="fit got no groups"):
        pipeline(budget=budget).fit(X, y, model__groups=whose)
    assert budget.charges == ()


@pytest.mark.full
def test_groups_are_routed_through_pipelines_and_searches_of_scikit_learn():
    X, y, whose = table()
    with sklearn.config_context(enable_metadata_routing=True):
        model = pipeline()
        for step in model:
            step.set_fit_request(groups=True)
        cv = GroupKFold(2, shuffle=True, random_state=0)
        tuned = GridSearchCV(model, {"model__C": [0.1, 1.0]}, cv=cv)
        tuned.fit(X, y, groups=whose)
        spent = privacy_spent(tuned)
        assert spent.ledger.unit == "group"
        assert {item.kind for item in spent.uncovered} == {"choice"}
        with pytest.raises(ValueError, match="asked for groups, and fit got no groups"):
            model.fit(X, y)


def test_groups_that_are_routed_reach_all_private_steps_unasked():
    X, y, whose = numbers()
    model = DPLogisticRegression(epsilon=4.0, classes=[0, 1], data_norm=2.0)
    search = DPGridSearchCV(model, {"C": [0.1, 1.0]}, epsilon=8.0)
    given = {"params": {"groups": whose}, "cv": GroupKFold(2), "return_estimator": True}
    with sklearn.config_context(enable_metadata_routing=True):
        steps = make_pipeline(DPStandardScaler(), model)
        assert privacy_spent(steps.fit(X, y, groups=whose)).ledger.unit == "group"
        for one in (steps, search):
            found = cross_validate(one, X, y, **given)["estimator"]
            assert {privacy_spent(fitted).ledger.unit for fitted in found} == {"group"}
        cv = GroupKFold(2, shuffle=True, random_state=0)
        tuned = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=cv).fit(X, y, groups=whose)
        assert privacy_spent(tuned).ledger.unit == "group"
        assert [item.kind for item in privacy_spent(tuned).uncovered] == ["choice"]
        # nobody has insisted: rows are protected, and it is said
        plain = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
        assert privacy_spent(plain).ledger.unit == "row"
        told = model.set_fit_request(groups=False)
        alone = GridSearchCV(told, {"C": [1.0]}, cv=GroupKFold(2)).fit(X, y, groups=whose)
        assert privacy_spent(alone).ledger.unit == "row"
        assert "the fits were not" in str(privacy_spent(alone).uncovered)


def test_whatever_takes_groups_asks_for_them_by_default():
    kinds = [kind for kind in vars(skdp).values() if isclass(kind) and hasattr(kind, "fit")]
    kinds = [kind for kind in kinds if "groups" in signature(kind.fit).parameters]
    assert len(kinds) > 20
    for kind in kinds:
        made = kind(DPMean(), {}) if kind.__name__.endswith("CV") else kind()
        assert "'groups': True" in repr(made.get_metadata_routing()), kind.__name__


@pytest.mark.parametrize("model", [DPMean(), DPStandardScaler(), DPTableVectorizer()])
def test_splits_that_alone_know_the_people_are_named(model):
    steps = (
        make_pipeline(model, DPLogisticRegression(classes=[0, 1]))
        if hasattr(model, "transform")
        else model
    )
    spent = privacy_spent(steps, cv=GroupKFold(3))
    assert [item.kind for item in spent.uncovered] == ["scores", "splits"]
    assert "GroupKFold was given groups" in str(spent.uncovered[1])
    assert spent.ledger.unit == "row"
    with sklearn.config_context(enable_metadata_routing=True):
        for step in getattr(steps, "named_steps", {"": steps}).values():
            step.set_fit_request(groups=True)
    spent = privacy_spent(steps, cv=GroupKFold(3, shuffle=True, random_state=0))
    assert [item.kind for item in spent.uncovered] == ["scores"]
    assert spent.ledger.unit == "group"


def test_splits_that_the_rows_of_one_person_move_are_named():
    # neighbours: the last person has 1 row, or 7
    def folds(cv, n_own):
        whose = np.append(np.arange(300) // 5, np.full(n_own, 999))
        given = {"groups": whose} if "Group" in type(cv).__name__ else {}
        return [set(whose[test]) for _, test in cv.split(np.zeros((len(whose), 1)), **given)]

    even = GroupKFold(3, shuffle=True, random_state=0)
    moving = GroupKFold(3), KFold(3), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    for cv in moving:
        assert folds(cv, 1) != folds(cv, 7)
    for cv in (even, GroupShuffleSplit(3, random_state=0), LeaveOneGroupOut()):
        assert folds(cv, 1) == folds(cv, 7)
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPMean(data_norm=1.0).set_fit_request(groups=True)
    for cv in (*moving, 3):
        (_, item) = privacy_spent(model, cv=cv).uncovered
        assert "how many rows a group has, a secret, decides" in str(item)
    given = [(np.arange(100), np.arange(100, 200))]
    for cv in (even, GroupShuffleSplit(3, random_state=0), given):
        assert [item.kind for item in privacy_spent(model, cv=cv).uncovered] == ["scores"]
    # where rows are protected their number is public
    spent = privacy_spent(DPMean(data_norm=1.0), cv=3)
    assert [item.kind for item in spent.uncovered] == ["scores"]


def numbers():
    rng = np.random.default_rng(0)
    whose = np.repeat(np.arange(400), rng.choice([1, 2, 9], 400))
    X = rng.normal(size=(len(whose), 3))
    return X, (X[:, 0] > 0).astype(int), whose


SEEN = {}


def seen(estimator, X, y):
    SEEN.setdefault("tested", []).append(np.asarray(X)[:, -1])
    return (estimator.predict(X) == y).astype(float)


class Watched(DPLogisticRegression):
    """Notes whose rows it is fitted to: the last column says it."""

    def fit(self, X, y, groups=None):
        if self.budget is not None and len(np.unique(X)) > 1:
            SEEN.setdefault("trained", []).append((X[:, -1].copy(), np.asarray(groups)))
        return super().fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("deep", "n_values"), [(False, 2), (False, 7), pytest.param(True, 2, marks=pytest.mark.full)]
)
def test_a_private_search_protects_people(deep, n_values):
    X, y, whose = numbers()
    model, name = DPLogisticRegression(classes=[0, 1]), "C"
    if deep:
        scaler = make_column_transformer((DPStandardScaler(), [0, 1, 2]), sparse_threshold=0)
        model, name = make_pipeline(scaler, model), "dplogisticregression__C"
    budget = PrivacyBudget(10.0, 1e-4, unit="group")
    grid = {name: np.geomspace(0.1, 1.0, n_values).tolist()}
    search = DPGridSearchCV(model, grid, epsilon=8.0, budget=budget, refit_share=0.3)
    with pytest.raises(BudgetError, match="fit got no groups"):
        search.fit(X, y)
    search.fit(X, y, groups=[f"p{i}" for i in whose])
    assert [charge.unit for charge in budget.charges] == ["group"]
    spent = privacy_spent(search)
    assert (spent.ledger.unit, spent.uncovered) == ("group", ())
    assert search.score(X, y) > 0.8
    # what was asked of the steps for a while is not kept
    assert "_metadata_request" not in vars(search.best_estimator_)
    assert search.best_estimator_.set_params(**{f"{name[:-1]}budget": None}).fit(X, y) is not None


def test_all_rows_of_a_group_train_or_score():
    X, y, whose = numbers()
    X = np.column_stack([X, whose])
    SEEN.clear()
    model = Watched(data_norm=1000.0, classes=[0, 1])
    scorer = RowScorer(seen, bounds=(0.0, 1.0))
    DPGridSearchCV(model, {"C": [0.1, 1.0]}, epsilon=4.0, scoring=scorer).fit(X, y, groups=whose)
    trained = [(rows, groups) for rows, groups in SEEN["trained"] if len(rows) < len(whose)]
    # others were made up
    tested = [rows for rows in SEEN["tested"] if set(rows) <= set(whose)]
    assert len(trained) == len(tested) == 2
    for (rows, groups), held_out in zip(trained, tested, strict=True):
        assert_array_equal(rows, groups)
        assert not set(rows) & set(held_out)
        assert len(rows) + len(held_out) == len(whose)
        assert len(set(held_out)) == 80


def light(estimator, X, y):
    return (X[:, -1] >= 40).astype(float)


def test_a_released_score_is_that_of_people():
    # forty of four hundred have a hundred rows
    whose = np.repeat(np.arange(400), np.where(np.arange(400) < 40, 100, 1))
    X = np.column_stack([np.random.default_rng(0).normal(size=len(whose)), whose])
    search = DPGridSearchCV(
        DPLogisticRegression(classes=[0, 1]),
        {"C": [0.1, 1.0]},
        epsilon=20.0,
        scoring=RowScorer(light, bounds=(0.0, 1.0)),
        validation_fraction=0.5,
    )
    y = np.arange(len(whose)) % 2
    assert search.fit(X, y, groups=whose).best_score_ > 0.7
    assert search.fit(X, y).best_score_ < 0.3


def test_a_score_of_a_group_is_the_mean_of_its_rows():
    scores, groups = [[1.0], [0.0], [0.0], [0.5]], np.array([4, 4, 9, 4])
    rows = HeldOutRows(scores, 0.0, 1.0, groups=groups)
    assert rows.n_rows == 2
    assert_allclose(HeldOutScore().evaluate(rows), [0.25 - 0.5], atol=1e-6)
    gone = HeldOutRows(scores, 0.0, 1.0, [[True], [True], [False], [True]], groups)
    assert_allclose(HeldOutScore().evaluate(gone), [0.25 - 0.5], atol=1e-6)


def test_a_candidate_whose_fit_takes_no_groups_is_refused():
    X, y, whose = numbers()

    class Rows(DPLogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    search = DPGridSearchCV(Rows(classes=[0, 1]), {"C": [0.1, 1.0]})
    with pytest.raises(ValueError, match=r"groups must be None for the candidate.*in fit"):
        search.fit(X, y, groups=whose)


def test_a_private_search_is_cross_validated_with_groups():
    X, y, whose = numbers()
    with sklearn.config_context(enable_metadata_routing=True):
        search = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"C": [0.1, 1.0]})
        search.set_fit_request(groups=True)
        scores = cross_val_score(search, X, y, cv=GroupKFold(2), params={"groups": whose})
        with pytest.raises(ValueError, match="asked for groups"):
            search.fit(X, y)
    assert len(scores) == 2
    spent = privacy_spent(search, cv=GroupKFold(2, shuffle=True, random_state=0))
    assert spent.ledger.unit == "group"
    assert [item.kind for item in spent.uncovered] == ["scores"]


def test_the_number_of_groups_comes_first_and_places_can_follow_from_names():
    (n_groups, _), codes = resolve_groups(["b", "a", "b"], np.zeros((3, 1)), ordered=True)
    assert n_groups == 2
    assert codes.tolist() == [1, 0, 1]
    assert resolve_groups(None, np.zeros((3, 1))) == ((3, "row"), None)
