# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Minimisers of sparse rows: the l1 sensitivity holds, nearly all of it is needed."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from skdp._losses.classification import HingeLoss, LogisticLoss, SoftmaxLoss
from skdp._minimize.queries import Minimizer, l1_shift
from skdp._minimize.smooth import reachable_tolerance
from skdp._rows.linear import top_entries
from skdp.privacy.kernel.mechanisms import FLOAT_SLACK
from tests._neighbours import ADJACENCIES, Rows, changed, neighbours, on_examples, rows_in_ball

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
LOSSES = {
    "logistic": LogisticLoss(),
    "sharp": LogisticLoss(1.0, 0.05),
    "softmax": SoftmaxLoss(3),
    "sharp softmax": SoftmaxLoss(4, 1.0, 0.05),
    "hinge": HingeLoss(),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def query(loss, n_rows, n_features, sparsity, *, ridge, intercept=0.0, **options):
    """Return a minimiser that knows how sparse rows are."""
    known = {
        "row_l1": math.sqrt(min(sparsity, n_features)) + intercept,
        "row_terms": sparsity + bool(intercept),
        **options,
    }
    args = loss, ridge, n_features + bool(intercept), math.hypot(1.0, intercept)
    least = reachable_tolerance(Minimizer(*args, 1.0, **known).bounds(n_rows))
    return Minimizer(*args, 2 * least, **known)


def admit(rows, loss, sparsity, intercept=0.0):
    X = top_entries(rows.X, sparsity)
    return rows_in_ball(X, loss.encode(rows.codes), rows.null, 1.0, intercept)


def l1_distance(q, loss, pair, sparsity, intercept=0.0):
    first, second = (q.evaluate(admit(rows, loss, sparsity, intercept)) for rows in pair)
    return np.abs(first - second).sum()


@pytest.mark.covering
@every_adjacency
@every_loss
@on_examples(25)
def test_the_l1_sensitivity_holds_on_any_neighbours(loss, adjacency, data):
    pair = data.draw(
        neighbours(
            adjacency, n_classes=max(2, loss.n_outputs), layouts=["C", "csr", "csr duplicates"]
        )
    )
    sparsity = data.draw(st.integers(1, 3))
    intercept = data.draw(st.sampled_from([0.0, 0.1, 1.0]))
    ridge = data.draw(st.sampled_from([0.03, 1.0, 50.0]))
    n_rows, n_features = pair[0].X.shape
    q = query(loss, n_rows, n_features, sparsity, ridge=ridge, intercept=intercept)
    stated = q.sensitivity(adjacency, n_rows)
    moved = l1_distance(q, loss, pair, sparsity, intercept)
    assert moved <= stated.l1 * (1 + FLOAT_SLACK)
    assert stated.l1 <= math.sqrt(q.size) * stated.l2 * (1 + 1e-12)


def star(n_rows, sparsity, ridge, loss):
    """Return neighbours in which one row moves a coordinate that all others share.

    The others have the shared coordinate and `sparsity` - 1 of their own, and stand, for
    the centre of the penalty, where the loss bends most. Their coordinates follow the
    shared one, each a little.
    """
    others = n_rows - 1
    share = math.sqrt(ridge / (others * loss.smoothness))
    X = np.zeros((n_rows, 1 + others * (sparsity - 1)))
    X[0, 0], X[1:, 0] = 1.0, share
    sign = np.where(np.arange(others) % 2, 1.0, -1.0)
    own = math.sqrt((1 - share**2) / (sparsity - 1))
    center = np.zeros(X.shape[1])
    for i in range(others):
        columns = slice(1 + i * (sparsity - 1), 1 + (i + 1) * (sparsity - 1))
        X[1 + i, columns] = own
        center[columns] = sign[i] * loss.margin / own / (sparsity - 1)
    codes = np.append(1, sign > 0).astype(int)
    rows = Rows(sparse.csr_array(X), codes, np.zeros(n_rows, dtype=bool))
    flipped = codes.copy()
    flipped[0] = 0
    return rows, center, Rows(rows.X, flipped, rows.null)


@pytest.mark.parametrize("sparsity", [2, 5])
def test_most_of_the_root_of_n_is_needed(sparsity):
    n_rows, ridge, loss = 1001, 50.0, LogisticLoss(1.0, 0.1)
    first, center, second = star(n_rows, sparsity, ridge, loss)
    d = first.X.shape[1]
    q = query(loss, n_rows, d, sparsity, ridge=ridge, center=center)
    stated = q.sensitivity("replace-one", n_rows).l1
    found = l1_distance(q, loss, (first, second), sparsity)
    # what the other rows add is sqrt((s - 1) / s) of what is stated for it, and the row's
    # own part one entry in place of sqrt(s)
    assert 0.6 < found / stated <= 1
    # without it, or with a constant in place of the root, the statement would be false
    own = 2 * math.sqrt(sparsity) / ridge
    assert found > 2 * own
    assert stated < math.sqrt(d) * q.sensitivity("replace-one", n_rows).l2 / 3


@every_adjacency
@pytest.mark.parametrize(
    "loss", [LogisticLoss(10.0, 1.0), SoftmaxLoss(2, 10.0, 1.0)], ids=["logistic", "softmax"]
)
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_the_part_of_the_row_itself_is_attained(loss, intercept, adjacency):
    # one row of equal entries, far below the margin for both labels
    rows = Rows(np.array([[0.5, -0.5, 0.5, -0.5, 0.0]]), np.array([1]), np.array([False]))
    pair = rows, changed(rows, 0, adjacency, rows.X[0], 0)
    q = query(loss, 1, 5, 4, ridge=40.0, intercept=intercept)
    stated = q.sensitivity(adjacency, 1).l1
    assert 0.97 < l1_distance(q, loss, pair, 4, intercept) / stated <= 1
    # a row that may have more non-zeros than is said breaks it
    forgetful = query(loss, 1, 5, 1, ridge=40.0, intercept=intercept)
    assert l1_distance(q, loss, pair, 4, intercept) > forgetful.sensitivity(adjacency, 1).l1


def test_a_tolerance_is_paid_for_in_every_coordinate():
    # the worst two answers that the certificate allows, in all coordinates at once
    loss, ridge = LogisticLoss(10.0, 1.0), 4.0
    exact = query(loss, 1, 400, 1, ridge=ridge)
    q = Minimizer(loss, ridge, 400, 1.0, 0.05, row_l1=1.0, row_terms=1)
    X = np.zeros((1, 400))
    X[0, 0] = 1.0
    rows = Rows(sparse.csr_array(X), np.array([1]), np.array([False]))
    w, other = (
        exact.evaluate(admit(each, loss, 1)) + sign * np.full(400, q.tolerance / 20)
        for each, sign in ((rows, 1), (changed_label(rows), -1))
    )
    moved, stated = np.abs(w - other).sum(), q.sensitivity("replace-one", 1).l1
    assert stated - 0.1 < moved <= stated
    assert moved > l1_shift(loss, **facts(q, 1, 2)) + 2 * q.tolerance


def changed_label(rows):
    return Rows(rows.X, 1 - rows.codes, rows.null)


def facts(q, n_rows, moved):
    names = ("ridge", "n_coefs", "row_norm", "row_l1")
    return {"n_rows": n_rows, "moved": moved, **{name: getattr(q, name) for name in names}}


def test_statements():
    one = {"ridge": 10.0, "n_rows": 1001, "n_coefs": 10**6, "row_norm": 1.0, "row_l1": 7.0}
    # 2 s-sparse gradients, and what the other rows make of them: k = 25
    assert l1_shift(LogisticLoss(), moved=2, **one) == 7 * (2 + 2 * math.sqrt(25) / 2) / 10
    assert l1_shift(LogisticLoss(), moved=1, **one) == 7 * (1 + math.sqrt(25) / 2) / 10
    # under strong penalties k replaces its root: k = 0.25
    assert l1_shift(LogisticLoss(), moved=2, **{**one, "ridge": 1000.0}) == pytest.approx(
        7 * (2 + 2 * 0.25 / 1.25) / 1000
    )
    # two classes are two outputs: a residual of l1 norm 2
    assert l1_shift(SoftmaxLoss(2), moved=2, **{**one, "n_rows": 1}) == pytest.approx(2.8)
    # no smoothness, nothing known of the rows, few coefficients
    dense = math.sqrt(10**6) * 2 / 10
    assert l1_shift(HingeLoss(), moved=2, **one) == dense
    assert l1_shift(LogisticLoss(), moved=2, **{**one, "row_l1": math.inf}) == dense
    assert l1_shift(LogisticLoss(), moved=2, **{**one, "n_coefs": 4}) == 0.4
    assert l1_shift(LogisticLoss(), moved=2, **{**one, "n_rows": 0}) == 1.4


@pytest.mark.parametrize("row_l1", [0.0, -1.0, math.nan])
def test_an_impossible_l1_norm_is_refused(row_l1):
    with pytest.raises(ValueError, match="row_l1"):
        Minimizer(LogisticLoss(), 1.0, 3, 1.0, 1e-3, row_l1=row_l1)


@pytest.mark.parametrize("loss", [LogisticLoss(0.0, 0.3), SoftmaxLoss(5, 1.0, 0.3)])
def test_curvature_along_signs_is_bounded(loss):
    rng = np.random.default_rng(0)
    K = loss.n_outputs
    largest = 0.0
    for scale in (0.0, 0.1, 1.0):
        z = scale * rng.normal(size=(200, K))
        target = rng.integers(0, K, 200) if K > 1 else np.ones(200)
        # on the margin, where the loss bends most, or for two of the classes
        if K > 1:
            z[:, 2:] -= 9.0
            target %= 2
            z[np.arange(200), target] += loss.margin
        curvature = loss.curvature(z if K > 1 else z[:, 0], target)
        signs = rng.choice([-1.0, 1.0], size=(200, K))
        if K == 1:
            values = curvature
        else:
            mean = (curvature * signs).sum(axis=1)
            values = ((curvature * signs**2).sum(axis=1) - mean**2) / loss.temperature
        largest = max(largest, values.max())
        assert values.max() <= loss.smoothness_l1 * (1 + 1e-12)
    assert largest > 0.98 * loss.smoothness_l1
    residuals = loss.residual(rng.normal(size=(50, K)) if K > 1 else rng.normal(size=50),
                              np.ones(50, dtype=int))  # fmt: skip
    assert np.abs(residuals.reshape(50, -1)).sum(axis=1).max() <= loss.lipschitz_l1
