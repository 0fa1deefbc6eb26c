# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which mechanism and solver a fit uses, from public quantities."""

import math

from skdp.papers import accelerated_one_pass, bias_reduced, localized, one_pass
from skdp.solvers import (
    exponential,
    frank_wolfe,
    gradient,
    lazy_sgd,
    objective,
    output,
    phased,
    sgd,
)
from skdp.solvers.base import MOST_K_NORM, NEWTON_LIMIT, default_ridge, margin_noise
from skdp.solvers.exponential import EXACT_LIMIT

#: solvers of a mechanism, the default first
SOLVERS = {
    "gradient": ("accelerated", "gd", "sgd", "lazy-sgd", "bias-reduced", "accelerated-one-pass"),
    "objective": ("newton", "lbfgs"),
    "output": ("newton", "lbfgs", "cvxpy", "phased", "localized", "one-pass"),
    "exponential": ("exact", "net", "frank-wolfe"),
}
#: how the solvers of a mechanism plan a fit
PLANS = {
    "gradient": gradient.plan,
    "objective": objective.plan,
    "output": output.plan,
    "exponential": exponential.plan,
}
#: and the solvers that plan in their own way
_OWN_PLANS = {
    "sgd": sgd.plan,
    "lazy-sgd": lazy_sgd.plan,
    "bias-reduced": bias_reduced.plan,
    "accelerated-one-pass": accelerated_one_pass.plan,
    "phased": phased.plan,
    "localized": localized.plan,
    "one-pass": one_pass.plan,
    "frank-wolfe": frank_wolfe.plan,
}

# signal to noise from which accelerated steps are the better ones for the hinge
_CLEAR = 50.0

# solvers that read random batches of a size that may be asked for
_BATCHES = ("sgd", "lazy-sgd", "bias-reduced")

#: parameters that one mechanism alone understands
_ONLY = {
    "max_iter": "gradient",
    "step_size": "gradient",
    "clipping_norm": "gradient",
    "localize": "exponential",
    "centring": "gradient",
    "linf_projection": "output",
}
#: but for solvers of other mechanisms that understand them too
_ALSO = {"frank-wolfe": ("max_iter", "clipping_norm"), "localized": ("clipping_norm",)}
# solvers that read disjoint parts of the rows, one after another
_DISJOINT = ("localized", "accelerated-one-pass")
#: and parameters that some solvers alone understand, with what they are if nobody asks
_ONLY_SOLVER = {
    "l1_bound": (("frank-wolfe",), None),
    "oracle": (("bias-reduced",), "soft-threshold"),
    "failure_probability": (("bias-reduced", *_DISJOINT), None),
    "growth": (_DISJOINT, None),
}
#: what the parameters above are called by the user
_NAMES = {"centring": "preprocess"}


def choose(mechanism, solver, problem):
    """Return the mechanism and the solver that are meant.

    Parameters
    ----------
    mechanism, solver : str
        As given by the user; "auto" leaves the choice open.
    problem : Problem
        Public facts. The choice depends on the budget, the loss, and the numbers of rows
        and coefficients, and on nothing else.

    Returns
    -------
    mechanism, solver : str
        Names.

    Raises
    ------
    ValueError
        If the pair does not exist, or not for this loss or this delta.
    """
    if solver == "auto" and problem.batch_size is not None:
        solver = "sgd"
    if mechanism == "auto" and problem.centring is not None:
        mechanism = "gradient"
    if mechanism == "auto":
        mechanism = _mechanism_of(solver) or _best_mechanism(problem)
    if mechanism not in SOLVERS:
        raise ValueError(f"mechanism must be 'auto' or one of {list(SOLVERS)}; got {mechanism!r}.")
    if solver == "auto":
        solver = _best_solver(mechanism, problem)
    if solver not in SOLVERS[mechanism]:
        pairs = "; ".join(f"{name}: {', '.join(known)}" for name, known in SOLVERS.items())
        raise ValueError(
            f"solver={solver!r} does not belong to mechanism={mechanism!r}. The pairs that work "
            f"are {pairs}. batch_size asks for solver='sgd', and preprocess for "
            "mechanism='gradient'."
        )
    if mechanism == "gradient" and problem.delta == 0:
        raise ValueError(
            "delta must be greater than 0 for mechanism='gradient', whose Gaussian noise is never "
            "purely epsilon-DP; got 0. Pure privacy: mechanism='objective' (smooth losses), "
            "'output' or 'exponential' (few coefficients), or 'auto'."
        )
    if solver not in _BATCHES and _asks_for_batches(problem):
        raise ValueError(
            "batch_size is a parameter of the solvers 'sgd', 'lazy-sgd' and 'bias-reduced'; "
            "sampling and momentum are parameters of solver='sgd'; got batch_size="
            f"{problem.batch_size!r}, sampling={problem.sampling!r}, momentum="
            f"{problem.momentum!r} with solver={solver!r}."
        )
    if solver in ("phased", "localized", "one-pass") and problem.delta == 0:
        raise ValueError(
            f"delta must be greater than 0 for solver={solver!r}, which adds Gaussian noise in "
            "several phases; got 0. Use solver='newton' for pure privacy."
        )
    if solver == "one-pass" and math.isinf(problem.loss.smoothness):
        raise ValueError(
            "solver='one-pass' needs a smooth loss: its proof rests on steps that are short "
            "against the second derivative, which the hinge does not have. Set smoothing, or use "
            "solver='phased'."
        )
    if mechanism == "objective" and math.isinf(problem.loss.smoothness):
        raise ValueError(
            "mechanism='objective' needs a loss with a second derivative, which the hinge does "
            "not have: its proof bounds the Jacobian of the minimiser by that derivative. Set "
            "smoothing to a positive number for the smoothed hinge, which costs accuracy (an "
            "error growing as the square root of the number of rows in the worst case), or use "
            "mechanism='gradient', 'output' or 'exponential'."
        )
    _refuse_foreign_parameters(mechanism, solver, problem)
    return mechanism, solver


def make_plan(mechanism, solver, problem):
    """Return the plan of a mechanism and a solver that were chosen.

    Parameters
    ----------
    mechanism, solver, problem : str, str, Problem
        As `choose` returned them, and public facts.

    Returns
    -------
    plan : Fit
        The plan.

    Raises
    ------
    ValueError
        If it cannot be made for this problem.
    """
    if mechanism == "output" and problem.linf_projection:
        output.check_projection(problem, solver)
    if solver in _OWN_PLANS:
        return _OWN_PLANS[solver](problem)
    return PLANS[mechanism](problem, solver)


def _mechanism_of(solver):
    """Return the mechanism that alone has a solver, or None."""
    owners = [name for name, known in SOLVERS.items() if solver in known]
    return owners[0] if len(owners) == 1 else None


def _best_mechanism(problem):
    if problem.delta > 0:
        return "gradient"
    if math.isinf(problem.loss.smoothness):
        return "output"
    # Laplace noise on the minimiser of sparse rows, or a linear term with K-norm noise
    ridge = problem.penalty or default_ridge(problem)
    other = problem.penalty or objective.default_objective_ridge(problem)
    laplace = margin_noise(problem)(ridge)[0] == "laplace"
    weaker = ridge <= other or problem.size > MOST_K_NORM
    return "output" if laplace and weaker else "objective"


def _best_solver(mechanism, problem):
    if mechanism == "gradient" and problem.delta and math.isinf(problem.loss.smoothness):
        # on data the rule for kinks is the better one while noise dominates; but it counts
        # the noise of all coefficients, of which a row of many features feels few
        wide = problem.n_features > problem.n_rows
        return "gd" if problem.signal < _CLEAR and not wide else "accelerated"
    if mechanism == "exponential" and problem.size > EXACT_LIMIT:
        return "net"
    if mechanism in ("objective", "output") and problem.size > NEWTON_LIMIT:
        return "lbfgs"
    return SOLVERS[mechanism][0]


def _asks_for_batches(problem):
    return problem.batch_size is not None or problem.sampling != "poisson" or not problem.momentum


def _refuse_foreign_parameters(mechanism, solver, problem):
    for name, owner in _ONLY.items():
        if getattr(problem, name) and mechanism != owner and name not in _ALSO.get(solver, ()):
            raise ValueError(
                f"{_NAMES.get(name, name)} is a parameter of mechanism={owner!r}; got it with "
                f"mechanism={mechanism!r}."
            )
    for name, (owners, default) in _ONLY_SOLVER.items():
        if getattr(problem, name) != default and solver not in owners:
            known = " and ".join(f"solver={owner!r}" for owner in owners)
            raise ValueError(f"{name} is a parameter of {known}; got it with solver={solver!r}.")
