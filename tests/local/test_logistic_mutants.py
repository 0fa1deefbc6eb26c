# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of reported gradients, planted one by one: a check sees each of them."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from skdp._losses.classification import LogisticLoss
from skdp.exceptions import BudgetError
from skdp.local import _logistic as _gradient_reports
from skdp.local._ball_randomiser import MAGNITUDES, PARAMETERS, BallRandomiser
from skdp.local._logistic import GradientVectors
from skdp.local.randomisers.report import LocalReports
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import Variates
from tests.local.test_logistic import LONGEST, admitted, fitted, made_up

plans = importlib.import_module("skdp.local._logistic")
N_ROWS, COEF = 20_000, np.array([3.0, -2.0, 0.5, 0.3])


def bias(vectors, randomiser, scale):
    """Return how many standard errors the mean report is off the mean gradient."""
    X, _ = made_up(N_ROWS)
    # labels that the point gets wrong have the longest gradients
    rows = admitted(X, (np.column_stack([X, np.full(N_ROWS, 0.4)]) @ COEF < 0), LogisticLoss())
    made = LocalReports(vectors, randomiser).draw(rows, None, Variates(SeededBits(5)))
    true = [GradientVectors(COEF, LogisticLoss(), 1.0).vectors(chunk) for chunk in rows.chunks]
    errors = scale * made - np.concatenate(true)
    return np.abs(errors.mean(axis=0) / errors.std(axis=0)).max() * np.sqrt(N_ROWS)


def gradients(longest=LONGEST):
    return GradientVectors(COEF, LogisticLoss(), longest)


def test_reports_are_of_the_gradient():
    assert bias(gradients(), BallRandomiser().calibrate(8.0, 4), LONGEST) < 4


def test_a_gradient_that_is_not_bounded_is_seen():
    # longer vectors are scaled down, so that what is left is not the gradient
    randomiser = BallRandomiser().calibrate(8.0, 4)
    assert bias(gradients(0.5), randomiser, 0.5) > 10


def test_a_penalty_inside_of_the_report_is_seen():
    class Penalised(GradientVectors):
        def vectors(self, chunk):
            return super().vectors(chunk) + 0.1 * COEF

    randomiser = BallRandomiser().calibrate(8.0, 4)
    assert bias(Penalised(COEF, LogisticLoss(), LONGEST), randomiser, LONGEST) > 10


def test_a_price_that_is_understated_is_refused(monkeypatch):
    # the plan asks for a report of twice the budget that was granted
    real = BallRandomiser.calibrate
    monkeypatch.setattr(
        BallRandomiser, "calibrate", lambda self, e, *rest: real(self, 2 * e, *rest)
    )
    with pytest.raises(BudgetError, match="exceed the budget"):
        fitted(*made_up())


def test_curvatures_of_rows_that_reported_gradients_are_refused(monkeypatch):
    fit = importlib.import_module("skdp.local._logistic")
    real = _gradient_reports.reported_hessian
    monkeypatch.setattr(
        fit, "reported_hessian", lambda *given: real(*given[:-1], (0, given[-1][1] - given[-1][0]))
    )
    with pytest.raises(BudgetError, match="exceed the budget"):
        fitted(*made_up(), covariance_share=0.3)


@pytest.mark.parametrize("batches", [((0, 300), (200, 600)), ((0, 300), (400, 600))])
def test_batches_that_overlap_or_leave_rows_out_are_refused(monkeypatch, batches):
    real = plans.plan_local_sgd
    monkeypatch.setattr(
        plans, "plan_local_sgd", lambda **given: replace(real(**given), batches=batches)
    )
    with pytest.raises(ValueError, match="rows report in turn"):
        fitted(*made_up())


@pytest.mark.covering
@pytest.mark.parametrize("magnitude", MAGNITUDES)
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_no_choice_spends_more_than_was_asked_for(magnitude, parameters):
    for epsilon in (1e-3, 0.5, 8.0, 300.0, 1e4):
        for n_dims in (1, 2, 3, 50, 500):
            try:
                given = BallRandomiser(magnitude, expected_norm=0.5, parameters=parameters)
                made = given.calibrate(epsilon, n_dims)
            except ValueError as error:
                assert "parameters=" in str(error)  # noqa: PT017
            else:
                assert made.n_dims == n_dims
                assert made.epsilon <= epsilon
                # in few dimensions a large budget cannot be spent
                assert made.epsilon > 0.5 * epsilon or n_dims < 50 or epsilon > 8


def test_levels_and_the_part_for_the_length():
    made = BallRandomiser("product", magnitude_epsilon=3.0, n_levels=4).calibrate(8.0, 20)
    assert made.grid.levels.size == 4
    assert made.grid.epsilon == pytest.approx(3.0)
    # the paper's grid has ceil(exp(eps2 / 3)) cells
    paper = BallRandomiser("product", magnitude_epsilon=10.0, parameters="paper")
    assert paper.calibrate(80.0, 500).grid.levels.size == 30
    simulated = BallRandomiser("product", parameters="paper-simulation").calibrate(62.5, 500)
    assert simulated.grid.epsilon == pytest.approx(62.5 / 8)
    assert simulated.unit.p == pytest.approx(1 / (1 + np.exp(-62.5 / 16)))
    assert BallRandomiser(parameters="half").calibrate(62.5, 500).unit.p == pytest.approx(0.5)
    for given in (BallRandomiser("product", n_levels=1), BallRandomiser(n_levels=4)):
        with pytest.raises(ValueError, match="n_levels"):
            given.calibrate(8.0, 20)


def test_the_expected_norm_is_that_of_the_object_or_the_default():
    assert BallRandomiser("product", expected_norm=0.2).calibrate(16.0, 50) == BallRandomiser(
        "product"
    ).calibrate(16.0, 50, default_norm=0.2)
    short = BallRandomiser("auto", expected_norm=np.float32(0.25))
    assert short.calibrate(16.0, 50) == BallRandomiser("auto").calibrate(16.0, 50, 0.25)
    assert type(short.expected_norm) is np.float32
