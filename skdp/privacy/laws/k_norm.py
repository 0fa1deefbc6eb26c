# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""K-norm noise for the Euclidean norm: additive, pure, and exact on the grid.

If neighbours move a statistic by at most S in l2, the densities of ``exp(-|b|/s)`` around it
differ by a factor of at most ``exp(S / s)`` (Hardt and Talwar 2010): one release costs S / s.

`rounded_k_norm` returns ``rint(N)``, coordinate by coordinate, where N has density
proportional to ``exp(-|N|/scale)``. Such an N is ``scale * R * G / |G|`` with G standard
normal and R a sum of `size` standard exponential variables (Hardt and Talwar 2010).

How. Every normal and every exponential variable owns a stream of uniform bits, read as one real
number; the vector is a function of these numbers. The first 64 bits of each decide it in floating
point, unless a coordinate is nearer to a rounding boundary than a bound on its error. Then the
same numbers, with further bits, decide all of it in 100-digit arithmetic: nothing is redrawn,
which would favour some outcomes.

The error of a coordinate grows with ``scale * sqrt(size)``, its typical length. A grid
step of 2^-24 times that, which makes the scale 2^24 / sqrt(size) steps, leaves a share
size * 2e-6 of the vectors to the slow path, at about 0.3 ms per coordinate.
"""

import math
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skdp.privacy.kernel.mechanisms import Noise, Price, Sensitivity
from skdp.privacy.kernel.samplers import (
    _DIGITS,
    _TWO_PI,
    Bits,
    Integers,
    Words,
    _gaussian_tail,
    check_scale,
    rounded_laplace,
)
from skdp.privacy.laws.additive import Additive, PureMechanism
from skdp.privacy.laws.calibration import additive_scale

# Bound on the float error of a variable x, in units of 1 + |x|: the measured error of
# ndtri and log, 20 times over. It leaves room for the few roundings of `_round_surely`.
_FLOAT_ERROR = 32 * 2.0**-52
# the same for decimal arithmetic, in units of the uniform variable
_DECIMAL_ERROR = Decimal(10) ** (5 - _DIGITS)
_HALF = Decimal("0.5")


def _norm(v: NDArray[Any]) -> Any:
    """Return the Euclidean norm, of decimals or (rounded four times) of floats."""
    return sum(v * v).sqrt() if v.dtype == object else math.sqrt(math.fsum(v * v))


def _round_surely(
    scale: Any, g: NDArray[Any], g_error: NDArray[Any], r: Any, r_error: Any
) -> Integers | None:
    """Return rint(scale * r * g / |g|), or None if the errors of g and r leave it open.

    For floats and for decimals. To first order, the error of a coordinate is at most half
    the `margin`; the factor 2 pays for higher orders, relative errors being below 1/16.
    """
    length, g_off = _norm(g), _norm(g_error)
    if 16 * g_off >= length or 16 * r_error >= r:
        return None
    stretch = scale * r / length
    x = stretch * g
    margin = 2 * (stretch * g_error + abs(x) * (g_off / length + r_error / r))
    whole = np.floor((2 * x + 1) / 2)
    undecided = np.any(2 * (abs(x - whole) + margin) >= 1)
    return None if undecided else np.asarray(whole.astype(np.int64))


def _normal_quantile(u: Decimal, guess: Decimal, tolerance: Decimal) -> Decimal:
    """Return x with P[N(0, 1) > x] = u <= 1/2, by second-order Newton steps."""
    x = guess
    while True:
        density = (-x * x / 2).exp() / _TWO_PI.sqrt()
        h = (_gaussian_tail(x) - u) / density
        # the next term of the series in h is (2 x^2 + 1) h^3 / 6
        left = (1 + abs(x)) ** 2 * abs(h) ** 3
        x += h + x * h * h / 2
        if left <= tolerance:
            return x


def _round_exactly(scale: float, digits: Words, g: NDArray[np.float64], bits: Bits) -> Integers:
    """Return the vector that the digits begin; more bits are drawn until it is decided."""
    size, result = len(g), None
    with localcontext(Context(prec=_DIGITS, Emin=-(10**8), Emax=10**8)):
        long = [int(word) for word in digits]
        near = [Decimal(x) for x in g.tolist()]
        unit = Decimal(2) ** -64
        while result is None:
            more = bits.words(2 * size).tolist()
            long = [(d << 64) | word for d, word in zip(long, more, strict=True)]
            unit /= 2**64
            u = [(d + _HALF) * unit for d in long]
            # as in `rounded_k_norm`; it never falls below the error of the arithmetic
            coarse = (unit + _DECIMAL_ERROR) / min(u)
            pairs = zip(u[:size], near, strict=True)
            normal = [_normal_quantile(a, abs(x), coarse / 8).copy_sign(x) for a, x in pairs]
            r, errors = -Decimal(math.prod(u[size:])).ln(), np.full(size, coarse)
            result = _round_surely(Decimal(scale), np.array(normal), errors, r, size * coarse)
    return result


def rounded_k_norm(scale: float, size: int, bits: Bits) -> Integers:
    """Draw rint(N) exactly, N in R^size of density proportional to exp(-|N|/scale).

    Parameters
    ----------
    scale, size, bits : float, int, Bits
        Scale in (0, 2**40] grid steps, else ValueError; number of coordinates; source.

    Returns
    -------
    noise : ndarray of int64, shape (size,)
        In grid steps. The expected length is ``scale * size``.
    """
    scale = float(scale)
    if size < 2:
        return rounded_laplace(scale, size, bits)
    check_scale(scale)
    words = bits.words(2 * size)
    # u in (0, 1/2) and a sign for the normal variables, u in (0, 1) for the others
    digits = words >> np.repeat(np.array([1, 0], dtype=np.uint64), size)
    u = (digits + 0.5) * 2.0**-64
    g, e = np.abs(ndtri(u[:size])), -np.log(u[size:])
    # Bits not yet drawn move log(u) by less than `coarse`, and a normal variable by less
    # (its density is at least 0.79 u). If some u has no bit set yet, coarse is 2, more
    # than a sixteenth of every variable, and `_round_surely` returns None.
    coarse = 2.0**-64 / np.min(u)
    g_error, e_error = (_FLOAT_ERROR * (1 + v) + coarse for v in (g, e))
    g = np.where(words[:size] & np.uint64(1), -g, g)
    result = _round_surely(scale, g, g_error, math.fsum(e), math.fsum(e_error))
    return _round_exactly(scale, digits, g, bits) if result is None else result


class KNormNoise(Noise):
    """Noise of a whole vector, of density proportional to ``exp(-|b|/scale)``."""

    def actual(self, stated: float, size: int) -> Price:
        """Return the price: sensitivity in l2 over scale."""
        return Price(epsilon=self.loudness(stated, math.sqrt(size)))

    def rounded(self, size: int, bits: Bits) -> Integers:
        """Draw the noise of the vector, in whole grid steps."""
        return rounded_k_norm(self.scale / self.grid, size, bits)


class KNormMechanism(PureMechanism, Additive):
    """Noise of density proportional to ``exp(-|b|/s)``: one release is `epsilon`-DP.

    It is calibrated to the l2 sensitivity, and suits statistics whose l1 sensitivity is
    sqrt(size) times larger (Hardt and Talwar 2010).

    Parameters
    ----------
    epsilon : float
        Price of one release, a pure epsilon in nats.

    Examples
    --------
    >>> unit = Sensitivity(l1=float("inf"), l2=1.0, bound=10.0, theorem="example")
    >>> round(KNormMechanism(epsilon=0.5).calibrate(unit, size=3).scale, 4)
    2.0
    """

    def calibrate(self, sensitivity: Sensitivity, size: int) -> Noise:
        """Return the noise: s = (S + g sqrt(k)) / epsilon."""
        bound, root = sensitivity.bound, math.sqrt(size)
        scale, grid, paid = additive_scale(sensitivity.l2, bound, self.epsilon, root, spread=root)
        return KNormNoise("k-norm", scale, grid, paid, bound, mu=0.0, epsilon=self.epsilon)
