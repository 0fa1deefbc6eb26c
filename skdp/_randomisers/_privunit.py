# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""PrivUnit, the local randomiser of unit vectors: its budget, its error, its best parameters."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from scipy.optimize import brentq

from skdp._randomisers._beta import beta_fraction, log_beta_half
from skdp._randomisers._cap import (
    check_dims,
    log_cap,
    log_cap_mean,
    log_cosh,
    log_mean_at,
    log_one_minus_square,
    log_tail,
)
from skdp._randomisers._odds import (
    BELOW_ONE,
    TwoDensities,
    check_local_epsilon,
    largest_chance,
    log_growth,
)


@dataclass(frozen=True)
class PrivUnit(TwoDensities):
    """Parameters of PrivUnit, and what follows from them.

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
    def isotropic(self):
        """Whether the variance along the vector is the same, but for rounding."""
        return abs(self.cosine / self.scale - 1.0) <= 1e-6


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
        Its `epsilon` is at most what was asked for.

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
