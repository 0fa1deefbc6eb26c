# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The exponential mechanism: coefficients drawn with probability exp(-loss/temperature)."""

from dataclasses import dataclass
from typing import ClassVar

from scipy.special import gammainccinv

from skdp._domains import ball_constraint
from skdp._queries import LossDraw, Minimizer
from skdp.linear_model._mechanisms.fit import Fit
from skdp.privacy import ExponentialMechanism, KNormMechanism

#: exact sampling covers the coefficients with boxes, 2^size at a time
EXACT_LIMIT = 5


@dataclass(frozen=True)
class ExponentialFit(Fit):
    """One draw, or a coarse minimiser and a draw near it.

    Parameters
    ----------
    problem, solver : Problem, {"exact", "net"}
        Public facts, and where to draw from.
    reach : float or None
        Radius around the coarse minimiser; None for one draw from the whole ball.
    """

    solver: str
    reach: float | None
    n_iter: int = 1
    #: purely private
    delta: ClassVar[float] = 0.0

    def run(self, curator):
        """Release the draw."""
        problem = self.problem
        epsilon, near = problem.epsilon, None
        if self.reach is not None:
            # Bassily, Smith and Thakurta (2014), Algorithms 3 and 4, half the budget each
            epsilon = problem.epsilon / 2
            query = Minimizer(
                problem.loss, problem.penalty, problem.n_coefs, problem.row_norm,
                problem.tolerance(problem.penalty), row_terms=problem.row_terms,
            )  # fmt: skip
            coarse = curator.release(query, KNormMechanism(epsilon))
            near = (ball_constraint(coarse, problem.radius), self.reach)
        query = LossDraw(
            problem.loss, problem.n_coefs, problem.row_norm, problem.penalty, problem.radius,
            near=near, exact=self.solver == "exact",
        )  # fmt: skip
        drawn = curator.release(query, ExponentialMechanism(epsilon))
        return ball_constraint(drawn, problem.radius).reshape(problem.shape)


def plan(problem, solver):
    """Plan the exponential mechanism.

    Parameters
    ----------
    problem, solver : Problem, {"exact", "net"}
        Public facts, and where to draw from.

    Returns
    -------
    plan : ExponentialFit
        The plan.

    Raises
    ------
    ValueError
        If the set is not bounded, if there are too many coefficients to draw exactly, or
        if the loss is to be localised without a penalty.
    """
    if problem.radius is None:
        raise ValueError(
            "coef_bound must be a number for mechanism='exponential', which draws from a bounded "
            "set; got None."
        )
    if solver == "exact" and problem.size > EXACT_LIMIT:
        raise ValueError(
            f"solver='exact' draws at most {EXACT_LIMIT} coefficients, intercepts included; this "
            f"problem has {problem.size}. Use mechanism='objective' or 'output' with delta=0 for "
            "pure privacy, or mechanism='gradient' with delta > 0; solver='net' draws from a "
            "fixed set of candidates, which serves as a cross-check."
        )
    if not problem.localize:
        return ExponentialFit(problem, solver, None)
    if problem.penalty == 0:
        raise ValueError(
            "C must be finite for localize=True, which rests on the strong convexity that the "
            "penalty gives; got C=inf."
        )
    problem.check_weak_penalty()
    reach = localized_radius(problem)
    # where the smaller ball is not small, all of the budget goes to the draw
    return ExponentialFit(problem, solver, reach if 2 * reach < problem.radius else None)


def localized_radius(problem):
    """Return a radius that the first stage misses with probability at most 1/n^2.

    The noise of the first stage has Gamma distributed length; its quantile replaces the
    printed factor 3 ln(n), which is several times larger.
    """
    failure = 1.0 / max(problem.n_rows, 2) ** 2
    scale = problem.gradient_sensitivity / problem.penalty / (problem.epsilon / 2)
    return scale * float(gammainccinv(problem.size, failure)) * (1 + 1e-6)
