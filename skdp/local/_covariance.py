# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Covariance and principal components from local reports (Proposition 67)."""

import math
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from skdp._export import TwinMixin, principal_components
from skdp._gate import Doubts, open_gate
from skdp._plan import PlanMixin
from skdp._rows.base import check_radius
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    fit_context,
    validate_private_data,
)
from skdp._typing import Budget, MatrixLike, Seed
from skdp.local._clients import Aggregator, ClientMixin, sums_of
from skdp.local._moments import MomentSums, add_reports, noise_level
from skdp.local._row_domains import MomentDomain
from skdp.local.randomisers.ball import lift
from skdp.local.randomisers.report import LocalReports
from skdp.privacy.books.ledger import Ledger

# a mean square is at least as large as so many deviations below its estimate
_SURE = 2.0


class MomentReports(ClientMixin):
    """Mixin for estimators from second moments of reports by lift, local or received."""

    epsilon: float
    data_norm: float

    def _client_of(self, n_features):
        rows = MomentDomain(check_radius(self.data_norm), 1.0)
        return rows, lift(float(self.epsilon), n_features)

    def _reported(self, X):
        """Let every row report once, within the gate; return the sums of the reports."""
        n_rows, n_features = X.shape
        rows, randomiser = self._client_of(n_features)
        sums, doubts = MomentSums(n_features), Doubts(self)
        local = {"delta": 0.0, "adjacency": "local", "doubts": doubts}
        with open_gate(self, lambda: rows.admit(X), n_rows=n_rows, **local) as curator:
            query = LocalReports(rows.vectors, randomiser)
            add_reports(curator, query, self.epsilon, [((0, n_rows), sums)])
            self._say_of_rows(doubts, sums, randomiser.unit)
        return sums

    def _say_of_rows(self, doubts, sums, unit):
        """Take note of what reports tell of the rows."""

    def _summed_up(self, sums):
        """Set the estimates from the sums of reports."""
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)
    def fit_reports(self, reports: Aggregator) -> Self:
        """Estimate as in `fit`, from received reports.

        Parameters
        ----------
        reports : Aggregator
            Reports of clients of an estimator with the same `epsilon` and `data_norm`.

        Returns
        -------
        self : object
            Fitted estimator, with an empty ledger: it spends nothing.

        Raises
        ------
        ValueError, TypeError
            If a parameter is unusable, the reports have other parameters, or there are none.
        """
        rows, made_by = (lambda n, part=part: self._client_of(n)[part] for part in range(2))
        sums = sums_of(self, reports, rows, made_by)
        self._summed_up(sums)
        return self


class LocalDPCovariance(MomentReports, PlanMixin, BaseEstimator):
    """Unbiased covariance from one local report of every row.

    Every row makes one report, randomised before anybody sees it. The second moment of the reports
    is the second moment of the rows plus a known multiple of the identity, which is subtracted.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one report in nats, greater than 0. Every row makes one.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, in the units of the data. Longer rows are
        scaled down to it.
    assume_centered : bool, default=False
        Whether the mean is known to be 0; otherwise the mean of the reports is subtracted.
    positive : bool, default=True
        Whether to project `covariance_` to the nearest positive semi-definite matrix. That is
        never further from the covariance of the rows, but biased if noise is as large as
        eigenvalues.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features)
        Estimate of the covariance of the clipped rows; sums are divided by the number of rows.
    unprojected_covariance_ : ndarray of shape (n_features, n_features)
        The unbiased estimate. It may have negative eigenvalues.
    location_ : ndarray of shape (n_features,)
        Mean of the reports; zeros with `assume_centered`.
    noise_level_ : float
        Approximate largest eigenvalue of pure noise, known in advance. Smaller eigenvalues of the
        estimate are meaningless.
    randomiser_ : object
        Parameters of the randomiser.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent by every row.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    LocalDPPCA : Principal components from reports.
    LocalDPMean : Means from reports, with intervals.
    LocalDPLinearRegression : Least squares from reports.

    Notes
    -----
    Privacy. The report of a row is epsilon-locally private: it has nearly the same distribution
    under any two values of that row (Proposition 62 of the guide). The number of rows, the number
    and names of features and all parameters are public. Computations on the reports cost nothing
    more. A second fit is a second report of every row.

    Errors. Proposition 67: the estimate is unbiased. For the uncentered moment, the root mean
    squared error in the Frobenius norm is at most ``data_norm^2 (1 + (d + 1) s) / sqrt(n)``, where
    s is the variance of the noise. The estimate is the covariance of clipped rows. If the trace of
    `covariance_` plus the squared norm of `location_` is close to ``data_norm**2``, almost all rows
    have that norm or were clipped to it, and a larger `data_norm` may be right; `fit` warns.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018, Algorithm 1.
    .. [2] V. Marchenko and L. Pastur, "Distribution of eigenvalues for some sets of random
       matrices", Mathematics of the USSR-Sbornik 1967.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LocalDPCovariance
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(50_000, 3)) * [0.3, 0.2, 0.1]
    >>> model = LocalDPCovariance(random_state=0).fit(rows)
    >>> bool(np.abs(model.covariance_ - np.diag([0.09, 0.04, 0.01])).max() < 0.02)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "data_norm", "budget", "random_state")
        },
        "assume_centered": ["boolean"],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        data_norm: float = 1.0,
        assume_centered: bool = False,
        positive: bool = True,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.assume_centered = assume_centered
        self.positive = positive
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Let every row report once, and estimate the covariance from the reports.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows; sparse rows are made dense in parts, because reports are dense.
        y : None
            Ignored.

        Returns
        -------
        self : LocalDPCovariance
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing was released.
        """
        X = validate_private_data(self, X, accept_sparse="csr")
        self._summed_up(self._reported(X))
        return self

    def _say_of_rows(self, doubts, sums, unit):
        # a trace errs by at most the root of the dimension times the error of Proposition 67
        d, n = self.n_features_in_, sums.n_reports
        error = math.sqrt(d / n) * (1 + (d + 1) * unit.noise_variance)
        doubts.of_long_rows(float(np.trace(sums.second_moment(unit))) - _SURE * error)

    def _summed_up(self, sums):
        rows, self.randomiser_ = self._client_of(self.n_features_in_)
        estimate = row_moments(sums, self.randomiser_.unit, rows.radius, self.assume_centered)
        self.location_, self.unprojected_covariance_, self.noise_level_ = estimate
        self.covariance_ = self.unprojected_covariance_.copy()
        if self.positive:
            self.covariance_ = nearest_positive(self.covariance_)

    def error_norm(
        self,
        comp_cov: ArrayLike,
        norm: Literal["frobenius", "spectral"] = "frobenius",
        scaling: bool = True,
        squared: bool = True,
    ) -> float:
        """Return the distance of the estimate from another covariance.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
            Other covariance.
        norm : {"frobenius", "spectral"}, default="frobenius"
            Square root of the sum of squares, or the largest singular value, of the difference.
        scaling : bool, default=True
            Whether the squared norm is divided by the number of features.
        squared : bool, default=True
            Whether the squared norm is returned.

        Returns
        -------
        error : float
            Error, as in scikit-learn's ``EmpiricalCovariance``.
        """
        check_is_fitted(self)
        return covariance_error(self.covariance_, comp_cov, norm, scaling, squared)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def row_moments(sums, unit, radius, assume_centered):
    """Return mean, covariance, and the level of noise in it, in the units of the data.

    Parameters
    ----------
    sums : MomentSums
        Of reports by lift.
    unit : PrivUnit
        Parameters of the lift.
    radius : float
        Length of a unit of the reports.
    assume_centered : bool
        Whether the mean is 0.
    """
    size = len(sums.total)
    level = radius**2 * noise_level(unit, size, sums.n_reports)
    if assume_centered:
        return np.zeros(size), radius**2 * sums.second_moment(unit), level
    mean = sums.total / sums.n_reports
    return radius * mean, radius**2 * sums.covariance(unit), level


def covariance_error(covariance, other, norm, scaling, squared):
    """Return the distance of two covariances; parameters as in `error_norm`."""
    known = StrOptions({"frobenius", "spectral"})
    if not known.is_satisfied_by(norm):
        raise ValueError(f"norm must be 'frobenius' or 'spectral'; got {norm!r}.")
    error = check_array(other, input_name="comp_cov") - covariance
    size = np.linalg.norm(error, None if norm == "frobenius" else 2) ** 2
    size = size / error.shape[0] if scaling else size
    return float(size if squared else np.sqrt(size))


def nearest_positive(matrix):
    """Return the nearest positive semi-definite matrix, in the Frobenius norm."""
    values, vectors = eigh(matrix)
    made = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (made + made.T) / 2


# Principal components of rows that report on their own.


class PrincipalComponents(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin for transformation of rows to coordinates of released components, and back."""

    components_: Any
    mean_: Any
    n_components_: int

    def transform(self, X: MatrixLike) -> Any:
        """Return coordinates of rows along the components, without noise.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. The result for private rows is private.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components)
            ``(X - mean_) @ components_.T``.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T

    def inverse_transform(self, X: MatrixLike) -> Any:
        """Return rows from their coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            ``X @ components_ + mean_``.
        """
        check_is_fitted(self)
        X = check_array(X)
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"X must have a column for each of {self.n_components_} components; got "
                f"{X.shape[1]}."
            )
        return X @ self.components_ + self.mean_

    def _twin(self):
        return principal_components(self)

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # coordinates are made with components in float64
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def signed_components(vectors):
    """Return eigenvectors, in columns by increasing eigenvalue, as rows by decreasing eigenvalue.

    The entry of largest magnitude of each is positive.
    """
    components = vectors.T[::-1]
    largest = np.take_along_axis(components, np.abs(components).argmax(1)[:, None], 1)
    return components * np.where(largest < 0, -1.0, 1.0)


class LocalDPPCA(MomentReports, PrincipalComponents, TwinMixin, PlanMixin, BaseEstimator):
    """Principal components from one local report of every row.

    The components are eigenvectors of the unbiased covariance of `LocalDPCovariance`, and may be
    public. The result of `transform` is not protected: it is computed from rows without noise.

    Parameters
    ----------
    n_components : int, default=None
        Number of components, at most the number of features. None keeps all.
    epsilon : float, default=8.0
        Privacy budget of one report in nats, greater than 0. Every row makes one.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, in the units of the data. Longer rows are
        scaled down to it.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Components as rows of length 1, in the order of decreasing variance. The entry of largest
        magnitude of each is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Estimated variance along each; 0 where the estimate is negative.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same, divided by the sum of all positive variances.
    mean_ : ndarray of shape (n_features,)
        Mean of the reports.
    noise_level_ : float
        Approximate largest eigenvalue of pure noise, known in advance. Components of smaller
        variance have random directions.
    n_components_ : int
        Number of components.
    randomiser_ : object
        Parameters of the randomiser.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent by every row.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    LocalDPCovariance : The covariance itself.
    LocalDPMean : Means from reports, with intervals.

    Notes
    -----
    Privacy. The report of a row is epsilon-locally private: it has nearly the same distribution
    under any two values of that row (Proposition 62 of the guide). The number of rows, the number
    and names of features and all parameters are public. Computations on the reports cost nothing
    more. A second fit is a second report of every row. `transform` adds no noise: its result for a
    private row is private.

    Errors. Proposition 67, for the covariance. The angle between a component and the component of
    the rows is about the noise level over the distance to the next eigenvalue.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018, Algorithm 1.
    .. [2] C. Davis and W. M. Kahan, "The rotation of eigenvectors by a perturbation. III",
       SIAM Journal on Numerical Analysis 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LocalDPPCA
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(20_000, 1)) * [0.3, 0.3, 0.0]
    >>> pca = LocalDPPCA(n_components=1, random_state=0).fit(rows)
    >>> bool(abs(pca.components_[0] @ [0.5**0.5, 0.5**0.5, 0.0]) > 0.99)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "data_norm", "budget", "random_state")
        },
    }

    def __init__(
        self,
        n_components: int | None = None,
        epsilon: float = 8.0,
        *,
        data_norm: float = 1.0,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Let every row report once, and find the components of the reports.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows; sparse rows are made dense in parts, because reports are dense.
        y : None
            Ignored.

        Returns
        -------
        self : LocalDPPCA
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing was released.
        """
        X = validate_private_data(self, X, accept_sparse="csr")
        self._summed_up(self._reported(X))
        return self

    def _client_of(self, n_features):
        if (self.n_components or 0) > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}; got "
                f"{self.n_components!r}."
            )
        return super()._client_of(n_features)

    def _summed_up(self, sums):
        self.n_components_ = int(self.n_components or self.n_features_in_)
        rows, self.randomiser_ = self._client_of(self.n_features_in_)
        moments = row_moments(sums, self.randomiser_.unit, rows.radius, False)
        self.mean_, covariance, self.noise_level_ = moments
        values, vectors = eigh(covariance)
        variance, kept = np.maximum(values[::-1], 0.0), self.n_components_
        self.components_ = signed_components(vectors)[:kept]
        self.explained_variance_ = variance[:kept]
        self.explained_variance_ratio_ = self.explained_variance_ / max(variance.sum(), 1e-300)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
