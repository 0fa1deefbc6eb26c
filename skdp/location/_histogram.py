# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Histograms of features, and counts of categories, by one noisy vector of counts."""

import math
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp._counted import (
    CellCounts,
    check_groups,
    count_rows,
    counts_of,
    hidden_count,
    largest_weight,
)
from skdp._gate import Doubts, open_gate
from skdp._plan import PlanMixin
from skdp._rows.base import bounds_of
from skdp._rows.streams import FOR_TABLES, whole_columns
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, ArrayLike, Bounds, Budget, MatrixLike, Seed, VectorLike
from skdp.location._clipped_mean import BoxRows
from skdp.location._range import REACH, plan_range, say_of_range
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_epsilon
from skdp.privacy.laws.additive import LaplaceMechanism

# Places of values: among public categories, or between public edges.


def check_categories(categories, n_features):
    """Return the categories of every feature, a list of ndarray, or raise a ValueError."""
    wrong = (
        "categories must be a list of at least two distinct values, for all features, or a list of "
        f"such lists, one for each of {n_features}; got {categories!r}."
    )
    given = list(categories)
    nested = [not isinstance(own, str) and hasattr(own, "__len__") for own in given]
    if any(nested) and not (all(nested) and len(given) == n_features):
        raise ValueError(wrong)
    lists = [list(own) for own in given] if any(nested) else [given] * n_features
    made = []
    for own in lists:
        values = [one.item() if isinstance(one, np.generic) else one for one in own]
        plain = all(isinstance(one, str | Real) and one == one for one in values)
        if not plain or len(set(values)) != len(values) or len(values) < 2:
            raise ValueError(wrong)
        alike = all(isinstance(one, str) for one in values) or all(
            isinstance(one, Real) for one in values
        )
        made.append(np.array(values, dtype=None if alike else object))
    return made


def check_sorts(X, categories, of_objects=False):
    """Raise if values of a feature are of another sort than all its categories; none is told.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Values of any type.
    categories : list of ndarray
        Those of every feature.
    of_objects : bool, default=False
        Whether objects are looked at, too. Their type tells nothing: one row could decide.
    """
    for j, own in enumerate(categories):
        if X.dtype.kind == "O" and not of_objects:
            return
        sorts, listed = _sorts_of(X[:, j]), _sorts_of(own)
        if not sorts & listed:
            raise ValueError(
                f"categories must have the types of the values: those of feature {j} are "
                f"{' and '.join(sorted(listed))}, and its values are "
                f"{' and '.join(sorted(sorts))}; got {own.tolist()!r}."
            )


def _sorts_of(values):
    """Return of what sorts the values of a feature are."""
    if values.dtype.kind in "biufU":
        return {"text" if values.dtype.kind == "U" else "numbers"}
    sorts = ((str, "text"), (Real, "numbers"), (object, "other objects"))
    return {next(name for kind, name in sorts if isinstance(v, kind)) for v in values.tolist()}


def empty_lists(counts, noise, n_rows):
    """Return the positions of lists of categories that hold next to no row, by released counts.

    Parameters
    ----------
    counts : list of ndarray
        Released counts of every list.
    noise : float
        Standard deviation of the noise of a count.
    n_rows : int
        Number of rows or groups.
    """
    least = [3 * noise * math.sqrt(len(own)) for own in counts]
    totals = [float(own.sum()) for own in counts]
    pairs = enumerate(zip(totals, least, strict=True))
    return [j for j, (total, few) in pairs if total < few < n_rows / 2]


def at_one_end(counts, noise, n_rows):
    """Return the positions of features of which next to all rows are in an end cell, as released.

    Parameters
    ----------
    counts, noise, n_rows : list of ndarray, float, int
        As for `empty_lists`; cells are those of edges, of which the outer ones hold what is beyond.
    """
    # of one cell it says nothing
    others = [n_rows - max(own[0], own[-1]) if len(own) > 1 else n_rows for own in counts]
    return [j for j, left in enumerate(others) if left <= 2 * noise <= n_rows / 10]


def category_places(X, categories):
    """Return the place of every value among the categories of its feature, or -1.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Values of any type.
    categories : list of ndarray
        Those of every feature.

    Returns
    -------
    places : ndarray of float64, shape (n_rows, n_features)
    """
    places = np.full(X.shape, -1.0)
    for j, own in enumerate(categories):
        place = {value: float(i) for i, value in enumerate(own.tolist())}
        for i, value in enumerate(X[:, j].tolist()):
            # what cannot be a key is no category
            if getattr(type(value), "__hash__", None) is not None:
                places[i, j] = place.get(value, -1.0)
    return places


def bin_places(X, edges):
    """Return the bin of every value, as `numpy.histogram` has it; of values beyond, the outermost.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Numbers; NaN is in no bin.
    edges : list of ndarray
        Those of every feature.

    Returns
    -------
    places : ndarray of float64, shape (n_rows, n_features)
        -1 for none.
    """
    places = np.empty(X.shape)
    for j, own in enumerate(edges):
        places[:, j] = np.searchsorted(own[1:-1], X[:, j], side="right")
    places[np.isnan(X)] = -1.0
    return places


def edges_of(bins, lower, upper, n_features):
    """Return the edges of every feature: those given, or those of equal bins between ends.

    Parameters
    ----------
    bins : int or ndarray
        Number of bins, or the edges of all features.
    lower, upper : ndarray of shape (n_features,) or None
        Ends of equal bins.
    n_features : int
        Number of features.

    Returns
    -------
    edges : list of ndarray
    """
    if np.ndim(bins):
        return [bins] * n_features
    parts = np.linspace(0.0, 1.0, bins + 1)
    return [
        np.append(low * (1 - parts[:-1]) + high * parts[:-1], high)
        for low, high in zip(lower, upper, strict=True)
    ]


def _check_bins(bins):
    """Return a number of bins, or their edges, or raise a ValueError."""
    if isinstance(bins, Integral):
        return int(bins)
    try:
        edges = np.asarray(bins)
    except ValueError:
        # lists of several lengths
        edges = np.zeros(0)
    usable = edges.ndim == 1 and edges.size > 1 and edges.dtype.kind in "iuf"
    if not (usable and np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
        raise ValueError(
            "bins must be a number of bins, or a list of at least two edges that increase, for all "
            f"features; got {bins!r}."
        )
    return edges.astype(np.float64)


def _say_of_lists(doubts, empty, unit):
    """Take note of features whose categories next to no row has, by released counts."""
    if len(empty):
        doubts.noise(
            f"almost no {unit} is in any category of feature(s) {doubts.named(empty)}, by the "
            "released counts. Compare categories with the values."
        )


def _say_of_ends(doubts, ends):
    """Take note of features with next to all values at one end of their bins."""
    if len(ends):
        doubts.noise(
            "next to all rows are in the first or the last cell of feature(s) "
            f"{doubts.named(ends)}, by the released counts, which holds what lies beyond the "
            "edges, too: compare the edges with the units of the values."
        )


class DPHistogram(PlanMixin, BaseEstimator):
    """Differentially private histogram of every feature, or counts of categories.

    All counts are released at once with Laplace noise, which is purely epsilon-DP. Edges and
    categories are public, or the range of equal bins is found privately within the same budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0, for all features together.
    bins : int or array-like, default=10
        Number of equal bins of every feature, or their edges, for all features. A bin holds its
        lower edge, and the last one its upper edge too, as in `numpy.histogram`; but values beyond
        are counted in the outermost bins.
    bounds : tuple, array-like of shape (n_features, 2) or dict, default=None
        Public bounds of equal bins: a pair (lower, upper) of numbers or arrays of shape
        (n_features,), or a pair for every feature, in order or by name. None draws a range of
        every feature, as `DPMean` does.
    categories : array-like, default=None
        Public categories, at least two, which are counted instead of bins: one list for all
        features, or a list of such lists, one for each. Other values are not counted. An array of
        text with categories that are numbers, or the reverse, is refused.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        Neighbouring data sets differ in one row ("replace-one"), in a null row in its place
        ("zero-out"), or in the presence of a row ("add-remove", where the number of rows is
        released first; otherwise it is public). See :ref:`adjacency`.
    max_weight : float, default=None
        Public bound on weights of rows, in [1e-50, 1e50]; larger weights are clipped to it. None:
        `fit` takes no weights (:ref:`sample_weight`).
    budget : PrivacyBudget, default=None
        A budget shared by several fits. Each fit is charged (epsilon, delta) before it reads a
        row, and refused if less is left.
    random_state : int, RandomState instance or None, default=None
        None draws the noise from the operating system. A seed makes the noise reproducible, voids
        the guarantee towards anybody who knows it, and warns.

    Attributes
    ----------
    counts_ : list of ndarray
        The released counts of every feature, noise included: they may be negative. With weights,
        sums of these.
    standard_error_ : float
        Standard deviation of the noise of a count; public.
    bin_edges_ : list of ndarray
        Edges of the bins of every feature; None with `categories`.
    categories_ : list of ndarray
        Categories of every feature; None without.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; delta is 0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    Warns
    -----
    PrivacyWarning
        If epsilon or delta is too large, or a parameter has no effect.
    NoisyEstimateWarning
        If there are too few rows for a private range, by public numbers; or if almost none is in
        any category, or almost all are in the first or the last of given bins, by the released
        counts.

    See Also
    --------
    DPQuantile : Private quantiles, which need no bounds.
    dp_describe : All columns of a table at once.
    LocalDPFrequencies : Frequencies without a trusted party.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every count. The number of rows or groups (a secret under add-remove), the number and names of
    features and all parameters are public. The counts of d features have the l1 sensitivity d under
    zero-out and 2 d under replace-one. A private range takes two draws by rank for each feature,
    which are added. Timing and exceptions on malformed input are not covered.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to
       sensitivity in private data analysis", TCC 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHistogram
    >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
    >>> histogram = DPHistogram(epsilon=0.5, bins=[18, 30, 50, 90], random_state=0).fit(ages)
    >>> np.abs(histogram.counts_[0] - [842, 1373, 2785]).max() < 100
    np.True_
    >>> round(histogram.standard_error_, 1)
    5.7
    >>> plans = np.array(["basic", "pro", "basic"] * 500)[:, None]
    >>> counts = DPHistogram(categories=["basic", "pro"], random_state=0).fit(plans).counts_
    >>> bool(np.abs(counts[0] - [1000, 500]).max() < 20)
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **{
            name: SHARED_CONSTRAINTS[name]
            for name in ("epsilon", "adjacency", "budget", "random_state")
        },
        "bins": [Interval(Integral, 1, 10**6, closed="both"), "array-like"],
        "bounds": [tuple, list, dict, np.ndarray, None],
        "categories": ["array-like", None],
        "max_weight": SCALE_OR_NONE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bins: int | ArrayLike = 10,
        bounds: Bounds | None = None,
        categories: ArrayLike | None = None,
        adjacency: Adjacency = "replace-one",
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.bins = bins
        self.bounds = bounds
        self.categories = categories
        self.adjacency = adjacency
        self.max_weight = max_weight
        self.budget = budget
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        groups: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Release the counts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private rows: numbers; with `categories` text too, or a data frame of both.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: a group counts
            in a bin by the part of its rows that lie there. The number of groups is public. None
            protects rows. See :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. Without public bins a twentieth of epsilon goes to their
            noisy total, by which a range is planned. See :ref:`sample_weight`.

        Returns
        -------
        self : DPHistogram
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon, bins = check_epsilon(self.epsilon), _check_bins(self.bins)
        # 2. validate
        options: dict[str, Any] = {} if self.categories is None else {"dtype": None}
        whole = whole_columns(X)
        try:
            X = validate_private_data(self, X, **options)
        except (TypeError, ValueError) as error:
            text = str(error)
            if options or not ("must be numeric" in text and FOR_TABLES in text):
                raise
            remedy = "For text give categories, the public values of every feature."
            raise type(error)(text.replace(FOR_TABLES, remedy)) from None
        # 3. plan, from public facts
        n_features, doubts = X.shape[1], Doubts(self)
        edges, categories, ranges = None, None, None
        if self.categories is not None:
            categories = check_categories(self.categories, n_features)
            check_sorts(X, categories)
            if self.bounds is not None:
                doubts.promise("bounds have no effect with categories. Give only one.")
        elif np.ndim(bins):
            if self.bounds is not None:
                doubts.promise("bounds have no effect with edges of bins. Give only one.")
            edges = edges_of(bins, None, None, n_features)
        elif self.bounds is not None:
            lower, upper = bounds_of(self, n_features)
            edges = edges_of(bins, lower, upper, n_features)
        (n_rows, unit), whose = count_rows(groups, X, hidden_count(self), sample_weight)
        if edges is None and categories is None:
            shape = {"n_rows": n_rows, "n_features": n_features}
            ranges = plan_range(epsilon, None, adjacency=self.adjacency, **shape)
            say_of_range(doubts, ranges, epsilon, unit)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: (
                ranges.admitted(X, counts_of(whose))
                if ranges
                else BoxRows(
                    bin_places(X, edges) if edges else category_places(X, categories),
                    None,
                    weight=counts_of(whose),
                )
            ),
            n_rows=n_rows,
            unit=unit,
            delta=0.0,
            doubts=doubts,
        ) as curator:
            left = epsilon
            if ranges is not None:
                lower, upper = ranges.run(curator, REACH, doubts, whole)
                edges = edges_of(bins, lower, upper, n_features)
                left = (epsilon - ranges.epsilon) * (1 - 1e-12)
                curator.map_rows(
                    lambda rows: BoxRows(bin_places(rows.X, edges), None, weight=rows.weight)
                )
            cells, beyond = (edges, 1) if edges else (categories or [], 0)
            sizes = [len(own) - beyond for own in cells]
            counts = curator.release(CellCounts(tuple(sizes)), LaplaceMechanism(left))
            noise = math.sqrt(2) * curator.ledger.releases[-1].noise.scale
            parts = np.split(counts, np.cumsum(sizes)[:-1])
            if categories:
                _say_of_lists(doubts, empty_lists(parts, noise, n_rows), unit)
            elif ranges is None:
                _say_of_ends(doubts, at_one_end(parts, noise, n_rows))
        # 6. attributes: what was released, and what is public
        heaviest = largest_weight(self) or 1.0
        self.counts_ = [heaviest * own for own in parts]
        self.standard_error_ = heaviest * noise
        self.bin_edges_, self.categories_ = edges, categories
        return self

    @property
    def _count_share(self):
        """Part of epsilon for the total of weights, by which nothing but a range is planned."""
        known = self.bounds is not None or self.categories is not None or np.ndim(self.bins)
        return 0.0 if known else 0.05

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = self.categories is not None
        return tags
