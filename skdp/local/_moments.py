# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Running sums of reports, and estimates of the moments of rows."""

import math
from itertools import pairwise

import numpy as np

from skdp.privacy.laws.local_reports import LocalMechanism

# numbers of reports that are in memory at a time
_AT_ONCE = 1 << 20


class MeanSums:
    """Mean and variance of the entries of reports.

    Parameters
    ----------
    size : int
        Number of entries of a report.
    """

    def __init__(self, size):
        self.n_reports, self.mean, self._squares = 0, np.zeros(size), np.zeros(size)

    def add(self, reports):
        """Add an ndarray of shape (n_reports, size)."""
        n_new = len(reports)
        n_all = self.n_reports + n_new
        mean = reports[0] if n_new == 1 else reports.mean(axis=0)
        shift = mean - self.mean
        if n_new > 1:
            # deviations from the own mean: what is common to all does not cancel
            self._squares += ((reports - mean) ** 2).sum(axis=0)
        self._squares += shift**2 * (self.n_reports * n_new / n_all)
        self.mean += shift * (n_new / n_all)
        self.n_reports = n_all

    def merge(self, other):
        """Add the sums of another object."""
        n_all = self.n_reports + other.n_reports
        if not other.n_reports:
            return
        shift = other.mean - self.mean
        self._squares += other._squares
        self._squares += shift**2 * (self.n_reports * (other.n_reports / n_all))
        self.mean += shift * (other.n_reports / n_all)
        self.n_reports = n_all

    @property
    def state(self):
        """State of the sums, an ndarray of shape (2, size); `restore` takes it."""
        return np.stack([self.mean, self._squares])

    def restore(self, n_reports, state):
        """Set the state of the sums, or raise a ValueError."""
        if not (state[1] >= 0.0).all():
            raise ValueError("sums of squares must not be negative.")
        self.n_reports, self.mean, self._squares = n_reports, state[0].copy(), state[1].copy()

    @property
    def variance(self):
        """Unbiased variance of the entries; infinite for a single report."""
        if self.n_reports < 2:
            return np.full(len(self.mean), np.inf)
        return self._squares / (self.n_reports - 1)


class CategoryCounts:
    """Running numbers of reports that name each category.

    Parameters
    ----------
    size : int
        Number of categories.
    """

    def __init__(self, size):
        self.n_reports, self.counts = 0, np.zeros(size)

    def add(self, reports):
        """Add an ndarray of shape (n_reports, size)."""
        self.n_reports += len(reports)
        self.counts += reports.sum(axis=0)

    def merge(self, other):
        """Add the sums of another object."""
        self.n_reports += other.n_reports
        self.counts += other.counts

    @property
    def state(self):
        """State of the sums, an ndarray of shape (1, size); `restore` takes it."""
        return self.counts[None]

    def restore(self, n_reports, state):
        """Set the state of the sums, or raise a ValueError."""
        counts = state[0].copy()
        if not ((counts >= 0.0) & (counts <= n_reports) & (counts == np.rint(counts))).all():
            raise ValueError("counts must be whole numbers, and at most that of reports.")
        self.n_reports, self.counts = n_reports, counts


class MomentSums:
    """Sum of reports, and of their products with themselves.

    Parameters
    ----------
    size : int
        Number of entries of a report.
    """

    def __init__(self, size):
        self.n_reports, self.total, self.gram = 0, np.zeros(size), np.zeros((size, size))

    def add(self, reports):
        """Add an ndarray of shape (n_reports, size)."""
        self.n_reports += len(reports)
        self.total += reports.sum(axis=0)
        self.gram += reports.T @ reports

    def merge(self, other):
        """Add the sums of another object."""
        self.n_reports += other.n_reports
        self.total += other.total
        self.gram += other.gram

    @property
    def state(self):
        """State of the sums, an ndarray of shape (1 + size, size); `restore` takes it."""
        return np.vstack([self.total, self.gram])

    def restore(self, n_reports, state):
        """Set the state of the sums, or raise a ValueError."""
        total, gram = state[0].copy(), state[1:].copy()
        if not (np.array_equal(gram, gram.T) and (np.diag(gram) >= 0.0).all()):
            raise ValueError("sums of products must be symmetric, and of squares not negative.")
        self.n_reports, self.total, self.gram = n_reports, total, gram

    def second_moment(self, unit):
        """Return the unbiased mean of ``w w'`` over vectors w with reports by lift.

        Parameters
        ----------
        unit : PrivUnit
            Parameters of the lift; a report has the second moment ``s I + (c/m) w w'``.
        """
        moment = self.gram / self.n_reports
        moment[np.diag_indices_from(moment)] -= unit.noise_variance
        return moment / (unit.cosine / unit.scale)

    def covariance(self, unit):
        """Return the unbiased mean of ``(w - v) (w - v)'``, where v is the mean of all w.

        Parameters
        ----------
        unit : PrivUnit
            As for `second_moment`.

        Notes
        -----
        The mean of reports is v plus noise. The covariance of the noise is the mean covariance of
        a report, ``s I + (c/m - 1) w w'``, over their number.
        """
        mean, moment = self.total / self.n_reports, self.second_moment(unit)
        noise = (unit.cosine / unit.scale - 1.0) * moment
        noise[np.diag_indices_from(noise)] += unit.noise_variance
        return moment - np.outer(mean, mean) + noise / self.n_reports


def add_reports(curator, query, epsilon, accounts):
    """Let every row report once, and add up the reports.

    Parameters
    ----------
    curator : Curator
        Holds the rows.
    query : LocalReports
        Query of the reports.
    epsilon : float
        Budget of one report.
    accounts : sequence of ((int, int), object)
        Consecutive parts that cover all rows, and the sums of their reports.

    Notes
    -----
    At most about a million numbers of reports are in memory at a time.
    """
    prepaid = curator.prepay(query, LocalMechanism(epsilon), 1)
    step = max(1, _AT_ONCE // query.size)
    first, last = accounts[0][0][0], accounts[-1][0][1]
    for start, stop in pairwise([*range(first, last, step), last]):
        reports = curator.release(query, prepaid, rows=(start, stop))
        for (low, high), sums in accounts:
            own = reports[max(low - start, 0) : max(high - start, 0)]
            if len(own):
                sums.add(own)


def noise_level(unit, size, n_reports):
    """Return the largest eigenvalue of pure noise in a second moment of reports.

    Parameters
    ----------
    unit : PrivUnit
        Parameters of the lift.
    size, n_reports : int
        Number of entries of a report, and of reports.

    Returns
    -------
    level : float
        Upper edge of the spectrum of a sample covariance of isotropic noise (Marchenko and Pastur
        1967), minus the variance of the noise: ``s (2 sqrt(p/n) + p/n)``.
    """
    ratio = size / n_reports
    spread = 2.0 * math.sqrt(ratio) + ratio
    return unit.noise_variance * spread / (unit.cosine / unit.scale)
