# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a row does to a perturbed objective: the facts that its price rests on."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from skdp._minimize.objective import RowObjective
from skdp._minimize.queries import PerturbedMinimizer
from skdp._minimize.smooth import reachable_tolerance
from tests._neighbours import Rows, neighbours, on_examples
from tests.test_sensitivity import admit
from tests.test_sensitivity_erm import every_smooth


def perturbed(loss, n_coefs, intercept, ridge, n_rows=9):
    norm = math.hypot(1, intercept)
    query = PerturbedMinimizer(loss, ridge, n_coefs, norm, 1.0)
    least = reachable_tolerance(query.bounds(n_rows))
    return PerturbedMinimizer(loss, ridge, n_coefs, norm, 2 * least)


@every_smooth
@on_examples(60)
def test_what_a_row_does_to_a_perturbed_objective_is_as_stated(loss, data):
    first, second = data.draw(neighbours("zero-out", n_classes=max(2, loss.n_outputs)))
    intercept = data.draw(st.sampled_from([0.0, 0.1, 1.0]))
    ridge = data.draw(st.sampled_from([0.01, 1.0, 40.0]))
    n_rows, d = first.X.shape
    n_coefs = d + bool(intercept)
    query = perturbed(loss, n_coefs, intercept, ridge, n_rows)
    facts = query.sensitivity("zero-out", n_rows)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    w = rng.normal(size=query.size) * data.draw(st.sampled_from([0.0, 0.3, 5.0, 1e3]))
    full, less = (
        RowObjective(
            admit(rows, loss, intercept),
            loss,
            ridge=ridge,
            n_coefs=n_coefs,
            row_norm=query.row_norm,
        )
        for rows in (first, second)
    )
    gap = np.linalg.norm(full.gradient(w) - less.gradient(w))
    # a row's penalty cancels, to rounding
    rounding = 1e-12 * (1 + ridge * np.linalg.norm(w) + n_rows)
    assert gap <= facts.reach + rounding
    more = np.linalg.slogdet(full.hessian(w))[1] - np.linalg.slogdet(less.hessian(w))[1]
    assert -1e-7 <= more <= facts.log_det + 1e-7
    if loss.tied:
        size = min(gap / facts.reach, 1.0)
        # a shorter row has a smaller curvature than a long one with that gradient
        assert more <= math.log1p(_tied_curvature(size) * facts.slope) + 1e-6


def _tied_curvature(size):
    """Return the largest a (1 - a) / stretch^2 such that a = size * stretch is in [0, 1]."""
    # the row is shorter than the longest one by the factor 1 / stretch, which is at least 1
    stretch = np.linspace(1.0, 1 / max(size, 1e-9), 2001)
    return float(np.max(size * stretch * (1 - size * stretch) / stretch**2))


@every_smooth
def test_the_stated_determinant_is_attained(loss):
    # one row, alone, at coefficients of zero where every class is as likely
    loss = type(loss)(*([loss.n_outputs] if loss.n_outputs > 1 else []), 0.0, loss.temperature)
    rows = admit(Rows(np.array([[1.0]]), np.array([0]), np.array([False])), loss)
    query = perturbed(loss, 1, 0.0, 0.5)
    J = RowObjective(rows, loss, ridge=0.5, n_coefs=1, row_norm=1.0)
    more = np.linalg.slogdet(J.hessian(np.zeros(query.size)))[1] - query.size * math.log(0.5)
    assert more == pytest.approx(query.sensitivity("zero-out", 1).log_det, rel=1e-9)


@every_smooth
def test_residuals_are_combinations_of_zero_and_the_stated_corners(loss):
    rng = np.random.default_rng(0)
    target = loss.encode(rng.integers(0, max(2, loss.n_outputs), 500))
    z = rng.normal(size=(500, loss.n_outputs)) * 10.0 ** rng.uniform(-3, 4, size=(500, 1))
    if loss.n_outputs == 1:
        z = z[:, 0]
        size = -loss.residual(z.copy(), target) * target
        assert ((size >= 0) & (size <= loss.lipschitz)).all()
        assert loss.corners == 1
        tied = size * (1 - size) / loss.temperature
        np.testing.assert_allclose(loss.curvature(z, target), tied, atol=1e-14)
        return
    # weights of the corners e_k - e_target, of norm sqrt(2), k other than the target
    weights = loss.residual(z.copy(), target)
    own = weights[np.arange(500), target].copy()
    weights[np.arange(500), target] = 0.0
    assert (weights >= 0).all()
    assert (weights.sum(axis=1) <= 1 + 1e-12).all()
    np.testing.assert_allclose(own, -weights.sum(axis=1), atol=1e-12)
    assert (loss.corners, loss.lipschitz) == (loss.n_outputs - 1, math.sqrt(2))
