# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A descent whose noise comes at once: what the lazy one must agree with, and its audits.

`DenseSums` stands in for `LazySums`. It adds noise to all columns in every step through
`add_noise`, so that the audits of releases see every step of it.
"""

import contextlib
from unittest import mock

import numpy as np
from scipy import stats
from sklearn.base import clone

from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.laws import late_noise as _late_noise
from tests._audit import FALSE_ALARM


class DenseSums:
    """The recursion as it is printed: O(all columns) a step."""

    def __init__(self, shape, n_free, decay, n_steps, n_skipped, noise, bits):
        self.decay = np.full((shape[0], 1), decay)
        self.decay[shape[0] - n_free :] = 1.0
        self.n_steps, self.n_skipped, self.noise, self.bits = n_steps, n_skipped, noise, bits
        self.values, self.iterates = np.zeros(shape), []

    def at(self, columns, step):
        assert step == len(self.iterates)
        return self.values[columns]

    def add(self, columns, statistic):
        dense = np.zeros_like(self.values)
        dense[columns] = statistic
        released = _mechanisms.add_noise(dense.ravel(), self.noise, self.bits)
        self.values = self.decay * (self.values + released.reshape(dense.shape))
        self.iterates.append(self.values)

    def average(self):
        assert len(self.iterates) == self.n_steps
        return np.mean(self.iterates[self.n_skipped :], axis=0)


@contextlib.contextmanager
def dense_noise():
    """Make fits of solver "lazy-sgd" add all noise in every step."""
    with mock.patch.object(_late_noise, "LazySums", DenseSums):
        yield


def dense(fit):
    """Return a fit that adds all noise in every step."""

    def with_dense_noise(*data):
        with dense_noise():
            return fit(*data)

    return with_dense_noise


def noise_weights(decay, n_steps, n_skipped):
    """Return what the average of iterates makes of the noise of every step, by the recursion."""
    value, total = np.zeros(n_steps), np.zeros(n_steps)
    for step in range(n_steps):
        value[step] += 1.0
        value = decay * value
        if step >= n_skipped:
            total += value
    return total / (n_steps - n_skipped)


def coefficient_noise(model, X, y):
    """Return the coefficients of a fit to rows that contribute nothing, in deviations.

    Every row must be null, so that the coefficients are noise and nothing else.
    """
    plans = []
    release = _late_noise.LateNoise.release

    def listening(law, query, noise, source):
        sums = release(law, query, noise, source)
        plans.append((query, law.n_steps, law.n_skipped))
        return sums

    with mock.patch.object(_late_noise.LateNoise, "release", listening):
        fitted = clone(model).fit(X, y)
    ((query, *steps),) = plans
    scale = query.step * fitted.ledger_.releases[0].noise.scale
    unit = [np.linalg.norm(noise_weights(a, *steps)) * scale for a in (query.decay, 1.0)]
    return fitted.coef_ / unit[0], fitted.intercept_ / (0.1 * unit[1])


def law_is_wrong(draws):
    """Return whether draws, a row for every fit, contradict independent standard normals."""
    draws = np.array(draws)
    total, freedom = np.sum(draws**2), draws.size
    tails = stats.chi2.cdf(total, freedom), stats.chi2.sf(total, freedom)
    # sums over the columns of a fit, and over the fits of a column
    across, along = draws.sum(axis=1) ** 2 / draws.shape[1], draws.sum(axis=0) ** 2 / len(draws)
    levels = [2 * min(tails), stats.chi2.sf(across.sum(), len(draws))]
    levels += [stats.chi2.sf(along.sum(), draws.shape[1])]
    levels += [stats.kstest(draws.ravel(), "norm").pvalue]
    return min(levels) < FALSE_ALARM / len(levels)
