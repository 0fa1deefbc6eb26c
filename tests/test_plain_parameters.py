# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of other types: a fit takes them as plain numbers, or refuses them by name."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from skdp import DPLogisticRegression, DPMean, DPStandardScaler, papers, solvers
from tests.test_common import ALL

rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(40, 4))
LABELS = (X[:, 0] > 0).astype(int)
KINDS = [np.float16, np.float32, np.longdouble, np.int8]
NO_NUMBERS = [True, np.True_, "1", Decimal(1), Fraction(1, 2), math.nan, 1j, 10**400]
pytestmark = pytest.mark.filterwarnings("ignore")


def one_of_each_class():
    return list({type(each): each for each in reversed(ALL)}.values())


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else repr(value)[:20]


def prepared(estimator, given):
    estimator = clone(estimator).set_params(**given)
    own = estimator.get_params(deep=False)
    fresh = {"random_state": 0, "verbose": 0}
    return estimator.set_params(**{name: fresh[name] for name in fresh if name in own})


def fitted(estimator):
    return estimator.fit(X, LABELS if is_classifier(estimator) else X[:, 0])


def in_type(estimator, kind):
    """Return the parameters that are numbers, in another type that holds them."""
    number = int if kind is np.int8 else float
    own = estimator.get_params(deep=False)
    found = {name: v for name, v in own.items() if type(v) is number and name != "verbose"}
    # half floats end at 65504, and lose digits at the other end; integers of eight bits at 127
    most = 127 if kind is np.int8 else 6e4
    return {name: kind(v) for name, v in found.items() if v == 0 or 1e-3 < v <= most}


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", one_of_each_class(), ids=name_of)
def test_short_numbers_promise_what_plain_ones_do(estimator, kind):
    given = in_type(estimator, kind)
    number = int if kind is np.int8 else float
    short = fitted(prepared(estimator, given))
    plain = fitted(prepared(estimator, {name: number(value) for name, value in given.items()}))
    if hasattr(short, "ledger_"):
        assert short.ledger_ == plain.ledger_
        assert short.privacy_spent_ == plain.privacy_spent_
        assert {type(part) for part in short.privacy_spent_} == {float}
    # a fit does not touch parameters
    after = short.get_params(deep=False)
    assert {name: type(after[name]) for name in given} == dict.fromkeys(given, kind)


@pytest.mark.sample(2)
@pytest.mark.parametrize("mechanism", ["objective", "output", "exponential"])
def test_short_numbers_round_no_sensitivity(mechanism):
    usual = {"mechanism": mechanism, "classes": [0, 1], "random_state": 0, "epsilon": 40.0}
    short = {"data_norm": np.float16(1.7), "C": np.float16(7.3), "coef_bound": np.float16(9.1)}
    if mechanism != "exponential":
        del short["coef_bound"]
    plain = {name: float(value) for name, value in short.items()}
    ledgers = [
        DPLogisticRegression(**usual, **{"data_norm": 1.0, **p}).fit(X, LABELS).ledger_
        for p in (short, plain)
    ]
    assert ledgers[0] == ledgers[1]


@pytest.mark.full
def test_short_integers_do_not_run_over():
    # 100 rows in each of 100 steps are more than 16 bits hold, and 100 of them than 8
    usual = {"epsilon": 8.0, "classes": [0, 1], "random_state": 0}
    rows, labels = np.tile(X, (30, 1)), np.tile(LABELS, 30)
    ledgers = [
        DPLogisticRegression(
            solver=solvers.SGD(batch_size=kind(100)),
            max_iter=kind(100),
            **{"data_norm": 1.0, **usual},
        )
        .fit(rows, labels)
        .ledger_
        for kind in (np.int8, np.uint8, int)
    ]
    assert ledgers[0] == ledgers[1] == ledgers[2]


@pytest.mark.covering
@pytest.mark.parametrize("bad", NO_NUMBERS, ids=name_of)
@pytest.mark.parametrize("name", ["epsilon", "delta"])
@pytest.mark.parametrize("estimator", one_of_each_class(), ids=name_of)
def test_what_is_no_plain_number_is_refused_by_name(estimator, name, bad):
    if name in estimator.get_params(deep=False):
        with pytest.raises((ValueError, TypeError), match=name):
            fitted(prepared(estimator, {name: bad}))


@pytest.mark.parametrize("bad", [*NO_NUMBERS, np.array(0.5), [0.5]], ids=name_of)
def test_it_is_refused_of_bounds_and_shares_too(bad):
    centered = DPLogisticRegression(
        solver=papers.FeaturePreprocessing(share=bad), classes=[0, 1], data_norm=1.0
    )
    for estimator, name in (
        (DPLogisticRegression(C=bad, data_norm=1.0), "C"),
        (centered, "share"),
    ):
        with pytest.raises(ValueError, match=name):
            estimator.fit(X, LABELS)


def test_parameters_are_given_back_when_a_fit_fails():
    mean = DPMean(epsilon=np.float32(0.7), delta=np.float16(0.001), data_norm=1.0)

    class Failing:
        """Rows that look at the parameters of the fit, and cannot be read."""

        def __array__(self, *args, **kwargs):
            assert (type(mean.epsilon), type(mean.delta)) == (float, float)
            assert mean.epsilon == float(np.float32(0.7))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mean.fit(Failing())
    assert (type(mean.epsilon), type(mean.delta)) == (np.float32, np.float16)


def test_an_infinity_of_floats_is_a_number():
    assert (
        DPLogisticRegression(C=math.inf, classes=[0, 1], data_norm=1.0)
        .fit(X, LABELS)
        .privacy_spent_[0]
        <= 1
    )
    DPStandardScaler(epsilon=np.int64(1), bounds=(-1, 1)).fit(X)
