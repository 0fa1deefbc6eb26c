# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private selection: choices, winners, the gate of a search."""

import itertools
import math
import pickle
from bisect import bisect_right
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Repetitions,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    plan_selection,
)
from skdp.privacy.kernel.ledger import compose_epsilon, total_mu
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
from skdp.privacy.laws import exponential, selection
from skdp.privacy.laws.exponential import weighted_choice
from skdp.privacy.laws.selection import (
    LAWS,
    STRATEGIES,
    RunCost,
    winner_epsilon,
    winner_epsilon_renyi,
)
from tests.privacy._laws import derivative

# What the winner of a search costs: its exact law, enumerated, and mutants.


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


@pytest.mark.sample(1)
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


@pytest.mark.sample(1)
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


@pytest.mark.full
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
    real = selection.loss_of_choice

    def lighter(runs, cost):
        return real(runs, cost) / (1 + runs.eta)

    monkeypatch.setattr(selection, "loss_of_choice", lighter)
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


# What the winner of Gaussian runs costs: its exact law, integrated numerically.


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


@pytest.mark.sample(1)
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


@pytest.mark.sample(2)
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


@pytest.mark.sample(1)
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
    c = selection.loss_of_choice(runs, RunCost(mu))
    assert max(factor) <= c
    assert max(factor) == pytest.approx(c, rel=1e-5)


def test_poisson_runs_lose_the_total_variation():
    runs, mu = Repetitions("poisson", 20.0), 0.4
    c = selection.loss_of_choice(runs, RunCost(mu))
    assert c == pytest.approx(20 * (2 * special.ndtr(mu / 2) - 1))


# -- mutants -------------------------------------------------------------------------------


def test_a_search_that_pays_for_one_run_is_noticed(monkeypatch):
    monkeypatch.setattr(selection, "loss_of_choice", lambda runs, cost: 0.0)
    with pytest.raises(AssertionError):
        test_the_claim_for_gaussian_runs_is_nearly_attained("geometric", 100.0, 1.0)
    with pytest.raises(AssertionError):
        test_gaussian_searches_with_a_model_keep_their_claim("poisson", 20.0, 2.0, 0.7)


# Plans of searches: nothing above the budget, next to nothing left of it.


BUDGETS = [(0.3, 1e-6), (1.0, 1e-5), (4.0, 1e-6), (30.0, 1e-3)]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def plan_of(epsilon=1.0, delta=1e-5, *, strategy="geometric", n=6, **options):
    return plan_selection(
        epsilon, delta, strategy=strategy, n_candidates=n, **{"gaussian": delta > 0, **options}
    )


def total_of(plan):
    """Return the epsilon of everything in a plan at its delta, composed anew."""
    delta, f = plan.delta, plan.refit_share
    if plan.repetitions is not None:
        inside = delta * (1 - f)
        cost = RunCost(plan.mu_run or 0.0, plan.epsilon_run or 0.0, plan.delta_run or 0.0)
        search = winner_epsilon(plan.repetitions, cost, inside)
        if plan.mu_run:
            search = min(search, winner_epsilon_renyi(plan.repetitions, plan.mu_run, inside))
        last = compose_epsilon(plan.mu_refit or 0.0, last_of(plan), delta * f)
        return search + last
    mu, n = plan.mu_run or 0.0, plan.n_candidates
    runs = [] if mu else [(plan.epsilon_run, plan.delta_run, n)]
    training = total_mu([(mu, n), (plan.mu_refit or 0.0, 1)])
    # what concentrated privacy gains for many runs is tested elsewhere
    train = compose_epsilon(training, runs + last_of(plan), delta)
    if plan.public_scores:
        return train
    scores = [(plan.epsilon_choice or 0.0, 0.0, 1), (plan.epsilon_score, 0.0, 1)]
    return max(train, compose_epsilon(plan.mu_refit or 0.0, scores + last_of(plan), delta))


def last_of(plan):
    return [(plan.epsilon_refit, plan.delta_refit, 1)] if plan.epsilon_refit else []


def is_exact(plan):
    epsilon, delta = plan.spent
    assert (1 - 1e-6) * plan.epsilon <= epsilon <= plan.epsilon
    assert delta == plan.delta
    assert total_of(plan) == pytest.approx(epsilon, rel=1e-8)
    assert total_of(plan) <= plan.epsilon
    return True


@pytest.mark.sample(2)
@pytest.mark.parametrize("public_scores", [False, True])
@pytest.mark.parametrize("refit_share", [0.0, 0.3])
@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@every_strategy
def test_plans_spend_what_was_granted(
    strategy, epsilon, delta, gaussian, refit_share, public_scores
):
    options = {"refit_share": refit_share, "public_scores": public_scores, "gaussian": gaussian}
    plan = plan_of(epsilon, delta, strategy=strategy, **options)
    assert is_exact(plan)
    assert (plan.mu_run is not None) is gaussian
    assert (plan.epsilon_run is None) is (plan.delta_run is None) is gaussian
    assert (plan.mu_refit is not None) is (gaussian and refit_share > 0)
    assert (plan.epsilon_refit is not None) is (not gaussian and refit_share > 0)
    pays_once = strategy == "all" and not public_scores
    assert (plan.epsilon_choice is not None) is (plan.epsilon_score is not None) is pays_once


@pytest.mark.parametrize("refit_share", [0.0, 0.3])
@every_strategy
def test_pure_plans_are_pure(strategy, refit_share):
    plan = plan_of(1.0, 0.0, strategy=strategy, refit_share=refit_share)
    assert plan.spent[1] == plan.delta_run == 0
    assert is_exact(plan)
    assert plan.epsilon_run < 1
    assert (plan.delta_refit == 0) is (refit_share > 0)


@pytest.mark.full
def test_a_row_pays_for_fits_or_for_scores():
    plan = plan_of(1.0, 1e-5, strategy="all", n=4)
    assert plan.mu_run == pytest.approx(gdp_mu(1.0, 1e-5) / 2)
    assert plan.epsilon_choice == pytest.approx(0.8)
    assert plan.epsilon_score == pytest.approx(0.2)
    last = plan_of(1.0, 1e-5, strategy="all", n=4, refit_share=0.36)
    assert last.mu_run == pytest.approx(0.8 * plan.mu_run)
    assert last.mu_refit == pytest.approx(0.6 * gdp_mu(1.0, 1e-5))
    assert 0 < last.epsilon_choice + last.epsilon_score < 1
    pure = plan_of(1.0, 0.0, strategy="all", n=4)
    assert pure.epsilon_run == pytest.approx(0.25)


def test_one_candidate_leaves_nothing_to_choose():
    plan = plan_of(strategy="all", n=1)
    assert plan.choice_mechanism is None
    assert plan.score_mechanism.epsilon == pytest.approx(1.0)


def test_one_run_pays_for_one_run():
    for law in ("logarithmic", "geometric"):
        plan = plan_of(strategy=law, expected_runs=1.0)
        assert plan.mu_run == pytest.approx(gdp_mu(1.0, 1e-5), rel=1e-9)


def test_many_pairs_compose_better_than_they_add_up():
    plan = plan_of(1.0, 1e-5, strategy="all", n=100, gaussian=False)
    assert plan.epsilon_run > 2 / 100
    assert plan.delta_run * 100 <= 1e-5
    spent = selection._all_of(100, (plan.epsilon_run, plan.delta_run), 1e-5)
    assert (1 - 1e-6) < spent <= 1
    # dp_accounting's composition of the worst such runs
    from dp_accounting.pld import common, privacy_loss_distribution

    one = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(plan.epsilon_run, plan.delta_run)
    )
    assert one.self_compose(100).get_epsilon_for_delta(1e-5) <= spent


def test_default_numbers_of_runs():
    assert plan_of(n=7).expected_runs == 14
    assert plan_of(n=7, strategy="all").expected_runs == 7
    assert plan_of(n=7, strategy="all", expected_runs=7) == plan_of(n=7, strategy="all")
    assert plan_of(n=7, expected_runs=3.5).repetitions == Repetitions("geometric", 3.5)


def test_mechanisms_have_the_prices_of_the_plan():
    gaussian, pairs = plan_of(), plan_of(gaussian=False)
    # a hair below, for the price of a release is rounded up
    assert isinstance(gaussian.score_mechanism, GaussianMechanism)
    assert gaussian.mu_run * (1 - 1e-11) < gaussian.score_mechanism.mu < gaussian.mu_run
    assert pairs.score_mechanism == LaplaceMechanism(pairs.epsilon_run)
    assert gaussian.choice_mechanism is pairs.choice_mechanism is None
    plan = plan_of(strategy="all")
    assert plan.score_mechanism == LaplaceMechanism(plan.epsilon_score)
    assert plan.choice_mechanism == ExponentialMechanism(plan.epsilon_choice)
    for strategy in STRATEGIES:
        free = plan_of(strategy=strategy, public_scores=True)
        assert free.score_mechanism is free.choice_mechanism is None
        # training rows pay the same
        assert free.mu_run == plan_of(strategy=strategy).mu_run


@pytest.mark.sample(1)
@every_strategy
def test_plans_say_what_they_are(strategy):
    for delta, share in ((1e-5, 0.0), (1e-5, 0.2), (0.0, 0.2)):
        plan = plan_of(1.0, delta, strategy=strategy, refit_share=share)
        text = plan.describe()
        assert f"{plan.n_candidates} candidates" in text
        assert f"epsilon=1, delta={delta:.3g}" in text
        assert ("mu=" in text) is (delta > 0)
        assert ("secret number" in text) is (strategy != "all")
        assert ("fitted again" in text) is (share > 0)
        assert pickle.loads(pickle.dumps(plan)) == plan


@settings(max_examples=50)
@given(
    st.sampled_from(STRATEGIES), st.integers(1, 200), st.floats(1e-3, 50), st.floats(1e-12, 0.1),
    st.sampled_from([0.0, 0.2, 0.9]), st.booleans(),
)  # fmt: skip
def test_no_plan_exceeds_its_budget(strategy, n, epsilon, delta, refit_share, gaussian):
    # slow where bounds of both kinds are computed
    assume(strategy != "poisson" or n < 10 or not gaussian)
    assume(strategy != "all" or refit_share == 0 or not gaussian)
    plan = plan_of(
        epsilon, delta, strategy=strategy, n=n, refit_share=refit_share, gaussian=gaussian
    )
    assert (1 - 1e-6) * epsilon <= plan.spent[0] <= epsilon


# -- beside the literature -----------------------------------------------------------------

# (expected runs per candidate, law) -> {candidates: (share of mu, chance to try the best)}
SELECTION_TABLE = {
    (2, "logarithmic"): {3: (0.63, 0.66), 5: (0.59, 0.58), 10: (0.55, 0.51), 30: (0.50, 0.43)},
    (2, "geometric"): {3: (0.56, 0.75), 5: (0.51, 0.71), 10: (0.46, 0.69), 30: (0.40, 0.67)},
    (4, "geometric"): {3: (0.49, 0.86), 5: (0.46, 0.83), 10: (0.42, 0.82), 30: (0.38, 0.81)},
    (2, "poisson"): {3: (0.59, 0.86), 5: (0.47, 0.86), 10: (0.31, 0.86), 30: (0.13, 0.86)},
}


def published_share(runs):
    """Return the share of mu by the bound of Koskela, Redberg and Wang."""
    low, high = 0.0, gdp_mu(1.0, 1e-5)
    whole = high
    while high - low > 2e-3 * whole:
        mu = (low + high) / 2
        low, high = (mu, high) if published(runs, mu, 1e-5, 60) <= 1 else (low, mu)
    return low / whole


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("epsilon", "delta", "n", "refit_share"),
    [
        # one score costs more beside a Gaussian fit than two parts of it do
        (0.05733013282226893, 0.00016927263591081496, 1, 0.3),
        (0.1104193397113196, 1.1453267608883583e-09, 1, 0.3),
        # an ulp more costs a whole step on the grid of losses
        (0.008366652113323247, 2.447777354290939e-10, 17, 0.999),
        (1.0, 1e-5, 3, 1 - 1e-12),
    ],
)
def test_scores_beside_a_second_fit_stay_within_the_budget(epsilon, delta, n, refit_share):
    plan = plan_of(epsilon, delta, strategy="all", n=n, refit_share=refit_share)
    assert 0.999 * epsilon < plan.spent[0] <= epsilon


@pytest.mark.full
@pytest.mark.parametrize(("times", "law"), SELECTION_TABLE)
def test_the_table_of_shares(times, law):
    for n, (share, chance) in SELECTION_TABLE[times, law].items():
        runs = Repetitions(law, times * n)
        tried = 1 - runs.generating(1 - 1 / n)
        assert tried == pytest.approx(chance, abs=0.006)
        ours = plan_of(1.0, 1e-5, strategy=law, n=n, expected_runs=times * n).mu_run
        ours /= gdp_mu(1.0, 1e-5)
        assert published_share(runs) == pytest.approx(share, abs=0.0065)
        # a better line below the curve of errors; Renyi divergences for many Poisson runs
        gain = 1.12 if law != "poisson" else 1.2 if n == 30 else 0.99
        assert ours > gain * share


def test_all_of_few_candidates():
    whole = gdp_mu(1.0, 1e-5)
    found = [plan_of(strategy="all", n=n).mu_run / whole for n in (3, 5, 10, 30)]
    assert found == pytest.approx([0.58, 0.45, 0.32, 0.18], abs=0.006)


# -- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": math.nan}, "delta must be"),
        ({"delta": 0.0, "gaussian": True}, "delta must be greater than 0 for fits with Gaussian"),
        ({"strategy": "auto"}, "strategy must be one of"),
        ({"strategy": "best"}, "strategy must be one of"),
        ({"n": 0}, "at least 1 candidate"),
        ({"n": True}, "at least 1 candidate"),
        ({"expected_runs": 0.5}, "expected number of runs"),
        ({"expected_runs": math.inf}, "expected number of runs"),
        ({"strategy": "all", "expected_runs": 20}, "expected_runs must be None"),
        ({"refit_share": 1.0}, "refit_share must be"),
        ({"refit_share": -0.1}, "refit_share must be"),
        ({"refit_share": math.nan}, "refit_share must be"),
        ({"refit_share": "half"}, "refit_share must be"),
        ({"epsilon": 1e-13, "delta": 0.0}, "too small"),
        ({"epsilon": 1e-13, "delta": 1e-13}, "too small"),
    ],
)
def test_bad_plans(options, message):
    with pytest.raises(ValueError, match=message):
        plan_of(**options)


@pytest.mark.sample(2)
@pytest.mark.parametrize("epsilon", [1e-6, 1e3, 1e8])
@pytest.mark.parametrize("delta", [1e-300, 0.9])
@every_strategy
def test_budgets_at_the_edge(strategy, epsilon, delta):
    for gaussian in (True, False):
        plan = plan_of(epsilon, delta, strategy=strategy, n=2, gaussian=gaussian)
        assert plan.spent[0] <= epsilon
        assert (plan.mu_run or plan.epsilon_run) > 0


# -- mutants -------------------------------------------------------------------------------


def mutated(plan, **changes):
    return type(plan)(**{**vars(plan), **changes})


def test_shares_that_were_not_divided_are_noticed():
    for strategy, delta in itertools.product(STRATEGIES, (0.0, 1e-5)):
        plan = plan_of(1.0, delta, strategy=strategy)
        changes = {"epsilon_run": 1.0} if delta == 0 else {"mu_run": gdp_mu(1.0, 1e-5)}
        with pytest.raises(AssertionError):
            is_exact(mutated(plan, **changes))


def test_rows_that_train_and_score_are_noticed():
    plan = plan_of(strategy="all", n=4)
    parts = [(plan.epsilon_choice, 0.0, 1), (plan.epsilon_score, 0.0, 1)]
    assert gdp_delta(2 * plan.mu_run, 1.0) <= 1e-5
    assert compose_epsilon(2 * plan.mu_run, parts, 1e-5) > 1.2


def test_a_second_fit_for_free_is_noticed():
    for strategy in STRATEGIES:
        plan = plan_of(strategy=strategy)
        again = mutated(plan, refit_share=0.3, mu_refit=plan.mu_run)
        with pytest.raises(AssertionError):
            is_exact(again)


@pytest.mark.sample(2)
@pytest.mark.parametrize("law", LAWS)
def test_an_accountant_that_forgets_the_choice_is_noticed(monkeypatch, law):
    def one_run(runs, cost, delta):
        return cost.epsilon_at(delta)

    selection.shares_of_repeats.cache_clear()
    monkeypatch.setattr(selection, "winner_epsilon", one_run)
    try:
        plan = plan_of(strategy=law)
    finally:
        selection.shares_of_repeats.cache_clear()
    with pytest.raises(AssertionError):
        is_exact(plan)


# The weighted choice, against exact cumulative weights (mpmath) and chi-square.


mp = mpmath.mp.clone()
mp.dps = 150
# False alarm per check: the seeded ones never change, the system ones must never cry wolf.
P_VALUE = {True: 1e-6, False: 1e-9}
both_sources = pytest.mark.parametrize("bits", [SeededBits(1), SystemBits()], ids=type)

RNG = np.random.default_rng(0)
# counts, steps, rate: ties, gaps, zeros at either end, weights far apart, huge steps
CASES = {
    "one": ([3], [10**9], 50.0),
    "two": ([1, 1], [0, 1], 1.0),
    "ties": ([5, 0, 1, 2, 0], [4, 0, 4, 4, 9], 0.3),
    "no rate": ([2**52, 1, 2**51, 0], [0, 10**9, 3, 5], 0.0),
    "counts outweigh steps": ([1, 2**52, 2**40], [7, 43, 35], 1.0),
    "slow decay": (RNG.integers(0, 2**52, 40), RNG.integers(0, 4 * 10**6, 40), 1e-6),
    "ranks": (RNG.integers(0, 2**40, 300), np.abs(np.arange(300) - 120), 0.05),
    "huge steps": (RNG.integers(0, 9, 50), 10**9 - RNG.integers(0, 60, 50), 0.1),
    "far apart": ([0, 1, 7, 2, 0], [0, 10**9, 10**9 + 1, 10**9, 3], 2.5),
    "all but one vanish": ([1, 2**52, 1], [10**9, 1, 10**9], 50.0),
}
every_case = pytest.mark.parametrize("case", CASES)


class Words:
    """Bits that hand out chosen words, then those of a seeded source."""

    seeded = True

    def __init__(self, words, seed=0):
        self.queue, self.rest = [int(word) for word in words], SeededBits(seed)

    def words(self, size):
        taken, self.queue = self.queue[:size], self.queue[size:]
        more = self.rest.words(size - len(taken))
        return np.concatenate([np.array(taken, dtype=np.uint64), more])


def arrays(case, kind=np.float64):
    counts, steps, rate = CASES[case]
    return np.array(counts, dtype=kind), np.array(steps, dtype=np.int64), rate


def exact_ends(counts, steps, rate):
    """Return the cumulative probabilities to 150 digits."""
    low = min(s for c, s in zip(counts.tolist(), steps.tolist(), strict=True) if c)
    weights = [
        mp.mpf(c) * mp.exp(-mp.mpf(rate) * (s - low)) if c else mp.mpf(0)
        for c, s in zip(counts.tolist(), steps.tolist(), strict=True)
    ]
    ends = list(accumulate(weights))
    return [end / ends[-1] for end in ends]


def as_words(u, n=6):
    digits = int(mp.floor(u * mp.mpf(2) ** (64 * n)))
    return [digits >> 64 * (n - 1 - i) & (2**64 - 1) for i in range(n)]


def p_value(draws, ends):
    """Compare draws with exact probabilities by chi-square; rare indices are one cell."""
    probabilities = np.diff([0.0, *map(float, ends)])
    expected = len(draws) * probabilities
    seen = np.bincount(draws, minlength=len(ends))
    often = expected >= 8
    cells, wanted = list(seen[often]), list(expected[often])
    if expected[~often].sum() > 1:
        cells.append(seen[~often].sum())
        wanted.append(expected[~often].sum())
    elif seen[~often].sum() > 20:
        return 0.0
    if len(cells) == 1:
        return 1.0
    wanted = np.array(wanted) * sum(cells) / sum(wanted)
    return stats.chisquare(cells, wanted).pvalue


@pytest.fixture
def slow(monkeypatch):
    """Count the draws that are decided in exact arithmetic."""
    calls, exactly = [], exponential._choose_exactly
    monkeypatch.setattr(exponential, "_choose_exactly", lambda *a: calls.append(a) or exactly(*a))
    return calls


@pytest.mark.sample(1)
@every_case
@both_sources
def test_the_choice_has_the_exact_probabilities(case, bits, slow):
    counts, steps, rate = arrays(case)
    draws = [weighted_choice(counts, steps, rate, bits) for _ in range(3000)]
    assert p_value(draws, exact_ends(counts, steps, rate)) > P_VALUE[bits.seeded]
    assert counts[draws].min() > 0
    assert not slow


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", ["two", "counts outweigh steps", "slow decay", "ranks"])
def test_half_the_rate_would_be_noticed(case):
    counts, steps, rate = arrays(case)
    bits, ends = SeededBits(2), exact_ends(counts, steps, rate)
    draws = [weighted_choice(counts, steps, rate / 2, bits) for _ in range(3000)]
    assert p_value(draws, ends) < 1e-9
    # and so would a choice that ignores the counts, or the steps
    for other in ((np.sign(counts), steps), (counts, 0 * steps)):
        if case != "two":
            draws = [weighted_choice(*other, rate, bits) for _ in range(3000)]
            assert p_value(draws, ends) < 1e-9


@pytest.mark.sample(3)
@every_case
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_words_give_the_exact_index_on_both_paths(case, kind, slow, monkeypatch):
    counts, steps, rate = arrays(case, kind)
    ends = exact_ends(counts, steps, rate)
    words = SeededBits(3).words(60)
    expected = [bisect_right(ends, mp.mpf(int(word)) / mp.mpf(2) ** 64) for word in words]
    fast = [weighted_choice(counts, steps, rate, Words([w])) for w in words]
    assert fast == expected
    assert not slow
    monkeypatch.setattr(exponential, "_UNIT", 1.0)
    exact = [weighted_choice(counts, steps, rate, Words([w], seed=1)) for w in words]
    assert exact == expected
    assert len(slow) == 60


@pytest.mark.sample(5)
@every_case
@pytest.mark.parametrize("distance", ["1e-11", "1e-14", "1e-17", "1e-25", "1e-50", "1e-100"])
def test_words_next_to_a_boundary_give_the_exact_index(case, distance, slow):
    counts, steps, rate = arrays(case)
    ends = exact_ends(counts, steps, rate)
    gap = mp.mpf(distance)
    inner = [a for a in dict.fromkeys(ends) if gap < a < 1 - gap][:20]
    for a in inner:
        for u in (a - gap, a + gap):
            drawn = weighted_choice(counts, steps, rate, Words(as_words(u)))
            assert drawn == bisect_right(ends, u)
            assert counts[drawn] > 0
    # an error bound of 5e-12 would be too cautious, one of 2e-14 not cautious enough
    if gap > 5e-12:
        assert not slow
    elif gap < 2e-14:
        assert len(slow) == 2 * len(inner)


@pytest.mark.sample(28)
@every_case
@pytest.mark.parametrize("word", [0, 1, 2**64 - 2, 2**64 - 1])
def test_the_ends_of_the_interval_give_indices_with_positive_counts(case, word):
    counts, steps, rate = arrays(case)
    drawn = weighted_choice(counts, steps, rate, Words([word] * 3))
    u = sum(mp.mpf(word) / mp.mpf(2) ** i for i in (64, 128, 192)) + mp.mpf(2) ** -193
    assert counts[drawn] > 0
    assert drawn == bisect_right(exact_ends(counts, steps, rate), u)


@pytest.mark.parametrize("step", [50, 200, 700, 2000])
def test_weights_that_only_many_digits_tell_apart_are_decided(step):
    # e^-2000 is about 1e-869
    with mp.workdps(1000):
        for u, expected in ((mp.exp(-step - 1), 0), (mp.exp(-step + 1), 1)):
            words = as_words(u, 60)
            assert weighted_choice(np.ones(2), np.array([step, 0]), 1.0, Words(words)) == expected
            # from the other end
            words = [word ^ (2**64 - 1) for word in words]
            steps = np.array([0, step])
            assert weighted_choice(np.ones(2), steps, 1.0, Words(words)) == 1 - expected


@pytest.mark.sample(2)
@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.7, 50.0, 5e-324, 1e300])
def test_enormous_ranges_of_steps_raise_nothing_and_are_exact(rate, slow, monkeypatch):
    steps = np.array([0, 1, 700, 10**6, 10**9, 2**62, 2**63 - 1])
    counts = np.array([1.0, 2.0**52, 2.0**52, 1.0, 2.0**52, 5.0, 9.0])
    ends = exact_ends(counts, steps, rate)
    words = SeededBits(4).words(200)
    expected = [bisect_right(ends, mp.mpf(int(word)) / mp.mpf(2) ** 64) for word in words]
    with np.errstate(all="raise"):
        assert [weighted_choice(counts, steps, rate, Words([w])) for w in words] == expected
    assert not slow
    monkeypatch.setattr(exponential, "_UNIT", 1.0)
    exact = [weighted_choice(counts, steps, rate, Words([w])) for w in words[:50]]
    assert exact == expected[:50]


@pytest.mark.sample(1)
@pytest.mark.parametrize("n", [1000, 10**6])
def test_long_lists_stay_on_the_fast_path_and_are_uniform_within_equal_weights(n, slow):
    counts, steps = np.full(n, 3.0), np.abs(np.arange(n) - n // 2)
    bits = SeededBits(5)
    draws = [weighted_choice(counts, steps, 30 / n, bits) for _ in range(2000 if n < 10**6 else 25)]
    # the distance from the middle is exponential, at a scale of n / 30
    distance = np.abs(np.array(draws) - n // 2) + bits.words(len(draws)) * 2.0**-64
    assert stats.kstest(distance * 30 / n, stats.expon.cdf).pvalue > 1e-6
    assert not slow


@pytest.mark.full
def test_float_cumulative_weights_are_within_the_margin_on_long_lists(slow):
    n = 20_000
    counts, steps = RNG.integers(0, 2**52, n), RNG.integers(0, 400, n)
    ends = exact_ends(counts, steps, 0.03)
    chosen = range(50, n, 1999)
    for index in chosen:
        for gap in (-1e-17, 1e-17):
            u = ends[index] + gap
            drawn = weighted_choice(counts, steps, 0.03, Words(as_words(u)))
            assert drawn == bisect_right(ends, u)
    assert len(slow) == 2 * len(chosen)


def test_equal_seeds_give_equal_choices():
    sources = [SeededBits(seed) for seed in (6, 6, 7)]
    runs = [[weighted_choice(*arrays("ranks"), bits) for _ in range(20)] for bits in sources]
    assert runs[0] == runs[1] != runs[2]
    assert all(type(index) is int for index in runs[0])


def test_the_arguments_are_not_changed_in_place():
    counts, steps, rate = arrays("far apart")
    before = counts.copy(), steps.copy()
    weighted_choice(counts, steps, np.float32(rate), SeededBits(8))
    np.testing.assert_array_equal(before, (counts, steps))


@pytest.mark.parametrize(
    "counts", [[], [0, 0], [-1, 3], [1, np.nan], [1, np.inf], [1, 2**53], [1, 2, 3]]
)
def test_counts_out_of_range_are_refused(counts):
    steps = np.arange(min(len(counts), 2))
    with pytest.raises(ValueError, match="counts must be"):
        weighted_choice(np.array(counts, dtype=float), steps, 1.0, SeededBits(0))


@pytest.mark.parametrize(
    ("steps", "rate"), [([0, -1], 1.0), ([0, 1], -1.0), ([0, 1], np.nan), ([0, 1], np.inf)]
)
def test_steps_and_rates_out_of_range_are_refused(steps, rate):
    with pytest.raises(ValueError, match="rate and steps must be"):
        weighted_choice(np.ones(2), np.array(steps), rate, SeededBits(0))
