# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What DPLogisticRegression fits, apart from what it promises."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import BoundedScaler, DPLogisticRegression, NormClipper, solvers
from tests._solvers import linear_model

SOLVERS = ["accelerated", "gd"]


def _rows_in_ball(n_classes, n_samples=2000, n_features=5, seed=0):
    X, y = make_classification(
        n_samples,
        n_features,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        random_state=seed,
    )
    return NormClipper().fit_transform(X / 4), y


@pytest.mark.covering
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_without_noise_to_speak_of_it_is_logistic_regression(solver, n_classes, fit_intercept):
    X, y = _rows_in_ball(n_classes)
    private = linear_model(
        DPLogisticRegression,
        epsilon=1e6,
        solver=solver,
        C=0.01,
        fit_intercept=fit_intercept,
        clipping_norm=10.0,
        max_iter=3000,
        step_size=2.0,
        intercept_scaling=1.0,
        random_state=0,
    ).fit(X, y)
    public = LogisticRegression(C=0.01, fit_intercept=fit_intercept, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(private.coef_, public.coef_, atol=2e-3)
    if fit_intercept:
        # softmax intercepts are determined up to a common constant
        private_intercept = private.intercept_ - private.intercept_.mean() * (n_classes > 2)
        public_intercept = public.intercept_ - public.intercept_.mean() * (n_classes > 2)
        np.testing.assert_allclose(private_intercept, public_intercept, atol=2e-3)
    else:
        assert not private.intercept_.any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_and_dense_rows_give_the_same_model(n_classes):
    X, y = _rows_in_ball(n_classes)
    X[X < 0.05] = 0.0
    model = DPLogisticRegression(random_state=3)
    dense = model.fit(X, y).coef_
    for container in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.coo_array):
        # the statistics agree to rounding, and so to a step of the noise grid
        np.testing.assert_allclose(model.fit(container(X), y).coef_, dense, rtol=1e-4, atol=1e-4)


def test_units_of_the_data_do_not_matter_when_data_norm_follows():
    X, y = _rows_in_ball(2)
    model = DPLogisticRegression(random_state=0, C=np.inf)
    unit = model.fit(X, y)
    scores = unit.decision_function(X)
    for norm in (1e-90, 1e-3, 1e5, 1e90):
        scaled = DPLogisticRegression(random_state=0, C=np.inf, data_norm=norm).fit(X * norm, y)
        np.testing.assert_allclose(scaled.decision_function(X * norm), scores, rtol=1e-6, atol=1e-6)


def test_rows_beyond_data_norm_count_as_if_scaled_down_to_it():
    X, y = _rows_in_ball(2)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    model = DPLogisticRegression(random_state=0)
    inside = model.fit(X, y).coef_
    beyond = model.fit(X * rng.uniform(1, 1e6, size=(len(X), 1)), y).coef_
    np.testing.assert_allclose(beyond, inside, rtol=1e-5, atol=1e-5)


def test_coef_bound_holds_the_coefficients():
    X, y = _rows_in_ball(3)
    model = DPLogisticRegression(
        epsilon=0.1,
        coef_bound=0.7,
        solver=solvers.Accelerated(intercept_scaling=0.5),
        data_norm=2.0,
    )
    model.fit(X, y)
    theta = np.column_stack([model.coef_, model.intercept_ / (0.5 * 2.0)])
    assert np.linalg.norm(theta) <= 0.7 * (1 + 1e-12)


def test_public_classes_need_no_rows():
    X = np.full((50, 2), 0.3)
    model = DPLogisticRegression(classes=["no", "yes", "maybe"], random_state=0)
    model.fit(X, np.full(50, "yes"))
    np.testing.assert_array_equal(model.classes_, ["maybe", "no", "yes"])
    assert model.predict_proba(X).shape == (50, 3)
    assert model.ledger_.assumptions == ()


def test_rows_with_labels_outside_the_public_classes_contribute_nothing():
    X, y = _rows_in_ball(2)
    labels = y.copy()
    labels[::3] = 7
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    first = model.fit(X, labels).coef_
    changed = X.copy()
    changed[::3] = 0.9
    np.testing.assert_array_equal(model.fit(changed, labels).coef_, first)


def test_inferred_classes_are_on_the_ledger():
    X, y = _rows_in_ball(2)
    (assumption,) = DPLogisticRegression().fit(X, y).ledger_.assumptions
    assert "class labels" in assumption


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_follow_the_decision_function(n_classes):
    X, y = _rows_in_ball(n_classes)
    model = DPLogisticRegression(epsilon=5.0, random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(X))
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert np.isfinite(model.predict_log_proba(1e6 * X)).all()


def test_several_classes_share_one_budget_and_one_release_a_step():
    X, y = load_digits(return_X_y=True)
    model = DPLogisticRegression(epsilon=2.0, data_norm=64.0, random_state=0).fit(X, y)
    assert sum(release.count for release in model.ledger_.releases) == model.n_iter_
    assert {release.size for release in model.ledger_.releases} == {10 * 65}
    assert model.privacy_spent_[0] <= 2.0
    assert model.privacy_spent_ == (model.ledger_.epsilon(1e-6), 1e-6)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 300.0])
def test_what_is_reported_is_what_was_granted_and_never_more(epsilon, adjacency):
    X, y = _rows_in_ball(2, n_samples=100)
    model = DPLogisticRegression(epsilon, 1e-5, adjacency=adjacency).fit(X, y)
    spent, delta = model.privacy_spent_
    assert delta == 1e-5
    assert epsilon * (1 - 1e-6) <= spent <= epsilon


def test_unseeded_fits_differ_and_seeded_fits_repeat():
    X, y = _rows_in_ball(2)
    unseeded = [DPLogisticRegression().fit(X, y).coef_ for _ in range(2)]
    seeded = [DPLogisticRegression(random_state=5).fit(X, y).coef_ for _ in range(2)]
    assert not np.any(unseeded[0] == unseeded[1])
    np.testing.assert_array_equal(*seeded)


@pytest.mark.full
def test_it_works_inside_scikit_learn_s_tools():
    X, y = _rows_in_ball(2)
    pipeline = make_pipeline(BoundedScaler((-1, 1)), DPLogisticRegression(epsilon=4.0))
    assert cross_val_score(pipeline, X, y, cv=3, n_jobs=2).shape == (3,)
    grid = GridSearchCV(DPLogisticRegression(), {"epsilon": [0.5, 5.0]}, cv=2).fit(X, y)
    assert grid.best_estimator_.privacy_spent_[0] <= grid.best_params_["epsilon"]


def test_a_solver_object_is_searched_cloned_printed_and_pickled():
    X, y = _rows_in_ball(2, n_samples=200)
    model = DPLogisticRegression(
        epsilon=4.0, solver=solvers.SGD(batch_size=20), max_iter=5, classes=(0, 1), random_state=0
    )
    grid = GridSearchCV(model, {"solver__batch_size": [10, 50]}, cv=2).fit(X, y)
    assert grid.best_estimator_.solver.batch_size == grid.best_params_["solver__batch_size"]
    # the search works on clones, and a clone has a solver of its own
    assert model.solver.batch_size == 20
    copy = clone(model)
    assert copy.solver is not model.solver
    assert copy.solver.get_params() == model.solver.get_params()
    names = {"DPLogisticRegression": DPLogisticRegression, "SGD": solvers.SGD}
    printed = eval(repr(model), names)
    assert repr(printed) == repr(model) == repr(copy)
    assert "solver=SGD(batch_size=20)" in repr(model)
    model.fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.solver.get_params() == model.solver.get_params()
    for same in (loaded, copy.fit(X, y), printed.fit(X, y), clone(loaded).fit(X, y)):
        np.testing.assert_array_equal(same.coef_, model.coef_)


@pytest.mark.parametrize("kind", [solvers.Accelerated, solvers.SGD, solvers.Objective])
def test_any_solver_cuts_rows_to_their_largest_entries(kind):
    X, y = _rows_in_ball(2, n_samples=300)
    cut = np.where(np.argsort(np.argsort(-abs(X))) < 2, X, 0.0)
    given = {"epsilon": 4.0, "classes": (0, 1), "random_state": 0}
    whole, short = (
        DPLogisticRegression(solver=kind(sparsity=2), **given).fit(rows, y) for rows in (X, cut)
    )
    np.testing.assert_array_equal(whole.coef_, short.coef_)
    other = DPLogisticRegression(solver=kind(), **given).fit(X, y)
    assert np.any(other.coef_ != whole.coef_)


def test_verbose_prints_the_public_plan(capsys):
    X, y = _rows_in_ball(2)
    printed = []
    for rows in (X, -X):
        DPLogisticRegression(verbose=1, random_state=0).fit(rows, y)
        printed.append(capsys.readouterr().out)
    assert "n_steps" in printed[0]
    assert printed[0] == printed[1]
