# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of late noise, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

import functools

import numpy as np
import pytest
from scipy import sparse

from skdp.privacy import Sampling
from skdp.privacy.laws import late_noise as lazy_noise
from skdp.privacy.laws.late_noise import LazySums
from skdp.solvers.gradient import ClippedGradient
from skdp.solvers.lazy_sgd import SparseGradient
from tests import _audit_batches as batches
from tests._audit_lazy import coefficient_noise, law_is_wrong
from tests.test_claims_lazy import fit, lazy, run
from tests.test_mutants_sampling import passes, worst

REAL_MOMENTS = lazy_noise._moments


def membership(model):
    """Return the largest change by a row's membership, in units of what is charged."""
    first, _ = worst()
    trace = batches.traced(run(model), *first)
    return max(batches.membership(run(model), 0, *first)) / trace.steps[0].noise.mu


@functools.cache
def sound(C=np.inf):
    """Return whether the audit passes on the real code, which is asked first."""
    return not judged(C=C)


def judged(**options):
    """Return whether coefficients of null rows do not have the noise that was paid for."""
    rng = np.random.default_rng(0)
    # columns that are touched often, once or twice after the first third, and hardly ever
    rates = np.repeat([0.9, 0.03, 0.0001], [20, 2000, 1000])
    touched = rng.uniform(size=(60, 3020)) < rates
    X, y = sparse.csr_array(touched.astype(float)), np.full(60, 9)
    model = lazy(max_iter=30, batch_size=3, step_size=1.0, **options)
    fits = [coefficient_noise(model.set_params(random_state=seed), X, y) for seed in range(20)]
    coef, _ = zip(*fits, strict=True)
    return law_is_wrong([each.ravel() for each in coef])


def plant_moments(monkeypatch, change):
    """Change the five rows of the table of moments."""

    def changed(decay, n_steps):
        return np.array(change(decay, *REAL_MOMENTS(decay, n_steps)))

    monkeypatch.setattr(lazy_noise, "_moments", changed)


# -- the noise -----------------------------------------------------------------------


def test_columns_that_no_batch_touches_left_without_noise_are_caught(monkeypatch):
    assert sound()
    monkeypatch.setattr(LazySums, "_catch_up", lambda sums, step: None)
    assert judged()


def test_columns_that_were_not_touched_lately_left_out_of_the_result_are_caught(monkeypatch):
    assert sound()
    average, add, seen = LazySums.average, LazySums.add, set()

    def remembering(sums, columns, statistic):
        seen.update(columns)
        add(sums, columns, statistic)

    def touched_only(sums):
        kept = np.isin(np.arange(len(sums._since)), list(seen))
        seen.clear()
        return np.where(kept[:, None], average(sums), 0.0)

    monkeypatch.setattr(LazySums, "add", remembering)
    monkeypatch.setattr(LazySums, "average", touched_only)
    assert judged()


@pytest.mark.sample(1)
@pytest.mark.parametrize("C", [np.inf, 0.15])
def test_noise_of_one_step_for_many_is_caught(C, monkeypatch):
    assert sound(C)
    plant_moments(
        monkeypatch,
        lambda a, power, reach, spread, slope, rest: (
            power, reach, np.minimum(spread, a), slope, rest
        ),
    )  # fmt: skip
    assert judged(C=C)


def test_deviations_that_add_up_in_place_of_variances_are_caught(monkeypatch):
    assert sound()
    plant_moments(
        monkeypatch,
        lambda a, power, reach, spread, slope, rest: (power, reach, spread**2, slope, rest),
    )
    assert judged()


def test_an_average_without_its_own_noise_is_caught(monkeypatch):
    assert sound()
    plant_moments(
        monkeypatch,
        lambda a, power, reach, spread, slope, rest: (power, reach, spread, slope, 0 * rest),
    )
    assert judged()


def test_an_average_that_is_independent_of_the_value_is_caught(monkeypatch):
    assert sound()
    plant_moments(
        monkeypatch,
        lambda a, power, reach, spread, slope, rest: (
            power, reach, spread, 0 * slope, np.hypot(rest, slope * spread)
        ),
    )  # fmt: skip
    assert judged()


def test_a_penalty_whose_decay_is_forgotten_by_the_noise_is_caught(monkeypatch):
    assert sound(0.15)
    plant_moments(
        monkeypatch, lambda a, *rows: (*rows[:2], *REAL_MOMENTS(1.0, len(rows[0]) - 1)[2:])
    )
    assert judged(C=0.15)


def test_noise_that_is_used_for_the_value_and_the_average_is_caught(monkeypatch):
    assert sound()
    plant_moments(
        monkeypatch,
        lambda a, power, reach, spread, slope, rest: (
            power, reach, spread, slope + rest / np.maximum(spread, 1e-9), 0 * rest
        ),
    )  # fmt: skip
    assert judged()


def test_one_draw_for_all_columns_is_caught(monkeypatch):
    assert sound()
    real = LazySums._draws
    monkeypatch.setattr(
        LazySums, "_draws",
        lambda sums, n: np.repeat(real(sums, 1), n, axis=0) if n else real(sums, 0),
    )  # fmt: skip
    assert judged()


def test_noise_that_is_the_same_in_every_step_is_caught(monkeypatch):
    assert sound()
    rng = np.random.default_rng(0)
    fixed = rng.normal(size=(10_000, 1))

    def same(sums, n_columns):
        return fixed[:n_columns] * sums._noise.scale

    monkeypatch.setattr(LazySums, "_draws", same)
    assert judged()


def test_halved_noise_is_caught(monkeypatch):
    assert sound()
    real = LazySums._draws
    monkeypatch.setattr(LazySums, "_draws", lambda sums, n: real(sums, n) / 2)
    assert judged()


def test_a_time_of_last_touch_that_is_not_kept_is_caught(monkeypatch):
    assert sound()
    real = LazySums._advance

    def forgetful(sums, columns, step):
        before = sums._since[columns]
        real(sums, columns, step)
        # one column in two is believed to be up to date a step earlier than it is
        sums._since[columns] = np.where(columns % 2, before, step)

    monkeypatch.setattr(LazySums, "_advance", forgetful)
    assert judged()


# -- the statistic -------------------------------------------------------------------


def test_a_batch_divided_by_its_realised_size_is_caught(monkeypatch):
    assert passes(membership(lazy()))
    real = SparseGradient.evaluate_at

    def mean_of_what_came(query, part, values):
        size = sum(len(chunk.norm) for chunk in part.chunks)
        return real(query, part, values) * 6 / max(size, 1)

    monkeypatch.setattr(SparseGradient, "evaluate_at", mean_of_what_came)
    assert membership(lazy()) > 1.05


def test_dropped_clipping_is_caught(monkeypatch):
    assert passes(membership(lazy()))

    def unclipped(query, chunk):
        return chunk.combine(query.loss.residual(chunk.predict(query.coef), chunk.target))

    monkeypatch.setattr(ClippedGradient, "partial", unclipped)
    assert membership(lazy()) > 1.5


def test_clipping_by_what_is_left_of_a_row_is_caught(monkeypatch):
    # a norm without the constant feature is too short
    model = lazy(intercept_scaling=1.0)
    assert passes(membership(model))
    real = SparseGradient.touched

    def shorter(query, rows):
        columns, part = real(query, rows)
        for chunk in part.chunks:
            chunk.norm = np.sqrt(chunk.norm**2 - chunk.intercept**2)
        return columns, part

    monkeypatch.setattr(SparseGradient, "touched", shorter)
    assert membership(model) > 1.05


def test_a_batch_of_fixed_size_passed_off_as_coins_is_caught(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(120, 2)), np.arange(120) % 2
    model = lazy(batch_size=30, max_iter=100)

    def drawn():
        with batches.drawn() as found:
            fit(model, X, y)
        return batches.batches_are_wrong(found, 120, 0.25)

    assert drawn() is None
    monkeypatch.setattr(Sampling, "draw", lambda s, bits: np.arange(0, 120, 4))
    assert drawn() is not None
