# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A private range of every feature, for estimators that were given none.

The median of every feature, and then a quantile of the distances to it, are drawn by rank among
floats of all magnitudes (`LadderRows`): no bound on the data is needed. A multiple of that distance
is the half width of the range. The multiple balances noise, which grows with it, and the bias of
clipping. What the draws cost, how fine the floats are, which quantile is drawn and which multiple
is taken follow from the budget and the shape of the data; so does whether anything is drawn at all.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr, ndtri

from skdp._quantiles import COARSEST, LARGEST_SINGLE, Ladder, LadderRows, finest_ladder
from skdp.privacy.kernel.accounting import pure_mu
from skdp.privacy.laws.exponential import ExponentialMechanism

#: bound on the failure of a draw that is put up with; see `Ladder.needed`. Features share it: one
#: range among hundreds that ends where no row is makes a mean of 1e30
UNLIKELY = 0.002
# distances to the medians need not be known any better
_DISTANCES = Ladder(COARSEST, signed=False)
# ranks between a quantile and either end of the rows, in temperatures of a draw: aimed at, at least
# beyond the quantile of the distances, and put up with for medians and distances
_AIMED, _BEYOND = 18.0, 14.0
_MEDIANS = Ladder(COARSEST, signed=True)
# part of the budget that the draws get: at least, and at most
_SHARES = (0.15, 0.55)
# the quantile of the distances: the median at least
_HIGHEST = 0.99
#: half width of a range in standard deviations of a Gaussian: of medians, and limits for means
REACH, _REACHES = 5.0, (4.0, 100.0)
# the reach is so many times that power of the noise; chosen on data
_TIMES, _POWER = 1.2, -0.4
# below this level, a whole number that most values are equal to is taken for a count; and distances
# that no two counts have: draws often fall between 0 and 1. On five columns of counts that are
# mostly 0 (80 to 86 %), errors of means at n epsilon from 300 to 2,000 fell from .3 to .4 standard
# deviations to .03 to .2
LEVEL_OF_COUNTS, NO_COUNT = 0.9, 2.0**-10
#: half widths that floats can divide by, and that floats of single precision can tell from none
NARROWEST_WIDTH, _WIDEST, FINEST_WIDTH = 1e-38, 3e38, 2.0**-23


@dataclass(frozen=True)
class RangePlan:
    """How the ranges of all features are drawn; public numbers only.

    Parameters
    ----------
    n_rows, n_features, enough : int
        Shape of the data, and the number of rows that is not too few.
    median_price, distance_price : float, default=0.0
        Epsilon of the two draws for each feature. At 0 nothing is drawn, for want of rows: most
        draws would end where no row is. The features are then taken to be standardised.
    medians : Ladder, default=None
        The floats among which a median is drawn.
    level : Fraction, default=1/2
        Which quantile of the distances to the medians is drawn.
    adds_up : bool, default=True
        Whether the draws were planned by the sum of their prices, not by their Gaussian-DP
        parameters.
    """

    n_rows: int
    n_features: int
    enough: int
    median_price: float = 0.0
    distance_price: float = 0.0
    medians: Ladder | None = None
    level: Fraction = Fraction(1, 2)
    adds_up: bool = True

    @property
    def is_sound(self):
        """Whether there are rows enough."""
        return self.medians is not None

    @property
    def n_releases(self):
        """Number of draws."""
        return 2 * self.n_features * self.is_sound

    @property
    def epsilon(self):
        """Epsilon of all draws."""
        return self.n_features * (self.median_price + self.distance_price)

    @property
    def beside(self):
        """What Gaussian releases have beside them: prices, and a Gaussian-DP parameter."""
        if not self.is_sound:
            return (), 0.0
        if self.adds_up:
            return (self.median_price, self.distance_price) * self.n_features, 0.0
        one = math.hypot(pure_mu(self.median_price), pure_mu(self.distance_price))
        return (), one * math.sqrt(self.n_features) * (1 + 1e-12)

    def admitted(self, X, weight=None):
        """Return the rows that `run` begins with, each with what it counts."""
        return LadderRows(X, self.medians or _DISTANCES, weight=weight)

    def run(self, curator, reach, doubts, whole=False):
        """Release the ranges.

        Parameters
        ----------
        curator : Curator
            Holds what `admitted` returned; distances, when this returns.
        reach : float
            Half width of a range, in standard deviations of a Gaussian whose distances have the
            drawn quantile.
        doubts : Doubts
            Takes a note of features whose values are found to be equal.
        whole : ndarray of shape (n_features,), dtype bool, default=False
            Features that have whole numbers alone, by their type: 1 apart, at least.

        Returns
        -------
        lower, upper : ndarray of shape (n_features,)
            Finite, lower below upper.
        """
        if not self.is_sound:
            half = np.full(self.n_features, reach)
            return -half, half
        center = self._drawn(curator, self.medians, Fraction(1, 2), self.median_price)
        center = np.where(whole, np.rint(center), center)
        curator.map_rows(lambda rows: LadderRows(rows.X, _DISTANCES, center, rows.weight))
        distance = self._drawn(curator, _DISTANCES, self.level, self.distance_price)
        say_of_ends(doubts, np.maximum(np.abs(center), distance))
        spread = distance / _deviations(self.level)
        flat = np.flatnonzero(distance == 0)
        if len(flat):
            doubts.noise(
                f"{float(self.level):.2%} or more of the values of feature(s) "
                f"{doubts.named(flat)} are equal, or nearly so. Others are clipped to that value, "
                "or close to it. Give public bounds."
            )
        if self.level < LEVEL_OF_COUNTS:
            # others are not seen, and whole numbers are most often counts: 1 is their unit
            spread[(np.rint(center) == center) & (distance < NO_COUNT)] = 1.0
        spread = np.where(whole, np.maximum(spread, 0.5), spread)
        # a spread that floats cannot tell from zero
        least = np.maximum(np.abs(center) * FINEST_WIDTH, NARROWEST_WIDTH)
        half = np.clip(spread * reach, least, _WIDEST)
        return center - half, center + half

    def _drawn(self, curator, ladder, tau, price):
        """Release one quantile of every feature, or of its distances to a center."""
        what = "a feature" if ladder.signed else "distances to a center"
        queries = [ladder.query(j, tau, what) for j in range(self.n_features)]
        paid = curator.prepay(queries[0], ExponentialMechanism(price), len(queries))
        return ladder.values([curator.release(query, paid)[0] for query in queries])


def _deviations(level):
    """Return that quantile of the distances of a Gaussian, in standard deviations."""
    return float(ndtri((1 + float(level)) / 2))


def plan_range(epsilon, mu, *, n_rows, n_features, adjacency):
    """Plan the draws of ranges from public numbers.

    Parameters
    ----------
    epsilon : float
        Budget of the whole fit.
    mu : float or None
        Its Gaussian-DP parameter, if Gaussian releases follow; None for none.
    n_rows, n_features : int
        Shape of the data.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.

    Returns
    -------
    plan : RangePlan
        Without a price, if there are too few rows.

    Notes
    -----
    A draw of price p has the temperature ``2 / p`` in ranks, for medians under zero-out half of it.
    There are ``n_rows / 2`` ranks on either side of a median: ``k`` temperatures at
    ``p = 4 k / n_rows``. Prices of few draws add up to less than their Gaussian-DP parameters say.
    """
    if mu is not None:
        shape = {"n_rows": n_rows, "n_features": n_features, "adjacency": adjacency}
        plans = _planned(epsilon, mu, **shape), _planned(epsilon, None, **shape)
        # what is left beside prices takes a second to find
        sound = [plan for plan in plans if plan.is_sound]
        return sound[0] if sound else min(plans, key=lambda plan: plan.enough)
    return _planned(epsilon, None, n_rows=n_rows, n_features=n_features, adjacency=adjacency)


def _planned(epsilon, mu, *, n_rows, n_features, adjacency):
    """Return a plan by prices that add up, or by Gaussian-DP parameters."""
    moved = 0.5 if adjacency == "zero-out" else 1.0
    failure = UNLIKELY / n_features
    fewest = _MEDIANS.needed(failure), _DISTANCES.needed(failure)
    # both draws fail alike
    ratio = moved * fewest[0] / fewest[1]
    aimed = max(_AIMED, fewest[1] * (1 + 1e-9))
    part = _cost(epsilon, mu, n_features, ratio, 4 * aimed / n_rows)
    worst = _draw_prices(epsilon, mu, n_features, ratio, _SHARES[1])
    enough = math.ceil(4 * max(moved * fewest[0] / worst[0], fewest[1] / worst[1]))
    prices = _draw_prices(epsilon, mu, n_features, ratio, min(max(part, _SHARES[0]), _SHARES[1]))
    median, distance = prices[0] * n_rows / (4 * moved), prices[1] * n_rows / 4
    medians = finest_ladder(median, failure)
    if medians is None or distance < fewest[1]:
        return RangePlan(n_rows, n_features, max(enough, n_rows + 1))
    beyond = _BEYOND + math.log(n_features)
    level = 1 - min(max(beyond / (2 * distance), 1 - _HIGHEST), 0.5)
    level = Fraction(level).limit_denominator(1000)
    return RangePlan(n_rows, n_features, enough, *prices, medians, level, mu is None)


def _cost(epsilon, mu, n_features, ratio, price):
    """Return which part of a budget all draws take, those of distances at a price."""
    if mu is None:
        return n_features * (1 + ratio) * price / epsilon
    return n_features * (pure_mu(price) ** 2 + pure_mu(ratio * price) ** 2) / mu**2


def _draw_prices(epsilon, mu, n_features, ratio, part):
    """Return the prices of the draw of a median and of a distance, from a part of a budget."""
    if mu is None:
        price = part * epsilon / (n_features * (1 + ratio)) * (1 - 1e-12)
        return ratio * price, price
    # more than the price of distances can be: the inverse of `pure_mu`
    half = mu * math.sqrt(part / n_features) / 2
    low, high = 0.0, float(log_ndtr(half) - log_ndtr(-half)) * (1 + 1e-9)
    for _ in range(60):
        middle = (low + high) / 2
        if _cost(epsilon, mu, n_features, ratio, middle) <= part:
            low = middle
        else:
            high = middle
    return ratio * low, low


def balanced_reach(noise):
    """Return the reach at which noise and the bias of clipping are about as large.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise of a mean, in half widths of the range.
    """
    return min(max(_TIMES * noise**_POWER, _REACHES[0]), _REACHES[1])


def say_of_ends(doubts, drawn, named=None):
    """Take note of what was drawn at an end of the floats of single precision."""
    far = np.flatnonzero(np.abs(drawn) >= 0.99 * LARGEST_SINGLE)
    if len(far):
        called = (named or doubts.named)(far)
        doubts.noise(
            f"feature(s) {called} have values beyond {LARGEST_SINGLE:.0e}, which are clipped. "
            "Give public bounds, or rescale the features."
        )


def say_of_range(doubts, plan, epsilon, unit="row"):
    """Take note of ranges that nobody gave and that were not drawn; public numbers alone decide."""
    if not plan.is_sound:
        doubts.noise(
            f"{plan.n_rows} {unit}s at epsilon={epsilon:.4g} are too few for a private range of "
            f"{plan.n_features} feature(s), so values are clipped as if the features were "
            f"standardised. Give public bounds, or use {plan.enough} {unit}s or a larger epsilon."
        )
