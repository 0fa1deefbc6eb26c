# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exact laws of drawn vertices: of one draw, and of all that a fit draws in a row."""

import contextlib
import itertools
from fractions import Fraction
from unittest import mock

import numpy as np
from sklearn.base import clone

from skdp.solvers import frank_wolfe as _steepest_coordinate
from skdp.solvers.frank_wolfe import SteepestCoordinate


def law(query, noise, along):
    """Return the log-probability of every vertex, given the scores of half of them."""
    steps = np.concatenate([along, -along])
    # looked up there: a test may have planted a bug
    logits = -_steepest_coordinate.rate(1 / Fraction(query.grid), noise.scale) * steps
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


@contextlib.contextmanager
def told(vertices, draws):
    """Draw the vertices that are told, and append the (query, rows, noise) of every draw."""

    def draw(self, rows, noise, source):
        draws.append((self, rows, noise))
        return np.array([float(vertices[len(draws) - 1])])

    with mock.patch.object(SteepestCoordinate, "draw", draw):
        yield draws


def fitted(model, data, vertices):
    """Return the model that draws the vertices that are told, and its draws."""
    with told(vertices, []) as draws:
        return clone(model).fit(*data), draws


def joint_law(model, data, size):
    """Return the probabilities of all sequences that `model.max_iter` draws may take.

    `size` is the number of coefficients, of which there must be few.
    """
    sequences = itertools.product(range(2 * size), repeat=model.max_iter)
    logs = []
    for vertices in sequences:
        total = 0.0
        for vertex, (query, rows, noise) in zip(
            vertices, fitted(model, data, vertices)[1], strict=True
        ):
            total += law(query, noise, query.scores(rows))[vertex]
        logs.append(total)
    return np.array(logs)


def delta_between(first, second, epsilon):
    """Return the least delta at which two laws, as log-probabilities, are epsilon-near."""
    return max(
        float(np.maximum(np.exp(a) - np.exp(epsilon + b), 0).sum())
        for a, b in ((first, second), (second, first))
    )


def worst_pair(adjacency, n_rows=3):
    """Return rows of one feature whose last one pulls as strongly as it can, and neighbours.

    All others pull the other way, so that steps lead to where the last one's residual is
    largest.
    """
    X = np.ones((n_rows, 1))
    y = np.ones(n_rows, dtype=int)
    y[-1] = 0
    other = y.copy()
    other[-1] = 1 if adjacency == "replace-one" else 99
    return (X, y), (X, other)
