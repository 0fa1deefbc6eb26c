# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact privacy losses of draws, and neighbours on which they are largest.

`recorded_draws` stands in front of a query's `draw`; from what it is given, rows and
noise, the law of the output follows without a draw.
"""

import contextlib
from unittest import mock

import numpy as np
import sklearn
from sklearn.base import clone

from skdp import _quantiles as _quantile_rank
from skdp._quantiles import QuantileRank
from skdp.location._median import DistanceSum, distances_and_subgradients

NAN = float("nan")


@contextlib.contextmanager
def recorded_draws(query):
    """Record (query, rows, noise) of every draw, and draw zeros."""
    draws = []

    def draw(self, rows, noise, source):
        draws.append((self, rows, noise))
        return np.zeros(self.size)

    with mock.patch.object(query, "draw", draw):
        yield draws


def draws_of(query, model, X):
    with recorded_draws(query) as draws, sklearn.config_context(assume_finite=True):
        clone(model).fit(X)
    return draws


def log_law(draw):
    """Return the runs of a rank draw and the log-probability of a position in each."""
    query, rows, noise = draw
    # looked up there: a test may have planted a bug
    formed = _quantile_rank.candidates(rows.positions(query.column), query.tau, query.cells)
    starts, counts, steps = (part[formed[1] > 0] for part in formed)
    rate = _quantile_rank.rate(query.tau.denominator, noise.scale)
    logits = -rate * steps
    return starts, logits - np.log(np.sum(counts * np.exp(logits - logits.max()))) - logits.max()


def rank_epsilon(model, first, second):
    """Return the largest log-ratio of output probabilities on two data sets, exactly."""
    total = 0.0
    worlds = [draws_of(QuantileRank, model, X) for X in (first, second)]
    for pair in zip(*worlds, strict=True):
        (one, p), (other, q) = map(log_law, pair)
        edges = np.union1d(one, other)
        at = [np.searchsorted(s, edges, "right") - 1 for s in (one, other)]
        total += np.abs(p[at[0]] - q[at[1]]).max()
    return total


def line_epsilon(model, first, second):
    """Return the largest log-ratio of densities of a draw on the line, by quadrature."""
    grid, laws = np.linspace(-1, 1, 20001)[:, None], []
    for X in (first, second):
        ((_, rows, noise),) = draws_of(DistanceSum, model, X)
        logits = -distances_and_subgradients(grid, rows.columns())[0] / noise.scale
        mass = np.trapezoid(np.exp(logits - logits.max()), grid[:, 0])
        laws.append(logits - logits.max() - np.log(mass))
    return np.abs(laws[0] - laws[1]).max()


def worst_rank_pair(adjacency, n_features=1):
    """Return rows between 0 and 2^30: nearly all mass is above, and one row jumps over it."""
    first = np.array([0.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else 2.0**30
    return [np.tile(column[:, None], n_features) for column in (first, second)]


def worst_line_pair(adjacency):
    """Return rows at 1 and one at -1, which becomes 1 as well, or null."""
    first = np.ones((100, 1))
    second = first.copy()
    first[0], second[0] = -1, NAN if adjacency == "zero-out" else 1
    return first, second
