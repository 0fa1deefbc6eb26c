# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frank-Wolfe over the l1 ball: what is spent, what is found, and what is refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from skdp._losses.classification import LogisticLoss
from skdp.privacy.kernel.ledger import total_rho
from skdp.solvers.frank_wolfe import default_coordinate_clip as default_clip
from skdp.solvers.frank_wolfe import frank_wolfe, plan_frank_wolfe, prices
from tests._neighbours import ADJACENCIES
from tests._solvers import linear_model

EPSILON, DELTA = 1.0, 1e-6
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6)) * 0.4
Y = (X[:, 1] - X[:, 4] + 0.1 * rng.normal(size=300) > 0).astype(int)


def model(epsilon=EPSILON, delta=DELTA, **options):
    usual = {"solver": "frank-wolfe", "classes": (0, 1), "random_state": 0}
    return linear_model(DPLogisticRegression, epsilon, delta, **(usual | options))


def made_up(n_rows, n_features, n_entries, seed=0):
    """Return rows of ones at random places, and labels that depend on the first five."""
    draws = np.random.default_rng(seed)
    columns = draws.integers(5, n_features, size=(n_rows, n_entries))
    columns.sort(axis=1)
    of, informative = np.nonzero(draws.random((n_rows, 5)) < 0.2)
    rows = np.concatenate([np.repeat(np.arange(n_rows), n_entries), of])
    columns = np.concatenate([columns.ravel(), informative])
    made = sparse.csr_array((np.ones(len(rows)), (rows, columns)), (n_rows, n_features))
    made.data[:] = 1 / np.sqrt(np.repeat(np.diff(made.indptr), np.diff(made.indptr)))
    z = np.bincount(of, np.where(informative % 2, -1.5, 1.5), n_rows)
    return made, (draws.random(n_rows) < 1 / (1 + np.exp(-z))).astype(int)


# -- what is spent ---------------------------------------------------------------------------


@every_adjacency
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_iter", [None, 1, 3, 60])
def test_one_row_of_the_ledger_pays_for_all_steps(max_iter, n_classes, adjacency):
    labels = Y + (np.arange(300) % 3 == 0) * (n_classes - 2)
    made = model(adjacency=adjacency, classes=range(n_classes), max_iter=max_iter).fit(X, labels)
    (release,) = made.ledger_.releases
    assert release.count == made.n_iter_ == (max_iter or made.n_iter_)
    assert (release.noise.law, release.size) == ("exponential", 1)
    clip = default_clip(7, None, 0.1)
    moved = 1 if adjacency == "zero-out" else 2
    assert release.stated_sensitivity == pytest.approx(2 * moved * clip, rel=0.01)
    assert "exact" in release.numerics
    epsilon, delta = made.privacy_spent_
    assert 0.999 * EPSILON < epsilon <= EPSILON
    assert delta in (0.0, DELTA)
    assert np.count_nonzero(made.coef_) <= made.n_iter_
    scaled = np.append(made.coef_.ravel(), made.intercept_ / 0.1)
    assert np.abs(scaled).sum() <= 8 / clip * (1 + 1e-12)


def test_the_better_of_two_prices_is_paid():
    for n_steps in (1, 2, 5, 6, 40, 1000):
        summed, concentrated = prices(EPSILON, DELTA, n_steps)
        made = model(max_iter=n_steps).fit(X, Y)
        (release,) = made.ledger_.releases
        assert release.noise.epsilon == max(summed, concentrated)
        assert made.privacy_spent_[1] == (0.0 if summed > concentrated else DELTA)
        assert n_steps * summed <= EPSILON
        assert total_rho(0.0, [(concentrated, n_steps, True)]) <= n_steps * concentrated**2 / 7.99
        # at delta 0 it is the sum whatever the number
        made = model(delta=0.0, max_iter=n_steps).fit(X, Y)
        assert made.privacy_spent_ == (pytest.approx(EPSILON, rel=1e-14), 0.0)
        assert made.ledger_.releases[0].noise.epsilon == summed
    assert prices(EPSILON, DELTA, 5)[0] > prices(EPSILON, DELTA, 5)[1]
    assert prices(EPSILON, DELTA, 40)[1] > 2 * prices(EPSILON, DELTA, 40)[0]


# -- what is found ---------------------------------------------------------------------------


def test_few_features_among_many_are_found_where_noisy_gradients_drown():
    rows, labels = made_up(14_000, 10_000, 100)
    train, test = slice(0, 10_000), slice(10_000, None)
    found = model(2.0, sparsity=105).fit(rows[train], labels[train])
    gradient = model(2.0, solver="auto").fit(rows[train], labels[train])
    assert np.count_nonzero(found.coef_) <= found.n_iter_ < 30
    assert np.count_nonzero(found.coef_[0, :5]) >= 4
    assert (np.sign(found.coef_[0, :5]) * [1, -1, 1, -1, 1] >= 0).all()
    scores = [each.score(rows[test], labels[test]) for each in (found, gradient)]
    assert scores[0] > scores[1] + 0.03
    assert scores[0] > 0.64


def test_steps_towards_the_best_vertices_keep_the_bound():
    loss, target = LogisticLoss(), 2.0 * Y - 1
    largest = np.abs(X).max()

    def mean_loss(w):
        return loss.value(X @ w, target).mean()

    def best(w):
        gradient = X.T @ loss.residual(X @ w, target) / len(X)
        return int(np.argmin(np.concatenate([gradient, -gradient])))

    least, radius = 0.0, 6.0
    curvature = 0.25 * (2 * radius * largest) ** 2
    for n_steps in (5000, 400, 100, 20):
        steps = plan_frank_wolfe(
            n_rows=300, n_coefs=6, n_outputs=1, smoothness=0.25, moved_rows=1, epsilon=1.0,
            delta=0.0, largest_entry=largest, clip=largest, radius=radius, largest_radius=None,
            n_steps=n_steps,
        )  # fmt: skip
        w = frank_wolfe(best, (6,), steps)
        assert np.abs(w).sum() <= radius * (1 + 1e-12)
        # the bound holds at the beginning: the loss at zero is log 2
        assert 2 * curvature / steps.offset >= np.log(2)
        bound = 2 * curvature / (n_steps + steps.offset)
        least = least or mean_loss(w)
        assert -bound / 20 <= mean_loss(w) - least <= bound


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_formats_agree(n_classes, fit_intercept):
    labels = Y + (np.arange(300) % 3 == 0) * (n_classes - 2)
    rows = np.where(rng.random(X.shape) < 0.5, X, 0).astype(np.float32)
    made = model(4.0, classes=range(n_classes), fit_intercept=fit_intercept)
    dense = clone(made).fit(rows.astype(np.float64), labels)
    read_only = rows.copy()
    read_only.flags.writeable = False
    for other in (rows, read_only, sparse.csr_array(rows), sparse.csc_matrix(rows)):
        same = clone(made).fit(other, labels)
        np.testing.assert_allclose(same.coef_, dense.coef_, rtol=1e-12)
        np.testing.assert_allclose(same.intercept_, dense.intercept_, rtol=1e-12)


def test_units_do_not_matter():
    one = model().fit(X, Y)
    for norm in (1e-100, 1e-3, 1e100):
        other = model(data_norm=norm).fit(X * norm, Y)
        np.testing.assert_allclose(other.coef_ * norm, one.coef_, rtol=1e-9)


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_sparse_coefficients_predict_the_same(estimator):
    made = estimator(20.0, solver="frank-wolfe", classes=(0, 1), random_state=0)
    if estimator is DPHingeSVM:
        made.set_params(smoothing=0.1)
    made.fit(X, Y)
    before = made.decision_function(X)
    assert made.score(X, Y) > 0.8
    assert sparse.issparse(made.sparsify().coef_)
    np.testing.assert_allclose(made.decision_function(X), before)
    np.testing.assert_allclose(made.decision_function(sparse.csr_array(X)), before)
    np.testing.assert_allclose(made.densify().decision_function(X), before)
