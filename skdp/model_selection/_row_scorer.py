# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores that a search can release: bounded means over rows, and their queries."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdp._quantiles import rate
from skdp._rows.base import CHUNKS_PER_BLOCK, SMALLEST_CHUNK, sum_over
from skdp._sklearn import as_labels, check_sample_weight, coded
from skdp._typing import Estimator, MatrixLike, VectorLike
from skdp.privacy.books.functions import (
    assumption_about,
    is_known,
    made_up_tables,
    mixes_rows,
    mixing,
)
from skdp.privacy.books.texts import a_kind
from skdp.privacy.kernel.mechanisms import Sensitivity
from skdp.privacy.laws.exponential import weighted_choice

#: probabilities below count as this in "neg_log_loss"
FLOOR = 1e-3


class RowScorer:
    """Mean over rows of a bounded score of single rows.

    One row changes such a mean by at most the width of the bounds over the number of rows. No such
    limit is known for other scores.

    Parameters
    ----------
    function : callable
        ``function(estimator, X, y)`` returns an array with one number for every row of X. The
        number of a row must depend on the fitted estimator, that row and its target only, not on
        other rows or on data that the function keeps. The ledger of a search records this
        assumption. A function that visibly mixes made-up rows is refused. Its output and
        exceptions are not covered.
    bounds : tuple of (float, float)
        Public, finite bounds, the lower one first. Numbers outside are clipped; NaN counts as the
        lower bound.

    Raises
    ------
    TypeError
        If `function` cannot be called.
    ValueError
        If `bounds` is not a pair of finite numbers, the lower one first.

    See Also
    --------
    DPGridSearchCV : A search that chooses by such scores.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLpRegressor
    >>> from skdp.model_selection import RowScorer
    >>> def closeness(estimator, X, y):
    ...     return -np.abs(y - estimator.predict(X))
    >>> scorer = RowScorer(closeness, bounds=(-1.0, 0.0))
    >>> X, y = np.eye(3), np.array([0.0, 0.5, 9.0])
    >>> model = DPLpRegressor(epsilon=1.0, random_state=0).fit(X, y)
    >>> -1.0 <= scorer(model, X, y) <= 0.0
    True
    """

    def __init__(self, function: Callable[..., Any], *, bounds: tuple[float, float]) -> None:
        if not callable(function):
            raise TypeError(
                f"function must be callable as function(estimator, X, y); got {a_kind(function)}."
            )
        try:
            low, high = (float(bound) for bound in bounds)
        except (TypeError, ValueError):
            low = high = math.nan
        if not -math.inf < low < high < math.inf:
            raise ValueError(
                "bounds must be a pair (low, high) of finite numbers, low below high; got "
                f"{bounds!r}."
            )
        self.function, self.bounds = function, (low, high)

    def __repr__(self):
        name = getattr(self.function, "__name__", repr(self.function))
        return f"RowScorer({name}, bounds={self.bounds})"

    def __eq__(self, other):
        if not isinstance(other, RowScorer):
            return NotImplemented
        return (self.function, self.bounds) == (other.function, other.bounds)

    def __hash__(self):
        return hash((self.function, self.bounds))

    def of_rows(self, estimator: Estimator, X: MatrixLike, y: VectorLike | None) -> np.ndarray:
        """Return the score of every row, before it is clipped.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            Rows and targets.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in float64. Warnings of the function are suppressed: they might depend on rows.

        Raises
        ------
        ValueError
            If the function does not return one number for every row.
        """
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            scores = np.asarray(self.function(estimator, X, y))
            if scores.shape == (n_rows,) and scores.dtype.kind in "biufO":
                try:
                    return scores.astype(np.float64)
                except (TypeError, ValueError):
                    pass  # below, without a value
            # neither a length nor that of a text: both may have been computed from rows
            found = f"of {scores.ndim} dimensions" if scores.ndim != 1 else "of another length"
            if scores.shape == (n_rows,):
                found = f"of type {scores.dtype.type.__name__}"
            raise ValueError(
                f"the function of a RowScorer must return {n_rows} real numbers for {n_rows} "
                f"rows; got an array {found}."
            ) from None

    def __call__(
        self,
        estimator: Estimator,
        X: MatrixLike,
        y: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> float:
        """Return the exact mean score of rows, which is not private.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            Rows and targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows in the mean, not negative; None is 1 each.

        Returns
        -------
        score : float
            Within the bounds.
        """
        low, high = self.bounds
        scores = self.of_rows(estimator, X, y)
        scores = np.clip(np.where(np.isnan(scores), low, scores), low, high)
        if sample_weight is None:
            return float(np.mean(scores))
        weights = check_sample_weight(sample_weight, scores, ensure_non_negative=True)
        return float(np.average(scores, weights=weights))


def accuracy(estimator, X, y):
    """Return 1.0 for every row with a correct prediction, 0.0 for the others."""
    if hasattr(estimator, "classes_"):
        # a label may be anything
        (found, _), (given, missing) = (
            coded(as_labels(labels), estimator.classes_) for labels in (estimator.predict(X), y)
        )
        return ((found == given) & ~missing).astype(np.float64)
    return (np.asarray(estimator.predict(X)) == np.asarray(y)).astype(np.float64)


def neg_log_loss(estimator, X, y):
    """Return the log of the probability of every row's label; -inf for unknown labels."""
    proba, classes = estimator.predict_proba(X), estimator.classes_
    codes, missing = coded(as_labels(y), classes)
    hit = (codes[:, None] == np.arange(len(classes))) & ~missing[:, None]
    with np.errstate(divide="ignore"):
        return np.log(np.where(hit, proba, 0.0).sum(axis=1))


#: the scores that have a name
BY_NAME = {
    "accuracy": RowScorer(accuracy, bounds=(0.0, 1.0)),
    "neg_log_loss": RowScorer(neg_log_loss, bounds=(math.log(FLOOR), 0.0)),
}
#: what a model needs for them
NEEDS = {accuracy: "predict", neg_log_loss: "predict_proba"}


def check_methods(scorer, models, listed):
    """Raise a ValueError if a candidate lacks a method that a named score needs.

    Parameters
    ----------
    scorer : RowScorer
        Scorer of the candidates.
    models, listed : list of estimator, list of dict
        The candidates.
    """
    method = NEEDS.get(scorer.function)
    for model, params in zip(models, listed, strict=True):
        if method and not hasattr(model, method):
            raise ValueError(
                f"scoring must be something else for the candidate {params!r}, which has no "
                f"{method}; got {scorer!r}."
            )


def resolve_scoring(scoring, estimator):
    """Return the `RowScorer` for a `scoring` parameter.

    Parameters
    ----------
    scoring : str, RowScorer or None
        None is "accuracy" for classifiers.
    estimator : estimator
        Estimator to tune.

    Returns
    -------
    scorer : RowScorer
        Scorer with public bounds.

    Raises
    ------
    ValueError
        If no bound is known on the change of the score by one row.
    """
    if scoring is None and is_classifier(estimator):
        scoring = "accuracy"
    if isinstance(scoring, RowScorer):
        return scoring
    if isinstance(scoring, str) and scoring in BY_NAME:
        return BY_NAME[scoring]
    if scoring is None:
        raise ValueError(
            f"scoring must be given for {type(estimator).__name__}, which is no classifier: a "
            "RowScorer, whose bounds say how far one row moves the score. Got None."
        )
    if hasattr(scoring, "terms_of_score"):
        raise ValueError(
            f"scoring must be None, one of {sorted(BY_NAME)}, or a RowScorer with bounds: this "
            "search pays for the choice of the winner at once. A scorer that pays for every score "
            f"is for GridSearchCV or cross_val_score of scikit-learn; got {scoring!r}."
        )
    if isinstance(scoring, list | tuple | set | dict):
        reason = "a search releases one score, and several would have to be paid for"
    else:
        reason = "nobody knows how far one row moves it: it may read anything"
    raise ValueError(
        f"scoring must be None, one of {sorted(BY_NAME)}, or a RowScorer with bounds; got "
        f"{scoring!r}. Another score cannot be released, since {reason}."
    )


class _StandIn:
    """Stand-in for a fitted estimator, with predictions for made-up rows, row by row."""

    classes_ = np.arange(2)

    def decision_function(self, X):
        return X[:, 0] - 0.5

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)

    def predict_proba(self, X):
        share = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.column_stack([1 - share, share])

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))


def assumed_scorer(scorer):
    """Return the assumptions about a score on private rows, or raise.

    Parameters
    ----------
    scorer : RowScorer
        Scorer of private rows.

    Returns
    -------
    assumptions : tuple of str
        Assumptions for the ledger; none for named scores.

    Raises
    ------
    ValueError
        If it visibly mixes rows.
    """
    if is_known(scorer.function):
        return ()
    function, rows = partial(scorer.function, _StandIn()), [rows for (rows,) in made_up_tables()]
    numbers, labels = ([(X, made(X)) for X in rows] for made in (_made_up_numbers, _made_up_labels))
    if mixes_rows(function, numbers) or mixes_rows(function, labels):
        raise ValueError(f"scoring cannot use {mixing(scorer.function, 'a RowScorer')}.")
    return (assumption_about(scorer.function, "a RowScorer"),)


def _made_up_numbers(X):
    return X.sum(axis=1)


def _made_up_labels(X):
    return np.arange(len(X)) % 2


# Queries: the mean score of one candidate on held-out rows, and the choice of one.


#: a score is a whole number of steps, of which the range has this many
STEPS = 1 << 20
# numbers in a chunk, about
_ENTRIES = 1 << 18


class HeldOutRows:
    """Scores of held-out rows, in whole steps from the lower bound.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_candidates)
        Real numbers. Values that are not finite or out of bounds are clipped to the nearest bound,
        NaN to the lower one.
    low, high : float
        Public bounds.
    null : array-like of bool, default=False
        Null rows, which count as the middle of the bounds.
    groups : ndarray of shape (n_rows,), dtype int64, default=None
        Group of every row. Then every group is one row, with the mean scores of its rows: a
        function of these rows only, in their order.
    weight : ndarray of shape (n_rows,), default=None
        Weights of rows, in [0, 1]. They shrink scores towards the middle of the bounds, which is
        the score of a row with weight 0. None for 1 each.
    """

    n_threads = 1

    def __init__(self, scores, low, high, null=False, groups=None, weight=None):
        scores = np.array(scores, dtype=np.float64, ndmin=2)
        # whether a number overflows or underflows depends on the row: nobody is to be told
        with np.errstate(all="ignore"):
            scores = np.clip(np.where(np.isnan(scores), low, scores), low, high)
            # halves: the width of the bounds may be infinite
            share = (scores / 2 - low / 2) / (high / 2 - low / 2)
            # bounds so near that they have no middle: every row counts the same
            share = np.clip(np.nan_to_num(share, nan=0.5), 0.0, 1.0)
            share = np.where(null, 0.5, share)
            if weight is not None:
                share = 0.5 + weight[:, None] * (share - 0.5)
            if groups is not None:
                _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
                share = [np.bincount(codes, column) / sizes for column in share.T]
                share = np.clip(np.column_stack(share), 0.0, 1.0)
            self._steps = np.rint(share * STEPS).astype(np.int32)
        self.n_rows, self.n_entries = len(self._steps), self._steps.size

    @property
    def chunks(self):
        """Parts of the table; they depend on its shape only."""
        n_rows, width = self._steps.shape
        length = max(SMALLEST_CHUNK, _ENTRIES // (CHUNKS_PER_BLOCK * width))
        return [self._steps[start : start + length] for start in range(0, n_rows, length)]

    def totals(self):
        """Return the totals of candidates over all rows, in steps from the middle of the bounds.

        Integers below 2^52 for up to 2^31 rows: sums of floats are exact.
        """
        width = self._steps.shape[1]
        return sum_over(self, lambda part: (part - STEPS / 2).sum(axis=0), width)


def _change(adjacency):
    """Return the change of a total by one row in units of the range, and the reason."""
    if adjacency == "zero-out":
        return 0.5, "a row counts within half a range of 0, a null row counts as 0"
    return 1.0, "a row moves a total by one range at most"


@dataclass(frozen=True)
class HeldOutScore:
    """Mean score of one candidate over held-out rows, as a share of its range.

    Parameters
    ----------
    column : int, default=0
        Position of the candidate; public.

    Notes
    -----
    The contribution of a row is its score in units of the range, minus 1/2, times its weight in
    [0, 1]; for a null row it is 0.
    """

    column: int = 0

    #: nothing here is a float that rounds
    idealised = False
    name = "mean score on held-out rows"
    size = 1

    def sensitivity(self, adjacency, n_rows):
        """State 1 / n, or half of it under zero-out.

        Proof. A row counts as a number in [-1/2, 1/2], over n; with a weight as one between that
        and 0. Another value moves that by 1 / n at most; a null row counts as 0.
        """
        ranges, theorem = _change(adjacency)
        moved = ranges / n_rows
        return Sensitivity(l1=moved, l2=moved, bound=0.5, theorem=theorem)

    def evaluate(self, rows):
        """Return the mean."""
        totals = rows.totals()
        return np.array([totals[self.column] / (STEPS * rows.n_rows)])


@dataclass(frozen=True)
class HeldOutChoice:
    """Index of a candidate, drawn with probability exp(total score / temperature).

    Parameters
    ----------
    n_candidates : int
        Number of candidates.

    Notes
    -----
    Totals are whole numbers of steps, and the draw has exact probabilities.
    """

    n_candidates: int

    idealised = False
    size = 1

    @property
    def name(self):
        """Name of the statistic."""
        return f"choice among {self.n_candidates} candidates by scores on held-out rows"

    def sensitivity(self, adjacency, n_rows):
        """State the spread, in steps: twice the range, or the range under zero-out.

        Proof. The change of a candidate's total lies in [-R, R], R being the range of one
        score if a row takes another value, and half of it if the row becomes null. The
        largest change and the smallest one are at most 2 R apart. A weight in [0, 1] draws the
        scores of a row to the middle, where they stay within the same range.
        """
        ranges, theorem = _change(adjacency)
        bound = float(max(1, self.n_candidates))
        return Sensitivity(math.inf, math.inf, bound, theorem, spread=2 * ranges * STEPS)

    def outcomes(self, *sides):
        """Return all indices; see `ExponentialMechanism`."""
        return np.arange(float(self.n_candidates))[:, None], np.ones(self.n_candidates)

    def scores_of(self, rows, outcomes):
        """Return the scores of some indices; see `ExponentialMechanism`."""
        return -rows.totals()[outcomes[:, 0].astype(np.int64)]

    def draw(self, rows, noise, source):
        """Return the index at the temperature ``noise.scale``."""
        totals = rows.totals().astype(np.int64)
        steps = totals.max() - totals
        index = weighted_choice(np.ones(len(steps)), steps, rate(1, noise.scale), source)
        return np.array([float(index)])
