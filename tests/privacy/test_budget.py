# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A shared budget in memory: its arithmetic, its parameters, its threads and its copies."""

import copy
import html
import math
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from fractions import Fraction

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import DPMean, PrivacyBudget
from skdp.exceptions import BudgetError
from skdp.privacy import Charge, gdp_delta, gdp_mu
from skdp.privacy.books import store as _budget_store
from skdp.privacy.books.store import BudgetTerms as Terms
from skdp.privacy.books.store import MemoryStore
from skdp.privacy.kernel.accounting import HAIR, pure_mu
from skdp.privacy.kernel.ledger import compose_epsilon

HERE = {"adjacency": "replace-one"}


def try_to_charge(budget, *price, **more):
    """Return whether a charge was recorded."""
    try:
        budget.charge(*price, **{**HERE, **more})
    except BudgetError:
        return False
    return True


def test_ten_charges_of_a_tenth_are_one():
    budget = PrivacyBudget(1.0, 1e-6)
    assert [try_to_charge(budget, 0.1, 1e-7) for _ in range(11)] == [True] * 10 + [False]
    assert budget.spent == (1.0, 1e-6)
    assert budget.remaining == (0.0, 0.0)
    assert not try_to_charge(budget, 1e-300)


def test_either_limit_refuses():
    budget = PrivacyBudget(1.0, 1e-6)
    assert not try_to_charge(budget, 0.1, 1.1e-6)
    assert not try_to_charge(budget, math.nextafter(1.0, 2.0))
    assert budget.charges == ()
    assert try_to_charge(budget, 1.0, 1e-6)
    assert not try_to_charge(PrivacyBudget(1.0), 0.5, 5e-324)


prices = st.floats(1e-12, 1.0) | st.sampled_from([0.1, 0.3, 1e-300, 5e-324])


@given(st.lists(prices, max_size=30), st.floats(1e-9, 5.0))
def test_sums_are_exact_and_what_remains_can_be_charged(asked, limit):
    budget, total = PrivacyBudget(limit), Fraction(0)
    for epsilon in asked:
        price = Fraction(repr(epsilon))
        fits = total + price <= Fraction(repr(limit))
        assert try_to_charge(budget, epsilon) == fits
        total += price * fits
    assert Fraction(repr(budget.spent[0])) >= total
    left = budget.remaining[0]
    assert 0 <= left <= limit
    assert left < 1e-300 or try_to_charge(budget, left)
    assert not try_to_charge(budget, math.nextafter(max(left, budget.remaining[0]), math.inf))


charges = st.tuples(
    st.floats(1e-3, 2.0), st.sampled_from([0.0, 1e-8, 3e-7]), st.none() | st.floats(1e-3, 0.5)
)


def gaussian_rule_is_kept(asked):
    """Assert that what was accepted is within both halves, and what was refused is not."""
    budget = PrivacyBudget(2.0, 1e-6, composition="gaussian")
    limit, squares, deltas = gdp_mu(2.0, 5e-7) ** 2, 0.0, Fraction(0)
    for epsilon, delta, mu in asked:
        if try_to_charge(budget, epsilon, delta, mu=mu):
            squares += (pure_mu(epsilon) if mu is None else mu) ** 2
            deltas += Fraction(repr(delta)) * (mu is None)
        assert squares <= limit * (1 + 1e-12)
        assert deltas <= Fraction("5e-7")
    assert budget.spent[0] <= 2.0
    assert budget.spent[1] <= 1e-6
    if squares:
        assert gdp_delta(math.sqrt(squares), budget.spent[0]) <= 5e-7


@given(st.lists(charges, max_size=30))
def test_gaussian_composition_keeps_a_split_that_was_fixed_beforehand(asked):
    gaussian_rule_is_kept(asked)


def test_a_split_that_is_chosen_afterwards_is_noticed(monkeypatch):
    def whichever(spent, limits):
        # any delta that is not spent pays the curve
        left = 1e-6 - float(spent[1])
        return left > 0 and spent[0] <= Fraction(gdp_mu(2.0, left)) ** 2

    asked = [(0.5, 3e-7, None)] * 3 + [(1.0, 0.0, 0.05)] * 100
    gaussian_rule_is_kept(asked)
    monkeypatch.setattr(_budget_store, "within", whichever)
    with pytest.raises(AssertionError):
        gaussian_rule_is_kept(asked)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.3, 1.0, 3.0, 30.0, 700.0, 1e4, 1e8])
def test_what_remains_under_gaussian_composition_can_be_charged(epsilon):
    budget = PrivacyBudget(epsilon, 1e-6, composition="gaussian")
    left = budget.remaining
    # a pure fit costs more than its epsilon on the curve; nearly all of the curve is used
    cost = Terms(epsilon, 1e-6, "gaussian", "", "").cost(*left)
    limit = gdp_mu(epsilon, 5e-7) * HAIR
    assert 1 - 1e-10 < cost[0] / Fraction(limit) ** 2 <= 1
    assert gdp_delta(limit, epsilon) <= 5e-7
    budget.charge(*left, **HERE)
    assert budget.spent[0] <= epsilon
    assert budget.spent[1] == 1e-6


@pytest.mark.covering
@pytest.mark.parametrize("count", [1, 4, 40])
@pytest.mark.parametrize("delta", [0.0, 1e-8])
def test_gaussian_composition_is_above_composed_loss_distributions(count, delta):
    budget = PrivacyBudget(20.0, 2e-6, composition="gaussian")
    for _ in range(count):
        budget.charge(0.2, delta, **HERE)
        budget.charge(0.3, 1e-7, mu=0.05, **HERE)
    epsilon, total = budget.spent
    mu = 0.05 * math.sqrt(count)
    assert 0 < compose_epsilon(mu, [(0.2, delta, count)], total) <= epsilon


def test_gaussian_composition_takes_many_more_fits():
    mu = gdp_mu(0.1, 1e-7)
    plain = PrivacyBudget(1.0, 1e-5)
    gaussian = PrivacyBudget(1.0, 1e-5, composition="gaussian")
    counts = []
    for budget in (plain, gaussian):
        while try_to_charge(budget, 0.1, 1e-7, mu=mu):
            pass
        counts.append(len(budget.charges))
    assert counts[0] == 10
    assert counts[1] > 60
    with pytest.raises(BudgetError, match="replace-one"):
        gaussian.charge(0.1, 1e-7, adjacency="zero-out", mu=mu)


def test_tiny_prices_are_never_free():
    for composition in ("sum", "gaussian"):
        terms = Terms(1.0, 1e-6, composition, "replace-one", "row")
        assert terms.cost(5e-324, 0.0)[0] > 0
        assert terms.cost(1e308, 0.5)[0] > 1


BAD = [math.nan, 0, -1, math.inf, -math.inf, True, "1", None, 1 + 0j]


@pytest.mark.parametrize("epsilon", BAD)
def test_a_bad_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivacyBudget(epsilon)
    budget = PrivacyBudget(1.0)
    with pytest.raises(ValueError, match="epsilon must be"):
        budget.charge(epsilon, **HERE)
    if epsilon is not None:
        with pytest.raises(ValueError, match="epsilon must be"):
            budget.check(epsilon)
    assert budget.charges == ()


@pytest.mark.parametrize("delta", [math.nan, -1e-9, 1, 2, True, "0", None, math.inf])
def test_a_bad_delta_is_refused(delta):
    for call in (
        lambda: PrivacyBudget(1.0, delta),
        lambda: PrivacyBudget(1.0).charge(0.1, delta, **HERE),
        lambda: PrivacyBudget(1.0).check(0.1, delta),
    ):
        with pytest.raises(ValueError, match="delta must be"):
            call()


@pytest.mark.parametrize("mu", [math.nan, 0.0, -1.0, math.inf, True, "1"])
def test_a_bad_mu_is_refused(mu):
    with pytest.raises(ValueError, match="mu must be"):
        PrivacyBudget(1.0).charge(0.1, mu=mu, **HERE)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"composition": "renyi"}, "composition must be one of"),
        ({"composition": "gaussian"}, "delta must be greater than 0 for composition"),
        ({"composition": "gaussian", "epsilon": 1e-30, "delta": 1e-300}, "too small"),
        ({"adjacency": "local"}, "adjacency must be one of"),
        ({"adjacency": None}, "adjacency must be one of"),
        ({"unit": "person"}, "unit must be one of"),
        ({"path": 3}, "path must be None, or the name of a file"),
        ({"path": ""}, "path must be"),
        ({"path": b"budget.db"}, "path must be"),
        ({"path": "a\0b"}, "path must be"),
    ],
)
def test_other_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        PrivacyBudget(**{"epsilon": 1.0, **parameters})


def test_numbers_of_numpy_are_numbers():
    budget = PrivacyBudget(np.float64(1), np.float32(0.5))
    budget.charge(np.int64(1), np.float32(0.25), mu=np.float64(2.0), **HERE)
    assert budget.charges[0].mu == 2.0
    assert type(budget.charges[0].epsilon) is float


def test_another_adjacency_or_unit_is_refused_by_name():
    budget = PrivacyBudget(1.0, adjacency="zero-out", unit="client")
    for adjacency, unit in (("replace-one", "client"), ("zero-out", "row"), ("local", "row")):
        with pytest.raises(BudgetError) as error:
            budget.charge(0.1, adjacency=adjacency, unit=unit, label="DPMean")
        for name in ("'zero-out'", "'client'", repr(adjacency), repr(unit), "DPMean"):
            assert name in str(error.value)
    budget.charge(0.1, adjacency="local", unit="client")
    budget.charge(0.1, adjacency="zero-out", unit="client")
    assert budget.spent == (0.2, 0.0)


def test_a_refusal_says_what_is_left_and_that_nothing_happened():
    budget = PrivacyBudget(1.0, 1e-6)
    budget.charge(0.25, **HERE)
    with pytest.raises(BudgetError) as error:
        budget.charge(0.8, label="DPMean", **HERE)
    for part in ("(0.75, 1e-06)", "DPMean", "epsilon=0.8", "Nothing was charged", "no row"):
        assert part in str(error.value)


def test_check_refuses_what_is_certain_and_takes_nothing():
    budget = PrivacyBudget(1.0, 1e-6)
    budget.charge(0.5, **HERE)
    for fine in ((0.5,), (0.5, 1e-6), (None,), ()):
        budget.check(*fine)
    for much in ((0.51,), (0.5, 1.1e-6)):
        with pytest.raises(BudgetError):
            budget.check(*much)
    assert len(budget.charges) == 1
    budget.charge(0.5, **HERE)
    for anything in ((), (1e-9,)):
        with pytest.raises(BudgetError, match="left"):
            budget.check(*anything)


def test_check_of_gaussian_composition_refuses_when_nothing_is_left():
    budget = PrivacyBudget(1.0, 1e-6, composition="gaussian")
    # its mu may be small, whatever its epsilon
    budget.check(1e6)
    budget.charge(1.0, 1e-7, mu=gdp_mu(1.0, 5e-7) * HAIR, **HERE)
    assert budget.remaining == (0.0, 5e-7)
    for unknown_or_small in (None, 1e-9):
        with pytest.raises(BudgetError, match="left; a fit asks for"):
            budget.check(unknown_or_small)


def never_overspent(budget, n_fits, workers=8):
    """Assert that threads that hammer a budget of `n_fits` get exactly so many charges."""
    start, refusals = threading.Barrier(workers), []

    def hammer(_):
        start.wait()
        granted = 0
        for _ in range(n_fits):
            try:
                budget.charge(0.1, **HERE)
                granted += 1
            except BudgetError as error:
                refusals.append(str(error))
        return granted

    with ThreadPoolExecutor(workers) as pool:
        granted = sum(pool.map(hammer, range(workers)))
    assert granted == len(budget.charges) == n_fits
    assert budget.spent[0] == budget.epsilon
    # nobody is turned away because others charge as well
    assert all("left;" in refusal for refusal in refusals)


def slowly(monkeypatch):
    """Let time pass between the look at what was spent and the new sum."""
    within = _budget_store.within
    monkeypatch.setattr(
        _budget_store, "within", lambda *costs: time.sleep(1e-3) is None and within(*costs)
    )


def test_threads_never_overspend(monkeypatch):
    never_overspent(PrivacyBudget(5.0), 50)
    slowly(monkeypatch)
    never_overspent(PrivacyBudget(1.0), 10)


def test_a_missing_lock_is_noticed(monkeypatch):
    budget = PrivacyBudget(1.0)
    budget._store._lock = nullcontext()
    slowly(monkeypatch)
    with pytest.raises(AssertionError):
        never_overspent(budget, 10)


def test_a_check_that_comes_before_the_write_is_noticed():
    class TwoSteps(MemoryStore):
        def add(self, charge, cost, limits):
            before, _ = self.read()
            if not _budget_store.within(_budget_store.total(before, cost), limits):
                return before
            time.sleep(1e-4)
            self._spent = _budget_store.total(self._spent, cost)
            self._charges.append(charge)
            return None

    budget = PrivacyBudget(1.0)
    budget._store = TwoSteps()
    with pytest.raises(AssertionError):
        never_overspent(budget, 10)


def test_every_copy_is_the_same_object():
    budget = PrivacyBudget(1.0)
    mean = DPMean(budget=budget)
    for same in (copy.copy(budget), copy.deepcopy(budget), clone(budget), clone(mean).budget):
        assert same is budget
    assert copy.deepcopy({"a": [mean]})["a"][0].budget is budget


class Copied(PrivacyBudget):
    """What must not be: a copy with a budget of its own."""

    def __deepcopy__(self, memo):
        return Copied(self.epsilon, self.delta)

    __sklearn_clone__ = None


def clones_share(budget):
    """Assert that what a clone spends is missing from the original."""
    model = DPMean(epsilon=0.1, delta=1e-7, budget=budget)
    clone(model).fit([[0.1], [0.2]])
    copy.deepcopy(model).fit([[0.1], [0.2]])
    assert len(budget.charges) == 2


def test_copies_share_what_they_spend():
    clones_share(PrivacyBudget(1.0, 1e-6))

    class Deep(Copied):
        def __sklearn_clone__(self):
            return copy.deepcopy(self)

    with pytest.raises(AssertionError):
        clones_share(Deep(1.0, 1e-6))


def test_a_budget_in_memory_does_not_leave_its_process():
    budget = PrivacyBudget(1.0)
    for dump in (pickle.dumps, joblib.hash):
        with pytest.raises(BudgetError, match="path="):
            dump(DPMean(budget=budget))
    with pytest.raises(pickle.PicklingError) as error:
        joblib.Parallel(n_jobs=2)(joblib.delayed(clones_share)(budget) for _ in range(2))
    assert "path=" in str(error.value.__cause__)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_child_cannot_spend_a_budget_in_memory(monkeypatch):
    budget = PrivacyBudget(1.0)
    budget.charge(0.5, **HERE)
    # even where a thread held the lock while the process forked
    budget._store._lock.acquire()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for use in (lambda: budget.charge(0.1, **HERE), budget.check, lambda: budget.charges):
        with pytest.raises(BudgetError, match="path="):
            use()
    assert "path=" in repr(budget)


def test_charges_say_who_where_and_when(monkeypatch):
    budget = PrivacyBudget(1.0, 1e-6)
    returned = budget.charge(0.1, 1e-7, mu=0.02, label="DPMean", **HERE)
    (charge,) = budget.charges
    assert charge is returned
    assert charge.process == os.getpid()
    assert charge.time.startswith("20")
    expected = Charge("DPMean", 0.1, 1e-7, 0.02, "replace-one", "row", charge.process, charge.time)
    assert charge == expected

    class Stopped:
        @staticmethod
        def now(zone):
            raise OSError("no clock")

    monkeypatch.setattr(_budget_store, "datetime", Stopped)
    assert budget.charge(0.1, label="\ud800", **HERE).time == ""
    assert budget.spent == (0.2, 1e-7)


def test_a_budget_prints_and_is_a_table():
    budget = PrivacyBudget(1.0, 1e-6, composition="gaussian", unit="client")
    assert len(budget.to_frame()) == 0
    assert list(budget.to_frame())[:4] == ["label", "epsilon", "delta", "mu"]
    budget.charge(0.1, label="<DPMean>", unit="client", **HERE)
    budget.charge(0.1, mu=0.01, unit="client", **HERE)
    assert budget.to_frame()["epsilon"].sum() == 0.2
    text = repr(budget)
    for part in ("epsilon=1.0", "delta=1e-06", "'gaussian'", "unit='client'", "charges: 2"):
        assert part in text
    assert "path" not in text
    page = budget._repr_html_()
    assert html.escape("<DPMean>") in page
    assert "<DPMean>" not in page
    assert "PrivacyBudget" in repr(DPMean(budget=budget))
