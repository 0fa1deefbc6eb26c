# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every fit is charged once, before its data are read; searches and folds too."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import (
    DPFeatureCenterer,
    DPLogisticRegression,
    DPMean,
    DPQuantile,
    DPStandardScaler,
    FederatedDPLogisticRegression,
    PrivacyBudget,
    PrivUnitPrivatizer,
    solvers,
)
from skdp._rows.base import L2Ball
from skdp._rows.linear import ball_rows
from skdp.exceptions import BudgetError, PrivacyWarning
from skdp.federated import Population
from skdp.location._clipped_mean import RowSum
from skdp.privacy import Curator, GaussianMechanism, LaplaceMechanism, gdp_delta, gdp_mu
from skdp.privacy.kernel.accounting import pure_mu
from tests.privacy.test_budget import HERE
from tests.test_common import ALL, configurations

PRIVATE = [
    estimator
    for estimator in ALL
    # searches are charged in tests of their own
    if "budget" in estimator.get_params(deep=False) and "estimator" not in estimator.get_params()
]

# a scaler that neither shifts nor scales, say
FREE = [estimator for estimator in PRIVATE if not getattr(estimator, "_releases", True)]


every_estimator = pytest.mark.parametrize(
    "estimator", configurations(estimator for estimator in PRIVATE if estimator not in FREE)
)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) / 3
Y = (X[:, 0] + 0.1 * rng.normal(size=60) > 0).astype(int)


def shared(estimator, epsilon=1e6, delta=0.9, **more):
    """Return a copy of an estimator, and the budget that it shares."""
    unit = "client" if isinstance(estimator, FederatedDPLogisticRegression) else "row"
    adjacency = estimator.get_params().get("adjacency", "replace-one")
    budget = PrivacyBudget(epsilon, delta, adjacency=adjacency, unit=unit, **more)
    return clone(estimator).set_params(budget=budget), budget


def fit(estimator, X=X, y=Y):
    """Fit; a privatizer reports as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        if hasattr(estimator, "new_rows"):
            return estimator.fit_transform(X)
        return estimator.fit(X, y)


def test_all_but_what_costs_nothing_can_share_a_budget():
    # a search has an estimator, and a budget too
    others = [e for e in ALL if "budget" not in e.get_params(deep=False)]
    assert {type(estimator).__name__ for estimator in others} == {"NormClipper", "BoundedScaler"}


@every_estimator
def test_every_fit_is_charged_once_and_no_more_is_spent(estimator):
    model, budget = shared(estimator)
    fit(model)
    (charge,) = budget.charges
    assert type(model).__name__ in charge.label
    ledger, (epsilon, delta) = model.ledger_, model.privacy_spent_
    assert epsilon <= charge.epsilon
    assert delta <= charge.delta
    assert charge.delta == getattr(model, "delta", charge.delta) or charge.delta == 0
    if model.epsilon is not None:
        assert charge.epsilon == model.epsilon
    # with too few rows a private radius is not released, and paid for; they are public
    assert {charge.adjacency, ledger.adjacency} <= {budget.adjacency, "local", None}
    assert {charge.unit, ledger.unit} <= {budget.unit, None}
    if charge.mu is not None:
        assert ledger.gdp <= charge.mu
    elif charge.delta and not any(release.noise.sampling for release in ledger.releases):
        # batches that happen to be all rows are charged like others
        assert ledger.gdp == math.inf
    # an epsilon counts as the decimal that is printed: the noise has room for the difference
    for release in ledger.releases:
        if release.noise.law in ("laplace", "k-norm", "exponential"):
            price = Fraction(repr(release.noise.epsilon))
            room = price * Fraction(release.noise.scale) / Fraction(release.stated_sensitivity)
            assert room > 1 + 1e-9


@pytest.mark.parametrize("estimator", [*FREE, DPFeatureCenterer(with_mean=False, threshold=None)])
def test_a_fit_that_releases_nothing_costs_nothing(estimator):
    model, budget = shared(estimator, epsilon=1e-9)
    budget.charge(1e-9, adjacency=budget.adjacency, unit=budget.unit)
    fit(model)
    assert len(budget.charges) == 1
    assert model.ledger_.releases == ()
    assert model.privacy_spent_ == (0.0, 0.0)


def test_a_curator_keeps_to_the_mu_that_was_charged():
    kinds = {"n_rows": 4, "epsilon": 9.0, "delta": 0.5, "adjacency": "replace-one"}
    kinds |= {"random_state": None, "purpose": "test"}
    query = RowSum(L2Ball(1.0), 2)

    def curator():
        return Curator(lambda: ball_rows(np.zeros((4, 2)), L2Ball(1.0)), mu=0.5, **kinds)

    # the budget (9, 0.5) would take a hundred times as much
    with pytest.raises(BudgetError, match="no row was read"):
        curator().release(query, GaussianMechanism(0.51))
    with pytest.raises(BudgetError, match="no row was read"):
        curator().release(query, LaplaceMechanism(0.5))
    for mechanism, mu in ((GaussianMechanism(0.5), 0.5), (LaplaceMechanism(0.1), pure_mu(0.1))):
        fits = curator()
        fits.release(query, mechanism)
        assert fits.ledger.gdp == pytest.approx(mu, rel=1e-9)
        with pytest.raises(BudgetError, match="no row was read"):
            fits.release(query, GaussianMechanism(0.495))
    both = curator()
    both.release(query, GaussianMechanism(0.3))
    both.release(query, LaplaceMechanism(0.1))
    assert both.ledger.gdp == pytest.approx(math.hypot(0.3, pure_mu(0.1)), rel=1e-9)


def test_random_batches_have_no_mu():
    model = DPLogisticRegression(solver=solvers.SGD(batch_size=8), epsilon=1.0, max_iter=3)
    assert model.fit(X, Y).ledger_.gdp == math.inf


class Untouchable:
    """Raises whatever is done with it."""

    def __getattribute__(self, name):
        raise RuntimeError(f"the data were touched: {name}")


@every_estimator
def test_no_data_are_looked_at_where_nothing_is_left(estimator):
    model, budget = shared(estimator, epsilon=1e-9)
    budget.charge(1e-9, adjacency=budget.adjacency, unit=budget.unit)
    with pytest.raises(BudgetError, match="Nothing was charged, and no row was read"):
        fit(model, Untouchable(), Untouchable())
    with pytest.raises(BudgetError):
        fit(model, np.full((3, 2), np.nan))
    assert len(budget.charges) == 1


def events(monkeypatch, model, budget):
    """Return what a fit does with the budget and with the rows, in order."""
    seen, admitted, charge = [], Curator._admitted, budget.charge
    monkeypatch.setattr(
        Curator, "_admitted", lambda *part: (seen.append("rows"), admitted(*part))[1]
    )
    budget.charge = lambda *price, **more: (seen.append("charge"), charge(*price, **more))[1]
    try:
        fit(model)
    except BudgetError:
        seen.append("refused")
    return seen


def charged_first(monkeypatch, estimator):
    """Assert that rows are read after the charge, and not at all if it is refused."""
    with monkeypatch.context() as patch:
        assert events(patch, *shared(estimator))[:2] == ["charge", "rows"]
    with monkeypatch.context() as patch:
        # delta is refused by the charge alone
        assert events(patch, *shared(estimator, delta=0.0)) == ["charge", "refused"]


@pytest.mark.parametrize("estimator", [DPMean(), DPLogisticRegression(), DPStandardScaler()])
def test_the_charge_comes_before_the_rows(monkeypatch, estimator):
    charged_first(monkeypatch, estimator)


def test_a_charge_after_the_rows_is_noticed(monkeypatch):
    begin, release = Curator.__init__, Curator.release

    def late(self, *given, budget=None, **more):
        begin(self, *given, **more)
        self.late = budget

    def then_charge(self, *given, **more):
        value = release(self, *given, **more)
        self.late.charge(1.0, 1e-6, **HERE)
        return value

    monkeypatch.setattr(Curator, "__init__", late)
    monkeypatch.setattr(Curator, "release", then_charge)
    with pytest.raises(AssertionError):
        charged_first(monkeypatch, DPMean())


def paid_although_it_failed(monkeypatch):
    """Assert that a fit that breaks off has paid."""
    model, budget = shared(DPMean())

    def fail(*part):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Curator, "_admitted", fail)
        with pytest.raises(MemoryError):
            fit(model)
    assert len(budget.charges) == 1
    assert budget.spent == (1.0, 1e-6)


def test_a_fit_that_breaks_off_has_paid(monkeypatch):
    paid_although_it_failed(monkeypatch)


def test_a_refund_is_noticed(monkeypatch):
    begin, release = Curator.__init__, Curator.release

    def remember(self, *given, budget=None, **more):
        begin(self, *given, budget=budget, **more)
        self.charged = budget

    def refund(self, *given, **more):
        try:
            return release(self, *given, **more)
        except MemoryError:
            self.charged._store._charges.clear()
            self.charged._store._spent = (Fraction(0), Fraction(0))
            raise

    monkeypatch.setattr(Curator, "__init__", remember)
    monkeypatch.setattr(Curator, "release", refund)
    with pytest.raises(AssertionError):
        paid_although_it_failed(monkeypatch)


def test_a_fit_whose_data_are_unusable_costs_nothing():
    model, budget = shared(DPMean())
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 2), np.nan))
    assert budget.charges == ()


def test_every_report_is_charged_as_often_as_it_is_made():
    budget = PrivacyBudget(10.0, adjacency="zero-out")
    privatizer = PrivUnitPrivatizer(epsilon=4.0, new_rows="randomise", budget=budget).fit(X)
    assert budget.charges == ()
    privatizer.transform(X)
    privatizer.transform(X)
    assert budget.spent == (8.0, 0.0)
    with pytest.raises(BudgetError):
        privatizer.transform(X)


@pytest.mark.parametrize("local_epsilon", [None, 8.0])
def test_a_federation_of_one_nat_fits_a_budget_of_one_nat(local_epsilon):
    budget = PrivacyBudget(1.0, 1e-6, unit="client")
    model = FederatedDPLogisticRegression(
        epsilon=1.0, delta=1e-6, local_epsilon=local_epsilon, budget=budget
    )
    model.fit(X, Y, groups=np.arange(60) % 30)
    assert budget.spent == (1.0, 1e-6)


@pytest.mark.parametrize("population", [10, 1e6])
def test_a_simulated_population_is_charged_what_its_clients_spend(population):
    # with fewer clients in the deployment than here they spend less than epsilon, else more
    budget = PrivacyBudget(1.0 if population < 30 else 1e9, 1e-6, unit="client")
    budget.charge(0.5, adjacency="replace-one", unit="client")
    model = FederatedDPLogisticRegression(
        epsilon=1.0, delta=1e-6, population=Population(population), budget=budget
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(X, Y, groups=np.arange(60) % 30)
    spent = model.privacy_spent_[0]
    assert spent <= budget.charges[1].epsilon <= spent * (1 + 1e-6)
    assert (spent < 0.5) is (population < 30)
    assert model.ledger_.gdp <= budget.charges[1].mu


@pytest.mark.covering
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 8.0, 60.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
@pytest.mark.parametrize(
    "estimator",
    [DPMean(), DPStandardScaler(), DPLogisticRegression(), FederatedDPLogisticRegression()],
)
def test_a_gaussian_fit_fills_a_gaussian_budget(estimator, epsilon, delta):
    model, budget = shared(estimator, epsilon, 2 * delta, composition="gaussian")
    fit(model.set_params(epsilon=epsilon, delta=delta))
    assert budget.remaining[0] <= 1e-5 * gdp_mu(epsilon, delta)
    # the charge is a hair more than what was spent, and what is claimed holds for the charge
    (charge,) = budget.charges
    assert model.ledger_.gdp <= charge.mu * (1 - 5e-11)
    assert gdp_delta(charge.mu, epsilon) <= delta
    with pytest.raises(BudgetError):
        fit(model)


def test_estimators_share_a_budget():
    budget = PrivacyBudget(1.0, 1e-6)
    scaler = DPStandardScaler(epsilon=0.2, delta=5e-7, budget=budget)
    model = DPLogisticRegression(epsilon=0.5, delta=5e-7, budget=budget)
    make_pipeline(scaler, model).fit(X, Y)
    DPQuantile(epsilon=0.3, budget=budget).fit(X)
    assert [charge.label for charge in budget.charges] == [
        "DPStandardScaler", "DPLogisticRegression", "DPQuantile",
    ]  # fmt: skip
    assert budget.spent == (1.0, 1e-6)


GRID = {"C": [0.1, 1.0, 10.0, 100.0]}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("search", "n_jobs"), [(GridSearchCV, None), (GridSearchCV, 2), (RandomizedSearchCV, None)]
)
def test_a_search_of_four_candidates_and_five_folds_is_21_fits(tmp_path, search, n_jobs):
    path = tmp_path / "budget.db" if n_jobs else None
    budget = PrivacyBudget(2.1, 21e-7, path=path)
    model = DPLogisticRegression(epsilon=0.1, delta=1e-7, budget=budget)
    more = {"n_iter": 4} if search is RandomizedSearchCV else {}
    search(model, GRID, cv=5, n_jobs=n_jobs, error_score="raise", **more).fit(X, Y)
    assert len(budget.charges) == 21
    assert budget.spent == (2.1, 2.1e-6)
    assert (len({charge.process for charge in budget.charges}) > 1) is bool(n_jobs)


def test_a_search_stops_where_the_budget_ends(tmp_path):
    for n_jobs, path in ((None, None), (2, tmp_path / "budget.db")):
        budget = PrivacyBudget(1.0, 1e-6, path=path)
        model = DPLogisticRegression(epsilon=0.1, delta=1e-7, budget=budget)
        with pytest.raises(BudgetError, match="left"):
            GridSearchCV(model, GRID, cv=5, n_jobs=n_jobs, error_score="raise").fit(X, Y)
        assert len(budget.charges) <= 10
        assert n_jobs or len(budget.charges) == 10


def test_cross_validation_pays_for_every_fold():
    budget = PrivacyBudget(0.5, 1e-6)
    model = DPLogisticRegression(epsilon=0.1, delta=1e-7, budget=budget)
    assert len(cross_val_score(model, X, Y, cv=5, error_score="raise")) == 5
    assert len(budget.charges) == 5
    with pytest.raises(BudgetError):
        cross_val_score(model, X, Y, cv=5, error_score="raise")


@pytest.mark.parametrize("budget", [1.0, "budget", object(), {"check": 1}])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(ValueError, match="budget"):
        DPMean(budget=budget).fit(X)
