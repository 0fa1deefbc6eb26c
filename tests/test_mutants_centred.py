# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of privately centred rows, planted one by one: the audits see them all.

Every test first shows that the audit passes on the real code.
"""

import contextlib
import functools
from dataclasses import replace
from unittest import mock

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from skdp._quantiles import NormThreshold, ThresholdPlan
from skdp._rows.columns import centered_rows
from skdp.exceptions import BudgetError
from skdp.linear_model import _classifiers as _preprocess
from skdp.location._clipped_mean import GaussianMean
from skdp.privacy.kernel import mechanisms as _mechanisms
from skdp.privacy.kernel.ledger import Record
from tests import _audit_batches as batches
from tests.test_claims_sampling import EPSILON, fit, sgd
from tests.test_mutants_sampling import spent, worst


def without_released_numbers(model, threshold=300):
    """Return how many models come of three data sets if all that is released is fixed."""
    hashes = set()
    with contextlib.ExitStack() as stack:
        still = lambda x, *_: np.full(x.shape, 0.25)  # noqa: E731
        stack.enter_context(mock.patch.object(_mechanisms, "add_noise", still))
        stack.enter_context(
            mock.patch.object(NormThreshold, "draw", return_value=np.array([float(threshold)]))
        )
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(400, 3)) * 10.0**-seed, rng.integers(0, 2, 400)
            fitted = clone(model).fit(X, y)
            hashes.add(joblib.hash(vars(fitted)))
    return len(hashes)


CENTRED = {
    "center": sgd(preprocess="center", preprocess_share=0.3),
    "center-clip": sgd(preprocess="center-clip", epsilon=30.0, clipping_norm=None),
}


@pytest.mark.parametrize("name", CENTRED)
def test_a_centre_taken_from_the_data_is_caught(name, monkeypatch):
    assert without_released_numbers(CENTRED[name]) == 1
    real = _preprocess.Centering.run

    def peeking(plan, curator):
        _, radius = real(plan, curator)
        true = []

        def moved(rows):
            body = rows.chunks[0].widened().X
            true.append(body.mean(axis=0))
            return rows

        curator.map_rows(moved)
        curator._admitted(None)
        return true[0], radius

    monkeypatch.setattr(_preprocess.Centering, "run", peeking)
    assert without_released_numbers(CENTRED[name]) == 3


def test_a_threshold_taken_from_the_data_is_caught(monkeypatch):
    model = CENTRED["center-clip"]
    assert without_released_numbers(model) == 1

    def longest(plan, curator, center):
        (chunk,) = curator._admitted(None).chunks
        rows = chunk.X * chunk.factor[:, None]
        return float(np.linalg.norm(rows - center, axis=1).max())

    monkeypatch.setattr(ThresholdPlan, "run", longest)
    assert without_released_numbers(model) == 3


def test_a_centre_at_half_its_price_is_caught(monkeypatch):
    model = CENTRED["center"]
    assert spent(model, "zero-out") <= EPSILON

    def better(plan, curator, real=GaussianMean.run):
        return real(replace(plan, mu=2 * plan.mu), curator)

    monkeypatch.setattr(GaussianMean, "run", better)
    # the budget sees it, unless the ledger forgets half of it
    with pytest.raises(BudgetError):
        spent(model, "zero-out")
    monkeypatch.setattr(Record, "mu", property(lambda s, real=Record.mu: real.fget(s) / 2))
    assert spent(model, "zero-out") > 1.05 * EPSILON


def test_a_centre_that_is_not_on_the_ledger_is_caught(monkeypatch):
    model = sgd(preprocess="center", preprocess_share=0.45)
    assert spent(model, "zero-out") <= EPSILON
    real = _preprocess.plan_row_centering
    monkeypatch.setattr(
        "skdp.linear_model._classifiers.plan_row_centering",
        lambda *args, **kwargs: replace(real(*args, **kwargs), mu=0.0),
    )
    with pytest.raises(BudgetError):
        spent(model, "zero-out")
    monkeypatch.setattr(Record, "mu", property(lambda s: 0.0))
    assert spent(model, "zero-out") > 1.05 * EPSILON


def far_row_change():
    """Return what a row far outside the radius changes, in units of what is charged."""
    rng = np.random.default_rng(1)
    X, y = 0.01 * rng.normal(size=(400, 3)) + [0.5, 0.5, 0.0], np.arange(400) % 2
    X[0] = [-0.6, -0.6, 0.3]
    model = clone(CENTRED["center-clip"]).set_params(adjacency="zero-out", solver__batch_size=40)
    run = functools.partial(fit, model)
    changed = batches.membership(run, 0, X, y, threshold=360)
    return max(changed) / batches.traced(run, X, y, threshold=360).steps[0].noise.mu


def test_rows_that_are_not_shortened_after_centring_are_caught(monkeypatch):
    assert far_row_change() <= 1

    def long_rows(rows, center, intercept, radius, shorten):
        moved = centered_rows(rows, center, intercept, radius)
        for chunk in moved.chunks:
            chunk.norm = np.minimum(chunk.norm, np.hypot(1.0, intercept))
        return moved

    monkeypatch.setattr(_preprocess, "centered_rows", long_rows)
    assert far_row_change() > 1.5


def test_null_rows_that_come_back_with_the_centre_are_caught(monkeypatch):
    # a null row stands at the origin, and would stand at minus the centre
    model = CENTRED["center"]
    _, second = worst("zero-out")
    ledger = fit(clone(model).set_params(adjacency="zero-out"), *second).ledger_

    def change():
        run = functools.partial(fit, clone(model).set_params(adjacency="zero-out"))
        return max(batches.membership(run, 0, *second)) / ledger.releases[-1].noise.mu

    assert change() == 0

    def awake(*args):
        moved = centered_rows(*args)
        for chunk in moved.chunks:
            chunk.norm = np.where(np.isinf(chunk.norm), 1.0, chunk.norm)
        return moved

    monkeypatch.setattr(_preprocess, "centered_rows", awake)
    assert change() > 0.5
