# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Objectives against naive sums; minimisers, their certificates, and their fall-backs."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._minimize import (
    nonsmooth,
    smooth,
)
from skdp._minimize.nonsmooth import minimize_nonsmooth
from skdp._minimize.objective import RowObjective
from skdp._minimize.smooth import SMOOTH_SOLVERS, minimize_smooth, reachable_tolerance
from tests._neighbours import as_dense, as_layout, rows_in_ball

SMOOTH = {
    "logistic": LogisticLoss(),
    "softmax": SoftmaxLoss(3),
    "sharp": LogisticLoss(1.0, 1e-2),
    "sharp softmax": SoftmaxLoss(3, 1.0, 1e-2),
}
HINGES = {"hinge": HingeLoss(), "Crammer-Singer": HingeLoss(3)}
every_smooth = pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
every_hinge = pytest.mark.parametrize("loss", HINGES.values(), ids=HINGES)
ROW_NORM = math.hypot(1.0, 0.5)


def data(kind, n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = (X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0).astype(int)
    if kind == "separable":
        codes = (X[:, 0] > 0).astype(int)
    elif kind == "duplicated":
        X, codes = X[rng.integers(0, 4, n)], rng.integers(0, 2, n)
    elif kind == "constant":
        X[:] = 1.0
    elif kind == "kink":
        # half of the rows are at the kink, and in part active
        codes = np.arange(n) % 2
        X[:], X[:, 0] = 0.0, np.where(codes, 1.0, 0.5)
    elif kind == "ill-conditioned":
        X *= 10.0 ** -np.arange(0, 4 * d, 4)
    elif kind == "one class":
        codes[:] = 0
    elif kind == "csr":
        X = sparse.csr_array(X * (rng.uniform(size=X.shape) < 0.4))
    return X, codes


KINDS = ("random", "separable", "duplicated", "constant", "kink", "ill-conditioned", "one class",
         "csr")  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS)


def objective(X, codes, loss, ridge=1.0, null=None, intercept=0.5, **options):
    if loss.n_outputs > 2:
        codes = codes + (np.arange(len(codes)) % 3 == 0)
    null = np.arange(len(codes)) % 7 == 3 if null is None else null
    rows = rows_in_ball(X, loss.encode(codes), null, 1.0, intercept)
    size = {"n_coefs": X.shape[1] + bool(intercept), "row_norm": math.hypot(1, intercept)}
    return RowObjective(rows, loss, ridge=ridge, **size, **options)


def naive_value(J, X, codes, null, w, intercept=0.5):
    """Sum up losses row by row, by their definition."""
    loss, total = J.loss, 0.0
    if loss.n_outputs > 2:
        codes = codes + (np.arange(len(codes)) % 3 == 0)
    coef = w.reshape(loss.n_outputs, -1)
    for x, code, skip in zip(as_dense(X), codes, null, strict=True):
        if skip or not np.isfinite(x).all():
            continue
        v = np.append(x / max(1.0, np.linalg.norm(x)), [intercept] if intercept else [])
        z = coef @ v
        if loss.n_outputs == 1:
            short = np.array([0.0, loss.margin - (2 * code - 1) * z[0]])
        else:
            short = z - z[code] + loss.margin * (np.arange(len(z)) != code)
        if loss.temperature:
            total += loss.temperature * np.logaddexp.reduce(short / loss.temperature)
        else:
            total += short.max()
    return total + J.ridge / 2 * np.sum((w - J.center) ** 2) + J.linear @ w


def differences(function, w, step):
    """Central differences, fourth order."""
    columns = []
    for e in np.eye(len(w)) * step:
        near = function(w + e) - function(w - e)
        far = function(w + 2 * e) - function(w - 2 * e)
        columns.append((8 * near - far) / (12 * step))
    return np.array(columns)


@pytest.mark.covering
@every_smooth
@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr"])
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_objectives_are_their_definition(loss, layout, intercept):
    X, codes = data("random", n=40)
    X = as_layout(X, layout)
    null = np.arange(40) % 5 == 0
    rng = np.random.default_rng(1)
    size = loss.n_outputs * (3 + bool(intercept))
    center, linear, w, d = rng.normal(size=(4, size))
    kept = center.copy(), linear.copy()
    J = objective(X, codes, loss, 0.7, null, intercept, center=center, linear=linear)
    f = lambda w: naive_value(J, X, codes, null, w, intercept)  # noqa: E731
    value, gradient = J.value_and_gradient(w)
    assert_allclose(value, f(w), rtol=1e-12)
    assert_allclose(gradient, differences(f, w, 1e-3 * loss.temperature**0.7), atol=2e-5)
    assert_array_equal(J.gradient(w), gradient)
    H = J.hessian(w)
    expected = differences(J.gradient, w, 1e-3 * loss.temperature)
    assert_allclose(H, expected, atol=1e-6 * J.smoothness)
    assert_array_equal(H, H.T)
    assert_allclose(J.hessian_product(w, d), H @ d, atol=1e-9 * J.smoothness)
    eigenvalues = np.linalg.eigvalsh(H)
    assert eigenvalues.min() >= J.strong_convexity * (1 - 1e-6)
    assert eigenvalues.max() <= J.smoothness
    assert_array_equal(kept, (center, linear))


@pytest.mark.parametrize("loss", [*SMOOTH.values(), *HINGES.values()])
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_null_rows_contribute_exactly_nothing(loss, layout):
    X, codes = data("random", n=30)
    null = np.arange(30) % 3 == 0
    junk = X.copy()
    junk[null] = 1e300
    junk[0] = np.nan
    w = np.random.default_rng(0).normal(size=4 * loss.n_outputs)
    found = []
    for rows, labels in ((X, codes), (junk, np.where(null, 0, codes))):
        J = objective(as_layout(rows, layout), labels, loss, null=null)
        found.append((*J.value_and_gradient(w), J.gradient(w)))
        if math.isfinite(loss.smoothness):
            found[-1] += (J.hessian(w), J.hessian_product(w, w))
        else:
            found[-1] += J.duality_gap(J.smoothed(0.1), w, w)
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)


def test_weighted_grams_are_sums_of_outer_products():
    X, codes = data("random", n=50)
    for layout in ("C", "F", "float32", "csr"):
        for intercept in (0.0, 0.5):
            (chunk,) = objective(
                as_layout(X, layout), codes, LogisticLoss(), intercept=intercept
            ).rows.chunks
            V = chunk.explicit()
            V = V.toarray() if sparse.issparse(V) else V
            weights = np.random.default_rng(0).uniform(size=50)
            for cut in (0.0, 0.9, 2.0):
                weights[weights < cut] = 0.0
                expected = sum(c * np.outer(v, v) for c, v in zip(weights, V, strict=True))
                gram = chunk.weighted_gram(weights)
                assert_allclose(gram, expected, atol=1e-12)
                assert gram.dtype == np.float64


def exact_minimiser(J, w):
    """Polish by Newton's method on dense rows, in formulas of its own."""
    V, target = J.explicit()
    V = np.asarray(V.todense() if sparse.issparse(V) else V, dtype=np.longdouble)
    K, T = J.loss.n_outputs, np.longdouble(J.loss.temperature)
    w = w.astype(np.longdouble)
    for _ in range(30):
        z = V @ w.reshape(K, -1).T
        if K == 1:
            z = np.hstack([z - J.loss.margin * target[:, None], 0 * z])
            own = ((1 - target) / 2).astype(int)
        else:
            own = target
            z[np.arange(len(z)), own] -= J.loss.margin
        s = np.exp((z - z.max(axis=1, keepdims=True)) / T)
        s /= s.sum(axis=1, keepdims=True)
        r = s - np.eye(s.shape[1])[own]
        m = K
        G = r[:, :m].T @ V
        g = G.ravel() + J.ridge * (w - J.center) + J.linear
        A = np.einsum("ik,kl->ikl", s, np.eye(s.shape[1])) - s[:, :, None] * s[:, None, :]
        H = np.einsum("ikl,ip,iq->kplq", A[:, :m, :m] / T, V, V).reshape(len(w), len(w))
        H[np.diag_indices(len(w))] += J.ridge
        w = w - np.linalg.solve(H.astype(float), g.astype(float))
    return w.astype(float), float(np.linalg.norm(g) / J.ridge)


@pytest.mark.covering
@every_smooth
@every_kind
@pytest.mark.parametrize("ridge", [1e-2, 10.0])
def test_smooth_minimisers_are_as_near_as_certified(loss, kind, ridge):
    X, codes = data(kind)
    J = objective(X, codes, loss, ridge)
    best, error = exact_minimiser(J, minimize_smooth(J, reachable_tolerance(J.bounds)))
    assert np.linalg.norm(best) <= J.bounds.reach
    for tolerance in (reachable_tolerance(J.bounds), 1e-3 / ridge):
        assert error <= tolerance / 100
        for solver in ("newton", "lbfgs"):
            w = minimize_smooth(J, tolerance, solver)
            assert np.linalg.norm(w - best) <= tolerance
            stated = smooth.distance_bound(J, w, J.gradient(w))
            assert np.linalg.norm(w - best) <= stated <= tolerance


@pytest.mark.covering
@every_hinge
@every_kind
@pytest.mark.parametrize("ridge", [1e-2, 10.0])
def test_hinge_minimisers_are_as_near_as_certified(loss, kind, ridge):
    X, codes = data(kind)
    J = objective(X, codes, loss, ridge)
    least = reachable_tolerance(J.bounds)
    best = minimize_nonsmooth(J, least)
    assert np.linalg.norm(best) <= J.bounds.reach
    assert least <= 1e-4 * loss.lipschitz * ROW_NORM / ridge
    for tolerance in (100 * least, 0.1 * loss.lipschitz * ROW_NORM / ridge):
        w = minimize_nonsmooth(J, tolerance)
        assert np.linalg.norm(w - best) <= tolerance + least
        # J is least at `best`, and grows as strong convexity says
        excess = J.value_and_gradient(w)[0] - J.value_and_gradient(best)[0]
        assert excess >= ridge / 2 * max(np.linalg.norm(w - best) - least, 0) ** 2 - 1e-9


@pytest.mark.parametrize("loss", [*SMOOTH.values(), *HINGES.values()])
def test_cvxpy_agrees(loss):
    X, codes = data("random", n=60)
    center, linear = np.random.default_rng(0).normal(size=(2, 4 * loss.n_outputs))
    J = objective(X, codes, loss, 0.3, center=center, linear=linear)
    minimise = minimize_smooth if math.isfinite(loss.smoothness) else minimize_nonsmooth
    least = reachable_tolerance(J.bounds)
    best = minimise(J, least)
    raw = smooth.solve_with_cvxpy(J, np.zeros(J.size), None)
    assert np.linalg.norm(raw - best) <= 1e-3
    assert np.linalg.norm(minimise(J, 10 * least, "cvxpy") - best) <= 11 * least
    assert_array_equal(J.center, center)


def test_any_start_will_do():
    X, codes = data("random")
    for loss in (LogisticLoss(), HingeLoss()):
        J = objective(X, codes, loss, 0.1)
        minimise = minimize_smooth if loss.temperature else minimize_nonsmooth
        best = minimise(J, 1e-3)
        for start in (np.full(4, 1e3), np.full(4, -1e8), np.full(4, 1e160)):
            kept = start.copy()
            assert np.linalg.norm(minimise(J, 1e-3, start=start) - best) <= 2e-3
            assert_array_equal(start, kept)


def test_large_hessians_are_not_formed(monkeypatch):
    X, codes = data("random")
    J = objective(X, codes, LogisticLoss(), 0.1)
    best = minimize_smooth(J, 1e-7)
    monkeypatch.setattr(smooth, "DENSE_SIZE", 2)
    monkeypatch.setattr(J, "hessian", None)
    called = spy(monkeypatch, smooth, "accelerated")
    assert np.linalg.norm(minimize_smooth(J, 1e-7) - best) <= 2e-7
    assert not called


def spy(monkeypatch, module, name):
    called, function = [], getattr(module, name)

    def spied(*args):
        called.append(name)
        return function(*args)

    monkeypatch.setattr(module, name, spied)
    return called


def fails(*args):
    warnings.warn("a solver's", stacklevel=1)
    raise FloatingPointError


def lies(J, w, *args):
    return w + 1e3


def explodes(J, w, *args):
    return w + 1e307


def stalls(J, w, *args):
    return w


def breaks(J, w, *args):
    return np.full_like(w, np.nan)


FAILURES = (fails, lies, explodes, stalls, breaks)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("solver", SMOOTH_SOLVERS)
def test_a_solver_that_fails_is_replaced(failure, solver, monkeypatch):
    X, codes = data("random")
    J = objective(X, codes, LogisticLoss(), 5.0)
    best = minimize_smooth(J, 1e-9)
    monkeypatch.setitem(SMOOTH_SOLVERS, solver, failure)
    called = spy(monkeypatch, smooth, "cooled_newton")
    assert np.linalg.norm(minimize_smooth(J, 1e-9, solver) - best) <= 2e-9
    # nothing but the fall-back is left
    for name in ("newton", "cooled_newton"):
        monkeypatch.setattr(smooth, name, failure)
    called = spy(monkeypatch, smooth, "accelerated")
    w = minimize_smooth(J, 1e-9, solver)
    assert called
    assert np.linalg.norm(w - best) <= 2e-9
    assert smooth.distance_bound(J, w, J.gradient(w)) <= 1e-9


@pytest.mark.covering
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("loss", [HingeLoss(), HingeLoss(3)])
def test_a_homotopy_that_fails_is_replaced(failure, loss, monkeypatch):
    X, codes = data("random", n=20)
    J = objective(X, codes, loss, 10.0)
    best = minimize_nonsmooth(J, 1e-5)

    def cool(J, w, goal, first):
        return failure(J, w), False

    monkeypatch.setattr(nonsmooth, "cool", cool)
    called = spy(monkeypatch, nonsmooth, "accelerated")
    w = minimize_nonsmooth(J, 0.02)
    assert called
    assert np.linalg.norm(w - best) <= 0.02
    monkeypatch.setattr(nonsmooth, "solve_with_cvxpy", failure)
    assert np.linalg.norm(minimize_nonsmooth(J, 0.02, "cvxpy") - best) <= 0.02


@every_smooth
def test_the_fall_back_keeps_its_theorem_without_looking(loss):
    X, codes = data("separable", n=40)
    J = objective(X, codes, loss, 2.0)
    w = smooth.accelerated(J, 1e-5, lambda *_: False)
    assert np.linalg.norm(J.gradient(w)) <= 1e-5


def test_gap_bound_is_the_gap_between_primal_and_dual():
    X, codes = data("random", n=30)
    for loss in HINGES.values():
        J = objective(X, codes, loss, 0.5, linear=np.linspace(-1, 1, 4 * loss.n_outputs))
        w = np.random.default_rng(0).normal(size=J.size)
        best = minimize_nonsmooth(J, 1e-3)
        low = J.value_and_gradient(best)[0]  # at least the minimum
        for T in (1.0, 1e-2):
            bound = sum(nonsmooth.gap_bound(J, J.smoothed(T), w, np.zeros_like(w)))
            assert bound >= J.value_and_gradient(w)[0] - low
            # at the minimiser, and a low temperature, it is small
            near = J.smoothed(1e-6)
            v = minimize_smooth(near, 2 * reachable_tolerance(near.bounds))
            assert sum(nonsmooth.gap_bound(J, near, v, np.zeros_like(w))) <= 1e-4


def test_rounding_bounds_hold_and_are_public():
    X, codes = data("random", n=500)
    J = objective(X, codes, LogisticLoss(), 1e-3)
    w = np.random.default_rng(0).normal(size=4) * 50
    V, target = J.explicit()
    V, w_wide = V.astype(np.longdouble), w.astype(np.longdouble)
    exact = V.T @ (-target / (1 + np.exp(target * (V @ w_wide)))) + J.ridge * w_wide
    error = float(np.linalg.norm(J.gradient(w) - exact))
    assert error <= J.bounds.gradient_error(np.linalg.norm(w))
    other = objective(*data("separable", n=500, seed=5), LogisticLoss(), 1e-3)
    assert J.bounds == other.bounds
    least = reachable_tolerance(J.bounds)
    assert least < reachable_tolerance(replace(J.bounds, n_rows=10**6))
    assert least < reachable_tolerance(replace(J.bounds, linear_norm=1e9))


@pytest.mark.sample(1)
@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss()])
def test_many_rows(loss):
    n, d = 100_000, 20
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    codes = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    J = objective(X, codes, loss, 10.0)
    minimise = minimize_smooth if loss.temperature else minimize_nonsmooth
    tolerance = max(reachable_tolerance(J.bounds), 1e-3 * ROW_NORM / 10.0)
    w = minimise(J, tolerance)
    best = minimise(J, max(reachable_tolerance(J.bounds), tolerance / 10))
    assert np.linalg.norm(w - best) <= 1.1 * tolerance
