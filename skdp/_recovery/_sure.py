# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Thresholds for vectors with noise: the universal one, and the one of least estimated risk."""

import math

import numpy as np


def universal_threshold(scale, d, law="gaussian"):
    """Return what the noise of d entries exceeds with small chance only.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise, or scale of Laplace noise, on every entry.
    d : int
        Number of entries.
    law : {"gaussian", "laplace"}, default="gaussian"
        Law of the noise.

    Returns
    -------
    threshold : float
        ``scale sqrt(2 log d)`` or ``scale log d``.
    """
    log = math.log(d)
    return scale * (log if law == "laplace" else math.sqrt(2.0 * log))


def sure_threshold(y, scale, nonnegative=False, law="gaussian"):
    """Return the soft threshold of least estimated risk, and that risk.

    Parameters
    ----------
    y : ndarray of shape (d,)
        A vector with independent noise on every entry.
    scale : float
        Standard deviation of Gaussian noise, or scale of Laplace noise; greater than 0.
    nonnegative : bool, default=False
        Whether the vector without noise has no negative entry, and what is estimated is
        ``max(y - threshold, 0)`` instead of the soft-threshold.
    law : {"gaussian", "laplace"}, default="gaussian"
        Law of the noise.

    Returns
    -------
    threshold : float
        0 or the magnitude of an entry, at most the universal threshold.
    risk : float
        Estimate of the expected squared Euclidean error, without bias for any threshold
        that is fixed beforehand. It can be negative.

    Notes
    -----
    Let one entry be ``x = z + N`` and its estimate g(x), so that ``(g - x)^2`` is ``x^2`` up
    to the threshold t and ``t^2`` beyond. What is missing to the error is
    ``2 E[(x - z) g(x)] - E[N^2]``. Gaussian noise of variance 1: ``E[(x - z) g] = E[g']``
    (Stein 1981; Donoho and Johnstone 1995). Laplace noise of scale 1: any function f has
    ``f(z) = E[f(x) - f''(x)]``. With ``G(z) = E[g(z + N)]``, for which ``G - G'' = g``, and
    ``f(z) = z G(z)`` that gives ``z E[g(x)] = E[x g(x) - 2 G'(x)]``, hence
    ``E[(x - z) g] = 2 E[G'(x)]``. For a threshold ``G'(x)`` is the chance that fresh noise
    takes x beyond it.
    """
    limit = universal_threshold(1.0, len(y), law)
    with np.errstate(under="ignore", over="ignore"):
        u = np.sort((y if nonnegative else np.abs(y)) / scale)
        # no threshold leaves fewer entries at zero than 0 does
        first = int(np.searchsorted(u, 0.0, side="right"))
        last = max(first, int(np.searchsorted(u, limit, side="right")))
        t = np.concatenate([[0.0], u[first:last]])
        squares = np.cumsum(u[:last] ** 2)
        below = np.concatenate([squares[first - 1 : first] if first else [0.0], squares[first:]])
        n_above = len(u) - np.arange(first, last + 1)
        if law == "laplace":
            twice, variance = 4.0 * _chance_beyond(u, t, first, last, not nonnegative), 2.0
        else:
            twice, variance = 2.0 * n_above, 1.0
        risk = below + t * t * n_above + twice - variance * len(u)
        best = int(np.argmin(risk))
        return float(t[best] * scale), float(risk[best] * scale * scale)


def _chance_beyond(u, t, first, last, two_sided):
    """Return, for each threshold, over how many entries Laplace noise would take one more time.

    `u` are sorted entries, of which the first ``first``, ``first + 1`` ... ``last`` are at
    most the thresholds `t`.
    """
    # exponentials of what is not above the universal threshold, log d, are at most d
    up = np.cumsum(np.exp(u[:last]))
    up = np.concatenate([up[first - 1 : first] if first else [0.0], up[first:]])
    down = np.exp(-np.abs(u))
    beyond = np.cumsum(down[::-1])[::-1]
    beyond = np.concatenate([beyond, [0.0]])[first : last + 1]
    n_above = len(u) - np.arange(first, last + 1)
    chance = n_above - np.exp(t) * beyond / 2 + np.exp(-t) * up / 2
    # by a leap to the other side
    return chance + np.exp(-t) * down.sum() / 2 if two_sided else chance
