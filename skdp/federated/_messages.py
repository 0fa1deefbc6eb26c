# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Federation over messages: requests of the server, answers of clients, and rounds.

A client holds its own rows, and computes one clipped update for every request. The server only
adds up the updates that arrive in time; the sum is released through the gate, as in a fit to the
rows of all clients in one place. The transport of messages is up to the operator. Nothing is
pickled, and every received byte is checked before use.

In this order: the layout of messages; the client; a round; distant clients as the data of a
curator.
"""

import copy
import json
import math
import struct
import threading
import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.base import CompensatedSum, L2Ball, check_radius
from skdp._sklearn import as_labels, coded, resolve_classes
from skdp._typing import MatrixLike, VectorLike
from skdp.federated._averaging import ClientRows, ClientUpdates, RoundedUpdates
from skdp.privacy.kernel.samplers import make_bits
from skdp.privacy.laws.shared_noise import SMALLEST_SHARE, discrete_gaussian

# The layout of messages: length of the header, header, numbers, checksum.


#: version of requests and updates; a reader refuses all others
MESSAGE_VERSION = 1
_LENGTH, _SUM = struct.Struct("<I"), struct.Struct("<I")
_REQUEST, _UPDATE = "skdp federated request", "skdp federated update"
#: unsigned integers that clients send where they add the noise, by their number of bits
_WORDS = {32: "<u4", 64: "<u8"}
#: bytes of a header, at most
_LONGEST = 1 << 20
#: a client clips to the last digits of a float
_EXCESS = 1e-9


def _packed(header, values, dtype="<f8"):
    """Return a header of plain data and an array as a message."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    body = _LENGTH.pack(len(text)) + text + np.asarray(values, dtype=dtype).tobytes()
    return body + _SUM.pack(zlib.crc32(body))


def _unpacked(message, kind, name, dtype="<f8"):
    """Return the header and the finite numbers of a message, or raise a ValueError."""
    if not isinstance(message, bytes | bytearray | memoryview):
        raise ValueError(f"{name} must be bytes; got type {type(message).__name__}.")
    message = bytes(message)
    body, end = message[: -_SUM.size], message[-_SUM.size :]
    if len(body) < _LENGTH.size or _SUM.pack(zlib.crc32(body)) != end:
        raise ValueError(f"{name} is damaged or cut off: its checksum is another one.")
    (length,) = _LENGTH.unpack_from(body)
    text, numbers = body[_LENGTH.size : _LENGTH.size + length], body[_LENGTH.size + length :]
    try:
        if length > min(_LONGEST, len(text)):
            raise ValueError("its header is cut off.")
        header = json.loads(text)
        found, version = header["format"], header["version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{name} has no header of skdp.") from error
    if found != kind:
        raise ValueError(f"{name} is not what it should be, a {kind}.")
    if version != MESSAGE_VERSION:
        raise ValueError(
            f"{name} has version {version!r}, and this one of skdp reads version "
            f"{MESSAGE_VERSION}: use the same version of skdp on both sides."
        )
    if len(numbers) % np.dtype(dtype).itemsize:
        raise ValueError(f"{name} has numbers that are cut off.")
    values = np.frombuffer(numbers, dtype=dtype)
    values = values.astype(values.dtype.newbyteorder("="))
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has numbers that are not finite.")
    return header, values


# The client.


class FederatedClient:
    """Client of a federation, with its rows, which answers requests for updates.

    It runs beside the rows. Its answer is a function of its own rows and of the request: its
    clipped update, as in `FederatedDPLogisticRegression`. No row is ever sent.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Private rows of the client, any number of them. Non-finite rows are null rows, which
        contribute nothing; rows longer than the `data_norm` of a request are scaled down to it.
    y : array-like of shape (n_rows,)
        Private labels. Rows with labels outside the classes of a request, or of another type,
        contribute nothing.

    Attributes
    ----------
    n_answers_ : int
        Number of answered requests.

    See Also
    --------
    FederatedDPLogisticRegression.fit_clients : The server.

    Notes
    -----
    Privacy. An update is exact, and reveals information about the rows to its reader. The server
    is trusted to release only noisy sums, and the channel must hide messages from everybody else
    (for example TLS). An update is never longer than the `clip` of its request.

    A dishonest client can send any vector of that length. It changes a mean by no more than any
    other client, and weakens only its own guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import FederatedDPLogisticRegression
    >>> from skdp.federated import FederatedClient
    >>> rng = np.random.default_rng(0)
    >>> clients = {}
    >>> for place in range(300):
    ...     X = rng.normal(size=(5, 2)) / 2
    ...     clients[place] = FederatedClient(X, X[:, 0] > 0)
    >>> def drive(one_round):
    ...     for place, request in one_round.requests.items():
    ...         one_round.add(clients[place].answer(request))
    >>> model = FederatedDPLogisticRegression(epsilon=4.0, classes=[False, True], max_iter=20)
    >>> model.fit_clients(drive, n_clients=300, n_features=2).coef_[0, 0] > 0
    np.True_
    """

    def __init__(self, X: MatrixLike, y: VectorLike) -> None:
        try:
            X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
            rows = X.astype(np.float64)
        except (ValueError, TypeError):
            raise ValueError("X must have numbers in all entries; got something else.") from None
        labels = as_labels(y)
        if rows.ndim != 2 or rows.shape[0] != len(labels):
            raise ValueError(
                "X must have a row for every label of y, and two dimensions; got X of shape "
                f"{rows.shape} and {len(labels)} labels."
            )
        if not len(labels):
            # who owns nothing answers as who owns a row that counts for nothing
            rows, labels = np.zeros((1, rows.shape[1])), np.array([None])
        self._X, self._y, self.n_answers_ = rows, labels, 0

    def answer(self, request: bytes) -> bytes:
        """Return the update for a request.

        Parameters
        ----------
        request : bytes
            One of `FederatedRound.requests`. The layout is in the user guide.

        Returns
        -------
        update : bytes
            For the server only. The same request has the same answer.

        Raises
        ------
        ValueError
            If the bytes are no valid request, or are for rows of other sizes. No message contains a
            value of a row.
        """
        header, values = _unpacked(request, _REQUEST, "request")
        try:
            query, intercept, ball, classes = _read_request(header, values)
            shares = _read_shares(header, query)
            answer = {name: header[name] for name in ("fit", "round", "token")}
        except (ValueError, TypeError, KeyError, ArithmeticError) as error:
            raise ValueError(f"request has parameters that no server sends: {error}") from error
        wanted = np.atleast_2d(query.coef).shape[1] - bool(intercept)
        if self._X.shape[1] != wanted:
            raise ValueError(
                f"the request is for rows of {wanted} features, and these have {self._X.shape[1]}."
            )
        # the type of the labels of one client is private: whether it answers must not tell
        codes, outside = coded(self._y, resolve_classes(self._y[:0].astype(object), classes)[0])
        place = np.zeros(self._X.shape[0], dtype=np.int64)
        target = query.loss.encode(codes)
        rows = ClientRows(self._X, target, outside, place, 1, ball, intercept)
        head = {"format": _UPDATE, "version": MESSAGE_VERSION, **answer}
        self.n_answers_ += 1
        if shares is None:
            return _packed(head, query.evaluate(rows))
        grid, share, width = shares
        steps = RoundedUpdates(query, grid, 1).evaluate(rows) / grid
        noise = discrete_gaussian(share, query.size, make_bits(None))
        return _packed(head, (steps.astype(np.int64) + noise).astype(_WORDS[width]), _WORDS[width])

    def __repr__(self) -> str:
        return f"FederatedClient({self._X.shape[1]} features)"


def _read_request(header, values):
    """Return query, constant feature, ball of rows and classes of a request, or raise."""
    classes, steps = header["classes"], header["n_steps"]
    numbers = [header[name] for name in ("clip", "step_size", "pull", "intercept")]
    if not all(type(number) is float and 0 <= number < math.inf for number in numbers):
        raise ValueError("numbers must be finite and not negative.")
    if type(steps) is not int or steps < 1 or type(classes) is not list or len(classes) < 2:
        raise ValueError("n_steps must be at least 1, and classes a list of at least 2.")
    clip, step_size, pull, intercept = numbers
    loss = LogisticLoss() if len(classes) == 2 else SoftmaxLoss(len(classes))
    coef = values if loss.n_outputs == 1 else values.reshape(loss.n_outputs, -1)
    if clip == 0 or step_size == 0 or pull * step_size > 1 or not coef.size:
        raise ValueError("clip and step_size must be greater than 0, pull at most 1 / step_size.")
    query = ClientUpdates(coef, loss, clip, steps, step_size, pull)
    return query, intercept, L2Ball(check_radius(header["data_norm"])), classes


def _read_shares(header, query):
    """Return the grid, share of noise and width of words in a request, or None."""
    if header.get("shares") is None:
        return None
    grid, share, width = header["shares"]
    numbers = type(grid) is float and type(share) is float and math.frexp(grid)[0] == 0.5
    if not numbers or width not in _WORDS or not SMALLEST_SHARE <= share <= 2**26:
        raise ValueError("shares must be a power of two, a share of noise and a width of words.")
    if not query.clip / grid < 2**50:
        raise ValueError("the grid of updates is too fine.")
    return grid, share, width


# A round: requests go out, updates come in until it is over.


class FederatedRound:
    """One round of a federation: requests to deliver, and the collected answers.

    `FederatedDPLogisticRegression.fit_clients` creates one per round, and passes it to the
    function that carries messages.

    Parameters
    ----------
    number : int
        Number of earlier rounds.
    fit : str
        Identity of the fit.
    tokens : dict of int to str
        Tokens by place of the clients of the round; the answer must repeat the token.
    body : dict
        Common content of all requests.
    values : ndarray
        The server's point.
    clip : float
        Bound on the norm of an update.
    width : int or None
        Bits of the integers from clients that add the noise; None if they do not.

    Attributes
    ----------
    number : int
        Number of earlier rounds.
    requests : mapping of int to bytes
        Request of every client of the round, by its place among all clients.
    n_reports : int
        Number of received updates.
    is_complete : bool
        Whether all updates are received.

    See Also
    --------
    FederatedClient : Answers requests.

    Notes
    -----
    The clients of a round are drawn inside the gate, and the price of a round depends on the
    secrecy of this draw. A driver must not publish `requests`, `n_reports` or times, and must use
    channels that hide whether a client gets a request.

    Methods may be called from several threads.

    Examples
    --------
    >>> from skdp import FederatedDPLogisticRegression
    >>> from skdp.federated import FederatedClient
    >>> client, n_reports = FederatedClient([[0.5, -1.0]], [True]), []
    >>> def drive(one_round):
    ...     for request in one_round.requests.values():
    ...         one_round.add(client.answer(request))
    ...     n_reports.append(one_round.n_reports)
    >>> model = FederatedDPLogisticRegression(epsilon=4.0, classes=[False, True], max_iter=2)
    >>> _ = model.fit_clients(drive, n_clients=300, n_features=2)
    >>> n_reports
    [300, 300]
    """

    def __init__(
        self,
        number: int,
        fit: str,
        tokens: dict[int, str],
        body: dict[str, Any],
        values: np.ndarray,
        clip: float,
        width: int | None = None,
    ) -> None:
        head = {"format": _REQUEST, "version": MESSAGE_VERSION, "fit": fit, "round": number}
        made = {
            place: _packed({**head, "token": token, **body}, values)
            for place, token in tokens.items()
        }
        self.number = number
        self.requests: Mapping[int, bytes] = MappingProxyType(made)
        self._fit, self._places = fit, {token: place for place, token in tokens.items()}
        self._size, self._clip = values.size, clip
        self._dtype = "<f8" if width is None else _WORDS[width]
        self._updates: dict[int, np.ndarray] = {}
        self._summed: list[tuple[np.ndarray, int]] = []
        self._over, self._lock = False, threading.Lock()

    @property
    def n_reports(self) -> int:
        """Number of received updates."""
        return len(self._updates) + sum(count for _, count in self._summed)

    @property
    def is_complete(self) -> bool:
        """Whether all updates of the round are received."""
        return self.n_reports == len(self._places)

    def add(self, report: bytes) -> None:
        """Add the update of a client.

        Parameters
        ----------
        report : bytes
            Update, from any source.

        Raises
        ------
        ValueError
            If it is damaged, of another version or another fit, of an earlier round, of a client
            that was not asked or has answered, or too long for an update; or if the round is over.
            Nothing has changed, and the fit continues without it.
        """
        header, values = _unpacked(report, _UPDATE, "report", self._dtype)
        if header.get("fit") != self._fit:
            raise ValueError("the report is for another fit.")
        if header.get("round") != self.number:
            raise ValueError(
                f"the report is late: it is for round {header.get('round')!r}, and this is round "
                f"{self.number}."
            )
        token = header.get("token")
        place = self._places.get(token) if isinstance(token, str) else None
        if place is None:
            raise ValueError("the report answers no request of this round.")
        if values.shape != (self._size,):
            raise ValueError(f"the report must have {self._size} numbers; it has {values.size}.")
        # squares of huge numbers would overflow; integers say nothing, for noise is in them
        limit = self._clip * (1 + _EXCESS) if self._dtype == "<f8" else math.inf
        if np.max(np.abs(values)) > limit or np.linalg.norm(values) > limit:
            raise ValueError("the report is longer than an update is clipped to.")
        with self._lock:
            if self._over:
                raise ValueError(f"the report is late: round {self.number} is over.")
            if place in self._updates:
                raise ValueError("this client has reported in this round: a report counts once.")
            self._updates[place] = values

    def add_sum(self, total: np.ndarray, n_reports: int) -> None:
        """Add a sum of reports from secure aggregation.

        Parameters
        ----------
        total : ndarray of shape (size,)
            Sum of the reports, unsigned integers modulo 2 to the power of their number of bits.
        n_reports : int
            Number of clients in it. The aggregation must ensure that none is in it twice, or in
            another sum.

        Raises
        ------
        ValueError
            If clients do not add the noise in this fit, the numbers are of another type or size,
            there are more reports than requests, or the round is over. Nothing has changed.
        """
        total = np.asarray(total)
        if self._dtype == "<f8" or total.dtype != np.dtype(self._dtype):
            raise ValueError(
                f"sums of reports are for fits with fewest_reports, in the type of the reports, "
                f"{self._dtype}; got {total.dtype}."
            )
        if total.shape != (self._size,):
            raise ValueError(f"total must have shape ({self._size},); got {total.shape}.")
        with self._lock:
            if self._over:
                raise ValueError(f"the sum is late: round {self.number} is over.")
            if not 1 <= n_reports <= len(self._places) - self.n_reports:
                raise ValueError(
                    f"n_reports must be from 1 to the requests that have no answer yet; got "
                    f"{n_reports!r}."
                )
            self._summed.append((total.copy(), int(n_reports)))

    def _close(self):
        """End the round; return the sum of its updates, in the order of places."""
        with self._lock:
            self._over = True
        if self._dtype != "<f8":
            return self._decoded()
        total = CompensatedSum(self._size)
        for place in sorted(self._updates):
            total.add(self._updates[place])
        return total.value

    def _decoded(self):
        """Return the sum of integers modulo a power of two as signed numbers."""
        words = np.dtype(self._dtype).newbyteorder("=")
        total = np.zeros(self._size, dtype=words)
        for part in (*self._updates.values(), *(part for part, _ in self._summed)):
            # unsigned integers wrap around: that is the sum modulo 2^bits
            total += part
        return total.view(f"i{words.itemsize}").astype(np.float64)

    def __repr__(self) -> str:
        return f"FederatedRound(number={self.number}, {len(self._places)} requests)"


# Clients as what a curator admits.


class DistantClients:
    """Distant clients, with sums collected by messages.

    Parameters
    ----------
    drive : callable
        Function that carries the messages of a round.
    n_clients : int
        Public.
    body : dict
        Common content of the requests of all rounds: public numbers.

    Notes
    -----
    An update is added at the place of its client, in any order of arrival; a missing update adds
    nothing. Proposition 97 is about the sum.
    """

    def __init__(self, drive, n_clients, body):
        self._drive, self._body, self._n_clients = drive, body, n_clients
        self._positions, self._made = np.arange(n_clients), []
        self._fit = _unguessable()

    def batch(self, positions, rate):
        """Return the clients at sorted positions, each drawn with a public probability."""
        chosen = copy.copy(self)
        chosen._positions = positions
        return chosen

    def sum_of(self, query):
        """Return the sum of the updates received in time, an array of shape (query.size,)."""
        return self._collected(query, None)[1]

    def noisy_sum(self, query, noise):
        """Return the sum of rounded updates and shares of noise received in time, in steps.

        Parameters
        ----------
        query : RoundedUpdates
            Query.
        noise : SharedNoise
            Noise in shares of the clients.

        Returns
        -------
        total : ndarray of shape (query.size,)
            Sum in integers.

        Raises
        ------
        RuntimeError
            If fewer clients answered than the noise needs. Nothing is released.
        """
        # eight standard deviations of as much noise as there can be, and all that it is added to
        loudest = 8 * noise.share * math.sqrt(self._n_clients)
        width = 32 if noise.bound / noise.grid + loudest < 2**30 else 64
        current, total = self._collected(query.updates, [noise.grid, noise.share, width])
        if current.n_reports < noise.n_shares:
            raise RuntimeError(
                f"only {current.n_reports} clients answered in round {current.number}, and "
                f"fewest_reports={noise.n_shares} is what the noise is made for: nothing was "
                "released in this round, and the fit ends. Wait longer, or ask for fewer."
            )
        return total

    def _collected(self, query, shares):
        """Return a finished round and its sum."""
        body = {
            **self._body,
            "clip": float(query.clip),
            "n_steps": int(query.n_steps),
            "step_size": float(query.step_size),
            "pull": float(query.pull),
        }
        if shares is not None:
            body["shares"] = shares
        tokens = {int(place): _unguessable() for place in self._positions}
        current = FederatedRound(
            len(self._made),
            self._fit,
            tokens,
            body,
            np.ravel(query.coef),
            query.clip,
            None if shares is None else shares[2],
        )
        # copies for batches share the list
        self._made.append(None)
        try:
            self._drive(current)
        finally:
            total = current._close()
        return current, total


def _unguessable():
    """Return an unguessable name of a request or fit."""
    return make_bits(None).words(2).tobytes().hex()
