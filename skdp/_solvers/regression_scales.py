# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private scales of a regression: unit of length, centre and unit of the targets, a threshold.

All of them are drawn by ranks from public grids of a huge range, and are purely private.
Which draws are made, and at what price, follows from the numbers of rows and epsilon alone.
"""

import math
from dataclasses import dataclass

from skdp._queries import GradientNorm, MagnitudeThreshold, RowNorm, TargetDistance, TargetMedian
from skdp.privacy import ExponentialMechanism

#: scales lie in this range
SMALLEST, LARGEST = 1e-50, 1e50
# factor between neighbouring scales: what finer ones would gain, constants elsewhere lose
_RATIO = 1.2
# cells of the grid for the median, which spans a few times the magnitude of the targets
_CELLS = 2**24
_SPAN = 1.5
# a quarter of the rows lies beyond a scale, give or take that share of the rows
_TAIL, _AWAY = 0.25, 3 / 16
# ... and a quarter of them may lie between the median and what is drawn
_MEDIAN_AWAY = 0.25
# chance that a draw is further off: what is aimed at, and what is put up with
_AIM, _WORST = 1e-6, 3e-4
# all scales together cost at most this part of epsilon, and so does the threshold
_SHARE, _THRESHOLD_SHARE = 0.2, 0.1
# the grid of thresholds, in public units
_GRADIENTS, _GRADIENT_RATIO = (1e-9, 1e9), 1.1


def _points(smallest, largest, ratio):
    return 1 + math.ceil(math.log(largest / smallest) / math.log(ratio))


def _price(spread, n_rows, away, points, failure):
    """Return the epsilon at which a draw is further off than wanted with that chance.

    A score above ``away * n_rows`` has probability at most ``points exp(-away n_rows / T)`` at
    the temperature T = spread / epsilon (McSherry and Talwar 2007).
    """
    return spread / (away * n_rows) * math.log(points / failure)


def _drawn(curator, magnitude, bounds, ratio, tail, price):
    """Release a magnitude, on a geometric grid between bounds, that `tail` rows exceed."""
    query = MagnitudeThreshold(magnitude, bounds[0], ratio, _points(*bounds, ratio), tail)
    (index,) = curator.release(query, ExponentialMechanism(price))
    return float(query.grid()[int(index)])


@dataclass(frozen=True)
class ScalesPlan:
    """How the scales are drawn; public numbers only.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    norm_price, size_price, median_price, distance_price : float
        Epsilon of the draws: of the radius; of the magnitude of the targets; of their median;
        of their distance from it. 0 for none.
    """

    n_rows: int
    norm_price: float = 0.0
    size_price: float = 0.0
    median_price: float = 0.0
    distance_price: float = 0.0

    @property
    def prices(self):
        """Prices of all draws that are made."""
        prices = (self.norm_price, self.size_price, self.median_price, self.distance_price)
        return tuple(price for price in prices if price)

    def run(self, curator, radius, center, scale):
        """Draw the scales.

        Parameters
        ----------
        curator : Curator
            Holds what `regression_rows` admitted.
        radius, center, scale : float, float, float
            What they are where no draw is made, or where more than three quarters of the rows
            are zero. If so many targets are equal, their unit is their magnitude.

        Returns
        -------
        radius, center, scale : float, float, float
            Unit of length, and origin and unit of the targets.
        """
        if self.norm_price:
            radius = self._draw(curator, RowNorm(), SMALLEST, LARGEST, self.norm_price) or radius
        if self.size_price:
            magnitude = TargetDistance()
            scale = self._draw(curator, magnitude, SMALLEST, LARGEST, self.size_price) or scale
        if self.median_price:
            top = _SPAN * scale
            query = TargetMedian(-top, 2 * top / _CELLS, _CELLS)
            (position,) = curator.release(query, ExponentialMechanism(self.median_price))
            center = query.point(float(position))
            # targets that are all equal are as far from it as half a cell
            bounds = max(query.step / 2, SMALLEST), max(4 * top, 2 * SMALLEST)
            distance = TargetDistance(center)
            scale = self._draw(curator, distance, *bounds, self.distance_price) or scale
        return radius, center, scale

    def _draw(self, curator, magnitude, smallest, largest, price):
        """Return what a quarter of the rows exceed, or None if that is nothing."""
        tail = int(_TAIL * self.n_rows)
        drawn = _drawn(curator, magnitude, (smallest, largest), _RATIO, tail, price)
        # the first point: most rows are zero, or most targets equal, and tell no scale
        return drawn if drawn > smallest else None


def plan_scales(epsilon, *, n_rows, adjacency, with_radius, with_scale, with_center):
    """Plan the draws of the scales.

    Parameters
    ----------
    epsilon : float
        Budget of the whole fit.
    n_rows : int
        Number of rows.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    with_radius, with_scale, with_center : bool
        Which are asked for: the unit of length; the unit of the targets; their centre, for
        which the unit is needed.

    Returns
    -------
    plan : ScalesPlan
        With no draws, if they could not be trusted at a fifth of epsilon.

    Notes
    -----
    The price of a draw is what makes it fail with a probability of 1e-6, or with at most 3e-4
    if that would be more than a fifth of epsilon for all. It falls as one over the number of
    rows.
    """
    wide, narrow = _points(SMALLEST, LARGEST, _RATIO), _points(1.0, 8.0 * _CELLS, _RATIO)
    half = 1.0 if adjacency == "zero-out" else 2.0
    draws = {
        "norm_price": (with_radius, 2.0, _AWAY, wide),
        "size_price": (with_scale, 2.0, _AWAY, wide),
        "median_price": (with_scale and with_center, half, _MEDIAN_AWAY, _CELLS),
        "distance_price": (with_scale and with_center, 2.0, _AWAY, narrow),
    }

    def prices(failure):
        return {
            name: _price(spread, n_rows, away, points, failure)
            for name, (wanted, spread, away, points) in draws.items()
            if wanted
        }

    most = _SHARE * epsilon
    if sum(prices(_WORST).values()) > most:
        return ScalesPlan(n_rows)
    aimed = prices(_AIM)
    cut = min(1.0, most / sum(aimed.values())) if aimed else 1.0
    return ScalesPlan(n_rows, **{name: price * cut for name, price in aimed.items()})


@dataclass(frozen=True)
class ClipPlan:
    """How a clipping threshold is drawn; public numbers only.

    Parameters
    ----------
    price, tail : float, int
        Epsilon of the draw, 0 for none; and how many gradients should be longer.
    """

    price: float
    tail: int = 0

    @property
    def prices(self):
        """Prices of all draws that are made."""
        return (self.price,) if self.price else ()

    def run(self, curator, loss, default):
        """Return a norm, in public units, that few gradients at zero coefficients exceed.

        Parameters
        ----------
        curator, loss, default : Curator, object, float
            Holds what `unit_rows` made; the loss; and the norm where no draw is made.
        """
        if not self.price:
            return default
        magnitude = GradientNorm(loss)
        return _drawn(curator, magnitude, _GRADIENTS, _GRADIENT_RATIO, self.tail, self.price)


def plan_clip(epsilon, *, n_rows, tail):
    """Plan the draw of a clipping threshold.

    Parameters
    ----------
    epsilon : float
        Budget of the whole fit.
    n_rows : int
        Number of rows.
    tail : float
        Length of the noise in the sum of gradients, in units of the threshold.

    Returns
    -------
    plan : ClipPlan
        With no draw, if there are too few rows for one.

    Notes
    -----
    At a threshold that m gradients exceed, clipping takes up to m times what is beyond it off
    their sum: m is about the number of thresholds that the noise is long, and no less than the
    error of the draw.
    """
    price = _THRESHOLD_SHARE * epsilon
    points = _points(*_GRADIENTS, _GRADIENT_RATIO)
    error = 2.0 / price * math.log(points / _WORST) if price else math.inf
    tail = max(error + 1, tail)
    if not 2 * tail <= n_rows:
        return ClipPlan(0.0)
    return ClipPlan(price, math.ceil(tail))
