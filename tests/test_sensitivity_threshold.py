# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The score of a radius keeps the spread it states, and the draw its exact law."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

from skdp._quantiles import NormThreshold, plan_threshold
from skdp._rows import linear
from skdp.location import DPNormQuantile
from skdp.preprocessing import DPFeatureCenterer
from skdp.privacy import gdp_mu
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import ExponentialMechanism
from tests import _audit
from tests._neighbours import ADJACENCIES, LAYOUTS, as_dense, neighbours, on_examples, rows_in_ball
from tests.location._thresholds import NAN, drawn, law, threshold_epsilon, worst_pair

EPSILON = 2.0
DENSE = LAYOUTS[:5]
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def admit(X, null=None, radius=1.0):
    null = np.zeros(X.shape[0], dtype=bool) if null is None else null
    return rows_in_ball(X, null, null, radius, 0.0)


def naive_distances(X, null, query, radius=1.0):
    """Return the distances of the rows that are not null, one by one."""
    distances = []
    for x, is_null in zip(as_dense(X), null, strict=True):
        if is_null or not np.isfinite(x).all():
            continue
        scale = max(np.abs(x).max(), radius)
        unit = x / scale / max(np.linalg.norm(x / scale), radius / scale)
        distances.append(np.linalg.norm(unit - (0.0 if query.center is None else query.center)))
    return np.array(distances)


def naive_scores(X, null, query):
    """Return the scores as the definition says, radius by radius."""
    distances, scores = naive_distances(X, null, query), []
    beyond = [np.sum(distances > t) for t in query.grid()[:-1]] + [0]
    for k, count in enumerate(beyond):
        too_large = query.tail - beyond[k - 1] if k else 0
        scores.append(max(count - query.tail, too_large, 0))
    return np.array(scores)


def small_worlds(n_rows):
    """Return all data sets of rows in 4 shells of a grid of 4 radii, or null (NaN)."""
    shells = [0.0, 0.3, 0.6, 1.0, NAN]
    return {world: np.array(world)[:, None] for world in itertools.product(shells, repeat=n_rows)}


def small_neighbours(world, adjacency):
    """Yield all neighbours of a small world; a replaced row may be or become null."""
    others = [0.0, 0.3, 0.6, 1.0, NAN] if adjacency == "replace-one" else [NAN]
    for i, other in itertools.product(range(len(world)), others):
        yield (*world[:i], other, *world[i + 1 :])


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_brute_force_over_all_small_neighbours(n_rows, adjacency):
    changes, worst = set(), 0.0
    worlds = small_worlds(n_rows)
    for tail in range(n_rows + 2):
        query = NormThreshold(None, 1.0, 2.0, 4, tail)
        noise = ExponentialMechanism(EPSILON).calibrate(query.sensitivity(adjacency, n_rows), 1)
        scores = {world: query.scores(admit(X)) for world, X in worlds.items()}
        logs = {world: law(query, noise, s) for world, s in scores.items()}
        keys = {repr(world): world for world in worlds}
        for world, score in scores.items():
            assert np.array_equal(score, naive_scores(worlds[world], [False] * n_rows, query))
            for other in small_neighbours(world, adjacency):
                other = keys[repr(other)]
                change = scores[other] - score
                changes |= set(change.tolist())
                assert np.ptp(change) <= query.sensitivity(adjacency, n_rows).spread
                worst = max(worst, np.abs(logs[other] - logs[world]).max())
    assert worst <= EPSILON
    assert changes == {-1, 0, 1}


@every_adjacency
def test_the_spread_is_attained_by_one_pair(adjacency):
    query = NormThreshold(None, 1.0, 1.05, 400, 3)
    first, second = worst_pair(adjacency, 3, query.grid()[0])
    change = query.scores(admit(second)) - query.scores(admit(first))
    assert np.ptp(change) == query.sensitivity(adjacency, len(first)).spread == 2


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("centered", [False, True])
@on_examples(150)
def test_any_neighbours_keep_the_spread(centered, adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    layouts = DENSE if centered else LAYOUTS
    pair = data.draw(neighbours(adjacency, radius=radius, layouts=layouts))
    n_rows, n_features = pair[0].X.shape
    center = np.full(n_features, 0.5 / n_features) if centered else None
    tail = data.draw(st.integers(0, n_rows + 1))
    query = NormThreshold(center, 2.0 if centered else 1.0, 1.3, 60, tail)
    scores = [query.scores(admit(rows.X, rows.null, radius)) for rows in pair]
    change = scores[1] - scores[0]
    assert np.ptp(change) <= query.sensitivity(adjacency, n_rows).spread
    assert np.abs(change).max() <= 1
    for score in scores:
        assert score.min() == 0 or tail > n_rows
        assert score.dtype == np.int64


@on_examples(100)
def test_scores_are_what_the_definition_says(data):
    rows, _ = data.draw(neighbours("replace-one"))
    query = NormThreshold(None, 1.0, math.sqrt(2.0) + 0.1, 9, 2)
    distances = naive_distances(rows.X, rows.null, query)
    # a distance that is a radius, up to rounding, may go either way
    if not np.isclose(distances[:, None], query.grid()[:-1], rtol=1e-6).any():
        expected = naive_scores(rows.X, rows.null, query)
        np.testing.assert_array_equal(query.scores(admit(rows.X, rows.null)), expected)


def moved_by_awkward_row(query, layout, radius=2.0):
    """Return how the scores change when one row becomes one of tiny numbers.

    All other rows lie on one radius of the grid, up to rounding either way.
    """
    rng = np.random.default_rng(0)
    first = rng.normal(size=(600, 7))
    first *= query.grid()[query.points // 2] / np.linalg.norm(first, axis=1)[:, None]
    first = radius * (first if query.center is None else first + query.center)
    second = first.copy()
    second[0] = 1e-310
    if layout == "F":
        # a part of more rows: what is column-major as a whole is admitted row by row
        pair = [np.asfortranarray(np.concatenate([X, X]))[:600] for X in (first, second)]
    else:
        pair = [first, second]
    pair = [admit(X, radius=radius) for X in pair]
    return np.abs(query.scores(pair[0]) - query.scores(pair[1]))


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("centered", [False, True])
def test_a_row_moves_no_distance_but_its_own(centered, layout, monkeypatch):
    # of rows that are too many to be copied at once, every chunk keeps its layout
    monkeypatch.setattr(linear, "LARGE", 0)
    # tiny numbers make the chunk be copied: the other rows must not notice, to the last bit
    center = np.full(7, 0.1) if centered else None
    query = NormThreshold(center, 2.0, 1.01, 400, 100)
    assert moved_by_awkward_row(query, layout).max() <= 1


@pytest.mark.parametrize("layout", DENSE)
def test_distances_do_not_depend_on_the_layout(layout):
    from tests._neighbours import as_layout

    query = NormThreshold(np.full(3, 0.1), 2.0, 1.05, 300, 20)
    X = np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32).astype(np.float64)
    expected = query.scores(admit(X))
    np.testing.assert_array_equal(query.scores(admit(as_layout(X, layout))), expected)


def test_sparse_and_dense_rows_agree():
    from scipy import sparse

    X = np.random.default_rng(1).normal(size=(500, 9))
    X[np.abs(X) < 1] = 0
    query = NormThreshold(None, 1.0, 1.05, 300, 20)
    expected = query.scores(admit(X, radius=5.0))
    np.testing.assert_array_equal(query.scores(admit(sparse.csr_array(X), radius=5.0)), expected)


def test_a_point_of_the_sphere_is_within_the_largest_radius():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6))
    query = NormThreshold(None, 1.0, 1.05, 10, 5)
    assert query.scores(admit(X, radius=1e-3))[-1] == 0


def test_draws_follow_the_law():
    query = NormThreshold(None, 1.0, 2.0, 4, 2)
    rows = admit(np.array([[0.05], [0.2], [0.3], [0.6], [0.7], [1.0]]))
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("replace-one", 6), 1)
    bits, n_draws = SeededBits(0), 4000
    counts = np.bincount(
        [int(query.draw(rows, noise, bits)[0]) for _ in range(n_draws)], minlength=4
    )
    expected = np.exp(law(query, noise, query.scores(rows)))
    assert expected.sum() == pytest.approx(1)
    assert np.sum((counts - n_draws * expected) ** 2 / (n_draws * expected)) < 22


# -- whole estimators ----------------------------------------------------------------


@every_adjacency
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_claim_of_a_fit_is_kept_and_tight(epsilon, adjacency):
    model = DPNormQuantile(epsilon, tail=3, adjacency=adjacency, resolution=1e-12)
    smallest = plan_threshold(epsilon, n_rows=4, centered=False, resolution=1e-12).smallest
    measured = threshold_epsilon(model, *worst_pair(adjacency, 3, smallest))
    assert 0.99 * epsilon <= measured <= epsilon


@every_adjacency
@on_examples(60)
def test_the_claim_is_kept_on_any_neighbours(adjacency, data):
    first, second = data.draw(neighbours(adjacency, null_row=NAN))
    model = DPNormQuantile(EPSILON, tail=data.draw(st.integers(1, 3)), adjacency=adjacency)
    if first.X.shape[0] > model.tail:
        assert threshold_epsilon(model, first.X, second.X) <= EPSILON


@every_adjacency
def test_the_claims_of_centre_and_radius(adjacency):
    model = DPFeatureCenterer(4.0, 1e-5, threshold_share=0.9, adjacency=adjacency, random_state=0)
    first = np.tile([[0.0, 0.5]], (30, 1))
    first[0] = [9.0, 0.0]
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else [-9.0, 0.0]

    def fit(X):
        with drawn(None):
            model.fit(X)

    measured = _audit.coupled_mu(fit, first, second)
    ledger = model.fit(first).ledger_
    assert 0.999 * ledger.mu <= measured <= ledger.mu
    assert ledger.epsilon(1e-5) <= 4.0
    # given one centre, the radius keeps the price on the ledger
    with _audit.recorded([np.array([3.0, 10.0])] * 2):
        measured = threshold_epsilon(model, first, second)
    (price,) = [r.noise.epsilon for r in ledger.releases if not r.noise.mu]
    assert price == 3.6
    assert measured <= price


def test_the_budget_is_composed_and_not_summed():
    X = np.random.default_rng(0).normal(size=(400, 2))
    ledger = DPFeatureCenterer(1.0, 1e-6).fit(X).ledger_
    assert gdp_mu(0.5, 1e-6) * 1.01 < ledger.mu < gdp_mu(1.0, 1e-6)
    assert 0.99 < ledger.epsilon(1e-6) <= 1.0
