# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact laws of a drawn radius, and neighbours on which its privacy loss is largest."""

import contextlib
from unittest import mock

import numpy as np
import sklearn
from sklearn.base import clone

from skdp import _quantiles

NAN = float("nan")


@contextlib.contextmanager
def drawn(draws):
    """Append (query, rows, noise) of every draw of a radius, and draw the first one."""

    def draw(self, rows, noise, source):
        if draws is not None:
            draws.append((self, rows, noise))
        return np.zeros(1)

    with (
        mock.patch.object(_quantiles.NormThreshold, "draw", draw),
        sklearn.config_context(assume_finite=True),
    ):
        yield draws


def law(query, noise, scores):
    """Return the log-probability of every radius."""
    # looked up there: a test may have planted a bug
    logits = -_quantiles.rate(1, noise.scale) * scores
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


def fitted_law(model, X):
    """Return the grid and the log-probabilities of the radius that a fit draws."""
    with drawn([]) as draws:
        clone(model).fit(X)
    ((query, rows, noise),) = draws
    return query, law(query, noise, query.scores(rows))


def threshold_epsilon(model, first, second):
    """Return the largest log-ratio of output probabilities on two data sets, exactly."""
    laws = [fitted_law(model, X)[1] for X in (first, second)]
    return np.abs(laws[0] - laws[1]).max()


def worst_pair(adjacency, tail, smallest):
    """Return rows on the unit sphere, as many as the tail, and one just beyond the first radius.

    All radii but the last have `tail` rows beyond them, or one more. One of the rows on the
    sphere goes: nearly all of the mass moves up by one, and the first radius moves down.
    """
    first = np.ones((tail + 1, 1))
    first[0] = 1.02 * smallest
    second = first.copy()
    second[1] = NAN if adjacency == "zero-out" else 0.0
    return first, second
