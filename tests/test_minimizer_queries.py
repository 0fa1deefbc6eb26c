# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers as statistics: the sensitivity they state holds, and is needed in full."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.optimize import minimize_scalar

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._minimize import smooth as certified
from skdp._minimize.objective import RowObjective
from skdp._minimize.queries import Minimizer, PerturbedMinimizer
from skdp._minimize.smooth import SMOOTH_SOLVERS, reachable_tolerance
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests._neighbours import ADJACENCIES, Rows, changed, neighbours, on_examples, rows_in_ball

LOSSES = {
    "logistic": LogisticLoss(),
    "margin": LogisticLoss(1.0, 0.1),
    "softmax": SoftmaxLoss(3),
    "hinge": HingeLoss(),
    "Crammer-Singer": HingeLoss(3),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def admit(rows, loss, intercept=0.0):
    return rows_in_ball(rows.X, loss.encode(rows.codes), rows.null, 1.0, intercept)


def query(loss, n_rows, n_coefs, *, ridge=1.0, intercept=0.0, share=0.0, kind=Minimizer, **options):
    """Return a minimiser whose tolerance is a share of its sensitivity, if that is in reach."""
    norm = math.hypot(1.0, intercept)
    least = reachable_tolerance(kind(loss, ridge, n_coefs, norm, 1.0, **options).bounds(n_rows))
    tolerance = max(2 * least, share * loss.lipschitz * norm / ridge)
    return kind(loss, ridge, n_coefs, norm, tolerance, **options)


@pytest.mark.covering
@every_adjacency
@every_loss
@on_examples(30)
def test_minimisers_keep_their_word(loss, adjacency, data):
    pair = data.draw(neighbours(adjacency, n_classes=max(2, loss.n_outputs)))
    n_rows, d = pair[0].X.shape
    intercept = data.draw(st.sampled_from([0.0, 0.1, 1.0]))
    n_coefs = d + bool(intercept)
    ridge = data.draw(st.sampled_from([0.03, 1.0, 50.0]))
    share = data.draw(st.sampled_from([0.0, 0.3]))
    center = data.draw(st.sampled_from([None, np.full(n_coefs * loss.n_outputs, -3.0)]))
    # with and without what is known of a row's l1 norm
    row_l1 = data.draw(st.sampled_from([math.inf, math.sqrt(d) + intercept]))
    q = query(
        loss, n_rows, n_coefs, ridge=ridge, intercept=intercept, share=share, center=center,
        row_l1=row_l1,
    )  # fmt: skip
    stated = q.sensitivity(adjacency, n_rows)
    first, second = (q.evaluate(admit(rows, loss, intercept)) for rows in pair)
    for value in (first, second):
        assert value.shape == (q.size,)
        assert np.abs(value).max() <= stated.bound
    assert np.linalg.norm(first - second) <= stated.l2 * (1 + FLOAT_SLACK)
    assert np.abs(first - second).sum() <= stated.l1 * (1 + FLOAT_SLACK)
    if center is not None:
        assert_array_equal(center, -3.0)


def extreme_pair(loss, adjacency):
    """Return two data sets of one row: a label changes, or the row is null."""
    rows = Rows(np.array([[0.6, -0.8]]), np.array([1]), np.array([False]))
    return rows, changed(rows, 0, adjacency, rows.X[0], 0)


EXTREME = {
    "hinge": HingeLoss(),
    "hinge, two outputs": HingeLoss(2),
    "logistic, margin": LogisticLoss(10.0, 1.0),
    "softmax, margin": SoftmaxLoss(2, 10.0, 1.0),
}


def ratio(loss, adjacency, intercept=0.5, ridge=4.0):
    q = query(loss, 1, 3, ridge=ridge, intercept=intercept)
    first, second = (
        q.evaluate(admit(rows, loss, intercept)) for rows in extreme_pair(loss, adjacency)
    )
    stated = q.sensitivity(adjacency, 1).l2
    return np.linalg.norm(first - second) / stated, q, stated


@every_adjacency
@pytest.mark.parametrize("loss", EXTREME.values(), ids=EXTREME)
def test_the_sensitivity_is_attained(loss, adjacency):
    found, q, stated = ratio(loss, adjacency)
    assert 0.98 <= found <= 1 + FLOAT_SLACK
    # hence half of it, L X / ridge under replace-one, is not enough
    factor = 2 if adjacency == "replace-one" else 1
    reach = factor * loss.lipschitz * q.row_norm / q.ridge
    assert stated == reach + 2 * q.tolerance
    # nor is the norm without the intercept
    assert found * stated > factor * loss.lipschitz / q.ridge + 2 * q.tolerance


def test_an_intercept_without_penalty_would_break_the_sensitivity():
    # rows of zeros: the intercept is all there is, and one row makes both labels occur
    n_rows, intercept, loss = 50, 0.1, LogisticLoss()
    q = query(loss, n_rows, 2, intercept=intercept)
    stated = q.sensitivity("replace-one", n_rows).l2
    codes = np.zeros(n_rows, dtype=int)
    none = np.zeros(n_rows, dtype=bool)
    penalised, free = [], []
    for ones in (1, 2):
        codes[:ones] = 1
        rows = Rows(np.zeros((n_rows, 1)), codes.copy(), none)
        penalised.append(q.evaluate(admit(rows, loss, intercept)))
        J = RowObjective(
            admit(rows, loss, intercept), loss, ridge=q.ridge, n_coefs=2, row_norm=q.row_norm
        )
        without = lambda b: J.value_and_gradient(np.array([0, b]))[0] - J.ridge / 2 * b * b  # noqa: E731, B023
        free.append(minimize_scalar(without, bounds=(-99, 99), method="bounded").x)
    assert np.linalg.norm(penalised[0] - penalised[1]) <= stated
    assert abs(free[0] - free[1]) > stated


def test_without_its_certificate_a_solver_could_break_the_sensitivity(monkeypatch):
    def adversary(J, w, met):
        # as far off as it likes, in a direction that a row decides
        return w + 10 * np.sign(J.gradient(J.center))

    monkeypatch.setitem(SMOOTH_SOLVERS, "lbfgs", adversary)
    loss = LogisticLoss(10.0, 1.0)
    q = query(loss, 1, 3, ridge=4.0, intercept=0.5, share=0.1, solver="lbfgs")
    stated = q.sensitivity("replace-one", 1).l2
    pair = [admit(rows, loss, 0.5) for rows in extreme_pair(loss, "replace-one")]
    first, second = map(q.evaluate, pair)
    assert np.linalg.norm(first - second) <= stated
    monkeypatch.setattr(certified, "distance_bound", lambda *args: 0.0)
    first, second = map(q.evaluate, pair)
    assert np.linalg.norm(first - second) > stated


def test_a_tolerance_must_be_paid_for():
    # a solver that stops as early as the certificate lets it moves by more than S / ridge
    loss, ridge = LogisticLoss(10.0, 1.0), 4.0
    q = query(loss, 1, 3, ridge=ridge, intercept=0.5, share=0.2)
    exact = query(loss, 1, 3, ridge=ridge, intercept=0.5)
    found = []
    for rows in extreme_pair(loss, "replace-one"):
        w = exact.evaluate(admit(rows, loss, 0.5))
        found.append(w * (1 + 0.99 * q.tolerance / np.linalg.norm(w)))
        J = RowObjective(admit(rows, loss, 0.5), loss, ridge=ridge, n_coefs=3, row_norm=q.row_norm)
        assert certified.distance_bound(J, found[-1], J.gradient(found[-1])) <= 1.3 * q.tolerance
    gap = np.linalg.norm(found[0] - found[1])
    stated = q.sensitivity("replace-one", 1).l2
    assert stated - 2 * q.tolerance < gap <= stated
    assert gap >= 0.98 * stated


@every_loss
def test_solvers_agree_within_their_tolerances(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    rows = Rows(X, rng.integers(0, max(2, loss.n_outputs), 80), np.arange(80) % 9 == 0)
    center = rng.normal(size=4 * loss.n_outputs)
    options = {"ridge": 0.5, "intercept": 1.0, "center": center}
    values = {}
    for solver in SMOOTH_SOLVERS:
        q = query(loss, 80, 4, solver=solver, **options)
        values[solver] = q.evaluate(admit(rows, loss, 1.0))
        assert np.linalg.norm(values[solver] - values["newton"]) <= 2 * q.tolerance


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)])
def test_perturbed_minimisers_solve_their_equation(loss):
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(60, 3)), rng.integers(0, 2, 60), np.arange(60) % 9 == 0)
    center, linear = rng.normal(size=(2, 3 * loss.n_outputs)) * 20
    kept = center.copy(), linear.copy()
    q = query(loss, 60, 3, ridge=0.5, share=1e-4, center=center, kind=PerturbedMinimizer)
    admitted = admit(rows, loss)
    w = q.minimise(admitted, linear)
    J = RowObjective(
        admitted, loss, ridge=0.5, n_coefs=3, row_norm=1.0, center=center, linear=linear
    )
    assert np.linalg.norm(J.gradient(w)) <= 0.5 * q.tolerance
    # a linear term moves the centre: center - linear / ridge
    moved = query(loss, 60, 3, ridge=0.5, share=1e-4, center=center - linear / 0.5)
    assert np.linalg.norm(moved.evaluate(admitted) - w) <= q.tolerance + moved.tolerance
    assert_array_equal((center, linear), kept)


def test_the_centre_is_a_copy_and_stays_as_it_was():
    center = np.ones(3)
    q = query(LogisticLoss(), 5, 3, center=center)
    center[:] = 7.0
    assert_array_equal(q.center, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        q.center[0] = 2.0
    nothing = Rows(np.ones((5, 3)), np.zeros(5, dtype=int), np.ones(5, dtype=bool))
    w = q.evaluate(admit(nothing, LogisticLoss()))
    assert np.linalg.norm(w - 1.0) <= q.tolerance
    w[:] = 9.0
    assert_array_equal(q.center, 1.0)


def test_statements():
    q = Minimizer(LogisticLoss(), 0.5, 3, 1.0, 1e-3)
    assert (q.name, q.size) == ("minimiser of LogisticLoss with ridge 0.5", 3)
    assert Minimizer(SoftmaxLoss(4), 0.5, 3, 1.0, 1e-3).size == 12
    one, other = (q.sensitivity(adjacency, 100) for adjacency in ADJACENCIES)
    assert (one.l2, other.l2) == (4.002, 2.002)
    assert "2 L X / ridge" in one.theorem
    assert one.bound <= 100 * 1.0 / 0.5 + 1e-3
    assert "perturbed" in PerturbedMinimizer(LogisticLoss(), 0.5, 3, 1.0, 1e-3).name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 1e-30}, "tolerance must be at least"),
        ({"tolerance": math.inf}, "tolerance must be finite"),
        ({"ridge": 0.0}, "ridge must be"),
        ({"row_norm": math.nan}, "row_norm must be"),
        ({"center": np.ones(2)}, "center must be"),
        ({"center": np.full(3, np.nan)}, "center must be"),
        ({"solver": "magic"}, "solver must be"),
    ],
)
def test_what_cannot_be_stated_is_refused(options, message):
    usual = {"loss": LogisticLoss(), "ridge": 1.0, "n_coefs": 3, "row_norm": 1.0}
    with pytest.raises(ValueError, match=message):
        Minimizer(**{**usual, "tolerance": 1e-3, **options}).sensitivity("zero-out", 10)


def test_perturbed_minimisers_refuse_what_their_theorem_does_not_cover():
    with pytest.raises(ValueError, match="smooth"):
        PerturbedMinimizer(HingeLoss(), 1.0, 3, 1.0, 1e-3)
    q = query(LogisticLoss(), 2, 3, kind=PerturbedMinimizer)
    rows = Rows(np.ones((2, 3)), np.zeros(2, dtype=int), np.zeros(2, dtype=bool))
    with pytest.raises(ValueError, match="tolerance"):
        q.minimise(admit(rows, LogisticLoss()), np.full(3, 1e12))
