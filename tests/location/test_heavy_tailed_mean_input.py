# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to DPHeavyTailedMean: a clear error, or a correct fit within the budget."""

import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone

from skdp import DPHeavyTailedMean
from skdp.exceptions import SeededNoiseWarning

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-0.1, 1, NAN, "1", None],
    "moment_order": [1, 1.0, 0.5, -2, NAN, INF, 1001, "2", None],
    "moment_bound": [0, -1.0, NAN, INF, 1e-51, 1e51, "1"],
    "failure_probability": [0, 1, -0.1, 2, NAN, "0.1"],
    "adjacency": ["add-remove", None],
    "data_norm": [0, -1, NAN, INF, 1e101, "1", None],
    "random_state": [-1, "a"],
}
GIVEN = [
    {},
    {"delta": 0.0},
    {"moment_bound": 2.0},
    {"delta": 0.0, "moment_bound": 2.0, "failure_probability": 0.1, "moment_order": 1.01},
]
every_kind = pytest.mark.parametrize("given", GIVEN, ids=str)


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SeededNoiseWarning)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return clone(model).fit(data)


@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
@pytest.mark.parametrize("validated", [True, False])
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(parameter, value, validated):
    model = DPHeavyTailedMean(moment_bound=3.0, random_state=0).set_params(**{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=not validated),
        pytest.raises(ValueError, match=parameter),
    ):
        model.fit(X)
    assert not hasattr(model, "ledger_")


def test_a_probability_without_a_moment_is_refused():
    with pytest.raises(ValueError, match=r"failure_probability=0.1 needs a moment_bound"):
        DPHeavyTailedMean(failure_probability=0.1).fit(X)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-320), (1e-13, 0.0), (1e-300, 0.0)])
@pytest.mark.parametrize("moment_bound", [None, 1.0])
def test_budgets_that_round_to_nothing_are_refused(epsilon, delta, moment_bound):
    model = DPHeavyTailedMean(epsilon, delta, moment_bound=moment_bound)
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        model.fit(X)


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize(
    ("adjacency", "norm"), [("replace-one", 1e-100), ("zero-out", 1e6), ("replace-one", 1e100)]
)
@pytest.mark.parametrize(
    "data",
    [
        X[:1], X[:5, :1], np.zeros((5, 2)), np.full((50, 2), 1e300),
        np.full((50, 2), -1e-300), X.astype(np.float32), np.where(X > 0, 1e308, 5e-324),
        np.asfortranarray(X), X[:, ::-1], np.zeros((3, 400)), np.tile([1e-100, 1e100], (60, 1)),
    ],
)  # fmt: skip
def test_extreme_rows_and_budgets(given, adjacency, epsilon, norm, data):
    model = DPHeavyTailedMean(epsilon, adjacency=adjacency, data_norm=norm, random_state=0, **given)
    before = data.copy()
    fitted = fit(model, data)
    assert np.isfinite(fitted.location_).all()
    assert np.linalg.norm(fitted.location_ / norm) <= 1 + 1e-9
    assert 0 < fitted.threshold_ <= norm
    assert fitted.privacy_spent_[0] <= epsilon
    assert fitted.ledger_.epsilon(model.delta) <= epsilon
    if "moment_bound" in given:
        assert 0 < fitted.error_bound_ <= 4.0
        assert np.linalg.norm(fitted.location_) <= 2.0 * (1 + 1e-12)
    else:
        assert fitted.error_bound_ is None
    np.testing.assert_array_equal(data, before)


@pytest.mark.covering
@pytest.mark.parametrize("order", [1 + 1e-12, 1.5, 2.0, 1000.0])
@pytest.mark.parametrize("bound", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("failure", [None, 1 - 1e-9, 1e-300])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-11, 0.0), (1e-9, 1e-12), (1e6, 1e-6)])
def test_extreme_moments(order, bound, failure, epsilon, delta):
    for norm in (1e-100, 1e100):
        model = DPHeavyTailedMean(
            epsilon, delta, moment_order=order, moment_bound=bound, failure_probability=failure,
            data_norm=norm, random_state=0,
        )  # fmt: skip
        fitted = fit(model, X)
        assert np.isfinite(fitted.location_).all()
        assert 0 < fitted.threshold_ <= norm
        assert 0 < fitted.error_bound_ <= 2 * bound
        assert np.linalg.norm(fitted.location_) <= bound * (1 + 1e-9)


def test_infinite_variance():
    rng = np.random.default_rng(0)
    # the 1.1th power of |x| has the mean 1.2 / 0.1
    model = DPHeavyTailedMean(1.0, moment_order=1.1, moment_bound=12.0 ** (1 / 1.1))
    errors = [
        abs(model.fit(1 + rng.pareto(1.2, size=(5000, 1))).location_[0] - 6) for _ in range(30)
    ]
    assert np.mean(errors) < model.error_bound_ < 2 * model.moment_bound
    cauchy = DPHeavyTailedMean(3.0).fit(rng.standard_cauchy(size=(20_000, 3)))
    assert np.linalg.norm(cauchy.location_) < 2


def test_a_million_columns():
    rows = sparse.random_array((50, 10**6), density=1e-5, rng=0, format="csr")
    for given in ({"moment_bound": 5.0}, {"moment_bound": 5.0, "failure_probability": 0.1}, {}):
        fitted = fit(DPHeavyTailedMean(random_state=0, **given), rows)
        assert fitted.location_.shape == (10**6,)


@every_kind
def test_read_only_rows_and_lists(given):
    frozen = X.copy()
    frozen.flags.writeable = False
    one = fit(DPHeavyTailedMean(20.0, random_state=0, **given), frozen).location_
    two = fit(DPHeavyTailedMean(20.0, random_state=0, **given), X.tolist()).location_
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_rows_that_are_not_finite_are_refused(bad):
    data = X.copy()
    data[3, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        DPHeavyTailedMean().fit(data)


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (4,)])
def test_shapes_that_are_no_rows_are_refused(shape):
    with pytest.raises(ValueError, match=r"array|sample|feature"):
        DPHeavyTailedMean().fit(np.zeros(shape))


@every_kind
def test_a_huge_outlier_moves_the_mean_by_a_radius_at_most(given):
    far = X.copy()
    far[0] = 1e300
    model = DPHeavyTailedMean(1e5, random_state=0, **given)
    near, moved = fit(model, X), fit(model, far)
    limit = 2.1 * max(near.threshold_, moved.threshold_) / len(X)
    assert np.linalg.norm(near.location_ - moved.location_) < limit + 0.01
