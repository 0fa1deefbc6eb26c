# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Public maps of rows within a fit: what bends, what it costs, and what it must not see."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.inspection import PartialDependenceDisplay, partial_dependence
from sklearn.preprocessing import SplineTransformer

from skdp import DPKernelClassifier, dp_tabular_pipeline, privacy_spent
from skdp._rows.linear import EveryRow, LinearRows
from skdp.audit import trace_privacy
from skdp.linear_model._kernel_classifier import (
    Folds,
    Hats,
    LeftOver,
    Lines,
    RightRows,
    Waves,
    surprise,
)
from skdp.privacy import gdp_mu

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) * [1.0, 1e4, 1e-3] + [0.0, 5.0, 1.0]
Z = (X - [0.0, 5.0, 1.0]) / [1.0, 1e4, 1e-3]
RING = (Z[:, 0] ** 2 + Z[:, 1] ** 2 > 1.4).astype(int)
PRODUCT = (Z[:, 0] * Z[:, 1] > 0).astype(int)
WIDE = np.random.default_rng(1).normal(size=(4000, 6))
PLANE = WIDE @ [1.0, -1.0, 0.5, 1.0, -0.5, 0.0] + np.random.default_rng(2).logistic(size=4000)


def model(**given):
    fixed = {"epsilon": 2.0, "kernel": "additive", "classes": [0, 1], "random_state": 0}
    return DPKernelClassifier(**{**fixed, **given})


@pytest.mark.full
def test_each_kernel_bends_as_it_can():
    scores = {
        (kernel, name): model(kernel=kernel).fit(X, y).score(X, y)
        for kernel in ("linear", "additive", "rbf")
        for name, y in (("ring", RING), ("product", PRODUCT))
    }
    # what cannot bend knows little more than the larger class
    assert scores["linear", "ring"] < 0.62 > scores["linear", "product"]
    assert scores["additive", "ring"] > 0.88 > 0.62 > scores["additive", "product"]
    assert min(scores["rbf", "ring"], scores["rbf", "product"]) > 0.85


@pytest.mark.parametrize("n_knots", [2, 3, 7])
def test_hats_are_splines_between_knots_and_no_longer_than_one(n_knots):
    knots = np.sort(RNG.normal(size=n_knots))
    rows = np.vstack([Z[:200], np.repeat(knots[:, None], 3, axis=1), [[-1e300, 1e300, 0.0]]])
    hats = Hats(3, knots)(rows)
    spline = SplineTransformer(
        knots=np.repeat(knots[:, None], 3, axis=1), degree=1, extrapolation="constant"
    )
    np.testing.assert_allclose(hats, spline.fit_transform(rows) / np.sqrt(3), atol=1e-12)
    lengths = np.linalg.norm(hats, axis=1)
    assert lengths.max() <= 1 + 1e-15
    # rows on knots attain it
    np.testing.assert_allclose(lengths[200:-1], 1.0, rtol=1e-15)


def test_folds_are_columns_and_their_distances_from_the_middle_knot():
    rows = np.vstack([Z[:200], [[-1e300, 1e300, 0.0], [1.2, -1.2, 3.0]]])
    folds = Folds(3, np.array([-1.2, 0.0, 1.2]), 2.0)
    wanted = [[*np.minimum(abs(row), 1.2), *row.clip(-3, 3)] for row in rows]
    np.testing.assert_allclose(folds(rows), np.array(wanted) / math.sqrt(8), rtol=1e-12)
    # of a usual length, and no longer
    usual = 2 * Z[:200] / np.linalg.norm(Z[:200], axis=1)[:, None]
    assert np.linalg.norm(folds(usual), axis=1).max() <= 1 + 1e-15
    # a line of one column and a bend of another
    coef = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    shape = folds(np.linspace(-1.2, 1.2, 5)[:, None] * [1.0, 1.0, 0.0]) @ coef
    np.testing.assert_allclose(shape * math.sqrt(8), [0.0, 0.0, 0.0, 1.2, 2.4], atol=1e-12)


def test_a_plane_costs_little_where_there_is_little_signal():
    given = {"epsilon": 0.3, "n_knots": 3}
    seeds = range(4)
    fits = (model(**given, random_state=seed).fit(WIDE, PLANE > 0) for seed in seeds)
    bent = [fit.score(WIDE, PLANE > 0) for fit in fits]
    fits = (
        model(epsilon=0.3, kernel="linear", random_state=seed).fit(WIDE, PLANE > 0)
        for seed in seeds
    )
    straight = [fit.score(WIDE, PLANE > 0) for fit in fits]
    # hats of three knots lose .016
    assert np.mean(bent) > np.mean(straight) - 0.008


@pytest.mark.full
def test_numbers_of_knots_and_waves_follow_from_public_numbers():
    def chosen(n_rows, n_columns, **given):
        rows = np.resize(Z, (n_rows, n_columns))
        fitted = model(**given).fit(rows, np.arange(n_rows) % 2)
        return fitted.n_knots_, fitted.n_components_

    assert chosen(4000, 3, epsilon=0.01) == (None, None)
    few, more = chosen(4000, 3, epsilon=0.1)[0], chosen(4000, 3, epsilon=4.0)[0]
    assert 3 <= few < more <= 16
    assert chosen(4000, 3, epsilon=4.0, adjacency="zero-out")[0] > more
    assert chosen(4000, 30, epsilon=4.0)[0] < more
    assert chosen(200, 3, n_knots=9) == (9, None)
    waves = [chosen(4000, 3, kernel="rbf", epsilon=e)[1] for e in (0.001, 0.1, 1.0, 50.0)]
    assert waves[0] == 20 < waves[1] < waves[2] < waves[3] == 500
    assert chosen(200, 3, kernel="rbf", n_components=31) == (None, 31)
    assert chosen(200, 3, kernel="linear") == (None, None)
    # and from nothing that is private
    assert chosen(4000, 3) == (model().fit(-5 * X**3, PRODUCT).n_knots_, None)


@pytest.mark.parametrize("kernel", ["additive", "rbf"])
def test_maps_are_free_and_bounds_save_the_search(kernel):
    straight = model(kernel="linear").fit(X, RING)
    bent = model(kernel=kernel).fit(X, RING)
    queries = [release.query for release in bent.ledger_.releases]
    assert len(queries) == len(straight.ledger_.releases)
    assert queries[:3] == [release.query for release in straight.ledger_.releases][:3]
    assert bent.privacy_spent_ == straight.privacy_spent_
    bounds = [(-4.0, 4.0), (-4e4, 4e4), (0.996, 1.004)]
    known = model(kernel=kernel, bounds=bounds).fit(X, RING)
    assert known.ledger_.releases[0].query not in queries[:3]
    np.testing.assert_allclose(known.feature_center_, [0.0, 0.0, 1.0], atol=1e-12)
    assert known.score(X, RING) > 0.8


@pytest.mark.filterwarnings("ignore:.*gives almost no privacy")
@pytest.mark.parametrize("kernel", ["auto", "additive", "folds", "rbf", "linear"])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_trace_attains_the_claim_and_no_more(kernel, adjacency):
    rows = 0.1 * RNG.normal(size=(60, 2))
    other = rows.copy()
    rows[7] = 5.0
    other[7] = np.nan if adjacency == "zero-out" else -5.0
    given = {"kernel": kernel, "n_knots": 4, "bounds": (-1.0, 1.0), "adjacency": adjacency}
    if kernel == "folds":
        given |= {"kernel": "additive", "n_knots": 3}
    if kernel == "auto":
        # sixty rows are enough for a choice
        given |= {"epsilon": 4000.0, "n_components": 6}
    found = trace_privacy(model(**given), X=rows, X_neighbour=other, y=np.arange(60) % 2)
    assert found.passed
    assert any("correct rows" in release.query for release in found.releases) == (kernel == "auto")
    # features at the edge of the bounds are not quite as long as they may be
    least = 0.3 if kernel == "auto" else 0.55 if adjacency == "replace-one" else 0.9
    assert least < found.share <= 1


@pytest.mark.full
def test_rows_far_off_and_predictions_in_parts():
    far = np.vstack([X, 1e300 * Z[:20], -1e-300 * Z[:20]])
    for kernel, n_knots in (("additive", None), ("additive", 3), ("rbf", None)):
        fitted = model(kernel=kernel, n_knots=n_knots).fit(X, RING)
        scores = fitted.decision_function(np.vstack([far, far]))
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(scores[: len(far)], fitted.decision_function(far), rtol=1e-9)
        twin = fitted.to_sklearn()
        np.testing.assert_allclose(twin.predict_proba(far), fitted.predict_proba(far), atol=1e-9)


@pytest.mark.full
def test_partial_dependence_of_an_additive_model_is_its_functions():
    fitted = model(epsilon=8.0).fit(X, RING)
    whole = partial_dependence(fitted, X[:300], [0], response_method="decision_function")
    part = partial_dependence(fitted, X[300:320], [0], response_method="decision_function")
    # the same shape whatever the other columns are
    grid = whole["grid_values"][0]
    drawn = partial_dependence(
        fitted, X[300:320], [0], response_method="decision_function", custom_values={0: grid}
    )
    shapes = [found["average"][0] - found["average"][0].mean() for found in (whole, drawn)]
    np.testing.assert_allclose(*shapes, atol=1e-9)
    assert len(part["grid_values"][0])
    # low in the middle, high at both ends
    middle = shapes[0][np.abs(grid) < 0.3].max()
    assert middle < min(shapes[0][0], shapes[0][-1])
    display = PartialDependenceDisplay.from_estimator(fitted, X[:50], [0, 1], grid_resolution=5)
    assert display.axes_.size == 2


def test_it_is_a_step_behind_a_table():
    bent = dp_tabular_pipeline(model(random_state=None), epsilon=1.0, classes=[0, 1])
    bent.fit(X, RING)
    assert 0.99 < privacy_spent(bent).epsilon <= 1.0
    assert bent.score(X, RING) > 0.75


def test_weights_and_groups_are_those_of_the_linear_model():
    weights = RNG.uniform(0, 1, len(X))
    weighted = model(max_weight=1.0).fit(X, RING, sample_weight=weights)
    grouped = model(epsilon=8.0).fit(X, RING, groups=np.arange(len(X)) // 2)
    assert grouped.ledger_.unit == "group"
    assert min(weighted.score(X, RING), grouped.score(X, RING)) > 0.8
    hidden = model(adjacency="add-remove").fit(X, RING)
    assert hidden.ledger_.adjacency == "add-remove"
    assert hidden.score(X, RING) > 0.8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 0.0}, "delta"),
        ({"kernel": "poly"}, "kernel"),
        ({"gamma": -1.0, "kernel": "rbf"}, "gamma"),
        ({"gamma": [0.0], "kernel": "rbf"}, "gamma must be None, a number in"),
        ({"n_knots": 1}, "n_knots"),
        ({"bounds": (1.0, -1.0)}, "lower below upper"),
    ],
)
def test_unusable_parameters_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        clone(model()).set_params(**given).fit(X[:50], RING[:50])


def test_knots_are_quantiles_of_the_normal_law():
    fitted = model(n_knots=4).fit(Z, RING)
    assert fitted.coef_.shape == (1, 12)
    knots = norm.ppf([0.125, 0.375, 0.625, 0.875]) / 0.8 * fitted.feature_scale_[0]
    ends = np.zeros((2, 3))
    ends[:, 0] = fitted.feature_center_[0] + knots[-1] * np.array([1.0, 3.0])
    inside, outside = fitted.decision_function(ends)
    assert inside == outside
    ends[0, 0] = fitted.feature_center_[0] + knots[-1] * 0.99
    assert fitted.decision_function(ends)[0] != outside


def both_models():
    """Return a query of two models that are of different opinions, and rows in units."""
    rng = np.random.default_rng(3)
    maps = Hats(2, np.array([-1.0, 0.0, 1.0])), Waves(rng.normal(size=(4, 2)), 1)
    coefs = tuple(rng.normal(size=(1, m.size + 1)) for m in maps)
    return RightRows(maps, coefs, 0.3), rng.normal(size=(6, 2))


def right_more(rows, target, null=None, weight=None):
    """Return the exact difference, by the definition."""
    query, _ = both_models()
    found = 0.0
    for i, (row, sign) in enumerate(zip(rows, target, strict=True)):
        count = 1.0 if weight is None else weight[i]
        if null is None or not null[i]:
            z = [
                (c[0, :-1] @ m(row[None])[0]) + 0.3 * c[0, -1]
                for m, c in zip(query.features, query.coefs, strict=True)
            ]
            found += count * (int(z[1] * sign > 0) - int(z[0] * sign > 0))
    return found


def test_a_comparison_moves_as_stated_and_no_further():
    query, Z = both_models()
    target, null = np.where(np.arange(6) % 2, 1.0, -1.0), np.zeros(6, dtype=bool)

    def value(rows, target, null=null, weight=None):
        found = query.evaluate(LinearRows(rows, target, null, EveryRow(), 0.0, weight=weight))
        assert found[0] == right_more(rows, target, null, weight)
        return found[0]

    whole, weight = value(Z, target), np.linspace(0, 1, 6)
    value(Z, target, weight=weight)
    moved = {"replace-one": set(), "zero-out": set()}
    for i in range(6):
        gone = null.copy()
        gone[i] = True
        moved["zero-out"].add(abs(value(Z, target, gone) - whole))
        other = target.copy()
        other[i] *= -1
        moved["replace-one"].add(abs(value(Z, other) - whole))
    for adjacency, seen in moved.items():
        assert max(seen) == query.sensitivity(adjacency, 6).l2


def test_a_choice_of_the_kernel_is_paid_for_out_of_the_same_budget():
    given = {"kernel": "auto", "n_knots": 7, "n_components": 24, "adjacency": "zero-out"}
    given["bounds"], rows, chosen = (-3.0, 3.0), Z[:700], {}
    for name, y in (("bent", np.abs(Z[:700, 0]) > 0.7), ("product", PRODUCT[:700])):
        fitted = model(epsilon=16.0, **given).fit(rows, y.astype(int))
        assert fitted.score(rows, y) > 0.7
        chosen[name] = fitted.kernel_
        assert 15.9 < fitted.privacy_spent_[0] <= 16.0
        (line,) = [r for r in fitted.ledger_.releases if "correct rows" in r.query]
        # nothing is searched: a hundredth of the squared budget is for a count that moves by 1
        assert line.noise.scale == pytest.approx(10 / gdp_mu(16.0, 1e-6), rel=1e-4)
    assert chosen == {"bent": "additive", "product": "rbf"}
    # public numbers decide where nothing would be seen: there is no line for it
    few = model(epsilon=0.5, **given).fit(rows, PRODUCT[:700])
    assert few.kernel_ == "additive"
    assert not any(
        "correct rows" in r.query or "bends of columns" in r.query for r in few.ledger_.releases
    )


def test_what_lines_leave_over_chooses_where_waves_could_not_be_tried():
    given = {"kernel": "auto", "adjacency": "zero-out", "bounds": (-3.0, 3.0), "epsilon": 0.5}
    given["random_state"] = 9
    for kernel, rows, y in (
        ("rbf", Z, PRODUCT),
        ("additive", Z, RING),
        ("linear", WIDE, PLANE > 0),
    ):
        rows, y = rows[:3000], y[:3000].astype(int)
        fitted = model(**given).fit(rows, y)
        assert fitted.kernel_ == kernel
        assert fitted.score(rows, y) > 0.7
        (line,) = [r for r in fitted.ledger_.releases if "bends of columns" in r.query]
        # a twenty-fifth of the squared budget, for two numbers of which the second counts 0.6
        scale = math.hypot(1.0, 0.6) / (gdp_mu(0.5, 1e-6) / 5)
        assert line.noise.scale == pytest.approx(scale, rel=1e-4)
        assert 0.49 < fitted.privacy_spent_[0] <= 0.5
    # a plan has the kernel with the most coefficients
    planned = model(**given).plan(3000, 3).ledger
    assert [r.query for r in planned.releases].count(line.query) == 1


def test_lines_that_leave_nothing_over_are_compared_with_waves():
    # there is signal enough to try waves, and no bend, nor a product of two columns
    triple = (np.prod(Z, axis=1) > 0).astype(int)
    for kernel, rows, y in (("linear", WIDE, PLANE > 0), ("rbf", Z, triple)):
        given = {"adjacency": "zero-out", "bounds": (-3.0, 3.0), "epsilon": 4.0, "random_state": 2}
        fitted = model(kernel="auto", **given).fit(rows, y.astype(int))
        queries = [release.query for release in fitted.ledger_.releases]
        assert fitted.kernel_ == kernel
        assert sum("bends of columns" in query for query in queries) == 1
        assert sum("correct rows" in query for query in queries) == 1
        # moments and gradients: lines, lines again, waves, and what was chosen
        assert len(queries) == 4 * 2 + 2
        assert 3.99 < fitted.privacy_spent_[0] <= 4.0


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_what_lines_leave_over_chooses_for_several_classes(adjacency):
    given = {"kernel": "auto", "adjacency": adjacency, "bounds": (-3.0, 3.0), "epsilon": 1.0}
    given |= {"classes": [0, 1, 2], "random_state": 16}
    bent, straight = np.digitize(Z[:, 0] ** 2, [0.2, 1.3]), np.digitize(PLANE, [-1.0, 1.0])
    pairs = np.column_stack([WIDE[:, 0] * WIDE[:, 1], WIDE[:, 2] * WIDE[:, 3], 0.2 * WIDE[:, 4]])
    many = [("rbf", WIDE, pairs.argmax(axis=1))]
    for kernel, rows, y in (*many, ("additive", Z, bent), ("linear", WIDE, straight)):
        fitted = model(**given).fit(rows, y)
        assert fitted.kernel_ == kernel
        assert fitted.score(rows, y) > 0.55
        assert sum("bends of columns" in r.query for r in fitted.ledger_.releases) == 1
        assert 0.99 < fitted.privacy_spent_[0] <= 1.0


def left_over(rows, left, null=(), weight=None):
    """Return what the query says of rows with these residuals, beside the sums by definition."""
    left, own = left.reshape(len(rows), -1), np.arange(len(rows))
    coef = np.zeros((left.shape[1], 4))
    query = LeftOver(Lines(3), coef, 1.0, lambda z, target: left[target.astype(int)])
    counts = np.where(np.isin(own, null), 0.0, 1.0 if weight is None else weight)
    knots = norm.ppf([0.125, 0.375, 0.625, 0.875]) / 0.8
    hats = np.stack([np.interp(rows, knots, line) for line in np.eye(4)], axis=-1)
    grid = norm.ppf((np.arange(2000) + 0.5) / 2000)
    on_grid = np.column_stack([np.interp(grid, knots, line) for line in np.eye(4)])
    lines = on_grid.T @ np.column_stack([np.ones(2000), grid])
    off = null_space(lines.T)
    longest = np.linalg.norm(off, axis=1).max()
    counted = counts[:, None] * left
    bends = np.einsum("ic,ijk,kl->jlc", counted, hats, off) / longest
    near = np.clip(2 * rows, -1, 1)
    pairs = np.sqrt(np.sum(np.einsum("ic,ij,ik->jkc", counted, near, near) ** 2, axis=2))
    largest = (pairs - np.diag(np.diag(pairs))).max()
    wanted = np.sqrt(np.sum(bends**2, axis=(1, 2))).max(), 0.6 * largest
    null = np.isin(own, null)
    found = query.evaluate(
        LinearRows(rows, own.astype(float), null, EveryRow(), 0.0, weight=weight)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    return found


def test_what_is_left_over_moves_as_stated_and_no_further():
    # the longest bend is at an inner or outer knot; all other rows bend and multiply as it does
    stated = {
        adjacency: LeftOver(None, None, 1.0, None).sensitivity(adjacency, 6)
        for adjacency in ("zero-out", "replace-one")
    }
    knots = norm.ppf([0.125, 0.375, 0.625, 0.875]) / 0.8
    ends = {"zero-out": [], "replace-one": []}
    # one residual, and one for each of three classes
    for place, ways in itertools.product(knots, ([1.0], [0.6, -0.8, 0.0])):
        rows, ones = np.full((6, 3), place), np.outer(np.ones(6), ways)
        whole = left_over(rows, ones)
        ends["zero-out"].append(whole - left_over(rows, ones, null=[2]))
        other = np.where(np.arange(6) == 2, -1.0, 1.0)[:, None] * ones
        ends["replace-one"].append(whole - left_over(rows, other))
    for adjacency, moved in ends.items():
        reach = np.max(np.abs(moved), axis=0)
        np.testing.assert_allclose(stated[adjacency].l2, np.linalg.norm(reach), rtol=1e-12)
        np.testing.assert_allclose(stated[adjacency].l1, reach.sum(), rtol=1e-12)
    rng = np.random.default_rng(5)
    rows, left, weight = rng.normal(size=(9, 3)), rng.uniform(-1, 1, 9), rng.uniform(0, 1, 9)
    left_over(rows, left, null=[4], weight=weight)
    left_over(rows, rng.normal(size=(9, 4)), null=[4], weight=weight)


def test_what_lines_leave_of_several_classes_is_no_longer_than_of_two():
    def over(z, target):
        return softmax(z, axis=1) - np.eye(z.shape[1])[target]

    several = SimpleNamespace(n_outputs=5, residual=over)
    single = SimpleNamespace(n_outputs=1, residual=lambda z, target: -target * expit(-target * z))
    rng = np.random.default_rng(6)
    z, target = 3 * rng.normal(size=500), rng.integers(0, 2, 500)
    one = surprise(z, 2.0 * target - 1, single)
    two = surprise(np.column_stack([np.zeros(500), z]), target, several)
    np.testing.assert_allclose(np.linalg.norm(two, axis=1), np.abs(one), atol=1e-12)
    more = surprise(rng.normal(size=(500, 5)), rng.integers(0, 5, 500), several)
    lengths = np.linalg.norm(more, axis=1)
    assert lengths.min() < 0.9 < lengths.max() < 1 + 1e-12


@pytest.mark.filterwarnings("ignore:.*gives almost no privacy")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_trace_of_what_is_left_over_attains_the_claim_and_no_more(adjacency, n_classes):
    rows = 0.1 * RNG.normal(size=(60, 2))
    other = rows.copy()
    rows[7] = 5.0
    other[7] = np.nan if adjacency == "zero-out" else -5.0
    given = {"kernel": "auto", "bounds": (-1.0, 1.0), "adjacency": adjacency, "max_iter": 6}
    given |= {"epsilon": {"zero-out": 12.0, "replace-one": 28.0}[adjacency] * (n_classes - 1)}
    given["classes"] = range(n_classes)
    y = np.arange(60) % n_classes
    found = trace_privacy(model(**given), X=rows, X_neighbour=other, y=y)
    assert found.passed
    assert any("bends of columns" in r.query for r in found.releases)
    assert 0.05 < found.share <= 1


def test_balanced_classes_and_maps_share_a_budget():
    # what is left for the map is less than the plan for all of it says
    fitted = model(kernel="rbf", class_weight="balanced").fit(Z[:400], RING[:400])
    assert fitted.coef_.shape == (1, fitted.n_components_)
