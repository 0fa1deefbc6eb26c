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
from scipy import stats

from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    gdp_delta,
    gdp_mu,
    plan_selection,
)
from skdp.privacy.kernel.ledger import compose_epsilon, total_mu
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
from skdp.privacy.laws import exponential, selection
from skdp.privacy.laws.exponential import weighted_choice
from skdp.privacy.laws.selection import STRATEGIES, RunCost, winner_epsilon

# Plans of searches: nothing above the budget, next to nothing left of it.


BUDGETS = [(0.3, 1e-6), (1.0, 1e-5), (4.0, 1e-6), (30.0, 1e-3)]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def plan_of(epsilon=1.0, delta=1e-5, *, strategy="subset", n=6, **options):
    return plan_selection(
        epsilon, delta, strategy=strategy, n_candidates=n, **{"gaussian": delta > 0, **options}
    )


def total_of(plan):
    """Return the epsilon of everything in a plan at its delta, composed anew."""
    delta, f = plan.delta, plan.refit_share
    if plan.subset is not None:
        inside = delta * (1 - f)
        cost = RunCost(plan.mu_run or 0.0, plan.epsilon_run or 0.0, plan.delta_run or 0.0)
        search = winner_epsilon(plan.subset, cost, inside)
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
    plan = plan_of(n=1)
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
        assert ("secret subset" in text) is (strategy != "all")
        assert ("fitted again" in text) is (share > 0)
        assert pickle.loads(pickle.dumps(plan)) == plan


@settings(max_examples=20)
@given(
    st.sampled_from(STRATEGIES), st.integers(1, 200), st.floats(1e-3, 50), st.floats(1e-12, 0.1),
    st.sampled_from([0.0, 0.2, 0.9]), st.booleans(),
)  # fmt: skip
def test_no_plan_exceeds_its_budget(strategy, n, epsilon, delta, refit_share, gaussian):
    # slow where losses are put on a grid
    assume(strategy != "all" or refit_share == 0 or not gaussian)
    plan = plan_of(
        epsilon, delta, strategy=strategy, n=n, refit_share=refit_share, gaussian=gaussian
    )
    assert (1 - 1e-6) * epsilon <= plan.spent[0] <= epsilon


# -- beside the literature -----------------------------------------------------------------

# (share of mu of a run, chance that the best candidate counts) for 1, 2 and 3 runs of each
TABLE = {
    7: [(0.69, 0.43), (0.62, 0.57), (0.58, 0.66)],
    10: [(0.65, 0.40), (0.59, 0.55), (0.56, 0.64)],
    30: [(0.56, 0.36), (0.51, 0.52), (0.49, 0.61)],
    100: [(0.48, 0.34), (0.45, 0.50), (0.43, 0.60)],
}


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


@pytest.mark.sample(1)
@pytest.mark.parametrize("n", TABLE)
def test_the_table_of_shares(n):
    whole = gdp_mu(1.0, 1e-5)
    for times, (share, chance) in enumerate(TABLE[n], 1):
        plan = plan_of(n=n * times)
        assert plan.mu_run / whole == pytest.approx(share, abs=0.006)
        runs = n * times
        missed = sum(
            plan.subset.probability(k) * math.comb(runs - times, k) / math.comb(runs, k)
            for k in range(1, runs + 1)
        )
        assert 1 - missed == pytest.approx(chance, abs=0.006)


def test_pure_runs_get_a_third_whatever_their_number():
    for n in (20, 200, 2000):
        assert 1 / 3 < plan_of(1.0, 0.0, n=n).epsilon_run < 0.36


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
        ({"strategy": "geometric"}, "strategy must be one of"),
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
def test_an_accountant_that_forgets_the_choice_is_noticed(monkeypatch):
    def one_run(subset, cost, delta):
        return cost.epsilon_at(delta)

    selection.shares_of_subset.cache_clear()
    monkeypatch.setattr(selection, "winner_epsilon", one_run)
    try:
        plan = plan_of()
    finally:
        selection.shares_of_subset.cache_clear()
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


@pytest.mark.sample(6, 28)
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
