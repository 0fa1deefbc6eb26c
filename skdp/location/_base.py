# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators of location share."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._sklearn import validate_private_data


class LocationEstimator(BaseEstimator):
    """Base of estimators that release one point, `location_`."""

    def predict(self, X):
        """Return the released location for every row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; only their number matters. Sparse rows are refused: the answer is
            dense and would be far larger than they are; use `location_`.

        Returns
        -------
        locations : ndarray of shape (n_samples, n_features)
            Copies of `location_`.
        """
        X = self._check(X)
        return np.tile(self.location_, (X.shape[0], 1))

    def _check(self, X, accept_sparse=False):
        check_is_fitted(self)
        return validate_private_data(self, X, accept_sparse=accept_sparse, reset=False)
