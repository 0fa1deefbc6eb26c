# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Selection of the features that occur in most rows, by private counts.

The number of rows in which every feature is not zero is released with noise (`PresenceCount`),
as in the selection of DP-FEST (Ghazi et al., NeurIPS 2023); what is kept follows from it.
"""

import math
import operator
import warnings
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._counted import check_groups, count_rows, counts_of, hidden_count, largest_weight
from skdp._export import TwinMixin, selector
from skdp._gate import open_gate
from skdp._plan import PlanMixin
from skdp._rows.base import L2Ball, sum_over
from skdp._rows.streams import RowStream, first_rows
from skdp._sklearn import (
    SCALE_OR_NONE,
    SHARED_CONSTRAINTS,
    Interval,
    effective_n_threads,
    fit_context,
    validate_private_data,
)
from skdp._typing import Adjacency, Budget, MatrixLike, Seed, VectorLike
from skdp.location._sparse_noisy import entries, sparse_rows
from skdp.preprocessing._base import map_rows
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.accounting import check_delta, check_epsilon
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_of_all

# a count for every feature has to fit in memory
_MOST_FEATURES = 2**31


@dataclass(frozen=True)
class PresenceCount:
    """For every feature, the number of rows in which it is not zero.

    Parameters
    ----------
    n_features : int
        Dimension d.
    sparsity : int
        No row has more non-zero entries.
    """

    n_features: int
    sparsity: int

    #: what the statistic is
    name = "number of rows in which a feature is not zero"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the l1 and l2 sensitivities.

        Proof. A row contributes an indicator of at most s features: l1 norm s, l2 norm
        sqrt(s). Zero-out removes one. Under replace-one the difference of two has entries -1,
        0 and 1, and at most 2 s of them, or d, are not 0. A group, whose weights add up to at
        most 1, contributes a mean of indicators, and of zero: it is no longer, and two are no
        further apart, than the farthest of these.
        """
        features = min(self.sparsity, self.n_features)
        theorem = "a row has few features"
        if adjacency == "replace-one":
            features = min(2 * features, self.n_features)
            theorem = "two rows have few features that are not shared"
        return Sensitivity(float(features), math.sqrt(features), float(n_rows), theorem)

    def partial(self, chunk):
        """Return the counts over a chunk's rows."""
        columns, _, rows = entries(chunk)
        weight = None if chunk.weight is None else chunk.weight[rows]
        return np.bincount(columns, weight, minlength=self.size).astype(np.float64)

    def evaluate(self, rows):
        """Return the counts over all rows, an array of shape (n_features,)."""
        return sum_over(rows, self.partial, self.size)


class DPFrequentFeatures(TwinMixin, PlanMixin, SelectorMixin, BaseEstimator):
    """Keep the most frequent features, by differentially private counts.

    For text, one-hot tables and clicks, whose features are many and mostly rare. The number of
    rows in which a feature is not zero is released with noise for every feature, and the selection
    follows from these counts. A rare feature may be kept by chance; a frequent one is lost only if
    its count is close to the last one kept. Sparse rows stay sparse.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget in nats, greater than 0.
    delta : float, default=1e-6
        Privacy budget in [0, 1). At 0 the counts have Laplace noise, proportional to `sparsity`;
        otherwise Gaussian noise, proportional to its root.
    n_features_to_select : int, default=None
        Number of features to keep; all, if there are fewer. None keeps half of them, or, if
        a `threshold` is given, as many as exceed it.
    threshold : float, default=None
        Public number of rows, or sum of weights: features whose noisy count does not exceed it are
        not kept.
    sparsity : int, default=64
        Public largest number of features that count in one row: of longer rows only the entries of
        largest magnitude count.
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
    counts_ : ndarray of shape (n_features,)
        The released counts, noise included: they may be negative, or exceed the number
        of rows. With weights, sums of these.
    support_ : ndarray of shape (n_features,), dtype bool
        Mask of the selected features: those of the largest counts; of equal counts the first.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, if X had string names.

    See Also
    --------
    DPSparseMeanEstimator : Private mean of sparse rows, over open dictionaries too.
    sklearn.feature_selection.VarianceThreshold : Learns from the data, which is not private.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    every sum or count. The number of rows or groups (a secret under add-remove), the number and
    names of features and all parameters are public. With s for `sparsity`, the counts have
    sensitivity sqrt(s) (l2) and s (l1) under zero-out, sqrt(2 s) and 2 s under replace-one. The
    selection follows from the released counts, at no further cost; the price of a following
    estimator is added, see `privacy_spent`. `transform` treats every row on its own, but its result
    is as private as its input. Timing and exceptions on malformed input are not covered.

    Accuracy. With Gaussian noise of standard deviation sigma on d counts, the noise stays
    below ``sigma * sqrt(2 log(2 d))`` with a probability of more than one half; features
    that occur in fewer rows than twice that are hard to tell from absent ones. A
    smaller `sparsity` lowers sigma, and forgets features of long rows.

    References
    ----------
    .. [1] B. Ghazi, Y. Huang, P. Kamath, R. Kumar, P. Manurangsi, A. Sinha and C. Zhang,
       "Sparsity-preserving differentially private training of large embedding models",
       NeurIPS 2023 (the selection of DP-FEST).
    .. [2] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential
       privacy", ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from skdp import DPFrequentFeatures
    >>> words = np.random.default_rng(0).zipf(1.5, size=(5000, 8)) % 2**16
    >>> rows = np.repeat(np.arange(5000), 8)
    >>> X = sparse.csr_array((np.ones(40_000), (rows, words.ravel())), shape=(5000, 2**16))
    >>> selector = DPFrequentFeatures(n_features_to_select=20, sparsity=8, random_state=0)
    >>> selector.fit_transform(X).shape
    (5000, 20)
    >>> [int(i) for i in selector.get_support(indices=True)[:5]]
    [1, 2, 3, 4, 5]
    >>> selector.privacy_spent_[0] <= 1.0
    True
    """

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    # nothing is divided by a total of weights
    _count_share = 0.0
    # where metadata are routed; without groups a fit protects rows
    __metadata_request__fit = {"groups": True}
    _parameter_constraints = {
        **{name: SHARED_CONSTRAINTS[name] for name in ("epsilon", "delta", "adjacency")},
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "sparsity": [Interval(Integral, 1, None, closed="left")],
        "max_weight": SCALE_OR_NONE,
        "budget": SHARED_CONSTRAINTS["budget"],
        "random_state": SHARED_CONSTRAINTS["random_state"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_features_to_select: int | None = None,
        threshold: float | None = None,
        sparsity: int = 64,
        adjacency: Adjacency = "replace-one",
        max_weight: float | None = None,
        budget: Budget = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.sparsity = sparsity
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
        """Release the counts, and choose.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored.
        groups : array-like or RowStream of shape (n_samples,), default=None
            Whose row it is: numbers, or text. All rows of a group are protected together, whatever
            their number, and count as one row does, each as one over their number: a group counts
            for a feature by the part of its rows that have it. The number of groups is public.
            Beside a stream of rows also one of identifiers, or an array. None protects rows. See
            :ref:`groups`.
        sample_weight : array-like of shape (n_samples,), default=None
            Private weights of the rows, finite and not negative; only with `max_weight`. Weights
            beyond that count as that. Their total costs nothing: counts are not divided by it. See
            :ref:`sample_weight`.

        Returns
        -------
        self : DPFrequentFeatures
            Fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        check_groups(self, groups)
        # 1. price, before any data
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        price = GaussianMechanism(gdp_mu(epsilon, delta)) if delta else LaplaceMechanism(epsilon)
        sparsity = _at_least_one("sparsity", self.sparsity)
        # 2. validate
        X = validate_private_data(self, X, streams=True, accept_sparse="csr", order="C")
        # 3. plan, from public facts
        n_features = X.shape[1]
        most = self._most(n_features)
        (n_rows, unit), whose = count_rows(groups, X, hidden_count(self), sample_weight)
        # 4. gate, 5. run
        with open_gate(
            self,
            lambda: sparse_rows(
                X,
                L2Ball(1.0),
                sparsity,
                n_threads=effective_n_threads(),
                weight=counts_of(whose),
            ),
            n_rows=n_rows,
            unit=unit,
            delta=delta,
            mu=mu_of_all(epsilon, delta) if delta else None,
        ) as curator:
            counts = curator.release(PresenceCount(n_features, sparsity), price)
        # 6. attributes: what was released, and what is public
        counts *= largest_weight(self) or 1.0
        support = np.zeros(n_features, dtype=bool)
        support[np.argsort(-counts, kind="stable")[:most]] = True
        if self.threshold is not None:
            support &= counts > self.threshold
        self.counts_, self.support_ = counts, support
        return self

    def _most(self, n_features):
        """Return how many features are kept at most, or raise for what makes no sense."""
        if n_features > _MOST_FEATURES:
            raise ValueError(
                f"a count for each of {n_features} features does not fit in memory: hash the "
                f"features to at most {_MOST_FEATURES}."
            )
        number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (number and abs(self.threshold) < np.inf):
            raise ValueError(f"threshold must be a finite number or None; got {self.threshold!r}.")
        if self.n_features_to_select is not None:
            return _at_least_one("n_features_to_select", self.n_features_to_select)
        return n_features if self.threshold is not None else max(1, n_features // 2)

    def transform(self, X: MatrixLike) -> Any:
        """Keep the chosen features.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_features)
            Rows; never changed.

        Returns
        -------
        X_transformed : {ndarray, CSR or CSC matrix} or RowStream of shape (n_samples, n_selected)
            In the format and floating-point type of X. If no feature was chosen it has no
            columns, and scikit-learn warns; that follows from the released counts.
        """
        check_is_fitted(self)
        if not isinstance(X, RowStream):
            return map_rows(self, X, self._transform)
        kept = np.flatnonzero(self.support_)
        if not len(kept):
            # as scikit-learn does for an array
            warnings.warn("No features were selected.", UserWarning, stacklevel=2)
        return map_rows(self, X, partial(selected_columns, columns=kept))

    def inverse_transform(self, X: MatrixLike) -> Any:
        """Put zeros where features were not kept.

        Parameters
        ----------
        X : {array-like, sparse matrix} or RowStream of shape (n_samples, n_selected)
            Transformed rows; never changed.

        Returns
        -------
        X_original : {ndarray, CSC matrix} or RowStream of shape (n_samples, n_features)
            Rows with all features. Sparse rows of a stream remain CSR.
        """
        check_is_fitted(self)
        if not isinstance(X, RowStream):
            return super().inverse_transform(X)
        kept = np.flatnonzero(self.support_)
        if first_rows(X).shape[1] != len(kept):
            raise ValueError("X has a different shape than during fitting.")
        return X.map(partial(spread, columns=kept, n_features=len(self.support_)))

    def _twin(self):
        return selector(self.support_, self.counts_)

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _at_least_one(name, value):
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    return number


def selected_columns(X, columns):
    """Return some columns of rows, in the format of X."""
    return X[:, columns]


def spread(X, columns, n_features):
    """Return rows of which X has some columns, with zeros in the others.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns)
        Never changed.
    columns : ndarray of int64, sorted
        Where its columns belong.
    n_features : int
        Number of all columns.

    Returns
    -------
    rows : ndarray or CSR array of shape (n_rows, n_features)
    """
    shape = X.shape[0], n_features
    if sparse.issparse(X):
        return sparse.csr_array((X.data, columns[X.indices], X.indptr), shape=shape)
    rows = np.zeros(shape, dtype=X.dtype)
    rows[:, columns] = X
    return rows
