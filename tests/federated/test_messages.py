# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Federations over messages: the same fits, processes, late and lost answers, what is refused."""

import json
import multiprocessing
import struct
import threading
import time
import zlib
from multiprocessing.connection import Client, Listener, wait

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp import FederatedDPLogisticRegression, PrivacyBudget
from skdp.exceptions import BudgetError, SimulationWarning
from skdp.federated import FederatedAveraging, FederatedClient, Population, ProximalPoint
from skdp.federated._averaging import ClientUpdates, PrepaidRounds
from skdp.federated._messages import DistantClients, FederatedRound
from skdp.privacy import Curator

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")
BODY = {"intercept": 0.1, "data_norm": 1.0, "classes": [0, 1]}


def owned(n_clients, n_features=3, n_classes=2, seed=0):
    """Return rows, labels and groups; clients have 1 to 6 rows."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_clients), rng.integers(1, 7, n_clients))
    X = rng.normal(size=(len(groups), n_features))
    return X, (X[:, 0] > 0) + rng.integers(0, n_classes - 1, len(X)), groups


def split(X, y, groups):
    """Return the client at every place."""
    places = range(groups.max() + 1)
    return {i: FederatedClient(X[groups == i], y[groups == i]) for i in places}


def driven(clients, missing=()):
    """Return a driver that calls clients, but for those that miss a round."""

    def drive(one):
        for place, request in one.requests.items():
            if (one.number, place) not in missing:
                one.add(clients[place].answer(request))

    return drive


# The same fit as to rows in one place.


MODELS = {
    "two classes": {"classes": (0, 1)},
    "proximal": {
        "classes": (0, 1, 2),
        "local_update": ProximalPoint(n_steps=3),
        "adjacency": "zero-out",
        "fit_intercept": False,
    },
    "words": {"classes": ("0", "1", "2"), "data_norm": 0.5},
}


@pytest.mark.parametrize(
    ("name", "batch_size"),
    [
        ("two classes", 10),
        ("proximal", 40),
        pytest.param("words", 40, marks=pytest.mark.full),
        pytest.param("words", 10, marks=pytest.mark.full),
        pytest.param("proximal", 10, marks=pytest.mark.full),
    ],
)
def test_messages_make_the_fit_of_rows_in_one_place(name, batch_size):
    given = MODELS[name]
    X, y, groups = owned(40, n_classes=len(given["classes"]))
    y = y.astype(str) if name == "words" else y
    model = FederatedDPLogisticRegression(
        epsilon=20.0, max_iter=3, solver=FederatedAveraging(batch_size), random_state=1, **given
    )
    expected = model.fit(X, y, groups=groups)
    coef, ledger, spent = expected.coef_, expected.ledger_, expected.privacy_spent_
    seen = []

    def drive(one):
        seen.append(one.number)
        driven(clients)(one)

    clients = split(sparse.csr_array(X) if name == "words" else X, y, groups)
    model.fit_clients(drive, n_clients=40, n_features=3)
    # sums in another order, which the grid of the release swallows
    assert_array_equal(model.coef_, coef)
    assert (model.ledger_, model.privacy_spent_) == (ledger, spent)
    assert seen == [0, 1, 2]
    assert model.n_clients_ == 40
    assert model.n_features_in_ == 3
    answers = sum(client.n_answers_ for client in clients.values())
    assert answers == 120 if batch_size == 40 else 0 < answers < 70


def test_what_is_refused_before_a_client_is_asked():
    def never(one):
        raise AssertionError

    model = FederatedDPLogisticRegression(classes=(0, 1), max_iter=3, random_state=0)
    where = {"n_clients": 20, "n_features": 3}
    with pytest.raises(ValueError, match="n_clients == 0, must be >= 1"):
        model.fit_clients(never, n_clients=0, n_features=3)
    with pytest.raises(TypeError, match="drive must be callable"):
        model.fit_clients(None, **where)
    with pytest.raises(ValueError, match="classes must be given in fit_clients"):
        FederatedDPLogisticRegression().fit_clients(never, **where)
    with pytest.raises(ValueError, match="local_epsilon must be None in fit_clients"):
        FederatedDPLogisticRegression(local_epsilon=8.0, classes=(0, 1)).fit_clients(never, **where)
    with pytest.raises(ValueError, match="classes must be numbers or text"):
        FederatedDPLogisticRegression(classes=(b"a", b"b")).fit_clients(never, **where)
    budget = PrivacyBudget(epsilon=0.5, delta=1e-6, unit="group")
    with pytest.raises(BudgetError):
        model.set_params(budget=budget).fit_clients(never, **where)
    model.set_params(budget=None, population=Population(1000.0))
    with pytest.warns(SimulationWarning), pytest.raises(AssertionError):
        model.fit_clients(never, **where)


# A round: what is added up, whoever answers, and what a client can do to it.


QUERY = ClientUpdates(np.array([0.3, -0.2, 0.1, 0.0]), None, 0.2, n_steps=2, step_size=0.5)


def collected(clients, query=QUERY, order=None, missing=()):
    """Return the sum of a round over clients, which answer in some order."""

    def drive(one):
        assert list(one.requests) == list(range(len(clients)))
        for place in range(len(clients)) if order is None else order:
            if place not in missing:
                one.add(clients[place].answer(one.requests[place]))

    return DistantClients(drive, len(clients), BODY).sum_of(query)


def test_who_is_missing_takes_away_its_own_update_and_no_more():
    clients = split(*owned(12))
    each = [collected([client]) for client in clients.values()]
    total = collected(clients)
    assert_allclose(total, np.sum(each, axis=0), rtol=1e-14, atol=1e-16)
    assert_array_equal(collected(clients, order=[*range(11, -1, -1)]), total)
    for missing in ({3}, {0, 11}, {*range(12)}):
        rest = np.sum([each[i] for i in range(12) if i not in missing] or [np.zeros(4)], axis=0)
        assert_allclose(collected(clients, missing=missing), rest, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_one_client_moves_a_round_by_what_is_stated_and_no_further(adjacency):
    others = split(*owned(5))
    rows, still = np.tile([[40.0, 0.0, 0.0]], (50, 1)), FederatedClient(np.empty((0, 3)), [])
    pushed = [FederatedClient(rows, np.full(50, label)) for label in (0, 1)]
    far = [collected({**others, 5: client}) for client in pushed]
    none = [collected({**others, 5: still}), collected({**others, 5: still}, missing={5})]
    assert_array_equal(*none)
    stated = QUERY.sensitivity(adjacency, 6).l2
    found = [np.linalg.norm(one - none[0]) for one in far]
    if adjacency == "replace-one":
        found = [np.linalg.norm(far[0] - far[1])]
    assert 0.95 * stated < max(found) <= stated * (1 + 1e-9)


def test_the_divisor_is_no_count(monkeypatch):
    # where hardly anybody answers a step is short, and not that of a mean of the few
    clients = split(*owned(30))
    released, real = [], Curator.release

    def kept(self, *args, **kwargs):
        released.append(real(self, *args, **kwargs))
        return released[-1]

    monkeypatch.setattr(Curator, "release", kept)
    steps, real_mean = [], PrepaidRounds.mean_update

    def divided(self, point):
        steps.append(real_mean(self, point))
        return steps[-1]

    monkeypatch.setattr(PrepaidRounds, "mean_update", divided)
    model = FederatedDPLogisticRegression(
        epsilon=20.0, classes=(0, 1), max_iter=2, solver=FederatedAveraging(30), random_state=0
    )
    missing = {(t, place) for t in range(2) for place in range(1, 30)}
    model.fit_clients(driven(clients, missing), n_clients=30, n_features=3)
    for total, step in zip(released, steps, strict=True):
        assert_array_equal(step.ravel(), total / 30)


# What is refused, from clients and from servers.


def altered(message, **changes):
    """Return a message with other entries in its header, and its checksum mended."""
    (length,) = struct.unpack_from("<I", message)
    header, rest = json.loads(message[4 : 4 + length]), message[4 + length : -4]
    text = json.dumps({**header, **changes}).encode()
    body = struct.pack("<I", len(text)) + text + changes.get("numbers", rest)
    return body + struct.pack("<I", zlib.crc32(body))


def with_numbers(message, values):
    """Return a message with other numbers."""
    (length,) = struct.unpack_from("<I", message)
    body = message[: 4 + length] + np.asarray(values, dtype="<f8").tobytes()
    return body + struct.pack("<I", zlib.crc32(body))


def a_round(number=2, fit="f", clip=0.2):
    body = {**BODY, "clip": clip, "n_steps": 1, "step_size": 0.5, "pull": 0.0}
    return FederatedRound(number, fit, {0: "a", 4: "b"}, body, np.zeros(4), clip)


REFUSED = {
    "late": (lambda report: altered(report, round=1), "late: it is for round 1, and this is round"),
    "early": (lambda report: altered(report, round=3), "late: it is for round 3"),
    "another fit": (lambda report: altered(report, fit="g"), "another fit"),
    "another version": (lambda report: altered(report, version=2), "has version 2"),
    "nobody": (lambda report: altered(report, token="c"), "answers no request"),
    "no token": (lambda report: altered(report, token=["a"]), "answers no request"),
    "a request": (lambda report: altered(report, format="skdp federated request"), "should be"),
    "no header": (lambda report: b"\0" * 4 + struct.pack("<I", zlib.crc32(b"\0" * 4)), "no header"),
    "cut": (lambda report: report[:-1], "damaged or cut off"),
    "empty": (lambda report: b"", "damaged or cut off"),
    "text": (lambda report: "report", "must be bytes"),
    "few numbers": (lambda report: with_numbers(report, [0.1] * 3), "must have 4 numbers"),
    "many numbers": (lambda report: with_numbers(report, [0.0] * 5), "must have 4 numbers"),
    "no number": (lambda report: with_numbers(report, [np.nan, 0, 0, 0]), "not finite"),
    "too long": (lambda report: with_numbers(report, [0.15] * 4), "longer than an update"),
    "huge": (lambda report: with_numbers(report, [1e300] * 4), "longer than an update"),
}


@pytest.mark.covering
@pytest.mark.parametrize("name", REFUSED)
def test_reports_are_refused_and_change_nothing(name):
    X, y, _ = owned(1)
    one = a_round()
    report = FederatedClient(X, y).answer(one.requests[4])
    change, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        one.add(change(report))
    assert one.n_reports == 0
    one.add(report)
    with pytest.raises(ValueError, match="counts once"):
        one.add(report)
    assert one.n_reports == 1
    assert not one.is_complete
    total = one._close()
    assert_array_equal(total, np.frombuffer(report[-36:-4]))
    with pytest.raises(ValueError, match=r"late: round 2 is over"):
        one.add(FederatedClient(X, y).answer(one.requests[0]))
    assert one.n_reports == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "has version 0"),
        ({"format": "skdp federated update"}, "not what it should be"),
        ({"clip": float("1e999")}, "no header|parameters that no server sends"),
        ({"clip": 0.0}, "clip and step_size must be greater than 0"),
        ({"n_steps": 1.5}, "n_steps must be"),
        ({"n_steps": True}, "n_steps must be"),
        ({"classes": [0]}, "a list of at least 2"),
        ({"classes": [0, 1, 2]}, "cannot reshape"),
        ({"pull": 3.0}, "pull at most"),
        ({"data_norm": 0.0}, "data_norm must be"),
        ({"intercept": 0.0}, "rows of 4 features, and these have 3"),
    ],
)  # fmt: skip
def test_requests_that_make_no_sense_are_refused(changes, message):
    X, y, _ = owned(1)
    client, one = FederatedClient(X, y), a_round()
    with pytest.raises(ValueError, match=message):
        client.answer(altered(one.requests[0], **changes))
    assert client.n_answers_ == 0


@settings(max_examples=30)
@given(st.integers(0, 400), st.integers(1, 255), st.booleans())
def test_damaged_messages_are_refused(place, change, is_report):
    client, one = FederatedClient(np.ones((1, 3)), [1]), a_round()
    message = one.requests[0]
    message = bytearray(client.answer(message) if is_report else message)
    message[place % len(message)] ^= change
    with pytest.raises(ValueError, match="damaged"):
        one.add(bytes(message)) if is_report else client.answer(bytes(message))


def test_labels_of_another_type_are_answered_as_null_rows():
    rows = np.ones((2, 3))
    request = a_round().requests[0]
    nothing = FederatedClient(rows, [None, None]).answer(request)
    for labels in (
        ["0", "1"],
        [b"0", "1"],
        np.array(["0", "1"]),
        np.array(["1", "2"], dtype="M8[D]"),
    ):
        assert FederatedClient(rows, labels).answer(request) == nothing
    assert FederatedClient(rows, [1.0, 1.0]).answer(request) != nothing


def test_rows_of_a_client_that_are_none_are_refused_without_their_values():
    for X, y, message in (
        ([["7341"], ["x"]], [0, 1], "numbers in all entries"),
        ([7341.0, 1.0], [0, 1], "two dimensions"),
        ([[7341.0]], [0, 1], "a row for every label"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            FederatedClient(X, y)
        assert "7341" not in str(caught.value)
    strange = FederatedClient([[np.nan, 0, 0], [1, 0, 0], [np.inf, 0, 0]], [0, 1, 1])
    alone, one = FederatedClient([[1.0, 0, 0]], [1]), a_round()
    assert strange.answer(one.requests[0]) == alone.answer(one.requests[0])
    assert "1" not in repr(alone).replace("3", "")


# Processes over loopback.


def serve(address, place, X, y, plan):
    """Answer requests as the client at a place; `plan` says which rounds are missed."""
    client, late = FederatedClient(X, y), None
    with Client(address, authkey=b"loopback") as server:
        server.send(place)
        for number in range(10**6):
            try:
                request = server.recv_bytes()
            except EOFError:
                return
            if late is not None:
                # an answer of the round before, which nobody waits for any more
                server.send_bytes(late)
                late = None
            kind = plan.get(number)
            if kind == "gone":
                return
            report = client.answer(request)
            if kind == "late":
                late = report
            else:
                server.send_bytes(report)
                if kind == "twice":
                    server.send_bytes(report)


class Loopback:
    """A driver by the standard library: one connection for every client."""

    def __init__(self, n_clients, deadline):
        self._listener = Listener(("127.0.0.1", 0), authkey=b"loopback", backlog=n_clients)
        self.address, self._n_clients, self._deadline = self._listener.address, n_clients, deadline
        self.places, self.came, self.refused = {}, set(), []

    def __call__(self, one):
        while len(self.places) < self._n_clients and one.number == 0:
            connection = self._listener.accept()
            self.places[connection] = connection.recv()
        for connection, place in list(self.places.items()):
            if place in one.requests:
                try:
                    connection.send_bytes(one.requests[place])
                except OSError:
                    del self.places[connection]
        end = time.monotonic() + self._deadline
        while not one.is_complete and (left := end - time.monotonic()) > 0:
            for connection in wait(list(self.places), left):
                try:
                    report = connection.recv_bytes()
                except (EOFError, OSError):
                    del self.places[connection]
                    continue
                try:
                    one.add(report)
                    self.came.add((one.number, self.places[connection]))
                except ValueError as error:
                    self.refused.append(str(error))

    def close(self):
        for connection in self.places:
            connection.close()
        self._listener.close()


def federated(n_clients, plans, start, n_rounds, deadline):
    """Fit over connections; return the driver, the model, and data and settings of the fit."""
    X, y, groups = owned(n_clients)
    settings = {"epsilon": 20.0, "classes": (0, 1), "max_iter": n_rounds, "random_state": 5}
    driver, workers = Loopback(n_clients, deadline), []
    for place in range(n_clients):
        own = groups == place
        workers.append(start(driver.address, place, X[own], y[own], plans.get(place, {})))
    try:
        model = FederatedDPLogisticRegression(**settings)
        model.fit_clients(driver, n_clients=n_clients, n_features=3)
    finally:
        driver.close()
        for worker in workers:
            worker.join()
    return driver, model, (X, y, groups), FederatedDPLogisticRegression(**settings)


def check_as_simulated(driver, model, data, other, n_rounds):
    """Compare a fit over connections with a simulation in one process."""
    assert model.ledger_ == other.fit(*data[:2], groups=data[2]).ledger_
    # the same clients missing
    clients = split(*data)
    everybody = {(t, place) for t in range(n_rounds) for place in clients}
    drive = driven(clients, everybody - driver.came)
    other.fit_clients(drive, n_clients=len(clients), n_features=3)
    assert_array_equal(model.coef_, other.coef_)
    assert_array_equal(model.intercept_, other.intercept_)


def in_thread(*args):
    worker = threading.Thread(target=serve, args=args)
    worker.start()
    return worker


def in_process(*args):
    worker = PROCESSES.Process(target=serve, args=args)
    worker.start()
    return worker


PROCESSES = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)


def test_late_lost_and_repeated_answers_over_loopback():
    plans = {1: {0: "late"}, 2: {1: "gone"}, 3: {0: "twice"}}
    found = federated(4, plans, in_thread, n_rounds=3, deadline=0.3)
    check_as_simulated(*found, n_rounds=3)
    driver = found[0]
    assert driver.came
    assert not {(0, 1), (1, 2), (2, 2)} & driver.came
    assert any("late" in text for text in driver.refused)
    assert any("counts once" in text or "late" in text for text in driver.refused)


@pytest.mark.full
def test_twenty_processes_make_the_fit_of_a_simulation():
    n_clients = 20
    PROCESSES.set_forkserver_preload(["tests.federated.test_messages"])
    late = {place: dict.fromkeys((1, 3), "late") for place in range(1, n_clients, 5)}
    gone = {place: {place % 4 + 1: "gone"} for place in range(2, n_clients, 6)}
    found = federated(n_clients, {**late, **gone}, in_process, n_rounds=6, deadline=1.0)
    check_as_simulated(*found, n_rounds=6)
    driver = found[0]
    assert len(driver.came) < 6 * n_clients - len(late) - len(gone)
    assert len(driver.came) >= 6 * n_clients - 2 * len(late) - 6 * len(gone) - len(gone)
    assert sum("late" in text for text in driver.refused) >= len(late)
