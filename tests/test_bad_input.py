# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input: a clear error or a correct fit, never a silent non-private result."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone

from skdp import BoundedScaler, DPLogisticRegression, DPMean, NormClipper
from skdp.privacy import Curator, gdp_mu
from tests._solvers import linear_model

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
        "adjacency": ["add-remove", None, 0],
        "data_norm": [0, -1, NAN, INF, 1e-200, 1e200, "a", None, True],
        "classes": [[0], [], [0, 0], [0, NAN], [[0, 1]], ["a", "b"], 3, [0, "a"]],
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
        "delta": [0, -0.1, 1, NAN],
        "mechanism": ["uniform", None],
        "adjacency": ["add-remove"],
        "data_norm": [0, NAN, INF, True],
        "bounds": [(1, 0), (0, 0), (0, NAN), (-INF, 1), (0,), (0, 1, 2), ([0, 0], 1), "ab", 3]
        + [(INF, INF), (-1e308, 1e308)],
        "random_state": [-1, "a"],
    }.items()
    for value in values
]


@pytest.mark.parametrize(("estimator", "name", "value"), BAD_PARAMETERS)
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(estimator, name, value):
    model = linear_model(estimator, **{name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(X, y)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [p for p in BAD_PARAMETERS if p[1] in ("epsilon", "delta", "data_norm", "adjacency", "bounds")],
)
def test_the_gate_does_not_rely_on_scikit_learn_s_validation(estimator, name, value):
    model = linear_model(estimator, **{name: value})
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises((ValueError, TypeError)),
    ):
        model.fit(X, y)
    assert not hasattr(model, "ledger_")


def test_a_budget_that_cannot_be_spent_is_refused_before_the_data_are_read():
    class Unreadable:
        def __array__(self, *args, **kwargs):
            raise AssertionError("the data were read")

    gradient = DPLogisticRegression(delta=1.0, mechanism="gradient")
    for model in (gradient, DPMean(epsilon=NAN), DPMean(delta=0.0)):
        with (
            sklearn.config_context(skip_parameter_validation=True),
            pytest.raises(ValueError, match="must be"),
        ):
            model.fit(Unreadable(), y)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize(
    "model", [DPLogisticRegression(), DPMean(), NormClipper(), BoundedScaler()]
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
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    with sklearn.config_context(assume_finite=True):
        coef = model.fit(broken, y).coef_
    np.testing.assert_array_equal(coef, clone(model).fit(X, gone).coef_)
    with sklearn.config_context(assume_finite=True):
        assert np.isfinite(DPMean(bounds=(-1, 1)).fit(broken).location_).all()
        assert np.isfinite(DPMean().fit(sparse.csr_array(broken)).location_).all()


def test_one_class():
    with pytest.raises(ValueError, match=r"1 class.*classes="):
        DPLogisticRegression().fit(X, np.zeros(60))
    assert DPLogisticRegression(classes=[0, 1]).fit(X, np.zeros(60)).coef_.shape == (1, 3)


def test_one_row():
    assert DPLogisticRegression(classes=[0, 1]).fit(X[:1], y[:1]).coef_.shape == (1, 3)
    assert DPMean().fit(X[:1]).location_.shape == (3,)
    with pytest.raises(ValueError, match="class"):
        DPLogisticRegression().fit(X[:1], y[:1])


@pytest.mark.parametrize(
    "model", [DPLogisticRegression(), DPMean(), NormClipper(), BoundedScaler()]
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
    ],
)
def test_data_of_the_wrong_shape_or_kind(model, data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(model).fit(data, y)


def test_features_that_fit_did_not_see():
    model = DPLogisticRegression().fit(X, y)
    for method in (model.predict, model.decision_function, model.predict_proba):
        with pytest.raises(ValueError, match="X has 2 features"):
            method(X[:, :2])
    with pytest.raises(ValueError, match="X has 2 features"):
        NormClipper().fit(X).transform(X[:, :2])


def test_labels_that_are_no_classes():
    for labels in (rng.normal(size=60), [NAN] * 60, np.zeros((60, 2)), y[:-1]):
        with pytest.raises(ValueError, match=r"label|NaN|shape|inconsistent"):
            DPLogisticRegression().fit(X, labels)
    for labels in (rng.normal(size=60), [NAN] * 60):
        with pytest.raises(ValueError, match=r"label|NaN"):
            DPLogisticRegression(classes=[0, 1]).fit(X, labels)


def test_no_error_repeats_a_data_value():
    secret = "secret-4711"
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": ["x", secret]})
    object_rows = np.array([[0.5, secret], [0.5, 1.0]], dtype=object)
    for rows in (frame, object_rows):
        for model in (DPLogisticRegression(), DPMean(), NormClipper()):
            with pytest.raises(ValueError, match="numeric") as raised:
                model.fit(rows, [0, 1])
            assert secret not in str(raised.value)
            assert raised.value.__cause__ is None
            assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.covering
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
    DPLogisticRegression().fit(mapped, labels)
    DPMean().fit(mapped)
    NormClipper().fit_transform(mapped)
    np.testing.assert_array_equal(np.load(path), rows)


def test_missing_values_in_a_frame():
    frame = pd.DataFrame({"a": [0.1, None, 0.3], "b": pd.array([1, None, 3], dtype="Int64")})
    for model in (DPLogisticRegression(), DPMean()):
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
    model = DPLogisticRegression(random_state=0)
    expected = model.fit(plain, labels).coef_
    for rows in (zeros, twice, long):
        before = rows.copy()
        np.testing.assert_array_equal(model.fit(rows, labels).coef_, expected)
        np.testing.assert_array_equal(rows.data, before.data)
        np.testing.assert_array_equal(rows.indices, before.indices)


def test_a_sparse_matrix_without_entries_fits():
    assert np.isfinite(DPLogisticRegression().fit(sparse.csr_array((60, 3)), y).coef_).all()


def test_parameters_and_data_are_left_as_they_were():
    rows, labels = X.copy(), y.copy()
    model = DPLogisticRegression(classes=[1, 0], random_state=np.random.RandomState(0))
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
    model = DPLogisticRegression()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_") and name != "n_features_in_"]


def test_tiny_and_huge_budgets():
    assert gdp_mu(1e-8, 1e-6) > 0
    for epsilon in (1e-9, 1e-3, 50.0, 1e5):
        model = DPLogisticRegression(epsilon=epsilon).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert model.privacy_spent_[0] <= epsilon
    with pytest.raises(ValueError, match="too small"):
        DPLogisticRegression(epsilon=1e-12, delta=1e-12).fit(X, y)
