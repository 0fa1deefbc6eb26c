# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""ScalarPrivatizer: every feature reports on its own, from exact laws."""

import numpy as np
import pytest

from skdp import ScalarPrivatizer

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")


@pytest.mark.parametrize("levels", ["uniform", "relative"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 30.0])
def test_reports_are_unbiased_and_their_variance_is_bounded(levels, epsilon):
    row = np.array([0.3, 7.0, -1.0])
    made = ScalarPrivatizer(epsilon, bounds=([0, 0, -1], [1, 10, 3]), levels=levels).fit(row[None])
    reports = made.transform(np.tile(row, (50_000, 1)))
    error = reports.std(axis=0) / np.sqrt(50_000)
    assert (np.abs(reports.mean(axis=0) - row) <= 5 * error).all()
    # at large budgets a few far levels make up half of the variance
    squares = (reports - row) ** 2
    error = squares.std(axis=0) / np.sqrt(50_000)
    assert (squares.mean(axis=0) <= made.noise_variance_ + 5 * error).all()
    np.testing.assert_allclose(
        made.noise_variance_, made.noise_variance_[0] * np.array([1, 100, 16])
    )
    (release,) = made.ledger_.releases
    assert 0.999 * epsilon < release.noise.epsilon <= epsilon
    assert release.numerics == "exact on the grid, system entropy"
    assert made.randomiser_.grid.epsilon <= epsilon / 3


def test_reports_are_levels_and_their_shares_are_those_of_randomised_response():
    made = ScalarPrivatizer(2.0, n_levels=4).fit([[0.0]])
    found = {x: made.transform(np.full((40_000, 1), x))[:, 0] for x in (0.0, 1.0)}
    levels = np.unique(found[0.0])
    np.testing.assert_allclose(levels, 0.5 + made.randomiser_.grid.outputs / 2, atol=2e-6)
    shares = np.array([[np.mean(r == v) for v in levels] for r in found.values()])
    p = made.randomiser_.grid.p
    np.testing.assert_allclose(shares[0], [p, *[(1 - p) / 3] * 3], atol=0.01)
    # the audit: what the largest ratio is
    assert np.log(shares[0] / shares[1]).max() == pytest.approx(2.0, abs=0.1)
    assert made.message_bits_ == 2


def test_relative_levels_are_fine_near_the_lower_bound():
    coarse = ScalarPrivatizer(60.0, n_levels=40).fit([[0.0]])
    fine = ScalarPrivatizer(60.0, n_levels=40, levels="relative", floor=0.01).fit([[0.0]])
    assert fine.randomiser_.grid.levels.size <= 40
    small = np.full((20_000, 1), 0.005)
    assert fine.transform(small).var() < coarse.transform(small).var() / 20


def test_features_share_the_budget_and_report_independently():
    made = ScalarPrivatizer(6.0).fit(np.zeros((1, 3)))
    reports = made.transform(np.full((50_000, 3), 0.4))
    correlations = np.corrcoef(reports.T) - np.eye(3)
    assert np.abs(correlations).max() < 0.025
    assert made.randomiser_.n_dims == 3


def test_rows_that_are_equal_once_they_are_clipped_keep_their_seeded_reports():
    rows = np.random.default_rng(0).uniform(1, 3, size=(30, 2))
    made = ScalarPrivatizer(random_state=0).fit(rows)
    np.testing.assert_array_equal(made.transform(rows)[::-1], made.transform(rows[::-1]))


def test_new_rows_are_clipped_only():
    made = ScalarPrivatizer(bounds=(0.0, 2.0))
    made.fit_transform([[1.0], [3.0]])
    np.testing.assert_array_equal(made.transform([[-1.0], [1.5], [9.0]])[:, 0], [0.0, 1.5, 2.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"floor": 0.1}, 'floor is for levels="relative" only'),
        ({"levels": "relative", "n_levels": 2}, "n_levels must be at least 6"),
        ({"levels": "relative", "floor": 0.0}, "floor"),
        ({"n_levels": 1}, "n_levels"),
        ({"bounds": (1.0, 0.0)}, "bounds"),
        ({"bounds": None}, "bounds"),
        ({"epsilon": 1e-6}, "epsilon must be at least .* for 2 features"),
        ({"epsilon": 3e6}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        ScalarPrivatizer(**given).fit(np.zeros((2, 2)))


def test_budgets_of_other_types():
    rows = np.full((2, 3), 0.5)
    privatizer = ScalarPrivatizer(epsilon=np.float32(1)).fit(rows)
    assert privatizer.transform(rows).shape == (2, 3)
    assert privatizer.privacy_spent_[0] <= 1.0
    with pytest.raises(ValueError, match="epsilon"):
        ScalarPrivatizer(epsilon=True).fit(rows)
    with pytest.raises(ValueError, match=r"epsilon must be from 1e-6 to 1e6.* got 10000000.0"):
        ScalarPrivatizer(epsilon=1e7).fit(rows)
