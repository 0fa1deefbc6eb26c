# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact densities of what a linear classifier releases, to compare on neighbours.

Perturbed minimisers: w minimises J(w) + <b, w> where b = -grad J(w), so that its density
is f(b) det(Hess J(w)). Draws of the exponential mechanism: exp(-score / temperature),
normalised, in one dimension.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._minimize.queries import RowObjective

POINTS = 20_001


@dataclass(frozen=True)
class Line:
    """Rows of one feature in [-1, 1], with targets -1 and +1, and 0 for a null row."""

    x: Any
    t: Any

    def labels(self):
        """Return X and y; null rows have a label outside (0, 1)."""
        return np.array(self.x, dtype=float)[:, None], np.array([0, 99, 1])[np.array(self.t) + 1]

    def groups(self):
        """Return triples (x, t, how many), null rows left out."""
        counts = Counter(zip(self.x, self.t, strict=True))
        return [(x, t, count) for (x, t), count in counts.items() if t]

    def changed(self, i, x, t):
        """Return the rows with another one in place i."""
        xs, ts = list(self.x), list(self.t)
        xs[i], ts[i] = x, t
        return Line(tuple(xs), tuple(ts))


def ridge_of(release):
    """Return the penalty that a minimiser's name tells, to six digits."""
    return float(re.search(r"with ridge (\S+)", release.query)[1])


def log_noise(norm, noise):
    """Return the log-density of noise at a vector of that norm, up to a constant."""
    if noise.law == "gaussian":
        return -((norm / noise.scale) ** 2) / 2
    assert noise.law == "k-norm"
    return -norm / noise.scale


def minimiser_log_density(loss, ridge, noise, line, w):
    """Return the log-density of the exact perturbed minimiser at points w on a line."""
    first, second = ridge * w, np.full_like(w, ridge)
    for x, t, count in line.groups():
        target = np.full_like(w, t)
        first = first + count * x * loss.residual(w * x, target)
        second = second + count * x * x * loss.curvature(w * x, target)
    return log_noise(np.abs(first), noise) + np.log(second)


def minimiser_grid(ridge, noise, line):
    """Return points beyond which the noise would have to be absurdly long."""
    steepest = 1 + np.abs(line.x).sum()
    reach = (12 if noise.law == "gaussian" else 40) * noise.scale + steepest
    return np.linspace(-reach, reach, POINTS) / ridge


def delta_at(one, other, epsilon, w):
    """Return the integral of (p - exp(epsilon) q)_+ for two log-densities on a grid."""
    # both are densities up to one and the same constant
    top = one.max()
    scale = np.trapezoid(np.exp(one - top), w)
    with np.errstate(under="ignore"):
        above = np.maximum(np.exp(one - top) - np.exp(epsilon + other - top), 0.0)
    return np.trapezoid(above, w) / scale


def draw_log_density(loss, penalty, temperature, line, w):
    """Return the log-density of an exponential draw, on the grid that it lives on."""
    score = penalty / 2 * w * w
    for x, t, count in line.groups():
        score = score + count * loss.value(w * x, np.full_like(w, t))
    log = -score / temperature
    log -= log.max()
    with np.errstate(under="ignore"):
        return log - np.log(np.trapezoid(np.exp(log), w))


def log_ratio_at(w, first, second, loss, query, noise):
    """Return log(p / q) of the exact perturbed minimiser at a point of any dimension."""
    terms = []
    for rows in (first, second):
        J = RowObjective(
            rows, loss, ridge=query.ridge, n_coefs=query.n_coefs, row_norm=query.row_norm
        )
        norm = np.linalg.norm(J.gradient(w))
        terms.append(log_noise(norm, noise) + np.linalg.slogdet(J.hessian(w))[1])
    return terms[0] - terms[1]
