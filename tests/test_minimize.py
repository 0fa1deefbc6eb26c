# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisation of regularised losses: certificates, clipped losses, failures."""

import math
import time
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import brentq, minimize
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, solvers
from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import (
    HuberLoss,
    PinballLoss,
    PowerLoss,
    QuarticLoss,
    SquaredLoss,
)
from skdp._minimize import nonsmooth, smooth
from skdp._minimize.nonsmooth import minimize_nonsmooth
from skdp._minimize.queries import Minimizer, RowObjective, objective_bounds
from skdp._minimize.smooth import SMOOTH_SOLVERS, lbfgs, minimize_smooth, reachable_tolerance
from skdp.privacy import gdp_mu
from skdp.solvers import output
from skdp.solvers.base import Problem
from tests import _audit
from tests._neighbours import as_dense, as_layout, rows_in_ball
from tests._solvers import problem_of
from tests.linear_model.test_classifiers import label_flip
from tests.test_claims_erm import make

# Objectives against naive sums; minimisers, their certificates, and their fall-backs.


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


@pytest.mark.sample(3)
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
    assert eigenvalues.min() >= J.bounds.ridge * (1 - 1e-6)
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
    V, target, *_ = J.explicit()
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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


@pytest.mark.sample(6, 10)
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


@pytest.mark.sample(1)
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


class PanicException(BaseException):
    """What compiled solvers raise: no Exception."""


@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss()])
def test_a_panic_of_a_compiled_solver_is_a_failure_and_an_interrupt_is_not(loss, monkeypatch):
    X, codes = data("random", n=20)
    J = objective(X, codes, loss, 10.0)
    minimise = minimize_smooth if loss.temperature else minimize_nonsmooth
    best = minimise(J, 1e-5)
    for error in (PanicException("a private value"), KeyboardInterrupt()):

        def broken(*args, error=error):
            raise error

        monkeypatch.setattr(nonsmooth, "solve_with_cvxpy", broken)
        monkeypatch.setitem(SMOOTH_SOLVERS, "cvxpy", broken)
        if isinstance(error, KeyboardInterrupt):
            with pytest.raises(KeyboardInterrupt):
                minimise(J, 1e-5, "cvxpy")
        else:
            assert np.linalg.norm(minimise(J, 1e-5, "cvxpy") - best) <= 2e-5


@pytest.mark.sample(1)
@every_smooth
def test_the_fall_back_keeps_its_theorem_without_looking(loss):
    X, codes = data("separable", n=40)
    J = objective(X, codes, loss, 2.0)
    w = smooth.accelerated(J, 1e-5, lambda *_: False)
    assert np.linalg.norm(J.gradient(w)) <= 1e-5


@pytest.mark.full
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
    V, target, *_ = J.explicit()
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


# Minimisers of clipped losses and of losses of regression, on heavy-tailed data.


NORM = math.hypot(1.0, 0.5)
CLIPPED_SMOOTH = {
    "squared": SquaredLoss(),
    "quartic": QuarticLoss(),
    "power 1.5": PowerLoss(1.5),
    "power 3": PowerLoss(3.0),
    "huber": HuberLoss(0.4),
    "logistic": LogisticLoss(),
    "sharp": LogisticLoss(1.0, 0.02),
}
KINKED = {"absolute": PinballLoss(), "pinball": PinballLoss(0.85), "hinge": HingeLoss()}
CLIPPED_KINDS = ("t", "pareto", "huge", "equal", "zero", "zero rows", "tiny rows", "one row", "csr")
every_clipped_smooth = pytest.mark.parametrize("base", CLIPPED_SMOOTH.values(), ids=CLIPPED_SMOOTH)
every_kinked = pytest.mark.parametrize("base", KINKED.values(), ids=KINKED)
every_loss = pytest.mark.parametrize(
    "base", [*CLIPPED_SMOOTH.values(), *KINKED.values()], ids=[*CLIPPED_SMOOTH, *KINKED]
)
every_clipped_kind = pytest.mark.parametrize("kind", CLIPPED_KINDS)


def clipped_data(kind, base, n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    n = 1 if kind == "one row" else n
    X = rng.normal(size=(n, d)) / 2
    y = X @ rng.normal(size=d) + rng.standard_t(2.1, size=n)
    if kind == "pareto":
        y, X = rng.pareto(1.2, size=n) * rng.choice([-1, 1], n), X * (1 + rng.pareto(2.1, (n, 1)))
    elif kind == "huge":
        y[::5], y[1::5] = 1e300, -1e300
    elif kind in ("equal", "zero"):
        y[:] = kind == "equal"
    elif kind == "zero rows":
        X[::2] = 0.0
    elif kind == "tiny rows":
        X[::2] *= 1e-90
        X[1::4] *= 1e-5
    elif kind == "csr":
        X = sparse.csr_array(X * (rng.uniform(size=X.shape) < 0.5))
    if isinstance(base, (LogisticLoss, HingeLoss)):
        y = np.where(y > 0.5, 1.0, -1.0)
    return X, y


def clipped_objective(X, y, loss, ridge=1.0, intercept=0.5, **options):
    null = np.arange(len(y)) % 9 == 4
    rows = rows_in_ball(X, y, null, 1.0, intercept)
    n_coefs = X.shape[1] + bool(intercept)
    norm = math.hypot(1.0, intercept)
    return RowObjective(rows, loss, ridge=ridge, n_coefs=n_coefs, row_norm=norm, **options)


def clipped(base, kind, clip=0.3, ridge=1.0, intercept=0.5, **options):
    X, y = clipped_data(kind, base)
    loss = ClippedLoss(base, clip, math.hypot(1.0, intercept))
    return clipped_objective(X, y, loss, ridge, intercept, **options)


def naive(base, z, y):
    """Return derivatives of the loss in z, in the precision of z, by formulas of their own."""
    u = z - y
    if isinstance(base, LogisticLoss):
        with np.errstate(over="ignore"):
            return -y / (1 + np.exp(-(base.margin - y * z) / base.temperature))
    return {
        SquaredLoss: lambda: u,
        QuarticLoss: lambda: u**3,
        PowerLoss: lambda: power_slope(base.power, u),
        HuberLoss: lambda: np.maximum(np.minimum(u, getattr(base, "threshold", 0)), -0.4),
    }[type(base)]()


def power_slope(p, u):
    size = np.abs(u)
    steep = size ** (p - 1) if p > 2 else np.where(size < 0.01, 10 * size, np.sqrt(size))
    return np.sign(u) * steep


def exact_gradient(J, base, w):
    """Return the gradient at w in extended precision, row by row as the definition says."""
    V, y, *_ = J.explicit()
    V = np.asarray(V.todense() if sparse.issparse(V) else V, dtype=np.longdouble)
    w = w.astype(np.longdouble)
    norm = np.maximum(np.sqrt((V**2).sum(axis=1)), 1e-100)
    limit = J.loss.clip / norm
    r = naive(base, V @ w, y.astype(np.longdouble))
    return V.T @ np.maximum(np.minimum(r, limit), -limit) + J.ridge * (w - J.center) + J.linear


@pytest.mark.sample(2)
@every_clipped_smooth
@every_clipped_kind
@pytest.mark.parametrize("clip", [0.02, 3.0])
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_smooth_minimisers_of_clipped_losses_are_as_near_as_certified(
    base, kind, clip, intercept, monkeypatch
):
    called = spy(monkeypatch, smooth, "accelerated")
    for ridge in (0.05, 20.0):
        J = clipped(base, kind, clip, ridge, intercept)
        least = reachable_tolerance(J.bounds)
        assert least <= 1e-5 * J.loss.lipschitz * NORM / ridge
        for tolerance in (least, 1e-2 * J.loss.lipschitz / ridge):
            for solver in ("newton", "lbfgs"):
                w = minimize_smooth(J, tolerance, solver)
                g = exact_gradient(J, base, w)
                assert np.linalg.norm(g.astype(float)) / ridge <= tolerance
                assert np.linalg.norm(w) <= J.bounds.reach + tolerance
    # the fall-back is there, but has not been needed
    assert not called


@every_clipped_smooth
def test_rounding_bounds_hold_for_targets_of_any_size(base):
    for kind in ("huge", "tiny rows", "pareto"):
        for scale in (1e-3, 1.0, 50.0):
            J = clipped(base, kind, 0.7)
            w = np.random.default_rng(0).normal(size=4) * scale
            error = np.linalg.norm((J.gradient(w) - exact_gradient(J, base, w)).astype(float))
            assert error <= J.bounds.gradient_error(np.linalg.norm(w))


def dual_minimiser(J):
    """Return the minimiser of a kinked objective, by its dual problem, and a bound on its error.

    The dual problem is a quadratic one over the box of residuals.
    """
    V, y, *_ = J.explicit()
    V = np.asarray(V.todense() if sparse.issparse(V) else V)
    limit = J.loss.clip / np.maximum(np.linalg.norm(V, axis=1), 1e-100)
    if isinstance(J.loss.loss, HingeLoss):
        a, b = np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)
    else:
        q = J.loss.loss.quantile
        a, b = np.full(len(y), -2 * q), np.full(len(y), 2 * (1 - q))
    a, b = np.maximum(a, -limit), np.minimum(b, limit)

    def dual(r):
        s = V.T @ r
        w = J.center - s / J.ridge
        return s @ s / (2 * J.ridge) - s @ J.center + r @ y, y - V @ w

    # rounded targets: the dual of a problem that is nearly the same
    options = {"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-11}
    box = np.column_stack([a, b])
    r = minimize(dual, np.zeros(len(y)), jac=True, bounds=box, options=options).x
    w = J.center - V.T @ r / J.ridge
    u = V @ w - y
    gap = np.where(u < 0, (a - r) * u, (b - r) * u).sum()
    return w, math.sqrt(2 * gap / J.ridge)


@pytest.mark.sample(1)
@every_kinked
@every_clipped_kind
@pytest.mark.parametrize("clip", [0.02, 3.0])
def test_kinked_minimisers_are_as_near_as_certified(base, kind, clip, monkeypatch):
    called = spy(monkeypatch, nonsmooth, "accelerated")
    for ridge in (0.05, 20.0):
        center = np.linspace(-1, 1, 4)
        J = clipped(base, kind, clip, ridge, center=center)
        unit = J.loss.lipschitz * NORM / ridge
        least = reachable_tolerance(J.bounds)
        assert least <= 1e-2 * unit
        best = minimize_nonsmooth(J, least)
        if kind != "huge":
            other, error = dual_minimiser(J)
            assert error <= 0.03 * unit
            assert np.linalg.norm(best - other) <= least + error
        for tolerance in (3 * least, 0.1 * unit):
            w = minimize_nonsmooth(J, tolerance)
            assert np.linalg.norm(w - best) <= tolerance + least
        assert_array_equal(center, J.center)
    assert not called


@pytest.mark.sample(4)
@every_clipped_smooth
def test_scipy_agrees(base):
    for kind in ("t", "pareto"):
        J = clipped(base, kind, 0.5, 0.3)
        w = minimize_smooth(J, reachable_tolerance(J.bounds))
        options = {"gtol": 1e-9, "maxiter": 2000}
        found = minimize(
            J.value_and_gradient, np.zeros(4), jac=True, method="BFGS", options=options
        )
        assert np.linalg.norm(found.x - w) <= 1e-6


@pytest.mark.sample(4)
@every_loss
def test_unclipped_losses_with_a_lipschitz_constant_do_without_a_clip(base):
    if not math.isfinite(base.lipschitz):
        return
    X, y = clipped_data("huge", base)
    J, K = (clipped_objective(X, y, loss) for loss in (base, ClippedLoss(base, 1e6, NORM)))
    minimise = minimize_smooth if math.isfinite(base.smoothness) else minimize_nonsmooth
    tolerance = reachable_tolerance(J.bounds)
    assert np.linalg.norm(minimise(J, tolerance) - minimise(K, tolerance)) <= 2 * tolerance


@pytest.mark.sample(3)
@every_loss
def test_objectives_do_not_depend_on_the_unit_of_targets(base):
    if isinstance(base, (LogisticLoss, HingeLoss)) or base == PowerLoss(1.5):
        # margins, and the parabola of powers below 2, have a unit
        return
    X, y = clipped_data("t", base)
    powers = {SquaredLoss: 1, PowerLoss: 2, QuarticLoss: 3, HuberLoss: 1, PinballLoss: 0}
    power = powers[type(base)]
    for unit in (1e-12, 1e9):
        other = replace(base, threshold=0.4 * unit) if isinstance(base, HuberLoss) else base
        J = clipped_objective(X, y, ClippedLoss(base, 0.3, NORM), 0.5)
        K = clipped_objective(
            X, y * unit, ClippedLoss(other, 0.3 * unit**power, NORM), 0.5 * unit ** (power - 1)
        )
        least = reachable_tolerance(J.bounds)
        assert reachable_tolerance(K.bounds) == pytest.approx(least * unit)
        minimise = minimize_smooth if math.isfinite(J.loss.smoothness) else minimize_nonsmooth
        assert_allclose(
            minimise(K, least * unit * 2) / unit, minimise(J, 2 * least), atol=4 * least
        )


@every_loss
def test_only_null_rows_and_rows_of_zeros_leave_the_center(base):
    X, y = np.zeros((9, 3)), clipped_data("huge", base, 9)[1]
    J = clipped_objective(X, y, ClippedLoss(base, 0.3, 1.0), 1.0, 0.0, center=np.ones(3))
    minimise = minimize_smooth if math.isfinite(J.loss.smoothness) else minimize_nonsmooth
    tolerance = reachable_tolerance(J.bounds)
    assert np.linalg.norm(minimise(J, tolerance) - 1.0) <= tolerance


@pytest.mark.covering
@pytest.mark.parametrize("failure", FAILURES)
@every_clipped_smooth
def test_a_solver_that_fails_on_clipped_losses_is_replaced(base, failure, monkeypatch):
    J = clipped(base, "huge", 0.3, 5.0)
    best = minimize_smooth(J, 1e-9)
    for name in SMOOTH_SOLVERS:
        monkeypatch.setitem(SMOOTH_SOLVERS, name, failure)
    for name in ("newton", "cooled_newton", "lbfgs"):
        monkeypatch.setattr(smooth, name, failure)
    called = spy(monkeypatch, smooth, "accelerated")
    assert np.linalg.norm(minimize_smooth(J, 1e-9) - best) <= 2e-9
    assert called


@pytest.mark.sample(3)
@every_kinked
@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("kind", ["t", "huge"])
def test_cvxpy_agrees_on_losses_with_two_slopes(base, clip, kind):
    X, y = clipped_data(kind, base)
    J = clipped_objective(X, y, base if clip is None else ClippedLoss(base, clip, NORM), 0.5)
    least = reachable_tolerance(J.bounds)
    best = minimize_nonsmooth(J, least)
    if kind == "t":
        raw = smooth.solve_with_cvxpy(J, np.zeros(J.size), None)
        assert np.linalg.norm(raw - best) <= 1e-3
    # targets as large as floats are defeat cvxpy, but not what comes after it
    assert np.linalg.norm(minimize_nonsmooth(J, 10 * least, "cvxpy") - best) <= 11 * least


@pytest.mark.sample(1)
@pytest.mark.parametrize("failure", FAILURES)
@every_kinked
def test_a_homotopy_that_fails_on_clipped_losses_is_replaced(base, failure, monkeypatch):
    X, y = clipped_data("huge", base, 20)
    J = clipped_objective(X, y, ClippedLoss(base, 0.5, NORM), 10.0)
    best = minimize_nonsmooth(J, 1e-5)
    monkeypatch.setattr(nonsmooth, "cool", lambda J, w, goal, first: (failure(J, w), False))
    called = spy(monkeypatch, nonsmooth, "accelerated")
    w = minimize_nonsmooth(J, 0.01)
    assert called
    assert np.linalg.norm(w - best) <= 0.01 + 1e-5


@pytest.mark.sample(3)
@every_clipped_smooth
def test_the_fall_back_for_clipped_losses_keeps_its_theorem_without_looking(base):
    J = clipped(base, "huge", 0.3, 2.0)
    w = smooth.accelerated(J, 1e-5, lambda *_: False)
    assert np.linalg.norm(J.gradient(w)) <= 1e-5


@every_kinked
def test_the_last_temperature_is_low_enough(base):
    J = clipped(base, "huge", 0.3, 2.0)
    goal = 1e-4
    smoothed = J.smoothed(nonsmooth.last_temperature(J, goal))
    w = minimize_smooth(smoothed, max(1e-7, reachable_tolerance(smoothed.bounds)))
    gap, rest = nonsmooth.gap_bound(J, smoothed, w, np.zeros(4))
    assert gap <= goal / 4 + J.bounds.gap_error(np.linalg.norm(w))
    assert rest <= goal / 4


@every_loss
def test_bounds_are_public_and_cover_what_they_bound(base):
    J, K = clipped(base, "t"), clipped(base, "huge")
    assert J.bounds == K.bounds
    assert J.bounds.start_gradient == pytest.approx(80 * min(0.3, base.lipschitz * NORM))
    regression = not isinstance(base, (LogisticLoss, HingeLoss))
    assert math.isinf(J.bounds.start_loss) == regression
    assert J.bounds.reach <= J.bounds.start_gradient
    assert np.linalg.norm(J.gradient(np.zeros(4))) <= J.bounds.start_gradient


@pytest.mark.sample(5)
@every_loss
def test_minimizers_of_clipped_losses(base):
    X, y = clipped_data("huge", base)
    rows = rows_in_ball(X, y, np.zeros(80, dtype=bool), 1.0, 0.5)
    loss = ClippedLoss(base, 0.3, NORM)
    values = []
    for solver in ("newton", "lbfgs"):
        q = Minimizer(loss, 1.5, 4, NORM, 1e-2, solver)
        one, other = (q.sensitivity(adjacency, 80) for adjacency in ("zero-out", "replace-one"))
        assert one.l2 == pytest.approx(0.2 + 0.02)
        assert other.l2 == pytest.approx(0.4 + 0.02)
        assert other.l1 == pytest.approx(2 * 0.4 + 2 * 0.02)
        assert other.theorem.startswith("2 clip / ridge")
        assert q.name == f"minimiser of {type(base).__name__} clipped to 0.3 with ridge 1.5"
        values.append(q.evaluate(rows))
        assert np.abs(values[-1]).max() <= other.bound
    assert np.linalg.norm(values[0] - values[1]) <= 0.02


@pytest.mark.sample(3)
@every_loss
def test_whatever_null_rows_have_for_targets_is_not_read(base):
    X, y = clipped_data("t", base)
    X, y = X.astype(np.float32), y.astype(np.float32)
    null, values = np.arange(80) % 7 == 0, []
    X.flags.writeable = False
    for junk in (1.0, np.nan, np.inf, -1e300):
        target = y.astype(np.float64)
        target[null] = junk
        target.flags.writeable = False
        rows = rows_in_ball(X, target, null, 1.0, 0.5)
        q = Minimizer(ClippedLoss(base, 0.3, NORM), 1.5, 4, NORM, 1e-2)
        with np.errstate(all="raise", under="ignore"):
            values.append(q.evaluate(rows))
    for value in values[1:]:
        assert_array_equal(value, values[0])


@pytest.mark.full
def test_many_rows_of_clipped_losses():
    rng = np.random.default_rng(0)
    n, d = 20_000, 10
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    y = X @ rng.normal(size=d) + rng.standard_t(2.1, size=n)
    for base in (SquaredLoss(), PinballLoss()):
        J = clipped_objective(X, y, ClippedLoss(base, 0.5, NORM), 100.0)
        minimise = minimize_smooth if base.smoothness == 1.0 else minimize_nonsmooth
        w = minimise(J, 0.1 * 0.5 / 100.0)
        best = minimise(J, max(reachable_tolerance(J.bounds), 0.05 * 0.5 / 100.0))
        assert np.linalg.norm(w - best) <= 0.15 * 0.5 / 100.0


@pytest.mark.parametrize("base", [LogisticLoss(), LogisticLoss(1.0, 0.5)], ids=["plain", "hinge"])
@pytest.mark.parametrize("clip", [1e-12, 1e-9])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_residuals_below_the_rounding_of_one_keep_their_digits(base, clip, solver):
    # rows that are fitted so well that the difference of tanh and 1 has one digit, or none
    for depth in (25.0, 35.0, 40.0):
        n, center = 1000, np.array([base.margin + depth * base.temperature])
        ridge = n * math.exp(-depth)
        rows = rows_in_ball(np.ones((n, 1)), np.ones(n), np.zeros(n, dtype=bool), 1.0, 0.0)
        loss = ClippedLoss(base, clip, 1.0)
        J = RowObjective(rows, loss, ridge=ridge, n_coefs=1, row_norm=1.0, center=center)
        tolerance = reachable_tolerance(J.bounds)

        def slope(w, n=n, ridge=ridge, center=center):
            share = min(1 / (1 + math.exp((w - base.margin) / base.temperature)), clip)
            return ridge * (w - center[0]) - n * share

        best = brentq(slope, center[0], center[0] + 2, xtol=1e-15, rtol=1e-15)
        assert abs(minimize_smooth(J, tolerance, solver)[0] - best) <= tolerance + 1e-13


def test_kinks_that_nearly_touch_do_not_need_the_fall_back():
    # the slope between 0 and 1e-10 leads far away, to where the penalty alone would stop
    v = np.array(
        [1, -1, 0.3, -1, 1, -1, -1, 1, -1, 1, 1, -1, 1e-3, 1e-3, 1, 1, 0.3, 1e-50, -1, 0.3]
    )
    y = np.array([-1e150, -1e-300, -1e300, 0, 1e-10, -1e150, 1e300, -1e300, -1e300, -1, 1e-10,
                  1e300, 1e300, 1e-10, 1e300, -1e300, -1e10, -1e-10, 1.7e308, 1e-300])  # fmt: skip
    X, y = np.append(v, np.zeros(20))[:, None], np.append(y, np.zeros(20))
    rows = rows_in_ball(X, y, np.arange(40) >= len(v), 1.0, 0.0)
    loss = ClippedLoss(PinballLoss(), 1e-5, 1.0)
    J = RowObjective(rows, loss, ridge=4e-8, n_coefs=1, row_norm=1.0, center=np.array([36.9]))
    goal = J.ridge * reachable_tolerance(J.bounds) ** 2 / 2
    w, met = nonsmooth.cool(J, J.center.copy(), goal, nonsmooth.first_temperature(J))
    assert met
    assert abs(w[0]) < 1e-3


# Quasi-Newton steps: their preconditioner, their certificate, and rounding on sparse rows.


LOSSES = {
    "logistic": LogisticLoss(),
    "sharp": LogisticLoss(1.0, 1e-2),
    "softmax": SoftmaxLoss(3),
    "sharp softmax": SoftmaxLoss(3, 1.0, 1e-2),
}
every_lbfgs_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@pytest.mark.sample(6, 28)
@every_lbfgs_loss
@pytest.mark.parametrize("layout", ["C", "F", "float32", "csr", "csr duplicates"])
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_the_preconditioner_is_the_diagonal_of_the_hessian(loss, layout, intercept):
    X, codes = data("random", n=50)
    J = objective(as_layout(X, layout), codes, loss, ridge=0.3, intercept=intercept)
    w = 0.1 * np.random.default_rng(0).normal(size=J.size)
    assert_allclose(J.hessian_diagonal(w), J.hessian(w).diagonal(), rtol=1e-6)


def unscaled(n_rows=400, n_features=60, seed=0):
    """Return columns whose scales differ by orders of magnitude, and codes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** -rng.uniform(0, 4, n_features)
    return X, (X @ rng.normal(size=n_features) > 0).astype(int)


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticLoss(1.0, 0.1), SoftmaxLoss(3)])
def test_the_certificate_is_reached_without_help(loss, monkeypatch):
    X, codes = unscaled()
    J = objective(X, codes, loss, ridge=0.1)
    helped = []
    for name in ("newton", "cooled_newton", "accelerated"):
        monkeypatch.setattr(smooth, name, lambda J, w, *_, name=name: helped.append(name) or w)
    w = minimize_smooth(J, reachable_tolerance(J.bounds), "lbfgs")
    assert smooth.distance_bound(J, w, J.gradient(w)) <= reachable_tolerance(J.bounds)
    assert helped == []


@pytest.mark.slow
def test_memory_that_rounding_has_spoilt_is_thrown_away():
    X, codes = unscaled()
    J = objective(X, codes, LogisticLoss(), ridge=1e-3)
    # a tolerance that cannot be had: the last point is as good as floats are
    w = lbfgs(J, np.zeros(J.size), lambda *_: False)
    assert np.linalg.norm(J.gradient(w)) < 1e-10


def test_rounding_of_a_sparse_row_is_that_of_its_non_zeros():
    rng = np.random.default_rng(0)
    loss, d, s = LogisticLoss(), 10_000, 8
    known = {"n_rows": 5, "n_coefs": d, "row_norm": 1.0, "ridge": 1.0}
    bounds = objective_bounds(loss, row_terms=s, **known)
    assert bounds.n_coefs == s
    dense = objective_bounds(loss, **known)
    assert bounds.prediction_error(1.0) < dense.prediction_error(1.0) / 200
    assert reachable_tolerance(bounds) < reachable_tolerance(dense)
    assert objective_bounds(loss, row_terms=2 * d, **known).n_coefs == d
    for layout in ("C", "csr"):
        X = np.zeros((5, d))
        for i in range(5):
            X[i, rng.choice(d, s, replace=False)] = rng.normal(size=s) / 4 / math.sqrt(s)
        J = objective(
            as_layout(X, layout), np.ones(5, int), loss, intercept=0.0, null=np.zeros(5, bool)
        )
        w = 1e3 * rng.normal(size=d)
        (chunk,) = J.rows.chunks
        exact = [
            float(sum(Fraction(X[i, j]) * Fraction(w[j]) for j in np.flatnonzero(X[i])))
            for i in range(5)
        ]
        error = np.abs(chunk.predict(w) - exact).max()
        assert error <= bounds.prediction_error(np.linalg.norm(w))


# A solver that fails leaves no trace: no warning, no other ledger, no worse certificate.


rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(12, 2))
y = np.arange(12) % 2


def raises(objective, start, met):
    raise np.linalg.LinAlgError(f"a message with a data value: {objective.gradient(start)}")


def warns(objective, start, met):
    warnings.warn(f"did not converge: {objective.gradient(start)}", RuntimeWarning, stacklevel=1)
    np.log(np.zeros(3))
    return start


FIT_FAILURES = {
    "raises": raises,
    "warns": warns,
    "garbage": lambda J, start, met: start + 1e3 * np.sign(J.gradient(start)),
    "huge": lambda J, start, met: np.full(start.shape, 1e300),
    "nan": lambda J, start, met: np.full(start.shape, np.nan),
    "inf": lambda J, start, met: np.full(start.shape, np.inf),
    "shape": lambda J, start, met: np.zeros((3, 7)),
    "None": lambda J, start, met: None,
    "text": lambda J, start, met: "converged",
    "stays": lambda J, start, met: start,
}


def fit(model):
    with _audit.recorded() as additions:
        fitted = clone(model).fit(X, y)
    return fitted, additions


@pytest.mark.sample(4)
@pytest.mark.parametrize("failure", FIT_FAILURES)
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_a_solver_that_fails_leaves_no_trace(
    name, mechanism, solver, failure, monkeypatch, capfd, recwarn
):
    model = make(name, mechanism, solver, C=0.3, smoothing=0.5) if name == "hinge" else make(
        name, mechanism, solver, C=0.3
    )  # fmt: skip
    expected, exact = fit(model)
    before = len(recwarn)
    # whatever is tried first, second and third
    for known in SMOOTH_SOLVERS:
        monkeypatch.setitem(SMOOTH_SOLVERS, known, FIT_FAILURES[failure])
    monkeypatch.setattr(smooth, "newton", FIT_FAILURES[failure])
    monkeypatch.setattr(smooth, "cooled_newton", FIT_FAILURES[failure])
    start = time.perf_counter()
    found, additions = fit(model)
    assert time.perf_counter() - start < 5
    assert set(vars(found)) == set(vars(expected))
    assert found.ledger_ == expected.ledger_
    assert found.privacy_spent_ == expected.privacy_spent_
    assert found.n_iter_ == expected.n_iter_
    assert len(recwarn) == 2 * before
    assert capfd.readouterr() == ("", "")
    # both within the certificate of the same minimiser, and the same noise on top
    gap = np.linalg.norm(additions[-1].statistic - exact[-1].statistic)
    release = found.ledger_.releases[-1]
    paid = release.stated_sensitivity
    if mechanism == "output":
        problem = problem_of(model, 12, 2, 2)
        paid = 2 * problem.tolerance(problem.penalty)
    assert gap <= paid + 2 * release.noise.grid
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3 * abs(expected.coef_).max())


@pytest.mark.sample(5)
@pytest.mark.parametrize("failure", ["raises", "garbage", "nan"])
@pytest.mark.parametrize("solver", ["newton", "phased", "localized"])
def test_the_claim_is_kept_when_every_fast_solver_fails(solver, failure, monkeypatch):
    for known in SMOOTH_SOLVERS:
        monkeypatch.setitem(SMOOTH_SOLVERS, known, FIT_FAILURES[failure])
    monkeypatch.setattr(smooth, "newton", FIT_FAILURES[failure])
    monkeypatch.setattr(smooth, "cooled_newton", FIT_FAILURES[failure])
    model = make("hinge", "output", solver, smoothing=0.5, fit_intercept=False)
    pair = label_flip(6, "replace-one")
    measured = _audit.coupled_mu(lambda data: clone(model).fit(*data), *pair)
    assert 0.3 * gdp_mu(2.0, 1e-5) < measured <= gdp_mu(2.0, 1e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("failure", ["raises", "garbage", "nan", "warns"])
def test_a_homotopy_that_fails_leaves_no_trace_either(failure, monkeypatch, capfd):
    # a coarse tolerance: the fall-back is slow
    monkeypatch.setattr(Problem, "tolerance", lambda *_, **__: 0.05)
    model = make("hinge", "output", "newton", C=0.3)
    expected, exact = fit(model)

    def broken(smoothed, w, enough):
        w = FIT_FAILURES[failure](smoothed, w, None)
        return w, np.zeros_like(w)

    monkeypatch.setattr(nonsmooth, "_newton", broken)
    found, additions = fit(model)
    assert found.ledger_ == expected.ledger_
    assert set(vars(found)) == set(vars(expected))
    assert capfd.readouterr() == ("", "")
    assert np.linalg.norm(additions[0].statistic - exact[0].statistic) <= 2 * 0.05


@pytest.mark.sample(2)
@pytest.mark.parametrize("failure", FIT_FAILURES)
def test_a_cvxpy_that_fails_leaves_no_trace(failure, monkeypatch, capfd):
    model = make("hinge", "output", "auto", C=0.3)
    expected, exact = fit(model)
    asked = []

    def broken(*args):
        asked.append(1)
        return FIT_FAILURES[failure](*args)

    monkeypatch.setattr(nonsmooth, "solve_with_cvxpy", broken)
    found, additions = fit(model)
    assert asked
    assert found.ledger_ == expected.ledger_
    assert set(vars(found)) == set(vars(expected))
    assert capfd.readouterr() == ("", "")
    problem = problem_of(model, 12, 2, 2)
    gap = np.linalg.norm(additions[0].statistic - exact[0].statistic)
    assert gap <= 2 * problem.tolerance(problem.penalty) + 2 * found.ledger_.releases[0].noise.grid


@pytest.mark.parametrize(
    ("estimator", "limit", "kinked"),
    [
        (DPHingeSVM(mechanism="output"), 12 * 3, True),
        (DPHingeSVM(mechanism="output", smoothing=0.5), 12 * 3, False),
        (DPHingeSVM(solver=solvers.Output(minimizer="newton")), 12 * 3, False),
        (DPLogisticRegression(mechanism="output"), 12 * 3, False),
        (DPLpRegressor(p=1, solver="output"), 12 * 3, True),
        (DPLpRegressor(p="huber", solver="output"), 12 * 3, False),
    ],
    ids=str,
)
def test_cvxpy_is_asked_for_few_rows_and_losses_with_kinks(estimator, limit, kinked, monkeypatch):
    asked = []
    monkeypatch.setattr(nonsmooth, "solve_with_cvxpy", lambda *args: asked.append(1))
    model = clone(estimator).set_params(data_norm=3.0, random_state=0)
    if hasattr(model, "classes"):
        model.set_params(classes=(0, 1))
    monkeypatch.setattr(output, "_CVXPY_LIMIT", limit)
    model.fit(X, y)
    assert bool(asked) == kinked
    # one number less
    monkeypatch.setattr(output, "_CVXPY_LIMIT", limit - 1)
    asked.clear()
    clone(model).fit(X, y)
    assert not asked
