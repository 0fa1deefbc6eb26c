# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Budgets: charges, files, concurrent users, fits."""

import copy
import getpass
import html
import inspect
import json
import math
import multiprocessing
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import (
    DPFeatureCenterer,
    DPLogisticRegression,
    DPMean,
    DPQuantile,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    PrivacyBudget,
    PrivUnitPrivatizer,
    solvers,
)
from skdp.exceptions import BudgetError, PrivacyWarning
from skdp.federated import Population
from skdp.privacy import Charge, Curator, GaussianMechanism, LaplaceMechanism, gdp_delta, gdp_mu
from skdp.privacy.books import store
from skdp.privacy.books.store import BudgetTerms, FileStore, MemoryStore
from skdp.privacy.kernel.accounting import HAIR, pure_mu
from skdp.privacy.kernel.ledger import compose_epsilon
from tests import _audit
from tests.test_common import ALL, configurations

# A shared budget in memory: its arithmetic, its parameters, its threads and its copies.


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


@pytest.mark.full
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


@pytest.mark.full
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
    monkeypatch.setattr(store, "within", whichever)
    with pytest.raises(AssertionError):
        gaussian_rule_is_kept(asked)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.3, 1.0, 3.0, 30.0, 700.0, 1e4, 1e8])
def test_what_remains_under_gaussian_composition_can_be_charged(epsilon):
    budget = PrivacyBudget(epsilon, 1e-6, composition="gaussian")
    left = budget.remaining
    # a pure fit costs more than its epsilon on the curve; nearly all of the curve is used
    cost = BudgetTerms(epsilon, 1e-6, "gaussian", "", "").cost(*left)
    limit = gdp_mu(epsilon, 5e-7) * HAIR
    assert 1 - 1e-10 < cost[0] / Fraction(limit) ** 2 <= 1
    assert gdp_delta(limit, epsilon) <= 5e-7
    budget.charge(*left, **HERE)
    assert budget.spent[0] <= epsilon
    assert budget.spent[1] == 1e-6


@pytest.mark.sample(2)
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
        terms = BudgetTerms(1.0, 1e-6, composition, "replace-one", "row")
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
    budget = PrivacyBudget(1.0, adjacency="zero-out", unit="group")
    for adjacency, unit in (("replace-one", "group"), ("zero-out", "row"), ("local", "row")):
        with pytest.raises(BudgetError) as error:
            budget.charge(0.1, adjacency=adjacency, unit=unit, label="DPMean")
        for name in ("'zero-out'", "'group'", repr(adjacency), repr(unit), "DPMean"):
            assert name in str(error.value)
    budget.charge(0.1, adjacency="local", unit="group")
    budget.charge(0.1, adjacency="zero-out", unit="group")
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
    within = store.within
    monkeypatch.setattr(store, "within", lambda *costs: time.sleep(1e-3) is None and within(*costs))


def test_threads_never_overspend(monkeypatch):
    never_overspent(PrivacyBudget(5.0), 50)
    slowly(monkeypatch)
    never_overspent(PrivacyBudget(1.0), 10)


def test_a_missing_lock_is_noticed(monkeypatch):
    class Slowly(str):
        def __ne__(self, other):
            return time.sleep(1e-3) is None and super().__ne__(other)

        __hash__ = str.__hash__

    class WithoutLock(MemoryStore):
        def append(self, entry, head, expected):
            return super().append(entry, Slowly(head), Slowly(expected))

    budget = PrivacyBudget(1.0)
    budget._chain.store.__class__ = WithoutLock
    budget._chain.store._lock = nullcontext()
    slowly(monkeypatch)
    with pytest.raises((AssertionError, BudgetError)):
        never_overspent(budget, 10)


def test_a_check_that_comes_before_the_write_is_noticed(monkeypatch):
    class WhateverCameBetween(MemoryStore):
        def append(self, entry, head, expected):
            return super().append(entry, head, self._links[-1][1] if self._links else "")

    budget = PrivacyBudget(1.0)
    budget._chain.store.__class__ = WhateverCameBetween
    slowly(monkeypatch)
    with pytest.raises((AssertionError, BudgetError)):
        never_overspent(budget, 10)


def test_every_copy_is_the_same_object():
    budget = PrivacyBudget(1.0)
    mean = DPMean(budget=budget, data_norm=1.0, mechanism="gaussian")
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
    model = DPMean(epsilon=0.1, delta=1e-7, budget=budget, data_norm=1.0, mechanism="gaussian")
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
            dump(DPMean(budget=budget, data_norm=1.0, mechanism="gaussian"))
    with pytest.raises(pickle.PicklingError) as error:
        joblib.Parallel(n_jobs=2)(joblib.delayed(clones_share)(budget) for _ in range(2))
    assert "path=" in str(error.value.__cause__)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_child_cannot_spend_a_budget_in_memory(monkeypatch):
    budget = PrivacyBudget(1.0)
    budget.charge(0.5, **HERE)
    # even where a thread held the lock while the process forked
    budget._chain.store._lock.acquire()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for use in (lambda: budget.charge(0.1, **HERE), budget.check, lambda: budget.charges):
        with pytest.raises(BudgetError, match="path="):
            use()
    assert "path=" in repr(budget)


def test_charges_say_who_where_and_when(monkeypatch):
    budget = PrivacyBudget(1.0, 1e-6)
    returned = budget.charge(0.1, 1e-7, mu=0.02, label="DPMean", **HERE)
    (charge,) = budget.charges
    assert charge == returned
    assert charge.process == os.getpid()
    assert charge.time.startswith("20")
    assert charge.person == getpass.getuser()
    expected = Charge("DPMean", 0.1, 1e-7, 0.02, "replace-one", "row", charge.process, charge.time)
    assert replace(charge, head="", person="") == expected

    class Stopped:
        @staticmethod
        def now(zone):
            raise OSError("no clock")

    monkeypatch.setattr(store, "datetime", Stopped)
    monkeypatch.setattr(getpass, "getuser", Stopped.now)
    unknown = budget.charge(0.1, label="\ud800\0", **HERE)
    assert (unknown.label, unknown.time, unknown.person) == ("??", "", "")
    assert budget.spent == (0.2, 1e-7)


def test_a_budget_prints_and_is_a_table():
    budget = PrivacyBudget(1.0, 1e-6, composition="gaussian", unit="group")
    assert len(budget.to_frame()) == 0
    assert list(budget.to_frame())[:4] == ["label", "epsilon", "delta", "mu"]
    budget.charge(0.1, label="<DPMean>", unit="group", **HERE)
    budget.charge(0.1, mu=0.01, unit="group", **HERE)
    assert budget.to_frame()["epsilon"].sum() == 0.2
    text = repr(budget)
    for part in ("epsilon=1.0", "delta=1e-06", "'gaussian'", "unit='group'", "charges: 2"):
        assert part in text
    assert "path" not in text
    page = budget._repr_html_()
    assert html.escape("<DPMean>") in page
    assert "<DPMean>" not in page
    assert "PrivacyBudget" in repr(DPMean(budget=budget, data_norm=1.0, mechanism="gaussian"))


# A shared budget in a file: processes that share it, crash, or find it gone.


X = [[0.1], [0.2], [0.3]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def budget(path):
    return PrivacyBudget(1.0, 1e-6, path=path)


def refused(budget, message, price=0.1):
    """Assert that a charge and a fit raise, and say that nothing happened."""
    for call in (
        lambda: budget.charge(price, **HERE),
        lambda: DPMean(
            epsilon=price, delta=0.0, mechanism="laplace", budget=budget, data_norm=1.0
        ).fit(X),
    ):
        with pytest.raises(BudgetError, match=message) as error:
            call()
        assert "Nothing was charged, and no row was read" in str(error.value)


def test_a_later_session_finds_what_was_spent(place):
    budget = PrivacyBudget(1.0, 1e-6, path=place.path)
    budget.charge(0.3, 1e-7, mu=0.05, label="DPMean", **HERE)
    again = PrivacyBudget(1.0, 1e-6, path=place.path)
    found = PrivacyBudget.open(place.path)
    for other in (again, found, pickle.loads(pickle.dumps(budget))):
        assert other.spent == (0.3, 1e-7)
        assert other.charges == budget.charges
        assert repr(other) == repr(budget)
        assert other.path == place.path
        assert (other.epsilon, other.delta, other.unit) == (1.0, 1e-6, "row")
    found.charge(0.7, **HERE)
    assert not try_to_charge(budget, 1e-9)


def test_a_relative_path_survives_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    budget = PrivacyBudget(1.0, path="a budget?mode=memory#%41.db")
    monkeypatch.chdir("/")
    budget.charge(0.5, **HERE)
    assert pickle.loads(pickle.dumps(budget)).remaining == (0.5, 0.0)
    assert [file.name for file in tmp_path.iterdir()] == ["a budget?mode=memory#%41.db"]


def test_a_link_is_another_name_of_the_same_file(tmp_path, path, budget):
    link = tmp_path / "link"
    link.symlink_to(path)
    other = PrivacyBudget(1.0, 1e-6, path=link)
    other.charge(0.5, **HERE)
    assert budget.spent == other.spent == (0.5, 0.0)
    # where it leads to later is of no matter
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    other.charge(0.5, **HERE)
    assert not try_to_charge(budget, 0.1)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"epsilon": 2.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"composition": "gaussian"}, "composition"),
        ({"adjacency": "zero-out"}, "adjacency"),
        ({"unit": "group"}, "unit"),
    ],
)
def test_other_numbers_are_refused_by_name(place, given, name):
    PrivacyBudget(1.0, 1e-6, path=place.path)
    with pytest.raises(BudgetError, match=f"has {name}="):
        PrivacyBudget(**{"epsilon": 1.0, "delta": 1e-6, "path": place.path, **given})


def test_threads_never_overspend_what_is_kept(place, monkeypatch):
    slowly(monkeypatch)
    never_overspent(PrivacyBudget(1.0, path=place.path), 10, workers=4)


def test_a_lock_that_comes_after_the_look_is_noticed(tmp_path, monkeypatch):
    class Late(FileStore):
        @contextmanager
        def _opened(self, begin):
            with super()._opened("BEGIN") as file:
                file.execute("SELECT * FROM skdp_charges_2").fetchall()
                time.sleep(0.01)
                yield file

    budget = PrivacyBudget(1.0, path=tmp_path / "b.db")
    budget._chain.store.__class__ = Late
    slowly(monkeypatch)
    # SQLite still lets nobody overspend, but turns fits away
    with pytest.raises(AssertionError):
        never_overspent(budget, 10, workers=4)


def test_a_charge_is_on_the_disk_when_it_returns(path, budget):
    with closing(store._connect(str(path), "rw")) as file:
        assert file.execute("PRAGMA synchronous").fetchone() == (3,)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@pytest.mark.full
def test_a_check_that_comes_before_the_write_of_a_file_is_noticed(tmp_path):
    class WhateverCameBetween(FileStore):
        def append(self, entry, head, expected):
            time.sleep(0.01)
            links = self.read()[1]
            return super().append(entry, head, links[-1][1] if links else "")

    budget = PrivacyBudget(1.0, path=tmp_path / "b.db")
    budget._chain.store.__class__ = WhateverCameBetween
    with pytest.raises((AssertionError, BudgetError)):
        never_overspent(budget, 10, workers=8)


def hammer(budget, n_tries):
    return sum(try_to_charge(budget, 0.02) for _ in range(n_tries))


# without the imports of this file, which take seconds
SCRIPT = f"""
import sys
from skdp.exceptions import BudgetError
from skdp.privacy import PrivacyBudget
HERE = {HERE!r}
{inspect.getsource(try_to_charge)}
{inspect.getsource(hammer)}
print(hammer(PrivacyBudget(1.0, 1e-6, path=sys.argv[1]), 40))
"""


def python(*arguments):
    """Return a process that runs Python from the repository."""
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", *map(str, arguments)], cwd=root, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.full
def test_two_processes_never_overspend(place):
    # also the first to come makes the budget, and the other finds it
    script = python(SCRIPT, place.path)
    while not place.exists() and script.poll() is None:
        time.sleep(0.01)
    budget = PrivacyBudget(1.0, 1e-6, path=place.path)
    granted = hammer(budget, 40) + int(script.communicate(timeout=100)[0])
    assert granted == len(budget.charges) == 50
    assert budget.spent == (1.0, 0.0)
    assert len({charge.process for charge in budget.charges}) == 2


@pytest.mark.slow
def test_workers_never_overspend(budget):
    granted = joblib.Parallel(n_jobs=2)(joblib.delayed(hammer)(budget, 18) for _ in range(2))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        granted += pool.starmap(hammer, [(budget, 18)] * 2, chunksize=1)
    assert sum(granted) == len(budget.charges) == 50
    assert budget.spent == (1.0, 0.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_shares_what_is_kept(place):
    budget = PrivacyBudget(1.0, 1e-6, path=place.path)
    budget.charge(0.5, **HERE)
    child = os.fork()
    if child == 0:
        os._exit(0 if hammer(budget, 30) == 25 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not try_to_charge(budget, 0.02)
    assert len(budget.charges) == 26


def test_only_one_of_many_makes_the_budget(place):
    start, made = threading.Barrier(8), []

    def make():
        start.wait()
        made.append(PrivacyBudget(1.0, path=place.path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({budget.head for budget in made}) == 1
    if (path := Path(place.path)).exists():
        assert list(path.parent.iterdir()) == [path]


KILLED = """
import os, signal, sys
from skdp import DPMean, PrivacyBudget
from skdp.privacy import Curator
budget = PrivacyBudget.open(sys.argv[1])
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "fit":
    Curator._admitted = die
    DPMean(epsilon=0.25, delta=1e-7, budget=budget).fit([[0.1], [0.2]])
with budget._chain.store._opened("BEGIN IMMEDIATE") as file:
    file.execute("PRAGMA cache_size = 1")
    file.execute("PRAGMA cache_spill = 1")
    file.executemany(
        "INSERT INTO skdp_charges_2 VALUES (?, '')", [("x" * 4000,) for _ in range(200)]
    )
    die()
"""


@pytest.mark.full
@pytest.mark.parametrize(("where", "epsilon"), [("fit", 0.25), ("charge", 0.0)])
def test_a_killed_process_has_paid_for_what_it_began(path, budget, where, epsilon):
    script = python(KILLED, path, where)
    script.communicate(timeout=100)
    assert script.returncode == -signal.SIGKILL
    assert budget.spent[0] == epsilon
    assert [charge.label for charge in budget.charges] == ["DPMean"] * bool(epsilon)
    DPMean(epsilon=0.5, delta=1e-7, budget=budget, data_norm=1.0, mechanism="gaussian").fit(X)
    assert budget.spent[0] == epsilon + 0.5


def test_a_vanished_budget_is_never_made_anew(place):
    budget = PrivacyBudget(1.0, 1e-6, path=place.path)
    budget.charge(0.1, **HERE)
    text = pickle.dumps(budget)
    place.remove()
    refused(budget, "has vanished")
    # what was saved with an estimator can be loaded, but not spent
    refused(pickle.loads(text), "has vanished")
    assert "has vanished" in repr(budget)
    assert "has vanished" in budget._repr_html_()
    with pytest.raises(BudgetError, match="has vanished"):
        PrivacyBudget.open(place.path)
    assert not place.exists()


def test_a_file_that_vanishes_during_a_charge(path, budget, monkeypatch):
    connect = store._connect

    def and_unlink(*arguments):
        file = connect(*arguments)
        file.execute("SELECT * FROM skdp_budget_2").fetchall()
        path.unlink()
        return file

    monkeypatch.setattr(store, "_connect", and_unlink)
    with pytest.raises(BudgetError, match="has vanished"):
        budget.charge(0.1, **HERE)


def test_another_budget_in_its_place(place):
    budget = PrivacyBudget(1.0, 1e-6, path=place.path)
    text = pickle.dumps(budget)
    place.remove()
    other = PrivacyBudget(1.0, 1e-6, path=place.path)
    for old in (budget, pickle.loads(text)):
        refused(old, "was replaced by another one")
    assert other.charges == ()


def test_an_old_copy_in_its_place(path, budget, tmp_path):
    budget.charge(0.1, **HERE)
    shutil.copy(path, tmp_path / "copy")
    budget.charge(0.1, **HERE)
    text = pickle.dumps(budget)
    shutil.copy(tmp_path / "copy", path)
    for old in (budget, pickle.loads(text)):
        refused(old, "earlier state")


def test_what_was_spent_is_the_sum_of_the_charges(path, budget):
    budget.charge(0.1, **HERE)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE skdp_charges_2")
    for use in (budget.check, lambda: budget.spent, lambda: budget.charges):
        with pytest.raises(BudgetError, match="is damaged"):
            use()
    refused(budget, "is damaged")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[:5000],
        lambda content: b"hello " * 1000,
        lambda content: content.replace(b"skdp_budget_2", b"skdp_budget_3"),
    ],
    ids=["empty", "cut", "cut later", "text", "foreign"],
)
def test_a_damaged_or_foreign_file(path, budget, damage):
    budget.charge(0.1, **HERE)
    path.write_bytes(damage(path.read_bytes()))
    refused(budget, "is damaged, or is no privacy budget")
    for make in (PrivacyBudget.open, lambda path: PrivacyBudget(1.0, 1e-6, path=path)):
        with pytest.raises(BudgetError, match="is damaged, or is no privacy budget"):
            make(path)


@pytest.mark.parametrize(
    "text", ["DELETE FROM skdp_budget_2", "UPDATE skdp_budget_2 SET header=''"]
)
def test_a_file_without_its_numbers(path, budget, text):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(text)
    refused(budget, "is damaged, or is no privacy budget")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", None),
        ("epsilon", -1),
        ("delta", 7),
        ("composition", "renyi"),
        ("unit", "person"),
    ],
)
def test_a_file_whose_terms_make_no_sense(path, budget, name, value):
    with closing(sqlite3.connect(path)) as file, file:
        facts = json.loads(file.execute("SELECT header FROM skdp_budget_2").fetchone()[0])
        text = json.dumps({**facts, name: value})
        file.execute("UPDATE skdp_budget_2 SET header = ?", (text,))
    with pytest.raises(BudgetError, match="is damaged, or is no privacy budget"):
        PrivacyBudget.open(path)


def test_places_where_no_file_can_be(tmp_path):
    with pytest.raises(BudgetError, match="there is no"):
        PrivacyBudget(1.0, path=tmp_path / "missing" / "budget.db")
    with pytest.raises(BudgetError, match="unable to open"):
        PrivacyBudget(1.0, path=tmp_path)
    (tmp_path / "b.db-journal").write_text("left")
    with pytest.raises(BudgetError, match="has left a journal"):
        PrivacyBudget(1.0, path=tmp_path / "b.db")


def test_a_lock_that_is_held_for_long(path, budget, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("BEGIN EXCLUSIVE")
        refused(budget, "database is locked")
        file.execute("ROLLBACK")
    budget.charge(0.1, **HERE)


@contextmanager
def without_rights(folder):
    """Take the right to write away, from the superuser too."""
    os.chmod(folder, 0o555)
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65534)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)
        os.chmod(folder, 0o755)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="rights are another matter there")
def test_a_file_that_cannot_be_written_to():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        budget = PrivacyBudget(1.0, path=path)
        budget.charge(0.1, **HERE)
        path.chmod(0o444)
        with without_rights(folder):
            with pytest.raises(BudgetError, match="readonly"):
                budget.charge(0.1, **HERE)
            # reading is allowed
            assert PrivacyBudget.open(path).spent == (0.1, 0.0)
            with pytest.raises(BudgetError, match="cannot be created"):
                PrivacyBudget(1.0, path=Path(folder) / "other.db")


def test_a_disk_that_is_full(path, budget):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    budget.charge(0.1, **HERE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(BudgetError, match="cannot be used") as error:
            budget.charge(0.1, **HERE)
        with pytest.raises(BudgetError, match="cannot be created"):
            PrivacyBudget(1.0, path=path.with_name("other.db"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "Nothing was charged" in str(error.value)
    assert budget.spent == (0.1, 0.0)
    budget.charge(0.9, **HERE)
    assert not path.with_name("other.db").exists()


# Every fit is charged once, before its data are read; searches and folds too.


PRIVATE = [
    estimator
    for estimator in ALL
    # searches are charged in tests of their own
    if "budget" in estimator.get_params(deep=False) and "estimator" not in estimator.get_params()
]

# a scaler that neither shifts nor scales, say
FREE = [estimator for estimator in PRIVATE if not getattr(estimator, "_releases", True)]


every_estimator = pytest.mark.parametrize(
    "estimator", configurations(estimator for estimator in PRIVATE if estimator not in FREE)
)
rng = np.random.default_rng(0)
FIT_X = rng.normal(size=(60, 3)) / 3
Y = (FIT_X[:, 0] + 0.1 * rng.normal(size=60) > 0).astype(int)


def shared(estimator, epsilon=1e6, delta=0.9, **more):
    """Return a copy of an estimator, and the budget that it shares."""
    adjacency = estimator.get_params().get("adjacency", "replace-one")
    budget = PrivacyBudget(epsilon, delta, adjacency=adjacency, **more)
    return clone(estimator).set_params(budget=budget), budget


def fit(estimator, X=FIT_X, y=Y):
    """Fit; a privatizer reports as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        if hasattr(estimator, "new_rows"):
            return estimator.fit_transform(X)
        return estimator.fit(X, y)


def test_all_but_what_costs_nothing_can_share_a_budget():
    # a search has an estimator, and a budget too
    others = [e for e in ALL if "budget" not in e.get_params(deep=False)]
    assert {type(estimator).__name__ for estimator in others} == {
        "NormClipper",
        "BoundedScaler",
        "RandomFourierFeatures",
    }


@pytest.mark.sample(6, 1000)
@every_estimator
def test_every_fit_is_charged_once_and_no_more_is_spent(estimator):
    model, budget = shared(estimator)
    fit(model)
    (charge,) = budget.charges
    assert type(model).__name__ in charge.label
    ledger, (epsilon, delta) = model.ledger_, model.privacy_spent_
    assert epsilon <= charge.epsilon
    assert delta <= charge.delta
    assert charge.delta == getattr(model, "delta", charge.delta) or charge.delta == 0
    if model.epsilon is not None:
        assert charge.epsilon == model.epsilon
    # with too few rows a private radius is not released, and paid for; they are public
    assert {charge.adjacency, ledger.adjacency} <= {budget.adjacency, "local", None}
    assert {charge.unit, ledger.unit} <= {budget.unit, None}
    if charge.mu is not None:
        assert ledger.gdp <= charge.mu
    elif (
        charge.delta
        and charge.adjacency != "add-remove"
        and not any(release.noise.sampling for release in ledger.releases)
    ):
        # batches that happen to be all rows are charged like others
        assert ledger.gdp == math.inf
    # an epsilon counts as the decimal that is printed: the noise has room for the difference
    for release in ledger.releases:
        if release.noise.law in ("laplace", "k-norm", "exponential"):
            price = Fraction(repr(release.noise.epsilon))
            room = price * Fraction(release.noise.scale) / Fraction(release.stated_sensitivity)
            assert room > 1 + 1e-9


@pytest.mark.parametrize("estimator", [*FREE, DPFeatureCenterer(with_mean=False, threshold=None)])
def test_a_fit_that_releases_nothing_costs_nothing(estimator):
    model, budget = shared(estimator, epsilon=1e-9)
    budget.charge(1e-9, adjacency=budget.adjacency, unit=budget.unit)
    fit(model)
    assert len(budget.charges) == 1
    assert model.ledger_.releases == ()
    assert model.privacy_spent_ == (0.0, 0.0)


def test_a_curator_keeps_to_the_mu_that_was_charged():
    kinds = {"n_rows": 4, "epsilon": 9.0, "delta": 0.5, "adjacency": "replace-one"}
    kinds |= {"random_state": None, "purpose": "test"}
    query = _audit.ColumnSum(2)

    def curator():
        return Curator(lambda: np.zeros((4, 2)), mu=0.5, **kinds)

    # the budget (9, 0.5) would take a hundred times as much
    with pytest.raises(BudgetError, match="no row was read"):
        curator().release(query, GaussianMechanism(0.51))
    with pytest.raises(BudgetError, match="no row was read"):
        curator().release(query, LaplaceMechanism(0.5))
    for mechanism, mu in ((GaussianMechanism(0.5), 0.5), (LaplaceMechanism(0.1), pure_mu(0.1))):
        fits = curator()
        fits.release(query, mechanism)
        assert fits.ledger.gdp == pytest.approx(mu, rel=1e-9)
        with pytest.raises(BudgetError, match="no row was read"):
            fits.release(query, GaussianMechanism(0.495))
    both = curator()
    both.release(query, GaussianMechanism(0.3))
    both.release(query, LaplaceMechanism(0.1))
    assert both.ledger.gdp == pytest.approx(math.hypot(0.3, pure_mu(0.1)), rel=1e-9)


def test_random_batches_have_no_mu():
    model = DPLogisticRegression(
        solver=solvers.SGD(batch_size=8), epsilon=1.0, max_iter=3, data_norm=1.0
    )
    assert model.fit(FIT_X, Y).ledger_.gdp == math.inf


class Untouchable:
    """Raises whatever is done with it."""

    def __getattribute__(self, name):
        raise RuntimeError(f"the data were touched: {name}")


@every_estimator
def test_no_data_are_looked_at_where_nothing_is_left(estimator):
    model, budget = shared(estimator, epsilon=1e-9)
    budget.charge(1e-9, adjacency=budget.adjacency, unit=budget.unit)
    with pytest.raises(BudgetError, match="Nothing was charged, and no row was read"):
        fit(model, Untouchable(), Untouchable())
    with pytest.raises(BudgetError):
        fit(model, np.full((3, 2), np.nan))
    assert len(budget.charges) == 1


def events(monkeypatch, model, budget):
    """Return what a fit does with the budget and with the rows, in order."""
    seen, admitted, charge = [], Curator._admitted, budget.charge
    monkeypatch.setattr(
        Curator, "_admitted", lambda *part: (seen.append("rows"), admitted(*part))[1]
    )
    budget.charge = lambda *price, **more: (seen.append("charge"), charge(*price, **more))[1]
    try:
        fit(model)
    except BudgetError:
        seen.append("refused")
    return seen


def charged_first(monkeypatch, estimator):
    """Assert that rows are read after the charge, and not at all if it is refused."""
    with monkeypatch.context() as patch:
        assert events(patch, *shared(estimator))[:2] == ["charge", "rows"]
    with monkeypatch.context() as patch:
        # delta is refused by the charge alone
        assert events(patch, *shared(estimator, delta=0.0)) == ["charge", "refused"]


@pytest.mark.parametrize(
    "estimator",
    [
        DPMean(data_norm=1.0, mechanism="gaussian"),
        DPLogisticRegression(data_norm=1.0),
        DPStandardScaler(),
    ],
)
def test_the_charge_comes_before_the_rows(monkeypatch, estimator):
    charged_first(monkeypatch, estimator)


def test_a_charge_after_the_rows_is_noticed(monkeypatch):
    begin, release = Curator.__init__, Curator.release

    def late(self, *given, budget=None, **more):
        begin(self, *given, **more)
        self.late = budget

    def then_charge(self, *given, **more):
        value = release(self, *given, **more)
        self.late.charge(1.0, 1e-6, **HERE)
        return value

    monkeypatch.setattr(Curator, "__init__", late)
    monkeypatch.setattr(Curator, "release", then_charge)
    with pytest.raises(AssertionError):
        charged_first(monkeypatch, DPMean(data_norm=1.0, mechanism="gaussian"))


def paid_although_it_failed(monkeypatch):
    """Assert that a fit that breaks off has paid."""
    model, budget = shared(DPMean(data_norm=1.0, mechanism="gaussian"))

    def fail(*part):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Curator, "_admitted", fail)
        with pytest.raises(MemoryError):
            fit(model)
    assert len(budget.charges) == 1
    assert budget.spent == (1.0, 1e-6)


def test_a_fit_that_breaks_off_has_paid(monkeypatch):
    paid_although_it_failed(monkeypatch)


def test_a_refund_is_noticed(monkeypatch):
    begin, release = Curator.__init__, Curator.release

    def remember(self, *given, budget=None, **more):
        begin(self, *given, budget=budget, **more)
        self.charged = budget

    def refund(self, *given, **more):
        try:
            return release(self, *given, **more)
        except MemoryError:
            self.charged._chain.store._links.clear()
            self.charged._chain._seen = None
            raise

    monkeypatch.setattr(Curator, "__init__", remember)
    monkeypatch.setattr(Curator, "release", refund)
    with pytest.raises(AssertionError):
        paid_although_it_failed(monkeypatch)


def test_a_fit_whose_data_are_unusable_costs_nothing():
    model, budget = shared(DPMean(data_norm=1.0, mechanism="gaussian"))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 2), np.nan))
    assert budget.charges == ()


def test_every_report_is_charged_as_often_as_it_is_made():
    budget = PrivacyBudget(10.0, adjacency="zero-out")
    privatizer = PrivUnitPrivatizer(epsilon=4.0, new_rows="randomise", budget=budget).fit(FIT_X)
    assert budget.charges == ()
    privatizer.transform(FIT_X)
    privatizer.transform(FIT_X)
    assert budget.spent == (8.0, 0.0)
    with pytest.raises(BudgetError):
        privatizer.transform(FIT_X)


@pytest.mark.sample(1)
@pytest.mark.parametrize("local_epsilon", [None, 8.0])
def test_a_federation_of_one_nat_fits_a_budget_of_one_nat(local_epsilon):
    budget = PrivacyBudget(1.0, 1e-6, unit="group")
    model = FederatedDPLogisticRegression(
        epsilon=1.0, delta=1e-6, local_epsilon=local_epsilon, budget=budget
    )
    model.fit(FIT_X, Y, groups=np.arange(60) % 30)
    assert budget.spent == (1.0, 1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("population", [10, 1e6])
def test_a_simulated_population_is_charged_what_its_clients_spend(population):
    # with fewer clients in the deployment than here they spend less than epsilon, else more
    budget = PrivacyBudget(1.0 if population < 30 else 1e9, 1e-6, unit="group")
    budget.charge(0.5, adjacency="replace-one", unit="group")
    model = FederatedDPLogisticRegression(
        epsilon=1.0, delta=1e-6, population=Population(population), budget=budget
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(FIT_X, Y, groups=np.arange(60) % 30)
    spent = model.privacy_spent_[0]
    assert spent <= budget.charges[1].epsilon <= spent * (1 + 1e-6)
    assert (spent < 0.5) is (population < 30)
    assert model.ledger_.gdp <= budget.charges[1].mu


@pytest.mark.sample(4)
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 8.0, 60.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
@pytest.mark.parametrize(
    "estimator",
    [
        DPMean(data_norm=1.0, mechanism="gaussian"),
        DPStandardScaler(),
        DPLogisticRegression(data_norm=1.0),
        FederatedDPLogisticRegression(),
    ],
)
def test_a_gaussian_fit_fills_a_gaussian_budget(estimator, epsilon, delta):
    model, budget = shared(estimator, epsilon, 2 * delta, composition="gaussian")
    fit(model.set_params(epsilon=epsilon, delta=delta))
    assert budget.remaining[0] <= 1e-5 * gdp_mu(epsilon, delta)
    # the charge is a hair more than what was spent, and what is claimed holds for the charge
    (charge,) = budget.charges
    assert model.ledger_.gdp <= charge.mu * (1 - 5e-11)
    assert gdp_delta(charge.mu, epsilon) <= delta
    with pytest.raises(BudgetError):
        fit(model)


def test_estimators_share_a_budget():
    budget = PrivacyBudget(1.0, 1e-6)
    scaler = DPStandardScaler(epsilon=0.2, delta=5e-7, budget=budget)
    model = DPLogisticRegression(epsilon=0.5, delta=5e-7, budget=budget, data_norm=1.0)
    make_pipeline(scaler, model).fit(FIT_X, Y)
    DPQuantile(epsilon=0.3, budget=budget, bounds=(-1.0, 1.0)).fit(FIT_X)
    assert [charge.label for charge in budget.charges] == [
        "DPStandardScaler", "DPLogisticRegression", "DPQuantile",
    ]  # fmt: skip
    assert budget.spent == (1.0, 1e-6)


GRID = {"C": [0.1, 1.0, 10.0, 100.0]}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("search", "n_jobs"), [(GridSearchCV, None), (GridSearchCV, 2), (RandomizedSearchCV, None)]
)
def test_a_search_of_four_candidates_and_five_folds_is_21_fits(tmp_path, search, n_jobs):
    path = tmp_path / "budget.db" if n_jobs else None
    budget = PrivacyBudget(2.1, 21e-7, path=path)
    model = DPLogisticRegression(epsilon=0.1, delta=1e-7, budget=budget, data_norm=1.0)
    more = {"n_iter": 4} if search is RandomizedSearchCV else {}
    search(model, GRID, cv=5, n_jobs=n_jobs, error_score="raise", **more).fit(FIT_X, Y)
    assert len(budget.charges) == 21
    assert budget.spent == (2.1, 2.1e-6)
    assert (len({charge.process for charge in budget.charges}) > 1) is bool(n_jobs)


@pytest.mark.full
def test_a_search_stops_where_the_budget_ends(tmp_path):
    for n_jobs, path in ((None, None), (2, tmp_path / "budget.db")):
        budget = PrivacyBudget(1.0, 1e-6, path=path)
        model = DPLogisticRegression(epsilon=0.1, delta=1e-7, budget=budget, data_norm=1.0)
        with pytest.raises(BudgetError, match="left"):
            GridSearchCV(model, GRID, cv=5, n_jobs=n_jobs, error_score="raise").fit(FIT_X, Y)
        assert len(budget.charges) <= 10
        assert n_jobs or len(budget.charges) == 10


def test_cross_validation_pays_for_every_fold():
    budget = PrivacyBudget(0.5, 1e-6)
    model = DPLogisticRegression(epsilon=0.1, delta=1e-7, budget=budget, data_norm=1.0)
    assert len(cross_val_score(model, FIT_X, Y, cv=5, error_score="raise")) == 5
    assert len(budget.charges) == 5
    with pytest.raises(BudgetError):
        cross_val_score(model, FIT_X, Y, cv=5, error_score="raise")


@pytest.mark.parametrize("budget", [1.0, "budget", object(), {"check": 1}])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(ValueError, match="budget"):
        DPMean(budget=budget, data_norm=1.0, mechanism="gaussian").fit(FIT_X)
