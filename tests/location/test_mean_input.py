# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to the clipped means: a clear error, or a correct fit within the budget."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from skdp import DPMean
from skdp._rows import columns as _unit_columns
from skdp.exceptions import SeededNoiseWarning

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
MECHANISMS = ("clipped", "coinpress", "shifted-clipped")
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [0, -0.1, 1, NAN, "1", None, 1e-320],
    "adjacency": ["add-remove", None],
    "data_norm": [0, -1, NAN, INF, 1e101, "1", None],
    "bounds": [(0, 1), (1, 0), ([0, 0], [1, 1]), ()],
    "random_state": [-1, "a"],
}


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SeededNoiseWarning)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return clone(model).fit(data)


@pytest.mark.covering
@every_mechanism
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(
    mechanism, parameter, value, validated
):
    model = DPMean(mechanism=mechanism, random_state=0).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


@pytest.mark.parametrize("mechanism", ["median", None, 3])
@pytest.mark.parametrize("validated", [True, False])
def test_a_mechanism_that_is_none_is_named(mechanism, validated):
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises(ValueError, match="mechanism"),
    ):
        DPMean(mechanism=mechanism).fit(X)


@pytest.mark.covering
@every_mechanism
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize(
    ("adjacency", "norm"), [("replace-one", 1e-100), ("zero-out", 1e6), ("replace-one", 1e100)]
)
@pytest.mark.parametrize(
    "data",
    [
        X[:1], X[:5, :1], np.zeros((5, 2)), np.full((50, 2), 1e300),
        np.full((50, 2), -1e-300), X.astype(np.float32), np.where(X > 0, 1e308, 5e-324),
        np.asfortranarray(X), X[:, ::-1], np.zeros((3, 4000)), np.tile([1e-100, 1e100], (60, 1)),
    ],
)  # fmt: skip
def test_extreme_rows_and_budgets(mechanism, adjacency, epsilon, norm, data):
    model = DPMean(
        epsilon, mechanism=mechanism, adjacency=adjacency, data_norm=norm, random_state=0
    )
    before = data.copy()
    fitted = fit(model, data)
    assert np.isfinite(fitted.location_).all()
    assert np.linalg.norm(fitted.location_ / norm) <= 1 + 1e-9 or fitted.mechanism_ == "gaussian"
    assert fitted.privacy_spent_[0] <= epsilon
    assert fitted.ledger_.epsilon(1e-6) <= epsilon
    np.testing.assert_array_equal(data, before)


@every_mechanism
def test_read_only_rows_and_lists(mechanism):
    frozen = X.copy()
    frozen.flags.writeable = False
    one = fit(DPMean(20.0, mechanism=mechanism, random_state=0), frozen).location_
    two = fit(DPMean(20.0, mechanism=mechanism, random_state=0), X.tolist()).location_
    np.testing.assert_array_equal(one, two)


@every_mechanism
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_rows_that_are_not_finite_are_refused(mechanism, bad):
    data = X.copy()
    data[3, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        DPMean(mechanism=mechanism).fit(data)


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (4,)])
def test_shapes_that_are_no_rows_are_refused(shape):
    with pytest.raises(ValueError, match=r"array|sample|feature"):
        DPMean(mechanism="coinpress").fit(np.zeros(shape))


def test_rows_at_the_edge_are_of_norm_one():
    class Chunk:
        X = np.array([[3.0, 4.0], [0.0, 0.0], [0.6, 0.8], [0.3, 0.4], [1e-140, 0.0]])
        factor = 1 / np.maximum(np.linalg.norm(X, axis=1), 1.0)

    found, norm = _unit_columns.unit_columns(Chunk)
    np.testing.assert_allclose(norm, [1, 0, 1, 0.5, 1e-140], rtol=1e-12)
    np.testing.assert_allclose(found.T[0], [0.6, 0.8])
    np.testing.assert_array_equal(found.T[1], 0.0)
