# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to medians and quantiles: a clear error or a correct fit within the budget."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from skdp import DPMedian, DPQuantile
from skdp.exceptions import SeededNoiseWarning

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(40, 2))
MODELS = {
    "median": DPMedian(bounds=(-1, 1), random_state=0),
    "quantile": DPQuantile(bounds=(-1, 1), random_state=0),
}
every_model = pytest.mark.parametrize("name", MODELS)
BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "adjacency": ["add-remove", None],
    "bounds": [(1, 0), (0, 0), (0, NAN), (-INF, 1), (0,), "ab", 3, (-1e308, 1e308)],
    "random_state": [-1, "a"],
}


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return clone(model).fit(data)


@every_model
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(name, parameter, value, validated):
    model = clone(MODELS[name]).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@pytest.mark.covering
@every_model
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 50.0, 1e6])
@pytest.mark.parametrize(
    "data",
    [
        X, X[:1], X[:, :1], np.zeros((5, 2)), np.full((5, 2), 1e300), np.full((5, 2), -1e-300),
        X.astype(np.float32), np.where(X > 0, 1e308, 5e-324), X[::-1], np.asfortranarray(X),
    ],
    ids=range(10),
)  # fmt: skip
def test_degenerate_rows_and_budgets(name, epsilon, data):
    before = data.copy()
    fitted = fit(clone(MODELS[name]).set_params(epsilon=epsilon), data)
    epsilon_spent, delta_spent = fitted.privacy_spent_
    assert epsilon_spent <= epsilon
    assert delta_spent <= getattr(fitted, "delta", 0.0)
    assert np.isfinite(fitted.location_).all()
    assert (np.abs(fitted.location_) <= 1 + 1e-9).all()
    np.testing.assert_array_equal(data, before)


@every_model
def test_a_read_only_memory_map(name, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    fit(MODELS[name], mapped)
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), X)


@pytest.mark.parametrize(
    ("model", "parameter", "values"),
    [
        (DPMedian(), "delta", [-0.1, 1, NAN, INF, True, None]),
        (DPMedian(), "data_norm", [0, -1, NAN, INF, 1e-200, True]),
        (DPMedian(), "mechanism", ["laplace", None, 1]),
        (DPMedian(), "max_iter", [0, -1, 1.5]),
        (DPQuantile(), "quantile", [0, 1, -0.1, 1.5, NAN, INF, "a", None]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_one_of_them_has_alone(model, parameter, values):
    for value in values:
        broken = clone(model).set_params(**{parameter: value})
        with pytest.raises((ValueError, TypeError), match=parameter):
            broken.fit(X)
        assert not hasattr(broken, "ledger_")
