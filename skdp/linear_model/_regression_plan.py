# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which mechanism and which clipping norm a regression has, from public quantities."""

import math
from dataclasses import replace

from skdp._losses import ClippedLoss, HuberLoss, PinballLoss, QuarticLoss, SquaredLoss
from skdp.linear_model._mechanisms import choose, make_plan
from skdp.linear_model._regression_units import kept

#: solvers of a mechanism that are for regression
SOLVERS = {
    "gradient": ("accelerated", "gd", "sgd", "accelerated-one-pass"),
    "output": ("newton", "lbfgs", "phased", "localized"),
}
# The clipping norm, in public units, is a multiple of the root of the signal, and lies in a
# range. For powers above 1 it grows without end, so that the bias of clipping vanishes: with
# skewed noise that is worth what it costs. Chosen on data.
_CLIPS = {
    SquaredLoss: (0.05, 0.15, math.inf),
    QuarticLoss: (0.02, 0.05, math.inf),
    HuberLoss: (0.02, 0.2, 2.0),
    PinballLoss: (0.02, 0.2, 2.0),
}


def check_clips(clipping_norm, moment_order, moment_bound):
    """Raise a ValueError unless one way, at most, leads to a clipping norm."""
    if (moment_order is None) != (moment_bound is None):
        raise ValueError(
            "moment_order and moment_bound must be both numbers, k and a bound r on "
            "(E |gradient|^k)^(1/k), or both None; got "
            f"moment_order={moment_order!r}, moment_bound={moment_bound!r}."
        )
    if moment_order is not None and clipping_norm is not None:
        raise ValueError(
            "clipping_norm must be None with moment_order and moment_bound, which decide it; "
            f"got {clipping_norm!r}."
        )


def chosen(mechanism, solver, problem):
    """Return the mechanism and the solver that are meant, or raise a ValueError."""
    if mechanism == "auto" and problem.batch_size is None:
        mechanism = "gradient" if problem.delta > 0 else "output"
        owners = [name for name, known in SOLVERS.items() if solver in known]
        mechanism = owners[0] if owners else mechanism
    known = {solver for solvers in SOLVERS.values() for solver in solvers}
    if mechanism not in ("auto", *SOLVERS) or solver not in ("auto", *known):
        pairs = "; ".join(f"{name}: {', '.join(some)}" for name, some in SOLVERS.items())
        raise ValueError(
            f"mechanism={mechanism!r} with solver={solver!r} is not for regression. The pairs "
            f"that work are {pairs}."
        )
    if mechanism == "gradient" and problem.delta == 0:
        raise ValueError(
            "delta must be greater than 0 for mechanism='gradient', whose Gaussian noise is never "
            "purely epsilon-DP; got 0. Pure privacy: mechanism='output' with solver='newton' or "
            "'lbfgs', or 'auto'."
        )
    return choose(mechanism, solver, problem)


def default_clip(problem):
    """Return a clipping norm in public units.

    Parameters
    ----------
    problem : Problem
        Public facts. With moments (k, r) the clip is ``r signal^(1/k)``, at which the bias of a
        mean of clipped gradients, at most ``r^k / ((k - 1) clip^(k - 1))``, is about as long as
        its noise, ``clip / signal``.
    """
    if problem.moments is not None:
        order, bound = problem.moments
        return kept(bound * problem.signal ** (1 / order))
    growth, least, most = _CLIPS[type(problem.pointwise)]
    return min(max(least, growth * math.sqrt(problem.signal)), most)


def plan_clipped(problem, mechanism, solver, clip):
    """Return the plan of a mechanism for the loss of a problem, clipped."""
    problem = replace(problem, loss=ClippedLoss(problem.pointwise, clip, problem.row_norm))
    if mechanism == "gradient":
        problem = replace(problem, clipping_norm=problem.longest_gradient)
    return make_plan(mechanism, solver, problem)
