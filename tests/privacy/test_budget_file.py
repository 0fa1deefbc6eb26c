# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A shared budget in a file: processes that share it, crash, or find it gone."""

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
from contextlib import closing, contextmanager
from pathlib import Path

import joblib
import pytest

from skdp import DPMean, PrivacyBudget
from skdp.exceptions import BudgetError
from skdp.privacy.books import store as _budget_store
from skdp.privacy.books.store import FileStore
from tests.privacy.test_budget import HERE, never_overspent, slowly, try_to_charge

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
        lambda: DPMean(epsilon=price, delta=0.0, mechanism="laplace", budget=budget).fit(X),
    ):
        with pytest.raises(BudgetError, match=message) as error:
            call()
        assert "Nothing was charged, and no row was read" in str(error.value)


def test_a_later_session_finds_what_was_spent(path, budget):
    budget.charge(0.3, 1e-7, mu=0.05, label="DPMean", **HERE)
    again = PrivacyBudget(1.0, 1e-6, path=str(path))
    found = PrivacyBudget.open(path)
    for other in (again, found, pickle.loads(pickle.dumps(budget))):
        assert other.spent == (0.3, 1e-7)
        assert other.charges == budget.charges
        assert repr(other) == repr(budget)
        assert other.path == str(path)
        assert (other.epsilon, other.delta, other.unit) == (1.0, 1e-6, "row")
    found.charge(0.7, **HERE)
    assert not try_to_charge(budget, 1e-9)
    assert list(path.parent.iterdir()) == [path]


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


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"epsilon": 2.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"composition": "gaussian"}, "composition"),
        ({"adjacency": "zero-out"}, "adjacency"),
        ({"unit": "client"}, "unit"),
    ],
)
def test_other_numbers_are_refused_by_name(path, budget, given, name):
    with pytest.raises(BudgetError, match=f"has {name}="):
        PrivacyBudget(**{"epsilon": 1.0, "delta": 1e-6, "path": path, **given})


def test_threads_never_overspend(tmp_path, monkeypatch):
    slowly(monkeypatch)
    never_overspent(PrivacyBudget(1.0, path=tmp_path / "b.db"), 10, workers=4)


def test_a_lock_that_comes_after_the_look_is_noticed(tmp_path, monkeypatch):
    class Late(FileStore):
        def _opened(self, begin):
            return super()._opened("BEGIN")

    budget = PrivacyBudget(1.0, path=tmp_path / "b.db")
    budget._store.__class__ = Late
    slowly(monkeypatch)
    # SQLite still lets nobody overspend, but turns fits away
    with pytest.raises(AssertionError):
        never_overspent(budget, 10, workers=4)


def test_a_charge_is_on_the_disk_when_it_returns(path, budget):
    with closing(_budget_store._connect(str(path), "rw")) as file:
        assert file.execute("PRAGMA synchronous").fetchone() == (3,)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_check_that_comes_before_the_write_is_noticed(tmp_path):
    class TwoSteps(FileStore):
        def add(self, charge, cost, limits):
            before, _ = self.read()
            if not _budget_store.within(_budget_store.total(before, cost), limits):
                return before
            time.sleep(0.01)
            return super().add(charge, cost, (limits[0] * 99, limits[1] * 99))

    budget = PrivacyBudget(1.0, path=tmp_path / "b.db")
    budget._store.__class__ = TwoSteps
    with pytest.raises(AssertionError):
        never_overspent(budget, 10, workers=8)


def hammer(budget, n_tries):
    return sum(try_to_charge(budget, 0.02) for _ in range(n_tries))


SCRIPT = """
import sys
from skdp import PrivacyBudget
from tests.privacy.test_budget import hammer
print(hammer(PrivacyBudget(1.0, 1e-6, path=sys.argv[1]), 40))
"""


def python(*arguments):
    """Return a process that runs Python from the repository."""
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", *map(str, arguments)], cwd=root, stdout=subprocess.PIPE, text=True
    )


def test_two_processes_never_overspend(path):
    # also the first to come makes the file, and the other finds it
    script = python(SCRIPT, path)
    while not path.exists() and script.poll() is None:
        time.sleep(0.01)
    budget = PrivacyBudget(1.0, 1e-6, path=path)
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
def test_a_forked_child_shares_the_file(budget):
    budget.charge(0.5, **HERE)
    child = os.fork()
    if child == 0:
        os._exit(0 if hammer(budget, 30) == 25 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not try_to_charge(budget, 0.02)
    assert len(budget.charges) == 26


def test_only_one_of_many_makes_the_file(path):
    start, made = threading.Barrier(8), []

    def make():
        start.wait()
        made.append(PrivacyBudget(1.0, path=path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({budget._store.identity for budget in made}) == 1
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
with budget._store._opened("BEGIN IMMEDIATE") as (file, row):
    file.execute("PRAGMA cache_size = 1")
    file.execute("UPDATE skdp_budget_1 SET spent = '1', n_charges = 9")
    file.execute("PRAGMA cache_spill = 1")
    file.executemany(
        "INSERT INTO skdp_charges_1 (label) VALUES (?)", [("x" * 4000,) for _ in range(200)]
    )
    die()
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(("where", "epsilon"), [("fit", 0.25), ("charge", 0.0)])
def test_a_killed_process_has_paid_for_what_it_began(path, budget, where, epsilon):
    script = python(KILLED, path, where)
    script.communicate(timeout=100)
    assert script.returncode == -signal.SIGKILL
    assert budget.spent[0] == epsilon
    assert [charge.label for charge in budget.charges] == ["DPMean"] * bool(epsilon)
    DPMean(epsilon=0.5, delta=1e-7, budget=budget).fit(X)
    assert budget.spent[0] == epsilon + 0.5


def test_a_vanished_file_is_never_made_anew(path, budget):
    budget.charge(0.1, **HERE)
    text = pickle.dumps(budget)
    path.unlink()
    refused(budget, "has vanished")
    # what was saved with an estimator can be loaded, but not spent
    refused(pickle.loads(text), "has vanished")
    assert "has vanished" in repr(budget)
    assert "has vanished" in budget._repr_html_()
    with pytest.raises(BudgetError, match="has vanished"):
        PrivacyBudget.open(path)
    assert not path.exists()


def test_a_file_that_vanishes_during_a_charge(path, budget, monkeypatch):
    connect = _budget_store._connect

    def and_unlink(*arguments):
        file = connect(*arguments)
        file.execute("SELECT * FROM skdp_budget_1").fetchall()
        path.unlink()
        return file

    monkeypatch.setattr(_budget_store, "_connect", and_unlink)
    with pytest.raises(BudgetError, match="has vanished"):
        budget.charge(0.1, **HERE)


def test_another_file_in_its_place(path, budget):
    text = pickle.dumps(budget)
    path.unlink()
    other = PrivacyBudget(1.0, 1e-6, path=path)
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


def test_an_earlier_state_is_noticed_by_who_only_looked_on(path, budget, tmp_path):
    shutil.copy(path, tmp_path / "copy")
    PrivacyBudget.open(path).charge(0.1, **HERE)
    assert budget.spent[0] == 0.1
    shutil.copy(tmp_path / "copy", path)
    refused(budget, "earlier state")


def test_a_fit_does_not_read_all_charges_before_it(path, budget):
    # ten thousand take 50 ms
    budget.charge(0.1, **HERE)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE skdp_charges_1")
    budget.check(0.9)
    assert budget.spent == (0.1, 0.0)
    assert "charges: 1" in repr(budget)
    for use in (lambda: budget.charge(0.1, **HERE), lambda: budget.charges):
        with pytest.raises(BudgetError, match="is damaged"):
            use()
    assert budget.spent == (0.1, 0.0)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[:5000],
        lambda content: b"hello " * 1000,
        lambda content: content.replace(b"skdp_budget_1", b"skdp_budget_2"),
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


@pytest.mark.parametrize("text", ["DELETE FROM skdp_budget_1", "UPDATE skdp_budget_1 SET spent=''"])
def test_a_file_without_its_numbers(path, budget, text):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(text)
    refused(budget, "is damaged, or is no privacy budget")


@pytest.mark.parametrize(
    "text", ["epsilon=NULL", "epsilon=-1", "delta=7", "composition='renyi'", "unit='person'"]
)
def test_a_file_whose_terms_make_no_sense(path, budget, text):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE skdp_budget_1 SET {text}")
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
    monkeypatch.setattr(_budget_store, "_PATIENCE", 0.05)
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
