# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Noise in shares: exact draws, the price of sums of them, integers modulo a power of two."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import ndtri_exp
from scipy.stats import chisquare

from skdp import FederatedDPLogisticRegression
from skdp.exceptions import BudgetError
from skdp.federated import FederatedAveraging, FederatedClient, Population
from skdp.federated._averaging import RoundedUpdates
from skdp.federated._messages import _UPDATE, DistantClients, _unpacked
from skdp.privacy import gdp_mu
from skdp.privacy.kernel.samplers import SeededBits
from skdp.privacy.laws import shared_noise
from skdp.privacy.laws.shared_noise import (
    SharedGaussianMechanism,
    SharedNoise,
    discrete_gaussian,
    unit_mu,
)
from tests import _audit
from tests.federated.test_federated import N, claim_model, clients, data, exchanged, query
from tests.federated.test_messages import BODY, driven, owned, split

# Draws, and what their sums cost.


@pytest.mark.parametrize("scale", [1.0, 3.3, 200.0])
def test_draws_have_the_discrete_gaussian_law(scale):
    n_draws, width = 20_000, max(1, round(scale / 4))
    drawn = discrete_gaussian(scale, n_draws, SeededBits(3, "shares"))
    assert drawn.dtype == np.int64
    reach = math.ceil(9 * scale)
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-(values**2) / (2 * scale**2))
    mass /= mass.sum()
    cells = np.clip(values // width, -3 * reach // (9 * width), 3 * reach // (9 * width))
    counted = np.clip(drawn // width, cells[0], cells[-1])
    expected = np.array([mass[cells == cell].sum() for cell in np.unique(cells)]) * n_draws
    found = np.array([(counted == cell).sum() for cell in np.unique(cells)])
    assert chisquare(found, expected).pvalue > 1e-6
    with pytest.raises(ValueError, match="scale must be in"):
        discrete_gaussian(0.9, 1, SeededBits(0))


def test_draws_that_floats_leave_open_are_decided_as_floats_decide_them(monkeypatch):
    plain = discrete_gaussian(7.25, 100, SeededBits(5, "shares"))
    resolved, asked = shared_noise._resolved, []
    monkeypatch.setattr(shared_noise, "_CLOSE", 1e9)
    monkeypatch.setattr(
        shared_noise, "_resolved", lambda *args: asked.append(args) or resolved(*args)
    )
    assert_array_equal(discrete_gaussian(7.25, 100, SeededBits(5, "shares")), plain)
    assert len(asked) >= 100
    # a word without a bit is below every limit but the smallest, which takes further bits
    assert resolved(7, 7.25, 8, 0, SeededBits(1))
    assert not resolved(7, 7.25, 8, 2**64 - 1, SeededBits(1))


def sum_of_shares(share, n_shares):
    """Return the exact law of a sum of shares, around 0."""
    values = np.arange(-int(40 * share), int(40 * share) + 1)
    one = np.exp(-(values**2) / (2 * share**2))
    made = one / one.sum()
    for _ in range(n_shares - 1):
        made = np.convolve(made, one / one.sum())
    return made


@pytest.mark.parametrize(("share", "n_shares"), [(3.0, 1), (3.0, 2), (4.0, 5), (3.2, 12)])
def test_a_sum_of_shares_costs_what_is_computed(share, n_shares):
    law = sum_of_shares(share, n_shares)
    tails = np.cumsum(law[::-1])[::-1][len(law) // 2 + 1 :]
    # the normal variables of which a sum is a function: shifts by 1 move them by a gap
    normal = -ndtri_exp(np.log(tails[tails > 1e-250]))
    gaps = np.append(2 * normal[0], np.diff(normal))
    price = unit_mu(share, n_shares)
    assert gaps.max() <= price * (1 + 1e-9)
    # and not what continuous noise of the same variance costs, which is less
    assert 1 / (share * math.sqrt(n_shares)) < gaps.max()
    assert price < 1.0001 * gaps.max()


def test_what_the_theorem_does_not_cover_has_no_price():
    assert unit_mu(2.9, 10) == unit_mu(math.nan, 3) == unit_mu(3.0, 0) == math.inf
    assert unit_mu(3.0, 10**40) == math.inf
    noise = SharedNoise("laplace", 40.0, 1.0, 1.0, 1.0, 0.1, 0.0)
    assert noise.actual(1.0, 3).mu == math.inf


def test_noise_is_calibrated_to_its_price_and_half_of_it_is_refused(monkeypatch):
    asked = RoundedUpdates(query(), 2.0**-11, 20)
    facts = asked.sensitivity("replace-one", 30)
    for n_shares in (1, 20, 400):
        law = SharedGaussianMechanism(0.3, 2.0**-11, n_shares)
        noise = law.calibrate(facts, 4)
        actual = noise.actual(facts.l2, 4).mu
        assert 0.3 * (1 - 1e-8) <= actual <= 0.3
        assert noise.scale == pytest.approx(noise.share * 2.0**-11 * math.sqrt(n_shares))
    for grid, n_shares in ((1.0, 20), (2.0**-11, 10**6), (2.0**-60, 1)):
        with pytest.raises(ValueError, match="too coarse, or too fine"):
            SharedGaussianMechanism(0.3, grid, n_shares).calibrate(facts, 4)
    halved = SharedNoise.share
    monkeypatch.setattr(SharedNoise, "share", property(lambda self: halved.fget(self) / 2))
    with pytest.raises((BudgetError, ValueError)):
        claim_model(solver__fewest_reports=N).fit(*data())


# A fit in one process.


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_client_costs_what_is_claimed(adjacency):
    fitted = claim_model(adjacency=adjacency, solver__fewest_reports=6, max_iter=3)
    pair = exchanged(data(), 2, adjacency)
    found = _audit.coupled_mu(lambda rows: fitted.fit(*rows), *pair)
    claimed = gdp_mu(claim_model().epsilon, claim_model().delta)
    # what rounding to the grid is charged for, and does not use
    assert 0.99 * claimed <= found <= claimed
    (entry,) = fitted.ledger_.releases
    assert "6 clients or more add noise" in entry.theorem
    assert fitted.privacy_spent_[0] <= fitted.epsilon


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_rounded_updates_move_by_what_is_stated(adjacency):
    asked = RoundedUpdates(query(), 2.0**-3, 1)
    stated = asked.sensitivity(adjacency, N)
    others = split(*owned(3))
    rows = np.tile([[40.0, 0.0, 0.0]], (50, 1))
    far = [FederatedClient(rows, np.full(50, label)) for label in (0, 1)]
    far.append(FederatedClient(np.empty((0, 3)), []))

    def total(client):
        made = []

        def drive(one):
            for place, request in one.requests.items():
                made.append(_unpacked(everybody[place].answer(request), _UPDATE, "u")[1])

        everybody = {**others, 3: client}
        DistantClients(drive, 4, BODY).sum_of(asked.updates)
        return np.rint(np.array(made) / asked.grid).sum(axis=0) * asked.grid

    one, two, none = map(total, far)
    moved = np.linalg.norm(one - two) if adjacency == "replace-one" else np.linalg.norm(one - none)
    assert moved <= stated.l2
    assert np.abs(one).max() <= stated.bound


def test_noise_has_its_declared_scale_and_law():
    X, y, groups = clients([2] * 20, n_features=60)
    model = claim_model(solver__fewest_reports=7, max_iter=8)
    additions = _audit.noise_stream(model.fit, X, y, groups)
    assert len(additions) == 8
    assert not _audit.scale_is_wrong(additions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver__batch_size": 3}, "batch_size must be None or"),
        ({"population": Population(10.0)}, "population None"),
        ({"local_epsilon": 4.0}, "local_epsilon None"),
        ({"epsilon": None, "local_epsilon": 4.0}, "epsilon must be a number"),
        ({"solver__fewest_reports": N + 1}, "at most the number of clients"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        claim_model(**{"solver__fewest_reports": 2, **options}).fit(*data())


# Clients elsewhere: what they send, and what the server sees of it.


def asked_for(n_clients, fewest, grid=2.0**-9, mu=0.5):
    """Return a query and its noise."""
    asked = RoundedUpdates(query(n_steps=1, step_size=0.5), grid, fewest)
    facts = asked.sensitivity("replace-one", n_clients)
    return asked, SharedGaussianMechanism(mu, grid, fewest).calibrate(facts, asked.size)


def test_shares_have_the_declared_variance_and_nobody_forgets_one():
    asked, noise = asked_for(40, 30)
    members, seen = split(*owned(40)), []

    def drive(one):
        for place, request in one.requests.items():
            seen.append(_unpacked(members[place].answer(request), _UPDATE, "u", "<u4")[1])

    def exact(one):
        driven(members)(one)
        steps.extend(np.rint(update / noise.grid) for update in one._updates.values())

    for _ in range(3):
        with pytest.raises(RuntimeError, match="only 0 clients answered in round 0, and fewest"):
            DistantClients(drive, 40, BODY).noisy_sum(asked, noise)
    steps = []
    DistantClients(exact, 40, BODY).sum_of(asked.updates)
    drawn = np.array(seen).view(np.int32).reshape(3, 40, 4) - np.array(steps)
    # 480 draws: a standard error is 6.5 % of the variance
    assert 0.6 < drawn.var() / noise.share**2 < 1.4
    assert (drawn.reshape(-1, 4) != 0).any(axis=1).all()
    assert len(np.unique(drawn.reshape(-1, 4), axis=0)) == 120


@pytest.mark.parametrize("grid", [2.0**-9, 2.0**-29], ids=["32 bits", "64 bits"])
def test_the_sum_modulo_a_power_of_two_is_decoded_as_integers_are_added(grid):
    asked, noise = asked_for(12, 9, grid, mu=3.0)
    members, kept = split(*owned(12)), []
    word = "<u4" if grid > 2.0**-20 else "<u8"

    def drive(one):
        answers = [members[place].answer(one.requests[place]) for place in range(10)]
        numbers = np.array([_unpacked(answer, _UPDATE, "u", word)[1] for answer in answers])
        kept.append(numbers.view(f"i{word[-1]}").astype(object).sum(axis=0))
        for answer in answers[:3]:
            one.add(answer)
        # what secure aggregation shows of seven others
        total = numbers[3:].sum(axis=0, dtype=numbers.dtype)
        with pytest.raises(ValueError, match="in the type of the reports"):
            one.add_sum(total.astype(float), 7)
        with pytest.raises(ValueError, match="must have shape"):
            one.add_sum(total[:2], 7)
        with pytest.raises(ValueError, match="n_reports must be from 1 to"):
            one.add_sum(total, 10)
        one.add_sum(total, 7)
        assert one.n_reports == 10
        rounds.append(one)

    rounds = []
    found = DistantClients(drive, 12, BODY).noisy_sum(asked, noise)
    assert_array_equal(found, kept[0].astype(float))
    with pytest.raises(ValueError, match="the sum is late"):
        rounds[0].add_sum(np.zeros(4, dtype=word), 1)


def test_a_sum_is_for_fits_in_which_clients_add_the_noise():
    def drive(one):
        with pytest.raises(ValueError, match="for fits with fewest_reports"):
            one.add_sum(np.zeros(4, dtype="<u4"), 1)

    DistantClients(drive, 2, BODY).sum_of(query(n_steps=1, step_size=0.5))


def test_a_fit_to_clients_that_add_the_noise():
    X, y, groups = owned(20)
    members = split(X, y, groups)
    model = FederatedDPLogisticRegression(
        epsilon=100.0, classes=(0, 1), max_iter=2, solver=FederatedAveraging(fewest_reports=15)
    )
    ledger = model.fit(X, y, groups=groups).ledger_
    missing = {(t, place) for t in range(2) for place in range(0, 20, 4)}
    model.fit_clients(driven(members, missing), n_clients=20, n_features=3)
    assert model.ledger_ == ledger
    assert model.coef_[0, 0] > 0
    noise = ledger.releases[0].noise
    assert (noise.n_shares, noise.sampling) == (15, None)
    missing |= {(1, 1)}
    with pytest.raises(RuntimeError, match="only 14 clients answered in round 1"):
        model.fit_clients(driven(members, missing), n_clients=20, n_features=3)
