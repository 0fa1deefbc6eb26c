# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to private regression: a clear error or a sound fit."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse

from skdp import DPLpRegressor, papers, solvers
from skdp.exceptions import PrivacyWarning
from tests._solvers import linear_model

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
y = X @ [1.0, -1.0] + 0.1 * rng.normal(size=80)

BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-0.1, 1, 1.5, NAN, INF, "x", None, True],
    "p": [
        3,
        0.5,
        1.5,
        5,
        NAN,
        "2",
        None,
        True,
        (),
        (1,),
        (2, 0.5),
        (2, None),
        ("huber",),
        "quantile",
    ]
    + [("quantile", bad) for bad in (0, 1, NAN, None, "0.5", True)]
    + [("huber", bad) for bad in (0, -1, INF, NAN, None)]
    + [("quantile", 0.5, 0.5), ("median", 0.5), (["huber"], 1.0)],
    "mechanism": ["objective", "exponential", None, 1],
    "solver": ["adam", None, 0],
    "adjacency": ["add-remove", None],
    "data_norm": [0, -1, NAN, INF, 1e-200, 1e200, "a", True],
    "target_scale": [0, -1, NAN, INF, 1e-200, 1e200, "a"],
    "l2": [-1, NAN, INF, "1", None],
    "intercept_scaling": [0, -1, NAN, INF],
    "coef_bound": [0, -1, NAN, INF, 1e-60, "1"],
    "clipping_norm": [0, -1, NAN, INF, "public", (), ("moments",), ("moments", 2.0)]
    + [("moments", bad, 3.0) for bad in (1, 0.5, -2, NAN, None, "2")]
    + [("moments", 2.0, bad) for bad in (0, -1, NAN, INF, None, True)]
    + [("moment", 2.0, 3.0), ("moments", 2.0, 3.0, 4.0)],
    "step_size": [0, -1, NAN, INF],
    "max_iter": [0, -1, 1.5],
    "batch_size": [0, -1, NAN],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(name, value):
    model = linear_model(DPLpRegressor, **{name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(X, y)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize("name", ["epsilon", "delta", "adjacency", "p", "mechanism", "solver"])
def test_the_gate_does_not_rely_on_scikit_learn_s_validation(name):
    for value in BAD[name]:
        model = linear_model(DPLpRegressor, **{name: value})
        with (
            sklearn.config_context(skip_parameter_validation=True),
            pytest.raises((ValueError, TypeError), match=name),
        ):
            model.fit(X, y)
        assert not hasattr(model, "ledger_")


NOT_FOR_REGRESSION = [
    "objective", "one-pass", "lazy-sgd", "bias-reduced", "exact", "net", "frank-wolfe",
]  # fmt: skip
REFUSED = [
    ({"solver": solvers.SGD(clipping_norm=1.0)}, r"clipping_norm of solvers.SGD\(\) must be None"),
    ({"solver": solvers.Output(sparsity=3)}, r"sparsity=3 of solvers.Output\(\) is not for regr"),
    (
        {"solver": solvers.Output(linf_projection=True), "coef_bound": 1.0},
        r"linf_projection=True of solvers.Output\(\) is not for regression",
    ),
    ({"solver": solvers.Output(minimizer="cvxpy")}, "is not for regression"),
    *[({"solver": word}, "is not for regression") for word in NOT_FOR_REGRESSION],
    ({"solver": papers.Localized(growth="tripling")}, "growth"),
    ({"solver": papers.Localized(growth_order=1.0)}, "growth_order"),
    ({"solver": papers.AcceleratedOnePass(failure_probability=1.0)}, "failure_probability"),
    ({"delta": 0.0, "mechanism": "gradient"}, "delta must be greater than 0"),
    ({"delta": 0.0, "solver": "localized"}, "delta must be greater than 0"),
    ({"mechanism": "gradient", "solver": "newton"}, "does not belong to"),
    ({"mechanism": "output", "max_iter": 3}, "max_iter must be None with solvers.Output\\(\\)"),
    ({"batch_size": 81}, "batch_size"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_does_not_go_together_is_refused_before_a_release(options, message):
    model = linear_model(DPLpRegressor, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (np.where(X > 2, NAN, X), y, "NaN"),
        (X, np.where(y > 1, NAN, y), "NaN"),
        (X, np.where(y > 1, INF, y), "infinity"),
        (X, np.array(["a"] * 80), "y must be real numbers"),
        (X, np.array(["1.5"] * 80), "y must be real numbers"),
        (X, np.array(["a"] * 80, dtype=object), "numeric"),
        (X, y + 1j, "Complex|real"),
        (X, np.column_stack([y, y]), "1d|2d|y should"),
        (X, y[:-1], "inconsistent"),
        (X[:, 0], y, "2D|Reshape"),
        (X, None, "y"),
        (X + 1j, y, "Complex"),
    ],
)
def test_bad_data_are_an_error(rows, targets, message):
    model = DPLpRegressor()
    with pytest.raises(ValueError, match=message):
        model.fit(rows, targets)
    assert not hasattr(model, "ledger_")


EXTREME = {
    "targets of 1e300": (X, 1e300 * np.sign(y)),
    "one target of 1e308": (X, np.where(np.arange(80) == 3, 1e308, y)),
    "targets of 1e-300": (X, 1e-300 * y),
    "integers": (X, rng.integers(-9, 9, size=80)),
    "constant y": (X, np.full(80, 7.0)),
    "zero y": (X, np.zeros(80)),
    "constant X": (np.ones((80, 2)), y),
    "zero X": (np.zeros((80, 2)), y),
    "X of 1e300": (1e300 * X, y),
    "X of 1e-300": (1e-300 * X, y),
    "infinite variance": (rng.standard_cauchy(size=(80, 2)), rng.standard_cauchy(size=80)),
    "one row": (X[:1], y[:1]),
    "two rows": (X[:2], y[:2]),
    "many features": (rng.normal(size=(5, 300)), y[:5]),
    "sparse": (sparse.csr_array(np.where(X > 0, X, 0.0)), y),
    "float32": (X.astype(np.float32), y.astype(np.float32)),
}
# drawn scales need rows, or a large budget
BUDGETS = [{}, {"epsilon": 100.0}]
WAYS = [
    {"p": 2}, {"p": 1}, {"p": 4}, {"p": "huber"}, {"solver": "newton"},
    {"solver": "newton", "p": 1},
    {"solver": "lbfgs", "p": 4}, {"delta": 0.0, "l2": 1.0}, {"solver": "localized"},
    {"solver": "phased"}, {"solver": "accelerated-one-pass"}, {"solver": "sgd"},
    {"clipping_norm": "private", "coef_bound": 1.0}, {"clipping_norm": ("moments", 3.0, 1e9)},
    {"data_norm": 1e-50, "target_scale": 1e50}, {"l2": 1e300}, {"l2": 1e-300, "solver": "newton"},
    {"fit_intercept": False},
]  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_extreme_data_give_a_finite_fit_within_the_budget(options, budget):
    for name, (rows, targets) in EXTREME.items():
        model = linear_model(DPLpRegressor, **{**budget, **options})
        with np.errstate(all="raise", under="ignore", over="ignore", invalid="ignore"):
            model.fit(rows, targets)
        assert np.isfinite(model.coef_).all(), name
        assert np.isfinite(model.intercept_), name
        assert model.privacy_spent_[0] <= model.epsilon, name
        assert model.predict(rows).shape == (rows.shape[0],)


@pytest.mark.parametrize("options", [{}, {"solver": "newton"}], ids=str)
def test_enough_rows_of_any_scale_give_scales(options):
    local = np.random.default_rng(1)
    rows = local.normal(size=(4000, 3))
    for data in [
        (rows * 1e300, rows[:, 0]), (rows, np.full(4000, -5.0)), (rows * 0.0, rows[:, 0]),
        (rows * 1e-300, rows[:, 1] * 1e-300), (local.standard_cauchy(size=(4000, 3)), rows[:, 0]),
        (rows, 1e300 * np.sign(rows[:, 0])), (rows, (rows[:, 0] > 2.0) * 1.0),
    ]:  # fmt: skip
        model = linear_model(DPLpRegressor, **options).fit(*data)
        assert len([r for r in model.ledger_.releases if not r.noise.mu]) == 4
        assert np.isfinite([*model.coef_, model.intercept_, model.data_norm_]).all()


def test_nothing_is_changed_and_no_layout_matters():
    frame = pd.DataFrame(X, columns=["a", "b"])
    kept = X.copy()
    kept.flags.writeable = False
    fits = []
    for rows, targets in [(kept, y), (frame, pd.Series(y)), (np.asfortranarray(X), list(y))]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            fits.append(DPLpRegressor(random_state=0).fit(rows, targets).coef_)
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_allclose(fits[0], fits[2], rtol=1e-6)
    np.testing.assert_array_equal(kept, X)
