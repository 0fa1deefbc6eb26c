# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Audits of whole estimators: they find what is broken, and leave alone what is not."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from skdp import (
    DPFeatureCenterer,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPQuantile,
    NormClipper,
)
from skdp.audit import audit_one_run, audit_privacy
from tests.audit import _broken as broken

#: one row moved as far as it goes
FAR = ([[0.0], [1.0]], [[0.0], [-1.0]])


def audit(estimator, pair=FAR, **given):
    given = {"n_runs": 400, "random_state": 0} | given
    return audit_privacy(estimator, pair[0], neighbour=pair[1], **given)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_a_sound_estimator_is_not_contradicted(epsilon):
    result = audit(broken.LaplaceMean(epsilon))
    assert result.passed
    assert result.epsilon_claimed == epsilon
    assert result.epsilon_lower > 0.3 * epsilon


@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [
        (broken.HalvedNoise, 1.0),
        (broken.BudgetIgnored, 1.0),
        (broken.NoiselessIntercept, 3.0),
        (broken.CountsSteps, 3.0),
    ],
)
def test_what_is_broken_is_found(kind, epsilon):
    result = audit(kind(epsilon), n_runs=800)
    assert not result.passed
    assert result.epsilon_lower > 1.1 * epsilon


@pytest.mark.parametrize("kind", [broken.NoClipping, broken.RaisesOnOutliers, broken.NanOnOutliers])
def test_the_search_finds_the_rows_that_show_what_is_broken(kind):
    result = audit_privacy(kind(1.0), n_runs=300, random_state=0)
    assert not result.passed
    assert result.epsilon_lower > 2
    if kind is broken.RaisesOnOutliers:
        assert sorted(result.n_failed) == [0, 150]


def test_halved_gaussian_noise_is_seen_in_the_second_figure():
    given = {"epsilon": 4.0, "delta": 1e-5}
    sound, half = (audit(broken.GaussianMean(**given, factor=f), n_runs=1000) for f in (1.0, 0.5))
    assert sound.passed
    assert sound.passed_gaussian
    assert sound.epsilon_gaussian > 2
    assert not half.passed_gaussian
    assert sound.delta == half.delta == 1e-5


def test_a_constant_gives_nothing_away():
    result = audit(broken.Constant(0.1))
    assert result.epsilon_lower == result.mu_lower == 0
    assert result.passed
    assert result.attack == "constant"


def test_a_claim_of_zero_or_infinity():
    assert audit(broken.Constant(0.0)).passed
    assert audit(broken.HalvedNoise(np.inf), n_runs=40, score=lambda f: f.n_rows_).passed


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "estimator",
    [
        DPMean(epsilon=1.0, mechanism="laplace"),
        DPQuantile(epsilon=2.0, bounds=([-1.0, 0.0, 5.0], [1.0, 2.0, 9.0])),
        DPLogisticRegression(epsilon=8.0, classes=("no", "yes"), adjacency="zero-out"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_estimators_of_the_library(estimator):
    result = audit_privacy(estimator, n_runs=40, random_state=1, confidence=0.999)
    assert result.passed
    assert result.n_failed == (0, 0)
    assert result.adjacency == getattr(estimator, "adjacency", "replace-one")
    assert 0 < result.epsilon_claimed <= estimator.epsilon


def test_regressors_and_pipelines_of_the_library():
    X, y = np.zeros((4, 2)), np.zeros(4)
    y[0] = 1.0
    model = DPLpRegressor(epsilon=4.0)
    assert audit(model, ((X, y), (X, -y)), n_runs=40).passed
    model = make_pipeline(NormClipper(), DPFeatureCenterer(epsilon=2.0, threshold=None), DPMean())
    result = audit(model, (X + np.diag([1.0, 0, 0, 0])[:, :2], X), n_runs=40)
    assert result.passed
    assert 2 < result.epsilon_claimed <= 3


@pytest.mark.parametrize(
    "convert",
    [list, np.array, pd.DataFrame, lambda rows: np.array(rows, dtype=np.float32)],
)
def test_rows_may_come_in_many_forms(convert):
    assert audit(broken.LaplaceMean(1.0), [convert(rows) for rows in FAR], n_runs=60).passed
    assert audit(
        broken.LaplaceMean(1.0), [(convert(rows), [0, 1]) for rows in FAR], n_runs=60
    ).passed


def test_sparse_and_read_only_rows():
    X = sparse.csr_array([[0.0, 0.5], [1.0, 0.0]])
    model = DPLogisticRegression(epsilon=8.0)
    result = audit(model, [(X, [0, 1]), (-X * [[0], [1]] + X * [[1], [0]], [0, 1])], n_runs=40)
    assert result.passed
    rows = np.array(FAR)
    rows.flags.writeable = False
    assert audit(broken.LaplaceMean(1.0), rows, n_runs=40).passed


def test_estimators_in_name_only():
    result = audit(broken.Unclonable(1.0), [[1.0, 0.0], [3.0, 0.0]], n_runs=200)
    assert result.epsilon_claimed == 1.0
    # the sum is there without noise
    assert not result.passed


def test_seeds_repeat_an_audit_and_generators_are_replaced():
    first, again = (audit(broken.LaplaceMean(1.0), n_runs=60) for _ in range(2))
    assert first == again
    assert first.seeded
    shared = broken.LaplaceMean(1.0, random_state=3)
    # as given, every fit would have the same noise
    assert audit(shared, random_state=None, n_runs=100).passed


@pytest.mark.slow
def test_jobs_run_in_parallel():
    # seeds are handed out in another order only if tasks are cut otherwise
    result = audit(broken.BudgetIgnored(1.0), n_runs=400, n_jobs=2)
    assert result.n_runs == 400
    assert not result.passed
    assert audit(DPMean(epsilon=2.0), n_runs=100, n_jobs=2, random_state=None).passed


def test_remove_one_and_groups():
    longer, shorter = [[0.0], [1.0], [0.3]], [[0.0], [0.3]]
    for pair in ((longer, shorter), (shorter, longer)):
        assert audit(broken.NoiselessIntercept(3.0), pair, adjacency="remove-one").passed is False
    X, groups = np.zeros((4, 1)), [0, 0, 1, 1]

    class Grouped(broken.LaplaceMean):
        def fit(self, X, y, groups):
            return super().fit(X, y)

    other = X + np.array([[1.0], [1.0], [0.0], [0.0]])
    pair = (X, groups, groups), (other, groups, groups)
    assert audit(Grouped(9.0), pair, n_runs=40).passed
    with pytest.raises(ValueError, match="differ in one group; they differ in 2"):
        audit(Grouped(9.0), (pair[0], (X + 1, groups, groups)))


def test_the_bar(capsys):
    audit(broken.LaplaceMean(1.0), n_runs=40, verbose=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith(f"[{30 * '#'}] 80/80 fits\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_runs": 39}, "n_runs must be an integer of 40"),
        ({"n_runs": 100.0}, "n_runs must be an integer"),
        ({"confidence": 0.0}, r"confidence must be in \(0, 1\); got 0.0"),
        ({"confidence": float("nan")}, "confidence must be"),
        ({"delta": -0.1}, r"delta must be in \[0, 1\); got -0.1"),
        ({"attack": "one"}, "attack must be one of"),
        ({"adjacency": "add-one"}, "adjacency must be one of"),
        ({"score": 3}, "score must be callable"),
        ({"random_state": -1}, "random_state must be an integer of 0"),
        ({"neighbour": FAR[0]}, "data and neighbour must differ; they are equal"),
        ({"neighbour": [[1.0], [2.0]]}, "must differ in one row; they differ in 2"),
        ({"neighbour": [[1.0]]}, "equally many rows"),
        ({"neighbour": [[1.0, 2.0]] * 2}, "have wrong shapes"),
        ({"neighbour": (FAR[0], [0, 1])}, "must be alike"),
        ({"adjacency": "remove-one"}, "must differ by one row"),
        ({"adjacency": "remove-one", "neighbour": [[3.0]]}, "other rows differ too"),
        ({"data": None}, "data must be given with neighbour"),
        ({"estimator": broken.LaplaceMean(np.nan)}, "epsilon of the estimator must be"),
        ({"estimator": broken.LaplaceMean(-1)}, "epsilon of the estimator must be"),
        ({"estimator": broken.GaussianMean(delta=2)}, "delta of the estimator must be"),
        ({"estimator": DPMean(mechanism="no")}, "every fit raised; the first one a "),
        ({"estimator": broken.Bare()}, "no numeric attribute.*; give score"),
        ({"score": lambda fitted: fitted.nothing_}, "every fit raised"),
        ({"neighbour": None, "data": ([[0.0]], [0], [0])}, "with groups, give the neighbour"),
        ({"neighbour": None, "adjacency": "zero-out"}, "which rows do is known for classifiers"),
        ({"neighbour": None, "data": ["a", "b"]}, "X must be a matrix of numbers"),
    ],
)
def test_bad_input(given, message):
    call = {"estimator": broken.LaplaceMean(), "data": FAR[0], "neighbour": FAR[1], "n_runs": 40}
    call |= given
    with pytest.raises(ValueError, match=message):
        audit_privacy(call.pop("estimator"), call.pop("data"), **call)


def test_what_cannot_be_fitted_is_refused():
    for function in (audit_privacy, audit_one_run):
        with pytest.raises(TypeError, match="must have a method fit; got a float"):
            function(1.0, np.eye(20))
