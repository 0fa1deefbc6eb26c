# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Releases of a fit in a file, to resume an interrupted fit without a second price.

The file has the released numbers in order, each with a digest of its query; it has no rows, no
noise, and no state of a generator. When the same fit runs again, the same queries in the same
order are answered from the file, and recorded on the ledger at their prices, without reading a
row. The first query that is not in the file is the first new release (Proposition 101).

A drawn but unused number must not be readable in the file: the next run would draw another one,
and both together would cost more than charged. So a number is written masked, and its key of a few
bytes afterwards. `Pages` is the file; `ResumedCurator` is between a plan and its curator;
`open_curator` makes either.
"""

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from skdp.privacy.kernel.accounting import BudgetError
from skdp.privacy.kernel.charging import Prepaid, Rows
from skdp.privacy.kernel.curator import Curator
from skdp.privacy.kernel.ledger import Record
from skdp.privacy.kernel.mechanisms import Law
from skdp.privacy.kernel.samplers import SystemBits, noise_identity
from skdp.privacy.laws.additive import (
    GaussianMechanism,
    LaplaceMechanism,
    NotedNoise,
    SampledGaussianMechanism,
)

# What was asked, in 32 bytes.

#: parameters of estimators that say nothing about what is released
_OF_NO_CONSEQUENCE = {"budget", "random_state", "verbose", "n_jobs"}


def digest(asked: Any) -> bytes:
    """Return a digest of 32 bytes of a query, a law or parameters, for all processes.

    Parameters
    ----------
    asked : object
        Numbers, text, arrays, containers, dataclasses and objects with parameters or attributes.
        Functions and classes are identified by name.

    Returns
    -------
    digest : bytes of length 32
        Equal digests for equal bits, and different ones otherwise.
    """
    found = hashlib.blake2b(digest_size=32)
    for part in _pieces(asked):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def _pieces(asked: Any) -> Iterator[bytes]:
    """Yield the parts of an object."""
    kind = type(asked)
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if isinstance(asked, np.ndarray) and asked.dtype.kind in "biufcSU":
        yield f"{asked.dtype.str} {asked.shape}".encode()
        yield np.ascontiguousarray(asked).tobytes()
    elif isinstance(asked, float | np.floating):
        yield float(asked).hex().encode()
    elif asked is None or isinstance(asked, bool | int | str | bytes | np.generic):
        yield repr(asked).encode()
    elif hasattr(asked, "__qualname__"):
        yield f"{asked.__module__}.{asked.__qualname__}".encode()
    else:
        members = _members(asked)
        yield str(len(members)).encode()
        for name, value in members:
            yield repr(name).encode()
            yield from _pieces(value)


def _members(asked: Any) -> list[tuple[Any, Any]]:
    if isinstance(asked, np.ndarray | list | tuple):
        return list(enumerate(asked))
    if isinstance(asked, dict):
        return list(asked.items())
    if isinstance(asked, set | frozenset):
        return sorted((repr(one), None) for one in asked)
    if is_dataclass(asked):
        return [(one.name, getattr(asked, one.name)) for one in fields(asked)]
    if hasattr(asked, "get_params"):
        found = asked.get_params(deep=False)
        return sorted((name, found[name]) for name in found if name not in _OF_NO_CONSEQUENCE)
    if hasattr(asked, "tocsr"):
        return [(name, getattr(asked.tocsr(), name)) for name in ("data", "indices", "indptr")]
    return sorted(getattr(asked, "__dict__", {}).items())


# The file.

_TITLE = b"skdp: releases of fits, 1\n"
_FIT, _RELEASE = b"F", b"R"
# bytes of: kind, size and what was asked; a check; a key; and that with a check of the whole page
_HEAD, _CHECK, _KEY, _COMMIT = 1 + 8 + 32, 16, 32, 48


class Page(NamedTuple):
    """One entry: the beginning of a fit, with the head of its charge, or a release."""

    kind: bytes
    asked: bytes
    content: bytes


def _check(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=_CHECK).digest()


def _masked(content: bytes, key: bytes) -> bytes:
    """Return masked bytes, independent of the content without the key; its own inverse."""
    stream = np.frombuffer(hashlib.shake_256(key).digest(len(content)), np.uint8)
    return (np.frombuffer(content, np.uint8) ^ stream).tobytes()


class Pages:
    """File of releases, for one process at a time.

    Parameters
    ----------
    path : str
        Path; the file is created for this user only if it does not exist.

    Raises
    ------
    ValueError
        If the file is of another kind, damaged, or in use by another process.
    """

    def __init__(self, path: str) -> None:
        self.path, self._next, self._is_whole = path, 0, True
        self._owner = os.getpid(), threading.get_ident()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _lock(self._file, path)
            self._pages = self._read()
        except BaseException:
            os.close(self._file)
            raise

    def _read(self) -> list[Page]:
        data = _read_whole(self._file)
        # a file is made in one go, or its title is written anew
        if len(data) < len(_TITLE) and _TITLE.startswith(data):
            os.lseek(self._file, 0, os.SEEK_SET)
            self._write(_TITLE)
            _sync_folder(self.path)
            return []
        if not data.startswith(_TITLE):
            raise ValueError(
                f"path must be a file of releases, or new; {self.path!r} is another file."
            )
        pages, start = list[Page](), len(_TITLE)
        while start < len(data):
            page, stop = self._page(data, start)
            if page is None:
                break
            pages.append(page)
            start = stop
        # what was not unmasked was never used
        os.ftruncate(self._file, start)
        os.lseek(self._file, start, os.SEEK_SET)
        os.fsync(self._file)
        return pages

    def _page(self, data: bytes, start: int) -> tuple[Page | None, int]:
        """Return the page at a position (None if unfinished), and its end."""
        body = start + _HEAD + _CHECK
        head, check = data[start : start + _HEAD], data[start + _HEAD : body]
        size = int.from_bytes(head[1:9], "little")
        content, commit = data[body : body + size], data[body + size : body + size + _COMMIT]
        # a system that stops may leave zeros where it has not written yet
        if len(data) < body or not any(data[start:]):
            return None, start
        is_known, key = check == _check(head), commit[:_KEY]
        if is_known and not any(data[body + size :]):
            return None, start
        sound = is_known and len(commit) == _COMMIT
        if not sound or commit[_KEY:] != _check(head, content, key):
            raise ValueError(
                f"the file of releases {self.path!r} is damaged. What it holds was paid for, and "
                "cannot be continued: fit with a new file, at the price of a whole fit."
            )
        return Page(head[:1], head[9:], _masked(content, key)), body + size + _COMMIT

    def recall(self, kind: bytes, asked: bytes, what: str) -> bytes | None:
        """Return the content of the next page, or None after the last one.

        Parameters
        ----------
        kind, asked : bytes
            Required kind and digest.
        what : str
            Description in words.

        Raises
        ------
        ValueError
            If it is another page.
        """
        if not self._is_whole:
            raise ValueError(
                f"the file of releases {self.path!r} could not be written to: end the block of "
                "`resumable`, and begin it anew when that is mended."
            )
        if self._next == len(self._pages):
            return None
        page = self._pages[self._next]
        if (page.kind, page.asked) != (kind, asked):
            raise ValueError(
                f"{what} is not what comes next in the file of releases {self.path!r}: fits must "
                "have the parameters, the number of rows and features, the versions of skdp and "
                "numpy and the order that they had when they were interrupted. To fit something "
                "else, at a price of its own, give another path."
            )
        self._next += 1
        return page.content

    def next_head(self) -> str:
        """Return the head of the charge of the next fit; empty if there is none."""
        page = self._pages[self._next] if self._next < len(self._pages) else None
        return page.content.decode() if page is not None and page.kind == _FIT else ""

    def add(self, kind: bytes, asked: bytes, content: bytes) -> None:
        """Write a page; it is on the disk when this returns."""
        head, key = (
            kind + len(content).to_bytes(8, "little") + asked,
            SystemBits().words(_KEY // 8).tobytes(),
        )
        masked = _masked(content, key)
        self._is_whole = False
        self._write(head + _check(head) + masked)
        # nobody can read it before that is whole
        self._write(key + _check(head, masked, key))
        self._is_whole = True
        self._pages.append(Page(kind, asked, content))
        self._next += 1

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fsync(self._file)

    @property
    def is_ours(self) -> bool:
        """Whether it was opened by this thread of this process, and not before a fork."""
        return self._owner == (os.getpid(), threading.get_ident())

    def close(self) -> None:
        """Close the file, and release it to others."""
        os.close(self._file)


def _read_whole(file: int) -> bytes:
    parts = []
    while part := os.read(file, 1 << 24):
        parts.append(part)
    return b"".join(parts)


def _lock(file: int, path: str) -> None:
    """Lock a file for this process until it is closed, or raise a ValueError."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(
            f"another process, or another `with`, has the file of releases {path!r}: wait until it "
            "is done, or give another path."
        ) from None


def _sync_folder(path: str) -> None:
    if sys.platform != "win32":
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# A curator that answers from the file what is in it.


#: laws whose noise is made of words that depend on nothing but the noise
_KNOWN = (GaussianMechanism, LaplaceMechanism, SampledGaussianMechanism)


class ResumedCurator:
    """Curator with first releases possibly from an earlier process.

    Everything is charged and recorded as without a file: charges of the process that made a
    release are repeated on this ledger, because the other ledger is lost.

    Parameters
    ----------
    curator : Curator
        Holds the rows.
    pages : Pages
        The file.
    """

    def __init__(self, curator: Curator, pages: Pages) -> None:
        self._curator, self._pages, self._turn = curator, pages, threading.RLock()
        self._prepaid: dict[Prepaid, bytes] = {}
        self._asked = b""
        #: what the file has for the release that is being made, or None
        self._found: bytes | None = None

    @property
    def ledger(self) -> Record:
        """Releases so far."""
        return self._curator.ledger

    def map_rows(self, function: Callable[[Any], Any]) -> None:
        """Replace the private rows by a function of them: see `Curator.map_rows`."""
        self._curator.map_rows(function)

    def prepay(self, query: Any, law: Law, count: int, *, rows: Rows | None = None) -> Prepaid:
        """Charge for a number of releases at once: see `Curator.prepay`."""
        prepaid = self._curator.prepay(query, self._recorded(law), count, rows=rows)
        self._prepaid[prepaid] = digest((type(law), law))
        return prepaid

    def release(self, query: Any, law: Law | Prepaid, rows: Rows | None = None) -> Any:
        """Release one statistic, or return the earlier release: see `Curator.release`."""
        with self._turn:
            if isinstance(law, Prepaid):
                known = self._prepaid.get(law)
            else:
                known, law = digest((type(law), law)), self._recorded(law)
            self._asked = digest((query, known, rows))
            self._found = self._pages.recall(_RELEASE, self._asked, f"the release {query.name!r}")
            return self._curator.release(query, law, rows)

    def _recorded(self, law: Any) -> NotedNoise:
        if type(law) not in _KNOWN:
            raise ValueError(
                f"what {type(law).__name__} releases cannot be written to a file and continued: "
                "resumable is for noise that is added to sums. Fit outside of it."
            )
        return NotedNoise(law, self._recall, self._note)

    def _recall(self) -> Any:
        """Return the release in the file, or None."""
        found = self._found
        return None if found is None else np.frombuffer(found, "<f8").astype(np.float64)

    def _note(self, released: Any) -> None:
        """Write a release to the file."""
        self._pages.add(_RELEASE, self._asked, released.astype("<f8").tobytes())


class PaidBudget:
    """Shared budget with a single charge for a fit and its continuations.

    Parameters
    ----------
    budget : PrivacyBudget
        The budget.
    pages, asked, head : Pages, bytes, bytes or None
        File; digest of the fit; and head of its charge, None for a new fit.
    """

    def __init__(self, budget: Any, pages: Pages, asked: bytes, head: bytes | None) -> None:
        self._budget, self._pages, self._asked, self._head = budget, pages, asked, head

    def charge(self, *price: Any, **facts: Any) -> Any:
        """Charge the budget, unless it holds the charge of this fit."""
        if self._head is None:
            charge = self._budget.charge(*price, **facts)
            self._pages.add(_FIT, self._asked, charge.head.encode())
            return charge
        head = self._head.decode()
        if head and self._budget.contains(head):
            return ChargedBefore(head)
        if getattr(self._budget, "path", None) is None:
            # of another process, or of none: this one has not paid
            return self._budget.charge(*price, **facts)
        raise BudgetError(
            "the shared budget does not hold the charge of the fit that is to be continued: it was "
            "put back to an earlier state, or is another one. Pass the budget that was charged, or "
            "fit with a new file of releases."
        )


class ChargedBefore(NamedTuple):
    """A charge that is not repeated, with its position in the chain of its budget."""

    head: str


# Fits within `resumable`.

_PAGES: ContextVar[Pages | None] = ContextVar("pages of the fits that are to be resumable")


def open_curator(described: Any, admit: Callable[[], Any], **options: Any) -> Any:
    """Return the curator of a fit; within `resumable`, with releases in a file.

    Parameters
    ----------
    described : object
        Further determinants of the releases: an estimator with its parameters. None for auxiliary
        fits, such as to made-up rows, which are never in a file.
    admit, **options : callable, dict
        Of `Curator`.
    """
    pages = _PAGES.get(None)
    if pages is None or described is None or not pages.is_ours:
        return Curator(admit, **options)
    names = ("n_rows", "epsilon", "delta", "adjacency", "unit", "mu", "purpose", "assumptions")
    facts = [(name, options[name]) for name in names if name in options]
    noise = noise_identity(options["random_state"], options["purpose"])
    asked = digest((described, facts, noise))
    head = pages.recall(_FIT, asked, f"a fit of {options['purpose']}")
    budget = options.get("budget")
    if budget is not None:
        options["budget"] = PaidBudget(budget, pages, asked, head)
    curator = Curator(admit, **options)
    if budget is None and head is None:
        pages.add(_FIT, asked, b"")
    return ResumedCurator(curator, pages)


def is_paid(budget: Any) -> bool:
    """Return whether a budget has the charge of the next fit, and so needs no check.

    Parameters
    ----------
    budget : PrivacyBudget
        Budget of an estimator before its fit.
    """
    pages = _PAGES.get(None)
    head = "" if pages is None or not pages.is_ours else pages.next_head()
    return bool(head) and bool(budget.contains(head))


def refuse_resumable(estimator: Any) -> None:
    """Raise a ValueError within `resumable`, for a search: a file would have all of its runs."""
    pages = _PAGES.get(None)
    if pages is not None and pages.is_ours:
        raise ValueError(
            f"{type(estimator).__name__} cannot be resumed: a file of releases would have the runs "
            "that it does not release. Fit outside of resumable. Nothing was charged."
        )


@contextmanager
def resumable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Write the releases of fits to a file, to resume after an interruption.

    Run the same lines again, with the same path: releases before the interruption are taken from
    the file, in the same order, and not paid for again. A completed fit has the same result. A
    shared `budget` is charged once, and with a seed the result equals the result of an
    uninterrupted fit.

    Parameters
    ----------
    path : str or path-like
        File, created if it does not exist, for one process at a time.

    Yields
    ------
    None
        Fits of the block are written; fits of other threads and processes are not.

    Raises
    ------
    ValueError
        If the file is of another kind, damaged, or in use; within the block, from a fit that is
        not the next one in the file, or that releases anything except noisy sums.
    BudgetError
        From a fit with a `budget` in a file or a database that lacks its charge.

    See Also
    --------
    skdp.PrivacyBudget : A budget that fits share.

    Notes
    -----
    The file contains releases, and no rows, noise or state of a generator; it is as public as the
    model. It is for estimators that add Gaussian or Laplace noise to sums, at every step or once:
    the default solvers of linear models, means, scalers. Noisy draws and minimisers raise at their
    first release; earlier charges to a shared budget remain. Private searches raise before any
    charge: the file would have runs that are not released.

    *Claim.* All processes together make the releases of one fit, each once, so the fit has its
    stated price for one row in its place, for any replacements of it between two releases
    (Proposition 101 of :ref:`the proofs <proofs>`). Rows may change in between: earlier releases
    are about the earlier rows. You must ensure that the number of rows is the same, and every row
    in its place. Resume from the file itself, never from a copy, and never from an earlier state,
    such as a backup: later releases would be drawn again, without payment.

    If a process stops between the charge to a shared budget and its note in the file, two writes
    to disks, the charge is lost: the fit is charged again.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.io import resumable
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> y = X[:, 0] > 0
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "fit.releases")
    >>> with resumable(path):
    ...     model = DPLogisticRegression(classes=[False, True], data_norm=4.0).fit(X, y)
    >>> with resumable(path):
    ...     again = DPLogisticRegression(classes=[False, True], data_norm=4.0).fit(X, y)
    >>> bool((again.coef_ == model.coef_).all()), again.privacy_spent_ == model.privacy_spent_
    (True, True)
    >>> folder.cleanup()
    """
    pages = Pages(os.fspath(path))
    before = _PAGES.set(pages)
    try:
        yield
    finally:
        _PAGES.reset(before)
        pages.close()
