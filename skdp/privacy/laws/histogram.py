# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Stability-based histogram: a sum over columns not known in advance.

Only columns that some row touches get Gaussian noise, and only what ends up beyond a threshold tau
is released. Let neighbours differ in a row, x in D and x' in D', of norm at most 1, with at most s
non-zeros. On the columns that only D touches (A) its sums are x_A itself, and D' never releases
them; A' is the reverse. On the others the sums differ by x - x'. With the chances p and p' that D
releases some of A, and D' some of A', the divergence at epsilon is at most ``p`` plus that of two
Gaussians at ``epsilon + log(1 - p')``. If |x_A| = a, `_distance` bounds how far apart these are,
and `_stray` bounds p, for tau >= 1 + 2 sigma; A has s - 1 columns at most unless it is all of x.
Both are monotone in a, and bounded cell by cell. A release is rounded twice, by half a grid step:
it is beyond tau only if the sum with noise is beyond tau less a step. The proof is in
docs/user_guide/proofs_sparse.rst (Proposition 42).

Thresholds are due to Korolova, Kenthapadi, Mishra and Ntoulas (2009). The joint bound, in place of
a sum of two worst cases, is due to Wilkins, Kifer, Zhang and Karrer (2024).
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from skdp.privacy.kernel import mechanisms
from skdp.privacy.kernel.accounting import check_delta, check_epsilon, first, gdp_delta
from skdp.privacy.kernel.mechanisms import (
    FLOAT_SLACK,
    Law,
    Noise,
    Price,
    Sensitivity,
    Source,
    Values,
)
from skdp.privacy.laws.calibration import ROUND_UP, additive_scale, gdp_mu

# cells of [0, 1] that bound what depends on a
_CELLS = 64
# parts of delta that are tried for the Gaussian
_SHARES = [1 - 2.0**-k for k in (1, 2, 3, 4, 6, 9, 14)]
# float error of the tail function, relative, and where it underflows
_TAIL_UP, _TAIL_FLOOR = 1 + 1e-9, sys.float_info.min


@dataclass(frozen=True)
class SparseSensitivity(Sensitivity):
    """How one row acts on sums over the columns that rows touch, stated by the query.

    Parameters
    ----------
    l1, l2, bound, theorem, spread : float, float, float, str, float
        As in `Sensitivity`.
    rows : {1, 2}
        Rows that differ between neighbours: 1 (zero-out) or 2 (replace-one). Each is of
        norm at most 1.
    columns : int
        Bound on the number of columns of a row.
    nonnegative : bool
        Whether no entry of a row is negative.
    """

    rows: int = 2
    columns: int = 1
    nonnegative: bool = False


def _stray(a: Values, columns: int, sigma: float, tau: float, one_sided: bool) -> Values:
    """Bound the probability that a row's own columns are released, |x_A| = a."""
    if columns == 0:
        return 0.0 * a
    a = a * (1 + FLOAT_SLACK)
    rest, far = columns - 1, ndtr((a - tau) / sigma)
    if one_sided:
        z = tau / sigma
        slope = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / sigma
        far = far + (math.sqrt(columns) - 1) * slope * a
    else:
        far, rest = far + ndtr((-a - tau) / sigma), 2 * rest
    bound: Values = (far + rest * ndtr(-tau / sigma)) * _TAIL_UP + _TAIL_FLOOR
    return bound


def _distance(a: Values, facts: SparseSensitivity) -> Values:
    """Return the largest distance on the columns that both data sets touch."""
    left = np.sqrt(1 - a * a)
    if facts.rows == 2:
        left = np.sqrt(2 - a * a) if facts.nonnegative else 1 + left
    return left * (1 + FLOAT_SLACK)


def _broken(facts: SparseSensitivity, sigma: float, grid: float, epsilon: float) -> Any:
    """Return the function that bounds, for a threshold, (delta at epsilon, chance p')."""
    a = np.linspace(0.0, 1.0, _CELLS + 1)
    rounding = grid * math.sqrt(facts.rows * facts.columns)
    mus = (_distance(a, facts) + rounding) / sigma * ROUND_UP
    gaussian = np.array([gdp_delta(float(mu), epsilon) for mu in mus])

    def at(tau: float) -> tuple[float, float]:
        stray = _stray(a, facts.columns - 1, sigma, tau, facts.nonnegative)
        alone = float(_stray(a[-1:], facts.columns, sigma, tau, facts.nonnegative)[0])
        # on a cell: the chance at its upper end, the distance at its lower one
        total = max(float((stray[1:] + gaussian[:-1]).max()), alone + float(gaussian[-1]))
        return total * (1 + 1e-12), alone

    return at


def _divergence_epsilon(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the epsilon at which the divergence is taken, and the most that p' may be."""
    # p' is held below this, so that the divergence is taken at a positive epsilon
    most = min(delta, -math.expm1(-epsilon / 2))
    # floats give out beyond, see gdp_mu
    return min(epsilon, 1e9) + math.log1p(-most), most


@dataclass(frozen=True)
class ThresholdNoise(Noise):
    """Gaussian noise with a threshold; `facts` is the statement of the query."""

    facts: SparseSensitivity | None = None

    def actual(self, stated: float, size: int) -> Price:
        """Return the price: delta at the declared epsilon, by the bound above."""
        facts, tau = self.facts, self.threshold
        if facts is None or tau is None or facts.l2 != stated or not self.is_usable:
            return Price(epsilon=self.epsilon, delta=1.0)
        if self.two_sided == facts.nonnegative:
            return Price(epsilon=self.epsilon, delta=1.0)
        inner, most = _divergence_epsilon(self.epsilon, self.delta)
        delta, alone = _broken(facts, self.scale, self.grid, inner)(tau - self.grid)
        safe = tau >= _lowest(self.scale) and alone <= most
        return Price(epsilon=self.epsilon, delta=delta if safe else 1.0)


def _lowest(sigma: float) -> float:
    """Return the least threshold for which the bounds hold."""
    return 1 + FLOAT_SLACK + 2 * sigma


@dataclass(frozen=True)
class StabilityHistogram(Law):
    """Noise and a threshold such that one release is (epsilon, delta)-DP.

    For queries that state a `SparseSensitivity`. Their `evaluate` returns a pair: the
    columns that a row touches, sorted, and the sums there. Released are the columns and noisy
    sums beyond the threshold, ``noise.threshold``.

    Parameters
    ----------
    epsilon, delta : float
        Price, in nats and as a probability greater than 0.

    Examples
    --------
    >>> facts = SparseSensitivity(1.0, 1.0, 10.0, "example", rows=1, nonnegative=True)
    >>> noise = StabilityHistogram(epsilon=1.0, delta=1e-6).calibrate(facts, size=2**40)
    >>> round(noise.scale, 3), round(noise.threshold, 2)
    (4.225, 21.08)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        # raises for a budget that Gaussian noise cannot keep
        gdp_mu(self.epsilon, self.delta)

    def calibrate(self, facts: SparseSensitivity, size: int) -> Noise:
        """Return the noise with the lowest threshold, for any number of columns."""
        inner, most = _divergence_epsilon(self.epsilon, self.delta)
        rounding, lowest = math.sqrt(facts.rows * facts.columns), math.inf
        for share in _SHARES:
            mu = gdp_mu(inner, self.delta * share)
            scale, grid, paid = additive_scale(facts.l2, facts.bound, mu, rounding)
            tau = self._threshold(facts, scale, grid, inner, most)
            if tau < lowest:
                lowest, best = tau, (scale, grid, paid)
        if not lowest < math.inf:
            raise ValueError(f"delta={self.delta!r} is too small for a threshold.")
        return ThresholdNoise(
            "gaussian", *best, facts.bound, mu=0.0, epsilon=self.epsilon, delta=self.delta,
            threshold=lowest, two_sided=not facts.nonnegative, facts=facts,
        )  # fmt: skip

    def _threshold(
        self, facts: SparseSensitivity, sigma: float, grid: float, epsilon: float, most: float
    ) -> float:
        """Return the lowest threshold, on top of the grid's step, that keeps the price."""
        broken, lowest = _broken(facts, sigma, grid, epsilon), _lowest(sigma)

        def holds(tau: float) -> bool:
            delta, alone = broken(tau)
            return tau >= lowest and alone <= most and delta <= self.delta

        # where nothing holds, the search runs to the end of floats
        with np.errstate(over="ignore", under="ignore"):
            tau = first(holds, lowest) + grid
        return tau * ROUND_UP

    def release(self, query: Any, noise: Noise, source: Source) -> tuple[NDArray[np.int64], Values]:
        """Add noise to the sums over the touched columns; return those beyond the threshold."""
        columns, sums = touched(query.evaluate(source.read()), query.size)
        return beyond(columns, mechanisms.add_noise(sums, noise, source.bits), noise)


def touched(pair: Any, size: int) -> tuple[NDArray[np.int64], Values]:
    """Return the columns and sums of a query, after a check of their form."""
    columns, sums = np.asarray(pair[0], np.int64), np.asarray(pair[1], np.float64)
    ends = np.concatenate([[-1], columns, [size]])
    if sums.ndim != 1 or len(ends) != len(sums) + 2 or not (ends[1:] > ends[:-1]).all():
        raise ValueError("a query must return sorted columns, and one sum for each of them.")
    return columns, sums


def beyond(columns: NDArray[np.int64], noisy: Values, noise: Noise) -> tuple[Any, Values]:
    """Return the columns whose noisy sums are beyond the threshold, and these sums."""
    tau = math.inf if noise.threshold is None else noise.threshold
    kept = (np.abs(noisy) if noise.two_sided else noisy) > tau
    return columns[kept], noisy[kept]
