# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Keep the chosen features of rows, and put zeros where the others were."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._streams import RowStream
from skdp._streams._columns import first_rows
from skdp._typing import MatrixLike
from skdp.preprocessing._checked_rows import map_rows


class FeatureSelector(SelectorMixin, BaseEstimator):
    """Base of transformers that keep some features, those of `support_`."""

    def transform(self, X: MatrixLike) -> Any:
        """Keep the chosen features.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, CSR or CSC matrix} or RowStream of shape (n_samples, n_selected)
            In the format and floating-point type of X. Without any chosen feature it has no
            column, and scikit-learn warns; that follows from the released counts.
        """
        check_is_fitted(self)
        if not isinstance(X, RowStream):
            return map_rows(self, X, self._transform)
        kept = np.flatnonzero(self.support_)
        if not len(kept):
            # as scikit-learn does for an array
            warnings.warn("No features were selected.", UserWarning, stacklevel=2)
        return map_rows(self, X, partial(columns_of, columns=kept))

    def inverse_transform(self, X: MatrixLike) -> Any:
        """Put zeros where features were not kept.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_selected)
            Transformed rows; never changed.

        Returns
        -------
        X_original : {ndarray, CSC matrix} or RowStream of shape (n_samples, n_features)
            Rows with all features. Sparse rows of a stream remain CSR.
        """
        check_is_fitted(self)
        if not isinstance(X, RowStream):
            return super().inverse_transform(X)
        kept = np.flatnonzero(self.support_)
        if first_rows(X).shape[1] != len(kept):
            raise ValueError("X has a different shape than during fitting.")
        return X.map(partial(spread, columns=kept, n_features=len(self.support_)))

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def columns_of(X, columns):
    """Return some columns of rows, in the format of X."""
    return X[:, columns]


def spread(X, columns, n_features):
    """Return rows of which X has some columns, with zeros in the others.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns)
        Never changed.
    columns : ndarray of int64, sorted
        Where its columns belong.
    n_features : int
        Number of all columns.

    Returns
    -------
    rows : ndarray or CSR array of shape (n_rows, n_features)
    """
    shape = X.shape[0], n_features
    if sparse.issparse(X):
        return sparse.csr_array((X.data, columns[X.indices], X.indptr), shape=shape)
    rows = np.zeros(shape, dtype=X.dtype)
    rows[:, columns] = X
    return rows
