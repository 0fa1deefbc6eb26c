# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A private range of every feature, for estimators that were given none.

The median of every feature, and then a quantile of the distances to it, are drawn by rank on the
ladder of all floats (`LadderRows`): no bound on the data is needed. A multiple of that distance is
the half width of the range. The multiple balances noise, which grows with it, and the bias of
clipping. What the draws cost, which quantile is drawn and which multiple is taken follow from the
budget and the shape of the data.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr, ndtri

from skdp._quantiles import LadderRows, QuantileRank, ladder_cells, ladder_values
from skdp.privacy.kernel.accounting import pure_mu
from skdp.privacy.laws.exponential import ExponentialMechanism

# ranks between a quantile and either end of the rows, in temperatures of a draw: aimed at, so that
# hardly any draw ends where no row is, beyond the quantile of the distances, and put up with
_AIMED, _BEYOND, _FEWEST = 18.0, 14.0, 12.0
# part of the budget that the draws get: at least, and at most
_SHARES = (0.15, 0.5)
# the quantile of the distances: the median at least
_HIGHEST = 0.99
#: half width of a range in standard deviations of a Gaussian: of medians, and limits for means
REACH, _REACHES = 5.0, (4.0, 100.0)
# the reach is so many times that power of the noise; chosen on data
_TIMES, _POWER = 1.2, -0.4
# half widths that floats can divide by, and that floats of single precision can tell from none
_NARROWEST, _WIDEST, _FINEST = 1e-38, 3e38, 2.0**-23


@dataclass(frozen=True)
class RangePlan:
    """How the ranges of all features are drawn; public numbers only.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data.
    price : float
        Epsilon of every draw; there are two for each feature.
    share : float
        Part of the budget that all draws get: of epsilon, or of the squared Gaussian-DP parameter.
    level : Fraction
        Which quantile of the distances to the medians is drawn.
    is_sound : bool
        Whether there are rows enough: most draws would end where no row is, otherwise.
    """

    n_rows: int
    n_features: int
    price: float
    share: float
    level: Fraction
    is_sound: bool

    @property
    def n_releases(self):
        """Number of releases."""
        return 2 * self.n_features

    @property
    def epsilon(self):
        """Epsilon of all draws."""
        return self.n_releases * self.price

    @property
    def mu(self):
        """Gaussian-DP parameter that all draws have together."""
        return pure_mu(self.price) * math.sqrt(self.n_releases) * (1 + 1e-12)

    def run(self, curator, reach, doubts):
        """Release the ranges.

        Parameters
        ----------
        curator : Curator
            Holds `LadderRows` without a center; with one, when this returns.
        reach : float
            Half width of a range, in standard deviations of a Gaussian whose distances have the
            drawn quantile.
        doubts : Doubts
            Takes a note of features whose values are found to be equal.

        Returns
        -------
        lower, upper : ndarray of shape (n_features,)
            Finite, lower below upper.
        """
        center = self._drawn(curator, Fraction(1, 2), signed=True)
        curator.map_rows(lambda rows: LadderRows(rows.X, center))
        distance = self._drawn(curator, self.level, signed=False)
        flat = np.flatnonzero(distance == 0)
        if len(flat):
            doubts.noise(
                f"{float(self.level):.2%} or more of the values of feature(s) {some_of(flat)} are "
                "equal, as far as can be told: other values are clipped to that one. Give public "
                "bounds."
            )
        # a spread that floats cannot tell from zero: most rows are equal
        least = np.maximum(np.abs(center) * _FINEST, _NARROWEST)
        half = np.clip(distance * reach / _deviations(self.level), least, _WIDEST)
        return center - half, center + half

    def _drawn(self, curator, tau, signed):
        """Release one quantile of every feature, or of its distances to a center."""
        cells, what = ladder_cells(signed), "a feature" if signed else "distances to a center"
        queries = [QuantileRank(j, tau, cells, what) for j in range(self.n_features)]
        paid = curator.prepay(queries[0], ExponentialMechanism(self.price), len(queries))
        return ladder_values([curator.release(query, paid)[0] for query in queries], signed)


def _deviations(level):
    """Return that quantile of the distances of a Gaussian, in standard deviations."""
    return float(ndtri((1 + float(level)) / 2))


def plan_range(epsilon, mu, *, n_rows, n_features):
    """Plan the draws of ranges from public numbers.

    Parameters
    ----------
    epsilon : float
        Budget of the whole fit.
    mu : float or None
        Its Gaussian-DP parameter, of which the draws get a part; None for a part of epsilon.
    n_rows, n_features : int
        Shape of the data.

    Returns
    -------
    plan : RangePlan
        The plan.

    Notes
    -----
    A draw of price p has the temperature ``2 / p``, or less under zero-out, in ranks. The median
    has ``n_rows / 2`` ranks on either side; ``k`` temperatures are that at ``p = 4 k / n_rows``.
    """
    count = 2 * n_features

    def share(price):
        return count * price / epsilon if mu is None else count * (pure_mu(price) / mu) ** 2

    def priced(part):
        if mu is None:
            return part * epsilon / count * (1 - 1e-12)
        # the inverse of `pure_mu`
        half = mu * math.sqrt(part / count) / 2
        return float(log_ndtr(half) - log_ndtr(-half)) * (1 - 1e-9)

    part = min(max(share(4 * _AIMED / n_rows), _SHARES[0]), _SHARES[1])
    price = priced(part)
    level = 1 - min(max(_BEYOND * 2 / price / n_rows, 1 - _HIGHEST), 0.5)
    return RangePlan(
        n_rows=n_rows,
        n_features=n_features,
        price=price,
        share=part,
        level=Fraction(level).limit_denominator(1000),
        is_sound=price * n_rows >= 4 * _FEWEST,
    )


def balanced_reach(noise):
    """Return the reach at which noise and the bias of clipping are about as large.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise of a mean, in half widths of the range.
    """
    return min(max(_TIMES * noise**_POWER, _REACHES[0]), _REACHES[1])


def some_of(indices):
    """Return the first few of some indices in words."""
    return ", ".join(map(str, indices[:5])) + (", ..." if len(indices) > 5 else "")


def say_of_range(doubts, plan, epsilon):
    """Take note of ranges that are mostly noise; public numbers alone decide."""
    if not plan.is_sound:
        needed = math.ceil(4 * _FEWEST / plan.price)
        doubts.noise(
            f"{plan.n_rows} rows at epsilon={epsilon:.4g} are too few for a private range of "
            f"{plan.n_features} feature(s): what is released is mostly noise. Give public bounds, "
            f"or use some {needed} rows or a larger epsilon."
        )
