# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Chain of a budget on a PostgreSQL server, for the machines and people of an organisation.

One schema of a database, ``skdp``, holds any number of budgets. `TABLES` has all its definitions;
``python -m skdp.budget tables`` prints them for the administrator. Two roles own nothing:
``skdp_read`` may read, and ``skdp_charge`` may also charge, through one function. Nobody may
update or delete a charge.
"""

import re
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from skdp.privacy.books.store import NOTHING, PATIENCE, BudgetStore
from skdp.privacy.kernel.accounting import BudgetError

#: of the tables: a version of skdp reads and writes one
LAYOUT = 1

#: what a database gets, in one transaction
TABLES = rf"""
-- The budgets of skdp: run once in a database, by whoever is to own them, in one transaction
-- (psql --single-transaction). PostgreSQL 15 or newer.
CREATE SCHEMA skdp;

-- Roles belong to the whole server, and may be there already.
DO $do$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['skdp_read', 'skdp_charge'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted) THEN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
    END LOOP;
END $do$;

CREATE FUNCTION skdp.layout() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT {LAYOUT}';

CREATE TABLE skdp.budgets (name text PRIMARY KEY, header text NOT NULL);

CREATE TABLE skdp.charges (
    budget text NOT NULL REFERENCES skdp.budgets (name),
    position integer NOT NULL CHECK (position > 0),
    entry text NOT NULL,
    head text NOT NULL,
    PRIMARY KEY (budget, position),
    UNIQUE (budget, head)
);

-- What was charged stays, also where the owner of the tables errs.
CREATE FUNCTION skdp.refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    RAISE EXCEPTION 'skdp: budgets and charges are never changed or deleted';
END $body$;
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON skdp.budgets
    FOR EACH STATEMENT EXECUTE FUNCTION skdp.refuse();
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON skdp.charges
    FOR EACH STATEMENT EXECUTE FUNCTION skdp.refuse();

-- The only way to charge: one statement is one transaction, and charges wait for each other.
-- Called again with the same arguments, because an answer was lost, it finds what it charged.
CREATE FUNCTION skdp.append(budget text, entry text, head text, expected text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '{PATIENCE:.0f}s'
AS $body$
DECLARE
    header text;
    latest record;
BEGIN
    -- on the disk before the client hears of it, whatever the defaults of its login
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    SELECT b.header INTO header FROM skdp.budgets b WHERE b.name = append.budget FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'skdp: there is no budget of this name';
    END IF;
    SELECT c.position, c.head INTO latest FROM skdp.charges c
        WHERE c.budget = append.budget ORDER BY c.position DESC LIMIT 1;
    IF coalesce(latest.head, '') <> expected THEN
        RETURN EXISTS (
            SELECT FROM skdp.charges c WHERE c.budget = append.budget AND c.head = append.head
        );
    END IF;
    -- nobody can append what breaks the chain, or charge in the name of somebody else
    latest.head := coalesce(
        latest.head, encode(sha256(convert_to(E'\n' || header, 'UTF8')), 'hex')
    );
    IF head IS DISTINCT FROM
        encode(sha256(convert_to(latest.head || E'\n' || entry, 'UTF8')), 'hex')
    THEN
        RAISE EXCEPTION 'skdp: the head is not the hash of the chain and the entry';
    END IF;
    IF entry::jsonb ->> 'person' IS DISTINCT FROM session_user::text THEN
        RAISE EXCEPTION 'skdp: the entry names another person than %', session_user;
    END IF;
    INSERT INTO skdp.charges VALUES (append.budget, coalesce(latest.position, 0) + 1, entry, head);
    RETURN true;
END $body$;

-- For people: prices as they were charged, and plain sums of them.
CREATE VIEW skdp.charge_list AS
    SELECT c.budget, c.position, e ->> 'label' AS label, (e ->> 'epsilon')::numeric AS epsilon,
        (e ->> 'delta')::numeric AS delta, (e ->> 'mu')::numeric AS mu,
        e ->> 'adjacency' AS adjacency, e ->> 'unit' AS unit,
        (e ->> 'process')::bigint AS process, e ->> 'time' AS time, e ->> 'stream' AS stream,
        e ->> 'person' AS person,
        (b.header::jsonb ->> 'identity') || ':' || c.position || ':' || c.head AS head
    FROM skdp.charges c JOIN skdp.budgets b ON b.name = c.budget,
        LATERAL (SELECT c.entry::jsonb) t (e);
CREATE VIEW skdp.spend_by_model AS
    SELECT budget, label AS model, count(*) AS charges, sum(epsilon) AS epsilon,
        sum(delta) AS delta, min(time) AS first, max(time) AS last
    FROM skdp.charge_list GROUP BY budget, label;
CREATE VIEW skdp.spend_by_person AS
    SELECT budget, person, count(*) AS charges, sum(epsilon) AS epsilon,
        sum(delta) AS delta, min(time) AS first, max(time) AS last
    FROM skdp.charge_list GROUP BY budget, person;
CREATE VIEW skdp.spend_by_budget AS
    SELECT b.name AS budget, count(c.budget) AS charges, coalesce(sum(c.epsilon), 0) AS epsilon,
        coalesce(sum(c.delta), 0) AS delta, coalesce(min(c.time), '') AS first,
        coalesce(max(c.time), '') AS last, (h ->> 'epsilon')::numeric AS epsilon_limit,
        (h ->> 'delta')::numeric AS delta_limit, h ->> 'composition' AS composition,
        h ->> 'adjacency' AS adjacency, h ->> 'unit' AS unit
    FROM skdp.budgets b LEFT JOIN skdp.charge_list c ON c.budget = b.name,
        LATERAL (SELECT b.header::jsonb) t (h)
    GROUP BY b.name, h;

REVOKE ALL ON SCHEMA skdp FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA skdp FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA skdp FROM PUBLIC;
GRANT USAGE ON SCHEMA skdp TO skdp_read, skdp_charge;
GRANT SELECT ON ALL TABLES IN SCHEMA skdp TO skdp_read, skdp_charge;
GRANT EXECUTE ON FUNCTION skdp.layout() TO skdp_read, skdp_charge;
GRANT EXECUTE ON FUNCTION skdp.append(text, text, text, text) TO skdp_charge;
"""

#: one statement sees one state
_READ = """
SELECT session_user::text, skdp.layout(), b.header,
    ARRAY(SELECT c.entry FROM skdp.charges c WHERE c.budget = b.name ORDER BY c.position),
    ARRAY(SELECT c.head FROM skdp.charges c WHERE c.budget = b.name ORDER BY c.position)
FROM skdp.budgets b WHERE b.name = %s
"""
#: whoever makes tables waits for others who do: any number that is always the same
_MAKING = 7_386_470_112
#: unless the URL says otherwise: a host that vanished is noticed within half a minute
_DEFAULTS = {
    "application_name": "skdp", "connect_timeout": "10", "keepalives_idle": "10",
    "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000",
}  # fmt: skip
#: what PostgreSQL calls its errors
_ASK_AGAIN = {"40001", "40P01", "23505"}
_NO_TABLES = {"3F000", "42P01", "42883", "42703"}
_REMEDIES = {
    "25006": "takes no charges, because the server is a standby, or read-only: give the URL of "
    "the primary server",
    "55P03": f"was locked by somebody else for {PATIENCE:.0f} seconds",
}
#: without a connection there are no codes
_NO_PASSWORD = (
    "does not let this login in: give its password in the environment variable PGPASSWORD or in a "
    "password file; one in a URL is not sent to other processes"
)
_SHAPE = "postgresql://user@host/database?budget=name"


def is_url(path: Any) -> bool:
    """Return whether a path is a URL, and not the name of a file."""
    meant = r"(?i)[a-z][a-z0-9+.-]+://|postgres[a-z0-9+.-]*:"
    return isinstance(path, str) and bool(re.match(meant, path))


def _taken_apart(url: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return a URL without its query, the parts of the query, and the secrets.

    Errors do not repeat the URL: a password may be in the wrong place.
    """
    if not re.match(r"(?i)postgres(ql)?://", url):
        begin = re.match(r"[^:]*:/*", url)
        raise ValueError(
            f"path must be the name of a file, or a URL {_SHAPE} as a str; got one that begins "
            f"with {begin and begin[0]!r}."
        )
    bad = ValueError(
        f"path must be a URL {_SHAPE}; this one cannot be read. Write other characters than "
        "letters, digits, - . _ ~ as %XX, also in a password."
    )
    try:
        parts = urlsplit(url)
    except ValueError:
        raise bad from None
    login, _, hosts = parts.netloc.rpartition("@")
    broken = re.search(r"[\s#]|[^\x21-\x7e]|%(?![0-9a-fA-F]{2})|%00", url)
    if broken or "@" in login + parts.path + parts.query or parts.path.count("/") > 1:
        raise bad
    user, _, password = login.partition(":")
    given = {"password": unquote(password)} if password else {}
    for field in filter(None, parts.query.split("&")):
        name, equals, value = field.partition("=")
        if not equals or name in given:
            raise bad
        given[unquote(name)] = unquote(value)
    secret = {name for name in given if re.search("(?i)pass(?!file)|pw|secret|token|scram_", name)}
    base = f"postgresql://{user + '@' if user else ''}{hosts}{parts.path}"
    return (
        base,
        {name: value for name, value in given.items() if name not in secret},
        {name: value for name, value in given.items() if name in secret},
    )


class PostgresStore(BudgetStore):
    """Chain on a PostgreSQL server, for any number of processes on any number of machines.

    Every call opens a new connection: forks inherit nothing, and a restarted server is found. A
    charge is one statement with its own commit. If the answer is lost, the same statement is sent
    again: the head of a charge is its identity, so it is appended only once.

    Parameters
    ----------
    url : str
        ``postgresql://user@host/database?budget=name``, with further libpq parameters in the
        query.
    budget : str, default=None
        Name of the budget, if the URL has none.
    """

    def __init__(self, url: str, budget: str | None = None) -> None:
        base, query, hidden = _taken_apart(url)
        name = query.pop("budget", budget)
        if not name or not name.isprintable() or len(name) > 200:
            raise ValueError(
                f"path must say which budget of the database: {_SHAPE}, with a name of 1 to 200 "
                "printable characters."
            )
        self.budget = name
        options = "&".join(f"{quote(k)}={quote(v, safe='/')}" for k, v in query.items())
        self._address = base + "?" * bool(options) + options
        #: the URL without its password
        self.path = f"{self._address}{'&' if options else '?'}budget={quote(name, safe='')}"
        self.name = f"the privacy budget at {self.path!r}"
        self._defaults = {k: v for k, v in _DEFAULTS.items() if k not in query}
        self._login: str | None = None
        # in a function, which prints without them
        self._hidden: Callable[[], dict[str, str]] = lambda: hidden

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # called by name: a subclass may have more parameters
        PostgresStore.__init__(self, state["path"])

    @property
    def person(self) -> str:
        """Login on the server."""
        if self._login is None:
            self._login = str(self._asked("SELECT session_user::text")[0][0])
        return self._login

    def read(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the header, and all (entry, head)."""
        found = self._asked(_READ, self.budget)
        if not found:
            raise self._error("has vanished, or was never there")
        login, layout, header, entries, heads = found[0]
        if layout != LAYOUT:
            raise self._foreign(layout)
        self._login = login
        return header, list(zip(entries, heads, strict=True))

    def append(self, entry: str, head: str, expected: str) -> bool:
        """Append an entry if the last head is `expected`; return whether it was."""
        driver = self._driver()
        lost: float | None = None
        while True:
            sent = False
            try:
                with closing(self._connected()) as connection:
                    sent = True
                    query = "SELECT skdp.append(%s, %s, %s, %s)"
                    found = connection.execute(query, (self.budget, entry, head, expected))
                    return bool(found.fetchall()[0][0])
            except driver.Error as error:
                if error.sqlstate in _ASK_AGAIN:
                    # somebody else was faster, and transactions of this login see one state only
                    continue
                if lost is None and (not sent or _is_an_answer(error)):
                    raise self._explained(error) from error
                lost = time.monotonic() if lost is None else lost
                if time.monotonic() - lost > PATIENCE:
                    raise BudgetError(
                        f"{self.name} was lost while a charge was on its way, and for "
                        f"{PATIENCE:.0f} seconds ({_one_line(error)}). The charge may count as "
                        "spent: look at `charges` when the server is back. No row was read. To fit "
                        "again is another charge, and needs another seed if there was one."
                    ) from error
                time.sleep(0.1)

    def create(self, header: str) -> None:
        """Create the budget, and the tables if there are none; an existing budget is unchanged."""
        driver = self._driver()
        exists = "SELECT FROM skdp.budgets WHERE name = %s"
        try:
            with closing(self._connected()) as connection:
                try:
                    if connection.execute(exists, (self.budget,)).fetchall():
                        return
                    missing = False
                except driver.Error as error:
                    missing = error.sqlstate in _NO_TABLES
                    if not missing:
                        raise
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                    there = connection.execute("SELECT to_regclass('skdp.budgets')").fetchall()
                    if missing and there[0][0] is None:
                        connection.execute(TABLES)
                    layout = connection.execute("SELECT skdp.layout()").fetchall()[0][0]
                    if layout != LAYOUT:
                        raise self._foreign(layout)
                    connection.execute(
                        "INSERT INTO skdp.budgets VALUES (%s, %s) ON CONFLICT DO NOTHING",
                        (self.budget, header),
                    )
        except driver.Error as error:
            if error.sqlstate == "42501":
                problem = (
                    "is not there, and this login may not make it: ask who owns the database, or "
                    "its schema skdp, to call PrivacyBudget(..., path=URL) once"
                )
                raise self._error(f"{problem} ({_one_line(error)})") from error
            raise self._explained(error) from error

    def _asked(self, query: str, *given: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query that changes nothing."""
        driver = self._driver()
        try:
            with closing(self._connected()) as connection:
                return list(connection.execute(query, given).fetchall())
        except driver.Error as error:
            raise self._explained(error) from error

    def _driver(self) -> Any:
        try:
            import psycopg
        except ImportError as error:
            raise self._error('needs psycopg, which pip install "skdp[postgres]" brings') from error
        return psycopg

    def _connected(self) -> Any:
        driver = self._driver()
        try:
            return driver.connect(
                self._address,
                **self._defaults,
                **self._hidden(),
                autocommit=True,
                # poolers between here and the server know nothing of prepared statements
                prepare_threshold=None,
            )
        except UnicodeError as error:
            # of the name of a host
            raise driver.OperationalError(str(error)) from error

    def _error(self, problem: str) -> BudgetError:
        return BudgetError(f"{self.name} {problem}. {NOTHING}")

    def _foreign(self, layout: Any) -> BudgetError:
        return self._error(
            f"was made by another version of skdp: its tables have layout {layout}, and this "
            f"version knows {LAYOUT}. Use the same version everywhere"
        )

    def _explained(self, error: Any) -> BudgetError:
        state = error.sqlstate
        if state in _NO_TABLES:
            return self._without_tables()
        if state == "42501":
            problem = (
                "may be looked at by this login, and not charged: its owner can GRANT skdp_charge"
                if "append" in str(error)
                else "may not be looked at by this login: its owner can GRANT skdp_read"
            )
        elif state in _REMEDIES:
            problem = _REMEDIES[state]
        elif state is None and not isinstance(error, self._driver().OperationalError):
            problem = "has a URL that PostgreSQL does not understand"
        elif "password" in str(error):
            problem = _NO_PASSWORD
        elif state is None:
            problem = (
                "cannot be reached: is the server running, and are host, port, database and login "
                "right?"
            )
        else:
            problem = "cannot be used"
        return self._error(f"{problem} ({_one_line(error)})")

    def _without_tables(self) -> BudgetError:
        """Return the reason for missing tables: there are none, or others."""
        driver = self._driver()
        try:
            with closing(self._connected()) as connection:
                return self._foreign(connection.execute("SELECT skdp.layout()").fetchall()[0][0])
        except driver.Error:
            return self._error(
                "is in a database without budgets: PrivacyBudget(..., path=URL) of who may make "
                "tables there makes the first one"
            )


def _is_an_answer(error: Any) -> bool:
    """Return whether the server has refused a statement, without any effect."""
    # whoever is thrown out (FATAL) may have been heard before
    return error.sqlstate is not None and error.diag.severity_nonlocalized == "ERROR"


def _one_line(error: Any) -> str:
    # of an error in a statement without the statement
    return " ".join((error.diag.message_primary or str(error)).split())


def stores_at(url: str) -> list[PostgresStore]:
    """Return the budget named in a URL, or all budgets of its database."""
    if "budget" in _taken_apart(url)[1]:
        return [PostgresStore(url)]
    rows = PostgresStore(url, "any")._asked("SELECT name FROM skdp.budgets ORDER BY name")
    return [PostgresStore(url, name) for (name,) in rows]
