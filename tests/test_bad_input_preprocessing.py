# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to private preprocessing and random batches: a clear error, or a sound fit."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from skdp import (
    DPFeatureCenterer,
    DPHingeSVM,
    DPLogisticRegression,
    DPMean,
    DPNormQuantile,
    DPStandardScaler,
)
from skdp.exceptions import SeededNoiseWarning
from tests._solvers import linear_model

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = np.arange(60) % 2
PUBLIC = {"classes": [0, 1], "random_state": 0, "max_iter": 5}
LOGISTIC = DPLogisticRegression(**PUBLIC)
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
    "mean": DPMean(epsilon=60.0, mechanism="coinpress", random_state=0),
    "center": LOGISTIC.set_params(preprocess="center"),
    "center-scale": DPHingeSVM(epsilon=9.0, preprocess="center-scale", **PUBLIC),
    "center-clip": DPLogisticRegression(
        epsilon=100.0, preprocess="center-clip", data_norm=1e-100, **PUBLIC
    ),
    "batches": DPLogisticRegression(preprocess="center-scale", solver="sgd", **PUBLIC),
}
every_model = pytest.mark.parametrize("name", MODELS)
SHARED = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-1e-9, 1, NAN, "0", None],
    "adjacency": ["add-remove", None],
    "random_state": [-1, "a"],
}
NORM = {"data_norm": [0, -1, NAN, INF, 1e101, "1"]}
BAD = {
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
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return clone(model).fit(*given)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [(name, key, v) for name, bad in BAD.items() for key, values in bad.items() for v in values],
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(name, parameter, value, validated):
    model = clone(MODELS[name]).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        fit(model, X)
    assert not hasattr(model, "ledger_")


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
        ({"preprocess": "shift"}, "preprocess.* Got 'shift'"),
        ({"preprocess": "center", "delta": 0.0}, "delta.* preprocess='center'.* got 0"),
        (
            {"preprocess": "center", "mechanism": "output", "max_iter": None},
            "preprocess must be None with",
        ),
        ({"preprocess": "center", "solver": "newton"}, "max_iter must be None with"),
        ({"preprocess": "center", "fit_intercept": False}, "preprocess.* got fit_intercept=False"),
        ({"preprocess": "center-clip", "intercept_scaling": 2.0}, "intercept_scaling.* got 2.0"),
        ({"preprocess": "center-scale", "coef_bound": 2.0}, "coef_bound must be None.* got 2.0"),
        ({"preprocess_share": 0}, "preprocess_share.* Got 0"),
        ({"preprocess_share": 0.5}, "preprocess_share.* Got 0.5"),
        ({"preprocess_share": NAN}, "preprocess_share.* Got nan"),
        ({"preprocess": "center", "preprocess_share": 1e-30}, "preprocess_share=1e-30 of"),
        ({"delta": 1e-300, "batch_size": 5}, "delta=1e-300 is too small"),
    ],
)
def test_parameters_that_make_no_sense_together(given, message):
    model = linear_model(DPLogisticRegression, **{**PUBLIC, **given})
    with pytest.raises(ValueError, match=message):
        fit(model, X)
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
        pytest.raises(ValueError, match=f"{parameter}.* must be"),
    ):
        fit(model, X)


BROKEN = np.where(X > 1.5, NAN, np.where(X < -1.5, INF, X))
DATA = {
    "one row": X[:1], "two rows": X[:2], "one feature": X[:, :1], "constant": np.full((60, 3), 3.3),
    "zeros": np.zeros((60, 3)), "large": X * 1e300, "largest": np.full((60, 3), 1.7e308),
    "both ends": np.where(X > 0, 1.7e308, -1.7e308), "small": X * 1e-300,
    "denormal": np.full((60, 3), 5e-324), "single": X.astype(np.float32),
    "single, large": (X * 1e37).astype(np.float32), "scales": X * [1e300, 1, 1e-300],
    "integers": (X * 10).astype(int), "columns": np.asfortranarray(X), "backwards": X[::-1, ::-1],
    "wide": rng.normal(size=(3, 500)), "broken": BROKEN, "all broken": np.full((60, 3), NAN),
}  # fmt: skip


@pytest.mark.covering
@every_model
@pytest.mark.parametrize("rows", DATA.values(), ids=DATA)
def test_degenerate_rows(name, rows):
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


@pytest.mark.covering
@every_model
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-6, 1e-9), (1.0, 1e-300), (1.0, 0.4), (1e3, 1e-9)]
)
def test_legal_budgets_are_served_within_the_budget(name, epsilon, delta):
    model = clone(MODELS[name]).set_params(epsilon=epsilon)
    if "delta" in model.get_params():
        # the losses of batches are composed on a grid, which is too coarse for so little
        model.set_params(delta=max(delta, 1e-9) if name == "batches" else delta)
    fitted = fit(model, X)
    assert fitted.privacy_spent_[0] <= epsilon
    assert fitted.privacy_spent_[1] <= getattr(fitted, "delta", 0.0)


@pytest.mark.parametrize("given", [{"threshold_share": 5e-324}, {"epsilon": 5e-324}])
def test_a_share_that_is_rounded_to_nothing_buys_no_radius(given):
    fitted = fit(clone(MODELS["centerer"]).set_params(**{"epsilon": 0.4, **given}), X)
    assert [r.noise.law for r in fitted.ledger_.releases] == ["gaussian"]
    assert fitted.privacy_spent_[0] <= fitted.epsilon


def test_a_share_of_nearly_all_leaves_a_centre_that_can_be_paid():
    model = DPFeatureCenterer(0.02149593900514721, 4.798292439731643e-11, random_state=0)
    rows = np.zeros((2000, 40))
    assert fit(model.set_params(threshold_share=0.999999999), rows).privacy_spent_[0] <= 0.0215


# -- messages --------------------------------------------------------------------------


@pytest.mark.parametrize("model", [DPFeatureCenterer(), DPMean(), DPStandardScaler()])
@pytest.mark.parametrize("rows", [[0.123, 7.5], 0.123, [["0.123x"]], [[0.123 + 1j]]])
def test_no_message_quotes_a_value(model, rows):
    with pytest.raises((ValueError, TypeError)) as caught:
        clone(model).fit(np.array(rows))
    error = caught.value
    while error is not None:
        assert "0.123" not in str(error)
        error = error.__cause__ or error.__context__
