# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores of classifiers from one table of private counts: labels against predictions, or scores.

A row falls into one cell: its label, and its predicted label, or the bin of its score. One release
of all cells is as cheap as that of one, and every score of a classifier is a function of them. If T
does not change when all counts double, its variance over samples of rows is ``sum c g^2``, c being
the counts and g the gradient of T: DeLong's, if T is the AUC. Noise of variance v adds ``sum v
g^2``. So one formula serves all intervals, and the curves, losses and shares of one release agree.
"""

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from skdp._counted import (
    CellCounts,
    check_groups,
    count_rows,
    counted_first,
    counts_of,
    hidden_count,
)
from skdp._gate import Doubts, open_gate
from skdp._sklearn import resolve_classes
from skdp._typing import Estimator, MatrixLike, VectorLike
from skdp.location._clipped_mean import BoxRows
from skdp.metrics._scores import (
    DPScore,
    HeldOutScores,
    ScoreTerms,
    apart,
    check_chances,
    noise_in,
    paired,
    real_column,
    under_name,
    warn_of_seen_rows,
    wilson,
)
from skdp.privacy.books.texts import a_kind

# part of the budget that finds bins; and their number, in roots of the rows over the noise: of .35,
# .5 and .7 the first had the least error of AUC, log-loss and accuracy at 2,000 and 16,000 rows
_BINS_SHARE, _BINS, _FEWEST_BINS, _MOST_BINS = 0.15, 0.35, 8, 64
# a bin is crowded by rows beyond so many times its share, whose scores nothing tells apart; and
# which part of all rows is worth a warning
_CROWDED, _MANY = 3.0, 0.5
# an area under the curve is on one side of 1/2 if so many deviations away
_UNSURE = 3.0
# a number of rows is known if so many standard deviations of its noise are less than it
_KNOWN = 4.0
# part of the rows without a cell that is worth a warning
_AWAY = 0.05
# fewer cells are not worth a search for bins
_FEWEST_CELLS = 12
_TABLE = "rows of each label and prediction"


class CellRows(BoxRows):
    """Held-out rows, each with its label and its score, and the cell that follows from them.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), dtype int64
        Position of the label; -1 for a null row.
    scores : ndarray of shape (n_rows, n_scored)
        Scores of the second of two classes, or of all classes; or cells of one table.
    weight : ndarray of shape (n_rows,), default=None
        What rows count, those of a group 1 together; None for 1 each.
    edges : list of ndarray of shape (n_bins - 1,), default=None
        Ends of bins (a, b] of the scores of each class. None: scores are cells already.
    labelled : bool, default=True
        Whether cells tell if the row is of the class. Of several classes there is then a first
        table, of the label and the class with the largest score.
    """

    def __init__(self, codes, scores, weight=None, edges=None, labelled=True):
        self.codes, self.scores, self.weight = codes, scores, weight
        cells = scores if edges is None else self._in_bins(edges, labelled)
        super().__init__(np.where(codes[:, None] < 0, -1, cells), None, weight=weight)

    def _in_bins(self, edges, labelled):
        """Return the cells of rows in the table of every class."""
        codes, scores = self.codes, self.scores
        places = [np.searchsorted(own, scores[:, k], side="left") for k, own in enumerate(edges)]
        if labelled:
            several = len(edges) > 1
            for k, own in enumerate(edges):
                places[k] = places[k] + (codes == (k if several else 1)) * (own.size + 1)
            if several:
                places.insert(0, codes * len(edges) + scores.argmax(axis=1))
        return np.column_stack(places)


@dataclass(frozen=True)
class Estimate:
    """A score before it has an interval.

    Parameters
    ----------
    value, sampling, noise : float
        With the variances of the sampling of rows, and of the noise.
    known : bool
        Whether the numbers of rows that it is divided by are known.
    off : tuple of (float, float), default=(0.0, 0.0)
        By what bins may have it too large, and too small.
    """

    value: float
    sampling: float
    noise: float
    known: bool
    off: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def sum_of(cls, parts, weight=1.0):
        """Return a multiple of the sum of estimates of the same rows, each with noise of its own.

        However they depend on each other, the deviation of a sum is no larger than their sum.
        """
        off = weight * np.sum([part.off for part in parts], axis=0)
        return cls(
            weight * sum(part.value for part in parts),
            (weight * sum(math.sqrt(part.sampling) for part in parts)) ** 2,
            weight**2 * sum(part.noise for part in parts),
            all(part.known for part in parts),
            (float(off[0]), float(off[1])),
        )


class DPConfusionMatrix(HeldOutScores):
    """Private confusion matrix of held-out rows, in one release, with scores computed from it.

    Made by `from_predictions` and `from_estimator`, like displays of scikit-learn.

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
    classes_ : ndarray of shape (n_classes,)
        Public label set, sorted.
    matrix : ndarray of shape (n_classes, n_classes)
        Noisy numbers of rows, labels in rows and predictions in columns, none below 0: what
        ``ConfusionMatrixDisplay(scores.matrix, display_labels=scores.classes_)`` takes.
    noise : float
        Standard deviation of the noise of a count; public.
    accuracy, balanced_accuracy : DPScore
        With intervals.
    n_rows : int
        Number of rows or groups, or the total of weights, public or released.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.

    Warns
    -----
    PrivacyWarning
        If the estimator was fitted to the same rows.
    NoisyEstimateWarning
        If a class has too few rows for the noise, by released numbers.

    See Also
    --------
    DPClassificationScores : This, curves and losses.
    dp_accuracy_score : The accuracy alone, with less noise.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    the counts. The number of rows or groups, the label set and all parameters are public; with
    weights, or "add-remove", their total or number is released first. A row is in one cell: the
    sensitivity is 2 in l1 and sqrt(2) in l2 (zero-out: 1 and 1), whatever the
    number of classes. Rows whose label or prediction is not in the label set are null rows, and
    count nowhere; a warning says so if they are many, by released numbers.

    Scores on training rows are too high, and their intervals do not cover; their price adds to
    that of the model. `from_estimator` warns if rows are in the same object, or the same memory,
    as the training rows of a step in this process; it cannot detect copies.

    Intervals include the sampling of rows (or groups), by the delta method, and the noise. Two or
    three rows are added to every class where a variance is estimated, so that a score of 0 or 1
    has an interval, too. A class with too few rows for a known count has (0, 1).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression, privacy_spent
    >>> from skdp.metrics import DPConfusionMatrix
    >>> X, y = make_classification(4000, n_classes=3, n_informative=4, random_state=0)
    >>> model = DPLogisticRegression(epsilon=2.0, classes=[0, 1, 2], data_norm=6.0)
    >>> model = model.fit(X[:3000], y[:3000])
    >>> scores = DPConfusionMatrix.from_estimator(model, X[3000:], y[3000:], epsilon=0.5)
    >>> scores.matrix.shape
    (3, 3)
    >>> low, high = scores.accuracy.interval
    >>> low <= scores.accuracy <= high
    True
    >>> epsilon, delta = privacy_spent(model, scores)
    >>> epsilon <= 2.5
    True
    """

    _listed = ("accuracy", "balanced_accuracy")

    classes_: NDArray[Any]
    noise: float
    n_rows: int
    _counts: NDArray[np.float64]
    _predicted: NDArray[np.intp]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: VectorLike,
        *,
        epsilon: float,
        **terms: Unpack[ScoreTerms],
    ) -> Self:
        """Release the confusion matrix of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            Fitted; its `classes_` are the public label set.
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            Private rows that the estimator was not fitted to, and their labels.
        epsilon : float
            Price in nats, greater than 0.
        **terms : dict
            As for `from_predictions`.

        Returns
        -------
        scores : DPConfusionMatrix
            With a ledger of its own.
        """
        # refused before a row is looked at
        cls(epsilon, **apart(terms)[-1])
        warn_of_seen_rows(cls.__name__, estimator, X)
        classes = classes_of(estimator)
        found = estimator.predict(X)
        return cls.from_predictions(y, found, epsilon=epsilon, classes=classes, **terms)

    @classmethod
    def from_predictions(
        cls,
        y_true: VectorLike,
        y_pred: VectorLike,
        *,
        epsilon: float,
        classes: VectorLike,
        **terms: Unpack[ScoreTerms],
    ) -> Self:
        """Release the confusion matrix of predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Private labels, and predictions.
        epsilon : float
            Price in nats, greater than 0.
        classes : array-like of shape (n_classes,)
            Public label set, at least two.
        **terms : dict
            `groups`, `sample_weight`, `adjacency` and others, as for
            :meth:`DPClassificationScores.from_predictions`.

        Returns
        -------
        scores : DPConfusionMatrix
            With a ledger of its own.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        groups, sample_weight, rest = apart(terms)
        asked = cls(epsilon, **rest)
        y_true, y_pred = paired(y_true, y_pred)
        classes = given_classes(classes)
        known, codes, outside, _ = resolve_classes(y_true, classes)
        _, found, beyond, _ = resolve_classes(y_pred, classes)
        cells = np.where(outside | beyond, -1, codes * len(known) + found)
        check_groups(asked, groups)
        doubts = Doubts(cls.__name__)
        with counted_first(asked, sample_weight is not None):
            hidden = hidden_count(asked)
            (asked.n_rows, unit), whose = count_rows(groups, cells, hidden, sample_weight)
            (law,) = asked._laws(1.0)
            with open_gate(
                asked,
                lambda: CellRows(cells, cells[:, None], counts_of(whose)),
                n_rows=asked.n_rows,
                unit=unit,
                delta=asked.delta,
                mu=asked._mu,
                doubts=doubts,
            ) as curator:
                counts = curator.release(CellCounts((len(known) ** 2,), _TABLE), law)
                asked._take(known, counts, np.arange(len(known)), noise_in(curator.ledger))
                asked._doubt(doubts)
        return asked

    def _take(self, classes, counts, predicted, noise):
        """Keep released counts: a row for every label, and what each column predicts."""
        self.classes_, self.noise = classes, noise
        self._counts, self._predicted = counts.reshape(len(classes), -1), predicted

    def _doubt(self, doubts):
        """Take note of rows that are not counted, and of classes with too few rows."""
        # the noise of all counts, and of a number of rows that was released
        loud = self.noise * (math.sqrt(self._counts.size) + 1 / self._count_share)
        away = self.n_rows - float(self._counts.sum())
        if away > max(_AWAY * self.n_rows, _KNOWN * loud):
            doubts.noise(
                f"about {away / self.n_rows:.0%} of the rows are not counted, by the released "
                f"counts. Compare labels and predictions with classes, {self.classes_.tolist()!r}."
            )
        lost = [
            label for label, known in zip(self.classes_, self._is_known, strict=True) if not known
        ]
        if lost:
            listed = ", ".join(map(repr, np.array(lost).tolist()))
            doubts.noise(
                f"the class(es) {listed} have too few rows for the noise, of {self.noise:.3g} rows "
                f"in each of {self._counts.shape[1]} counts: their rates have intervals from 0 to "
                "1. Use more rows, or a larger epsilon."
            )

    @property
    def _is_known(self):
        """Tell of which classes the number of rows is known."""
        loud = self.noise * math.sqrt(self._counts.shape[1])
        return self._counts.sum(axis=1) > _KNOWN * loud

    def _varied(self, value, counts, gradient, known=True, off=(0.0, 0.0)):
        """Return an estimate with its variances, from the gradient by counts, class by class.

        Rows are added to each class, so that no share is taken for certain: z^2 of them, as
        Wilson's interval has them.
        """
        more, sampling, noise = self._width(1.0, 0.0) ** 2, 0.0, 0.0
        for own, slope in zip(counts, gradient, strict=True):
            sampling += float(((np.maximum(own, 0.0) + more / own.size) * slope**2).sum())
            noise += float(((self.noise * slope) ** 2).sum())
        return Estimate(float(value), sampling, noise, known, off)

    def _scored(self, estimate, most=1.0):
        """Return a score between 0 and `most` with its interval, and by what bins may be off."""
        value = float(np.clip(estimate.value, 0.0, most))
        half = self._width(estimate.sampling, estimate.noise) if estimate.known else math.inf
        ends = max(value - half - estimate.off[0], 0.0), min(value + half + estimate.off[1], most)
        return DPScore(value, ends, self.confidence_level)

    def _sizes(self):
        """Return noisy numbers of rows of all classes, none below 1."""
        return np.maximum(self._counts.sum(axis=1), 1.0)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Noisy numbers of rows: labels in rows, predictions in columns, none below 0."""
        size = len(self.classes_)
        table = np.zeros((size, size))
        np.add.at(table.T, self._predicted, self._counts.T)
        return np.maximum(table, 0.0)

    @property
    def accuracy(self) -> DPScore:
        """Share of right predictions, among rows with a label of the label set."""
        right = np.arange(len(self.classes_))[:, None] == self._predicted
        total = max(float(self._counts.sum()), 1.0)
        share = float(np.clip((self._counts * right).sum() / total, 0.0, 1.0))
        noise = self.noise**2 * float(((right - share) ** 2).sum()) / total**2
        known = total > _KNOWN * self.noise * math.sqrt(self._counts.size)
        ends = wilson(self, share, total, noise) if known else (0.0, 1.0)
        return DPScore(share, ends, self.confidence_level)

    @property
    def balanced_accuracy(self) -> DPScore:
        """Mean over classes of the share of their rows that are predicted right."""
        right = np.arange(len(self.classes_))[:, None] == self._predicted
        sizes = self._sizes()
        recall = np.clip((self._counts * right).sum(axis=1) / sizes, 0.0, 1.0)
        gradient = (right - recall[:, None]) / sizes[:, None] / len(sizes)
        known = bool(self._is_known.all())
        return self._scored(self._varied(recall.mean(), self._counts, gradient, known))


def given_classes(classes):
    """Return a public label set, or raise: labels of private rows are not looked through."""
    if classes is None:
        raise ValueError("classes must be the public label set, such as model.classes_; got None.")
    return classes


def classes_of(estimator):
    """Return the public label set of a fitted classifier, or raise."""
    if not hasattr(estimator, "classes_"):
        check_is_fitted(estimator)
        raise ValueError(
            f"estimator must be a classifier; got {a_kind(estimator)}, which has no classes_. "
            "DPRegressionScores are for numbers."
        )
    return estimator.classes_


@dataclass(frozen=True)
class ScoreGrid:
    """Public atoms (a, b] of scores, fine enough for any model.

    Parameters
    ----------
    edges : ndarray of shape (n_atoms - 1,)
        Ends of atoms, the decision threshold among them.
    middles : ndarray of shape (n_atoms,)
        What a score of each atom counts as.
    cut : float
        Larger scores predict the second class.
    even : ndarray
        Ends of atoms that are evenly spaced, in logits or in magnitudes, the threshold among them.
    """

    edges: Any
    middles: Any
    cut: float
    even: Any

    @classmethod
    def of(cls, probabilities, given=None):
        """Return the atoms of probabilities or of other scores, cut at ends that a user gave."""
        if probabilities:
            # logits: even steps beyond 1/2, and small ones for models that hardly tell rows apart
            side = np.concatenate([np.geomspace(0.01, 0.5, 18), np.arange(0.75, 12.1, 0.25)])
        else:
            side = np.geomspace(1e-4, 1e4, 64)
        edges = np.concatenate([-side[::-1], [0.0], side])
        even = edges[np.abs(edges) <= 6.0] if probabilities else edges
        even = even[(np.abs(even) >= 0.5) | (even == 0)] if probabilities else even
        if given is not None:
            edges = np.union1d(edges, logit(given) if probabilities else given)
        inner = edges[:-1] / 2 + edges[1:] / 2
        # beyond the ends, where the last ones of atoms are
        middles = np.concatenate([1.05 * edges[:1], inner, 1.05 * edges[-1:]])
        if probabilities:
            return cls(expit(edges), expit(middles), 0.5, expit(even))
        return cls(edges, middles, 0.0, even)

    def spaced(self, n_cells):
        """Return ends of that many cells, about: of all atoms, or of even ones."""
        if n_cells > self.edges.size:
            return self.edges
        half = self.even[self.even > self.cut]
        taken = np.linspace(-1, half.size - 1, max(n_cells // 2, 2) + 1)[1:]
        side = half[np.unique(np.rint(taken).astype(int).clip(0))]
        other = self.even[self.even < self.cut][::-1][: half.size]
        mirrored = other[np.isin(half, side)]
        return np.unique(np.concatenate([mirrored, [self.cut], side]))

    def within(self, edges):
        """Return in which of the cells between some of the ends every atom lies."""
        return np.searchsorted(edges, self.middles, side="left")


def bins_among(edges, counts, n_bins, cut):
    """Choose bins of about equally many rows, by noisy counts of cells.

    Parameters
    ----------
    edges : ndarray of shape (n_cells - 1,)
        Ends of cells, the decision threshold among them.
    counts : ndarray of shape (n_cells,)
        Released numbers of rows of cells.
    n_bins : int
        How many bins there are to be, about.
    cut : float
        Decision threshold.

    Returns
    -------
    chosen : ndarray
        Some of the ends, the decision threshold among them.
    share : ndarray of shape (n_cells,)
        What part of all rows a cell is taken to hold.
    """
    # running totals of noisy counts go up and down: those of the nearest that only rise
    running = np.concatenate([[0.0], np.cumsum(counts)])
    rising = IsotonicRegression().fit_transform(np.arange(running.size), running)
    total = rising[-1] - rising[0]
    level = (rising - rising[0]) / total if total > 0 else np.linspace(0.0, 1.0, running.size)
    wanted = np.arange(1, n_bins) / n_bins
    taken = np.clip(np.searchsorted(level[1:-1], wanted), 0, edges.size - 1)
    # a little everywhere: a bin must have a middle
    share = np.diff(level) + 1e-3 / counts.size
    return np.unique(np.append(edges[taken], cut)), share / share.sum()


def crowding(counts, n_bins):
    """Return which part of the rows of every bin crowds it, by released counts: soon all of them.

    Parameters
    ----------
    counts : ndarray of shape (2 * n_found,)
        Noisy numbers of rows of each label and bin.
    n_bins : int
        How many bins there were to be, with equally many rows.
    """
    held = np.maximum(counts.reshape(2, -1).sum(axis=0), 0.0)
    fair = _CROWDED * max(float(held.sum()), 1.0) / n_bins
    return np.minimum(2 - 2 * fair / np.maximum(held, fair), 1.0)


def losses_of(chance):
    """Return the logarithmic and the squared loss of probabilities, for either label."""
    logits = logit(chance)
    return (-log_expit(-logits), -log_expit(logits)), (chance**2, (1 - chance) ** 2)


class DPClassificationScores(DPConfusionMatrix):
    """Private scores of a classifier on held-out rows, all from one histogram.

    Made by `from_predictions` and `from_estimator`, like displays of scikit-learn. A table of
    noisy counts, the label against bins of the score, gives everything: accuracy, AUC, losses, the
    ROC curve, that of precision and recall, and calibration. All of them agree, and cost once. For
    more than two classes there is such a table for each class against the rest.

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
    classes_ : ndarray of shape (n_classes,)
        Public label set, sorted. Of two classes, scores are for the second label.
    matrix : ndarray of shape (n_classes, n_classes)
        Noisy confusion matrix. Of two classes, scores above the threshold (0.5, or 0) predict the
        second label, of more the largest score predicts its label.
    accuracy, balanced_accuracy, roc_auc, log_loss, brier_score_loss : DPScore
        With intervals; the losses if scores are probabilities. For more than two classes `roc_auc`
        is the mean over classes of each against the rest, as
        ``roc_auc_score(multi_class="ovr", average="macro")`` of scikit-learn, and the others are
        those of scikit-learn, too.
    edges_ : ndarray of shape (n_bins - 1,), or list of them
        Ends of the bins (a, b] of scores, found with 15 % of the budget, or given; those of each
        class for more than two.
    noise : float
        Standard deviation of the noise of a count; public.
    n_rows : int
        Number of rows or groups, or the total of weights, public or released.
    ledger_ : Ledger
        Releases and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) spent.

    Warns
    -----
    PrivacyWarning
        If the estimator was fitted to the same rows.
    NoisyEstimateWarning
        If a class has too few rows for the noise, by released numbers: one class only, or few
        rows of one, or too small an epsilon; or if most scores are too close together.

    See Also
    --------
    DPConfusionMatrix : For predicted labels instead of scores.
    dp_accuracy_score : The accuracy alone, with less noise.

    Notes
    -----
    Privacy. One row is protected, or with `groups` one group, which adds a mean over its rows to
    the counts. The number of rows or groups, the label set and all parameters are public; with
    weights, or "add-remove", their total or number is released first. Weights count in units of
    `max_weight`. A row is in one cell: the sensitivity is 2 in l1 and sqrt(2) in l2 (zero-out: 1
    and 1), however many bins there are. Of K > 2 classes there are K + 1 tables, and it is K + 1
    times as large (in l2 sqrt(K + 1) times): noise is, too. Rows whose label is not in the label
    set are null rows and count nowhere.

    Scores on training rows are too high, and their intervals do not cover; their price adds to
    that of the model. `from_estimator` warns if rows are in the same object, or the same memory,
    as the training rows of a step in this process; it cannot detect copies.

    At delta = 0 the noise is Laplace, with a standard deviation of ``2.83 / epsilon`` rows for
    each cell. Gaussian noise is several times larger for one release, and smaller for many within
    a ``PrivacyBudget(composition="gaussian")``.

    Bins. Of the budget 15 % count the rows, without labels, in public cells, up to 130 of them, by
    which bins of about equally many rows are chosen: about ``0.35 sqrt(n / noise)``, 8 to 64. More
    bins resolve more, and add more noise. With few rows over the noise bins are evenly spaced
    instead, and nothing is paid for them. Rows of one bin count as ties, and for losses as where
    the cells of the bin are; intervals allow for both, and for any order of the rows of a bin that
    holds far more than its share. So they are wide for models with few different scores:
    `thresholds` between these make them narrow.

    Intervals include the sampling of rows (or groups), by the delta method (for AUC: DeLong), and
    the noise. With weights or groups they are too wide rather than too narrow; so are `roc_auc`
    and `brier_score_loss` of more than two classes, whose errors are taken to add up. Rows are
    added to every class where a variance is estimated, so that a score of 0 or 1 has an interval,
    too. A class with too few rows for a known count has (0, 1).

    References
    ----------
    .. [1] E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing the areas under two or
       more correlated receiver operating characteristic curves", Biometrics, 1988.
    .. [2] E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
       Journal of the American Statistical Association, 1927.
    .. [3] G. J. Matthews and O. Harel, "An examination of data confidentiality and disclosure
       issues related to publication of empirical ROC curves", Academic Radiology, 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression, PrivacyBudget
    >>> from skdp.metrics import DPClassificationScores
    >>> X, y = make_classification(6000, random_state=0)
    >>> budget = PrivacyBudget(epsilon=1.5, delta=1e-6)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], data_norm=6.0, budget=budget)
    >>> model = model.fit(X[:3000], y[:3000])
    >>> scores = DPClassificationScores.from_estimator(
    ...     model, X[3000:], y[3000:], epsilon=0.5, budget=budget
    ... )
    >>> low, high = scores.roc_auc.interval
    >>> 0.5 < low < scores.roc_auc < high < 1.0
    True
    >>> fpr, tpr, thresholds = scores.roc_curve()
    >>> budget.spent
    (1.5, 1e-06)
    """

    edges_: Any
    _middles: NDArray[np.float64]
    # part of the rows of every bin that crowd it
    _crowd: NDArray[np.float64]
    _losses: Any
    # each class against the rest, where there are more than two
    _each: tuple[Any, ...] = ()

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: VectorLike,
        *,
        epsilon: float,
        thresholds: VectorLike | None = None,
        **terms: Unpack[ScoreTerms],
    ) -> Self:
        """Release the scores of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            Fitted; its `classes_` are the public label set. Scored are its probabilities, or its
            decision function if it has none.
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            Private rows that the estimator was not fitted to, and their labels.
        epsilon : float
            Price in nats, greater than 0.
        thresholds, **terms : object
            As for `from_predictions`.

        Returns
        -------
        scores : DPClassificationScores
            With a ledger of its own.

        Raises
        ------
        ValueError, BudgetError
            As `from_predictions` does.
        """
        # refused before a row is looked at
        cls(epsilon, **apart(terms)[-1])
        warn_of_seen_rows(cls.__name__, estimator, X)
        classes = classes_of(estimator)
        probabilities = hasattr(estimator, "predict_proba")
        found = estimator.predict_proba(X) if probabilities else estimator.decision_function(X)
        return cls.from_predictions(
            y, found, epsilon=epsilon, classes=classes, thresholds=thresholds,
            probabilities=probabilities, **terms,
        )  # fmt: skip

    @classmethod
    def from_predictions(
        cls,
        y_true: VectorLike,
        y_score: VectorLike,
        *,
        epsilon: float,
        classes: VectorLike,
        thresholds: VectorLike | None = None,
        probabilities: bool = True,
        **terms: Unpack[ScoreTerms],
    ) -> Self:
        """Release the scores of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Private labels.
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities of the second of the sorted classes, or scores that are larger for it; or
            a column of probabilities for each class, in their order, as `predict_proba` has it.
        epsilon : float
            Price in nats, greater than 0.
        classes : array-like of shape (n_classes,)
            Public label set, such as ``model.classes_``.
        thresholds : array-like of shape (n_bins - 1,), default=None
            Public ends of bins of scores, such as quantiles of scores of rows that are public. None
            finds them with 15 % of the budget.
        probabilities : bool, default=True
            Whether scores are probabilities, between 0 and 1. False for those of a
            `decision_function`.
        **terms : dict
            What may be given besides, with a default. `delta` (0.0) in [0, 1): at 0 the noise is
            Laplace, else Gaussian. `groups` (None): whose row it is, for all rows of a person to be
            protected together. `sample_weight` (None): private weights of the rows, finite and not
            negative, with `max_weight` (None), a public bound: larger ones count as that. A tenth
            of epsilon goes to their noisy total, which stands for the number of rows. `adjacency`
            ("replace-one"), "zero-out" or "add-remove", for which a tenth goes to the number of
            rows. `budget` (None): a PrivacyBudget that is charged before a row is read.
            `random_state` (None): a seed voids the guarantee towards whoever knows it.
            `confidence_level` (0.95) of intervals.

        Returns
        -------
        scores : DPClassificationScores
            With a ledger of its own.

        Raises
        ------
        ValueError
            If a parameter or the data are unusable; nothing has been released then.
        BudgetError
            If a shared budget has less left, or protects groups and there are none.
        """
        groups, sample_weight, rest = apart(terms)
        asked = cls(epsilon, **rest)
        if not isinstance(probabilities, bool):
            raise ValueError(f"probabilities must be True or False; got {a_kind(probabilities)}.")
        given = _given_edges(thresholds, probabilities)
        grid = ScoreGrid.of(probabilities, given)
        known, codes, outside, _ = resolve_classes(y_true, given_classes(classes))
        score = _columns_of_scores(y_score, len(codes), len(known), probabilities)
        if probabilities:
            check_chances(score, "y_score", "; for scores of another kind give probabilities=False")
            score = np.clip(score, 0.0, 1.0)
        codes = np.where(outside, -1, codes)
        check_groups(asked, groups)
        doubts = Doubts(cls.__name__)
        n_scored = 1 if len(known) == 2 else len(known)
        with counted_first(asked, sample_weight is not None):
            hidden = hidden_count(asked)
            (asked.n_rows, unit), whose = count_rows(groups, codes, hidden, sample_weight)
            laws, cells = asked._search(given, grid, n_scored)
            searched, edges, wanted = len(laws) == 2, [cells] * n_scored, cells.size + 1
            shares, unsure = [np.full(cells.size + 1, 1 / (cells.size + 1))] * n_scored, math.inf
            with open_gate(
                asked,
                lambda: CellRows(codes, score, counts_of(whose), edges, not searched),
                n_rows=asked.n_rows,
                unit=unit,
                delta=asked.delta,
                mu=asked._mu,
                doubts=doubts,
            ) as curator:
                if searched:
                    query = CellCounts((cells.size + 1,) * n_scored, "rows of each cell of scores")
                    found = np.split(curator.release(query, laws[0]), n_scored)
                    unsure = noise_in(curator.ledger) / asked.n_rows
                    loud = asked._loudness(laws[1], n_scored)
                    wanted = round(_BINS * math.sqrt(asked.n_rows / loud))
                    wanted = min(max(wanted, _FEWEST_BINS), _MOST_BINS)
                    chosen = [bins_among(cells, counts, wanted, grid.cut) for counts in found]
                    edges, shares = map(list, zip(*chosen, strict=True))
                    curator.map_rows(
                        lambda rows: CellRows(rows.codes, rows.scores, rows.weight, edges)
                    )
                sizes = [2 * (own.size + 1) for own in edges]
                sizes = [len(known) ** 2, *sizes] if n_scored > 1 else sizes
                query = CellCounts(tuple(sizes), "rows of each label and bin of scores")
                counts = curator.release(query, laws[-1])
                tables = np.split(counts, np.cumsum(sizes)[:-1])
                noise = noise_in(curator.ledger)
                views = [asked] if n_scored == 1 else [copy(asked) for _ in known]
                for view, own, table, share in zip(
                    views, edges, tables[-n_scored:], shares, strict=True
                ):
                    two = known if n_scored == 1 else np.array([False, True])
                    predicted = (np.append(own, np.inf) > grid.cut).astype(np.intp)
                    view._take(two, table, predicted, noise)
                    view._crowd = crowding(table, wanted)
                    view._describe(grid, cells, own, share, unsure, probabilities)
                if n_scored > 1:
                    asked._take(known, tables[0], np.arange(len(known)), noise)
                    asked._each, asked.edges_ = tuple(views), edges
                    asked._listed = views[0]._listed
                asked._doubt(doubts)
        for view in asked._each:
            view.ledger_, view.privacy_spent_ = asked.ledger_, asked.privacy_spent_
        return asked

    def _loudness(self, law, n_scored):
        """Return the standard deviation of a count under a law, but for rounding."""
        facts = CellCounts((2,) * (n_scored + (n_scored > 1))).sensitivity(self.adjacency, 1)
        return facts.l2 / law.mu if self.delta else math.sqrt(2) * facts.l1 / law.epsilon

    def _search(self, given, grid, n_scored):
        """Return the laws of the releases, and the ends of cells that the first one counts.

        So many cells that the noise of all of them together is an eighth of the rows. Without
        enough of them bins are evenly spaced, and all of the budget is for their counts.
        """
        if given is not None:
            return self._laws(1.0), np.union1d(given, [grid.cut])
        laws = self._laws(_BINS_SHARE, 1 - _BINS_SHARE)
        n_cells = (self.n_rows / (8 * self._loudness(laws[0], n_scored))) ** 2
        if n_cells < _FEWEST_CELLS:
            return self._laws(1.0), grid.spaced(_FEWEST_BINS)
        return laws, grid.spaced(int(min(n_cells, 1e6)))

    def _describe(self, grid, cells, edges, share, unsure, probabilities):
        """Give every bin a middle and, for probabilities, the losses of its rows.

        Within a bin, rows are taken to lie where the first release saw them, and labels to be as
        frequent as the probabilities say. How far losses may then be off is their spread within the
        bin, times a part of it that shrinks with the number of cells and with their noise.
        """
        self.edges_ = edges
        cell, place = grid.within(cells), grid.within(edges)
        weight = (share / np.bincount(cell, minlength=share.size))[cell]
        sizes, middles = np.bincount(place, weight), grid.middles
        self._middles = np.bincount(place, weight * middles) / sizes
        self._losses = None
        self._listed = (*DPConfusionMatrix._listed, "roc_auc")
        if not probabilities:
            return
        self._listed += ("log_loss", "brier_score_loss")
        n_cells = np.bincount(np.searchsorted(self.edges_, np.append(cells, np.inf), side="left"))
        off = np.minimum(n_cells**-2.0 + unsure * np.sqrt(n_cells) / sizes, 1.0)
        # rows that crowd a bin may all be at an end of their cells
        ends = np.concatenate([middles[:1], cells, middles[-1:]])
        tables = []
        for two, two_ends in zip(losses_of(middles), losses_of(ends), strict=True):
            found = []
            for loss, end, chance in zip(two, two_ends, (1 - middles, middles), strict=True):
                held = weight * chance
                mean = np.bincount(place, held * loss) / np.bincount(place, held)
                square = np.bincount(place, held * (loss - mean[place]) ** 2)
                crowd = np.bincount(place, held * np.abs(np.diff(end) / 2)[cell])
                away = off * np.sqrt(square / np.bincount(place, held))
                found.append((mean, away + self._crowd * crowd / np.bincount(place, held)))
            tables.append(found)
        self._losses = np.array(tables)

    def _doubt(self, doubts):
        """Take note of classes with too few rows, and of scores that are too close together."""
        super()._doubt(doubts)
        for view in self._each or (self,):
            held = np.maximum(view._counts.sum(axis=0), 0.0)
            if float(held @ view._crowd) > _MANY * float(held.sum()):
                doubts.noise(
                    "most scores are too close together to be ordered, so the intervals of roc_auc "
                    "and of losses allow for any order. Give public thresholds between the scores, "
                    "or use functions such as dp_log_loss."
                )
                return

    @property
    def _is_known(self):
        """Tell of which classes the number of rows is known, from all that depends on it."""
        known = super()._is_known
        return known & [view._is_known[1] for view in self._each] if self._each else known

    def one_vs_rest(self, label: Any) -> Self:
        """Return the scores of one of several classes against the rest; they cost nothing more.

        Parameters
        ----------
        label : object
            One of `classes_`, of which there are more than two.

        Returns
        -------
        scores : DPClassificationScores
            Of two classes, False and True: whether the label is this one. With curves, and with the
            ledger of all.

        Raises
        ------
        ValueError
            If there are two classes, or the label is not in `classes_`.
        """
        found = np.flatnonzero(self.classes_ == label)
        if not self._each or not len(found):
            raise ValueError(
                f"label must be one of more than two classes; got {label!r}, and the classes are "
                f"{self.classes_.tolist()!r}."
            )
        view: Self = self._each[found[0]]
        return view

    def _needs(self, name, probabilities=False):
        """Raise if there are no probabilities, or no two classes, for a loss or a curve."""
        view = self._each[0] if self._each else self
        if probabilities and view._losses is None:
            raise ValueError(f"{name} needs probabilities; these scores are not.")
        if self._each and name.endswith("curve"):
            raise ValueError(
                f"{name} is about two classes, and there are {len(self._each)}: use "
                f"scores.one_vs_rest(label).{name}()."
            )

    def _mean_loss(self, counts, losses):
        """Return a mean over rows of what cells lose, from counts of cells, class by class."""
        total = max(float(sum(own.sum() for own in counts)), 1.0)
        held = list(zip(counts, losses, strict=True))
        mean = sum(float((own * loss).sum()) for own, (loss, _) in held) / total
        off = sum(float((np.maximum(own, 0.0) * away).sum()) for own, (_, away) in held) / total
        n_cells = sum(own.size for own in counts)
        known = total > _KNOWN * self.noise * math.sqrt(n_cells)
        gradient = [(loss - mean) / total for loss, _ in losses]
        return self._varied(mean, counts, gradient, known, (off, off))

    @property
    def log_loss(self) -> DPScore:
        """Mean logarithmic loss of the probabilities."""
        self._needs("log_loss", probabilities=True)
        views = self._each or (self,)
        # of several classes, a row loses in the table of its own
        labels = slice(1, 2) if self._each else slice(None)
        counts = [own for view in views for own in view._counts[labels]]
        losses = [own for view in views for own in view._losses[0, labels]]
        most = max(float(loss.max()) for loss, _ in losses)
        return self._scored(self._mean_loss(counts, losses), most)

    @property
    def brier_score_loss(self) -> DPScore:
        """Mean squared error of the probabilities: of the second label, or the sum over several."""
        self._needs("brier_score_loss", probabilities=True)
        views = self._each or (self,)
        parts = [view._mean_loss(view._counts, view._losses[1]) for view in views]
        return self._scored(Estimate.sum_of(parts), float(min(len(views), 2)))

    @property
    def roc_auc(self) -> DPScore:
        """Area under the ROC curve, or the mean over several classes of each against the rest."""
        parts = [view._area() for view in self._each or (self,)]
        return self._scored(Estimate.sum_of(parts, 1 / len(parts)))

    def _area(self):
        """Return the area under the curve of two classes: rows of one bin count as ties."""
        none, some = self._counts
        n_none, n_some = self._sizes()
        below = (np.cumsum(none) - none / 2) / n_none
        above = (np.cumsum(some[::-1])[::-1] - some / 2) / n_some
        known = bool(self._is_known.all())
        # of rows that noise hides nothing is known, and 0 or 1 would look as if something were
        area = float(np.clip((below * some).sum() / n_some, 0.0, 1.0)) if known else 0.5
        gradient = np.stack([(above - area) / n_none, (below - area) / n_some])
        # of two rows of one bin, that with the second label has the larger score more often, if it
        # has in all: about 5 of 8 times at most, in bins that are not wide, and always in a crowd
        ties = np.maximum(none, 0.0) * np.maximum(some, 0.0) / (n_none * n_some)
        loose, crowd = float(ties.sum()) / 8, float(ties @ self._crowd) * 3 / 8
        found = self._varied(area, self._counts, gradient, known)
        unsure = abs(area - 0.5) < _UNSURE * math.sqrt(found.sampling + found.noise)
        above = area >= 0.5
        less = (0.0 if above else loose) + (crowd if unsure or not above else 0.0)
        more = (loose if above else 0.0) + (crowd if unsure or above else 0.0)
        return replace(found, off=(less, more))

    def _beyond(self):
        """Return for both labels the noisy numbers of rows above -inf, above every edge, and inf.

        They fall, from the number of rows of the label to 0: the nearest that do.
        """
        falling = []
        for counts, size in zip(self._counts, self._sizes(), strict=True):
            tail = np.concatenate([np.cumsum(counts[::-1])[::-1], [0.0]])
            fit = IsotonicRegression(y_min=0.0, y_max=size, increasing=False)
            tail = fit.fit_transform(np.arange(tail.size), tail)
            tail[0], tail[-1] = size, 0.0
            falling.append(tail)
        return np.array(falling)

    def roc_curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the ROC curve, in the order of scikit-learn's `roc_curve`.

        Returns
        -------
        fpr, tpr : ndarray of shape (n_bins + 1,)
            Rates of false and of true positives, rising from 0 to 1: what
            ``RocCurveDisplay(fpr=fpr, tpr=tpr)`` takes.
        thresholds : ndarray of shape (n_bins + 1,)
            Scores above these count as positive; the first is infinite, the last minus infinity.
        """
        self._needs("roc_curve")
        fpr, tpr = self._beyond()[:, ::-1] / self._sizes()[:, None]
        thresholds = np.concatenate([[np.inf], self.edges_[::-1], [-np.inf]])
        return fpr, tpr, thresholds

    def precision_recall_curve(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return precision and recall, in the order of scikit-learn's `precision_recall_curve`.

        Returns
        -------
        precision, recall : ndarray of shape (n_bins + 1,)
            Recall falls from 1 to 0: what ``PrecisionRecallDisplay(precision, recall)`` takes.
        thresholds : ndarray of shape (n_bins,)
            Scores above these count as positive; the first is minus infinity.
        """
        self._needs("precision_recall_curve")
        none, some = self._beyond()
        found = none + some
        precision = np.divide(some, found, out=np.ones_like(some), where=found > 0)
        return precision, some / some[0], np.concatenate([[-np.inf], self.edges_])

    def calibration_curve(
        self, n_bins: int = 8
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return how often the second label is true among rows of about one probability.

        Parameters
        ----------
        n_bins : int, default=8
            Number of points, about: bins are joined until their rows outweigh the noise.

        Returns
        -------
        prob_true, prob_pred : ndarray of shape (n_points,)
            Shares of the second label, and mean probabilities: what ``CalibrationDisplay(prob_true,
            prob_pred, None)`` takes.
        intervals : ndarray of shape (n_points, 2)
            Confidence intervals of `prob_true`.

        Raises
        ------
        ValueError
            If scores are no probabilities, or `n_bins` is no whole number above 0.
        """
        self._needs("calibration_curve", probabilities=True)
        if not isinstance(n_bins, int | np.integer) or n_bins < 1:
            raise ValueError(f"n_bins must be a whole number above 0; got {n_bins!r}.")
        # bins are joined until half of their share of the rows, and enough of them, are there
        least = self._sizes().sum() / (2 * n_bins)
        points, first = [], 0
        for last in range(1, self._counts.shape[1] + 1):
            none, some = self._counts[:, first:last].sum(axis=1)
            loud = _KNOWN * self.noise * math.sqrt(2 * (last - first))
            at_end = last == self._counts.shape[1] and none + some > loud
            if none + some < max(least, loud) and not at_end:
                continue
            weight = np.maximum(self._counts[:, first:last].sum(axis=0), 0.0) + 1e-9
            middle = float(np.average(self._middles[first:last], weights=weight))
            share = float(np.clip(some / (none + some), 0.0, 1.0))
            spread = (1 - share) ** 2 + share**2
            noise = self.noise**2 * (last - first) * spread / (none + some) ** 2
            points.append((share, middle, *wilson(self, share, none + some, noise)))
            first = last
        table = np.array(points).reshape(-1, 4)
        return table[:, 0], table[:, 1], table[:, 2:]


def _columns_of_scores(y_score, n_rows, n_classes, probabilities):
    """Return scores of the second of two classes, or of all classes, in columns; or raise."""
    try:
        shape = np.shape(y_score)
    except ValueError:
        # lists of several lengths
        shape = "of no array"
    if n_classes == 2 and not (probabilities and shape == (n_rows, 2)):
        return real_column(y_score, "y_score", n_rows)[:, None]
    if shape != (n_rows, n_classes):
        raise ValueError(
            f"y_score must have a row for each of {n_rows} labels and a column for each of "
            f"{n_classes} classes; got shape {shape}."
        )
    found = real_column(np.reshape(y_score, -1), "y_score").reshape(n_rows, n_classes)
    return found[:, 1:] if n_classes == 2 else found


def _given_edges(thresholds, probabilities):
    """Return the ends of bins that a user gave, sorted, or raise."""
    if thresholds is None:
        return None
    if not np.size(thresholds):
        raise ValueError(f"thresholds must be None, or at least one number; got {thresholds!r}.")
    edges = np.unique(real_column(thresholds, "thresholds"))
    if probabilities and not (edges[0] > 0 and edges[-1] < 1):
        raise ValueError(
            f"thresholds of probabilities must lie between 0 and 1; got {thresholds!r}."
        )
    return edges


def dp_balanced_accuracy_score(
    y_true: VectorLike,
    y_pred: VectorLike,
    *,
    epsilon: float,
    classes: VectorLike,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release the mean over classes of the share of right predictions, on private rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private labels, and predictions.
    epsilon : float
        Price in nats, greater than 0.
    classes : array-like of shape (n_classes,)
        Public label set.
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

    See Also
    --------
    DPConfusionMatrix : The matrix that it is computed from, at the same price.

    Examples
    --------
    >>> from skdp.metrics import dp_balanced_accuracy_score
    >>> y, found = [0, 1] * 900, [0, 0] * 900
    >>> accuracy = dp_balanced_accuracy_score(y, found, epsilon=1.0, classes=[0, 1])
    >>> 0.45 < accuracy < 0.55
    True
    """
    asked = under_name("dp_balanced_accuracy_score", DPConfusionMatrix)
    paid = asked.from_predictions(y_true, y_pred, epsilon=epsilon, classes=classes, **terms)
    score = paid.balanced_accuracy
    return DPScore(score, score.interval, score.confidence_level, paid)


def dp_roc_auc_score(
    y_true: VectorLike,
    y_score: VectorLike,
    *,
    epsilon: float,
    classes: VectorLike,
    probabilities: bool = True,
    **terms: Unpack[ScoreTerms],
) -> DPScore:
    """Release the area under the ROC curve of scores of private rows.

    Of more than two classes it is the mean over classes of each against the rest.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Private labels.
    y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the second of the sorted classes, or scores that are larger for it; or a
        column of probabilities for each class.
    epsilon : float
        Price in nats, greater than 0.
    classes : array-like of shape (n_classes,)
        Public label set.
    probabilities : bool, default=True
        Whether scores are probabilities. False for those of a `decision_function`.
    **terms : dict
        `groups`, `sample_weight`, `adjacency` and others, as for
        :meth:`DPClassificationScores.from_predictions`.

    Returns
    -------
    area : DPScore
        A float in [0, 1] with an `interval` and a `ledger_`.

    Raises
    ------
    ValueError
        If a parameter or the data are unusable; nothing has been released then.
    BudgetError
        If a shared budget has less left.

    See Also
    --------
    DPClassificationScores : The curve, and more, at the same price.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_roc_auc_score
    >>> score = np.linspace(0, 1, 5000)
    >>> y = (score + 0.3 * np.sin(99 * score) > 0.5).astype(int)
    >>> area = dp_roc_auc_score(y, score, epsilon=1.0, classes=[0, 1])
    >>> 0.9 < area < 1.0
    True
    """
    asked = under_name("dp_roc_auc_score", DPClassificationScores)
    paid = asked.from_predictions(
        y_true, y_score, epsilon=epsilon, classes=classes, probabilities=probabilities, **terms
    )
    score = paid.roc_auc
    return DPScore(score, score.interval, score.confidence_level, paid)
