# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means that do not pay for the offset: how they are planned, and what they are good for."""

import math

import numpy as np
import pytest
from scipy import sparse

from skdp import DPMean
from skdp.location._clipped_mean import MEANS, ClippedMean, GaussianMean, RadiusSearch, plan_mean
from skdp.privacy import Curator, gdp_mu
from tests._neighbours import ADJACENCIES, rows_in_ball

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
    few = DPMean(mechanism="coinpress", random_state=0).fit(np.ones((10, 2)))
    assert few.mechanism_ == "gaussian"
    assert len(few.ledger_.releases) == 1
    with pytest.raises(ValueError, match="mechanism must be one of"):
        chosen("median", 10)


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


@pytest.mark.covering
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


@pytest.mark.parametrize("freedom", [2.1, 3.0])
def test_heavy_tails_with_a_range_for_a_norm(freedom):
    X = np.random.default_rng(1).standard_t(freedom, size=(5000, 5))
    wide = {"data_norm": 1e6}
    assert errors("clipped", X, **wide) < errors("gaussian", X, **wide) / 1000
    # and if somebody told the Gaussian mean the longest row, it would still be no better
    longest = np.linalg.norm(X, axis=1).max()
    assert errors("clipped", X, **wide) < errors("gaussian", X, data_norm=longest)
    # around the origin an offset counts as a tail; around a released centre it does not
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
        model = DPMean(mechanism=mechanism)
        assert not model.__sklearn_tags__().input_tags.sparse
        with pytest.raises(TypeError, match=f"Sparse rows need .*'clipped'.*{mechanism}"):
            model.fit(sparse.csr_array(X))
        with pytest.raises(TypeError, match="Sparse rows need"):
            model.fit(X).score(sparse.csr_array(X))
    assert DPMean(mechanism="clipped").__sklearn_tags__().input_tags.sparse


def test_plans_are_public_values():
    given = {"n_rows": 5000, "n_features": 3, "mu": 0.3, "adjacency": "zero-out"}
    one, two = plan_mean("coinpress", **given), plan_mean("coinpress", **given)
    assert one == two
    assert isinstance(one, ClippedMean)
    assert 1 <= one.n_stages <= 4
    assert GaussianMean(5, 2, 0.1).n_releases == 1
