# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of sparse rows: a noisy sum, and what can be made of it for free."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp._domains import ball_constraint
from skdp._queries import SparseRowSum
from skdp._recovery import (
    project_ksupport,
    project_l1,
    project_l1l2,
    soft_threshold,
    sure_threshold,
    universal_threshold,
)
from skdp._solvers.sparse_mean import SparseEstimate, SparseMeanProblem
from skdp.privacy import GaussianMechanism, LaplaceMechanism, gdp_mu

# Where Laplace noise is predicted to err by this much less than Gaussian noise, it does on bags
# of words; they differ from the worst rows, for which errors are predicted.
_CLEARLY = 0.8


@dataclass(frozen=True)
class NoisyMean:
    """One noisy sum of all rows, then a threshold or a projection.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.
    mechanism : {"soft-threshold", "projection"}
        Whether noise is removed by a threshold first.
    price : GaussianMechanism or LaplaceMechanism
        What the sum is released by.
    """

    problem: SparseMeanProblem
    mechanism: str
    price: Any

    @property
    def law(self):
        """Law of the noise."""
        return "laplace" if isinstance(self.price, LaplaceMechanism) else "gaussian"

    @property
    def gaussian(self):
        """Whether all noise is Gaussian."""
        return self.law == "gaussian"

    @property
    def delta(self):
        """The delta that is spent."""
        return 0.0 if self.law == "laplace" else self.problem.delta

    @property
    def query(self):
        """What is released."""
        problem = self.problem
        return SparseRowSum(problem.n_features, problem.sparsity, problem.nonnegative)

    @property
    def scale(self):
        """Scale of the noise of an entry of the mean."""
        problem = self.problem
        facts = self.query.sensitivity(problem.adjacency, problem.n_rows)
        return self.price.calibrate(facts, problem.n_features).scale / problem.n_rows

    @property
    def error(self):
        """Expected Euclidean error after a projection, from public numbers."""
        query = self.query
        return predicted_error(self.law, self.scale, query.n_features, query.n_nonzeros)

    @property
    def risk_is_known(self):
        """Whether an estimate of the risk errs by less than the risk of the zero vector.

        The variance of the noise on d entries together is known to a standard deviation of
        ``sqrt(2 d)`` (Laplace noise: ``sqrt(5 d)``) times that of one; the risk of zeros is 1.
        """
        variance, fourth = (2.0, 5.0) if self.law == "laplace" else (1.0, 2.0)
        return variance * self.scale**2 * math.sqrt(fourth * self.problem.n_features) < 1.0

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds rows of `sparse_rows`.

        Returns
        -------
        estimate : SparseEstimate
            With a value for every feature.
        """
        problem = self.problem
        noisy = curator.release(self.query, self.price) / problem.n_rows
        error, threshold = self.error, None
        if self.mechanism == "soft-threshold":
            threshold = universal_threshold(self.scale, problem.n_features, self.law)
            if self.risk_is_known:
                # an estimate of a small risk may be negative: no less than what one entry costs
                least = threshold**2 + self.scale**2
                threshold, risk = sure_threshold(noisy, self.scale, problem.nonnegative, self.law)
                error = min(error, math.sqrt(max(risk, least)))
        if problem.nonnegative:
            noisy = np.maximum(noisy - (threshold or 0.0), 0.0)
        elif threshold:
            noisy = soft_threshold(noisy, threshold)
        return SparseEstimate(into_convex_set(noisy, problem), error, threshold)


def into_convex_set(values, problem):
    """Return released values projected onto a set that has every mean of the rows.

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        Released numbers; none of them negative if the rows are non-negative.
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    projected : ndarray of shape (n_features,)
        No further from the mean: projections onto a convex set move no two points apart.
    """
    if problem.sparsity is None:
        return ball_constraint(values, 1.0)
    sparsity = min(problem.sparsity, problem.n_features)
    if problem.projection == "ksupport":
        return project_ksupport(values, sparsity, 1.0)
    radius = math.sqrt(sparsity)
    if problem.projection == "l1":
        return project_l1(values, radius)
    return project_l1l2(values, radius, 1.0)


def predicted_error(law, scale, n_features, n_nonzeros):
    """Return the Euclidean error to expect of a noisy mean after a projection.

    Parameters
    ----------
    law, scale : {"gaussian", "laplace"}, float
        Noise of an entry.
    n_features, n_nonzeros : int
        Number of entries, and the number of them that a row may have.

    Returns
    -------
    error : float
        Root mean square, for the worst rows of the unit ball, and at most that of the zero
        vector, 1.

    Notes
    -----
    Rows have l1 norm ``R = sqrt(n_nonzeros)`` at most. A projection of a vector of l1 norm R
    with noise of standard deviation s on d entries errs by about ``s sqrt(d)``, or, if that is
    less, by ``sqrt(R s sqrt(2 log(e + d s / R)))`` (Donoho and Johnstone 1994); Laplace
    noise has a logarithm without the root.
    """
    radius = math.sqrt(n_nonzeros)
    spread = scale * (math.sqrt(2.0) if law == "laplace" else 1.0)
    log = math.log(math.e + n_features * scale / radius)
    level = spread * (log if law == "laplace" else math.sqrt(2.0 * log))
    return min(1.0, spread * math.sqrt(n_features), math.sqrt(radius * level))


def plan_soft_threshold(problem):
    """Plan a noisy mean with the soft threshold of least estimated risk.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : NoisyMean
        With Gaussian noise or, without a delta, Laplace noise.

    Raises
    ------
    ValueError
        If there is neither a delta nor a sparsity.
    """
    return _plan("soft-threshold", problem)


def plan_projection(problem):
    """Plan a noisy mean that is projected on the means of sparse rows.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : NoisyMean
        With Gaussian noise or, without a delta, Laplace noise.

    Raises
    ------
    ValueError
        If the sparsity is not known: it is what the projection rests on.
    """
    if problem.sparsity is None:
        raise ValueError(
            "sparsity must be given for mechanism='projection', the largest number of non-zero "
            "entries of a row that count; got None. Pass sparsity, or use "
            "mechanism='soft-threshold', which needs none (but a delta greater than 0)."
        )
    return _plan("projection", problem)


def plan_auto(problem):
    """Plan a soft threshold, with the noise that is predicted to do less harm.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : NoisyMean
        With Laplace noise, and no delta spent, where rows have few non-zeros or delta is tiny.

    Raises
    ------
    ValueError
        As `plan_soft_threshold`.
    """
    plan = _plan("soft-threshold", problem)
    if problem.is_pure or problem.sparsity is None:
        return plan
    pure = _plan("soft-threshold", replace(problem, delta=0.0))
    return pure if pure.error < _CLEARLY * plan.error else plan


def _plan(mechanism, problem):
    """Return a plan with Gaussian noise, or Laplace noise if there is no delta."""
    if not problem.is_pure:
        price = GaussianMechanism(gdp_mu(problem.epsilon, problem.delta))
    elif problem.sparsity is None:
        raise ValueError(
            "sparsity must be given at delta=0, the largest number of non-zero entries of a row "
            "that count: Laplace noise is in proportion to its root; got None. Pass sparsity, "
            "or a delta greater than 0."
        )
    else:
        price = LaplaceMechanism(problem.epsilon)
    return NoisyMean(problem, mechanism, price)
