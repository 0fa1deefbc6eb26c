# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The winner of a secret subset of runs: its exact law, what it costs, and mutants."""

import itertools
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from skdp.privacy import SecretSubset, gdp_delta, gdp_epsilon, gdp_mu
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
from skdp.privacy.laws import selection as winner
from skdp.privacy.laws.selection import RunCost, winner_epsilon

# nodes and weights for the secret chance p with which every run is kept, of density 2 (1 - p)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS * (1 - (NODES + 1) / 2)


def factor(subset, better):
    """Return the density of a winner against its own run; `better` has a row for each other run."""
    better = np.atleast_2d(better)
    assert len(better) == subset.n_runs - 1 or subset.n_runs == 1
    if subset.n_runs == 1:
        return np.ones(better.shape[1])
    none = np.prod(1 - NODES[:, None, None] * better, axis=1)
    kept = 1 - 2 / (subset.n_runs + 2)  # the chance that a run counts at all
    return (WEIGHTS * NODES) @ none / kept


def winner_law(subset, runs):
    """Return the law of (run, outcome) that wins; runs are pairs (scores, masses)."""
    law = []
    for i, (scores, masses) in enumerate(runs):
        better = [
            [theirs[(s > score) | ((s == score) & (l < i))].sum() for score in scores]
            for l, (s, theirs) in enumerate(runs)  # noqa: E741
            if l != i
        ]
        law.append(masses * factor(subset, better or np.zeros((1, len(scores)))))
    return np.concatenate(law)


def hockey_stick(p, q, epsilon):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def log_ratio(p, q):
    seen = (p > 0) | (q > 0)
    return np.abs(np.log(p[seen]) - np.log(q[seen])).max()


# -- the law itself --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 10, 200])
def test_probabilities_and_their_mean(n):
    subset = SecretSubset(n)
    chances = [subset.probability(k) for k in range(n + 3)]
    assert math.fsum(chances) == pytest.approx(1, rel=1e-12)
    assert chances[0] == chances[n + 1] == chances[n + 2] == 0
    assert (np.diff(chances[1 : n + 1]) < 0).all()
    mean = math.fsum(k * chance for k, chance in enumerate(chances))
    assert mean <= subset.mean <= mean * (1 + 1e-12)
    # a run is kept with a chance of density 2 (1 - p); that none is kept is left out
    kept = [2 * (n - k + 1) / ((n + 1) * (n + 2)) for k in range(1, n + 1)]
    assert chances[1 : n + 1] == pytest.approx(np.divide(kept, sum(kept)))


@pytest.mark.sample(1)
@pytest.mark.parametrize("n", [2, 4])
def test_draws_have_the_law(n):
    subset, bits, times = SecretSubset(n), SeededBits(7), 3000
    counts = Counter(tuple(subset.choose(bits).tolist()) for _ in range(times))
    everything = [c for k in range(1, n + 1) for c in itertools.combinations(range(n), k)]
    expected = [times * subset.probability(len(c)) / math.comb(n, len(c)) for c in everything]
    assert set(counts) == set(everything)
    assert stats.chisquare([counts[c] for c in everything], expected).pvalue > 1e-4


def test_draws_differ_and_are_never_empty():
    subset = SecretSubset(60)
    drawn = {tuple(subset.choose(SystemBits())) for _ in range(50)}
    assert len(drawn) > 40
    assert min(map(len, drawn)) >= 1
    assert SecretSubset(1).choose(SystemBits()).tolist() == [0]
    assert pickle.loads(pickle.dumps(subset)) == subset == SecretSubset(np.int64(60))


@pytest.mark.parametrize("n", [0, -1, True])
def test_bad_numbers_of_runs(n):
    with pytest.raises(ValueError, match="at least 1 run"):
        SecretSubset(n)
    with pytest.raises(TypeError):
        SecretSubset(2.5)


def test_the_law_of_the_winner_by_enumeration():
    subset = SecretSubset(3)
    runs = [
        ([1, 0, 1], [0.2, 0.5, 0.3]),
        ([0, 2, 1], [0.6, 0.1, 0.3]),
        ([1, 1, 0], [0.1, 0.8, 0.1]),
    ]
    runs = [(np.array(scores), np.array(masses)) for scores, masses in runs]
    expected = np.zeros((3, 3))
    for k in range(1, 4):
        for counted in itertools.combinations(range(3), k):
            chance = subset.probability(k) / math.comb(3, k)
            for outcome in itertools.product(range(3), repeat=3):
                mass = chance * math.prod(runs[i][1][y] for i, y in enumerate(outcome))
                # the first, among equals
                best = max(counted, key=lambda i: runs[i][0][outcome[i]])
                expected[best, outcome[best]] += mass
    assert winner_law(subset, runs) == pytest.approx(expected.ravel(), abs=1e-12)


# -- what it costs ---------------------------------------------------------------------------


def most_of_gaussian(better, mu):
    """Return the most that chances can be on a neighbour, for Gaussian runs."""
    return special.ndtr(special.ndtri(better) + mu)


def most_of_pure(better, epsilon):
    """Return the most that chances can be on a neighbour, for purely private runs."""
    return np.minimum(math.exp(epsilon) * better, 1 - math.exp(-epsilon) * (1 - better))


chances = st.one_of(st.sampled_from([0.0, 1e-9, 0.5, 1.0]), st.floats(0, 1))


@pytest.mark.full
@settings(max_examples=100)
@given(st.lists(chances, min_size=1, max_size=40), st.floats(0.01, 3))
def test_no_runs_of_whatever_kinds_change_the_factor_by_more(better, mu):
    subset = SecretSubset(len(better) + 1)
    better = np.array(better)[:, None]
    loss = winner.loss_of_choice(subset, RunCost(mu))
    ours, theirs = factor(subset, better), factor(subset, most_of_gaussian(better, mu))
    assert math.log(ours[0] / theirs[0]) <= loss * (1 + 1e-9)
    epsilon = mu
    loss = winner.loss_of_choice(subset, RunCost(epsilon=epsilon))
    theirs = factor(subset, most_of_pure(better, epsilon))
    assert math.log(ours[0] / theirs[0]) <= loss * (1 + 1e-9)


def responses(epsilon, broken, n_runs):
    """Yield two lists of runs: randomised responses of two scores, for all pairs of truths."""
    lie = (1 - broken) / (1 + math.exp(epsilon))
    tables = np.array([[lie * math.exp(epsilon), lie], [lie, lie * math.exp(epsilon)]])
    told = broken * np.eye(2)
    scores = np.array([0, 1, 0, 1])
    for truths in itertools.product(range(2), repeat=2 * n_runs):
        yield [
            [(scores, np.concatenate([tables[t], told[t]])) for t in half]
            for half in (truths[:n_runs], truths[n_runs:])
        ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("n_runs", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_pure_searches_keep_their_claim(n_runs, epsilon):
    subset = SecretSubset(n_runs)
    claim = winner_epsilon(subset, RunCost(epsilon=epsilon), 0.0)
    worst = max(
        log_ratio(*[winner_law(subset, runs) for runs in pair])
        for pair in responses(epsilon, 0.0, n_runs)
    )
    assert epsilon * 0.99 < worst <= claim * (1 + 1e-9)
    assert claim <= 3 * epsilon * (1 + 1e-12)
    assert n_runs > 1 or claim == pytest.approx(epsilon)


@pytest.mark.full
@pytest.mark.sample(1)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_three_times_the_price_of_a_run_is_attained(epsilon):
    # what wins is rare, and right below what a neighbour has more often: many runs, few of them
    # better
    subset = SecretSubset(400)
    better = np.repeat(np.logspace(-4, 0, 400)[None], 399, axis=0)
    change = np.log(factor(subset, better) / factor(subset, most_of_pure(better, epsilon)))
    claim = winner_epsilon(subset, RunCost(epsilon=epsilon), 0.0)
    assert 0.99 * 3 * epsilon < claim <= 3 * epsilon
    assert 0.93 * claim < epsilon + change.max() <= claim


@pytest.mark.sample(1)
@pytest.mark.parametrize("broken", [1e-3, 0.05])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_searches_with_a_pair_keep_their_claim(epsilon, broken):
    subset, cost = SecretSubset(4), RunCost(0.0, epsilon, broken)
    # no delta below what breaks: the winner is as likely broken as all runs that count
    assert winner_epsilon(subset, cost, 0.99 * broken * 2) == math.inf
    delta = broken * 2 * (1 + 1e-9)
    claim = winner_epsilon(subset, cost, delta)
    for pair in responses(epsilon, broken, 4):
        assert hockey_stick(*[winner_law(subset, runs) for runs in pair], claim) <= delta


@pytest.mark.parametrize("broken", [1e-9, 1e-4])
def test_the_delta_of_a_pair_is_attained(broken):
    # the best score of all tells for certain, with probability `broken`
    subset, scores = SecretSubset(10), np.array([0, 1, 2])
    laws = [
        winner_law(subset, [(scores, np.array(masses))] * 10)
        for masses in ([0.5, 0.5 - broken, broken], [0.5, 0.5, 0.0])
    ]
    claim = winner_epsilon(subset, RunCost(0.0, 0.1, broken), 4 * broken * (1 + 1e-9))
    # without the factor E[K] = 4 the claim would be broken
    assert 0.99 * 4 * broken < hockey_stick(*laws, claim) <= 4 * broken


GRID = np.linspace(-12, 12, 4001)
ORDERS = {
    "as scored": lambda y: y,
    "reversed": lambda y: -y,
    "by size": abs,
    "by the middle": lambda y: -abs(y - 0.25),
}


def gaussian_search(subset, centers, order):
    """Return the law on a grid: half of the runs around each of two centers, unit noise."""
    cells = np.append(GRID - (GRID[1] - GRID[0]) / 2, math.inf)
    half, law = subset.n_runs // 2, []
    scores = order(GRID)
    ranks = np.argsort(scores, kind="stable")
    masses = [np.diff(special.ndtr(cells - center)) for center in centers]
    above = []
    for mass in masses:
        beyond = np.append(np.cumsum(mass[ranks][::-1])[::-1], 0.0)
        better = np.empty_like(mass)
        better[ranks] = np.clip((beyond[1:] + beyond[:-1]) / 2, 0, 1)
        above.append(better)
    kept = 1 - 2 / (subset.n_runs + 2)
    for own, mass in enumerate(masses):
        powers = [half - (own == which) for which in range(2)]
        none = np.prod(
            [(1 - NODES[:, None] * t) ** n for t, n in zip(above, powers, strict=True)], axis=0
        )
        law.append(half * mass * ((WEIGHTS * NODES) @ none) / kept)
    assert sum(map(np.sum, law)) == pytest.approx(1, rel=1e-3)
    return np.concatenate(law)


@pytest.mark.sample(2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("n_runs", "epsilon"), [(2, 0.5), (14, 2.0), (60, 1.0)])
def test_gaussian_searches_keep_their_claim(n_runs, epsilon, order):
    subset, delta, mu = SecretSubset(n_runs), 1e-5, gdp_mu(epsilon, 1e-6)
    claim = winner_epsilon(subset, RunCost(mu), delta)
    start = gaussian_search(subset, (0.0, 0.0), ORDERS[order])
    for shift in [(mu, mu), (mu, 0.0), (mu, -mu)]:
        moved = gaussian_search(subset, shift, ORDERS[order])
        assert hockey_stick(start, moved, claim) <= delta
        assert hockey_stick(moved, start, claim) <= delta


def smallest_epsilon(p, q, delta):
    low, high = 0.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if hockey_stick(p, q, middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize(("n_runs", "epsilon"), [(14, 2.0), (60, 1.0)])
def test_the_claim_for_gaussian_runs_is_near_what_can_happen(n_runs, epsilon):
    # first come scores that a neighbour has more often, as many as change the factor most;
    # right behind them those that a neighbour has hardly ever
    subset, delta, mu = SecretSubset(n_runs), 1e-5, gdp_mu(epsilon, 1e-6)
    t = np.logspace(-4, -0.1, 300)
    better = np.repeat(t[None], n_runs - 1, axis=0)
    change = factor(subset, better) / factor(subset, most_of_gaussian(better, mu))
    first = -special.ndtri(t[np.argmax(change)]) + 0.5

    def order(y):
        return np.where(y > first, 100 + y, -y)

    laws = [gaussian_search(subset, (shift, shift), order) for shift in (0.0, mu)]
    claim = winner_epsilon(subset, RunCost(mu), delta)
    assert 0.75 * claim < smallest_epsilon(*laws, delta) <= claim


@pytest.mark.full
@given(st.integers(1, 1000), st.floats(1e-4, 8), st.floats(1e-12, 0.5))
def test_more_of_anything_costs_more(n, mu, delta):
    def claim(n, mu, delta):
        return winner_epsilon(SecretSubset(n), RunCost(mu), delta)

    base, up = claim(n, mu, delta), 1 + 1e-9
    assert gdp_epsilon(mu, delta) <= base < math.inf
    assert base <= claim(n + 1, mu, delta) * up
    assert base <= claim(n, mu * 1.1, delta) * up
    assert base <= claim(n, mu, delta / 2) * up


@given(st.floats(1e-3, 20), st.floats(0, 0.3), st.floats(0, 25))
def test_the_curve_of_a_pair_is_that_of_a_broken_response(epsilon, broken, at):
    # four outcomes: the truth is told for certain, or randomised
    lie = (1 - broken) / (1 + math.exp(epsilon))
    p = np.array([broken, lie * math.exp(epsilon), lie, 0.0])
    exact = hockey_stick(p, p[::-1], at)
    ours = RunCost(0.0, epsilon, broken).delta_at(at)
    assert exact <= ours * (1 + 1e-13) + 1e-16
    assert ours == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_the_loss_is_the_least_root():
    subset, cost = SecretSubset(20), RunCost(0.4)
    x = winner.loss_of_choice(subset, cost) / 2
    assert 19 * gdp_delta(0.4, x) <= math.expm1(x)
    assert 19 * gdp_delta(0.4, x * (1 - 1e-9)) > math.expm1(x * (1 - 1e-9))


# -- mutants ---------------------------------------------------------------------------------


def test_a_search_that_counts_the_choice_once_is_noticed(monkeypatch):
    real = winner.loss_of_choice
    monkeypatch.setattr(winner, "loss_of_choice", lambda *given: real(*given) / 2)
    with pytest.raises(AssertionError):
        test_three_times_the_price_of_a_run_is_attained(1.0)
    with pytest.raises(AssertionError):
        test_the_claim_for_gaussian_runs_is_near_what_can_happen(60, 1.0)


def test_a_search_that_drops_the_mean_is_noticed(monkeypatch):
    monkeypatch.setattr(SecretSubset, "mean", 1.0)
    with pytest.raises(AssertionError):
        test_searches_with_a_pair_keep_their_claim(1.0, 0.05)


def test_a_search_in_which_all_runs_count_is_noticed():
    subset, odds = SecretSubset(400), math.exp(1.0)
    t = 1e-2
    change = 399 * (math.log1p(-t) - math.log1p(-odds * t))
    assert change > winner.loss_of_choice(subset, RunCost(epsilon=1.0))


def test_a_subset_of_a_known_size_is_noticed(monkeypatch):
    monkeypatch.setattr(SecretSubset, "choose", lambda subset, bits: np.arange(2))
    with pytest.raises(AssertionError):
        test_draws_have_the_law(4)
