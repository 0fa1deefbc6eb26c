# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The ledger: plain immutable data that composes, prints and survives copies."""

import copy
import dataclasses
import json
import math
import pickle

import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from sklearn.base import clone

from skdp import DPMean
from skdp.privacy import GaussianMechanism, LaplaceMechanism, Ledger, Release, Sensitivity

DELTA = 1e-6
UNIT = Sensitivity(l1=1.0, l2=1.0, bound=1.0, theorem="a theorem")


def entry(mechanism, size=1, **fields):
    """Return a release of a unit statistic."""
    noise = mechanism.calibrate(UNIT, size)
    usual = {
        "query": "sum",
        "size": size,
        "adjacency": "replace-one",
        "stated_sensitivity": 1.0,
        "theorem": UNIT.theorem,
        "noise": noise,
        "numerics": "exact on the grid, system entropy",
        "seeded": False,
    }
    return Release(**(usual | fields))


def ledger_of(*releases, assumptions=()):
    ledger = Ledger(assumptions=assumptions)
    for release in releases:
        ledger = ledger.append(release)
    return ledger


GAUSSIAN, LAPLACE = entry(GaussianMechanism(0.3)), entry(LaplaceMechanism(0.25))
LEDGERS = {
    "empty": Ledger(),
    "gaussian": ledger_of(GAUSSIAN, GAUSSIAN),
    "laplace": ledger_of(LAPLACE, entry(LaplaceMechanism(0.5), size=3)),
    "mixed": ledger_of(GAUSSIAN, LAPLACE, assumptions=("the labels",)),
}
every_ledger = pytest.mark.parametrize("ledger", LEDGERS.values(), ids=LEDGERS)


@every_ledger
def test_a_ledger_cannot_be_changed(ledger):
    for name in ("releases", "assumptions", "anything"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(ledger, name, ())
    assert isinstance(ledger.releases, tuple)
    hash(ledger)


def test_a_release_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GAUSSIAN.count = 0


def test_append_returns_a_new_ledger():
    before = LEDGERS["gaussian"]
    after = before.append(LAPLACE)
    assert (len(before.releases), len(after.releases)) == (1, 2)
    assert after.releases[:1] == before.releases


def test_repeats_are_counted_in_one_row():
    ledger = ledger_of(*[GAUSSIAN] * 3, LAPLACE, *[GAUSSIAN] * 2)
    assert [release.count for release in ledger.releases] == [3, 1, 2]
    assert [release.noise.law for release in ledger.releases] == ["gaussian", "laplace", "gaussian"]
    many = ledger_of(dataclasses.replace(GAUSSIAN, count=4), dataclasses.replace(GAUSSIAN, count=5))
    assert [release.count for release in many.releases] == [9]


@pytest.mark.parametrize(
    "change", [{"query": "other"}, {"seeded": True}, {"theorem": "other"}, {"size": 2}]
)
def test_what_differs_in_anything_is_not_folded(change):
    other = dataclasses.replace(GAUSSIAN, **change)
    if "size" in change:
        # the grid's share of the price depends on it
        other = entry(GaussianMechanism(0.3), **change)
    assert len(ledger_of(GAUSSIAN, other).releases) == 2


def test_folding_does_not_change_the_price():
    folded = ledger_of(*[GAUSSIAN] * 5)
    spread = Ledger((GAUSSIAN,) * 5)
    assert (len(folded.releases), len(spread.releases)) == (1, 5)
    assert folded.mu == pytest.approx(0.3 * math.sqrt(5), rel=1e-12)
    assert folded.epsilon(DELTA) == pytest.approx(spread.epsilon(DELTA), rel=1e-12)


def test_sums_compose_and_keep_the_order():
    a, b = LEDGERS["gaussian"], LEDGERS["laplace"]
    assert (a + b).releases == a.releases + b.releases
    assert (a + a).releases == (dataclasses.replace(GAUSSIAN, count=4),)
    assert (a + a).epsilon(DELTA) < 2 * a.epsilon(DELTA)
    assert (b + b).epsilon() == pytest.approx(2 * b.epsilon(), rel=1e-15)


@every_ledger
def test_an_empty_ledger_is_neutral(ledger):
    assert Ledger() + ledger == ledger == ledger + Ledger()


def test_an_empty_ledger_costs_nothing():
    assert Ledger().epsilon() == Ledger().epsilon(DELTA) == Ledger().mu == 0.0
    assert Ledger().adjacency is None
    assert Ledger().seeded is False
    assert Ledger().fits(1e-9, 0.0)


def test_adjacencies_do_not_mix():
    other = ledger_of(dataclasses.replace(GAUSSIAN, adjacency="zero-out"))
    assert other.adjacency == "zero-out"
    with pytest.raises(ValueError, match=r"'zero-out' release for a 'replace-one' ledger.*same"):
        LEDGERS["gaussian"] + other


def test_only_ledgers_add_up():
    with pytest.raises(TypeError):
        Ledger() + (GAUSSIAN,)


@every_ledger
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_equal(ledger, duplicate):
    assert duplicate(ledger) == ledger
    assert hash(duplicate(ledger)) == hash(ledger)


def test_assumptions_are_listed_once():
    a, b = Ledger().assume("labels", "n"), Ledger().assume("n", "range")
    assert (a + b).assumptions == ("labels", "n", "range")
    assert a.assume("labels") == a
    assert Ledger().assume("n", "n").assumptions == ("n",)


def test_one_seeded_release_marks_the_ledger():
    seeded = dataclasses.replace(GAUSSIAN, seeded=True)
    assert not LEDGERS["mixed"].seeded
    assert (LEDGERS["mixed"] + ledger_of(seeded)).seeded
    assert "seeded noise" in str(ledger_of(seeded, LAPLACE))


@every_ledger
def test_a_ledger_goes_through_json(ledger):
    plain = json.loads(json.dumps(dataclasses.asdict(ledger)))
    assert plain["assumptions"] == list(ledger.assumptions)
    assert [row["noise"]["scale"] for row in plain["releases"]] == [
        release.noise.scale for release in ledger.releases
    ]


def test_a_frame_has_one_row_for_each_kind_of_release():
    frame = LEDGERS["mixed"].to_frame()
    assert frame["query"].tolist() == ["sum", "sum"]
    assert frame["noise_law"].tolist() == ["gaussian", "laplace"]
    assert frame["noise_scale"].tolist() == [GAUSSIAN.noise.scale, LAPLACE.noise.scale]
    assert {"count", "adjacency", "theorem", "numerics", "seeded"} <= set(frame.columns)
    assert len(Ledger().to_frame()) == 0


def test_text_tells_everything_that_a_reader_must_check():
    text = str(ledger_of(*[GAUSSIAN] * 2, LAPLACE, assumptions=("the labels",)))
    assert text == repr(ledger_of(*[GAUSSIAN] * 2, LAPLACE, assumptions=("the labels",)))
    assert text.startswith("Ledger, releases: 3\n")
    for part in ("mu=0.3 each", "epsilon=0.25 each", "replace-one", "a theorem", "system entropy"):
        assert part in text
    assert "assumed public: the labels" in text
    assert "seeded noise" not in text
    assert str(ledger_of(LAPLACE)).startswith("Ledger, releases: 1\n")
    assert str(Ledger()) == "Ledger, releases: 0"


def test_html_escapes_names_and_assumptions():
    nasty = dataclasses.replace(GAUSSIAN, query="<script>a & b</script>", theorem="x < y")
    page = ledger_of(nasty, assumptions=("<b>labels</b>",))._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    for text in ("&lt;script&gt;a &amp; b", "x &lt; y", "&lt;b&gt;labels", "mu=0.3 each"):
        assert text in page
    assert page.count("<tr>") == 2


@every_ledger
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_fits_agrees_with_epsilon(ledger, delta):
    epsilon = ledger.epsilon(delta)
    assert ledger.fits(max(epsilon, 1e-12), delta)
    assert not ledger.fits(epsilon * (1 - 1e-6), delta) or not ledger.releases


@pytest.mark.parametrize("mu", [1e-3, 0.01, 1.0])
def test_gaussian_noise_never_fits_a_pure_budget(mu):
    ledger = ledger_of(entry(GaussianMechanism(mu)))
    assert ledger.epsilon(0.0) == math.inf
    for epsilon in (0.1, 1.0, 1000.0):
        assert not ledger.fits(epsilon, 0.0)


@pytest.mark.parametrize("accountant", [PLDAccountant, RdpAccountant])
def test_dp_accounting_reads_gaussian_releases(accountant):
    ledger = ledger_of(*[GAUSSIAN] * 10, entry(GaussianMechanism(0.5)))
    # the events are relative to the ledger's own adjacency: nothing is doubled
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    theirs = accountant(neighboring_relation=relation).compose(ledger.dp_event)
    tolerance = 1e-4 if accountant is PLDAccountant else 0.1
    assert theirs.get_epsilon(DELTA) == pytest.approx(ledger.epsilon(DELTA), rel=tolerance)
    assert theirs.get_epsilon(DELTA) >= ledger.epsilon(DELTA) * (1 - 1e-6)


def test_dp_accounting_reads_repeated_laplace_releases():
    theirs = PLDAccountant().compose(ledger_of(*[LAPLACE] * 4).dp_event)
    assert theirs.get_epsilon(1e-12) == pytest.approx(1.0, rel=1e-3)


def test_dp_accounting_counts_every_repeat_of_a_pure_release_of_several_coordinates():
    several = ledger_of(*[entry(LaplaceMechanism(0.25), size=3)] * 4)
    for accountant in (PLDAccountant, RdpAccountant):
        relation = NeighboringRelation.REPLACE_ONE
        theirs = accountant(neighboring_relation=relation).compose(several.dp_event)
        assert theirs.get_epsilon(1e-12) == pytest.approx(several.epsilon(), rel=0.05)


def test_a_clone_has_no_ledger_and_the_original_keeps_its_own():
    fitted = DPMean(epsilon=0.5, random_state=0).fit([[0.1], [0.2]])
    ledger = fitted.ledger_
    fresh = clone(fitted)
    assert not hasattr(fresh, "ledger_")
    assert fitted.ledger_ is ledger
    assert ledger.epsilon(DELTA) <= 0.5
    assert copy.deepcopy(fitted).ledger_ == pickle.loads(pickle.dumps(fitted)).ledger_ == ledger
