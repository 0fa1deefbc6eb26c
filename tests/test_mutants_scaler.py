# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The claim of the private scaler: coupled traces of whole fits, and planted bugs."""

import math
import pickle
from unittest import mock

import joblib
import numpy as np
import pytest
import sklearn
from hypothesis import strategies as st
from sklearn.base import clone

from skdp.exceptions import BudgetError
from skdp.preprocessing import DPStandardScaler, _standard_scaler
from skdp.preprocessing._standard_scaler import MomentSum, SideSum
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests._neighbours import ADJACENCIES, neighbours, on_examples, worst_mean_pairs

EPSILON, DELTA = 2.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
BOUNDS = (2.0, 5.0)
LAYOUTS = ("C", "F", "strided", "read-only", "float32")
NAN = float("nan")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
every_range = pytest.mark.parametrize("bounds", [None, BOUNDS], ids=["search", "bounds"])


def scaler(adjacency="replace-one", bounds=None, **options):
    return DPStandardScaler(
        EPSILON, DELTA, adjacency=adjacency, bounds=bounds, random_state=0, **options
    )


def measured(model, pair):
    """Return the coupled mu of whole fits, relative to the claim."""

    def fit(rows):
        # the null row of the zero-out relation is not a number; no user can pass one
        with sklearn.config_context(assume_finite=True):
            clone(model).fit(rows)

    return _audit.coupled_mu(fit, *pair) / CLAIMED_MU


def far_pair(adjacency, d=3, n_rows=20):
    """Return rows of which one is above all thresholds, and another below, or null."""
    first = np.random.default_rng(0).normal(size=(n_rows, d))
    second = first.copy()
    first[0], second[0] = 1e308, NAN if adjacency == "zero-out" else -1e308
    return first, second


def box_pairs(adjacency, d=3):
    pairs = worst_mean_pairs(20, d, adjacency, *BOUNDS)
    if adjacency == "zero-out":
        for _, second in pairs:
            second[0] = NAN
    return pairs


@every_adjacency
@pytest.mark.parametrize("d", [1, 4])
def test_the_claim_with_bounds_is_kept_and_tight(adjacency, d):
    ratios = [measured(scaler(adjacency, BOUNDS), pair) for pair in box_pairs(adjacency, d)]
    assert 0.999 <= max(ratios) <= 1


@every_adjacency
def test_the_claim_without_bounds_is_kept_and_its_parts_are_tight(adjacency):
    pair = far_pair(adjacency)
    ratio = measured(scaler(adjacency), pair)
    # a far row is far on either side: its distance to the median tells it from a null row only
    everything = 1.0 if adjacency == "zero-out" else math.sqrt(0.75)
    assert 0.999 * everything <= ratio <= 1


def test_the_counts_of_distances_are_tight_on_their_own():
    # rows that are all equal, so that the median is exact and a row there at distance zero
    first, second = np.full((2, 10_000, 3), 7.0)
    first[0] = 1e308
    steps = _audit.coupled(scaler().fit, first, second)[42:62]
    moved = [np.linalg.norm(a.statistic - b.statistic) / a.noise.scale for a, b in steps]
    assert np.linalg.norm(moved) == pytest.approx(CLAIMED_MU / 2, rel=1e-3)


@pytest.mark.covering
@every_adjacency
@every_range
@on_examples(40)
def test_the_claim_is_kept_on_any_neighbours(bounds, adjacency, data):
    pair = data.draw(neighbours(adjacency, radius=3.0, finite=True, layouts=LAYOUTS))
    options = {"with_std": data.draw(st.booleans())}
    rows = [np.where(each.null[:, None], NAN, each.X) for each in pair]
    assert measured(scaler(adjacency, bounds, **options), rows) <= 1


@every_range
def test_the_budget_is_spent_to_the_last_digit(bounds):
    X = np.random.default_rng(0).normal(size=(50, 3))
    for adjacency in ADJACENCIES:
        ledger = scaler(adjacency, bounds).fit(X).ledger_
        assert ledger.mu == pytest.approx(CLAIMED_MU, rel=1e-9)
        assert ledger.fits(EPSILON, DELTA)
        assert len({release.query for release in ledger.releases}) == (3 if bounds is None else 1)


@every_range
def test_without_the_noisy_statistic_nothing_depends_on_the_data(bounds):
    hashes, sizes = set(), set()
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(40, 3)) * 10.0 ** (100 * seed)
        with mock.patch.object(_mechanisms, "add_noise", lambda x, *_: np.full(x.shape, 0.25)):
            fitted = scaler(bounds=bounds).fit(X)
        hashes.add(joblib.hash(vars(fitted)))
        sizes.add(len(pickle.dumps(fitted)))
    assert len(hashes) == len(sizes) == 1


@every_range
def test_noise_has_the_declared_scale_and_is_never_used_twice(bounds):
    X = np.random.default_rng(0).normal(size=(20, 200))
    streams = [_audit.noise_stream(scaler(bounds=bounds).fit, X)]
    assert not _audit.scale_is_wrong(streams[0])
    assert _audit.repeats(*(step.standard for step in streams[0])) == 0


def unclipped(self, values, columns):
    unit = (values - self.box.center[columns]) / self.box.half_width[columns]
    return [unit, _standard_scaler.WEIGHT * (unit * unit - _standard_scaler.OFFSET)]


@every_range
def test_dropped_clipping_is_caught(bounds, monkeypatch):
    # the statistic is clamped at its bound: enough rows, and not too far
    first = np.random.default_rng(0).normal(3.5, 0.1, size=(200, 2))
    second = first.copy()
    second[0] = 50.0
    assert measured(scaler(bounds=bounds), (first, second)) <= 1
    monkeypatch.setattr(MomentSum, "_moments", unclipped)
    assert measured(scaler(bounds=bounds), (first, second)) > 1.5


@pytest.mark.parametrize("query", [SideSum, MomentSum])
def test_replace_one_charged_as_zero_out_is_caught(query, monkeypatch):
    pair = far_pair("replace-one")
    assert measured(scaler(), pair) <= 1
    real = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, _, n: real(self, "zero-out", n))
    assert measured(scaler(), pair) > 1.09


def test_a_second_moment_that_is_not_charged_is_caught(monkeypatch):
    # under zero-out it is not free: charge what the features cost alone
    pairs = box_pairs("zero-out")
    real = MomentSum.sensitivity

    def alone(self, adjacency, n_rows):
        stated = real(self, adjacency, n_rows)
        return type(stated)(math.inf, math.sqrt(self.size // 2), stated.bound, "mutant")

    monkeypatch.setattr(MomentSum, "sensitivity", alone)
    ratios = [measured(scaler("zero-out", BOUNDS), pair) for pair in pairs]
    assert max(ratios) == pytest.approx(_standard_scaler.WEIGHT * _standard_scaler.OFFSET, rel=1e-3)


def test_squares_that_weigh_too_much_to_be_free_are_caught(monkeypatch):
    first = np.full((20, 3), 5.0)
    second = first.copy()
    # the second maximum of the distance of two rows
    second[0] = 3.5 + 1.5 * (2 - math.sqrt(5))
    assert measured(scaler(bounds=BOUNDS), (first, second)) <= 1
    monkeypatch.setattr(_standard_scaler, "WEIGHT", 2.0)
    assert measured(scaler(bounds=BOUNDS), (first, second)) > 1.05


def test_a_centre_that_was_not_released_is_caught(monkeypatch):
    # one row decides which cluster has the median
    first = np.concatenate([np.full(11, -1.0), np.linspace(5, 50, 10)])[:, None]
    second = first.copy()
    second[0] = 5.0
    assert measured(scaler(), (first, second)) <= 1
    data = []

    def leaky(belief):
        return np.median(data[-1], axis=0)

    class Remembering(_standard_scaler.SideSum):
        def evaluate(self, rows):
            data.append(rows.chunks[0].X)
            return super().evaluate(rows)

    monkeypatch.setattr(_standard_scaler, "SideSum", Remembering)
    monkeypatch.setattr(_standard_scaler, "shortest", leaky)
    assert measured(scaler(), (first, second)) > 1.5


def test_steps_that_cost_too_much_are_stopped_by_the_budget(monkeypatch):
    monkeypatch.setattr(_standard_scaler, "_SHARES", (0.25, 0.25, 0.500001))
    with pytest.raises(BudgetError):
        scaler().fit(np.ones((5, 2)))
