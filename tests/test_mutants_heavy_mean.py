# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The privacy claims of heavy-tailed means: coupled traces of whole fits, and planted bugs."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from skdp import DPHeavyTailedMean
from skdp._quantiles import NormThreshold, ThresholdPlan
from skdp._rows.base import L2Ball
from skdp.exceptions import BudgetError
from skdp.location import _heavy_tailed_mean as heavy_tailed_mean
from skdp.location._clipped_mean import ClippedRowSum
from skdp.location._heavy_tailed_mean import plan_heavy_tailed_mean
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from tests import _audit
from tests._neighbours import ADJACENCIES, neighbours, on_examples
from tests.location._thresholds import drawn, threshold_epsilon, worst_pair

EPSILON, DELTA = 4.0, 1e-5
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
NAN = float("nan")
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def mean(adjacency="replace-one", epsilon=EPSILON, delta=DELTA, **options):
    options = {"random_state": 0, "moment_bound": 1.0, "data_norm": 1e6, **options}
    return DPHeavyTailedMean(epsilon, delta, adjacency=adjacency, **options)


def fitted(model, X):
    """Fit, with null rows in the data: validation would refuse them."""
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(X)


def measured(model, first, second):
    """Return the coupled loss of the mean, relative to what the whole fit may cost.

    A radius that is to be drawn is the same in both worlds: its own loss is not in it.
    """
    coupled = _audit.coupled_mu if model.delta else _audit.coupled_epsilon
    claim = gdp_mu(model.epsilon, model.delta) if model.delta else model.epsilon
    with drawn(None):
        return coupled(lambda X: fitted(model, X), first, second) / claim


def pair(adjacency, d=3, n_rows=400):
    """Return rows near 0 and a far one, which becomes its opposite or null."""
    first = np.random.default_rng(0).normal(size=(n_rows, d)) * 1e-3
    first[0] = 1e5
    second = first.copy()
    second[0] = NAN if adjacency == "zero-out" else -first[0]
    return first, second


@every_adjacency
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("failure", [None, 0.01])
def test_claims_with_a_moment_are_kept_and_tight(adjacency, delta, failure):
    model = mean(adjacency, delta=delta, failure_probability=failure)
    assert 0.999 <= measured(model, *pair(adjacency)) <= 1.0


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_claims_of_the_mean_beside_a_draw_are_kept(adjacency, delta):
    model = mean(adjacency, delta=delta, moment_bound=None)
    share = measured(model, *pair(adjacency))
    assert 0.6 < share < 0.9
    releases = fitted(model, pair(adjacency)[0]).ledger_.releases
    claim = releases[1].noise.mu / CLAIMED_MU if delta else releases[1].noise.epsilon / EPSILON
    assert 0.999 <= share / claim <= 1.0


def draw_loss(adjacency):
    """Return the exact loss of the draw on its worst neighbours, relative to its price."""
    plan = plan_heavy_tailed_mean(
        20.0, DELTA, n_rows=20, n_features=1, adjacency=adjacency, data_norm=1.0
    ).draw
    assert plan.released
    # rows at the origin, as many as the plan asks for, change nothing
    rows = worst_pair(adjacency, plan.tail, plan.smallest)
    rows = [np.concatenate([X, np.zeros((20 - len(X), 1))]) for X in rows]
    model = mean(adjacency, epsilon=20.0, moment_bound=None, data_norm=1.0)
    return threshold_epsilon(model, *rows) / plan.epsilon


@every_adjacency
def test_claims_of_the_draw_are_kept_and_tight(adjacency):
    assert 0.98 <= draw_loss(adjacency) <= 1.0


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("options", [{}, {"moment_bound": None}, {"delta": 0.0}], ids=str)
@on_examples(40)
def test_claims_are_kept_on_any_neighbours(adjacency, options, data):
    one, two = data.draw(neighbours(adjacency, null_row=NAN))
    # a budget with which nine rows are not too few, and quickly composed
    model = mean(adjacency, epsilon=1000.0, **options)
    assert measured(model, one.X, two.X) <= 1.0


@every_adjacency
def test_a_doubled_radius_charged_as_one_is_caught(adjacency, monkeypatch):
    model, rows = mean(adjacency), pair(adjacency)
    assert measured(model, *rows) <= 1.0
    real = ClippedRowSum.partial
    monkeypatch.setattr(
        ClippedRowSum,
        "partial",
        lambda self, chunk: 2 * real(replace(self, radius=2 * self.radius), chunk),
    )
    # rows were admitted into the ball of the radius, so it is the sum that doubles
    assert measured(model, *rows) > 1.9
    assert measured(mean(adjacency, moment_bound=None), *rows) > 1.9


def test_two_sides_charged_as_one_are_caught(monkeypatch):
    model, rows = mean(), pair("replace-one")
    assert measured(model, *rows) <= 1.0
    real = ClippedRowSum.sensitivity
    monkeypatch.setattr(
        ClippedRowSum, "sensitivity", lambda self, _, n_rows: real(self, "zero-out", n_rows)
    )
    assert measured(model, *rows) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("options", [{}, {"moment_bound": None}], ids=str)
def test_dropped_clipping_is_caught(options, monkeypatch):
    model, rows = mean(**options), pair("replace-one")
    assert measured(model, *rows) <= 1.0

    # neither on the way in nor in the sum
    def unclipped(self, chunk, real=ClippedRowSum.partial):
        return real(replace(self, radius=1e300), chunk)

    monkeypatch.setattr(L2Ball, "factors", lambda ball, norms: np.full_like(norms, 1 / ball.radius))
    monkeypatch.setattr(ClippedRowSum, "partial", unclipped)
    assert measured(model, *rows) > 1.5


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_halved_noise_is_caught(delta, monkeypatch):
    model, rows = mean(delta=delta), np.random.default_rng(0).normal(size=(300, 500))
    fit = lambda: fitted(model, rows)  # noqa: E731
    assert not _audit.scale_is_wrong(_audit.noise_stream(fit))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(fit))


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_a_mean_that_takes_all_of_the_budget_is_caught(delta, monkeypatch):
    model, rows = mean(delta=delta, moment_bound=None), pair("replace-one")[0]
    assert fitted(model, rows).ledger_.epsilon(delta) <= EPSILON
    real = heavy_tailed_mean._price_of_mean
    monkeypatch.setattr(heavy_tailed_mean, "_price_of_mean", lambda e, d, drawn: real(e, d, 0.0))
    with pytest.raises(BudgetError):
        fitted(model, rows)
    # without that check the ledger tells
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    assert fitted(model, rows).privacy_spent_[0] > 1.2 * EPSILON


def replayed(model, first, second):
    """Return whether equal outputs of the mechanisms give equal fitted attributes."""
    found = []
    for X in (first, second):
        with drawn(None), _audit.recorded([np.array([7.0, -5.0, 1.0])] * 2):
            found.append(vars(clone(model).fit(X)))
    keys = [key for key in found[0] if key.endswith("_")]
    return all(np.array_equal(found[0][key], found[1][key]) for key in keys)


@pytest.mark.parametrize("options", [{}, {"moment_bound": None}, {"delta": 0.0}], ids=str)
def test_all_attributes_follow_from_what_was_released(options):
    assert replayed(mean(**options), *pair("replace-one"))


def test_a_radius_read_off_the_rows_is_caught(monkeypatch):
    rows, model = pair("replace-one"), mean(moment_bound=None)
    rows[1][0] = 3.0
    assert replayed(model, *rows)

    def largest(self, curator, center=None):
        return min(1.0, max(chunk.norm.max() for chunk in curator._admitted(None).chunks))

    monkeypatch.setattr(ThresholdPlan, "run", largest)
    assert not replayed(model, *rows)


@every_adjacency
def test_half_the_spread_of_the_draw_is_caught(adjacency, monkeypatch):
    assert draw_loss(adjacency) <= 1.0
    real = NormThreshold.sensitivity
    monkeypatch.setattr(
        NormThreshold, "sensitivity", lambda self, *args: replace(real(self, *args), spread=1.0)
    )
    assert draw_loss(adjacency) > 1.7
