# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The solver of a fit: what was asked for, the choice of "auto", and pairs that do not fit.

A solver declares what it needs (`skdp.solvers.Solver`); `check_pair` is the one place that
compares this with a model. "auto" follows from public numbers, and chooses from `skdp.solvers`
only.
"""

import math
from inspect import signature

import numpy as np
from sklearn.base import clone, is_regressor

import skdp.solvers as solvers
from skdp.solvers.base import MOST_K_NORM, Solver, default_ridge, margin_noise
from skdp.solvers.objective import default_objective_ridge

#: the solvers that have a word, by their words
SOLVERS = {
    kind.word: kind for kind in (getattr(solvers, name) for name in solvers.__all__) if kind.word
}
#: what may be released
MECHANISMS = ("gradient", "objective", "output", "exponential")

# signal to noise from which accelerated steps are the better ones for the hinge
_CLEAR = 50.0


def asked_solver(solver):
    """Return the solver that was asked for, its parameters checked; None for "auto".

    Parameters
    ----------
    solver : str or Solver
        As given by the user.

    Returns
    -------
    solver : Solver or None
        A copy, whose numbers are those of Python.

    Raises
    ------
    TypeError, ValueError
        If it is not a solver, or a parameter of it is out of range.
    """
    if isinstance(solver, str):
        if solver == "auto":
            return None
        if solver not in SOLVERS:
            raise ValueError(f"{_OPTIONS}; got {solver!r}.{_hint(solver)}")
        return SOLVERS[solver]()
    if isinstance(solver, type):
        here = f", for example {_call(solver)}" if issubclass(solver, Solver) else ""
        raise TypeError(f"{_OPTIONS}, that is, an instance{here}; got the class {solver.__name__}.")
    if not isinstance(solver, Solver):
        raise TypeError(f"{_OPTIONS}; got a {type(solver).__name__}.")
    asked = clone(solver)
    asked._validate_params()
    numbers = {
        name: float(value) if isinstance(value, np.floating) else int(value)
        for name, value in asked.get_params().items()
        if isinstance(value, np.floating | np.integer)
    }
    return asked.set_params(**numbers)


def chosen_solver(model, asked, problem):
    """Return the solver of a fit.

    Parameters
    ----------
    model : estimator
        Whose fit it is.
    asked : Solver or None
        As `asked_solver` returned it.
    problem : Problem
        Public facts. The choice depends on the budget, the loss, and the numbers of rows and
        coefficients, and on nothing else.

    Returns
    -------
    solver : Solver
        That was asked for, or that "auto" stands for.

    Raises
    ------
    ValueError
        If the model and the solver do not go together.
    """
    mechanism = model.mechanism
    if mechanism not in ("auto", *MECHANISMS):
        raise ValueError(f"mechanism must be 'auto' or one of {MECHANISMS}; got {mechanism!r}.")
    if asked is None:
        released = mechanism
        if mechanism == "auto":
            released = _best_mechanism(model, problem)
        asked = SOLVERS[_best_solver(model, released, problem)]()
    check_pair(model, asked, problem)
    return asked


def check_pair(model, solver, problem):
    """Raise a ValueError unless a model and a solver go together.

    Parameters
    ----------
    model, solver, problem : estimator, Solver, Problem
        Whose fit it is; the solver; public facts.
    """
    misfit = next(_misfits(model, model.mechanism, solver, problem), None)
    if misfit is None:
        return
    for mechanism, where in ((model.mechanism, ""), ("auto", " with another mechanism")):
        fitting = [word for word in SOLVERS if _serves(model, mechanism, word, problem)]
        if fitting:
            raise ValueError(
                f"{misfit} The solvers that fit{where} are {', '.join(map(repr, fitting))}."
            )
    raise ValueError(f"{misfit} No solver of default parameters fits the rest of this model.")


def _misfits(model, mechanism, solver, problem):
    """Yield what a model has that a solver cannot do with."""
    name = _call(type(solver))
    regression = is_regressor(model)
    if ("regression" if regression else "classification") not in solver.tasks:
        yield f"solver={name} is not for {'regression' if regression else 'classification'}."
    if mechanism not in ("auto", solver.mechanism):
        yield (
            f"solver={name} does not belong to mechanism={mechanism!r}: it has "
            f"mechanism={solver.mechanism!r}."
        )
    if solver.needs_delta and problem.delta == 0:
        yield f"delta must be greater than 0 for {name}, {solver.needs_delta}; got 0."
    if solver.needs_second_derivative and math.isinf(problem.loss.smoothness):
        yield (
            f"{name} needs a loss with a second derivative, which the hinge does not have: "
            f"{solver.needs_second_derivative}. Set smoothing to a positive number for the "
            "smoothed hinge."
        )
    if solver.needs_coef_bound and problem.radius is None:
        yield f"coef_bound must be a number for {name}, {solver.needs_coef_bound}; got None."
    if problem.size > solver.most_coefs:
        yield (
            f"{name} is for at most {solver.most_coefs} coefficients, intercepts included; this "
            f"problem has {problem.size}.{solver.beyond_most_coefs}"
        )
    flat = signature(type(model)).parameters
    for parameter, why in solver.unused.items():
        if parameter in flat and getattr(model, parameter) != flat[parameter].default:
            yield (
                f"{parameter} must be {flat[parameter].default!r} with {name}: {why}; got "
                f"{getattr(model, parameter)!r}."
            )
    if regression:
        yield from _misfits_of_regression(solver, name)


def _misfits_of_regression(solver, name):
    if getattr(solver, "clipping_norm", None) is not None:
        yield (
            f"clipping_norm of {name} must be None for regression, whose estimator has a "
            f"parameter of that name; got {solver.clipping_norm!r}."
        )
    usual = type(solver)()
    for parameter in solver.only_classification:
        value = getattr(solver, parameter)
        if value != getattr(usual, parameter):
            yield f"{parameter}={value!r} of {name} is not for regression."
    if not solver.streams and usual.streams:
        yield f"{name} with these parameters is not for regression."


def _best_mechanism(model, problem):
    if problem.delta > 0:
        return "gradient"
    if not _serves(model, "auto", "objective", problem):
        return "output"
    # Laplace noise on the minimiser of sparse rows, or a linear term with K-norm noise
    ridge = problem.penalty or default_ridge(problem)
    other = problem.penalty or default_objective_ridge(problem)
    laplace = margin_noise(problem)(ridge)[0] == "laplace"
    weaker = ridge <= other or problem.size > MOST_K_NORM
    return "output" if laplace and weaker else "objective"


def _best_solver(model, mechanism, problem):
    if mechanism == "gradient" and problem.delta and math.isinf(problem.loss.smoothness):
        # on data the rule for kinks is the better one while noise dominates; but it counts
        # the noise of all coefficients, of which a row of many features feels few
        wide = problem.n_features > problem.n_rows
        return "gd" if problem.signal < _CLEAR and not wide else "accelerated"
    if mechanism == "exponential":
        many = problem.size > SOLVERS["exact"].most_coefs
        return "frank-wolfe" if many and _serves(model, "auto", "frank-wolfe", problem) else "exact"
    return "accelerated" if mechanism == "gradient" else mechanism


def _serves(model, mechanism, word, problem):
    """Return whether a solver of default parameters goes with a model of a mechanism."""
    return not any(_misfits(model, mechanism, SOLVERS[word](), problem))


def _call(kind):
    """Return how an object of a solver class is made, in words."""
    face = kind.__module__.split(".")[1] + "." if kind.__module__.startswith("skdp.") else ""
    return f"{face}{kind.__name__}()"


def _hint(word):
    """Return how to write what is no word of a solver, if it names an algorithm."""
    # here and not above: a fit without an error needs none of them
    import skdp.papers as papers

    named = word.replace("-", "").replace("_", "").lower()
    for name in papers.__all__:
        kind = getattr(papers, name)
        if named in {name.lower(), *_ALSO_CALLED.get(name, ())} and isinstance(kind, type):
            return f" It is an object: solver=skdp.papers.{name}()."
    if named in ("newton", "lbfgs", "cvxpy"):
        return f" It is a minimizer: solver=skdp.solvers.Output(minimizer={named!r})" + (
            f", or skdp.solvers.Objective(minimizer={named!r})." if named != "cvxpy" else "."
        )
    return ""


_ALSO_CALLED = {"FiniteNet": ("net",)}
_OPTIONS = (
    f"solver must be 'auto', one of {list(SOLVERS)}, or an object of skdp.solvers or skdp.papers"
)
