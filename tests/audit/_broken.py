# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Estimators that keep their claim, and estimators that break it in one known way."""

from functools import lru_cache

import numpy as np
from sklearn.base import BaseEstimator

from skdp.privacy import gdp_mu

#: a search of its own, once for all fits
MU = lru_cache(gdp_mu)


class LaplaceMean(BaseEstimator):
    """Mean of one clipped column with Laplace noise; claims epsilon, replace-one."""

    noise, clips, told = 1.0, True, True

    def __init__(self, epsilon=1.0, data_norm=1.0, random_state=None):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.random_state = random_state

    def fit(self, X, y=None):
        X = np.asarray(X, dtype=float)[:, 0]
        kept = np.clip(X, -self.data_norm, self.data_norm) if self.clips else X
        scale = 2 * self.data_norm / len(X) / (self.epsilon if self.told else 10.0)
        rng = np.random.default_rng(self.random_state)
        self.location_ = np.array([kept.mean() + rng.laplace(scale=self.noise * scale)])
        self.n_rows_ = len(X)
        return self


class HalvedNoise(LaplaceMean):
    """Half the noise that the claim needs."""

    noise = 0.5


class NoClipping(LaplaceMean):
    """One row moves the mean as far as it likes."""

    clips = False


class BudgetIgnored(LaplaceMean):
    """Noise for epsilon 10, whatever is asked."""

    told = False


class NoiselessIntercept(LaplaceMean):
    """A second number without noise."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.intercept_ = float(np.mean(X))
        return self


class RaisesOnOutliers(LaplaceMean):
    """Refuses data for what is in them."""

    def fit(self, X, y=None):
        if np.abs(X).max() > 10 * self.data_norm and np.sum(X) > 0:
            raise ValueError("too far")
        return super().fit(X, y)


class NanOnOutliers(LaplaceMean):
    """Releases NaN for some data."""

    def fit(self, X, y=None):
        super().fit(X, y)
        if np.sum(X) > 5 * self.data_norm:
            self.location_ = np.array([np.nan])
        return self


class CountsSteps(LaplaceMean):
    """Stops when the data say so, and tells after how many steps."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.n_iter_ = int(np.sum(np.asarray(X) > 0))
        return self


class Constant(LaplaceMean):
    """Learns nothing."""

    def fit(self, X, y=None):
        self.location_ = np.zeros(1)
        return self


class GaussianMean(LaplaceMean):
    """Gaussian noise of the least size that (epsilon, delta) allows, times `factor`."""

    def __init__(self, epsilon=1.0, delta=1e-5, factor=1.0, data_norm=1.0, random_state=None):
        super().__init__(epsilon, data_norm, random_state)
        self.delta = delta
        self.factor = factor

    def fit(self, X, y=None):
        kept = np.clip(np.asarray(X, dtype=float)[:, 0], -self.data_norm, self.data_norm)
        sigma = 2 * self.data_norm / len(kept) / MU(self.epsilon, self.delta)
        rng = np.random.default_rng(self.random_state)
        self.location_ = np.array([kept.mean() + self.factor * sigma * rng.normal()])
        return self


class Unclonable:
    """A method `fit`, an attribute, and nothing else."""

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def fit(self, X):
        self.total_ = [float(np.sum(X)), np.random.default_rng().laplace() / self.epsilon]
        return self


class Bare(BaseEstimator):
    """Keeps nothing."""

    def fit(self, X, y=None):
        return self
