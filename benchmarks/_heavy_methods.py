# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The methods of `heavy_tails_rates.py`: functions of rows and a task, which return a point.

What is private is released by a curator, seeded with a new seed each time.
"""

import itertools

import numpy as np
from _heavy_data import DELTA
from _heavy_queries import UNIT, PowerMinimiser, heavy_rows, power_minimiser

from skdp import DPHeavyTailedMean
from skdp._rows.base import ball_constraint
from skdp.location._clipped_mean import ClippedRowSum
from skdp.papers.localized import moment_clip, plan_phases
from skdp.privacy import Curator, GaussianMechanism, gdp_mu
from skdp.solvers.disjoint import restarts

_seeds = itertools.count(1)
#: replace-one: two rows change by their lengths
REACH = 2.0


def _in_domain(point, task):
    return ball_constraint(point, task.radius)


def _of_mean(mean, task):
    """Return the minimiser of the loss of a mean row, in the domain."""
    return _in_domain(power_minimiser(mean, task.order, 0.0, np.zeros(task.size)), task)


def non_private(X, task):
    """Return the minimiser of the loss of the rows."""
    return _of_mean(X.mean(axis=0), task)


def curator_of(X, task):
    """Return a curator with a new seed."""
    return Curator(
        lambda: heavy_rows(X), n_rows=len(X), epsilon=task.epsilon, delta=DELTA,
        adjacency="replace-one", random_state=next(_seeds), purpose="heavy tails",
    )  # fmt: skip


def private_mean(X, task):
    """Return the minimiser of the loss of a private mean row."""
    estimator = DPHeavyTailedMean(
        task.epsilon, DELTA, moment_order=task.moment, moment_bound=task.moment_bound,
        random_state=next(_seeds),
    )  # fmt: skip
    return _of_mean(estimator.fit(X).location_, task)


def localized(X, task, growth=None, growth_order=1.5, convexity=0.0):
    """Return the last of the noisy regularised minimisers, on disjoint batches of rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, size)
        Rows.
    task : Task
        What is told.
    growth : {"halving", "doubling"} or None, default=None
        Restarts in smaller balls.
    growth_order : float, default=1.5
        For "doubling".
    convexity : float, default=0.0
        Strong convexity that the method may count on.

    Returns
    -------
    point : ndarray of shape (size,)
        In the domain.
    """
    mu = gdp_mu(task.epsilon, DELTA)
    curator = curator_of(X, task)
    clip, bias = moment_clip(task.moment, task.moment_bound, task.size, mu / REACH)
    point = task.start
    for start, stop, factor in restarts(0, len(X), growth, growth_order):
        middle, radius = point, factor * task.radius
        phases = plan_phases(
            start, stop, size=task.size, mu=mu, reach=REACH, radius=radius, clip=clip,
            spread=task.spread, bias=bias, convexity=convexity,
        )  # fmt: skip
        for phase in phases:
            query = PowerMinimiser(
                task.order, phase.pull, phase.clip, phase.n_rows, point, convexity
            )
            released = curator.release(query, GaussianMechanism(mu), (phase.start, phase.stop))
            point = _in_both(released, middle, radius, task)
    return point


def halving(X, task):
    """Return what restarts with equal numbers of rows lead to."""
    return localized(X, task, "halving")


def doubling(X, task):
    """Return what restarts with numbers of rows that double lead to."""
    return localized(X, task, "doubling")


def _in_both(point, middle, radius, task):
    """Return the point of the domain and of a ball around a point of it that is nearest."""
    # Dykstra's projections: each ball forgets what it moved the point by the round before
    moved = np.zeros_like(point)
    other = np.zeros_like(point)
    for _ in range(200):
        first = middle + ball_constraint(point + moved - middle, radius)
        moved = point + moved - first
        last = _in_domain(first + other, task)
        other = first + other - last
        done = np.linalg.norm(last - point) <= 1e-12 * radius
        point = last
        if done:
            break
    return point


def told_convexity(X, task):
    """Return `localized` for a loss with theta = 2, whose convexity lessens the noise."""
    return localized(X, task, convexity=1.0)


def noisy_descent(X, task, longest, n_steps=16):
    """Return where noisy gradient steps lead that are calibrated to the longest row.

    Parameters
    ----------
    X, task : ndarray of shape (n_rows, size), Task
        Rows, and what is told; theta is 2.
    longest : float
        No row is longer, so that nothing is clipped.
    n_steps : int, default=16
        Number of steps, of lengths 1/t: the loss is 1-strongly convex.

    Returns
    -------
    point : ndarray of shape (size,)
        In the domain.
    """
    mechanism = GaussianMechanism(gdp_mu(task.epsilon, DELTA) / n_steps**0.5)
    curator = curator_of(X, task)
    total = ClippedRowSum(task.size, longest / UNIT)
    paid = curator.prepay(total, mechanism, n_steps)
    point = task.start
    for t in range(1, n_steps + 1):
        mean = curator.release(total, paid) * (UNIT / len(X))
        point = _in_domain(point - (point - mean) / t, task)
    return point
