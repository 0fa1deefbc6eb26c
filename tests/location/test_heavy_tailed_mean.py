# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means of heavy-tailed rows: radii, fits, input, planted bugs."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone

from skdp import DPHeavyTailedMean, DPMean
from skdp._quantiles import NormThreshold, ThresholdPlan
from skdp._rows.base import L2Ball
from skdp.exceptions import BudgetError, PrivacyWarning, SeededNoiseWarning
from skdp.location import _heavy_tailed_mean
from skdp.location._clipped_mean import ClippedRowSum
from skdp.location._heavy_tailed_mean import (
    MomentRadius,
    NoiseNorm,
    clipping_bias,
    plan_heavy_tailed_mean,
)
from skdp.privacy import Record, gdp_mu
from skdp.privacy.kernel import mechanisms
from tests import _audit
from tests._neighbours import ADJACENCIES, neighbours, on_examples
from tests.location._thresholds import drawn, threshold_epsilon, worst_pair

# The bias of clipping, and the radius that balances it with noise.


every_order = pytest.mark.parametrize("order", [1.1, 1.5, 2.0, 3.0, 10.0])


# -- the bias of clipping ------------------------------------------------------------


@every_order
def test_the_bias_on_pareto_rows_is_below_its_bound_and_that_of_the_lemma(order):
    for index in (order + 0.01, order + 1, order + 20):
        # P[x > t] = t^-index: all of these are exact
        root = (index / (index - order)) ** (1 / order)
        for radius in np.geomspace(1, 1e6, 30):
            exact = radius ** (1 - index) / (index - 1)
            bound = root * clipping_bias(order, radius / root)
            lemma = root**order / ((order - 1) * radius ** (order - 1))
            assert exact <= bound * (1 + 1e-12) <= lemma


def worst_law(order, radius):
    """Return what is taken, how often, in units of r: the law with the largest bias."""
    place = max(1.0, radius * order / (order - 1))
    return place, place**-order


@every_order
def test_the_bias_is_attained(order):
    for radius in np.geomspace(1e-3, 1e4, 60):
        place, chance = worst_law(order, radius)
        assert chance * place**order == pytest.approx(1)
        exact = chance * max(place - radius, 0)
        assert clipping_bias(order, radius) == pytest.approx(exact, rel=1e-9)


@every_order
def test_no_law_on_a_grid_has_a_larger_bias(order):
    values = np.geomspace(1e-3, 1e4, 2000)
    for radius in (0.01, 0.5, 1.0, 7.0):
        # the best law is on two points at most, one of them 0 or another of the grid
        chances = np.minimum(1, values**-order)
        assert (chances * np.maximum(values - radius, 0)).max() <= clipping_bias(order, radius)


# -- the radius ----------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("law", ["gaussian", "k-norm"])
@pytest.mark.parametrize("failure", [None, 0.3, 0.05, 1e-9])
@every_order
def test_the_radius_is_the_best_of_a_fine_grid(order, failure, law):
    for n_rows, n_features, slope in ((10_000, 10, 1e-4), (100, 1, 1e-6), (10**6, 1000, 1e-7)):
        moments = MomentRadius(order, n_rows, NoiseNorm(law, n_features), failure)
        best = math.exp(moments.best(slope))
        grid = best * np.geomspace(1e-3, 1e3, 2001)
        errors = np.array([moments.error(radius, slope * radius) for radius in grid])
        # below 1 the bound on the bias that is minimised is a little too large
        found = moments.error(best, slope * best)
        assert found <= errors[grid >= 1].min() * (1 + 1e-9)
        assert found < 0.999 * max(errors[0], errors[-1])


@every_order
def test_without_sampling_the_radius_has_the_closed_form(order):
    for slope in (1e-6, 1e-2, 1e4):
        # so many rows that only the noise is left
        moments = MomentRadius(order, 10**300, NoiseNorm("gaussian", 9))
        best = math.exp(moments.best(slope))
        closed = (order - 1) / order * (3 * slope) ** (-1 / order)
        assert best == pytest.approx(closed, rel=1e-6)
        if closed > (order - 1) / order:
            total = (3 * slope) ** (1 - 1 / order)
            assert moments.error(best, slope * best) == pytest.approx(total, rel=1e-6)


def test_norms_of_noise():
    rng = np.random.default_rng(0)
    for size in (1, 3, 40):
        gaussian = np.linalg.norm(rng.normal(size=(20_000, size)), axis=1)
        gamma = rng.gamma(size, size=20_000)
        for law, norms in (("gaussian", gaussian), ("k-norm", gamma)):
            noise = NoiseNorm(law, size)
            assert noise.rms == pytest.approx(np.sqrt(np.mean(norms**2)), rel=0.03)
            assert np.mean(norms > noise.exceeded(0.1)) == pytest.approx(0.1, abs=0.01)


def test_high_probability_costs_the_root_of_a_logarithm():
    moments = [
        MomentRadius(2.0, 10_000, NoiseNorm("gaussian", 10), failure)
        for failure in (None, 1e-2, 1e-6, 1e-12)
    ]
    errors = [m.error(x := math.exp(m.best(1e-3)), 1e-3 * x) for m in moments]
    assert errors == sorted(errors)
    assert errors[-1] < 4 * errors[0]
    # Chebyshev alone would have it a million times larger
    assert errors[2] < 3 * errors[0]


# What DPHeavyTailedMean releases, and what it promises about the error.


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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(2)
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


@pytest.mark.full
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


# Bad input to DPHeavyTailedMean: a clear error, or a correct fit within the budget.


NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-0.1, 1, NAN, "1", None],
    "moment_order": [1, 1.0, 0.5, -2, NAN, INF, 1001, "2", None],
    "moment_bound": [0, -1.0, NAN, INF, 1e-51, 1e51, "1"],
    "failure_probability": [0, 1, -0.1, 2, NAN, "0.1"],
    "adjacency": ["remove-one", None],
    "data_norm": [0, -1, NAN, INF, 1e101, "1", None],
    "random_state": [-1, "a"],
}
GIVEN = [
    {},
    {"delta": 0.0},
    {"moment_bound": 2.0},
    {"delta": 0.0, "moment_bound": 2.0, "failure_probability": 0.1, "moment_order": 1.01},
]
every_kind = pytest.mark.parametrize("given", GIVEN, ids=str)


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return clone(model).fit(data)


@pytest.mark.sample(6, 60)
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(parameter, value, validated):
    model = DPHeavyTailedMean(moment_bound=3.0, random_state=0).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises(ValueError, match=parameter),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


def test_a_probability_without_a_moment_is_refused():
    with pytest.raises(ValueError, match=r"failure_probability=0.1 needs a moment_bound"):
        DPHeavyTailedMean(failure_probability=0.1).fit(X)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-320), (1e-13, 0.0), (1e-300, 0.0)])
@pytest.mark.parametrize("moment_bound", [None, 1.0])
def test_budgets_that_round_to_nothing_are_refused(epsilon, delta, moment_bound):
    model = DPHeavyTailedMean(epsilon, delta, moment_bound=moment_bound)
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        model.fit(X)


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize(
    ("adjacency", "norm"), [("replace-one", 1e-100), ("zero-out", 1e6), ("replace-one", 1e100)]
)
@pytest.mark.parametrize(
    "data",
    [
        X[:1], X[:5, :1], np.zeros((5, 2)), np.full((50, 2), 1e300),
        np.full((50, 2), -1e-300), X.astype(np.float32), np.where(X > 0, 1e308, 5e-324),
        np.asfortranarray(X), X[:, ::-1], np.zeros((3, 400)), np.tile([1e-100, 1e100], (60, 1)),
    ],
)  # fmt: skip
def test_extreme_rows_and_budgets(given, adjacency, epsilon, norm, data):
    model = DPHeavyTailedMean(epsilon, adjacency=adjacency, data_norm=norm, random_state=0, **given)
    before = data.copy()
    fitted = fit(model, data)
    assert np.isfinite(fitted.location_).all()
    assert np.linalg.norm(fitted.location_ / norm) <= 1 + 1e-9
    assert 0 < fitted.threshold_ <= norm
    assert fitted.privacy_spent_[0] <= epsilon
    assert fitted.ledger_.epsilon(model.delta) <= epsilon
    if "moment_bound" in given:
        assert 0 < fitted.error_bound_ <= 4.0
        assert np.linalg.norm(fitted.location_) <= 2.0 * (1 + 1e-12)
    else:
        assert fitted.error_bound_ is None
    np.testing.assert_array_equal(data, before)


@pytest.mark.covering
@pytest.mark.parametrize("order", [1 + 1e-12, 1.5, 2.0, 1000.0])
@pytest.mark.parametrize("bound", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("failure", [None, 1 - 1e-9, 1e-300])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-11, 0.0), (1e-9, 1e-12), (1e6, 1e-6)])
def test_extreme_moments(order, bound, failure, epsilon, delta):
    for norm in (1e-100, 1e100):
        model = DPHeavyTailedMean(
            epsilon, delta, moment_order=order, moment_bound=bound, failure_probability=failure,
            data_norm=norm, random_state=0,
        )  # fmt: skip
        fitted = fit(model, X)
        assert np.isfinite(fitted.location_).all()
        assert 0 < fitted.threshold_ <= norm
        assert 0 < fitted.error_bound_ <= 2 * bound
        assert np.linalg.norm(fitted.location_) <= bound * (1 + 1e-9)


def test_infinite_variance():
    rng = np.random.default_rng(0)
    # the 1.1th power of |x| has the mean 1.2 / 0.1
    model = DPHeavyTailedMean(1.0, moment_order=1.1, moment_bound=12.0 ** (1 / 1.1))
    errors = [
        abs(model.fit(1 + rng.pareto(1.2, size=(5000, 1))).location_[0] - 6) for _ in range(30)
    ]
    assert np.mean(errors) < model.error_bound_ < 2 * model.moment_bound
    cauchy = DPHeavyTailedMean(3.0).fit(rng.standard_cauchy(size=(20_000, 3)))
    assert np.linalg.norm(cauchy.location_) < 2


def test_a_million_columns():
    rows = sparse.random_array((50, 10**6), density=1e-5, rng=0, format="csr")
    for given in ({"moment_bound": 5.0}, {"moment_bound": 5.0, "failure_probability": 0.1}, {}):
        fitted = fit(DPHeavyTailedMean(random_state=0, **given), rows)
        assert fitted.location_.shape == (10**6,)


@pytest.mark.sample(1)
@every_kind
def test_read_only_rows_and_lists(given):
    frozen = X.copy()
    frozen.flags.writeable = False
    one = fit(DPHeavyTailedMean(20.0, random_state=0, **given), frozen).location_
    two = fit(DPHeavyTailedMean(20.0, random_state=0, **given), X.tolist()).location_
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_rows_that_are_not_finite_are_refused(bad):
    data = X.copy()
    data[3, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        DPHeavyTailedMean().fit(data)


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (4,)])
def test_shapes_that_are_no_rows_are_refused(shape):
    with pytest.raises(ValueError, match=r"array|sample|feature"):
        DPHeavyTailedMean().fit(np.zeros(shape))


@every_kind
def test_a_huge_outlier_moves_the_mean_by_a_radius_at_most(given):
    far = X.copy()
    far[0] = 1e300
    model = DPHeavyTailedMean(1e5, random_state=0, **given)
    near, moved = fit(model, X), fit(model, far)
    limit = 2.1 * max(near.threshold_, moved.threshold_) / len(X)
    assert np.linalg.norm(near.location_ - moved.location_) < limit + 0.01


# The privacy claims of heavy-tailed means: coupled traces of whole fits, and planted bugs.


EPSILON, DELTA = 4.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
MUTANT_NAN = float("nan")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def mean(adjacency="replace-one", epsilon=EPSILON, delta=DELTA, **options):
    options = {"random_state": 0, "moment_bound": 1.0, "data_norm": 1e6, **options}
    return DPHeavyTailedMean(epsilon, delta, adjacency=adjacency, **options)


def fitted(model, X):
    """Fit, with null rows in the data: validation would refuse them."""
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(X)


def measured(model, first, second):
    """Return the coupled loss of the mean, relative to what the whole fit may cost.

    A radius that is to be drawn is the same in both worlds: its own loss is not in it.
    """
    coupled = _audit.coupled_mu if model.delta else _audit.coupled_epsilon
    claim = gdp_mu(model.epsilon, model.delta) if model.delta else model.epsilon
    with drawn(None):
        return coupled(lambda X: fitted(model, X), first, second) / claim


def pair(adjacency, d=3, n_rows=400):
    """Return rows near 0 and a far one, which becomes its opposite or null."""
    first = np.random.default_rng(0).normal(size=(n_rows, d)) * 1e-3
    first[0] = 1e5
    second = first.copy()
    second[0] = MUTANT_NAN if adjacency == "zero-out" else -first[0]
    return first, second


@every_adjacency
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("failure", [None, 0.01])
def test_claims_with_a_moment_are_kept_and_tight(adjacency, delta, failure):
    model = mean(adjacency, delta=delta, failure_probability=failure)
    assert 0.999 <= measured(model, *pair(adjacency)) <= 1.0


@pytest.mark.sample(1)
@every_adjacency
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_claims_of_the_mean_beside_a_draw_are_kept(adjacency, delta):
    model = mean(adjacency, delta=delta, moment_bound=None)
    share = measured(model, *pair(adjacency))
    assert 0.6 < share < 0.9
    releases = fitted(model, pair(adjacency)[0]).ledger_.releases
    claim = releases[1].noise.mu / CLAIMED_MU if delta else releases[1].noise.epsilon / EPSILON
    assert 0.999 <= share / claim <= 1.0


def draw_loss(adjacency):
    """Return the exact loss of the draw on its worst neighbours, relative to its price."""
    plan = plan_heavy_tailed_mean(
        20.0, DELTA, n_rows=20, n_features=1, adjacency=adjacency, data_norm=1.0
    ).draw
    assert plan.released
    # rows at the origin, as many as the plan asks for, change nothing
    rows = worst_pair(adjacency, plan.tail, plan.smallest)
    rows = [np.concatenate([X, np.zeros((20 - len(X), 1))]) for X in rows]
    model = mean(adjacency, epsilon=20.0, moment_bound=None, data_norm=1.0)
    return threshold_epsilon(model, *rows) / plan.epsilon


@pytest.mark.sample(1)
@every_adjacency
def test_claims_of_the_draw_are_kept_and_tight(adjacency):
    assert 0.98 <= draw_loss(adjacency) <= 1.0


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("options", [{}, {"moment_bound": None}, {"delta": 0.0}], ids=str)
@on_examples(20)
def test_claims_are_kept_on_any_neighbours(adjacency, options, data):
    one, two = data.draw(neighbours(adjacency, null_row=MUTANT_NAN))
    # a budget with which nine rows are not too few, and quickly composed
    model = mean(adjacency, epsilon=1000.0, **options)
    assert measured(model, one.X, two.X) <= 1.0


@pytest.mark.sample(1)
@every_adjacency
def test_a_doubled_radius_charged_as_one_is_caught(adjacency, monkeypatch):
    model, rows = mean(adjacency), pair(adjacency)
    assert measured(model, *rows) <= 1.0
    real = ClippedRowSum.partial
    monkeypatch.setattr(
        ClippedRowSum,
        "partial",
        lambda self, chunk: 2 * real(replace(self, radius=2 * self.radius), chunk),
    )
    # rows were admitted into the ball of the radius, so it is the sum that doubles
    assert measured(model, *rows) > 1.9
    assert measured(mean(adjacency, moment_bound=None), *rows) > 1.9


def test_two_sides_charged_as_one_are_caught(monkeypatch):
    model, rows = mean(), pair("replace-one")
    assert measured(model, *rows) <= 1.0
    real = ClippedRowSum.sensitivity
    monkeypatch.setattr(
        ClippedRowSum, "sensitivity", lambda self, _, n_rows: real(self, "zero-out", n_rows)
    )
    assert measured(model, *rows) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("options", [{}, {"moment_bound": None}], ids=str)
def test_dropped_clipping_is_caught(options, monkeypatch):
    model, rows = mean(**options), pair("replace-one")
    assert measured(model, *rows) <= 1.0

    # neither on the way in nor in the sum
    def unclipped(self, chunk, real=ClippedRowSum.partial):
        return real(replace(self, radius=1e300), chunk)

    monkeypatch.setattr(L2Ball, "factors", lambda ball, norms: np.full_like(norms, 1 / ball.radius))
    monkeypatch.setattr(ClippedRowSum, "partial", unclipped)
    assert measured(model, *rows) > 1.5


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_halved_noise_is_caught(delta, monkeypatch):
    model, rows = mean(delta=delta), np.random.default_rng(0).normal(size=(300, 500))
    fit = lambda: fitted(model, rows)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


@pytest.mark.sample(1)
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_a_mean_that_takes_all_of_the_budget_is_caught(delta, monkeypatch):
    model, rows = mean(delta=delta, moment_bound=None), pair("replace-one")[0]
    assert fitted(model, rows).ledger_.epsilon(delta) <= EPSILON
    real = _heavy_tailed_mean._price_of_mean
    monkeypatch.setattr(_heavy_tailed_mean, "_price_of_mean", lambda e, d, drawn: real(e, d, 0.0))
    with pytest.raises(BudgetError):
        fitted(model, rows)
    # without that check the ledger tells
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    assert fitted(model, rows).privacy_spent_[0] > 1.2 * EPSILON


def replayed(model, first, second):
    """Return whether equal outputs of the mechanisms give equal fitted attributes."""
    found = []
    for X in (first, second):
        with drawn(None), _audit.recorded([np.array([7.0, -5.0, 1.0])] * 2):
            found.append(vars(clone(model).fit(X)))
    keys = [key for key in found[0] if key.endswith("_")]
    return all(np.array_equal(found[0][key], found[1][key]) for key in keys)


@pytest.mark.parametrize("options", [{}, {"moment_bound": None}, {"delta": 0.0}], ids=str)
def test_all_attributes_follow_from_what_was_released(options):
    assert replayed(mean(**options), *pair("replace-one"))


def test_a_radius_read_off_the_rows_is_caught(monkeypatch):
    rows, model = pair("replace-one"), mean(moment_bound=None)
    rows[1][0] = 3.0
    assert replayed(model, *rows)

    def largest(self, curator, center=None):
        return min(1.0, max(chunk.norm.max() for chunk in curator._admitted(None).chunks))

    monkeypatch.setattr(ThresholdPlan, "run", largest)
    assert not replayed(model, *rows)


@every_adjacency
def test_half_the_spread_of_the_draw_is_caught(adjacency, monkeypatch):
    assert draw_loss(adjacency) <= 1.0
    real = NormThreshold.sensitivity
    monkeypatch.setattr(
        NormThreshold, "sensitivity", lambda self, *args: replace(real(self, *args), spread=1.0)
    )
    assert draw_loss(adjacency) > 1.7
