# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPMean: plans, row sums and their sensitivities, input, planted bugs."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skdp import DPMean
from skdp._rows import columns, linear
from skdp.exceptions import BudgetError, PrivacyWarning
from skdp.location import _clipped_mean
from skdp.location._clipped_mean import (
    MEANS,
    ClippedMean,
    ClippedRowSum,
    FarCount,
    GaussianMean,
    RadiusSearch,
    RotatedSideSum,
    plan_mean,
    rotate,
    rotate_back,
    signs,
)
from skdp.privacy import Curator, GaussianMechanism, Record, gdp_mu
from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests import _audit, _neighbours
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    LAYOUTS,
    Rows,
    as_dense,
    as_layout,
    neighbours,
    on_examples,
    rows_in_ball,
)

# What DPMean releases.


CONFIGURATIONS = [
    {"mechanism": mechanism, "adjacency": adjacency}
    for mechanism in ("gaussian", "laplace")
    for adjacency in ("replace-one", "zero-out")
]


@pytest.mark.parametrize("parameters", CONFIGURATIONS)
def test_with_a_huge_budget_it_is_the_mean_of_the_clipped_rows(parameters):
    X = np.random.default_rng(0).normal(size=(500, 4))
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    ball = DPMean(1e6, data_norm=1.5, **parameters).fit(X)
    np.testing.assert_allclose(ball.location_, (X / np.maximum(norms / 1.5, 1)).mean(0), atol=1e-4)
    bounds = ([-1, -2, -3, 0], [1, 0.5, 3, 4])
    box = DPMean(1e6, bounds=bounds, **parameters).fit(X)
    np.testing.assert_allclose(box.location_, np.clip(X, *bounds).mean(0), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", CONFIGURATIONS)
def test_noise_has_the_size_that_theory_gives(parameters):
    # one feature: l1 and l2 agree. Sum sensitivity 1 or 2, mean = sum / n.
    X = np.zeros((100, 1))
    draws = np.ravel(
        [DPMean(0.5, 1e-6, data_norm=1.0, **parameters).fit(X).location_ for _ in range(2000)]
    )
    reach = 2.0 if parameters["adjacency"] == "replace-one" else 1.0
    if parameters["mechanism"] == "gaussian":
        expected = 8.057618 * reach / 100
    else:
        expected = np.sqrt(2) * reach / 0.5 / 100
    # 2000 draws: the standard error of a standard deviation is below 4 % for both laws
    assert abs(draws.std() / expected - 1) < 0.16
    assert abs(draws.mean()) < 5 * expected / np.sqrt(2000)


def test_pure_noise_spends_no_delta():
    mean = DPMean(0.7, 1e-6, mechanism="laplace", data_norm=1.0).fit([[0.1], [0.2]])
    assert mean.privacy_spent_ == (0.7, 0.0)


@pytest.mark.full
def test_noise_is_proportional_to_every_feature_s_bounds():
    X = np.zeros((10, 2))
    model = DPMean(bounds=([-1, -1000], [1, 1000]))
    draws = np.array([model.fit(X).location_ for _ in range(300)])
    assert 700 < draws[:, 1].std() / draws[:, 0].std() < 1400


def test_sparse_rows_in_a_ball():
    X = np.random.default_rng(0).uniform(size=(300, 5))
    X[X < 0.6] = 0
    dense = DPMean(random_state=0, data_norm=1.0).fit(X)
    rows = DPMean(random_state=0, data_norm=1.0).fit(sparse.csc_array(X))
    np.testing.assert_allclose(rows.location_, dense.location_, atol=1e-5)
    assert rows.score(sparse.csr_array(X)) == pytest.approx(dense.score(X), rel=1e-4)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        DPMean(bounds=(0, 1)).fit(sparse.csr_array(X))


def test_score_is_minus_the_squared_distance():
    X = np.random.default_rng(0).normal(size=(20, 3))
    mean = DPMean(data_norm=5.0).fit(X)
    expected = -np.mean(np.sum((X - mean.location_) ** 2, axis=1))
    assert mean.score(X) == pytest.approx(expected)


# Means that do not pay for the offset: how they are planned, and what they are good for.


MU = gdp_mu(1.0, 1e-6)
MOVING = ("coinpress", "shifted-clipped")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_mean = pytest.mark.parametrize("mechanism", MEANS)


def curator_of(X, epsilon, adjacency="replace-one", null=None, seed=0):
    null = np.zeros(len(X), bool) if null is None else null
    return Curator(
        lambda: rows_in_ball(X, np.zeros(len(X)), null, 1.0, 0.0),
        n_rows=len(X), epsilon=epsilon, delta=1e-6, adjacency=adjacency, random_state=seed,
        purpose="test",
    )  # fmt: skip


@pytest.mark.covering
@every_adjacency
@every_mean
@pytest.mark.parametrize(("n", "d"), [(1, 1), (40, 3), (3000, 1), (3000, 20), (10**6, 700)])
def test_a_plan_s_prices_compose_to_mu_and_releases_are_counted(mechanism, adjacency, n, d):
    plan = plan_mean(mechanism, n_rows=n, n_features=d, mu=MU, adjacency=adjacency)
    assert plan.mechanism in MEANS[: 1 + MEANS.index(mechanism)]
    if n * d > 10**6:
        return
    X = np.random.default_rng(0).normal(size=(n, d)) / 10
    curator = curator_of(X, 1.0, adjacency)
    center = plan.run(curator)
    assert center.shape == (d,)
    assert np.linalg.norm(center) <= 1 + 1e-12
    assert sum(release.count for release in curator.ledger.releases) == plan.n_releases
    assert 1 - 1e-6 <= curator.ledger.mu / MU <= 1 + 1e-12


def test_too_few_rows_fall_back_by_public_numbers():
    def chosen(mechanism, n, d=10, mu=MU):
        plan = plan_mean(mechanism, n_rows=n, n_features=d, mu=mu, adjacency="replace-one")
        return plan.mechanism

    assert [chosen(mechanism, 10) for mechanism in MEANS] == ["gaussian"] * 4
    assert [chosen(mechanism, 300) for mechanism in MEANS[1:]] == ["clipped"] * 3
    assert [chosen(mechanism, 1000, 50) for mechanism in MEANS[1:]] == [
        "clipped", "coinpress", "coinpress",
    ]  # fmt: skip
    assert [chosen(mechanism, 10_000) for mechanism in MEANS] == list(MEANS)
    assert chosen("shifted-clipped", 10_000, mu=1e-9) == "gaussian"
    few = DPMean(mechanism="coinpress", random_state=0, data_norm=1.0).fit(np.ones((10, 2)))
    assert few.mechanism_ == "gaussian"
    assert len(few.ledger_.releases) == 1
    with pytest.raises(ValueError, match="mechanism must be one of"):
        chosen("median", 10)


@pytest.mark.full
@every_adjacency
def test_a_radius_leaves_out_as_few_rows_as_its_docstring_says(adjacency):
    rng = np.random.default_rng(0)
    X = rng.standard_t(2.1, size=(4000, 3))
    X /= 2 * np.linalg.norm(X, axis=1).max()
    for center in (None, np.full(3, 0.1)):
        distance = np.linalg.norm(X - (0 if center is None else center), axis=1)
        search = RadiusSearch(4000, 0.5, adjacency, tail=60.0)
        most = max(60.0, search.margin)
        radii = [search.run(curator_of(X, 4.0, adjacency, seed=s), center) for s in range(40)]
        beyond = np.array([(distance > radius).sum() for radius in radii])
        nearly = np.array([(distance > radius / math.sqrt(2)).sum() for radius in radii])
        assert (beyond <= most + search.margin).all()
        assert (nearly > most - search.margin).all()
        assert np.max(radii) <= math.sqrt(2) * distance.max()


def test_all_rows_equal_give_a_tiny_radius():
    X = np.full((5000, 4), 0.3)
    for mechanism in MOVING:
        plan = plan_mean(mechanism, n_rows=5000, n_features=4, mu=0.5, adjacency="zero-out")
        center = plan.run(curator_of(X, 4.0, "zero-out"))
        np.testing.assert_allclose(center, X[0], atol=1e-6)


def test_null_rows_are_not_counted_as_rows_at_the_origin():
    X = np.full((5000, 2), 0.5) + np.random.default_rng(0).normal(size=(5000, 2)) * 1e-3
    X[:500] = np.nan
    null = np.isnan(X).any(axis=1)
    for mechanism in MOVING:
        plan = plan_mean(mechanism, n_rows=5000, n_features=2, mu=1.0, adjacency="zero-out")
        center = plan.run(curator_of(X, 8.0, "zero-out", null))
        np.testing.assert_allclose(center, 0.5, atol=5e-3)


def errors(mechanism, X, repeats=5, **options):
    truth = X.mean(axis=0)
    fits = [
        DPMean(1.0, mechanism=mechanism, random_state=seed, **options).fit(X)
        for seed in range(repeats)
    ]
    assert {fit.mechanism_ for fit in fits} == {mechanism}
    return np.sqrt(np.mean([np.sum((fit.location_ - truth) ** 2) for fit in fits]))


@pytest.mark.full
@every_adjacency
@pytest.mark.parametrize("d", [1, 10])
def test_the_error_is_flat_in_the_offset(d, adjacency):
    n, rng = 5000, np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(n, d)) / math.sqrt(d)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    reach = 1 if adjacency == "zero-out" else 2
    # noise of a Gaussian mean of rows with diameter 1 around a known point
    ideal = 0.5 * reach * math.sqrt(d) / (n * MU)
    for mechanism in MOVING:
        found = [
            errors(mechanism, X + offset * direction, data_norm=2000.0, adjacency=adjacency)
            for offset in (0, 10, 100, 1000)
        ]
        assert max(found) < 8 * ideal
    # the Gaussian mean must cover the offset, and pays for it
    paid = [
        errors("gaussian", X + offset * direction, data_norm=offset + 0.5, adjacency=adjacency)
        for offset in (10, 100, 1000)
    ]
    np.testing.assert_allclose(np.divide(paid, paid[0]), [1, 10, 100], rtol=0.15)
    assert paid[-1] > 500 * ideal


@pytest.mark.full
@pytest.mark.parametrize("freedom", [2.1, 3.0])
def test_heavy_tails_with_a_range_for_a_norm(freedom):
    X = np.random.default_rng(1).standard_t(freedom, size=(5000, 5))
    wide = {"data_norm": 1e6}
    assert errors("clipped", X, **wide) < errors("gaussian", X, **wide) / 1000
    # and if somebody told the Gaussian mean the longest row, it would still be no better
    longest = np.linalg.norm(X, axis=1).max()
    assert errors("clipped", X, **wide) < errors("gaussian", X, data_norm=longest)
    # around the origin an offset counts as a tail; around a released center it does not
    assert errors("coinpress", X + 50, **wide) < errors("clipped", X + 50, **wide) / 3


def test_with_a_huge_budget_they_are_the_mean():
    X = np.random.default_rng(0).uniform(size=(200, 3))
    for mechanism in MEANS:
        fit = DPMean(1e6, mechanism=mechanism, data_norm=10.0, random_state=0).fit(X)
        assert fit.mechanism_ == mechanism
        np.testing.assert_allclose(fit.location_, X.mean(axis=0), atol=1e-3)


def test_sparse_rows_stay_sparse_around_the_origin():
    X = np.random.default_rng(0).uniform(size=(3000, 6))
    X[X < 0.7] = 0
    dense, csr, csc = (
        DPMean(mechanism="clipped", data_norm=1e3, random_state=0).fit(rows).location_
        for rows in (X, sparse.csr_array(X), sparse.csc_array(X))
    )
    np.testing.assert_allclose(csr, dense, atol=1e-9)
    np.testing.assert_array_equal(csr, csc)
    for mechanism in MOVING:
        model = DPMean(mechanism=mechanism, data_norm=1.0)
        assert not model.__sklearn_tags__().input_tags.sparse
        with pytest.raises(TypeError, match=f"Sparse rows need .*'clipped'.*{mechanism}"):
            model.fit(sparse.csr_array(X))
        with pytest.raises(TypeError, match="Sparse rows need"):
            model.fit(X).score(sparse.csr_array(X))
    assert DPMean(mechanism="clipped", data_norm=1.0).__sklearn_tags__().input_tags.sparse


def test_plans_are_public_values():
    given = {"n_rows": 5000, "n_features": 3, "mu": 0.3, "adjacency": "zero-out"}
    one, two = plan_mean("coinpress", **given), plan_mean("coinpress", **given)
    assert one == two
    assert isinstance(one, ClippedMean)
    assert 1 <= one.n_stages <= 4
    assert GaussianMean(5, 2, 0.1).n_releases == 1


# The statistics of clipped means keep the sensitivities they state, which are tight.


NORMS = {"l1": 1, "l2": 2}
RADII = (1e-19, 1e-6, 0.1, 0.7, 1.0, 2.0)
DENSE = LAYOUTS[:5]


def admit(rows, radius=1.0, **options):
    null = np.asarray(rows.null)
    return rows_in_ball(rows.X, np.zeros(len(null)), null, radius, 0.0, **options)


def rows_of(X, null=None):
    X = np.asarray(X, dtype=np.float64)
    return Rows(X, np.zeros(len(X), int), np.zeros(len(X), bool) if null is None else null)


def assert_keeps_its_word(query, adjacency, first, second, n_rows):
    stated = query.sensitivity(adjacency, n_rows)
    values = [query.evaluate(rows) for rows in (first, second)]
    for value in values:
        assert value.shape == (query.size,)
        assert np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK)
    for norm, order in NORMS.items():
        gap = np.linalg.norm(values[0] - values[1], ord=order)
        assert gap <= getattr(stated, norm) * (1 + FLOAT_SLACK)


def point(data, d):
    """Draw a center of the unit ball, often a row's place or the edge."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    center = rng.normal(size=d)
    return center / np.linalg.norm(center) * data.draw(st.sampled_from([0.0, 0.3, 1.0, 1e-9]))


@every_adjacency
@on_examples(150)
def test_around_a_center_they_keep_their_sensitivities(adjacency, data):
    norm = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=norm, layouts=DENSE))
    n, d = pair[0].X.shape
    admitted = [admit(rows, norm) for rows in pair]
    center, radius = point(data, d), data.draw(st.sampled_from(RADII))
    thresholds = np.where(np.arange(d) % 2, radius, data.draw(st.sampled_from([0.0, 0.1, -0.5])))
    queries = (
        ClippedRowSum(d, radius, center),
        FarCount(radius, center),
        RotatedSideSum(thresholds),
    )
    for query in queries:
        assert_keeps_its_word(query, adjacency, *admitted, n)


@every_adjacency
@on_examples(150)
def test_around_the_origin_they_keep_their_sensitivities(adjacency, data):
    norm = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=norm))
    n, d = pair[0].X.shape
    admitted = [admit(rows, norm) for rows in pair]
    radius = data.draw(st.sampled_from(RADII))
    for query in (ClippedRowSum(d, radius), FarCount(radius)):
        assert_keeps_its_word(query, adjacency, *admitted, n)


def gap_ratio(query, adjacency, first, second, norm="l2"):
    gap = query.evaluate(admit(first)) - query.evaluate(admit(second))
    stated = getattr(query.sensitivity(adjacency, len(first.X)), norm)
    return np.linalg.norm(gap, ord=NORMS[norm]) / stated


def worst_pair(adjacency, row, other, n_rows=5):
    """Return rows of which one is `row`, and becomes `other` or a null row."""
    X = np.tile(row, (n_rows, 1))
    if adjacency == "zero-out":
        return rows_of(X), rows_of(X, np.arange(n_rows) == 1)
    return rows_of(X), rows_of(np.where(np.arange(n_rows)[:, None] == 1, other, X))


@every_adjacency
@pytest.mark.parametrize("d", [1, 4, 33])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("centered", [True, False])
def test_the_clipped_sum_attains_its_sensitivity(adjacency, d, norm, centered):
    center = np.full(d, 0.2 / d) if centered else None
    shift = 0.0 if center is None else center
    # all coordinates are equal: the l1 norm is the largest there is
    step = np.full(d, 0.5 / np.sqrt(d))
    pair = worst_pair(adjacency, shift + step, shift - step)
    assert gap_ratio(ClippedRowSum(d, 0.1, center), adjacency, *pair, norm) >= 0.999
    # without clipping it moves by as much as rows differ
    assert gap_ratio(ClippedRowSum(d, 2.0, center), adjacency, *pair, norm) < 0.5


@every_adjacency
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("center", [None, np.array([0.3, 0.0])], ids=str)
def test_counts_attain_their_sensitivity(adjacency, norm, center):
    near, far = np.array([0.35, 0.0]), np.array([-0.9, 0.1])
    for one, other in [(near, far), (far, near)]:
        pair = worst_pair(adjacency, one, other)
        assert gap_ratio(FarCount(0.5, center), adjacency, *pair, norm) == 1.0


def naive(rows, center, radius, norm):
    """Return the clipped sum and the number of rows beyond, row by row."""
    total, beyond, counted = np.zeros(len(center)), 0, 0
    for x, null in zip(as_dense(rows.X), rows.null, strict=True):
        if null or not np.isfinite(x).all():
            continue
        scale = max(np.abs(x).max(), norm)
        gap = x / scale / max(np.linalg.norm(x / scale), norm / scale) - center
        length = np.linalg.norm(gap)
        total += gap * min(1.0, radius / length if length else 1.0)
        beyond, counted = beyond + (length > radius), counted + 1
    return total, beyond, counted


@on_examples(100)
def test_in_any_layout_they_are_what_they_say(data):
    rows, _ = data.draw(neighbours("replace-one", radius=2.0))
    d = rows.X.shape[1]
    radius = data.draw(st.sampled_from([1e-6, 0.37, 0.73, 2.0]))
    sparse = not isinstance(rows.X, np.ndarray)
    centers = [None] if sparse else [None, point(data, d)]
    before = as_dense(rows.X).copy()
    for center in centers:
        with np.errstate(under="ignore"):
            origin = np.zeros(d) if center is None else center
            total, beyond, counted = naive(rows, origin, radius, 2.0)
        admitted = admit(rows, 2.0)
        value = ClippedRowSum(d, radius, center).evaluate(admitted)
        assert_allclose(value, total, rtol=1e-9, atol=1e-12)
        count = FarCount(radius, center).evaluate(admitted)[0]
        assert count + counted / 2 == beyond
    assert_array_equal(as_dense(rows.X), before)


@pytest.mark.sample(1)
@pytest.mark.parametrize("layout", ["C", "F", "float32"])
def test_chunks_and_threads_change_nothing_but_rounding(layout, monkeypatch):
    rows = _neighbours.mixed_rows()
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    center = np.full(5, 0.1)
    queries = (
        ClippedRowSum(5, 0.3, center),
        ClippedRowSum(5, 0.3),
        FarCount(0.31, center),
        FarCount(0.31),
        RotatedSideSum(np.full(5, 0.01)),
    )
    expected = [query.evaluate(admit(rows)) for query in queries]
    shorten_chunks(monkeypatch, 3, threads=True)
    for query, whole in zip(queries, expected, strict=True):
        one, many = (query.evaluate(admit(rows, n_threads=n)) for n in (1, 3))
        assert_array_equal(one, many)
        assert_allclose(one, whole, rtol=1e-12, atol=1e-13)
        if not isinstance(query, ClippedRowSum):
            assert_array_equal(one, whole)


def kept(X):
    return Rows(X, np.zeros(len(X), int), np.zeros(len(X), bool))


@pytest.mark.parametrize("norm", [1.0, 0.5, 0.25])
def test_the_last_place_of_other_rows_does_not_depend_on_a_row(norm):
    """A denormal changes the layout of a chunk; no other row may cross a threshold."""
    X = np.random.default_rng(0).normal(size=(300, 17))
    X = np.asfortranarray(X * 0.5 / np.linalg.norm(X, axis=1, keepdims=True))
    other = X.copy(order="F")
    other[0, 0] = 1e-150
    pair = [admit(kept(rows), norm) for rows in (X, other)]
    length = 0.5 / max(norm, 0.5)
    center = X[7] / max(norm, 0.5)
    queries = [FarCount(length * (1 + ulp * 2**-52)) for ulp in range(-4, 5)]
    queries += [FarCount(r, center) for r in np.sqrt(((X - X[7]) ** 2).sum(axis=1))[1:40]]
    queries += [ClippedRowSum(17, 1e-19, center)]
    for query in queries:
        gap = query.evaluate(pair[0]) - query.evaluate(pair[1])
        reach = query.sensitivity("replace-one", 300).l2
        assert np.linalg.norm(gap) <= reach * (1 + FLOAT_SLACK)


# The rotation of private medians, and what their counts are charged for.


@every_adjacency
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_sides_attain_their_sensitivity(adjacency, norm, d):
    row = rotate_back(np.full(d, 0.9 / np.sqrt(d)))
    pair = worst_pair(adjacency, row, -row)
    ratio = gap_ratio(RotatedSideSum(np.zeros(d)), adjacency, *pair, norm)
    assert ratio == pytest.approx(1.0, rel=1e-12)


def test_one_side_only_would_be_charged_too_little():
    # a count of ones above thresholds moves by sqrt(d) when a row becomes null
    d = 16
    row = rotate_back(np.full(d, 0.2))
    pair = worst_pair("zero-out", row, None)
    query = RotatedSideSum(np.zeros(d))
    above = [(query.evaluate(admit(rows)) + (~rows.null).sum() / 2) for rows in pair]
    assert_array_equal(above[0] - above[1], np.ones(d))
    assert np.linalg.norm(above[0] - above[1]) == 2 * query.sensitivity("zero-out", 5).l2


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100, 1023])
def test_the_rotation_is_one_and_public(d):
    points = np.random.default_rng(0).normal(size=(20, d))
    turned = rotate(points)
    assert_allclose(turned @ turned.T, points @ points.T, rtol=1e-11, atol=1e-11)
    assert_allclose([rotate_back(row) for row in turned], points, atol=1e-12)
    assert set(signs(d)) <= {-1.0, 1.0}
    assert_array_equal(signs(d), signs(1023)[:d])
    if d >= 100:
        # a coordinate vector and a constant one are spread out: the signs are no pattern
        for vector in (np.eye(d)[7], np.full(d, d**-0.5), (-1.0) ** np.arange(d) * d**-0.5):
            assert np.abs(rotate(vector)).max() <= 2 * np.sqrt(np.log(2000 * d) / d)


def test_a_null_row_changes_no_other_row_s_sides():
    # thresholds at the coordinates themselves: the last bit of a transform decides
    X = np.random.default_rng(0).normal(size=(37, 11)) / 11
    turned = rotate(X)
    for i in range(37):
        query = RotatedSideSum(turned[i])
        for null in (0, 5, 36):
            flags = np.arange(37) == null
            change = query.evaluate(admit(rows_of(X))) - query.evaluate(admit(rows_of(X, flags)))
            assert_array_equal(np.abs(change), np.full(11, 0.5))


# Bad input to the clipped means: a clear error, or a correct fit within the budget.


NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
MECHANISMS = ("clipped", "coinpress", "shifted-clipped")
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [0, -0.1, 1, NAN, "1", None, 1e-320],
    "adjacency": ["remove-one", None],
    "data_norm": [0, -1, NAN, INF, 1e101, "1", None],
    "bounds": [(0, 1), (1, 0), ([0, 0], [1, 1]), ()],
    "random_state": [-1, "a"],
}


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return clone(model).fit(data)


@pytest.mark.covering
@every_mechanism
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(
    mechanism, parameter, value, validated
):
    model = DPMean(mechanism=mechanism, random_state=0, data_norm=1.0).set_params(
        **{parameter: value}
    )
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize("mechanism", ["median", None, 3])
@pytest.mark.parametrize("validated", [True, False])
def test_a_mechanism_that_is_none_is_named(mechanism, validated):
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises(ValueError, match="mechanism"),
    ):
        DPMean(mechanism=mechanism, data_norm=1.0).fit(X)


@pytest.mark.covering
@every_mechanism
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize(
    ("adjacency", "norm"), [("replace-one", 1e-100), ("zero-out", 1e6), ("replace-one", 1e100)]
)
@pytest.mark.parametrize(
    "data",
    [
        X[:1], X[:5, :1], np.zeros((5, 2)), np.full((50, 2), 1e300),
        np.full((50, 2), -1e-300), X.astype(np.float32), np.where(X > 0, 1e308, 5e-324),
        np.asfortranarray(X), X[:, ::-1], np.zeros((3, 4000)), np.tile([1e-100, 1e100], (60, 1)),
    ],
)  # fmt: skip
def test_extreme_rows_and_budgets(mechanism, adjacency, epsilon, norm, data):
    model = DPMean(
        epsilon, mechanism=mechanism, adjacency=adjacency, data_norm=norm, random_state=0
    )
    before = data.copy()
    fitted = fit(model, data)
    assert np.isfinite(fitted.location_).all()
    assert np.linalg.norm(fitted.location_ / norm) <= 1 + 1e-9 or fitted.mechanism_ == "gaussian"
    assert fitted.privacy_spent_[0] <= epsilon
    assert fitted.ledger_.epsilon(1e-6) <= epsilon
    np.testing.assert_array_equal(data, before)


@every_mechanism
def test_read_only_rows_and_lists(mechanism):
    frozen = X.copy()
    frozen.flags.writeable = False
    one = fit(DPMean(20.0, mechanism=mechanism, random_state=0, data_norm=1.0), frozen).location_
    two = fit(
        DPMean(20.0, mechanism=mechanism, random_state=0, data_norm=1.0), X.tolist()
    ).location_
    np.testing.assert_array_equal(one, two)


@every_mechanism
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_rows_that_are_not_finite_are_refused(mechanism, bad):
    data = X.copy()
    data[3, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        DPMean(mechanism=mechanism, data_norm=1.0).fit(data)


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (4,)])
def test_shapes_that_are_no_rows_are_refused(shape):
    with pytest.raises(ValueError, match=r"array|sample|feature"):
        DPMean(mechanism="coinpress", data_norm=1.0).fit(np.zeros(shape))


def test_rows_at_the_edge_are_of_norm_one():
    class Chunk:
        X = np.array([[3.0, 4.0], [0.0, 0.0], [0.6, 0.8], [0.3, 0.4], [1e-140, 0.0]])
        factor = 1 / np.maximum(np.linalg.norm(X, axis=1), 1.0)

    found, norm = columns.unit_columns(Chunk)
    np.testing.assert_allclose(norm, [1, 0, 1, 0.5, 1e-140], rtol=1e-12)
    np.testing.assert_allclose(found.T[0], [0.6, 0.8])
    np.testing.assert_array_equal(found.T[1], 0.0)


# The privacy claims of clipped means: coupled traces of whole fits, and planted bugs.


EPSILON, DELTA = 4.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
MUTANT_NAN = float("nan")


def mean(mechanism, adjacency="zero-out", epsilon=EPSILON, **options):
    options = {"random_state": 0, "mechanism": mechanism, "adjacency": adjacency, **options}
    return DPMean(epsilon, DELTA, **{"data_norm": 1.0, **options})


def fitted(model, X):
    """Fit, with null rows in the data: validation would refuse them."""
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(X)


def steps(model, first, second):
    """Return the gap of every release, in sensitivities that were paid for, and its price."""
    pairs = _audit.coupled(lambda X: fitted(model, X), first, second)
    gaps = [np.linalg.norm(one.statistic - two.statistic) for one, two in pairs]
    noises = [one.noise for one, _ in pairs]
    ratios = [gap / noise.sensitivity for gap, noise in zip(gaps, noises, strict=True)]
    return np.array(ratios), np.array([noise.mu for noise in noises])


def measured(model, first, second):
    """Return the coupled mu of a fit, relative to the claim."""
    ratios, prices = steps(model, first, second)
    return float(np.linalg.norm(ratios * prices)) / CLAIMED_MU


def pair(adjacency, d=3, n_rows=800, other="opposite"):
    """Return rows near 0 and a far one, which becomes its opposite, a near one or null."""
    first = np.random.default_rng(0).normal(size=(n_rows, d)) * 1e-3
    # far from all medians of rotated coordinates
    first[0] = rotate_back(np.full(d, 5.0))
    second = first.copy()
    second[0] = (
        MUTANT_NAN if adjacency == "zero-out" else {"opposite": -1, "near": 0}[other] * first[0]
    )
    return first, second


@every_mechanism
def test_zero_out_claims_are_kept_and_tight(mechanism):
    model = mean(mechanism)
    first, second = pair("zero-out")
    assert fitted(model, first).mechanism_ == mechanism
    assert 0.999 <= measured(model, first, second) <= 1.0


@pytest.mark.sample(2)
@every_mechanism
def test_replace_one_claims_are_kept_and_tight(mechanism):
    # no row is at once beyond a radius, within it, and on opposite sides of the center
    model = mean(mechanism, "replace-one")
    opposite, prices = steps(model, *pair("replace-one"))
    near, _ = steps(model, *pair("replace-one", other="near"))
    counts = opposite == 0.0
    assert 0 < counts.sum() < len(counts)
    assert (opposite[~counts] >= 0.999).all()
    # counts of radii that lie between the near row and the far one
    assert (near[counts] >= 0.999).sum() >= counts.sum() / 2
    assert max(opposite.max(), near.max()) <= 1.0
    assert np.linalg.norm(prices) == pytest.approx(CLAIMED_MU, rel=1e-6)
    assert np.linalg.norm(prices) <= CLAIMED_MU * (1 + 1e-12)


@pytest.mark.covering
@every_adjacency
@every_mechanism
@on_examples(20)
def test_claims_are_kept_on_any_neighbours(mechanism, adjacency, data):
    layouts = ("C", "F", "strided", "read-only", "float32")
    one, two = data.draw(neighbours(adjacency, null_row=MUTANT_NAN, layouts=layouts))
    # a budget with which nine rows are not too few
    model = mean(mechanism, adjacency, epsilon=2000.0, data_norm=data.draw(st.sampled_from([1, 9])))
    fit = lambda X: fitted(model, X)  # noqa: E731
    assert _audit.coupled_mu(fit, one.X, two.X) <= gdp_mu(2000.0, DELTA)
    if len(one.X) == 9:
        assert fitted(model, one.X).mechanism_ == mechanism


@pytest.mark.sample(1)
@every_mechanism
def test_dropped_clipping_is_caught(mechanism, monkeypatch):
    rows = pair("zero-out")
    assert measured(mean(mechanism), *rows) <= 1.0

    def unclipped(self, chunk, real=ClippedRowSum.partial):
        return real(replace(self, radius=4.0), chunk)

    monkeypatch.setattr(ClippedRowSum, "partial", unclipped)
    assert measured(mean(mechanism), *rows) > 1.5


@pytest.mark.sample(2)
@every_mechanism
def test_a_radius_read_off_the_rows_is_caught(mechanism, monkeypatch):
    rows = pair("replace-one", other="near")
    model = mean(mechanism, "replace-one")
    assert measured(model, *rows) <= 1.0

    def unpaid(self, curator, center=None):
        curator.release(FarCount(1.0), GaussianMechanism(1e-6))
        admitted = curator._Curator__rows
        return max(1e-9, *(chunk.norm.max() for chunk in admitted.chunks))

    monkeypatch.setattr(RadiusSearch, "run", unpaid)
    # the noise of the sum differs between neighbours: it shows who is there
    with pytest.raises(AssertionError):
        measured(model, *rows)


@pytest.mark.sample(2)
@every_mechanism
def test_halved_noise_is_caught(mechanism, monkeypatch):
    rows, model = pair("zero-out", d=50, n_rows=3000)[0], mean(mechanism, epsilon=20.0)
    fit = lambda: fitted(model, rows)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


@pytest.mark.parametrize(
    ("query", "mechanism", "other"),
    [(FarCount, "clipped", "near"), (RotatedSideSum, "shifted-clipped", "opposite")],
)
def test_two_sides_charged_as_one_are_caught(query, mechanism, other, monkeypatch):
    model, rows = mean(mechanism, "replace-one"), pair("replace-one", other=other)
    assert steps(model, *rows)[0].max() <= 1.0

    def one_side(self, adjacency, n_rows, real=query.sensitivity):
        return real(self, "zero-out", n_rows)

    monkeypatch.setattr(query, "sensitivity", one_side)
    assert steps(model, *rows)[0].max() == pytest.approx(2.0, rel=1e-3)


def test_a_null_row_that_counts_is_caught(monkeypatch):
    rows, model = pair("zero-out"), mean("clipped")
    real = _clipped_mean.FarCount.partial

    def counted(self, chunk):
        return real(self, chunk) - np.isinf(chunk.norm).sum() / 2

    monkeypatch.setattr(FarCount, "partial", counted)
    assert steps(model, *rows)[0].max() == pytest.approx(2.0, rel=1e-3)


@pytest.mark.sample(2)
@every_mechanism
def test_a_split_that_sums_to_more_is_caught(mechanism, monkeypatch):
    rows, model = pair("zero-out"), mean(mechanism)
    shares = ClippedMean.shares.fget
    monkeypatch.setattr(
        ClippedMean, "shares", property(lambda self: tuple(1.1 * mu for mu in shares(self)))
    )
    with pytest.raises(BudgetError):
        fitted(model, rows[0])
    # a ledger that forgets would let it pass; the trace does not
    monkeypatch.setattr(
        Record, "append", lambda ledger, release: replace(ledger, releases=(release,))
    )
    assert measured(model, *rows) > 1.05


def test_norms_that_depend_on_the_layout_are_caught(monkeypatch):
    # all rows on a radius of the grid, up to rounding; a denormal changes the layout
    rng = np.random.default_rng(0)
    first = rng.normal(size=(800, 17))
    first *= math.sqrt(0.5) / np.linalg.norm(first, axis=1)[:, None]
    second = first.copy()
    second[0, 0] = 1e-150
    # columns that are a part of longer ones, as chunks of a column-major array have them
    pair = [np.asfortranarray(np.concatenate([X, X]))[:800] for X in (first, second)]
    query = FarCount(math.sqrt(0.5))
    # as of rows that are too many to be copied at once: each chunk is, where it is multiplied
    monkeypatch.setattr(linear, "LARGE", 0)

    def moved():
        nobody = np.zeros(800, dtype=bool)
        counts = [query.evaluate(rows_in_ball(X, nobody, nobody))[0] for X in pair]
        return abs(counts[1] - counts[0])

    assert moved() <= 1.0
    # products of whatever layout the chunk has, without `row_major`
    monkeypatch.setattr(_clipped_mean, "distances_from", lambda center, chunk: chunk.norm)
    monkeypatch.setattr(linear, "row_norms", lambda X: np.sqrt(np.einsum("ij,ij->i", X, X)))
    assert moved() > 2.0


# The law of one release, chosen by public numbers.


@pytest.mark.parametrize("domain", [{"data_norm": 1.0}, {"bounds": (-1.0, 1.0)}], ids=str)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (8.0, 1e-9), (3.0, 0.0)])
def test_auto_has_the_noise_of_the_quieter_law(epsilon, delta, adjacency, domain):
    def spread(mechanism, n_features):
        model = DPMean(epsilon, delta, mechanism=mechanism, adjacency=adjacency, **domain)
        (release,) = model.fit(np.zeros((60, n_features))).ledger_.releases
        laplace = release.noise.law == "laplace"
        return release.noise.scale * (np.sqrt(2) if laplace else 1.0), model

    for n_features in (1, 2, 5, 12, 40):
        laws = ("laplace", "gaussian") if delta else ("laplace",)
        least = min(spread(law, n_features)[0] for law in laws)
        own, model = spread("auto", n_features)
        assert own <= least * (1 + 1e-4)
        assert model.mechanism_ in laws
        assert model.privacy_spent_[1] == (delta if model.mechanism_ == "gaussian" else 0.0)
        assert model.privacy_spent_[0] <= epsilon


def test_gaussian_noise_still_needs_a_delta():
    with pytest.raises(ValueError, match="delta"):
        DPMean(delta=0.0, mechanism="gaussian", data_norm=1.0).fit(np.zeros((60, 1)))
