# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Why solver "accelerated-one-pass" does not shuffle: the noise of a step, three ways."""

import math

import pytest
from scipy.optimize import brentq

from skdp.privacy import gdp_mu


def shuffled(local, n_rows, delta):
    """Return the epsilon of shuffled reports, each of them `local`-private.

    Closed form of Feldman, McMillan and Talwar (2021), Theorem 3.1.
    """
    odds = math.exp(local)
    spread = 8 * math.sqrt(odds * math.log(4 / delta) / n_rows) + 8 * odds / n_rows
    return math.log1p((odds - 1) / (odds + 1) * spread)


def noise_of_a_batch(n_rows, epsilon, n_steps):
    """Return the noise of a batch's mean gradient over the clip: three ways to account."""
    delta = n_rows**-1.1
    mu = gdp_mu(epsilon, delta)
    # half of delta for the mixture, half for the tails of the reports
    most = math.log(n_rows / (16 * math.log(4 / delta)))
    local = brentq(lambda e: shuffled(e, n_rows, delta / 2) - epsilon, 1e-6, most)
    tail = delta / 2 / ((math.exp(epsilon) + 1) * (1 + math.exp(-local) / 2) * n_rows)
    report = 2 / gdp_mu(local, tail)
    return (
        2 * n_steps / n_rows / mu,
        report * math.sqrt(n_steps / n_rows),
        2 * math.sqrt(n_steps) / n_rows / mu,
    )


TABLE = {
    (10_000, 10): (0.100, 1.06, 0.0317),
    (10_000, 50): (0.502, 2.38, 0.071),
    (100_000, 10): (0.0127, 0.165, 0.0040),
    (1_000_000, 10): (0.0015, 0.027, 0.00048),
}


@pytest.mark.parametrize(("n_rows", "n_steps"), TABLE)
def test_shuffling_needs_more_noise_than_disjoint_steps(n_rows, n_steps):
    found = noise_of_a_batch(n_rows, 0.05, n_steps)
    assert found == pytest.approx(TABLE[n_rows, n_steps], rel=0.02)
    assert found[1] > 4 * found[0] > 4 * found[2]


@pytest.mark.parametrize(("n_rows", "most"), [(10**4, 0.085), (10**5, 0.030), (10**6, 0.0104)])
def test_shuffling_is_proved_for_small_epsilon_only(n_rows, most):
    # reports of local epsilon 1/2 at most, as the theorem asks
    assert shuffled(0.5, n_rows, n_rows**-1.1 / 2) == pytest.approx(most, rel=0.01)
