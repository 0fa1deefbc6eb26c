# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scores that tell the outputs of two data sets apart, learned from some of the runs.

A score maps outputs to numbers, larger where the second data set is more likely. What is
learned may be arbitrarily bad: that makes an audit weak, never wrong.
"""

import numpy as np

#: standardised outputs are cut off here, so that no outlier decides a direction alone
FARTHEST = 1e3
#: more columns than this are taken as uncorrelated
MOST_CORRELATED = 100
#: single columns that become scores of their own
MOST_COLUMNS = 12


class Standardised:
    """Columns that vary, centred and scaled by quantiles of what they are learned from."""

    def __init__(self, table):
        with np.errstate(over="ignore", invalid="ignore"):
            self.unit = np.maximum(np.abs(table).max(axis=0), 1e-300)
            table = table / self.unit
            self.centre = np.median(table, axis=0)
            distance = np.abs(table - self.centre)
            spread = np.quantile(distance, 0.75, axis=0)
            self.spread = np.where(spread > 0, spread, distance.max(axis=0))
        self.varies = self.spread > 0

    def __call__(self, table):
        """Return the columns of a table that vary, in units of their spread."""
        with np.errstate(over="ignore", under="ignore"):
            moved = (table / self.unit - self.centre)[:, self.varies]
            return np.clip(moved / self.spread[self.varies], -FARTHEST, FARTHEST)


def linear_scores(first, second):
    """Return directions in which two sets of standardised outputs differ.

    Parameters
    ----------
    first, second : ndarray of shape (n_runs, n_columns)
        Standardised outputs.

    Returns
    -------
    directions : dict of str to ndarray
        The difference of the means over the variance of every column and, for few columns,
        Fisher's discriminant.
    """
    gap = second.mean(axis=0) - first.mean(axis=0)
    centred = np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)])
    variance = (centred**2).mean(axis=0)
    floor = 1e-3 * max(float(variance.max()), 1e-12)
    found = {"mean difference": gap / (variance + floor)}
    if 1 < centred.shape[1] <= MOST_CORRELATED:
        covariance = centred.T @ centred / len(centred)
        # columns that add up to another one leave no inverse
        ridge = np.diag(1e-3 * variance + 1e-6 * floor)
        found["Fisher discriminant"] = np.linalg.lstsq(covariance + ridge, gap, rcond=None)[0]
    return found


def quadratic_score(first, second):
    """Return the log-ratio of two normal laws with independent columns, as a function."""
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
        By the lemma of Neyman and Pearson, its thresholds are the best tests if the
        histograms are right; they may be unions of intervals.
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
    """Return the columns whose values, or distances from 0, differ most in rank."""
    gap = np.abs(mann_whitney(first, second) - 0.5)
    spread = np.abs(mann_whitney(np.abs(first), np.abs(second)) - 0.5)
    return np.argsort(-np.maximum(gap, spread), kind="stable")[:MOST_COLUMNS]


def mann_whitney(first, second):
    """Return, by column, how likely a value of the second is larger; ties count half."""
    together = np.vstack([first, second])
    found = np.empty(together.shape[1])
    for place, column in enumerate(together.T):
        _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
        total = ranks[len(first) :].sum() - len(second) * (len(second) + 1) / 2
        found[place] = total / (len(first) * len(second))
    return found
