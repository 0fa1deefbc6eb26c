# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear regression from one local report of every row with its target.

In this order: the vector that a row reports, least squares from the moments of reports (Proposition
67), and the estimator.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skdp._export import TwinMixin, linear_regression
from skdp._gate import Doubts, open_gate
from skdp._plan import PlanMixin
from skdp._rows.linear import raw_norms, regression_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    effective_n_threads,
    fit_context,
    real_targets,
    validate_private_data,
)
from skdp._typing import Budget, MatrixLike, Seed, VectorLike
from skdp.local._moments import MomentSums, add_reports, noise_level
from skdp.local.randomisers.ball import lift
from skdp.local.randomisers.report import LocalReports
from skdp.privacy.books.ledger import Ledger
from skdp.solvers.disjoint import even_parts

# Rows and their targets, in one vector that reports.


@dataclass(frozen=True)
class JointVectors:
    """Row, constant and target in one vector of the unit ball.

    Parameters
    ----------
    radius : float
        Bound on the norm of (x, y / scale), in the units of x; longer vectors are scaled down to
        it.
    scale : float
        Divisor of targets.
    intercept : float
        Constant feature, in units of the radius; 0 for none.

    Notes
    -----
    The vector is ``f (x, intercept R, y / scale) / (R sqrt(1 + intercept^2))`` with ``f = min(1, R
    / |(x, y / scale)|)``. The constant is scaled down with the rest, so an exact linear function
    of the row stays the same function.
    """

    radius: float
    scale: float
    intercept: float

    name = "rows with their targets"

    def vectors(self, chunk):
        """Return the vectors of a chunk of `regression_rows`, zeros for null rows."""
        body = chunk.explicit()
        body = body.toarray() if sparse.issparse(body) else body
        made = np.empty((body.shape[0], body.shape[1] + 1 + bool(self.intercept)))
        # what is far too small is zero, whatever the units are
        with np.errstate(under="ignore", over="ignore"):
            length = raw_norms(chunk) / self.radius
            target = chunk.target / self.scale / self.radius
            factor = 1.0 / np.maximum(np.hypot(length, target), 1.0)
            factor /= np.hypot(1.0, self.intercept)
            factor[np.isinf(chunk.norm)] = 0.0
            np.multiply(body, (factor / self.radius)[:, None], out=made[:, : body.shape[1]])
            made[:, -1] = factor * target
        if self.intercept:
            made[:, -2] = factor * self.intercept
        return made


# Least squares from the moments of reports, and the covariance of its errors.


# groups whose moments tell the errors; numbers that they may take; fewer than that tell nothing
_GROUPS, _MOST_NUMBERS, _FEWEST = 100, 1 << 24, 8
# beyond this a penalty leaves nothing of any coefficient
_LARGEST_PENALTY = 1e60
# square of the grid of reports: no smaller eigenvalue can be told from 0
_LEAST_EIGENVALUE = 2.0**-40


@dataclass(frozen=True)
class Solution:
    """Coefficients in units of the reports.

    Parameters
    ----------
    coef, covariance : ndarray of shape (size,) and (size, size)
        Coefficients, and the estimate of their covariance; NaN with too few reports.
    smallest, level : float, float
        Smallest eigenvalue of the moment of the features, and the level of the noise.
    """

    coef: np.ndarray
    covariance: np.ndarray
    smallest: float
    level: float


def groups_of(n_rows, size):
    """Return consecutive parts of the rows, each with an empty `MomentSums`."""
    n_groups = max(1, min(_GROUPS, n_rows, _MOST_NUMBERS // size**2))
    return [(part, MomentSums(size)) for part in even_parts(0, n_rows, n_groups)]


def least_squares(groups, unit, penalty):
    """Return the corrected least squares solution for the last entry from the others.

    Parameters
    ----------
    groups : list of MomentSums
        Sums of independent reports, with sizes that differ by at most one.
    unit : PrivUnit
        Parameters of the lift that made the reports.
    penalty : ndarray of shape (size,)
        Added to the diagonal of the moment of the features.

    Returns
    -------
    solution : Solution
        Eigenvalues below the level of the noise are raised to it.
    """
    counts = np.array([group.n_reports for group in groups], dtype=np.float64)
    n_reports, size = int(counts.sum()), len(penalty)
    moments = np.array([group.second_moment(unit) for group in groups])
    moment = np.tensordot(counts / n_reports, moments, axes=1)
    level = noise_level(unit, size + 1, n_reports)
    values, vectors = eigh(moment[:-1, :-1])
    kept = np.maximum(values, max(level, _LEAST_EIGENVALUE))
    bread = (vectors * kept) @ vectors.T + np.diag(np.minimum(penalty, _LARGEST_PENALTY))
    # a penalty may be many times as large as any moment
    scale = 1.0 / np.sqrt(np.diag(bread))
    factor = cho_factor(bread * np.outer(scale, scale))
    inverse = scale[:, None] * cho_solve(factor, np.diag(scale))
    coef = inverse @ moment[:-1, -1]
    covariance = np.full((size, size), math.nan)
    if len(groups) >= _FEWEST:
        scores = moments[:, :-1, -1] - moments[:, :-1, :-1] @ coef
        scores -= counts @ scores / n_reports
        # n times the covariance of the mean score
        meat = (scores.T * counts) @ scores / (len(groups) - 1)
        covariance = inverse @ meat @ inverse / n_reports
        covariance = (covariance + covariance.T) / 2
    return Solution(coef, covariance, float(values[0]), level)


def joint_penalty(l2, n_rows, radius, n_features, fit_intercept):
    """Return the addition of ``l2 |coef|^2`` beside a sum of squares to the moment of features.

    Parameters
    ----------
    l2 : float
        Strength, not negative.
    n_rows : int
        Number of rows.
    radius : float
        The length that a report's unit stands for.
    n_features : int
        Number of features; the intercept, if there is one, comes last and is left out.
    fit_intercept : bool
        Whether there is one.
    """
    strength = 0.0
    if l2 > 0:
        # by logarithms: powers of scales may overflow
        log = math.log(l2) - math.log(n_rows) - 2 * math.log(radius)
        strength = math.exp(min(max(log, -690.0), math.log(_LARGEST_PENALTY)))
    return np.append(np.full(n_features, strength), np.zeros(int(fit_intercept)))


class LocalDPLinearRegression(TwinMixin, PlanMixin, RegressorMixin, BaseEstimator):
    """Least squares from one local report of every row with its target.

    Every row makes one report of ``(x, constant, y)``, randomised before anybody sees it. The
    second moment of the reports is the second moment of the rows plus a known multiple of the
    identity, which is subtracted before the normal equations are solved. There is no iteration,
    and nobody is trusted with the rows.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one report in nats, greater than 0. Every row makes one.
    data_norm : float, default=1.0
        Public length R, in [1e-50, 1e50]. Longer vectors ``(x, y / target_scale)`` are scaled down
        to it, with the constant, and so have a smaller weight. A length that few rows exceed is
        best.
    target_scale : float, default=None
        Public divisor of targets, in [1e-50, 1e50]. None is ``(2 / n_features)^(1/4)``, which
        balances the noise of all products in the normal equations for targets of about the size of
        a feature (Proposition 67).
    l2 : float, default=0.0
        Strength of the penalty, not negative, as `alpha` of scikit-learn's `Ridge`. The
        intercept is not penalised.
    fit_intercept : bool, default=True
        Whether to fit an intercept, by one more entry of a report.
    intercept_scaling : float, default=None
        Constant feature that carries the intercept, in units of R. None is ``1 /
        sqrt(n_features)``, about the size of a feature.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept; 0 without.
    coef_covariance_ : ndarray of shape (n_features, n_features)
        Estimated covariance of `coef_`, from the reports. It covers the noise and the sampling of
        rows, but not the bias of raised eigenvalues. NaN for fewer than 8 rows, or more than about
        1400 features.
    coef_standard_error_ : ndarray of shape (n_features,)
        Square roots of its diagonal.
    intercept_standard_error_ : float
        The same for the intercept; 0 without one.
    noise_level_ : float
        Largest eigenvalue of pure noise, in the unit of `smallest_eigenvalue_`, known in advance.
        Smaller eigenvalues of the moment of the features are raised to it.
    smallest_eigenvalue_ : float
        Smallest eigenvalue of the corrected moment of the features and the constant, in the
        unit ball.
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

    Warns
    -----
    NoisyEstimateWarning
        If `noise_level_` is above a third of `smallest_eigenvalue_`: some direction of the
        features is mostly noise. The warning depends only on the reports, so it reveals nothing
        more.

    See Also
    --------
    DPLpRegressor : Regression of rows that somebody trusted holds; far more precise.
    LocalDPMean : Means from reports.
    LocalDPCovariance : Covariances from reports.

    Notes
    -----
    Privacy. The report of a row, its target included, is epsilon-locally private: it has nearly
    the same distribution under any two values of (x, y) (Proposition 62 of the guide). The number
    of rows, the number and names of features and all parameters are public. Computations on the
    reports cost nothing more. A second fit is a second report of every row.

    Errors. Proposition 67: the moments are unbiased; the coefficients are consistent for the least
    squares of the scaled rows, and `coef_covariance_` for their covariance. If y is an exact
    linear function of x, scaling down changes nothing. But an error that lengthens a row reduces
    its weight, which biases predictions towards 0 if many rows are longer than `data_norm`.
    Without the correction, noise in the features would cause a bias for any number of rows.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018, Algorithm 1.
    .. [2] W. A. Fuller, "Measurement error models", Wiley 1987, Section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LocalDPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(50_000, 2))
    >>> y = X @ [1.0, -0.5] + 0.3
    >>> model = LocalDPLinearRegression(data_norm=2.0, random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1.0, -0.5]).max() < 0.1)
    True
    >>> bool((model.coef_standard_error_ < 0.03).all())
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        **{name: SHARED_CONSTRAINTS[name] for name in ("epsilon", "budget", "random_state")},
        "data_norm": SCALE_OR_NONE[:1],
        "target_scale": SCALE_OR_NONE,
        "l2": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        data_norm: float = 1.0,
        target_scale: float | None = None,
        l2: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.target_scale = target_scale
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Let every row report once, and solve the corrected normal equations.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows; sparse rows are made dense in parts, because reports are dense.
        y : array-like of shape (n_samples,)
            Private targets.

        Returns
        -------
        self : LocalDPLinearRegression
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing was released.
        """
        X, y = validate_private_data(
            self, X, y, accept_sparse="csr", y_numeric=True, multi_output=False
        )
        y = real_targets(y)
        n_rows, n_features = X.shape
        radius, scale, constant = self._units(n_features)
        size = n_features + bool(constant) + 1
        randomiser = lift(float(self.epsilon), size)
        query = LocalReports(JointVectors(radius, scale, constant), randomiser)
        longest = radius * math.hypot(1.0, constant)
        penalty = joint_penalty(self.l2, n_rows, longest, n_features, bool(constant))
        doubts = Doubts(self)
        with open_gate(
            self,
            lambda: regression_rows(X, y, effective_n_threads()),
            n_rows=n_rows,
            delta=0.0,
            adjacency="local",
            doubts=doubts,
        ) as curator:
            groups = groups_of(n_rows, size)
            add_reports(curator, query, self.epsilon, groups)
            solved = least_squares([sums for _, sums in groups], randomiser.unit, penalty)
            self._solved(solved, radius, scale, constant)
            if self.noise_level_ > self.smallest_eigenvalue_ / 3:
                doubts.noise(
                    f"the noise of {n_rows} reports makes eigenvalues of up to "
                    f"{self.noise_level_:.2g} by itself, and the smallest of the features is about "
                    f"{self.smallest_eigenvalue_:.2g}: use more rows, fewer features, a larger "
                    "epsilon, or a smaller data_norm."
                )
        self.randomiser_ = randomiser
        return self

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return predictions for rows, without noise.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. Predictions are computed from them without noise.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            ``X @ coef_ + intercept_``.

        Raises
        ------
        ValueError, TypeError
            If X has other columns than the rows of `fit`, is not numeric or not finite. Impute NaN
            by the same public constant as for `fit`.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return safe_sparse_dot(X, self.coef_, dense_output=True) + self.intercept_

    def _twin(self):
        return linear_regression(self)

    def _units(self, n_features):
        """Return the radius, the divisor of targets, and the constant; all public."""
        scale, constant = self.target_scale, self.intercept_scaling
        if scale is None:
            scale = (2.0 / n_features) ** 0.25
        if constant is None:
            constant = n_features**-0.5
        return float(self.data_norm), float(scale), float(constant) if self.fit_intercept else 0.0

    def _solved(self, solved, radius, scale, constant):
        """Set a solution in the units of the data."""
        n_features = self.n_features_in_
        shift = [scale * constant * radius] * bool(constant)
        unit = np.append(np.full(n_features, scale), shift)
        coef, error = unit * solved.coef, unit * np.sqrt(np.diag(solved.covariance))
        self.coef_, self.coef_standard_error_ = coef[:n_features], error[:n_features]
        self.intercept_ = float(coef[-1]) if constant else 0.0
        self.intercept_standard_error_ = float(error[-1]) if constant else 0.0
        self.coef_covariance_ = scale**2 * solved.covariance[:n_features, :n_features]
        self.noise_level_, self.smallest_eigenvalue_ = solved.level, solved.smallest

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
