# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""From the parameters of a federated classifier to a plan; no data are read."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._classification import penalty_of
from skdp._queries import ClientUpdates
from skdp._solvers import DEFAULT_INTERCEPT, FederatedBudget, plan_federated
from skdp.local._choice import ball_randomiser

#: constant feature where reports are the noise
_REPORTING_INTERCEPT = 0.3
#: steps of a client that solves a problem of its own
_PROXIMAL_STEPS = 10


@dataclass(frozen=True)
class FederatedProblem:
    """What is public about a federated fit.

    Parameters
    ----------
    loss, intercept, shape : object, float, tuple of int
        Pointwise loss, constant feature of every row (0 for none), shape of the coefficients.
    local : dict
        What clients do: n_steps, step_size, pull.
    rounds : FederatedPlan
        What the server does.
    """

    loss: Any
    intercept: float
    shape: tuple[int, ...]
    local: dict[str, Any]
    rounds: Any

    def query(self, coef):
        """Return the query of a round, from the server's point."""
        return ClientUpdates(coef, self.loss, self.rounds.clip, **self.local)


def plan_problem(model, n_clients, n_features, loss):
    """Return the `FederatedProblem` of an estimator's parameters, or raise a ValueError."""
    intercept = 0.0
    if model.fit_intercept and model.intercept_scaling is not None:
        intercept = float(model.intercept_scaling)
    elif model.fit_intercept:
        reporting = model.local_epsilon is not None
        intercept = _REPORTING_INTERCEPT if reporting else DEFAULT_INTERCEPT
    n_coefs = n_features + bool(intercept)
    shape = (n_coefs,) if loss.n_outputs == 1 else (loss.n_outputs, n_coefs)
    randomiser = None
    if model.local_epsilon is not None:
        randomiser = ball_randomiser(
            float(model.local_epsilon),
            math.prod(shape),
            model.magnitude,
            model.expected_norm,
            model.magnitude_epsilon,
            model.parameters,
        )
    penalty = penalty_of(model.C, model.data_norm) / n_clients
    rounds = plan_federated(
        {
            "n_rows": n_clients,
            "n_features": n_features,
            "loss": loss,
            "intercept": intercept,
            "l2": penalty,
            "radius": None,
            "n_steps": model.max_iter,
            "step_size": model.step_size,
            "clip": model.clipping_norm,
        },
        budget=FederatedBudget(
            model.epsilon,
            model.delta,
            model.adjacency,
            randomiser,
            model.population_size,
            model.population_batch_size,
        ),
        batch_size=model.batch_size,
        report_norm=model.report_norm,
        momentum=model.momentum,
        average=model.average,
    )
    return FederatedProblem(loss, intercept, shape, _local(model, loss, intercept), rounds)


def _local(model, loss, intercept):
    """Return the steps of a client: their number, their length, and the pull of its start."""
    curvature = loss.smoothness * (1.0 + intercept**2)
    proximal = model.local_update == "proximal"
    n_steps, length = model.local_steps, model.local_step_size
    pull = 0.0
    if proximal:
        pull = curvature if model.proximal_strength is None else model.proximal_strength
    if n_steps is None:
        n_steps = _PROXIMAL_STEPS if proximal else 1
    if length is None:
        # such steps bring no two points further apart
        length = 1.0 / (curvature + pull)
    if pull * length > 1.0:
        raise ValueError(
            "local_step_size must be at most 1 / proximal_strength, or steps jump over the point "
            f"that they approach; got {length!r} with proximal_strength={pull!r}."
        )
    return {"n_steps": n_steps, "step_size": float(length), "pull": float(pull)}


def check_budget(model):
    """Raise a ValueError if parameters of the budget do not go together."""
    if model.epsilon is None and model.local_epsilon is None:
        raise ValueError(
            "epsilon and local_epsilon are both None: there would be no privacy. Set epsilon for "
            "noise on what is released, local_epsilon for reports of clients, or both."
        )
    if model.local_epsilon is None:
        for name in ("report_norm", "expected_norm", "magnitude_epsilon"):
            if getattr(model, name) is not None:
                raise ValueError(
                    f"{name} is for reports: it must be None where local_epsilon is None; got "
                    f"{getattr(model, name)!r}."
                )
    if model.local_update == "gradient" and model.proximal_strength is not None:
        raise ValueError(
            "proximal_strength is for local_update='proximal': it must be None with 'gradient'; "
            f"got {model.proximal_strength!r}."
        )
    if model.population_size is None and model.population_batch_size is not None:
        raise ValueError(
            "population_batch_size needs a population_size; got "
            f"{model.population_batch_size!r} with population_size=None."
        )
    if model.population_size is not None and model.epsilon is None:
        raise ValueError(
            "population_size is for noise on what is released: epsilon must be a number with it; "
            "got None."
        )


def flat(coef, problem, n_features, data_norm):
    """Return coefficients and intercepts for rows in the units of the data."""
    coef = np.atleast_2d(coef)
    intercept = np.zeros(len(coef))
    if problem.intercept:
        intercept = problem.intercept * coef[:, -1]
    return coef[:, :n_features] / data_norm, intercept
