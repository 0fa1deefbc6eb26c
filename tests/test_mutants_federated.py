# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Known bugs of federated learning, planted one by one: the audits must see every one of them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp.federated._averaging import ClientUpdates, ReportSum, _all, _norms
from skdp.privacy.kernel import mechanisms as _mechanisms
from tests import _audit
from tests.federated._clients import admitted, clients, loss_of
from tests.federated.test_claims import data, model, ratio

ZERO_OUT = "zero-out"


def test_updates_that_are_not_clipped_are_caught(monkeypatch):
    assert ratio(model(), "replace-one") <= 1.0
    monkeypatch.setattr(ClientUpdates, "_factors", lambda self, norm: np.ones_like(norm))
    assert ratio(model(), "replace-one") > 1.5


def test_clipping_rows_instead_of_clients_is_caught(monkeypatch):
    def row_by_row(self, chunk):
        coef = np.atleast_2d(self.coef)
        total = np.zeros(coef.shape)
        for stack in chunk.stacks():
            # every row's part is short, but there are many
            weights = self._residuals(stack, coef) * stack.rows.shape[1]
            norm = _norms(weights.reshape(-1, 1, len(coef))) * _norms(
                stack.rows.reshape(-1, 1, stack.rows.shape[2])
            )
            weights *= self._factors(norm).reshape(*weights.shape[:2], 1)
            total[:, _all(stack.columns)] -= np.einsum("gmk,gmp->kp", weights, stack.rows)
        return total.ravel()

    assert ratio(model(adjacency=ZERO_OUT), ZERO_OUT) <= 1.0
    monkeypatch.setattr(ClientUpdates, "partial", row_by_row)
    assert ratio(model(adjacency=ZERO_OUT), ZERO_OUT) > 5


def test_weights_by_the_number_of_rows_are_caught(monkeypatch):
    real = ClientUpdates._factors

    def weighted(self, norm):
        return 1.2 * real(self, norm)

    monkeypatch.setattr(ClientUpdates, "_factors", weighted)
    assert ratio(model(adjacency=ZERO_OUT), ZERO_OUT) > 1.1


def test_division_by_the_realised_number_is_caught(monkeypatch):
    X, y, groups = data()
    y = np.where(groups < 3, 99, y)
    fitted = model(adjacency=ZERO_OUT, max_iter=1)
    real = ClientUpdates.evaluate

    def divided(self, rows):
        found = [self.vectors(chunk).any(axis=1).sum() for chunk in rows.chunks]
        return real(self, rows) * 8 / max(sum(found), 1)

    def sensitivity():
        changed = np.where(groups == 3, 99, y)
        pair = (X, y, groups), (X, changed, groups)
        return _audit.coupled_mu(lambda rows: clone(fitted).fit(*rows), *pair)

    honest = sensitivity()
    monkeypatch.setattr(ClientUpdates, "evaluate", divided)
    assert sensitivity() > 1.2 * honest


def test_halved_noise_is_caught(monkeypatch):
    X, y, groups = clients([3] * 12, n_features=400)
    assert not _audit.scale_is_wrong(_audit.noise_stream(clone(model()).fit, X, y, groups))
    real = _mechanisms.add_noise

    def halved(values, noise, bits):
        return real(values, replace(noise, scale=noise.scale / 2), bits)

    monkeypatch.setattr(_mechanisms, "add_noise", halved)
    assert _audit.scale_is_wrong(_audit.noise_stream(clone(model()).fit, X, y, groups))


def test_reports_that_are_not_projected_are_caught(monkeypatch):
    query, long = ReportSum(3, 1.0, 0.5), np.full((1, 3), 9.0)
    stated = query.sensitivity(ZERO_OUT, 1).l2
    assert np.linalg.norm(query.total(long)) <= stated * (1 + 1e-12)
    monkeypatch.setattr(ReportSum, "_factors", lambda self, reports: np.ones(len(reports)))
    assert np.linalg.norm(query.total(long)) > 10 * stated


def test_an_update_that_looks_at_other_clients_is_caught(monkeypatch):
    real = ClientUpdates._residuals

    def mixed(self, stack, coef):
        weights = real(self, stack, coef)
        return weights + 1e-3 * weights.mean(axis=0)

    def others():
        X, y, groups = clients([2] * 6)
        kept, vectors = [], ClientUpdates(np.ones(4), loss_of(2), 9.0)
        for sign in (1, -1):
            rows = np.where((groups == 0)[:, None], sign * X, X)
            (chunk,) = admitted(rows, y, groups, 6).chunks
            kept.append(vectors.vectors(chunk)[1:])
        return np.abs(kept[0] - kept[1]).max()

    assert others() == 0.0
    monkeypatch.setattr(ClientUpdates, "_residuals", mixed)
    assert others() > 0.0


@pytest.mark.parametrize("adjacency", ["replace-one", ZERO_OUT])
def test_a_limit_that_leaves_out_the_unit_is_caught(monkeypatch, adjacency):
    query = ReportSum(3, 4.0, 0.5)

    def unscaled(self, reports):
        return self.limit / np.maximum(np.linalg.norm(reports, axis=1), self.limit)

    reports = np.full((1, 3), 9.0)
    other = np.empty((0, 3)) if adjacency == ZERO_OUT else -reports
    stated = query.sensitivity(adjacency, 1).l2
    assert np.linalg.norm(query.total(reports) - query.total(other)) <= stated * (1 + 1e-12)
    monkeypatch.setattr(ReportSum, "_factors", unscaled)
    assert np.linalg.norm(query.total(reports) - query.total(other)) > 2 * stated
