# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of K-norm noise, phases and draws, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdp import papers
from skdp._rows.base import L2Ball
from skdp._rows.linear import LinearRows
from skdp.exceptions import BudgetError
from skdp.location._clipped_mean import RowSum
from skdp.privacy import Curator, ExponentialMechanism, KNormMechanism
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from skdp.privacy.laws import k_norm as _k_norm
from skdp.solvers import exponential
from skdp.solvers.exponential import LossDraw
from tests import _audit, _densities
from tests._densities import Line
from tests._solvers import problem_of
from tests.linear_model.test_mechanisms import label_flip
from tests.test_claims_erm import draw_levels, make
from tests.test_mutants_erm import is_tight, output, trace

# -- K-norm noise ------------------------------------------------------------------


def k_norm_stream(n_releases, size):
    rows = LinearRows(np.eye(size), np.zeros(size), np.zeros(size, bool), L2Ball(1.0), 0.0)
    curator = Curator(
        lambda: rows, n_rows=size, epsilon=1e6, delta=0.0, adjacency="zero-out",
        random_state=None, purpose="test",
    )  # fmt: skip
    with _audit.recorded() as additions:
        for _ in range(n_releases):
            curator.release(RowSum(L2Ball(1.0), size), KNormMechanism(1.0))
    return additions


def test_halved_k_norm_noise_is_caught(monkeypatch):
    assert not _audit.scale_is_wrong(k_norm_stream(1, 200))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(k_norm_stream(1, 200))


@pytest.mark.sample(1)
@pytest.mark.parametrize("rescaled", [False, True])
def test_k_norm_noise_with_the_length_of_a_gaussian_is_caught(rescaled, monkeypatch):
    real = k_norm_stream(2000, 5)
    assert not _audit.scale_is_wrong(real)
    assert not _audit.law_is_wrong(real)

    def gaussian(scale, size, bits):
        # with the right mean length or not
        factor = size / stats.chi(size).mean() if rescaled else 1.0
        return _mechanisms.rounded_gaussian(scale * factor, size, bits)

    monkeypatch.setattr(_k_norm, "rounded_k_norm", gaussian)
    planted = k_norm_stream(2000, 5)
    assert _audit.law_is_wrong(planted)
    # only the spread of the lengths gives the second one away
    assert _audit.scale_is_wrong(planted) == (not rescaled)


# -- phases ------------------------------------------------------------------------


def test_parts_that_overlap_and_are_charged_as_disjoint_are_caught(monkeypatch):
    model = output("one-pass", C=np.inf)
    pair = label_flip(8, "replace-one")
    assert is_tight(trace(model, *pair))
    real = LinearRows.part
    # every phase reads the rows of the first one
    monkeypatch.setattr(LinearRows, "part", lambda rows, i, j: real(rows, 0, j - i))
    n_phases = 4
    assert is_tight(trace(model, *pair), np.sqrt(n_phases))


def test_a_plan_whose_parts_overlap_exceeds_its_budget(monkeypatch):
    model, ((X, y), _) = output("one-pass", C=np.inf), label_flip(8, "replace-one")
    parts = [release.rows for release in model.fit(X, y).ledger_.releases]
    assert parts == [(0, 4), (4, 6), (6, 7), (7, 8)]
    real = papers.OnePass.plan

    def overlapping(solver, problem):
        plan = real(solver, problem)
        return replace(plan, parts=((0, 5), *plan.parts[1:]))

    monkeypatch.setattr(papers.OnePass, "plan", overlapping)
    with pytest.raises(BudgetError):
        model.fit(X, y)


@pytest.mark.parametrize("solver", ["phased", "one-pass"])
def test_phases_that_share_their_noise_are_caught(solver, monkeypatch):
    model = make("logistic", "output", solver)
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 5)), np.arange(40) % 2
    assert _audit.repeats(*[s.standard for s in _audit.noise_stream(model.fit, *data)]) == 0
    real, kept = _mechanisms.add_noise, []

    def shared(values, noise, bits):
        statistic = noise.grid * np.rint(values / noise.grid)
        kept.append((real(values, noise, bits) - statistic) / noise.scale)
        return statistic + noise.scale * kept[0]

    monkeypatch.setattr(_mechanisms, "add_noise", shared)
    assert _audit.repeats(*[s.standard for s in _audit.noise_stream(model.fit, *data)]) > 0


# -- the exponential mechanism -------------------------------------------------------


def worst_draw(center, adjacency="zero-out"):
    """Return the largest log-ratio of a draw, near a centre or in all of the ball.

    All but one row hold the draw at one end of its set, where the loss of the last row is
    largest: the integral changes by the factor exp(-epsilon).
    """
    model = make(
        "hinge", "exponential", "exact", fit_intercept=False, coef_bound=4.0, C=1e6,
        adjacency=adjacency,
    )  # fmt: skip
    problem, near = problem_of(model, 400, 1, 2), None
    low, high = -4.0, 4.0
    if center is not None:
        near, low, high = (np.array([center]), 0.5), center - 0.5, center + 0.5
    query = LossDraw(problem.loss, 1, 1.0, problem.penalty, 4.0, near=near)
    noise = ExponentialMechanism(1.0).calibrate(query.sensitivity(adjacency, 400), 1)
    w = np.linspace(low, high, 20_001)
    first = Line((1.0,) * 400, (1,) * 399 + (-1,))
    logs = [
        _densities.draw_log_density(problem.loss, problem.penalty, noise.scale, line, w)
        for line in (first, first.changed(-1, 1.0, 0 if adjacency == "zero-out" else 1))
    ]
    return np.abs(logs[0] - logs[1]).max()


@pytest.mark.parametrize("center", [None, 0.0])
def test_a_radius_for_a_diameter_is_caught_by_quadrature(center, monkeypatch):
    # near 0 both labels' losses have slopes of full size
    honest = worst_draw(center)
    assert 0.4 < honest <= 1
    real = LossDraw.sensitivity

    def halved(self, *args):
        facts = real(self, *args)
        return replace(facts, spread=facts.spread / 2)

    monkeypatch.setattr(LossDraw, "sensitivity", halved)
    assert worst_draw(center) == pytest.approx(2 * honest, rel=0.1)
    assert worst_draw(center) > 1


def test_half_the_temperature_is_caught_by_the_draws(monkeypatch):
    line = Line((1.0, 1.0, 1.0, 1.0, 0.7), (1, 1, 1, 1, 0))
    model = make("hinge", "exponential", "exact", fit_intercept=False, epsilon=6.0, coef_bound=1.0)
    assert stats.kstest(draw_levels(model, line, range(200)), "uniform").pvalue > 1e-3
    real = LossDraw.draw

    def colder(self, rows, noise, source):
        return real(self, rows, replace(noise, scale=noise.scale / 2), source)

    monkeypatch.setattr(LossDraw, "draw", colder)
    assert stats.kstest(draw_levels(model, line, range(200)), "uniform").pvalue < 1e-5


def test_both_stages_at_the_whole_epsilon_exceed_the_budget(monkeypatch):
    (X, y), _ = label_flip(9, "replace-one")
    model = make("hinge", "exponential", "exact", localize=True, C=0.01)
    assert model.fit(X, y).privacy_spent_ == (2.0, 0.0)
    assert len(model.ledger_.releases) == 2
    monkeypatch.setattr(exponential, "KNormMechanism", lambda e: KNormMechanism(2 * e))
    monkeypatch.setattr(exponential, "ExponentialMechanism", lambda e: ExponentialMechanism(2 * e))
    with pytest.raises(BudgetError):
        model.fit(X, y)
    # without that check the ledger tells
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    assert model.fit(X, y).privacy_spent_ == (4.0, 0.0)
