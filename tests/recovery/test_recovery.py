# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sparse recovery: both solvers agree, sparse vectors come back, and nothing can go wrong."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp._recovery import measurements as _measurements
from skdp._recovery.measurements import (
    MEASUREMENTS,
    RECOVERIES,
    Measurement,
    measurement_matrix,
    recover,
)
from skdp._recovery.shrinkage import project_l1

every_kind = pytest.mark.parametrize("kind", MEASUREMENTS)
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


@pytest.mark.covering
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


@pytest.mark.covering
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


@pytest.mark.covering
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


def warns(matrix, b, **options):
    warnings.warn("solution may be inaccurate", UserWarning, stacklevel=1)
    np.log(np.zeros(3))
    return


FAILURES = {
    "raises": raises,
    "warns": warns,
    "None": lambda matrix, b, **options: None,
    "nan": lambda matrix, b, **options: np.full(matrix.shape[1], np.nan),
    "shape": lambda matrix, b, **options: np.zeros(3),
    "text": lambda matrix, b, **options: "optimal",
}


@pytest.mark.covering
@every_form
@pytest.mark.parametrize("failure", FAILURES)
def test_a_solver_that_fails_is_replaced_in_silence(failure, form, monkeypatch, capfd):
    matrix, _, b = problem("gaussian", m=15, d=30)
    options = {"radius": 1.0, "slack": 0.1}
    expected = recover(matrix, b, form, solver="first-order", **options)
    monkeypatch.setattr(_measurements, "recover_with_cvxpy", FAILURES[failure])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(recover(matrix, b, form, solver="cvxpy", **options), expected)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("status", ["infeasible", "unbounded", "optimal_inaccurate", "user_limit"])
def test_a_status_that_is_not_optimal_is_a_failure(status, monkeypatch):
    import cvxpy

    matrix, _, b = problem("gaussian", m=15, d=30)
    expected = recover(matrix, b, "equality", solver="first-order")
    assert np.abs(recover(matrix, b, "equality", solver="cvxpy") - expected).max() > 0
    monkeypatch.setattr(cvxpy.Problem, "status", property(lambda self: status))
    assert_array_equal(recover(matrix, b, "equality", solver="cvxpy"), expected)


def test_auto_asks_cvxpy_for_small_exact_programs_only(monkeypatch):
    asked = []
    monkeypatch.setattr(_measurements, "recover_with_cvxpy", lambda *_, **__: asked.append(1))
    matrix, _, b = problem("gaussian", m=15, d=30)
    for form in ("constrained", "denoising"):
        recover(matrix, b, form, radius=1.0, slack=0.1)
    assert not asked
    recover(matrix, b, "equality")
    assert asked
    monkeypatch.setattr(_measurements, "_EXACT_LIMIT", 449)
    recover(matrix, b, "equality")
    assert len(asked) == 1


@pytest.mark.parametrize("start", [0.0, 0.1, 0.5, 3.0, 1e9])
def test_the_threshold_of_the_ball_is_found_from_anywhere(start):
    rng = np.random.default_rng(0)
    for y in (rng.normal(size=50), np.ones(7), np.array([2.0]), rng.standard_cauchy(200)):
        for radius in (1e-12, 0.3, 1.0, 1e9):
            level = _measurements._l1_level(np.abs(y), radius, start)
            shrunk = np.sign(y) * np.maximum(np.abs(y) - level, 0)
            assert_allclose(shrunk, project_l1(y, radius), atol=1e-9)


def test_an_exhausted_number_of_steps_is_no_error(monkeypatch):
    monkeypatch.setattr(_measurements, "_MOST_STEPS", 2)
    matrix, _, b = problem("gaussian")
    for form in RECOVERIES:
        z = recover(matrix, b, form, radius=1.0, slack=0.1, solver="first-order")
        assert np.isfinite(z).all()
