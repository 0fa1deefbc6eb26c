# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The privacy claims of medians and quantiles: exact laws, coupled traces, planted bugs."""

import pickle
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import _quantiles as _quantile_rank
from skdp._quantiles import QuantileRank
from skdp.exceptions import BudgetError
from skdp.location import DPMedian, DPQuantile, _median, _quantile
from skdp.location._median import DirectionSum, DistanceSum
from skdp.privacy import GaussianMechanism, gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from tests import _audit
from tests._neighbours import ADJACENCIES, neighbours, on_examples
from tests.location._laws import (
    line_epsilon,
    rank_epsilon,
    recorded_draws,
    worst_line_pair,
    worst_rank_pair,
)

EPSILON, DELTA = 2.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
NAN = float("nan")
LAYOUTS = ("C", "F", "strided", "read-only", "float32")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def rank(adjacency, quantile=0.5, epsilon=EPSILON):
    bounds = (0, 2**30)
    return DPQuantile(epsilon, quantile=quantile, adjacency=adjacency, bounds=bounds)


@every_adjacency
@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("quantile", [0.5, 0.25])
def test_rank_claim_is_kept_and_tight(quantile, n_features, adjacency):
    pair = worst_rank_pair(adjacency, n_features)
    measured = rank_epsilon(rank(adjacency, quantile), *pair)
    assert 0.99 * EPSILON <= measured <= EPSILON
    if quantile == 0.5:
        median = DPMedian(EPSILON, mechanism="rank", adjacency=adjacency, bounds=(0, 2**30))
        assert rank_epsilon(median, *pair) == measured


@every_adjacency
@on_examples(60)
def test_rank_claim_is_kept_on_any_neighbours(adjacency, data):
    pair = data.draw(neighbours(adjacency, null_row=NAN, layouts=LAYOUTS))
    quantile = data.draw(st.sampled_from([0.5, 0.25, 0.9, 1 / 3, 0.001]))
    bounds = data.draw(st.sampled_from([(-1.0, 1.0), (0.0, 1e-300), (-8e307, 8e307)]))
    model = DPQuantile(EPSILON, quantile=quantile, adjacency=adjacency, bounds=bounds)
    assert rank_epsilon(model, pair[0].X, pair[1].X) <= EPSILON


@every_adjacency
@pytest.mark.parametrize("bounds", [None, (-1.0, 1.0)])
def test_exponential_claim_is_kept_and_tight(bounds, adjacency):
    model = DPMedian(EPSILON, mechanism="exponential", adjacency=adjacency, bounds=bounds)
    measured = line_epsilon(model, *worst_line_pair(adjacency))
    # the mass is not quite all at the end
    assert 0.95 * EPSILON <= measured <= EPSILON


@every_adjacency
def test_exponential_claim_is_kept_on_many_neighbours(adjacency):
    rng = np.random.default_rng(0)
    model = DPMedian(EPSILON, mechanism="exponential", adjacency=adjacency)
    for n_rows in (1, 2, 5, 20):
        for _ in range(5):
            first = rng.uniform(-1, 1, size=(n_rows, 1))
            second = first.copy()
            second[0] = NAN if adjacency == "zero-out" else rng.choice([-1, 1, first[-1, 0]])
            assert line_epsilon(model, first, second) <= EPSILON * (1 + 1e-6)


def gradient(adjacency, **options):
    return DPMedian(
        EPSILON, DELTA, mechanism="gradient", adjacency=adjacency, random_state=0, **options
    )


def gradient_mu(model, first, second):
    def fit(X):
        with sklearn.config_context(assume_finite=True):
            clone(model).fit(X)

    return _audit.coupled_mu(fit, first, second)


def worst_gradient_pair(adjacency, n_features):
    """Return many rows at 0, which hold the iterates, and a far one that changes sides."""
    first = np.zeros((200, n_features))
    first[0] = 10
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else -10
    return first, second


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("domain", [{"data_norm": 3.0}, {"bounds": (-2.0, 2.0)}], ids=str)
@pytest.mark.parametrize(("n_features", "max_iter"), [(1, 6), (3, 700)])
def test_gradient_claim_is_kept_and_tight(n_features, max_iter, domain, adjacency):
    model = gradient(adjacency, max_iter=max_iter, **domain)
    measured = gradient_mu(model, *worst_gradient_pair(adjacency, n_features))
    assert 0.99 * CLAIMED_MU <= measured <= CLAIMED_MU


@every_adjacency
@on_examples(60)
def test_gradient_claim_is_kept_on_any_neighbours(adjacency, data):
    radius = data.draw(st.sampled_from([1.0, 1e-99, 1e99]))
    pair = data.draw(neighbours(adjacency, radius=radius, null_row=NAN, layouts=LAYOUTS))
    bounds = data.draw(st.sampled_from([None, (-radius, radius)]))
    model = gradient(adjacency, data_norm=radius, bounds=bounds, max_iter=5)
    assert gradient_mu(model, pair[0].X, pair[1].X) <= CLAIMED_MU


MODELS = [
    DPQuantile(EPSILON, random_state=0),
    DPMedian(EPSILON, mechanism="rank", random_state=0),
    gradient("replace-one", max_iter=5),
    DPMedian(EPSILON, mechanism="exponential", random_state=0),
]
every_kind = pytest.mark.parametrize("model", MODELS, ids=str)


def some_rows(n_rows, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, 4))


@every_kind
def test_a_fit_keeps_nothing_as_long_as_the_data(model):
    sizes = set()
    for n_rows in (137, 503):
        fitted = clone(model).fit(some_rows(n_rows))
        sizes.add(len(pickle.dumps(fitted)))
        assert not any(n_rows in np.shape(value) for value in vars(fitted).values())
    assert len(sizes) == 1


@every_kind
def test_without_the_noisy_statistic_nothing_depends_on_the_data(model):
    hashes = set()
    for seed in range(3):
        X = some_rows(40, seed)
        X[seed] *= 10.0 ** (100 * seed)
        with (
            mock.patch.object(_mechanisms, "add_noise", lambda x, *_: np.full(x.shape, 0.25)),
            recorded_draws(QuantileRank),
            recorded_draws(DistanceSum),
        ):
            hashes.add(joblib.hash(vars(clone(model).fit(X))))
    assert len(hashes) == 1


# Known bugs, planted one by one -----------------------------------------------------------


def stated_as(monkeypatch, query, change):
    real = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda *args: change(real, *args))


def halved(real, query, adjacency, n_rows):
    facts = real(query, adjacency, n_rows)
    return replace(facts, spread=facts.spread / 2, l2=facts.l2 / 2)


def as_zero_out(real, query, adjacency, n_rows):
    return real(query, "zero-out", n_rows)


@pytest.mark.parametrize("bug", [halved, as_zero_out])
def test_half_the_sensitivity_is_caught(bug, monkeypatch):
    for query in (QuantileRank, DistanceSum, DirectionSum):
        stated_as(monkeypatch, query, bug)
    pair = worst_rank_pair("replace-one")
    assert rank_epsilon(rank("replace-one"), *pair) > 1.9 * EPSILON
    model = DPMedian(EPSILON, mechanism="exponential")
    assert line_epsilon(model, *worst_line_pair("replace-one")) > 1.8 * EPSILON
    model = gradient("replace-one", max_iter=6)
    assert gradient_mu(model, *worst_gradient_pair("replace-one", 1)) > 1.9 * CLAIMED_MU


def test_the_full_budget_for_every_feature_is_caught(monkeypatch):
    monkeypatch.setattr(_quantile, "_share", lambda epsilon, n_parts: epsilon)
    pair = worst_rank_pair("replace-one", 3)
    with pytest.raises(BudgetError):
        rank_epsilon(rank("replace-one"), *pair)
    # and by the law, with a ledger that forgets
    monkeypatch.setattr(Record, "append", lambda ledger, new: replace(ledger, releases=(new,)))
    assert rank_epsilon(rank("replace-one"), *pair) > 2.9 * EPSILON


def test_a_target_that_counts_null_rows_is_caught(monkeypatch):
    first, second = worst_rank_pair("zero-out")
    assert rank_epsilon(rank("zero-out"), first, second) <= EPSILON

    def counting(positions, tau, cells):
        ranks = np.repeat(np.arange(len(positions) + 1), 2)[:-1]
        after = np.repeat(positions.astype(np.int64), 2) + np.tile([0, 1], len(positions))
        starts = np.append(0, after)
        # the target is n tau, whatever rows are null
        steps = np.abs(tau.denominator * ranks - tau.numerator * len(first))
        return starts, np.diff(starts, append=cells + 1), steps

    monkeypatch.setattr(_quantile_rank, "candidates", counting)
    assert rank_epsilon(rank("zero-out"), first, second) > 1.9 * EPSILON


def test_halved_noise_is_caught(monkeypatch):
    X = np.random.default_rng(0).normal(size=(10, 500))
    model = gradient("replace-one", max_iter=5)
    assert not _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X))
    real = _mechanisms.add_noise

    def quieter(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", quieter)
    assert _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X))


def test_steps_sold_at_half_the_price_exceed_the_budget(monkeypatch):
    monkeypatch.setattr(_median, "GaussianMechanism", lambda mu: GaussianMechanism(2 * mu))
    with pytest.raises(BudgetError):
        gradient("replace-one", max_iter=5).fit(np.zeros((9, 2)))
