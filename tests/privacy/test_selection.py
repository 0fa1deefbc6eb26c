# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Plans of searches: nothing above the budget, next to nothing left of it."""

import itertools
import math
import pickle

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Repetitions,
    gdp_delta,
    gdp_mu,
    plan_selection,
)
from skdp.privacy.kernel.ledger import compose_epsilon, total_mu
from skdp.privacy.laws import selection as shares
from skdp.privacy.laws.selection import (
    LAWS,
    STRATEGIES,
    RunCost,
    winner_epsilon,
    winner_epsilon_renyi,
)
from tests.privacy.test_winner import published

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


@pytest.mark.covering
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
    spent = shares._all_of(100, (plan.epsilon_run, plan.delta_run), 1e-5)
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
TABLE = {
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


@pytest.mark.sample(2)
@pytest.mark.parametrize(("times", "law"), TABLE)
def test_the_table_of_shares(times, law):
    for n, (share, chance) in TABLE[times, law].items():
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


@pytest.mark.covering
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


@pytest.mark.parametrize("law", LAWS)
def test_an_accountant_that_forgets_the_choice_is_noticed(monkeypatch, law):
    def one_run(runs, cost, delta):
        return cost.epsilon_at(delta)

    shares.shares_of_repeats.cache_clear()
    monkeypatch.setattr(shares, "winner_epsilon", one_run)
    try:
        plan = plan_of(strategy=law)
    finally:
        shares.shares_of_repeats.cache_clear()
    with pytest.raises(AssertionError):
        is_exact(plan)
