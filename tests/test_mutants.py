# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known privacy bugs, planted one by one: the audits must see every one of them.

Every test first shows that the audit passes on the real code.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPLogisticRegression, DPMean
from skdp._rows.linear import LinearRows
from skdp.exceptions import BudgetError
from skdp.linear_model import _classifiers as _classifier
from skdp.location._clipped_mean import RowSum
from skdp.privacy import GaussianMechanism, gdp_mu
from skdp.privacy.kernel import curator as _curator
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from skdp.privacy.kernel.samplers import SeededBits
from skdp.solvers import gradient
from skdp.solvers.gradient import ClippedGradient
from tests import _audit
from tests._neighbours import Rows, with_duplicates, worst_mean_pairs, worst_pairs
from tests._solvers import linear_model

EPSILON, DELTA, STEPS = 2.0, 1e-5, 9
CLAIMED_MU = gdp_mu(EPSILON, DELTA)


def logistic(**options):
    defaults = {
        "max_iter": STEPS, "clipping_norm": 0.1, "step_size": 1e-6, "solver": "gd",
        "classes": (0, 1), "random_state": 0,
    }  # fmt: skip
    return linear_model(DPLogisticRegression, EPSILON, DELTA, **{**defaults, **options})


def trace(model, adjacency="replace-one", pairs=None):
    """Return the largest coupled mu over worst pairs, relative to the claim."""
    pairs = pairs or worst_pairs(12, 3, len(model.classes), adjacency, model.data_norm)
    model = clone(model).set_params(adjacency=adjacency)

    def fit(rows):
        clone(model).fit(rows.X, rows.labels())

    return max(_audit.coupled_mu(fit, *pair) for pair in pairs) / CLAIMED_MU


def stream(model, n_rows=10, n_features=60):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, n_features)), rng.integers(0, 3, n_rows)
    return _audit.noise_stream(clone(model).fit, X, y)


def is_tight(ratio, expected=1.0):
    return ratio == pytest.approx(expected, rel=1e-3)


def passes(ratio):
    return 0.999 <= ratio <= 1.0


@pytest.mark.parametrize("model", [logistic(), DPMean(EPSILON, DELTA, random_state=0)], ids=str)
def test_halved_noise_is_caught(model, monkeypatch):
    assert not _audit.scale_is_wrong(stream(model, n_features=500))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(stream(model, n_features=500))


def test_halved_noise_is_caught_by_the_black_box_too():
    # a statistic that moves by 1 between two neighbours, with the noise that this needs
    first, second = np.random.default_rng(0).normal(size=(2, 4000, 1)) / CLAIMED_MU
    assert _audit.black_box_epsilon(first, 1 + second, DELTA) < EPSILON
    assert _audit.black_box_epsilon(first / 2, 1 + second / 2, DELTA) > EPSILON


def unclipped(self, chunk):
    return chunk.combine(self.loss.residual(chunk.predict(self.coef), chunk.target))


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_dropped_clipping_is_caught(classes, monkeypatch):
    model = logistic(classes=classes, intercept_scaling=0.01)
    assert passes(trace(model))
    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert trace(model) > 1.5


def test_rows_that_are_not_clipped_to_the_data_norm_are_caught(monkeypatch):
    model = logistic(clipping_norm=None, coef_bound=1e-3)
    assert trace(model) <= 1
    monkeypatch.setattr(
        "skdp._rows.base.L2Ball.factors", lambda ball, norms: 1 / ball.radius + 0 * norms
    )
    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert trace(model) > 1.5


@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_an_intercept_outside_the_norm_is_caught(scaling, monkeypatch):
    model = logistic(intercept_scaling=scaling)
    assert passes(trace(model))

    class Forgetful(LinearRows):
        def __init__(self, *args):
            super().__init__(*args)
            for chunk in self.chunks:
                finite = np.isfinite(chunk.norm)
                inner = np.sqrt(np.maximum(chunk.norm[finite] ** 2 - scaling**2, 1e-12))
                chunk.norm[finite] = inner

    monkeypatch.setattr(_classifier, "LinearRows", Forgetful)
    # residuals are at most 1/2 here, and rows are of norm 1: so is the limit, 0.1
    assert is_tight(trace(model), math.hypot(1, scaling))


def test_noise_reused_across_steps_is_caught(monkeypatch):
    model = logistic()
    assert _audit.repeats(*[step.standard for step in stream(model)]) == 0
    real, kept = _mechanisms.add_noise, []

    def reused(values, noise, bits):
        out = real(values, noise, bits)
        statistic = noise.grid * np.rint(values / noise.grid)
        kept.append(out - statistic)
        return statistic + kept[0]

    monkeypatch.setattr(_mechanisms, "add_noise", reused)
    assert _audit.repeats(*[step.standard for step in stream(model)]) > 0


def test_noise_reused_across_classes_is_caught(monkeypatch):
    model = logistic(classes=(0, 1, 2), max_iter=1)
    assert _audit.repeats(*[step.standard for step in stream(model)]) == 0
    real = _mechanisms.add_noise

    def reused(values, noise, bits):
        statistic = noise.grid * np.rint(values / noise.grid)
        one = (real(values, noise, bits) - statistic).reshape(3, -1)[0]
        return statistic + np.tile(one, 3)

    monkeypatch.setattr(_mechanisms, "add_noise", reused)
    assert _audit.repeats(*[step.standard for step in stream(model)]) > 0


def test_noise_reused_across_fits_is_caught(monkeypatch):
    model = logistic(random_state=None)
    twice = [step.standard for _ in range(2) for step in stream(model)]
    assert _audit.repeats(*twice) == 0
    monkeypatch.setattr(_curator, "make_bits", lambda *_: SeededBits(0))
    twice = [step.standard for _ in range(2) for step in stream(model)]
    assert _audit.repeats(*twice) > 0


def test_replace_one_accounted_as_zero_out_is_caught(monkeypatch):
    mean = DPMean(EPSILON, DELTA, random_state=0)
    pairs = worst_mean_pairs(5, 2, "replace-one", -1.0, 1.0)

    def ratios():
        measured = max(_audit.coupled_mu(clone(mean).fit, *pair) for pair in pairs)
        return trace(logistic()), measured / CLAIMED_MU

    assert all(map(passes, ratios()))
    for query in (ClippedGradient, RowSum):

        def one_row(self, adjacency, n_rows, real=query.sensitivity):
            return real(self, "zero-out", n_rows)

        monkeypatch.setattr(query, "sensitivity", one_row)
    assert ratios() == pytest.approx((2, 2), rel=1e-3)


def test_an_accountant_told_of_one_step_is_caught(monkeypatch):
    assert passes(trace(logistic()))

    # every step is sold at the price of all, and the ledger remembers one of them
    monkeypatch.setattr(gradient, "GaussianMechanism", lambda _: GaussianMechanism(CLAIMED_MU))
    monkeypatch.setattr(
        Record,
        "append",
        lambda ledger, release: replace(ledger, releases=(replace(release, count=1),)),
    )
    assert is_tight(trace(logistic()), math.sqrt(STEPS))


def test_the_budget_catches_it_without_an_audit(monkeypatch):
    monkeypatch.setattr(gradient, "GaussianMechanism", lambda mu: GaussianMechanism(mu * 1.001))
    with pytest.raises(BudgetError):
        trace(logistic())


def test_duplicate_entries_not_summed_before_norms_are_caught(monkeypatch):
    # the norm over stored entries is 1/sqrt(2) of a row's norm when every entry is in halves
    model = logistic(fit_intercept=False, data_norm=1.0, clipping_norm=0.4)
    pairs = [
        [Rows(with_duplicates(rows.X), rows.codes, rows.null) for rows in pair]
        for pair in worst_pairs(12, 3, 2, "replace-one", 1.0)
    ]
    assert passes(trace(model, pairs=pairs))
    monkeypatch.setattr("skdp._rows.linear.tame", lambda X: (X, np.zeros(X.shape[0], bool)))
    assert is_tight(trace(model, pairs=pairs), math.sqrt(2))
