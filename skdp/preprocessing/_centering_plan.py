# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a private centring releases and what each part may cost, from public numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._domains import check_radius
from skdp._solvers import plan_threshold
from skdp._solvers.budget import mu_beside
from skdp._solvers.mean import plan_mean
from skdp.privacy._accounting import check_delta, check_epsilon


@dataclass(frozen=True)
class CenteringPlan:
    """A centre, a radius around it, or both.

    Parameters
    ----------
    mean : object or None
        Plan of the centre; None for no shift.
    radius : ThresholdPlan, float or None
        Plan of the radius, or a public one in the units of the data, or None for no scaling.
    delta : float
        What may be spent of delta.
    """

    mean: Any
    radius: Any
    delta: float

    @property
    def priced(self):
        """Epsilons of the releases without Gaussian noise."""
        return (self.radius.epsilon,) if getattr(self.radius, "released", False) else ()

    def run(self, curator, data_norm):
        """Release what is planned.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.
        data_norm : float
            Radius of the ball that the rows were admitted into.

        Returns
        -------
        center : ndarray of shape (n_features,) or None
            In the units of the data.
        threshold : float
            In the units of the data; 1.0 for no scaling.
        """
        center = None if self.mean is None else self.mean.run(curator)
        if self.radius is None:
            threshold = 1.0
        elif isinstance(self.radius, float):
            threshold = self.radius
        else:
            unit = self.radius.run(curator, center)
            threshold = unit * data_norm
        return None if center is None else center * data_norm, threshold


def plan_centering(
    epsilon,
    delta,
    *,
    mechanism,
    adjacency,
    with_mean,
    threshold,
    threshold_share,
    n_rows,
    n_features,
):
    """Split the budget between a centre and a radius.

    Parameters
    ----------
    epsilon, delta, mechanism, adjacency, with_mean, threshold, threshold_share
        As in `DPFeatureCenterer`.
    n_rows, n_features : int
        Shape of the data; public.

    Returns
    -------
    plan : CenteringPlan
        Made of public numbers only.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the budget cannot be spent.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    private = isinstance(threshold, str) and threshold == "private"
    if not (private or threshold is None):
        threshold = check_radius(threshold, "threshold")
    if not with_mean:
        radius = plan_threshold(epsilon, n_rows=n_rows, centered=False) if private else threshold
        return CenteringPlan(None, radius, 0.0)
    if delta == 0:
        raise ValueError(
            "delta must be greater than 0 unless with_mean=False, for a private centre has "
            "Gaussian noise; got 0. Choose a delta well below 1/n_samples."
        )
    number = isinstance(threshold_share, int | float | np.number)
    if not (number and 0 < threshold_share < 1):
        raise ValueError(
            f"threshold_share must be a number between 0 and 1, not one of them; got "
            f"{threshold_share!r}."
        )
    radius, priced = threshold, 0.0
    if private:
        radius = plan_threshold(threshold_share * epsilon, n_rows=n_rows, centered=True)
        priced = radius.epsilon if radius.released else 0.0
    mean = plan_mean(
        mechanism,
        n_rows=n_rows,
        n_features=n_features,
        mu=mu_beside(epsilon, delta, priced),
        adjacency=adjacency,
    )
    return CenteringPlan(mean, radius, delta)
