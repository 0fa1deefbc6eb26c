# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The ledger: releases that name their rows, and prices with a delta."""

import dataclasses
import itertools
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp import DPLogisticRegression, papers
from skdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    Ledger,
    Noise,
    Sensitivity,
    gdp_epsilon,
)
from skdp.privacy.books.ledger import release_event
from skdp.privacy.laws.search import DeclaredTotal
from tests.privacy.test_ledger import DELTA, GAUSSIAN, LAPLACE, entry, ledger_of

N = 12
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
    st.tuples(st.integers(0, N - 1), st.integers(1, N)).filter(lambda part: part[0] < part[1]),
)


@given(st.lists(st.tuples(parts, st.sampled_from([0.1, 0.3, 0.8])), min_size=1, max_size=8))
def test_mu_is_the_maximum_over_rows(releases):
    ledger = ledger_of(*[of_rows(rows, mu) for rows, mu in releases])
    expected = max(mu_of_row(ledger.releases, row) for row in range(N))
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
    worst = sum(max(mu_of_row(each.releases, row) ** 2 for row in range(N)) for each in ledgers)
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
    assert theirs.get_epsilon(DELTA) > ledger.epsilon(DELTA)


def test_two_fits_of_one_pass_add_up():
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    model = DPLogisticRegression(1.0, solver=papers.OnePass(), classes=(0, 1), random_state=0).fit(
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
