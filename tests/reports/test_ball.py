# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of vectors in the ball have the right means and variances, whatever their norm."""

import numpy as np
import pytest

from skdp.local.randomisers.ball import Flip, Lift, flip, lift, lifted, product
from skdp.local.randomisers.privunit import PrivUnit
from skdp.local.randomisers.privunit_gaussian import optimal_privunit_gaussian
from skdp.privacy.kernel.samplers import SeededBits
from tests.randomisers._samples import reports_of, rotated_to, vector_of, worst_bias

N = 60_000
BALLS = [
    lift(3.0, 1), lift(3.0, 6), Lift(PrivUnit(7, 0.3, 0.8)),
    flip(3.0, 1), flip(3.0, 6), Flip(PrivUnit(6, 0.3, 0.8)),
    product(6.0, 1, 2.0, 3), product(6.0, 6, 2.0, 3),
    Lift(optimal_privunit_gaussian(3.0, 7)), Flip(optimal_privunit_gaussian(3.0, 6)),
]  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("norm", [0.0, 1 / 3, 1.0])
def test_moments(ball, norm):
    w = vector_of(ball.n_dims, norm) if norm else np.zeros(ball.n_dims)
    reports = reports_of(ball, w, N)
    assert reports.shape == (N, ball.size)
    assert worst_bias(reports, w) < 4.0
    along, across = ball.variances(norm)
    direction = w if norm else vector_of(ball.n_dims)
    squares = ((reports - w) @ rotated_to(direction).T) ** 2
    expected = np.full(ball.n_dims, across)
    expected[0] = along
    if norm == 0.0:
        # the direction is a fresh one, so the noise is the same in all
        expected[:] = ball.mean_squared_error(0.0) / ball.n_dims
    # constant squares have no standard error
    assert worst_bias(squares, expected) < 4.0 or np.allclose(squares.mean(axis=0), expected)
    errors = np.sum((reports - w) ** 2, axis=1)
    assert errors.mean() == pytest.approx(ball.mean_squared_error(norm), rel=0.02)
    assert np.abs(reports).max() <= ball.bound


@pytest.mark.parametrize("ball", BALLS)
def test_longer_rows_are_scaled_down(ball):
    w = vector_of(ball.n_dims)
    made = [
        ball.report(np.tile(length * w, (30, 1)), SeededBits(2)) for length in (1.0, 3.0, 1e200)
    ]
    np.testing.assert_allclose(made[1], made[0], atol=1e-6)
    np.testing.assert_allclose(made[2], made[0], atol=1e-6)


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_count_as_zero(ball, value):
    zero = np.zeros((30, ball.n_dims))
    odd = zero.copy()
    odd[:, 0] = value
    made = ball.report(odd, SeededBits(2)), ball.report(zero, SeededBits(2))
    np.testing.assert_array_equal(*made)


def test_lifted_rows_have_length_one():
    rows = np.array([[0.0, 0.0], [0.3, -0.4], [3.0, 4.0], [1e-300, 0.0], [1.7e308, 1.7e308]])
    made = lifted(rows)
    np.testing.assert_allclose(np.linalg.norm(made[:4], axis=1), 1.0)
    np.testing.assert_allclose(made[1], [0.3, -0.4, np.sqrt(0.75)])
    np.testing.assert_allclose(made[2], [0.6, 0.8, 0.0])
    np.testing.assert_allclose(made[4], [np.sqrt(0.5), np.sqrt(0.5), 0.0])


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("size", [1e-300, 1e300, 1e308])
def test_all_sizes_give_finite_reports(ball, size):
    made = ball.report(np.full((20, ball.n_dims), size), SeededBits(3), 2)
    assert np.isfinite(made).all()
    assert np.abs(made).max() <= ball.bound
