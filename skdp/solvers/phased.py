# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Iterative localisation on all rows: noisy minimisers, each near the one before.

Phase i minimises the loss plus ``ridge_i/2 |w - w_(i-1)|^2``, where ``ridge_i`` grows fourfold per
phase, and releases the result with Gaussian noise. The noise is inversely proportional to the
ridge, so it shrinks as the iterates converge (after Feldman, Koren and Talwar 2020). For a loss of
Lipschitz constant L in w, sensitivity S, p coefficients and a solution in the ball of radius R,
started with ridge ``4 S sqrt(p) / (R mu)``, the expected excess of the sum is at most ``4 R S
sqrt(p) / mu`` plus the loss of the last noise. The bound also holds for losses without a
derivative.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._minimize.queries import Minimizer
from skdp._rows.base import ball_constraint
from skdp.privacy.laws.additive import GaussianMechanism
from skdp.solvers.base import LARGEST_COEF, Fit, Solver, minimizer_of


class Phased(Solver):
    """Several noisy minimisers on all rows, each near the one before.

    It needs no strong convexity: without a penalty it adds less noise than `Output`.

    Parameters
    ----------
    sparsity : int, default=None
        For classification: public bound on the number of non-zero features of a row; rows with
        more keep their largest entries. None: no bound.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of `data_norm`. A small value takes a
        smaller share of the clipped gradient. None is 0.1, and 0.2 for targets.

    See Also
    --------
    Output : One noisy minimiser.

    Notes
    -----
    The pull towards the previous point grows fourfold per phase, and the noise shrinks
    accordingly. The first phases are coarse and get most of the budget.

    References
    ----------
    .. [1] V. Feldman, T. Koren and K. Talwar, "Private stochastic convex optimization: optimal
       rates in linear time", STOC 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHingeSVM, solvers
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2)) / 2
    >>> y = X[:, 0] > 0
    >>> model = DPHingeSVM(solver=solvers.Phased(), classes=[False, True], random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    word = "phased"
    mechanism = "output"
    needs_delta = "which adds Gaussian noise in several phases"
    unused = {
        "max_iter": "the number of rows decides how many phases there are",
    }

    def __init__(
        self, *, sparsity: int | None = None, intercept_scaling: float | None = None
    ) -> None:
        self.sparsity = sparsity
        self.intercept_scaling = intercept_scaling

    def plan(self, problem: Any) -> Fit:
        """Plan the phases from public facts.

        Parameters
        ----------
        problem : Problem
            Public facts.

        Returns
        -------
        plan : PhasedFit
            The plan.

        Notes
        -----
        The first phases are coarse and get most of the budget: phase i has the share ``2^-i``
        of mu^2.
        """
        mu = problem.mu
        n_phases = 1 + math.ceil(math.log(max(problem.n_rows, 2), 4))
        radius = problem.distance
        first = 4 * problem.gradient_sensitivity * math.sqrt(problem.size) / (radius * mu)
        weights = np.array([2.0**-i for i in range(n_phases)])
        # a hair less, so that the prices add up to no more than the budget in floats
        mus = mu * np.sqrt(weights / weights.sum()) * (1 - 1e-12)
        return PhasedFit(
            problem,
            ridges=tuple(first * 4.0**i for i in range(n_phases)),
            mus=tuple(float(m) for m in mus),
            minimizer=minimizer_of(problem),
        )


@dataclass(frozen=True)
class PhasedFit(Fit):
    """Phases of noisy minimisation.

    Parameters
    ----------
    problem : Problem
        Public facts.
    ridges, mus : tuple of float
        Pull towards the center, and price, of every phase.
    minimizer : {"newton", "lbfgs"}
        Method for the minimisers.
    """

    ridges: tuple
    mus: tuple
    minimizer: str = "newton"
    full_batches = True

    @property
    def n_iter(self):
        """Number of phases."""
        return len(self.ridges)

    def run(self, curator):
        """Release one minimiser per phase."""
        problem = self.problem
        coef = np.zeros(problem.size)
        for pull, mu in zip(self.ridges, self.mus, strict=True):
            query = held_minimizer(problem, pull, coef, self.minimizer)
            released = curator.release(query, GaussianMechanism(mu))
            coef = np.clip(released, -LARGEST_COEF, LARGEST_COEF)
            coef = ball_constraint(coef, problem.radius)
        return coef.reshape(problem.shape)


def held_minimizer(problem, pull, point, minimizer):
    """Return the query of a minimiser with a pull towards a point, beside the penalty.

    Parameters
    ----------
    problem : Problem
        Public facts, of the rows that are read.
    pull : float
        Strength of ``pull/2 |w - point|^2``.
    point : ndarray of shape (size,)
        Point released before.
    minimizer : {"newton", "lbfgs"}
        Method.
    """
    # both penalties are one, around a point between 0 and the given one
    ridge = pull + problem.penalty
    center = point * (pull / ridge)
    return Minimizer(
        problem.loss, ridge, problem.n_coefs, problem.row_norm,
        problem.tolerance(ridge, center), minimizer, center, row_terms=problem.row_terms,
    )  # fmt: skip
