# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Covariances of rows that report on their own."""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted

from skdp._domains import L2Ball, check_radius
from skdp._queries import LocalReports, RowVectors, ball_rows
from skdp._randomisers import lift
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    StrOptions,
    blas_on_one_thread,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._typing import Budget, MatrixLike, Seed
from skdp.local._report_sums import MomentSums, add_reports, noise_level
from skdp.privacy import Curator


class LocalDPCovariance(BaseEstimator):
    """Covariance of rows that report once, without bias.

    Every row makes one report, randomised before anybody sees it. The second moment of the
    reports is that of the rows and a known multiple of the identity, which is subtracted.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one report in nats, greater than 0. Every row makes one.
    data_norm : float, default=1.0
        Public radius, in the units of the data: longer rows are scaled down to this Euclidean
        norm.
    assume_centered : bool, default=False
        Whether the mean is known to be 0; else the mean of the reports is subtracted.
    positive : bool, default=True
        Whether `covariance_` is the nearest positive semi-definite matrix. That one is never
        further away from the covariance of the rows, but it is biased where noise is as large
        as what it is added to.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features)
        Estimate of the covariance of the clipped rows, their number being the divisor.
    unprojected_covariance_ : ndarray of shape (n_features, n_features)
        The unbiased estimate. It may have negative eigenvalues.
    location_ : ndarray of shape (n_features,)
        Mean of the reports; zeros with `assume_centered`.
    noise_level_ : float
        How large an eigenvalue noise alone makes, about; known beforehand. Eigenvalues of the
        estimate below that mean nothing.
    randomiser_ : object
        Parameters of the randomiser.
    ledger_ : Ledger
        What was released, at what price.
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
    Privacy. Every row's report is epsilon-locally private: it has nearly the same law under any
    two values of that row (Proposition 62 of the guide). The number of rows, the number and
    names of features and all parameters are public. What is computed from the reports costs
    nothing more. A second fit is a second report of every row.

    Errors. Proposition 67: the estimate is unbiased, and the root of its mean squared error in
    the Frobenius norm is at most ``(1 + (d + 1) s) / sqrt(n)`` times ``data_norm^2`` about an
    uncentred moment, s being the variance of the noise.

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
            Private rows; sparse ones are made dense a part at a time, for reports are dense.
        y : None
            Ignored.

        Returns
        -------
        self : LocalDPCovariance
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        """
        X = validate_private_data(self, X, accept_sparse="csr")
        n_rows, n_features = X.shape
        radius = check_radius(self.data_norm)
        randomiser = lift(float(self.epsilon), n_features)
        curator = Curator(
            lambda: ball_rows(X, L2Ball(radius), effective_n_threads()),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=0.0,
            adjacency="local",
            budget=self.budget,
            random_state=self.random_state,
            purpose=type(self).__name__,
        )
        sums = MomentSums(n_features)
        with blas_on_one_thread():
            query = LocalReports(RowVectors(), randomiser)
            add_reports(curator, query, self.epsilon, [((0, n_rows), sums)])
            estimate = row_moments(sums, randomiser.unit, radius, self.assume_centered)
            self.location_, self.unprojected_covariance_, self.noise_level_ = estimate
            self.covariance_ = self.unprojected_covariance_.copy()
            if self.positive:
                self.covariance_ = nearest_positive(self.covariance_)
        self.randomiser_, self.ledger_ = randomiser, curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(), 0.0)
        return self

    def error_norm(
        self,
        comp_cov: ArrayLike,
        norm: Literal["frobenius", "spectral"] = "frobenius",
        scaling: bool = True,
        squared: bool = True,
    ) -> float:
        """Return how far the estimate is from another covariance.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
            The other one.
        norm : {"frobenius", "spectral"}, default="frobenius"
            Root of the sum of squares, or the largest singular value, of the difference.
        scaling : bool, default=True
            Whether the squared norm is divided by the number of features.
        squared : bool, default=True
            Whether the squared norm is returned.

        Returns
        -------
        error : float
            As that of scikit-learn's ``EmpiricalCovariance``.
        """
        check_is_fitted(self)
        known = StrOptions({"frobenius", "spectral"})
        if not known.is_satisfied_by(norm):
            raise ValueError(f"norm must be 'frobenius' or 'spectral'; got {norm!r}.")
        error = check_array(comp_cov, input_name="comp_cov") - self.covariance_
        size = np.linalg.norm(error, None if norm == "frobenius" else 2) ** 2
        size = size / error.shape[0] if scaling else size
        return float(size if squared else np.sqrt(size))

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
        What the number 1 stands for.
    assume_centered : bool
        Whether the mean is 0.
    """
    size = len(sums.total)
    level = radius**2 * noise_level(unit, size, sums.n_reports)
    if assume_centered:
        return np.zeros(size), radius**2 * sums.second_moment(unit), level
    mean = sums.total / sums.n_reports
    return radius * mean, radius**2 * sums.covariance(unit), level


def nearest_positive(matrix):
    """Return the nearest positive semi-definite matrix, in the Frobenius norm."""
    values, vectors = eigh(matrix)
    made = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (made + made.T) / 2
