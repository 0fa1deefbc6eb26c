# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The attack: scores of outputs, a test learned from runs, and bounds from its errors.

A test guesses from an output which of two neighbouring data sets it came from. A bad test makes an
audit weak, never wrong, because the errors are counted on fresh runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse, special

# Scores: functions of outputs, larger where the second data set is more likely.


#: standardised outputs are cut off here, so that no outlier decides a direction alone
FARTHEST = 1e3
#: more columns than this are taken as uncorrelated
MOST_CORRELATED = 100
#: single columns that become scores of their own
MOST_COLUMNS = 12


class Standardised:
    """Varying columns, centered and scaled by quantiles of the learning runs."""

    def __init__(self, table):
        with np.errstate(over="ignore", invalid="ignore"):
            self.unit = np.maximum(np.abs(table).max(axis=0), 1e-300)
            table = table / self.unit
            self.center = np.median(table, axis=0)
            distance = np.abs(table - self.center)
            spread = np.quantile(distance, 0.75, axis=0)
            self.spread = np.where(spread > 0, spread, distance.max(axis=0))
        self.varies = self.spread > 0

    def __call__(self, table):
        """Return the varying columns of a table, in units of their spread."""
        with np.errstate(over="ignore", under="ignore"):
            moved = (table / self.unit - self.center)[:, self.varies]
            return np.clip(moved / self.spread[self.varies], -FARTHEST, FARTHEST)


def linear_scores(first, second):
    """Return directions of difference between two sets of standardised outputs.

    Parameters
    ----------
    first, second : ndarray of shape (n_runs, n_columns)
        Standardised outputs.

    Returns
    -------
    directions : dict of str to ndarray
        The difference of means over the variance of every column; with few columns also Fisher's
        discriminant.
    """
    gap = second.mean(axis=0) - first.mean(axis=0)
    centered = np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)])
    variance = (centered**2).mean(axis=0)
    floor = 1e-3 * max(float(variance.max()), 1e-12)
    found = {"mean difference": gap / (variance + floor)}
    if 1 < centered.shape[1] <= MOST_CORRELATED:
        covariance = centered.T @ centered / len(centered)
        # columns that add up to another one leave no inverse
        ridge = np.diag(1e-3 * variance + 1e-6 * floor)
        found["Fisher discriminant"] = np.linalg.lstsq(covariance + ridge, gap, rcond=None)[0]
    return found


def quadratic_score(first, second):
    """Return the log-ratio of two normal distributions with independent columns, as a function."""
    means = [part.mean(axis=0) for part in (first, second)]
    variances = [part.var(axis=0) + 1e-4 for part in (first, second)]

    def score(table):
        far = [(table - m) ** 2 / v + np.log(v) for m, v in zip(means, variances, strict=True)]
        return (far[0] - far[1]).sum(axis=1) / 2

    return score


def histogram_score(first, second):
    """Return the log-ratio of two histograms of numbers, as a function.

    Parameters
    ----------
    first, second : ndarray of shape (n_runs,)
        Values of one score.

    Returns
    -------
    score : callable
        By the Neyman-Pearson lemma, its thresholds are the best tests if the histograms are exact.
        Their regions may be unions of intervals.
    """
    together = np.concatenate([first, second])
    n_bins = int(np.clip(np.sqrt(len(together)) / 2, 2, 40))
    levels = np.unique(np.quantile(together, np.linspace(0, 1, n_bins + 1), method="nearest"))
    edges = (levels[1:] + levels[:-1]) / 2
    counts = [
        np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1)
        for part in (first, second)
    ]
    ratio = np.log(counts[1] + 0.5) - np.log(counts[0] + 0.5)
    return lambda values: ratio[np.searchsorted(edges, values)]


def telling_columns(first, second):
    """Return the columns with the largest rank differences of values, or of distances from 0."""
    gap = np.abs(mann_whitney(first, second) - 0.5)
    spread = np.abs(mann_whitney(np.abs(first), np.abs(second)) - 0.5)
    return np.argsort(-np.maximum(gap, spread), kind="stable")[:MOST_COLUMNS]


def mann_whitney(first, second):
    """Return by column the probability of a larger value in the second table; ties count half."""
    together = np.vstack([first, second])
    found = np.empty(together.shape[1])
    for place, column in enumerate(together.T):
        _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
        total = ranks[len(first) :].sum() - len(second) * (len(second) + 1) / 2
        found[place] = total / (len(first) * len(second))
    return found


# Bounds on epsilon and mu from error rates.
#
# The false positive rate (FPR) and the false negative rate (FNR) of a test are bounded from
# above by counts, and every pair of rates rules out small values of epsilon and mu.


def clopper_pearson(count: Any, total: int, miss: float) -> tuple[Any, Any]:
    """Return bounds on a probability from both sides, given the count of its event.

    Parameters
    ----------
    count : int or ndarray of int
        Count of the event, from 0 to `total`.
    total : int
        Number of independent trials, at least 1.
    miss : float
        Error probability of each of the two bounds, in (0, 1).

    Returns
    -------
    lower, upper : float or ndarray
        Each holds with probability at least ``1 - miss``, for every true probability; both
        together with at least ``1 - 2 * miss``.

    Notes
    -----
    Tails of the binomial distribution are incomplete beta functions [1]_.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits
       illustrated in the case of the binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> from skdp.audit import clopper_pearson
    >>> lower, upper = clopper_pearson(0, 100, 0.05)
    >>> float(lower), round(float(upper), 4)
    (0.0, 0.0295)
    """
    count = np.asarray(count, dtype=np.float64)
    # the shapes at the ends, 0, are not allowed by the inverse and not looked at
    lower = special.betaincinv(np.maximum(count, 1), total - np.maximum(count, 1) + 1, miss)
    below = np.minimum(count, total - 1)
    upper = special.betainccinv(below + 1, total - below, miss)
    return np.where(count == 0, 0.0, lower), np.where(count == total, 1.0, upper)


def epsilon_bound(fpr, fnr, delta):
    """Return the least epsilon that allows such small error rates.

    Parameters
    ----------
    fpr, fnr : float or ndarray
        Upper bounds on the error rates of one test, in (0, 1].
    delta : float
        In [0, 1).

    Returns
    -------
    epsilon : float or ndarray
        At least 0.

    Notes
    -----
    (epsilon, delta)-differential privacy implies ``FPR + exp(epsilon) FNR >= 1 - delta`` and the
    same with the rates exchanged (Kairouz, Oh and Viswanath 2015, Theorem 2.1). Both are monotone
    in the rates, and so hold for upper bounds.
    """
    fpr, fnr = np.asarray(fpr), np.asarray(fnr)
    one = np.log(np.maximum(1 - delta - fpr, 1e-300)) - np.log(fnr)
    other = np.log(np.maximum(1 - delta - fnr, 1e-300)) - np.log(fpr)
    return np.maximum(np.maximum(one, other), 0.0)


def mu_bound(fpr, fnr):
    """Return the least mu such that mu-Gaussian privacy allows such small error rates.

    Parameters
    ----------
    fpr, fnr : float or ndarray
        Upper bounds on the error rates of one test, in (0, 1].

    Returns
    -------
    mu : float or ndarray
        At least 0.

    Notes
    -----
    The trade-off curve of N(0, 1) against N(mu, 1) is ``FNR = Phi(Phi^-1(1 - FPR) - mu)``
    (Dong, Roth and Su 2022, Definition 2.6).
    """
    return np.maximum(-special.ndtri(fpr) - special.ndtri(fnr), 0.0)


def rates_of(first, second, miss):
    """Return counts as error rates with their bounds.

    Parameters
    ----------
    first, second : ndarray of bool
        Whether the test says "second", for outputs of the first data set and of the second.
    miss : float
        Probability, in (0, 1), that one of the two upper bounds is wrong.

    Returns
    -------
    fpr, fnr : tuple of float
        The rate, its lower end and its upper end; each end fails with `miss` / 2.
    """
    found = []
    for wrong in (first, ~second):
        count, total = int(np.sum(wrong)), len(wrong)
        lower, upper = clopper_pearson(count, total, miss / 2)
        found.append((count / total, float(lower), float(upper)))
    return tuple(found)


# Tests.


ATTACKS = ("auto", "linear")
#: thresholds that are tried for one score
THRESHOLDS = 200
#: chance that a rate is worse than it is taken for while a threshold is chosen
MISS = 0.001


@dataclass(frozen=True)
class LearnedTest:
    """A test that says "second" if a score is on one side of a threshold.

    Parameters
    ----------
    name : str
        Method of learning the score.
    score : callable
        Maps a table of outputs to numbers.
    threshold : float
        Threshold of the answer.
    above : bool
        Whether it says "second" above the threshold, or at and below it.
    """

    name: str
    score: Callable[[np.ndarray], np.ndarray]
    threshold: float
    above: bool

    def says_second(self, table):
        """Return the answers for the rows of a table of outputs."""
        return (self.score(table) > self.threshold) == self.above

    def curve(self, first, second):
        """Return at most 100 points (FPR, FNR) for other thresholds of the same score."""
        values = [self.score(table) for table in (first, second)]
        if not self.above:
            values = [-part for part in values]
        together = np.unique(np.concatenate(values))
        grid = together[np.linspace(0, len(together) - 1, min(100, len(together))).astype(int)]
        points = [(1.0, 0.0)]
        points += [(float(np.mean(values[0] > t)), float(np.mean(values[1] <= t))) for t in grid]
        return tuple(points)


def learn_tests(first, second, delta, attack="auto"):
    """Choose tests from outputs of two data sets.

    Parameters
    ----------
    first, second : ndarray of shape (n_runs, n_columns)
        Tables of outputs, of equal width.
    delta : float
        Delta of the bound on epsilon.
    attack : {"auto", "linear"}, default="auto"
        Candidate scores.

    Returns
    -------
    for_epsilon, for_mu : LearnedTest
        Scores are learned from the even runs; score and threshold are chosen by their bounds on
        the odd ones.
    """
    learned, chosen = (first[::2], second[::2]), (first[1::2], second[1::2])
    constant = (-1.0, LearnedTest("constant", _constant, 0.0, True))
    best = [constant, constant]
    for name, score in _candidates(*learned, attack):
        values = [score(table) for table in chosen]
        for above in (True, False):
            for goal, (value, threshold) in enumerate(_thresholds(*values, above, delta)):
                if value > best[goal][0]:
                    best[goal] = value, LearnedTest(name, score, threshold, above)
    for_epsilon, for_mu = best
    # nothing to gain: look for the largest difference at least
    return (for_epsilon if for_epsilon[0] > 0 else for_mu)[1], for_mu[1]


def _constant(table):
    return np.zeros(len(table))


def _thresholds(first, second, above, delta):
    """Return (epsilon, threshold) and (mu, threshold) with the largest bounds on the counts."""
    values = np.unique(np.concatenate([first, second]))
    # halves first: the middle of two large numbers may overflow
    middles = values[1:] / 2 + values[:-1] / 2
    if not len(middles):
        return [(0.0, float(values[0]))] * 2
    middles = middles[_ranks(len(middles))]
    below = [np.searchsorted(np.sort(part), middles, side="right") for part in (first, second)]
    counts = (len(first) - below[0], below[1]) if above else (below[0], len(second) - below[1])
    sizes = (len(first), len(second))
    fpr, fnr = (clopper_pearson(c, n, MISS)[1] for c, n in zip(counts, sizes, strict=True))
    gains = epsilon_bound(fpr, fnr, delta), mu_bound(fpr, fnr)
    return [(float(gain.max()), float(middles[gain.argmax()])) for gain in gains]


def _ranks(size):
    """Return places in a sorted list, dense towards both ends."""
    if size <= THRESHOLDS:
        return np.arange(size)
    tail = np.geomspace(1, size / 2, THRESHOLDS // 2).astype(int)
    return np.unique(np.concatenate([tail - 1, size - tail]))


def _candidates(first, second, attack):
    """Yield (name, score), learned from two tables."""
    standard = Standardised(np.vstack([first, second]))
    if not standard.varies.any():
        return
    sides = standard(first), standard(second)
    lines = dict(linear_scores(*sides))
    if attack == "auto":
        lines |= {f"column {c}": np.eye(sides[0].shape[1])[c] for c in telling_columns(*sides)}
    for name, direction in lines.items():
        projection = _projection(standard, direction)
        yield name, projection
        if attack == "auto":
            bins = histogram_score(sides[0] @ direction, sides[1] @ direction)
            yield f"histogram of {name}", _chain(projection, bins)
            for where, side in zip(("first", "second"), sides, strict=True):
                center = float(np.median(side @ direction))
                yield (
                    f"distance of {name} from its {where} median",
                    _distance_scores(projection, center),
                )
    if attack == "auto":
        yield "quadratic discriminant", _chain(standard, quadratic_score(*sides))


def separation(first, second):
    """Return the separation of two tables of outputs, from 0 to 1.

    Parameters
    ----------
    first, second : ndarray of shape (n_runs, n_columns)
        Outputs of at least four runs each.

    Returns
    -------
    separation : float
        Scores are learned from one half of the runs. The result is the largest Mann-Whitney
        statistic on the other half, from -1 (wrong direction) to 1, averaged over both halves.
    """
    found = dict[str, float]()
    for half in (0, 1):
        for name, score in _candidates(first[half::2], second[half::2], "linear"):
            values = [score(table[1 - half :: 2])[:, None] for table in (first, second)]
            found[name] = found.get(name, 0.0) + float(mann_whitney(*values)[0]) - 0.5
    return max(found.values(), default=0.0)


def _projection(standard, direction):
    return lambda table: standard(table) @ direction


def _distance_scores(projection, center):
    return lambda table: np.abs(projection(table) - center)


def _chain(inner, outer):
    return lambda table: outer(inner(table))


# Outcomes: the numbers in a fitted estimator.
#
# An outcome is a dictionary of flat arrays, or a `Failure`: a fit that raises tells its
# data apart from those with which it does not, and so does an attribute that is missing.


#: entries of one attribute that are looked at
MOST_ENTRIES = 2000
#: how deep estimators may be nested
DEPTH = 5


@dataclass(frozen=True)
class Failure:
    """A fit that raised.

    Parameters
    ----------
    kind, message : str
        The exception's class and text.
    """

    kind: str
    message: str


def released(fitted):
    """Return the numeric attributes of a fitted estimator with names that end in "_".

    Parameters
    ----------
    fitted : object
        A fitted estimator. Steps of pipelines and nested estimators are included.

    Returns
    -------
    outcome : dict of str to ndarray
        The first 2000 entries of every numeric attribute, flattened, and the sizes of other
        attributes.
    """
    return dict(_walk(fitted, "", DEPTH))


def scored(value):
    """Return the value of a user's score, a number or a vector, as an outcome."""
    return {"score": np.ravel(np.asarray(value, dtype=np.float64))}


def _walk(fitted, prefix, depth):
    for name, step in getattr(fitted, "steps", None) or []:
        yield from _value(step, f"{prefix}{name}.", depth)
    for name, value in vars(fitted).items() if hasattr(fitted, "__dict__") else ():
        if name.endswith("_") and not name.startswith("_"):
            yield from _value(value, f"{prefix}{name}", depth)


def _value(value, name, depth):
    """Yield (name, entries) of one attribute."""
    if depth == 0 or value is None or isinstance(value, str | type):
        return
    if hasattr(value, "fit"):
        yield from _walk(value, f"{name}.", depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _value(item, f"{name}[{key}]", depth - 1)
    elif isinstance(value, list | tuple) and any(_is_nested(item) for item in value):
        for place, item in enumerate(value):
            yield from _value(item, f"{name}[{place}]", depth - 1)
    else:
        yield from _entries(value, name)


def _is_nested(item):
    return hasattr(item, "fit") or isinstance(item, dict | list | tuple | np.ndarray)


def _entries(value, name):
    if sparse.issparse(value):
        value = value.toarray() if np.prod(value.shape) <= MOST_ENTRIES else value.sum(axis=0)
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if not isinstance(value, np.ndarray | np.generic | int | float | list | tuple):
        return
    entries = np.ravel(np.asarray(value))
    if entries.dtype.kind in "biuf":
        yield name, entries[:MOST_ENTRIES].astype(np.float64)
    else:
        yield f"{name} (size)", np.array([entries.size], dtype=np.float64)


class Layout:
    """A fixed table for outcomes: one column per entry, and columns for missing values.

    Parameters
    ----------
    outcomes : list of (dict or Failure)
        Outcomes that determine the columns.
    """

    def __init__(self, outcomes):
        self.sizes = dict[str, int]()
        for outcome in outcomes:
            if not isinstance(outcome, Failure):
                for name, entries in outcome.items():
                    self.sizes[name] = max(self.sizes.get(name, 0), entries.size)

    def table(self, outcomes):
        """Return a matrix, one row per outcome.

        Parameters
        ----------
        outcomes : list of (dict or Failure)
            The same outcomes, or others.

        Returns
        -------
        table : ndarray of shape (n_outcomes, n_columns)
            Finite table. The first column is whether the fit failed. Every attribute has a column
            with its size, columns with its entries, and as many with codes of non-finite entries:
            -1 and 1 for infinite ones, 2 for NaN.
        """
        blocks = [np.array([[isinstance(o, Failure)] for o in outcomes], dtype=np.float64)]
        for name, size in self.sizes.items():
            found = np.zeros((len(outcomes), 1 + 2 * size))
            for row, outcome in zip(found, outcomes, strict=True):
                entries = {} if isinstance(outcome, Failure) else outcome
                entries = entries.get(name, np.empty(0))
                row[0] = entries.size
                entries = entries[:size]
                broken = ~np.isfinite(entries)
                row[1 : 1 + len(entries)] = np.where(broken, 0.0, entries)
                signs = np.where(np.isnan(entries), 2.0, np.sign(entries))
                row[1 + size : 1 + size + len(entries)] = np.where(broken, signs, 0.0)
            blocks.append(found)
        return np.hstack(blocks)
