# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The sum of local reports, none of which counts for more than a bound."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._queries._sums import CompensatedSum
from skdp.privacy import Sensitivity

# sums that are made next to each other
_STEP = 64


@dataclass(frozen=True)
class ReportSum:
    """Sum of reports times `unit`, each projected to the ball of radius `limit`.

    Parameters
    ----------
    size : int
        Number of entries of a report.
    unit : float
        Length of what the reports take as 1.
    limit : float
        Bound on the norm of what one report counts for. Where reports are longer, their mean
        is no longer what was reported: the projection biases.
    """

    size: int
    unit: float
    limit: float
    #: what the statistic is
    name = "sum of projected reports"

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: limit (zero-out) or 2 limit (replace-one).

        Proof. Proposition 69 (ii). Given all reports, what one of them counts for has norm at
        most limit. Under zero-out a client that is not there makes no report; under
        replace-one there is another report in its place.
        """
        if adjacency == "zero-out":
            reach, theorem = self.limit, "a projected report has norm <= limit"
        else:
            reach, theorem = 2 * self.limit, "two projected reports differ by <= 2 limit"
        return Sensitivity(l1=math.inf, l2=reach, bound=n_rows * self.limit, theorem=theorem)

    def total(self, reports):
        """Return the sum of projected reports, an array of shape (size,).

        Where a client is not there, all others move to other places, and every rounding is
        another one: so all of them are carried along, and together stay under 2 u n limit for n
        reports, u = 2^-53, whoever comes in which place.
        """
        total, beside = CompensatedSum(self.size), CompensatedSum((_STEP, self.size))
        for start in range(0, len(reports), _STEP):
            part = reports[start : start + _STEP]
            counted = np.zeros((_STEP, self.size))
            np.multiply(part, (self._factors(part) * self.unit)[:, None], counted[: len(part)])
            beside.add(counted)
        for one in beside.value[: len(reports)]:
            total.add(one)
        return total.value

    def n_projected(self, reports):
        """Return how many reports are longer than the limit."""
        return int(np.count_nonzero(self._factors(reports) < 1.0))

    def _factors(self, reports):
        norm = self.unit * np.sqrt(np.einsum("ij,ij->i", reports, reports))
        return self.limit / np.maximum(norm, self.limit)
