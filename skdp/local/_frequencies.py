# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Frequencies of categories from rows that report on their own, by subset selection.

A row names some of the categories: its own one with probability p, and others at random. The best
number of names falls with the budget; with one name this is randomised response. M. Ye and A. Barg,
"Optimal schemes for discrete distribution estimation under locally differential privacy", IEEE
Transactions on Information Theory 2018; S. Wang et al., "Mutual information optimally local
private discrete distribution estimation", 2016.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
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
from skdp.local._moments import add_reports
from skdp.local.randomisers.base import (
    BLOCK,
    Randomiser,
    budget_of,
    check_local_epsilon,
    coins,
    in_chunks,
    largest_chance,
    positions_below,
)
from skdp.local.randomisers.cube import uniform_subsets
from skdp.local.randomisers.report import LocalReports
from skdp.location._clipped_mean import BoxRows
from skdp.location._histogram import category_places, check_categories
from skdp.privacy.books.ledger import Ledger

# The randomiser, and its best parameters.


@dataclass(frozen=True)
class CategorySubsets(Randomiser):
    """Subset selection for one category of each of several features.

    Parameters
    ----------
    sizes : tuple of int
        Number of categories of every feature, at least 2.
    widths : tuple of int
        How many of them are named, at most half.
    chances : tuple of float
        Probability that the own category is among these, above the share of those named.
    asked : int
        For how many features, drawn at random, a row names categories.

    Notes
    -----
    A row is the indicator of a category of each feature, one feature after the other; a report is
    that of the named ones, and zero for features that were not drawn. Of k categories w are
    named. A subset that holds the row's own one has probability ``p / C(k-1, w-1)``, another one
    ``(1-p) / C(k-1, w)``: the logarithm of the ratio is ``logit p - logit (w/k)``. A row
    without a category takes one at random. Which features are drawn does not depend on the row,
    so that the budget is that of the `asked` dearest ones.
    """

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    chances: tuple[float, ...]
    asked: int

    exact = True
    # every category needs a word
    block_entries = BLOCK

    @property
    def n_dims(self):
        """Number of categories of all features."""
        return sum(self.sizes)

    @cached_property
    def epsilon(self):
        """The budget of one report, rounded up by the accuracy of the arithmetic."""
        parts = zip(self.sizes, self.widths, self.chances, strict=True)
        prices = sorted(budget_of(p, math.log(w / k)) for k, w, p in parts)
        return math.nextafter(math.fsum(prices[-self.asked :]), math.inf)

    @property
    def bound(self):
        """Bound on the entries of reports."""
        return 1.0

    @property
    def columns(self):
        """The entries of every feature, a list of slices."""
        ends = np.cumsum((0, *self.sizes)).tolist()
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def others(self):
        """Probability that a category is named that is not the row's own, for every feature."""
        parts = zip(self.sizes, self.widths, self.chances, strict=True)
        return [(w - p) / (k - 1) for k, w, p in parts]

    def message_bits(self, number_bits=32, n_entries=None):
        """Return how many bits a report takes when it is sent: at most one a category."""
        return super().message_bits(1, n_entries)

    def log_law(self, reports, vector):
        """Return the logarithms of the probabilities of reports; see `Randomiser`."""
        law = np.zeros(len(reports))
        parts = zip(self.columns, self.sizes, self.widths, self.chances, strict=True)
        for columns, k, w, p in parts:
            named, own = reports[:, columns], np.flatnonzero(vector[columns])
            # relative to subsets of any categories; a row without one names any
            if len(own):
                inside, outside = math.log(p * k / w), math.log((1.0 - p) * k / (k - w))
                here = np.where(named[:, own[0]] > 0.5, inside, outside)
                law += np.where(named.any(axis=1), here, 0.0)
        return law

    def randomise(self, vectors, bits, n_threads=1, *, out=None):
        """Return the named categories of every row; see `Randomiser`.

        Notes
        -----
        Every row takes as many words, whatever it is. Coins, positions and subsets are exact.
        """
        n_rows = len(vectors)
        out = np.empty(vectors.shape) if out is None else out
        drawn = self._drawn(n_rows, bits, n_threads)
        parts = zip(self.columns, self.sizes, self.widths, self.chances, strict=True)
        for feature, (columns, k, w, p) in enumerate(parts):
            given = vectors[:, columns] > 0.5
            anything = positions_below(k, n_rows, bits)
            own = np.where(given.any(axis=1), given.argmax(axis=1), anything)
            kept = coins(p, n_rows, bits)
            named = chosen_subsets(w - kept, k - 1, bits, n_threads)
            place = np.arange(k - 1) + (np.arange(k - 1) >= own[:, None])
            block = np.zeros((n_rows, k))
            np.put_along_axis(block, place, named, axis=1)
            block[np.arange(n_rows), own] = kept
            block[~drawn[:, feature]] = 0.0
            out[:, columns] = block
        return out

    def _drawn(self, n_rows, bits, n_threads):
        """Return which features every row is asked for."""
        d = len(self.sizes)
        if self.asked == d:
            return np.ones((n_rows, d), dtype=bool)
        return chosen_subsets(np.full(n_rows, self.asked), d, bits, n_threads)

    def estimates(self, counts):
        """Return unbiased frequencies, and what is known of their errors.

        Parameters
        ----------
        counts : ndarray of shape (n_dims,)
            How many reports name each category.

        Returns
        -------
        frequencies, errors : list of ndarray
            For every feature the frequencies, and their standard errors, which cover the noise and
            the sampling of rows. Without a report all are alike, and the errors infinite.
        n_reports : ndarray of shape (n_features,)
            How many reports tell of each feature.
        """
        frequencies, errors, n_reports = [], [], []
        parts = zip(self.columns, self.widths, self.chances, self.others, strict=True)
        for columns, w, p, q in parts:
            own = counts[columns]
            n_own = round(own.sum() / w)
            n_reports.append(n_own)
            if not n_own:
                frequencies.append(np.full(len(own), 1.0 / len(own)))
                errors.append(np.full(len(own), math.inf))
                continue
            share = own / n_own
            frequencies.append((share - q) / (p - q))
            # no category is expected to be named less often than q, nor more often than p
            share = np.clip(share, q, p)
            errors.append(np.sqrt(share * (1.0 - share) / n_own) / (p - q))
        return frequencies, errors, np.array(n_reports)

    def squared_errors(self):
        """Return the mean squared error of the frequencies of each feature, for one row.

        Returns
        -------
        errors : list of float
            Summed over the categories. That of the noise is the same for all frequencies; that of
            drawing features is for equal frequencies, where it is largest.
        """
        rare = len(self.sizes) / self.asked
        parts = zip(self.sizes, self.chances, self.others, strict=True)
        noises = [
            (k, (k * q * (1 - q) + (1 - p - q) * (p - q)) / (p - q) ** 2) for k, p, q in parts
        ]
        return [rare * noise + (rare - 1.0) * (1.0 - 1.0 / k) for k, noise in noises]


def chosen_subsets(sizes, n_dims, bits, n_threads=1):
    """Return subsets of given sizes, each uniform among those, a bool array (n, n_dims)."""
    chosen = np.empty((len(sizes), n_dims), dtype=bool)
    sizes = np.asarray(sizes, dtype=np.int64)

    def work(rows, words):
        chosen[rows], tied = uniform_subsets(words, sizes[rows])
        return np.flatnonzero(tied)

    in_chunks(work, len(sizes), n_dims, bits, n_threads)
    return chosen


def best_subsets(epsilon, sizes):
    """Return the randomiser of least error for a budget.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 1e-6 to 1e6.
    sizes : sequence of int
        Number of categories of every feature.

    Returns
    -------
    randomiser : CategorySubsets
        Its `epsilon` is at most what was asked for.

    Notes
    -----
    Near ``k / (exp(epsilon) + 1)`` names of k are best; the whole numbers around that are
    compared. Likewise for how many features a row is asked: each gets an equal share.
    """
    epsilon, tried = check_local_epsilon(epsilon), []
    for asked in range(1, len(sizes) + 1):
        # sums of budgets are rounded up
        part = epsilon / asked * (1.0 - 2.0**-50)
        if asked > 1 and part < 1e-6:
            break
        best = [_best_width(part, k) for k in sizes]
        made = CategorySubsets(tuple(sizes), *map(tuple, zip(*best, strict=True)), asked)
        tried.append(made)
    return min(tried, key=lambda made: math.fsum(made.squared_errors()))


def _best_width(epsilon, k):
    """Return how many of k categories are best named, and the chance of the own one."""
    middle = k / (math.exp(min(epsilon, 700.0)) + 1.0)
    found = []
    for w in {max(1, math.floor(middle)), min(max(1, math.ceil(middle)), k // 2)}:
        p = largest_chance(epsilon, math.log(w / k))
        if p > w / k:
            error = CategorySubsets((k,), (w,), (p,), 1).squared_errors()[0]
            found.append((error, w, p))
    if not found:
        raise ValueError(f"epsilon must be larger for {k} categories; got {epsilon!r}.")
    return min(found)[1:]


# Rows, as indicators of their categories.


@dataclass(frozen=True)
class Indicators:
    """Indicators of the categories of a row, one feature after the other.

    Parameters
    ----------
    sizes : tuple of int
        Number of categories of every feature.
    name : str, default="categories"
        What they are.
    """

    sizes: tuple[int, ...]
    name: str = "categories"

    def vectors(self, chunk):
        """Return the indicators of a chunk of places of categories; zeros where there is none."""
        codes = chunk.X
        blocks = [codes[:, [j]] == np.arange(k) for j, k in enumerate(self.sizes)]
        return np.concatenate(blocks, axis=1).astype(np.float64)


def on_simplex(values):
    """Return the nearest frequencies that are not negative and have the sum 1."""
    ordered = np.sort(values)[::-1]
    shifts = (np.cumsum(ordered) - 1.0) / np.arange(1, len(values) + 1)
    return np.maximum(values - shifts[np.flatnonzero(ordered > shifts)[-1]], 0.0)


class CategoryCounts:
    """How many reports name each category; reports are added a few at a time."""

    def __init__(self, size):
        self.counts = np.zeros(size)

    def add(self, reports):
        """Add an ndarray of shape (n_reports, size)."""
        self.counts += reports.sum(axis=0)


class LocalDPFrequencies(PlanMixin, BaseEstimator):
    """Frequencies of categories, from rows that report on their own, with confidence intervals.

    Every row names some of the categories of a feature, its own one more probably than others,
    before anybody sees it. Nobody needs to be trusted with the rows. How many are named is chosen
    for the least error by the budget and the number of categories (subset selection [1]_, [2]_):
    one with large budgets, which is randomised response, and up to half of them with small ones.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one report in nats, from 1e-6 to 1e6. Every row makes one.
    categories : array-like, default=(0, 1)
        Public categories, at least two: one list for all features, or a list of such lists, one
        for each. A value that is not in the list reports as one that is drawn at random: add a
        category for others where there may be such.
    positive : bool, default=True
        Whether `frequencies_` are brought to the nearest ones that are not negative and have the
        sum 1; False for unbiased ones.
    budget : PrivacyBudget, default=None
        A budget that several fits share: each is charged (epsilon, delta) before it reads a
        row, and refused if that is more than what is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise
        reproducible, voids the guarantee towards whoever knows it, and warns.

    Attributes
    ----------
    frequencies_ : list of ndarray
        Estimated frequencies of the categories of every feature, in their order.
    standard_errors_ : list of ndarray
        Standard errors of the unbiased frequencies: they cover the noise and the sampling of rows.
        Infinite for a feature of which no report tells.
    categories_ : list of ndarray
        The categories of every feature.
    counts_ : ndarray of shape (n_categories,)
        How many reports name each category, one feature after the other. After a fit to one row
        this is its report, which `fit_reports` takes.
    n_reports_ : ndarray of shape (n_features,)
        Number of reports that tell of each feature. Of several features a row reports on some
        drawn at random, as many as give the least error.
    randomiser_ : object
        Parameters of the randomiser.
    ledger_ : Ledger
        What was released, at what price.
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
    Privacy. Every row's report is epsilon-locally private (Proposition 90 of the guide), exactly:
    all draws are made of integers. The number of rows, the categories, the number and names of
    features and all parameters are public. What is computed from the reports costs nothing more. A
    second fit is a second report of every row. Timing and exceptions on malformed input are not
    covered.

    Errors. Proposition 91: unbiased frequencies, whose squared error, summed over categories, is
    known beforehand (`expected_error`) and does not depend on the frequencies. It is at most that
    of one-hot, unary and optimised unary encoding.

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
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left.
        """
        X = validate_private_data(self, X, dtype=None)
        n_rows, n_features = X.shape
        categories, randomiser = self._plan(n_features)
        query = LocalReports(Indicators(randomiser.sizes), randomiser)
        sums = CategoryCounts(randomiser.size)
        with open_gate(
            self,
            lambda: BoxRows(category_places(X, categories), None),
            n_rows=n_rows,
            delta=0.0,
            adjacency="local",
            doubts=_OfReports(type(self).__name__),
        ) as curator:
            add_reports(curator, query, self.epsilon, [((0, n_rows), sums)])
        self._counted(sums.counts, categories, randomiser)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_reports(self, reports: MatrixLike) -> Self:
        """Estimate the frequencies from reports that were made elsewhere.

        Parameters
        ----------
        reports : array-like of shape (n_samples, n_categories)
            The `counts_` of estimators with the same parameters, each fitted where its rows are:
            to one row for a report, or to several for a sum of reports.

        Returns
        -------
        self : LocalDPFrequencies
            Fitted estimator, with an empty ledger: nothing is spent here.

        Raises
        ------
        ValueError
            If a parameter is unusable, or there is a number that no report has.
        """
        reports = validate_private_data(self, reports).astype(np.float64, copy=False)
        n_features = self._n_features_of(reports.shape[1])
        categories, randomiser = self._plan(n_features)
        check_reports(reports, randomiser)
        self.n_features_in_ = n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._counted(reports.sum(axis=0), categories, randomiser)
        self.ledger_ = Ledger().assume(
            f"every row reported once, elsewhere, at epsilon={self.epsilon:g}"
        )
        self.privacy_spent_ = (0.0, 0.0)
        return self

    def confidence_interval(
        self, level: float = 0.95
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Return an interval for every frequency.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which one interval holds, in (0, 1).

        Returns
        -------
        lower, upper : list of ndarray
            Ends of normal intervals around unbiased frequencies, for those of the law that the rows
            come from, cut off at 0 and 1.
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
        """Return the error that reports will cause; it needs no data and no fit.

        Parameters
        ----------
        n_samples, n_features : int
            Numbers of rows and features.

        Returns
        -------
        error : float
            Root of the mean squared Euclidean distance of unbiased frequencies, of all features
            together, to those of the rows.

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

    def _n_features_of(self, n_categories):
        """Return how many features have so many categories, or raise."""
        given = list(self.categories)
        nested = given and not isinstance(given[0], str) and hasattr(given[0], "__len__")
        own = sum(map(len, given)) if nested else len(given)
        if n_categories % own or (nested and n_categories != own):
            raise ValueError(
                f"reports must have an entry for each of {own} categories; got {n_categories}."
            )
        return len(given) if nested else n_categories // own

    def _counted(self, counts, categories, randomiser):
        found, self.standard_errors_, self.n_reports_ = randomiser.estimates(counts)
        self.frequencies_ = [on_simplex(own) if self.positive else own for own in found]
        self.counts_, self.categories_, self.randomiser_ = counts, categories, randomiser

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def check_reports(reports, randomiser):
    """Raise a ValueError for numbers that no report, and no sum of reports, has."""
    whole = (reports >= 0).all() and (reports == np.rint(reports)).all()
    for columns, w in zip(randomiser.columns, randomiser.widths, strict=True):
        own = reports[:, columns]
        total = own.sum(axis=1)
        whole = whole and not (total % w).any() and (own <= total[:, None] / w).all()
    if not whole:
        raise ValueError(
            "reports must have been made with the parameters of this estimator: each names "
            f"{randomiser.widths} categories of the features, and some do not."
        )


class _OfReports(Doubts):
    """What a user should know of reports; a row that reports alone is no cause for concern."""

    def of_budget(self, n_rows, unit, epsilon, delta, assumptions):
        """Take note of a promise that is next to none."""
        super().of_budget(max(n_rows, math.ceil(1e3 / epsilon)), unit, epsilon, delta, assumptions)
