# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Cards of what has none, names, files, and how parameters and numbers are shown."""

import copy
import datetime
import json
import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import (
    DPLogisticRegression,
    DPMean,
    DPQuantile,
    DPStandardScaler,
    LocalDPLogisticRegression,
    NormClipper,
    PrivUnitPrivatizer,
    privacy_card,
)
from skdp.inspection import PrivacyCard
from skdp.inspection._card import downward, shown, upward

X = np.random.default_rng(0).normal(size=(137, 3))
Y = np.arange(137) % 2


def facts(estimator, **options):
    return privacy_card(estimator, **options).to_dict()


@pytest.mark.parametrize(
    "given",
    [
        {"param_grid": {"random_state": [271828, 3]}},
        {"param_grid": [{"dpmean__random_state": [271828]}]},
        {"estimator": DPMean(random_state=271828)},
        {"other": make_pipeline(NormClipper(), DPMean(random_state=271828))},
        {"random_state": 271828},
        {"step__random_seed": 271828},
    ],
)
def test_no_seed_is_ever_shown(given):
    for name, value in given.items():
        assert "271828" not in json.dumps(shown(name, value))


def test_unfitted_and_wrong_things_are_refused():
    for unfitted in (DPMean(), PrivUnitPrivatizer(), make_pipeline(NormClipper(), DPMean())):
        with pytest.raises(NotFittedError, match="not fitted"):
            privacy_card(unfitted)
    for wrong in (DPMean, 3, None, "model", DPMean().fit(X).ledger_, X):
        with pytest.raises(TypeError, match="needs a fitted estimator; got"):
            privacy_card(wrong)
    with pytest.raises(TypeError, match="LogisticRegression has no ledger_"):
        privacy_card(LogisticRegression().fit(X, Y))
    broken = DPMean().fit(X)
    broken.ledger_ = "much"
    with pytest.raises(TypeError, match="must be a Ledger; got a str"):
        privacy_card(broken)
    broken = DPMean().fit(X)
    del broken.privacy_spent_
    with pytest.raises(TypeError, match="DPMean has a ledger_ and no privacy_spent_"):
        privacy_card(broken)


def test_adjacencies_that_differ_are_refused():
    pipe = make_pipeline(DPStandardScaler(adjacency="zero-out"), DPLogisticRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="one adjacency"):
        privacy_card(pipe)


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan, 2])
def test_deltas_out_of_range(delta):
    with pytest.raises(ValueError, match="delta"):
        privacy_card(DPMean().fit(X), delta=delta)


def test_names_and_dates():
    model = DPMean().fit(X)
    assert facts(model)["date"] is None
    assert facts(model, date="May")["date"] == "May"
    assert facts(model, date=datetime.date(2030, 1, 2))["date"] == "2030-01-02"
    for wrong in ({"name": 3}, {"date": 2030}):
        with pytest.raises(TypeError, match="must be a str"):
            privacy_card(model, **wrong)
    nasty = "a\n# b | c <script> `x` *y* [z](http://z)"
    heading = str(privacy_card(model, name=nasty)).splitlines()[0]
    assert heading == r"# Privacy card: a # b \| c \<script> \`x\` \*y\* [z\](http://z)"


def test_delta_of_the_user():
    model = DPMean(epsilon=1.0, delta=1e-6).fit(X)
    claim = facts(model, delta=1e-3)["claim"]
    assert claim["delta"] == 1e-3
    assert claim["epsilon"] == model.ledger_.epsilon(1e-3) < 1.0


def test_saving(tmp_path):
    card = privacy_card(DPMean().fit(X))
    assert card.save(tmp_path / "card.md").read_text(encoding="utf-8") == card.to_markdown()
    path = card.save(str(tmp_path / "card.JSON"))
    assert json.loads(path.read_text(encoding="utf-8")) == card.to_dict()
    with pytest.raises(ValueError, match=r"must end in \.md or \.json; got 'card.txt'"):
        card.save(tmp_path / "card.txt")
    with pytest.raises(FileNotFoundError):
        card.save(tmp_path / "none" / "card.md")


def test_a_card_is_a_value():
    model = DPMean().fit(X)
    card = privacy_card(model)
    card.to_dict()["claim"]["epsilon"] = 0
    assert card.to_dict()["claim"]["epsilon"] == model.privacy_spent_[0]
    assert card == privacy_card(model) == pickle.loads(pickle.dumps(card)) == copy.copy(card)
    assert card != privacy_card(DPMean(epsilon=2.0).fit(X))
    assert card != "card"
    assert str(card) == card._repr_markdown_() == card.to_markdown()
    assert repr(card).startswith("<PrivacyCard of DPMean: status 'holds', epsilon=")
    assert isinstance(card, PrivacyCard)


def test_arrays_and_objects_are_summarised():
    lower = np.arange(3.0) - 50
    model = DPQuantile(bounds=(lower, pd.Series([99.0, 99.0, 99.0]))).fit(X)
    bounds = facts(model)["public"]["steps"][0]["parameters"]["bounds"]
    assert bounds == ["ndarray of shape (3,)", "Series of shape (3,)"]
    assert shown("f", np.tanh) == "object of type ufunc" or "tanh" in shown("f", np.tanh)
    assert shown("f", len) == "builtins.len"
    assert shown("x", [1] * 13) == "list of 13"
    assert shown("x", {"b", "a"}) == ["a", "b"]
    assert shown("x", math.inf) == "inf"
    assert shown("x", np.float32(0.5)) == 0.5
    assert shown("x", np.bool_(True)) is True
    assert shown("x", "a" * 300).endswith("... (300 letters)")
    assert shown("x", b"secret") == "object of type bytes"
    deep = value = []
    for _ in range(9):
        value.append([])
        value = value[0]
    assert "not shown" in json.dumps(shown("x", deep))


def test_no_address_is_shown():
    model = make_pipeline(FunctionTransformer(lambda rows: rows), DPMean()).fit(X)
    assert "0x" not in privacy_card(model).to_json()


@pytest.mark.parametrize("x", [0.1, 1.0, 1e-6, math.pi, 1e-300, 123456789.1, 0.99999999, 5e-324])
def test_numbers_are_rounded_outward(x):
    assert downward(x) == upward(x) or float(downward(x)) < x < float(upward(x))
    assert float(downward(x)) <= x <= float(upward(x))
    assert float(upward(x)) <= x * (1 + 1.1e-5) + 5e-324
    assert upward(math.inf) == upward(None) == "infinite"


def test_printed_prices_are_no_less_than_true():
    model = DPLogisticRegression(epsilon=1 / 3, classes=[0, 1]).fit(X, Y)
    text, release = str(privacy_card(model)), model.ledger_.releases[0]
    assert float(re.search(r"epsilon = ([\d.]+) nats", text)[1]) >= model.privacy_spent_[0]
    assert float(re.search(r"mu = ([\d.e-]+) \|", text)[1]) >= release.noise.mu
    assert float(re.search(r"deviation ([\d.e-]+),", text)[1]) <= release.noise.scale


def test_the_event_is_cut_and_says_so():
    model = LocalDPLogisticRegression(epsilon=8.0, classes=[0, 1]).fit(X, Y)
    card = facts(model)["composition"]["dp_event"]
    assert len(card) < 2100
    many = DPMean(mechanism="coinpress", epsilon=8.0, data_norm=1e12).fit(X)
    event = facts(many)["composition"]["dp_event"]
    assert event == str(many.ledger_.dp_event) or "letters; all of it" in event
