# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Clients and aggregators: reports as bytes, the same laws as in a fit, and what is refused."""

import hashlib
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skdp import (
    LocalDPCovariance,
    LocalDPFrequencies,
    LocalDPLogisticRegression,
    LocalDPMean,
    LocalDPPCA,
    PrivacyBudget,
    PrivUnitPrivatizer,
    ScalarPrivatizer,
)
from skdp.exceptions import BudgetError
from skdp.local import Aggregator, LocalClient, _clients
from skdp.local.randomisers.base import normals, pack_numbers
from skdp.local.randomisers.projunit import make_rotation, projunit
from skdp.privacy.kernel.samplers import SeededBits
from skdp.solvers.disjoint import public_order

#: version, hash of the client, identifier; and the checksum
HEAD, CHECKSUM = 21, 4
BALLS = {
    "lift": {},
    "flip": {"magnitude": "flip"},
    "product": {"magnitude": "product", "expected_norm": 0.5},
    "unit": {"magnitude": "unit"},
    "gaussian": {"mechanism": "privunit-gaussian"},
    "cube": {"mechanism": "cube", "bounds": (-1.0, 1.0)},
}
PRIVATIZERS = {name: PrivUnitPrivatizer(4.0, **given) for name, given in BALLS.items()}
PRIVATIZERS["scalar"] = ScalarPrivatizer(4.0, bounds=(-1.0, 1.0), n_levels=5)
PROJECTED = {
    "haar": PrivUnitPrivatizer(4.0, mechanism="projunit", n_components=2),
    "flipped": PrivUnitPrivatizer(4.0, mechanism="projunit", magnitude="flip", n_components=2),
}
TREES = [["oak", "ash", "elm"], list(range(300))]
MANY = [list(range(300)), list(range(200))]
CLIENTS = {
    **{name: made.client(3) for name, made in {**PRIVATIZERS, **PROJECTED}.items()},
    "hadamard": PrivUnitPrivatizer(4.0, mechanism="projunit").client(520),
    "bitmap": LocalDPFrequencies(1.0, categories=TREES[0]).client(1),
    "names": LocalDPFrequencies(4.0, categories=MANY).client(2),
    "moments": LocalDPCovariance(4.0).client(3),
    "gradients": LocalDPLogisticRegression(4.0, classes=["a", "b", "c"]).client(3, 1000),
}
every_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)


def fresh(client):
    """Return a client of the same text, as another person has it."""
    return LocalClient.from_json(client.to_json())


def reported(client, seed=0):
    """Return the report of a made-up row."""
    rng = np.random.default_rng(seed)
    if client.n_features == 2 or "subsets" in type(client.randomiser).__module__:
        return fresh(client).report([own[seed % len(own)] for own in client.rows.categories])
    row = rng.uniform(-0.5, 0.5, size=client.n_features)
    return fresh(client).report(row, "b" if client.rows.labelled else None)


def sealed(body):
    """Return bytes with the right checksum behind them."""
    return body + zlib.crc32(body).to_bytes(CHECKSUM, "little")


@pytest.fixture
def same_entropy(monkeypatch):
    """Return a function after which the system hands out the same words again."""
    monkeypatch.setattr(_clients, "make_bits", lambda seed: SeededBits(7))

    def begin():
        calls = itertools.count()
        monkeypatch.setattr(
            os, "urandom", lambda n: hashlib.shake_256(b"%d" % next(calls)).digest(n)
        )

    return begin


# The law of a report is that of a fit.


@pytest.mark.parametrize("name", PRIVATIZERS)
def test_a_client_reports_what_a_transformer_does(name, same_entropy):
    row, privatizer = np.array([0.3, -0.8, 0.1]), clone(PRIVATIZERS[name])
    same_entropy()
    made = privatizer.fit(row[None]).transform(row[None])
    same_entropy()
    client = privatizer.client()
    report = client.report(row)
    np.testing.assert_allclose(client.read(report), made[0], rtol=1e-14)
    assert client.privacy_spent_ == privatizer.privacy_spent_
    assert client.ledger_.releases == privatizer.ledger_.releases
    assert client.ledger_.adjacency == "local"


@pytest.mark.parametrize("trees", [TREES[:1], TREES], ids=len)
def test_a_client_names_what_a_fit_counts(trees, same_entropy):
    model, row = LocalDPFrequencies(2.0, categories=trees), [own[-1] for own in trees]
    same_entropy()
    counts = model.fit(np.array([row], dtype=object)).counts_
    same_entropy()
    client = model.client(len(trees))
    np.testing.assert_array_equal(client.read(client.report(row)), counts)


@pytest.mark.parametrize("n_features", [3, 520])
def test_what_is_sent_of_rotated_entries_restores_a_report(n_features):
    randomiser = PrivUnitPrivatizer(4.0, mechanism="projunit").client(n_features).randomiser
    vector, bits = np.full((1, n_features), 0.5 / n_features), SeededBits(3)
    made_by, carried, restored = randomiser.given(bits)
    made = restored(made_by.report(carried(vector), bits))
    np.testing.assert_allclose(made, randomiser.report(vector, SeededBits(3)), atol=1e-9)


def test_a_few_rotated_entries_are_those_of_the_whole():
    bits, kept = SeededBits(0), np.array([1, 257, 258, 4000, 4096 + 1, 2**16 - 1])
    rotation = make_rotation(projunit(4.0, 2**16, len(kept), "hadamard"), bits)
    vectors, parts = normals(bits.words(3 << 16)).reshape(3, -1), np.arange(18.0).reshape(3, 6)
    padded = np.zeros((3, 2**16))
    padded[:, kept] = parts
    found = rotation.entries(vectors, kept)
    np.testing.assert_allclose(found, rotation.there(vectors)[:, kept], atol=1e-12)
    np.testing.assert_allclose(rotation.back_from(parts, kept), rotation.back(padded), atol=1e-14)


@pytest.mark.full
@pytest.mark.parametrize("name", PROJECTED)
def test_reports_by_rotated_entries_have_the_stated_mean_and_error(name):
    # a rotation for every report: that reports of one call share one is for transformers
    client, vector = CLIENTS[name], np.array([0.3, -0.8, 0.1])
    bits, n = SeededBits(0), 800
    made = np.empty((n, 3))
    for i in range(n):
        made_by, carried, restored = client.randomiser.given(bits)
        made[i] = restored(made_by.report(carried(vector[None]), bits))[0]
    error = client.randomiser.mean_squared_error(np.linalg.norm(vector))
    assert np.linalg.norm(made.mean(axis=0) - vector) < 4 * math.sqrt(error / n)
    assert ((made - vector) ** 2).sum(axis=1).mean() == pytest.approx(error, rel=0.15)


@every_client
def test_a_report_takes_as_many_bits_as_it_is_said_to(client):
    bits = client.randomiser.message_bits()
    bits -= 128 * ("ProjUnit" in client.to_json())  # its seed is the identifier
    assert len(reported(client)) == HEAD + -(-bits // 8) + CHECKSUM


def test_short_messages_are_short():
    # PrivUnit sends 520 numbers, and a survey one byte
    assert len(reported(CLIENTS["hadamard"])) < 800
    assert len(reported(CLIENTS["bitmap"])) == 26


@pytest.mark.parametrize("kind", ["haar", "hadamard"])
def test_zero_rows_report(kind):
    client = fresh(CLIENTS[kind])
    assert np.isfinite(client.read(client.report(np.zeros(client.n_features)))).all()


# Round trips, and what is refused.


@every_client
def test_plain_data_come_back(client):
    text = client.to_json()
    assert LocalClient.from_json(text).to_json() == text
    again = fresh(client)
    assert again.rows.plain() == client.rows.plain()
    assert repr(again) == repr(client)
    copied = pickle.loads(pickle.dumps(client))
    assert copied.to_json() == text
    assert len(copied.report(*((["oak"],) if client is CLIENTS["bitmap"] else (
        ([0] * client.n_features, "a") if client.rows.labelled else ([0] * client.n_features,)
    )))) == len(reported(client))  # fmt: skip


@every_client
def test_sums_come_back(client):
    whole, parts = Aggregator(client), [Aggregator(client), Aggregator(client)]
    for i in range(4):
        report = reported(client, seed=i)
        whole.add(report)
        parts[i % 2].add(report)
    merged = parts[0].merge(parts[1])
    again = pickle.loads(pickle.dumps(merged))
    assert merged.n_reports == again.n_reports == 4
    assert again.to_bytes() == merged.to_bytes()
    np.testing.assert_allclose(merged._sums.state, whole._sums.state, rtol=1e-9, atol=1e-9)


@settings(max_examples=8)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=3, max_size=3))
def test_any_row_makes_a_report_that_can_be_read(row):
    for name in ("lift", "product", "haar"):
        client = fresh(CLIENTS[name])
        values = client.read(client.report(row))
        assert np.linalg.norm(values) <= client.randomiser.longest * (1 + 1e-5)


@settings(max_examples=12)
@given(
    st.sampled_from(list(CLIENTS)), st.integers(0, 10**9), st.sampled_from(["bit", "cut", "end"])
)
def test_damaged_reports_are_refused(name, place, kind):
    client = CLIENTS[name]
    report, aggregator = bytearray(reported(client)), Aggregator(client)
    if kind == "bit":
        report[place % len(report)] ^= 1 << place % 8
    elif kind == "cut":
        del report[place % len(report) :]
    else:
        report += bytes(1 + place % 9)
    with pytest.raises(ValueError, match="report"):
        aggregator.add(bytes(report))
    assert aggregator.n_reports == 0
    assert not aggregator._sums.state.any()


@settings(max_examples=12)
@given(st.sampled_from(list(CLIENTS)), st.binary(max_size=60))
def test_no_message_breaks_a_reader_or_moves_a_sum_too_far(name, message):
    # with a head and a checksum that are right, as somebody who means harm sends it
    client, honest = CLIENTS[name], reported(CLIENTS[name])
    size = len(honest) - HEAD - CHECKSUM
    for sent in (message, (message * (size // max(1, len(message)) + 1))[:size]):
        try:
            values = client.read(sealed(honest[:HEAD] + sent))
        except ValueError as error:
            found = str(error)
        else:
            found = "numbers that no client sends, or some of which the sum is bounded"
            middle = getattr(client.rows, "center", 0.0)
            unit = client.rows.original(np.ones(client.randomiser.size)) - middle
            reach = np.abs(unit).max() * client.randomiser.longest * (1 + 1e-4)
            assert np.linalg.norm(values - middle) <= reach
        assert "numbers that no client sends" in found


@pytest.mark.parametrize("name", ["lift", "cube", "scalar", "bitmap", "names"])
def test_numbers_that_no_client_sends_are_refused(name):
    client, honest = CLIENTS[name], reported(CLIENTS[name])
    size = len(honest) - HEAD - CHECKSUM
    # too long a vector, a bit beyond the last entry, a level or a name that there is not
    with pytest.raises(ValueError, match="numbers that no client sends"):
        client.read(sealed(honest[:HEAD] + b"\x7f" * size))
    with pytest.raises(ValueError, match="numbers that no client sends"):
        client.read(sealed(honest[:HEAD] + bytes(size + 1)))


def test_a_vector_that_is_too_long_is_refused_though_its_entries_are_not():
    client = CLIENTS["lift"]
    grid = client._grid(client.randomiser)
    high = np.full(3, 0.9 * client.randomiser.bound)
    message = client.randomiser.packed(high, grid)
    with pytest.raises(ValueError, match="numbers that no client sends"):
        client.read(sealed(reported(client)[:HEAD] + message))


def test_another_order_of_names_is_another_report():
    client, honest = CLIENTS["names"], reported(CLIENTS["names"])
    names = np.flatnonzero(client.read(honest))
    assert len(names) > 1
    width, most = client.randomiser._listed
    turned = pack_numbers(np.resize(names[::-1], most), width)
    with pytest.raises(ValueError, match="numbers that no client sends"):
        client.read(sealed(honest[:HEAD] + turned))


def test_reports_of_others_are_refused():
    aggregator = Aggregator(CLIENTS["lift"])
    for name in ("flip", "unit", "bitmap"):
        with pytest.raises(ValueError, match="report was made with other parameters"):
            aggregator.add(reported(CLIENTS[name]))
    report = reported(CLIENTS["lift"])
    with pytest.raises(ValueError, match="report has version 2"):
        aggregator.add(sealed(b"\x02" + report[1:-CHECKSUM]))
    with pytest.raises(ValueError, match="report must be bytes; got type str"):
        aggregator.add(report.hex())
    with pytest.raises(ValueError, match="cut off"):
        aggregator.add(b"")
    with pytest.raises(ValueError, match="reports of other parameters"):
        aggregator.merge(Aggregator(CLIENTS["flip"]))
    with pytest.raises(TypeError, match="Aggregator; got type list"):
        aggregator.merge([report])
    with pytest.raises(TypeError, match="LocalClient; got type LocalDPMean"):
        Aggregator(LocalDPMean())


def test_a_report_counts_once():
    client = CLIENTS["lift"]
    reports = [reported(client, i) for i in range(3)]
    first, second = Aggregator(client), Aggregator(client)
    for report in reports:
        first.add(report)
    with pytest.raises(ValueError, match="added before"):
        first.add(reports[1])
    with pytest.raises(ValueError, match="added before"):
        Aggregator.from_bytes(first.to_bytes()).add(reports[1])
    before, _ = first.to_bytes(), second.add(reports[2])
    with pytest.raises(ValueError, match="1 of the reports are in both"):
        first.merge(second)
    with pytest.raises(ValueError, match="3 of the reports are in both"):
        first.merge(first)
    assert first.to_bytes() == before


def test_aggregators_that_were_damaged_are_refused():
    aggregator = Aggregator(CLIENTS["bitmap"])
    aggregator.add(reported(CLIENTS["bitmap"]))
    data = aggregator.to_bytes()
    start = 25
    for place in (0, start - 1, start, len(data) - 1):
        with pytest.raises(ValueError, match="aggregator"):
            Aggregator.from_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(ValueError, match="has version 3"):
        Aggregator.from_bytes(data[:8] + b"\x03" + data[9:])
    for body in (b"", data[start:-8], data[start:] + bytes(8), data[start:-8] + b"\xff" * 8):
        sealed_body = data[:9] + hashlib.blake2b(body, digest_size=16).digest() + body
        with pytest.raises(ValueError, match="not those of an aggregator"):
            Aggregator.from_bytes(sealed_body)
    with pytest.raises(ValueError, match="take what to_bytes"):
        Aggregator.from_bytes("text")


def test_sums_of_squares_below_zero_are_refused():
    sums = Aggregator(CLIENTS["lift"])._sums
    with pytest.raises(ValueError, match="must not be negative"):
        sums.restore(2, -np.ones((2, 3)))


# What a client grants.


def test_a_client_reports_once_unless_told(monkeypatch):
    client = fresh(CLIENTS["lift"])
    row = [0.123456, 0.0, 0.0]
    first = client.report(row)
    assert client.privacy_spent_[0] <= 4.0
    with pytest.raises(ValueError, match="spends epsilon=4 again: pass again=True") as caught:
        client.report(row)
    assert "0.123" not in str(caught.value)
    with pytest.raises(ValueError, match="already reported"):
        pickle.loads(pickle.dumps(client)).report(row)
    assert len(client.ledger_.releases) == 1
    second = client.report(row, again=True)
    # other words, another identifier: nothing of the noise is in common
    assert first[:5] == second[:5]
    assert first[5:HEAD] != second[5:HEAD]
    assert not np.isclose(client.read(first), client.read(second), rtol=1e-6).any()
    assert 7.9 < client.privacy_spent_[0] <= 8.0


def test_a_budget_of_the_person_has_the_last_word():
    budget = PrivacyBudget(6.0, 0.0)
    client = LocalClient.from_json(CLIENTS["lift"].to_json(), budget=budget)
    client.report([0.1, 0.2, 0.3])
    other = LocalClient.from_json(CLIENTS["flip"].to_json(), budget=budget)
    with pytest.raises(BudgetError):
        other.report([0.1, 0.2, 0.3])
    # nothing was spent, and so it may report once there is more
    assert other.ledger_.releases == ()
    other.budget = None
    other.report([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("lift", ([0.1, 0.2],), r"shape \(3,\).*got shape \(2,\)"),
        ("lift", ([[0.1, 0.2, 0.3]],), r"got shape \(1, 3\)"),
        ("lift", (["secret", 0.2, 0.3],), "got other things"),
        ("lift", ([0.1, 0.2, 0.3], 1), "label must be None"),
        ("gradients", ([0.1, 0.2, 0.3],), "label must be given"),
        ("bitmap", ("oak",), r"got shape \(\)"),
    ],
)
def test_rows_of_another_shape_are_refused_before_anything_is_spent(name, arguments, message):
    client = fresh(CLIENTS[name])
    with pytest.raises(ValueError, match=message) as caught:
        client.report(*arguments)
    assert "secret" not in str(caught.value)
    assert client.privacy_spent_ == (0.0, 0.0)


def changed(name, *path, **values):
    """Return the text of a client with other values somewhere."""
    plain = json.loads(CLIENTS[name].to_json())
    part = plain
    for key in path:
        part = part[key]
    part.update(values)
    return json.dumps({key: value for key, value in plain.items() if value is not ...})


UNIT = ("randomiser", "unit")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not the text of a client"),
        ("[" * 100_000, "not the text of a client"),
        (None, "not the text of a client"),
        ("{}", "not the text of a client"),
        (changed("lift", format="other"), "this one of skdp reads version 1"),
        (changed("lift", version=2), "has version 2"),
        (changed("lift", version="1"), "reads version 1"),
        (changed("lift", epsilon=math.nan), "not the text of a client"),
        (changed("lift", epsilon="4"), "a parameter of type str"),
        (changed("lift", epsilon=-1.0), "epsilon must be"),
        (changed("lift", *UNIT, p=0.1), "p must be"),
        (changed("lift", *UNIT, n_dims=4.0), "a parameter of type float"),
        (changed("lift", *UNIT, n_dims=True), "a parameter of type bool"),
        (changed("lift", *UNIT, kind="Curator"), "Curator"),
        (changed("lift", *UNIT, kind="ScalarGrid"), "ScalarGrid has other parameters"),
        (changed("lift", *UNIT, more=1), "PrivUnit has other parameters"),
        (changed("lift", "rows", kind="file"), "file"),
        (changed("lift", "rows", more=1), "more"),
        (changed("lift", "rows", data_norm=0.0), "data_norm must be"),
        (changed("lift", "rows", expected_norm=2.0), "expected_norm must be"),
        (changed("cube", "rows", lower=[0.0, 0.0]), "bounds must"),
        (changed("cube", "rows", lower=[0.0], upper=[1.0]), "rows of another size"),
        (changed("bitmap", "rows", categories=[["oak"]]), "categories must be"),
        (changed("bitmap", "rows", categories=[["oak", "ash"]]), "rows of another size"),
        (changed("bitmap", "randomiser", chances=[0.2]), "must be named"),
        (changed("bitmap", "randomiser", asked=2), "asked at most as many"),
        (changed("bitmap", "randomiser", widths=[2]), "must be named"),
        (changed("gradients", "rows", coef=[[0.0] * 4] * 2), "coef must be finite"),
        (changed("gradients", "rows", coef=[[0.0] * 5] * 3), "rows of another size"),
        (changed("gradients", "rows", intercept=-1.0), "intercept must be"),
    ],
)
def test_clients_that_make_no_sense_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        LocalClient.from_json(text)


def test_a_price_is_not_believed():
    for text, price in (
        (changed("lift", epsilon=3.9), 3.9),
        (changed("lift", *UNIT, p=0.9999), 4.0),
    ):
        with pytest.raises(ValueError, match=f"a price of at most {price}"):
            LocalClient.from_json(text)


def leaves(plain, path=()):
    """Return the paths of all values of plain data, containers too."""
    own = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in own:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))


JUNK = [None, True, -1, 0, 1e308, 10**400, "", "x", [], [[]], {}, {"kind": "Lift"}, [1, "x"]]


@settings(max_examples=30)
@given(st.sampled_from(list(CLIENTS)), st.integers(0, 10**6), st.sampled_from(JUNK))
def test_any_other_text_is_refused_or_costs_no_more_than_it_says(name, place, value):
    plain = json.loads(CLIENTS[name].to_json())
    paths = [*leaves(plain)]
    *path, last = paths[place % len(paths)]
    part = plain
    for key in path:
        part = part[key]
    part[last] = value
    try:
        client = LocalClient.from_json(json.dumps(plain))
    except ValueError:
        return
    assert client.randomiser.epsilon <= client.epsilon


def test_rows_and_randomisers_go_together():
    plain = json.loads(CLIENTS["lift"].to_json())
    plain["randomiser"] = json.loads(CLIENTS["bitmap"].to_json())["randomiser"]
    with pytest.raises(ValueError, match="categories report by CategorySubsets"):
        LocalClient.from_json(json.dumps(plain))


# Estimators.


def aggregated(client, rows, labels=None):
    """Return the sum of one report of every row."""
    made, text = Aggregator(client), client.to_json()
    for i, row in enumerate(rows):
        label = None if labels is None else labels[i]
        made.add(LocalClient.from_json(text).report(row, label))
    return made


@pytest.mark.parametrize("name", ["lift", "product", "haar", "cube", "scalar"])
def test_a_mean_is_that_of_reports(name):
    privatizer = {**PRIVATIZERS, **PROJECTED}[name]
    bounds = getattr(privatizer, "bounds", None)
    client = privatizer.client(3)
    aggregator = Aggregator(client)
    reports = [reported(client, i) for i in range(12)]
    for report in reports:
        aggregator.add(report)
    values = np.array([client.read(report) for report in reports])
    mean = LocalDPMean(4.0, bounds=bounds, mechanism="lift" if bounds is None else "cube")
    server = mean.fit_reports(aggregator)
    np.testing.assert_allclose(server.location_, values.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(server.standard_error_, values.std(axis=0, ddof=1) / np.sqrt(12))
    assert server.n_features_in_ == 3
    assert server.noise_variance_.shape == (3,)
    assert (server.n_reports_, server.privacy_spent_) == (12, (0.0, 0.0))
    assert not server.ledger_.releases
    assert server.ledger_.assumptions == ("every row reported once, elsewhere, at epsilon=4",)


def test_frequencies_are_those_of_reports():
    model = LocalDPFrequencies(6.0, categories=TREES[0])
    rows = np.array(TREES[0], dtype=object)[np.random.default_rng(0).integers(0, 3, (30, 2))]
    aggregator = aggregated(model.client(2), rows)
    server = clone(model).fit_reports(aggregator)
    assert server.n_features_in_ == 2
    assert server.n_reports_.sum() == 30 * server.randomiser_.asked
    np.testing.assert_array_equal(server.counts_, aggregator._sums.counts)
    assert server.privacy_spent_ == (0.0, 0.0)
    assert "elsewhere" in str(server.ledger_)


@pytest.mark.parametrize("model", [LocalDPCovariance(60.0), LocalDPPCA(2, 60.0)])
def test_moments_are_those_of_reports(model, monkeypatch):
    calls = itertools.count()
    seeded = lambda n: hashlib.shake_256(b"%d" % next(calls)).digest(n)  # noqa: E731
    monkeypatch.setattr(os, "urandom", seeded)
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, size=(120, 3)) * [0.85, 0.45, 0.2]
    client = model.client(3)
    first, second = aggregated(client, rows[:50]), aggregated(client, rows[50:])
    server = model.fit_reports(Aggregator.from_bytes(first.merge(second).to_bytes()))
    assert server.n_features_in_ == 3
    assert server.privacy_spent_ == (0.0, 0.0)
    assert not server.ledger_.releases
    if isinstance(model, LocalDPPCA):
        np.testing.assert_allclose(server.explained_variance_, [0.24, 0.07], atol=0.06)
        assert np.abs(server.components_[[0, 1], [0, 1]]).min() > 0.9
        with pytest.raises(ValueError, match="n_components must be at most"):
            model.client(1)
    else:
        np.testing.assert_allclose(server.covariance_, np.cov(rows.T, ddof=0), atol=0.05)
        # a matrix that no sum of products is
        state = first._sums.state
        state[1, 2] += 1.0
        with pytest.raises(ValueError, match="must be symmetric"):
            first._sums.restore(50, state)
    other = changed("moments", *UNIT, p=0.6)
    fitted = clone(model).set_params(epsilon=4.0)
    with pytest.raises(ValueError, match="randomised in another way"):
        fitted.fit_reports(Aggregator(LocalClient.from_json(other)))
    assert not hasattr(fitted, "ledger_")


def test_rounds_are_the_passes_of_a_fit():
    # a budget at which reports are next to what they report
    rng = np.random.default_rng(0)
    X, order = rng.uniform(-0.5, 0.5, size=(24, 2)), public_order(24)
    labels = np.array(["a", "b", "c"])[np.arange(24) % 3]
    with pytest.warns(match="gives almost no privacy"):
        whole = LocalDPLogisticRegression(1e5, classes=["a", "b", "c"], batch_size=8).fit(X, labels)
    model = clone(whole)
    with pytest.raises(ValueError, match="there is no round"):
        model.partial_fit_reports(Aggregator(CLIENTS["gradients"]))
    for k in range(3):
        batch, client = order[8 * k : 8 * k + 8], model.client(2, 24)
        sums = aggregated(client, X[batch], labels[batch])
        model.partial_fit_reports(sums)
        assert model.n_iter_[0] == k + 1
        if k < 2:
            # the point has moved
            with pytest.raises(ValueError, match="other values of coef"):
                model.partial_fit_reports(sums)
            with pytest.raises(ValueError, match="rounds have begun for n_features=2 and n_samp"):
                model.client(2, 25)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=0.02, atol=0.02)
    assert (model.n_rounds_, model.privacy_spent_) == (3, (0.0, 0.0))
    assert list(model.predict(X)) == list(whole.predict(X))
    for call in (lambda: model.client(2, 24), lambda: model.partial_fit_reports(sums)):
        with pytest.raises(ValueError, match="all 3 rounds are done"):
            call()


def test_a_row_of_another_label_reports_a_zero():
    client = LocalDPLogisticRegression(1e5, classes=[0, 1]).client(2, 100)
    values = client.read(client.report([0.5, 0.5], 7))
    np.testing.assert_allclose(values, 0.0, atol=0.02)
    client = LocalDPLogisticRegression(1e5, classes=[0, 1]).client(2, 100)
    assert np.abs(client.read(client.report([0.5, 0.5], 1))).max() > 0.1


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        (LocalDPMean(3.0), "lift", "other values of epsilon than LocalDPMean has"),
        (LocalDPMean(4.0, data_norm=2.0), "lift", "other values of data_norm than"),
        (LocalDPMean(4.0), "unit", "other values of expected_norm"),
        (LocalDPMean(4.0), "cube", "needs reports of ball; these are of box"),
        (LocalDPMean(4.0), "bitmap", "needs reports of ball; these are of categories"),
        (LocalDPMean(4.0), "moments", "needs reports of ball; these are of moments"),
        (LocalDPCovariance(4.0), "lift", "needs reports of moments; these are of ball"),
        (LocalDPPCA(epsilon=3.0), "moments", "other values of epsilon than LocalDPPCA has"),
        (LocalDPMean(4.0, mechanism="cube", bounds=(0, 1)), "cube", "other values of lower than"),
        (LocalDPFrequencies(1.0), "bitmap", "other values of categories than"),
        (LocalDPFrequencies(1.0), "lift", "needs reports of categories; these are of ball"),
        (LocalDPMean(4.0), "flip", "no report yet"),
    ],
)
def test_estimators_refuse_reports_of_other_parameters(model, name, message):
    aggregator = Aggregator(CLIENTS[name])
    if message != "no report yet":
        aggregator.add(reported(CLIENTS[name]))
    with pytest.raises(ValueError, match=message):
        model.fit_reports(aggregator)
    assert not hasattr(model, "ledger_")


def test_misuse_of_estimators_is_named():
    with pytest.raises(TypeError, match="reports must be an Aggregator; got type list"):
        LocalDPMean().fit_reports([[0.0, 1.0]])
    with pytest.raises(NotFittedError):
        PrivUnitPrivatizer().client()
    with pytest.raises(ValueError, match="n_features"):
        LocalDPMean().client(0)
    for given_ in ({}, {"classes": [0, 1], "covariance_share": 0.2}):
        with pytest.raises(ValueError, match="clients need classes"):
            LocalDPLogisticRegression(**given_).client(2, 100)


# Two processes, and what they send.


SIDE = """
import sys
from skdp.local import LocalClient
text, *answers = sys.stdin.read().splitlines()
for answer in answers:
    print(LocalClient.from_json(text).report([answer]).hex())
"""


@pytest.mark.full
def test_clients_in_another_process():
    model = LocalDPFrequencies(8.0, categories=["no", "yes"])
    aggregator = Aggregator(model.client(1))
    answers = ["yes"] * 150 + ["no"] * 50
    done = subprocess.run(
        [sys.executable, "-c", SIDE],
        input="\n".join([model.client(1).to_json(), *answers]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        aggregator.add(bytes.fromhex(line))
    assert aggregator.n_reports == 200
    np.testing.assert_allclose(
        model.fit_reports(aggregator).frequencies_[0], [0.25, 0.75], atol=0.1
    )
