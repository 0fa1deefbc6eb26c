# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of `private_erm_rates.py`: instances, mechanisms, sweeps.

Errors are excess SUMS of losses over the minimum, adjacency is replace-one, and delta is
1e-6 where there is one. Every repeat is a new curator with a new seed.
"""

import itertools
import math

import numpy as np
from _rates_fit import worst
from _rates_queries import LinearDraw, PenalisedMedian, PenalisedMedianDraw, RampMinimiser
from scipy.special import gammainccinv, ndtri

from skdp import DPHingeSVM, solvers
from skdp._rows.base import L2Ball, ball_constraint
from skdp._rows.columns import PointRows
from skdp._rows.linear import LinearRows
from skdp.location import DPMedian
from skdp.location._clipped_mean import RowSum
from skdp.location._median import DirectionSum
from skdp.privacy import (
    Curator,
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    ObjectivePerturbation,
    gdp_epsilon,
)
from skdp.solvers.subgradient import plan_subgradient, subgradient_descent

DELTA = 1e-6
_seeds = itertools.count(1)


def gate(rows, n_rows, epsilon, delta=0.0):
    """Return a curator over rows that are at hand."""
    return Curator(
        lambda: rows, n_rows=n_rows, epsilon=epsilon, delta=delta, adjacency="replace-one",
        random_state=next(_seeds), purpose="rates",
    )  # fmt: skip


def cancelling_rows(n_rows, n_features, length):
    """Return unit rows whose sum has a given length: the rest of them cancel in pairs."""
    X = np.zeros((n_rows, n_features))
    used = min(n_rows, math.ceil(length))
    X[:used, 0] = length / used
    pairs = (n_rows - used) // 2
    X[used : used + pairs, 0], X[used + pairs : used + 2 * pairs, 0] = 1.0, -1.0
    null = np.zeros(n_rows, dtype=bool)
    return LinearRows(X, np.ones(n_rows), null, L2Ball(1.0), 0.0)


def descend(rows, query, n_rows, n_features, mu, *, l2=0.0, longer=1):
    """Return what the library's subgradient method makes of released (sub)gradients.

    The number of steps is the plan's own rule without its limits, which would let the two
    parts of the error change places within a sweep.
    """
    n_steps = longer * round((n_rows * mu / 4) ** 2 / n_features)
    plan = plan_subgradient(
        n_rows=n_rows, n_coefs=n_features, row_gradient_bound=1.0, radius=1.0, mu=mu,
        adjacency="replace-one", l2=l2, n_steps=n_steps,
    )  # fmt: skip
    curator = gate(rows, n_rows, gdp_epsilon(mu * (1 + 1e-9), DELTA), DELTA)
    step = GaussianMechanism(plan.mu_step)
    return subgradient_descent(
        lambda point: curator.release(query(point), step), (n_features,), plan
    )


#: lengths of the sum of rows, in units of the error, whose worst is taken: an answer that
#: learns nothing would have an error that grows with them
_STRENGTHS = (1.0, 3.0, 9.0)


def linear_gradient(n_rows, n_features, mu, effort, longer=1):
    """Return excess losses of noisy gradients on the linear loss, at the worst strength."""
    total = RowSum(L2Ball(1.0), n_features)

    def excess(rows, length):
        point = descend(rows, lambda _: _Negated(total), n_rows, n_features, mu, longer=longer)
        return length * (1 - point[0])

    lengths = [strength * math.sqrt(n_features) / mu for strength in _STRENGTHS]
    return worst(
        effort.repeat(excess, cancelling_rows(n_rows, n_features, length), length, times=2)
        for length in lengths
    )


class _Negated:
    """Minus another statistic: the gradient of the linear loss."""

    def __init__(self, query):
        self._query, self.name, self.size = query, f"minus {query.name}", query.size
        self.sensitivity = query.sensitivity

    def evaluate(self, rows):
        """Return minus the statistic."""
        return -self._query.evaluate(rows)


def linear_draw(n_rows, n_features, epsilon, effort):
    """Return excess losses of the exact draw for the linear loss, at the worst strength."""
    query = LinearDraw(n_features)

    def excess(rows, length):
        curator = gate(rows, n_rows, epsilon)
        return length * (1 - curator.release(query, ExponentialMechanism(epsilon))[0])

    lengths = [strength * 4 * n_features / epsilon for strength in _STRENGTHS]
    return worst(
        effort.repeat(excess, cancelling_rows(n_rows, n_features, length), length, times=5)
        for length in lengths
    )


#: where all rows of the penalised median are
_PLACE = 0.3


def equal_rows(n_rows, n_features):
    """Return equal rows."""
    X = np.zeros((n_rows, n_features))
    X[:, 0] = _PLACE
    return PointRows(X, L2Ball(1.0), 1.0)


def median_excess(point, n_rows):
    """Return the excess of the sum of ``|t - d| + |t|^2 / 2`` over equal rows."""
    away = point.copy()
    away[0] -= _PLACE
    return n_rows * (np.linalg.norm(away) + (point @ point - _PLACE**2) / 2)


def median_gradient(n_rows, n_features, mu, effort, longer=1):
    """Return excess losses of noisy subgradients on the penalised median."""
    rows = equal_rows(n_rows, n_features)

    def excess():
        point = descend(rows, DirectionSum, n_rows, n_features, mu, l2=float(n_rows), longer=longer)
        return median_excess(point, n_rows)

    return effort.repeat(excess)


def quantile_of_length(n_rows, n_features):
    """Return what a Gamma(n_features) length exceeds with probability 1 / n_rows^2."""
    return float(gammainccinv(n_features, 1.0 / n_rows**2))


def localised(n_rows, n_features, epsilon=1.0):
    """Return one excess loss of a coarse minimiser and a draw near it, half of epsilon each."""
    curator = gate(equal_rows(n_rows, n_features), n_rows, epsilon)
    first = KNormMechanism(epsilon / 2)
    coarse = ball_constraint(curator.release(PenalisedMedian(n_features), first), 1.0)
    reach = curator.ledger.releases[0].noise.scale * quantile_of_length(n_rows, n_features)
    query = PenalisedMedianDraw(n_features, (coarse, reach))
    return median_excess(curator.release(query, ExponentialMechanism(epsilon / 2)), n_rows)


def drawn_once(n_rows, epsilon=1.0):
    """Return one excess loss of the exponential mechanism alone, for one feature."""
    curator = gate(equal_rows(n_rows, 1), n_rows, epsilon)
    point = curator.release(PenalisedMedianDraw(1), ExponentialMechanism(epsilon))
    return median_excess(point, n_rows)


def perturbed_output(n_rows, epsilon=1.0):
    """Return one excess loss of the minimiser with noise alone, for one feature."""
    curator = gate(equal_rows(n_rows, 1), n_rows, epsilon)
    point = curator.release(PenalisedMedian(1), KNormMechanism(epsilon))
    return median_excess(ball_constraint(point, 1.0), n_rows)


def localised_hinge(n_rows):
    """Return one excess loss of DPHingeSVM, localised: equal rows, kink at the minimum."""
    ridge = n_rows / 2
    model = DPHingeSVM(
        1.0, 0.0, solver=solvers.ExactDraw(localize=True), coef_bound=2.0, C=1 / ridge,
        fit_intercept=False, classes=(0, 1), random_state=next(_seeds), data_norm=1.0,
    ).fit(np.ones((n_rows, 1)), np.ones(n_rows, dtype=int))  # fmt: skip
    w = model.coef_[0, 0]
    return n_rows * max(1 - w, 0.0) + ridge / 2 * (w * w - 1)


def perturbed_mean(n_rows, n_features, epsilon):
    """Return one excess of the sum of ``|t - d|^2 / 2``: the mean of rows with K-norm noise."""
    curator = gate(cancelling_rows(n_rows, n_features, 1.0), n_rows, epsilon)
    total = curator.release(RowSum(L2Ball(1.0), n_features), KNormMechanism(epsilon))
    total[0] -= 1.0
    return total @ total / (2 * n_rows)


def smoothed_ramp(rows, n_rows, half_width, epsilon=1.0):
    """Return one excess of objective perturbation for a smoothed one-sided loss."""
    # the curvature of a row then takes half of epsilon
    ridge = 1 / (2 * half_width) / math.expm1(epsilon / 2)
    curator = gate(rows, n_rows, epsilon, DELTA)
    point = curator.release(RampMinimiser(half_width, ridge), ObjectivePerturbation(epsilon, DELTA))
    x, y, count = np.array(rows).T
    point = np.clip(point[0], -2.0, 2.0)
    # both data sets have their minimum at 1
    return float(count @ (np.maximum(y - x * point, 0.0) - np.maximum(y - x, 0.0)))


def best_smoothing(n_rows, effort):
    """Return excess losses at the half width whose worse data set is best."""
    choices = []
    for half_width in 2.0 ** np.arange(-10, 0.1, 0.5):
        third, shift = round(n_rows / 3), max(1, round(1 / (32 * half_width)))
        steep = [(1, 1, n_rows - third), (-1, -1, third)]
        flat = [(-1, 1, n_rows // 2 - shift), (1, 1, n_rows - n_rows // 2 + shift)]
        choices.append(
            worst(
                effort.repeat(smoothed_ramp, rows, n_rows, half_width, times=3)
                for rows in (steep, flat)
            )
        )
    return min(choices, key=np.mean)


def median_errors(n_rows, mechanism):
    """Return one error of DPMedian on evenly spread normal rows."""
    X = 0.3 + 0.2 * ndtri((np.arange(n_rows) + 0.5) / n_rows)[:, None]
    model = DPMedian(1.0, mechanism=mechanism, bounds=(-1, 1), random_state=next(_seeds))
    return abs(model.fit(X).location_[0] - 0.3)
