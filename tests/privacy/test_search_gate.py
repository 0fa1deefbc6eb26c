# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The gate of a search: charged first, one line on the ledger, nothing twice."""

import copy
import itertools
import pickle
import threading
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

from skdp._sklearn import fit_context
from skdp.exceptions import BudgetError, SeededNoiseWarning
from skdp.privacy import (
    LaplaceMechanism,
    Ledger,
    PrivacyBudget,
    Search,
    Sensitivity,
    plan_selection,
)
from skdp.privacy.laws.selection import STRATEGIES

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def plan_of(epsilon=1.0, delta=1e-5, *, strategy="subset", n=6, **options):
    return plan_selection(
        epsilon, delta, strategy=strategy, n_candidates=n, **{"gaussian": delta > 0, **options}
    )


def search_of(plan, **options):
    given = {"n_rows": 20, "held_out": 0 if plan.public_scores else 4, "random_state": 0}
    given |= {"adjacency": "replace-one", "purpose": "a search", **options}
    return Search(plan, **given)


class Spy:
    """A shared budget that remembers, and may be used up."""

    def __init__(self, error=None):
        self.charges, self.error = [], error

    def check(self, epsilon, stream=None):
        pass

    def charge(self, epsilon, delta, **facts):
        if self.error:
            raise self.error
        self.charges.append((epsilon, delta, facts))


@dataclass(frozen=True)
class Mean:
    """The mean score of a model."""

    model: int = 0
    name: str = "a mean score"
    size: int = 1
    idealised: bool = False

    def sensitivity(self, adjacency, n_rows):
        reach = 1 / n_rows
        return Sensitivity(reach, reach, 1.0, "every row counts 1 / n", spread=2 * reach)

    def evaluate(self, rows):
        return np.array([rows.mean()])

    def draw(self, rows, noise, source):
        return np.array([0.0])


# -- the ledger ------------------------------------------------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize(("delta", "gaussian"), [(1e-5, True), (1e-5, False), (0.0, False)])
@pytest.mark.parametrize("share", [0.0, 0.3])
@every_strategy
def test_a_search_is_one_line_of_the_ledger(strategy, delta, gaussian, share):
    plan = plan_of(1.0, delta, strategy=strategy, gaussian=gaussian, refit_share=share)
    search = search_of(plan, assumptions=("the labels",))
    (line,) = search.ledger.releases
    assert (line.noise.epsilon, line.noise.delta) == plan.spent
    assert line.noise.mu == 0
    assert search.ledger.epsilon(delta) == plan.spent[0] <= 1.0
    assert search.ledger.assumptions == ("the labels",)
    assert search.ledger.adjacency == "replace-one"
    assert ("Proposition 72" if strategy == "all" else "Proposition 71") in line.theorem
    for text in (repr(Ledger.of(search.ledger)), Ledger.of(search.ledger)._repr_html_()):
        assert "best of 6 candidates" in text
        assert ("secret subset" in text) is (strategy != "all")
        assert "second fit" in text or not share
        assert "grid" not in text
    again = pickle.loads(pickle.dumps(search.ledger))
    assert again == search.ledger
    # two searches of the same people add up, and are told apart from one
    fresh = Ledger.of(search_of(plan, random_state=None).ledger)
    both = fresh + fresh
    assert both.releases[0].count == 2
    assert both.epsilon(2 * delta) == pytest.approx(2 * plan.spent[0], rel=1e-6)
    assert len(Ledger.of(search.ledger).to_frame()) == 1
    # beside another release
    other = search_of(plan_of(0.5, 0.0, strategy="all", n=2), random_state=1).ledger
    assert (Ledger.of(search.ledger) + other).epsilon(delta) <= 1.5


def test_searches_have_no_wrong_event():
    pure = Ledger.of(search_of(plan_of(1.0, 0.0)).ledger).dp_event
    assert "RandomizedResponse" in repr(pure)
    for plan in (plan_of(), plan_of(gaussian=False), plan_of(strategy="all")):
        assert "UnsupportedDpEvent" in repr(Ledger.of(search_of(plan).ledger).dp_event)


# -- what is charged -------------------------------------------------------------------------


@pytest.mark.sample(3)
@every_strategy
def test_a_shared_budget_is_charged_once_and_first(strategy):
    plan, spy = plan_of(strategy=strategy), Spy()
    search = search_of(plan, budget=spy)
    facts = {"mu": None, "adjacency": "replace-one", "unit": "row", "label": "a search"}
    facts["stream"] = search.ledger.releases[0].stream
    assert facts["stream"] is not None
    assert spy.charges == [(*plan.spent, facts)]
    for run in range(6) if strategy != "all" else [None]:
        search.score_curator(lambda: None, 4, run)
    assert len(spy.charges) == 1


def test_a_budget_that_is_used_up_stops_a_search():
    with pytest.raises(BudgetError, match="nothing left"):
        search_of(plan_of(), budget=Spy(BudgetError("nothing left")))
    budget = PrivacyBudget(1.5, 1e-4)
    search_of(plan_of(), budget=budget)
    with pytest.raises(BudgetError):
        search_of(plan_of(), budget=budget)


def test_a_search_that_cannot_be_is_not_charged():
    spy = Spy()
    for wrong in ({"held_out": 0}, {"adjacency": "local"}, {"random_state": "0"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            search_of(plan_of(), budget=spy, **wrong)
    assert spy.charges == []


# -- the split -------------------------------------------------------------------------------


@every_strategy
def test_rows_train_or_score(strategy):
    search = search_of(plan_of(strategy=strategy), n_rows=50, held_out=13, random_state=None)
    train, held_out = search.split()
    assert (len(train), len(held_out)) == (37, 13)
    assert sorted([*train, *held_out]) == list(range(50))
    assert (np.diff(train) > 0).all()
    assert (np.diff(held_out) > 0).all()
    again = search.split()
    assert np.array_equal(again[0], train)
    assert np.array_equal(again[1], held_out)


def test_splits_are_uniform():
    counts = Counter()
    for seed in range(600):
        search = search_of(plan_of(), n_rows=4, held_out=2, random_state=seed)
        counts[tuple(search.split()[1])] += 1
    assert set(counts) == set(itertools.combinations(range(4), 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_public_scores_hold_nothing_out():
    train, held_out = search_of(plan_of(public_scores=True)).split()
    assert np.array_equal(train, np.arange(20))
    assert len(held_out) == 0


# -- the runs --------------------------------------------------------------------------------


def counted(search):
    """Return the runs that count: those that win with the only good score."""
    n = search.plan.n_candidates
    return [run for run in range(n) if search.best(np.eye(n)[run] - 1) == run]


@pytest.mark.parametrize("public_scores", [True, False])
def test_the_best_of_all_runs_that_count_wins(public_scores):
    everything = search_of(plan_of(strategy="all", public_scores=True))
    assert counted(everything) == list(range(6))
    assert everything.best([0, 2, 1, 2, 0, -1]) == 1
    search = search_of(plan_of(public_scores=public_scores), random_state=6)
    chosen = counted(search)
    assert 1 < len(chosen) < 6
    # the first among equals, and nothing of the others
    assert search.best(np.zeros(6)) == chosen[0]
    assert search.best([-1.0 if run in chosen else 1.0 for run in range(6)]) == chosen[0]
    assert search.best(-np.arange(6.0)) == chosen[0]
    assert search.best(np.arange(6.0)) == chosen[-1]
    for wrong in (np.zeros(5), [], np.zeros((6, 1))):
        with pytest.raises(ValueError, match="all 6 runs must be scored"):
            search.best(wrong)


def test_as_many_runs_count_as_the_law_says():
    plan, counts, n = plan_of(n=3), Counter(), 800
    for seed in range(n):
        search = search_of(plan, random_state=seed)
        chosen = tuple(np.flatnonzero(search._counted))
        assert chosen == tuple(np.flatnonzero(search._counted))
        counts[chosen] += 1
    everything = [c for k in (1, 2, 3) for c in itertools.combinations(range(3), k)]
    expected = [n * plan.subset.probability(len(c)) / (1 if len(c) == 3 else 3) for c in everything]
    assert stats.chisquare([counts[c] for c in everything], expected).pvalue > 1e-4
    assert set(counts) <= set(everything)


def test_unseeded_searches_differ():
    plan = plan_of(n=1000)
    one, two = (search_of(plan, random_state=None) for _ in range(2))
    assert not np.array_equal(one._counted, two._counted)
    assert one.seed(0) != two.seed(0)


def test_seeds_never_repeat():
    search = search_of(plan_of())
    seeds = [search.seed(run) for run in range(300) for _ in range(3)]
    assert len(set(seeds)) == len(seeds)
    assert all(isinstance(seed, int) and 0 <= seed < 2**32 for seed in seeds)
    # they hang on the run, not on the order of calls
    other = search_of(plan_of())
    other.split()
    assert [other.seed(7), other.seed(7)] == seeds[21:23]
    assert search_of(plan_of(), random_state=1).seed(7) != seeds[21]


# -- the curators of scores --------------------------------------------------------------------


@pytest.mark.sample(6)
@pytest.mark.parametrize(("delta", "gaussian"), [(1e-5, True), (1e-5, False), (0.0, False)])
def test_every_run_has_one_score(delta, gaussian):
    plan = plan_of(1.0, delta, gaussian=gaussian)
    search = search_of(plan, random_state=5)
    rows, noise = np.full(4, 0.5), []
    for run in range(6):
        curator = search.score_curator(lambda: rows, 4, run)
        noise.append(float(curator.release(Mean(), plan.score_mechanism)[0]))
        (line,) = curator.ledger.releases
        price = line.noise.mu if gaussian else line.noise.epsilon
        share = plan.mu_run if gaussian else plan.epsilon_run
        assert share * (1 - 1e-9) < price <= share
        with pytest.raises(BudgetError):
            curator.release(Mean(), LaplaceMechanism(share * 1e-3))
        with pytest.raises(BudgetError, match="asked for before"):
            search.score_curator(lambda: rows, 4, run)
    # every curator has a stream of its own
    assert len(set(noise)) == len(noise)


def test_choice_and_score_of_the_winner():
    plan = plan_of(strategy="all")
    search = search_of(plan)
    curator = search.score_curator(lambda: np.full(4, 0.5), 4)
    curator.release(Mean(), plan.choice_mechanism)
    curator.release(Mean(3), plan.score_mechanism)
    assert curator.ledger.epsilon() == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(BudgetError):
        curator.release(Mean(), LaplaceMechanism(1e-3))
    with pytest.raises(BudgetError, match="asked for before"):
        search.score_curator(lambda: None, 4)


def test_one_candidate_has_a_score_only():
    plan = plan_of(strategy="all", n=1)
    curator = search_of(plan).score_curator(lambda: np.full(4, 0.5), 4)
    curator.release(Mean(), plan.score_mechanism)
    assert curator.ledger.epsilon() == pytest.approx(1.0, rel=1e-9)


def test_scores_that_were_not_paid_for():
    search = search_of(plan_of(), random_state=5)
    for run in (None, -1, 6):
        with pytest.raises(ValueError, match="position of a run"):
            search.score_curator(lambda: None, 4, run)
    with pytest.raises(ValueError, match="position of a run"):
        search_of(plan_of(strategy="all")).score_curator(lambda: None, 4, 0)
    with pytest.raises(ValueError, match="4 rows are held out"):
        search.score_curator(lambda: None, 5, 0)
    with pytest.raises(BudgetError, match="scores are public"):
        search_of(plan_of(public_scores=True)).score_curator(lambda: None, 0, 0)


def test_seeded_searches_repeat():
    def outcome(seed):
        search = search_of(plan_of(), random_state=seed)
        curator = search.score_curator(lambda: np.full(4, 0.5), 4, 0)
        score = curator.release(Mean(), search.plan.score_mechanism)
        return *search._counted, *search.split()[1], float(score[0])

    assert outcome(3) == outcome(3) != outcome(4)


# -- warnings, copies, bad input -----------------------------------------------------------------


class Searching(BaseEstimator):
    """Opens the gate, and scores a run."""

    _parameter_constraints = {}

    def __init__(self, random_state=None):
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Open the gate in `fit` itself, as searches do."""
        gate = Search(
            plan_of(),
            n_rows=20,
            held_out=4,
            adjacency="zero-out",
            random_state=self.random_state,
            purpose="x",
        )
        gate.score_curator(lambda: None, 4, 0)
        self.ledger_ = Ledger.of(gate.ledger)
        return self


def test_seeds_are_warned_of_once_outside_of_the_library():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = Searching(0).fit(None)
        other = Searching().fit(None)
    assert [w.category for w in caught] == [SeededNoiseWarning]
    assert caught[0].filename == __file__
    assert search.ledger_.seeded
    assert not other.ledger_.seeded


def test_a_search_cannot_be_copied():
    search = search_of(plan_of())
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="secrets"):
            attempt(search)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_out": 0}, r"held_out must be in \[1, n_rows\)"),
        ({"held_out": 20}, "held_out must be"),
        ({"held_out": -1}, "held_out must be"),
        ({"n_rows": 1, "held_out": 1}, "held_out must be"),
        ({"n_rows": 0, "held_out": 0}, "held_out must be"),
        ({"adjacency": "local"}, "adjacency must be"),
        ({"adjacency": None}, "adjacency must be"),
        ({"random_state": -1}, "random_state must not be negative"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        search_of(plan_of(), **options)
    if options.get("held_out"):
        with pytest.raises(ValueError, match="held_out must be 0"):
            search_of(plan_of(public_scores=True), **options)


def test_threads_cannot_ask_for_one_score_twice():
    for _ in range(20):
        gate, start = search_of(plan_of(strategy="all"), random_state=None), threading.Barrier(4)

        def ask(_, gate=gate, start=start):
            start.wait()
            try:
                return gate.score_curator(lambda: None, 4)
            except BudgetError:
                return None

        with ThreadPoolExecutor(4) as pool:
            assert sum(given is not None for given in pool.map(ask, range(4))) == 1


# -- mutants -------------------------------------------------------------------------------------


def test_held_out_rows_that_train_are_noticed(monkeypatch):
    real = Search.split
    monkeypatch.setattr(Search, "split", lambda self: (np.arange(50), real(self)[1]))
    with pytest.raises(AssertionError):
        test_rows_train_or_score("all")


def test_runs_that_all_count_are_noticed(monkeypatch):
    monkeypatch.setattr(Search, "_draw_counted", lambda self: np.ones(3, dtype=bool))
    with pytest.raises(AssertionError):
        test_as_many_runs_count_as_the_law_says()


def test_equal_streams_are_noticed(monkeypatch):
    real = Search.score_curator

    def mutant(self, admit, n_held_out, run=None):
        curator = real(self, admit, n_held_out, run)
        curator._bits = copy_of_bits()
        return curator

    def copy_of_bits():
        from skdp.privacy.kernel.samplers import SeededBits

        return SeededBits(0)

    monkeypatch.setattr(Search, "score_curator", mutant)
    with pytest.raises(AssertionError):
        test_every_run_has_one_score(1e-5, True)
