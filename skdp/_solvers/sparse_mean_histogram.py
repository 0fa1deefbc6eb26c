# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private means of sparse rows over an open dictionary."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._domains import ball_constraint
from skdp._queries import TouchedColumnSum
from skdp._solvers.sparse_mean import SparseEstimate, SparseMeanProblem
from skdp.privacy import StabilityHistogram


@dataclass(frozen=True)
class HistogramMean:
    """One release of the columns that rows touch, and of the sums over them.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts, with a sparsity and a delta greater than 0.
    """

    problem: SparseMeanProblem

    #: mechanism that this is
    mechanism = "histogram"

    #: whether all noise is Gaussian
    gaussian = False

    @property
    def delta(self):
        """What may be spent of delta."""
        return self.problem.delta

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds rows of `sparse_rows`.

        Returns
        -------
        estimate : SparseEstimate
            Its values are a pair (columns, values); nothing has the length of a row. The
            error is an upper estimate: what is not released is taken to be as large as the
            sparsity and the threshold allow.
        """
        problem = self.problem
        n_rows, sparsity = problem.n_rows, problem.sparsity
        query = TouchedColumnSum(problem.n_features, sparsity, problem.nonnegative)
        price = StabilityHistogram(problem.epsilon, problem.delta)
        columns, sums = curator.release(query, price)
        noise = curator.ledger.releases[-1].noise
        # rows have l1 norm sqrt(sparsity) at most; sums below the threshold share what is left
        hidden = max(0.0, n_rows * math.sqrt(query.n_nonzeros) - np.abs(sums).sum())
        square = len(sums) * noise.scale**2 + noise.threshold * hidden
        return SparseEstimate(
            values=(columns, ball_constraint(sums / n_rows, 1.0)),
            error=min(1.0, math.sqrt(square) / n_rows),
            threshold=noise.threshold / n_rows,
        )


def plan_histogram(problem):
    """Plan a mean of the columns that rows touch.

    Parameters
    ----------
    problem : SparseMeanProblem
        Public facts.

    Returns
    -------
    plan : HistogramMean
        What will be released.

    Raises
    ------
    ValueError
        If there is no sparsity, or the budget does not allow for Gaussian noise.
    """
    if problem.sparsity is None:
        raise ValueError(
            "sparsity must be given for mechanism='histogram': the threshold follows from the "
            "number of columns that a row may touch; got None."
        )
    if problem.delta == 0:
        raise ValueError(
            "delta must be greater than 0 for mechanism='histogram', which may release a column "
            "that one row alone touches; got 0. Purely private is mechanism='projection'."
        )
    StabilityHistogram(problem.epsilon, problem.delta)
    return HistogramMean(problem)
