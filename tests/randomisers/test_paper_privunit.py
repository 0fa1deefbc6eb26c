# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the paper chooses for PrivUnit, what it costs, and where its conditions are wrong."""

import math

import pytest
from numpy.testing import assert_allclose

from skdp.local.randomisers.caps import cap_cosine
from skdp.local.randomisers.privunit import PrivUnit, optimal_privunit, paper_privunit
from tests.randomisers import _reference

BUDGETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# mean squared errors over the least one, in dimension 10^4
RATIOS = {
    "paper": (1.178, 1.731, 2.000, 2.373, 2.669, 2.606, 2.184, 1.591, 1.151, 1.009),
    "exact": (1.048, 1.175, 1.533, 2.105, 2.517, 2.532, 2.153, 1.579, 1.147, 1.007),
    "fair coin": (1.050, 1.186, 1.576, 2.251, 2.904, 3.365, 3.663, 3.863, 4.034, 4.250),
}


def made(rule, epsilon, d):
    if rule == "paper":
        return paper_privunit(0.99 * epsilon, 0.01 * epsilon, d)
    if rule == "exact":
        return paper_privunit(0.99 * epsilon, 0.01 * epsilon, d, "exact")
    return PrivUnit(d, cap_cosine(-epsilon - math.log1p(math.exp(-epsilon)), d), 0.5)


def ratio(found, epsilon, d):
    return found.mean_squared_error / optimal_privunit(epsilon, d).mean_squared_error


@pytest.mark.parametrize("rule", RATIOS)
def test_what_other_parameters_cost(rule):
    for epsilon, wanted in zip(BUDGETS, RATIOS[rule], strict=True):
        assert_allclose(ratio(made(rule, epsilon, 10**4), epsilon, 10**4), wanted, atol=5.1e-4)


def test_what_the_split_of_the_simulations_costs():
    # 13/16 for the cap and 1/16 for the coin, against all 14/16 spent well
    wanted = (1.106, 1.421, 1.763, 1.716, 1.520, 1.185, 1.022, 1.026, 1.049, 1.063)
    for epsilon, value in zip(BUDGETS, wanted, strict=True):
        found = paper_privunit(13 * epsilon / 16, epsilon / 16, 10**4)
        assert_allclose(ratio(found, 14 * epsilon / 16, 10**4), value, atol=5.1e-4)


def test_small_dimensions_suffer_more():
    for d, epsilon, wanted in [(5, 4, 3.26), (5, 8, 11.3), (5, 16, 157), (100, 128, 7.7)]:
        assert_allclose(ratio(made("paper", epsilon, d), epsilon, d), wanted, rtol=6e-3)


# dimension, budget: cosine, p as printed, length of reports, of the best ones, ratio of errors
TABLE = [
    (3274634, 500, 0.01729, 0.993, 58.15, 57.88, 1.009),  # printed: p = 1.0
    (3274634, 250, 0.01217, 0.924, 88.71, 82.63, 1.153),
    (3274634, 100, 0.00760, 0.731, 179.04, 133.95, 1.786),
    (3274634, 50, 0.00527, 0.622, 301.66, 196.54, 2.356),  # printed: cosine 0.00526
    (1068298, 5000, 0.09598, 1.0, 10.42, 10.38, 1.008),
    (1068298, 1000, 0.04291, 1.0, 23.29, 23.27, 1.002),
    (1068298, 500, 0.03027, 0.993, 33.22, 33.07, 1.009),
    (1068298, 100, 0.01331, 0.731, 102.26, 76.51, 1.787),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_table_one(row):
    # Bhowmick et al. (2018), Table 1, with its two misprints mended
    d, epsilon, cosine, p, length, best, wanted = row
    found = paper_privunit(0.99 * epsilon, 0.01 * epsilon, d)
    assert round(found.cosine, 5) == cosine
    assert round(found.p, 3) == p
    assert_allclose(1 / found.scale, length, atol=6e-3)
    assert_allclose(1 / optimal_privunit(epsilon, d).cosine, best, atol=6e-3)
    assert_allclose(ratio(found, epsilon, d), wanted, atol=6e-4)
    # all are 16b at their budgets, and spend less than they claim
    assert found.cosine == paper_privunit(0.99 * epsilon, 0.01 * epsilon, d, "16b").cosine
    assert found.epsilon < epsilon


def test_equivalent_best_budgets():
    for d, epsilon, wanted in [(3274634, 50, 24.4), (3274634, 100, 59.0), (1068298, 100, 59.0)]:
        mse = paper_privunit(0.99 * epsilon, 0.01 * epsilon, d).mean_squared_error
        below = optimal_privunit(wanted - 0.06, d).mean_squared_error
        above = optimal_privunit(wanted + 0.06, d).mean_squared_error
        assert above < mse < below


def test_condition_16a_is_false_in_dimension_two():
    claimed = 1.976
    found = paper_privunit(claimed, 1e-9, 2, "16a")
    assert_allclose(found.cosine, 0.948, atol=5e-4)
    spent = float(_reference.budget(found.p, _reference.log_cap(found.cosine, 2)))
    assert_allclose(spent, 2.164, atol=2e-3)
    assert found.epsilon >= spent > claimed
    with pytest.raises(ValueError, match="gives no cosine below 1"):
        paper_privunit(5.0, 1.0, 2, "16a")


@pytest.mark.parametrize("d", [3, 4, 5, 10, 29, 100, 10**5])
@pytest.mark.parametrize("condition", ["16a", "16b", "16", "exact"])
def test_the_conditions_hold_from_dimension_three_on(d, condition):
    for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0):
        try:
            found = paper_privunit(epsilon, 0.5, d, condition)
        except ValueError:
            # small budgets leave nothing by 16b, large ones no sphere by 16a
            assert condition == "16b" or (condition == "16a" and d == 3)
            continue
        assert found.epsilon <= epsilon + 0.5 + 1e-10


def test_bad_input():
    with pytest.raises(ValueError, match="condition must be one of"):
        paper_privunit(1.0, 1.0, 3, "17")
    with pytest.raises(ValueError, match="n_dims must be an integer from 2"):
        paper_privunit(1.0, 1.0, 1)
    with pytest.raises(ValueError, match="epsilon must be"):
        paper_privunit(1.0, math.nan, 3)
