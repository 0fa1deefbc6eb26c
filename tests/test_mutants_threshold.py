# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of private radii and centres, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPFeatureCenterer, DPNormQuantile, _quantiles
from skdp._quantiles import NormThreshold, plan_threshold
from skdp._rows import linear
from skdp.exceptions import BudgetError
from skdp.location._clipped_mean import GaussianMean
from skdp.preprocessing import _feature_centerer as _centering_plan
from skdp.privacy import ExponentialMechanism, gdp_mu
from skdp.privacy.kernel.ledger import Record
from tests import _audit
from tests.location._thresholds import drawn, fitted_law, threshold_epsilon, worst_pair
from tests.test_sensitivity_threshold import moved_by_awkward_row

EPSILON, DELTA = 2.0, 1e-5
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
rng = np.random.default_rng(0)
ROWS = rng.normal(size=(300, 2))


def worst_ratio(adjacency="replace-one"):
    """Return the exact privacy loss of a drawn radius, relative to the claim."""
    model = DPNormQuantile(EPSILON, tail=3, adjacency=adjacency)
    smallest = plan_threshold(EPSILON, n_rows=4, centered=False).smallest
    return threshold_epsilon(model, *worst_pair(adjacency, 3, smallest)) / EPSILON


@every_adjacency
def test_half_the_spread_is_caught(adjacency, monkeypatch):
    assert 0.98 <= worst_ratio(adjacency) <= 1
    real = NormThreshold.sensitivity
    monkeypatch.setattr(
        NormThreshold, "sensitivity", lambda self, *args: replace(real(self, *args), spread=1.0)
    )
    assert worst_ratio(adjacency) > 1.9


def test_half_the_temperature_is_caught(monkeypatch):
    assert worst_ratio() <= 1
    real = _quantiles.rate
    monkeypatch.setattr(_quantiles, "rate", lambda b, t: real(b, t / 2))
    assert worst_ratio() > 1.9


def test_a_score_in_squares_is_caught(monkeypatch):
    assert worst_ratio() <= 1
    real = NormThreshold.scores
    monkeypatch.setattr(NormThreshold, "scores", lambda self, rows: real(self, rows) ** 2)
    first = np.ones((9, 1))
    second = first.copy()
    second[0] = 0.0
    model = DPNormQuantile(EPSILON, tail=3)
    assert threshold_epsilon(model, first, second) > EPSILON


# -- what leaves without a release ---------------------------------------------------


def replayed(model, first, second):
    """Return whether equal outputs of the mechanisms give equal fitted attributes.

    What is public must be a function of what was released: so it must not matter which of
    two data sets the outputs are replayed on.
    """
    fitted = []
    for X in (first, second):
        with drawn(None), _audit.recorded([np.array([7.0, -5.0])] * 2):
            fitted.append(vars(clone(model).fit(X)))
    keys = [key for key in fitted[0] if key.endswith("_")]
    return all(np.array_equal(fitted[0][key], fitted[1][key]) for key in keys)


CENTERER = DPFeatureCenterer(EPSILON, DELTA, data_norm=5.0)
QUANTILE = DPNormQuantile(EPSILON, data_norm=5.0)
NEIGHBOUR = np.concatenate([[[9.0, 0.0]], ROWS[1:]])


def largest_distance(self, curator, center=None):
    rows = curator._admitted(None)
    gaps = np.concatenate([chunk.explicit() for chunk in rows.chunks])
    return float(np.linalg.norm(gaps - (0.0 if center is None else center), axis=1).max())


@pytest.mark.parametrize("model", [CENTERER, QUANTILE], ids=str)
def test_the_largest_distance_for_a_radius_is_caught(model, monkeypatch):
    assert replayed(model, ROWS, NEIGHBOUR)
    monkeypatch.setattr(_quantiles.ThresholdPlan, "run", largest_distance)
    assert not replayed(model, ROWS, NEIGHBOUR)
    # the ledger does not show it: only the replay does
    assert model.fit(ROWS).ledger_.epsilon(DELTA) <= EPSILON


def test_a_draw_that_is_the_best_radius_is_caught(monkeypatch):
    def best(self, rows, noise, source):
        return np.array([np.argmin(self.scores(rows))], dtype=float)

    def outcomes(X):
        model = DPNormQuantile(EPSILON, tail=1, resolution=0.5)
        return {model.fit(X).threshold_ for _ in range(60)}

    pair = np.array([[0.9], [0.9], [0.6]]), np.array([[0.9], [0.6], [0.6]])
    assert outcomes(pair[0]) & outcomes(pair[1])
    monkeypatch.setattr(NormThreshold, "draw", best)
    # no output is possible in both worlds
    assert not outcomes(pair[0]) & outcomes(pair[1])


def test_a_mean_without_noise_is_caught(monkeypatch):
    assert replayed(CENTERER, ROWS, NEIGHBOUR)

    def exact(self, curator):
        rows = np.concatenate([chunk.explicit() for chunk in curator._admitted(None).chunks])
        return rows.mean(axis=0)

    monkeypatch.setattr(GaussianMean, "run", exact)
    assert not replayed(CENTERER, ROWS, NEIGHBOUR)


# -- the budget ----------------------------------------------------------------------


def test_a_centre_that_takes_all_of_the_budget_is_caught(monkeypatch):
    assert CENTERER.fit(ROWS).ledger_.epsilon(DELTA) <= EPSILON
    monkeypatch.setattr(_centering_plan, "mu_beside", lambda e, d, *_: gdp_mu(e, d))
    with pytest.raises(BudgetError):
        CENTERER.fit(ROWS)
    # without that check the ledger tells
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    assert CENTERER.fit(ROWS).privacy_spent_[0] > 1.4 * EPSILON


def test_a_radius_that_takes_all_of_the_budget_is_caught(monkeypatch):
    monkeypatch.setattr(_quantiles, "ExponentialMechanism", lambda e: ExponentialMechanism(2 * e))
    with pytest.raises(BudgetError):
        CENTERER.fit(ROWS)
    with pytest.raises(BudgetError):
        QUANTILE.fit(ROWS)


# -- utility and floats --------------------------------------------------------------


def overshoot(X, model):
    """Return the exact probability of a radius beyond all rows."""
    query, log_law = fitted_law(model, X)
    largest = np.linalg.norm(X, axis=1).max() / model.data_norm
    return np.exp(log_law)[query.grid() > 1.05 * largest * (1 + 1e-9)].sum()


def test_a_tail_without_its_margin_is_caught(monkeypatch):
    X = ROWS / 1e3
    model = DPNormQuantile(1.0)
    assert overshoot(X, model) <= model.failure
    real = _quantiles.plan_threshold

    def marginless(*args, tail=None, **options):
        return replace(real(*args, tail=tail, **options), tail=5)

    monkeypatch.setattr("skdp.location._norm_quantile.plan_threshold", marginless)
    assert overshoot(X, model) > 0.5


@pytest.mark.parametrize("centered", [False, True])
def test_distances_that_depend_on_the_layout_are_caught(centered, monkeypatch):
    query = NormThreshold(np.full(7, 0.1) if centered else None, 2.0, 1.01, 400, 100)
    # as of rows that are too many to be copied at once: each chunk is, where it is multiplied
    monkeypatch.setattr(linear, "LARGE", 0)
    assert moved_by_awkward_row(query, "F").max() <= 1

    def quick(center, chunk):
        # products of whatever layout the chunk has, without `row_major`
        gaps = chunk.X * chunk.factor[:, None] - (0.0 if center is None else center)
        return np.sqrt(np.einsum("ij,ij->i", gaps, gaps))

    monkeypatch.setattr(_quantiles, "distances_from", quick)
    assert moved_by_awkward_row(query, "F").max() > 1
