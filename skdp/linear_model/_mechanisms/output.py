# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Output perturbation: the minimiser of a penalised loss, with noise added to it."""

from skdp._domains import ball_constraint
from skdp._queries import Minimizer
from skdp.linear_model._mechanisms import one_pass, phased
from skdp.linear_model._mechanisms.fit import RidgeFit
from skdp.privacy import GaussianMechanism, KNormMechanism, gdp_mu


class OutputFit(RidgeFit):
    """One certified minimiser with noise."""

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
    if solver == "localized":
        return phased.plan(problem)
    if solver == "one-pass":
        return one_pass.plan(problem)
    problem.check_weak_penalty()
    return OutputFit(problem, solver, problem.penalty or _default_ridge(problem))


def _default_ridge(problem):
    """Return the penalty that balances its own bias and the noise, found on data."""
    return 0.5 * problem.noise_ridge
