# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to every mechanism of the linear classifiers: a clear error or a correct fit."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from tests.test_claims_erm import PAIRS, make

NAN, INF = float("nan"), float("inf")
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(60, 2))
y = np.arange(60) % 2
every_pair = pytest.mark.parametrize(("mechanism", "solver"), PAIRS)
every_estimator = pytest.mark.parametrize("name", ["logistic", "hinge"])
POINTS = [p for p in PAIRS if p[1] != "cvxpy"]

BAD = {
    "epsilon": [0, -1, NAN, INF, "1", None, True],
    "delta": [-0.1, 1, 1.5, NAN, INF, "x", None, True],
    "mechanism": ["laplace", "Gradient", None, 1],
    "solver": ["adam", "saga", None, 0],
    "adjacency": ["add-remove", None],
    "data_norm": [0, -1, NAN, INF, 1e-200, 1e200, "a", None, True],
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
def test_a_parameter_out_of_range_is_named_and_nothing_is_fitted(name, value):
    model = DPHingeSVM(**{name: value})
    with pytest.raises((ValueError, TypeError), match=name) as raised:
        model.fit(X, y)
    assert "must" in str(raised.value)
    assert not hasattr(model, "ledger_")
    assert not hasattr(model, "coef_")


@pytest.mark.covering
@every_pair
@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name in GATED for value in BAD[name]]
)
def test_the_gate_does_not_rely_on_scikit_learn_s_validation(mechanism, solver, parameter, value):
    model = make("logistic", mechanism, solver, **{parameter: value})
    with (
        sklearn.config_context(skip_parameter_validation=True, assume_finite=True),
        pytest.raises((ValueError, TypeError), match=parameter),
    ):
        model.fit(X, y)
    assert not hasattr(model, "ledger_")


@every_estimator
@every_pair
def test_delta_zero_is_pure_or_refused_by_name(name, mechanism, solver):
    model = make(name, mechanism, solver, delta=0.0, epsilon=0.5)
    if mechanism == "gradient" or solver in ("phased", "localized", "one-pass"):
        with pytest.raises(ValueError, match="delta must be greater than 0"):
            model.fit(X, y)
    else:
        # steps that share the budget may leave an ulp
        assert model.fit(X, y).privacy_spent_ == (pytest.approx(0.5, rel=1e-14), 0.0)
        assert model.privacy_spent_[0] <= 0.5


def assert_sound(model, data, labels):
    """Fit; the result is finite and within its budget."""
    model.fit(data, labels)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.privacy_spent_[0] <= model.epsilon
    assert model.privacy_spent_[1] <= model.delta
    assert model.ledger_.epsilon(model.delta) <= model.epsilon


@pytest.mark.covering
@every_estimator
@every_pair
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 50.0, 1e6])
def test_tiny_and_huge_budgets(name, mechanism, solver, epsilon):
    assert_sound(make(name, mechanism, solver, epsilon=epsilon), X, y)


@pytest.mark.covering
@every_pair
@pytest.mark.parametrize("delta", [1e-300, 1e-15, 0.5, 0.999])
def test_tiny_and_huge_deltas(mechanism, solver, delta):
    assert_sound(make("logistic", mechanism, solver, delta=delta), X, y)


@pytest.mark.covering
@every_estimator
@every_pair
@pytest.mark.parametrize("data_norm", [1e-100, 1e-50, 1e50, 1e100])
def test_extreme_units(name, mechanism, solver, data_norm):
    model = make(name, mechanism, solver, data_norm=data_norm)
    if mechanism == "exponential":
        model.set_params(coef_bound=float(np.clip(3 / data_norm, 1e-50, 1e50)))
    assert_sound(model, X * data_norm, y)


@pytest.mark.covering
@every_estimator
@every_pair
@pytest.mark.parametrize(
    "case", ["one row", "one class", "null", "one feature", "equal", "huge", "tiny", "mixed"]
)
def test_degenerate_rows(name, mechanism, solver, case):
    model, data, labels = make(name, mechanism, solver), X, y
    if case == "one row":
        data, labels = X[:1], y[:1]
    elif case == "one feature":
        data = X[:, :1]
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
            "mixed": np.where(rng.random((60, 2)) < 0.5, 1e308, 5e-324),
        }[case]
    assert_sound(model, data, labels)


@pytest.mark.covering
@every_estimator
@pytest.mark.parametrize(("mechanism", "solver"), [p for p in POINTS if p[1] != "exact"])
def test_more_classes_than_rows(name, mechanism, solver):
    assert_sound(make(name, mechanism, solver, n_classes=7), X[:2], y[:2])


@pytest.mark.covering
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_two_thousand_features(mechanism, solver):
    wide = np.random.default_rng(0).normal(size=(20, 2000))
    assert_sound(make("logistic", mechanism, solver), wide, np.arange(20) % 2)


@pytest.mark.covering
@pytest.mark.parametrize(("mechanism", "solver"), POINTS)
def test_other_layouts_are_read_and_never_written(mechanism, solver, tmp_path):
    rows = np.vstack([X, [[1e308, 5e-324]]])
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    labels = np.append(y, 0)
    labels.flags.writeable = False
    columns = np.tile([0, 1, 0, 1], 61)
    halves = np.repeat(np.vstack([X, [[0.5, 0.25]]]) / 2, 2, axis=0).ravel()
    twice = sparse.csr_array((halves, columns, np.arange(62) * 4), shape=(61, 2))
    for data in (mapped, rows[:, ::-1], X.astype(np.float32), twice):
        before = data.copy()
        assert_sound(make("hinge", mechanism, solver), data, labels[: data.shape[0]])
        if sparse.issparse(data):
            np.testing.assert_array_equal(data.data, before.data)
            np.testing.assert_array_equal(data.indices, before.indices)
        else:
            np.testing.assert_array_equal(data, before)


@pytest.mark.parametrize(("mechanism", "solver"), POINTS)
def test_with_validation_off_a_broken_row_contributes_nothing(mechanism, solver):
    broken, gone = X.copy(), y.copy()
    broken[7, 1], gone[7] = NAN, -1
    model = make("logistic", mechanism, solver)
    with sklearn.config_context(assume_finite=True):
        coef = clone(model).fit(broken, y).coef_
    np.testing.assert_allclose(coef, clone(model).fit(X, gone).coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.covering
@every_pair
@pytest.mark.parametrize("C", [1e-15, 1e-6, 1e3])
@pytest.mark.parametrize("localize", [False, True])
def test_penalties_of_any_strength_work_or_are_named(mechanism, solver, C, localize):
    own = {"localize": localize} if solver in ("exact", "net") else {}
    model = make("hinge", mechanism, solver, C=C, **own)
    if solver == "frank-wolfe":
        with pytest.raises(ValueError, match=r"C must be inf with solvers.FrankWolfe\(\)"):
            model.fit(X, y)
    elif mechanism == "objective" and C > 1:
        with pytest.raises(ValueError, match="C must be at most"):
            model.fit(X, y)
    else:
        assert_sound(model, X, y)


@pytest.mark.parametrize("data_norm", [1.0, 1e-100])
def test_a_penalty_that_overflows_works_or_names_its_parameter(data_norm):
    for estimator in (DPHingeSVM, DPLogisticRegression):
        for C in (1e-160, 1e-300):
            model = estimator(C=C, classes=(0, 1), data_norm=data_norm, random_state=0)
            try:
                assert_sound(model, X * data_norm, y)
            except ValueError as error:
                message = str(error)
            else:
                continue
            assert "C must" in message


@pytest.mark.parametrize(("solver", "bound"), [("exact", 1e-50), ("net", 1e-50), ("net", 1e50)])
def test_extreme_balls(solver, bound):
    for name in ("logistic", "hinge"):
        model = make(name, "exponential", solver, coef_bound=bound)
        assert_sound(model, X, y)
        assert np.linalg.norm(np.append(model.coef_, model.intercept_ / 0.1)) <= bound * 1.0001


def test_no_error_repeats_a_data_value():
    secret = "secret-4711"
    rows = np.array([[0.5, secret], [0.5, 1.0]], dtype=object)
    for mechanism, solver in PAIRS:
        with pytest.raises(ValueError, match="numeric") as raised:
            make("hinge", mechanism, solver).fit(rows, [0, 1])
        assert secret not in str(raised.value)
