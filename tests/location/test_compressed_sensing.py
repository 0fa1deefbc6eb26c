# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse means by compressed sensing: measurements, recovery, sketches, planted bugs."""

import math
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import hadamard
from scipy.special import chdtri
from sklearn.base import clone

from skdp._recovery import measurements
from skdp._recovery.measurements import (
    Measurement,
    measurement_matrix,
    recover,
    walsh_hadamard,
)
from skdp.location import DPSparseMeanEstimator, _compressed_sensing
from skdp.location._compressed_sensing import SketchMean, SketchSum, plan_sketch
from skdp.location._sparse_noisy import SparseMeanProblem
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests import _audit, _neighbours
from tests._chunks import shorten_chunks
from tests._neighbours import (
    ADJACENCIES,
    Rows,
    as_dense,
    as_layout,
    neighbours,
    on_examples,
    rows_in_ball,
)
from tests.location._bags import bags_of_words, blocks

# Public measurement matrices: what they are, and that rows are measured one by one.


MEASUREMENTS = ("gaussian", "sparse-sign", "hadamard")
RECOVERIES = ("constrained", "denoising", "equality")
every_kind = pytest.mark.parametrize("kind", MEASUREMENTS)
SHAPES = [(1, 1), (1, 5), (3, 7), (16, 16), (8, 100), (100, 129)]


def explicit(matrix):
    A = matrix.explicit()
    return A.toarray() if sparse.issparse(A) else A


@every_kind
@pytest.mark.parametrize("shape", SHAPES)
def test_all_products_are_with_one_matrix_with_columns_of_norm_one(kind, shape):
    matrix = measurement_matrix(kind, *shape)
    A = explicit(matrix)
    assert A.shape == matrix.shape == shape
    assert_allclose(np.linalg.norm(A, axis=0), 1.0, rtol=1e-12)
    rng = np.random.default_rng(0)
    z, r = rng.normal(size=shape[1]), rng.normal(size=shape[0])
    assert_allclose(matrix.forward(z), A @ z, atol=1e-12)
    assert_allclose(matrix.backward(r), A.T @ r, atol=1e-12)
    sketches = matrix.sketches(sparse.csr_array(np.vstack([z, np.zeros_like(z), z])))
    sketches = sketches.toarray() if sparse.issparse(sketches) else sketches
    assert_allclose(sketches, np.outer([1, 0, 1], A @ z), atol=1e-12)
    # the same for everybody, and another one for another shape
    assert_array_equal(explicit(measurement_matrix(kind, *shape)), A)


@every_kind
def test_matrices_of_different_shapes_share_nothing(kind):
    one = explicit(measurement_matrix(kind, 40, 64))
    other = explicit(measurement_matrix(kind, 41, 64))[:40]
    assert np.abs((one * other).sum(axis=0)).mean() < 0.3


@every_kind
@pytest.mark.parametrize("shape", [(5, 64), (40, 300), (64, 64), (200, 1000)])
def test_the_norm_is_right_or_slightly_more(kind, shape):
    matrix = measurement_matrix(kind, *shape)
    exact = np.linalg.norm(explicit(matrix), ord=2)
    assert exact * (1 - 1e-12) <= matrix.stretch
    assert exact <= matrix.norm * (1 + 1e-12)
    if kind != "hadamard" or shape[1] == 64:
        assert matrix.norm <= 1.051 * exact


@pytest.mark.parametrize("bits", range(15))
def test_the_fast_transform_is_the_hadamard_matrix(bits):
    x = np.random.default_rng(bits).normal(size=1 << bits)
    transformed = walsh_hadamard(x)
    if bits <= 10:
        assert_allclose(transformed, hadamard(1 << bits) @ x, atol=1e-10)
    assert_allclose(walsh_hadamard(transformed), x * 2.0**bits, atol=1e-9)


def test_without_padding_the_rows_of_the_hadamard_kind_are_orthogonal():
    A = explicit(measurement_matrix("hadamard", 20, 128))
    assert_allclose(A @ A.T, 128 / 20 * np.eye(20), atol=1e-12)
    square = measurement_matrix("hadamard", 128, 128)
    assert square.stretch == 1.0
    assert_allclose(np.abs(explicit(square)), 1 / math.sqrt(128))


@pytest.mark.sample(2)
@every_kind
def test_sparse_directions_keep_their_length(kind):
    """What the clipping radius of a sketch is made of: chi-square over m."""
    rng, m = np.random.default_rng(0), 120
    matrix = measurement_matrix(kind, m, 2000)
    columns = np.array([rng.choice(2000, 10, replace=False) for _ in range(4000)])
    rows = rng.normal(size=(4000, 10))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    X = sparse.csr_array((rows.ravel(), columns.ravel(), np.arange(4001) * 10), (4000, 2000))
    sketches = matrix.sketches(X)
    squares = np.asarray((sketches * sketches).sum(axis=1)).ravel()
    assert squares.mean() == pytest.approx(1.0, abs=0.02)
    # as columns have norm 1, only products of different entries vary
    mixed = 1 - (rows**4).sum(axis=1).mean()
    assert squares.std() == pytest.approx(math.sqrt(2 / m * mixed), rel=0.1)
    assert (squares > chdtri(m, 1e-3) / m).mean() < 5e-3


def test_gaussian_columns_look_gaussian():
    A = explicit(measurement_matrix("gaussian", 400, 500)) * 20
    for power, moment in [(1, 0), (2, 1), (3, 0), (4, 3)]:
        assert (A**power).mean() == pytest.approx(moment, abs=0.05)
    # columns do not know of each other
    assert np.abs((A.T @ A / 400)[np.triu_indices(500, 1)]).max() < 0.3


@pytest.mark.parametrize("m", [3, 8, 100])
def test_columns_of_signs_have_few_entries(m):
    matrix = measurement_matrix("sparse-sign", m, 1000)
    A, k = explicit(matrix), min(m, 8)
    assert_array_equal((A != 0).sum(axis=0), k)
    assert_allclose(np.abs(A[A != 0]), 1 / math.sqrt(k))
    counts = (A != 0).sum(axis=1)
    assert counts.min() > 0.3 * counts.mean()
    assert abs(np.sign(A).sum()) < 5 * math.sqrt(1000 * k)
    assert matrix.columns.nnz == 1000 * k


def test_a_dense_matrix_is_for_small_shapes(monkeypatch):
    monkeypatch.setattr(measurements, "_DENSE_LIMIT", 1000)
    assert isinstance(measurement_matrix("auto", 10, 100), measurements.GaussianMeasurement)
    assert isinstance(measurement_matrix("auto", 11, 100), measurements.SparseSignMeasurement)


def mixed_rows():
    """Return rows of very different numbers of entries, an empty one among them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 150)) * (rng.random((40, 150)) < rng.random((40, 1)))
    X[3], X[5] = 0.0, rng.normal(size=150)
    return X


def dense(sketches):
    return sketches.toarray() if sparse.issparse(sketches) else sketches


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("at_once", [1 << 22, 4000, 1000, 1])
def test_the_floats_of_a_row_depend_on_nothing_but_the_row(kind, at_once, monkeypatch):
    monkeypatch.setattr(measurements, "_AT_ONCE", at_once)
    matrix, X = measurement_matrix(kind, 30, 150), mixed_rows()
    whole = dense(matrix.sketches(sparse.csr_array(X)))
    for change in (np.zeros(150), np.full(150, 1e100), X[5] * 1e-100, np.eye(150)[7]):
        other = X.copy()
        other[5] = change
        found = dense(matrix.sketches(sparse.csr_array(other)))
        assert_array_equal(np.delete(found, 5, axis=0), np.delete(whole, 5, axis=0))
    alone = [dense(matrix.sketches(sparse.csr_array(X[i : i + 1])))[0] for i in range(len(X))]
    assert_array_equal(alone, whole)
    assert_allclose(whole, X @ explicit(matrix).T, atol=1e-12)


@every_kind
def test_blocks_change_nothing(kind, monkeypatch):
    expected = explicit(measurement_matrix(kind, 30, 150))
    monkeypatch.setattr(measurements, "_BLOCK", 64)
    assert_array_equal(explicit(measurement_matrix(kind, 30, 150)), expected)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["sparse-sign", "hadamard"])
def test_a_million_features_take_a_few_vectors(kind):
    matrix = measurement_matrix(kind, 1000, 10**6)
    X = sparse.csr_array(([1.0, 2.0], [7, 999_999], [0, 1, 2]), shape=(2, 10**6))
    sketches = dense(matrix.sketches(X))
    assert_allclose(np.linalg.norm(sketches, axis=1), [1, 2])
    z = np.zeros(10**6)
    z[7] = 1.0
    assert_allclose(matrix.forward(z), sketches[0], atol=1e-15)
    assert matrix.backward(sketches[0])[7] == pytest.approx(1.0)


# Sparse recovery: both solvers agree, sparse vectors come back, and nothing can go wrong.


every_form = pytest.mark.parametrize("form", RECOVERIES)
every_sign = pytest.mark.parametrize("nonnegative", [False, True])
SCALE = 0.03


def problem(kind, m=40, d=200, k=6, nonnegative=False, noise=SCALE, seed=0):
    """Return a matrix, a sparse vector of l1 norm 1, and its noisy measurements."""
    rng, matrix = np.random.default_rng(seed), measurement_matrix(kind, m, d)
    z = np.zeros(d)
    z[rng.choice(d, k, replace=False)] = 1 / k if nonnegative else rng.choice([-1, 1], k) / k
    return matrix, z, matrix.forward(z) + noise * rng.normal(size=m)


def value(form, matrix, b, z):
    """Return the objective of a program."""
    if form == "constrained":
        return np.linalg.norm(matrix.forward(z) - b)
    return np.abs(z).sum()


@pytest.mark.covering
@every_sign
@every_form
@every_kind
def test_first_order_steps_find_what_cvxpy_finds(kind, form, nonnegative):
    matrix, _, b = problem(kind, nonnegative=nonnegative)
    options = {
        "radius": 1.0, "slack": SCALE * math.sqrt(40), "nonnegative": nonnegative,
    }  # fmt: skip
    exact = recover(matrix, b, form, solver="cvxpy", **options)
    found = recover(matrix, b, form, solver="first-order", **options)
    assert_allclose(value(form, matrix, b, found), value(form, matrix, b, exact), rtol=1e-3)
    # where entries are of one magnitude, exact programs have many solutions close together
    assert_allclose(found, exact, atol=2e-2 if form == "equality" else 1e-3)
    if nonnegative:
        assert found.min() >= 0
    if form == "constrained":
        assert np.abs(found).sum() <= 1 + 1e-9
    else:
        slack = options["slack"] if form == "denoising" else 0.0
        missed = np.linalg.norm(matrix.forward(found) - b) - slack
        assert missed <= 2e-3 * np.linalg.norm(b)


@pytest.mark.sample(1)
@every_sign
@every_form
@every_kind
@pytest.mark.parametrize("solver", ["cvxpy", "first-order"])
def test_sparse_vectors_come_back_exactly_without_noise(kind, form, nonnegative, solver):
    d, k = 256, 4
    m = math.ceil(4 * k * math.log(d / k))
    for seed in range(2):
        matrix, z, b = problem(kind, m, d, k, nonnegative, noise=0.0, seed=seed)
        options = {"radius": 1.0, "slack": 1e-5, "nonnegative": nonnegative}
        assert_allclose(recover(matrix, b, form, solver=solver, **options), z, atol=1e-3)


@every_kind
@every_form
def test_too_few_measurements_are_no_error(kind, form):
    matrix, _, b = problem(kind, m=3, d=50)
    z = recover(matrix, b, form, radius=1.0, slack=0.1, solver="first-order")
    assert np.isfinite(z).all()
    assert np.abs(z).sum() < 10


@pytest.mark.sample(1)
@every_form
@pytest.mark.parametrize("solver", ["auto", "cvxpy", "first-order"])
@pytest.mark.parametrize("scale", [0.0, 1e-290, 1e-100, 1e100, 1e290])
def test_any_magnitude(form, solver, scale):
    matrix, _, b = problem("gaussian", m=12, d=20)
    options = {"radius": 1.0, "slack": 0.05, "solver": solver}
    expected = recover(matrix, b, form, **options)
    options |= {"radius": scale, "slack": 0.05 * scale}
    found = recover(matrix, scale * b, form, **options)
    assert_allclose(found / (scale or 1.0), expected if scale else 0.0, atol=1e-3)


def test_measurements_within_the_noise_are_explained_by_nothing():
    matrix, _, b = problem("sparse-sign")
    for solver in ("cvxpy", "first-order"):
        z = recover(matrix, b, "denoising", slack=2 * np.linalg.norm(b), solver=solver)
        assert_array_equal(z, 0.0)


class Explicit(Measurement):
    """A matrix given outright."""

    def __init__(self, A):
        super().__init__(*A.shape)
        self.columns = sparse.csr_array(A.T)


@pytest.mark.sample(1)
@every_sign
@every_form
@pytest.mark.parametrize("solver", ["auto", "cvxpy", "first-order"])
@pytest.mark.parametrize("case", ["zero row", "square", "out of reach"])
def test_infeasible_programs_end_quietly(form, nonnegative, solver, case, capfd):
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(8, 12)), rng.normal(size=8)
    A, b = {
        "zero row": (np.vstack([A, np.zeros(12)]), np.append(b, 1.0)),
        "square": (rng.normal(size=(9, 9)), rng.normal(size=9)),
        # no vector without negative entries is measured so
        "out of reach": (np.abs(A), -np.abs(b)),
    }[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z = recover(
            Explicit(A), b, form, radius=1.0, slack=0.1, nonnegative=nonnegative, solver=solver
        )
    assert z.shape == (A.shape[1],)
    assert np.isfinite(z).all()
    assert capfd.readouterr() == ("", "")


def raises(*args, **options):
    raise RuntimeError(f"a message with a released value: {args}")


class PanicException(BaseException):
    """What compiled solvers raise: no Exception."""


def panics(*args, **options):
    raise PanicException("a message with a released value")


def warns(matrix, b, **options):
    warnings.warn("solution may be inaccurate", UserWarning, stacklevel=1)
    np.log(np.zeros(3))
    return


FAILURES = {
    "raises": raises,
    "panics": panics,
    "warns": warns,
    "None": lambda matrix, b, **options: None,
    "nan": lambda matrix, b, **options: np.full(matrix.shape[1], np.nan),
    "shape": lambda matrix, b, **options: np.zeros(3),
    "text": lambda matrix, b, **options: "optimal",
}


@pytest.mark.sample(2)
@every_form
@pytest.mark.parametrize("failure", FAILURES)
def test_a_solver_that_fails_is_replaced_in_silence(failure, form, monkeypatch, capfd):
    matrix, _, b = problem("gaussian", m=15, d=30)
    options = {"radius": 1.0, "slack": 0.1}
    expected = recover(matrix, b, form, solver="first-order", **options)
    monkeypatch.setattr(measurements, "recover_with_cvxpy", FAILURES[failure])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(recover(matrix, b, form, solver="cvxpy", **options), expected)
    assert capfd.readouterr() == ("", "")


@pytest.mark.sample(1)
@pytest.mark.parametrize("status", ["infeasible", "unbounded", "optimal_inaccurate", "user_limit"])
def test_a_status_that_is_not_optimal_is_a_failure(status, monkeypatch):
    import cvxpy

    matrix, _, b = problem("gaussian", m=15, d=30)
    expected = recover(matrix, b, "equality", solver="first-order")
    assert np.abs(recover(matrix, b, "equality", solver="cvxpy") - expected).max() > 0
    monkeypatch.setattr(cvxpy.Problem, "status", property(lambda self: status))
    assert_array_equal(recover(matrix, b, "equality", solver="cvxpy"), expected)


@every_form
def test_auto_asks_cvxpy_for_small_programs_only(form, monkeypatch):
    asked = []
    monkeypatch.setattr(measurements, "recover_with_cvxpy", lambda *_, **__: asked.append(1))
    matrix, _, b = problem("gaussian", m=15, d=30)
    recover(matrix, b, form, radius=1.0, slack=0.1)
    assert len(asked) == 1
    # measurements that are met exactly are what first-order steps are slow at
    other, own = "_NOISY_LIMIT", "_EXACT_LIMIT"
    own, other = (own, other) if form == "equality" else (other, own)
    monkeypatch.setattr(measurements, other, 449)
    recover(matrix, b, form, radius=1.0, slack=0.1)
    assert len(asked) == 2
    monkeypatch.setattr(measurements, own, 449)
    recover(matrix, b, form, radius=1.0, slack=0.1)
    assert len(asked) == 2


def nearest_in_l1_ball(y, radius):
    """Return the projection on an l1 ball, by its threshold among sorted entries."""
    largest = np.sort(np.abs(y))[::-1]
    levels = (np.cumsum(largest) - radius) / np.arange(1, len(y) + 1)
    level = max(levels[np.flatnonzero(largest > levels)[-1]], 0.0)
    return np.sign(y) * np.maximum(np.abs(y) - level, 0.0)


@pytest.mark.parametrize("start", [0.0, 0.1, 0.5, 3.0, 1e9])
def test_the_threshold_of_the_ball_is_found_from_anywhere(start):
    rng = np.random.default_rng(0)
    for y in (rng.normal(size=50), np.ones(7), np.array([2.0]), rng.standard_cauchy(200)):
        for radius in (1e-12, 0.3, 1.0, 1e9):
            level = measurements._l1_level(np.abs(y), radius, start)
            shrunk = np.sign(y) * np.maximum(np.abs(y) - level, 0)
            assert_allclose(shrunk, nearest_in_l1_ball(y, radius), atol=1e-9)


def test_an_exhausted_number_of_steps_is_no_error(monkeypatch):
    monkeypatch.setattr(measurements, "_MOST_STEPS", 2)
    matrix, _, b = problem("gaussian")
    for form in RECOVERIES:
        z = recover(matrix, b, form, radius=1.0, slack=0.1, solver="first-order")
        assert np.isfinite(z).all()


# DPSparseMeanEstimator, mechanism="compressed-sensing": plans, accuracy, bad input.


def estimator(*budget, **options):
    options = {"mechanism": "compressed-sensing", "random_state": 0, **options}
    return DPSparseMeanEstimator(*budget, **options)


def sketch_problem(**given):
    facts = {
        "n_rows": 1000, "n_features": 2**14, "epsilon": 1.0, "delta": 1e-6,
        "adjacency": "replace-one", "sparsity": 4,
    }  # fmt: skip
    return SparseMeanProblem(**{**facts, **given})


def words(n_rows, n_features, length):
    """Return bags of words as rows of norm 1."""
    X = bags_of_words(n_rows, n_features, length)
    X.sum_duplicates()
    return sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))


def error_of(model, X):
    return np.linalg.norm(model.location_ - np.asarray(X.mean(axis=0)).ravel())


def test_the_number_of_measurements_is_public_arithmetic():
    mu = gdp_mu(1.0, 1e-6)
    expected = 1000 * mu * math.sqrt(2 * 4 * math.log(2**12))
    assert plan_sketch(sketch_problem()).n_measurements == int(expected)
    assert plan_sketch(sketch_problem(n_measurements=77)).n_measurements == 77
    # clipped to what makes sense
    assert plan_sketch(sketch_problem(n_rows=1)).n_measurements == 16
    assert plan_sketch(sketch_problem(sparsity=None)).n_measurements > expected


@pytest.mark.parametrize("options", [{"n_rows": 10**7}, {"sparsity": 2**14}])
@pytest.mark.parametrize("n_features", [2, 3, 16, 31, 40, 2**14])
def test_by_default_at_least_half_of_the_numbers_are_saved(n_features, options):
    plan = plan_sketch(sketch_problem(n_features=n_features, **options))
    assert plan.n_measurements == n_features // 2


def test_one_feature_is_measured_once():
    assert plan_sketch(sketch_problem(n_features=1)).n_measurements == 1


@every_kind
def test_the_clipping_radius_is_that_of_typical_rows(kind):
    plan = plan_sketch(sketch_problem(n_features=2000, n_measurements=100, measurement=kind))
    assert plan.query().radius == math.sqrt(chdtri(100, 1e-3) / 100)
    assert plan.query().radius == pytest.approx(1.22, abs=0.005)
    one = plan_sketch(sketch_problem(n_features=2000, sparsity=1, measurement=kind))
    assert one.query().radius == 1.0
    two = plan_sketch(
        sketch_problem(n_features=2000, sparsity=2, n_measurements=2, measurement=kind)
    )
    assert two.query().radius == math.sqrt(2)
    square = plan_sketch(sketch_problem(n_features=256, n_measurements=256, measurement="hadamard"))
    assert square.query().radius == 1.0


def test_what_is_released_and_what_it_costs():
    X = blocks(500, 400, 4, 5)
    for adjacency, reach in [("replace-one", 2), ("zero-out", 1)]:
        model = estimator(sparsity=4, n_measurements=100, adjacency=adjacency).fit(X)
        (release,) = model.ledger_.releases
        assert release.size == 100
        radius = math.sqrt(chdtri(100, 1e-3) / 100)
        assert release.stated_sensitivity == pytest.approx(reach * radius)
        assert release.noise.law == "gaussian"
        assert release.noise.mu == pytest.approx(gdp_mu(1.0, 1e-6))
        assert model.privacy_spent_ == (pytest.approx(1.0), 1e-6)
        assert model.privacy_spent_[0] <= 1.0
        assert model.mechanism_ == "compressed-sensing"
        assert model.threshold_ is None


@pytest.mark.sample(1)
@every_kind
def test_sparse_means_are_recovered(kind):
    X = blocks(2000, 1000, 4, 3)
    for recovery in ("auto", "constrained", "denoising"):
        model = estimator(sparsity=4, measurement=kind, recovery=recovery, n_measurements=200)
        model.fit(X)
        # the mean itself has norm .58
        assert error_of(model, X) < 0.15
        assert model.error_estimate_ == pytest.approx(error_of(model, X), rel=0.4)


@pytest.mark.sample(1)
@every_kind
@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("sparsity", [3, None])
def test_without_noise_to_speak_of_the_mean_comes_back(kind, recovery, sparsity):
    X = blocks(300, 256, 3, 2)
    if recovery == "constrained":
        sparsity = 3
    model = estimator(
        1e6, measurement=kind, recovery=recovery, sparsity=sparsity, n_measurements=120
    ).fit(X)
    assert error_of(model, X) < 0.02


@pytest.mark.full
def test_the_better_form_is_kept():
    """Nothing cancels in blocks, and words are few: each form has its case."""
    for X, s, best in [(blocks(1000, 2**12, 4, 6), 4, "constrained"),
                       (words(5000, 2**12, 30), 30, "denoising")]:  # fmt: skip
        errors = {}
        for recovery in ("auto", "constrained", "denoising"):
            model = estimator(sparsity=s, recovery=recovery, n_measurements=400).fit(X)
            errors[recovery] = error_of(model, X), model.error_estimate_
        assert errors["auto"] == errors[best]
        assert errors[best][0] == min(error for error, _ in errors.values())


@pytest.mark.full
@pytest.mark.parametrize("m", [100, 400, 1500])
def test_the_error_is_estimated_well_on_words(m):
    X = words(5000, 2**12, 30)
    for sparsity in (None, 30):
        model = estimator(n_measurements=m, sparsity=sparsity).fit(X)
        assert model.error_estimate_ == pytest.approx(error_of(model, X), rel=0.35)


def test_too_few_measurements_are_private_and_say_so():
    X = blocks(1000, 2**12, 16, 30)
    few = estimator(sparsity=16, n_measurements=1).fit(X)
    many = estimator(sparsity=16, n_measurements=2**12).fit(X)
    assert few.privacy_spent_[0] <= 1.0
    assert many.error_estimate_ < 0.5 < few.error_estimate_ <= 1.0
    assert plan_sketch(sketch_problem(recovery="equality", n_measurements=2**14)).error(0.1) == (
        math.sqrt(2)
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("recovery", ["auto", *RECOVERIES])
@pytest.mark.parametrize("solver", ["auto", "cvxpy", "first-order"])
def test_non_negative_means(recovery, solver):
    X = abs(blocks(400, 60, 3, 4))
    model = estimator(
        20.0, sparsity=3, nonnegative=True, recovery=recovery, solver=solver, n_measurements=40
    ).fit(X)
    assert model.location_.min() >= 0
    assert error_of(model, X) < 0.15


def test_a_failing_solver_leaves_no_trace(monkeypatch, capfd, recwarn):
    X = blocks(400, 60, 3, 4)
    options = {"sparsity": 3, "n_measurements": 40}
    expected = estimator(solver="first-order", **options).fit(X)
    before = len(recwarn)

    def broken(*args, **kwargs):
        raise ArithmeticError(args)

    monkeypatch.setattr(measurements, "recover_with_cvxpy", broken)
    found = estimator(solver="cvxpy", **options).fit(X)
    assert found.ledger_ == expected.ledger_
    np.testing.assert_array_equal(found.location_, expected.location_)
    assert set(vars(found)) == set(vars(expected))
    assert len(recwarn) == 2 * before
    assert capfd.readouterr() == ("", "")


# DPSparseMeanEstimator, mechanism="compressed-sensing": formats, extremes, bad parameters.


NAN, INF = float("nan"), float("inf")


@pytest.mark.sample(1)
@every_kind
def test_formats_agree(kind):
    X = blocks(60, 50, 3, 4)
    frozen = X.toarray()
    frozen.flags.writeable = False
    unsorted = sparse.csr_matrix(X)
    unsorted.indices = unsorted.indices.astype(np.int64).reshape(-1, 3)[:, ::-1].ravel()
    unsorted.data = unsorted.data.reshape(-1, 3)[:, ::-1].ravel()
    unsorted.indptr = unsorted.indptr.astype(np.int64)
    unsorted.has_sorted_indices = False
    halves = sparse.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    model = estimator(measurement=kind, n_measurements=20, sparsity=3)
    expected = model.fit(X).location_
    for given in (frozen, np.asfortranarray(frozen), unsorted, halves, X.tocsc(), X.tocoo()):
        before = given.copy()
        np.testing.assert_allclose(model.fit(given).location_, expected, atol=1e-6)
        assert abs(given - before).max() == 0


@pytest.mark.covering
@pytest.mark.parametrize("epsilon", [1e-9, 1e6])
@pytest.mark.parametrize(("adjacency", "norm"), [("replace-one", 1e-100), ("zero-out", 1e100)])
@every_kind
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 4)), np.ones((1, 3)), np.ones((3, 1)), np.full((50, 2), 1e300),
        np.full((50, 2), -1e-300), np.tile([1e-100, 1e100], (60, 1)), sparse.csr_array((7, 9)),
        np.eye(4, 6, dtype=np.float32), np.where(np.eye(5) > 0, 1e308, 5e-324),
    ],
)  # fmt: skip
def test_extreme_rows_and_budgets(epsilon, adjacency, norm, kind, X, monkeypatch):
    monkeypatch.setattr("skdp._recovery.measurements._MOST_STEPS", 30)
    for recovery in ("auto", "equality"):
        model = estimator(
            epsilon, adjacency=adjacency, data_norm=norm, measurement=kind, recovery=recovery,
            sparsity=2, solver="first-order",
        ).fit(X)  # fmt: skip
        assert np.isfinite(model.location_).all()
        assert np.linalg.norm(model.location_ / norm) <= 1 + 1e-9
        assert 0 <= model.error_estimate_ <= 1.5 * norm
        assert model.privacy_spent_[0] <= epsilon


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"n_measurements": 51}, "n_measurements must be at least 1, and at most .* 50; got 51"),
        ({"recovery": "constrained"}, "sparsity must be given .*; got None"),
        ({"n_measurements": 0}, "n_measurements"),
        ({"n_measurements": 2.5}, "n_measurements"),
        ({"measurement": "fourier"}, "measurement"),
        ({"recovery": "lasso"}, "recovery"),
        ({"solver": "scs"}, "solver"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": NAN}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"sparsity": 0}, "sparsity"),
        ({"data_norm": 0.0}, "data_norm"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X = blocks(60, 50, 3, 4)
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(X)


def test_parameters_of_this_mechanism_are_refused_by_others():
    X = blocks(60, 50, 3, 4)
    for given in ({"n_measurements": 5}, {"measurement": "gaussian"}, {"recovery": "denoising"}):
        with pytest.raises(ValueError, match=next(iter(given))):
            estimator(mechanism="soft-threshold", **given).fit(X)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_rows_that_are_not_finite_are_refused(bad):
    X = blocks(60, 50, 3, 4)
    X.data[7] = bad
    with pytest.raises(ValueError, match="contains"):
        estimator().fit(X)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["auto", "hadamard"])
def test_many_features_need_few_vectors(kind, monkeypatch):
    monkeypatch.setattr("skdp._recovery.measurements._MOST_STEPS", 2)
    d = 2**20
    X = blocks(2000, d, 20, 10)
    model = estimator(measurement=kind, n_measurements=1000, sparsity=20)
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # twelve vectors are the matrix of signs
    assert peak < 40 * 8 * d
    assert model.location_.shape == (d,)


# Clipped measurements keep the sensitivity they state, for every matrix, and attain it.


NORMS = {"l1": 1, "l2": 2}
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def admit(rows, radius=1.0, **options):
    null = np.asarray(rows.null)
    return rows_in_ball(rows.X, np.zeros(len(null)), null, radius, 0.0, **options)


def rows_of(X, null=None):
    X = np.asarray(X, dtype=np.float64)
    return Rows(X, np.zeros(len(X), int), np.zeros(len(X), bool) if null is None else null)


class Any(Measurement):
    """A matrix that nobody would choose."""

    def __init__(self, A):
        super().__init__(*A.shape)
        self.columns = A.T


def matrices(d):
    """Return measurement matrices of all kinds and of no kind, for d features."""
    made = [measurement_matrix(kind, m, d) for kind in MEASUREMENTS for m in {1, (d + 1) // 2, d}]
    rng = np.random.default_rng(d)
    return [*made, Any(1e6 * rng.normal(size=(2, d))), Any(1e-6 * np.eye(d)), Any(np.zeros((1, d)))]


@every_adjacency
@on_examples(100)
def test_the_sensitivity_holds_for_any_neighbours_and_any_matrix(adjacency, data):
    norm = data.draw(st.sampled_from([1.0, 1e-100, 1e100, 3.7]))
    pair = data.draw(neighbours(adjacency, radius=norm))
    n, d = pair[0].X.shape
    admitted = [admit(rows, norm) for rows in pair]
    matrix = data.draw(st.sampled_from(matrices(d)))
    query = SketchSum(matrix, data.draw(st.sampled_from([1e-9, 0.5, 1.0, 1.3])))
    stated = query.sensitivity(adjacency, n)
    values = [query.evaluate(rows) for rows in admitted]
    for value in values:
        assert value.shape == (query.size,)
        assert np.abs(value).max() <= stated.bound * (1 + FLOAT_SLACK)
    for name, order in NORMS.items():
        gap = np.linalg.norm(values[0] - values[1], ord=order)
        assert gap <= getattr(stated, name) * (1 + FLOAT_SLACK)


def longest_row(matrix):
    """Return the row of norm 1 that has the longest measurements."""
    A = matrix.explicit()
    return np.linalg.svd(A.toarray() if sparse.issparse(A) else A)[2][0]


@every_adjacency
@every_kind
def test_the_sensitivity_is_attained(kind, adjacency):
    matrix = measurement_matrix(kind, 5, 60)
    row, X = longest_row(matrix), np.zeros((7, 60))
    X[3] = row
    first, second = rows_of(X), rows_of(-X)
    if adjacency == "zero-out":
        second = rows_of(X, np.arange(7) == 3)
    for radius in (0.5, 1.2):
        query = SketchSum(matrix, radius)
        gap = query.evaluate(admit(first)) - query.evaluate(admit(second))
        stated = query.sensitivity(adjacency, 7).l2
        assert np.linalg.norm(gap) == pytest.approx(stated, rel=1e-9)
    # it is not the isometry that bounds it: unclipped, the same row moves it further
    loose = SketchSum(matrix, 1e3)
    gap = loose.evaluate(admit(first)) - loose.evaluate(admit(second))
    assert np.linalg.norm(gap) > 2 * query.sensitivity("zero-out", 7).l2


@on_examples(75)
def test_in_any_layout_it_is_what_it_says(data):
    rows, _ = data.draw(neighbours("replace-one", radius=2.0))
    matrix = data.draw(st.sampled_from(matrices(rows.X.shape[1])))
    radius = data.draw(st.sampled_from([1e-3, 0.9, 1.3]))
    A, before = matrix.explicit(), as_dense(rows.X).copy()
    total = np.zeros(matrix.shape[0])
    for x, null in zip(before, rows.null, strict=True):
        if null or not np.isfinite(x).all():
            continue
        with np.errstate(under="ignore"):
            scale = max(np.abs(x).max(), 2.0)
            sketch = A @ (x / scale / max(np.linalg.norm(x / scale), 2.0 / scale))
            total += sketch * min(1.0, radius / max(np.linalg.norm(sketch), 1e-300))
    value = SketchSum(matrix, radius).evaluate(admit(rows, 2.0))
    assert_allclose(value, total, rtol=1e-9, atol=1e-12)
    assert_array_equal(as_dense(rows.X), before)


@pytest.mark.sample(2)
@every_kind
@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr"])
def test_chunks_blocks_and_threads_change_nothing_but_rounding(kind, layout, monkeypatch):
    rows = _neighbours.mixed_rows(d=9)
    rows = Rows(as_layout(rows.X, layout), rows.codes, rows.null)
    query = SketchSum(measurement_matrix(kind, 4, 9), 0.7)
    expected = query.evaluate(admit(rows))
    shorten_chunks(monkeypatch, 7, threads=True)
    monkeypatch.setattr(_compressed_sensing, "_AT_ONCE", 8)
    one, many = (query.evaluate(admit(rows, n_threads=n)) for n in (1, 3))
    assert_array_equal(one, many)
    assert_allclose(one, expected, rtol=1e-12, atol=1e-13)


@every_kind
def test_other_rows_cancel_to_the_last_digits(kind):
    """Neighbours that differ in a row of zeros and a denormal differ in nothing else."""
    X = np.random.default_rng(0).normal(size=(300, 40))
    other = X.copy()
    X[0], other[0] = 0.0, 1e-200
    query = SketchSum(measurement_matrix(kind, 10, 40), 1.1)
    values = [query.evaluate(admit(rows_of(np.asfortranarray(rows)))) for rows in (X, other)]
    assert np.linalg.norm(values[0] - values[1]) < 1e-12


def test_one_non_zero_is_never_clipped():
    for kind in MEASUREMENTS:
        matrix = measurement_matrix(kind, 20, 100)
        value = SketchSum(matrix, 1.0).evaluate(admit(rows_of(np.eye(100))))
        A = matrix.explicit()
        assert_allclose(value, np.asarray(A.sum(axis=1)).ravel(), atol=1e-12)


def test_the_size_of_a_row_does_not_matter():
    X = sparse.csr_array(np.eye(3, 8) * np.array([[1e300], [1e-300], [1.0]]))
    query = SketchSum(measurement_matrix("sparse-sign", 4, 8), 1.0)
    value = query.evaluate(admit(Rows(X, np.zeros(3), np.zeros(3, bool))))
    A = query.measurement.explicit().toarray()
    # the huge row is a row of norm 1, the tiny one is zero
    assert_allclose(value, A[:, 0] + A[:, 2])
    assert query.sensitivity("zero-out", 3).l2 == 1.0
    assert query.sensitivity("replace-one", 3).l1 == 2 * math.sqrt(4)


# The privacy claim of compressed sensing: coupled traces of whole fits, and planted bugs.


EPSILON, DELTA = 2.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
MUTANT_NAN = float("nan")
M, D = 10, 80


def mean(kind="gaussian", adjacency="replace-one", **options):
    defaults = {
        "mechanism": "compressed-sensing", "measurement": kind, "adjacency": adjacency,
        "random_state": 0, "n_measurements": M, "solver": "first-order",
    }  # fmt: skip
    return DPSparseMeanEstimator(EPSILON, DELTA, **{**defaults, **options})


def fitted(model, X):
    """Fit, with null rows in the data: validation would refuse them."""
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(X)


def measured(model, first, second):
    """Return the coupled mu of a fit, relative to the claim."""
    return _audit.coupled_mu(lambda X: fitted(model, X), first, second) / CLAIMED_MU


def pair(kind, adjacency, m=M):
    """Return neighbours in the direction whose measurements are longest, in CSR format."""
    A = measurement_matrix(kind, m, D).explicit()
    row = np.linalg.svd(A.toarray() if sparse.issparse(A) else A)[2][0]
    first = 0.1 * np.random.default_rng(0).normal(size=(12, D))
    first[4] = 3 * row
    second = first.copy()
    second[4] = MUTANT_NAN if adjacency == "zero-out" else -first[4]
    return sparse.csr_array(first), sparse.csr_array(second)


@pytest.mark.covering
@every_adjacency
@every_kind
@pytest.mark.parametrize("m", [1, M, D])
def test_claims_are_kept_and_tight(kind, adjacency, m):
    ratio = measured(mean(kind, adjacency, n_measurements=m), *pair(kind, adjacency, m))
    assert ratio <= 1.0
    # a square orthogonal matrix is the exception: D is no power of two
    assert ratio >= 0.999


@every_adjacency
@on_examples(30)
def test_claims_are_kept_on_any_neighbours(adjacency, data):
    one, two = data.draw(neighbours(adjacency, null_row=MUTANT_NAN))
    n_features = one.X.shape[1]
    model = mean(
        data.draw(st.sampled_from(MEASUREMENTS)),
        adjacency,
        n_measurements=data.draw(st.integers(1, n_features)),
        sparsity=data.draw(st.sampled_from([None, 1, 2, 9])),
        nonnegative=data.draw(st.booleans()),
        data_norm=data.draw(st.sampled_from([1.0, 9.0])),
        recovery=data.draw(st.sampled_from(["auto", "equality"])),
    )
    with pytest.MonkeyPatch.context() as patch:
        # what is recovered is post-processing, and takes longest
        patch.setattr("skdp._recovery.measurements._MOST_STEPS", 3)
        assert measured(model, one.X, two.X) <= 1.0


@every_kind
def test_measurements_that_are_not_clipped_are_caught(kind, monkeypatch):
    rows = pair(kind, "replace-one")
    assert measured(mean(kind), *rows) <= 1.0

    def unclipped(self, chunk, real=SketchSum.partial):
        return real(replace(self, radius=1e9), chunk)

    monkeypatch.setattr(SketchSum, "partial", unclipped)
    assert measured(mean(kind), *rows) > 1.5


def test_rows_clipped_before_they_are_measured_only_are_caught(monkeypatch):
    """A row of norm 1 is not one whose measurements have norm 1: the printed proof's gap."""
    rows = pair("gaussian", "replace-one")
    monkeypatch.setattr(SketchMean, "query", isometry(SketchMean.query))
    # charged as if no direction grew by more than half
    assert measured(mean(), *rows) > 1.5


def isometry(real):
    class Trusting(SketchSum):
        def partial(self, chunk):
            return SketchSum(self.measurement, 1e9).partial(chunk)

    def query(self):
        return Trusting(real(self).measurement, 1.5)

    return query


@every_adjacency
def test_one_sketch_charged_for_two_is_caught(adjacency, monkeypatch):
    rows, model = pair("gaussian", adjacency), mean(adjacency=adjacency)
    assert measured(model, *rows) <= 1.0

    def one_row(self, adjacency, n_rows, real=SketchSum.sensitivity):
        return real(self, "zero-out", n_rows)

    monkeypatch.setattr(SketchSum, "sensitivity", one_row)
    expected = 2.0 if adjacency == "replace-one" else 1.0
    assert measured(model, *rows) == pytest.approx(expected, rel=1e-3)


def test_a_null_row_that_counts_is_caught(monkeypatch):
    rows, model = pair("gaussian", "zero-out"), mean(adjacency="zero-out")
    assert measured(model, *rows) <= 1.0

    def counted(self, chunk, real=SketchSum.partial):
        null = np.isinf(chunk.norm).sum()
        extra = -self.radius * real(self, chunk) / np.linalg.norm(real(self, chunk))
        return real(self, chunk) + null * extra

    monkeypatch.setattr(SketchSum, "partial", counted)
    assert measured(model, *rows) > 1.3


def test_halved_noise_is_caught(monkeypatch):
    X = pair("gaussian", "replace-one")[0]
    model = mean(n_measurements=60)
    fit = lambda: fitted(model, X)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


def test_a_radius_read_off_the_rows_is_caught(monkeypatch):
    rows, model = pair("gaussian", "zero-out"), mean(adjacency="zero-out")
    run, real = SketchMean.run, SketchMean.query

    def peeking(self, curator):
        query = real(self)
        (chunk,) = curator._admitted(None).chunks
        sketches = query.measurement.sketches(chunk.X) * chunk.factor[:, None]
        longest = np.linalg.norm(sketches[np.isfinite(chunk.norm)], axis=1).max()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SketchMean, "query", lambda self: replace(query, radius=longest))
            return run(self, curator)

    assert measured(model, *rows) <= 1.0
    monkeypatch.setattr(SketchMean, "run", peeking)
    # the noise differs between neighbours: it shows who is there
    with pytest.raises(AssertionError):
        measured(model, *rows)


def test_the_matrix_may_be_used_again_and_again():
    """Two fits measure alike; their prices add up, and nothing else is owed."""
    rows = pair("gaussian", "replace-one")
    pairs = []
    for seed in (0, 1):
        model = mean(random_state=seed)
        pairs += _audit.coupled(lambda X, model=model: fitted(model, X), *rows)
    total = math.hypot(
        *(np.linalg.norm(a.statistic - b.statistic) / a.noise.scale for a, b in pairs)
    )
    assert 0.999 * math.sqrt(2) * CLAIMED_MU <= total <= math.sqrt(2) * CLAIMED_MU
    np.testing.assert_array_equal(pairs[0][0].statistic, pairs[1][0].statistic)
