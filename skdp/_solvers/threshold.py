# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A private radius that few rows exceed: the plan, made of public numbers, and the draw."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._queries import NormThreshold
from skdp.privacy import ExponentialMechanism

# neighbouring radii differ by this factor: finer ones would cost more than they gain
RATIO = 1.05
# spread of the score (2), with the slack that the temperature is charged
_PAID_SPREAD = 2 * (1 + 1e-5)


@dataclass(frozen=True)
class ThresholdPlan:
    """How a radius is drawn.

    Parameters
    ----------
    epsilon : float
        Price of the draw.
    largest : float
        Largest distance that there can be, and largest radius: 1 from the origin, 2 from
        another point of the unit ball.
    ratio, points : float, int
        The grid: its factor, and how many radii it has.
    tail : int
        How many rows should lie beyond the radius.
    slack : int
        With the probability that was asked for, the number of rows beyond the radius is at
        most ``tail + slack``, and at least `tail` minus `slack` lie beyond the radius before.
    released : bool
        Whether there are enough rows for a draw. If not, the radius is `largest`.
    """

    epsilon: float
    largest: float
    ratio: float
    points: int
    tail: int
    slack: int
    released: bool

    @property
    def smallest(self):
        """The smallest radius, in the unit ball."""
        return self.largest * self.ratio ** (1.0 - self.points)

    def run(self, curator, center=None):
        """Return the radius, in the unit ball; no release is made if there are too few rows.

        Parameters
        ----------
        curator : Curator
            Holds `LinearRows` without an intercept.
        center : ndarray of shape (n_features,), default=None
            Public point of the unit ball; None is the origin.

        Returns
        -------
        threshold : float
            In ``(0, largest]``.
        """
        if not self.released:
            return self.largest
        query = NormThreshold(center, self.largest, self.ratio, self.points, self.tail)
        (index,) = curator.release(query, ExponentialMechanism(self.epsilon))
        return float(query.radii()[int(index)])


def check_threshold(tail, resolution, failure):
    """Raise a ValueError that names the parameter that is out of range."""
    whole = isinstance(tail, int | np.integer) and not isinstance(tail, bool)
    if not (tail is None or (whole and tail >= 1)):
        raise ValueError(f"tail must be None or a whole number, at least 1; got {tail!r}.")
    for name, value, least in (("resolution", resolution, 1e-100), ("failure", failure, 1e-300)):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (number and least <= value < 1):
            raise ValueError(f"{name} must be a number in [{least:g}, 1); got {value!r}.")


def plan_threshold(
    epsilon, *, n_rows, centered, tail=None, resolution=1e-9, ratio=RATIO, failure=1e-3
):
    """Plan the draw of a radius that few rows exceed.

    Parameters
    ----------
    epsilon : float
        Price of the draw, purely epsilon-DP; at 0 none is made.
    n_rows : int
        Number of rows; public.
    centered : bool
        Whether distances are taken from a public point of the unit ball, not the origin.
    tail : int, default=None
        How many rows should lie beyond the radius; None takes the margin, one more than
        the error of the draw.
    resolution : float, default=1e-9
        The smallest radius is this one or less, in the unit ball; less than 1.
    ratio : float, default=1.05
        Factor between neighbouring radii, greater than 1.
    failure : float, default=1e-3
        Probability b in (0, 1) with which the statement below may fail.

    Returns
    -------
    plan : ThresholdPlan
        Made of public numbers only.

    Raises
    ------
    ValueError
        If `tail`, `resolution` or `failure` is out of range.

    Notes
    -----
    Some radius has score 0: the first with at most `tail` rows beyond it. So a score above
    ``L = (2 / epsilon) log(points / b)`` has probability at most b. With the margin
    ``tail = floor(L) + 1``, a radius that scores at most L has at most ``2 tail`` rows beyond
    it, and its predecessor has at least one: the radius is less than `ratio` times the
    largest distance, or the smallest of all. With n_rows <= tail the first radius would
    always score 0, and mean nothing: nothing is drawn then.
    """
    check_threshold(tail, resolution, failure)
    largest = 2.0 if centered else 1.0
    points = 1 + math.ceil(math.log(largest / resolution) / math.log(ratio))
    # a share of a tiny budget may have been rounded to nothing
    error = (_PAID_SPREAD / epsilon) * math.log(points / failure) if epsilon else math.inf
    slack = math.floor(error) if error < 2.0**62 else 2**62
    tail = slack + 1 if tail is None else int(tail)
    released = n_rows > tail
    return ThresholdPlan(float(epsilon), largest, ratio, points, tail, slack, released)
