# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits of releases on random batches: who was in, what that changed, what it costs.

Nothing here asks the accountant of the library: prices are composed from measured changes,
and batches are judged by what was drawn.
"""

import contextlib
import math
from dataclasses import dataclass
from unittest import mock

import dp_accounting
import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

from skdp._quantiles import NormThreshold
from skdp.privacy import Sampling
from tests import _audit

RELATIONS = {
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    "zero-out": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}


@dataclass(frozen=True)
class Trace:
    """What a fit added noise to, and the batches that it drew, in order."""

    additions: list
    batches: list
    n_rows: int

    @property
    def steps(self):
        """The additions that read a batch."""
        return [step for step in self.additions if step.noise.sampling is not None]

    @property
    def full(self):
        """The additions that read all rows."""
        return [step for step in self.additions if step.noise.sampling is None]


@contextlib.contextmanager
def drawn(batches=None):
    """Record the batches that are drawn, or hand out given ones."""
    seen, draw = [], Sampling.draw

    def audited(sampling, bits):
        batch = draw(sampling, bits) if batches is None else batches[len(seen)]
        seen.append(batch)
        return batch

    with mock.patch.object(Sampling, "draw", audited):
        yield seen


@contextlib.contextmanager
def fixed_threshold(index=None):
    """Hand out one outcome for every draw of a radius; None leaves draws alone."""
    if index is None:
        yield
        return
    with mock.patch.object(NormThreshold, "draw", return_value=np.array([float(index)])):
        yield


def traced(fit, *data, threshold=None):
    """Return the `Trace` of a fit to the data, whose first array has a row for every row."""
    with fixed_threshold(threshold), _audit.recorded() as additions, drawn() as batches:
        fit(*data)
    return Trace(additions, batches, data[0].shape[0])


def replayed(fit, trace, batches, *data, threshold=None):
    """Return a second `Trace` with the outputs of the first, and given batches."""
    outputs = [step.output for step in trace.additions]
    with fixed_threshold(threshold), _audit.recorded(outputs) as additions, drawn(batches):
        fit(*data)
    assert [s.noise for s in additions] == [s.noise for s in trace.additions]
    return Trace(additions, batches, trace.n_rows)


def changes(first, second, which="steps"):
    """Return how far the statistics of two traces are apart, in standard deviations."""
    pairs = zip(getattr(first, which), getattr(second, which), strict=True)
    return [np.linalg.norm(a.statistic - b.statistic) / a.noise.scale for a, b in pairs]


def toggled(batch, row):
    """Return the batch with a row taken out if it is there, and put in if not."""
    return np.setxor1d(batch, [row])


def swapped(batch, row):
    """Return the batch with a row in another's place, or another in the row's place."""
    if row in batch:
        others = np.setdiff1d(np.arange(batch.max() + 2), batch)
        return np.sort(np.append(batch[batch != row], others[0]))
    return np.sort(np.append(batch[1:], row))


def membership(fit, row, *data, change=toggled, threshold=None):
    """Return, for every step, what the membership of a row changes given all the rest."""
    trace = traced(fit, *data, threshold=threshold)
    batches = [change(batch, row) for batch in trace.batches]
    return changes(trace, replayed(fit, trace, batches, *data, threshold=threshold))


def coupled(fit, first, second, threshold=None):
    """Return the trace on one data set, and that on another with the same batches."""
    trace = traced(fit, *first, threshold=threshold)
    return trace, replayed(fit, trace, trace.batches, *second, threshold=threshold)


def composed_epsilon(mus, rate, adjacency, delta, full_mu=0.0):
    """Return what Poisson batches of measured changes cost, and a full release next to them.

    `mus` are norms of one contribution in standard deviations; full_mu is a distance.
    """
    interval = 2.0**-11
    loss = privacy_loss_distribution.from_gaussian_mechanism(
        1 / max(mus), sampling_prob=rate, value_discretization_interval=interval,
        neighboring_relation=RELATIONS[adjacency],
    ).self_compose(len(mus))  # fmt: skip
    if full_mu:
        loss = loss.compose(
            privacy_loss_distribution.from_gaussian_mechanism(
                1 / full_mu, value_discretization_interval=interval
            )
        )
    return float(loss.get_epsilon_for_delta(delta))


def batches_are_wrong(batches, n_rows, rate):
    """Return which law of independent Poisson batches the batches contradict, or None."""
    n_batches, limit = len(batches), stats.norm.isf(_audit.FALSE_ALARM / 2)
    member = np.zeros((n_batches, n_rows))
    for row, batch in zip(member, batches, strict=True):
        np.add.at(row, batch, 1)
    if member.max() > 1:
        return "repeated rows"
    variance = rate * (1 - rate)
    counts = member.sum(axis=0) - n_batches * rate
    if abs(counts.sum()) > limit * math.sqrt(n_batches * n_rows * variance):
        return "rate"
    if not _within(np.sum(counts**2) / (n_batches * variance), n_rows):
        return "counts"
    sizes = member.sum(axis=1) - n_rows * rate
    if not _within(np.sum(sizes**2) / (n_rows * variance), n_batches):
        return "sizes"
    # overlaps of batches that follow one another, and of those further apart
    centered = member - rate
    for lag in range(1, min(8, n_batches)):
        overlap = np.sum(centered[lag:] * centered[:-lag])
        if abs(overlap) > limit * variance * math.sqrt(n_rows * (n_batches - lag)):
            return "overlaps"
    return None


def _within(value, freedom):
    tails = stats.chi2.cdf(value, freedom), stats.chi2.sf(value, freedom)
    return 2 * min(tails) > _audit.FALSE_ALARM
