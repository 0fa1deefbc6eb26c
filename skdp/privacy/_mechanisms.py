# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms: how much noise a release gets, what that costs, how it is added.

A mechanism is told what one release may cost. It turns the sensitivity that a
query states into a `Noise`, and that one object is both what the ledger records
and what the noise is drawn from. Nothing can give one number to the noise and
another to the accountant.

Numerics. With g a public power of two, a statistic x is released as
``g * (rint(x / g) + rint(N / g))``, N continuous noise, all in exact integer
arithmetic. Since rint(x/g) is an integer this is rint((g * rint(x/g) + N) / g)
* g: a function of the *continuous* mechanism applied to x rounded to the grid, so
the continuous privacy analysis holds, word for word. Rounding moves each of k
coordinates by at most g/2 on either data set, hence the sensitivity charged is
S + g * sqrt(k) in l2, S + g * k in l1. The output is always a multiple of g,
whatever the data: its last digits say nothing.

Float evaluation. A query is evaluated in floating point; `FLOAT_SLACK` is the
relative error in the *difference* of two neighbouring evaluations that is charged
on top (see skdp/_queries/_sums.py for why sums stay within it).
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.privacy._accounting import check_epsilon
from skdp.privacy._bits import Bits
from skdp.privacy._samplers import rounded_gaussian, rounded_laplace

Values = NDArray[np.float64]

FLOAT_SLACK = 1e-6
# grid step = noise scale / 2^24, or coarser when the statistic is huge
_GRID_BITS = 24
# |x/g| + |noise/g| must stay exact in int64 and float64
_EXACT_BITS = 51
# float formulas for the scale are a few ulps off; this rounds the noise up
_UP = 1 + 1e-14


@dataclass(frozen=True)
class Sensitivity:
    """How far one row can move a statistic, stated by the query.

    Parameters
    ----------
    l1, l2 : float
        Bounds on the l1 and l2 distance of the statistic on any two neighbouring
        data sets; `inf` where no bound is stated.
    bound : float
        Bound on the magnitude of every coordinate on any data set.
    theorem : str
        Why.
    """

    l1: float
    l2: float
    bound: float
    theorem: str


@dataclass(frozen=True)
class Noise:
    """Everything public about how one release is randomised.

    Parameters
    ----------
    law : {"gaussian", "laplace"}
        Distribution of the noise.
    scale : float
        Standard deviation (Gaussian) or scale (Laplace) of each coordinate.
    grid : float
        Step of the public grid that the release lies on, a power of two.
    sensitivity : float
        Sensitivity that is paid for: the query's, plus rounding and float slack.
    bound : float
        The statistic is clamped to [-bound, bound] in every coordinate.
    mu : float
        Gaussian-DP parameter of the release (0 for Laplace noise).
    epsilon : float
        Pure-DP parameter of the release (0 for Gaussian noise).
    """

    law: str
    scale: float
    grid: float
    sensitivity: float
    bound: float
    mu: float
    epsilon: float


class Query(Protocol):
    """A statistic of the private rows. Its fields are public; the rows are an argument."""

    @property
    def name(self) -> str:
        """What the statistic is, in words."""

    @property
    def size(self) -> int:
        """Number of coordinates."""

    def sensitivity(self, adjacency: str, n_rows: int) -> Sensitivity:
        """State the sensitivity under an adjacency, for a public number of rows."""

    def evaluate(self, rows: Any) -> Values:
        """Return the exact statistic, never raising because of a value."""


class Mechanism(Protocol):
    """A rule that turns a sensitivity into noise at a fixed price."""

    @property
    def mu(self) -> float:
        """Gaussian-DP price of one release, 0 if the price is purely epsilon."""

    @property
    def epsilon(self) -> float:
        """Pure price of one release, 0 if the price is Gaussian."""

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise for a statistic of that sensitivity."""


def _check_scale(stated: float, bound: float, size: int) -> None:
    if not (0 < stated < math.inf and 0 < bound < math.inf and size >= 1):
        raise ValueError(
            "a query must state a positive finite sensitivity and bound, and have at least "
            f"one coordinate; got sensitivity={stated!r}, bound={bound!r}, size={size!r}."
        )


def _grid(scale: float, bound: float) -> float:
    fine = math.ceil(math.log2(scale)) - _GRID_BITS
    coarse = math.ceil(math.log2(bound)) - _EXACT_BITS
    exponent = max(fine, coarse)
    if not -1000 <= exponent <= 900:
        raise ValueError(
            "the noise scale leaves the range of floating point; rescale the data or the bounds."
        )
    return math.ldexp(1.0, exponent)


@dataclass(frozen=True)
class GaussianMechanism:
    """Gaussian noise such that one release is exactly `mu`-GDP.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter that one release costs.

    Examples
    --------
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> round(GaussianMechanism(mu=0.5).calibrate(unit, size=3).scale, 4)
    2.0
    """

    mu: float
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.mu < math.inf or self.epsilon != 0:
            raise ValueError(f"mu must be finite and greater than 0; got {self.mu!r}.")

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: sigma = (S + g sqrt(k)) / mu."""
        _check_scale(sensitivity.l2, sensitivity.bound, size)
        paid = sensitivity.l2 * (1 + FLOAT_SLACK)
        grid = _grid(paid / self.mu, sensitivity.bound)
        paid += grid * math.sqrt(size)
        scale = paid / self.mu * _UP
        return Noise("gaussian", scale, grid, paid, sensitivity.bound, paid / scale * _UP, 0.0)


@dataclass(frozen=True)
class LaplaceMechanism:
    """Laplace noise such that one release is `epsilon`-DP.

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter that one release costs, in nats.

    Examples
    --------
    >>> unit = Sensitivity(l1=1.0, l2=1.0, bound=10.0, theorem="example")
    >>> round(LaplaceMechanism(epsilon=0.5).calibrate(unit, size=1).scale, 4)
    2.0
    """

    epsilon: float
    mu: float = 0.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.mu != 0:
            raise ValueError("Laplace noise has a pure price; mu must be 0.")

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: scale = (S + g k) / epsilon."""
        _check_scale(sensitivity.l1, sensitivity.bound, size)
        paid = sensitivity.l1 * (1 + FLOAT_SLACK)
        grid = _grid(paid / self.epsilon, sensitivity.bound)
        paid += grid * size
        scale = paid / self.epsilon * _UP
        return Noise("laplace", scale, grid, paid, sensitivity.bound, 0.0, self.epsilon)


_SAMPLERS = {"gaussian": rounded_gaussian, "laplace": rounded_laplace}


def align(values: Values, noise: Noise) -> Values:
    """Return the statistic in whole grid steps, clamped to its public bound.

    Clamping and replacing NaN by 0 are functions of one coordinate with slope at
    most 1, so they do not raise the sensitivity; a query that keeps its word is
    not changed by them.
    """
    safe = np.nan_to_num(values, nan=0.0, posinf=noise.bound, neginf=-noise.bound)
    return np.rint(np.clip(safe, -noise.bound, noise.bound) / noise.grid)


def add_noise(values: Values, noise: Noise, bits: Bits) -> Values:
    """Return the released statistic: the one place where noise is added.

    Parameters
    ----------
    values : ndarray of shape (k,)
        The exact statistic.
    noise : Noise
        What the mechanism calibrated.
    bits : Bits
        Source of randomness.

    Returns
    -------
    released : ndarray of shape (k,)
        Multiples of ``noise.grid``.
    """
    steps = align(values, noise).astype(np.int64)
    steps += _SAMPLERS[noise.law](noise.scale / noise.grid, len(steps), bits)
    released: Values = steps * noise.grid
    return released
