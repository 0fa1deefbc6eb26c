# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Clients are protected where there are groups, and rows where there are none."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate

from skdp import (
    FederatedDPLogisticRegression,
    PrivacyBudget,
    privacy_card,
    privacy_spent,
)
from skdp.exceptions import BudgetError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) / 3
Y = (X[:, 0] > 0).astype(int)
CLIENTS = np.arange(60) // 6


def federation(**parameters):
    return FederatedDPLogisticRegression(**{"classes": [0, 1], "max_iter": 2, **parameters})


def search(budget=None, cv=None, **parameters):
    model = federation(budget=budget, **parameters)
    return GridSearchCV(
        model, {"C": [0.1, 1.0]}, cv=cv or GroupKFold(2), error_score="raise", scoring="accuracy"
    )


@pytest.mark.parametrize(
    "given",
    [{}, {"local_epsilon": 8.0}, {"epsilon": None, "local_epsilon": 8.0}],
    ids=str,
)
def test_without_groups_a_row_is_protected_and_everything_says_so(given):
    model = federation(**given)
    for groups, unit in ((None, "row"), (CLIENTS, "group")):
        model.fit(X, Y, groups=groups)
        assert {release.unit for release in model.ledger_.releases} == {unit}
        assert privacy_spent(model).ledger.unit == unit
        assert f"per {unit}" in str(privacy_spent(model))
        card = privacy_card(model).to_dict()
        assert card["claim"]["unit"] == unit
        assert (
            "one group (a person, a client), with all of its rows" in card["claim"]["sentence"]
        ) == (unit == "group")
        noted = [note["kind"] for note in card["notes"]]
        assert ("no groups" in noted) == (unit == "row")


def test_a_total_for_clients_does_not_take_rows():
    clients, rows = federation().fit(X, Y, groups=CLIENTS), federation().fit(X, Y)
    assert privacy_spent(clients, clone(clients).fit(X, Y, groups=CLIENTS)).ledger.unit == "group"
    with pytest.raises(ValueError, match="a ledger protects one unit"):
        privacy_spent(clients, rows)


class Unread:
    """Rows that nobody may look at."""

    def __getattr__(self, name):
        raise AssertionError(f"somebody asked for {name}")


def test_a_budget_for_clients_refuses_a_fit_without_groups():
    budget = PrivacyBudget(10.0, 1e-4, unit="group")
    told = "fit got no groups.*GridSearchCV.*cross_val_score.*set_fit_request.*no row was read"
    with pytest.raises(BudgetError, match=told):
        federation(budget=budget).fit(Unread(), Y)
    for validate in (
        lambda: search(budget).fit(X, Y, groups=CLIENTS),
        lambda: cross_validate(
            federation(budget=budget), X, Y, groups=CLIENTS, cv=GroupKFold(2), error_score="raise"
        ),
    ):
        # the splitter has the groups, and the fits do not
        with pytest.raises(BudgetError, match=told):
            validate()
    assert budget.charges == ()
    federation(budget=budget).fit(X, Y, groups=CLIENTS)
    assert [charge.unit for charge in budget.charges] == ["group"]
    with pytest.raises(BudgetError, match=r"unit='row'.*'group'"):
        federation(budget=PrivacyBudget(10.0, 1e-4)).fit(X, Y, groups=CLIENTS)


def test_a_fit_that_asked_for_groups_refuses_to_do_without():
    # a search would count its fits as those of clients
    with config_context(enable_metadata_routing=True):
        tuned = search(cv=KFold(2))
        tuned.estimator.set_fit_request(groups=True)
        with pytest.raises(ValueError, match=r"asked for groups, and fit got no groups.*Pass"):
            tuned.set_params(error_score="raise").fit(X, Y)
    with pytest.raises(ValueError, match="no row was read"):
        tuned.estimator.fit(Unread(), Y)


def test_a_search_whose_splits_alone_know_the_clients_is_named():
    spent = privacy_spent(search().fit(X, Y, groups=CLIENTS))
    assert spent.ledger.unit == "row"
    (item,) = [item for item in spent.uncovered if item.kind == "splits"]
    assert "GroupKFold was given groups, and the fits were not" in item.text
    assert "splits" not in {
        item.kind for item in privacy_spent(search(cv=KFold(2)).fit(X, Y)).uncovered
    }


def test_groups_that_are_routed_protect_clients():
    budget = PrivacyBudget(10.0, 1e-4, unit="group")
    with config_context(enable_metadata_routing=True):
        tuned = search(budget, cv=GroupKFold(2, shuffle=True, random_state=0))
        tuned.estimator.set_fit_request(groups=True)
        tuned.fit(X, Y, groups=CLIENTS)
    spent = privacy_spent(tuned)
    assert spent.ledger.unit == "group"
    assert spent.n_fits == len(budget.charges) == 5
    assert {item.kind for item in spent.uncovered} == {"choice"}
