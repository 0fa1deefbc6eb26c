# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The clipping radius that a bound on a moment suggests, and the error that it proves.

Rows x are independent, of one law, with E|x|^k <= r^k for some k > 1. They are clipped to the
radius C = x r, and their mean gets noise in proportion to C. Everything here is in units of r.
What is said is proved in Proposition 57; the bias has the best constant there is, where Lemma
7 of Xu, Ding, Xiang, Xu and Wang (2025) has 1 / (k - 1).
"""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammainccinv

MOST_MOMENTS, _LEAST_FAILURE = 1000.0, 1e-300
# Logarithms of radii that are searched, and how precisely.
_RANGE, _PRECISION = 800.0, 1e-9


def check_moments(order, bound, failure):
    """Raise a ValueError that names the parameter of the moment that is out of range."""

    def number(value):
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)

    if not (number(order) and 1 < order <= MOST_MOMENTS):
        raise ValueError(
            f"moment_order must be a number greater than 1 and at most 1000; got {order!r}."
        )
    if not (bound is None or (number(bound) and 1e-50 <= bound <= 1e50)):
        raise ValueError(f"moment_bound must be None or a number in [1e-50, 1e50]; got {bound!r}.")
    if failure is None:
        return
    if not (number(failure) and _LEAST_FAILURE <= failure < 1):
        raise ValueError(
            f"failure_probability must be None or a number in [1e-300, 1); got {failure!r}."
        )
    if bound is None:
        raise ValueError(
            f"failure_probability={failure!r} needs a moment_bound: without one no bound on the "
            "error is known. Set moment_bound, or failure_probability=None."
        )


@dataclass(frozen=True)
class NoiseNorm:
    """The norm of a vector of noise, in its scales.

    Parameters
    ----------
    law : {"gaussian", "k-norm"}
        Law of the noise.
    size : int
        Number of coordinates.
    """

    law: str
    size: int

    @property
    def rms(self):
        """Root of the expected square."""
        square = self.size if self.law == "gaussian" else self.size * (self.size + 1.0)
        return math.sqrt(square)

    def exceeded(self, failure):
        """Return what the norm exceeds with probability `failure`.

        The square of a Gaussian norm is chi-square, a K-norm has a Gamma law.
        """
        if self.law == "gaussian":
            return math.sqrt(2 * float(gammainccinv(self.size / 2, failure)))
        return float(gammainccinv(self.size, failure))


def clipping_bias(order, radius):
    """Return the largest bias of clipping, in units of r.

    Parameters
    ----------
    order : float
        k, greater than 1.
    radius : float
        Clipping radius, in units of r.

    Returns
    -------
    bias : float
        Largest expected part of a norm beyond the radius, over all laws with the moment.
    """
    if radius <= (order - 1) / order:
        return 1 - radius
    return math.exp(_log_constant(order) + (1 - order) * math.log(radius))


def _log_constant(order):
    """Return the logarithm of (k-1)^(k-1) / k^k, at most 0."""
    return (order - 1) * math.log1p(-1 / order) - math.log(order)


def _squares(order, radius):
    """Return a bound on the expected square of a clipped row, in units of r^2."""
    return min(radius * radius, radius ** max(2 - order, 0.0))


@dataclass(frozen=True)
class MomentRadius:
    """Errors of clipped means with noise, and the radius at which they are least.

    Parameters
    ----------
    order : float
        k, greater than 1.
    n_rows : int
        Number of rows.
    noise : NoiseNorm
        Law of the noise.
    failure : float or None, default=None
        None for the expected error; else what the error exceeds with at most this probability.
    """

    order: float
    n_rows: int
    noise: NoiseNorm
    failure: float | None = None

    def error(self, radius, scale):
        """Return a bound on the Euclidean error of the mean, in units of r.

        Parameters
        ----------
        radius : float
            Clipping radius. The released mean is in the ball of radius ``min(radius, 1)``.
        scale : float
            Scale of the noise in the mean.

        Returns
        -------
        bound : float
            At most 2.
        """
        spread = _squares(self.order, radius) / self.n_rows
        deviation = math.hypot(self.noise.rms * scale, math.sqrt(spread))
        if self.failure is not None:
            # Chebyshev, or Bernstein in a Hilbert space; the first is better for few nines
            logarithm = math.log(4 / self.failure)
            jump = 2 * radius * logarithm / (3 * self.n_rows)
            tail = scale * self.noise.exceeded(self.failure / 2)
            tail += jump + math.hypot(jump, math.sqrt(2 * logarithm * spread))
            deviation = min(deviation / math.sqrt(self.failure), tail)
        return min(clipping_bias(self.order, radius) + deviation, 1 + min(radius, 1.0))

    def best(self, slope):
        """Return the radius at which the bound on the error is least, in logarithms.

        Parameters
        ----------
        slope : float
            Scale of the noise in the mean at radius 1, to which it is proportional.

        Returns
        -------
        log_radius : float
            Logarithm of the radius in units of r.

        Notes
        -----
        The bias is taken to be ``c_k x^(1-k)`` at all radii x. All terms are powers of x, roots
        of sums of powers, and sums of these, so that the logarithm of the bound is convex in
        the logarithm of the radius.
        """
        bounds = [self._log_chebyshev]
        if self.failure is not None:
            bounds.append(self._log_bernstein)
        found = [
            minimize_scalar(
                bound,
                args=(math.log(slope),),
                bounds=(-_RANGE, _RANGE),
                method="bounded",
                options={"xatol": _PRECISION},
            )
            for bound in bounds
        ]
        return float(min(found, key=lambda one: one.fun).x)

    def _log_bias(self, u):
        return _log_constant(self.order) + (1 - self.order) * u

    def _log_spread(self, u):
        return max(2 - self.order, 0.0) * u - math.log(self.n_rows)

    def _log_chebyshev(self, u, log_slope):
        noise = 2 * (log_slope + math.log(self.noise.rms) + u)
        deviation = np.logaddexp(noise, self._log_spread(u)) / 2
        deviation -= math.log(self.failure or 1.0) / 2
        return np.logaddexp(self._log_bias(u), deviation)

    def _log_bernstein(self, u, log_slope):
        logarithm = math.log(4 / self.failure)
        jump = math.log(2 * logarithm / (3 * self.n_rows)) + u
        root = np.logaddexp(2 * jump, math.log(2 * logarithm) + self._log_spread(u)) / 2
        noise = log_slope + math.log(self.noise.exceeded(self.failure / 2)) + u
        return np.logaddexp.reduce([self._log_bias(u), jump, root, noise])
