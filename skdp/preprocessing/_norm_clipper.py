# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Clip rows to a public Euclidean norm."""

import numpy as np
from scipy import sparse

from skdp._domains import check_radius, row_norms, tame
from skdp._sklearn import SHARED_CONSTRAINTS
from skdp.preprocessing._stateless import RowwiseTransformer


class NormClipper(RowwiseTransformer):
    """Scale rows that are longer than a public norm down to it.

    Shorter rows are left alone. Nothing is learned from the data, so using it in a
    pipeline costs no privacy.

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

    def _transform(self, X):
        norm = self._constants(X.shape[1])
        rows, _ = tame(X.tocsr() if sparse.issparse(X) else X)
        factor = norm / np.maximum(row_norms(rows), norm)
        if not sparse.issparse(X):
            return (rows * factor[:, None]).astype(X.dtype, copy=False)
        data = rows.data * np.repeat(factor, np.diff(rows.indptr))
        parts = (data.astype(X.dtype), rows.indices, rows.indptr)
        return type(X.tocsr())(parts, shape=X.shape, copy=True).asformat(X.format)
