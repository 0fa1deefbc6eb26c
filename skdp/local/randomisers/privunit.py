# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnit, the local randomiser of unit vectors; and PrivUnitG, with a Gaussian for the sphere.

A. Bhowmick et al., "Protection against reconstruction and its applications in private federated
learning", 2018, Algorithm 1; H. Asi, V. Feldman and K. Talwar, "Optimal algorithms for mean
estimation under local differential privacy", ICML 2022. In this order: the randomiser, with budget,
error and reports; its best parameters; those of the paper; cosines of vectors and their reports;
and PrivUnitG, of the second paper.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import (
    betainc,
    betainccinv,
    betaincinv,
    erfcx,
    expit,
    gammaincinv,
    log_ndtr,
    ndtri,
    ndtri_exp,
)

from skdp.local.randomisers.base import (
    BELOW_ONE,
    LENGTH_ROUNDING,
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
from skdp.local.randomisers.caps import (
    beta_fraction,
    cap_cosine,
    check_dims,
    log_beta_half,
    log_cap,
    log_cap_mean,
    log_cosh,
    log_mean_at,
    log_one_minus_square,
    log_tail,
)
from skdp.privacy.kernel.accounting import check_epsilon


@dataclass(frozen=True)
class PrivUnit(TwoDensities, UnitRandomiser):
    """PrivUnit: parameters and their consequences.

    Parameters
    ----------
    n_dims : int
        Dimension of the unit vectors.
    cosine : float
        In [0, 1). The sphere is cut in two: a cap around the vector u that is reported, of
        vectors with at least this cosine to u, and the rest.
    p : float
        Probability that the report V is drawn from the cap, greater than the cap's share q of
        the sphere. Inside of each part V is uniform.

    Notes
    -----
    The density of V with respect to the uniform law is p/q on the cap and (1-p)/(1-q) beyond,
    whatever u is. So the report is epsilon-private for ``epsilon = log(p/q) -
    log((1-p)/(1-q))`` and for nothing less: for u and -u the two parts change places.

    The mean of V is ``m u`` with ``m = E[U_1 | cap] p + E[U_1 | rest] (1-p)``, and the two
    means are ``h/q`` and ``-h/(1-q)`` (see `log_cap_mean`), so that Z = V/m is unbiased. Its
    length is always 1/m, so its mean squared error is ``1/m^2 - 1``, for every u.

    The mean of ``V_1^2`` follows by parts: ``(t (1-t^2)^a)' = (1-t^2)^a - 2 a t^2
    (1-t^2)^(a-1)`` gives ``E[U_1^2 1(cap)] = (q + 2 a c h) / d`` for a cap of cosine c, and
    minus that for the rest, hence ``E[V_1^2] = (1 + (d-1) c m) / d`` and ``Cov(Z) =
    (1 - c m) / (d m^2) I + (c/m - 1) u u'``. With c = m that is a multiple of I.
    """

    n_dims: int
    cosine: float
    p: float

    def __post_init__(self):
        check_dims(self.n_dims)
        if not 0.0 <= self.cosine < 1.0:
            raise ValueError(f"cosine must be in [0, 1), got {self.cosine!r}.")
        self.check_p("share of the cap")

    @cached_property
    def log_q(self):
        """Logarithm of the probability of the cap for a uniform vector."""
        return log_cap(self.cosine, self.n_dims)

    @cached_property
    def scale(self):
        """The number m by which reports are divided; their mean before that is m u."""
        q = math.exp(self.log_q)
        return min(1.0, mean_in_cap(self.cosine, self.n_dims) * (self.p - q) / (1.0 - q))

    @property
    def mean_squared_error(self):
        """Mean of the squared distance of a report from its vector, for every vector."""
        m = self.scale
        return (1.0 - m) * (1.0 + m) / m**2

    @property
    def noise_variance(self):
        """Variance of a report along each direction that is orthogonal to its vector."""
        m = self.scale
        return max(0.0, 1.0 - self.cosine * m) / (self.n_dims * m * m)

    @property
    def stretch(self):
        """How much larger the second moment of a report is along its vector than across."""
        return self.cosine / self.scale

    @property
    def bound(self):
        """Bound on the magnitude of all entries of reports: their length, which is rounded."""
        return 1.0 / self.scale * LENGTH_ROUNDING

    @property
    def longest(self):
        """Bound on the Euclidean norms of all reports, which all have the same."""
        return self.bound

    def log_law(self, reports, vector):
        """Return the logarithms of the densities of reports; see `Randomiser`."""
        (direction,), (lost,) = directions_of(np.atleast_2d(vector))
        if lost:
            return np.zeros(len(reports))
        near = directions_of(reports)[0] @ direction >= self.cosine
        return np.where(near, *self.log_densities)

    def randomise(self, vectors, bits, n_threads=1, *, out=None, factors=None, prepare=None):
        """Return the unbiased report of the direction of every row; see `UnitRandomiser`.

        Notes
        -----
        The report is ``(t u + sqrt(1 - t^2) w) / m`` with w uniform among the unit vectors
        that are orthogonal to u, and t independent of u and w. If u is uniform, so is the
        report.
        """
        cosines, rests = cap_cosines(self, len(vectors), bits)
        scale = (1.0 if factors is None else factors) / self.scale
        out = np.empty((len(vectors), self.n_dims)) if out is None else out
        # lengths must not be negative; the direction across is symmetric
        across = np.sqrt(rests) * np.abs(scale)
        aimless = np.full(len(vectors), 1.0) * np.abs(scale)
        around(out, vectors, cosines * scale, across, aimless, bits, n_threads, prepare)
        return out


def mean_in_cap(cosine, n_dims):
    """Return the mean of the first coordinate of a vector that is uniform in a cap.

    Parameters
    ----------
    cosine : float
        In [0, 1).
    n_dims : int
        At least 1.

    Returns
    -------
    mean : float
        ``h / q``. Far out both have one factor in common, which is left out.
    """
    if n_dims == 1:
        return 1.0
    if cosine * cosine * n_dims < 50.0:
        return math.exp(log_cap_mean(cosine, n_dims) - log_cap(cosine, n_dims))
    square, x = cosine * cosine, math.exp(log_one_minus_square(cosine))
    return 1.0 / (cosine * beta_fraction(0.5 * (n_dims - 1), 0.5, x, square))


def log_excess(y, n_dims):
    """Return the logarithm of the mean excess over a cosine, relative to the cosine.

    Parameters
    ----------
    y : float
        Inverse hyperbolic tangent of the cosine, greater than 0.
    n_dims : int
        At least 2.

    Returns
    -------
    value : float
        ``log E[(U_1 / cosine - 1)_+]``, that is ``log(h / cosine - q)``.

    Notes
    -----
    The difference cancels far out. With ``x = 1 - cosine^2`` it is ``x^a / (2 a B)`` times the
    series of ``(1/2)_n / n! * n / (a + n) x^n``, whose terms are positive; and that is an
    incomplete beta function, of ``a + 1`` and -1/2.
    """
    a, cosine, log_rest = 0.5 * (n_dims - 1), math.tanh(y), -2.0 * log_cosh(y)
    square = cosine * cosine
    if square * n_dims < 6.0 and square < 0.5:
        h = math.exp(log_mean_at(log_rest, n_dims))
        return math.log(h - cosine * math.exp(log_tail(square, log_rest, n_dims))) - math.log(
            cosine
        )
    fraction = beta_fraction(a + 1.0, -0.5, math.exp(log_rest), square)
    front = (a + 1.0) * log_rest - math.log(4.0 * a * (a + 1.0)) - log_beta_half(a)
    return front - math.log(cosine) + math.log(fraction)


@lru_cache(maxsize=1024, typed=True)
def optimal_privunit(epsilon: float, n_dims: int) -> PrivUnit:
    """Return the parameters of PrivUnit of least error for a budget.

    Parameters
    ----------
    epsilon : float
        Budget of one report in nats, from 10^-6 to 10^6.
    n_dims : int
        Dimension of the unit vectors. In dimension 1 the randomiser is randomised response.

    Returns
    -------
    parameters : PrivUnit
        Randomiser with an `epsilon` of at most the budget.

    Notes
    -----
    Let ``C = exp(epsilon) - 1``. The budget fixes p for each cosine c, and then ``m(c) = C h /
    (1 + C q)``. With ``h' = c q'`` the derivative of m has the sign of ``m - c``: it vanishes
    where ``c = m``, which reads ``C E[(U_1/c - 1)_+] = 1``. The left side falls from infinity
    to 0, so there is one root, and it is the maximum. There the noise is isotropic. Asi,
    Feldman and Talwar (2022) show that these parameters have the least variance among a large
    family of unbiased local randomisers of the sphere.

    Examples
    --------
    >>> from skdp.local import optimal_privunit
    >>> best = optimal_privunit(8.0, 1000)
    >>> round(best.cosine, 5), round(best.p, 5), round(best.mean_squared_error, 3)
    (0.0866, 0.9014, 132.347)
    """
    epsilon, n_dims = check_local_epsilon(epsilon), check_dims(n_dims)
    if n_dims == 1:
        p = largest_chance(epsilon, -math.log(2.0))
        # any cosine cuts the two points apart; this one is m
        return PrivUnit(1, 2.0 * p - 1.0, p)
    log_c = log_growth(epsilon)
    # Newton's method from 0 stays below the root, for the function is convex
    first = 2.0 * math.tanh(0.5 * epsilon) * math.exp(log_mean_at(0.0, n_dims))
    low = 0.9 * math.atanh(first)
    high = 2.0 * low
    while log_excess(high, n_dims) + log_c > 0.0:
        high *= 2.0
    y = brentq(lambda y: log_excess(y, n_dims) + log_c, low, high, xtol=1e-300, rtol=1e-15)
    return with_cosine(min(math.tanh(y), BELOW_ONE), epsilon, n_dims)


def with_cosine(cosine, epsilon, n_dims):
    """Return the `PrivUnit` of a cosine that spends a budget, or hardly less."""
    return PrivUnit(n_dims, cosine, largest_chance(epsilon, log_cap(cosine, n_dims)))


# Parameters by the conditions of the paper, which are not the best ones.


def paper_privunit(
    epsilon_cap: float,
    epsilon_coin: float,
    n_dims: int,
    condition: Literal["16", "16a", "16b", "exact"] = "16",
) -> PrivUnit:
    """Return parameters of PrivUnit as Bhowmick et al. (2018) choose them.

    Parameters
    ----------
    epsilon_cap, epsilon_coin : float
        Budgets of the cap and of the coin. The paper claims that their sum is spent.
    n_dims : int
        Dimension of the unit vectors, at least 2.
    condition : {"16", "16a", "16b", "exact"}, default="16"
        Which sufficient condition of Theorem 1 gives the cosine: the one or the other, the
        better of both, or the share of the cap itself.

    Returns
    -------
    parameters : PrivUnit
        Its `epsilon` is what is spent in truth. Usually that is less than claimed. In dimension
        2 condition (16a) is false, and it may be more.

    Raises
    ------
    ValueError
        If the condition gives no cosine, which happens for small budgets.

    Examples
    --------
    The largest network of the paper's Table 1, with a budget of 500:

    >>> from skdp.local import optimal_privunit, paper_privunit
    >>> paper = paper_privunit(0.99 * 500, 0.01 * 500, 3_274_634)
    >>> round(paper.cosine, 5), paper.epsilon < 500
    (0.01729, True)
    >>> best = optimal_privunit(500.0, 3_274_634)
    >>> paper.mean_squared_error > best.mean_squared_error
    True
    """
    n_dims, epsilon_cap = check_dims(n_dims, 2), check_local_epsilon(epsilon_cap)
    p = min(float(expit(check_epsilon(epsilon_coin))), BELOW_ONE)
    found = []
    if condition in ("16", "16a"):
        wide = math.sqrt(math.pi / (2.0 * (n_dims - 1)))
        found.append(math.tanh(0.5 * epsilon_cap) * wide)
    if condition in ("16", "16b"):
        found.append(_cosine_16b(epsilon_cap, n_dims))
    if condition == "exact":
        found.append(cap_cosine(-float(epsilon_cap + math.log1p(math.exp(-epsilon_cap))), n_dims))
    if not found:
        raise ValueError(
            f'condition must be one of "16", "16a", "16b" and "exact", got {condition!r}.'
        )
    cosine = max(found)
    if not 0.0 <= cosine < 1.0:
        raise ValueError(
            f"epsilon_cap={epsilon_cap!r} gives no cosine below 1 by condition {condition} in "
            f"dimension {n_dims}."
        )
    return PrivUnit(n_dims, cosine, p)


def _cosine_16b(epsilon_cap, n_dims):
    """Return the largest cosine that condition (16b) allows, or -1."""

    def spare(y):
        cosine = math.tanh(y)
        spent = 0.5 * math.log(n_dims) + math.log(6.0) + math.log(cosine)
        return epsilon_cap - spent - (n_dims - 1) * log_cosh(y)

    if n_dims == 2:
        return -1.0
    low = math.atanh(math.sqrt(2.0 / n_dims))
    if spare(low) < 0.0:
        return -1.0
    high = 2.0 * low
    while spare(high) > 0.0:
        high *= 2.0
    return min(math.tanh(brentq(spare, low, high, xtol=1e-300, rtol=1e-15)), BELOW_ONE)


# Cosines between a vector and the report that PrivUnit makes of it; they read no data.


def cap_cosines(unit, size, bits):
    """Draw the cosines of reports to the vectors that they are of.

    Parameters
    ----------
    unit : PrivUnit
        Parameters.
    size : int
        How many, independent of each other.
    bits : Bits
        Source of random words.

    Returns
    -------
    cosines : ndarray of shape (size,)
        At least ``unit.cosine`` with probability p, and else less. Given the side they have
        the law of the first coordinate of a uniform unit vector on that side.
    rests : ndarray of shape (size,)
        One minus their squares, which would not be accurate as differences.
    """
    inside = coins(unit.p, size, bits)
    if unit.n_dims == 1:
        return np.where(inside, 1.0, -1.0), np.zeros(size)
    cosines, rests = np.empty(size), np.empty(size)
    count = int(np.count_nonzero(inside))
    if count:
        cosines[inside], rests[inside] = cosines_in_cap(unit, count, bits)
    if count < size:
        cosines[~inside], rests[~inside] = cosines_beyond(unit, size - count, bits)
    return cosines, rests


def cosines_in_cap(unit, size, bits):
    """Draw cosines of at least that of the cap, and one minus their squares.

    Parameters
    ----------
    unit : PrivUnit
        Parameters, in dimension 2 or more.
    size, bits : int, Bits
        As for `cap_cosines`.

    Returns
    -------
    cosines, rests : ndarray of shape (size,)

    Notes
    -----
    ``x = 1 - t^2`` has a density proportional to ``x^(a-1) (1-x)^(-1/2)`` up to ``1 - c^2``,
    with ``a = (d-1)/2``. It is proposed by the first factor, as ``(1 - c^2) U^(1/a)``, and kept
    with probability c/t, for the second one is at most 1/c. That is done with logarithms, so
    the cap may be as small as it likes. Where it is nearly a half of the sphere too few would
    be kept: there the upper tail of ``t^2``, a beta variable, is inverted.
    """
    a, c = 0.5 * (unit.n_dims - 1), unit.cosine
    if c * c * unit.n_dims < 1.0:
        square, rest = _folded(2.0 * math.exp(unit.log_q) * uniforms(bits.words(size)), a)
        return np.sqrt(square), rest
    log_rests, missing = np.empty(size), np.arange(size)
    while missing.size:
        tries, kept = uniforms(bits.words(2 * missing.size)).reshape(2, -1)
        log_x = log_one_minus_square(c) + np.log(tries) / a
        log_rests[missing] = log_x
        # -expm1(log x) is the square of t
        missing = missing[kept * kept * -np.expm1(log_x) >= c * c]
    return np.sqrt(-np.expm1(log_rests)), np.exp(log_rests)


def cosines_beyond(unit, size, bits):
    """Draw cosines below that of the cap, and one minus their squares.

    Parameters
    ----------
    unit, size, bits : PrivUnit, int, Bits
        As for `cosines_in_cap`.

    Returns
    -------
    cosines, rests : ndarray of shape (size,)

    Notes
    -----
    The half of negative cosines has weight 1, and the slab from 0 to c has the probability
    that ``|U_1|`` is below c.
    """
    a = 0.5 * (unit.n_dims - 1)
    slab = float(betainc(0.5, a, unit.cosine**2))
    side, tail = uniforms(bits.words(2 * size)).reshape(2, -1)
    negative = side * (1.0 + slab) < 1.0
    square, rest = _folded(np.where(negative, tail, 1.0 - slab * tail), a)
    return np.where(negative, -1.0, 1.0) * np.sqrt(square), rest


def _folded(tail, a):
    """Return ``U_1^2`` and one minus it, where ``|U_1|`` has the upper tail probability."""
    square, rest = np.empty_like(tail), np.empty_like(tail)
    low = tail >= 0.5
    square[low] = betaincinv(0.5, a, 1.0 - tail[low])
    rest[low] = 1.0 - square[low]
    high = ~low
    rest[high] = betaincinv(a, 0.5, tail[high])
    square[high] = 1.0 - rest[high]
    # the smaller of both is the one to be inverted for
    high &= rest > 0.5
    square[high] = betainccinv(0.5, a, tail[high])
    return square, rest


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
