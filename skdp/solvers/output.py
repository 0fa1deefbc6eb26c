# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Output perturbation: the minimiser of a penalised loss, plus noise.

The minimiser of an r-strongly convex sum moves by at most ``gradient sensitivity / r`` (Chaudhuri,
Monteleoni and Sarwate 2011). It is computed to a certified precision, which is part of the
sensitivity. A group of rows, with smaller weights, moves it no further than one row. A bound on
the number of rows is enough, so the number may be secret. The noise is Gaussian, or K-norm or
Laplace noise at delta 0. The default penalty is in `skdp.solvers.base`.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from skdp._minimize.queries import IN_CVXPY, Minimizer
from skdp._recovery.shrinkage import project_linf
from skdp._rows.base import ball_constraint
from skdp._sklearn import StrOptions
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.k_norm import KNormMechanism
from skdp.solvers.base import Fit, RidgeFit, Solver, default_ridge, margin_noise, minimizer_of


class Output(Solver):
    """The certified minimiser of a penalised loss, plus noise.

    Parameters
    ----------
    minimizer : {"auto", "newton", "lbfgs", "cvxpy"}, default="auto"
        Method for the minimiser. Its result is certified, so the privacy claim does not depend on
        it. "auto" is "cvxpy" for a loss with kinks and at most 20,000 for rows times coefficients;
        otherwise Newton's method for at most 300 coefficients. "cvxpy" by name needs all rows in
        memory, and supports classification and regression losses with kinks.
    linf_projection : bool, default=False
        With `coef_bound`, for classification: whether noisy coefficients enter the ball by
        soft-thresholding, the projection in the maximum norm [2]_, which sets many of them to
        zero. Otherwise they are scaled.
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound. It determines the Laplace noise at delta
        0.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1, and 0.2 for targets.

    See Also
    --------
    Objective : A random linear term instead of noise, for smooth losses.
    Phased : Several noisy minimisers, without strong convexity.

    Notes
    -----
    Privacy needs a penalty: ``C=np.inf`` (``l2=0``) leaves it to the plan. At delta 0 this solver
    is the default for losses with kinks. A group of rows moves the minimiser no further than one
    row.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR, 2011.
    .. [2] B. Ghazi, C. Guzmán, P. Kamath, R. Kumar and P. Manurangsi, "Differentially
       private optimization with sparse gradients", NeurIPS 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHingeSVM, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> solver = solvers.Output(minimizer="lbfgs")
    >>> model = DPHingeSVM(solver=solver, classes=[False, True], random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "output"
    mechanism = "output"
    takes_groups = True
    unused = {
        "max_iter": "it has no steps",
    }
    only_classification = ("linf_projection", *Solver.only_classification)

    _parameter_constraints = {
        **Solver._parameter_constraints,
        "minimizer": [StrOptions({"auto", "newton", "lbfgs", "cvxpy"})],
        "linf_projection": ["boolean"],
    }

    def __init__(
        self,
        *,
        minimizer: Literal["auto", "newton", "lbfgs", "cvxpy"] = "auto",
        linf_projection: bool = False,
        sparsity: int | None = None,
        intercept_scaling: float | None = None,
    ) -> None:
        self.minimizer = minimizer
        self.linf_projection = linf_projection
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    @property
    def streams(self) -> bool:  # type: ignore[override]
        """Whether rows may be read chunk by chunk; not with cvxpy."""
        return self.minimizer != "cvxpy"

    def plan(self, problem: Any) -> Fit:
        """Plan the penalty from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : OutputFit
            The plan.

        Raises
        ------
        ValueError
            If the penalty that was asked for is too weak for floating point, if `linf_projection`
            is set without a ball, or if cvxpy does not support the loss.
        """
        if self.linf_projection and problem.radius is None:
            raise ValueError(
                "coef_bound must be a number for linf_projection=True, which brings noisy "
                "coefficients into the ball of that radius; got coef_bound=None."
            )
        problem.check_weak_penalty()
        ridge = problem.penalty or default_ridge(problem)
        minimizer = self.minimizer
        if minimizer == "cvxpy" and not isinstance(problem.loss, IN_CVXPY):
            raise ValueError(
                "minimizer must be 'auto', 'newton' or 'lbfgs' for regression, unless the loss has "
                "kinks (p=1); got 'cvxpy'."
            )
        if minimizer == "auto" and _is_small_and_kinked(problem):
            minimizer = "cvxpy"
        minimizer = minimizer_of(problem, minimizer)
        return OutputFit(problem, minimizer, ridge, linf_projection=self.linf_projection)


# Rows times coefficients up to which a fit to a loss with kinks by cvxpy takes at most three times
# as long as one by falling temperatures (`benchmarks/speed.py --part cvxpy`). So few rows may be
# held as one matrix, wherever they come from.
_CVXPY_LIMIT = 20_000


def _is_small_and_kinked(problem):
    """Return whether a minimiser is cvxpy's, from public facts."""
    # nobody knows how many rows groups have
    few = problem.unit == "row" and problem.n_rows * problem.size <= _CVXPY_LIMIT
    return few and math.isinf(problem.loss.smoothness)


_PURE = {"k-norm": KNormMechanism, "laplace": LaplaceMechanism}


@dataclass(frozen=True)
class OutputFit(RidgeFit):
    """One certified minimiser with noise."""

    linf_projection: bool = False
    full_batches = True

    def run(self, curator):
        """Release the minimiser, then project it."""
        problem = self.problem
        tolerance = problem.tolerance(self.ridge)
        law, _ = margin_noise(problem)(self.ridge)
        query = Minimizer(
            problem.loss, self.ridge, problem.n_coefs, problem.row_norm, tolerance, self.minimizer,
            row_l1=problem.row_l1 if law == "laplace" else math.inf, row_terms=problem.row_terms,
            most_rows=problem.most_rows,
        )  # fmt: skip
        if law == "gaussian":
            mechanism = GaussianMechanism(problem.mu)
        else:
            mechanism = _PURE[law](problem.pure_epsilon)
        released = curator.release(query, mechanism)
        project = project_linf if self.linf_projection else ball_constraint
        return project(released, problem.radius).reshape(problem.shape)
