# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shift and scale every column by its own constants."""

import numpy as np
from scipy import sparse


def standardised(X, shift, scale):
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
    """Return ``X * scale + shift``, as `standardised` does."""
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
