# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The one warning of a fit: what it says, from which numbers, and when there is none."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import (
    DPPCA,
    BoundedScaler,
    DPCovariance,
    DPFeatureCenterer,
    DPGridSearchCV,
    DPHeavyTailedMean,
    DPHingeSVM,
    DPHistogram,
    DPKernelClassifier,
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
    FederatedDPLogisticRegression,
    LocalDPCovariance,
    LocalDPLinearRegression,
    LocalDPMean,
    PrivacyBudget,
)
from skdp.exceptions import NoisyEstimateWarning, PrivacyWarning, SeededNoiseWarning
from skdp.solvers import FrankWolfe

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=1000) > 0).astype(int)
BINARY = {"classes": (0, 1)}
WIDE = RNG.normal(size=(200, 400))


def warned(action):
    """Return what an action warns of, the seed aside."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", SeededNoiseWarning)
        action()
    return raised


def the_warning(model, *data):
    """Return category and text of the one warning of a fit."""
    (one,) = warned(lambda: clone(model).fit(*data))
    assert one.filename == __file__
    assert str(one.message).startswith(f"{type(model).__name__}: ")
    return one.category, str(one.message)


@pytest.mark.sample(6, 12)
@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(**BINARY),
        DPHingeSVM(data_norm=3.0, **BINARY),
        DPLpRegressor(),
        DPMean(),
        DPMean(mechanism="clipped", data_norm=100.0),
        DPMedian(epsilon=2.0),
        DPQuantile(quantile=0.8),
        DPNormQuantile(data_norm=10.0),
        DPHeavyTailedMean(),
        DPSparseMeanEstimator(),
        DPStandardScaler(),
        DPStandardScaler(bounds=(-4, 4)),
        DPFeatureCenterer(),
        FederatedDPLogisticRegression(**BINARY),
        LocalDPMean(),
        make_pipeline(DPStandardScaler(0.5), DPLogisticRegression(0.5, **BINARY)),
        DPGridSearchCV(DPLogisticRegression(**BINARY), {"C": [1.0, 10.0]}),
    ],
    ids=lambda model: type(model).__name__,
)
def test_ordinary_fits_warn_of_nothing(model):
    assert warned(lambda: clone(model).fit(X, Y)) == []


def test_tools_of_scikit_learn_warn_of_nothing():
    model = DPLogisticRegression(**BINARY)
    assert warned(lambda: cross_val_score(model, X, Y, cv=3)) == []
    assert warned(lambda: GridSearchCV(model, {"C": [1.0, 10.0]}, cv=2).fit(X, Y)) == []


# -- the promise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [DPMean(delta=1e-3, mechanism="gaussian"), DPStandardScaler(delta=1e-3)], ids=str
)
def test_a_delta_of_one_over_the_rows(model):
    category, text = the_warning(model, X)
    assert category is PrivacyWarning
    assert "delta=0.001 is not below 1 / 1000" in text
    assert "Give a delta below 1e-04" in text
    assert warned(lambda: clone(model).set_params(delta=9e-4).fit(X)) == []


def test_a_delta_that_nothing_spends_is_no_matter():
    for model in (DPMean(delta=0.1, mechanism="laplace"), DPMedian(delta=0.1, mechanism="rank")):
        assert warned(lambda model=model: model.fit(X)) == []


def test_a_huge_epsilon():
    category, text = the_warning(DPMean(epsilon=21.0, bounds=(-4, 4)), X)
    assert category is PrivacyWarning
    assert "epsilon=21 gives almost no privacy" in text
    assert "Give an epsilon of at most 20" in text
    assert warned(lambda: DPMean(epsilon=20.0, bounds=(-4, 4)).fit(X)) == []
    # numbers that no float has
    assert "1e+304" in the_warning(DPQuantile(epsilon=1e6, bounds=(-9, 9)), X)[1]


def test_classes_that_were_read_from_labels():
    category, text = the_warning(DPLogisticRegression(), X, Y)
    assert category is PrivacyWarning
    assert "assumed public: the set of class labels, which was read from y (pass classes=" in text
    search = DPGridSearchCV(DPLogisticRegression(), {"C": [1.0, 10.0]})
    assert "read from y" in the_warning(search, X, Y)[1]


# -- noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1, 4])
def test_fewer_than_a_handful_of_rows(n_rows):
    for model in (DPMean(8.0, bounds=(-9, 9)), DPStandardScaler(8.0, bounds=(-9, 9))):
        category, text = the_warning(model, X[:n_rows])
        assert category is NoisyEstimateWarning
        assert f"with {n_rows} row{'s' * (n_rows > 1)} at epsilon=8, the result is mostly" in text


def test_few_rows_over_epsilon():
    text = the_warning(DPMean(0.1, bounds=(-9, 9)), X[:99])[1]
    assert "with 99 rows at epsilon=0.1, the result is mostly noise" in text
    assert warned(lambda: DPMean(0.1, bounds=(-9, 9)).fit(X[:100])) == []


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        # N = n mu / (a sqrt(p)); mu is 0.2367 at (1, 1e-6)
        (DPLogisticRegression(data_norm=20.0, **BINARY), 339),
        (DPLogisticRegression(data_norm=20.0, adjacency="zero-out", **BINARY), 170),
        (DPLogisticRegression(data_norm=20.0, classes=(0, 1, 2)), 587),
        (DPLpRegressor(data_norm=20.0, target_scale=1.0), 339),
        # n epsilon / (a p)
        (DPHingeSVM(data_norm=20.0, delta=0.0, **BINARY), 802),
    ],
    ids=str,
)
def test_coefficients_that_are_too_many(model, limit):
    n_classes = len(getattr(model, "classes", ()) or (0, 1))
    y = np.arange(len(WIDE)) % n_classes
    for rows in (WIDE, 1e6 * WIDE[::-1]):
        if limit > 200:
            category, text = the_warning(model, rows, y)
            assert category is NoisyEstimateWarning
            assert "coefficients: 200 rows at epsilon=1 have a signal to noise" in text
            named = int(text.split("Use at least ")[1].split()[0])
            assert named == pytest.approx(limit, rel=0.01)
        else:
            assert warned(lambda rows=rows: clone(model).fit(rows, y)) == []


@pytest.mark.parametrize("model", [DPRidge(), DPLpRegressor(), DPKernelRegressor()], ids=str)
def test_a_regression_of_few_rows_is_told_to_have_public_units(model):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3000, 5))
    target = rows[:, 0] + rng.normal(size=3000) / 2
    category, text = the_warning(model, rows[:150], target[:150])
    assert category is NoisyEstimateWarning
    assert "150 rows at epsilon=1 have a signal to noise of 7.2, below 10. Use public" in text
    assert "target_scale, at least 207 rows" in text
    assert warned(lambda: clone(model).fit(rows, target)) == []
    known = {"data_norm": 4.0}
    if isinstance(model, DPKernelRegressor):
        known = {"bounds": (-3.0, 3.0)}
    model = clone(model).set_params(target_scale=1.0, **known)
    told = warned(lambda: model.fit(rows[:150], target[:150]))
    assert not any("signal to noise" in str(one.message) for one in told)


def test_few_coefficients_and_few_entries_are_another_matter():
    y = np.arange(len(WIDE)) % 2
    frank_wolfe = DPLogisticRegression(solver=FrankWolfe(), data_norm=20.0, **BINARY)
    assert warned(lambda: frank_wolfe.fit(WIDE, y)) == []
    rows = sparse.random_array((200, 400), density=0.01, format="csr", rng=0)
    model = DPLogisticRegression(data_norm=3.0, **BINARY)
    assert warned(lambda: model.fit(rows, y)) == []


def test_clients_count_and_not_rows():
    groups = np.arange(1000) // 100
    category, text = the_warning(FederatedDPLogisticRegression(**BINARY), X, Y, groups)
    assert category is NoisyEstimateWarning
    assert "10 groups at epsilon=1 have a signal to noise" in text
    assert "Use at least 38 groups" in text


def test_scales_without_bounds():
    category, text = the_warning(DPStandardScaler(), X[:300])
    assert category is NoisyEstimateWarning
    assert "too few rows at this epsilon to find the scales of 4 columns. Give public" in text
    assert warned(lambda: DPStandardScaler(bounds=(-4, 4)).fit(X[:300])) == []


def test_noise_of_reports():
    category, text = the_warning(LocalDPLinearRegression(1.0), X, X[:, 0])
    assert category is NoisyEstimateWarning
    assert "the noise of 1000 reports" in text


# -- at a bound ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [DPMean(), DPHistogram(), DPQuantile(bounds=(0, 1))], ids=str)
def test_features_are_called_by_their_names(model):
    table = pd.DataFrame({"flat": np.full(3000, 7.0), "b": RNG.uniform(0.1, 0.9, 3000)})
    model = clone(model).set_params(epsilon=4.0)
    _, text = the_warning(model, table)
    assert "feature(s) 'flat' " in text
    _, text = the_warning(model, table.to_numpy())
    assert "feature(s) 0 " in text


@pytest.mark.parametrize(
    "model",
    [
        DPMean(data_norm=1.0),
        DPMean(bounds=(0, 1)),
        DPMean(bounds=(0, 1), mechanism="laplace"),
        DPMedian(data_norm=1.0),
        DPMedian(bounds=(0, 1)),
        DPQuantile(quantile=0.9, bounds=(0, 1)),
        DPNormQuantile(),
        DPStandardScaler(bounds=(0, 1)),
        LocalDPMean(),
        LocalDPMean(mechanism="cube", bounds=(0, 1)),
    ],
    ids=str,
)
def test_an_estimate_on_its_bound(model):
    prices = 3928 + 100 * X[:, :1]
    category, text = the_warning(model, prices)
    assert category is NoisyEstimateWarning
    assert "lies at the edge of" in text or "lies on a bound" in text
    assert "Give a larger" in text or "Give wider" in text
    # 4,000 wide
    name = "bounds" if getattr(model, "bounds", None) else "data_norm"
    wide = {"bounds": (0, 8000), "data_norm": 8000.0}[name]
    if isinstance(model, DPStandardScaler):
        wide = (3500, 4500)
    assert warned(lambda: clone(model).set_params(**{name: wide}).fit(prices)) == []


def test_zero_is_a_true_bound_of_many_features():
    amounts = np.where(X[:, :1] > 1, 100.0, 0.0)
    assert warned(lambda: DPMedian(bounds=(0, 1e4)).fit(amounts)) == []
    assert warned(lambda: DPMedian(bounds=(0, 1e4)).fit(np.hstack([amounts, amounts]))) == []


@pytest.mark.parametrize(
    "model",
    [
        DPMedian(data_norm=1.0),
        DPMedian(bounds=(0, 1)),
        DPMedian(data_norm=1.0, mechanism="exponential"),
        DPHeavyTailedMean(data_norm=1.0),
        DPSparseMeanEstimator(),
        DPSparseMeanEstimator(sparse_output=True),
    ],
    ids=str,
)
def test_a_location_of_several_features_on_its_bound(model):
    category, text = the_warning(model, 3928 + 100 * X[:, :2])
    assert category is NoisyEstimateWarning
    assert "lies at the edge of" in text


def test_columns_that_vary_too_little_beside_their_size():
    rows = pd.DataFrame({"a": 1e7 + RNG.normal(size=5000), "b": RNG.normal(size=5000)})
    rows["c"] = 3.0 + rows["b"]
    # a constant and a flag that most rows have are no mistakes
    rows["d"], rows["e"] = 1.0, (RNG.random(5000) < 0.99).astype(float)
    label, target = (rows["b"] > 0).astype(int), rows["b"] + RNG.normal(size=5000)
    for model, y in (
        (DPLogisticRegression(classes=[0, 1], max_iter=2), label),
        (DPHingeSVM(classes=[0, 1], max_iter=2), label),
        (DPLpRegressor(max_iter=2), target),
    ):
        category, text = the_warning(model, rows, y)
        assert category is NoisyEstimateWarning
        assert "next to all values of column 'a' of X are equal, or differ too little" in text
        near = rows - [1e7, 0, 0, 0, 0]
        assert warned(lambda model=model, y=y, near=near: clone(model).fit(near, y)) == []
    # medians first: units of other columns serve
    assert warned(lambda: DPRidge().fit(rows, target)) == []


def test_a_radius_that_is_not_drawn():
    category, text = the_warning(DPHeavyTailedMean(), X[:20])
    assert category is NoisyEstimateWarning
    assert "20 rows at epsilon=1 are too few to draw a radius" in text
    assert warned(lambda: DPHeavyTailedMean(moment_bound=9.0).fit(X[:20])) == []
    assert warned(lambda: DPHeavyTailedMean().fit(X[:100])) == []


# -- parameters without effect, and how it is said -------------------------------------------------


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (DPMean(data_norm=3.0, bounds=(-4, 4)), "data_norm has no effect with bounds"),
        (DPMedian(data_norm=3.0, bounds=(-4, 4)), "data_norm has no effect with bounds"),
        (DPMedian(mechanism="rank", max_iter=9), "max_iter has no effect with mechanism='rank'"),
        (
            LocalDPMean(mechanism="cube", data_norm=3.0, bounds=(-4, 4)),
            "data_norm has no effect with bounds",
        ),
    ],
    ids=str,
)
def test_parameters_without_effect(model, said):
    category, text = the_warning(model, X)
    assert category is PrivacyWarning
    assert said in text


def test_all_doubts_are_one_warning():
    model = DPMean(0.05, 0.2, mechanism="gaussian", data_norm=1.0, bounds=(0, 1))
    category, text = the_warning(model, X[:6])
    # the worst of them
    assert category is NoisyEstimateWarning
    assert "(1) data_norm has no effect" in text
    assert "(2) delta=0.2" in text
    assert "(3) with 6 rows at epsilon=0.05" in text


def test_a_fit_that_is_refused_warns_of_nothing():
    budget = PrivacyBudget(epsilon=0.5, delta=1e-6)
    with pytest.raises(ValueError, match="budget"):
        assert warned(lambda: DPMean(delta=0.1, bounds=(0, 1), budget=budget).fit(X[:2])) == []


def test_warnings_depend_on_no_row():
    for model in (
        DPMean(0.1), DPMedian(0.01), DPQuantile(0.01), DPStandardScaler(0.001, 0.5),
        DPLogisticRegression(0.01, **BINARY),
    ):  # fmt: skip
        texts = {
            the_warning(model, rows, Y[:200])[1]
            for rows in (X[:200], 1e9 * X[200:400], 0 * X[:200])
        }
        assert len(texts) == 1


# -- bounds that hide what tells rows apart --------------------------------------------------------

FAR = np.random.default_rng(1).normal(size=(3000, 3)) + 5
SIDE = (FAR.sum(axis=1) > 15).astype(int)


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPHingeSVM])
def test_rows_far_from_0_that_a_norm_makes_equal(kind):
    category, text = the_warning(kind(data_norm=1.0, classes=(0, 1)), FAR, SIDE)
    assert category is NoisyEstimateWarning
    assert "nearly all rows are about as long as data_norm=1, or longer and scaled down" in text
    assert "Give a larger data_norm, or None; or subtract public numbers" in text
    # what is longer than a norm may lie around 0, and a right norm is one that some rows exceed
    long = np.quantile(np.linalg.norm(FAR, axis=1), 0.95)
    for rows, norm in ((FAR - 5, 0.1), (FAR - 4, 1.0), (FAR, long), (FAR, 30.0), (FAR, None)):
        assert warned(lambda r=rows, n=norm: kind(data_norm=n, classes=(0, 1)).fit(r, SIDE)) == []


@pytest.mark.parametrize("kernel", ["additive", "rbf", "linear"])
def test_bounds_of_a_kernel_that_make_rows_equal(kernel):
    model = DPKernelClassifier(kernel=kernel, classes=(0, 1), bounds=(0, 1e4))
    category, text = the_warning(model, FAR, SIDE)
    assert category is NoisyEstimateWarning
    assert "rows are nearly equal between their bounds, which are far too wide, or in" in text
    assert warned(lambda: model.set_params(bounds=(0, 12)).fit(FAR, SIDE)) == []
    # all values are in the middle, where rows of lines are short
    if kernel == "linear":
        text = the_warning(model.set_params(bounds=(-1e4, 1e4)), FAR, SIDE)[1]
        assert "almost no row has an influence" in text
        assert "Give narrower bounds." in text


def test_columns_that_a_scaler_has_made_constant():
    scaled = make_pipeline(BoundedScaler((0, 1)), DPLogisticRegression(classes=(0, 1)))
    (one,) = warned(lambda: scaled.fit(FAR, SIDE))
    assert "almost no row has an influence" in str(one.message)
    assert "Check that columns of X vary, and by which bounds they were" in str(one.message)


@pytest.mark.parametrize(
    ("wide", "said"),
    [
        (
            (-1e4, 1e4),
            "the variances of column(s) 0, 1, 2 are hidden by their noise, which was taken",
        ),
        ((0, 1e4), "most rows may lie beyond it, or next to it in bounds that are far too wide"),
    ],
    ids=str,
)
def test_bounds_of_a_scaler_that_are_too_wide(wide, said):
    category, text = the_warning(DPStandardScaler(bounds=wide), FAR)
    assert category is NoisyEstimateWarning
    assert said in text
    # one is enough
    assert "(2)" not in text
    assert warned(lambda: DPStandardScaler(bounds=(0, 10)).fit(FAR)) == []
    some = np.where([True, False, True], FAR, 5.0)
    assert "column(s) 1 are" in the_warning(DPStandardScaler(bounds=(0, 10)), some)[1]
    assert warned(lambda: DPStandardScaler(with_std=False, bounds=(0, 10)).fit(some)) == []
    assert "hidden by their noise" in the_warning(DPStandardScaler(bounds=(0, 10)), FAR[:30])[1]


def test_a_norm_of_a_covariance_that_all_rows_exceed():
    said = "nearly all rows are as long as data_norm=0.1, or longer and scaled down to it"
    assert said in the_warning(DPCovariance(data_norm=0.1), FAR - 5)[1]
    assert said in the_warning(DPPCA(1, data_norm=0.1), FAR)[1]
    # directions of rows around 0 remain
    assert warned(lambda: DPPCA(1, data_norm=0.1).fit((FAR - 5) * [3, 1, 1])) == []
    length = np.linalg.norm(FAR - 5, axis=1)
    for share in (0.5, 0.95):
        model = DPCovariance(data_norm=np.quantile(length, share))
        assert warned(lambda m=model: m.fit(FAR - 5)) == []
    rows = np.tile(FAR - 5, (7, 1))
    said = "nearly all rows are as long as data_norm=1, or longer"
    assert said in the_warning(LocalDPCovariance(), 5 * rows)[1]
    assert warned(lambda: LocalDPCovariance(data_norm=np.median(length)).fit(rows)) == []
    for model in (DPCovariance(bounds=(0, 1)), DPPCA(1, bounds=(0, 1e4))):
        assert "the mean lies at the edge of bounds" in the_warning(model, FAR)[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [({"C": 1.0}, "with C=1: "), ({"coef_bound": 5.0}, "with coef_bound=5: ")],
    ids=str,
)
def test_columns_in_unlike_units_that_a_penalty_keeps(given, said):
    model = DPLogisticRegression(classes=(0, 1), **given)
    category, text = the_warning(model, FAR * [1, 1e4, 1], SIDE)
    assert category is NoisyEstimateWarning
    assert f"columns of X have unlike units, and keep them {said}the largest hide" in text
    for rows in (FAR, FAR - 5, FAR[:, :1], np.ones((3000, 2)) * FAR[:, :1]):
        assert warned(lambda r=rows: model.fit(r, SIDE)) == []
        # the count is part of the budget
        assert 0.99 < model.privacy_spent_[0] <= 1.0
    # without a penalty they are brought to one unit
    free = clone(model).set_params(C=np.inf, coef_bound=None)
    assert warned(lambda: free.fit(FAR * [1, 1e4, 1], SIDE)) == []


# -- what a search hears of its winner -------------------------------------------------------------


def test_a_search_tells_what_is_noise_about_its_winner():
    model = DPLogisticRegression(classes=(0, 1), data_norm=12.0)
    grid = {"C": [0.1, 10.0]}
    assert warned(lambda: DPGridSearchCV(model, grid, epsilon=4.0).fit(FAR, SIDE)) == []
    category, text = the_warning(
        DPGridSearchCV(model, grid, epsilon=4.0, refit=False), FAR, 5 * SIDE
    )
    assert category is NoisyEstimateWarning
    assert text.count("of the best run, DPLogisticRegression: about ") == 1
    assert "of the rows have a label outside classes=[0, 1]" in text
    steps = make_pipeline(DPStandardScaler(bounds=(0, 1)), model)
    search = DPGridSearchCV(steps, {"dplogisticregression__C": [0.1, 10.0]}, epsilon=4.0)
    search.set_params(refit_share=0.5, strategy="subset", n_jobs=1)
    assert (
        "of the best run, DPStandardScaler: the mean lies at the edge"
        in the_warning(search, FAR, SIDE)[1]
    )
    assert not hasattr(search.fit(FAR, SIDE).best_estimator_, "_doubts")


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.full)])
def test_a_search_tells_nothing_of_other_runs(backend):
    # the wrong norm is in all runs but one, which is nearly always the best
    norms = {"data_norm": [1e-3, 2e-3, 12.0]}
    model = DPLogisticRegression(classes=(0, 1))
    for seed in range(3):
        search = DPGridSearchCV(model, norms, epsilon=12.0, n_jobs=2, random_state=seed)
        with parallel_config(backend=backend):
            raised = warned(lambda s=search: s.fit(FAR, SIDE))
        assert search.best_index_ == 2
        assert raised == []
