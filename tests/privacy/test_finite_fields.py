# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Queries with numbers that are not finite: refused before anything is charged or read."""

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone

from skdp import DPHingeSVM, DPLogisticRegression, DPLpRegressor, solvers
from skdp._losses.classification import LogisticLoss
from skdp._minimize.queries import Minimizer
from skdp.papers.bias_reduced import TelescopedGradient
from skdp.privacy import GaussianMechanism, LateNoise
from skdp.privacy.kernel import charging as _charging
from skdp.privacy.kernel.mechanisms import check_fields
from skdp.solvers.gradient import ClippedGradient
from tests.privacy.test_curator import Door, Total, curator_of

NOT_FINITE = (math.nan, math.inf, -math.inf)


@dataclass(frozen=True)
class Part:
    """Something that a query holds."""

    clip: float = 1.0


@dataclass(frozen=True)
class Held(Total):
    """A total with fields of every kind."""

    may_be_infinite: ClassVar[tuple[str, ...]] = ("row_l1",)

    step: float = 0.5
    row_l1: float = math.inf
    point: object = None
    bounds: tuple = (0.0, 1.0)
    part: Part = field(default_factory=Part)
    name: str = "held"


def refused(query, match):
    """Assert that a query is refused, by name, and that nothing happened."""
    door = Door()
    curator = curator_of(door)
    with pytest.raises(ValueError, match=match):
        curator.release(query, GaussianMechanism(0.1))
    with pytest.raises(ValueError, match=match):
        curator.prepay(query, GaussianMechanism(0.1), 2)
    assert (door.opened, query.diary) == (0, [])
    assert not curator.ledger.releases


@pytest.mark.parametrize("value", [*NOT_FINITE, np.float64("nan"), np.float32("inf")])
def test_a_number_that_is_not_finite_is_refused_by_name(value):
    refused(Held(step=value), "query 'held' has a field 'step' that is not finite")
    refused(Held(bounds=(0.0, value)), "query 'held' has a field 'bounds'")
    refused(Held(part=Part(value)), "query 'held' has a field 'clip'")


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("make", [np.asarray, np.atleast_2d, sparse.csr_array, sparse.coo_array])
def test_one_entry_of_an_array_is_enough(value, kind, make):
    entries = np.ones((1, 50) if make is not np.asarray else 50, dtype=kind)
    entries[..., 17] = value
    if make is not np.asarray and kind is np.float16:
        make = np.atleast_2d
    refused(Held(point=make(entries)), "query 'held' has a field 'point'")


def test_infinities_do_not_cancel_and_large_numbers_pass():
    refused(Held(point=np.array([math.inf, -math.inf])), "field 'point'")
    # a sum that overflows is not an entry that is infinite
    largest = np.full(3, np.finfo(np.float64).max)
    for point in (largest, np.zeros(0), np.arange(3), np.array(["a"]), None, "inf", LogisticLoss()):
        check_fields(Held(point=point))
    assert curator_of(Door()).release(Held(point=largest), GaussianMechanism(0.1)).shape == (1,)


def test_only_what_is_declared_may_be_infinite_and_nothing_is_nan():
    check_fields(Held(row_l1=math.inf))
    refused(Held(row_l1=math.nan), "field 'row_l1'")
    # the declaration is that of its own class
    refused(Held(point=Held(step=math.inf)), "query 'held' has a field 'step'")
    check_fields(Held(point=Held(row_l1=math.inf)))


@pytest.mark.parametrize("kind", [Minimizer, TelescopedGradient])
def test_declarations_name_fields_that_are_unbounded_by_default(kind):
    fields = kind.__dataclass_fields__
    assert kind.may_be_infinite
    assert [fields[name].default for name in kind.may_be_infinite] == [math.inf]


def test_the_point_of_every_prepaid_release_is_checked():
    door = Door()
    curator = curator_of(door)
    paid = curator.prepay(Held(), GaussianMechanism(0.1), 2)
    with pytest.raises(ValueError, match="field 'point'"):
        curator.release(Held(point=np.array([math.nan])), paid)
    assert door.opened == 0
    # nothing of the right was used up
    for _ in range(2):
        curator.release(Held(), paid)
    with pytest.raises(ValueError, match="n_skipped"):
        LateNoise(GaussianMechanism(0.1), 2, math.nan)


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", ["clip", "coef"])
def test_the_gradient_of_a_fit_is_refused(name, value):
    query = ClippedGradient(np.zeros(2), LogisticLoss(), 1.0)
    change = {"clip": value} if name == "clip" else {"coef": np.array([0.0, value])}
    with pytest.raises(ValueError, match=f"field '{name}' that is not finite"):
        check_fields(replace(query, **change))


# -- fits, with the validation of scikit-learn switched off --------------------------------------

LOGISTIC, HINGE, LP = DPLogisticRegression, DPHingeSVM, DPLpRegressor
STEPS = ("solver__step_size", "solver__clipping_norm")
PARAMETERS = [
    (LOGISTIC, {"solver": solvers.GD()}, (*STEPS, "coef_bound", "C", "data_norm", "epsilon")),
    (LOGISTIC, {"solver": solvers.SGD()}, (*STEPS, "coef_bound", "solver__batch_size", "delta")),
    (LOGISTIC, {"solver": solvers.Accelerated()}, (*STEPS, "coef_bound", "C")),
    (LOGISTIC, {"mechanism": "objective", "C": 1.0}, ("C", "data_norm", "epsilon", "delta")),
    (LOGISTIC, {"mechanism": "output", "C": 1.0}, ("C", "data_norm", "epsilon", "delta")),
    (HINGE, {"solver": solvers.GD()}, (*STEPS, "coef_bound", "C", "data_norm", "epsilon")),
    (LP, {"solver": solvers.GD()}, (*STEPS, "coef_bound", "l2", "target_scale", "epsilon")),
]
X = np.random.default_rng(0).normal(size=(60, 3))
LABELS = (X[:, 0] > 0).astype(int)


def fit(kind, given, name, value):
    model = clone(kind(max_iter=3, random_state=0, **given)).set_params(**{name: value})
    with sklearn.config_context(skip_parameter_validation=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, LABELS)


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [(kind, given, name) for kind, given, names in PARAMETERS for name in names],
)
def test_nan_never_trains(kind, given, name):
    with pytest.raises((ValueError, TypeError)):
        fit(kind, given, name, math.nan)


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [
        (kind, given, name)
        for kind, given, names in PARAMETERS
        for name in names
        # C=inf is no penalty, coef_bound=inf no constraint
        if name not in ("C", "coef_bound")
    ],
)
def test_infinity_never_trains(kind, given, name):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        fit(kind, given, name, math.inf)


def test_it_is_the_gate_that_refuses_a_bound_that_is_not_a_number():
    facts = (LOGISTIC, {"solver": "gd"}, "coef_bound", math.nan)
    with pytest.raises(ValueError, match="field 'coef' that is not finite"):
        fit(*facts)
    with mock.patch.object(_charging, "check_fields"):
        assert np.isnan(fit(*facts).coef_).all()
