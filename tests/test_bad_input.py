# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Refused input: what is missing, not finite, out of range or of the wrong type."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from skdp import (
    BoundedScaler,
    DPFeatureCenterer,
    DPHingeSVM,
    DPKernelClassifier,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPRidge,
    DPStandardScaler,
    NormClipper,
    PrivacyBudget,
    PrivacyUtilityDisplay,
    PrivUnitPrivatizer,
    ScalarPrivatizer,
    audit_privacy,
    privacy_card,
    privacy_spent,
    to_sklearn,
)
from skdp.exceptions import NoisyEstimateWarning, PrivacyWarning
from skdp.privacy import Curator, gdp_mu
from tests._solvers import linear_model
from tests.test_claims_erm import PAIRS, make

# Bad input: a clear error or a correct fit, never a silent non-private result.


NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(60, 3))
y = np.arange(60) % 2

BAD_PARAMETERS = [
    (DPLogisticRegression, name, value)
    for name, values in {
        "epsilon": [0, -1, NAN, INF, "1", None, True, [1.0]],
        "delta": [-0.1, 1, 1.5, NAN, INF, "x", None, True],
        "mechanism": ["laplace", None, 1],
        "solver": ["adam", "saga", None],
        "adjacency": ["remove-one", None, 0],
        "data_norm": [0, -1, NAN, INF, 1e-200, 1e200, "a", [1.0], True],
        "classes": [[0], [], [0, 0], [0, NAN], [[0, 1]], 3],
        "C": [0, -1, NAN, "1", None],
        "fit_intercept": ["no", None],
        "intercept_scaling": [0, -1, NAN, INF],
        "coef_bound": [0, -1, NAN, INF, "1"],
        "clipping_norm": [0, -1, NAN, INF],
        "step_size": [0, -1, NAN, INF],
        "max_iter": [0, -1, 1.5, "many", INF],
        "random_state": [-1, 1.5, "a"],
        "verbose": ["loud", -1],
    }.items()
    for value in values
] + [
    (DPMean, name, value)
    for name, values in {
        "epsilon": [0, -1, NAN, INF, True],
        "delta": [-0.1, 1, NAN],
        "mechanism": ["uniform", None],
        "adjacency": ["remove-one"],
        "data_norm": [0, NAN, INF, True],
        "bounds": [(1, 0), (0, 0), (0, NAN), (-INF, 1), (0,), (0, 1, 2), ([0, 0], 1), "ab", 3]
        + [(INF, INF), (-1e308, 1e308)],
        "random_state": [-1, "a"],
    }.items()
    for value in values
]


def placed(estimator, **parameters):
    """Return an estimator that looks for no private range."""
    place = {"data_norm": 1.0} if estimator is DPMean and "bounds" not in parameters else {}
    return linear_model(estimator, **{**place, **parameters})


@pytest.mark.sample(6, 50)
@pytest.mark.parametrize(("estimator", "name", "value"), BAD_PARAMETERS)
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(estimator, name, value):
    model = placed(estimator, **{name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(X, y)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")
    assert not hasattr(model, "coef_")


@pytest.mark.sample(6, 39)
@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [p for p in BAD_PARAMETERS if p[1] in ("epsilon", "delta", "data_norm", "adjacency", "bounds")],
)
def test_the_gate_does_not_rely_on_scikit_learn_s_validation(estimator, name, value):
    model = placed(estimator, **{name: value})
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises((ValueError, TypeError)),
    ):
        model.fit(X, y)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    "kind", [DPFeatureCenterer, DPMean, DPStandardScaler], ids=lambda kind: kind.__name__
)
def test_weights_are_refused_before_anything_is_charged(kind):
    # Python's own message named a base class, and no remedy
    budget = PrivacyBudget(5.0, 1e-4)
    name = f"{kind.__name__}.fit takes"
    told = f"{name} (no sample_weight|sample_weight only with max).*Nothing was charged"
    with pytest.raises(TypeError, match=told):
        kind(budget=budget).fit(X, y, sample_weight=np.ones(60))
    assert budget.charges == ()
    assert not has_fit_parameter(kind(), "sample_weight")


def test_a_budget_that_cannot_be_spent_is_refused_before_the_data_are_read():
    class Unreadable:
        def __array__(self, *args, **kwargs):
            raise AssertionError("the data were read")

    gradient = DPLogisticRegression(delta=1.0, mechanism="gradient", data_norm=1.0)
    pure = DPMean(delta=0.0, mechanism="gaussian", data_norm=1.0)
    for model in (gradient, DPMean(epsilon=NAN, data_norm=1.0), pure):
        with (
            sklearn.config_context(skip_parameter_validation=True),
            pytest.raises(ValueError, match="must be"),
        ):
            model.fit(Unreadable(), y)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize(
    "model",
    [DPLogisticRegression(data_norm=1.0), DPMean(data_norm=1.0), NormClipper(), BoundedScaler()],
)
def test_values_that_are_not_finite(model, bad):
    broken = X.copy()
    broken[7, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        clone(model).fit(broken, y)


@pytest.mark.parametrize("bad", [NAN, INF])
def test_with_validation_off_such_a_row_contributes_nothing(bad):
    broken, gone = X.copy(), y.copy()
    broken[7, 1], gone[7] = bad, -1
    model = DPLogisticRegression(classes=[0, 1], random_state=0, data_norm=1.0)
    with sklearn.config_context(assume_finite=True):
        coef = model.fit(broken, y).coef_
    np.testing.assert_array_equal(coef, clone(model).fit(X, gone).coef_)
    with sklearn.config_context(assume_finite=True):
        assert np.isfinite(DPMean(bounds=(-1, 1)).fit(broken).location_).all()
        assert np.isfinite(DPMean(data_norm=1.0).fit(sparse.csr_array(broken)).location_).all()


def test_one_class():
    with pytest.raises(ValueError, match=r"1 class.*classes="):
        DPLogisticRegression(data_norm=1.0).fit(X, np.zeros(60))
    assert DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit(X, np.zeros(60)).coef_.shape == (
        1,
        3,
    )


def test_one_row():
    assert DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit(X[:1], y[:1]).coef_.shape == (
        1,
        3,
    )
    assert DPMean(data_norm=1.0).fit(X[:1]).location_.shape == (3,)
    with pytest.raises(ValueError, match="class"):
        DPLogisticRegression(data_norm=1.0).fit(X[:1], y[:1])


@pytest.mark.parametrize(
    "model",
    [DPLogisticRegression(data_norm=1.0), DPMean(data_norm=1.0), NormClipper(), BoundedScaler()],
)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.empty((60, 0)), "0 feature"),
        (np.zeros(60), "1D array"),
        (np.zeros((60, 3, 2)), "dim 3"),
        (np.full((60, 3), 1j), "Complex"),
        ([["60", "kilos"]] * 60, "numeric"),
        (pd.DataFrame({"a": pd.Categorical(["u"] * 60)}), "numeric"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 60)}), "numeric"),
        (np.array(["2020-01-01"] * 60, dtype="datetime64[D]").reshape(-1, 1), "numeric"),
        # the column by its name, and what reads it
        (pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(["u"] * 60)}), "'b' is of type category"),
        (pl.DataFrame({"a": [pd.Timestamp("2020-01-01")] * 60}), "X .* 'a' .*dp_tabular_pipeline"),
        (pd.DataFrame({"a": pd.period_range("2020-01", periods=60, freq="M")}), "type period"),
        (pd.DataFrame({"a": [[1.0, 2.0]] * 60}), "X must be numeric: it"),
    ],
)
def test_data_of_the_wrong_shape_or_kind(model, data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(model).fit(data, y)


def test_features_that_fit_did_not_see():
    model = DPLogisticRegression(data_norm=1.0).fit(X, y)
    for method in (model.predict, model.decision_function, model.predict_proba):
        with pytest.raises(ValueError, match="X has 2 features"):
            method(X[:, :2])
    with pytest.raises(ValueError, match="X has 2 features"):
        NormClipper().fit(X).transform(X[:, :2])


def test_rows_with_missing_values_get_our_advice_from_predict():
    """Scikit-learn's is to leave rows out, or to fill in what is computed from them."""
    missing = np.where(np.arange(len(X))[:, None] == 0, NAN, X)
    for model in (DPLogisticRegression(data_norm=1.0), DPHingeSVM(data_norm=1.0), DPLpRegressor()):
        model.fit(X, y)
        for method in (model.predict, getattr(model, "decision_function", model.predict)):
            with pytest.raises(ValueError, match=r"NaN\. Fill in a public constant") as raised:
                method(missing)
            assert "HistGradient" not in str(raised.value)


def test_rows_that_polars_has_not_computed():
    rows = pl.DataFrame(X).lazy()
    model = DPLogisticRegression(data_norm=1.0).fit(X, y)
    for call in (model.predict, DPMean(data_norm=1.0).fit, lambda rows: clone(model).fit(rows, y)):
        with pytest.raises(TypeError, match=r"LazyFrame.*pass X.collect\(\)"):
            call(rows)
    np.testing.assert_array_equal(model.predict(rows.collect().to_numpy()), model.predict(X))


def test_labels_that_are_no_classes():
    for labels in (rng.normal(size=60), [NAN] * 60, np.zeros((60, 2)), y[:-1]):
        with pytest.raises(ValueError, match=r"label|NaN|shape|inconsistent"):
            DPLogisticRegression(data_norm=1.0).fit(X, labels)
    # with a public label set they are null rows: test_strange_labels.py
    for labels in (np.zeros((60, 2)), y[:-1]):
        with pytest.raises(ValueError, match=r"shape|inconsistent"):
            DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit(X, labels)


@pytest.mark.parametrize("labels", [["yes", "no"], [pd.Timestamp("2020-01-01"), 1], [[1], [2, 3]]])
def test_targets_that_are_no_numbers_are_called_y(labels):
    with pytest.raises(ValueError, match="y must be real numbers"):
        DPLpRegressor().fit(X[:2], pd.Series(labels, dtype=object))


def test_rows_in_the_place_of_a_model_are_not_shown():
    calls = [to_sklearn, privacy_card, privacy_spent, audit_privacy]
    display = PrivacyUtilityDisplay.from_estimator
    calls.append(lambda rows: display(rows, rows, y, epsilons=[0.1, 1.0]))
    for call in calls:
        with pytest.raises((TypeError, ValueError)) as raised:
            call(np.full((60, 3), 4711))
        assert "4711" not in str(raised.value)


def test_numbers_beyond_the_range_of_scales_are_named_with_a_remedy():
    """The model learns next to nothing of them, and loses other columns beside them."""
    rows = rng.normal(size=(1000, 3))
    target = rows[:, 0]
    made = DPLogisticRegression(classes=(0, 1)), DPHingeSVM(classes=(0, 1)), DPLpRegressor()
    for model in made:
        labels = target if isinstance(model, DPLpRegressor) else (target > 0).astype(int)
        frame = pd.DataFrame(rows * [1, 1e150, 1], columns=["a", "b", "c"])
        with pytest.warns(NoisyEstimateWarning, match="column 'b' of X .* Divide by a public"):
            model.fit(frame, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error", NoisyEstimateWarning)
            model.fit(rows * [1, 1e40, 1e-40], labels)
        with warnings.catch_warnings():
            # a constant says nothing, and is no mistake
            warnings.simplefilter("error", NoisyEstimateWarning)
            model.fit(np.ones((1000, 2)), labels)
    with pytest.warns(NoisyEstimateWarning, match="scale of columns 0, 2 of X and of y is at"):
        model.fit(rows * [1e60, 1, 1e60], 1e60 * target)
    with pytest.warns(NoisyEstimateWarning, match="scale of columns 0, 2 of X is at"):
        model.fit(sparse.csr_array(rows * [1e60, 1, 1e60]), target)
    # with a penalty rows are searched for one scale, and so are those of pure privacy
    with pytest.warns(NoisyEstimateWarning, match="scale of X is at"):
        clone(model).set_params(l2=1.0).fit(rows * 1e60, target)
    model.set_params(epsilon=5.0, delta=0.0, coef_bound=2.0)
    with pytest.warns(NoisyEstimateWarning, match="scale of y is at"):
        model.fit(rows, 1e60 * target)
    # so do moments, and ranges, which end where floats of single precision do
    frame = pd.DataFrame(rows * [1, 1e150, 1], columns=["a", "b", "c"])
    with pytest.warns(NoisyEstimateWarning, match="column 'b' of X .* Divide by a public"):
        DPRidge(epsilon=5.0).fit(frame, target)
    with pytest.warns(NoisyEstimateWarning, match=r"feature\(s\) 1 have values beyond"):
        DPMean(epsilon=5.0).fit(rows * [1, 1e60, 1])
    # what is given is no finding
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoisyEstimateWarning)
        model.set_params(target_scale=1e50, data_norm=1e50).fit(rows, target)


def test_no_error_repeats_a_data_value():
    secret = "secret-4711"
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": ["x", secret]})
    object_rows = np.array([[0.5, secret], [0.5, 1.0]], dtype=object)
    for rows in (frame, object_rows):
        for model in (DPLogisticRegression(data_norm=1.0), DPMean(data_norm=1.0), NormClipper()):
            with pytest.raises(ValueError, match="numeric") as raised:
                model.fit(rows, [0, 1])
            assert secret not in str(raised.value)
            assert raised.value.__cause__ is None
            assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((60, 3)),
        np.full((60, 3), 1e308),
        np.full((60, 3), -1e308),
        np.full((60, 3), 5e-324),
        np.where(rng.random((60, 3)) < 0.5, 1e308, 5e-324),
        np.full((60, 3), 3e38, dtype=np.float32),
        rng.integers(-(2**62), 2**62, size=(60, 3)),
        rng.integers(0, 255, size=(60, 3)).astype(np.uint8),
        rng.random((60, 3)) < 0.5,
        rng.random((60, 3)).astype(np.float16),
        rng.random((60, 3)).astype(np.longdouble),
        rng.random((60, 3)).astype(object),
        rng.random((60, 3)).tolist(),
        np.asfortranarray(rng.random((60, 3))),
        np.repeat(rng.random((1, 3)), 60, axis=0),
        rng.random((60, 200)),
        pd.DataFrame(rng.random((60, 3)), columns=list("abc")),
    ],
)
@pytest.mark.parametrize("data_norm", [1e-100, 1.0, 1e100])
def test_extreme_rows_fit_and_stay_finite(rows, data_norm):
    model = DPLogisticRegression(data_norm=data_norm).fit(rows, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(DPMean(data_norm=data_norm).fit(rows).location_).all()
    assert np.isfinite(NormClipper(data_norm).fit_transform(rows)).all()


def test_read_only_memory_maps_are_not_written(tmp_path):
    path = tmp_path / "rows.npy"
    rows = np.vstack([X, [[1e308, 5e-324, 0]]])
    np.save(path, rows)
    mapped = np.load(path, mmap_mode="r")
    labels = np.append(y, 0)
    labels.flags.writeable = False
    DPLogisticRegression(data_norm=1.0).fit(mapped, labels)
    DPMean(data_norm=1.0).fit(mapped)
    NormClipper().fit_transform(mapped)
    np.testing.assert_array_equal(np.load(path), rows)


def test_missing_values_in_a_frame():
    frame = pd.DataFrame({"a": [0.1, None, 0.3], "b": pd.array([1, None, 3], dtype="Int64")})
    for model in (DPLogisticRegression(data_norm=1.0), DPMean(data_norm=1.0)):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(frame, [0, 1, 0])


def _csr(data, indices, indptr, shape, index_dtype=np.int32):
    parts = (np.array(data), np.array(indices, index_dtype), np.array(indptr, index_dtype))
    return sparse.csr_array(parts, shape=shape)


def test_sparse_rows_with_explicit_zeros_duplicates_and_long_indices():
    labels = [0, 1]
    plain = _csr([0.5, 0.25], [0, 2], [0, 1, 2], (2, 3))
    zeros = _csr([0.5, 0.0, 0.25], [0, 1, 2], [0, 2, 3], (2, 3))
    twice = _csr([0.25, 0.25, 0.25], [0, 0, 2], [0, 2, 3], (2, 3))
    long = _csr([0.5, 0.25], [0, 2], [0, 1, 2], (2, 3), np.int64)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    model = DPLogisticRegression(random_state=0, data_norm=1.0)
    expected = model.fit(plain, labels).coef_
    for rows in (zeros, twice, long):
        before = rows.copy()
        np.testing.assert_array_equal(model.fit(rows, labels).coef_, expected)
        np.testing.assert_array_equal(rows.data, before.data)
        np.testing.assert_array_equal(rows.indices, before.indices)


def test_a_sparse_matrix_without_entries_fits():
    assert np.isfinite(
        DPLogisticRegression(data_norm=1.0).fit(sparse.csr_array((60, 3)), y).coef_
    ).all()


def test_parameters_and_data_are_left_as_they_were():
    rows, labels = X.copy(), y.copy()
    model = DPLogisticRegression(
        classes=[1, 0], random_state=np.random.RandomState(0), data_norm=1.0
    )
    before = {k: v for k, v in model.get_params().items() if k != "random_state"}
    model.fit(rows, labels)
    after = {k: v for k, v in model.get_params().items() if k != "random_state"}
    assert after == before
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, y)


def test_a_fit_that_fails_midway_sets_nothing(monkeypatch):
    released = []

    def fails_at_the_third(self, query, mechanism, rows=None):
        released.append(query)
        if len(released) == 3:
            raise KeyboardInterrupt
        return np.zeros(query.size)

    monkeypatch.setattr(Curator, "release", fails_at_the_third)
    model = DPLogisticRegression(data_norm=1.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_") and name != "n_features_in_"]


@pytest.mark.parametrize("n_releases", [0, 4])
def test_a_fit_that_fails_midway_leaves_no_total_of_an_earlier_one(n_releases, monkeypatch):
    model = DPKernelClassifier(kernel="additive", n_knots=2, epsilon=8.0).fit(X, y)
    left, release = [None] * n_releases, Curator.release

    def fails(self, *args, **options):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return release(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Curator, "release", fails)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    # what it holds may be of both fits
    with pytest.raises(TypeError, match="has no ledger_"):
        privacy_spent(model)
    assert not hasattr(model, "privacy_spent_")
    # one that is refused before anything is released changes nothing
    model.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    assert privacy_spent(model).n_fits == 1


@pytest.mark.sample(5)
def test_tiny_and_huge_budgets():
    assert gdp_mu(1e-8, 1e-6) > 0
    for epsilon in (1e-9, 1e-3, 50.0, 1e5):
        model = DPLogisticRegression(epsilon=epsilon, data_norm=1.0).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert model.privacy_spent_[0] <= epsilon
    with pytest.raises(ValueError, match="too small"):
        DPLogisticRegression(epsilon=1e-12, delta=1e-12, data_norm=1.0).fit(X, y)


# Bad input to every mechanism of the linear classifiers: a clear error or a correct fit.


erm_rng = np.random.default_rng(0)
ERM_X = erm_rng.uniform(-1, 1, size=(60, 2))
every_pair = pytest.mark.parametrize(("mechanism", "solver"), PAIRS)
every_estimator = pytest.mark.parametrize("name", ["logistic", "hinge"])
POINTS = [p for p in PAIRS if p[1] != "cvxpy"]

BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-0.1, 1, 1.5, NAN, INF, "x", None, True],
    "mechanism": ["laplace", "Gradient", None, 1],
    "solver": ["adam", "saga", None, 0],
    "adjacency": ["remove-one", None],
    "data_norm": [0, -1, NAN, INF, 1e-200, 1e200, "a", [1.0], True],
    "classes": [[0], [], [0, 0], [0, NAN], 3],
    "C": [0, -1, NAN, "1", None],
    "smoothing": [0, -1, NAN, INF, 1e-4, 1e4, "1"],
    "coef_bound": [0, -1, NAN, INF, 1e-60, "1"],
    "max_iter": [0, -1, 1.5],
}
GATED = ("epsilon", "delta", "data_norm", "adjacency")


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_a_parameter_out_of_range_of_a_minimiser_is_named_and_nothing_is_fitted(name, value):
    model = DPHingeSVM(**{"data_norm": 1.0, name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(ERM_X, y)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")
    assert not hasattr(model, "coef_")


@pytest.mark.covering
@every_pair
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name in GATED for value in BAD[name]]
)
def test_the_gate_of_minimisers_does_not_rely_on_scikit_learn_s_validation(
    mechanism, solver, parameter, value
):
    model = make("logistic", mechanism, solver, **{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(ERM_X, y)
    assert not hasattr(model, "ledger_")


@pytest.mark.sample(6, 12)
@every_estimator
@every_pair
def test_delta_zero_is_pure_or_refused_by_name(name, mechanism, solver):
    model = make(name, mechanism, solver, delta=0.0, epsilon=0.5)
    if mechanism == "gradient" or solver in ("phased", "localized", "one-pass"):
        with pytest.raises(ValueError, match="delta must be greater than 0"):
            model.fit(ERM_X, y)
    else:
        # steps that share the budget may leave an ulp
        assert model.fit(ERM_X, y).privacy_spent_ == (pytest.approx(0.5, rel=1e-14), 0.0)
        assert model.privacy_spent_[0] <= 0.5


def assert_sound(model, data, labels):
    """Fit; the result is finite and within its budget."""
    model.fit(data, labels)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.privacy_spent_[0] <= model.epsilon
    assert model.privacy_spent_[1] <= model.delta
    assert model.ledger_.epsilon(model.delta) <= model.epsilon


@pytest.mark.sample(3)
@every_estimator
@every_pair
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 50.0, 1e6])
def test_minimisers_at_tiny_and_huge_budgets(name, mechanism, solver, epsilon):
    assert_sound(make(name, mechanism, solver, epsilon=epsilon), ERM_X, y)


@pytest.mark.sample(8)
@every_pair
@pytest.mark.parametrize("delta", [1e-300, 1e-15, 0.5, 0.999])
def test_tiny_and_huge_deltas(mechanism, solver, delta):
    assert_sound(make("logistic", mechanism, solver, delta=delta), ERM_X, y)


@pytest.mark.sample(6)
@every_estimator
@every_pair
@pytest.mark.parametrize("data_norm", [1e-100, 1e-50, 1e50, 1e100])
def test_extreme_units(name, mechanism, solver, data_norm):
    model = make(name, mechanism, solver, data_norm=data_norm)
    if mechanism == "exponential":
        model.set_params(coef_bound=float(np.clip(3 / data_norm, 1e-50, 1e50)))
    assert_sound(model, ERM_X * data_norm, y)


@pytest.mark.sample(1)
@every_estimator
@every_pair
@pytest.mark.parametrize(
    "case", ["one row", "one class", "null", "one feature", "equal", "huge", "tiny", "mixed"]
)
def test_degenerate_rows(name, mechanism, solver, case):
    model, data, labels = make(name, mechanism, solver), ERM_X, y
    if case == "one row":
        data, labels = ERM_X[:1], y[:1]
    elif case == "one feature":
        data = ERM_X[:, :1]
    elif case in ("one class", "null"):
        labels = np.full(60, {"one class": 0, "null": 7}[case])
        if case == "one class":
            with pytest.raises(ValueError, match=r"1 class.*classes="):
                clone(model).set_params(classes=None).fit(data, labels)
    else:
        data = {
            "equal": np.zeros((60, 2)),
            "huge": np.full((60, 2), 1e300),
            "tiny": np.full((60, 2), -1e-300),
            "mixed": np.where(erm_rng.random((60, 2)) < 0.5, 1e308, 5e-324),
        }[case]
    assert_sound(model, data, labels)


@pytest.mark.sample(6, 10)
@every_estimator
@pytest.mark.parametrize(("mechanism", "solver"), [p for p in POINTS if p[1] != "exact"])
def test_more_classes_than_rows(name, mechanism, solver):
    assert_sound(make(name, mechanism, solver, n_classes=7), ERM_X[:2], y[:2])


@pytest.mark.full
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_two_thousand_features(mechanism, solver):
    wide = np.random.default_rng(0).normal(size=(20, 2000))
    assert_sound(make("logistic", mechanism, solver), wide, np.arange(20) % 2)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("mechanism", "solver"), POINTS)
def test_other_layouts_are_read_and_never_written(mechanism, solver, tmp_path):
    rows = np.vstack([ERM_X, [[1e308, 5e-324]]])
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    labels = np.append(y, 0)
    labels.flags.writeable = False
    columns = np.tile([0, 1, 0, 1], 61)
    halves = np.repeat(np.vstack([ERM_X, [[0.5, 0.25]]]) / 2, 2, axis=0).ravel()
    twice = sparse.csr_array((halves, columns, np.arange(62) * 4), shape=(61, 2))
    for data in (mapped, rows[:, ::-1], ERM_X.astype(np.float32), twice):
        before = data.copy()
        assert_sound(make("hinge", mechanism, solver), data, labels[: data.shape[0]])
        if sparse.issparse(data):
            np.testing.assert_array_equal(data.data, before.data)
            np.testing.assert_array_equal(data.indices, before.indices)
        else:
            np.testing.assert_array_equal(data, before)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("mechanism", "solver"), POINTS)
def test_with_validation_off_a_broken_row_contributes_nothing(mechanism, solver):
    broken, gone = ERM_X.copy(), y.copy()
    broken[7, 1], gone[7] = NAN, -1
    model = make("logistic", mechanism, solver)
    with sklearn.config_context(assume_finite=True):
        coef = clone(model).fit(broken, y).coef_
    np.testing.assert_allclose(coef, clone(model).fit(ERM_X, gone).coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.sample(7)
@every_pair
@pytest.mark.parametrize("C", [1e-15, 1e-6, 1e3])
@pytest.mark.parametrize("localize", [False, True])
def test_penalties_of_any_strength_work_or_are_named(mechanism, solver, C, localize):
    own = {"localize": localize} if solver in ("exact", "net") else {}
    model = make("hinge", mechanism, solver, C=C, **own)
    if solver == "frank-wolfe":
        with pytest.raises(ValueError, match=r"C must be inf with solvers.FrankWolfe\(\)"):
            model.fit(ERM_X, y)
    elif mechanism == "objective" and C > 1:
        with pytest.raises(ValueError, match="C must be at most"):
            model.fit(ERM_X, y)
    else:
        assert_sound(model, ERM_X, y)


@pytest.mark.parametrize("data_norm", [1.0, 1e-100])
def test_a_penalty_that_overflows_works_or_names_its_parameter(data_norm):
    for estimator in (DPHingeSVM, DPLogisticRegression):
        for C in (1e-160, 1e-300):
            model = estimator(C=C, classes=(0, 1), data_norm=data_norm, random_state=0)
            try:
                assert_sound(model, ERM_X * data_norm, y)
            except ValueError as error:
                message = str(error)
            else:
                continue
            assert "C must" in message


@pytest.mark.parametrize(("solver", "bound"), [("exact", 1e-50), ("net", 1e-50), ("net", 1e50)])
def test_extreme_balls(solver, bound):
    for name in ("logistic", "hinge"):
        model = make(name, "exponential", solver, coef_bound=bound)
        assert_sound(model, ERM_X, y)
        assert np.linalg.norm(np.append(model.coef_, model.intercept_ / 0.1)) <= bound * 1.0001


def test_no_error_of_a_minimiser_repeats_a_data_value():
    secret = "secret-4711"
    rows = np.array([[0.5, secret], [0.5, 1.0]], dtype=object)
    for mechanism, solver in PAIRS:
        with pytest.raises(ValueError, match="numeric") as raised:
            make("hinge", mechanism, solver).fit(rows, [0, 1])
        assert secret not in str(raised.value)


# Bad input to private preprocessing and random batches: a clear error, or a sound fit.


preprocessing_rng = np.random.default_rng(0)
PREPROCESSING_X = preprocessing_rng.normal(size=(60, 3))
Y = np.arange(60) % 2
PUBLIC = {"classes": [0, 1], "random_state": 0, "max_iter": 5}
LOGISTIC = DPLogisticRegression(**{"data_norm": 1.0, **PUBLIC})
# budgets large enough for the radii and the fall-backs to be tried on a few rows
MODELS = {
    "centerer": DPFeatureCenterer(random_state=0),
    "coinpress": DPFeatureCenterer(epsilon=60.0, mechanism="coinpress", random_state=0),
    "shifted": DPFeatureCenterer(
        epsilon=100.0, mechanism="shifted-clipped", data_norm=1e100, random_state=0
    ),
    "scale only": DPFeatureCenterer(epsilon=3.0, with_mean=False, random_state=0),
    "scaler": DPStandardScaler(epsilon=20.0, random_state=0),
    "bounded": DPStandardScaler(bounds=(-1, 1), random_state=0),
    "tiny bounds": DPStandardScaler(bounds=(0, 1e-320), with_mean=False, random_state=0),
    "quantile": DPNormQuantile(epsilon=100.0, tail=1, resolution=1e-100, random_state=0),
    "mean": DPMean(epsilon=60.0, mechanism="coinpress", random_state=0, data_norm=1.0),
    "center": linear_model(DPLogisticRegression, preprocess="center", **PUBLIC),
    "center-scale": linear_model(DPHingeSVM, epsilon=9.0, preprocess="center-scale", **PUBLIC),
    "center-clip": linear_model(
        DPLogisticRegression, epsilon=100.0, preprocess="center-clip", data_norm=1e-100, **PUBLIC
    ),
    "batches": linear_model(
        DPLogisticRegression, preprocess="center-scale", solver="sgd", **PUBLIC
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)
SHARED = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-1e-9, 1, NAN, "0", None],
    "adjacency": ["remove-one", None],
    "random_state": [-1, "a"],
}
NORM = {"data_norm": [0, -1, NAN, INF, 1e101, "1"]}
PREPROCESSING_BAD = {
    "centerer": SHARED
    | NORM
    | {"threshold": ["public", 0, -1, INF, NAN, True], "threshold_share": [0, 1, NAN, "1", None]},
    "scaler": SHARED
    | {"bounds": [(1, 0), (0, 0), (0, NAN), (-INF, 1), (0,), "ab", 3, (-1e308, 1e308), ([0], [1])]},
    "quantile": {"epsilon": SHARED["epsilon"], "adjacency": SHARED["adjacency"]}
    | NORM
    | {
        "tail": [0, -1, 1.5, True, "1"],
        "resolution": [0, 1, 1e-101, NAN],
        "failure": [0, 1, NAN],
        "center": [[1, 2], [1, 1, NAN], [9, 9, 9], "a", 5, [[0, 0, 0]]],
    },
}


def fit(model, rows):
    given = (rows, np.arange(rows.shape[0]) % 2) if hasattr(model, "classes") else (rows,)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        return clone(model).fit(*given)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        (name, key, v)
        for name, bad in PREPROCESSING_BAD.items()
        for key, values in bad.items()
        for v in values
    ],
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_of_a_transformer_is_named_and_nothing_is_fitted(
    name, parameter, value, validated
):
    model = clone(MODELS[name]).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        fit(model, PREPROCESSING_X)
    assert not hasattr(model, "ledger_")


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_size": 61}, "batch_size must be .* at most the number of rows, 60; got 61"),
        ({"batch_size": 0}, "batch_size.* Got 0"),
        ({"batch_size": -1}, "batch_size.* Got -1"),
        ({"batch_size": NAN}, "batch_size.* Got nan"),
        ({"batch_size": INF}, "batch_size.* Got inf"),
        ({"batch_size": 2.5, "sampling": "without-replacement"}, "batch_size must be a whole"),
        ({"sampling": "shuffle", "solver": "sgd"}, "sampling.* Got 'shuffle'"),
        ({"solver": "sgd", "mechanism": "output"}, "does not belong to mechanism='output'"),
        ({"solver": "sgd", "delta": 0.0}, "delta must be greater than 0"),
        ({"preprocess": "shift"}, "kind.* Got 'shift'"),
        ({"preprocess": "center", "delta": 0.0}, "delta must be greater than 0.* got 0"),
        (
            {"preprocess": "center", "mechanism": "output", "max_iter": None},
            "does not belong to mechanism='output'",
        ),
        (
            {"preprocess": "center", "solver": "lazy-sgd"},
            "must be solvers.Accel.* got Lazy",
        ),
        ({"preprocess": "center", "fit_intercept": False}, "kind='center'.* got fit_intercept=Fal"),
        (
            {"preprocess": "center-clip", "intercept_scaling": 2.0},
            "intercept_scaling of its.* got 2.0",
        ),
        ({"preprocess": "center-scale", "coef_bound": 2.0}, "coef_bound must be None.* got 2.0"),
        ({"preprocess": "center", "preprocess_share": 0}, "share.* Got 0"),
        ({"preprocess": "center", "preprocess_share": 0.5}, "share.* Got 0.5"),
        ({"preprocess": "center", "preprocess_share": NAN}, "share.* Got nan"),
        ({"preprocess": "center", "preprocess_share": 1e-30}, "share=1e-30 of"),
        ({"delta": 1e-300, "batch_size": 5}, "delta=1e-300 is too small"),
    ],
)
def test_parameters_that_make_no_sense_together(given, message):
    model = linear_model(DPLogisticRegression, **{**PUBLIC, **given})
    with pytest.raises(ValueError, match=message):
        fit(model, PREPROCESSING_X)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("preprocess", bad) for bad in ("shift", True, 1)]
    + [("preprocess_share", bad) for bad in (0, 0.5, -1, NAN, "0.1", None, True)],
)
def test_skipped_validation_does_not_change_what_is_meant(parameter, value):
    given = {"preprocess": "center-scale", parameter: value}
    model = linear_model(DPLogisticRegression, **{**PUBLIC, **given})
    with (
        sklearn.config_context(skip_parameter_validation=True),
        pytest.raises(ValueError, match=r"(kind|share).* must be"),
    ):
        fit(model, PREPROCESSING_X)


BROKEN = np.where(
    PREPROCESSING_X > 1.5, NAN, np.where(PREPROCESSING_X < -1.5, INF, PREPROCESSING_X)
)
DATA = {
    "one row": PREPROCESSING_X[:1],
    "two rows": PREPROCESSING_X[:2],
    "one feature": PREPROCESSING_X[:, :1],
    "constant": np.full((60, 3), 3.3),
    "zeros": np.zeros((60, 3)),
    "large": PREPROCESSING_X * 1e300,
    "largest": np.full((60, 3), 1.7e308),
    "both ends": np.where(PREPROCESSING_X > 0, 1.7e308, -1.7e308),
    "small": PREPROCESSING_X * 1e-300,
    "denormal": np.full((60, 3), 5e-324),
    "single": PREPROCESSING_X.astype(np.float32),
    "single, large": (PREPROCESSING_X * 1e37).astype(np.float32),
    "scales": PREPROCESSING_X * [1e300, 1, 1e-300],
    "integers": (PREPROCESSING_X * 10).astype(int),
    "columns": np.asfortranarray(PREPROCESSING_X),
    "backwards": PREPROCESSING_X[::-1, ::-1],
    "wide": preprocessing_rng.normal(size=(3, 500)),
    "broken": BROKEN,
    "all broken": np.full((60, 3), NAN),
}


@pytest.mark.sample(1)
@every_model
@pytest.mark.parametrize("rows", DATA.values(), ids=DATA)
def test_degenerate_rows_for_transformers(name, rows):
    before = rows.copy()
    rows.flags.writeable = False
    broken = not np.isfinite(rows).all()
    # whoever switches the check off gets rows that count as null
    with sklearn.config_context(assume_finite=broken):
        fitted = fit(MODELS[name], rows)
    spent, delta = fitted.privacy_spent_
    assert spent <= fitted.epsilon
    assert delta <= getattr(fitted, "delta", 0.0)
    for key in ("center_", "threshold_", "mean_", "scale_", "location_", "coef_", "intercept_"):
        assert np.isfinite(getattr(fitted, key, 0.0)).all()
    if hasattr(fitted, "transform") and not broken:
        with np.errstate(all="raise"):
            assert np.isfinite(fitted.transform(rows)).all()
    np.testing.assert_array_equal(rows, before)


@pytest.mark.sample(1)
@every_model
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-6, 1e-9), (1.0, 1e-300), (1.0, 0.4), (1e3, 1e-9)]
)
def test_legal_budgets_are_served_within_the_budget(name, epsilon, delta):
    model = clone(MODELS[name]).set_params(epsilon=epsilon)
    if "delta" in model.get_params():
        # the losses of batches are composed on a grid, which is too coarse for so little
        model.set_params(delta=max(delta, 1e-9) if name == "batches" else delta)
    fitted = fit(model, PREPROCESSING_X)
    assert fitted.privacy_spent_[0] <= epsilon
    assert fitted.privacy_spent_[1] <= getattr(fitted, "delta", 0.0)


@pytest.mark.parametrize("given", [{"threshold_share": 5e-324}, {"epsilon": 5e-324}])
def test_a_share_that_is_rounded_to_nothing_buys_no_radius(given):
    fitted = fit(clone(MODELS["centerer"]).set_params(**{"epsilon": 0.4, **given}), PREPROCESSING_X)
    assert [r.noise.law for r in fitted.ledger_.releases] == ["gaussian"]
    assert fitted.privacy_spent_[0] <= fitted.epsilon


def test_a_share_of_nearly_all_leaves_a_center_that_can_be_paid():
    model = DPFeatureCenterer(0.02149593900514721, 4.798292439731643e-11, random_state=0)
    rows = np.zeros((2000, 40))
    assert fit(model.set_params(threshold_share=0.999999999), rows).privacy_spent_[0] <= 0.0215


# -- messages --------------------------------------------------------------------------


@pytest.mark.parametrize("model", [DPFeatureCenterer(), DPMean(data_norm=1.0), DPStandardScaler()])
@pytest.mark.parametrize("rows", [[0.123, 7.5], 0.123, [["0.123x"]], [[0.123 + 1j]]])
def test_no_message_quotes_a_value(model, rows):
    with pytest.raises((ValueError, TypeError)) as caught:
        clone(model).fit(np.array(rows))
    error = caught.value
    while error is not None:
        assert "0.123" not in str(error)
        error = error.__cause__ or error.__context__


# Bad input to medians and quantiles: a clear error or a correct fit within the budget.


location_rng = np.random.default_rng(0)
LOCATION_X = location_rng.uniform(-1, 1, size=(40, 2))
LOCATION_MODELS = {
    "median": DPMedian(bounds=(-1, 1), random_state=0),
    "quantile": DPQuantile(bounds=(-1, 1), random_state=0),
}
every_location_model = pytest.mark.parametrize("name", LOCATION_MODELS)
LOCATION_BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "adjacency": ["remove-one", None],
    "bounds": [(1, 0), (0, 0), (0, NAN), (-INF, 1), (0,), "ab", 3, (-1e308, 1e308)],
    "random_state": [-1, "a"],
}


def location_fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        return clone(model).fit(data)


@pytest.mark.sample(6, 39)
@every_location_model
@pytest.mark.parametrize(
    ("parameter", "value"),
    [(name, value) for name, values in LOCATION_BAD.items() for value in values],
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_of_a_location_is_named_and_nothing_is_fitted(
    name, parameter, value, validated
):
    model = clone(LOCATION_MODELS[name]).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(LOCATION_X)
    assert not hasattr(model, "ledger_")


@pytest.mark.sample(1)
@every_location_model
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 50.0, 1e6])
@pytest.mark.parametrize(
    "data",
    [
        LOCATION_X,
        LOCATION_X[:1],
        LOCATION_X[:, :1],
        np.zeros((5, 2)),
        np.full((5, 2), 1e300),
        np.full((5, 2), -1e-300),
        LOCATION_X.astype(np.float32),
        np.where(LOCATION_X > 0, 1e308, 5e-324),
        LOCATION_X[::-1],
        np.asfortranarray(LOCATION_X),
    ],
    ids=range(10),
)
def test_degenerate_rows_and_budgets(name, epsilon, data):
    before = data.copy()
    fitted = location_fit(clone(LOCATION_MODELS[name]).set_params(epsilon=epsilon), data)
    epsilon_spent, delta_spent = fitted.privacy_spent_
    assert epsilon_spent <= epsilon
    assert delta_spent <= getattr(fitted, "delta", 0.0)
    assert np.isfinite(fitted.location_).all()
    assert (np.abs(fitted.location_) <= 1 + 1e-9).all()
    np.testing.assert_array_equal(data, before)


@every_location_model
def test_a_read_only_memory_map(name, tmp_path):
    np.save(tmp_path / "rows.npy", LOCATION_X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    location_fit(LOCATION_MODELS[name], mapped)
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), LOCATION_X)


@pytest.mark.parametrize(
    ("model", "parameter", "values"),
    [
        (DPMedian(data_norm=1.0), "delta", [-0.1, 1, NAN, INF, True, None]),
        (DPMedian(data_norm=1.0), "data_norm", [0, -1, NAN, INF, 1e-200, True]),
        (DPMedian(data_norm=1.0), "mechanism", ["laplace", None, 1]),
        (DPMedian(data_norm=1.0), "max_iter", [0, -1, 1.5]),
        (DPQuantile(bounds=(-1.0, 1.0)), "quantile", [0, 1, -0.1, 1.5, NAN, INF, "a", None]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_one_of_them_has_alone(model, parameter, values):
    for value in values:
        broken = clone(model).set_params(**{parameter: value})
        with pytest.raises((ValueError, TypeError), match=parameter):
            broken.fit(LOCATION_X)
        assert not hasattr(broken, "ledger_")


# Rows and parameters that break arithmetic, for the transformers that randomise rows.


BOX = {"mechanism": "cube", "bounds": (-1.0, 1.0)}
CONFIGURATIONS = [
    PrivUnitPrivatizer(),
    PrivUnitPrivatizer(magnitude="flip"),
    PrivUnitPrivatizer(magnitude="product"),
    PrivUnitPrivatizer(magnitude="product", levels="relative"),
    PrivUnitPrivatizer(magnitude="unit"),
    PrivUnitPrivatizer(mechanism="privunit-gaussian"),
    PrivUnitPrivatizer(mechanism="privunit-gaussian", magnitude="flip"),
    PrivUnitPrivatizer(mechanism="projunit"),
    PrivUnitPrivatizer(mechanism="projunit", magnitude="unit"),
    PrivUnitPrivatizer(**BOX),
    ScalarPrivatizer(),
    ScalarPrivatizer(levels="relative"),
]
every = pytest.mark.parametrize("made", CONFIGURATIONS, ids=str)


@pytest.mark.sample(6)
@every
@pytest.mark.parametrize("value", [0.0, 1e300, -1e300, 1e-300, 5e-324, 1.7e308, 1e-160])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (4, 2), (2, 5)])
def test_rows_of_all_sizes_are_reported_and_kept(made, value, shape):
    X = np.full(shape, value)
    reports = made.fit_transform(X)
    assert reports.shape == shape
    assert np.isfinite(reports).all()
    # nothing about the size of rows is in the size of reports
    assert np.abs(reports).max() < 1e6
    kept = made.transform(X)
    assert np.isfinite(kept).all()
    assert np.linalg.norm(kept, axis=1).max() <= np.sqrt(shape[1]) * (1 + 1e-12)


@pytest.mark.sample(6, 25)
@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_costs_nothing(made, bad):
    X = np.zeros((3, 2))
    made.fit(X)
    X[1, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        made.transform(X)
    assert not made.ledger_.releases


@pytest.mark.sample(5)
@every
def test_layouts_and_types_of_rows_do_not_matter(made):
    X = np.random.default_rng(0).uniform(-1, 1, size=(6, 3)).astype(np.float32)
    X.setflags(write=False)
    for rows in (X, np.asfortranarray(X), X[::-1], X.astype(int), X.tolist()):
        reports = made.fit_transform(rows)
        assert reports.dtype == np.float64
        assert reports.shape == (6, 3)


@every
def test_zero_rows_get_a_fresh_direction_every_time(made):
    # so many features that no two reports are the same by chance
    reports = made.fit(np.zeros((1, 64))).transform(np.zeros((30, 64)))
    assert len(np.unique(reports, axis=0)) == 30


@pytest.mark.sample(4)
@every
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 50.0, 1e3, 1e5])
@pytest.mark.parametrize("n_features", [1, 2, 3, 17])
def test_budgets_of_all_sizes(made, epsilon, n_features):
    made = type(made)(**{**made.get_params(), "epsilon": epsilon})
    X = np.full((3, n_features), 0.1)
    reports = made.fit_transform(X)
    assert np.isfinite(reports).all()
    assert 0 < made.privacy_spent_[0] <= epsilon
    assert np.all(made.noise_variance_ >= 0)


@pytest.mark.sample(6, 57)
@every
@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf, 1e-7, 1e7, "1", None])
def test_what_is_no_budget_is_refused(made, epsilon):
    made = type(made)(**{**made.get_params(), "epsilon": epsilon})
    with pytest.raises(ValueError, match="epsilon"):
        made.fit(np.zeros((3, 2)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("made", CONFIGURATIONS[:9], ids=str)
def test_sparse_rows_report_like_dense_ones(made):
    X = sparse.random_array((20, 6), density=0.3, rng=np.random.default_rng(0), format="csr")
    for rows in (X, X.tocsc(), X.tocoo(), sparse.csr_matrix(X)):
        reports = made.fit_transform(rows)
        assert isinstance(reports, np.ndarray)
        assert reports.shape == (20, 6)
        kept = made.transform(rows)
        assert sparse.issparse(kept)
        np.testing.assert_allclose(kept.toarray(), made.transform(X.toarray()))


@pytest.mark.parametrize("made", CONFIGURATIONS[9:], ids=str)
def test_sparse_rows_are_refused_where_zero_is_no_center(made):
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        made.fit(sparse.csr_array(np.eye(3)))


def test_wide_rows():
    X = np.zeros((3, 20_000))
    for given in ({}, {"mechanism": "projunit"}, BOX):
        made = PrivUnitPrivatizer(**given)
        assert np.isfinite(made.fit_transform(X)).all()
    with pytest.raises(ValueError, match="epsilon must be at least"):
        ScalarPrivatizer(0.01).fit(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data_norm": 0.0}, "data_norm"),
        ({"data_norm": 1e101}, "data_norm"),
        ({"data_norm": np.nan}, "data_norm"),
        ({"bounds": (0, 1)}, 'bounds must be given for mechanism="cube" and be None for others'),
        ({"mechanism": "cube"}, "bounds must be given"),
        ({"mechanism": "cube", "bounds": (1, 0)}, "bounds"),
        ({"mechanism": "cube", "bounds": (0, [1, 2, 3])}, "bounds"),
        ({"mechanism": "cube", "bounds": (0, np.inf)}, "bounds"),
        ({"mechanism": "cube", "bounds": (-8e307, 8e307), "epsilon": 0.01}, "bounds are so far"),
        ({**BOX, "parameters": "paper"}, "parameters='paper' is for mechanism=\"privunit\""),
        ({"mechanism": "projunit", "magnitude": "product"}, 'magnitude="product"'),
        ({"mechanism": "projunit", "n_components": 3}, "n_components must be at most"),
        ({"n_components": 0}, "n_components"),
        ({"magnitude": "length"}, "magnitude"),
        ({"expected_norm": 0.0}, "expected_norm"),
        ({"expected_norm": 1.5}, "expected_norm"),
        ({"magnitude_epsilon": 1.0}, 'magnitude_epsilon is for magnitude="product"'),
        ({"magnitude": "unit", "n_levels": 3}, 'n_levels is for magnitude="product"'),
        ({"magnitude": "product", "magnitude_epsilon": 9.0}, "magnitude_epsilon"),
        ({"magnitude": "product", "n_levels": 1}, "n_levels"),
        ({"magnitude": "product", "n_levels": 3, "levels": "relative"}, "n_levels must be at"),
        ({"levels": "relative"}, "levels='relative' needs magnitude=\"product\""),
        ({"parameters": "paper-simulation"}, "paper-simulation"),
        ({"parameters": "paper-simulation", "magnitude": "unit"}, "paper-simulation"),
        ({"parameters": "paper", "magnitude": "unit"}, "gives? no cosine|spend more"),
        ({"magnitude": "product", "epsilon": 1e-5}, "epsilon must be at least 0.0001"),
        ({"new_rows": "never"}, "new_rows"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(given, message):
    made = PrivUnitPrivatizer(**given)
    with pytest.raises(ValueError, match=message):
        made.fit(np.zeros((2, 2)))


def test_large_boxes_and_balls():
    X = np.array([[1e100, -3e99]])
    reports = PrivUnitPrivatizer(data_norm=1e100).fit_transform(np.tile(X, (50, 1)))
    assert 1e99 < np.abs(reports).max() < 1e101
    made = PrivUnitPrivatizer(mechanism="cube", bounds=(-1e300, 1e300)).fit(X)
    assert np.isfinite(made.transform(X)).all()
    assert np.isinf(made.noise_variance_).all()
    tiny = PrivUnitPrivatizer(data_norm=1e-100).fit_transform(X / 1e200)
    assert 0 < np.abs(tiny).max() < 1e-98
