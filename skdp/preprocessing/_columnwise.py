# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shift and scale every column by its own constants."""

import numpy as np
from scipy import sparse

from skdp.preprocessing._shift_scale import in_type


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
        return in_type(lambda values, _: function(values, shift, scale), X, shift)
    columns = X.indices
    if X.format == "csc":
        columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    factors = np.broadcast_to(scale, X.shape[1])[columns]
    mapped = X.copy()
    mapped.data = in_type(lambda values, _: function(values, 0.0, factors), X.data, 0.0)
    return mapped
