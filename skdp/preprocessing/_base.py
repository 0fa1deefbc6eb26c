# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Maps of rows by constants, in memory or range by range of a stream."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._export import TwinMixin
from skdp._rows.streams import RowStream, first_rows
from skdp._sklearn import StreamCheck, refuse_sparse, validate_private_data
from skdp._typing import MatrixLike


def map_rows(estimator, X, function, accept_sparse=("csr", "csc")):
    """Return a function of rows: an array of an array, a stream of a stream.

    Parameters
    ----------
    estimator : estimator
        Fitted. The number and the names of the features must be those that it was fitted to.
    X : {array-like, sparse matrix} or RowStream of shape (n_rows, n_features)
        Rows; never changed.
    function : callable
        Maps checked rows, each on its own, by released and public constants. It may be sent to
        other processes.
    accept_sparse : tuple of str or False, default=("csr", "csc")
        Formats that it can do with.

    Returns
    -------
    mapped : ndarray, sparse matrix or RowStream
        Of a stream the first rows are looked at now. What is wrong with the others is found
        when they are read: a `fit` does so before it spends anything.
    """
    check_is_fitted(estimator)
    if isinstance(X, RowStream):
        X, _ = checked_rows(estimator, X, accept_sparse)
        return X.map(function)
    formats = accept_sparse and list(accept_sparse)
    return function(validate_private_data(estimator, X, accept_sparse=formats, reset=False))


def map_shiftable_rows(estimator, X, function):
    """Do what `map_rows` does, for an estimator with a parameter `with_mean`."""
    check_is_fitted(estimator)
    if estimator.with_mean:
        rows = first_rows(X) if isinstance(X, RowStream) else X
        refuse_sparse(rows, "with_mean=True", "with_mean=False")
    return map_rows(estimator, X, function, not estimator.with_mean and ("csr", "csc"))


def checked_rows(estimator, X, accept_sparse):
    """Check the first rows of a stream now, and the others whenever they are read.

    Parameters
    ----------
    estimator : estimator
        Whose number and names of features they are to have.
    X : RowStream of shape (n_rows, n_features)
        Rows; they are not counted.
    accept_sparse : tuple of str or False
        Formats that are accepted.

    Returns
    -------
    X : RowStream
        The same rows, or what is raised for them.
    n_features : int
        Number of features.
    """
    refuse_containers(estimator)
    formats = accept_sparse and list(accept_sparse)
    options = {"accept_sparse": formats}
    first = validate_private_data(estimator, X, streams="first", reset=False, **options)
    check = StreamCheck(type(estimator).__name__, tuple(options.items()))
    return X.map(RowCheck(check)), first.shape[1]


def refuse_containers(estimator):
    """Raise a TypeError if `transform` is set to return data frames, which hold all rows."""
    of_estimator = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    container = of_estimator or get_config()["transform_output"]
    if container != "default":
        raise TypeError(
            f"a stream of rows is transformed to a stream, not to a data frame ({container!r}): "
            "use set_output(transform='default')."
        )


@dataclass(frozen=True)
class RowCheck:
    """Returns rows that are usable, and raises for others; `check` is a `StreamCheck`."""

    check: StreamCheck

    def __call__(self, X):
        """Return a range of rows, or raise."""
        return self.check(X)[0]


# Shift and scale of every column by its own constants.


def standardized(X, shift, scale):
    """Return ``(X - shift) / scale`` in the format and type of X, clipped to its range.

    Parameters
    ----------
    X : ndarray, CSR or CSC matrix of shape (n_rows, n_features)
        Never changed. Sparse only with shift 0.
    shift, scale : float or ndarray of shape (n_features,)
        Constants.

    Returns
    -------
    standard : ndarray, CSR or CSC matrix
    """
    return _columnwise(X, shift, scale, lambda values, shift, scale: (values - shift) / scale)


def restored(X, shift, scale):
    """Return ``X * scale + shift``, as `standardized` does."""
    return _columnwise(X, shift, scale, lambda values, shift, scale: values * scale + shift)


def _columnwise(X, shift, scale, function):
    if not sparse.issparse(X):
        return _in_type(function, X, shift, scale)
    columns = X.indices
    if X.format == "csc":
        columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    mapped = X.copy()
    # no shift: zero stays zero
    factors = np.broadcast_to(scale, X.shape[1])[columns]
    mapped.data = _in_type(function, X.data, 0.0, factors)
    return mapped


def _in_type(function, values, shift, scale):
    """Return values mapped in float64, and finite, in their own type."""
    # an infinity would make the next estimator raise, and say so about a row
    with np.errstate(over="ignore", under="ignore"):
        mapped = function(values.astype(np.float64, copy=False), shift, scale)
        largest = np.finfo(values.dtype).max
        return np.clip(mapped, -largest, largest).astype(values.dtype, copy=False)


# Shift and scale of rows by released constants.


class ShiftAndScale(TwinMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of transformers that map x to ``(x - shift) / scale``.

    Subclasses have a parameter `with_mean`, without which the shift is zero and rows may be
    sparse, and a method `_constants` that returns what was released: shift and scale.
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
            In the floating-point type of X. Rows or entries beyond what was released stay longer
            than 1. What would overflow is the largest number of that type.
        """
        return self._mapped(X, standardized)

    def inverse_transform(self, X: MatrixLike) -> Any:
        """Undo `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Transformed rows; never changed. Sparse only with ``with_mean=False``.

        Returns
        -------
        X_original : {ndarray, sparse matrix} or RowStream of shape (n_samples, n_features)
            In the floating-point type of X.
        """
        return self._mapped(X, restored)

    def _constants(self):
        raise NotImplementedError

    def _mapped(self, X, function):
        check_is_fitted(self)
        shift, scale = self._constants()
        return map_shiftable_rows(self, X, partial(function, shift=shift, scale=scale))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
