# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""A shared budget in PostgreSQL: rights, lost connections, killed servers; and what a shell shows.

What holds wherever a budget is kept is tested in test_budget.py and test_budget_chain.py.
"""

import builtins
import csv
import io
import json
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import joblib
import psycopg
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skdp
from skdp import DPMean, DPQuantile, PrivacyBudget, privacy_card, trusted_types
from skdp.budget import main
from skdp.exceptions import BudgetError
from skdp.privacy.books import postgres
from skdp.privacy.books.budget import SPEND, spend_rows
from skdp.privacy.books.postgres import LAYOUT, TABLES, PostgresStore
from tests._places import Server, Wire
from tests.privacy.test_budget_chain import chained

HERE = {"adjacency": "replace-one"}
X = [[0.1], [0.2], [0.3], [0.4]]
#: of a machine where nothing runs
NOWHERE = "postgresql://dpo@127.0.0.1:1/budgets?budget=survey"
posix = pytest.mark.skipif(os.name == "nt", reason="only where processes can be killed")


def made(server, name, epsilon=1.0, **more):
    """Make a budget, as its owner, and return its name."""
    PrivacyBudget(epsilon, 1e-6, path=server.url(name), **more)
    return name


def fit(budget, epsilon=0.1):
    return DPMean(
        epsilon=epsilon, delta=0.0, mechanism="laplace", budget=budget, data_norm=1.0
    ).fit(X)


# -- URLs, and what is never shown -------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:top-secret@host/db?budget=survey",
        "postgresql+psycopg://me:top-secret@host/db?budget=survey",
        Path("postgresql://me:top-secret@host/db?budget=survey"),
        "postgresql://me:top-secret@host/db",
        "postgresql://me:top-secret@host/db?budget=",
        "postgresql://me:top-secret@host/db?budget=a%0Ab",
        "postgresql://me:top-secret@host/db?budget=a&budget=b",
        "postgresql://me:top-secret@host/db?budget",
        "postgresql://me:top-secret@host/db/more?budget=survey",
        "postgresql://me:top-secret@/@host/db?budget=survey",
        "postgresql://me:/top-secret@host/db?budget=survey",
        "postgresql://me:?top-secret@host/db?budget=survey",
        "postgresql://me:#top-secret@host/db?budget=survey",
        "postgresql://me:%top-secret@host/db?budget=survey",
        "postgresql://me:top-secret%00@host/db?budget=survey",
        "postgresql://me: top-secret@host/db?budget=survey",
        "postgresql://me:\u2100top-secret@host/db?budget=survey",
        "postgresql://me:top-secret@[host/db?budget=survey",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_and_not_repeated(url):
    for make in (PrivacyBudget.open, lambda path: PrivacyBudget(1.0, path=path)):
        with pytest.raises(ValueError, match="postgresql://user@host") as error:
            make(url)
        assert "top-secret" not in str(error.value)
        assert error.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://me:top%20secret@a:1,b/db?budget=s", "postgresql://me@a:1,b/db?budget=s"),
        ("postgresql:///db?password=top+secret&budget=s", "postgresql:///db?budget=s"),
        (
            "postgresql://h/?budget=a%2Fb&sslmode=verify-full&sslpassword=top&passfile=/p",
            "postgresql://h/?sslmode=verify-full&passfile=/p&budget=a%2Fb",
        ),
        (
            "POSTGRESQL://[::1]:5/db?passwd=top&budget=%C3%BC",
            "postgresql://[::1]:5/db?budget=%C3%BC",
        ),
    ],
)
def test_a_password_is_nowhere_but_in_the_call(url, shown, monkeypatch):
    store = PostgresStore(url)
    assert store.path == PostgresStore(store.path).path == pickle.loads(pickle.dumps(store)).path
    assert store.path == shown
    for text in (repr(vars(store)), store.name, pickle.dumps(store).decode("latin-1")):
        assert "top" not in text
    given = {}

    def connect(address, **more):
        given.update(more, address=address)
        raise psycopg.OperationalError("no")

    monkeypatch.setattr(psycopg, "connect", connect)
    with pytest.raises(BudgetError, match="cannot be reached"):
        store.read()
    assert "top" not in given["address"]
    assert any(str(value).startswith("top") for value in given.values())


def test_without_psycopg_the_error_says_what_to_install(monkeypatch):
    load = builtins.__import__

    def without(name, *given):
        if name == "psycopg":
            raise ImportError(name)
        return load(name, *given)

    monkeypatch.setattr(builtins, "__import__", without)
    for make in (PrivacyBudget.open, lambda path: PrivacyBudget(1.0, path=path)):
        with pytest.raises(BudgetError, match=r'pip install "skdp\[postgres\]"'):
            make(NOWHERE)


def test_a_server_that_is_not_there():
    for make in (PrivacyBudget.open, lambda path: PrivacyBudget(1.0, path=path)):
        with pytest.raises(BudgetError, match=r"is the server running.*Nothing was charged"):
            make(NOWHERE)
    with pytest.raises(BudgetError, match="does not understand"):
        PrivacyBudget.open(f"{NOWHERE}&color=red")
    for wrong in (NOWHERE.replace(":1/", ":one/"), NOWHERE.replace("127.0.0.1", "a" * 70)):
        with pytest.raises(BudgetError, match="cannot be reached"):
            PrivacyBudget.open(wrong)


# -- who may do what ---------------------------------------------------------------------------


def test_readers_look_and_chargers_charge_in_their_own_names(server):
    name = made(server, "rights")
    alice, eve = (PrivacyBudget.open(server.url(name, login)) for login in ("alice", "eve"))
    model = fit(alice)
    assert model.ledger_.budget_heads == (alice.head,)
    assert [charge.person for charge in eve.charges] == ["alice"]
    assert eve.contains(model)
    eve.check(0.5)
    for use in (lambda: fit(eve), lambda: eve.charge(0.1, **HERE)):
        with pytest.raises(BudgetError, match=r"GRANT skdp_charge.*Nothing was charged"):
            use()
    with pytest.raises(BudgetError, match="GRANT skdp_read"):
        PrivacyBudget.open(server.url(name, "stranger"))
    # who may not make one may still name its numbers
    assert PrivacyBudget(1.0, 1e-6, path=server.url(name, "eve")).spent == (0.1, 0.0)
    with pytest.raises(BudgetError, match="ask who owns the database"):
        PrivacyBudget(1.0, path=server.url("another", "alice"))
    with pytest.raises(BudgetError, match=r"has epsilon=1\.0; got 5\.0"):
        PrivacyBudget(5.0, 1e-6, path=server.url(name, "alice"))


def refused(server, login, statement, *given):
    with pytest.raises(psycopg.Error) as error:
        server.sql(statement, *given, login=login)
    return str(error.value)


@pytest.mark.full
def test_nobody_changes_what_was_charged(server):
    name = made(server, "kept")
    budget = PrivacyBudget.open(server.url(name, "alice"))
    budget.charge(0.1, **HERE)
    changes = [
        f"{change} skdp.{table}{more}"
        for table in ("charges", "budgets")
        for change, more in (
            ("DELETE FROM", ""),
            ("TRUNCATE", " CASCADE"),
            ("UPDATE", f" SET {'head' if table == 'charges' else 'header'} = 'x'"),
        )
    ]
    for change in changes:
        for login in ("alice", "eve", "stranger"):
            assert "permission denied" in refused(server, login, change)
        assert "never changed" in refused(server, "dpo", change)
    for login in ("alice", "eve"):
        for table in ("charges (budget, position, entry, head)", "budgets (name, header)"):
            new = f"INSERT INTO skdp.{table} SELECT * FROM skdp.{table.split()[0]}"
            assert "permission denied" in refused(server, login, new)
        assert "must be owner" in refused(server, login, "DROP TABLE skdp.charges")
    assert budget.spent == (0.1, 0.0)


@pytest.mark.full
def test_nobody_charges_for_somebody_else_or_breaks_the_chain(server):
    name = made(server, "forged")
    append = "SELECT skdp.append(%s, %s, %s, '')"
    mine, yours = (json.dumps({"person": person}) for person in ("alice", "bob"))
    begin = chained("", server.sql(*header_of(name))[0][0])
    for entry, head, problem in (
        (mine, "ab", "not the hash"),
        (mine, None, "not the hash"),
        (yours, chained(begin, yours), "another person than alice"),
        ("{}", chained(begin, "{}"), "another person"),
        ("no text of a charge", chained(begin, "no text of a charge"), "json"),
    ):
        assert problem in refused(server, "alice", append, name, entry, head)
    assert "no budget of this name" in refused(server, "alice", append, "none", mine, "")
    assert PrivacyBudget.open(server.url(name)).charges == ()
    server.sql(append, name, mine, chained(begin, mine), login="alice")


def header_of(name):
    return "SELECT header FROM skdp.budgets WHERE name = %s", name


# -- databases without tables, or with others ----------------------------------------------------


@pytest.fixture
def database(server):
    """Return the name of a database without tables."""
    server.sql("CREATE DATABASE other OWNER dpo", database="postgres")
    yield "other"
    server.sql("DROP DATABASE other WITH (FORCE)", database="postgres")


@pytest.mark.full
def test_tables_are_made_once_and_by_who_may(server, database):
    alice, dpo = (server.url("survey", login, database) for login in ("alice", "dpo"))
    with pytest.raises(BudgetError, match="without budgets"):
        PrivacyBudget.open(dpo)
    with pytest.raises(BudgetError, match="ask who owns the database"):
        PrivacyBudget(1.0, path=alice)
    with ThreadPoolExecutor(4) as pool:
        heads = [b.head for b in pool.map(lambda _: PrivacyBudget(1.0, path=dpo), range(4))]
    assert len(set(heads)) == 1
    assert PrivacyBudget(1.0, path=alice).charge(0.5, **HERE).person == "alice"
    # what a shell prints makes the same
    assert main(["tables"]) == 0


@pytest.mark.full
def test_tables_of_another_version_are_refused(server, database):
    url = server.url("survey", "dpo", database)
    PrivacyBudget(1.0, path=url)
    new = "CREATE OR REPLACE FUNCTION skdp.layout() RETURNS integer LANGUAGE sql AS 'SELECT 2'"
    server.sql(new, database=database, login="dpo")
    uses = (
        lambda: PrivacyBudget.open(url),
        lambda: PrivacyBudget(1.0, path=server.url("second", "dpo", database)),
    )
    for change in ("SELECT", "ALTER TABLE skdp.charges RENAME COLUMN entry TO text"):
        server.sql(change, database=database, login="dpo")
        for use in uses:
            with pytest.raises(
                BudgetError, match=f"have layout 2, and this version knows {LAYOUT}"
            ):
                use()


# -- answers that are lost ---------------------------------------------------------------------


@pytest.fixture
def wire(server):
    """Return a connection that breaks where a test wants it to."""
    wire = Wire(server)
    yield wire
    wire.close()


def test_a_charge_whose_answer_is_lost_is_found_again(server, wire):
    name = made(server, "lost answers", 10.0)
    url = server.url(name, "alice", port=wire.port)
    budget, other = PrivacyBudget.open(url), PrivacyBudget.open(server.url(name, "bob"))
    wire.fate = ["answer", "request", "request", "answer"]
    models = [fit(budget) for _ in range(3)]
    assert wire.fate == []
    assert len(other.charges) == 3
    assert other.contains(*models)
    # what was lost at first arrives after the same was charged, and after somebody else was
    wire.fate = ["late"]
    models.append(fit(budget))
    fit(other)
    wire.deliver()
    assert len(other.charges) == 5
    assert other.contains(*models)
    assert budget.spent == (0.5, 0.0)


@pytest.mark.full
def test_a_charge_that_was_overtaken_is_looked_at_anew(server, wire):
    name = made(server, "overtaken")
    budget = PrivacyBudget.open(server.url(name, "alice", port=wire.port))
    other = PrivacyBudget.open(server.url(name, "bob"))
    wire.fate, wire.then = ["request"], lambda: other.charge(0.6, **HERE)
    with pytest.raises(BudgetError, match="left"):
        budget.charge(0.5, **HERE)
    assert [charge.person for charge in other.charges] == ["bob"]


@pytest.mark.full
@pytest.mark.parametrize(("fate", "spent"), [("answer", 0.1), ("request", 0.0)])
def test_what_cannot_be_known_is_not_called_uncharged(server, wire, monkeypatch, fate, spent):
    name = made(server, f"unknown {fate}")
    budget = PrivacyBudget.open(server.url(name, "alice", port=wire.port))
    monkeypatch.setattr(postgres, "PATIENCE", 0.3)
    wire.fate = [fate]
    wire.then = wire.close
    with pytest.raises(BudgetError) as error:
        fit(budget)
    assert "may count as spent" in str(error.value)
    assert "No row was read" in str(error.value)
    assert "Nothing was charged" not in str(error.value)
    # in doubt it is spent
    assert PrivacyBudget.open(server.url(name)).spent == (spent, 0.0)
    with pytest.raises(BudgetError, match=r"cannot be reached.*Nothing was charged"):
        fit(budget)


@contextmanager
def default(server, subject, setting):
    """Change a default of a login, or of a function, for a while."""
    server.sql(f"ALTER {subject} SET {setting}")
    try:
        yield
    finally:
        server.sql(f"ALTER {subject} RESET {setting.split()[0]}")


# -- waiting -------------------------------------------------------------------------------------


@pytest.mark.full
def test_charges_wait_for_each_other_but_not_for_ever(server):
    name = made(server, "locked")
    budget = PrivacyBudget.open(server.url(name, "alice"))
    address = server.url(name, "postgres").partition("?")[0]
    source = "SELECT proconfig FROM pg_proc WHERE oid = 'skdp.append'::regproc"
    assert "lock_timeout=30s" in server.sql(source)[0][0]
    with psycopg.connect(address) as holder:
        holder.execute("SELECT FROM skdp.budgets FOR UPDATE")
        server.sql("ALTER FUNCTION skdp.append SET lock_timeout = '100ms'")
        with pytest.raises(BudgetError, match=r"was locked by somebody else.*Nothing was charged"):
            fit(budget)
        server.sql("ALTER FUNCTION skdp.append SET lock_timeout = '30s'")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(fit, budget)
            time.sleep(0.2)
            assert not waiting.done()
            holder.rollback()
            waiting.result(timeout=20)
    with (
        default(server, "ROLE alice", "default_transaction_read_only = on"),
        pytest.raises(BudgetError, match="give the URL of the primary server"),
    ):
        fit(budget)
    assert budget.spent == (0.1, 0.0)


@pytest.mark.full
@pytest.mark.parametrize(
    "setting",
    [
        "default_transaction_isolation = 'serializable'",
        "synchronous_commit = off",
        "statement_timeout = '1s'",
    ],
)
def test_defaults_of_a_login_take_nothing_away(server, setting):
    from tests.privacy.test_budget import never_overspent

    name = made(server, f"with {setting}")
    with default(server, "ROLE alice", setting):
        never_overspent(PrivacyBudget.open(server.url(name, "alice")), 10, workers=4)


@pytest.mark.full
def test_a_commit_waits_for_the_disk_whatever_the_login_says(server):
    # the last value of the transaction is that of the commit
    name = made(server, "durable")
    entry, before = json.dumps({"person": "alice"}), server.sql(*header_of(name))[0][0]
    head = chained(chained("", before), entry)
    address = server.url(name, "alice").partition("?")[0]
    with psycopg.connect(address, options="-c synchronous_commit=off") as connection:
        connection.execute("SELECT skdp.append(%s, %s, %s, '')", (name, entry, head))
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.full
def test_a_missing_lock_is_no_way_to_overspend(server, database):
    """The key of the table keeps what the lock is for; who loses the race asks again."""
    from tests.privacy.test_budget import never_overspent

    careless = TABLES.replace(
        "= append.budget FOR UPDATE;", "= append.budget; PERFORM pg_sleep(0.01);"
    )
    assert careless != TABLES
    server.sql(careless, database=database, login="dpo")
    budget = PrivacyBudget(1.0, path=server.url("survey", "dpo", database))
    never_overspent(budget, 10, workers=4)


@pytest.mark.full
def test_a_server_that_does_not_look_at_the_last_head_is_noticed(server, database):
    from tests.privacy.test_budget import never_overspent

    careless = TABLES.replace("IF coalesce(latest.head, '') <> expected THEN", "IF false THEN")
    assert careless != TABLES
    server.sql(careless, database=database, login="dpo")
    budget = PrivacyBudget(1.0, path=server.url("survey", "dpo", database))
    # the hash that it checks besides turns fits away
    with pytest.raises((AssertionError, BudgetError)):
        never_overspent(budget, 10, workers=4)
    assert budget.spent[0] <= 1.0


# -- estimators that hold such a budget ------------------------------------------------------------


@pytest.mark.full
def test_estimators_take_the_address_along_and_not_the_password(server, monkeypatch, tmp_path):
    sio = pytest.importorskip("skops.io")
    name = made(server, "files")
    budget = PrivacyBudget.open(server.url(name, "locked:xyzzy%20plugh"))
    model = fit(budget)
    assert clone(model).budget is budget
    files = [pickle.dumps(model), sio.dumps(model)]
    joblib.dump(model, tmp_path / "model")
    files.append((tmp_path / "model").read_bytes())
    loaded = [pickle.loads(files[0]), joblib.load(tmp_path / "model")]
    loaded.append(sio.loads(files[1], trusted=trusted_types(budget=True)))
    texts = [repr(model), repr(budget), budget._repr_html_(), str(model.ledger_)]
    texts += [privacy_card(model).to_json(), str(privacy_card(model)), joblib.hash(model)]
    for text in [*texts, *(file.decode("latin-1") for file in files)]:
        assert "xyzzy" not in text
    for other in loaded:
        assert other.budget.path == budget.path
        with pytest.raises(BudgetError, match=r"PGPASSWORD.*Nothing was charged"):
            other.fit(X)
    monkeypatch.setenv("PGPASSWORD", "xyzzy plugh")
    for other in loaded:
        other.fit(X)
    assert budget.spent == (0.4, 0.0)
    with pytest.raises(BudgetError, match="PGPASSWORD"):
        fit(PrivacyBudget.open(server.url(name, "locked:wrong")))


@pytest.mark.slow
def test_a_search_with_workers_charges_every_fit(server):
    name = made(server, "workers", 2.1)
    budget = PrivacyBudget.open(server.url(name, "alice"))
    model = DPQuantile(epsilon=0.1, budget=budget, bounds=(-1.0, 1.0))
    grid = {"quantile": [0.2, 0.4, 0.6, 0.8]}
    GridSearchCV(
        model, grid, cv=5, n_jobs=2, error_score="raise", scoring=lambda model, X: 0.0
    ).fit([[i / 20] for i in range(20)])
    assert budget.spent == (2.1, 0.0)
    assert len({charge.process for charge in budget.charges}) > 1


# -- what people read --------------------------------------------------------------------------


def charged(path):
    """Return a budget that several asked for several models."""
    budget = PrivacyBudget(2.0, 1e-5, path=path, composition="gaussian")
    budget.charge(0.1, 1e-7, mu=0.02, label="DPMean", **HERE)
    for _ in range(3):
        budget.charge(0.1, label="=DPQuantile", **HERE)
    return budget


VIEWS = {
    "charge": "charge_list", "model": "spend_by_model", "person": "spend_by_person",
    "budget": "spend_by_budget",
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("by", VIEWS)
def test_views_of_a_database_and_tables_are_the_same(server, by):
    name = f"views {by}"
    dpo = charged(server.url(name))
    PrivacyBudget.open(server.url(name, "alice")).charge(0.3, label="DPMean", **HERE)
    view = f"SELECT * FROM skdp.{VIEWS[by]} WHERE budget = %s"
    address = server.url(name, "eve").partition("?")[0]
    with psycopg.connect(address) as connection:
        found = connection.execute(view, (name,))
        columns, rows = [column.name for column in found.description], found.fetchall()
    ours = [dict(zip(SPEND[by], row, strict=True)) for row in spend_rows(dpo, by)]
    # two that no view has: what a rule of composition makes of the sums
    assert set(SPEND[by]) - set(columns) <= {"spent_epsilon", "spent_delta"}
    assert [{name: row[name] for name in columns} for row in ours] == [
        dict(zip(columns, map(plain, row), strict=True)) for row in sorted(rows)
    ]
    if by == "model":
        assert [row["epsilon"] for row in ours] == [0.3, 0.4]
    empty = made(server, f"nothing {by}")
    assert len(spend_rows(PrivacyBudget.open(server.url(empty)), by)) == (by == "budget")
    assert len(server.sql(view, empty, login="eve")) == (by == "budget")


def plain(value):
    """Return a number of PostgreSQL as that of Python that prints alike."""
    return value if value is None or isinstance(value, str | int) else float(Fraction(value))


def test_tables_add_up_what_was_charged(tmp_path):
    budget = charged(tmp_path / "survey.budget")
    models = budget.to_frame(by="model")
    assert list(models["model"]) == ["=DPQuantile", "DPMean"]
    assert list(models["charges"]) == [3, 1]
    # exact, and not 0.30000000000000004
    assert list(models["epsilon"]) == [0.3, 0.1]
    (person,) = budget.to_frame(by="person").to_dict("records")
    assert (person["epsilon"], person["charges"], person["budget"]) == (0.4, 4, "survey.budget")
    (total,) = budget.to_frame(by="budget").to_dict("records")
    assert (total["spent_epsilon"], total["spent_delta"]) == budget.spent
    assert (total["epsilon"], total["epsilon_limit"]) == (0.4, 2.0)
    assert list(PrivacyBudget(1.0).to_frame(by="person")) == SPEND["person"]
    for by in ("charge", "label", 3):
        with pytest.raises(ValueError, match="by must be one of"):
            budget.to_frame(by=by)


def test_a_shell_shows_verifies_and_exports(tmp_path, capsys):
    path = tmp_path / "survey.budget"
    budget, place = charged(path), str(path)
    model = fit(budget)

    def shell(*arguments, code=0):
        assert main([*map(str, arguments)]) == code
        return capsys.readouterr()

    shown = shell("show", place).out
    for part in (repr(budget), "  DPMean       2", "  =DPQuantile  3", "person"):
        assert part in shown
    assert "spent_epsilon" in shell("show", place, "--by", "budget").out
    assert "sound" in shell("verify", place, "--head", model.ledger_.budget_heads[0]).out
    rows = list(csv.DictReader(io.StringIO(shell("export", place).out)))
    assert list(rows[0]) == SPEND["charge"]
    assert [row["head"] for row in rows] == [charge.head for charge in budget.charges]
    # no spreadsheet runs what somebody called a model
    assert rows[1]["label"] == "'=DPQuantile"
    found = json.loads(shell("export", place, "--by", "model", "--format", "json").out)
    assert [row["model"] for row in found] == ["=DPQuantile", "DPMean"]
    shell("export", place, "--output", tmp_path / "out.csv")
    assert list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines())) == rows
    # another budget, an edit, no file
    head = PrivacyBudget(1.0).head
    assert "lacks a charge" in shell("verify", place, "--head", head, code=1).err
    path.write_bytes(path.read_bytes().replace(b"0.1", b"0.0"))
    assert "is damaged" in shell("verify", place, code=1).err
    assert "has vanished" in shell("show", tmp_path / "none", code=1).err
    assert "top" not in shell("show", "postgresql://me:top#secret@host/db", code=1).err


@pytest.mark.full
def test_a_shell_shows_all_budgets_of_a_database(server, database, capsys):
    places = [server.url(name, "dpo", database) for name in ("one", "two")]
    for place in places:
        charged(place)
    everything = places[0].partition("?")[0]
    assert main(["verify", everything]) == 0
    assert capsys.readouterr().out.count("sound") == 2
    assert main(["export", everything, "--by", "budget", "--format", "json"]) == 0
    assert [row["budget"] for row in json.loads(capsys.readouterr().out)] == ["one", "two"]
    assert main(["verify", everything, "--head", "a:1:b"]) == 1
    assert "?budget=name" in capsys.readouterr().err


# -- kills -------------------------------------------------------------------------------------

# without the packages' faces, whose imports take seconds
CLIENT = f"""
import os, sys, types
url, log, root = sys.argv[1:]
for name in ("skdp", "skdp.privacy"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join(root, *name.split(".")[1:])]
from skdp.privacy.books.budget import PrivacyBudget
from skdp.privacy.kernel.accounting import BudgetError
notes = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(*words):
    os.write(notes, (" ".join(map(str, words)) + chr(10)).encode())
budget = None
while True:
    try:
        budget = budget or PrivacyBudget.open(url)
        head = budget.charge(0.01, **{HERE!r}).head
    except BudgetError as error:
        text = str(error)
        if "left" in text:
            break
        # whatever else it is, it says what it is
        known = ("cannot be reached", "cannot be used", "may count as spent")
        note("error" if any(part in text for part in known) else text)
    else:
        note("granted", os.getpid(), head)
"""


class Clients:
    """Processes that charge a budget until nothing is left, and note what they were granted."""

    def __init__(self, url, log):
        self.command = [sys.executable, "-c", CLIENT, url, log, Path(skdp.__file__).parent]
        self.running, self.killed, self.log = [], set(), log

    def start(self):
        self.running.append(subprocess.Popen(self.command))

    def kill(self):
        process = self.running.pop(0)
        process.kill()
        process.wait()
        self.killed.add(process.pid)

    def notes(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


def kept_through(server, name, log, n_clients, n_kills, price=0.01):
    """Let clients spend a budget while they and their server are killed; return figures."""
    limit = PrivacyBudget.open(server.url(name)).epsilon
    clients = Clients(server.url(name, "alice"), log)
    for _ in range(n_clients):
        clients.start()
    kills = 0
    while kills < n_kills and any(p.poll() is None for p in clients.running):
        n_notes = len(clients.notes())
        end = time.monotonic() + 60
        # in the middle of charges: some were granted since the last time
        while len(clients.notes()) < n_notes + 3 and time.monotonic() < end:
            time.sleep(0.01)
        if kills % 2:
            clients.kill()
            clients.start()
        else:
            server.kill()
            server.start()
        kills += 1
    for process in clients.running:
        assert process.wait(timeout=300) == 0
    granted = [line.split()[1:] for line in clients.notes() if line.startswith("granted")]
    others = [line for line in clients.notes() if not line.startswith("granted")]
    budget = PrivacyBudget.open(server.url(name, "eve"), head=[head for _, head in granted])
    charges = budget.charges
    # nothing is lost: all that was granted is there. Nothing is granted twice.
    assert len({head for _, head in granted}) == len(granted)
    assert {head for _, head in granted} <= {charge.head for charge in charges}
    assert len(charges) == round(limit / price)
    assert budget.spent[0] == limit
    # what nobody was told of was on its way when its process was killed
    untold = [c for c in charges if [str(c.process), c.head] not in granted]
    assert {charge.process for charge in untold} <= clients.killed
    assert len(untold) <= len(clients.killed)
    assert {*others} <= {"error"}
    figures = {"kills": kills, "charges": len(charges), "granted": len(granted)}
    return {**figures, "untold": len(untold), "errors": len(others)}


@pytest.fixture
def fragile():
    """Return a server that may be killed."""
    started = Server(fsync="on")
    yield started
    started.stop()


@posix
@pytest.mark.full
def test_a_server_that_is_killed_in_the_middle_of_charges(fragile, tmp_path):
    made(fragile, "killed", 0.5)
    assert kept_through(fragile, "killed", tmp_path / "log", 2, 3)["kills"] == 3


@posix
@pytest.mark.slow
def test_ten_processes_and_a_server_that_are_killed_again_and_again(fragile, tmp_path):
    made(fragile, "ten", 4.0)
    figures = kept_through(fragile, "ten", tmp_path / "log", 10, 20)
    assert figures["kills"] == 20
    print(figures)
