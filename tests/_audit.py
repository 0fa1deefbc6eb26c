# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits of a fit: coupled trace, noise stream, black box, and taint in its source.

All additive noise goes through one function, `add_noise` of the kernel's mechanisms. The
first two audits stand in front of it.
"""

import contextlib
from dataclasses import dataclass
from unittest import mock

import numpy as np
from scipy import stats
from scipy.special import ndtri

from skdp.privacy import Sensitivity, gdp_epsilon
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests._taint import Taint

__all__ = [
    "Addition", "Taint", "black_box_epsilon", "coupled", "coupled_epsilon", "coupled_mu",
    "law_is_wrong", "noise_stream", "rate_epsilon", "recorded", "repeats", "scale_is_wrong",
    "threshold_mu",
]  # fmt: skip

#: chance that an audit of correct noise raises a false alarm
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Addition:
    """One noise addition: the statistic on the grid, the declared noise, the output."""

    statistic: np.ndarray
    noise: _mechanisms.Noise
    output: np.ndarray

    @property
    def standard(self):
        """The noise that was added, in units of its declared scale."""
        return (self.output - self.statistic) / self.noise.scale


@dataclass(frozen=True)
class ColumnSum:
    """Sum of the rows of an array, none of them longer than 1: the query of a curator alone."""

    size: int
    name = "sum of rows"

    def sensitivity(self, adjacency, n_rows):
        """State the longest change of the sum between neighbours."""
        reach = 1.0 if adjacency == "zero-out" else 2.0
        return Sensitivity(reach * self.size**0.5, reach, float(n_rows), "no row is longer than 1")

    def evaluate(self, rows):
        """Return the sum."""
        return rows.sum(axis=0)


@contextlib.contextmanager
def recorded(outputs=None):
    """Record every noise addition of the body, with given outputs instead of noise or none.

    Whatever stands under the name `add_noise` in the kernel's mechanisms is what is audited.
    """
    additions, add_noise = [], _mechanisms.add_noise

    def audited(values, noise, bits):
        statistic = noise.grid * _mechanisms.align(values, noise)
        output = add_noise(values, noise, bits) if outputs is None else outputs[len(additions)]
        additions.append(Addition(statistic, noise, output))
        return output.copy()

    with mock.patch.object(_mechanisms, "add_noise", audited):
        yield additions


def coupled(fit_on, first, second):
    """Run a fit on one data set, replay it on another with the same noisy outputs.

    Returns
    -------
    pairs : list of (Addition, Addition)
        Step by step; everything public about them is equal.
    """
    with recorded() as original:
        fit_on(first)
    with recorded([step.output for step in original]) as replay:
        fit_on(second)
    assert original
    assert [step.noise for step in original] == [step.noise for step in replay]
    return list(zip(original, replay, strict=True))


def coupled_mu(fit_on, first, second):
    """Return the Gaussian-DP parameter between two data sets, exactly, for one trajectory."""
    total = 0.0
    for one, other in coupled(fit_on, first, second):
        assert one.noise.law == "gaussian"
        total += (np.linalg.norm(one.statistic - other.statistic) / one.noise.scale) ** 2
    return float(np.sqrt(total))


#: the norm in which noise of a law falls off exponentially
NORMS = {"laplace": 1, "k-norm": 2}


def coupled_epsilon(fit_on, first, second):
    """Return the largest log-ratio of output densities, for Laplace and K-norm noise."""
    total = 0.0
    for one, other in coupled(fit_on, first, second):
        gap = one.statistic - other.statistic
        total += np.linalg.norm(gap, ord=NORMS[one.noise.law]) / one.noise.scale
    return float(total)


def noise_stream(fit, *data):
    """Return the noise additions of a fit."""
    with recorded() as additions:
        fit(*data)
    return additions


def _chi_square(step):
    """Return a chi-square variable made of one addition's noise, and its degrees of freedom."""
    if step.noise.law == "gaussian":
        return np.sum(step.standard**2), step.standard.size
    # twice the norm of the noise has the Gamma law of as many exponential variables
    norm = np.linalg.norm(step.standard, ord=NORMS[step.noise.law])
    return 2 * norm, 2 * step.standard.size


def scale_is_wrong(additions):
    """Return whether the size of the noise contradicts its declared scale."""
    total, freedom = np.sum([_chi_square(step) for step in additions], axis=0)
    tails = stats.chi2.cdf(total, freedom), stats.chi2.sf(total, freedom)
    return 2 * min(tails) < FALSE_ALARM


def law_is_wrong(additions):
    """Return whether the sizes of many additions contradict their declared law."""
    levels = [stats.chi2.cdf(*_chi_square(step)) for step in additions]
    return stats.kstest(levels, "uniform").pvalue < FALSE_ALARM


def repeats(*streams):
    """Count runs of three draws that occur more than once, up to sign and scale.

    A stream is an array of draws in units of their scale. By chance, three draws agree to
    six digits once in 10^16 pairs.
    """
    windows = [np.lib.stride_tricks.sliding_window_view(np.abs(s), 3) for s in streams]
    found = np.round(np.concatenate(windows), 6)
    return len(found) - len(np.unique(found, axis=0))


def threshold_mu(first, second, confidence=0.999):
    """Return a lower bound on the Gaussian-DP parameter, from outputs of two worlds.

    `first` and `second` have a row for every run. Half of the runs choose a direction
    (Fisher's discriminant) and a threshold; the error rates of that test on the other
    half are bounded by Clopper and Pearson. mu-GDP allows no test with
    ``ndtri(1 - FPR) - ndtri(FNR) > mu``.
    """
    half = len(first) // 2
    pooled = np.cov(first[:half].T) + np.cov(second[:half].T)
    gap = second[:half].mean(axis=0) - first[:half].mean(axis=0)
    direction = np.linalg.lstsq(np.atleast_2d(pooled), gap, rcond=None)[0]
    train = first[:half] @ direction, second[:half] @ direction
    grid = np.quantile(np.concatenate(train), np.linspace(0.02, 0.98, 97))
    threshold = max(grid, key=lambda t: _separation(*train, t, 0.99))
    return _separation(first[half:] @ direction, second[half:] @ direction, threshold, confidence)


def _separation(first, second, threshold, confidence):
    false_positive = _rate_at_most(np.sum(first > threshold), len(first), confidence)
    false_negative = _rate_at_most(np.sum(second <= threshold), len(second), confidence)
    return float(ndtri(1 - false_positive) - ndtri(false_negative))


def _rate_at_most(count, total, confidence):
    # both rates hold together with the stated confidence
    miss = (1 - confidence) / 2
    return 1.0 if count == total else float(stats.beta.ppf(1 - miss, count + 1, total - count))


def black_box_epsilon(first, second, delta):
    """Return a lower bound on epsilon at `delta`, from outputs of two worlds."""
    return gdp_epsilon(max(0.0, threshold_mu(first, second)), delta)


def rate_epsilon(first, second, delta=0.0, confidence=0.99):
    """Return a lower bound on epsilon at `delta`, whatever the mechanism, from two worlds.

    `first` and `second` have a number for every run. Half of the runs choose the interval,
    unbounded on one side, that tells the worlds apart best; on the other half its rates
    are bounded by Clopper and Pearson.
    """
    half, best = len(first) // 2, (-np.inf, 0.0, 1, False)
    for threshold in np.quantile(np.concatenate([first[:half], second[:half]]), QUANTILES):
        for side in (-1, 1):
            for swap in (False, True):
                rates = _log_ratio(first[:half], second[:half], threshold, side, swap, delta, 0.9)
                best = max(best, (rates, threshold, side, swap))
    return _log_ratio(first[half:], second[half:], *best[1:], delta, confidence)


QUANTILES = np.linspace(0.02, 0.98, 49)


def _log_ratio(first, second, threshold, side, swap, delta, confidence):
    first, second = (second, first) if swap else (first, second)
    hits = [np.sum(side * world > side * threshold) for world in (first, second)]
    seldom = _rate_at_most(hits[0], len(first), confidence)
    often = 1 - _rate_at_most(len(second) - hits[1], len(second), confidence)
    return float(np.log(max(often - delta, 1e-300) / seldom))
