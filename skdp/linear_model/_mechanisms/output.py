# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Output perturbation: the minimiser of a penalised loss, with noise added to it."""

from dataclasses import dataclass
from typing import Any

from skdp._domains import ball_constraint
from skdp._queries import Minimizer
from skdp.linear_model._mechanisms import one_pass, phased
from skdp.privacy import GaussianMechanism, KNormMechanism, gdp_mu


@dataclass(frozen=True)
class OutputFit:
    """One certified minimiser with noise."""

    problem: Any
    solver: str
    ridge: float
    n_iter: int = 1

    @property
    def delta(self):
        """The delta that may be spent."""
        return self.problem.delta

    def run(self, curator):
        """Release the minimiser, then project it."""
        problem = self.problem
        tolerance = problem.tolerance(self.ridge)
        query = Minimizer(
            problem.loss, self.ridge, problem.n_coefs, problem.row_norm, tolerance, self.solver
        )
        if problem.delta:
            mechanism = GaussianMechanism(gdp_mu(problem.epsilon, problem.delta))
        else:
            mechanism = KNormMechanism(problem.epsilon)
        released = curator.release(query, mechanism)
        return ball_constraint(released, problem.radius).reshape(problem.shape)


def plan(problem, solver):
    """Plan output perturbation.

    Parameters
    ----------
    problem, solver : Problem, {"newton", "lbfgs", "cvxpy", "localized", "one-pass"}
        Public facts, and the method.

    Returns
    -------
    plan : OutputFit, PhasedFit or OnePassFit
        The plan.

    Raises
    ------
    ValueError
        If the penalty that was asked for is too weak for floating point.
    """
    problem.check_weak_penalty()
    if solver == "localized":
        return phased.plan(problem)
    if solver == "one-pass":
        return one_pass.plan(problem)
    return OutputFit(problem, solver, problem.penalty or _default_ridge(problem))


def _default_ridge(problem):
    """Return the penalty that balances its own bias and the noise, found on data."""
    return 0.5 * problem.noise_ridge()
