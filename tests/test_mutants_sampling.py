# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of random batches, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp.exceptions import BudgetError
from skdp.privacy import Sampling
from skdp.privacy.kernel import ledger as _ledger
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.solvers import sgd as sgd_solver
from skdp.solvers.gradient import ClippedGradient
from tests import _audit
from tests import _audit_batches as batches
from tests._neighbours import worst_pairs
from tests.test_claims_sampling import DELTA, EPSILON, N, arrays, fit, sgd

RATE = 6 / N
Cost = _ledger.SampledCost


def worst(adjacency="replace-one"):
    """Return two neighbours as pairs of arrays: row 0 is another one, or null."""
    return [arrays(rows) for rows in worst_pairs(N, 3, 2, adjacency, 1.0)[0]]


def membership(model, row=0):
    """Return the largest change by a row's membership, in units of what is charged."""
    first, _ = worst()
    trace = batches.traced(functools.partial(fit, model), *first)
    changed = batches.membership(functools.partial(fit, model), row, *first)
    return max(changed) / trace.steps[0].noise.mu


def spent(model, adjacency):
    """Return epsilon of a fit, from what changes between neighbours and with membership."""
    model = clone(model).set_params(adjacency=adjacency)
    run, (first, second) = functools.partial(fit, model), worst(adjacency)
    changed = batches.membership(run, 0, *first)
    full = np.linalg.norm(batches.changes(*batches.coupled(run, first, second), "full"))
    return batches.composed_epsilon(changed, RATE, adjacency, DELTA, full)


def judged(model, n_rows=120, batch_size=30):
    X, y = np.random.default_rng(0).normal(size=(n_rows, 2)), np.arange(n_rows) % 2
    model = clone(model).set_params(solver__batch_size=batch_size, max_iter=100)
    trace = batches.traced(functools.partial(fit, model), X, y)
    return batches.batches_are_wrong(trace.batches, n_rows, batch_size / n_rows)


def passes(ratio):
    return 0.999 <= ratio <= 1.0


def test_a_batch_divided_by_its_realised_size_is_caught(monkeypatch):
    assert passes(membership(sgd()))
    real = ClippedGradient.evaluate

    def mean_of_what_came(query, rows):
        size = sum(len(chunk.norm) for chunk in rows.chunks)
        return real(query, rows) * 6 / max(size, 1)

    monkeypatch.setattr(ClippedGradient, "evaluate", mean_of_what_came)
    assert membership(sgd()) > 1.05


def test_dropped_clipping_is_caught(monkeypatch):
    assert passes(membership(sgd()))

    def unclipped(query, chunk):
        return chunk.combine(query.loss.residual(chunk.predict(query.coef), chunk.target))

    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert membership(sgd()) > 1.5


def test_shuffled_epochs_passed_off_as_coins_are_caught(monkeypatch):
    assert judged(sgd()) is None
    rng, left = np.random.default_rng(0), []

    def next_of_epoch(sampling, bits):
        if len(left) < sampling.batch_size:
            left[:] = rng.permutation(sampling.n_rows)
        taken, left[:] = left[: int(sampling.batch_size)], left[int(sampling.batch_size) :]
        return np.sort(taken)

    monkeypatch.setattr(Sampling, "draw", next_of_epoch)
    assert judged(sgd()) is not None

    # even if their sizes look right: rows come once an epoch
    def of_random_size(sampling, bits):
        size = rng.binomial(sampling.n_rows, sampling.rate)
        while len(left) < size:
            left.extend(rng.permutation(sampling.n_rows))
        taken, left[:] = np.unique(left[:size]), left[size:]
        return taken

    monkeypatch.setattr(Sampling, "draw", of_random_size)
    assert judged(sgd()) == "counts"


def test_a_fixed_size_passed_off_as_coins_is_caught(monkeypatch):
    assert judged(sgd()) is None
    real = Sampling.draw

    def fixed(sampling, bits):
        return real(replace(sampling, kind="without-replacement"), bits)

    monkeypatch.setattr(Sampling, "draw", fixed)
    assert judged(sgd()) == "sizes"


def test_repeated_rows_passed_off_as_coins_are_caught(monkeypatch):
    assert judged(sgd()) is None
    real = Sampling.draw
    monkeypatch.setattr(
        Sampling, "draw", lambda s, bits: real(replace(s, kind="with-replacement"), bits)
    )
    assert judged(sgd()) == "repeated rows"


def test_a_larger_rate_than_charged_is_caught(monkeypatch):
    assert judged(sgd()) is None
    real = Sampling.draw
    monkeypatch.setattr(
        Sampling, "draw", lambda s, bits: real(replace(s, batch_size=1.2 * s.batch_size), bits)
    )
    assert judged(sgd()) == "rate"


@pytest.mark.parametrize("period", [1, 2, 5])
def test_a_batch_that_is_used_again_is_caught(period, monkeypatch):
    assert judged(sgd()) is None
    real, kept = Sampling.draw, []

    def again(sampling, bits):
        kept.append(kept[-period] if len(kept) >= period else real(sampling, bits))
        return kept[-1]

    monkeypatch.setattr(Sampling, "draw", again)
    assert judged(sgd()) is not None


def test_halved_noise_is_caught(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(30, 300)), np.arange(30) % 2
    model = sgd(preprocess="center")
    assert not _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X, y))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(clone(model).fit, X, y))


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_an_accountant_told_of_one_step_is_caught(adjacency, monkeypatch):
    assert 0.99 * EPSILON < spent(sgd(), adjacency) <= EPSILON
    real = sgd_solver.sampled_mu

    def of_one_step(*args, **kwargs):
        return real(*args, **{**kwargs, "n_releases": 1})

    monkeypatch.setattr(sgd_solver, "sampled_mu", of_one_step)
    # the budget sees it, unless the ledger is told the same
    with pytest.raises(BudgetError):
        spent(sgd(), adjacency)
    monkeypatch.setattr(_ledger, "SampledCost", lambda *args: Cost(*args[:3], 1))
    assert spent(sgd(), adjacency) > 1.5 * EPSILON


def test_replace_one_charged_as_zero_out_is_caught(monkeypatch):
    assert 0.99 * EPSILON < spent(sgd(), "replace-one") <= EPSILON
    real = sgd_solver.sampled_mu

    def cheaper(*args, **kwargs):
        return real(*args, **{**kwargs, "adjacency": "zero-out"})

    monkeypatch.setattr(sgd_solver, "sampled_mu", cheaper)
    with pytest.raises(BudgetError):
        spent(sgd(), "replace-one")
    monkeypatch.setattr(
        _ledger, "SampledCost", lambda s, mu, _, count: Cost(s, mu, "zero-out", count)
    )
    assert spent(sgd(), "replace-one") > 1.2 * EPSILON


def test_a_sampling_that_is_charged_at_a_lower_rate_is_caught(monkeypatch):
    assert spent(sgd(), "zero-out") <= EPSILON
    monkeypatch.setattr(Sampling, "rate", property(lambda s: 0.5 * s.batch_size / s.n_rows))
    # another budget: prices are remembered
    assert spent(sgd(epsilon=1.9), "zero-out") > 1.2 * 1.9


def test_full_gradients_charged_as_batches_are_caught(monkeypatch):
    # every step reads all rows, and pays for a batch
    assert judged(sgd()) is None
    monkeypatch.setattr(Sampling, "draw", lambda s, bits: np.arange(s.n_rows))
    assert judged(sgd()) == "rate"
