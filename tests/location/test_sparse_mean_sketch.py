# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""DPSparseMeanEstimator, mechanism="compressed-sensing": plans, accuracy, bad input."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import chdtri

from skdp._recovery import measurements as _recover
from skdp._recovery.measurements import MEASUREMENTS, RECOVERIES
from skdp.location import DPSparseMeanEstimator
from skdp.location._compressed_sensing import plan_sketch
from skdp.location._sparse_noisy import SparseMeanProblem
from skdp.privacy import gdp_mu
from tests.location._bags import bags_of_words, blocks

every_kind = pytest.mark.parametrize("kind", MEASUREMENTS)


def estimator(*budget, **options):
    options = {"mechanism": "compressed-sensing", "random_state": 0, **options}
    return DPSparseMeanEstimator(*budget, **options)


def problem(**given):
    facts = {
        "n_rows": 1000, "n_features": 2**14, "epsilon": 1.0, "delta": 1e-6,
        "adjacency": "replace-one", "sparsity": 4,
    }  # fmt: skip
    return SparseMeanProblem(**{**facts, **given})


def words(n_rows, n_features, length):
    """Return bags of words as rows of norm 1."""
    X = bags_of_words(n_rows, n_features, length)
    X.sum_duplicates()
    return sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))


def error_of(model, X):
    return np.linalg.norm(model.location_ - np.asarray(X.mean(axis=0)).ravel())


def test_the_number_of_measurements_is_public_arithmetic():
    mu = gdp_mu(1.0, 1e-6)
    expected = 1000 * mu * math.sqrt(2 * 4 * math.log(2**12))
    assert plan_sketch(problem()).n_measurements == int(expected)
    assert plan_sketch(problem(n_measurements=77)).n_measurements == 77
    # clipped to what makes sense
    assert plan_sketch(problem(n_rows=1)).n_measurements == 16
    assert plan_sketch(problem(n_rows=10**7)).n_measurements == 2**14
    assert plan_sketch(problem(n_features=3)).n_measurements == 3
    assert plan_sketch(problem(sparsity=None)).n_measurements > expected
    assert plan_sketch(problem(sparsity=2**14)).n_measurements == 2**14


@every_kind
def test_the_clipping_radius_is_that_of_typical_rows(kind):
    plan = plan_sketch(problem(n_features=2000, n_measurements=100, measurement=kind))
    assert plan.query().radius == math.sqrt(chdtri(100, 1e-3) / 100)
    assert plan.query().radius == pytest.approx(1.22, abs=0.005)
    one = plan_sketch(problem(n_features=2000, sparsity=1, measurement=kind))
    assert one.query().radius == 1.0
    two = plan_sketch(problem(n_features=2000, sparsity=2, n_measurements=2, measurement=kind))
    assert two.query().radius == math.sqrt(2)
    square = plan_sketch(problem(n_features=256, n_measurements=256, measurement="hadamard"))
    assert square.query().radius == 1.0


def test_what_is_released_and_what_it_costs():
    X = blocks(500, 400, 4, 5)
    for adjacency, reach in [("replace-one", 2), ("zero-out", 1)]:
        model = estimator(sparsity=4, n_measurements=100, adjacency=adjacency).fit(X)
        (release,) = model.ledger_.releases
        assert release.size == 100
        radius = math.sqrt(chdtri(100, 1e-3) / 100)
        assert release.stated_sensitivity == pytest.approx(reach * radius)
        assert release.noise.law == "gaussian"
        assert release.noise.mu == pytest.approx(gdp_mu(1.0, 1e-6))
        assert model.privacy_spent_ == (pytest.approx(1.0), 1e-6)
        assert model.privacy_spent_[0] <= 1.0
        assert model.mechanism_ == "compressed-sensing"
        assert model.threshold_ is None


@every_kind
def test_sparse_means_are_recovered(kind):
    X = blocks(2000, 1000, 4, 3)
    for recovery in ("auto", "constrained", "denoising"):
        model = estimator(sparsity=4, measurement=kind, recovery=recovery, n_measurements=200)
        model.fit(X)
        # the mean itself has norm .58
        assert error_of(model, X) < 0.15
        assert model.error_estimate_ == pytest.approx(error_of(model, X), rel=0.4)


@pytest.mark.covering
@every_kind
@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("sparsity", [3, None])
def test_without_noise_to_speak_of_the_mean_comes_back(kind, recovery, sparsity):
    X = blocks(300, 256, 3, 2)
    if recovery == "constrained":
        sparsity = 3
    model = estimator(
        1e6, measurement=kind, recovery=recovery, sparsity=sparsity, n_measurements=120
    ).fit(X)
    assert error_of(model, X) < 0.02


def test_the_better_form_is_kept():
    """Nothing cancels in blocks, and words are few: each form has its case."""
    for X, s, best in [(blocks(1000, 2**12, 4, 6), 4, "constrained"),
                       (words(5000, 2**12, 30), 30, "denoising")]:  # fmt: skip
        errors = {}
        for recovery in ("auto", "constrained", "denoising"):
            model = estimator(sparsity=s, recovery=recovery, n_measurements=400).fit(X)
            errors[recovery] = error_of(model, X), model.error_estimate_
        assert errors["auto"] == errors[best]
        assert errors[best][0] == min(error for error, _ in errors.values())


@pytest.mark.parametrize("m", [100, 400, 1500])
def test_the_error_is_estimated_well_on_words(m):
    X = words(5000, 2**12, 30)
    for sparsity in (None, 30):
        model = estimator(n_measurements=m, sparsity=sparsity).fit(X)
        assert model.error_estimate_ == pytest.approx(error_of(model, X), rel=0.35)


def test_too_few_measurements_are_private_and_say_so():
    X = blocks(1000, 2**12, 16, 30)
    few = estimator(sparsity=16, n_measurements=1).fit(X)
    many = estimator(sparsity=16, n_measurements=2**12).fit(X)
    assert few.privacy_spent_[0] <= 1.0
    assert many.error_estimate_ < 0.5 < few.error_estimate_ <= 1.0
    assert plan_sketch(problem(recovery="equality", n_measurements=2**14)).error(0.1) == (
        math.sqrt(2)
    )


@pytest.mark.parametrize("recovery", ["auto", *RECOVERIES])
@pytest.mark.parametrize("solver", ["auto", "cvxpy", "first-order"])
def test_non_negative_means(recovery, solver):
    X = abs(blocks(400, 60, 3, 4))
    model = estimator(
        20.0, sparsity=3, nonnegative=True, recovery=recovery, solver=solver, n_measurements=40
    ).fit(X)
    assert model.location_.min() >= 0
    assert error_of(model, X) < 0.15


def test_a_failing_solver_leaves_no_trace(monkeypatch, capfd, recwarn):
    X = blocks(400, 60, 3, 4)
    options = {"sparsity": 3, "n_measurements": 40}
    expected = estimator(solver="first-order", **options).fit(X)
    before = len(recwarn)

    def broken(*args, **kwargs):
        raise ArithmeticError(args)

    monkeypatch.setattr(_recover, "recover_with_cvxpy", broken)
    found = estimator(solver="cvxpy", **options).fit(X)
    assert found.ledger_ == expected.ledger_
    np.testing.assert_array_equal(found.location_, expected.location_)
    assert set(vars(found)) == set(vars(expected))
    assert len(recwarn) == 2 * before
    assert capfd.readouterr() == ("", "")
