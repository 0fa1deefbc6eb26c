# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noisy bisection: a quantile of every feature at once, from noisy counts of sides.

Each step releases one vector of counts, at one threshold per feature, and halves what is
believed about the quantile. How many steps there are and what they cost is public; all the
rest is arithmetic on released numbers. It keeps weights of intervals, asks at their median,
and multiplies the weights above a threshold by the likelihood ratio of the released count
(probabilistic bisection, Horstein 1963). With little noise that is ordinary bisection; with
much noise a wrong turn is taken back, and if nothing can be learned what remains is the
prior.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

_LARGEST = np.finfo(np.float64).max
# bits of a float64 behind the sign
_EXPONENT, _MANTISSA, _BIAS = 11, 52, 1023
#: bits of the mantissa that are told apart: an offset may be a billion times the spread
MANTISSA_BITS = 30
# half of the prior is on magnitudes between 2^-8 and 2^8
_TYPICAL = 8.0
# prior of exactly zero
_ZERO = 0.2
# no count changes a log-weight by more, and none counts as further off in noise
_SURE, _FAR = 60.0, 8.0


@dataclass(frozen=True)
class LinearKey:
    """Equally spaced thresholds between public bounds; positions are 0, ..., 2^bits.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_features,)
        Public bounds, lower below upper, their difference finite.
    bits : int, default=30
        Resolution.
    """

    lower: Any
    upper: Any
    bits: int = 30

    @property
    def end(self):
        """Last position."""
        return 2**self.bits

    def prior(self):
        """Return where intervals start, and their weights."""
        return np.zeros(1), np.ones(1)

    def value(self, positions):
        """Return the thresholds at whole positions, one per feature."""
        share = positions / self.end
        return self.lower * (1 - share) + self.upper * share


@dataclass(frozen=True)
class FloatKey:
    """All finite floats of few digits, in order: no bounds are needed.

    The bits of a float that is not negative, read as an integer, are in the order of the
    floats; so equal distances of positions are equal relative distances of floats, all the
    way from 1e-308 to 1e308.

    Parameters
    ----------
    mantissa_bits : int, default=MANTISSA_BITS
        Neighbouring thresholds differ by at most 2^-mantissa_bits relatively.
    signed : bool, default=True
        Whether negative floats are among them.
    """

    mantissa_bits: int = MANTISSA_BITS
    signed: bool = True

    @property
    def _half(self):
        return 2 ** (_EXPONENT + self.mantissa_bits)

    @property
    def end(self):
        """Last position."""
        return 2 * self._half if self.signed else self._half

    def prior(self):
        """Return where intervals start, and their weights: zero, or Cauchy in the exponent.

        No scale is out of reach, and usual ones are reached sooner.
        """
        doubling = 2.0 ** np.arange(2, 10)
        exponents = np.concatenate([[-_BIAS], -doubling[::-1], [0], doubling, [_BIAS + 2]])
        starts = (exponents + _BIAS) * 2.0**self.mantissa_bits
        weights = np.diff(np.arctan(exponents / _TYPICAL))
        weights /= weights.sum()
        weights *= 1 - _ZERO
        if self.signed:
            mirrored = np.concatenate([-starts[:0:-1], [-1.0], starts[:-1]]) + self._half
            return mirrored, np.concatenate([weights[::-1] / 2, [_ZERO], weights / 2])
        return np.insert(starts[:-1], 1, 1.0), np.insert(weights, 0, _ZERO)

    def value(self, positions):
        """Return the thresholds at whole positions; beyond the largest float, that."""
        away = np.asarray(positions, dtype=np.int64) - self.signed * self._half
        shift = _MANTISSA - self.mantissa_bits
        # the last position is 2^63 and would overflow
        magnitude = np.minimum(np.abs(away), np.array(_LARGEST).view(np.int64) >> shift) << shift
        return np.copysign(magnitude.view(np.float64), away) + 0.0


@dataclass(frozen=True)
class Belief:
    """What is believed about a quantile of every feature.

    Parameters
    ----------
    key : LinearKey or FloatKey
        Thresholds.
    starts, logs : ndarray of shape (n_features, n_intervals)
        Positions where intervals start, and their log-weights.
    """

    key: Any
    starts: Any
    logs: Any

    @property
    def middle(self):
        """Thresholds that halve the weights."""
        _, share, low, high = _quantile(self.starts, self.logs, self.key.end)
        return self.key.value(np.clip(np.rint(low + share * (high - low)), low, high))

    def interval(self, tail=0.05):
        """Return thresholds (low, high] of whole intervals that leave out `tail` on each side."""
        low = _quantile(self.starts, self.logs, self.key.end, tail)[2]
        high = _quantile(self.starts, self.logs, self.key.end, 1 - tail)[3]
        return self.key.value(low), self.key.value(high)


def bisect_quantile(sides, key, tau, *, n_rows, n_features, steps, scale):
    """Search a quantile of every feature.

    Parameters
    ----------
    sides : callable
        Releases the `SideSum` of given thresholds; called `steps` times.
    key : LinearKey or FloatKey
        Public thresholds.
    tau : float
        Which quantile, strictly between 0 and 1.
    n_rows, n_features, steps : int
        Public.
    scale : float
        Standard deviation of the noise of a released sum; public.

    Returns
    -------
    belief : Belief
        Where the quantiles are.
    """
    # (1 - tau) n rows above, less half of the rows
    target = (0.5 - tau) * n_rows
    starts, weights = (np.tile(part, (n_features, 1)) for part in key.prior())
    logs = np.log(weights)
    every = np.arange(n_features)
    for _ in range(steps):
        inside, share, low, high = _quantile(starts, logs, key.end)
        at = np.clip(np.rint(low + share * (high - low)), low, high)
        excess = sides(key.value(at)) - target
        # an interval is cut where the question was; at its ends there is nothing to cut, and
        # what is added has no weight
        cut = (low < at) & (at < high)
        part = np.where(cut, (at - low) / (high - low), 1.0)
        with np.errstate(divide="ignore"):
            upper = logs[every, inside] + np.log1p(-part)
        logs[every, inside] += np.log(part)
        starts = np.column_stack([starts, np.where(cut, at, key.end)])
        logs = np.column_stack([logs, upper])
        odds = _log_odds(excess, (tau - 1) * n_rows, tau * n_rows, scale)
        logs += np.where(starts >= at[:, None], odds[:, None], 0.0)
        order = np.argsort(starts, axis=1, kind="stable")
        starts = np.take_along_axis(starts, order, axis=1)
        logs = np.take_along_axis(logs, order, axis=1)
    return Belief(key, starts, logs)


def _quantile(starts, logs, end, level=0.5):
    """Return the intervals with a quantile of the weights: index, share below, both ends."""
    every = np.arange(len(starts))
    with np.errstate(under="ignore"):
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    below = weights.cumsum(axis=1)
    wanted = level * below[:, -1]
    inside = np.argmax(below >= wanted[:, None], axis=1)
    share = 1 - (below[every, inside] - wanted) / weights[every, inside]
    ends = np.column_stack([starts[:, 1:], np.full(len(starts), float(end))])
    return inside, share, starts[every, inside], ends[every, inside]


def _log_odds(excess, lowest, highest, scale):
    """Return the log-odds that a count is above its target, given its noisy excess.

    Without noise the excess is uniform in (0, highest) or in (lowest, 0): that much of a
    prior makes counts that are drowned by noise say nothing.
    """
    excess = np.clip(excess, lowest - _FAR * scale, highest + _FAR * scale)
    above = _log_mass(-excess / scale, (highest - excess) / scale) - np.log(highest)
    below = _log_mass((lowest - excess) / scale, -excess / scale) - np.log(-lowest)
    return np.clip(above - below, -_SURE, _SURE)


def _log_mass(low, high):
    """Return the log of the standard Gaussian's mass between two points."""
    # in the lower tail, where logarithms are accurate
    low, high = np.where(low > 0, [-high, -low], [low, high])
    top = log_ndtr(high)
    return top + np.log(-np.expm1(np.minimum(log_ndtr(low) - top, -1e-300)))


def shortest(belief):
    """Return the decimals with the fewest digits that are as credible as the middle.

    Data are short decimals more often than sums of powers of two: so the common value of
    rows that are all equal is hit exactly.
    """
    (low, high), middle = belief.interval(), belief.middle
    found = np.where(high == 0, 0.0, middle)
    for i in np.flatnonzero(high):
        for digits in range(1, 18):
            decimal = float(f"{middle[i]:.{digits}g}")
            if low[i] < decimal <= high[i]:
                found[i] = decimal
                break
    return found
