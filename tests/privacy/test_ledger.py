# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Ledgers: entries, rows, batches, charging, repricing."""

import contextlib
import copy
import dataclasses
import itertools
import json
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from unittest import mock

import dp_accounting
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import DPLogisticRegression, DPMean, papers
from skdp.exceptions import BudgetError
from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    Influence,
    KNormMechanism,
    LaplaceMechanism,
    LateNoise,
    Ledger,
    LocalMechanism,
    Noise,
    ObjectivePerturbation,
    PrivacyBudget,
    Record,
    Release,
    ReportedSum,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
    SparseSensitivity,
    StabilityHistogram,
    SumOfReports,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
)
from skdp.privacy.books.ledger import release_event
from skdp.privacy.kernel.accounting import pure_mu
from skdp.privacy.kernel.charging import Charging, Terms
from skdp.privacy.kernel.mechanisms import Law, Line, Price
from skdp.privacy.laws.search import DeclaredTotal
from tests import _audit
from tests.privacy.test_curator import (
    ADJACENCIES,
    BATCH_DELTA,
    BATCH_EPSILON,
    DELTA,
    EPSILON,
    KINDS,
    MU,
    BatchTotal,
    ColumnTotals,
    Door,
    Setting,
    Total,
    curator_of,
)
from tests.privacy.test_curator import BATCH_N as N
from tests.privacy.test_curator import BATCH_STEPS as STEPS
from tests.privacy.test_curator import DescentSetting as ChargingSetting
from tests.privacy.test_local import Said
from tests.privacy.test_local import curator as local_curator

# The ledger: plain immutable data that composes, prints and survives copies.


LEDGER_DELTA = 1e-6
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
    assert folded.epsilon(LEDGER_DELTA) == pytest.approx(spread.epsilon(LEDGER_DELTA), rel=1e-12)


def test_sums_compose_and_keep_the_order():
    a, b = LEDGERS["gaussian"], LEDGERS["laplace"]
    assert (a + b).releases == a.releases + b.releases
    assert (a + a).releases == (dataclasses.replace(GAUSSIAN, count=4),)
    assert (a + a).epsilon(LEDGER_DELTA) < 2 * a.epsilon(LEDGER_DELTA)
    assert (b + b).epsilon() == pytest.approx(2 * b.epsilon(), rel=1e-15)


@every_ledger
def test_an_empty_ledger_is_neutral(ledger):
    assert Ledger() + ledger == ledger == ledger + Ledger()


def test_an_empty_ledger_costs_nothing():
    assert Ledger().epsilon() == Ledger().epsilon(LEDGER_DELTA) == Ledger().mu == 0.0
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


@pytest.mark.full
@pytest.mark.parametrize("accountant", [PLDAccountant, RdpAccountant])
def test_dp_accounting_reads_gaussian_releases(accountant):
    ledger = ledger_of(*[GAUSSIAN] * 10, entry(GaussianMechanism(0.5)))
    # the events are relative to the ledger's own adjacency: nothing is doubled
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    theirs = accountant(neighboring_relation=relation).compose(ledger.dp_event)
    tolerance = 1e-4 if accountant is PLDAccountant else 0.1
    assert theirs.get_epsilon(LEDGER_DELTA) == pytest.approx(
        ledger.epsilon(LEDGER_DELTA), rel=tolerance
    )
    assert theirs.get_epsilon(LEDGER_DELTA) >= ledger.epsilon(LEDGER_DELTA) * (1 - 1e-6)


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
    fitted = DPMean(epsilon=0.5, random_state=0, data_norm=1.0, mechanism="gaussian").fit(
        [[0.1], [0.2]]
    )
    ledger = fitted.ledger_
    fresh = clone(fitted)
    assert not hasattr(fresh, "ledger_")
    assert fitted.ledger_ is ledger
    assert ledger.epsilon(LEDGER_DELTA) <= 0.5
    assert copy.deepcopy(fitted).ledger_ == pickle.loads(pickle.dumps(fitted)).ledger_ == ledger


# The ledger: releases that name their rows, and prices with a delta.


ROW_N = 12
SPREAD = Sensitivity(math.inf, math.inf, 1.0, "a range", spread=2.0)


def of_rows(rows, mu=0.3, **fields):
    return entry(GaussianMechanism(mu), rows=rows, **fields)


def priced(epsilon, delta):
    """Return a release at a price with a delta, as objective perturbation makes them."""
    said = {field.name: getattr(GAUSSIAN.noise, field.name) for field in dataclasses.fields(Noise)}
    noise = DeclaredTotal(**{**said, "mu": 0.0, "epsilon": epsilon, "delta": delta})
    return dataclasses.replace(GAUSSIAN, noise=noise)


def mu_of_row(releases, row):
    paid = [r for r in releases if r.rows is None or r.rows[0] <= row < r.rows[1]]
    return math.sqrt(sum(r.count * r.noise.mu**2 for r in paid))


parts = st.one_of(
    st.none(),
    st.tuples(st.integers(0, ROW_N - 1), st.integers(1, ROW_N)).filter(
        lambda part: part[0] < part[1]
    ),
)


@given(st.lists(st.tuples(parts, st.sampled_from([0.1, 0.3, 0.8])), min_size=1, max_size=8))
def test_mu_is_the_maximum_over_rows(releases):
    ledger = ledger_of(*[of_rows(rows, mu) for rows, mu in releases])
    expected = max(mu_of_row(ledger.releases, row) for row in range(ROW_N))
    assert ledger.mu == pytest.approx(expected, rel=1e-12)
    assert ledger.mu >= expected * (1 - 1e-15)


def test_disjoint_parts_cost_the_maximum_and_overlapping_ones_add():
    disjoint = ledger_of(of_rows((0, 5), 0.3), of_rows((5, 9), 0.4), of_rows((9, 12), 0.1))
    assert disjoint.mu == pytest.approx(0.4, rel=1e-12)
    assert ledger_of(of_rows((0, 5), 0.3), of_rows((4, 9), 0.4)).mu == pytest.approx(0.5)
    # what reads all rows reads these too
    assert ledger_of(*disjoint.releases, of_rows(None, 0.3)).mu == pytest.approx(0.5)


@given(
    *[st.lists(st.tuples(parts, st.sampled_from([0.1, 0.5])), min_size=0, max_size=4)] * 3
)  # fmt: skip
def test_ledgers_that_are_added_keep_their_fits_apart(one, two, three):
    ledgers = [ledger_of(*[of_rows(rows, mu) for rows, mu in fit]) for fit in (one, two, three)]
    # row 3 of one fit may be any row of another: the largest of each may meet
    worst = sum(max(mu_of_row(each.releases, row) ** 2 for row in range(ROW_N)) for each in ledgers)
    a, b, c = ledgers
    for total in (a + b + c, a + (b + c), c + a + b):
        assert total.mu >= math.sqrt(worst) * (1 - 1e-12)
        # a release of all rows is counted once, whatever fit it is filed under
        assert total.mu <= math.sqrt(worst) * (1 + 1e-12) + 1e-300 or any(
            rows is None for fit in (one, two, three) for rows, _ in fit
        )


def test_the_same_part_of_two_fits_is_not_folded_and_adds():
    ledger = ledger_of(of_rows((0, 5)))
    total = ledger + ledger + ledger
    assert [release.fit for release in total.releases] == [0, 1, 2]
    assert [release.count for release in total.releases] == [1, 1, 1]
    assert total.mu == pytest.approx(0.3 * math.sqrt(3))
    assert ledger_of(of_rows((0, 5)), of_rows((0, 5))).releases[0].count == 2
    # disjoint parts of two fits may be the same people
    other = ledger_of(of_rows((5, 9), 0.4))
    assert (ledger + other).mu == pytest.approx(0.5)


def test_a_part_is_not_folded_with_another_part():
    assert len(ledger_of(of_rows((0, 5)), of_rows((5, 9)), of_rows(None)).releases) == 3


# -- prices with a delta -----------------------------------------------------------------


def test_prices_with_a_delta_add_up():
    one = ledger_of(priced(0.5, 1e-7))
    assert one.epsilon(1e-7) == 0.5
    assert one.epsilon(0.9e-7) == math.inf
    assert one.mu == 0.0
    three = one + one + one
    assert three.releases[0].count == 3
    assert three.epsilon(3.1e-7) == pytest.approx(1.5)
    assert three.epsilon(2.9e-7) == math.inf
    assert (one + ledger_of(LAPLACE)).epsilon(1e-7) == pytest.approx(0.75)


@pytest.mark.sample(2)
@pytest.mark.parametrize("delta", [2e-7, 1e-6, 1e-3])
def test_with_gaussian_noise_the_better_of_two_bounds_is_reported(delta):
    mixed = ledger_of(priced(0.5, 1e-7), priced(0.2, 0.0), GAUSSIAN)
    plain = 0.7 + gdp_epsilon(0.3, delta - 1e-7)
    found = mixed.epsilon(delta)
    assert max(0.5, gdp_epsilon(0.3, delta)) < found <= plain
    assert mixed.fits(found, delta)
    assert not mixed.fits(found * (1 - 1e-6), delta)
    assert not mixed.fits(100.0, 0.5e-7)


@given(st.lists(st.tuples(st.floats(1e-3, 3), st.floats(1e-9, 0.1)), min_size=1, max_size=6))
def test_sums_are_rounded_up_and_never_below_the_exact_one(prices):
    ledger = ledger_of(*[priced(*price) for price in prices])
    exact = math.fsum(epsilon for epsilon, _ in prices)
    assert exact <= ledger.epsilon(0.7) <= exact * (1 + 1e-15)


# -- what is shown -------------------------------------------------------------------------

NEW = ledger_of(
    of_rows((0, 5)),
    entry(KNormMechanism(0.25), size=3),
    priced(0.5, 1e-7),
    dataclasses.replace(
        LAPLACE, noise=ExponentialMechanism(0.4).calibrate(SPREAD, 1), numerics="idealised, x"
    ),
)


def test_text_and_html_show_the_new_fields():
    for text in (str(NEW), NEW._repr_html_()):
        for part in (
            "0 to 5", "k-norm, scale", "epsilon=0.5, delta=1e-07 each", "exponential, scale 5",
            "epsilon=0.25 each", "mu=0.3 each", "idealised, x", "all",
        ):  # fmt: skip
            assert part in text
    assert NEW._repr_html_().count("<tr>") == 5


def test_a_frame_shows_the_new_fields():
    frame = NEW.to_frame()
    assert frame["noise_law"].tolist() == ["gaussian", "k-norm", "gaussian", "exponential"]
    assert frame["noise_delta"].tolist() == [0.0, 0.0, 1e-7, 0.0]
    assert frame["rows"].tolist() == [(0, 5), None, None, None]
    assert {"fit", "rows", "noise_delta", "numerics"} <= set(frame.columns)


def test_a_ledger_of_every_law_goes_through_json_and_pickle():
    plain = json.loads(json.dumps(dataclasses.asdict(NEW)))
    assert [row["rows"] for row in plain["releases"]] == [[0, 5], None, None, None]
    assert pickle.loads(pickle.dumps(NEW)) == NEW
    hash(NEW)


# -- dp_accounting ---------------------------------------------------------------------------


def test_events_of_the_new_laws():
    import dp_accounting

    names = [type(release_event(release)).__name__ for release in NEW.releases]
    # a pure release is composed of randomised responses
    assert names == ["GaussianDpEvent", "ComposedDpEvent", "UnsupportedDpEvent", "ComposedDpEvent"]
    accountant = dp_accounting.pld.PLDAccountant()
    assert not accountant.supports(NEW.dp_event)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        accountant.compose(NEW.dp_event)


@pytest.mark.parametrize("law", ["k-norm", "exponential"])
@pytest.mark.parametrize("count", [1, 4])
def test_dp_accounting_reads_pure_releases_of_the_new_laws(law, count):
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    release = NEW.releases[1 if law == "k-norm" else 3]
    ledger = ledger_of(*[release] * count)
    relation = NeighboringRelation.REPLACE_ONE
    theirs = PLDAccountant(neighboring_relation=relation).compose(ledger.dp_event)
    assert theirs.get_epsilon(1e-12) == pytest.approx(ledger.epsilon(), rel=1e-3)


def test_the_events_of_parts_are_an_upper_bound():
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    ledger = ledger_of(of_rows((0, 5)), of_rows((5, 9)))
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    theirs = PLDAccountant(neighboring_relation=relation).compose(ledger.dp_event)
    assert theirs.get_epsilon(LEDGER_DELTA) > ledger.epsilon(LEDGER_DELTA)


def test_two_fits_of_one_pass_add_up():
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    model = DPLogisticRegression(1.0, solver=papers.OnePass(), classes=(0, 1), data_norm=1.0).fit(
        X, y
    )
    one = model.ledger_
    rows = [release.rows for release in one.releases]
    assert rows[0][0] == 0
    assert rows[-1][1] == 40
    assert all(a[1] == b[0] for a, b in itertools.pairwise(rows))
    assert one.epsilon(1e-6) <= 1.0
    both = one + model.fit(X, y).ledger_
    assert both.mu == pytest.approx(one.mu * math.sqrt(2))
    assert Ledger() + one == one


# Random batches on the ledger: prices of mixtures, events, and how they are shown.


def mixture(adjacency="replace-one", kind="poisson"):
    """Return the ledger of a mixture, and the ledgers of its parts."""
    setting = Setting(adjacency, kind, epsilon=50.0)
    setting.curator.release(BatchTotal(), GaussianMechanism(0.3))
    setting.curator.release(BatchTotal(), LaplaceMechanism(0.2))
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    return ledger, [replace(ledger, releases=(r,)) for r in ledger.releases]


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_costs_at_most_the_sum_and_at_least_each_part(kind, adjacency):
    ledger, parts = mixture(adjacency, kind)
    total = ledger.epsilon(BATCH_DELTA)
    assert max(part.epsilon(BATCH_DELTA) for part in parts) < total
    # the sum takes delta once for every part that has one
    assert total < sum(part.epsilon(BATCH_DELTA / 2) for part in parts)
    assert ledger.epsilon(0.0) == math.inf
    assert ledger.mu == pytest.approx(0.3)
    assert ledger.fits(total, BATCH_DELTA)
    assert not ledger.fits(total * 0.99, BATCH_DELTA)


def test_ledgers_with_batches_add_up():
    ledger, _ = mixture()
    twice = ledger + ledger
    assert sum(r.count for r in twice.releases) == 2 * (STEPS + 2)
    assert (
        ledger.epsilon(BATCH_DELTA)
        < twice.epsilon(BATCH_DELTA)
        < 2 * ledger.epsilon(BATCH_DELTA / 2)
    )


RELATIONS = {
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    "zero-out": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_event_reads_back_to_the_same_epsilon(adjacency):
    setting = Setting(adjacency)
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    accountant = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=1e-3)
    accountant.compose(ledger.dp_event)
    assert accountant.get_epsilon(BATCH_DELTA) == pytest.approx(
        ledger.epsilon(BATCH_DELTA), rel=2e-3
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_event_of_batches_next_to_full_releases_reads_back_too(adjacency):
    # composed as the ledger's adjacency: neither doubled nor halved
    setting = Setting(adjacency, epsilon=50.0)
    setting.curator.release(BatchTotal(), GaussianMechanism(0.3))
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    accountant = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=1e-3)
    accountant.compose(ledger.dp_event)
    assert accountant.get_epsilon(BATCH_DELTA) == pytest.approx(
        ledger.epsilon(BATCH_DELTA), rel=2e-3
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_event_of_batches_of_all_rows_is_a_full_one(adjacency):
    setting = Setting(adjacency, batch_size=N)
    setting.prepay()
    ledger = Ledger.of(setting.curator.ledger)
    accountant = PLDAccountant(RELATIONS["zero-out"], value_discretization_interval=1e-3)
    accountant.compose(ledger.dp_event)
    assert accountant.get_epsilon(BATCH_DELTA) == pytest.approx(
        ledger.epsilon(BATCH_DELTA), rel=1e-2
    )
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


@pytest.mark.sample(2)
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
    assert sampled.noise.mu * math.sqrt(STEPS) > gdp_mu(BATCH_EPSILON, BATCH_DELTA)


# Charges under attack: threads, queries that ask for more, and what is left to be reached.


def ask(workers, each):
    """Return how often `each`, called by many threads at once, was not refused."""
    start = threading.Barrier(workers)

    def one(place):
        start.wait()
        try:
            each(place)
        except (BudgetError, ValueError):
            return False
        return True

    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(one, range(workers)))


class Slow(Total):
    """States its sensitivity only after other threads had their turn."""

    def sensitivity(self, adjacency, n_rows):
        threading.Event().wait(0.002)
        return super().sensitivity(adjacency, n_rows)


@pytest.mark.parametrize("count", [1, 3])
def test_threads_cannot_redeem_a_right_more_often_than_it_was_paid_for(count):
    curator = curator_of(Door())
    paid = curator.prepay(Total(), GaussianMechanism(0.1), count)
    before = curator.ledger
    assert ask(8, lambda _: curator.release(Slow(), paid)) == count
    assert curator.ledger is before


def test_threads_cannot_redeem_a_right_while_another_one_does(monkeypatch):
    rights = []
    for gate, query, law in (
        (local_curator(), Said(), LocalMechanism(0.5)),
        (curator_of(Door()), Total(), GaussianMechanism(0.1)),
        (
            ChargingSetting(epsilon=1.0).curator,
            ColumnTotals(),
            LateNoise(GaussianMechanism(0.1), 1, 0),
        ),
    ):
        rights.append((gate, query, gate.prepay(query, law, 1)))
        # looked at after the rights that are left, and before they are fewer
        slowly = property(lambda _, turns=law.in_turn: threading.Event().wait(0.01) or turns)
        monkeypatch.setattr(type(law), "in_turn", slowly, raising=False)
    for gate, query, paid in rights:
        assert ask(4, lambda _, each=(gate, query, paid): each[0].release(*each[1:])) == 1


def test_threads_cannot_charge_while_another_one_does(monkeypatch):
    fits, gate = Record.fits, curator_of(Door())
    monkeypatch.setattr(Record, "fits", lambda *facts: threading.Event().wait(0.01) or fits(*facts))
    assert ask(4, lambda _: gate.prepay(Total(), LaplaceMechanism(0.6), 1)) == 1
    assert gate.ledger.releases[0].count == 1


def test_a_shared_budget_that_is_used_up_opens_no_door():
    budget, door = PrivacyBudget(1.0, 1e-6), Door()
    curator_of(door, budget=budget)
    with pytest.raises(BudgetError, match="shared budget"):
        curator_of(door, budget=budget)
    assert door.opened == 0
    assert len(budget.charges) == 1


def test_threads_cannot_prepay_more_than_there_is():
    curator = curator_of(Door())
    assert ask(8, lambda _: curator.prepay(Slow(), LaplaceMechanism(0.4), 1)) == 2
    assert curator.ledger.releases[0].count == 2
    assert curator.ledger.fits(EPSILON, DELTA)


@dataclass(frozen=True)
class Greedy(Total):
    """Asks for another release while it is evaluated."""

    curator: list = field(default_factory=list, compare=False)
    inner: object = LaplaceMechanism(0.6)

    def evaluate(self, rows):
        self.curator[0].release(Total(), self.inner)
        return super().evaluate(rows)


def test_a_query_that_asks_for_more_is_charged_for_all_of_it():
    curator = curator_of(Door())
    query = Greedy(curator=[curator])
    with pytest.raises(BudgetError, match="would exceed"):
        curator.release(query, LaplaceMechanism(0.6))
    assert [r.count for r in curator.ledger.releases] == [1]
    # what was charged stays charged, though nothing came of it
    with pytest.raises(BudgetError, match="would exceed"):
        curator.release(Total(), LaplaceMechanism(0.6))
    frugal = Greedy(curator=[curator], inner=LaplaceMechanism(0.1))
    curator.release(frugal, LaplaceMechanism(0.2))
    assert sum(r.noise.epsilon * r.count for r in curator.ledger.releases) == pytest.approx(0.9)


def test_a_right_cannot_be_redeemed_again_while_it_is_redeemed():
    curator = curator_of(Door())
    paid = curator.prepay(Total(), GaussianMechanism(0.1), 1)
    query = Greedy(curator=[curator], inner=paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        curator.release(query, paid)


def test_what_fails_after_it_was_redeemed_is_gone():
    curator = curator_of(Door())
    paid = curator.prepay(Total(fails=True), GaussianMechanism(0.1), 1)
    with pytest.raises(FloatingPointError, match="midway"):
        curator.release(Total(fails=True), paid)
    with pytest.raises(BudgetError, match="no release of this kind is left"):
        curator.release(Total(), paid)


def test_rows_that_cannot_be_admitted_were_paid_for():
    def shut():
        raise OSError("no rows")

    curator = curator_of(shut)
    with pytest.raises(OSError, match="no rows"):
        curator.release(Total(), LaplaceMechanism(0.6))
    with pytest.raises(BudgetError, match="would exceed"):
        curator.release(Total(), LaplaceMechanism(0.6))


def test_rows_that_are_mapped_are_never_seen_as_they_were():
    seen = []

    class Watching(Total):
        def evaluate(self, rows):
            seen.append(rows.copy())
            return super().evaluate(rows)

    curator = curator_of(Door((0.25, 0.5)), epsilon=1e6)
    curator.release(Watching(), LaplaceMechanism(1.0))
    for _ in range(3):
        curator.map_rows(lambda rows: 2 * rows)
    ask(4, lambda _: curator.release(Watching(), LaplaceMechanism(1.0)))
    np.testing.assert_array_equal(seen[0], [0.25, 0.5])
    assert len(seen) == 5
    for rows in seen[1:]:
        np.testing.assert_array_equal(rows, [2.0, 4.0])


def test_a_map_is_not_lost_while_rows_are_admitted():
    # a descent reads its batches one by one, and others may have their turn in between
    begun, mapped = threading.Event(), threading.Event()

    def slowly():
        begun.set()
        mapped.wait(0.05)
        return np.array([0.25, 0.5])

    curator = curator_of(slowly)
    reading = threading.Thread(target=curator._admitted, args=(None,))
    reading.start()
    begun.wait()
    curator.map_rows(lambda rows: 2 * rows)
    mapped.set()
    reading.join()
    np.testing.assert_array_equal(curator._admitted(None), [0.5, 1.0])


@pytest.mark.parametrize("mechanism", [GaussianMechanism(0.5), LaplaceMechanism(0.3)])
def test_a_bound_on_mu_holds_for_every_kind_of_release(mechanism):
    price = pure_mu(0.3) if isinstance(mechanism, LaplaceMechanism) else 0.5
    for bound, fits in ((price * 0.999, False), (price * 1.001, True)):
        curator = curator_of(Door(), epsilon=100.0, mu=bound)
        assert ask(1, lambda _, gate=curator: gate.release(Total(), mechanism)) == fits
        assert len(curator.ledger.releases) == fits


def test_equal_releases_have_fresh_noise_paid_one_by_one_or_at_once():
    curator = curator_of(Door(), epsilon=1e3)
    paid = curator.prepay(Total(40), GaussianMechanism(0.5), 2)
    made = [curator.release(Total(40), paid) for _ in range(2)]
    made += [curator.release(Total(40), GaussianMechanism(0.5)) for _ in range(2)]
    for k, one in enumerate(made):
        assert not any((one == other).any() for other in made[:k])


def test_the_side_that_charges_can_do_no_more():
    terms = Terms(4, "replace-one", "row", False, "system entropy")
    side = Charging(terms, 1.0, 0.0, None, ())
    side.prepay(Total(), LaplaceMechanism(0.6), 1)
    assert not hasattr(side, "release")
    with pytest.raises(BudgetError, match="would exceed"):
        side.prepay(Total(), LaplaceMechanism(0.6), 1)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_short_floats_round_no_curve(kind):
    # the comparison with a short delta was one in short floats, and too small an epsilon came out
    for mu, delta in ((0.7, 1e-3), (0.3, 0.01), (2.0, 0.002)):
        short, exact = (kind(mu), kind(delta)), (float(kind(mu)), float(kind(delta)))
        assert gdp_epsilon(*short) == gdp_epsilon(*exact)
        assert gdp_delta(kind(mu), kind(1.0)) == gdp_delta(exact[0], 1.0)
        assert gdp_mu(kind(1.0), kind(delta)) == gdp_mu(1.0, exact[1])
        assert pure_mu(kind(mu)) == pure_mu(exact[0])
    assert type(gdp_epsilon(kind(0.7), kind(1e-3))) is float


def test_a_budget_of_a_whole_gaussian_fit_is_filled_by_one_release():
    curator = curator_of(Door(), mu=MU)
    curator.release(Total(), GaussianMechanism(MU))
    for least in (GaussianMechanism(1e-4 * MU), LaplaceMechanism(1e-3)):
        with pytest.raises(BudgetError, match="would exceed"):
            curator.release(Total(), least)


# Prices: every line is priced once more, and one that costs more than it declares is refused.


SAMPLING = Sampling("poisson", 2, 1.0)
FACTS = Sensitivity(4.0, 2.0, 10.0, "example", spread=0.5)
INFLUENCE = Influence(2, 1.0, 1, 0.1, 0.2, 1.0, 1e-6, 3.0, "example")
SPARSE = SparseSensitivity(math.inf, 2.0, 1000.0, "example", rows=2, columns=3)


@dataclass(frozen=True)
class Stated:
    """A query that states what it is told to, and never gets as far as its rows."""

    facts: object = FACTS
    name: str = "stated"
    size: int = 4

    def sensitivity(self, adjacency, n_rows):
        return self.facts


LAWS = {
    "gaussian": (GaussianMechanism(0.3), Stated()),
    "laplace": (LaplaceMechanism(0.3), Stated()),
    "k-norm": (KNormMechanism(0.3), Stated()),
    "sampled": (SampledGaussianMechanism(0.3, SAMPLING), Stated()),
    "late": (LateNoise(SampledGaussianMechanism(0.3, SAMPLING), 3, 1), Stated()),
    "exponential": (ExponentialMechanism(0.3), Stated()),
    "local": (LocalMechanism(0.6), Stated()),
    "reported sum": (
        ReportedSum(SampledGaussianMechanism(0.3, SAMPLING), LocalMechanism(0.6, SAMPLING)),
        SumOfReports(Stated(), Stated()),
    ),
    "objective": (ObjectivePerturbation(0.9, 1e-7), Stated(INFLUENCE)),
    "pure objective": (ObjectivePerturbation(0.9, 0.0), Stated(INFLUENCE)),
    "histogram": (StabilityHistogram(0.9, 1e-7), Stated(SPARSE)),
}
every_law = pytest.mark.parametrize("law", LAWS)
#: reports have no scale that says what they cost: the query states it
SCALED = [name for name in LAWS if name != "local"]


def lines_of(name, change=lambda noise: noise):
    law, query = LAWS[name]
    facts = query.sensitivity("replace-one", 2)
    lines = law.lines(query, facts, law.calibrate(facts, query.size))
    return [line._replace(noise=change(line.noise)) for line in lines]


def appended(lines):
    """Return the record of lines, or raise: what is charged goes through here."""
    curator, record = curator_of(Door()), Record()
    for line in lines:
        record = record.append(curator._charging.terms.release(line, None))
    return record


@every_law
def test_a_line_that_declares_what_it_costs_is_accepted(law):
    lines = lines_of(law)
    assert len(appended(lines).releases) == len(lines)
    for line in lines:
        declared, actual = line.noise.price, line.noise.actual(line.stated, line.size)
        assert declared.covers(actual)
        # no more than rounding, and what a search on a curve leaves, is given away
        assert actual.mu >= declared.mu * (1 - 1e-11)
        assert actual.epsilon >= declared.epsilon * (1 - 1e-11)
        assert actual.delta >= 0.99 * declared.delta or law == "histogram"


@pytest.mark.sample(6, 26)
@pytest.mark.parametrize("law", SCALED)
@pytest.mark.parametrize("factor", [0.5, 0.9, 0.0, math.nan, -1.0])
def test_less_noise_than_was_paid_for_is_refused(law, factor):
    lines = lines_of(law, lambda noise: replace(noise, scale=noise.scale * factor))
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines)


@every_law
@pytest.mark.parametrize("factor", [0.5, 0.999])
def test_a_lower_price_than_the_noise_has_is_refused(law, factor):
    def cheaper(noise):
        return replace(noise, mu=noise.mu * factor, epsilon=noise.epsilon * factor)

    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines_of(law, cheaper))


@pytest.mark.parametrize("law", ["gaussian", "laplace", "k-norm", "sampled", "late"])
def test_a_coarser_grid_than_was_paid_for_is_refused(law):
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines_of(law, lambda noise: replace(noise, grid=noise.grid * 2**22)))


@pytest.mark.parametrize("law", SCALED)
def test_a_larger_sensitivity_than_the_noise_covers_is_refused(law):
    lines = [line._replace(stated=1.01 * line.stated) for line in lines_of(law)]
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines)


def test_a_price_without_batches_is_not_that_of_all_rows():
    # all rows are read, and the line says that a batch is
    (line,) = lines_of("gaussian", lambda noise: replace(noise, sampling=SAMPLING))
    with pytest.raises(BudgetError, match="prices other batches than it draws"):
        curator_of(Door()).release(Stated(), Wrong(line))


def test_thresholds_and_deltas_are_part_of_the_price():
    for change in ({"threshold": 4.0}, {"delta": 1e-9}, {"threshold": None}, {"two_sided": False}):
        with pytest.raises(BudgetError, match="declares the price"):
            appended(lines_of("histogram", lambda noise, c=change: replace(noise, **c)))
    with pytest.raises(BudgetError, match="declares the price"):
        appended(lines_of("objective", lambda noise: replace(noise, delta=noise.delta / 2)))


def test_the_influence_that_was_stated_is_the_one_that_is_priced():
    first, second = lines_of("objective")
    weaker = replace(INFLUENCE, reach=0.5)
    first = first._replace(noise=replace(first.noise, influence=weaker))
    with pytest.raises(BudgetError, match="declares the price"):
        appended([first, second])


def test_a_law_that_nobody_knows_has_no_price():
    for name in ("laplacian", "exponential", "local", "search"):
        noise = Noise(name, 1.0, 1.0, 1.0, 1.0, mu=0.0, epsilon=0.1)
        with pytest.raises(BudgetError, match="no price is known"):
            appended([Line("sum", 1, noise, 1.0, "none")])
    # a total that was added up elsewhere says so by its class
    total = DeclaredTotal("search", 0.0, 1.0, math.inf, math.inf, 0.0, 0.5, 1e-7)
    assert appended([Line("search", 1, total, math.inf, "none")]).epsilon(1e-6) == 0.5


class Wrong(Law):
    """A law that says what it is told to, and must not get as far as rows."""

    def __init__(self, *lines):
        self.told = lines

    def calibrate(self, sensitivity, size):
        return None

    def lines(self, query, sensitivity, noise):
        return self.told

    def release(self, query, noise, source):
        raise AssertionError("it was charged")


@pytest.mark.parametrize("told", [(), (Line("sum", 1, None, 1.0, "none"),)])
def test_a_law_that_does_not_say_what_it_costs_is_refused(told):
    door = Door()
    with pytest.raises(BudgetError, match="does not say what it costs"):
        curator_of(door).release(Total(), Wrong(*told))
    with pytest.raises(BudgetError, match="neither a law nor paid for"):
        curator_of(door).release(Total(), object())
    assert door.opened == 0


def test_prices_cover_what_is_of_their_kind():
    price = Price(mu=0.5)
    assert price.covers(Price(mu=0.5))
    assert not price.covers(Price(mu=0.5000001))
    # neither batches nor the range of the loss can be declared away
    assert not Price(mu=0.5, sampling=SAMPLING).covers(price)
    assert not price.covers(Price(epsilon=0.1))
    assert not Price(epsilon=0.5, bounded_range=True).covers(Price(epsilon=0.5))
    assert not price.covers(Price(mu=math.nan))


# -- a calibrator that errs, in a fit ------------------------------------------------------------

FITS = {
    "mean": (DPMean(epsilon=1.0, data_norm=1.0, mechanism="gaussian"), GaussianMechanism),
    "pure mean": (
        DPMean(epsilon=1.0, delta=0.0, mechanism="laplace", data_norm=1.0),
        LaplaceMechanism,
    ),
    "classifier": (DPLogisticRegression(solver="gd", max_iter=3, data_norm=1.0), GaussianMechanism),
    "batches": (
        DPLogisticRegression(solver="sgd", max_iter=3, data_norm=1.0),
        SampledGaussianMechanism,
    ),
}
ROWS = np.linspace(-0.5, 0.5, 40).reshape(20, 2), np.arange(20) % 2


def halving(law):
    """Return a patch with which a law calibrates half the noise that it declares a price for."""
    real = law.calibrate

    def halved(self, sensitivity, size):
        noise = real(self, sensitivity, size)
        return replace(noise, scale=noise.scale / 2)

    return mock.patch.object(law, "calibrate", halved)


@pytest.mark.parametrize("fit", FITS)
def test_a_calibrator_that_halves_the_noise_is_refused(fit):
    estimator, law = FITS[fit]
    with halving(law), pytest.raises(BudgetError, match="its noise is not the one"):
        estimator.fit(*ROWS)


@pytest.mark.parametrize("fit", FITS)
def test_without_a_second_price_the_calibrator_would_not_be_found_out(fit):
    # the mutant of this check: the ledger believes the law, and half of the noise is added
    estimator, law = FITS[fit]

    def believing(noise, stated, size):
        return noise.price

    kinds = [kind for kind in (Noise, *Noise.__subclasses__()) if "actual" in vars(kind)]
    honest = _audit.noise_stream(estimator.fit, *ROWS)
    with halving(law), contextlib.ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(mock.patch.object(kind, "actual", believing))
        erring = _audit.noise_stream(estimator.fit, *ROWS)
    assert len(honest) == len(erring) > 0
    for one, other in zip(honest, erring, strict=True):
        assert other.noise.scale == one.noise.scale / 2
        assert other.noise.price == one.noise.price
