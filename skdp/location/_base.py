# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bases of estimators of location: the rows that are scored, and the score of a mean."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._plan import PlanMixin
from skdp._rows.base import without_duplicates
from skdp._sklearn import check_sample_weight, validate_private_data
from skdp._typing import MatrixLike, VectorLike


class LocationEstimator(PlanMixin, BaseEstimator):
    """Base of estimators that release one point, `location_`.

    There is no `predict`: scikit-learn's is one entry for each row, and a location is one point for
    all of them. There is no `transform` either: nothing is computed row by row.
    """

    def _check(self, X, accept_sparse=False):
        check_is_fitted(self)
        return validate_private_data(self, X, accept_sparse=accept_sparse, reset=False)


class MeanEstimator(LocationEstimator):
    """Base of estimators whose location is a mean."""

    #: a mean is divided by the number of rows: where that is a secret, it matters as much as a sum
    _count_share = 0.2

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> float:
        """Return minus the mean squared Euclidean distance of rows to the released mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. If they are private, so is the score: it is not covered.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            What rows count in the mean, not negative; None is 1 each.

        Returns
        -------
        score : float
            At most 0; higher is better.
        """
        X = self._check_scored(X)
        shares = None if sample_weight is None else shares_of_score(sample_weight, X)
        return mean_square_score(X, self.location_, shares)

    def _check_scored(self, X):
        """Return rows that are to be scored, or raise."""
        return self._check(X, accept_sparse=["csr", "csc"])


def shares_of_score(sample_weight, X):
    """Return what every row counts in a mean, shape (n_samples,), adding up to 1."""
    weights = check_sample_weight(sample_weight, X, ensure_non_negative=True)
    return weights / weights.sum()


def mean_square_score(X, location, shares):
    """Return minus the mean squared Euclidean distance of rows to a location.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Rows; sparse ones never become dense.
    location : ndarray of shape (n_features,) or CSR array of shape (1, n_features)
        One point.
    shares : ndarray of shape (n_samples,) or None
        What rows count, 1 together; None for one over their number.

    Returns
    -------
    score : float
        At most 0; minus infinity where squares overflow.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # not X.sum(): in an older scipy that makes a vector as long as a row
        if sparse.issparse(X):
            # products with a diagonal make vectors as long as a row
            X = without_duplicates(X.tocsr())
            data = X.data if shares is None else X.data * np.repeat(shares, np.diff(X.indptr))
            shared = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
            squares = data @ X.data
        else:
            shared = X if shares is None else shares[:, None] * X
            squares = np.einsum("ij,ij->", shared, X)
        if sparse.issparse(location):
            cross, own = _cross(shared, location), location.data @ location.data
        else:
            cross, own = np.sum(shared @ location), location @ location
        n_rows = X.shape[0] if shares is None else 1
        total = float(squares - 2 * cross + n_rows * own) / n_rows
    return -total if np.isfinite(total) else -np.inf


def _cross(X, location):
    """Return the sum of inner products of rows with a sparse location.

    No vector as long as a row is made: there may be more features than memory holds.
    """
    if not sparse.issparse(X):
        return np.sum(X[:, location.indices] @ location.data)
    if not location.nnz:
        return 0.0
    X = X.tocoo()
    where = np.searchsorted(location.indices, X.col)
    np.minimum(where, location.nnz - 1, out=where)
    found = location.indices[where] == X.col
    return X.data[found] @ location.data[where[found]]
