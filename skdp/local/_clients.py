# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Clients with reports as bytes, and aggregators of reports.

A client has public parameters only: a domain of rows, a randomiser, a budget. It takes the row of
one person, makes one report through the gate, and returns it as bytes. An aggregator adds up
reports, which is post-processing. Nothing is pickled: parameters are JSON, and every received byte
is checked before use.

In this order: public parameters as plain data; the public part of a report; the layout of reports;
the client; the aggregator; sums for an estimator.
"""

import copy
import hashlib
import json
import struct
import threading
import zlib
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from skdp._sklearn import blas_on_one_thread
from skdp._typing import ArrayLike, Budget
from skdp.local._row_domains import (
    BallDomain,
    BoxDomain,
    CategoryDomain,
    GradientDomain,
    MomentDomain,
)
from skdp.local.randomisers.ball import Flip, Lift, Product
from skdp.local.randomisers.base import Randomiser
from skdp.local.randomisers.cube import PrivUnitCube
from skdp.local.randomisers.grid import EntrywiseGrid, ScalarGrid
from skdp.local.randomisers.privunit import PrivUnit, PrivUnitG
from skdp.local.randomisers.projunit import ProjUnit
from skdp.local.randomisers.report import LocalReports
from skdp.local.randomisers.subsets import CategorySubsets
from skdp.location._histogram import check_sorts
from skdp.privacy.books.ledger import Ledger
from skdp.privacy.kernel.curator import Curator
from skdp.privacy.kernel.samplers import SeededBits, make_bits
from skdp.privacy.laws.local_reports import LocalMechanism

# Public parameters as plain data. What they are made of is written here, and nothing else is made.


DOMAINS: dict[str, Any] = {
    # before the kind that it is made of
    "moments": MomentDomain,
    "ball": BallDomain,
    "box": BoxDomain,
    "categories": CategoryDomain,
    "gradients": GradientDomain,
}
RANDOMISERS: dict[str, Any] = {
    made.__name__: made
    for made in (
        CategorySubsets,
        EntrywiseGrid,
        Flip,
        Lift,
        PrivUnit,
        PrivUnitCube,
        PrivUnitG,
        Product,
        ProjUnit,
        ScalarGrid,
    )
}


def plain_randomiser(randomiser):
    """Return the public parameters of a randomiser as plain data."""
    made = {"kind": type(randomiser).__name__}
    for field in fields(randomiser):
        value = getattr(randomiser, field.name)
        if isinstance(value, Randomiser):
            value = plain_randomiser(value)
        elif isinstance(value, np.ndarray | tuple):
            value = np.asarray(value).tolist()
        made[field.name] = value
    return made


def randomiser_of(plain, base=Randomiser):
    """Return the randomiser of plain data, or raise a ValueError or a TypeError.

    Parameters
    ----------
    plain : object
        Data from any source.
    base : type, default=Randomiser
        Required base class.

    Returns
    -------
    randomiser : Randomiser
        Randomiser; its class checked the parameters, and computes the price from them.
    """
    kind = RANDOMISERS[plain["kind"]]
    wanted = {field.name: field.type for field in fields(kind)}
    if not issubclass(kind, base) or set(plain) != {"kind", *wanted}:
        raise ValueError(f"{plain['kind']} has other parameters, or stands in a wrong place.")
    return kind(**{name: _field(plain[name], wanted[name]) for name in wanted})


def _field(value, kind):
    """Return a field of a randomiser from plain data."""
    if isinstance(kind, type) and issubclass(kind, Randomiser):
        return randomiser_of(value, kind)
    if kind is np.ndarray:
        return np.array([_field(one, float) for one in value])
    if getattr(kind, "__origin__", None) is tuple:
        return tuple(_field(one, get_args(kind)[0]) for one in value)
    allowed = get_args(kind) or (kind,)
    if float in allowed and type(value) is int:
        value = float(value)
    if type(value) not in allowed:
        raise TypeError(f"a parameter of type {type(value).__name__} is of another type.")
    return value


# What of a report is public: a rotation, which follows from the identifier.


@dataclass(frozen=True, eq=False)
class CarriedVectors:
    """Vectors of rows after a public map, ready to be reported.

    Parameters
    ----------
    what : object
        Vectors, as for `LocalReports`.
    carried : callable
        A map of single rows that does not depend on the data.
    """

    what: Any
    carried: Any

    @property
    def name(self):
        """Name of the reported vectors."""
        return self.what.name

    def vectors(self, chunk):
        """Return the vectors of a chunk."""
        return self.carried(self.what.vectors(chunk))


# The layout of reports.


#: version of reports and of clients; a reader refuses all others
VERSION = 1
#: version, first bytes of the hash of the client, identifier; then the message, and its checksum
_HEAD, _CHECKSUM = struct.Struct("<B4s16s"), struct.Struct("<I")
_FORMAT = "skdp local client"


class RunningLedger:
    """A ledger for additions from several threads.

    `transform` must not change the attributes of an estimator, but each of its calls spends. So
    the estimator keeps one such object from `fit` on, and only its contents change.
    """

    def __init__(self):
        self.ledger, self._lock = Ledger(), threading.Lock()

    def add(self, ledger):
        """Add new releases."""
        with self._lock:
            # with a seed, what one row reports twice is one report: nothing is shared beyond that
            total = self.ledger + ledger
            self.ledger = replace(total, shared_noise=())

    def __getstate__(self):
        # a lock belongs to its process
        return {"ledger": self.ledger}

    def __setstate__(self, state):
        self.ledger, self._lock = state["ledger"], threading.Lock()


class LocalClient:
    """Client that reports the row of one person, from public parameters only.

    It is made by the method ``client`` of an estimator, or from the text of `to_json`. A report is
    randomised on the side of the client, before anybody sees it.

    Parameters
    ----------
    rows : object
        Public domain of rows.
    randomiser : object
        Randomiser of reports.
    epsilon : float
        Bound on the price of a report, in nats.
    budget : PrivacyBudget, default=None
        A budget of this person, shared by several clients. Each report is charged before the row
        is read, and refused if less is left. It is never sent.

    Attributes
    ----------
    epsilon : float
        Bound on the price of a report.
    n_features : int
        Number of entries of a row.
    ledger_ : Ledger
        Reports of this object, and their prices.
    privacy_spent_ : tuple of (float, float)
        The (epsilon, delta) of these reports together, for one person; delta is 0.

    See Also
    --------
    Aggregator : Adds up reports.
    LocalDPMean.client, LocalDPFrequencies.client, LocalDPLogisticRegression.client : Make clients.

    Notes
    -----
    Privacy. A report, all its bytes included, is epsilon-locally private (Proposition 92 of the
    guide). Its identifier is drawn by the operating system and is independent of the row, and so
    is the rotation of "projunit", which is computed from the identifier. The sender of a report is
    not hidden: that needs a shuffler, see :func:`shuffled_epsilon`. The client computes the price
    from the parameters of the randomiser, so a server cannot understate it. The total for a person
    is limited by `budget`. `random_state` of an estimator is not for clients: two clients with one
    seed would share their noise.

    Once. A client reports once. Another report spends again, even about the same row, and needs
    ``again=True``. Copies of a client, and clients of other fits, do not share this state; a
    `budget` in a file does.

    Examples
    --------
    >>> from skdp import LocalDPMean
    >>> from skdp.local import Aggregator, LocalClient
    >>> mean = LocalDPMean(epsilon=4.0)
    >>> text = mean.client(n_features=2).to_json()  # to everybody
    >>> aggregator = Aggregator(mean.client(n_features=2))
    >>> for row in [[0.5, 0.1], [0.4, -0.1], [0.6, 0.0]]:
    ...     client = LocalClient.from_json(text)  # where the person is
    ...     report = client.report(row)
    ...     aggregator.add(report)  # at the server
    >>> len(report), client.privacy_spent_[0] <= 4.0
    (33, True)
    >>> mean.fit_reports(aggregator).location_.shape
    (2,)
    """

    def __init__(self, rows: Any, randomiser: Any, epsilon: float, budget: Budget = None) -> None:
        self.epsilon, self.budget = float(epsilon), budget
        self.rows, self.randomiser = rows, randomiser
        self._account, self._n_reports = RunningLedger(), 0
        self._lock = threading.Lock()
        # a price above what was granted is refused here, and at every report again
        self._grid(randomiser)
        self._text = json.dumps(
            {
                "format": _FORMAT,
                "version": VERSION,
                "epsilon": self.epsilon,
                "rows": {"kind": _kind_of(rows), **rows.plain()},
                "randomiser": plain_randomiser(randomiser),
            },
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
        )
        self._mark = hashlib.blake2b(self._text.encode(), digest_size=4).digest()

    @property
    def n_features(self) -> int:
        """Number of entries of a row."""
        own = self.rows.n_features
        return int(self.randomiser.size if own is None else own)

    @property
    def ledger_(self) -> Ledger:
        """Reports of this object, and their prices."""
        return self._account.ledger

    @property
    def privacy_spent_(self) -> tuple[float, float]:
        """The (epsilon, delta) of these reports together."""
        return self.ledger_.epsilon(0.0), 0.0

    def report(self, row: ArrayLike, label: Any = None, *, again: bool = False) -> bytes:
        """Return one report of a row.

        Parameters
        ----------
        row : array-like of shape (n_features,)
            The private row of one person. It is mapped into the public domain, as in a fit.
        label : object, default=None
            The private label of the row, for the clients of a classifier.
        again : bool, default=False
            Whether to report again after an earlier report, which spends again.

        Returns
        -------
        report : bytes
            Report; its length and layout are in the user guide.

        Raises
        ------
        ValueError
            If the row has another shape, a value of another type than the categories (such as text
            beside numbers), or this object has reported before. Nothing was spent.
        BudgetError
            If less is left in the budget. Nothing was spent.
        """
        X = self._one(row)
        if (label is None) == self.rows.labelled:
            raise ValueError(
                "label must be given, and be one of the classes or another value."
                if self.rows.labelled
                else "label must be None: these rows have none."
            )
        identifier = make_bits(None).words(2).tobytes()
        made_by, carried, _ = self._given(identifier)
        with self._lock:
            if self._n_reports and not again:
                raise ValueError(
                    "this client has already reported. Another report of the same person spends "
                    f"epsilon={self.epsilon:g} again: pass again=True if you mean that, or make a "
                    "client for every person."
                )
            curator = Curator(
                lambda: self.rows.admit(X, [label]) if self.rows.labelled else self.rows.admit(X),
                n_rows=1,
                epsilon=self.epsilon,
                delta=0.0,
                adjacency="local",
                budget=self.budget,
                random_state=None,
                purpose=type(self).__name__,
            )
            # charged: what fails from here on has been paid for
            self._n_reports += 1
        query = LocalReports(CarriedVectors(self.rows.vectors, carried), made_by)
        try:
            with blas_on_one_thread():
                (made,) = curator.release(query, LocalMechanism(self.epsilon))
        finally:
            self._account.add(curator.ledger)
        head = _HEAD.pack(VERSION, self._mark, identifier)
        body = head + made_by.packed(made, self._grid(made_by))
        return body + _CHECKSUM.pack(zlib.crc32(body))

    def read(self, report: bytes) -> NDArray[np.float64]:
        """Return the values of a report of a client with the same parameters.

        Parameters
        ----------
        report : bytes
            Data from any source.

        Returns
        -------
        values : ndarray of shape (n_values,)
            An unbiased, noisy version of the row in its units, as `PrivUnitPrivatizer` makes it;
            for categories, 1 for every named one; for classifiers, a gradient.

        Raises
        ------
        ValueError
            If the bytes are not such a report.
        """
        _, made = self._read(report)
        return self.rows.original(made.copy())

    def to_json(self) -> str:
        """Return all public parameters as text, for `from_json`.

        Returns
        -------
        text : str
            Text without budget and ledger.
        """
        return self._text

    @classmethod
    def from_json(cls, text: str, *, budget: Budget = None) -> Self:
        """Return a client that has not reported yet.

        Parameters
        ----------
        text : str
            Result of `to_json`, from any source: in any case a report costs at most the `epsilon`
            of the client.
        budget : PrivacyBudget, default=None
            As for the class.

        Returns
        -------
        client : LocalClient

        Raises
        ------
        ValueError
            If the text is of another version, or its parameters are unusable or cost more than
            stated.
        """
        try:
            plain = json.loads(text, parse_constant=_refuse)
            known = plain["format"] == _FORMAT and type(plain["version"]) is int
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError("this is not the text of a client: take what to_json() wrote.") from (
                error
            )
        if not known or plain["version"] != VERSION:
            raise ValueError(
                f"the client has version {plain['version']!r}, and this one of skdp reads version "
                f"{VERSION}: use the same version of skdp on both sides."
            )
        try:
            rows = dict(plain["rows"])
            domain = DOMAINS[rows.pop("kind")].of_plain(**rows)
            randomiser, epsilon = (
                randomiser_of(plain["randomiser"]),
                _field(plain["epsilon"], float),
            )
            made = cls(domain, randomiser, epsilon, budget)
            made._check_sizes()
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
            raise ValueError(f"the parameters of the client are unusable: {error}") from error
        return made

    def _one(self, row):
        """Return the row as an array of shape (1, n_features), or raise without its values."""
        wanted = object if isinstance(self.rows, CategoryDomain) else np.float64
        try:
            X = np.array(row, dtype=wanted)
        except (ValueError, TypeError):
            X = None
        if X is None or X.shape != (self.n_features,):
            shape = "other things" if X is None else f"shape {X.shape}"
            raise ValueError(
                f"row must be an array of shape ({self.n_features},), of the values of one person; "
                f"got {shape}."
            )
        if wanted is object:
            check_sorts(X[None], self.rows.categories, of_objects=True)
        return X[None]

    def _check_sizes(self):
        """Raise unless rows and randomiser are compatible."""
        subsets = isinstance(self.randomiser, CategorySubsets)
        if subsets != isinstance(self.rows, CategoryDomain):
            raise ValueError("categories report by CategorySubsets, and nothing else does.")
        if subsets:
            alike = self.rows.sizes == self.randomiser.sizes
        elif isinstance(self.rows, GradientDomain):
            alike = self.rows.coef.size == self.randomiser.size
        else:
            alike = self.n_features == self.randomiser.size
        if not alike:
            raise ValueError("the randomiser is for rows of another size.")

    def _given(self, identifier):
        """Return the reporting randomiser, and the public maps to its vectors and back."""
        seed = int.from_bytes(identifier, "little")
        return self.randomiser.given(SeededBits(seed, "public part of a report"))

    def _grid(self, made_by):
        """Return the public grid of reports in the gate."""
        facts = LocalReports(self.rows.vectors, made_by).sensitivity("local", 1)
        return LocalMechanism(self.epsilon).calibrate(facts, made_by.size).grid

    def _read(self, report):
        """Return identifier and report in the unit domain, or raise a ValueError."""
        if not isinstance(report, bytes | bytearray | memoryview):
            raise ValueError(f"report must be bytes; got type {type(report).__name__}.")
        report = bytes(report)
        if len(report) < _HEAD.size + _CHECKSUM.size:
            raise ValueError(f"report is cut off: it has {len(report)} bytes.")
        version, mark, identifier = _HEAD.unpack_from(report)
        if version != VERSION:
            raise ValueError(
                f"report has version {version}, and this version of skdp reads version {VERSION}."
            )
        body, end = report[: -_CHECKSUM.size], report[-_CHECKSUM.size :]
        if _CHECKSUM.pack(zlib.crc32(body)) != end:
            raise ValueError("report was damaged on its way: its checksum is another one.")
        if mark != self._mark:
            raise ValueError(
                "report was made with other parameters: send all clients the same text, and make "
                "the aggregator of that."
            )
        made_by, _, restored = self._given(identifier)
        try:
            made = made_by.unpacked(body[_HEAD.size :], self._grid(made_by))
        except ValueError as error:
            raise ValueError(f"report has numbers that no client sends: {error}") from error
        return identifier, restored(made[None])[0]

    def __getstate__(self):
        # a lock belongs to its process
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state):
        vars(self).update(state, _lock=threading.Lock())

    def __repr__(self) -> str:
        kind, made_by = _kind_of(self.rows), type(self.randomiser).__name__
        n = self.n_features
        return f"LocalClient(epsilon={self.epsilon:g}, n_features={n}, {kind} by {made_by})"


def _kind_of(rows):
    return next(kind for kind, made in DOMAINS.items() if isinstance(rows, made))


def _refuse(constant):
    raise ValueError(f"{constant} is no number of JSON.")


# The sum of reports.


_MAGIC = b"skdp sum"
#: after the magic: version, and hash of what follows
_SEAL = struct.Struct("<B16s")
_LENGTHS = struct.Struct("<IQ")


class Aggregator:
    """Running sum of reports.

    Everything here is post-processing of reports: it costs nothing, and reveals no more than the
    reports.

    Parameters
    ----------
    client : LocalClient
        Client with the parameters of all reporting clients.

    Attributes
    ----------
    client : LocalClient
        A client with these parameters, without a report.
    n_reports : int
        Number of reports.

    See Also
    --------
    LocalDPMean.fit_reports, LocalDPFrequencies.fit_reports : Estimates from the sum.

    Notes
    -----
    A report counts once: its identifier of 16 bytes is kept, and a second report with the same
    identifier is refused. So a report may be sent again if an answer was lost. Two reports of one
    person have two identifiers, and count twice.

    A report is bounded by the largest valid one, so a dishonest client changes a mean of n reports
    by at most that bound over n. No local method has a stronger protection.

    It may be pickled, copied, and used by several threads. The rounding of sums depends on their
    order.

    Examples
    --------
    >>> from skdp import LocalDPFrequencies
    >>> from skdp.local import Aggregator
    >>> survey = LocalDPFrequencies(epsilon=8.0, categories=["no", "yes"])
    >>> aggregator = Aggregator(survey.client(n_features=1))
    >>> for answer in ["yes", "no", "yes"]:
    ...     aggregator.add(survey.client(n_features=1).report([answer]))
    >>> restarted = Aggregator.from_bytes(aggregator.to_bytes())
    >>> restarted.n_reports
    3
    >>> survey.fit_reports(restarted).n_reports_
    array([3])
    """

    def __init__(self, client: LocalClient) -> None:
        if not isinstance(client, LocalClient):
            raise TypeError(f"client must be a LocalClient; got type {type(client).__name__}.")
        self.client = LocalClient.from_json(client.to_json())
        self._sums = client.rows.sums(client.randomiser.size)
        self._met: set[bytes] = set()
        self._lock = threading.Lock()

    @property
    def n_reports(self) -> int:
        """Number of reports."""
        return len(self._met)

    def add(self, report: bytes) -> None:
        """Add one report.

        Parameters
        ----------
        report : bytes
            Data from any source.

        Raises
        ------
        ValueError
            If it is of another version, has other parameters, is damaged, or was added before.
            Nothing has changed.
        """
        identifier, made = self.client._read(report)
        with self._lock:
            if identifier in self._met:
                raise ValueError("this report was added before: every report counts once.")
            self._sums.add(made[None])
            self._met.add(identifier)

    def merge(self, other: "Aggregator") -> Self:
        """Add all reports of another aggregator, which stays unchanged.

        Parameters
        ----------
        other : Aggregator
            Aggregator with the same parameters, and other reports.

        Returns
        -------
        self : Aggregator
            The aggregator, with the reports of both.

        Raises
        ------
        ValueError
            If its parameters differ, or a report is in both. Nothing has changed.
        """
        if not isinstance(other, Aggregator):
            raise TypeError(f"other must be an Aggregator; got type {type(other).__name__}.")
        if other.client.to_json() != self.client.to_json():
            raise ValueError("the other aggregator has reports of other parameters.")
        # one lock at a time: others may be merging the other way round
        with other._lock:
            met, sums = set(other._met), copy.deepcopy(other._sums)
        with self._lock:
            if not met.isdisjoint(self._met):
                raise ValueError(
                    f"{len(met & self._met)} of the reports are in both aggregators: every report "
                    "counts once, so add it at one place."
                )
            self._sums.merge(sums)
            self._met |= met
        return self

    def to_bytes(self) -> bytes:
        """Return the complete state, for `from_bytes` after a restart or on another machine.

        Returns
        -------
        data : bytes
            State, with 16 bytes per report, and 8 or 16 per entry of a report, or 8 per product.
        """
        with self._lock:
            text, met = self.client.to_json().encode(), b"".join(sorted(self._met))
            state = self._sums.state.astype("<f8").tobytes()
            body = _LENGTHS.pack(len(text), len(self._met)) + text + met + state
        return _MAGIC + _SEAL.pack(VERSION, _hash(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the aggregator of a state.

        Parameters
        ----------
        data : bytes
            What it returned.

        Returns
        -------
        aggregator : Aggregator

        Raises
        ------
        ValueError
            If the data are of another version, damaged, or not a state.
        """
        start = len(_MAGIC) + _SEAL.size
        if not isinstance(data, bytes) or data[: len(_MAGIC)] != _MAGIC or len(data) < start:
            raise ValueError("these are not the bytes of an aggregator: take what to_bytes() made.")
        version, found = _SEAL.unpack_from(data, len(_MAGIC))
        if version != VERSION:
            raise ValueError(
                f"the aggregator has version {version}, and this version of skdp reads version "
                f"{VERSION}."
            )
        body = data[start:]
        if found != _hash(body):
            raise ValueError("the bytes of the aggregator are damaged: take another copy.")
        try:
            n_text, n_reports = _LENGTHS.unpack_from(body)
            middle = _LENGTHS.size + n_text
            made = cls(LocalClient.from_json(body[_LENGTHS.size : middle].decode()))
            end = middle + 16 * n_reports
            made._met = {body[i : i + 16] for i in range(middle, end, 16)}
            empty, state = made._sums.state, np.frombuffer(body[end:], dtype="<f8")
            state = state.reshape(empty.shape).astype(np.float64)
            if len(made._met) != n_reports or not np.isfinite(state).all():
                raise ValueError("numbers are missing.")
            made._sums.restore(n_reports, state)
        except (ValueError, struct.error, OverflowError, MemoryError) as error:
            raise ValueError(f"the bytes are not those of an aggregator: {error}") from error
        return made

    def __reduce__(self):
        return type(self).from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"Aggregator({self.client!r}, n_reports={self.n_reports})"


def _hash(body):
    return hashlib.blake2b(body, digest_size=16).digest()


# What an estimator has of clients, and asks of an aggregator.


class ClientMixin:
    """Mixin for estimators with clients; ``_client_of`` has their public parameters."""

    def client(self, n_features: int) -> LocalClient:
        """Return a client that reports one row, with the parameters of this estimator.

        Parameters
        ----------
        n_features : int
            Number of features.

        Returns
        -------
        client : LocalClient
            Client, made without rows and without a fit. Its reports go to an `Aggregator`.

        Raises
        ------
        ValueError
            If a parameter is unusable.
        """
        estimator: Any = self
        estimator._validate_params()
        check_scalar(n_features, "n_features", Integral, min_val=1)
        rows, randomiser = estimator._client_of(n_features)
        return LocalClient(rows, randomiser, estimator.epsilon, estimator.budget)


def sums_of(estimator, reports, rows, randomiser=None):
    """Return the sums of an aggregator for an estimator, or raise.

    Parameters
    ----------
    estimator : estimator
        Its `epsilon` must equal the `epsilon` of the reports. Its `ledger_`, `privacy_spent_` and
        `n_features_in_` are set.
    reports : Aggregator
        The reports.
    rows : callable
        Maps a number of features to the domain of rows of the estimator.
    randomiser : callable, default=None
        Maps a number of features to the required randomiser; None accepts the randomiser of the
        client.

    Returns
    -------
    sums : MeanSums, MomentSums or CategoryCounts
        Sums of at least one report.
    """
    name = type(estimator).__name__
    if not isinstance(reports, Aggregator):
        raise TypeError(
            f"reports must be an Aggregator; got type {type(reports).__name__}. Make one of "
            f"{name}(...).client(n_features), and add reports to it."
        )
    client, n_features = reports.client, reports.client.n_features
    wanted = rows(n_features)
    if type(wanted) is not type(client.rows):
        kinds = _kind_of(wanted), _kind_of(client.rows)
        raise ValueError(f"{name} needs reports of {kinds[0]}; these are of {kinds[1]}.")
    own = {**wanted.plain(), "epsilon": float(estimator.epsilon)}
    theirs = {**client.rows.plain(), "epsilon": client.epsilon}
    if isinstance(wanted, BallDomain):
        # a guess that changes no report, unless there is none because rows are scaled
        own["expected_norm"] = theirs["expected_norm"] is not None and theirs["expected_norm"]
    others = sorted(key for key in own if own[key] != theirs[key])
    if others:
        raise ValueError(
            f"the reports were made with other values of {', '.join(others)} than {name} has: give "
            "both the same."
        )
    if randomiser is not None and client.randomiser != randomiser(n_features):
        raise ValueError(
            f"the reports were randomised in another way: make clients by {name}(...).client."
        )
    if not reports.n_reports:
        raise ValueError("the aggregator has no report yet.")
    estimator.n_features_in_ = n_features
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator.ledger_ = Ledger().assume(
        f"every row reported once, elsewhere, at epsilon={estimator.epsilon:g}"
    )
    estimator.privacy_spent_ = (0.0, 0.0)
    with reports._lock:
        return copy.deepcopy(reports._sums)
