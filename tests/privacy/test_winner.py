# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the winner of a search costs: its exact law, enumerated, and mutants."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp.privacy import Repetitions, gdp_delta, gdp_epsilon, gdp_mu
from skdp.privacy.laws import selection as winner
from skdp.privacy.laws.selection import LAWS, RunCost, winner_epsilon, winner_epsilon_renyi

every_law = pytest.mark.parametrize("law", LAWS)


def winner_law(runs, scores, masses):
    """Return the law of the winner, the first of the best runs; and no run at last."""
    scores, masses = np.asarray(scores), np.asarray(masses)
    law = np.zeros(len(masses) + 1)
    for score in np.unique(scores):
        tied = (scores == score) & (masses > 0)
        below = masses[scores < score].sum()
        up_to = min(1.0, below + masses[tied].sum())
        total = max(0.0, runs.generating(up_to) - runs.generating(below))
        law[:-1][tied] = total * masses[tied] / max(masses[tied].sum(), 1e-300)
    law[-1] = runs.generating(0.0)
    return law


def hockey_stick(p, q, epsilon):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def log_ratio(p, q):
    seen = (p > 0) | (q > 0)
    return np.abs(np.log(p[seen]) - np.log(q[seen])).max()


# -- the law itself ------------------------------------------------------------------------


@every_law
def test_the_law_of_the_winner_by_enumeration(law):
    runs, masses, scores = Repetitions(law, 1.2), [0.2, 0.5, 0.3], [1, 0, 1]
    expected, most = np.zeros(4), 11
    expected[3] = runs.probability(0)
    for k in range(1, most):
        for outcome in itertools.product(range(3), repeat=k):
            best = max(outcome, key=lambda y: scores[y])  # the first, among equals
            chance = math.prod(masses[y] for y in outcome)
            expected[best] += runs.probability(k) * chance
    missing = 1 - math.fsum(runs.probability(k) for k in range(most))
    assert np.abs(winner_law(runs, scores, masses) - expected).max() <= missing + 1e-12 < 1e-3


# -- pure runs -----------------------------------------------------------------------------


def responses(epsilon, n_scores, n_candidates=2, broken=0.0):
    """Yield (scores, law, law of a neighbour): a random candidate, its score by a response.

    Randomised response over `n_scores` public scores, of every pair of true ones.
    """
    lie = (1 - broken) / (n_scores - 1 + math.exp(epsilon))
    tables = np.full((n_scores, n_scores), lie)
    np.fill_diagonal(tables, lie * math.exp(epsilon))
    scores = np.tile(np.arange(n_scores), n_candidates)
    # the truth is told together with the fact that it is the truth: scores come twice
    told = broken * np.eye(n_scores)
    for true in itertools.product(range(n_scores), repeat=2 * n_candidates):
        ours, theirs = true[:n_candidates], true[n_candidates:]
        laws = [
            np.concatenate([*(tables[t] for t in ts), *(told[t] for t in ts)]) / n_candidates
            for ts in (ours, theirs)
        ]
        yield np.tile(scores, 2), *laws


@pytest.mark.covering
@pytest.mark.parametrize("mean", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@every_law
def test_pure_searches_keep_their_claim(law, epsilon, mean):
    runs = Repetitions(law, mean)
    claim = winner_epsilon(runs, RunCost(epsilon=epsilon), 0.0)
    worst = 0.0
    for scores, p, q in responses(epsilon, 3):
        scores, p, q = scores[:6], p[:6], q[:6]
        worst = max(worst, log_ratio(winner_law(runs, scores, p), winner_law(runs, scores, q)))
    assert epsilon * 0.99 < worst <= claim
    assert claim <= (2 + min(runs.eta, mean)) * epsilon * (1 + 1e-12)


def tight_pair(epsilon, rare=1e-9):
    """Return a pure run whose next to best outcome is the worst: tests of it are tight."""
    odds = math.exp(epsilon)
    p = np.array([1 / (1 + odds), rare * odds, 0.0])
    q = np.array([odds / (1 + odds), rare, 0.0])
    p[0], q[0] = p[0] - rare, q[0] - rare
    p[2], q[2] = 1 - p.sum(), 1 - q.sum()
    assert log_ratio(p, q) <= epsilon * (1 + 1e-6)
    return [2, 1, 0], p, q


@pytest.mark.parametrize("mean", [2.0, 10.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@every_law
def test_the_claim_for_pure_runs_is_attained(law, epsilon, mean):
    runs = Repetitions(law, mean)
    scores, p, q = tight_pair(epsilon)
    found = log_ratio(winner_law(runs, scores, p), winner_law(runs, scores, q))
    claim = winner_epsilon(runs, RunCost(epsilon=epsilon), 0.0)
    assert found <= claim * (1 + 1e-5)
    assert found == pytest.approx(claim, rel=1e-4)


def test_liu_and_talwar():
    # three times the price of a run, whatever the number of runs
    for mean in (10.0, 1e3, 1e6):
        claim = winner_epsilon(Repetitions("geometric", mean), RunCost(epsilon=0.3), 0.0)
        assert claim <= 0.9 * (1 + 1e-12)
    assert claim == pytest.approx(0.9, rel=1e-5)


# -- runs with a pair ----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("broken", [1e-3, 0.05])
@every_law
def test_searches_with_a_pair_keep_their_claim(law, epsilon, broken):
    runs = Repetitions(law, 5.0)
    # no delta below what breaks: the winner is as likely broken as all runs together
    assert winner_epsilon(runs, RunCost(0.0, epsilon, broken), 0.99 * broken * 5) == math.inf
    delta = broken * 5 * (1 + 1e-9)
    claim = winner_epsilon(runs, RunCost(0.0, epsilon, broken), delta)
    for scores, p, q in responses(epsilon, 2, broken=broken):
        laws = winner_law(runs, scores, p), winner_law(runs, scores, q)
        assert hockey_stick(*laws, claim) <= delta


@pytest.mark.parametrize("broken", [1e-9, 1e-4])
@every_law
def test_the_delta_of_a_pair_is_attained(law, broken):
    # the best score of all tells for certain, with probability `broken`
    runs, best = Repetitions(law, 5.0), 2
    p, q = np.array([0.5, 0.5 - broken, broken]), np.array([0.5, 0.5, 0.0])
    laws = [winner_law(runs, [0, 1, best], masses) for masses in (p, q)]
    claim = winner_epsilon(runs, RunCost(0.0, 0.1, broken), 5 * broken * (1 + 1e-9))
    # without the factor E[K] the claim would be broken
    assert broken < 0.99 * 5 * broken < hockey_stick(*laws, claim) <= 5 * broken


# -- beside the literature -----------------------------------------------------------------


def published(runs, mu, delta, n_splits=800):
    """Return the bound of Koskela, Redberg and Wang, which takes any split of the loss."""
    best = math.inf
    for e1 in np.linspace(0, 3 * mu * mu + 8 * mu, n_splits):
        wide = gdp_delta(mu, e1)
        if runs.law == "poisson":
            c = runs.expected * (1 - (1 - wide) * math.exp(-e1))
        else:
            c = (1 + runs.eta) * math.log(math.exp(e1) + (1 - runs.gamma) / runs.gamma * wide)
        best = min(best, c)
    return best + gdp_epsilon(mu, delta / runs.mean)


TABLE = {
    (0.5, 10): [(0.87, 0.78), (1.06, 0.91), (1.13, 0.99)],
    (1.0, 10): [(1.69, 1.52), (2.04, 1.76), (2.22, 1.94)],
    (1.0, 100): [(2.01, 1.86), (2.57, 2.32), (7.85, 10.54)],
    (2.0, 30): [(3.57, 3.27), (4.39, 3.92), (8.63, 7.43)],
}


@pytest.mark.parametrize(("epsilon", "mean"), TABLE)
def test_known_bounds_are_reproduced_and_ours_is_better(epsilon, mean):
    mu = gdp_mu(epsilon, 1e-6)
    for law, (renyi, profile) in zip(LAWS, TABLE[epsilon, mean], strict=True):
        runs = Repetitions(law, mean)
        theirs = published(runs, mu, 1e-5)
        assert winner_epsilon_renyi(runs, mu, 1e-5) == pytest.approx(renyi, abs=0.006)
        assert theirs == pytest.approx(profile, abs=0.006)
        ours = winner_epsilon(runs, RunCost(mu), 1e-5)
        # the same line of thought with the best line below the curve of errors
        assert ours <= theirs * (1 + 1e-9)
        assert bool(ours < 0.91 * theirs) is (law != "poisson")


def test_the_renyi_bound_is_that_of_dp_accounting():
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    event = dp_accounting.dp_event.RepeatAndSelectDpEvent(
        dp_accounting.GaussianDpEvent(4.0), 30.0, 1.0
    )
    theirs = RdpAccountant().compose(event).get_epsilon(1e-6)
    ours = winner_epsilon_renyi(Repetitions("geometric", 30.0), 0.25, 1e-6)
    assert ours == pytest.approx(theirs, rel=1e-7)
    # geometric runs, from the theorem: (1 + eta) times the conversion of a mixture
    orders = 1 + np.logspace(-3, 3, 3000)
    rdp = orders / 32
    mixed = min((1 - 1 / b) * b / 32 + math.log(30) / b for b in orders)
    bound = rdp + math.log(30) / (orders - 1) + 2 * mixed
    epsilon = bound + np.log1p(-1 / orders) - np.log(1e-6 * orders) / (orders - 1)
    assert epsilon.min() == pytest.approx(theirs, rel=0.01)


@given(
    st.sampled_from(list(LAWS)), st.floats(1, 1e3), st.floats(1e-4, 8), st.floats(1e-12, 0.5)
)  # fmt: skip
def test_more_of_anything_costs_more(law, mean, mu, delta):
    def claim(mean, mu, delta):
        return winner_epsilon(Repetitions(law, mean), RunCost(mu), delta)

    base = claim(mean, mu, delta)
    assert gdp_epsilon(mu, delta) <= base < math.inf
    up = 1 + 1e-9
    assert base <= claim(mean * 1.1, mu, delta) * up
    assert base <= claim(mean, mu * 1.1, delta) * up
    assert base <= claim(mean, mu, delta / 2) * up


@given(st.floats(1e-3, 20), st.floats(0, 0.3), st.floats(0, 25))
def test_the_curve_of_a_pair_is_that_of_a_broken_response(epsilon, broken, at):
    # four outcomes: the truth is told for certain, or randomised
    lie = (1 - broken) / (1 + math.exp(epsilon))
    p = np.array([broken, lie * math.exp(epsilon), lie, 0.0])
    exact = hockey_stick(p, p[::-1], at)
    ours = RunCost(0.0, epsilon, broken).delta_at(at)
    assert exact <= ours * (1 + 1e-13) + 1e-16
    assert ours == pytest.approx(exact, rel=1e-9, abs=1e-15)


# -- mutants -------------------------------------------------------------------------------


def test_a_search_that_ignores_eta_is_noticed(monkeypatch):
    real = winner.loss_of_choice

    def lighter(runs, cost):
        return real(runs, cost) / (1 + runs.eta)

    monkeypatch.setattr(winner, "loss_of_choice", lighter)
    with pytest.raises(AssertionError):
        test_the_claim_for_pure_runs_is_attained("geometric", 1.0, 10.0)
    with pytest.raises(AssertionError):
        test_pure_searches_keep_their_claim("geometric", 1.0, 10.0)


def test_a_search_that_drops_the_mean_is_noticed(monkeypatch):
    monkeypatch.setattr(Repetitions, "mean", 1.0)
    with pytest.raises(AssertionError):
        test_searches_with_a_pair_keep_their_claim("geometric", 1.0, 0.05)


def test_a_search_with_a_constant_number_of_runs_is_noticed(monkeypatch):
    monkeypatch.setattr(Repetitions, "generating", lambda self, s: s**10)
    with pytest.raises(AssertionError):
        test_pure_searches_keep_their_claim("geometric", 1.0, 10.0)
