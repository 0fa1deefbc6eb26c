# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of localisation on disjoint batches, planted one by one: the audits see them.

Every test first shows that the audit passes on the real code.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp._minimize.queries import Minimizer
from skdp._rows.base import ball_constraint
from skdp._rows.linear import LinearRows
from skdp.exceptions import BudgetError
from skdp.papers import localized
from skdp.privacy import Curator, gdp_mu
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from skdp.solvers.base import Problem
from skdp.solvers.disjoint import public_order
from tests import _audit
from tests._neighbours import ADJACENCIES, worst_pairs
from tests.test_claims_erm import DELTA, EPSILON, make
from tests.test_mutants_erm import is_tight, trace

N_ROWS = 240
KINDS = [{}, {"growth": "halving"}, {"growth": "doubling"}, {"failure_probability": 0.1}]


def model_of(**options):
    """Return a model whose gradients have full length and no curvature: |coef| is small."""
    usual = {"fit_intercept": False, "smoothing": 0.01, "coef_bound": 0.01, "C": np.inf}
    return make("hinge", "output", "localized", **{**usual, **options})


def pair_at(position, adjacency="replace-one"):
    """Return neighbours that differ in the row that is read at a position: a label flip."""
    X, y = np.zeros((N_ROWS, 1)), np.zeros(N_ROWS, dtype=int)
    i = public_order(N_ROWS)[position]
    X[i] = 1.0
    other = y.copy()
    other[i] = 1 if adjacency == "replace-one" else 99
    return (X, y), (X, other)


def parts_of(model):
    X, y = pair_at(0)[0]
    return [release.rows for release in clone(model).fit(X, y).ledger_.releases]


@pytest.mark.covering
@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_row_of_any_phase_costs_the_whole_budget_and_no_more(options, adjacency):
    model = model_of(adjacency=adjacency, **options)
    parts = parts_of(model)
    assert len(parts) > 1
    for start, stop in parts:
        assert is_tight(trace(model, *pair_at(start, adjacency)))
        assert trace(model, *pair_at(stop - 1, adjacency)) <= 1


@pytest.mark.covering
@pytest.mark.parametrize("name", ["logistic", "hinge"])
@pytest.mark.parametrize("options", [*KINDS, {"clipping_norm": 0.1}, {"C": 0.01}], ids=str)
def test_long_rows_that_turn_around_keep_within_the_budget(name, options):
    n_classes = 2 if "clipping_norm" in options else 3
    model = make(name, "output", "localized", n_classes, **options)
    for first, second in worst_pairs(N_ROWS, 2, n_classes, "replace-one", 1.0)[:4]:
        assert trace(model, *[(rows.X, rows.labels()) for rows in (first, second)]) <= 1


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_half_the_sensitivity_is_caught_in_every_phase(options, monkeypatch):
    model = model_of(**options)
    parts = parts_of(model)
    monkeypatch.setattr(
        Minimizer, "sensitivity",
        lambda query, _, n, real=Minimizer.sensitivity: real(query, "zero-out", n),
    )  # fmt: skip
    for start, _ in parts:
        assert is_tight(trace(model, *pair_at(start)), 2.0)


def test_a_ridge_counted_for_all_rows_is_caught(monkeypatch):
    # the pull is beside the mean of a phase's rows, the sensitivity beside their sum
    model, real = model_of(), Minimizer.sensitivity
    (first, last), *_ = parts_of(model)

    def overstated(query, adjacency, n_rows):
        return real(replace(query, ridge=query.ridge * N_ROWS / n_rows), adjacency, n_rows)

    monkeypatch.setattr(Minimizer, "sensitivity", overstated)
    assert is_tight(trace(model, *pair_at(first)), N_ROWS / (last - first))


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_phases_that_overlap_and_are_charged_as_disjoint_are_caught(options, monkeypatch):
    model = model_of(**options)
    parts = parts_of(model)
    real = LinearRows.part
    # every phase reads the rows of the first ones
    monkeypatch.setattr(LinearRows, "part", lambda rows, i, j: real(rows, 0, j - i))
    assert trace(model, *pair_at(0)) > np.sqrt(1 + 0.5 * (len(parts) - 1))


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_plan_whose_phases_overlap_exceeds_its_budget(options, monkeypatch):
    model, data = model_of(**options), pair_at(0)[0]
    real = localized.plan_phases

    def overlapping(start, stop, **public):
        phases = real(start, stop, **public)
        later = [replace(phase, start=phase.start - 1) for phase in phases[1:]]
        return (*([phases[0]] if start == 0 else [replace(phases[0], start=start - 1)]), *later)

    monkeypatch.setattr(localized, "plan_phases", overlapping)
    with pytest.raises(BudgetError):
        model.fit(*data)


def test_phases_that_read_all_rows_are_charged_as_a_sum(monkeypatch):
    model, data = model_of(), pair_at(0)[0]
    n_phases = len(parts_of(model))
    real = Curator.release
    monkeypatch.setattr(Problem, "tolerance", lambda *_, **__: 1e-8)
    monkeypatch.setattr(
        Curator, "release",
        lambda curator, query, mechanism, rows=None: real(curator, query, mechanism),
    )  # fmt: skip
    with pytest.raises(BudgetError):
        model.fit(*data)
    # without that check the ledger tells
    monkeypatch.setattr(Record, "fits", lambda *_: True)
    mu = model.fit(*data).ledger_.mu
    assert mu == pytest.approx(gdp_mu(EPSILON, DELTA) * np.sqrt(n_phases))


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_noise_that_is_used_again_is_caught(options, monkeypatch):
    model = model_of(**options)
    rng = np.random.default_rng(0)
    data = rng.normal(size=(N_ROWS, 5)), np.arange(N_ROWS) % 2
    stream = _audit.noise_stream(model.fit, *data)
    assert _audit.repeats(*[step.standard for step in stream]) == 0
    real, kept = _mechanisms.add_noise, []

    def shared(values, noise, bits):
        statistic = noise.grid * np.rint(values / noise.grid)
        kept.append((real(values, noise, bits) - statistic) / noise.scale)
        return statistic + noise.scale * kept[0]

    monkeypatch.setattr(_mechanisms, "add_noise", shared)
    stream = _audit.noise_stream(model.fit, *data)
    assert _audit.repeats(*[step.standard for step in stream]) > 0


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_projection_that_looks_at_the_rows_is_caught(options, monkeypatch):
    # the same outputs must give the same coefficients, and the same later queries
    model, secret = model_of(**options), {}

    def fit(data):
        secret.clear()
        return clone(model).fit(*data)

    def replayed(first, second):
        found = []
        try:
            pairs = _audit.coupled(lambda data: found.append(fit(data)), first, second)
        except AssertionError:
            # not even what is public agrees
            return np.inf, np.inf
        later = max(np.abs(one.statistic - two.statistic).max() for one, two in pairs[1:])
        return later, np.abs(found[0].coef_ - found[1].coef_).max()

    # the row is in the first phase: no later one sees it
    pair = pair_at(0)
    assert replayed(*pair) == (0.0, 0.0)
    real, read = ball_constraint, Minimizer.evaluate

    def looking(query, rows):
        exact = read(query, rows)
        secret.setdefault("side", exact.sum() > 0)
        return exact

    monkeypatch.setattr(Minimizer, "evaluate", looking)

    def projected(coef, radius, *_):
        return real(coef, radius * (0.01 if secret["side"] else 0.02))

    monkeypatch.setattr(localized, "ball_constraint", projected)
    monkeypatch.setattr(localized, "two_balls_constraint", projected)
    later, result = replayed(*pair)
    assert later > 0 or result > 0


def test_a_clip_that_is_stated_but_not_made_is_caught(monkeypatch):
    model = model_of(clipping_norm=0.1)
    parts = parts_of(model)
    for start, _ in parts:
        assert is_tight(trace(model, *pair_at(start)))
    real = Minimizer.evaluate

    def unclipped(query, rows):
        return real(replace(query, loss=query.loss.loss, tolerance=1e-8), rows)

    monkeypatch.setattr(Minimizer, "evaluate", unclipped)
    for start, _ in parts:
        assert trace(model, *pair_at(start)) > 3
