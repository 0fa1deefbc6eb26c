# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of losses that no estimator offers, for measuring rates.

They go through the library's gate, mechanisms and samplers, and state the sensitivity
that is proved for them. They are for measurements: one of them computes its minimiser in a
way that is right for the instance here only, and says so.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skdp._log_concave import sample_tangent_box
from skdp._rows.base import L2Ball
from skdp.location._clipped_mean import RowSum
from skdp.privacy import Influence, Sensitivity


def _cosine_gap(kappa, n_dims, variates):
    """Draw 1 - <x, mu> for x von Mises-Fisher on the unit sphere of R^n_dims.

    Wood's rejection (1994), which accepts at least about two proposals in three. Written in
    the gap 1 - w, not in the cosine w: no digit is lost for large kappa.
    """
    m = n_dims - 1
    b = m / (2 * kappa + math.hypot(2 * kappa, m))
    gap0 = 2 * b / (1 + b)
    while True:
        g = variates.normal(m + 1)
        # (1 - t)/2 is Beta(m/2, m/2)
        t = g[0] / np.linalg.norm(g)
        gap = b * (1 - t) / ((1 + t) / 2 + b * (1 - t) / 2)
        ratio = (gap0 + (1 - gap0) * gap) / (gap0 * (2 - gap0))
        if kappa * (gap0 - gap) + m * math.log(ratio) >= -variates.exponential(1)[0]:
            return gap


def sample_linear_on_ball(v, variates):
    """Draw from the unit ball with density proportional to exp(<v, theta>).

    Parameters
    ----------
    v : ndarray of shape (n_dims,)
        Any vector; 0 gives the uniform law.
    variates : Variates
        Source of randomness.

    Returns
    -------
    theta : ndarray of shape (n_dims,)
        An exact draw, in ideal arithmetic.

    Notes
    -----
    The first p coordinates of a uniform point of the unit sphere of R^(p + 2) are uniform on
    the unit ball of R^p. Tilting both by exp(<v, theta>) keeps this: the first p coordinates
    of a von Mises-Fisher vector have the density that is wanted.
    """
    kappa = float(np.linalg.norm(v))
    direction = v / kappa if kappa else np.eye(len(v))[0]
    gap = _cosine_gap(kappa, len(v) + 2, variates)
    # a uniform direction orthogonal to (direction, 0, 0)
    g = variates.normal(len(v) + 2)
    body = g[:-2]
    body -= (body @ direction) * direction
    body /= np.linalg.norm(g)
    theta = (1 - gap) * direction + math.sqrt(gap * (2 - gap)) * body
    return theta / max(1.0, float(np.linalg.norm(theta)))


@dataclass(frozen=True)
class LinearDraw:
    """Point of the unit ball, drawn by the linear loss: minus its product with every row.

    Parameters
    ----------
    n_features : int
        Dimension.
    """

    n_features: int
    idealised = True
    name = "point drawn by its product with the sum of rows"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the spread: a product with a unit row ranges over [-1, 1]."""
        spread = 2.0 if adjacency == "zero-out" else 4.0
        return Sensitivity(math.inf, math.inf, 1.0, "range of a product", spread=spread)

    def draw(self, rows, noise, source):
        """Return a point of density proportional to exp(<point, sum> / noise.scale)."""
        total = RowSum(L2Ball(1.0), self.n_features).evaluate(rows)
        return sample_linear_on_ball(total / noise.scale, source)


@dataclass(frozen=True)
class PenalisedMedian:
    """Minimiser of the sum over rows d of ``|t - d| + |t|^2 / 2``.

    Parameters
    ----------
    n_features : int
        Dimension.

    Notes
    -----
    Right for equal rows only, which is the instance that is measured: there the minimiser
    is the row, since the penalty's gradient is no longer than 1.
    """

    n_features: int
    name = "penalised geometric median"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the l2 sensitivity: S / ridge, the ridge being the number of rows."""
        reach = 1.0 if adjacency == "zero-out" else 2.0
        return Sensitivity(math.inf, reach / n_rows, 1.0, "S / ridge by strong convexity")

    def evaluate(self, rows):
        """Return the minimiser."""
        return rows.columns()[:, 0]


@dataclass(frozen=True, eq=False)
class PenalisedMedianDraw:
    """Point of the unit ball, drawn by the sum over rows of ``|t - d| + |t|^2 / 2``.

    Parameters
    ----------
    n_features : int
        Dimension.
    near : tuple of (ndarray, float) or None
        Public ball that the point also lies in.
    """

    n_features: int
    near: Any = None
    idealised = True
    name = "point drawn by its penalised sum of distances"

    @property
    def size(self):
        """Number of coordinates."""
        return self.n_features

    def sensitivity(self, adjacency, n_rows):
        """State the spread: Lipschitz constant of the change times the diameter."""
        diameter = 2.0 if self.near is None else min(2.0, 2 * self.near[1])
        spread = diameter if adjacency == "zero-out" else 2 * diameter
        return Sensitivity(math.inf, math.inf, 1.0, "Lipschitz times diameter", spread=spread)

    def draw(self, rows, noise, source):
        """Return a point of density proportional to exp(-score / noise.scale)."""
        # equal rows count once, with their number
        columns, counts = np.unique(rows.columns(), axis=1, return_counts=True)
        ridge = counts.sum()

        def score(points):
            gaps = points[:, :, None] - columns
            distance = np.sqrt(np.einsum("ijk,ijk->ik", gaps, gaps))
            value = distance @ counts + ridge / 2 * np.einsum("ij,ij->i", points, points)
            slope = np.einsum("ijk,ik->ij", gaps, counts / np.maximum(distance, 1e-140))
            return value, slope + ridge * points

        balls = [(np.zeros(self.size), 1.0)]
        if self.near is not None:
            balls.append(self.near)
        return sample_tangent_box(score, self.size, 1.0 / noise.scale, balls, source)


@dataclass(frozen=True)
class RampMinimiser:
    """Minimiser of a smoothed one-sided loss ``(y - x t)_+`` of a number t, |x| <= 1.

    Parameters
    ----------
    half_width : float
        The kink is replaced by a parabola over twice this width: the second derivative is
        at most 1 / (2 half_width).
    ridge : float
        Weight of ``ridge/2 t^2``.
    """

    half_width: float
    ridge: float
    size = 1
    name = "perturbed minimiser of a smoothed ramp"
    #: what `brentq` keeps, with room for the rounding errors of the sum
    tolerance = 1e-10

    def sensitivity(self, adjacency, n_rows):
        """State how a row acts on the objective: slope at most 1, curvature as above."""
        return Influence(
            rows=1 if adjacency == "zero-out" else 2,
            reach=1.0,
            corners=1,
            log_det=math.log1p(1 / (2 * self.half_width * self.ridge)),
            slope=math.inf,
            ridge=self.ridge,
            distance=self.tolerance,
            bound=n_rows / self.ridge + 1.0,
            theorem="a row's derivative is at most 1",
        )

    def minimise(self, rows, linear):
        """Return the minimiser; `rows` are triples (x, y, count)."""
        x, y, count = np.array(rows, dtype=np.float64).T

        def derivative(t):
            active = np.clip((y - x * t) / (2 * self.half_width) + 0.5, 0.0, 1.0)
            return self.ridge * t + linear[0] - count @ (x * active)

        reach = (count.sum() + abs(linear[0])) / self.ridge + 1.0
        return np.array([brentq(derivative, -reach, reach, xtol=1e-12)])
