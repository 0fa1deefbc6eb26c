# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frequencies of categories from local reports, by subset selection.

The randomiser is in ``randomisers/subsets.py``, with the references.
"""

import math
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._gate import Doubts, open_gate
from skdp._plan import PlanMixin
from skdp._sklearn import SHARED_CONSTRAINTS, fit_context, validate_private_data
from skdp._typing import Budget, MatrixLike, Seed
from skdp.local._clients import Aggregator, ClientMixin, sums_of
from skdp.local._moments import add_reports
from skdp.local._row_domains import CategoryDomain
from skdp.local.randomisers.report import LocalReports
from skdp.local.randomisers.subsets import best_subsets
from skdp.location._histogram import check_categories, check_sorts
from skdp.privacy.books.ledger import Ledger


def on_simplex(values):
    """Return the nearest non-negative frequencies with sum 1."""
    ordered = np.sort(values)[::-1]
    shifts = (np.cumsum(ordered) - 1.0) / np.arange(1, len(values) + 1)
    return np.maximum(values - shifts[np.flatnonzero(ordered > shifts)[-1]], 0.0)


class LocalDPFrequencies(ClientMixin, PlanMixin, BaseEstimator):
    """Frequencies of categories from local reports, with confidence intervals.

    Every row names a random subset of the categories of a feature, with its own category at a
    higher probability. Nobody is trusted with the rows. The budget and the number of categories
    determine the size of the subset, for the least error (subset selection [1]_, [2]_): one
    category with large budgets, which is randomised response, and up to half of them with small
    budgets.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one report in nats, from 1e-6 to 1e6. Every row makes one.
    categories : array-like, default=(0, 1)
        Public categories, at least two: one list for all features, or a list of such lists, one
        for each. A value outside the list reports as a random category, without a trace: add a
        category for other values if there may be any. A feature with all values of another type,
        such as text beside numbers, is refused before any report.
    positive : bool, default=True
        Whether `frequencies_` are the nearest non-negative frequencies with sum 1; False for
        unbiased ones.
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    frequencies_ : list of ndarray
        Estimated frequencies of the categories of every feature, in their order.
    standard_errors_ : list of ndarray
        Standard errors of the unbiased frequencies, for the noise and the sampling of rows.
        Infinite for a feature without reports.
    categories_ : list of ndarray
        The categories of every feature.
    counts_ : ndarray of shape (n_categories,)
        Number of reports that name each category, feature by feature.
    n_reports_ : ndarray of shape (n_features,)
        Number of reports on each feature. With several features, a row reports on a random subset
        of them, of the size with the least error.
    randomiser_ : object
        Parameters of the randomiser.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent by every row; delta is 0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    LocalDPMean : Mean of rows that report on their own.
    skdp.local.shuffled_epsilon : What a shuffler between rows and receiver is worth.

    Notes
    -----
    Privacy. The report of a row is epsilon-locally private (Proposition 90 of the guide), exactly:
    all draws use integers. The number of rows, the categories, the number and names of features
    and all parameters are public. Computations on the reports cost nothing more. A second fit is a
    second report of every row. Timing and exceptions on malformed input are not covered.

    Errors. Proposition 91: the frequencies are unbiased. Their squared error, summed over
    categories, is known in advance (`expected_error`) and does not depend on the frequencies. It
    is at most the error of one-hot, unary and optimised unary encoding.

    References
    ----------
    .. [1] M. Ye and A. Barg, "Optimal schemes for discrete distribution estimation under locally
       differential privacy", IEEE Transactions on Information Theory 64, 2018.
    .. [2] S. Wang, L. Huang, P. Wang, Y. Nie, H. Xu, W. Yang, X. Li and C. Qiao, "Mutual
       information optimally local private discrete distribution estimation", arXiv:1607.08025,
       2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LocalDPFrequencies
    >>> answers = np.random.default_rng(0).choice(["no", "yes", "?"], p=[0.6, 0.3, 0.1], size=5000)
    >>> survey = LocalDPFrequencies(epsilon=2.0, categories=["no", "yes", "?"])
    >>> bool(survey.expected_error(n_samples=5000, n_features=1) < 0.04)
    True
    >>> survey.fit(answers[:, None]).privacy_spent_[0] <= 2.0
    True
    >>> bool(abs(survey.frequencies_[0][0] - 0.6) < 0.1)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    _parameter_constraints = {
        **{name: SHARED_CONSTRAINTS[name] for name in ("epsilon", "budget", "random_state")},
        "categories": ["array-like"],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        categories: Any = (0, 1),
        positive: bool = True,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.positive = positive
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Let every row report once, and estimate the frequencies.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private rows: numbers or text, or a data frame of both.
        y : None
            Ignored.

        Returns
        -------
        self : LocalDPFrequencies
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing was released.
        BudgetError
            If less is left in a shared budget.
        """
        X = validate_private_data(self, X, dtype=None)
        n_rows, n_features = X.shape
        categories, randomiser = self._plan(n_features)
        check_sorts(X, categories, of_objects=True)
        domain = CategoryDomain(categories)
        query, sums = LocalReports(domain.vectors, randomiser), domain.sums(randomiser.size)
        with open_gate(
            self,
            lambda: domain.admit(X),
            n_rows=n_rows,
            delta=0.0,
            adjacency="local",
            doubts=_OfReports(self),
        ) as curator:
            add_reports(curator, query, self.epsilon, [((0, n_rows), sums)])
        self._counted(sums.counts, categories, randomiser)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_reports(self, reports: Aggregator) -> Self:
        """Estimate the frequencies from received reports.

        Parameters
        ----------
        reports : Aggregator
            Reports of clients of an estimator with the same parameters.

        Returns
        -------
        self : LocalDPFrequencies
            Fitted estimator, with an empty ledger: it spends nothing.

        Raises
        ------
        ValueError, TypeError
            If a parameter is unusable, the reports have other parameters, or there are none.
        """
        sums = sums_of(self, reports, lambda n_features: CategoryDomain(self._plan(n_features)[0]))
        client = reports.client
        self._counted(sums.counts, client.rows.categories, client.randomiser)
        return self

    def confidence_interval(
        self, level: float = 0.95
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Return an interval for every frequency.

        Parameters
        ----------
        level : float, default=0.95
            Coverage probability of one interval, in (0, 1).

        Returns
        -------
        lower, upper : list of ndarray
            Ends of normal intervals around unbiased frequencies, for the frequencies of the
            population, clipped to [0, 1].
        """
        check_is_fitted(self)
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a number in (0, 1); got {level!r}.")
        centers, errors, _ = self.randomiser_.estimates(self.counts_)
        far, pairs = float(ndtri(0.5 + level / 2)), list(zip(centers, errors, strict=True))
        return (
            [np.clip(center - far * error, 0.0, 1.0) for center, error in pairs],
            [np.clip(center + far * error, 0.0, 1.0) for center, error in pairs],
        )

    def expected_error(self, n_samples: int, n_features: int) -> float:
        """Return the expected error of reports, without data or a fit.

        Parameters
        ----------
        n_samples, n_features : int
            Numbers of rows and features.

        Returns
        -------
        error : float
            Root mean squared Euclidean distance between unbiased frequencies and the frequencies
            of the rows, for all features together.

        Raises
        ------
        ValueError
            If a parameter is unusable.
        """
        self._validate_params()
        for name, value in (("n_samples", n_samples), ("n_features", n_features)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
        _, randomiser = self._plan(n_features)
        return math.sqrt(math.fsum(randomiser.squared_errors()) / n_samples)

    def _plan(self, n_features):
        """Return the categories of every feature, and the randomiser, from public facts."""
        categories = check_categories(self.categories, n_features)
        return categories, best_subsets(self.epsilon, tuple(map(len, categories)))

    def _client_of(self, n_features):
        categories, randomiser = self._plan(n_features)
        return CategoryDomain(categories), randomiser

    def _counted(self, counts, categories, randomiser):
        found, self.standard_errors_, self.n_reports_ = randomiser.estimates(counts)
        self.frequencies_ = [on_simplex(own) if self.positive else own for own in found]
        self.counts_, self.categories_, self.randomiser_ = counts, categories, randomiser

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


class _OfReports(Doubts):
    """Warnings about reports; a single reporting row is no reason for one."""

    def of_budget(self, n_rows, unit, epsilon, delta, assumptions):
        """Collect a warning of a very weak privacy claim."""
        super().of_budget(max(n_rows, math.ceil(1e3 / epsilon)), unit, epsilon, delta, assumptions)
