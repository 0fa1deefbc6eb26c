# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The attack: a test of outputs, chosen from some runs before others are looked at."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.audit._bounds import clopper_pearson, epsilon_bound, mu_bound
from skdp.audit._scores import (
    Standardised,
    histogram_score,
    linear_scores,
    mann_whitney,
    quadratic_score,
    telling_columns,
)

ATTACKS = ("auto", "linear")
#: thresholds that are tried for one score
THRESHOLDS = 200
#: chance that a rate is worse than it is taken for while a threshold is chosen
MISS = 0.001


@dataclass(frozen=True)
class LearnedTest:
    """A test that says "second" where a score is on one side of a threshold.

    Parameters
    ----------
    name : str
        How the score was learned.
    score : callable
        Maps a table of outputs to numbers.
    threshold : float
        Where the answer changes.
    above : bool
        Whether it says "second" above the threshold, or at and below it.
    """

    name: str
    score: Callable[[np.ndarray], np.ndarray]
    threshold: float
    above: bool

    def says_second(self, table):
        """Return the answer for every row of a table of outputs."""
        return (self.score(table) > self.threshold) == self.above

    def curve(self, first, second):
        """Return points (FPR, FNR) for other thresholds of the same score, at most 100."""
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
        For which the bound on epsilon is to be large.
    attack : {"auto", "linear"}, default="auto"
        Which scores are tried.

    Returns
    -------
    for_epsilon, for_mu : LearnedTest
        Scores are learned from the even runs; score and threshold are chosen by what they
        would bound on the odd ones.
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
    """Return (epsilon, threshold) and (mu, threshold), as large as the counts support."""
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
                centre = float(np.median(side @ direction))
                yield f"distance of {name} from its {where} median", _distance(projection, centre)
    if attack == "auto":
        yield "quadratic discriminant", _chain(standard, quadratic_score(*sides))


def separation(first, second):
    """Return by how much two tables of outputs differ, from 0 to 1.

    Parameters
    ----------
    first, second : ndarray of shape (n_runs, n_columns)
        Outputs, of four runs each at least.

    Returns
    -------
    separation : float
        Of scores learned from one half of the runs, the largest Mann-Whitney statistic
        on the other half, from -1 (wrong way) to 1, averaged over both ways.
    """
    found = dict[str, float]()
    for half in (0, 1):
        for name, score in _candidates(first[half::2], second[half::2], "linear"):
            values = [score(table[1 - half :: 2])[:, None] for table in (first, second)]
            found[name] = found.get(name, 0.0) + float(mann_whitney(*values)[0]) - 0.5
    return max(found.values(), default=0.0)


def _projection(standard, direction):
    return lambda table: standard(table) @ direction


def _distance(projection, centre):
    return lambda table: np.abs(projection(table) - centre)


def _chain(inner, outer):
    return lambda table: outer(inner(table))
