# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shift and scale rows by released constants, and map coefficients back."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._typing import MatrixLike
from skdp.preprocessing._checked_rows import map_shiftable_rows
from skdp.preprocessing._columnwise import restored, standardised


class ShiftAndScale(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of transformers that map x to ``(x - center_) / threshold_``.

    Subclasses have a parameter `with_mean`; without it the centre is zero, and rows may be
    sparse.
    """

    def transform(self, X: MatrixLike) -> Any:
        """Shift and scale every row, without clipping.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Rows; never changed. Sparse only with ``with_mean=False``.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} or RowStream of shape (n_samples, n_features)
            In the floating-point type of X. Rows beyond the radius are longer than 1. What
            would overflow is the largest number of that type.
        """
        return self._mapped(X, standardised)

    def inverse_transform(self, X: MatrixLike) -> Any:
        """Undo `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Transformed rows. Sparse only with ``with_mean=False``.

        Returns
        -------
        X_original : {ndarray, sparse matrix} or RowStream of shape (n_samples, n_features)
            In the floating-point type of X.
        """
        return self._mapped(X, restored)

    def original_coef(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0
    ) -> tuple[NDArray[np.float64], Any]:
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

    def _mapped(self, X, function):
        check_is_fitted(self)
        function = partial(function, shift=self.center_, scale=self.threshold_)
        return map_shiftable_rows(self, X, function)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
