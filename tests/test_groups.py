# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Groups of rows as what is protected, in linear models."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from skdp import (
    BoundedScaler,
    DPHingeSVM,
    DPKernelRegressor,
    DPLogisticRegression,
    DPLpRegressor,
    PrivacyBudget,
    privacy_card,
    privacy_spent,
    solvers,
)
from skdp._bisection import Columns, MagnitudeCells, MagnitudeSides
from skdp._rows.columns import mapped_rows
from skdp._rows.linear import EveryRow, ball_rows
from skdp.audit import trace_privacy
from skdp.exceptions import BudgetError
from tests._neighbours import rows_in_ball
from tests.streams._ways import read_from_chunks

N_GROUPS = 60


def people(most=5, n_groups=N_GROUPS, seed=0):
    """Return rows, labels and owners, of whom everybody has 1 to `most` rows."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_groups), rng.integers(1, most + 1, n_groups)))
    X = rng.uniform(-1, 1, size=(len(groups), 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0).astype(int), groups


MODELS = [
    DPLogisticRegression(classes=[0, 1]),
    DPLogisticRegression(epsilon=8.0, classes=[0, 1], class_weight="balanced"),
    DPLogisticRegression(classes=[0, 1, 2], data_norm=1.0, adjacency="zero-out"),
    DPHingeSVM(epsilon=4.0, classes=[0, 1], data_norm=1.0, solver="preconditioned"),
    DPHingeSVM(classes=[0, 1], data_norm=1.0, solver="gd"),
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, solver="accelerated", max_iter=5),
    DPLpRegressor(epsilon=8.0),
    DPLpRegressor(epsilon=4.0, data_norm=1.0, target_scale=1.0, p=1),
    DPKernelRegressor(epsilon=2000.0, n_components=4, n_knots=3, max_iter=4),
    # penalties so strong that every residual is nearly 1
    DPHingeSVM(classes=[0, 1], data_norm=1.0, mechanism="output", C=1e-3),
    DPHingeSVM(classes=[0, 1, 2], data_norm=1.0, delta=0.0, adjacency="zero-out", C=1e-3),
    DPHingeSVM(classes=[0, 1], data_norm=1.0, solver=solvers.Output(minimizer="cvxpy")),
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, mechanism="output"),
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, delta=0.0, class_weight="balanced"),
    DPLogisticRegression(classes=[0, 1, 2], data_norm=1.0, mechanism="objective"),
    DPLogisticRegression(
        8.0, 0.0, classes=[0, 1], data_norm=1.0, solver=solvers.Output(sparsity=1), C=0.01
    ),
    DPLpRegressor(epsilon=200.0, delta=0.0),
    DPLpRegressor(p=1, data_norm=1.0, target_scale=1.0, solver="output"),
]
DRAWN = [
    DPLogisticRegression(classes=[0, 1], data_norm=1.0, solver="frank-wolfe"),
    DPLogisticRegression(
        2.0, 0.0, classes=[0, 1, 2], data_norm=1.0, adjacency="zero-out",
        solver=solvers.FrankWolfe(sparsity=2),
    ),
    DPHingeSVM(classes=[0, 1], data_norm=1.0, smoothing=0.5, solver="frank-wolfe"),
]  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("model", [*MODELS, *DRAWN], ids=str)
@pytest.mark.parametrize("n_rows", [1, 300])
def test_a_whole_group_moves_no_more_than_a_row(model, n_rows):
    X, y, groups = people()
    own = np.arange(n_rows)
    X = np.concatenate([np.tile([[9.0, 0.0, 0.0]], (n_rows, 1)), X])
    y = np.concatenate([np.ones(n_rows, dtype=int), y])
    groups = np.concatenate([np.full(n_rows, 99), groups])
    other = X.copy()
    other[own] = np.nan if model.adjacency == "zero-out" else -X[own]
    result = trace_privacy(model, X, other, y=y, groups=groups)
    assert result.passed
    assert result.unit == "group"
    assert (0.9 if getattr(model, "C", 1.0) == 1e-3 else 0) < result.share <= 1


@pytest.mark.parametrize(
    "model",
    [
        *(MODELS[k] for k in (3, 5, 9, 13, 16)),
        DPLpRegressor(epsilon=8.0),
        DRAWN[0],
    ],
    ids=str,
)
@pytest.mark.parametrize("n_rows", [1, 300])
def test_a_whole_group_of_a_stream_moves_no_more_than_a_row(model, n_rows):
    X, y, groups = people()
    X = np.concatenate([X, np.tile([[9.0, 0.0, 0.0]], (n_rows, 1))])
    y = np.concatenate([y, np.ones(n_rows, dtype=int)])
    groups = np.array([f"person {i}" for i in (*groups, *[99] * n_rows)])
    other = X.copy()
    other[-n_rows:] *= -1
    result = trace_privacy(read_from_chunks(model), X, other, y=y, groups=groups)
    assert result.passed
    assert 0 < result.share <= 1
    assert str(result.releases) == str(trace_privacy(model, X, other, y=y, groups=groups).releases)


@pytest.mark.parametrize("model", [MODELS[1], DPLpRegressor(epsilon=8.0)], ids=str)
def test_a_whole_group_moves_scales_no_more_than_a_row(model):
    X, y, groups = people(n_groups=600)
    X = np.concatenate([np.tile([[9.0, 7.0, 5.0]], (50, 1)), X])
    y, groups = np.concatenate([np.ones(50, dtype=int), y]), np.concatenate([[999] * 50, groups])
    other = X.copy()
    other[:50] *= -1000
    result = trace_privacy(model, X, other, y=y, groups=groups)
    assert result.passed
    searched = [r for r in result.releases if "magnitude" in r.query or "thresholds" in r.query]
    assert len({release.query for release in searched}) > 1
    assert max(release.ratio for release in searched) > 0.5


@pytest.mark.parametrize("model", [MODELS[3], *MODELS[9:14], DRAWN[1]], ids=str)
def test_a_group_may_have_another_number_of_rows(model):
    X, y, groups = people()
    more = np.concatenate([np.tile([[9.0, 0.0, 0.0]], (7, 1)), X])
    result = trace_privacy(
        clone(model).set_params(adjacency="replace-one"),
        np.concatenate([-9 * np.eye(3)[:1], X]),
        more,
        y=np.concatenate([[0], y]),
        y_neighbour=np.concatenate([np.ones(7, dtype=int), y]),
        groups=np.concatenate([[-1], groups]),
        groups_neighbour=np.concatenate([np.full(7, -1), groups]),
    )
    assert result.passed


def test_two_groups_are_no_neighbours():
    X, y, groups = people()
    other = X.copy()
    other[np.isin(groups, [3, 4])] = 0.0
    with pytest.raises(ValueError, match="one group; they differ in 2"):
        trace_privacy(MODELS[0], X, other, y=y, groups=groups)
    with pytest.raises(ValueError, match="the same groups"):
        trace_privacy(MODELS[0], X, other, y=y, groups=groups, groups_neighbour=groups + 1)


def test_rows_that_count_one_each_are_seen(monkeypatch):
    # the mutant: a group of 30 rows moves a sum 30 times as far as one row
    monkeypatch.setattr("skdp._counted.shares", lambda unit, codes: np.ones(len(codes)))
    X, y, groups = people()
    X, y = np.concatenate([np.tile([[1.0, 0, 0]], (30, 1)), X]), np.concatenate([np.ones(30), y])
    groups = np.concatenate([np.full(30, 99), groups])
    other = X.copy()
    other[:30] *= -1
    result = trace_privacy(MODELS[5], X, other, y=y, groups=groups)
    assert not result.passed
    # no further than a sum is cut off
    assert result.releases[0].ratio > 5


@pytest.mark.parametrize("n_features", [1, 5, 33])
def test_a_mapped_row_does_not_know_where_it_stands(n_features):
    # another group may have more rows, and all others move up
    rng = np.random.default_rng(0)
    X, root = rng.normal(size=(40, n_features)), rng.normal(size=(n_features, n_features))
    X, root = X / (10 * n_features), root + root.T

    def mapped(X):
        nobody = np.zeros(X.shape[0], dtype=bool)
        rows = rows_in_ball(X, nobody, nobody, weight=np.ones(X.shape[0]))
        return mapped_rows(rows, np.full(n_features, 0.01), root, 0.5).chunks[0]

    for less in range(1, 18):
        assert_array_equal(mapped(X[less:]).X, mapped(X).X[less:])
        # those of sparse rows are mapped within products: of what they are clipped by
        stored, rest = (mapped(sparse.csr_array(part)) for part in (X, X[less:]))
        assert_array_equal(rest.norm, stored.norm[less:])
        assert_array_equal(
            rest.predict(np.ones(n_features + 1)), stored.predict(np.ones(n_features + 1))[less:]
        )


def test_rows_that_count_1_each_are_counted_as_without_groups():
    # a shorter way that all may see, for it ends in the same bits
    X = np.random.default_rng(0).standard_t(1, size=(500, 4))
    weight = np.ones(500)
    rows, alone, less = (ball_rows(X, EveryRow(), 1, w) for w in (None, weight, weight / 2))
    for query in (
        MagnitudeSides((Columns(),), np.zeros(4)),
        MagnitudeCells((Columns(),), np.arange(4)),
    ):
        assert_array_equal(query.evaluate(alone), query.evaluate(rows))
        assert_array_equal(query.evaluate(less), query.evaluate(rows) / 2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_perturbed_objective_knows_that_groups_are_protected(n_classes):
    X, y, groups = people(n_groups=2000)
    model = DPLogisticRegression(4.0, classes=range(n_classes), data_norm=1.0, C=1.0)
    model.set_params(mechanism="objective")
    rows, ours = (
        model.fit(X, y, groups=whose).ledger_.releases[0].noise.scale for whose in (None, groups)
    )
    # 1 % more where the determinant is free, whatever the number of rows
    assert 1.003 * rows < ours < (1.01 if n_classes == 2 else 1.1) * rows
    pure = model.set_params(delta=0.0)
    rows, ours = (
        pure.fit(X, y, groups=whose).ledger_.releases[0].noise.scale for whose in (None, groups)
    )
    assert rows <= ours < (1.0001 if n_classes == 2 else 1.1) * rows


@pytest.mark.parametrize("model", DRAWN, ids=str)
def test_groups_of_one_row_are_rows_for_draws(model):
    X, y, _ = people(most=1, n_groups=400)
    model = clone(model).set_params(random_state=0)
    for table in (X, sparse.csr_array(X)):
        rows = model.fit(table, y).coef_
        groups = model.fit(table, y, groups=np.arange(400)).coef_
        assert_allclose(rows, groups, rtol=1e-6)


@pytest.mark.parametrize("model", [MODELS[5], DRAWN[0]], ids=str)
def test_rounding_of_sums_in_any_order_is_paid_for(model):
    # rows of other groups may stand in any chunk: Proposition 82
    X, y, groups = people()
    rows, ours = (
        clone(model).fit(X, y, groups=whose).ledger_.releases[0].stated_sensitivity
        for whose in (np.arange(len(X)), groups)
    )
    alone = clone(model).fit(X, y).ledger_.releases[0].stated_sensitivity
    if isinstance(model.solver, str) and model.solver == "frank-wolfe":
        # steps, and clips, do not depend on how many there are
        assert_allclose(ours / alone - 1, 8e-12 * N_GROUPS, rtol=1e-3)
    assert_allclose(rows / alone - 1, 8e-12 * len(X), rtol=1e-3)


@pytest.mark.parametrize("model", MODELS[9:], ids=str)
def test_groups_of_one_row_are_rows_for_minimisers(model):
    X, y, _ = people(most=1, n_groups=400)
    model = clone(model).set_params(random_state=0, delta=0.0)
    for table in (X, sparse.csr_array(X)):
        rows = model.fit(table, y).coef_
        groups = model.fit(table, y, groups=np.arange(400)).coef_
        # a price of rounding goes into the noise, and with more classes that of more determinant
        more = isinstance(model.solver, str) and model.mechanism == "objective"
        assert_allclose(rows, groups, rtol=1e-2 if more else 1e-6, atol=1e-2 if more else 1e-6)
        assert model.ledger_.unit == "group"


def test_groups_of_one_row_are_rows():
    X, y, _ = people(most=1, n_groups=400)
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0, random_state=0)
    rows, groups = model.fit(X, y).coef_, model.fit(X, y, groups=np.arange(400)).coef_
    assert_allclose(rows, groups, rtol=1e-5)
    assert model.ledger_.unit == "group"


def test_everybody_counts_once():
    X, y, groups = people(n_groups=3000)
    # one person has as many rows as all others, and other labels
    X, y = np.concatenate([X, X]), np.concatenate([y, 1 - y])
    groups = np.concatenate([groups, np.full(len(groups), -1)])
    model = DPLogisticRegression(epsilon=20.0, classes=[0, 1], data_norm=2.0, random_state=0)
    share = 1 / np.unique(groups, return_counts=True)[1][np.unique(groups, return_inverse=True)[1]]
    exact = LogisticRegression(C=np.inf).fit(X, y, sample_weight=share)
    found = model.fit(X, y, groups=groups)
    half = len(X) // 2
    assert found.score(X[:half], y[:half]) > 0.8
    along = np.vdot(found.coef_, exact.coef_)
    assert along > 0.98 * np.linalg.norm(found.coef_) * np.linalg.norm(exact.coef_)


def test_order_and_names_of_groups_do_not_matter():
    X, y, groups = people()
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0, random_state=0)
    coef = model.fit(X, y, groups=groups).coef_
    names = np.array([f"person {one}" for one in groups])
    assert_allclose(model.fit(X, y, groups=names).coef_, coef, rtol=1e-12)
    assert_allclose(model.fit(X, y, groups=list(names)).coef_, coef, rtol=1e-12)
    order = np.random.default_rng(1).permutation(len(X))
    moved = model.fit(X[order], y[order], groups=groups[order]).coef_
    assert_allclose(moved, coef, rtol=1e-6)


def test_sparse_rows_have_groups_too():
    X, y, groups = people(n_groups=500)
    model = DPLogisticRegression(epsilon=8.0, classes=[0, 1], data_norm=1.0, random_state=0)
    assert model.fit(sparse.csr_array(X), y, groups=groups).score(X, y) > 0.75
    other = X.copy()
    other[groups == groups[0]] *= -1
    model.set_params(max_iter=3, random_state=None)
    assert trace_privacy(model, *map(sparse.csr_array, (X, other)), y=y, groups=groups).passed


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"shape \(180,\); got shape \(2,\)"),
        (np.zeros((180, 1)), "got shape"),
        ([None] * 180, "missing identifiers"),
        (np.r_[np.nan, np.zeros(179)], "missing identifiers"),
        ([1, "a"] * 90, "groups"),
    ],
)
def test_bad_groups_are_refused(groups, message):
    X, y, _ = people(n_groups=180, most=1)
    groups = np.array(groups, dtype=object) if groups[1] == "a" else groups
    with pytest.raises(ValueError, match=message):
        DPLogisticRegression(classes=[0, 1]).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(solver="sgd", classes=[0, 1], data_norm=1.0),
        DPLogisticRegression(solver="phased", classes=[0, 1], data_norm=1.0),
        DPLogisticRegression(solver=solvers.LazySGD(), classes=[0, 1], data_norm=1.0),
        DPLogisticRegression(solver="exact", coef_bound=1.0, classes=[0, 1], data_norm=1.0),
        DPLpRegressor(solver="phased"),
    ],
    ids=str,
)
def test_solvers_that_cannot_say_so(model):
    X, y, groups = people()
    budget = PrivacyBudget(10.0, 1e-3, unit="group")
    with pytest.raises(ValueError, match=r"groups must be None with .*got groups"):
        model.set_params(budget=budget).fit(X, y, groups=groups)
    assert budget.spent[0] == 0


def test_groups_must_not_get_lost():
    X, y, groups = people()
    model = DPLogisticRegression(classes=[0, 1], data_norm=1.0)
    with pytest.raises(BudgetError, match=r"unit='group'.*got no groups"):
        DPLogisticRegression(budget=PrivacyBudget(5.0, 1e-4, unit="group")).fit(X, y)
    with pytest.raises(TypeError, match="positional"):
        model.fit(X, y, groups)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = model.set_fit_request(groups=True)
        with pytest.raises(ValueError, match="asked for groups"):
            asked.fit(X, y)
        found = cross_validate(
            asked, X, y, params={"groups": groups}, cv=GroupKFold(3), return_estimator=True
        )
    assert {fitted.ledger_.unit for fitted in found["estimator"]} == {"group"}


def test_a_pipeline_passes_groups():
    X, y, groups = people(n_groups=300)
    model = make_pipeline(
        BoundedScaler(bounds=(-1, 1)), DPLogisticRegression(epsilon=4.0, classes=[0, 1])
    )
    model.fit(X, y, dplogisticregression__groups=groups)
    assert privacy_spent(model).ledger.unit == "group"
    text = str(privacy_card(model))
    assert "The unit of protection is one group" in text
    assert "the number of groups" in text
