# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the winner of Gaussian runs costs: its exact law, integrated numerically."""

import math

import numpy as np
import pytest
from scipy import special

from skdp.privacy import Repetitions, gdp_delta, gdp_mu
from skdp.privacy.laws import selection as winner
from skdp.privacy.laws.selection import RunCost, winner_epsilon, winner_epsilon_renyi
from tests.privacy._laws import derivative
from tests.privacy.test_winner import every_law, hockey_stick

GRID = np.linspace(-12, 12, 12_001)


def gaussian_search(runs, centres, order):
    """Return the law on a grid: a random candidate of two, scored with unit noise."""
    cells = np.append(GRID - (GRID[1] - GRID[0]) / 2, math.inf)
    masses = [np.diff(special.ndtr(cells - centre)) / 2 for centre in centres]
    scores = np.concatenate([order(GRID), order(GRID) + 1e-9])
    return winner_law_of_many(runs, scores, np.concatenate(masses))


def winner_law_of_many(runs, scores, masses):
    """Return the law of the winner among narrow cells in the order of their scores."""
    ranks = np.argsort(scores, kind="stable")
    # from above: how close to the best counts
    above = np.append(np.cumsum(masses[ranks][::-1])[::-1], 0.0)
    middle = np.clip(1 - (above[1:] + above[:-1]) / 2, 0.0, 1.0)
    law = np.empty_like(masses)
    law[ranks] = masses[ranks] * [derivative(runs, s) for s in middle]
    assert law.sum() + runs.generating(0.0) == pytest.approx(1.0, rel=1e-3)
    return law


ORDERS = {
    "as scored": lambda y: y,
    "reversed": lambda y: -y,
    "by size": abs,
    "by the middle": lambda y: -abs(y - 0.25),
}


@pytest.mark.covering
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("mean", "epsilon"), [(4.0, 0.5), (4.0, 2.0), (20.0, 2.0)])
@every_law
def test_gaussian_searches_keep_their_claim(law, mean, epsilon, order):
    runs, delta = Repetitions(law, mean), 1e-5
    mu = gdp_mu(epsilon, 1e-6)
    claim = winner_epsilon(runs, RunCost(mu), delta)
    by_renyi = winner_epsilon_renyi(runs, mu, delta)
    worst = 0.0
    start = gaussian_search(runs, (0.0, 0.0), ORDERS[order])
    for shift in [(mu, mu), (mu, 0.0), (mu, -mu)]:
        moved = gaussian_search(runs, shift, ORDERS[order])
        for pair in ((start, moved), (moved, start)):
            worst = max(worst, hockey_stick(*pair, min(claim, by_renyi)))
    assert worst <= delta


def smallest_epsilon(p, q, delta):
    low, high = 0.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if hockey_stick(p, q, middle) > delta else (low, middle)
    return high


@pytest.mark.covering
@pytest.mark.parametrize(("mean", "epsilon"), [(4.0, 0.5), (20.0, 2.0), (100.0, 1.0)])
@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_the_claim_for_gaussian_runs_is_nearly_attained(law, mean, epsilon):
    # first come scores that a neighbour has more often, as many as changes the factor phi'
    # most; right behind them those that a neighbour has hardly ever
    runs, delta, mu = Repetitions(law, mean), 1e-5, gdp_mu(epsilon, 1e-6)
    t = np.logspace(-4, -0.1, 500)
    far = special.ndtr(special.ndtri(t) + mu)
    factor = [
        derivative(runs, 1 - a) / derivative(runs, 1 - b) for a, b in zip(t, far, strict=True)
    ]
    first = -special.ndtri(t[np.argmax(factor)]) + 0.5

    def order(y):
        return np.where(y > first, 100 + y, -y)

    laws = [gaussian_search(runs, (shift, shift), order) for shift in (0.0, mu)]
    found = smallest_epsilon(*laws, delta)
    claim = winner_epsilon(runs, RunCost(mu), delta)
    assert 0.9 * claim < found <= claim


def shifted_delta(mu, epsilon):
    """Return the hockey stick divergence of N(mu, 1) from N(0, 1), at any real epsilon."""
    far = np.minimum(epsilon, 700.0)
    tail = special.log_ndtr(-mu / 2 - epsilon / mu)
    return special.ndtr(mu / 2 - epsilon / mu) - np.exp(np.minimum(far + tail, 0.0))


def delta_with_a_model(runs, shifts, mu_model, epsilon):
    """Return the exact delta of a search that releases a model and the score it won by.

    Two candidates with scores of unit noise around 0, moved by shifts; a model of parameter
    `mu_model`, which the order does not look at.
    """
    laws = []
    for moved in (0.0, 1.0):
        density = sum(np.exp(-((GRID - moved * s) ** 2) / 2) for s in shifts)
        density /= 2 * math.sqrt(2 * math.pi)
        above = sum(special.ndtr(moved * s - GRID) for s in shifts) / 2
        laws.append(density * [derivative(runs, 1 - t) for t in above])
    deltas = []
    for p, q in (laws, laws[::-1]):
        left = epsilon - np.log(p) + np.log(q)
        deltas.append((p * shifted_delta(mu_model, left)).sum() * (GRID[1] - GRID[0]))
    return max(deltas)


@pytest.mark.covering
@pytest.mark.parametrize("share", [0.3, 0.7])
@pytest.mark.parametrize(("mean", "epsilon"), [(4.0, 0.5), (20.0, 2.0), (100.0, 1.0)])
@every_law
def test_gaussian_searches_with_a_model_keep_their_claim(law, mean, epsilon, share):
    runs, delta, mu = Repetitions(law, mean), 1e-5, gdp_mu(epsilon, 1e-6)
    claims = winner_epsilon(runs, RunCost(mu), delta), winner_epsilon_renyi(runs, mu, delta)
    score, model = mu * math.sqrt(share), mu * math.sqrt(1 - share)
    worst = max(
        delta_with_a_model(runs, shifts, model, min(claims))
        for shifts in [(score, score), (score, 0.0), (score, -score)]
    )
    assert worst <= delta


def test_the_integral_knows_the_price_of_one_run():
    runs, mu = Repetitions("geometric", 1.0), 0.5
    found = delta_with_a_model(runs, (0.3, 0.3), 0.4, 1.0)
    assert found == pytest.approx(gdp_delta(mu, 1.0), rel=1e-6)


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_the_curve_of_a_gaussian_run_is_used_in_full(law):
    # c is the supremum of log phi'(1 - t) / phi'(1 - Phi(Phi^-1(t) + mu)) over all t
    runs, mu = Repetitions(law, 20.0), 0.4
    t = np.concatenate([np.logspace(-12, -1, 4000), np.linspace(0.1, 1, 2000)])
    far = special.ndtr(special.ndtri(t) + mu)
    factor = [
        math.log(derivative(runs, 1 - a) / derivative(runs, 1 - b))
        for a, b in zip(t, far, strict=True)
    ]
    c = winner.loss_of_choice(runs, RunCost(mu))
    assert max(factor) <= c
    assert max(factor) == pytest.approx(c, rel=1e-5)


def test_poisson_runs_lose_the_total_variation():
    runs, mu = Repetitions("poisson", 20.0), 0.4
    c = winner.loss_of_choice(runs, RunCost(mu))
    assert c == pytest.approx(20 * (2 * special.ndtr(mu / 2) - 1))


# -- mutants -------------------------------------------------------------------------------


def test_a_search_that_pays_for_one_run_is_noticed(monkeypatch):
    monkeypatch.setattr(winner, "loss_of_choice", lambda runs, cost: 0.0)
    with pytest.raises(AssertionError):
        test_the_claim_for_gaussian_runs_is_nearly_attained("geometric", 100.0, 1.0)
    with pytest.raises(AssertionError):
        test_gaussian_searches_with_a_model_keep_their_claim("poisson", 20.0, 2.0, 0.7)
