# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The temperature of the exponential mechanism spends epsilon, all of it and no more.

Densities exp(-c sum |theta - d|) on [-1, 1], by quadrature, for all small data sets on a
grid and all their neighbours: L = 1, diameter 2, radius 1.
"""

import itertools

import numpy as np
import pytest

THETA = np.linspace(-1, 1, 4001)
VALUES = np.linspace(-1, 1, 5)
LIPSCHITZ, DIAMETER = 1.0, 2.0
EPSILONS = [0.1, 1.0, 4.0]


def log_density(data, c, theta=THETA, repeats=1):
    """Return the log-density on theta; the first record occurs `repeats` times."""
    loss = np.abs(theta[:, None] - np.asarray(data)).sum(axis=1)
    if len(data):
        loss += (repeats - 1) * np.abs(theta - data[0])
    log_value = -c * loss
    # the grid has a point at every kink, and the density is exponential in between
    value = np.exp(log_value - log_value.max())
    low, high = log_value[:-1], log_value[1:]
    z = np.maximum(np.abs(high - low), 1e-12)
    mass = np.maximum(value[:-1], value[1:]) * (-np.expm1(-z) / z) * np.diff(theta)
    return log_value - log_value.max() - np.log(mass.sum())


def log_ratio(first, second, c, theta=THETA, repeats=1):
    gap = log_density(first, c, theta, repeats) - log_density(second, c, theta, repeats)
    return np.abs(gap).max()


def worst_replacement(n, c):
    """Return the largest log-ratio over all data sets of n records and all swaps."""
    return max(
        log_ratio((*rest, a), (*rest, b), c)
        for rest in itertools.combinations_with_replacement(VALUES, n - 1)
        for a, b in itertools.combinations(VALUES, 2)
    )


def worst_removal(n, c):
    """Return the largest log-ratio over all data sets of n records and all removals."""
    return max(
        log_ratio((*rest, a), rest, c)
        for rest in itertools.combinations_with_replacement(VALUES, n - 1)
        for a in VALUES
    )


@pytest.mark.covering
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_epsilon_is_kept_by_every_small_data_set(n, epsilon):
    assert worst_replacement(n, epsilon / (2 * LIPSCHITZ * DIAMETER)) <= epsilon
    assert worst_removal(n, epsilon / (LIPSCHITZ * DIAMETER)) <= epsilon


# Records at one end pull all mass there, where the swapped record's loss is extreme; the
# density at the other end then changes by as much as the range of the loss allows.
REPEATS = 100_000
FINE = -1 + 2 * np.concatenate([[0.0], np.geomspace(1e-8, 1, 4000)])


def extreme_replacement(c):
    return log_ratio([-1.0, -1.0], [-1.0, 1.0], c, FINE, REPEATS)


def extreme_removal(c):
    return log_ratio([-1.0, 1.0], [-1.0], c, FINE, REPEATS)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_is_attained(epsilon):
    replaced = extreme_replacement(epsilon / (2 * LIPSCHITZ * DIAMETER))
    removed = extreme_removal(epsilon / (LIPSCHITZ * DIAMETER))
    for spent in (replaced, removed):
        assert 0.99 * epsilon <= spent <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_radius_taken_for_the_diameter_breaks_the_promise(epsilon):
    radius = DIAMETER / 2
    assert extreme_replacement(epsilon / (2 * LIPSCHITZ * radius)) > 1.9 * epsilon
    assert extreme_removal(epsilon / (LIPSCHITZ * radius)) > 1.9 * epsilon
    # and so does the temperature of the other adjacency
    assert extreme_replacement(epsilon / (LIPSCHITZ * DIAMETER)) > 1.9 * epsilon
