# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of steps on disjoint rows, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPLogisticRegression
from skdp._rows.linear import LinearRows
from skdp.exceptions import BudgetError
from skdp.papers import accelerated_one_pass
from skdp.papers.accelerated_one_pass import ApproximationPlan, Restart
from skdp.privacy import gdp_mu
from skdp.privacy.kernel import curator as _curator
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from skdp.solvers.gradient import ClippedGradient
from tests import _audit
from tests._neighbours import Rows, changed
from tests._solvers import linear_model
from tests.test_mutants import unclipped

EPSILON, DELTA, N_ROWS, STEPS = 2.0, 1e-5, 60, 6
CLAIMED_MU = gdp_mu(EPSILON, DELTA)


def make(**options):
    usual = {
        "solver": "accelerated-one-pass", "classes": (0, 1), "random_state": 0,
        "max_iter": STEPS, "clipping_norm": 0.1, "step_size": 1e-6,
    }  # fmt: skip
    return linear_model(DPLogisticRegression, EPSILON, DELTA, **{**usual, **options})


def trace(model, i=7):
    """Return the coupled mu of a row with another label, relative to the claim."""
    X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
    X *= 5 / np.linalg.norm(X, axis=1, keepdims=True)
    rows = Rows(X, np.arange(N_ROWS) % 2, np.zeros(N_ROWS, bool))
    other = changed(rows, i, "replace-one", X[i], 1 - rows.codes[i])
    fit = lambda data: clone(model).fit(data.X, data.labels())  # noqa: E731
    return _audit.coupled_mu(fit, rows, other) / CLAIMED_MU


def stream(model, n_features=60):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N_ROWS, n_features)), rng.integers(0, 2, N_ROWS)
    return _audit.noise_stream(clone(model).fit, X, y)


def passes(ratio):
    return 0.999 <= ratio <= 1


def test_halved_noise_is_caught(monkeypatch):
    assert not _audit.scale_is_wrong(stream(make(), 500))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(stream(make(), 500))


def test_dropped_clipping_is_caught(monkeypatch):
    assert passes(trace(make()))
    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert trace(make()) > 1.5


def test_a_price_that_composes_is_told_from_one_that_does_not(monkeypatch):
    # the price of a full batch in every step would waste most of the budget
    monkeypatch.setattr(ApproximationPlan, "mu_step", property(lambda p: p.mu / p.n_steps**0.5))
    assert trace(make()) == pytest.approx(STEPS**-0.5, rel=1e-3)


def shifted(restart, by):
    """Return parts that begin some rows early: a few rows are in two of them."""
    n_rows, n_steps = restart.stop - restart.start, restart.steps.n_steps
    ends = [restart.start + i * n_rows // n_steps for i in range(n_steps + 1)]
    return tuple((max(one - by, 0), other) for one, other in itertools.pairwise(ends))


def test_a_row_in_two_parts_exceeds_the_budget(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(N_ROWS, 3)), np.arange(N_ROWS) % 2
    model = make().fit(X, y)
    assert [release.rows for release in model.ledger_.releases] == [
        (10 * i, 10 * i + 10) for i in range(STEPS)
    ]
    monkeypatch.setattr(Restart, "parts", property(lambda restart: shifted(restart, 1)))
    with pytest.raises(BudgetError):
        make().fit(X, y)
    # without that check the ledger tells: two releases read the row
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    assert make().fit(X, y).ledger_.mu == pytest.approx(CLAIMED_MU * np.sqrt(2))


def test_parts_that_overlap_and_are_charged_as_disjoint_are_caught(monkeypatch):
    assert all(passes(trace(make(), i)) for i in (0, 7, 30, 59))
    real = LinearRows.part
    # every step reads the rows of the first one
    monkeypatch.setattr(LinearRows, "part", lambda rows, i, j: real(rows, 0, j - i))
    assert trace(make(), 0) == pytest.approx(np.sqrt(STEPS), rel=1e-3)


def test_restarts_and_runs_on_the_same_rows_exceed_the_budget(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(600, 3)), np.arange(600) % 2
    for name, options in (("restarts", {"growth": "halving"}), ("splits", {})):
        model = make(failure_probability=0.2 if name == "splits" else None, **options)
        assert model.fit(X, y).privacy_spent_[0] <= EPSILON
        real = getattr(accelerated_one_pass, name)

        def everywhere(*args, real=real):
            return tuple((0, 300, *part[2:]) for part in real(*args))

        with monkeypatch.context() as patch:
            patch.setattr(accelerated_one_pass, name, everywhere)
            with pytest.raises(BudgetError):
                model.fit(X, y)


def test_an_order_that_depends_on_the_labels_is_caught(monkeypatch):
    # a change of one label then moves rows from part to part
    assert passes(trace(make()))
    real = _curator.Curator.__init__

    def sorting(self, admit, **options):
        def sorted_rows():
            rows = admit()
            order = np.argsort(rows.chunks[0].target, kind="stable")
            rows.chunks = [rows.chunks[0].taken(order)]
            return rows

        real(self, sorted_rows, **options)

    monkeypatch.setattr(_curator.Curator, "__init__", sorting)
    assert trace(make()) > 1.3


def test_steps_that_share_their_noise_are_caught(monkeypatch):
    for model in (make(), make(failure_probability=0.2, max_iter=2)):
        assert _audit.repeats(*[step.standard for step in stream(model)]) == 0
        real, kept = _mechanisms.add_noise, []

        def shared(values, noise, bits, real=real, kept=kept):
            statistic = noise.grid * np.rint(values / noise.grid)
            kept.append((real(values, noise, bits) - statistic) / noise.scale)
            return statistic + noise.scale * kept[0]

        with monkeypatch.context() as patch:
            patch.setattr(_mechanisms, "add_noise", shared)
            assert _audit.repeats(*[step.standard for step in stream(model)]) > 0
