# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear classifiers: fits, mechanisms, preprocessing, the default ridge, reduced bias."""

import functools
import itertools
import math
import pickle
import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from skdp import (
    BoundedScaler,
    DPHingeSVM,
    DPLogisticRegression,
    DPLpRegressor,
    FederatedDPLogisticRegression,
    LocalDPLogisticRegression,
    NormClipper,
    papers,
    solvers,
)
from skdp.exceptions import NoisyEstimateWarning
from skdp.io import stream_arrays, stream_chunks
from skdp.papers import bias_reduced
from skdp.papers.feature_preprocessing import Centering
from skdp.privacy import gdp_mu
from skdp.solvers import objective
from skdp.solvers.base import MARGIN_NOISE, Fit, default_ridge, margin_noise, rivals
from tests import _audit
from tests._chunks import shorten_chunks
from tests._neighbours import ADJACENCIES, as_layout, worst_pairs
from tests._solvers import (
    HINGE_LOSS,
    KINDS,
    LOGISTIC_LOSS,
    PAIRS,
    SOFTMAX_LOSS,
    fitted_loss,
    linear_model,
    problem_of,
    solver_for,
    solver_of,
)

# What DPLogisticRegression fits, apart from what it promises.


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


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "n_classes",
    [pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.slow)],
)
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_and_dense_rows_give_the_same_model(n_classes):
    X, y = _rows_in_ball(n_classes)
    X[X < 0.05] = 0.0
    formats = (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.coo_array)
    # the default releases no products of sparse rows: they agree among themselves
    for solver, first in (("accelerated", X), ("auto", sparse.csr_array(X))):
        model = DPLogisticRegression(solver=solver, random_state=3, data_norm=1.0)
        coef = model.fit(first, y).coef_
        for container in formats:
            # the statistics agree to rounding, and so to a step of the noise grid
            np.testing.assert_allclose(model.fit(container(X), y).coef_, coef, rtol=1e-4, atol=1e-4)


def test_units_of_the_data_do_not_matter_when_data_norm_follows():
    X, y = _rows_in_ball(2)
    model = DPLogisticRegression(random_state=0, C=np.inf, data_norm=1.0)
    unit = model.fit(X, y)
    scores = unit.decision_function(X)
    for norm in (1e-90, 1e-3, 1e5, 1e90):
        scaled = DPLogisticRegression(random_state=0, C=np.inf, data_norm=norm).fit(X * norm, y)
        np.testing.assert_allclose(scaled.decision_function(X * norm), scores, rtol=1e-6, atol=1e-6)


def test_rows_beyond_data_norm_count_as_if_scaled_down_to_it():
    X, y = _rows_in_ball(2)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    model = DPLogisticRegression(random_state=0, data_norm=1.0)
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
    model = DPLogisticRegression(classes=["no", "yes", "maybe"], random_state=0, data_norm=1.0)
    model.fit(X, np.full(50, "yes"))
    np.testing.assert_array_equal(model.classes_, ["maybe", "no", "yes"])
    assert model.predict_proba(X).shape == (50, 3)
    assert model.ledger_.assumptions == ()


def test_rows_with_labels_outside_the_public_classes_contribute_nothing():
    X, y = _rows_in_ball(2)
    labels = y.copy()
    labels[::3] = 7
    model = DPLogisticRegression(classes=[0, 1], random_state=0, data_norm=1.0)
    first = model.fit(X, labels).coef_
    changed = X.copy()
    changed[::3] = 0.9
    np.testing.assert_array_equal(model.fit(changed, labels).coef_, first)


def test_inferred_classes_are_on_the_ledger():
    X, y = _rows_in_ball(2)
    (assumption,) = DPLogisticRegression(data_norm=1.0).fit(X, y).ledger_.assumptions
    assert "class labels" in assumption


@pytest.mark.sample(1)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_follow_the_decision_function(n_classes):
    X, y = _rows_in_ball(n_classes)
    model = DPLogisticRegression(epsilon=5.0, random_state=0, data_norm=1.0).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(X))
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert np.isfinite(model.predict_log_proba(1e6 * X)).all()


def test_several_classes_share_one_budget_and_one_release_a_step():
    X, y = load_digits(return_X_y=True)
    model = DPLogisticRegression(epsilon=2.0, data_norm=64.0, random_state=0).fit(X, y)
    norm, moments, steps = model.ledger_.releases
    assert (norm.count, moments.count, steps.count) == (1, 1, model.n_iter_)
    assert steps.size == 10 * 65
    assert model.privacy_spent_[0] <= 2.0
    assert model.privacy_spent_ == (model.ledger_.epsilon(1e-6), 1e-6)


@pytest.mark.sample(4)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 300.0])
def test_what_is_reported_is_what_was_granted_and_never_more(epsilon, adjacency):
    X, y = _rows_in_ball(2, n_samples=100)
    model = DPLogisticRegression(epsilon, 1e-5, adjacency=adjacency, data_norm=1.0).fit(X, y)
    spent, delta = model.privacy_spent_
    assert delta == 1e-5
    assert epsilon * (1 - 1e-6) <= spent <= epsilon


def test_unseeded_fits_differ_and_seeded_fits_repeat():
    X, y = _rows_in_ball(2)
    unseeded = [DPLogisticRegression(data_norm=1.0).fit(X, y).coef_ for _ in range(2)]
    seeded = [DPLogisticRegression(random_state=5, data_norm=1.0).fit(X, y).coef_ for _ in range(2)]
    assert not np.any(unseeded[0] == unseeded[1])
    np.testing.assert_array_equal(*seeded)


@pytest.mark.slow
def test_it_works_inside_scikit_learn_s_tools():
    X, y = _rows_in_ball(2)
    pipeline = make_pipeline(
        BoundedScaler((-1, 1)), DPLogisticRegression(epsilon=4.0, data_norm=1.0)
    )
    assert cross_val_score(pipeline, X, y, cv=3, n_jobs=2).shape == (3,)
    grid = GridSearchCV(DPLogisticRegression(data_norm=1.0), {"epsilon": [0.5, 5.0]}, cv=2).fit(
        X, y
    )
    assert grid.best_estimator_.privacy_spent_[0] <= grid.best_params_["epsilon"]


@pytest.mark.full
def test_a_solver_object_is_searched_cloned_printed_and_pickled():
    X, y = _rows_in_ball(2, n_samples=200)
    model = DPLogisticRegression(
        epsilon=4.0,
        solver=solvers.SGD(batch_size=20),
        max_iter=5,
        classes=(0, 1),
        random_state=0,
        data_norm=1.0,
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


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [solvers.Accelerated, solvers.SGD, solvers.Objective])
def test_any_solver_cuts_rows_to_their_largest_entries(kind):
    X, y = _rows_in_ball(2, n_samples=300)
    cut = np.where(np.argsort(np.argsort(-abs(X))) < 2, X, 0.0)
    given = {"epsilon": 4.0, "classes": (0, 1), "random_state": 0}
    whole, short = (
        DPLogisticRegression(solver=kind(sparsity=2), **{"data_norm": 1.0, **given}).fit(rows, y)
        for rows in (X, cut)
    )
    np.testing.assert_array_equal(whole.coef_, short.coef_)
    other = DPLogisticRegression(solver=kind(), **{"data_norm": 1.0, **given}).fit(X, y)
    assert np.any(other.coef_ != whole.coef_)


def test_verbose_prints_the_public_plan(capsys):
    X, y = _rows_in_ball(2)
    printed = []
    for rows in (X, -X):
        DPLogisticRegression(verbose=1, random_state=0, data_norm=1.0).fit(rows, y)
        printed.append(capsys.readouterr().out)
    assert " releases from " in printed[0]
    assert printed[0] == printed[1]


# Every mechanism of the linear classifiers: choice, behaviour, claims.


BOUND = {"coef_bound": 20.0}
every_pair = pytest.mark.parametrize(("mechanism", "solver"), PAIRS)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def blobs(n_rows=600, n_features=2, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    angle = 2 * np.pi * np.arange(n_classes) / n_classes
    centers = np.zeros((n_classes, n_features))
    centers[:, 0], centers[:, 1] = 0.6 * np.cos(angle), 0.6 * np.sin(angle)
    return centers[y] + 0.1 * rng.normal(size=(n_rows, n_features)), y


def smooth(model, mechanism, solver):
    """Give the hinge a derivative where the mechanism needs one."""
    needed = mechanism == "objective" or solver in ("one-pass", "frank-wolfe")
    if isinstance(model, DPHingeSVM) and needed:
        model.set_params(smoothing=0.5)
    if solver == "lazy-sgd":
        model.set_params(coef_bound=None)
    return model.set_params(mechanism=mechanism, solver=solver_of(solver, mechanism))


@pytest.mark.sample(5)
@every_adjacency
@every_pair
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_every_pair_learns_within_its_budget(estimator, mechanism, solver, adjacency):
    X, y = blobs()
    model = estimator(
        8.0, adjacency=adjacency, classes=(0, 1), random_state=0, data_norm=1.0, **BOUND
    )
    model = smooth(model, mechanism, solver).fit(X, y)
    assert model.score(X, y) > 0.9
    epsilon, delta = model.privacy_spent_
    assert 7.9 < epsilon <= 8.0
    one_draw = mechanism == "exponential" and solver != "frank-wolfe"
    # many exact draws may add up to epsilon at delta 0, if that is the better price
    assert delta == (0.0 if one_draw else 1e-6) or (solver, delta) == ("frank-wolfe", 0.0)
    assert model.ledger_.adjacency == adjacency
    assert model.n_iter_ >= 1
    idealised = any("idealised" in release.numerics for release in model.ledger_.releases)
    assert idealised == (one_draw or solver == "lazy-sgd")


MULTICLASS = [pair for pair in PAIRS if pair[1] != "exact"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("mechanism", "solver"), MULTICLASS)
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_every_pair_learns_three_classes(estimator, mechanism, solver):
    X, y = blobs(n_rows=900, n_classes=3)
    model = estimator(
        30.0, classes=(0, 1, 2), random_state=0, fit_intercept=False, data_norm=1.0, **BOUND
    )
    model = smooth(model, mechanism, solver).fit(X, y)
    assert model.coef_.shape == (3, 2)
    assert model.score(X, y) > 0.8


@pytest.mark.sample(3)
@pytest.mark.parametrize("solver", ["newton", "lbfgs", "cvxpy"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_pure_privacy_uses_k_norm_noise(mechanism, solver):
    if (mechanism, solver) not in PAIRS:
        return
    X, y = blobs()
    model = linear_model(
        DPLogisticRegression, 8.0, 0.0, mechanism=mechanism, solver=solver, classes=(0, 1),
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.privacy_spent_ == (pytest.approx(8.0), 0.0)
    assert {release.noise.law for release in model.ledger_.releases} == {"k-norm"}
    assert model.score(X, y) > 0.9


@pytest.mark.sample(1)
@pytest.mark.parametrize(("mechanism", "solver"), [p for p in PAIRS if p[0] != "exponential"])
def test_layouts_agree(mechanism, solver):
    X, y = blobs(n_rows=200)
    model = linear_model(
        DPLogisticRegression, 4.0, mechanism=mechanism, solver=solver, classes=(0, 1),
        random_state=0, max_iter=None,
    )  # fmt: skip
    dense, csr = (clone(model).fit(rows, y).coef_ for rows in (X, sparse.csr_array(X)))
    if solver != "preconditioned":
        # of sparse rows no products are released, and the geometry is another one
        np.testing.assert_allclose(csr, dense, rtol=1e-3, atol=1e-5)
    for other, expected in ((np.asfortranarray(X), dense), (sparse.csc_array(X), csr)):
        found = clone(model).fit(other, y).coef_
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_auto_is_gradient_and_pure_auto_depends_on_the_loss():
    X, y = blobs()
    for estimator, pure in ((DPLogisticRegression, "objective"), (DPHingeSVM, "output")):
        options = {"classes": (0, 1), "random_state": 0}
        for delta, mechanism in ((1e-6, "gradient"), (0.0, pure)):
            default = estimator(4.0, delta, **{"data_norm": 1.0, **options}).fit(X, y)
            named = estimator(4.0, delta, mechanism=mechanism, **{"data_norm": 1.0, **options}).fit(
                X, y
            )
            np.testing.assert_array_equal(default.coef_, named.coef_)


@pytest.mark.sample(3)
@pytest.mark.parametrize("solver", sorted(KINDS))
def test_a_solver_chooses_its_mechanism_and_a_word_is_its_default_object(solver):
    X, y = blobs(n_features=3)
    kind = KINDS[solver]
    options = {"classes": (0, 1), "random_state": 0, "smoothing": 0.5}
    options["coef_bound"] = None if solver == "lazy-sgd" else 20.0
    fits = [DPHingeSVM(4.0, solver=kind(), **{"data_norm": 1.0, **options})]
    fits += [
        DPHingeSVM(4.0, mechanism=kind.mechanism, solver=kind(), **{"data_norm": 1.0, **options})
    ]
    if kind.word:
        assert kind.word == solver
        fits.append(DPHingeSVM(4.0, solver=solver, **{"data_norm": 1.0, **options}))
    coefs = [model.fit(X, y).coef_ for model in fits]
    for other in coefs[1:]:
        np.testing.assert_array_equal(coefs[0], other)


REFUSED = [
    (
        DPLogisticRegression(mechanism="gradient", solver="output", data_norm=1.0),
        "solver=solvers.Output() does not belong to mechanism='gradient': it has "
        "mechanism='output'. The solvers that fit are 'accelerated', 'gd', 'lazy-sgd', "
        "'preconditioned', 'sgd'.",
    ),
    (
        DPLogisticRegression(mechanism="objective", solver=papers.OnePass(), data_norm=1.0),
        "solver=papers.OnePass() does not belong to mechanism='objective'",
    ),
    (
        DPLogisticRegression(delta=0.0, mechanism="gradient", data_norm=1.0),
        "delta must be greater than 0",
    ),
    (
        DPLogisticRegression(delta=0.0, solver=solvers.SGD(), data_norm=1.0),
        "delta must be greater than 0 for solvers.SGD(), whose Gaussian noise is never purely "
        "epsilon-DP; got 0. The solvers that fit are 'frank-wolfe', 'objective', 'output'.",
    ),
    (
        DPLogisticRegression(delta=0.0, solver="phased", data_norm=1.0),
        "delta must be greater than 0",
    ),
    (
        DPLogisticRegression(delta=0.0, solver=papers.Localized(), data_norm=1.0),
        "delta must be greater than 0",
    ),
    (
        DPLogisticRegression(delta=0.0, solver=papers.OnePass(), data_norm=1.0),
        "delta must be greater than 0",
    ),
    (
        DPLogisticRegression(delta=0.0, solver=papers.BiasReduced(), data_norm=1.0),
        "delta must be greater than 0",
    ),
    (
        DPHingeSVM(mechanism="objective", data_norm=1.0),
        "second derivative, which the hinge does not have",
    ),
    (
        DPHingeSVM(solver=papers.OnePass(), data_norm=1.0),
        "second derivative, which the hinge does not have",
    ),
    (DPHingeSVM(solver="frank-wolfe", data_norm=1.0), "Set smoothing to a positive number"),
    (DPLogisticRegression(solver="exact", data_norm=1.0), "coef_bound must be a number"),
    (DPLogisticRegression(solver=papers.FiniteNet(), data_norm=1.0), "coef_bound must be a number"),
    (
        DPLogisticRegression(mechanism="exponential", solver="exact", data_norm=1.0, **BOUND),
        "at most 5 coefficients, intercepts included; this problem has 7. skdp.papers.FiniteNet() "
        "draws from a fixed set of candidates. The solvers that fit are 'frank-wolfe'.",
    ),
    (DPHingeSVM(mechanism="exponential", data_norm=1.0, **BOUND), "at most 5 coefficients"),
    (
        DPLogisticRegression(solver=papers.FiniteNet(localize=True), data_norm=1.0, **BOUND),
        "C must be finite",
    ),
    (DPLogisticRegression(mechanism="objective", C=1e6, data_norm=1.0), "C must be at most"),
    (
        DPLogisticRegression(solver=papers.Localized(), mechanism="gradient", data_norm=1.0),
        "solver=papers.Localized() does not belong to mechanism='gradient': it has "
        "mechanism='output'. The solvers that fit are",
    ),
    (
        DPLogisticRegression(solver="lazy-sgd", coef_bound=1.0, data_norm=1.0),
        "coef_bound must be None with solvers.LazySGD()",
    ),
    (
        DPLogisticRegression(solver="frank-wolfe", C=1.0, data_norm=1.0),
        "C must be inf with solvers.FrankWolfe()",
    ),
    (
        DPLogisticRegression(solver=solvers.Output(linf_projection=True), data_norm=1.0),
        "coef_bound must be a number for linf_projection=True",
    ),
    (
        DPLogisticRegression(solver=solvers.SGD(batch_size=-1), data_norm=1.0),
        "'batch_size' parameter of SGD",
    ),
    (
        DPLogisticRegression(solver="bias-reduced", data_norm=1.0),
        "or an object of skdp.solvers or skdp.papers; got 'bias-reduced'. It is an object: "
        "solver=skdp.papers.BiasReduced().",
    ),
    (
        DPLogisticRegression(solver="accelerated-one-pass", data_norm=1.0),
        "skdp.papers.AcceleratedOnePass()",
    ),
    (DPLogisticRegression(solver="localized", data_norm=1.0), "skdp.papers.Localized()"),
    (DPLogisticRegression(solver="one-pass", data_norm=1.0), "skdp.papers.OnePass()"),
    (DPLogisticRegression(solver="net", data_norm=1.0), "skdp.papers.FiniteNet()"),
    (
        DPLogisticRegression(solver="newton", data_norm=1.0),
        "skdp.solvers.Output(minimizer='newton')",
    ),
    (
        DPLogisticRegression(solver="adam", data_norm=1.0),
        "solver must be 'auto', one of ['accelerated', ",
    ),
]


@pytest.mark.sample(6, 21)
@pytest.mark.parametrize(("model", "message"), REFUSED, ids=str)
def test_what_does_not_go_together_is_refused_before_the_data_are_read(model, message):
    X, y = blobs(n_features=6)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.set_params(classes=(0, 1)).fit(X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "ledger_")


@every_adjacency
def test_the_largest_C_that_is_named_works(adjacency):
    X, y = blobs()
    model = DPLogisticRegression(
        1.0, mechanism="objective", C=1e9, adjacency=adjacency, data_norm=3.0, random_state=0
    )
    with pytest.raises(ValueError, match="C must be at most") as error:
        model.fit(X, y)
    named = float(re.search(r"at most ([0-9.e+-]+),", str(error.value))[1])
    model.set_params(C=named * 0.999).fit(X, y)


# -- claims ------------------------------------------------------------------

# noise that comes late has an audit of its own, in tests/test_lazy_sgd.py
ADDITIVE = [p for p in PAIRS if p[0] in ("gradient", "output") and p[1] != "lazy-sgd"]


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize(("mechanism", "solver"), ADDITIVE)
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_coupled_trace_stays_within_the_claim(
    estimator, mechanism, solver, n_classes, adjacency
):
    model = estimator(
        2.0, 1e-5, adjacency=adjacency, classes=range(n_classes), random_state=0,
        max_iter=5 if mechanism == "gradient" else None, data_norm=1.0,
    )  # fmt: skip
    smooth(model, mechanism, solver)

    def fit(rows):
        clone(model).fit(rows.X, rows.labels())

    for pair in worst_pairs(12, 2, n_classes, adjacency, 1.0):
        assert _audit.coupled_mu(fit, *pair) <= gdp_mu(2.0, 1e-5)


def label_flip(n_rows, adjacency, classes=(0, 1)):
    """Return data in which one row's gradient keeps its full length, and its neighbour."""
    X, y = np.zeros((n_rows, 1)), np.zeros(n_rows, dtype=int)
    X[0] = 1.0
    other = y.copy()
    other[0] = 1 if adjacency == "replace-one" else 99
    return (X, y), (X, other)


def output_mu(adjacency, C):
    model = DPHingeSVM(
        2.0, 1e-5, mechanism="output", adjacency=adjacency, C=C, fit_intercept=False,
        classes=(0, 1), random_state=0, data_norm=1.0,
    )  # fmt: skip
    fit = functools.partial(lambda m, data: clone(m).fit(*data), model)
    return _audit.coupled_mu(fit, *label_flip(8, adjacency)) / gdp_mu(2.0, 1e-5)


@every_adjacency
def test_output_perturbation_of_the_hinge_is_tight(adjacency):
    # C so small that the margin is not reached: the row's gradient has full length
    assert 0.98 < output_mu(adjacency, C=0.1) <= 1


def log_ratio(coef, first, second, ridge, scale):
    """Return log p(coef)/q(coef) of the exact minimiser of a binary problem, K-norm noise."""
    terms = []
    for X, t in (first, second):
        a = expit(-t * (X @ coef))
        gradient = ridge * coef - X.T @ (t * a)
        hessian = ridge * np.eye(len(coef)) + (X.T * (a * (1 - a) * np.abs(t))) @ X
        terms.append(-np.linalg.norm(gradient) / scale + np.linalg.slogdet(hessian)[1])
    return terms[0] - terms[1]


@pytest.mark.sample(1)
@every_adjacency
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_pure_objective_perturbation_keeps_its_claim_where_it_lands(epsilon, adjacency):
    rng = np.random.default_rng(0)
    worst = 0.0
    for seed, n_rows in itertools.product(range(10), (1, 3, 30)):
        X = rng.normal(size=(n_rows, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = rng.integers(0, 2, n_rows)
        model = DPLogisticRegression(
            epsilon, 0.0, mechanism="objective", adjacency=adjacency, fit_intercept=False,
            classes=(0, 1), random_state=seed, data_norm=1.0,
        ).fit(X, y)  # fmt: skip
        linear = model.ledger_.releases[0]
        ridge = float(re.search(r"ridge (\S+)", linear.query)[1])
        t = 2.0 * y - 1
        other = X.copy(), t.copy()
        other[0][0] = -X[0] if seed % 2 else X[0, ::-1]
        other[1][0] = 0.0 if adjacency == "zero-out" else t[0]
        ratio = log_ratio(model.coef_[0], (X, t), other, ridge, linear.noise.scale)
        worst = max(worst, abs(ratio))
    assert 0.2 * epsilon < worst <= epsilon


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("model", "twin"),
    [
        (DPLogisticRegression(data_norm=1.0), LogisticRegression()),
        (DPLogisticRegression(mechanism="objective", data_norm=1.0), LogisticRegression()),
        (LocalDPLogisticRegression(), LogisticRegression()),
        (FederatedDPLogisticRegression(), LogisticRegression()),
        (DPHingeSVM(data_norm=1.0), LinearSVC()),
        (DPLpRegressor(), HuberRegressor()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_number_of_steps_has_the_form_that_the_twin_has(model, twin):
    X, y = _rows_in_ball(2)
    steps, its_own = model.fit(X, y).n_iter_, twin.fit(X, y).n_iter_
    assert np.shape(steps) == np.shape(its_own)
    assert isinstance(steps, np.ndarray) == isinstance(its_own, np.ndarray)
    assert np.all(np.array(steps) >= 1)


NO_SOLVERS = [
    (solvers.SGD, "an instance, for example solvers.SGD(); got the class SGD"),
    (DPLogisticRegression, "an instance; got the class DPLogisticRegression"),
    (DPLogisticRegression(data_norm=1.0), "got a DPLogisticRegression"),
    (None, "got None"),
    (7, "got an int"),
]


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM, DPLpRegressor])
@pytest.mark.parametrize(("solver", "message"), NO_SOLVERS, ids=str)
def test_what_is_no_solver_is_refused_with_a_list_of_what_is(estimator, solver, message):
    model = estimator(solver=solver, data_norm=1.0)
    with pytest.raises(TypeError, match=re.escape(message)) as error:
        model.fit(*blobs())
    assert "solver must be 'auto', one of ['accelerated', 'exact'," in str(error.value)


def test_a_parameter_of_another_solver_is_refused():
    model = DPLogisticRegression(solver="gd", data_norm=1.0)
    with pytest.raises(AttributeError, match="set_params"):
        model.set_params(solver__batch_size=8)
    model.set_params(solver=solvers.GD())
    with pytest.raises(ValueError, match="Invalid parameter 'batch_size' for estimator GD"):
        model.set_params(solver__batch_size=8)
    with pytest.raises(TypeError, match="batch_size"):
        DPLogisticRegression(batch_size=8, data_norm=1.0)


def test_no_solver_was_overlooked():
    public = {
        kind
        for module in (solvers, papers)
        for name in module.__all__
        if isinstance(kind := getattr(module, name), type) and issubclass(kind, solvers.Solver)
    }
    # and one that is made of another one
    assert set(KINDS.values()) == public - {solvers.Solver, papers.FeaturePreprocessing}
    assert {mechanism for mechanism, _ in PAIRS} == {kind.mechanism for kind in KINDS.values()}
    for mechanism, word in PAIRS:
        assert solver_of(word, mechanism).mechanism == mechanism


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_features", [2, 400])
@pytest.mark.parametrize("mechanism", ["auto", "objective", "output", "exponential"])
def test_auto_takes_nothing_from_papers(mechanism, n_features, delta):
    model = DPHingeSVM(
        8.0, delta, mechanism=mechanism, coef_bound=5.0, smoothing=0.5, data_norm=1.0
    )
    chosen = solver_for(model, problem_of(model, 60, n_features, 2))
    assert type(chosen).__module__.startswith("skdp.solvers.")


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_second_moments_are_for_signal_that_pays_for_them(estimator):
    def word(n_rows, n_features=30, model=None):
        model = model or estimator(classes=(0, 1), data_norm=1.0)
        problem = problem_of(model, n_rows, n_features, 2)
        return solver_for(model, problem).word

    assert word(20_000) == word(2000) == "preconditioned"
    assert word(100) == ("accelerated" if estimator is DPLogisticRegression else "gd")
    # the noise of a gradient grows with the features, and the signal does not
    assert word(2000, n_features=20_000) == "accelerated"
    assert word(20_000, model=estimator(delta=0.0, data_norm=1.0)) in {"objective", "output"}


@pytest.mark.sample(6, 11)
@every_adjacency
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
@pytest.mark.parametrize("localize", [False, True])
@pytest.mark.parametrize("solver", ["exact", "net"])
def test_the_exponential_mechanism_keeps_its_claim_in_one_dimension(
    estimator, localize, solver, adjacency
):
    # the density of the last draw, on a grid, from the temperature on the ledger
    (X, y), (_, other) = label_flip(5, adjacency)
    X[1:] = np.linspace(-1, 1, 4)[:, None]
    model = linear_model(
        estimator, 1.0, mechanism="exponential", solver=solver, localize=localize, C=0.5,
        adjacency=adjacency, fit_intercept=False, classes=(0, 1), random_state=0, coef_bound=3.0,
    ).fit(X, y)  # fmt: skip
    draw = model.ledger_.releases[-1]
    w = np.linspace(-3, 3, 20_001)[:, None]
    loss = model._loss(2)
    scores = [
        loss.value(w @ X.T, 2.0 * labels - 1) @ (labels < 2) + w[:, 0] ** 2 / 2 / model.C
        for labels in (y, other)
    ]
    logs = [-score / draw.noise.scale for score in scores]
    logs = [
        log - math.log(np.trapezoid(np.exp(log - log.max()), w[:, 0])) - log.max() for log in logs
    ]
    ratio = np.abs(logs[0] - logs[1]).max()
    assert 0.2 * draw.noise.epsilon < ratio <= draw.noise.epsilon


# The penalty of output perturbation: noise of a margin, free of the number of features.


def problem(n_rows=10_000, n_features=2**18, epsilon=1.0, delta=1e-5, n_classes=2, **options):
    """Return the public facts of a logistic regression."""
    model = linear_model(DPLogisticRegression, epsilon, delta, mechanism="output", **options)
    return problem_of(model, n_rows, n_features, n_classes)


def noise_law(public, ridge):
    """Return the law of the noise, and the deviation of a margin."""
    return margin_noise(public)(ridge)


def test_the_penalty_does_not_depend_on_the_number_of_features():
    ridges = [default_ridge(problem(n_features=d)) for d in (100, 2**14, 2**20)]
    assert ridges[0] == ridges[1] == ridges[2]
    expected = 2 * math.hypot(1, 0.1) / gdp_mu(1.0, 1e-5) / MARGIN_NOISE
    assert ridges[0] == pytest.approx(expected)
    # nor does that of objective perturbation, from a few thousand on
    ridges = [objective.default_objective_ridge(problem(n_features=d)) for d in (2**14, 2**20)]
    assert ridges[0] == pytest.approx(ridges[1], rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("sparsity", [None, 30])
def test_noise_moves_margins_by_the_same_amount(delta, n_classes, sparsity):
    public = problem(n_features=5000, delta=delta, n_classes=n_classes, sparsity=sparsity)
    deviation = noise_law(public, default_ridge(public))[1]
    assert deviation == pytest.approx(MARGIN_NOISE / rivals(public.loss), rel=1e-9)


def test_few_coefficients_bear_more_noise_and_many_rows_less():
    few = problem(n_features=3)
    assert noise_law(few, default_ridge(few))[1] == pytest.approx(1.25 / 2)
    # from the bound for a solution of norm 30
    ridges = [default_ridge(problem(n_rows=n)) for n in (10**9, 8 * 10**9)]
    assert ridges[1] / ridges[0] == pytest.approx(2.0, rel=0.06)
    unit = noise_law(problem(), 1.0)[1] * math.hypot(1, 0.1)
    assert ridges[0] == pytest.approx((2 * 10**9 * unit**2 / 4 / 900) ** (1 / 3), rel=0.06)
    kinked = DPHingeSVM(1.0, 1e-5, data_norm=1.0)
    ridges = [default_ridge(problem_of(kinked, n, 100, 2)) for n in (10**9, 4 * 10**9)]
    assert ridges[1] / ridges[0] == pytest.approx(2.0, rel=0.06)


@pytest.mark.sample(6, 13)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("sparsity", [None, 1, 7])
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_the_penalty_is_found_for_any_budget(estimator, sparsity, epsilon):
    public = problem_of(
        linear_model(estimator, epsilon, 0.0, mechanism="output", sparsity=sparsity), 50, 400, 3
    )
    ridge = default_ridge(public)
    limit = MARGIN_NOISE / rivals(public.loss)
    assert noise_law(public, ridge)[1] <= limit * (1 + 1e-9)
    assert 0 < ridge < 1e9


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("loss", "sigma", "short"),
    [
        (LOGISTIC_LOSS, 0.3, 0.0),
        (HINGE_LOSS.smoothed(0.1), 0.05, 0.0),
        (HINGE_LOSS.smoothed(0.1), 3.0, 0.0),
        (HINGE_LOSS, 0.3, 0.0),
        (SOFTMAX_LOSS, 0.3, 0.0),
        (HINGE_LOSS, 0.3, 1.0),
        (LOGISTIC_LOSS, 0.3, 2.0),
    ],
    ids=str,
)
def test_what_noise_costs_is_free_of_the_dimension(loss, sigma, short):
    # Proposition 46: margins where the loss bends most attain the bound
    rng = np.random.default_rng(0)
    K, X = loss.n_outputs, 0.8
    z = np.zeros((1, K) if K > 1 else 1)
    z[..., 0] = loss.margin - short
    target = np.zeros(1, dtype=int) if K > 1 else np.ones(1)
    for n_features in (1, 50):
        # the noise of a margin, by way of the coefficients
        row = np.full(n_features, X / math.sqrt(n_features))
        noise = sigma * rng.normal(size=(100_000, K, n_features)) @ row
        moved = z + noise if K > 1 else z + noise[:, 0]
        excess = np.mean(loss.value(moved, np.repeat(target, 100_000)) - loss.value(z, target))
        kinked = sigma * X / math.sqrt(2 * math.pi)
        smooth = loss.trace * (sigma * X) ** 2 / 2
        bound = smooth if K > 1 else min(kinked, smooth)
        assert excess <= bound * 1.02 + 1e-12
        if short == 0:
            assert excess >= 0.8 * bound


def test_several_kinked_classes_cost_what_the_largest_noise_does():
    loss, rng = fitted_loss(DPHingeSVM, 6), np.random.default_rng(0)
    # all classes tie at the margin
    z = np.zeros((1, 6))
    z[0, 0] = 1.0
    moved = z + 0.3 * rng.normal(size=(100_000, 6))
    excess = loss.value(moved, np.zeros(100_000, dtype=int)).mean()
    assert 0.6 < excess / (0.3 * rivals(loss)) <= 1


# Private centering within a classifier: what the model is for, what is paid, what is refused.


PREPROCESS = ("center", "center-scale", "center-clip")
every_kind = pytest.mark.parametrize("preprocess", PREPROCESS)
every_estimator = pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
SPREAD = [kind for kind in PREPROCESS if kind != "center"]


def rows(n_rows=800, offset=0.0, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    z = X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=n_rows)
    y = np.digitize(z, [0.0, 1.5][: n_classes - 1])
    return X + offset * np.array([1.0, -0.5, 0.0, 2.0]), y


def model_of(preprocess, estimator=DPLogisticRegression, **options):
    usual = {"epsilon": 4.0, "delta": 1e-5, "max_iter": 20, "random_state": 0}
    return linear_model(estimator, preprocess=preprocess, **{**usual, **options})


@pytest.mark.full
@every_kind
@every_estimator
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e6])
def test_the_model_is_for_the_rows_as_they_are(offset, n_classes, estimator, preprocess):
    X, y = rows(offset=offset, n_classes=n_classes)
    data_norm, seen = 3.0 * max(offset, 2.0), []

    def spy(name, kind, real):
        def seen_by(*args):
            found = real(*args)
            seen.append((name, found, args[0]))
            return found

        return mock.patch.object(kind, name, seen_by)

    model = model_of(preprocess, estimator, data_norm=data_norm, epsilon=30.0)
    with spy("run", Centering, Centering.run), spy("solution", Fit, Fit.solution):
        fitted = model.fit(X, y)
    (_, (center, radius), _), (_, (steps, *_), plan), _ = seen
    coef = np.atleast_2d(steps)[:, :4]
    intercept = plan.problem.intercept * np.atleast_2d(steps)[:, 4]
    short = X * np.minimum(1, data_norm / np.linalg.norm(X, axis=1))[:, None]
    moved = (short / data_norm - center) / radius
    scores = moved @ coef.T + intercept
    # what all classes share is no part of the model
    scores -= scores.mean(axis=1, keepdims=True) if n_classes > 2 else 0.0
    found = fitted.decision_function(X)
    size = np.abs(X @ fitted.coef_.T).max() + np.abs(scores).max()
    np.testing.assert_allclose(found, scores.squeeze(), rtol=0, atol=1e-10 + 1e-15 * size)
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("solver", ["accelerated", "sgd"])
@every_kind
def test_the_ledger_lists_all_and_the_price_is_joint(preprocess, solver, adjacency):
    model = model_of(preprocess, solver=solver, adjacency=adjacency, preprocess_share=0.2)
    fitted = model.fit(*rows())
    ledger = fitted.ledger_
    gradient = ledger.releases[-1]
    assert gradient.query.startswith("gradient of LogisticLoss")
    assert gradient.count == fitted.n_iter_ == 20
    assert (gradient.noise.sampling is not None) == (solver == "sgd")
    draws = [r for r in ledger.releases if r.noise.law == "exponential"]
    assert len(draws) == (preprocess != "center")
    center = [r for r in ledger.releases[:-1] if r.noise.law == "gaussian"]
    assert center
    spent, delta = fitted.privacy_spent_
    assert 0.95 * 4.0 < spent <= 4.0
    assert delta == 1e-5
    parts = [replace(ledger, releases=tuple(group)) for group in (center, draws, [gradient])]
    alone = [part.epsilon(1e-5 / 2) for part in parts if part.releases]
    assert max(alone) < spent * 1.2
    assert spent < sum(alone)


@pytest.mark.parametrize("preprocess", SPREAD)
def test_too_few_rows_for_a_draw_get_a_sound_radius(preprocess):
    X, y = rows(12)
    fitted = model_of(preprocess, epsilon=1.0, classes=(0, 1)).fit(X, y)
    assert all(r.noise.law == "gaussian" for r in fitted.ledger_.releases)
    assert fitted.privacy_spent_[0] <= 1.0
    one = model_of(preprocess, epsilon=1.0, classes=(0, 1)).fit(X[:1], y[:1])
    assert np.isfinite(one.coef_).all()


@pytest.mark.sample(6, 18)
@every_kind
@every_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fit_intercept": False}, "an intercept makes good; got fit_intercept=False"),
        (
            {"mechanism": "output", "max_iter": None},
            "does not belong to",
        ),
        ({"mechanism": "exponential"}, "does not belong to mechanism='exponential'"),
        ({"solver": "newton", "max_iter": None}, "must be solvers.Accelerated, .* got Output"),
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"preprocess_share": 0.0}, "share"),
        ({"preprocess_share": 0.5}, "share"),
        ({"preprocess_share": np.nan}, "share"),
        ({"preprocess": "whiten"}, "kind"),
        ({"epsilon": np.nan}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message, estimator, preprocess):
    options = {"preprocess": preprocess, **options}
    with pytest.raises(ValueError, match=message):
        model_of(estimator=estimator, **options).fit(*rows(100))


@every_kind
def test_sparse_rows_are_refused_with_a_message(preprocess):
    X, y = rows(100)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model_of(preprocess).fit(sparse.csr_array(X), y)


def test_units_of_a_radius_are_not_mixed_with_those_of_the_data():
    for options in ({"intercept_scaling": 1.0}, {"coef_bound": 1.0}):
        with pytest.raises(ValueError, match="must be None"):
            model_of("center-clip", **options).fit(*rows(100))


@pytest.mark.sample(1)
@every_kind
@pytest.mark.parametrize(
    "change",
    [
        lambda X: X * [1.0, 0.0, 0.0, 0.0] + [0.0, 5.0, -1.0, 0.0],
        lambda X: 0 * X + 0.3,
        lambda X: 0 * X,
        lambda X: X * 1e300,
        lambda X: X * 1e-300,
        lambda X: X * [1e300, 1e-300, 1.0, 0.0],
    ],
    ids=["constant features", "all equal", "all zero", "1e300", "1e-300", "mixed"],
)
def test_odd_rows_give_a_finite_model(change, preprocess):
    X, y = rows(400)
    with np.errstate(over="ignore", under="ignore"):
        X = change(X)
    fitted = model_of(preprocess, epsilon=30.0).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.intercept_).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("preprocess", ["center", "center-clip"])
@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "float32"])
def test_the_layout_makes_no_difference(layout, preprocess):
    X, y = rows(300)
    X = X.astype(np.float32).astype(np.float64)
    model = model_of(preprocess, epsilon=30.0, data_norm=4.0)
    plain = clone(model).fit(X, y)
    other = clone(model).fit(as_layout(X, layout), y)
    assert other.ledger_ == plain.ledger_
    atol = 1e-4 * np.abs(plain.coef_).max()
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=atol)


@pytest.mark.full
def test_features_of_extreme_units_are_a_matter_of_data_norm():
    X, y = rows(400)
    models = [
        model_of("center-clip", epsilon=30.0, data_norm=4.0 * scale).fit(X * scale, y)
        for scale in (2.0**-300, 1.0, 2.0**300)
    ]
    for other, scale in ((models[0], 2.0**-300), (models[2], 2.0**300)):
        np.testing.assert_allclose(other.coef_ * scale, models[1].coef_, rtol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("preprocess", SPREAD)
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_without_noise_to_speak_of_the_offset_does_not_matter(offset, preprocess):
    X, y = rows(4000, offset)
    private = model_of(
        preprocess, epsilon=1e6, max_iter=1500, step_size=2.0, data_norm=3 * offset + 6.0,
        clipping_norm=None if preprocess == "center-clip" else 10.0,
    ).fit(X, y)  # fmt: skip
    public = LogisticRegression(C=np.inf, tol=1e-10).fit(X - X.mean(axis=0), y)
    np.testing.assert_allclose(private.coef_, public.coef_, rtol=0.05, atol=0.05)
    at_mean = private.decision_function(X.mean(axis=0)[None])
    np.testing.assert_allclose(at_mean, public.intercept_, atol=0.05)


@pytest.mark.full
def test_centering_pays_where_there_is_an_offset():
    # beside a solver that moves no rows by itself
    X, y = rows(4000, 20.0)
    given = {"epsilon": 1.0, "max_iter": None, "data_norm": 60.0, "solver": "accelerated"}
    scores = {kind: model_of(kind, **given).fit(X, y).score(X, y) for kind in (None, "center-clip")}
    assert scores["center-clip"] > scores[None] + 0.02


# Bias-reduced fits: inputs, refusals, plans, and what is left with few rows.


ESTIMATORS = (DPLogisticRegression, DPHingeSVM)
every_bias_reduced_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def bias_reduced_rows(n_rows=200, n_features=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1))
    return X / 4, y


def reduced(estimator=DPLogisticRegression, **options):
    usual = {
        "epsilon": 4.0, "delta": 1e-5, "solver": "bias-reduced", "batch_size": 50, "max_iter": 7,
        "random_state": 0,
    }  # fmt: skip
    return linear_model(estimator, **{**usual, **options})


@pytest.mark.full
@every_bias_reduced_estimator
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "csr", "csr zeros"])
def test_the_layout_makes_no_difference_to_reduced_bias(layout, n_classes, estimator):
    X, y = bias_reduced_rows(n_classes=n_classes)
    X[np.abs(X) < 0.05] = 0.0
    model = reduced(estimator)
    dense, other = clone(model).fit(X, y), clone(model).fit(as_layout(X, layout), y)
    np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-5 * np.abs(dense.coef_).max())
    assert other.ledger_ == dense.ledger_


def test_unsorted_sparse_rows_and_single_precision():
    X, y = bias_reduced_rows()
    model = reduced()
    one = clone(model).fit(X.astype(np.float32), y)
    two = clone(model).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    unsorted = as_layout(X, "csr duplicates")
    kept = unsorted.copy()
    np.testing.assert_allclose(clone(model).fit(unsorted, y).coef_, clone(model).fit(X, y).coef_)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(unsorted, name), getattr(kept, name))


@every_bias_reduced_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 201}, "batch_size, the rows of the smallest batches, must be at least 1"),
        ({"batch_size": 0.5}, "must be at least 1"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": math.nan}, "batch_size"),
        ({"delta": 0.0}, "delta must be greater than 0"),
        ({"epsilon": 1e-9, "delta": 1e-300}, "too small"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"oracle": "projection"}, "sparsity must be a number for oracle='projection'"),
        ({"oracle": "sketch"}, "sparsity must be a number for oracle='sketch'"),
        ({"oracle": "lasso"}, "oracle"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"preprocess": "center"}, "must be solvers.Accelerated, .* got BiasReduced\\("),
        ({"mechanism": "output"}, "does not belong to mechanism='output'"),
        ({"sparsity": 0}, "sparsity"),
    ],
)
def test_misuse_is_refused(options, message, estimator):
    with pytest.raises(ValueError, match=message):
        reduced(estimator, **options).fit(*bias_reduced_rows())


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("options", [
    {}, {"batch_size": 1, "max_iter": 300}, {"batch_size": 200}, {"batch_size": 100.5},
    {"oracle": "projection", "sparsity": 2}, {"failure_probability": 0.2, "max_iter": 3},
    {"epsilon": 0.3}, {"epsilon": 30.0},
])  # fmt: skip
def test_the_whole_budget_is_spent_and_no_more(options, adjacency):
    model = reduced(adjacency=adjacency, **options)
    fitted = model.fit(*bias_reduced_rows())
    spent, delta = fitted.privacy_spent_
    assert 0.99 * model.epsilon < spent <= model.epsilon
    assert delta == 1e-5
    runs = 1 if model.solver.failure_probability is None else 4
    assert fitted.n_iter_ == runs * model.max_iter
    assert fitted.ledger_.releases[0].count == fitted.n_iter_


@pytest.mark.sample(1)
@every_bias_reduced_estimator
@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 15, 30])
def test_few_rows_are_read_all_at_once(n_rows, estimator):
    X, y = bias_reduced_rows(n_rows)
    fitted = reduced(estimator, classes=(0, 1), batch_size=None, max_iter=None).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    (release,) = fitted.ledger_.releases
    assert not release.noise.by_chance
    assert fitted.privacy_spent_[0] <= 4.0
    # with small batches of a few rows all the same
    fitted = reduced(estimator, classes=(0, 1), batch_size=1).fit(X, y)
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", [1e300, 1e-300, 0.0])
@pytest.mark.parametrize("oracle", ["soft-threshold", "projection", "sketch"])
def test_extreme_rows(oracle, scale):
    X, y = bias_reduced_rows(60)
    model = reduced(oracle=oracle, sparsity=2, batch_size=20, max_iter=4)
    fitted = model.fit(X * scale, y)
    assert np.isfinite(fitted.coef_).all()
    X[:, 1] = scale
    assert np.isfinite(clone(model).fit(X, y).coef_).all()
    assert np.isfinite(clone(model).fit(X[:1].repeat(60, axis=0), y).coef_).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_refused(bad):
    X, y = bias_reduced_rows()
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        reduced().fit(X, y)


def test_the_coefficients_stay_in_the_ball():
    X, y = bias_reduced_rows()
    for options in ({"coef_bound": 0.5}, {"coef_bound": 0.5, "failure_probability": 0.3}):
        fitted = reduced(fit_intercept=False, step_size=100.0, **options).fit(X, y)
        assert np.linalg.norm(fitted.coef_) <= 0.5 * (1 + 1e-12)
    # without a bound it is the radius that solutions are expected within
    fitted = reduced(fit_intercept=False, step_size=1e6).fit(X, y)
    assert np.linalg.norm(fitted.coef_) <= 30 * (1 + 1e-12)


def test_the_penalty_pulls_to_zero():
    X, y = bias_reduced_rows()
    norms = [np.linalg.norm(reduced(C=C).fit(X, y).coef_) for C in (np.inf, 1.0, 1e-4)]
    assert norms[0] > norms[1] > norms[2]


@pytest.mark.full
@every_bias_reduced_estimator
def test_accuracy_without_noise_to_speak_of(estimator):
    X, y = bias_reduced_rows(2000)
    y = (X[:, 0] > 0).astype(int)
    for options in ({}, {"oracle": "projection", "sparsity": 4}, {"failure_probability": 0.5}):
        model = reduced(estimator, epsilon=200.0, batch_size=1000, max_iter=40, **options)
        assert model.fit(X, y).score(X, y) > 0.95


@pytest.mark.full
def test_the_oracle_that_recovers_from_measurements_learns_too():
    X, y = bias_reduced_rows(1000)
    y = (X[:, 0] > 0).astype(int)
    model = reduced(epsilon=200.0, batch_size=500, max_iter=30, oracle="sketch", sparsity=4)
    assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.full
def test_a_failure_probability_pays_for_a_choice():
    fitted = reduced(failure_probability=0.1, max_iter=3).fit(*bias_reduced_rows())
    *runs, choice = fitted.ledger_.releases
    assert "choice among 5 candidates" in choice.query
    assert runs[0].count == 15
    assert choice.noise.law == "exponential"


@pytest.mark.full
def test_wide_sparse_rows_are_never_made_dense(monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.random(300, 40_000, density=1e-4, format="csr", random_state=0)
    monkeypatch.setattr(sparse.csr_matrix, "toarray", None)
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    model = reduced(batch_size=150, max_iter=2, oracle="projection", sparsity=10)
    fitted = model.fit(X, rng.integers(0, 2, 300))
    assert fitted.coef_.shape == (1, 40_000)
    assert fitted.ledger_.releases[1].size == 3 * 40_001


@pytest.mark.full
def test_the_predicted_length_bounds_the_estimates(monkeypatch):
    # the step size rests on it: see how long the estimates of a fit are
    X, y = bias_reduced_rows(4000, 30)
    lengths, real = [], bias_reduced.telescoped_descent

    def watched(gradient, shape, plan):
        def kept(coef, step):
            found = gradient(coef, step)
            lengths.append(np.linalg.norm(found) ** 2)
            return found

        watched.predicted = plan.radius / (plan.clip * plan.step_size * math.sqrt(plan.n_steps))
        return real(kept, shape, plan)

    monkeypatch.setattr(bias_reduced, "telescoped_descent", watched)
    reduced(epsilon=1.0, batch_size=250, max_iter=127).fit(X, y)
    assert math.sqrt(np.mean(lengths)) < 1.5 * watched.predicted


# Rows that nobody has bounds for: scales are found, and predictions clip as the fit does.


def raw_table(n_rows=3000, seed=0):
    """Columns on scales from 1e-3 to 1e4, far from the origin, and labels that need all of them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, 5))
    y = (Z @ np.ones(5) + 0.3 * rng.normal(size=n_rows) > 0).astype(int)
    return Z * [1e-3, 0.1, 1.0, 50.0, 1e4] + [0.0, 5.0, -3.0, 2000.0, 1e5], y


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_without_a_norm_columns_on_any_scales_are_learned(estimator):
    X, y = raw_table()
    found = estimator(1.0, classes=(0, 1), random_state=0).fit(X[:2000], y[:2000])
    careless = estimator(1.0, classes=(0, 1), random_state=0, data_norm=1.0, solver="accelerated")
    careless.fit(X[:2000], y[:2000])
    assert found.score(X[2000:], y[2000:]) > 0.85 > 0.6 > careless.score(X[2000:], y[2000:])
    assert 0.99 < found.privacy_spent_[0] <= 1.0
    spread = np.array([1e-3, 0.1, 1.0, 50.0, 1e4])
    assert ((found.feature_scale_ / spread > 0.5) & (found.feature_scale_ / spread < 4)).all()
    assert 1.0 < found.data_norm_ < 5.0
    names = [release.query for release in found.ledger_.releases]
    assert sum("magnitude" in name or "thresholds" in name for name in names) == 4
    # in other units it is the same model
    units = np.array([1e6, 1e-3, 10.0, 1.0, 1e-5])
    other = estimator(1.0, classes=(0, 1), random_state=0).fit(X[:2000] * units, y[:2000])
    assert (other.predict(X * units) == found.predict(X)).mean() > 0.98


@every_adjacency
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_columns_times_1000_are_learned_beside_a_norm(estimator, adjacency):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4000, 10))
    y = (Z @ np.ones(10) + 0.5 * rng.normal(size=4000) > 0).astype(int)
    longest = 1.01 * np.linalg.norm(Z, axis=1).max()
    model = estimator(1.0, adjacency=adjacency, classes=(0, 1), random_state=0)

    def fitted(factors, norm):
        found = clone(model).set_params(data_norm=norm).fit((Z * factors)[:3000], y[:3000])
        assert 0.999 < found.privacy_spent_[0] <= 1.0
        check = found.ledger_.releases[0]
        # 12 of 3,000 rows
        assert (check.size, check.noise.scale) == (1, pytest.approx(250.0, rel=1e-3))
        return found, found.score((Z * factors)[3000:], y[3000:])

    kept, score = fitted(np.ones(10), longest)
    assert (kept.data_norm_, len(kept.ledger_.releases)) == (longest, 3)
    assert (kept.feature_scale_ == 1).all()
    assert score > 0.85
    one = np.where(np.arange(10) == 3, 1000.0, 1.0)
    for factors, norm in ((one, 1000 * longest), (np.ones(10), 100 * longest)):
        found, other = fitted(factors, norm)
        assert other > score - 0.02
        spread = found.feature_scale_ / factors
        assert ((spread > 0.3) & (spread < 4)).all()
        assert found.data_norm_ < 6.0


@pytest.mark.parametrize(
    "given",
    [{"C": 1.0}, {"coef_bound": 9.0}, {"solver": "accelerated"}, {"mechanism": "objective"}, "csr"],
    ids=str,
)
def test_a_norm_is_for_what_is_stated_in_its_units(given):
    X, y = raw_table()
    if given == "csr":
        X, given = sparse.csr_array(X), {}
    model = DPLogisticRegression(1.0, classes=(0, 1), data_norm=2e5, random_state=0, **given)
    model.fit(X, y)
    assert model.data_norm_ == 2e5
    assert (model.feature_scale_ == 1).all()
    assert not any("thresholds" in release.query for release in model.ledger_.releases)


def test_few_rows_have_units_of_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_400, 5))
    y = (X @ np.ones(5) + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    scales = np.array([1e-3, 0.1, 1.0, 50.0, 1e4])
    models = [
        DPLogisticRegression(1.0, classes=(0, 1), random_state=seed).fit(X[:400] * scales, y[:400])
        for seed in range(10)
    ]
    units = np.array([model.feature_scale_ for model in models])
    # noise invents a cell of magnitudes in a fit of fifty, or hides one
    assert np.count_nonzero(np.abs(np.log(units / scales)) < math.log(8)) >= 46
    # .64 where the norm of rows alone is found
    assert np.mean([m.score(X[400:] * scales, y[400:]) for m in models]) > 0.83


def test_fewer_rows_have_units_of_columns_if_one_count_finds_them_unlike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 16))
    y = (X @ np.ones(16) + rng.normal(size=8000) > 0).astype(int)
    units = np.where(np.arange(16) < 4, [1.0, 100.0, 1e4, 1e6] * 4, 1.0)
    scores, plain, found = [], [], 0
    for seed in range(6):
        model = DPLogisticRegression(1.0, classes=(0, 1), random_state=seed)
        alike = clone(model).fit(X[:400], y[:400])
        assert "norms that is not 0" in alike.ledger_.releases[0].query
        assert np.ptp(alike.feature_scale_) == 0
        plain.append(alike.score(X[400:], y[400:]))
        unlike = clone(model).fit(X[:400] * units, y[:400])
        found += np.ptp(unlike.feature_scale_) > 1000
        scores.append(unlike.score(X[400:] * units, y[400:]))
        for fitted in (alike, unlike):
            assert 0.99 < fitted.privacy_spent_[0] <= 1.0
    # noise hides a column now and then
    assert found >= 5
    # one unit: .57
    assert np.mean(plain) > 0.7
    assert np.mean(scores) > 0.65


def test_one_column_in_smaller_units_than_the_others_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 8))
    y = (3 * X[:, 0] + X[:, 1:].sum(axis=1) + 0.5 * rng.normal(size=6000) > 0).astype(int)
    model = DPLogisticRegression(1.0, classes=(0, 1), random_state=0)
    alike = clone(model).fit(X[:4000], y[:4000]).score(X[4000:], y[4000:])
    for factor in (0.1, 1e-3):
        Z = X * [factor, *[1] * 7]
        model.fit(Z[:4000], y[:4000])
        assert factor / 2 < model.feature_scale_[0] < 4 * factor
        # where it has the unit of the others .90 and .75
        assert model.score(Z[4000:], y[4000:]) > alike - 0.02 > 0.87


def test_an_origin_is_where_the_column_was_seen_whatever_noise_says():
    rng = np.random.default_rng(0)
    # the median is next to the end of the cells that it is in
    X = np.where(rng.random((2000, 20)) < 0.15, 0.7, -0.124)
    y = (X.sum(axis=1) + rng.normal(size=2000) > 0).astype(int)
    for seed in (27, 46, 47):
        model = DPLogisticRegression(0.4, classes=(0, 1), random_state=seed).fit(X, y)
        # 1e50 for the first seed, where all that is beyond the cells was a little credible
        assert np.abs(model.feature_center_).max() < 1


def test_columns_are_not_lost_beside_as_many_in_larger_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 40)) * np.repeat([1.0, 30.0], 20)
    y = (X[:, :20].sum(axis=1) + rng.normal(size=6000) > 0).astype(int)
    model = DPLogisticRegression(1.0, classes=(0, 1), random_state=0).fit(X[:4000], y[:4000])
    np.testing.assert_allclose(model.feature_scale_[:20], 1.0, rtol=0.6)
    # .55 where all have the unit of the others, as pixels that hardly vary have
    assert model.score(X[4000:], y[4000:]) > 0.88


@every_adjacency
def test_columns_that_share_a_unit_share_what_is_found(adjacency):
    X, y = load_digits(return_X_y=True)
    # pixels from 0 to 16, of which those at the edge are blank, and a column on another scale
    X = np.column_stack([X, 1000 * X[:, 20]])
    # noise alone makes one of 65 units ten times too large in a fit of twenty
    model = DPLogisticRegression(2.0, adjacency=adjacency, classes=range(10), random_state=1)
    model.fit(X[:1300], y[:1300])
    pixels, other = model.feature_scale_[:-1], model.feature_scale_[-1]
    assert 1000 < other < 100_000
    blank = pixels[[0, 32]]
    np.testing.assert_array_equal(blank, blank[0])
    assert ((pixels >= blank[0] / 2) & (pixels <= blank[0] * 2)).all()
    # .70 on average where every column has the unit that was found, or 1
    assert model.score(X[1300:], y[1300:]) > 0.82


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
@pytest.mark.parametrize("away", [1_712_345_678.0, -0.0123456])
def test_a_column_that_varies_little_beside_its_size_is_learned(away, estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 4))
    y = (X @ [2, 1, 1, 1] + 0.5 * rng.normal(size=8000) > 0).astype(int)
    # as seconds since 1970 do within hours: not seen beyond a 16,000th, accuracy was .70 to .75
    X[:, 0] = away + X[:, 0] * abs(away) / 1e5
    model = estimator(4.0, classes=(0, 1), random_state=0).fit(X[:6000], y[:6000])
    assert model.score(X[6000:], y[6000:]) > 0.9


def test_the_rounding_of_an_origin_is_no_unit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = (X.sum(axis=1) > 0).astype(int)
    # nearly always a number of many digits, as indicators are that were brought into a ball
    X[:, :3] = np.where(rng.random((3000, 3)) < 0.05, 1 / 3, -1 / 7)
    found = DPLogisticRegression(2.0, classes=(0, 1), random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.feature_scale_[:3], found.feature_scale_[0])
    assert found.feature_scale_[0] > 0.1


def test_few_rows_without_a_norm_are_warned_of_and_a_norm_is_the_remedy():
    X, y = raw_table(60)
    for rows in (X, 1e9 * X):
        with pytest.warns(NoisyEstimateWarning, match="a public number for data_norm") as caught:
            model = DPLogisticRegression(classes=(0, 1)).fit(rows, y)
        assert caught[0].filename == __file__
        assert model.data_norm_ == math.sqrt(5)
        assert not any("thresholds" in line.query for line in model.ledger_.releases)
    DPLogisticRegression(classes=(0, 1), data_norm=3.0).fit(X, y)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(classes=range(3)),
        DPHingeSVM(data_norm=2.0, classes=range(3)),
        LocalDPLogisticRegression(data_norm=2.0, classes=range(3)),
        FederatedDPLogisticRegression(data_norm=2.0, classes=range(3)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_all_classes_share_is_no_part_of_a_model(model):
    X, _ = blobs(900)
    fitted = model.fit(X, np.arange(900) % 3)
    size = np.abs(fitted.coef_).max()
    np.testing.assert_allclose(fitted.coef_.sum(axis=0), 0.0, atol=1e-12 * size)
    np.testing.assert_allclose(fitted.intercept_.sum(), 0.0, atol=1e-12 * size)


@pytest.mark.parametrize("options", [{"C": 0.1}, {"coef_bound": 1.0}, {"delta": 0.0}], ids=str)
def test_what_is_for_columns_as_they_are_leaves_them_so(options):
    X, y = blobs(3000)
    model = DPLogisticRegression(8.0, classes=(0, 1), random_state=0, **options).fit(100 * X, y)
    np.testing.assert_array_equal(model.feature_scale_, 1.0)
    assert 30 < model.data_norm_ < 300
    assert model.score(100 * X, y) > 0.9
    if "coef_bound" in options:
        assert np.linalg.norm(model.coef_) <= 1.0 + 1e-9


def test_sparse_rows_and_streams_find_a_norm():
    X, y = blobs(3000)
    csr = sparse.csr_array(np.where(np.abs(X) < 0.1, 0.0, 50 * X))
    model = DPLogisticRegression(4.0, classes=(0, 1), random_state=0, C=1e9).fit(csr, y)
    assert model.score(csr, y) > 0.9
    assert 15 < model.data_norm_ < 60
    # a norm beside which units are searched, and one that is taken as it is
    for norm in (None, 5e4, 20.0):
        dense = DPLogisticRegression(4.0, classes=(0, 1), data_norm=norm, random_state=0)
        whole = clone(dense).fit(50 * X, y)
        parts = clone(dense).fit(stream_arrays(50 * X), y)
        assert (whole.data_norm_ == 20.0) == (norm == 20.0)
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-6)


def test_columns_that_are_seldom_not_zero_have_units_where_there_are_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    X[:, 3] = 5000 * np.exp(0.7 * X[:, 3]) * (rng.random(len(X)) < 0.08)
    y = (X[:, 0] + 4 * (X[:, 3] > 0) > 1.5).astype(int)
    models = [DPLogisticRegression(1.0, classes=(0, 1), random_state=s).fit(X, y) for s in range(5)]
    # 1 at a hundred ranks, and an accuracy of .91
    assert min(model.feature_scale_[3] for model in models) > 1000
    assert np.mean([model.score(X, y) for model in models]) > 0.95


def raw_csr_table(n_rows=4000, n_levels=5):
    """Return numbers on different scales beside one-hot columns, and labels."""
    rng = np.random.default_rng(0)
    number = rng.exponential(size=(n_rows, 3)) * (rng.random((n_rows, 3)) < [0.4, 1.0, 1.0])
    level = rng.integers(0, n_levels, n_rows)
    y = number @ [1.0, 1.0, -1.0] + (level == 0) + 0.5 * rng.normal(size=n_rows) > 0.6
    X = np.hstack([number * [5000.0, 1.0, 0.01], np.eye(n_levels)[level]])
    return sparse.csr_array(X), y.astype(int)


def test_columns_of_csr_rows_have_units_of_their_own(monkeypatch):
    csr, y = raw_csr_table()
    X = csr.toarray()
    model = DPLogisticRegression(1.0, classes=(0, 1), random_state=0)
    dense = clone(model).fit(X, y).score(X, y)
    # for their products a chunk of rows is written out, and never more
    shorten_chunks(monkeypatch, 500)
    written, real = [], sparse.csr_array.toarray

    def one_chunk(rows, order=None, out=None):
        written.append(rows.shape[0])
        assert out.shape == rows.shape
        return real(rows, order, out)

    monkeypatch.setattr(sparse.csr_matrix, "toarray", None)
    monkeypatch.setattr(sparse.csr_array, "toarray", one_chunk)
    model.fit(csr, y)
    assert written == [500] * 8
    assert model.score(csr, y) > dense - 0.05 > 0.75
    np.testing.assert_allclose(model.feature_scale_, [5000, 1, 0.01, *[1] * 5], rtol=0.9)
    assert not model.feature_center_.any()
    parts = stream_chunks(lambda: ((csr[i : i + 900], y[i : i + 900]) for i in range(0, 4000, 900)))
    np.testing.assert_allclose(clone(model).fit(*parts).coef_, model.coef_, rtol=1e-6)
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    # entries and rows that are too long are cut as those of dense rows are
    twin, has_clip = model.to_sklearn(), "clip" in MaxAbsScaler().get_params()
    for times in (1.0, 1e4, 1e300):
        found = model.predict_proba(times * csr)
        np.testing.assert_allclose(found, model.predict_proba(times * X), rtol=1e-8)
        halves = as_layout(times * X, "csr duplicates")
        np.testing.assert_allclose(found, model.predict_proba(halves), rtol=1e-8)
        for rows in (times * X, times * csr)[: 1 + has_clip]:
            np.testing.assert_allclose(found, twin.predict_proba(rows), rtol=1e-8)


def test_csr_rows_of_few_entries_give_the_release_of_dense_ones():
    csr, y = raw_csr_table(3000, n_levels=1)
    # origins are searched for an intercept alone, and products released by the default solver
    options = {"fit_intercept": False, "solver": "accelerated", "random_state": 0}
    one, two = (
        DPLogisticRegression(1.0, classes=(0, 1), **options).fit(rows, y)
        for rows in (csr, csr.toarray())
    )
    np.testing.assert_array_equal(one.feature_scale_, two.feature_scale_)
    assert np.ptp(one.feature_scale_) > 1000
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6)


def test_columns_of_wide_csr_rows_keep_their_units():
    X = sparse.random_array((3000, 5000), density=0.002, rng=np.random.default_rng(0), format="csr")
    model, y = DPLogisticRegression(4.0, classes=(0, 1), random_state=0), np.arange(3000) % 2
    for d, searched in ((5000, False), (4000, True)):
        first = model.fit(X[:, :d], y).ledger_.releases[0]
        assert (first.size > 100 * d) == searched


@pytest.mark.parametrize("solver", ["objective", "lazy-sgd", "frank-wolfe"])
def test_solvers_whose_proof_needs_a_norm_ask_for_one(solver):
    X, y = blobs()
    told = r"data_norm must be a number for solvers\..*rests on a public bound.*got None"
    with pytest.raises(ValueError, match=told):
        DPLogisticRegression(8.0, solver=solver, classes=(0, 1)).fit(X, y)


@pytest.mark.sample(3)
@every_adjacency
@pytest.mark.parametrize(
    ("options", "n_rows"),
    [
        ({}, 800),
        # too few for units of columns
        ({}, 70),
        # a count decides
        ({"wide": True}, 150),
        ({"fit_intercept": False}, 800),
        ({"solver": "output"}, 800),
        ({"C": 1.0}, 800),
        ({"csr": True}, 800),
        # a norm far beyond all rows, and one that all of them exceed
        ({"data_norm": 1e8}, 800),
        ({"data_norm": 1.0}, 800),
    ],
    ids=str,
)
def test_scales_that_are_found_keep_the_claim(options, n_rows, adjacency):
    options = dict(options)
    # of CSR rows with more entries than count in full
    form = (lambda X: sparse.csr_array(np.tile(X, 4))) if options.pop("csr", 0) else np.asarray
    wide = options.pop("wide", False)
    form = (lambda X: np.tile(X, 4)) if wide else form
    rng = np.random.default_rng(0)
    n_rows //= 2 if adjacency == "zero-out" else 1
    X, y = 5.0 + rng.normal(size=(n_rows, 2)), np.arange(n_rows) % 2
    X *= [1.0, 1e6]
    epsilon, delta = 2.0, 1e-5
    model = DPLogisticRegression(
        epsilon, delta, adjacency=adjacency, classes=(0, 1), random_state=0, **options
    ).set_params(**({} if options.get("solver") else {"max_iter": 3}))

    def fit(data):
        return clone(model).fit(form(data[0]), data[1])

    measured, few = [], n_rows < 200 and not wide
    assert few != (np.ptp(fit((X, y)).feature_scale_) > 0) or options
    for row in ([1e9, -1e12], [-1e300, 1e300], [0.0, 0.0]):
        other, labels = X.copy(), y.copy()
        other[0] = row
        if adjacency == "zero-out":
            # a label that is none of the classes makes a null row
            labels[0] = 7
        measured.append(_audit.coupled_mu(fit, (X, y), (other, labels)))
    assert 0.2 * gdp_mu(epsilon, delta) < max(measured) <= gdp_mu(epsilon, delta)


def test_predictions_clip_rows_as_the_fit_does():
    X, y = blobs(2000)
    public = {"data_norm": 0.5, "classes": (0, 1), "solver": "preconditioned"}
    model = DPLogisticRegression(8.0, random_state=0, **public).fit(X, y)
    norms = np.linalg.norm(X, axis=1)[:, None]
    short, sphere = X * np.minimum(1, 0.5 / norms), X * 0.5 / norms
    for rows, same in (
        (X, short), (sparse.csr_array(X), short), (1e6 * X, sphere), (1e300 * X, sphere),
    ):  # fmt: skip
        np.testing.assert_allclose(
            model.decision_function(rows), model.decision_function(same), rtol=1e-9, atol=1e-9
        )
    inside = 0.9 * short
    expected = inside @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(inside), expected, rtol=1e-12)
    # towards the origins of the columns that were found, not towards zero
    raw, labels = raw_table()
    found = DPLogisticRegression(4.0, classes=(0, 1), random_state=0).fit(raw, labels)
    origin, scale = found.feature_center_, found.feature_scale_
    Z = (raw - origin) / scale
    Z *= np.minimum(1, found.data_norm_ / np.linalg.norm(Z, axis=1))[:, None]
    expected = (Z * scale + origin) @ found.coef_[0] + found.intercept_
    np.testing.assert_allclose(found.decision_function(raw), expected, rtol=1e-6, atol=1e-6)
    far = found.decision_function(1e250 * np.sign(raw))
    assert np.isfinite(far).all()


def test_a_norm_that_is_too_small_leaves_probabilities_to_believe():
    X, y = load_digits(return_X_y=True)
    model = DPLogisticRegression(4.0, data_norm=10.0, classes=range(10), random_state=0)
    model.fit(X[:1200], y[:1200])
    proba = model.predict_proba(X[1200:])
    assert model.score(X[1200:], y[1200:]) > 0.8
    # rows are 50 long: without clipping it was 3.9
    assert -np.log(proba[np.arange(len(proba)), y[1200:]]).mean() < 1.0
