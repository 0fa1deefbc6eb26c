# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Prediction of a fitted logistic or softmax model: released numbers and the caller's rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from skdp._typing import MatrixLike


class SoftmaxClassifierMixin:
    """Probabilities from the decision function, for two classes and for more."""

    decision_function: Callable[..., Any]

    def predict_log_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Estimate logarithms of probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        score = self.decision_function(X)
        if score.ndim == 1:
            return np.column_stack([log_expit(-score), log_expit(score)])
        return log_softmax(score, axis=1)

    def predict_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Estimate probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))
