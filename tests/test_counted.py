# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A secret number of rows, and weights of rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils import estimator_checks
from sklearn.utils.validation import has_fit_parameter

from skdp import (
    DPPCA,
    DPCovariance,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPGridSearchCV,
    DPHeavyTailedMean,
    DPHingeSVM,
    DPHistogram,
    DPKernelRegressor,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPRidge,
    DPSparseMeanEstimator,
    DPStandardScaler,
    DPTableVectorizer,
    FederatedDPLogisticRegression,
    PrivacyBudget,
    dp_describe,
    dp_tabular_pipeline,
    privacy_card,
    privacy_spent,
)
from skdp._counted import HiddenCount
from skdp.audit import audit_privacy, trace_privacy
from skdp.exceptions import BudgetError
from skdp.inspection import TableSummary
from skdp.io import stream_arrays

SECRET = {"adjacency": "add-remove"}
# gradients of few steps are those of many
CLASSIFIER = DPLogisticRegression(classes=[0, 1], data_norm=1.0, max_iter=3, **SECRET)
SUMS = [
    CLASSIFIER,
    DPLogisticRegression(classes=[0, 1, 2], class_weight="balanced", epsilon=8.0, **SECRET),
    DPHingeSVM(classes=[0, 1], data_norm=1.0, solver="gd", max_iter=3, **SECRET),
    DPLpRegressor(max_iter=3, **SECRET),
    DPLpRegressor(p=1, data_norm=1.0, target_scale=1.0, solver="accelerated", **SECRET),
    DPMean(**SECRET),
    DPMean(data_norm=2.0, **SECRET),
    DPMean(mechanism="laplace", bounds=(0, 1), delta=0.0, **SECRET),
    DPMean(mechanism="coinpress", data_norm=100.0, **SECRET),
    DPMean(mechanism="clipped", data_norm=100.0, **SECRET),
    DPMedian(**SECRET),
    DPMedian(mechanism="gradient", max_iter=3, bounds=(-9, 9), **SECRET),
    DPQuantile(**SECRET),
    DPNormQuantile(epsilon=20.0, **SECRET),
    DPSparseMeanEstimator(**SECRET),
    DPHeavyTailedMean(**SECRET),
    DPStandardScaler(bounds=(-9, 9), **SECRET),
    DPStandardScaler(epsilon=4.0, **SECRET),
    DPFeatureCenterer(**SECRET),
    DPFrequentFeatures(**SECRET),
    DPTableVectorizer(**SECRET),
    DPHistogram(**SECRET),
    DPQuantile(quantile=[0.25, 0.75], **SECRET),
    DPStandardScaler(delta=0.0, **SECRET),
    TableSummary(**SECRET),
    DPPCA(**SECRET),
    DPKernelRegressor(kernel="additive", n_knots=3, max_iter=3, **SECRET),
    DPRidge(epsilon=8.0, **SECRET),
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, solver="frank-wolfe", **SECRET),
    DPHingeSVM(classes=[0, 1], data_norm=1.0, C=1e-3, solver="output", **SECRET),
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, delta=0.0, **SECRET),
    DPLogisticRegression(classes=[0, 1, 2], data_norm=1.0, mechanism="objective", **SECRET),
    DPLpRegressor(delta=0.0, **SECRET),
]


def rows_of(n_rows=300, seed=0):
    """Return rows, and labels that follow from them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)


@pytest.mark.sample(1, 6)
@pytest.mark.parametrize("model", SUMS, ids=str)
def test_a_row_more_or_less_moves_no_more_than_is_paid_for(model):
    result = trace_privacy(model)
    assert result.passed, result
    assert result.adjacency == "add-remove"
    assert result.releases[0].query == "number of rows"
    assert 0.9 < result.releases[0].ratio <= 1
    assert 0 < result.share <= 1


@pytest.mark.parametrize("model", [CLASSIFIER, DPMean(data_norm=1.0, **SECRET)], ids=str)
def test_plans_that_know_the_number_are_seen(model, monkeypatch):
    def told(self, counts, n_rows, unit):
        RELEASE(self, counts, n_rows, unit)
        return n_rows

    RELEASE = HiddenCount.release
    monkeypatch.setattr(HiddenCount, "release", told)
    assert not trace_privacy(model).passed


def test_a_first_row_may_leave():
    # all others move up, over the ends of chunks
    X, y = rows_of(9000)
    X[0] = 9.0
    model = clone(CLASSIFIER).set_params(classes=[0, 1, 2])
    result = trace_privacy(model, X, X[1:], y=y, y_neighbour=y[1:])
    assert result.passed
    assert max(r.ratio for r in result.releases[1:]) > 0.8


def test_a_group_may_leave_with_all_of_its_rows():
    X, y = rows_of()
    groups = np.arange(300) // 5
    kept = groups != 7
    result = trace_privacy(
        CLASSIFIER,
        X,
        X[kept],
        y=y,
        y_neighbour=y[kept],
        groups=groups,
        groups_neighbour=groups[kept],
    )
    assert result.passed
    assert result.unit == "group"
    assert round(result.releases[0].distance, 6) == 1


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(CLASSIFIER, marks=pytest.mark.full),
        pytest.param(DPMean(data_norm=1.0, **SECRET), marks=pytest.mark.full),
        pytest.param(SUMS[-3], marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_row_cannot_be_told_from_the_outside(model):
    X, y = rows_of(40)
    data = (X, y) if is_classifier(model) else (X,)
    shorter = tuple(part[1:] for part in data)
    result = audit_privacy(model, data=data, neighbour=shorter, n_runs=600, random_state=0)
    assert result.passed is not False
    assert result.adjacency == "add-remove"


def test_the_promise_is_on_the_ledger_and_on_the_card():
    X, y = rows_of(2000)
    model = DPLogisticRegression(classes=[0, 1], **SECRET).fit(X, y)
    assert model.get_params()["adjacency"] == "add-remove"
    assert model.epsilon == 1.0
    assert model.ledger_.adjacency == "add-remove"
    assert model.ledger_.releases[0].noise.epsilon == 0.05
    assert 0.9 < model.privacy_spent_[0] <= 1.0
    assert privacy_spent(model).epsilon <= 1.0
    assert model.score(X, y) > 0.8
    card = privacy_card(model)
    assert card.to_dict()["claim"]["adjacency"] == "add-remove"
    assert "one row more than the other" in card.to_dict()["claim"]["adjacency_in_words"]
    assert "whether one row is present" in str(card)


def test_a_shared_budget_is_charged_once():
    X, y = rows_of()
    budget = PrivacyBudget(epsilon=1.5, delta=1e-5, adjacency="add-remove")
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0, budget=budget, **SECRET)
    model.fit(X, y)
    assert budget.spent == (1.0, 1e-6)
    assert budget.contains(model)
    with pytest.raises(BudgetError):
        model.fit(X, y)
    with pytest.raises(BudgetError, match="adjacency"):
        clone(model).set_params(adjacency="zero-out", budget=budget, epsilon=0.1).fit(X, y)
    assert budget.spent == (1.0, 1e-6)


def test_a_table_of_which_all_is_public_costs_nothing():
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5, adjacency="add-remove")
    table = pd.DataFrame({"plan": ["basic", "pro"] * 20})
    vectorizer = DPTableVectorizer(categories={"plan": ["basic", "pro"]}, budget=budget, **SECRET)
    assert vectorizer.fit(table).privacy_spent_ == (0.0, 0.0)
    assert budget.spent == (0.0, 0.0)


@pytest.mark.parametrize("unit", ["row", "group"])
def test_a_fit_that_releases_nothing_keeps_the_number_secret(unit):
    model, (X, _) = DPStandardScaler(with_mean=False, with_std=False, **SECRET), rows_of(40)
    kept = np.arange(40) >= 4
    groups = np.arange(40) // 4
    if unit == "row":
        result = trace_privacy(model, X, X[1:])
    else:
        given = {"groups": groups, "groups_neighbour": groups[kept]}
        result = trace_privacy(model, X, X[kept], **given)
    assert result.passed is not False
    assert not result.violations
    assert not result.releases


def test_a_plan_is_the_ledger_of_a_fit():
    X, y = rows_of(1000)
    public = {"classes": [0, 1], "data_norm": 1.0, "solver": "preconditioned"}
    model = DPLogisticRegression(**public, **SECRET)
    planned, made = model.plan(1000, 3).ledger, model.fit(X, y).ledger_
    assert [r.query for r in planned.releases] == [r.query for r in made.releases]
    assert planned.epsilon(1e-6) == pytest.approx(made.epsilon(1e-6), rel=1e-6)


def test_parameters_are_as_they_were_after_an_error():
    model = DPLogisticRegression(classes=[0, 1], epsilon=2.0, solver="phased", **SECRET)
    with pytest.raises(ValueError, match="adjacency must be 'replace-one' or 'zero-out'"):
        model.fit(*rows_of())
    assert (model.epsilon, model.adjacency) == (2.0, "add-remove")
    assert not hasattr(model, "_hidden_count")


REFUSED = [
    (DPLogisticRegression(data_norm=1.0, solver="phased", **SECRET), ValueError),
    (DPLogisticRegression(data_norm=1.0, solver="sgd", **SECRET), ValueError),
    (DPLogisticRegression(data_norm=1.0, solver="exact", coef_bound=1.0, **SECRET), ValueError),
    (DPLpRegressor(solver="phased", **SECRET), ValueError),
    (DPMean(mechanism="shifted-clipped", data_norm=9.0, **SECRET), ValueError),
    (DPFeatureCenterer(mechanism="shifted-clipped", **SECRET), ValueError),
    (FederatedDPLogisticRegression(**SECRET), ValueError),
]


@pytest.mark.parametrize(("model", "error"), REFUSED, ids=str)
def test_what_needs_the_number_is_refused_before_anything_is_charged(model, error):
    budget = PrivacyBudget(epsilon=9.0, delta=1e-4, adjacency="add-remove")
    with pytest.raises(error, match="adjacency"):
        clone(model).set_params(budget=budget).fit(*rows_of())
    assert budget.spent == (0.0, 0.0)


#: what none of the estimators above can use that has such a parameter
UNUSABLE = {
    "bounds": (1, -1),
    "categories": [["a"]],
    "bins": [2.0, 1.0],
    "target_scale": [1.0, 2.0, 3.0],
    "center": np.zeros(7),
    "threshold": np.nan,
    "n_features_to_select": 0,
    "n_components": 9,
    "gamma": [-1.0],
    "class_weight": {5: 1.0},
    "solver": "sgd",
    "sparsity": 0,
    "moment_order": 0.5,
    "tail": 0,
    "quantile": 2.0,
    "mechanism": "shifted-clipped",
    "data_norm": 1e300,
    "percentiles": [0.5],
}


@pytest.mark.parametrize("model", SUMS, ids=str)
def test_what_is_refused_is_refused_before_the_number_is_paid_for(model):
    X, y = rows_of(40)
    budget = PrivacyBudget(epsilon=99.0, delta=1e-4, adjacency="add-remove")
    given = model.get_params()
    # there may be any number of waves
    known = UNUSABLE if "kernel" not in given else UNUSABLE.keys() - {"n_components"}
    wrong = [name for name in known if name in given]
    assert wrong
    for name in wrong:
        with pytest.raises((ValueError, TypeError)):
            clone(model).set_params(budget=budget, **{name: UNUSABLE[name]}).fit(X, y)
    assert budget.charges == ()


def test_searches_are_refused():
    X, y = rows_of()
    with pytest.raises(ValueError, match="a search plans with the number of rows"):
        DPGridSearchCV(CLASSIFIER, {"data_norm": [1.0, 2.0]}, epsilon=1.0, delta=1e-6).fit(X, y)


def test_splits_of_rows_whose_number_is_secret_are_not_covered():
    X, y = rows_of()
    model = clone(CLASSIFIER).fit(X, y)
    assert not privacy_spent(model).not_covered
    found = [
        str(item) for item in privacy_spent(model, cv=[([0, 1], [2]), ([1, 2], [0])]).not_covered
    ]
    assert any("the number of rows, a secret" in item for item in found)


# Weights of rows.

WEIGHTED = [
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, max_iter=3, max_weight=2.0),
    DPLogisticRegression(classes=[0, 1, 2], data_norm=1.0, C=10.0, max_iter=3, max_weight=2.0),
    DPHingeSVM(classes=[0, 1], data_norm=1.0, solver="preconditioned", max_iter=3, max_weight=2.0),
    DPLpRegressor(max_iter=3, max_weight=2.0, l2=1.0, data_norm=1.0),
    DPMean(data_norm=2.0, max_weight=2.0),
    DPMean(max_weight=2.0),
    DPMean(bounds=(-1, 1), mechanism="laplace", max_weight=2.0),
    DPMedian(max_weight=2.0),
    DPQuantile(quantile=0.9, max_weight=2.0),
    DPStandardScaler(bounds=(-1, 1), max_weight=2.0),
    DPSparseMeanEstimator(max_weight=2.0),
    DPHeavyTailedMean(max_weight=2.0),
    DPFeatureCenterer(max_weight=2.0),
    DPNormQuantile(epsilon=20.0, max_weight=2.0),
    DPCovariance(data_norm=2.0, max_weight=2.0),
    DPPCA(max_weight=2.0),
    DPRidge(epsilon=4.0, data_norm=2.0, target_scale=1.0, l2=1.0, max_weight=2.0),
    DPHistogram(bins=3, bounds=(-1, 1), max_weight=2.0),
    DPFrequentFeatures(sparsity=2, max_weight=2.0),
    DPKernelRegressor(kernel="rbf", n_components=4, max_iter=3, max_weight=2.0),
    DPTableVectorizer(epsilon=4.0, max_weight=2.0),
    TableSummary(epsilon=40.0, max_weight=2.0),
    DPLogisticRegression(8.0, classes=[0, 1], data_norm=1.0, solver="frank-wolfe", max_weight=2.0),
    DPHingeSVM(classes=[0, 1], data_norm=1.0, C=1e-3, solver="output", max_weight=2.0),
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, delta=0.0, C=0.1, max_weight=2.0),
    DPLogisticRegression(classes=[0, 1, 2], data_norm=1.0, solver="objective", max_weight=2.0),
    DPLpRegressor(epsilon=100.0, delta=0.0, max_weight=2.0, l2=1.0),
]


def fitted_numbers(model):
    if isinstance(model, TableSummary):
        return [model.frame.to_numpy()[1:]]
    if isinstance(model, DPTableVectorizer):
        return [list(model.mean_.values()), list(model.scale_.values())]
    names = ("coef_", "intercept_", "location_", "mean_", "scale_", "center_", "covariance_")
    return [getattr(model, name) for name in names if hasattr(model, name)]


@pytest.mark.sample(5)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("model", WEIGHTED, ids=str)
def test_a_row_with_any_weight_moves_no_more_than_is_paid_for(model, adjacency):
    model = clone(model).set_params(adjacency=adjacency)
    X, y = rows_of()
    weights = np.random.default_rng(1).uniform(0, 3, 300)
    weights[7], X[7] = 1e308, 9.0
    other, targets, others = X.copy(), y.copy(), weights.copy()
    if adjacency == "replace-one":
        other[7], targets[7], others[7] = [-9.0, 0.0, -9.0], 1 - y[7], 2.0
    elif adjacency == "zero-out":
        other[7] = np.nan
    else:
        other, targets, others = (np.delete(part, 7, axis=0) for part in (X, y, weights))
    has_targets = is_classifier(model) or is_regressor(model)
    supervised = {"y": 1.0 * y, "y_neighbour": 1.0 * targets} if has_targets else {}
    result = trace_privacy(
        model, X, other, sample_weight=weights, sample_weight_neighbour=others, **supervised
    )
    assert result.passed, result
    # two rows beyond all radii are one to a radius
    assert 0 < result.share <= 1 or isinstance(model, DPNormQuantile)
    # counts are not divided by it
    free = isinstance(model, DPHistogram | DPFrequentFeatures) and adjacency != "add-remove"
    assert (result.releases[0].query == "total of the weights") == (not free)


def test_counts_of_weights_pay_for_no_total():
    X, weights = rows_of(2000)[0], np.random.default_rng(1).uniform(0, 3, 2000)
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5)
    histogram = DPHistogram(bins=[-1, 0, 1], max_weight=2.0, budget=budget)
    histogram.fit(X, sample_weight=weights)
    assert budget.spent == (1.0, 0.0)
    (line,) = histogram.ledger_.releases
    assert line.noise.epsilon == 1.0
    assert line.noise.bound == 2000
    histogram.set_params(adjacency="add-remove", budget=None).fit(X, sample_weight=weights)
    assert histogram.ledger_.releases[0].query == "total of the weights"
    histogram.set_params(adjacency="replace-one")
    # a private range is planned by it
    histogram.set_params(bins=2, budget=None).fit(X, sample_weight=weights)
    assert histogram.ledger_.releases[0].query == "total of the weights"


def test_tables_are_described_by_weights():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=4000), "b": rng.choice(["x", "y"], 4000)})
    X.loc[rng.random(4000) < 0.1, "a"] = np.nan
    weights = np.where(X["a"] > 0, 3.0, 1.0)
    weighted = {"max_weight": 3.0, "sample_weight": weights}
    there = X["a"].notna()
    mean = np.average(X["a"][there], weights=weights[there])
    found = dp_describe(X, 20.0, categories={"b": ["x", "y"]}, **weighted)
    a, b = found.statistics_["a"], found.statistics_["b"]
    assert_allclose([a["mean"], a["count"]], [mean, weights[there].sum()], rtol=0.05)
    order = np.argsort(X["a"][there])
    below = np.cumsum(weights[there][order]) / weights[there].sum()
    assert_allclose(a["50%"], X["a"][there].iloc[order].iloc[np.searchsorted(below, 0.5)], atol=0.1)
    assert_allclose(b["count"], weights.sum(), rtol=0.05)
    assert_allclose(found.n_samples_seen_, weights.sum(), rtol=0.05)
    assert "a weight of" in repr(found)
    groups = np.arange(4000) // 4
    found = dp_describe(X, 20.0, categories={"b": ["x", "y"]}, groups=groups, **weighted)
    assert found.ledger_.unit == "group"
    assert_allclose(found.statistics_["a"]["mean"], mean, rtol=0.1)
    table = DPTableVectorizer(20.0, max_weight=3.0).fit(X, sample_weight=weights)
    # a missing value counts as the median in this mean
    assert abs(table.mean_["a"] - mean) < 0.1
    assert_allclose(table.frequent_["b"][1].sum(), 1.0, atol=0.02)


def test_weights_pass_a_pipeline_of_a_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=3000), "b": rng.choice(["x", "y"], 3000)})
    y = (X["a"] + (X["b"] == "x") > 0.5).astype(int)
    weights = rng.uniform(0, 1, 3000)
    budget = PrivacyBudget(epsilon=4.0, delta=1e-5)
    model = dp_tabular_pipeline(
        "classifier", epsilon=4.0, classes=[0, 1], max_weight=1.0, budget=budget
    )
    model.fit(X, y, table__sample_weight=weights, model__sample_weight=weights)
    assert model.score(X, y) > 0.8
    # a price in pairs adds up to more than one in Gaussian-DP parameters
    assert privacy_spent(model).epsilon <= 4.0
    with pytest.raises(ValueError, match="max_weight must be None for"):
        dp_tabular_pipeline(FederatedDPLogisticRegression(), max_weight=1.0)


@pytest.mark.parametrize("model", [WEIGHTED[0], WEIGHTED[4]], ids=str)
def test_weights_that_are_not_bounded_are_seen(model, monkeypatch):
    monkeypatch.setattr(
        "skdp._counted.units_of_weight", lambda w, n_rows, most: np.asarray(w) / most
    )
    X, y = rows_of()
    weights = np.ones(300)
    weights[7] = 100.0
    other, others = X.copy(), weights.copy()
    other[7], others[7] = -X[7], 0.0
    supervised = {"y": y} if hasattr(model, "max_iter") else {}
    result = trace_privacy(
        model, X, other, sample_weight=weights, sample_weight_neighbour=others, **supervised
    )
    assert not result.passed


@pytest.mark.parametrize("model", WEIGHTED, ids=str)
def test_the_unit_of_weights_has_no_effect(model):
    X, y = rows_of()
    weights = np.random.default_rng(1).uniform(0, 2, 300)
    model = clone(model).set_params(random_state=0)
    numbers = fitted_numbers(model.fit(X, y, sample_weight=weights))
    model.set_params(max_weight=1024.0)
    if isinstance(model, DPLogisticRegression | DPHingeSVM):
        # the objective is a sum, as in scikit-learn: weights and C stand beside each other
        model.set_params(C=model.C / 512)
    if isinstance(model, DPLpRegressor | DPRidge):
        model.set_params(l2=512.0)
    for one, two in zip(
        numbers, fitted_numbers(model.fit(X, y, sample_weight=512 * weights)), strict=True
    ):
        assert_allclose(one, two, rtol=1e-12)


@pytest.mark.full
def test_weights_are_those_of_scikit_learn():
    X, y = rows_of(20000)
    weights = np.where(y == 1, 1.0, 3.0) * np.random.default_rng(2).uniform(0.5, 1, 20000)
    exact = LogisticRegression(C=np.inf).fit(X, y, sample_weight=weights)
    model = DPLogisticRegression(epsilon=8.0, classes=[0, 1], max_weight=3.0)
    plain = clone(model).fit(X, y)
    model.fit(X, y, sample_weight=weights)
    gap = np.abs(model.predict_proba(X) - exact.predict_proba(X)).mean()
    assert gap < 0.03 < np.abs(plain.predict_proba(X) - exact.predict_proba(X)).mean()
    target = X @ [1.0, 2.0, 0.0] + (X[:, 0] > 0.5) * 3
    exact = LinearRegression().fit(X, target, sample_weight=weights)
    regressor = DPLpRegressor(epsilon=8.0, max_weight=3.0).fit(X, target, sample_weight=weights)
    assert_allclose(regressor.coef_, exact.coef_, atol=0.1)
    average = np.average(X, axis=0, weights=weights)
    for mean in (DPMean(epsilon=8.0, max_weight=3.0), DPMean(8.0, bounds=(-1, 1), max_weight=3.0)):
        assert_allclose(mean.fit(X, sample_weight=weights).location_, average, atol=0.02)
    scaler = DPStandardScaler(epsilon=8.0, max_weight=3.0).fit(X, sample_weight=weights)
    assert_allclose(scaler.mean_, average, atol=0.05)
    order = np.argsort(X[:, 0])
    half = X[order, 0][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)]
    ridge = DPRidge(epsilon=8.0, max_weight=3.0).fit(X, target, sample_weight=weights)
    assert_allclose(ridge.coef_, exact.coef_, atol=0.1)
    histogram = DPHistogram(epsilon=8.0, bins=4, bounds=(-1, 1), max_weight=3.0)
    found = histogram.fit(X[:, :1], sample_weight=weights).counts_[0]
    assert_allclose(found, np.histogram(X[:, 0], 4, (-1, 1), weights=weights)[0], atol=20)
    words = DPFrequentFeatures(epsilon=8.0, sparsity=3, max_weight=3.0)
    found = words.fit(X > 0.5, sample_weight=weights).counts_
    assert_allclose(found, weights @ (X > 0.5), atol=20)
    for median in (DPQuantile(epsilon=8.0, max_weight=3.0), DPMedian(epsilon=8.0, max_weight=3.0)):
        assert abs(median.fit(X, sample_weight=weights).location_[0] - half) < 0.06


def test_a_weight_of_zero_is_as_good_as_no_row():
    # in what is released before noise: plans know of the noisy total alone
    X, y = rows_of()
    weights = np.repeat([1.0, 0.0], [200, 100])
    model = clone(WEIGHTED[0]).set_params(adjacency="zero-out", max_weight=1.0)
    other = X.copy()
    other[250] = 9.0
    result = trace_privacy(model, X, other, y=y, sample_weight=weights)
    assert result.passed
    assert max(release.distance for release in result.releases) < 1e-9


CHECKS_OF_WEIGHTS = [
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_an_array",
    "check_sample_weights_list",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
]


@pytest.mark.covering
@pytest.mark.parametrize("check", CHECKS_OF_WEIGHTS)
@pytest.mark.parametrize("model", [WEIGHTED[0], WEIGHTED[3], WEIGHTED[4], WEIGHTED[9]], ids=str)
def test_checks_of_scikit_learn(model, check):
    model = clone(model).set_params(epsilon=40.0)
    if hasattr(model, "classes"):
        model.set_params(classes=None)
    getattr(estimator_checks, check)(type(model).__name__, model)


def test_the_parameter_is_there_where_there_is_a_bound():
    for model in WEIGHTED:
        assert has_fit_parameter(model, "sample_weight")
        assert not has_fit_parameter(clone(model).set_params(max_weight=None), "sample_weight")
    budget = PrivacyBudget(epsilon=1.0)
    with pytest.raises(
        TypeError, match=r"only with max_weight, a public number.*Nothing was charged"
    ):
        DPMean(delta=0.0, budget=budget).fit(rows_of()[0], sample_weight=np.ones(300))
    assert budget.spent == (0.0, 0.0)
    assert DPMean(data_norm=1.0).fit(rows_of()[0], sample_weight=None).location_.shape == (3,)


BAD = [
    (np.ones(299), "shape"),
    (np.ones((300, 1)), "shape"),
    (np.full(300, np.nan), "finite"),
    (np.full(300, np.inf), "finite"),
    (np.full(300, -1.0), "not negative"),
    (["a"] * 300, "one number for each row"),
]


@pytest.mark.parametrize(("weights", "message"), BAD)
def test_weights_that_are_none_are_refused(weights, message):
    budget = PrivacyBudget(epsilon=1.0)
    model = DPMean(delta=0.0, mechanism="laplace", data_norm=1.0, max_weight=1.0, budget=budget)
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        model.fit(rows_of()[0], sample_weight=weights)
    assert budget.spent == (0.0, 0.0)


def test_weights_are_refused_where_rows_must_count_one_each():
    X, y = rows_of()
    for solver in ("sgd", "phased"):
        model = DPLogisticRegression(data_norm=1.0, solver=solver, max_weight=1.0)
        with pytest.raises(ValueError, match="sample_weight must be None with solvers"):
            model.fit(X, y, sample_weight=np.ones(300))


@pytest.mark.parametrize("model", [*(WEIGHTED[k] for k in (0, 3, 5)), *WEIGHTED[-5:]], ids=str)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_rows_outside_memory_count_what_they_count_in_it(model, adjacency):
    X, y = rows_of()
    model = clone(model).set_params(adjacency=adjacency, random_state=0)
    data = (X, y) if hasattr(model, "max_iter") else (X,)
    for weights in (None, np.random.default_rng(1).uniform(0, 3, 300)):
        here = fitted_numbers(model.fit(*data, sample_weight=weights))
        streams = stream_arrays(*data)
        streams = streams if isinstance(streams, tuple) else (streams,)
        for one, two in zip(
            here, fitted_numbers(model.fit(*streams, sample_weight=weights)), strict=True
        ):
            assert_array_equal(one, two)


def test_boosting_charges_every_fit():
    X, y = rows_of(3000)
    budget = PrivacyBudget(epsilon=3.0, delta=1e-5)
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0, max_weight=5 / 3000, budget=budget)
    boosted = AdaBoostClassifier(model, n_estimators=3).fit(X, y)
    assert boosted.score(X, y) > 0.8
    assert budget.spent[0] == 3.0
    # its own rates of errors are exact
    assert any("errors of its members" in str(item) for item in privacy_spent(boosted).not_covered)


@pytest.mark.parametrize("model", [WEIGHTED[k] for k in (4, 7, 8, 14)], ids=str)
def test_scores_of_locations_take_weights(model):
    X = rows_of()[0]
    model = clone(model).fit(X, sample_weight=np.ones(300))
    weights = np.arange(300) % 3
    repeated = np.repeat(X, weights, axis=0)
    assert model.score(X, sample_weight=weights) == pytest.approx(model.score(repeated))
    assert model.score(X) == pytest.approx(model.score(X, sample_weight=np.full(300, 7.0)))


def test_weights_and_groups_go_together():
    X = rows_of()[0]
    weights, groups = np.ones(300), np.arange(300) // 3
    model = clone(WEIGHTED[4]).set_params(epsilon=1e3, delta=1e-6, max_weight=1.0)
    both = model.fit(X, groups=groups, sample_weight=weights).location_
    assert model.ledger_.unit == "group"
    assert_allclose(both, model.fit(X, groups=groups).location_, atol=0.01)
    weights[groups == 0] = 0.0
    assert_array_equal(model.fit(X, groups=groups, sample_weight=weights).location_.shape, (3,))
