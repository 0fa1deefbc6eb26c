# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPHeavyTailedMean releases, and what it promises about the error."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from skdp import DPHeavyTailedMean, DPMean
from skdp.exceptions import SeededNoiseWarning
from skdp.location._clipped_mean import ClippedRowSum
from skdp.location._heavy_tailed_mean import plan_heavy_tailed_mean
from skdp.privacy import gdp_mu
from tests.location.test_moment_radius import worst_law


def test_the_radius_in_the_units_of_the_data_and_its_range():
    X = np.zeros((500, 2))
    one = DPHeavyTailedMean(moment_bound=1.0).fit(X)
    for unit in (1e-20, 1e4):
        scaled = DPHeavyTailedMean(moment_bound=unit, data_norm=1e100).fit(X)
        assert scaled.threshold_ == pytest.approx(unit * one.threshold_)
        assert scaled.error_bound_ == pytest.approx(unit * one.error_bound_)
    cut = DPHeavyTailedMean(moment_bound=1.0, data_norm=0.5).fit(X)
    assert cut.threshold_ == 0.5
    assert cut.error_bound_ > one.error_bound_
    assert DPHeavyTailedMean(moment_bound=1.0, adjacency="zero-out").fit(X).error_bound_ < (
        one.error_bound_
    )


# -- the error -----------------------------------------------------------------------


def two_point_rows(order, plan, size, rng):
    """Return rows of the worst law of a plan, in one direction, and their mean."""
    place, chance = worst_law(order, plan.ball / plan.unit)
    X = np.zeros(size)
    X[:, 0] = plan.unit * place * (rng.uniform(size=size[0]) < chance)
    mean = np.zeros(size[1])
    mean[0] = plan.unit * place * chance
    return X, mean


LAWS = {
    # draw, mean, and the root of a moment of the norm; d features
    "t": lambda rng, n, d: (rng.standard_t(4.5, size=(n, d)), 0.0),
    "pareto": lambda rng, n, d: (rng.pareto(2.5, size=(n, d)), 1 / 1.5),
    "lognormal": lambda rng, n, d: (rng.lognormal(size=(n, d)), math.exp(0.5)),
}
# E x^2 of a coordinate
SQUARES = {"t": 4.5 / 2.5, "pareto": 2 / (1.5 * 0.5), "lognormal": math.exp(2)}


@pytest.mark.parametrize("norm", [0.2, 0.5, 2.0])
def test_the_bound_holds_at_a_radius_that_was_cut(norm):
    # rows of one of two values: so many that the bias is all there is
    model = DPHeavyTailedMean(moment_bound=1.0, data_norm=norm).fit(np.zeros((10**5, 1)))
    place, chance = worst_law(2.0, norm)
    assert model.threshold_ == norm
    assert 0 <= model.error_bound_ - chance * (place - norm) < 0.02


@pytest.mark.covering
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("delta", "d"), [(1e-6, 1), (1e-6, 20), (0.0, 3)])
def test_the_expected_error_is_below_its_bound(law, delta, d):
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(40):
        X, mean = LAWS[law](rng, 2000, d)
        model = DPHeavyTailedMean(1.0, delta, moment_bound=math.sqrt(d * SQUARES[law]))
        model.fit(X)
        errors.append(np.linalg.norm(model.location_ - mean))
    assert np.mean(errors) < model.error_bound_
    assert np.mean(errors) > model.error_bound_ / 20


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
def test_on_the_worst_law_the_bound_is_within_a_factor(order):
    rng = np.random.default_rng(0)
    given = {"moment_order": order, "moment_bound": 3.0}
    shape = {"n_rows": 4000, "n_features": 10, "adjacency": "replace-one", "data_norm": 1e6}
    plan = plan_heavy_tailed_mean(0.3, 1e-6, **shape, **given)
    errors = []
    for _ in range(60):
        X, mean = two_point_rows(order, plan, (4000, 10), rng)
        model = DPHeavyTailedMean(0.3, 1e-6, **given).fit(X)
        errors.append(np.linalg.norm(model.location_ - mean))
    assert model.threshold_ == pytest.approx(plan.ball)
    assert 0.6 < np.mean(errors) / model.error_bound_ < 1


@pytest.mark.covering
@pytest.mark.parametrize(("failure", "delta"), [(0.2, 1e-6), (0.01, 1e-6), (0.01, 0.0)])
def test_the_error_is_below_its_bound_with_high_probability(failure, delta):
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(200):
        X = rng.pareto(2.1, size=(1000, 2))
        model = DPHeavyTailedMean(
            2.0, delta, moment_bound=math.sqrt(2 * 2 / (1.1 * 0.1)), failure_probability=failure
        )
        errors.append(np.linalg.norm(model.fit(X).location_ - 1 / 1.1))
    assert np.mean(np.array(errors) > model.error_bound_) <= failure
    expected = DPHeavyTailedMean(2.0, delta, moment_bound=model.moment_bound).fit(X)
    assert expected.error_bound_ < model.error_bound_


@pytest.mark.covering
@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("vary", ["n_rows", "mu"])
def test_the_error_falls_at_the_rate_of_the_moment(order, vary):
    # on the worst law for each size, where the noise is what limits the radius
    rng = np.random.default_rng(0)
    epsilons = {"n_rows": [0.2] * 3, "mu": [0.2, 0.8, 3.2]}[vary]
    sizes = {"n_rows": [1000, 6000, 36_000], "mu": [6000] * 3}[vary]
    given = {"moment_order": order, "moment_bound": 1.0}
    measured = []
    for epsilon, n_rows in zip(epsilons, sizes, strict=True):
        shape = {"n_rows": n_rows, "n_features": 100, "adjacency": "replace-one", "data_norm": 1e6}
        plan = plan_heavy_tailed_mean(epsilon, 1e-6, **shape, **given)
        errors = []
        for _ in range(5):
            X, mean = two_point_rows(order, plan, (n_rows, 100), rng)
            model = DPHeavyTailedMean(epsilon, 1e-6, **given).fit(X)
            errors.append(np.linalg.norm(model.location_ - mean))
        measured.append(np.mean(errors))
    x = sizes if vary == "n_rows" else [gdp_mu(epsilon, 1e-6) for epsilon in epsilons]
    slope = np.polyfit(np.log(x), np.log(measured), 1)[0]
    assert slope == pytest.approx(-(order - 1) / order, abs=0.08)


# -- the drawn radius ----------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_the_drawn_radius_leaves_out_about_as_many_rows_as_planned(adjacency):
    X = np.random.default_rng(0).standard_t(3, size=(5000, 10))
    norms = np.linalg.norm(X, axis=1)
    for scale in (1e-9, 1.0):
        model = DPHeavyTailedMean(3.0, adjacency=adjacency).fit(scale * X)
        tail = int(model.ledger_.releases[0].query.split()[3])
        beyond = np.sum(norms > model.threshold_ / scale)
        assert 0 < beyond < 2 * tail
        assert model.error_bound_ is None


@pytest.mark.covering
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("n_rows", "drawn"), [(12, False), (30, True), (1000, True)])
def test_with_few_rows_nothing_is_drawn(n_rows, drawn, delta):
    model = DPHeavyTailedMean(3.0, delta, data_norm=100.0).fit(np.ones((n_rows, 2)))
    assert len(model.ledger_.releases) == 1 + drawn
    assert (model.threshold_ == 100.0) == (not drawn)
    assert 2.6 < model.privacy_spent_[0] <= 3.0
    assert np.linalg.norm(model.location_) <= model.threshold_ * (1 + 1e-12)


@pytest.mark.full
def test_a_generous_range_costs_little():
    rng = np.random.default_rng(0)
    errors = {}
    for data_norm in (1e2, 1e12):
        found = [
            DPHeavyTailedMean(3.0, data_norm=data_norm)
            .fit(rng.standard_t(3, size=(2000, 5)))
            .location_
            for _ in range(40)
        ]
        errors[data_norm] = np.mean(np.linalg.norm(found, axis=1))
    assert errors[1e12] < 1.15 * errors[1e2]


@pytest.mark.full
def test_with_many_features_it_is_better_than_counts():
    rng = np.random.default_rng(0)
    pair = DPHeavyTailedMean(3.0), DPMean(3.0, mechanism="clipped", data_norm=1e6)
    errors = np.zeros(2)
    for _ in range(8):
        X = rng.standard_t(2.1, size=(2000, 100))
        errors += [np.linalg.norm(model.fit(X).location_) for model in pair]
    assert errors[0] < 0.8 * errors[1]


# -- the rest ------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"moment_bound": 2.0}, {"delta": 0.0}])
def test_sparse_rows(given):
    X = np.random.default_rng(0).uniform(size=(300, 5))
    X[X < 0.6] = 0
    with pytest.warns(SeededNoiseWarning):
        dense = DPHeavyTailedMean(random_state=0, **given).fit(X)
    with pytest.warns(SeededNoiseWarning):
        rows = DPHeavyTailedMean(random_state=0, **given).fit(sparse.csc_array(X))
    np.testing.assert_allclose(rows.location_, dense.location_, atol=1e-5)
    assert rows.score(sparse.csr_array(X)) == pytest.approx(dense.score(X), rel=1e-4)


def test_seeds():
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.warns(SeededNoiseWarning):
        models = [DPHeavyTailedMean(random_state=seed).fit(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(models[0].location_, models[1].location_)
    assert (models[0].location_ != models[2].location_).all()
    assert models[0].ledger_.seeded
    free = [DPHeavyTailedMean(moment_bound=1.0).fit(X).location_ for _ in range(2)]
    assert (free[0] != free[1]).all()


def test_rounding_is_beside_the_root_where_sampling_is_most_of_the_error():
    # a noise of no account, on a coarse grid: a step added to its scale would be lost
    plan = plan_heavy_tailed_mean(
        1e4, 1e-3, n_rows=100, n_features=4, adjacency="zero-out", data_norm=1e6, moment_bound=1.0
    )
    assert plan.moments is not None
    noise = plan.mechanism.calibrate(ClippedRowSum(4, 1.0).sensitivity("zero-out", 100), 4)
    coarse, fine = replace(noise, grid=1e-4), replace(noise, grid=1e-30)
    step = plan.ball * 1e-4 / 100
    assert plan.error_bound(coarse) - plan.error_bound(fine) == pytest.approx(2 * step)
