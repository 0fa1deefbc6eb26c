# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Objective perturbation: the minimiser of the loss plus a random linear term.

Kifer, Smith and Thakurta (2012): the minimiser of a strongly convex objective with a random linear
term has a known density. It is computed to a certified precision, and noise covers the remaining
error.
"""

import math
from typing import Any, Literal

from skdp._minimize.queries import PerturbedMinimizer
from skdp._rows.base import ball_constraint
from skdp._sklearn import StrOptions
from skdp.privacy.laws.objective import ObjectivePerturbation
from skdp.solvers.base import Fit, RidgeFit, Solver, minimizer_of, rivals


class Objective(Solver):
    """The certified minimiser of the loss plus a random linear term.

    Parameters
    ----------
    minimizer : {"auto", "newton", "lbfgs"}, default="auto"
        Method for the minimiser. Its result is certified, so the privacy claim does not depend on
        it. "auto" is Newton's method for at most 300 coefficients.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1.

    See Also
    --------
    Output : Noise on the minimiser itself; also for losses with kinks.

    Notes
    -----
    The linear term is Gaussian, or K-norm noise at delta 0, where this solver is the default for
    smooth losses. Privacy needs a penalty: ``C=np.inf`` leaves it to the plan, and a penalty that
    is too weak for epsilon is refused. Groups of rows need slightly more noise, mostly less than 1
    %.

    References
    ----------
    .. [1] D. Kifer, A. Smith and A. Thakurta, "Private convex empirical risk
       minimization and high-dimensional regression", COLT 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = solvers.Objective(minimizer="newton")
    >>> model = DPLogisticRegression(
    ...     delta=0, solver=solver, data_norm=1.0, classes=[0, 1], random_state=0
    ... )
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "objective"
    mechanism = "objective"
    takes_groups = True
    tasks = ("classification",)
    needs_second_derivative = (
        "its proof bounds the Jacobian of the minimiser by that derivative. Smoothing costs "
        "accuracy, an error that grows as the square root of the number of rows in the worst case"
    )
    unused = {
        "max_iter": "it has no steps",
    }

    _parameter_constraints = {
        **Solver._parameter_constraints,
        "minimizer": [StrOptions({"auto", "newton", "lbfgs"})],
    }

    def __init__(
        self,
        *,
        minimizer: Literal["auto", "newton", "lbfgs"] = "auto",
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.minimizer = minimizer
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the penalty from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : ObjectiveFit
            The plan.

        Raises
        ------
        ValueError
            If the given penalty is too weak.
        """
        weakest, minimizer = weakest_ridge(problem), minimizer_of(problem, self.minimizer)
        if problem.penalty == 0:
            ridge = max(weakest, default_objective_ridge(problem))
            return ObjectiveFit(problem, minimizer, ridge)
        if problem.penalty < weakest:
            raise ValueError(
                "C is too large, that is, the penalty too weak, for mechanism='objective' at "
                f"epsilon={problem.epsilon:g}: C must be at most {problem.largest_C(weakest):.6g}, "
                "or np.inf, which leaves the penalty to the plan."
            )
        return ObjectiveFit(problem, minimizer, problem.penalty)


# signal to noise beyond which a weaker penalty pays
_STRONG = 100.0

# penalty at which noise moves the margins of rows of unit length by one
_MARGIN_SHARE = 2.0


class ObjectiveFit(RidgeFit):
    """One perturbed minimiser, certified."""

    #: the error of the minimiser is priced on its own
    n_releases = 2

    def run(self, curator):
        """Release the minimiser, then project it."""
        problem = self.problem
        mechanism = ObjectivePerturbation(problem.epsilon, problem.delta)
        # the noise does not depend on the tolerance, nor the tolerance on the data
        query = self._query(1.0)
        facts = query.sensitivity(problem.adjacency, problem.most_rows)
        longest = mechanism.longest_term(facts, query.size)
        query = self._query(problem.tolerance(self.ridge, longest_linear=longest))
        released = curator.release(query, mechanism)
        # what has been released may be projected at no cost
        return ball_constraint(released, problem.radius).reshape(problem.shape)

    def _query(self, tolerance):
        problem = self.problem
        return PerturbedMinimizer(
            problem.loss, self.ridge, problem.n_coefs, problem.row_norm, tolerance, self.minimizer,
            row_terms=problem.row_terms, most_rows=problem.most_rows,
            of_groups=problem.unit == "group",
        )  # fmt: skip


def free_ridge(problem):
    """Return the least penalty with a free determinant (almost free for several outputs)."""
    square, price = problem.row_norm**2, problem.epsilon / problem.moved_rows
    if problem.loss.tied:
        # 1 % for the part of epsilon that goes to the error of the minimiser
        return 1.01 * square / problem.loss.temperature / price
    return 2 * square / problem.loss.temperature / price


def weakest_ridge(problem):
    """Return a penalty below which the determinant would cost more than half of epsilon."""
    loss, square = problem.loss, problem.row_norm**2
    rank = problem.size if problem.unit == "group" else loss.corners
    share = min(problem.epsilon / 2 / rank, 700.0)
    ridge = loss.trace * square / rank / math.expm1(share)
    return min(ridge, free_ridge(problem)) if loss.tied else ridge


def default_objective_ridge(problem):
    """Return the penalty that balances its bias and the noise, by a rule found on data."""
    free = free_ridge(problem)
    if problem.loss.tied and problem.signal >= _STRONG:
        # where noise is small the penalty biases more than a paid determinant costs
        free = max(free / 3, weakest_ridge(problem))
    share = 0.03 if problem.loss.n_outputs == 1 else 0.1
    # noise moves margins by an amount that is free of the number of coefficients
    share = min(share, _MARGIN_SHARE * rivals(problem.loss) / math.sqrt(problem.size))
    return max(free, share * problem.noise_ridge)
