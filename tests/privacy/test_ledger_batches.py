# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random batches on the ledger: prices of mixtures, events, and how they are shown."""

import json
import math
import pickle
from dataclasses import asdict, replace

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from skdp.privacy import GaussianMechanism, LaplaceMechanism, Ledger, gdp_mu
from tests.privacy.test_curator_batches import (
    ADJACENCIES,
    DELTA,
    EPSILON,
    KINDS,
    STEPS,
    N,
    Setting,
    Total,
)


def mixture(adjacency="replace-one", kind="poisson"):
    """Return the ledger of a mixture, and the ledgers of its parts."""
    setting = Setting(adjacency, kind, epsilon=50.0)
    setting.curator.release(Total(), GaussianMechanism(0.3))
    setting.curator.release(Total(), LaplaceMechanism(0.2))
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    return ledger, [replace(ledger, releases=(r,)) for r in ledger.releases]


@pytest.mark.covering
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_costs_at_most_the_sum_and_at_least_each_part(kind, adjacency):
    ledger, parts = mixture(adjacency, kind)
    total = ledger.epsilon(DELTA)
    assert max(part.epsilon(DELTA) for part in parts) < total
    # the sum takes delta once for every part that has one
    assert total < sum(part.epsilon(DELTA / 2) for part in parts)
    assert ledger.epsilon(0.0) == math.inf
    assert ledger.mu == pytest.approx(0.3)
    assert ledger.fits(total, DELTA)
    assert not ledger.fits(total * 0.99, DELTA)


def test_ledgers_with_batches_add_up():
    ledger, _ = mixture()
    twice = ledger + ledger
    assert sum(r.count for r in twice.releases) == 2 * (STEPS + 2)
    assert ledger.epsilon(DELTA) < twice.epsilon(DELTA) < 2 * ledger.epsilon(DELTA / 2)


RELATIONS = {
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    "zero-out": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_event_reads_back_to_the_same_epsilon(adjacency):
    setting = Setting(adjacency)
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    accountant = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=1e-3)
    accountant.compose(ledger.dp_event)
    assert accountant.get_epsilon(DELTA) == pytest.approx(ledger.epsilon(DELTA), rel=2e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_event_of_batches_next_to_full_releases_reads_back_too(adjacency):
    # composed as the ledger's adjacency: neither doubled nor halved
    setting = Setting(adjacency, epsilon=50.0)
    setting.curator.release(Total(), GaussianMechanism(0.3))
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    accountant = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=1e-3)
    accountant.compose(ledger.dp_event)
    assert accountant.get_epsilon(DELTA) == pytest.approx(ledger.epsilon(DELTA), rel=2e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_event_of_batches_of_all_rows_is_a_full_one(adjacency):
    setting = Setting(adjacency, batch_size=N)
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    accountant = PLDAccountant(RELATIONS["zero-out"], value_discretization_interval=1e-3)
    accountant.compose(ledger.dp_event)
    assert accountant.get_epsilon(DELTA) == pytest.approx(ledger.epsilon(DELTA), rel=1e-2)
    (event,) = ledger.dp_event.events
    assert isinstance(event.event, dp_accounting.GaussianDpEvent)


def test_events_of_fixed_sizes_name_their_sampling():
    for kind, name in (
        ("without-replacement", "SampledWithoutReplacementDpEvent"),
        ("with-replacement", "SampledWithReplacementDpEvent"),
    ):
        setting = Setting(kind=kind)
        setting.prepay()
        (event,) = Ledger.of(setting.curator.ledger).dp_event.events
        assert type(event.event).__name__ == name
        assert (event.event.source_dataset_size, event.event.sample_size) == (N, 4)
        assert event.count == STEPS


@pytest.mark.parametrize("kind", KINDS)
def test_a_ledger_with_batches_can_be_shown_and_stored(kind):
    ledger, _ = mixture(kind=kind)
    text, page = repr(ledger), ledger._repr_html_()
    for shown in (text, page):
        assert f"a batch of 4, {kind}, rate" in shown
        assert "if all rows were read, each" in shown
    frame = ledger.to_frame()
    assert list(frame["count"]) == [1, 1, STEPS]
    stored = json.loads(json.dumps(asdict(ledger)))
    assert stored["releases"][2]["noise"]["sampling"] == {
        "kind": kind, "n_rows": N, "batch_size": 4,
    }  # fmt: skip
    assert pickle.loads(pickle.dumps(ledger)) == ledger


def test_the_price_of_batches_is_below_that_of_all_rows():
    ledger, _ = mixture()
    sampled = ledger.releases[-1]
    assert sampled.noise.mu * math.sqrt(STEPS) > gdp_mu(EPSILON, DELTA)
