# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnitG: PrivUnit with a Gaussian in place of the sphere (Asi, Feldman and Talwar 2022)."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, gammaincinv, log_ndtr, ndtri, ndtri_exp

from skdp.local.randomisers.base import (
    TwoDensities,
    UnitRandomiser,
    around,
    check_local_epsilon,
    coins,
    directions_of,
    largest_chance,
    log_growth,
    uniforms,
)
from skdp.local.randomisers.caps import check_dims

# no report is beyond the bound with a larger probability
_BEYOND = 1e-20


def mills(t):
    """Return the tail of the normal law over its density at `t`, which is not negative."""
    return math.sqrt(0.5 * math.pi) * float(erfcx(t / math.sqrt(2.0)))


def log_density(t):
    """Return the logarithm of the density of the normal law."""
    return -0.5 * t * t - 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class PrivUnitG(TwoDensities, UnitRandomiser):
    """PrivUnitG: parameters and their consequences, for all dimensions.

    Parameters
    ----------
    threshold : float
        At least 0, at most 1e5. A report is drawn so that its inner product with u is at least
        that, or less.
    p : float
        Probability that it is at least that, greater than under the normal law.
    n_dims : int, default=None
        Dimension of the unit vectors. None for that of the rows that report; `size` and
        `bound` need a number.

    Notes
    -----
    V is standard normal across u, and along u normal given on which side of the threshold it
    is. Its density with respect to the normal law is p/q and (1-p)/(1-q) on the two sides, so
    epsilon is ``logit p - logit q``; u must have length 1 (Asi, Feldman and Talwar 2022).

    With phi the density at the threshold t, ``m = phi (p-q) / (q (1-q))`` is the mean of V
    along u, and ``E[V_1^2] = 1 + t m`` by parts. So Z = V/m is unbiased with covariance
    ``I / m^2 + (t/m - 1) u u'``, a multiple of I where t = m.
    """

    threshold: float
    p: float
    n_dims: int | None = None

    def __post_init__(self):
        if self.n_dims is not None:
            check_dims(self.n_dims)
        if not 0.0 <= self.threshold <= 1e5:
            raise ValueError(f"threshold must be from 0 to 1e5, got {self.threshold!r}.")
        self.check_p("tail of the normal law")

    @cached_property
    def log_q(self):
        """Logarithm of the tail of the normal law beyond the threshold."""
        return log_density(self.threshold) + math.log(mills(self.threshold))

    @cached_property
    def scale(self):
        """Divisor m of reports."""
        q = math.exp(self.log_q)
        return (self.p - q) / (1.0 - q) / mills(self.threshold)

    @property
    def noise_variance(self):
        """Variance of a report along each direction that is orthogonal to its vector."""
        return 1.0 / self.scale**2

    @property
    def stretch(self):
        """How much larger the second moment of a report is along its vector than across."""
        return self.threshold / self.scale

    def mean_squared_error(self, n_dims):
        """Return the mean of the squared distance of a report from its vector."""
        return check_dims(n_dims) / self.scale**2 + self.threshold / self.scale - 1.0

    @property
    def size(self):
        """Number of entries of a row, and of its report."""
        if self.n_dims is None:
            raise ValueError("n_dims must be given for PrivUnitG.")
        return int(self.n_dims)

    @property
    def bound(self):
        """Bound on the entries of reports, to which they are clamped.

        It is passed with probability below 1e-20. An entry is ``t u_j`` plus a normal variable
        of variance ``1 - u_j^2``. Both t and that variable over its deviation are at most their
        quantiles, up to that probability; and ``t x + z sqrt(1 - x^2)`` is at most
        ``sqrt(t^2 + z^2)``.
        """
        log_share = math.log(_BEYOND / 4.0)
        high = -float(ndtri_exp(log_share + float(log_ndtr(-self.threshold))))
        low = -float(ndtri_exp(log_share - math.log(2.0)))
        across = -float(ndtri_exp(log_share - math.log(self.size)))
        return math.hypot(max(high, low), across) / self.scale

    def log_law(self, reports, vector):
        """Return the logarithms of the densities of reports; see `Randomiser`."""
        (direction,), (lost,) = directions_of(np.atleast_2d(vector))
        if lost:
            return np.zeros(len(reports))
        near = reports @ direction * self.scale >= self.threshold
        return np.where(near, *self.log_densities)

    def report(self, vectors, source, n_threads=1):
        """Return the unbiased report of every row; see `Randomiser`."""
        if self.n_dims is None:
            return replace(self, n_dims=np.shape(vectors)[-1]).report(vectors, source, n_threads)
        return super().report(vectors, source, n_threads)

    def directions(self, vectors, bits, n_threads=1, *, out=None):
        """Return the unbiased report of the direction of every row; see `UnitRandomiser`.

        Notes
        -----
        If the direction is uniform, so is that of the report, and its squared length is
        ``t^2`` plus a chi-squared variable with d - 1 degrees of freedom. One is drawn for
        every row.
        """
        n_rows, n_dims = vectors.shape
        t = shares_along(self, n_rows, bits)
        tails = uniforms(bits.words(n_rows))
        squares = 2.0 * gammaincinv(0.5 * (n_dims - 1), tails) if n_dims > 1 else 0.0
        out = np.empty((n_rows, n_dims)) if out is None else out
        around(out, vectors, t, None, np.sqrt(t * t + squares), bits, n_threads)
        out /= self.scale
        bound = self.bound
        return np.clip(out, -bound, bound, out=out)


@lru_cache(maxsize=1024, typed=True)
def optimal_privunit_gaussian(epsilon: float, n_dims: int | None = None) -> PrivUnitG:
    """Return the parameters of PrivUnitG of least error for a budget, in all dimensions.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 10^-6 to 10^6.
    n_dims : int, default=None
        Dimension of the unit vectors, which only the parameters keep.

    Returns
    -------
    parameters : PrivUnitG
        Randomiser with an `epsilon` of at most the budget.

    Notes
    -----
    As for `optimal_privunit`: with ``C = exp(epsilon) - 1`` the derivative of ``m(t) = C phi /
    (1 + C q)`` has the sign of ``m - t``, so t = m, which reads ``C (phi/t - q) = 1``. The
    left side falls. The largest m has the least error in high dimensions, and the noise is
    isotropic. It is the limit of PrivUnit: ``t = sqrt(d) cosine``.

    Examples
    --------
    >>> from skdp.local import optimal_privunit_gaussian
    >>> best = optimal_privunit_gaussian(8.0)
    >>> round(best.threshold, 5), round(best.noise_variance, 5)
    (2.74294, 0.13291)
    """
    epsilon = check_local_epsilon(epsilon)
    log_c = log_growth(epsilon)

    def spare(t):
        return log_c + log_density(t) + math.log(1.0 / t - mills(t))

    # the first step of Newton's method from 0, as for the sphere
    low = 0.9 * 2.0 * math.tanh(0.5 * epsilon) / math.sqrt(2.0 * math.pi)
    high = 2.0 * low
    while spare(high) > 0.0:
        high *= 2.0
    threshold = brentq(spare, low, high, xtol=1e-300, rtol=1e-15)
    log_q = log_density(threshold) + math.log(mills(threshold))
    return PrivUnitG(threshold, largest_chance(epsilon, log_q), n_dims)


def shares_along(gaussian, size, bits):
    """Draw the components of reports along the directions they are of, before scaling.

    Parameters
    ----------
    gaussian : PrivUnitG
        Parameters.
    size, bits : int, Bits
        How many, and the source of random words.

    Returns
    -------
    t : ndarray of shape (size,)
        Normal, given that they are at least the threshold with probability p.

    Notes
    -----
    Beyond a threshold of at least 1 the excess is proposed from an exponential law of rate
    that threshold, and kept with probability ``exp(-excess^2 / 2)`` (Robert 1995).
    """
    inside = coins(gaussian.p, size, bits)
    t, low = np.empty(size), gaussian.threshold
    below = uniforms(bits.words(size - int(np.count_nonzero(inside))))
    t[~inside] = ndtri(below * -math.expm1(gaussian.log_q))
    missing = np.flatnonzero(inside)
    if low < 1.0:
        t[missing] = -ndtri(uniforms(bits.words(missing.size)) * math.exp(gaussian.log_q))
        # the quantile of the tail may be rounded to less
        t[missing] = np.maximum(t[missing], low)
        return t
    while missing.size:
        tries, kept = -np.log(uniforms(bits.words(2 * missing.size))).reshape(2, -1)
        excess = tries / low
        t[missing] = low + excess
        missing = missing[kept <= 0.5 * excess * excess]
    return t
