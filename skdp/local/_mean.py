# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Means of rows that report on their own."""

from numbers import Real
from typing import Literal, Self

import numpy as np

from skdp._sklearn import (
    SHARED_CONSTRAINTS,
    Interval,
    StrOptions,
    blas_on_one_thread,
    fit_context,
    validate_private_data,
)
from skdp._typing import Bounds, Budget, MatrixLike, Seed
from skdp.local._mean_plan import check_format
from skdp.local._report_sums import MeanSums, add_reports
from skdp.local._reported_mean import ReportedMean
from skdp.privacy import Curator, Ledger


class LocalDPMean(ReportedMean):
    """Mean of rows that report on their own, with confidence intervals.

    Every row makes one unbiased report, randomised before anybody sees it, and the mean of the
    reports is the estimate. Nobody needs to be trusted with the rows. The law of the noise is
    public, so the error is known beforehand; and reports may be computed with, so intervals
    cost nothing.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one report in nats, greater than 0. Every row makes one.
    mechanism : {"lift", "flip", "product", "cube"}, default="lift"
        How a row reports. "lift": PrivUnit [1]_ of the row with one more entry, which makes it a
        unit vector; the noise is the same in all directions and for all rows. "flip": PrivUnit
        of the direction, turned round with a probability that gives the right mean. "product":
        direction and length apart, which is best for large budgets and rows that are much
        shorter than `data_norm`. "cube": PrivUnit on the corners of a box, whose noise is drawn
        exactly; needs `bounds`.
    data_norm : float, default=1.0
        Public radius, in the units of the data: longer rows are scaled down to this Euclidean
        norm, which pulls the mean towards 0. Ignored with `bounds`.
    bounds : tuple (lower, upper), default=None
        Public bounds per coordinate for "cube", numbers or arrays of shape (n_features,).
        Coordinates outside are clipped.
    expected_norm : float, default=None
        Public guess, in (0, 1], of the norm of rows over `data_norm`; None is 1. "product"
        divides the budget for it, and the expected errors are those of such rows.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Mean of the reports.
    standard_error_ : ndarray of shape (n_features,)
        Standard error of `location_`, from the variance of the reports: it has the noise and
        the sampling of the rows. Infinite for a single row.
    noise_variance_ : ndarray of shape (n_features,)
        Variance of an entry of one report around its row, known beforehand: for "lift" that of
        every row; else of rows of the expected norm, averaged over entries, and for "cube" of
        the centre of the box, which has the largest.
    n_reports_ : int
        Number of reports.
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
    DPMean : Mean of rows that somebody trusted holds; far more precise.
    LocalDPCovariance : Covariance from reports.
    LocalDPLinearRegression : Least squares from reports.

    Notes
    -----
    Privacy. Every row's report is epsilon-locally private: it has nearly the same law under any
    two values of that row (Proposition 62 of the guide, and 63 for "cube"). The number of rows,
    the number and names of features and all parameters are public. What is computed from the
    reports costs nothing more. A second fit is a second report of every row.

    Errors. Proposition 66: `location_` has the mean of the clipped rows as its expectation, and
    squared error ``noise_variance_ / n`` around it. The intervals are Student's; a report is
    bounded, so they hold for a few dozens of rows.

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

    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "data_norm", "budget", "random_state")
        },
        "mechanism": [StrOptions({"lift", "flip", "product", "cube"})],
        "bounds": [tuple, list, np.ndarray, None],
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
            Private rows; sparse ones only without `bounds`, and they are made dense a part at
            a time, for reports are dense.
        y : None
            Ignored.

        Returns
        -------
        self : LocalDPMean
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been released then.
        """
        check_format(X, self.bounds)
        X = validate_private_data(self, X, accept_sparse="csr")
        n_rows, n_features = X.shape
        plan = self._plan(n_features)
        curator = Curator(
            lambda: plan.domain.admit(X),
            n_rows=n_rows,
            epsilon=self.epsilon,
            delta=0.0,
            adjacency="local",
            budget=self.budget,
            random_state=self.random_state,
            purpose=type(self).__name__,
        )
        sums = MeanSums(n_features)
        with blas_on_one_thread():
            add_reports(curator, plan.query, self.epsilon, [((0, n_rows), sums)])
        self._summed_up(sums, plan)
        self.ledger_ = curator.ledger
        self.privacy_spent_ = (curator.ledger.epsilon(), 0.0)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_reports(self, reports: MatrixLike) -> Self:
        """Take the mean of rows that were randomised elsewhere.

        Parameters
        ----------
        reports : array-like of shape (n_samples, n_features)
            What `PrivUnitPrivatizer` with the same parameters made of the rows, each where it
            is.

        Returns
        -------
        self : LocalDPMean
            Fitted estimator, with an empty ledger: nothing is spent here.

        Raises
        ------
        ValueError
            If a parameter is unusable, or there is a number that no report has.
        """
        reports = validate_private_data(self, reports).astype(np.float64, copy=False)
        plan, sums = self._plan(reports.shape[1]), MeanSums(reports.shape[1])
        sums.add(plan.in_units(reports))
        self._summed_up(sums, plan)
        self.ledger_ = Ledger().assume(
            f"every row reported once, elsewhere, at epsilon={self.epsilon:g}"
        )
        self.privacy_spent_ = (0.0, 0.0)
        return self

    def _check_scored(self, X):
        check_format(X, self.bounds)
        return super()._check_scored(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.bounds is None
        return tags
