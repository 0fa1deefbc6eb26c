# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What federated fits claim: coupled traces with a whole client exchanged, and the ledger."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

from skdp import FederatedDPLogisticRegression, privacy_spent
from skdp.exceptions import BudgetError
from skdp.federated import FederatedAveraging, GradientSteps, ProximalPoint
from skdp.federated import _averaging as federated_plan
from skdp.federated._averaging import ReportSum
from skdp.privacy import Curator, gdp_mu
from tests import _audit
from tests import _audit_batches as batches
from tests._neighbours import ADJACENCIES
from tests.federated._clients import clients, exchanged

EPSILON, DELTA, N = 2.0, 1e-5, 8
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def model(**options):
    usual = {
        "epsilon": EPSILON, "delta": DELTA, "classes": (0, 1), "random_state": 0, "max_iter": 7,
        "local_update__clipping_norm": 0.05, "solver__step_size": 1e-6, "fit_intercept": False,
    }  # fmt: skip
    objects = {"local_update": GradientSteps(), "solver": FederatedAveraging()}
    return FederatedDPLogisticRegression(**objects).set_params(**{**usual, **options})


def data(n_clients=N, n_classes=2):
    return clients(np.arange(n_clients) % 5 + 1, n_classes=n_classes)


def ratio(fitted, adjacency, client=2, n_classes=2):
    """Return the coupled mu of exchanging a client, over what the budget allows."""
    pair = exchanged(data(n_classes=n_classes), client, adjacency)
    return _audit.coupled_mu(lambda rows: clone(fitted).fit(*rows), *pair) / gdp_mu(EPSILON, DELTA)


LOCAL = {
    "one step": {},
    "five steps": {"local_update__n_steps": 5},
    "proximal": {"local_update": ProximalPoint()},
    "three classes": {"classes": (0, 1, 2)},
    "data_norm": {"data_norm": 7.0, "C": 2.0},
}


@every_adjacency
@pytest.mark.parametrize("name", LOCAL)
def test_a_client_with_many_rows_costs_what_is_claimed(name, adjacency):
    found = ratio(model(adjacency=adjacency, **LOCAL[name]), adjacency)
    assert 0.999 <= found <= 1.0


@every_adjacency
def test_a_model_that_moves_claims_no_less(adjacency):
    fitted = model(
        adjacency=adjacency,
        local_update__clipping_norm=None,
        solver__step_size=None,
        local_update__n_steps=3,
    )
    assert ratio(fitted, adjacency) <= 1.0


@every_adjacency
def test_a_client_of_random_batches_moves_sums_by_its_clip_when_drawn(adjacency):
    fitted = model(adjacency=adjacency, solver__batch_size=3, max_iter=12)
    first, second = exchanged(data(), 2, adjacency)
    with batches.drawn() as seen, _audit.recorded() as one:
        clone(fitted).fit(*first)
    with batches.drawn(seen), _audit.recorded([step.output for step in one]) as other:
        clone(fitted).fit(*second)
    moved = 1 if adjacency == "zero-out" else 2
    for batch, a, b in zip(seen, one, other, strict=True):
        expected = moved * 0.05 if 2 in batch else 0.0
        assert np.linalg.norm(a.statistic - b.statistic) == pytest.approx(expected, abs=1e-6)
    assert 0 < sum(2 in batch for batch in seen) < 12


def test_noise_has_its_declared_scale_and_law():
    X, y, groups = clients([2] * 20, n_features=300)
    for options in ({}, {"solver__batch_size": 5}, {"local_epsilon": 8.0}):
        additions = _audit.noise_stream(model(**options, max_iter=15).fit, X, y, groups)
        assert len(additions) == 15
        assert not _audit.scale_is_wrong(additions)


@every_adjacency
def test_sums_of_reports_are_charged_by_what_a_projected_report_counts_for(adjacency):
    for report_norm in (None, 0.03):
        fitted = model(
            adjacency=adjacency,
            local_epsilon=4.0,
            solver__report_norm=report_norm,
            solver__batch_size=3,
        ).fit(*data())
        hidden, seen = fitted.ledger_.releases
        assert (hidden.hidden, hidden.adjacency) == (True, "local")
        assert (seen.of_reports, seen.adjacency, seen.unit) == (True, adjacency, "client")
        longest = fitted.ledger_.releases[1].stated_sensitivity
        if report_norm:
            assert longest == report_norm
        else:
            # the reports of the lift have the length 1 / cosine before an entry is left out
            assert longest > 0.05
        assert fitted.privacy_spent_[0] <= EPSILON


def test_clients_of_the_batch_report_anew_in_every_round(monkeypatch):
    made, total = [], ReportSum.total

    def spy(self, reports):
        made.append(reports.copy())
        return total(self, reports)

    monkeypatch.setattr(ReportSum, "total", spy)
    for options in ({}, {"epsilon": None}):
        made.clear()
        with batches.drawn() as seen:
            fitted = model(local_epsilon=4.0, solver__batch_size=3, max_iter=12, **options)
            fitted = fitted.fit(*data())
        assert [len(reports) for reports in made] == [len(batch) for batch in seen]
        assert len(set(map(len, seen))) > 1
        together = np.concatenate(made)
        assert len(np.unique(together, axis=0)) == len(together)
        # the last digits of floats are never seen
        assert not (together % fitted.ledger_.releases[0].noise.grid).any()


def test_no_report_is_projected_by_default():
    fitted = model(epsilon=None, local_epsilon=1.0, solver__batch_size=6).fit(*data())
    assert fitted.projected_share_ == 0.0
    fitted = model(epsilon=None, local_epsilon=1.0, solver__batch_size=6, solver__report_norm=1e-3)
    assert fitted.fit(*data()).projected_share_ == 1.0
    assert model().fit(*data()).projected_share_ is None


def test_reports_alone_cost_what_participations_cost():
    fitted = model(epsilon=None, local_epsilon=3.0, solver__batch_size=2, max_iter=40).fit(*data())
    (entry,) = fitted.ledger_.releases
    assert (entry.adjacency, entry.count, entry.unit) == ("local", 40, "client")
    price = fitted.local_epsilon_per_round_
    assert 2.999 < price <= 3.0
    most = next(k for k in range(40) if binom.sf(k, 40, 0.25) <= DELTA)
    assert fitted.privacy_spent_[0] <= most * price * (1 + 1e-9)
    assert fitted.privacy_spent_ == fitted.local_privacy_spent_
    assert fitted.local_epsilon_total_ == pytest.approx(40 * price)
    assert privacy_spent(fitted).ledger.unit == "client"


def test_every_client_reports_in_every_full_round():
    fitted = model(epsilon=None, local_epsilon=3.0, solver__batch_size=N, max_iter=4).fit(*data())
    assert fitted.privacy_spent_[0] == pytest.approx(12.0)


def test_a_trusted_server_sees_everything():
    fitted = model().fit(*data())
    assert fitted.local_epsilon_per_round_ == fitted.local_epsilon_total_ == math.inf
    assert fitted.local_privacy_spent_ == (math.inf, DELTA)
    assert fitted.privacy_spent_[0] <= EPSILON


def test_delta_zero_is_for_reports_alone():
    fitted = model(epsilon=None, local_epsilon=3.0, delta=0.0, solver__batch_size=4).fit(*data())
    assert fitted.privacy_spent_ == (pytest.approx(21.0), 0.0)
    with pytest.raises(ValueError, match="delta"):
        model(delta=0.0).fit(*data())


def test_a_sum_is_divided_by_the_expected_number():
    # whatever was drawn: the point moves by what was released over batch_size
    fitted = model(
        solver__batch_size=2.5,
        max_iter=1,
        solver__step_size=0.5,
        solver__momentum=False,
        solver__average=False,
    )
    with batches.drawn() as seen, _audit.recorded() as additions:
        fitted = clone(fitted).fit(*data())
    assert len(seen) == 1
    np.testing.assert_allclose(fitted.coef_[0], 0.5 * additions[0].output / 2.5)


def test_a_sum_of_public_reports_is_divided_by_the_expected_number(monkeypatch):
    sums, total = [], ReportSum.total

    def spy(self, reports):
        sums.append(total(self, reports))
        return sums[-1]

    monkeypatch.setattr(ReportSum, "total", spy)
    options = {
        "solver__step_size": 0.5,
        "solver__momentum": False,
        "solver__average": False,
        "max_iter": 1,
    }
    fitted = model(epsilon=None, local_epsilon=4.0, solver__batch_size=2.5, **options).fit(*data())
    np.testing.assert_allclose(fitted.coef_[0], 0.5 * sums[0] / 2.5)


def test_nothing_is_read_that_was_not_paid_for(monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr("skdp.federated._averaging.ClientRows.__init__", never)
    monkeypatch.setattr(federated_plan, "gdp_mu", lambda *_: 1.1 * gdp_mu(EPSILON, DELTA))
    fitted = model()
    with pytest.raises(BudgetError):
        fitted.fit(*data())


def test_reports_of_a_client_at_opposite_updates_differ_by_what_is_claimed(monkeypatch):
    kept, release = [], Curator.release

    def spy(*args, **options):
        kept.append(release(*args, **options))
        return kept[-1]

    monkeypatch.setattr(Curator, "release", spy)
    rows, groups = np.tile([1.0, 0.0], (4000, 1)), np.repeat(np.arange(1000), 4)
    fitted = model(epsilon=None, local_epsilon=1.5, solver__batch_size=1000, max_iter=3)
    found = []
    for label in (0, 1):
        kept.clear()
        fitted.fit(rows, np.full(4000, label), groups)
        found.append(np.concatenate(kept)[:, 0])
    assert [len(one) for one in found] == [3000, 3000]
    # one entry of a report of three, and what is left to chance: a part of the price
    assert 0.7 < _audit.rate_epsilon(*found) <= 1.5
