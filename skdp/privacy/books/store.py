# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Storage for the charges of a shared budget: in one process, or in a file."""

import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from skdp.privacy.kernel.accounting import (
    HAIR,
    check_choice,
    check_delta,
    check_epsilon,
    gdp_epsilon,
    pure_mu,
)
from skdp.privacy.kernel.errors import BudgetError
from skdp.privacy.kernel.samplers import SystemBits
from skdp.privacy.laws.calibration import gdp_mu, pure_epsilon

# How the prices of fits add up in a shared budget (Proposition 74).


#: epsilon or mu^2, and delta; exact
Pair = tuple[Fraction, Fraction]


class BudgetTerms(NamedTuple):
    """What a budget allows, and the rule by which prices add up."""

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
        check_choice("adjacency", adjacency, ("replace-one", "zero-out"))
        check_choice("unit", unit, ("row", "client"))
        terms = cls(check_epsilon(epsilon), check_delta(delta), composition, adjacency, unit)
        if composition == "gaussian" and terms.delta == 0:
            raise ValueError(
                "delta must be greater than 0 for composition='gaussian'; got 0. Use 'sum'."
            )
        return terms

    @property
    def limits(self) -> Pair:
        """What costs may add up to."""
        if self.composition == "sum":
            return _decimal(self.epsilon), _decimal(self.delta)
        # fixed beforehand: a split that depends on what fits release is not covered; with the
        # hair, one Gaussian fit of (epsilon, delta / 2) fits
        mu = gdp_mu(self.epsilon, self.delta / 2) * HAIR
        return Fraction(mu) ** 2, _decimal(self.delta) / 2

    def cost(self, epsilon: float, delta: float, mu: float | None = None) -> Pair:
        """Return what a fit counts."""
        if self.composition == "sum":
            return _decimal(epsilon), _decimal(delta)
        if mu is not None:
            return Fraction(mu) ** 2, Fraction(0)
        return Fraction(pure_mu(epsilon)) ** 2, _decimal(delta)

    def spent(self, costs: Pair) -> tuple[float, float]:
        """Return the (epsilon, delta) of costs, rounded up."""
        if self.composition == "sum" or not costs[0]:
            return _up(costs[0]), _up(costs[1])
        mu = math.sqrt(costs[0]) * (1 + 1e-12)
        # within the limits it is no more than the total, however the curve rounds
        epsilon = min(gdp_epsilon(mu, self.delta / 2), self.epsilon)
        return epsilon, _up(costs[1] + _decimal(self.delta) / 2)

    def left(self, costs: Pair) -> tuple[float, float]:
        """Return the largest (epsilon, delta) without a mu that still fits, rounded down."""
        left, left_delta = (limit - cost for limit, cost in zip(self.limits, costs, strict=True))
        if self.composition == "sum":
            return _down(left), _down(left_delta)
        return pure_epsilon(math.sqrt(left) * (1 - 1e-12)), _down(left_delta)


def _decimal(value: float) -> Fraction:
    """Return the number that Python prints: ten times 0.1 is 1, and not a hair more.

    A float is less than 2^-53 of itself away, and whatever makes noise for an epsilon or a mu
    keeps a larger margin: Proposition 74.
    """
    return Fraction(repr(value))


def _up(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, math.inf) if _decimal(number) < value else number


def _down(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, -math.inf) if _decimal(number) > value else number


NOTHING = "Nothing was charged, and no row was read."
# seconds that a charge waits for those of others
_PATIENCE = 30.0
_TABLES = """
CREATE TABLE skdp_budget_1 (identity TEXT, epsilon REAL, delta REAL, composition TEXT,
    adjacency TEXT, unit TEXT, spent TEXT, spent_delta TEXT, n_charges INTEGER);
CREATE TABLE skdp_charges_1 (label TEXT, epsilon REAL, delta REAL, mu REAL,
    adjacency TEXT, unit TEXT, process INTEGER, time TEXT, stream TEXT);
"""


@dataclass(frozen=True)
class Charge:
    """What one fit was charged; no number in it comes from data.

    Parameters
    ----------
    label : str
        Who was charged: the name of an estimator.
    epsilon, delta, mu : float, float, float or None
        The price: in nats, as a probability, and as a Gaussian-DP parameter where it has one.
    adjacency, unit : str
        What the price is relative to.
    process, time : int, str
        Where and when, as notes only; an empty time if there was no clock.
    stream : str or None
        Identity of the seeded noise of the fit, which no other fit may share; None if its noise
        came from the operating system.
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
        # sqlite takes no lone surrogates
        label = str(label).encode("utf-8", "replace").decode()
        time = ""
        # a note only: nothing depends on a clock
        with suppress(Exception):
            time = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(label, epsilon, delta, mu, adjacency, unit, os.getpid(), time, stream)


class MemoryStore:
    """Charges of one process, whatever the number of its threads."""

    def __init__(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._spent, self._charges = (Fraction(0), Fraction(0)), list[Charge]()

    def _check_process(self) -> None:
        # before the lock, which another thread may have held when the process forked
        if os.getpid() != self._pid:
            raise BudgetError(
                "a budget in memory is for one process, and this is a child of it: give path= to "
                f"share a budget between processes. {NOTHING}"
            )

    def add(self, charge: Charge, cost: Pair, limits: Pair) -> Pair | None:
        """Record a charge and return None, or return what was spent before if it is too much."""
        self._check_process()
        with self._lock:
            refuse_shared_noise(charge.stream, (c.stream for c in self._charges))
            spent = total(self._spent, cost)
            if not within(spent, limits):
                return self._spent
            # in this order: what is interrupted in between counts
            self._spent = spent
            self._charges.append(charge)
        return None

    def read(self) -> tuple[Pair, int]:
        """Return what was spent, and the number of charges."""
        self._check_process()
        with self._lock:
            return self._spent, len(self._charges)

    def streams(self) -> tuple[str, ...]:
        """Return the identities of all seeded noise that was charged."""
        return tuple(c.stream for c in self.charges() if c.stream is not None)

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges, in order."""
        self._check_process()
        with self._lock:
            return tuple(self._charges)


class FileStore:
    """Charges in an SQLite file, for any number of processes.

    Every call opens the file anew: nothing is inherited by forks, and a file that vanished or
    was replaced is noticed.
    """

    def __init__(self, path: str, identity: str = "", n_known: int = 0) -> None:
        self.path, self.identity, self.n_known = path, identity, n_known

    @classmethod
    def holding(cls, path: str, terms: BudgetTerms) -> "FileStore":
        """Return the file of a budget with these terms; it is made if it is not there."""
        create(path, terms)
        file = cls(path)
        for name, theirs in file.recognise()._asdict().items():
            if (ours := getattr(terms, name)) != theirs:
                raise BudgetError(
                    f"the privacy budget {path!r} has {name}={theirs!r}; got {ours!r}. "
                    "PrivacyBudget.open(path) takes it as it is."
                )
        return file

    def recognise(self) -> BudgetTerms:
        """Return the terms in the file, and from now on accept no other file."""
        with self._opened("BEGIN") as (_, row):
            self.identity = row[0]
            return BudgetTerms.checked(*row[1:6])

    def add(self, charge: Charge, cost: Pair, limits: Pair) -> Pair | None:
        """Record a charge and return None, or return what was spent before if it is too much."""
        with self._opened("BEGIN IMMEDIATE") as (file, row):
            refuse_shared_noise(charge.stream, _streams(file))
            before = Fraction(row[6]), Fraction(row[7])
            spent = total(before, cost)
            if not within(spent, limits):
                return before
            file.execute(
                "INSERT INTO skdp_charges_1 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(charge)
            )
            file.execute(
                "UPDATE skdp_budget_1 SET spent = ?, spent_delta = ?, n_charges = n_charges + 1",
                tuple(map(str, spent)),
            )
        # only now it is on the disk
        self.n_known = max(self.n_known, row[8] + 1)
        return None

    def read(self) -> tuple[Pair, int]:
        """Return what was spent, and the number of charges."""
        with self._opened("BEGIN") as (_, row):
            spent = Fraction(row[6]), Fraction(row[7])
        # an earlier state is noticed from now on, whoever made the charges
        self.n_known = max(self.n_known, row[8])
        return spent, row[8]

    def streams(self) -> tuple[str, ...]:
        """Return the identities of all seeded noise that was charged."""
        with self._opened("BEGIN") as (file, _):
            return _streams(file)

    def charges(self) -> tuple[Charge, ...]:
        """Return all charges, in order."""
        with self._opened("BEGIN") as (file, _):
            rows = file.execute("SELECT * FROM skdp_charges_1 ORDER BY rowid").fetchall()
            return tuple(Charge(*each) for each in rows)

    @contextmanager
    def _opened(self, begin: str) -> Iterator[tuple[sqlite3.Connection, Any]]:
        """Yield the file and its first row, in a transaction; nothing is kept if that raises."""
        n_known = self.n_known
        try:
            # never made anew: "rw" opens only what there is
            with closing(_connect(self.path, "rw")) as file:
                file.execute(begin)
                row = file.execute("SELECT * FROM skdp_budget_1").fetchone()
                if row is None:
                    raise sqlite3.DatabaseError("it holds no budget")
                if self.identity not in ("", row[0]):
                    raise self._error("was replaced by another one")
                if int(row[8]) < n_known:
                    raise self._error("was put back to an earlier state")
                yield file, row
                file.execute("COMMIT")
        except BudgetError:
            raise
        except (sqlite3.Error, ValueError, TypeError, IndexError) as error:
            raise self._explained(error) from error

    def _error(self, problem: str) -> BudgetError:
        return BudgetError(f"the file of the privacy budget, {self.path!r}, {problem}. {NOTHING}")

    def _explained(self, error: Exception) -> BudgetError:
        if not os.path.exists(self.path):
            return self._error("has vanished, or was never there")
        if isinstance(error, sqlite3.OperationalError) and "no such" not in str(error):
            # locked for too long, read-only, a full disk: SQLite says it well
            return self._error(f"cannot be used: {error}")
        return self._error(f"is damaged, or is no privacy budget: {error}")


def _streams(file: sqlite3.Connection) -> tuple[str, ...]:
    rows = file.execute("SELECT stream FROM skdp_charges_1 WHERE stream IS NOT NULL").fetchall()
    return tuple(row[0] for row in rows)


def refuse_shared_noise(stream: str | None, known: Iterable[str | None]) -> None:
    """Raise if seeded noise was charged before: two fits that share noise have no price."""
    if stream is not None and stream in known:
        raise BudgetError(
            "a fit that was charged here had the same random_state, so both would have the same "
            f"noise (its identity is {stream}), and differences of what they release would have "
            f"none. Use random_state=None, or another seed for every fit. {NOTHING}"
        )


def full_path(path: Any) -> str:
    """Return the full path of a file, or raise."""
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not (isinstance(path, str) and path and "\0" not in path):
        raise ValueError(f"path must be None, or the name of a file as a str; got {path!r}.")
    return os.path.realpath(path)


def create(path: str, terms: BudgetTerms) -> None:
    """Make the file of a budget, whole or not at all; one that is there stays as it is."""
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
    row = (SystemBits().words(2).tobytes().hex(), *terms, "0", "0", 0)
    try:
        with suppress(FileNotFoundError):
            os.unlink(new)
        with closing(_connect(new, "rwc")) as file:
            file.executescript(f"BEGIN; {_TABLES}")
            file.execute("INSERT INTO skdp_budget_1 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            file.execute("COMMIT")
        with suppress(FileExistsError):
            # another process may have been faster: then its file stays
            os.link(new, path)
    except (OSError, sqlite3.Error) as error:
        raise BudgetError(f"the privacy budget {path!r} cannot be created ({error}).") from error
    finally:
        with suppress(OSError):
            os.unlink(new)


def _connect(path: str, mode: str) -> sqlite3.Connection:
    """Return a connection whose commits are on the disk, the directory included."""
    uri = f"{Path(path).as_uri()}?mode={mode}"
    file = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
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
