# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Foundations of measures: laws of reports, scores of outcomes, the same rows seen twice."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp.local import optimal_privunit, projunit
from skdp.local.randomisers import ball, cube, grid, privunit
from skdp.privacy import ExponentialMechanism, GaussianMechanism, Law, Sensitivity
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws.exponential import Variates
from skdp.privacy.laws.measures import Trial, measure
from tests.audit.test_trace import sound

GAUSSIAN = privunit.optimal_privunit_gaussian
RANDOMISERS = {
    "a cap": optimal_privunit(2.0, 3),
    "a normal cap": GAUSSIAN(2.0, 3),
    "lift": ball.lift(2.0, 3),
    "lift, normal": ball.Lift(GAUSSIAN(2.0, 4)),
    "flip": ball.flip(2.0, 3),
    "product": ball.product(3.0, 3, 1.0, 4),
    "a cube": cube.optimal_privunit_cube(2.0, 3),
    "a grid": grid.EntrywiseGrid(grid.scalar_grid(np.linspace(-1, 1, 5), 1.0), 3),
    "a cap of some entries": projunit(2.0, 3, 2),
    "lift, some entries": ball.Lift(projunit(2.0, 4, 2)),
    "flip, some entries": ball.Flip(projunit(2.0, 3, 2, "hadamard")),
}
PAIRS = [([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]), ([0.3, 0.2, 0.0], [-0.9, 0.1, 0.0])]


@pytest.mark.sample(6, 13)
@pytest.mark.parametrize("pair", PAIRS, ids=["opposite", "short"])
@pytest.mark.parametrize("name", RANDOMISERS)
def test_ratios_of_reports_have_mean_one(name, pair):
    # the mean of p'/p under p is 1 for densities, and for hardly anything else
    randomiser, (first, second) = RANDOMISERS[name], map(np.array, pair)
    if "cap" in name:
        first, second = (v / np.linalg.norm(v) for v in (first, second))
    n, source = 8000, Variates(SeededBits(1))
    # where a rotation is public, given that
    made_by, carried, _ = randomiser.given(source)
    first, second = carried(np.stack([first, second]))
    reports = made_by.report(np.tile(first, (n, 1)), source)
    ratios = made_by.log_ratio(reports, first, second)
    assert np.abs(ratios).max() <= randomiser.epsilon
    inverse = np.exp(-ratios)
    assert abs(inverse.mean() - 1) < 5 * inverse.std() / np.sqrt(n)
    assert inverse.std() > 0.1


@pytest.mark.parametrize("rotation", ["haar", "hadamard"])
def test_a_report_is_that_of_the_entries_that_are_kept(rotation):
    # with the same words: its products with all vectors are those of the part that is kept
    randomiser, rows = projunit(3.0, 5, 2, rotation), np.eye(5)
    vector = np.array([[0.6, 0.0, -0.8, 0.0, 0.0]])
    (report,) = randomiser.report(vector, SeededBits(3))
    bits = SeededBits(3)
    made_by, carried, restored = randomiser.given(bits)
    (part,) = made_by.report(carried(vector), bits)
    assert np.allclose(restored(part[None])[0], report, rtol=1e-12, atol=1e-12)
    factor = made_by.scale / randomiser.scale * np.sqrt(randomiser.n_rotated / 2)
    assert np.allclose(report @ rows, factor * carried(rows) @ part, rtol=1e-12, atol=1e-12)
    assert randomiser.epsilon == made_by.epsilon


class Column:
    """Rows of which the sorted positions of one column are known."""

    def __init__(self, positions):
        self._positions = np.sort(positions).astype(np.int32)

    def positions(self, column):
        return self._positions

    def ranked(self, column):
        return self._positions, None


@pytest.mark.sample(1)
@pytest.mark.parametrize("tau", [Fraction(1, 2), Fraction(9, 10)])
def test_draws_have_the_law_of_the_scores_that_are_measured(tau):
    (kind,) = sound("exponential")[1]
    query, rows = kind(0, tau, cells=9), Column([2, 2, 3, 5, 7])
    everywhere = np.arange(10.0)[:, None]
    scores = query.scores_of(rows, everywhere)
    ranks = [(np.sum(rows.positions(0) < t), np.sum(rows.positions(0) <= t)) for t in range(10)]
    wanted = [max(low - 5 * tau, 5 * tau - high, 0) for low, high in ranks]
    assert np.allclose(scores, np.array(wanted, dtype=float))
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity("replace-one", 5), 1)
    bits = SeededBits(2)
    drawn = [int(query.draw(rows, noise, bits)[0]) for _ in range(2000)]
    chances = np.exp(-scores / noise.scale)
    expected = 2000 * chances / chances.sum()
    counts = np.bincount(drawn, minlength=10)
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 9) > 1e-6
    # runs of equal scores stand for all positions
    outcomes, many = query.outcomes(rows, Column([1, 4, 4, 8, 9]))
    assert np.array_equal(np.repeat(query.scores_of(rows, outcomes), many.astype(int)), scores)


class Sum:
    """A sum of rows."""

    name, size = "sum", 1

    def evaluate(self, rows):
        return np.array([float(np.sum(rows))])


def test_the_loss_is_the_log_ratio_of_two_densities():
    law = GaussianMechanism(1.0)
    noise = law.calibrate(Sensitivity(1.0, 1.0, 10.0, "example"), 1)
    trial = Trial(([1.0, 2.0],), ([1.0, 1.5],), None, np.array([2.0]), SeededBits(0))
    (found,) = measure(law, Sum(), noise, trial)
    assert found.distance == pytest.approx(0.5, abs=1e-5)
    assert found.price.mu == pytest.approx(0.5, rel=1e-4)
    assert found.loss == pytest.approx((0.5**2 - 1.0**2) / 2, rel=1e-4)


def test_a_law_without_a_measure_is_refused():
    with pytest.raises(TypeError, match="no measure is known for the law Law"):
        measure(Law(), Sum(), None, None)
