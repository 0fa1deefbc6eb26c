# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of clipped losses keep their sensitivity on heavy tails, and need all of it."""

import math

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import softmax

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._losses.clipped import ClippedLoss
from skdp._losses.regression import HuberLoss, PinballLoss, QuarticLoss, SquaredLoss
from skdp._minimize.queries import Minimizer, PerturbedMinimizer
from skdp._minimize.smooth import reachable_tolerance
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests._neighbours import ADJACENCIES, BROKEN_ROWS, FINITE_ROWS, make_row, rows_in_ball

LOSSES = {
    "squared": SquaredLoss(),
    "quartic": QuarticLoss(),
    "huber": HuberLoss(2.0),
    "absolute": PinballLoss(),
    "pinball": PinballLoss(0.8),
    "logistic": LogisticLoss(),
    "hinge": HingeLoss(),
}
every_loss = pytest.mark.parametrize("base", LOSSES.values(), ids=LOSSES)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def query(base, clip, n_rows, n_coefs, intercept=0.0, ridge=1.0, share=0.0, **options):
    norm = math.hypot(1.0, intercept)
    loss = ClippedLoss(base, clip, norm)
    known = Minimizer(loss, ridge, n_coefs, norm, 1.0, **options).bounds(n_rows)
    tolerance = max(2 * reachable_tolerance(known), share * loss.lipschitz * norm / ridge)
    return Minimizer(loss, ridge, n_coefs, norm, tolerance, **options)


def admit(X, y, null, intercept=0.0):
    return rows_in_ball(X, y, null, 1.0, intercept)


def heavy_row(rng, d):
    kind = rng.choice(["t", "t", "t", *FINITE_ROWS, *BROKEN_ROWS])
    return rng.standard_t(2.1, size=d) / 2 if kind == "t" else make_row(kind, d, 1.0, rng)


def heavy_target(base, rng):
    if isinstance(base, (LogisticLoss, HingeLoss)):
        return rng.choice([-1.0, 1.0])
    tails = [rng.standard_t(2.1), rng.pareto(1.5), 0.0, 1e300, -1e300, 1e-300]
    return tails[rng.choice(6, p=[0.4, 0.4, 0.05, 0.05, 0.05, 0.05])]


def heavy_pair(base, adjacency, rng):
    """Return neighbouring data sets with heavy tails in rows and targets."""
    n, d = rng.integers(1, 30), rng.integers(1, 4)
    X = np.array([heavy_row(rng, d) for _ in range(n)])
    y = np.array([heavy_target(base, rng) for _ in range(n)])
    null, i = rng.uniform(size=n) < 0.05, rng.integers(n)
    X2, y2, null2 = X.copy(), y.copy(), null.copy()
    X2[i] = rng.choice([-1, 1]) * X[i] if rng.uniform() < 0.3 else heavy_row(rng, d)
    y2[i] = rng.choice([-1, 1]) * y[i] if rng.uniform() < 0.3 else heavy_target(base, rng)
    null2[i] = adjacency == "zero-out"
    return (X, y, null), (X2, y2, null2)


@pytest.mark.sample(2)
@every_adjacency
@every_loss
def test_heavy_tailed_neighbours_keep_the_sensitivity(base, adjacency):
    rng, ratios = np.random.default_rng(7), []
    for _ in range(100):
        pair = heavy_pair(base, adjacency, rng)
        n, d = pair[0][0].shape
        intercept = rng.choice([0.0, 0.3, 1.0])
        q = query(
            base, rng.choice([0.01, 0.3, 3.0]), n, d + bool(intercept), intercept,
            ridge=rng.choice([0.05, 1.0, 30.0]), share=rng.choice([0.01, 0.1]),
            row_l1=rng.choice([math.inf, math.sqrt(d) + intercept]),
        )  # fmt: skip
        stated = q.sensitivity(adjacency, n)
        first, second = (q.evaluate(admit(*data, intercept)) for data in pair)
        assert max(np.linalg.norm(first), np.linalg.norm(second)) <= stated.bound
        ratios.append(np.linalg.norm(first - second) / stated.l2)
        assert np.abs(first - second).sum() <= stated.l1 * (1 + FLOAT_SLACK)
    assert max(ratios) <= 1 + FLOAT_SLACK
    # not all of the pairs are tame
    assert max(ratios) > 0.3


def worst_pair(base, adjacency, n_rows=1):
    """Return neighbours one row of which has opposite, clipped gradients: others are zero."""
    far = 1.0 if isinstance(base, (LogisticLoss, HingeLoss)) else 1e300
    X, y, null = np.zeros((n_rows, 2)), np.full(n_rows, far), np.zeros(n_rows, dtype=bool)
    X[0] = 0.6, -0.8
    other, gone = y.copy(), null.copy()
    other[0], gone[0] = -far, adjacency == "zero-out"
    return (X, y, null), (X, other, gone)


@every_adjacency
@every_loss
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_the_sensitivity_is_attained_and_no_more_than_clip(base, intercept, adjacency):
    if isinstance(base, LogisticLoss):
        base = LogisticLoss(10.0, 1.0)
    clip, ridge = 0.3, 2.0
    q = query(base, clip, 1, 2 + bool(intercept), intercept, ridge)
    stated = q.sensitivity(adjacency, 1).l2
    moved = 1 if adjacency == "zero-out" else 2
    assert stated == pytest.approx(moved * clip / ridge + 2 * q.tolerance)
    first, second = (q.evaluate(admit(*data, intercept)) for data in worst_pair(base, adjacency))
    assert 0.98 * moved * clip / ridge <= np.linalg.norm(first - second) <= stated


def test_short_rows_keep_the_l1_sensitivity():
    # a short row with all its length in one coordinate, and one in all of them
    rng, d = np.random.default_rng(0), 6
    for base in (HuberLoss(2.0), LogisticLoss(5.0, 1.0), HingeLoss()):
        for scale in (1.0, 0.1):
            X = rng.normal(size=(40, d))
            X[0] = scale * np.ones(d) / math.sqrt(d)
            y = np.where(rng.uniform(size=40) < 0.5, 1.0, -1.0) * 9 ** (not hasattr(base, "margin"))
            q = query(base, 0.1, 40, d, ridge=2.0, row_l1=math.sqrt(d))
            other = y.copy()
            other[0] = -y[0]
            none = np.zeros(40, dtype=bool)
            found = [q.evaluate(admit(X, t, none)) for t in (y, other)]
            assert np.abs(found[0] - found[1]).sum() <= q.sensitivity("replace-one", 40).l1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Minimizer(SquaredLoss(), 1.0, 3, 1.0, 1e-3), "Lipschitz constant"),
        (lambda: Minimizer(QuarticLoss(), 1.0, 3, 1.0, 1e-3), "Lipschitz constant"),
        (lambda: Minimizer(ClippedLoss(SquaredLoss(), 1.0, 1.0), 1.0, 3, 0.5, 1e-3), "row_norm"),
        (lambda: Minimizer(PinballLoss(), 1.0, 3, 1.0, 1e-3, "cvxpy"), "'newton' or 'lbfgs'"),
        (
            lambda: Minimizer(ClippedLoss(HingeLoss(), 1.0, 1.0), 1.0, 3, 1.0, 1e-3, "cvxpy"),
            "HingeLoss clipped to 1",
        ),
        (lambda: PerturbedMinimizer(HuberLoss(), 1.0, 3, 1.0, 1e-3), "two continuous derivatives"),
        (lambda: PerturbedMinimizer(SquaredLoss(), 1.0, 3, 1.0, 1e-3), "Lipschitz"),
        (lambda: PerturbedMinimizer(PinballLoss(), 1.0, 3, 1.0, 1e-3), "smooth"),
        (
            lambda: PerturbedMinimizer(ClippedLoss(LogisticLoss(), 0.1, 1.0), 1.0, 3, 1.0, 1e-3),
            "two continuous derivatives",
        ),
    ],
)
def test_what_is_not_proved_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- why losses that are not functions of one prediction are refused ---------------


def clipped_steps(kappa, clip, ridge, start, own, n_rows, n_steps):
    """Return where steps along clipped gradients end that are proved nothing about.

    All rows but one have the loss (w_1^2 + kappa w_2^2) / 2, and that one <own, w>; the mean of
    losses is penalised with ridge/2 |w - start|^2.
    """
    scale, w = np.array([1.0, kappa]), start.copy()
    step = 0.5 / (kappa + ridge)
    for _ in range(n_steps):
        g = scale * w
        g *= min(1.0, clip / np.linalg.norm(g))
        w = w - step * (((n_rows - 1) * g + own) / n_rows + ridge * (w - start))
    return w


def test_gradients_clipped_by_their_norm_may_move_further_than_two_clips():
    n, clip, ridge, start = 100_000, 1.0, 0.0910, np.array([1.2, 10.72])
    own = clip * np.array([math.cos(1.31), math.sin(1.31)])
    ends = [clipped_steps(68.75, clip, ridge, start, s * own, n, 5961) for s in (1, -1)]
    assert np.linalg.norm(ends[0] - ends[1]) > 4 * 2 * clip / (n * ridge)


@pytest.mark.parametrize("kappa", [9.0, 68.75, 1e4])
def test_nor_is_there_a_bound_for_where_such_steps_rest(kappa):
    # at the gradient (1, sqrt(kappa)) the fixed point moves (kappa + 1) / (2 sqrt(kappa)) times
    # as far as the minimiser of a convex function would
    n, clip, ridge, scale = 1e9, 1.0, 1e-3, np.array([1.0, kappa])
    direction = np.array([1.0, math.sqrt(kappa)]) / math.sqrt(1 + kappa)
    rest = 2 * direction / scale
    start = rest + (n - 1) / n * clip * direction / ridge
    sideways = np.linalg.svd(projected(direction) @ np.diag(scale) * clip / 2 + ridge * np.eye(2))
    ends = []
    for sign in (1, -1):

        def field(w, sign=sign):
            g = scale * w
            g = g * min(1.0, clip / np.linalg.norm(g))
            return (n - 1) / n * g + sign * clip * sideways[0][:, -1] / n + ridge * (w - start)

        ends.append(root(field, rest, tol=1e-14).x)
    found = np.linalg.norm(ends[0] - ends[1]) / (2 * clip / (n * ridge))
    assert found == pytest.approx((kappa + 1) / (2 * math.sqrt(kappa)), rel=0.02)


def projected(direction):
    """Return the projection off a direction."""
    return np.eye(len(direction)) - np.outer(direction, direction)


def softmax_field(z):
    """Return the residual of class 0, brought to length 1: clipped to less than it ever is here."""
    r = softmax(z) - np.eye(3)[0]
    return r / np.linalg.norm(r)


def test_clipped_residuals_of_softmax_are_not_monotone():
    # hence not the gradient of a convex function of the coefficients, whatever the rows are
    z, s = np.array([0.61, -2.23, 1.62]), softmax([0.61, -2.23, 1.62])
    r = s - np.eye(3)[0]
    assert np.linalg.norm(r) > 0.9
    jacobian = projected(r / np.linalg.norm(r)) @ (np.diag(s) - np.outer(s, s))
    e = np.linalg.eigh(jacobian + jacobian.T)[1][:, 0]
    fields = [softmax_field(z + step * e) for step in (0.3, -0.3)]
    assert (fields[0] - fields[1]) @ e < -5e-4


def test_a_copy_less_moves_the_rest_of_clipped_softmax_further_than_one_clip():
    # n copies of one row, or n - 1: zero-out, the residuals of all of them clipped to 0.1
    n, clip = 10**6, 0.1
    ridge, z = 1e-3 * n * clip, np.array([0.61, -2.23, 1.62])
    start = z + n * clip * softmax_field(z) / ridge
    ends = [
        root(lambda w, m=m: m * clip / ridge * softmax_field(w) + w - start, z, tol=1e-14).x
        for m in (n, n - 1)
    ]
    assert np.linalg.norm(ends[0] - ends[1]) > 1.1 * clip / ridge
    with pytest.raises(ValueError, match="not the gradient of a convex function"):
        ClippedLoss(SoftmaxLoss(3), clip, 1.0)
