# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What must be true of every search, and known bugs, planted one by one.

Every test first shows that the real code has no fault.
"""

import numpy as np
import pytest

from skdp import DPGridSearchCV, DPLogisticRegression
from skdp.audit import audit_privacy
from skdp.exceptions import BudgetError
from skdp.model_selection import _runs, _search
from skdp.privacy import gdp_mu
from skdp.privacy.laws.search import Search
from tests.model_selection._spy import NOTED, Spy, data, faults

X, Y = data()
GRID = {"C": [0.5, 1.0, 2.0]}
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")


def search(strategy="all", **options):
    model = Spy(classes=[0, 1], random_state=7)
    defaults = {"epsilon": 4.0, "random_state": 3, "scoring": NOTED, "strategy": strategy}
    return DPGridSearchCV(model, GRID, **{**defaults, **options})


@pytest.mark.covering
@pytest.mark.parametrize("strategy", ["all", "logarithmic", "geometric", "poisson"])
@pytest.mark.parametrize("options", [{}, {"refit_share": 0.3}, {"random_state": None}], ids=str)
def test_a_search_has_no_fault(strategy, options):
    assert faults(search(strategy, **options), X, Y) == set()


def test_the_ledger_of_the_winning_fit_is_caught(monkeypatch):
    monkeypatch.setattr(_search, "stamp", lambda *about: None)
    assert faults(search(), X, Y) == {"ledger"}


@pytest.mark.parametrize("strategy", ["all", "geometric"])
def test_a_score_without_noise_is_caught(strategy, monkeypatch):
    def exact(gate, models, scorer, tested, n_held_out):
        scores = [scorer(model, *tested) - 0.5 for model in models]
        return int(np.argmax(scores)), max(scores)

    monkeypatch.setattr(_runs, "_choose", exact)
    assert faults(search(strategy), X, Y) == {"score"}


def test_rows_that_train_and_score_are_caught(monkeypatch):
    real = Search.split
    monkeypatch.setattr(Search, "split", lambda gate: (np.arange(len(X)), real(gate)[1]))
    assert "rows" in faults(search(), X, Y)


@pytest.mark.parametrize("strategy", ["all", "logarithmic"])
def test_a_share_that_is_not_divided_is_caught(strategy, monkeypatch):
    real = _runs.share_out

    def whole(candidate, form, n_rows, *, epsilon, delta, mu, whole):
        mu = gdp_mu(*whole)
        return real(candidate, form, n_rows, epsilon=epsilon, delta=delta, mu=mu, whole=whole)

    monkeypatch.setattr(_runs, "share_out", whole)
    assert "share" in faults(search(strategy), X, Y)


def test_one_seed_for_all_runs_is_caught(monkeypatch):
    assert faults(search(n_repeats=2), X, Y) == set()
    monkeypatch.setattr(Search, "seed", lambda gate, run: 7)
    # equal candidates have equal noise then
    assert faults(search(n_repeats=2), X, Y) == {"seed", "noise"}


def test_the_seed_of_the_estimator_in_all_runs_is_caught(monkeypatch):
    monkeypatch.setattr(_runs, "_seeds", lambda gate, candidate, run: [7])
    assert faults(search(n_repeats=2), X, Y) == {"seed", "noise"}


class Greedy(Spy):
    """Charges for less than it spends on rows that are not null."""

    def fit(self, X, y):
        if np.any(np.asarray(X)):
            self.epsilon = 2 * self.epsilon
        return super().fit(X, y)


class Silent(Spy):
    """Charges for null rows only."""

    def fit(self, X, y):
        if np.any(np.asarray(X)):
            self.budget = None
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("kind", "words"), [(Greedy, "more than its share"), (Silent, "did not charge")]
)
def test_steps_that_break_the_plan_are_stopped(kind, words):
    search = DPGridSearchCV(kind(classes=[0, 1]), GRID, epsilon=4.0)
    with pytest.raises(BudgetError, match=words):
        search.fit(X, Y)
    assert not hasattr(search, "best_params_")
    assert not hasattr(search, "ledger_")


def test_without_the_limit_a_greedy_step_would_be_caught(monkeypatch):
    monkeypatch.setattr(_runs, "_within_limit", lambda asked, limit: True)
    model = Greedy(classes=[0, 1], random_state=7)
    assert "share" in faults(search().set_params(estimator=model), X, Y)


def told_apart(n_runs):
    """Return the lower bound on epsilon that an audit gives for a search at epsilon 2."""
    X = np.random.default_rng(0).uniform(-0.1, 0.1, size=(12, 2))
    one, other = X.copy(), X.copy()
    one[0], other[0] = [1.0, 0.0], [-1.0, 0.0]
    y = np.arange(12) % 2
    model = DPLogisticRegression(classes=[0, 1], max_iter=2, solver="gd")
    options = {"epsilon": 2.0, "delta": 1e-3, "strategy": "geometric", "expected_runs": 2}
    search = DPGridSearchCV(model, {"C": [1.0, 2.0]}, **options)
    result = audit_privacy(
        search, (one, y), neighbour=(other, y), n_runs=n_runs, random_state=0,
        adjacency="replace-one",
    )  # fmt: skip
    assert result.epsilon_claimed is None or result.epsilon_claimed <= 2.0
    return result.epsilon_lower


@pytest.mark.full
def test_an_audit_finds_nothing():
    assert told_apart(60) < 2.0


@pytest.mark.slow
def test_an_audit_finds_shares_that_are_not_divided(monkeypatch):
    real = _runs.share_out

    def large(candidate, form, n_rows, *, mu, **about):
        return real(candidate, form, n_rows, mu=10 * mu, **about)

    monkeypatch.setattr(_runs, "share_out", large)
    assert told_apart(300) > 2.0
