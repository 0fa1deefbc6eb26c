# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How rows report for a mean: their public domain, the randomiser, and the units of reports."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._domains import check_bounds, check_radius
from skdp._queries import LocalReports
from skdp._randomisers import optimal_privunit_cube
from skdp._reports import report_bound
from skdp._sklearn import refuse_sparse
from skdp.local._choice import ball_randomiser
from skdp.local._row_domains import BallDomain, BoxDomain

#: reports are put on a grid of 2^-20 of an entry's size
_SNAPPED = 1 + 1e-5


@dataclass(frozen=True)
class MeanPlan:
    """What is public about the reports of a mean.

    Parameters
    ----------
    domain : BallDomain or BoxDomain
        What rows are brought into.
    randomiser : object
        Parameters of `skdp._randomisers`.
    n_features : int
        Number of features.
    """

    domain: Any
    randomiser: Any
    n_features: int

    @property
    def query(self):
        """The query for one report of every row."""
        return LocalReports(self.domain.vectors, self.randomiser)

    @property
    def center(self):
        """What a report of zero stands for, in the units of the data."""
        return self.domain.box.center if isinstance(self.domain, BoxDomain) else 0.0

    @property
    def unit(self):
        """What the number 1 in a report stands for, in the units of the data."""
        in_box = isinstance(self.domain, BoxDomain)
        return self.domain.box.half_width if in_box else self.domain.radius

    @property
    def noise_variance(self):
        """Variance of every entry of one report, in the units of the data."""
        if isinstance(self.domain, BoxDomain):
            return self.domain.variance(self.randomiser)
        error = self.randomiser.mean_squared_error(self.domain.norm)
        return np.full(self.n_features, error * self.unit**2 / self.n_features)

    def in_units(self, reports):
        """Return reports in the units of the data as those of the unit domain, or raise."""
        with np.errstate(over="ignore", under="ignore"):
            reports = (reports - self.center) / self.unit
            longest, bound = np.abs(reports).max(), report_bound(self.randomiser)
        if longest > bound * _SNAPPED:
            raise ValueError(
                "reports must have been made with the parameters of this estimator: no entry of "
                f"them is more than {bound:g} units from the centre, and some are."
            )
        return reports


def plan_mean_reports(epsilon, mechanism, data_norm, bounds, expected_norm, n_features):
    """Return the plan that parameters of `LocalDPMean` ask for, or raise a ValueError."""
    if (mechanism == "cube") != (bounds is not None):
        raise ValueError(
            'bounds must be given for mechanism="cube", and be None otherwise; got '
            f"bounds={bounds!r} with mechanism={mechanism!r}."
        )
    epsilon, norm = float(epsilon), 1.0 if expected_norm is None else float(expected_norm)
    if bounds is None:
        domain = BallDomain(check_radius(data_norm), norm)
        chosen = ball_randomiser(epsilon, n_features, mechanism, expected_norm, None, "optimal")
    else:
        domain = BoxDomain.between(*check_bounds(bounds, n_features))
        chosen = optimal_privunit_cube(epsilon, n_features)
    plan = MeanPlan(domain, chosen, n_features)
    # raises if reports would overflow
    _ = plan.noise_variance
    return plan


def check_format(X, bounds):
    """Raise a TypeError for sparse rows that are to be brought into a box."""
    if bounds is not None:
        refuse_sparse(X, "bounds", "bounds=None")
