# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The curator: sums over columns that rows touch, released beyond a threshold."""

import json
import math
from dataclasses import asdict, dataclass

import numpy as np
import pytest
from scipy.special import ndtr

from skdp.exceptions import BudgetError
from skdp.privacy import GaussianMechanism, Ledger, StabilityHistogram
from skdp.privacy.books.ledger import release_event
from skdp.privacy.laws import histogram as _stability
from tests.privacy.test_curator import Door, Total, curator_of
from tests.privacy.test_stability import facts_of


@dataclass(frozen=True)
class Touched:
    """Sums over told columns."""

    pair: tuple = ((3, 2**39), (500.0, -500.0))
    nonnegative: bool = False
    name: str = "touched"
    size: int = 2**40

    def sensitivity(self, adjacency, n_rows):
        return facts_of(1 if adjacency == "zero-out" else 2, self.nonnegative, 4)

    def evaluate(self, rows):
        return self.pair


PRICE = StabilityHistogram(1.0, 1e-6)


def release(query):
    curator = curator_of(Door())
    return curator, curator.release(query, PRICE)


def test_what_is_beyond_the_threshold_is_released_with_its_columns():
    curator, (columns, values) = release(Touched())
    np.testing.assert_array_equal(columns, [3, 2**39])
    (entry,) = curator.ledger.releases
    np.testing.assert_allclose(values, [500, -500], atol=8 * entry.noise.scale)
    steps = values / entry.noise.grid
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_only_positive_sums_are_released_if_no_entry_is_negative():
    columns, values = release(Touched(nonnegative=True))[1]
    assert columns.tolist() == [3]
    assert values.shape == (1,)


@pytest.mark.parametrize("pair", [((), ()), ((5, 6), (0.0, 0.5))])
def test_nothing_is_released_of_columns_near_zero(pair):
    columns, values = release(Touched(pair))[1]
    assert columns.dtype == np.int64
    assert len(columns) == len(values) == 0


@pytest.mark.parametrize(
    "pair",
    [
        ((3,), (1.0, 2.0)),
        ((3, 3), (1.0, 2.0)),
        ((4, 3), (1.0, 2.0)),
        ((-1, 3), (1.0, 2.0)),
        ((3, 2**40), (1.0, 2.0)),
        ((3, 4), 1.0),
    ],
)
def test_a_query_that_breaks_its_form_is_refused(pair):
    with pytest.raises(ValueError, match="sorted columns, and one sum"):
        release(Touched(pair))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_sums_that_are_not_finite_are_clamped(value):
    columns, values = release(Touched(((7,), (value,))))[1]
    assert np.isfinite(values).all()
    assert len(columns) == (not math.isnan(value))


def test_the_ledger_has_the_price_and_the_threshold():
    curator, _ = release(Touched())
    (entry,) = curator.ledger.releases
    noise = entry.noise
    assert (entry.query, entry.size, entry.stated_sensitivity) == ("touched", 2**40, 2.0)
    assert (noise.law, noise.mu, noise.epsilon, noise.delta) == ("gaussian", 0.0, 1.0, 1e-6)
    assert curator.ledger.epsilon(1e-6) == 1.0
    assert curator.ledger.epsilon(0.99e-6) == math.inf
    assert f"only beyond {noise.threshold:.6g}" in repr(Ledger.of(curator.ledger))
    one_sided = release(Touched(nonnegative=True))[0].ledger
    assert f"only above {one_sided.releases[0].noise.threshold:.6g}" in repr(Ledger.of(one_sided))
    assert "beyond" in Ledger.of(curator.ledger)._repr_html_()
    stored = json.loads(json.dumps(asdict(curator.ledger)))
    assert stored["releases"][0]["noise"]["threshold"] == noise.threshold
    assert "UnsupportedDpEvent" in type(release_event(entry)).__name__


def test_overspending_is_refused_and_two_releases_add_up():
    door = Door()
    curator = curator_of(door)
    with pytest.raises(BudgetError):
        curator.release(Touched(), StabilityHistogram(1.001, 1e-6))
    with pytest.raises(BudgetError):
        curator.release(Touched(), StabilityHistogram(1.0, 1.001e-6))
    assert door.opened == 0
    for _ in range(2):
        curator.release(Touched(), StabilityHistogram(0.5, 5e-7))
    with pytest.raises(BudgetError):
        curator.release(Total(), GaussianMechanism(1e-3))
    assert curator.ledger.releases[0].count == 2
    assert 0.9 < curator.ledger.epsilon(1e-6) <= 1.0


def test_a_column_of_one_row_is_released_as_seldom_as_promised():
    curator = curator_of(Door(), epsilon=1e9, delta=0.99, adjacency="zero-out")
    query = Touched(((9,), (1.0,)), nonnegative=True)
    object.__setattr__(query, "sensitivity", lambda *_: facts_of(1, True, 1))
    right = curator.prepay(query, StabilityHistogram(1.0, 0.02), 40)
    hits = sum(len(curator.release(query, right)[0]) for _ in range(40))
    assert hits < 15
    # 10,000 columns at once are the same as so many releases, but for their price
    many = Touched((range(20_000), np.ones(20_000)), nonnegative=True)
    object.__setattr__(many, "sensitivity", lambda *_: facts_of(1, True, 1))
    columns, _ = curator.release(many, StabilityHistogram(1.0, 0.02))
    assert 300 < len(columns) < 500
    noise = curator.ledger.releases[-1].noise
    assert ndtr((1 - noise.threshold) / noise.scale) == pytest.approx(0.02, rel=1e-3)


def test_other_releases_have_no_threshold():
    curator = curator_of(Door())
    curator.release(Total(), GaussianMechanism(0.1))
    noise = curator.ledger.releases[0].noise
    assert noise.threshold is None
    assert "only" not in repr(Ledger.of(curator.ledger))
    # without one nothing would be released
    assert _stability.beyond(np.arange(3), np.full(3, 1e9), noise)[0].size == 0
