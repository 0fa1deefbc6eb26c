# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear models from words and one flat set of parameters, of the model and of its solver."""

from inspect import signature

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, papers, solvers
from skdp.linear_model._classifiers import asked_solver, chosen_solver
from skdp.solvers import Solver

#: every pair of a mechanism and a solver, by words
PAIRS = [
    *[("gradient", word) for word in ("accelerated", "gd", "sgd", "lazy-sgd", "bias-reduced")],
    ("gradient", "preconditioned"),
    ("gradient", "accelerated-one-pass"),
    *[("objective", word) for word in ("newton", "lbfgs")],
    *[("output", word) for word in ("newton", "lbfgs", "cvxpy")],
    *[("output", word) for word in ("phased", "localized", "one-pass")],
    *[("exponential", word) for word in ("exact", "net", "frank-wolfe")],
]
KINDS = {
    "accelerated": solvers.Accelerated,
    "gd": solvers.GD,
    "preconditioned": solvers.Preconditioned,
    "sgd": solvers.SGD,
    "lazy-sgd": solvers.LazySGD,
    "bias-reduced": papers.BiasReduced,
    "accelerated-one-pass": papers.AcceleratedOnePass,
    "objective": solvers.Objective,
    "output": solvers.Output,
    "phased": solvers.Phased,
    "localized": papers.Localized,
    "one-pass": papers.OnePass,
    "exact": solvers.ExactDraw,
    "net": papers.FiniteNet,
    "frank-wolfe": solvers.FrankWolfe,
}
ALL_WORDS = {*KINDS, "newton", "lbfgs", "cvxpy"}


def solver_of(word, mechanism="auto", **own):
    """Return the solver of a word; that of a method for minimisers depends on the mechanism."""
    if word in ("newton", "lbfgs", "cvxpy"):
        kind = solvers.Objective if mechanism == "objective" else solvers.Output
        return kind(minimizer=word, **own)
    return KINDS[word](**own)


def linear_model(estimator, *args, **params):
    """Return a model; what its class has no parameter for belongs to its solver."""
    flat = signature(estimator).parameters
    if "classes" in flat:
        # rows of tests are in the unit ball
        params.setdefault("data_norm", 1.0)
    kind, share = params.pop("preprocess", None), params.pop("preprocess_share", 0.05)
    own = {name: params.pop(name) for name in list(params) if name not in flat}
    mechanism, solver = params.get("mechanism", "auto"), params.get("solver", "auto")
    if own and solver == "auto":
        gradient = "sgd" if "batch_size" in own else "accelerated"
        solver = gradient if mechanism in ("auto", "gradient") else mechanism
    if own or solver in ALL_WORDS:
        params["solver"] = solver_of(solver, mechanism, **own)
    if kind is not None:
        steps = params.get("solver", "auto")
        steps = None if steps == "auto" else steps
        steps = solver_of(steps) if isinstance(steps, str) else steps
        params["solver"] = papers.FeaturePreprocessing(solver=steps, kind=kind, share=share)
    return estimator(*args, **params)


def problem_of(model, n_rows, n_features, n_classes):
    """Return the public facts of a classifier's fit."""
    scales = model._checked_scales(n_rows, n_features, False)
    solver = asked_solver(model.solver) or Solver()
    return model._problem(scales, n_rows, n_features, n_classes, solver, False)


def solver_for(model, problem):
    """Return the solver that a fit takes, by public facts."""
    return chosen_solver(model, asked_solver(model.solver), problem)


def plan_of(model, n_rows, n_features, n_classes):
    """Return the plan of a classifier's fit."""
    problem = problem_of(model, n_rows, n_features, n_classes)
    return solver_for(model, problem).plan(problem)


def fitted_loss(estimator, n_classes=2):
    """Return the loss of a row that fits of a classifier minimise."""
    model = estimator(classes=range(n_classes), data_norm=1.0)
    return problem_of(model, 100, 3, n_classes).loss


def loss_of_squares():
    """Return the loss of a row that fits of least squares minimise, before it is clipped."""
    model = DPLpRegressor()
    model.n_features_in_ = 3
    return model._prepared(100, 3, None).problem.pointwise


LOGISTIC_LOSS, SOFTMAX_LOSS = (fitted_loss(DPLogisticRegression, k) for k in (2, 3))
HINGE_LOSS, HINGES_LOSS = (fitted_loss(DPHingeSVM, k) for k in (2, 3))
SQUARED_LOSS = loss_of_squares()
