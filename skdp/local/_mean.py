# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means from local reports."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted

from skdp._gate import Doubts, open_gate
from skdp._rows.base import bounds_of, check_radius
from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    fit_context,
    refuse_sparse,
    validate_private_data,
)
from skdp._typing import Bounds, Budget, MatrixLike, Seed
from skdp.local._ball_randomiser import BallRandomiser
from skdp.local._clients import Aggregator, ClientMixin, sums_of
from skdp.local._moments import MeanSums, add_reports
from skdp.local._row_domains import BallDomain, BoxDomain
from skdp.local.randomisers.cube import optimal_privunit_cube
from skdp.local.randomisers.report import LocalReports
from skdp.location._base import MeanEstimator
from skdp.location._mean import say_of_edge
from skdp.privacy.books.ledger import Ledger

# The plan: public domain of the rows, randomiser, and units of reports.


@dataclass(frozen=True)
class MeanPlan:
    """Public facts about the reports of a mean.

    Parameters
    ----------
    domain : BallDomain or BoxDomain
        Domain of rows.
    randomiser : Randomiser
        Randomiser of reports.
    """

    domain: Any
    randomiser: Any

    @property
    def query(self):
        """The query for one report of every row."""
        return LocalReports(self.domain.vectors, self.randomiser)

    @property
    def noise_variance(self):
        """Variance of every entry of one report, in the units of the data."""
        return self.domain.entry_variances(self.randomiser)


def plan_mean_reports(epsilon, mechanism, data_norm, bounds, expected_norm, n_features):
    """Return the plan for the parameters of `LocalDPMean`, or raise a ValueError."""
    if (mechanism == "cube") != (bounds is not None):
        raise ValueError(
            'bounds must be given for mechanism="cube", and be None otherwise; got '
            f"bounds={bounds!r} with mechanism={mechanism!r}."
        )
    epsilon, norm = float(epsilon), 1.0 if expected_norm is None else float(expected_norm)
    if bounds is None:
        domain = BallDomain(check_radius(data_norm), norm)
        chosen = BallRandomiser(mechanism, expected_norm=expected_norm)
        chosen = chosen.calibrate(epsilon, n_features)
    else:
        domain = BoxDomain.between(*bounds)
        chosen = optimal_privunit_cube(epsilon, n_features)
    plan = MeanPlan(domain, chosen)
    # raises if reports would overflow
    _ = plan.noise_variance
    return plan


def check_format(X, bounds):
    """Raise a TypeError for sparse rows in a box."""
    if bounds is not None:
        refuse_sparse(X, "bounds", "bounds=None")


class LocalDPMean(ClientMixin, MeanEstimator):
    """Mean of rows from local reports, with confidence intervals.

    Every row makes one unbiased report, randomised before anybody sees it, and the mean of the
    reports is the estimate. Nobody is trusted with the rows. The law of the noise is public, so
    the error is known in advance. Computations on reports, such as intervals, cost nothing more.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one report in nats, greater than 0. Every row makes one.
    mechanism : {"lift", "flip", "product", "cube"}, default="lift"
        Randomiser. "lift": PrivUnit [1]_ of the row with an additional entry, which makes it a
        unit vector; the noise is the same in all directions and for all rows. "flip": PrivUnit of
        the direction, reversed at random with the correct mean. "product": separate reports of
        direction and length, best for large budgets and rows much shorter than `data_norm`.
        "cube": PrivUnit on the corners of a box, with exact draws of noise; needs `bounds`.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, in the units of the data. Longer rows are
        scaled down to it, which biases the mean towards 0. Ignored with `bounds`.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds for "cube": a pair (lower, upper) of numbers or arrays of shape (n_features,),
        or a pair for every feature, in order or by name. Coordinates outside are clipped.
    expected_norm : float, default=None
        Public guess of the norms of rows relative to `data_norm`, in (0, 1]; None for 1. "product"
        splits the budget for such rows, and the errors known in advance are for them.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Mean of the reports.
    standard_error_ : ndarray of shape (n_features,)
        Standard error of `location_`, from the variance of the reports, for the noise and the
        sampling of rows. Infinite for a single row.
    noise_variance_ : ndarray of shape (n_features,)
        Variance of an entry of one report around its row, known in advance. With "lift" it is the
        same for all rows; with "flip" and "product" it is for rows of the expected norm, averaged
        over entries; with "cube" it is for the center of the box, the largest one.
    n_reports_ : int
        Number of reports.
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
    DPMean : Mean of rows that somebody trusted holds; far more precise.
    LocalDPCovariance : Covariance from reports.
    LocalDPLinearRegression : Least squares from reports.

    Notes
    -----
    Privacy. The report of a row is epsilon-locally private: it has nearly the same distribution
    under any two values of that row (Proposition 62 of the guide, and 63 for "cube"). The number
    of rows, the number and names of features and all parameters are public. Computations on the
    reports cost nothing more. A second fit is a second report of every row.

    Errors. Proposition 66: the expectation of `location_` is the mean of the clipped rows, with
    squared error ``noise_variance_ / n``. The intervals are Student's. Reports are bounded, so a
    few dozen rows are enough for them.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018, Algorithms 1
       and 2.
    .. [2] H. Asi, V. Feldman and K. Talwar, "Optimal algorithms for mean estimation under
       local differential privacy", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LocalDPMean
    >>> rows = np.random.default_rng(0).normal([0.3, -0.2, 0.0], 0.1, size=(10_000, 3))
    >>> mean = LocalDPMean(random_state=0)
    >>> bool(mean.expected_error(n_samples=10_000, n_features=3) < 0.02)
    True
    >>> bool(np.abs(mean.fit(rows).location_ - [0.3, -0.2, 0.0]).max() < 0.03)
    True
    >>> lower, upper = mean.confidence_interval(level=0.999)
    >>> bool((lower < upper).all())
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "data_norm", "budget", "random_state")
        },
        "mechanism": [StrOptions({"lift", "flip", "product", "cube"})],
        "bounds": [tuple, list, dict, np.ndarray, None],
        "expected_norm": [Interval(Real, 0, 1, closed="right"), None],
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        mechanism: Literal["lift", "flip", "product", "cube"] = "lift",
        data_norm: float = 1.0,
        bounds: Bounds | None = None,
        expected_norm: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.data_norm = data_norm
        self.bounds = bounds
        self.expected_norm = expected_norm
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Let every row report once, and take the mean of the reports.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows; sparse rows only without `bounds`, and made dense in parts, because
            reports are dense.
        y : None
            Ignored.

        Returns
        -------
        self : LocalDPMean
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing was released.
        """
        check_format(X, self.bounds)
        X = validate_private_data(self, X, accept_sparse="csr")
        n_rows, n_features = X.shape
        plan = self._plan(n_features)
        sums = MeanSums(n_features)
        doubts = Doubts(self)
        if self.bounds is not None and self.data_norm != 1.0:
            doubts.promise("data_norm has no effect beside bounds: give one of them.")
        with open_gate(
            self,
            lambda: plan.domain.admit(X),
            n_rows=n_rows,
            delta=0.0,
            adjacency="local",
            doubts=doubts,
        ) as curator:
            add_reports(curator, plan.query, self.epsilon, [((0, n_rows), sums)])
            name = "data_norm" if self.bounds is None else "bounds"
            noise = np.sqrt(np.mean(plan.noise_variance / plan.domain.unit**2) / n_rows)
            say_of_edge(doubts, sums.mean, float(noise), name, "")
        self._summed_up(sums, plan)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_reports(self, reports: Aggregator) -> Self:
        """Take the mean of received reports.

        Parameters
        ----------
        reports : Aggregator
            Reports of clients of this estimator, or of a `PrivUnitPrivatizer` or
            `ScalarPrivatizer` with the same `epsilon`, `data_norm` and `bounds`. Clients may use
            any `mechanism`.

        Returns
        -------
        self : LocalDPMean
            Fitted estimator, with an empty ledger: it spends nothing.

        Raises
        ------
        ValueError, TypeError
            If a parameter is unusable, the reports have other parameters, or there are none.
        """
        sums = sums_of(self, reports, lambda n_features: self._plan(n_features).domain)
        plan = MeanPlan(reports.client.rows, reports.client.randomiser)
        self._summed_up(sums, plan)
        return self

    def confidence_interval(
        self, level: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return an interval for every entry of the mean.

        Parameters
        ----------
        level : float, default=0.95
            Coverage probability of one interval, in (0, 1).

        Returns
        -------
        lower, upper : ndarray of shape (n_features,)
            Ends of Student's intervals for the population mean of the clipped rows. Infinite for a
            single row.
        """
        check_is_fitted(self)
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a number in (0, 1); got {level!r}.")
        half = self.standard_error_
        if self.n_reports_ > 1:
            half = stdtrit(self.n_reports_ - 1, 0.5 + level / 2) * half
        return self.location_ - half, self.location_ + half

    def expected_error(self, n_samples: int, n_features: int) -> float:
        """Return the expected error from noise, without data or a fit.

        Parameters
        ----------
        n_samples, n_features : int
            Numbers of rows and features.

        Returns
        -------
        error : float
            Root mean squared Euclidean distance of `location_` from the mean of the clipped rows,
            for rows of the expected norm.

        Raises
        ------
        ValueError
            If a parameter is unusable.
        """
        self._validate_params()
        for name, value in (("n_samples", n_samples), ("n_features", n_features)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
        return float(np.sqrt(self._plan(n_features).noise_variance.sum() / n_samples))

    def _plan(self, n_features):
        return plan_mean_reports(
            self.epsilon,
            self.mechanism,
            self.data_norm,
            None if self.bounds is None else bounds_of(self, n_features),
            self.expected_norm,
            n_features,
        )

    def _client_of(self, n_features):
        plan = self._plan(n_features)
        return plan.domain, plan.randomiser

    def _summed_up(self, sums, plan):
        self.location_ = plan.domain.center + plan.domain.unit * sums.mean
        self.standard_error_ = plan.domain.unit * np.sqrt(sums.variance / sums.n_reports)
        self.noise_variance_, self.randomiser_ = plan.noise_variance, plan.randomiser
        self.n_reports_ = sums.n_reports

    def _check_scored(self, X):
        check_format(X, self.bounds)
        return super()._check_scored(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.bounds is None
        return tags
