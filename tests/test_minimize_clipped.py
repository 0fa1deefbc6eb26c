# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of clipped losses and of losses of regression, on heavy-tailed data."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import brentq, minimize

from skdp._losses.classification import HingeLoss, LogisticLoss
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import HuberLoss, PinballLoss, QuarticLoss, SquaredLoss
from skdp._minimize import nonsmooth
from skdp._minimize import smooth as accelerated
from skdp._minimize import smooth as certified
from skdp._minimize.nonsmooth import minimize_nonsmooth
from skdp._minimize.objective import RowObjective
from skdp._minimize.queries import Minimizer
from skdp._minimize.smooth import SMOOTH_SOLVERS, minimize_smooth, reachable_tolerance
from tests._neighbours import rows_in_ball
from tests.test_minimize import FAILURES, spy

NORM = math.hypot(1.0, 0.5)
SMOOTH = {
    "squared": SquaredLoss(),
    "quartic": QuarticLoss(),
    "huber": HuberLoss(0.4),
    "logistic": LogisticLoss(),
    "sharp": LogisticLoss(1.0, 0.02),
}
KINKED = {"absolute": PinballLoss(), "pinball": PinballLoss(0.85), "hinge": HingeLoss()}
KINDS = ("t", "pareto", "huge", "equal", "zero", "zero rows", "tiny rows", "one row", "csr")
every_smooth = pytest.mark.parametrize("base", SMOOTH.values(), ids=SMOOTH)
every_kinked = pytest.mark.parametrize("base", KINKED.values(), ids=KINKED)
every_loss = pytest.mark.parametrize(
    "base", [*SMOOTH.values(), *KINKED.values()], ids=[*SMOOTH, *KINKED]
)
every_kind = pytest.mark.parametrize("kind", KINDS)


def data(kind, base, n=80, d=3, seed=0):
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


def objective(X, y, loss, ridge=1.0, intercept=0.5, **options):
    null = np.arange(len(y)) % 9 == 4
    rows = rows_in_ball(X, y, null, 1.0, intercept)
    n_coefs = X.shape[1] + bool(intercept)
    norm = math.hypot(1.0, intercept)
    return RowObjective(rows, loss, ridge=ridge, n_coefs=n_coefs, row_norm=norm, **options)


def clipped(base, kind, clip=0.3, ridge=1.0, intercept=0.5, **options):
    X, y = data(kind, base)
    loss = ClippedLoss(base, clip, math.hypot(1.0, intercept))
    return objective(X, y, loss, ridge, intercept, **options)


def naive(base, z, y):
    """Return derivatives of the loss in z, in the precision of z, by formulas of their own."""
    u = z - y
    if isinstance(base, LogisticLoss):
        with np.errstate(over="ignore"):
            return -y / (1 + np.exp(-(base.margin - y * z) / base.temperature))
    return {
        SquaredLoss: lambda: u,
        QuarticLoss: lambda: u**3,
        HuberLoss: lambda: np.maximum(np.minimum(u, getattr(base, "threshold", 0)), -0.4),
    }[type(base)]()


def exact_gradient(J, base, w):
    """Return the gradient at w in extended precision, row by row as the definition says."""
    V, y = J.explicit()
    V = np.asarray(V.todense() if sparse.issparse(V) else V, dtype=np.longdouble)
    w = w.astype(np.longdouble)
    norm = np.maximum(np.sqrt((V**2).sum(axis=1)), 1e-100)
    limit = J.loss.clip / norm
    r = naive(base, V @ w, y.astype(np.longdouble))
    return V.T @ np.maximum(np.minimum(r, limit), -limit) + J.ridge * (w - J.center) + J.linear


@pytest.mark.covering
@every_smooth
@every_kind
@pytest.mark.parametrize("clip", [0.02, 3.0])
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_smooth_minimisers_are_as_near_as_certified(base, kind, clip, intercept, monkeypatch):
    called = spy(monkeypatch, certified, "accelerated")
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


@every_smooth
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
    V, y = J.explicit()
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


@pytest.mark.covering
@every_kinked
@every_kind
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


@every_smooth
def test_scipy_agrees(base):
    for kind in ("t", "pareto"):
        J = clipped(base, kind, 0.5, 0.3)
        w = minimize_smooth(J, reachable_tolerance(J.bounds))
        options = {"gtol": 1e-9, "maxiter": 2000}
        found = minimize(
            J.value_and_gradient, np.zeros(4), jac=True, method="BFGS", options=options
        )
        assert np.linalg.norm(found.x - w) <= 1e-6


@every_loss
def test_unclipped_losses_with_a_lipschitz_constant_do_without_a_clip(base):
    if not math.isfinite(base.lipschitz):
        return
    X, y = data("huge", base)
    J, K = (objective(X, y, loss) for loss in (base, ClippedLoss(base, 1e6, NORM)))
    minimise = minimize_smooth if math.isfinite(base.smoothness) else minimize_nonsmooth
    tolerance = reachable_tolerance(J.bounds)
    assert np.linalg.norm(minimise(J, tolerance) - minimise(K, tolerance)) <= 2 * tolerance


@every_loss
def test_objectives_do_not_depend_on_the_unit_of_targets(base):
    if isinstance(base, (LogisticLoss, HingeLoss)):
        return
    X, y = data("t", base)
    power = {SquaredLoss: 1, QuarticLoss: 3, HuberLoss: 1, PinballLoss: 0}[type(base)]
    for unit in (1e-12, 1e9):
        other = replace(base, threshold=0.4 * unit) if isinstance(base, HuberLoss) else base
        J = objective(X, y, ClippedLoss(base, 0.3, NORM), 0.5)
        K = objective(
            X, y * unit, ClippedLoss(other, 0.3 * unit**power, NORM), 0.5 * unit ** (power - 1)
        )
        least = reachable_tolerance(J.bounds)
        assert reachable_tolerance(K.bounds) == pytest.approx(least * unit)
        minimise = minimize_smooth if math.isfinite(J.loss.smoothness) else minimize_nonsmooth
        assert_allclose(
            minimise(K, least * unit * 2) / unit, minimise(J, 2 * least), atol=4 * least
        )


@every_loss
def test_only_null_rows_and_rows_of_zeros_leave_the_centre(base):
    X, y = np.zeros((9, 3)), data("huge", base, 9)[1]
    J = objective(X, y, ClippedLoss(base, 0.3, 1.0), 1.0, 0.0, center=np.ones(3))
    minimise = minimize_smooth if math.isfinite(J.loss.smoothness) else minimize_nonsmooth
    tolerance = reachable_tolerance(J.bounds)
    assert np.linalg.norm(minimise(J, tolerance) - 1.0) <= tolerance


@pytest.mark.covering
@pytest.mark.parametrize("failure", FAILURES)
@every_smooth
def test_a_solver_that_fails_is_replaced(base, failure, monkeypatch):
    J = clipped(base, "huge", 0.3, 5.0)
    best = minimize_smooth(J, 1e-9)
    for name in SMOOTH_SOLVERS:
        monkeypatch.setitem(SMOOTH_SOLVERS, name, failure)
    for name in ("newton", "cooled_newton", "lbfgs"):
        monkeypatch.setattr(certified, name, failure)
    called = spy(monkeypatch, certified, "accelerated")
    assert np.linalg.norm(minimize_smooth(J, 1e-9) - best) <= 2e-9
    assert called


@pytest.mark.covering
@pytest.mark.parametrize("failure", FAILURES)
@every_kinked
def test_a_homotopy_that_fails_is_replaced(base, failure, monkeypatch):
    X, y = data("huge", base, 20)
    J = objective(X, y, ClippedLoss(base, 0.5, NORM), 10.0)
    best = minimize_nonsmooth(J, 1e-5)
    monkeypatch.setattr(nonsmooth, "cool", lambda J, w, goal, first: (failure(J, w), False))
    called = spy(monkeypatch, nonsmooth, "accelerated")
    w = minimize_nonsmooth(J, 0.01)
    assert called
    assert np.linalg.norm(w - best) <= 0.01 + 1e-5


@every_smooth
def test_the_fall_back_keeps_its_theorem_without_looking(base):
    J = clipped(base, "huge", 0.3, 2.0)
    w = accelerated.accelerated(J, 1e-5, lambda *_: False)
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


@every_loss
def test_minimizers_of_clipped_losses(base):
    X, y = data("huge", base)
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


@every_loss
def test_whatever_null_rows_have_for_targets_is_not_read(base):
    X, y = data("t", base)
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


def test_many_rows():
    rng = np.random.default_rng(0)
    n, d = 20_000, 10
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    y = X @ rng.normal(size=d) + rng.standard_t(2.1, size=n)
    for base in (SquaredLoss(), PinballLoss()):
        J = objective(X, y, ClippedLoss(base, 0.5, NORM), 100.0)
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
