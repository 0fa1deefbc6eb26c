# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The budget of one private step in one run, and whose run wins."""

from dataclasses import replace

import numpy as np
import pytest

from skdp import DPGridSearchCV, DPLogisticRegression
from skdp.exceptions import BudgetError
from skdp.model_selection._runs import RunBudget, RunCharge

PAIR = RunCharge(1.0, 1e-6, None, "replace-one", "row")
GAUSSIAN = replace(PAIR, mu=0.2)


def charge(limit, **changed):
    asked = vars(replace(limit, **changed))
    RunBudget(limit).charge(
        asked.pop("epsilon"), asked.pop("delta"), mu=asked.pop("mu"), label="a step", **asked
    )


@pytest.mark.parametrize("limit", [PAIR, GAUSSIAN], ids=["pair", "gaussian"])
def test_what_was_planned_is_taken(limit):
    charge(limit)
    charge(limit, epsilon=0.5)


@pytest.mark.parametrize(
    ("limit", "changed"),
    [
        (PAIR, {"epsilon": 1.01}),
        (PAIR, {"delta": 2e-6}),
        (PAIR, {"epsilon": np.nan}),
        (PAIR, {"adjacency": "zero-out"}),
        (PAIR, {"unit": "client"}),
        (GAUSSIAN, {"mu": 0.21}),
        (GAUSSIAN, {"mu": None}),
        (GAUSSIAN, {"mu": np.nan}),
        (GAUSSIAN, {"adjacency": "zero-out"}),
    ],
    ids=str,
)
def test_more_or_something_else_is_refused(limit, changed):
    with pytest.raises(BudgetError, match="more than its share"):
        charge(limit, **changed)


def test_one_fit_charges_once():
    budget = RunBudget(None)
    facts = {"mu": None, "adjacency": "replace-one", "unit": "row", "label": "a step"}
    budget.charge(1.0, 0.0, **facts)
    with pytest.raises(BudgetError, match="charges twice"):
        budget.charge(1.0, 0.0, **facts)


@pytest.mark.full
def test_the_run_with_the_best_score_wins():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    # far beyond the rows nothing is left of them but noise
    grid = {"data_norm": [1.0, 1e6]}
    model = DPLogisticRegression(classes=[0, 1], max_iter=8)
    search = DPGridSearchCV(model, grid, epsilon=100.0, strategy="poisson", expected_runs=30)
    assert all(search.fit(X, y).best_params_ == {"data_norm": 1.0} for _ in range(12))
