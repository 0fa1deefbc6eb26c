# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Chain of charges of a shared budget, and its stores: in one process, or in a file.

A store keeps text without parsing it: one header and a growing list of entries (`BudgetStore`;
`postgres` has the store on a server). Privacy depends on `Chain` only. It checks that every entry
confirms all earlier ones, adds up their prices, and remembers the last known end of the chain.
"""

import getpass
import hashlib
import json
import math
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from skdp.privacy.kernel.accounting import (
    HAIR,
    BudgetError,
    check_choice,
    check_delta,
    check_epsilon,
    check_mu,
    gdp_epsilon,
    pure_mu,
)
from skdp.privacy.kernel.samplers import SystemBits
from skdp.privacy.laws.calibration import gdp_mu, pure_epsilon

# How the prices of fits add up in a shared budget (Proposition 74).


#: epsilon or mu^2, and delta; exact
Pair = tuple[Fraction, Fraction]


class BudgetTerms(NamedTuple):
    """Limits of a budget, and the rule of addition of prices."""

    epsilon: float
    delta: float
    composition: str
    adjacency: str
    unit: str

    @classmethod
    def checked(
        cls, epsilon: Any, delta: Any, composition: Any, adjacency: Any, unit: Any
    ) -> "BudgetTerms":
        """Return the terms, or raise a ValueError that names what is out of range."""
        check_choice("composition", composition, ("sum", "gaussian"))
        check_choice("adjacency", adjacency, ("replace-one", "zero-out", "add-remove"))
        check_choice("unit", unit, ("row", "group"))
        terms = cls(check_epsilon(epsilon), check_delta(delta), composition, adjacency, unit)
        if composition == "gaussian" and terms.delta == 0:
            raise ValueError(
                "delta must be greater than 0 for composition='gaussian'; got 0. Use 'sum'."
            )
        return terms

    @property
    def limits(self) -> Pair:
        """Limits of the total cost."""
        if self.composition == "sum":
            return exact(self.epsilon), exact(self.delta)
        # fixed beforehand: a split that depends on what fits release is not covered; with the
        # hair, one Gaussian fit of (epsilon, delta / 2) fits
        mu = gdp_mu(self.epsilon, self.delta / 2) * HAIR
        return Fraction(mu) ** 2, exact(self.delta) / 2

    def cost(self, epsilon: float, delta: float, mu: float | None = None) -> Pair:
        """Return the cost of a fit."""
        if self.composition == "sum":
            return exact(epsilon), exact(delta)
        if mu is not None:
            return Fraction(mu) ** 2, Fraction(0)
        return Fraction(pure_mu(epsilon)) ** 2, exact(delta)

    def spent(self, costs: Pair) -> tuple[float, float]:
        """Return the (epsilon, delta) of costs, rounded up."""
        if self.composition == "sum" or not costs[0]:
            return rounded_up(costs[0]), rounded_up(costs[1])
        mu = math.sqrt(costs[0]) * (1 + 1e-12)
        # within the limits it is no more than the total, however the curve rounds
        epsilon = min(gdp_epsilon(mu, self.delta / 2), self.epsilon)
        return epsilon, rounded_up(costs[1] + exact(self.delta) / 2)

    def left(self, costs: Pair) -> tuple[float, float]:
        """Return the largest (epsilon, delta) without a mu that still fits, rounded down."""
        left, left_delta = (limit - cost for limit, cost in zip(self.limits, costs, strict=True))
        if self.composition == "sum":
            return _down(left), _down(left_delta)
        return pure_epsilon(math.sqrt(left) * (1 - 1e-12)), _down(left_delta)


def exact(value: float) -> Fraction:
    """Return the number that Python prints: ten times 0.1 is 1, and not a hair more.

    A float is less than 2^-53 of itself away, and whatever makes noise for an epsilon or a mu
    keeps a larger margin: Proposition 74.
    """
    return Fraction(repr(value))


def rounded_up(value: Fraction) -> float:
    """Return the least number that prints as the value, or as more."""
    number = float(value)
    return math.nextafter(number, math.inf) if exact(number) < value else number


def _down(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, -math.inf) if exact(number) > value else number


NOTHING = "Nothing was charged, and no row was read."
#: seconds that a charge waits for those of others
PATIENCE = 30.0
_TABLES = """
CREATE TABLE skdp_budget_2 (header TEXT NOT NULL);
CREATE TABLE skdp_charges_2 (entry TEXT NOT NULL, head TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Charge:
    """Charge of one fit; no number in it comes from data.

    Parameters
    ----------
    label : str
        Name of the charged estimator.
    epsilon, delta, mu : float, float, float or None
        The price: in nats, as a probability, and as a Gaussian-DP parameter, if any.
    adjacency, unit : str
        Adjacency and unit of the price.
    process, time : int, str
        Process and time, as notes only; an empty time without a clock.
    stream : str or None
        Identity of the seeded noise of the fit, which no other fit may share; None for noise from
        the operating system.
    person : str
        Person: the login of a database, or of the operating system. A database confirms it; in a
        file it is a note. Empty if unknown.
    head : str
        Position in the chain of charges: the identity of the budget, an index, and a hash of the
        terms of the budget and of all charges up to this one.
    """

    label: str
    epsilon: float
    delta: float
    mu: float | None
    adjacency: str
    unit: str
    process: int
    time: str
    stream: str | None = None
    person: str = ""
    head: str = ""

    @classmethod
    def now(
        cls,
        label: str,
        epsilon: float,
        delta: float,
        mu: float | None,
        adjacency: str,
        unit: str,
        stream: str | None = None,
    ) -> "Charge":
        """Return a charge of this process, at this moment."""
        # databases take no lone surrogates, and no zeros
        label = str(label).encode("utf-8", "replace").decode().replace("\0", "?")
        time = ""
        # a note only: nothing depends on a clock
        with suppress(Exception):
            time = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(label, epsilon, delta, mu, adjacency, unit, os.getpid(), time, stream)

    def entry(self) -> str:
        """Return the charge as unique text, without its head."""
        facts = asdict(self)
        del facts["head"]
        # equal charges after the same ones, as of two copies of a file, have different heads
        return json.dumps({**facts, "nonce": SystemBits().words(2).tobytes().hex()})

    @classmethod
    def of_entry(cls, entry: str, head: str) -> "Charge":
        """Return the charge of an entry, or raise a ValueError or TypeError."""
        facts = json.loads(entry)
        del facts["nonce"]
        charge = cls(**facts, head=head)
        check_epsilon(charge.epsilon), check_delta(charge.delta)
        if charge.mu is not None:
            check_mu(charge.mu)
        if not all(isinstance(stream, str) for stream in charge.streams):
            raise TypeError(f"stream={charge.stream!r} is no identity of noise")
        return charge

    @property
    def streams(self) -> tuple[str, ...]:
        """The identity of its seeded noise, if there is one."""
        return () if self.stream is None else (self.stream,)


# The chain: every entry confirms all before it.


class BudgetStore(ABC):
    """Base class for stores of a chain; another database needs no more than this.

    A store keeps and compares text. It neither parses nor hashes, and adds nothing up: `Chain`
    checks its results. There are three requirements. `read` returns one consistent state. `append`
    is atomic: of two calls with the same expected head, one returns False. After `append` returns
    True, the entry is on the disk.
    """

    #: how errors call it: "the privacy budget in ..."
    name: str

    @property
    def person(self) -> str:
        """Person for the charge; used after a `read`."""
        # a note only: there may be no such user, as in a container
        with suppress(Exception):
            return getpass.getuser()
        return ""

    @abstractmethod
    def read(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the header, and all (entry, head) in the order in which they were appended.

        Raises
        ------
        BudgetError
            If it cannot be read.
        """

    @abstractmethod
    def append(self, entry: str, head: str, expected: str) -> bool:
        """Append an entry with its head if the last head is `expected`; return whether it was.

        Parameters
        ----------
        entry, head : str, str
            What is appended.
        expected : str
            Head of the last entry; empty if there is none.

        Raises
        ------
        BudgetError
            If writing fails. Nothing was appended, or the error says that it may have been.
        """


class Seen(NamedTuple):
    """Known end of a chain: its identity, number of charges, last hash, and total."""

    identity: str
    position: int
    digest: str
    #: the sum of costs; None if it is not known
    spent: Pair | None = None
    #: identities of seeded noise; known with the sum
    streams: tuple[str, ...] = ()

    @classmethod
    def of(cls, head: Any) -> "Seen":
        """Return the contents of a head, or raise a ValueError."""
        parts = head.split(":") if isinstance(head, str) else []
        if len(parts) != 3 or not parts[1].isdecimal():
            raise ValueError(f"head must be that of a charge or of a ledger; got {head!r}.")
        return cls(parts[0], int(parts[1]), parts[2])

    @property
    def head(self) -> str:
        """The same as text."""
        return f"{self.identity}:{self.position}:{self.digest}"


class ChainState(NamedTuple):
    """Checked contents of a chain.

    Parameters
    ----------
    identity, terms, spent : str, BudgetTerms, Pair
        Identity and terms of the budget, and total price of its charges.
    streams : frozenset of str
        Identities of the seeded noise of all charges.
    entries, digests : list of str
        ``digests[i]`` is the hash of the header and the first i entries.
    """

    identity: str
    terms: BudgetTerms
    spent: Pair
    streams: frozenset[str]
    entries: list[str]
    digests: list[str]

    @property
    def seen(self) -> Seen:
        """End of the chain."""
        streams = tuple(sorted(self.streams))
        return Seen(self.identity, len(self.entries), self.digests[-1], self.spent, streams)

    def holds(self, seen: Seen) -> bool:
        """Return whether the chain extends a known one."""
        known = seen.position < len(self.digests) and self.digests[seen.position] == seen.digest
        return known and seen.identity == self.identity

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges, in order."""
        return tuple(
            Charge.of_entry(entry, Seen(self.identity, i, self.digests[i]).head)
            for i, entry in enumerate(self.entries, 1)
        )


def chained(digest: str, text: str) -> str:
    """Return the hash of a text and of all earlier ones."""
    return hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()


def new_header(terms: BudgetTerms) -> str:
    """Return a unique header for a new budget."""
    identity = SystemBits().words(2).tobytes().hex()
    return json.dumps({"identity": identity, **terms._asdict()})


def refuse_shared_noise(stream: str | None, known: Collection[str]) -> None:
    """Raise if seeded noise was charged before: two fits that share noise have no price."""
    if stream in known:
        raise BudgetError(
            "a fit that was charged here had the same random_state, so both would have the same "
            f"noise (identity {stream}), which cancels in the difference of their results. "
            f"Use random_state=None, or another seed for every fit. {NOTHING}"
        )


class Chain:
    """Charges of a budget, read and checked from the first to the last at every use.

    Parameters
    ----------
    store : BudgetStore
        Store of the charges.
    head : str, default=None
        Last known head; None accepts any chain.
    """

    def __init__(self, store: BudgetStore, head: str | None = None) -> None:
        self.store = store
        self._seen = None if head is None else Seen.of(head)

    @property
    def head(self) -> str | None:
        """Last known head."""
        return None if self._seen is None else self._seen.head

    def read(self) -> ChainState:
        """Return the chain, or raise a BudgetError unless it has all known charges."""
        # first: what another thread sees meanwhile may be longer
        seen = self._seen
        header, links = self.store.read()
        try:
            state = _checked(header, links, seen)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self.error(f"is damaged, or is no privacy budget: {error}") from error
        if seen is not None:
            if seen.identity != state.identity:
                raise self.error("was replaced by another one")
            if not state.holds(seen):
                raise self.error("was put back to an earlier state, or edited")
        self._remember(state.seen)
        return state

    def add(self, charge: Charge, cost: Pair, limits: Pair) -> Charge | Pair:
        """Return the recorded charge, or the earlier spending if the charge is too large."""
        while True:
            state = self.read()
            refuse_shared_noise(charge.stream, state.streams)
            spent = total(state.spent, cost)
            if not within(spent, limits):
                return state.spent
            charge = replace(charge, person=self.store.person)
            entry, count = charge.entry(), len(state.entries)
            digest = chained(state.digests[-1], entry)
            streams = tuple(sorted(state.streams.union(charge.streams)))
            seen = Seen(state.identity, count + 1, digest, spent, streams)
            # whoever was faster has charged: look again
            if self.store.append(entry, seen.digest, state.digests[-1] if count else ""):
                self._remember(seen)
                return replace(charge, head=seen.head)

    def _remember(self, seen: Seen) -> None:
        if self._seen is None or seen.position >= self._seen.position:
            self._seen = seen

    def error(self, problem: str) -> BudgetError:
        """Return an error that names the store."""
        return BudgetError(f"{self.store.name} {problem}. {NOTHING}")


def _checked(header: str, links: list[tuple[str, str]], seen: Seen | None) -> ChainState:
    """Return the chain after a check of its hashes, or raise."""
    facts = json.loads(header)
    identity = str(facts.pop("identity"))
    terms = BudgetTerms.checked(**facts)
    digests = [chained("", header)]
    for i, (entry, digest) in enumerate(links, 1):
        digests.append(chained(digests[-1], entry))
        if digests[-1] != digest:
            raise ValueError(f"charge {i} is not the one that was made there")
    start, spent, streams = 0, (Fraction(0), Fraction(0)), set[str]()
    # a sum is never taken from the store: it is of charges that were read here
    if seen is not None and seen.spent and digests[seen.position :][:1] == [seen.digest]:
        start, spent, streams = seen.position, seen.spent, set(seen.streams)
    entries = [entry for entry, _ in links]
    for entry in entries[start:]:
        charge = Charge.of_entry(entry, "")
        if charge.adjacency not in (terms.adjacency, "local") or charge.unit != terms.unit:
            raise ValueError("a charge is for another adjacency or unit")
        if charge.stream in streams:
            raise ValueError("two of its charges share their noise")
        streams.update(charge.streams)
        spent = total(spent, terms.cost(charge.epsilon, charge.delta, charge.mu))
    if not within(spent, terms.limits):
        raise ValueError("its charges are more than it allows")
    return ChainState(identity, terms, spent, frozenset(streams), entries, digests)


class MemoryStore(BudgetStore):
    """Chain of one process, for any number of threads."""

    name = "the privacy budget in memory"

    def __init__(self, header: str) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._header, self._links = header, list[tuple[str, str]]()

    def _check_process(self) -> None:
        # before the lock, which another thread may have held when the process forked
        if os.getpid() != self._pid:
            raise BudgetError(
                "a budget in memory works in one process only, and this is a child process. Give "
                f"path= to share a budget between processes. {NOTHING}"
            )

    def read(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the header, and all (entry, head)."""
        self._check_process()
        with self._lock:
            return self._header, list(self._links)

    def append(self, entry: str, head: str, expected: str) -> bool:
        """Append an entry if the last head is `expected`; return whether it was."""
        self._check_process()
        with self._lock:
            if (self._links[-1][1] if self._links else "") != expected:
                return False
            self._links.append((entry, head))
        return True


class FileStore(BudgetStore):
    """Chain in an SQLite file, for any number of processes.

    Every call opens the file again: forks inherit nothing, and a missing file is noticed.
    """

    def __init__(self, path: str) -> None:
        self.path, self.name = path, f"the file of the privacy budget, {path!r},"

    def read(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the header, and all (entry, head)."""
        with self._opened("BEGIN") as file:
            row = file.execute("SELECT header FROM skdp_budget_2").fetchone()
            if row is None:
                raise sqlite3.DatabaseError("it holds no budget")
            rows = file.execute("SELECT entry, head FROM skdp_charges_2 ORDER BY rowid")
            return row[0], rows.fetchall()

    def create(self, header: str) -> None:
        """Create the file atomically; an existing file is unchanged."""
        path = self.path
        if os.path.exists(path):
            return
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            raise BudgetError(f"path must be in a directory that exists; there is no {folder!r}.")
        if os.path.exists(f"{path}-journal"):
            raise BudgetError(
                f"the privacy budget {path!r} has vanished, and has left a journal: find it, or "
                "remove the journal and so begin anew."
            )
        new = f"{path}.{os.getpid()}-{threading.get_ident()}"
        try:
            with suppress(FileNotFoundError):
                os.unlink(new)
            with closing(_connect(new, "rwc")) as file:
                file.executescript(f"BEGIN; {_TABLES}")
                file.execute("INSERT INTO skdp_budget_2 VALUES (?)", (header,))
                file.execute("COMMIT")
            with suppress(FileExistsError):
                # another process may have been faster: then its file stays
                os.link(new, path)
        except (OSError, sqlite3.Error) as error:
            problem = f"the privacy budget {path!r} cannot be created ({error})."
            raise BudgetError(problem) from error
        finally:
            with suppress(OSError):
                os.unlink(new)

    def append(self, entry: str, head: str, expected: str) -> bool:
        """Append an entry if the last head is `expected`; return whether it was."""
        with self._opened("BEGIN IMMEDIATE") as file:
            last = "SELECT head FROM skdp_charges_2 ORDER BY rowid DESC LIMIT 1"
            row = file.execute(last).fetchone()
            if (row[0] if row else "") != expected:
                return False
            file.execute("INSERT INTO skdp_charges_2 VALUES (?, ?)", (entry, head))
        # only now it is on the disk
        return True

    @contextmanager
    def _opened(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Yield the file, in a transaction; nothing is kept if that raises."""
        try:
            # never made anew: "rw" opens only what there is
            with closing(_connect(self.path, "rw")) as file:
                file.execute(begin)
                yield file
                file.execute("COMMIT")
        except (sqlite3.Error, ValueError, TypeError, IndexError) as error:
            raise self._explained(error) from error

    def _error(self, problem: str) -> BudgetError:
        return BudgetError(f"{self.name} {problem}. {NOTHING}")

    def _explained(self, error: Exception) -> BudgetError:
        if not os.path.exists(self.path):
            return self._error("has vanished, or was never there")
        if isinstance(error, sqlite3.OperationalError) and "no such" not in str(error):
            # locked for too long, read-only, a full disk: SQLite says it well
            return self._error(f"cannot be used: {error}")
        return self._error(f"is damaged, or is no privacy budget: {error}")


def full_path(path: Any) -> str:
    """Return the full path of a file, or raise."""
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not (isinstance(path, str) and path and "\0" not in path):
        raise ValueError(f"path must be None, or the name of a file as a str; got {path!r}.")
    return os.path.realpath(path)


def _connect(path: str, mode: str) -> sqlite3.Connection:
    """Return a connection whose commits are on the disk, the directory included."""
    uri = f"{Path(path).as_uri()}?mode={mode}"
    file = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
    try:
        file.execute("PRAGMA synchronous = EXTRA")
    except sqlite3.Error:
        file.close()
        raise
    return file


def total(one: Pair, other: Pair) -> Pair:
    """Return the sum of two costs."""
    return one[0] + other[0], one[1] + other[1]


def within(spent: Pair, limits: Pair) -> bool:
    """Return whether costs are within limits."""
    return spent[0] <= limits[0] and spent[1] <= limits[1]
