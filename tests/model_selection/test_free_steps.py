# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Private steps that release nothing, with the parameters that they have, cost a search nothing."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPStandardScaler,
    PrivacyBudget,
    privacy_spent,
)
from skdp.exceptions import BudgetError
from skdp.privacy import Curator, GaussianMechanism, Ledger
from skdp.privacy.kernel.accounting import pure_mu
from skdp.privacy.laws.calibration import pure_epsilon
from tests.model_selection._spy import data

X, Y = data(200)
GRID = {"dplogisticregression__C": [0.1, 1.0]}
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")


class Idle(DPStandardScaler):
    """Does nothing, and counts its fits."""

    def __init__(self, epsilon=1.0, delta=1e-6, *, with_mean=False, with_std=False, budget=None):
        super().__init__(
            epsilon, delta, with_mean=with_mean, with_std=with_std, bounds=(-1, 1), budget=budget
        )


def search_with(step, grid=GRID, **options):
    model = DPLogisticRegression(classes=[0, 1], max_iter=3, random_state=0)
    options = {"epsilon": 2.0, "random_state": 0, **options}
    return DPGridSearchCV(make_pipeline(step, model), grid, **options)


@pytest.mark.parametrize("strategy", ["all", "geometric", "poisson"])
def test_the_other_steps_get_all_of_the_budget(strategy):
    budget = PrivacyBudget(2.0, 1e-6)
    search = search_with(Idle(), strategy=strategy, budget=budget).fit(X, Y)
    without = search_with("passthrough", strategy=strategy).fit(X, Y)
    assert search.privacy_spent_ == without.privacy_spent_ == budget.spent
    assert search.best_params_ == without.best_params_
    ours, theirs = search.best_estimator_[-1], without.best_estimator_[-1]
    assert (ours.epsilon, ours.delta) == (theirs.epsilon, theirs.delta)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    idle = search.best_estimator_[0]
    assert (idle.epsilon, idle.ledger_, idle.budget) == (1.0, Ledger(), None)
    assert tuple(privacy_spent(search.best_estimator_)) == search.privacy_spent_


def test_a_search_decides_whether_a_step_releases_anything():
    grid = {"idle__with_mean": [False, True]}
    search = search_with(Idle(), grid, strategy="geometric", expected_runs=6).fit(X, Y)
    first, second = (search.plan_.mu_run, search.best_estimator_[0])
    assert first > 0
    assert (second.ledger_ == Ledger()) is not search.best_params_["idle__with_mean"]


def test_steps_that_all_release_nothing_are_no_search():
    search = DPGridSearchCV(
        make_pipeline(Idle(), "passthrough"), {}, n_repeats=2, scoring="accuracy"
    )
    with pytest.raises(ValueError, match="no private step that releases anything"):
        search.fit(X, Y)
    with pytest.raises(ValueError, match="budget of a step must be None"):
        search_with(Idle(budget=PrivacyBudget(1.0))).fit(X, Y)


class Liar(Idle):
    """Says that it releases nothing, and does."""

    def fit(self, X, y=None):
        """Release a mean that nobody pays for."""
        super().fit(X)
        curator = Curator(
            lambda: X, n_rows=len(X), epsilon=1.0, delta=1e-6, adjacency="replace-one",
            random_state=None, purpose="liar",
        )  # fmt: skip
        curator.prepay(Total(), GaussianMechanism(0.1), 1)
        self.ledger_ = curator.ledger
        return self


class WithoutALedger(Idle):
    """Says that it releases nothing, and shows nothing for it."""

    def fit(self, X, y=None):
        """Forget the ledger."""
        super().fit(X)
        del self.ledger_
        return self


class Total:
    """Any statistic."""

    name, size = "total", 1

    def sensitivity(self, adjacency, n_rows):
        from skdp.privacy import Sensitivity

        return Sensitivity(1.0, 1.0, 1.0, "example")


@pytest.mark.parametrize("step", [Liar(), WithoutALedger()], ids=["liar", "without a ledger"])
def test_that_it_released_nothing_is_checked(step):
    with pytest.raises(BudgetError, match="is not among the steps that were paid for"):
        search_with(step).fit(X, Y)


def test_shares_of_pure_steps_are_as_large_as_their_parameter_allows():
    model = make_pipeline(
        DPStandardScaler(bounds=(-1, 1)),
        DPLogisticRegression(classes=[0, 1], mechanism="output", delta=0),
    )
    search = DPGridSearchCV(model, {**GRID}, epsilon=2.0).fit(X, Y)
    assert search.plan_.mu_run is not None
    pure = search.best_estimator_[-1].epsilon
    assert pure_epsilon(pure_mu(pure)) == pytest.approx(pure, rel=1e-11)
    assert pure_mu(pure) < search.plan_.mu_run
