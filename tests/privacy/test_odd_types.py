# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of other types at the gate: what is no plain number is refused, or becomes one."""

import math
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skdp.exceptions import BudgetError
from skdp.privacy import (
    Curator,
    ExponentialMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    LocalMechanism,
    PrivacyBudget,
    SampledGaussianMechanism,
    Sampling,
    Sensitivity,
)
from skdp.privacy.kernel.ledger import compose_epsilon, sum_up

PURE = [LaplaceMechanism, KNormMechanism, ExponentialMechanism, LocalMechanism]
NO_NUMBERS = [True, np.True_, "1", Decimal(1), Fraction(1, 2), None, math.nan, 1j, [1.0]]
FLOATS = [np.float16, np.float32, np.longdouble]


@dataclass(frozen=True)
class Total:
    """A sum whose sensitivity is stated in floats of numpy."""

    kind: type = np.float32
    name: str = "total"
    size: int = 1

    def sensitivity(self, adjacency, n_rows):
        number = self.kind(0.7)
        return Sensitivity(number, number, number, "by clipping", spread=number)

    def evaluate(self, rows):
        return np.array([0.25])


def curator(**changes):
    usual = {"n_rows": 4, "epsilon": 1.0, "delta": 1e-6, "adjacency": "replace-one"}
    usual |= {"random_state": None, "purpose": "test", **changes}
    return Curator(lambda: np.zeros(4), **usual)


@pytest.mark.parametrize("bad", NO_NUMBERS)
@pytest.mark.parametrize("mechanism", [*PURE, GaussianMechanism])
def test_a_price_is_a_plain_number(mechanism, bad):
    with pytest.raises(ValueError, match="must be"):
        mechanism(bad)


@pytest.mark.parametrize("bad", NO_NUMBERS)
def test_a_budget_is_made_of_plain_numbers(bad):
    for name in ("epsilon", "delta", "mu"):
        if (name, bad) != ("mu", None):
            with pytest.raises(ValueError, match=f"{name} must be"):
                curator(**{name: bad})
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivacyBudget(bad)
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivacyBudget(1.0).charge(bad, adjacency="replace-one")


def test_a_bound_on_mu_that_is_no_number_does_not_pass_for_none():
    # nothing exceeds NaN
    for bad in (math.nan, math.inf, 0.0, -1.0):
        with pytest.raises(ValueError, match="mu must be finite and greater than 0"):
            curator(mu=bad)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"unit": "person"}, "unit must be one of"),
        ({"adjacency": ["local"]}, "adjacency must be one of"),
        ({"adjacency": None}, "adjacency must be one of"),
    ],
)
def test_words_are_those_that_are_known(changes, match):
    with pytest.raises(ValueError, match=match):
        curator(**changes)


@pytest.mark.parametrize("bad", [3.7, "4", None, np.float64(4)])
def test_a_number_of_rows_is_whole(bad):
    with pytest.raises(TypeError):
        curator(n_rows=bad)
    with pytest.raises(TypeError):
        Sampling("poisson", bad, 1)


def test_parts_of_the_rows_are_whole_numbers_and_stand_as_such_on_the_ledger():
    ours = curator()
    with pytest.raises(TypeError):
        ours.prepay(Total(), LaplaceMechanism(0.1), 1, rows=(0, 2.5))
    with pytest.raises((TypeError, ValueError)):
        ours.release(Total(), LaplaceMechanism(0.1), rows=())
    assert ours.ledger.releases == ()


def all_numbers(noise):
    values = [getattr(noise, field.name) for field in fields(noise)]
    return [value for value in values if not isinstance(value, str | None)]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("mechanism", [*PURE, GaussianMechanism])
def test_short_floats_round_neither_noise_nor_price(mechanism, kind):
    price, query = kind(0.7), Total(kind)
    noise = mechanism(price).calibrate(query.sensitivity("replace-one", 4), 1)
    plain = Sensitivity(*[float(price)] * 3, "by clipping", spread=float(price))
    assert noise == mechanism(float(price)).calibrate(plain, 1)
    assert {type(value) for value in all_numbers(noise)} <= {float, int, bool}


@pytest.mark.parametrize("kind", FLOATS)
def test_short_floats_do_not_reach_the_ledger(kind):
    ours = curator(epsilon=kind(1.0), delta=kind(1e-3), mu=kind(0.5))
    ours.release(Total(kind), GaussianMechanism(kind(0.1)))
    ours.release(Total(kind), GaussianMechanism(np.float64(0.1)))
    for release in ours.ledger.releases:
        assert {type(value) for value in all_numbers(release.noise)} <= {float, int, bool}
        assert type(release.stated_sensitivity) is float
    assert type(ours.ledger.epsilon(kind(1e-3))) is float


@pytest.mark.parametrize("law", ["poisson", "without-replacement", "with-replacement"])
def test_the_rate_of_a_batch_has_all_its_digits(law):
    # 7 / 10 in 24 bits is less than 0.7
    short, plain = Sampling(law, np.int32(10), np.float32(7)), Sampling(law, 10, 7)
    assert short == plain
    assert short.rate == plain.rate >= 0.7 * (law == "without-replacement")
    assert type(short.n_rows) is int
    assert type(short.batch_size) is float
    assert type(plain.batch_size) is int
    unit = Sensitivity(math.inf, 1.0, 1.0, "")
    assert SampledGaussianMechanism(0.5, short).calibrate(unit, 1).sampling == plain


@pytest.mark.parametrize("bad", [True, "1", None, Decimal(1), math.nan, 0, 11])
def test_a_batch_has_a_plain_size(bad):
    with pytest.raises(ValueError, match="batch_size must be"):
        Sampling("poisson", 10, bad)


def test_a_sum_of_two_kinds_of_prices_is_rounded_up():
    for price in np.linspace(0.5, 9, 60).tolist():
        # an epsilon of its own from noise, whose digits the other price hides
        alone = compose_epsilon(1e-4, [], 1e-6)
        both = compose_epsilon(1e-4, [(price, 0.0, 1)], 1e-6)
        assert 0 < Fraction(alone) + Fraction(price) <= Fraction(both)


def test_a_sum_may_overflow_to_infinity():
    assert sum_up([(1e308, 2)]) == sum_up([(math.inf, 1)]) == math.inf
    assert compose_epsilon(0.0, [(1e308, 0.0, 2)], 0.0) == math.inf
    ours = curator(epsilon=1e308)
    ours.release(Total(float), LaplaceMechanism(9e307))
    with pytest.raises(BudgetError, match="would exceed the budget"):
        ours.release(Total(float), LaplaceMechanism(1e308))
