# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is computed from the mean of reports: intervals, and the error beforehand."""

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted

from skdp._location import MeanEstimator
from skdp.local._mean_plan import plan_mean_reports


class ReportedMean(MeanEstimator):
    """Base of `LocalDPMean`: all that needs no private rows."""

    def confidence_interval(
        self, level: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return an interval for every entry of the mean.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which one interval holds, in (0, 1).

        Returns
        -------
        lower, upper : ndarray of shape (n_features,)
            Ends of Student's intervals for the mean of the law that the clipped rows come from.
            Infinite for a single row.
        """
        check_is_fitted(self)
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a number in (0, 1); got {level!r}.")
        half = self.standard_error_
        if self.n_reports_ > 1:
            half = stdtrit(self.n_reports_ - 1, 0.5 + level / 2) * half
        return self.location_ - half, self.location_ + half

    def expected_error(self, n_samples: int, n_features: int) -> float:
        """Return the error that the noise will cause; it needs no data and no fit.

        Parameters
        ----------
        n_samples, n_features : int
            Numbers of rows and features.

        Returns
        -------
        error : float
            Root of the mean squared Euclidean distance of `location_` to the mean of the clipped
            rows, for rows of the expected norm.

        Raises
        ------
        ValueError
            If a parameter is unusable.
        """
        self._validate_params()
        for name, value in (("n_samples", n_samples), ("n_features", n_features)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
        return float(np.sqrt(self._plan(n_features).noise_variance.sum() / n_samples))

    def _plan(self, n_features):
        return plan_mean_reports(
            self.epsilon,
            self.mechanism,
            self.data_norm,
            self.bounds,
            self.expected_norm,
            n_features,
        )

    def _summed_up(self, sums, plan):
        self.location_ = plan.center + plan.unit * sums.mean
        self.standard_error_ = plan.unit * np.sqrt(sums.variance / sums.n_reports)
        self.noise_variance_, self.randomiser_ = plan.noise_variance, plan.randomiser
        self.n_reports_ = sums.n_reports
