# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the transformers with public parameters share."""

from copy import copy
from typing import Any, Self

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdp._sklearn import fit_context, validate_private_data
from skdp._streams import RowStream
from skdp._typing import MatrixLike
from skdp.preprocessing._checked_rows import checked_rows


class RowwiseTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that maps every row on its own, by public constants.

    Subclasses implement ``_transform(X)`` and may refine ``_accepts_sparse``.
    """

    _parameter_constraints: dict = {}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Check parameters and remember the number and names of the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Only its shape is used. Of a stream the first rows are read.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        formats = self._sparse_formats()
        X = validate_private_data(self, X, streams="first", accept_sparse=formats)
        self._constants(X.shape[1])
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Transform every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} or RowStream of shape (n_samples, n_features)
            In the floating-point type of X.
        """
        self._validate_params()
        formats = self._sparse_formats()
        if isinstance(X, RowStream):
            X, n_features = checked_rows(self, X, formats)
            self._constants(n_features)
            # of a copy: what is read later must not depend on parameters that are set later
            return X.map(copy(self)._transform)
        return self._transform(validate_private_data(self, X, accept_sparse=formats, reset=False))

    def _sparse_formats(self):
        return ["csr", "csc"] if self._accepts_sparse() else False

    def _accepts_sparse(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
