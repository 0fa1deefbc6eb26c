# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Output perturbation: the minimiser of a penalised loss, with noise added to it."""

import math

from skdp._minimize.queries import Minimizer
from skdp._recovery.shrinkage import project_linf
from skdp._rows.domains import ball_constraint
from skdp.privacy.kernel.mechanisms import GaussianMechanism, KNormMechanism, LaplaceMechanism
from skdp.solvers.base import RidgeFit, default_ridge, margin_noise

_PURE = {"k-norm": KNormMechanism, "laplace": LaplaceMechanism}


class OutputFit(RidgeFit):
    """One certified minimiser with noise."""

    full_batches = True

    @property
    def streams(self):
        """Whether rows may be read chunk by chunk: cvxpy wants them all at once."""
        return self.solver != "cvxpy"

    def run(self, curator):
        """Release the minimiser, then project it."""
        problem = self.problem
        tolerance = problem.tolerance(self.ridge)
        law, _ = margin_noise(problem)(self.ridge)
        query = Minimizer(
            problem.loss, self.ridge, problem.n_coefs, problem.row_norm, tolerance, self.solver,
            row_l1=problem.row_l1 if law == "laplace" else math.inf, row_terms=problem.row_terms,
        )  # fmt: skip
        if law == "gaussian":
            mechanism = GaussianMechanism(problem.mu)
        else:
            mechanism = _PURE[law](problem.pure_epsilon)
        released = curator.release(query, mechanism)
        project = project_linf if problem.linf_projection else ball_constraint
        return project(released, problem.radius).reshape(problem.shape)


def plan(problem, solver):
    """Plan output perturbation.

    Parameters
    ----------
    problem, solver : Problem, {"newton", "lbfgs", "cvxpy"}
        Public facts, and the method.

    Returns
    -------
    plan : OutputFit
        The plan.

    Raises
    ------
    ValueError
        If the penalty that was asked for is too weak for floating point.
    """
    problem.check_weak_penalty()
    return OutputFit(problem, solver, problem.penalty or default_ridge(problem))


def check_projection(problem, solver):
    """Raise a ValueError unless noisy coefficients can be projected."""
    if solver in ("phased", "localized", "one-pass"):
        raise ValueError(
            "linf_projection=True is for one noisy minimiser, that is, for the solvers 'newton', "
            f"'lbfgs' and 'cvxpy'; got it with solver={solver!r}."
        )
    if problem.radius is None:
        raise ValueError(
            "coef_bound must be a number for linf_projection=True, which brings noisy "
            "coefficients into the ball of that radius; got coef_bound=None."
        )
