# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Simulated deployments: the noise, what these clients spend, what the deployment would."""

import math
import time

import dp_accounting
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from skdp import FederatedDPLogisticRegression
from skdp.exceptions import PrivacyWarning, SimulationWarning
from skdp.federated import FederatedAveraging, GradientSteps, Population
from skdp.privacy import Sampling, gdp_epsilon, sampled_mu
from skdp.privacy.kernel.ledger import SampledCost, compose_epsilon
from skdp.privacy.laws.loss_distributions import _sampled_epsilon
from tests.federated._clients import clients

DELTA = 1e-9
ignored = pytest.mark.filterwarnings("ignore::skdp.exceptions.SimulationWarning")


def fitted(**options):
    usual = {
        "epsilon": 1.0, "delta": DELTA, "adjacency": "zero-out", "classes": (0, 1),
        "solver__batch_size": 10, "max_iter": 20, "population": Population(100_000),
        "random_state": 0, "local_update__clipping_norm": 0.1,
    }  # fmt: skip
    objects = {"local_update": GradientSteps(), "solver": FederatedAveraging()}
    made = FederatedDPLogisticRegression(**objects).set_params(**{**usual, **options})
    return made.fit(*clients([3] * 40))


@ignored
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_the_noise_on_the_mean_is_that_of_the_deployment(adjacency):
    model = fitted(adjacency=adjacency, population=Population(100_000, batch_size=5000))
    deployed = Sampling("poisson", 100_000, 5000)
    mu = sampled_mu(1.0, DELTA, sampling=deployed, n_releases=20, adjacency=adjacency)
    (release,) = model.ledger_.releases
    assert_allclose(release.noise.scale / 10, 0.1 / mu / 5000, rtol=1e-4)
    epsilon, delta = model.hypothetical_privacy_spent_
    assert 0.99 < epsilon <= 1.0
    assert delta == DELTA
    # the clients whose rows were read pay for the noise that there really was
    assert model.privacy_spent_[0] > 100
    assert model.privacy_spent_[0] == model.ledger_.epsilon(DELTA)


@ignored
def test_the_rate_is_kept_by_default():
    (one,), (other,) = (
        fitted(**options).ledger_.releases
        for options in ({}, {"population": Population(100_000, batch_size=25_000)})
    )
    assert one.noise.scale == other.noise.scale


@ignored
def test_a_population_of_the_clients_that_there_are_changes_nothing():
    (one,), (other,) = (
        fitted(population=given).ledger_.releases for given in (Population(40), None)
    )
    assert_allclose(one.noise.scale, other.noise.scale, rtol=1e-6)


@ignored
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_full_rounds_of_a_simulation_are_accounted_in_closed_form(adjacency):
    model = fitted(
        solver__batch_size=40, adjacency=adjacency, population=Population(100_000, batch_size=5000)
    )
    (release,) = model.ledger_.releases
    reach = 0.1 if adjacency == "zero-out" else 0.2
    expected = gdp_epsilon(reach / release.noise.scale * math.sqrt(20), DELTA)
    assert_allclose(model.privacy_spent_[0], expected, rtol=1e-5)
    # the deployment has Poisson batches, whose sensitivity is stated for one contribution
    deployed = Sampling("poisson", 100_000, 5000)
    mu = sampled_mu(1.0, DELTA, sampling=deployed, n_releases=20, adjacency=adjacency)
    assert_allclose(release.noise.scale / 40, 0.1 / mu / 5000, rtol=1e-4)


def test_a_simulation_says_so():
    with pytest.warns(SimulationWarning, match="population is set"):
        model = fitted()
    assert issubclass(SimulationWarning, PrivacyWarning)
    assert "hypothetical" not in repr(model.ledger_)
    assert fitted(population=None).hypothetical_privacy_spent_ is None


def test_a_small_deployment_costs_less_and_nothing_else_is_said():
    # no claim of more than epsilon: these clients spend less
    with pytest.warns(SimulationWarning, match="and not epsilon"):
        model = fitted(population=Population(10), solver__batch_size=None)
    assert model.privacy_spent_[0] < 1.0


@ignored
def test_sizes_of_a_deployment_need_not_be_whole():
    one, other = (
        fitted(population=Population(size), solver__batch_size=40) for size in (50.0, 50.5)
    )
    assert one.ledger_.releases[0].noise == other.ledger_.releases[0].noise


def test_a_rate_that_is_too_small_is_refused_by_its_name():
    with pytest.raises(ValueError, match=r"^batch_size of the population must be at least 1e-12"):
        fitted(population=Population(1e15, batch_size=5.0))
    with pytest.raises(ValueError, match=r"^batch_size must be at least 1e-12 times"):
        fitted(population=None, solver__batch_size=1e-11)


@pytest.mark.full
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_accounting_for_rare_clients_is_quick_and_tight(adjacency):
    # losses as far away as ten million steps of a grid that is made for the likely ones
    cost = SampledCost(Sampling("poisson", 10**9, 10**4), 2.4, adjacency, 5)
    start = time.perf_counter()
    found = _sampled_epsilon.__wrapped__(0.0, (), 1e-6, (cost,))
    assert time.perf_counter() - start < 8
    assert_allclose(found, 0.011989, rtol=2e-3)


def test_parameters_that_do_not_go_together():
    with pytest.raises(ValueError, match="of the population must be greater than 0 and at most"):
        fitted(population=Population(100_000, batch_size=200_000))
    with pytest.raises(ValueError, match="population is for noise"):
        fitted(epsilon=None, local_epsilon=1.0)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize("kind", ["poisson", "without-replacement"])
@pytest.mark.parametrize("batch_size", [3, 40])
def test_noise_that_hides_next_to_nothing_has_a_quick_honest_price(kind, adjacency, batch_size):
    sampling = Sampling(kind, 100, batch_size)
    start = time.perf_counter()
    found = compose_epsilon(0.0, (), DELTA, (SampledCost(sampling, 200.0, adjacency, 100),))
    assert time.perf_counter() - start < 1.0
    # at least what one participation costs, at most what taking part always does
    far = 2.0 if (kind, adjacency) == ("poisson", "replace-one") else 1.0
    assert 0.9 * 200.0**2 / 2 < found < gdp_epsilon(200.0 * far * 10, DELTA)


@pytest.mark.full
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_the_quick_price_is_above_the_composed_one(adjacency):
    cost = SampledCost(Sampling("poisson", 100, 20), 20.5, adjacency, 4)
    exact = _sampled_epsilon(0.0, (), DELTA, (cost,))
    quick = compose_epsilon(0.0, (), DELTA, (cost,))
    assert exact <= quick <= (1.5 if adjacency == "zero-out" else 5.0) * exact
    beside = compose_epsilon(1.0, ((0.5, 0.0, 2),), DELTA, (cost,))
    assert quick < beside < 1.5 * quick


def test_the_quick_price_is_that_of_what_could_be_told():
    # nearly everybody is drawn, in all rounds but k of 60 with half of delta
    sampling, mu = Sampling("poisson", 1000, 900), 25.0
    most = next(k for k in range(61) if binom.sf(k, 60, sampling.rate) <= 1e-6 / 2)
    for adjacency, far in (("zero-out", 1), ("replace-one", 2)):
        found = compose_epsilon(0.0, (), 1e-6, (SampledCost(sampling, mu, adjacency, 60),))
        expected = gdp_epsilon(far * mu * math.sqrt(most), 1e-6 / 2)
        assert expected <= found <= expected * (1 + 1e-8)


@pytest.mark.parametrize(
    ("batch", "rounds", "printed", "tight"),
    [(20_000, 100, 1.9, 0.5523), (15_000, 200, 1.76, 0.4683)],
)
def test_our_accountant_on_the_printed_settings(batch, rounds, printed, tight):
    # noise of 1.0 times the projection on the sum over the inflated batch
    sampling = Sampling("poisson", 10**7, batch)
    cost = SampledCost(sampling, 1.0, "zero-out", rounds)
    found = compose_epsilon(0.0, (), DELTA, (cost,))
    assert found < printed
    assert_allclose(found, tight, rtol=0.01)
    # Renyi divergences in their older and newer conversion: 1.8902, 1.5773; 1.7579, 1.4641
    event = dp_accounting.PoissonSampledDpEvent(batch / 10**7, dp_accounting.GaussianDpEvent(1.0))
    accountant = dp_accounting.rdp.RdpAccountant(list(np.arange(2, 257)))
    accountant.compose(event, rounds)
    newer = {100: 1.5773, 200: 1.4641}[rounds]
    assert_allclose(accountant.get_epsilon(DELTA), newer, atol=6e-5)
    assert found <= newer


def test_the_batches_that_were_simulated_hide_nothing():
    # the same noise on the mean of 200 and 75 clients is .01 and .005 of the projection
    for batch, rounds, multiplier in ((200, 100, 0.01), (75, 200, 0.005)):
        sampling = Sampling("poisson", 10**7, batch)
        cost = SampledCost(sampling, 1 / multiplier, "zero-out", rounds)
        assert 1000 < compose_epsilon(0.0, (), DELTA, (cost,)) < 1e6


def test_the_printed_noise_is_too_small_by_orders_of_magnitude():
    rate, rounds, radius, epsilon = 2e-5, 100, 100.0, 1.0
    printed = math.sqrt(rounds * rate**2 * radius**2 / epsilon)
    assert_allclose(printed, 0.02)
    whole = radius / math.sqrt(math.log1p(epsilon * (1 - rate) / (rounds * rate**2)))
    assert whole > 1000 * printed
    sampling = Sampling("poisson", 10**7, rate * 10**7)
    cost = SampledCost(sampling, radius / printed, "zero-out", rounds)
    assert compose_epsilon(0.0, (), DELTA, (cost,)) > 1e6
    # the formula that it was made from is no proof either, but of the right size
    cost = SampledCost(sampling, radius / whole, "zero-out", rounds)
    assert 0.5 < compose_epsilon(0.0, (), DELTA, (cost,)) < 20
