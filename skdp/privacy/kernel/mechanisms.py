# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms: how much noise a release gets, what that costs, how it is added.

A mechanism is told what one release may cost. It turns the sensitivity that a query
states into a `Noise`, and that one object is both what the ledger records and what
the noise is drawn from: no second number can reach the accountant.

Numerics. With g a public power of two, a statistic x is released as
``g * (rint(x / g) + rint(N / g))``, N continuous noise, all in exact integer
arithmetic. Since rint(x/g) is an integer this is rint((g * rint(x/g) + N) / g)
* g: a function of the *continuous* mechanism applied to x rounded to the grid, so
the continuous privacy analysis holds, word for word. Rounding moves each of k
coordinates by at most g/2 on either data set, hence the sensitivity charged is
S + g * sqrt(k) in l2, S + g * k in l1. The last digits of the output say nothing.

Float evaluation. A query is evaluated in floating point; `FLOAT_SLACK` is the
relative error in the *difference* of two neighbouring evaluations that is charged
on top (see skdp/_rows/sums.py for why sums stay within it).
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.kernel.accounting import check_epsilon, check_mu
from skdp.privacy.kernel.batches import Sampling
from skdp.privacy.kernel.bits import Bits
from skdp.privacy.kernel.samplers import rounded_gaussian, rounded_laplace
from skdp.privacy.laws.k_norm import rounded_k_norm

Values = NDArray[np.float64]

FLOAT_SLACK = 1e-6
# grid step = noise scale / 2^24, or coarser when the statistic is huge
_GRID_BITS = 24
# |x/g| + |noise/g| must stay exact in int64 and float64
_EXACT_BITS = 51
# float formulas for the scale are a few ulps off; this rounds the noise up
_UP = 1 + 1e-14


def plain_floats(stated: Any, *names: str) -> None:
    """Make floats of what a query states in others, in which noise and price would be rounded."""
    for name in names:
        object.__setattr__(stated, name, float(getattr(stated, name)))


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
    spread : float, default=inf
        For a query that is drawn by the exponential mechanism: bound on the largest
        minus the smallest change of its score, over all outputs, between neighbours.
    """

    l1: float
    l2: float
    bound: float
    theorem: str
    spread: float = math.inf

    def __post_init__(self) -> None:
        plain_floats(self, "l1", "l2", "bound", "spread")


@dataclass(frozen=True)
class Noise:
    """Everything public about how one release is randomised.

    Parameters
    ----------
    law, scale : {"gaussian", "laplace", "k-norm", "exponential"}, float
        Standard deviation (Gaussian) or scale (Laplace) of every coordinate; scale s of
        the density ``exp(-|b|/s)`` of the whole vector (K-norm); temperature
        (exponential mechanism).
    grid : float
        Step of the public grid that the release lies on, a power of two.
    sensitivity : float
        Sensitivity that is paid for: the query's, plus rounding and float slack.
    bound : float
        The statistic is clamped to [-bound, bound] in every coordinate.
    mu, epsilon, delta : float
        Price: a Gaussian-DP parameter, or (epsilon, delta) with mu = 0; delta is 0 but
        for objective perturbation and for a release with a threshold.
    sampling : Sampling or None
        How the batch of rows was drawn; None for all rows. With a batch, `mu` is the
        parameter that the release would have if all rows were read, and the price less.
    threshold, two_sided : float or None, bool
        Only noisy values above the threshold are released, or beyond it on either side;
        None for all.
    """

    law: str
    scale: float
    grid: float
    sensitivity: float
    bound: float
    mu: float
    epsilon: float
    delta: float = 0.0
    sampling: Sampling | None = None
    threshold: float | None = None
    two_sided: bool = False

    @property
    def by_chance(self) -> bool:
        """Whether it is up to chance which rows are read."""
        return self.sampling is not None and not self.sampling.reads_all


class Query(Protocol):
    """A statistic of the private rows. Its fields are public; the rows are an argument.

    What the mechanism of a query needs besides, none of it ever raising because of a
    value: `evaluate(rows)`, the exact statistic, for additive noise (for a release with a
    threshold a pair: sorted columns, and the sums there);
    `draw(rows, noise, source)`, a draw at the temperature ``noise.scale``, and `idealised`,
    whether it takes `Variates` (floats) or `Bits`, for the exponential mechanism;
    `minimise(rows, linear)`, for objective perturbation.
    """

    name: str  # what the statistic is, in words
    size: int  # number of coordinates

    def sensitivity(self, adjacency: str, n_rows: int) -> Any:
        """State the sensitivity under an adjacency, for a public number of rows."""


class Mechanism(Protocol):
    """A rule that turns a sensitivity into noise at a fixed price."""

    def calibrate(self, sensitivity: Any, size: int) -> Any:
        """Return the noise for a statistic of that sensitivity and size."""


def _calibrate(
    stated: float, bound: float, price: float, rounding: float, spread: float = 1.0
) -> tuple[float, ...]:
    """Return scale, grid and the sensitivity paid for.

    `rounding` is its part per grid step, `spread` the size of a draw in scales.
    """
    if not (0 < stated < math.inf and 0 < bound < math.inf and rounding >= 1):
        raise ValueError(
            "a query must state a positive finite sensitivity and bound, and have at least "
            f"one coordinate; got sensitivity={stated!r}, bound={bound!r}."
        )
    paid = stated * (1 + FLOAT_SLACK)
    fine = math.ceil(math.log2(paid * spread) - math.log2(price)) - _GRID_BITS
    exponent = max(fine, math.ceil(math.log2(bound)) - _EXACT_BITS)
    grid = math.ldexp(1.0, min(max(exponent, -1000), 900))
    paid += grid * rounding
    scale = paid / price * _UP
    if not (-1000 <= exponent <= 900 and 0 < scale / grid <= 2.0**40):
        raise ValueError("the noise leaves the range of floating point; rescale the data.")
    return scale, grid, paid


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_mu(self.mu))

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: sigma = (S + g sqrt(k)) / mu."""
        bound = sensitivity.bound
        scale, grid, paid = _calibrate(sensitivity.l2, bound, self.mu, math.sqrt(size))
        return Noise("gaussian", scale, grid, paid, bound, mu=paid / scale * _UP, epsilon=0.0)


@dataclass(frozen=True)
class PureMechanism:
    """Whatever has a price in nats alone."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))


class LaplaceMechanism(PureMechanism):
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

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: scale = (S + g k) / epsilon."""
        bound = sensitivity.bound
        scale, grid, paid = _calibrate(sensitivity.l1, bound, self.epsilon, size)
        return Noise("laplace", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)


_SAMPLERS = {
    "gaussian": rounded_gaussian, "laplace": rounded_laplace, "k-norm": rounded_k_norm,
}  # fmt: skip


def align(values: Values, noise: Noise) -> Values:
    """Return the statistic in whole grid steps, clamped to its public bound.

    Clamping has slope at most 1 and does not raise the sensitivity. A query that keeps
    its word is within the bound and never NaN, so neither changes it.
    """
    safe = np.nan_to_num(values, nan=0.0, posinf=noise.bound, neginf=-noise.bound)
    return np.rint(np.clip(safe, -noise.bound, noise.bound) / noise.grid)


def add_noise(values: Values, noise: Noise, bits: Bits) -> Values:
    """Return the released statistic, multiples of the grid: noise is added only here."""
    steps = align(values, noise).astype(np.int64)
    steps += _SAMPLERS[noise.law](noise.scale / noise.grid, len(steps), bits)
    released: Values = np.multiply(steps, noise.grid, dtype=np.float64)
    return released


# Two purely private mechanisms: K-norm noise, and the exponential mechanism.


# a drawn output lies on the grid bound / 2^32
_DRAWN_BITS = 32


class KNormMechanism(PureMechanism):
    """Noise of density proportional to ``exp(-|b|/s)``: one release is `epsilon`-DP.

    It is calibrated to the l2 sensitivity, and suits statistics whose l1 sensitivity is
    sqrt(size) times larger (Hardt and Talwar 2010).

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter that one release costs, in nats.

    Examples
    --------
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> round(KNormMechanism(epsilon=0.5).calibrate(unit, size=3).scale, 4)
    2.0
    """

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: s = (S + g sqrt(k)) / epsilon."""
        bound, root = sensitivity.bound, math.sqrt(size)
        scale, grid, paid = _calibrate(sensitivity.l2, bound, self.epsilon, root, spread=root)
        return Noise("k-norm", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)


class ExponentialMechanism(PureMechanism):
    """A draw with probability proportional to ``exp(-score / temperature)``.

    If the change of the score between neighbours, as a function of the output, stays
    within an interval of length `spread`, temperature ``spread / epsilon`` makes one
    draw `epsilon`-DP: the density changes by the factor exp(-change / temperature), its
    integral by a mean of that factor (McSherry and Talwar 2007).

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter that one draw costs, in nats.

    Examples
    --------
    >>> facts = Sensitivity(float("inf"), float("inf"), 1.0, "example", spread=2.0)
    >>> round(ExponentialMechanism(epsilon=0.5).calibrate(facts, size=1).scale, 4)
    4.0
    """

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the temperature, as the scale of the noise."""
        spread, bound = sensitivity.spread, sensitivity.bound
        if not (0 < spread < math.inf and 0 < bound < math.inf):
            raise ValueError("a query that is drawn must state a finite spread and bound.")
        paid = spread * (1 + FLOAT_SLACK)
        # coarse enough to hide the last digits of a sampler that works in floats
        grid = math.ldexp(1.0, math.ceil(math.log2(bound)) - _DRAWN_BITS)
        scale = paid / self.epsilon * _UP
        return Noise("exponential", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)
