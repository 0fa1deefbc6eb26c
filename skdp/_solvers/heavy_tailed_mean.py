# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A clipped mean whose radius balances bias and noise: the plan, from public numbers."""

import math
from dataclasses import dataclass
from typing import Any

from skdp._domains import RADIUS_RANGE, ball_constraint
from skdp._queries import ClippedRowSum
from skdp._solvers.budget import mu_beside
from skdp._solvers.moment_radius import MomentRadius, NoiseNorm
from skdp._solvers.threshold import ThresholdPlan, plan_threshold
from skdp.privacy import GaussianMechanism, KNormMechanism, gdp_mu

# The smallest radius that can be drawn, as a part of the range: eighteen decades cost a
# twentieth more rows beyond the radius than nine.
_RESOLUTION = 1e-18
# The part of epsilon that the draw gets: with few features the mean needs little noise, and
# the rows beyond the radius are what hurts. With too few rows half is given. Chosen on data.
_LEAST, _SLOPE, _MOST, _AT_WORST = 0.1, 0.4, 0.35, 0.5
# Noise of more than some 2^40 steps of the grid that it is rounded to cannot be made: so much
# must the price be, times the root of the number of features.
_LEAST_PRICE = 1e-12


@dataclass(frozen=True)
class HeavyTailedMean:
    """A radius, drawn or computed, and the mean of the rows clipped to it.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data; public.
    ball : float
        Rows are admitted into the ball of this radius, in the units of the data.
    mechanism : GaussianMechanism or KNormMechanism
        Price of the mean.
    draw : ThresholdPlan or None
        How the radius is drawn; None if it is that of the ball.
    moments : MomentRadius or None
        What proves the error; None if nothing does.
    unit : float
        The root r of the bound on the moment, in the units of the data.
    """

    n_rows: int
    n_features: int
    ball: float
    mechanism: Any
    draw: ThresholdPlan | None
    moments: MomentRadius | None = None
    unit: float = math.inf

    @property
    def priced(self):
        """Epsilons of the releases beside the mean."""
        return (self.draw.epsilon,) if self.draw and self.draw.released else ()

    def run(self, curator):
        """Release the mean.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` of the unit ball without an intercept.

        Returns
        -------
        mean : ndarray of shape (n_features,)
            In the units of the data.
        radius : float
            Clipping radius, in the units of the data.
        """
        radius = 1.0 if self.draw is None else self.draw.run(curator)
        total = curator.release(ClippedRowSum(self.n_features, radius), self.mechanism)
        # a mean is no longer than the rows, nor than the moment
        mean = ball_constraint(total / self.n_rows, min(radius, self.unit / self.ball))
        return self.ball * mean, self.ball * radius

    def error_bound(self, noise):
        """Return a proved bound on the Euclidean error, in the units of the data.

        Parameters
        ----------
        noise : Noise
            Of the released sum. Rounding moves every coordinate by a step of its grid at most.

        Returns
        -------
        bound : float or None
            Of the expectation, or exceeded with the probability that was asked for. None
            without a moment.
        """
        if self.moments is None:
            return None
        radius = self.ball / self.unit
        # beside the root: sampling may be most of what stands under it
        rounding = radius * (noise.grid * math.sqrt(self.n_features) / self.n_rows)
        error = self.moments.error(radius, radius * (noise.scale / self.n_rows)) + rounding
        return self.unit * min(error, 1 + min(radius, 1.0))


def plan_heavy_tailed_mean(
    epsilon,
    delta,
    *,
    n_rows,
    n_features,
    adjacency,
    data_norm,
    moment_order=2.0,
    moment_bound=None,
    failure=None,
):
    """Plan a clipped mean, from public numbers.

    Parameters
    ----------
    epsilon, delta : float
        Budget; at delta 0 the noise is K-norm noise, otherwise Gaussian.
    n_rows, n_features : int
        Shape of the data; public.
    adjacency : {"replace-one", "zero-out"}
        Adjacency.
    data_norm : float
        Largest radius.
    moment_order : float, default=2.0
        k, greater than 1.
    moment_bound : float or None, default=None
        r with E|x|^k <= r^k, in the units of the data; None draws a radius.
    failure : float or None, default=None
        Probability with which the error may exceed its bound; None bounds the expectation.

    Returns
    -------
    plan : HeavyTailedMean
        With `run(curator)` and `error_bound(noise)`.

    Raises
    ------
    ValueError
        If the budget is too small for the number of features.
    """
    law = NoiseNorm("gaussian" if delta else "k-norm", n_features)
    reach = 1.0 if adjacency == "zero-out" else 2.0
    draw = None
    if moment_bound is None:
        draw = _plan_draw(epsilon, delta, n_rows, reach, law)
    price, mechanism = _price(epsilon, delta, draw.epsilon if draw and draw.released else 0.0)
    if price < _LEAST_PRICE * math.sqrt(n_features):
        raise ValueError(
            f"epsilon and delta are too small for noise in {n_features} feature(s), which must "
            f"be finite; got epsilon={epsilon!r}, delta={delta!r}."
        )
    if draw is not None:
        return HeavyTailedMean(n_rows, n_features, data_norm, mechanism, draw)
    moments = MomentRadius(moment_order, n_rows, law, failure)
    wanted = math.log(moment_bound) + moments.best(reach / (n_rows * price))
    least, most = (math.log(edge) for edge in (RADIUS_RANGE[0], data_norm))
    # exactly the range where it is cut
    ball = data_norm if wanted >= most else math.exp(max(wanted, least))
    return HeavyTailedMean(n_rows, n_features, ball, mechanism, None, moments, moment_bound)


def _price(epsilon, delta, drawn):
    """Return the price of the mean beside a draw, and its mechanism."""
    if delta:
        mu = mu_beside(epsilon, delta, drawn) if drawn else gdp_mu(epsilon, delta)
        return mu, GaussianMechanism(mu)
    # a hair less, so that the prices add up to no more than the budget in floats
    left = (epsilon - drawn) * (1 - 1e-12) if drawn else epsilon
    return left, KNormMechanism(left)


def _plan_draw(epsilon, delta, n_rows, reach, law):
    """Return the plan of a draw of the radius.

    The noise grows with the radius at the rate of its norm, and the worst bias falls at the
    rate of the rows beyond: so many rows are left out as balance the two, or the margin of
    the draw if that is more.
    """
    options = {"n_rows": n_rows, "centered": False, "resolution": _RESOLUTION}
    share = min(_MOST, max(_LEAST, _SLOPE / math.sqrt(law.size)))
    draw = plan_threshold(share * epsilon, **options)
    if 2 * draw.tail > n_rows:
        return plan_threshold(_AT_WORST * epsilon, **options)
    balance = reach * law.rms / _price(epsilon, delta, draw.epsilon)[0]
    tail = math.ceil(min(max(draw.tail, balance), n_rows / 2))
    return plan_threshold(draw.epsilon, tail=tail, **options)
