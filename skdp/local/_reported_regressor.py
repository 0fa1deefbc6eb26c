# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a regression from reports does besides reading them: units, and predictions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skdp._sklearn import validate_private_data
from skdp._typing import MatrixLike


class ReportedRegressor(RegressorMixin, BaseEstimator):
    """Base of `LocalDPLinearRegression`: all that needs no private rows."""

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return predictions for rows in the clear.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. Predictions are computed from them without noise.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            ``X @ coef_ + intercept_``.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return safe_sparse_dot(X, self.coef_, dense_output=True) + self.intercept_

    def _units(self, n_features):
        """Return the radius, what targets are divided by, and the constant; all public."""
        scale, constant = self.target_scale, self.intercept_scaling
        if scale is None:
            scale = (2.0 / n_features) ** 0.25
        if constant is None:
            constant = n_features**-0.5
        return float(self.data_norm), float(scale), float(constant) if self.fit_intercept else 0.0

    def _solved(self, solved, radius, scale, constant):
        """Keep a solution in the units of the data."""
        n_features = self.n_features_in_
        shift = [scale * constant * radius] * bool(constant)
        unit = np.append(np.full(n_features, scale), shift)
        coef, error = unit * solved.coef, unit * np.sqrt(np.diag(solved.covariance))
        self.coef_, self.coef_standard_error_ = coef[:n_features], error[:n_features]
        self.intercept_ = float(coef[-1]) if constant else 0.0
        self.intercept_standard_error_ = float(error[-1]) if constant else 0.0
        self.coef_covariance_ = scale**2 * solved.covariance[:n_features, :n_features]
        self.noise_level_, self.smallest_eigenvalue_ = solved.level, solved.smallest

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
