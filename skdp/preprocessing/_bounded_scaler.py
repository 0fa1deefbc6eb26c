# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scale features by public bounds."""

import numpy as np
from scipy import sparse

from skdp._domains import check_bounds
from skdp._typing import Bounds
from skdp.preprocessing._stateless import RowwiseTransformer


class BoundedScaler(RowwiseTransformer):
    """Clip features to public bounds and map the bounds to a range.

    What ``MinMaxScaler`` does with bounds learned from the data, done with bounds that
    are known beforehand: a codebook, a legal limit, a sensor's range. Nothing is
    learned from the data, so it costs no privacy.

    Parameters
    ----------
    bounds : tuple (lower, upper), default=(0.0, 1.0)
        Public bounds: numbers, or arrays of shape (n_features,).
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
    >>> BoundedScaler(bounds=([0, 0], [100, 1])).fit_transform([[25, 0.5], [250, 1]])
    array([[-0.5,  0. ],
           [ 1. ,  1. ]])
    """

    _parameter_constraints = {
        "bounds": [tuple, list, np.ndarray],
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
        lower, upper = check_bounds(self.bounds, n_features)
        (low,), (high,) = check_bounds(self.feature_range, 1, name="feature_range")
        return lower, upper, low, high

    def _accepts_sparse(self):
        try:
            side, low = np.asarray(self.bounds[0], dtype=float), float(self.feature_range[0])
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
