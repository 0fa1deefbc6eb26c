# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Claims of private regression, and known bugs, planted one by one: the audits see them all.

Every test of a bug first shows that the audit passes on the real code.
"""

import contextlib
import functools
import math
from unittest import mock

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import DPLpRegressor
from skdp._losses.clipped import ClippedLoss
from skdp._quantiles import MagnitudeThreshold, TargetMedian
from skdp.exceptions import BudgetError
from skdp.linear_model import _lp_regressor
from skdp.linear_model._lp_regressor import ScalesPlan
from skdp.privacy import gdp_mu
from skdp.solvers.gradient import ClippedGradient
from tests import _audit
from tests._neighbours import ADJACENCIES, as_dense, neighbours
from tests._solvers import linear_model

EPSILON, DELTA, STEPS = 2.0, 1e-5, 4
NAN = float("nan")
CLAIMED_MU = gdp_mu(EPSILON, DELTA)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
SOLVERS = ["gd", "accelerated", "newton", "phased", "localized", "accelerated-one-pass"]


def regressor(**options):
    usual = {
        "data_norm": 1.0, "target_scale": 1.0, "clipping_norm": 0.1, "random_state": 0,
    }  # fmt: skip
    if options.get("solver") in ("gd", "accelerated", "sgd"):
        usual.update(max_iter=STEPS, step_size=1e-6)
    return linear_model(DPLpRegressor, EPSILON, DELTA, **{**usual, **options})


def fit(model, rows):
    # a null row is one that is not a number
    with sklearn.config_context(assume_finite=True):
        return clone(model).fit(*rows)


def worst_pairs(adjacency, n_rows=40, length=5.0):
    """Return neighbours: a long row whose huge target changes its sign, or that vanishes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    X /= 3 * np.linalg.norm(X, axis=1)[:, None]
    X[0] = length * np.eye(3)[0]
    y = rng.normal(size=n_rows)
    pairs = []
    for big in (1e300, 50.0):
        first, second = y.copy(), y.copy()
        first[0], second[0] = big, NAN if adjacency == "zero-out" else -big
        pairs.append(((X, first), (X, second)))
    return pairs


def ratio(model, adjacency="replace-one", pairs=None, measure=_audit.coupled_mu):
    """Return the largest coupled parameter over worst pairs, relative to the claim."""
    model = clone(model).set_params(adjacency=adjacency)
    found = [
        measure(functools.partial(fit, model), *pair) for pair in pairs or worst_pairs(adjacency)
    ]
    return max(found) / CLAIMED_MU


@contextlib.contextmanager
def fixed_draws(index):
    """Let every draw of a scale or a threshold have one outcome."""

    def draw(self, rows, noise, source):
        return np.array([float(index if isinstance(self, MagnitudeThreshold) else self.cells // 2)])

    patches = [mock.patch.object(kind, "draw", draw) for kind in (MagnitudeThreshold, TargetMedian)]
    with patches[0], patches[1]:
        yield


@every_adjacency
@pytest.mark.parametrize("p", [1, 2, 4, "huber"])
def test_gradients_keep_their_claim_tightly(p, adjacency):
    assert 0.99 <= ratio(regressor(solver="gd", p=p), adjacency) <= 1


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("p", [1, 2, 4, "huber"])
@pytest.mark.parametrize("solver", ["newton", "phased", "localized", "accelerated-one-pass"])
def test_other_solvers_keep_their_claim(solver, p, adjacency):
    assert ratio(regressor(solver=solver, p=p, l2=1.0), adjacency) <= 1


@every_adjacency
def test_the_minimiser_attains_its_sensitivity(adjacency):
    X = np.zeros((5, 2))
    X[0, 0] = 9.0
    y = np.zeros(5)
    pairs = [((X, y + 1e300 * np.eye(5)[0]), (X, y - 1e300 * np.eye(5)[0]))]
    if adjacency == "zero-out":
        pairs = [(pairs[0][0], (X, np.array([NAN, 0, 0, 0, 0])))]
    model = regressor(solver="newton", l2=1.0, fit_intercept=False)
    assert 0.99 <= ratio(model, adjacency, pairs) <= 1


@every_adjacency
def test_pure_noise_keeps_its_claim(adjacency):
    model = regressor(solver="newton", l2=1.0).set_params(delta=0.0)
    measured = ratio(model, adjacency, measure=_audit.coupled_epsilon)
    assert measured * CLAIMED_MU <= EPSILON


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=10)
@given(data=st.data())
def test_claims_are_kept_on_any_neighbours(solver, adjacency, data):
    first, second = data.draw(neighbours(adjacency, finite=True))
    n = first.X.shape[0]
    sizes = st.sampled_from([0.0, 1.0, -0.4, 1e3, 1e300, -1e300, 1e-300])
    y = np.array(data.draw(st.lists(sizes, min_size=n, max_size=n)))
    options = {
        "p": data.draw(st.sampled_from([1, 2, 4, "huber"])),
        "data_norm": data.draw(st.sampled_from([1.0, 1e-3, 1e3, None])),
        "target_scale": data.draw(st.sampled_from([1.0, 1e-20, 1e20, None])),
        "fit_intercept": data.draw(st.booleans()),
        "clipping_norm": data.draw(st.sampled_from([None, 1e-3, 50.0])),
        "intercept_scaling": data.draw(st.sampled_from([None, 3.0])),
    }
    # the row that differs has another target too; a null row is not a number
    differs = (as_dense(first.X) != as_dense(second.X)).any(axis=1)
    other = np.where(second.null, NAN, np.where(differs, data.draw(sizes), y))
    y = np.where(first.null, NAN, y)
    model = regressor(solver=solver, adjacency=adjacency, **options)
    measured = _audit.coupled_mu(functools.partial(fit, model), (first.X, y), (second.X, other))
    assert measured <= CLAIMED_MU


@pytest.mark.covering
@every_adjacency
@pytest.mark.parametrize("index", [0, 300, 10**9])
@pytest.mark.parametrize("solver", ["gd", "newton"])
def test_given_scales_the_rest_keeps_its_share(solver, index, adjacency):
    # enough rows for all draws, which have the same outcome in both worlds
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 2)), rng.normal(size=4000)
    model = regressor(
        solver=solver, data_norm=None, target_scale=None, clipping_norm="private",
        adjacency=adjacency,
    )  # fmt: skip
    first, second = y.copy(), y.copy()
    first[0], second[0] = 1e300, NAN if adjacency == "zero-out" else -1e300
    with fixed_draws(min(index, 400)):
        measured = _audit.coupled_mu(functools.partial(fit, model), (X, first), (X, second))
        ledger = fit(model, (X, y)).ledger_
    drawn = [r for r in ledger.releases if not r.noise.mu]
    assert len(drawn) == 5
    assert measured <= ledger.mu < CLAIMED_MU
    assert ledger.epsilon(DELTA) <= EPSILON


# -- planted bugs --------------------------------------------------------------------


def test_clipping_dropped_is_caught(monkeypatch):
    model = regressor(solver="gd")
    assert ratio(model) <= 1
    real = ClippedGradient.partial
    monkeypatch.setattr(
        ClippedGradient,
        "partial",
        lambda self, chunk: real(ClippedGradient(self.coef, self.loss, 1e100), chunk),
    )
    assert ratio(model) > 10


@pytest.mark.parametrize("solver", ["newton", "phased", "localized"])
def test_a_loss_that_is_not_clipped_is_caught(solver, monkeypatch):
    model = regressor(solver=solver, l2=1.0)
    assert ratio(model) <= 1
    monkeypatch.setattr(
        ClippedLoss, "targets", lambda self, target, norm: (target, np.full(len(target), 1e150))
    )
    assert ratio(model, pairs=worst_pairs("replace-one")[1:]) > 1.5


def test_a_limit_that_is_not_divided_by_the_row_norm_is_caught(monkeypatch):
    pairs = worst_pairs("replace-one", length=50.0)
    model = DPLpRegressor(
        EPSILON, DELTA, solver="output", target_scale=1.0, clipping_norm=0.1, l2=300.0,
        fit_intercept=False, random_state=0,
    )  # fmt: skip
    assert 0.5 < ratio(model, pairs=pairs) <= 1
    monkeypatch.setattr(
        ClippedLoss, "targets", lambda self, target, norm: (target, np.full(len(target), self.clip))
    )
    assert ratio(model, pairs=pairs) > 2


def test_an_intercept_outside_the_clip_is_caught(monkeypatch):
    model = regressor(solver="gd", intercept_scaling=1.0)
    assert 0.99 <= ratio(model) <= 1
    real = _lp_regressor.unit_rows

    def forgetful(rows, *args):
        moved = real(rows, *args)
        for chunk in moved.chunks:
            chunk.norm[:] = np.sqrt(np.maximum(chunk.norm**2 - chunk.lift**2, 1e-100))
        return moved

    monkeypatch.setattr(_lp_regressor, "unit_rows", forgetful)
    # the long row is scaled down with its constant feature, to a fifth
    assert ratio(model) == pytest.approx(math.hypot(1, 0.2), rel=1e-3)


@pytest.mark.covering
@pytest.mark.parametrize("solver", ["gd", "sgd", *SOLVERS[2:]])
@pytest.mark.parametrize("delta", [DELTA, 0.0])
def test_a_scale_that_is_drawn_but_not_paid_for_is_caught(solver, delta, monkeypatch):
    if delta == 0 and solver != "newton":
        return
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 2)), rng.normal(size=4000)
    model = regressor(solver=solver, data_norm=None, target_scale=None).set_params(delta=delta)
    spent, _ = fit(model, (X, y)).privacy_spent_
    assert 0.9 * EPSILON < spent <= EPSILON
    monkeypatch.setattr(ScalesPlan, "prices", ())
    with pytest.raises(BudgetError):
        fit(model, (X, y))


def test_targets_scaled_by_their_own_maximum_are_caught(monkeypatch):
    model = regressor(solver="gd")
    assert ratio(model) <= 1
    real = _lp_regressor.regression_rows

    def by_maximum(X, y, n_threads=1):
        return real(X, y / np.nanmax(np.abs(y)), n_threads)

    monkeypatch.setattr(_lp_regressor, "regression_rows", by_maximum)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    other = y.copy()
    other[0] = 1e6
    assert ratio(model, pairs=[((X, y), (X, other))]) > 1.5
