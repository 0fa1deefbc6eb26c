# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shift and scale rows by released constants, and map coefficients back."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._sklearn import refuse_sparse, validate_private_data


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
        X = self._checked(X)
        return _mapped(X, lambda values, center: (values - center) / self.threshold_, self.center_)

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
        X = self._checked(X)
        return _mapped(X, lambda values, center: values * self.threshold_ + center, self.center_)

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


def _mapped(X, function, center):
    """Return rows mapped in float64, and finite, in the type of X."""
    if sparse.issparse(X):
        # no shift: zero stays zero
        mapped = X.copy()
        mapped.data = in_type(function, X.data, 0.0)
        return mapped
    return in_type(function, X, center)


def in_type(function, values, center):
    # an infinity would make the next estimator raise, and say so about a row
    with np.errstate(over="ignore", under="ignore"):
        mapped = function(values.astype(np.float64, copy=False), center)
        largest = np.finfo(values.dtype).max
        return np.clip(mapped, -largest, largest).astype(values.dtype, copy=False)
