# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What fits with late noise claim: membership, coupled traces, batches, whole fits.

A trace needs the noise of every step. So it is taken of `DenseSums`, whose law is that of the
lazy sums (tests/privacy/test_lazy_noise.py); whole fits are told apart as they are.
"""

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression
from tests import _audit
from tests import _audit_batches as batches
from tests._audit_lazy import dense
from tests._neighbours import ADJACENCIES, worst_pairs
from tests._solvers import linear_model
from tests.test_claims_sampling import DELTA, EPSILON, STILL, N, arrays, fit

every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def lazy(adjacency="replace-one", n_classes=2, estimator=DPLogisticRegression, **options):
    """Return a model that makes a few steps on Poisson batches, noise added late."""
    usual = {
        "epsilon": EPSILON, "delta": DELTA, "solver": "lazy-sgd", "batch_size": 6, "max_iter": 8,
        "random_state": 0, "classes": range(n_classes), "adjacency": adjacency,
    }  # fmt: skip
    return linear_model(estimator, **{**usual, **STILL, **options})


def run(model):
    """Return a fit of a model whose every step can be traced."""
    return dense(functools.partial(fit, model))


MODELS = {
    "binary": lazy(),
    "three classes": lazy(n_classes=3),
    "no intercept": lazy(fit_intercept=False),
    "hinge": lazy(estimator=DPHingeSVM),
    "moving": lazy(clipping_norm=None, step_size=None),
    "data_norm": lazy(data_norm=7.0, intercept_scaling=1.0),
    "penalty": lazy(C=1e-3, step_size=1.0),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.mark.covering
@every_adjacency
@every_model
def test_membership_of_a_row_changes_no_more_than_is_charged(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    ((rows, _), *_) = worst_pairs(N, 3, len(model.classes), adjacency, model.data_norm)
    for row in (0, 1, N - 1):
        changed = batches.membership(run(model), row, *arrays(rows))
        (release,) = fit(model, *arrays(rows)).ledger_.releases
        assert len(changed) == release.count == 8
        assert max(changed) <= release.noise.mu
        if row == 0 and name != "moving":
            assert max(changed) == pytest.approx(release.noise.mu, rel=1e-3)


@pytest.mark.parametrize("layout", ["csr", "csr duplicates", "csr zeros", "F", "float32"])
def test_membership_in_every_layout(layout):
    ((rows, _), *_) = worst_pairs(N, 3, 2, "zero-out", 1.0)
    data = arrays(rows, layout)
    changed = batches.membership(run(MODELS["binary"]), 0, *data)
    mu = fit(MODELS["binary"], *data).ledger_.releases[-1].noise.mu
    assert max(changed) == pytest.approx(mu, rel=1e-3)
    assert max(changed) <= mu


@pytest.mark.covering
@every_adjacency
@every_model
def test_neighbours_with_the_same_batches_differ_by_what_is_charged(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    reach = 1 if adjacency == "zero-out" else 2
    largest = []
    for pair in worst_pairs(N, 3, len(model.classes), adjacency, model.data_norm):
        first, second = batches.coupled(run(model), *map(arrays, pair))
        for change, batch, step in zip(
            batches.changes(first, second), first.batches, first.steps, strict=True
        ):
            assert change <= reach * step.noise.mu
            if 0 not in batch:
                assert change == 0
            largest.append(change / reach / step.noise.mu)
        assert not first.full
    if name in ("binary", "no intercept", "data_norm"):
        assert max(largest) == pytest.approx(1, rel=1e-3)


def one_hot_pair(adjacency):
    """Return sparse neighbours that touch disjoint columns: row 0 alone reads column 7."""
    X = np.zeros((N, 8))
    X[np.arange(N), np.arange(N) % 6] = 3.0
    other, y = X.copy(), np.arange(N) % 2
    X[0], other[0] = 5.0 * np.eye(8)[7], -5.0 * np.eye(8)[6]
    changed = np.where(np.arange(N) == 0, 99, y) if adjacency == "zero-out" else y
    return (sparse.csr_array(X), y), (sparse.csr_array(other), changed)


@every_adjacency
def test_a_row_that_alone_touches_a_column_changes_no_more(adjacency):
    model = lazy(adjacency, fit_intercept=False)
    first, second = one_hot_pair(adjacency)
    reach = 1 if adjacency == "zero-out" else np.sqrt(2)
    one, other = batches.coupled(run(model), first, second)
    changed, mu = batches.changes(one, other), one.steps[0].noise.mu
    assert max(changed) <= reach * mu * (1 + 1e-9)
    assert max(batches.membership(run(model), 0, *first)) <= mu


@pytest.mark.covering
@every_adjacency
@every_model
def test_measured_changes_compose_to_the_claim(name, adjacency):
    model = clone(MODELS[name]).set_params(adjacency=adjacency)
    ((rows, _), *_) = worst_pairs(N, 3, len(model.classes), adjacency, model.data_norm)
    changed = batches.membership(run(model), 0, *arrays(rows))
    spent = batches.composed_epsilon(changed, 6 / N, adjacency, DELTA)
    assert spent <= EPSILON
    if name == "binary":
        assert spent > 0.99 * EPSILON
    assert fit(model, *arrays(rows)).privacy_spent_[0] <= EPSILON


def test_batches_are_independent_poisson_batches_with_late_noise_too():
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    for batch_size in (12.5, 150):
        model = lazy(batch_size=batch_size, max_iter=200)
        with batches.drawn() as found:
            fit(model, X, y)
        assert len(found) == 200
        assert batches.batches_are_wrong(found, 300, batch_size / 300) is None


@pytest.mark.parametrize(
    ("adjacency", "runs"),
    [
        pytest.param("zero-out", 400, marks=pytest.mark.full),
        *[pytest.param(a, 5000, marks=pytest.mark.slow) for a in ADJACENCIES],
    ],
)
def test_whole_fits_cannot_be_told_apart_better_than_claimed(adjacency, runs):
    # the row that differs is the only one to touch its column
    model = lazy(adjacency, epsilon=4.0, max_iter=3, batch_size=2, fit_intercept=False)
    worlds, seeds = [], iter(range(2 * runs))
    X = sparse.csr_array(np.array([[0.0, 0.1], [5.0, 0.0]]))
    for flipped in (False, True):
        second = sparse.csr_array(np.array([[0.0, 0.1], [-5.0 if flipped else 5.0, 0.0]]))
        y = np.array([0, 99 if flipped and adjacency == "zero-out" else 1])
        world = X if adjacency == "zero-out" else second
        worlds.append([fit(model.set_params(random_state=next(seeds)), world, y).coef_[0]
                       for _ in range(runs)])  # fmt: skip
    found = _audit.black_box_epsilon(*map(np.array, worlds), DELTA)
    assert (2 if runs > 1000 else 0.5) < found < 4
