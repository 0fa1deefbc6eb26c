# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Objective perturbation: the minimiser of the loss plus a random linear term."""

import math

from skdp._minimize.queries import PerturbedMinimizer
from skdp._rows.domains import ball_constraint
from skdp.privacy.laws.objective import ObjectivePerturbation
from skdp.solvers.base import RidgeFit, rivals

# signal to noise beyond which a weaker penalty pays
_STRONG = 100.0

# penalty at which noise moves the margins of rows of unit length by one
_MARGIN_SHARE = 2.0


class ObjectiveFit(RidgeFit):
    """One perturbed minimiser, certified."""

    def run(self, curator):
        """Release the minimiser, then project it."""
        problem = self.problem
        mechanism = ObjectivePerturbation(problem.epsilon, problem.delta)
        # the noise does not depend on the tolerance, nor the tolerance on the data
        query = self._query(1.0)
        facts = query.sensitivity(problem.adjacency, problem.n_rows)
        longest = mechanism.longest_term(facts, query.size)
        query = self._query(problem.tolerance(self.ridge, longest_linear=longest))
        released = curator.release(query, mechanism)
        # what has been released may be projected at no cost
        return ball_constraint(released, problem.radius).reshape(problem.shape)

    def _query(self, tolerance):
        problem = self.problem
        return PerturbedMinimizer(
            problem.loss, self.ridge, problem.n_coefs, problem.row_norm, tolerance, self.solver,
            row_terms=problem.row_terms,
        )  # fmt: skip


def free_ridge(problem):
    """Return the penalty from which on the determinant is free (one output), or nearly so."""
    square, price = problem.row_norm**2, problem.epsilon / problem.moved_rows
    if problem.loss.tied:
        # 1 % for the part of epsilon that goes to the error of the minimiser
        return 1.01 * square / problem.loss.temperature / price
    return 2 * square / problem.loss.temperature / price


def weakest_ridge(problem):
    """Return a penalty below which the determinant would take more than half of epsilon."""
    loss, square = problem.loss, problem.row_norm**2
    share = min(problem.epsilon / 2 / loss.corners, 700.0)
    ridge = loss.trace * square / loss.corners / math.expm1(share)
    return min(ridge, free_ridge(problem)) if loss.tied else ridge


def plan(problem, solver):
    """Plan objective perturbation.

    Parameters
    ----------
    problem, solver : Problem, {"newton", "lbfgs"}
        Public facts, and the method.

    Returns
    -------
    plan : ObjectiveFit
        The plan.

    Raises
    ------
    ValueError
        If the penalty that was asked for is too weak.
    """
    weakest = weakest_ridge(problem)
    if problem.penalty == 0:
        return ObjectiveFit(problem, solver, max(weakest, default_objective_ridge(problem)))
    if problem.penalty < weakest:
        raise ValueError(
            "C is too large, that is, the penalty too weak, for mechanism='objective' at "
            f"epsilon={problem.epsilon:g}: C must be at most {problem.largest_C(weakest):.6g}, or "
            "np.inf, which leaves the penalty to the plan."
        )
    return ObjectiveFit(problem, solver, problem.penalty)


def default_objective_ridge(problem):
    """Return the penalty that balances its own bias and the noise, found on data."""
    free = free_ridge(problem)
    if problem.loss.tied and problem.signal >= _STRONG:
        # where noise is small the penalty biases more than a paid determinant costs
        free = max(free / 3, weakest_ridge(problem))
    share = 0.03 if problem.loss.n_outputs == 1 else 0.1
    # noise moves margins by an amount that is free of the number of coefficients
    share = min(share, _MARGIN_SHARE * rivals(problem.loss) / math.sqrt(problem.size))
    return max(free, share * problem.noise_ridge)
