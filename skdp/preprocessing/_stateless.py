# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the transformers with public parameters share."""

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdp._sklearn import fit_context, validate_private_data


class RowwiseTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that maps every row on its own, by public constants.

    Subclasses implement ``_transform(X)`` and may refine ``_accepts_sparse``.
    """

    _parameter_constraints: dict = {}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Check parameters and remember the number and names of the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Only its shape is used.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        X = validate_private_data(self, X, accept_sparse=self._sparse_formats())
        self._constants(X.shape[1])
        return self

    def transform(self, X):
        """Transform every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} of shape (n_samples, n_features)
            In the floating-point type of X.
        """
        self._validate_params()
        X = validate_private_data(self, X, accept_sparse=self._sparse_formats(), reset=False)
        return self._transform(X)

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
