# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shift and scale rows by released constants, and map coefficients back."""

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._sklearn import refuse_sparse, validate_private_data
from skdp.preprocessing._columnwise import restored, standardised


class ShiftAndScale(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of transformers that map x to ``(x - center_) / threshold_``.

    Subclasses have a parameter `with_mean`; without it the centre is zero, and rows may be
    sparse.
    """

    def transform(self, X):
        """Shift and scale every row, without clipping.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; never changed. Sparse only with ``with_mean=False``.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} of shape (n_samples, n_features)
            In the floating-point type of X. Rows beyond the radius are longer than 1. What
            would overflow is the largest number of that type.
        """
        return standardised(self._checked(X), self.center_, self.threshold_)

    def inverse_transform(self, X):
        """Undo `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Transformed rows. Sparse only with ``with_mean=False``.

        Returns
        -------
        X_original : {ndarray, sparse matrix} of shape (n_samples, n_features)
            In the floating-point type of X.
        """
        return restored(self._checked(X), self.center_, self.threshold_)

    def original_coef(self, coef, intercept=0.0):
        """Return coefficients for original rows, from those for transformed rows.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_outputs, n_features)
            Coefficients that were learned on transformed rows.
        intercept : float or array-like of shape (n_outputs,), default=0.0
            Intercept that was learned with them.

        Returns
        -------
        coef : ndarray
            Coefficients for original rows, in the shape of `coef`.
        intercept : float or ndarray of shape (n_outputs,)
            Intercept for original rows. If the centre is far off it is large, and scores lose
            as many digits as the offset is longer than the radius.
        """
        check_is_fitted(self)
        original = np.asarray(coef, dtype=np.float64) / self.threshold_
        return original, np.asarray(intercept) - original @ self.center_

    def _checked(self, X):
        check_is_fitted(self)
        if self.with_mean:
            refuse_sparse(X, "with_mean=True", "with_mean=False")
        formats = False if self.with_mean else ["csr", "csc"]
        return validate_private_data(self, X, accept_sparse=formats, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
