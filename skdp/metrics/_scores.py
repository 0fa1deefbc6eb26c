# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores with intervals: private means over held-out rows, and what all scores have in common.

A score of private rows is a statistic of them, and has a price like any other. Its interval counts
two errors. The rows are a sample, so the score of the population is another one; and what is
released has noise, whose law is public. Both are small against the score, or the interval is wide.
"""

import math
import warnings
from functools import partial
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from scipy.special import ndtri

from skdp._counted import (
    CellCounts,
    check_groups,
    count_rows,
    counted_first,
    counts_of,
    hidden_count,
)
from skdp._gate import open_gate
from skdp._rows.base import Box
from skdp._sklearn import SHARED_CONSTRAINTS, as_labels, coded, was_fitted_to
from skdp._typing import Adjacency, Budget, Estimator, MatrixLike, Seed, VectorLike
from skdp.exceptions import NoisyEstimateWarning, PrivacyWarning
from skdp.location._clipped_mean import BoxRows, RowSum
from skdp.model_selection._row_scorer import FLOOR
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.books.parts import leaves
from skdp.privacy.books.texts import a_kind
from skdp.privacy.kernel.accounting import as_float, check_delta, check_epsilon, level_of_caller
from skdp.privacy.kernel.samplers import noise_identity
from skdp.privacy.laws.additive import GaussianMechanism, LaplaceMechanism
from skdp.privacy.laws.calibration import gdp_mu, mu_of_all

_ADJACENCIES = ("replace-one", "zero-out", "add-remove")
_UNIT = Box((0.0,), (1.0,))
# shares of several releases add up to a hair less than the budget
_HAIR = 1 - 1e-9
# of probabilities in single precision
_ROUNDING = 1e-5
# knots between the bounds of targets, between two of which a row is shared; sums of parts of this
# size are exact
_KNOTS, _PART = 33, 2.0**-20
# accuracy that is rather a mistake in the labels, and part of the largest loss that is one
_NONE_RIGHT, _ALL_WRONG = 0.01, 0.98
_LABELS = (
    "almost every row counts as the worst prediction, by the released score. Compare classes with "
    "the labels in y_true, and sorted classes with the columns of y_proba."
)
_RESIDUALS = (
    "almost every residual is beyond residual_bound, by the released score, and counts as that. "
    "Compare the units of y_true and y_pred, or give a larger residual_bound."
)


class ScoreTerms(TypedDict, total=False):
    """ScoreTerms of a release of scores, all with a default."""

    delta: float
    groups: VectorLike | None
    sample_weight: VectorLike | None
    max_weight: float | None
    adjacency: Adjacency
    budget: Budget
    random_state: Seed
    confidence_level: float


def apart(terms: Any) -> tuple[VectorLike | None, VectorLike | None, dict[str, Any]]:
    """Return the groups and the weights of rows, and the other terms; or raise."""
    rest, known = dict(terms), sorted(ScoreTerms.__annotations__)
    if unknown := sorted(set(rest) - set(known)):
        raise TypeError(
            f"{unknown[0]} is no keyword of a score: give some of {', '.join(known)}, or those "
            "that its signature names."
        )
    groups, weight = rest.pop("groups", None), rest.pop("sample_weight", None)
    if weight is not None and rest.get("max_weight") is None:
        raise ValueError(
            "max_weight must be a public number with sample_weight, to which weights are clipped; "
            "got None. Noise grows with it. Do not compute it from private weights."
        )
    return groups, weight, rest


class DPScore(float):
    """A released score, a float with an interval.

    Parameters
    ----------
    value : float
        The score.
    interval : tuple of (float, float)
        Confidence interval of the score of the population that the rows were drawn from.
    confidence_level : float
        That of the interval.
    paid : HeldOutScores, default=None
        The release of a single score; None for one of several scores of a release.

    Attributes
    ----------
    interval : tuple of (float, float)
        Confidence interval, which includes the sampling of the rows and the noise.
    confidence_level : float
        That of the interval.
    ledger_ : Ledger
        The release; only for a score that was released alone.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent; only of a score that was released alone.

    See Also
    --------
    DPClassificationScores : Many scores of one release.

    Examples
    --------
    >>> from skdp.metrics import dp_accuracy_score
    >>> accuracy = dp_accuracy_score([0, 1] * 500, [0, 1, 1, 1] * 250, epsilon=1.0)
    >>> low, high = accuracy.interval
    >>> low <= accuracy <= high
    True
    >>> accuracy.privacy_spent_
    (1.0, 0.0)
    """

    interval: tuple[float, float]
    confidence_level: float
    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    def __new__(
        cls,
        value: float,
        interval: tuple[float, float],
        confidence_level: float,
        paid: Any = None,
    ) -> Self:
        score = super().__new__(cls, value)
        score.interval = (float(interval[0]), float(interval[1]))
        score.confidence_level = confidence_level
        if paid is not None:
            score.ledger_, score.privacy_spent_ = paid.ledger_, paid.privacy_spent_
        return score

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.interval, self.confidence_level

    def __neg__(self) -> "DPScore":
        low, high = self.interval
        score = DPScore(-float(self), (-high, -low), self.confidence_level)
        score.__dict__.update({k: v for k, v in vars(self).items() if k.endswith("_")})
        return score

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{float(self):.4g} ({self.confidence_level:.0%} interval: {low:.4g} to {high:.4g})"


class HeldOutScores:
    """What was paid for scores of private rows: the base of everything here.

    Parameters
    ----------
    epsilon, delta : float
        Price of the release. At delta = 0 the noise is Laplace, else Gaussian.
    adjacency, budget, random_state : str, PrivacyBudget or None, int or None
        As for estimators.
    confidence_level : float
        Of all intervals.
    max_weight : float or None
        Public bound on weights of rows.
    """

    # of epsilon, for a number of rows that is a secret, or for the total of weights
    _count_share = 0.1

    ledger_: Ledger
    privacy_spent_: tuple[float, float]

    def __init__(
        self,
        epsilon: float,
        *,
        delta: float = 0.0,
        adjacency: Adjacency = "replace-one",
        budget: Budget = None,
        random_state: Seed = None,
        confidence_level: float = 0.95,
        max_weight: float | None = None,
    ) -> None:
        self.epsilon, self.delta = check_epsilon(epsilon), check_delta(delta)
        level = as_float(confidence_level)
        if not 0.5 <= level < 1:
            raise ValueError(
                f"confidence_level must be a number in [0.5, 1); got {confidence_level!r}."
            )
        if not isinstance(adjacency, str) or adjacency not in _ADJACENCIES:
            raise ValueError(f"adjacency must be one of {_ADJACENCIES}; got {adjacency!r}.")
        if max_weight is not None and not 1e-50 <= as_float(max_weight) <= 1e50:
            raise ValueError(
                f"max_weight must be None or a number in [1e-50, 1e50]; got {max_weight!r}."
            )
        if budget is not None and not SHARED_CONSTRAINTS["budget"][0].is_satisfied_by(budget):
            raise ValueError(f"budget must be a PrivacyBudget or None; got {a_kind(budget)}.")
        self.adjacency, self.budget, self.random_state = adjacency, budget, random_state
        self.confidence_level = level
        self.max_weight = None if max_weight is None else as_float(max_weight)
        if budget is not None:
            name = type(self).__name__
            seeded = {} if random_state is None else {"stream": noise_identity(random_state, name)}
            budget.check(self.epsilon, self.delta, **seeded)

    #: names of the scores that a release always has
    _listed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        head = f"{type(self).__name__}(epsilon={self.epsilon:.4g}, delta={self.delta:.4g})"
        if not hasattr(self, "ledger_"):
            return head
        lines = [f"  {name:<20} {getattr(self, name)!r}" for name in self._listed]
        return "\n".join([head, *lines])

    @property
    def _mu(self):
        """Gaussian-DP parameter of the whole release; None at delta = 0."""
        return mu_of_all(self.epsilon, self.delta) if self.delta else None

    def _laws(self, *shares):
        """Return the laws of releases that get these shares of the budget."""
        whole = 1.0 if len(shares) == 1 else _HAIR
        if self.delta:
            mu = gdp_mu(self.epsilon, self.delta) * whole
            return [GaussianMechanism(mu * math.sqrt(share)) for share in shares]
        return [LaplaceMechanism(self.epsilon * share * whole) for share in shares]

    def _width(self, sampling, noise):
        """Return half the width of an interval, from a variance of the rows and one of the noise.

        A sum of Laplace noise has lighter tails than one draw, whose quantile it gets.
        """
        tail = (1 - self.confidence_level) / 2
        normal, law = -ndtri(tail), -ndtri(tail)
        if not self.delta:
            law = max(normal, -math.log(2 * tail) / math.sqrt(2))
        return math.sqrt(normal**2 * sampling + law**2 * noise)


def paid_for(name, epsilon, rest):
    """Return what is paid for a function, after which budgets and warnings call it."""
    return under_name(name, HeldOutScores)(epsilon, **rest)


def under_name(name, kind):
    """Return a kind of scores by which budgets and warnings know the function that was called."""
    return type(name, (kind,), {})


def noise_in(ledger):
    """Return the standard deviation of the noise of the last release; public."""
    noise = ledger.releases[-1].noise
    return noise.scale * (math.sqrt(2) if noise.law == "laplace" else 1.0)


def warn_of_seen_rows(name, estimator, X):
    """Warn if a step of an estimator was fitted to these rows; no value of them is looked at."""
    if any(was_fitted_to(part, X) for _, part in leaves(estimator)):
        warnings.warn(
            f"{name}: the model was fitted to these rows, so scores are too high and their "
            "intervals are not valid. Their cost adds to what the model has spent on the same "
            "people. Score held-out rows instead.",
            PrivacyWarning,
            stacklevel=level_of_caller(),
        )


def paired(y_true, y_pred):
    """Return two columns of labels of equal length, or raise."""
    first, second = as_labels(y_true), as_labels(y_pred)
    if len(first) != len(second) or not len(first):
        raise ValueError(
            "y_true and y_pred must have one entry for each row, and at least one; got "
            f"{len(first)} and {len(second)}."
        )
    return first, second


def real_column(values, name, n_rows=None):
    """Return real and finite numbers in float64, or raise without a value."""
    try:
        found = np.asarray(values)
        found = found.astype(np.float64) if found.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        found = None
    if found is None or found.ndim not in (1, 2) or not found.size:
        raise ValueError(f"{name} must be one real number for each row, and at least one row.")
    if found.ndim == 2:
        if found.shape[1] != 1:
            raise ValueError(
                f"{name} must be one number for each row; got an array of shape {found.shape}."
            )
        found = found[:, 0]
    if n_rows is not None and len(found) != n_rows:
        raise ValueError(f"{name} must have one entry for each of {n_rows} rows; got {len(found)}.")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite: it contains NaN or infinity.")
    return found


def check_chances(proba, name, remedy=""):
    """Raise if these are no probabilities, but for rounding: what a model has learned decides."""
    if proba.min() < -_ROUNDING or proba.max() > 1 + _ROUNDING:
        raise ValueError(f"{name} must be probabilities, between 0 and 1{remedy}.")


def no_label(y):
    """Return which labels are missing: None, NaN, or what does not know what it equals."""
    if y.dtype.kind != "O":
        return np.asarray(y != y)
    return np.array([not _is_label(label, label) for label in y.tolist()], dtype=bool)


def _is_label(one, other):
    """Return whether two labels of any type are one."""
    try:
        return one is not None and bool(one == other)
    except (TypeError, ValueError):
        return False


def _hits(given, found):
    """Return which predictions are right, whatever labels are; types that never meet raise."""
    kinds = given.dtype.kind, found.dtype.kind
    if "O" in kinds:
        pairs = zip(given.tolist(), found.tolist(), strict=True)
        return np.array([_is_label(one, other) for one, other in pairs], dtype=bool)
    if ("U" in kinds) != (kinds[0] == kinds[1] == "U"):
        raise ValueError(
            f"y_true and y_pred must be labels of one type; got {given.dtype} and {found.dtype}."
        )
    return given == found


class ScoreColumns(BoxRows):
    """Numbers in [0, 1] about held-out rows, of which one column is there at a time.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Private; NaN for a null row.
    weight : ndarray of shape (n_rows,) or None
        What rows count.
    column : int, default=0
        That is there.
    """

    def __init__(self, table, weight, column=0):
        self.table, self.weight = table, weight
        super().__init__(table[:, [column]], _UNIT, weight=weight)


def released_means(asked, columns, shares, null, own, n_knots=0):
    """Release means over rows of numbers in [0, 1].

    Parameters
    ----------
    asked : HeldOutScores
        ScoreTerms; gets the ledger.
    columns : list of ndarray of shape (n_rows,)
        Private numbers; what lies outside of [0, 1] is clipped.
    shares : tuple of float
        What every mean gets of the budget.
    null : ndarray of shape (n_rows,), dtype bool
        Rows that are null rows under zero-out.
    own : tuple of array-like or None
        Whose row it is, and its weight.
    n_knots : int, default=0
        Of the last column not the mean is released, but what there is at that many even knots.

    Returns
    -------
    means : list of (float, float)
        What was released, between 0 and 1, and the variance of its noise. At knots: parts, the
        variance of the noise of each, and the relative deviation of what they are parts of.
    n_rows : int
        Number of rows or groups, or the total of the weights; released where it is a secret.
    """
    groups, weight = own
    check_groups(asked, groups)
    table = np.column_stack(columns).astype(np.float64)
    means = []
    with counted_first(asked, weight is not None):
        hidden = hidden_count(asked)
        (n_rows, unit), whose = count_rows(groups, table, hidden, weight)
        table[null & (asked.adjacency == "zero-out")] = np.nan
        unsure = 0.0 if hidden is None else noise_in(hidden.ledger) / n_rows
        with open_gate(
            asked,
            lambda: ScoreColumns(table, counts_of(whose)),
            n_rows=n_rows,
            unit=unit,
            delta=asked.delta,
            mu=asked._mu,
        ) as curator:
            for column, law in enumerate(asked._laws(*shares)):
                if n_knots and column == len(columns) - 1:
                    curator.map_rows(partial(_at_knots, n_knots=n_knots))
                    query = CellCounts((n_knots,), "rows shared between knots of targets")
                    parts = curator.release(query, law) / n_rows
                    means.append((parts, (noise_in(curator.ledger) / n_rows) ** 2, unsure))
                    continue
                curator.map_rows(partial(_turned, column=column))
                # around the middle, where null rows count
                away = curator.release(RowSum(_UNIT, 1), law)[0] / (2 * n_rows)
                noise = math.hypot(noise_in(curator.ledger) / (2 * n_rows), away * unsure)
                means.append((float(np.clip(away + 0.5, 0.0, 1.0)), noise**2))
    return means, n_rows


def _turned(rows, column):
    """Return rows with another column."""
    return ScoreColumns(rows.table, rows.weight, column)


def _at_knots(rows, n_knots):
    """Return every row as two, at the knots beside its last number, with weights that add up to 1.

    As a group of two rows. A function that is linear between knots has the same mean at the knots.
    """
    place = rows.table[:, -1] * (n_knots - 1)
    there = ~np.isnan(place)
    low = np.where(there, np.clip(np.floor(place), 0, n_knots - 2), -1.0)
    high = np.where(there, low + 1, -1.0)
    part = np.where(there, np.clip(np.rint((place - low) / _PART) * _PART, 0.0, 1.0), 0.0)
    weight = 1.0 if rows.weight is None else rows.weight
    weights = np.concatenate([(1.0 - part) * weight, part * weight])
    return BoxRows(np.concatenate([low, high])[:, None], None, weight=weights)


def dp_accuracy_score(
    y_true: VectorLike, y_pred: VectorLike, *, epsilon: float, **terms: Unpack[ScoreTerms]
) -> DPScore:
    """Release the share of right predictions on private rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private labels, of any type, and predictions.
    epsilon : float
        Price in nats, greater than 0.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    accuracy : DPScore
        A float in [0, 1] with an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    Warns
    -----
    NoisyEstimateWarning
        If almost no prediction is right, by the released score: labels may be spelt in two ways.

    See Also
    --------
    DPConfusionMatrix : Which labels are mistaken for which.

    Notes
    -----
    One row moves the mean by 1 / n (zero-out: 1 / (2 n)). The interval is Wilson's, with the noise:
    all p with ``(accuracy - p)**2 <= z**2 p (1 - p) / n + noise``.

    Examples
    --------
    >>> from skdp.metrics import dp_accuracy_score
    >>> accuracy = dp_accuracy_score(["a", "b"] * 500, ["a"] * 1000, epsilon=1.0)
    >>> 0.4 < accuracy < 0.6
    True
    """
    *own, rest = apart(terms)
    asked = paid_for("dp_accuracy_score", epsilon, rest)
    given, found = paired(y_true, y_pred)
    missing = no_label(given)
    hits = _hits(given, found)
    ((share, noise),), n_rows = released_means(asked, [hits], (1.0,), missing, own)
    interval = wilson(asked, share, n_rows, noise)
    if interval[1] < _NONE_RIGHT:
        warnings.warn(
            "dp_accuracy_score: almost no prediction is right, by the released score. y_pred must "
            "hold labels as in y_true, not probabilities.",
            NoisyEstimateWarning,
            stacklevel=level_of_caller(),
        )
    return DPScore(share, interval, asked.confidence_level, asked)


def wilson(asked, share, n_rows, noise):
    """Return the interval of Wilson for a share with noise of a known variance."""
    # (share - p)^2 = a p (1 - p) + b
    a = asked._width(1.0, 0.0) ** 2 / n_rows
    b = asked._width(0.0, 1.0) ** 2 * noise
    middle = (2 * share + a) / (2 * (1 + a))
    root = math.sqrt(max(middle**2 - (share**2 - b) / (1 + a), 0.0))
    return max(middle - root, 0.0), min(middle + root, 1.0)


def _mean_loss(asked, loss, most, null, own, doubt):
    """Release a mean loss in [0, most], and its interval by the mean of its square."""
    part = np.clip(loss / most, 0.0, 1.0)
    means, n_rows = released_means(asked, [part, part**2], (0.8, 0.2), null, own)
    (mean, noise), (square, loud) = means
    # no loss in [0, 1] varies more than m (1 - m); its square says how much less, with its noise
    spread = min(mean * (1 - mean), square + asked._width(0.0, loud) - mean**2)
    few = asked._width(1.0, 0.0) ** 2 / n_rows
    half = asked._width(max(spread, 0.0) / n_rows, noise)
    low, high = max(mean - half, 0.0), min(mean + half + few / 2, 1.0)
    interval = most * low, most * high
    if low > _ALL_WRONG:
        text = f"{type(asked).__name__}: {doubt}"
        warnings.warn(text, NoisyEstimateWarning, stacklevel=level_of_caller())
    return DPScore(most * mean, interval, asked.confidence_level, asked)


def _chance_of_labels(y_true, y_proba, classes):
    """Return the probability of every row's label, and rows whose label is no class."""
    labels = as_labels(y_true)
    known = np.unique(np.asarray(classes))
    codes, missing = coded(labels, known)
    try:
        proba = np.asarray(y_proba, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "y_proba must be probabilities, between 0 and 1; got text, or other objects. Pass what "
            "predict_proba returns."
        ) from None
    if proba.ndim == 1 and len(known) == 2:
        proba = np.column_stack([1 - proba, proba])
    if proba.shape != (len(labels), len(known)) or not len(labels):
        raise ValueError(
            f"y_proba must have a row for each label and a column for each of {len(known)} "
            f"classes; got shape {np.shape(y_proba)} for {len(labels)} labels."
        )
    if not np.isfinite(proba).all():
        raise ValueError("y_proba must be finite: it contains NaN or infinity.")
    check_chances(proba, "y_proba")
    chance = np.clip(proba[np.arange(len(labels)), codes], 0.0, 1.0)
    return np.where(missing, 0.0, chance), missing, proba, codes


def dp_log_loss(
    y_true: VectorLike,
    y_proba: MatrixLike,
    *,
    epsilon: float,
    classes: VectorLike,
    floor: float = FLOOR,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release the mean logarithmic loss of probabilities on private rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Private labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, in the order of sorted `classes`; of two classes those of the second suffice.
    epsilon : float
        Price in nats, greater than 0.
    classes : array-like of shape (n_classes,)
        Public label set. A label that is not in it counts as one of probability 0.
    floor : float, default=0.001
        Public: smaller probabilities count as this. One row moves the mean by -log(floor) / n.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    loss : DPScore
        A float from 0 to -log(floor), with an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    Warns
    -----
    NoisyEstimateWarning
        If nearly every row counts as the worst prediction, by the released score.

    See Also
    --------
    DPClassificationScores : Many scores of one release, this one among them.

    Notes
    -----
    A fifth of the budget goes to the mean square of the loss, for the width of the interval.

    Examples
    --------
    >>> from skdp.metrics import dp_log_loss
    >>> loss = dp_log_loss([0, 1] * 500, [0.1, 0.9] * 500, epsilon=1.0, classes=[0, 1])
    >>> 0 <= loss < 0.2
    True
    """
    *own, rest = apart(terms)
    asked = paid_for("dp_log_loss", epsilon, rest)
    if not 0 < as_float(floor) < 1:
        raise ValueError(f"floor must be a number greater than 0 and less than 1; got {floor!r}.")
    chance, missing, *_ = _chance_of_labels(y_true, y_proba, classes)
    loss = -np.log(np.maximum(chance, floor))
    return _mean_loss(asked, loss, -math.log(floor), missing, own, _LABELS)


def dp_brier_score_loss(
    y_true: VectorLike,
    y_proba: MatrixLike,
    *,
    epsilon: float,
    classes: VectorLike,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release the mean squared error of probabilities on private rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Private labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, in the order of sorted `classes`; of two classes those of the second suffice.
    epsilon : float
        Price in nats, greater than 0.
    classes : array-like of shape (n_classes,)
        Public label set. A row whose label is not in it counts as the worst prediction.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    loss : DPScore
        A float from 0 to 1 for two classes, to 2 for more: the sum of squares over classes, halved
        for two as scikit-learn does it. With an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    Warns
    -----
    NoisyEstimateWarning
        If nearly every row counts as the worst prediction, by the released score.

    See Also
    --------
    DPClassificationScores : Many scores of one release, this one among them.

    Examples
    --------
    >>> from skdp.metrics import dp_brier_score_loss
    >>> loss = dp_brier_score_loss([0, 1] * 500, [0.1, 0.9] * 500, epsilon=1.0, classes=[0, 1])
    >>> 0 <= loss < 0.05
    True
    """
    *own, rest = apart(terms)
    asked = paid_for("dp_brier_score_loss", epsilon, rest)
    _, missing, proba, codes = _chance_of_labels(y_true, y_proba, classes)
    proba = np.clip(proba, 0.0, 1.0)
    right = codes[:, None] == np.arange(proba.shape[1])
    most = 1.0 if proba.shape[1] == 2 else 2.0
    loss = ((proba - right) ** 2).sum(axis=1) * (most / 2)
    return _mean_loss(asked, np.where(missing, most, loss), most, missing, own, _LABELS)


class DPRegressionScores(HeldOutScores):
    """Private scores of a regressor on held-out rows: absolute and squared error, and R².

    Made by `from_predictions` and `from_estimator`, like displays of scikit-learn. Four means of
    bounded numbers are released together; everything else follows from them.

    Parameters
    ----------
    epsilon, delta : float
        Price of the release. At delta = 0 the noise is Laplace, else Gaussian.
    adjacency, budget, random_state : str, PrivacyBudget or None, int or None
        As for estimators.
    confidence_level : float
        Of all intervals.
    max_weight : float or None
        Public bound on weights of rows, which count in this unit.

    Attributes
    ----------
    mean_absolute_error, mean_squared_error, r2 : DPScore
        Scores with intervals. Residuals beyond `residual_bound` count as that bound, and targets
        out of `bounds` as the nearest one.
    n_rows : int
        Number of rows or groups, or the total of weights, public or released.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.

    See Also
    --------
    DPClassificationScores : The same for classifiers.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which counts with the mean of its
    rows. The number of rows or groups and all parameters are public; with weights, or
    "add-remove", their total or number is released first. Each of the four means moves
    by 1 / n of its range at most (zero-out: half of that).

    Intervals. How much errors vary is bounded by the released means: ``E r² - (E |r|)²`` for
    absolute errors; for squared ones by what is possible with both means, below the bound. That of
    `r2` is Fieller's, of the squared error and the variance of the targets. They are conservative,
    and shorter the tighter `bounds` and `residual_bound` are: give both.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import DPRegressionScores
    >>> y = np.linspace(0, 10, 4000)
    >>> scores = DPRegressionScores.from_predictions(
    ...     y, y + np.sin(9 * y), epsilon=1.0, bounds=(0, 10), residual_bound=2.0
    ... )
    >>> bool(0.9 < scores.r2 <= 1.0)
    True
    >>> bool(0.5 < scores.mean_absolute_error < 0.8)
    True
    """

    _listed = ("mean_absolute_error", "mean_squared_error", "r2")

    mean_absolute_error: DPScore
    mean_squared_error: DPScore
    r2: DPScore
    n_rows: int

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: VectorLike,
        *,
        epsilon: float,
        bounds: tuple[float, float],
        residual_bound: float | None = None,
        **terms: Unpack[ScoreTerms],
    ) -> Self:
        """Release the scores of a fitted regressor.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            Private rows that the estimator was not fitted to, and their targets.
        epsilon : float
            Price in nats, greater than 0.
        bounds, residual_bound, **terms : object
            As for `from_predictions`.

        Returns
        -------
        scores : DPRegressionScores
            With a ledger of its own.
        """
        asked: Any = {"epsilon": epsilon, "bounds": bounds, "residual_bound": residual_bound}
        # refused before a row is looked at
        cls(epsilon, **apart(terms)[-1])
        warn_of_seen_rows(cls.__name__, estimator, X)
        return cls.from_predictions(y, estimator.predict(X), **asked, **terms)

    @classmethod
    def from_predictions(
        cls,
        y_true: VectorLike,
        y_pred: VectorLike,
        *,
        epsilon: float,
        bounds: tuple[float, float],
        residual_bound: float | None = None,
        **terms: Unpack[ScoreTerms],
    ) -> Self:
        """Release the scores of predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Private targets, and predictions.
        epsilon : float
            Price in nats, greater than 0.
        bounds : tuple of (float, float)
            Public bounds of the targets. Targets and predictions outside are clipped.
        residual_bound : float, default=None
            Public bound on absolute residuals; longer ones count as that. None is the distance of
            the bounds. Noise grows in proportion: four standard deviations are a good choice.
        **terms : dict
            `groups`, `sample_weight`, `adjacency` and others, as for
            :meth:`DPClassificationScores.from_predictions`.

        Returns
        -------
        scores : DPRegressionScores
            With a ledger of its own.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left.
        """
        *own, rest = apart(terms)
        asked = cls(epsilon, **rest)
        far, place, most, half = _in_bounds(y_true, y_pred, bounds, residual_bound)
        columns = [far, far**2, (place + 1) / 2, place**2]
        nobody = np.zeros(len(far), dtype=bool)
        means, asked.n_rows = released_means(asked, columns, (0.2, 0.35, 0.15, 0.3), nobody, own)
        asked._judge(means, most, half)
        return asked

    def _judge(self, means, most, half):
        """Make scores of released means."""
        (error, e_noise), (square, s_noise), (first, f_noise), (second, p_noise) = means
        few = self._width(1.0, 0.0) ** 2 / self.n_rows

        def scored(value, spread, noise, unit):
            side = self._width(max(spread, 0.0) / self.n_rows, noise)
            interval = max(value - side, 0.0), min(value + side + few / 2, 1.0)
            ends = unit * interval[0], unit * interval[1]
            return DPScore(unit * value, ends, self.confidence_level)

        spread = min(error * (1 - error), square + self._width(0.0, s_noise) - error**2)
        self.mean_absolute_error = scored(error, spread, e_noise, most)
        squares = _most_spread(max(error - self._width(0.0, e_noise), 0.0), square)
        self.mean_squared_error = scored(square, squares, s_noise, most**2)
        # of targets in units of half the distance of the bounds
        place = 2 * first - 1
        variance = float(np.clip(second - place**2, 0.0, 1.0))
        loud = p_noise + (4 * place) ** 2 * f_noise
        # no square of a distance from the mean is longer than (1 + |place|)^2
        sampled = variance * ((1 + abs(place)) ** 2 - variance) / self.n_rows
        unit = (most / half) ** 2
        total = (variance, sampled, loud)
        errors = unit**2 * squares / self.n_rows, unit**2 * s_noise
        low, _ = self._quotient((unit * square, *errors), total)
        _, high = self._quotient((unit * (square + few / 2), *errors), total)
        r2 = 1 - unit * square / variance if variance > 0 else -math.inf
        self.r2 = DPScore(r2, (min(1 - high, r2), max(1 - low, r2)), self.confidence_level)
        _say_of_targets(self, "r2", self.r2.interval, 1 - abs(place), 2 * math.sqrt(f_noise))

    def _quotient(self, part, total):
        """Return the interval of the quotient of two means, by Fieller's theorem.

        It holds every q for which part - q total is no further from 0 than its errors explain.
        Those of sampling may go together; noises are independent. Means come with both variances.
        """
        (top, top_rows, top_noise), (whole, rows, noise) = part, total
        z, law = self._width(1.0, 0.0) ** 2, self._width(0.0, 1.0) ** 2
        # a q^2 - 2 b q + c <= 0
        a = whole**2 - z * rows - law * noise
        b = top * whole + z * math.sqrt(top_rows * rows)
        c = top**2 - z * top_rows - law * top_noise
        far = b + math.sqrt(max(b**2 - a * c, 0.0))
        return max(c, 0.0) / far if far > 0 else 0.0, far / a if a > 0 else math.inf


def _say_of_targets(asked, name, interval, inside, noise):
    """Warn if targets lie at an end of bounds, or noise may be all that they differ by.

    Released numbers decide: `inside` is how far their mean, in units of half the bounds, or all of
    them, as a part, are from an end; `noise` is the standard deviation of the noise in it.
    """
    if inside <= 2 * noise <= 0.02:
        told = (
            "the targets lie at an end of bounds, or beyond, and are clipped, or bounds are far "
            f"too wide: {name} says next to nothing of them. Give bounds that hold them closely."
        )
    elif math.isinf(interval[0]):
        told = (
            f"the variance of the targets may be noise only, so the interval of {name} has no "
            "lower end. Give tighter bounds and a residual_bound, or use more rows or a larger "
            "epsilon."
        )
    else:
        return
    warnings.warn(
        f"{type(asked).__name__}: {told}", NoisyEstimateWarning, stacklevel=level_of_caller()
    )


def _most_spread(mean, square):
    """Return the largest variance of squares of numbers in [0, 1], by mean and mean square.

    All but a part of them, which are 1, are equal then: of given first two moments that has the
    largest fourth one. Means have noise: those that no numbers have are moved up.
    """
    mean = max(mean, square)
    square = max(square, mean**2)
    if square >= 1:
        return 0.0
    ones = (square - mean**2) / (1 - 2 * mean + square)
    others = (mean - square) / (1 - mean)
    return max(ones + (1 - ones) * others**4 - square**2, 0.0)


def _in_bounds(y_true, y_pred, bounds, residual_bound):
    """Return residuals in [0, 1], targets in [-1, 1] and the two units; or raise a ValueError."""
    try:
        low, high = map(as_float, bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (-1e150 < low < high < 1e150):
        raise ValueError(
            "bounds must be a pair (low, high) of numbers within 1e150, low below high; got "
            f"{bounds!r}."
        )
    most = high - low if residual_bound is None else as_float(residual_bound)
    if not 0 < most <= high - low:
        raise ValueError(
            "residual_bound must be greater than 0 and at most the distance of the bounds; "
            f"got {residual_bound!r}."
        )
    target = np.clip(real_column(y_true, "y_true"), low, high)
    found = np.clip(real_column(y_pred, "y_pred", len(target)), low, high)
    far = np.minimum(np.abs(target - found) / most, 1.0)
    half = (high - low) / 2
    return far, (target - (low + high) / 2) / half, most, half


def dp_mean_absolute_error(
    y_true: VectorLike,
    y_pred: VectorLike,
    *,
    epsilon: float,
    residual_bound: float,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release the mean absolute error of predictions on private rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets, and predictions.
    epsilon : float
        Price in nats, greater than 0.
    residual_bound : float
        Public bound on absolute residuals; longer ones count as that. One row moves the mean by
        residual_bound / n.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    error : DPScore
        A float from 0 to `residual_bound`, with an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    Warns
    -----
    NoisyEstimateWarning
        If nearly every residual is beyond `residual_bound`, by the released score.

    See Also
    --------
    DPRegressionScores : This, the squared error and R² of one release.

    Examples
    --------
    >>> from skdp.metrics import dp_mean_absolute_error
    >>> error = dp_mean_absolute_error([1.0] * 900, [1.5] * 900, epsilon=1.0, residual_bound=2.0)
    >>> 0.4 < error < 0.6
    True
    """
    name = "dp_mean_absolute_error"
    return _mean_residual(name, y_true, y_pred, epsilon, residual_bound, 1, terms)


def dp_mean_squared_error(
    y_true: VectorLike,
    y_pred: VectorLike,
    *,
    epsilon: float,
    residual_bound: float,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release the mean squared error of predictions on private rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets, and predictions.
    epsilon : float
        Price in nats, greater than 0.
    residual_bound : float
        Public bound on absolute residuals; longer ones count as that. One row moves the mean by
        residual_bound**2 / n.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    error : DPScore
        A float from 0 to ``residual_bound**2``, with an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    Warns
    -----
    NoisyEstimateWarning
        If nearly every residual is beyond `residual_bound`, by the released score.

    See Also
    --------
    DPRegressionScores : This, the absolute error and R² of one release.

    Examples
    --------
    >>> from skdp.metrics import dp_mean_squared_error
    >>> error = dp_mean_squared_error([1.0] * 900, [1.5] * 900, epsilon=1.0, residual_bound=1.0)
    >>> 0.2 < error < 0.3
    True
    """
    name = "dp_mean_squared_error"
    return _mean_residual(name, y_true, y_pred, epsilon, residual_bound, 2, terms)


def _mean_residual(name, y_true, y_pred, epsilon, residual_bound, power, terms):
    """Release the mean of a power of absolute residuals."""
    *own, rest = apart(terms)
    asked = paid_for(name, epsilon, rest)
    most = as_float(residual_bound)
    if not 0 < most < 1e150:
        raise ValueError(
            f"residual_bound must be a number greater than 0, below 1e150; got {residual_bound!r}."
        )
    target = real_column(y_true, "y_true")
    found = real_column(y_pred, "y_pred", len(target))
    with np.errstate(over="ignore", under="ignore"):
        # halves: the distance of two floats may be infinite
        far = np.minimum(np.abs(target / 2 - found / 2) / (most / 2), 1.0)
        far = most**power * far**power
    null = np.zeros(len(target), dtype=bool)
    return _mean_loss(asked, far, most**power, null, own, _RESIDUALS)


def dp_r2_score(
    y_true: VectorLike,
    y_pred: VectorLike,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    residual_bound: float | None = None,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release the coefficient of determination of predictions on private rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets, and predictions.
    epsilon : float
        Price in nats, greater than 0.
    bounds : tuple of (float, float)
        Public bounds of the targets. Targets and predictions outside are clipped.
    residual_bound : float, default=None
        Public bound on absolute residuals; None is the distance of the bounds.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    r2 : DPScore
        A float of at most 1, with an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    See Also
    --------
    DPRegressionScores : This and the errors, of one release at the same price.

    Examples
    --------
    >>> from skdp.metrics import dp_r2_score
    >>> r2 = dp_r2_score([0.0, 1.0] * 900, [0.1, 0.9] * 900, epsilon=2.0, bounds=(0, 1))
    >>> 0.8 < r2 <= 1
    True
    """
    scores = DPRegressionScores.from_predictions(
        y_true, y_pred, epsilon=epsilon, bounds=bounds, residual_bound=residual_bound, **terms
    )
    return DPScore(scores.r2, scores.r2.interval, scores.confidence_level, scores)


def dp_d2_absolute_error_score(
    y_true: VectorLike,
    y_pred: VectorLike,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    residual_bound: float | None = None,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release D²: the part of the absolute error of the median that predictions explain.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets, and predictions.
    epsilon : float
        Price in nats, greater than 0.
    bounds : tuple of (float, float)
        Public bounds of the targets. Targets and predictions outside are clipped.
    residual_bound : float, default=None
        Public bound on absolute residuals; None is the distance of the bounds.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    d2 : DPScore
        A float of at most 1, with an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    See Also
    --------
    dp_r2_score : The same for squares, and the mean.

    Notes
    -----
    Two releases: the mean absolute residual, for two fifths of the price, and how the targets are
    spread over 33 even knots between the bounds. A row is shared between the knots beside its
    target, as a group of two rows would be, so that the mean distance of the targets from any knot
    follows exactly. The smallest of these stands for that from the median. It is larger, by no more
    than the distances from the knots beside are larger still, for a mean distance is convex; the
    interval counts that, the sampling and both noises.

    Examples
    --------
    >>> from skdp.metrics import dp_d2_absolute_error_score
    >>> y, found = [0.0, 1.0] * 900, [0.1, 0.9] * 900
    >>> d2 = dp_d2_absolute_error_score(y, found, epsilon=2.0, bounds=(0, 1))
    >>> 0.7 < d2 < 0.9
    True
    """
    *own, rest = apart(terms)
    asked = paid_for("dp_d2_absolute_error_score", epsilon, rest)
    far, place, most, half = _in_bounds(y_true, y_pred, bounds, residual_bound)
    nobody = np.zeros(len(far), dtype=bool)
    columns = [far, (place + 1) / 2]
    means, n_rows = released_means(asked, columns, (0.4, 0.6), nobody, own, _KNOTS)
    (error, e_noise), (parts, loud, unsure) = means
    knots = np.linspace(0.0, 1.0, _KNOTS)
    distances = np.abs(knots[:, None] - knots)
    # parts of a whole: what noise adds to all of them is taken off
    parts = parts + (1 - parts.sum()) / _KNOTS
    means_from = distances @ parts
    j = int(means_from.argmin())
    away, own_distances = float(means_from[j]), distances[j]
    off = own_distances - own_distances.mean()
    noise = loud * (off @ off) + ((own_distances.mean() - away) * unsure) ** 2
    spread = max(float(own_distances**2 @ parts) - away**2, 0.0)
    beside = means_from[[k for k in (j - 1, j + 1) if 0 <= k < _KNOTS]]
    wide = asked._width(spread / n_rows, noise)
    few = asked._width(1.0, 0.0) ** 2 / n_rows
    side = asked._width(max(error * (1 - error), 0.0) / n_rows, e_noise)
    unit = most / (2 * half)
    d2 = 1 - unit * error / away if away > 0 else -math.inf
    least = 2 * away - float(beside.max()) - wide
    lowest = 1 - unit * min(error + side + few / 2, 1.0) / least if least > 0 else -math.inf
    highest = 1 - unit * max(error - side, 0.0) / min(max(away, 0.0) + wide, 0.5)
    interval = min(lowest, d2), max(highest, d2)
    _say_of_targets(asked, "d2", interval, 1 - max(parts[0], parts[-1]), math.sqrt(loud))
    return DPScore(d2, interval, asked.confidence_level, asked)
