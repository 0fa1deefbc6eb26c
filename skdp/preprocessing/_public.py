# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Transformers with public parameters, which learn nothing and cost nothing."""

from copy import copy
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._export import TwinMixin, bounded_scaler, row_clipper
from skdp._rows.base import bounds_of, check_bounds, check_radius, row_norms, tame
from skdp._rows.streams import RowStream
from skdp._sklearn import SHARED_CONSTRAINTS, fit_context, validate_private_data
from skdp._typing import Bounds, MatrixLike
from skdp.preprocessing._base import checked_rows


class RowwiseTransformer(TwinMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
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


class BoundedScaler(RowwiseTransformer):
    """Clip features to public bounds and map the bounds to a range.

    Like ``MinMaxScaler``, but with bounds that are known beforehand: from a codebook, a legal
    limit, a sensor's range. Nothing is learned from the data, so it costs no privacy.

    Parameters
    ----------
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=(0.0, 1.0)
        Public bounds: a pair (lower, upper) of numbers, or of arrays of shape (n_features,); or a
        pair for every feature, in order or by name, as ``{"age": (18, 100), "hours": (0, 99)}``.
        What may be both two vectors and two pairs, of two features, is refused; a dict is plain.
    feature_range : tuple (low, high), default=(-1.0, 1.0)
        Where the bounds are mapped to.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    NormClipper : Clip rows to a public norm.
    sklearn.preprocessing.MinMaxScaler : Learns the bounds from the data, which is not private.

    Notes
    -----
    d features in [-1, 1] have rows of norm up to ``sqrt(d)``; give a private estimator
    that follows a `data_norm` to match. Sparse input is accepted if zero is mapped to
    zero, for example with ``bounds=(0, b)`` and ``feature_range=(0, 1)``.

    Examples
    --------
    >>> from skdp.preprocessing import BoundedScaler
    >>> BoundedScaler(bounds=[(0, 100), (0, 1)]).fit_transform([[25, 0.5], [250, 1]])
    array([[-0.5,  0. ],
           [ 1. ,  1. ]])
    """

    _parameter_constraints = {
        "bounds": [tuple, list, dict, np.ndarray],
        "feature_range": [tuple, list],
    }

    def __init__(
        self,
        bounds: Bounds = (0.0, 1.0),
        feature_range: tuple[float, float] | list[float] = (-1.0, 1.0),
    ) -> None:
        self.bounds = bounds
        self.feature_range = feature_range

    def _constants(self, n_features):
        lower, upper = bounds_of(self, n_features)
        (low,), (high,) = check_bounds(self.feature_range, 1, name="feature_range")
        return lower, upper, low, high

    def _twin(self):
        check_is_fitted(self, "n_features_in_")
        return bounded_scaler(*self._constants(self.n_features_in_))

    def _accepts_sparse(self):
        try:
            named = isinstance(self.bounds, dict)
            given = list(self.bounds.values()) if named else self.bounds
            low, side = float(self.feature_range[0]), np.asarray(given[0], dtype=float)
            if len(given) != 2 or np.any(side != 0):
                # no vector of zeros, so pairs, if bounds at all
                side = np.asarray(given, dtype=float)[:, 0]
        except (TypeError, ValueError, IndexError):
            return False
        return bool(np.all(side == 0) and low == 0)

    def _transform(self, X):
        lower, upper, low, high = self._constants(X.shape[1])
        if sparse.issparse(X):
            X = X.copy()
            # clipping is no linear map: what is stored in parts is clipped as a whole
            # in an order that depends on no other row (or column, of CSC)
            X.has_sorted_indices = False
            X.sum_duplicates()
            columns = (
                X.tocoo().col
                if X.format == "csr"
                else np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
            )
            top = upper[columns]
            X.data = (np.clip(X.data, 0.0, top) / top * high).astype(X.dtype)
            return X
        # convex combination of the ends: exact at both, and it cannot overflow
        share = (np.clip(X, lower, upper) - lower) / (upper - lower)
        return (low * (1 - share) + high * share).astype(X.dtype, copy=False)


class NormClipper(RowwiseTransformer):
    """Scale rows that are longer than a public norm down to it.

    Shorter rows are left as they are. Nothing is learned from the data, so it costs no
    privacy.

    Parameters
    ----------
    norm : float, default=1.0
        Public Euclidean norm, in [1e-100, 1e100].

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    BoundedScaler : Scale features by public bounds.
    sklearn.preprocessing.Normalizer : Scale all rows to unit norm, short ones too.

    Notes
    -----
    Private estimators clip rows to `data_norm` themselves; this transformer makes the
    step visible, or clips before another step.

    Examples
    --------
    >>> from skdp.preprocessing import NormClipper
    >>> NormClipper(norm=1.0).fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """

    _parameter_constraints = {"norm": SHARED_CONSTRAINTS["data_norm"]}

    def __init__(self, norm: float = 1.0) -> None:
        self.norm = norm

    def _constants(self, n_features):
        return check_radius(self.norm, "norm")

    def _twin(self):
        check_is_fitted(self, "n_features_in_")
        return row_clipper(self.n_features_in_, self._constants(self.n_features_in_))

    def _transform(self, X):
        norm = self._constants(X.shape[1])
        rows, _ = tame(X.tocsr() if sparse.issparse(X) else X)
        factor = norm / np.maximum(row_norms(rows), norm)
        if not sparse.issparse(X):
            return (rows * factor[:, None]).astype(X.dtype, copy=False)
        data = rows.data * np.repeat(factor, np.diff(rows.indptr))
        parts = (data.astype(X.dtype), rows.indices, rows.indptr)
        return type(X.tocsr())(parts, shape=X.shape, copy=True).asformat(X.format)
