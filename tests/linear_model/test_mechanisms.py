# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every mechanism of the linear classifiers: choice, behaviour, claims."""

import functools
import itertools
import math
import re

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, papers, solvers
from skdp.linear_model._classifiers import chosen_solver
from skdp.privacy import gdp_mu
from tests import _audit
from tests._neighbours import ADJACENCIES, worst_pairs
from tests._solvers import KINDS, PAIRS, linear_model, problem_of, solver_of

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


@pytest.mark.covering
@every_adjacency
@every_pair
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_every_pair_learns_within_its_budget(estimator, mechanism, solver, adjacency):
    X, y = blobs()
    model = estimator(8.0, adjacency=adjacency, classes=(0, 1), random_state=0, **BOUND)
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


@pytest.mark.covering
@pytest.mark.parametrize(("mechanism", "solver"), MULTICLASS)
@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM])
def test_every_pair_learns_three_classes(estimator, mechanism, solver):
    X, y = blobs(n_rows=900, n_classes=3)
    model = estimator(30.0, classes=(0, 1, 2), random_state=0, fit_intercept=False, **BOUND)
    model = smooth(model, mechanism, solver).fit(X, y)
    assert model.coef_.shape == (3, 2)
    assert model.score(X, y) > 0.8


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


@pytest.mark.parametrize(("mechanism", "solver"), [p for p in PAIRS if p[0] != "exponential"])
def test_layouts_agree(mechanism, solver):
    X, y = blobs(n_rows=200)
    model = linear_model(
        DPLogisticRegression, 4.0, mechanism=mechanism, solver=solver, classes=(0, 1),
        random_state=0, max_iter=None,
    )  # fmt: skip
    dense = clone(model).fit(X, y).coef_
    for other in (sparse.csr_array(X), np.asfortranarray(X), sparse.csc_array(X)):
        np.testing.assert_allclose(clone(model).fit(other, y).coef_, dense, rtol=1e-3, atol=1e-5)


def test_auto_is_gradient_and_pure_auto_depends_on_the_loss():
    X, y = blobs()
    for estimator, pure in ((DPLogisticRegression, "objective"), (DPHingeSVM, "output")):
        options = {"classes": (0, 1), "random_state": 0}
        for delta, mechanism in ((1e-6, "gradient"), (0.0, pure)):
            default = estimator(4.0, delta, **options).fit(X, y)
            named = estimator(4.0, delta, mechanism=mechanism, **options).fit(X, y)
            np.testing.assert_array_equal(default.coef_, named.coef_)


@pytest.mark.parametrize("solver", sorted(KINDS))
def test_a_solver_chooses_its_mechanism_and_a_word_is_its_default_object(solver):
    X, y = blobs(n_features=3)
    kind = KINDS[solver]
    options = {"classes": (0, 1), "random_state": 0, "smoothing": 0.5}
    options["coef_bound"] = None if solver == "lazy-sgd" else 20.0
    fits = [DPHingeSVM(4.0, solver=kind(), **options)]
    fits += [DPHingeSVM(4.0, mechanism=kind.mechanism, solver=kind(), **options)]
    if kind.word:
        assert kind.word == solver
        fits.append(DPHingeSVM(4.0, solver=solver, **options))
    coefs = [model.fit(X, y).coef_ for model in fits]
    for other in coefs[1:]:
        np.testing.assert_array_equal(coefs[0], other)


REFUSED = [
    (
        DPLogisticRegression(mechanism="gradient", solver="output"),
        "solver=solvers.Output() does not belong to mechanism='gradient': it has "
        "mechanism='output'. The solvers that fit are 'accelerated', 'gd', 'lazy-sgd', 'sgd'.",
    ),
    (
        DPLogisticRegression(mechanism="objective", solver=papers.OnePass()),
        "solver=papers.OnePass() does not belong to mechanism='objective'",
    ),
    (DPLogisticRegression(delta=0.0, mechanism="gradient"), "delta must be greater than 0"),
    (
        DPLogisticRegression(delta=0.0, solver=solvers.SGD()),
        "delta must be greater than 0 for solvers.SGD(), whose Gaussian noise is never purely "
        "epsilon-DP; got 0. The solvers that fit are 'frank-wolfe', 'objective', 'output'.",
    ),
    (DPLogisticRegression(delta=0.0, solver="phased"), "delta must be greater than 0"),
    (DPLogisticRegression(delta=0.0, solver=papers.Localized()), "delta must be greater than 0"),
    (DPLogisticRegression(delta=0.0, solver=papers.OnePass()), "delta must be greater than 0"),
    (DPLogisticRegression(delta=0.0, solver=papers.BiasReduced()), "delta must be greater than 0"),
    (DPHingeSVM(mechanism="objective"), "second derivative, which the hinge does not have"),
    (DPHingeSVM(solver=papers.OnePass()), "second derivative, which the hinge does not have"),
    (DPHingeSVM(solver="frank-wolfe"), "Set smoothing to a positive number"),
    (DPLogisticRegression(solver="exact"), "coef_bound must be a number"),
    (DPLogisticRegression(solver=papers.FiniteNet()), "coef_bound must be a number"),
    (
        DPLogisticRegression(mechanism="exponential", solver="exact", **BOUND),
        "at most 5 coefficients, intercepts included; this problem has 7. skdp.papers.FiniteNet() "
        "draws from a fixed set of candidates. The solvers that fit are 'frank-wolfe'.",
    ),
    (DPHingeSVM(mechanism="exponential", **BOUND), "at most 5 coefficients"),
    (
        DPLogisticRegression(solver=papers.FiniteNet(localize=True), **BOUND),
        "C must be finite",
    ),
    (DPLogisticRegression(mechanism="objective", C=1e6), "C must be at most"),
    (DPLogisticRegression(mechanism="output", max_iter=3), "max_iter must be None with"),
    (
        DPLogisticRegression(solver=papers.Localized(), preprocess="center"),
        "preprocess must be None with papers.Localized(): only gradients are taken of centered "
        "rows; got 'center'. The solvers that fit are 'accelerated', 'gd', 'sgd'.",
    ),
    (
        DPLogisticRegression(solver="lazy-sgd", coef_bound=1.0),
        "coef_bound must be None with solvers.LazySGD()",
    ),
    (DPLogisticRegression(solver="frank-wolfe", C=1.0), "C must be inf with solvers.FrankWolfe()"),
    (
        DPLogisticRegression(solver=solvers.Output(linf_projection=True)),
        "coef_bound must be a number for linf_projection=True",
    ),
    (DPLogisticRegression(solver=solvers.SGD(batch_size=-1)), "'batch_size' parameter of SGD"),
    (
        DPLogisticRegression(solver="bias-reduced"),
        "or an object of skdp.solvers or skdp.papers; got 'bias-reduced'. It is an object: "
        "solver=skdp.papers.BiasReduced().",
    ),
    (DPLogisticRegression(solver="accelerated-one-pass"), "skdp.papers.AcceleratedOnePass()"),
    (DPLogisticRegression(solver="localized"), "skdp.papers.Localized()"),
    (DPLogisticRegression(solver="one-pass"), "skdp.papers.OnePass()"),
    (DPLogisticRegression(solver="net"), "skdp.papers.FiniteNet()"),
    (DPLogisticRegression(solver="newton"), "skdp.solvers.Output(minimizer='newton')"),
    (DPLogisticRegression(solver="adam"), "solver must be 'auto', one of ['accelerated', "),
]


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

# noise that comes late has an audit of its own, in tests/test_claims_lazy.py
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
        max_iter=5 if mechanism == "gradient" else None,
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
        classes=(0, 1), random_state=0,
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


@pytest.mark.covering
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
            classes=(0, 1), random_state=seed,
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


NO_SOLVERS = [
    (solvers.SGD, "an instance, for example solvers.SGD(); got the class SGD"),
    (DPLogisticRegression, "an instance; got the class DPLogisticRegression"),
    (DPLogisticRegression(), "got a DPLogisticRegression"),
    (None, "got a NoneType"),
    (7, "got a int"),
]


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPHingeSVM, DPLpRegressor])
@pytest.mark.parametrize(("solver", "message"), NO_SOLVERS, ids=str)
def test_what_is_no_solver_is_refused_with_a_list_of_what_is(estimator, solver, message):
    model = estimator(solver=solver)
    with pytest.raises(TypeError, match=re.escape(message)) as error:
        model.fit(*blobs())
    assert "solver must be 'auto', one of ['accelerated', 'exact'," in str(error.value)


def test_a_parameter_of_another_solver_is_refused():
    model = DPLogisticRegression(solver="gd")
    with pytest.raises(AttributeError, match="set_params"):
        model.set_params(solver__batch_size=8)
    model.set_params(solver=solvers.GD())
    with pytest.raises(ValueError, match="Invalid parameter 'batch_size' for estimator GD"):
        model.set_params(solver__batch_size=8)
    with pytest.raises(TypeError, match="batch_size"):
        DPLogisticRegression(batch_size=8)


def test_no_solver_was_overlooked():
    public = {
        kind
        for module in (solvers, papers)
        for name in module.__all__
        if isinstance(kind := getattr(module, name), type) and issubclass(kind, solvers.Solver)
    }
    assert set(KINDS.values()) == public - {solvers.Solver}
    assert {mechanism for mechanism, _ in PAIRS} == {kind.mechanism for kind in KINDS.values()}
    for mechanism, word in PAIRS:
        assert solver_of(word, mechanism).mechanism == mechanism


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_features", [2, 400])
@pytest.mark.parametrize("mechanism", ["auto", "objective", "output", "exponential"])
def test_auto_takes_nothing_from_papers(mechanism, n_features, delta):
    model = DPHingeSVM(8.0, delta, mechanism=mechanism, coef_bound=5.0, smoothing=0.5)
    chosen = chosen_solver(model, None, problem_of(model, 60, n_features, 2))
    assert type(chosen).__module__.startswith("skdp.solvers.")


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
