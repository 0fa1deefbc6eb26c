# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Standardise features by differentially private means and variances."""

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._domains import Box, check_bounds
from skdp._queries._feature_rows import FeatureRows
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._solvers import mu_of_all
from skdp._typing import Adjacency, Bounds, Budget, MatrixLike, Seed
from skdp.preprocessing._checked_rows import map_shiftable_rows
from skdp.preprocessing._columnwise import restored, standardised
from skdp.preprocessing._private_moments import bounded_moments, unbounded_moments
from skdp.privacy import Curator, gdp_mu


class DPStandardScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Standardise features with differentially private means and standard deviations.

    A private stand-in for scikit-learn's ``StandardScaler``. With public `bounds` it is one
    release of Gaussian noise. Without, it first searches a median and a spread of every
    feature, on all scales that floats have.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in (0, 1).
    with_mean : bool, default=True
        Whether `transform` subtracts the means. Sparse rows need False.
    with_std : bool, default=True
        Whether `transform` divides by the standard deviations.
    bounds : tuple (lower, upper), default=None
        Public bounds per feature, numbers or arrays of shape (n_features,). Values outside
        are clipped, for the moments only. None searches for a range.
    adjacency : {"replace-one", "zero-out"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), or in one row that is
        replaced by a null row, which is not counted ("zero-out"). The number of rows is
        public in both.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,) or None
        Released means. None if neither `with_mean` nor `with_std`.
    var_ : ndarray of shape (n_features,) or None
        Released variances, held above a floor that follows from the noise; 0 for a
        feature that was found to be constant, or about whose spread nothing was found.
        None if not `with_std`.
    scale_ : ndarray of shape (n_features,) or None
        Square root of `var_`, 1 where that is 0. None if not `with_std`.
    n_samples_seen_ : int
        Number of rows.
    ledger_ : Ledger
        What was released, at what price.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    BoundedScaler : Scale by public bounds, which costs nothing.
    sklearn.preprocessing.StandardScaler : The same without privacy.

    Notes
    -----
    Privacy. One row is protected. The number of rows, the number and names of features,
    the type of the input and all parameters are public. All releases have Gaussian
    noise, and compose to exactly the mu-GDP of (epsilon, delta). A count of sides moves
    by sqrt(d)/2 under zero-out and sqrt(d) under replace-one (l2); the sums of features and
    of their squares in the box together by 1.133 sqrt(d) and 2 sqrt(d): the squares are
    free under replace-one. Timing and exceptions on malformed input are not covered.

    Accuracy. The error grows with sqrt(d) / (n epsilon). Without bounds, n epsilon above
    200 sqrt(d) is needed to find the scales at all; below, features are left as they are,
    or come out on a wrong scale. The moments are those of rows clipped to a range around
    the median, so that of heavy tails the outer part is missing. Give bounds where they
    are known.

    References
    ----------
    .. [1] M. Horstein, "Sequential transmission using noiseless feedback", IEEE Transactions
       on Information Theory, 1963.
    .. [2] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018.
    .. [3] Z. Huang, Y. Liang and K. Yi, "Instance-optimal mean estimation under
       differential privacy", NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([0, 1e6], [1e-3, 50], size=(5000, 2))
    >>> scaler = DPStandardScaler(epsilon=1.0, random_state=0).fit(X)
    >>> bool(abs(scaler.transform(X).std(axis=0) - 1).max() < 0.1)
    True
    >>> scaler.privacy_spent_[0] <= 1.0
    True
    """

    _parameter_constraints = {
        **{name: SHARED_CONSTRAINTS[name] for name in ("epsilon", "delta", "adjacency")},
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
        "bounds": [tuple, list, np.ndarray, None],
        "budget": SHARED_CONSTRAINTS["budget"],
        "random_state": SHARED_CONSTRAINTS["random_state"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        with_mean: bool = True,
        with_std: bool = True,
        bounds: Bounds | None = None,
        adjacency: Adjacency = "replace-one",
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.with_mean = with_mean
        self.with_std = with_std
        self.bounds = bounds
        self.adjacency = adjacency
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Release means and standard deviations.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows; sparse only with ``with_mean=False``.
        y : None
            Ignored.

        Returns
        -------
        self : DPStandardScaler
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        """
        # the price, before any data
        mu = gdp_mu(self.epsilon, self.delta)
        shifts = "with_mean=True", "with_mean=False"
        if self.with_mean:
            refuse_sparse(X, *shifts)
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        if self.with_mean:
            # the format of a stream is known by now
            refuse_sparse(X, *shifts)
        shape = X.shape
        n_rows, n_features = X.shape
        box = None
        if self.bounds is not None:
            lower, upper = check_bounds(self.bounds, n_features)
            box = Box(tuple(lower), tuple(upper))
        curator = Curator(
            lambda: FeatureRows(X, n_threads=effective_n_threads()),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            budget=self.budget if self._releases else None,
            mu=mu_of_all(self.epsilon, self.delta),
            random_state=self.random_state,
            purpose=type(self).__name__,
        )
        self._release(curator, box, mu, shape)
        self.n_samples_seen_ = n_rows
        self.ledger_ = curator.ledger
        delta = self.delta if curator.ledger.releases else 0.0
        self.privacy_spent_ = (curator.ledger.epsilon(delta), float(delta))
        return self

    @property
    def _releases(self):
        """Whether a fit releases anything; if not, it costs nothing."""
        return self.with_mean or self.with_std

    def _release(self, curator, box, mu, shape):
        self.mean_ = self.var_ = self.scale_ = None
        if not self._releases:
            return
        with blas_on_one_thread():
            if box is None:
                mean, scale = unbounded_moments(curator, mu, self.adjacency, shape)
            else:
                mean, scale = bounded_moments(curator, box, mu, shape[0])
        self.mean_ = mean
        if self.with_std:
            # a variance may leave the range of floats where a scale does not
            with np.errstate(over="ignore", under="ignore"):
                self.var_ = scale * scale
            self.scale_ = np.where(scale == 0, 1.0, scale)

    def transform(self, X: MatrixLike) -> Any:
        """Standardise rows with what was released.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, sparse matrix} or RowStream of shape (n_samples, n_features)
            In the floating-point type of X. What would overflow is the largest number of
            that type.
        """
        check_is_fitted(self)
        shift, scale = self._constants()
        return map_shiftable_rows(self, X, partial(standardised, shift=shift, scale=scale))

    def inverse_transform(self, X: MatrixLike) -> Any:
        """Undo `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Standardised rows; never changed.

        Returns
        -------
        X_original : {ndarray, sparse matrix} or RowStream of shape (n_samples, n_features)
            In the floating-point type of X.
        """
        check_is_fitted(self)
        shift, scale = self._constants()
        return map_shiftable_rows(self, X, partial(restored, shift=shift, scale=scale))

    def _constants(self):
        return self.mean_ if self.with_mean else 0.0, self.scale_ if self.with_std else 1.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
