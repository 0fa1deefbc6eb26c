# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Least squares of public maps of rows: what bends, what it costs, and how one is chosen."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.inspection import partial_dependence

from skdp import DPKernelRegressor
from skdp._rows.linear import regression_rows
from skdp.audit import trace_privacy
from skdp.linear_model._kernel_classifier import Hats, Waves
from skdp.linear_model._kernel_regressor import NearerRows, WithColumns, missed
from skdp.privacy import gdp_mu

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) * [1.0, 1e4, 1e-3] + [0.0, 5.0, 1.0]
Z = (X - [0.0, 5.0, 1.0]) / [1.0, 1e4, 1e-3]
CURVE = 100 + 30 * (Z[:, 0] ** 2 + np.abs(Z[:, 1]) + Z[:, 2])
PRODUCT = Z[:, 0] * Z[:, 1]


def model(**given):
    fixed = {"epsilon": 2.0, "kernel": "additive", "random_state": 0}
    return DPKernelRegressor(**{**fixed, **given})


@pytest.mark.full
def test_each_kernel_bends_as_it_can():
    scores = {
        (kernel, name): model(kernel=kernel).fit(X, y).score(X, y)
        for kernel in ("linear", "additive", "rbf")
        for name, y in (("curve", CURVE), ("product", PRODUCT), ("straight", Z[:, 0] - Z[:, 1]))
    }
    assert scores["linear", "curve"] < 0.5 > scores["linear", "product"]
    assert scores["additive", "curve"] > 0.9 > 0.2 > scores["additive", "product"]
    assert min(scores["rbf", "curve"], scores["rbf", "product"]) > 0.8
    assert min(scores[kernel, "straight"] for kernel in ("linear", "additive", "rbf")) > 0.97


def test_a_straight_line_goes_on_beyond_the_knots():
    fitted = model(epsilon=20.0).fit(Z[:1000], Z[:1000, 0])
    ends = np.zeros((2, 3))
    # far beyond the outermost knot, where hats are constant and columns are not
    ends[:, 0] = 3.0, 6.0
    near, far = fitted.predict(ends)
    assert near + 1 < far < 7


def test_columns_stand_beside_what_bends():
    hats = Hats(3, np.array([-1.0, 0.0, 2.0]))
    features = WithColumns(hats, 3, 2.0)
    share, line = features.shares
    mapped = features(Z[:50])
    np.testing.assert_array_equal(mapped, np.hstack([share * hats(Z[:50]), line * Z[:50]]))
    assert features.size == mapped.shape[1] == 12
    # rows of the usual length are of norm at most 1
    usual = 2.0 * Z[:50] / np.linalg.norm(Z[:50], axis=1)[:, None]
    assert np.linalg.norm(features(usual), axis=1).max() <= 1 + 1e-15


@pytest.mark.full
def test_numbers_of_knots_and_waves_follow_from_public_numbers():
    def chosen(n_rows, n_columns, **given):
        rows = np.resize(Z, (n_rows, n_columns))
        fitted = model(**given).fit(rows, np.arange(n_rows) % 7)
        return fitted.n_knots_, fitted.n_components_

    assert chosen(4000, 3, epsilon=0.05) == (None, None)
    few, more = chosen(4000, 3, epsilon=0.5)[0], chosen(4000, 3, epsilon=4.0)[0]
    assert 3 <= few < more <= 16
    assert chosen(200, 3, n_knots=9) == (9, None)
    assert chosen(4000, 3, kernel="rbf", epsilon=50.0) == (None, 500)
    assert chosen(200, 3, kernel="rbf", n_components=31) == (None, 31)
    # and from nothing that is private
    assert chosen(4000, 3) == (model().fit(-5 * X**3, PRODUCT).n_knots_, None)


def test_a_small_column_among_many_of_one_unit_has_its_own():
    rng = np.random.default_rng(0)
    # answers of yes and no, rare ones among them, and a ratio that all depends on
    words = rng.random((1800, 14)) < np.linspace(0.03, 0.6, 14)
    ratio = 0.26 + 0.07 * rng.normal(size=1800)
    rows = np.column_stack([ratio, words])
    fitted = model(epsilon=4.0).fit(rows, ratio**2)
    assert 0.04 < fitted.feature_scale_[0] < 0.16
    assert fitted.score(rows, ratio**2) > 0.9
    # a median that is a little off 0 makes no unit of a column of zeros
    assert fitted.feature_scale_[1:].min() > 0.4


@pytest.mark.parametrize("kernel", ["additive", "rbf"])
def test_maps_are_free_and_public_units_save_the_search(kernel):
    straight = model(kernel="linear").fit(X[:1500], CURVE[:1500])
    bent = model(kernel=kernel, n_components=10, n_knots=4).fit(X[:1500], CURVE[:1500])
    queries = [release.query for release in bent.ledger_.releases]
    assert queries == [release.query for release in straight.ledger_.releases]
    assert bent.privacy_spent_ == straight.privacy_spent_
    assert bent.coef_.shape == ({"linear": 3, "additive": 3 * 4 + 3, "rbf": 13}[kernel],)
    bounds = [(-4.0, 4.0), (-4e4, 4e4), (0.996, 1.004)]
    known = model(kernel=kernel, bounds=bounds, n_components=10, target_scale=30.0)
    known.fit(X[:1500], CURVE[:1500] - 130)
    # a look at the size of targets, products, gradients
    assert len(known.ledger_.releases) == 3
    np.testing.assert_allclose(known.feature_center_, [0.0, 0.0, 1.0], atol=1e-12)
    assert (known.target_center_, known.target_scale_) == (0.0, 30.0)


@pytest.mark.parametrize("kernel", ["auto", "linear", "additive", "rbf"])
def test_entries_beyond_public_bounds_count_as_those_at_them(kernel):
    given = {"kernel": kernel, "bounds": (0.0, 1.0), "target_scale": 30.0, "random_state": 0}
    rows, y = X[:1500] + 2.0, CURVE[:1500] - 130
    fitted, cut = (model(**given).fit(one, y) for one in (rows, np.clip(rows, 0.0, 1.0)))
    np.testing.assert_allclose(fitted.coef_, cut.coef_, rtol=1e-9)
    np.testing.assert_allclose(
        fitted.predict(rows), cut.predict(np.clip(rows, 0.0, 1.0)), rtol=1e-9
    )
    # far rows were scaled down in the fit, and predicted as far: R2 was below -100
    assert fitted.score(rows, y) > -0.5


@pytest.mark.filterwarnings("ignore:.*gives almost no privacy")
@pytest.mark.parametrize("kernel", ["auto", "additive", "rbf"])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_trace_attains_the_claim_and_no_more(kernel, adjacency):
    rows = 0.1 * RNG.normal(size=(60, 2))
    other = rows.copy()
    rows[7] = 5.0
    other[7] = np.nan if adjacency == "zero-out" else -5.0
    given = {"kernel": kernel, "n_knots": 4, "bounds": (-1.0, 1.0), "adjacency": adjacency}
    given |= {"target_scale": 1.0, "max_iter": 6}
    queries = set()
    # sixty rows are enough for a choice, by what lines leave over or by what both kernels miss
    budgets = (2.0,) if kernel != "auto" else (28.0, 4000.0)
    for epsilon in budgets:
        given |= {"epsilon": epsilon, "n_components": 6}
        found = trace_privacy(model(**given), X=rows, X_neighbour=other, y=np.arange(60) % 2 - 0.5)
        assert found.passed
        queries |= {r.query for r in found.releases}
        assert 0.05 < found.share <= 1
    asked = [
        any(words in q for q in queries) for words in ("bends of columns", "squared residuals")
    ]
    assert asked == [kernel == "auto"] * 2


def test_a_choice_of_the_kernel_is_paid_for_out_of_the_same_budget():
    given = {"kernel": "auto", "n_knots": 7, "n_components": 24, "adjacency": "zero-out"}
    given |= {"bounds": (-3.0, 3.0), "target_scale": 1.0}
    chosen, rows = {}, Z[:700]
    for name, y in (("bent", np.abs(rows[:, 0]) - 0.8), ("product", PRODUCT[:700])):
        fitted = model(epsilon=16.0, **given).fit(rows, y)
        assert fitted.score(rows, y) > 0.5
        chosen[name] = fitted.kernel_
        assert 15.9 < fitted.privacy_spent_[0] <= 16.0
        (line,) = [r for r in fitted.ledger_.releases if "squared residuals" in r.query]
        assert line.noise.scale == pytest.approx(10 / gdp_mu(16.0, 1e-6), rel=1e-4)
    assert chosen == {"bent": "additive", "product": "rbf"}
    # lines decide where a trial would see nothing, and where these do not: public numbers
    for epsilon, kernel, count in ((2.0, "rbf", 1), (0.5, "additive", 0)):
        few = model(epsilon=epsilon, **given).fit(rows, PRODUCT[:700])
        assert few.kernel_ == kernel
        assert sum("bends of columns" in r.query for r in few.ledger_.releases) == count
        assert not any("squared residuals" in r.query for r in few.ledger_.releases)
        assert 0.99 * epsilon < few.privacy_spent_[0] <= epsilon
    # a plan has the releases of a fit
    planned = model(epsilon=16.0, **given).plan(700, 3).ledger
    lines = [[(r.query, r.count) for r in led.releases] for led in (planned, fitted.ledger_)]
    assert lines[0] == lines[1]


def test_waves_make_up_for_units_that_are_not_searched():
    y, small = Z[:, 0] + Z[:, 2], "norms that is not 0"
    # a signal of 25: by a count, for 8 ranks of it, at most .03 of the squared budget
    asked = DPKernelRegressor(0.044, random_state=0)
    unlike, alike = (np.hstack([rows, rows[::-1]]) for rows in (X, Z))
    for rows, kernel in ((unlike, "rbf"), (alike, "linear")):
        fitted = clone(asked).fit(rows, y)
        (line,) = [r for r in fitted.ledger_.releases if small in r.query]
        assert fitted.kernel_ == kernel
        assert line.noise.scale == pytest.approx(4000 / 8, rel=2e-3)
        assert (4000 / line.noise.scale) ** 2 < 0.03 * (4000 * gdp_mu(0.044, 1e-6)) ** 2
        assert 0.999 * 0.044 < fitted.privacy_spent_[0] <= 0.044
        assert np.ptp(fitted.feature_scale_) == 0
    # a plan has the releases of a fit, with waves
    ledgers = asked.plan(4000, 6).ledger, fitted.ledger_
    planned, made = ([r.query for r in ledger.releases] for ledger in ledgers)
    assert planned == made
    # neither with less signal, nor with units of columns, nor for one of them, nor where it is said
    for given, rows in (
        ({"epsilon": 0.03}, unlike),
        ({"epsilon": 0.1}, unlike),
        ({}, unlike[:, :1]),
        ({"kernel": "linear"}, unlike),
        ({"n_knots": 3}, unlike),
        ({"bounds": (-4e4, 4e4)}, unlike),
    ):
        fitted = clone(asked).set_params(**given).fit(rows, y)
        assert not any(small in r.query for r in fitted.ledger_.releases)


@pytest.mark.filterwarnings("ignore:.*gives almost no privacy")
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_count_of_small_entries_is_part_of_the_claim(adjacency):
    rows = 0.1 * RNG.normal(size=(60, 6)) * [1.0, 1e3, 1.0, 1.0, 1.0, 1.0]
    other = rows.copy()
    rows[7] = 1.0, 1e-3, 1.0, 1.0, 1.0, 1.0
    other[7] = np.nan if adjacency == "zero-out" else 1.0
    asked = DPKernelRegressor(2.0 if adjacency == "zero-out" else 4.0, adjacency=adjacency)
    found = trace_privacy(asked, X=rows, X_neighbour=other, y=np.arange(60) % 2 - 0.5)
    assert found.passed
    assert 0.05 < found.share <= 1
    assert any("norms that is not 0" in r.query for r in found.releases)


def nearer(rows, target, weight=None, null=()):
    """Return what the query says of rows, beside the sum by its definition."""
    rng = np.random.default_rng(3)
    maps = (
        WithColumns(Hats(2, np.array([-1.0, 0.0, 1.0])), 2, 1.0),
        Waves(rng.normal(size=(4, 2)), 1),
    )
    coefs = tuple(rng.normal(size=m.size + 1) for m in maps)
    query, wanted = NearerRows(maps, coefs, 0.3, center=2.0, scale=0.5), 0.0
    for i, (row, number) in enumerate(zip(rows, target, strict=True)):
        z, u = (m(row[None])[0] @ c[:-1] + 0.3 * c[-1] for m, c in zip(maps, coefs, strict=True))
        t = (number - 2.0) / 0.5
        # the difference of the squares, without their overflow
        more = min(max((u - z) * (2 * t - z - u), -1.0), 1.0)
        wanted += more * (i not in null) * (1.0 if weight is None else weight[i])
    target = np.where(np.isin(np.arange(len(rows)), null), np.nan, target)
    found = query.evaluate(regression_rows(rows, target, weight=weight))
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    return found[0], query


def test_a_comparison_moves_as_stated_and_no_further():
    rows, target = RNG.normal(size=(6, 2)), 2 + 0.2 * RNG.normal(size=6)
    nearer(rows, target, np.linspace(0, 1, 6))
    gone, query = nearer(rows, target, null=[2])
    far = (-1e200, *np.linspace(-3, 7, 40), 1e200)
    found = [nearer(rows, np.where(np.arange(6) == 2, y, target))[0] for y in far]
    assert np.abs(np.subtract(found, gone)).max() == pytest.approx(1.0)
    assert np.ptp(found) == pytest.approx(2.0)
    # a small difference of the squares counts as it is
    assert len(np.unique(np.round(found, 9))) > 2
    stated = [query.sensitivity(adjacency, 6).l2 for adjacency in ("zero-out", "replace-one")]
    assert stated == [1.0, 2.0]
    # numbers that floats cannot square are no NaN
    assert np.isfinite(nearer(1e140 * rows, target)[0])


@pytest.mark.full
def test_the_functions_of_an_additive_model_are_drawn_by_partial_dependence():
    fitted = model(epsilon=8.0).fit(X, CURVE)
    grid = np.linspace(-1.5, 1.5, 7)
    drawn = [
        partial_dependence(fitted, X[rows], [0], custom_values={0: grid})["average"][0]
        for rows in (slice(300), slice(300, 320))
    ]
    # the same shape whatever the other columns are, low in the middle
    np.testing.assert_allclose(drawn[0] - drawn[0].mean(), drawn[1] - drawn[1].mean(), atol=1e-9)
    assert drawn[0][3] < min(drawn[0][0], drawn[0][-1]) - 30


@pytest.mark.full
def test_rows_far_off_and_predictions_in_parts():
    far = np.vstack([X, 1e300 * Z[:20], -1e-300 * Z[:20]])
    for kernel in ("additive", "rbf"):
        fitted = model(kernel=kernel).fit(X, CURVE)
        found = fitted.predict(np.vstack([far, far]))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[: len(far)], fitted.predict(far), rtol=1e-9)
        np.testing.assert_allclose(fitted.to_sklearn().predict(far), fitted.predict(far), rtol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("kernel", ["auto", "additive", "rbf"])
def test_unusual_rows_and_targets_do_not_break_a_fit(kernel):
    for rows, y in (
        (np.zeros((500, 2)), np.arange(500.0)),
        (Z[:500], np.full(500, 1e300)),
        (1e300 * Z[:500], 1e-300 * PRODUCT[:500]),
        (np.ones((500, 30)), PRODUCT[:500]),
    ):
        fitted = model(kernel=kernel, epsilon=500.0, delta=1e-5).fit(rows, y)
        assert np.isfinite(fitted.predict(rows)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 0.0}, "delta"),
        ({"kernel": "poly"}, "kernel"),
        ({"gamma": [0.0], "kernel": "rbf"}, "gamma must be None, a number in"),
        ({"n_knots": 1}, "n_knots"),
        ({"bounds": (1.0, -1.0)}, "lower below upper"),
        ({"target_scale": 0.0}, "target_scale"),
    ],
)
def test_unusable_parameters_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        clone(model()).set_params(**given).fit(X[:50], CURVE[:50])


def test_what_lines_miss_of_a_target_counts_a_unit_at_most():
    z, target = np.array([0.0, 1.0, np.nan, 1e300]), np.array([2.2, 1e300, 2.0, -1e300])
    found = missed(z, target, center=2.0, scale=0.5)
    np.testing.assert_allclose(found, [0.4, 1.0, 0.0, -1.0])
