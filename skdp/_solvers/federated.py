# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Federated learning: rounds in which clients move a model, and a server averages.

Nothing here knows the model or the loss: a function makes the query of a round from the
server's point. Whatever is done with what a curator releases costs nothing.
"""

import numpy as np

from skdp._queries import LocalReports, ReportSum
from skdp._solvers.step_size import StepSize
from skdp._solvers.suffix_average import SuffixAverage
from skdp.privacy import SampledGaussianMechanism
from skdp.privacy._local import LocalMechanism


class Rounds:
    """Federated rounds, all of them paid for before the first.

    Parameters
    ----------
    curator : Curator
        Holds the clients.
    make_query : callable
        Maps a point to the query of a round: the sum of clipped updates of clients that start
        there (with `vectors`, where they report).
    start : ndarray
        The first point.
    plan : FederatedPlan
        Rounds, clients of a round, noise, reports.

    Notes
    -----
    A mean is the sum divided by the EXPECTED number of clients of a round. The realised number
    says how many clients were drawn, and a sum divided by it has another sensitivity.
    """

    def __init__(self, curator, make_query, start, plan):
        self._curator, self._make_query, self._plan = curator, make_query, plan
        self._n_reports = self._n_projected = 0
        first = make_query(start)
        if plan.mu_round is not None:
            noise = SampledGaussianMechanism(plan.mu_round, plan.sampling)
        if plan.randomiser is None:
            self._paid = curator.prepay(first, noise, plan.n_steps)
            return
        self._total = ReportSum(first.size, plan.clip, plan.limit)
        local = LocalMechanism(plan.randomiser.epsilon, plan.sampling)
        reports = LocalReports(first, plan.randomiser)
        if plan.mu_round is None:
            self._paid = curator.prepay(reports, local, plan.n_steps)
        else:
            self._paid = curator.prepay(self._total, noise, plan.n_steps, behind=(reports, local))

    def mean_update(self, point):
        """Return the released mean update of the clients of one round, at a point."""
        query, plan = self._make_query(point), self._plan
        if plan.randomiser is None:
            total = self._curator.release(query, self._paid)
        else:
            reports = LocalReports(query, plan.randomiser)
            if plan.mu_round is None:
                made = self._curator.release(reports, self._paid)
                self._n_reports += len(made)
                self._n_projected += self._total.n_projected(made)
                total = self._total.total(made)
            else:
                total = self._curator.release(self._total, self._paid, reports=reports)
        return total.reshape(point.shape) / plan.sampling.batch_size

    @property
    def projected_share(self):
        """Share of reports that were projected; None where only their sums were released."""
        if self._plan.randomiser is None or self._plan.mu_round is not None:
            return None
        return self._n_projected / max(self._n_reports, 1)


def federated_descent(mean_update, shape, plan):
    """Take a server's steps along released mean updates.

    Parameters
    ----------
    mean_update : callable
        Maps a point of the given shape to a released mean update.
    shape : tuple of int
        Shape of the model.
    plan : FederatedPlan
        Steps, step length, penalty, momentum, averaging.

    Returns
    -------
    coef : ndarray of shape `shape`
        Average of the points but the first ones, or the last point.

    Notes
    -----
    An update is taken for a descent direction of the mean objective. With one local step it is
    one (Bhowmick et al. 2018, Section 3.1).
    """
    previous = coef = np.zeros(shape)
    average, step_size = SuffixAverage(shape, plan.n_steps), StepSize(plan)
    for t in range(plan.n_steps):
        ahead = coef + (t / (t + 3)) * (coef - previous) if plan.momentum else coef
        gradient = -mean_update(ahead)
        previous, coef = coef, plan.step(ahead, gradient, step_size.at(ahead, gradient))
        average.add(coef)
    return average.value if plan.average else coef
