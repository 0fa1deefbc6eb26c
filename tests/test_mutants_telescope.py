# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of bias-reduced gradients, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp.exceptions import BudgetError
from skdp.papers import bias_reduced as query_module
from skdp.papers import bias_reduced as telescope_plan
from skdp.papers.bias_reduced import TelescopedGradient
from skdp.privacy import Sampling
from skdp.privacy.kernel import ledger as _ledger
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests import _audit_batches as batches
from tests._neighbours import worst_pairs
from tests.test_claims_telescope import EPSILON, N, arrays, composed, fit, reduced, toggled


def membership(model):
    """Return the largest change by a row's membership, in units of what is charged."""
    ((rows, _), *_) = worst_pairs(N, 3, 2, "replace-one", 1.0)
    run, data = functools.partial(fit, model), arrays(rows)
    steps = batches.traced(run, *data).steps
    changed = batches.membership(run, 0, *data, change=toggled)
    return max(c / s.noise.mu for c, s in zip(changed, steps, strict=True) if s.noise.by_chance)


def distance(model, adjacency="replace-one"):
    """Return the largest change between neighbours where all rows are read, likewise."""
    model, largest = clone(model).set_params(adjacency=adjacency), 0.0
    for pair in worst_pairs(N, 3, 2, adjacency, 1.0):
        traces = batches.coupled(functools.partial(fit, model), *map(arrays, pair))
        for change, step in zip(batches.changes(*traces), traces[0].steps, strict=True):
            if not step.noise.by_chance:
                largest = max(largest, change / step.noise.mu)
    return largest


def passes(ratio):
    return 0.999 <= ratio <= 1.0


def test_halves_that_are_not_paid_for_are_caught(monkeypatch):
    assert passes(membership(reduced()))
    assert passes(distance(reduced()))
    real = TelescopedGradient.sensitivity

    def of_the_batch_alone(query, adjacency, n_rows):
        facts = real(query, adjacency, n_rows)
        root = 1.0 if query.step is None else math.sqrt(2)
        return replace(facts, l2=facts.l2 / root)

    monkeypatch.setattr(TelescopedGradient, "sensitivity", of_the_batch_alone)
    assert membership(reduced()) == pytest.approx(math.sqrt(2), rel=1e-3)
    assert distance(reduced()) == pytest.approx(math.sqrt(2), rel=1e-3)


def test_a_row_in_both_halves_is_caught(monkeypatch):
    assert passes(membership(reduced()))

    def without_coins(query, split):
        total = query.summed(split[0])
        return np.concatenate([total, total, total])

    monkeypatch.setattr(TelescopedGradient, "partial", without_coins)
    assert membership(reduced()) == pytest.approx(math.sqrt(3 / 2), rel=1e-3)


def test_coins_that_depend_on_who_else_is_in_the_batch_are_caught(monkeypatch):
    # a row that joins sends all rows behind it to the other half
    assert passes(membership(reduced()))
    monkeypatch.setattr(
        query_module, "public_coins", lambda step, positions: np.arange(len(positions)) % 2 == 0
    )
    assert membership(reduced()) > 1.2


def test_a_batch_divided_by_its_realised_size_is_caught(monkeypatch):
    model = reduced()
    assert passes(membership(model))
    real = TelescopedGradient.evaluate

    def mean_of_what_came(query, rows):
        size = sum(len(chunk.norm) for chunk in rows.chunks)
        return real(query, rows) * (6 if query.step is None else 12) / max(size, 1)

    monkeypatch.setattr(TelescopedGradient, "evaluate", mean_of_what_came)
    assert membership(model) > 1.05


@pytest.mark.parametrize("oracle", ["soft-threshold", "sketch"])
def test_dropped_clipping_is_caught(oracle, monkeypatch):
    model = reduced(oracle=oracle, sparsity=3)
    assert membership(model) <= 1.0

    def unclipped(query, chunk):
        total = chunk.combine(query.loss.residual(chunk.predict(query.coef), chunk.target))
        return total if query.measurement is None else query.measurement.forward(total)

    monkeypatch.setattr(TelescopedGradient, "summed", unclipped)
    assert membership(model) > 1.5


class Stretching:
    """A matrix that makes three times as much of a row."""

    def __init__(self, matrix):
        self.matrix, self.shape = matrix, matrix.shape

    def sketches(self, X):
        return 3 * self.matrix.sketches(X)


def test_measurements_that_are_not_clipped_are_caught(monkeypatch):
    # the row's gradient is clipped, but what is measured of it is longer
    model, real = reduced(oracle="sketch", sparsity=1, max_iter=3), TelescopedGradient.summed
    assert membership(model) <= 1.0

    def stretched(query, chunk):
        return real(replace(query, measurement=Stretching(query.measurement)), chunk)

    # whatever the matrix does, the guard holds
    monkeypatch.setattr(TelescopedGradient, "summed", stretched)
    assert passes(membership(model))

    def unguarded(query, chunk):
        return stretched(replace(query, radius=math.inf), chunk)

    monkeypatch.setattr(TelescopedGradient, "summed", unguarded)
    assert membership(model) > 1.5


def test_halved_noise_is_caught(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(30, 100)), np.arange(30) % 2
    model = reduced()
    assert not _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X, y))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X, y))


def test_one_noise_for_a_batch_and_its_halves_is_caught(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(30, 100)), np.arange(30) % 2
    model, real = reduced(), _mechanisms.add_noise

    def repeated(values, noise, bits):
        if len(values) % 3 or len(values) == 101:
            return real(values, noise, bits)
        part = real(np.zeros(len(values) // 3), noise, bits)
        return values + np.tile(part, 3)

    def seen():
        return _audit.repeats(
            *(step.standard for step in _audit.noise_stream(clone(model).fit, X, y))
        )

    assert seen() == 0
    monkeypatch.setattr(_mechanisms, "add_noise", repeated)
    assert seen() > 0


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_levels_that_are_not_paid_for_are_caught(adjacency, monkeypatch):
    assert 0.99 * EPSILON < composed(reduced(), adjacency) <= EPSILON
    real = telescope_plan.sampled_mus

    def of_one_step(epsilon, delta, parts, mu, priced):
        return real(epsilon, delta, tuple(replace(part, count=1) for part in parts), mu, priced)

    monkeypatch.setattr(telescope_plan, "sampled_mus", of_one_step)
    # the budget sees it, unless nobody looks
    with pytest.raises(BudgetError):
        composed(reduced(), adjacency)
    monkeypatch.setattr(_ledger.Record, "fits", lambda *budget: True)
    assert composed(reduced(), adjacency) > 1.5 * EPSILON


def test_levels_charged_at_the_rate_of_the_smallest_batches_are_caught(monkeypatch):
    assert composed(reduced(), "zero-out") <= EPSILON
    smallest = property(
        lambda sampling: (
            min(sampling.batch_size, 6) / sampling.n_rows if not sampling.reads_all else 1.0
        )
    )
    monkeypatch.setattr(Sampling, "rate", smallest)
    # another budget: prices are remembered
    model = reduced(epsilon=1.9)
    assert composed(model, "zero-out") > 1.9


def test_all_rows_charged_for_one_contribution_are_caught(monkeypatch):
    # replace-one, where every row is read: neighbours are two contributions apart
    assert passes(distance(reduced()))
    monkeypatch.setattr(Sampling, "adjacency", lambda s, asked: "zero-out")
    assert distance(reduced()) == pytest.approx(2, rel=1e-3)
